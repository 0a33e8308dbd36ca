//! The requests of a loop by their kinds.
//!
//! The record lists the requests that are with the thread pool or the kernel's ring one by one; those of streams and UDP handles are with
//! their handles.

use blacklight_record::layout::REQUEST_KINDS;
use blacklight_record::read::{Handle, Loop};

/// The names of all kinds.
pub(crate) const KINDS: [&str; 10] = [
    "write",
    "send",
    "connect",
    "shutdown",
    "work",
    "fs",
    "getaddrinfo",
    "getnameinfo",
    "random",
    "other",
];

/// How many requests of each kind a loop has, with names for those that it has.
pub(crate) fn by_kind(lp: &Loop, handles: &[Handle]) -> Vec<(&'static str, u64)> {
    let mut counts: Vec<(&'static str, u64)> = Vec::new();
    let mut add = |kind: &'static str, number: u64| {
        if number > 0 {
            match counts.iter_mut().find(|(of, _)| *of == kind) {
                Some((_, count)) => *count += number,
                None => counts.push((kind, number)),
            }
        }
    };
    for request in &lp.pending {
        add(REQUEST_KINDS[request.kind], 1);
    }
    for handle in handles {
        let writes = if handle.kind == "udp" {
            "send"
        } else {
            "write"
        };
        add(writes, handle.writes.into());
        add("connect", handle.is_connecting.into());
        add("shutdown", handle.is_shutting_down.into());
    }
    let known: u64 = counts.iter().map(|(_, number)| number).sum();
    // The handles are as of the last walk over them, the number of requests is as of the last turn.
    let others = u64::from(lp.requests).saturating_sub(known);
    if others > 0 {
        counts.push(("other", others));
    }
    counts
}
