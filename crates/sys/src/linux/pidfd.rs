//! Watches a child for its exit by a pidfd:
//! <https://man7.org/linux/man-pages/man2/pidfd_open.2.html>.

use crate::{Errno, RawFd, check, pid};
use std::ffi::c_int;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Set when the kernel reports that it has no `pidfd_send_signal` (before Linux 5.1).
static NO_SEND_SIGNAL: AtomicBool = AtomicBool::new(false);

/// A descriptor that becomes readable when its child has exited.
#[derive(Debug)]
pub struct ChildWatch {
    pidfd: OwnedFd,
    pid: i32,
}

impl ChildWatch {
    /// Takes ownership of a child's pidfd.
    ///
    /// # Safety
    ///
    /// Nothing else closes the descriptor.
    pub(crate) unsafe fn adopt(pidfd: RawFd, pid: i32) -> ChildWatch {
        // SAFETY: the caller upholds the contract.
        let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
        ChildWatch { pidfd, pid }
    }

    /// The descriptor, to wait on.
    pub fn fd(&self) -> RawFd {
        self.pidfd.as_raw_fd()
    }

    /// Sends a signal to the child. After the child has been reaped, the signal does not reach
    /// another process with the same pid.
    pub fn kill(&self, signum: i32) -> Result<(), Errno> {
        if NO_SEND_SIGNAL.load(Relaxed) {
            return pid::kill(self.pid, signum);
        }
        let info = ptr::null::<libc::siginfo_t>();
        // SAFETY: the null pointer means that no further information is passed.
        let sent =
            unsafe { libc::syscall(libc::SYS_pidfd_send_signal, self.fd(), signum, info, 0) };
        match check(sent as c_int) {
            // A sandbox may refuse this call with EPERM, and so may the child.
            Err(error @ (Errno::ENOSYS | Errno::EPERM | Errno::EBADF)) => {
                if error == Errno::ENOSYS {
                    NO_SEND_SIGNAL.store(true, Relaxed);
                }
                pid::kill(self.pid, signum)
            }
            sent => sent.map(drop),
        }
    }
}
