//! Waking a loop from other threads and from signal handlers, by a counter that they add to and that the
//! loop waits on: <https://man7.org/linux/man-pages/man2/eventfd.2.html>.

use super::errno;
use crate::{Errno, RawFd, check};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// A counter of wake-ups, whose descriptor is non-blocking, close-on-exec, and readable while the counter is
/// not zero.
#[derive(Debug)]
pub struct Waker(OwnedFd);

fn create() -> Result<OwnedFd, Errno> {
    // SAFETY: eventfd takes no pointers.
    let fd = check(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })?;
    // SAFETY: the kernel just made this descriptor for us alone.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

impl Waker {
    /// Makes a counter that stands at zero.
    pub fn new() -> Result<Waker, Errno> {
        create().map(Waker)
    }

    /// The descriptor, to wait on.
    pub fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// Adds one, which wakes whoever waits. Async-signal-safe: it makes one system call,
    /// takes no lock and leaves `errno` as it found it.
    pub fn signal(&self) {
        let one = 1u64.to_ne_bytes();
        let errno = errno::location();
        // SAFETY: the location is valid for the calling thread; the value is put back below.
        let saved = unsafe { *errno };
        loop {
            // SAFETY: `one` is 8 readable bytes; the descriptor is ours. A full counter
            // (EAGAIN) is readable already, which is all that a signal asks for.
            let written = unsafe { libc::write(self.fd(), one.as_ptr().cast(), one.len()) };
            // SAFETY: as above.
            if written != -1 || unsafe { *errno } != libc::EINTR {
                break;
            }
        }
        // SAFETY: as above.
        unsafe { *errno = saved };
    }

    /// Sets the counter back to zero.
    pub fn drain(&self) {
        self.count();
    }

    /// Sets the counter back to zero and says where it stood.
    pub fn count(&self) -> u64 {
        let mut count = [0u8; 8];
        // SAFETY: `count` is 8 writable bytes; the descriptor is ours. An error means
        // that the counter stood at zero already.
        unsafe { libc::read(self.fd(), count.as_mut_ptr().cast(), count.len()) };
        u64::from_ne_bytes(count)
    }

    /// Puts a fresh counter behind the same descriptor number, so that a child process
    /// no longer shares its parent's.
    pub fn renew(&self) -> Result<(), Errno> {
        let fresh = create()?;
        // SAFETY: both descriptors are open and ours.
        check(unsafe { libc::dup3(fresh.as_raw_fd(), self.fd(), libc::O_CLOEXEC) })?;
        Ok(())
    }
}
