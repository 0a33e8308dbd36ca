//! `cargo xtask differ`: one program that calls the library at random, with the original and with
//! ours.
//!
//! The program is decided by a seed. It prints what each call returned, what was called back and
//! what the handles say of themselves, so that two libraries that behave alike print the same. A
//! seed for which the original itself gives up, or does not print the same twice, is a mistake in
//! the program, which has to avoid what cannot be compared; it counts as a failure.
//!
//! The program opens, changes and deletes at random, so it runs in a sandbox: as an unprivileged user,
//! with a network, a `/dev/null` and a directory of its own.

use crate::original::Original;
use crate::program::Program;
use crate::sandbox::{Ended, Job, Sandbox, init};
use crate::sweep::{beside_each_other, progress};
use anyhow::{Result, ensure};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Call functions in random order with the original and with ours, and compare the answers.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// How many seeds to try.
    #[arg(long, default_value_t = 200)]
    seeds: u64,
    /// The first of them.
    #[arg(long, default_value_t = 1)]
    first: u64,
    /// How many steps each program takes.
    #[arg(long, default_value_t = 60)]
    steps: u32,
    /// The mechanism our library is to wait with; its own choice if not given.
    #[arg(long)]
    poller: Option<String>,
}

/// How many lines before a difference are shown.
const CONTEXT: usize = 12;

/// How many seeds share a sandbox.
const BATCH: u64 = 10;
/// Every seed ends its process long before.
const LIMIT: Duration = Duration::from_secs(600);

/// What the program printed, by seed.
type Texts = BTreeMap<u64, String>;

/// The program, and how it is to be run.
struct Runner<'a> {
    sandbox: &'a Sandbox,
    program: &'a Path,
    options: &'a Options,
}

impl Runner<'_> {
    /// Runs the seeds in one sandbox, each in a process and a directory of its own.
    fn run(&self, library_dir: &Path, first: u64, count: u64) -> Result<Texts> {
        let seeds = [first.to_string(), count.to_string()];
        let steps = self.options.steps.to_string();
        let mut environment = vec![("LD_LIBRARY_PATH", init::LIBRARIES)];
        if let Some(poller) = &self.options.poller {
            environment.push(("BLACKLIGHT_POLLER", poller));
        }
        let run = self.sandbox.run(&Job {
            program: self.program,
            arguments: &[&seeds[0], &seeds[1], &steps, init::REPORTS],
            library_dir,
            environment: &environment,
            tool: None,
            limit: LIMIT,
        })?;
        ensure!(
            run.ended == Ended::Exited(0) && run.reports.len() as u64 == count,
            "the program broke down at seed {first} ({:?}): {}",
            run.ended,
            run.output
        );
        Ok((first..).zip(run.reports).collect())
    }

    /// Runs all seeds with both libraries: what each printed.
    fn run_all(&self, libraries: [&Path; 2]) -> Result<[Texts; 2]> {
        let (first, end) = (self.options.first, self.options.first + self.options.seeds);
        let mut batches = Vec::new();
        for at in (first..end).step_by(BATCH as usize) {
            batches.extend([0, 1].map(|library| (library, at, BATCH.min(end - at))));
        }
        let bar = progress(batches.len(), "batches of seeds");
        let texts = beside_each_other(&batches, &bar, |&(library, first, count)| {
            Ok((library, self.run(libraries[library], first, count)?))
        })?;
        let mut all = [Texts::new(), Texts::new()];
        for (library, texts) in texts {
            all[library].extend(texts);
        }
        Ok(all)
    }
}

/// Whether the process of a seed did not end well.
fn died(text: &str) -> bool {
    text.lines()
        .last()
        .is_none_or(|line| line.starts_with("died "))
}

/// Shows where two texts part.
fn show(original: &str, ours: &str) {
    let (original, ours): (Vec<_>, Vec<_>) = (original.lines().collect(), ours.lines().collect());
    let same = original.iter().zip(&ours).take_while(|(a, b)| a == b);
    let at = same.count();
    for line in &original[at.saturating_sub(CONTEXT)..at] {
        println!("  {line}");
    }
    for (sign, lines) in [('-', &original), ('+', &ours)] {
        for line in lines.iter().skip(at).take(3) {
            println!("{sign} {line}");
        }
    }
}

/// Runs the chore.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let Program {
        path: program,
        original,
        ours,
    } = Program::build("differ", "program")?;
    let sandbox = Sandbox::open(&Original::obtain()?)?;
    let adopt = |dir: PathBuf, name| sandbox.adopt(&dir.join("libuv.so.1"), name);
    let (original, ours) = (adopt(original, "original")?, adopt(ours, "ours")?);
    let runner = Runner {
        sandbox: &sandbox,
        program: &program,
        options,
    };
    let [expected, got] = runner.run_all([&original, &ours])?;
    let (mut alike, mut unfit, mut different) = (0, 0, 0);
    for (&seed, expected) in &expected {
        let got = &got[&seed];
        if !died(expected) && got == expected {
            alike += 1;
            continue;
        }
        let again = &runner.run(&original, seed, 1)?[&seed];
        if died(expected) || again != expected {
            unfit += 1;
            println!("seed {seed}: the original, - once, + and again");
            show(expected, again);
        } else {
            different += 1;
            println!("seed {seed}: - the original, + ours");
            show(expected, got);
        }
    }
    println!("{alike} alike, {different} different, {unfit} that the original cannot answer");
    Ok(match different + unfit {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}
