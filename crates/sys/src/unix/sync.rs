//! Locks of the C library, in memory that C programs own:
//! <https://man7.org/linux/man-pages/man7/pthreads.7.html>.
//!
//! Each type here has the layout of its pthread counterpart, since a C program may make one
//! with `uv_mutex_init` and use it with `pthread_mutex_lock`. A reference to one of them
//! stands for an object that was initialised and not yet destroyed. All state is inside an
//! `UnsafeCell`, as other threads change it while we look.
//!
//! An operation that the C library refuses here is a bug of the program (a lock destroyed
//! while held, a semaphore beyond its limit). There is no way to report it, so it ends the
//! process, as libuv's does.

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

/// Ends the process if the C library refused an operation that cannot fail in a correct program.
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

        // SAFETY: being used by several threads at once is what the type is for.
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
    /// Makes a mutex in the given memory. A thread that holds a recursive one may lock it again.
    pub fn init(memory: &mut MaybeUninit<Mutex>, recursive: bool) -> Result<(), Errno> {
        let memory = memory.as_mut_ptr().cast();
        if !recursive {
            // SAFETY: there is room for a mutex, and null asks for the default kind.
            return check_number(unsafe { libc::pthread_mutex_init(memory, std::ptr::null()) });
        }
        let mut attributes = MaybeUninit::uninit();
        // SAFETY: there is room for the attributes, which are destroyed once they have served.
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

    /// Ends the mutex's life.
    ///
    /// # Safety
    ///
    /// Nobody uses the mutex again before it is initialised anew.
    pub unsafe fn destroy(&self) {
        // SAFETY: a reference stands for a live mutex.
        expect(check_number(unsafe {
            libc::pthread_mutex_destroy(self.0.get())
        }));
    }

    /// Waits until nobody else holds the mutex, and takes it.
    #[inline]
    pub fn lock(&self) {
        // SAFETY: a reference stands for a live mutex.
        expect(check_number(unsafe {
            libc::pthread_mutex_lock(self.0.get())
        }));
    }

    /// Takes the mutex if nobody else holds it, and says `EBUSY` otherwise.
    pub fn try_lock(&self) -> Result<(), Errno> {
        // SAFETY: a reference stands for a live mutex.
        busy_or_abort(unsafe { libc::pthread_mutex_trylock(self.0.get()) })
    }

    /// Lets go of the mutex.
    #[inline]
    pub fn unlock(&self) {
        // SAFETY: a reference stands for a live mutex. That the caller holds it is not needed
        // for soundness here: the mutex guards nothing of ours.
        expect(check_number(unsafe {
            libc::pthread_mutex_unlock(self.0.get())
        }));
    }
}

/// What an attempt to take a lock may answer: done, or that it is held.
fn busy_or_abort(number: c_int) -> Result<(), Errno> {
    match number {
        0 => Ok(()),
        libc::EBUSY | libc::EAGAIN => Err(Errno::EBUSY),
        _ => std::process::abort(),
    }
}

impl RwLock {
    /// Makes a read-write lock in the given memory.
    pub fn init(memory: &mut MaybeUninit<RwLock>) -> Result<(), Errno> {
        let memory = memory.as_mut_ptr().cast();
        // SAFETY: there is room for the lock, and null asks for the default kind.
        check_number(unsafe { libc::pthread_rwlock_init(memory, std::ptr::null()) })
    }

    /// Ends the lock's life.
    ///
    /// # Safety
    ///
    /// Nobody uses the lock again before it is initialised anew.
    pub unsafe fn destroy(&self) {
        // SAFETY: a reference stands for a live lock.
        expect(check_number(unsafe {
            libc::pthread_rwlock_destroy(self.0.get())
        }));
    }

    /// Waits until there is no writer, and becomes a reader.
    pub fn read_lock(&self) {
        // SAFETY: a reference stands for a live lock.
        expect(check_number(unsafe {
            libc::pthread_rwlock_rdlock(self.0.get())
        }));
    }

    /// Becomes a reader if there is no writer, and says `EBUSY` otherwise.
    pub fn try_read_lock(&self) -> Result<(), Errno> {
        // SAFETY: a reference stands for a live lock.
        busy_or_abort(unsafe { libc::pthread_rwlock_tryrdlock(self.0.get()) })
    }

    /// Waits until there are neither readers nor a writer, and becomes the writer.
    pub fn write_lock(&self) {
        // SAFETY: a reference stands for a live lock.
        expect(check_number(unsafe {
            libc::pthread_rwlock_wrlock(self.0.get())
        }));
    }

    /// Becomes the writer if the lock is free, and says `EBUSY` otherwise.
    pub fn try_write_lock(&self) -> Result<(), Errno> {
        // SAFETY: a reference stands for a live lock.
        busy_or_abort(unsafe { libc::pthread_rwlock_trywrlock(self.0.get()) })
    }

    /// Lets go of the lock, whichever way it was taken.
    pub fn unlock(&self) {
        // SAFETY: as for a mutex.
        expect(check_number(unsafe {
            libc::pthread_rwlock_unlock(self.0.get())
        }));
    }
}

impl Semaphore {
    /// Makes a semaphore that stands at `value` in the given memory.
    pub fn init(memory: &mut MaybeUninit<Semaphore>, value: c_uint) -> Result<(), Errno> {
        // SAFETY: there is room for the semaphore. It is not shared between processes.
        check(unsafe { libc::sem_init(memory.as_mut_ptr().cast(), 0, value) }).map(drop)
    }

    /// Ends the semaphore's life.
    ///
    /// # Safety
    ///
    /// Nobody uses the semaphore again before it is initialised anew.
    pub unsafe fn destroy(&self) {
        // SAFETY: a reference stands for a live semaphore.
        expect(check(unsafe { libc::sem_destroy(self.0.get()) }).map(drop));
    }

    /// Adds one, which lets somebody go on who waits.
    pub fn post(&self) {
        // SAFETY: a reference stands for a live semaphore.
        expect(check(unsafe { libc::sem_post(self.0.get()) }).map(drop));
    }

    /// Waits until the semaphore stands above zero, and takes one.
    pub fn wait(&self) {
        // SAFETY: a reference stands for a live semaphore.
        while let Err(error) = check(unsafe { libc::sem_wait(self.0.get()) }) {
            // A signal handler ran meanwhile; the wait goes on.
            if error != Errno::EINTR {
                std::process::abort();
            }
        }
    }

    /// Takes one if the semaphore stands above zero, and says `EAGAIN` otherwise.
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

/// When a wait that begins now ends. One that would end beyond the clock's end never does.
fn due(now_ns: u64, timeout_ns: u64) -> libc::timespec {
    timespec(now_ns.saturating_add(timeout_ns))
}

impl Condition {
    /// Makes a condition variable in the given memory.
    pub fn init(memory: &mut MaybeUninit<Condition>) -> Result<(), Errno> {
        let mut attributes = MaybeUninit::uninit();
        // SAFETY: there is room for the condition and its attributes, which are destroyed
        // once they have served.
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

    /// Ends the condition's life.
    ///
    /// # Safety
    ///
    /// Nobody uses the condition again before it is initialised anew.
    pub unsafe fn destroy(&self) {
        // SAFETY: a reference stands for a live condition.
        expect(check_number(unsafe {
            libc::pthread_cond_destroy(self.0.get())
        }));
    }

    /// Wakes one thread that waits.
    pub fn signal(&self) {
        // SAFETY: a reference stands for a live condition.
        expect(check_number(unsafe {
            libc::pthread_cond_signal(self.0.get())
        }));
    }

    /// Wakes all threads that wait.
    pub fn broadcast(&self) {
        // SAFETY: a reference stands for a live condition.
        expect(check_number(unsafe {
            libc::pthread_cond_broadcast(self.0.get())
        }));
    }

    /// Lets go of the mutex, waits, and takes the mutex again. May return without a signal.
    pub fn wait(&self, mutex: &Mutex) {
        // SAFETY: references stand for live objects.
        expect(check_number(unsafe {
            libc::pthread_cond_wait(self.0.get(), mutex.0.get())
        }));
    }

    /// As [`wait`](Condition::wait), but gives up with `ETIMEDOUT` after `timeout_ns`.
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
    /// Makes a barrier for `count` threads in the given memory.
    pub fn init(memory: &mut MaybeUninit<Barrier>, count: c_uint) -> Result<(), Errno> {
        let memory = memory.as_mut_ptr().cast();
        // SAFETY: there is room for the barrier, and null asks for the default kind.
        check_number(unsafe { libc::pthread_barrier_init(memory, std::ptr::null(), count) })
    }

    /// Ends the barrier's life, once the threads that are on their way out of
    /// [`wait`](Barrier::wait) have left.
    ///
    /// # Safety
    ///
    /// Nobody uses the barrier again before it is initialised anew.
    pub unsafe fn destroy(&self) {
        // SAFETY: a reference stands for a live barrier.
        expect(check_number(unsafe {
            libc::pthread_barrier_destroy(self.0.get())
        }));
    }

    /// Waits until as many threads wait as the barrier is for. One of them is told `true`.
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
    /// Runs `callback` unless that has happened already, and returns once it has.
    pub fn call(&self, callback: extern "C" fn()) {
        // SAFETY: a reference stands for a guard that was initialised statically.
        expect(check_number(unsafe {
            libc::pthread_once(self.0.get(), callback)
        }));
    }
}

/// The name of a variable of which each thread has its own.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub struct LocalKey(libc::pthread_key_t);

impl LocalKey {
    /// Makes a key whose value is null in every thread.
    pub fn create() -> Result<LocalKey, Errno> {
        let mut key = 0;
        // SAFETY: there is room for the key, and no destructor is given.
        check_number(unsafe { libc::pthread_key_create(&mut key, None) })?;
        Ok(LocalKey(key))
    }

    /// Gives the key back; what it named in each thread is forgotten.
    pub fn delete(self) {
        // SAFETY: the C library refuses a key that is not in use.
        expect(check_number(unsafe { libc::pthread_key_delete(self.0) }));
    }

    /// The calling thread's value.
    pub fn get(self) -> *mut c_void {
        // SAFETY: any number is allowed as a key; one that is not in use names null.
        unsafe { libc::pthread_getspecific(self.0) }
    }

    /// Sets the calling thread's value.
    #[allow(
        clippy::not_unsafe_ptr_arg_deref,
        reason = "the value is stored, and never followed"
    )]
    pub fn set(self, value: *mut c_void) {
        // SAFETY: the C library refuses a key that is not in use, and does not follow the value.
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
            // SAFETY: it was just initialised.
            let mutex = unsafe { memory.assume_init_ref() };
            mutex.lock();
            assert_eq!(mutex.try_lock().is_ok(), recursive);
            if recursive {
                mutex.unlock();
            }
            mutex.unlock();
            // SAFETY: not used again.
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
