//! `cargo xtask measure`: figures of our library beside those of others, turn about.
//!
//! What is common to all measurements: [`turns`] has the trait that each implements, and takes
//! rounds; [`statistics`] has the arithmetic; [`report`] makes the tables, the means over families
//! and the files. To add a measurement, implement [`turns::Measurement`]; to take it, hand it to
//! [`report::Report::measure`].

pub(crate) mod chart;
pub(crate) mod command;
pub(crate) mod family;
pub(crate) mod libraries;
pub(crate) mod machine;
pub(crate) mod report;
mod scaling;
mod spawning;
pub(crate) mod statistics;
pub(crate) mod table;
pub(crate) mod turns;

use crate::{selection, workspace};
use anyhow::{Result, ensure};
use libraries::{Choice, Libraries};
use report::Report;
use std::process::ExitCode;
use turns::Measurement;

/// Compare our library with the original and others, turn about, by medians of rounds.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// How many turns each subject has, for every row.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Only list what can be measured.
    #[arg(long)]
    list: bool,
    #[command(flatten)]
    choice: Choice,
    /// What to measure, by name, glob or prefix.
    #[arg(value_name = "WHAT")]
    names: Vec<String>,
}

/// A study: its name, what it shows, and how it is prepared.
struct Study {
    name: &'static str,
    about: &'static str,
    build: fn(&Libraries) -> Result<Box<dyn Measurement>>,
}

const STUDIES: [Study; 2] = [
    Study {
        name: scaling::Scaling::NAME,
        about: "how the cost of wake-ups and timers grows with the number of handles",
        build: |libraries| Ok(Box::new(scaling::Scaling::build(libraries)?)),
    },
    Study {
        name: spawning::Spawning::NAME,
        about: "what exits of many children and a spawn from a large process cost",
        build: |libraries| Ok(Box::new(spawning::Spawning::build(libraries)?)),
    },
];

/// Runs the chore.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    if options.list {
        for study in &STUDIES {
            println!("{:<20} {}", study.name, study.about);
        }
        return Ok(ExitCode::SUCCESS);
    }
    ensure!(!options.names.is_empty(), "name what to measure: --list");
    let names = STUDIES.map(|study| study.name);
    let chosen = selection::select(&names, &options.names)?;
    let libraries = Libraries::build(&options.choice)?;
    let studies = STUDIES.iter().filter(|study| chosen.contains(&study.name));
    let measurements: Result<Vec<_>> = studies.map(|study| (study.build)(&libraries)).collect();
    let mut report = Report::begin(options.rounds, libraries.remarks())?;
    report.measure(&measurements?);
    report.conclude(&workspace::target_subdir("measure")?)
}
