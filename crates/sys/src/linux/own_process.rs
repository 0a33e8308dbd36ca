//! What a process can ask about itself on Linux beyond POSIX.

use crate::Errno;

/// Asks getrusage(2) about the calling thread only.
pub(crate) use libc::RUSAGE_THREAD;

/// The path of the program: <https://man7.org/linux/man-pages/man5/proc_pid_exe.5.html>.
pub fn executable() -> Result<Vec<u8>, Errno> {
    crate::fs::path::readlink(c"/proc/self/exe")
}
