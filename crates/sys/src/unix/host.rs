//! The machine: its names, its uptime and its load.

use crate::{Errno, check, fallible};
use rustix::system::Uname;

pub use crate::platform::host::{load_averages, numbers, uptime};

/// The kernel's name, release and version, and the type of machine:
/// <https://man7.org/linux/man-pages/man2/uname.2.html>.
pub fn names() -> Uname {
    rustix::system::uname()
}

/// The machine's name in the network:
/// <https://man7.org/linux/man-pages/man2/gethostname.2.html>.
pub fn hostname() -> Result<Vec<u8>, Errno> {
    // A name has up to 64 bytes on Linux, up to 255 in POSIX.
    let mut name = fallible::copied(&[0; 256])?;
    // SAFETY: the buffer has that many bytes, and its last byte stays a NUL.
    check(unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1) })?;
    let len = name.iter().position(|&byte| byte == 0);
    name.truncate(len.unwrap_or(0));
    Ok(name)
}
