//! hyper's executor and timer on the current loop.

use crate::current::current;
use crate::local::Local;
use crate::time::{Sleep, sleep, sleep_until};
use std::pin::Pin;
use std::time::{Duration, Instant};

/// Spawns hyper's tasks on the loop that runs on this thread.
///
/// ```
/// use blacklight::LoopExecutor;
/// use hyper::rt::Executor;
///
/// let lp = blacklight::Loop::new()?;
/// lp.block_on(async { LoopExecutor.execute(async {}) });
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Copy, Default, Debug)]
pub struct LoopExecutor;

impl<F: Future + 'static> hyper::rt::Executor<F> for LoopExecutor {
    fn execute(&self, future: F) {
        drop(current().spawn(future));
    }
}

/// Makes hyper's timers wait on the loop that runs on this thread.
///
/// ```
/// use blacklight::LoopTimer;
/// use hyper::rt::Timer;
/// use std::time::Duration;
///
/// let lp = blacklight::Loop::new()?;
/// lp.block_on(async { LoopTimer.sleep(Duration::from_millis(1)).await });
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Copy, Default, Debug)]
pub struct LoopTimer;

impl hyper::rt::Sleep for Local<Sleep> {}

impl hyper::rt::Timer for LoopTimer {
    fn sleep(&self, time: Duration) -> Pin<Box<dyn hyper::rt::Sleep>> {
        Box::pin(Local::new(sleep(time)))
    }

    fn sleep_until(&self, moment: Instant) -> Pin<Box<dyn hyper::rt::Sleep>> {
        Box::pin(Local::new(sleep_until(moment)))
    }

    fn reset(&self, sleep: &mut Pin<Box<dyn hyper::rt::Sleep>>, moment: Instant) {
        match sleep.as_mut().downcast_mut_pin::<Local<Sleep>>() {
            Some(mut own) => own.reset_to(moment),
            None => *sleep = self.sleep_until(moment),
        }
    }
}
