//! Requests about files: `uv_fs_t`.
//!
//! Every function fills in a request. Without a callback it then runs the request at once; with
//! one, it submits the request to the loop's ring if there is one, or else to the thread pool. One
//! table of operations serves all three ways:
//!
//! | | |
//! | --- | --- |
//! | the C structs | `abi.rs` |
//! | a request's life from the call to its clean-up | `request.rs` |
//! | what each operation does | `ops.rs` |
//! | the requests that a ring takes | `ring.rs` |
//! | the functions: open files, names, directories | `files.rs`, `names.rs`, `dirs.rs` |
//!
//! Where libuv asserts that there is a path, these functions return `UV_EINVAL`.

pub mod abi;
mod dirs;
mod files;
mod names;
mod ops;
mod request;
pub(crate) mod ring;

pub(crate) use request::{done, stat_for};

use abi::{uv_fs_t, uv_stat_t};
use std::ffi::{c_char, c_int, c_void};

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_fs_get_type(req: *const uv_fs_t) -> c_int {
    // SAFETY: the caller passes a request.
    unsafe { (*req).fs_type }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_fs_get_result(req: *const uv_fs_t) -> isize {
    // SAFETY: the caller passes a request.
    unsafe { (*req).result }
}

/// The system's error number: on Unix, the result without its sign.
#[unsafe(no_mangle)]
unsafe extern "C" fn uv_fs_get_system_error(req: *const uv_fs_t) -> c_int {
    // SAFETY: the caller passes a request.
    unsafe { (*req).result.wrapping_neg() as c_int }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_fs_get_ptr(req: *const uv_fs_t) -> *mut c_void {
    // SAFETY: the caller passes a request.
    unsafe { (*req).ptr }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_fs_get_path(req: *const uv_fs_t) -> *const c_char {
    // SAFETY: the caller passes a request.
    unsafe { (*req).path }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_fs_get_statbuf(req: *mut uv_fs_t) -> *mut uv_stat_t {
    // SAFETY: the caller passes a request.
    unsafe { &raw mut (*req).statbuf }
}
