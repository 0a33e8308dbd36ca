//! What each operation does, on whichever thread it runs.
//!
//! An operation finds its arguments in the request and leaves its result there, and touches
//! nothing else of the loop's thread. Memory for results comes from the program's allocator,
//! which libuv's documentation wants to be safe to use from any thread.

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
/// The request is complete, and nobody else touches it meanwhile.
pub(super) unsafe fn run(req: *mut uv_fs_t) {
    // SAFETY: the caller vouches for it.
    unsafe {
        let Some(op) = Op::from_raw((*req).fs_type) else {
            (*req).result = Errno::ENOSYS.code() as isize;
            return;
        };
        let result = match op {
            Op::Stat => stored(req, stat::stat(path_of(req))),
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
/// The request has one, and nobody changes it while the reference is used.
unsafe fn path_of<'a>(req: *mut uv_fs_t) -> &'a CStr {
    // SAFETY: the caller vouches for it.
    unsafe { CStr::from_ptr((*req).path) }
}

/// Success without anything to tell.
fn nothing(result: Result<(), Errno>) -> Result<isize, Errno> {
    result.map(|()| 0)
}

/// A number of bytes. No kernel moves more of them at a time than fit.
fn bytes(result: Result<usize, Errno>) -> Result<isize, Errno> {
    result.map(|count| isize::try_from(count).unwrap_or(isize::MAX))
}

/// Leaves what was found out about a file where the program looks for it.
///
/// # Safety
///
/// As for [`run`].
#[inline]
pub(super) unsafe fn stored(req: *mut uv_fs_t, stat: Result<Stat, Errno>) -> Result<isize, Errno> {
    let stat = stat?;
    // SAFETY: the caller vouches for it.
    unsafe {
        (*req).statbuf = stat.into();
        (*req).ptr = (&raw mut (*req).statbuf).cast();
    }
    Ok(0)
}

/// Reads or writes. Of a write, as much as the result says is done already: none, or what a ring
/// has written.
///
/// # Safety
///
/// As for [`run`].
unsafe fn transfer(req: *mut uv_fs_t, op: Op) -> Result<isize, Errno> {
    // SAFETY: the caller vouches for it, and the program for its buffers. It may have given one
    // and the same more than once, so no references to their contents are made.
    unsafe {
        let buffers = std::slice::from_raw_parts((*req).bufs, (*req).nbufs as usize);
        // Documented for -1, and so for all negative numbers.
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
    // SAFETY: the caller vouches for it.
    unsafe {
        let fd = (*req).file;
        match op {
            Op::Open => file::open(path_of(req), (*req).flags, (*req).mode).map(|fd| fd as isize),
            Op::Close => nothing(file::close(fd)),
            Op::Fstat => stored(req, stat::fstat(fd)),
            Op::Fsync => nothing(file::sync(fd)),
            Op::Fdatasync => nothing(file::sync_data(fd)),
            Op::Ftruncate => nothing(file::truncate(fd, (*req).off)),
            Op::Fchmod => nothing(file::set_mode(fd, (*req).mode)),
            Op::Fchown => nothing(file::set_owner(fd, (*req).uid, (*req).gid)),
            Op::Futime => {
                let (atime, mtime) = times_of(req)?;
                nothing(time::set_open(fd, atime, mtime))
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
    // SAFETY: the caller vouches for it, and that the operations on two names have both.
    unsafe {
        match op {
            Op::Lstat => stored(req, stat::lstat(path_of(req))),
            Op::Access => nothing(path::access(path_of(req), (*req).flags as u32)),
            Op::Chmod => nothing(path::chmod(path_of(req), (*req).mode)),
            Op::Unlink => nothing(path::unlink(path_of(req))),
            Op::Rmdir => nothing(path::rmdir(path_of(req))),
            Op::Mkdir => nothing(path::mkdir(path_of(req), (*req).mode)),
            Op::Chown => nothing(path::chown(path_of(req), (*req).uid, (*req).gid)),
            Op::Lchown => nothing(path::lchown(path_of(req), (*req).uid, (*req).gid)),
            Op::Rename => nothing(path::rename(path_of(req), CStr::from_ptr((*req).new_path))),
            Op::Link => nothing(path::link(path_of(req), CStr::from_ptr((*req).new_path))),
            Op::Symlink => nothing(path::symlink(path_of(req), CStr::from_ptr((*req).new_path))),
            Op::Copyfile => nothing(copy_file(req)),
            Op::Utime => {
                let (atime, mtime) = times_of(req)?;
                nothing(time::set(path_of(req), atime, mtime))
            }
            Op::Lutime => {
                let (atime, mtime) = times_of(req)?;
                nothing(time::set_link(path_of(req), atime, mtime))
            }
            Op::Mkdtemp => nothing(path::mkdtemp((*req).path.cast_mut())),
            Op::Mkstemp => mkstemp(req),
            Op::Readlink => answer(req, path::readlink(path_of(req)).and_then(|at| text(&at))),
            Op::Realpath => {
                let found = path::realpath(path_of(req));
                answer(req, found.and_then(|found| text(found.to_bytes())))
            }
            Op::Statfs => {
                let found = stat::statfs(path_of(req)).map(uv_statfs_t::from);
                answer(req, found.and_then(alloc::boxed).map(|found| found.cast()))
            }
            Op::Scandir => dirs::scan(req, path_of(req)),
            Op::Opendir => answer(req, dirs::open(path_of(req))),
            Op::Readdir => dirs::read((*req).ptr.cast()),
            Op::Closedir => {
                let dir = (*req).ptr;
                (*req).ptr = std::ptr::null_mut();
                nothing(dirs::close(dir.cast()))
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
    // SAFETY: the caller vouches for it.
    let (atime, mtime) = unsafe { ((*req).atime, (*req).mtime) };
    Ok((Time::from_seconds(atime)?, Time::from_seconds(mtime)?))
}

/// Leaves memory with the answer in `ptr`.
///
/// # Safety
///
/// As for [`run`].
unsafe fn answer(req: *mut uv_fs_t, memory: Result<*mut c_void, Errno>) -> Result<isize, Errno> {
    let memory = memory?;
    // SAFETY: the caller vouches for it.
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
    // SAFETY: the caller vouches for it; the template is a copy of ours.
    unsafe {
        let template = (*req).path.cast_mut();
        let made = path::mkstemp(template);
        if made.is_err() {
            // Nobody should take the template for the name of something.
            template.write(0 as c_char);
        }
        made.map(|fd| fd as isize)
    }
}

/// # Safety
///
/// As for [`run`].
unsafe fn copy_file(req: *mut uv_fs_t) -> Result<(), Errno> {
    // SAFETY: the caller vouches for it.
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
