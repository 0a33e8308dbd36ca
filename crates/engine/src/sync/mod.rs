//! The types by which threads synchronize: those of the standard library and of the system layer
//! or, under `cfg(loom)`, those with which loom tries every interleaving (see `models`).
//!
//! Code that has models takes its atomics, locks, wakers and threads only from here.

#[cfg(all(test, loom))]
mod modelled;

#[cfg(all(test, loom))]
pub(crate) use modelled::*;

#[cfg(not(all(test, loom)))]
mod real {
    use blacklight_sys::Errno;
    use blacklight_sys::fallible::Arc;
    pub(crate) use blacklight_sys::thread::{Body, Thread};
    use blacklight_sys::waker::Waker;
    pub(crate) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize};
    pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};
    pub(crate) use std::thread::{sleep, yield_now};

    /// The waker that a loop shares with its senders.
    pub(crate) type SharedWaker = Arc<Waker>;

    pub(crate) fn shared_waker() -> Result<SharedWaker, Errno> {
        Arc::try_new(Waker::new()?)
    }

    /// Executes this many spin-loop hints.
    pub(crate) fn pause(length: u32) {
        for _ in 0..length {
            std::hint::spin_loop();
        }
    }
}

#[cfg(not(all(test, loom)))]
pub(crate) use real::*;
