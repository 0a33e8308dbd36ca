//! `cargo xtask wrk`: hyper on our loop against hyper on tokio's runtime of one thread.
//!
//! Two examples that differ only in what hyper runs on take turns as the server. `wrk` asks
//! them over and over; each side has a core of its own. What counts is the median of the
//! rounds: of the requests per second, and of the server's processor time for a request, which
//! depends less on what else the machine does. At the end each holds idle connections: what it
//! has resident more than before, divided by their number, is what one costs.

use crate::compile::run_quietly;
use crate::echo::median;
use crate::workspace;
use anyhow::{Context, Result, ensure};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};

const SERVER_CPU: &str = "0";
const CLIENT_CPU: &str = "1";

/// The examples in comparison, and what they run on.
const SERVERS: [(&str, &str); 2] = [("tokio", "http_hello_tokio"), ("ours", "http_hello")];

/// Compare a hyper server on our loop with the same server on tokio, by wrk.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// How many times each server runs.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// How many seconds each run takes.
    #[arg(long, default_value_t = 5)]
    seconds: u32,
    /// How many connections ask at once.
    #[arg(long, default_value_t = 50)]
    connections: u32,
    /// How many connections are held idle.
    #[arg(long, default_value_t = 2000)]
    idle: u32,
}

/// A server that runs, until this is dropped.
struct Server {
    child: Child,
    address: SocketAddr,
}

impl Server {
    fn start(example: &str) -> Result<Server> {
        // taskset turns into the program, so that the child is the server itself.
        let mut child = Command::new("taskset")
            .args(["-c", SERVER_CPU])
            .arg(
                workspace::target_dir()?
                    .join("release/examples")
                    .join(example),
            )
            .arg("127.0.0.1:0")
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start the server")?;
        let mut line = String::new();
        let output = child.stdout.take().context("a server without output")?;
        let read = BufReader::new(output).read_line(&mut line);
        let address = line
            .trim()
            .rsplit(' ')
            .next()
            .and_then(|word| word.parse().ok());
        match (read, address) {
            (Ok(_), Some(address)) => Ok(Server { child, address }),
            _ => {
                child.kill()?;
                child.wait()?;
                anyhow::bail!("{example} says {line:?}");
            }
        }
    }

    fn proc(&self, file: &str) -> Result<String> {
        let path = Path::new("/proc")
            .join(self.child.id().to_string())
            .join(file);
        fs::read_to_string(path).context("the server has ended")
    }

    /// How long the server has been on its processor.
    fn processor_ns(&self) -> Result<f64> {
        let text = self.proc("schedstat")?;
        let first = text.split_whitespace().next();
        let ns = first.and_then(|word| word.parse().ok());
        ns.with_context(|| format!("the kernel says {text:?}"))
    }

    /// How much memory the server has resident.
    fn resident_bytes(&self) -> Result<f64> {
        let text = self.proc("status")?;
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let number = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
        Ok(number.context("the kernel does not say how much is resident")? * 1024.0)
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
}

impl Drop for Server {
    fn drop(&mut self) {
        // If it has ended already, there is nothing left to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What one run came to.
struct Outcome {
    per_second: f64,
    ns_each: f64,
}

/// The number in the line of wrk's that has a phrase in it.
fn number(text: &str, phrase: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.contains(phrase))?;
    let mut words = line.split_whitespace();
    words.find_map(|word| word.parse().ok())
}

fn ask(server: &Server, options: &Options) -> Result<Outcome> {
    // A first request is not like the others.
    server.idle_connection()?;
    let before = server.processor_ns()?;
    let output = Command::new("taskset")
        .args(["-c", CLIENT_CPU, "wrk", "--threads", "1"])
        .args(["--connections", &options.connections.to_string()])
        .args(["--duration", &options.seconds.to_string()])
        .arg(format!("http://{}/", server.address))
        .output()
        .context("cannot run wrk")?;
    let spent = server.processor_ns()? - before;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(
        output.status.success() && !text.contains("errors") && !text.contains("Non-2xx"),
        "wrk failed: {text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    match (number(&text, "Requests/sec:"), number(&text, "requests in")) {
        (Some(per_second), Some(requests)) => Ok(Outcome {
            per_second,
            ns_each: spent / requests,
        }),
        _ => anyhow::bail!("wrk says {text}"),
    }
}

fn idle_bytes(example: &str, connections: u32) -> Result<f64> {
    let server = Server::start(example)?;
    server.idle_connection()?;
    let before = server.resident_bytes()?;
    let held: Vec<_> = (0..connections)
        .map(|_| server.idle_connection())
        .collect::<Result<_>>()?;
    let grown = server.resident_bytes()? - before;
    drop(held);
    Ok(grown / f64::from(connections))
}

fn build() -> Result<()> {
    workspace::require_tool("wrk", "wrk")?;
    let mut build = workspace::cargo();
    build.args(["build", "--release", "--quiet", "-p", "blacklight"]);
    for (_, example) in SERVERS {
        build.args(["--example", example]);
    }
    build.current_dir(workspace::root());
    run_quietly(build)
}

/// Runs the chore.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    ensure!(cores > 1, "server and client need a core each");
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE)?;
    setrlimit(Resource::RLIMIT_NOFILE, most, most)?;
    build()?;
    let mut outcomes = [const { Vec::new() }; 2];
    for round in 0..options.rounds.max(1) {
        // Whoever goes first meets a colder machine.
        for turn in 0..SERVERS.len() {
            let at = (round + turn) % SERVERS.len();
            let server = Server::start(SERVERS[at].1)?;
            outcomes[at].push(ask(&server, options)?);
        }
    }
    let [tokio, ours] = outcomes.map(|runs| Outcome {
        per_second: median(runs.iter().map(|run| run.per_second)),
        ns_each: median(runs.iter().map(|run| run.ns_each)),
    });
    println!(
        "hyper, HTTP/1, {} connections, {} rounds of {} s; bytes resident for each of {} idle",
        options.connections, options.rounds, options.seconds, options.idle
    );
    for ((name, example), outcome) in SERVERS.iter().zip([&tokio, &ours]) {
        println!(
            "  {name:<8}{:>10.0} requests/s{:>10.0} ns of processor each{:>10.0} bytes",
            outcome.per_second,
            outcome.ns_each,
            idle_bytes(example, options.idle)?
        );
    }
    println!(
        "  ours/tokio {:.3} requests/s, {:.3} processor",
        ours.per_second / tokio.per_second,
        ours.ns_each / tokio.ns_each
    );
    Ok(ExitCode::SUCCESS)
}
