//! Which chances to spin are taken.
//!
//! After a spin in vain the next chances are passed over, twice as many as the time before, so that
//! a program that does not profit from spinning pays next to nothing for it.

/// The most chances that are passed over after a spin in vain.
///
/// With it, 100,000 chances without any success lead to some hundred spins (unit test below). It was not
/// measured against other values.
const MAX_PENALTY: u32 = 1024;

/// The part of the penalty that a success takes away where the back-off is [strict](Backoff::strict).
/// A spin in vain doubles the penalty, so that spins follow each other only where five of six succeed.
///
/// Measured by `cargo xtask measure gaps` (docs/RELIABILITY.md, Spinning): at a pause of 30 µs and more between
/// messages, where spinning does not pay, a loop with it takes as much processor time as one that never spins.
const FORGIVEN: u32 = 8;

/// Whether the next chance to spin is taken, by what became of the last ones.
#[derive(Debug)]
pub(super) struct Backoff {
    /// Chances to pass over until the next spin.
    skip: u32,
    /// Chances to pass over after the next spin, should it be in vain.
    penalty: u32,
    is_strict: bool,
}

impl Backoff {
    /// For threads that hand each other work: one success takes away the whole penalty. Both threads
    /// go to sleep at the same time if one of them gives up, and then both spins have failed.
    pub(super) fn lenient() -> Backoff {
        Backoff {
            skip: 0,
            penalty: 1,
            is_strict: false,
        }
    }

    /// For events from outside of the process: a spin in vain costs more than a success saves.
    pub(super) fn strict() -> Backoff {
        Backoff {
            skip: 0,
            penalty: FORGIVEN,
            is_strict: true,
        }
    }

    /// Whether this chance is taken.
    #[inline]
    pub(super) fn takes_chance(&mut self) -> bool {
        let takes = self.skip == 0;
        self.skip = self.skip.saturating_sub(1);
        takes
    }

    /// Whether no more than so many chances are passed over before the next spin.
    #[inline]
    pub(super) fn passes_over_at_most(&self, chances: u32) -> bool {
        self.skip <= chances
    }

    /// Learns from a spin.
    #[inline]
    pub(super) fn learn(&mut self, found: bool) {
        if found {
            self.penalty = match self.is_strict {
                true => self.penalty - self.penalty / FORGIVEN,
                false => 1,
            };
        } else {
            self.skip = self.penalty;
            self.penalty = (self.penalty * 2).min(MAX_PENALTY);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn spins(backoff: &mut Backoff, chances: u32, found: impl Fn(u32) -> bool) -> u32 {
        let mut spins = 0;
        for _ in 0..chances {
            if backoff.takes_chance() {
                spins += 1;
                backoff.learn(found(spins));
            }
        }
        spins
    }

    #[test]
    fn spins_in_vain_become_rare_and_success_brings_them_back() {
        for mut backoff in [Backoff::lenient(), Backoff::strict()] {
            let made = spins(&mut backoff, 100_000, |_| false);
            assert!((50..200).contains(&made), "{made} spins");
            spins(&mut backoff, 100_000, |_| true);
            assert_eq!(
                spins(&mut backoff, 100, |_| true),
                100,
                "one after the other"
            );
        }
    }

    #[test]
    fn one_success_is_enough_for_the_lenient_only() {
        let every_other = |spins: u32| spins.is_multiple_of(2);
        let made = spins(&mut Backoff::lenient(), 10_000, every_other);
        assert!(made > 5_000, "{made} spins");
        let made = spins(&mut Backoff::strict(), 10_000, every_other);
        assert!(made < 500, "{made} spins");
        let nearly_all = |spins: u32| !spins.is_multiple_of(20);
        let made = spins(&mut Backoff::strict(), 10_000, nearly_all);
        assert!(made > 5_000, "{made} spins");
    }
}
