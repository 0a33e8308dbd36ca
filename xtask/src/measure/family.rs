//! The families of rows. The mean of a report is taken over families, so that many rows of one
//! kind do not outvote the rest.

use serde::Serialize;
use std::fmt;

/// What a row exercises. Every row declares one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Family {
    /// Turns of the loop, and starting one.
    Loop,
    /// Starting tasks, and going on with another.
    Tasks,
    /// Messages between tasks, and from threads.
    Channels,
    Timers,
    /// Other threads that wake the loop.
    WakeUps,
    Files,
    /// Work in threads, and the threads themselves.
    Pool,
    Dns,
    /// TCP connections and pipes.
    Streams,
    Udp,
    /// Children: their start and their end.
    Processes,
    Memory,
    /// Whole programs under load.
    Programs,
}

impl Family {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Family::Loop => "loop",
            Family::Tasks => "tasks",
            Family::Channels => "channels",
            Family::Timers => "timers",
            Family::WakeUps => "wake-ups",
            Family::Files => "files",
            Family::Pool => "pool",
            Family::Dns => "DNS",
            Family::Streams => "streams",
            Family::Udp => "UDP",
            Family::Processes => "processes",
            Family::Memory => "memory",
            Family::Programs => "programs",
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}
