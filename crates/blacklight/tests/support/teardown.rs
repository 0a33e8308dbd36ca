//! What tests need that drop things at random points.

use std::cell::Cell;
use std::ops::Range;
use std::rc::Rc;

/// The seeds to try: all of these, or the one that `BLACKLIGHT_SEED` names.
pub(crate) fn seeds(all: Range<u64>) -> Range<u64> {
    let seed = std::env::var("BLACKLIGHT_SEED").ok();
    match seed.and_then(|seed| seed.parse().ok()) {
        Some(seed) => seed..seed + 1,
        None => all,
    }
}

/// xorshift, so that a failure can be repeated from its seed.
pub(crate) struct Random(Cell<u64>);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        println!("BLACKLIGHT_SEED={seed}");
        Random(Cell::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }

    pub(crate) fn below(&self, limit: usize) -> usize {
        let mut state = self.0.get();
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        self.0.set(state);
        (state % limit as u64) as usize
    }
}

/// Counts how many of these there are.
pub(crate) struct Counted(Rc<Cell<usize>>);

impl Counted {
    pub(crate) fn new(count: &Rc<Cell<usize>>) -> Counted {
        count.set(count.get() + 1);
        Counted(count.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}
