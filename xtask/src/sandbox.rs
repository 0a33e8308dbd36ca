//! Runs one program in a small machine of its own: private network, mounts and processes.
//!
//! Every run gets its own network namespace with only the loopback device, so runs at the same
//! time cannot meet on a port; its own mount namespace with its own `/tmp`, working directory, home and
//! `/etc/hosts`; its own process namespace, so that at the end or at the time limit every
//! process it left behind is gone, even those that have left its process group; and a terminal
//! of its own. The program runs as an unprivileged user that exists only inside.
//!
//! The outside half is here: it prepares a scratch directory, starts `unshare` and reads the
//! report. The inside half is [`init`], the same executable as first process of the sandbox.

pub(crate) mod init;

use crate::emulation;
use crate::original::Original;
use crate::refusal::Refusal;
use crate::{library, target, workspace};
use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

const USER: &str = "blacklight-test";
/// Far from what distributions hand out; the user exists only inside the sandbox.
const USER_ID: u32 = 61_337;

/// Everything that runs of one chore share: the files mounted over `/etc`, the libraries.
pub(crate) struct Sandbox {
    dir: PathBuf,
    /// A copy of this executable, which stays the same when Cargo builds another.
    init: PathBuf,
    fixtures: PathBuf,
    /// Directories outside that every run finds below [`init::HOUSE`], by name.
    rooms: Vec<(String, PathBuf)>,
    /// What runs the programs of other processors.
    emulation: Option<emulation::Entry>,
    /// A system call that is refused to all programs inside.
    refusal: Option<Refusal>,
    /// The name of a system call whose failures are to be reported.
    trace: Option<String>,
    next: AtomicU32,
}

/// A program to run.
pub(crate) struct Job<'a> {
    /// The executable, outside.
    pub(crate) program: &'a Path,
    pub(crate) arguments: &'a [&'a str],
    /// A directory returned by [`Sandbox::adopt`].
    pub(crate) library_dir: &'a Path,
    pub(crate) environment: &'a [(&'a str, &'a str)],
    /// A program outside that the working directory is to have a link to.
    pub(crate) tool: Option<&'a Path>,
    pub(crate) limit: Duration,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Ended {
    Exited(i32),
    Killed(i32),
    TimedOut,
}

/// What became of a program.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) ended: Ended,
    /// Standard output and standard error, as they came.
    pub(crate) output: String,
    /// What any process inside has left below [`init::REPORTS`], in the order of file names.
    pub(crate) reports: Vec<String>,
    pub(crate) wall: Duration,
    /// User and system time of the program and of all processes it waited for.
    pub(crate) cpu: Duration,
}

impl Run {
    /// The function that the dynamic linker looked for in vain, if the program ended over one.
    pub(crate) fn missing_function(&self) -> Option<&str> {
        let complaint = self
            .output
            .lines()
            .find(|line| line.contains("symbol lookup error:"))?;
        let (_, function) = complaint.split_once("undefined symbol: ")?;
        function.split([' ', ',']).next()
    }
}

/// What the inside is told to do.
#[derive(Serialize, Deserialize)]
struct Spec {
    report: PathBuf,
    /// The directories that appear below [`init::HOUSE`], by name.
    rooms: Vec<(String, PathBuf)>,
    /// The files that take the place of others.
    covers: Vec<(PathBuf, PathBuf)>,
    /// What runs the programs of other processors.
    emulation: Option<emulation::Entry>,
    refusal: Option<Refusal>,
    /// The name of a system call whose failures are to be reported.
    trace: Option<String>,
    user: u32,
    program: String,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    limit: Duration,
}

/// What the inside says when the program has ended.
#[derive(Serialize, Deserialize)]
struct Report {
    ended: Ended,
    wall: Duration,
    cpu: Duration,
}

impl Sandbox {
    /// Prepares what all runs share.
    pub(crate) fn open(original: &Original) -> Result<Sandbox> {
        ensure!(
            nix::unistd::geteuid().is_root(),
            "sandboxes need namespaces and mounts: run this as root"
        );
        workspace::require_tool("unshare", "util-linux")?;
        workspace::require_tool("ip", "iproute2")?;
        let all = workspace::target_subdir("sandbox")?;
        clear_leftovers(&all)?;
        let dir = all.join(std::process::id().to_string());
        fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
        let init = dir.join("init");
        workspace::copy_into_place(Path::new("/proc/self/exe"), &init)?;
        let mut rooms = Vec::new();
        let mut emulation = None;
        if let Some(target) = original.target() {
            rooms.push((target::SYSTEM_ROOM.to_owned(), target.system()?));
            emulation = target
                .emulator()
                .map(|emulator| emulator.entry())
                .transpose()?;
        }
        let sandbox = Sandbox {
            dir,
            init,
            fixtures: original.fixtures(),
            rooms,
            emulation,
            refusal: None,
            trace: None,
            next: AtomicU32::new(0),
        };
        sandbox.write_etc()?;
        Ok(sandbox)
    }

    /// Takes a copy of a library for runs of this sandbox; returns the directory to name in a [`Job`].
    pub(crate) fn adopt(&self, library: &Path, name: &str) -> Result<PathBuf> {
        let dir = self.dir.join("libraries").join(name);
        library::snapshot(library, &dir)?;
        Ok(dir)
    }

    /// This executable, for chores that have a part of their own inside.
    pub(crate) fn executable(&self) -> &Path {
        &self.init
    }

    /// Has a system call be refused to all programs from now on.
    pub(crate) fn refuse(&mut self, refusal: Refusal) {
        self.refusal = Some(refusal);
    }

    /// Has the failures of a system call be reported, a line for each that begins with the thread's
    /// number.
    pub(crate) fn trace(&mut self, call: &str) -> Result<()> {
        workspace::require_tool("strace", "strace")?;
        self.trace = Some(call.to_owned());
        Ok(())
    }

    /// Has a directory outside appear in all runs from now on; returns its name inside.
    pub(crate) fn add_room(&mut self, name: &str, dir: PathBuf) -> PathBuf {
        self.rooms.push((name.to_owned(), dir));
        Path::new(init::HOUSE).join(name)
    }

    /// Runs a program to its end or its time limit.
    pub(crate) fn run(&self, job: &Job<'_>) -> Result<Run> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let scratch = self.dir.join(format!("run-{number}"));
        let outcome = self.run_in(&scratch, job);
        let cleared = fs::remove_dir_all(&scratch);
        let run = outcome?;
        cleared.with_context(|| format!("cannot clear {}", scratch.display()))?;
        Ok(run)
    }

    fn run_in(&self, scratch: &Path, job: &Job<'_>) -> Result<Run> {
        let spec = self.describe(scratch, job)?;
        let spec_file = scratch.join("spec.json");
        let text = serde_json::to_string(&spec).context("cannot describe the sandbox")?;
        fs::write(&spec_file, text).context("cannot write the sandbox's description")?;
        let output_file = scratch.join("output");
        let output = File::create(&output_file).context("cannot make the output file")?;
        let errors = output.try_clone().context("cannot share the output file")?;
        let status = Command::new("unshare")
            .args([
                "--net",
                "--mount",
                "--pid",
                "--ipc",
                "--fork",
                "--kill-child",
                "--mount-proc",
                "--",
            ])
            .arg(&self.init)
            .arg("sandbox-init")
            .arg(&spec_file)
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .status()
            .context("cannot run unshare")?;
        let output = fs::read(&output_file).context("cannot read the output")?;
        let output = String::from_utf8_lossy(&output).into_owned();
        let report = fs::read_to_string(&spec.report)
            .ok()
            .and_then(|report| serde_json::from_str::<Report>(&report).ok())
            .with_context(|| format!("the sandbox broke down ({status}): {output}"))?;
        Ok(Run {
            ended: report.ended,
            output,
            reports: read_all(&scratch.join("reports"))?,
            wall: report.wall,
            cpu: report.cpu,
        })
    }

    fn describe(&self, scratch: &Path, job: &Job<'_>) -> Result<Spec> {
        let work = self.room(scratch, "work", 0o755)?;
        let fixtures = self.room(&work, "test", 0o755)?.join("fixtures");
        copy_tree(&self.fixtures, &fixtures)?;
        if let Some(tool) = job.tool {
            let name = tool.file_name().context("a tool without a name")?;
            symlink(tool, work.join(name))
                .with_context(|| format!("cannot link {}", tool.display()))?;
        }
        let name = job
            .program
            .file_name()
            .context("a program without a name")?;
        let bin = job
            .program
            .parent()
            .context("a program without a directory")?;
        let environment = [
            ("PATH", "/usr/local/bin:/usr/bin:/bin"),
            ("HOME", init::HOME),
            ("TMPDIR", "/tmp"),
            ("USER", USER),
            ("TERM", "xterm"),
        ];
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let etc = ["hosts", "passwd", "group", "resolv.conf"];
        Ok(Spec {
            report: scratch.join("report.json"),
            rooms: [
                ("bin".to_owned(), bin.to_owned()),
                ("lib".to_owned(), job.library_dir.to_owned()),
                ("work".to_owned(), work),
                ("home".to_owned(), self.room(scratch, "home", 0o755)?),
                ("tmp".to_owned(), self.room(scratch, "tmp", 0o1777)?),
                ("reports".to_owned(), self.room(scratch, "reports", 0o1777)?),
            ]
            .into_iter()
            .chain(self.rooms.iter().cloned())
            .collect(),
            covers: etc
                .map(|file| {
                    (
                        self.dir.join("etc").join(file),
                        Path::new("/etc").join(file),
                    )
                })
                .into(),
            emulation: self.emulation.clone(),
            refusal: self.refusal,
            trace: self.trace.clone(),
            user: USER_ID,
            program: name.to_string_lossy().into_owned(),
            arguments: job
                .arguments
                .iter()
                .map(|argument| (*argument).to_owned())
                .collect(),
            environment: environment
                .iter()
                .chain(job.environment)
                .map(owned)
                .collect(),
            limit: job.limit,
        })
    }

    /// Makes a directory that belongs to the user inside.
    fn room(&self, parent: &Path, name: &str, mode: u32) -> Result<PathBuf> {
        let dir = parent.join(name);
        fs::create_dir_all(&dir)
            .and_then(|()| chown(&dir, Some(USER_ID), Some(USER_ID)))
            .and_then(|()| fs::set_permissions(&dir, fs::Permissions::from_mode(mode)))
            .with_context(|| format!("cannot make {}", dir.display()))?;
        Ok(dir)
    }

    /// Writes the files that lie over those of `/etc`: both loopback addresses are called
    /// `localhost`, the user has an entry, and no name server is asked outside.
    fn write_etc(&self) -> Result<()> {
        let etc = self.dir.join("etc");
        let lines =
            |file: &str| fs::read_to_string(Path::new("/etc").join(file)).unwrap_or_default();
        let passwd = format!("{USER}:x:{USER_ID}:{USER_ID}::{}:/bin/sh\n", init::HOME);
        let files = [
            ("hosts", "127.0.0.1 localhost\n::1 localhost\n".to_owned()),
            ("passwd", lines("passwd") + &passwd),
            ("group", lines("group") + &format!("{USER}:x:{USER_ID}:\n")),
            ("resolv.conf", "nameserver 127.0.0.1\n".to_owned()),
        ];
        fs::create_dir_all(&etc).with_context(|| format!("cannot make {}", etc.display()))?;
        for (name, text) in files {
            fs::write(etc.join(name), text).with_context(|| format!("cannot write {name}"))?;
        }
        Ok(())
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        // What is left over is cleared when the next sandbox is opened.
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// Removes the directories of processes that are no more: those that were interrupted.
fn clear_leftovers(all: &Path) -> Result<()> {
    let own = std::process::id().to_string();
    for entry in fs::read_dir(all).with_context(|| format!("cannot list {}", all.display()))? {
        let dir = entry?.path();
        let owner = dir.file_name().unwrap_or_default();
        if *owner == *own || !Path::new("/proc").join(owner).exists() {
            // Another chore that starts at this moment may be clearing it as well.
            let _ = fs::remove_dir_all(&dir);
        }
    }
    Ok(())
}

/// The texts of all files in `dir`.
fn read_all(dir: &Path) -> Result<Vec<String>> {
    let failed = || format!("cannot read {}", dir.display());
    let mut paths = Vec::new();
    for entry in fs::read_dir(dir).with_context(failed)? {
        paths.push(entry.with_context(failed)?.path());
    }
    paths.sort();
    let text = |path: &PathBuf| Ok(String::from_utf8_lossy(&fs::read(path)?).into_owned());
    let texts: Result<Vec<String>> = paths.iter().map(text).collect();
    texts.with_context(failed)
}

fn copy_tree(from: &Path, to: &Path) -> Result<()> {
    let failed = || format!("cannot copy {} to {}", from.display(), to.display());
    fs::create_dir_all(to).with_context(failed)?;
    chown(to, Some(USER_ID), Some(USER_ID)).with_context(failed)?;
    for entry in fs::read_dir(from).with_context(failed)? {
        let entry = entry.with_context(failed)?;
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_tree(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), &target).with_context(failed)?;
            chown(&target, Some(USER_ID), Some(USER_ID)).with_context(failed)?;
        }
    }
    Ok(())
}
