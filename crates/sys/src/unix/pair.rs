//! Pairs of connected descriptors.

use crate::fd::set_nonblocking;
use crate::{Errno, RawFd, check};
use std::ffi::c_int;
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd};

/// Sets the modes in which the two ends differ.
fn finish(pair: [OwnedFd; 2], nonblocking: [bool; 2]) -> Result<[RawFd; 2], Errno> {
    if nonblocking[0] != nonblocking[1] {
        for (fd, nonblocking) in pair.iter().zip(nonblocking) {
            if nonblocking {
                set_nonblocking(fd.as_raw_fd(), true)?;
            }
        }
    }
    Ok(pair.map(IntoRawFd::into_raw_fd))
}

/// # Safety
///
/// The numbers are two open descriptors that nothing else owns.
unsafe fn own(fds: [RawFd; 2]) -> [OwnedFd; 2] {
    // SAFETY: the caller upholds the contract.
    fds.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The reading and the writing end of a pipe, close-on-exec:
/// <https://man7.org/linux/man-pages/man2/pipe.2.html>.
pub fn pipe(nonblocking: [bool; 2]) -> Result<[RawFd; 2], Errno> {
    let mut flags = libc::O_CLOEXEC;
    if nonblocking == [true; 2] {
        flags |= libc::O_NONBLOCK;
    }
    let mut fds = [-1; 2];
    // SAFETY: the array has room for two numbers.
    check(unsafe { libc::pipe2(fds.as_mut_ptr(), flags) })?;
    // SAFETY: the kernel has just made these descriptors, and nothing else owns them.
    finish(unsafe { own(fds) }, nonblocking)
}

/// Two connected Unix sockets, close-on-exec:
/// <https://man7.org/linux/man-pages/man2/socketpair.2.html>.
pub fn sockets(kind: c_int, protocol: c_int, nonblocking: [bool; 2]) -> Result<[RawFd; 2], Errno> {
    let mut kind = kind | libc::SOCK_CLOEXEC;
    if nonblocking == [true; 2] {
        kind |= libc::SOCK_NONBLOCK;
    }
    let mut fds = [-1; 2];
    // SAFETY: the array has room for two numbers.
    check(unsafe { libc::socketpair(libc::AF_UNIX, kind, protocol, fds.as_mut_ptr()) })?;
    // SAFETY: the kernel has just made these descriptors, and nothing else owns them.
    finish(unsafe { own(fds) }, nonblocking)
}
