//! One run of the loop: the phases, their order, and when to stop.
//!
//! [`Engine::next`] is a state machine. Each phase is a state, entered once and left when
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
//!   │   poll time-out, poll ── again, a bounded number of times, while the buffer is full
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
//! panics. So a [`Run`] has nothing that could be lost: whatever has been fetched from the kernel
//! or taken out of a queue is the engine's, or its driver's, until it is handed out, to whichever run asks. A loop
//! that [holds](Engine::has_undelivered) such things does not sleep.

use crate::driver::{Owner, Pending, Source};
use crate::engine::Engine;
use crate::event::Event;
use crate::handle::Kind;
use crate::probe::{Boundary, Phase};
use crate::progress::InHand;
use crate::slab::NIL;
use blacklight_sys::Timeout;

/// How long to run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Until nothing is alive or somebody stops the loop.
    Default,
    /// One turn, which waits for events if there is nothing to do.
    Once,
    /// One turn, which does not wait.
    NoWait,
}

/// The states of a run. Those from `Pending` to `Timers` follow each other in every turn;
/// polling itself happens on the way from `Prepare` to `Io`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
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
    Done,
}

/// How often a full buffer of events makes the loop poll again in the same turn.
const MAX_POLLS: u32 = 48;

/// How many rounds of pending callbacks may follow one poll.
const MAX_PENDING_ROUNDS: u32 = 8;

/// A run in progress. It borrows nothing; give it to [`Engine::next`] until that is over.
#[derive(Debug)]
pub struct Run {
    mode: Mode,
    state: State,
    /// The source that a phase of sources is at.
    source: Source,
    alive: bool,
    may_sleep: bool,
    /// Pending callbacks left in this round.
    round: usize,
    /// Rounds that may follow.
    rounds_left: u32,
    polls: u32,
    /// Whether a callback has begun of which the [probe](crate::Probe) has not been told the end.
    pub(crate) in_callback: bool,
}

impl Run {
    /// A run that has not begun yet.
    pub fn new(mode: Mode) -> Run {
        Run {
            mode,
            state: State::Enter,
            source: Source::FIRST,
            alive: false,
            may_sleep: false,
            round: 0,
            rounds_left: 0,
            polls: 0,
            in_callback: false,
        }
    }

    pub(crate) fn mode(&self) -> Mode {
        self.mode
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.state != State::Enter
    }

    /// The phase that has handed out the last event; `None` before the first and when the run is over.
    pub fn phase(&self) -> Option<Phase> {
        match self.state {
            State::TimersFirst | State::Timers => Some(Phase::Timers),
            State::Pending | State::PendingAgain => Some(Phase::Pending),
            State::Idle => Some(Phase::Idle),
            State::Prepare => Some(Phase::Prepare),
            State::Io | State::Sources => Some(Phase::Poll),
            State::Check => Some(Phase::Check),
            State::Closing => Some(Phase::Closing),
            State::Enter | State::Turn | State::Done => None,
        }
    }

    /// The turn that the last event was handed out in, if so many have polled: a turn is counted as
    /// it polls.
    pub(crate) fn turn(&self, polled: u64) -> u64 {
        let is_before_poll = matches!(self.state, State::Pending | State::Idle | State::Prepare);
        polled + u64::from(is_before_poll)
    }

    /// Allows for so many rounds of pending callbacks.
    fn begin_rounds(&mut self, rounds: u32) {
        self.round = 0;
        self.rounds_left = rounds;
    }

    /// After the run is over: whether something in the loop is still alive.
    pub fn alive(&self) -> bool {
        self.alive
    }
}

impl Engine {
    /// The next thing to call, or `None` when the run is over. No reference into the
    /// engine is kept, so the callback may do with it what it likes.
    #[inline]
    pub fn next(&mut self, run: &mut Run) -> Option<Event> {
        match self.driver.probe {
            None => self.step(run),
            Some(_) => self.next_observed(run),
        }
    }

    /// Goes on with the run up to the next thing to call.
    #[inline]
    pub(crate) fn step(&mut self, run: &mut Run) -> Option<Event> {
        while run.state != State::Done {
            let event = match run.state {
                State::TimersFirst | State::Timers => self.fire_timer().map(Event::Timer),
                State::Pending | State::PendingAgain => self.next_pending(run),
                State::Idle => self.idle.next(&self.handles).map(Event::Idle),
                State::Prepare => self.prepare.next(&self.handles).map(Event::Prepare),
                State::Io => self.next_io(run),
                State::Sources => self.next_of(run.source),
                State::Check => self.check.next(&self.handles).map(Event::Check),
                State::Closing => self.finish_next_close(),
                State::Enter | State::Turn | State::Done => None,
            };
            if event.is_some() {
                return event;
            }
            run.state = self.following(run);
        }
        None
    }

    /// What comes after a phase that has nothing more to hand out, opened. Phases in which
    /// there is nothing to do are passed over.
    fn following(&mut self, run: &mut Run) -> State {
        match run.state {
            State::Enter => self.enter(run),
            State::TimersFirst | State::Turn => self.turn(run),
            State::Pending => self.open_idle(run),
            State::Idle => self.open_prepare(run),
            State::Prepare => self.open_io(run),
            State::Io => self.open_sources(run),
            State::Sources => self.open_next_source(run, run.source.following()),
            State::PendingAgain => self.open_check(run),
            State::Check => self.open_closing(run),
            State::Closing => self.open_timers(run),
            State::Timers => self.end_turn(run),
            State::Done => State::Done,
        }
    }

    fn open_idle(&mut self, run: &mut Run) -> State {
        match self.idle.begin(&self.handles) {
            true => State::Idle,
            false => self.open_prepare(run),
        }
    }

    #[inline]
    fn open_prepare(&mut self, run: &mut Run) -> State {
        match self.prepare.begin(&self.handles) {
            true => State::Prepare,
            false => self.open_io(run),
        }
    }

    #[inline(never)]
    fn open_io(&mut self, run: &mut Run) -> State {
        self.poll_phase(run);
        match self.driver.has_batch() || !self.in_hand.is_nothing() {
            true => State::Io,
            false => self.open_sources(run),
        }
    }

    /// What has come to the sources follows the descriptors.
    fn open_sources(&mut self, run: &mut Run) -> State {
        match self.driver.sources.have_news() || self.driver.has_pending() {
            true => self.open_next_source(run, Some(Source::FIRST)),
            false => self.open_check(run),
        }
    }

    /// The first source, of those from `source` on, that has something to hand out. Pending callbacks
    /// follow the last one.
    fn open_next_source(&mut self, run: &mut Run, source: Option<Source>) -> State {
        if let Some(source) = source.and_then(|source| self.driver.collect_from(source)) {
            run.source = source;
            return State::Sources;
        }
        run.begin_rounds(MAX_PENDING_ROUNDS);
        State::PendingAgain
    }

    #[inline]
    fn open_check(&mut self, run: &mut Run) -> State {
        match self.check.begin(&self.handles) {
            true => State::Check,
            false => self.open_closing(run),
        }
    }

    fn open_closing(&mut self, run: &mut Run) -> State {
        self.begin_closing();
        match self.closing_now {
            NIL => self.open_timers(run),
            _ => State::Closing,
        }
    }

    #[inline(never)]
    fn open_timers(&mut self, run: &mut Run) -> State {
        self.update_time();
        match self.collect_due_timers() {
            true => State::Timers,
            false => self.end_turn(run),
        }
    }

    fn end_turn(&mut self, run: &mut Run) -> State {
        run.alive = self.is_alive();
        match run.mode {
            Mode::Default => State::Turn,
            Mode::Once | Mode::NoWait => self.finish(),
        }
    }

    fn enter(&mut self, run: &mut Run) -> State {
        self.driver.begin_run(run.mode != Mode::NoWait);
        run.alive = self.is_alive();
        if !run.alive {
            self.update_time();
        } else if run.mode == Mode::Default && !self.stop_requested {
            // These timers run on behalf of a loop that was alive when the run began, and
            // it takes its turn even if they leave nothing alive.
            self.update_time();
            self.collect_due_timers();
            return State::TimersFirst;
        }
        State::Turn
    }

    fn finish(&mut self) -> State {
        self.stop_requested = false;
        self.driver.end_run();
        State::Done
    }

    /// Says that a run will not be gone on with, as when a callback has panicked. A program that waits for
    /// our [descriptor](Engine::backend_fd) hears of what is sent from now on, and of what the run
    /// had taken and not handed out yet.
    #[cold]
    pub fn give_up_run(&mut self) {
        self.driver.cross(Boundary::RunEnds);
        self.driver.end_run();
        if self.backend_timeout() == Some(0) {
            self.driver.wake();
        }
    }

    /// Decides whether to take a turn and opens it.
    fn turn(&mut self, run: &mut Run) -> State {
        if !run.alive || self.stop_requested {
            return self.finish();
        }
        run.may_sleep = !self.driver.has_pending() && self.idle.is_empty(&self.handles);
        match self.driver.pending_len() == 0 && self.in_hand.is_nothing() {
            true => self.open_idle(run),
            false => {
                run.begin_rounds(1);
                State::Pending
            }
        }
    }

    /// The next of the pending callbacks that were queued when the round began, or when the next
    /// one does.
    #[inline(never)]
    fn next_pending(&mut self, run: &mut Run) -> Option<Event> {
        let mut event = self.go_on();
        while event.is_none() {
            if run.round == 0 {
                run.rounds_left = run.rounds_left.checked_sub(1)?;
                run.round = self.driver.pending_len();
            }
            run.round = run.round.checked_sub(1)?;
            let (watcher, owner, why) = self.driver.next_pending()?;
            match owner {
                Owner::Poll(index) => {
                    if let Pending::Refused(error) = why {
                        event = Some(self.poll_event(watcher, index, Err(error)));
                    }
                }
                Owner::Process(process) => {
                    if let Pending::Refused(error) = why {
                        self.process_ready(process, Err(error));
                    }
                }
                Owner::FileWatcher => {
                    if let Pending::Refused(error) = why {
                        self.file_watcher_refused(error);
                    }
                    self.in_hand = InHand::FileEvents;
                    event = self.go_on();
                }
                Owner::Stream(stream) => {
                    self.in_hand = InHand::Stream(self.stream_pending(stream, why));
                    event = self.go_on();
                }
                Owner::Udp(udp) => {
                    self.in_hand = InHand::Udp(self.udp_pending(udp, why));
                    event = self.go_on();
                }
            }
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

    fn poll_phase(&mut self, run: &mut Run) {
        let sleeps = match run.mode {
            Mode::Default => true,
            Mode::Once => run.may_sleep,
            Mode::NoWait => false,
        };
        let mut timeout = if sleeps { self.poll_timeout() } else { Some(0) };
        if timeout != Some(0) && self.has_undelivered() {
            timeout = Some(0);
        }
        self.driver.count_turn();
        run.polls = 1;
        self.driver.wait(timeout);
    }

    /// Whether a run that was given up, or that waits for this one to end, has taken something that it has
    /// not handed out. What the driver has fetched is the [driver's](crate::driver::Driver::has_news) to know.
    #[inline]
    pub(crate) fn has_undelivered(&self) -> bool {
        !self.in_hand.is_nothing() || self.has_ready_timers() || self.check.is_under_way()
    }

    /// The next event of the batch. A full batch is followed by another.
    ///
    /// It is a call, so that what it needs is not made ready for each timer.
    #[inline(never)]
    fn next_io(&mut self, run: &mut Run) -> Option<Event> {
        let mut event = self.go_on();
        while event.is_none() {
            let Some((watcher, owner, ready)) = self.driver.next_ready() else {
                if !self.driver.is_batch_full() || run.polls == MAX_POLLS {
                    self.driver.end_batch();
                    return None;
                }
                run.polls += 1;
                self.driver.wait(Some(0));
                continue;
            };
            match owner {
                Owner::Poll(index) => event = Some(self.poll_event(watcher, index, Ok(ready))),
                Owner::Process(process) => self.process_ready(process, Ok(ready)),
                Owner::FileWatcher => {
                    self.file_watcher_ready();
                    self.in_hand = InHand::FileEvents;
                    event = self.go_on();
                }
                Owner::Stream(stream) => {
                    self.in_hand = InHand::Stream(self.stream_ready(stream, ready));
                    event = self.go_on();
                }
                Owner::Udp(udp) => {
                    self.in_hand = InHand::Udp(self.udp_ready(udp, ready));
                    event = self.go_on();
                }
            }
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
