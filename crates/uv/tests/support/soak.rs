//! What the soaks share: libuv's functions as C declares them, chance, and a loop on each poller.
#![allow(dead_code, reason = "each soak uses a part of it")]

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr::null_mut;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use uv as _;

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Buf {
    pub(crate) base: *mut c_char,
    pub(crate) len: usize,
}

/// A handle or request of any type: the user's word, and room enough.
#[repr(C, align(16))]
pub(crate) struct Object {
    pub(crate) data: *mut c_void,
    rest: [u64; 63],
}

impl Object {
    pub(crate) fn new() -> Object {
        Object {
            data: null_mut(),
            rest: [0; 63],
        }
    }
}

#[repr(C, align(16))]
pub(crate) struct Loop([u8; 848]);

pub(crate) type Handle = *mut Object;
pub(crate) type Cb = unsafe extern "C" fn(Handle);
pub(crate) type StatusCb = unsafe extern "C" fn(Handle, c_int);
pub(crate) type AllocCb = unsafe extern "C" fn(Handle, usize, *mut Buf);
pub(crate) type ReadCb = unsafe extern "C" fn(Handle, isize, *const Buf);
pub(crate) type RecvCb =
    unsafe extern "C" fn(Handle, isize, *const Buf, *const libc::sockaddr, c_uint);

unsafe extern "C" {
    pub(crate) fn uv_loop_init(l: *mut Loop) -> c_int;
    pub(crate) fn uv_loop_close(l: *mut Loop) -> c_int;
    pub(crate) fn uv_run(l: *mut Loop, mode: c_int) -> c_int;
    pub(crate) fn uv_close(handle: Handle, cb: Option<Cb>);
    pub(crate) fn uv_timer_init(l: *mut Loop, timer: Handle) -> c_int;
    pub(crate) fn uv_timer_start(timer: Handle, cb: Cb, timeout: u64, repeat: u64) -> c_int;
    pub(crate) fn uv_tcp_init(l: *mut Loop, tcp: Handle) -> c_int;
    pub(crate) fn uv_tcp_bind(tcp: Handle, addr: *const libc::sockaddr, flags: c_uint) -> c_int;
    pub(crate) fn uv_tcp_getsockname(
        tcp: Handle,
        addr: *mut libc::sockaddr,
        len: *mut c_int,
    ) -> c_int;
    pub(crate) fn uv_tcp_connect(
        req: Handle,
        tcp: Handle,
        addr: *const libc::sockaddr,
        cb: StatusCb,
    ) -> c_int;
    pub(crate) fn uv_tcp_close_reset(tcp: Handle, cb: Cb) -> c_int;
    pub(crate) fn uv_pipe_init(l: *mut Loop, pipe: Handle, ipc: c_int) -> c_int;
    pub(crate) fn uv_pipe_bind(pipe: Handle, name: *const c_char) -> c_int;
    pub(crate) fn uv_pipe_connect(req: Handle, pipe: Handle, name: *const c_char, cb: StatusCb);
    pub(crate) fn uv_listen(stream: Handle, backlog: c_int, cb: StatusCb) -> c_int;
    pub(crate) fn uv_accept(server: Handle, client: Handle) -> c_int;
    pub(crate) fn uv_read_start(stream: Handle, alloc: AllocCb, read: ReadCb) -> c_int;
    pub(crate) fn uv_read_stop(stream: Handle) -> c_int;
    pub(crate) fn uv_write(
        req: Handle,
        stream: Handle,
        bufs: *const Buf,
        n: c_uint,
        cb: StatusCb,
    ) -> c_int;
    pub(crate) fn uv_try_write(stream: Handle, bufs: *const Buf, n: c_uint) -> c_int;
    pub(crate) fn uv_stream_get_write_queue_size(stream: Handle) -> usize;
    pub(crate) fn uv_shutdown(req: Handle, stream: Handle, cb: StatusCb) -> c_int;
    pub(crate) fn uv_udp_init(l: *mut Loop, udp: Handle) -> c_int;
    pub(crate) fn uv_udp_bind(udp: Handle, addr: *const libc::sockaddr, flags: c_uint) -> c_int;
    pub(crate) fn uv_udp_getsockname(
        udp: Handle,
        addr: *mut libc::sockaddr,
        len: *mut c_int,
    ) -> c_int;
    pub(crate) fn uv_udp_recv_start(udp: Handle, alloc: AllocCb, recv: RecvCb) -> c_int;
    pub(crate) fn uv_udp_send(
        req: Handle,
        udp: Handle,
        bufs: *const Buf,
        n: c_uint,
        addr: *const libc::sockaddr,
        cb: StatusCb,
    ) -> c_int;
}

/// xorshift64*, which is random enough to be unkind.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    pub(crate) fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    /// A size up to `max`, of any order of magnitude.
    pub(crate) fn size(&mut self, max: usize) -> usize {
        let magnitude = self.below(max.ilog2() as usize + 1);
        (1 + self.below(2 << magnitude)).min(max)
    }
}

pub(crate) fn loopback() -> libc::sockaddr_in {
    // SAFETY: all zeros are an address.
    let mut address: libc::sockaddr_in = unsafe { std::mem::zeroed() };
    address.sin_family = libc::AF_INET as libc::sa_family_t;
    address.sin_addr.s_addr = u32::from_ne_bytes([127, 0, 0, 1]);
    address
}

/// The seed to use; printed, so that the test's output has it if the test fails.
pub(crate) fn seed(what: &str, poller: &str) -> u64 {
    let given = std::env::var("BLACKLIGHT_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("it is after 1970");
    let seed = given.unwrap_or(now.as_nanos() as u64);
    println!("{what} on {poller}: BLACKLIGHT_SEED={seed}");
    // A seed that is a small number must be as random as any.
    seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Makes a loop on a poller, runs what `begin` puts into it, and closes it.
pub(crate) fn run_on(poller: &str, begin: impl FnOnce(*mut Loop)) {
    static ENVIRONMENT: Mutex<()> = Mutex::new(());
    let mut memory = Box::new(Loop([0; 848]));
    let loop_: *mut Loop = &raw mut *memory;
    {
        let _guard = ENVIRONMENT.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: only Rust code looks at the environment here, and that takes turns.
        unsafe {
            std::env::set_var("BLACKLIGHT_POLLER", poller);
            assert_eq!(uv_loop_init(loop_), 0);
        }
    }
    begin(loop_);
    // SAFETY: the loop is ours.
    unsafe {
        assert_eq!(uv_run(loop_, 0), 0);
        assert_eq!(uv_loop_close(loop_), 0, "something is left in the loop");
    }
}
