//! Wakes a loop from other threads and from signal handlers, by a counter that they increment and
//! the loop waits on: <https://man7.org/linux/man-pages/man2/eventfd.2.html>.

use super::errno;
use crate::{Errno, RawFd, check};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// A counter of wake-ups. Its descriptor is non-blocking, close-on-exec, and readable while the
/// counter is not zero.
#[derive(Debug)]
pub struct Waker(OwnedFd);

fn create() -> Result<OwnedFd, Errno> {
    // SAFETY: eventfd takes no pointers.
    let fd = check(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })?;
    // SAFETY: the kernel has just made this descriptor, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

impl Waker {
    /// Makes a counter at zero.
    pub fn new() -> Result<Waker, Errno> {
        create().map(Waker)
    }

    /// The descriptor, to wait on.
    pub fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// Marks the counter, so that other processes know it from one of the program's: by the flag `O_APPEND`, which means nothing to a counter.
    pub fn mark(&self) -> Result<(), Errno> {
        let flags = libc::O_NONBLOCK | libc::O_APPEND;
        // SAFETY: fcntl takes no pointers here, and this waker owns the descriptor.
        check(unsafe { libc::fcntl(self.fd(), libc::F_SETFL, flags) })?;
        Ok(())
    }

    /// Increments the counter, which wakes a waiting loop. Async-signal-safe: it makes one system
    /// call, takes no lock and preserves `errno`.
    pub fn signal(&self) {
        let one = 1u64.to_ne_bytes();
        let errno = errno::location();
        // SAFETY: the address is valid on the calling thread; the value is restored below.
        let saved = unsafe { *errno };
        loop {
            // SAFETY: `one` is 8 readable bytes, and this waker owns the descriptor. A counter at
            // its maximum (EAGAIN) is readable already, which suffices.
            let written = unsafe { libc::write(self.fd(), one.as_ptr().cast(), one.len()) };
            // SAFETY: as above.
            if written != -1 || unsafe { *errno } != libc::EINTR {
                break;
            }
        }
        // SAFETY: as above.
        unsafe { *errno = saved };
    }

    /// Resets the counter.
    pub fn drain(&self) {
        self.count();
    }

    /// Resets the counter and returns its previous value.
    pub fn count(&self) -> u64 {
        let mut count = [0u8; 8];
        // SAFETY: `count` is 8 writable bytes, and this waker owns the descriptor. An error means
        // that the counter was zero.
        unsafe { libc::read(self.fd(), count.as_mut_ptr().cast(), count.len()) };
        u64::from_ne_bytes(count)
    }

    /// Puts a new counter behind the same descriptor number, so that a child process does not share
    /// its parent's.
    pub fn renew(&self) -> Result<(), Errno> {
        let fresh = create()?;
        // SAFETY: both descriptors are open, and this waker owns them.
        check(unsafe { libc::dup3(fresh.as_raw_fd(), self.fd(), libc::O_CLOEXEC) })?;
        Ok(())
    }
}
