//! Libraries loaded at run time.

use crate::{alloc, text};
use blacklight_sys::library;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::null_mut;

/// A library, and the message of its last error.
#[repr(C)]
pub struct uv_lib_t {
    handle: library::Handle,
    errmsg: *mut c_char,
}

/// A copy of the message in memory of the program's allocator, or null if there is none.
fn copy_message(message: &CStr) -> *mut c_char {
    alloc::c_bytes(message.to_bytes())
}

/// Stores a message in the place of an older one.
///
/// # Safety
///
/// `lib` was given to `uv_dlopen`, and `message` is from [`copy_message`].
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
    // SAFETY: the caller passes a C string, or null for the program itself, and memory for a
    // library, whose present contents mean nothing.
    unsafe {
        lib.write(uv_lib_t {
            handle: null_mut(),
            errmsg: null_mut(),
        });
        match library::open(text::read(filename).ok(), copy_message) {
            Ok(handle) => (*lib).handle = handle,
            Err(message) => return fail(lib, message),
        }
    }
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_dlclose(lib: *mut uv_lib_t) {
    // SAFETY: the caller passes a library, open or not.
    unsafe {
        alloc::free((*lib).errmsg.cast());
        (*lib).errmsg = null_mut();
        if !(*lib).handle.is_null() {
            library::close((*lib).handle);
            (*lib).handle = null_mut();
        }
    }
}

/// Leaves null at `ptr` for a name that is not found. A symbol's value may be null as well.
#[unsafe(no_mangle)]
unsafe extern "C" fn uv_dlsym(
    lib: *mut uv_lib_t,
    name: *const c_char,
    ptr: *mut *mut c_void,
) -> c_int {
    // SAFETY: the caller passes an open library, a C string and room for an address.
    unsafe {
        let found = library::symbol((*lib).handle, CStr::from_ptr(name), copy_message);
        *ptr = *found.as_ref().unwrap_or(&null_mut());
        match found {
            Ok(_) => 0,
            Err(message) => fail(lib, message),
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_dlerror(lib: *const uv_lib_t) -> *const c_char {
    // SAFETY: the caller passes a library.
    match unsafe { (*lib).errmsg } {
        message if message.is_null() => c"no error".as_ptr(),
        message => message,
    }
}
