//! Libraries loaded at run time: <https://man7.org/linux/man-pages/man3/dlopen.3.html>.
//!
//! Errors are texts, since the dynamic linker has no numbers for them.

use std::ffi::{CStr, c_void};

/// A loaded library, as the dynamic linker names it.
pub type Handle = *mut c_void;

/// Passes the dynamic linker's last error on this thread to `copy`.
fn last_error<T>(copy: impl FnOnce(&CStr) -> T) -> Option<T> {
    // SAFETY: the text, if any, stays valid until this thread's next call of the dynamic linker.
    unsafe {
        let text = libc::dlerror();
        (!text.is_null()).then(|| copy(CStr::from_ptr(text)))
    }
}

/// Loads a library, or returns the program itself if there is no name. Symbols are bound lazily.
/// `copy` copies an error's text, and calls nothing in this module.
///
/// # Safety
///
/// The library's initialisers, which run while it is loaded, are sound.
pub unsafe fn open<T>(name: Option<&CStr>, copy: fn(&CStr) -> T) -> Result<Handle, T> {
    let name = name.map_or(std::ptr::null(), CStr::as_ptr);
    // SAFETY: the name is null or ends in a NUL; the caller guarantees the library.
    let handle = unsafe { libc::dlopen(name, libc::RTLD_LAZY) };
    match handle.is_null() {
        true => Err(last_error(copy).unwrap_or_else(|| copy(c""))),
        false => Ok(handle),
    }
}

/// The address of a symbol, which may be null. `copy` as in [`open`].
///
/// # Safety
///
/// The handle is from [`open`] and has not been closed.
pub unsafe fn symbol<T>(
    library: Handle,
    name: &CStr,
    copy: fn(&CStr) -> T,
) -> Result<*mut c_void, T> {
    // Clears an older error: a null address alone is not a failure.
    last_error(|_| ());
    // SAFETY: the name ends in a NUL; the caller guarantees the handle.
    let address = unsafe { libc::dlsym(library, name.as_ptr()) };
    match last_error(copy) {
        Some(error) => Err(error),
        None => Ok(address),
    }
}

/// Releases a library, which is unloaded with its last user.
///
/// # Safety
///
/// The handle is from [`open`], and neither it nor a symbol found with it is used again.
pub unsafe fn close(library: Handle) {
    // SAFETY: the caller upholds the contract.
    unsafe { libc::dlclose(library) };
}
