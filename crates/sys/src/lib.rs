//! The one place where Blacklight talks to the operating system.
//!
//! Each module wraps one kernel mechanism behind safe functions: callers pass plain
//! file descriptor numbers, because a C program may hand us any number at all, and get
//! an [`Errno`] back when the kernel disagrees. No module keeps state beyond the file
//! descriptors it owns, and none knows what an event loop is.
//!
//! System calls go through libc rather than straight to the kernel, so that programs
//! which interpose libc (faketime, proxychains, sanitizers) keep working.

pub mod buffer;
pub mod cgroup;
pub mod clock;
pub mod cpu;
pub mod datagram;
pub mod env;
pub mod epoll;
mod errno;
pub mod eventfd;
pub mod fallible;
pub mod fd;
pub mod fork_lock;
pub mod fs;
pub mod host;
pub mod host_name;
pub mod inet;
pub mod inotify;
pub mod interfaces;
pub mod io_uring;
pub mod job;
pub mod library;
pub mod memory;
pub mod multicast;
pub mod own_process;
pub mod pair;
pub mod per_process;
pub mod pid;
pub mod poll;
pub mod process;
pub mod random;
pub mod resolver;
pub mod select;
pub mod signal;
pub mod socket;
pub mod stream;
pub mod sync;
pub mod terminal;
mod text;
pub mod thread;
pub mod user;

pub use errno::Errno;
pub use std::os::fd::RawFd;

/// How long a wait for events may sleep, in nanoseconds: `None` is for ever, `Some(0)`
/// does not sleep at all.
pub type Timeout = Option<u64>;

/// Turns libc's "-1 and errno" into a result.
fn check(status: libc::c_int) -> Result<libc::c_int, Errno> {
    if status == -1 {
        Err(Errno::last())
    } else {
        Ok(status)
    }
}

/// A time-out as the `timespec` that `ppoll`, `pselect` and `epoll_pwait2` take.
fn timespec(ns: u64) -> libc::timespec {
    libc::timespec {
        tv_sec: (ns / 1_000_000_000).min(i64::MAX as u64) as libc::time_t,
        tv_nsec: (ns % 1_000_000_000) as libc::c_long,
    }
}
