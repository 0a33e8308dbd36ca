//! Async handles.

use crate::abi::{UV_ASYNC, uv_async_cb, uv_async_t, uv_loop_t};
use crate::engine;
use blacklight_engine::{Errno, Ticket};
use std::ffi::c_int;
use std::sync::Arc;

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
        // The mailbox lives as long as the loop, and the loop longer than its handles.
        (*async_).mailbox = Arc::as_ptr(&(*(*loop_).internal_fields).mailbox);
        (*async_).ticket = ticket.to_bits();
    }
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn uv_async_send(async_: *mut uv_async_t) -> c_int {
    // SAFETY: the caller gives us an initialised handle, whose loop has not been closed. We
    // look at two fields that do not change, and at nothing of the engine. Should the loop be
    // closed over this very send, it waits until we are done with the mailbox.
    unsafe {
        let Some(mailbox) = (*async_).mailbox.as_ref() else {
            return Errno::EINVAL.code();
        };
        mailbox.send(Ticket::from_bits((*async_).ticket));
    }
    0
}
