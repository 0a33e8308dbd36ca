//! The environment: <https://man7.org/linux/man-pages/man7/environ.7.html>.
//!
//! It is the C library's, which guards it against nobody: Rust's own functions take a lock that
//! C code does not know of. Hence each function here asks its caller for peace.

use crate::{Errno, check, fallible};
use std::ffi::{CStr, c_char};

unsafe extern "C" {
    static environ: *const *const c_char;
}

/// The array of all variables, which is null after `clearenv`.
///
/// # Safety
///
/// No other thread changes the environment meanwhile.
pub(crate) unsafe fn pointer() -> *const *const c_char {
    // SAFETY: the caller vouches for it.
    unsafe { environ }
}

/// The value of a variable.
///
/// # Safety
///
/// No other thread changes the environment meanwhile.
pub unsafe fn get(name: &CStr) -> Result<Option<Vec<u8>>, Errno> {
    // SAFETY: the name ends in a NUL, and the caller keeps the environment as it is until we
    // have copied the value.
    unsafe {
        let value = libc::getenv(name.as_ptr());
        match value.is_null() {
            true => Ok(None),
            false => fallible::copied(CStr::from_ptr(value).to_bytes()).map(Some),
        }
    }
}

/// Sets a variable. A name that is empty or has a `=` in it is `EINVAL`.
///
/// # Safety
///
/// No other thread uses the environment meanwhile.
pub unsafe fn set(name: &CStr, value: &CStr) -> Result<(), Errno> {
    // SAFETY: both end in a NUL and are copied; the caller vouches for the rest.
    check(unsafe { libc::setenv(name.as_ptr(), value.as_ptr(), 1) }).map(drop)
}

/// Removes a variable, if there is one of that name.
///
/// # Safety
///
/// No other thread uses the environment meanwhile.
pub unsafe fn unset(name: &CStr) -> Result<(), Errno> {
    // SAFETY: the name ends in a NUL; the caller vouches for the rest.
    check(unsafe { libc::unsetenv(name.as_ptr()) }).map(drop)
}

/// One variable, as it stands in the environment.
#[derive(Clone, Debug)]
pub struct Variable {
    /// The name, `=` and the value.
    pub text: Vec<u8>,
    /// The length of the name, which is where the `=` is.
    pub name_len: usize,
}

/// All variables, without what has no `=` in it.
///
/// # Safety
///
/// No other thread changes the environment meanwhile.
pub unsafe fn all() -> Result<Vec<Variable>, Errno> {
    let mut found = Vec::new();
    // SAFETY: `environ` is null or an array of C strings with null at its end, and the caller
    // keeps it as it is.
    unsafe {
        let mut entry = pointer();
        while !entry.is_null() && !(*entry).is_null() {
            let text = CStr::from_ptr(*entry).to_bytes();
            if let Some(name_len) = text.iter().position(|&byte| byte == b'=') {
                let text = fallible::copied(text)?;
                fallible::push(&mut found, Variable { text, name_len })?;
            }
            entry = entry.add(1);
        }
    }
    Ok(found)
}
