//! Requests about open files.

use super::abi::{Op, uv_fs_cb, uv_fs_t};
use super::request::Call;
use crate::abi::uv_loop_t;
use blacklight_sys::fs::io::Buffer;
use std::ffi::{c_char, c_int, c_uint};

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_fs_open(
    loop_: *mut uv_loop_t,
    req: *mut uv_fs_t,
    path: *const c_char,
    flags: c_int,
    mode: c_int,
    cb: uv_fs_cb,
) -> c_int {
    let call = Call { loop_, req, cb };
    // SAFETY: the caller upholds libuv's contract for this function.
    unsafe {
        call.on_path(Op::Open, path, |req| {
            (*req).flags = flags;
            (*req).mode = mode as libc::mode_t;
        })
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_fs_close(
    loop_: *mut uv_loop_t,
    req: *mut uv_fs_t,
    file: c_int,
    cb: uv_fs_cb,
) -> c_int {
    let call = Call { loop_, req, cb };
    // SAFETY: the caller upholds libuv's contract for this function.
    unsafe { call.on_file(Op::Close, file, |_| {}) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_fs_read(
    loop_: *mut uv_loop_t,
    req: *mut uv_fs_t,
    file: c_int,
    bufs: *const Buffer,
    nbufs: c_uint,
    offset: i64,
    cb: uv_fs_cb,
) -> c_int {
    let call = Call { loop_, req, cb };
    // SAFETY: the caller upholds libuv's contract for this function.
    unsafe { call.on_buffers(Op::Read, file, bufs, nbufs, offset) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_fs_write(
    loop_: *mut uv_loop_t,
    req: *mut uv_fs_t,
    file: c_int,
    bufs: *const Buffer,
    nbufs: c_uint,
    offset: i64,
    cb: uv_fs_cb,
) -> c_int {
    let call = Call { loop_, req, cb };
    // SAFETY: the caller upholds libuv's contract for this function.
    unsafe { call.on_buffers(Op::Write, file, bufs, nbufs, offset) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_fs_fsync(
    loop_: *mut uv_loop_t,
    req: *mut uv_fs_t,
    file: c_int,
    cb: uv_fs_cb,
) -> c_int {
    let call = Call { loop_, req, cb };
    // SAFETY: the caller upholds libuv's contract for this function.
    unsafe { call.on_file(Op::Fsync, file, |_| {}) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_fs_fdatasync(
    loop_: *mut uv_loop_t,
    req: *mut uv_fs_t,
    file: c_int,
    cb: uv_fs_cb,
) -> c_int {
    let call = Call { loop_, req, cb };
    // SAFETY: the caller upholds libuv's contract for this function.
    unsafe { call.on_file(Op::Fdatasync, file, |_| {}) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_fs_ftruncate(
    loop_: *mut uv_loop_t,
    req: *mut uv_fs_t,
    file: c_int,
    offset: i64,
    cb: uv_fs_cb,
) -> c_int {
    let call = Call { loop_, req, cb };
    // SAFETY: the caller upholds libuv's contract for this function.
    unsafe { call.on_file(Op::Ftruncate, file, |req| (*req).off = offset) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_fs_sendfile(
    loop_: *mut uv_loop_t,
    req: *mut uv_fs_t,
    out_fd: c_int,
    in_fd: c_int,
    in_offset: i64,
    length: usize,
    cb: uv_fs_cb,
) -> c_int {
    let call = Call { loop_, req, cb };
    if length > blacklight_sys::buffer::MAX_BYTES {
        // SAFETY: the caller passes memory for a request.
        return unsafe { call.refuse(Op::Sendfile, blacklight_engine::Errno::EINVAL) };
    }
    // SAFETY: the caller upholds libuv's contract for this function.
    unsafe {
        call.on_file(Op::Sendfile, out_fd, |req| {
            (*req).flags = in_fd;
            (*req).off = in_offset;
            (*req).bufsml[0].iov_len = length;
        })
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_fs_fstat(
    loop_: *mut uv_loop_t,
    req: *mut uv_fs_t,
    file: c_int,
    cb: uv_fs_cb,
) -> c_int {
    let call = Call { loop_, req, cb };
    // SAFETY: the caller upholds libuv's contract for this function.
    unsafe { call.on_file(Op::Fstat, file, |_| {}) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_fs_fchmod(
    loop_: *mut uv_loop_t,
    req: *mut uv_fs_t,
    file: c_int,
    mode: c_int,
    cb: uv_fs_cb,
) -> c_int {
    let call = Call { loop_, req, cb };
    // SAFETY: the caller upholds libuv's contract for this function.
    unsafe { call.on_file(Op::Fchmod, file, |req| (*req).mode = mode as libc::mode_t) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_fs_fchown(
    loop_: *mut uv_loop_t,
    req: *mut uv_fs_t,
    file: c_int,
    uid: libc::uid_t,
    gid: libc::gid_t,
    cb: uv_fs_cb,
) -> c_int {
    let call = Call { loop_, req, cb };
    // SAFETY: the caller upholds libuv's contract for this function.
    unsafe {
        call.on_file(Op::Fchown, file, |req| {
            (*req).uid = uid;
            (*req).gid = gid;
        })
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_fs_futime(
    loop_: *mut uv_loop_t,
    req: *mut uv_fs_t,
    file: c_int,
    atime: f64,
    mtime: f64,
    cb: uv_fs_cb,
) -> c_int {
    let call = Call { loop_, req, cb };
    // SAFETY: the caller upholds libuv's contract for this function.
    unsafe {
        call.on_file(Op::Futime, file, |req| {
            (*req).atime = atime;
            (*req).mtime = mtime;
        })
    }
}
