//! The C library's `errno`.

use std::ffi::c_int;

/// Where the C library keeps the calling thread's `errno`. The address is valid for that thread only.
pub(crate) fn location() -> *mut c_int {
    // SAFETY: it takes no arguments and cannot fail.
    unsafe { libc::__errno_location() }
}
