//! What sockets can do on Linux beyond POSIX:
//! <https://man7.org/linux/man-pages/man7/tcp.7.html>, <https://man7.org/linux/man-pages/man7/unix.7.html>.

use std::mem::offset_of;

pub(crate) use libc::{TCP_KEEPCNT, TCP_KEEPIDLE, TCP_KEEPINTVL};

/// The length of the address of a Unix socket with that name. An abstract name begins with a NUL
/// and ends with the address; for an empty name the kernel chooses an abstract one. A path ends
/// with a NUL, and its address has the full length.
pub(crate) fn unix_address_len(name: &[u8]) -> usize {
    match name.first() {
        None | Some(0) => offset_of!(libc::sockaddr_un, sun_path) + name.len(),
        Some(_) => size_of::<libc::sockaddr_un>(),
    }
}
