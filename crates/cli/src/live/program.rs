//! The program that was started to be shown, by way of the [reaper](super::reaper).

use super::hub::Hub;
use super::sampler::Started;
use crate::words::tell;
use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::pipe::{PipeFlags, pipe_with};
use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long the end of everything may take: longer than the reaper waits for those that have been sent SIGTERM.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often the reaper is looked at.
const LOOK: Duration = Duration::from_millis(10);

/// The program.
pub(super) struct Program {
    pub(super) pid: u32,
    reaper: Child,
    /// All that the program has started ends when this is closed, however that comes.
    orders: OwnedFd,
}

impl Program {
    /// Starts a program, or that of the demo where there are no words.
    pub(super) fn start(words: &[OsString], hub: &Arc<Hub>) -> Result<Program> {
        let (ordered, orders) = pipe_with(PipeFlags::CLOEXEC)?;
        let (report, reported) = pipe_with(PipeFlags::CLOEXEC)?;
        let own = std::env::current_exe().context("cannot find this program")?;
        let mut command = Command::new(own);
        command
            .arg("live-reaper")
            .arg(std::process::id().to_string())
            .arg(ordered.as_raw_fd().to_string())
            .arg(reported.as_raw_fd().to_string());
        match words {
            [] => command.arg("--demo"),
            words => command.arg("--").args(words),
        };
        let mut reaper = command.spawn().context("cannot start the program")?;
        // It opens the pipes by way of this process, and says a word when it has.
        let limit = Timespec {
            tv_sec: 0,
            tv_nsec: LOOK.as_nanos() as i64,
        };
        while poll(&mut [PollFd::new(&report, PollFlags::IN)], Some(&limit)).unwrap_or(0) == 0 {
            if let Some(status) = reaper.try_wait()? {
                bail!("the program was not started ({status})");
            }
        }
        drop((ordered, reported));
        let mut report = BufReader::new(File::from(report)).lines();
        let pid = report.next().transpose()?;
        let pid = pid.and_then(|pid| pid.parse().ok());
        let pid = pid.context("the program was not started")?;
        let hub = Arc::clone(hub);
        std::thread::Builder::new().spawn(move || {
            let status = report.next().and_then(|line| line.ok()?.parse().ok());
            let how = match status {
                Some(status) => ExitStatus::from_raw(status).to_string(),
                None => "nobody knows how".into(),
            };
            let mut shared = hub.lock();
            shared.ended = Some(how.clone());
            let is_over = shared.end.is_some();
            drop(shared);
            hub.wake_sampler();
            if !is_over {
                tell(&format!(
                    "process {pid} has ended: {how}; the page stays until Ctrl-C"
                ));
            }
        })?;
        Ok(Program {
            pid,
            reaper,
            orders,
        })
    }

    /// The processes that there are of it.
    pub(super) fn started(&self) -> Started {
        Started {
            pid: self.pid,
            reaper: self.reaper.id(),
        }
    }

    /// Ends the program and all that it has started.
    pub(super) fn finish(self) -> Result<()> {
        let Program {
            pid,
            mut reaper,
            orders,
        } = self;
        drop(orders);
        let begun = Instant::now();
        while reaper.try_wait()?.is_none() {
            if begun.elapsed() >= PATIENCE {
                bail!("the program, process {pid}, or one of its children cannot be ended");
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }
}
