//! `cargo xtask spawning`: what many children cost their parent.
//!
//! One C program, run with the original and with ours turn about; what counts is the median of
//! the rounds. It shows the processor time that the loop takes for each child when many end, at
//! once or one after the other, and how long `uv_spawn` holds the loop up, in a small process and in a large one.

use crate::echo::median;
use crate::program::Program;
use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::process::{Command, ExitCode};

/// Show what exits of many children and a spawn from a large process cost.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// How many times the program runs with each library.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
}

/// What is measured, and the arguments for it.
const ROWS: [(&str, [&str; 2]); 8] = [
    ("an exit, 100 at once", ["exits", "100"]),
    ("an exit, 1,000 at once", ["exits", "1000"]),
    ("an exit, 4,000 at once", ["exits", "4000"]),
    ("an exit, 1 of 100", ["apart", "100"]),
    ("an exit, 1 of 1,000", ["apart", "1000"]),
    ("an exit, 1 of 4,000", ["apart", "4000"]),
    ("a spawn", ["spawn", "0"]),
    ("a spawn beside 1 GiB", ["spawn", "1024"]),
];

fn measure(program: &Path, lib: &Path, arguments: [&str; 2]) -> Result<f64> {
    let output = Command::new("timeout")
        .arg("120")
        .arg(program)
        .args(arguments)
        .env("LD_LIBRARY_PATH", lib)
        .output()
        .context("cannot run the program")?;
    ensure!(output.status.success(), "the program failed: {output:?}");
    let text = String::from_utf8_lossy(&output.stdout);
    let number = text.trim().parse();
    number.with_context(|| format!("the program says {text:?}"))
}

/// Runs the chore.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let Program {
        path: program,
        original,
        ours,
    } = Program::build("spawning", "program")?;
    println!("microseconds: {:>29}{:>10}", "the original", "ours");
    for (name, arguments) in ROWS {
        let (mut of_original, mut of_ours) = (Vec::new(), Vec::new());
        for _ in 0..options.rounds.max(1) {
            of_original.push(measure(&program, &original, arguments)?);
            of_ours.push(measure(&program, &ours, arguments)?);
        }
        let (original, ours) = (median(of_original.into_iter()), median(of_ours.into_iter()));
        println!("{name:<24}{original:>19.1}{ours:>10.1}");
    }
    Ok(ExitCode::SUCCESS)
}
