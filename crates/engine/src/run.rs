//! One run of the loop: the phases, their order, and when to stop.
//!
//! [`Engine::next`] is a state machine. Each phase is a [`Stage`], entered once and left when
//! it has nothing more to hand out; whatever it hands out is called by the front end, after
//! which the machine goes on from where it was. Callbacks may start, stop and close
//! anything meanwhile.
//!
//! ```text
//!   default mode only: now, timers
//!   ┌─► alive? ── no ──► done
//!   │   pending callbacks
//!   │   idle
//!   │   prepare
//!   │   poll time-out, poll ── again, a bounded number of times, while the batch is full
//!   │   sources: pool, ring, asyncs, signals, exits
//!   │   pending callbacks, a bounded number of times
//!   │   check
//!   │   closing
//!   │   now, timers
//!   └── (default mode, and not stopped)
//! ```
//!
//! A single turn (`Once`) ends with timers, so that a turn which waited for one also runs
//! it: it always makes progress.
//!
//! A callback may run the loop again, and a run may be given up at any event, as when a callback
//! panics. So a [`Run`] has nothing that could be lost, but the place it has got to: whatever has
//! been fetched from the kernel or taken out of a queue is the engine's, or its driver's, until it
//! is handed out, to whichever run asks. A loop that [holds](Engine::has_undelivered) such things
//! does not sleep.

use crate::driver::{Source, Waited};
use crate::engine::Engine;
use crate::event::Event;
use crate::handle::Kind;
use crate::probe::{Boundary, Phase};
use crate::progress::Occasion;
use crate::slab::NIL;
use blacklight_sys::Timeout;
use std::sync::atomic::Ordering::Relaxed;

/// How long to run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Mode {
    /// Until nothing is alive or the loop is [stopped](Engine::stop).
    Default,
    /// One turn, which waits for events if there is nothing to do.
    Once,
    /// One turn, which does not wait.
    NoWait,
}

/// The stages of a run. Those from `Pending` to `Timers` follow each other in every turn;
/// polling itself happens on the way from `Prepare` to `Io`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Enter,
    TimersFirst,
    Turn,
    Pending,
    Idle,
    Prepare,
    Io,
    Sources,
    PendingAgain,
    Check,
    Closing,
    Timers,
    /// As `Io`, where a reader has had the loop recorded since this step of the run began.
    FirstRecorded,
    /// The run is over, and nothing is alive.
    Done,
    /// The run is over, and something is alive.
    DoneAlive,
}

/// How often a full batch of events makes the loop poll again in the same turn.
const MAX_POLLS: u32 = 48;

/// How many rounds of pending callbacks may follow one poll.
const MAX_PENDING_ROUNDS: u32 = 8;

/// A run in progress. It borrows nothing; give it to [`Engine::next`] until that is over.
///
/// Its phase is its own, since a run that begins within another goes through all phases while the
/// other stays where it is.
#[derive(Debug)]
pub struct Run {
    mode: Mode,
    stage: Stage,
    /// The source that the stage `Sources` is at.
    source: Source,
    /// How many polls, or rounds of pending callbacks, may still follow in this stage.
    left: u32,
    /// Whether this turn began with nothing to do but to wait.
    may_sleep: bool,
    /// Whether a callback has begun of which the [probe](crate::Probe) has not been told the end.
    pub(crate) in_callback: bool,
}

impl Run {
    /// A run that has not begun yet.
    pub fn new(mode: Mode) -> Run {
        Run {
            mode,
            stage: Stage::Enter,
            source: Source::FIRST,
            left: 0,
            may_sleep: false,
            in_callback: false,
        }
    }

    pub(crate) fn mode(&self) -> Mode {
        self.mode
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.stage != Stage::Enter
    }

    /// The phase that has handed out the last event; `None` before the first and when the run is over.
    pub fn phase(&self) -> Option<Phase> {
        match self.stage {
            Stage::TimersFirst | Stage::Timers => Some(Phase::Timers),
            Stage::Pending | Stage::PendingAgain => Some(Phase::Pending),
            Stage::Idle => Some(Phase::Idle),
            Stage::Prepare => Some(Phase::Prepare),
            Stage::Io | Stage::Sources | Stage::FirstRecorded => Some(Phase::Poll),
            Stage::Check => Some(Phase::Check),
            Stage::Closing => Some(Phase::Closing),
            Stage::Enter | Stage::Turn | Stage::Done | Stage::DoneAlive => None,
        }
    }

    /// The turn that the last event was handed out in, if so many have polled: a turn is counted as
    /// it polls.
    pub(crate) fn turn(&self, polled: u64) -> u64 {
        let is_before_poll = matches!(self.stage, Stage::Pending | Stage::Idle | Stage::Prepare);
        polled + u64::from(is_before_poll)
    }

    /// Whether the poll of this turn may sleep, as far as the run is concerned.
    #[inline]
    pub(crate) fn may_poll_sleep(&self) -> bool {
        match self.mode {
            Mode::Default => true,
            Mode::Once => self.may_sleep,
            Mode::NoWait => false,
        }
    }

    /// After the run is over: whether something in the loop is still alive.
    pub fn alive(&self) -> bool {
        self.stage == Stage::DoneAlive
    }
}

impl Engine {
    /// The next thing to call, or `None` when the run is over. No reference into the
    /// engine is kept, so the callback may do with it what it likes.
    #[inline]
    pub fn next(&mut self, run: &mut Run) -> Option<Event> {
        match self.driver.observed {
            None => self.step(run),
            Some(_) => self.next_observed(run),
        }
    }

    /// Goes on with the run up to the next thing to call.
    #[inline]
    pub(crate) fn step(&mut self, run: &mut Run) -> Option<Event> {
        loop {
            let event = match run.stage {
                Stage::TimersFirst | Stage::Timers => self.fire_timer().map(Event::Timer),
                Stage::Pending | Stage::PendingAgain => self.next_pending(run),
                Stage::Idle => self.idle.next(&self.handles).map(Event::Idle),
                Stage::Prepare => self.prepare.next(&self.handles).map(Event::Prepare),
                Stage::Io => self.next_io(run),
                Stage::Sources => self.next_of(run.source),
                Stage::Check => self.check.next(&self.handles).map(Event::Check),
                Stage::Closing => self.finish_next_close(),
                Stage::Turn => {
                    run.stage = self.turn(run);
                    continue;
                }
                Stage::Enter => None,
                Stage::FirstRecorded => {
                    run.stage = Stage::Io;
                    return self.next_observed(run);
                }
                Stage::Done | Stage::DoneAlive => return None,
            };
            if event.is_some() {
                return event;
            }
            run.stage = self.following(run);
        }
    }

    /// Opens the phase after one that has nothing more to hand out. Phases in which
    /// there is nothing to do are passed over.
    fn following(&mut self, run: &mut Run) -> Stage {
        match run.stage {
            Stage::Enter => self.enter(run),
            Stage::TimersFirst | Stage::Turn => self.turn(run),
            Stage::Pending => self.open_idle(run),
            Stage::Idle => self.open_prepare(run),
            Stage::Prepare => self.open_io(run),
            Stage::Io => self.open_sources(run),
            Stage::Sources => self.open_next_source(run, run.source.following()),
            Stage::PendingAgain => self.open_check(run),
            Stage::Check => self.open_closing(run),
            Stage::Closing => self.open_timers(run),
            Stage::Timers => self.end_turn(run),
            Stage::FirstRecorded | Stage::Done | Stage::DoneAlive => run.stage,
        }
    }

    fn open_idle(&mut self, run: &mut Run) -> Stage {
        match self.idle.begin(&self.handles) {
            true => Stage::Idle,
            false => self.open_prepare(run),
        }
    }

    #[inline]
    fn open_prepare(&mut self, run: &mut Run) -> Stage {
        match self.prepare.begin(&self.handles) {
            true => Stage::Prepare,
            false => self.open_io(run),
        }
    }

    #[inline(never)]
    fn open_io(&mut self, run: &mut Run) -> Stage {
        self.driver.begin_poll();
        run.left = MAX_POLLS - 1;
        if self.driver.wanted.load(Relaxed) != 0 {
            return self.open_io_for_readers(run, false);
        }
        match self.poll(run) {
            Waited::Done => self.open_polled(run),
            Waited::IsAsked => self.open_io_for_readers(run, true),
        }
    }

    #[inline]
    fn open_polled(&mut self, run: &mut Run) -> Stage {
        match self.driver.has_batch() || !self.in_hand.is_nothing() {
            true => Stage::Io,
            false => self.open_sources(run),
        }
    }

    /// As [`Engine::open_io`], for a loop that is recorded or is to be. A loop that a reader wakes
    /// does what it is asked for, and sleeps on.
    #[cold]
    #[inline(never)]
    fn open_io_for_readers(&mut self, run: &mut Run, mut has_polled: bool) -> Stage {
        let was_observed = self.driver.observed.is_some();
        loop {
            self.record_turn(run, has_polled);
            if self.poll(run) == Waited::Done {
                break;
            }
            has_polled = true;
        }
        match was_observed || self.driver.observed.is_none() {
            true => self.open_polled(run),
            false => Stage::FirstRecorded,
        }
    }

    /// The events of sources follow those of descriptors.
    fn open_sources(&mut self, run: &mut Run) -> Stage {
        match self.driver.sources.have_news() || self.driver.has_pending() {
            true => self.open_next_source(run, Some(Source::FIRST)),
            false => self.open_check(run),
        }
    }

    /// The first source, of those from `source` on, that has something to hand out. Pending callbacks
    /// follow the last one.
    fn open_next_source(&mut self, run: &mut Run, source: Option<Source>) -> Stage {
        if let Some(source) = source.and_then(|source| self.driver.collect_from(source)) {
            run.source = source;
            return Stage::Sources;
        }
        run.left = MAX_PENDING_ROUNDS;
        Stage::PendingAgain
    }

    #[inline]
    fn open_check(&mut self, run: &mut Run) -> Stage {
        match self.check.begin(&self.handles) {
            true => Stage::Check,
            false => self.open_closing(run),
        }
    }

    fn open_closing(&mut self, run: &mut Run) -> Stage {
        self.begin_closing();
        match self.closing_now {
            NIL => self.open_timers(run),
            _ => Stage::Closing,
        }
    }

    #[inline(never)]
    fn open_timers(&mut self, run: &mut Run) -> Stage {
        self.update_time();
        match self.collect_due_timers() {
            true => Stage::Timers,
            false => self.end_turn(run),
        }
    }

    fn end_turn(&mut self, run: &mut Run) -> Stage {
        if run.mode == Mode::Default && self.is_alive() {
            return Stage::Turn;
        }
        self.finish();
        match self.is_alive() {
            true => Stage::DoneAlive,
            false => Stage::Done,
        }
    }

    fn enter(&mut self, run: &mut Run) -> Stage {
        self.driver.begin_run(run.mode != Mode::NoWait);
        if !self.is_alive() {
            self.update_time();
            self.finish();
            return Stage::Done;
        }
        if run.mode == Mode::Default && !self.stop_requested {
            // These timers run on behalf of a loop that was alive when the run began, and
            // it takes its turn even if they leave nothing alive.
            self.update_time();
            self.collect_due_timers();
            return Stage::TimersFirst;
        }
        Stage::Turn
    }

    fn finish(&mut self) {
        self.stop_requested = false;
        self.driver.end_run();
    }

    /// Ends a run in the middle, as when a callback has panicked. From now on senders make our
    /// [descriptor](Engine::backend_fd) readable for a program that waits for it; and if the run
    /// has left events that it had not handed out yet, the descriptor is readable at once.
    #[cold]
    pub fn give_up_run(&mut self) {
        self.driver.cross(Boundary::RunEnds);
        self.driver.end_run();
        if self.backend_timeout() == Some(0) {
            self.driver.wake();
        }
    }

    /// Decides whether to take a turn and opens it.
    fn turn(&mut self, run: &mut Run) -> Stage {
        if self.stop_requested {
            self.finish();
            return Stage::DoneAlive;
        }
        let has_pending = self.driver.has_pending();
        run.may_sleep = !has_pending && self.idle.is_empty(&self.handles);
        match has_pending || !self.in_hand.is_nothing() {
            true => {
                run.left = 1;
                Stage::Pending
            }
            false => self.open_idle(run),
        }
    }

    /// The next of the pending callbacks that were queued when the round began. When all of these
    /// have been called, the next round begins.
    #[inline(never)]
    fn next_pending(&mut self, run: &mut Run) -> Option<Event> {
        let mut event = self.go_on();
        while event.is_none() {
            let Some((watcher, owner, why)) = self.driver.next_pending() else {
                run.left = run.left.checked_sub(1)?;
                if !self.driver.begin_pending() {
                    return None;
                }
                continue;
            };
            event = self.begin_turn(watcher, owner, Occasion::Pending(why));
        }
        event
    }

    /// How long the loop may sleep now: not at all when it is stopping, when nothing is
    /// active, or when something else is to be done; else until the next timer.
    #[inline]
    pub(crate) fn poll_timeout(&mut self) -> Timeout {
        let nothing_to_wait_for = self.stop_requested
            || !self.has_active()
            || self.driver.has_pending()
            || !self.idle.is_empty(&self.handles)
            || self.has_closing();
        if nothing_to_wait_for {
            return Some(0);
        }
        self.next_timer_in()
    }

    /// Waits for events for as long as the run may.
    #[inline(always)]
    fn poll(&mut self, run: &Run) -> Waited {
        let mut timeout = match run.may_poll_sleep() {
            true => self.poll_timeout(),
            false => Some(0),
        };
        if timeout != Some(0) && self.has_undelivered() {
            timeout = Some(0);
        }
        self.driver.wait(timeout)
    }

    /// Whether a run that was given up, or that waits for this one to end, has taken something that it has
    /// not handed out. What the driver has fetched is the [driver's](crate::driver::Driver::has_news) to know.
    #[inline]
    pub(crate) fn has_undelivered(&self) -> bool {
        !self.in_hand.is_nothing() || self.has_ready_timers() || self.check.is_under_way()
    }

    /// The next event of the batch. A full batch is followed by another.
    ///
    /// It is not inlined, so that a timer does not pay for the registers that it saves.
    #[inline(never)]
    fn next_io(&mut self, run: &mut Run) -> Option<Event> {
        let mut event = self.go_on();
        while event.is_none() {
            let Some((watcher, owner, ready)) = self.driver.next_ready() else {
                if !self.driver.is_batch_full() || run.left == 0 {
                    self.driver.end_batch();
                    return None;
                }
                run.left -= 1;
                self.driver.wait(Some(0));
                continue;
            };
            event = self.begin_turn(watcher, owner, Occasion::Ready(ready));
        }
        event
    }

    fn begin_closing(&mut self) {
        if self.closing_now == NIL {
            self.closing_now = std::mem::replace(&mut self.handles.closing, NIL);
        }
    }

    /// Forgets the next closed handle, before its owner hears of it: the callback may
    /// free or use again whatever the token stands for.
    #[inline]
    fn finish_next_close(&mut self) -> Option<Event> {
        let closing = self.closing_now;
        if closing == NIL {
            return None;
        }
        // Requests hear of their end first.
        let request = match self.handles[closing].kind {
            Kind::Stream(stream) => self.cancel_next_request(stream),
            Kind::Udp(udp) => self.cancel_next_send(udp),
            _ => None,
        };
        if request.is_some() {
            return request;
        }
        let (token, rest) = self.handles.finish_close(closing);
        self.closing_now = rest;
        Some(Event::Closed(token))
    }
}
