//! Timers of the loop's timer phase, in milliseconds. Tasks use `time` instead.

use crate::handle::{Handle, Single, common_methods, detach_method};
use crate::loop_::Loop;
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
/// let timer = Timer::new(&lp)?;
/// timer.start(Duration::from_millis(2), move |_, _| {
///     assert!(begun.elapsed() >= Duration::from_millis(2));
/// })?;
/// lp.run(Mode::Default);
/// # Ok::<(), std::io::Error>(())
/// ```
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
    pub fn new(lp: &Loop) -> io::Result<Timer> {
        let (handle, ()) = Handle::single(lp, |engine, token| Ok((engine.timer_init(token)?, ())))?;
        Ok(Timer { handle })
    }

    /// Starts or restarts the timer, to call back once.
    pub fn start(
        &self,
        timeout: Duration,
        callback: impl FnMut(&Loop, &Timer) + 'static,
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
    /// let timer = Timer::new(&lp)?;
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
        callback: impl FnMut(&Loop, &Timer) + 'static,
    ) -> io::Result<()> {
        let interval = whole_ms(interval).max(1);
        self.arm(interval, interval, callback)
    }

    fn arm(
        &self,
        timeout_ms: u64,
        repeat_ms: u64,
        mut callback: impl FnMut(&Loop, &Timer) + 'static,
    ) -> io::Result<()> {
        self.handle
            .engine()
            .timer_start(self.handle.key, timeout_ms, repeat_ms)?;
        self.handle.set_callback(move |lp, handle, _| {
            let timer = Timer {
                handle: handle.clone(),
            };
            callback(lp, &timer);
        });
        Ok(())
    }

    /// Stops the timer.
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
    /// let timer = Timer::new(&lp)?;
    /// timer.start(Duration::from_secs(60), |_, _| ())?;
    /// assert_eq!(timer.due_in(), Duration::from_secs(60));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn due_in(&self) -> Duration {
        let due_in = self.handle.engine().timer_due_in(self.handle.key);
        Duration::from_millis(due_in.unwrap_or(0))
    }
}
