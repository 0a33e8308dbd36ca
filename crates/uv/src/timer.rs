//! Timers.

use crate::abi::{UV_TIMER, uv_loop_t, uv_timer_cb, uv_timer_t};
use crate::engine;
use blacklight_engine::Errno;
use std::ffi::c_int;

/// Writes the timer's due time where programs look for it.
///
/// # Safety
///
/// `timer` is an initialised timer.
pub(crate) unsafe fn mirror(timer: *mut uv_timer_t) {
    // SAFETY: the caller vouches for it.
    unsafe {
        let due = engine::with_handle(timer.cast(), |engine, key| engine.timer_due(key));
        if let Ok(due) = due {
            (*timer).timeout = due;
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_timer_init(loop_: *mut uv_loop_t, timer: *mut uv_timer_t) -> c_int {
    // SAFETY: the caller gives us a loop and memory for a timer.
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
    // SAFETY: the caller gives us a timer.
    unsafe {
        let started = engine::with_handle(timer.cast(), |engine, key| {
            engine.timer_start(key, timeout, repeat)?;
            engine.timer_due(key)
        });
        match started {
            Ok(due) => (*timer).timeout = due,
            Err(error) => return error.code(),
        }
        (*timer).timer_cb = cb;
        (*timer).repeat = repeat;
    }
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_timer_stop(timer: *mut uv_timer_t) -> c_int {
    // SAFETY: the caller gives us a timer. Stopping one that is closing is no error.
    unsafe {
        let _ = engine::with_handle(timer.cast(), |engine, key| engine.timer_stop(key));
    }
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_timer_again(timer: *mut uv_timer_t) -> c_int {
    // SAFETY: the caller gives us a timer.
    unsafe {
        if (*timer).timer_cb.is_none() {
            return Errno::EINVAL.code();
        }
        let again = engine::with_handle(timer.cast(), |engine, key| engine.timer_again(key));
        mirror(timer);
        engine::code(again)
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_timer_set_repeat(timer: *mut uv_timer_t, repeat: u64) {
    // SAFETY: the caller gives us a timer.
    unsafe {
        (*timer).repeat = repeat;
        let _ = engine::with_handle(timer.cast(), |engine, key| {
            engine.timer_set_repeat(key, repeat)
        });
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_timer_get_repeat(timer: *const uv_timer_t) -> u64 {
    // SAFETY: the caller gives us a timer.
    unsafe { (*timer).repeat }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_timer_get_due_in(timer: *const uv_timer_t) -> u64 {
    // SAFETY: the caller gives us a timer.
    let due_in =
        unsafe { engine::with_handle(timer.cast(), |engine, key| engine.timer_due_in(key)) };
    due_in.unwrap_or(0)
}
