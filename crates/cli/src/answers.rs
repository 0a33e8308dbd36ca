//! What a record says, as answers to the questions that people have about a loop.
//!
//! The answers come from a [`Span`], the handles and the stalls that are known, and from nothing else. Where
//! there are many loops, the worst is answered for, and named.

mod alive;
mod pool;
#[cfg(test)]
mod tests;

use crate::descriptor::Descriptors;
use crate::names::Names;
use crate::span::{LoopSpan, Span, title};
use crate::stalls::Stall;
use crate::words::{count, duration, list, percent};
use blacklight_record::layout::State;
use blacklight_record::read::{Handle, callback_kind};
use std::collections::HashMap;

/// How long after its end a stall is still news.
const NEWS_NS: u64 = 10_000_000_000;
/// The delay in the loop from which on it is noticed, and is bad.
const DELAY_NS: [u64; 2] = [10_000_000, 100_000_000];
/// The busy share from which on it is noticed, and is bad, in percents.
const BUSY: [u64; 2] = [70, 90];
/// How late sleeps may end until it is noticed, and is bad.
const LATE_NS: [u64; 2] = [5_000_000, 50_000_000];
/// The width of a name in an answer.
const NAME: usize = 48;
/// How many frames of a stack an answer has.
const FRAMES: usize = 3;

/// A question.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Question {
    /// What blocks my loop?
    Blocked,
    /// Is the thread pool starved?
    Pool,
    /// What keeps it running?
    Alive,
    /// Where do the milliseconds go?
    Time,
    /// How much headroom has the loop?
    Headroom,
    /// Is it me or the machine?
    Machine,
}

impl Question {
    /// One or two words that stand before the answer.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Question::Blocked => "blocked",
            Question::Pool => "pool",
            Question::Alive => "alive",
            Question::Time => "time",
            Question::Headroom => "headroom",
            Question::Machine => "machine",
        }
    }

    /// The question in words.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Question::Blocked => "What blocks the loop?",
            Question::Pool => "Is the thread pool starved?",
            Question::Alive => "What keeps it running?",
            Question::Time => "Where do the milliseconds go?",
            Question::Headroom => "How much headroom is there?",
            Question::Machine => "Is it the program or the machine?",
        }
    }
}

/// How an answer is to be taken.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Verdict {
    /// All is as it should be.
    Fine,
    /// It may become bad.
    Notice,
    /// It is bad.
    Bad,
}

impl Verdict {
    /// A mark of one character, which says it without colours.
    pub(crate) fn mark(self) -> &'static str {
        match self {
            Verdict::Fine => "·",
            Verdict::Notice => "!",
            Verdict::Bad => "✗",
        }
    }

    /// The verdict in a word.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Verdict::Fine => "fine",
            Verdict::Notice => "notice",
            Verdict::Bad => "bad",
        }
    }

    /// What a number says that is to be noticed from the first limit on, and is bad from the second.
    fn of(number: u64, limits: [u64; 2]) -> Verdict {
        match number {
            _ if number >= limits[1] => Verdict::Bad,
            _ if number >= limits[0] => Verdict::Notice,
            _ => Verdict::Fine,
        }
    }
}

/// The answer to a question.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Answer {
    /// The question.
    pub(crate) question: Question,
    /// How it is to be taken.
    pub(crate) verdict: Verdict,
    /// The answer.
    pub(crate) sentence: String,
    /// What it rests on, line by line.
    pub(crate) evidence: Vec<String>,
}

impl Answer {
    fn new(question: Question, verdict: Verdict, sentence: String) -> Answer {
        Answer {
            question,
            verdict,
            sentence,
            evidence: Vec::new(),
        }
    }
}

/// What the answers are made from.
pub(crate) struct Facts<'a> {
    /// What has happened lately.
    pub(crate) span: &'a Span,
    /// The handles of each loop, by its number.
    pub(crate) handles: &'a HashMap<u32, Vec<Handle>>,
    /// The stalls that are known, in the order of [`Watcher::stalls`](crate::stalls::Watcher::stalls).
    pub(crate) stalls: &'a [Stall],
    /// The code of the program's own work that has run longest in the pool, if that is known.
    pub(crate) work: Option<&'a str>,
    /// The descriptors of the process.
    pub(crate) descriptors: &'a Descriptors,
    /// From when on a callback is a stall.
    pub(crate) limit_ns: u64,
}

/// Answers all questions.
pub(crate) fn answers(facts: &Facts<'_>, names: &mut dyn Names) -> Vec<Answer> {
    vec![
        blocked(facts, names),
        pool::pool(&facts.span.pool, facts.work),
        alive::alive(facts, names),
        times(facts.span),
        headroom(facts.span, names),
        machine(facts.span),
    ]
}

/// "the loop" where there is only one, and its number and name where there are more.
fn which(span: &Span, lp: &LoopSpan) -> String {
    match span.loops.len() {
        1 => "the loop".into(),
        _ => lp.title(),
    }
}

/// The sentence with a capital at its beginning.
fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        Some(first) => first.to_uppercase().chain(chars).collect(),
        None => String::new(),
    }
}

/// The answer if there are no loops.
fn no_loop(question: Question) -> Answer {
    let said = "The process has no loop open.".into();
    Answer::new(question, Verdict::Notice, said)
}

/// The answer if no loop was ever run, as when the program has just been started.
fn not_run(question: Question, span: &Span) -> Option<Answer> {
    let is_run = span.loops.is_empty() || span.loops.iter().any(|lp| !lp.is_unused);
    let said = "The program has not run a loop yet.".into();
    (!is_run).then(|| Answer::new(question, Verdict::Notice, said))
}

/// A callback of a stall: its kind and the name of its code.
fn callback(stall: &Stall, names: &mut dyn Names) -> String {
    kind_and_code(stall.kind, stall.address, names)
}

fn kind_and_code(kind: usize, address: u64, names: &mut dyn Names) -> String {
    let callback = of_kind(kind);
    match address {
        0 => callback,
        address => format!("{callback} ({})", names.brief(address, NAME)),
    }
}

/// A callback of a kind.
fn of_kind(kind: usize) -> String {
    let kind = callback_kind(kind);
    let article = match kind.starts_with(['a', 'e', 'i']) {
        true => "an",
        false => "a",
    };
    format!("{article} {kind} callback")
}

/// What a stall does or did, where, and who has called that.
fn cause(stall: &Stall, names: &mut dyn Names) -> String {
    let callback = callback(stall, names);
    let (Some(doing), Some(sample)) = (stall.doing(), stall.samples.first()) else {
        return match &stall.refusal {
            Some(refusal) => format!("{callback}, without a stack: {refusal}"),
            None => callback,
        };
    };
    let frames = names.telling(&sample.addresses).into_iter().take(FRAMES);
    let frames: Vec<String> = frames.map(|of| names.brief(of, NAME)).collect();
    let place = match frames.is_empty() {
        true => String::new(),
        false => format!(" in {}", frames.join(" ← ")),
    };
    format!("{}{place}, called by {callback}", doing.words())
}

/// What would say more of a stall.
fn hint(stall: &Stall, names: &mut dyn Names) -> String {
    let stack = stall
        .samples
        .first()
        .map(|sample| sample.addresses.as_slice());
    let hint = stack.and_then(|stack| names.hint(stack));
    hint.map_or(String::new(), |hint| format!(" {hint}"))
}

/// Stalls of the same cause in a line.
fn stalls_line(cause: &str, stalls: &[&Stall], until_ns: u64) -> String {
    let longest = stalls.iter().map(|of| of.took_ns).max().unwrap_or(0);
    let last = stalls.iter().map(|of| of.ended_ns()).max().unwrap_or(0);
    let when = match stalls.iter().any(|of| !of.is_over) {
        true => "now".into(),
        false => format!("{} ago", duration(until_ns.saturating_sub(last))),
    };
    let longest = duration(longest);
    match stalls.len() {
        1 => format!("{longest}, {when}: {cause}"),
        n => format!("{n} times, up to {longest}, the last {when}: {cause}"),
    }
}

fn blocked(facts: &Facts<'_>, names: &mut dyn Names) -> Answer {
    let Facts { span, stalls, .. } = facts;
    if span.loops.is_empty() {
        return no_loop(Question::Blocked);
    }
    if let Some(answer) = not_run(Question::Blocked, span) {
        return answer;
    }
    let name = |stall: &Stall| match span.loops.iter().find(|lp| lp.id == stall.loop_id) {
        Some(lp) => which(span, lp),
        None => title(stall.loop_id, ""),
    };
    let running = stalls.iter().filter(|stall| !stall.is_over);
    let is_news = |stall: &&Stall| span.until_ns.saturating_sub(stall.ended_ns()) <= NEWS_NS;
    let news: Vec<&Stall> = stalls.iter().filter(is_news).collect();
    // One of which nobody knows what it did says less.
    let longest = news.iter().copied();
    let longest = longest.max_by_key(|stall| (!stall.samples.is_empty(), stall.took_ns));
    let mut answer = if let Some(stall) = running.max_by_key(|stall| stall.took_ns) {
        let (lp, took) = (name(stall), duration(stall.took_ns));
        let cause = cause(stall, names);
        let said = format!(
            "{lp} is blocked now, for {took} so far: {cause}.{}",
            hint(stall, names)
        );
        Answer::new(Question::Blocked, Verdict::Bad, sentence(&said))
    } else if let Some(stall) = longest {
        let (lp, took) = (name(stall), duration(stall.took_ns));
        let cause = cause(stall, names);
        let ago = duration(span.until_ns.saturating_sub(stall.ended_ns()));
        let more = match news.len() {
            1 => String::new(),
            n => format!(
                " In the last 10 s {n} callbacks took over {}.",
                duration(facts.limit_ns)
            ),
        };
        let hint = hint(stall, names);
        let said = format!("{lp} was blocked for {took}, {ago} ago: {cause}.{more}{hint}");
        Answer::new(Question::Blocked, Verdict::Bad, sentence(&said))
    } else {
        unblocked(facts, names)
    };
    let mut causes: Vec<(String, Vec<&Stall>)> = Vec::new();
    for stall in *stalls {
        let cause = format!("{}, {}", name(stall), cause(stall, names));
        match causes.iter_mut().find(|(of, _)| *of == cause) {
            Some((_, same)) => same.push(stall),
            None => causes.push((cause, vec![stall])),
        }
    }
    let lines = causes.iter().take(5);
    answer.evidence = lines
        .map(|(cause, same)| stalls_line(cause, same, span.until_ns))
        .collect();
    answer
}

/// The answer if no stall is news.
fn unblocked(facts: &Facts<'_>, names: &mut dyn Names) -> Answer {
    let span = facts.span;
    let outside = span.loops.iter().filter(|lp| {
        let for_ns = span.until_ns.saturating_sub(lp.now.since_ns);
        lp.now.state == State::Outside
            && for_ns >= facts.limit_ns
            && (lp.active > 0 || lp.requests > 0)
    });
    if let Some(lp) = outside.min_by_key(|lp| lp.now.since_ns) {
        let for_ns = span.until_ns.saturating_sub(lp.now.since_ns);
        let (lp, took) = (which(span, lp), duration(for_ns));
        let said = format!("{lp} has not been run for {took}: its thread is outside of it.");
        return Answer::new(Question::Blocked, Verdict::Notice, sentence(&said));
    }
    let worst = span.loops.iter().max_by_key(|lp| lp.longest_ns());
    let longest = worst.map_or(0, LoopSpan::longest_ns);
    let callbacks: u64 = span.loops.iter().map(|lp| lp.callbacks).sum();
    let subject = match span.loops.len() {
        1 => "the loop".into(),
        n => format!("any of the {n} loops"),
    };
    let now = match callbacks {
        0 => format!(
            "Nothing blocks {subject}; no callback ran in the last {}",
            duration(span.took_ns)
        ),
        _ => format!(
            "Nothing blocks {subject}: no callback took longer than {}",
            duration(longest)
        ),
    };
    let Some(past) = facts.stalls.iter().max_by_key(|stall| stall.took_ns) else {
        return Answer::new(Question::Blocked, Verdict::Fine, format!("{now}."));
    };
    let cause = cause(past, names);
    let before = count(facts.stalls.len() as u64, "stall");
    let ago = duration(span.until_ns.saturating_sub(past.ended_ns()));
    let took = duration(past.took_ns);
    let said = format!("{now}. Before that: {before}, the longest {took}, {ago} ago: {cause}.");
    Answer::new(Question::Blocked, Verdict::Notice, said)
}

/// How callbacks wait, where the worst is the loop with the longest delay.
fn times(span: &Span) -> Answer {
    let delay = |lp: &&LoopSpan| lp.delay.quantile_ns(0.99);
    let worst = span.loops.iter().max_by_key(|lp| (delay(lp), lp.busy_ns()));
    let Some(lp) = worst else {
        return no_loop(Question::Time);
    };
    let share = |part: u64| percent(part, lp.whole_ns());
    let mut parts = vec![format!("callbacks {} %", share(lp.time(State::Callback)))];
    let others = [
        ("the loop itself", lp.time(State::Working)),
        ("asleep", lp.time(State::Asleep)),
        ("spinning", lp.time(State::Spinning)),
        ("outside of the loop", lp.time(State::Outside)),
    ];
    let others = others.into_iter().filter(|(_, part)| share(*part) > 0);
    parts.extend(others.map(|(what, part)| format!("{what} {} %", share(part))));
    let mut said = match span.loops.len() {
        1 => format!("Time goes to {}", list(&parts)),
        _ => sentence(&format!("{}: {}", lp.title(), list(&parts))),
    };
    let (half, most) = (lp.delay.quantile_ns(0.5), lp.delay.quantile_ns(0.99));
    if lp.delay.count() > 0 {
        said += &match most {
            // What is called right after the poll has not waited.
            0 => "; ready callbacks do not wait".into(),
            _ => format!(
                "; ready callbacks wait up to {} (p50), {} (p99)",
                duration(half),
                duration(most)
            ),
        };
    }
    let waits = span.pool.waits();
    if waits.count() > 0 {
        said += &format!(
            ", pool requests {} (p99)",
            duration(waits.quantile_ns(0.99))
        );
    }
    let verdict = Verdict::of(most, DELAY_NS);
    let mut answer = Answer::new(Question::Time, verdict, said + ".");
    let mut kinds: Vec<_> = lp.by_kind.iter().enumerate().collect();
    kinds.retain(|(_, histogram)| histogram.count() > 0);
    kinds.sort_by_key(|(_, histogram)| std::cmp::Reverse(histogram.sum_ns));
    answer
        .evidence
        .extend(kinds.into_iter().take(5).map(|(kind, histogram)| {
            let (name, number) = (callback_kind(kind), histogram.count());
            let (sum, most) = (
                duration(histogram.sum_ns),
                duration(histogram.quantile_ns(0.99)),
            );
            let callbacks = count(number, "callback");
            format!("{callbacks} of kind {name}: {sum} together, up to {most} each (p99)")
        }));
    answer
}

/// How often a loop was woken, and mostly by what.
fn wakes_line(lp: &LoopSpan, names: &mut dyn Names) -> Option<String> {
    let wakes = lp.wakes.filter(|wakes| wakes.over_ns > 0)?;
    let each_second = wakes.count as f64 * 1e9 / wakes.over_ns as f64;
    let often = match each_second {
        1.5.. => format!("{each_second:.0} times a second"),
        _ => format!(
            "{} in {}",
            count(wakes.count, "time"),
            duration(wakes.over_ns)
        ),
    };
    let mostly = match wakes.most == wakes.count {
        true => "only",
        false => "mostly",
    };
    let callback = kind_and_code(wakes.kind, wakes.address, names);
    Some(format!(
        "{} is woken {often}, {mostly} by {callback}",
        lp.title()
    ))
}

fn headroom(span: &Span, names: &mut dyn Names) -> Answer {
    let busy = |lp: &LoopSpan| percent(lp.busy_ns(), lp.whole_ns());
    let Some(lp) = span.loops.iter().max_by_key(|lp| busy(lp)) else {
        return no_loop(Question::Headroom);
    };
    let share = busy(lp);
    let room = match share {
        0 => "hardly anything to do".into(),
        1..50 => format!("room for {} times as much", 100 / share),
        50..90 => format!("room for {} % more", (100 - share) * 100 / share),
        _ => "no room left".into(),
    };
    let said = match span.loops.len() {
        1 => format!("The loop is busy {share} % of the time: {room}."),
        n => {
            let sum = u64::saturating_add;
            let (all, whole) = span.loops.iter().fold((0, 0), |(all, whole), lp| {
                (sum(all, lp.busy_ns()), sum(whole, lp.whole_ns()))
            });
            let mean = percent(all, whole);
            let lp = lp.title();
            format!(
                "The busiest of {n} loops, {lp}, is busy {share} % of the time: {room}. All together: {mean} %."
            )
        }
    };
    let mut answer = Answer::new(Question::Headroom, Verdict::of(share, BUSY), said);
    let mut loops: Vec<&LoopSpan> = span.loops.iter().collect();
    loops.sort_by_key(|lp| std::cmp::Reverse(busy(lp)));
    let lines = loops.into_iter().take(5);
    answer.evidence = lines
        .flat_map(|lp| {
            let (title, poller) = (lp.title(), &lp.poller);
            let busy = format!("{title} is busy {} %, polls by {poller}", busy(lp));
            [Some(busy), wakes_line(lp, names)]
        })
        .flatten()
        .collect();
    answer
}

fn machine(span: &Span) -> Answer {
    let late = |lp: &&LoopSpan| lp.late.quantile_ns(0.99);
    let Some(lp) = span.loops.iter().max_by_key(late) else {
        return no_loop(Question::Machine);
    };
    let sleeps = lp.late.count();
    let most = late(&lp);
    let verdict = Verdict::of(most, LATE_NS);
    let said = match (sleeps, verdict) {
        (0, _) => {
            "No sign that the machine is slow, and nothing to tell it by: no sleep ran to its end."
                .into()
        }
        (_, Verdict::Fine) => {
            format!(
                "The machine wakes the loop in time: at most {} late (p99).",
                duration(most)
            )
        }
        _ => {
            let (lp, sleeps, most) = (which(span, lp), count(sleeps, "sleep"), duration(most));
            format!(
                "The machine wakes {lp} late: by up to {most} (p99 of {sleeps}). Other work has the processors."
            )
        }
    };
    Answer::new(Question::Machine, verdict, said)
}
