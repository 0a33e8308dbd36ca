//! The targets, each of which says what it promises.

pub mod addresses;
pub mod cgroups;
pub mod fs_paths;
pub mod host_names;
pub mod inotify;
pub mod ipc;
pub mod proc_files;
pub mod spawn;
pub mod wtf8;
