//! Errors by name and in words.

use crate::alloc;
use blacklight_engine::Errno;
use blacklight_sys::fallible::Short;
use std::ffi::{CStr, c_char, c_int};

/// The text for an unknown code.
fn unknown(code: c_int) -> Short {
    Short::format(format_args!("Unknown system error {code}"))
}

/// A text that lives for ever. The one for an unknown code is allocated and leaks, as libuv's
/// documentation warns.
fn permanent(known: Option<&'static CStr>, code: c_int) -> *const c_char {
    if let Some(text) = known {
        return text.as_ptr();
    }
    let text = alloc::c_bytes(unknown(code).as_bytes());
    match text.is_null() {
        true => c"Unknown system error".as_ptr(),
        false => text,
    }
}

/// Copies a text into the caller's buffer, cut to fit.
///
/// # Safety
///
/// `buffer` has room for `size` bytes.
unsafe fn copy_to(
    known: Option<&'static CStr>,
    code: c_int,
    buffer: *mut c_char,
    size: usize,
) -> *mut c_char {
    let unknown = unknown(code);
    let text = known.map_or(unknown.as_bytes(), CStr::to_bytes);
    if let Some(room) = size.checked_sub(1) {
        let len = text.len().min(room);
        // SAFETY: `len` bytes and a NUL fit into the buffer.
        unsafe {
            buffer
                .cast::<u8>()
                .copy_from_nonoverlapping(text.as_ptr(), len);
            buffer.add(len).write(0);
        }
    }
    buffer
}

#[unsafe(no_mangle)]
extern "C" fn uv_err_name(code: c_int) -> *const c_char {
    permanent(Errno::from_code(code).name_c(), code)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_err_name_r(code: c_int, buffer: *mut c_char, size: usize) -> *mut c_char {
    // SAFETY: the caller upholds the contracts buffer.
    unsafe { copy_to(Errno::from_code(code).name_c(), code, buffer, size) }
}

#[unsafe(no_mangle)]
extern "C" fn uv_strerror(code: c_int) -> *const c_char {
    permanent(Errno::from_code(code).message_c(), code)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_strerror_r(code: c_int, buffer: *mut c_char, size: usize) -> *mut c_char {
    // SAFETY: the caller upholds the contracts buffer.
    unsafe { copy_to(Errno::from_code(code).message_c(), code, buffer, size) }
}

/// On Unix libuv's codes are negated errnos; a negative number is returned unchanged.
#[unsafe(no_mangle)]
extern "C" fn uv_translate_sys_error(sys_errno: c_int) -> c_int {
    match sys_errno > 0 {
        true => -sys_errno,
        false => sys_errno,
    }
}
