//! Requests on the loop's ring: which operations it takes, and how they complete.
//!
//! A request that the ring has taken is the kernel's until its completion. The program, or the
//! request itself, owns all memory that the request points to, except the buffer for a file's
//! metadata, which `ptr` points to meanwhile.
//!
//! Results do not depend on whether the ring or the pool has run a request. Where the ring would
//! behave differently, the pool runs the request, or the rest of it: see [`operation`] and
//! [`is_for_the_pool`].

use super::abi::{Op, uv_fs_t};
use super::{ops, request};
use crate::{alloc, engine};
use blacklight_engine::{Errno, Operation};
use blacklight_sys::fs::file;
use blacklight_sys::fs::io::{self, MAX_BUFFERS};
use blacklight_sys::fs::stat::Stat;
use blacklight_sys::ring::StatBuffer;
use std::ffi::{c_char, c_int};
use std::ptr::null_mut;

/// The key of a request that is on the ring, and of one that `uv_cancel` has reported as cancelled.
/// No request of the pool has this key.
pub(crate) const ON_RING: u64 = 0;
pub(crate) const CANCELLED: u64 = 1;

/// Submits the request to the ring of its loop, if there is one and it takes the operation.
///
/// # Safety
///
/// The request is complete and has a callback, and the caller owns its loop.
pub(super) unsafe fn submit(req: *mut uv_fs_t) -> bool {
    // SAFETY: the caller upholds the contract. The program's allocator runs only between the two
    // loans of the engine.
    unsafe {
        let loop_ = (*req).loop_;
        if !engine::with(loop_, |engine| engine.ring_is_there()) {
            return false;
        }
        let Some(operation) = operation(req) else {
            return false;
        };
        let token = engine::token(req);
        let taken = engine::with(loop_, |engine| engine.ring_submit(token, operation));
        match taken {
            true => {
                (*req).req.key = ON_RING;
                (*req).work_req.done = null_mut();
            }
            false => drop(take_stat(req, false)),
        }
        taken
    }
}

/// The request as an operation of the ring, or `None` if the ring cannot run it in the same way.
///
/// # Safety
///
/// As for [`submit`].
unsafe fn operation(req: *mut uv_fs_t) -> Option<Operation> {
    // SAFETY: the caller guarantees the request. The memory that it points to stays until it is
    // done: a request with a callback has copies of its paths and of its array of buffers.
    unsafe {
        let (fd, path, new_path) = ((*req).file, (*req).path, (*req).new_path);
        Some(match Op::from_raw((*req).fs_type)? {
            op @ (Op::Read | Op::Write) => {
                let (bufs, nbufs) = ((*req).bufs, (*req).nbufs);
                let offset = Some((*req).off).filter(|offset| *offset >= 0);
                // A ring ignores `O_NONBLOCK`, and reads a pipe at any position.
                let is_alike =
                    blacklight_sys::fd::may_wait(fd) && (offset.is_none() || io::is_seekable(fd));
                if nbufs as usize > MAX_BUFFERS || !is_alike {
                    return None;
                }
                match op {
                    Op::Read => Operation::read(fd, bufs, nbufs, offset),
                    _ => Operation::write(fd, bufs, nbufs, offset),
                }
            }
            Op::Fsync => Operation::sync(fd),
            Op::Fdatasync => Operation::sync_data(fd),
            Op::Close => Operation::close(fd),
            Op::Open => Operation::open(path, (*req).flags, (*req).mode),
            Op::Stat => stat(req, libc::AT_FDCWD, path, 0)?,
            Op::Lstat => stat(req, libc::AT_FDCWD, path, libc::AT_SYMLINK_NOFOLLOW)?,
            // One negative number stands for the current directory.
            Op::Fstat if fd >= 0 => stat(req, fd, c"".as_ptr(), libc::AT_EMPTY_PATH)?,
            // A ring does not refuse a negative length.
            Op::Ftruncate => Operation::truncate(fd, u64::try_from((*req).off).ok()?),
            Op::Mkdir => Operation::mkdir(path, (*req).mode),
            Op::Unlink => Operation::unlink(path),
            Op::Rmdir => Operation::rmdir(path),
            Op::Rename => Operation::rename(path, new_path),
            Op::Link => Operation::link(path, new_path),
            Op::Symlink => Operation::symlink(path, new_path),
            _ => return None,
        })
    }
}

/// A `statx` operation with memory for its result; `None` without memory.
///
/// # Safety
///
/// As for [`submit`].
unsafe fn stat(
    req: *mut uv_fs_t,
    dir: c_int,
    path: *const c_char,
    flags: c_int,
) -> Option<Operation> {
    // SAFETY: the struct consists of integers. It is zeroed because checkers such as valgrind do
    // not see a ring's writes.
    let nothing = unsafe { std::mem::zeroed::<StatBuffer>() };
    let into = alloc::boxed(nothing).ok()?;
    // SAFETY: the memory stays until `take_stat`, and the caller guarantees the rest.
    unsafe {
        (*req).ptr = into.cast();
        Some(Operation::stat(dir, path, flags, into))
    }
}

/// Frees the buffer for a file's metadata, if the request has one. Returns its contents if the
/// operation has succeeded.
///
/// # Safety
///
/// The request is not on the ring.
unsafe fn take_stat(req: *mut uv_fs_t, succeeded: bool) -> Option<Stat> {
    // SAFETY: `stat` has stored the buffer there, and the kernel has filled it in if the operation
    // has succeeded.
    unsafe {
        let memory = std::mem::replace(&mut (*req).ptr, null_mut()).cast::<StatBuffer>();
        let stat = memory.as_ref().filter(|_| succeeded).map(Stat::from);
        alloc::free(memory.cast());
        stat
    }
}

/// Whether the pool would not have come to this result, so that it has to run the request, or the
/// rest of it.
///
/// # Safety
///
/// The request is done.
unsafe fn is_for_the_pool(req: *mut uv_fs_t, op: Op, result: Result<u32, Errno>) -> bool {
    match result {
        // SAFETY: the request still has its buffers.
        Ok(written) if op == Op::Write => unsafe {
            written > 0 && (written as usize) < request::bytes((*req).bufs, (*req).nbufs)
        },
        Ok(_) => false,
        // Nothing has happened: a cancellation that came too late interrupted the operation, the
        // thread that submitted it has ended, or the ring cannot wait for such a file. An
        // interrupted close has closed its descriptor all the same.
        Err(Errno::EINTR) => op != Op::Close,
        Err(Errno::ECANCELED | Errno::EAGAIN) => true,
        // The pool has fallbacks for these.
        Err(Errno::ENOSYS | Errno::EPERM | Errno::ENOTSUP) => {
            matches!(op, Op::Stat | Op::Lstat | Op::Fstat)
        }
        Err(_) => false,
    }
}

/// Completes a request of the ring: calls the program's callback, or submits the rest to the pool.
///
/// # Safety
///
/// The request was submitted, and this is its completion.
pub(crate) unsafe fn done(req: *mut uv_fs_t, mut result: Result<u32, Errno>) {
    // SAFETY: the caller upholds the contract. The callback may free the request.
    unsafe {
        let stat = take_stat(req, result.is_ok());
        let op = Op::from_raw((*req).fs_type);
        if (*req).req.key == CANCELLED {
            result = result.map_err(|_| Errno::ECANCELED);
        } else if op.is_some_and(|op| is_for_the_pool(req, op, result)) {
            // The number of bytes written so far; see `ops::transfer`.
            (*req).result = result.unwrap_or(0) as isize;
            let code = request::submit_to_pool(req);
            if code == 0 {
                return;
            }
            result = result.map_err(|_| Errno::from_code(code));
        }
        let result = match (result, stat) {
            (Ok(_), Some(stat)) => ops::store_stat(req, Ok(stat)),
            (Ok(value), None) => Ok(value as isize),
            (Err(error), _) if op == Some(Op::Close) && file::is_closed_despite(error) => Ok(0),
            (Err(error), _) => Err(error),
        };
        (*req).result = result.unwrap_or_else(|error| error.code() as isize);
        request::release_buffers(req);
        request::done(req, 0);
    }
}
