//! The loop: the engine, the table of those whom its events are for, and the one place that
//! calls them.

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

/// What a loop is, shared by everything that belongs to it.
pub(crate) struct Inner {
    engine: RefCell<Engine>,
    pub(crate) table: RefCell<Table>,
    observer: RefCell<Option<Observer>>,
    /// What the observer is told, while there is one.
    recorder: RefCell<Option<Rc<Recorder>>>,
    pub(crate) tasks: Tasks,
    name: Box<str>,
    /// How many `Loop`s there are. With the last one goes all that the program has given us.
    loops: Cell<usize>,
    is_closed: Cell<bool>,
    is_running: Cell<bool>,
    /// Stopped timers for sleeps to come: their entries in the table, and the engine's keys.
    pub(crate) spare_timers: RefCell<Vec<(usize, Key)>>,
    /// One moment, as Rust's clock and the engine's tell it.
    epoch: (Instant, u64),
    /// Room to read into, unless it is in use.
    scratch: Cell<Option<Box<[u8]>>>,
    /// The Node on this loop, if there is one.
    node: RefCell<Weak<node::Inner>>,
}

/// How much of a stream is read at once, and more than any datagram has.
const SCRATCH: usize = 64 * 1024;

impl Inner {
    pub(crate) fn engine(&self) -> RefMut<'_, Engine> {
        self.engine.borrow_mut()
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Whether the last `Loop` is gone, so that nothing will ever happen any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.get()
    }

    pub(crate) fn is_running(&self) -> bool {
        self.is_running.get()
    }

    /// A moment on the engine's clock. Rounded to the later side of the epoch's two readings, it
    /// is never early.
    pub(crate) fn ns_at(&self, moment: Instant) -> u64 {
        let (epoch, epoch_ns) = self.epoch;
        let since = moment.saturating_duration_since(epoch);
        epoch_ns.saturating_add(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
    }

    /// Lends the loop's own room. Whoever is called meanwhile and needs it gets another.
    pub(crate) fn with_scratch<R>(&self, f: impl FnOnce(&mut [u8]) -> R) -> R {
        let taken = self.scratch.take();
        let mut scratch = taken.unwrap_or_else(|| vec![0; SCRATCH].into_boxed_slice());
        let result = f(&mut scratch);
        self.scratch.set(Some(scratch));
        result
    }

    /// Lets go of all that is the user's. The engine stays for as long as there are handles,
    /// which close what they own when they are dropped.
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
/// A loop lives for as long as somebody has the `Loop` that [`Loop::new`] or
/// [`Builder::build`] made, or a clone of it. Handles do not count, and neither do the loops
/// that callbacks are given and that [`Loop::current`] finds, nor their clones: tasks and
/// callbacks may keep these. When the last that counts is dropped, all callbacks and tasks are
/// dropped, and nothing happens to the loop's handles any more. Only a callback or a task that
/// is given a `Loop` from outside keeps the loop, and itself, for ever.
///
/// ```
/// use blacklight::{Loop, Mode, Timer};
/// use std::time::Duration;
///
/// let lp = Loop::new()?;
/// let timer = Timer::new(&lp)?;
/// timer.start(Duration::from_millis(1), |lp, _| {
///     // A callback is given its loop, and need not own it.
///     lp.spawn(async { println!("and this is a task of the same loop") });
/// })?;
/// lp.run(Mode::Default);
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Loop(pub(crate) Rc<Inner>, Hold);

/// Whether a `Loop` is one of those that keep the loop.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hold {
    Counts,
    DoesNot,
}

impl Loop {
    /// The same loop for those who belong to it.
    pub(crate) fn uncounted(inner: &Rc<Inner>) -> Loop {
        Loop(inner.clone(), Hold::DoesNot)
    }
}

impl Clone for Loop {
    fn clone(&self) -> Loop {
        if self.1 == Hold::Counts {
            self.0.loops.set(self.0.loops.get() + 1);
        }
        Loop(self.0.clone(), self.1)
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        if self.1 == Hold::DoesNot {
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
    /// Gives the loop a name, for whoever looks at it.
    pub fn name(mut self, name: &str) -> Builder {
        self.name = name.into();
        self
    }

    /// Uses this mechanism, in place of the one that the environment variable
    /// `BLACKLIGHT_POLLER` names, or else of the best there is.
    pub fn poller(mut self, mechanism: Mechanism) -> Builder {
        self.mechanism = Some(mechanism);
        self
    }

    /// Lets the loop sleep as soon as it has nothing to do.
    ///
    /// Otherwise a loop spins for some microseconds before it sleeps, where that has paid lately: for
    /// other threads, for the thread pool, and for a connection whose peer answers at once. So do the
    /// pool's workers before they sleep. That shortens what an answer takes and costs processor time
    /// that nobody else can use. The environment variable `BLACKLIGHT_SPIN=0` does the same to all
    /// loops; a value other than `0` and `1` is an error of [`build`](Builder::build).
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

    /// Makes the loop.
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
        Ok(Loop(Rc::new(inner), Hold::Counts))
    }
}

impl Loop {
    /// A loop with the default options.
    pub fn new() -> io::Result<Loop> {
        Loop::builder().build()
    }

    /// Options for a loop.
    pub fn builder() -> Builder {
        Builder::default()
    }

    pub(crate) fn engine(&self) -> RefMut<'_, Engine> {
        self.0.engine.borrow_mut()
    }

    fn look(&self) -> Ref<'_, Engine> {
        self.0.engine.borrow()
    }

    /// The name that the loop was built with, which may be empty.
    pub fn name(&self) -> &str {
        self.0.name()
    }

    /// Runs the loop. Returns whether something in it is still alive.
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
    /// If the loop is running already: it cannot be run from its own callbacks and tasks. And if
    /// it is gone, and this is one that did not keep it.
    pub fn run(&self, mode: Mode) -> bool {
        let running = self.begin_running();
        running.lp().settle(&mut || ());
        running.lp().run_engine(mode, &mut || ())
    }

    /// Runs the loop until the future is completed, and to the end of that turn. Other tasks
    /// and callbacks run meanwhile. The future need not be `'static`.
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
    /// As [`run`](Loop::run), and if the future does.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        let running = self.begin_running();
        let lp = running.lp();
        let _alive = self.0.tasks.keep_alive(&self.0);
        let mut future = pin!(future);
        let header = self.0.tasks.wake_main();
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

    /// One run of the engine. `main` is called when the future of `block_on` is woken.
    fn run_engine(&self, mode: Mode, main: &mut dyn FnMut()) -> bool {
        let mut run = Run::new(mode);
        loop {
            // The engine is let go of before the callback runs.
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

    /// Ends the run in progress before its next turn.
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

    /// Whether something keeps the loop running: an active handle that is not unreferenced,
    /// one whose closing is to be finished, a request in progress, or a task.
    pub fn is_alive(&self) -> bool {
        self.look().is_alive()
    }

    /// The loop's cached time, from an arbitrary start.
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
        Duration::from_nanos(self.look().now_ns())
    }

    /// Caches the time anew, after a callback that took long.
    pub fn update_time(&self) {
        self.engine().update_time();
    }

    /// The mechanism in use.
    ///
    /// ```
    /// use blacklight::{Loop, Mechanism};
    ///
    /// assert_eq!(Loop::builder().poller(Mechanism::Select).build()?.mechanism(), Mechanism::Select);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn mechanism(&self) -> Mechanism {
        self.look().mechanism()
    }

    /// A descriptor that becomes readable when a run would find something to do, for a
    /// program that embeds this loop in its own; `None` where the mechanism has none.
    ///
    /// It is the caller's own, and cannot be a borrowed one: the loop replaces its descriptor
    /// when that breaks. Ask anew after each run. The example `embedded` is a whole program.
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

    /// How long a run would sleep now at the most; `None` is for ever.
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

    /// Counters of the loop's life.
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
        self.look().metrics()
    }

    /// The time spent waiting for events, if the loop was built to measure it.
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
        let engine = self.look();
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

    /// Does what follows every callback: ticks and microtasks, the tasks that have been woken,
    /// and the ticks and microtasks of those.
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

    /// Calls whom the event is for, with nothing borrowed.
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
            // The tasks run after every event, so also after this one.
            Some(Entry::Backlog) | Some(Entry::Free) | None => {}
        }
    }

    /// Makes a handle: `make` is given its token.
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
        let (made, _) = self.enter(Entry::Handle(state.clone()), make)?;
        let (key, made) = made;
        let inner = self.clone();
        Ok((Handle { inner, key, state }, made))
    }

    /// Makes something with an entry in the table, whose index is its token.
    pub(crate) fn enter<T>(
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

    /// What who has to wait is told: with the loop gone it would be for ever.
    pub(crate) fn pending<T>(&self) -> Poll<io::Result<T>> {
        match self.is_closed() {
            true => Poll::Ready(Err(gone())),
            false => Poll::Pending,
        }
    }

    pub(crate) fn set_running(&self, is_running: bool) {
        self.is_running.set(is_running);
    }

    /// After a panic in the middle of a run: whoever waits for the loop's descriptor, or asks how
    /// long it may, hears of what the run has left, the tasks that were woken among it.
    #[cold]
    pub(crate) fn give_up_run(&self) {
        self.note_backlog();
        self.engine().give_up_run();
    }
}

/// What is said of a loop that does not live any more.
pub(crate) fn gone() -> io::Error {
    io::Error::other("the loop is gone")
}
