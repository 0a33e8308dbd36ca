//! The shared types on top of loom's.
//!
//! - loom treats sequentially consistent accesses as acquire and release only, but models fences
//!   fully. So each such access has a fence before it, as compilers generate for processors without
//!   sequentially consistent accesses.
//! - A thread may be [stopped](stopped_after) for ever before any access: preempted, or left
//!   behind by a fork.
//! - Waiting for the waker blocks the modelled thread.

use blacklight_sys::Errno;
use blacklight_sys::fallible::Arc;
pub(crate) use blacklight_sys::thread::Body;
use blacklight_sys::waker::Waker;
use loom::sync::atomic::{Ordering, fence};
pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};
pub(crate) use loom::thread::yield_now;
use std::cell::Cell;
use std::ops::Deref;
use std::sync::OnceLock;
use std::time::Duration;

loom::thread_local! {
    /// How many accesses this thread may still make.
    static LEFT: Cell<u32> = Cell::new(u32::MAX);
}

/// The payload with which a stopped thread unwinds.
struct Stopped;

/// Counts one access, and stops the thread if it has no access left.
fn step(order: Ordering) {
    let is_stopped = LEFT.with(|left| {
        let before = left.get();
        left.set(before.saturating_sub(1));
        before == 0
    });
    if is_stopped {
        std::panic::resume_unwind(Box::new(Stopped));
    }
    if order == Ordering::SeqCst {
        fence(Ordering::SeqCst);
    }
}

/// Runs `work` until this thread has made so many accesses. Returns whether `work` was finished.
pub(crate) fn stopped_after(accesses: u32, work: impl FnOnce()) -> bool {
    LEFT.with(|left| left.set(accesses));
    let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
    LEFT.with(|left| left.set(u32::MAX));
    match done {
        Ok(()) => true,
        Err(reason) if reason.is::<Stopped>() => false,
        Err(reason) => std::panic::resume_unwind(reason),
    }
}

macro_rules! atomic {
    ($name:ident, $value:ty) => {
        #[derive(Debug, Default)]
        pub(crate) struct $name(loom::sync::atomic::$name);

        #[allow(dead_code)]
        impl $name {
            pub(crate) fn new(value: $value) -> $name {
                $name(loom::sync::atomic::$name::new(value))
            }

            pub(crate) fn load(&self, order: Ordering) -> $value {
                step(order);
                self.0.load(order)
            }

            pub(crate) fn store(&self, value: $value, order: Ordering) {
                step(order);
                self.0.store(value, order);
            }

            pub(crate) fn swap(&self, value: $value, order: Ordering) -> $value {
                step(order);
                self.0.swap(value, order)
            }

            pub(crate) fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                step(success);
                self.0.compare_exchange(current, new, success, failure)
            }

            pub(crate) fn compare_exchange_weak(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.compare_exchange(current, new, success, failure)
            }

            pub(crate) fn fetch_update(
                &self,
                success: Ordering,
                failure: Ordering,
                mut change: impl FnMut($value) -> Option<$value>,
            ) -> Result<$value, $value> {
                let mut before = self.load(failure);
                while let Some(after) = change(before) {
                    match self.compare_exchange(before, after, success, failure) {
                        Ok(before) => return Ok(before),
                        Err(now) => before = now,
                    }
                }
                Err(before)
            }
        }
    };
}

macro_rules! arithmetic {
    ($name:ident, $value:ty: $($method:ident)*) => {
        #[allow(dead_code)]
        impl $name {
            $(
                pub(crate) fn $method(&self, value: $value, order: Ordering) -> $value {
                    step(order);
                    self.0.$method(value, order)
                }
            )*
        }
    };
}

atomic!(AtomicBool, bool);
atomic!(AtomicU32, u32);
atomic!(AtomicU64, u64);
atomic!(AtomicUsize, usize);
arithmetic!(AtomicU32, u32: fetch_add fetch_sub fetch_or fetch_and);
arithmetic!(AtomicU64, u64: fetch_add fetch_sub fetch_or fetch_and);

/// The waker of a loop. A real waker serves the methods that are not modelled.
#[derive(Debug)]
pub(crate) struct SharedWaker {
    /// Made for its first use.
    real: OnceLock<Arc<Waker>>,
    count: Mutex<u64>,
    changed: Condvar,
}

pub(crate) fn shared_waker() -> Result<SharedWaker, Errno> {
    Ok(SharedWaker {
        real: OnceLock::new(),
        count: Mutex::new(0),
        changed: Condvar::new(),
    })
}

impl SharedWaker {
    pub(crate) fn signal(&self) {
        step(Ordering::Relaxed);
        let mut count = self.count.lock().unwrap();
        *count += 1;
        if *count == 1 {
            self.changed.notify_one();
        }
    }

    /// Waits for a signal and resets the count.
    pub(crate) fn wait(&self) {
        let mut count = self.count.lock().unwrap();
        while *count == 0 {
            count = self.changed.wait(count).unwrap();
        }
        *count = 0;
    }

    /// Resets the count, as a child does after a fork.
    pub(crate) fn renew(&self) -> Result<(), Errno> {
        *self.count.lock().unwrap() = 0;
        Ok(())
    }
}

impl Deref for SharedWaker {
    type Target = Arc<Waker>;

    fn deref(&self) -> &Arc<Waker> {
        let real = || Arc::try_new(Waker::new().unwrap()).unwrap();
        self.real.get_or_init(real)
    }
}

/// A modelled thread.
#[derive(Debug)]
pub(crate) struct Thread<T> {
    handle: loom::thread::JoinHandle<()>,
    body: Arc<T>,
}

impl<T: Body> Thread<T> {
    pub(crate) fn start(_stack_size: usize, body: Arc<T>) -> Result<Thread<T>, Errno> {
        let own = body.clone();
        let handle = loom::thread::spawn(move || own.run());
        Ok(Thread { handle, body })
    }

    pub(crate) fn body(&self) -> &T {
        &self.body
    }

    pub(crate) fn join(self) -> Arc<T> {
        self.handle.join().unwrap();
        self.body
    }
}

/// Yields to other threads; there is no modelled time.
pub(crate) fn sleep(_: Duration) {
    yield_now();
}

pub(crate) fn pause(_length: u32) {
    yield_now();
}
