//! The C library's `errno`.

use std::ffi::c_int;

/// The address of the calling thread's `errno`, valid on that thread only.
pub(crate) fn location() -> *mut c_int {
    // SAFETY: the function takes no arguments and cannot fail.
    unsafe { libc::__errno_location() }
}
