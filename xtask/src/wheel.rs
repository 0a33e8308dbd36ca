//! `cargo xtask wheel`: the command with its libraries as a Python wheel.
//!
//! The wheel has a module, which `python -m` and a console script run and which becomes the command.
//! It is for any Python 3 on a system with glibc 2.28 or later, or with musl 1.2.

use crate::compile::run_quietly;
use crate::platform::Platform;
use crate::portable;
use crate::target::Target;
use crate::workspace;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// What people install; the name `blacklight` belongs to somebody else.
const NAME: &str = "blacklight-uv";

/// The module.
const MODULE: &str = "blacklight";

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Where the wheel goes.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The directory for the wheel; `target/wheel` if not given.
    #[arg(long)]
    output: Option<PathBuf>,
    /// The machine and the C library that it is for, if not those of this machine.
    #[arg(long)]
    target: Option<Target>,
}

/// Runs the chore.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let output = match &options.output {
        Some(output) => output.clone(),
        None => workspace::target_subdir("wheel")?,
    };
    let platform = Platform::of(options.target);
    let wheel = build(platform, &portable::stage(platform)?, &output)?;
    println!("{}", wheel.display());
    Ok(ExitCode::SUCCESS)
}

/// Makes the wheel from the files in `stage`.
pub(crate) fn build(platform: &Platform, stage: &Path, output: &Path) -> Result<PathBuf> {
    // Python writes versions with more parts in another way than Cargo does.
    let is_plain = VERSION.split('.').all(|part| part.parse::<u32>().is_ok());
    ensure!(is_plain, "{VERSION} is no version for a wheel");
    workspace::require_tool("python3", "python3")?;
    let root = output.join("staging");
    if root.exists() {
        fs::remove_dir_all(&root).with_context(|| format!("cannot clear {}", root.display()))?;
    }
    let source = workspace::root();
    let module = root.join(MODULE);
    for file in ["__init__.py", "__main__.py"] {
        let from = source.join("xtask/packaging/wheel").join(file);
        add(&from, &module.join(file), 0o644)?;
    }
    for file in portable::files(platform) {
        add(&stage.join(file), &module.join(file), 0o755)?;
    }
    let distribution = format!("{}-{VERSION}", NAME.replace('-', "_"));
    let tag = format!("py3-none-{}", platform.wheel_tag());
    let info = root.join(format!("{distribution}.dist-info"));
    for license in ["LICENSE-MIT", "LICENSE-APACHE"] {
        add(
            &source.join(license),
            &info.join("licenses").join(license),
            0o644,
        )?;
    }
    for (file, text) in [
        ("METADATA", metadata(platform)?),
        (
            "WHEEL",
            format!(
                "Wheel-Version: 1.0\nGenerator: cargo xtask wheel\n\
                 Root-Is-Purelib: false\nTag: {tag}\n"
            ),
        ),
        (
            "entry_points.txt",
            format!("[console_scripts]\nblacklight = {MODULE}.__main__:main\n"),
        ),
    ] {
        let path = info.join(file);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    let wheel = output.join(format!("{distribution}-{tag}.whl"));
    let mut python = Command::new("/usr/bin/python3");
    python
        .arg(source.join("xtask/packaging/wheel/pack.py"))
        .arg(&root)
        .arg(&wheel);
    run_quietly(python)?;
    fs::remove_dir_all(&root).with_context(|| format!("cannot clear {}", root.display()))?;
    Ok(wheel)
}

/// What the package says of itself, and the text that its page shows.
fn metadata(platform: &Platform) -> Result<String> {
    let readme = workspace::root().join("crates/cli/README.md");
    let readme =
        fs::read_to_string(&readme).with_context(|| format!("cannot read {}", readme.display()))?;
    let repository = match env!("CARGO_PKG_REPOSITORY") {
        "" => String::new(),
        url => format!("Project-URL: Repository, {url}\n"),
    };
    let license = env!("CARGO_PKG_LICENSE");
    let exception = match platform.has_swap() {
        true => String::new(),
        false => format!(
            "This is the package for {}: it does not replace a libuv inside a program, as those for glibc on \
             x86-64 and ARM64 do.\n\n",
            platform.label
        ),
    };
    Ok(format!(
        "Metadata-Version: 2.4\n\
         Name: {NAME}\n\
         Version: {VERSION}\n\
         Summary: Runs programs on Blacklight, libuv's event loop rewritten in Rust.\n\
         Keywords: libuv,uvloop,event-loop,performance\n\
         License-Expression: {license}\n\
         License-File: LICENSE-MIT\n\
         License-File: LICENSE-APACHE\n\
         {repository}\
         Classifier: Operating System :: POSIX :: Linux\n\
         Classifier: Programming Language :: Rust\n\
         Requires-Python: >=3.8\n\
         Description-Content-Type: text/markdown\n\n\
         {exception}{readme}"
    ))
}

fn add(from: &Path, to: &Path, mode: u32) -> Result<()> {
    let dir = to.parent().context("a file without a directory")?;
    fs::create_dir_all(dir)
        .and_then(|()| fs::copy(from, to))
        .and_then(|_| fs::set_permissions(to, fs::Permissions::from_mode(mode)))
        .with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))
}
