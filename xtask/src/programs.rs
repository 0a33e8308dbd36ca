//! `cargo xtask programs`: programs that people use, on the libuv that they have and on ours.
//!
//! A program that carries a libuv inside runs as it is, and on ours as `blacklight run` starts it;
//! a program that loads one runs on the original and on ours. Both take turns. A turn is a sandbox of
//! its own with the program and what puts it under load, on the same processors: [`turn`] is the
//! part inside. What the launcher takes is not measured, except in the rows that say so.

mod catalogue;
pub(crate) mod load;
mod table;
mod turn;

use crate::measure::family::Family;
use crate::measure::libraries::{Choice, Libraries};
use crate::measure::report::Report;
use crate::measure::turns::{Better, Measurement, Reading, Row, Subject};
use crate::sandbox::{Ended, Job, Sandbox};
use crate::{library, selection, workspace};
use anyhow::{Context, Result, bail};
use catalogue::{Installed, PROGRAMS, Program, Workload};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;
use turn::{Figures, Turn, Work};

/// A turn that takes longer has come to a standstill.
const LIMIT: Duration = Duration::from_secs(180);

/// What to measure, and how often.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Programs or rows: `node26`, `node26/http-1`, `*/start`. All if none is named.
    names: Vec<String>,
    /// How many turns each library has, for every row.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// How many seconds of a turn count.
    #[arg(long, default_value_t = 2)]
    seconds: u32,
    /// Give ours another turn in which it never spins before it sleeps, to tell what spinning does.
    #[arg(long)]
    without_spinning: bool,
    /// Only list the rows.
    #[arg(long)]
    list: bool,
    /// Write the table and the chart into docs.
    #[arg(long)]
    publish: bool,
    #[command(flatten)]
    choice: Choice,
}

/// What all turns share.
struct Stage {
    sandbox: Sandbox,
    /// The `blacklight` command, as it is called inside.
    command: PathBuf,
    /// Where the clients lie outside and inside.
    clients: (PathBuf, PathBuf),
    seconds: u32,
}

/// A program at one of its workloads.
struct Case {
    name: String,
    program: Program,
    installed: Rc<Installed>,
    workload: Workload,
    subjects: Vec<Subject>,
    stage: Rc<Stage>,
}

type Cases = Vec<Box<dyn Measurement>>;

/// Takes a turn inside a sandbox.
pub(crate) fn take_turn(spec: &str) -> Result<ExitCode> {
    turn::run(spec).map(|()| ExitCode::SUCCESS)
}

/// Runs the chore.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let scripts = workspace::root().join("xtask/programs");
    let names: Vec<String> = PROGRAMS
        .iter()
        .flat_map(|program| row_names(program, &scripts))
        .collect();
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    let chosen = match options.names.is_empty() {
        true => all,
        false => selection::select(&all, &options.names)?,
    };
    if options.list {
        chosen.iter().for_each(|name| println!("{name}"));
        return Ok(ExitCode::SUCCESS);
    }
    workspace::require_tool("wrk", "wrk")?;
    workspace::require_tool("dnsperf", "dnsperf")?;
    let (cases, remarks) = prepare(options, &chosen, scripts)?;
    let dir = workspace::target_subdir("programs")?;
    let mut report = Report::begin(dir.clone(), options.rounds, remarks)?;
    report.measure(&cases)?;
    let ended = report.conclude()?;
    table::write(&report, &dir)?;
    if options.publish {
        table::publish(&report, workspace::root())?;
    }
    Ok(ended)
}

fn row_names(program: &Program, scripts: &Path) -> Vec<String> {
    let workloads = program.workloads(scripts);
    let name = |workload: &Workload| format!("{}/{}", program.name, workload.name);
    workloads.iter().map(name).collect()
}

/// The chosen cases, and what a reader has to know about them.
fn prepare(options: &Options, chosen: &[&str], scripts: PathBuf) -> Result<(Cases, Vec<String>)> {
    let libraries = Libraries::build(&options.choice)?;
    let (mut subjects, mut remarks) = (libraries.subjects(), libraries.remarks());
    if options.without_spinning {
        let name = "ours, never spinning";
        let subject = Subject::on_library(name, libraries.ours()).with("BLACKLIGHT_SPIN", "0");
        subjects.push(subject.only_shown());
    }
    let mut sandbox = libraries.sandbox;
    let command_dir = workspace::target_subdir("programs/command")?;
    workspace::copy_into_place(
        &library::command("release")?,
        &command_dir.join("blacklight"),
    )?;
    let clients = workspace::target_subdir("clients")?;
    let scripts = sandbox.add_room("programs", scripts);
    let stage = Rc::new(Stage {
        command: sandbox.add_room("command", command_dir).join("blacklight"),
        clients: (clients.clone(), sandbox.add_room("clients", clients)),
        sandbox,
        seconds: options.seconds,
    });
    remarks.push(
        "The original is the libuv that a program carries inside, and 1.53.0 for one that loads it. \
         The program and what puts it under load share the processors."
            .to_owned(),
    );
    let mut cases = Cases::new();
    for program in PROGRAMS {
        let mut workloads = program.workloads(&scripts);
        workloads
            .retain(|workload| chosen.contains(&&*format!("{}/{}", program.name, workload.name)));
        if workloads.is_empty() {
            continue;
        }
        let provided = program.provide().and_then(|installed| {
            let about = program.describe(&installed)?;
            Ok((Rc::new(installed), about))
        });
        let installed = match provided {
            Ok((installed, about)) => {
                remarks.push(format!("`{}` is {about}.", program.name));
                installed
            }
            Err(error) => {
                // Without a network there is no program, and the others can be measured still.
                remarks.push(format!("`{}` is left out: {error:#}.", program.name));
                continue;
            }
        };
        for workload in workloads {
            cases.push(Box::new(Case {
                name: format!("{}/{}", program.name, workload.name),
                program,
                installed: Rc::clone(&installed),
                workload,
                subjects: subjects.clone(),
                stage: Rc::clone(&stage),
            }));
        }
    }
    Ok((cases, remarks))
}

impl Stage {
    /// A path outside as the programs inside see it.
    fn inside(&self, path: &Path) -> PathBuf {
        let (outside, inside) = &self.clients;
        match path.strip_prefix(outside) {
            Ok(rest) => inside.join(rest),
            Err(_) => path.to_owned(),
        }
    }
}

impl Case {
    /// What the part inside is told.
    fn turn(&self, subject: &Subject) -> Turn {
        let (stage, installed) = (&self.stage, &self.installed);
        let inside = |path: &Path| stage.inside(path).display().to_string();
        let mut program = vec![inside(&installed.program)];
        program.extend(self.workload.arguments.iter().cloned());
        let libraries = PathBuf::from(crate::sandbox::init::LIBRARIES);
        let variables = subject.environment.iter();
        let mut environment: Vec<(String, String)> = variables
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let dirs = |dirs: &[PathBuf]| -> Vec<PathBuf> {
            dirs.iter().map(|dir| stage.inside(dir)).collect()
        };
        let mut search = dirs(&installed.library_dirs);
        let is_inside = self.program.is_carrier() && subject.name == Subject::ORIGINAL;
        let mut launcher = Vec::new();
        if self.program.is_carrier() && !is_inside {
            let words = ["run", "--library"];
            launcher.push(stage.command.display().to_string());
            launcher.extend(words.map(str::to_owned));
            launcher.extend([libraries.display().to_string(), "--".to_owned()]);
        } else if !is_inside {
            search.insert(0, libraries.clone());
        }
        let mut add = |name: &str, dirs: &[PathBuf]| {
            if !dirs.is_empty() {
                environment.push((name.to_owned(), catalogue::join(dirs)));
            }
        };
        add("LD_LIBRARY_PATH", &search);
        add("PYTHONPATH", &dirs(&installed.python_dirs));
        Turn {
            launcher,
            program,
            environment,
            library: (!is_inside).then(|| libraries.join("libuv.so.1")),
            seconds: stage.seconds,
            work: self.workload.work.clone(),
        }
    }

    /// Whether there are latencies besides the rate and the processor time.
    fn latencies(&self) -> &'static [&'static str] {
        match &self.workload.work {
            Work::Serve { load, .. } if load.has_percentiles() => &[table::P50, table::P99],
            Work::Call | Work::Start { .. } => &[table::P50, table::P99],
            Work::Serve { .. } => &[],
        }
    }
}

impl Measurement for Case {
    fn name(&self) -> &str {
        &self.name
    }

    fn rows(&self) -> Vec<Row> {
        let row = |suffix: &str, unit, better| Row {
            name: format!("{}{suffix}", self.name),
            unit,
            better,
            family: Family::Programs,
        };
        let mut rows = vec![
            row("", "per second", Better::Higher),
            row(table::CPU, "µs", Better::Lower),
        ];
        let latencies = self.latencies().iter();
        rows.extend(latencies.map(|suffix| row(suffix, "µs", Better::Lower)));
        rows
    }

    fn subjects(&self) -> Vec<Subject> {
        self.subjects.clone()
    }

    fn read(&self, subject: &Subject) -> Result<Reading> {
        let spec = serde_json::to_string(&self.turn(subject))?;
        let library = subject.library.as_deref();
        let run = self.stage.sandbox.run(&Job {
            program: self.stage.sandbox.executable(),
            arguments: &["programs-turn", &spec],
            library_dir: library.context("a subject without a library")?,
            environment: &[],
            tool: None,
            limit: LIMIT,
        })?;
        match run.ended {
            Ended::Exited(0) => {}
            Ended::TimedOut => bail!("not over after {} s", LIMIT.as_secs()),
            _ => bail!("{}", run.output.trim().trim_start_matches("error: ")),
        }
        let figures: Figures = serde_json::from_str(run.output.trim())
            .with_context(|| format!("it says {}", run.output))?;
        let mut values = vec![figures.per_second, figures.cpu_us];
        values.extend(figures.p50_us);
        values.extend(figures.p99_us);
        Ok(Reading {
            values,
            cpu: Some(run.cpu),
        })
    }
}
