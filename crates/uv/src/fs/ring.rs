//! Requests on the loop's ring: which there are, and how they come back.
//!
//! A request that the ring takes is the kernel's until its completion. The program, or the
//! request itself, keeps all that it points to; only what the kernel tells about a file needs
//! memory of its own, which is in `ptr` meanwhile.
//!
//! No program can tell a ring from the pool by the results. Where the ring would do otherwise,
//! the pool does the request, or the rest of it: see [`operation`] and [`is_for_the_pool`].

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

/// In the place of the pool's key for a request that is on the ring, and for one whose canceller
/// was told that it is cancelled. The pool has no such keys.
pub(crate) const ON_RING: u64 = 0;
pub(crate) const CANCELLED: u64 = 1;

/// Hands the request to the ring of its loop, if there is one and it takes it.
///
/// # Safety
///
/// The request is complete and has a callback, and its loop is the caller's own.
pub(super) unsafe fn submit(req: *mut uv_fs_t) -> bool {
    // SAFETY: the caller vouches for it. The program's allocator may be called between the two
    // times that the engine is lent, not meanwhile.
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

/// The request as the ring does it, or `None` if it does not, or not in the same way.
///
/// # Safety
///
/// As for [`submit`].
unsafe fn operation(req: *mut uv_fs_t) -> Option<Operation> {
    // SAFETY: the caller vouches for the request. What it points to stays until it is done: a
    // request with a callback has copies of its paths and of its array of buffers.
    unsafe {
        let (fd, path, new_path) = ((*req).file, (*req).path, (*req).new_path);
        Some(match Op::from_raw((*req).fs_type)? {
            op @ (Op::Read | Op::Write) => {
                let (bufs, nbufs) = ((*req).bufs, (*req).nbufs);
                let offset = Some((*req).off).filter(|offset| *offset >= 0);
                // A ring always waits, and a pipe it reads at any position.
                let is_alike =
                    blacklight_sys::fd::may_wait(fd) && (offset.is_none() || io::has_positions(fd));
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
            // A ring does not look whether the length is negative.
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

/// The question about a file, with memory for the answer; `None` if there is none.
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
    // SAFETY: it consists of numbers. All zeros, since checkers such as valgrind do not see what
    // a ring writes, and take it for what was there before.
    let nothing = unsafe { std::mem::zeroed::<StatBuffer>() };
    let into = alloc::boxed(nothing).ok()?;
    // SAFETY: the memory stays until `take_stat`, and the caller vouches for the rest.
    unsafe {
        (*req).ptr = into.cast();
        Some(Operation::stat(dir, path, flags, into))
    }
}

/// Gives back the memory for what the kernel tells about a file, if the request has some. If the
/// kernel has told it, it is returned.
///
/// # Safety
///
/// The request is not on the ring, any more or at all.
unsafe fn take_stat(req: *mut uv_fs_t, has_told: bool) -> Option<Stat> {
    // SAFETY: `stat` has left the memory there, and the kernel has filled it in if it has told.
    unsafe {
        let memory = std::mem::replace(&mut (*req).ptr, null_mut()).cast::<StatBuffer>();
        let told = memory.as_ref().filter(|_| has_told).map(Stat::from);
        alloc::free(memory.cast());
        told
    }
}

/// Whether the result is one that the pool would not have come to, so that the pool has to do
/// the request, or the rest of it.
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
        // Nothing has happened: the kernel was told to hurry by a cancellation that came too
        // late, the thread that submitted the request has ended, or waiting is not what a ring
        // does with such a file. A descriptor is gone whatever interrupts its closing.
        Err(Errno::EINTR) => op != Op::Close,
        Err(Errno::ECANCELED | Errno::EAGAIN) => true,
        // The pool has another way of asking.
        Err(Errno::ENOSYS | Errno::EPERM | Errno::ENOTSUP) => {
            matches!(op, Op::Stat | Op::Lstat | Op::Fstat)
        }
        Err(_) => false,
    }
}

/// A request is back from the ring: tells the program, or has the pool go on with it.
///
/// # Safety
///
/// The request was submitted, and this is its completion.
pub(crate) unsafe fn done(req: *mut uv_fs_t, mut result: Result<u32, Errno>) {
    // SAFETY: the caller vouches for it. The callback may free the request.
    unsafe {
        let stat = take_stat(req, result.is_ok());
        let op = Op::from_raw((*req).fs_type);
        if (*req).req.key == CANCELLED {
            result = result.map_err(|_| Errno::ECANCELED);
        } else if op.is_some_and(|op| is_for_the_pool(req, op, result)) {
            // What is written so far; see `ops::transfer`.
            (*req).result = result.unwrap_or(0) as isize;
            let code = request::submit_to_pool(req);
            if code == 0 {
                return;
            }
            result = result.map_err(|_| Errno::from_code(code));
        }
        let result = match (result, stat) {
            (Ok(_), Some(stat)) => ops::stored(req, Ok(stat)),
            (Ok(value), None) => Ok(value as isize),
            (Err(error), _) if op == Some(Op::Close) && file::is_gone_with(error) => Ok(0),
            (Err(error), _) => Err(error),
        };
        (*req).result = result.unwrap_or_else(|error| error.code() as isize);
        request::release_buffers(req);
        request::done(req, 0);
    }
}
