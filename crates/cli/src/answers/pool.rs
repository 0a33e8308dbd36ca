//! Is the thread pool starved, by what, and how long do requests wait?

use super::{Answer, Question, Verdict};
use crate::span::{PoolSpan, is_slow};
use crate::words::{count, duration, list};
use blacklight_record::layout::REQUESTS;
use blacklight_record::read::request_kind;

/// The wait for a thread from which on it is noticed, and is bad.
const WAIT_NS: [u64; 2] = [10_000_000, 100_000_000];

/// The numbers of requests of each kind, as words.
fn by_kind(numbers: &[u32; REQUESTS]) -> String {
    let all = sum(numbers, |_| true);
    let kinds = numbers
        .iter()
        .enumerate()
        .filter(|(_, number)| **number > 0);
    let kinds = kinds.map(|(kind, number)| format!("{number} {}", request_kind(kind)));
    let kinds = list(&kinds.collect::<Vec<_>>());
    format!("{kinds} {}", form(all, "request", "requests"))
}

/// The sum over kinds that pass.
fn sum(numbers: &[u32; REQUESTS], of: impl Fn(usize) -> bool) -> u32 {
    let kinds = numbers.iter().enumerate().filter(|(kind, _)| of(*kind));
    kinds.fold(0, |sum, (_, number)| sum.saturating_add(*number))
}

/// A word in the form for its number.
fn form<'a>(number: u32, one: &'a str, more: &'a str) -> &'a str {
    if number == 1 { one } else { more }
}

/// Answers for the pool.
pub(super) fn pool(pool: &PoolSpan, work: Option<&str>) -> Answer {
    let queued = sum(&pool.queued, |_| true);
    let running = sum(&pool.running, |_| true);
    let slow_running = sum(&pool.running, is_slow);
    let slow_queued = sum(&pool.queued, is_slow);
    let oldest_ns = pool.oldest.map_or(0, |(waited_ns, _)| waited_ns);
    let wait_ns = pool.waits().quantile_ns(0.99);
    let mut answer = if pool.threads == 0 && queued == 0 && running == 0 {
        let said = "The thread pool is not in use.".into();
        Answer::new(Question::Pool, Verdict::Fine, said)
    } else if queued > 0 && running >= pool.threads {
        let said = all_taken(pool, queued, work);
        let verdict = Verdict::of(oldest_ns.max(wait_ns), WAIT_NS);
        let said = match verdict {
            Verdict::Bad => format!("The thread pool is starved: {said} {}", advice(pool)),
            _ => format!("The thread pool is full: {said}"),
        };
        Answer::new(Question::Pool, verdict, said)
    } else if slow_queued > 0 && slow_running >= pool.slow_limit {
        let verdict = Verdict::of(oldest_ns.max(wait_ns), WAIT_NS);
        let said = slow_taken(pool, slow_running, slow_queued, verdict);
        Answer::new(Question::Pool, verdict, said)
    } else {
        keeps_up(pool, running, queued, wait_ns)
    };
    answer.evidence = evidence(pool);
    answer
}

/// All threads run something and more waits.
fn all_taken(pool: &PoolSpan, queued: u32, work: Option<&str>) -> String {
    let what = by_kind(&pool.running);
    let longest = match pool.longest() {
        Some(member) => {
            let took = duration(member.for_ns);
            let code = work.map(|code| format!(" in {code}"));
            format!(", the longest for {took}{}", code.unwrap_or_default())
        }
        None => String::new(),
    };
    let (waits, threads) = (form(queued, "waits", "wait"), pool.threads);
    let taken = match threads {
        1 => "its only thread runs".into(),
        _ => format!("all {threads} threads run"),
    };
    let oldest = match pool.oldest {
        Some((waited_ns, _)) if queued > 1 => format!(", the oldest for {}", duration(waited_ns)),
        Some((waited_ns, _)) => format!(" for {}", duration(waited_ns)),
        None => String::new(),
    };
    format!(
        "{taken} ({what}{longest}), {} {waits}{oldest}.",
        by_kind(&pool.queued)
    )
}

/// The slow requests have all threads that they may have.
fn slow_taken(pool: &PoolSpan, running: u32, queued: u32, verdict: Verdict) -> String {
    let (threads, limit) = (pool.threads, pool.slow_limit);
    let mut slow = pool.queued;
    slow.iter_mut().enumerate().for_each(|(kind, number)| {
        if !is_slow(kind) {
            *number = 0;
        }
    });
    let oldest = match pool.oldest {
        Some((waited_ns, kind)) if is_slow(kind) => {
            format!(", the oldest for {}", duration(waited_ns))
        }
        _ => String::new(),
    };
    let (run, wait) = (form(running, "runs", "run"), form(queued, "waits", "wait"));
    let starved = match verdict {
        Verdict::Bad => "starved of",
        _ => "full for",
    };
    format!(
        "The thread pool is {starved} name lookups: getaddrinfo and getnameinfo may have {limit} of its {threads} threads, {running} {run} and {} {wait}{oldest}. Raise UV_THREADPOOL_SIZE (now {threads}; half may look up names) or keep looked-up names.",
        by_kind(&slow)
    )
}

/// Threads are free.
fn keeps_up(pool: &PoolSpan, running: u32, queued: u32, wait_ns: u64) -> Answer {
    let threads = pool.threads;
    let waited = match pool.waits().count() {
        0 => String::new(),
        _ => format!(
            "; requests wait up to {} for a thread (p99)",
            duration(wait_ns)
        ),
    };
    let runs = form(running, "runs", "run");
    let what = match running {
        0 => format!("none of {} runs anything", count(threads.into(), "thread")),
        _ if running == threads => format!("all {threads} threads run {}", by_kind(&pool.running)),
        _ => format!("{running} of {threads} {runs} {}", by_kind(&pool.running)),
    };
    let queue = match queued {
        0 => "nothing waits".into(),
        _ => format!(
            "{} {}",
            by_kind(&pool.queued),
            form(queued, "waits", "wait")
        ),
    };
    let verdict = Verdict::of(wait_ns, WAIT_NS);
    let state = match verdict {
        Verdict::Fine => "keeps up",
        Verdict::Notice => "keeps up for now",
        Verdict::Bad => "was starved",
    };
    let mut said = format!("The thread pool {state}: {what}, {queue}{waited}.");
    if verdict == Verdict::Bad {
        said = format!("{said} {}", advice(pool));
    }
    Answer::new(Question::Pool, verdict, said)
}

/// What to do about it.
fn advice(pool: &PoolSpan) -> String {
    let threads = pool.threads;
    let most = (0..REQUESTS).max_by_key(|kind| (pool.running[*kind], pool.run[*kind].sum_ns));
    let or = match most.map(request_kind) {
        Some("work") => "split or move the long work",
        Some("fs") => "look at the file system",
        Some("getaddrinfo" | "getnameinfo") => "keep looked-up names",
        _ => "submit less at a time",
    };
    format!("Raise UV_THREADPOOL_SIZE (now {threads}) or {or}.")
}

/// The settings, and the waits and runs of each kind.
fn evidence(pool: &PoolSpan) -> Vec<String> {
    let threads = count(pool.threads.into(), "thread");
    let settings = format!(
        "{threads} (UV_THREADPOOL_SIZE), {} of them for name lookups at most",
        pool.slow_limit
    );
    let settings = (pool.threads > 0).then_some(settings);
    let kinds = (0..REQUESTS).filter(|kind| pool.wait[*kind].count() + pool.run[*kind].count() > 0);
    let lines = kinds.map(|kind| {
        let (name, ended) = (request_kind(kind), pool.completed[kind]);
        let times = [("waited", pool.wait[kind]), ("ran", pool.run[kind])];
        let times = times.iter().filter(|(_, of)| of.count() > 0);
        let times =
            times.map(|(did, of)| format!("{did} up to {}", duration(of.quantile_ns(0.99))));
        let times: Vec<String> = times.collect();
        format!("{name}: {ended} ended; requests {} (p99)", list(&times))
    });
    settings.into_iter().chain(lines).collect()
}
