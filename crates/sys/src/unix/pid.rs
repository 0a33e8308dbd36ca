//! Processes by pid. A C program may pass any number.

use crate::platform::errno;
use crate::{Errno, check};
use std::ffi::c_int;

/// A process's pid.
pub type Pid = libc::pid_t;

/// The most favoured niceness.
pub const MIN_NICENESS: c_int = -20;
/// The least favoured niceness.
pub const MAX_NICENESS: c_int = 19;

/// This process.
pub fn current() -> Pid {
    // SAFETY: the function takes no arguments and cannot fail.
    unsafe { libc::getpid() }
}

/// This process's parent.
pub fn parent() -> Pid {
    // SAFETY: the function takes no arguments and cannot fail.
    unsafe { libc::getppid() }
}

/// A process's niceness: <https://man7.org/linux/man-pages/man2/getpriority.2.html>.
pub fn priority(pid: Pid) -> Result<c_int, Errno> {
    // SAFETY: errno's address is valid on the calling thread; getpriority takes no pointers. Only
    // `errno` distinguishes the valid priority −1 from a failure.
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

/// Sets a process's niceness. `EINVAL` if it is out of range.
pub fn set_priority(pid: Pid, priority: c_int) -> Result<(), Errno> {
    if !(MIN_NICENESS..=MAX_NICENESS).contains(&priority) {
        return Err(Errno::EINVAL);
    }
    // SAFETY: setpriority takes no pointers.
    check(unsafe { libc::setpriority(libc::PRIO_PROCESS, pid as libc::id_t, priority) }).map(drop)
}

/// Sends a signal, or with 0 only checks that the process exists:
/// <https://man7.org/linux/man-pages/man2/kill.2.html>.
pub fn kill(pid: Pid, signal: c_int) -> Result<(), Errno> {
    // SAFETY: kill takes no pointers. The effect of a signal on this process is the process's own
    // choice.
    check(unsafe { libc::kill(pid, signal) }).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_priority_of_minus_one_is_no_error() {
        // Only a privileged process may lower its niceness.
        match set_priority(0, -1) {
            Ok(()) => assert_eq!(priority(0), Ok(-1)),
            Err(error) => assert_eq!(error, Errno::EACCES),
        }
    }

    #[test]
    fn unused_pids_are_not_found() {
        assert_eq!(priority(Pid::MAX), Err(Errno::ESRCH));
        assert_eq!(set_priority(Pid::MAX, 0), Err(Errno::ESRCH));
        assert_eq!(kill(Pid::MAX, 0), Err(Errno::ESRCH));
        assert_eq!(kill(current(), 4096), Err(Errno::EINVAL));
        assert_eq!(kill(current(), 0), Ok(()));
    }
}
