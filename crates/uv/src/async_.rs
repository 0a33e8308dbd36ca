//! Async handles.

use crate::abi::{UV_ASYNC, uv_async_cb, uv_async_t, uv_loop_t};
use crate::engine;
use blacklight_engine::{Errno, Ticket};
use blacklight_sys::fallible::Arc;
use std::ffi::c_int;
use std::sync::atomic::Ordering::Relaxed;

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_async_init(
    loop_: *mut uv_loop_t,
    async_: *mut uv_async_t,
    async_cb: uv_async_cb,
) -> c_int {
    // SAFETY: the caller gives us a loop and memory for a handle.
    unsafe {
        let token = engine::token(async_);
        let (key, ticket) = match engine::with(loop_, |engine| engine.async_init(token)) {
            Ok(made) => made,
            Err(error) => return error.code(),
        };
        engine::init(async_.cast(), loop_, UV_ASYNC, key);
        (*async_).async_cb = async_cb;
        let mailbox = Arc::as_ptr(&(*(*loop_).internal_fields).mailbox);
        (*async_).mailbox.store(mailbox.cast_mut(), Relaxed);
        (*async_).ticket.store(ticket.to_bits(), Relaxed);
        (*async_).gate.open();
    }
    0
}

/// A handle that is closing, or closed, is no longer sent to: only its own memory is looked at,
/// as the loop may be gone.
#[unsafe(no_mangle)]
unsafe extern "C" fn uv_async_send(async_: *mut uv_async_t) -> c_int {
    // SAFETY: the caller gives us a handle that was initialised, perhaps closed, or zeroed. We
    // look at three atomics of it, and at nothing of the engine. The mailbox lives as long as
    // the loop, and the loop is closed after its handles, which wait for us to leave the gate.
    unsafe {
        if !(*async_).gate.enter() {
            return match (*async_).mailbox.load(Relaxed).is_null() {
                true => Errno::EINVAL.code(),
                false => 0,
            };
        }
        let mailbox = &*(*async_).mailbox.load(Relaxed);
        mailbox.send(Ticket::from_bits((*async_).ticket.load(Relaxed)));
        (*async_).gate.leave();
    }
    0
}

/// Refuses senders from now on, and waits for those on their way.
///
/// # Safety
///
/// `async_` was initialised.
pub(crate) unsafe fn close(async_: *mut uv_async_t) {
    // SAFETY: the caller vouches for it.
    unsafe { (*async_).gate.close() }
}
