//! Idle, prepare and check handles.

use crate::abi::{LoopWatcher, LoopWatcherCb, UV_CHECK, UV_IDLE, UV_PREPARE, uv_loop_t};
use crate::engine;
use blacklight_engine::{Engine, Errno, Key, Token};
use std::ffi::c_int;

/// # Safety
///
/// As for the exported functions.
unsafe fn init(
    loop_: *mut uv_loop_t,
    watcher: *mut LoopWatcher,
    type_: c_int,
    make: fn(&mut Engine, Token) -> Result<Key, Errno>,
) -> c_int {
    // SAFETY: the caller passes a loop and memory for a handle.
    unsafe {
        let token = engine::token(watcher);
        match engine::with(loop_, |engine| make(engine, token)) {
            Ok(key) => engine::init(watcher.cast(), loop_, type_, key),
            Err(error) => return error.code(),
        }
        (*watcher).cb = None;
    }
    0
}

/// # Safety
///
/// As for the exported functions.
unsafe fn start(watcher: *mut LoopWatcher, cb: LoopWatcherCb) -> c_int {
    // SAFETY: the caller passes a handle. A started handle keeps its present callback.
    unsafe {
        // libuv reports success for a closing handle, and starts nothing.
        let unknown = match cb {
            None => Errno::EINVAL.code(),
            Some(_) => 0,
        };
        engine::with_known(watcher.cast(), unknown, |engine, key| {
            if engine.is_active(key) {
                return 0;
            }
            if cb.is_none() {
                return Errno::EINVAL.code();
            }
            if engine.is_closing(key) {
                return 0;
            }
            let started = engine.loop_watcher_start(key);
            if started.is_ok() {
                (*watcher).cb = cb;
            }
            engine::code(started)
        })
    }
}

/// # Safety
///
/// As for the exported functions.
unsafe fn stop(watcher: *mut LoopWatcher) -> c_int {
    // SAFETY: the caller passes a handle. Stopping a closing handle is no error.
    unsafe {
        let _ = engine::with_known(watcher.cast(), Ok(()), |engine, key| {
            engine.loop_watcher_stop(key)
        });
    }
    0
}

/// Calls the callback of a started handle.
///
/// # Safety
///
/// `watcher` is open.
#[inline(always)]
pub(crate) unsafe fn due(watcher: *mut LoopWatcher) {
    // SAFETY: the caller guarantees the handle, which the callback may close.
    unsafe {
        if let Some(cb) = (*watcher).cb {
            cb(watcher);
        }
    }
}

macro_rules! loop_watcher {
    ($type:ident, $make:path, $init:ident, $start:ident, $stop:ident) => {
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $init(loop_: *mut uv_loop_t, watcher: *mut LoopWatcher) -> c_int {
            // SAFETY: the caller upholds the same contract.
            unsafe { init(loop_, watcher, $type, $make) }
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn $start(watcher: *mut LoopWatcher, cb: LoopWatcherCb) -> c_int {
            // SAFETY: the caller upholds the same contract.
            unsafe { start(watcher, cb) }
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn $stop(watcher: *mut LoopWatcher) -> c_int {
            // SAFETY: the caller upholds the same contract.
            unsafe { stop(watcher) }
        }
    };
}

loop_watcher!(
    UV_IDLE,
    Engine::idle_init,
    uv_idle_init,
    uv_idle_start,
    uv_idle_stop
);
loop_watcher!(
    UV_PREPARE,
    Engine::prepare_init,
    uv_prepare_init,
    uv_prepare_start,
    uv_prepare_stop
);
loop_watcher!(
    UV_CHECK,
    Engine::check_init,
    uv_check_init,
    uv_check_start,
    uv_check_stop
);
