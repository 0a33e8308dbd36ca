//! A randomized soak through the C interface, on real sockets.
//!
//! Many TCP and Unix connections live in one loop, both ends of each. Every end writes messages
//! of random sizes, reads into rooms of random sizes, stops and starts again, and ends by a
//! half-close, by closing in the middle of a write, or by a reset. What an end sends is a
//! pattern that depends on the position, so a byte that is lost, doubled or out of its place
//! shows. Where both ends are polite, all of it must arrive; where one breaks off, what has
//! arrived must be the beginning of what was sent.
//!
//! `BLACKLIGHT_SEED` repeats a run, as far as the kernel's timing allows.

#[path = "support/soak.rs"]
mod soak;

use soak::*;
use std::collections::VecDeque;
use std::ffi::{CString, c_int, c_uint};
use std::ptr::null_mut;

const PAIRS: usize = 16;
const MESSAGES: u32 = 5;
const MAX_MESSAGE: usize = 8 << 20;
/// The pattern repeats after a prime number of bytes, which no buffer size divides.
const PERIOD: usize = 65_521;
const MANY_BUFFERS: usize = 2500;

const UV_EOF: isize = -4095;
const ECANCELED: c_int = -libc::ECANCELED;

/// How an end goes.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Finale {
    /// Shuts down when it has sent all, and closes when it has received all.
    Polite,
    /// Closes after so many ticks, whatever is going on.
    Close(u32),
    /// The same with a reset.
    Reset(u32),
}

/// One end of a connection.
struct End {
    stream: Room,
    shutdown: Room,
    soak: *mut Soak,
    name: String,
    peer: *mut End,
    finale: Finale,
    messages_left: u32,
    /// Where in the pattern its stream begins.
    offset: usize,
    sent: usize,
    /// What the kernel has taken for certain.
    acknowledged: usize,
    received: usize,
    requests: VecDeque<(*mut Room, usize)>,
    room: Vec<u8>,
    is_open: bool,
    is_reading: bool,
    is_shut: bool,
    has_shut_down: bool,
    has_ended: bool,
    has_failed: bool,
    is_closing: bool,
    is_closed: bool,
}

/// All of one run.
struct Soak {
    loop_: *mut uv_loop_t,
    random: Random,
    pattern: Vec<u8>,
    /// Each stays where it is while the list grows: libuv knows its address.
    #[allow(clippy::vec_box, reason = "the ends must not move")]
    ends: Vec<Box<End>>,
    /// The ends that are still to be accepted by each server, in the order of connecting.
    to_accept: [VecDeque<*mut End>; 2],
    servers: [Room; 2],
    ticker: Room,
    closed: usize,
}

unsafe fn end_of<'a>(handle: Handle) -> &'a mut End {
    // SAFETY: every stream and request of the soak has its end in its first word, and the
    // ends live as long as the soak.
    unsafe { &mut *(*handle).data.cast::<End>() }
}

impl End {
    fn soak<'a>(&self) -> &'a mut Soak {
        // SAFETY: the soak outlives the loop's run, and has one thread. Nothing that is
        // borrowed from it is kept over a call of libuv's that calls back.
        unsafe { &mut *self.soak }
    }

    /// Whether one of the two breaks off, so that errors are to be expected.
    fn is_rude(&self) -> bool {
        // SAFETY: both ends live as long as the soak.
        self.finale != Finale::Polite || unsafe { (*self.peer).finale } != Finale::Polite
    }

    fn stream(&mut self) -> Handle {
        &raw mut self.stream
    }

    /// The connection stands: everything begins.
    fn open(&mut self) {
        self.is_open = true;
        self.start_reading();
        self.write_some();
    }

    fn start_reading(&mut self) {
        if self.is_closing || self.is_reading || self.has_ended {
            return;
        }
        // SAFETY: the stream is open.
        let started = unsafe { uv_read_start(self.stream(), Some(on_alloc), Some(on_read)) };
        if started == 0 {
            self.is_reading = true;
        } else {
            assert!(
                self.is_rude(),
                "{}: reading cannot start: {started}",
                self.name
            );
        }
    }

    fn stop_reading(&mut self) {
        // SAFETY: the stream is open.
        assert_eq!(unsafe { uv_read_stop(self.stream()) }, 0);
        self.is_reading = false;
    }

    /// Writes some of the messages that are left, and shuts down after the last.
    fn write_some(&mut self) {
        if !self.is_open || self.is_closing || self.has_failed {
            return;
        }
        let burst = 1 + self.soak().random.below(3) as u32;
        for _ in 0..burst.min(self.messages_left) {
            self.messages_left -= 1;
            self.write_one();
        }
        if self.messages_left == 0 && self.finale == Finale::Polite && !self.is_shut {
            self.is_shut = true;
            self.shutdown.data = (&raw mut *self).cast();
            let request = &raw mut self.shutdown;
            // SAFETY: the stream is open, and the request lives as long as it.
            let begun = unsafe { uv_shutdown(request, self.stream(), Some(on_shutdown)) };
            if begun != 0 {
                assert!(self.is_rude(), "{}: cannot shut down: {begun}", self.name);
                self.has_shut_down = true;
            }
        }
    }

    /// The next `len` bytes of what this end sends, as one buffer or as many.
    fn buffers(&mut self, len: usize) -> Vec<uv_buf_t> {
        let soak = self.soak();
        let bytes = &soak.pattern[(self.offset + self.sent) % PERIOD..][..len];
        let buf = |bytes: &[u8]| uv_buf_t {
            base: bytes.as_ptr().cast_mut().cast(),
            len: bytes.len(),
        };
        match soak.random.below(4) {
            0 => bytes.chunks(len.div_ceil(MANY_BUFFERS)).map(buf).collect(),
            1 => {
                let (head, tail) = bytes.split_at(soak.random.below(len + 1));
                vec![buf(head), buf(&[]), buf(tail)]
            }
            _ => vec![buf(bytes)],
        }
    }

    fn write_one(&mut self) {
        let len = self.soak().random.size(MAX_MESSAGE);
        let bufs = self.buffers(len);
        let count = bufs.len() as c_uint;
        if self.requests.is_empty() && self.soak().random.one_in(4) {
            // SAFETY: the stream is open and the buffers are readable.
            let written = unsafe { uv_try_write(self.stream(), bufs.as_ptr(), count) };
            if written > 0 {
                self.sent += written as usize;
                self.acknowledged += written as usize;
            } else {
                let is_full = written == -libc::EAGAIN;
                assert!(
                    is_full || self.is_rude(),
                    "{}: try_write: {written}",
                    self.name
                );
            }
            return;
        }
        let mut request = Box::new(Room::default());
        request.data = (&raw mut *self).cast();
        let request = Box::into_raw(request);
        // SAFETY: the stream is open; the request lives until its callback, the pattern longer.
        let begun =
            unsafe { uv_write(request, self.stream(), bufs.as_ptr(), count, Some(on_write)) };
        if begun == 0 {
            self.sent += len;
            self.requests.push_back((request, len));
        } else {
            // SAFETY: nobody else has it.
            drop(unsafe { Box::from_raw(request) });
            assert!(self.is_rude(), "{}: cannot write: {begun}", self.name);
            self.has_failed = true;
        }
    }

    fn close(&mut self) {
        if self.is_closing {
            return;
        }
        self.is_closing = true;
        let stream = self.stream();
        if matches!(self.finale, Finale::Reset(_)) && self.is_open && !self.is_shut {
            // SAFETY: the stream is an open TCP handle.
            if unsafe { uv_tcp_close_reset(stream, Some(on_close)) } == 0 {
                return;
            }
        }
        // SAFETY: the stream is not closing yet.
        unsafe { uv_close(stream, Some(on_close)) };
    }

    /// Closes if everything is done.
    fn close_if_over(&mut self) {
        let is_done = self.has_ended && self.has_shut_down && self.requests.is_empty();
        let is_broken = self.is_rude() && (self.has_ended || self.has_failed);
        if is_done || is_broken {
            self.close();
        }
    }

    /// A moment has passed.
    fn tick(&mut self) {
        if let Finale::Close(ticks) | Finale::Reset(ticks) = &mut self.finale {
            match ticks.checked_sub(1) {
                Some(left) => *ticks = left,
                None => self.close(),
            }
        }
        if self.is_open && !self.is_reading && self.soak().random.one_in(2) {
            self.start_reading();
        }
        if self.requests.is_empty() {
            self.write_some();
        }
    }

    /// What must hold when an end is closed.
    fn check_at_close(&self) {
        assert!(
            self.requests.is_empty(),
            "{}: writes were not reported",
            self.name
        );
        // SAFETY: both ends live as long as the soak.
        let peer = unsafe { &*self.peer };
        assert!(
            self.received <= peer.sent,
            "{}: more came than was sent",
            self.name
        );
        if !self.is_rude() {
            assert_eq!(self.received, peer.sent, "{}: not all has come", self.name);
            assert_eq!(
                self.acknowledged, self.sent,
                "{}: not all was written",
                self.name
            );
        }
    }
}

unsafe extern "C" fn on_alloc(stream: Handle, _suggested: usize, buf: *mut uv_buf_t) {
    // SAFETY: the stream is one of the soak's, and `buf` is libuv's to be filled.
    unsafe {
        let end = end_of(stream);
        let random = &mut end.soak().random;
        let len = match random.one_in(8) {
            true => random.size(16),
            false => end.room.len() - random.below(end.room.len() / 2),
        };
        *buf = uv_buf_t {
            base: end.room.as_mut_ptr().cast(),
            len,
        };
    }
}

unsafe extern "C" fn on_read(stream: Handle, count: isize, buf: *const uv_buf_t) {
    // SAFETY: as above.
    let (end, buf) = unsafe { (end_of(stream), *buf) };
    assert!(
        end.is_reading && !end.is_closing,
        "{}: reads unasked",
        end.name
    );
    if count < 0 {
        let is_fine = count == UV_EOF || end.is_rude();
        assert!(is_fine, "{}: reading fails: {count}", end.name);
        end.has_ended = true;
        end.is_reading = false;
        end.has_failed |= count != UV_EOF;
        return end.close_if_over();
    }
    let count = count as usize;
    assert!(
        count <= buf.len,
        "{}: more came than there is room",
        end.name
    );
    // SAFETY: the peer lives as long as the soak.
    let start = (unsafe { (*end.peer).offset } + end.received) % PERIOD;
    let expected = &end.soak().pattern[start..][..count];
    let is_same = end.room[..count] == *expected;
    assert!(is_same, "{}: wrong bytes after {}", end.name, end.received);
    end.received += count;
    if end.soak().random.one_in(24) {
        end.stop_reading();
    }
}

unsafe extern "C" fn on_write(request: Handle, status: c_int) {
    // SAFETY: the request is one of the soak's, and done with.
    let end = unsafe { end_of(request) };
    let (first, len) = end.requests.pop_front().expect("a write is reported once");
    assert_eq!(
        first, request,
        "{}: writes are reported out of order",
        end.name
    );
    // SAFETY: it was boxed by us.
    drop(unsafe { Box::from_raw(request) });
    assert!(
        !end.is_closed,
        "{}: a write is reported after the close",
        end.name
    );
    match status {
        0 => end.acknowledged += len,
        ECANCELED => assert!(end.is_closing, "{}: cancelled unasked", end.name),
        status => {
            assert!(end.is_rude(), "{}: writing fails: {status}", end.name);
            end.has_failed = true;
        }
    }
    if end.is_closing {
        return;
    }
    if end.requests.is_empty() && !end.has_failed {
        // SAFETY: the stream is open.
        let queued = unsafe { uv_stream_get_write_queue_size(end.stream()) };
        assert_eq!(queued, 0, "{}: bytes of no write are queued", end.name);
    }
    end.write_some();
    end.close_if_over();
}

unsafe extern "C" fn on_shutdown(request: Handle, status: c_int) {
    // SAFETY: the request is one of the soak's.
    let end = unsafe { end_of(request) };
    assert!(
        status == 0 || end.is_rude(),
        "{}: shutdown fails: {status}",
        end.name
    );
    assert!(
        !end.has_shut_down && !end.is_closed,
        "{}: shut down twice",
        end.name
    );
    // A write that a write's callback began is reported after the shutdown, as with libuv
    // itself, if the kernel took it at once; but never one whose bytes are still queued.
    // SAFETY: the stream is valid until it is closed.
    let queued = unsafe { uv_stream_get_write_queue_size(end.stream()) };
    assert!(
        queued == 0 || end.is_rude(),
        "{}: shut down before the last write",
        end.name
    );
    end.has_shut_down = true;
    end.close_if_over();
}

unsafe extern "C" fn on_close(stream: Handle) {
    // SAFETY: the stream is one of the soak's.
    let end = unsafe { end_of(stream) };
    assert!(!end.is_closed, "{}: closed twice", end.name);
    end.is_closed = true;
    end.check_at_close();
    let soak = end.soak();
    soak.closed += 1;
    if soak.closed == soak.ends.len() {
        // SAFETY: these are open until now.
        unsafe {
            uv_close(&raw mut soak.ticker, None);
            uv_close(&raw mut soak.servers[0], None);
            uv_close(&raw mut soak.servers[1], None);
        }
    }
}

unsafe extern "C" fn on_connect(request: Handle, status: c_int) {
    // SAFETY: the request is one of the soak's, and done with.
    let end = unsafe { end_of(request) };
    // SAFETY: it was boxed by us.
    drop(unsafe { Box::from_raw(request) });
    if end.is_closing {
        return;
    }
    assert!(
        status == 0 || end.is_rude(),
        "{}: cannot connect: {status}",
        end.name
    );
    match status {
        0 => end.open(),
        _ => end.close(),
    }
}

unsafe extern "C" fn on_connection(server: Handle, status: c_int) {
    assert_eq!(status, 0, "a connection fails");
    // SAFETY: a server has the soak in its first word.
    let soak = unsafe { &mut *(*server).data.cast::<Soak>() };
    let which = usize::from(server == &raw mut soak.servers[1]);
    // Connections of one thread arrive in the order in which they were begun.
    let end = soak.to_accept[which]
        .pop_front()
        .expect("nobody else connects");
    // SAFETY: the end lives as long as the soak, and has a stream that is new.
    unsafe {
        assert_eq!(uv_accept(server, (*end).stream()), 0);
        match (*end).is_closing {
            true => {}
            false => (*end).open(),
        }
    }
}

unsafe extern "C" fn on_tick(ticker: Handle) {
    // SAFETY: the ticker has the soak in its first word. The list of ends does not change.
    unsafe {
        let soak = (*ticker).data.cast::<Soak>();
        for at in 0..(*soak).ends.len() {
            let end: *mut End = &raw mut *(&mut (*soak).ends)[at];
            if (*end).is_open && !(*end).is_closing {
                (*end).tick();
            }
        }
    }
}

impl Soak {
    fn new(loop_: *mut uv_loop_t, seed: u64) -> Box<Soak> {
        let mut random = Random(seed | 1);
        let period: Vec<u8> = (0..PERIOD).map(|_| random.next() as u8).collect();
        let pattern = period
            .iter()
            .copied()
            .cycle()
            .take(MAX_MESSAGE + PERIOD)
            .collect();
        Box::new(Soak {
            loop_,
            random,
            pattern,
            ends: Vec::new(),
            to_accept: [VecDeque::new(), VecDeque::new()],
            servers: [Room::default(), Room::default()],
            ticker: Room::default(),
            closed: 0,
        })
    }

    fn add_end(&mut self, name: String, is_tcp: bool) -> *mut End {
        let ticks = self.random.below(60) as u32;
        let finale = match self.random.below(8) {
            0 => Finale::Close(ticks),
            1 if is_tcp => Finale::Reset(ticks),
            _ => Finale::Polite,
        };
        let mut end = Box::new(End {
            stream: Room::default(),
            shutdown: Room::default(),
            soak: self,
            name: format!("{name} ({finale:?})"),
            peer: null_mut(),
            finale,
            messages_left: MESSAGES,
            offset: self.random.below(PERIOD),
            sent: 0,
            acknowledged: 0,
            received: 0,
            requests: VecDeque::new(),
            room: vec![0; 1 << 16],
            is_open: false,
            is_reading: false,
            is_shut: false,
            has_shut_down: false,
            has_ended: false,
            has_failed: false,
            is_closing: false,
            is_closed: false,
        });
        end.stream.data = (&raw mut *end).cast();
        let stream = end.stream();
        // SAFETY: the stream's memory stays where it is.
        let made = unsafe {
            match is_tcp {
                true => uv_tcp_init(self.loop_, stream),
                false => uv_pipe_init(self.loop_, stream, 0),
            }
        };
        assert_eq!(made, 0);
        self.ends.push(end);
        &raw mut **self.ends.last_mut().expect("just pushed")
    }

    /// Makes the servers and begins all connections.
    fn begin(&mut self, path: &str) {
        let path = CString::new(path).expect("a path without NUL");
        let [tcp, pipe] = [&raw mut self.servers[0], &raw mut self.servers[1]];
        let ticker = &raw mut self.ticker;
        let this: *mut Soak = self;
        let mut address = loopback();
        let mut len = size_of::<libc::sockaddr_in>() as c_int;
        let name = (&raw mut address).cast::<libc::sockaddr>();
        // SAFETY: all handles stay where they are until the loop has run.
        unsafe {
            assert_eq!(uv_tcp_init(self.loop_, tcp), 0);
            assert_eq!(uv_tcp_bind(tcp, name, 0), 0);
            assert_eq!(uv_pipe_init(self.loop_, pipe, 0), 0);
            assert_eq!(uv_pipe_bind(pipe, path.as_ptr()), 0);
            for server in [tcp, pipe] {
                (*server).data = this.cast();
                assert_eq!(uv_listen(server, 128, Some(on_connection)), 0);
            }
            assert_eq!(uv_tcp_getsockname(tcp, name, &mut len), 0);
            (*ticker).data = this.cast();
            assert_eq!(uv_timer_init(self.loop_, ticker), 0);
            assert_eq!(uv_timer_start(ticker, Some(on_tick), 1, 1), 0);
        }
        for pair in 0..PAIRS {
            let is_tcp = pair % 2 == 0;
            let kind = if is_tcp { "tcp" } else { "pipe" };
            let client = self.add_end(format!("{kind} {pair} client"), is_tcp);
            let server = self.add_end(format!("{kind} {pair} server"), is_tcp);
            self.to_accept[pair % 2].push_back(server);
            let mut request = Box::new(Room::default());
            request.data = client.cast();
            let request = Box::into_raw(request);
            // SAFETY: the ends are boxed, and the request lives until its callback.
            unsafe {
                (*client).peer = server;
                (*server).peer = client;
                let stream = (*client).stream();
                match is_tcp {
                    true => assert_eq!(uv_tcp_connect(request, stream, name, Some(on_connect)), 0),
                    false => uv_pipe_connect(request, stream, path.as_ptr(), Some(on_connect)),
                }
            }
        }
    }
}

fn soak_streams(poller: &str) {
    let seed = seed("streams", poller);
    let path = std::env::temp_dir().join(format!("soak-{}-{poller}", std::process::id()));
    let path = path.to_str().expect("a path that is text").to_owned();
    let mut soak = None;
    run_on(poller, |loop_| {
        soak.insert(Soak::new(loop_, seed)).begin(&path)
    });
    let soak = soak.expect("it has run");
    assert_eq!(soak.closed, 2 * PAIRS, "ends are left open");
    let bytes: usize = soak.ends.iter().map(|end| end.received).sum();
    println!("{bytes} bytes verified");
    assert!(bytes > 0, "nothing has arrived");
    assert!(
        !std::path::Path::new(&path).exists(),
        "the socket's file is left"
    );
}

#[test]
fn streams_on_select() {
    soak_streams("select");
}

#[test]
fn streams_on_poll() {
    soak_streams("poll");
}

#[test]
fn streams_on_epoll() {
    soak_streams("epoll");
}
