//! Where things lie: the workspace, its target directory, and the programs that chores call.
//!
//! Nothing a chore makes goes anywhere but the target directory, which honours
//! `CARGO_TARGET_DIR` because Cargo itself is asked for it.

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The root of the repository.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask lies in the workspace")
}

/// The public headers of our library.
pub(crate) fn include_dir() -> PathBuf {
    root().join("crates/uv/include")
}

/// Cargo's target directory for this workspace.
pub(crate) fn target_dir() -> Result<&'static Path> {
    static TARGET: OnceLock<PathBuf> = OnceLock::new();
    if let Some(found) = TARGET.get() {
        return Ok(found);
    }
    let metadata = cargo_metadata(&root().join("Cargo.toml"), &["--no-deps"])?;
    let target = metadata["target_directory"]
        .as_str()
        .context("cargo metadata names no target directory")?;
    Ok(TARGET.get_or_init(|| PathBuf::from(target)))
}

/// A directory below the target directory, made if it is not there.
pub(crate) fn target_subdir(name: impl AsRef<Path>) -> Result<PathBuf> {
    let dir = target_dir()?.join(name);
    fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
    Ok(dir)
}

/// The Cargo that runs this chore, or the one on the path.
pub(crate) fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// What `cargo metadata` says about the package or workspace at `manifest`.
pub(crate) fn cargo_metadata(manifest: &Path, arguments: &[&str]) -> Result<Value> {
    let output = cargo()
        .args(["metadata", "--format-version", "1", "--manifest-path"])
        .arg(manifest)
        .args(arguments)
        .output()
        .context("cannot run cargo metadata")?;
    if !output.status.success() {
        bail!(
            "cargo metadata failed for {}:\n{}",
            manifest.display(),
            String::from_utf8_lossy(&output.stderr)
        );
    }
    serde_json::from_slice(&output.stdout).context("cargo metadata did not answer in JSON")
}

/// Makes sure that `tool` can be run, installing the Debian package that has it if need be.
pub(crate) fn require_tool(tool: &str, debian_package: &str) -> Result<()> {
    let found = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"]
        .iter()
        .any(|dir| Path::new(dir).join(tool).exists());
    if found {
        return Ok(());
    }
    install(tool, debian_package)
}

/// Makes sure that `file` is there, installing the Debian package that has it if need be.
pub(crate) fn require_file(file: &str, debian_package: &str) -> Result<()> {
    if Path::new(file).exists() {
        return Ok(());
    }
    install(file, debian_package)
}

fn install(missing: &str, debian_package: &str) -> Result<()> {
    eprintln!("installing {debian_package} for {missing}");
    for arguments in [
        &["update", "-qq"][..],
        &["install", "-qq", "--no-install-recommends", debian_package][..],
    ] {
        let output = Command::new("apt-get")
            // The system may be installing something of its own.
            .args(["-o", "DPkg::Lock::Timeout=600"])
            .args(arguments)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .output()
            .with_context(|| format!("{missing} is missing and apt-get cannot be run"))?;
        if !output.status.success() {
            bail!(
                "{missing} is missing and `apt-get {}` failed:\n{}",
                arguments.join(" "),
                String::from_utf8_lossy(&output.stderr)
            );
        }
    }
    Ok(())
}

/// Replaces `to` by a copy of `from` in one step, so that a program which has the old file
/// mapped keeps it.
pub(crate) fn copy_into_place(from: &Path, to: &Path) -> Result<()> {
    let draft = to.with_extension(format!("draft-{}", std::process::id()));
    fs::copy(from, &draft)
        .and_then(|_| fs::rename(&draft, to))
        .with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))
}
