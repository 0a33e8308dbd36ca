//! The operations themselves, on the loop's thread or on a worker's.
//!
//! An operation reads its arguments from the request and stores its result there; it touches
//! nothing else that the loop's thread uses. Memory for results comes from the program's allocator,
//! which libuv's documentation requires to be thread-safe.

use super::abi::{Op, uv_fs_t, uv_statfs_t};
use super::{dirs, request};
use crate::alloc;
use blacklight_engine::Errno;
use blacklight_sys::fs::copy::{self, Clone, CopyOptions};
use blacklight_sys::fs::stat::{self, Stat};
use blacklight_sys::fs::time::{self, Time};
use blacklight_sys::fs::{file, io, path};
use std::ffi::{CStr, c_char, c_int, c_void};

/// Fail if there is something at the destination already.
const UV_FS_COPYFILE_EXCL: c_int = 1;
/// Share blocks with the original if possible.
const UV_FS_COPYFILE_FICLONE: c_int = 2;
/// Share blocks with the original or fail.
const UV_FS_COPYFILE_FICLONE_FORCE: c_int = 4;
/// All bits that mean something.
pub(super) const UV_FS_COPYFILE_FLAGS: c_int =
    UV_FS_COPYFILE_EXCL | UV_FS_COPYFILE_FICLONE | UV_FS_COPYFILE_FICLONE_FORCE;

/// Runs the operation and stores its result.
///
/// # Safety
///
/// The request is complete, and no other thread touches it meanwhile.
pub(super) unsafe fn run(req: *mut uv_fs_t) {
    // SAFETY: the caller upholds the contract.
    unsafe {
        let Some(op) = Op::from_raw((*req).fs_type) else {
            (*req).result = Errno::ENOSYS.code() as isize;
            return;
        };
        let result = match op {
            Op::Stat => store_stat(req, stat::stat(path_of(req))),
            Op::Read | Op::Write => {
                let result = transfer(req, op);
                request::release_buffers(req);
                result
            }
            Op::Open
            | Op::Close
            | Op::Sendfile
            | Op::Fstat
            | Op::Ftruncate
            | Op::Futime
            | Op::Fchmod
            | Op::Fsync
            | Op::Fdatasync
            | Op::Fchown => on_file(req, op),
            _ => on_path(req, op),
        };
        (*req).result = match result {
            Ok(result) => result,
            Err(error) => error.code() as isize,
        };
    }
}

/// The path that the request is about.
///
/// # Safety
///
/// The request has a path, and nothing changes it while the reference is used.
unsafe fn path_of<'a>(req: *mut uv_fs_t) -> &'a CStr {
    // SAFETY: the caller upholds the contract.
    unsafe { CStr::from_ptr((*req).path) }
}

/// Success without a value.
fn no_value(result: Result<(), Errno>) -> Result<isize, Errno> {
    result.map(|()| 0)
}

/// A number of bytes. The kernel transfers no more at a time than fits.
fn bytes(result: Result<usize, Errno>) -> Result<isize, Errno> {
    result.map(|count| isize::try_from(count).unwrap_or(isize::MAX))
}

/// Stores a file's metadata where the program reads it.
///
/// # Safety
///
/// As for [`run`].
#[inline]
pub(super) unsafe fn store_stat(
    req: *mut uv_fs_t,
    stat: Result<Stat, Errno>,
) -> Result<isize, Errno> {
    let stat = stat?;
    // SAFETY: the caller upholds the contract.
    unsafe {
        (*req).statbuf = stat.into();
        (*req).ptr = (&raw mut (*req).statbuf).cast();
    }
    Ok(0)
}

/// Reads or writes. For a write, the result so far counts the bytes that are written already: none,
/// or those that a ring has written.
///
/// # Safety
///
/// As for [`run`].
unsafe fn transfer(req: *mut uv_fs_t, op: Op) -> Result<isize, Errno> {
    // SAFETY: the caller upholds the contract, and the program guarantees its buffers. Two of them
    // may be the same memory, so no references to their contents are made.
    unsafe {
        let buffers = std::slice::from_raw_parts((*req).bufs, (*req).nbufs as usize);
        // libuv's documentation defines -1; all negative numbers behave alike.
        let offset = Some((*req).off).filter(|offset| *offset >= 0);
        bytes(match op {
            Op::Read => io::read((*req).file, buffers, offset),
            _ => io::write((*req).file, buffers, offset, (*req).result as usize),
        })
    }
}

/// The operations on open files, and the one that opens them.
///
/// # Safety
///
/// As for [`run`].
unsafe fn on_file(req: *mut uv_fs_t, op: Op) -> Result<isize, Errno> {
    // SAFETY: the caller upholds the contract.
    unsafe {
        let fd = (*req).file;
        match op {
            Op::Open => file::open(path_of(req), (*req).flags, (*req).mode).map(|fd| fd as isize),
            Op::Close => no_value(file::close(fd)),
            Op::Fstat => store_stat(req, stat::fstat(fd)),
            Op::Fsync => no_value(file::sync(fd)),
            Op::Fdatasync => no_value(file::sync_data(fd)),
            Op::Ftruncate => no_value(file::truncate(fd, (*req).off)),
            Op::Fchmod => no_value(file::set_mode(fd, (*req).mode)),
            Op::Fchown => no_value(file::set_owner(fd, (*req).uid, (*req).gid)),
            Op::Futime => {
                let (atime, mtime) = times_of(req)?;
                no_value(time::set_open(fd, atime, mtime))
            }
            Op::Sendfile => {
                let (input, len) = ((*req).flags, (*req).bufsml[0].iov_len);
                bytes(copy::send(fd, input, &mut (*req).off, len))
            }
            _ => Err(Errno::ENOSYS),
        }
    }
}

/// The operations on names.
///
/// # Safety
///
/// As for [`run`].
unsafe fn on_path(req: *mut uv_fs_t, op: Op) -> Result<isize, Errno> {
    // SAFETY: the caller upholds the contract, and operations on two paths have both.
    unsafe {
        match op {
            Op::Lstat => store_stat(req, stat::lstat(path_of(req))),
            Op::Access => no_value(path::access(path_of(req), (*req).flags as u32)),
            Op::Chmod => no_value(path::chmod(path_of(req), (*req).mode)),
            Op::Unlink => no_value(path::unlink(path_of(req))),
            Op::Rmdir => no_value(path::rmdir(path_of(req))),
            Op::Mkdir => no_value(path::mkdir(path_of(req), (*req).mode)),
            Op::Chown => no_value(path::chown(path_of(req), (*req).uid, (*req).gid)),
            Op::Lchown => no_value(path::lchown(path_of(req), (*req).uid, (*req).gid)),
            Op::Rename => no_value(path::rename(path_of(req), CStr::from_ptr((*req).new_path))),
            Op::Link => no_value(path::link(path_of(req), CStr::from_ptr((*req).new_path))),
            Op::Symlink => no_value(path::symlink(path_of(req), CStr::from_ptr((*req).new_path))),
            Op::Copyfile => no_value(copy_file(req)),
            Op::Utime => {
                let (atime, mtime) = times_of(req)?;
                no_value(time::set(path_of(req), atime, mtime))
            }
            Op::Lutime => {
                let (atime, mtime) = times_of(req)?;
                no_value(time::set_link(path_of(req), atime, mtime))
            }
            Op::Mkdtemp => no_value(path::mkdtemp((*req).path.cast_mut())),
            Op::Mkstemp => mkstemp(req),
            Op::Readlink => store_ptr(req, path::readlink(path_of(req)).and_then(|at| text(&at))),
            Op::Realpath => {
                let found = path::realpath(path_of(req));
                store_ptr(req, found.and_then(|found| text(found.to_bytes())))
            }
            Op::Statfs => {
                let found = stat::statfs(path_of(req)).map(uv_statfs_t::from);
                store_ptr(req, found.and_then(alloc::boxed).map(|found| found.cast()))
            }
            Op::Scandir => dirs::scan(req, path_of(req)),
            Op::Opendir => store_ptr(req, dirs::open(path_of(req))),
            Op::Readdir => dirs::read((*req).ptr.cast()),
            Op::Closedir => {
                let dir = (*req).ptr;
                (*req).ptr = std::ptr::null_mut();
                no_value(dirs::close(dir.cast()))
            }
            _ => Err(Errno::ENOSYS),
        }
    }
}

/// The times to set.
///
/// # Safety
///
/// As for [`run`].
unsafe fn times_of(req: *mut uv_fs_t) -> Result<(Time, Time), Errno> {
    // SAFETY: the caller upholds the contract.
    let (atime, mtime) = unsafe { ((*req).atime, (*req).mtime) };
    Ok((Time::from_seconds(atime)?, Time::from_seconds(mtime)?))
}

/// Stores a result's memory in `ptr`.
///
/// # Safety
///
/// As for [`run`].
unsafe fn store_ptr(req: *mut uv_fs_t, memory: Result<*mut c_void, Errno>) -> Result<isize, Errno> {
    let memory = memory?;
    // SAFETY: the caller upholds the contract.
    unsafe { (*req).ptr = memory };
    Ok(0)
}

/// The bytes as a C string in memory of their own.
fn text(bytes: &[u8]) -> Result<*mut c_void, Errno> {
    let copy = alloc::malloc(bytes.len() + 1).cast::<u8>();
    if copy.is_null() {
        return Err(Errno::ENOMEM);
    }
    // SAFETY: there is room for the bytes and one more.
    unsafe {
        copy.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        copy.add(bytes.len()).write(0);
    }
    Ok(copy.cast())
}

/// # Safety
///
/// As for [`run`].
unsafe fn mkstemp(req: *mut uv_fs_t) -> Result<isize, Errno> {
    // SAFETY: the caller upholds the contract; the template is our own copy.
    unsafe {
        let template = (*req).path.cast_mut();
        let made = path::mkstemp(template);
        if made.is_err() {
            // The program must not take the template for a file's name.
            template.write(0 as c_char);
        }
        made.map(|fd| fd as isize)
    }
}

/// # Safety
///
/// As for [`run`].
unsafe fn copy_file(req: *mut uv_fs_t) -> Result<(), Errno> {
    // SAFETY: the caller upholds the contract.
    unsafe {
        let flags = (*req).flags;
        let options = CopyOptions {
            exclusive: flags & UV_FS_COPYFILE_EXCL != 0,
            clone: match flags {
                _ if flags & UV_FS_COPYFILE_FICLONE_FORCE != 0 => Clone::Require,
                _ if flags & UV_FS_COPYFILE_FICLONE != 0 => Clone::Prefer,
                _ => Clone::Any,
            },
        };
        copy::copy_file(path_of(req), CStr::from_ptr((*req).new_path), options)
    }
}
