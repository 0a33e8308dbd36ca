//! `cargo xtask bench`: libuv's own benchmark programs and some that it lacks, with our library
//! and the original turn about.
//!
//! Each executable is compiled once against the original's header and runs with either library. The
//! two take turns within one round and change the order from round to round, so that
//! whatever else the machine is doing meets both alike; what counts is the median of the rounds.
//! Every run is a sandbox of its own, and its processor time is recorded besides what it prints.

mod chart;
mod own;
mod publish;
mod readings;
mod report;
mod rounds;

use crate::conformance::Poller;
use crate::library::Library;
use crate::original::Original;
use crate::sandbox::{Ended, Job, Run, Sandbox};
use crate::{selection, workspace};
use anyhow::{Context, Result, ensure};
use indicatif::{ProgressBar, ProgressStyle};
use own::Own;
use publish::Publication;
use readings::Reading;
use report::{Row, Series, Summary};
use rounds::Rounds;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

/// What is run of libuv's list when nothing is named.
const BY_DEFAULT: [&str; 13] = [
    "loop_count",
    "loop_count_timed",
    "loop_alive",
    "async1",
    "async2",
    "async4",
    "async8",
    "async_pummel_1",
    "async_pummel_2",
    "async_pummel_4",
    "async_pummel_8",
    "million_async",
    "million_timers",
];

/// Those of them that take from half a minute to a minute and more.
const SLOW: [&str; 5] = [
    "async1",
    "async4",
    "async8",
    "async_pummel_4",
    "async_pummel_8",
];

/// An entry of the list that measures nothing.
const NOT_A_MEASUREMENT: &str = "sizes";

/// The benchmark that takes the most memory, some 2 GB.
const LARGEST: &str = "million_timers";

const LIMIT: Duration = Duration::from_secs(300);

/// Run libuv's benchmark programs and some of our own with ours and the original turn about.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// How many times each benchmark runs with each library, at most so many with --full
    /// [default: 5, quick: 3, full: 10].
    #[arg(long)]
    rounds: Option<usize>,
    /// Of the default benchmarks only those that take less than a quarter of a minute.
    #[arg(long, conflicts_with_all = ["full", "all"])]
    quick: bool,
    /// Every benchmark, and more rounds where they are needed: one stops after 2 rounds if ours is
    /// at least twice as good in each, and after 3 if it is worse in none.
    #[arg(long)]
    full: bool,
    /// Every benchmark.
    #[arg(long)]
    all: bool,
    /// Write the table and the chart into docs/PERFORMANCE.md and README.md.
    #[arg(long, conflicts_with = "library")]
    publish: bool,
    /// The library to compare with the original: `ours`, `original`, or a path.
    #[arg(long, default_value = "ours")]
    library: Library,
    /// The mechanism our library is to wait with; its own choice if not given.
    #[arg(long)]
    poller: Option<Poller>,
    /// Benchmarks by name, glob or prefix.
    #[arg(value_name = "NAME")]
    names: Vec<String>,
}

impl Options {
    fn rounds(&self) -> Rounds {
        let by_default = match (self.quick, self.full) {
            (true, _) => 3,
            (_, true) => 10,
            _ => 5,
        };
        Rounds {
            most: self.rounds.unwrap_or(by_default).max(1),
            until_clear: self.full,
        }
    }
}

/// A benchmark and who runs it.
struct Benchmark {
    name: String,
    program: Program,
}

enum Program {
    /// An entry of the runner's list.
    Runner {
        /// Whether other processes take part, which only the runner can start.
        has_helpers: bool,
    },
    Own(&'static Own),
}

/// One of the two sides of the comparison.
struct Side {
    library_dir: PathBuf,
    poller: Option<Poller>,
}

/// What came of one benchmark on one or both sides.
enum Measured {
    Rows(Vec<Row>),
    /// The library lacks something, or the benchmark failed: why.
    Nothing(String),
}

struct Bench {
    sandbox: Sandbox,
    runner: PathBuf,
    /// The executables of our own benchmarks.
    own_dir: PathBuf,
    ours: Side,
    original: Side,
    rounds: Rounds,
}

/// Runs the chore.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let publication = options
        .publish
        .then(|| Publication::prepare(workspace::root()))
        .transpose()?;
    let original = Original::obtain()?;
    let original_library = original.library()?;
    let library = options.library.build(&original)?;
    let runner = original.benchmark_runner()?;
    let own_dir = own::build(&original)?;
    let mut list = list_benchmarks(&runner, &original_library)?;
    list.extend(own::ALL.iter().map(|own| Benchmark {
        name: own.name.to_owned(),
        program: Program::Own(own),
    }));
    let chosen = choose(&list, options)?;

    let sandbox = Sandbox::open(&original)?;
    let ours = Side {
        library_dir: sandbox.adopt(&library, "ours")?,
        poller: options.poller,
    };
    let original = Side {
        library_dir: sandbox.adopt(&original_library, "original")?,
        poller: None,
    };
    let bench = Bench {
        sandbox,
        runner,
        own_dir,
        ours,
        original,
        rounds: options.rounds(),
    };
    let summary = bench.measure_all(&chosen, &options.library)?;
    let files = summary.write(&workspace::target_subdir("bench")?)?;
    summary.print_closing(&files);
    if let Some(publication) = publication {
        publication.write(&summary)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn list_benchmarks(runner: &Path, original: &Path) -> Result<Vec<Benchmark>> {
    let output = Command::new(runner)
        .arg("--list")
        .env(
            "LD_LIBRARY_PATH",
            original.parent().context("a library without a directory")?,
        )
        .output()
        .with_context(|| format!("cannot run {}", runner.display()))?;
    let list = parse_list(&String::from_utf8_lossy(&output.stdout));
    ensure!(
        !list.is_empty(),
        "the runner lists no benchmarks: {output:?}"
    );
    Ok(list)
}

fn parse_list(output: &str) -> Vec<Benchmark> {
    let benchmark = |line: &str| {
        let name = line.split_whitespace().next()?.to_owned();
        Some(Benchmark {
            name,
            program: Program::Runner {
                has_helpers: line.contains("(helpers:"),
            },
        })
    };
    output.lines().filter_map(benchmark).collect()
}

fn choose<'a>(list: &'a [Benchmark], options: &Options) -> Result<Vec<&'a Benchmark>> {
    let names: Vec<&str> = list
        .iter()
        .map(|benchmark| benchmark.name.as_str())
        .filter(|name| *name != NOT_A_MEASUREMENT)
        .collect();
    let chosen: Vec<&str> = if !options.names.is_empty() {
        selection::select(&names, &options.names)?
    } else if options.all || options.full {
        names
    } else {
        let leave_out = |name: &str| options.quick && SLOW.contains(&name);
        BY_DEFAULT
            .into_iter()
            .chain(own::ALL.iter().map(|own| own.name))
            .filter(|name| !leave_out(name))
            .collect()
    };
    let find = |name: &str| list.iter().find(|benchmark| benchmark.name == name);
    chosen
        .into_iter()
        .map(|name| find(name).with_context(|| format!("the runner has no {name}")))
        .collect()
}

impl Bench {
    fn measure_all(&self, chosen: &[&Benchmark], library: &Library) -> Result<Summary> {
        let steps = chosen.len() * self.rounds.most * 2;
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg} ({eta} left)")
            .expect("a valid template");
        let bar = ProgressBar::new(steps as u64).with_style(style);
        let mut summary = Summary::new(library.to_string(), self.rounds)?;
        bar.suspend(|| summary.print_opening());
        for benchmark in chosen {
            bar.set_message(benchmark.name.clone());
            let before = bar.position();
            let measured = self
                .measure(benchmark, &bar)
                .with_context(|| format!("cannot measure {}", benchmark.name))?;
            bar.set_position(before + 2 * self.rounds.most as u64);
            bar.suspend(|| summary.add(&benchmark.name, measured));
        }
        bar.finish_and_clear();
        Ok(summary)
    }

    fn measure(&self, benchmark: &Benchmark, bar: &ProgressBar) -> Result<Measured> {
        let readings = readings::of(&benchmark.name);
        let mut ours: Vec<Series> = readings.iter().map(|_| Series::default()).collect();
        let mut original: Vec<Series> = readings.iter().map(|_| Series::default()).collect();
        for round in 0..self.rounds.most {
            let mut turns = [
                (&self.ours, "ours", &mut ours),
                (&self.original, "original", &mut original),
            ];
            if round % 2 == 1 {
                turns.reverse();
            }
            for (side, whose, series) in turns {
                let run = self.run_once(benchmark, side)?;
                if let Some(function) = run.missing_function() {
                    return Ok(Measured::Nothing(format!("not yet: needs {function}")));
                }
                if let Err(reason) = take(&run, readings, series) {
                    let verdict = self.who_fails(benchmark, whose)?;
                    return Ok(Measured::Nothing(format!("{verdict}: {reason}")));
                }
                bar.inc(1);
            }
            let ratios = ratios_by_row(readings, &ours, &original);
            if !self.rounds.need_another(&ratios) {
                break;
            }
        }
        let rows = readings
            .iter()
            .zip(ours)
            .zip(original)
            .map(|((reading, ours), original)| {
                let name = format!("{}{}", benchmark.name, reading.suffix);
                Row::new(name, reading, ours, original)
            });
        Ok(Measured::Rows(rows.collect()))
    }

    /// Tells a benchmark that is broken by itself from one that a library breaks.
    fn who_fails(&self, benchmark: &Benchmark, whose: &str) -> Result<String> {
        let other = if whose == "ours" {
            &self.original
        } else {
            &self.ours
        };
        let run = self.run_once(benchmark, other)?;
        Ok(match run.ended {
            Ended::Exited(0) => format!("fails with {whose}"),
            _ => "broken by itself, fails with both".to_owned(),
        })
    }

    /// Without helpers a benchmark runs as a single process, which is what its time is taken of;
    /// with helpers the runner starts all of them.
    fn run_once(&self, benchmark: &Benchmark, side: &Side) -> Result<Run> {
        let name = benchmark.name.as_str();
        if name == LARGEST {
            touch_memory();
        }
        let (program, arguments) = match benchmark.program {
            Program::Runner { has_helpers: true } => (self.runner.clone(), &[name][..]),
            Program::Runner { has_helpers: false } => (self.runner.clone(), &[name, name][..]),
            Program::Own(own) => (own.program(&self.own_dir), own.arguments),
        };
        let poller = side
            .poller
            .map(|poller| ("BLACKLIGHT_POLLER", poller.name()));
        self.sandbox.run(&Job {
            program: &program,
            arguments,
            library_dir: &side.library_dir,
            environment: poller.as_slice(),
            tool: None,
            limit: LIMIT,
        })
    }
}

/// Has the machine's memory there, as much as the largest benchmark takes. A virtual machine may
/// give memory that is not in use back to its host, and who happens to touch it next is charged
/// seconds for getting it again.
fn touch_memory() {
    std::hint::black_box(vec![1u8; 5 << 29]);
}

/// For each reading the ratios of the rounds so far.
fn ratios_by_row(readings: &[Reading], ours: &[Series], original: &[Series]) -> Vec<Vec<f64>> {
    let sides = ours.iter().zip(original);
    readings
        .iter()
        .zip(sides)
        .map(|(reading, (ours, original))| report::ratios(reading.better, ours, original))
        .collect()
}

/// Reads what a run measured into the series, one for each reading; or says why it cannot.
fn take(run: &Run, readings: &[Reading], series: &mut [Series]) -> Result<(), String> {
    let last_line = run.output.lines().last().unwrap_or("no output");
    match run.ended {
        Ended::Exited(0) => {}
        Ended::Exited(code) => return Err(format!("exit code {code}: {last_line}")),
        Ended::Killed(signal) => return Err(format!("killed by signal {signal}: {last_line}")),
        Ended::TimedOut => return Err(format!("timed out after {} s", LIMIT.as_secs())),
    }
    for (reading, series) in readings.iter().zip(series) {
        let value = reading
            .value(run)
            .ok_or_else(|| format!("cannot read {last_line:?}"))?;
        series.push(value, reading.floor(run), run);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[test]
    fn only_full_stops_when_the_result_is_clear() {
        #[derive(Parser)]
        struct Line {
            #[command(flatten)]
            options: Options,
        }
        let rounds = |arguments: &str| {
            let words = ["bench"].into_iter().chain(arguments.split_whitespace());
            let rounds = Line::parse_from(words).options.rounds();
            (rounds.most, rounds.until_clear)
        };
        assert_eq!(rounds(""), (5, false));
        assert_eq!(rounds("--quick"), (3, false));
        assert_eq!(rounds("--all --rounds 7"), (7, false));
        assert_eq!(rounds("--full"), (10, true));
        assert_eq!(rounds("--full --rounds 7"), (7, true));
    }

    #[test]
    fn list_knows_who_has_helpers() {
        let list = parse_list("async1\nping_pongs                (helpers: tcp4_echo_server)\n");
        assert_eq!(list[0].name, "async1");
        assert!(matches!(
            list[0].program,
            Program::Runner { has_helpers: false }
        ));
        assert_eq!(list[1].name, "ping_pongs");
        assert!(matches!(
            list[1].program,
            Program::Runner { has_helpers: true }
        ));
    }
}
