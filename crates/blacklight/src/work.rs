//! Jobs for the thread pool.

use crate::code::Code;
use crate::current::here;
use crate::loop_::{Inner, LoopHandle};
use crate::table::Entry;
use crate::task::{Completer, Join, JoinError};
use blacklight_engine::{Event, Job, RequestKey, WorkKind};
use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

impl LoopHandle {
    /// Runs `job` on the thread pool, and then `after` with its result on the loop's thread. The
    /// loop keeps running until then. [`spawn_blocking`](crate::spawn_blocking) says what shares
    /// the pool.
    ///
    /// ```
    /// use blacklight::{Loop, Mode};
    ///
    /// let lp = Loop::new()?;
    /// lp.work(|| 6 * 7, |_, result| assert_eq!(result.unwrap(), 42))?;
    /// lp.run(Mode::Default);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn work<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
        after: impl FnOnce(&LoopHandle, Result<T, JoinError>) + 'static,
    ) -> io::Result<Work> {
        let code = Code::of(&after);
        self.0.submit(WorkKind::Cpu, job, code, after)
    }

    /// Runs `job` on the thread pool; see [`spawn_blocking`](crate::spawn_blocking).
    ///
    /// ```
    /// use blacklight::Loop;
    ///
    /// let lp = Loop::new()?;
    /// let sum = lp.block_on(lp.spawn_blocking(|| (1..=100).sum::<u32>()));
    /// assert_eq!(sum.unwrap(), 5050);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn spawn_blocking<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Blocking<T> {
        self.0.spawn_blocking(WorkKind::Cpu, job)
    }
}

impl Inner {
    /// Submits a job of any kind; see [`LoopHandle::work`]. `code` is that of the program's own callback.
    pub(crate) fn submit<T: Send + 'static>(
        self: &Rc<Self>,
        kind: WorkKind,
        job: impl FnOnce() -> T + Send + 'static,
        code: Code,
        after: impl FnOnce(&LoopHandle, Result<T, JoinError>) + 'static,
    ) -> io::Result<Work> {
        let result = Arc::new(Mutex::new(None));
        let its_result = result.clone();
        let job = Job::new(move || {
            let outcome = catch_unwind(AssertUnwindSafe(job));
            *its_result.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
        });
        let completion = move |lp: &LoopHandle, event: Event| {
            let outcome = result.lock().unwrap_or_else(PoisonError::into_inner).take();
            let outcome = match (event, outcome) {
                (Event::Work(_, Ok(())), Some(outcome)) => outcome.map_err(JoinError::panicked),
                _ => Err(JoinError::cancelled()),
            };
            after(lp, outcome);
        };
        let entry = Entry::Request(code, Box::new(completion));
        // A refused job is dropped after the borrow of the engine ends, since its drop may use
        // the loop.
        let mut refused = None;
        let (key, _) = self.register(entry, |engine, token| {
            let submitted = engine.work_submit(token, kind, job);
            submitted.map_err(|(error, job)| {
                refused = Some(job);
                error
            })
        })?;
        Ok(Work {
            inner: self.clone(),
            key,
        })
    }

    /// See [`LoopHandle::spawn_blocking`].
    pub(crate) fn spawn_blocking<T: Send + 'static>(
        self: &Rc<Self>,
        kind: WorkKind,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Blocking<T> {
        let join = Rc::new(Join::new());
        let completer = Completer(join.clone());
        let after = move |_: &LoopHandle, result| completer.0.complete(result);
        let work = self.submit(kind, job, Code::polled(), after);
        // If no thread could be started, the completer was dropped, which cancels the join.
        Blocking {
            join,
            work: work.ok(),
        }
    }
}

/// A job on the thread pool. Dropping this does not cancel the job.
///
/// ```
/// use blacklight::{Loop, Mode};
///
/// let lp = Loop::new()?;
/// let work = lp.work(|| "done", |_, result| match result {
///     Ok(text) => assert_eq!(text, "done"),
///     Err(error) => assert!(error.is_cancelled()),
/// })?;
/// work.cancel();
/// lp.run(Mode::Default);
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Work {
    inner: Rc<Inner>,
    key: RequestKey,
}

impl Work {
    /// Cancels the job if no thread has started it yet, and returns whether it was cancelled. The
    /// result of a cancelled job is an error.
    ///
    /// ```
    /// use blacklight::{Loop, Mode};
    /// use std::{cell::Cell, rc::Rc};
    ///
    /// let lp = Loop::new()?;
    /// let told = Rc::new(Cell::new(None));
    /// let tell = told.clone();
    /// let work = lp.work(|| (), move |_, result| tell.set(Some(result.is_err())))?;
    /// let is_cancelled = work.cancel();
    /// lp.run(Mode::Default);
    /// assert_eq!(told.get(), Some(is_cancelled), "either way it is told");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn cancel(&self) -> bool {
        // The job is dropped after the borrow of the engine ends, since its drop may use the
        // loop.
        let job = self.inner.engine().work_take_back(self.key);
        job.is_ok()
    }
}

impl fmt::Debug for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Work").finish_non_exhaustive()
    }
}

/// A future of a job's result; see [`spawn_blocking`](crate::spawn_blocking). Dropping it does not cancel the job.
///
/// ```
/// use blacklight::{Blocking, Loop, Mode};
///
/// let lp = Loop::new()?;
/// let mut sum: Blocking<u32> = lp.spawn_blocking(|| (1..=100).sum());
/// assert!(!sum.is_finished(), "the loop delivers the result");
/// let is_cancelled = sum.abort();
/// lp.run(Mode::Default);
/// assert!(sum.is_finished());
/// assert_eq!(lp.block_on(sum).is_err(), is_cancelled);
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Blocking<T> {
    join: Rc<Join<T>>,
    work: Option<Work>,
}

impl<T> Blocking<T> {
    /// Cancels the job if no thread has started it yet, and returns whether it was cancelled.
    ///
    /// ```
    /// use blacklight::{Loop, Mode};
    ///
    /// let lp = Loop::new()?;
    /// let job = lp.spawn_blocking(|| 7);
    /// match job.abort() {
    ///     true => assert!(lp.block_on(job).unwrap_err().is_cancelled()),
    ///     // A thread was quicker.
    ///     false => assert_eq!(lp.block_on(job).unwrap(), 7),
    /// }
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn abort(&self) -> bool {
        self.work.as_ref().is_some_and(Work::cancel)
    }

    /// Whether the result is available.
    ///
    /// ```
    /// use blacklight::{Loop, Mode};
    ///
    /// let lp = Loop::new()?;
    /// let job = lp.spawn_blocking(|| 7);
    /// assert!(!job.is_finished(), "the loop delivers the result");
    /// lp.run(Mode::Default);
    /// assert!(job.is_finished());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn is_finished(&self) -> bool {
        self.join.is_complete()
    }
}

impl<T> Future for Blocking<T> {
    type Output = Result<T, JoinError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.join.poll(context)
    }
}

impl<T> fmt::Debug for Blocking<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Blocking")
            .field("finished", &self.is_finished())
            .finish()
    }
}

/// A job that is cancelled if it has not started when this is dropped. A started job runs to its
/// end, and its result is dropped.
pub(crate) enum OnPool<T> {
    Job(Blocking<io::Result<T>>),
    /// There was no loop, until the error is returned.
    Failed(Option<io::Error>),
}

impl<T: Send + 'static> OnPool<T> {
    /// Submits a job to the current loop.
    pub(crate) fn new(
        kind: WorkKind,
        job: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> OnPool<T> {
        match here() {
            Ok(lp) => OnPool::Job(lp.0.spawn_blocking(kind, job)),
            Err(error) => OnPool::Failed(Some(error)),
        }
    }
}

impl<T> Drop for OnPool<T> {
    fn drop(&mut self) {
        if let OnPool::Job(job) = self {
            job.abort();
        }
    }
}

impl<T> Future for OnPool<T> {
    type Output = io::Result<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        match &mut *self {
            OnPool::Job(job) => {
                let polled = Pin::new(job).poll(context);
                polled.map(|result| result.unwrap_or_else(|error| Err(error.into())))
            }
            OnPool::Failed(error) => Poll::Ready(Err(error.take().expect("polled once"))),
        }
    }
}
