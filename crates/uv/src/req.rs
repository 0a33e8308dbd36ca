//! Functions for all kinds of requests.

use crate::abi::{REQUEST_TYPES, uv_req_t};
use std::ffi::{c_char, c_int, c_void};

fn entry(type_: c_int) -> Option<&'static (&'static std::ffi::CStr, usize)> {
    REQUEST_TYPES.get(usize::try_from(type_).ok()?.checked_sub(1)?)
}

#[unsafe(no_mangle)]
extern "C" fn uv_req_size(type_: c_int) -> usize {
    entry(type_).map_or(usize::MAX, |entry| entry.1)
}

#[unsafe(no_mangle)]
extern "C" fn uv_req_type_name(type_: c_int) -> *const c_char {
    entry(type_).map_or(std::ptr::null(), |entry| entry.0.as_ptr())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_req_get_type(req: *const uv_req_t) -> c_int {
    // SAFETY: the caller passes a request.
    unsafe { (*req).type_ }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_req_get_data(req: *const uv_req_t) -> *mut c_void {
    // SAFETY: the caller passes a request.
    unsafe { (*req).data }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_req_set_data(req: *mut uv_req_t, data: *mut c_void) {
    // SAFETY: the caller passes a request.
    unsafe { (*req).data = data }
}
