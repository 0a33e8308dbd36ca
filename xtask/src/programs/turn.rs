//! The inside half of a measurement: one turn of one program, in a sandbox.
//!
//! The program is started in the way that its user would start it; what is measured begins when it is ready.
//! Its processor time is that of its one process, asked of the kernel's clock for it. Which libuv it
//! runs on is read from its memory map.

use super::load::{Answers, Load};
use crate::clients::loaded;
use anyhow::{Context, Result, ensure};
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::time::ClockId;
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// How long a program may take to be ready, or to end, on a machine that is busy with other things.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server is asked for so long before anything counts: its code is compiled meanwhile.
const WARM_UP_SECONDS: u32 = 1;

/// A program is started so many times at least.
const FEWEST_STARTS: usize = 3;

/// What to start, and what to do with it.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Turn {
    /// What starts the program, if it is not started directly.
    pub(crate) launcher: Vec<String>,
    pub(crate) program: Vec<String>,
    pub(crate) environment: Vec<(String, String)>,
    /// The only libuv that it may load; none if it is to run on the one inside.
    pub(crate) library: Option<PathBuf>,
    pub(crate) seconds: u32,
    pub(crate) work: Work,
}

#[derive(Clone, Serialize, Deserialize)]
pub(crate) enum Work {
    /// The program is a server that says `ready` and is then put under load.
    Serve { ready: String, load: Load },
    /// The program is told for how many seconds it is to call a function, and says how often it did.
    Call,
    /// The program is started over and over, by its launcher or directly, with what the
    /// launcher would hand to it.
    Start { by_launcher: bool },
}

/// What a turn comes to.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Figures {
    pub(crate) per_second: f64,
    /// The processor time for one request, call or start.
    pub(crate) cpu_us: f64,
    pub(crate) p50_us: Option<f64>,
    pub(crate) p99_us: Option<f64>,
}

/// Takes the turn that `spec` describes, and prints the figures.
pub(crate) fn run(spec: &str) -> Result<()> {
    let turn: Turn = serde_json::from_str(spec).context("cannot understand the turn")?;
    let figures = match &turn.work {
        Work::Serve { ready, load } => serve(&turn, ready, load),
        Work::Call => call(&turn),
        Work::Start { by_launcher } => start(&turn, *by_launcher),
    }?;
    println!("{}", serde_json::to_string(&figures)?);
    Ok(())
}

impl Turn {
    fn command(&self, by_launcher: bool, more: &[&str]) -> Command {
        let launcher = self.launcher.iter().filter(|_| by_launcher);
        let mut words = launcher.chain(&self.program);
        let mut command = Command::new(words.next().map_or("", String::as_str));
        command.args(words).args(more).stdin(Stdio::null());
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }
}

/// A program that runs, until this is dropped.
struct Process {
    child: Child,
    lines: Receiver<String>,
}

impl Process {
    fn start(mut command: Command) -> Result<Process> {
        let (output, said) = std::io::pipe().context("cannot make a pipe")?;
        let child = command
            .stdout(said.try_clone().context("cannot share a pipe")?)
            .stderr(said)
            .spawn()
            .with_context(|| format!("cannot start {command:?}"))?;
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            let lines = BufReader::new(output).lines();
            lines
                .map_while(Result::ok)
                .try_for_each(|line| sender.send(line))
        });
        Ok(Process { child, lines })
    }

    /// Waits for the line that `wanted` has something to make of.
    fn await_line<T>(&self, wanted: impl Fn(&str) -> Option<T>) -> Result<T> {
        let mut said = String::new();
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let line = self.lines.recv_timeout(left);
            let line = line.with_context(|| format!("the program only says {said:?}"))?;
            if let Some(found) = wanted(&line) {
                return Ok(found);
            }
            said = said + &line + "\n";
        }
    }

    /// Fails unless the process has `wanted` in its memory, and no other libuv.
    fn ensure_on(&self, wanted: Option<&Path>) -> Result<()> {
        let maps = fs::read_to_string(format!("/proc/{}/maps", self.child.id()))
            .context("the program has ended")?;
        let loaded = libuvs(&maps);
        ensure!(
            loaded.iter().copied().eq(wanted),
            "it runs on {loaded:?} and not on {wanted:?}"
        );
        Ok(())
    }

    fn cpu(&self) -> Result<Duration> {
        cpu_of(&self.child)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // If it has ended already, there is nothing left to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The files called `libuv.so…` in a memory map.
fn libuvs(maps: &str) -> BTreeSet<&Path> {
    let paths = maps
        .lines()
        .filter_map(|line| line.find('/').map(|at| Path::new(&line[at..])));
    let is_libuv = |path: &&Path| {
        let name = path.file_name().unwrap_or_default();
        name.to_string_lossy().starts_with("libuv.so")
    };
    paths.filter(is_libuv).collect()
}

/// How long a process has been on a processor, even if it has ended and nobody has waited for it.
fn cpu_of(child: &Child) -> Result<Duration> {
    let pid = Pid::from_raw(i32::try_from(child.id()).context("an impossible process id")?);
    let clock = ClockId::pid_cpu_clock_id(pid).context("the process has no clock")?;
    Ok(clock
        .now()
        .context("the clock of the process stands")?
        .into())
}

fn micros_each(spent: Duration, count: f64) -> f64 {
    spent.as_secs_f64() * 1e6 / count
}

fn serve(turn: &Turn, ready: &str, load: &Load) -> Result<Figures> {
    let server = Process::start(turn.command(true, &[]))?;
    server.await_line(|line| line.contains(ready).then_some(()))?;
    server.ensure_on(turn.library.as_deref())?;
    load.put(WARM_UP_SECONDS)?;
    let before = server.cpu()?;
    let answers = load.put(turn.seconds)?;
    let spent = server.cpu()? - before;
    let Answers {
        count,
        per_second,
        p50_us,
        p99_us,
    } = answers;
    Ok(Figures {
        per_second,
        cpu_us: micros_each(spent, count),
        p50_us,
        p99_us,
    })
}

fn call(turn: &Turn) -> Result<Figures> {
    /// What the program says of itself.
    #[derive(Deserialize)]
    struct Called {
        calls: f64,
        seconds: f64,
        cpu_us: f64,
        p50_us: f64,
        p99_us: f64,
    }
    let program = Process::start(turn.command(true, &[&turn.seconds.to_string()]))?;
    program.await_line(|line| (line == "ready").then_some(()))?;
    program.ensure_on(turn.library.as_deref())?;
    let called: Called = program.await_line(|line| serde_json::from_str(line).ok())?;
    Ok(Figures {
        per_second: called.calls / called.seconds,
        cpu_us: called.cpu_us / called.calls,
        p50_us: Some(called.p50_us),
        p99_us: Some(called.p99_us),
    })
}

fn start(turn: &Turn, by_launcher: bool) -> Result<Figures> {
    let handed = match turn.launcher.is_empty() || by_launcher {
        true => BTreeMap::new(),
        false => handed_by_launcher(turn)?,
    };
    let command = || {
        let mut command = turn.command(by_launcher, &[]);
        command.envs(&handed);
        command
    };
    if let Some(library) = &turn.library {
        let mut first = command();
        first
            .env("LD_DEBUG", "libs")
            .env("LD_DEBUG_OUTPUT", "/tmp/ld");
        start_once(first, Path::new("first"))?;
        loaded::only(library, Path::new("/tmp"))?;
    }
    let limit = Duration::from_secs(turn.seconds.into());
    let (mut walls, mut spent) = (Vec::new(), Duration::ZERO);
    let begun = Instant::now();
    while walls.len() < FEWEST_STARTS || begun.elapsed() < limit {
        let dir = PathBuf::from(walls.len().to_string());
        let (wall, cpu) = start_once(command(), &dir)?;
        walls.push(wall.as_secs_f64() * 1e6);
        spent += cpu;
    }
    let total: f64 = walls.iter().sum();
    walls.sort_by(f64::total_cmp);
    Ok(Figures {
        per_second: walls.len() as f64 * 1e6 / total,
        cpu_us: micros_each(spent, walls.len() as f64),
        p50_us: Some(walls[walls.len() / 2]),
        p99_us: Some(walls[nearest_rank(walls.len(), 99)]),
    })
}

/// The index of the percentile among so many values in order: of less than a hundred, the 99th is
/// the greatest.
fn nearest_rank(count: usize, percent: usize) -> usize {
    (count * percent).div_ceil(100).saturating_sub(1)
}

/// What the launcher puts into the environment of Node.js, which is asked for it.
fn handed_by_launcher(turn: &Turn) -> Result<BTreeMap<String, String>> {
    let mut ask = turn.clone();
    ask.program.truncate(1);
    let output = ask
        .command(true, &["-p", "JSON.stringify(process.env)"])
        .output()
        .context("cannot run the launcher")?;
    serde_json::from_slice(&output.stdout)
        .with_context(|| format!("the environment is unknown: {output:?}"))
}

/// Runs a program to its end in a new directory; returns how long it took, and how much of that its own
/// process had a processor.
fn start_once(mut command: Command, dir: &Path) -> Result<(Duration, Duration)> {
    const ERRORS: &str = "/tmp/errors";
    fs::create_dir(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    command
        .current_dir(dir)
        .stdout(Stdio::null())
        .stderr(File::create(ERRORS).context("cannot make a file")?);
    let begun = Instant::now();
    let mut child = command
        .spawn()
        .with_context(|| format!("cannot start {command:?}"))?;
    let pid = Pid::from_raw(i32::try_from(child.id()).context("an impossible process id")?);
    waitid(Id::Pid(pid), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT)?;
    let wall = begun.elapsed();
    let cpu = cpu_of(&child)?;
    let status: ExitStatus = child.wait()?;
    let said = fs::read_to_string(ERRORS).unwrap_or_default();
    ensure!(status.success(), "{command:?}: {status}\n{said}");
    Ok((wall, cpu))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libuvs_in_a_map_are_counted_once() {
        let maps = "7f00-7f01 r--p 00000000 00:2b 11 /srv/lib/libuv.so.1\n\
                    7f01-7f02 r-xp 00001000 00:2b 11 /srv/lib/libuv.so.1\n\
                    7f03-7f04 r-xp 00001000 00:2b 12 /usr/lib/libc.so.6\n\
                    7f05-7f06 rw-p 00000000 00:00 0\n";
        assert!(
            libuvs(maps)
                .into_iter()
                .eq([Path::new("/srv/lib/libuv.so.1")])
        );
        assert!(libuvs("").is_empty());
    }

    #[test]
    fn percentiles_of_few_and_many() {
        assert_eq!(nearest_rank(1, 99), 0);
        assert_eq!(nearest_rank(20, 99), 19);
        assert_eq!(nearest_rank(100, 99), 98);
        assert_eq!(nearest_rank(1000, 99), 989);
    }

    #[test]
    fn processor_time_of_a_process_that_has_ended_is_its_own() -> Result<()> {
        let mut busy = Command::new("sh");
        busy.args(["-c", "i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done"]);
        let dir = tempfile_name();
        let (wall, cpu) = start_once(busy, &dir)?;
        fs::remove_dir(&dir)?;
        assert!(!cpu.is_zero() && cpu <= wall, "{cpu:?} of {wall:?}");
        Ok(())
    }

    fn tempfile_name() -> PathBuf {
        std::env::temp_dir().join(format!("blacklight-start-{}", std::process::id()))
    }

    #[test]
    fn what_a_program_says_instead_is_reported() -> Result<()> {
        let mut program = Command::new("sh");
        program.args(["-c", "echo first; echo second >&2"]);
        let process = Process::start(program)?;
        let error = process.await_line(|line| (line == "ready").then_some(()));
        let error = format!("{:#}", error.unwrap_err());
        assert!(error.contains("first\\nsecond\\n"), "{error}");
        Ok(())
    }
}
