//! What only Linux has.

pub mod cgroup;
pub mod cpu;
pub mod epoll;
pub mod eventfd;
pub mod inotify;
pub mod io_uring;
pub mod memory;
pub(crate) mod text;
