//! Threads: <https://man7.org/linux/man-pages/man7/pthreads.7.html>.
//!
//! Threads go by the C library's identifiers, since C programs mix libuv's calls with pthread's. An
//! identifier is valid from the thread's start until it has been joined, or has ended after being
//! detached; the caller guarantees a valid one.

use crate::fallible::Arc;
use crate::platform;
use crate::sync::check_number;
use crate::{Errno, check};
use rustix::process::{Resource, getrlimit};
use std::ffi::{CStr, c_int, c_void};
use std::mem::MaybeUninit;

pub use crate::platform::thread::{
    CPU_SETSIZE, CpuSet, NAME_SIZE, affinity, current_cpu, name, set_affinity, set_name,
};

/// The C library's identifier of a thread.
pub type ThreadId = libc::pthread_t;

/// A thread's function, as libuv declares it.
pub type Entry = unsafe extern "C" fn(*mut c_void);

/// The stack size when the limit on the main thread's stack is not usable.
const FALLBACK_STACK_SIZE: usize = 2 << 20;

/// The smallest stack that a thread gets. The C library may take less for enough, as musl does with
/// 2048 bytes, and then the processor's registers do not fit when a signal arrives.
const SMALLEST_STACK: usize = 8192;

/// The smallest stack that a thread can start on. The C library knows at run time how much memory
/// the processor's registers take when a signal arrives.
fn min_stack_size() -> usize {
    // SAFETY: sysconf takes no pointers; it returns −1 for an unknown value.
    let known = unsafe { libc::sysconf(libc::_SC_THREAD_STACK_MIN) };
    usize::try_from(known)
        .unwrap_or(0)
        .max(libc::PTHREAD_STACK_MIN)
        .max(SMALLEST_STACK)
}

/// The limit on the main thread's stack, in whole pages.
fn default_stack_size() -> usize {
    let pages = |size: usize| size - size % rustix::param::page_size();
    match getrlimit(Resource::Stack).current {
        Some(limit) if pages(limit as usize) >= min_stack_size() => pages(limit as usize),
        _ => FALLBACK_STACK_SIZE,
    }
}

/// A requested stack size, rounded up to whole pages and the minimum.
fn stack_size(requested: usize) -> Result<usize, Errno> {
    match requested {
        0 => Ok(default_stack_size()),
        size => size
            .checked_next_multiple_of(rustix::param::page_size())
            .map(|size| size.max(min_stack_size()))
            .ok_or(Errno::EINVAL),
    }
}

/// Starts a thread on a stack of at least `stack_size` bytes; 0 asks for the default.
///
/// # Safety
///
/// `entry` may be called with `argument` on another thread.
pub unsafe fn create(
    stack_size: usize,
    entry: Entry,
    argument: *mut c_void,
) -> Result<ThreadId, Errno> {
    let stack_size = self::stack_size(stack_size)?;
    // SAFETY: the two types differ only in the result that the C library expects and `join` ignores
    // by passing null. Calling through the other type leaves only the result undefined, in every
    // calling convention of these systems. With a Rust function in between, `pthread_exit` in the
    // callback would have to unwind through Rust.
    let entry =
        unsafe { std::mem::transmute::<Entry, extern "C" fn(*mut c_void) -> *mut c_void>(entry) };
    let mut thread = MaybeUninit::uninit();
    let mut attributes = MaybeUninit::uninit();
    // SAFETY: the variables have room for the attributes and the identifier; the attributes are
    // destroyed after use; the caller guarantees the entry.
    unsafe {
        check_number(libc::pthread_attr_init(attributes.as_mut_ptr()))?;
        let sized = libc::pthread_attr_setstacksize(attributes.as_mut_ptr(), stack_size);
        let created = check_number(sized).and_then(|()| {
            let attributes = attributes.as_ptr();
            check_number(libc::pthread_create(
                thread.as_mut_ptr(),
                attributes,
                entry,
                argument,
            ))
        });
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        created.map(|()| thread.assume_init())
    }
}

/// The code and data of one of this library's threads.
pub trait Body: Send + Sync + 'static {
    /// The thread's name.
    const NAME: &CStr;

    /// Runs on the thread.
    fn run(&self);
}

/// One of this library's threads. Unlike a thread of the standard library, it keeps no data on its
/// stack only: a child made by `fork`, which lacks the thread, would leak that.
#[derive(Debug)]
pub struct Thread<T> {
    id: ThreadId,
    body: Arc<T>,
}

// SAFETY: the C library's identifier may be used on any thread, even where it is a pointer.
unsafe impl<T: Send + Sync> Send for Thread<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Thread<T> {}

impl<T: Body> Thread<T> {
    /// Starts a thread on a stack of at least `stack_size` bytes.
    pub fn start(stack_size: usize, body: Arc<T>) -> Result<Thread<T>, Errno> {
        unsafe extern "C" fn main<T: Body>(body: *mut c_void) {
            // SAFETY: `start` has passed one reference to the body.
            let body = unsafe { Arc::from_raw(body.cast_const().cast::<T>()) };
            // A thread without a name works as well.
            let _ = set_name(T::NAME);
            body.run();
        }
        let argument = Arc::into_raw(body.clone());
        // SAFETY: the entry takes such an argument, which all threads may use.
        match unsafe { create(stack_size, main::<T>, argument.cast_mut().cast()) } {
            Ok(id) => Ok(Thread { id, body }),
            Err(error) => {
                // SAFETY: no thread has been started that would own the reference.
                drop(unsafe { Arc::from_raw(argument) });
                Err(error)
            }
        }
    }

    /// The thread's body.
    pub fn body(&self) -> &T {
        &self.body
    }

    /// Waits until the thread has ended, and returns its body. A thread that joins itself does not
    /// wait.
    pub fn join(self) -> Arc<T> {
        // SAFETY: this owns the thread, which is not detached, and its identifier is not used
        // again. Joining oneself is an ordinary error.
        let _ = unsafe { join(self.id) };
        self.body
    }
}

/// Waits until a thread has ended.
///
/// # Safety
///
/// The identifier is valid, and is not used again after success.
pub unsafe fn join(thread: ThreadId) -> Result<(), Errno> {
    // musl would wait for ever.
    // SAFETY: the function compares two identifiers.
    if cfg!(target_env = "musl") && unsafe { libc::pthread_equal(thread, current()) } != 0 {
        return check_number(libc::EDEADLK);
    }
    // SAFETY: the caller guarantees the thread; null declines its result.
    check_number(unsafe { libc::pthread_join(thread, std::ptr::null_mut()) })
}

/// Detaches a thread, which then need not be joined.
///
/// # Safety
///
/// The identifier is valid, and is not used again after success.
pub unsafe fn detach(thread: ThreadId) -> Result<(), Errno> {
    // SAFETY: the caller guarantees the thread.
    check_number(unsafe { libc::pthread_detach(thread) })
}

/// The calling thread.
pub fn current() -> ThreadId {
    // SAFETY: the function takes no arguments and cannot fail.
    unsafe { libc::pthread_self() }
}

/// A thread's priority, in libuv's five steps.
#[allow(missing_docs, reason = "the names say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    Lowest,
    BelowNormal,
    Normal,
    AboveNormal,
    Highest,
}

impl Priority {
    /// From lowest to highest.
    pub const ALL: [Priority; 5] = [
        Priority::Lowest,
        Priority::BelowNormal,
        Priority::Normal,
        Priority::AboveNormal,
        Priority::Highest,
    ];

    /// Two steps of niceness for each step of priority, on both sides of the default.
    fn niceness(self) -> i32 {
        4 - 2 * self as i32
    }

    /// The priority as quarters of the range of a scheduling policy.
    fn between(self, min: c_int, max: c_int) -> c_int {
        min + (max - min) * self as c_int / 4
    }
}

/// # Safety
///
/// The identifier is valid.
unsafe fn scheduling(thread: ThreadId) -> Result<(c_int, libc::sched_param), Errno> {
    let mut policy = 0;
    let mut parameters = MaybeUninit::uninit();
    // SAFETY: both variables have room; the caller guarantees the thread.
    unsafe {
        check_number(libc::pthread_getschedparam(
            thread,
            &mut policy,
            parameters.as_mut_ptr(),
        ))?;
        Ok((policy, parameters.assume_init()))
    }
}

/// A thread's priority: its niceness, where the platform has one for it, or else its scheduling
/// policy's priority.
///
/// # Safety
///
/// The identifier is valid.
pub unsafe fn priority(thread: ThreadId) -> Result<i32, Errno> {
    // SAFETY: the caller guarantees the thread.
    let (policy, parameters) = unsafe { scheduling(thread) }?;
    match platform::thread::niceness(thread, policy) {
        Some(niceness) => niceness,
        None => Ok(parameters.sched_priority),
    }
}

/// Sets a thread's priority, within the range of its scheduling policy.
///
/// # Safety
///
/// The identifier is valid.
pub unsafe fn set_priority(thread: ThreadId, priority: Priority) -> Result<(), Errno> {
    // SAFETY: the caller guarantees the thread.
    let (policy, mut parameters) = unsafe { scheduling(thread) }?;
    if let Some(set) = platform::thread::set_niceness(thread, policy, priority.niceness()) {
        return set;
    }
    // SAFETY: these two take no pointers.
    let (min, max) = unsafe {
        (
            check(libc::sched_get_priority_min(policy))?,
            check(libc::sched_get_priority_max(policy))?,
        )
    };
    parameters.sched_priority = priority.between(min, max);
    // SAFETY: the parameters live through the call; the caller guarantees the thread.
    check_number(unsafe { libc::pthread_setschedparam(thread, policy, &parameters) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    #[test]
    fn stacks_are_whole_pages_and_never_too_small() {
        let page = rustix::param::page_size();
        assert_eq!(stack_size(1), Ok(min_stack_size()));
        assert_eq!(stack_size(1 << 20), Ok(1 << 20));
        assert_eq!(stack_size((1 << 20) + 1), Ok((1 << 20) + page));
        assert_eq!(stack_size(usize::MAX), Err(Errno::EINVAL));
        assert_eq!(stack_size(0).unwrap() % page, 0);
        assert!(stack_size(0).unwrap() >= min_stack_size());
        assert!(stack_size(1).unwrap() >= SMALLEST_STACK);
    }

    #[test]
    fn a_thread_on_the_smallest_stack_can_take_a_signal() {
        static TAKEN: AtomicBool = AtomicBool::new(false);
        extern "C" fn take(_: c_int) {
            TAKEN.store(true, Relaxed);
        }
        unsafe extern "C" fn entry(_: *mut c_void) {
            // SAFETY: a signal that nothing else here uses; the handler stores a flag.
            unsafe {
                libc::signal(
                    libc::SIGWINCH,
                    take as extern "C" fn(c_int) as libc::sighandler_t,
                );
                libc::raise(libc::SIGWINCH);
            }
        }
        // SAFETY: the entry takes any argument, and the thread is joined once.
        unsafe { join(create(1, entry, std::ptr::null_mut()).unwrap()).unwrap() };
        assert!(TAKEN.load(Relaxed));
    }

    #[test]
    fn priorities_divide_a_range_into_quarters() {
        let steps = Priority::ALL.map(|priority| priority.between(1, 99));
        assert_eq!(steps, [1, 25, 50, 74, 99]);
        let steps = Priority::ALL.map(Priority::niceness);
        assert_eq!(steps, [4, 2, 0, -2, -4]);
    }
}
