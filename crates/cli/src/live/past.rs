//! What the documents were before: a bounded number of steps from one version to the next, which a client gets that comes late and wants
//! to see any moment.
//!
//! A step has what has changed, so that most of its texts are also those of the documents as they are. What is older than a minute is kept
//! in steps of a second. The oldest step is given up for a new one by making it a part of the [base](Past::base), which is everything as it
//! was before the first step.

use super::hub::{Told, owner};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write as _;
use std::sync::Arc;

/// The most bytes of all steps.
const KEPT: usize = 64 << 20;
/// What a change costs beyond its text.
const CHANGE: usize = 96;
/// How long every step is kept.
pub(super) const FINE_NS: u64 = 60_000_000_000;
/// How far apart older ones are.
pub(super) const COARSE_NS: u64 = 1_000_000_000;

/// What has changed from one version to the next: texts, and none for what was removed.
#[derive(Default)]
pub(super) struct Step {
    version: u64,
    at_ns: u64,
    wall_ms: u64,
    changes: BTreeMap<Arc<str>, Option<Arc<str>>>,
}

impl Step {
    /// A step in which nothing has changed yet.
    pub(super) fn new(version: u64, (at_ns, wall_ms): (u64, u64)) -> Step {
        Step {
            version,
            at_ns,
            wall_ms,
            changes: BTreeMap::new(),
        }
    }

    /// Notes that a document was set or removed.
    pub(super) fn note(&mut self, key: Arc<str>, text: Option<Arc<str>>) {
        self.changes.insert(key, text);
    }

    fn size(&self) -> usize {
        let texts = self.changes.values().flatten();
        texts.map(|text| text.len()).sum::<usize>() + CHANGE * (self.changes.len() + 1)
    }
}

/// Everything as it was at a time.
#[derive(Clone, Default)]
struct Base {
    version: u64,
    at_ns: u64,
    wall_ms: u64,
    documents: BTreeMap<Arc<str>, Arc<str>>,
}

impl Base {
    fn take(&mut self, step: &Step) {
        (self.version, self.at_ns, self.wall_ms) = (step.version, step.at_ns, step.wall_ms);
        for (key, text) in &step.changes {
            match text {
                Some(text) => self.documents.insert(Arc::clone(key), Arc::clone(text)),
                None => self.documents.remove(key),
            };
        }
    }
}

/// The steps that are kept.
#[derive(Default)]
pub(super) struct Past {
    base: Base,
    steps: VecDeque<Step>,
    /// How many of the first steps are coarse.
    coarse: usize,
    size: usize,
}

impl Past {
    /// Keeps the newest step.
    pub(super) fn keep(&mut self, step: Step) {
        let now_ns = step.at_ns;
        self.size += step.size();
        self.steps.push_back(step);
        let is_old = |step: &Step| now_ns.saturating_sub(step.at_ns) > FINE_NS;
        while self.steps.get(self.coarse).is_some_and(is_old) {
            self.thin();
        }
        while self.size > KEPT
            && self.steps.len() > 1
            && let Some(oldest) = self.steps.pop_front()
        {
            self.size -= oldest.size();
            self.coarse = self.coarse.saturating_sub(1);
            self.base.take(&oldest);
        }
    }

    /// Makes the oldest fine step coarse, or a part of the coarse one before it.
    fn thin(&mut self) {
        let (last, first) = (self.coarse.wrapping_sub(1), self.coarse);
        let begun_ns = match self.coarse {
            0 => None,
            1 => Some(self.base.at_ns),
            _ => self.steps.get(last - 1).map(|step| step.at_ns),
        };
        let at_ns = self.steps.get(first).map_or(0, |step| step.at_ns);
        if begun_ns.is_none_or(|begun_ns| at_ns.saturating_sub(begun_ns) > COARSE_NS) {
            self.coarse += 1;
        } else if let Some(step) = self.steps.remove(first)
            && let Some(kept) = self.steps.get_mut(last)
        {
            self.size -= step.size() + kept.size();
            kept.changes.extend(step.changes);
            (kept.version, kept.at_ns, kept.wall_ms) = (step.version, step.at_ns, step.wall_ms);
            self.size += kept.size();
        }
    }

    /// The next frame of the past that a client is owed, whose scope stays that with which it began. None when it knows the past, or has
    /// taken so long that its next step is not kept any more.
    pub(super) fn frame(&self, told: &mut Told, scope: &BTreeSet<u32>) -> Option<String> {
        let from_ns = told.from_ns?;
        let is_seen = |scope: &BTreeSet<u32>, key: &str| {
            let pid = owner(key);
            pid.is_some_and(|pid| scope.contains(&pid))
        };
        if !told.has_begun {
            let mut base = self.base.clone();
            let until = self.steps.partition_point(|step| step.at_ns <= from_ns);
            // There is nothing before the first step of all.
            let until = if base.version == 0 {
                until.max(1)
            } else {
                until
            };
            self.steps.iter().take(until).for_each(|of| base.take(of));
            (told.version, told.at_ns, told.has_begun) = (base.version, base.at_ns, true);
            told.scope.clone_from(scope);
            let documents = base.documents.iter().map(|(key, text)| (&**key, &**text));
            let set = documents.filter(|(key, _)| is_seen(scope, key));
            let head = (base.version, base.at_ns, base.wall_ms);
            return Some(write_frame(head, true, set, std::iter::empty()));
        }
        let next = self.steps.partition_point(|of| of.version <= told.version);
        let Some(step) = self
            .steps
            .get(next)
            .filter(|_| told.version >= self.base.version)
        else {
            told.from_ns = None;
            // What was left out is told whole.
            told.has_begun = told.version >= self.base.version;
            return None;
        };
        (told.version, told.at_ns) = (step.version, step.at_ns);
        let changes = step.changes.iter();
        let seen = changes.filter(|(key, _)| is_seen(&told.scope, key));
        let (set, gone): (Vec<_>, Vec<_>) = seen.partition(|(_, text)| text.is_some());
        let set = set.into_iter();
        let set = set.filter_map(|(key, text)| Some((&**key, &**text.as_ref()?)));
        let head = (step.version, step.at_ns, step.wall_ms);
        let gone = gone.into_iter().map(|(key, _)| &**key);
        Some(write_frame(head, false, set, gone))
    }
}

/// A frame as JSON: its version and times, the documents that were set, and the keys of those that were removed.
pub(super) fn write_frame<'a>(
    (version, at_ns, wall_ms): (u64, u64, u64),
    is_full: bool,
    set: impl Iterator<Item = (&'a str, &'a str)>,
    gone: impl Iterator<Item = &'a str>,
) -> String {
    let mut text = format!("{{\"v\":{version},\"at\":{at_ns},\"wall\":{wall_ms}");
    if is_full {
        text.push_str(",\"full\":true");
    }
    text.push_str(",\"set\":{");
    for (at, (key, document)) in set.enumerate() {
        let comma = if at == 0 { "" } else { "," };
        // Keys are digits, slashes and fixed words. Writing to a string does not fail.
        let _ = write!(text, "{comma}\"{key}\":{document}");
    }
    text.push_str("},\"del\":[");
    for (at, key) in gone.enumerate() {
        let comma = if at == 0 { "" } else { "," };
        let _ = write!(text, "{comma}\"{key}\"");
    }
    text.push_str("]}");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn step(version: u64, at_ms: u64, changes: &[(&str, Option<&str>)]) -> Step {
        let mut step = Step::new(version, (at_ms * MS, 0));
        for (key, text) in changes {
            step.note((*key).into(), text.map(Into::into));
        }
        step
    }

    /// All frames of the past for somebody who looks at process 7.
    fn frames(past: &Past, from_ns: u64) -> Vec<String> {
        let mut told = Told {
            from_ns: Some(from_ns),
            ..Told::default()
        };
        let scope = BTreeSet::from([7]);
        std::iter::from_fn(|| past.frame(&mut told, &scope)).collect()
    }

    #[test]
    fn who_comes_late_gets_what_was_from_a_time_on() {
        let mut past = Past::default();
        past.keep(step(
            1,
            100,
            &[("7/pool", Some("1")), ("8/pool", Some("1"))],
        ));
        past.keep(step(2, 200, &[("7/pool", Some("2"))]));
        past.keep(step(3, 300, &[("7/pool", None), ("8/pool", None)]));
        let first = r#"{"v":1,"at":100000000,"wall":0,"full":true,"set":{"7/pool":1},"del":[]}"#;
        let second = r#"{"v":2,"at":200000000,"wall":0,"set":{"7/pool":2},"del":[]}"#;
        let third = r#"{"v":3,"at":300000000,"wall":0,"set":{},"del":["7/pool"]}"#;
        assert_eq!(frames(&past, 0), [first, second, third]);
        let state = r#"{"v":2,"at":200000000,"wall":0,"full":true,"set":{"7/pool":2},"del":[]}"#;
        assert_eq!(frames(&past, 250 * MS), [state, third]);
        assert_eq!(frames(&past, 900 * MS).len(), 1, "the newest state");
    }

    #[test]
    fn what_is_old_is_kept_in_seconds() {
        let mut past = Past::default();
        for number in 1..=900 {
            let text = number.to_string();
            past.keep(step(number, number * 100, &[("7/pool", Some(&text))]));
        }
        let frames = frames(&past, 0);
        // Thirty seconds of them, and then sixty of ten a second.
        assert!(
            (620..=640).contains(&frames.len()),
            "{} frames",
            frames.len()
        );
        assert!(frames[10].contains("\"at\":1"), "{}", frames[10]);
        assert!(frames.last().is_some_and(|last| last.contains(":900}")));
    }

    #[test]
    fn the_past_is_bounded_and_who_reads_slowly_gets_the_present() {
        let mut past = Past::default();
        let text = "x".repeat(1 << 20);
        past.keep(step(1, 1, &[("7/process", Some("0"))]));
        let mut told = Told {
            from_ns: Some(0),
            ..Told::default()
        };
        let scope = BTreeSet::from([7]);
        assert!(past.frame(&mut told, &scope).is_some());
        for number in 2..200 {
            past.keep(step(number, number, &[("7/pool", Some(&text))]));
            assert!(past.size <= KEPT + text.len() + 2 * CHANGE);
        }
        let size: usize = past.steps.iter().map(Step::size).sum();
        assert_eq!(size, past.size);
        assert_eq!(past.frame(&mut told, &scope), None);
        assert!(!told.has_begun && told.from_ns.is_none());
        let first = &frames(&past, 0)[0];
        assert!(
            first.contains("\"7/process\":0"),
            "it is older than all steps"
        );
    }
}
