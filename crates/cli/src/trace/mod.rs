//! `blacklight trace`: what the loops and the pool of a process do, as a file for Perfetto.
//!
//! This module owns the command: its options, when the collection ends, and what is said about it. Three threads work at it. This one reads
//! rings before they overflow, so it does nothing that takes long. One writes what was read, for which it may have to
//! read all names of a large program. One takes the stacks of stalls, if they are asked for.

mod collect;
mod flows;
mod names;
mod open;
mod order;
mod perfetto;
mod profile;
mod proto;
mod range;
mod stacks;

pub(crate) use range::{Budget, Export, History, Read};

use crate::target::{self, Target};
use crate::words::{count, program, tell};
use anyhow::{Context, Result, bail, ensure};
use blacklight::{Loop, SignalKind, Signals};
use blacklight_record::read::{Reader, now_ns};
use collect::{Collector, Ring, Round};
use names::Names;
use perfetto::Trace;
use profile::Stall;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use rustix::time::{ClockId, clock_gettime};
use stacks::Stacks;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitCode};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

/// How often it is looked whether a process is still there.
const ALIVE: Duration = Duration::from_millis(200);
/// The events that may wait to be written. While there are more, rings are not read, and what they lose is said.
const QUEUED: usize = 2_000_000;
/// Why a trace ends that has no more room.
const FULL: &str = "it has reached its size (see --max-size and --ring)";
/// How long a program may take to end once it was asked to.
const PATIENCE: Duration = Duration::from_secs(3);

/// The options of the command.
#[derive(clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    target: target::Options,
    /// How long to trace, as in 500ms, 5s or 2m. The default is 5s for a process that runs already; a program that is
    /// started is traced until it ends, and ended with its trace.
    #[arg(long = "for", value_name = "TIME", value_parser = parse_time)]
    time: Option<Duration>,
    /// The file to write.
    #[arg(long, default_value = "trace.pftrace")]
    output: PathBuf,
    /// The most bytes to write, as in 500K, 64M or 2G.
    #[arg(long, value_name = "SIZE", default_value = "64M", value_parser = parse_size)]
    max_size: u64,
    /// Keep only the newest events that fit into the size, until Ctrl-C.
    #[arg(long)]
    ring: bool,
    /// Also write stalls with their stacks to this file, as a profile for the Firefox Profiler. A thread that stalls is held for some
    /// microseconds at a time, and for longer where no processor is free; functions of scripts have names if the program was started by this command, for which Node.js leaves
    /// `isolate-*-v8.log` in its folder.
    #[arg(long, value_name = "FILE")]
    stalls: Option<PathBuf>,
    /// A callback that takes this long is a stall.
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = parse_time, requires = "stalls")]
    stall: Duration,
    /// Show the trace in the Perfetto UI.
    #[arg(long)]
    open: bool,
}

/// Reads a time that is not zero.
fn parse_time(text: &str) -> Result<Duration, String> {
    let time = crate::words::parse_time(text)?;
    match time.is_zero() {
        true => Err("expected a time that is not zero".to_owned()),
        false => Ok(time),
    }
}

/// Reads a size with its unit.
fn parse_size(text: &str) -> Result<u64, String> {
    let wrong = || "expected a size such as 500K, 64M or 2G".to_owned();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "" => 1,
        "K" | "k" => 1 << 10,
        "M" | "m" => 1 << 20,
        "G" | "g" => 1 << 30,
        _ => return Err(wrong()),
    };
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    match number.checked_mul(unit) {
        Some(size) if size >= 1 << 16 => Ok(size),
        Some(_) => Err("expected a size of at least 64K".to_owned()),
        None => Err("expected a size that is a number of 64 bits".to_owned()),
    }
}

/// A file to be written, which keeps what it had until there is something to write.
struct Output<'a> {
    path: &'a Path,
    file: File,
    is_new: bool,
}

impl<'a> Output<'a> {
    /// Opens a file, so that nothing is started for a trace which cannot be written.
    fn open(path: &'a Path) -> Result<Output<'a>> {
        let is_new = !path.exists();
        let mut options = File::options();
        let file = options.write(true).create(true).truncate(false).open(path);
        let file = file.with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Output { path, file, is_new })
    }

    /// Makes the file empty.
    fn begin(&self) -> Result<&File> {
        // Only a file has a length, and what is written to may be a pipe.
        if self.file.metadata()?.is_file() {
            let emptied = self.file.set_len(0);
            emptied.with_context(|| self.failure())?;
        }
        Ok(&self.file)
    }

    fn failure(&self) -> String {
        format!("cannot write {}", self.path.display())
    }

    /// Removes a file that was made for nothing.
    fn give_up(&self) {
        if self.is_new {
            // It may be gone, which is what is wanted.
            let _ = std::fs::remove_file(self.path);
        }
    }
}

/// Traces, writes the files and says what is in them.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let is_same = options.stalls.as_ref() == Some(&options.output);
    ensure!(!is_same, "the trace and the stalls must be two files");
    let output = Output::open(&options.output)?;
    let stalls = options.stalls.as_deref().map(Output::open).transpose();
    let stalls = stalls.inspect_err(|_| output.give_up())?;
    // A program that is started does not outlive its trace: from here on Ctrl-C ends the trace, and not this program.
    let lp = Loop::new()?;
    let kinds = [SignalKind::SIGINT, SignalKind::SIGTERM, SignalKind::SIGHUP];
    let mut signals = Signals::new(kinds)?;
    let target = match stalls {
        Some(_) => options.target.open(false),
        None => options.target.open_without_stacks(),
    };
    let target = target.inspect_err(|_| {
        output.give_up();
        stalls.iter().for_each(Output::give_up);
    })?;
    let Target { reader, mut child } = target;
    let mut session = Session {
        options,
        lp: &lp,
        signals: &mut signals,
        is_program: child.is_some(),
        // A program that was started is traced from its beginning.
        since_ns: if child.is_some() { 0 } else { now_ns() },
        reader: &reader,
        title: program(reader.pid()),
        long: Vec::new(),
    };
    let traced = session.trace(&output, stalls.as_ref());
    // The program was started to be traced, whatever has become of the trace.
    let ended = child.as_mut().map(|child| finish(child, &lp)).transpose();
    traced?;
    ended?;
    if options.open {
        open::show(&lp, &mut signals, &options.output)?;
    } else {
        tell("open it at https://ui.perfetto.dev, or trace with --open");
    }
    Ok(ExitCode::SUCCESS)
}

/// Ends a program: it is asked to, and killed if it does not.
fn finish(child: &mut Child, lp: &Loop) -> Result<()> {
    if child.try_wait()?.is_some() {
        return Ok(());
    }
    // It may have ended meanwhile.
    let _ = blacklight::process::kill(child.id(), SignalKind::SIGTERM);
    let asked = Instant::now();
    while child.try_wait()?.is_none() {
        if asked.elapsed() > PATIENCE {
            child.kill()?;
        }
        lp.block_on(blacklight::sleep(Duration::from_millis(5)));
    }
    Ok(())
}

/// The clocks that Perfetto relates to each other: its numbers and their times now.
fn clocks() -> [(u64, u64); 3] {
    let read = |id| {
        let now = clock_gettime(id);
        now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
    };
    [
        (3, read(ClockId::Monotonic)),
        (6, read(ClockId::Boottime)),
        (1, read(ClockId::Realtime)),
    ]
}

/// What the threads of a trace tell each other.
#[derive(Default)]
struct Shared {
    /// The events that are to be written.
    queued: AtomicUsize,
    /// Whether the trace has no more room.
    is_full: AtomicBool,
    /// Whether the trace is over.
    is_over: AtomicBool,
}

/// How the reading of rings has ended.
struct End {
    /// Why.
    why: &'static str,
    /// The events that were lost.
    lost: u64,
    /// The loops that were missed.
    missed: u64,
}

impl End {
    fn of(why: &'static str, collector: &Collector<'_>) -> End {
        End {
            why,
            lost: collector.lost,
            missed: collector.missed_loops(),
        }
    }
}

/// A trace that is being made.
struct Session<'a> {
    options: &'a Options,
    lp: &'a Loop,
    signals: &'a mut Signals,
    /// Whether the process was started to be traced.
    is_program: bool,
    /// What ended before is not in the trace.
    since_ns: u64,
    reader: &'a Reader,
    /// The program with its arguments.
    title: String,
    /// The callbacks that were stalls.
    long: Vec<Stall>,
}

impl Session<'_> {
    /// Makes the trace, writes the files and says what is in them.
    fn trace(&mut self, output: &Output<'_>, stalls: Option<&Output<'_>>) -> Result<()> {
        let (reader, options) = (self.reader, self.options);
        let shared = Shared::default();
        let (begun, began_ns) = (std::time::SystemTime::now(), now_ns());
        let file = output.begin()?;
        let (sender, rounds) = mpsc::channel();
        let process = (reader.pid(), self.since_ns);
        let (collected, written, stacks) = thread::scope(|scope| {
            let writer = scope.spawn(|| write(options, process, file, rounds, &shared));
            let sampler = stalls.is_some().then(|| {
                let limit_ns = options.stall.as_nanos() as u64;
                let is_over = &shared.is_over;
                scope.spawn(move || Stacks::take(reader, limit_ns, is_over))
            });
            let collected = self.collect(&shared, sender);
            shared.is_over.store(true, Ordering::Relaxed);
            let stacks = sampler.map(|sampler| sampler.join().unwrap_or_default());
            (collected, writer.join(), stacks)
        });
        let Ok(written) = written else {
            bail!("{}", output.failure());
        };
        let (size, names) = written.with_context(|| output.failure())?;
        let End { why, lost, missed } = collected?;
        let path = output.path.display();
        let mut said = format!("{path} has {size} bytes; the trace ended because {why}");
        if lost > 0 {
            said += &format!(
                "; {lost} events were lost, since their rings filled faster than they could be read"
            );
        }
        if missed > 0 {
            let loops = count(missed, "loop");
            said += &format!(
                "; some or all events of {loops} are missing, closed between two readings"
            );
        }
        tell(&said);
        if let (Some(stalls), Some(stacks)) = (stalls, stacks) {
            let found = profile::stalls(std::mem::take(&mut self.long), &stacks);
            let said = profile::said(&found, &stacks, options.stall);
            let profile = profile::make(
                (reader.pid(), &self.title),
                (begun, began_ns),
                &found,
                &stacks,
                &names,
            );
            let mut file = BufWriter::new(stalls.begin()?);
            let written = serde_json::to_writer(&mut file, &profile).map_err(io::Error::from);
            let written = written.and_then(|()| file.flush());
            written.with_context(|| stalls.failure())?;
            tell(&format!("{} has {said}", stalls.path.display()));
            tell("open it at https://profiler.firefox.com");
        }
        Ok(())
    }

    /// Reads rounds until something ends the trace.
    fn collect(&mut self, shared: &Shared, rounds: Sender<Round>) -> Result<End> {
        let (options, reader) = (self.options, self.reader);
        let time = match (options.time, self.is_program || options.ring) {
            (None, false) => Some(Duration::from_secs(5)),
            (time, _) => time,
        };
        // A child is not waited for meanwhile: that would take away what the kernel tells the thread that holds it for a stack.
        let process = Pid::from_raw(reader.pid() as i32);
        let process = process.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        let (begun, mut looked) = (Instant::now(), Instant::now());
        let mut collector = Collector::new(reader, self.since_ns);
        let mut why = None;
        loop {
            // What the rings lose meanwhile is said.
            if why.is_some() || shared.queued.load(Ordering::Relaxed) < QUEUED {
                let round = collector.round(why.is_some())?;
                if options.stalls.is_some() {
                    profile::find_long(&round, options.stall, &mut self.long);
                }
                shared.queued.fetch_add(round.len(), Ordering::Relaxed);
                if rounds.send(round).is_err() {
                    // Or the writer has failed, and says so.
                    return Ok(End::of(FULL, &collector));
                }
            }
            if let Some(why) = why {
                // What was read last is from after the end.
                return Ok(End::of(why, &collector));
            }
            let interval = collector.interval();
            let signal = self
                .lp
                .block_on(blacklight::timeout(interval, self.signals.recv()));
            if signal.is_ok() {
                why = Some("it was interrupted");
            } else if shared.is_full.load(Ordering::Relaxed) {
                return Ok(End::of(FULL, &collector));
            } else if time.is_some_and(|time| begun.elapsed() >= time) {
                why = Some("its time is over");
            } else if has_ended(process.as_ref()) {
                why = Some(match self.is_program {
                    true => "the program has ended",
                    false => "the process has ended",
                });
            } else if looked.elapsed() >= ALIVE {
                looked = Instant::now();
                why = (!reader.is_alive()).then_some("the process has ended");
            }
        }
    }
}

/// Whether a process has ended, as far as the system can tell.
fn has_ended(process: Option<&OwnedFd>) -> bool {
    let Some(process) = process else {
        return false;
    };
    let mut events = [PollFd::new(process, PollFlags::IN)];
    let now = rustix::time::Timespec::default();
    poll(&mut events, Some(&now)).is_ok_and(|ready| ready > 0)
}

/// Writes rounds as they come, or the last of them at the end. Returns how many bytes that were, and the names of callbacks.
fn write(
    options: &Options,
    (pid, since_ns): (u32, u64),
    file: &File,
    rounds: Receiver<Round>,
    shared: &Shared,
) -> io::Result<(u64, HashMap<u64, String>)> {
    let program = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let names = Names::of(pid);
    let process = (pid, program.trim_end());
    let out = BufWriter::new(file);
    let limit = options.max_size;
    let mut trace = Trace::new(out, process, (&clocks(), since_ns), limit, names)?;
    let mut ring = options.ring.then(|| Ring::new(trace.room()));
    let mut end_ns = 0;
    for round in rounds {
        end_ns = round.at_ns;
        shared.queued.fetch_sub(round.len(), Ordering::Relaxed);
        // The process may be gone when they are needed.
        trace.learn_names(&round);
        match &mut ring {
            Some(ring) => ring.push(round),
            None => trace.take(&round)?,
        }
        if trace.is_full() {
            shared.is_full.store(true, Ordering::Relaxed);
            break;
        }
    }
    for round in ring.into_iter().flat_map(Ring::into_rounds) {
        trace.take(&round)?;
    }
    trace.finish(end_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_have_units() {
        assert_eq!(parse_time("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse_time("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(parse_time("2m"), Ok(Duration::from_secs(120)));
        for wrong in ["", "5", "soon", "5h", "0s", "-1s", "s", "99999999999m"] {
            assert!(parse_time(wrong).is_err(), "{wrong}");
        }
        assert_eq!(parse_size("64M"), Ok(64 << 20));
        assert_eq!(parse_size("65536"), Ok(64 << 10));
        for wrong in ["", "1K", "99999999999G", "1T", "M", "-5M", "1.5M"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
    }
}
