//! What one can ask and set on any file descriptor.

use crate::{Errno, RawFd, check};

/// Puts the descriptor into non-blocking mode or takes it out of it:
/// <https://man7.org/linux/man-pages/man2/fcntl.2.html>.
pub fn set_nonblocking(fd: RawFd, on: bool) -> Result<(), Errno> {
    // SAFETY: F_GETFL takes no pointers and any number is allowed as a descriptor.
    let flags = check(unsafe { libc::fcntl(fd, libc::F_GETFL) })?;
    let wanted = if on {
        flags | libc::O_NONBLOCK
    } else {
        flags & !libc::O_NONBLOCK
    };
    if wanted != flags {
        // SAFETY: as above.
        check(unsafe { libc::fcntl(fd, libc::F_SETFL, wanted) })?;
    }
    Ok(())
}

/// Says whether readiness means anything for this descriptor: `EBADF` if it is not open,
/// `EPERM` for regular files and directories, which are always ready and which epoll
/// refuses with the same error.
pub fn check_pollable(fd: RawFd) -> Result<(), Errno> {
    let mut stat = std::mem::MaybeUninit::<libc::stat>::uninit();
    // SAFETY: fstat fills `stat` or fails.
    check(unsafe { libc::fstat(fd, stat.as_mut_ptr()) })?;
    // SAFETY: fstat succeeded and has filled it.
    let mode = unsafe { stat.assume_init() }.st_mode & libc::S_IFMT;
    if mode == libc::S_IFREG || mode == libc::S_IFDIR {
        return Err(Errno::EPERM);
    }
    Ok(())
}

/// Whether the number is an open descriptor.
pub fn is_open(fd: RawFd) -> bool {
    // SAFETY: F_GETFD takes no pointers and any number is allowed as a descriptor.
    unsafe { libc::fcntl(fd, libc::F_GETFD) != -1 }
}
