//! The signals that Linux has: <https://man7.org/linux/man-pages/man7/signal.7.html>.

/// Signals have the numbers from 1 to this one.
pub(crate) const SIGNALS: usize = 64;

pub use libc::{SIGPWR, SIGRTMAX, SIGRTMIN};
