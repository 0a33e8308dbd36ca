//! Queries and settings for all kinds of file descriptors, and their ownership.

use crate::fallible::{self, Arc};
use crate::{Errno, RawFd, check};
use std::num::NonZeroI32;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd};

/// Sets or clears the descriptor's non-blocking mode:
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

/// The type of the file behind an open descriptor: one of the `S_IF*` constants.
pub fn file_type(fd: RawFd) -> Result<libc::mode_t, Errno> {
    let mut stat = std::mem::MaybeUninit::<libc::stat>::uninit();
    // SAFETY: fstat fills `stat` or fails.
    check(unsafe { libc::fstat(fd, stat.as_mut_ptr()) })?;
    // SAFETY: fstat succeeded and has filled it.
    Ok(unsafe { stat.assume_init() }.st_mode & libc::S_IFMT)
}

/// Checks that readiness has a meaning for the descriptor: `EBADF` if it is not open, `EPERM` for
/// regular files and directories, which are always ready and which epoll refuses with the same
/// error.
pub fn check_pollable(fd: RawFd) -> Result<(), Errno> {
    match file_type(fd)? {
        libc::S_IFREG | libc::S_IFDIR => Err(Errno::EPERM),
        _ => Ok(()),
    }
}

/// The flags that an open descriptor has by `fcntl(F_GETFL)`.
pub fn status_flags(fd: RawFd) -> Result<libc::c_int, Errno> {
    // SAFETY: F_GETFL takes no pointers and any number is allowed as a descriptor.
    check(unsafe { libc::fcntl(fd, libc::F_GETFL) })
}

/// The flag of an open file whose calls do not wait.
pub const NONBLOCK: libc::c_int = libc::O_NONBLOCK;

/// Whether calls on an open descriptor may block: it does not have `O_NONBLOCK`.
pub fn may_wait(fd: RawFd) -> bool {
    status_flags(fd).is_ok_and(|flags| flags & libc::O_NONBLOCK == 0)
}

/// Whether a descriptor was opened for reading and for writing.
pub fn directions(fd: RawFd) -> Result<(bool, bool), Errno> {
    let mode = status_flags(fd)? & libc::O_ACCMODE;
    Ok((mode != libc::O_WRONLY, mode != libc::O_RDONLY))
}

/// An owned descriptor.
///
/// Standard input, output and error are never closed, even if owned: the next file to be opened
/// would take their place.
#[derive(Debug)]
pub struct Descriptor {
    /// The number with its sign bit flipped, so that an `Option` of this takes no extra space. The
    /// niche is not −1, since a C program may pass any number.
    flipped: NonZeroI32,
    /// The shared owner, once the descriptor is [shared](Descriptor::share).
    shared: Option<SharedFd>,
}

const _: () = assert!(size_of::<Option<Descriptor>>() == 16);

impl Descriptor {
    /// Takes ownership of an open descriptor.
    ///
    /// # Safety
    ///
    /// Nothing else closes the descriptor, nor relies on its staying open after this has been
    /// dropped.
    pub unsafe fn adopt(fd: RawFd) -> Descriptor {
        // `i32::MIN`, the niche, is as invalid as any other negative number.
        let flipped = NonZeroI32::new(fd ^ RawFd::MIN);
        Descriptor {
            flipped: flipped.unwrap_or(NonZeroI32::MAX),
            shared: None,
        }
    }

    /// The number.
    #[inline]
    pub fn raw(&self) -> RawFd {
        self.flipped.get() ^ RawFd::MIN
    }

    /// Releases the descriptor without closing it.
    pub fn release(self) -> RawFd {
        let fd = self.raw();
        std::mem::forget(self);
        fd
    }

    /// Adds an owner: the descriptor is closed when the last one is dropped.
    pub fn share(&mut self) -> Result<SharedFd, Errno> {
        if let Some(shared) = &self.shared {
            return Ok(shared.clone());
        }
        let shared = SharedFd(Arc::try_new(Closer(self.raw()))?);
        Ok(self.shared.insert(shared).clone())
    }

    /// The descriptor with a single owner; a duplicate, if it is shared.
    pub fn into_owned(self) -> Result<OwnedFd, Errno> {
        let fd = match self.shared {
            None => self.release(),
            Some(_) => self.duplicate()?.release(),
        };
        // SAFETY: the descriptor is not shared, so nothing else owns it.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }

    /// A second, close-on-exec descriptor for the same file.
    pub fn duplicate(&self) -> Result<Descriptor, Errno> {
        duplicate(self.raw()).map(Descriptor::from)
    }
}

/// A close-on-exec duplicate of the descriptor, which the caller owns.
pub fn duplicate(fd: RawFd) -> Result<OwnedFd, Errno> {
    // SAFETY: F_DUPFD_CLOEXEC takes no pointers.
    let fd = check(unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 0) })?;
    // SAFETY: the kernel has just made this descriptor, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

impl From<OwnedFd> for Descriptor {
    fn from(fd: OwnedFd) -> Descriptor {
        // SAFETY: an `OwnedFd` has sole ownership of its descriptor.
        unsafe { Descriptor::adopt(fd.into_raw_fd()) }
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        if self.shared.is_none() {
            drop(Closer(self.raw()));
        }
    }
}

/// Closes its descriptor when dropped.
#[derive(Debug)]
struct Closer(RawFd);

impl Drop for Closer {
    fn drop(&mut self) {
        if self.0 > libc::STDERR_FILENO {
            // SAFETY: this owns the descriptor. After an error, even EINTR, it is closed all the
            // same.
            unsafe { libc::close(self.0) };
        }
    }
}

/// An owner of a [`Descriptor`], which stays open while one exists.
#[derive(Clone, Debug)]
pub struct SharedFd(Arc<Closer>);

impl AsFd for SharedFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor is open while this exists.
        unsafe { BorrowedFd::borrow_raw(self.0.0) }
    }
}

/// A descriptor held in reserve, to be closed when no others are left.
pub fn open_reserve() -> Result<Descriptor, Errno> {
    let flags = libc::O_RDONLY | libc::O_CLOEXEC;
    // SAFETY: the path is a C string.
    let fd = check(unsafe { libc::open(c"/".as_ptr(), flags) })?;
    // SAFETY: the kernel has just made this descriptor, and nothing else owns it.
    Ok(unsafe { Descriptor::adopt(fd) })
}

/// Sets the permissions of a file. Does nothing for an empty path or an abstract name.
pub fn set_mode(path: &[u8], mode: libc::mode_t) -> Result<(), Errno> {
    let path = fallible::c_string(path).map_err(|error| match error {
        Errno::EINVAL => Errno::ENOENT,
        error => error,
    })?;
    // SAFETY: the path is a C string.
    check(unsafe { libc::chmod(path.as_ptr(), mode) }).map(drop)
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
    use std::os::fd::AsRawFd;

    #[test]
    fn any_number_is_kept_as_it_is() {
        for fd in [-1, 0, 3, RawFd::MAX, RawFd::MIN + 1] {
            // SAFETY: the descriptor is released again, so nothing is closed.
            let descriptor = Some(unsafe { Descriptor::adopt(fd) });
            assert_eq!(descriptor.map(Descriptor::release), Some(fd));
        }
        // SAFETY: as above.
        let worst = Some(unsafe { Descriptor::adopt(RawFd::MIN) });
        assert_eq!(worst.map(Descriptor::release), Some(-1));
    }

    #[test]
    fn a_shared_descriptor_is_closed_by_its_last_owner() {
        let (reader, _writer) = std::io::pipe().unwrap();
        let mut descriptor = Descriptor::from(OwnedFd::from(reader));
        let raw = descriptor.raw();
        let shared = [descriptor.share().unwrap(), descriptor.share().unwrap()];
        assert_eq!(shared[0].as_fd().as_raw_fd(), raw);
        drop(descriptor);
        assert!(is_open(raw));
        // A closed number may be reused at once, so the test looks at the file behind it.
        let end = crate::fs::stat::fstat(raw).unwrap();
        drop(shared);
        let now = crate::fs::stat::fstat(raw);
        assert!(!now.is_ok_and(|now| now.is_same_file(&end)));
    }

    #[test]
    fn a_shared_descriptor_is_given_away_as_a_second_one() {
        let (reader, _writer) = std::io::pipe().unwrap();
        let mut descriptor = Descriptor::from(OwnedFd::from(reader));
        let raw = descriptor.raw();
        let shared = descriptor.share().unwrap();
        let owned = descriptor.into_owned().unwrap();
        assert_ne!(owned.as_raw_fd(), raw);
        assert!(is_open(shared.as_fd().as_raw_fd()));
        let alone = Descriptor::from(owned);
        let raw = alone.raw();
        assert_eq!(alone.into_owned().unwrap().as_raw_fd(), raw);
    }
}
