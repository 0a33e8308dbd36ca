//! Files and directories.
//!
//! All functions here block; a loop calls them on a worker. Paths are C strings, as the kernel
//! takes them, so that nothing is copied. Every function that opens a descriptor sets close-on-exec
//! in the same call, so that no child process started by another thread inherits it.
//!
//! A call that a signal interrupts is repeated, with libuv's two exceptions: [`io::read`] returns
//! `EINTR`, since its caller may want to handle the signal first, and [`file::close`] succeeds if
//! the descriptor is closed by then.

pub mod copy;
pub mod dir;
pub mod file;
pub mod io;
pub mod path;
pub mod stat;
pub mod time;

use crate::Errno;

/// Repeats a call while signals interrupt it.
pub(crate) fn retry<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::EINTR) => {}
            result => return result,
        }
    }
}

/// Turns libc's "-1 and errno" into a number of bytes.
pub(crate) fn check_bytes(bytes: libc::ssize_t) -> Result<usize, Errno> {
    usize::try_from(bytes).map_err(|_| Errno::last())
}
