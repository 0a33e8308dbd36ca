//! The counters and the idle time of a loop.

use crate::patience::NO_SLEEP_NS;
use blacklight_sys::Errno;
use blacklight_sys::fallible::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The counters of a loop, taken at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Metrics {
    /// Turns of the loop, counted as each begins to poll.
    pub loop_count: u64,
    /// Events that the poller has reported.
    pub events: u64,
    /// Events that were pending already when the loop polled.
    pub events_waiting: u64,
}

/// The time that a loop has spent waiting for events, which any thread may read.
#[derive(Default, Debug)]
pub struct IdleTime {
    total_ns: AtomicU64,
    /// When the wait in progress began, or zero.
    since_ns: AtomicU64,
}

impl IdleTime {
    /// The time spent waiting so far, a wait in progress included.
    pub fn total_ns(&self, now_ns: u64) -> u64 {
        let since_ns = self.since_ns.load(Relaxed);
        let running = if since_ns == 0 {
            0
        } else {
            now_ns.saturating_sub(since_ns)
        };
        self.total_ns.load(Relaxed) + running
    }

    pub(crate) fn enter(&self, now_ns: u64) {
        self.since_ns.store(now_ns, Relaxed);
    }

    /// Ends a wait and returns how long it took.
    pub(crate) fn leave(&self, now_ns: u64) -> u64 {
        let waited = now_ns.saturating_sub(self.since_ns.swap(0, Relaxed));
        // Only the loop's own thread writes.
        self.total_ns
            .store(self.total_ns.load(Relaxed) + waited, Relaxed);
        waited
    }

    /// Ends a wait and returns whether the loop has slept: it has not if an event was pending.
    pub(crate) fn has_slept_until(&self, now_ns: u64) -> bool {
        self.leave(now_ns) > NO_SLEEP_NS
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
}

impl Waits {
    pub(crate) fn new() -> Result<Waits, Errno> {
        Ok(Waits {
            metrics: Metrics::default(),
            slept: false,
            is_timed: false,
            idle_time: Arc::try_new(IdleTime::default())?,
        })
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
