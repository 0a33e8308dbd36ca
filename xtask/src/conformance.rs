//! `cargo xtask conformance`: libuv's own test suite as the judge of the library.
//!
//! Each test runs through libuv's runner, which starts the test's helpers, in a sandbox of its
//! own. A test that fails beside others is tried once more alone, and then passes only as
//! "flaky". The list of expected passes may only grow: see [`expected`].

mod expected;
mod outcome;
pub(crate) mod refusals;
mod report;
mod topics;
pub(crate) mod under;

use crate::library::Library;
use crate::original::{Header, Original};
use crate::refusal::{Answer, Call, Refusal};
use crate::sandbox::init::HOUSE;
use crate::sandbox::{Job, Sandbox};
use crate::target::Target;
use crate::{compile, selection, swap, workspace};
use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use expected::Expected;
use indicatif::{ProgressBar, ProgressStyle};
use outcome::{Outcome, Verdict};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use under::Under;

/// Tests that compile libuv's own internals into the runner: they say nothing about the library.
const NEVER_REACH_THE_LIBRARY: [&str; 7] = [
    "idna_toascii",
    "strscpy",
    "strtok",
    "utf16_to_wtf8_exact_fill",
    "utf8_decode1",
    "utf8_decode1_overrun",
    "wtf8",
];

/// The runner ends most tests after five seconds and the slowest after sixty; this is for a
/// runner that itself hangs, for instance because a test ignores SIGTERM.
const LIMIT: Duration = Duration::from_secs(75);

/// The mechanisms that our library can wait with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Poller {
    Select,
    Poll,
    Epoll,
}

impl Poller {
    /// The value of `BLACKLIGHT_POLLER`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Poller::Select => "select",
            Poller::Poll => "poll",
            Poller::Epoll => "epoll",
        }
    }
}

/// Run libuv's own test suite against the library, each test in a sandbox.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The mechanism our library is to wait with; its own choice if not given.
    #[arg(long)]
    poller: Option<Poller>,
    /// Whose `uv.h` the tests are compiled with.
    #[arg(long, default_value = "ours")]
    header: Header,
    /// The library under test: `ours`, `original`, or a path.
    #[arg(long, default_value = "ours")]
    library: Library,
    /// Have the tests carry the original inside, and the library take its place there.
    #[arg(long, conflicts_with_all = ["under", "bless"])]
    swap: bool,
    /// How many tests run at the same time.
    ///
    /// Most tests wait more than they compute, so two for each processor.
    #[arg(long, default_value_t = 2 * compile::jobs())]
    jobs: usize,
    /// Run each test under a checker, whatever it reports being a failure.
    #[arg(long, conflicts_with = "bless")]
    under: Option<Under>,
    /// Build for another machine or C library, and run the tests there, under an emulator if need be.
    ///
    /// A test that fails fails with the original as well, run in the same way, or it is a defect.
    #[arg(long, conflicts_with_all = ["under", "bless"])]
    target: Option<Target>,
    /// Have a system call be refused to the tests.
    ///
    /// As with `--target`, the original decides which tests must pass.
    #[arg(long, conflicts_with_all = ["under", "bless"])]
    without: Option<Call>,
    /// How it is refused; the first way in which systems do that, if not given.
    #[arg(long, requires = "without")]
    answer: Option<Answer>,
    /// Run only the tests that are expected to pass.
    #[arg(long, conflicts_with = "names")]
    expected: bool,
    /// Add the tests that pass now to the list of expected passes.
    #[arg(long)]
    bless: bool,
    /// Tests by name, glob or prefix; all if none is given.
    #[arg(value_name = "NAME")]
    names: Vec<String>,
}

impl Options {
    /// Whether the original, run in the same way, decides which tests must pass.
    fn has_reference(&self) -> bool {
        self.target.is_some() || self.without.is_some()
    }
}

/// Tests that ask for what a mechanism does not have. They are left out there, and named.
const BEYOND_THE_MECHANISM: [(&str, &[Poller], &str); 2] = [
    (
        "embed",
        &[Poller::Select, Poller::Poll],
        "the mechanism has no descriptor that another loop could wait for",
    ),
    (
        "watcher_cross_stop",
        &[Poller::Select],
        "its 2,500 sockets do not fit into an fd_set",
    ),
];

/// Why a test cannot pass as it is to be run, if that is so.
fn beyond(name: &str, options: &Options) -> Option<&'static str> {
    let why = options.under.and_then(|under| under.beyond(name));
    if why.is_some() {
        return why;
    }
    let poller = options.poller?;
    let mut table = BEYOND_THE_MECHANISM.iter();
    table
        .find(|(test, pollers, _)| *test == name && pollers.contains(&poller))
        .map(|(_, _, why)| *why)
}

/// One test and what became of it.
struct Tested {
    name: String,
    verdict: Verdict,
    flaky: bool,
}

/// What all tests of a run have in common.
struct Suite {
    sandbox: Sandbox,
    runner: PathBuf,
    library_dir: PathBuf,
    poller: Option<Poller>,
    under: Option<Under>,
    /// How much longer tests may take.
    patience: u32,
    /// The runner has the original inside.
    swap: bool,
}

/// Runs the chore.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    ensure!(
        !options.bless || options.library == Library::Ours,
        "only what passes with our own library can be expected of it"
    );
    let original = Original::obtain_for(options.target)?;
    let library = match options.under {
        Some(under) => {
            under.require_tools()?;
            under.library(&options.library, &original)?
        }
        None => options.library.build(&original)?,
    };
    let sanitizer = options.under.and_then(Under::sanitizer);
    let runner = if options.swap {
        original.carrying_test_runner(options.header)?
    } else {
        original.test_runner(options.header, sanitizer)?
    };
    let expected = Expected::read(&workspace::root().join("xtask/conformance/expected.txt"))?;
    let mut sandbox = Sandbox::open(&original)?;
    if let Some(call) = options.without {
        let answer = options.answer.unwrap_or(call.answers()[0]);
        sandbox.refuse(Refusal { call, answer });
    }
    let reference = sandbox.adopt(&original.library()?, "original")?;
    let all = list_tests(&sandbox, &runner, &reference)?;
    let chosen = choose(&all, options, &expected)?;
    let (beyond, chosen): (Vec<&str>, Vec<&str>) = chosen
        .into_iter()
        .partition(|name| beyond(name, options).is_some());
    for name in beyond {
        let why = self::beyond(name, options).unwrap_or_default();
        println!("{name}: left out: {why}");
    }

    let library_dir = sandbox.adopt(&library, "under-test")?;
    if options.swap {
        ensure_it_is_swapped(&sandbox, &runner, &library_dir)?;
    }
    let mut suite = Suite {
        sandbox,
        runner,
        library_dir,
        poller: options.poller,
        patience: patience(options),
        under: options.under,
        swap: options.swap,
    };
    let started = Instant::now();
    let (apart, mut judged): (Vec<Tested>, Vec<Tested>) = suite
        .judge(&chosen, options.jobs.max(1))?
        .into_iter()
        .partition(|test| NEVER_REACH_THE_LIBRARY.contains(&test.name.as_str()));

    let log = write_log(options, judged.iter().chain(&apart))?;
    if options.has_reference() && options.library != Library::Original {
        suite.library_dir = reference;
        suite.poller = None;
        suite.swap = false;
        suite.excuse_what_the_original_fails(&mut judged)?;
    }
    report::print(&judged, &apart, started.elapsed(), &log);
    // A checker leaves less of the machine to a test, which may therefore find that it has to be
    // skipped.
    let broken = if options.under.is_some() {
        judged.iter().filter(|test| test.verdict.failed()).collect()
    } else if options.has_reference() && options.library == Library::Original {
        Vec::new()
    } else if options.has_reference() {
        let is_worse =
            |test: &&Tested| !test.verdict.passed() && test.verdict.outcome != Outcome::AsOriginal;
        judged.iter().filter(is_worse).collect()
    } else {
        expected.broken_by(&judged)
    };
    report::print_broken(&broken);
    if options.bless {
        let passed = judged
            .iter()
            .filter(|test| test.verdict.passed() && !test.flaky);
        let added = expected.bless(passed.map(|test| test.name.as_str()))?;
        println!("{added} tests added to the expected passes");
    }
    report::print_closing_line(&judged);
    let named_failed = !options.names.is_empty()
        && !options.has_reference()
        && judged.iter().any(|test| test.verdict.failed());
    Ok(if broken.is_empty() && !named_failed {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// How much longer tests may take than on this machine without a checker.
fn patience(options: &Options) -> u32 {
    let emulator = options.target.and_then(Target::emulator);
    match options.under {
        Some(under) => under.patience(),
        None if emulator.is_some() => 5,
        None => 1,
    }
}

/// Makes sure that the library takes the place of the one in the runner.
fn ensure_it_is_swapped(sandbox: &Sandbox, runner: &Path, library_dir: &Path) -> Result<()> {
    let [(preload, list), (name, settings)] = swap::environment(&Path::new(HOUSE).join("lib"));
    let settings = format!("probe=1;{settings}");
    let run = sandbox.run(&Job {
        program: runner,
        arguments: &[],
        library_dir,
        environment: &[(preload, &list), (name, &settings)],
        tool: None,
        limit: LIMIT,
    })?;
    let is_swapped = run.output.starts_with("way jumps");
    ensure!(is_swapped, "the swap does not work: {}", run.output);
    Ok(())
}

/// Asks the runner for its tests. The original serves as library, for ours may lack what the runner
/// itself needs.
fn list_tests(sandbox: &Sandbox, runner: &Path, original: &Path) -> Result<Vec<String>> {
    let run = sandbox.run(&Job {
        program: runner,
        arguments: &["--list"],
        library_dir: original,
        environment: &[],
        tool: None,
        limit: LIMIT,
    })?;
    let names = outcome::parse_list(&run.output);
    ensure!(!names.is_empty(), "the runner lists no tests: {run:?}");
    Ok(names)
}

fn choose<'a>(all: &'a [String], options: &Options, expected: &Expected) -> Result<Vec<&'a str>> {
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    if options.expected {
        return Ok(all
            .into_iter()
            .filter(|name| expected.contains(name))
            .collect());
    }
    if options.names.is_empty() {
        return Ok(all);
    }
    selection::select(&all, &options.names)
}

impl Suite {
    /// Runs all tests, `jobs` at a time, and then once more, alone, those that failed.
    fn judge(&self, names: &[&str], jobs: usize) -> Result<Vec<Tested>> {
        let verdicts = self.run_beside_each_other(names, jobs)?;
        let mut tested: Vec<Tested> = names
            .iter()
            .zip(verdicts)
            .map(|(name, verdict)| Tested {
                name: (*name).to_owned(),
                verdict,
                flaky: false,
            })
            .collect();
        let again: Vec<&mut Tested> = tested
            .iter_mut()
            .filter(|test| test.verdict.deserves_retry())
            .collect();
        let bar = progress(again.len(), "again");
        for test in again {
            bar.set_message(test.name.clone());
            let verdict = self.run_one(&test.name)?;
            if !verdict.failed() {
                test.flaky = true;
                test.verdict = verdict;
            }
            bar.inc(1);
        }
        bar.finish_and_clear();
        Ok(tested)
    }

    /// Tells of the tests that did not pass which do not pass with this suite's library, the original,
    /// either.
    fn excuse_what_the_original_fails(&self, tested: &mut [Tested]) -> Result<()> {
        let missed: Vec<&mut Tested> = tested
            .iter_mut()
            .filter(|test| !test.verdict.passed())
            .collect();
        let bar = progress(missed.len(), "with the original");
        for test in missed {
            bar.set_message(test.name.clone());
            if !self.run_one(&test.name)?.passed() {
                test.verdict.outcome = Outcome::AsOriginal;
            }
            bar.inc(1);
        }
        bar.finish_and_clear();
        Ok(())
    }

    fn run_beside_each_other(&self, names: &[&str], jobs: usize) -> Result<Vec<Verdict>> {
        let bar = progress(names.len(), "tests");
        let next = AtomicUsize::new(0);
        let results = Mutex::new(Vec::new());
        let worker = || -> Result<()> {
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(name) = names.get(index) else {
                    return Ok(());
                };
                bar.set_message((*name).to_owned());
                let verdict = self.run_one(name)?;
                results
                    .lock()
                    .expect("no worker panics")
                    .push((index, verdict));
                bar.inc(1);
            }
        };
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(worker)).collect();
            workers
                .into_iter()
                .try_for_each(|worker| worker.join().expect("no worker panics"))
        })?;
        bar.finish_and_clear();
        let mut results = results.into_inner().expect("no worker panics");
        results.sort_by_key(|(index, _)| *index);
        Ok(results.into_iter().map(|(_, verdict)| verdict).collect())
    }

    fn run_one(&self, name: &str) -> Result<Verdict> {
        let multiplier = self.patience.to_string();
        let mut environment = Vec::new();
        environment.extend(
            self.poller
                .map(|poller| ("BLACKLIGHT_POLLER", poller.name())),
        );
        let preloads = swap::environment(&Path::new(HOUSE).join("lib"));
        if self.swap {
            environment.extend(preloads.iter().map(|(name, value)| (*name, value.as_str())));
        }
        if self.patience > 1 {
            environment.push(("UV_TEST_TIMEOUT_MULTIPLIER", &multiplier));
        }
        if let Some(under) = self.under {
            environment.extend(under.environment());
        }
        let run = self
            .sandbox
            .run(&Job {
                program: &self.runner,
                arguments: &[name],
                library_dir: &self.library_dir,
                environment: &environment,
                tool: self.under.and_then(Under::tool),
                limit: LIMIT * self.patience,
            })
            .with_context(|| format!("cannot run the test {name}"))?;
        Ok(Verdict::of(run))
    }
}

fn progress(length: usize, what: &'static str) -> ProgressBar {
    let style = ProgressStyle::with_template("{prefix} {bar:30} {pos}/{len} {msg}")
        .expect("a valid template");
    ProgressBar::new(length as u64)
        .with_style(style)
        .with_prefix(what)
}

/// Writes the whole output of every test that did not pass.
fn write_log<'a>(options: &Options, tests: impl Iterator<Item = &'a Tested>) -> Result<PathBuf> {
    let poller = options.poller.map_or("default", Poller::name);
    let target = options.target.map_or("", Target::triple);
    let name = match options.library {
        Library::Ours if options.swap => format!("swap-{}-{poller}.log", options.header),
        Library::Ours => format!("{}-{poller}.log", options.header),
        Library::Original => format!("library-original-{}.log", options.header),
        Library::At(_) => format!("library-by-path-{}-{poller}.log", options.header),
    };
    let dir = Path::new("conformance").join(options.under.map_or(target, Under::name));
    let path = workspace::target_subdir(dir)?.join(name);
    let mut text = String::new();
    for test in tests {
        let flaky = if test.flaky {
            " (flaky: passed on retry)"
        } else {
            ""
        };
        text += &format!("==== {}: {}{flaky}\n", test.name, test.verdict.outcome);
        if test.verdict.outcome != Outcome::Passed {
            text += &test.verdict.output;
            text += "\n";
            text += &test.verdict.reports;
        }
    }
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}
