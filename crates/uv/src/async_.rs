//! Async handles. A send touches only the handle's gate, ticket and mailbox, never the engine.

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
    // SAFETY: the caller passes a loop and memory for a handle.
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

/// Sending to a handle that is closing or closed does nothing. Only the handle's own memory is
/// read, as the loop may be gone.
#[unsafe(no_mangle)]
unsafe extern "C" fn uv_async_send(async_: *mut uv_async_t) -> c_int {
    // SAFETY: the caller passes a handle that is initialised, closed or zeroed. We read three
    // atomics of the handle, and nothing of the engine. The mailbox lives as long as the loop; a
    // loop closes after its handles, and closing a handle waits until senders have left the gate.
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

/// Refuses new senders, and waits for those inside the gate to leave.
///
/// # Safety
///
/// `async_` was initialised.
pub(crate) unsafe fn close(async_: *mut uv_async_t) {
    // SAFETY: the caller upholds the contract.
    unsafe { (*async_).gate.close() }
}

/// Calls the callback of a handle that was sent to.
///
/// # Safety
///
/// `async_` is open.
#[inline(always)]
pub(crate) unsafe fn received(async_: *mut uv_async_t) {
    // SAFETY: the caller guarantees the handle, which the callback may close.
    unsafe {
        if let Some(cb) = (*async_).async_cb {
            cb(async_);
        }
    }
}
