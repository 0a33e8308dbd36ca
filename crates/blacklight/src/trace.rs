//! What `tracing` is told with the feature of that name; nothing at all without it.
//!
//! All events have the target `blacklight` and the loop's name. Callbacks and tasks are at the
//! level `TRACE`, the lives of loops at `DEBUG`, and panics that a task has kept to itself at
//! `WARN`.

use crate::loop_::Inner;
use blacklight_engine::Event;

/// Tells `tracing` of something that happened to a loop.
macro_rules! tell {
    ($level:ident, $inner:expr, $($what:tt)*) => {
        #[cfg(feature = "tracing")]
        tracing::$level!(target: "blacklight", name = $inner.name(), $($what)*);
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
pub(crate) fn dispatched(inner: &Inner, event: &Event) {
    let _ = event;
    tell!(trace, inner, ?event, "dispatched");
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

pub(crate) fn task_panicked(inner: &Inner, task: u32) {
    let _ = task;
    tell!(warn, inner, task, "task panicked");
}
