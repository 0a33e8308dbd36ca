//! `cargo xtask instructions`: how many instructions the pure parts of the loop take.
//!
//! Valgrind's callgrind counts them, and counts the same on a busy machine as on an idle one.
//! Each part runs a number of times and then twice that number: the difference is what one time
//! takes. `xtask/instructions/expected.txt` says what it took when that was last looked at, and
//! by which compiler; a change that makes one of them more than [`TOLERANCE`] worse fails.
//!
//! `--recording` counts ours while it records as well. That is not judged: how often a loop
//! describes its handles is a matter of time, so that those counts vary.

use crate::program::Program;
use crate::workspace;
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Worse than this is too much. Runs of one build differ by less than a third of a hundredth, in what may
/// sleep too, but builds in other directories have other symbols, and differed by up to 1.4 hundredths.
const TOLERANCE: f64 = 1.03;

const TIMES: u32 = 2_000;

const PARTS: [(&str, &str); 7] = [
    (
        "timers",
        "a timer of a few time-outs: made, started, fired, closed",
    ),
    ("restarts", "a timer started anew among a thousand others"),
    (
        "phases",
        "a turn of the loop with an idle, a prepare and a check handle",
    ),
    ("wakeups", "an async handle that sends to itself"),
    ("dispatch", "a poll handle whose descriptor is ready"),
    (
        "messages",
        "a message read from one pipe and written to it again",
    ),
    ("queue", "a write that waits and is cancelled"),
];

/// Count the instructions of the loop's pure parts, and compare with what they were.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Take what is counted now as what is expected from now on.
    #[arg(long)]
    bless: bool,
    /// Count ours while it records too.
    #[arg(long)]
    recording: bool,
    /// How often each part runs: the more often, the less what grows by doubling varies.
    #[arg(long, default_value_t = TIMES)]
    times: u32,
}

struct Counter {
    program: PathBuf,
    times: u32,
}

impl Counter {
    fn total(&self, library: &Path, part: &str, times: u32, records: bool) -> Result<u64> {
        let output = Command::new("timeout")
            .args(["120", "valgrind", "--tool=callgrind"])
            .arg("--callgrind-out-file=/dev/null")
            .arg(&self.program)
            .args([part, &times.to_string()])
            .env("LD_LIBRARY_PATH", library)
            .env("BLACKLIGHT_RECORD", if records { "1" } else { "0" })
            .output()
            .context("cannot run valgrind")?;
        let text = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{part} failed: {text}");
        let line = text.lines().find_map(|line| line.split_once("Collected :"));
        let count = line.and_then(|(_, count)| count.trim().parse().ok());
        count.with_context(|| format!("valgrind counts nothing: {text}"))
    }

    /// The instructions that one time takes.
    fn count(&self, library: &Path, part: &str, records: bool) -> Result<u64> {
        let once = self.total(library, part, self.times, records)?;
        let twice = self.total(library, part, 2 * self.times, records)?;
        Ok(twice.saturating_sub(once) / u64::from(self.times))
    }
}

fn expected_file() -> PathBuf {
    workspace::root().join("xtask/instructions/expected.txt")
}

fn compiler() -> Result<String> {
    let output = Command::new("rustc").arg("--version").output();
    let output = output.context("cannot run rustc")?;
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// The compiler that the counts are of, and the counts in the order of [`PARTS`].
fn expected() -> Result<(String, Vec<u64>)> {
    let text = fs::read_to_string(expected_file()).context("nothing is expected yet: --bless")?;
    let mut lines = text.lines();
    let compiler = lines.next().context("an empty file")?.to_owned();
    let counts = PARTS.iter().map(|(part, _)| {
        let line = lines.next().and_then(|line| line.strip_prefix(part));
        let count = line.and_then(|count| count.trim().parse().ok());
        count.with_context(|| format!("nothing is expected of {part}: --bless"))
    });
    Ok((compiler, counts.collect::<Result<_>>()?))
}

/// Runs the chore.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    workspace::require_tool("valgrind", "valgrind")?;
    let Program {
        path: program,
        original,
        ours,
    } = Program::build("instructions", "parts")?;
    ensure!(options.times > 0, "nothing is to run");
    ensure!(
        options.times == TIMES || !options.bless,
        "what is expected is counted of {TIMES} times"
    );
    let times = options.times;
    let counter = Counter { program, times };
    let compiler = compiler()?;
    let expected = match options.bless {
        true => None,
        false => Some(expected()?),
    };
    let mut file = format!("{compiler}\n");
    let mut worse = Vec::new();
    let recording = match options.recording {
        true => format!("{:>10} ", "recording"),
        false => String::new(),
    };
    println!(
        "{:>10} {:>10} {recording}{:>10}  instructions of",
        "original", "ours", "expected"
    );
    for (at, (part, what)) in PARTS.iter().enumerate() {
        let of_original = counter.count(&original, part, false)?;
        let count = counter.count(&ours, part, false)?;
        let recording = match options.recording {
            true => format!("{:>10} ", counter.count(&ours, part, true)?),
            false => String::new(),
        };
        let before = expected.as_ref().map_or(count, |(_, counts)| counts[at]);
        println!("{of_original:>10} {count:>10} {recording}{before:>10}  {what}");
        if options.times == TIMES && count as f64 > before as f64 * TOLERANCE {
            worse.push(*part);
        }
        file += &format!("{part} {count}\n");
    }
    match expected {
        None => fs::write(expected_file(), file)?,
        Some((by, _)) if by != compiler => {
            println!("not judged: what is expected was counted of {by}, this is {compiler}");
        }
        Some(_) if !worse.is_empty() => bail!("more instructions than expected: {worse:?}"),
        Some(_) => {}
    }
    Ok(ExitCode::SUCCESS)
}
