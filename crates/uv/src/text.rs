//! Texts in buffers of C callers.
//!
//! Functions that fill a buffer take its size in `*size`. If the buffer is too small, they return
//! `UV_ENOBUFS` and store the required size, including the NUL; otherwise they store the length,
//! without the NUL. For a null buffer or one of size zero they return `UV_EINVAL` before they do
//! anything else.

use blacklight_engine::Errno;
use std::ffi::{CStr, c_char, c_int};

/// Copies the text that `find` returns into the caller's buffer.
///
/// # Safety
///
/// `size` is null or the number of bytes in `buffer`, unless that is null.
pub(crate) unsafe fn fill<T: AsRef<[u8]>>(
    buffer: *mut c_char,
    size: *mut usize,
    find: impl FnOnce() -> Result<T, Errno>,
) -> c_int {
    // SAFETY: the caller guarantees `size`.
    if buffer.is_null() || size.is_null() || unsafe { *size } == 0 {
        return Errno::EINVAL.code();
    }
    let text = match find() {
        Ok(text) => text,
        Err(error) => return error.code(),
    };
    let text = text.as_ref();
    // SAFETY: the caller guarantees both.
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
    // SAFETY: the caller upholds the contract.
    unsafe {
        buffer
            .cast::<u8>()
            .copy_from_nonoverlapping(text.as_ptr(), text.len());
        buffer.add(text.len()).write(0);
    }
}

/// The caller's C string, or `EINVAL` for null.
///
/// # Safety
///
/// `text` is null or a C string that stays unchanged while the result is used.
pub(crate) unsafe fn read<'a>(text: *const c_char) -> Result<&'a CStr, Errno> {
    match text.is_null() {
        true => Err(Errno::EINVAL),
        // SAFETY: the caller upholds the contract.
        false => Ok(unsafe { CStr::from_ptr(text) }),
    }
}
