//! The loop: owns the engine, the table that maps tokens to receivers, and the tasks.
//!
//! [`Loop::deliver`] is the only place that calls user code for an event. The engine and the
//! table are never borrowed while user code runs or user values are dropped.

use crate::handle::{EngineResult, Handle};
use crate::node::{self, Node};
use crate::observe::{Dispatch, Recorder, Recording};
use crate::table::{Entry, Source, Table};
use crate::task::Tasks;
use crate::trace;
use blacklight_engine::{Engine, Event, Key, Mechanism, Metrics, Mode, Run, Spinning, Token};
use std::cell::{Cell, Ref, RefCell, RefMut};
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::pin::pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

type Observer = Box<dyn FnMut(Dispatch)>;

/// The state of a loop, shared by its handles, tasks and `Loop`s.
pub(crate) struct Inner {
    engine: RefCell<Engine>,
    pub(crate) table: RefCell<Table>,
    observer: RefCell<Option<Observer>>,
    /// What the observer is told, while there is one.
    recorder: RefCell<Option<Rc<Recorder>>>,
    pub(crate) tasks: Tasks,
    name: Box<str>,
    /// The number of counted `Loop`s. Dropping the last one tears the loop down.
    loops: Cell<usize>,
    is_closed: Cell<bool>,
    is_running: Cell<bool>,
    /// Stopped timers for later sleeps to reuse: each its entry in the table and the engine's
    /// key.
    pub(crate) spare_timers: RefCell<Vec<(usize, Key)>>,
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

    /// Whether the last counted `Loop` was dropped, after which the loop never runs again.
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

/// An event loop. Clones are the same loop.
///
/// A loop lives until the `Loop` that [`Loop::new`] or [`Builder::build`] returned and all clones
/// of it are dropped. Then all callbacks and tasks are dropped, and the handles do nothing more.
///
/// Handles do not keep the loop alive. Neither do the `Loop`s that callbacks receive and that
/// [`Loop::current`] returns, nor clones of these, so tasks and callbacks may store them. A
/// callback or task that owns a `Loop` from outside leaks: the two keep each other alive.
///
/// ```
/// use blacklight::{Loop, Mode, Timer};
/// use std::time::Duration;
///
/// let lp = Loop::new()?;
/// let timer = Timer::new(&lp)?;
/// timer.start(Duration::from_millis(1), |lp, _| {
///     // A callback receives its loop and need not own one.
///     lp.spawn(async { println!("a task of the same loop") });
/// })?;
/// lp.run(Mode::Default);
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Loop(pub(crate) Rc<Inner>, Hold);

/// Whether a `Loop` keeps the loop alive.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hold {
    Counted,
    Uncounted,
}

impl Loop {
    /// A `Loop` that does not keep the loop alive, for callbacks and tasks.
    pub(crate) fn uncounted(inner: &Rc<Inner>) -> Loop {
        Loop(inner.clone(), Hold::Uncounted)
    }
}

impl Clone for Loop {
    fn clone(&self) -> Loop {
        if self.1 == Hold::Counted {
            self.0.loops.set(self.0.loops.get() + 1);
        }
        Loop(self.0.clone(), self.1)
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        if self.1 == Hold::Uncounted {
            return;
        }
        let left = self.0.loops.get() - 1;
        self.0.loops.set(left);
        if left == 0 {
            self.0.tear_down();
        }
    }
}

impl fmt::Debug for Loop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let engine = self.0.engine.borrow();
        f.debug_struct("Loop")
            .field("name", &self.name())
            .field("mechanism", &engine.mechanism())
            .field("alive", &engine.is_alive())
            .finish()
    }
}

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
#[derive(Default, Debug)]
pub struct Builder {
    name: Box<str>,
    mechanism: Option<Mechanism>,
    spinning: Option<Spinning>,
    measure_idle_time: bool,
}

impl Builder {
    /// Names the loop, for [`Loop::name`], debugging and tracing.
    pub fn name(mut self, name: &str) -> Builder {
        self.name = name.into();
        self
    }

    /// Polls with this mechanism. The default is the one that the environment variable
    /// `BLACKLIGHT_POLLER` names, or else the best one available.
    pub fn poller(mut self, mechanism: Mechanism) -> Builder {
        self.mechanism = Some(mechanism);
        self
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

    /// Measures the time spent waiting; see [`Loop::idle_time`].
    pub fn measure_idle_time(mut self) -> Builder {
        self.measure_idle_time = true;
        self
    }

    /// Builds the loop.
    pub fn build(self) -> io::Result<Loop> {
        let mechanism = match self.mechanism {
            None => Mechanism::from_environment()?,
            chosen => chosen,
        };
        let spinning = match self.spinning {
            None => Spinning::from_environment()?,
            Some(chosen) => chosen,
        };
        let mut engine = Engine::new(mechanism)?;
        engine.set_spinning(spinning);
        if self.measure_idle_time {
            engine.measure_idle_time();
        }
        let mut table = Table::default();
        let tasks = Tasks::new(&mut engine, &mut table)?;
        let epoch = (Instant::now(), engine.clock_ns());
        let inner = Inner {
            spare_timers: RefCell::default(),
            epoch,
            engine: RefCell::new(engine),
            table: RefCell::new(table),
            observer: RefCell::default(),
            recorder: RefCell::default(),
            tasks,
            name: self.name,
            loops: Cell::new(1),
            is_closed: Cell::new(false),
            is_running: Cell::new(false),
            scratch: Cell::new(None),
            node: RefCell::default(),
        };
        trace::loop_made(&inner);
        Ok(Loop(Rc::new(inner), Hold::Counted))
    }
}

impl Loop {
    /// Creates a loop with the default options.
    pub fn new() -> io::Result<Loop> {
        Loop::builder().build()
    }

    /// Returns a builder, for a loop with other options.
    pub fn builder() -> Builder {
        Builder::default()
    }

    pub(crate) fn engine(&self) -> RefMut<'_, Engine> {
        self.0.engine.borrow_mut()
    }

    fn engine_ref(&self) -> Ref<'_, Engine> {
        self.0.engine.borrow()
    }

    /// The name that the loop was built with, or an empty string.
    pub fn name(&self) -> &str {
        self.0.name()
    }

    /// Runs the loop, and returns whether handles, requests or tasks are left that keep it alive.
    ///
    /// ```
    /// use blacklight::{Idle, Loop, Mode};
    ///
    /// let lp = Loop::new()?;
    /// let idle = Idle::new(&lp)?;
    /// idle.start(|_, _| ())?;
    /// assert!(lp.run(Mode::NoWait), "one turn, and more to do");
    /// idle.stop();
    /// assert!(!lp.run(Mode::Default), "nothing to do, so it returns");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If the loop is running already, as it is in its own callbacks and tasks; or if the loop is
    /// gone, which this `Loop` can outlive if it comes from a callback or from [`Loop::current`].
    pub fn run(&self, mode: Mode) -> bool {
        let running = self.begin_running();
        running.lp().settle(&mut || ());
        running.lp().run_engine(mode, &mut || ())
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
        let running = self.begin_running();
        let lp = running.lp();
        let _alive = self.0.tasks.keep_alive(&self.0);
        let mut future = pin!(future);
        let header = self.0.tasks.new_main();
        let waker = Waker::from(header.clone());
        let mut output = None;
        let is_over = Cell::new(false);
        let begun = Cell::new(false);
        let mut poll = || {
            if is_over.get() || !header.take_wake() {
                return;
            }
            let mut context = Context::from_waker(&waker);
            let polled = (self.0.tasks).with_budget(|| future.as_mut().poll(&mut context));
            if let Poll::Ready(ready) = polled {
                output = Some(ready);
                is_over.set(true);
                if begun.get() {
                    self.stop();
                }
            }
        };
        lp.settle(&mut poll);
        begun.set(true);
        while !is_over.get() {
            assert!(!self.0.is_closed(), "the loop is gone");
            lp.run_engine(Mode::Default, &mut poll);
        }
        output.expect("the future is completed")
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
    /// let idle = Idle::new(&lp)?;
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
        self.engine_ref().mechanism()
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
    /// let wakeup = Async::new(&lp, |_, _| ())?;
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
    /// let timer = Timer::new(&lp)?;
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
    /// use std::time::Duration;
    ///
    /// let lp = Loop::new()?;
    /// lp.block_on(lp.sleep(Duration::from_millis(1)));
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
    /// lp.block_on(lp.sleep(Duration::from_millis(2)));
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
    /// let timer = Timer::new(&lp)?;
    /// timer.start(Duration::ZERO, |_, _| ())?;
    /// lp.run(Mode::Default);
    /// drop(timer);
    /// lp.run(Mode::Default);
    /// assert_eq!(*seen.borrow(), [Phase::Timers, Phase::Closing]);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn observe(&self, observer: impl FnMut(Dispatch) + 'static) {
        *self.0.observer.borrow_mut() = Some(Box::new(observer));
        let mut recorder = self.0.recorder.borrow_mut();
        if recorder.is_none() {
            let new = Rc::<Recorder>::default();
            let probe = Recording(new.clone());
            self.engine().set_probe(Some(Box::new(probe)));
            *recorder = Some(new);
        }
    }

    fn dispatch(&self, run: &mut Run, event: Event, main: &mut dyn FnMut()) {
        trace::dispatch(&self.0, run, &event);
        self.deliver(event);
        self.settle(main);
        let recorder = self.0.recorder.borrow().clone();
        let Some(recorder) = recorder else { return };
        self.engine().end_callback(run);
        let Some(dispatch) = recorder.take() else {
            return;
        };
        // Taken out, so that the observer may itself set another.
        let observer = self.0.observer.borrow_mut().take();
        if let Some(mut observer) = observer {
            observer(dispatch);
            self.0.observer.borrow_mut().get_or_insert(observer);
        }
    }

    /// Runs what follows every callback: ticks and microtasks, then woken tasks, then the ticks
    /// and microtasks that these tasks queued.
    fn settle(&self, main: &mut dyn FnMut()) {
        let node = self.node().map(Node);
        if let Some(node) = &node {
            node.run_tasks();
        }
        self.run_tasks(main);
        if let Some(node) = &node {
            node.run_tasks();
        }
    }

    /// The Node on this loop.
    pub(crate) fn node(&self) -> Option<Rc<node::Inner>> {
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
            Some(Entry::Request(_)) => {
                let entry = table.remove(at);
                drop(table);
                if let Entry::Request(completion) = entry {
                    completion(self, event);
                }
            }
            Some(Entry::Sleep { is_over, waker }) => {
                *is_over = true;
                let waker = waker.take();
                drop(table);
                if let Some(waker) = waker {
                    waker.wake();
                }
            }
            Some(Entry::Wakes) => self.0.tasks.collect_wakes(),
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
    /// See [`Loop::attach`].
    pub(crate) fn attach<S: Source + 'static, T>(
        self: &Rc<Self>,
        state: Rc<S>,
        make: impl FnOnce(&mut Engine, Token) -> EngineResult<(Key, T)>,
    ) -> io::Result<(Handle<S>, T)> {
        let (made, _) = self.register(Entry::Handle(state.clone()), make)?;
        let (key, made) = made;
        let inner = self.clone();
        Ok((Handle { inner, key, state }, made))
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
    io::Error::other("the loop is gone")
}
