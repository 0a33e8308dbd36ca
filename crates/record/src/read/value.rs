//! What a record says, as values.

use crate::What;
use crate::layout::{BUCKETS, KINDS, LoopSegment, PHASE_COUNT, REQUESTS, State};
use std::mem::offset_of;

/// How often a time fell into each power of two.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Histogram {
    /// Bucket 0 counts zeros, and bucket `n` times from 2ⁿ⁻¹ up to 2ⁿ nanoseconds.
    pub buckets: [u64; BUCKETS],
    /// The sum of all times.
    pub sum_ns: u64,
    /// The longest since the loop was made.
    pub longest_ns: u64,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram {
            buckets: [0; BUCKETS],
            sum_ns: 0,
            longest_ns: 0,
        }
    }
}

impl Histogram {
    /// The upper end of a bucket: the first time that belongs to the next one. The last bucket has
    /// none.
    pub fn upper_ns(bucket: usize) -> u64 {
        match bucket < BUCKETS - 1 {
            true => 1 << bucket,
            false => u64::MAX,
        }
    }

    /// How many times were counted.
    pub fn count(&self) -> u64 {
        self.buckets
            .iter()
            .fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// A time that this share of all times does not exceed, rounded up to a power of two, but not
    /// above the longest.
    pub fn quantile_ns(&self, share: f64) -> u64 {
        let rank = (self.count() as f64 * share).ceil().max(1.0) as u64;
        let mut seen = 0_u64;
        for (bucket, count) in self.buckets.iter().enumerate() {
            seen = seen.saturating_add(*count);
            if seen >= rank {
                return match bucket {
                    0 => 0,
                    _ => Histogram::upper_ns(bucket).min(self.longest_ns),
                };
            }
        }
        0
    }

    /// The mean.
    pub fn mean_ns(&self) -> u64 {
        self.sum_ns / self.count().max(1)
    }

    /// What was counted since an earlier copy. Its longest time is that of the highest bucket.
    pub fn since(&self, earlier: &Histogram) -> Histogram {
        let mut difference = Histogram {
            sum_ns: self.sum_ns.wrapping_sub(earlier.sum_ns),
            ..*self
        };
        for (count, before) in difference.buckets.iter_mut().zip(&earlier.buckets) {
            *count = count.saturating_sub(*before);
        }
        let highest = difference.buckets.iter().rposition(|count| *count > 0);
        difference.longest_ns = highest.map_or(0, Histogram::upper_ns).min(self.longest_ns);
        difference
    }

    /// Adds what another one has counted.
    pub fn add(&mut self, other: &Histogram) {
        for (count, more) in self.buckets.iter_mut().zip(&other.buckets) {
            *count = count.saturating_add(*more);
        }
        self.sum_ns = self.sum_ns.wrapping_add(other.sum_ns);
        self.longest_ns = self.longest_ns.max(other.longest_ns);
    }
}

/// What a loop's thread is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Now {
    /// Its state.
    pub state: State,
    /// Since when.
    pub since_ns: u64,
    /// The phase of a callback, an index into [`PHASES`](crate::layout::PHASES).
    pub phase: usize,
    /// The kind of a callback, an index into [`CALLBACK_KINDS`](crate::layout::CALLBACK_KINDS).
    pub kind: usize,
    /// The code that is called back; 0 if that is not known.
    pub callback: u64,
    /// The handle or request.
    pub token: u64,
    /// The lowest bits of the turn's number.
    pub turn: u32,
    /// When a sleep is to end; 0 for never.
    pub until_ns: u64,
    /// Whether this may be parts of two things, because the thread has changed what it does each
    /// time that a reader looked.
    pub is_torn: bool,
}

/// What callbacks of one address have cost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Costly {
    /// The code.
    pub address: u64,
    /// The kind of the callbacks, an index into [`CALLBACK_KINDS`](crate::layout::CALLBACK_KINDS).
    pub kind: usize,
    /// How many there were.
    pub count: u64,
    /// How long they took together.
    pub total_ns: u64,
    /// How long the longest took.
    pub longest_ns: u64,
}

/// One loop.
#[derive(Clone, Debug)]
pub struct Loop {
    /// Its number in the process, from 1.
    pub id: u32,
    /// Its name, or nothing.
    pub name: String,
    /// The name of its poller.
    pub poller: String,
    /// The thread that runs it.
    pub tid: u32,
    /// When it was made, or first recorded.
    pub made_ns: u64,
    /// What its thread is doing.
    pub now: Now,
    /// Turns so far.
    pub turns: u64,
    /// Callbacks so far.
    pub callbacks: u64,
    /// Requests in progress.
    pub requests: u32,
    /// Those of them that are with the thread pool or the kernel's ring, the oldest first.
    pub pending: Vec<Pending>,
    /// Requests that the record had no room for.
    pub requests_lost: u32,
    /// Active handles that keep it alive.
    pub active: u32,
    /// Handles that the record has no room for.
    pub handles_lost: u32,
    /// When its table of handles was last brought up to date: right before a sleep, unless that
    /// would cost a busy loop too much.
    pub walked_ns: u64,
    /// Whether that was in its present turn.
    pub is_walked: bool,
    /// The time spent in each [`State`], by its number, up to the last change of state.
    pub time_ns: [u64; 5],
    /// How long turns took, without sleeping and spinning.
    pub turn: Histogram,
    /// How long callbacks waited in the loop.
    pub delay: Histogram,
    /// How much later than asked for the system has ended sleeps.
    pub late: Histogram,
    /// How long sleeps took.
    pub sleep: Histogram,
    /// How long the thread was outside of the loop's runs.
    pub outside: Histogram,
    /// How long callbacks took, by phase.
    pub by_phase: [Histogram; PHASE_COUNT],
    /// How long callbacks took, by kind.
    pub by_kind: [Histogram; KINDS],
    /// The twenty costliest callbacks, the costliest first.
    pub costly: Vec<Costly>,
    /// Where its segment lies, and its place.
    pub(super) offset: u64,
    pub(super) place: u32,
}

impl Loop {
    /// The time spent in each state up to `now_ns`, the present state included.
    pub fn time_until(&self, now_ns: u64) -> [u64; 5] {
        let mut time_ns = self.time_ns;
        let present = &mut time_ns[self.now.state as usize];
        *present = present.saturating_add(now_ns.saturating_sub(self.now.since_ns));
        time_ns
    }

    /// What its events are in the record.
    pub fn ring(&self) -> RingId {
        RingId((self.offset).saturating_add(offset_of!(LoopSegment, ring) as u64))
    }
}

/// One thread of the pool.
#[derive(Clone, Debug)]
pub struct Thread {
    /// Its number in the pool.
    pub place: u32,
    /// The thread.
    pub tid: u32,
    /// The kind of the request that it runs, an index into
    /// [`REQUEST_KINDS`](crate::layout::REQUEST_KINDS).
    pub running: Option<usize>,
    /// Since when it runs the request, or none.
    pub since_ns: u64,
    /// The request.
    pub token: u64,
    /// What its events are in the record.
    pub ring: RingId,
}

/// The thread pool.
#[derive(Clone, Default, Debug)]
pub struct Pool {
    /// How many threads it has; 0 before its first request.
    pub threads: u32,
    /// The most slow requests that may run at a time.
    pub slow_limit: u32,
    /// Requests that wait for a thread, by kind.
    pub queued: [u32; REQUESTS],
    /// Requests that run, by kind.
    pub running: [u32; REQUESTS],
    /// Requests that have run, by kind.
    pub completed: [u64; REQUESTS],
    /// When the request that waits longest was submitted, and its kind.
    pub oldest: Option<(u64, usize)>,
    /// How long requests have waited for a thread, by kind.
    pub wait: [Histogram; REQUESTS],
    /// How long requests have run, by kind.
    pub run: [Histogram; REQUESTS],
    /// Its threads, one by one.
    pub members: Vec<Thread>,
}

/// All that a record says, but for handles and events.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// When it was taken, by the monotonic clock.
    pub taken_ns: u64,
    /// When recording began.
    pub since_ns: u64,
    /// How many parts could not be recorded for want of memory.
    pub refused: u32,
    /// The open loops, the oldest first.
    pub loops: Vec<Loop>,
    /// The thread pool.
    pub pool: Pool,
}

/// One handle of a loop.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Handle {
    /// Its place in the loop's table.
    pub index: u32,
    /// Its kind, one of [`HANDLE_KINDS`](crate::layout::HANDLE_KINDS).
    pub kind: &'static str,
    /// Whether it is started.
    pub is_active: bool,
    /// Whether it keeps the loop alive while it is active.
    pub is_referenced: bool,
    /// Whether it is being closed.
    pub is_closing: bool,
    /// Whether it is a server's.
    pub is_listening: bool,
    /// Whether it has a connect request in progress.
    pub is_connecting: bool,
    /// Whether it has a shutdown request in progress.
    pub is_shutting_down: bool,
    /// The handle's name in its program: in C its address.
    pub token: u64,
    /// When it was made, or first recorded.
    pub made_ns: u64,
    /// The code that it calls back; 0 if that is not known.
    pub callback: u64,
    /// A timer's due time; 0 if it is not started.
    pub due_ns: u64,
    /// A timer's interval; 0 if it does not repeat.
    pub repeat_ns: u64,
    /// How long a timer was set for when it was started last, to a millisecond; 0 if that is not
    /// known.
    pub set_for_ns: u64,
    /// Its descriptor, a process's number, or a signal's.
    pub number: Option<i32>,
    /// A path, or its end.
    pub text: String,
    /// Its writes or sends that are not complete.
    pub writes: u32,
    /// The bytes of those that the kernel has not taken.
    pub queued_bytes: u64,
    /// The code addresses of its making, the innermost first, if the program was started to keep
    /// them.
    pub stack: Vec<u64>,
}

/// A request to the thread pool or to the kernel's ring that is in progress.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pending {
    /// The request's name in its program: in C its address.
    pub token: u64,
    /// When it was submitted.
    pub queued_ns: u64,
    /// Its kind, an index into [`REQUEST_KINDS`](crate::layout::REQUEST_KINDS).
    pub kind: usize,
}

/// Something that has happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event {
    /// What it is.
    pub what: What,
    /// When it began.
    pub at_ns: u64,
    /// How long it took.
    pub took_ns: u64,
    /// The phase of a callback, an index into [`PHASES`](crate::layout::PHASES).
    pub phase: usize,
    /// The kind of a callback, an index into [`CALLBACK_KINDS`](crate::layout::CALLBACK_KINDS), or
    /// of a request, one into [`REQUEST_KINDS`](crate::layout::REQUEST_KINDS).
    pub kind: usize,
    /// The lowest bits of the turn's number.
    pub turn: u32,
    /// The code that was called back; 0 if that is not known.
    pub address: u64,
    /// The handle or request.
    pub token: u64,
}

/// Names a ring of events in a record.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RingId(pub(super) u64);

/// Events that were read, in the order in which they ended.
#[derive(Clone, Default, Debug)]
pub struct Events {
    /// The events.
    pub events: Vec<Event>,
    /// How many were overwritten before they could be read.
    pub lost: u64,
    /// The number to go on from.
    pub next: u64,
}
