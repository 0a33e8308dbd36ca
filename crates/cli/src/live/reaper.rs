//! The process between the server and the program that it has started, which leaves nothing behind however they end.
//!
//! Everything that the program starts becomes a descendant of this process, also what loses its parents, and this process ends when there
//! is none left. It ends them when the server is gone, which the end of a pipe tells, and removes what they were asked to write: the maps
//! and logs by which functions of scripts have names, and the records of those that a signal has ended.

use crate::run::asks_for_maps;
use crate::target;
use anyhow::{Context, Result};
use rustix::fs::inotify;
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, kill_process, pidfd_open, pidfd_send_signal,
    set_child_subreaper, wait,
};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Write};
use std::mem::MaybeUninit;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// How long processes may take to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(3);
/// How often it is looked which of them are left.
const LOOK: Duration = Duration::from_millis(20);
/// How often it is looked when those that are left do not end: another user's cannot be ended.
const REST: Duration = Duration::from_secs(1);
/// Where maps of functions are written.
const MAPS: &str = "/tmp";

/// The options of the command.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The server.
    server: u32,
    /// Its descriptor of a pipe that ends with it.
    orders: u32,
    /// Its descriptor of a pipe that takes what becomes of the program.
    report: u32,
    /// Start the program of the demo.
    #[arg(long)]
    demo: bool,
    /// The program and its arguments.
    #[arg(last = true)]
    program: Vec<OsString>,
}

/// The process that has started another one.
pub(super) fn parent(pid: u32) -> Option<u32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = text.rsplit_once(')')?;
    rest.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Whether a process is about to end, or has ended and its parent has not asked how. It gives up its program before its descriptors.
fn is_ending(pid: u32) -> bool {
    let program = std::fs::read_link(format!("/proc/{pid}/exe"));
    program.is_err() && parent(pid).is_some()
}

/// All descendants of a process.
fn descendants(root: u32) -> BTreeSet<u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let parents: HashMap<u32, u32> = pids.filter_map(|pid| Some((pid, parent(pid)?))).collect();
    let mut found = BTreeSet::from([root]);
    loop {
        let known = found.len();
        let more = parents.iter().filter(|(_, of)| found.contains(of));
        let more: Vec<u32> = more.map(|(pid, _)| *pid).collect();
        found.extend(more);
        if found.len() == known {
            found.remove(&root);
            return found;
        }
    }
}

/// The process that writes a file of this name: `perf-PID.map`, or `PID.NAMESPACE` for a record.
fn writer(name: &str) -> Option<u32> {
    let map = name
        .strip_prefix("perf-")
        .and_then(|name| name.strip_suffix(".map"));
    let record = || name.split_once('.').map(|(pid, _)| pid);
    map.or_else(record)?.parse().ok()
}

/// The processes that may leave something behind, and the directories in which they have worked.
struct Litter {
    since: SystemTime,
    known: Mutex<BTreeMap<u32, BTreeSet<PathBuf>>>,
}

impl Litter {
    fn known(&self) -> std::sync::MutexGuard<'_, BTreeMap<u32, BTreeSet<PathBuf>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a process that runs.
    fn note(&self, pid: u32) {
        let folder = std::fs::read_link(format!("/proc/{pid}/cwd"));
        self.known().entry(pid).or_default().extend(folder.ok());
    }

    /// Notes processes as they begin to write a map or a record: some live for a moment only.
    fn watch(self: Arc<Litter>, own: u32) -> Result<()> {
        let watch = inotify::init(inotify::CreateFlags::CLOEXEC)?;
        inotify::add_watch(&watch, MAPS, inotify::WatchFlags::CREATE)?;
        for folder in blacklight_record::read::directories() {
            // Only those that there are have records.
            let _ = inotify::add_watch(&watch, folder, inotify::WatchFlags::CREATE);
        }
        std::thread::Builder::new().spawn(move || {
            let mut room = [MaybeUninit::uninit(); 4096];
            let mut events = inotify::Reader::new(watch, &mut room);
            loop {
                let event = match events.next() {
                    Ok(event) => event,
                    Err(Errno::INTR) => continue,
                    Err(_) => return,
                };
                let name = event.file_name().and_then(|name| name.to_str().ok());
                if let Some(pid) = name.and_then(writer).filter(|pid| descends(*pid, own)) {
                    self.note(pid);
                }
            }
        })?;
        Ok(())
    }

    /// Removes what the processes have left that have ended.
    fn tidy(&self, are_maps_ours: bool) {
        for (pid, folders) in &*self.known() {
            if parent(*pid).is_some() {
                continue;
            }
            blacklight_record::read::remove(*pid);
            if !are_maps_ours {
                continue;
            }
            self.remove(&Path::new(MAPS).join(format!("perf-{pid}.map")));
            let end = format!("-{pid}-v8.log");
            let entries = folders.iter().flat_map(std::fs::read_dir);
            for entry in entries.flatten().flatten() {
                let name = entry.file_name();
                let name = name.to_string_lossy();
                if name.starts_with("isolate") && name.ends_with(&end) {
                    self.remove(&entry.path());
                }
            }
        }
    }

    /// Removes a file of the user's own that was written since the program was started.
    fn remove(&self, path: &Path) {
        let own = rustix::process::geteuid().as_raw();
        let is_ours = std::fs::symlink_metadata(path).is_ok_and(|of| {
            let is_new = of.modified().is_ok_and(|at| at >= self.since);
            of.is_file() && of.uid() == own && is_new
        });
        if is_ours {
            // There is nobody to tell.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Whether a process has this ancestor.
fn descends(mut pid: u32, root: u32) -> bool {
    // A number that is given out anew in between could make a circle.
    (0..64).any(|_| {
        pid = parent(pid).unwrap_or(0);
        pid == root
    })
}

/// Sends a signal to a descendant. Its number may have been given to another process since it was found, so that it is held first, and then
/// asked for its ancestors.
fn tell(pid: u32, own: u32, signal: Signal) {
    let Some(process) = Pid::from_raw(pid as i32) else {
        return;
    };
    let held = pidfd_open(process, PidfdFlags::empty());
    if !descends(pid, own) {
        return;
    }
    // It may have ended in between, or be another user's.
    let _ = match held {
        Ok(held) => pidfd_send_signal(held, signal),
        // A system from before 5.3 cannot hold it.
        Err(Errno::NOSYS) => kill_process(process, signal),
        Err(error) => Err(error),
    };
}

/// Ends all descendants: by SIGTERM first, and what is there then by SIGKILL.
fn end(own: u32, litter: &Litter, is_over: &AtomicBool) {
    let begun = Instant::now();
    let mut asked = HashSet::new();
    let mut pause = LOOK;
    while !is_over.load(Ordering::Acquire) {
        let is_late = begun.elapsed() >= GRACE;
        let mut is_vain = is_late;
        for pid in descendants(own) {
            litter.note(pid);
            let signal = if is_late { Signal::KILL } else { Signal::TERM };
            let is_first = asked.insert((pid, is_late));
            is_vain &= !is_first;
            if is_first || is_late {
                tell(pid, own, signal);
            }
        }
        pause = next_pause(pause, is_vain);
        // The end of the last one ends the pause.
        std::thread::park_timeout(pause);
    }
}

/// The pause after one, by whether all that are left have got SIGKILL before.
fn next_pause(pause: Duration, is_vain: bool) -> Duration {
    match is_vain {
        true => (pause * 2).min(REST),
        false => LOOK,
    }
}

/// The command that starts the program.
fn command(options: &Options) -> Result<Command> {
    if !options.demo {
        return target::command(&options.program, true, true);
    }
    let own = std::env::current_exe().context("cannot find this program")?;
    let mut command = Command::new(own);
    command.arg("live-demo").arg(std::process::id().to_string());
    command
        .env("BLACKLIGHT_RECORD", "origins")
        .stdin(Stdio::null());
    Ok(command)
}

/// Starts the program, tells the server what becomes of it, and ends when nothing is left.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let end_of = |fd| format!("/proc/{}/fd/{fd}", options.server);
    let mut orders = File::open(end_of(options.orders)).context("the server is gone")?;
    let report = File::options().write(true).open(end_of(options.report));
    let mut report = report.context("the server is gone")?;
    // A terminal sends its signals to all processes; the server decides.
    for signal in [
        signal_hook::consts::SIGINT,
        signal_hook::consts::SIGTERM,
        signal_hook::consts::SIGHUP,
        signal_hook::consts::SIGQUIT,
    ] {
        signal_hook::flag::register(signal, Arc::default())?;
    }
    let own = std::process::id();
    set_child_subreaper(Pid::from_raw(own as i32))?;
    let litter = Arc::new(Litter {
        // File systems have coarse clocks.
        since: SystemTime::now() - Duration::from_secs(1),
        known: Mutex::default(),
    });
    // Where the system has no room for one more, the maps of short-lived processes stay.
    let _ = Arc::clone(&litter).watch(own);
    let mut command = command(options)?;
    let child = command.spawn().context("cannot start the program")?.id();
    litter.note(child);
    // Nobody reads it when the server is gone.
    let _ = writeln!(report, "{child}");
    let is_over = Arc::new(AtomicBool::new(false));
    let ends = std::thread::Builder::new().spawn({
        let (is_over, litter) = (Arc::clone(&is_over), Arc::clone(&litter));
        move || {
            // Nothing is ever written: the pipe ends with the server.
            let _ = orders.read_to_end(&mut Vec::new());
            end(own, &litter, &is_over);
        }
    })?;
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid.as_raw_nonzero().get() as u32 == child => {
                let _ = writeln!(report, "{}", status.as_raw());
            }
            Ok(_) | Err(Errno::INTR) => {}
            // All have ended, and nobody is there to start more.
            Err(_) => break,
        }
    }
    is_over.store(true, Ordering::Release);
    // What the processes have left is of use as long as the page is there.
    ends.thread().unpark();
    let _ = ends.join();
    litter.tidy(!asks_for_maps(&options.program));
    // So does the server, if it was killed; its own parent may be about to ask how.
    let begun = Instant::now();
    while is_ending(options.server) && begun.elapsed() < GRACE {
        std::thread::sleep(LOOK);
    }
    blacklight_record::read::remove(options.server);
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_left_since_is_removed() {
        let folder = std::env::temp_dir().join(format!("blacklight-litter-{}", std::process::id()));
        std::fs::create_dir(&folder).expect("it is new");
        let mut child = Command::new("true").spawn().expect("it runs");
        let pid = child.id();
        child.wait().expect("it ends");
        let log = folder.join(format!("isolate0x55-{pid}-v8.log"));
        let others = [
            folder.join(format!("isolate0x55-{}-v8.log", pid + 1)),
            folder.join(format!("{pid}-v8.log")),
        ];
        for file in others.iter().chain([&log]) {
            std::fs::write(file, "").expect("there is room");
        }
        let mut litter = Litter {
            since: SystemTime::now() + Duration::from_secs(60),
            known: Mutex::new(BTreeMap::from([(pid, BTreeSet::from([folder.clone()]))])),
        };
        litter.tidy(true);
        assert!(log.exists(), "it is older");
        litter.since -= Duration::from_secs(120);
        litter.tidy(false);
        assert!(log.exists(), "the user has asked for it");
        litter.tidy(true);
        assert!(!log.exists() && others.iter().all(|file| file.exists()));
        std::fs::remove_dir_all(&folder).expect("it is there");
    }

    #[test]
    fn processes_that_do_not_end_are_looked_for_once_a_second() {
        let vain = std::iter::successors(Some(LOOK), |pause| Some(next_pause(*pause, true)));
        let pauses: Vec<Duration> = vain.take(8).collect();
        assert!(pauses.is_sorted() && pauses[1] > LOOK, "{pauses:?}");
        assert_eq!(pauses[7], REST);
        assert_eq!(next_pause(REST, true), REST);
        assert_eq!(next_pause(REST, false), LOOK, "there is a new one");
    }

    #[test]
    fn a_process_that_has_ended_is_told_from_one_that_runs() {
        let mut child = Command::new("cat");
        let child = child.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = child.spawn().expect("it runs");
        let pid = child.id();
        assert!(!is_ending(pid) && !is_ending(std::process::id()));
        child.kill().expect("it runs");
        let mut output = child.stdout.take().expect("it was asked for");
        // The pipe ends with its process, which need not be a zombie yet.
        output.read_to_end(&mut Vec::new()).expect("it ends");
        assert!(is_ending(pid));
        child.wait().expect("it ends");
        assert!(!is_ending(pid));
    }

    #[test]
    fn only_a_descendant_gets_a_signal() {
        let mut child = Command::new("sleep").arg("60").spawn().expect("it runs");
        let mut other = Command::new("sleep").arg("60").spawn().expect("it runs");
        // Its number was that of a descendant of the other once.
        tell(child.id(), other.id(), Signal::KILL);
        tell(other.id(), std::process::id(), Signal::KILL);
        other.wait().expect("it ends");
        assert!(child.try_wait().expect("it is there").is_none());
        child.kill().expect("it runs");
        child.wait().expect("it ends");
    }

    #[test]
    fn descendants_are_found() {
        let mut child = Command::new("sh");
        let child = child.args(["-c", "sleep 60 & wait"]);
        let mut child = child.spawn().expect("it runs");
        let own = std::process::id();
        let of_child = loop {
            let found = descendants(child.id());
            if !found.is_empty() {
                break found;
            }
            std::thread::yield_now();
        };
        assert_eq!(of_child.len(), 1, "{of_child:?}");
        let grandchild = *of_child.first().expect("there is one");
        assert!(descendants(own).contains(&grandchild) && descends(grandchild, own));
        assert!(!descends(own, grandchild) && !descendants(grandchild).contains(&own));
        let process = Pid::from_raw(grandchild as i32).expect("a process");
        kill_process(process, Signal::KILL).expect("it runs");
        child.wait().expect("it ends");
    }
}
