//! The metadata of files: <https://man7.org/linux/man-pages/man2/stat.2.html>, and of file systems:
//! <https://man7.org/linux/man-pages/man2/statfs.2.html>.

use super::retry;
use crate::platform::stat::query;
use crate::{Errno, RawFd, check, platform};
use std::ffi::CStr;
use std::mem::MaybeUninit;

/// A file's metadata.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the names are stat(2)'s, without their prefix")]
pub struct Stat {
    pub dev: u64,
    pub mode: u32,
    pub nlink: u64,
    pub uid: u32,
    pub gid: u32,
    pub rdev: u64,
    pub ino: u64,
    pub size: u64,
    pub blksize: u64,
    pub blocks: u64,
    pub atime: Timestamp,
    pub mtime: Timestamp,
    pub ctime: Timestamp,
    /// When the file was created; all zeros if the kernel or the file system does not report it.
    pub birthtime: Timestamp,
}

/// Seconds since 1970 and nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs, reason = "the names say it all")]
pub struct Timestamp {
    pub seconds: i64,
    pub nanoseconds: u32,
}

impl Stat {
    /// Whether both are the same file, under one name or two.
    pub fn is_same_file(&self, other: &Stat) -> bool {
        (self.dev, self.ino) == (other.dev, other.ino)
    }

    fn is(&self, type_: u32) -> bool {
        self.mode & libc::S_IFMT == type_
    }

    /// Whether this is a directory.
    pub fn is_dir(&self) -> bool {
        self.is(libc::S_IFDIR)
    }

    /// Whether this is a regular file: not a directory, a device or a pipe.
    pub fn is_regular(&self) -> bool {
        self.is(libc::S_IFREG)
    }
}

/// The metadata of the file at `path`, following links.
pub fn stat(path: &CStr) -> Result<Stat, Errno> {
    query(libc::AT_FDCWD, path, 0)
}

/// The metadata of the file at `path`, or of the link itself if it is one.
pub fn lstat(path: &CStr) -> Result<Stat, Errno> {
    query(libc::AT_FDCWD, path, libc::AT_SYMLINK_NOFOLLOW)
}

/// The metadata of an open file.
pub fn fstat(fd: RawFd) -> Result<Stat, Errno> {
    // One negative number stands for the current directory, which is not an open file.
    if fd < 0 {
        return Err(Errno::EBADF);
    }
    platform::stat::query_open(fd)
}

/// The metadata by POSIX's call, without the birth time, for a path below a directory.
#[cold]
pub(crate) fn query_posix(dir: RawFd, path: &CStr, flags: i32) -> Result<Stat, Errno> {
    let mut found = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the path lives through the call, and `found` has room for the result.
    retry(|| check(unsafe { libc::fstatat(dir, path.as_ptr(), found.as_mut_ptr(), flags) }))?;
    // SAFETY: the kernel has filled in `found`.
    Ok(Stat::from(unsafe { found.assume_init_ref() }))
}

impl From<&libc::stat> for Stat {
    fn from(found: &libc::stat) -> Stat {
        let time = |seconds, nanoseconds| Timestamp {
            seconds,
            nanoseconds: nanoseconds as u32,
        };
        Stat {
            dev: found.st_dev,
            mode: found.st_mode,
            nlink: found.st_nlink as _,
            uid: found.st_uid,
            gid: found.st_gid,
            rdev: found.st_rdev,
            ino: found.st_ino,
            size: found.st_size as u64,
            blksize: found.st_blksize as u64,
            blocks: found.st_blocks as u64,
            atime: time(found.st_atime, found.st_atime_nsec),
            mtime: time(found.st_mtime, found.st_mtime_nsec),
            ctime: time(found.st_ctime, found.st_ctime_nsec),
            birthtime: Timestamp::default(),
        }
    }
}

/// A file system's metadata.
#[derive(Clone, Copy, Debug)]
#[allow(
    missing_docs,
    reason = "the names are statfs(2)'s, without their prefix"
)]
pub struct FileSystem {
    pub type_: u64,
    pub bsize: u64,
    pub blocks: u64,
    pub bfree: u64,
    pub bavail: u64,
    pub files: u64,
    pub ffree: u64,
    pub frsize: u64,
}

/// The metadata of the file system that `path` is in.
pub fn statfs(path: &CStr) -> Result<FileSystem, Errno> {
    let mut found = MaybeUninit::<libc::statfs>::uninit();
    // SAFETY: the path lives through the call, and `found` has room for the result.
    retry(|| check(unsafe { libc::statfs(path.as_ptr(), found.as_mut_ptr()) }))?;
    // SAFETY: the kernel has filled in `found`.
    Ok(FileSystem::from(unsafe { found.assume_init_ref() }))
}

/// The metadata of the file system that an open file is in.
pub fn fstatfs(fd: RawFd) -> Result<FileSystem, Errno> {
    let mut found = MaybeUninit::<libc::statfs>::uninit();
    // SAFETY: `found` has room for the result, and any number is allowed as a descriptor.
    retry(|| check(unsafe { libc::fstatfs(fd, found.as_mut_ptr()) }))?;
    // SAFETY: the kernel has filled in `found`.
    Ok(FileSystem::from(unsafe { found.assume_init_ref() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_negative_number_is_an_open_file() {
        assert_eq!(fstat(-1), Err(Errno::EBADF));
        assert_eq!(fstat(libc::AT_FDCWD), Err(Errno::EBADF));
    }
}
