//! What wakes a loop that sleeps: the first callback after each sleep.

use blacklight_record::What;
use blacklight_record::read::Event;
use std::collections::{HashMap, VecDeque};

/// How long wakes are kept.
const KEPT_NS: u64 = 10_000_000_000;
/// How many are kept.
const KEPT: usize = 8192;

/// The code of a callback, and its kind.
type Woken = (u64, usize);

/// What woke a loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Wakes {
    /// How often it was woken to call something.
    pub(crate) count: u64,
    /// In which time.
    pub(crate) over_ns: u64,
    /// The code that it was woken for most often; 0 if that is not known.
    pub(crate) address: u64,
    /// The kind of that callback.
    pub(crate) kind: usize,
    /// How often it was woken for that.
    pub(crate) most: u64,
}

/// The wakes of one loop.
#[derive(Debug, Default)]
pub(crate) struct Wakeups {
    /// Since when the events are known.
    since_ns: Option<u64>,
    /// Whether the last event was a sleep.
    has_slept: bool,
    wakes: VecDeque<(u64, Woken)>,
}

impl Wakeups {
    /// Tells the next events of the loop.
    pub(crate) fn read(&mut self, events: &[Event]) {
        for event in events {
            self.since_ns.get_or_insert(event.at_ns);
            match event.what {
                What::Sleep => self.has_slept = true,
                What::Callback if std::mem::take(&mut self.has_slept) => {
                    let woken = (event.address, event.kind);
                    self.wakes.push_back((event.at_ns, woken));
                }
                _ => {}
            }
        }
        let newest = self.wakes.back().map_or(0, |(at_ns, _)| *at_ns);
        while self.wakes.len() > KEPT {
            self.since_ns = self.wakes.pop_front().map(|(at_ns, _)| at_ns);
        }
        self.forget(newest);
    }

    fn forget(&mut self, now_ns: u64) {
        let old_ns = now_ns.saturating_sub(KEPT_NS);
        while self.wakes.front().is_some_and(|(at_ns, _)| *at_ns < old_ns) {
            self.wakes.pop_front();
        }
    }

    /// What woke the loop lately; nothing if no event is known.
    pub(crate) fn lately(&mut self, now_ns: u64) -> Option<Wakes> {
        self.forget(now_ns);
        let mut counts: HashMap<Woken, u64> = HashMap::new();
        for (_, woken) in &self.wakes {
            *counts.entry(*woken).or_default() += 1;
        }
        let most = counts
            .into_iter()
            .max_by_key(|(woken, count)| (*count, *woken));
        let ((address, kind), most) = most?;
        Some(Wakes {
            count: self.wakes.len() as u64,
            over_ns: now_ns.saturating_sub(self.since_ns?).min(KEPT_NS),
            address,
            kind,
            most,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn event(what: What, at_ns: u64, address: u64) -> Event {
        Event {
            what,
            at_ns,
            took_ns: 1,
            phase: 0,
            kind: 1,
            turn: 0,
            address,
            token: 0,
        }
    }

    #[test]
    fn the_first_callback_after_a_sleep_has_woken_the_loop() {
        let mut wakeups = Wakeups::default();
        assert_eq!(wakeups.lately(S), None);
        let sleep = |at| event(What::Sleep, at, 0);
        let callback = |at, address| event(What::Callback, at, address);
        wakeups.read(&[sleep(S), callback(S + 1, 7), callback(S + 2, 8)]);
        // A sleep and what ended it may be read one after the other.
        wakeups.read(&[sleep(2 * S), event(What::Spin, 2 * S, 0)]);
        wakeups.read(&[callback(2 * S + 1, 7), sleep(3 * S), callback(3 * S, 9)]);
        let wakes = wakeups.lately(5 * S);
        let expected = Wakes {
            count: 3,
            over_ns: 4 * S,
            address: 7,
            kind: 1,
            most: 2,
        };
        assert_eq!(wakes, Some(expected));
        assert_eq!(
            wakeups.lately(12 * S).map(|of| (of.count, of.address)),
            Some((2, 9))
        );
        assert_eq!(wakeups.lately(20 * S), None, "they are old");
    }

    #[test]
    fn only_so_many_are_kept() {
        let mut wakeups = Wakeups::default();
        for at in 0..2 * KEPT as u64 {
            wakeups.read(&[event(What::Sleep, at, 0), event(What::Callback, at, 1)]);
        }
        let wakes = wakeups.lately(2 * KEPT as u64).unwrap();
        assert_eq!(wakes.count, KEPT as u64);
        assert!(wakes.over_ns <= KEPT as u64 + 1);
    }
}
