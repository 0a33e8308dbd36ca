//! Timers of the loop's timer phase, in milliseconds. Tasks use `time` instead.

use crate::code::Code;
use crate::current::here;
use crate::handle::{Handle, Single, common_methods, detach_method};
use crate::loop_::LoopHandle;
use std::io;
use std::rc::Rc;
use std::time::Duration;

/// Calls back after a time, once or repeatedly.
///
/// Times are rounded up to whole milliseconds and count from the loop's cached time. A timer
/// never fires early.
///
/// ```
/// use blacklight::{Loop, Mode, Timer};
/// use std::time::{Duration, Instant};
///
/// let lp = Loop::new()?;
/// let begun = Instant::now();
/// let timer = Timer::new()?;
/// timer.start(Duration::from_millis(2), move |_, _| {
///     assert!(begun.elapsed() >= Duration::from_millis(2));
/// })?;
/// lp.run(Mode::Default);
/// # Ok::<(), std::io::Error>(())
/// ```
#[must_use = "a handle closes when it is dropped"]
pub struct Timer {
    handle: Rc<Handle<Single>>,
}

common_methods!(Timer);
detach_method!(Timer);

fn whole_ms(time: Duration) -> u64 {
    u64::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

impl Timer {
    /// Creates a timer, stopped.
    ///
    /// ```
    /// use blacklight::{Loop, Timer};
    ///
    /// let lp = Loop::new()?;
    /// assert!(!Timer::new()?.is_active());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn new() -> io::Result<Timer> {
        let lp = &here()?;
        let (handle, ()) = Handle::single(lp, |engine, token| Ok((engine.timer_init(token)?, ())))?;
        Ok(Timer { handle })
    }

    /// Starts or restarts the timer, to call back once.
    ///
    /// ```
    /// use blacklight::{Loop, Mode, Timer};
    /// use std::{cell::Cell, rc::Rc, time::Duration};
    ///
    /// let lp = Loop::new()?;
    /// let fired = Rc::new(Cell::new(0));
    /// let timer = Timer::new()?;
    /// let count = fired.clone();
    /// timer.start(Duration::from_millis(1), move |_, timer| {
    ///     count.set(count.get() + 1);
    ///     if count.get() < 3 {
    ///         let again = count.clone();
    ///         // Starting it again replaces the callback.
    ///         timer.start(Duration::ZERO, move |_, _| again.set(again.get() + 10)).unwrap();
    ///     }
    /// })?;
    /// lp.run(Mode::Default);
    /// assert_eq!(fired.get(), 11);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn start(
        &self,
        timeout: Duration,
        callback: impl FnMut(&LoopHandle, &Timer) + 'static,
    ) -> io::Result<()> {
        self.arm(whole_ms(timeout), 0, callback)
    }

    /// Starts or restarts the timer, to call back every `interval`, which is at least one
    /// millisecond.
    ///
    /// ```
    /// use blacklight::{Loop, Mode, Timer};
    /// use std::time::Duration;
    ///
    /// let lp = Loop::new()?;
    /// let timer = Timer::new()?;
    /// let mut left = 3;
    /// timer.start_repeating(Duration::from_millis(1), move |_, timer| {
    ///     left -= 1;
    ///     if left == 0 {
    ///         timer.stop();
    ///     }
    /// })?;
    /// lp.run(Mode::Default);
    /// assert!(!timer.is_active());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn start_repeating(
        &self,
        interval: Duration,
        callback: impl FnMut(&LoopHandle, &Timer) + 'static,
    ) -> io::Result<()> {
        let interval = whole_ms(interval).max(1);
        self.arm(interval, interval, callback)
    }

    fn arm(
        &self,
        timeout_ms: u64,
        repeat_ms: u64,
        mut callback: impl FnMut(&LoopHandle, &Timer) + 'static,
    ) -> io::Result<()> {
        self.handle
            .live_engine()?
            .timer_start(self.handle.key, timeout_ms, repeat_ms)?;
        let code = Code::of(&callback);
        self.handle.set_callback(code, move |lp, handle, _| {
            let timer = Timer {
                handle: handle.clone(),
            };
            callback(lp, &timer);
        });
        Ok(())
    }

    /// Stops the timer.
    ///
    /// ```
    /// use blacklight::{Loop, Mode, Timer};
    /// use std::time::Duration;
    ///
    /// let lp = Loop::new()?;
    /// let timer = Timer::new()?;
    /// timer.start(Duration::from_secs(3600), |_, _| unreachable!("it was stopped"))?;
    /// timer.stop();
    /// assert!(!lp.run(Mode::Default));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn stop(&self) {
        // A closed timer has stopped.
        let _ = self.handle.engine().timer_stop(self.handle.key);
    }

    /// The time until the timer is due, by the loop's cached time; zero if that time has passed.
    ///
    /// ```
    /// use blacklight::{Loop, Timer};
    /// use std::time::Duration;
    ///
    /// let lp = Loop::new()?;
    /// let timer = Timer::new()?;
    /// timer.start(Duration::from_secs(60), |_, _| ())?;
    /// assert_eq!(timer.due_in(), Duration::from_secs(60));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn due_in(&self) -> Duration {
        let due_in = self.handle.engine().timer_due_in(self.handle.key);
        Duration::from_millis(due_in.unwrap_or(0))
    }
}
