//! Benchmarks that libuv's list does not have: one C file for each subject, in `xtask/bench`.
//!
//! They are compiled once with the original's header, and like its runner find whichever
//! library their sandbox has when they start. Each prints its readings in lines of the form
//! `label: number unit`, and what no library can be below in lines of the form
//! `label (floor): number unit`.

use super::readings::Reading;
use crate::compile::{self, Objects};
use crate::original::Original;
use crate::workspace;
use anyhow::Result;
use std::fs;
use std::path::{Path, PathBuf};

/// A benchmark of ours: a program, what it is told, and what it says.
pub(crate) struct Own {
    pub(crate) name: &'static str,
    program: &'static str,
    pub(crate) arguments: &'static [&'static str],
    pub(crate) readings: &'static [Reading],
}

/// What lies in one directory as executables, below `xtask`.
const SOURCES: [&str; 11] = [
    "bench/dns_beside_files",
    "bench/echo",
    "bench/fs_read",
    "bench/idle_connections",
    "bench/idle_memory",
    "bench/loop_start",
    "bench/spawn_large",
    "bench/timers_and_io",
    "echo/client",
    "echo/server-bare",
    "echo/server-uv",
];

const PER_READ: [Reading; 4] = [
    Reading::cost(" sync", "ns/read"),
    Reading::cost(" 1 at a time", "ns/read"),
    Reading::cost(" 4 at a time", "ns/read"),
    Reading::cost(" 32 at a time", "ns/read"),
];

/// All of them, in the order in which they run.
pub(crate) const ALL: [Own; 9] = [
    own(
        "echo",
        &[
            Reading::cost_above_floor(" 1 at once", "ns/message"),
            Reading::cost_above_floor(" 50 at once", "ns/message"),
            Reading::cost_above_floor(" 500 at once", "ns/message"),
        ],
    ),
    own(
        "idle_connections",
        &[
            Reading::cost_above_floor(" 8 of 8", "ns/message"),
            Reading::cost_above_floor(" 8 of 10000", "ns/message"),
        ],
    ),
    own(
        "timers_and_io",
        &[Reading::cost(" 10000 at once", "ns/message")],
    ),
    Own {
        name: "fs_read_4k",
        program: "fs_read",
        arguments: &["4096", "50000"],
        readings: &PER_READ,
    },
    Own {
        name: "fs_read_1m",
        program: "fs_read",
        arguments: &["1048576", "8000"],
        readings: &PER_READ,
    },
    own("dns_beside_files", &[Reading::cost(" 4 KiB", "ns/read")]),
    own(
        "loop_start",
        &[
            Reading::cost(" loop", "ns/loop"),
            Reading::cost(" process", "ns/process"),
        ],
    ),
    own(
        "idle_memory",
        &[
            Reading::cost(" process", "bytes"),
            Reading::cost(" each loop", "bytes"),
        ],
    ),
    own(
        "spawn_large",
        &[
            Reading::cost(" small", "ns/spawn"),
            Reading::cost(" 1 GiB", "ns/spawn"),
        ],
    ),
];

const fn own(name: &'static str, readings: &'static [Reading]) -> Own {
    Own {
        name,
        program: name,
        arguments: &[],
        readings,
    }
}

/// The benchmark of that name, if it is ours.
pub(crate) fn find(name: &str) -> Option<&'static Own> {
    ALL.iter().find(|own| own.name == name)
}

impl Own {
    /// The executable among those that were built into `dir`.
    pub(crate) fn program(&self, dir: &Path) -> PathBuf {
        dir.join(self.program)
    }
}

/// Compiles what is out of date; returns the directory of the executables.
pub(crate) fn build(original: &Original) -> Result<PathBuf> {
    let here = workspace::root().join("xtask");
    let library = original.library()?;
    let build = workspace::target_subdir("bench/programs")?;
    let _guard = compile::lock(&build)?;
    let objects = Objects {
        label: "our own benchmarks",
        compiler: "gcc",
        dir: build.join("objects"),
        flags: vec![
            "-std=gnu11".to_owned(),
            "-O2".to_owned(),
            format!("-I{}", original.include_dir().display()),
        ],
        headers: vec![
            here.join("bench"),
            here.join("echo"),
            original.include_dir(),
        ],
        sources: SOURCES
            .iter()
            .map(|source| here.join(source).with_extension("c"))
            .collect(),
    }
    .build()?;
    let dir = build.join("bin");
    fs::create_dir_all(&dir)?;
    let flags = [
        "-Wl,-rpath,$ORIGIN/../lib".to_owned(),
        "-lpthread".to_owned(),
    ];
    for (source, object) in SOURCES.iter().zip(objects) {
        let name = Path::new(source).file_name().unwrap_or_default();
        compile::link(&dir.join(name), &[object, library.clone()], &flags)?;
    }
    Ok(dir)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_has_its_source() {
        for own in &ALL {
            let source = format!("bench/{}", own.program);
            assert!(SOURCES.contains(&source.as_str()), "{}", own.name);
        }
        for source in SOURCES {
            let file = workspace::root().join(format!("xtask/{source}.c"));
            assert!(file.exists(), "{}", file.display());
        }
    }
}
