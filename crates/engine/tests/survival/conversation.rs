//! Two ends of a TCP connection that answer each other.

use crate::desk::Desk;
use crate::ledger::Kind;
use crate::objects::Object;
use crate::sockets::{Lent, descriptor};
use blacklight_engine::{Errno, Event, Key, Token};
use std::mem::MaybeUninit;
use std::net::{TcpListener, TcpStream};

struct End {
    key: Key,
    token: Token,
    /// The bytes that the other end has written and this one has not read.
    to_read: usize,
}

/// Messages that are answered by messages as long. Where they are read byte by byte, the
/// connection is taken for a flow in between.
pub(crate) struct Conversation {
    ends: [End; 2],
    message: usize,
    /// The most bytes that an end reads at once.
    room: usize,
    /// Messages that are still to be begun.
    left: u32,
    writes: u32,
    lent: Lent,
}

impl Conversation {
    pub(crate) fn new(desk: &mut Desk) -> Conversation {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (other, _) = listener.accept().unwrap();
        let ends = [one, other].map(|socket| {
            let token = desk.new_token();
            let key = desk.engine.tcp_init(token, None).unwrap();
            let opened = desk.engine.stream_open(key, descriptor(socket), true, true);
            opened.unwrap();
            desk.engine.read_start(key).unwrap();
            End {
                key,
                token,
                to_read: 0,
            }
        });
        let message = desk.random.pick(&[1, 10, 150]);
        let mut it = Conversation {
            ends,
            message,
            room: desk.random.pick(&[1, 1, 1_000]),
            left: 1 + desk.up_to(6),
            writes: 0,
            lent: Lent::default(),
        };
        it.say(desk, 0);
        it
    }

    /// An end writes a message to the other.
    fn say(&mut self, desk: &mut Desk, end: usize) {
        self.left -= 1;
        let request = desk.new_token();
        let buffers = self.lent.lend(self.message);
        let key = self.ends[end].key;
        let written = desk.engine.stream_write(key, request, buffers, None);
        written.unwrap();
        desk.expect(request, Kind::Write, 1);
        self.writes += 1;
        let other = &mut self.ends[1 - end];
        other.to_read += self.message;
        desk.expect(other.token, Kind::Arrival, 1);
    }

    fn read(&mut self, desk: &mut Desk, token: Token) {
        let is_it = |end: &End| end.token == token;
        let at = self.ends.iter().position(is_it).expect("one of ours");
        let mut room = [MaybeUninit::uninit(); 1_000];
        let end = &mut self.ends[at];
        match desk.engine.stream_read(end.key, &mut room[..self.room]) {
            Ok(count) => end.to_read -= count,
            Err(error) => return assert_eq!(error, Errno::EAGAIN),
        }
        if end.to_read == 0 {
            desk.meet(token, Kind::Arrival);
            if self.left > 0 {
                self.say(desk, at);
            }
        }
    }

    fn close_if_over(&mut self, desk: &mut Desk) {
        let is_over = self.left == 0 && self.writes == 0;
        if is_over && self.ends.iter().all(|end| end.to_read == 0) {
            for end in &self.ends {
                desk.engine.read_stop(end.key);
                desk.close(end.key, end.token);
            }
        }
    }
}

impl Object for Conversation {
    fn told(&mut self, desk: &mut Desk, event: Event) {
        match event {
            Event::Read(_) if desk.leaves_it() => return,
            Event::Read(token) => self.read(desk, token),
            Event::Write(_, result, _) => {
                assert_eq!(result, Ok(()));
                self.writes -= 1;
            }
            Event::Closed(_) => return,
            event => panic!("{event:?}"),
        }
        self.close_if_over(desk);
    }
}
