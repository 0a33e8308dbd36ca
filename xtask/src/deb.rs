//! `cargo xtask deb`: Debian packages in place of `libuv1` and `libuv1-dev`, and one with the command.
//!
//! The two have the names of Debian's own packages and a version above them, so that dpkg takes
//! them as an upgrade, everything that depends on `libuv1` is content, and
//! `apt-get install libuv1/stable` brings Debian's back. What they hold is what the packages for npm and pip hold, so they
//! serve every Debian with their C library.

use crate::compile::run_quietly;
use crate::install::{Layout, VERSION};
use crate::library::SWAP;
use crate::platform::{Debian, Platform};
use crate::portable::{self, Needs};
use crate::target::Target;
use crate::workspace;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Where the packages go.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The directory for the packages; `target/deb` if not given.
    #[arg(long)]
    output: Option<PathBuf>,
    /// The machine that they are for, if not this one.
    #[arg(long)]
    target: Option<Target>,
}

/// What Debian calls `libuv1` since Debian 13, and Ubuntu since 24.04.
const RENAMED: &str = "libuv1t64";

struct Package {
    name: &'static str,
    section: &'static str,
    depends: Vec<String>,
    description: &'static str,
    /// Which files below the library directory belong to it.
    owns: fn(&str) -> bool,
    /// The directory beside the libraries that it has, if any.
    dir: Option<&'static str>,
}

/// Runs the chore.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let output = match &options.output {
        Some(output) => output.clone(),
        None => workspace::target_subdir("deb")?,
    };
    let platform = Platform::of(options.target);
    for package in build(platform, &portable::stage(platform)?, &output)? {
        check(platform, &package, &output)?;
        println!("{}", package.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// What Debian's own version is compared with: ours is libuv 1.53.0 and something more.
fn version() -> String {
    format!("{VERSION}+blacklight{}", env!("CARGO_PKG_VERSION"))
}

fn packages(platform: &Platform) -> [Package; 3] {
    let the_library = format!("libuv1 (= {})", version());
    [
        Package {
            name: "libuv1",
            section: "libs",
            depends: Vec::new(),
            description: "asynchronous event notification library (Blacklight)\n \
                          libuv's event loop, rewritten in Rust: the shared library that programs\n \
                          linked with libuv.so.1 load.",
            owns: |file| file.starts_with("libuv.so.1"),
            dir: None,
        },
        Package {
            name: "libuv1-dev",
            section: "libdevel",
            depends: vec![the_library.clone(), "libc6-dev".to_owned()],
            description: "asynchronous event notification library, headers (Blacklight)\n \
                          libuv's event loop, rewritten in Rust: headers, the static library, and\n \
                          files for pkg-config and CMake.",
            owns: |file| !file.starts_with("libuv.so.1") && file != SWAP,
            dir: Some("include"),
        },
        Package {
            name: "blacklight",
            section: "utils",
            depends: vec![the_library],
            description: match platform.has_swap() {
                true => {
                    "runs programs on Blacklight's event loop\n \
                     The blacklight command, which has programs run on libuv's event loop\n \
                     rewritten in Rust, also those that carry a libuv inside."
                }
                false => {
                    "runs programs on Blacklight's event loop\n \
                     The blacklight command, which has programs run on libuv's event loop\n \
                     rewritten in Rust, except those that carry a libuv inside."
                }
            },
            owns: |file| file == SWAP,
            dir: Some("bin"),
        },
    ]
}

/// Makes the packages from the files in `stage`; returns their paths.
pub(crate) fn build(platform: &Platform, stage: &Path, output: &Path) -> Result<Vec<PathBuf>> {
    let debian = platform.debian()?;
    let (lib, command) = (stage.join("lib"), stage.join("bin/blacklight"));
    let staging = output.join("staging");
    if staging.exists() {
        fs::remove_dir_all(&staging)
            .with_context(|| format!("cannot clear {}", staging.display()))?;
    }
    let all = Layout {
        root: staging.join("all/usr"),
        libdir: debian.libdir(),
    };
    all.install(platform, &lib, &command)?;
    let built = packages(platform)
        .iter()
        .map(|package| build_one(package, debian, &all, &staging, output))
        .collect::<Result<Vec<_>>>()?;
    fs::remove_dir_all(&staging).with_context(|| format!("cannot clear {}", staging.display()))?;
    Ok(built)
}

fn build_one(
    package: &Package,
    debian: Debian,
    all: &Layout,
    staging: &Path,
    output: &Path,
) -> Result<PathBuf> {
    let root = staging.join(package.name);
    let lib = root.join("usr").join(debian.libdir());
    let docs = root.join("usr/share/doc").join(package.name);
    for dir in [&lib, &docs, &root.join("DEBIAN")] {
        fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    }
    for entry in fs::read_dir(all.lib())?.flatten() {
        if (package.owns)(&entry.file_name().to_string_lossy()) {
            fs::rename(entry.path(), lib.join(entry.file_name()))?;
        }
    }
    if let Some(dir) = package.dir {
        fs::rename(all.root.join(dir), root.join("usr").join(dir))?;
    }
    for license in ["LICENSE-MIT", "LICENSE-APACHE"] {
        workspace::copy_into_place(&workspace::root().join(license), &docs.join(license))?;
    }
    strip(debian, &lib)?;
    write_control(package, debian, &root)?;
    let architecture = debian.architecture;
    let file = output.join(format!("{}_{}_{architecture}.deb", package.name, version()));
    let mut command = Command::new("dpkg-deb");
    command
        .args(["--root-owner-group", "-Zxz", "--build"])
        .arg(&root)
        .arg(&file);
    run_quietly(command)?;
    Ok(file)
}

/// Debian's libraries carry no symbols but those that programs bind to.
fn strip(debian: Debian, lib: &Path) -> Result<()> {
    let strip = format!("{}-strip", debian.triplet);
    let package = format!("binutils-{}", debian.triplet.replace('_', "-"));
    workspace::require_tool(&strip, &package)?;
    for (file, what) in [
        ("libuv.so.1.0.0", "--strip-unneeded"),
        (SWAP, "--strip-unneeded"),
        ("../../bin/blacklight", "--strip-unneeded"),
        ("libuv.a", "--strip-debug"),
    ] {
        let path = lib.join(file);
        if path.exists() {
            let mut command = Command::new(&strip);
            command.arg(what).arg(path);
            run_quietly(command)?;
        }
    }
    Ok(())
}

/// The programs and libraries that a package may have.
fn loaded(debian: Debian) -> [PathBuf; 3] {
    let lib = Path::new("usr").join(debian.libdir());
    [
        "usr/bin/blacklight".into(),
        lib.join("libuv.so.1.0.0"),
        lib.join(SWAP),
    ]
}

/// The C library that the files below `root` need, as Debian writes it; none if there are no programs and
/// libraries among them.
fn c_library(debian: Debian, root: &Path) -> Result<Option<String>> {
    let mut oldest: Option<Vec<u32>> = None;
    for file in loaded(debian).map(|file| root.join(file)) {
        if file.exists() {
            oldest = oldest.max(Some(Needs::read(&file)?.glibc()));
        }
    }
    let dotted = |numbers: Vec<u32>| {
        let parts: Vec<String> = numbers.iter().map(u32::to_string).collect();
        format!("libc6 (>= {})", parts.join("."))
    };
    Ok(oldest.map(dotted))
}

/// Has dpkg remove a package of another name, and content those that depend on it.
fn takes_the_place_of(other: &str) -> String {
    format!(
        "Provides: {other} (= {version})\n\
         Conflicts: {other}\n\
         Replaces: {other}\n",
        version = version()
    )
}

fn write_control(package: &Package, debian: Debian, root: &Path) -> Result<()> {
    let mut depends = package.depends.clone();
    depends.extend(c_library(debian, root)?);
    let control = format!(
        "Package: {name}\n\
         Source: blacklight\n\
         Version: {version}\n\
         Architecture: {architecture}\n\
         Multi-Arch: {multi_arch}\n\
         Maintainer: The Blacklight developers <blacklight@localhost>\n\
         Section: {section}\n\
         Priority: optional\n\
         Depends: {depends}\n\
         {renamed}\
         Description: {description}\n",
        name = package.name,
        architecture = debian.architecture,
        multi_arch = if package.dir == Some("bin") {
            "foreign"
        } else {
            "same"
        },
        version = version(),
        section = package.section,
        depends = depends.join(", "),
        renamed = match package.name {
            "libuv1" => takes_the_place_of(RENAMED),
            _ => String::new(),
        },
        description = package.description,
    );
    let dir = root.join("DEBIAN");
    fs::write(dir.join("control"), control).context("cannot write the control file")?;
    if package.name != "libuv1" {
        return Ok(());
    }
    // The names in the linker's cache follow the package, and dependents may need only this much.
    fs::write(dir.join("triggers"), "activate-noawait ldconfig\n")?;
    fs::write(dir.join("shlibs"), "libuv 1 libuv1 (>= 1.53.0)\n")?;
    for file in ["triggers", "shlibs"] {
        fs::set_permissions(dir.join(file), fs::Permissions::from_mode(0o644))?;
    }
    Ok(())
}

/// Installs the packages on a copy of this machine that is gone afterwards, and runs a program
/// that is built with them, and one of Debian's, there; what the former says.
pub(crate) fn try_install(packages: &[PathBuf], scratch: &Path) -> Result<String> {
    workspace::require_tool("unshare", "util-linux")?;
    fs::create_dir_all(scratch).with_context(|| format!("cannot make {}", scratch.display()))?;
    let root = workspace::root();
    let output = Command::new("timeout")
        .args(["120", "unshare", "--mount", "sh"])
        .arg(root.join("xtask/packaging/install.sh"))
        .arg(scratch)
        .arg(root.join("xtask/dropin/program.c"))
        .args(packages)
        .output()
        .context("cannot run unshare")?;
    ensure!(
        output.status.success(),
        "dpkg does not install the packages, or they do not work:\n{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// A package depends on a C library that has every symbol its files need, which is no newer than what the packages for
/// npm and pip need, and on no other library.
fn ensure_c_library_is_named(platform: &Platform, package: &Path, root: &Path) -> Result<()> {
    let debian = platform.debian()?;
    for file in loaded(debian).map(|file| root.join(file)) {
        if file.exists() {
            Needs::read(&file)?
                .check(platform)
                .with_context(|| format!("{} is not for every Debian", file.display()))?;
        }
    }
    let mut command = Command::new("dpkg-deb");
    command.arg("--field").arg(package).arg("Depends");
    let output = command.output().context("cannot run dpkg-deb")?;
    let depends = String::from_utf8_lossy(&output.stdout);
    let needed = c_library(debian, root)?.unwrap_or_default();
    ensure!(
        depends.contains(&needed),
        "{} needs {needed} and depends on {depends}",
        package.display()
    );
    Ok(())
}

/// Checks that dpkg accepts a package, would take it as an upgrade, and that what belongs
/// into it is there. Returns the directory that it was unpacked into.
pub(crate) fn check(platform: &Platform, package: &Path, dir: &Path) -> Result<PathBuf> {
    let debian = platform.debian()?;
    let mut command = Command::new("dpkg");
    command.arg("--info").arg(package);
    run_quietly(command)?;
    let mut command = Command::new("dpkg");
    let debians_own = "1.44.2-1+deb12u1";
    command.args(["--compare-versions", &version(), "gt", debians_own]);
    run_quietly(command)?;
    let name = package.file_name().unwrap_or_default().to_string_lossy();
    let root = dir.join("unpacked").join(&*name);
    fs::create_dir_all(&root).with_context(|| format!("cannot make {}", root.display()))?;
    let mut command = Command::new("dpkg");
    command.arg("-x").arg(package).arg(&root);
    run_quietly(command)?;
    ensure_c_library_is_named(platform, package, &root)?;
    let lib = root.join("usr").join(debian.libdir());
    let wanted = if name.starts_with("blacklight_") {
        let swap = platform.has_swap().then(|| lib.join(SWAP));
        swap.into_iter()
            .chain([root.join("usr/bin/blacklight")])
            .collect()
    } else if name.starts_with("libuv1-dev_") {
        vec![
            root.join("usr/include/uv.h"),
            root.join("usr/include/uv/unix.h"),
            lib.join("libuv.a"),
            lib.join("pkgconfig/libuv.pc"),
            lib.join("cmake/libuv/libuvConfig.cmake"),
        ]
    } else {
        vec![lib.join("libuv.so.1"), lib.join("libuv.so.1.0.0")]
    };
    for file in wanted {
        ensure!(
            file.exists(),
            "{} lacks {}",
            package.display(),
            file.display()
        );
    }
    Ok(root)
}
