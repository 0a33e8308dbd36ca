//! What the page is told: documents, each under a key.
//!
//! A key is `PID/KIND`, `PID/KIND/ID` or `PID/KIND/LOOP/ID`. [`check`] knows which kind has which form, and is what a recording
//! goes through before a page sees any of it. Times are nanoseconds of the monotonic clock, and counts are since the loop was made: the
//! page takes differences, so that it may miss any number of frames.

use blacklight_record::layout::{PHASE_COUNT, REQUESTS};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// The version of the documents and of recordings. It changes with every change of this file; older ones are read.
pub(super) const VERSION: u32 = 3;
/// The longest text that is taken from a recording.
const TEXT: usize = 16 * 1024;

/// One process.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Process {
    pub(super) pid: u32,
    /// The process that has started it.
    pub(super) parent: u32,
    /// Its command line.
    pub(super) program: String,
    pub(super) state: Standing,
    /// Why it is not watched, or how it has ended.
    pub(super) note: String,
    /// When it has ended, or zero.
    pub(super) ended: u64,
    /// The events that were overwritten before they could be read.
    pub(super) lost: u64,
    /// Parts that the process could not record for want of memory.
    pub(super) refused: u32,
}

/// How a process is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Standing {
    /// It could be watched.
    Known,
    /// It was asked to record and does not yet.
    Asked,
    /// It is watched.
    Watched,
    /// It has ended.
    Ended,
    /// Its record cannot be read.
    Unreadable,
}

/// An answer.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Answer {
    pub(super) word: String,
    pub(super) question: String,
    pub(super) verdict: String,
    pub(super) sentence: String,
    pub(super) evidence: Vec<String>,
}

/// What does not change of a loop.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Loop {
    pub(super) id: u32,
    pub(super) name: String,
    pub(super) poller: String,
    pub(super) tid: u32,
    pub(super) made: u64,
}

/// A histogram: its buckets that are not empty, the sum and the largest.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Histogram {
    pub(super) b: Vec<(u8, u64)>,
    pub(super) sum: u64,
    pub(super) max: u64,
}

/// What a loop does and has done.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Turn {
    pub(super) state: String,
    pub(super) since: u64,
    pub(super) phase: String,
    pub(super) kind: String,
    pub(super) callback: String,
    pub(super) turns: u64,
    pub(super) callbacks: u64,
    pub(super) requests: u32,
    /// The requests in progress that have no document of their own, since there are too many.
    #[serde(default)]
    pub(super) unlisted: u32,
    pub(super) active: u32,
    /// Changes of handles that the record had no room for.
    pub(super) lost: u32,
    /// The time in each state: outside, working, callback, asleep, spinning.
    pub(super) time: [u64; 5],
    pub(super) delay: Histogram,
    pub(super) late: Histogram,
    /// Callbacks and their time in each phase.
    pub(super) phases: [(u64, u64); PHASE_COUNT],
}

/// What callbacks of one address have cost.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Cost {
    pub(super) name: String,
    pub(super) place: String,
    pub(super) kind: String,
    pub(super) count: u64,
    pub(super) total: u64,
    pub(super) longest: u64,
    /// How long those took that were seen.
    pub(super) seen: Histogram,
}

/// The thread pool.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Pool {
    pub(super) threads: u32,
    pub(super) slow: u32,
    /// The names of the kinds that the other fields count.
    pub(super) kinds: [String; REQUESTS],
    pub(super) queued: [u32; REQUESTS],
    pub(super) running: [u32; REQUESTS],
    pub(super) completed: [u64; REQUESTS],
    /// Since when the oldest request waits, and its kind.
    pub(super) oldest: Option<(u64, String)>,
    pub(super) wait: Histogram,
}

/// A thread of the pool.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Thread {
    pub(super) tid: u32,
    /// The kind of the request that it runs, or nothing.
    pub(super) running: String,
    /// The function of the program's own work that it runs, where a stack has told it.
    #[serde(default)]
    pub(super) work: String,
    pub(super) since: u64,
    /// The requests that were seen to end, and their time.
    pub(super) done: u64,
    pub(super) busy: u64,
    /// The last longer ones: when, how long, and the function of the work or else the kind.
    pub(super) last: Vec<(u64, u64, String)>,
}

/// A handle.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Handle {
    pub(super) kind: String,
    pub(super) state: String,
    /// Whether it keeps its loop alive.
    pub(super) keeps: bool,
    pub(super) made: u64,
    pub(super) callback: String,
    pub(super) due: u64,
    pub(super) repeat: u64,
    /// Its descriptor, path, signal or child, in words.
    pub(super) what: String,
    pub(super) writes: u32,
    pub(super) queued: u64,
    /// The number of the document with the stack of its making, or zero.
    pub(super) origin: u32,
}

/// Where handles were made.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Origin {
    pub(super) maker: String,
    pub(super) stack: Vec<String>,
}

/// A request in progress.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Request {
    pub(super) kind: String,
    pub(super) made: u64,
    /// The thread that runs it, or zero.
    pub(super) thread: u32,
}

/// A stall.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Stall {
    pub(super) id: u32,
    pub(super) phase: String,
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) began: u64,
    pub(super) took: u64,
    pub(super) over: bool,
    pub(super) doing: String,
    /// Why a stack could not be had, or nothing.
    #[serde(default)]
    pub(super) refusal: String,
    pub(super) stacks: Vec<Stack>,
}

/// A stack of a stall.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Stack {
    pub(super) doing: String,
    /// The frames, the innermost first, and whether each is a script's.
    pub(super) frames: Vec<(String, bool)>,
}

/// Whether all that a document says is of the right type and size.
pub(super) fn check(key: &str, value: &serde_json::value::RawValue) -> Result<(), String> {
    let mut parts = key.split('/');
    let is_number = |text: &str| {
        !text.is_empty() && text.len() <= 20 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    let pid = parts.next().unwrap_or_default();
    let kind = parts.next().unwrap_or_default();
    let rest: Vec<&str> = parts.collect();
    let depth = match kind {
        "process" | "answers" | "pool" => 0,
        "loop" | "turn" | "thread" | "origin" => 1,
        "cost" | "handle" | "request" | "stall" => 2,
        _ => return Err(format!("{kind:?} is no kind of document")),
    };
    if pid.parse::<u32>().is_err() || rest.len() != depth || !rest.iter().all(|of| is_number(of)) {
        return Err(format!("{key:?} is no key of a document"));
    }
    let text = value.get();
    let checked = match kind {
        "process" => parse::<Process>(text),
        "answers" => parse::<Vec<Answer>>(text),
        "pool" => parse::<Pool>(text),
        "loop" => parse::<Loop>(text),
        "turn" => parse::<Turn>(text),
        "thread" => parse::<Thread>(text),
        "origin" => parse::<Origin>(text),
        "cost" => parse::<Cost>(text),
        "handle" => parse::<Handle>(text),
        "request" => parse::<Request>(text),
        _ => parse::<Stall>(text),
    };
    checked.map_err(|error| format!("{key}: {error}"))?;
    let limit = if kind == "stall" { 64 * TEXT } else { 4 * TEXT };
    if text.len() > limit {
        return Err(format!("{key} is too long"));
    }
    Ok(())
}

fn parse<T: DeserializeOwned>(text: &str) -> Result<(), serde_json::Error> {
    serde_json::from_str::<T>(text).map(drop)
}
