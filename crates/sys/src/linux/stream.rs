//! Writes to a pipe without SIGPIPE, by a flag:
//! <https://man7.org/linux/man-pages/man2/pwritev2.2.html>.

use crate::stream::retry;
use crate::{Errno, RawFd};
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// `RWF_NOSIGNAL`, since Linux 6.18.
const NO_SIGNAL: c_int = 0x100;

/// Set when the kernel reports that it does not know the flag.
static NO_FLAG: AtomicBool = AtomicBool::new(false);

/// Writes once. `None` if the kernel cannot do that without raising SIGPIPE.
///
/// # Safety
///
/// The buffers are readable.
pub(crate) unsafe fn write_without_sigpipe(
    fd: RawFd,
    iovecs: &[libc::iovec],
) -> Option<Result<usize, Errno>> {
    if NO_FLAG.load(Relaxed) {
        return None;
    }
    let count = iovecs.len() as c_int;
    // SAFETY: the caller guarantees the buffers. An offset of −1 means the file's own position.
    let written = retry(|| unsafe { libc::pwritev2(fd, iovecs.as_ptr(), count, -1, NO_SIGNAL) });
    match written {
        Err(Errno::ENOTSUP | Errno::EINVAL | Errno::ENOSYS) => {
            NO_FLAG.store(true, Relaxed);
            None
        }
        written => Some(written),
    }
}
