//! `cargo xtask fuzz`: libFuzzer on the targets in `fuzz`, and the replay of what it has found.
//!
//! The targets compare our library with the original, which this builds and names to them in an
//! environment variable. Inputs that a run finds go to the target directory; `--bless` adds those
//! that reach new code to the corpus in the repository and drops those that have become needless.
//! Files of the corpus that were given a name of their own stay.

use crate::original::Original;
use crate::{sanitize, workspace};
use anyhow::{Context, Result, bail, ensure};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

/// Run libFuzzer on the parsers, and on functions that take paths, names, messages and options.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The targets to run; all if none is named.
    targets: Vec<String>,
    /// How long to run each.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Only run the targets on their corpus, without libFuzzer or a nightly toolchain.
    #[arg(long)]
    replay: bool,
    /// Add what was found to the corpus in the repository.
    #[arg(long)]
    bless: bool,
}

/// The variable that names the original to the targets.
const ORIGINAL: &str = "BLACKLIGHT_ORIGINAL";

/// The longest input: long enough for a script of some dozen steps.
const MAX_LEN: &str = "-max_len=384";

/// How many inputs a corpus in the repository should have at most.
const MOST_INPUTS: usize = 150;

/// What libFuzzer is told besides how long to run: an input that takes ten seconds hangs.
const FLAGS: [&str; 4] = [
    MAX_LEN,
    "-timeout=10",
    "-print_final_stats=1",
    "-print_funcs=0",
];

/// The directory of the fuzzer's package.
fn package() -> PathBuf {
    workspace::root().join("fuzz")
}

/// The names of all targets, in order.
fn targets() -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in package().join("fuzz_targets").read_dir()? {
        let path = entry?.path();
        let stem = path.file_stem().context("a target without a name")?;
        names.push(stem.to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

/// How a run went.
struct Report {
    executions: u64,
    /// How many inputs are new.
    found: usize,
    /// What failed, if something did.
    failure: Option<String>,
}

/// One target, and where its files are.
struct Target<'a> {
    name: &'a str,
    original: &'a Path,
    /// Inputs found on this machine.
    found: PathBuf,
    log: PathBuf,
}

impl Target<'_> {
    fn new<'a>(name: &'a str, original: &'a Path) -> Result<Target<'a>> {
        Ok(Target {
            name,
            original,
            found: workspace::target_subdir(format!("fuzz/corpus/{name}"))?,
            log: workspace::target_subdir("fuzz")?.join(format!("{name}.log")),
        })
    }

    /// The corpus in the repository.
    fn corpus(&self) -> PathBuf {
        package().join("corpus").join(self.name)
    }

    /// Runs libFuzzer with these directories of inputs, and returns whether it was content.
    fn fuzzer(&self, directories: &[&Path], flags: &[String]) -> Result<bool> {
        let log = fs::File::create(&self.log).context("cannot write a log")?;
        let status = cargo_fuzz("run")
            .arg(self.name)
            .args(directories)
            .arg("--")
            .args(flags)
            .env(ORIGINAL, self.original)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .status()
            .context("cannot run cargo fuzz")?;
        Ok(status.success())
    }

    fn run(&self, seconds: u64) -> Result<Report> {
        // A target may have given up root's rights when libFuzzer writes down what it failed on.
        let artifacts = package().join("artifacts").join(self.name);
        fs::create_dir_all(&artifacts)?;
        fs::set_permissions(&artifacts, Permissions::from_mode(0o777))?;
        let before = count(&self.found)?;
        let mut flags = vec![format!("-max_total_time={seconds}")];
        flags.extend(FLAGS.map(str::to_owned));
        let content = self.fuzzer(&[&self.found, &self.corpus()], &flags)?;
        let log = String::from_utf8_lossy(&fs::read(&self.log)?).into_owned();
        let executions = log
            .lines()
            .find_map(|line| line.strip_prefix("stat::number_of_executed_units:"))
            .and_then(|number| number.trim().parse().ok());
        Ok(Report {
            executions: executions.unwrap_or(0),
            found: count(&self.found)? - before,
            failure: (!content).then(|| excerpt(&log)),
        })
    }

    /// Replaces the corpus by the fewest inputs that reach the same code as all of them, as often if
    /// that does not take too many.
    fn bless(&self) -> Result<()> {
        let merged = match self.merge(&[])? {
            merged if count(&merged)? <= MOST_INPUTS => merged,
            _ => self.merge(&["-use_counters=0"])?,
        };
        for entry in self.corpus().read_dir()? {
            let path = entry?.path();
            if is_hash(&path) {
                fs::remove_file(path)?;
            }
        }
        for entry in merged.read_dir()? {
            let path = entry?.path();
            let name = path.file_name().context("an input without a name")?;
            fs::copy(&path, self.corpus().join(name))?;
        }
        println!("{}: {} inputs", self.name, count(&self.corpus())?);
        Ok(())
    }

    /// Chooses inputs, and returns the directory in which they are.
    fn merge(&self, flags: &[&str]) -> Result<PathBuf> {
        let merged = workspace::target_subdir(format!("fuzz/merged/{}", self.name))?;
        fs::remove_dir_all(&merged)?;
        fs::create_dir_all(&merged)?;
        let flags = [&["-set_cover_merge=1", MAX_LEN], flags].concat();
        let flags: Vec<_> = flags.into_iter().map(str::to_owned).collect();
        let content = self.fuzzer(&[&merged, &self.corpus(), &self.found], &flags)?;
        ensure!(content, "cannot merge: see {}", self.log.display());
        Ok(merged)
    }
}

/// Whether libFuzzer has named the file, after what is in it.
fn is_hash(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    name.len() == 40 && name.iter().all(u8::is_ascii_hexdigit)
}

fn count(directory: &Path) -> Result<usize> {
    let entries = directory.read_dir();
    let entries = entries.with_context(|| format!("cannot list {}", directory.display()))?;
    Ok(entries.count())
}

/// What a log says of a failure: the panic or the sanitizer's finding, and how to repeat it.
fn excerpt(log: &str) -> String {
    let begins = |line: &&str| line.contains("panicked at") || line.contains("ERROR: ");
    let what = log.lines().skip_while(|line| !begins(line)).take(12);
    let how = log
        .lines()
        .skip_while(|line| !line.starts_with("Failing input:"));
    what.chain(how.take(12)).collect::<Vec<_>>().join("\n")
}

fn cargo_fuzz(subcommand: &str) -> Command {
    let mut command = sanitize::nightly();
    command.args(["fuzz", subcommand]).current_dir(package());
    command
}

/// What is missing to fuzz, if anything is.
fn lacks() -> Option<&'static str> {
    if let Some(lack) = sanitize::Sanitizer::Address.lacks() {
        return Some(lack);
    }
    let version = sanitize::nightly().args(["fuzz", "--version"]).output();
    match version.is_ok_and(|version| version.status.success()) {
        true => None,
        false => Some("cargo-fuzz (`cargo install cargo-fuzz`)"),
    }
}

/// Runs the targets on their corpus: an ordinary test, with the original beside ours.
fn replay(names: &[String], original: &Path) -> Result<()> {
    let mut command = workspace::cargo();
    command
        .args(["test", "--quiet", "-p", "blacklight-fuzzing", "--"])
        .args(names)
        .env(ORIGINAL, original)
        .current_dir(workspace::root());
    let status = command.status().context("cannot run cargo test")?;
    ensure!(status.success(), "the replay failed: {command:?}");
    Ok(())
}

/// Runs the chore.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let all = targets()?;
    if let Some(unknown) = options.targets.iter().find(|name| !all.contains(name)) {
        bail!("there is no target {unknown}, but {}", all.join(", "));
    }
    let original = Original::obtain()?.library()?;
    if options.replay {
        replay(&options.targets, &original)?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(lack) = lacks() {
        bail!("fuzzing needs {lack}");
    }
    let names = match options.targets.is_empty() {
        true => &all,
        false => &options.targets,
    };
    let built = cargo_fuzz("build").status();
    ensure!(
        built.is_ok_and(|built| built.success()),
        "the targets do not build"
    );
    let mut failures = 0;
    println!(
        "{:12} {:>12} {:>8} {:>6}",
        "target", "executions", "/s", "new"
    );
    for name in names {
        let target = Target::new(name, &original)?;
        let begun = Instant::now();
        let report = target.run(options.seconds)?;
        let speed = report.executions as f64 / begun.elapsed().as_secs_f64();
        let (executions, found) = (report.executions, report.found);
        println!("{name:12} {executions:>12} {speed:>8.0} {found:>6}");
        if let Some(failure) = report.failure {
            failures += 1;
            println!(
                "FAILED; the whole log is {}\n{failure}",
                target.log.display()
            );
        } else if options.bless {
            target.bless()?;
        }
    }
    println!("{} passed, {failures} failed", names.len() - failures);
    Ok(match failures {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}
