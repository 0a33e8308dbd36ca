//! Values that each process has one of, and that a child made by `fork` does not inherit.
//!
//! A thread pool does not survive fork(2): the child has none of the threads, and any lock may have
//! been held by one of them. So the child starts without the value and makes its own; the parent's
//! copy in its memory is never freed.
//!
//! <https://man7.org/linux/man-pages/man3/pthread_atfork.3.html>

use crate::{Errno, fallible};
use std::ptr;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64};

/// The number of forks between this process and the one that loaded the library, counted since the
/// first [`watch_forks`].
static GENERATION: AtomicU64 = AtomicU64::new(0);

/// Runs in the child, where only async-signal-safe calls are allowed.
extern "C" fn in_child() {
    GENERATION.fetch_add(1, Relaxed);
}

/// A number that differs between a parent and its forked child, provided that the parent has made a
/// [`PerProcess`] value before, or has called [`watch_forks`].
#[inline]
pub fn generation() -> u64 {
    GENERATION.load(Relaxed)
}

/// Counts forks from now on. Threads that call this at the same time may each register the handler,
/// and a child then counts more than one step, which is harmless. None waits for another, since in
/// a child forked at that moment it would wait for ever.
pub fn watch_forks() {
    static WATCHED: AtomicBool = AtomicBool::new(false);
    if !WATCHED.load(Acquire) {
        // SAFETY: the handler does only what a child may do. Without memory for the registration
        // forks go unnoticed, which harms only a child that uses the pool.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
        WATCHED.store(true, Release);
    }
}

/// A value made on first use in each process. It lives as long as the process.
pub struct PerProcess<T: 'static> {
    made: AtomicPtr<Made<T>>,
}

struct Made<T> {
    generation: u64,
    value: T,
    /// The parent's value, which one of its threads may have been changing: never read, but kept
    /// reachable for leak checkers.
    _inherited: *const Made<T>,
}

impl<T: Send + Sync> PerProcess<T> {
    /// No value yet.
    pub const fn new() -> PerProcess<T> {
        PerProcess {
            made: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// This process's value, if it has been made.
    #[inline]
    pub fn get(&self) -> Option<&'static T> {
        // SAFETY: the pointer is null or came from `Box::into_raw` and is never freed.
        let made: Option<&'static Made<T>> = unsafe { self.made.load(Acquire).as_ref() };
        made.filter(|made| made.generation == generation())
            .map(|made| &made.value)
    }

    /// This process's value, made by `make` if there is none. Threads that call this at the same
    /// time may each make one; all get the same one, and the others are dropped.
    #[inline]
    pub fn get_or_make(&self, make: impl FnOnce() -> T) -> Result<&'static T, Errno> {
        match self.get() {
            Some(value) => Ok(value),
            None => self.make(make()),
        }
    }

    #[cold]
    fn make(&self, value: T) -> Result<&'static T, Errno> {
        watch_forks();
        let generation = generation();
        let fresh = Box::into_raw(fallible::try_box(Made {
            generation,
            value,
            _inherited: self.made.load(Acquire),
        })?);
        let mut before = self.made.load(Acquire);
        loop {
            // SAFETY: as in `get`.
            if let Some(made) = unsafe { before.as_ref() }
                && made.generation == generation
            {
                // SAFETY: the pointer came from `Box::into_raw` above, and no other thread has seen
                // it.
                drop(unsafe { Box::from_raw(fresh) });
                return Ok(&made.value);
            }
            match self
                .made
                .compare_exchange_weak(before, fresh, AcqRel, Acquire)
            {
                // SAFETY: as in `get`.
                Ok(_) => return Ok(unsafe { &(*fresh).value }),
                Err(now) => before = now,
            }
        }
    }
}

impl<T: Send + Sync> Default for PerProcess<T> {
    fn default() -> PerProcess<T> {
        PerProcess::new()
    }
}

impl<T> std::fmt::Debug for PerProcess<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PerProcess")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn threads_agree_on_one_value() {
        static VALUE: PerProcess<Mutex<u32>> = PerProcess::new();
        assert!(VALUE.get().is_none());
        std::thread::scope(|scope| {
            for at in 0..8 {
                scope.spawn(move || {
                    *VALUE.get_or_make(|| Mutex::new(0)).unwrap().lock().unwrap() += at
                });
            }
        });
        assert_eq!(*VALUE.get().unwrap().lock().unwrap(), 28);
    }

    #[test]
    fn a_child_has_its_own() {
        static VALUE: PerProcess<u32> = PerProcess::new();
        assert_eq!(VALUE.get_or_make(|| 1), Ok(&1));
        // SAFETY: the child touches atomics and allocates a few bytes, which glibc allows after
        // fork, and exits without running destructors.
        unsafe {
            let child = libc::fork();
            if child == 0 {
                let fresh = VALUE.get().is_none() && VALUE.get_or_make(|| 2) == Ok(&2);
                libc::_exit(i32::from(!fresh));
            }
            let mut status = 0;
            assert_eq!(libc::waitpid(child, &mut status, 0), child);
            assert_eq!(status, 0);
        }
        assert_eq!(*VALUE.get().unwrap(), 1);
    }
}
