//! Random programs with streams and datagrams on a simulated kernel that misbehaves.
//!
//! The sockets are real, and so are their bytes; what is ready, when, and how much of each
//! call is done is decided by a seed. Every byte is compared with what was sent, every request
//! must be reported once and in order, and when all is over neither a handle, a request nor a
//! descriptor may be left. After a failure the seed is printed; to go there again:
//!
//! ```text
//! BLACKLIGHT_SEED=n cargo test -p blacklight-engine --test soak
//! ```
//!
//! `BLACKLIGHT_SEEDS=n` tries the first n seeds instead of the usual number.

mod end;
mod link;
mod post;
#[path = "../support/random.rs"]
mod random;
mod world;

use std::sync::{Mutex, PoisonError};
use world::{Coverage, Sockets, World};

const SEEDS: u64 = 2_000;

/// Descriptors belong to the whole process, and their numbers are part of the steps that have
/// to be the same: one test at a time.
static ALONE: Mutex<()> = Mutex::new(());

fn number_from(variable: &str) -> Option<u64> {
    let value = std::env::var(variable).ok()?;
    Some(
        value
            .parse()
            .unwrap_or_else(|_| panic!("{variable} must be a number, not {value:?}")),
    )
}

fn open_descriptors() -> usize {
    let list = std::fs::read_dir("/proc/self/fd").expect("a process has descriptors");
    list.count()
}

/// Prints the seed if its program fails, however it does.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("to go there again: BLACKLIGHT_SEED={}", self.0);
        }
    }
}

fn soak(seed: u64, coverage: &mut Coverage) {
    let seed = Seed(seed);
    let before = open_descriptors();
    World::new(seed.0, Sockets::All).run(coverage);
    // The test harness itself may have had one open for a moment before.
    let after = open_descriptors();
    assert!(
        after <= before,
        "{before} descriptors before, {after} after"
    );
}

#[test]
fn every_byte_arrives_whatever_the_kernel_does() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut coverage = Coverage::default();
    if let Some(seed) = number_from("BLACKLIGHT_SEED") {
        return soak(seed, &mut coverage);
    }
    let seeds = number_from("BLACKLIGHT_SEEDS").unwrap_or(SEEDS);
    for seed in 0..seeds {
        soak(seed, &mut coverage);
    }
    eprintln!("{coverage:?}");
    if seeds >= SEEDS {
        coverage.assert_complete();
    }
}

/// Sockets that have nothing to do with a network do the same thing every time.
#[test]
fn the_same_seed_takes_the_same_steps() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for seed in 0..100 {
        let seed = Seed(seed);
        let steps = || World::new(seed.0, Sockets::Local).run(&mut Coverage::default());
        let (first, second) = (steps(), steps());
        let differs = first.iter().zip(&second).position(|(a, b)| a != b);
        if let Some(at) = differs {
            panic!("step {at}: {:?}, then {:?}", first[at], second[at]);
        }
        assert_eq!(first.len(), second.len());
    }
}
