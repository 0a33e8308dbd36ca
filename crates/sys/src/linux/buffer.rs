//! The kernel's limits on memory that is handed to it.

/// The most buffers that one system call takes, on all machines that run Linux.
pub const IOV_MAX: usize = libc::UIO_MAXIOV as usize;

/// The most bytes that one system call moves. libuv refuses more than that, because more could not be
/// written in one piece.
pub const MAX_BYTES: usize = 0x7fff_f000;
