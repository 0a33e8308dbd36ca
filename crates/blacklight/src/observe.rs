//! Watching a loop at work.

use blacklight_engine::{Boundary, Phase, Probe};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

/// One callback that has run; see [`LoopHandle::observe`](crate::LoopHandle::observe).
///
/// ```
/// use blacklight::{Loop, Mode, Timer};
/// use std::time::Duration;
///
/// let lp = Loop::new()?;
/// lp.observe(|dispatch| {
///     let (phase, turn) = (dispatch.phase.name(), dispatch.turn);
///     println!("a callback of {phase} in turn {turn} took {:?}", dispatch.took);
/// });
/// let timer = Timer::new()?;
/// timer.start(Duration::ZERO, |_, _| ())?;
/// lp.run(Mode::Default);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Dispatch {
    /// The phase in which it ran.
    pub phase: Phase,
    /// The turn of the loop, from the beginning of the loop's life.
    pub turn: u64,
    /// How long it took.
    pub took: Duration,
}

/// What a loop's observer sees: each callback, as a [`Dispatch`] made of two boundaries that the
/// engine reports.
#[derive(Default, Debug)]
pub(crate) struct Observations {
    /// The runs and callbacks that have begun and not ended. The last of them was the last to
    /// begin.
    open: RefCell<Vec<Open>>,
    /// The callback that has ended last, until the loop takes it for its observer.
    ended: Cell<Option<Dispatch>>,
}

#[derive(Debug)]
enum Open {
    Run,
    Callback { phase: Phase, turn: u64, at_ns: u64 },
}

impl Observations {
    /// The callback that has ended, once.
    pub(crate) fn take(&self) -> Option<Dispatch> {
        self.ended.take()
    }
}

/// The engine's end of [`Observations`].
#[derive(Debug)]
pub(crate) struct Recording(pub(crate) Rc<Observations>);

impl Probe for Recording {
    fn cross(&mut self, at_ns: u64, boundary: Boundary) {
        let mut open = self.0.open.borrow_mut();
        match boundary {
            Boundary::RunBegins(_) => open.push(Open::Run),
            // A run that was given up leaves a callback open.
            Boundary::RunEnds => while let Some(Open::Callback { .. }) = open.pop() {},
            Boundary::CallbackBegins { phase, turn, .. } => {
                open.push(Open::Callback { phase, turn, at_ns });
            }
            Boundary::CallbackEnds => {
                if let Some(Open::Callback {
                    phase,
                    turn,
                    at_ns: begun_ns,
                }) = open.pop()
                {
                    let took = Duration::from_nanos(at_ns.saturating_sub(begun_ns));
                    self.0.ended.set(Some(Dispatch { phase, turn, took }));
                }
            }
            Boundary::SpinBegins
            | Boundary::SpinEnds { .. }
            | Boundary::SleepBegins { .. }
            | Boundary::SleepEnds => {}
        }
    }
}
