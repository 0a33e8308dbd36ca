//! `cargo xtask node-order`: what a real Node prints for the programs that our scheduling is
//! compared with.
//!
//! The programs lie in `crates/blacklight/tests/node`, each with its recorded output beside it.
//! The tests of the crate `blacklight` run their twins in Rust and need no Node; this chore
//! records the outputs anew, or checks that they still hold, with the `node` on the path.

use crate::workspace;
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Record what Node prints for the programs in crates/blacklight/tests/node.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Compare with what is recorded, and change nothing.
    #[arg(long)]
    check: bool,
    /// How many times each program runs; it must print the same every time.
    #[arg(long, default_value_t = 1)]
    rounds: usize,
    /// Programs, by their names; all of them otherwise.
    names: Vec<String>,
}

/// How long one program may take, in seconds.
const LIMIT: &str = "20";

/// What a command prints to its standard output.
fn output_of(command: &mut Command) -> Result<String> {
    let output = command
        .output()
        .with_context(|| format!("cannot run {command:?}"))?;
    ensure!(
        output.status.success(),
        "{command:?} failed, {}:\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).with_context(|| format!("{command:?} prints no text"))
}

/// What Node prints for a program. One that does not always print the same proves nothing.
fn run_program(program: &Path, rounds: usize) -> Result<String> {
    let run = || output_of(Command::new("timeout").args([LIMIT, "node"]).arg(program));
    let first = run()?;
    for _ in 1..rounds {
        let again = run()?;
        ensure!(
            again == first,
            "{} prints\n{again}and at another time\n{first}",
            program.display()
        );
    }
    Ok(first)
}

/// The programs that were asked for, in order.
fn programs(options: &Options, dir: &Path) -> Result<Vec<PathBuf>> {
    let mut programs = Vec::new();
    if options.names.is_empty() {
        for entry in fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "js") {
                programs.push(path);
            }
        }
        programs.sort();
    }
    for name in &options.names {
        let path = dir.join(name).with_extension("js");
        ensure!(path.exists(), "no program is called {name}");
        programs.push(path);
    }
    ensure!(!programs.is_empty(), "no programs in {}", dir.display());
    Ok(programs)
}

/// Runs the chore.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let dir = workspace::root().join("crates/blacklight/tests/node");
    let version = output_of(Command::new("node").arg("--version"))?;
    let recorded_version = dir.join("VERSION");
    let recorded = fs::read_to_string(&recorded_version).unwrap_or_default();
    ensure!(
        options.check || options.names.is_empty() || version == recorded,
        "the others were recorded with {}, so record all of them anew",
        recorded.trim()
    );
    let programs = programs(options, &dir)?;
    let mut different = Vec::new();
    for program in &programs {
        let printed = run_program(program, options.rounds)?;
        let file = program.with_extension("out");
        if !options.check {
            fs::write(&file, printed)
                .with_context(|| format!("cannot write {}", file.display()))?;
        } else if fs::read_to_string(&file).ok().as_deref() != Some(&*printed) {
            println!("== {} prints now\n{printed}", program.display());
            different.push(program);
        }
    }
    if options.check {
        println!(
            "{} of {} programs print what Node {} printed (this is {})",
            programs.len() - different.len(),
            programs.len(),
            recorded.trim(),
            version.trim()
        );
    } else {
        fs::write(&recorded_version, &version).context("cannot write the version")?;
        println!("{} programs recorded, {}", programs.len(), version.trim());
    }
    if !different.is_empty() {
        bail!("{} programs print something else", different.len());
    }
    Ok(ExitCode::SUCCESS)
}
