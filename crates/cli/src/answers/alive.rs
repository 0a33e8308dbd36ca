//! What keeps the process running?

use super::{Answer, Facts, Question, Verdict, no_loop, not_run, of_kind, sentence, which};
use crate::keepers::Describer;
use crate::names::Names;
use crate::sample::age_of_handles;
use crate::span::LoopSpan;
use crate::words::{count, list};
use blacklight_record::layout::State;
use blacklight_record::read::Handle;
use std::collections::BTreeMap;

/// How many sorts of handles are listed.
const LISTED: usize = 8;
/// How many sorts of handles the sentence names.
const NAMED: usize = 3;
/// How many handles are looked at one by one. Where there are more, their kinds have to do.
const DESCRIBED: usize = 256;

/// Whether the handle keeps its loop alive.
fn keeps_alive(handle: &Handle) -> bool {
    handle.is_closing || (handle.is_active && handle.is_referenced)
}

/// What keeps a loop alive, in words; none if nothing does.
fn reasons(facts: &Facts<'_>, lp: &LoopSpan, names: &mut dyn Names) -> Vec<String> {
    let none = Vec::new();
    let handles = facts.handles.get(&lp.id).unwrap_or(&none);
    let keeping: Vec<&Handle> = handles.iter().filter(|of| keeps_alive(of)).collect();
    let (closing, open): (Vec<&Handle>, Vec<&Handle>) =
        keeping.into_iter().partition(|of| of.is_closing);
    let sorts = match open.len() {
        ..=DESCRIBED => described(facts, &open, names),
        _ => by_kind(&open),
    };
    let others = sorts.iter().skip(NAMED).map(|(number, _)| number).sum();
    let mut said: Vec<String> = sorts
        .into_iter()
        .take(NAMED)
        .map(|(_, words)| words)
        .collect();
    if others > 0 {
        said.push(count(others, "other handle"));
    }
    if !closing.is_empty() {
        said.push(count(closing.len() as u64, "closing handle"));
    }
    let unknown = u64::from(lp.active).saturating_sub(open.len() as u64);
    // A record that was just read may be a handle behind; one without room is behind for good.
    if unknown > 0 && (lp.handles_lost > 0 || said.is_empty()) {
        said.push(count(unknown, "active handle"));
    }
    if lp.requests > 0 {
        said.push(format!(
            "{} in progress",
            count(lp.requests.into(), "request")
        ));
    }
    if said.is_empty() && lp.now.state == State::Callback {
        let callback = of_kind(lp.now.kind);
        said.push(format!("{callback} that has not returned"));
    }
    said
}

/// Sorts of handles as `blacklight why` describes them, in a few words, and how many there are of each.
fn described(facts: &Facts<'_>, handles: &[&Handle], names: &mut dyn Names) -> Vec<(u64, String)> {
    let groups = describer(facts).groups(handles, names).into_iter();
    let sorts = groups.map(|mut group| {
        // The words stand in a list, which has commas of its own.
        if let Some(detail) = group.detail.strip_prefix(", ") {
            group.detail = format!(" ({detail})");
        }
        (group.handles.len() as u64, Describer::brief(&group))
    });
    sorts.collect()
}

/// How many handles there are of each kind, where they are too many to look at each.
fn by_kind(handles: &[&Handle]) -> Vec<(u64, String)> {
    let mut kinds: BTreeMap<&str, u64> = BTreeMap::new();
    for handle in handles {
        *kinds.entry(handle.kind).or_default() += 1;
    }
    let mut kinds: Vec<(&str, u64)> = kinds.into_iter().collect();
    kinds.sort_by_key(|(_, number)| std::cmp::Reverse(*number));
    let kinds = kinds.into_iter();
    kinds
        .map(|(kind, number)| (number, count(number, &format!("{kind} handle"))))
        .collect()
}

fn describer<'a>(facts: &Facts<'a>) -> Describer<'a> {
    Describer {
        descriptors: facts.descriptors,
        now_ns: facts.span.until_ns,
        // The age is that of the record at least, which is near enough here.
        since_ns: 0,
    }
}

/// Answers for all loops: a process may exit when its loops have nothing left.
pub(super) fn alive(facts: &Facts<'_>, names: &mut dyn Names) -> Answer {
    let span = facts.span;
    if span.loops.is_empty() {
        return no_loop(Question::Alive);
    }
    if let Some(answer) = not_run(Question::Alive, span) {
        return answer;
    }
    let kept = span.loops.iter().map(|lp| (lp, reasons(facts, lp, names)));
    let kept: Vec<_> = kept.filter(|(_, reasons)| !reasons.is_empty()).collect();
    let most = kept.iter().max_by_key(|(lp, _)| {
        let is_busy = lp.now.state == State::Callback;
        (is_busy, lp.active.saturating_add(lp.requests))
    });
    let Some((lp, reasons)) = most else {
        let said =
            "Nothing keeps a loop alive: each ends its run when its callbacks have returned.";
        return Answer::new(Question::Alive, Verdict::Notice, said.into());
    };
    let said = match (span.loops.len(), kept.len()) {
        (1, _) => format!("The loop stays alive for {}.", list(reasons)),
        (_, some) => {
            let (name, reasons) = (which(span, lp), list(reasons));
            let others = match some - 1 {
                0 => " Nothing keeps any other loop alive.".into(),
                1 => " One other loop is kept alive too.".into(),
                n => format!(" {n} other loops are kept alive too."),
            };
            sentence(&format!("{name} stays alive for {reasons}.{others}"))
        }
    };
    let said = match age_of_handles(lp.walked_ns, &lp.now, span.until_ns) {
        Some(age) => format!("{said} Its handles are as of {age} ago."),
        None => said,
    };
    let mut answer = Answer::new(Question::Alive, Verdict::Fine, said);
    let handles = facts.handles.get(&lp.id).into_iter().flatten();
    let keepers: Vec<&Handle> = handles
        .filter(|of| keeps_alive(of))
        .take(DESCRIBED)
        .collect();
    let describer = describer(facts);
    let groups = describer.groups(&keepers, names);
    let lines = groups.iter().take(LISTED);
    answer.evidence = lines.map(|of| describer.sentence(of, names)).collect();
    if groups.len() > LISTED {
        let more = groups.len() - LISTED;
        answer.evidence.push(format!("and {more} more"));
    }
    answer
}
