//! Files and directories.
//!
//! Everything here blocks: whoever must not wait calls it on another thread. Paths are C
//! strings, as the kernel wants them, so that nothing is copied on the way. Whatever opens a
//! descriptor asks for close-on-exec in the same call, so that no descriptor reaches a child
//! process that another thread happens to start meanwhile.
//!
//! A call that a signal interrupted is made again, with two exceptions that are libuv's:
//! [`io::read`] reports it, since its caller may want to look at what the signal was about, and
//! [`file::close`] counts it as done where the descriptor is gone by then.

pub mod copy;
pub mod dir;
pub mod file;
pub mod io;
pub mod path;
pub mod stat;
pub mod time;

use crate::Errno;

/// Makes a call again for as long as signals interrupt it.
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
