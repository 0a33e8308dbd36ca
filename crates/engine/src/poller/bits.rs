//! The bits of poll(2) and epoll(7).
//!
//! The engine's sets use the bits of poll(2) on Linux, which epoll uses as well, so that there is
//! nothing to translate. A platform with other bits translates here.

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

/// The readiness that the bits returned by a call mean.
#[inline]
pub(super) const fn readiness(bits: u32) -> Readiness {
    Readiness::from_raw(bits)
}
