//! What poll(2) tells on Linux beyond POSIX.

/// The other end has stopped sending. A system that cannot tell this has zero here.
pub const POLLRDHUP: u32 = libc::POLLRDHUP as u32;
