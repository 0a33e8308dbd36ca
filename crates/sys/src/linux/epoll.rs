//! <https://man7.org/linux/man-pages/man7/epoll.7.html>

use crate::signal::SignalSet;
use crate::{Errno, RawFd, Timeout, check, timespec};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// The edge-triggered flag for [`Epoll::add`].
pub const EDGE: u32 = libc::EPOLLET as u32;

/// The one-shot flag for [`Epoll::add`].
pub const ONCE: u32 = libc::EPOLLONESHOT as u32;

/// An epoll instance.
#[derive(Debug)]
pub struct Epoll(OwnedFd);

/// A buffer for the events of one wait.
pub struct Events(Vec<libc::epoll_event>);

impl Events {
    /// Room for `capacity` events.
    pub fn with_capacity(capacity: usize) -> Result<Events, Errno> {
        let mut events = Vec::new();
        events.try_reserve_exact(capacity)?;
        Ok(Events(events))
    }

    /// The events of the last wait: the mask and the user's data of each descriptor.
    pub fn iter(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        self.0.iter().map(|event| (event.events, event.u64))
    }
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Set when the kernel reports that it has no `epoll_pwait2` (before Linux 5.11).
static NO_PWAIT2: AtomicBool = AtomicBool::new(false);

/// `epoll_pwait2` by its number: glibc has the function since 2.35 only, and a library that links
/// to it does not load with an older glibc.
///
/// # Safety
///
/// `buffer` has room for `room` events, `time` is valid, and `mask` is null or valid.
unsafe fn pwait2(
    epoll: RawFd,
    buffer: *mut libc::epoll_event,
    room: libc::c_int,
    time: *const libc::timespec,
    mask: *const libc::sigset_t,
) -> libc::c_int {
    // The kernel's set has a bit for each of 64 signals; the C library's is larger.
    let mask_size = size_of::<u64>();
    // SAFETY: the caller guarantees the pointers.
    let found = unsafe {
        libc::syscall(
            libc::SYS_epoll_pwait2,
            epoll,
            buffer,
            room,
            time,
            mask,
            mask_size,
        )
    };
    // At most `room`, or -1.
    found as libc::c_int
}

impl Epoll {
    /// Makes a close-on-exec instance.
    pub fn new() -> Result<Epoll, Errno> {
        // SAFETY: epoll_create1 takes no pointers.
        let fd = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: the kernel has just made this descriptor, and nothing else owns it.
        Ok(Epoll(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// The instance's own descriptor, which other pollers can watch.
    pub fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    fn control(&self, op: libc::c_int, fd: RawFd, events: u32, data: u64) -> Result<(), Errno> {
        let mut event = libc::epoll_event { events, u64: data };
        // SAFETY: `event` lives through the call, and the kernel checks `fd`.
        check(unsafe { libc::epoll_ctl(self.fd(), op, fd, &mut event) }).map(drop)
    }

    /// Starts watching a descriptor.
    pub fn add(&self, fd: RawFd, events: u32, data: u64) -> Result<(), Errno> {
        self.control(libc::EPOLL_CTL_ADD, fd, events, data)
    }

    /// Changes the events that a descriptor is watched for.
    pub fn modify(&self, fd: RawFd, events: u32, data: u64) -> Result<(), Errno> {
        self.control(libc::EPOLL_CTL_MOD, fd, events, data)
    }

    /// Stops watching a descriptor.
    pub fn delete(&self, fd: RawFd) -> Result<(), Errno> {
        self.control(libc::EPOLL_CTL_DEL, fd, 0, 0)
    }

    /// Waits for events, or for the timeout, with the `blocked` signals masked.
    pub fn wait(
        &self,
        events: &mut Events,
        timeout: Timeout,
        blocked: Option<&SignalSet>,
    ) -> Result<(), Errno> {
        events.0.clear();
        let buffer = events.0.as_mut_ptr();
        let room = events.0.capacity() as libc::c_int;
        let mask = SignalSet::as_ptr(blocked);
        let whole_ms = match timeout {
            None => Some(-1),
            Some(0) => Some(0),
            Some(_) if NO_PWAIT2.load(Ordering::Relaxed) => {
                timeout.map(|ns| ns.div_ceil(1_000_000).min(i32::MAX as u64) as libc::c_int)
            }
            Some(_) => None,
        };
        let found = match (whole_ms, timeout) {
            (Some(ms), _) => {
                // SAFETY: `buffer` has room for `room` events, and `mask` is null or a set.
                check(unsafe { libc::epoll_pwait(self.fd(), buffer, room, ms, mask) })?
            }
            (None, ns) => {
                let time = timespec(ns.unwrap_or(0));
                // SAFETY: as above, and `time` lives through the call.
                let found = unsafe { pwait2(self.fd(), buffer, room, &time, mask) };
                match check(found) {
                    Err(Errno::ENOSYS | Errno::EPERM) => {
                        NO_PWAIT2.store(true, Ordering::Relaxed);
                        return self.wait(events, timeout, blocked);
                    }
                    found => found?,
                }
            }
        };
        // SAFETY: the kernel has filled the first `found` events, at most `room`.
        unsafe { events.0.set_len(found as usize) };
        Ok(())
    }
}
