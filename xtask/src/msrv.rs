//! `cargo xtask msrv`: the workspace compiles with the oldest Rust that it says it needs.

use crate::compile::run_quietly;
use crate::workspace;
use anyhow::{Context, Result};
use std::process::{Command, ExitCode};

/// The `rust-version` of the workspace's packages.
fn rust_version() -> Result<String> {
    let metadata =
        workspace::cargo_metadata(&workspace::root().join("Cargo.toml"), &["--no-deps"])?;
    let version = metadata["packages"][0]["rust_version"].as_str();
    Ok(version
        .context("the workspace names no rust-version")?
        .to_owned())
}

/// The version of that toolchain, if it is not on this machine and would have to be fetched.
pub(crate) fn lacks_toolchain() -> Result<Option<String>> {
    let version = rust_version()?;
    let mut ask = Command::new("rustup");
    ask.args(["run", &version, "rustc", "--version"]);
    let is_there = ask.output().is_ok_and(|answer| answer.status.success());
    Ok((!is_there).then_some(version))
}

/// Runs the chore.
pub(crate) fn run() -> Result<ExitCode> {
    let version = rust_version()?;
    let mut install = Command::new("rustup");
    install.args(["toolchain", "install", &version, "--profile", "minimal"]);
    run_quietly(install)?;
    // Rustup chooses the compiler by the toolchain in the first argument, so this is the `cargo`
    // on the path, without what the one that runs this chore has left in the environment. What
    // it builds lies apart: the two compilers would throw away each other's work.
    let mut check = Command::new("cargo");
    check
        .arg(format!("+{version}"))
        .args(["check", "--workspace", "--all-targets", "--quiet"])
        .env_remove("RUSTUP_TOOLCHAIN")
        .env_remove("RUSTC")
        .env_remove("CARGO")
        .env("CARGO_TARGET_DIR", workspace::target_subdir("msrv")?)
        .current_dir(workspace::root());
    run_quietly(check)?;
    println!("the workspace compiles with Rust {version}");
    Ok(ExitCode::SUCCESS)
}
