//! What `tracing` is told with the feature of that name; nothing at all without it.
//!
//! The crate's documentation lists it. Tasks that go with their loop are not told of one by one.
//!
//! Spans of what the loop does come from a probe, which a loop gets when it begins to run while
//! somebody listens. Spans of tasks come from the executor, which the engine knows nothing of.

use crate::loop_::{Inner, LoopHandle};
use blacklight_engine::{Event, Probe, Run};
#[cfg(feature = "tracing")]
pub(crate) use spans::Spans;

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
        phase = run.phase().map_or("", blacklight_engine::Phase::name),
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

/// The span of one poll of a task, or of the future of `block_on`, until the result is dropped.
#[inline]
pub(crate) fn poll(inner: &Inner, task: Option<u32>) -> impl Sized {
    #[cfg(feature = "tracing")]
    return tracing::trace_span!(target: "blacklight", "poll", r#loop = inner.name(), task)
        .entered();
    #[cfg(not(feature = "tracing"))]
    let _ = (inner, task);
}

pub(crate) fn task_cancelled(inner: &Inner, task: u32) {
    let _ = task;
    tell!(trace, inner, task, "task cancelled");
}

pub(crate) fn task_panicked(inner: &Inner, task: u32) {
    let _ = task;
    tell!(warn, inner, task, "task panicked");
}

/// Gives the loop its probe if somebody listens. Called when it begins to run.
#[inline]
pub(crate) fn run_begins(lp: &LoopHandle) {
    #[cfg(feature = "tracing")]
    lp.0.spans.listen(lp);
    let _ = lp;
}

/// A probe that tells of spans, if somebody has listened, and passes all on to `other`.
pub(crate) fn probe(inner: &Inner, other: Option<Box<dyn Probe>>) -> Option<Box<dyn Probe>> {
    #[cfg(feature = "tracing")]
    return inner.spans.probe(inner.name(), other);
    #[cfg(not(feature = "tracing"))]
    {
        let _ = inner;
        other
    }
}

#[cfg(feature = "tracing")]
mod spans {
    use crate::loop_::LoopHandle;
    use blacklight_engine::{Boundary, Phase, Probe};
    use std::cell::{Cell, RefCell};
    use std::rc::Rc;
    use tracing::field::Empty;
    use tracing::span::EnteredSpan;
    use tracing::{Level, trace_span};

    /// The spans of one loop, whichever probe tells of them.
    #[derive(Default)]
    pub(crate) struct Spans {
        is_listened_to: Cell<bool>,
        open: Rc<Open>,
    }

    impl Spans {
        pub(super) fn listen(&self, lp: &LoopHandle) {
            let listens = tracing::enabled!(target: "blacklight", Level::TRACE);
            if listens && !self.is_listened_to.replace(true) {
                lp.renew_probe();
            }
        }

        pub(super) fn probe(
            &self,
            name: &str,
            other: Option<Box<dyn Probe>>,
        ) -> Option<Box<dyn Probe>> {
            if !self.is_listened_to.get() {
                return other;
            }
            Some(Box::new(Tell {
                name: name.into(),
                open: self.open.clone(),
                other,
            }))
        }
    }

    /// What has begun and not ended, the last at the end.
    #[derive(Default, Debug)]
    struct Open(RefCell<Vec<(Kind, EnteredSpan)>>);

    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    enum Kind {
        Run,
        Callback,
        Wait,
    }

    impl Open {
        /// Ends the last span of this kind, and those inside that were given up.
        fn end(&self, kind: Kind) {
            loop {
                let last = self.0.borrow_mut().pop();
                if last.is_none_or(|(last, _)| last == kind) {
                    return;
                }
            }
        }
    }

    impl Drop for Open {
        fn drop(&mut self) {
            // What is inside ends first.
            while self.0.get_mut().pop().is_some() {}
        }
    }

    /// Tells of spans. The engine is borrowed meanwhile.
    #[derive(Debug)]
    struct Tell {
        name: Box<str>,
        open: Rc<Open>,
        other: Option<Box<dyn Probe>>,
    }

    impl Tell {
        fn tell(&self, boundary: Boundary) {
            let name = &*self.name;
            let (kind, span) = match boundary {
                Boundary::RunEnds => return self.open.end(Kind::Run),
                Boundary::CallbackEnds => return self.open.end(Kind::Callback),
                Boundary::SleepEnds => return self.open.end(Kind::Wait),
                Boundary::SpinEnds { found } => {
                    if let Some((_, span)) = self.open.0.borrow().last() {
                        span.record("found", found);
                    }
                    return self.open.end(Kind::Wait);
                }
                Boundary::RunBegins(mode) => (
                    Kind::Run,
                    trace_span!(target: "blacklight", "run", r#loop = name, ?mode),
                ),
                Boundary::CallbackBegins { phase, turn, event } => (
                    Kind::Callback,
                    trace_span!(
                        target: "blacklight",
                        "callback",
                        r#loop = name,
                        phase = Phase::name(phase),
                        turn,
                        ?event
                    ),
                ),
                Boundary::SpinBegins => (
                    Kind::Wait,
                    trace_span!(target: "blacklight", "spin", r#loop = name, found = Empty),
                ),
                Boundary::SleepBegins { timeout } => (
                    Kind::Wait,
                    trace_span!(target: "blacklight", "sleep", r#loop = name, ?timeout),
                ),
            };
            let open = (kind, span.entered());
            self.open.0.borrow_mut().push(open);
        }
    }

    impl Probe for Tell {
        fn cross(&mut self, at_ns: u64, boundary: Boundary) {
            if let Some(other) = &mut self.other {
                other.cross(at_ns, boundary);
            }
            self.tell(boundary);
        }
    }
}
