//! `cargo xtask exports`: what `blacklight trace` and `blacklight metrics` write is what other tools read.
//!
//! Real programs, one in C and one for Node's own build, are traced and measured, and what was written is read by Perfetto's own
//! schema and by Prometheus' parser of OpenMetrics, both from PyPI. Perfetto's page and its trace processor are not asked: they are
//! not to be had without a network. The checks are in `xtask/exports/checks.py`.

use crate::{clients, library, program, workspace};
use anyhow::{Context, Result};
use std::fs;
use std::process::{Command, ExitCode};

/// Which checks to make.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Names of checks. All if none is named.
    names: Vec<String>,
}

/// Runs the chore.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let dir = workspace::target_subdir("exports")?;
    // The command finds the library that lies in the folder beside its own.
    let (bin, lib) = (dir.join("bin"), dir.join("lib"));
    fs::create_dir_all(&bin).with_context(|| format!("cannot make {}", bin.display()))?;
    library::snapshot(&library::stage_ours()?.join("libuv.so.1"), &lib)?;
    let command = bin.join("blacklight");
    workspace::copy_into_place(&library::command("dev")?, &command)?;
    let program = program::compile("exports", "everything", &lib)?;
    let node = clients::official_node()?.join("bin/node");
    let readers = clients::readers()?;
    let written = workspace::target_subdir("exports/written")?;
    let status = Command::new(clients::PYTHON)
        .arg(workspace::root().join("xtask/exports/checks.py"))
        .args([&command, &program, &node, &written])
        .args(&options.names)
        .env("PYTHONPATH", readers)
        // Nothing is written into the sources.
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .status();
    let status = status.context("cannot run python3")?;
    Ok(match status.success() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}
