//! A gate: lets threads into a section that its owner can close.
//!
//! The word of a gate says whether it is open, how many threads are inside, and of which
//! process they are. The invariants:
//!
//! - A closed gate is never written to by those whom it refuses. So the owner may open it anew
//!   by a plain store, even while other threads knock.
//! - After [`Gate::close`] nobody is inside, and nobody gets in before [`Gate::open`]. What
//!   happened inside happens before the return from `close`.
//! - Threads that were inside when the process forked are not in the child. The first
//!   thread that enters there counts from zero, and a close does not wait for the others.
//!
//! Entering and leaving are atomics only, so both may happen in a signal handler, also in one
//! that interrupts the close.

use crate::sync::{AtomicU32, sleep, yield_now};
use blacklight_sys::per_process;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::time::Duration;

const OPEN: u32 = 1 << 31;
/// How many threads are inside.
const INSIDE: u32 = (1 << 20) - 1;
/// The process whose threads they are.
const PROCESS: u32 = !OPEN & !INSIDE;

/// See the module.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Gate(AtomicU32);

#[cfg(all(test, loom))]
impl Gate {
    /// As a child finds it that was forked while a thread of its parent was inside.
    pub(crate) fn inherited() -> Gate {
        let parent = process().wrapping_sub(INSIDE + 1) & PROCESS;
        Gate(AtomicU32::new(OPEN | parent | 1))
    }
}

/// This process, as the word has it. Only the last bits of the generation fit, which is enough
/// to tell a process from those that it descends from.
#[inline]
fn process() -> u32 {
    ((per_process::generation() as u32) << INSIDE.count_ones()) & PROCESS
}

impl Gate {
    /// Opens a gate that is closed, or memory that has never been one.
    pub fn open(&self) {
        self.0.store(OPEN | process(), Release);
    }

    /// Goes in, if the gate is open. Whoever is in must [leave](Gate::leave).
    #[inline]
    pub fn enter(&self) -> bool {
        let process = process();
        let mut word = self.0.load(Relaxed);
        loop {
            if word & OPEN == 0 {
                return false;
            }
            let inside = match word & PROCESS == process {
                true => word + 1,
                false => OPEN | process | 1,
            };
            match self.0.compare_exchange_weak(word, inside, Acquire, Relaxed) {
                Ok(_) => return true,
                Err(now) => word = now,
            }
        }
    }

    /// Goes out again.
    #[inline]
    pub fn leave(&self) {
        self.0.fetch_sub(1, Release);
    }

    /// Closes the gate and waits for those of this process who are inside.
    pub fn close(&self) {
        self.0.fetch_and(!OPEN, AcqRel);
        let mut waits = 0;
        while self.is_occupied() {
            waits += 1;
            match waits < 100 {
                true => yield_now(),
                // Yielding gives nothing to a thread of a lower priority.
                false => sleep(Duration::from_micros(50)),
            }
        }
    }

    fn is_occupied(&self) -> bool {
        let word = self.0.load(Acquire);
        word & INSIDE != 0 && word & PROCESS == process()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::Barrier;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn a_closed_gate_refuses_and_is_left_alone() {
        let gate = Gate::default();
        assert!(!gate.enter());
        gate.open();
        assert!(gate.enter());
        gate.leave();
        gate.close();
        let word = gate.0.load(Relaxed);
        assert!(!gate.enter());
        assert_eq!(gate.0.load(Relaxed), word);
    }

    #[test]
    fn closing_waits_for_those_inside() {
        for _ in 0..100 {
            let (gate, go, left) = (Gate::default(), Barrier::new(2), AtomicBool::new(false));
            gate.open();
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    assert!(gate.enter());
                    go.wait();
                    std::thread::yield_now();
                    left.store(true, Relaxed);
                    gate.leave();
                });
                go.wait();
                gate.close();
                assert!(left.load(Relaxed));
            });
        }
    }

    /// The word as a child finds it that was forked while a thread of its parent was inside.
    #[test]
    fn those_of_another_process_are_not_waited_for() {
        let stranger = process().wrapping_sub(INSIDE + 1) & PROCESS;
        let gate = Gate(AtomicU32::new(OPEN | stranger | 3));
        gate.close();
        let gate = Gate(AtomicU32::new(OPEN | stranger | 3));
        assert!(gate.enter());
        gate.leave();
        gate.close();
        assert_eq!(gate.0.load(Relaxed) & INSIDE, 0);
    }
}
