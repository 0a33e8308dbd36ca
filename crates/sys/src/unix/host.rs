//! The machine that the process runs on: its names, how long it is up and how busy it is.

use crate::{Errno, check, fallible};
use rustix::system::Uname;

pub use crate::platform::host::{load_averages, numbers, uptime};

/// The kernel's name, release and version, and the kind of machine:
/// <https://man7.org/linux/man-pages/man2/uname.2.html>.
pub fn names() -> Uname {
    rustix::system::uname()
}

/// The machine's name in the network:
/// <https://man7.org/linux/man-pages/man2/gethostname.2.html>.
pub fn hostname() -> Result<Vec<u8>, Errno> {
    // Linux has room for 64 bytes of it, POSIX for 255.
    let mut name = fallible::copied(&[0; 256])?;
    // SAFETY: there is room for that many bytes, of which we keep one from being overwritten.
    check(unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1) })?;
    let len = name.iter().position(|&byte| byte == 0);
    name.truncate(len.unwrap_or(0));
    Ok(name)
}
