//! The errors of this crate itself, in place of the system's.

use std::fmt;
use std::io;

/// An error that this crate, and not the system, reports. Operations wrap it in an [`io::Error`].
///
/// ```
/// use blacklight::{Error, Loop, Timer};
/// use std::time::Duration;
///
/// let lp = Loop::new()?;
/// let timer = Timer::new()?;
/// drop(lp);
/// let error = timer.start(Duration::ZERO, |_, _| ()).unwrap_err();
/// assert_eq!(Error::of(&error), Some(Error::LoopGone));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The thread has no loop; or it has several, and none of them runs or was
    /// [entered](crate::LoopHandle::enter).
    NoCurrentLoop,
    /// The loop's [`Loop`](crate::Loop) was dropped.
    LoopGone,
    /// A task or a job was cancelled before it had a result.
    Cancelled,
    /// A future reads, receives or accepts from something that has a callback for that. The
    /// callback wins: a future that waits when the callback is set fails with this, too.
    HasCallback,
    /// The thread pool of the process has started with another number of threads than
    /// [`Builder::pool_threads`](crate::Builder::pool_threads) asks for.
    PoolStarted,
}

impl Error {
    /// The error that an [`io::Error`] wraps, if it is one of this crate.
    ///
    /// ```
    /// use blacklight::{Error, Timer};
    ///
    /// // This thread has no loop.
    /// let error = Timer::new().unwrap_err();
    /// assert_eq!(Error::of(&error), Some(Error::NoCurrentLoop));
    /// ```
    pub fn of(error: &io::Error) -> Option<Error> {
        error.get_ref()?.downcast_ref().copied()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Error::NoCurrentLoop => {
                "the thread has no loop, or several of which none runs or was entered"
            }
            Error::LoopGone => "the loop is gone",
            Error::Cancelled => "cancelled",
            Error::HasCallback => "a callback receives this already",
            Error::PoolStarted => "the thread pool has started with another number of threads",
        })
    }
}

impl std::error::Error for Error {}

impl From<Error> for io::Error {
    fn from(error: Error) -> io::Error {
        let kind = match error {
            Error::HasCallback | Error::PoolStarted => io::ErrorKind::ResourceBusy,
            Error::NoCurrentLoop | Error::LoopGone | Error::Cancelled => io::ErrorKind::Other,
        };
        io::Error::new(kind, error)
    }
}
