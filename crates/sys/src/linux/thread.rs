//! Names, processors and niceness of threads:
//! <https://man7.org/linux/man-pages/man3/pthread_setname_np.3.html>,
//! <https://man7.org/linux/man-pages/man3/pthread_setaffinity_np.3.html>.

#[cfg(target_env = "musl")]
use super::text;
#[cfg(target_env = "musl")]
use crate::fallible::Short;
use crate::sync::check_number;
use crate::thread::{ThreadId, current};
use crate::{Errno, check};
use rustix::process::{getpriority_process, setpriority_process};
use std::ffi::{CStr, c_int};
use std::mem::MaybeUninit;

/// The size of an affinity mask, in processors.
pub const CPU_SETSIZE: usize = libc::CPU_SETSIZE as usize;

/// The longest name of a thread, including the NUL.
pub const NAME_SIZE: usize = 16;

/// Names the calling thread. A longer name is truncated.
pub fn set_name(name: &CStr) -> Result<(), Errno> {
    let mut short = [0u8; NAME_SIZE];
    let len = name.count_bytes().min(NAME_SIZE - 1);
    short[..len].copy_from_slice(&name.to_bytes()[..len]);
    // SAFETY: the name ends in a NUL.
    check_number(unsafe { libc::pthread_setname_np(current(), short.as_ptr().cast()) })
}

/// The name of a thread, up to the first NUL.
///
/// # Safety
///
/// The identifier is valid.
pub unsafe fn name(thread: ThreadId) -> Result<[u8; NAME_SIZE], Errno> {
    let mut name = [0u8; NAME_SIZE];
    // SAFETY: the caller guarantees the thread.
    unsafe { read_name(thread, &mut name) }?;
    Ok(name)
}

/// # Safety
///
/// The identifier is valid.
#[cfg(not(target_env = "musl"))]
unsafe fn read_name(thread: ThreadId, name: &mut [u8; NAME_SIZE]) -> Result<(), Errno> {
    let (start, size) = (name.as_mut_ptr().cast(), name.len());
    // SAFETY: there is room for the longest name; the caller guarantees the thread.
    check_number(unsafe { libc::pthread_getname_np(thread, start, size) })
}

/// Does what musl's `pthread_getname_np` does, which is there since 1.2.3 only: a library that links to it does
/// not load with an older one.
///
/// # Safety
///
/// The identifier is valid.
#[cfg(target_env = "musl")]
unsafe fn read_name(thread: ThreadId, name: &mut [u8; NAME_SIZE]) -> Result<(), Errno> {
    // SAFETY: the function compares two addresses.
    if unsafe { libc::pthread_equal(thread, current()) } != 0 {
        // SAFETY: there is room for the 16 bytes that the kernel writes.
        check(unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) })?;
        return Ok(());
    }
    let mut clock = 0;
    // SAFETY: the variable has room; the caller guarantees the thread.
    check_number(unsafe { libc::pthread_getcpuclockid(thread, &mut clock) })?;
    // The kernel makes the number of a thread's clock of that of the thread.
    let tid = !clock >> 3;
    let path = Short::format(format_args!("/proc/self/task/{tid}/comm"));
    let line = text::read(path.as_c_str())?;
    let line = line.strip_suffix(b"\n").unwrap_or(&line);
    let len = line.len().min(NAME_SIZE - 1);
    name[..len].copy_from_slice(&line[..len]);
    Ok(())
}

/// A set of processors.
#[derive(Clone, Copy)]
pub struct CpuSet(libc::cpu_set_t);

impl CpuSet {
    /// The empty set.
    pub fn new() -> CpuSet {
        let mut set = MaybeUninit::<libc::cpu_set_t>::zeroed();
        // SAFETY: a set is an array of bits, for which zero is a value.
        unsafe {
            libc::CPU_ZERO(set.assume_init_mut());
            CpuSet(set.assume_init())
        }
    }

    fn assert_fits(cpu: usize) {
        assert!(cpu < CPU_SETSIZE, "processor {cpu} is not in the set");
    }

    /// Adds a processor, whose number is below [`CPU_SETSIZE`].
    pub fn insert(&mut self, cpu: usize) {
        Self::assert_fits(cpu);
        // SAFETY: the number was just checked.
        unsafe { libc::CPU_SET(cpu, &mut self.0) }
    }

    /// Whether a processor, whose number is below [`CPU_SETSIZE`], is in the set.
    pub fn contains(&self, cpu: usize) -> bool {
        Self::assert_fits(cpu);
        // SAFETY: the number was just checked.
        unsafe { libc::CPU_ISSET(cpu, &self.0) }
    }

    /// How many processors are in the set.
    pub fn count(&self) -> usize {
        // SAFETY: the set is initialised, as all of our sets are.
        unsafe { libc::CPU_COUNT(&self.0) as usize }
    }
}

impl Default for CpuSet {
    fn default() -> CpuSet {
        CpuSet::new()
    }
}

impl std::fmt::Debug for CpuSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let members = (0..CPU_SETSIZE).filter(|&cpu| self.contains(cpu));
        f.debug_set().entries(members).finish()
    }
}

/// The processors that a thread may run on.
///
/// # Safety
///
/// The identifier is valid.
pub unsafe fn affinity(thread: ThreadId) -> Result<CpuSet, Errno> {
    let mut set = CpuSet::new();
    // SAFETY: the set has that size; the caller guarantees the thread.
    check_number(unsafe { libc::pthread_getaffinity_np(thread, size_of_val(&set.0), &mut set.0) })?;
    Ok(set)
}

/// Sets which processors a thread may run on.
///
/// # Safety
///
/// The identifier is valid.
pub unsafe fn set_affinity(thread: ThreadId, set: &CpuSet) -> Result<(), Errno> {
    // SAFETY: the set has that size; the caller guarantees the thread.
    check_number(unsafe { libc::pthread_setaffinity_np(thread, size_of_val(&set.0), &set.0) })
}

/// The processor that the calling thread runs on, or has just run on.
pub fn current_cpu() -> Result<c_int, Errno> {
    // SAFETY: it takes no arguments.
    check(unsafe { libc::sched_getcpu() })
}

/// Whether a thread's priority is its niceness. On Linux every thread under the default scheduling
/// policy has one, but only the calling thread's is accessible: the C library's identifier does not
/// lead to the kernel's.
fn goes_by_niceness(thread: ThreadId, policy: c_int) -> bool {
    // SAFETY: the function compares two numbers.
    policy == libc::SCHED_OTHER && unsafe { libc::pthread_equal(thread, current()) } != 0
}

/// The niceness of a thread with that scheduling policy. `None` if its priority is not its
/// niceness.
pub(crate) fn niceness(thread: ThreadId, policy: c_int) -> Option<Result<i32, Errno>> {
    // The number 0 means the calling thread on Linux, where POSIX means the process.
    goes_by_niceness(thread, policy).then(|| Ok(getpriority_process(None)?))
}

/// Sets the niceness of a thread with that scheduling policy. `None` if its priority is not its
/// niceness.
pub(crate) fn set_niceness(
    thread: ThreadId,
    policy: c_int,
    niceness: i32,
) -> Option<Result<(), Errno>> {
    goes_by_niceness(thread, policy).then(|| Ok(setpriority_process(None, niceness)?))
}
