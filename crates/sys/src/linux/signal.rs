//! The signals of Linux: <https://man7.org/linux/man-pages/man7/signal.7.html>.

/// The highest signal number.
pub(crate) const SIGNALS: usize = 64;

pub use libc::{SIGPWR, SIGRTMAX, SIGRTMIN};
