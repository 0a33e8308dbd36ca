//! A file's birth time, which POSIX lacks: <https://man7.org/linux/man-pages/man2/statx.2.html>.

use crate::fs::retry;
use crate::fs::stat::{FileSystem, Stat, Timestamp, query_posix};
use crate::{Errno, RawFd, check};
use std::ffi::{CStr, c_char, c_int};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// All fields of stat(2), and the birth time.
pub(crate) const MASK: u32 = libc::STATX_BASIC_STATS | libc::STATX_BTIME;

/// Set when the kernel, or a filter of system calls, reports that there is no `statx`.
static NO_STATX: AtomicBool = AtomicBool::new(false);

/// The metadata of the file at a path below a directory.
#[inline]
pub(crate) fn query(dir: RawFd, path: &CStr, flags: c_int) -> Result<Stat, Errno> {
    if NO_STATX.load(Relaxed) {
        return query_posix(dir, path, flags);
    }
    let mut found = MaybeUninit::<libc::statx>::uninit();
    let result = retry(|| {
        // SAFETY: the path lives through the call, and `found` has room for the result.
        check(unsafe { statx(dir, path.as_ptr(), flags, found.as_mut_ptr()) })
    });
    match result {
        // SAFETY: the kernel has filled in `found`.
        Ok(_) => Ok(Stat::from(unsafe { found.assume_init_ref() })),
        Err(error) => match error {
            // Sandboxes that do not know the call refuse it with EPERM, which stat(2) never
            // returns; some network file systems refuse it with EOPNOTSUPP.
            Errno::ENOSYS | Errno::EPERM | Errno::ENOTSUP => {
                NO_STATX.store(error != Errno::ENOTSUP, Relaxed);
                query_posix(dir, path, flags)
            }
            error => Err(error),
        },
    }
}

/// Asks for the fields in [`MASK`].
///
/// # Safety
///
/// The path ends in a NUL, and `found` has room for the result.
unsafe fn statx(dir: RawFd, path: *const c_char, flags: c_int, found: *mut libc::statx) -> c_int {
    // musl has the function since 1.2.5 only, and a library that links to it does not load with an
    // older one.
    #[cfg(target_env = "musl")]
    // SAFETY: the caller guarantees the pointers.
    return unsafe { libc::syscall(libc::SYS_statx, dir, path, flags, MASK, found) as c_int };
    #[cfg(not(target_env = "musl"))]
    // SAFETY: the caller guarantees the pointers.
    return unsafe { libc::statx(dir, path, flags, MASK, found) };
}

/// The metadata of an open file.
pub(crate) fn query_open(fd: RawFd) -> Result<Stat, Errno> {
    query(fd, c"", libc::AT_EMPTY_PATH)
}

impl From<&libc::statx> for Stat {
    fn from(found: &libc::statx) -> Stat {
        let time = |time: &libc::statx_timestamp| Timestamp {
            seconds: time.tv_sec,
            nanoseconds: time.tv_nsec,
        };
        let has_birth_time = found.stx_mask & libc::STATX_BTIME != 0;
        Stat {
            dev: libc::makedev(found.stx_dev_major, found.stx_dev_minor),
            mode: found.stx_mode.into(),
            nlink: found.stx_nlink.into(),
            uid: found.stx_uid,
            gid: found.stx_gid,
            rdev: libc::makedev(found.stx_rdev_major, found.stx_rdev_minor),
            ino: found.stx_ino,
            size: found.stx_size,
            blksize: found.stx_blksize.into(),
            blocks: found.stx_blocks,
            atime: time(&found.stx_atime),
            mtime: time(&found.stx_mtime),
            ctime: time(&found.stx_ctime),
            birthtime: match has_birth_time {
                true => time(&found.stx_btime),
                false => Timestamp::default(),
            },
        }
    }
}

impl From<&libc::statfs> for FileSystem {
    fn from(found: &libc::statfs) -> FileSystem {
        FileSystem {
            type_: found.f_type as u64,
            bsize: found.f_bsize as u64,
            blocks: found.f_blocks,
            bfree: found.f_bfree,
            bavail: found.f_bavail,
            files: found.f_files,
            ffree: found.f_ffree,
            frsize: found.f_frsize as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statx_and_fstatat_agree() {
        for path in [c"/", c"/dev/null", c"/proc/self/exe"] {
            for flags in [0, libc::AT_SYMLINK_NOFOLLOW] {
                let with = query(libc::AT_FDCWD, path, flags).unwrap();
                let without = query_posix(libc::AT_FDCWD, path, flags).unwrap();
                let with = Stat {
                    birthtime: Timestamp::default(),
                    ..with
                };
                assert_eq!(with, without, "{path:?}");
            }
        }
    }
}
