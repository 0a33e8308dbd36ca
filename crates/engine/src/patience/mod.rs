//! The policy of spinning: whether a thread spins before it sleeps, and for how long.
//!
//! Sleeping and being woken costs two threads several microseconds. Where the awaited event comes
//! sooner than that, polling for it in a loop (*spinning*) saves both threads the cost, and the
//! event is handled at once. Where it comes later, the spin was in vain. A [`Patience`] decides from what
//! it has observed. It decides for a loop that waits for its mailbox, for the pool or for descriptors, and for
//! a worker of the pool that waits for the next request.
//!
//! The rest of the engine knows four calls and one answer:
//!
//! - [`saw_read`](Patience::saw_read) and [`saw_write`](Patience::saw_write): a stream has transferred bytes;
//! - [`plan`](Patience::plan): the thread is about to sleep. The answer is a [`Spin`] to be run first, or `None`;
//! - [`learn`](Patience::learn): how that spin ended;
//! - [`samples_sleep`](Patience::samples_sleep) and [`slept`](Patience::slept): what a sleep has cost.
//!
//! The parts, none of which is known outside of this folder:
//!
//! | | |
//! | --- | --- |
//! | `backoff.rs` | which chances to spin are taken: after a spin in vain the next ones are passed over |
//! | `sleep_cost.rs` | how much a sleep costs, measured |
//! | `traffic.rs` | whether one peer alone is talking to the loop |
//! | `contention.rs` | whether another program wants the processors that spinning threads yield |
//! | `spin.rs` | the spinning itself |
//!
//! A thread that spins yields its processor all the while, so it takes no time from threads that have
//! something to do. The pool's workers and the loops that wait for them stop spinning after another program has
//! made use of that (`contention.rs`).
//!
//! With [`Spinning::Never`] no plan has a spin and no sleep is measured.

mod backoff;
mod contention;
mod sleep_cost;
mod spin;
mod traffic;

pub(crate) use contention::{Workers, processors};
pub(crate) use sleep_cost::{Clocks, NO_SLEEP_NS};
pub(crate) use spin::{Awaited, Spin, Spun};
pub(crate) use traffic::Expected;

use backoff::Backoff;
use blacklight_sys::{Errno, Timeout};
use sleep_cost::SleepCost;
use spin::Target;
use traffic::Traffic;

/// Whether a loop may spin before it sleeps.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Spinning {
    /// Where it has paid lately.
    #[default]
    Adaptive,
    /// Never: the loop sleeps at once, and so do the pool's workers after its requests.
    Never,
}

impl Spinning {
    /// What the environment asks for by `BLACKLIGHT_SPIN`: `0` is never, `1` is the same as nothing.
    /// Any other value is `EINVAL`, not a guess, as it is for `BLACKLIGHT_POLLER`.
    pub fn from_environment() -> Result<Spinning, Errno> {
        let setting = std::env::var_os("BLACKLIGHT_SPIN").unwrap_or_default();
        Spinning::from_setting(setting.as_encoded_bytes())
    }

    fn from_setting(setting: &[u8]) -> Result<Spinning, Errno> {
        match setting {
            b"" | b"1" => Ok(Spinning::Adaptive),
            b"0" => Ok(Spinning::Never),
            _ => Err(Errno::EINVAL),
        }
    }
}

/// A spin for descriptors is given up if its first look takes more than this part of what a sleep costs: in a
/// sandbox that follows each system call, or under a debugger, looking costs as much as sleeping. Seen
/// under strace, where the loop then makes the system calls of one that never spins (docs/PERFORMANCE.md).
const DEAR: u64 = 4;

/// What a thread is about to sleep for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Awaits<'a> {
    /// A loop: a send by another thread.
    Send,
    /// A loop: the completion of a request by the pool. A worker of the pool: the next request.
    Pool(Workers<'a>),
    /// A loop: an event of a descriptor, for as long as the time-out allows.
    Io(Expected, Timeout),
}

/// When one thread spins.
#[derive(Debug)]
pub(crate) struct Patience {
    spinning: Spinning,
    /// For threads of this process: sends, completions, requests.
    threads: Backoff,
    /// For descriptors.
    io: Backoff,
    sleep_cost: SleepCost,
    traffic: Traffic,
}

impl Patience {
    pub(crate) fn new(spinning: Spinning) -> Patience {
        Patience {
            spinning,
            threads: Backoff::lenient(),
            io: Backoff::strict(),
            sleep_cost: SleepCost::default(),
            traffic: Traffic::new(),
        }
    }

    /// Whether the thread may ever spin.
    pub(crate) fn may_spin(&self) -> bool {
        self.spinning != Spinning::Never
    }

    /// A stream was read.
    #[inline]
    pub(crate) fn saw_read(&mut self, stream: u32) {
        self.traffic.saw_read(stream);
    }

    /// A stream was written to.
    #[inline]
    pub(crate) fn saw_write(&mut self) {
        self.traffic.saw_write();
    }

    /// Ends a turn of the loop: what its traffic lets expect from descriptors.
    #[inline]
    pub(crate) fn end_turn(&mut self) -> Expected {
        self.traffic.end_turn()
    }

    /// How to spin before sleeping, if it is to be expected to pay. The spin is to be run, and
    /// its result to be [learnt](Patience::learn) from.
    #[inline]
    pub(crate) fn plan<'a>(&mut self, awaits: Awaits<'a>) -> Option<Spin<'a>> {
        if !self.may_spin() {
            return None;
        }
        match awaits {
            Awaits::Send => self.threads.takes_chance().then(|| Spin::for_thread(None)),
            Awaits::Pool(workers) => (self.threads.takes_chance() && !workers.is_crowded())
                .then(|| Spin::for_thread(Some(workers))),
            Awaits::Io(expected, timeout) => self.plan_for_io(expected, timeout),
        }
    }

    /// A spin lasts for as long as the sleep that it may save would cost. Where one peer sends without
    /// being answered, its bytes are let accumulate for part of that time.
    fn plan_for_io(&mut self, expected: Expected, timeout: Timeout) -> Option<Spin<'static>> {
        let worth_ns = self.sleep_cost.of_both_ns();
        let limit_ns = timeout.map_or(worth_ns, |timeout| timeout.min(worth_ns));
        let unasked_ns = match expected {
            Expected::Anything => return None,
            Expected::Reply => 0,
            Expected::More => self.sleep_cost.of_sleeper_ns().min(limit_ns),
        };
        let look_ns = worth_ns / DEAR;
        (limit_ns != 0 && self.io.takes_chance())
            .then(|| Spin::for_io(unasked_ns, limit_ns, look_ns))
    }

    /// Learns from a spin; whether it found what the thread was waiting for.
    #[inline]
    pub(crate) fn learn(&mut self, spun: &Spun, found: bool) {
        match spun.target {
            _ if !spun.is_telling => {}
            Target::Thread => self.threads.learn(found),
            Target::Io => self.io.learn(found),
        }
    }

    /// Whether the clocks are to be read before and after the next sleep. They are from time to
    /// time, as long as spinning is likely to be tried soon.
    #[inline]
    pub(crate) fn samples_sleep(&mut self) -> bool {
        self.may_spin()
            && self.io.passes_over_at_most(sleep_cost::SAMPLE)
            && self.sleep_cost.takes_sample()
    }

    /// Learns from a sleep that was measured.
    pub(crate) fn slept(&mut self, before: Clocks, after: Clocks) {
        self.sleep_cost.slept(before, after);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::sync::AtomicU64;

    fn at(now_ns: u64, cpu_ns: u64) -> Clocks {
        Clocks { now_ns, cpu_ns }
    }

    #[test]
    fn a_loop_that_never_spins_plans_no_spin_and_measures_no_sleep() {
        let taken = AtomicU64::new(0);
        let idle_pool = Workers {
            busy: 0,
            taken: &taken,
        };
        for spinning in [Spinning::Never, Spinning::Adaptive] {
            let mut patience = Patience::new(spinning);
            let spins = spinning == Spinning::Adaptive;
            assert_eq!(patience.may_spin(), spins);
            assert_eq!(patience.samples_sleep(), spins);
            patience.slept(at(0, 0), at(50_000, 5_000));
            for awaits in [
                Awaits::Send,
                Awaits::Pool(idle_pool),
                Awaits::Io(Expected::Reply, None),
                Awaits::Io(Expected::More, Some(1_000)),
            ] {
                let planned = patience.plan(awaits);
                assert_eq!(planned.is_some(), spins, "{awaits:?}");
            }
        }
    }

    #[test]
    fn descriptors_are_not_polled_while_a_sleep_has_no_known_cost_or_anything_may_come() {
        let mut patience = Patience::new(Spinning::Adaptive);
        let reply = Awaits::Io(Expected::Reply, None);
        assert!(patience.plan(reply).is_none());
        patience.slept(at(0, 0), at(50_000, 5_000));
        assert!(patience.plan(reply).is_some());
        assert!(
            patience
                .plan(Awaits::Io(Expected::Anything, None))
                .is_none()
        );
        assert!(
            patience
                .plan(Awaits::Io(Expected::Reply, Some(0)))
                .is_none()
        );
    }

    #[test]
    fn more_threads_than_processors_do_not_spin_for_each_other() {
        let taken = AtomicU64::new(0);
        let busy = processors() + 1;
        let crowd = Workers {
            busy,
            taken: &taken,
        };
        let mut patience = Patience::new(Spinning::Adaptive);
        assert!(patience.plan(Awaits::Pool(crowd)).is_none());
        assert!(patience.plan(Awaits::Send).is_some());
    }

    #[test]
    fn a_setting_that_says_neither_yes_nor_no_is_refused() {
        let meant = |setting: &str| Spinning::from_setting(setting.as_bytes());
        assert_eq!(meant("0"), Ok(Spinning::Never));
        assert_eq!(meant("1"), Ok(Spinning::Adaptive));
        assert_eq!(meant(""), Ok(Spinning::Adaptive));
        for unclear in ["00", "no", "off", "false", "2", " 0", "-0", "\u{fc}"] {
            assert_eq!(meant(unclear), Err(Errno::EINVAL), "{unclear}");
        }
    }
}
