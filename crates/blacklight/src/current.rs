//! The current loop of a thread, and functions that use it.

use crate::code::Code;
use crate::error::Error;
use crate::loop_::{Inner, LoopHandle};
use crate::task::{JoinHandle, Shared, TaskId};
use crate::trace;
use crate::work::Blocking;
use blacklight_engine::{Event, Token};
use std::cell::RefCell;
use std::io;
use std::rc::{Rc, Weak};
use std::sync::Arc;

thread_local! {
    /// The innermost loop that runs on this thread or was entered.
    static CURRENT: RefCell<Option<LoopHandle>> = const { RefCell::new(None) };
    /// The loops of this thread that are not gone.
    static LOOPS: RefCell<Vec<Weak<Inner>>> = const { RefCell::new(Vec::new()) };
}

/// Adds a new loop to those of its thread.
pub(crate) fn add(inner: &Rc<Inner>) {
    let _ = LOOPS.try_with(|loops| loops.borrow_mut().push(Rc::downgrade(inner)));
}

/// Removes a loop that is about to be gone.
pub(crate) fn remove(inner: &Rc<Inner>) {
    let is_other = |lp: &Weak<Inner>| !std::ptr::eq(lp.as_ptr(), Rc::as_ptr(inner));
    // A thread that ends may have dropped its list already.
    let _ = LOOPS.try_with(|loops| loops.borrow_mut().retain(is_other));
}

/// A loop that is current until this is dropped.
pub(crate) struct Entered {
    outer: Option<LoopHandle>,
}

impl Entered {
    fn new(lp: &LoopHandle) -> Entered {
        let outer = CURRENT.replace(Some(lp.clone()));
        Entered { outer }
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        // Drops the previous value after the borrow of the cell has ended.
        let _inner = CURRENT.replace(self.outer.take());
    }
}

/// A run in progress. Dropping it, even in a panic, lets the loop be run again.
pub(crate) struct Running {
    lp: LoopHandle,
    _entered: Entered,
}

impl LoopHandle {
    pub(crate) fn begin_running(&self) -> Running {
        assert!(
            !self.0.is_running(),
            "a loop cannot be run from its own callbacks and tasks"
        );
        assert!(!self.0.is_closed(), "the loop is gone");
        trace::run_begins(self);
        self.0.set_running(true);
        Running {
            lp: self.clone(),
            _entered: Entered::new(self),
        }
    }

    /// Makes this loop the current one while `f` runs. Only needed on a thread with several
    /// loops, and only outside of their callbacks and tasks.
    ///
    /// ```
    /// use blacklight::{Error, Loop, Mode, Timer};
    /// use std::time::Duration;
    ///
    /// let (one, other) = (Loop::new()?, Loop::new()?);
    /// assert_eq!(Error::of(&Timer::new().unwrap_err()), Some(Error::NoCurrentLoop));
    /// let timer = other.enter(Timer::new)?;
    /// timer.start(Duration::ZERO, |_, _| println!("a timer of the other loop"))?;
    /// assert!(!one.is_alive() && other.is_alive());
    /// other.run(Mode::Default);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn enter<R>(&self, f: impl FnOnce() -> R) -> R {
        let _entered = Entered::new(self);
        f()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if std::thread::panicking() && !self.lp.0.is_closed() {
            self.lp.0.give_up_run();
        }
        self.lp.0.set_running(false);
    }
}

/// Queues a woken task if its loop is the current one and runs, and returns whether it does. While
/// the engine is at work it may be about to sleep, so whoever it tells of that wakes tasks as other
/// threads do.
pub(crate) fn wake_here(shared: &Arc<Shared>, task: TaskId) -> bool {
    let woken = CURRENT.try_with(|current| match &*current.borrow() {
        Some(lp) if lp.0.is_running() && lp.0.tasks.is_of(shared) && !lp.0.is_engine_at_work() => {
            lp.0.tasks.push(task);
            true
        }
        _ => false,
    });
    woken.unwrap_or(false)
}

/// The code that an event of the loop which runs on this thread is for.
pub(crate) fn code_of(token: Token, event: Option<&Event>) -> Code {
    let code = CURRENT.try_with(|current| match &*current.borrow() {
        Some(lp) => lp.0.code_of(token, event),
        None => Code::NONE,
    });
    code.unwrap_or_default()
}

/// Whether the loop belongs to this thread.
pub(crate) fn is_of_this_thread(shared: &Arc<Shared>) -> bool {
    let mine = LOOPS.try_with(|loops| {
        let loops = loops.borrow();
        let mut loops = loops.iter().filter_map(Weak::upgrade);
        loops.any(|lp| lp.tasks.is_of(shared))
    });
    mine.unwrap_or(false)
}

/// Returns the current loop: the innermost one that runs on this thread or was
/// [entered](LoopHandle::enter), or else the thread's only loop. `None` if the thread has no loop,
/// or several of which none runs or was entered.
///
/// ```
/// use blacklight::Loop;
///
/// assert!(blacklight::try_current().is_none());
/// let lp = Loop::builder().name("mine").build()?;
/// assert_eq!(blacklight::try_current().unwrap().name(), "mine");
/// let another = Loop::new()?;
/// assert!(blacklight::try_current().is_none(), "which one?");
/// lp.block_on(async { assert_eq!(blacklight::current().name(), "mine") });
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn try_current() -> Option<LoopHandle> {
    let entered = CURRENT.try_with(|current| current.borrow().clone());
    entered.ok().flatten().or_else(only)
}

/// The thread's only loop.
fn only() -> Option<LoopHandle> {
    let only = LOOPS.try_with(|loops| match &loops.borrow()[..] {
        [only] => only.upgrade(),
        _ => None,
    });
    only.ok().flatten().map(LoopHandle)
}

/// The current loop, for a constructor.
pub(crate) fn here() -> io::Result<LoopHandle> {
    try_current().ok_or_else(|| Error::NoCurrentLoop.into())
}

/// Returns the current loop; see [`try_current`].
///
/// ```
/// use blacklight::{Loop, Mode, Timer};
/// use std::time::Duration;
///
/// let lp = Loop::new()?;
/// let timer = Timer::new()?;
/// timer.start_repeating(Duration::from_millis(1), |_, _| blacklight::current().stop())?;
/// lp.run(Mode::Default);
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Panics
///
/// If there is no current loop.
#[track_caller]
pub fn current() -> LoopHandle {
    match try_current() {
        Some(lp) => lp,
        None => panic!("{}; see LoopHandle::enter", Error::NoCurrentLoop),
    }
}

/// Spawns a task on the current loop; see [`LoopHandle::spawn`].
///
/// ```
/// use blacklight::Loop;
///
/// let lp = Loop::new()?;
/// let sum = lp.block_on(async {
///     let (one, two) = (blacklight::spawn(async { 1 }), blacklight::spawn(async { 2 }));
///     one.await.unwrap() + two.await.unwrap()
/// });
/// assert_eq!(sum, 3);
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Panics
///
/// If there is no [current loop](current).
#[track_caller]
pub fn spawn<F: Future + 'static>(future: F) -> JoinHandle<F::Output> {
    current().spawn(future)
}

/// Runs a closure on the thread pool of the process. Await the returned future for its result.
///
/// All loops of the process share the pool, which has four threads by default (see
/// [`Builder::pool_threads`](crate::Builder::pool_threads)). So do [`fs`](crate::fs),
/// [`dns`](crate::dns) and [`random_bytes`](crate::random_bytes): jobs that take long and fill all
/// threads make these wait. For what blocks for seconds, start a thread of its own.
///
/// ```
/// use blacklight::Loop;
///
/// let lp = Loop::new()?;
/// let sum = lp.block_on(async { blacklight::spawn_blocking(|| (1..=100).sum::<u32>()).await });
/// assert_eq!(sum.unwrap(), 5050);
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Panics
///
/// If there is no [current loop](current).
#[track_caller]
pub fn spawn_blocking<T: Send + 'static>(job: impl FnOnce() -> T + Send + 'static) -> Blocking<T> {
    current().spawn_blocking(job)
}
