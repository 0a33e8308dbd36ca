//! Objects that send and receive.

use crate::desk::Desk;
use crate::ledger::Kind;
use crate::objects::Object;
use blacklight_engine::{
    Address, AddressRef, Buffers, Descriptor, Errno, Event, Key, SenderRoom, Token,
};
use std::mem::MaybeUninit;
use std::os::fd::{IntoRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

/// More than a socket takes at once.
static BYTES: [u8; 1 << 20] = [b'x'; 1 << 20];

/// A `struct iovec`.
#[repr(C)]
struct Slice(*const u8, usize);

/// Memory that the engine is lent until it has reported the request. Objects live as long as the engine.
#[derive(Default)]
#[allow(clippy::vec_box, reason = "the engine knows where the entries are")]
pub(crate) struct Lent(Vec<Box<Slice>>);

impl Lent {
    pub(crate) fn lend(&mut self, len: usize) -> Buffers {
        self.0.push(Box::new(Slice(BYTES.as_ptr(), len)));
        let slice = self.0.last_mut().expect("it has just been pushed");
        // SAFETY: the entry stays where it is for as long as the engine is there.
        unsafe { Buffers::new((&raw mut **slice).cast(), 1) }
    }
}

pub(crate) fn descriptor(file: impl Into<OwnedFd>) -> Descriptor {
    // SAFETY: whoever had it has given it away.
    unsafe { Descriptor::adopt(file.into().into_raw_fd()) }
}

/// One stream that writes and shuts down, and another that reads to the end.
pub(crate) struct Connection {
    writer: (Key, Token),
    reader: (Key, Token),
    server: Option<Key>,
    lent: Lent,
    /// Writes that have not been reported.
    writes: u32,
    bytes: usize,
    room: Vec<MaybeUninit<u8>>,
}

impl Connection {
    fn new(desk: &mut Desk, is_tcp: bool) -> Connection {
        let mut init = || {
            let token = desk.new_token();
            let key = match is_tcp {
                true => desk.engine.tcp_init(token, None),
                false => desk.engine.pipe_init(token, false),
            };
            (key.unwrap(), token)
        };
        Connection {
            writer: init(),
            reader: init(),
            server: None,
            lent: Lent::default(),
            writes: 0,
            bytes: 0,
            room: vec![MaybeUninit::uninit(); 1 << 16],
        }
    }

    pub(crate) fn pair(desk: &mut Desk) -> Connection {
        let mut it = Connection::new(desk, false);
        let (left, right) = UnixStream::pair().unwrap();
        for (key, socket) in [(it.writer.0, left), (it.reader.0, right)] {
            let opened = desk.engine.stream_open(key, descriptor(socket), true, true);
            opened.unwrap();
        }
        it.begin_writing(desk);
        it.begin_reading(desk);
        it
    }

    pub(crate) fn tcp(desk: &mut Desk) -> Connection {
        let mut it = Connection::new(desk, true);
        let (server, request) = (desk.new_token(), desk.new_token());
        let key = desk.engine.tcp_init(server, None).unwrap();
        desk.engine.stream_listen(key, 8).unwrap();
        let address: Address = desk.engine.stream_address(key, false).unwrap();
        it.server = Some(key);
        let begun = desk.engine.tcp_connect(it.writer.0, request, &address);
        begun.unwrap();
        desk.expect(server, Kind::Connection, 1);
        desk.expect(request, Kind::Connect, 1);
        it.begin_writing(desk);
        it
    }

    fn begin_writing(&mut self, desk: &mut Desk) {
        for _ in 0..desk.up_to(3) {
            let len = desk.random.pick(&[1, 1, 70_000, BYTES.len()]);
            let request = desk.new_token();
            let buffers = self.lent.lend(len);
            let written = desk
                .engine
                .stream_write(self.writer.0, request, buffers, None);
            written.unwrap();
            desk.expect(request, Kind::Write, 1);
            self.writes += 1;
            self.bytes += len;
        }
        let request = desk.new_token();
        let begun = desk.engine.stream_shutdown(self.writer.0, request);
        begun.unwrap();
        desk.expect(request, Kind::Shutdown, 1);
        desk.expect(self.reader.1, Kind::End, 1);
    }

    fn begin_reading(&mut self, desk: &mut Desk) {
        desk.engine.read_start(self.reader.0).unwrap();
    }

    fn accept(&mut self, desk: &mut Desk, server: Token) {
        let key = self.server.take().expect("a server");
        desk.engine.stream_accept(key, self.reader.0).unwrap();
        desk.close(key, server);
        self.begin_reading(desk);
    }

    fn read(&mut self, desk: &mut Desk) {
        match desk.engine.stream_read(self.reader.0, &mut self.room[..]) {
            Ok(count) => self.bytes -= count,
            Err(Errno::EAGAIN) => {}
            Err(error) => self.end(desk, error),
        }
    }

    fn end(&mut self, desk: &mut Desk, error: Errno) {
        assert_eq!((error, self.bytes), (Errno::EOF, 0));
        desk.meet(self.reader.1, Kind::End);
        desk.close(self.reader.0, self.reader.1);
    }
}

impl Object for Connection {
    fn told(&mut self, desk: &mut Desk, event: Event) {
        match event {
            Event::Connection(server, result) => {
                assert_eq!(result, Ok(()));
                self.accept(desk, server);
            }
            Event::Connect(_, result) => assert_eq!(result, Ok(())),
            Event::Write(_, result, _) => {
                assert_eq!(result, Ok(()));
                self.writes -= 1;
            }
            Event::Shutdown(_, result) => {
                assert_eq!((result, self.writes), (Ok(()), 0));
                desk.close(self.writer.0, self.writer.1);
            }
            Event::Read(_) if desk.leaves_it() => {}
            Event::Read(_) => self.read(desk),
            Event::ReadEnd(_, error) => self.end(desk, error),
            Event::Closed(_) => {}
            event => panic!("{event:?}"),
        }
    }
}

/// A stream that is closed with writes in progress, and one that nobody reads from.
pub(crate) struct Cancelled {
    _lent: Lent,
    _other: UnixStream,
}

impl Cancelled {
    pub(crate) fn new(desk: &mut Desk) -> Cancelled {
        let token = desk.new_token();
        let key = desk.engine.pipe_init(token, false).unwrap();
        let (ours, other) = UnixStream::pair().unwrap();
        let opened = desk.engine.stream_open(key, descriptor(ours), true, true);
        opened.unwrap();
        let mut lent = Lent::default();
        for _ in 0..desk.up_to(3) {
            let request = desk.new_token();
            let buffers = lent.lend(BYTES.len());
            desk.engine
                .stream_write(key, request, buffers, None)
                .unwrap();
            desk.expect(request, Kind::Write, 1);
        }
        desk.close_now(key, token);
        Cancelled {
            _lent: lent,
            _other: other,
        }
    }
}

impl Object for Cancelled {
    fn told(&mut self, _: &mut Desk, event: Event) {
        match event {
            Event::Write(_, result, _) => assert_eq!(result, Err(Errno::ECANCELED)),
            event => assert!(matches!(event, Event::Closed(_))),
        }
    }
}

/// Datagrams from one handle to another.
pub(crate) struct Datagrams {
    sender: (Key, Token),
    receiver: (Key, Token),
    _lent: Lent,
    to_report: u32,
    to_receive: u32,
    /// Closed before all was reported.
    breaks_off: bool,
}

impl Datagrams {
    pub(crate) fn new(desk: &mut Desk) -> Datagrams {
        let mut init = || {
            let token = desk.new_token();
            (desk.engine.udp_init(token, None).unwrap(), token)
        };
        let (sender, receiver) = (init(), init());
        desk.engine.udp_receive_start(receiver.0).unwrap();
        let address = desk.engine.udp_address(receiver.0, false).unwrap();
        let mut lent = Lent::default();
        let datagrams = desk.up_to(4);
        for _ in 0..datagrams {
            let request = desk.new_token();
            let buffers = lent.lend(100);
            let to = Some(AddressRef::from(&address));
            let sent = desk.engine.udp_send(sender.0, request, &buffers, to);
            if !sent.unwrap() {
                let queued = desk.engine.udp_send_later(sender.0, request, buffers, to);
                queued.unwrap();
            }
            desk.expect(request, Kind::Send, 1);
        }
        let breaks_off = desk.random.chance(1, 4);
        match breaks_off {
            true => {
                desk.close_now(sender.0, sender.1);
                desk.close_now(receiver.0, receiver.1);
            }
            false => desk.expect(receiver.1, Kind::Arrival, datagrams),
        }
        Datagrams {
            sender,
            receiver,
            _lent: lent,
            to_report: datagrams,
            to_receive: datagrams,
            breaks_off,
        }
    }

    fn receive(&mut self, desk: &mut Desk) {
        let mut room = [MaybeUninit::uninit(); 200];
        let mut from = SenderRoom::new();
        let received = desk
            .engine
            .udp_receive(self.receiver.0, &mut room, &mut from);
        match received.map(|datagram| datagram.len) {
            Err(Errno::EAGAIN) => return,
            received => assert_eq!(received, Ok(100)),
        }
        desk.meet(self.receiver.1, Kind::Arrival);
        self.to_receive -= 1;
        if self.to_receive == 0 {
            desk.close(self.receiver.0, self.receiver.1);
        }
    }
}

impl Object for Datagrams {
    fn told(&mut self, desk: &mut Desk, event: Event) {
        match event {
            Event::Send(_, result, _) => {
                self.to_report -= 1;
                if self.breaks_off {
                    assert!(matches!(result, Ok(()) | Err(Errno::ECANCELED)));
                } else {
                    assert_eq!(result, Ok(()));
                    if self.to_report == 0 {
                        desk.close(self.sender.0, self.sender.1);
                    }
                }
            }
            Event::Receive(_) if desk.leaves_it() => {}
            Event::Receive(_) => self.receive(desk),
            Event::Closed(_) => {}
            event => panic!("{event:?}"),
        }
    }
}
