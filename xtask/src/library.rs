//! The library under test: ours, built and staged; the original; or any `libuv.so` by path.

use crate::original::Original;
use crate::target::{Purpose, Target};
use crate::workspace;
use anyhow::{Context, Result, ensure};
use std::convert::Infallible;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// What takes the place of a libuv that a program carries inside; it lies beside our library.
pub(crate) const SWAP: &str = "libblacklight_swap.so";

/// Which library a chore runs its programs with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Library {
    Ours,
    Original,
    /// A shared library, a directory with a `libuv.so.1` in it, or a checkout of this project,
    /// which is built.
    At(PathBuf),
}

impl FromStr for Library {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Library, Infallible> {
        Ok(match text {
            "ours" => Library::Ours,
            "original" => Library::Original,
            path => Library::At(PathBuf::from(path)),
        })
    }
}

impl fmt::Display for Library {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Library::Ours => formatter.write_str("ours"),
            Library::Original => formatter.write_str("original"),
            Library::At(path) => write!(formatter, "{}", path.display()),
        }
    }
}

impl Library {
    /// Builds the library if it is one of the two we build; returns the file.
    pub(crate) fn build(&self, original: &Original) -> Result<PathBuf> {
        match self {
            Library::Ours => match original.target() {
                None => Ok(stage_ours()?.join("libuv.so.1")),
                Some(target) => Ok(stage_for(target)?.join("libuv.so.1")),
            },
            Library::Original => original.library(),
            Library::At(path) => {
                let file = if path.join("crates/uv/Cargo.toml").is_file() {
                    build_checkout(path)?
                } else if path.is_dir() {
                    path.join("libuv.so.1")
                } else {
                    path.clone()
                };
                ensure!(file.is_file(), "there is no library at {}", file.display());
                Ok(file)
            }
        }
    }
}

/// Builds the library of another checkout of this project, in our target directory: nothing is
/// written into the checkout. Returns the file.
fn build_checkout(checkout: &Path) -> Result<PathBuf> {
    let checkout = checkout
        .canonicalize()
        .with_context(|| format!("cannot find {}", checkout.display()))?;
    let name = checkout.to_string_lossy().replace('/', "-");
    let target = workspace::target_subdir(Path::new("checkouts").join(name.trim_matches('-')))?;
    build_release(&checkout, &target)?;
    Ok(target.join("release/libuv.so"))
}

fn build_release(checkout: &Path, target: &Path) -> Result<()> {
    let mut packages = vec!["blacklight-uv"];
    // Older checkouts have no swap.
    if checkout.join("crates/swap").is_dir() {
        packages.push("blacklight-swap");
    }
    let status = workspace::cargo()
        .args(["build", "--quiet", "--release"])
        .args(packages.iter().flat_map(|name| ["--package", name]))
        .arg("--target-dir")
        .arg(target)
        .current_dir(checkout)
        .status()
        .context("cannot run cargo build")?;
    let name = checkout.display();
    ensure!(status.success(), "the library in {name} does not build");
    Ok(())
}

/// Builds our library and lays it out in `target/stage/lib` as it would be installed.
pub(crate) fn stage_ours() -> Result<PathBuf> {
    build_release(workspace::root(), workspace::target_dir()?)?;
    let built = workspace::target_dir()?.join("release");
    let stage = workspace::target_subdir("stage/lib")?;
    workspace::copy_into_place(&built.join("libuv.so"), &stage.join("libuv.so.1"))?;
    workspace::copy_into_place(&built.join("libuv.a"), &stage.join("libuv.a"))?;
    workspace::copy_into_place(&built.join(SWAP), &stage.join(SWAP))?;
    link_development_name(&stage)?;
    Ok(stage)
}

/// Builds our library for a target and lays it out as [`stage_ours`] does.
pub(crate) fn stage_for(target: Target) -> Result<PathBuf> {
    let mut packages = vec!["blacklight-uv"];
    packages.extend(target.has_swap().then_some("blacklight-swap"));
    let status = target
        .cargo("build", Purpose::Library)?
        .arg("--release")
        .args(packages.iter().flat_map(|name| ["--package", name]))
        .args(target.for_shared_library())
        .status()
        .context("cannot run the nightly cargo")?;
    ensure!(status.success(), "the library does not build for {target}");
    let built = target.built(Purpose::Library)?;
    let stage = target.dir()?.join("stage/lib");
    fs::create_dir_all(&stage).with_context(|| format!("cannot make {}", stage.display()))?;
    workspace::copy_into_place(&built.join("libuv.so"), &stage.join("libuv.so.1"))?;
    workspace::copy_into_place(&built.join("libuv.a"), &stage.join("libuv.a"))?;
    if target.has_swap() {
        workspace::copy_into_place(&built.join(SWAP), &stage.join(SWAP))?;
    }
    link_development_name(&stage)?;
    Ok(stage)
}

/// Builds the `blacklight` command for a target, and lays it out beside the library; returns the
/// file. For musl it is static, and runs on any Linux.
pub(crate) fn command_for(target: Target) -> Result<PathBuf> {
    let mut command = target.cargo("rustc", Purpose::Program)?;
    command.args(["--release", "--package", "blacklight-cli"]);
    if target.is_musl() {
        // The toolchain has no start files for a standard library that was built here; Zig has.
        command.args(["--", "-Clink-self-contained=no"]);
    }
    let status = command.status().context("cannot run the nightly cargo")?;
    ensure!(status.success(), "the command does not build for {target}");
    let dir = target.dir()?.join("stage/bin");
    fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
    let file = dir.join("blacklight");
    workspace::copy_into_place(&target.built(Purpose::Program)?.join("blacklight"), &file)?;
    Ok(file)
}

/// Build the library and the command for another machine or C library.
#[derive(clap::Args)]
pub(crate) struct Options {
    #[arg(long)]
    target: Target,
}

/// Runs the chore.
pub(crate) fn run(options: &Options) -> Result<()> {
    println!(
        "{}",
        stage_for(options.target)?.join("libuv.so.1").display()
    );
    println!("{}", command_for(options.target)?.display());
    Ok(())
}

/// Builds the `blacklight` command, to be tried or to be installed; returns the file.
pub(crate) fn command(profile: &str) -> Result<PathBuf> {
    let status = workspace::cargo()
        .args([
            "build",
            "--quiet",
            "--package",
            "blacklight-cli",
            "--profile",
        ])
        .arg(profile)
        .current_dir(workspace::root())
        .status()
        .context("cannot run cargo build")?;
    ensure!(status.success(), "the command does not build");
    let dir = if profile == "dev" { "debug" } else { profile };
    Ok(workspace::target_dir()?.join(dir).join("blacklight"))
}

/// Copies `library` into a directory of its own, so that a build during a long run does not
/// change what is being judged.
pub(crate) fn snapshot(library: &Path, dir: &Path) -> Result<()> {
    fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    workspace::copy_into_place(library, &dir.join("libuv.so.1"))?;
    let swap = library.with_file_name(SWAP);
    if swap.is_file() {
        workspace::copy_into_place(&swap, &dir.join(SWAP))?;
    }
    link_development_name(dir)
}

fn link_development_name(dir: &Path) -> Result<()> {
    let name = dir.join("libuv.so");
    if name.is_symlink() {
        return Ok(());
    }
    std::os::unix::fs::symlink("libuv.so.1", &name)
        .with_context(|| format!("cannot link {}", name.display()))
}
