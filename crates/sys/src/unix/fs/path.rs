//! Operations on files by path.

use super::retry;
use crate::{Errno, RawFd, check};
use rustix::fs::{Access, AtFlags, CWD, Gid, Mode, Uid};
use std::ffi::CStr;
use std::ops::Deref;
use std::ptr::NonNull;

/// Removes a name: <https://man7.org/linux/man-pages/man2/unlink.2.html>.
pub fn unlink(path: &CStr) -> Result<(), Errno> {
    retry(|| Ok(rustix::fs::unlink(path)?))
}

/// Makes a directory: <https://man7.org/linux/man-pages/man2/mkdir.2.html>.
pub fn mkdir(path: &CStr, mode: u32) -> Result<(), Errno> {
    retry(|| Ok(rustix::fs::mkdir(path, Mode::from_bits_retain(mode))?))
}

/// Removes an empty directory: <https://man7.org/linux/man-pages/man2/rmdir.2.html>.
pub fn rmdir(path: &CStr) -> Result<(), Errno> {
    retry(|| Ok(rustix::fs::rmdir(path)?))
}

/// Renames a file: <https://man7.org/linux/man-pages/man2/rename.2.html>.
pub fn rename(from: &CStr, to: &CStr) -> Result<(), Errno> {
    retry(|| Ok(rustix::fs::rename(from, to)?))
}

/// Makes a hard link: <https://man7.org/linux/man-pages/man2/link.2.html>.
pub fn link(from: &CStr, to: &CStr) -> Result<(), Errno> {
    retry(|| Ok(rustix::fs::link(from, to)?))
}

/// Makes a symbolic link: <https://man7.org/linux/man-pages/man2/symlink.2.html>.
pub fn symlink(target: &CStr, path: &CStr) -> Result<(), Errno> {
    retry(|| Ok(rustix::fs::symlink(target, path)?))
}

/// Checks whether the process may access the file in the ways of `mode`, in access(2)'s bits:
/// <https://man7.org/linux/man-pages/man2/access.2.html>.
pub fn access(path: &CStr, mode: u32) -> Result<(), Errno> {
    retry(|| {
        Ok(rustix::fs::access(
            path,
            Access::from_bits_retain(mode as _),
        )?)
    })
}

/// Sets a file's permission bits: <https://man7.org/linux/man-pages/man2/chmod.2.html>.
pub fn chmod(path: &CStr, mode: u32) -> Result<(), Errno> {
    retry(|| Ok(rustix::fs::chmod(path, Mode::from_bits_retain(mode))?))
}

/// The number −1 means "leave unchanged".
fn owner(uid: u32, gid: u32) -> (Option<Uid>, Option<Gid>) {
    let uid = (uid != u32::MAX).then(|| Uid::from_raw(uid));
    (uid, (gid != u32::MAX).then(|| Gid::from_raw(gid)))
}

/// Sets a file's owner and group; −1 leaves one unchanged:
/// <https://man7.org/linux/man-pages/man2/chown.2.html>.
pub fn chown(path: &CStr, uid: u32, gid: u32) -> Result<(), Errno> {
    let (uid, gid) = owner(uid, gid);
    retry(|| Ok(rustix::fs::chown(path, uid, gid)?))
}

/// As [`chown`], for a symbolic link itself.
pub fn lchown(path: &CStr, uid: u32, gid: u32) -> Result<(), Errno> {
    let (uid, gid) = owner(uid, gid);
    let flags = AtFlags::SYMLINK_NOFOLLOW;
    retry(|| Ok(rustix::fs::chownat(CWD, path, uid, gid, flags)?))
}

/// The first buffer size, which suffices for nearly all links.
const USUAL_LINK: usize = 256;

/// The target of a symbolic link, of any length:
/// <https://man7.org/linux/man-pages/man2/readlink.2.html>.
pub fn readlink(path: &CStr) -> Result<Vec<u8>, Errno> {
    let mut target = Vec::new();
    let mut room = USUAL_LINK;
    loop {
        target.try_reserve_exact(room)?;
        let spare = target.spare_capacity_mut();
        let (start, room_now) = (spare.as_mut_ptr().cast(), spare.len());
        let len = retry(|| {
            // SAFETY: the path lives through the call, and the buffer has that size.
            super::check_bytes(unsafe { libc::readlink(path.as_ptr(), start, room_now) })
        })?;
        // The kernel truncates silently: only a result that leaves room is known to be complete.
        if len < room_now {
            // SAFETY: the kernel has filled that many bytes.
            unsafe { target.set_len(len) };
            return Ok(target);
        }
        room = room_now.saturating_mul(4);
    }
}

/// A path in memory that libc allocated.
#[derive(Debug)]
pub struct RealPath(NonNull<libc::c_char>);

impl Deref for RealPath {
    type Target = CStr;

    fn deref(&self) -> &CStr {
        // SAFETY: realpath returned a C string that only this owns.
        unsafe { CStr::from_ptr(self.0.as_ptr()) }
    }
}

impl Drop for RealPath {
    fn drop(&mut self) {
        // SAFETY: the memory came from libc's malloc, and only this owned it.
        unsafe { libc::free(self.0.as_ptr().cast()) }
    }
}

/// The absolute path without links, dots and double slashes:
/// <https://man7.org/linux/man-pages/man3/realpath.3.html>. libc allocates the memory, since no
/// fixed buffer size is safe.
pub fn realpath(path: &CStr) -> Result<RealPath, Errno> {
    // SAFETY: the path lives through the call; null makes libc allocate.
    let found = unsafe { libc::realpath(path.as_ptr(), std::ptr::null_mut()) };
    NonNull::new(found).map(RealPath).ok_or_else(Errno::last)
}

/// A path that ends in `XXXXXX`, which becomes the name of a new file.
///
/// # Safety
///
/// It points to a writable C string that nothing else uses meanwhile.
pub type Template = *mut libc::c_char;

/// Makes a directory with a unique name: <https://man7.org/linux/man-pages/man3/mkdtemp.3.html>.
///
/// # Safety
///
/// See [`Template`].
pub unsafe fn mkdtemp(template: Template) -> Result<(), Errno> {
    // SAFETY: the caller guarantees the template.
    match unsafe { libc::mkdtemp(template) }.is_null() {
        true => Err(Errno::last()),
        false => Ok(()),
    }
}

/// Creates and opens a file with a unique name, close-on-exec:
/// <https://man7.org/linux/man-pages/man3/mkstemp.3.html>.
///
/// # Safety
///
/// See [`Template`].
pub unsafe fn mkstemp(template: Template) -> Result<RawFd, Errno> {
    // SAFETY: the caller guarantees the template.
    check(unsafe { libc::mkostemp(template, libc::O_CLOEXEC) })
}
