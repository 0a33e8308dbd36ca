//! libuv's own benchmark programs, and some that its list lacks, each run in a sandbox of its own.
//!
//! Each executable is compiled once against the original's header, and finds whichever library its
//! sandbox has when it starts.

mod figures;
pub(crate) mod own;

use super::family::Family;
use super::libraries::Libraries;
use super::turns::{Measurement, Reading, Row, Subject};
use crate::original::Original;
use crate::sandbox::{Ended, Job, Run};
use anyhow::{Context, Result, bail, ensure};
use figures::Figure;
use own::Own;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;
use std::time::Duration;

/// An entry of libuv's list that measures nothing.
const NOT_A_MEASUREMENT: &str = "sizes";

/// What is measured of libuv's list when nothing is named: what takes less than a quarter of a minute.
const QUICK: [&str; 8] = [
    "loop_count",
    "loop_count_timed",
    "loop_alive",
    "async2",
    "async_pummel_1",
    "async_pummel_2",
    "million_async",
    "million_timers",
];

/// The benchmark that takes the most memory, some 2 GB.
const LARGEST: &str = "million_timers";

const LIMIT: Duration = Duration::from_secs(300);

/// A benchmark: its name, who runs it, and what it yields.
#[derive(Clone)]
pub(crate) struct Benchmark {
    pub(crate) name: String,
    program: Program,
    figures: &'static [Figure],
}

#[derive(Clone, Copy)]
enum Program {
    /// An entry of the runner's list.
    Runner {
        /// Whether other processes take part, which only the runner can start.
        has_helpers: bool,
    },
    Own(&'static Own),
}

/// All benchmarks, and the executables that they are in.
pub(crate) struct Catalogue {
    runner: PathBuf,
    /// The executables of our own benchmarks.
    own_dir: PathBuf,
    pub(crate) benchmarks: Vec<Benchmark>,
}

impl Catalogue {
    pub(crate) fn build(original: &Original) -> Result<Catalogue> {
        let runner = original.benchmark_runner()?;
        let mut benchmarks = list(&runner, &original.library()?)?;
        benchmarks.extend(own::ALL.iter().map(|own| Benchmark {
            name: own.name.to_owned(),
            program: Program::Own(own),
            figures: own.figures,
        }));
        Ok(Catalogue {
            runner,
            own_dir: own::build(original)?,
            benchmarks,
        })
    }
}

impl Benchmark {
    /// Whether it is measured when nothing is named.
    pub(crate) fn is_quick(&self) -> bool {
        match self.program {
            Program::Runner { .. } => QUICK.contains(&self.name.as_str()),
            Program::Own(_) => true,
        }
    }

    /// The families of its rows, each once.
    pub(crate) fn families(&self) -> Vec<Family> {
        let mut families: Vec<Family> = self.figures.iter().map(|figure| figure.family).collect();
        families.dedup();
        families
    }
}

fn list(runner: &Path, original: &Path) -> Result<Vec<Benchmark>> {
    let library = original.parent().context("a library without a directory")?;
    let output = Command::new(runner)
        .arg("--list")
        .env("LD_LIBRARY_PATH", library)
        .output()
        .with_context(|| format!("cannot run {}", runner.display()))?;
    let list = parse_list(&String::from_utf8_lossy(&output.stdout))?;
    ensure!(
        !list.is_empty(),
        "the runner lists no benchmarks: {output:?}"
    );
    Ok(list)
}

/// Every benchmark must be declared, with the family of each of its rows.
fn parse_list(output: &str) -> Result<Vec<Benchmark>> {
    let benchmark = |line: &str| {
        let name = line.split_whitespace().next()?;
        let figures = figures::of(name)
            .with_context(|| format!("measure/benchmarks/figures.rs does not declare {name}"));
        (name != NOT_A_MEASUREMENT).then(|| {
            Ok(Benchmark {
                name: name.to_owned(),
                program: Program::Runner {
                    has_helpers: line.contains("(helpers:"),
                },
                figures: figures?,
            })
        })
    };
    output.lines().filter_map(benchmark).collect()
}

/// A benchmark with what it needs to run.
pub(crate) struct Prepared {
    benchmark: Benchmark,
    catalogue: Rc<Catalogue>,
    libraries: Rc<Libraries>,
}

impl Prepared {
    pub(crate) fn new(
        benchmark: &Benchmark,
        catalogue: &Rc<Catalogue>,
        libraries: &Rc<Libraries>,
    ) -> Prepared {
        Prepared {
            benchmark: benchmark.clone(),
            catalogue: Rc::clone(catalogue),
            libraries: Rc::clone(libraries),
        }
    }

    /// The program and its arguments. Without helpers a benchmark of the runner's runs as a single
    /// process, which is what its time is taken of.
    fn command(&self, subject: &Subject) -> (PathBuf, Vec<&str>) {
        let name = self.benchmark.name.as_str();
        match self.benchmark.program {
            Program::Runner { has_helpers } => {
                let arguments = if has_helpers {
                    vec![name]
                } else {
                    vec![name, name]
                };
                (self.catalogue.runner.clone(), arguments)
            }
            Program::Own(own) => {
                let server = own.has_bare_server.then_some(own::server(subject));
                let arguments = server.into_iter().chain(own.arguments.iter().copied());
                (own.program(&self.catalogue.own_dir), arguments.collect())
            }
        }
    }
}

impl Measurement for Prepared {
    fn name(&self) -> &str {
        &self.benchmark.name
    }

    fn rows(&self) -> Vec<Row> {
        let figures = self.benchmark.figures.iter();
        figures.map(|figure| figure.row(self.name())).collect()
    }

    fn subjects(&self) -> Vec<Subject> {
        match self.benchmark.program {
            Program::Own(own) if own.has_bare_server => {
                let mut subjects = self.libraries.subjects();
                subjects.push(self.libraries.bare_loop());
                subjects
            }
            Program::Own(own) if own.is_recorded => self.libraries.subjects_and_recording(),
            _ => self.libraries.subjects(),
        }
    }

    fn read(&self, subject: &Subject) -> Result<Reading> {
        if self.benchmark.name == LARGEST {
            touch_memory();
        }
        let (program, arguments) = self.command(subject);
        let library = subject.library.as_ref();
        let run = self.libraries.sandbox.run(&Job {
            program: &program,
            arguments: &arguments,
            library_dir: library.context("a subject without a library")?,
            environment: &subject.environment,
            tool: None,
            limit: LIMIT,
        })?;
        read(&run, self.benchmark.figures)
    }
}

/// Has the machine's memory there, as much as the largest benchmark takes. A virtual machine may
/// give memory that is not in use back to its host, and the next program that touches it is charged
/// seconds for getting it again.
fn touch_memory() {
    std::hint::black_box(vec![1u8; 5 << 29]);
}

/// Reads the figures of a run, or says why it has none.
fn read(run: &Run, figures: &[Figure]) -> Result<Reading> {
    if let Some(function) = run.missing_function() {
        bail!("the library has no {function}");
    }
    let last_line = run.output.lines().last().unwrap_or("no output");
    match run.ended {
        Ended::Exited(0) => {}
        Ended::Exited(code) => bail!("exit code {code}: {last_line}"),
        Ended::Killed(signal) => bail!("killed by signal {signal}: {last_line}"),
        Ended::TimedOut => bail!("timed out after {} s", LIMIT.as_secs()),
    }
    let value = |figure: &Figure| {
        let value = figure.value(run);
        value.with_context(|| format!("cannot read {last_line:?}"))
    };
    Ok(Reading {
        values: figures.iter().map(value).collect::<Result<_>>()?,
        cpu: Some(run.cpu),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_knows_which_benchmarks_have_helpers() {
        let list = "async1\nsizes\nping_pongs                (helpers: tcp4_echo_server)\n";
        let list = parse_list(list).unwrap();
        let names: Vec<&str> = list.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["async1", "ping_pongs"]);
        let has_helpers = |one: &Benchmark| match one.program {
            Program::Runner { has_helpers } => has_helpers,
            Program::Own(_) => panic!("not ours"),
        };
        assert!(!has_helpers(&list[0]) && has_helpers(&list[1]));
    }

    #[test]
    fn a_benchmark_without_a_family_is_an_error() {
        let Err(error) = parse_list("async1\nbrand_new\n") else {
            panic!("it is declared");
        };
        assert!(format!("{error:#}").contains("does not declare brand_new"));
    }

    #[test]
    fn a_run_without_its_figures_is_an_error() {
        let run = |ended, output: &str| Run {
            ended,
            output: output.to_owned(),
            reports: Vec::new(),
            wall: Duration::from_secs(3),
            cpu: Duration::from_secs(2),
        };
        let figures = figures::of("spawn").unwrap();
        let good = read(&run(Ended::Exited(0), "spawn: 7 spawns/s\n"), figures).unwrap();
        assert_eq!(good.values, [7.0]);
        assert_eq!(good.cpu, Some(Duration::from_secs(2)));
        assert!(read(&run(Ended::Exited(0), "nothing\n"), figures).is_err());
        assert!(read(&run(Ended::Exited(1), "spawn: 7 spawns/s\n"), figures).is_err());
        assert!(read(&run(Ended::TimedOut, "spawn: 7 spawns/s\n"), figures).is_err());
    }
}
