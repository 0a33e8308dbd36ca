//! Libraries loaded at run time: <https://man7.org/linux/man-pages/man3/dlopen.3.html>.
//!
//! What went wrong comes as a text, since the dynamic linker has no numbers for it.

use std::ffi::{CStr, c_void};

/// A loaded library, as the dynamic linker names it.
pub type Handle = *mut c_void;

/// Has `copy` copy what the dynamic linker says about its last failure in this thread.
fn last_error<T>(copy: impl FnOnce(&CStr) -> T) -> Option<T> {
    // SAFETY: the text, if there is one, stays until this thread's next call.
    unsafe {
        let text = libc::dlerror();
        (!text.is_null()).then(|| copy(CStr::from_ptr(text)))
    }
}

/// Loads a library, or finds the program itself if there is no name. Its functions are looked
/// up when they are first called. `copy` copies what went wrong, and makes no call of this module.
///
/// # Safety
///
/// The library's own code, which runs while it is loaded, is sound.
pub unsafe fn open<T>(name: Option<&CStr>, copy: fn(&CStr) -> T) -> Result<Handle, T> {
    let name = name.map_or(std::ptr::null(), CStr::as_ptr);
    // SAFETY: the name is null or ends in a NUL; the caller vouches for the library.
    let handle = unsafe { libc::dlopen(name, libc::RTLD_LAZY) };
    match handle.is_null() {
        true => Err(last_error(copy).unwrap_or_else(|| copy(c""))),
        false => Ok(handle),
    }
}

/// The address that a library has for a name, which may be null. `copy` as in [`open`].
///
/// # Safety
///
/// The handle is from [`open`] and has not been closed.
pub unsafe fn symbol<T>(
    library: Handle,
    name: &CStr,
    copy: fn(&CStr) -> T,
) -> Result<*mut c_void, T> {
    // An old error must not be taken for one of this call, whose result alone does not tell.
    last_error(|_| ());
    // SAFETY: the name ends in a NUL; the caller vouches for the handle.
    let address = unsafe { libc::dlsym(library, name.as_ptr()) };
    match last_error(copy) {
        Some(error) => Err(error),
        None => Ok(address),
    }
}

/// Lets go of a library, which is unloaded if nobody else holds it.
///
/// # Safety
///
/// The handle is from [`open`], and neither it nor what was found with it is used again.
pub unsafe fn close(library: Handle) {
    // SAFETY: the caller vouches for it.
    unsafe { libc::dlclose(library) };
}
