//! What a process asks and tells about itself.

use crate::{Errno, RawFd, check, platform};
use std::ffi::{CStr, c_int};
use std::mem::MaybeUninit;

pub use crate::platform::own_process::executable;
pub use libc::rusage;

/// Room that is enough for nearly all directories and costs little.
const USUAL_PATH: usize = 256;

/// The working directory: <https://man7.org/linux/man-pages/man3/getcwd.3.html>.
pub fn working_directory() -> Result<Vec<u8>, Errno> {
    let mut path: Vec<u8> = Vec::new();
    let mut room = USUAL_PATH;
    loop {
        path.try_reserve_exact(room)?;
        // SAFETY: there is that much room.
        let found = unsafe { libc::getcwd(path.as_mut_ptr().cast(), path.capacity()) };
        if !found.is_null() {
            // SAFETY: the path is there, with a NUL at its end.
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
        Who::Thread => platform::own_process::RUSAGE_THREAD,
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
