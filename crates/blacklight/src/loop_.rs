//! The loop: owns the engine, the table that maps tokens to receivers, and the tasks.
//!
//! [`LoopHandle::deliver`] is the only place that calls user code for an event. The engine and the
//! table are never borrowed while user code runs or user values are dropped.

use crate::code::{Code, Polling};
use crate::current;
use crate::error::Error;
use crate::handle::{EngineResult, Handle};
use crate::mechanism::{Mechanism, Seed};
use crate::node::{self, Node};
use crate::observe::{Dispatch, Observations, Recording};
use crate::table::{Entry, Source, Table};
use crate::task::{PASS, Tasks};
use crate::time::nanoseconds;
use crate::trace;
use blacklight_engine::{
    Called, Engine, Errno, Event, Front, Key, Metrics, Mode, Probe, Run, Spinning, Token,
    set_pool_threads,
};
use std::cell::{Cell, Ref, RefCell, RefMut};
use std::fmt;
use std::io;
use std::ops::Deref;
use std::os::fd::OwnedFd;
use std::pin::pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

type Observer = Box<dyn FnMut(Dispatch)>;

/// The state of a loop, shared by its handles and tasks.
pub(crate) struct Inner {
    engine: RefCell<Engine>,
    pub(crate) table: RefCell<Table>,
    observer: RefCell<Option<Observer>>,
    /// What the observer is told, while there is one.
    observations: RefCell<Option<Rc<Observations>>>,
    pub(crate) tasks: Tasks,
    name: Box<str>,
    is_closed: Cell<bool>,
    is_running: Cell<bool>,
    #[cfg(feature = "tracing")]
    pub(crate) spans: trace::Spans,
    /// Stopped timers for later sleeps to reuse: each its entry in the table and the engine's
    /// key.
    pub(crate) spare_timers: RefCell<Vec<(usize, Key)>>,
    /// Sleeps end at multiples of this many nanoseconds of the engine's clock; zero if each ends at
    /// its own time.
    slot_ns: u64,
    /// One moment, on Rust's clock and on the engine's.
    epoch: (Instant, u64),
    /// The buffer that callbacks' reads use; `None` before the first use and while in use.
    scratch: Cell<Option<Box<[u8]>>>,
    /// The Node on this loop, if one exists.
    node: RefCell<Weak<node::Inner>>,
}

/// The length of the scratch buffer, which exceeds that of any datagram.
const SCRATCH_LEN: usize = 64 * 1024;

impl Inner {
    pub(crate) fn engine(&self) -> RefMut<'_, Engine> {
        self.engine.borrow_mut()
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Whether the engine is in use further down the stack.
    pub(crate) fn is_engine_at_work(&self) -> bool {
        self.engine.try_borrow().is_err()
    }

    /// Whether the `Loop` was dropped, after which the loop never runs again.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.get()
    }

    pub(crate) fn is_running(&self) -> bool {
        self.is_running.get()
    }

    /// Converts a moment to the engine's clock. The engine's clock was read after Rust's for the
    /// epoch, so the result is never early.
    pub(crate) fn ns_at(&self, moment: Instant) -> u64 {
        let (epoch, epoch_ns) = self.epoch;
        let since = moment.saturating_duration_since(epoch);
        epoch_ns.saturating_add(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
    }

    /// When a sleep that is due then ends: never before.
    pub(crate) fn slot_end_ns(&self, due_ns: u64) -> u64 {
        due_ns
            .checked_next_multiple_of(self.slot_ns)
            .unwrap_or(due_ns)
    }

    /// Lends the scratch buffer. A nested call gets a new buffer.
    pub(crate) fn with_scratch<R>(&self, f: impl FnOnce(&mut [u8]) -> R) -> R {
        let taken = self.scratch.take();
        let mut scratch = taken.unwrap_or_else(|| vec![0; SCRATCH_LEN].into_boxed_slice());
        let result = f(&mut scratch);
        self.scratch.set(Some(scratch));
        result
    }

    /// Drops all callbacks and tasks. The engine stays until the last handle is dropped, because
    /// handles close through it.
    fn tear_down(&self) {
        self.is_closed.set(true);
        trace::loop_gone(self);
        let entries = self.table.borrow_mut().take_all();
        for entry in &entries {
            if let Entry::Handle(source) = entry {
                source.clear();
            }
        }
        drop(entries);
        self.tasks.drop_all();
        drop(self.observer.take());
    }
}

/// An event loop, which runs on the thread that made it.
///
/// This is the owner: when it is dropped, the loop is gone, all callbacks and tasks are dropped,
/// and the handles do nothing more. Only the owner can run the loop. What else a loop can do is a
/// method of its [`LoopHandle`], which an owner derefs to.
///
/// A callback or task that owns its own `Loop` leaks, since the two keep each other alive. Use the
/// [`LoopHandle`] that the callback receives or that [`current`](crate::current) returns.
///
/// ```
/// use blacklight::{Loop, Mode, Timer};
/// use std::time::Duration;
///
/// let lp = Loop::new()?;
/// let timer = Timer::new()?;
/// timer.start(Duration::from_millis(1), |lp, _| {
///     // A callback receives a handle of its loop.
///     lp.spawn(async { println!("a task of the same loop") });
/// })?;
/// lp.run(Mode::Default);
/// # Ok::<(), std::io::Error>(())
/// ```
#[must_use = "a loop is gone when this is dropped"]
pub struct Loop(LoopHandle);

impl Deref for Loop {
    type Target = LoopHandle;

    fn deref(&self) -> &LoopHandle {
        &self.0
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        current::remove(&self.0.0);
        self.0.0.tear_down();
    }
}

impl fmt::Debug for Loop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.describe("Loop", f)
    }
}

/// A reference to a loop, cheap to clone. Callbacks receive one, and [`current`](crate::current)
/// returns one.
///
/// It does not keep the loop alive, so tasks and callbacks may store it. After the loop is gone it
/// spawns nothing, and its other methods say what they said last.
///
/// ```
/// use blacklight::{Loop, LoopHandle};
///
/// fn start(lp: &LoopHandle) {
///     let own = lp.clone();
///     lp.spawn(async move { own.stop() });
/// }
///
/// let lp = Loop::new()?;
/// start(&lp);
/// lp.block_on(async { start(&blacklight::current()) });
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
pub struct LoopHandle(pub(crate) Rc<Inner>);

impl LoopHandle {
    fn describe(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let engine = self.0.engine.borrow();
        f.debug_struct(name)
            .field("name", &self.name())
            .field("mechanism", &engine.mechanism())
            .field("alive", &engine.is_alive())
            .finish()
    }

    /// Whether the loop's [`Loop`] was dropped.
    ///
    /// ```
    /// use blacklight::Loop;
    ///
    /// let lp = Loop::new()?;
    /// let handle = lp.clone();
    /// assert!(!handle.is_gone());
    /// drop(lp);
    /// assert!(handle.is_gone());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn is_gone(&self) -> bool {
        self.0.is_closed()
    }

    /// Returns a weak reference, which does not keep the loop's descriptors and memory after the
    /// loop is gone.
    ///
    /// ```
    /// use blacklight::{Loop, Mode, Timer};
    /// use std::time::Duration;
    ///
    /// let lp = Loop::new()?;
    /// let (weak, timer) = (lp.downgrade(), Timer::new()?);
    /// // A closure that keeps a reference, and no descriptors of a loop that is gone.
    /// timer.start(Duration::ZERO, move |_, _| weak.upgrade().unwrap().stop())?;
    /// lp.run(Mode::Default);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn downgrade(&self) -> WeakLoopHandle {
        WeakLoopHandle(Rc::downgrade(&self.0))
    }
}

impl fmt::Debug for LoopHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.describe("LoopHandle", f)
    }
}

/// A weak reference to a loop; see [`LoopHandle::downgrade`].
///
/// ```
/// use blacklight::{Loop, WeakLoopHandle};
///
/// let lp = Loop::builder().name("mine").build()?;
/// let weak: WeakLoopHandle = lp.downgrade();
/// assert_eq!(weak.upgrade().unwrap().name(), "mine");
/// drop(lp);
/// assert!(weak.upgrade().is_none());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct WeakLoopHandle(Weak<Inner>);

impl WeakLoopHandle {
    /// Returns the loop, unless it is gone.
    ///
    /// ```
    /// use blacklight::Loop;
    ///
    /// let lp = Loop::new()?;
    /// let weak = lp.downgrade();
    /// assert!(weak.upgrade().is_some());
    /// drop(lp);
    /// assert!(weak.upgrade().is_none());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn upgrade(&self) -> Option<LoopHandle> {
        let inner = self.0.upgrade().filter(|inner| !inner.is_closed());
        inner.map(LoopHandle)
    }
}

/// What the recorder knows of this crate.
const FRONT: Front = Front {
    is_library: false,
    callback_of: |called| match called {
        Called::By(event) => current::code_of(event.token(), Some(event)).address(),
        Called::For(_, token) => current::code_of(token, None).address(),
    },
};

/// Options for a new [`Loop`].
///
/// ```
/// use blacklight::{Loop, Mechanism};
///
/// let lp = Loop::builder().name("main").poller(Mechanism::Poll).measure_idle_time().build()?;
/// assert_eq!(lp.mechanism(), Mechanism::Poll);
/// assert_eq!(lp.name(), "main");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Default, Debug)]
#[must_use]
pub struct Builder {
    name: Box<str>,
    mechanism: Option<Mechanism>,
    spinning: Option<Spinning>,
    measure_idle_time: bool,
    pool_threads: Option<u32>,
    sleep_slot: Duration,
}

impl Builder {
    /// Names the loop, for [`LoopHandle::name`], debugging and tracing.
    ///
    /// ```
    /// use blacklight::Loop;
    ///
    /// let lp = Loop::builder().name("main").build()?;
    /// assert_eq!(lp.name(), "main");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn name(mut self, name: &str) -> Builder {
        self.name = name.into();
        self
    }

    /// Polls with this mechanism. The default is the one that the environment variable
    /// `BLACKLIGHT_POLLER` names, or else the best one available.
    ///
    /// ```
    /// use blacklight::{Loop, Mechanism};
    ///
    /// let lp = Loop::builder().poller(Mechanism::Select).build()?;
    /// assert_eq!(lp.mechanism(), Mechanism::Select);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn poller(mut self, mechanism: Mechanism) -> Builder {
        self.mechanism = Some(mechanism);
        self
    }

    /// Polls a kernel that is made up from a seed, whose time passes only while the loop sleeps.
    /// For this crate's own tests.
    #[doc(hidden)]
    pub fn simulated(self, seed: u64) -> Builder {
        self.poller(Mechanism::Simulated(Seed(seed)))
    }

    /// Makes the loop sleep as soon as it has nothing to do.
    ///
    /// By default a loop spins for some microseconds before it sleeps, where spinning has paid
    /// off lately: while it waits for other threads, for the thread pool, or for a peer that
    /// answers at once. The pool's workers spin too. Spinning lowers latency and costs processor
    /// time. The environment variable `BLACKLIGHT_SPIN=0` turns spinning off for all loops; with
    /// a value other than `0` and `1`, [`build`](Builder::build) returns an error.
    ///
    /// ```
    /// use blacklight::{Loop, Mode};
    ///
    /// let lp = Loop::builder().never_spin().build()?;
    /// assert!(!lp.run(Mode::Default));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn never_spin(mut self) -> Builder {
        self.spinning = Some(Spinning::Never);
        self
    }

    /// Lets sleeps, time-outs and intervals end up to this much late, so that those which are due
    /// close together end in one turn of the loop. By default each ends at its own time.
    ///
    /// A loop with thousands of them a second goes to sleep and wakes up for many of them alone, which
    /// can cost as much as all else that is done for them. With a slot of a millisecond it does that
    /// a thousand times a second at most, and they are half a millisecond later in the mean. Nothing
    /// ends early either way, and [`Timer`](crate::Timer)s stay as they are.
    ///
    /// ```
    /// use blacklight::Loop;
    /// use std::time::{Duration, Instant};
    ///
    /// let lp = Loop::builder().sleep_slot(Duration::from_millis(1)).build()?;
    /// let begun = Instant::now();
    /// lp.block_on(async {
    ///     let tasks = (0..100).map(|each| {
    ///         let time = Duration::from_micros(2000 + each);
    ///         blacklight::spawn(blacklight::sleep(time))
    ///     });
    ///     for task in tasks.collect::<Vec<_>>() {
    ///         task.await.unwrap();
    ///     }
    /// });
    /// assert!(begun.elapsed() >= Duration::from_micros(2099));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn sleep_slot(mut self, slot: Duration) -> Builder {
        self.sleep_slot = slot;
        self
    }

    /// Measures the time spent waiting; see [`LoopHandle::idle_time`].
    ///
    /// ```
    /// use blacklight::Loop;
    /// use std::time::Duration;
    ///
    /// let measured = Loop::builder().measure_idle_time().build()?;
    /// measured.block_on(blacklight::sleep(Duration::from_millis(2)));
    /// assert_ne!(measured.idle_time(), Duration::ZERO);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn measure_idle_time(mut self) -> Builder {
        self.measure_idle_time = true;
        self
    }

    /// Gives the thread pool this many threads, from 1 to 1024. The default is what the environment
    /// variable `UV_THREADPOOL_SIZE` says, or else 4.
    ///
    /// All loops of the process share one pool, so this is for the first loop to say: once the pool
    /// has started, with its first job, [`build`](Builder::build) fails with
    /// [`Error::PoolStarted`] for any other number.
    ///
    /// ```
    /// use blacklight::Loop;
    ///
    /// let lp = Loop::builder().pool_threads(8).build()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn pool_threads(mut self, threads: u32) -> Builder {
        self.pool_threads = Some(threads);
        self
    }

    /// Builds the loop.
    ///
    /// ```
    /// use blacklight::Loop;
    ///
    /// let lp = Loop::builder().never_spin().build()?;
    /// assert_eq!(lp.block_on(async { 7 }), 7);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn build(self) -> io::Result<Loop> {
        match self.pool_threads.map_or(Ok(()), set_pool_threads) {
            Err(Errno::EBUSY) => return Err(Error::PoolStarted.into()),
            done => done?,
        }
        let mechanism = match self.mechanism {
            None => blacklight_engine::Mechanism::from_environment()?,
            Some(chosen) => Some(chosen.of_engine()),
        };
        let spinning = match self.spinning {
            None => Spinning::from_environment()?,
            Some(chosen) => chosen,
        };
        let mut engine = Engine::new(mechanism)?;
        engine.set_spinning(spinning);
        engine.record(FRONT, &self.name);
        if self.measure_idle_time {
            engine.measure_idle_time();
        }
        let mut table = Table::default();
        let tasks = Tasks::new(&mut engine, &mut table)?;
        let epoch = (Instant::now(), engine.clock_ns());
        let inner = Inner {
            spare_timers: RefCell::default(),
            slot_ns: nanoseconds(self.sleep_slot),
            epoch,
            engine: RefCell::new(engine),
            table: RefCell::new(table),
            observer: RefCell::default(),
            observations: RefCell::default(),
            tasks,
            name: self.name,
            is_closed: Cell::new(false),
            is_running: Cell::new(false),
            #[cfg(feature = "tracing")]
            spans: trace::Spans::default(),
            scratch: Cell::new(None),
            node: RefCell::default(),
        };
        trace::loop_made(&inner);
        let inner = Rc::new(inner);
        current::add(&inner);
        Ok(Loop(LoopHandle(inner)))
    }
}

impl Loop {
    /// Creates a loop with the default options.
    ///
    /// ```
    /// use blacklight::Loop;
    ///
    /// let lp = Loop::new()?;
    /// assert_eq!(lp.block_on(async { 7 }), 7);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn new() -> io::Result<Loop> {
        Loop::builder().build()
    }

    /// Returns a builder, for a loop with other options.
    ///
    /// ```
    /// use blacklight::Loop;
    ///
    /// let lp = Loop::builder().name("main").build()?;
    /// assert!(!lp.is_alive(), "it has nothing to do");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Runs the loop, and returns whether handles, requests or tasks are left that keep it alive.
    ///
    /// ```
    /// use blacklight::{Idle, Loop, Mode};
    ///
    /// let lp = Loop::new()?;
    /// let idle = Idle::new()?;
    /// idle.start(|_, _| ())?;
    /// assert!(lp.run(Mode::NoWait), "one turn, and more to do");
    /// idle.stop();
    /// assert!(!lp.run(Mode::Default), "nothing to do, so it returns");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If the loop is running already, as it is in its own callbacks and tasks.
    pub fn run(&self, mode: Mode) -> bool {
        self.0.run_to(mode)
    }

    /// Runs the loop until the future completes, and finishes that turn. Other tasks and
    /// callbacks run meanwhile. The future need not be `'static`.
    ///
    /// ```
    /// use blacklight::Loop;
    /// use std::time::Duration;
    ///
    /// let lp = Loop::new()?;
    /// let answer = lp.block_on(async {
    ///     let other = blacklight::spawn(async { 40 });
    ///     blacklight::sleep(Duration::from_millis(1)).await;
    ///     other.await.unwrap() + 2
    /// });
    /// assert_eq!(answer, 42);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If the future panics, and where [`run`](Loop::run) does.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        let lp = &self.0;
        let _running = lp.begin_running();
        let inner = &*lp.0;
        let _alive = inner.tasks.keep_alive(inner);
        let code = Code::of_future(&future);
        let mut future = pin!(future);
        let header = inner.tasks.new_main();
        let waker = Waker::from(header.clone());
        let mut output = None;
        let is_over = Cell::new(false);
        let begun = Cell::new(false);
        let mut poll = || {
            if is_over.get() || !header.take_wake() {
                return;
            }
            let mut context = Context::from_waker(&waker);
            let _polling = Polling::begin(code);
            let _span = trace::poll(inner, None);
            let polled = (inner.tasks).with_budget(|| future.as_mut().poll(&mut context));
            if let Poll::Ready(ready) = polled {
                output = Some(ready);
                is_over.set(true);
                if begun.get() {
                    lp.stop();
                }
            }
        };
        lp.settle(&mut poll);
        begun.set(true);
        while !is_over.get() {
            lp.run_engine(Mode::Default, &mut poll);
        }
        output.expect("the future is completed")
    }
}

impl LoopHandle {
    pub(crate) fn engine(&self) -> RefMut<'_, Engine> {
        self.0.engine.borrow_mut()
    }

    fn engine_ref(&self) -> Ref<'_, Engine> {
        self.0.engine.borrow()
    }

    /// The name that the loop was built with, or an empty string.
    ///
    /// ```
    /// use blacklight::Loop;
    ///
    /// let lp = Loop::builder().name("main").build()?;
    /// lp.block_on(async { assert_eq!(blacklight::current().name(), "main") });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn name(&self) -> &str {
        self.0.name()
    }

    /// See [`Loop::run`].
    pub(crate) fn run_to(&self, mode: Mode) -> bool {
        let _running = self.begin_running();
        // A call of another thread may be all that there is to do.
        self.make_calls();
        self.settle(&mut || ());
        self.run_engine(mode, &mut || ())
    }

    /// Runs the engine once. `main` polls the future of `block_on`, if it was woken.
    fn run_engine(&self, mode: Mode, main: &mut dyn FnMut()) -> bool {
        let mut run = Run::new(mode);
        loop {
            // Ends the borrow of the engine before the callback runs.
            let event = self.engine().next(&mut run);
            let Some(event) = event else {
                return run.alive();
            };
            self.dispatch(&mut run, event, main);
            if self.0.is_closed() {
                return false;
            }
        }
    }

    /// Makes the run in progress return before its next turn.
    ///
    /// ```
    /// use blacklight::{Idle, Loop, Mode};
    ///
    /// let lp = Loop::new()?;
    /// let idle = Idle::new()?;
    /// idle.start(|lp, _| lp.stop())?;
    /// lp.run(Mode::Default);
    /// assert!(lp.is_alive(), "another run would go on");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn stop(&self) {
        self.engine().stop();
    }

    /// Whether something keeps the loop running: a referenced active handle, a handle that is
    /// closing, a request in progress, or a task.
    ///
    /// ```
    /// use blacklight::{Loop, Timer};
    /// use std::time::Duration;
    ///
    /// let lp = Loop::new()?;
    /// let timer = Timer::new()?;
    /// assert!(!lp.is_alive());
    /// timer.start(Duration::from_secs(60), |_, _| ())?;
    /// assert!(lp.is_alive());
    /// timer.unref();
    /// assert!(!lp.is_alive());
    /// lp.spawn(async {});
    /// assert!(lp.is_alive(), "a task that has not run");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn is_alive(&self) -> bool {
        self.engine_ref().is_alive()
    }

    /// The loop's cached time, counted from an arbitrary start.
    ///
    /// ```
    /// use blacklight::Loop;
    /// use std::time::Duration;
    ///
    /// let lp = Loop::new()?;
    /// let before = lp.now();
    /// std::thread::sleep(Duration::from_millis(2));
    /// assert_eq!(lp.now(), before, "it is cached");
    /// lp.update_time();
    /// assert!(lp.now() >= before + Duration::from_millis(2));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn now(&self) -> Duration {
        Duration::from_nanos(self.engine_ref().now_ns())
    }

    /// Updates the cached time. Useful in a callback that has run for long.
    ///
    /// ```
    /// use blacklight::Loop;
    /// use std::time::Duration;
    ///
    /// let lp = Loop::new()?;
    /// let before = lp.now();
    /// std::thread::sleep(Duration::from_millis(1));
    /// lp.update_time();
    /// assert!(lp.now() > before);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn update_time(&self) {
        self.engine().update_time();
    }

    /// The mechanism that the loop polls with.
    ///
    /// ```
    /// use blacklight::{Loop, Mechanism};
    ///
    /// assert_eq!(Loop::builder().poller(Mechanism::Select).build()?.mechanism(), Mechanism::Select);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn mechanism(&self) -> Mechanism {
        Mechanism::of(self.engine_ref().mechanism())
    }

    /// Returns a descriptor that becomes readable when the loop has something to do, for a
    /// program that embeds this loop in another; `None` if the mechanism has no descriptor.
    ///
    /// The descriptor is a duplicate, because the loop replaces its own when that breaks. Call
    /// this again after each run. The example `embedded` is a complete program.
    ///
    /// ```
    /// use blacklight::{Async, Loop, Mode};
    /// use rustix::event::{PollFd, PollFlags, poll};
    ///
    /// let lp = Loop::new()?;
    /// let wakeup = Async::new(|_, _| ())?;
    /// lp.run(Mode::NoWait);
    /// wakeup.sender().send();
    /// let Some(fd) = lp.try_clone_backend_fd()? else { return Ok(()) };
    /// assert_eq!(poll(&mut [PollFd::new(&fd, PollFlags::IN)], None)?, 1);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn try_clone_backend_fd(&self) -> io::Result<Option<OwnedFd>> {
        let mut engine = self.engine();
        engine.embed();
        let fd = engine.backend_fd().map(blacklight_sys::fd::duplicate);
        Ok(fd.transpose()?)
    }

    /// The longest time that a run would sleep now; `None` means without limit.
    ///
    /// ```
    /// use blacklight::{Loop, Timer};
    /// use std::time::Duration;
    ///
    /// let lp = Loop::new()?;
    /// let timer = Timer::new()?;
    /// timer.start(Duration::from_secs(60), |_, _| ())?;
    /// assert!(lp.backend_timeout().unwrap() <= Duration::from_secs(60));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn backend_timeout(&self) -> Option<Duration> {
        self.engine().backend_timeout().map(Duration::from_nanos)
    }

    /// Returns the loop's counters.
    ///
    /// ```
    /// use blacklight::Loop;
    ///
    /// let lp = Loop::new()?;
    /// lp.block_on(async { blacklight::spawn_blocking(|| ()).await }).unwrap();
    /// assert_ne!(lp.metrics().loop_count, 0);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn metrics(&self) -> Metrics {
        self.engine_ref().metrics()
    }

    /// The time spent waiting for events; zero unless [`Builder::measure_idle_time`] was called.
    ///
    /// ```
    /// use blacklight::Loop;
    /// use std::time::Duration;
    ///
    /// let lp = Loop::builder().measure_idle_time().build()?;
    /// lp.block_on(blacklight::sleep(Duration::from_millis(2)));
    /// assert!(lp.idle_time() > Duration::ZERO);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn idle_time(&self) -> Duration {
        let engine = self.engine_ref();
        Duration::from_nanos(engine.idle_time().total_ns(engine.now_ns()))
    }

    /// Calls `observer` after each callback that the loop has run, and the tasks that it has
    /// woken, in place of any observer before.
    ///
    /// ```
    /// use blacklight::{Loop, Mode, Phase, Timer};
    /// use std::{cell::RefCell, rc::Rc, time::Duration};
    ///
    /// let lp = Loop::new()?;
    /// let seen = Rc::new(RefCell::new(Vec::new()));
    /// let log = seen.clone();
    /// lp.observe(move |dispatch| log.borrow_mut().push(dispatch.phase));
    ///
    /// let timer = Timer::new()?;
    /// timer.start(Duration::ZERO, |_, _| ())?;
    /// lp.run(Mode::Default);
    /// drop(timer);
    /// lp.run(Mode::Default);
    /// assert_eq!(*seen.borrow(), [Phase::Timers, Phase::Closing]);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn observe(&self, observer: impl FnMut(Dispatch) + 'static) {
        *self.0.observer.borrow_mut() = Some(Box::new(observer));
        let mut observations = self.0.observations.borrow_mut();
        if observations.is_none() {
            *observations = Some(Rc::default());
            drop(observations);
            self.renew_probe();
        }
    }

    /// Has the engine tell those who listen now.
    pub(crate) fn renew_probe(&self) {
        let observations = self.0.observations.borrow().clone();
        let observer = observations.map(|all| Box::new(Recording(all)) as Box<dyn Probe>);
        let probe = trace::probe(&self.0, observer);
        self.engine().set_probe(probe);
    }

    fn dispatch(&self, run: &mut Run, event: Event, main: &mut dyn FnMut()) {
        trace::dispatch(&self.0, run, &event);
        self.deliver(event);
        self.settle(main);
        let observations = self.0.observations.borrow().clone();
        let Some(observations) = observations else {
            return;
        };
        self.engine().end_callback(run);
        let Some(dispatch) = observations.take() else {
            return;
        };
        // Taken out, so that the observer may itself set another.
        let observer = self.0.observer.borrow_mut().take();
        if let Some(mut observer) = observer {
            observer(dispatch);
            let newer = self.0.observer.replace(None);
            let (kept, _old) = match newer {
                Some(newer) => (newer, Some(observer)),
                None => (observer, None),
            };
            self.0.observer.replace(Some(kept));
            // The observer is a callback as well, and may have woken tasks.
            self.settle(main);
        }
    }

    /// Runs what follows every callback: ticks and microtasks, then woken tasks, and so on until
    /// none of them has queued more. Tasks that take turns with ticks for ever do not starve I/O:
    /// [`PASS`] polls are the limit, and the loop does not sleep while more are queued.
    fn settle(&self, main: &mut dyn FnMut()) {
        let node = self.existing_node().map(Node);
        let mut polls = PASS;
        loop {
            if let Some(node) = &node {
                node.run_tasks();
            }
            if !self.run_tasks(&mut polls, main) {
                break;
            }
        }
        self.0.note_backlog();
    }

    /// The Node on this loop.
    pub(crate) fn existing_node(&self) -> Option<Rc<node::Inner>> {
        self.0.node.borrow().upgrade()
    }

    pub(crate) fn set_node(&self, node: Weak<node::Inner>) {
        *self.0.node.borrow_mut() = node;
    }

    /// Passes the event to the entry that its token names, with nothing borrowed.
    fn deliver(&self, event: Event) {
        let at = event.token().0 as usize;
        let mut table = self.0.table.borrow_mut();
        match table.get_mut(at) {
            Some(Entry::Handle(source)) => {
                let source = source.clone();
                match event {
                    Event::Closed(_) => {
                        let entry = table.remove(at);
                        drop(table);
                        drop((entry, source));
                    }
                    event => {
                        drop(table);
                        source.event(self, event);
                    }
                }
            }
            Some(Entry::Request(..)) => {
                let entry = table.remove(at);
                drop(table);
                if let Entry::Request(_, completion) = entry {
                    completion(self, event);
                }
            }
            Some(Entry::Sleep { is_over, waker, .. }) => {
                *is_over = true;
                let waker = waker.take();
                drop(table);
                if let Some(waker) = waker {
                    waker.wake();
                }
            }
            Some(Entry::Wakes) => {
                drop(table);
                self.hear_others();
            }
            // Tasks run after every event, so `Backlog` needs no action here.
            Some(Entry::Backlog) | Some(Entry::Free) | None => {}
        }
    }

    /// Creates a handle; `make` receives its token.
    pub(crate) fn attach<S: Source + 'static, T>(
        &self,
        state: Rc<S>,
        make: impl FnOnce(&mut Engine, Token) -> EngineResult<(Key, T)>,
    ) -> io::Result<(Handle<S>, T)> {
        self.0.attach(state, make)
    }
}

impl Inner {
    /// See [`LoopHandle::attach`].
    pub(crate) fn attach<S: Source + 'static, T>(
        self: &Rc<Self>,
        state: Rc<S>,
        make: impl FnOnce(&mut Engine, Token) -> EngineResult<(Key, T)>,
    ) -> io::Result<(Handle<S>, T)> {
        let (made, _) = self.register(Entry::Handle(state.clone()), make)?;
        let (key, made) = made;
        let inner = self.clone();
        let is_closed = Cell::new(false);
        Ok((
            Handle {
                inner,
                key,
                state,
                is_closed,
            },
            made,
        ))
    }

    /// Adds an entry to the table and calls `make` with its index as the token. Removes the entry
    /// if `make` fails.
    pub(crate) fn register<T>(
        &self,
        entry: Entry,
        make: impl FnOnce(&mut Engine, Token) -> EngineResult<T>,
    ) -> io::Result<(T, usize)> {
        if self.is_closed() {
            return Err(gone());
        }
        let at = self.table.borrow_mut().insert(entry);
        let made = make(&mut self.engine(), Token(at as u64));
        match made {
            Ok(made) => Ok((made, at)),
            Err(error) => {
                let entry = self.table.borrow_mut().remove(at);
                drop(entry);
                Err(error.into())
            }
        }
    }

    /// The code that an event of this token, or the next one, is for.
    pub(crate) fn code_of(&self, token: Token, event: Option<&Event>) -> Code {
        let Ok(table) = self.table.try_borrow() else {
            return Code::NONE;
        };
        match table.get(token.0 as usize) {
            Some(Entry::Handle(source)) => source.code(event),
            Some(Entry::Request(code, _) | Entry::Sleep { code, .. }) => *code,
            Some(Entry::Wakes) => self.tasks.woken_code(),
            Some(Entry::Backlog) => self.tasks.ready_code(),
            Some(Entry::Free) | None => Code::NONE,
        }
    }

    /// `Pending`, or an error if the loop is gone and nothing would ever wake the task.
    pub(crate) fn pending<T>(&self) -> Poll<io::Result<T>> {
        match self.is_closed() {
            true => Poll::Ready(Err(gone())),
            false => Poll::Pending,
        }
    }

    pub(crate) fn set_running(&self, is_running: bool) {
        self.is_running.set(is_running);
    }

    /// Called after a panic ended a run: makes the loop's descriptor and `backend_timeout` report
    /// the work that the run left, including woken tasks.
    #[cold]
    pub(crate) fn give_up_run(&self) {
        self.note_backlog();
        self.engine().give_up_run();
    }
}

/// The error of an operation on a loop that is gone.
pub(crate) fn gone() -> io::Error {
    Error::LoopGone.into()
}
