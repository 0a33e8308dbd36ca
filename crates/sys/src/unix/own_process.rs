//! The process itself: its directory, its resource usage and its descriptors.

use crate::{Errno, RawFd, check, platform};
use std::ffi::{CStr, c_int};
use std::mem::MaybeUninit;

pub use crate::platform::own_process::{executable, is_privileged};
pub use libc::rusage;

/// The first buffer size, which suffices for nearly all directories.
const USUAL_PATH: usize = 256;

/// Has a function called when the process ends by `exit`, or by the end of `main`:
/// <https://man7.org/linux/man-pages/man3/atexit.3.html>. `ENOMEM` if it will not be.
pub fn at_exit(function: extern "C" fn()) -> Result<(), Errno> {
    // SAFETY: the function is safe to call, and stays where it is.
    match unsafe { libc::atexit(function) } {
        0 => Ok(()),
        _ => Err(Errno::ENOMEM),
    }
}

/// The working directory: <https://man7.org/linux/man-pages/man3/getcwd.3.html>.
pub fn working_directory() -> Result<Vec<u8>, Errno> {
    let mut path: Vec<u8> = Vec::new();
    let mut room = USUAL_PATH;
    loop {
        path.try_reserve_exact(room)?;
        // SAFETY: the buffer has that size.
        let found = unsafe { libc::getcwd(path.as_mut_ptr().cast(), path.capacity()) };
        if !found.is_null() {
            // SAFETY: getcwd has written the path with a trailing NUL.
            unsafe { path.set_len(CStr::from_ptr(found).count_bytes()) };
            return Ok(path);
        }
        match Errno::last() {
            Errno::ERANGE => room = path.capacity().saturating_mul(4),
            error => return Err(error),
        }
    }
}

/// Changes the working directory: <https://man7.org/linux/man-pages/man2/chdir.2.html>.
pub fn change_directory(path: &CStr) -> Result<(), Errno> {
    Ok(rustix::process::chdir(path)?)
}

/// The subject of a query for resource usage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// All threads of this process.
    Process,
    /// The calling thread.
    Thread,
}

/// The resource usage: <https://man7.org/linux/man-pages/man2/getrusage.2.html>.
pub fn usage(who: Who) -> Result<rusage, Errno> {
    let who = match who {
        Who::Process => libc::RUSAGE_SELF,
        Who::Thread => platform::own_process::RUSAGE_THREAD,
    };
    let mut usage = MaybeUninit::uninit();
    // SAFETY: the buffer has room for the result, which is filled on success.
    unsafe {
        check(libc::getrusage(who, usage.as_mut_ptr()))?;
        Ok(usage.assume_init())
    }
}

/// Below this number, a closed descriptor does not end the search for open ones.
const ALWAYS_CHECKED: RawFd = 16;

/// Sets close-on-exec on all open descriptors. From [`ALWAYS_CHECKED`] on, the first number that is
/// not open ends the search.
pub fn set_cloexec_on_all() {
    let set_cloexec = |fd: c_int| {
        // SAFETY: F_SETFD takes no pointers and any number is allowed as a descriptor.
        unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) != -1 }
    };
    for fd in 0.. {
        if !set_cloexec(fd) && fd >= ALWAYS_CHECKED {
            break;
        }
    }
}
