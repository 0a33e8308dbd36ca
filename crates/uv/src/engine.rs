//! Access to the engine behind a `uv_loop_t`.
//!
//! At most one reference to an engine exists at a time, and none while user code runs. Debug builds
//! assert the former.

use crate::abi::{uv_handle_t, uv_loop_t};
use blacklight_engine::{Engine, Errno, IdleTime, Key, Mailbox, Token};
use blacklight_sys::fallible::Arc;
use std::ffi::c_int;

/// The state that `internal_fields` points to.
pub struct LoopState {
    pub(crate) engine: Engine,
    /// How many calls of `uv_run` are on the stack, one inside the other.
    pub(crate) runs: u32,
    /// The part of the loop that other threads use, which they must not reach through the engine.
    pub(crate) mailbox: Arc<Mailbox>,
    pub(crate) idle_time: Arc<IdleTime>,
    /// Whether the engine is lent, so that debug builds notice a second loan.
    #[cfg(debug_assertions)]
    pub(crate) is_lent: std::cell::Cell<bool>,
}

/// Marks the engine as lent until this is dropped.
#[cfg(debug_assertions)]
struct Lent(*const std::cell::Cell<bool>);

#[cfg(debug_assertions)]
impl Lent {
    /// # Safety
    ///
    /// As [`with`], and the loop stays until this is dropped.
    unsafe fn new(loop_: *const uv_loop_t) -> Lent {
        // SAFETY: the caller guarantees the loop.
        unsafe {
            let is_lent = &raw const (*(*loop_).internal_fields).is_lent;
            assert!(!(*is_lent).replace(true), "the engine is lent twice");
            Lent(is_lent)
        }
    }
}

#[cfg(debug_assertions)]
impl Drop for Lent {
    fn drop(&mut self) {
        // SAFETY: `new`'s caller guarantees that the loop still exists.
        unsafe { (*self.0).set(false) };
    }
}

/// Lends the loop's engine to `f`, and keeps the fields of the loop that C programs look at
/// in step with it.
///
/// # Safety
///
/// `loop_` is an initialised loop, used by this thread alone, and `f` calls no user code.
#[inline(always)]
pub(crate) unsafe fn with<R>(loop_: *mut uv_loop_t, f: impl FnOnce(&mut Engine) -> R) -> R {
    // SAFETY: the caller guarantees the loop. No other reference to the engine exists: only this
    // module makes them, and none outlives the call, in which no user code runs.
    unsafe {
        #[cfg(debug_assertions)]
        let _lent = Lent::new(loop_);
        let engine = &mut (*(*loop_).internal_fields).engine;
        engine.set_active_handles((*loop_).active_handles);
        let result = f(engine);
        (*loop_).active_handles = engine.active_handles();
        (*loop_).active_reqs.count = engine.active_requests();
        // Programs only compare the pointer with null, so any address will do.
        (*loop_).closing_handles = match engine.has_closing() {
            true => std::ptr::dangling_mut(),
            false => std::ptr::null_mut(),
        };
        result
    }
}

/// Lends the loop's engine to `f` for reading. Nothing of the loop is written: some programs query
/// a loop from a thread that does not own it, and must not change it by that.
///
/// # Safety
///
/// As [`with`].
#[inline(always)]
pub(crate) unsafe fn look<R>(loop_: *const uv_loop_t, f: impl FnOnce(&Engine) -> R) -> R {
    // SAFETY: the caller guarantees the loop, and no user code runs meanwhile.
    unsafe { f(&(*(*loop_).internal_fields).engine) }
}

/// As [`look`], with a handle's loop and key.
///
/// # Safety
///
/// As [`with_handle`].
#[inline(always)]
pub(crate) unsafe fn look_at_handle<R>(
    handle: *const uv_handle_t,
    f: impl FnOnce(&Engine, Key) -> R,
) -> R {
    // SAFETY: the caller guarantees both.
    unsafe {
        let key = Key::from_bits((*handle).key);
        look((*handle).loop_, |engine| f(engine, key))
    }
}

/// Lends the engine of a handle's loop to `f`, with the handle's key.
///
/// # Safety
///
/// `handle` was initialised, and its loop is as [`with`] asks.
#[inline(always)]
pub(crate) unsafe fn with_handle<R>(
    handle: *const uv_handle_t,
    f: impl FnOnce(&mut Engine, Key) -> R,
) -> R {
    // SAFETY: the caller guarantees both.
    unsafe {
        let key = Key::from_bits((*handle).key);
        with((*handle).loop_, |engine| f(engine, key))
    }
}

/// Whether the loop is open. One that was closed, or never initialised, has no engine, and programs
/// still run it, stop it and ask it for the time.
///
/// # Safety
///
/// `loop_` was initialised or is zeroed, and its memory is valid.
#[inline(always)]
pub(crate) unsafe fn is_open(loop_: *const uv_loop_t) -> bool {
    // SAFETY: the caller guarantees the memory.
    unsafe { !(*loop_).internal_fields.is_null() }
}

/// Whether a loop knows the handle. Programs also pass zeroed memory, and handles that were closed
/// and whose loop is gone: neither has a key.
///
/// # Safety
///
/// `handle` is initialised or zeroed.
#[inline(always)]
pub(crate) unsafe fn is_known(handle: *const uv_handle_t) -> bool {
    // SAFETY: the caller upholds the contract.
    unsafe { (*handle).key != NO_KEY }
}

/// The key of a handle that is closed or was never initialised. An engine makes none that is this.
pub(crate) const NO_KEY: u64 = 0;

/// As [`with_handle`], for a handle that perhaps no loop [knows](is_known): the answer is `unknown`
/// then.
///
/// # Safety
///
/// `handle` is initialised or zeroed, and its loop is as [`with`] asks.
#[inline(always)]
pub(crate) unsafe fn with_known<R>(
    handle: *const uv_handle_t,
    unknown: R,
    f: impl FnOnce(&mut Engine, Key) -> R,
) -> R {
    // SAFETY: the caller upholds the contract.
    unsafe {
        match is_known(handle) {
            true => with_handle(handle, f),
            false => unknown,
        }
    }
}

/// Fills in the fields that all handles have in common.
///
/// # Safety
///
/// `handle` is writable memory of at least a `uv_handle_t`'s size.
pub(crate) unsafe fn init(handle: *mut uv_handle_t, loop_: *mut uv_loop_t, type_: c_int, key: Key) {
    // SAFETY: the caller upholds the contract.
    unsafe {
        (*handle).loop_ = loop_;
        (*handle).type_ = type_;
        (*handle).close_cb = None;
        (*handle).key = key.to_bits();
        (*handle).flags = 0;
    }
}

/// A handle's token is its address.
pub(crate) fn token<T>(handle: *mut T) -> Token {
    Token(handle.expose_provenance() as u64)
}

/// The handle behind a token.
pub(crate) fn handle<T>(token: Token) -> *mut T {
    std::ptr::with_exposed_provenance_mut(token.0 as usize)
}

/// A result as one of libuv's error codes.
#[inline]
pub(crate) fn code(result: Result<(), Errno>) -> c_int {
    match result {
        Ok(()) => 0,
        Err(error) => error.code(),
    }
}
