//! The process that a view watches: one that runs already, or one that the view starts.

use crate::words::tell;
use anyhow::{Context, Result, bail, ensure};
use blacklight_record::read::{Error, Reader};
use std::ffi::OsString;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a process may take until it records: a loop that computes begins at its next turn.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long the loops of a process may take that are woken to be recorded. Those that compute, and those that nobody
/// runs, are not waited for any longer.
const LOOPS_PATIENCE: Duration = Duration::from_millis(200);
/// How often a process that starts is looked at.
const INTERVAL: Duration = Duration::from_millis(5);

/// Which process to watch.
#[derive(clap::Args)]
// Every view's options have this type's name too, and groups of one name exclude each other.
#[group(skip)]
pub(crate) struct Options {
    /// The process to watch.
    #[arg(conflicts_with = "program", required_unless_present = "program")]
    pid: Option<u32>,
    /// Keep where each handle of the program is made.
    #[arg(long, requires = "program")]
    origins: bool,
    /// A program to start and watch, with its arguments.
    #[arg(last = true)]
    program: Vec<OsString>,
}

/// A process that records.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) reader: Reader,
    /// The program, if the view has started it.
    pub(crate) child: Option<Child>,
}

impl Options {
    /// Whether the view starts the process.
    pub(crate) fn is_program(&self) -> bool {
        self.pid.is_none()
    }

    /// Opens the record of the process, which is asked to record if it does not. `is_silent` keeps the
    /// output of a program that is started off the terminal.
    pub(crate) fn open(&self, is_silent: bool) -> Result<Target> {
        match self.pid {
            Some(pid) => attach(pid),
            None => start(&self.program, is_silent, self.origins, true),
        }
    }

    /// Opens the record of the process for a view that has no use for stacks. A program that is started need not name its functions then,
    /// which leaves files behind: V8 makes a log in the working directory for each of its heaps.
    pub(crate) fn open_without_stacks(&self) -> Result<Target> {
        match self.pid {
            Some(pid) => attach(pid),
            None => start(&self.program, false, self.origins, false),
        }
    }
}

/// Has a process that runs record.
pub(crate) fn attach(pid: u32) -> Result<Target> {
    let reader = Reader::open(pid)?;
    if !reader.is_recording()? {
        reader.want()?;
        let is_awake = reader.wake()?;
        let begun = Instant::now();
        while !reader.is_recording()? && begun.elapsed() < PATIENCE {
            ensure!(reader.is_alive(), Error::Gone(pid));
            std::thread::sleep(INTERVAL);
        }
        if !reader.is_recording()? {
            let hint = match is_awake {
                true => "",
                false => {
                    "; the system forbids waking them: watch as root, or start the program by `blacklight run --record`"
                }
            };
            bail!("{}{hint}", Error::NotRecording(pid));
        }
        reader.await_loops(LOOPS_PATIENCE)?;
    }
    ensure!(has_room(&reader)?, Error::Refused(pid));
    let child = None;
    Ok(Target { reader, child })
}

/// Whether the record has had room for a loop, if there are any.
fn has_room(reader: &Reader) -> Result<bool> {
    let snapshot = reader.snapshot()?;
    Ok(!snapshot.loops.is_empty() || snapshot.refused == 0)
}

/// The command that starts a program by `blacklight run --record`, to end with this process.
pub(crate) fn command(
    program: &[OsString],
    keeps_origins: bool,
    names_functions: bool,
) -> Result<Command> {
    let own = std::env::current_exe().context("cannot find this program")?;
    let mut command = Command::new(own);
    command.args(["run", "--record", "--bound"]);
    command.arg(std::process::id().to_string());
    if names_functions {
        command.arg("--stacks");
    }
    if keeps_origins {
        command.arg("--origins");
    }
    command.arg("--").args(program);
    Ok(command)
}

/// Starts a program and waits until it has a loop.
fn start(
    program: &[OsString],
    is_silent: bool,
    keeps_origins: bool,
    names_functions: bool,
) -> Result<Target> {
    let mut command = command(program, keeps_origins, names_functions)?;
    if is_silent {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
    }
    let mut child = command.spawn().context("cannot start the program")?;
    match await_loop(&mut child) {
        Ok(reader) => {
            let child = Some(child);
            Ok(Target { reader, child })
        }
        Err(error) => {
            // It was started to be watched. It may have ended already.
            let _ = child.kill();
            let _ = child.wait();
            Err(error)
        }
    }
}

/// Waits until a program records a loop.
fn await_loop(child: &mut Child) -> Result<Reader> {
    let begun = Instant::now();
    let mut is_told = false;
    loop {
        match Reader::open(child.id()) {
            Ok(reader) if reader.is_recording()? => {
                ensure!(has_room(&reader)?, Error::Refused(child.id()));
                return Ok(reader);
            }
            Err(error @ Error::OtherVersion { .. }) => bail!(error),
            // It has not come so far yet.
            Ok(_) | Err(_) => {}
        }
        if let Some(status) = child.try_wait()? {
            bail!("the program has ended before it made a loop ({status})");
        }
        if begun.elapsed() > PATIENCE && !std::mem::replace(&mut is_told, true) {
            tell("the program has not made a loop yet; waiting for one");
        }
        std::thread::sleep(INTERVAL);
    }
}
