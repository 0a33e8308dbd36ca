//! The probe: the one place through which an observer learns what a loop does.
//!
//! A [`Probe`] hears of each [`Boundary`] that the loop's thread crosses, with the time at which it does: runs and callbacks, in
//! [`Engine::next`], and spins and sleeps, in the driver's wait. Each boundary has one time stamp. Boundaries nest as
//! calls do: what begins last ends first. A callback that runs the loop again has a whole run inside.
//!
//! The engine hands a callback out and does not see it return. It *ends* when its run asks for the next event, or
//! earlier, if the front end says so ([`Engine::end_callback`]).
//!
//! A run that is given up ends when the front end [says so](Engine::give_up_run), and its open callback with it. One that is left
//! by `longjmp` never ends, so an observer must be ready for a run to begin or end with callbacks of others still open.
//!
//! Without a probe, all of this is one branch in each call of `next`, and one for each spin and each sleep.
//!
//! A probe is called while the engine is borrowed. It must not call back, block or allocate in the steady state:
//! it is part of what it measures.

use crate::driver::Driver;
use crate::engine::Engine;
use crate::event::Event;
use crate::run::{Mode, Run};
use blacklight_sys::Timeout;
use std::fmt::Debug;

/// The phases in which callbacks run, in the order of a turn.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Phase {
    /// Due timers.
    Timers,
    /// Callbacks that were put off: results of requests that were completed at once, and errors.
    Pending,
    /// Idle handles.
    Idle,
    /// Prepare handles, right before the loop polls.
    Prepare,
    /// Ready descriptors, the thread pool, wake-ups from other threads, signals and children.
    Poll,
    /// Check handles, right after the loop has polled.
    Check,
    /// Handles that have been closed, and their requests.
    Closing,
}

impl Phase {
    /// All phases, in order.
    pub const ALL: [Phase; 7] = [
        Phase::Timers,
        Phase::Pending,
        Phase::Idle,
        Phase::Prepare,
        Phase::Poll,
        Phase::Check,
        Phase::Closing,
    ];

    /// The phase's name.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Timers => "timers",
            Phase::Pending => "pending",
            Phase::Idle => "idle",
            Phase::Prepare => "prepare",
            Phase::Poll => "poll",
            Phase::Check => "check",
            Phase::Closing => "closing",
        }
    }
}

/// What begins or ends in the loop's thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Boundary {
    /// A run begins: from here on the thread does the loop's own work.
    RunBegins(Mode),
    /// The run is over, or was given up.
    RunEnds,
    /// The event is handed out: its callback runs.
    CallbackBegins {
        /// The phase that hands it out.
        phase: Phase,
        /// The turn of the loop, from the beginning of the loop's life. Timers that a run fires before its first turn
        /// are the turn's before.
        turn: u64,
        /// What has happened, and the token of its handle or request.
        event: Event,
    },
    /// The callback has returned.
    CallbackEnds,
    /// The loop polls in a loop, in place of going to sleep.
    SpinBegins,
    /// The spin is over.
    SpinEnds {
        /// Whether something has happened.
        found: bool,
    },
    /// The loop goes to sleep.
    SleepBegins {
        /// For how long at most.
        timeout: Timeout,
    },
    /// The loop is awake.
    SleepEnds,
}

/// An observer of one loop.
pub trait Probe: Debug {
    /// The loop's thread crosses a boundary, at this time of the loop's [clock](Engine::clock_ns).
    fn cross(&mut self, at_ns: u64, boundary: Boundary);
}

impl Engine {
    /// Has an observer hear of everything that the loop does from now on, in place of the one before.
    pub fn set_probe(&mut self, probe: Option<Box<dyn Probe>>) {
        self.driver.probe = probe;
    }

    /// Says that the callback which the run has handed out last has returned. Without this it has when the
    /// run is asked for the next event.
    #[inline]
    pub fn end_callback(&mut self, run: &mut Run) {
        if std::mem::take(&mut run.in_callback) {
            self.driver.cross(Boundary::CallbackEnds);
        }
    }

    /// As [`Engine::next`], with a probe.
    #[cold]
    #[inline(never)]
    pub(crate) fn next_observed(&mut self, run: &mut Run) -> Option<Event> {
        match run.has_begun() {
            true => self.end_callback(run),
            false => self.driver.cross(Boundary::RunBegins(run.mode())),
        }
        let event = self.step(run);
        let boundary = match event.zip(run.phase()) {
            None => Boundary::RunEnds,
            Some((event, phase)) => {
                run.in_callback = true;
                let turn = run.turn(self.driver.loop_count());
                Boundary::CallbackBegins { phase, turn, event }
            }
        };
        self.driver.cross(boundary);
        event
    }
}

impl Driver {
    /// Tells the probe, if there is one.
    #[inline]
    pub(crate) fn cross(&mut self, boundary: Boundary) {
        if self.probe.is_some() {
            self.cross_observed(boundary);
        }
    }

    #[cold]
    #[inline(never)]
    fn cross_observed(&mut self, boundary: Boundary) {
        let at_ns = self.clock_ns();
        if let Some(probe) = &mut self.probe {
            probe.cross(at_ns, boundary);
        }
    }
}
