//! Requests of the thread pool: `uv_queue_work`, `uv_cancel`, and the path of every such request to
//! a worker and back to its loop.
//!
//! A request is submitted with the function that does its work. A worker calls that function with
//! the request; then, on the loop's thread, [`done`] calls the module of the request's type.
//! Between the two the request belongs to the worker. The engine's key for the request is in the
//! request's private bytes, where `uv_cancel` finds it.

use crate::abi::{
    UV_FS, UV_GETADDRINFO, UV_GETNAMEINFO, UV_RANDOM, UV_WORK, UV_WRITE, uv_after_work_cb,
    uv_loop_t, uv_req_t, uv_work_cb, uv_work_t,
};
use crate::fs::ring::{CANCELLED, ON_RING};
use crate::{callbacks, dns, engine, random};
use blacklight_engine::{Errno, Job, RequestKey, WorkKind};
use std::ffi::{c_int, c_void};

/// Submits a request: a worker calls `work(req)`, and then the loop calls `done(req, status)`.
///
/// # Safety
///
/// The caller owns `loop_`. `req` is a request with its type filled in, which stays valid until its
/// completion; `work` is made for requests of that type and touches nothing that the loop's thread
/// uses meanwhile.
pub(crate) unsafe fn submit(
    loop_: *mut uv_loop_t,
    req: *mut uv_req_t,
    kind: WorkKind,
    work: unsafe extern "C" fn(*mut c_void),
) -> c_int {
    // SAFETY: the caller upholds the contract. The key is written before another thread could read
    // it: workers never do.
    unsafe {
        let job = Job::raw(work, req.cast());
        let token = engine::token(req);
        let label = callbacks::request_kind((*req).type_);
        match engine::with(loop_, |engine| {
            engine.work_submit_as(token, kind, label, job)
        }) {
            Ok(key) => (*req).key = key.to_bits(),
            Err((error, _)) => return error.code(),
        }
    }
    0
}

/// Completes a request in the module of its type. `status` is 0, or `UV_ECANCELED` if no worker has
/// run the request.
///
/// # Safety
///
/// `req` was submitted, and this is its completion.
pub(crate) unsafe fn done(req: *mut uv_req_t, status: c_int) {
    // SAFETY: the type says what the request is; the program keeps it valid up to the call.
    unsafe {
        match (*req).type_ {
            UV_WORK => {
                let work = req.cast::<uv_work_t>();
                if let Some(cb) = (*work).after_work_cb {
                    cb(work, status);
                }
            }
            UV_FS => crate::fs::done(req.cast(), status),
            UV_GETADDRINFO => dns::getaddrinfo_done(req.cast(), status),
            UV_GETNAMEINFO => dns::getnameinfo_done(req.cast(), status),
            UV_RANDOM => random::done(req.cast(), status),
            _ => {}
        }
    }
}

/// The worker's part of `uv_queue_work`.
unsafe extern "C" fn run(req: *mut c_void) {
    // SAFETY: `uv_queue_work` has filled in and submitted the request, with a callback.
    unsafe {
        let work = req.cast::<uv_work_t>();
        if let Some(cb) = (*work).work_cb {
            cb(work);
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_queue_work(
    loop_: *mut uv_loop_t,
    req: *mut uv_work_t,
    work_cb: uv_work_cb,
    after_work_cb: uv_after_work_cb,
) -> c_int {
    if work_cb.is_none() {
        return Errno::EINVAL.code();
    }
    // SAFETY: the caller passes its own loop and a request that it keeps valid.
    unsafe {
        (*req).req.type_ = UV_WORK;
        (*req).loop_ = loop_;
        (*req).work_cb = work_cb;
        (*req).after_work_cb = after_work_cb;
        submit(loop_, req.cast(), WorkKind::Cpu, run)
    }
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn uv_cancel(req: *mut uv_req_t) -> c_int {
    // SAFETY: the caller passes a request that was submitted, so that its type and its loop are
    // filled in.
    unsafe {
        let loop_ = match (*req).type_ {
            UV_WORK | UV_GETADDRINFO | UV_GETNAMEINFO | UV_RANDOM => {
                (*req.cast::<uv_work_t>()).loop_
            }
            UV_FS => (*req.cast::<uv_fs_head>()).loop_,
            UV_WRITE => return crate::stream::cancel(req.cast()),
            _ => return Errno::EINVAL.code(),
        };
        let (key, token) = ((*req).key, engine::token(req));
        if key == CANCELLED {
            return 0;
        }
        let cancelled = engine::with(loop_, |engine| match key {
            ON_RING => engine.ring_cancel(token),
            key => engine.work_cancel(RequestKey::from_bits(key)),
        });
        if cancelled.is_ok() {
            (*req).key = CANCELLED;
        }
        engine::code(cancelled)
    }
}

/// The fields that a file request begins with.
#[repr(C)]
struct uv_fs_head {
    req: uv_req_t,
    fs_type: c_int,
    loop_: *mut uv_loop_t,
}

const _: () = assert!(std::mem::offset_of!(uv_fs_head, loop_) == 72);

/// Finishes the queued work before the process ends or the library is unloaded: worker threads must
/// not outlive the library, and a submitted write is not lost to an `exit`.
extern "C" fn at_exit() {
    blacklight_engine::shut_down_pool();
    blacklight_engine::remove_record();
}

#[used]
// SAFETY: the section holds pointers to functions of this type, which the loader calls when the
// process ends or the library is unloaded.
#[unsafe(link_section = ".fini_array")]
static AT_EXIT: extern "C" fn() = at_exit;
