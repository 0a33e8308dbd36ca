//! Copying between files inside the kernel:
//! <https://man7.org/linux/man-pages/man2/copy_file_range.2.html>,
//! <https://man7.org/linux/man-pages/man2/sendfile.2.html>,
//! <https://man7.org/linux/man-pages/man2/ioctl_ficlone.2.html>.

use crate::fs::copy::wait_for_room;
use crate::fs::stat::FileSystem;
use crate::fs::{check_bytes, retry};
use crate::{Errno, RawFd, check};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Whether an error of [`copy_range`] or [`send_file`] may only mean that the call is unavailable:
/// not built in, forbidden by a sandbox, or unsupported across file systems, for this kind of file,
/// for this file system, or for a pipe. If the error has another cause, the fallback fails as well.
pub(crate) fn is_refusal(error: Errno) -> bool {
    matches!(
        error,
        Errno::ENOSYS
            | Errno::EPERM
            | Errno::EACCES
            | Errno::EXDEV
            | Errno::EINVAL
            | Errno::ENOTSUP
            | Errno::ETXTBSY
            | Errno::ENOTSOCK
            | Errno::ESPIPE
    )
}

/// Set when the kernel, or a filter of system calls, reports that there is no `copy_file_range`.
static NO_COPY_RANGE: AtomicBool = AtomicBool::new(false);

/// Copies up to `len` bytes from `offset` of one file to the position of another.
pub(crate) fn copy_range(
    output: RawFd,
    input: RawFd,
    offset: &mut i64,
    len: usize,
) -> Result<usize, Errno> {
    if NO_COPY_RANGE.load(Relaxed) {
        return Err(Errno::ENOSYS);
    }
    let null = std::ptr::null_mut();
    let copied = retry(|| {
        // SAFETY: the offset lives through the call, null means the file's own position, and any
        // number is allowed as a descriptor.
        check_bytes(unsafe { libc::copy_file_range(input, offset, output, null, len, 0) })
    });
    if copied == Err(Errno::ENOSYS) {
        NO_COPY_RANGE.store(true, Relaxed);
    }
    copied
}

/// Sends until `len` bytes are sent or the input ends. Waits for a pipe or a socket, which takes
/// only as much as it has room for. After an error, the bytes sent before it are the result.
pub(crate) fn send_file(
    output: RawFd,
    input: RawFd,
    offset: &mut i64,
    len: usize,
) -> Result<usize, Errno> {
    let mut sent = 0;
    while sent < len {
        let result = retry(|| {
            // SAFETY: the offset lives through the call, and any number is allowed as a
            // descriptor.
            check_bytes(unsafe { libc::sendfile(output, input, offset, len - sent) })
        });
        let waited = match result {
            Ok(0) => break,
            Ok(count) => {
                sent += count;
                Ok(())
            }
            Err(Errno::EAGAIN) => wait_for_room(output),
            Err(error) => Err(error),
        };
        match waited {
            Err(error) if sent == 0 => return Err(error),
            Err(_) => break,
            Ok(()) => {}
        }
    }
    Ok(sent)
}

/// The types of file systems that are Windows shares: SMB, CIFS and SMB2.
const WINDOWS_SHARES: [u64; 3] = [0x517b, 0xff53_4d42, 0xfe53_4d42];

/// Whether a file system is a Windows share.
pub(crate) fn is_windows_share(system: &FileSystem) -> bool {
    WINDOWS_SHARES.contains(&system.type_)
}

/// Makes the target share all blocks of the source.
pub(crate) fn clone(source: RawFd, target: RawFd) -> Result<(), Errno> {
    // SAFETY: FICLONE takes a descriptor, and any number is allowed as one.
    retry(|| check(unsafe { libc::ioctl(target, libc::FICLONE, source) }).map(drop))
}
