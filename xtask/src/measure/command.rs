//! Running the programs of a measurement outside of a sandbox.

use super::turns::Subject;
use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::process::Command;

/// So many seconds a program may take.
const LIMIT: &str = "120";

/// A command that runs `program` on the library and in the environment of a subject.
pub(crate) fn run(program: &Path, subject: &Subject) -> Command {
    run_via(&[], program, subject)
}

/// The same by way of another program, for instance strace.
pub(crate) fn run_via(via: &[&str], program: &Path, subject: &Subject) -> Command {
    let mut command = Command::new("timeout");
    command
        .arg(LIMIT)
        .args(via)
        .arg(program)
        .envs(subject.environment.iter().copied());
    if let Some(library) = &subject.library {
        command.env("LD_LIBRARY_PATH", library);
    }
    command
}

/// What a command prints, if it succeeds.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command
        .output()
        .with_context(|| format!("cannot run {command:?}"))?;
    ensure!(
        output.status.success(),
        "{}: {}",
        output.status,
        String::from_utf8_lossy(&output.stderr).trim()
    );
    String::from_utf8(output.stdout).context("the program prints no text")
}
