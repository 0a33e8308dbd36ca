//! The version of libuv that this library implements.

use std::ffi::{c_char, c_uint};

const MAJOR: c_uint = 1;
const MINOR: c_uint = 53;
const PATCH: c_uint = 0;

#[unsafe(no_mangle)]
extern "C" fn uv_version() -> c_uint {
    MAJOR << 16 | MINOR << 8 | PATCH
}

#[unsafe(no_mangle)]
extern "C" fn uv_version_string() -> *const c_char {
    c"1.53.0".as_ptr()
}
