//! State that threads share and that forks leave usable.
//!
//! A process may be forked while another of its threads opens a module. The child has a copy of
//! the locks, and nobody who would ever unlock them. So forks take these locks first, as
//! `pthread_atfork` has it for.

use core::cell::UnsafeCell;
use std::sync::Once;

/// A value and its lock.
pub(crate) struct Guarded<T> {
    lock: UnsafeCell<libc::pthread_mutex_t>,
    value: UnsafeCell<T>,
}

// SAFETY: the value is only reached by `with`, under the lock.
unsafe impl<T: Send> Sync for Guarded<T> {}

impl<T> Guarded<T> {
    pub(crate) const fn new(value: T) -> Guarded<T> {
        Guarded {
            lock: UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER),
            value: UnsafeCell::new(value),
        }
    }

    /// Calls `work` with the value. It must not use the same state.
    pub(crate) fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        self.lock();
        // SAFETY: the lock is held, so nobody else has a reference.
        let result = work(unsafe { &mut *self.value.get() });
        self.unlock();
        result
    }

    fn lock(&self) {
        // SAFETY: the lock is initialised, never moved, and this thread does not hold it.
        unsafe { libc::pthread_mutex_lock(self.lock.get()) };
    }

    fn unlock(&self) {
        // SAFETY: this thread holds the lock; in a child, the thread that forked does.
        unsafe { libc::pthread_mutex_unlock(self.lock.get()) };
    }
}

/// Has forks wait until no thread uses the state of this object. The order is that in which threads
/// take the locks.
pub(crate) fn survive_forks() {
    extern "C" fn before() {
        crate::modules::EXAMINED.lock();
        crate::patch::KEPT.lock();
        crate::report::SAID.lock();
    }
    extern "C" fn after() {
        crate::report::SAID.unlock();
        crate::patch::KEPT.unlock();
        crate::modules::EXAMINED.unlock();
    }
    static ONCE: Once = Once::new();
    // SAFETY: the handlers live as long as this object, which is never unloaded.
    ONCE.call_once(|| unsafe {
        libc::pthread_atfork(Some(before), Some(after), Some(after));
    });
}

#[cfg(test)]
mod tests {
    use super::survive_forks;
    use crate::modules::EXAMINED;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn a_child_that_is_forked_while_a_thread_is_at_work_is_not_held_up() {
        survive_forks();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    EXAMINED.with(|_| (0..10_000).for_each(|_| std::hint::spin_loop()));
                }
            });
            let statuses: Vec<i32> = (0..50).map(|_| status_of_child()).collect();
            is_over.store(true, Ordering::Relaxed);
            assert_eq!(statuses, [0; 50]);
        });
    }

    fn status_of_child() -> i32 {
        let mut status = -1;
        // SAFETY: the child only takes the lock and ends, or is ended by the alarm.
        unsafe {
            let child = libc::fork();
            if child == 0 {
                libc::alarm(60);
                EXAMINED.with(|_| ());
                libc::_exit(0);
            }
            libc::waitpid(child, &raw mut status, 0);
        }
        status
    }
}
