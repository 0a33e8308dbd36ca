//! The modules that need Linux. `crate::platform` lists those that every platform supplies; beyond
//! these there are epoll, which is one of the engine's pollers, control groups, and the parts of
//! ptrace that take the number of any signal.
//!
//! Waking a loop, watching a child, watching files and the ring are each one file, named after its
//! mechanism. The end of this file chooses them.

mod arm_parts;
pub(crate) mod buffer;
pub mod cgroup;
pub(crate) mod copy;
pub mod cpu;
pub(crate) mod datagram;
pub mod epoll;
pub(crate) mod errno;
pub mod eventfd;
pub(crate) mod file;
pub(crate) mod host;
pub mod inotify;
pub(crate) mod interfaces;
pub mod io_uring;
pub mod memory;
pub(crate) mod own_process;
pub(crate) mod pidfd;
pub(crate) mod poll;
pub mod ptrace;
pub(crate) mod random;
pub(crate) mod resolver;
pub(crate) mod signal;
pub(crate) mod socket;
pub(crate) mod spawn;
pub(crate) mod stat;
pub(crate) mod stream;
pub(crate) mod terminal;
pub(crate) mod text;
pub(crate) mod thread;

pub use eventfd as waker;
pub use inotify as file_watch;
pub use io_uring as ring;
pub(crate) use pidfd as child;
