//! `cargo xtask differ`: one program that calls the library at random, with the original and with
//! ours.
//!
//! The program is decided by a seed. It prints what each call returned, what was called back and
//! what the handles say of themselves, so that two libraries that behave alike print the same. A
//! seed for which the original itself gives up, or does not print the same twice, is a mistake in
//! the program, which has to avoid what cannot be compared; it counts as a failure.

use crate::program::Program;
use crate::workspace;
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

/// Call functions in random order with the original and with ours, and compare the answers.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// How many seeds to try.
    #[arg(long, default_value_t = 200)]
    seeds: u64,
    /// The first of them.
    #[arg(long, default_value_t = 1)]
    first: u64,
    /// How many steps each program takes.
    #[arg(long, default_value_t = 60)]
    steps: u32,
    /// The mechanism our library is to wait with; its own choice if not given.
    #[arg(long)]
    poller: Option<String>,
}

/// How many lines before a difference are shown.
const CONTEXT: usize = 12;

/// The program, and how it is to be run.
struct Runner<'a> {
    program: &'a Path,
    options: &'a Options,
}

impl Runner<'_> {
    /// One run in an empty directory: what it printed, or what it died of.
    fn run(&self, lib: &Path, seed: u64) -> Result<Result<String, String>> {
        let dir = workspace::target_subdir("differ/work")?;
        fs::remove_dir_all(&dir).context("cannot clear the working directory")?;
        fs::create_dir_all(&dir).context("cannot make the working directory")?;
        let mut command = Command::new(self.program);
        command
            .args([seed.to_string(), self.options.steps.to_string()])
            .arg(&dir)
            .env("LD_LIBRARY_PATH", lib);
        if let Some(poller) = &self.options.poller {
            command.env("BLACKLIGHT_POLLER", poller);
        }
        let output = command.output().context("cannot run the program")?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let complaint = String::from_utf8_lossy(&output.stderr);
        Ok(match output.status.success() {
            true => Ok(text),
            false => Err(format!("{text}{complaint}{}\n", output.status)),
        })
    }
}

/// Shows where two texts part.
fn show(original: &str, ours: &str) {
    let (original, ours): (Vec<_>, Vec<_>) = (original.lines().collect(), ours.lines().collect());
    let same = original.iter().zip(&ours).take_while(|(a, b)| a == b);
    let at = same.count();
    for line in &original[at.saturating_sub(CONTEXT)..at] {
        println!("  {line}");
    }
    for (sign, lines) in [('-', &original), ('+', &ours)] {
        for line in lines.iter().skip(at).take(3) {
            println!("{sign} {line}");
        }
    }
}

/// Runs the chore.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let Program {
        path: program,
        original,
        ours,
    } = Program::build("differ", "program")?;
    let runner = Runner {
        program: &program,
        options,
    };
    let (mut alike, mut unfit, mut different) = (0, 0, 0);
    for seed in options.first..options.first + options.seeds {
        let expected = runner.run(&original, seed)?;
        let got = runner.run(&ours, seed)?;
        if expected.is_ok() && got == expected {
            alike += 1;
            continue;
        }
        let again = runner.run(&original, seed)?;
        let text = |outcome: Result<String, String>| outcome.unwrap_or_else(|broken| broken);
        if expected.is_err() || again != expected {
            unfit += 1;
            println!("seed {seed}: the original, - once, + and again");
            show(&text(expected), &text(again));
        } else {
            different += 1;
            println!("seed {seed}: - the original, + ours");
            show(&text(expected), &text(got));
        }
    }
    println!("{alike} alike, {different} different, {unfit} that the original cannot answer");
    Ok(match different + unfit {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}
