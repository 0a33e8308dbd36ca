//! Sets of tasks, and handles that abort their task when dropped.

use crate::current::current;
use crate::task::{JoinError, JoinHandle};
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// Tasks that end, and whoever waits for them.
#[derive(Default)]
struct Ended {
    numbers: VecDeque<u64>,
    waiter: Option<Waker>,
}

/// The waker that a task of a set wakes when it ends.
struct Member {
    number: u64,
    ended: Arc<Mutex<Ended>>,
}

fn lock(ended: &Mutex<Ended>) -> MutexGuard<'_, Ended> {
    ended.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Wake for Member {
    fn wake(self: Arc<Self>) {
        let mut ended = lock(&self.ended);
        ended.numbers.push_back(self.number);
        let waiter = ended.waiter.take();
        drop(ended);
        if let Some(waiter) = waiter {
            waiter.wake();
        }
    }
}

/// A set of tasks, whose results come in the order in which they end. Dropping the set aborts the
/// tasks.
///
/// All tasks of a set have one type of result, and each result is kept until it is joined. So a
/// server that spawns a task for each client joins those that are over meanwhile, as below or with
/// [`try_join_next`](JoinSet::try_join_next) after each `accept`, and knows at its end which are
/// left. For results that nobody needs, [`spawn`](crate::spawn) is
/// enough.
///
/// ```
/// use blacklight::{JoinSet, Loop, TcpListener, TcpStream};
/// use futures_lite::future::or;
/// use std::io;
///
/// async fn serve(listener: TcpListener, clients: u32) -> io::Result<u32> {
///     let (mut tasks, mut served) = (JoinSet::new(), 0);
///     for _ in 0..clients {
///         let accept = async { Some(listener.accept().await) };
///         let reap = async {
///             while tasks.join_next().await.is_some() {
///                 served += 1;
///             }
///             std::future::pending().await // Only the listener ends this.
///         };
///         let Some(accepted) = or(accept, reap).await else { break };
///         let (client, _) = accepted?;
///         tasks.spawn(async move { client.write_all(b"hello").await });
///     }
///     while tasks.join_next().await.is_some() {
///         served += 1;
///     }
///     Ok(served)
/// }
///
/// let lp = Loop::new()?;
/// lp.block_on(async {
///     let listener = TcpListener::bind("127.0.0.1:0").await?;
///     let address = listener.local_addr()?;
///     let server = blacklight::spawn(serve(listener, 2));
///     for _ in 0..2 {
///         let mut hello = Vec::new();
///         TcpStream::connect(address).await?.read_to_end(&mut hello).await?;
///         assert_eq!(hello, b"hello");
///     }
///     assert_eq!(server.await??, 2);
///     # Ok::<(), std::io::Error>(())
/// })?;
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// Joining all:
///
/// ```
/// use blacklight::{JoinSet, Loop};
/// use std::time::Duration;
///
/// let lp = Loop::new()?;
/// lp.block_on(async {
///     let mut tasks = JoinSet::new();
///     for ms in [2, 1] {
///         tasks.spawn(async move {
///             blacklight::sleep(Duration::from_millis(ms)).await;
///             ms
///         });
///     }
///     let mut sum = 0;
///     while let Some(ms) = tasks.join_next().await {
///         sum += ms.unwrap();
///     }
///     assert_eq!(sum, 3);
/// });
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct JoinSet<T> {
    tasks: HashMap<u64, JoinHandle<T>>,
    next: u64,
    ended: Arc<Mutex<Ended>>,
}

impl<T> Default for JoinSet<T> {
    fn default() -> JoinSet<T> {
        JoinSet::new()
    }
}

impl<T> JoinSet<T> {
    /// Creates an empty set.
    ///
    /// ```
    /// use blacklight::JoinSet;
    ///
    /// assert!(JoinSet::<()>::new().is_empty());
    /// ```
    pub fn new() -> JoinSet<T> {
        JoinSet {
            tasks: HashMap::new(),
            next: 0,
            ended: Arc::default(),
        }
    }

    /// Spawns a task on the current loop; see [`spawn`](crate::spawn).
    ///
    /// # Panics
    ///
    /// If there is no [current loop](crate::current).
    ///
    /// ```
    /// use blacklight::{JoinSet, Loop};
    /// use std::rc::Rc;
    ///
    /// let lp = Loop::new()?;
    /// let text = Rc::new("light");
    /// let mut tasks = JoinSet::new();
    /// for at in 0..3 {
    ///     let text = text.clone();
    ///     tasks.spawn(async move { text.as_bytes()[at] });
    /// }
    /// assert_eq!(tasks.len(), 3);
    /// lp.block_on(async {
    ///     let mut bytes = Vec::new();
    ///     while let Some(byte) = tasks.join_next().await {
    ///         bytes.push(byte.unwrap());
    ///     }
    ///     assert_eq!(bytes, b"lig");
    ///     assert!(tasks.is_empty());
    /// });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn spawn(&mut self, future: impl Future<Output = T> + 'static)
    where
        T: 'static,
    {
        let number = self.next;
        self.next += 1;
        let task = current().spawn(future);
        let ended = self.ended.clone();
        let waker = Waker::from(Arc::new(Member { number, ended }));
        match task.is_finished() {
            // The loop is gone.
            true => waker.wake(),
            false => task.wake_at_end(waker),
        }
        self.tasks.insert(number, task);
    }

    /// How many tasks have not been joined.
    ///
    /// ```
    /// use blacklight::{JoinSet, Loop};
    ///
    /// let lp = Loop::new()?;
    /// let mut tasks = JoinSet::new();
    /// tasks.spawn(async {});
    /// tasks.spawn(async {});
    /// lp.block_on(tasks.join_next()).unwrap().unwrap();
    /// assert_eq!(tasks.len(), 1);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Whether all tasks have been joined.
    ///
    /// ```
    /// use blacklight::{JoinSet, Loop};
    ///
    /// let lp = Loop::new()?;
    /// let mut tasks = JoinSet::new();
    /// tasks.spawn(async {});
    /// assert!(!tasks.is_empty());
    /// lp.block_on(tasks.join_next()).unwrap().unwrap();
    /// assert!(tasks.is_empty());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Waits for the next task to end, and returns its result, or the error of a task that panicked
    /// or was aborted; `None` if all have been joined. Cancel-safe: a result that nobody has
    /// received is the next call's.
    ///
    /// ```
    /// use blacklight::{JoinSet, Loop};
    ///
    /// let lp = Loop::new()?;
    /// let mut tasks = JoinSet::new();
    /// tasks.spawn(async { 7 });
    /// tasks.spawn(async { panic!("oh") });
    /// lp.block_on(async {
    ///     assert_eq!(tasks.join_next().await.unwrap().unwrap(), 7);
    ///     assert!(tasks.join_next().await.unwrap().unwrap_err().is_panic());
    ///     assert!(tasks.join_next().await.is_none());
    /// });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub async fn join_next(&mut self) -> Option<Result<T, JoinError>> {
        poll_fn(|context| self.poll_join_next(context)).await
    }

    /// Returns the result of a task that has ended, without waiting for one.
    ///
    /// ```
    /// use blacklight::{JoinSet, Loop, yield_now};
    ///
    /// let lp = Loop::new()?;
    /// let mut tasks = JoinSet::new();
    /// tasks.spawn(async { 7 });
    /// assert!(tasks.try_join_next().is_none(), "it has not begun");
    /// lp.block_on(yield_now());
    /// assert_eq!(tasks.try_join_next().unwrap().unwrap(), 7);
    /// assert!(tasks.is_empty());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn try_join_next(&mut self) -> Option<Result<T, JoinError>> {
        let number = lock(&self.ended).numbers.pop_front()?;
        match self.join(number) {
            Poll::Ready(result) => Some(result),
            Poll::Pending => None,
        }
    }

    /// Takes out a task that has ended.
    fn join(&mut self, number: u64) -> Poll<Result<T, JoinError>> {
        let mut task = self.tasks.remove(&number).expect("a task ends once");
        Pin::new(&mut task).poll(&mut Context::from_waker(Waker::noop()))
    }

    /// Polls for the result of the next task; see [`join_next`](JoinSet::join_next).
    ///
    /// ```
    /// use blacklight::{JoinSet, Loop};
    /// use std::future::poll_fn;
    ///
    /// let lp = Loop::new()?;
    /// let mut tasks = JoinSet::new();
    /// tasks.spawn(async { 7 });
    /// let seven = lp.block_on(poll_fn(|context| tasks.poll_join_next(context)));
    /// assert_eq!(seven.unwrap().unwrap(), 7);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn poll_join_next(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<T, JoinError>>> {
        if self.tasks.is_empty() {
            return Poll::Ready(None);
        }
        let mut ended = lock(&self.ended);
        let Some(number) = ended.numbers.pop_front() else {
            let before = ended.waiter.replace(context.waker().clone());
            drop(ended);
            drop(before);
            return Poll::Pending;
        };
        drop(ended);
        self.join(number).map(Some)
    }

    /// Aborts all tasks. They still have to be joined, unless the set is dropped.
    ///
    /// ```
    /// use blacklight::{JoinSet, Loop};
    /// use std::future::pending;
    ///
    /// let lp = Loop::new()?;
    /// let mut tasks = JoinSet::new();
    /// tasks.spawn(pending::<()>());
    /// tasks.abort_all();
    /// let joined = lp.block_on(tasks.join_next()).unwrap();
    /// assert!(joined.unwrap_err().is_cancelled());
    /// assert!(tasks.is_empty());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn abort_all(&mut self) {
        for task in self.tasks.values() {
            task.abort();
        }
    }

    /// Lets the tasks go on without the set.
    ///
    /// ```
    /// use blacklight::{JoinSet, Loop, Mode};
    ///
    /// let lp = Loop::new()?;
    /// let mut tasks = JoinSet::new();
    /// tasks.spawn(async { println!("it goes on") });
    /// tasks.detach_all();
    /// assert_eq!(tasks.len(), 0);
    /// lp.run(Mode::Default);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn detach_all(&mut self) {
        self.tasks.clear();
        // Those that go on tell the set before, which nobody asks any more.
        let before = std::mem::take(&mut self.ended);
        let waiter = lock(&before).waiter.take();
        if let Some(waiter) = waiter {
            waiter.wake();
        }
    }
}

impl<T> Drop for JoinSet<T> {
    fn drop(&mut self) {
        self.abort_all();
    }
}

impl<T> fmt::Debug for JoinSet<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinSet").field("len", &self.len()).finish()
    }
}

/// A handle of a task that aborts it when dropped; see [`JoinHandle::abort_on_drop`].
///
/// ```
/// use blacklight::{AbortOnDrop, Loop, Mode};
/// use std::future::pending;
///
/// let lp = Loop::new()?;
/// let waiting: AbortOnDrop<()> = lp.spawn(pending()).abort_on_drop();
/// drop(waiting);
/// assert!(!lp.run(Mode::Default), "there is nothing left to do");
/// assert_eq!(lp.block_on(lp.spawn(async { 7 }).abort_on_drop()).unwrap(), 7);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "dropping this aborts the task"]
pub struct AbortOnDrop<T>(pub(crate) JoinHandle<T>);

impl<T> AbortOnDrop<T> {
    /// Whether the task is over.
    ///
    /// ```
    /// use blacklight::{Loop, Mode};
    ///
    /// let lp = Loop::new()?;
    /// let task = lp.spawn(async {}).abort_on_drop();
    /// assert!(!task.is_finished());
    /// lp.run(Mode::Default);
    /// assert!(task.is_finished());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn is_finished(&self) -> bool {
        self.0.is_finished()
    }
}

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl<T> Future for AbortOnDrop<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context)
    }
}
