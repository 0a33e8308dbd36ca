//! `cargo xtask bench-echo --gaps`: what spinning costs and gains, by how far messages are apart.
//!
//! One connection carries one message at a time, and the client waits between an answer and the next
//! message. What counts is the median of the rounds: of the server's processor time for a message,
//! sleeping and waking included, and of the median and 99th percentile of the time to the answer.

use super::{CLIENT_CPU, Echo, SERVER_CPU, Server, median};
use anyhow::{Context, Result, ensure};
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

/// Pauses between messages, in microseconds.
const GAPS_US: [u32; 7] = [0, 10, 30, 60, 100, 300, 1000];

/// How long one run takes, about, if an answer takes 30 µs.
const RUN_US: u32 = 1_000_000;

/// The contestants: which of the servers, by what name, and with which `BLACKLIGHT_SPIN`.
const CONTESTANTS: [(usize, &str, &str); 3] = [
    (0, "original", "1"),
    (1, "ours", "1"),
    (1, "ours, `BLACKLIGHT_SPIN=0`", "0"),
];

/// What one run or the median of several showed, in nanoseconds.
#[derive(Clone, Copy)]
struct Reading {
    cpu: f64,
    latency: f64,
    latency_99: f64,
}

fn numbers(text: &str) -> Result<(f64, f64)> {
    let mut words = text.split_whitespace().map(str::parse);
    match (words.next(), words.next()) {
        (Some(Ok(first)), Some(Ok(second))) => Ok((first, second)),
        _ => anyhow::bail!("two numbers expected: {text:?}"),
    }
}

fn read(echo: &Echo, server: &Server, spin: &str, gap_us: u32) -> Result<Reading> {
    let messages = (RUN_US / (gap_us + 30)).to_string();
    let mut command = Command::new("timeout");
    command
        .arg("120")
        .arg(&server.program)
        .args([SERVER_CPU, "1", &messages])
        .args(echo.own_buffers.then_some("own"))
        .env("LD_LIBRARY_PATH", &server.library)
        .env("BLACKLIGHT_SPIN", spin)
        .stdout(Stdio::piped());
    let mut child = command.spawn().context("cannot start the server")?;
    let mut output = BufReader::new(child.stdout.take().context("a server without output")?);
    let mut port = String::new();
    output.read_line(&mut port)?;
    let client = Command::new("timeout")
        .arg("120")
        .arg(&echo.client)
        .args([
            CLIENT_CPU,
            "gap",
            &messages,
            port.trim(),
            &gap_us.to_string(),
        ])
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run the client")?;
    ensure!(
        client.status.success(),
        "the client failed: {}",
        client.status
    );
    let (latency, latency_99) = numbers(&String::from_utf8_lossy(&client.stdout))?;
    let mut text = String::new();
    output.read_to_string(&mut text)?;
    let status = child.wait()?;
    ensure!(
        status.success(),
        "the server on {} failed: {status}",
        server.name
    );
    let (cpu, _turns) = numbers(&text)?;
    Ok(Reading {
        cpu,
        latency,
        latency_99,
    })
}

/// Measures and prints.
pub(super) fn run(echo: &Echo, rounds: usize) -> Result<()> {
    println!("One connection, 64 bytes, medians of {rounds} rounds, in microseconds: the server's");
    println!("processor time for a message; time to the answer, median and 99th percentile.");
    println!();
    print!("| pause |");
    CONTESTANTS
        .iter()
        .for_each(|(_, name, _)| print!(" {name}: processor | answer | 99 % |"));
    println!("\n|{}", " ---: |".repeat(1 + 3 * CONTESTANTS.len()));
    for gap_us in GAPS_US {
        let mut readings = [const { Vec::new() }; CONTESTANTS.len()];
        for round in 0..rounds {
            // Whoever goes first meets a colder machine.
            for turn in 0..CONTESTANTS.len() {
                let at = (round + turn) % CONTESTANTS.len();
                let (server, _, spin) = CONTESTANTS[at];
                readings[at].push(read(echo, &echo.servers[server], spin, gap_us)?);
            }
        }
        print!("| {gap_us} |");
        for readings in &readings {
            let of = |what: fn(&Reading) -> f64| median(readings.iter().map(what)) / 1000.0;
            print!(
                " {:.1} | {:.1} | {:.1} |",
                of(|reading| reading.cpu),
                of(|reading| reading.latency),
                of(|reading| reading.latency_99)
            );
        }
        println!();
    }
    Ok(())
}
