//! Machines and C libraries other than this one's: what builds for them, and what runs what was built.
//!
//! The standard library is compiled with ours, by a nightly toolchain, because the stable one has it
//! for this machine only. Debian's cross compilers build for glibc; Zig, from PyPI, for musl.
//! Programs for another processor run under QEMU's user mode, in a sandbox ([`crate::emulation`]).

use crate::compile::run_quietly;
use crate::emulation::Emulator;
use crate::portable::{self, GLIBC};
use crate::sandbox::init::HOUSE;
use crate::sanitize::{has_std_source, nightly, nightly_sysroot};
use crate::workspace;
use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use std::fmt;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What to build for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Target {
    #[value(name = "aarch64-unknown-linux-gnu")]
    Aarch64Gnu,
    #[value(name = "riscv64gc-unknown-linux-gnu")]
    Riscv64Gnu,
    #[value(name = "x86_64-unknown-linux-musl")]
    X86_64Musl,
    #[value(name = "aarch64-unknown-linux-musl")]
    Aarch64Musl,
}

/// What is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The library.
    Library,
    /// The command, or tests: static where the target's programs are.
    Program,
    /// Library and command for systems with an old glibc, whose symbols Zig knows.
    Portable,
}

/// A processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Processor {
    X86_64,
    Aarch64,
    Riscv64,
}

/// The name of the directory in a sandbox that the target's C library lies in.
pub(crate) const SYSTEM_ROOM: &str = "system";

impl Target {
    /// Its name for Rust.
    pub(crate) const fn triple(self) -> &'static str {
        match self {
            Target::Aarch64Gnu => "aarch64-unknown-linux-gnu",
            Target::Riscv64Gnu => "riscv64gc-unknown-linux-gnu",
            Target::X86_64Musl => "x86_64-unknown-linux-musl",
            Target::Aarch64Musl => "aarch64-unknown-linux-musl",
        }
    }

    pub(crate) fn processor(self) -> Processor {
        match self {
            Target::Aarch64Gnu | Target::Aarch64Musl => Processor::Aarch64,
            Target::Riscv64Gnu => Processor::Riscv64,
            Target::X86_64Musl => Processor::X86_64,
        }
    }

    pub(crate) fn is_musl(self) -> bool {
        matches!(self, Target::X86_64Musl | Target::Aarch64Musl)
    }

    /// Whether there is a swap for it.
    pub(crate) fn has_swap(self) -> bool {
        self == Target::Aarch64Gnu
    }

    /// What runs its programs; `None` if this machine does.
    pub(crate) fn emulator(self) -> Option<Emulator> {
        match self.processor() {
            Processor::X86_64 => None,
            Processor::Aarch64 => Some(Emulator {
                program: "qemu-aarch64-static",
                machine: 183,
            }),
            Processor::Riscv64 => Some(Emulator {
                program: "qemu-riscv64-static",
                machine: 243,
            }),
        }
    }

    /// The C compiler, installed if need be.
    pub(crate) fn compiler(self) -> Result<String> {
        let (prefix, c_library) = match self {
            Target::Aarch64Gnu => ("aarch64-linux-gnu", "libc6-dev-arm64-cross"),
            Target::Riscv64Gnu => ("riscv64-linux-gnu", "libc6-dev-riscv64-cross"),
            Target::X86_64Musl | Target::Aarch64Musl => return self.zig_compiler(),
        };
        let compiler = format!("{prefix}-gcc");
        workspace::require_tool(&compiler, &format!("gcc-{prefix}"))?;
        workspace::require_file(&format!("/usr/{prefix}/include/stdio.h"), c_library)?;
        Ok(compiler)
    }

    /// Writes a script that calls Zig for this target, with the name that `build.rs` knows Zig by.
    fn zig_compiler(self) -> Result<String> {
        let zig = portable::tools()?.join("ziglang/zig");
        let dir = self.dir()?;
        let script = dir.join("zig-cc");
        let name = self.triple().replace("-unknown", "");
        let caches = workspace::target_subdir("portable/zig")?;
        let text = format!(
            "#!/bin/sh\nexport ZIG_GLOBAL_CACHE_DIR='{0}' ZIG_LOCAL_CACHE_DIR='{0}'\n\
             exec '{1}' cc -target {name} \"$@\"\n",
            caches.display(),
            zig.display()
        );
        if !fs::read_to_string(&script).is_ok_and(|old| old == text) {
            let draft = script.with_extension(format!("draft-{}", std::process::id()));
            fs::write(&draft, text)
                .and_then(|()| fs::set_permissions(&draft, fs::Permissions::from_mode(0o755)))
                .and_then(|()| fs::rename(&draft, &script))
                .with_context(|| format!("cannot write {}", script.display()))?;
        }
        Ok(script.display().to_string())
    }

    /// Flags for programs that are to run in a sandbox: where the dynamic linker and the C library
    /// are there.
    pub(crate) fn program_flags(self) -> Vec<String> {
        let system = format!("{HOUSE}/{SYSTEM_ROOM}");
        let mut flags = vec![
            format!("-Wl,--dynamic-linker={system}/{}", self.dynamic_linker()),
            format!("-Wl,-rpath,{system}"),
        ];
        if self.is_musl() {
            // Zig makes static programs of those for musl.
            flags.push("-dynamic".to_owned());
        }
        flags
    }

    /// The file name of the dynamic linker.
    fn dynamic_linker(self) -> &'static str {
        match self {
            Target::Aarch64Gnu => "ld-linux-aarch64.so.1",
            Target::Riscv64Gnu => "ld-linux-riscv64-lp64d.so.1",
            Target::X86_64Musl | Target::Aarch64Musl => "libc.so",
        }
    }

    /// The directory that an emulator looks for a program's dynamic linker and libraries in. Programs
    /// that Cargo builds for musl are static.
    pub(crate) fn root(self) -> Option<&'static Path> {
        match self {
            Target::Aarch64Gnu => Some(Path::new("/usr/aarch64-linux-gnu")),
            Target::Riscv64Gnu => Some(Path::new("/usr/riscv64-linux-gnu")),
            Target::X86_64Musl | Target::Aarch64Musl => None,
        }
    }

    /// The flag for programs whose dynamic linker is run by its name, which an emulator does not map.
    pub(crate) fn linker_flag(self) -> Option<String> {
        let root = self.root()?.display();
        let linker = self.dynamic_linker();
        Some(format!("-Wl,--dynamic-linker={root}/lib/{linker}"))
    }

    /// A directory with the C library and its dynamic linker, to appear as `SYSTEM`.
    pub(crate) fn system(self) -> Result<PathBuf> {
        self.compiler()?;
        match self {
            Target::Aarch64Gnu => Ok("/usr/aarch64-linux-gnu/lib".into()),
            Target::Riscv64Gnu => Ok("/usr/riscv64-linux-gnu/lib".into()),
            Target::X86_64Musl => Ok(self.unpack("musl", "amd64")?.join("lib/x86_64-linux-musl")),
            Target::Aarch64Musl => Ok(self.unpack("musl", "arm64")?.join("lib/aarch64-linux-musl")),
        }
    }

    /// Has apt fetch a package of another architecture, and unpacks it. Lists of packages and all
    /// else are kept apart from the system's, which stays of one architecture.
    fn unpack(self, package: &str, architecture: &str) -> Result<PathBuf> {
        let root = self.dir()?.join(package);
        if root.exists() {
            return Ok(root);
        }
        let draft = root.with_extension(format!("draft-{}", std::process::id()));
        let apt = draft.join("apt");
        for dir in ["lists/partial", "archives/partial"] {
            fs::create_dir_all(apt.join(dir)).context("cannot make a directory for apt")?;
        }
        for words in [
            ["update", ""],
            ["download", &format!("{package}:{architecture}")],
        ] {
            let mut command = Command::new("apt-get");
            command
                .args(["-qq", "-o", &format!("APT::Architectures::={architecture}")])
                .args([
                    "-o",
                    &format!("Dir::State::Lists={}", apt.join("lists").display()),
                ])
                .args(["-o", &format!("Dir::Cache={}", apt.display())])
                .args(words.iter().filter(|word| !word.is_empty()))
                .current_dir(&draft);
            run_quietly(command)?;
        }
        let entries = fs::read_dir(&draft).context("cannot list what apt has fetched")?;
        let mut files = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let file = files
            .find(|path| path.extension().is_some_and(|end| end == "deb"))
            .with_context(|| format!("apt has fetched no {package}"))?;
        let mut command = Command::new("dpkg");
        command.arg("-x").arg(&file).arg(&draft);
        run_quietly(command)?;
        fs::remove_dir_all(&apt)
            .and_then(|()| fs::remove_file(&file))
            .and_then(|()| fs::rename(&draft, &root))
            .with_context(|| format!("cannot make {}", root.display()))?;
        Ok(root)
    }

    /// Where files that belong to the target lie.
    pub(crate) fn dir(self) -> Result<PathBuf> {
        workspace::target_subdir(Path::new("cross").join(self.triple()))
    }

    /// Whether there is a compiler that can build the standard library.
    pub(crate) fn can_be_built_for() -> bool {
        let version = nightly().arg("--version").output();
        version.is_ok_and(|version| version.status.success()) && has_std_source()
    }

    /// A command of Cargo's that builds for the target. What is built with other flags has a
    /// directory of its own, or each build would undo the other.
    pub(crate) fn cargo(self, subcommand: &str, purpose: Purpose) -> Result<Command> {
        ensure!(
            Target::can_be_built_for(),
            "building for {self} needs a nightly toolchain with the component rust-src"
        );
        let variable = format!(
            "CARGO_TARGET_{}",
            self.triple().to_uppercase().replace('-', "_")
        );
        let mut command = nightly();
        let by_zig = self.is_musl() || purpose == Purpose::Portable;
        if by_zig {
            let tools = portable::tools()?;
            // The wrapper leaves out the start files of the toolchain, which Zig brings itself.
            command = Command::new(tools.join("bin/cargo-zigbuild"));
            for variable in ["CARGO", "RUSTC", "RUSTDOC"] {
                command.env_remove(variable);
            }
            command.env("RUSTUP_TOOLCHAIN", "nightly");
            portable::configure_zig(&mut command, &tools)?;
        } else {
            command.env(format!("{variable}_LINKER"), self.compiler()?);
        }
        command.arg(match subcommand {
            "build" if by_zig => "zigbuild",
            subcommand => subcommand,
        });
        // Tests stay here; what else is built goes into packages.
        if subcommand != "test" {
            let library = nightly_sysroot()?.join("lib/rustlib/src/rust");
            let remap = portable::remap_sources(self.triple(), &[(&library, "rust")])?;
            command.arg("--config").arg(remap);
        }
        if self.emulator().is_some() {
            let this = std::env::current_exe().context("cannot find this program")?;
            let runner = format!("{} emulated {self} --", this.display());
            command.env(format!("{variable}_RUNNER"), runner);
            // Emulated, code that is not optimised takes minutes where it takes seconds otherwise.
            command.env("CARGO_PROFILE_DEV_OPT_LEVEL", "1");
        }
        // Half of the disk that all this takes would be debugging information.
        for profile in ["DEV", "RELEASE"] {
            command.env(format!("CARGO_PROFILE_{profile}_DEBUG"), "none");
        }
        command
            .args(["--quiet", "-Zbuild-std=std,panic_abort", "--target"])
            .arg(match purpose {
                Purpose::Portable => format!("{self}.{}.{}", GLIBC[0], GLIBC[1]),
                _ => self.triple().to_owned(),
            })
            .arg("--target-dir")
            .arg(purpose.dir()?)
            .current_dir(workspace::root());
        Ok(command)
    }

    /// Arguments of Cargo's without which there is no shared library: Rust's programs for musl are
    /// static.
    pub(crate) fn for_shared_library(self) -> Vec<String> {
        match self.is_musl() {
            false => Vec::new(),
            true => vec![
                "--config".to_owned(),
                format!("target.{self}.rustflags=['-Ctarget-feature=-crt-static']"),
            ],
        }
    }

    /// Arguments of Cargo's without which there are no tests: the toolchain has no start files for a
    /// standard library that was built here, and Zig has. Tests load libraries, which static programs cannot, so they
    /// are linked with the musl that lies here.
    pub(crate) fn for_tests(self) -> Result<Vec<String>> {
        if !self.is_musl() {
            return Ok(Vec::new());
        }
        let system = self.system()?;
        let system = system.display();
        let flags = [
            "-Clink-self-contained=no".to_owned(),
            "-Ctarget-feature=-crt-static".to_owned(),
            "-Clink-arg=-dynamic".to_owned(),
            format!(
                "-Clink-arg=-Wl,--dynamic-linker={system}/{}",
                self.dynamic_linker()
            ),
            format!("-Clink-arg=-Wl,-rpath,{system}"),
        ];
        // Debug formatting quotes as TOML does.
        let flags = format!("target.{self}.rustflags={flags:?}");
        Ok(vec!["--config".to_owned(), flags])
    }

    /// Where Cargo puts what it builds for release.
    pub(crate) fn built(self, purpose: Purpose) -> Result<PathBuf> {
        Ok(purpose.dir()?.join(self.triple()).join("release"))
    }
}

impl Purpose {
    /// Cargo's target directory. All targets share it, as they share build scripts.
    fn dir(self) -> Result<PathBuf> {
        workspace::target_subdir(match self {
            Purpose::Library => "cross/cargo",
            Purpose::Program => "cross/command",
            Purpose::Portable => "cross/portable",
        })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.triple())
    }
}
