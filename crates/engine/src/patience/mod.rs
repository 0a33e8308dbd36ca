//! The policy of waiting: whether a thread spins before it sleeps, and for how long.
//!
//! Sleeping and being woken costs two threads several microseconds. Where the awaited event comes
//! sooner than that, polling for it in a loop (*spinning*) saves both threads the cost, and the
//! event is handled at once. Where it comes later, the spin was in vain. A [`Patience`] decides from what
//! it has observed. It decides for a loop that waits for its mailbox, for the pool or for descriptors, and for
//! a worker of the pool that waits for the next request.
//!
//! A thread asks its patience:
//!
//! - [`plan`](Patience::plan) and [`plan_for_io`](Patience::plan_for_io): the thread is about to
//!   sleep. The answer is a [`Spin`] to be run first, or `None`;
//! - [`samples_sleep`](Patience::samples_sleep): whether to read the clocks before and after the
//!   sleep;
//! - [`may_spin`](Patience::may_spin): whether it may ever spin, which a loop tells the pool with
//!   each request.
//!
//! And it tells its patience what has happened:
//!
//! - [`saw_read`](Patience::saw_read), [`saw_write`](Patience::saw_write) and
//!   [`end_turn`](Patience::end_turn): which streams have transferred bytes, turn by turn;
//! - [`learn`](Patience::learn): how a spin ended;
//! - [`slept`](Patience::slept): what a sleep has cost.
//!
//! One more decision on waiting is made here, for each watcher: whether its connection is a
//! [`Flow`], of which the driver tells each transfer.
//!
//! The parts. Others see of them what they hand to a patience or get from it: [`Workers`] and
//! [`Clocks`], and the [`Spin`], which they run on a [`Processor`] and which says what has come of it
//! ([`Spun`]). They also use two measures, [`processors`] and [`NO_SLEEP_NS`].
//!
//! | | |
//! | --- | --- |
//! | `backoff.rs` | which chances to spin are taken: after a spin in vain the next ones are passed over |
//! | `sleep_cost.rs` | how much a sleep costs, measured |
//! | `traffic.rs` | whether one peer alone is talking to the loop |
//! | `flow.rs` | whether the bytes of a connection go one way, so that it is better registered level-triggered |
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
mod flow;
mod sleep_cost;
mod spin;
mod traffic;

pub(crate) use contention::{Workers, processors};
pub(crate) use flow::{Flow, FlowChange, Way};
pub(crate) use sleep_cost::{Clocks, NO_SLEEP_NS};
pub(crate) use spin::{Processor, Spin, Spun};

use backoff::Backoff;
use blacklight_sys::{Errno, Timeout};
use sleep_cost::SleepCost;
use spin::Target;
use traffic::{Expected, Traffic};

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
    /// The setting of `BLACKLIGHT_SPIN` in the environment: `0` is never, `1` is the default.
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

/// A spin for descriptors ends after its first look if that has taken longer than one part in so
/// many of the time that the spin is worth: in a sandbox that follows each system call, or under a
/// debugger, looking costs as much as sleeping. Seen under strace, where the loop then makes the
/// system calls of one that never spins (docs/PERFORMANCE.md).
const LOOK_SHARE: u64 = 4;

/// The thread of this process that a thread is about to sleep for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Awaits<'a> {
    /// A loop: a send by another thread.
    Send {
        /// Whether the last wait has brought sends.
        was_sent_to: bool,
    },
    /// A loop: the completion of a request by the pool. A worker of the pool: the next request.
    Pool(Workers<'a>),
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
    /// The event of a descriptor that the loop expects after its last turn.
    expected: Expected,
}

impl Patience {
    pub(crate) fn new(spinning: Spinning) -> Patience {
        Patience {
            spinning,
            threads: Backoff::lenient(),
            io: Backoff::strict(),
            sleep_cost: SleepCost::default(),
            traffic: Traffic::new(),
            expected: Expected::Anything,
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

    /// A turn of the loop has ended, at its first poll: that it polls again for the rest of many
    /// events is no other turn, since all of their peers are talking.
    #[inline]
    pub(crate) fn end_turn(&mut self) {
        self.expected = self.traffic.end_turn();
    }

    /// The spin that the thread has to run before it sleeps; `None` if a spin is not expected to
    /// save more than it costs. The thread then lets the patience [learn](Patience::learn) from the
    /// spin's result.
    ///
    /// A loop that expects nothing learns so without a call.
    #[inline(always)]
    pub(crate) fn plan<'a>(&mut self, awaits: Awaits<'a>) -> Option<Spin<'a>> {
        match awaits {
            Awaits::Send { was_sent_to: false } => None,
            Awaits::Send { was_sent_to: true } => self.plan_for_thread(None),
            Awaits::Pool(workers) => self.plan_for_thread(Some(workers)),
        }
    }

    #[inline(never)]
    fn plan_for_thread<'a>(&mut self, workers: Option<Workers<'a>>) -> Option<Spin<'a>> {
        let is_crowded = || workers.is_some_and(|workers| workers.is_crowded());
        (self.may_spin() && self.threads.takes_chance() && !is_crowded())
            .then(|| Spin::for_thread(workers))
    }

    /// As [`plan`](Patience::plan), for a loop that awaits an event of a descriptor.
    #[inline(always)]
    pub(crate) fn plan_for_io(
        &mut self,
        timeout: Timeout,
        looks_are_cheap: impl FnOnce() -> bool,
    ) -> Option<Spin<'static>> {
        match self.expected {
            Expected::Anything => None,
            Expected::Reply | Expected::More => looks_are_cheap()
                .then(|| self.plan_for_expected(timeout))
                .flatten(),
        }
    }

    /// A spin lasts for as long as the sleep that it may save would cost. Where one peer sends without
    /// being answered, its bytes are let accumulate for part of that time.
    #[inline(never)]
    fn plan_for_expected(&mut self, timeout: Timeout) -> Option<Spin<'static>> {
        let worth_ns = self.sleep_cost.of_both_ns();
        let limit_ns = timeout.map_or(worth_ns, |timeout| timeout.min(worth_ns));
        let unasked_ns = match self.expected {
            Expected::More => self.sleep_cost.of_sleeper_ns().min(limit_ns),
            Expected::Reply | Expected::Anything => 0,
        };
        let look_ns = worth_ns / LOOK_SHARE;
        (self.may_spin() && limit_ns != 0 && self.io.takes_chance())
            .then(|| Spin::for_io(unasked_ns, limit_ns, look_ns))
    }

    /// Learns from a spin; whether it found what the thread was waiting for.
    #[inline]
    pub(crate) fn learn(&mut self, spun: &Spun, found: bool) {
        match spun.lesson {
            None => {}
            Some(Target::Thread) => self.threads.learn(found),
            Some(Target::Io) => self.io.learn(found),
        }
    }

    /// Whether the clocks are to be read before and after the next sleep. They are from time to
    /// time, as long as spinning for descriptors is likely to be tried soon.
    #[inline]
    pub(crate) fn samples_sleep(&mut self, looks_are_cheap: impl FnOnce() -> bool) -> bool {
        looks_are_cheap()
            && self.may_spin()
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

    /// A patience that has seen a conversation, of a loop that has slept.
    fn in_conversation(spinning: Spinning) -> Patience {
        let mut patience = Patience::new(spinning);
        patience.slept(at(0, 0), at(50_000, 5_000));
        for _ in 0..2 {
            patience.saw_read(1);
            patience.saw_write();
            patience.end_turn();
        }
        patience
    }

    const SEND: Awaits<'static> = Awaits::Send { was_sent_to: true };

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
            assert_eq!(patience.samples_sleep(|| true), spins);
            let mut patience = in_conversation(spinning);
            assert_eq!(patience.plan_for_io(None, || true).is_some(), spins);
            for awaits in [SEND, Awaits::Pool(idle_pool)] {
                let planned = patience.plan(awaits);
                assert_eq!(planned.is_some(), spins, "{awaits:?}");
            }
        }
    }

    #[test]
    fn descriptors_are_not_polled_while_a_sleep_has_no_known_cost_or_anything_may_come() {
        let mut patience = in_conversation(Spinning::Adaptive);
        assert!(patience.plan_for_io(None, || true).is_some());
        assert!(patience.plan_for_io(Some(0), || true).is_none());
        patience.sleep_cost = SleepCost::default();
        assert!(
            patience.plan_for_io(None, || true).is_none(),
            "the cost is not known"
        );
        let mut patience = in_conversation(Spinning::Adaptive);
        patience.saw_read(2);
        patience.end_turn();
        assert!(
            patience.plan_for_io(None, || true).is_none(),
            "two peers are talking"
        );
    }

    #[test]
    fn a_loop_whose_looks_are_not_cheap_does_not_spin_for_descriptors() {
        let mut patience = in_conversation(Spinning::Adaptive);
        assert!(patience.plan_for_io(None, || false).is_none());
        assert!(!patience.samples_sleep(|| false));
        assert!(patience.plan(SEND).is_some());
    }

    #[test]
    fn a_send_is_expected_after_a_send_only() {
        let mut patience = Patience::new(Spinning::Adaptive);
        let first = Awaits::Send { was_sent_to: false };
        assert!(patience.plan(first).is_none());
        assert!(patience.plan(SEND).is_some());
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
        assert!(patience.plan(SEND).is_some());
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
