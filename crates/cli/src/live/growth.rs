//! Do handles leak? Kinds that have only grown for a while, and where those were made.

use super::document::Answer;
use crate::answers::Verdict;
use crate::words::{count, duration, list};
use std::collections::{BTreeMap, VecDeque};

/// How often numbers are kept.
const STEP_NS: u64 = 1_000_000_000;
/// Over how long growth is judged.
const WINDOW_NS: u64 = 60_000_000_000;
/// How many handles more are growth.
const MORE: u64 = 10;
/// For how long a kind must have grown.
const LEAST_NS: u64 = 4_000_000_000;
/// For how long it must have grown since there were last fewer: what comes and goes grows in between as well.
const LEAST_AFTER_FALL_NS: u64 = 20_000_000_000;
/// Of so many steps, one may be without growth for each that has some.
const IDLE_STEPS: usize = 3;

/// What handles have in common: their kind, and who has made them where that is known.
pub(super) type Group = (&'static str, Option<String>);

/// The numbers of handles over time.
#[derive(Default)]
pub(super) struct Growth {
    kept: VecDeque<(u64, BTreeMap<Group, u64>)>,
}

/// A group that has only grown.
struct Grown {
    group: Group,
    first: u64,
    last: u64,
    for_ns: u64,
}

impl Growth {
    /// Takes the numbers of handles at a time.
    pub(super) fn take(&mut self, at_ns: u64, numbers: BTreeMap<Group, u64>) {
        match self.kept.back_mut() {
            Some((last_ns, _)) if at_ns.saturating_sub(*last_ns) < STEP_NS => return,
            _ => self.kept.push_back((at_ns, numbers)),
        }
        let old_ns = at_ns.saturating_sub(WINDOW_NS);
        while self
            .kept
            .get(1)
            .is_some_and(|(second, _)| *second <= old_ns)
        {
            self.kept.pop_front();
        }
    }

    /// Groups that have grown and never become fewer, the one that has grown most first.
    fn grown(&self) -> Vec<Grown> {
        let Some((now_ns, last)) = self.kept.back() else {
            return Vec::new();
        };
        let number =
            |numbers: &BTreeMap<Group, u64>, group| numbers.get(group).copied().unwrap_or(0);
        let grown = last.iter().filter_map(|(group, &last)| {
            // Only the time since there were last fewer of them counts.
            let numbers: Vec<(u64, u64)> = self
                .kept
                .iter()
                .map(|(at, of)| (*at, number(of, group)))
                .collect();
            let falls = numbers.windows(2).rposition(|two| two[0].1 > two[1].1);
            let since = &numbers[falls.map_or(0, |at| at + 1)..];
            let (first_ns, first) = *since.first()?;
            let for_ns = now_ns.saturating_sub(first_ns);
            let least_ns = if falls.is_some() {
                LEAST_AFTER_FALL_NS
            } else {
                LEAST_NS
            };
            let steps = since.windows(2).filter(|two| two[1].1 > two[0].1).count();
            // What was made at once, as a server's connections are when clients come, has grown in few steps.
            let is_steady = steps * IDLE_STEPS >= since.len();
            let is_growth = last >= first + MORE && for_ns >= least_ns && is_steady;
            is_growth.then(|| Grown {
                group: group.clone(),
                first,
                last,
                for_ns,
            })
        });
        let mut grown: Vec<Grown> = grown.collect();
        grown.sort_by_key(|of| std::cmp::Reverse(of.last - of.first));
        grown
    }

    /// The answer.
    pub(super) fn answer(&self) -> Answer {
        let grown = self.grown();
        let words = |of: &Grown| {
            let (more, time) = (count(of.last - of.first, of.group.0), duration(of.for_ns));
            let by = of.group.1.as_ref().map(|by| format!(", made by {by}"));
            (more, time, by.unwrap_or_default())
        };
        let (verdict, sentence) = match grown.first() {
            Some(most) => {
                let (more, time, by) = words(most);
                let others: Vec<String> = grown[1..].iter().take(2).map(|of| words(of).0).collect();
                let others = match others.is_empty() {
                    true => String::new(),
                    false => format!(" So do others: {}.", list(&others)),
                };
                let said = format!(
                    "Handles may leak: {more} more than {time} ago{by}; they never became fewer.{others}"
                );
                (Verdict::Notice, said)
            }
            None => {
                let total: u64 = self.kept.back().map_or(0, |(_, of)| of.values().sum());
                let said = format!(
                    "Handles do not leak, as far as it was watched: {} in all.",
                    count(total, "handle")
                );
                (Verdict::Fine, said)
            }
        };
        let evidence = grown.iter().take(8).map(|of| {
            let (_, time, by) = words(of);
            format!("{}: {} → {} in {time}{by}", of.group.0, of.first, of.last)
        });
        Answer {
            word: "handles".into(),
            question: "Do handles leak?".into(),
            verdict: verdict.word().into(),
            sentence,
            evidence: evidence.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fed(numbers: impl IntoIterator<Item = u64>) -> Answer {
        let mut growth = Growth::default();
        for (second, number) in numbers.into_iter().enumerate() {
            let group = ("timer", Some("leak (app.js:3)".to_owned()));
            growth.take(second as u64 * STEP_NS, BTreeMap::from([(group, number)]));
        }
        growth.answer()
    }

    #[test]
    fn what_only_grows_may_leak() {
        let answer = fed((0..8).map(|second| 5 + second * 3));
        assert_eq!(answer.verdict, "notice");
        assert_eq!(
            answer.sentence,
            "Handles may leak: 21 timers more than 7 s ago, made by leak (app.js:3); they never became fewer."
        );
        assert_eq!(
            answer.evidence,
            ["timer: 5 → 26 in 7 s, made by leak (app.js:3)"]
        );
    }

    #[test]
    fn what_comes_and_goes_does_not_leak() {
        assert_eq!(
            fed((0..30).map(|second| 5 + (second % 5) * 9)).verdict,
            "fine"
        );
        assert_eq!(fed([5; 30]).verdict, "fine");
        // Clients that have come at once.
        assert_eq!(
            fed((0..30).map(|second| if second < 12 { 0 } else { 100 })).verdict,
            "fine"
        );
        // Too short to say.
        assert_eq!(fed([0, 10, 20]).verdict, "fine");
        assert_eq!(
            Growth::default().answer().sentence,
            "Handles do not leak, as far as it was watched: 0 handles in all."
        );
    }

    #[test]
    fn growth_since_a_fall_counts() {
        let numbers = (0..60).map(|second| if second < 30 { 500 } else { second * 2 });
        let answer = fed(numbers);
        assert!(
            answer.sentence.contains("58 timers more than 29 s ago"),
            "{}",
            answer.sentence
        );
    }

    #[test]
    fn only_the_last_minute_is_kept() {
        let mut growth = Growth::default();
        for second in 0..600 {
            growth.take(second * STEP_NS, BTreeMap::from([(("tcp", None), second)]));
        }
        assert_eq!(growth.kept.len(), 61);
    }
}
