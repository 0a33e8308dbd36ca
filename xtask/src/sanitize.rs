//! `cargo xtask sanitize`: the tests of the crates that share memory, under the address and
//! thread sanitizers.
//!
//! Sanitizers are a nightly compiler's; without one this says so and does nothing. The thread
//! sanitizer has to see how the standard library synchronises, so that is built with it, from
//! the toolchain's component `rust-src`; then nothing needs to be suppressed.

use crate::workspace;
use anyhow::{Context, Result, ensure};
use std::process::{Command, ExitCode};

/// Run tests under the address and thread sanitizers.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only this one: address or thread.
    #[arg(long)]
    only: Option<String>,
}

const TARGET: &str = "x86_64-unknown-linux-gnu";

/// What runs under a sanitizer.
struct Plan {
    sanitizer: &'static str,
    /// The variable with options for the sanitizer's runtime, and these.
    options: (&'static str, &'static str),
    /// Whether the standard library is built for the sanitizer as well.
    builds_std: bool,
    arguments: &'static [&'static [&'static str]],
}

const PLANS: [Plan; 3] = [
    Plan {
        sanitizer: "address",
        options: (
            "ASAN_OPTIONS",
            "detect_leaks=1:detect_stack_use_after_return=1",
        ),
        builds_std: false,
        arguments: &[
            &["-p", "blacklight-sys", "--lib"],
            &["-p", "blacklight-engine", "--lib", "--test", "pollers"],
            // The Rust crate has no unsafe code of its own; what it must not do is leak.
            &["-p", "blacklight", "--test", "teardown*", "--test", "tcp"],
            &[
                "-p",
                "blacklight-uv",
                "--lib",
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
        sanitizer: "address",
        options: (
            "ASAN_OPTIONS",
            "detect_leaks=0:detect_stack_use_after_return=1",
        ),
        builds_std: false,
        arguments: &[&[
            "-p",
            "blacklight-uv",
            "--test",
            "fs_event*",
            "--test",
            "signals",
            "--test",
            "udp*",
        ]],
    },
    Plan {
        sanitizer: "thread",
        options: ("TSAN_OPTIONS", "halt_on_error=1"),
        builds_std: true,
        arguments: &[
            &["-p", "blacklight-engine", "--lib"],
            &["-p", "blacklight-engine", "--test", "wakeups"],
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
            ],
        ],
    },
];

fn nightly() -> Command {
    let mut command = Command::new("cargo");
    // The toolchain that runs this chore must not leak into the other.
    for variable in ["CARGO", "RUSTC", "RUSTUP_TOOLCHAIN", "RUSTDOC"] {
        command.env_remove(variable);
    }
    command.arg("+nightly");
    command
}

/// Runs the chore.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let version = nightly().arg("--version").output();
    if !version.is_ok_and(|version| version.status.success()) {
        println!("no nightly toolchain is installed: sanitizers are left out");
        return Ok(ExitCode::SUCCESS);
    }
    let wanted = |plan: &&Plan| {
        options
            .only
            .as_deref()
            .is_none_or(|only| only == plan.sanitizer)
    };
    for plan in PLANS.iter().filter(wanted) {
        if plan.builds_std && !has_std_source() {
            let sanitizer = plan.sanitizer;
            println!("rust-src is not to be had: the {sanitizer} sanitizer is left out");
            continue;
        }
        for arguments in plan.arguments {
            run_plan(plan, arguments)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether the nightly toolchain has the standard library's source, or can get it.
fn has_std_source() -> bool {
    let added = Command::new("rustup")
        .args(["component", "add", "rust-src", "--toolchain", "nightly"])
        .output();
    added.is_ok_and(|added| added.status.success())
}

fn run_plan(plan: &Plan, arguments: &[&str]) -> Result<()> {
    println!("-- {} sanitizer: {}", plan.sanitizer, arguments.join(" "));
    let mut flags = format!("-Zsanitizer={}", plan.sanitizer);
    let mut command = nightly();
    command.args(["test", "--quiet", "--target", TARGET]);
    match plan.builds_std {
        true => drop(command.arg("-Zbuild-std")),
        false => flags.push_str(" -Cunsafe-allow-abi-mismatch=sanitizer"),
    }
    let target_dir = workspace::target_subdir(&format!("sanitize/{}", plan.sanitizer))?;
    let status = command
        .args(arguments)
        .env("RUSTFLAGS", flags)
        .env("CARGO_TARGET_DIR", target_dir)
        .env(plan.options.0, plan.options.1)
        .current_dir(workspace::root())
        .status()
        .context("cannot run the nightly cargo")?;
    ensure!(
        status.success(),
        "the {} sanitizer is not content",
        plan.sanitizer
    );
    Ok(())
}
