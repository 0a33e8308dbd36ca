//! hyper's executor and timer on the current loop.

use crate::current::current;
use crate::time::Sleep;
use send_wrapper::SendWrapper;
use std::pin::Pin;
use std::task::{Context, Poll};
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

/// hyper requires its sleeps to be `Send`. Those of a loop's connections never leave the loop's
/// thread, which `SendWrapper` checks.
struct HyperSleep(SendWrapper<Sleep>);

impl Future for HyperSleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut *self.0).poll(context)
    }
}

impl hyper::rt::Sleep for HyperSleep {}

impl hyper::rt::Timer for LoopTimer {
    fn sleep(&self, time: Duration) -> Pin<Box<dyn hyper::rt::Sleep>> {
        Box::pin(HyperSleep(SendWrapper::new(current().sleep(time))))
    }

    fn sleep_until(&self, moment: Instant) -> Pin<Box<dyn hyper::rt::Sleep>> {
        Box::pin(HyperSleep(SendWrapper::new(current().sleep_until(moment))))
    }

    fn reset(&self, sleep: &mut Pin<Box<dyn hyper::rt::Sleep>>, moment: Instant) {
        match sleep.as_mut().downcast_mut_pin::<HyperSleep>() {
            Some(mut own) => own.0.reset_to(moment),
            None => *sleep = self.sleep_until(moment),
        }
    }
}
