//! <https://man7.org/linux/man-pages/man2/poll.2.html>

use crate::signal::SignalSet;
use crate::{Errno, RawFd, Timeout, check, timespec};

pub use crate::platform::poll::POLLRDHUP;
pub use libc::pollfd;

/// Readable.
pub const POLLIN: u32 = libc::POLLIN as u32;
/// Urgent data, or an exceptional condition of a device.
pub const POLLPRI: u32 = libc::POLLPRI as u32;
/// Writable.
pub const POLLOUT: u32 = libc::POLLOUT as u32;
/// An error is pending. Always reported.
pub const POLLERR: u32 = libc::POLLERR as u32;
/// The peer has hung up. Always reported.
pub const POLLHUP: u32 = libc::POLLHUP as u32;
/// Not an open descriptor. Always reported.
pub const POLLNVAL: u32 = libc::POLLNVAL as u32;

/// Waits until one of the descriptors is ready, or for the timeout, with the `blocked` signals
/// masked. Returns the number of ready descriptors.
pub fn poll(
    fds: &mut [pollfd],
    timeout: Timeout,
    blocked: Option<&SignalSet>,
) -> Result<usize, Errno> {
    let time = timeout.map(timespec);
    let time = time
        .as_ref()
        .map_or(std::ptr::null(), |time| time as *const _);
    // SAFETY: `fds` is a valid array of that length, `time` is null or lives through the call, and
    // so does the signal set.
    let ready = unsafe {
        libc::ppoll(
            fds.as_mut_ptr(),
            fds.len() as libc::nfds_t,
            time,
            SignalSet::as_ptr(blocked),
        )
    };
    check(ready).map(|ready| ready as usize)
}

/// Polls one descriptor.
fn poll_one(fd: RawFd, events: u32, timeout: Timeout) -> Result<u32, Errno> {
    let events = events as i16;
    let mut fds = [pollfd {
        fd,
        events,
        revents: 0,
    }];
    poll(&mut fds, timeout, None)?;
    Ok(fds[0].revents as u16 as u32)
}

/// Whether a read would not block: data, the end or an error is pending.
pub fn is_readable(fd: RawFd) -> Result<bool, Errno> {
    Ok(poll_one(fd, POLLIN, Some(0))? != 0)
}

/// Whether the peer has hung up, and no data is left.
pub fn has_only_hung_up(fd: RawFd) -> bool {
    poll_one(fd, POLLIN, Some(0)).is_ok_and(|found| found & (POLLIN | POLLHUP) == POLLHUP)
}

/// Waits until a write would not block. `EINTR` if a signal comes first.
pub fn wait_writable(fd: RawFd) -> Result<(), Errno> {
    poll_one(fd, POLLOUT, None).map(drop)
}
