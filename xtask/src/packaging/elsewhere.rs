//! The packages for another machine or C library hold what works there.
//!
//! npm and pip install them as they would there, and dpkg unpacks them; then a C program runs on what they brought,
//! under an emulator if need be.

use super::starters::{fresh, npm_settings};
use crate::compile::run_quietly;
use crate::install::VERSION;
use crate::platform::Platform;
use crate::target::Target;
use crate::{deb, npm, portable, wheel, workspace};
use anyhow::{Context, Result, ensure};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What a package has brought.
struct Brought {
    by: &'static str,
    command: PathBuf,
    library: PathBuf,
}

/// Makes the packages, unpacks and uses them; returns how many checks there were.
pub(super) fn check(target: Target, dir: &Path) -> Result<usize> {
    let platform = Platform::of(Some(target));
    let dir = fresh(&dir.join(target.triple()))?;
    let stage = portable::stage(platform)?;
    let mut all = vec![
        by_npm(platform, &stage, &dir)?,
        by_pip(platform, &stage, &dir)?,
    ];
    if platform.debian().is_ok() {
        all.push(by_dpkg(platform, &stage, &dir)?);
    }
    let shared = compile(target, &dir, "shared", &[&stage.join("lib/libuv.so.1")])?;
    // Debian's package has an archive, and the others are for those who run programs.
    let archive = match platform.debian() {
        Ok(debian) => dir.join("system/usr").join(debian.libdir()).join("libuv.a"),
        Err(_) => stage.join(portable::ARCHIVE),
    };
    let libraries = ["-lpthread", "-ldl", "-lrt", "-lm"].map(Path::new);
    // The unwinder, which Debian's compilers add themselves.
    let unwinder = target.is_musl().then_some(Path::new("-lunwind"));
    let mut inside = [&[archive.as_path()], &libraries[..]].concat();
    inside.extend(unwinder);
    let inside = compile(target, &dir, "static", &inside)?;
    says_its_version(target, "with libuv.a", &inside, &[], None)?;
    for brought in &all {
        let lib = brought.library.parent();
        let name = format!("with the library that {} has brought", brought.by);
        says_its_version(target, &name, &shared, &[], lib)?;
        let name = format!("by the command that {} has brought", brought.by);
        let words = ["run", "--require", "--"].map(Path::new);
        let words = [&words[..], &[&shared]].concat();
        says_its_version(target, &name, &brought.command, &words, None)?;
    }
    let mut checks = 1 + 2 * all.len();
    if target == Target::X86_64Musl {
        script_chooses_by_c_library(&dir, &shared)?;
        checks += 1;
    }
    Ok(checks)
}

fn by_npm(platform: &Platform, stage: &Path, dir: &Path) -> Result<Brought> {
    let project = fresh(&dir.join("npm-project"))?;
    let packages = npm::build(platform, stage, &fresh(&dir.join("npm"))?)?;
    let [cpu, libc] = platform.npm;
    let wanted = [
        format!("--cpu={cpu}"),
        format!("--libc={libc}"),
        "--os=linux".to_owned(),
    ];
    for (arguments, files) in [
        (["init", "--yes"], &[][..]),
        // This machine is another, which npm would not overlook in a package that is named to it.
        (["install", "--force"], &packages),
    ] {
        let mut npm = Command::new("npm");
        npm.args(arguments).args(&wanted).args(files);
        npm.current_dir(&project).envs(npm_settings(&project));
        run_quietly(npm)?;
    }
    let package = project
        .join("node_modules")
        .join(npm::package_for(platform));
    Ok(Brought {
        by: "npm",
        command: package.join("bin/blacklight"),
        library: package.join("lib/libuv.so.1"),
    })
}

fn by_pip(platform: &Platform, stage: &Path, dir: &Path) -> Result<Brought> {
    let modules = fresh(&dir.join("python-modules"))?;
    let wheel = wheel::build(platform, stage, &fresh(&dir.join("wheel"))?)?;
    let mut pip = Command::new("/usr/bin/python3");
    pip.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-index",
        "--no-cache-dir",
    ])
    .args(["--no-deps", "--only-binary=:all:", "--platform"])
    .arg(platform.wheel_tag())
    .arg("--target")
    .args([&modules, &wheel]);
    run_quietly(pip)?;
    Ok(Brought {
        by: "pip",
        command: modules.join("blacklight/bin/blacklight"),
        library: modules.join("blacklight/lib/libuv.so.1"),
    })
}

/// The packages are unpacked into one directory, as they are on a system.
fn by_dpkg(platform: &Platform, stage: &Path, dir: &Path) -> Result<Brought> {
    let debs = fresh(&dir.join("deb"))?;
    let system = fresh(&dir.join("system"))?;
    for package in deb::build(platform, stage, &debs)? {
        deb::check(platform, &package, &debs)?;
        let mut command = Command::new("dpkg");
        command.arg("-x").args([&package, &system]);
        run_quietly(command)?;
    }
    let usr = system.join("usr");
    Ok(Brought {
        by: "dpkg",
        command: usr.join("bin/blacklight"),
        library: usr.join(platform.debian()?.libdir()).join("libuv.so.1"),
    })
}

/// Compiles a program for the target, which finds the C library's dynamic linker by the name that it has there.
fn compile(target: Target, dir: &Path, name: &str, how: &[&Path]) -> Result<PathBuf> {
    let program = dir.join(format!("program-{name}"));
    let mut command = Command::new(target.compiler()?);
    command
        .args(["-O1", "-Wall", "-Wextra", "-D_GNU_SOURCE", "-I"])
        .arg(workspace::include_dir())
        .arg("-o")
        .arg(&program)
        .arg(workspace::root().join("xtask/dropin/program.c"))
        .args(how);
    if target.is_musl() {
        let system = target.system()?;
        let linker = Path::new(Platform::of(Some(target)).linker);
        let linker = dir.join(linker.file_name().context("a linker without a name")?);
        if !linker.exists() {
            symlink(system.join("libc.so"), &linker)
                .with_context(|| format!("cannot link {}", linker.display()))?;
        }
        // Zig makes static programs of those for musl.
        command
            .arg("-dynamic")
            .arg(format!("-Wl,--dynamic-linker={}", linker.display()));
    }
    run_quietly(command)?;
    Ok(program)
}

/// Runs a file, where it finds the libraries in `lib` if there are any, and checks what is said.
fn says_its_version(
    target: Target,
    what: &str,
    file: &Path,
    words: &[&Path],
    lib: Option<&Path>,
) -> Result<()> {
    let mut command = Command::new("timeout");
    command.arg(super::LIMIT);
    if target.emulator().is_some() {
        let this = std::env::current_exe().context("cannot find this program")?;
        command.arg(this).args(["emulated", target.triple(), "--"]);
    }
    command.arg(file).args(words);
    command
        .env_remove("LD_LIBRARY_PATH")
        .env_remove("LD_PRELOAD");
    if let Some(lib) = lib {
        command.env("LD_LIBRARY_PATH", lib);
    }
    let output = command.output().context("cannot run timeout")?;
    let said = String::from_utf8_lossy(&output.stdout);
    ensure!(
        output.status.success() && said.trim() == VERSION,
        "{what}: {command:?} said {said:?} ({}):\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    println!("{target}, {what}: ok");
    Ok(())
}

/// In a Node that is made for musl, the script of the npm package starts the command for musl.
fn script_chooses_by_c_library(dir: &Path, program: &Path) -> Result<()> {
    let pretending = workspace::root().join("xtask/packaging/for_musl.js");
    let script = dir.join("npm-project/node_modules/.bin/blacklight");
    let mut command = Command::new("node");
    command
        .arg("--require")
        .arg(&pretending)
        .arg(&script)
        .args(["run", "--require", "--"])
        .arg(program)
        .env("MUSL_PROGRAM", program)
        .env_remove("LD_PRELOAD");
    let output = command.output().context("cannot run node")?;
    let said = String::from_utf8_lossy(&output.stdout);
    ensure!(
        said.trim() == VERSION,
        "started by npm's script it said {said:?}:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let here = Command::new("node").arg(&script).arg("doctor").output();
    let told = String::from_utf8_lossy(&here?.stderr).into_owned();
    let wanted = format!(
        "the package {} is not installed",
        npm::package_for(Platform::this())
    );
    ensure!(
        told.contains(&wanted),
        "without pretending it said {told:?}"
    );
    println!("npm's script chooses by the C library: ok");
    Ok(())
}
