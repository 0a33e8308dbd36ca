//! Blacklight's only access to the operating system.
//!
//! Each module wraps one kernel mechanism in safe functions. Callers pass plain file descriptor
//! numbers, because a C program may pass any number at all, and get an [`Errno`] when the kernel
//! refuses it. No module keeps state beyond the file descriptors that it owns, except where its
//! first lines say so, and none knows of event loops.
//!
//! `unix/` has the modules that need only POSIX, `linux/` those that need Linux. `platform.rs`
//! lists what a platform must supply: a port to another system begins there.
//!
//! System calls go through libc rather than straight to the kernel, so that programs which
//! interpose libc (faketime, proxychains, sanitizers) keep working.

mod errno;
pub mod fallible;
pub mod host_name;
pub mod job;
#[cfg(target_os = "linux")]
mod linux;
mod platform;
mod unix;

#[cfg(target_os = "linux")]
pub use linux::{cgroup, epoll, ptrace};
pub use platform::{cpu, file_watch, memory, ring, waker};
pub use unix::{
    buffer, clock, datagram, env, fd, fork_lock, fs, host, inet, interfaces, library, multicast,
    own_process, pair, per_process, pid, poll, process, random, resolver, select, signal, socket,
    stack, stream, sync, terminal, thread, user,
};

pub use errno::Errno;
pub use std::os::fd::RawFd;

/// How long a wait for events may block, in nanoseconds: `None` is for ever, `Some(0)` does not
/// block.
pub type Timeout = Option<u64>;

/// Turns libc's "-1 and errno" into a result.
fn check(status: libc::c_int) -> Result<libc::c_int, Errno> {
    if status == -1 {
        Err(Errno::last())
    } else {
        Ok(status)
    }
}

/// A timeout as the `timespec` that `ppoll`, `pselect` and `epoll_pwait2` take.
fn timespec(ns: u64) -> libc::timespec {
    libc::timespec {
        tv_sec: (ns / 1_000_000_000).min(i64::MAX as u64) as _,
        tv_nsec: (ns % 1_000_000_000) as libc::c_long,
    }
}
