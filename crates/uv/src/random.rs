//! `uv_random`: random bytes from the kernel.

use crate::abi::{UV_RANDOM, uv_loop_t, uv_random_cb, uv_random_t};
use crate::{engine, work};
use blacklight_engine::{Errno, WorkKind};
use blacklight_sys::random;
use std::ffi::{c_int, c_uint, c_void};
use std::mem::MaybeUninit;

/// # Safety
///
/// `buf` is writable for `buflen` bytes, or there are none.
unsafe fn fill(buf: *mut c_void, buflen: usize) -> c_int {
    if buflen == 0 {
        return 0;
    }
    // SAFETY: the caller guarantees the buffer, and that nothing else uses it meanwhile.
    let buffer = unsafe { std::slice::from_raw_parts_mut(buf.cast::<MaybeUninit<u8>>(), buflen) };
    engine::code(random::fill(buffer))
}

/// The worker's part.
unsafe extern "C" fn run(req: *mut c_void) {
    // SAFETY: `uv_random` has filled in and submitted the request.
    unsafe {
        let req = req.cast::<uv_random_t>();
        (*req).status = fill((*req).buf, (*req).buflen);
    }
}

/// # Safety
///
/// As for [`work::done`].
pub(crate) unsafe fn done(req: *mut uv_random_t, status: c_int) {
    // SAFETY: the caller guarantees the request.
    unsafe {
        if status != 0 {
            (*req).status = status;
        }
        if let Some(cb) = (*req).cb {
            cb(req, (*req).status, (*req).buf, (*req).buflen);
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_random(
    loop_: *mut uv_loop_t,
    req: *mut uv_random_t,
    buf: *mut c_void,
    buflen: usize,
    flags: c_uint,
    cb: uv_random_cb,
) -> c_int {
    if buflen > c_int::MAX as usize {
        return Errno::E2BIG.code();
    }
    if flags != 0 {
        return Errno::EINVAL.code();
    }
    // SAFETY: the caller passes a buffer and, with a callback, its own loop and a
    // request, all of which it keeps valid.
    unsafe {
        if cb.is_none() {
            return fill(buf, buflen);
        }
        (*req).req.type_ = UV_RANDOM;
        (*req).loop_ = loop_;
        (*req).status = 0;
        (*req).buf = buf;
        (*req).buflen = buflen;
        (*req).cb = cb;
        work::submit(loop_, req.cast(), WorkKind::Cpu, run)
    }
}
