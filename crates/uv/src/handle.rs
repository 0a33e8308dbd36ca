//! Functions for all kinds of handles.

use crate::abi::UV_FS_EVENT;
use crate::abi::{
    HANDLE_TYPES, UV_ASYNC, UV_HANDLE_CLOSED, UV_HANDLE_CLOSING, UV_NAMED_PIPE, UV_POLL, UV_TCP,
    UV_TTY, UV_UDP,
};
use crate::abi::{UV_FS_POLL, UV_SIGNAL, uv_close_cb, uv_handle_t, uv_loop_t};
use crate::{engine, fs_poll, loop_, stream, udp};
use blacklight_engine::Errno;
use blacklight_sys::fallible::Short;
use std::ffi::{c_char, c_int, c_void};

fn entry(type_: c_int) -> Option<&'static (&'static std::ffi::CStr, usize)> {
    HANDLE_TYPES.get(usize::try_from(type_).ok()?.checked_sub(1)?)
}

#[unsafe(no_mangle)]
extern "C" fn uv_handle_size(type_: c_int) -> usize {
    entry(type_).map_or(usize::MAX, |entry| entry.1)
}

#[unsafe(no_mangle)]
extern "C" fn uv_handle_type_name(type_: c_int) -> *const c_char {
    entry(type_).map_or(std::ptr::null(), |entry| entry.0.as_ptr())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_handle_get_type(handle: *const uv_handle_t) -> c_int {
    // SAFETY: the caller passes a handle.
    unsafe { (*handle).type_ }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_handle_get_data(handle: *const uv_handle_t) -> *mut c_void {
    // SAFETY: the caller passes a handle.
    unsafe { (*handle).data }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_handle_get_loop(handle: *const uv_handle_t) -> *mut uv_loop_t {
    // SAFETY: the caller passes a handle.
    unsafe { (*handle).loop_ }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_handle_set_data(handle: *mut uv_handle_t, data: *mut c_void) {
    // SAFETY: the caller passes a handle.
    unsafe { (*handle).data = data }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_is_active(handle: *const uv_handle_t) -> c_int {
    // SAFETY: the caller passes a handle.
    unsafe {
        let active = engine::is_known(handle)
            && engine::look_at_handle(handle, |engine, key| engine.is_active(key));
        c_int::from(active)
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_is_closing(handle: *const uv_handle_t) -> c_int {
    // SAFETY: the caller passes a handle.
    unsafe { c_int::from((*handle).flags & UV_HANDLE_CLOSING != 0) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_ref(handle: *mut uv_handle_t) {
    // SAFETY: the caller passes a handle.
    unsafe {
        if engine::is_known(handle) {
            engine::with_handle(handle, |engine, key| engine.reference(key));
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_unref(handle: *mut uv_handle_t) {
    // SAFETY: the caller passes a handle.
    unsafe {
        if engine::is_known(handle) {
            engine::with_handle(handle, |engine, key| engine.unreference(key));
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_has_ref(handle: *const uv_handle_t) -> c_int {
    // SAFETY: the caller passes a handle.
    unsafe {
        let referenced = engine::is_known(handle)
            && engine::look_at_handle(handle, |engine, key| engine.has_reference(key));
        c_int::from(referenced)
    }
}

/// Closing a handle that is closing already does nothing: its callback is pending.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn uv_close(handle: *mut uv_handle_t, close_cb: uv_close_cb) {
    // SAFETY: the caller passes a handle.
    unsafe {
        let closes = engine::is_known(handle)
            && engine::with_handle(handle, |engine, key| engine.close(key)).is_ok();
        if closes {
            (*handle).close_cb = close_cb;
            (*handle).flags |= UV_HANDLE_CLOSING;
            match (*handle).type_ {
                UV_ASYNC => crate::async_::close(handle.cast()),
                UV_TCP | UV_NAMED_PIPE | UV_TTY => stream::closed(handle.cast()),
                UV_FS_EVENT => crate::fs_event::stopped(handle.cast()),
                UV_UDP => udp::closed(handle.cast()),
                UV_SIGNAL => crate::signal::closed(handle.cast()),
                UV_FS_POLL => fs_poll::closed(handle.cast()),
                _ => {}
            }
        }
    }
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn uv_fileno(handle: *const uv_handle_t, fd: *mut c_int) -> c_int {
    // SAFETY: the caller passes a handle and room for a descriptor.
    unsafe {
        let found = match (*handle).type_ {
            UV_POLL | UV_UDP | UV_TCP | UV_NAMED_PIPE | UV_TTY if !engine::is_known(handle) => {
                Err(Errno::EBADF)
            }
            UV_POLL => engine::with_handle(handle, |engine, key| engine.poll_fd(key)),
            UV_UDP => engine::with_handle(handle, |engine, key| engine.udp_fd(key)),
            UV_TCP | UV_NAMED_PIPE | UV_TTY => {
                engine::with_handle(handle, |engine, key| engine.stream_fd(key))
            }
            _ => Err(Errno::EINVAL),
        };
        engine::code(found.map(|found| *fd = found))
    }
}

/// Prints a line for each handle, or for each active one.
///
/// # Safety
///
/// The caller owns the loop, and `stream` is open or null, which means standard error.
pub(crate) unsafe fn print(loop_: *mut uv_loop_t, stream: *mut libc::FILE, only_active: bool) {
    let line = |handle: *mut uv_handle_t| {
        // SAFETY: the walk yields handles of the loop.
        let (referenced, active, type_) = unsafe {
            let flags = engine::with_handle(handle, |engine, key| {
                (engine.has_reference(key), engine.is_active(key))
            });
            (flags.0, flags.1, (*handle).type_)
        };
        if only_active && !active {
            return;
        }
        let name = entry(type_).map_or("?".into(), |entry| entry.0.to_string_lossy());
        let mark = |set, mark| if set { mark } else { '-' };
        let (referenced, active) = (mark(referenced, 'R'), mark(active, 'A'));
        let text = Short::format(format_args!(
            "[{referenced}{active}-] {name:8} {handle:p}\n"
        ));
        // SAFETY: the text ends in a NUL; the caller guarantees the stream.
        unsafe {
            match stream.is_null() {
                true => drop(libc::write(
                    2,
                    text.as_bytes().as_ptr().cast(),
                    text.as_bytes().len(),
                )),
                false => drop(libc::fputs(text.as_c_str().as_ptr(), stream)),
            }
        }
    };
    // SAFETY: the caller guarantees the loop.
    unsafe { loop_::for_each_handle(loop_, line) }
}

/// Completes the closing of a handle.
///
/// # Safety
///
/// `handle` is closing, and the engine has removed it.
#[inline(always)]
pub(crate) unsafe fn closed(handle: *mut uv_handle_t) {
    // SAFETY: the caller guarantees the handle, which the callback may free.
    unsafe {
        (*handle).flags |= UV_HANDLE_CLOSED;
        (*handle).key = engine::NO_KEY;
        if let Some(cb) = (*handle).close_cb {
            cb(handle);
        }
    }
}
