//! The loop itself: the parts that it owns, and the methods that concern no handle.

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

/// An event loop without callbacks.
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
    /// The anchor of the ready timers, which the timers phase in progress has still to run, in the
    /// order of their due times.
    pub(crate) ready: u32,
    /// When the timer that was delivered last was due.
    pub(crate) fired_due_ns: u64,
    pub(crate) idle: PhaseList,
    pub(crate) prepare: PhaseList,
    pub(crate) check: PhaseList,
    /// The first handle that the closing phase in progress has still to finish.
    pub(crate) closing_now: u32,
    /// The handle or source that the poll or pending phase in progress is delivering from.
    pub(crate) in_hand: InHand,
    pub(crate) streams: Streams,
    pub(crate) fs_events: FsEvents,
    /// The state of terminal handles beyond that of streams.
    pub(crate) terminals: Slab<Terminal>,
    pub(crate) udps: Udps,
    pub(crate) stop_requested: bool,
    pub(crate) requests: Requests,
    /// Waits for the kernel and for other threads.
    pub(crate) driver: Driver,
}

impl Engine {
    /// Makes a loop on the given mechanism, or on the best available.
    pub fn new(mechanism: Option<Mechanism>) -> Result<Engine, Errno> {
        let driver = Driver::new(mechanism)?;
        let mut handles = Handles::new();
        Ok(Engine {
            timers: TimerQueue::new(&mut handles)?,
            ready: handles.anchor()?,
            fired_due_ns: 0,
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

    /// The simulated kernel, if the loop runs on [`Mechanism::Sim`].
    pub fn sim(&mut self) -> Option<&mut Sim> {
        self.driver.sim()
    }

    /// Whether the loop is alive: whether it has an active and referenced handle, a request, a
    /// closing handle, or a referenced timer that is ready and has not been delivered.
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

    /// Sets the number of active handles, for a front end whose users write to it.
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

    /// The current time in nanoseconds, on the same clock as the cached time.
    #[inline]
    pub fn clock_ns(&self) -> u64 {
        self.driver.clock_ns()
    }

    /// Updates the cached time.
    #[inline]
    pub fn update_time(&mut self) {
        self.driver.update_time();
    }

    /// A descriptor that becomes readable when a run would have an event, for programs that embed
    /// this loop in another; `None` where the mechanism has none.
    pub fn backend_fd(&self) -> Option<RawFd> {
        self.driver.backend_fd()
    }

    /// Prepares for an embedding program to wait for the loop's [descriptor](Engine::backend_fd), and
    /// perhaps to take events from it: from now on all registrations are level-triggered.
    pub fn embed(&mut self) {
        self.driver.embed();
    }

    /// Whether an embedding program may wait for the loop's descriptor.
    pub fn is_embedded(&self) -> bool {
        self.driver.is_embedded()
    }

    /// How long a poll would sleep now, in nanoseconds. Zero if the loop has to run first, since its
    /// descriptor would not report all events that are pending.
    ///
    /// The caller is about to wait. So a run in progress counts as ended, even if its front end did
    /// not [give it up](Engine::give_up_run), as after a `longjmp`.
    pub fn backend_timeout(&mut self) -> Timeout {
        self.driver.ensure_run_ended();
        match self.has_undelivered() || self.driver.must_run() {
            true => Some(0),
            false => self.poll_timeout(),
        }
    }

    /// Blocks SIGPROF while the loop waits for events.
    pub fn block_sigprof(&mut self) {
        self.driver.block_sigprof();
    }

    /// Sets whether the loop may spin before it sleeps, and the pool's workers after a request of
    /// this loop. Discards what the loop has learnt about spinning so far.
    pub fn set_spinning(&mut self, spinning: Spinning) {
        self.driver.set_spinning(spinning);
    }

    /// Starts measuring the time that the loop spends waiting.
    pub fn measure_idle_time(&mut self) {
        self.driver.measure_idle_time();
    }

    /// The time spent waiting, which any thread may read.
    pub fn idle_time(&self) -> &Arc<IdleTime> {
        self.driver.idle_time()
    }

    /// The counters of the loop.
    pub fn metrics(&self) -> Metrics {
        self.driver.metrics()
    }

    /// Makes the loop usable in a child process after `fork`. Afterwards the loop shares nothing in
    /// the kernel with the parent's, and started handles stay started. Pending sends, requests to
    /// the thread pool and requests on the ring stay with the parent.
    pub fn fork(&mut self) -> Result<(), Errno> {
        let receiver = &mut self.driver.sources.receiver;
        let requests = receiver.requests;
        receiver.fork()?;
        self.requests.end_all(requests - receiver.requests);
        self.fork_ring()?;
        self.driver.sources.signals.fork();
        // Without a poller the loop cannot go on; without a watched file it can. So the error of
        // the latter is returned last.
        let watched = self.fork_fs_events();
        self.driver.renew_poller()?;
        self.driver.disown_children();
        self.fork_record();
        watched
    }
}
