//! Child processes, as in [`std::process`], on a loop.
//!
//! A [`Command`] starts a [`Child`], whose exit a task awaits or a callback receives:
//!
//! ```
//! use blacklight::{Loop, process::Command};
//!
//! let lp = Loop::new()?;
//! let output = lp.block_on(Command::new("echo").arg("light").output())?;
//! assert!(output.status.success());
//! assert_eq!(output.stdout, b"light\n");
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! The exit is reported as a [`std::process::ExitStatus`], after the child's last output has
//! become readable.

mod child;
mod command;

pub use child::Child;
pub use command::{Command, Stdio};

use crate::signal::SignalKind;
use std::io;

/// Sends a signal to any process. For a child, prefer [`Child::kill`]: the kernel may reuse the
/// process ID of a child that has exited.
///
/// ```
/// use blacklight::{SignalKind, process};
///
/// // `SIGCONT` does nothing to a process that is not stopped.
/// process::kill(std::process::id(), SignalKind::SIGCONT)?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn kill(pid: u32, kind: SignalKind) -> io::Result<()> {
    match i32::try_from(pid) {
        // Zero and negative numbers address process groups.
        Ok(pid) if pid > 0 => Ok(blacklight_sys::pid::kill(pid, kind.as_raw())?),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    }
}
