//! `cargo xtask test`: everything that must hold before a change is good.
//!
//! Each step is a command of its own, run as one would run it by hand and printed so that it
//! can be. The first that fails ends the run.

use crate::conformance::under::Under;
use crate::sanitize::Sanitizer;
use crate::workspace;
use anyhow::{Context, Result, bail};
use std::process::{Command, ExitCode};
use std::time::Instant;

/// Run all tests: format, lints, unit and integration tests, documentation, ABI, interleavings of
/// threads, conformance on every poller, the answers of random programs and to what fuzzing has
/// found, failing calls, drop-in, swap, packaging, sanitizers.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Leave out what takes long: interleavings, conformance, random programs, failing calls,
    /// drop-in, swap, packaging and sanitizers.
    #[arg(long)]
    quick: bool,
}

/// A step: its name, and the command that it is.
struct Step {
    name: String,
    command: Command,
}

fn cargo(name: &str, arguments: &[&str]) -> Step {
    let mut command = workspace::cargo();
    command.args(arguments);
    Step {
        name: name.to_owned(),
        command,
    }
}

/// Another chore of this very program.
fn chore(arguments: &[&str]) -> Result<Step> {
    let mut command = Command::new(std::env::current_exe().context("cannot find this program")?);
    command.args(arguments);
    Ok(Step {
        name: arguments.join(" "),
        command,
    })
}

fn has_component(name: &str) -> bool {
    let output = workspace::cargo().args([name, "--version"]).output();
    output.is_ok_and(|output| output.status.success())
}

fn steps(options: &Options) -> Result<Vec<Step>> {
    let mut steps = Vec::new();
    // A toolchain without these two can build and test all the same.
    if has_component("fmt") {
        steps.push(cargo("format", &["fmt", "--all", "--check"]));
    }
    if has_component("clippy") {
        let lints = [
            "clippy",
            "--workspace",
            "--all-targets",
            "--all-features",
            "--quiet",
        ];
        steps.push(cargo(
            "lints",
            &[&lints[..], &["--", "-D", "warnings"]].concat(),
        ));
    }
    steps.push(cargo(
        "tests",
        &["test", "--workspace", "--all-features", "--quiet"],
    ));
    let mut documentation = cargo(
        "documentation",
        &[
            "doc",
            "--workspace",
            "--all-features",
            "--no-deps",
            "--quiet",
        ],
    );
    documentation.command.env("RUSTDOCFLAGS", "-D warnings");
    steps.push(documentation);
    steps.push(chore(&["abi"])?);
    if options.quick {
        return Ok(steps);
    }
    steps.push(chore(&["loom"])?);
    for header in ["ours", "original"] {
        for poller in ["epoll", "poll", "select"] {
            let run = [
                "conformance",
                "--expected",
                "--header",
                header,
                "--poller",
                poller,
            ];
            steps.push(chore(&run)?);
        }
    }
    steps.push(chore(&["conformance", "--expected", "--swap"])?);
    steps.push(chore(&["differ", "--seeds", "100"])?);
    steps.push(chore(&["sweep"])?);
    steps.push(chore(&["sweep", "--poller", "poll", "--cases", "500"])?);
    steps.push(chore(&["fuzz", "--replay"])?);
    steps.push(chore(&["dropin"])?);
    steps.push(chore(&["swap"])?);
    steps.push(chore(&["instructions"])?);
    steps.push(chore(&["packaging"])?);
    steps.push(chore(&["sanitize"])?);
    for under in [Under::Tsan, Under::Asan] {
        if under.sanitizer().and_then(Sanitizer::lacks).is_none() {
            steps.push(chore(&["conformance", "--under", under.name()])?);
        }
    }
    Ok(steps)
}

/// Runs the chore.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let steps = steps(options)?;
    let count = steps.len();
    for (at, mut step) in steps.into_iter().enumerate() {
        println!("\n== {} of {count}: {}", at + 1, step.name);
        let begun = Instant::now();
        let status = step.command.current_dir(workspace::root()).status();
        let status = status.with_context(|| format!("cannot run {:?}", step.command))?;
        if !status.success() {
            println!("{at} passed, 1 failed, {} skipped", count - at - 1);
            bail!("{} failed: {:?}", step.name, step.command);
        }
        println!("== {} took {:.0?}", step.name, begun.elapsed());
    }
    println!("\n{count} passed, 0 failed");
    Ok(ExitCode::SUCCESS)
}
