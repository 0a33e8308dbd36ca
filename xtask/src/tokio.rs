//! `cargo xtask tokio`: the crate beside tokio, on the same programs.
//!
//! `crates/versus` has the programs, each compiled for both runtimes. A workload runs in a process of
//! its own, which tells how long it took; a web server of hyper's is asked by `wrk`. On one thread
//! the server and `wrk` have a processor each; with a thread for each processor they share all of
//! them.

use crate::compile;
use crate::measure::family::Family;
use crate::measure::publish::Document;
use crate::measure::report::Report;
use crate::measure::turns::{Better, Measurement, Reading, Row, Subject};
use crate::measure::{command, echo};
use crate::programs::load::{Answers, said_by_wrk};
use crate::{selection, workspace};
use anyhow::{Context, Result, ensure};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

/// What to measure, and how often.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Rows by name, glob or prefix: `spawn`, `hyper*`. All if none is named.
    names: Vec<String>,
    /// How many turns each runtime has, for every row.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Only list the rows.
    #[arg(long)]
    list: bool,
    /// Write the tables into docs/TOKIO.md.
    #[arg(long, conflicts_with = "names")]
    publish: bool,
}

const TOKIO: &str = "tokio";
const PAGE: &str = "docs/TOKIO.md";

/// How many seconds a server is asked.
const SECONDS: u32 = 3;

/// How many connections are held idle.
const IDLE: u32 = 2000;

/// What a program of `crates/versus` prints.
const PROGRAMS: [(&str, Family, Option<Own>); 15] = [
    ("spawn", Family::Tasks, None),
    ("yield", Family::Tasks, None),
    ("channel-tasks", Family::Channels, None),
    ("channel-thread", Family::Channels, None),
    ("round-trips-thread", Family::Channels, None),
    ("echo-1", Family::Streams, None),
    ("echo-50", Family::Streams, None),
    ("echo-1000", Family::Streams, None),
    ("udp-1", Family::Udp, None),
    ("udp-50", Family::Udp, None),
    ("read-1", Family::Files, None),
    ("read-32", Family::Files, None),
    ("timers-100k", Family::Timers, Some(Own::LATENESS)),
    ("timers-1m", Family::Timers, Some(Own::LATENESS)),
    ("idle-tasks", Family::Memory, Some(Own::RESIDENT)),
];

/// Servers by the word that starts them, and at how many connections they are asked.
const SERVERS: [(&str, &str, u32); 4] = [
    ("hyper-1", "serve", 1),
    ("hyper-64", "serve", 64),
    ("hyper-1000", "serve", 1000),
    ("hyper-64-all-processors", "serve-on-all", 64),
];

/// A figure that only some workloads have.
#[derive(Clone, Copy)]
struct Own {
    suffix: &'static str,
    unit: &'static str,
    /// Whether the rate of such a workload says nothing.
    replaces_the_rate: bool,
}

impl Own {
    /// The timers of a workload end when they are due, whoever runs them.
    const LATENESS: Own = Own {
        suffix: " median lateness",
        unit: "µs",
        replaces_the_rate: true,
    };
    const RESIDENT: Own = Own {
        suffix: " memory",
        unit: "bytes",
        replaces_the_rate: true,
    };
}

#[derive(Clone, Copy)]
enum Work {
    Program(Family, Option<Own>),
    Server {
        word: &'static str,
        connections: u32,
    },
    IdleConnections,
}

struct Case {
    name: &'static str,
    work: Work,
    program: PathBuf,
}

fn works() -> impl Iterator<Item = (&'static str, Work)> {
    let programs = PROGRAMS
        .iter()
        .map(|(name, family, own)| (*name, Work::Program(*family, *own)));
    let servers = SERVERS.iter().map(|(name, word, connections)| {
        let (word, connections) = (*word, *connections);
        (*name, Work::Server { word, connections })
    });
    let idle = std::iter::once(("idle-connections", Work::IdleConnections));
    programs.chain(servers).chain(idle)
}

/// Runs the chore.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let all: Vec<&str> = works().map(|(name, _)| name).collect();
    let chosen = match options.names.is_empty() {
        true => all,
        false => selection::select(&all, &options.names)?,
    };
    if options.list {
        chosen.iter().for_each(|name| println!("{name}"));
        return Ok(ExitCode::SUCCESS);
    }
    let page = match options.publish {
        true => Some(Document::open(
            workspace::root(),
            PAGE,
            "cargo xtask tokio --publish",
        )?),
        false => None,
    };
    ensure!(compile::jobs() > 1, "server and client need a core each");
    workspace::require_tool("wrk", "wrk")?;
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, most, most)?;
    let program = build()?;
    let cases: Vec<Box<dyn Measurement>> = works()
        .filter(|(name, _)| chosen.contains(name))
        .map(|(name, work)| {
            let program = program.clone();
            Box::new(Case {
                name,
                work,
                program,
            }) as Box<dyn Measurement>
        })
        .collect();
    let remarks = vec![format!("tokio is {}.", version_of_tokio()?)];
    let dir = workspace::target_subdir("tokio")?;
    let mut report = Report::begin(dir, options.rounds, remarks)?;
    report.measure(&cases)?;
    let code = report.conclude()?;
    if let Some(page) = page {
        let verdict = report.verdict().join("\n\n");
        page.replace(&format!(
            "{}\n\n{verdict}\n\n{}\n{}",
            report.conditions(),
            report.family_tables(),
            report.row_tables()
        ))?;
    }
    Ok(code)
}

/// Builds the programs, optimised.
fn build() -> Result<PathBuf> {
    let mut build = workspace::cargo();
    build
        .args(["build", "--release", "--quiet", "-p", "blacklight-versus"])
        .current_dir(workspace::root());
    compile::run_quietly(build)?;
    Ok(workspace::target_dir()?.join("release/blacklight-versus"))
}

fn version_of_tokio() -> Result<String> {
    let metadata = workspace::cargo_metadata(&workspace::root().join("Cargo.toml"), &[])?;
    let packages = metadata["packages"].as_array().context("no packages")?;
    let tokio = packages.iter().find(|package| package["name"] == TOKIO);
    let version = tokio.and_then(|tokio| tokio["version"].as_str());
    Ok(version.context("tokio has no version")?.to_owned())
}

impl Measurement for Case {
    fn name(&self) -> &str {
        self.name
    }

    fn rows(&self) -> Vec<Row> {
        let row = |suffix: &str, unit, better, family| Row {
            name: format!("{}{suffix}", self.name),
            unit,
            better,
            family,
        };
        let rate = |family| row("", "per second", Better::Higher, family);
        let cpu = |family| row(" processor time", "ns", Better::Lower, family);
        match self.work {
            Work::Program(family, None) => vec![rate(family), cpu(family)],
            Work::Program(family, Some(own)) => {
                let figure = row(own.suffix, own.unit, Better::Lower, family);
                match family {
                    Family::Memory => vec![figure],
                    _ if own.replaces_the_rate => vec![cpu(family), figure],
                    _ => vec![rate(family), cpu(family), figure],
                }
            }
            Work::Server { .. } => vec![
                rate(Family::Programs),
                cpu(Family::Programs),
                row(" p99", "µs", Better::Lower, Family::Programs),
            ],
            Work::IdleConnections => vec![row(" memory", "bytes", Better::Lower, Family::Memory)],
        }
    }

    fn subjects(&self) -> Vec<Subject> {
        [Subject::OURS, TOKIO].map(Subject::without_library).into()
    }

    fn read(&self, subject: &Subject) -> Result<Reading> {
        match self.work {
            Work::Program(family, own) => {
                let said = command::output(
                    command::run(&self.program, subject).args([subject.name, self.name]),
                )?;
                let said = Said::read(&said).with_context(|| format!("it says {said}"))?;
                Ok(said.reading(family, own))
            }
            Work::Server { word, connections } => {
                let server = Server::start(&self.program, subject, word)?;
                let (answers, cpu_ns) = server.ask(connections)?;
                let p99 = answers.p99_us.context("wrk tells no percentiles")?;
                let cpu_each = cpu_ns / answers.count;
                Ok(Reading::from(vec![answers.per_second, cpu_each, p99]))
            }
            Work::IdleConnections => {
                let server = Server::start(&self.program, subject, "serve")?;
                Ok(Reading::from(vec![server.idle_bytes()?]))
            }
        }
    }
}

/// What a program has said.
struct Said {
    operations: f64,
    wall_s: f64,
    cpu_s: f64,
    own: Option<f64>,
}

impl Said {
    fn read(text: &str) -> Option<Said> {
        let mut numbers = text.split_whitespace().map(|word| word.parse().ok());
        Some(Said {
            operations: numbers.next()??,
            wall_s: numbers.next()??,
            cpu_s: numbers.next()??,
            own: numbers.next().flatten(),
        })
    }

    /// The figures, in the order of the rows.
    fn reading(&self, family: Family, own: Option<Own>) -> Reading {
        let (rate, cpu) = (
            self.operations / self.wall_s,
            self.cpu_s * 1e9 / self.operations,
        );
        let figures = match (family, own) {
            (Family::Memory, _) => vec![],
            (_, Some(own)) if own.replaces_the_rate => vec![cpu],
            _ => vec![rate, cpu],
        };
        Reading {
            values: figures.into_iter().chain(self.own).collect(),
            cpu: Some(Duration::from_secs_f64(self.cpu_s)),
        }
    }
}

/// A server that runs, until this is dropped.
struct Server {
    child: Child,
    address: SocketAddr,
    /// Whether it has a processor of its own.
    is_alone: bool,
}

impl Server {
    fn start(program: &Path, subject: &Subject, word: &str) -> Result<Server> {
        let is_alone = word == "serve";
        // taskset turns into the program, so that the child is the server itself.
        let mut start = match is_alone {
            true => Command::new("taskset"),
            false => Command::new(program),
        };
        if is_alone {
            start.args(["-c", echo::SERVER_CPU]).arg(program);
        }
        let mut child = start
            .args([subject.name, word])
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start the server")?;
        let mut line = String::new();
        let output = child.stdout.take().context("a server without output")?;
        let read = BufReader::new(output).read_line(&mut line);
        match (read, line.trim().parse()) {
            (Ok(_), Ok(address)) => Ok(Server {
                child,
                address,
                is_alone,
            }),
            _ => {
                child.kill()?;
                child.wait()?;
                anyhow::bail!("the server says {line:?}");
            }
        }
    }

    fn proc(&self, file: &str) -> PathBuf {
        let dir = Path::new("/proc").join(self.child.id().to_string());
        dir.join(file)
    }

    /// How long the threads of the server have been on a processor.
    fn processor_ns(&self) -> Result<f64> {
        let mut sum = 0.0;
        for thread in fs::read_dir(self.proc("task")).context("the server has ended")? {
            let text = fs::read_to_string(thread?.path().join("schedstat"))?;
            let first = text.split_whitespace().next();
            let ns: Option<f64> = first.and_then(|word| word.parse().ok());
            sum += ns.with_context(|| format!("the kernel says {text:?}"))?;
        }
        Ok(sum)
    }

    /// How much memory the server has resident.
    fn resident_bytes(&self) -> Result<f64> {
        let text = fs::read_to_string(self.proc("status")).context("the server has ended")?;
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let number = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
        Ok(number.context("the kernel does not say how much is resident")? * 1024.0)
    }

    /// What wrk says, and the server's processor time.
    fn ask(&self, connections: u32) -> Result<(Answers, f64)> {
        // A first request is not like the others.
        self.idle_connection()?;
        let before = self.processor_ns()?;
        let mut wrk = match self.is_alone {
            true => Command::new("taskset"),
            false => Command::new("wrk"),
        };
        if self.is_alone {
            wrk.args(["-c", echo::CLIENT_CPU, "wrk"]);
        }
        wrk.args(["--latency", "--threads", "1"])
            .args(["--connections", &connections.to_string()])
            .args(["--duration", &SECONDS.to_string()])
            .arg(format!("http://{}/", self.address));
        let text = command::output(&mut wrk)?;
        let spent = self.processor_ns()? - before;
        let answers = said_by_wrk(&text).with_context(|| format!("wrk says {text}"))?;
        Ok((answers, spent))
    }

    /// A connection that was used once and is kept.
    fn idle_connection(&self) -> Result<TcpStream> {
        let mut stream = TcpStream::connect(self.address)?;
        stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
        let (mut answer, mut room) = (Vec::new(), [0; 1024]);
        while !answer.ends_with(b"Hello, world!\n") {
            let count = stream.read(&mut room)?;
            ensure!(count > 0, "the server does not keep a connection");
            answer.extend_from_slice(&room[..count]);
        }
        Ok(stream)
    }

    /// What each of so many idle connections has resident.
    fn idle_bytes(&self) -> Result<f64> {
        self.idle_connection()?;
        let before = self.resident_bytes()?;
        let held: Vec<_> = (0..IDLE)
            .map(|_| self.idle_connection())
            .collect::<Result<_>>()?;
        let grown = self.resident_bytes()? - before;
        drop(held);
        Ok(grown / f64::from(IDLE))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // If it has ended already, there is nothing left to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_says_what_it_took() {
        let said = Said::read("1000 0.5 0.25 80\n").unwrap();
        assert_eq!(
            said.reading(Family::Tasks, None).values,
            [2000.0, 250_000.0, 80.0]
        );
        let timers = said.reading(Family::Timers, Some(Own::LATENESS));
        assert_eq!(timers.values, [250_000.0, 80.0]);
        assert_eq!(
            said.reading(Family::Memory, Some(Own::RESIDENT)).values,
            [80.0]
        );
        let short = Said::read("1000 0.5 0.25").unwrap();
        assert_eq!(short.reading(Family::Tasks, None).values.len(), 2);
        assert!(Said::read("1000 0.5").is_none());
        assert!(Said::read("a workload was lost").is_none());
    }

    #[test]
    fn every_row_has_a_name_of_its_own() {
        let rows = works().flat_map(|(name, work)| {
            let program = PathBuf::new();
            Case {
                name,
                work,
                program,
            }
            .rows()
        });
        let mut names: Vec<String> = rows.map(|row| row.name).collect();
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn the_page_has_a_place_for_the_figures() {
        let page = Document::open(workspace::root(), PAGE, "cargo xtask tokio --publish");
        assert!(page.is_ok());
    }
}
