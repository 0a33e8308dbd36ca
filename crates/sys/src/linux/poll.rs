//! Events of poll(2) on Linux beyond POSIX.

/// The peer has stopped sending. Zero on a system without this event.
pub const POLLRDHUP: u32 = libc::POLLRDHUP as u32;
