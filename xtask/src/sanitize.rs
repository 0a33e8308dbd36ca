//! `cargo xtask sanitize`: the tests of the crates that share memory, under the address and
//! thread sanitizers.
//!
//! Sanitizers are a nightly compiler's; without one this says so and does nothing. The
//! standard library is the toolchain's own and not instrumented, so what it synchronises by
//! itself (channels, joining threads) is unknown to the thread sanitizer: tests that rely on
//! it alone are not run under that one.

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
    arguments: &'static [&'static [&'static str]],
}

const PLANS: [Plan; 3] = [
    Plan {
        sanitizer: "address",
        options: (
            "ASAN_OPTIONS",
            "detect_leaks=1:detect_stack_use_after_return=1",
        ),
        arguments: &[
            &["-p", "blacklight-sys", "--lib"],
            &["-p", "blacklight-engine", "--lib", "--test", "pollers"],
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
        options: (
            "TSAN_OPTIONS",
            "halt_on_error=1:suppressions=xtask/tsan.txt",
        ),
        arguments: &[
            &["-p", "blacklight-engine", "--lib"],
            &["-p", "blacklight-engine", "--test", "wakeups"],
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
        for arguments in plan.arguments {
            run_plan(plan, arguments)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Options with the paths in them made absolute: tests run in their crate's directory.
fn in_root(options: &str) -> String {
    let root = workspace::root().display();
    options.replace("suppressions=", &format!("suppressions={root}/"))
}

fn run_plan(plan: &Plan, arguments: &[&str]) -> Result<()> {
    println!("-- {} sanitizer: {}", plan.sanitizer, arguments.join(" "));
    let flags = format!(
        "-Zsanitizer={} -Cunsafe-allow-abi-mismatch=sanitizer",
        plan.sanitizer
    );
    let target_dir = workspace::target_subdir(&format!("sanitize/{}", plan.sanitizer))?;
    let status = nightly()
        .args(["test", "--quiet", "--target", TARGET])
        .args(arguments)
        .env("RUSTFLAGS", flags)
        .env("CARGO_TARGET_DIR", target_dir)
        .env(plan.options.0, in_root(plan.options.1))
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
