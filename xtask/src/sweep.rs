//! `cargo xtask sweep`: every call that the library makes into the C library fails once.
//!
//! A program with scenarios (`xtask/sweep/`) is run once per scenario to count the calls, then
//! once per *case*: one call, by its number, with one error that its man page allows. The program
//! judges itself; see `xtask/sweep/main.c` for what must hold. A case is named
//! `scenario/call#number/error`, and `--case` repeats it.
//!
//! Cases run in batches, each batch in a sandbox, each case in a process of its own.
//!
//! An allocation that finds no memory must end in an error, not in the abort that Rust's own
//! collections answer with. The few places where they are left to do so are in `aborts.txt`; an abort
//! anywhere else fails.

use crate::compile::{jobs, run_quietly};
use crate::original::Original;
use crate::sandbox::{Ended, Job, Sandbox, init};
use crate::{library, workspace};
use anyhow::{Context, Result, bail, ensure};
use indicatif::{ProgressBar, ProgressStyle};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::time::Duration;

/// Make each call of the library fail in turn, and check that nothing is lost.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Run every case.
    #[arg(long, conflicts_with_all = ["seed", "cases", "case"])]
    all: bool,
    /// Decides which cases are run, if not all.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many cases to run, besides those that have failed before.
    #[arg(long, default_value_t = 2000)]
    cases: usize,
    /// Run only this case.
    #[arg(long)]
    case: Vec<String>,
    /// The mechanism the library is to wait with; its own choice if not given.
    #[arg(long)]
    poller: Option<String>,
}

/// How many cases share a sandbox.
const BATCH: usize = 40;
/// A case is ended by its supervisor long before.
const LIMIT: Duration = Duration::from_secs(600);
/// What the allocation of a standard collection says before it aborts the process.
const OUT_OF_MEMORY: &str = "memory allocation of ";

/// What a scenario does when nothing fails.
struct Scenario {
    cases: Vec<String>,
    reached: Vec<String>,
    /// How many blocks of memory the library keeps until the process ends.
    blocks: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    Ok,
    /// The call was not made this time: threads take turns differently.
    Unreached,
    /// A standard collection found no memory, in a place where that may abort the process.
    Aborted,
    Failed,
}

struct Outcome {
    verdict: Verdict,
    name: String,
    /// What the program said.
    text: String,
}

/// The program, and where it runs.
struct Sweep<'a> {
    sandbox: Sandbox,
    program: PathBuf,
    library_dir: PathBuf,
    poller: Option<&'a str>,
    /// Where the library may abort for want of memory.
    aborts: BTreeSet<String>,
}

impl Sweep<'_> {
    fn prepare(options: &Options) -> Result<Sweep<'_>> {
        let ours = library::stage_ours()?;
        let program = build(&ours)?;
        let sandbox = Sandbox::open(&Original::obtain()?)?;
        let library_dir = sandbox.adopt(&ours.join("libuv.so.1"), "ours")?;
        Ok(Sweep {
            sandbox,
            program,
            library_dir,
            poller: options.poller.as_deref(),
            aborts: entries(&sources().join("aborts.txt"), " | ")?,
        })
    }

    /// Runs the program in a sandbox: how it ended, and the lines that it has written.
    fn run(&self, arguments: &[&str]) -> Result<(Ended, Vec<String>)> {
        let mut environment = vec![
            ("LD_LIBRARY_PATH", init::LIBRARIES),
            ("RUST_BACKTRACE", "1"),
        ];
        environment.extend(self.poller.map(|poller| ("BLACKLIGHT_POLLER", poller)));
        let run = self.sandbox.run(&Job {
            program: &self.program,
            arguments,
            library_dir: &self.library_dir,
            environment: &environment,
            tool: None,
            limit: LIMIT,
        })?;
        Ok((run.ended, run.output.lines().map(str::to_owned).collect()))
    }

    fn count(&self, scenario: &str) -> Result<Scenario> {
        let (ended, lines) = self.run(&["count", scenario])?;
        let faults: Vec<_> = lines.iter().filter(|l| !is_record(l)).collect();
        ensure!(
            ended == Ended::Exited(0),
            "{scenario} fails though no call does ({ended:?}): {faults:?}"
        );
        let all = |kind: &str| -> Vec<String> {
            let values = lines.iter().filter_map(|line| line.strip_prefix(kind));
            values.map(str::to_owned).collect()
        };
        let blocks = all("blocks ");
        Ok(Scenario {
            cases: all("case "),
            reached: all("reached "),
            blocks: blocks.first().context("no count of blocks")?.parse()?,
        })
    }

    fn batch(
        &self,
        cases: &[&str],
        scenarios: &BTreeMap<String, Scenario>,
    ) -> Result<Vec<Outcome>> {
        let mut arguments = vec!["batch".to_owned()];
        for case in cases {
            let scenario = case.split('/').next().unwrap_or_default();
            let known = scenarios.get(scenario);
            let blocks = known
                .with_context(|| format!("there is no case {case}"))?
                .blocks;
            arguments.push(format!("{case}={blocks}"));
        }
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let (ended, lines) = self.run(&arguments)?;
        let outcomes = lines.iter().filter_map(|line| self.outcome(line));
        let outcomes: Vec<_> = outcomes.collect();
        ensure!(
            outcomes.len() == cases.len(),
            "a batch broke down ({ended:?}): {lines:?}"
        );
        Ok(outcomes)
    }

    /// Reads a line of the batch: verdict, name, and what was said.
    fn outcome(&self, line: &str) -> Option<Outcome> {
        let mut words = line.splitn(3, ' ');
        let (verdict, name) = (words.next()?, words.next()?);
        let mut text = words.next().unwrap_or_default().to_owned();
        let mut verdict = match verdict {
            "ok" => Verdict::Ok,
            "unreached" => Verdict::Unreached,
            "fail" => Verdict::Failed,
            _ => return None,
        };
        if text.contains(OUT_OF_MEMORY)
            && let Some(site) = site(&text)
        {
            if self.aborts.contains(&site) {
                verdict = Verdict::Aborted;
            }
            text = format!("aborted for want of memory in {site}");
        }
        Some(Outcome {
            verdict,
            name: name.to_owned(),
            text,
        })
    }
}

/// The place of ours in a backtrace that is the furthest in: file, function, and what that has called.
fn site(backtrace: &str) -> Option<String> {
    let lines: Vec<_> = backtrace.split(';').map(str::trim).collect();
    // Two lines for each function: its name, and where it is.
    lines.windows(4).find_map(|lines| {
        let (_, called) = lines[0].split_once(": ")?;
        let (_, function) = lines[2].split_once(": ")?;
        let (path, _) = lines[3].strip_prefix("at ")?.split_once(':')?;
        let (_, path) = path.split_once("/crates/")?;
        Some(format!("{path}: {function} > {called}"))
    })
}

fn is_record(line: &str) -> bool {
    ["case ", "reached ", "blocks "]
        .iter()
        .any(|kind| line.starts_with(kind))
}

fn sources() -> PathBuf {
    workspace::root().join("xtask/sweep")
}

fn build(library: &Path) -> Result<PathBuf> {
    let program = workspace::target_subdir("sweep")?.join("sweep");
    let mut command = Command::new("gcc");
    command
        .args(["-O1", "-g", "-Wall", "-Wextra", "-D_GNU_SOURCE", "-o"])
        .arg(&program)
        .args(
            ["main.c", "interpose.c", "scenarios.c", "small.c", "bulk.c"]
                .map(|name| sources().join(name)),
        )
        .arg("-I")
        .arg(workspace::include_dir())
        .arg("-L")
        .arg(library)
        // Bound lazily, the program can tell which functions it has called.
        .args(["-luv", "-lpthread", "-lutil", "-Wl,-z,lazy"]);
    run_quietly(command)?;
    Ok(program)
}

/// What the lines of a file have before the separator, without comments.
fn entries(path: &Path, separator: &str) -> Result<BTreeSet<String>> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let entries = lines.filter_map(|line| line.split(separator).next());
    let entries = entries.filter(|entry| !entry.is_empty());
    Ok(entries.map(str::to_owned).collect())
}

/// Every exported function is called by a scenario, or is exempt for a reason that is written down.
fn check_coverage(scenarios: &BTreeMap<String, Scenario>) -> Result<()> {
    let exported = entries(&workspace::root().join("xtask/abi/exported.txt"), " ")?;
    let exempt = entries(&sources().join("exempt.txt"), " ")?;
    let reached: BTreeSet<_> = scenarios
        .values()
        .flat_map(|one| one.reached.iter().cloned())
        .collect();
    let missing: Vec<_> = exported
        .difference(&reached)
        .filter(|name| !exempt.contains(*name))
        .collect();
    ensure!(
        missing.is_empty(),
        "no scenario calls {missing:?}, and exempt.txt does not have them"
    );
    let idle: Vec<_> = exempt.intersection(&reached).collect();
    ensure!(
        idle.is_empty(),
        "exempt.txt has {idle:?}, which scenarios do call"
    );
    println!(
        "{} functions called, {} exempt",
        reached.len(),
        exempt.len()
    );
    Ok(())
}

/// Splitmix64: <https://prng.di.unimi.it/splitmix64.c>.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The cases to run: those asked for, all, or those that the seed decides and those that failed once.
fn choose(options: &Options, scenarios: &BTreeMap<String, Scenario>) -> Result<Vec<String>> {
    if !options.case.is_empty() {
        return Ok(options.case.clone());
    }
    let mut all: Vec<String> = scenarios
        .values()
        .flat_map(|one| one.cases.iter().cloned())
        .collect();
    if options.all {
        return Ok(all);
    }
    let mut state = options.seed;
    let mut chosen = entries(&sources().join("once_failed.txt"), " ")?;
    for _ in 0..options.cases.min(all.len()) {
        let at = random(&mut state) % all.len() as u64;
        chosen.insert(all.swap_remove(usize::try_from(at)?));
    }
    Ok(chosen.into_iter().collect())
}

/// Does `work` to every item, on all processors, and collects the results.
pub(crate) fn beside_each_other<T: Sync, R: Send>(
    items: &[T],
    bar: &ProgressBar,
    work: impl Fn(&T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let queue = Mutex::new(items.iter());
    let results = Mutex::new(Vec::new());
    let worker = || -> Result<()> {
        loop {
            let next = queue.lock().expect("no worker panics").next();
            let Some(item) = next else { return Ok(()) };
            let result = work(item)?;
            results.lock().expect("no worker panics").push(result);
            bar.inc(1);
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs()).map(|_| scope.spawn(worker)).collect();
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().expect("no worker panics"))
    })?;
    bar.finish_and_clear();
    Ok(results.into_inner().expect("no worker panics"))
}

pub(crate) fn progress(length: usize, what: &'static str) -> ProgressBar {
    let style = ProgressStyle::with_template("{prefix} {bar:30} {pos}/{len} {elapsed}");
    ProgressBar::new(length as u64)
        .with_style(style.expect("a valid template"))
        .with_prefix(what)
}

/// Says how the cases ended, and whether they did as they must.
fn report(options: &Options, outcomes: &[Outcome], cases: usize) -> ExitCode {
    let of = |verdict| {
        outcomes
            .iter()
            .filter(move |outcome| outcome.verdict == verdict)
    };
    let poller = options.poller.iter();
    let poller: String = poller.map(|name| format!("--poller {name} ")).collect();
    for Outcome { name, text, .. } in of(Verdict::Failed) {
        println!("failed: {name}: {text}\n  again: cargo xtask sweep {poller}--case {name}");
    }
    if !options.case.is_empty() {
        for outcome in of(Verdict::Ok) {
            println!("{}: {}", outcome.name, outcome.text);
        }
    }
    for outcome in of(Verdict::Aborted) {
        println!("{}: {}", outcome.name, outcome.text);
    }
    println!(
        "{} of {cases} cases: {} passed, {} failed, {} aborted where that is allowed, {} not reached",
        outcomes.len(),
        of(Verdict::Ok).count(),
        of(Verdict::Failed).count(),
        of(Verdict::Aborted).count(),
        of(Verdict::Unreached).count(),
    );
    match of(Verdict::Failed).count() {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// Runs the chore.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let sweep = Sweep::prepare(options)?;
    let (_, names) = sweep.run(&["list"])?;
    if names.is_empty() {
        bail!("the program has no scenarios");
    }
    let counted = beside_each_other(&names, &progress(names.len(), "scenarios"), |name| {
        Ok((name.clone(), sweep.count(name)?))
    })?;
    let scenarios: BTreeMap<String, Scenario> = counted.into_iter().collect();
    check_coverage(&scenarios)?;
    let chosen = choose(options, &scenarios)?;
    let chosen: Vec<&str> = chosen.iter().map(String::as_str).collect();
    let batches: Vec<_> = chosen.chunks(BATCH).collect();
    let bar = progress(batches.len(), "batches of cases");
    let outcomes = beside_each_other(&batches, &bar, |cases| sweep.batch(cases, &scenarios))?;
    let mut outcomes: Vec<Outcome> = outcomes.into_iter().flatten().collect();
    outcomes.sort_by(|a, b| (a.verdict, &a.name).cmp(&(b.verdict, &b.name)));
    let cases = scenarios.values().map(|one| one.cases.len()).sum();
    println!("{} scenarios", scenarios.len());
    Ok(report(options, &outcomes, cases))
}
