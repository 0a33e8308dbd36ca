//! State of the process behind a lock that `fork` acquires.
//!
//! A child made by `fork` has a copy of every lock, held or not, and none of the threads that could
//! release it. State that a child can rebuild is a [`PerProcess`](crate::per_process::PerProcess)
//! value; state that a child has to inherit is a [`ForkLocked`] one. Invariants:
//!
//! - All such values share one lock, which is held for a few instructions: never while waiting for
//!   anything else, and never while the program's code runs.
//! - The holder blocks all signals: a handler of the program's might fork, and would wait for the
//!   thread that it has interrupted.
//! - No thread waits for another to register the fork handlers, since in a child forked at that
//!   moment it would wait for ever. The handlers may therefore be registered more than once: of
//!   those that one fork calls, the first locks and the last unlocks.
//!
//! <https://man7.org/linux/man-pages/man3/pthread_atfork.3.html>

use crate::signal::{SavedMask, block_all};
use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize};

struct Mutex(UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: a pthread mutex may be used by several threads.
unsafe impl Sync for Mutex {}

static MUTEX: Mutex = Mutex(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER));

/// The thread that has locked the mutex to fork, and how many handlers it has run.
static FORKING: AtomicUsize = AtomicUsize::new(0);
static CALLED: AtomicU32 = AtomicU32::new(0);

fn lock() {
    // SAFETY: the mutex is static and initialised.
    unsafe { libc::pthread_mutex_lock(MUTEX.0.get()) };
}

fn unlock() {
    // SAFETY: this thread has locked the mutex, perhaps before a fork.
    unsafe { libc::pthread_mutex_unlock(MUTEX.0.get()) };
}

/// The calling thread's identifier, which is the same in a forked child.
fn this_thread() -> usize {
    // SAFETY: the function takes no arguments and cannot fail.
    unsafe { libc::pthread_self() as usize }
}

extern "C" fn before_fork() {
    // No other thread stores this thread's identifier.
    if FORKING.load(Relaxed) != this_thread() {
        lock();
        FORKING.store(this_thread(), Relaxed);
    }
    CALLED.fetch_add(1, Relaxed);
}

extern "C" fn after_fork() {
    if FORKING.load(Relaxed) == this_thread() && CALLED.fetch_sub(1, Relaxed) == 1 {
        FORKING.store(0, Relaxed);
        unlock();
    }
}

fn register() {
    static REGISTERED: AtomicBool = AtomicBool::new(false);
    if !REGISTERED.load(Acquire) {
        // SAFETY: the handlers do only what a child may do. Without memory for them forks do not
        // take the lock, which harms only a child forked while a thread holds it.
        unsafe { libc::pthread_atfork(Some(before_fork), Some(after_fork), Some(after_fork)) };
        REGISTERED.store(true, Release);
    }
}

/// State of the process that a child inherits. See the module's invariants.
pub struct ForkLocked<T>(UnsafeCell<T>);

// SAFETY: the lock guards the value.
unsafe impl<T: Send> Sync for ForkLocked<T> {}

impl<T> ForkLocked<T> {
    /// An unlocked value.
    pub const fn new(value: T) -> ForkLocked<T> {
        ForkLocked(UnsafeCell::new(value))
    }

    /// Locks the value, for a few instructions. A thread must not lock a second one meanwhile.
    pub fn lock(&self) -> ForkGuard<'_, T> {
        register();
        let mask = block_all();
        lock();
        // SAFETY: the holder of the lock has exclusive access to the value.
        let value = unsafe { &mut *self.0.get() };
        ForkGuard { value, mask }
    }
}

impl<T> std::fmt::Debug for ForkLocked<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ForkLocked")
    }
}

/// Exclusive access to the value; unlocks when dropped.
pub struct ForkGuard<'a, T> {
    value: &'a mut T,
    mask: SavedMask,
}

impl<T> Deref for ForkGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value
    }
}

impl<T> DerefMut for ForkGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.value
    }
}

impl<T> Drop for ForkGuard<'_, T> {
    fn drop(&mut self) {
        unlock();
        self.mask.restore();
    }
}

impl<T> std::fmt::Debug for ForkGuard<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ForkGuard")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    /// Forks, and returns whether the child could lock the value in time.
    fn fork_and_lock(value: &ForkLocked<[u64; 2]>) -> bool {
        // SAFETY: the child takes a lock, reads memory and exits without running destructors.
        unsafe {
            let child = libc::fork();
            if child == 0 {
                libc::alarm(60);
                let value = value.lock();
                libc::_exit(i32::from(value[0] != value[1]));
            }
            let mut status = -1;
            assert_eq!(libc::waitpid(child, &mut status, 0), child);
            status == 0
        }
    }

    #[test]
    fn a_child_never_finds_the_lock_held_nor_a_change_half_made() {
        static VALUE: ForkLocked<[u64; 2]> = ForkLocked::new([0; 2]);
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !ended.load(Relaxed) {
                    let mut value = VALUE.lock();
                    value[0] += 1;
                    std::thread::yield_now();
                    value[1] += 1;
                }
            });
            let lived = (0..200).all(|_| fork_and_lock(&VALUE));
            ended.store(true, Relaxed);
            assert!(lived);
        });
    }

    /// Threads that arrive first at the same moment each register the handlers.
    #[test]
    fn handlers_that_are_registered_twice_lock_once() {
        static VALUE: ForkLocked<[u64; 2]> = ForkLocked::new([0; 2]);
        for _ in 0..2 {
            // SAFETY: as in `register`.
            unsafe { libc::pthread_atfork(Some(before_fork), Some(after_fork), Some(after_fork)) };
        }
        let start = Barrier::new(2);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    start.wait();
                    assert!((0..20).all(|_| fork_and_lock(&VALUE)));
                });
            }
        });
        assert_eq!(*VALUE.lock(), [0; 2], "the parent can lock it too");
    }
}
