//! Child processes, as in [`std::process`], on a loop.
//!
//! A [`Command`] starts a [`Child`], whose end can be awaited or called back for:
//!
//! ```
//! use blacklight::{Loop, process::Command};
//!
//! let lp = Loop::new()?;
//! let output = lp.block_on(Command::new("echo").arg("light").output(&lp))?;
//! assert!(output.status.success());
//! assert_eq!(output.stdout, b"light\n");
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! How a child has ended is told as [`std::process::ExitStatus`]. What it writes before its end
//! can be read before its end is told of.

mod child;
mod command;

pub use child::Child;
pub use command::{Command, Stdio};

use crate::signal::SignalKind;
use std::io;

/// Sends a signal to any process. To a child, [`Child::kill`] is the safer way: another process
/// may have a child's number after it has ended.
///
/// ```
/// use blacklight::{SignalKind, process};
///
/// // To be woken from a stop does nothing to whoever has not stopped.
/// process::kill(std::process::id(), SignalKind::SIGCONT)?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn kill(pid: u32, kind: SignalKind) -> io::Result<()> {
    match i32::try_from(pid) {
        // Zero and negative numbers stand for groups of processes.
        Ok(pid) if pid > 0 => Ok(blacklight_sys::pid::kill(pid, kind.as_raw())?),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    }
}
