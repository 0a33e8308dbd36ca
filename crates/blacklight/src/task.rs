//! Tasks: futures that the loop runs.
//!
//! A task is polled when it is woken, on the loop's thread, one at a time:
//!
//! - Woken tasks run right after the callback (or the task) that woke them, whatever the phase,
//!   in the order of waking. A task that is spawned counts as woken. Those that another thread
//!   has woken run in the poll phase, where asyncs are delivered.
//! - At most [`PASS`] polls follow one callback. What is left goes on after the next callback,
//!   and in any case in the idle phase of the next turn; the loop does not sleep meanwhile.
//!   So tasks that wake each other, or themselves, for ever cannot keep the loop from its I/O.
//! - A task that finds something to read or write each time that it asks is told to wait for
//!   its next turn after [`BUDGET`] of these, so that it cannot starve the others either.
//! - A task keeps the loop running until it is over, as a request does.
//!
//! A waker is the number of its task and a flag that says whether the task is queued already.
//! On the loop's own thread, while it runs, waking is a push to the queue; from elsewhere it
//! goes over a locked list and the executor's own async handle. Futures never leave the
//! loop's thread, and are dropped with nothing borrowed.

use crate::current;
use crate::loop_::{Inner, Loop};
use crate::table::{Entry, Table};
use crate::trace;
use blacklight_engine::{Engine, Errno, Key, Sender, Token};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::AcqRel;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// How many polls may follow one callback.
const PASS: usize = 64;

/// How many operations may succeed in one poll of a task.
const BUDGET: u32 = 128;

/// The place of the future that `block_on` runs.
const MAIN: u32 = u32::MAX;

/// Names a task for as long as it lives.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ready {
    at: u32,
    generation: u32,
}

impl Ready {
    /// No task at all.
    const NOBODY: Ready = Ready {
        at: MAIN,
        generation: 0,
    };
}

/// What wakers share with their loop.
pub(crate) struct Shared {
    /// Tasks that were woken from other threads, or while the loop did not run.
    woken: Mutex<Vec<Ready>>,
    sender: Sender,
}

/// What a task's wakers are.
pub(crate) struct Header {
    shared: Arc<Shared>,
    task: Ready,
    is_woken: AtomicBool,
}

impl Header {
    /// Whether the task has been woken; from here on it may be woken again. The task sees all
    /// that whoever woke it has done before.
    pub(crate) fn take_wake(&self) -> bool {
        self.is_woken.swap(false, AcqRel)
    }
}

impl Wake for Header {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.is_woken.swap(true, AcqRel) || current::wake_here(&self.shared, self.task) {
            return;
        }
        let woken = self.shared.woken.lock();
        woken
            .unwrap_or_else(PoisonError::into_inner)
            .push(self.task);
        self.shared.sender.send();
    }
}

struct Task {
    /// Dropped before whoever waits for it hears that there will be no result.
    future: Pin<Box<dyn Future<Output = ()>>>,
    header: Arc<Header>,
    waker: Waker,
    join: Completer<dyn Joined>,
}

struct Place {
    generation: u32,
    /// Taken out while it is polled.
    task: Option<Task>,
    /// Whether it counts among those that keep the loop running.
    counts: bool,
}

pub(crate) struct Tasks {
    shared: Arc<Shared>,
    places: RefCell<Vec<Place>>,
    free: RefCell<Vec<u32>>,
    ready: RefCell<VecDeque<Ready>>,
    /// The async handle that other threads wake us with. It is referenced while there are
    /// tasks that keep the loop running.
    wakes: Key,
    /// The idle handle that is started while tasks are left over.
    backlog: Key,
    has_backlog: Cell<bool>,
    alive: Cell<usize>,
    budget: Cell<u32>,
}

impl Tasks {
    pub(crate) fn new(engine: &mut Engine, table: &mut Table) -> Result<Tasks, Errno> {
        let token = Token(table.insert(Entry::Wakes) as u64);
        let (wakes, ticket) = engine.async_init(token)?;
        engine.unreference(wakes);
        let backlog = engine.idle_init(Token(table.insert(Entry::Backlog) as u64))?;
        Ok(Tasks {
            shared: Arc::new(Shared {
                woken: Mutex::default(),
                sender: engine.async_sender(ticket),
            }),
            places: RefCell::default(),
            free: RefCell::default(),
            ready: RefCell::default(),
            wakes,
            backlog,
            has_backlog: Cell::new(false),
            alive: Cell::new(0),
            budget: Cell::new(BUDGET),
        })
    }

    pub(crate) fn is_of(&self, shared: &Arc<Shared>) -> bool {
        Arc::ptr_eq(&self.shared, shared)
    }

    pub(crate) fn push(&self, task: Ready) {
        self.ready.borrow_mut().push_back(task);
    }

    /// Queues what other threads have woken.
    pub(crate) fn collect_wakes(&self) {
        let woken = self.shared.woken.lock();
        let mut woken = woken.unwrap_or_else(PoisonError::into_inner);
        self.ready.borrow_mut().extend(woken.drain(..));
    }

    /// What wakes the future of `block_on`, which is woken to begin with.
    pub(crate) fn wake_main(&self) -> Arc<Header> {
        let task = Ready {
            at: MAIN,
            generation: 0,
        };
        self.push(task);
        self.header(task)
    }

    fn header(&self, task: Ready) -> Arc<Header> {
        Arc::new(Header {
            shared: self.shared.clone(),
            task,
            is_woken: AtomicBool::new(true),
        })
    }

    fn count(&self, inner: &Inner, up: bool) {
        let before = self.alive.get();
        let alive = if up { before + 1 } else { before - 1 };
        self.alive.set(alive);
        match (before, alive) {
            (0, _) => inner.engine().reference(self.wakes),
            (_, 0) => inner.engine().unreference(self.wakes),
            _ => {}
        }
    }

    /// Keeps the loop running.
    pub(crate) fn keep_alive<'a>(&self, inner: &'a Inner) -> KeepAlive<'a> {
        self.count(inner, true);
        KeepAlive(inner)
    }

    fn insert(&self, inner: &Inner, make: impl FnOnce(Ready) -> Task) -> Ready {
        let mut places = self.places.borrow_mut();
        let at = self.free.borrow_mut().pop().unwrap_or_else(|| {
            places.push(Place {
                generation: 0,
                task: None,
                counts: false,
            });
            places.len() as u32 - 1
        });
        let place = &mut places[at as usize];
        let task = Ready {
            at,
            generation: place.generation,
        };
        place.task = Some(make(task));
        place.counts = true;
        drop(places);
        self.count(inner, true);
        task
    }

    /// Runs `f` on a task's place if the task still lives.
    fn with_place<R>(&self, task: Ready, f: impl FnOnce(&mut Place) -> R) -> Option<R> {
        let mut places = self.places.borrow_mut();
        let place = places.get_mut(task.at as usize)?;
        (place.generation == task.generation).then(|| f(place))
    }

    /// Forgets a task, if it lives. What was in its place, unless it runs, is to be dropped with
    /// nothing borrowed.
    fn remove(&self, inner: &Inner, task: Ready) -> Option<Option<Task>> {
        let (content, counts) = self.with_place(task, |place| {
            place.generation = place.generation.wrapping_add(1);
            (place.task.take(), std::mem::take(&mut place.counts))
        })?;
        self.free.borrow_mut().push(task.at);
        if counts {
            self.count(inner, false);
        }
        Some(content)
    }

    /// Polls a future with a fresh budget.
    pub(crate) fn with_budget<R>(&self, poll: impl FnOnce() -> R) -> R {
        self.budget.set(BUDGET);
        poll()
    }

    fn poll(&self, inner: &Inner, ready: Ready) {
        let Some(mut task) = self.with_place(ready, |place| place.task.take()).flatten() else {
            return;
        };
        task.header.take_wake();
        let mut context = Context::from_waker(&task.waker);
        let poll = || task.future.as_mut().poll(&mut context);
        let polled = catch_unwind(AssertUnwindSafe(|| self.with_budget(poll)));
        if let Ok(Poll::Pending) = polled {
            let mut task = Some(task);
            self.with_place(ready, |place| place.task = task.take());
            // A task that was cancelled while it ran is dropped here.
            drop(task);
            return;
        }
        let removed = self.remove(inner, ready);
        match polled {
            Err(panic) => {
                trace::task_panicked(inner, ready.at);
                task.join.0.end(JoinError::panicked(panic));
            }
            // Else it has cancelled itself, and that was told.
            Ok(_) if removed.is_some() => trace::task_over(inner, ready.at),
            Ok(_) => {}
        }
        drop(task);
    }

    /// Drops all tasks.
    pub(crate) fn drop_all(&self) {
        let mut tasks = Vec::new();
        for place in self.places.borrow_mut().iter_mut() {
            place.generation = place.generation.wrapping_add(1);
            tasks.extend(place.task.take());
        }
        self.ready.borrow_mut().clear();
        drop(tasks);
    }
}

/// Lets a loop run for as long as this is kept.
pub(crate) struct KeepAlive<'a>(&'a Inner);

impl Drop for KeepAlive<'_> {
    fn drop(&mut self) {
        self.0.tasks.count(self.0, false);
    }
}

impl Inner {
    /// Sees to it that the loop does not sleep while there are tasks to run.
    pub(crate) fn note_backlog(&self) {
        let has_backlog = !self.tasks.ready.borrow().is_empty();
        if self.tasks.has_backlog.replace(has_backlog) != has_backlog {
            let mut engine = self.engine();
            let noted = match has_backlog {
                true => engine.loop_watcher_start(self.tasks.backlog),
                false => engine.loop_watcher_stop(self.tasks.backlog),
            };
            debug_assert!(noted.is_ok(), "the handle is ours and open");
        }
    }

    /// Whether a task may go on, or has had its share and will be woken again at once.
    pub(crate) fn poll_budget(&self, context: &Context<'_>) -> Poll<()> {
        if !self.is_running() {
            return Poll::Ready(());
        }
        match self.tasks.budget.get() {
            0 => {
                context.waker().wake_by_ref();
                Poll::Pending
            }
            left => {
                self.tasks.budget.set(left - 1);
                Poll::Ready(())
            }
        }
    }
}

impl Loop {
    /// Polls the tasks that are ready, up to the limit. `main` stands for the future of
    /// `block_on`.
    pub(crate) fn run_tasks(&self, main: &mut dyn FnMut()) {
        let tasks = &self.0.tasks;
        if tasks.ready.borrow().is_empty() && !tasks.has_backlog.get() {
            return;
        }
        for _ in 0..PASS {
            let next = tasks.ready.borrow_mut().pop_front();
            match next {
                None => break,
                Some(Ready { at: MAIN, .. }) => main(),
                Some(task) => tasks.poll(&self.0, task),
            }
        }
        self.0.note_backlog();
    }

    /// Runs a future as a task of its own, which need not be `Send`. It begins right after the
    /// callback or task that spawns it, and keeps the loop running until it is over. The
    /// handle can be awaited, dropped without harm, and used to cancel the task.
    ///
    /// Woken tasks run right after the callback that woke them, in the order of waking; those
    /// that other threads wake, in the poll phase. After 64 polls the loop goes on with its
    /// turn first, so that busy tasks do not keep it from its I/O.
    ///
    /// ```
    /// use blacklight::{Loop, Mode};
    /// use std::{cell::Cell, rc::Rc, time::Duration};
    ///
    /// let lp = Loop::new()?;
    /// let done = Rc::new(Cell::new(false));
    /// let is_done = done.clone();
    /// lp.spawn(async move {
    ///     blacklight::sleep(Duration::from_millis(1)).await;
    ///     is_done.set(true);
    /// });
    /// lp.run(Mode::Default);
    /// assert!(done.get());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn spawn<F: Future + 'static>(&self, future: F) -> JoinHandle<F::Output> {
        let join = Rc::new(Join::new());
        if self.0.is_closed() {
            // Nobody would ever run it, nor drop it.
            drop(future);
            join.end(JoinError::cancelled());
            return JoinHandle {
                inner: self.0.clone(),
                join,
                task: Ready::NOBODY,
            };
        }
        let result = join.clone();
        // In a box of its own, since an async block would have room for it twice: for what it is
        // given, and for what it awaits.
        let mut running = Some(Box::pin(future));
        let tasks = &self.0.tasks;
        let task = tasks.insert(&self.0, |ready| {
            let header = tasks.header(ready);
            Task {
                future: Box::pin(poll_fn(move |context| {
                    let polled = running.as_mut().map(|future| future.as_mut().poll(context));
                    let Some(Poll::Ready(output)) = polled else {
                        return Poll::Pending;
                    };
                    running = None;
                    result.complete(Ok(output));
                    Poll::Ready(())
                })),
                waker: Waker::from(header.clone()),
                header,
                join: Completer(join.clone() as Rc<dyn Joined>),
            }
        });
        trace::task_spawned(&self.0, task.at);
        tasks.push(task);
        if !self.0.is_running() {
            self.0.note_backlog();
        }
        JoinHandle {
            inner: self.0.clone(),
            join,
            task,
        }
    }
}

/// Why a task or a job has no result.
///
/// ```
/// use blacklight::Loop;
///
/// let lp = Loop::new()?;
/// let error = lp.block_on(lp.spawn(async { panic!("oh") })).unwrap_err();
/// assert!(error.is_panic());
/// assert_eq!(error.to_string(), "panicked: oh");
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct JoinError(Option<Box<dyn Any + Send>>);

impl JoinError {
    pub(crate) fn cancelled() -> JoinError {
        JoinError(None)
    }

    pub(crate) fn panicked(panic: Box<dyn Any + Send>) -> JoinError {
        JoinError(Some(panic))
    }

    /// Whether it was cancelled, or its loop has gone.
    pub fn is_cancelled(&self) -> bool {
        self.0.is_none()
    }

    /// Whether it has panicked.
    pub fn is_panic(&self) -> bool {
        self.0.is_some()
    }

    /// What it has panicked with, for [`std::panic::resume_unwind`]; or this error again.
    ///
    /// ```
    /// use blacklight::Loop;
    ///
    /// let lp = Loop::new()?;
    /// let error = lp.block_on(lp.spawn(async { panic!("oh") })).unwrap_err();
    /// assert!(!error.is_cancelled());
    /// assert_eq!(*error.into_panic().unwrap().downcast::<&str>().unwrap(), "oh");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn into_panic(self) -> Result<Box<dyn Any + Send>, JoinError> {
        self.0.ok_or(JoinError(None))
    }

    fn message(&self) -> Option<&str> {
        let panic = self.0.as_ref()?;
        let text = panic.downcast_ref::<String>().map(String::as_str);
        text.or_else(|| panic.downcast_ref::<&str>().copied())
    }
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.0, self.message()) {
            (None, _) => f.write_str("cancelled"),
            (Some(_), None) => f.write_str("panicked"),
            (Some(_), Some(message)) => write!(f, "panicked: {message}"),
        }
    }
}

impl fmt::Debug for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JoinError({self})")
    }
}

impl std::error::Error for JoinError {}

impl From<JoinError> for std::io::Error {
    fn from(error: JoinError) -> std::io::Error {
        std::io::Error::other(error.to_string())
    }
}

/// Where a result goes, and who waits for it.
pub(crate) struct Join<T> {
    result: Cell<Option<Result<T, JoinError>>>,
    is_complete: Cell<bool>,
    waker: Cell<Option<Waker>>,
}

impl<T> Join<T> {
    pub(crate) fn new() -> Join<T> {
        Join {
            result: Cell::new(None),
            is_complete: Cell::new(false),
            waker: Cell::new(None),
        }
    }

    pub(crate) fn complete(&self, result: Result<T, JoinError>) {
        if !self.is_complete.replace(true) {
            self.result.set(Some(result));
            if let Some(waker) = self.waker.take() {
                waker.wake();
            }
        }
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.is_complete.get()
    }

    pub(crate) fn poll(&self, context: &Context<'_>) -> Poll<Result<T, JoinError>> {
        match self.result.take() {
            Some(result) => Poll::Ready(result),
            None => {
                assert!(!self.is_complete(), "a result is taken once");
                self.waker.set(Some(context.waker().clone()));
                Poll::Pending
            }
        }
    }
}

/// A [`Join`] of any type.
pub(crate) trait Joined {
    /// There is no result, unless there is one already.
    fn end(&self, why: JoinError);
}

impl<T> Joined for Join<T> {
    fn end(&self, why: JoinError) {
        self.complete(Err(why));
    }
}

/// Whoever has this sees to a result. If it is dropped without one, it was cancelled.
pub(crate) struct Completer<J: Joined + ?Sized>(pub(crate) Rc<J>);

impl<J: Joined + ?Sized> Drop for Completer<J> {
    fn drop(&mut self) {
        self.0.end(JoinError::cancelled());
    }
}

/// A task's result to come, and the means to cancel it. Dropping this leaves the task alone.
///
/// ```
/// use blacklight::Loop;
///
/// let lp = Loop::new()?;
/// lp.block_on(async {
///     let adding = blacklight::spawn(async { 1 + 1 });
///     assert_eq!(adding.await.unwrap(), 2);
///
///     let waiting = blacklight::spawn(std::future::pending::<()>());
///     waiting.cancel();
///     assert!(waiting.await.unwrap_err().is_cancelled());
///
///     let failing = blacklight::spawn(async { panic!("as expected") });
///     assert!(failing.await.unwrap_err().is_panic());
/// });
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct JoinHandle<T> {
    inner: Rc<Inner>,
    join: Rc<Join<T>>,
    task: Ready,
}

impl<T> JoinHandle<T> {
    /// Cancels the task: its future is dropped, at once unless it is what calls. A task that is
    /// over keeps its result.
    pub fn cancel(&self) {
        let removed = self.inner.tasks.remove(&self.inner, self.task);
        if removed.is_some() {
            trace::task_cancelled(&self.inner, self.task.at);
        }
        drop(removed);
    }

    /// Whether the task is over.
    pub fn is_finished(&self) -> bool {
        self.join.is_complete()
    }

    /// Lets the loop end although this task is not over.
    ///
    /// ```
    /// use blacklight::{Loop, Mode};
    /// use std::future::pending;
    ///
    /// let lp = Loop::new()?;
    /// let task = lp.spawn(pending::<()>());
    /// task.unref();
    /// lp.run(Mode::Default);
    /// assert!(!task.is_finished(), "it would wait for ever");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn unref(&self) {
        let tasks = &self.inner.tasks;
        let counted = tasks.with_place(self.task, |place| std::mem::take(&mut place.counts));
        if counted == Some(true) {
            tasks.count(&self.inner, false);
        }
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = Result<T, JoinError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.join.poll(context)
    }
}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinHandle")
            .field("finished", &self.is_finished())
            .finish()
    }
}
