//! `cargo xtask connections`: ten thousand connections at once, both ends in two processes.
//!
//! One C program is server or client. Each connection carries a message there and back, then
//! all of them are idle: what a process has resident more than before, divided by their
//! number, is what an idle connection costs it. Then all are closed, and no descriptor may be
//! left. The same program runs with the original and with ours.

use crate::program::Program;
use anyhow::{Context, Result, ensure};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};

/// Hold many connections at once, and state the memory of each.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// How many connections.
    #[arg(long, default_value_t = 10_000)]
    connections: u32,
}

/// One of the two processes.
struct Process {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Process {
    fn start(program: &Path, library: &Path, arguments: &[&str]) -> Result<Process> {
        let mut child = Command::new("timeout")
            .arg("120")
            .arg(program)
            .args(arguments)
            .env("LD_LIBRARY_PATH", library)
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

/// What came of the connections.
struct Outcome {
    /// The memory of an idle connection in each process, in bytes.
    server: f64,
    client: f64,
    /// Descriptors that were left open after all, in both together.
    left: f64,
}

fn measure(program: &Path, library: &Path, connections: u32) -> Result<Outcome> {
    let mut server = Process::start(program, library, &["server"])?;
    let port = server.number()?.to_string();
    let server_before = server.number()?;
    let arguments = ["client", &port, &connections.to_string()];
    let mut client = Process::start(program, library, &arguments)?;
    let client_before = client.number()?;
    let client_after = client.number()?;
    let server_after = server.ask()?;
    let left = client.end().context("the client")? + server.end().context("the server")?;
    let each = |bytes: f64| bytes / f64::from(connections);
    Ok(Outcome {
        server: each(server_after - server_before),
        client: each(client_after - client_before),
        left,
    })
}

/// Runs the chore.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let Program {
        path: program,
        original,
        ours,
    } = Program::build("connections", "program")?;
    println!(
        "{} connections, bytes resident for each",
        options.connections
    );
    println!("(the server's include some 620 that the program itself keeps)");
    for (name, library) in [("original", &original), ("ours", &ours)] {
        let outcome = measure(&program, library, options.connections)
            .with_context(|| format!("with {name}"))?;
        println!(
            "  {name:<10}server {:>6.0}   client {:>6.0}   descriptors left {}",
            outcome.server, outcome.client, outcome.left
        );
        // The original keeps a pipe for signals in each process as long as that lives.
        ensure!(
            name == "original" || outcome.left == 0.0,
            "descriptors are left open"
        );
    }
    Ok(ExitCode::SUCCESS)
}
