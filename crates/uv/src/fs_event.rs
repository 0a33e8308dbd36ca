//! File system event handles.
//!
//! Beyond libuv on Linux, `UV_FS_EVENT_RECURSIVE` works: names are then relative to the watched
//! directory. When the kernel's queue has overflowed, the callback gets no name, both `UV_RENAME`
//! and `UV_CHANGE`, and no error: the handle goes on, and the program should rescan. An error, such
//! as `UV_ENOSPC` when there are no watches left for a new directory, comes with that directory's
//! name.

use crate::abi::{UV_FS_EVENT, uv_fs_event_cb, uv_fs_event_t, uv_loop_t};
use crate::{alloc, engine, text};
use blacklight_engine::{Change, Errno};
use std::ffi::{c_char, c_int, c_uint};

const UV_FS_EVENT_RECURSIVE: c_uint = 4;

/// Names up to this length are copied without allocating.
const SHORT: usize = 1024;

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_fs_event_init(loop_: *mut uv_loop_t, handle: *mut uv_fs_event_t) -> c_int {
    // SAFETY: the caller passes a loop and memory for a handle.
    unsafe {
        let token = engine::token(handle);
        match engine::with(loop_, |engine| engine.fs_event_init(token)) {
            Ok(key) => engine::init(handle.cast(), loop_, UV_FS_EVENT, key),
            Err(error) => return error.code(),
        }
        (*handle).path = std::ptr::null_mut();
        (*handle).cb = None;
    }
    0
}

/// libuv implements the other flags on no system; they are ignored.
#[unsafe(no_mangle)]
unsafe extern "C" fn uv_fs_event_start(
    handle: *mut uv_fs_event_t,
    cb: uv_fs_event_cb,
    path: *const c_char,
    flags: c_uint,
) -> c_int {
    // SAFETY: the caller passes a handle and a C string.
    unsafe {
        let path = match text::read(path) {
            Ok(path) => path,
            Err(error) => return error.code(),
        };
        let copy = alloc::c_bytes(path.to_bytes());
        if copy.is_null() {
            return Errno::ENOMEM.code();
        }
        let recursive = flags & UV_FS_EVENT_RECURSIVE != 0;
        let started = engine::with_handle(handle.cast(), |engine, key| {
            engine.fs_event_start(key, path, recursive)
        });
        match started {
            Ok(()) => {
                (*handle).path = copy;
                (*handle).cb = cb;
            }
            Err(_) => alloc::free(copy.cast()),
        }
        engine::code(started)
    }
}

/// Stopping a handle that is not started, or that is closing, is no error.
#[unsafe(no_mangle)]
unsafe extern "C" fn uv_fs_event_stop(handle: *mut uv_fs_event_t) -> c_int {
    // SAFETY: the caller passes a handle.
    unsafe {
        let _ = engine::with_known(handle.cast(), Ok(()), |engine, key| {
            engine.fs_event_stop(key)
        });
        stopped(handle);
    }
    0
}

/// Frees the path that `uv_fs_event_start` copied.
///
/// # Safety
///
/// `handle` is stopped or closing.
pub(crate) unsafe fn stopped(handle: *mut uv_fs_event_t) {
    // SAFETY: the caller upholds the contract; the path came from `alloc`.
    unsafe {
        alloc::free((*handle).path.cast());
        (*handle).path = std::ptr::null_mut();
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_fs_event_getpath(
    handle: *mut uv_fs_event_t,
    buffer: *mut c_char,
    size: *mut usize,
) -> c_int {
    // SAFETY: the caller passes a handle and a buffer. A path that is not null came from `alloc`.
    unsafe {
        if (*handle).path.is_null() && !size.is_null() {
            *size = 0;
        }
        text::fill(buffer, size, || {
            text::read((*handle).path).map(|path| path.to_bytes())
        })
    }
}

/// Calls the program's callback for an event.
///
/// # Safety
///
/// `handle` is started, and the engine has just returned this event for it.
pub(crate) unsafe fn changed(handle: *mut uv_fs_event_t, result: Result<Change, Errno>) {
    let (events, status) = match result {
        Ok(change) => (change.bits() as c_int, 0),
        Err(error) => (0, error.code()),
    };
    let mut short = [0u8; SHORT];
    // SAFETY: the caller guarantees the handle, which the callback may close and free. The name is
    // copied first, since the engine's copy does not outlive the loan.
    unsafe {
        let Some(cb) = (*handle).cb else { return };
        // Not from the program's allocator, which must not run while the engine is lent.
        let mut long = Vec::new();
        let name = engine::with((*handle).handle.loop_, |engine| {
            match engine.fs_event_name() {
                None => std::ptr::null(),
                Some(name) if name.len() < SHORT => {
                    short[..name.len()].copy_from_slice(name);
                    short.as_ptr().cast()
                }
                Some(name) => match long.try_reserve_exact(name.len() + 1) {
                    Ok(()) => {
                        long.extend_from_slice(name);
                        long.push(0);
                        long.as_ptr().cast()
                    }
                    Err(_) => std::ptr::null(),
                },
            }
        });
        cb(handle, name, events, status);
    }
}
