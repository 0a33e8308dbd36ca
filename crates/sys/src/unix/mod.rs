//! The calls that POSIX (as of 2024, which has `ppoll`, `accept4` and `pipe2`) or all systems have.
//!
//! No module here names a mechanism of a single system. Where a system does more than POSIX, or
//! does it in another way, the module calls `crate::platform`, which lists what a platform must
//! supply.

pub mod buffer;
pub mod clock;
pub mod datagram;
pub mod env;
pub mod fd;
pub mod fork_lock;
pub mod fs;
pub mod host;
pub mod inet;
pub mod interfaces;
pub mod library;
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
pub mod stack;
pub mod stream;
pub mod sync;
pub mod terminal;
pub mod thread;
pub mod user;
