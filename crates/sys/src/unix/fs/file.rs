//! Operations on open files, except reading and writing.

use super::retry;
use crate::{Errno, RawFd, check};
use rustix::fs::{Mode, OFlags};
use std::ffi::CStr;
use std::os::fd::IntoRawFd;

pub use crate::platform::file::is_closed_despite;

/// Opens a file, close-on-exec: <https://man7.org/linux/man-pages/man2/open.2.html>. The flags
/// and the mode are the kernel's.
pub fn open(path: &CStr, flags: i32, mode: u32) -> Result<RawFd, Errno> {
    let flags = OFlags::from_bits_retain(flags as u32) | OFlags::CLOEXEC;
    let mode = Mode::from_bits_retain(mode);
    let file = retry(|| Ok(rustix::fs::open(path, flags, mode)?))?;
    Ok(file.into_raw_fd())
}

/// Closes a descriptor: <https://man7.org/linux/man-pages/man2/close.2.html>. An error after which
/// the descriptor [is closed](is_closed_despite) counts as success.
pub fn close(fd: RawFd) -> Result<(), Errno> {
    // SAFETY: any number is memory-safe; whether the caller may close the descriptor is a matter of
    // ownership among its users.
    match check(unsafe { libc::close(fd) }) {
        Err(error) if !is_closed_despite(error) => Err(error),
        _ => Ok(()),
    }
}

/// Flushes the file's data and metadata to the disk:
/// <https://man7.org/linux/man-pages/man2/fsync.2.html>.
pub fn sync(fd: RawFd) -> Result<(), Errno> {
    // SAFETY: no pointers, and any number is allowed.
    retry(|| check(unsafe { libc::fsync(fd) }).map(drop))
}

/// Flushes the file's data to the disk, and only the metadata needed to read the data back.
pub fn sync_data(fd: RawFd) -> Result<(), Errno> {
    // SAFETY: no pointers, and any number is allowed.
    retry(|| check(unsafe { libc::fdatasync(fd) }).map(drop))
}

/// Truncates the file, or extends it with zeros:
/// <https://man7.org/linux/man-pages/man2/ftruncate.2.html>.
pub fn truncate(fd: RawFd, len: i64) -> Result<(), Errno> {
    // SAFETY: no pointers, and any number is allowed.
    retry(|| check(unsafe { libc::ftruncate(fd, len) }).map(drop))
}

/// Sets the file's permission bits: <https://man7.org/linux/man-pages/man2/chmod.2.html>.
pub fn set_mode(fd: RawFd, mode: u32) -> Result<(), Errno> {
    // SAFETY: no pointers, and any number is allowed.
    retry(|| check(unsafe { libc::fchmod(fd, mode) }).map(drop))
}

/// Sets the file's owner and group; −1 leaves one unchanged:
/// <https://man7.org/linux/man-pages/man2/chown.2.html>.
pub fn set_owner(fd: RawFd, uid: u32, gid: u32) -> Result<(), Errno> {
    // SAFETY: no pointers, and any number is allowed.
    retry(|| check(unsafe { libc::fchown(fd, uid, gid) }).map(drop))
}
