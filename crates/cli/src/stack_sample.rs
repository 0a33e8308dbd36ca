//! What a sample of a thread in another process tells, on every machine.

use std::borrow::Cow;
use std::time::Duration;

/// What a thread was doing, and where.
#[derive(Debug)]
pub(crate) struct Sample {
    /// The code addresses, innermost first. Return addresses are lowered by one, so that they lie
    /// inside the call.
    pub(crate) addresses: Vec<u64>,
    /// What it was doing.
    pub(crate) doing: Doing,
    /// How long the thread was held; zero if it was not touched.
    pub(crate) held: Duration,
}

/// What a thread was doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Doing {
    /// It was running, or ready to run.
    Computing,
    /// It was waiting in the kernel.
    Waiting {
        /// The name of the system call.
        call: Cow<'static, str>,
    },
}
