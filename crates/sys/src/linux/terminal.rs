//! Terminals on Linux beyond POSIX.

use crate::RawFd;
use crate::fallible::Short;

/// Whether the descriptor is the controlling side of a pseudo-terminal:
/// <https://man7.org/linux/man-pages/man2/ioctl_tty.2.html>.
pub(crate) fn is_controller(fd: RawFd) -> bool {
    let mut number: libc::c_uint = 0;
    // SAFETY: TIOCGPTN fills `number` or fails.
    unsafe { libc::ioctl(fd, libc::TIOCGPTN, &raw mut number) == 0 }
}

/// A path that opens the file behind a descriptor a second time. It works where the file's own name
/// is invisible, as in a container, but not where `/proc` is missing.
pub(crate) fn path_of(fd: RawFd) -> Option<Short> {
    Some(super::text::descriptor_path(fd))
}
