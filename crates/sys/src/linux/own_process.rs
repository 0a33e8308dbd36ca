//! The process itself, on Linux beyond POSIX.

use crate::Errno;

/// The argument of getrusage(2) for the calling thread.
pub(crate) use libc::RUSAGE_THREAD;

/// Whether the program has more rights than the user who started it, as a set-uid program has, so that it must not trust its environment:
/// <https://man7.org/linux/man-pages/man3/getauxval.3.html>.
pub fn is_privileged() -> bool {
    // SAFETY: the call takes a number and only reads what the kernel has passed to the program.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// The path of the program: <https://man7.org/linux/man-pages/man5/proc_pid_exe.5.html>.
pub fn executable() -> Result<Vec<u8>, Errno> {
    crate::fs::path::readlink(c"/proc/self/exe")
}
