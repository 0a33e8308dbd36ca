//! What the command does with threads of other processes that it has seized:
//! <https://man7.org/linux/man-pages/man2/ptrace.2.html>.
//!
//! Signals are plain numbers here. Real-time signals, and those that a C library keeps for itself,
//! have no names in other wrappers, which lose them: once the kernel has told a tracer of a signal,
//! only the tracer can still deliver it.

use crate::{Errno, check};
use std::ffi::c_int;
use std::{mem, ptr};

/// What a thread does that the calling thread has seized.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Seized {
    /// It runs, or has not stopped yet.
    Running,
    /// It has stopped.
    Stopped {
        /// The signal that it was about to receive, which is lost unless it is [given](detach) it;
        /// 0 if it has stopped for another reason.
        signal: i32,
    },
    /// It has ended.
    Ended,
}

/// Looks at what a thread does that the calling thread has seized.
///
/// The end of a process stays there for its parent to learn of, which may be this process.
pub fn look(thread: i32) -> Result<Seized, Errno> {
    let seen = tell(thread, libc::WEXITED | libc::WSTOPPED | libc::WNOWAIT)?;
    match seen {
        None => return Ok(Seized::Running),
        Some((libc::CLD_EXITED | libc::CLD_KILLED | libc::CLD_DUMPED, _)) => {
            return Ok(Seized::Ended);
        }
        Some(_) => {}
    }
    Ok(match tell(thread, libc::WSTOPPED)? {
        // It was killed meanwhile.
        None => Seized::Running,
        // Above the signal lies the number of an event, such as the interruption that was asked for
        // or the stop of a whole process, which goes on by itself.
        Some((_, status)) if status >> 8 != 0 => Seized::Stopped { signal: 0 },
        Some((_, status)) => Seized::Stopped { signal: status },
    })
}

/// What has happened to a thread, and its status; nothing if nothing of these kinds has.
fn tell(thread: i32, kinds: c_int) -> Result<Option<(c_int, c_int)>, Errno> {
    // SAFETY: every field may be zero.
    let mut info: libc::siginfo_t = unsafe { mem::zeroed() };
    let flags = kinds | libc::__WALL | libc::WNOHANG;
    // SAFETY: there is room for what is told.
    match check(unsafe { libc::waitid(libc::P_PID, thread as libc::id_t, &mut info, flags) }) {
        // SAFETY: what the kernel tells of children has these fields; nothing is told as zeros.
        Ok(_) => Ok(unsafe { (info.si_pid() != 0).then(|| (info.si_code, info.si_status())) }),
        Err(Errno::EINTR) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Lets go of a thread that has stopped, and gives it a signal unless that is 0.
pub fn detach(thread: i32, signal: i32) -> Result<(), Errno> {
    let nothing = ptr::null_mut::<libc::c_void>();
    let signal = signal as usize as *mut libc::c_void;
    // SAFETY: this request touches no memory of this process.
    let status = unsafe { libc::ptrace(libc::PTRACE_DETACH, thread, nothing, signal) };
    check(status as i32).map(drop)
}
