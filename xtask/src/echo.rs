//! `cargo xtask bench-echo`: what a server's processor spends on echoing 64 bytes.
//!
//! Three servers take turns: one on the original, one on ours through the C face (both are
//! the same executable), and one on nothing but epoll, which is the floor. The client is the
//! same for all, and each side has a core of its own. The servers on libuv handle their memory
//! as libuv's guide teaches it. What counts is the median of the rounds,
//! of the server's own processor time between the last connection and the last answer.
//! Where strace is installed, the server's system calls are counted too, in a run of its own.

mod gaps;

use crate::compile::run_quietly;
use crate::original::Original;
use crate::{library, workspace};
use anyhow::{Context, Result, ensure};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

const SERVER_CPU: &str = "0";
const CLIENT_CPU: &str = "1";

/// How many connections, and how many messages over all of them, which they divide.
const LOADS: [(u32, u32); 3] = [(1, 10_000), (50, 50_000), (500, 50_000)];

/// As many messages as are counted system calls of, which strace makes slow.
const TRACED: u32 = 5_000;

/// Measure a server's processor time per 64-byte echo.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// How many times each server runs under each load.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// The mechanism our library is to wait with; its own choice if not given.
    #[arg(long)]
    poller: Option<crate::conformance::Poller>,
    /// Give each connection a buffer and a request of its own, in place of allocating them for
    /// each message as the server of libuv's guide does.
    #[arg(long)]
    own_buffers: bool,
    /// Measure one connection with pauses between messages instead: processor time and latency, with
    /// the original, with ours, and with ours told never to spin, as a table in Markdown.
    #[arg(long)]
    gaps: bool,
}

/// One of the servers in comparison.
struct Server {
    name: &'static str,
    program: PathBuf,
    library: PathBuf,
}

/// What a server said of itself: nanoseconds and turns of its loop per message.
struct Cost {
    ns: f64,
    turns: f64,
}

struct Echo {
    servers: [Server; 3],
    client: PathBuf,
    poller: Option<&'static str>,
    own_buffers: bool,
}

fn compile(dir: &Path, name: &str, arguments: &[&Path]) -> Result<PathBuf> {
    let program = dir.join(name);
    let mut command = Command::new("gcc");
    command
        .args(["-O2", "-Wall", "-Wextra", "-o"])
        .arg(&program)
        .arg(workspace::root().join(format!("xtask/echo/{name}.c")));
    if let [include, lib] = arguments {
        command
            .arg("-I")
            .arg(include)
            .arg("-L")
            .arg(lib)
            .arg("-luv");
    }
    run_quietly(command)?;
    Ok(program)
}

impl Echo {
    fn build(options: &Options) -> Result<Echo> {
        let dir = workspace::target_subdir("echo")?;
        let ours = dir.join("ours");
        library::snapshot(&library::stage_ours()?.join("libuv.so.1"), &ours)?;
        let original = Original::obtain()?.library()?;
        let original = original.parent().context("a library without a directory")?;
        let program = compile(&dir, "server-uv", &[&workspace::include_dir(), &ours])?;
        let bare = compile(&dir, "server-bare", &[])?;
        let server = |name, program: &Path, library: &Path| Server {
            name,
            program: program.to_owned(),
            library: library.to_owned(),
        };
        Ok(Echo {
            servers: [
                server("original", &program, original),
                server("ours", &program, &ours),
                server("bare epoll", &bare, &dir),
            ],
            client: compile(&dir, "client", &[])?,
            poller: options.poller.map(|poller| poller.name()),
            own_buffers: options.own_buffers,
        })
    }

    /// Runs a server with the client under a load, perhaps by way of another program.
    fn run(&self, server: &Server, via: &[&str], connections: u32, messages: u32) -> Result<Cost> {
        let (connections, messages) = (connections.to_string(), messages.to_string());
        let mut command = Command::new("timeout");
        command
            .arg("120")
            .args(via)
            .arg(&server.program)
            .args([SERVER_CPU, &connections, &messages])
            .args(self.own_buffers.then_some("own"))
            .env("LD_LIBRARY_PATH", &server.library)
            .stdout(Stdio::piped());
        if let Some(poller) = self.poller {
            command.env("BLACKLIGHT_POLLER", poller);
        }
        let mut child = command.spawn().context("cannot start the server")?;
        let mut output = BufReader::new(child.stdout.take().context("a server without output")?);
        let mut port = String::new();
        output.read_line(&mut port)?;
        let client = Command::new("timeout")
            .arg("120")
            .arg(&self.client)
            .args([CLIENT_CPU, &connections, &messages, port.trim()])
            .status()
            .context("cannot run the client")?;
        ensure!(
            client.success(),
            "the client of {} failed: {client}",
            server.name
        );
        let mut text = String::new();
        output.read_to_string(&mut text)?;
        let status = child.wait()?;
        ensure!(
            status.success(),
            "the server on {} failed: {status}",
            server.name
        );
        let mut words = text.split_whitespace().map(str::parse);
        match (words.next(), words.next()) {
            (Some(Ok(ns)), Some(Ok(turns))) => Ok(Cost { ns, turns }),
            _ => anyhow::bail!("the server on {} says {text:?}", server.name),
        }
    }

    /// How many system calls a message takes: those of a long run without those of a short.
    fn system_calls(&self, server: &Server, connections: u32) -> Result<f64> {
        let count = |messages: u32| -> Result<f64> {
            let file = workspace::target_subdir("echo")?.join("calls");
            let path = file
                .to_str()
                .context("a target directory that is no text")?;
            let via = ["strace", "-f", "-c", "-U", "name,calls", "-o", path];
            self.run(server, &via, connections, messages)?;
            let table = std::fs::read_to_string(&file)?;
            let total = table.lines().find(|line| line.starts_with("total"));
            let total = total.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
            total.with_context(|| format!("strace counts no calls: {table}"))
        };
        Ok((count(2 * TRACED)? - count(TRACED)?) / f64::from(TRACED))
    }

    fn measure(&self, rounds: usize, load: (u32, u32)) -> Result<[Cost; 3]> {
        let mut costs = [const { Vec::new() }; 3];
        for round in 0..rounds {
            // Whoever goes first meets a colder machine.
            for turn in 0..self.servers.len() {
                let at = (round + turn) % self.servers.len();
                costs[at].push(self.run(&self.servers[at], &[], load.0, load.1)?);
            }
        }
        Ok(costs.map(|costs| Cost {
            ns: median(costs.iter().map(|cost| cost.ns)),
            turns: median(costs.iter().map(|cost| cost.turns)),
        }))
    }
}

pub(crate) fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Runs the chore.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    ensure!(cores > 1, "server and client need a core each");
    let echo = Echo::build(options)?;
    if options.gaps {
        gaps::run(&echo, options.rounds.max(1))?;
        return Ok(ExitCode::SUCCESS);
    }
    let traces = Command::new("strace").arg("-V").output().is_ok();
    println!("per 64-byte echo: the server's processor time; turns of its loop; system calls");
    for load in LOADS {
        let costs = echo.measure(options.rounds.max(1), load)?;
        println!("{} connections", load.0);
        for (server, cost) in echo.servers.iter().zip(&costs) {
            print!(
                "  {:<12}{:>8.0} ns{:>8.3} turns",
                server.name, cost.ns, cost.turns
            );
            match traces {
                true => println!("{:>8.3} calls", echo.system_calls(server, load.0)?),
                false => println!(),
            }
        }
        let [original, ours, bare] = costs.map(|cost| cost.ns);
        println!(
            "  ours/original {:.2}, ours/bare {:.2}",
            ours / original,
            ours / bare
        );
    }
    Ok(ExitCode::SUCCESS)
}
