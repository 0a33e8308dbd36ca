//! `cargo xtask clients`: programs that people use, unmodified, on our library.
//!
//! The programs come from Debian's packages. Node's own builds and uvloop's wheel come from npm and
//! PyPI: those carry a libuv inside, so they are started by `blacklight run`, or as they are for the
//! original. What each has to do is in a script in
//! `xtask/clients`, in the client's own language where it has one; a check is one process of
//! its own, in an empty directory, so that one which hangs or dies takes no other with it.
//! With `--library original` the same checks show that they are fair. That the library in
//! question is the one that ran, and no other libuv, is read from the dynamic linker's own
//! record of every process of the check.

mod catalogue;
mod debian;
pub(crate) mod loaded;
mod registries;

pub(crate) use registries::PYTHON;

use crate::library::{self, Library};
use crate::original::Original;
use crate::{selection, workspace};
use anyhow::{Context, Result};
use catalogue::{Carrier, Client};
use std::fs::{self, File};
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// What a check may take on a machine that is busy with other things.
const TIMEOUT_SECONDS: &str = "120";

/// What to run, and on which library.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Clients or checks: `node`, `node/fs`, `uvloop/*`. All if none is named.
    names: Vec<String>,
    /// The library to run on: `ours`, `original`, or the path of one.
    #[arg(long, default_value = "ours")]
    library: Library,
    /// The poller that our library is to use.
    #[arg(long)]
    poller: Option<String>,
    /// Only list the checks.
    #[arg(long)]
    list: bool,
}

/// Where a check runs, and on what.
struct Place {
    /// Holds `libuv.so.1`.
    lib: PathBuf,
    /// The `blacklight` command, if the library is to take the place of one that is inside.
    command: Option<PathBuf>,
    /// What the client's packages were unpacked into, if they were not installed.
    unpacked: Option<PathBuf>,
    /// An empty directory.
    scratch: PathBuf,
}

#[derive(Default)]
struct Tally {
    passed: usize,
    failed: usize,
    skipped: usize,
}

/// Where the newest of Node's own builds among the clients lies.
pub(crate) fn official_node() -> Result<PathBuf> {
    registries::unpack(Carrier::Node(catalogue::NEWEST_NODE))
}

/// Where the newest of Node's own builds for 64-bit ARM lies.
pub(crate) fn official_node_for_arm() -> Result<PathBuf> {
    registries::node_for_arm()
}

/// Where Node's own build of that name among the clients lies.
pub(crate) fn node(name: &str) -> Result<PathBuf> {
    let root = provide(name)?;
    root.with_context(|| format!("{name} is not a build of its own"))
}

/// Installs or unpacks the client of that name; returns where it was unpacked, if it was.
pub(crate) fn provide(name: &str) -> Result<Option<PathBuf>> {
    let client = catalogue::CLIENTS.iter().find(|client| client.name == name);
    debian::provide(client.with_context(|| format!("there is no client {name}"))?)
}

/// Downloads and unpacks a wheel from PyPI; returns where it lies.
pub(crate) fn wheel(package: &str, version: &str) -> Result<PathBuf> {
    registries::wheel(package, version)
}

/// Where the Python modules lie that read traces and metrics.
pub(crate) fn readers() -> Result<PathBuf> {
    registries::readers()
}

/// Runs the chore.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let names: Vec<String> = catalogue::CLIENTS
        .iter()
        .flat_map(Client::check_names)
        .collect();
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    let chosen = if options.names.is_empty() {
        all
    } else {
        selection::select(&all, &options.names)?
    };
    if options.list {
        chosen.iter().for_each(|name| println!("{name}"));
        return Ok(ExitCode::SUCCESS);
    }
    let dir = workspace::target_subdir("clients")?;
    let lib = dir.join(format!("lib-{}", std::process::id()));
    let original = Original::obtain()?;
    library::snapshot(&options.library.build(&original)?, &lib)?;
    let command = match options.library {
        Library::Original => None,
        _ => Some(library::command("dev")?),
    };
    let mut tally = Tally::default();
    for client in &catalogue::CLIENTS {
        let checks: Vec<&str> = client.chosen(&chosen).collect();
        if !checks.is_empty() {
            run_client(
                client,
                &checks,
                &lib,
                command.as_deref(),
                options,
                &mut tally,
            )?;
        }
    }
    fs::remove_dir_all(&lib).with_context(|| format!("cannot remove {}", lib.display()))?;
    println!(
        "{} passed, {} failed, {} skipped (library: {})",
        tally.passed, tally.failed, tally.skipped, options.library
    );
    Ok(if tally.failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn run_client(
    client: &Client,
    checks: &[&str],
    lib: &Path,
    command: Option<&Path>,
    options: &Options,
    tally: &mut Tally,
) -> Result<()> {
    let unpacked = match debian::provide(client) {
        Ok(unpacked) => unpacked,
        Err(error) => {
            // Without a network there is no client, which says nothing about the library.
            println!("{}: skipped ({error:#})", client.name);
            tally.skipped += checks.len();
            return Ok(());
        }
    };
    for check in checks {
        let scratch = tempdir(client.name, check)?;
        let place = Place {
            lib: lib.to_owned(),
            command: command.map(Path::to_owned),
            unpacked: unpacked.clone(),
            scratch,
        };
        match run_check(client, check, &place, options.poller.as_deref()) {
            Ok(()) => {
                println!("{} {check}: ok", client.name);
                tally.passed += 1;
                fs::remove_dir_all(&place.scratch)
                    .with_context(|| format!("cannot remove {}", place.scratch.display()))?;
            }
            Err(error) => {
                println!("{} {check}: FAILED", client.name);
                println!(
                    "    {}",
                    format!("{error:#}").trim().replace('\n', "\n    ")
                );
                println!("    (see {})", place.scratch.display());
                tally.failed += 1;
            }
        }
    }
    Ok(())
}

fn tempdir(client: &str, check: &str) -> Result<PathBuf> {
    // Sockets are made in it, and the name of a socket has 107 bytes at most.
    let name = format!("blacklight-{client}-{check}-{}", std::process::id());
    let dir = std::env::temp_dir().join(name);
    if dir.exists() {
        fs::remove_dir_all(&dir).with_context(|| format!("cannot clear {}", dir.display()))?;
    }
    fs::create_dir_all(dir.join("work"))
        .with_context(|| format!("cannot make {}", dir.display()))?;
    Ok(dir)
}

fn run_check(client: &Client, check: &str, place: &Place, poller: Option<&str>) -> Result<()> {
    let work = place.scratch.join("work");
    let output = place.scratch.join("output");
    let said =
        File::create(&output).with_context(|| format!("cannot make {}", output.display()))?;
    let mut search_path = place.lib.clone().into_os_string();
    if let Some(unpacked) = &place.unpacked {
        search_path.push(":");
        search_path.push(unpacked.join("usr/lib/x86_64-linux-gnu"));
    }
    let mut command = Command::new("timeout");
    command
        .args(["--kill-after=5", TIMEOUT_SECONDS])
        .args(client.command(check, place)?)
        .current_dir(&work)
        .env("CHECK", check)
        .env("HOME", &work)
        .env("TMPDIR", &work)
        .env("LD_LIBRARY_PATH", search_path)
        .env("LD_DEBUG", "libs")
        .env("LD_DEBUG_OUTPUT", place.scratch.join("ld"))
        .stdin(Stdio::null())
        .stdout(said.try_clone()?)
        .stderr(said);
    if let (Some(Carrier::Uvloop(_)), Some(unpacked)) = (client.carrier, &place.unpacked) {
        command.env("PYTHONPATH", unpacked);
    }
    if let Some(poller) = poller {
        command.env("BLACKLIGHT_POLLER", poller);
    }
    if client.is_confined() {
        for dir in [&place.scratch, &work] {
            let user = Some(catalogue::CONFINED_USER);
            chown(dir, user, user).with_context(|| format!("cannot give {}", dir.display()))?;
        }
    }
    let status = command.status().context("cannot run timeout")?;
    if !status.success() {
        let said = fs::read_to_string(&output).unwrap_or_default();
        let reason = match status.code() {
            Some(124 | 137) => format!("not over after {TIMEOUT_SECONDS} s"),
            _ => status.to_string(),
        };
        let lines: Vec<&str> = said.lines().collect();
        let tail = lines[lines.len().saturating_sub(30)..].join("\n");
        anyhow::bail!("{reason}\n{tail}");
    }
    if client.carries_libuv() && place.command.is_none() {
        // It has run on the library inside, which the linker knows nothing of.
        return Ok(());
    }
    loaded::only(&place.lib.join("libuv.so.1"), &place.scratch)
}
