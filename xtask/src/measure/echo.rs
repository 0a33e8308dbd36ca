//! The programs of `xtask/echo`, a server that echoes 64 bytes and its client, each on a core of its
//! own; and how many system calls and turns of the loop the server takes for a message.
//!
//! What a message costs the server in processor time is the benchmark `echo`.

use super::benchmarks::own;
use super::command;
use super::family::Family;
use super::libraries::Libraries;
use super::turns::{Better, Measurement, Reading, Row, Subject};
use crate::{compile, workspace};
use anyhow::{Context, Result, ensure};
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::Stdio;

pub(crate) const SERVER_CPU: &str = "0";
pub(crate) const CLIENT_CPU: &str = "1";

/// How many connections.
const LOADS: [u32; 3] = [1, 50, 500];

/// As many messages as are counted system calls of, which strace makes slow.
const TRACED: u32 = 5_000;

/// The server and the client.
pub(crate) struct Echo {
    /// The directory of the executables.
    dir: PathBuf,
}

/// What a server and its client print.
pub(crate) struct Said {
    pub(crate) server: (f64, f64),
    pub(crate) client: String,
}

impl Echo {
    pub(crate) fn build(libraries: &Libraries) -> Result<Echo> {
        ensure!(compile::jobs() > 1, "server and client need a core each");
        Ok(Echo {
            dir: own::build(&libraries.original)?,
        })
    }

    /// Runs a server on a subject, perhaps by way of another program, with a client whose arguments
    /// are a number of connections or a mode, messages, the port, and perhaps one more.
    pub(crate) fn run(
        &self,
        subject: &Subject,
        via: &[&str],
        connections: u32,
        messages: u32,
        client: &[&str],
    ) -> Result<Said> {
        let messages = messages.to_string();
        let mut child = command::run_via(via, &self.dir.join(own::server(subject)), subject)
            .args([SERVER_CPU, &connections.to_string(), &messages])
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start the server")?;
        let mut output = BufReader::new(child.stdout.take().context("a server without output")?);
        let mut port = String::new();
        output.read_line(&mut port)?;
        let (mode, more) = client.split_first().context("a client without a mode")?;
        let mut client = command::run(&self.dir.join("client"), subject);
        client
            .args([CLIENT_CPU, mode, &messages, port.trim()])
            .args(more);
        let client = command::output(&mut client).context("the client failed")?;
        let mut text = String::new();
        output.read_to_string(&mut text)?;
        let status = child.wait()?;
        ensure!(status.success(), "the server failed: {status}");
        Ok(Said {
            server: two_numbers(&text)?,
            client,
        })
    }
}

/// The first two numbers of a text.
pub(crate) fn two_numbers(text: &str) -> Result<(f64, f64)> {
    let mut words = text.split_whitespace().map(str::parse);
    match (words.next(), words.next()) {
        (Some(Ok(first)), Some(Ok(second))) => Ok((first, second)),
        _ => anyhow::bail!("two numbers expected: {text:?}"),
    }
}

/// The study of system calls and turns.
pub(crate) struct Calls {
    echo: Echo,
    subjects: Vec<Subject>,
}

impl Calls {
    pub(crate) const NAME: &str = "echo_calls";

    pub(crate) fn build(libraries: &Libraries) -> Result<Calls> {
        workspace::require_tool("strace", "strace")?;
        let mut subjects = libraries.subjects();
        subjects.push(libraries.bare_loop());
        Ok(Calls {
            echo: Echo::build(libraries)?,
            subjects,
        })
    }

    /// How many system calls a message takes: those of a long run without those of a short.
    fn system_calls(&self, subject: &Subject, connections: u32) -> Result<f64> {
        let count = |messages: u32| -> Result<f64> {
            let file = workspace::target_subdir("measure")?
                .join(format!("system-calls-{}", std::process::id()));
            let path = file
                .to_str()
                .context("a target directory that is no text")?;
            let via = ["strace", "-f", "-c", "-U", "name,calls", "-o", path];
            self.run(subject, &via, connections, messages)?;
            let table = std::fs::read_to_string(&file)?;
            std::fs::remove_file(&file)?;
            total(&table).with_context(|| format!("strace counts no calls: {table}"))
        };
        Ok((count(2 * TRACED)? - count(TRACED)?) / f64::from(TRACED))
    }

    fn run(
        &self,
        subject: &Subject,
        via: &[&str],
        connections: u32,
        messages: u32,
    ) -> Result<Said> {
        let client = connections.to_string();
        self.echo
            .run(subject, via, connections, messages, &[&client])
    }
}

/// The number of calls in strace's table.
fn total(table: &str) -> Option<f64> {
    let line = table.lines().find(|line| line.starts_with("total"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

impl Measurement for Calls {
    fn name(&self) -> &str {
        Calls::NAME
    }

    fn rows(&self) -> Vec<Row> {
        let row = |connections: u32, what: &str, unit| Row {
            name: format!("{} {connections} at once: {what}", Calls::NAME),
            unit,
            better: Better::Lower,
            family: Family::Streams,
        };
        let rows = |connections| {
            [
                row(connections, "calls", "calls/message"),
                row(connections, "turns", "turns/message"),
            ]
        };
        LOADS.into_iter().flat_map(rows).collect()
    }

    fn subjects(&self) -> Vec<Subject> {
        self.subjects.clone()
    }

    fn counts(&self) -> bool {
        false
    }

    fn read(&self, subject: &Subject) -> Result<Reading> {
        let mut values = Vec::new();
        for connections in LOADS {
            values.push(self.system_calls(subject, connections)?);
            // What is traced takes other turns.
            let said = self.run(subject, &[], connections, 2 * TRACED)?;
            let (_, turns) = said.server;
            values.push(turns);
        }
        Ok(Reading::from(values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_from_what_programs_print() {
        assert_eq!(two_numbers("12.5 3\n").unwrap(), (12.5, 3.0));
        assert!(two_numbers("12.5\n").is_err());
        assert!(two_numbers("twelve 3\n").is_err());
        let table = "syscall  calls\n-------- -----\nread     5\ntotal    12\n";
        assert_eq!(total(table), Some(12.0));
        assert_eq!(total("nothing"), None);
    }
}
