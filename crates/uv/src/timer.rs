//! Timers. The public `timeout` and `repeat` are in milliseconds, beside the engine's nanoseconds.

use crate::abi::{UV_HANDLE_CLOSING, UV_TIMER, uv_loop_t, uv_timer_cb, uv_timer_t};
use crate::engine;
use blacklight_engine::Errno;
use std::ffi::c_int;

/// Stores the time at which the timer is due, `timeout` from now, in its public field. The field is
/// in milliseconds, as documented, beside the engine's nanoseconds, which cannot hold every value
/// of it.
///
/// # Safety
///
/// `timer` is an initialised timer.
pub(crate) unsafe fn mirror(timer: *mut uv_timer_t, timeout: u64) {
    // SAFETY: the caller upholds the contract.
    unsafe {
        let now = engine::with((*timer).handle.loop_, |engine| engine.now());
        (*timer).timeout = now.saturating_add(timeout);
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_timer_init(loop_: *mut uv_loop_t, timer: *mut uv_timer_t) -> c_int {
    // SAFETY: the caller passes a loop and memory for a timer.
    unsafe {
        let token = engine::token(timer);
        match engine::with(loop_, |engine| engine.timer_init(token)) {
            Ok(key) => engine::init(timer.cast(), loop_, UV_TIMER, key),
            Err(error) => return error.code(),
        }
        (*timer).timer_cb = None;
        (*timer).timeout = 0;
        (*timer).repeat = 0;
    }
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_timer_start(
    timer: *mut uv_timer_t,
    cb: uv_timer_cb,
    timeout: u64,
    repeat: u64,
) -> c_int {
    if cb.is_none() {
        return Errno::EINVAL.code();
    }
    // SAFETY: the caller passes a timer.
    unsafe {
        let started = engine::with_known(timer.cast(), Err(Errno::EINVAL), |engine, key| {
            engine.timer_start(key, timeout, repeat)?;
            Ok::<u64, Errno>(engine.now())
        });
        match started {
            Ok(now) => (*timer).timeout = now.saturating_add(timeout),
            Err(error) => return error.code(),
        }
        (*timer).timer_cb = cb;
        (*timer).repeat = repeat;
    }
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_timer_stop(timer: *mut uv_timer_t) -> c_int {
    // SAFETY: the caller passes a timer. Stopping a closing timer is no error.
    unsafe {
        let _ = engine::with_known(timer.cast(), Ok(()), |engine, key| engine.timer_stop(key));
    }
    0
}

/// Succeeds and does nothing for a closing timer, as in libuv.
#[unsafe(no_mangle)]
unsafe extern "C" fn uv_timer_again(timer: *mut uv_timer_t) -> c_int {
    // SAFETY: the caller passes a timer.
    unsafe {
        if (*timer).timer_cb.is_none() {
            return Errno::EINVAL.code();
        }
        if (*timer).handle.flags & UV_HANDLE_CLOSING != 0 {
            return 0;
        }
        let again = engine::with_handle(timer.cast(), |engine, key| engine.timer_again(key));
        if again.is_ok() && (*timer).repeat != 0 {
            mirror(timer, (*timer).repeat);
        }
        engine::code(again)
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_timer_set_repeat(timer: *mut uv_timer_t, repeat: u64) {
    // SAFETY: the caller passes a timer.
    unsafe {
        (*timer).repeat = repeat;
        let _ = engine::with_known(timer.cast(), Ok(()), |engine, key| {
            engine.timer_set_repeat(key, repeat)
        });
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_timer_get_repeat(timer: *const uv_timer_t) -> u64 {
    // SAFETY: the caller passes a timer.
    unsafe { (*timer).repeat }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_timer_get_due_in(timer: *const uv_timer_t) -> u64 {
    // SAFETY: the caller passes a timer.
    unsafe {
        if !engine::is_known(timer.cast()) {
            return 0;
        }
        let now = engine::look((*timer).handle.loop_, |engine| engine.now());
        (*timer).timeout.saturating_sub(now)
    }
}

/// Calls the callback of a timer that is due.
///
/// # Safety
///
/// `timer` is open.
#[inline(always)]
pub(crate) unsafe fn due(timer: *mut uv_timer_t) {
    // SAFETY: the caller guarantees the handle, which the callback may close.
    unsafe {
        if (*timer).repeat != 0 {
            mirror(timer, (*timer).repeat);
        }
        if let Some(cb) = (*timer).timer_cb {
            cb(timer);
        }
    }
}
