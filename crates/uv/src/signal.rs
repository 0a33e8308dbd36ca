//! Signal handles. `signum` is the signal while a handle is started, else zero.

use crate::abi::{UV_SIGNAL, uv_loop_t, uv_signal_cb, uv_signal_t};
use crate::engine;
use blacklight_engine::Errno;
use std::ffi::c_int;

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_signal_init(loop_: *mut uv_loop_t, signal: *mut uv_signal_t) -> c_int {
    // SAFETY: the caller passes a loop and memory for a handle.
    unsafe {
        let token = engine::token(signal);
        match engine::with(loop_, |engine| engine.signal_init(token)) {
            Ok(key) => engine::init(signal.cast(), loop_, UV_SIGNAL, key),
            Err(error) => return error.code(),
        }
        (*signal).signal_cb = None;
        (*signal).signum = 0;
    }
    0
}

/// # Safety
///
/// The caller passes a signal handle.
unsafe fn start(
    signal: *mut uv_signal_t,
    cb: uv_signal_cb,
    signum: c_int,
    one_shot: bool,
) -> c_int {
    // SAFETY: the caller upholds the contract.
    unsafe {
        let (started, active) =
            engine::with_known(signal.cast(), (Err(Errno::EINVAL), false), |engine, key| {
                (
                    engine.signal_start(key, signum, one_shot),
                    engine.is_active(key),
                )
            });
        if started.is_ok() {
            (*signal).signal_cb = cb;
            (*signal).signum = signum;
        } else if !active {
            (*signal).signum = 0;
        }
        engine::code(started)
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_signal_start(
    signal: *mut uv_signal_t,
    cb: uv_signal_cb,
    signum: c_int,
) -> c_int {
    // SAFETY: the caller upholds the same contract.
    unsafe { start(signal, cb, signum, false) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_signal_start_oneshot(
    signal: *mut uv_signal_t,
    cb: uv_signal_cb,
    signum: c_int,
) -> c_int {
    // SAFETY: the caller upholds the same contract.
    unsafe { start(signal, cb, signum, true) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_signal_stop(signal: *mut uv_signal_t) -> c_int {
    // SAFETY: the caller passes a signal handle. Stopping a closing handle is no error.
    unsafe {
        let _ = engine::with_known(signal.cast(), Ok(()), |engine, key| engine.signal_stop(key));
        (*signal).signum = 0;
    }
    0
}

/// Resets the public fields of a closing handle.
///
/// # Safety
///
/// `signal` is closing.
pub(crate) unsafe fn closed(signal: *mut uv_signal_t) {
    // SAFETY: the caller upholds the contract.
    unsafe { (*signal).signum = 0 }
}

/// Calls the callback for a caught signal.
///
/// # Safety
///
/// `signal` is started.
pub(crate) unsafe fn caught(signal: *mut uv_signal_t, signum: c_int) {
    // SAFETY: the engine returns events of open handles only. After the callback the handle may be
    // closed, but its memory stays valid until its close callback.
    unsafe {
        let loop_ = (*signal).handle.loop_;
        if let Some(cb) = (*signal).signal_cb {
            cb(signal, signum);
        }
        if let Some(token) = engine::with(loop_, |engine| engine.signal_settle()) {
            (*engine::handle::<uv_signal_t>(token)).signum = 0;
        }
    }
}
