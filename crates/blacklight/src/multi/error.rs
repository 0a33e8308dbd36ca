//! The errors of threads.

use crate::task::JoinError;
use std::any::Any;
use std::fmt;
use std::io;

/// The error of a thread that failed or panicked; see [`Multi::join`](super::Multi::join).
///
/// ```
/// use blacklight::multi;
/// use std::io;
///
/// let loops = multi::Builder::new().name("server").threads(1).start(|_| async {
///     Err(io::Error::other("as expected"))
/// })?;
/// let error: multi::ThreadError = loops.join().unwrap_err();
/// assert_eq!(error.to_string(), "server-0: as expected");
/// # Ok::<(), io::Error>(())
/// ```
#[derive(Debug)]
pub struct ThreadError {
    name: String,
    cause: Cause,
    others: Vec<ThreadError>,
}

#[derive(Debug)]
pub(super) enum Cause {
    Failed(io::Error),
    Panicked(JoinError),
}

impl ThreadError {
    pub(super) fn new(name: String, cause: Cause) -> ThreadError {
        let others = Vec::new();
        ThreadError {
            name,
            cause,
            others,
        }
    }

    /// The error that tells of all: the first panic, since errors often follow from one, or else
    /// the first error.
    pub(super) fn of_all(mut errors: Vec<ThreadError>) -> Option<ThreadError> {
        let panic = errors.iter().position(ThreadError::is_panic);
        let at = panic.or((!errors.is_empty()).then_some(0))?;
        let mut first = errors.remove(at);
        first.others = errors;
        Some(first)
    }

    /// The errors of the other threads that failed or panicked, in the order in which they ended.
    ///
    /// ```
    /// use blacklight::multi;
    /// use std::io;
    ///
    /// let loops = multi::Builder::new().threads(2).start(|worker| async move {
    ///     assert_ne!(worker.index(), 1, "as expected");
    ///     worker.stopped().await;
    ///     Err(io::Error::other("stopped halfway"))
    /// })?;
    /// let error = loops.join().unwrap_err();
    /// assert!(error.is_panic());
    /// assert_eq!(error.others()[0].to_string(), "loop-0: stopped halfway");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn others(&self) -> &[ThreadError] {
        &self.others
    }

    /// The name of the thread.
    ///
    /// ```
    /// use blacklight::multi;
    ///
    /// let loops = multi::Builder::new().name("web").threads(1).start(|_| async { panic!("oh") })?;
    /// assert_eq!(loops.join().unwrap_err().thread(), "web-0");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn thread(&self) -> &str {
        &self.name
    }

    /// Whether the thread panicked.
    ///
    /// ```
    /// use blacklight::multi;
    /// use std::io;
    ///
    /// let failing = multi::Builder::new().threads(1).start(|_| async { Err(io::Error::other("oh")) })?;
    /// let error = failing.join().unwrap_err();
    /// assert!(!error.is_panic());
    /// assert_eq!((error.thread(), error.to_string()), ("loop-0", "loop-0: oh".to_owned()));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn is_panic(&self) -> bool {
        matches!(self.cause, Cause::Panicked(_))
    }

    /// Returns the payload of the panic, for [`std::panic::resume_unwind`]; or this error if the
    /// thread failed.
    ///
    /// ```
    /// use blacklight::multi;
    ///
    /// let loops = multi::Builder::new().threads(1).start(|_| async { panic!("oh") })?;
    /// let panic = loops.join().unwrap_err().into_panic().unwrap();
    /// assert_eq!(*panic.downcast::<&str>().unwrap(), "oh");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn into_panic(self) -> Result<Box<dyn Any + Send>, ThreadError> {
        let ThreadError {
            name,
            cause,
            others,
        } = self;
        let cause = match cause {
            Cause::Panicked(error) => match error.into_panic() {
                Ok(panic) => return Ok(panic),
                Err(error) => Cause::Panicked(error),
            },
            cause => cause,
        };
        Err(ThreadError {
            name,
            cause,
            others,
        })
    }
}

impl fmt::Display for ThreadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cause {
            Cause::Failed(error) => write!(f, "{}: {error}", self.name)?,
            Cause::Panicked(error) => write!(f, "{}: {error}", self.name)?,
        }
        match self.others.len() {
            0 => Ok(()),
            others => write!(f, " (and {others} more)"),
        }
    }
}

impl std::error::Error for ThreadError {}

impl From<ThreadError> for io::Error {
    fn from(error: ThreadError) -> io::Error {
        let kind = match &error.cause {
            Cause::Failed(error) => error.kind(),
            Cause::Panicked(_) => io::ErrorKind::Other,
        };
        io::Error::new(kind, error)
    }
}
