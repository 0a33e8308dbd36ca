//! The current loop, which is the innermost one that runs on this thread, and functions that use
//! it.

use crate::loop_::Loop;
use crate::task::{JoinHandle, Shared, TaskId};
use crate::time::{Elapsed, Interval, Sleep};
use crate::work::Blocking;
use std::cell::RefCell;
use std::sync::Arc;
use std::time::{Duration, Instant};

thread_local! {
    /// The innermost loop that runs on this thread.
    static CURRENT: RefCell<Option<Loop>> = const { RefCell::new(None) };
}

/// A run in progress. Dropping it, even in a panic, lets the loop be run again.
pub(crate) struct Running {
    /// The `Loop` that callbacks receive.
    lp: Loop,
    outer: Option<Loop>,
}

impl Running {
    pub(crate) fn lp(&self) -> &Loop {
        &self.lp
    }
}

impl Loop {
    pub(crate) fn begin_running(&self) -> Running {
        assert!(
            !self.0.is_running(),
            "a loop cannot be run from its own callbacks and tasks"
        );
        assert!(!self.0.is_closed(), "the loop is gone");
        self.0.set_running(true);
        let lp = Loop::uncounted(&self.0);
        let outer = CURRENT.replace(Some(lp.clone()));
        Running { lp, outer }
    }

    /// Returns the loop that runs on this thread: the one whose callback or task calls this.
    ///
    /// ```
    /// use blacklight::Loop;
    ///
    /// let lp = Loop::builder().name("mine").build()?;
    /// assert!(Loop::current().is_none());
    /// lp.block_on(async { assert_eq!(Loop::current().unwrap().name(), "mine") });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn current() -> Option<Loop> {
        CURRENT
            .try_with(|current| current.borrow().clone())
            .ok()
            .flatten()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if std::thread::panicking() && !self.lp.0.is_closed() {
            self.lp.0.give_up_run();
        }
        self.lp.0.set_running(false);
        // Drops the previous value after the borrow of the cell has ended.
        let _inner = CURRENT.replace(self.outer.take());
    }
}

/// Queues a woken task if its loop is the current one, and returns whether it is.
pub(crate) fn wake_here(shared: &Arc<Shared>, task: TaskId) -> bool {
    let woken = CURRENT.try_with(|current| match &*current.borrow() {
        Some(lp) if lp.0.tasks.is_of(shared) => {
            lp.0.tasks.push(task);
            true
        }
        _ => false,
    });
    woken.unwrap_or(false)
}

/// Returns the loop that runs on this thread; see [`Loop::current`].
///
/// ```
/// use blacklight::{Loop, UdpSocket};
///
/// async fn any_socket() -> std::io::Result<UdpSocket> {
///     UdpSocket::bind(&blacklight::current(), "127.0.0.1:0".parse().unwrap())
/// }
///
/// Loop::new()?.block_on(any_socket())?;
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Panics
///
/// If no loop runs on this thread.
#[track_caller]
pub fn current() -> Loop {
    Loop::current().expect("no loop runs on this thread; elsewhere, `Loop` has methods for this")
}

/// Spawns a task on the current loop; see [`Loop::spawn`].
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
/// If no loop runs on this thread.
#[track_caller]
pub fn spawn<F: Future + 'static>(future: F) -> JoinHandle<F::Output> {
    current().spawn(future)
}

/// Runs a closure on the thread pool; see [`Loop::spawn_blocking`].
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
/// If no loop runs on this thread.
#[track_caller]
pub fn spawn_blocking<T: Send + 'static>(job: impl FnOnce() -> T + Send + 'static) -> Blocking<T> {
    current().spawn_blocking(job)
}

/// Waits for a duration on the current loop; see [`Loop::sleep`].
///
/// ```
/// use blacklight::Loop;
/// use std::time::Duration;
///
/// let lp = Loop::new()?;
/// lp.block_on(async { blacklight::sleep(Duration::from_millis(1)).await });
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Panics
///
/// If no loop runs on this thread.
#[track_caller]
pub fn sleep(time: Duration) -> Sleep {
    current().sleep(time)
}

/// Waits until a moment on the current loop; see [`Loop::sleep_until`].
///
/// ```
/// use blacklight::Loop;
/// use std::time::{Duration, Instant};
///
/// let lp = Loop::new()?;
/// let moment = Instant::now() + Duration::from_millis(1);
/// lp.block_on(async { blacklight::sleep_until(moment).await });
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Panics
///
/// If no loop runs on this thread.
#[track_caller]
pub fn sleep_until(moment: Instant) -> Sleep {
    current().sleep_until(moment)
}

/// Waits for a future on the current loop, but not for longer than `time`; see
/// [`Loop::timeout`].
///
/// ```
/// use blacklight::Loop;
/// use std::{future::pending, time::Duration};
///
/// let lp = Loop::new()?;
/// let late = lp.block_on(async {
///     blacklight::timeout(Duration::from_millis(1), pending::<()>()).await
/// });
/// assert!(late.is_err());
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Panics
///
/// If no loop runs on this thread.
#[track_caller]
pub fn timeout<F: Future>(
    time: Duration,
    future: F,
) -> impl Future<Output = Result<F::Output, Elapsed>> {
    current().timeout(time, future)
}

/// Ticks every `period` on the current loop; see [`Loop::interval`].
///
/// ```
/// use blacklight::Loop;
/// use std::time::Duration;
///
/// let lp = Loop::new()?;
/// lp.block_on(async {
///     let mut interval = blacklight::interval(Duration::from_millis(1));
///     interval.tick().await;
///     interval.tick().await;
/// });
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Panics
///
/// If no loop runs on this thread, or if the period is zero.
#[track_caller]
pub fn interval(period: Duration) -> Interval {
    current().interval(period)
}
