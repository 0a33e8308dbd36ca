//! A signal to stop, for tasks on any thread.

use std::collections::HashMap;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

#[derive(Default)]
struct State {
    is_stopped: bool,
    next: u64,
    /// The futures that wait.
    waiting: HashMap<u64, Waker>,
}

/// Tells any number of tasks, on any threads, that they should come to an end. Clones are the same
/// signal.
///
/// ```
/// use blacklight::{Loop, Stop};
///
/// let lp = Loop::new()?;
/// lp.block_on(async {
///     let stop = Stop::new();
///     let its = stop.clone();
///     let server = blacklight::spawn(async move {
///         its.stopped().await;
///         "finished"
///     });
///     stop.stop();
///     assert_eq!(server.await.unwrap(), "finished");
///     stop.stopped().await; // From now on, that is at once.
/// });
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct Stop(Arc<Mutex<State>>);

impl Stop {
    /// Creates a signal.
    ///
    /// ```
    /// use blacklight::Stop;
    ///
    /// assert!(!Stop::new().is_stopped());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn new() -> Stop {
        Stop::default()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the signal, for good.
    ///
    /// ```
    /// use blacklight::{Loop, Stop};
    ///
    /// let stop = Stop::new();
    /// let threads = [(); 2].map(|()| {
    ///     let its = stop.clone();
    ///     std::thread::spawn(move || Loop::new().unwrap().block_on(its.stopped()))
    /// });
    /// stop.stop();
    /// for thread in threads {
    ///     thread.join().unwrap();
    /// }
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn stop(&self) {
        let mut state = self.lock();
        state.is_stopped = true;
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        for waker in waiting.into_values() {
            waker.wake();
        }
    }

    /// Whether the signal was given.
    ///
    /// ```
    /// use blacklight::Stop;
    ///
    /// let stop = Stop::new();
    /// assert!(!stop.is_stopped());
    /// stop.stop();
    /// assert!(stop.is_stopped());
    /// ```
    pub fn is_stopped(&self) -> bool {
        self.lock().is_stopped
    }

    /// Waits until the signal is given.
    ///
    /// ```
    /// use blacklight::{Loop, Stop};
    /// use futures_lite::future::or;
    ///
    /// let lp = Loop::new()?;
    /// let stop = Stop::new();
    /// let its = stop.clone();
    /// let work = async {
    ///     its.stop();
    ///     std::future::pending::<()>().await
    /// };
    /// lp.block_on(or(work, stop.stopped()));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn stopped(&self) -> Stopped {
        Stopped {
            stop: self.clone(),
            number: None,
        }
    }
}

impl fmt::Debug for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stop")
            .field("stopped", &self.is_stopped())
            .finish()
    }
}

/// A future that waits for a signal; see [`Stop::stopped`].
///
/// ```
/// use blacklight::{Loop, Stop, Stopped};
///
/// let stop = Stop::new();
/// let stopped: Stopped = stop.stopped();
/// std::thread::spawn(move || stop.stop());
/// Loop::new()?.block_on(stopped);
/// # Ok::<(), std::io::Error>(())
/// ```
#[must_use = "futures do nothing unless awaited"]
#[derive(Debug)]
pub struct Stopped {
    stop: Stop,
    /// The place among those that wait, from the first poll on.
    number: Option<u64>,
}

impl Future for Stopped {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let waker = context.waker().clone();
        let stop = self.stop.clone();
        let mut state = stop.lock();
        if state.is_stopped {
            return Poll::Ready(());
        }
        let number = *self.number.get_or_insert(state.next);
        state.next = state.next.max(number + 1);
        let before = state.waiting.insert(number, waker);
        // Wakers may run code of others when they are dropped.
        drop(state);
        drop(before);
        Poll::Pending
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            let waker = self.stop.lock().waiting.remove(&number);
            drop(waker);
        }
    }
}
