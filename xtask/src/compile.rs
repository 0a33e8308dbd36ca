//! Compiling C: objects in parallel, each made again only when it is out of date.
//!
//! An object is current if it is younger than its source and than every header in the watched
//! directories, and was compiled with the same flags. The flags are kept in a file beside the objects;
//! when they differ, all objects of that directory go.

use anyhow::{Context, Result, bail};
use indicatif::{ProgressBar, ProgressStyle};
use nix::fcntl::{Flock, FlockArg};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::SystemTime;

/// A set of C files compiled with the same flags into the same directory.
pub(crate) struct Objects<'a> {
    /// What is being built, for the progress bar.
    pub(crate) label: &'a str,
    /// The compiler to call.
    pub(crate) compiler: &'a str,
    /// Where the objects go; nothing else may lie there.
    pub(crate) dir: PathBuf,
    pub(crate) flags: Vec<String>,
    /// Directories whose files make every object out of date when they change.
    pub(crate) headers: Vec<PathBuf>,
    pub(crate) sources: Vec<PathBuf>,
}

impl Objects<'_> {
    /// Compiles what is out of date and returns all objects, in the order of the sources.
    pub(crate) fn build(&self) -> Result<Vec<PathBuf>> {
        self.prepare_directory()?;
        let newest_header = newest(&self.headers)?;
        let objects = self.objects();
        let stale: Vec<_> = self
            .sources
            .iter()
            .zip(&objects)
            .filter(|(source, object)| !is_current(object, source, newest_header))
            .collect();
        if !stale.is_empty() {
            self.compile(stale)?;
        }
        Ok(objects)
    }

    fn objects(&self) -> Vec<PathBuf> {
        let object = |source: &PathBuf| {
            // `src/poll.c` and `src/unix/poll.c` are two objects.
            let parent = source
                .parent()
                .and_then(Path::file_name)
                .unwrap_or_default();
            let stem = source.file_stem().unwrap_or_default();
            let name = format!("{}-{}.o", parent.display(), stem.display());
            self.dir.join(name)
        };
        self.sources.iter().map(object).collect()
    }

    fn prepare_directory(&self) -> Result<()> {
        let record = self.dir.join("flags");
        let flags = self.flags.join("\n");
        if fs::read_to_string(&record).is_ok_and(|old| old == flags) {
            return Ok(());
        }
        if self.dir.exists() {
            fs::remove_dir_all(&self.dir)
                .with_context(|| format!("cannot clear {}", self.dir.display()))?;
        }
        fs::create_dir_all(&self.dir)
            .and_then(|()| fs::write(&record, flags))
            .with_context(|| format!("cannot prepare {}", self.dir.display()))
    }

    fn compile(&self, stale: Vec<(&PathBuf, &PathBuf)>) -> Result<()> {
        let bar = ProgressBar::new(stale.len() as u64).with_style(
            ProgressStyle::with_template("{prefix} {bar:30} {pos}/{len}")
                .expect("a valid template"),
        );
        bar.set_prefix(format!("compiling {}", self.label));
        let queue = Mutex::new(stale.into_iter());
        let next = || queue.lock().expect("no worker panics").next();
        let worker = || -> Result<()> {
            while let Some((source, object)) = next() {
                let mut command = Command::new(self.compiler);
                command
                    .args(&self.flags)
                    .arg("-c")
                    .arg(source)
                    .arg("-o")
                    .arg(object);
                run_quietly(command)?;
                bar.inc(1);
            }
            Ok(())
        };
        let outcome = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..jobs()).map(|_| scope.spawn(worker)).collect();
            workers
                .into_iter()
                .map(|worker| worker.join().expect("no worker panics"))
                .collect::<Result<Vec<()>>>()
        });
        bar.finish_and_clear();
        outcome.map(drop)
    }
}

/// How many things to do at the same time on this machine.
pub(crate) fn jobs() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Links `output` anew if it is older than one of `inputs` or was linked otherwise.
pub(crate) fn link(
    compiler: &str,
    output: &Path,
    inputs: &[PathBuf],
    flags: &[String],
) -> Result<()> {
    let record = output.with_extension("link-flags");
    let wanted = flags.join("\n");
    let same_flags = fs::read_to_string(&record).is_ok_and(|old| old == wanted);
    let newest_input = inputs.iter().filter_map(|input| modified(input)).max();
    if same_flags && modified(output) >= newest_input {
        return Ok(());
    }
    let mut command = Command::new(compiler);
    command.arg("-o").arg(output).args(inputs).args(flags);
    run_quietly(command)?;
    fs::write(&record, wanted).with_context(|| format!("cannot write {}", record.display()))
}

/// Holds `dir` for one process: two chores at once would compile into each other's objects.
pub(crate) fn lock(dir: &Path) -> Result<Flock<File>> {
    let path = dir.join(".lock");
    let file = File::create(&path).with_context(|| format!("cannot make {}", path.display()))?;
    Flock::lock(file, FlockArg::LockExclusive)
        .map_err(|(_, errno)| errno)
        .with_context(|| format!("cannot lock {}", path.display()))
}

/// Runs a command and shows what it said only if it failed.
pub(crate) fn run_quietly(mut command: Command) -> Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .with_context(|| format!("cannot run {program} (is it installed?)"))?;
    if !output.status.success() {
        bail!(
            "{command:?} failed:\n{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(())
}

fn is_current(object: &Path, source: &Path, newest_header: Option<SystemTime>) -> bool {
    match (modified(object), modified(source)) {
        (Some(made), Some(written)) => made >= written && Some(made) >= newest_header,
        _ => false,
    }
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path)
        .and_then(|metadata| metadata.modified())
        .ok()
}

/// The time of the last change to any file below `dirs`.
fn newest(dirs: &[PathBuf]) -> Result<Option<SystemTime>> {
    let mut newest = None;
    let mut pending = dirs.to_vec();
    while let Some(dir) = pending.pop() {
        let entries =
            fs::read_dir(&dir).with_context(|| format!("cannot list {}", dir.display()))?;
        for entry in entries {
            let path = entry?.path();
            if path.is_dir() {
                pending.push(path);
            } else {
                newest = newest.max(modified(&path));
            }
        }
    }
    Ok(newest)
}
