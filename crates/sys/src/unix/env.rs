//! The environment: <https://man7.org/linux/man-pages/man7/environ.7.html>.
//!
//! The environment belongs to the C library, which does not lock it; Rust's own functions take a
//! lock that C code does not know of. Hence each function here requires its caller to keep other
//! threads from changing it.

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
    // SAFETY: the caller upholds the contract.
    unsafe { environ }
}

/// The value of a variable.
///
/// # Safety
///
/// No other thread changes the environment meanwhile.
pub unsafe fn get(name: &CStr) -> Result<Option<Vec<u8>>, Errno> {
    // SAFETY: the name ends in a NUL, and the caller keeps the environment unchanged until the
    // value is copied.
    unsafe {
        let value = libc::getenv(name.as_ptr());
        match value.is_null() {
            true => Ok(None),
            false => fallible::copied(CStr::from_ptr(value).to_bytes()).map(Some),
        }
    }
}

/// Sets a variable. `EINVAL` for a name that is empty or contains a `=`.
///
/// # Safety
///
/// No other thread uses the environment meanwhile.
pub unsafe fn set(name: &CStr, value: &CStr) -> Result<(), Errno> {
    // SAFETY: both end in a NUL and are copied; the caller guarantees exclusive use of the
    // environment.
    check(unsafe { libc::setenv(name.as_ptr(), value.as_ptr(), 1) }).map(drop)
}

/// Removes a variable, if there is one of that name.
///
/// # Safety
///
/// No other thread uses the environment meanwhile.
pub unsafe fn unset(name: &CStr) -> Result<(), Errno> {
    // SAFETY: the name ends in a NUL; the caller guarantees exclusive use of the environment.
    check(unsafe { libc::unsetenv(name.as_ptr()) }).map(drop)
}

/// One variable of the environment.
#[derive(Clone, Debug)]
pub struct Variable {
    /// The name, `=` and the value.
    pub text: Vec<u8>,
    /// The length of the name, which is where the `=` is.
    pub name_len: usize,
}

/// All variables. Entries without a `=` are left out.
///
/// # Safety
///
/// No other thread changes the environment meanwhile.
pub unsafe fn all() -> Result<Vec<Variable>, Errno> {
    let mut found = Vec::new();
    // SAFETY: `environ` is null or an array of C strings that ends in null, and the caller keeps it
    // unchanged.
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
