//! Tasks: the loop's executor of futures.
//!
//! The loop's thread polls woken tasks one at a time:
//!
//! - Woken tasks run right after the callback (or the task) that woke them, in any phase, in the
//!   order of waking. A newly spawned task counts as woken. Tasks woken by other threads run in
//!   the poll phase, where asyncs are delivered.
//! - At most [`PASS`] polls follow one callback. The rest of the queue runs after the next
//!   callback, at the latest in the idle phase of the next turn; the loop does not sleep
//!   meanwhile. So tasks that wake each other, or themselves, for ever cannot starve I/O.
//! - After [`BUDGET`] operations that did not block, operations of the task return `Pending` and
//!   wake it again, so that a busy task cannot starve other tasks.
//! - A task keeps the loop running until it is over, like a request.
//!
//! A waker consists of the ID of its task and a flag that is set while the task is queued. On the
//! loop's thread, while the loop runs, waking pushes to the queue. Otherwise waking pushes to a
//! locked list and sends to the executor's async handle. Futures never leave the loop's thread,
//! and are dropped with nothing borrowed.

use crate::code::{Code, Polling};
use crate::current;
use crate::error::Error;
use crate::join_set::AbortOnDrop;
use crate::loop_::{Inner, LoopHandle};
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
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// The maximum number of polls after one callback.
pub(crate) const PASS: usize = 64;

/// The maximum number of operations that succeed in one poll of a task.
const BUDGET: u32 = 128;

/// The index that stands for the future of `block_on`.
const MAIN: u32 = u32::MAX;

/// Identifies a task. Stale IDs match no task.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct TaskId {
    at: u32,
    generation: u32,
}

impl TaskId {
    /// No task at all.
    const NONE: TaskId = TaskId {
        at: MAIN,
        generation: 0,
    };
}

/// The part of the executor that wakers on other threads use.
pub(crate) struct Shared {
    /// Tasks that were woken from other threads, or while the loop did not run.
    woken: Mutex<Vec<TaskId>>,
    /// Calls from other threads; `None` once the loop is gone.
    calls: Mutex<Option<Vec<Call>>>,
    sender: Sender,
}

/// What another thread has the loop's thread do. It must not run code of the program.
pub(crate) type Call = Box<dyn FnOnce(&LoopHandle) + Send>;

impl Shared {
    fn calls(&self) -> MutexGuard<'_, Option<Vec<Call>>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes a call to the loop's thread. Drops it if the loop is gone.
    pub(crate) fn call(&self, call: Call) {
        let mut call = Some(call);
        if let Some(calls) = &mut *self.calls() {
            calls.extend(call.take());
        }
        match call {
            None => {
                self.sender.send();
            }
            // Dropped with nothing locked.
            Some(call) => drop(call),
        }
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.calls().is_none()
    }
}

/// The state behind a task's wakers.
pub(crate) struct Header {
    shared: Arc<Shared>,
    task: TaskId,
    is_woken: AtomicBool,
}

impl Header {
    /// Clears the flag, and returns whether it was set. Synchronizes with the thread that woke
    /// the task.
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
    /// Dropped before `join`, which wakes the task that awaits the result.
    future: Pin<Box<dyn Future<Output = ()>>>,
    code: Code,
    header: Arc<Header>,
    waker: Waker,
    join: Completer<dyn Joined>,
}

struct Place {
    generation: u32,
    /// `None` while the task is polled.
    task: Option<Task>,
    /// Whether the task keeps the loop running.
    counts: bool,
}

pub(crate) struct Tasks {
    shared: Arc<Shared>,
    places: RefCell<Vec<Place>>,
    free: RefCell<Vec<u32>>,
    ready: RefCell<VecDeque<TaskId>>,
    /// The async handle with which other threads wake tasks. It is referenced while a task keeps
    /// the loop running.
    wakes: Key,
    /// The idle handle that is started while woken tasks are left over.
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
                calls: Mutex::new(Some(Vec::new())),
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

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub(crate) fn is_of(&self, shared: &Arc<Shared>) -> bool {
        Arc::ptr_eq(&self.shared, shared)
    }

    pub(crate) fn push(&self, task: TaskId) {
        self.ready.borrow_mut().push_back(task);
    }

    /// The code of the task that is to be polled next.
    pub(crate) fn ready_code(&self) -> Code {
        let next = self.ready.borrow().front().copied();
        next.map_or(Code::NONE, |task| self.code(task))
    }

    /// The code of the task that another thread has woken first.
    pub(crate) fn woken_code(&self) -> Code {
        let woken = self.shared.woken.lock();
        let woken = woken.unwrap_or_else(PoisonError::into_inner);
        let first = woken.first().copied();
        drop(woken);
        first.map_or(Code::NONE, |task| self.code(task))
    }

    fn code(&self, task: TaskId) -> Code {
        let code = |place: &mut Place| place.task.as_ref().map(|task| task.code);
        self.with_place(task, code).flatten().unwrap_or_default()
    }

    /// Queues the tasks that other threads have woken.
    fn collect_wakes(&self) {
        let woken = self.shared.woken.lock();
        let mut woken = woken.unwrap_or_else(PoisonError::into_inner);
        self.ready.borrow_mut().extend(woken.drain(..));
    }

    /// Creates the header of the future of `block_on`, and queues its first poll.
    pub(crate) fn new_main(&self) -> Arc<Header> {
        let task = TaskId {
            at: MAIN,
            generation: 0,
        };
        self.push(task);
        self.header(task)
    }

    fn header(&self, task: TaskId) -> Arc<Header> {
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

    /// Keeps the loop running until the result is dropped.
    pub(crate) fn keep_alive<'a>(&self, inner: &'a Inner) -> KeepAlive<'a> {
        self.count(inner, true);
        KeepAlive(inner)
    }

    fn insert(&self, inner: &Inner, make: impl FnOnce(TaskId) -> Task) -> TaskId {
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
        let task = TaskId {
            at,
            generation: place.generation,
        };
        place.task = Some(make(task));
        place.counts = true;
        drop(places);
        self.count(inner, true);
        task
    }

    /// Runs `f` on a task's place, if the task still exists.
    fn with_place<R>(&self, task: TaskId, f: impl FnOnce(&mut Place) -> R) -> Option<R> {
        let mut places = self.places.borrow_mut();
        let place = places.get_mut(task.at as usize)?;
        (place.generation == task.generation).then(|| f(place))
    }

    /// Removes a task, if it still exists. Returns the task, or `Some(None)` while it is polled.
    /// The caller drops the task with nothing borrowed.
    fn remove(&self, inner: &Inner, task: TaskId) -> Option<Option<Task>> {
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

    fn poll(&self, inner: &Inner, ready: TaskId) {
        let Some(mut task) = self.with_place(ready, |place| place.task.take()).flatten() else {
            return;
        };
        let _span = trace::poll(inner, Some(ready.at));
        task.header.take_wake();
        let _polling = Polling::begin(task.code);
        let mut context = Context::from_waker(&task.waker);
        let poll = || task.future.as_mut().poll(&mut context);
        let polled = catch_unwind(AssertUnwindSafe(|| self.with_budget(poll)));
        if let Ok(Poll::Pending) = polled {
            let mut task = Some(task);
            self.with_place(ready, |place| place.task = task.take());
            // A task that was cancelled during the poll.
            drop_task(inner, ready, task);
            return;
        }
        let removed = self.remove(inner, ready);
        match polled {
            Err(panic) => {
                trace::task_panicked(inner, ready.at);
                task.join.0.end(JoinError::panicked(panic));
            }
            // Otherwise the task cancelled itself, which was already traced.
            Ok(_) if removed.is_some() => trace::task_over(inner, ready.at),
            Ok(_) => {}
        }
        drop_task(inner, ready, task);
    }

    /// Drops all tasks.
    pub(crate) fn drop_all(&self) {
        let mut tasks = Vec::new();
        for place in self.places.borrow_mut().iter_mut() {
            place.generation = place.generation.wrapping_add(1);
            tasks.extend(place.task.take());
        }
        self.ready.borrow_mut().clear();
        let calls = self.shared.calls().take();
        drop((tasks, calls));
    }
}

/// Drops what is left of a task that was polled, perhaps with a result that nobody awaits. A panic
/// in that is the task's, like one in its poll.
fn drop_task(inner: &Inner, id: TaskId, task: impl Sized) {
    if catch_unwind(AssertUnwindSafe(|| drop(task))).is_err() {
        trace::task_panicked(inner, id.at);
    }
}

/// Keeps a loop running until this is dropped.
pub(crate) struct KeepAlive<'a>(&'a Inner);

impl Drop for KeepAlive<'_> {
    fn drop(&mut self) {
        self.0.tasks.count(self.0, false);
    }
}

impl Inner {
    /// Starts or stops the idle handle, so that the loop does not sleep while tasks are queued.
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

    /// Takes one operation from the budget of the task that is polled. If the budget is used up,
    /// wakes the task and returns `Pending`.
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

impl LoopHandle {
    /// Does what other threads ask for: queues the tasks that they have woken, and makes their
    /// calls.
    pub(crate) fn hear_others(&self) {
        self.0.tasks.collect_wakes();
        self.make_calls();
    }

    pub(crate) fn make_calls(&self) {
        let calls = self.0.tasks.shared.calls().as_mut().map(std::mem::take);
        for call in calls.into_iter().flatten() {
            call(self);
        }
    }

    /// Polls queued tasks while `polls` are left, and returns whether it has polled any. `main`
    /// polls the future of `block_on`.
    pub(crate) fn run_tasks(&self, polls: &mut usize, main: &mut dyn FnMut()) -> bool {
        let tasks = &self.0.tasks;
        let before = *polls;
        while *polls > 0 {
            let next = tasks.ready.borrow_mut().pop_front();
            match next {
                None => break,
                Some(TaskId { at: MAIN, .. }) => main(),
                Some(task) => tasks.poll(&self.0, task),
            }
            *polls -= 1;
        }
        *polls != before
    }

    /// Spawns a future as a task. The future need not be `Send`. The task starts right after the
    /// callback or task that spawns it, and keeps the loop running until it is over. Await the
    /// returned handle for the result, or use it to cancel the task; dropping the handle detaches
    /// the task.
    ///
    /// Woken tasks run right after the callback that woke them, in the order of waking; tasks
    /// woken by other threads run in the poll phase. After 64 polls the loop continues its turn
    /// first, so that busy tasks do not starve I/O.
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
            // A loop that is gone would neither run nor drop the task.
            drop(future);
            join.end(JoinError::cancelled());
            return JoinHandle {
                inner: self.0.clone(),
                join,
                task: TaskId::NONE,
            };
        }
        let code = Code::of_future(&future);
        let result = join.clone();
        // Boxed separately, because an async block would reserve space for the future twice: as a
        // captured variable and as the awaited value.
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
                code,
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

/// Lets other woken tasks and, now and then, the loop's callbacks run before this task goes on.
///
/// ```
/// use blacklight::Loop;
/// use std::{cell::Cell, rc::Rc};
///
/// let lp = Loop::new()?;
/// lp.block_on(async {
///     let has_run = Rc::new(Cell::new(false));
///     let its = has_run.clone();
///     blacklight::spawn(async move { its.set(true) });
///     assert!(!has_run.get());
///     blacklight::yield_now().await;
///     assert!(has_run.get());
/// });
/// # Ok::<(), std::io::Error>(())
/// ```
pub async fn yield_now() {
    let mut has_yielded = false;
    poll_fn(|context| {
        if std::mem::replace(&mut has_yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// The error of a task or a job that has no result: it panicked or was cancelled.
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
pub struct JoinError(Why);

enum Why {
    Cancelled,
    LoopGone,
    /// The message, if there is one, and the payload, behind a lock that makes errors `Sync`.
    Panicked(Option<String>, Mutex<Box<dyn Any + Send>>),
}

impl JoinError {
    pub(crate) fn cancelled() -> JoinError {
        JoinError(Why::Cancelled)
    }

    pub(crate) fn loop_gone() -> JoinError {
        JoinError(Why::LoopGone)
    }

    pub(crate) fn panicked(panic: Box<dyn Any + Send>) -> JoinError {
        let text = panic.downcast_ref::<String>().cloned();
        let message = text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
        JoinError(Why::Panicked(message, Mutex::new(panic)))
    }

    /// Whether the task was cancelled, explicitly or because its loop is gone.
    ///
    /// ```
    /// use blacklight::Loop;
    ///
    /// let lp = Loop::new()?;
    /// let task = lp.spawn(std::future::pending::<()>());
    /// task.abort();
    /// let error = lp.block_on(task).unwrap_err();
    /// assert!(error.is_cancelled() && !error.is_panic());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn is_cancelled(&self) -> bool {
        !self.is_panic()
    }

    /// Whether the loop of a [`Remote`](crate::Remote) was gone before the task was over.
    ///
    /// ```
    /// use blacklight::Loop;
    ///
    /// let lp = Loop::new()?;
    /// let remote = lp.remote();
    /// drop(lp);
    /// assert!(remote.spawn(async {}).join().unwrap_err().is_loop_gone());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn is_loop_gone(&self) -> bool {
        matches!(self.0, Why::LoopGone)
    }

    /// Whether the task panicked.
    ///
    /// ```
    /// use blacklight::Loop;
    ///
    /// let lp = Loop::new()?;
    /// let joined = lp.block_on(lp.spawn_blocking(|| panic!("oh")));
    /// assert!(joined.unwrap_err().is_panic());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn is_panic(&self) -> bool {
        matches!(self.0, Why::Panicked(..))
    }

    /// Returns the payload of the panic, for [`std::panic::resume_unwind`]; or this error if the
    /// task was cancelled.
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
        match self.0 {
            Why::Panicked(_, panic) => {
                Ok(panic.into_inner().unwrap_or_else(PoisonError::into_inner))
            }
            _ => Err(self),
        }
    }
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Why::Cancelled => f.write_str("cancelled"),
            Why::LoopGone => f.write_str("the loop is gone"),
            Why::Panicked(None, _) => f.write_str("panicked"),
            Why::Panicked(Some(message), _) => write!(f, "panicked: {message}"),
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
        match error.0 {
            Why::LoopGone => Error::LoopGone.into(),
            Why::Cancelled => Error::Cancelled.into(),
            Why::Panicked(..) => std::io::Error::other(error),
        }
    }
}

/// A result to come, and the waker of the task that awaits it.
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

/// A [`Join`] of any result type.
pub(crate) trait Joined {
    /// Completes with an error, unless a result is set already.
    fn end(&self, why: JoinError);
}

impl<T> Joined for Join<T> {
    fn end(&self, why: JoinError) {
        self.complete(Err(why));
    }
}

/// Owned by the producer of a result. Dropping it without a result completes the join as
/// cancelled.
pub(crate) struct Completer<J: Joined + ?Sized>(pub(crate) Rc<J>);

impl<J: Joined + ?Sized> Drop for Completer<J> {
    fn drop(&mut self) {
        self.0.end(JoinError::cancelled());
    }
}

/// A handle to await or cancel a task. Dropping it detaches the task.
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
///     waiting.abort();
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
    task: TaskId,
}

impl<T> JoinHandle<T> {
    /// Cancels the task and drops its future, at once or, if the task cancels itself, after its
    /// poll. Does nothing to a task that is over.
    ///
    /// ```
    /// use blacklight::{Loop, Mode};
    /// use std::rc::Rc;
    ///
    /// let lp = Loop::new()?;
    /// let owned = Rc::new("light");
    /// let its = owned.clone();
    /// let task = lp.spawn(async move {
    ///     std::future::pending::<()>().await;
    ///     drop(its);
    /// });
    /// task.abort();
    /// assert_eq!(Rc::strong_count(&owned), 1, "its future is dropped");
    /// assert!(!lp.run(Mode::Default));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn abort(&self) {
        let removed = self.inner.tasks.remove(&self.inner, self.task);
        if removed.is_some() {
            trace::task_cancelled(&self.inner, self.task.at);
        }
        drop(removed);
    }

    /// Whether the task is over.
    ///
    /// ```
    /// use blacklight::{Loop, Mode};
    ///
    /// let lp = Loop::new()?;
    /// let task = lp.spawn(async { 7 });
    /// assert!(!task.is_finished());
    /// lp.run(Mode::Default);
    /// assert!(task.is_finished());
    /// assert_eq!(lp.block_on(task).unwrap(), 7);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn is_finished(&self) -> bool {
        self.join.is_complete()
    }

    /// Returns a handle that aborts the task when it is dropped.
    ///
    /// ```
    /// use blacklight::{Loop, Mode};
    ///
    /// let lp = Loop::new()?;
    /// let task = lp.spawn(std::future::pending::<()>()).abort_on_drop();
    /// drop(task);
    /// assert!(!lp.run(Mode::Default));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn abort_on_drop(self) -> AbortOnDrop<T> {
        AbortOnDrop(self)
    }

    /// Wakes `waker` when the task ends. Polling the handle takes its place.
    pub(crate) fn wake_at_end(&self, waker: Waker) {
        self.join.waker.set(Some(waker));
    }

    /// Lets the loop end before this task is over.
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
