//! What a process asks and tells about itself.

use crate::{Errno, RawFd, check};
use std::ffi::{CStr, CString, c_int};
use std::mem::MaybeUninit;

pub use libc::rusage;

/// The working directory: <https://man7.org/linux/man-pages/man3/getcwd.3.html>.
pub fn working_directory() -> Result<CString, Errno> {
    Ok(rustix::process::getcwd(Vec::new())?)
}

/// Changes the working directory: <https://man7.org/linux/man-pages/man2/chdir.2.html>.
pub fn change_directory(path: &CStr) -> Result<(), Errno> {
    Ok(rustix::process::chdir(path)?)
}

/// The path of the program: <https://man7.org/linux/man-pages/man5/proc_pid_exe.5.html>.
pub fn executable() -> Result<CString, Errno> {
    Ok(rustix::fs::readlink(c"/proc/self/exe", Vec::new())?)
}

/// Whose use of resources is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// All threads of this process.
    Process,
    /// The calling thread.
    Thread,
}

/// What was used: <https://man7.org/linux/man-pages/man2/getrusage.2.html>.
pub fn usage(who: Who) -> Result<rusage, Errno> {
    let who = match who {
        Who::Process => libc::RUSAGE_SELF,
        Who::Thread => libc::RUSAGE_THREAD,
    };
    let mut usage = MaybeUninit::uninit();
    // SAFETY: there is room for the answer, which is filled on success.
    unsafe {
        check(libc::getrusage(who, usage.as_mut_ptr()))?;
        Ok(usage.assume_init())
    }
}

/// Below this number, descriptors are worth a look even if one before them is not open.
const WORTH_A_LOOK: RawFd = 16;

/// Keeps the programs that this process starts from getting the descriptors that are open
/// now. From [`WORTH_A_LOOK`] on, the first number that is not open is taken for the end.
pub fn keep_descriptors() {
    let keep = |fd: c_int| {
        // SAFETY: F_SETFD takes no pointers and any number is allowed as a descriptor.
        unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) != -1 }
    };
    for fd in 0.. {
        if !keep(fd) && fd >= WORTH_A_LOOK {
            break;
        }
    }
}
