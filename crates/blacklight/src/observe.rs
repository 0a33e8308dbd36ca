//! Watching a loop at work.

use blacklight_engine::{Boundary, Phase, Probe};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

/// One callback that has run; see [`Loop::observe`](crate::Loop::observe).
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
/// let timer = Timer::new(&lp)?;
/// timer.start(Duration::ZERO, |_, _| ())?;
/// lp.run(Mode::Default);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Dispatch {
    /// The phase in which it ran.
    pub phase: Phase,
    /// The turn of the loop, from the beginning of the loop's life.
    pub turn: u64,
    /// How long it took.
    pub took: Duration,
}

/// Puts together, from the boundaries that the engine tells of, what observers hear of.
#[derive(Default, Debug)]
pub(crate) struct Recorder {
    /// What has begun and not ended, the last at the end.
    open: RefCell<Vec<Open>>,
    /// The callback that has ended last, until somebody asks for it.
    ended: Cell<Option<Dispatch>>,
}

#[derive(Debug)]
enum Open {
    Run,
    Callback { phase: Phase, turn: u64, at_ns: u64 },
}

impl Recorder {
    /// The callback that has ended, once.
    pub(crate) fn take(&self) -> Option<Dispatch> {
        self.ended.take()
    }
}

/// The engine's end of a [`Recorder`].
#[derive(Debug)]
pub(crate) struct Recording(pub(crate) Rc<Recorder>);

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
