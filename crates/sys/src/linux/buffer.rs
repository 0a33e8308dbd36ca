//! The kernel's limits on buffers.

/// The most buffers that one system call takes, on all machines that run Linux.
pub const IOV_MAX: usize = libc::UIO_MAXIOV as usize;

/// The most bytes that one system call transfers. libuv refuses longer writes, which would take
/// several calls.
pub const MAX_BYTES: usize = 0x7fff_f000;
