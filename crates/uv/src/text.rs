//! Texts for buffers of C callers.
//!
//! Functions that fill a buffer take its size in `*size`. If it is too small, they answer
//! `UV_ENOBUFS` and leave in `*size` what is needed, the NUL included; if it suffices, they
//! leave the length, the NUL not included. Without a buffer, or with one of no size, they answer
//! `UV_EINVAL` before they do anything else.

use blacklight_engine::Errno;
use std::ffi::{CStr, c_char, c_int};

/// Copies the text that `find` finds into the caller's buffer.
///
/// # Safety
///
/// `size` is null or says how many bytes `buffer` has room for, unless that is null.
pub(crate) unsafe fn fill<T: AsRef<[u8]>>(
    buffer: *mut c_char,
    size: *mut usize,
    find: impl FnOnce() -> Result<T, Errno>,
) -> c_int {
    // SAFETY: the caller vouches for `size`.
    if buffer.is_null() || size.is_null() || unsafe { *size } == 0 {
        return Errno::EINVAL.code();
    }
    let text = match find() {
        Ok(text) => text,
        Err(error) => return error.code(),
    };
    let text = text.as_ref();
    // SAFETY: the caller vouches for both.
    unsafe {
        if *size <= text.len() {
            *size = text.len() + 1;
            return Errno::ENOBUFS.code();
        }
        *size = text.len();
        write(buffer, text);
    }
    0
}

/// Writes a text and its NUL.
///
/// # Safety
///
/// There is room for both.
pub(crate) unsafe fn write(buffer: *mut c_char, text: &[u8]) {
    // SAFETY: the caller vouches for it.
    unsafe {
        buffer
            .cast::<u8>()
            .copy_from_nonoverlapping(text.as_ptr(), text.len());
        buffer.add(text.len()).write(0);
    }
}

/// A C string of the caller's, or `EINVAL` for null.
///
/// # Safety
///
/// `text` is null or a C string that stays as it is for as long as the result is used.
pub(crate) unsafe fn read<'a>(text: *const c_char) -> Result<&'a CStr, Errno> {
    match text.is_null() {
        true => Err(Errno::EINVAL),
        // SAFETY: the caller vouches for it.
        false => Ok(unsafe { CStr::from_ptr(text) }),
    }
}
