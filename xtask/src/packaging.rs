//! `cargo xtask packaging`: what `install`, `deb`, `npm` and `wheel` make is what people can use.
//!
//! A C program is built by what `pkg-config` says, shared and static, and a C++ project with
//! CMake's `find_package(libuv)`; each is run. They are built against the installation after
//! it was moved, because nothing in it may name the place where it was made. The Debian packages
//! are installed on a copy of this machine, and used there. What npm and pip install is in
//! [`starters`], and packages for other machines are in [`elsewhere`].

mod elsewhere;
mod starters;

use crate::compile::run_quietly;
use crate::install::{Layout, VERSION};
use crate::library::SWAP;
use crate::platform::Platform;
use crate::target::Target;
use crate::{deb, portable, workspace};
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// How many seconds a program may take on a machine that is busy with other things.
const LIMIT: &str = "300";

/// Whose packages to try.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Try the packages for another machine or C library, under an emulator if need be.
    #[arg(long)]
    target: Option<Target>,
}

/// Runs the chore.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    if let Some(target) = options.target {
        workspace::require_tool("npm", "npm")?;
        workspace::require_tool("pip", "python3-pip")?;
        let passed = elsewhere::check(target, &workspace::target_subdir("packaging")?)?;
        println!("{passed} passed, 0 failed");
        return Ok(ExitCode::SUCCESS);
    }
    for (tool, package) in [
        ("pkg-config", "pkg-config"),
        ("cmake", "cmake"),
        ("g++", "g++"),
    ] {
        workspace::require_tool(tool, package)?;
    }
    let dir = workspace::target_subdir("packaging")?;
    let mut layout = Layout {
        root: dir.join("made-here"),
        libdir: "lib".into(),
    };
    let moved = dir.join("prefix");
    for stale in [&layout.root, &moved] {
        if stale.exists() {
            fs::remove_dir_all(stale)
                .with_context(|| format!("cannot clear {}", stale.display()))?;
        }
    }
    layout.install_what_is_built_here()?;
    fs::rename(&layout.root, &moved).context("cannot move the installation")?;
    layout.root = moved;
    installed_command_finds_its_libraries(&layout)?;
    for package in ["libuv", "libuv-static"] {
        let program = with_pkg_config(package, &layout, &dir)?;
        let lib = (package == "libuv").then(|| layout.lib());
        report(
            &format!("C, pkg-config {package}"),
            &program,
            lib.as_deref(),
        )?;
    }
    let build = with_cmake(&layout, &dir)?;
    for name in ["shared", "static"] {
        // CMake leaves the way to the library in the program.
        report(
            &format!("C++, find_package, {name}"),
            &build.join(name),
            None,
        )?;
    }
    let platform = Platform::this();
    let packages = deb::build(platform, &portable::stage(platform)?, &dir.join("deb"))?;
    for package in &packages {
        deb::check(platform, package, &dir.join("deb"))?;
        println!("{}: ok", package.display());
    }
    let said = deb::try_install(&packages, &dir.join("installed"))?;
    ensure!(said == VERSION, "installed, the program says {said:?}");
    println!("installed by dpkg: ok");
    let started = starters::check(&dir)?;
    println!("{} passed, 0 failed", 6 + packages.len() + started);
    Ok(ExitCode::SUCCESS)
}

/// The installed command preloads the library and the swap that were installed with it.
fn installed_command_finds_its_libraries(layout: &Layout) -> Result<()> {
    let output = Command::new(layout.root.join("bin/blacklight"))
        .args(["run", "--", "printenv", "LD_PRELOAD"])
        .env_remove("LD_PRELOAD")
        .output()
        .context("cannot run the installed command")?;
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let lib = layout
        .lib()
        .canonicalize()
        .context("nothing is installed")?;
    let (library, swap) = (lib.join("libuv.so.1.0.0"), lib.join(SWAP));
    let wanted = format!("{}:{}", library.display(), swap.display());
    ensure!(said == wanted, "the installed command preloads {said:?}");
    println!("the installed command: ok");
    Ok(())
}

/// Runs a program, on the libraries in `lib` if there are any, and checks what it says.
fn report(what: &str, program: &Path, lib: Option<&Path>) -> Result<()> {
    let mut command = Command::new("timeout");
    command
        .arg(LIMIT)
        .arg(program)
        .env_remove("LD_LIBRARY_PATH");
    if let Some(lib) = lib {
        command.env("LD_LIBRARY_PATH", lib);
    }
    let output = command.output().context("cannot run timeout")?;
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    ensure!(
        output.status.success() && said == VERSION,
        "{what}: {} said {said:?} ({}):\n{}",
        program.display(),
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    println!("{what}: ok");
    Ok(())
}

fn with_pkg_config(package: &str, layout: &Layout, dir: &Path) -> Result<PathBuf> {
    let output = Command::new("pkg-config")
        .args(["--cflags", "--libs", package])
        .env("PKG_CONFIG_LIBDIR", layout.lib().join("pkgconfig"))
        .output()
        .context("cannot run pkg-config")?;
    ensure!(
        output.status.success(),
        "pkg-config does not find {package}:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let program = dir.join(format!("program-{package}"));
    let mut command = Command::new("gcc");
    command
        .args(["-O1", "-Wall", "-Wextra", "-D_GNU_SOURCE", "-o"])
        .arg(&program)
        .arg(workspace::root().join("xtask/dropin/program.c"))
        .args(String::from_utf8_lossy(&output.stdout).split_whitespace())
        .arg("-lpthread");
    run_quietly(command)?;
    Ok(program)
}

fn with_cmake(layout: &Layout, dir: &Path) -> Result<PathBuf> {
    let build = dir.join("project");
    if build.exists() {
        fs::remove_dir_all(&build).with_context(|| format!("cannot clear {}", build.display()))?;
    }
    let mut command = Command::new("cmake");
    command
        .arg("-S")
        .arg(workspace::root().join("xtask/packaging/project"))
        .arg("-B")
        .arg(&build)
        .arg(format!("-DCMAKE_PREFIX_PATH={}", layout.root.display()))
        .arg("-DCMAKE_FIND_USE_CMAKE_SYSTEM_PATH=OFF");
    run_quietly(command)?;
    let mut command = Command::new("cmake");
    command.arg("--build").arg(&build);
    run_quietly(command)?;
    Ok(build)
}
