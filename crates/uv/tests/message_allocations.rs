//! A message costs no memory: neither from the C program's allocator nor from Rust's. One test,
//! as a process has one allocator.

#[path = "support/soak.rs"]
mod soak;

use soak::*;
use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::{c_int, c_uint, c_void};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const WARM_UP: u32 = 100;
const ROUNDS: u32 = 2_000;

/// Requests of both allocators, of all threads.
static REQUESTS: AtomicU64 = AtomicU64::new(0);

/// The system's allocator, counted.
struct Counting;

// SAFETY: every call is passed on as it is to the system's allocator, which keeps the contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        REQUESTS.fetch_add(1, Relaxed);
        // SAFETY: the caller keeps `alloc`'s contract, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps `dealloc`'s contract, which is the same.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

unsafe extern "C" fn malloc(size: usize) -> *mut c_void {
    REQUESTS.fetch_add(1, Relaxed);
    // SAFETY: any size will do.
    unsafe { libc::malloc(size) }
}

unsafe extern "C" fn realloc(at: *mut c_void, size: usize) -> *mut c_void {
    REQUESTS.fetch_add(1, Relaxed);
    // SAFETY: the memory is from here.
    unsafe { libc::realloc(at, size) }
}

unsafe extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    REQUESTS.fetch_add(1, Relaxed);
    // SAFETY: any size will do.
    unsafe { libc::calloc(count, size) }
}

unsafe extern "C" fn free(at: *mut c_void) {
    // SAFETY: the memory is from here.
    unsafe { libc::free(at) }
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Kind {
    Tcp,
    Pipe,
    Udp,
}

/// Two ends; what the first says, the second says back.
struct Echo {
    kind: Kind,
    ends: [Room; 2],
    server: Room,
    connect: Room,
    /// The request of each end, and whether it is in use.
    requests: [(Room, bool); 2],
    addresses: [libc::sockaddr_in; 2],
    room: [u8; 64],
    rounds: u32,
    before: u64,
}

const TEXT: &[u8] = b"what nobody saw before";

unsafe fn echo_of<'a>(handle: Handle) -> &'a mut Echo {
    // SAFETY: every handle and request of this test has its owner in its first word.
    unsafe { &mut *(*handle).data.cast::<Echo>() }
}

impl Echo {
    fn side(&self, handle: Handle) -> usize {
        usize::from(std::ptr::eq(handle, &self.ends[1]))
    }

    fn say(&mut self, end: usize) {
        let owner = (&raw mut *self).cast();
        let (request, is_used) = &mut self.requests[end];
        assert!(!std::mem::replace(is_used, true), "reported before");
        request.data = owner;
        let buf = uv_buf_t {
            base: TEXT.as_ptr().cast_mut().cast(),
            len: TEXT.len(),
        };
        let to = &raw const self.addresses[1 - end];
        let handle = &raw mut self.ends[end];
        // SAFETY: handle and request live until the loop has run.
        let begun = unsafe {
            match self.kind {
                Kind::Udp => uv_udp_send(request, handle, &buf, 1, to, Some(on_said)),
                _ => uv_write(request, handle, &buf, 1, Some(on_said)),
            }
        };
        assert_eq!(begun, 0);
    }

    /// An end has heard something.
    fn hear(&mut self, end: usize, count: isize) {
        assert_eq!(count, TEXT.len() as isize);
        assert_eq!(&self.room[..TEXT.len()], TEXT);
        if end == 1 {
            return self.say(1);
        }
        self.rounds += 1;
        if self.rounds == WARM_UP {
            self.before = REQUESTS.load(Relaxed);
        }
        if self.rounds < WARM_UP + ROUNDS {
            return self.say(0);
        }
        let made = REQUESTS.load(Relaxed) - self.before;
        assert_eq!(made, 0, "{:?}: {ROUNDS} messages have allocated", self.kind);
        for end in &mut self.ends {
            // SAFETY: it is open.
            unsafe { uv_close(end, None) };
        }
    }
}

unsafe extern "C" fn on_said(request: Handle, status: c_int) {
    assert_eq!(status, 0);
    // SAFETY: the request is one of the test's.
    let echo = unsafe { echo_of(request) };
    let end = usize::from(std::ptr::eq(request, &echo.requests[1].0));
    echo.requests[end].1 = false;
}

unsafe extern "C" fn on_alloc(handle: Handle, _suggested: usize, buf: *mut uv_buf_t) {
    // SAFETY: the handle is one of the test's, and `buf` is libuv's to be filled.
    unsafe {
        let room = &mut echo_of(handle).room;
        *buf = uv_buf_t {
            base: room.as_mut_ptr().cast(),
            len: room.len(),
        };
    }
}

unsafe extern "C" fn on_read(handle: Handle, count: isize, _buf: *const uv_buf_t) {
    // SAFETY: the handle is one of the test's.
    let echo = unsafe { echo_of(handle) };
    if count != 0 && echo.rounds < WARM_UP + ROUNDS {
        echo.hear(echo.side(handle), count);
    }
}

unsafe extern "C" fn on_datagram(
    handle: Handle,
    count: isize,
    buf: *const uv_buf_t,
    from: *const libc::sockaddr,
    _flags: c_uint,
) {
    if !from.is_null() {
        // SAFETY: as libuv called us.
        unsafe { on_read(handle, count, buf) };
    }
}

unsafe extern "C" fn on_connection(server: Handle, status: c_int) {
    assert_eq!(status, 0);
    // SAFETY: the handles are the test's.
    unsafe {
        let end = &raw mut echo_of(server).ends[1];
        assert_eq!(uv_accept(server, end), 0);
        assert_eq!(uv_read_start(end, Some(on_alloc), Some(on_read)), 0);
        uv_close(server, None);
    }
}

unsafe extern "C" fn on_connect(request: Handle, status: c_int) {
    assert_eq!(status, 0);
    // SAFETY: as above.
    unsafe {
        let echo = echo_of(request);
        assert_eq!(
            uv_read_start(&mut echo.ends[0], Some(on_alloc), Some(on_read)),
            0
        );
        echo.say(0);
    }
}

impl Echo {
    fn new(kind: Kind) -> Box<Echo> {
        let mut echo = Box::new(Echo {
            kind,
            ends: [Room::default(), Room::default()],
            server: Room::default(),
            connect: Room::default(),
            requests: [(Room::default(), false), (Room::default(), false)],
            addresses: [loopback(), loopback()],
            room: [0; 64],
            rounds: 0,
            before: 0,
        });
        let owner = (&raw mut *echo).cast();
        echo.ends[0].data = owner;
        echo.ends[1].data = owner;
        echo.server.data = owner;
        echo.connect.data = owner;
        echo
    }

    /// # Safety
    ///
    /// The loop is open, and this outlives its run.
    unsafe fn begin(&mut self, loop_: *mut uv_loop_t, path: &std::ffi::CStr) {
        let (server, connect) = (&raw mut self.server, &raw mut self.connect);
        let ends = self.ends.each_mut().map(|end| &raw mut *end);
        let addresses = self.addresses.each_mut().map(|address| &raw mut *address);
        let mut len = size_of::<libc::sockaddr_in>() as c_int;
        // SAFETY: the handles stay where they are, as the caller sees to.
        unsafe {
            match self.kind {
                Kind::Udp => {
                    for (end, address) in ends.into_iter().zip(addresses) {
                        assert_eq!(uv_udp_init(loop_, end), 0);
                        assert_eq!(uv_udp_bind(end, address, 0), 0);
                        assert_eq!(uv_udp_getsockname(end, address, &mut len), 0);
                        assert_eq!(uv_udp_recv_start(end, Some(on_alloc), Some(on_datagram)), 0);
                    }
                    self.say(0);
                }
                Kind::Tcp => {
                    for handle in [server, ends[0], ends[1]] {
                        assert_eq!(uv_tcp_init(loop_, handle), 0);
                    }
                    assert_eq!(uv_tcp_bind(server, addresses[0], 0), 0);
                    assert_eq!(uv_listen(server, 1, Some(on_connection)), 0);
                    assert_eq!(uv_tcp_getsockname(server, addresses[0], &mut len), 0);
                    assert_eq!(
                        uv_tcp_connect(connect, ends[0], addresses[0], Some(on_connect)),
                        0
                    );
                }
                Kind::Pipe => {
                    for handle in [server, ends[0], ends[1]] {
                        assert_eq!(uv_pipe_init(loop_, handle, 0), 0);
                    }
                    assert_eq!(uv_pipe_bind(server, path.as_ptr()), 0);
                    assert_eq!(uv_listen(server, 1, Some(on_connection)), 0);
                    uv_pipe_connect(connect, ends[0], path.as_ptr(), Some(on_connect));
                }
            }
        }
    }
}

#[test]
fn messages_do_not_allocate() {
    // No reader that happens to be there has the loop begin to record in the midst of a count.
    // SAFETY: this process has no other threads yet that could look at the environment.
    unsafe { std::env::set_var("BLACKLIGHT_RECORD", "never") };
    // SAFETY: nothing has been allocated through libuv yet.
    let replaced =
        unsafe { uv_replace_allocator(Some(malloc), Some(realloc), Some(calloc), Some(free)) };
    assert_eq!(replaced, 0);
    let path = std::env::temp_dir().join(format!("messages-{}", std::process::id()));
    let path = path.into_os_string().into_encoded_bytes();
    let path = std::ffi::CString::new(path).expect("a path without NUL");
    for poller in ["select", "poll", "epoll"] {
        for kind in [Kind::Tcp, Kind::Pipe, Kind::Udp] {
            let mut echo = Echo::new(kind);
            // SAFETY: the loop runs before this goes.
            run_on(poller, |loop_| unsafe { echo.begin(loop_, &path) });
            assert_eq!(echo.rounds, WARM_UP + ROUNDS, "{kind:?} on {poller}");
        }
    }
    assert_ne!(REQUESTS.load(Relaxed), 0, "somebody is counting");
}
