//! What the tests on a loop's io_uring share: loops that may have one, and whether they do.
#![allow(dead_code, reason = "each test program uses the part that it needs")]

use crate::event_loop::{alone, on_poller};
use crate::fs::*;
use std::ffi::c_int;
use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::{MutexGuard, Once};

pub(crate) const POLLERS: [&str; 3] = ["epoll", "poll", "select"];

/// Lets the tests take turns, since they change the environment. `None` on a machine where
/// nobody may have a ring.
pub(crate) fn turn() -> Option<MutexGuard<'static, ()>> {
    static BEGUN: Once = Once::new();
    let alone = alone();
    // SAFETY: the tests take turns, and nobody else changes the environment.
    BEGUN.call_once(|| unsafe { std::env::set_var("UV_USE_IO_URING", "1") });
    let version = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let is_old = version.split('.').next().unwrap().parse::<u32>().unwrap() < 6;
    match io_uring() {
        Ok(_) if !is_old => Some(alone),
        refused => {
            eprintln!("skipped: no io_uring for us here: {refused:?}");
            None
        }
    }
}

/// A ring of our own, to see whether there can be one.
fn io_uring() -> std::io::Result<OwnedFd> {
    let mut parameters = [0u8; 120];
    // SAFETY: the parameters are large enough and all zeros; the descriptor is new and ours.
    unsafe {
        match libc::syscall(libc::SYS_io_uring_setup, 1, parameters.as_mut_ptr()) {
            -1 => Err(std::io::Error::last_os_error()),
            fd => Ok(OwnedFd::from_raw_fd(fd as c_int)),
        }
    }
}

pub(crate) fn permit(loop_: &mut OwnLoop) {
    // SAFETY: the loop is ours.
    let result = unsafe { uv_loop_configure(loop_.ptr(), UV_LOOP_USE_IO_URING_SQPOLL) };
    assert_eq!(result, 0);
}

/// A loop that may have a ring.
pub(crate) fn ring_loop() -> OwnLoop {
    let mut loop_ = OwnLoop::new();
    permit(&mut loop_);
    loop_
}

/// The same on the named poller.
pub(crate) fn ring_loop_on(poller: &str) -> OwnLoop {
    // SAFETY: the tests take turns, and nobody else changes the environment.
    unsafe { on_poller(poller, ring_loop) }
}

/// Whether the request was last given to a ring: `work_req.done` is null.
pub(crate) fn is_on_ring(request: &uv_fs_t) -> bool {
    request.work_req.done.is_none()
}

pub(crate) fn turn_once(loop_: &mut OwnLoop, mode: c_int) -> c_int {
    // SAFETY: the loop is ours.
    unsafe { uv_run(loop_.ptr(), mode) }
}

/// Memory to read into, which stays where it is.
pub(crate) struct Memory(pub(crate) Box<[u8]>);

impl Memory {
    pub(crate) fn new(len: usize) -> Memory {
        Memory(vec![b'#'; len].into())
    }

    pub(crate) fn buf(&mut self) -> uv_buf_t {
        uv_buf_t {
            base: self.0.as_mut_ptr().cast(),
            len: self.0.len(),
        }
    }
}
