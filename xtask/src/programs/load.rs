//! What puts a server under load, and what it says of the answers: `wrk` for HTTP, `dnsperf`
//! for DNS, and a client of our own for UDP, which keeps a number of datagrams on their way.

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use std::net::UdpSocket;
use std::process::Command;
use std::time::{Duration, Instant};

/// Where every server listens. A sandbox has a network of its own.
const SERVER: (&str, u16) = ("127.0.0.1", 8000);

/// A datagram that is not answered within this time is lost.
const LOST_AFTER: Duration = Duration::from_secs(10);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Load {
    Http {
        connections: u32,
        keep_alive: bool,
    },
    /// Queries from a file.
    Dns {
        outstanding: u32,
        tcp: bool,
        queries: String,
    },
    Udp {
        outstanding: u64,
    },
}

/// What came back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Answers {
    pub(crate) count: f64,
    pub(crate) per_second: f64,
    pub(crate) p50_us: Option<f64>,
    pub(crate) p99_us: Option<f64>,
}

impl Load {
    /// Whether it tells the percentiles of latency, which dnsperf does not.
    pub(crate) fn has_percentiles(&self) -> bool {
        !matches!(self, Load::Dns { .. })
    }

    /// Asks the server for some seconds.
    pub(crate) fn put(&self, seconds: u32) -> Result<Answers> {
        match self {
            Load::Http {
                connections,
                keep_alive,
            } => ask_http(seconds, *connections, *keep_alive),
            Load::Dns {
                outstanding,
                tcp,
                queries,
            } => ask_dns(seconds, *outstanding, *tcp, queries),
            Load::Udp { outstanding } => {
                let limit = Duration::from_secs(seconds.into());
                ask_udp(
                    &UdpSocket::bind(("127.0.0.1", 0))?,
                    SERVER,
                    *outstanding,
                    limit,
                )
            }
        }
    }
}

/// Runs a load generator; returns what it says.
fn generate(mut command: Command) -> Result<String> {
    let output = command
        .output()
        .with_context(|| format!("cannot run {command:?}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "{command:?} failed: {text}{errors}"
    );
    Ok(text)
}

fn ask_http(seconds: u32, connections: u32, keep_alive: bool) -> Result<Answers> {
    let mut wrk = Command::new("wrk");
    wrk.args(["--latency", "--threads", "1", "--connections"])
        .arg(connections.to_string())
        .args(["--duration", &seconds.to_string()]);
    if !keep_alive {
        wrk.args(["--header", "Connection: close"]);
    }
    wrk.arg(format!("http://{}:{}/", SERVER.0, SERVER.1));
    let text = generate(wrk)?;
    said_by_wrk(&text).with_context(|| format!("wrk says {text}"))
}

/// Reads wrk's report; none if requests failed.
pub(crate) fn said_by_wrk(text: &str) -> Option<Answers> {
    if text.contains("errors") || text.contains("Non-2xx") {
        return None;
    }
    let percentile = |part: &str| {
        let mut lines = text
            .lines()
            .filter_map(|line| line.trim().strip_prefix(part));
        lines.find_map(|rest| micros(rest.trim()))
    };
    Some(Answers {
        count: number(text, "requests in")?,
        per_second: number(text, "Requests/sec:")?,
        p50_us: Some(percentile("50%")?),
        p99_us: Some(percentile("99%")?),
    })
}

/// A time as wrk prints it: `35.00us`, `1.20ms`, `2.00s`.
fn micros(text: &str) -> Option<f64> {
    let units = [("us", 1.0), ("ms", 1e3), ("s", 1e6)];
    units.iter().find_map(|(unit, factor)| {
        let value: f64 = text.strip_suffix(unit)?.parse().ok()?;
        Some(value * factor)
    })
}

/// The first number in the line that has a phrase in it.
fn number(text: &str, phrase: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.contains(phrase))?;
    line.split_whitespace().find_map(|word| word.parse().ok())
}

/// dnsperf resolves addresses with `AI_ADDRCONFIG`, which knows no IPv4 on a machine that has only
/// 127.0.0.1; so it asks over IPv6.
fn ask_dns(seconds: u32, outstanding: u32, tcp: bool, queries: &str) -> Result<Answers> {
    let mut dnsperf = Command::new("dnsperf");
    dnsperf
        .args(["-f", "inet6", "-s", "::1"])
        .args(["-p", &SERVER.1.to_string()])
        .args(["-m", if tcp { "tcp" } else { "udp" }])
        .args(["-q", &outstanding.to_string()])
        .args(["-l", &seconds.to_string(), "-d", queries]);
    let text = generate(dnsperf)?;
    said_by_dnsperf(&text).with_context(|| format!("dnsperf says {text}"))
}

/// Reads dnsperf's statistics, which have no percentiles; none if queries were lost or none was answered.
fn said_by_dnsperf(text: &str) -> Option<Answers> {
    let lost = number(text, "Queries lost:")?;
    let count = number(text, "Queries completed:")?;
    (lost == 0.0 && count > 0.0).then_some(())?;
    Some(Answers {
        count,
        per_second: number(text, "Queries per second:")?,
        p50_us: None,
        p99_us: None,
    })
}

/// Keeps so many datagrams on their way to a server that sends each of them back. A datagram
/// has in it when it was sent.
fn ask_udp(
    socket: &UdpSocket,
    server: impl std::net::ToSocketAddrs,
    outstanding: u64,
    limit: Duration,
) -> Result<Answers> {
    socket.connect(server).context("cannot reach the server")?;
    socket.set_read_timeout(Some(LOST_AFTER))?;
    let begun = Instant::now();
    let send = || -> Result<()> {
        let mut datagram = [0; 64];
        let now = u64::try_from(begun.elapsed().as_nanos())?;
        datagram[..8].copy_from_slice(&now.to_ne_bytes());
        socket.send(&datagram).context("cannot send")?;
        Ok(())
    };
    for _ in 0..outstanding {
        send()?;
    }
    let mut micros = Vec::new();
    let mut answer = [0; 64];
    let elapsed = loop {
        let length = socket.recv(&mut answer).context("a datagram was lost")?;
        ensure!(length == answer.len(), "an answer of {length} bytes");
        let now = begun.elapsed();
        let sent = u64::from_ne_bytes(answer[..8].try_into()?);
        micros.push(now.saturating_sub(Duration::from_nanos(sent)).as_secs_f64() * 1e6);
        if now >= limit {
            break now;
        }
        send()?;
    };
    // What is still on its way would be taken for answers to the next who asks.
    for _ in 1..outstanding {
        socket.recv(&mut answer).context("a datagram was lost")?;
    }
    let count = micros.len();
    micros.sort_by(f64::total_cmp);
    Ok(Answers {
        count: count as f64,
        per_second: count as f64 / elapsed.as_secs_f64(),
        p50_us: Some(micros[count / 2]),
        p99_us: Some(micros[count * 99 / 100]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRK: &str = "Running 2s test @ http://127.0.0.1:8000/\n\
        \x20 1 threads and 1 connections\n\
        \x20 Thread Stats   Avg      Stdev     Max   +/- Stdev\n\
        \x20   Latency    42.66us   25.10us   1.10ms   95.10%\n\
        \x20   Req/Sec    23.65k     2.18k   27.46k    76.19%\n\
        \x20 Latency Distribution\n\
        \x20    50%   35.00us\n\
        \x20    75%   40.00us\n\
        \x20    90%   60.00us\n\
        \x20    99%    1.25ms\n\
        \x20 49415 requests in 2.10s, 8.20MB read\n\
        Requests/sec:  23532.01\n\
        Transfer/sec:      3.90MB\n";

    #[test]
    fn wrk_is_understood() {
        let answers = said_by_wrk(WRK).unwrap();
        assert_eq!(answers.count, 49_415.0);
        assert_eq!(answers.per_second, 23_532.01);
        assert_eq!((answers.p50_us, answers.p99_us), (Some(35.0), Some(1250.0)));
        let failed = "  Socket errors: connect 0, read 3, write 0, timeout 0\n";
        assert_eq!(said_by_wrk(&(WRK.to_owned() + failed)), None);
        assert_eq!(micros("2.00s"), Some(2e6));
    }

    #[test]
    fn dnsperf_is_understood() {
        let text = "Statistics:\n\n\
            \x20 Queries sent:         119456\n\
            \x20 Queries completed:    119456 (100.00%)\n\
            \x20 Queries lost:         0 (0.00%)\n\
            \x20 Run time (s):         2.000153\n\
            \x20 Queries per second:   59723.4\n";
        let answers = said_by_dnsperf(text).unwrap();
        assert_eq!((answers.count, answers.per_second), (119_456.0, 59_723.4));
        assert_eq!(
            said_by_dnsperf(&text.replace("lost:         0", "lost:         2")),
            None
        );
        assert_eq!(said_by_dnsperf(&text.replace("119456", "0")), None);
    }

    #[test]
    fn every_datagram_comes_back() -> Result<()> {
        let server = UdpSocket::bind(("127.0.0.1", 0))?;
        let address = server.local_addr()?;
        let client = UdpSocket::bind(("127.0.0.1", 0))?;
        let echo = std::thread::spawn(move || {
            let (mut room, mut count) = ([0; 64], 0.0);
            loop {
                let (length, from) = server.recv_from(&mut room).unwrap();
                if length == 0 {
                    return count;
                }
                count += 1.0;
                server.send_to(&room[..length], from).unwrap();
            }
        });
        let answers = ask_udp(&client, address, 4, Duration::from_millis(5))?;
        let stop = UdpSocket::bind(("127.0.0.1", 0))?;
        stop.send_to(&[], address)?;
        // Three were still on their way when the time was over.
        assert_eq!(echo.join().unwrap(), answers.count + 3.0);
        assert!(answers.p50_us <= answers.p99_us);
        Ok(())
    }
}
