//! Requests about files by their names.

use super::abi::{Op, uv_fs_cb, uv_fs_t};
use super::ops::UV_FS_COPYFILE_FLAGS;
use super::request::Call;
use crate::abi::uv_loop_t;
use blacklight_engine::Errno;
use std::ffi::{c_char, c_int};

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_fs_copyfile(
    loop_: *mut uv_loop_t,
    req: *mut uv_fs_t,
    path: *const c_char,
    new_path: *const c_char,
    flags: c_int,
    cb: uv_fs_cb,
) -> c_int {
    let call = Call { loop_, req, cb };
    // SAFETY: the caller upholds libuv's contract for this function.
    unsafe {
        match flags & !UV_FS_COPYFILE_FLAGS {
            0 => call.on_paths(Op::Copyfile, path, new_path, flags),
            _ => call.refuse(Op::Copyfile, Errno::EINVAL),
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_fs_rename(
    loop_: *mut uv_loop_t,
    req: *mut uv_fs_t,
    path: *const c_char,
    new_path: *const c_char,
    cb: uv_fs_cb,
) -> c_int {
    let call = Call { loop_, req, cb };
    // SAFETY: the caller upholds libuv's contract for this function.
    unsafe { call.on_paths(Op::Rename, path, new_path, 0) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_fs_link(
    loop_: *mut uv_loop_t,
    req: *mut uv_fs_t,
    path: *const c_char,
    new_path: *const c_char,
    cb: uv_fs_cb,
) -> c_int {
    let call = Call { loop_, req, cb };
    // SAFETY: the caller upholds libuv's contract for this function.
    unsafe { call.on_paths(Op::Link, path, new_path, 0) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_fs_symlink(
    loop_: *mut uv_loop_t,
    req: *mut uv_fs_t,
    path: *const c_char,
    new_path: *const c_char,
    flags: c_int,
    cb: uv_fs_cb,
) -> c_int {
    let call = Call { loop_, req, cb };
    // SAFETY: the caller upholds libuv's contract for this function.
    unsafe { call.on_paths(Op::Symlink, path, new_path, flags) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_fs_unlink(
    loop_: *mut uv_loop_t,
    req: *mut uv_fs_t,
    path: *const c_char,
    cb: uv_fs_cb,
) -> c_int {
    let call = Call { loop_, req, cb };
    // SAFETY: the caller upholds libuv's contract for this function.
    unsafe { call.on_path(Op::Unlink, path, |_| {}) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_fs_mkdir(
    loop_: *mut uv_loop_t,
    req: *mut uv_fs_t,
    path: *const c_char,
    mode: c_int,
    cb: uv_fs_cb,
) -> c_int {
    let call = Call { loop_, req, cb };
    // SAFETY: the caller upholds libuv's contract for this function.
    unsafe { call.on_path(Op::Mkdir, path, |req| (*req).mode = mode as libc::mode_t) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_fs_rmdir(
    loop_: *mut uv_loop_t,
    req: *mut uv_fs_t,
    path: *const c_char,
    cb: uv_fs_cb,
) -> c_int {
    let call = Call { loop_, req, cb };
    // SAFETY: the caller upholds libuv's contract for this function.
    unsafe { call.on_path(Op::Rmdir, path, |_| {}) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_fs_mkdtemp(
    loop_: *mut uv_loop_t,
    req: *mut uv_fs_t,
    tpl: *const c_char,
    cb: uv_fs_cb,
) -> c_int {
    let call = Call { loop_, req, cb };
    // SAFETY: the caller upholds libuv's contract for this function.
    unsafe { call.on_path(Op::Mkdtemp, tpl, |_| {}) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_fs_mkstemp(
    loop_: *mut uv_loop_t,
    req: *mut uv_fs_t,
    tpl: *const c_char,
    cb: uv_fs_cb,
) -> c_int {
    let call = Call { loop_, req, cb };
    // SAFETY: the caller upholds libuv's contract for this function.
    unsafe { call.on_path(Op::Mkstemp, tpl, |_| {}) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_fs_readlink(
    loop_: *mut uv_loop_t,
    req: *mut uv_fs_t,
    path: *const c_char,
    cb: uv_fs_cb,
) -> c_int {
    let call = Call { loop_, req, cb };
    // SAFETY: the caller upholds libuv's contract for this function.
    unsafe { call.on_path(Op::Readlink, path, |_| {}) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_fs_realpath(
    loop_: *mut uv_loop_t,
    req: *mut uv_fs_t,
    path: *const c_char,
    cb: uv_fs_cb,
) -> c_int {
    let call = Call { loop_, req, cb };
    // SAFETY: the caller upholds libuv's contract for this function.
    unsafe { call.on_path(Op::Realpath, path, |_| {}) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_fs_stat(
    loop_: *mut uv_loop_t,
    req: *mut uv_fs_t,
    path: *const c_char,
    cb: uv_fs_cb,
) -> c_int {
    let call = Call { loop_, req, cb };
    // SAFETY: the caller upholds libuv's contract for this function.
    unsafe { call.on_path(Op::Stat, path, |_| {}) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_fs_lstat(
    loop_: *mut uv_loop_t,
    req: *mut uv_fs_t,
    path: *const c_char,
    cb: uv_fs_cb,
) -> c_int {
    let call = Call { loop_, req, cb };
    // SAFETY: the caller upholds libuv's contract for this function.
    unsafe { call.on_path(Op::Lstat, path, |_| {}) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_fs_statfs(
    loop_: *mut uv_loop_t,
    req: *mut uv_fs_t,
    path: *const c_char,
    cb: uv_fs_cb,
) -> c_int {
    let call = Call { loop_, req, cb };
    // SAFETY: the caller upholds libuv's contract for this function.
    unsafe { call.on_path(Op::Statfs, path, |_| {}) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_fs_access(
    loop_: *mut uv_loop_t,
    req: *mut uv_fs_t,
    path: *const c_char,
    mode: c_int,
    cb: uv_fs_cb,
) -> c_int {
    let call = Call { loop_, req, cb };
    // SAFETY: the caller upholds libuv's contract for this function.
    unsafe { call.on_path(Op::Access, path, |req| (*req).flags = mode) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_fs_chmod(
    loop_: *mut uv_loop_t,
    req: *mut uv_fs_t,
    path: *const c_char,
    mode: c_int,
    cb: uv_fs_cb,
) -> c_int {
    let call = Call { loop_, req, cb };
    // SAFETY: the caller upholds libuv's contract for this function.
    unsafe { call.on_path(Op::Chmod, path, |req| (*req).mode = mode as libc::mode_t) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_fs_chown(
    loop_: *mut uv_loop_t,
    req: *mut uv_fs_t,
    path: *const c_char,
    uid: libc::uid_t,
    gid: libc::gid_t,
    cb: uv_fs_cb,
) -> c_int {
    let call = Call { loop_, req, cb };
    // SAFETY: the caller upholds libuv's contract for this function.
    unsafe {
        call.on_path(Op::Chown, path, |req| {
            (*req).uid = uid;
            (*req).gid = gid;
        })
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_fs_lchown(
    loop_: *mut uv_loop_t,
    req: *mut uv_fs_t,
    path: *const c_char,
    uid: libc::uid_t,
    gid: libc::gid_t,
    cb: uv_fs_cb,
) -> c_int {
    let call = Call { loop_, req, cb };
    // SAFETY: the caller upholds libuv's contract for this function.
    unsafe {
        call.on_path(Op::Lchown, path, |req| {
            (*req).uid = uid;
            (*req).gid = gid;
        })
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_fs_utime(
    loop_: *mut uv_loop_t,
    req: *mut uv_fs_t,
    path: *const c_char,
    atime: f64,
    mtime: f64,
    cb: uv_fs_cb,
) -> c_int {
    let call = Call { loop_, req, cb };
    // SAFETY: the caller upholds libuv's contract for this function.
    unsafe {
        call.on_path(Op::Utime, path, |req| {
            (*req).atime = atime;
            (*req).mtime = mtime;
        })
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_fs_lutime(
    loop_: *mut uv_loop_t,
    req: *mut uv_fs_t,
    path: *const c_char,
    atime: f64,
    mtime: f64,
    cb: uv_fs_cb,
) -> c_int {
    let call = Call { loop_, req, cb };
    // SAFETY: the caller upholds libuv's contract for this function.
    unsafe {
        call.on_path(Op::Lutime, path, |req| {
            (*req).atime = atime;
            (*req).mtime = mtime;
        })
    }
}
