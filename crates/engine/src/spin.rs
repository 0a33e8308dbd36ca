//! Waiting awake, for a moment, in place of going to sleep.
//!
//! Putting a thread to sleep and waking it costs the better part of what a small piece of
//! work takes. Where threads hand each other work at a high rate, whoever waits a few
//! microseconds awake saves both of them that price. Where they do not, the waiting is for
//! nothing: each time that it was, the next tries are left out, twice as many as before, so
//! that a program which does not profit pays next to nothing.

use blacklight_sys::clock;
use std::sync::OnceLock;

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

/// With one processor nobody can do anything while we wait awake.
fn is_pointless() -> bool {
    static POINTLESS: OnceLock<bool> = OnceLock::new();
    *POINTLESS.get_or_init(|| {
        std::thread::available_parallelism().map_or(true, |processors| processors.get() < 2)
    })
}

impl Spin {
    pub(crate) fn new() -> Spin {
        Spin {
            skip: if is_pointless() { u32::MAX } else { 0 },
            penalty: 1,
        }
    }

    /// A try, if one is worth it.
    #[inline]
    pub(crate) fn begin(&mut self) -> Option<Try> {
        if self.skip == 0 {
            return Some(Try(()));
        }
        if self.skip != u32::MAX {
            self.skip -= 1;
        }
        None
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
        let mut spin = Spin {
            skip: 0,
            penalty: 1,
        };
        let mut tries = 0;
        for _ in 0..100_000 {
            if spin.begin().is_some() {
                tries += 1;
                spin.end(false);
            }
        }
        assert!((50..200).contains(&tries), "{tries} tries");
        while spin.begin().is_none() {}
        spin.end(true);
        assert!(spin.begin().is_some(), "tries follow each other again");
    }

    #[test]
    fn a_try_ends() {
        assert!(Try(()).until(|| true));
        assert!(!Try(()).until(|| false));
    }
}
