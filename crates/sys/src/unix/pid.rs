//! Processes by their numbers, as a C program has them: any number at all.

use crate::platform::errno;
use crate::{Errno, check};
use std::ffi::c_int;

/// The number of a process.
pub type Pid = libc::pid_t;

/// The most favoured niceness.
pub const NICEST_TO_ITSELF: c_int = -20;
/// The least favoured niceness.
pub const NICEST_TO_OTHERS: c_int = 19;

/// This process.
pub fn current() -> Pid {
    // SAFETY: it takes no arguments and cannot fail.
    unsafe { libc::getpid() }
}

/// This process's parent.
pub fn parent() -> Pid {
    // SAFETY: it takes no arguments and cannot fail.
    unsafe { libc::getppid() }
}

/// A process's niceness: <https://man7.org/linux/man-pages/man2/getpriority.2.html>.
pub fn priority(pid: Pid) -> Result<c_int, Errno> {
    // −1 is a priority as good as any, so that only `errno` tells it from a failure.
    // SAFETY: errno's location is valid for the calling thread; getpriority takes no pointers.
    let (priority, errno) = unsafe {
        *errno::location() = 0;
        let priority = libc::getpriority(libc::PRIO_PROCESS, pid as libc::id_t);
        (priority, *errno::location())
    };
    match (priority, errno) {
        (-1, errno) if errno != 0 => Err(Errno::from_code(-errno)),
        (priority, _) => Ok(priority),
    }
}

/// Sets a process's niceness. Outside of what there is, it is `EINVAL`.
pub fn set_priority(pid: Pid, priority: c_int) -> Result<(), Errno> {
    if !(NICEST_TO_ITSELF..=NICEST_TO_OTHERS).contains(&priority) {
        return Err(Errno::EINVAL);
    }
    // SAFETY: setpriority takes no pointers.
    check(unsafe { libc::setpriority(libc::PRIO_PROCESS, pid as libc::id_t, priority) }).map(drop)
}

/// Sends a signal, or only asks whether that could be done if it is 0:
/// <https://man7.org/linux/man-pages/man2/kill.2.html>.
pub fn kill(pid: Pid, signal: c_int) -> Result<(), Errno> {
    // SAFETY: kill takes no pointers. What a signal does to this process is what the process
    // has asked for.
    check(unsafe { libc::kill(pid, signal) }).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_priority_of_minus_one_is_no_error() {
        // Only a privileged process may favour itself.
        match set_priority(0, -1) {
            Ok(()) => assert_eq!(priority(0), Ok(-1)),
            Err(error) => assert_eq!(error, Errno::EACCES),
        }
    }

    #[test]
    fn numbers_that_nobody_has_are_not_found() {
        assert_eq!(priority(Pid::MAX), Err(Errno::ESRCH));
        assert_eq!(set_priority(Pid::MAX, 0), Err(Errno::ESRCH));
        assert_eq!(kill(Pid::MAX, 0), Err(Errno::ESRCH));
        assert_eq!(kill(current(), 4096), Err(Errno::EINVAL));
        assert_eq!(kill(current(), 0), Ok(()));
    }
}
