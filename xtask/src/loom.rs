//! `cargo xtask loom`: every interleaving of a few threads of what they share.
//!
//! The models lie in `crates/engine/src/models` and beside the pool. They are tests of the engine
//! that exist only under `cfg(loom)`, which is built apart from everything else: nothing of loom
//! gets into what is shipped.

use crate::workspace;
use anyhow::{Context, Result, ensure};
use std::process::ExitCode;

/// Try all interleavings of threads that share a mailbox, a gate or the pool.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only models whose names contain this.
    #[arg(default_value = "models::")]
    filter: String,
}

/// Runs the chore.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let status = workspace::cargo()
        .args(["test", "--quiet", "-p", "blacklight-engine", "--lib", "--"])
        .args([&options.filter, "--nocapture"])
        .env("RUSTFLAGS", "--cfg loom")
        .env("CARGO_TARGET_DIR", workspace::target_subdir("loom")?)
        // Unoptimised the same takes four times as long.
        .env("CARGO_PROFILE_DEV_OPT_LEVEL", "3")
        .current_dir(workspace::root())
        .status()
        .context("cannot run cargo")?;
    ensure!(status.success(), "an interleaving fails");
    Ok(ExitCode::SUCCESS)
}
