//! Random programs that run the loop again inside of callbacks, give runs up and stop the loop, at
//! any event.
//!
//! Each program waits for a few things that are certain to happen, and for nothing else: no timer
//! keeps its loop turning. It runs on until the loop is not alive. Then all must have been told,
//! each thing as often as it has happened. A loop that sleeps for ever is a failure too: a
//! watchdog prints what is missing and ends the process. To go there again:
//!
//! ```text
//! BLACKLIGHT_SEED=n cargo test -p blacklight-engine --test survival epoll
//! ```
//!
//! `BLACKLIGHT_SEEDS=n` tries the first n seeds instead of the usual number. Threads, signals and
//! children have a time of their own, so a seed may have to be tried more than once.

mod conversation;
mod desk;
#[path = "../support/each_mechanism.rs"]
mod each_mechanism;
mod ledger;
mod objects;
#[path = "../support/random.rs"]
mod random;
mod sockets;
mod watchdog;

use blacklight_engine::{Engine, Event, Faults, Mechanism, Mode, Run, Tally};
use conversation::Conversation;
use desk::Desk;
use each_mechanism::{alone, on_each_mechanism};
use ledger::Kind;
use objects::{
    BeforeSleep, Checks, Child, Closings, LoopWatchers, Object, OnRing, Polled, Raised, Sends,
    Timer, Watched, Work,
};
use random::Random;
use sockets::{Cancelled, Connection, Datagrams};
use std::collections::BTreeMap;

on_each_mechanism!(nothing_is_lost);

const SEEDS: u64 = 1_000;
const MAX_OBJECTS: u64 = 6;
const MAX_DEPTH: usize = 4;
const KINDS_OF_OBJECTS: u64 = 17;
const BEFORE_SLEEP: u64 = 14;

/// Counts of the actions at events of each kind, and the features that the loops have used.
#[derive(Default, Debug)]
struct Coverage {
    kinds: BTreeMap<Kind, Count>,
    /// Known of a simulated kernel only.
    tally: Option<Tally>,
    /// Whether the kernel has granted a ring.
    has_ring: bool,
}

#[derive(Clone, Copy, Default, Debug)]
struct Count {
    nested: u32,
    given_up: u32,
    /// Given up, and an outer run went on.
    went_on: u32,
    stopped: u32,
}

impl Coverage {
    fn assert_complete(&self) {
        eprintln!("{self:?}");
        for kind in KINDS.iter().chain(self.has_ring.then_some(&Kind::Ring)) {
            let count = self.kinds.get(kind).copied().unwrap_or_default();
            let least = [count.nested, count.given_up, count.went_on, count.stopped];
            assert!(least.iter().all(|&count| count > 0), "{kind:?}: {count:?}");
        }
        if let Some(tally) = self.tally {
            assert!(tally.is_complete(), "a tuned path is never gone: {tally:?}");
        }
    }
}

struct Program {
    desk: Desk,
    objects: Vec<Box<dyn Object>>,
    to_make: u64,
    /// The kind of object that was made last.
    last_made: Option<u64>,
    /// The only kind of objects that are made besides the first, which is called before the loop
    /// sleeps: what is left out in such a program has nothing that would wake the loop for it.
    only: Option<u64>,
    runs: Vec<Run>,
}

impl Program {
    fn new(mechanism: Mechanism, seed: u64) -> Program {
        let mut engine = Engine::new(Some(mechanism)).expect("the mechanism is there");
        let mut random = Random::new(seed);
        if let Some(sim) = engine.sim() {
            sim.use_kernel();
            sim.set_price_of_sleep(random.pick(&[0, 10_000]));
            let rate = random.pick(&[0, 40]);
            sim.set_faults(Faults {
                interrupt: rate,
                spurious: rate,
                delay: 5 * rate,
                again: rate,
                shorten: rate,
                break_down: rate / 4,
                ..Faults::default()
            });
        }
        engine.ring_permit();
        let to_make = 1 + random.below(MAX_OBJECTS);
        let only = random.chance(1, 4).then(|| random.below(KINDS_OF_OBJECTS));
        Program {
            desk: Desk::new(engine, random),
            objects: Vec::new(),
            to_make,
            last_made: None,
            only,
            runs: Vec::new(),
        }
    }

    fn make_object(&mut self) {
        self.to_make -= 1;
        self.desk.object = self.objects.len() as u64;
        let desk = &mut self.desk;
        let mut kind = match (self.only, self.last_made) {
            (Some(_), None) => BEFORE_SLEEP,
            (Some(only), _) => only,
            (None, _) => desk.random.below(KINDS_OF_OBJECTS),
        };
        if self.only.is_none()
            && let Some(last) = self.last_made
            && desk.random.chance(1, 3)
        {
            // Two objects of a kind are queued together, so that a run can be given up between them.
            kind = last;
        }
        self.last_made = Some(kind);
        let object: Box<dyn Object> = match kind {
            0 => Box::new(Timer::new(desk)),
            1 => Box::new(LoopWatchers::new(desk)),
            2 => Box::new(Sends::new(desk)),
            3 => Box::new(Closings::new(desk)),
            4 => Box::new(Polled::new(desk)),
            5 => Box::new(Connection::pair(desk)),
            6 => Box::new(Connection::tcp(desk)),
            7 => Box::new(Cancelled::new(desk)),
            8 => Box::new(Datagrams::new(desk)),
            9 => Box::new(Watched::new(desk)),
            10 => Box::new(Checks::new(desk)),
            11 => Box::new(Work::new(desk)),
            12 => Box::new(Raised::new(desk)),
            13 => Box::new(Child::new(desk)),
            BEFORE_SLEEP => Box::new(BeforeSleep::new(desk)),
            15 => Box::new(OnRing::new(desk)),
            _ => Box::new(Conversation::new(desk)),
        };
        self.objects.push(object);
    }

    /// Runs until nothing is alive any more.
    fn run(&mut self, coverage: &mut Coverage) {
        coverage.has_ring |= self.desk.engine.ring_is_there();
        for _ in 0..1 + self.desk.random.below(self.to_make) {
            self.make_object();
        }
        loop {
            let Some(run) = self.runs.last_mut() else {
                if !self.desk.engine.is_alive() {
                    self.check();
                    if !self.desk.close_late() {
                        break;
                    }
                }
                self.begin_run();
                continue;
            };
            match self.desk.engine.next(run) {
                None => drop(self.runs.pop()),
                Some(event) => self.told(event, coverage),
            }
        }
        assert!(self.desk.engine.is_unused());
        if let Some(sim) = self.desk.engine.sim() {
            coverage.tally.get_or_insert_default().add(&sim.tally());
        }
    }

    /// Nothing is alive: everything must have been told.
    fn check(&self) {
        let missing = self.desk.ledger().missing();
        assert!(missing.is_empty(), "the loop is over, without {missing:#?}");
    }

    fn begin_run(&mut self) {
        let modes = [Mode::Default, Mode::Once, Mode::NoWait];
        self.runs.push(Run::new(self.desk.random.pick(&modes)));
    }

    fn told(&mut self, event: Event, coverage: &mut Coverage) {
        self.desk.ledger().told(&event);
        let object = Desk::object_of(event.token());
        self.desk.object = object as u64;
        self.objects[object].told(&mut self.desk, event);
        if self.to_make > 0 && self.desk.random.chance(1, 3) {
            self.make_object();
        }
        let count = coverage.kinds.entry(Kind::of(&event)).or_default();
        match self.desk.random.below(8) {
            0 | 1 if self.runs.len() < MAX_DEPTH => {
                count.nested += 1;
                self.begin_run();
            }
            2 | 3 => {
                let kept = self.desk.random.below(self.runs.len() as u64);
                self.runs.truncate(kept as usize);
                count.given_up += 1;
                count.went_on += u32::from(kept > 0);
            }
            4 => {
                count.stopped += 1;
                self.desk.engine.stop();
            }
            _ => {}
        }
    }
}

fn number_from(variable: &str) -> Option<u64> {
    let value = std::env::var(variable).ok()?;
    Some(
        value
            .parse()
            .unwrap_or_else(|_| panic!("{variable} must be a number, not {value:?}")),
    )
}

/// Tries the seeds that are asked for, on a mechanism that may depend on the seed.
fn survive(mechanism: impl Fn(u64) -> Mechanism) {
    // SAFETY: the tests of this program run one at a time, and nobody else changes the environment
    // or reads it but by way of the standard library.
    unsafe { std::env::set_var("UV_USE_IO_URING", "1") };
    let mut coverage = Coverage::default();
    let one = number_from("BLACKLIGHT_SEED");
    let seeds = number_from("BLACKLIGHT_SEEDS").unwrap_or(SEEDS);
    for seed in one.map_or(0..seeds, |seed| seed..seed + 1) {
        let mut program = Program::new(mechanism(seed), seed);
        let _watch = watchdog::watch(seed, mechanism(seed), &program.desk.ledger);
        program.run(&mut coverage);
    }
    if one.is_none() && seeds >= SEEDS {
        coverage.assert_complete();
    }
}

/// The kinds of events that must come.
const KINDS: [Kind; 18] = [
    Kind::Timer,
    Kind::Idle,
    Kind::Prepare,
    Kind::Check,
    Kind::Async,
    Kind::Poll,
    Kind::Read,
    Kind::Write,
    Kind::Connect,
    Kind::Shutdown,
    Kind::Connection,
    Kind::Receive,
    Kind::Send,
    Kind::FsEvent,
    Kind::Closed,
    Kind::Work,
    Kind::Signal,
    Kind::Exit,
];

fn nothing_is_lost(mechanism: Mechanism) {
    survive(|_| mechanism);
}

#[test]
fn nothing_is_lost_on_a_kernel_that_misbehaves() {
    alone(|| survive(Mechanism::Sim));
}
