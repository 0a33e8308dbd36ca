//! Sleeps, time-outs and intervals, for tasks.
//!
//! They have a resolution of nanoseconds, count from their creation and not from the loop's
//! cached time, and are never early. A loop whose builder says so has them end at the ends of slots.

use crate::code::Code;
use crate::current::current;
use crate::loop_::{Inner, LoopHandle};
use crate::table::Entry;
use blacklight_engine::Key;
use std::fmt;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

pub(crate) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn sleep_to(lp: &LoopHandle, due_ns: u64) -> Sleep {
    Sleep {
        inner: lp.0.clone(),
        due_ns,
        timer: None,
    }
}

/// Waits for a duration, from the call on.
///
/// ```
/// use blacklight::Loop;
/// use std::time::{Duration, Instant};
///
/// let lp = Loop::new()?;
/// let begun = Instant::now();
/// lp.block_on(blacklight::sleep(Duration::from_millis(2)));
/// assert!(begun.elapsed() >= Duration::from_millis(2));
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Panics
///
/// If there is no [current loop](current).
#[track_caller]
pub fn sleep(time: Duration) -> Sleep {
    let lp = current();
    let now_ns = lp.0.engine().clock_ns();
    sleep_to(&lp, now_ns.saturating_add(nanoseconds(time)))
}

/// Waits until a moment.
///
/// ```
/// use blacklight::Loop;
/// use std::time::{Duration, Instant};
///
/// let lp = Loop::new()?;
/// let moment = Instant::now() + Duration::from_millis(2);
/// lp.block_on(blacklight::sleep_until(moment));
/// assert!(Instant::now() >= moment);
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Panics
///
/// If there is no [current loop](current).
#[track_caller]
pub fn sleep_until(moment: Instant) -> Sleep {
    let lp = current();
    sleep_to(&lp, lp.0.ns_at(moment))
}

/// Waits for a future, but no longer than `time` from the call on. Drops the future and returns
/// [`Elapsed`] when the time is up.
///
/// ```
/// use blacklight::Loop;
/// use std::{future, time::Duration};
///
/// let lp = Loop::new()?;
/// let late = blacklight::timeout(Duration::from_millis(1), future::pending::<()>());
/// assert!(lp.block_on(late).is_err());
/// let soon = blacklight::timeout(Duration::from_secs(60), future::ready(7));
/// assert_eq!(lp.block_on(soon), Ok(7));
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Panics
///
/// If there is no [current loop](current).
#[track_caller]
pub fn timeout<F: Future>(
    time: Duration,
    future: F,
) -> impl Future<Output = Result<F::Output, Elapsed>> {
    let mut sleep = sleep(time);
    async move {
        let mut future = pin!(future);
        poll_fn(|context| {
            if let Poll::Ready(output) = future.as_mut().poll(context) {
                return Poll::Ready(Ok(output));
            }
            Pin::new(&mut sleep)
                .poll(context)
                .map(|()| Err(Elapsed(())))
        })
        .await
    }
}

/// Ticks every `period`. The first tick comes one period after the call.
///
/// ```
/// use blacklight::Loop;
/// use std::time::{Duration, Instant};
///
/// let lp = Loop::new()?;
/// let begun = Instant::now();
/// lp.block_on(async {
///     let mut interval = blacklight::interval(Duration::from_millis(1));
///     for _ in 0..3 {
///         interval.tick().await;
///     }
/// });
/// assert!(begun.elapsed() >= Duration::from_millis(3));
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Panics
///
/// If there is no [current loop](current), or if the period is zero.
#[track_caller]
pub fn interval(period: Duration) -> Interval {
    assert!(!period.is_zero(), "an interval has a length");
    Interval {
        sleep: sleep(period),
        period_ns: nanoseconds(period),
    }
}

/// A future that waits; see [`sleep`]. It also completes when the loop is gone.
///
/// ```
/// use blacklight::Loop;
/// use std::time::{Duration, Instant};
///
/// let lp = Loop::new()?;
/// let mut sleep = blacklight::sleep(Duration::from_secs(3600));
/// sleep.reset_to(Instant::now());
/// lp.block_on(&mut sleep);
/// assert!(sleep.is_elapsed());
/// # Ok::<(), std::io::Error>(())
/// ```
#[must_use = "futures do nothing unless awaited"]
pub struct Sleep {
    inner: Rc<Inner>,
    due_ns: u64,
    /// The entry in the loop's table and the engine's hidden timer, from the first poll on.
    timer: Option<(usize, Key)>,
}

impl Sleep {
    /// Resets the sleep to wait for `time` from now.
    ///
    /// ```
    /// use blacklight::Loop;
    /// use std::time::Duration;
    ///
    /// let lp = Loop::new()?;
    /// let mut sleep = blacklight::sleep(Duration::from_secs(3600));
    /// sleep.reset(Duration::ZERO);
    /// lp.block_on(sleep);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn reset(&mut self, time: Duration) {
        let now_ns = self.inner.engine().clock_ns();
        self.reset_to_ns(now_ns.saturating_add(nanoseconds(time)));
    }

    /// Resets the sleep to wait until `moment`.
    ///
    /// ```
    /// use blacklight::Loop;
    /// use std::time::{Duration, Instant};
    ///
    /// let lp = Loop::new()?;
    /// let mut sleep = blacklight::sleep(Duration::from_secs(3600));
    /// let moment = Instant::now() + Duration::from_millis(2);
    /// sleep.reset_to(moment);
    /// lp.block_on(sleep);
    /// assert!(Instant::now() >= moment);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn reset_to(&mut self, moment: Instant) {
        self.reset_to_ns(self.inner.ns_at(moment));
    }

    /// Whether the time is up.
    ///
    /// ```
    /// use blacklight::Loop;
    /// use std::time::Duration;
    ///
    /// let lp = Loop::new()?;
    /// let mut sleep = blacklight::sleep(Duration::from_secs(3600));
    /// assert!(!sleep.is_elapsed());
    /// sleep.reset(Duration::ZERO);
    /// assert!(sleep.is_elapsed());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn is_elapsed(&self) -> bool {
        self.due_ns <= self.inner.engine().clock_ns()
    }

    fn reset_to_ns(&mut self, due_ns: u64) {
        self.due_ns = due_ns;
        let Some((at, timer)) = self.timer else {
            return;
        };
        if let Some(Entry::Sleep { is_over, .. }) = self.inner.table.borrow_mut().get_mut(at) {
            *is_over = false;
        }
        self.start_timer(timer);
    }

    fn start_timer(&self, timer: Key) {
        let at_ns = self.inner.slot_end_ns(self.due_ns);
        let started = self.inner.engine().timer_start_at(timer, at_ns);
        started.expect("there is memory for a timer");
    }

    fn start(&mut self, context: &Context<'_>) -> Poll<()> {
        // The cached time suffices: a timer that is already due fires right after the poll.
        if self.due_ns <= self.inner.engine().now_ns() {
            // Even a sleep of zero length uses the budget, so that it cannot starve other tasks.
            return self.inner.poll_budget(context);
        }
        let spare = self.inner.spare_timers.borrow_mut().pop();
        let (at, timer) = match spare {
            Some(spare) => spare,
            None => self.new_timer(),
        };
        let waker = Some(context.waker().clone());
        if let Some(entry) = self.inner.table.borrow_mut().get_mut(at) {
            // The previous entry has no waker: its sleep took that out when dropped.
            *entry = Entry::Sleep {
                is_over: false,
                waker,
                code: Code::polled(),
            };
        }
        self.start_timer(timer);
        self.timer = Some((at, timer));
        Poll::Pending
    }

    #[cold]
    fn new_timer(&self) -> (usize, Key) {
        let entry = Entry::Sleep {
            is_over: false,
            waker: None,
            code: Code::NONE,
        };
        let made = self
            .inner
            .register(entry, |engine, token| engine.hidden_timer_init(token));
        let (timer, at) = made.expect("there is memory for a timer");
        (at, timer)
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.inner.is_closed() {
            return Poll::Ready(());
        }
        let Some((at, _)) = self.timer else {
            return self.start(context);
        };
        // Wakers may run user code, so they are compared, cloned and dropped with nothing
        // borrowed.
        let before = match self.inner.table.borrow_mut().get_mut(at) {
            Some(Entry::Sleep {
                is_over: false,
                waker,
                ..
            }) => waker.take(),
            _ => return Poll::Ready(()),
        };
        let now = match before {
            Some(waker) if waker.will_wake(context.waker()) => waker,
            _ => context.waker().clone(),
        };
        if let Some(Entry::Sleep { waker, code, .. }) = self.inner.table.borrow_mut().get_mut(at) {
            (*waker, *code) = (Some(now), Code::polled());
        }
        Poll::Pending
    }
}

/// The maximum number of timers kept for later sleeps.
const SPARE_TIMERS: usize = 1024;

impl Drop for Sleep {
    fn drop(&mut self) {
        let Some((at, timer)) = self.timer else {
            return;
        };
        let mut spare = self.inner.spare_timers.borrow_mut();
        if self.inner.is_closed() || spare.len() == SPARE_TIMERS {
            drop(spare);
            self.inner.engine().hidden_timer_remove(timer);
            let entry = self.inner.table.borrow_mut().remove(at);
            drop(entry);
            return;
        }
        let _ = self.inner.engine().timer_stop(timer);
        spare.push((at, timer));
        drop(spare);
        let waker = match self.inner.table.borrow_mut().get_mut(at) {
            Some(Entry::Sleep { waker, .. }) => waker.take(),
            _ => None,
        };
        drop(waker);
    }
}

impl fmt::Debug for Sleep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sleep")
            .field("elapsed", &self.is_elapsed())
            .finish()
    }
}

/// The error of a future that was not ready in time; see [`timeout`].
///
/// ```
/// use blacklight::Loop;
/// use std::{future::pending, io, time::Duration};
///
/// let lp = Loop::new()?;
/// let late = lp.block_on(blacklight::timeout(Duration::ZERO, pending::<()>())).unwrap_err();
/// assert_eq!(io::Error::from(late).kind(), io::ErrorKind::TimedOut);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Elapsed(());

impl fmt::Display for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the time is up")
    }
}

impl fmt::Debug for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Elapsed")
    }
}

impl std::error::Error for Elapsed {}

impl From<Elapsed> for std::io::Error {
    fn from(error: Elapsed) -> std::io::Error {
        std::io::Error::new(std::io::ErrorKind::TimedOut, error)
    }
}

/// A series of ticks; see [`interval`].
///
/// ```
/// use blacklight::{Interval, Loop};
/// use std::{future::poll_fn, time::Duration};
///
/// let lp = Loop::new()?;
/// let mut pulse: Interval = blacklight::interval(Duration::from_millis(1));
/// lp.block_on(async {
///     pulse.tick().await;
///     poll_fn(|context| pulse.poll_tick(context)).await;
/// });
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Interval {
    sleep: Sleep,
    period_ns: u64,
}

impl Interval {
    /// Waits for the next tick. Missed ticks are skipped.
    ///
    /// ```
    /// use blacklight::Loop;
    /// use std::time::{Duration, Instant};
    ///
    /// let lp = Loop::new()?;
    /// lp.block_on(async {
    ///     let begun = Instant::now();
    ///     let mut interval = blacklight::interval(Duration::from_millis(2));
    ///     interval.tick().await;
    ///     std::thread::sleep(Duration::from_millis(5));
    ///     interval.tick().await; // At once: it is late.
    ///     interval.tick().await; // Those that were missed are skipped.
    ///     assert!(begun.elapsed() >= Duration::from_millis(6));
    /// });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub async fn tick(&mut self) {
        poll_fn(|context| self.poll_tick(context)).await;
    }

    /// Polls for the next tick; see [`tick`](Interval::tick).
    ///
    /// ```
    /// use blacklight::Loop;
    /// use std::{future::poll_fn, time::Duration};
    ///
    /// let lp = Loop::new()?;
    /// let mut ticks = lp.enter(|| blacklight::interval(Duration::from_millis(1)));
    /// lp.block_on(poll_fn(|context| ticks.poll_tick(context)));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn poll_tick(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let polled = Pin::new(&mut self.sleep).poll(context);
        if polled.is_ready() {
            let now_ns = self.sleep.inner.engine().clock_ns();
            let late_ns = now_ns.saturating_sub(self.sleep.due_ns);
            let periods = late_ns / self.period_ns + 1;
            let next_ns = self.period_ns.saturating_mul(periods);
            self.sleep
                .reset_to_ns(self.sleep.due_ns.saturating_add(next_ns));
        }
        polled
    }
}
