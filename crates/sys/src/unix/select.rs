//! <https://man7.org/linux/man-pages/man2/select.2.html>

use crate::signal::SignalSet;
use crate::{Errno, RawFd, Timeout, check, timespec};

/// Descriptors at or above this number do not fit into a set.
pub const FD_SETSIZE: usize = libc::FD_SETSIZE;

/// A set of descriptors below [`FD_SETSIZE`].
#[derive(Clone, Copy)]
pub struct FdSet(libc::fd_set);

impl FdSet {
    /// The empty set.
    pub fn new() -> FdSet {
        let mut set = std::mem::MaybeUninit::uninit();
        // SAFETY: FD_ZERO fills the whole set.
        unsafe {
            libc::FD_ZERO(set.as_mut_ptr());
            FdSet(set.assume_init())
        }
    }

    fn assert_fits(fd: RawFd) {
        assert!(
            (0..FD_SETSIZE as RawFd).contains(&fd),
            "fd {fd} does not fit into an fd_set"
        );
    }

    /// Adds a descriptor, which must be below [`FD_SETSIZE`].
    pub fn insert(&mut self, fd: RawFd) {
        Self::assert_fits(fd);
        // SAFETY: the number was just checked.
        unsafe { libc::FD_SET(fd, &mut self.0) }
    }

    /// Removes a descriptor, which must be below [`FD_SETSIZE`].
    pub fn remove(&mut self, fd: RawFd) {
        Self::assert_fits(fd);
        // SAFETY: the number was just checked.
        unsafe { libc::FD_CLR(fd, &mut self.0) }
    }

    /// Whether the descriptor, which must be below [`FD_SETSIZE`], is in the set.
    pub fn contains(&self, fd: RawFd) -> bool {
        Self::assert_fits(fd);
        // SAFETY: the number was just checked.
        unsafe { libc::FD_ISSET(fd, &self.0) }
    }
}

impl Default for FdSet {
    fn default() -> FdSet {
        FdSet::new()
    }
}

impl std::fmt::Debug for FdSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let members = (0..FD_SETSIZE as RawFd).filter(|&fd| self.contains(fd));
        f.debug_set().entries(members).finish()
    }
}

/// Waits until a descriptor below `nfds` in one of the sets is ready, or for the timeout, with the
/// `blocked` signals masked. The sets are replaced by those that are ready.
pub fn select(
    nfds: RawFd,
    read: &mut FdSet,
    write: &mut FdSet,
    except: &mut FdSet,
    timeout: Timeout,
    blocked: Option<&SignalSet>,
) -> Result<usize, Errno> {
    let time = timeout.map(timespec);
    let time = time
        .as_ref()
        .map_or(std::ptr::null(), |time| time as *const _);
    // SAFETY: the sets and the time live through the call; `nfds` bounds the part of the sets that
    // is read, and the kernel caps it at the size of the descriptor table.
    let ready = unsafe {
        libc::pselect(
            nfds.min(FD_SETSIZE as RawFd),
            &mut read.0,
            &mut write.0,
            &mut except.0,
            time,
            SignalSet::as_ptr(blocked),
        )
    };
    check(ready).map(|ready| ready as usize)
}
