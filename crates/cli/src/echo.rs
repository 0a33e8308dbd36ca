//! The demo's conversation with itself: an echo server on a loopback port, and a client that
//! checks what comes back.

use blacklight::{Loop, Poll, Readiness, Timer};
use std::cell::{Cell, RefCell};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::rc::Rc;
use std::time::Duration;

/// So short that an idle connection takes it in one piece.
const MESSAGE: usize = 1000;

/// How the conversation goes.
#[derive(Default)]
struct Talk {
    sent: Cell<u64>,
    /// Bytes that came back as they went.
    echoed: Cell<u64>,
    failure: RefCell<Option<io::Error>>,
}

impl Talk {
    /// Keeps the first thing that went wrong.
    fn note(&self, result: io::Result<()>) {
        if let Err(error) = result {
            self.failure.borrow_mut().get_or_insert(error);
        }
    }

    /// Sends the next message, if the last one has come back.
    fn send(&self, mut stream: &TcpStream) -> io::Result<()> {
        if self.is_waiting() {
            return Ok(());
        }
        let message: [u8; MESSAGE] = std::array::from_fn(|at| byte(self.sent.get() + at as u64));
        stream.write_all(&message)?;
        self.sent.set(self.sent.get() + MESSAGE as u64);
        Ok(())
    }

    /// Takes what has come back.
    fn check(&self, mut stream: &TcpStream) -> io::Result<()> {
        let mut room = [0; MESSAGE];
        let count = count_of(stream.read(&mut room))?;
        let begin = self.echoed.get();
        let is_same = |(at, &got): (usize, &u8)| got == byte(begin + at as u64);
        if !room[..count].iter().enumerate().all(is_same) {
            return Err(io::Error::other("the echo differs from what was sent"));
        }
        self.echoed.set(begin + count as u64);
        Ok(())
    }

    fn is_waiting(&self) -> bool {
        self.echoed.get() < self.sent.get()
    }
}

/// The byte at a place of what the client says.
fn byte(at: u64) -> u8 {
    (at % 251) as u8
}

/// How much was read: nothing if there was nothing after all.
fn count_of(read: io::Result<usize>) -> io::Result<usize> {
    match read {
        Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(0),
        read => read,
    }
}

/// Server, client and their connection, all on one loop.
pub(crate) struct Echo {
    address: SocketAddr,
    talk: Rc<Talk>,
    _server: Poll<Rc<TcpListener>>,
    /// The server's side of the connection, once it has been accepted.
    _accepted: Rc<RefCell<Option<Poll<Rc<TcpStream>>>>>,
    _client: Poll<Rc<TcpStream>>,
    _timer: Timer,
}

impl Echo {
    pub(crate) fn start(lp: &Loop) -> io::Result<Echo> {
        let talk = Rc::new(Talk::default());
        let listener = Rc::new(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?);
        let address = listener.local_addr()?;
        let server = Poll::new(lp, listener.clone())?;
        let accepted = Rc::new(RefCell::new(None));
        let (place, serving) = (Rc::clone(&accepted), talk.clone());
        server.start(Readiness::READABLE, move |lp, _| {
            let served = listener.accept().and_then(|(stream, _)| {
                *place.borrow_mut() = Some(serve(lp, stream, serving.clone())?);
                Ok(())
            });
            serving.note(served);
        })?;

        let stream = Rc::new(TcpStream::connect(address)?);
        stream.set_nodelay(true)?;
        let client = Poll::new(lp, stream.clone())?;
        let (checking, own) = (talk.clone(), stream.clone());
        client.start(Readiness::READABLE, move |_, _| {
            checking.note(checking.check(&own));
        })?;
        let timer = Timer::new(lp)?;
        let sending = talk.clone();
        timer.start_repeating(Duration::from_millis(11), move |_, _| {
            sending.note(sending.send(&stream));
        })?;
        Ok(Echo {
            address,
            talk,
            _server: server,
            _accepted: accepted,
            _client: client,
            _timer: timer,
        })
    }

    /// Whether the last message is still on its way.
    pub(crate) fn is_waiting(&self) -> bool {
        self.talk.failure.borrow().is_none() && self.talk.is_waiting()
    }

    /// Hangs up: where the server was, and how many bytes it has echoed.
    pub(crate) fn finish(self) -> io::Result<(SocketAddr, u64)> {
        match self.talk.failure.take() {
            Some(error) => Err(error),
            None => Ok((self.address, self.talk.echoed.get())),
        }
    }
}

/// Says everything back.
fn serve(lp: &Loop, stream: TcpStream, talk: Rc<Talk>) -> io::Result<Poll<Rc<TcpStream>>> {
    let stream = Rc::new(stream);
    let poll = Poll::new(lp, stream.clone())?;
    poll.start(Readiness::READABLE, move |_, _| {
        let mut room = [0; MESSAGE];
        let mut stream = &*stream;
        let read = count_of(stream.read(&mut room));
        talk.note(read.and_then(|count| stream.write_all(&room[..count])));
    })?;
    Ok(poll)
}
