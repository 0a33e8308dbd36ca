//! What the fuzzer runs.
//!
//! A target is a function that takes bytes and panics if a promise does not hold for them. The
//! programs in `fuzz/fuzz_targets` hand them libFuzzer's bytes; `tests/replay.rs` hands them the
//! corpus in `fuzz/corpus`, without libFuzzer, so that an ordinary test run finds again what was
//! found once.
//!
//! Where the original library has the same function, a target calls both and compares. The
//! original is loaded from the file that the environment variable [`original::VARIABLE`] names;
//! without it, targets check what they can check by themselves. `cargo xtask fuzz` sets it.
//!
//! Targets look at what belongs to the whole process (descriptors, children, mounts): one process
//! runs one of them at a time.

pub mod api;
pub mod input;
pub mod original;
pub mod scratch;
pub mod targets;
pub mod uses;

use uv as _;

/// One thing to try bytes on.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name, which is also that of its program and of the directory of its corpus.
    pub name: &'static str,
    /// Panics if something does not hold for the bytes.
    pub run: fn(&[u8]),
}

/// All of them.
pub const TARGETS: &[Target] = &[
    Target {
        name: "addresses",
        run: targets::addresses::run,
    },
    Target {
        name: "cgroups",
        run: targets::cgroups::run,
    },
    Target {
        name: "fs_paths",
        run: targets::fs_paths::run,
    },
    Target {
        name: "host_names",
        run: targets::host_names::run,
    },
    Target {
        name: "inotify",
        run: targets::inotify::run,
    },
    Target {
        name: "ipc",
        run: targets::ipc::run,
    },
    Target {
        name: "proc_files",
        run: targets::proc_files::run,
    },
    Target {
        name: "spawn",
        run: targets::spawn::run,
    },
    Target {
        name: "wtf8",
        run: targets::wtf8::run,
    },
];
