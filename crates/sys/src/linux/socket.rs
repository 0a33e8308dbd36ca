//! What sockets can do on Linux beyond POSIX:
//! <https://man7.org/linux/man-pages/man7/tcp.7.html>, <https://man7.org/linux/man-pages/man7/unix.7.html>.

use std::mem::offset_of;

pub(crate) use libc::{TCP_KEEPCNT, TCP_KEEPIDLE, TCP_KEEPINTVL};

/// The length of the address of a Unix socket with that name. An abstract name begins with a NUL and ends with
/// the address; an empty one asks the kernel for an abstract name. A path goes up to its NUL, and the address
/// has the whole field.
pub(crate) fn unix_address_len(name: &[u8]) -> usize {
    match name.first() {
        None | Some(0) => offset_of!(libc::sockaddr_un, sun_path) + name.len(),
        Some(_) => size_of::<libc::sockaddr_un>(),
    }
}
