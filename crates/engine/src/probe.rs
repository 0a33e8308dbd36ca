//! The probe: the one place through which an observer learns what a loop does.
//!
//! A [`Probe`] hears of each [`Boundary`] that the loop's thread crosses, with the time at which it
//! does: runs and callbacks, in [`Engine::next`], and spins and sleeps, in the driver's wait. The
//! [recorder](crate::recorder) is told the same. Each boundary has one time stamp. Boundaries nest
//! as calls do: a callback that runs the loop again has a whole run inside.
//!
//! The engine hands a callback out and does not see it return. It *ends* when its run asks for the
//! next event, or earlier, if the front end says so ([`Engine::end_callback`]).
//!
//! A run that is given up ends when the front end [says so](Engine::give_up_run), and its open
//! callback with it. One that is left by `longjmp` never ends, so an observer must be ready for a
//! run to begin or end with callbacks of others still open.
//!
//! Without a probe, all of this is one branch in each call of `next`, and one for each spin and
//! each sleep.
//!
//! A probe is called while the engine is borrowed. It must not call back, block or allocate in the
//! steady state: it is part of what it measures.

use crate::driver::Driver;
use crate::engine::Engine;
use crate::event::Event;
use crate::recorder::Recorder;
use crate::run::{Mode, Run};
use blacklight_sys::{Timeout, fallible};
use std::fmt::Debug;

/// The phases in which callbacks run, in the order of a turn.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
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

/// The beginning or the end of something in the loop's thread.
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
        /// The turn of the loop, counted from the beginning of the loop's life. A timer that a run
        /// fires before its first turn belongs to the turn before.
        turn: u64,
        /// The event, with the token of its handle or request.
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

/// The probe and the recorder of a loop, which are told of each boundary.
#[derive(Default, Debug)]
pub(crate) struct Observed {
    probe: Option<Box<dyn Probe>>,
    pub(crate) recorder: Option<Recorder>,
    /// The time of the last boundary.
    stamp_ns: u64,
}

impl Engine {
    /// Has an observer hear of everything that the loop does from now on, in place of the one
    /// before.
    pub fn set_probe(&mut self, probe: Option<Box<dyn Probe>>) {
        if probe.is_some() || self.driver.observed.is_some() {
            let observed = self.driver.observed.get_or_insert_default();
            observed.probe = probe;
        }
    }

    /// Says that the callback which the run has handed out last has returned. Without this it has
    /// when the run is asked for the next event.
    #[inline]
    pub fn end_callback(&mut self, run: &mut Run) {
        if std::mem::take(&mut run.in_callback) && self.driver.observed.is_some() {
            self.driver.end_callback_early();
        }
    }

    /// As [`Engine::next`], with an observer. The clock is read once for two boundaries: a callback
    /// begins when the last one has ended, or later, if the loop has read the clock since then, as
    /// it does after each poll.
    #[inline(never)]
    pub(crate) fn next_observed(&mut self, run: &mut Run) -> Option<Event> {
        let mut is_own = false;
        if !run.has_begun() {
            self.driver.cross(Boundary::RunBegins(run.mode()));
        } else if std::mem::take(&mut run.in_callback) {
            is_own = self.driver.end_callback(true);
        }
        let event = self.step(run);
        match (&event, run.phase()) {
            (Some(event), Some(phase)) => {
                run.in_callback = true;
                let turn = run.turn(self.driver.loop_count());
                self.driver
                    .begin_callback(phase, turn, event, self.fired_due_ns, is_own);
            }
            _ => self.driver.cross(Boundary::RunEnds),
        }
        event
    }
}

impl Driver {
    /// The loop's observers, made if there are none yet; `None` if there is no memory for them.
    pub(crate) fn observe(&mut self) -> Option<&mut Observed> {
        if self.observed.is_none() {
            self.observed = fallible::try_box(Observed::default()).ok();
        }
        self.observed.as_deref_mut()
    }

    pub(crate) fn recorder(&mut self) -> Option<&mut Recorder> {
        self.observed.as_mut()?.recorder.as_mut()
    }

    /// The time of the last boundary, or that at which the loop has looked at the clock since then.
    pub(crate) fn stamp_ns(&self) -> u64 {
        let stamp_ns = self
            .observed
            .as_ref()
            .map_or(0, |observed| observed.stamp_ns);
        stamp_ns.max(self.now_ns())
    }

    /// Tells observers, if there are any.
    #[inline]
    pub(crate) fn cross(&mut self, boundary: Boundary) {
        if self.observed.is_some() {
            self.cross_by_clock(boundary);
        }
    }

    #[cold]
    #[inline(never)]
    fn cross_by_clock(&mut self, boundary: Boundary) {
        self.cross_at(self.clock_ns(), boundary);
    }

    /// As [`Driver::cross`], where the cached time has just been read.
    #[inline]
    pub(crate) fn cross_now(&mut self, boundary: Boundary) {
        if self.observed.is_some() {
            self.cross_at(self.now_ns(), boundary);
        }
    }

    #[cold]
    #[inline(never)]
    fn cross_at(&mut self, at_ns: u64, boundary: Boundary) {
        let Some(observed) = &mut self.observed else {
            return;
        };
        observed.stamp_ns = at_ns;
        if let Some(recorder) = &mut observed.recorder {
            recorder.cross(at_ns, boundary);
        }
        if let Some(probe) = &mut observed.probe {
            probe.cross(at_ns, boundary);
        }
    }

    /// Tells observers that a callback has ended, and whether the loop is asked for the next one
    /// right away. Returns whether the loop's record is known to be that of this process.
    #[inline(always)]
    fn end_callback(&mut self, goes_on: bool) -> bool {
        let at_ns = self.clock_ns();
        let Some(observed) = &mut self.observed else {
            return false;
        };
        observed.stamp_ns = at_ns;
        let is_own = match &mut observed.recorder {
            Some(recorder) => recorder.callback_ends(at_ns, goes_on),
            None => false,
        };
        if let Some(probe) = &mut observed.probe {
            probe.cross(at_ns, Boundary::CallbackEnds);
        }
        is_own
    }

    /// As [`Driver::end_callback`], where the loop may not be asked for another.
    #[inline(never)]
    fn end_callback_early(&mut self) {
        self.end_callback(false);
    }

    /// Tells observers that a callback begins. `is_own` says what [`Driver::end_callback`] has found
    /// since user code ran last.
    #[inline]
    fn begin_callback(
        &mut self,
        phase: Phase,
        turn: u64,
        event: &Event,
        due_ns: u64,
        is_own: bool,
    ) {
        let at_ns = self.stamp_ns();
        let Some(observed) = &mut self.observed else {
            return;
        };
        observed.stamp_ns = at_ns;
        if let Some(recorder) = &mut observed.recorder
            && (is_own || recorder.is_own())
        {
            recorder.callback_begins(at_ns, phase, turn, event, due_ns);
        }
        if let Some(probe) = &mut observed.probe {
            let event = *event;
            probe.cross(at_ns, Boundary::CallbackBegins { phase, turn, event });
        }
    }
}
