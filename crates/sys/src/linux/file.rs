//! Closing a descriptor on Linux: <https://man7.org/linux/man-pages/man2/close.2.html>.

use crate::Errno;

/// Whether the descriptor is closed although `close` has reported this error. Linux frees the number before
/// it can be interrupted; a second call might close a descriptor that another thread has opened meanwhile.
pub fn is_closed_despite(error: Errno) -> bool {
    matches!(-error.code(), libc::EINTR | libc::EINPROGRESS)
}
