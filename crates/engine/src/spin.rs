//! Waiting awake, for a moment, in place of going to sleep.
//!
//! Putting a thread to sleep and waking it costs the better part of what a small piece of
//! work takes. Where threads hand each other work at a high rate, whoever waits a few
//! microseconds awake saves both of them that price. Where they do not, the waiting is for
//! nothing: each time that it was, the next tries are left out, twice as many as before, so
//! that a program which does not profit pays next to nothing. And it must not cost those who
//! do something: nobody waits awake unless a processor is left over for it.

use blacklight_sys::clock;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// How long to wait awake: about what a sleep and a wake-up cost.
const SPIN_NS: u64 = 20_000;

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
        (others < processors()).then_some(Try(()))
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
    /// Waits until `ready` says yes, or long enough; returns what it said last.
    #[inline]
    pub(crate) fn until(self, ready: impl Fn() -> bool) -> bool {
        let mut deadline_ns = None;
        loop {
            for _ in 0..16 {
                if ready() {
                    return true;
                }
                std::hint::spin_loop();
            }
            let now_ns = clock::monotonic_ns();
            if now_ns >= *deadline_ns.get_or_insert(now_ns + SPIN_NS) {
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
            spin.begin(processors()).is_none(),
            "no processor is left over"
        );
    }

    #[test]
    fn a_try_ends() {
        assert!(Try(()).until(|| true));
        assert!(!Try(()).until(|| false));
    }
}
