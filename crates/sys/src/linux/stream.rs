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
    // SAFETY: the caller guarantees the buffers.
    let written = retry(|| unsafe { pwritev2(fd, iovecs.as_ptr(), count, NO_SIGNAL) });
    match written {
        // Sandboxes that do not know the call refuse it with EPERM, which no write to a pipe does.
        Err(Errno::ENOTSUP | Errno::EINVAL | Errno::ENOSYS | Errno::EPERM) => {
            NO_FLAG.store(true, Relaxed);
            None
        }
        written => Some(written),
    }
}

/// Writes at the file's own position, which an offset of −1 means.
///
/// # Safety
///
/// The buffers are readable.
unsafe fn pwritev2(fd: RawFd, iovecs: *const libc::iovec, count: c_int, flags: c_int) -> isize {
    // musl has the function since 1.2.5 only, and a library that links to it does not load with an
    // older one.
    #[cfg(target_env = "musl")]
    {
        // The offset is in two halves, each of a whole register.
        const HALF: libc::c_long = -1;
        let call = libc::SYS_pwritev2;
        // SAFETY: the caller guarantees the buffers.
        unsafe { libc::syscall(call, fd, iovecs, count, HALF, HALF, flags) as isize }
    }
    #[cfg(not(target_env = "musl"))]
    // SAFETY: the caller guarantees the buffers.
    unsafe {
        libc::pwritev2(fd, iovecs, count, -1, flags)
    }
}
