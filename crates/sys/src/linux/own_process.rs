//! The process itself, on Linux beyond POSIX.

use crate::Errno;

/// The argument of getrusage(2) for the calling thread.
pub(crate) use libc::RUSAGE_THREAD;

/// The path of the program: <https://man7.org/linux/man-pages/man5/proc_pid_exe.5.html>.
pub fn executable() -> Result<Vec<u8>, Errno> {
    crate::fs::path::readlink(c"/proc/self/exe")
}
