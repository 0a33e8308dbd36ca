//! A gate: admits threads to a section that its owner can close.
//!
//! The word of a gate holds whether the gate is open, how many threads are inside, and the process
//! that these threads belong to. The invariants:
//!
//! - A thread that a closed gate refuses does not write to the gate. So the owner may reopen the
//!   gate by a plain store, even while other threads try to enter.
//! - After [`Gate::close`] no thread is inside, and none enters before [`Gate::open`]. Everything
//!   that threads did inside happens before the return from `close`.
//! - Threads that were inside when the process forked do not exist in the child. The first thread
//!   that enters there counts from zero, and `close` does not wait for the parent's threads.
//!
//! Entering and leaving are atomic operations only, so a signal handler may do both, even one that
//! interrupts the close.

use crate::sync::{AtomicU32, sleep, yield_now};
use blacklight_sys::per_process;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::time::Duration;

const OPEN: u32 = 1 << 31;
/// How many threads are inside.
const INSIDE: u32 = (1 << 20) - 1;
/// The process that these threads belong to.
const PROCESS: u32 = !OPEN & !INSIDE;

/// See the module.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Gate(AtomicU32);

#[cfg(all(test, loom))]
impl Gate {
    /// The gate in the child of a process that forked while one of its threads was inside.
    pub(crate) fn inherited() -> Gate {
        let parent = process().wrapping_sub(INSIDE + 1) & PROCESS;
        Gate(AtomicU32::new(OPEN | parent | 1))
    }
}

/// This process, in the bits of `PROCESS`. Only the low bits of the generation fit, which is enough
/// to distinguish a process from its ancestors.
#[inline]
fn process() -> u32 {
    ((per_process::generation() as u32) << INSIDE.count_ones()) & PROCESS
}

impl Gate {
    /// Opens a closed gate, or initializes memory as an open one.
    pub fn open(&self) {
        self.0.store(OPEN | process(), Release);
    }

    /// Enters if the gate is open. A thread that has entered must [leave](Gate::leave).
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

    /// Leaves after [`Gate::enter`] has returned true.
    #[inline]
    pub fn leave(&self) {
        self.0.fetch_sub(1, Release);
    }

    /// Closes the gate and waits until this process's threads have left.
    pub fn close(&self) {
        self.0.fetch_and(!OPEN, AcqRel);
        let mut waits = 0;
        while self.is_occupied() {
            waits += 1;
            match waits < 100 {
                true => yield_now(),
                // A thread of lower priority inside the gate gains nothing from a yield.
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
    fn closing_waits_for_threads_inside() {
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

    /// The gate in the child of a process that forked while three of its threads were inside.
    #[test]
    fn closing_does_not_wait_for_threads_of_another_process() {
        let parent = process().wrapping_sub(INSIDE + 1) & PROCESS;
        let gate = Gate(AtomicU32::new(OPEN | parent | 3));
        gate.close();
        let gate = Gate(AtomicU32::new(OPEN | parent | 3));
        assert!(gate.enter());
        gate.leave();
        gate.close();
        assert_eq!(gate.0.load(Relaxed) & INSIDE, 0);
    }
}
