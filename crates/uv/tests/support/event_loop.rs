//! Loops for tests, and turns for tests of what a process has only once.
#![allow(dead_code, reason = "each test program uses the part that it needs")]

use std::sync::{Mutex, MutexGuard, PoisonError};
use uv_binding::{garbage, uv_loop_init, uv_loop_t};

/// Lets tests take turns that share signals, children, descriptors or the environment.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn new_loop() -> Box<uv_loop_t> {
    let mut loop_ = Box::new(garbage());
    // SAFETY: this is memory for a loop.
    assert_eq!(unsafe { uv_loop_init(&mut *loop_) }, 0);
    loop_
}

/// Makes a loop on the named poller.
///
/// # Safety
///
/// No other thread uses the environment: the tests take turns.
pub(crate) unsafe fn on_poller<L>(poller: &str, make: impl FnOnce() -> L) -> L {
    let before = std::env::var_os("BLACKLIGHT_POLLER");
    // SAFETY: the caller vouches for it.
    unsafe { std::env::set_var("BLACKLIGHT_POLLER", poller) };
    let made = make();
    match before {
        // SAFETY: as above.
        Some(before) => unsafe { std::env::set_var("BLACKLIGHT_POLLER", before) },
        // SAFETY: as above.
        None => unsafe { std::env::remove_var("BLACKLIGHT_POLLER") },
    }
    made
}
