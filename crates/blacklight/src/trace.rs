//! What `tracing` is told with the feature of that name; nothing at all without it.
//!
//! The crate's documentation lists it. Tasks that go with their loop are not told of one by one.

use crate::loop_::Inner;
#[cfg(feature = "tracing")]
use blacklight_engine::Phase;
use blacklight_engine::{Event, Run};

/// Tells `tracing` of something that happened to a loop.
macro_rules! tell {
    ($level:ident, $inner:expr, $($what:tt)*) => {
        #[cfg(feature = "tracing")]
        tracing::$level!(target: "blacklight", r#loop = $inner.name(), $($what)*);
        #[cfg(not(feature = "tracing"))]
        let _ = $inner;
    };
}

pub(crate) fn loop_made(inner: &Inner) {
    tell!(debug, inner, "loop made");
}

pub(crate) fn loop_gone(inner: &Inner) {
    tell!(debug, inner, "loop gone");
}

#[inline]
pub(crate) fn dispatch(inner: &Inner, run: &Run, event: &Event) {
    let _ = (run, event);
    tell!(
        trace,
        inner,
        phase = run.phase().map_or("", Phase::name),
        ?event,
        "dispatch"
    );
}

#[inline]
pub(crate) fn task_spawned(inner: &Inner, task: u32) {
    let _ = task;
    tell!(trace, inner, task, "task spawned");
}

#[inline]
pub(crate) fn task_over(inner: &Inner, task: u32) {
    let _ = task;
    tell!(trace, inner, task, "task over");
}

pub(crate) fn task_cancelled(inner: &Inner, task: u32) {
    let _ = task;
    tell!(trace, inner, task, "task cancelled");
}

pub(crate) fn task_panicked(inner: &Inner, task: u32) {
    let _ = task;
    tell!(warn, inner, task, "task panicked");
}
