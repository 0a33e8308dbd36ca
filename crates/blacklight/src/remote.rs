//! Spawning on a loop from other threads.
//!
//! A remote puts a call into a queue that the loop's thread takes it out of, as it does with tasks
//! that other threads have woken. The call spawns the task, and a second task beside it that
//! passes on its result. Each call owns the [`Completer`] of its result from the beginning: however
//! the call or the tasks are dropped, whoever waits is told.

use crate::current;
use crate::loop_::LoopHandle;
use crate::task::{JoinError, Shared};
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

impl LoopHandle {
    /// Returns a remote, with which other threads spawn tasks on this loop.
    ///
    /// ```
    /// use blacklight::Loop;
    /// use std::thread;
    ///
    /// let lp = Loop::new()?;
    /// let remote = lp.remote();
    /// let worker = thread::spawn(move || {
    ///     // This runs on the loop's thread.
    ///     remote.spawn(async { thread::current().id() }).join()
    /// });
    /// lp.block_on(async {
    ///     while !worker.is_finished() {
    ///         blacklight::sleep(std::time::Duration::from_millis(1)).await;
    ///     }
    /// });
    /// assert_eq!(worker.join().unwrap().unwrap(), thread::current().id());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn remote(&self) -> Remote {
        Remote(self.0.tasks.shared().clone())
    }
}

/// Spawns tasks on a loop from any thread; see [`LoopHandle::remote`].
///
/// A remote does not keep its loop running; a task that it has spawned does.
///
/// ```
/// use blacklight::{Loop, Remote};
/// use std::{sync::mpsc, thread, time::Duration};
///
/// let (tell, told) = mpsc::channel::<Remote>();
/// let server = thread::spawn(move || {
///     let lp = Loop::new().unwrap();
///     tell.send(lp.remote()).unwrap();
///     lp.block_on(blacklight::sleep(Duration::from_millis(50)));
/// });
/// let remote = told.recv().unwrap();
/// let task = remote.spawn_with(|| async {
///     blacklight::sleep(Duration::from_millis(1)).await;
///     6 * 7
/// });
/// assert_eq!(task.join().unwrap(), 42);
/// server.join().unwrap();
/// // The loop is gone.
/// assert!(remote.spawn(async {}).join().unwrap_err().is_loop_gone());
/// ```
#[derive(Clone)]
pub struct Remote(Arc<Shared>);

impl Remote {
    /// Spawns a future on the loop. If the loop is gone, now or before the task is over, its
    /// result is an error. The future must be `Send`, as those of this crate are not; for these,
    /// use [`spawn_with`](Remote::spawn_with).
    ///
    /// ```
    /// use blacklight::Loop;
    ///
    /// let lp = Loop::new()?;
    /// let task = lp.remote().spawn(async { 6 * 7 });
    /// assert_eq!(lp.block_on(task).unwrap(), 42);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn spawn<F>(&self, future: F) -> RemoteHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send,
    {
        self.spawn_with(move || future)
    }

    /// Spawns the future that `make` returns, which need not be `Send`: `make` is called on the
    /// loop's thread.
    ///
    /// ```
    /// use blacklight::Loop;
    /// use std::{rc::Rc, thread};
    ///
    /// let lp = Loop::new()?;
    /// let remote = lp.remote();
    /// let task = thread::spawn(move || {
    ///     remote.spawn_with(|| async {
    ///         let shared = Rc::new(7);
    ///         blacklight::yield_now().await;
    ///         *shared
    ///     })
    /// });
    /// assert_eq!(lp.block_on(task.join().unwrap()).unwrap(), 7);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn spawn_with<F>(
        &self,
        make: impl FnOnce() -> F + Send + 'static,
    ) -> RemoteHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: Send,
    {
        let state = Arc::new(State {
            progress: Mutex::new(Progress {
                result: None,
                is_over: false,
                is_aborted: false,
                joiner: None,
                task: None,
            }),
            ended: Condvar::new(),
        });
        let completer = Completer(state.clone());
        self.0.call(Box::new(move |lp| {
            let own = lp.clone();
            drop(lp.spawn(async move {
                // From here, so that one that was aborted before does not begin. And `make` within
                // the task, so that a panic is the task's.
                let mut task = own.spawn(async move { make().await });
                let result = poll_fn(|context| {
                    if completer.0.is_aborted(context) {
                        task.abort();
                    }
                    Pin::new(&mut task).poll(context)
                });
                let result = result.await;
                completer.0.complete(result);
            }));
        }));
        RemoteHandle {
            state,
            remote: self.clone(),
        }
    }

    /// Whether the loop is gone.
    ///
    /// ```
    /// use blacklight::Loop;
    ///
    /// let lp = Loop::new()?;
    /// let remote = lp.remote();
    /// assert!(!remote.is_gone());
    /// drop(lp);
    /// assert!(remote.is_gone());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn is_gone(&self) -> bool {
        self.0.is_gone()
    }
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote")
            .field("gone", &self.is_gone())
            .finish()
    }
}

struct Progress<T> {
    result: Option<Result<T, JoinError>>,
    is_over: bool,
    is_aborted: bool,
    /// The task that awaits the result.
    joiner: Option<Waker>,
    /// The task on the loop that passes on the result.
    task: Option<Waker>,
}

struct State<T> {
    progress: Mutex<Progress<T>>,
    ended: Condvar,
}

impl<T> State<T> {
    fn lock(&self) -> MutexGuard<'_, Progress<T>> {
        // Nothing panics while it is locked.
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn complete(&self, result: Result<T, JoinError>) {
        let mut progress = self.lock();
        if progress.is_over {
            return;
        }
        progress.is_over = true;
        progress.result = Some(result);
        let (joiner, task) = (progress.joiner.take(), progress.task.take());
        drop(progress);
        drop(task);
        self.ended.notify_all();
        if let Some(joiner) = joiner {
            joiner.wake();
        }
    }

    /// Whether to abort the task. If not, the task is woken when that changes.
    fn is_aborted(&self, context: &Context<'_>) -> bool {
        let waker = context.waker().clone();
        let mut progress = self.lock();
        let before = progress.task.replace(waker);
        let is_aborted = progress.is_aborted;
        drop(progress);
        drop(before);
        is_aborted
    }
}

/// Owned by the producer of a result. Only a loop that goes drops it without one.
struct Completer<T>(Arc<State<T>>);

impl<T> Drop for Completer<T> {
    fn drop(&mut self) {
        self.0.complete(Err(JoinError::loop_gone()));
    }
}

/// A handle of a task on the loop of a [`Remote`]: a future for any executor. Dropping it detaches
/// the task.
///
/// ```
/// use blacklight::{Loop, RemoteHandle};
///
/// let lp = Loop::new()?;
/// let remote = lp.remote();
/// let waiting: RemoteHandle<()> = remote.spawn(std::future::pending());
/// waiting.abort();
/// assert!(lp.block_on(waiting).unwrap_err().is_cancelled());
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct RemoteHandle<T> {
    state: Arc<State<T>>,
    remote: Remote,
}

impl<T> RemoteHandle<T> {
    /// Blocks the thread until the task is over, and returns its result.
    ///
    /// # Panics
    ///
    /// If the result was taken, by polling the handle to its end. On the loop's own thread, unless
    /// the task is over: nobody else runs the loop, so this would wait for ever.
    ///
    /// ```
    /// use blacklight::Loop;
    /// use std::sync::mpsc;
    /// use std::thread;
    ///
    /// let (tell, told) = mpsc::channel();
    /// let server = thread::spawn(move || {
    ///     let lp = Loop::new().unwrap();
    ///     tell.send(lp.remote()).unwrap();
    ///     lp.block_on(blacklight::sleep(std::time::Duration::from_millis(20)));
    /// });
    /// let remote = told.recv().unwrap();
    /// let task = remote.spawn(async { panic!("oh") });
    /// assert!(task.join().unwrap_err().is_panic());
    /// server.join().unwrap();
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn join(self) -> Result<T, JoinError> {
        let mut progress = self.state.lock();
        loop {
            if let Some(result) = progress.result.take() {
                return result;
            }
            assert!(!progress.is_over, "a result is taken once");
            if current::is_of_this_thread(&self.remote.0) {
                drop(progress);
                panic!("a loop's own thread cannot block until a task of the loop is over");
            }
            let woken = self.state.ended.wait(progress);
            progress = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Aborts the task soon: its loop drops the future.
    ///
    /// ```
    /// use blacklight::Loop;
    /// use std::future::pending;
    ///
    /// let lp = Loop::new()?;
    /// let task = lp.remote().spawn(pending::<()>());
    /// task.abort();
    /// assert!(lp.block_on(task).unwrap_err().is_cancelled());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn abort(&self) {
        let mut progress = self.state.lock();
        progress.is_aborted = true;
        let task = progress.task.take();
        drop(progress);
        if let Some(task) = task {
            task.wake();
        }
    }

    /// Whether the task is over.
    ///
    /// ```
    /// use blacklight::{Loop, Mode};
    ///
    /// let lp = Loop::new()?;
    /// let task = lp.remote().spawn(async {});
    /// assert!(!task.is_finished());
    /// lp.run(Mode::Default);
    /// assert!(task.is_finished());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn is_finished(&self) -> bool {
        self.state.lock().is_over
    }
}

impl<T> Future for RemoteHandle<T> {
    type Output = Result<T, JoinError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let waker = context.waker().clone();
        let mut progress = self.state.lock();
        if let Some(result) = progress.result.take() {
            return Poll::Ready(result);
        }
        assert!(!progress.is_over, "a result is taken once");
        let before = progress.joiner.replace(waker);
        drop(progress);
        drop(before);
        Poll::Pending
    }
}

impl<T> fmt::Debug for RemoteHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteHandle")
            .field("finished", &self.is_finished())
            .finish()
    }
}
