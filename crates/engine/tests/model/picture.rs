//! All that can be asked of a loop and its handles, of the engine and of the model alike.

use crate::rules::{Life, Model, NS_PER_MS};
use blacklight_engine::{Engine, Errno, HandleKind, Key, RawFd};

/// An answer, unless it cannot be known: then it is any.
#[derive(Debug)]
struct Known<T>(Option<T>);

impl<T: PartialEq> PartialEq for Known<T> {
    fn eq(&self, other: &Known<T>) -> bool {
        self.0.is_none() || other.0.is_none() || self.0 == other.0
    }
}

#[derive(PartialEq, Debug)]
struct Loop {
    is_alive: bool,
    has_closing: bool,
    active_handles: u32,
    is_unused: bool,
    now_ns: u64,
    now_ms: u64,
    backend_timeout: Known<Option<u64>>,
    loop_count: u64,
    events: u64,
    /// Only where idle time is not measured: else it depends on how fast a wait was.
    events_waiting: Option<u64>,
    /// Only where it is measured.
    idle_ns: Option<u64>,
}

#[derive(PartialEq, Debug)]
struct Handle {
    kind: Option<HandleKind>,
    is_active: bool,
    is_closing: bool,
    has_reference: bool,
    repeat_ms: Result<u64, Errno>,
    due_ms: Result<u64, Errno>,
    due_in_ms: Result<u64, Errno>,
    fd: Result<RawFd, Errno>,
}

#[derive(PartialEq, Debug)]
pub(crate) struct Picture {
    the_loop: Loop,
    handles: Vec<Handle>,
}

impl Picture {
    pub(crate) fn of_engine(
        engine: &mut Engine,
        keys: &[Key],
        measures_idle_time: bool,
    ) -> Picture {
        let metrics = engine.metrics();
        let the_loop = Loop {
            is_alive: engine.is_alive(),
            has_closing: engine.has_closing(),
            active_handles: engine.active_handles(),
            is_unused: engine.is_unused(),
            now_ns: engine.now_ns(),
            now_ms: engine.now(),
            backend_timeout: Known(Some(engine.backend_timeout())),
            loop_count: metrics.loop_count,
            events: metrics.events,
            events_waiting: (!measures_idle_time).then_some(metrics.events_waiting),
            idle_ns: measures_idle_time.then(|| engine.idle_time().total_ns(engine.now_ns())),
        };
        let handle = |&key| Handle {
            kind: engine.kind(key),
            is_active: engine.is_active(key),
            is_closing: engine.is_closing(key),
            has_reference: engine.has_reference(key),
            repeat_ms: engine.timer_repeat(key),
            due_ms: engine.timer_due(key),
            due_in_ms: engine.timer_due_in(key),
            fd: engine.poll_fd(key),
        };
        let handles = keys.iter().map(handle).collect();
        Picture { the_loop, handles }
    }

    pub(crate) fn of_model(model: &Model, measures_idle_time: bool) -> Picture {
        let the_loop = Loop {
            is_alive: model.is_alive(),
            has_closing: model.has_closing(),
            active_handles: model.active_handles(),
            is_unused: model.all.is_empty(),
            now_ns: model.now_ns,
            now_ms: model.now_ns / NS_PER_MS,
            backend_timeout: Known(model.backend_timeout()),
            loop_count: model.loop_count,
            events: model.events,
            events_waiting: (!measures_idle_time).then_some(model.events_waiting),
            idle_ns: measures_idle_time.then_some(model.slept_ns),
        };
        let handle = |(id, handle): (usize, &crate::rules::Handle)| Handle {
            kind: (handle.life != Life::Gone).then_some(handle.kind),
            is_active: handle.active,
            is_closing: handle.life != Life::Open,
            has_reference: handle.referenced,
            repeat_ms: model.timer_repeat(id),
            due_ms: model.timer_due(id),
            due_in_ms: model.timer_due_in(id),
            fd: model.poll_fd(id),
        };
        let handles = model.handles.iter().enumerate().map(handle).collect();
        Picture { the_loop, handles }
    }

    /// Where this is not as expected.
    pub(crate) fn difference(&self, expected: &Picture) -> Option<String> {
        if self.the_loop != expected.the_loop {
            let (is, was_to_be) = (&self.the_loop, &expected.the_loop);
            return Some(format!("the loop is {is:?}, not {was_to_be:?}"));
        }
        let pairs = self.handles.iter().zip(&expected.handles).enumerate();
        let mut different = pairs.filter(|(_, (is, was_to_be))| is != was_to_be);
        let (id, (is, was_to_be)) = different.next()?;
        Some(format!("handle {id} is {is:?}, not {was_to_be:?}"))
    }
}
