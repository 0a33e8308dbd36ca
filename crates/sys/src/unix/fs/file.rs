//! What one does with a file by its descriptor, reading and writing aside.

use super::retry;
use crate::{Errno, RawFd, check};
use rustix::fs::{Mode, OFlags};
use std::ffi::CStr;
use std::os::fd::IntoRawFd;

pub use crate::platform::file::is_gone_with;

/// Opens a file, close-on-exec: <https://man7.org/linux/man-pages/man2/open.2.html>. The flags
/// and the mode are the kernel's.
pub fn open(path: &CStr, flags: i32, mode: u32) -> Result<RawFd, Errno> {
    let flags = OFlags::from_bits_retain(flags as u32) | OFlags::CLOEXEC;
    let mode = Mode::from_bits_retain(mode);
    let file = retry(|| Ok(rustix::fs::open(path, flags, mode)?))?;
    Ok(file.into_raw_fd())
}

/// Closes a descriptor: <https://man7.org/linux/man-pages/man2/close.2.html>. An error after which
/// the descriptor [is closed all the same](is_gone_with) is no failure.
pub fn close(fd: RawFd) -> Result<(), Errno> {
    // SAFETY: any number is allowed; whether the descriptor is the caller's to close is a
    // promise among the users of numbers, not one about memory.
    match check(unsafe { libc::close(fd) }) {
        Err(error) if !is_gone_with(error) => Err(error),
        _ => Ok(()),
    }
}

/// Writes the file's data and everything about it to the disk:
/// <https://man7.org/linux/man-pages/man2/fsync.2.html>.
pub fn sync(fd: RawFd) -> Result<(), Errno> {
    // SAFETY: no pointers, and any number is allowed.
    retry(|| check(unsafe { libc::fsync(fd) }).map(drop))
}

/// Writes the file's data to the disk, and of what is known about it only what one needs to
/// read the data back.
pub fn sync_data(fd: RawFd) -> Result<(), Errno> {
    // SAFETY: no pointers, and any number is allowed.
    retry(|| check(unsafe { libc::fdatasync(fd) }).map(drop))
}

/// Cuts the file, or makes it longer with zeros:
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

/// Sets the file's owner and group, or leaves alone what is −1:
/// <https://man7.org/linux/man-pages/man2/chown.2.html>.
pub fn set_owner(fd: RawFd, uid: u32, gid: u32) -> Result<(), Errno> {
    // SAFETY: no pointers, and any number is allowed.
    retry(|| check(unsafe { libc::fchown(fd, uid, gid) }).map(drop))
}
