//! Watching a loop at work.

use blacklight_engine::Event;
use std::time::Duration;

/// The phases in which callbacks run, in the order of a turn.
///
/// ```
/// use blacklight::Phase;
///
/// let names = Phase::ALL.map(Phase::name);
/// assert_eq!(names, ["timers", "idle", "prepare", "poll", "check", "closing"]);
/// assert!(Phase::Poll < Phase::Check);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Phase {
    /// Due timers.
    Timers,
    /// Idle handles.
    Idle,
    /// Prepare handles, right before the loop polls.
    Prepare,
    /// Ready descriptors and wake-ups from other threads.
    Poll,
    /// Check handles, right after the loop has polled.
    Check,
    /// Handles that have been closed.
    Closing,
}

impl Phase {
    /// All phases, in order.
    pub const ALL: [Phase; 6] = [
        Phase::Timers,
        Phase::Idle,
        Phase::Prepare,
        Phase::Poll,
        Phase::Check,
        Phase::Closing,
    ];

    /// The phase's name.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Timers => "timers",
            Phase::Idle => "idle",
            Phase::Prepare => "prepare",
            Phase::Poll => "poll",
            Phase::Check => "check",
            Phase::Closing => "closing",
        }
    }

    pub(crate) fn of(event: &Event) -> Phase {
        match event {
            Event::Timer(_) => Phase::Timers,
            Event::Idle(_) => Phase::Idle,
            Event::Prepare(_) => Phase::Prepare,
            Event::Check(_) => Phase::Check,
            Event::Closed(_) => Phase::Closing,
            // Whatever comes from the kernel or from another thread.
            _ => Phase::Poll,
        }
    }
}

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
