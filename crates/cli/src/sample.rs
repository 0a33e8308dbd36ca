//! Copies of a record whose times add up, and what its loops are called.

use crate::threads::number_here;
use crate::words::{clean, duration};
use blacklight_record::layout::State;
use blacklight_record::read::{Error, Loop, Now, Reader, Snapshot};

/// How often a snapshot is taken again that was taken while a loop changed its state.
const TRIES: usize = 5;

/// The time of a loop that its states do not account for: what it spent in a state that ended while
/// the record was copied.
fn missing_ns(lp: &Loop) -> u64 {
    let counted = lp.time_ns.iter().fold(lp.made_ns, |sum, time| {
        // The record is another process's, and may hold any number.
        sum.saturating_add(*time)
    });
    lp.now.since_ns.abs_diff(counted)
}

/// Copies a record. A loop may wake while its times are copied, and its whole sleep be in none
/// of them; such a copy is thrown away, and the best one of a few is returned.
pub(crate) fn snapshot(reader: &Reader) -> Result<Snapshot, Error> {
    let missing = |snapshot: &Snapshot| snapshot.loops.iter().map(missing_ns).max().unwrap_or(0);
    let mut best = reader.snapshot()?;
    for _ in 1..TRIES {
        if missing(&best) == 0 {
            break;
        }
        let other = reader.snapshot()?;
        if missing(&other) <= missing(&best) {
            best = other;
        }
    }
    Ok(best)
}

/// The time that a loop has spent in each state up to a moment, without overflow.
pub(crate) fn times_ns(lp: &Loop, now_ns: u64) -> [u64; 5] {
    let mut times = lp.time_ns;
    let present = &mut times[lp.now.state as usize];
    *present = present.saturating_add(now_ns.saturating_sub(lp.now.since_ns));
    times
}

/// The age from which on a list of handles is said to be old.
const OLD_NS: u64 = 1_000_000_000;

/// How old the list of a loop's handles is, in words, if handles may have changed since for long: while a loop
/// sleeps they do not change.
pub(crate) fn age_of_handles(walked_ns: u64, now: &Now, at_ns: u64) -> Option<String> {
    let last_ns = match now.state {
        State::Asleep => now.since_ns,
        _ => at_ns,
    };
    let is_old = walked_ns != 0 && last_ns.saturating_sub(walked_ns) >= OLD_NS;
    is_old.then(|| duration(at_ns.saturating_sub(walked_ns)))
}

/// What to call a loop: its name if its program has given it one, or else the thread that runs it.
pub(crate) fn name_of(pid: u32, lp: &Loop) -> String {
    if !lp.name.is_empty() {
        return clean(&lp.name);
    }
    let tid = number_here(pid, lp.tid);
    if tid == pid {
        return "main thread".into();
    }
    let name = std::fs::read(format!("/proc/{pid}/task/{tid}/comm"));
    clean(String::from_utf8_lossy(&name.unwrap_or_default()).trim_end())
}

/// Whether a loop was made and then never used, as some programs make loops for what they may be asked to do.
pub(crate) fn is_unused(lp: &Loop) -> bool {
    lp.turns == 0 && lp.now.state == State::Outside && lp.active == 0 && lp.requests == 0
}
