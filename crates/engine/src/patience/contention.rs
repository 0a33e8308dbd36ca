//! Whether other programs want the processors.
//!
//! A thread that spins yields its processor. A program that computes takes up the offer and keeps the processor for a time
//! slice of milliseconds, and a worker of the pool that is away like this keeps other workers
//! from being woken for its requests. A sleeping thread would be scheduled at once when it is woken. So after another
//! program has kept a yielded processor for a millisecond, neither workers nor the loops that wait for them
//! spin for twenty times as long.
//!
//! Measured with `dns_beside_files` beside a program that keeps one of two processors busy: without this 0.43 and 0.47 of
//! the original's speed, with it 2.1 and 4.6. Only processors that other programs have kept must count: when
//! those kept by the pool's own workers did too, `async2` fell from 28 to 2.8 and `fs_read_4k` from 17
//! to 7 (docs/PERFORMANCE.md).
//!
//! The constants follow from time slices, a few milliseconds long, and from requests, a few
//! microseconds long; other values were not measured.
//!
//! [`Workers`] alone asks here: in [`is_crowded`](Workers::is_crowded) and [`were_held_up`](Workers::were_held_up).

use crate::sync;
use blacklight_sys::{clock, cpu};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// A thread that keeps a processor for this long is computing.
const SLICE_NS: u64 = 1_000_000;

/// Spinning stops for so many times as long as the processor was kept, so that no more than a
/// twentieth of the time is lost.
const PAUSE_FACTOR: u64 = 20;

/// A worker's request is taken to last no longer than this.
const REQUEST_NS: u64 = 100_000;

/// The longest that a processor is taken to have been kept. The machine may have been suspended.
const MAX_KEPT_NS: u64 = 20_000_000;

/// The contention that this process has seen.
static CONTENTION: Contention = Contention {
    until_ns: AtomicU64::new(0),
};

/// The state of the pool that a loop or a worker waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Workers<'a> {
    /// Workers that have something to do. For a worker that asks, the loop counts in its place.
    pub(crate) busy: u32,
    /// Requests that workers have taken up so far.
    pub(crate) taken: &'a sync::AtomicU64,
}

impl Workers<'_> {
    /// Whether threads that could run would have to wait for a processor.
    #[inline]
    pub(super) fn is_crowded(&self) -> bool {
        !cfg!(all(test, loom)) && (self.busy > processors() || CONTENTION.is_here())
    }

    /// Says that a spinning thread was without a processor for so long until now, in which so
    /// many requests were taken up.
    #[cold]
    pub(super) fn were_held_up(now_ns: u64, kept_ns: u64, requests: u64) {
        CONTENTION.judge(now_ns, kept_ns, requests);
    }
}

#[derive(Debug)]
struct Contention {
    /// Until when other programs are taken to want the processors; zero if they are not.
    until_ns: AtomicU64,
}

impl Contention {
    /// If the requests taken up can have filled the time in which the processor was kept, a worker
    /// has kept it. Else another program has.
    fn judge(&self, now_ns: u64, kept_ns: u64, requests: u64) {
        if kept_ns >= SLICE_NS.max(requests.saturating_mul(REQUEST_NS)) {
            let until_ns = now_ns.saturating_add(PAUSE_FACTOR * kept_ns.min(MAX_KEPT_NS));
            self.until_ns.store(until_ns, Relaxed);
        }
    }

    #[inline]
    fn is_here(&self) -> bool {
        self.until_ns.load(Relaxed) != 0 && self.is_here_at(clock::monotonic_ns())
    }

    #[cold]
    fn is_here_at(&self, now_ns: u64) -> bool {
        let is_here = now_ns < self.until_ns.load(Relaxed);
        if !is_here {
            self.until_ns.store(0, Relaxed);
        }
        is_here
    }
}

/// How many threads can run at the same time.
///
/// Threads that ask first at the same moment each find out. None waits for another: in a child
/// made by `fork` at that moment it would wait for ever.
#[inline]
pub(crate) fn processors() -> u32 {
    static PROCESSORS: AtomicU32 = AtomicU32::new(0);
    match PROCESSORS.load(Relaxed) {
        0 => {
            let known = cpu::parallelism() as u32;
            PROCESSORS.store(known, Relaxed);
            known
        }
        known => known,
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn contention_is_assumed_for_a_while_after_others_kept_the_processor() {
        let contention = Contention {
            until_ns: AtomicU64::new(0),
        };
        assert!(!contention.is_here());
        let now_ns = clock::monotonic_ns();
        contention.judge(now_ns, 4_000_000, 41);
        assert!(!contention.is_here(), "it was a worker");
        contention.judge(now_ns, SLICE_NS - 1, 0);
        assert!(!contention.is_here(), "it was not for long");
        contention.judge(now_ns, 4_000_000, 40);
        assert!(contention.is_here_at(now_ns + 79_000_000));
        assert!(!contention.is_here_at(now_ns + 80_000_000));
        assert!(!contention.is_here_at(now_ns), "it is over for good");
        contention.judge(now_ns, u64::MAX, 1);
        assert!(contention.is_here_at(now_ns + PAUSE_FACTOR * MAX_KEPT_NS - 1));
        assert!(!contention.is_here_at(now_ns + PAUSE_FACTOR * MAX_KEPT_NS));
    }
}
