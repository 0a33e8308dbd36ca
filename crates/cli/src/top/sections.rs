//! The text of the view: rows for the answers and for each section, for the terminal and for plain reports.

use super::session::{Shown, View};
use super::state::{Section, Sort, State};
use crate::answers::{Answer, Verdict};
use crate::span::{LoopSpan, PoolSpan};
use crate::words::{count, duration, list, number, percent, shorten, shorten_name, wrap};
use blacklight_record::layout::{REQUESTS, State as Doing};
use blacklight_record::read::{callback_kind, request_kind};
use std::collections::BTreeSet;

/// How many rows a section has that was not chosen.
const FEW: usize = 6;

/// The width from which on loops are shown with their pollers and threads.
const WIDE: usize = 96;

/// How a row stands out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Tone {
    /// Plain text.
    Plain,
    /// The heads of columns, and what is of less interest.
    Quiet,
    /// The title of a section.
    Title,
    /// An answer or a row with this verdict.
    Verdict(Verdict),
}

/// One line of text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Row {
    /// The text.
    pub(super) text: String,
    /// How it stands out.
    pub(super) tone: Tone,
}

impl Row {
    fn new(tone: Tone, text: impl Into<String>) -> Row {
        Row {
            text: text.into(),
            tone,
        }
    }

    fn plain(text: impl Into<String>) -> Row {
        Row::new(Tone::Plain, text)
    }
}

/// The answers as rows; with what they rest on, if there is room for it.
pub(super) fn answer_rows(answers: &[Answer], width: usize, has_evidence: bool) -> Vec<Row> {
    let mut rows = Vec::new();
    for answer in answers {
        let tone = Tone::Verdict(answer.verdict);
        let (mark, word) = (answer.verdict.mark(), answer.question.word());
        let lines = wrap(&answer.sentence, width.saturating_sub(11));
        for (at, line) in lines.iter().enumerate() {
            let text = match at {
                0 => format!("{mark} {word:<8} {line}"),
                _ => format!("{:11}{line}", ""),
            };
            rows.push(Row::new(tone, text));
        }
        let evidence = answer.evidence.iter().filter(|_| has_evidence);
        for line in evidence {
            let lines = wrap(line, width.saturating_sub(17));
            let lines = lines.into_iter().enumerate();
            rows.extend(lines.map(|(at, line)| {
                let indent = if at == 0 { 13 } else { 17 };
                Row::new(Tone::Quiet, format!("{:indent$}{line}", ""))
            }));
        }
    }
    rows
}

/// All sections, the chosen one first and whole, and of the others the first rows.
pub(super) fn rows(view: &View, state: &State, width: usize) -> Vec<Row> {
    let first = state.section as usize;
    let order = (0..Section::ALL.len()).map(|at| Section::ALL[(first + at) % Section::ALL.len()]);
    let mut rows = Vec::new();
    for section in order {
        let is_chosen = section == state.section;
        let limit = if is_chosen { usize::MAX } else { FEW };
        rows.extend(section_rows(section, view, state, width, limit));
    }
    rows
}

/// One section with at most so many rows.
pub(super) fn section_rows(
    section: Section,
    view: &View,
    state: &State,
    width: usize,
    limit: usize,
) -> Vec<Row> {
    let (head, mut body) = match section {
        Section::Loops => loops(view, width),
        Section::Pool => pool(&view.span.pool),
        Section::Callbacks => callbacks(view, state.sort, width),
        Section::Handles => handles(view),
        Section::Stalls => stalls(view, width),
    };
    let filter = state.filter.to_lowercase();
    body.retain(|row| row.text.to_lowercase().contains(&filter));
    let left = body.len().saturating_sub(limit);
    body.truncate(limit);
    let number = section as usize + 1;
    let more = match section {
        Section::Callbacks => format!(", by {}; s sorts", state.sort.name()),
        Section::Loops => polled_by(view),
        _ => String::new(),
    };
    let mut rows = vec![Row::new(
        Tone::Title,
        format!("{number} {}{more}", section.name()),
    )];
    if body.is_empty() {
        let none = if filter.is_empty() {
            "none"
        } else {
            "nothing has the text of the filter"
        };
        body.push(Row::new(Tone::Quiet, format!("  {none}")));
    } else if let Some(head) = head {
        rows.push(Row::new(Tone::Quiet, head));
    }
    rows.extend(body);
    if left > 0 {
        rows.push(Row::new(
            Tone::Quiet,
            format!("  {left} more: press {number}"),
        ));
    }
    rows
}

/// A number of things in a span as one for each second.
fn each_second(number: u64, took_ns: u64) -> u64 {
    (number as f64 * 1e9 / took_ns.max(1) as f64).round() as u64
}

/// What the loops poll by, which their program may have chosen.
fn polled_by(view: &View) -> String {
    let pollers: BTreeSet<&str> = view.span.loops.iter().map(|lp| &*lp.poller).collect();
    let pollers: Vec<String> = pollers.into_iter().map(str::to_owned).collect();
    match pollers.is_empty() {
        true => String::new(),
        false => format!(", polled by {}", list(&pollers)),
    }
}

fn loops(view: &View, width: usize) -> (Option<String>, Vec<Row>) {
    let head = format!(
        "  {:<16} {:<17} {:>5} {:>7} {:>7} {:>7} {:>7}",
        "loop", "state", "busy", "p50", "p99", "turns/s", "calls/s"
    );
    let rows = view
        .span
        .loops
        .iter()
        .map(|lp| loop_row(lp, view, width >= WIDE));
    (Some(head), rows.collect())
}

fn loop_row(lp: &LoopSpan, view: &View, is_wide: bool) -> Row {
    let for_ns = view.span.until_ns.saturating_sub(lp.now.since_ns);
    let state = match lp.now.state {
        Doing::Callback => format!("{} {}", callback_kind(lp.now.kind), duration(for_ns)),
        state => format!("{} {}", state.name(), duration(for_ns)),
    };
    let busy = percent(lp.busy_ns(), lp.whole_ns());
    let [half, most] = [0.5, 0.99].map(|share| match lp.delay.count() {
        0 => "–".into(),
        _ => duration(lp.delay.quantile_ns(share)),
    });
    let [turns, calls] = [lp.turns, lp.callbacks].map(|of| number(each_second(of, lp.whole_ns())));
    let name = match lp.name.as_str() {
        "" => lp.id.to_string(),
        name => shorten(&format!("{} {name}", lp.id), 16),
    };
    let more = match is_wide {
        true => format!("  {}, thread {}", lp.poller, lp.tid),
        false => String::new(),
    };
    Row::plain(format!(
        "  {name:<16} {:<17} {:>5} {half:>7} {most:>7} {turns:>7} {calls:>7}{more}",
        shorten(&state, 17),
        format!("{busy} %"),
    ))
}

fn pool(pool: &PoolSpan) -> (Option<String>, Vec<Row>) {
    if pool.threads == 0 && pool.members.is_empty() {
        return (None, Vec::new());
    }
    let waiting = |kind: &usize| pool.queued[*kind] > 0;
    let queue: Vec<String> = (0..REQUESTS)
        .filter(waiting)
        .map(|kind| format!("{} {}", pool.queued[kind], request_kind(kind)))
        .collect();
    let oldest = match pool.oldest {
        Some((waited_ns, kind)) => {
            format!("; oldest: {}, {}", request_kind(kind), duration(waited_ns))
        }
        None => String::new(),
    };
    let queue = match queue.is_empty() {
        true => "nothing".into(),
        false => queue.join(", "),
    };
    let (threads, slow) = (count(pool.threads.into(), "thread"), pool.slow_limit);
    let mut rows = vec![Row::plain(format!(
        "  {threads}, {slow} for name lookups; waiting: {queue}{oldest}"
    ))];
    rows.extend(pool.members.iter().map(|member| {
        let what = member.running.map_or("idle", request_kind);
        Row::plain(format!(
            "  thread {:<9} {what:<12} for {}",
            member.tid,
            duration(member.for_ns)
        ))
    }));
    (None, rows)
}

fn callbacks(view: &View, sort: Sort, width: usize) -> (Option<String>, Vec<Row>) {
    let mut costs: Vec<_> = view.costs.iter().collect();
    costs.sort_by_key(|(cost, _)| {
        let key = match sort {
            Sort::Total => (cost.total_ns, cost.all_total_ns),
            Sort::Longest => (cost.longest_ns, cost.all_longest_ns),
            Sort::Count => (cost.count, cost.all_count),
        };
        std::cmp::Reverse(key)
    });
    let room = width.saturating_sub(61).max(12);
    let head = format!(
        "  {:<room$} {:<10} {:>6} {:>7} {:>7} │ {:>6} {:>7} {:>7}",
        "callback", "kind", "count", "total", "longest", "ever", "total", "longest"
    );
    let rows = costs.into_iter().map(|(cost, name)| {
        Row::plain(format!(
            "  {:<room$} {:<10} {:>6} {:>7} {:>7} │ {:>6} {:>7} {:>7}",
            shorten_name(name, room),
            shorten(callback_kind(cost.kind), 10),
            number(cost.count),
            duration(cost.total_ns),
            duration(cost.longest_ns),
            number(cost.all_count),
            duration(cost.all_total_ns),
            duration(cost.all_longest_ns)
        ))
    });
    (Some(head), rows.collect())
}

fn handles(view: &View) -> (Option<String>, Vec<Row>) {
    let head = format!(
        "  {:<10} {:>7} {:>7} {:>7}  since the view began",
        "kind", "total", "active", "holding"
    );
    let rows = view.handles.iter().map(|kind| {
        let growth = match kind.growth {
            0 => String::new(),
            growth => format!("{growth:+}"),
        };
        Row::plain(format!(
            "  {:<10} {:>7} {:>7} {:>7}  {growth}",
            kind.name, kind.total, kind.active, kind.referenced
        ))
    });
    (Some(head), rows.collect())
}

fn stalls(view: &View, width: usize) -> (Option<String>, Vec<Row>) {
    let head = format!("  {:>7} {:>11}  {:<8} callback", "took", "ended", "loop");
    let rows = view
        .stalls
        .iter()
        .map(|shown| stall_row(shown, view, width));
    (Some(head), rows.collect())
}

/// A stall with its stack behind it, so that a filter takes or leaves both.
fn stall_row(shown: &Shown, view: &View, width: usize) -> Row {
    let stall = &shown.stall;
    let ended = match stall.is_over {
        true => format!(
            "{} ago",
            duration(view.span.until_ns.saturating_sub(stall.ended_ns()))
        ),
        false => "running".into(),
    };
    let doing = match shown.doing() {
        doing if doing.is_empty() => String::new(),
        doing => format!(", {doing}"),
    };
    let mut text = format!(
        "  {:>7} {ended:>11}  {:<8} {}, {}{doing}",
        duration(stall.took_ns),
        stall.loop_id,
        shown.name,
        shown.what
    );
    if !shown.stack.is_empty() {
        text += &format!(": {}", shown.stack.join(" ← "));
    }
    let tone = match stall.is_over {
        true => Tone::Plain,
        false => Tone::Verdict(Verdict::Bad),
    };
    // The terminal cuts a row that is too long; a report has the whole.
    Row::new(
        tone,
        if width == usize::MAX {
            text
        } else {
            shorten(&text, width.max(20) * 4)
        },
    )
}

#[cfg(test)]
mod tests {
    use super::wrap;

    #[test]
    fn nothing_is_lost_where_lines_break() {
        assert_eq!(wrap("one two three", 8), ["one two", "three"]);
        assert_eq!(
            wrap("in a::very::long::name, so", 10),
            ["in", "a::very::l", "ong::name,", "so"]
        );
        assert_eq!(
            wrap("größeres", 4),
            ["größeres"],
            "eight characters at least"
        );
        assert_eq!(wrap("", 10), [""]);
    }
}
