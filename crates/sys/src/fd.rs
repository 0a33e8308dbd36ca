//! What one can ask and set on any file descriptor.

use crate::{Errno, RawFd, check};
use std::num::NonZeroI32;

/// Puts the descriptor into non-blocking mode or takes it out of it:
/// <https://man7.org/linux/man-pages/man2/fcntl.2.html>.
pub fn set_nonblocking(fd: RawFd, on: bool) -> Result<(), Errno> {
    let flags = status_flags(fd)?;
    let wanted = if on {
        flags | libc::O_NONBLOCK
    } else {
        flags & !libc::O_NONBLOCK
    };
    if wanted != flags {
        // SAFETY: F_SETFL takes no pointers and any number is allowed as a descriptor.
        check(unsafe { libc::fcntl(fd, libc::F_SETFL, wanted) })?;
    }
    Ok(())
}

/// What kind of file an open descriptor refers to: one of the `S_IF*` constants.
pub fn file_type(fd: RawFd) -> Result<libc::mode_t, Errno> {
    let mut stat = std::mem::MaybeUninit::<libc::stat>::uninit();
    // SAFETY: fstat fills `stat` or fails.
    check(unsafe { libc::fstat(fd, stat.as_mut_ptr()) })?;
    // SAFETY: fstat succeeded and has filled it.
    Ok(unsafe { stat.assume_init() }.st_mode & libc::S_IFMT)
}

/// Says whether readiness means anything for this descriptor: `EBADF` if it is not open,
/// `EPERM` for regular files and directories, which are always ready and which epoll
/// refuses with the same error.
pub fn check_pollable(fd: RawFd) -> Result<(), Errno> {
    match file_type(fd)? {
        libc::S_IFREG | libc::S_IFDIR => Err(Errno::EPERM),
        _ => Ok(()),
    }
}

/// How an open descriptor was opened: the flags that `fcntl(F_GETFL)` gives.
pub fn status_flags(fd: RawFd) -> Result<libc::c_int, Errno> {
    // SAFETY: F_GETFL takes no pointers and any number is allowed as a descriptor.
    check(unsafe { libc::fcntl(fd, libc::F_GETFL) })
}

/// Whether a descriptor can be read from and written to, as it was opened.
pub fn directions(fd: RawFd) -> Result<(bool, bool), Errno> {
    let mode = status_flags(fd)? & libc::O_ACCMODE;
    Ok((mode != libc::O_WRONLY, mode != libc::O_RDONLY))
}

/// A descriptor that is ours to close.
///
/// Standard input, output and error are never closed, whoever owns them: the next file
/// that anybody opens would take their place.
#[derive(Debug, PartialEq, Eq)]
pub struct Descriptor(
    /// The number with its sign bit flipped, so that an option of this takes no more room. A C
    /// program may hand us any number, −1 too, which is why that is not the one to spare.
    NonZeroI32,
);

const _: () = assert!(size_of::<Option<Descriptor>>() == size_of::<RawFd>());

impl Descriptor {
    /// Takes charge of an open descriptor.
    ///
    /// # Safety
    ///
    /// Nobody else closes it, nor relies on its staying open after this has been dropped.
    pub unsafe fn adopt(fd: RawFd) -> Descriptor {
        // The lowest of all numbers is as bad a descriptor as any other below zero.
        let flipped = NonZeroI32::new(fd ^ RawFd::MIN);
        Descriptor(flipped.unwrap_or(NonZeroI32::MAX))
    }

    /// The number.
    #[inline]
    pub fn raw(&self) -> RawFd {
        self.0.get() ^ RawFd::MIN
    }

    /// Gives the descriptor away without closing it.
    pub fn release(self) -> RawFd {
        let fd = self.raw();
        std::mem::forget(self);
        fd
    }

    /// A second, close-on-exec descriptor for the same file.
    pub fn duplicate(&self) -> Result<Descriptor, Errno> {
        // SAFETY: F_DUPFD_CLOEXEC takes no pointers.
        let fd = check(unsafe { libc::fcntl(self.raw(), libc::F_DUPFD_CLOEXEC, 0) })?;
        // SAFETY: the kernel just made this descriptor for us alone.
        Ok(unsafe { Descriptor::adopt(fd) })
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        let fd = self.raw();
        if fd > libc::STDERR_FILENO {
            // SAFETY: it is ours. After an error, EINTR too, it is closed all the same.
            unsafe { libc::close(fd) };
        }
    }
}

/// A descriptor that refers to nothing much, kept in reserve for when there are no others.
pub fn open_reserve() -> Result<Descriptor, Errno> {
    let flags = libc::O_RDONLY | libc::O_CLOEXEC;
    // SAFETY: the path is a C string.
    let fd = check(unsafe { libc::open(c"/".as_ptr(), flags) })?;
    // SAFETY: the kernel just made this descriptor for us alone.
    Ok(unsafe { Descriptor::adopt(fd) })
}

/// Adds permissions to a file.
pub fn add_mode(path: &[u8], mode: libc::mode_t) -> Result<(), Errno> {
    let path = std::ffi::CString::new(path).map_err(|_| Errno::EINVAL)?;
    let mut stat = std::mem::MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the path is a C string, and stat fills `stat` or fails.
    check(unsafe { libc::stat(path.as_ptr(), stat.as_mut_ptr()) })?;
    // SAFETY: stat succeeded and has filled it.
    let before = unsafe { stat.assume_init() }.st_mode;
    if before & mode == mode {
        return Ok(());
    }
    // SAFETY: the path is a C string.
    check(unsafe { libc::chmod(path.as_ptr(), before | mode) }).map(drop)
}

/// Whether the descriptor is a terminal.
pub fn is_terminal(fd: RawFd) -> bool {
    // SAFETY: isatty takes no pointers and any number is allowed as a descriptor.
    unsafe { libc::isatty(fd) == 1 }
}

/// Removes a file.
pub fn unlink(path: &std::ffi::CStr) -> Result<(), Errno> {
    // SAFETY: the path is a C string.
    check(unsafe { libc::unlink(path.as_ptr()) }).map(drop)
}

/// Whether the number is an open descriptor.
pub fn is_open(fd: RawFd) -> bool {
    // SAFETY: F_GETFD takes no pointers and any number is allowed as a descriptor.
    unsafe { libc::fcntl(fd, libc::F_GETFD) != -1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_is_kept_as_it_is() {
        for fd in [-1, 0, 3, RawFd::MAX, RawFd::MIN + 1] {
            // SAFETY: it is released again, so nothing is closed.
            let descriptor = Some(unsafe { Descriptor::adopt(fd) });
            assert_eq!(descriptor.map(Descriptor::release), Some(fd));
        }
        // SAFETY: as above.
        let worst = Some(unsafe { Descriptor::adopt(RawFd::MIN) });
        assert_eq!(worst.map(Descriptor::release), Some(-1));
    }
}
