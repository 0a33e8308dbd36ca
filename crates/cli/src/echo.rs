//! The demo's echo server on a loopback port, and a client that checks the echo.

use blacklight::{AsyncFd, Readiness, Timer};
use std::cell::{Cell, RefCell};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::rc::Rc;
use std::time::Duration;

/// Short enough for an idle connection to take in one write.
const MESSAGE: usize = 1000;

/// The state of the exchange between client and server.
#[derive(Default)]
struct Exchange {
    sent: Cell<u64>,
    /// Bytes that came back unchanged.
    echoed: Cell<u64>,
    failure: RefCell<Option<io::Error>>,
}

impl Exchange {
    /// Keeps the first error.
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

    /// Reads the echo, and compares it with the bytes sent.
    fn check(&self, mut stream: &TcpStream) -> io::Result<()> {
        let mut buf = [0; MESSAGE];
        let count = count_of(stream.read(&mut buf))?;
        let begin = self.echoed.get();
        let is_same = |(at, &got): (usize, &u8)| got == byte(begin + at as u64);
        if !buf[..count].iter().enumerate().all(is_same) {
            return Err(io::Error::other("the echo differs from what was sent"));
        }
        self.echoed.set(begin + count as u64);
        Ok(())
    }

    fn is_waiting(&self) -> bool {
        self.echoed.get() < self.sent.get()
    }
}

/// The byte at an offset of the client's data.
fn byte(at: u64) -> u8 {
    (at % 251) as u8
}

/// The number of bytes read; zero if the read would block.
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
    exchange: Rc<Exchange>,
    _server: AsyncFd<Rc<TcpListener>>,
    /// The server's side of the connection, once it has been accepted.
    _accepted: Rc<RefCell<Option<AsyncFd<Rc<TcpStream>>>>>,
    _client: AsyncFd<Rc<TcpStream>>,
    _timer: Timer,
}

impl Echo {
    pub(crate) fn start() -> io::Result<Echo> {
        let exchange = Rc::new(Exchange::default());
        let listener = Rc::new(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?);
        let address = listener.local_addr()?;
        let server = AsyncFd::new(listener.clone())?;
        let accepted = Rc::new(RefCell::new(None));
        let (place, serving) = (Rc::clone(&accepted), exchange.clone());
        server.start(Readiness::READABLE, move |_, _| {
            let served = listener.accept().and_then(|(stream, _)| {
                *place.borrow_mut() = Some(serve(stream, serving.clone())?);
                Ok(())
            });
            serving.note(served);
        })?;

        let stream = Rc::new(TcpStream::connect(address)?);
        stream.set_nodelay(true)?;
        let client = AsyncFd::new(stream.clone())?;
        let (checking, own) = (exchange.clone(), stream.clone());
        client.start(Readiness::READABLE, move |_, _| {
            checking.note(checking.check(&own));
        })?;
        let timer = Timer::new()?;
        let sending = exchange.clone();
        timer.start_repeating(Duration::from_millis(11), move |_, _| {
            sending.note(sending.send(&stream));
        })?;
        Ok(Echo {
            address,
            exchange,
            _server: server,
            _accepted: accepted,
            _client: client,
            _timer: timer,
        })
    }

    /// Whether the last message is still in flight.
    pub(crate) fn is_waiting(&self) -> bool {
        self.exchange.failure.borrow().is_none() && self.exchange.is_waiting()
    }

    /// Closes everything, and returns the server's address and the number of bytes echoed.
    pub(crate) fn finish(self) -> io::Result<(SocketAddr, u64)> {
        match self.exchange.failure.take() {
            Some(error) => Err(error),
            None => Ok((self.address, self.exchange.echoed.get())),
        }
    }
}

/// Echoes a connection.
fn serve(stream: TcpStream, exchange: Rc<Exchange>) -> io::Result<AsyncFd<Rc<TcpStream>>> {
    let stream = Rc::new(stream);
    let poll = AsyncFd::new(stream.clone())?;
    poll.start(Readiness::READABLE, move |_, _| {
        let mut buf = [0; MESSAGE];
        let mut stream = &*stream;
        let read = count_of(stream.read(&mut buf));
        exchange.note(read.and_then(|count| stream.write_all(&buf[..count])));
    })?;
    Ok(poll)
}
