//! `cargo xtask scaling`: how the cost of one operation grows with the number of handles.
//!
//! One C program, run with the original and with ours turn about; what counts is the median
//! of the rounds. It shows what the benchmarks do not: that a wake-up costs the same however
//! many async handles there are, and how a timer's restart grows.

use crate::echo::median;
use crate::program::Program;
use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::process::{Command, ExitCode};

/// Show how the cost of wake-ups and timers grows with the number of handles.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// How many times the program runs with each library.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
}

const COLUMNS: [&str; 3] = ["a wake-up", "a restart, random", "a restart, same"];

/// The lines of one run: the number of handles, and nanoseconds for each column.
fn measure(program: &Path, lib: &Path) -> Result<Vec<Vec<f64>>> {
    let output = Command::new("timeout")
        .arg("120")
        .arg(program)
        .env("LD_LIBRARY_PATH", lib)
        .output()
        .context("cannot run the program")?;
    ensure!(output.status.success(), "the program failed: {output:?}");
    let text = String::from_utf8(output.stdout).context("the program prints no text")?;
    let line = |line: &str| line.split(' ').map(|word| Ok(word.parse()?)).collect();
    text.lines().map(line).collect()
}

/// Runs the chore.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let Program {
        path: program,
        original,
        ours,
    } = Program::build("scaling", "scaling")?;
    let (mut of_original, mut of_ours) = (Vec::new(), Vec::new());
    for _ in 0..options.rounds.max(1) {
        of_original.push(measure(&program, &original)?);
        of_ours.push(measure(&program, &ours)?);
    }
    println!("nanoseconds: the original, ours");
    print!("{:>10}", "handles");
    COLUMNS.iter().for_each(|column| print!("{column:>24}"));
    println!();
    for line in 0..of_ours[0].len() {
        print!("{:>10}", of_ours[0][line][0]);
        for column in 1..=COLUMNS.len() {
            let of =
                |rounds: &[Vec<Vec<f64>>]| median(rounds.iter().map(|round| round[line][column]));
            let (original, ours) = (of(&of_original), of(&of_ours));
            print!("{:>24}", format!("{original:.0}, {ours:.0}"));
        }
        println!();
    }
    Ok(ExitCode::SUCCESS)
}
