//! The bits by which poll(2) and epoll(7) name conditions.
//!
//! The engine's sets have the numbers of poll(2) on Linux, where epoll has the same, so that nothing is left to
//! translate. A platform with other numbers translates here.

use crate::readiness::{Interest, Readiness};
use blacklight_sys::poll::{POLLERR, POLLHUP, POLLIN, POLLNVAL, POLLOUT, POLLPRI, POLLRDHUP};

const _: () = {
    assert!(Interest::READABLE.raw() == POLLIN);
    assert!(Interest::WRITABLE.raw() == POLLOUT);
    assert!(Interest::PRIORITIZED.raw() == POLLPRI);
    assert!(Interest::DISCONNECT.raw() == POLLRDHUP);
    assert!(Readiness::ERROR.raw() == POLLERR);
    assert!(Readiness::HANG_UP.raw() == POLLHUP);
    assert!(Readiness::CLOSED.raw() == POLLNVAL);
};

/// The bits that ask for an interest.
#[inline]
pub(super) const fn of(interest: Interest) -> u32 {
    interest.raw()
}

/// What the bits that a call has returned mean.
#[inline]
pub(super) const fn readiness(bits: u32) -> Readiness {
    Readiness::from_raw(bits)
}
