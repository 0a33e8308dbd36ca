//! `cargo xtask sanitize`: the tests of the crates that share memory, under the address and
//! thread sanitizers.
//!
//! Sanitizers are a nightly compiler's; without one this says so and does nothing. The thread
//! sanitizer has to see how the standard library synchronises, so that is built with it, from
//! the toolchain's component `rust-src`; then nothing needs to be suppressed.

use crate::workspace;
use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum;
use std::fmt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// Run tests under the address and thread sanitizers.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only this one.
    #[arg(long)]
    only: Option<Sanitizer>,
}

/// A sanitizer of the compiler's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sanitizer {
    Address,
    Thread,
}

impl fmt::Display for Sanitizer {
    /// Its name as compilers have it.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Sanitizer::Address => "address",
            Sanitizer::Thread => "thread",
        })
    }
}

impl Sanitizer {
    /// Whether the standard library is built for the sanitizer as well.
    fn builds_std(self) -> bool {
        self == Sanitizer::Thread
    }

    /// What is missing for it, if anything is.
    pub(crate) fn lacks(self) -> Option<&'static str> {
        let version = nightly().arg("--version").output();
        if !version.is_ok_and(|version| version.status.success()) {
            Some("a nightly toolchain")
        } else if self.builds_std() && !has_std_source() {
            Some("the nightly toolchain's component rust-src")
        } else {
            None
        }
    }

    /// A command of the nightly Cargo's that builds for the sanitizer.
    fn cargo(self, subcommand: &str) -> Result<Command> {
        let mut flags = format!("-Zsanitizer={self}");
        let mut command = nightly();
        command.args([subcommand, "--quiet", "--target", TARGET]);
        match self.builds_std() {
            true => drop(command.arg("-Zbuild-std")),
            false => flags.push_str(" -Cunsafe-allow-abi-mismatch=sanitizer"),
        }
        command
            .env("RUSTFLAGS", flags)
            .env("CARGO_TARGET_DIR", self.target_dir()?)
            .current_dir(workspace::root());
        Ok(command)
    }

    fn target_dir(self) -> Result<PathBuf> {
        workspace::target_subdir(format!("sanitize/{self}"))
    }

    /// Builds our shared library. It calls the sanitizer's runtime, which the program has to bring.
    pub(crate) fn library(self) -> Result<PathBuf> {
        if let Some(lack) = self.lacks() {
            bail!("the {self} sanitizer needs {lack}");
        }
        let status = self
            .cargo("rustc")?
            .args(["-p", "blacklight-uv", "--lib", "--crate-type", "cdylib"])
            .status()
            .context("cannot run the nightly cargo")?;
        ensure!(
            status.success(),
            "our library does not build for the {self} sanitizer"
        );
        Ok(self.target_dir()?.join(TARGET).join("debug/libuv.so"))
    }

    /// The runtime that comes with the nightly compiler. A process has room for one only.
    pub(crate) fn runtime(self) -> Result<PathBuf> {
        let output = toolchain(Command::new("rustc"))
            .args(["--print", "target-libdir", "--target", TARGET])
            .output()
            .context("cannot run the nightly rustc")?;
        let dir = String::from_utf8(output.stdout).context("an odd directory")?;
        let short = match self {
            Sanitizer::Address => "asan",
            Sanitizer::Thread => "tsan",
        };
        let runtime = PathBuf::from(dir.trim()).join(format!("librustc-nightly_rt.{short}.a"));
        ensure!(runtime.exists(), "there is no {}", runtime.display());
        Ok(runtime)
    }
}

const TARGET: &str = "x86_64-unknown-linux-gnu";

/// What runs under a sanitizer.
struct Plan {
    sanitizer: Sanitizer,
    /// The variable with options for the sanitizer's runtime, and these.
    options: (&'static str, &'static str),
    arguments: &'static [&'static [&'static str]],
}

const PLANS: [Plan; 3] = [
    Plan {
        sanitizer: Sanitizer::Address,
        options: (
            "ASAN_OPTIONS",
            "detect_leaks=1:detect_stack_use_after_return=1",
        ),
        arguments: &[
            &["-p", "blacklight-sys", "--lib"],
            &["-p", "blacklight-record", "--lib"],
            &[
                "-p",
                "blacklight-engine",
                "--lib",
                "--test",
                "pollers",
                "--test",
                "recorder",
            ],
            // The Rust crate has no unsafe code of its own; what it must not do is leak.
            &["-p", "blacklight", "--test", "teardown*", "--test", "tcp"],
            &[
                "-p",
                "blacklight-uv",
                "--lib",
                "--test",
                "asyncs",
                "--test",
                "dns*",
                "--test",
                "faults",
                "--test",
                "fs",
                "--test",
                "fs_[lp]*",
                "--test",
                "pipes",
                "--test",
                "processes",
                "--test",
                "record_handles",
                "--test",
                "record_late",
                "--test",
                "soak*",
                "--test",
                "threads",
                "--test",
                "tty",
                "--test",
                "work",
                "--test",
                "wtf8",
            ],
        ],
    },
    // These tests leave handles behind on purpose, as a program does that exits in a hurry.
    Plan {
        sanitizer: Sanitizer::Address,
        options: (
            "ASAN_OPTIONS",
            "detect_leaks=0:detect_stack_use_after_return=1",
        ),
        arguments: &[
            &[
                "-p",
                "blacklight-uv",
                "--test",
                "fs_event*",
                "--test",
                "signals",
                "--test",
                "udp*",
            ],
            &[
                "-p",
                "blacklight-uv",
                "--test",
                "record",
                "--",
                // The sanitizer's runtime does not live with a limit of memory.
                "--skip",
                "no_limit_harms_the_program_watched",
            ],
        ],
    },
    Plan {
        sanitizer: Sanitizer::Thread,
        options: ("TSAN_OPTIONS", "halt_on_error=1"),
        arguments: &[
            // What a hostile record says is read by one thread, and the kernel copies events for the reader, unseen.
            &[
                "-p",
                "blacklight-record",
                "--lib",
                "--",
                "--skip",
                "a_record_may",
                "--skip",
                "events_are_read_whole",
            ],
            &["-p", "blacklight-engine", "--lib"],
            &[
                "-p",
                "blacklight-engine",
                "--test",
                "recorder",
                "--test",
                "wakeups",
            ],
            &[
                "-p",
                "blacklight-uv",
                "--test",
                "asyncs",
                "--test",
                "dns",
                "--test",
                "faults",
                "--test",
                "fs",
                "--test",
                "processes",
                "--test",
                "record",
                "--test",
                "record_handles",
                "--test",
                "record_late",
                "--test",
                "signals",
                "--test",
                "threads",
                "--test",
                "work",
                "--",
                // The sanitizer's runtime gives up on threads after a fork, on joining what was
                // detached, and on leaving a function of Rust's by `pthread_exit`; and it ends the
                // process itself where a locked mutex is destroyed.
                "--skip",
                "a_child_has_a_pool_of_its_own",
                "--skip",
                "a_detached_thread_runs_and_cannot_be_joined",
                "--skip",
                "a_thread_may_leave_by_pthread_exit",
                "--skip",
                "destroying_a_locked_mutex_ends_the_process",
                // Nor does it live with a limit of memory, or in a program that forks beside its threads.
                "--skip",
                "no_limit_harms_the_program_watched",
                "--skip",
                "a_child_writes_nothing_to_its_parents_record",
                "--skip",
                "threads_may_fork_while_the_pool_works",
                "--skip",
                "a_reader_that_is_killed_does_no_harm",
            ],
        ],
    },
];

/// The nightly toolchain's Cargo.
pub(crate) fn nightly() -> Command {
    toolchain(Command::new("cargo"))
}

/// Where the nightly toolchain lies.
pub(crate) fn nightly_sysroot() -> Result<PathBuf> {
    let output = toolchain(Command::new("rustc"))
        .args(["--print", "sysroot"])
        .output()
        .context("cannot run the nightly rustc")?;
    ensure!(output.status.success(), "there is no nightly toolchain");
    let path = String::from_utf8(output.stdout)?;
    Ok(PathBuf::from(path.trim()))
}

/// Makes a command of Rust's one of the nightly toolchain's.
fn toolchain(mut command: Command) -> Command {
    // The toolchain that runs this chore must not leak into the other.
    for variable in ["CARGO", "RUSTC", "RUSTUP_TOOLCHAIN", "RUSTDOC"] {
        command.env_remove(variable);
    }
    command.arg("+nightly");
    command
}

/// Runs the chore.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let wanted = |plan: &&Plan| options.only.is_none_or(|only| only == plan.sanitizer);
    for plan in PLANS.iter().filter(wanted) {
        if let Some(lack) = plan.sanitizer.lacks() {
            println!(
                "without {lack}, the {} sanitizer is left out",
                plan.sanitizer
            );
            continue;
        }
        for arguments in plan.arguments {
            run_plan(plan, arguments)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether the nightly toolchain has the standard library's source, or can get it.
pub(crate) fn has_std_source() -> bool {
    let added = Command::new("rustup")
        .args(["component", "add", "rust-src", "--toolchain", "nightly"])
        .output();
    added.is_ok_and(|added| added.status.success())
}

fn run_plan(plan: &Plan, arguments: &[&str]) -> Result<()> {
    println!("-- {} sanitizer: {}", plan.sanitizer, arguments.join(" "));
    let status = plan
        .sanitizer
        .cargo("test")?
        .args(arguments)
        .env(plan.options.0, plan.options.1)
        .status()
        .context("cannot run the nightly cargo")?;
    ensure!(
        status.success(),
        "the {} sanitizer is not content",
        plan.sanitizer
    );
    Ok(())
}
