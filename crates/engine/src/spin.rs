//! Waiting awake, for a moment, in place of going to sleep.
//!
//! Putting a thread to sleep and waking it costs the better part of what a small piece of
//! work takes. Where threads hand each other work at a high rate, whoever waits a few
//! microseconds awake saves both of them that price. Where they do not, the waiting is for
//! nothing: each time that it was, the next tries are left out, twice as many as before, so
//! that a program which does not profit pays next to nothing. And it must not cost those who
//! do something: who waits awake offers its processor to them all the while, and where more
//! threads than processors are known to be busy nobody waits awake.

use blacklight_sys::clock;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// How long to wait awake: about what a sleep and a wake-up cost.
const SPIN_NS: u64 = 20_000;

/// The longest that others may keep the processor meanwhile: less than any scheduler gives to
/// one that goes on computing.
const AWAY_NS: u64 = 200_000;

/// The most tries that are left out after tries in vain.
const MAX_SKIP: u32 = 1024;

/// Whether and how long it pays to wait awake in one place.
#[derive(Debug)]
pub(crate) struct Spin {
    /// Tries to leave out until the next.
    skip: u32,
    /// Tries to leave out after the next one, should it be in vain.
    penalty: u32,
}

/// One try.
#[derive(Debug)]
pub(crate) struct Try(());

/// How many threads can run at the same time.
///
/// Threads that ask first at the same moment each find out. None waits for another: in a child
/// made by `fork` at that moment it would wait for ever.
#[inline]
pub(crate) fn processors() -> u32 {
    static PROCESSORS: AtomicU32 = AtomicU32::new(0);
    match PROCESSORS.load(Relaxed) {
        0 => {
            let known = std::thread::available_parallelism();
            let known = known.map_or(1, |known| known.get() as u32);
            PROCESSORS.store(known, Relaxed);
            known
        }
        known => known,
    }
}

impl Spin {
    pub(crate) fn new() -> Spin {
        Spin {
            skip: 0,
            penalty: 1,
        }
    }

    /// A try, if one is worth it beside so many other threads that have something to do.
    #[inline]
    pub(crate) fn begin(&mut self, others: u32) -> Option<Try> {
        if self.skip > 0 {
            self.skip -= 1;
            return None;
        }
        (others <= processors()).then_some(Try(()))
    }

    /// Learns from a try.
    #[inline]
    pub(crate) fn end(&mut self, found: bool) {
        if found {
            self.penalty = 1;
        } else {
            self.skip = self.penalty;
            self.penalty = (self.penalty * 2).min(MAX_SKIP);
        }
    }
}

impl Try {
    /// Waits until `ready` says yes, or long enough; whether it said yes in time. Whoever
    /// else could run on this processor does so meanwhile, above all the one we wait for. If
    /// they keep the processor for long, it was in vain: a sleeper would have been woken.
    #[inline]
    pub(crate) fn until(self, ready: impl Fn() -> bool) -> bool {
        let is_ready = || {
            (0..16).any(|_| {
                std::hint::spin_loop();
                ready()
            })
        };
        if is_ready() {
            return true;
        }
        let begun_ns = clock::monotonic_ns();
        loop {
            std::thread::yield_now();
            let waited_ns = clock::monotonic_ns() - begun_ns;
            if waited_ns >= AWAY_NS {
                return false;
            }
            if is_ready() {
                return true;
            }
            if waited_ns >= SPIN_NS {
                return false;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tries_in_vain_become_rare_and_success_brings_them_back() {
        let mut spin = Spin::new();
        let mut tries = 0;
        for _ in 0..100_000 {
            if spin.begin(0).is_some() {
                tries += 1;
                spin.end(false);
            }
        }
        assert!((50..200).contains(&tries), "{tries} tries");
        while spin.begin(0).is_none() {}
        spin.end(true);
        assert!(spin.begin(0).is_some(), "tries follow each other again");
        assert!(
            spin.begin(processors() + 1).is_none(),
            "there are not processors enough"
        );
    }

    #[test]
    fn a_try_ends() {
        assert!(Try(()).until(|| true));
        assert!(!Try(()).until(|| false));
    }
}
