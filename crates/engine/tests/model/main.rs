//! Random programs on a simulated kernel, checked step by step against a naive model.
//!
//! A seed decides everything: the program, the kernel's moods and its clock. After a
//! failure the seed and the way there are printed; to go there again:
//!
//! ```text
//! BLACKLIGHT_SEED=n cargo test -p blacklight-engine --test model
//! ```
//!
//! `BLACKLIGHT_SEEDS=n` tries the first n seeds instead of the usual number.

mod coverage;
mod ops;
mod oracle;
mod picture;
mod program;
#[path = "../support/random.rs"]
mod random;
mod rules;
mod turn;
mod watch;
mod world;

use coverage::Coverage;
use program::Program;

const SEEDS: u64 = 4_000;

fn number_from(variable: &str) -> Option<u64> {
    let value = std::env::var(variable).ok()?;
    Some(
        value
            .parse()
            .unwrap_or_else(|_| panic!("{variable} must be a number, not {value:?}")),
    )
}

/// Runs every `stride`th seed.
fn run_seeds(first: u64, seeds: u64, stride: u64) -> Coverage {
    let mut coverage = Coverage::default();
    for seed in (first..seeds).step_by(stride as usize) {
        Program::new(seed, &mut coverage).run_all();
    }
    coverage
}

#[test]
fn random_programs_follow_the_rules() {
    if let Some(seed) = number_from("BLACKLIGHT_SEED") {
        run_seeds(seed, seed + 1, 1);
        return;
    }
    let seeds = number_from("BLACKLIGHT_SEEDS").unwrap_or(SEEDS);
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
    let mut coverage = Coverage::default();
    std::thread::scope(|scope| {
        let spawn = |first| scope.spawn(move || run_seeds(first, seeds, threads));
        let workers: Vec<_> = (0..threads).map(spawn).collect();
        for worker in workers {
            match worker.join() {
                Ok(theirs) => coverage.add(&theirs),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
    });
    eprintln!("{coverage:?}");
    if seeds >= SEEDS {
        coverage.assert_complete();
    }
}
