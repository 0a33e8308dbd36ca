//! State of the process that changes under a lock which `fork` waits for.
//!
//! A child made by `fork` has a copy of every lock, held or not, and none of the threads that
//! could open it. What a child can begin anew is a [`PerProcess`](crate::per_process::PerProcess)
//! value; what it has to go on with is a [`ForkLocked`] one. The rules:
//!
//! - All such values share one lock, which is held for a few instructions: never while anything else
//!   is waited for, and never while code of the program's is called.
//! - All signals are held back meanwhile: a handler of the program's might fork, and would wait for
//!   the thread that it has interrupted.
//! - Nobody waits for another to have the handlers of forks registered, since in a child of that
//!   moment it would wait for ever. They may so be registered more than once: of those that one
//!   fork calls the first locks, and the last unlocks.
//!
//! <https://man7.org/linux/man-pages/man3/pthread_atfork.3.html>

use crate::signal::{HeldBack, hold_back_all};
use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize};

struct Mutex(UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: it is made to be shared.
unsafe impl Sync for Mutex {}

static MUTEX: Mutex = Mutex(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER));

/// The thread that has locked it to fork, and how many handlers it has called.
static FORKING: AtomicUsize = AtomicUsize::new(0);
static CALLED: AtomicU32 = AtomicU32::new(0);

fn lock() {
    // SAFETY: the mutex is static and initialised.
    unsafe { libc::pthread_mutex_lock(MUTEX.0.get()) };
}

fn unlock() {
    // SAFETY: this thread has locked it, perhaps before a fork.
    unsafe { libc::pthread_mutex_unlock(MUTEX.0.get()) };
}

/// The calling thread, by a name that it has in a child as well.
fn this_thread() -> usize {
    // SAFETY: it takes no arguments and cannot fail.
    unsafe { libc::pthread_self() as usize }
}

extern "C" fn before_fork() {
    // Nobody else writes our name there.
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
        // wait, which hurts only a child of an unlucky moment.
        unsafe { libc::pthread_atfork(Some(before_fork), Some(after_fork), Some(after_fork)) };
        REGISTERED.store(true, Release);
    }
}

/// A value of the process that a child goes on with. See the module for the rules.
pub struct ForkLocked<T>(UnsafeCell<T>);

// SAFETY: the lock guards the value.
unsafe impl<T: Send> Sync for ForkLocked<T> {}

impl<T> ForkLocked<T> {
    /// Nobody has it.
    pub const fn new(value: T) -> ForkLocked<T> {
        ForkLocked(UnsafeCell::new(value))
    }

    /// The value, for a few instructions. Whoever has one such value must not ask for another.
    pub fn lock(&self) -> ForkGuard<'_, T> {
        register();
        let mask = hold_back_all();
        lock();
        // SAFETY: whoever has the lock has the value for itself.
        let value = unsafe { &mut *self.0.get() };
        ForkGuard { value, mask }
    }
}

impl<T> std::fmt::Debug for ForkLocked<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ForkLocked")
    }
}

/// The lock, and the value.
pub struct ForkGuard<'a, T> {
    value: &'a mut T,
    mask: HeldBack,
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

    /// Forks, and whether the child could use the value in time.
    fn fork_and_lock(value: &ForkLocked<[u64; 2]>) -> bool {
        // SAFETY: the child takes a lock, looks at memory and leaves without running destructors.
        unsafe {
            let child = libc::fork();
            if child == 0 {
                libc::alarm(20);
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

    /// Threads that come first at the same moment each register the handlers.
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
