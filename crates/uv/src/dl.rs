//! Libraries loaded at run time.

use crate::{alloc, text};
use blacklight_sys::library;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::null_mut;

/// A library, and what went wrong with it last.
#[repr(C)]
pub struct uv_lib_t {
    handle: library::Handle,
    errmsg: *mut c_char,
}

/// A message in memory of the program's allocator, or null if there is none.
fn kept(message: &CStr) -> *mut c_char {
    alloc::c_bytes(message.to_bytes())
}

/// Keeps a message in the place of an older one.
///
/// # Safety
///
/// `lib` was given to `uv_dlopen`, and `message` is from [`kept`].
unsafe fn fail(lib: *mut uv_lib_t, message: *mut c_char) -> c_int {
    // SAFETY: both messages are from our allocator, or null.
    unsafe {
        alloc::free((*lib).errmsg.cast());
        (*lib).errmsg = message;
    }
    -1
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_dlopen(filename: *const c_char, lib: *mut uv_lib_t) -> c_int {
    // SAFETY: the caller gives us a C string or null, which stands for the program itself, and
    // room for a library, whose present contents mean nothing.
    unsafe {
        lib.write(uv_lib_t {
            handle: null_mut(),
            errmsg: null_mut(),
        });
        match library::open(text::read(filename).ok(), kept) {
            Ok(handle) => (*lib).handle = handle,
            Err(message) => return fail(lib, message),
        }
    }
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_dlclose(lib: *mut uv_lib_t) {
    // SAFETY: the caller gives us a library, open or not.
    unsafe {
        alloc::free((*lib).errmsg.cast());
        (*lib).errmsg = null_mut();
        if !(*lib).handle.is_null() {
            library::close((*lib).handle);
            (*lib).handle = null_mut();
        }
    }
}

/// A name that is not found leaves null at `ptr`, and so may one that is.
#[unsafe(no_mangle)]
unsafe extern "C" fn uv_dlsym(
    lib: *mut uv_lib_t,
    name: *const c_char,
    ptr: *mut *mut c_void,
) -> c_int {
    // SAFETY: the caller gives us an open library, a C string and room for an address.
    unsafe {
        let found = library::symbol((*lib).handle, CStr::from_ptr(name), kept);
        *ptr = *found.as_ref().unwrap_or(&null_mut());
        match found {
            Ok(_) => 0,
            Err(message) => fail(lib, message),
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_dlerror(lib: *const uv_lib_t) -> *const c_char {
    // SAFETY: the caller gives us a library.
    match unsafe { (*lib).errmsg } {
        message if message.is_null() => c"no error".as_ptr(),
        message => message,
    }
}
