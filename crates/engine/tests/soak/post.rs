//! Datagrams from one handle to another: each begins with its number, and is filled with what
//! belongs to it.

use crate::link::descriptor;
use crate::world::{Coverage, Lent, Name, Owner, Sockets, World, pattern};
use blacklight_engine::{Address, AddressRef, Errno, Inbox, Key, Outbox, SenderRoom, UdpReuse};
use std::collections::VecDeque;
use std::os::unix::net::UnixDatagram;

/// So few at a time that they fit any socket's buffer.
const IN_FLIGHT: usize = 6;
const MAX_FILL: usize = 4000;
const CHUNK: usize = 8 + MAX_FILL;

#[derive(Debug)]
pub(crate) struct Post {
    sender: Key,
    receiver: Key,
    /// Where to, unless the sender is connected.
    to: Option<Address>,
    datagrams_left: u32,
    next_number: u64,
    /// The sends that have not been reported: request and datagram.
    sends: VecDeque<(u64, u64)>,
    /// The datagrams that the kernel is known to have taken.
    taken: Vec<u64>,
    received: Vec<u64>,
    /// Closes the sender after so many ticks, whatever is going on.
    breaks_off: Option<u32>,
    is_receiving: bool,
    is_broken: bool,
    is_closing: bool,
    closed: (bool, bool),
}

fn datagram(number: u64, len: usize) -> Vec<u8> {
    let fill = pattern(number as usize * 31, len);
    number.to_le_bytes().iter().chain(fill).copied().collect()
}

impl Post {
    pub(crate) fn begin(world: &mut World, sockets: Sockets) {
        let post = world.posts.len();
        let engine = &mut world.engine;
        let sender = engine.udp_init(Name::Sender(post).token(), None);
        let receiver = engine.udp_init(Name::Receiver(post).token(), None);
        let (sender, receiver) = (sender.expect("a handle"), receiver.expect("a handle"));
        let is_network = sockets == Sockets::All && world.random.chance(1, 2);
        let mut to = None;
        if is_network {
            engine.udp_receive_start(receiver).expect("a socket");
            to = Some(engine.udp_address(receiver, false).expect("a name"));
        } else {
            let (left, right) = UnixDatagram::pair().expect("a pair of sockets");
            for (key, socket) in [(sender, left), (receiver, right)] {
                let opened = engine.udp_open(key, descriptor(socket), UdpReuse::default());
                opened.expect("a new socket");
            }
            engine.udp_receive_start(receiver).expect("a socket");
        }
        if let Some(address) = to.take_if(|_| world.random.chance(1, 2)) {
            engine.udp_connect(sender, &address).expect("an address");
        }
        let breaks_off = world
            .random
            .chance(1, 4)
            .then(|| world.random.below(6) as u32);
        world.posts.push(Post {
            sender,
            receiver,
            to,
            datagrams_left: world.random.below(60) as u32,
            next_number: 0,
            sends: VecDeque::new(),
            taken: Vec::new(),
            received: Vec::new(),
            breaks_off,
            is_receiving: true,
            is_broken: false,
            is_closing: false,
            closed: (false, false),
        });
        world.send_some(post);
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.is_closing
    }

    pub(crate) fn sender_closed(&mut self) {
        assert!(self.sends.is_empty(), "sends are left");
        assert!(!std::mem::replace(&mut self.closed.0, true));
    }

    pub(crate) fn receiver_closed(&mut self) {
        assert!(!std::mem::replace(&mut self.closed.1, true));
    }

    /// Checks at the end that all that was taken has come, unless an end has closed early.
    pub(crate) fn check(&self, coverage: &mut Coverage) {
        assert_eq!(self.closed, (true, true));
        coverage.datagrams += self.received.len() as u64;
        let was_taken = |number| self.taken.contains(number);
        assert!(
            self.received.iter().all(was_taken),
            "what came was not sent"
        );
        if !self.is_broken {
            assert_eq!(self.received, self.taken);
        }
    }
}

impl World {
    fn send_some(&mut self, post: usize) {
        let it = &self.posts[post];
        let in_flight = it.sends.len() + it.taken.len().saturating_sub(it.received.len());
        if it.is_closing || in_flight >= IN_FLIGHT {
            return;
        }
        let room = (IN_FLIGHT - in_flight).min(it.datagrams_left as usize);
        let has_socket = self.engine.udp_fd(it.sender).is_ok();
        if room > 1 && has_socket && it.sends.is_empty() && self.random.chance(1, 4) {
            return self.try_send_batch(post, room);
        }
        for _ in 0..room {
            self.send_one(post);
        }
    }

    /// The next datagram.
    fn next_datagram(&mut self, post: usize) -> (u64, Lent) {
        let len = self.random.below(MAX_FILL as u64 + 1) as usize;
        let number = self.posts[post].next_number;
        (number, Lent::bytes(datagram(number, len)))
    }

    fn send_one(&mut self, post: usize) {
        let (number, mut lent) = self.next_datagram(post);
        let is_tried = self.posts[post].sends.is_empty() && self.random.chance(1, 4);
        let id = self.new_request();
        let token = Name::Request(id).token();
        let it = &mut self.posts[post];
        let to = it.to.as_ref().map(AddressRef::from);
        if is_tried {
            match self.engine.udp_try_send(it.sender, &lent.buffers(), to) {
                Ok(_) => it.taken.push(number),
                Err(Errno::EAGAIN) => return,
                Err(error) => assert!(self.is_destructive, "sending fails: {error:?}"),
            }
        } else {
            let sent = self.engine.udp_send(it.sender, token, &lent.buffers(), to);
            if sent == Ok(false) {
                let queued = self
                    .engine
                    .udp_send_later(it.sender, token, lent.buffers(), to);
                queued.expect("it can be queued");
            } else {
                assert_eq!(sent, Ok(true));
            }
            it.sends.push_back((id, number));
            self.requests.insert(id, (Owner::Post(post), lent));
        }
        it.next_number += 1;
        it.datagrams_left -= 1;
    }

    fn try_send_batch(&mut self, post: usize, count: usize) {
        let first = self.posts[post].next_number;
        let mut lent: Vec<Lent> = (0..count)
            .map(|at| Lent::bytes(datagram(first + at as u64, 100 * at)))
            .collect();
        let buffers: Vec<_> = lent.iter_mut().map(Lent::buffers).collect();
        let it = &mut self.posts[post];
        let mut outbox = Outbox::new();
        for buffers in &buffers {
            outbox.push(buffers, it.to.as_ref().map(AddressRef::from));
        }
        match self.engine.udp_try_send_batch(it.sender, &mut outbox) {
            Ok(sent) => {
                it.taken.extend(first..first + sent as u64);
                it.next_number += sent as u64;
                it.datagrams_left -= sent as u32;
            }
            Err(Errno::EAGAIN) => {}
            Err(error) => assert!(self.is_destructive, "sending fails: {error:?}"),
        }
    }

    pub(crate) fn sent(&mut self, post: usize, id: u64, result: Result<(), Errno>, bytes: usize) {
        let it = &mut self.posts[post];
        assert!(!it.closed.0 && bytes >= 8);
        let (first, number) = it.sends.pop_front().expect("a send that was made");
        assert_eq!(first, id, "sends are reported out of order");
        match result {
            Ok(()) => it.taken.push(number),
            Err(Errno::ECANCELED) if it.is_closing => self.coverage.cancelled_sends += 1,
            Err(error) => {
                assert!(self.is_destructive, "sending fails: {error:?}");
                self.coverage.failed_sends += 1;
            }
        }
        if self.random.chance(1, 2) {
            self.send_some(post);
        }
        self.close_post_if_over(post);
    }

    pub(crate) fn receive(&mut self, post: usize) {
        assert!(self.posts[post].is_receiving && !self.posts[post].is_closing);
        let receiver = self.posts[post].receiver;
        let result = if self.random.chance(1, 2) {
            let mut inbox = Inbox::new();
            let room = &mut self.room[..4 * CHUNK];
            let result = self
                .engine
                .udp_receive_batch(receiver, room, CHUNK, &mut inbox);
            for at in 0..result.unwrap_or(0) {
                let datagram = inbox.get(at).expect("as many have come");
                assert!(!datagram.truncated);
                self.check_datagram(post, at * CHUNK, datagram.len);
            }
            result
        } else {
            let mut from = SenderRoom::new();
            let room = &mut self.room[..CHUNK];
            let result = self.engine.udp_receive(receiver, room, &mut from);
            let result = result.map(|datagram| {
                assert!(!datagram.truncated);
                datagram.len
            });
            if let Ok(len) = result {
                self.check_datagram(post, 0, len);
            }
            result
        };
        if let Some(step) = self.steps.last_mut() {
            step.1 = Some(result);
        }
        match result {
            Ok(_) | Err(Errno::EAGAIN) => {}
            Err(error) => assert!(self.is_destructive, "receiving fails: {error:?}"),
        }
        let it = &mut self.posts[post];
        if self.random.chance(1, 12) {
            self.engine.udp_receive_stop(it.receiver);
            it.is_receiving = false;
        }
        if self.random.chance(1, 2) {
            self.send_some(post);
        }
        self.close_post_if_over(post);
    }

    fn check_datagram(&mut self, post: usize, at: usize, len: usize) {
        let start = self.room[at..].as_ptr().cast::<u8>();
        // SAFETY: as many bytes have been received there.
        let bytes = unsafe { std::slice::from_raw_parts(start, len) };
        let number = bytes.first_chunk().expect("a number comes first");
        let number = u64::from_le_bytes(*number);
        assert!(
            bytes == datagram(number, len - 8),
            "wrong bytes in {number}"
        );
        let received = &mut self.posts[post].received;
        let is_next = received.last().is_none_or(|&last| last < number);
        assert!(is_next, "datagram {number} comes twice or too late");
        received.push(number);
    }

    pub(crate) fn receiving_ended(&mut self, post: usize, error: Errno) {
        assert!(self.is_destructive, "receiving ends: {error:?}");
        self.posts[post].is_receiving = false;
        self.posts[post].is_broken = true;
        self.close_post(post);
    }

    fn close_post_if_over(&mut self, post: usize) {
        let it = &self.posts[post];
        let all_sent = it.datagrams_left == 0 && it.sends.is_empty();
        if all_sent && it.received.len() == it.taken.len() {
            self.close_post(post);
        }
    }

    fn close_post(&mut self, post: usize) {
        let it = &mut self.posts[post];
        if !std::mem::replace(&mut it.is_closing, true) {
            self.engine.close(it.sender).expect("it is open");
            self.engine.close(it.receiver).expect("it is open");
        }
    }

    /// A moment has passed.
    pub(crate) fn tick_post(&mut self, post: usize) {
        let it = &mut self.posts[post];
        if it.is_closing {
            return;
        }
        if let Some(ticks) = &mut it.breaks_off {
            match ticks.checked_sub(1) {
                Some(left) => *ticks = left,
                None => {
                    it.is_broken = true;
                    return self.close_post(post);
                }
            }
        }
        if !it.is_receiving && self.random.chance(1, 2) {
            self.engine
                .udp_receive_start(it.receiver)
                .expect("it has stopped");
            it.is_receiving = true;
        }
        self.send_some(post);
        self.close_post_if_over(post);
    }
}
