//! Awaiting the end of a child by its pidfd:
//! <https://man7.org/linux/man-pages/man2/pidfd_open.2.html>.

use crate::{Errno, RawFd, check, pid};
use std::ffi::c_int;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;

/// A descriptor that becomes readable when its child has ended.
#[derive(Debug)]
pub struct ChildWatch {
    pidfd: OwnedFd,
    pid: i32,
}

impl ChildWatch {
    /// Takes charge of the pidfd of a child.
    ///
    /// # Safety
    ///
    /// Nobody else closes the descriptor.
    pub(crate) unsafe fn adopt(pidfd: RawFd, pid: i32) -> ChildWatch {
        // SAFETY: the caller vouches for it.
        let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
        ChildWatch { pidfd, pid }
    }

    /// The descriptor, to wait on.
    pub fn fd(&self) -> RawFd {
        self.pidfd.as_raw_fd()
    }

    /// Sends a signal to the child. After the child has ended, the signal reaches no other process that
    /// has got its number.
    pub fn kill(&self, signum: i32) -> Result<(), Errno> {
        let info = ptr::null::<libc::siginfo_t>();
        // SAFETY: no further information is given.
        let sent =
            unsafe { libc::syscall(libc::SYS_pidfd_send_signal, self.fd(), signum, info, 0) };
        match check(sent as c_int) {
            // A sandbox may not know this call.
            Err(Errno::ENOSYS | Errno::EPERM | Errno::EBADF) => pid::kill(self.pid, signum),
            sent => sent.map(drop),
        }
    }
}
