//! The loop: a table of callbacks beside the engine, and the one place that calls them.

use crate::handle::{Callback, Handle};
use crate::observe::{Dispatch, Phase};
use blacklight_engine::{Engine, Event, Key, Mechanism, Metrics, Mode, Readiness, Run, Token};
use std::cell::{Ref, RefCell, RefMut};
use std::fmt;
use std::io;
use std::os::fd::RawFd;
use std::rc::{Rc, Weak};
use std::time::{Duration, Instant};

/// What the loop knows of a handle.
#[derive(Default)]
pub(crate) struct Entry {
    /// Taken out while it runs, so that it may replace itself.
    callback: Option<Callback>,
    handle: Weak<Handle>,
    /// Set by `detach`: the loop then keeps the handle itself.
    detached: Option<Rc<Handle>>,
}

type Observer = Box<dyn FnMut(Dispatch)>;

pub(crate) struct Inner {
    engine: RefCell<Engine>,
    entries: RefCell<Vec<Entry>>,
    free: RefCell<Vec<usize>>,
    observer: RefCell<Option<Observer>>,
}

/// An event loop. Clones are the same loop.
#[derive(Clone)]
pub struct Loop(pub(crate) Rc<Inner>);

impl fmt::Debug for Loop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let engine = self.0.engine.borrow();
        f.debug_struct("Loop")
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
/// let lp = Loop::builder().poller(Mechanism::Poll).measure_idle_time().build()?;
/// assert_eq!(lp.mechanism(), Mechanism::Poll);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Default, Debug)]
pub struct Builder {
    mechanism: Option<Mechanism>,
    measure_idle_time: bool,
}

impl Builder {
    /// Uses this mechanism in place of the best there is.
    pub fn poller(mut self, mechanism: Mechanism) -> Builder {
        self.mechanism = Some(mechanism);
        self
    }

    /// Measures the time spent waiting; see [`Loop::idle_time`].
    pub fn measure_idle_time(mut self) -> Builder {
        self.measure_idle_time = true;
        self
    }

    /// Makes the loop.
    pub fn build(self) -> io::Result<Loop> {
        let mut engine = Engine::new(self.mechanism)?;
        if self.measure_idle_time {
            engine.measure_idle_time();
        }
        Ok(Loop(Rc::new(Inner {
            engine: RefCell::new(engine),
            entries: RefCell::default(),
            free: RefCell::default(),
            observer: RefCell::default(),
        })))
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

    /// Runs the loop. Returns whether something in it is still alive.
    ///
    /// Must not be called from a callback of the same loop.
    pub fn run(&self, mode: Mode) -> bool {
        let mut run = Run::new(mode);
        loop {
            // The engine is let go of before the callback runs.
            let event = self.engine().next(&mut run);
            let Some(event) = event else {
                return run.alive();
            };
            self.dispatch(event);
        }
    }

    /// Ends the run in progress before its next turn.
    pub fn stop(&self) {
        self.engine().stop();
    }

    /// Whether something keeps the loop running: an active handle that is not unreferenced,
    /// or one whose closing is to be finished.
    pub fn is_alive(&self) -> bool {
        self.look().is_alive()
    }

    /// The loop's cached time, from an arbitrary start.
    pub fn now(&self) -> Duration {
        Duration::from_nanos(self.look().now_ns())
    }

    /// Caches the time anew, after a callback that took long.
    pub fn update_time(&self) {
        self.engine().update_time();
    }

    /// The mechanism in use.
    pub fn mechanism(&self) -> Mechanism {
        self.look().mechanism()
    }

    /// A descriptor that becomes readable when a run would find something to do, for a
    /// program that embeds this loop in its own; `None` where the mechanism has none.
    pub fn backend_fd(&self) -> Option<RawFd> {
        self.look().backend_fd()
    }

    /// How long a run would sleep now at the most; `None` is for ever.
    pub fn backend_timeout(&self) -> Option<Duration> {
        self.engine().backend_timeout().map(Duration::from_nanos)
    }

    /// Counters of the loop's life.
    pub fn metrics(&self) -> Metrics {
        self.look().metrics()
    }

    /// The time spent waiting for events, if the loop was built to measure it.
    pub fn idle_time(&self) -> Duration {
        let engine = self.look();
        Duration::from_nanos(engine.idle_time().total_ns(engine.now_ns()))
    }

    /// Calls `observer` after each callback that the loop has run, in place of any observer
    /// before.
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
    }

    fn dispatch(&self, event: Event) {
        let observed = self.0.observer.borrow().is_some().then(Instant::now);
        match event {
            Event::Timer(token)
            | Event::Idle(token)
            | Event::Prepare(token)
            | Event::Check(token)
            | Event::Async(token) => self.call(token, Ok(Readiness::default())),
            Event::Poll(token, result) => self.call(token, result.map_err(io::Error::from)),
            // No handle of this face submits work yet.
            Event::Work(..) => {}
            Event::Closed(token) => self.forget(token),
            other => unreachable!("{other:?} is of a kind that this face does not make yet"),
        }
        let Some(begun) = observed else { return };
        let phase = Phase::of(&event);
        // Turns are counted as they poll, and these two phases come before that.
        let before_poll = matches!(phase, Phase::Idle | Phase::Prepare);
        let dispatch = Dispatch {
            phase,
            turn: self.metrics().loop_count + u64::from(before_poll),
            took: begun.elapsed(),
        };
        // Taken out, so that the observer may itself set another.
        let observer = self.0.observer.borrow_mut().take();
        if let Some(mut observer) = observer {
            observer(dispatch);
            self.0.observer.borrow_mut().get_or_insert(observer);
        }
    }

    fn call(&self, token: Token, result: io::Result<Readiness>) {
        let at = token.0 as usize;
        let (callback, handle) = {
            let mut entries = self.0.entries.borrow_mut();
            (entries[at].callback.take(), entries[at].handle.upgrade())
        };
        // A handle that has been dropped is closing, and hears of nothing any more.
        if let (Some(mut callback), Some(handle)) = (callback, handle) {
            callback(self, &handle, result);
            let replaced = self.0.entries.borrow()[at].callback.is_some();
            if !replaced {
                self.0.entries.borrow_mut()[at].callback = Some(callback);
            }
            // Otherwise it is dropped here, with nothing borrowed.
        }
    }

    fn forget(&self, token: Token) {
        let entry = std::mem::take(&mut self.0.entries.borrow_mut()[token.0 as usize]);
        self.0.free.borrow_mut().push(token.0 as usize);
        // What the callback owned is dropped with nothing borrowed.
        drop(entry);
    }

    /// Makes a handle: `make` is given its token.
    pub(crate) fn attach<T>(
        &self,
        make: impl FnOnce(&mut Engine, Token) -> Result<(Key, T), blacklight_engine::Errno>,
    ) -> io::Result<(Rc<Handle>, T)> {
        let at = self.0.free.borrow_mut().pop().unwrap_or_else(|| {
            let mut entries = self.0.entries.borrow_mut();
            entries.push(Entry::default());
            entries.len() - 1
        });
        match make(&mut self.engine(), Token(at as u64)) {
            Ok((key, made)) => {
                let handle = Rc::new(Handle::new(self, key, at));
                self.0.entries.borrow_mut()[at].handle = Rc::downgrade(&handle);
                Ok((handle, made))
            }
            Err(error) => {
                self.0.free.borrow_mut().push(at);
                Err(error.into())
            }
        }
    }

    pub(crate) fn set_callback(&self, at: usize, callback: Callback) {
        let before = self.0.entries.borrow_mut()[at].callback.replace(callback);
        drop(before);
    }

    pub(crate) fn keep(&self, handle: Rc<Handle>) {
        self.0.entries.borrow_mut()[handle.at].detached = Some(handle.clone());
    }
}
