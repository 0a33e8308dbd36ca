//! Reads and writes files, with several buffers at once:
//! <https://man7.org/linux/man-pages/man2/readv.2.html>.
//!
//! The kernel takes at most [`MAX_BUFFERS`] buffers per call. A read stops there, as a short read;
//! a write makes further calls until all is written.

use super::{check_bytes, retry};
use crate::{Errno, RawFd};

/// A buffer, as the kernel describes it.
pub use libc::iovec as Buffer;

/// The most buffers that one system call takes.
pub use crate::platform::buffer::IOV_MAX as MAX_BUFFERS;

/// Reads into the buffers in order, from `offset` or from the file's own position, which then
/// advances. A short read is no error, and zero is the end of the file. An interruption by a signal
/// is reported as `EINTR`.
///
/// # Safety
///
/// Each buffer is writable in its whole length, and nothing else uses it meanwhile.
pub unsafe fn read(fd: RawFd, buffers: &[Buffer], offset: Option<i64>) -> Result<usize, Errno> {
    let buffers = &buffers[..buffers.len().min(MAX_BUFFERS)];
    let count = buffers.len() as libc::c_int;
    // SAFETY: the caller guarantees the buffers, and any number is allowed as a descriptor.
    let bytes = unsafe {
        match (buffers, offset) {
            ([one], None) => libc::read(fd, one.iov_base, one.iov_len),
            ([one], Some(at)) => libc::pread(fd, one.iov_base, one.iov_len, at),
            (many, None) => libc::readv(fd, many.as_ptr(), count),
            (many, Some(at)) => libc::preadv(fd, many.as_ptr(), count, at),
        }
    };
    check_bytes(bytes)
}

/// Whether the file is seekable, as pipes are not. The check does not reach the disk.
pub fn is_seekable(fd: RawFd) -> bool {
    // SAFETY: no pointers, and any number is allowed.
    unsafe { libc::lseek(fd, 0, libc::SEEK_CUR) != -1 }
}

/// One system call of [`write()`].
///
/// # Safety
///
/// As for [`write()`].
unsafe fn write_some(fd: RawFd, buffers: &[Buffer], offset: Option<i64>) -> Result<usize, Errno> {
    let buffers = &buffers[..buffers.len().min(MAX_BUFFERS)];
    let count = buffers.len() as libc::c_int;
    retry(|| {
        // SAFETY: the caller guarantees the buffers, and any number is allowed as a descriptor.
        check_bytes(unsafe {
            match (buffers, offset) {
                ([one], None) => libc::write(fd, one.iov_base, one.iov_len),
                ([one], Some(at)) => libc::pwrite(fd, one.iov_base, one.iov_len, at),
                (many, None) => libc::writev(fd, many.as_ptr(), count),
                (many, Some(at)) => libc::pwritev(fd, many.as_ptr(), count, at),
            }
        })
    })
}

/// Writes all buffers in order, to `offset` or to the file's own position, which then advances. If
/// the kernel stops half-way, the bytes written are the result, and a later write of the rest
/// reports the error. The first `written` bytes count as written already: the caller continues a
/// write that a ring has begun.
///
/// # Safety
///
/// Each buffer is readable in its whole length, and nothing changes it meanwhile.
pub unsafe fn write(
    fd: RawFd,
    buffers: &[Buffer],
    offset: Option<i64>,
    written: usize,
) -> Result<usize, Errno> {
    let mut total = written;
    // How much of the first remaining buffer has been written already.
    let (mut buffers, mut begun) = match written {
        0 => (buffers, 0),
        _ => after(buffers, written),
    };
    loop {
        let at = match offset {
            None => None,
            // Beyond the largest file offset; the kernel fails long before.
            Some(offset) => Some(offset.checked_add(total as i64).ok_or(Errno::EFBIG)?),
        };
        // The rest of a partly written buffer gets a call of its own, so that the caller's array
        // stays unchanged.
        let rest = buffers.first().filter(|_| begun > 0).map(|first| Buffer {
            // SAFETY: `begun` is less than the buffer's length.
            iov_base: unsafe { first.iov_base.byte_add(begun) },
            iov_len: first.iov_len - begun,
        });
        let batch = match &rest {
            Some(rest) => std::slice::from_ref(rest),
            None => buffers,
        };
        // SAFETY: the caller guarantees the buffers, of which this is a part.
        let written = match unsafe { write_some(fd, batch, at) } {
            Err(error) if total == 0 => return Err(error),
            Err(_) | Ok(0) => return Ok(total),
            Ok(written) => written,
        };
        total = total.saturating_add(written);
        (buffers, begun) = after(buffers, begun + written);
        if buffers.is_empty() {
            return Ok(total);
        }
    }
}

/// The buffers after the first `bytes` bytes, and how many bytes of the first of them are done.
/// Leading empty buffers count as done.
fn after(mut buffers: &[Buffer], mut bytes: usize) -> (&[Buffer], usize) {
    while let [first, rest @ ..] = buffers {
        if first.iov_len > bytes {
            break;
        }
        bytes -= first.iov_len;
        buffers = rest;
    }
    (buffers, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffers(lens: &[usize]) -> Vec<Buffer> {
        let buffer = |&iov_len| Buffer {
            iov_base: std::ptr::null_mut(),
            iov_len,
        };
        lens.iter().map(buffer).collect()
    }

    fn left(lens: &[usize], bytes: usize) -> (usize, usize) {
        let buffers = buffers(lens);
        let (rest, begun) = after(&buffers, bytes);
        (rest.len(), begun)
    }

    #[test]
    fn written_bytes_are_skipped() {
        assert_eq!(left(&[3, 4], 0), (2, 0));
        assert_eq!(left(&[3, 4], 2), (2, 2));
        assert_eq!(left(&[3, 4], 3), (1, 0));
        assert_eq!(left(&[3, 4], 6), (1, 3));
        assert_eq!(left(&[3, 4], 7), (0, 0));
        assert_eq!(left(&[3, 0, 0, 4, 0], 3), (2, 0));
        assert_eq!(left(&[3, 0], 3), (0, 0));
    }

    #[test]
    fn more_buffers_than_one_call_takes_are_all_written() {
        let file = std::env::temp_dir().join(format!("blacklight-io-{}", std::process::id()));
        let path = std::ffi::CString::new(file.to_str().unwrap()).unwrap();
        let fd = crate::fs::file::open(&path, libc::O_RDWR | libc::O_CREAT, 0o600).unwrap();
        let text = *b"0123456789";
        let many: Vec<Buffer> = (0..3 * MAX_BUFFERS + 7)
            .map(|_| Buffer {
                iov_base: text.as_ptr().cast_mut().cast(),
                iov_len: text.len(),
            })
            .collect();
        // SAFETY: the buffers point to `text`, which is only read.
        let written = unsafe { write(fd, &many, Some(5), 0) };
        assert_eq!(written, Ok(many.len() * text.len()));
        let len = std::fs::metadata(&file).unwrap().len();
        assert_eq!(len, 5 + (many.len() * text.len()) as u64);
        crate::fs::file::close(fd).unwrap();
        std::fs::remove_file(&file).unwrap();
    }
}
