//! Locks of the C library, in memory that C programs own:
//! <https://man7.org/linux/man-pages/man7/pthreads.7.html>.
//!
//! Each type here has the layout of its pthread counterpart, since a C program may initialise one
//! with `uv_mutex_init` and use it with `pthread_mutex_lock`. A reference stands for an object that
//! is initialised and not yet destroyed. All state is inside an `UnsafeCell`, as other threads
//! change it at any time.
//!
//! An operation that the C library refuses is a bug of the program (destroying a held lock, or
//! raising a semaphore beyond its limit). These functions cannot report it, so they abort the
//! process, as libuv does.

use crate::{Errno, check, timespec};
use std::cell::UnsafeCell;
use std::ffi::{c_int, c_uint, c_void};
use std::mem::MaybeUninit;

/// Turns the error number that pthread functions return into a result.
pub(crate) fn check_number(number: c_int) -> Result<(), Errno> {
    match number {
        0 => Ok(()),
        number => Err(Errno::from_code(-number)),
    }
}

/// Aborts the process if the C library refused an operation that cannot fail in a correct program.
fn expect(result: Result<(), Errno>) {
    if result.is_err() {
        std::process::abort();
    }
}

macro_rules! wrapper {
    ($(#[$doc:meta])* $name:ident, $pthread:ty) => {
        $(#[$doc])*
        #[repr(transparent)]
        pub struct $name(UnsafeCell<$pthread>);

        // SAFETY: pthread's types are made for use by several threads at once.
        unsafe impl Sync for $name {}

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(stringify!($name))
            }
        }
    };
}

wrapper!(
    /// A mutex, recursive or not.
    Mutex,
    libc::pthread_mutex_t
);
wrapper!(
    /// A read-write lock.
    RwLock,
    libc::pthread_rwlock_t
);
wrapper!(
    /// A counting semaphore.
    Semaphore,
    libc::sem_t
);
wrapper!(
    /// A condition variable that measures time on the monotonic clock.
    Condition,
    libc::pthread_cond_t
);
wrapper!(
    /// A barrier.
    Barrier,
    libc::pthread_barrier_t
);
wrapper!(
    /// A guard for code that runs once.
    Once,
    libc::pthread_once_t
);

impl Mutex {
    /// Initialises a mutex in the given memory. A thread that holds a recursive one may lock it
    /// again.
    pub fn init(memory: &mut MaybeUninit<Mutex>, recursive: bool) -> Result<(), Errno> {
        let memory = memory.as_mut_ptr().cast();
        if !recursive {
            // SAFETY: the memory has room for a mutex, and null means the default kind.
            return check_number(unsafe { libc::pthread_mutex_init(memory, std::ptr::null()) });
        }
        let mut attributes = MaybeUninit::uninit();
        // SAFETY: the variable has room for the attributes, which are destroyed after use.
        unsafe {
            check_number(libc::pthread_mutexattr_init(attributes.as_mut_ptr()))?;
            let kind = libc::PTHREAD_MUTEX_RECURSIVE;
            let made = check_number(libc::pthread_mutexattr_settype(
                attributes.as_mut_ptr(),
                kind,
            ))
            .and_then(|()| check_number(libc::pthread_mutex_init(memory, attributes.as_ptr())));
            libc::pthread_mutexattr_destroy(attributes.as_mut_ptr());
            made
        }
    }

    /// Destroys the mutex.
    ///
    /// # Safety
    ///
    /// The mutex is not used again before it is initialised again.
    pub unsafe fn destroy(&self) {
        // SAFETY: a reference stands for a live mutex.
        expect(check_number(unsafe {
            libc::pthread_mutex_destroy(self.0.get())
        }));
    }

    /// Locks the mutex, after waiting for its holder.
    #[inline]
    pub fn lock(&self) {
        // SAFETY: a reference stands for a live mutex.
        expect(check_number(unsafe {
            libc::pthread_mutex_lock(self.0.get())
        }));
    }

    /// Locks the mutex, or returns `EBUSY` if it is held.
    pub fn try_lock(&self) -> Result<(), Errno> {
        // SAFETY: a reference stands for a live mutex.
        busy_or_abort(unsafe { libc::pthread_mutex_trylock(self.0.get()) })
    }

    /// Unlocks the mutex.
    #[inline]
    pub fn unlock(&self) {
        // SAFETY: a reference stands for a live mutex. Soundness does not depend on the caller
        // holding the mutex, which guards no Rust data.
        expect(check_number(unsafe {
            libc::pthread_mutex_unlock(self.0.get())
        }));
    }
}

/// The result of an attempt to lock: success or `EBUSY`.
fn busy_or_abort(number: c_int) -> Result<(), Errno> {
    match number {
        0 => Ok(()),
        libc::EBUSY | libc::EAGAIN => Err(Errno::EBUSY),
        _ => std::process::abort(),
    }
}

impl RwLock {
    /// Initialises a read-write lock in the given memory.
    pub fn init(memory: &mut MaybeUninit<RwLock>) -> Result<(), Errno> {
        let memory = memory.as_mut_ptr().cast();
        // SAFETY: the memory has room for the lock, and null means the default kind.
        check_number(unsafe { libc::pthread_rwlock_init(memory, std::ptr::null()) })
    }

    /// Destroys the lock.
    ///
    /// # Safety
    ///
    /// The lock is not used again before it is initialised again.
    pub unsafe fn destroy(&self) {
        // SAFETY: a reference stands for a live lock.
        expect(check_number(unsafe {
            libc::pthread_rwlock_destroy(self.0.get())
        }));
    }

    /// Locks for reading, after waiting for a writer.
    pub fn read_lock(&self) {
        // SAFETY: a reference stands for a live lock.
        expect(check_number(unsafe {
            libc::pthread_rwlock_rdlock(self.0.get())
        }));
    }

    /// Locks for reading, or returns `EBUSY` if there is a writer.
    pub fn try_read_lock(&self) -> Result<(), Errno> {
        // SAFETY: a reference stands for a live lock.
        busy_or_abort(unsafe { libc::pthread_rwlock_tryrdlock(self.0.get()) })
    }

    /// Locks for writing, after waiting for readers and a writer.
    pub fn write_lock(&self) {
        // SAFETY: a reference stands for a live lock.
        expect(check_number(unsafe {
            libc::pthread_rwlock_wrlock(self.0.get())
        }));
    }

    /// Locks for writing, or returns `EBUSY` if the lock is held.
    pub fn try_write_lock(&self) -> Result<(), Errno> {
        // SAFETY: a reference stands for a live lock.
        busy_or_abort(unsafe { libc::pthread_rwlock_trywrlock(self.0.get()) })
    }

    /// Unlocks a read or write lock.
    pub fn unlock(&self) {
        // SAFETY: as for a mutex.
        expect(check_number(unsafe {
            libc::pthread_rwlock_unlock(self.0.get())
        }));
    }
}

impl Semaphore {
    /// Initialises a semaphore with `value` in the given memory.
    pub fn init(memory: &mut MaybeUninit<Semaphore>, value: c_uint) -> Result<(), Errno> {
        // SAFETY: the memory has room for the semaphore, which is not shared between processes.
        check(unsafe { libc::sem_init(memory.as_mut_ptr().cast(), 0, value) }).map(drop)
    }

    /// Destroys the semaphore.
    ///
    /// # Safety
    ///
    /// The semaphore is not used again before it is initialised again.
    pub unsafe fn destroy(&self) {
        // SAFETY: a reference stands for a live semaphore.
        expect(check(unsafe { libc::sem_destroy(self.0.get()) }).map(drop));
    }

    /// Increments the semaphore, which wakes a waiting thread.
    pub fn post(&self) {
        // SAFETY: a reference stands for a live semaphore.
        expect(check(unsafe { libc::sem_post(self.0.get()) }).map(drop));
    }

    /// Waits until the semaphore is above zero, and decrements it.
    pub fn wait(&self) {
        // SAFETY: a reference stands for a live semaphore.
        while let Err(error) = check(unsafe { libc::sem_wait(self.0.get()) }) {
            // A signal handler interrupted the wait, which continues.
            if error != Errno::EINTR {
                std::process::abort();
            }
        }
    }

    /// Decrements the semaphore if it is above zero, or returns `EAGAIN`.
    pub fn try_wait(&self) -> Result<(), Errno> {
        loop {
            // SAFETY: a reference stands for a live semaphore.
            match check(unsafe { libc::sem_trywait(self.0.get()) }) {
                Ok(_) => return Ok(()),
                Err(Errno::EINTR) => continue,
                Err(Errno::EAGAIN) => return Err(Errno::EAGAIN),
                Err(_) => std::process::abort(),
            }
        }
    }
}

/// The deadline of a wait that begins now, saturating at the clock's maximum.
fn due(now_ns: u64, timeout_ns: u64) -> libc::timespec {
    timespec(now_ns.saturating_add(timeout_ns))
}

impl Condition {
    /// Initialises a condition variable in the given memory.
    pub fn init(memory: &mut MaybeUninit<Condition>) -> Result<(), Errno> {
        let mut attributes = MaybeUninit::uninit();
        // SAFETY: both have room for the condition and its attributes, which are destroyed after
        // use.
        unsafe {
            check_number(libc::pthread_condattr_init(attributes.as_mut_ptr()))?;
            let clock = libc::CLOCK_MONOTONIC;
            let set = libc::pthread_condattr_setclock(attributes.as_mut_ptr(), clock);
            let made = check_number(set).and_then(|()| {
                let memory = memory.as_mut_ptr().cast();
                check_number(libc::pthread_cond_init(memory, attributes.as_ptr()))
            });
            libc::pthread_condattr_destroy(attributes.as_mut_ptr());
            made
        }
    }

    /// Destroys the condition.
    ///
    /// # Safety
    ///
    /// The condition is not used again before it is initialised again.
    pub unsafe fn destroy(&self) {
        // SAFETY: a reference stands for a live condition.
        expect(check_number(unsafe {
            libc::pthread_cond_destroy(self.0.get())
        }));
    }

    /// Wakes one waiting thread.
    pub fn signal(&self) {
        // SAFETY: a reference stands for a live condition.
        expect(check_number(unsafe {
            libc::pthread_cond_signal(self.0.get())
        }));
    }

    /// Wakes all waiting threads.
    pub fn broadcast(&self) {
        // SAFETY: a reference stands for a live condition.
        expect(check_number(unsafe {
            libc::pthread_cond_broadcast(self.0.get())
        }));
    }

    /// Unlocks the mutex, waits, and locks the mutex again. Wake-ups may be spurious.
    pub fn wait(&self, mutex: &Mutex) {
        // SAFETY: references stand for live objects.
        expect(check_number(unsafe {
            libc::pthread_cond_wait(self.0.get(), mutex.0.get())
        }));
    }

    /// As [`wait`](Condition::wait), but returns `ETIMEDOUT` after `timeout_ns`.
    pub fn wait_for(&self, mutex: &Mutex, timeout_ns: u64) -> Result<(), Errno> {
        let due = due(crate::clock::monotonic_ns(), timeout_ns);
        // SAFETY: references stand for live objects, and `due` lives through the call.
        match unsafe { libc::pthread_cond_timedwait(self.0.get(), mutex.0.get(), &due) } {
            0 => Ok(()),
            libc::ETIMEDOUT => Err(Errno::ETIMEDOUT),
            _ => std::process::abort(),
        }
    }
}

impl Barrier {
    /// Initialises a barrier for `count` threads in the given memory.
    pub fn init(memory: &mut MaybeUninit<Barrier>, count: c_uint) -> Result<(), Errno> {
        let memory = memory.as_mut_ptr().cast();
        // SAFETY: the memory has room for the barrier, and null means the default kind.
        check_number(unsafe { libc::pthread_barrier_init(memory, std::ptr::null(), count) })
    }

    /// Destroys the barrier, after waiting for threads that are leaving [`wait`](Barrier::wait).
    ///
    /// # Safety
    ///
    /// The barrier is not used again before it is initialised again.
    pub unsafe fn destroy(&self) {
        // SAFETY: a reference stands for a live barrier.
        expect(check_number(unsafe {
            libc::pthread_barrier_destroy(self.0.get())
        }));
    }

    /// Waits until the barrier's number of threads wait. Returns `true` to one of them.
    pub fn wait(&self) -> bool {
        // SAFETY: a reference stands for a live barrier.
        match unsafe { libc::pthread_barrier_wait(self.0.get()) } {
            0 => false,
            libc::PTHREAD_BARRIER_SERIAL_THREAD => true,
            _ => std::process::abort(),
        }
    }
}

impl Once {
    /// Runs `callback` unless it has run already, and returns after it has run.
    pub fn call(&self, callback: extern "C" fn()) {
        // SAFETY: a reference stands for a guard that was initialised statically.
        expect(check_number(unsafe {
            libc::pthread_once(self.0.get(), callback)
        }));
    }
}

/// The key of a thread-local variable.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub struct LocalKey(libc::pthread_key_t);

impl LocalKey {
    /// Creates a key whose value is null in every thread.
    pub fn create() -> Result<LocalKey, Errno> {
        let mut key = 0;
        // SAFETY: `key` has room for the key, and there is no destructor.
        check_number(unsafe { libc::pthread_key_create(&mut key, None) })?;
        Ok(LocalKey(key))
    }

    /// Deletes the key, and with it the value of each thread.
    pub fn delete(self) {
        // SAFETY: the C library refuses a key that is not in use.
        expect(check_number(unsafe { libc::pthread_key_delete(self.0) }));
    }

    /// The calling thread's value.
    pub fn get(self) -> *mut c_void {
        // SAFETY: any number is allowed as a key; an unused key has the value null.
        unsafe { libc::pthread_getspecific(self.0) }
    }

    /// Sets the calling thread's value.
    #[allow(
        clippy::not_unsafe_ptr_arg_deref,
        reason = "the value is stored, and never followed"
    )]
    pub fn set(self, value: *mut c_void) {
        // SAFETY: the C library refuses an unused key, and does not follow the value.
        expect(check_number(unsafe {
            libc::pthread_setspecific(self.0, value)
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_mutex_is_busy_for_its_holder_too_and_a_recursive_one_is_not() {
        for recursive in [false, true] {
            let mut memory = MaybeUninit::uninit();
            Mutex::init(&mut memory, recursive).unwrap();
            // SAFETY: `init` has just initialised the mutex.
            let mutex = unsafe { memory.assume_init_ref() };
            mutex.lock();
            assert_eq!(mutex.try_lock().is_ok(), recursive);
            if recursive {
                mutex.unlock();
            }
            mutex.unlock();
            // SAFETY: the mutex is not used again.
            unsafe { mutex.destroy() };
        }
    }

    #[test]
    fn a_wait_for_ever_is_not_cut_short_by_overflow() {
        assert_eq!(due(7, 1_000_000_000).tv_sec, 1);
        assert_eq!(due(7, 1_000_000_000).tv_nsec, 7);
        let years = due(7, u64::MAX).tv_sec / (365 * 24 * 60 * 60);
        assert!(years > 500);
    }
}
