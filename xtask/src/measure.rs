//! `cargo xtask measure`: figures of our library beside those of others, turn about.
//!
//! What is common to all measurements: [`turns`] has the trait that each implements, and takes
//! rounds; [`statistics`] has the arithmetic; [`report`] makes the tables, the means over families
//! and the files. To add a measurement, implement [`turns::Measurement`] and name it in
//! [`STUDIES`].
//!
//! Benchmarks compare us with the original and are published together, every one of them with the
//! same number of rounds. Studies show one thing by itself.

mod benchmarks;
pub(crate) mod chart;
pub(crate) mod command;
mod connections;
pub(crate) mod echo;
pub(crate) mod family;
mod gaps;
pub(crate) mod libraries;
mod machine;
pub(crate) mod publish;
pub(crate) mod report;
mod scaling;
mod spawning;
pub(crate) mod statistics;
pub(crate) mod table;
pub(crate) mod turns;

use crate::original::Original;
use crate::{selection, workspace};
use anyhow::{Context, Result, ensure};
use benchmarks::{Catalogue, Prepared};
use libraries::{Choice, Libraries};
use publish::Publication;
use report::Report;
use std::process::ExitCode;
use std::rc::Rc;
use turns::Measurement;

/// With fewer rounds a run is not published.
const ROUNDS_TO_PUBLISH: usize = 5;

/// Compare our library with the original and others, turn about, by medians of rounds.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// How many turns each subject has, the same for every row [default: 5, full: 7].
    #[arg(long)]
    rounds: Option<usize>,
    /// All benchmarks. Without this, and if nothing is named, those that are quick.
    #[arg(long, conflicts_with = "names")]
    full: bool,
    /// Write the tables and the chart into docs/PERFORMANCE.md.
    #[arg(long, requires = "full", conflicts_with_all = ["library", "against", "poller", "recording"])]
    publish: bool,
    /// Only list what can be measured.
    #[arg(long)]
    list: bool,
    #[command(flatten)]
    choice: Choice,
    /// What to measure, by name, glob or prefix.
    #[arg(value_name = "WHAT")]
    names: Vec<String>,
}

impl Options {
    fn rounds(&self) -> usize {
        self.rounds.unwrap_or(if self.full { 7 } else { 5 })
    }
}

/// A measurement that is not a benchmark program in a sandbox.
struct Study {
    name: &'static str,
    /// What it shows.
    about: &'static str,
    /// Whether it is one of the benchmarks that are published.
    is_benchmark: bool,
    build: fn(&Libraries) -> Result<Box<dyn Measurement>>,
}

const STUDIES: [Study; 5] = [
    Study {
        name: connections::Connections::NAME,
        about: "the memory of each of ten thousand idle connections",
        is_benchmark: true,
        build: |libraries| Ok(Box::new(connections::Connections::build(libraries)?)),
    },
    Study {
        name: echo::Calls::NAME,
        about: "system calls and turns of the loop for an echoed message",
        is_benchmark: false,
        build: |libraries| Ok(Box::new(echo::Calls::build(libraries)?)),
    },
    Study {
        name: gaps::Gaps::NAME,
        about: "what spinning costs and gains, by how far messages are apart",
        is_benchmark: false,
        build: |libraries| Ok(Box::new(gaps::Gaps::build(libraries)?)),
    },
    Study {
        name: scaling::Scaling::NAME,
        about: "how the cost of wake-ups and timers grows with the number of handles",
        is_benchmark: false,
        build: |libraries| Ok(Box::new(scaling::Scaling::build(libraries)?)),
    },
    Study {
        name: spawning::Spawning::NAME,
        about: "what exits of many children and a spawn from a large process cost",
        is_benchmark: false,
        build: |libraries| Ok(Box::new(spawning::Spawning::build(libraries)?)),
    },
];

/// Runs the chore.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let catalogue = Rc::new(Catalogue::build(&Original::obtain()?)?);
    if options.list {
        print_list(&catalogue);
        return Ok(ExitCode::SUCCESS);
    }
    let publication = match options.publish {
        true => Some(Publication::prepare(workspace::root())?),
        false => None,
    };
    ensure!(
        publication.is_none() || options.rounds() >= ROUNDS_TO_PUBLISH,
        "nothing is published of fewer than {ROUNDS_TO_PUBLISH} rounds"
    );
    let chosen = choose(&catalogue, options)?;
    let libraries = Rc::new(Libraries::build(&options.choice)?);
    let prepare = |name: &&str| prepare(name, &catalogue, &libraries);
    let measurements: Result<Vec<_>> = chosen.iter().map(prepare).collect();
    let dir = workspace::target_subdir("measure")?;
    let mut report = Report::begin(dir, options.rounds(), libraries.remarks())?;
    report.measure(&measurements?)?;
    let code = report.conclude()?;
    if let Some(publication) = publication {
        publication.write(&report)?;
    }
    Ok(code)
}

fn print_list(catalogue: &Catalogue) {
    println!("Benchmarks, and the families that they count in:");
    for benchmark in &catalogue.benchmarks {
        let families = benchmark.families();
        let families: Vec<&str> = families.iter().map(|family| family.name()).collect();
        println!("  {:<28} {}", benchmark.name, families.join(", "));
    }
    for (heading, is_benchmark) in [("Also measured by --full:", true), ("Studies:", false)] {
        println!("{heading}");
        let studies = STUDIES.iter();
        for study in studies.filter(|study| study.is_benchmark == is_benchmark) {
            println!("  {:<28} {}", study.name, study.about);
        }
    }
}

/// The names of what is to be measured.
fn choose<'a>(catalogue: &'a Catalogue, options: &Options) -> Result<Vec<&'a str>> {
    let benchmarks = catalogue.benchmarks.iter();
    if !options.names.is_empty() {
        let names = benchmarks.map(|benchmark| benchmark.name.as_str());
        let names: Vec<&str> = names
            .chain(STUDIES.iter().map(|study| study.name))
            .collect();
        return selection::select(&names, &options.names);
    }
    let benchmarks = benchmarks.filter(|benchmark| options.full || benchmark.is_quick());
    let studies = STUDIES.iter().filter(|study| study.is_benchmark);
    let names = benchmarks.map(|benchmark| benchmark.name.as_str());
    Ok(names.chain(studies.map(|study| study.name)).collect())
}

fn prepare(
    name: &str,
    catalogue: &Rc<Catalogue>,
    libraries: &Rc<Libraries>,
) -> Result<Box<dyn Measurement>> {
    let mut benchmarks = catalogue.benchmarks.iter();
    if let Some(benchmark) = benchmarks.find(|benchmark| benchmark.name == name) {
        return Ok(Box::new(Prepared::new(benchmark, catalogue, libraries)));
    }
    let study = STUDIES.iter().find(|study| study.name == name);
    let study = study.with_context(|| format!("nothing is called {name}"))?;
    (study.build)(libraries).with_context(|| format!("cannot prepare {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Arguments {
        #[command(flatten)]
        options: Options,
    }

    fn parse(arguments: &str) -> Result<Options, clap::Error> {
        let words = ["measure"].into_iter().chain(arguments.split_whitespace());
        Arguments::try_parse_from(words).map(|line| line.options)
    }

    #[test]
    fn rounds_are_as_many_as_was_said() {
        let rounds = |arguments| parse(arguments).ok().unwrap().rounds();
        assert_eq!(rounds(""), 5);
        assert_eq!(rounds("--full"), 7);
        assert_eq!(rounds("--full --rounds 9"), 9);
    }

    #[test]
    fn only_a_full_run_of_our_library_is_published() {
        assert!(parse("--full --publish").is_ok());
        assert!(parse("--publish").is_err());
        assert!(parse("--full --publish --library /tmp").is_err());
        assert!(parse("--full --publish --against /tmp").is_err());
        assert!(parse("--full echo").is_err());
        assert!(parse("--full --against /tmp").is_ok());
    }
}
