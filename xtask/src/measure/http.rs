//! hyper on our loop against hyper on tokio's runtime of one thread.
//!
//! Two examples that differ only in what hyper runs on take turns as the server. `wrk` asks
//! them over and over; each side has a core of its own. The figures are the requests per second,
//! the server's processor time for a request, which depends less on what else the machine does, and
//! the memory that an idle connection has resident.

use super::command;
use super::echo::{CLIENT_CPU, SERVER_CPU};
use super::family::Family;
use super::libraries::Libraries;
use super::turns::{Better, Measurement, Reading, Row, Subject};
use crate::compile::{self, run_quietly};
use crate::workspace;
use anyhow::{Context, Result, ensure};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// How many seconds a turn takes.
const SECONDS: u32 = 5;

/// How many connections ask at once.
const CONNECTIONS: u32 = 50;

/// How many connections are held idle.
const IDLE: u32 = 2000;

const TOKIO: &str = "tokio";

/// The subjects, and the examples that they are.
const SERVERS: [(&str, &str); 2] = [(Subject::OURS, "http_hello"), (TOKIO, "http_hello_tokio")];

/// The comparison of the two servers. The crate is compared as it is in this checkout, whatever
/// libraries are chosen.
pub(crate) struct Http;

impl Http {
    pub(crate) const NAME: &str = "http";

    pub(crate) fn build(_: &Libraries) -> Result<Http> {
        ensure!(compile::jobs() > 1, "server and client need a core each");
        let (_, most) = getrlimit(Resource::RLIMIT_NOFILE)?;
        setrlimit(Resource::RLIMIT_NOFILE, most, most)?;
        workspace::require_tool("wrk", "wrk")?;
        let mut build = workspace::cargo();
        build.args(["build", "--release", "--quiet", "-p", "blacklight"]);
        for (_, example) in SERVERS {
            build.args(["--example", example]);
        }
        build.current_dir(workspace::root());
        run_quietly(build)?;
        Ok(Http)
    }
}

impl Measurement for Http {
    fn name(&self) -> &str {
        Http::NAME
    }

    fn rows(&self) -> Vec<Row> {
        let row = |what: &str, unit, better, family| Row {
            name: format!("{} {what}", Http::NAME),
            unit,
            better,
            family,
        };
        vec![
            row("hyper", "requests/s", Better::Higher, Family::Programs),
            row(
                "hyper, processor",
                "ns/request",
                Better::Lower,
                Family::Programs,
            ),
            row(
                "hyper, idle connection",
                "bytes",
                Better::Lower,
                Family::Memory,
            ),
        ]
    }

    fn subjects(&self) -> Vec<Subject> {
        SERVERS
            .map(|(name, _)| Subject::without_library(name))
            .into()
    }

    fn counts(&self) -> bool {
        false
    }

    fn read(&self, subject: &Subject) -> Result<Reading> {
        let server = SERVERS.iter().find(|(name, _)| *name == subject.name);
        let (_, example) = server.context("a subject that is no server")?;
        let (per_second, ns_each) = ask(&Server::start(example)?)?;
        // A server that was asked has memory to spare, so another one holds the idle connections.
        let idle = idle_bytes(&Server::start(example)?)?;
        Ok(Reading::from(vec![per_second, ns_each, idle]))
    }
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

/// The number in the line of wrk's that has a phrase in it.
fn number(text: &str, phrase: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.contains(phrase))?;
    let mut words = line.split_whitespace();
    words.find_map(|word| word.parse().ok())
}

/// Requests per second, and the server's processor time for each.
fn ask(server: &Server) -> Result<(f64, f64)> {
    // A first request is not like the others.
    server.idle_connection()?;
    let before = server.processor_ns()?;
    let text = command::output(
        Command::new("taskset")
            .args(["-c", CLIENT_CPU, "wrk", "--threads", "1"])
            .args(["--connections", &CONNECTIONS.to_string()])
            .args(["--duration", &SECONDS.to_string()])
            .arg(format!("http://{}/", server.address)),
    )?;
    let spent = server.processor_ns()? - before;
    ensure!(
        !text.contains("errors") && !text.contains("Non-2xx"),
        "wrk failed: {text}"
    );
    match (number(&text, "Requests/sec:"), number(&text, "requests in")) {
        (Some(per_second), Some(requests)) => Ok((per_second, spent / requests)),
        _ => anyhow::bail!("wrk says {text}"),
    }
}

/// What each of so many idle connections has resident.
fn idle_bytes(server: &Server) -> Result<f64> {
    server.idle_connection()?;
    let before = server.resident_bytes()?;
    let held: Vec<_> = (0..IDLE)
        .map(|_| server.idle_connection())
        .collect::<Result<_>>()?;
    let grown = server.resident_bytes()? - before;
    drop(held);
    Ok(grown / f64::from(IDLE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_beside_their_phrases() {
        let text =
            "  Latency   1.20ms\n  6144 requests in 5.01s, 0.6MB read\nRequests/sec:   1226.35\n";
        assert_eq!(number(text, "Requests/sec:"), Some(1226.35));
        assert_eq!(number(text, "requests in"), Some(6144.0));
        assert_eq!(number(text, "nothing"), None);
    }
}
