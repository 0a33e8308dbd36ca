//! Poll handles: the readiness of a descriptor that the program owns.

use crate::abi::{UV_POLL, uv_loop_t, uv_poll_cb, uv_poll_t};
use crate::engine;
use blacklight_engine::{Errno, Readiness};
use std::ffi::c_int;

/// The bits of `enum uv_poll_event`.
const EVENTS: u32 = 0b1111;

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_poll_init(loop_: *mut uv_loop_t, poll: *mut uv_poll_t, fd: c_int) -> c_int {
    // SAFETY: the caller passes a loop and memory for a handle.
    unsafe {
        let token = engine::token(poll);
        match engine::with(loop_, |engine| engine.poll_init(token, fd)) {
            Ok(key) => engine::init(poll.cast(), loop_, UV_POLL, key),
            Err(error) => return error.code(),
        }
        (*poll).poll_cb = None;
        (*poll).io_watcher.fd = fd;
    }
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_poll_init_socket(
    loop_: *mut uv_loop_t,
    poll: *mut uv_poll_t,
    socket: c_int,
) -> c_int {
    // SAFETY: the caller upholds the same contract.
    unsafe { uv_poll_init(loop_, poll, socket) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_poll_start(poll: *mut uv_poll_t, events: c_int, cb: uv_poll_cb) -> c_int {
    // libuv does not look at other bits.
    let Some(wanted) = Readiness::from_bits(events as u32 & EVENTS) else {
        return Errno::EINVAL.code();
    };
    // SAFETY: the caller passes a poll handle.
    unsafe {
        let started = engine::with_known(poll.cast(), Err(Errno::EINVAL), |engine, key| {
            engine.poll_start(key, wanted)
        });
        if started.is_ok() {
            (*poll).poll_cb = cb;
        }
        engine::code(started)
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_poll_stop(poll: *mut uv_poll_t) -> c_int {
    // SAFETY: the caller passes a poll handle. Stopping one that is closing is no error.
    unsafe {
        let _ = engine::with_known(poll.cast(), Ok(()), |engine, key| engine.poll_stop(key));
    }
    0
}

/// Calls the callback with the readiness of a descriptor, or an error.
///
/// # Safety
///
/// `poll` is open.
#[inline(always)]
pub(crate) unsafe fn ready(poll: *mut uv_poll_t, result: Result<Readiness, Errno>) {
    // SAFETY: the caller guarantees the handle, which the callback may close.
    unsafe {
        let (status, events) = match result {
            Ok(events) => (0, events.bits() as c_int),
            Err(error) => (error.code(), 0),
        };
        if let Some(cb) = (*poll).poll_cb {
            cb(poll, status, events);
        }
    }
}
