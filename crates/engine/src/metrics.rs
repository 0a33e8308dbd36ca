//! The counters and the idle time of a loop.

use crate::patience::NO_SLEEP_NS;
use blacklight_sys::Errno;
use blacklight_sys::fallible::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The counters of a loop, taken at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct Metrics {
    /// Turns of the loop, counted as each begins to poll.
    pub loop_count: u64,
    /// Events that the poller has reported.
    pub events: u64,
    /// Events that were pending already when the loop polled.
    pub events_waiting: u64,
}

/// In [`IdleTime::state`]: the loop waits.
const WAITS: u64 = 1 << 63;

/// The time that a loop has spent waiting for events, which any thread may read.
///
/// One word tells whether the loop waits and what it has waited before, so that no reader finds the
/// one before and the other after the end of a wait.
#[derive(Default, Debug)]
pub struct IdleTime {
    /// The time spent waiting. While the loop waits: [`WAITS`], and the time of the clock less the
    /// time spent waiting, which does not change during a wait.
    state: AtomicU64,
    /// The most that a reader was told. A reader may have read the clock before the loop did and
    /// look at the word after the loop has set it, or the other way round.
    told_ns: AtomicU64,
}

impl IdleTime {
    /// The time spent waiting so far, a wait in progress included. It never decreases.
    pub fn total_ns(&self, now_ns: u64) -> u64 {
        let total_ns = self.counted_ns(now_ns);
        self.told_ns.fetch_max(total_ns, Relaxed).max(total_ns)
    }

    fn counted_ns(&self, now_ns: u64) -> u64 {
        let state = self.state.load(Relaxed);
        match state & WAITS {
            0 => state,
            _ => now_ns.saturating_sub(state & !WAITS),
        }
    }

    /// Begins a wait. Only the loop's own thread does so.
    fn enter(&self, now_ns: u64) {
        let not_waited_ns = now_ns.saturating_sub(self.counted_ns(now_ns));
        self.state.store(not_waited_ns | WAITS, Relaxed);
    }

    /// Ends the wait in progress. Only the loop's own thread does so.
    fn leave(&self, now_ns: u64) {
        self.state.store(self.counted_ns(now_ns), Relaxed);
    }
}

/// The driver's measurements of its waits.
#[derive(Debug)]
pub(crate) struct Waits {
    pub(crate) metrics: Metrics,
    /// Whether the last wait has slept.
    pub(crate) slept: bool,
    /// Whether idle time is measured.
    pub(crate) is_timed: bool,
    pub(crate) idle_time: Arc<IdleTime>,
    /// When the last wait that was measured began.
    since_ns: u64,
}

impl Waits {
    pub(crate) fn new() -> Result<Waits, Errno> {
        Ok(Waits {
            metrics: Metrics::default(),
            slept: false,
            is_timed: false,
            idle_time: Arc::try_new(IdleTime::default())?,
            since_ns: 0,
        })
    }

    /// Begins a wait that is measured.
    pub(crate) fn enter(&mut self, now_ns: u64) {
        self.since_ns = now_ns;
        self.idle_time.enter(now_ns);
    }

    /// Ends a wait that is measured. Returns whether the loop has slept: it has not if an event was
    /// pending.
    pub(crate) fn leave(&mut self, now_ns: u64) -> bool {
        self.idle_time.leave(now_ns);
        now_ns.saturating_sub(self.since_ns) > NO_SLEEP_NS
    }

    /// Counts events that the last wait has brought.
    #[inline]
    pub(crate) fn count(&mut self, events: u64) {
        self.metrics.events += events;
        if !self.slept {
            self.metrics.events_waiting += events;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

    const WAIT: u64 = 1_000;

    /// The loop of this test does nothing but wait, from the time [`WAIT`] on.
    #[test]
    fn a_reader_in_another_thread_counts_each_wait_once() {
        let mut waits = Waits::new().unwrap();
        let idle_time = waits.idle_time.clone();
        let (clock, is_over) = (AtomicU64::new(WAIT), AtomicBool::new(false));
        let read = || {
            let before = clock.load(SeqCst) - WAIT;
            let total = idle_time.total_ns(before + WAIT);
            (before, total, clock.load(SeqCst) - WAIT)
        };
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let mut reads = (0..2_000_000).map(|_| read());
                let wrong = reads.find(|(before, total, after)| total < before || total > after);
                is_over.store(true, Relaxed);
                wrong
            });
            while !is_over.load(Relaxed) {
                let now = clock.load(Relaxed);
                waits.enter(now);
                clock.store(now + WAIT, SeqCst);
                waits.leave(now + WAIT);
            }
            assert_eq!(reader.join().unwrap(), None, "before, total, after");
        });
    }

    #[test]
    fn what_readers_are_told_never_decreases() {
        let idle_time = IdleTime::default();
        idle_time.enter(100);
        assert_eq!(idle_time.total_ns(150), 50);
        // The reader has read the clock after the loop did, and looks before the loop says so.
        idle_time.leave(140);
        assert_eq!(idle_time.total_ns(160), 50);
        idle_time.enter(200);
        assert_eq!(idle_time.total_ns(190), 50, "read before the wait began");
        assert_eq!(idle_time.total_ns(230), 70);
    }
}
