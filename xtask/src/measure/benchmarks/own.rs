//! Benchmarks that libuv's list does not have: one C file for each subject, in `xtask/bench`.
//!
//! They are compiled once with the original's header, and like its runner find whichever
//! library their sandbox has when they start. Each prints its figures in lines of the form
//! `label: number unit`.

use super::super::family::Family;
use super::super::turns::Subject;
use super::figures::Figure;
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
    /// Whether it measures a server, which it is told the name of: one on libuv, or one that is a
    /// bare loop of `epoll_wait`, `read` and `send`.
    pub(crate) has_bare_server: bool,
    /// Whether ours is measured while it records as well.
    pub(crate) is_recorded: bool,
    pub(crate) figures: &'static [Figure],
}

/// What lies in one directory as executables, below `xtask`.
const SOURCES: [&str; 12] = [
    "bench/dns_beside_files",
    "bench/echo",
    "bench/empty_callback",
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

const PER_READ: [Figure; 4] = [
    Figure::cost(Family::Files, " sync", "ns/read"),
    Figure::cost(Family::Files, " 1 at a time", "ns/read"),
    Figure::cost(Family::Files, " 4 at a time", "ns/read"),
    Figure::cost(Family::Files, " 32 at a time", "ns/read"),
];

const PER_ECHO: [Figure; 3] = [
    Figure::cost(Family::Streams, " 1 at once", "ns/message"),
    Figure::cost(Family::Streams, " 50 at once", "ns/message"),
    Figure::cost(Family::Streams, " 500 at once", "ns/message"),
];

/// All of them, in the order in which they run.
pub(crate) const ALL: [Own; 11] = [
    Own {
        has_bare_server: true,
        ..own("echo", &PER_ECHO)
    },
    // Each connection has a buffer and a request of its own, where the server of libuv's guide
    // allocates both for each message.
    Own {
        program: "echo",
        arguments: &["own"],
        has_bare_server: true,
        ..own("echo_own_buffers", &PER_ECHO)
    },
    Own {
        has_bare_server: true,
        ..own(
            "idle_connections",
            &[
                Figure::cost(Family::Streams, " 8 of 8", "ns/message"),
                Figure::cost(Family::Streams, " 8 of 10000", "ns/message"),
            ],
        )
    },
    own(
        "timers_and_io",
        &[Figure::cost(Family::Timers, " 10000 at once", "ns/message")],
    ),
    Own {
        program: "fs_read",
        arguments: &["4096", "50000"],
        ..own("fs_read_4k", &PER_READ)
    },
    Own {
        program: "fs_read",
        arguments: &["1048576", "8000"],
        ..own("fs_read_1m", &PER_READ)
    },
    own(
        "dns_beside_files",
        &[Figure::cost(Family::Dns, " 4 KiB", "ns/read")],
    ),
    Own {
        is_recorded: true,
        ..own(
            "empty_callback",
            &[
                Figure::cost(Family::Timers, " timers", "ns/callback"),
                Figure::cost(Family::Loop, " idle", "ns/callback"),
            ],
        )
    },
    own(
        "loop_start",
        &[
            Figure::cost(Family::Loop, " loop", "ns/loop"),
            Figure::cost(Family::Loop, " process", "ns/process"),
        ],
    ),
    own(
        "idle_memory",
        &[
            Figure::cost(Family::Memory, " process", "bytes"),
            Figure::cost(Family::Memory, " each loop", "bytes"),
        ],
    ),
    own(
        "spawn_large",
        &[
            Figure::cost(Family::Processes, " small", "ns/spawn"),
            Figure::cost(Family::Processes, " 1 GiB", "ns/spawn"),
        ],
    ),
];

const fn own(name: &'static str, figures: &'static [Figure]) -> Own {
    Own {
        name,
        program: name,
        arguments: &[],
        has_bare_server: false,
        is_recorded: false,
        figures,
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

/// The executable of the echo server that is a bare loop, or runs on whichever library it finds.
pub(crate) fn server(subject: &Subject) -> &'static str {
    match subject.name {
        Subject::BARE => "server-bare",
        _ => "server-uv",
    }
}

/// Compiles what is out of date; returns the directory of the executables.
pub(crate) fn build(original: &Original) -> Result<PathBuf> {
    let here = workspace::root().join("xtask");
    let library = original.library()?;
    let build = workspace::target_subdir("measure/programs")?;
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
        compile::link("gcc", &dir.join(name), &[object, library.clone()], &flags)?;
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
