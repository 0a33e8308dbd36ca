//! The cost of sleeping and being woken to a thread, in processor time.
//!
//! The cost differs from machine to machine, most of all on virtual ones, where an idle processor may be given
//! back to the host. So it is measured, on some of the loop's real sleeps.

use super::contention::processors;

/// The most that a sleep is taken to cost.
///
/// On the virtual machine of docs/PERFORMANCE.md a sleep costs 5 to 15 µs. The limit keeps a measurement
/// that an interrupt has disturbed from making spins long.
const MAX_COST_NS: u64 = 25_000;

/// One of so many sleeps is measured. Not measured against other values; it bounds the cost of reading
/// the clocks to a few percent of a sleep's.
pub(super) const SAMPLE: u32 = 32;

/// The cost of a sleep to sleeper and waker together, in multiples of the cost to the sleeper.
///
/// Measured with the bare loops of docs/PERFORMANCE.md: waking a thread on an idle processor costs the waker some 9 µs,
/// up to twice of what the sleeper pays. A loop with one connection that spins for that long answers
/// after 21 µs in place of 57, for the same processor time.
const SLEEPER_AND_WAKER: u64 = 3;

/// A wait that returned this fast has not slept: the event was there before.
pub(crate) const NO_SLEEP_NS: u64 = 10_000;

/// Readings of the clocks before or after a sleep that is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clocks {
    pub(crate) now_ns: u64,
    /// The thread's processor time.
    pub(crate) cpu_ns: u64,
}

/// The cost of a sleep, as far as it has been measured.
#[derive(Default, Debug)]
pub(super) struct SleepCost {
    /// To the sleeper; zero as long as nothing is known.
    ns: u64,
    /// Sleeps until the next is measured.
    unmeasured: u32,
}

impl SleepCost {
    /// The cost of a sleep to the sleeper; zero as long as it is not known.
    #[inline]
    pub(super) fn of_sleeper_ns(&self) -> u64 {
        self.ns
    }

    /// The cost of a sleep to the sleeper and the thread that wakes it.
    #[inline]
    pub(super) fn of_both_ns(&self) -> u64 {
        SLEEPER_AND_WAKER * self.ns
    }

    /// Whether the next sleep is to be measured.
    #[inline]
    pub(super) fn takes_sample(&mut self) -> bool {
        if self.unmeasured > 0 {
            self.unmeasured -= 1;
            return false;
        }
        // Spins that follow ask for this number, and finding it out allocates: better before a sleep.
        processors();
        true
    }

    /// Learns from a sleep that was measured.
    pub(super) fn slept(&mut self, before: Clocks, after: Clocks) {
        self.unmeasured = SAMPLE;
        if after.now_ns - before.now_ns > NO_SLEEP_NS {
            self.learn(after.cpu_ns - before.cpu_ns);
        }
    }

    fn learn(&mut self, ns: u64) {
        let ns = ns.min(MAX_COST_NS);
        self.ns = match self.ns {
            0 => ns,
            known => (3 * known + ns) / 4,
        };
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_cost_is_learnt_and_has_a_limit() {
        let mut cost = SleepCost::default();
        assert_eq!(cost.of_both_ns(), 0, "nothing is known yet");
        cost.learn(4_000);
        assert_eq!(cost.of_both_ns(), 12_000);
        cost.learn(8_000);
        assert_eq!(cost.of_both_ns(), 15_000);
        for _ in 0..100 {
            cost.learn(u64::MAX);
        }
        assert!((74_000..=75_000).contains(&cost.of_both_ns()));
    }

    #[test]
    fn one_of_many_sleeps_is_measured() {
        let mut cost = SleepCost::default();
        let mut measured = 0;
        for _ in 0..4 * (SAMPLE + 1) {
            if cost.takes_sample() {
                let at = |now_ns, cpu_ns| Clocks { now_ns, cpu_ns };
                cost.slept(at(7, 1_000), at(8 + NO_SLEEP_NS, 2_000));
                measured += 1;
            }
        }
        assert_eq!(measured, 4);
        assert_eq!(cost.of_sleeper_ns(), 1_000);
    }
}
