//! What happened between two snapshots of a record.
//!
//! A record counts from the beginning. A view shows what is so now, which is the difference of two copies of it.

use crate::sample::is_unused;
use crate::wakes::Wakes;
use blacklight_record::layout::{KINDS, REQUEST_KINDS, REQUESTS, State};
use blacklight_record::read::{Histogram, Loop, Now, Pool, Snapshot};

/// What happened between two snapshots.
#[derive(Clone, Default, Debug)]
pub(crate) struct Span {
    /// When it ended.
    pub(crate) until_ns: u64,
    /// How long it is.
    pub(crate) took_ns: u64,
    /// The loops that were open at its end.
    pub(crate) loops: Vec<LoopSpan>,
    /// The thread pool.
    pub(crate) pool: PoolSpan,
}

/// What one loop did.
#[derive(Clone, Debug)]
pub(crate) struct LoopSpan {
    /// Its number in the process, from 1.
    pub(crate) id: u32,
    /// Its name, or nothing.
    pub(crate) name: String,
    /// The name of its poller.
    pub(crate) poller: String,
    /// The thread that runs it.
    pub(crate) tid: u32,
    /// What it does at the end of the span.
    pub(crate) now: Now,
    /// The time spent in each [`State`], by its number.
    pub(crate) time_ns: [u64; 5],
    /// Turns.
    pub(crate) turns: u64,
    /// Callbacks.
    pub(crate) callbacks: u64,
    /// Whether it was never used.
    pub(crate) is_unused: bool,
    /// Requests in progress.
    pub(crate) requests: u32,
    /// Active handles that keep it alive.
    pub(crate) active: u32,
    /// Changes of handles that the record had no room for.
    pub(crate) handles_lost: u32,
    /// How long callbacks waited in the loop.
    pub(crate) delay: Histogram,
    /// How much later than asked for sleeps have ended.
    pub(crate) late: Histogram,
    /// How long callbacks took, by kind.
    pub(crate) by_kind: [Histogram; KINDS],
    /// The costliest callbacks since the loop was made.
    pub(crate) costly: Vec<Cost>,
    /// When the list of its handles was written.
    pub(crate) walked_ns: u64,
    /// What woke it, if that was looked at.
    pub(crate) wakes: Option<Wakes>,
}

/// What callbacks of one address have cost.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Cost {
    /// The code.
    pub(crate) address: u64,
    /// The kind of the callbacks.
    pub(crate) kind: usize,
    /// How many there were in the span.
    pub(crate) count: u64,
    /// How long those took.
    pub(crate) total_ns: u64,
    /// The longest of the span that is known; the record keeps only the last events.
    pub(crate) longest_ns: u64,
    /// How many there were at all.
    pub(crate) all_count: u64,
    /// How long all took.
    pub(crate) all_total_ns: u64,
    /// The longest of all.
    pub(crate) all_longest_ns: u64,
}

/// What the thread pool did.
#[derive(Clone, Default, Debug)]
pub(crate) struct PoolSpan {
    /// How many threads it has; 0 before its first request.
    pub(crate) threads: u32,
    /// The most slow requests that may run at a time.
    pub(crate) slow_limit: u32,
    /// Requests that wait at the end of the span, by kind.
    pub(crate) queued: [u32; REQUESTS],
    /// Requests that run at its end, by kind.
    pub(crate) running: [u32; REQUESTS],
    /// Requests that have ended in the span, by kind.
    pub(crate) completed: [u64; REQUESTS],
    /// How long the oldest request has waited, and its kind.
    pub(crate) oldest: Option<(u64, usize)>,
    /// How long requests have waited for a thread, by kind.
    pub(crate) wait: [Histogram; REQUESTS],
    /// How long requests have run, by kind.
    pub(crate) run: [Histogram; REQUESTS],
    /// Its threads.
    pub(crate) members: Vec<Member>,
}

/// One thread of the pool at the end of the span.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Member {
    /// The thread.
    pub(crate) tid: u32,
    /// The kind of the request that it runs.
    pub(crate) running: Option<usize>,
    /// For how long.
    pub(crate) for_ns: u64,
}

/// Whether requests of this kind may occupy a part of the pool only.
pub(crate) fn is_slow(kind: usize) -> bool {
    matches!(
        REQUEST_KINDS.get(kind),
        Some(&"getaddrinfo" | &"getnameinfo")
    )
}

impl Span {
    /// What happened between two snapshots of the same process. A loop that is younger than the
    /// first one has all of its life in the span.
    pub(crate) fn between(earlier: &Snapshot, later: &Snapshot) -> Span {
        // What was never used is left out, unless there is nothing else.
        let is_any_used = later.loops.iter().any(|lp| !is_unused(lp));
        let loops = later
            .loops
            .iter()
            .filter(|lp| !is_any_used || !is_unused(lp));
        let loops = loops.map(|lp| {
            let before = earlier.loops.iter().find(|old| old.id == lp.id);
            LoopSpan::between((before, earlier.taken_ns), lp, later.taken_ns)
        });
        Span {
            until_ns: later.taken_ns,
            took_ns: later.taken_ns.saturating_sub(earlier.taken_ns),
            loops: loops.collect(),
            pool: PoolSpan::between(&earlier.pool, &later.pool, later.taken_ns),
        }
    }

    /// The same, with this loop only.
    pub(crate) fn of_loop(&self, id: u32) -> Span {
        let mut span = self.clone();
        span.loops.retain(|lp| lp.id == id);
        span
    }

    /// What the callbacks of each address have cost in all loops together.
    pub(crate) fn costs(&self) -> Vec<Cost> {
        let mut costs: Vec<Cost> = Vec::new();
        for cost in self.loops.iter().flat_map(|lp| &lp.costly) {
            match costs.iter_mut().find(|of| of.address == cost.address) {
                Some(sum) => sum.add(cost),
                None => costs.push(*cost),
            }
        }
        costs
    }
}

impl LoopSpan {
    fn between((before, at_ns): (Option<&Loop>, u64), lp: &Loop, now_ns: u64) -> LoopSpan {
        let spent = before.map_or([0; 5], |old| old.time_until(at_ns));
        let time_ns = lp.time_until(now_ns);
        let since = |of: fn(&Loop) -> &Histogram| match before {
            Some(old) => of(lp).since(of(old)),
            None => *of(lp),
        };
        let costly = lp.costly.iter().map(|cost| {
            let old =
                before.and_then(|old| old.costly.iter().find(|of| of.address == cost.address));
            let (count, total_ns) = old.map_or((0, 0), |old| (old.count, old.total_ns));
            let is_new = old.is_none_or(|old| old.longest_ns < cost.longest_ns);
            Cost {
                address: cost.address,
                kind: cost.kind,
                count: cost.count.saturating_sub(count),
                total_ns: cost.total_ns.saturating_sub(total_ns),
                longest_ns: if is_new { cost.longest_ns } else { 0 },
                all_count: cost.count,
                all_total_ns: cost.total_ns,
                all_longest_ns: cost.longest_ns,
            }
        });
        LoopSpan {
            id: lp.id,
            name: lp.name.clone(),
            poller: lp.poller.clone(),
            tid: lp.tid,
            now: lp.now,
            time_ns: std::array::from_fn(|state| time_ns[state].saturating_sub(spent[state])),
            turns: lp.turns.saturating_sub(before.map_or(0, |old| old.turns)),
            callbacks: lp
                .callbacks
                .saturating_sub(before.map_or(0, |old| old.callbacks)),
            is_unused: is_unused(lp),
            requests: lp.requests,
            active: lp.active,
            handles_lost: lp.handles_lost,
            delay: since(|lp| &lp.delay),
            late: since(|lp| &lp.late),
            by_kind: std::array::from_fn(|kind| match before {
                Some(old) => lp.by_kind[kind].since(&old.by_kind[kind]),
                None => lp.by_kind[kind],
            }),
            costly: costly.collect(),
            walked_ns: lp.walked_ns,
            wakes: None,
        }
    }

    /// The time in a state.
    pub(crate) fn time(&self, state: State) -> u64 {
        self.time_ns[state as usize]
    }

    /// The time in all states.
    pub(crate) fn whole_ns(&self) -> u64 {
        self.time_ns
            .iter()
            .fold(0, |sum, ns| sum.saturating_add(*ns))
    }

    /// The time in callbacks and in the loop's own code, in which it could take nothing else.
    pub(crate) fn busy_ns(&self) -> u64 {
        self.time(State::Callback)
            .saturating_add(self.time(State::Working))
    }

    /// How long the longest callback took that has ended in the span.
    pub(crate) fn longest_ns(&self) -> u64 {
        let longest = self.by_kind.iter().map(|histogram| histogram.longest_ns);
        longest.max().unwrap_or(0)
    }

    /// What to call it in a sentence.
    pub(crate) fn title(&self) -> String {
        title(self.id, &self.name)
    }
}

/// What to call a loop in a sentence.
pub(crate) fn title(id: u32, name: &str) -> String {
    match name {
        "" => format!("loop {id}"),
        _ => format!("loop {id} ({name})"),
    }
}

impl Member {
    /// Whether it runs work that the program has queued itself.
    pub(crate) fn is_work(&self) -> bool {
        self.running.and_then(|kind| REQUEST_KINDS.get(kind)) == Some(&"work")
    }
}

impl Cost {
    /// Adds the cost of the same code in another loop.
    fn add(&mut self, other: &Cost) {
        self.count = self.count.saturating_add(other.count);
        self.total_ns = self.total_ns.saturating_add(other.total_ns);
        self.longest_ns = self.longest_ns.max(other.longest_ns);
        self.all_count = self.all_count.saturating_add(other.all_count);
        self.all_total_ns = self.all_total_ns.saturating_add(other.all_total_ns);
        self.all_longest_ns = self.all_longest_ns.max(other.all_longest_ns);
    }
}

impl PoolSpan {
    fn between(earlier: &Pool, later: &Pool, now_ns: u64) -> PoolSpan {
        let members = later.members.iter().map(|thread| Member {
            tid: thread.tid,
            running: thread.running,
            for_ns: now_ns.saturating_sub(thread.since_ns),
        });
        PoolSpan {
            threads: later.threads,
            slow_limit: later.slow_limit,
            queued: later.queued,
            running: later.running,
            completed: std::array::from_fn(|kind| {
                later.completed[kind].saturating_sub(earlier.completed[kind])
            }),
            oldest: later
                .oldest
                .map(|(at_ns, kind)| (now_ns.saturating_sub(at_ns), kind)),
            wait: std::array::from_fn(|kind| later.wait[kind].since(&earlier.wait[kind])),
            run: std::array::from_fn(|kind| later.run[kind].since(&earlier.run[kind])),
            members: members.collect(),
        }
    }

    /// How long requests of all kinds have waited.
    pub(crate) fn waits(&self) -> Histogram {
        let mut all = Histogram::default();
        self.wait.iter().for_each(|histogram| all.add(histogram));
        all
    }

    /// The member that has run a request longest.
    pub(crate) fn longest(&self) -> Option<&Member> {
        let running = self
            .members
            .iter()
            .filter(|member| member.running.is_some());
        running.max_by_key(|member| member.for_ns)
    }
}
