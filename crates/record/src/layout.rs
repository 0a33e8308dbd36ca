//! The layout of a record, as it lies in its file.
//!
//! A record is a file in memory that a process writes through a shared mapping and that readers
//! copy from. It has a [`Page`] at its beginning, and after it *segments*, which the page's
//! [`Body`] lists. All numbers are in the machine's byte order and aligned to their size; a field
//! that was never written is zero. Times are nanoseconds of the monotonic clock, which all
//! processes of a machine share.
//!
//! | segment | what it holds | how many |
//! | --- | --- | --- |
//! | [`Page`] | whose record it is, and whether somebody wants it filled | one, at offset 0 |
//! | [`Body`] | the list of segments, and the thread pool | one, while the process records |
//! | [`LoopSegment`] | state, histograms, costliest callbacks and the last events of one loop | one for each loop |
//! | [`HandleSegment`] | [`HANDLES`] handles of one loop | as many as a loop needs |
//! | [`OriginSegment`] | the stacks by which those handles were made | as many, if the program was started for that |
//! | [`ThreadSegment`] | the last requests that one thread of the pool has run | one for each thread |
//!
//! Only one thread writes to a loop's segments, and to a thread's; the body is written to with the
//! pool's lock, but for counters that are added to atomically. A writer that changes several fields which belong together makes their
//! sequence number odd before and even after. Readers trust nothing: they check every number that
//! leads them anywhere.
//!
//! The version changes with every change of this file.

use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64};

/// The first eight bytes of a record, written when all else is in place.
pub const SIGNATURE: u64 = u64::from_ne_bytes(*b"blacklgt");
/// The version of this layout.
pub const VERSION: u32 = 4;
/// The buckets of a histogram: bucket 0 counts zeros, and bucket `n` numbers from 2ⁿ⁻¹ up to 2ⁿ.
pub const BUCKETS: usize = 48;
/// The kinds of callbacks; see [`CALLBACK_KINDS`].
pub const KINDS: usize = 25;
/// The phases of a turn; see [`PHASES`].
pub const PHASE_COUNT: usize = 7;
/// Where callbacks of one kind are called: in the phase of their kind, in the pending phase, or in
/// the closing phase. A kind's own phase is that of its name for timers, idle, prepare and check
/// handles, the closing phase for `close`, and the poll phase for all others.
pub const WHERE: usize = 3;
/// The entries of a loop's table of costly callbacks.
pub const COSTLY: usize = 128;
/// The events that a loop's or a thread's ring holds.
pub const RING: usize = 8192;
/// The handles of one [`HandleSegment`].
pub const HANDLES: usize = 1024;
/// The segments that a record may have.
pub const SEGMENTS: usize = 1024;
/// The loops that a record may have at a time.
pub const LOOPS: usize = 256;
/// The [`HandleSegment`]s that one loop may have.
pub const PARTS: usize = 64;
/// The threads of the pool that are described one by one.
pub const THREADS: usize = 128;
/// The kinds of requests to the thread pool; see [`REQUEST_KINDS`].
pub const REQUESTS: usize = 8;
/// The bytes of a name or a path.
pub const TEXT: usize = 56;
/// The loops of a process that a reader can wake.
pub const WAKERS: usize = LOOPS;
/// The requests of one loop that the record can hold. A request is in one of [`PENDING_SET`]
/// entries.
pub const PENDING: usize = 1024;
/// The entries in which a request may be.
pub const PENDING_SET: usize = 16;
/// The frames of a stack by which a handle was made.
pub const FRAMES: usize = 32;

/// The names of callback kinds, by number. Zero is none.
pub const CALLBACK_KINDS: [&str; KINDS] = [
    "none",
    "timer",
    "idle",
    "prepare",
    "check",
    "async",
    "work",
    "ring",
    "poll",
    "read",
    "read end",
    "write",
    "writable",
    "connect",
    "shutdown",
    "connection",
    "turned away",
    "receive",
    "receive error",
    "receive end",
    "send",
    "signal",
    "exit",
    "fs event",
    "close",
];

/// The names of phases, by number.
pub const PHASES: [&str; PHASE_COUNT] = [
    "timers", "pending", "idle", "prepare", "poll", "check", "closing",
];

/// The place of a phase among those of [`WHERE`].
#[inline]
pub(crate) fn place_of(phase: u8) -> usize {
    match phase {
        PENDING_PHASE => 1,
        CLOSING_PHASE => 2,
        _ => 0,
    }
}

/// The phase of callbacks of this kind that were called at this place.
pub(crate) fn phase_of(place: usize, kind: usize) -> usize {
    match (place, CALLBACK_KINDS[kind]) {
        (1, _) => PENDING_PHASE.into(),
        (2, _) | (_, "close") => CLOSING_PHASE.into(),
        (_, "timer") => 0,
        (_, "idle") => 2,
        (_, "prepare") => 3,
        (_, "check") => 5,
        _ => 4,
    }
}

const PENDING_PHASE: u8 = 1;
const CLOSING_PHASE: u8 = 6;

/// The names of handle kinds, by number. Zero is none.
pub const HANDLE_KINDS: [&str; 16] = [
    "none", "timer", "idle", "prepare", "check", "async", "poll", "tcp", "pipe", "tty", "fs_event",
    "udp", "fs_poll", "signal", "process", "other",
];

/// The names of request kinds, by number.
pub const REQUEST_KINDS: [&str; REQUESTS] = [
    "other",
    "work",
    "fs",
    "getaddrinfo",
    "getnameinfo",
    "random",
    "reserved",
    "reserved",
];

/// The states of a loop's thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum State {
    /// Not in a run of the loop.
    Outside = 0,
    /// In the loop's own code.
    Working = 1,
    /// In a callback.
    Callback = 2,
    /// In the kernel, waiting for events.
    Asleep = 3,
    /// Polling in a loop, in place of going to sleep.
    Spinning = 4,
}

impl State {
    /// All states, by number.
    pub const ALL: [State; 5] = [
        State::Outside,
        State::Working,
        State::Callback,
        State::Asleep,
        State::Spinning,
    ];

    /// The state's name.
    pub fn name(self) -> &'static str {
        match self {
            State::Outside => "outside",
            State::Working => "working",
            State::Callback => "callback",
            State::Asleep => "asleep",
            State::Spinning => "spinning",
        }
    }
}

/// Whose record it is.
#[derive(Debug)]
#[repr(C, align(4096))]
pub struct Page {
    /// [`SIGNATURE`], written last.
    pub signature: AtomicU64,
    /// [`VERSION`].
    pub version: AtomicU32,
    /// The process's number in its own namespace.
    pub pid: AtomicU32,
    /// The namespace's inode.
    pub pid_namespace: AtomicU64,
    /// When the process was started, in clock ticks since boot, as `/proc/PID/stat` has it; 0
    /// before the process records.
    pub start_ticks: AtomicU64,
    /// When the record was made.
    pub made_ns: AtomicU64,
    /// The library's version, as text.
    pub library: [AtomicU64; 2],
    /// 1 for the C library, 2 for the Rust crate.
    pub front: AtomicU32,
    /// Readers write 1 here to have the process record from its next poll on, and any other number
    /// than before, except 0, to have its loops bring their tables of handles up to date.
    pub wanted: AtomicU32,
    /// 1 once the body is in place.
    pub recording: AtomicU32,
    /// What could not be recorded for want of memory: segments that the system has refused.
    pub refused: AtomicU32,
    /// Where the [`Body`] lies.
    pub body: AtomicU64,
    /// How long the file is.
    pub length: AtomicU64,
    /// How a reader wakes the loops of this process, so that those which sleep notice `wanted`: the
    /// descriptor of an eventfd in the lowest 32 bits, and above them a number that no two loops
    /// share; 0 for none. An entry is cleared before its descriptor is closed. The eventfd has the
    /// flag `O_APPEND`, which means nothing to it, so that a reader knows it from one that the
    /// program has opened by this number after it closed ours.
    pub wakers: [AtomicU64; WAKERS],
}

/// One entry of the list of segments.
#[derive(Debug)]
#[repr(C)]
pub struct Segment {
    /// 0: none yet, 1: [`LoopSegment`], 2: [`HandleSegment`], 3: [`ThreadSegment`], 4:
    /// [`OriginSegment`]. Written last.
    pub kind: AtomicU32,
    /// The segment of the loop that it belongs to, for handles; the thread's number, for threads.
    pub owner: AtomicU32,
    /// Where it lies in the file.
    pub offset: AtomicU64,
}

/// The kind of a loop's segment.
pub const SEGMENT_LOOP: u32 = 1;
/// The kind of a segment of handles.
pub const SEGMENT_HANDLES: u32 = 2;
/// The kind of a pool thread's segment.
pub const SEGMENT_THREAD: u32 = 3;
/// The kind of a segment of stacks.
pub const SEGMENT_ORIGINS: u32 = 4;

/// How often a number fell into each power of two.
#[derive(Debug)]
#[repr(C)]
pub struct Histogram {
    /// How many numbers each bucket has seen.
    pub buckets: [AtomicU64; BUCKETS],
    /// The sum of all numbers.
    pub sum: AtomicU64,
    /// The largest.
    pub max: AtomicU64,
}

/// What the thread pool does, beside what its [`ThreadSegment`]s say. Threads that the record has no
/// room for count in `running` and in the histograms here.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Pool {
    /// Its threads.
    pub threads: AtomicU32,
    /// The most slow requests that may run at a time.
    pub slow_limit: AtomicU32,
    /// Requests that wait for a thread, by kind.
    pub queued: [AtomicU32; REQUESTS],
    /// When the request that waits longest was submitted; 0 if none waits.
    pub oldest_ns: AtomicU64,
    /// The kind of that request.
    pub oldest_kind: AtomicU64,
    /// Requests that threads without a segment run, by kind.
    pub running: [AtomicU32; REQUESTS],
    /// Requests that have run for nobody knows how long, by kind: they ran when recording began.
    pub untimed: [AtomicU64; REQUESTS],
    /// How long requests have waited for threads without a segment, by kind.
    pub wait: [Histogram; REQUESTS],
    /// How long they have run, by kind.
    pub run: [Histogram; REQUESTS],
}

/// The list of segments, and the pool.
#[derive(Debug)]
#[repr(C, align(4096))]
pub struct Body {
    /// When recording began.
    pub since_ns: AtomicU64,
    /// The segments there are.
    pub count: AtomicU32,
    /// 0.
    pub reserved: AtomicU32,
    /// The segments, in the order in which they were made.
    pub segments: [Segment; SEGMENTS],
    /// The thread pool.
    pub pool: Pool,
}

/// What a loop's thread is doing. The fields between two even values of `sequence` belong together.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Now {
    /// Odd while the other fields change, and the loop's `time_ns`.
    pub sequence: AtomicU32,
    /// 0.
    pub reserved: AtomicU32,
    /// From the lowest bits: a [`State`] (8 bits), the phase (8) and the kind (8) of a callback, 8
    /// bits of zero, and the lowest 32 bits of the turn.
    pub what: AtomicU64,
    /// Since when.
    pub since_ns: AtomicU64,
    /// The code that is called back; 0 if it is not known. It says nothing in other states.
    pub callback: AtomicU64,
    /// The handle or request that it is for.
    pub token: AtomicU64,
    /// When a sleep is to end; 0 for never. It says nothing in other states.
    pub until_ns: AtomicU64,
}

/// What callbacks of one address have cost.
#[derive(Debug)]
#[repr(C)]
pub struct Costly {
    /// The code; 0 for an empty entry.
    pub address: AtomicU64,
    /// The kind of the first callback.
    pub kind: AtomicU64,
    /// How many there were.
    pub count: AtomicU64,
    /// How long they took together.
    pub total_ns: AtomicU64,
    /// How long the longest took.
    pub longest_ns: AtomicU64,
}

/// Something that has happened, in a [`Ring`].
#[derive(Debug)]
#[repr(C)]
pub struct Event {
    /// When it began.
    pub at_ns: AtomicU64,
    /// How long it took.
    pub took_ns: AtomicU64,
    /// From the lowest bits: [event](crate::What) (8 bits), phase (8), kind (8), 8 bits of zero,
    /// and the lowest 32 bits of the turn.
    pub what: AtomicU64,
    /// The code that was called back.
    pub address: AtomicU64,
    /// The handle or request.
    pub token: AtomicU64,
}

/// The last events of a thread. Each overwrites the one [`RING`] events ago.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Ring {
    /// How many events there have been, of all loops or threads that have had the segment.
    pub count: AtomicU64,
    /// The number of the first event of the present one.
    pub first: AtomicU64,
    /// Event number `n` is at `n % RING`.
    pub events: [Event; RING],
}

/// A request to the thread pool or to the kernel's ring that is in progress.
#[derive(Debug)]
#[repr(C)]
pub struct Pending {
    /// The request's name in its program: in C its address.
    pub token: AtomicU64,
    /// When it was submitted.
    pub queued_ns: AtomicU64,
    /// Its kind, an index into [`REQUEST_KINDS`], and 1 more; 0 for an empty entry. Written last.
    pub kind: AtomicU64,
}

/// One loop.
#[derive(Debug)]
#[repr(C, align(4096))]
pub struct LoopSegment {
    /// The loop's number in its process, from 1; 0 while the segment is not in use.
    pub id: AtomicU32,
    /// The thread that runs it.
    pub tid: AtomicU32,
    /// When it was made, or first recorded.
    pub made_ns: AtomicU64,
    /// When it was closed; 0 if it is open.
    pub closed_ns: AtomicU64,
    /// The loop's name: text that ends at its first zero.
    pub name: [AtomicU64; 4],
    /// The name of the poller.
    pub poller: [AtomicU64; 2],
    /// Handles in the loop's table, at most: later entries are empty.
    pub handles: AtomicU32,
    /// Handles that the record has no room for, as of the last walk over them.
    pub handles_lost: AtomicU32,
    /// Requests in progress.
    pub requests: AtomicU32,
    /// Active handles that keep the loop alive.
    pub active: AtomicU32,
    /// Requests that the record had no room for.
    pub requests_lost: AtomicU32,
    /// 0.
    pub reserved: AtomicU32,
    /// What the thread is doing.
    pub now: Now,
    /// The time spent in each [`State`], up to the last change of state.
    pub time_ns: [AtomicU64; 8],
    /// Turns so far.
    pub turns: AtomicU64,
    /// When the table of handles was last brought up to date.
    pub walked_ns: AtomicU64,
    /// The turn in which that was. The table of a loop that waits is up to date if this is its
    /// present turn.
    pub walked_turn: AtomicU64,
    /// How long turns took, without sleeping and spinning. A turn ends where the next one polls, or
    /// with the run.
    pub turn: Histogram,
    /// How long callbacks waited in the loop: a timer's since it was due, a poll's since the poller
    /// reported it.
    pub delay: Histogram,
    /// How much later than asked for a sleep that nothing interrupted has ended.
    pub late: Histogram,
    /// How long sleeps took.
    pub sleep: Histogram,
    /// How long the thread was outside of the loop's runs.
    pub outside: Histogram,
    /// How long callbacks took, by where they were called (see [`WHERE`]) and by kind. Their phase
    /// follows from the two. Together these histograms count all callbacks.
    pub took: [[Histogram; KINDS]; WHERE],
    /// The costliest callbacks, in sets of four.
    pub costly: [Costly; COSTLY],
    /// Requests in progress. Those of streams and UDP handles are with their [`Handle`]s.
    pub pending: [Pending; PENDING],
    /// The last events.
    pub ring: Ring,
}

/// One handle.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Handle {
    /// Odd while the other fields change.
    pub sequence: AtomicU32,
    /// From the lowest bits: kind (8 bits), [`ACTIVE`], [`REFERENCED`], [`CLOSING`], [`LISTENING`],
    /// [`CONNECTING`], [`SHUTTING_DOWN`]. 0 for an empty entry.
    pub what: AtomicU32,
    /// The handle's name in its program: in C its address.
    pub token: AtomicU64,
    /// When it was made, or first recorded.
    pub made_ns: AtomicU64,
    /// The code that it calls back; 0 if that is not known.
    pub callback: AtomicU64,
    /// A timer's due time.
    pub due_ns: AtomicU64,
    /// A timer's interval.
    pub repeat_ns: AtomicU64,
    /// Its descriptor, a process's number, or a signal's; -1 if it has none.
    pub number: AtomicI32,
    /// Bytes of `text` in use.
    pub text_length: AtomicU32,
    /// A path.
    pub text: [AtomicU64; TEXT / 8],
    /// Writes or sends that are not complete.
    pub writes: AtomicU32,
    /// How long a timer was set for when it was started last, in milliseconds: what was left when
    /// the record first had its due time, which is a little less. 0 if that is not known, as for a
    /// timer that was started before its loop was recorded.
    pub set_for_ms: AtomicU32,
    /// The bytes of those that the kernel has not taken.
    pub queued_bytes: AtomicU64,
}

const _: () = assert!(size_of::<Handle>() == 128);

/// The handle is started.
pub const ACTIVE: u32 = 1 << 8;
/// The handle keeps its loop alive while it is active.
pub const REFERENCED: u32 = 1 << 9;
/// The handle is being closed.
pub const CLOSING: u32 = 1 << 10;
/// The handle is a server's: it listens.
pub const LISTENING: u32 = 1 << 11;
/// The handle has a connect request in progress.
pub const CONNECTING: u32 = 1 << 12;
/// The handle has a shutdown request in progress.
pub const SHUTTING_DOWN: u32 = 1 << 13;

/// Some handles of a loop. The first segment of a loop has the handles 0 to `HANDLES - 1` of its
/// table.
#[derive(Debug)]
#[repr(C, align(4096))]
pub struct HandleSegment {
    /// The handles.
    pub handles: [Handle; HANDLES],
}

/// Where the handles of a [`HandleSegment`] with the same owner were made.
#[derive(Debug)]
#[repr(C, align(4096))]
pub struct OriginSegment {
    /// For each handle the code addresses of its making, the innermost first; 0 after the last one.
    pub stacks: [[AtomicU64; FRAMES]; HANDLES],
}

/// One thread of the pool.
#[derive(Debug)]
#[repr(C, align(4096))]
pub struct ThreadSegment {
    /// The thread; 0 once it has ended.
    pub tid: AtomicU32,
    /// The kind of the request that it runs, and 1 more; 0 while it runs none.
    pub running: AtomicU32,
    /// Since when it runs a request, or none.
    pub since_ns: AtomicU64,
    /// The request that it runs.
    pub token: AtomicU64,
    /// How long requests have waited for this thread, by kind, and for those that have had the
    /// segment before.
    pub wait: [Histogram; REQUESTS],
    /// How long the requests have run.
    pub run: [Histogram; REQUESTS],
    /// The requests that it has run, as events.
    pub ring: Ring,
}
