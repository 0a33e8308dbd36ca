//! The life of a request: a function fills it in, runs it at once or submits it, and the program
//! cleans it up.
//!
//! A request owns:
//!
//! | field | owned | until |
//! | --- | --- | --- |
//! | `path`, `new_path` | with a callback, or if the path is a template to be filled in; one piece of memory for both | `uv_fs_req_cleanup` |
//! | `bufs` | with a callback and more than four buffers | it has run, or `uv_fs_req_cleanup` |
//! | `ptr` | names, links, `uv_statfs_t`: see [`release_ptr`] | `uv_fs_req_cleanup` |
//!
//! A field becomes null when its memory is freed, so a second clean-up does nothing.

use super::abi::{Op, uv_fs_cb, uv_fs_t};
use super::{dirs, ops, ring};
use crate::abi::{UV_FS, uv_loop_t};
use crate::{alloc, work};
use blacklight_engine::{Errno, WorkKind};
use blacklight_sys::buffer::MAX_BYTES;
use blacklight_sys::fs::io::Buffer;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr::{dangling_mut, null_mut};

/// The arguments that all operations have in common.
pub(super) struct Call {
    pub(super) loop_: *mut uv_loop_t,
    pub(super) req: *mut uv_fs_t,
    pub(super) cb: uv_fs_cb,
}

impl Call {
    /// Fills in the fields that all requests have in common. Fails without a request.
    ///
    /// # Safety
    ///
    /// The request is null or memory for one.
    unsafe fn begin(&self, op: Op) -> Result<*mut uv_fs_t, Errno> {
        let req = self.req;
        if req.is_null() {
            return Err(Errno::EINVAL);
        }
        // SAFETY: the caller upholds the contract.
        unsafe {
            (*req).req.type_ = UV_FS;
            (*req).fs_type = op as c_int;
            (*req).loop_ = self.loop_;
            (*req).cb = self.cb;
            (*req).result = 0;
            (*req).ptr = null_mut();
            (*req).path = null_mut();
            (*req).new_path = null_mut();
            (*req).bufs = null_mut();
        }
        Ok(req)
    }

    /// A request about an open file.
    ///
    /// # Safety
    ///
    /// The request is null or memory for one, and with a callback it and the loop are as the pool
    /// requires them; `fill` writes to the request only.
    pub(super) unsafe fn on_file(
        self,
        op: Op,
        file: c_int,
        fill: impl FnOnce(*mut uv_fs_t),
    ) -> c_int {
        // SAFETY: the caller upholds the contract.
        unsafe {
            let req = match self.begin(op) {
                Ok(req) => req,
                Err(error) => return error.code(),
            };
            (*req).file = file;
            fill(req);
            run_or_submit(req)
        }
    }

    /// A request about a path.
    ///
    /// # Safety
    ///
    /// As for [`Call::on_file`], and the path is null or a C string.
    #[inline]
    pub(super) unsafe fn on_path(
        self,
        op: Op,
        path: *const c_char,
        fill: impl FnOnce(*mut uv_fs_t),
    ) -> c_int {
        // SAFETY: the caller upholds the contract.
        unsafe {
            let req = match self.begin(op) {
                Ok(req) => req,
                Err(error) => return error.code(),
            };
            if let Err(error) = take_path(req, op, path) {
                return error.code();
            }
            fill(req);
            run_or_submit(req)
        }
    }

    /// A request about two paths.
    ///
    /// # Safety
    ///
    /// As for [`Call::on_path`], for both paths.
    pub(super) unsafe fn on_paths(
        self,
        op: Op,
        path: *const c_char,
        new_path: *const c_char,
        flags: c_int,
    ) -> c_int {
        // SAFETY: the caller upholds the contract.
        unsafe {
            let req = match self.begin(op) {
                Ok(req) => req,
                Err(error) => return error.code(),
            };
            if let Err(error) = take_paths(req, path, new_path) {
                return error.code();
            }
            (*req).flags = flags;
            run_or_submit(req)
        }
    }

    /// A request to read or write.
    ///
    /// # Safety
    ///
    /// As for [`Call::on_file`], and the buffers are null or as the operation requires them, until
    /// the request is done.
    pub(super) unsafe fn on_buffers(
        self,
        op: Op,
        file: c_int,
        bufs: *const Buffer,
        nbufs: c_uint,
        offset: i64,
    ) -> c_int {
        // SAFETY: the caller upholds the contract.
        unsafe {
            let req = match self.begin(op) {
                Ok(req) => req,
                Err(error) => return error.code(),
            };
            // Linux could not write more than this in one call.
            if op == Op::Write && !bufs.is_null() && bytes(bufs, nbufs) > MAX_BYTES {
                return Errno::EINVAL.code();
            }
            if let Err(error) = take_buffers(req, bufs, nbufs) {
                return error.code();
            }
            (*req).file = file;
            (*req).off = offset;
            run_or_submit(req)
        }
    }

    /// A request about an open directory.
    ///
    /// # Safety
    ///
    /// As for [`Call::on_file`], and what `ptr` points to stays valid until the request is done.
    pub(super) unsafe fn on_ptr(self, op: Op, ptr: *mut c_void, is_valid: bool) -> c_int {
        // SAFETY: the caller upholds the contract.
        unsafe {
            let req = match self.begin(op) {
                Ok(req) => req,
                Err(error) => return error.code(),
            };
            if !is_valid {
                return Errno::EINVAL.code();
            }
            (*req).ptr = ptr;
            run_or_submit(req)
        }
    }

    /// Refuses the call, after filling in the request as if it had gone ahead.
    ///
    /// # Safety
    ///
    /// The request is null or memory for one.
    pub(super) unsafe fn refuse(self, op: Op, error: Errno) -> c_int {
        // SAFETY: the caller upholds the contract.
        match unsafe { self.begin(op) } {
            Ok(_) => error.code(),
            Err(error) => error.code(),
        }
    }
}

/// Submits a `stat` to the pool for this library's own purposes: the path is not copied, and there
/// is nothing to clean up.
///
/// # Safety
///
/// The request and the path stay valid until `cb` is called, and the caller owns the loop.
pub(crate) unsafe fn stat_for(
    req: *mut uv_fs_t,
    loop_: *mut uv_loop_t,
    path: *const c_char,
    cb: unsafe extern "C" fn(*mut uv_fs_t),
) -> c_int {
    let call = Call {
        loop_,
        req,
        cb: Some(cb),
    };
    // SAFETY: the caller upholds the contract.
    unsafe {
        if let Err(error) = call.begin(Op::Stat) {
            return error.code();
        }
        (*req).path = path;
        work::submit(loop_, req.cast(), WorkKind::FastIo, run)
    }
}

/// Whether the operation writes to its path, which is then a template.
fn is_template(op: Op) -> bool {
    matches!(op, Op::Mkdtemp | Op::Mkstemp)
}

/// Stores the path, or a copy of it if it has to outlive the call or is a template.
///
/// # Safety
///
/// The request is filled in, and the path is null or a C string.
unsafe fn take_path(req: *mut uv_fs_t, op: Op, path: *const c_char) -> Result<(), Errno> {
    if path.is_null() {
        return Err(Errno::EINVAL);
    }
    // SAFETY: the caller guarantees both.
    unsafe {
        (*req).path = match (*req).cb.is_some() || is_template(op) {
            false => path,
            true => {
                let text = CStr::from_ptr(path).to_bytes_with_nul();
                let copy = alloc::malloc(text.len()).cast::<u8>();
                if copy.is_null() {
                    return Err(Errno::ENOMEM);
                }
                copy.copy_from_nonoverlapping(text.as_ptr(), text.len());
                copy.cast()
            }
        };
    }
    Ok(())
}

/// Stores both paths, or copies of them in one piece of memory.
///
/// # Safety
///
/// The request is filled in, and each path is null or a C string.
unsafe fn take_paths(
    req: *mut uv_fs_t,
    path: *const c_char,
    new_path: *const c_char,
) -> Result<(), Errno> {
    if path.is_null() || new_path.is_null() {
        return Err(Errno::EINVAL);
    }
    // SAFETY: the caller guarantees all three.
    unsafe {
        if (*req).cb.is_none() {
            (*req).path = path;
            (*req).new_path = new_path;
            return Ok(());
        }
        let first = CStr::from_ptr(path).to_bytes_with_nul();
        let second = CStr::from_ptr(new_path).to_bytes_with_nul();
        let copy = alloc::malloc(first.len() + second.len()).cast::<u8>();
        if copy.is_null() {
            return Err(Errno::ENOMEM);
        }
        copy.copy_from_nonoverlapping(first.as_ptr(), first.len());
        let behind = copy.add(first.len());
        behind.copy_from_nonoverlapping(second.as_ptr(), second.len());
        (*req).path = copy.cast();
        (*req).new_path = behind.cast();
    }
    Ok(())
}

/// The number of bytes in all buffers.
///
/// # Safety
///
/// `bufs` points to `nbufs` buffers.
pub(super) unsafe fn bytes(bufs: *const Buffer, nbufs: c_uint) -> usize {
    // SAFETY: the caller guarantees the array.
    let bufs = unsafe { std::slice::from_raw_parts(bufs, nbufs as usize) };
    bufs.iter()
        .fold(0, |sum: usize, buf| sum.saturating_add(buf.iov_len))
}

/// Stores the array of buffers, or a copy of it if it has to outlive the call.
///
/// # Safety
///
/// The request is filled in, and `bufs` is null or an array of `nbufs`.
unsafe fn take_buffers(req: *mut uv_fs_t, bufs: *const Buffer, nbufs: c_uint) -> Result<(), Errno> {
    if bufs.is_null() || nbufs == 0 {
        return Err(Errno::EINVAL);
    }
    // SAFETY: the caller guarantees both.
    unsafe {
        (*req).nbufs = nbufs;
        if (*req).cb.is_none() {
            (*req).bufs = bufs.cast_mut();
            return Ok(());
        }
        let count = nbufs as usize;
        let small = (&raw mut (*req).bufsml).cast::<Buffer>();
        (*req).bufs = match count <= 4 {
            true => small,
            // An array larger than the address space cannot exist.
            false => match count.checked_mul(size_of::<Buffer>()) {
                Some(size) => alloc::malloc(size).cast(),
                None => null_mut(),
            },
        };
        if (*req).bufs.is_null() {
            return Err(Errno::ENOMEM);
        }
        (*req).bufs.copy_from_nonoverlapping(bufs, count);
    }
    Ok(())
}

/// Runs the request at once, or submits it to the ring or the pool if it has a callback.
///
/// # Safety
///
/// The request is complete, and with a callback it and its loop are as the pool requires them.
#[inline]
unsafe fn run_or_submit(req: *mut uv_fs_t) -> c_int {
    // SAFETY: the caller upholds the contract.
    unsafe {
        if (*req).cb.is_none() {
            ops::run(req);
            return (*req).result as c_int;
        }
        if ring::submit(req) {
            return 0;
        }
        let code = submit_to_pool(req);
        if code != 0 {
            release_path(req);
            release_buffers(req);
            (*req).ptr = null_mut();
        }
        code
    }
}

/// Submits the request to the pool.
///
/// # Safety
///
/// As for [`run_or_submit`], and the request has a callback.
pub(super) unsafe fn submit_to_pool(req: *mut uv_fs_t) -> c_int {
    // SAFETY: the caller upholds the contract.
    unsafe {
        // Programs only compare the pointer with null, so any address will do.
        (*req).work_req.done = dangling_mut();
        work::submit((*req).loop_, req.cast(), WorkKind::FastIo, run)
    }
}

/// The worker's part.
unsafe extern "C" fn run(req: *mut c_void) {
    // SAFETY: `run_or_submit` has submitted a complete request, which is the worker's until it is
    // done.
    unsafe { ops::run(req.cast()) }
}

/// The loop's part: calls the program's callback. `status` is 0, or an error if no worker has run
/// the request.
///
/// # Safety
///
/// The request was submitted, and this is its completion.
pub(crate) unsafe fn done(req: *mut uv_fs_t, status: c_int) {
    // SAFETY: the caller upholds the contract. The callback may free the request.
    unsafe {
        if status < 0 {
            (*req).result = status as isize;
        }
        if let Some(cb) = (*req).cb {
            cb(req);
        }
    }
}

/// # Safety
///
/// The request is filled in.
unsafe fn release_path(req: *mut uv_fs_t) {
    // SAFETY: the caller upholds the contract; `take_path` says when the request owns the memory.
    unsafe {
        let is_ours = (*req).cb.is_some() || Op::from_raw((*req).fs_type).is_some_and(is_template);
        if is_ours {
            alloc::free((*req).path.cast_mut().cast());
        }
        (*req).path = null_mut();
        (*req).new_path = null_mut();
    }
}

/// # Safety
///
/// The request is filled in.
pub(super) unsafe fn release_buffers(req: *mut uv_fs_t) {
    // SAFETY: the caller upholds the contract; `take_buffers` says when the request owns the
    // memory.
    unsafe {
        let is_small = (*req).bufs == (&raw mut (*req).bufsml).cast();
        if (*req).cb.is_some() && !is_small {
            alloc::free((*req).bufs.cast());
        }
        (*req).bufs = null_mut();
    }
}

/// Frees the memory that `ptr` points to, if the request owns it: a directory belongs to the
/// program, and `statbuf` is part of the request.
///
/// # Safety
///
/// The request is filled in and not in progress.
unsafe fn release_ptr(req: *mut uv_fs_t) {
    // SAFETY: the caller upholds the contract; each of these operations leaves its own kind of
    // memory in `ptr`.
    unsafe {
        match Op::from_raw((*req).fs_type) {
            Some(Op::Readlink | Op::Realpath | Op::Statfs) => alloc::free((*req).ptr),
            Some(Op::Scandir) => dirs::release_listing((*req).ptr),
            Some(Op::Readdir) => dirs::release_names((*req).ptr.cast(), (*req).result),
            _ => {}
        }
        (*req).ptr = null_mut();
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_fs_req_cleanup(req: *mut uv_fs_t) {
    if req.is_null() {
        return;
    }
    // SAFETY: the caller passes a request that is done or was refused.
    unsafe {
        release_path(req);
        release_buffers(req);
        release_ptr(req);
    }
}
