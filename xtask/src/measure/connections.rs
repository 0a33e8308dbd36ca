//! Ten thousand connections at once, both ends in two processes: what an idle one costs in memory.
//!
//! One C program is server or client. Each connection carries a message there and back, then
//! all of them are idle: what a process has resident more than before, divided by their
//! number, is what an idle connection costs it. The program's handle, requests and buffer are some
//! 620 bytes of that at both ends: a library that keeps less in them keeps more elsewhere. Then all
//! are closed, and no descriptor may be left.

use super::command;
use super::family::Family;
use super::libraries::Libraries;
use super::turns::{Better, Measurement, Reading, Row, Subject};
use crate::program;
use anyhow::{Context, Result, ensure};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

const CONNECTIONS: u32 = 10_000;

/// One of the two processes.
struct Process {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Process {
    fn start(program: &Path, subject: &Subject, arguments: &[&str]) -> Result<Process> {
        let mut child = command::run(program, subject)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start the program")?;
        let input = child.stdin.take();
        let output = child.stdout.take().context("a program without output")?;
        Ok(Process {
            child,
            input,
            output: BufReader::new(output),
        })
    }

    /// The number on the next line that the program prints.
    fn number(&mut self) -> Result<f64> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        let number = line.trim().parse();
        number.with_context(|| format!("the program says {line:?}"))
    }

    /// Asks for the memory in use.
    fn ask(&mut self) -> Result<f64> {
        let input = self.input.as_mut().context("a program without input")?;
        input.write_all(b"\n")?;
        self.number()
    }

    /// Tells the program to end, and sees that it has ended well; how many descriptors it
    /// has left open.
    fn end(mut self) -> Result<f64> {
        drop(self.input.take());
        let left = self.number()?;
        let status = self.child.wait()?;
        ensure!(status.success(), "the program failed: {status}");
        Ok(left)
    }
}

pub(crate) struct Connections {
    program: PathBuf,
    subjects: Vec<Subject>,
}

impl Connections {
    pub(crate) const NAME: &str = "connections";

    pub(crate) fn build(libraries: &Libraries) -> Result<Connections> {
        Ok(Connections {
            program: program::compile("connections", "program", &libraries.ours())?,
            subjects: libraries.subjects(),
        })
    }
}

impl Measurement for Connections {
    fn name(&self) -> &str {
        Connections::NAME
    }

    fn rows(&self) -> Vec<Row> {
        let row = |end: &str| Row {
            name: format!("{} idle, {end}", Connections::NAME),
            unit: "bytes",
            better: Better::Lower,
            family: Family::Memory,
        };
        vec![row("server"), row("client")]
    }

    fn subjects(&self) -> Vec<Subject> {
        self.subjects.clone()
    }

    fn read(&self, subject: &Subject) -> Result<Reading> {
        let mut server = Process::start(&self.program, subject, &["server"])?;
        let port = server.number()?.to_string();
        let server_before = server.number()?;
        let arguments = ["client", &port, &CONNECTIONS.to_string()];
        let mut client = Process::start(&self.program, subject, &arguments)?;
        let client_before = client.number()?;
        let client_after = client.number()?;
        let server_after = server.ask()?;
        let left = client.end().context("the client")? + server.end().context("the server")?;
        // The original keeps a pipe for signals in each process as long as that lives.
        ensure!(
            subject.name == Subject::ORIGINAL || left == 0.0,
            "{left} descriptors are left open"
        );
        let each = |bytes: f64| bytes / f64::from(CONNECTIONS);
        Ok(Reading::from(vec![
            each(server_after - server_before),
            each(client_after - client_before),
        ]))
    }
}
