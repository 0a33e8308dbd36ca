//! The loop itself: what it owns, and what one can ask of it between callbacks.

use crate::driver::Driver;
use crate::fs_event::FsEvents;
use crate::handle::Handles;
use crate::loop_watcher::PhaseList;
use crate::metrics::{IdleTime, Metrics};
use crate::patience::Spinning;
use crate::poller::{Mechanism, Sim};
use crate::progress::InHand;
use crate::request::Requests;
use crate::slab::{NIL, Slab};
use crate::stream::Streams;
use crate::timer_queue::TimerQueue;
use crate::tty::Terminal;
use crate::udp::Udps;
use blacklight_sys::fallible::Arc;
use blacklight_sys::{Errno, RawFd, Timeout};

/// An event loop that calls nobody back.
///
/// Front ends make handles with the `*_init` methods, giving a [`Token`] and getting a
/// [`Key`], and run the loop by asking for the [next](Engine::next) thing to call:
///
/// ```
/// use blacklight_engine::{Engine, Event, Mode, Run, Token};
///
/// let mut engine = Engine::new(None)?;
/// let timer = engine.timer_init(Token(7))?;
/// engine.timer_start(timer, 1, 0)?;
///
/// let mut run = Run::new(Mode::Default);
/// let mut calls = Vec::new();
/// while let Some(event) = engine.next(&mut run) {
///     calls.push(event); // the engine is free to be used here
///     if event == Event::Timer(Token(7)) {
///         engine.close(timer)?;
///     }
/// }
/// assert_eq!(calls, [Event::Timer(Token(7)), Event::Closed(Token(7))]);
/// # Ok::<(), blacklight_engine::Errno>(())
/// ```
///
/// [`Token`]: crate::Token
/// [`Key`]: crate::Key
#[derive(Debug)]
pub struct Engine {
    pub(crate) handles: Handles,
    pub(crate) timers: TimerQueue,
    /// The anchor of the timers that the timers phase in progress has still to run, first due
    /// first.
    pub(crate) ready: u32,
    pub(crate) idle: PhaseList,
    pub(crate) prepare: PhaseList,
    pub(crate) check: PhaseList,
    /// What is left of the closing phase in progress.
    pub(crate) closing_now: u32,
    /// What a poll or pending phase is dealing with.
    pub(crate) in_hand: InHand,
    pub(crate) streams: Streams,
    pub(crate) fs_events: FsEvents,
    /// What terminal handles have beyond streams.
    pub(crate) terminals: Slab<Terminal>,
    pub(crate) udps: Udps,
    pub(crate) stop_requested: bool,
    pub(crate) requests: Requests,
    /// What waits for the kernel and for other threads.
    pub(crate) driver: Driver,
}

impl Engine {
    /// Makes a loop on the given mechanism, or on the best there is.
    pub fn new(mechanism: Option<Mechanism>) -> Result<Engine, Errno> {
        let driver = Driver::new(mechanism)?;
        let mut handles = Handles::new();
        Ok(Engine {
            timers: TimerQueue::new(&mut handles)?,
            ready: handles.anchor()?,
            idle: PhaseList::new(&mut handles)?,
            prepare: PhaseList::new(&mut handles)?,
            check: PhaseList::new(&mut handles)?,
            handles,
            closing_now: NIL,
            in_hand: InHand::Nothing,
            streams: Streams::new(),
            terminals: Slab::new(),
            fs_events: FsEvents::new(),
            udps: Udps::new(),
            stop_requested: false,
            requests: Requests::default(),
            driver,
        })
    }

    /// The mechanism in use.
    pub fn mechanism(&self) -> Mechanism {
        self.driver.mechanism()
    }

    /// The simulated poller, to be told what happens, if that is what the loop runs on.
    pub fn sim(&mut self) -> Option<&mut Sim> {
        self.driver.sim()
    }

    /// Whether something keeps the loop alive: an active and referenced handle, a request,
    /// a handle whose closing is to be finished, or a referenced timer that is due and has not
    /// been handed out.
    pub fn is_alive(&self) -> bool {
        self.has_active() || self.has_closing() || self.has_referenced_ready_timers()
    }

    pub(crate) fn has_active(&self) -> bool {
        self.handles.active != 0 || !self.requests.is_empty()
    }

    /// Whether handles wait for the closing phase, or for their turn in it.
    pub fn has_closing(&self) -> bool {
        self.handles.closing != NIL || self.closing_now != NIL
    }

    /// Whether no handle and no request is left, so that the loop can be dropped without
    /// losing anything.
    pub fn is_unused(&self) -> bool {
        self.handles.is_empty() && self.requests.is_empty()
    }

    /// How many handles are active and referenced.
    #[inline]
    pub fn active_handles(&self) -> u32 {
        self.handles.active
    }

    /// Sets that number, for a front end whose users change it behind the engine's back.
    #[inline]
    pub fn set_active_handles(&mut self, count: u32) {
        self.handles.active = count;
    }

    /// How many requests are in progress.
    #[inline]
    pub fn active_requests(&self) -> u32 {
        self.requests.count()
    }

    /// Ends the run in progress, or the next one, before its next turn.
    pub fn stop(&mut self) {
        self.stop_requested = true;
    }

    /// The cached time in milliseconds.
    #[inline]
    pub fn now(&self) -> u64 {
        self.now_ns() / 1_000_000
    }

    /// The cached time in nanoseconds.
    #[inline]
    pub fn now_ns(&self) -> u64 {
        self.driver.now_ns()
    }

    /// The time in nanoseconds as it is now, on the scale of the cached one.
    #[inline]
    pub fn clock_ns(&self) -> u64 {
        self.driver.clock_ns()
    }

    /// Caches the time anew.
    #[inline]
    pub fn update_time(&mut self) {
        self.driver.update_time();
    }

    /// A descriptor that becomes readable when a run would find something to do, for
    /// loops that embed this one; `None` where the mechanism has none.
    pub fn backend_fd(&self) -> Option<RawFd> {
        self.driver.backend_fd()
    }

    /// Prepares for an embedding program to wait for our [descriptor](Engine::backend_fd), and perhaps to
    /// take events from it as we do: from now on the kernel repeats each event for as long as it holds.
    pub fn embed(&mut self) {
        self.driver.embed();
    }

    /// Whether an embedding program may wait for our descriptor.
    pub fn is_embedded(&self) -> bool {
        self.driver.is_embedded()
    }

    /// How long a poll would sleep now, in nanoseconds. Not at all as long as our descriptor does
    /// not know what to wait for.
    ///
    /// The caller is about to wait, also if a run was given up without
    /// [saying so](Engine::give_up_run), as by `longjmp`.
    pub fn backend_timeout(&mut self) -> Timeout {
        self.driver.ensure_run_ended();
        match self.has_undelivered() || self.driver.must_run() {
            true => Some(0),
            false => self.poll_timeout(),
        }
    }

    /// Holds back the profiling signal while the loop waits for events.
    pub fn block_sigprof(&mut self) {
        self.driver.block_sigprof();
    }

    /// Says whether the loop may spin before it sleeps, and the pool's workers when they have
    /// done a request of this loop. What was learnt about spinning so far is forgotten.
    pub fn set_spinning(&mut self, spinning: Spinning) {
        self.driver.set_spinning(spinning);
    }

    /// Starts measuring the time that the loop spends waiting.
    pub fn measure_idle_time(&mut self) {
        self.driver.measure_idle_time();
    }

    /// The time spent waiting, to be read from any thread.
    pub fn idle_time(&self) -> &Arc<IdleTime> {
        self.driver.idle_time()
    }

    /// The counters so far.
    pub fn metrics(&self) -> Metrics {
        self.driver.metrics()
    }

    /// Makes the loop usable in a child process after `fork`: nothing in the kernel is
    /// shared with the parent any more, and what was started stays started. Sends that the
    /// parent's loop had not delivered yet are the parent's, and so are its requests to the
    /// thread pool and those on its ring.
    pub fn fork(&mut self) -> Result<(), Errno> {
        let receiver = &mut self.driver.sources.receiver;
        let requests = receiver.requests;
        receiver.fork()?;
        self.requests.end_all(requests - receiver.requests);
        self.fork_ring()?;
        self.driver.sources.signals.fork();
        // The poller is the loop's life; a file that cannot be watched any more is not.
        let watched = self.fork_fs_events();
        self.driver.renew_poller()?;
        self.disown_children();
        watched
    }
}
