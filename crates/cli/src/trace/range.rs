//! A trace of the recent past, for a view that has read the rings all along.
//!
//! [`History`] keeps what was read last, up to a number of bytes, and writes any part of it as a trace.

use super::clocks;
use super::collect::{Part, Round, Source, counters};
use super::names::Names;
use super::perfetto::Trace;
use blacklight_record::read::{Event, Snapshot};
use std::collections::{HashMap, HashSet, VecDeque};
use std::io;
use std::sync::Arc;

/// The most bytes of events that all histories keep together, by what they are in a trace.
const KEPT: u64 = 48 << 20;
/// The most bytes that a trace has.
const LARGEST: u64 = 256 << 20;

/// What histories share: each keeps an equal part of [`KEPT`].
#[derive(Debug, Default)]
pub(crate) struct Budget;

/// What a track is told by.
type Key = (Option<u32>, u32, u32);

/// The events of one loop or thread that were read at one time.
pub(crate) struct Read {
    /// The number of the loop, or `None` for a thread of the pool.
    pub(crate) loop_id: Option<u32>,
    /// The thread's place in the pool.
    pub(crate) place: u32,
    /// The name of the loop.
    pub(crate) name: String,
    /// The thread.
    pub(crate) tid: u32,
    /// The events.
    pub(crate) events: Vec<Event>,
    /// How many were overwritten before these.
    pub(crate) lost: u64,
    /// Up to when the events are complete.
    pub(crate) until_ns: u64,
}

/// What was read lately.
pub(crate) struct History {
    rounds: VecDeque<Arc<Round>>,
    size: u64,
    tracks: HashMap<Key, (usize, Arc<Source>)>,
    budget: Arc<Budget>,
}

impl History {
    /// An empty history that shares a budget with others.
    pub(crate) fn new(budget: &Arc<Budget>) -> History {
        History {
            rounds: VecDeque::new(),
            size: 0,
            tracks: HashMap::new(),
            budget: Arc::clone(budget),
        }
    }

    /// Adds what was read at one time, and gives up the oldest.
    pub(crate) fn add(&mut self, snapshot: &Snapshot, reads: Vec<Read>) {
        let mut parts = Vec::new();
        for read in reads {
            if read.events.is_empty() && read.lost == 0 {
                continue;
            }
            let next = self.tracks.len();
            let key = (read.loop_id, read.place, read.tid);
            let (track, source) = self.tracks.entry(key).or_insert_with(|| {
                let source = match read.loop_id {
                    Some(id) => Source::Loop {
                        id,
                        name: read.name,
                        tid: read.tid,
                    },
                    None => Source::Thread {
                        place: read.place,
                        tid: read.tid,
                    },
                };
                (next, Arc::new(source))
            });
            parts.push(Part {
                track: *track,
                source: Arc::clone(source),
                events: read.events,
                until_ns: read.until_ns,
                lost: read.lost,
                is_last: false,
            });
        }
        let round = Round {
            at_ns: snapshot.taken_ns,
            parts,
            counters: counters(snapshot),
        };
        self.size += round.size();
        self.rounds.push_back(Arc::new(round));
        // One reference is that of their common owner.
        let histories = Arc::strong_count(&self.budget).saturating_sub(1).max(1);
        let limit = KEPT / histories as u64;
        while self.size > limit
            && self.rounds.len() > 1
            && let Some(oldest) = self.rounds.pop_front()
        {
            self.size -= oldest.size();
        }
    }

    /// What a trace of the time between two times is made of. `None` if nothing is kept of it.
    pub(crate) fn export(
        &self,
        (pid, program): (u32, &str),
        (from_ns, to_ns): (u64, u64),
        name: &mut dyn FnMut(u64) -> String,
    ) -> Option<Export> {
        let first_ns = self.rounds.front()?.at_ns;
        let last_ns = self.rounds.back()?.at_ns;
        let range = (from_ns.max(first_ns), to_ns.min(last_ns));
        if range.0 > range.1 {
            return None;
        }
        let rounds = self.rounds.iter().cloned().collect();
        let mut export = Export {
            rounds,
            pid,
            program: program.to_owned(),
            range,
            names: HashMap::new(),
        };
        let addresses: HashSet<u64> = export.events().map(|event| event.address).collect();
        let known = addresses.into_iter();
        export.names = known.map(|address| (address, name(address))).collect();
        Some(export)
    }
}

/// What a trace is made of: it can be made in any thread.
pub(crate) struct Export {
    rounds: Vec<Arc<Round>>,
    pid: u32,
    program: String,
    /// The time that the trace is of.
    pub(crate) range: (u64, u64),
    names: HashMap<u64, String>,
}

impl Export {
    /// Whether an event belongs to the time.
    fn is_inside(&self, event: &Event) -> bool {
        let ended_ns = event.at_ns.saturating_add(event.took_ns);
        ended_ns >= self.range.0 && event.at_ns <= self.range.1
    }

    fn events(&self) -> impl Iterator<Item = &Event> {
        let parts = self.rounds.iter().flat_map(|round| &round.parts);
        let events = parts.flat_map(|part| &part.events);
        events.filter(|event| self.is_inside(event))
    }

    /// The trace.
    pub(crate) fn trace(mut self) -> io::Result<Vec<u8>> {
        let (from_ns, to_ns) = self.range;
        let names = Names::known(std::mem::take(&mut self.names));
        let process = (self.pid, self.program.as_str());
        let mut bytes = Vec::new();
        let mut trace = Trace::new(&mut bytes, process, (&clocks(), from_ns), LARGEST, names)?;
        for round in &self.rounds {
            let mut round = Round::clone(round);
            let is_inside = (from_ns..=to_ns).contains(&round.at_ns);
            for part in &mut round.parts {
                part.events.retain(|event| self.is_inside(event));
                part.until_ns = part.until_ns.min(to_ns);
                part.lost = if is_inside { part.lost } else { 0 };
            }
            round
                .parts
                .retain(|part| !part.events.is_empty() || part.lost > 0);
            if !is_inside {
                round.counters.clear();
            }
            trace.take(&round)?;
        }
        trace.finish(to_ns)?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blacklight_record::What;
    use blacklight_record::read::Pool;

    /// A reading of one thread, with so many events.
    fn read(history: &mut History, at_ns: u64, count: u64) {
        let snapshot = Snapshot {
            taken_ns: at_ns,
            since_ns: 0,
            loops: Vec::new(),
            pool: Pool::default(),
            refused: 0,
        };
        let event = |number| Event {
            what: What::Job,
            at_ns: at_ns + number,
            took_ns: 1,
            phase: 0,
            kind: 1,
            turn: 0,
            address: 7,
            token: 0,
        };
        let read = Read {
            loop_id: None,
            place: 0,
            name: String::new(),
            tid: 1,
            events: (0..count).map(event).collect(),
            lost: 0,
            until_ns: u64::MAX,
        };
        history.add(&snapshot, vec![read]);
    }

    #[test]
    fn histories_share_what_is_kept() {
        let budget = Arc::default();
        let mut one = History::new(&budget);
        for round in 0..30 {
            read(&mut one, round * 10_000, 10_000);
        }
        assert!((KEPT / 2..=KEPT).contains(&one.size), "{}", one.size);
        let mut other = History::new(&budget);
        for round in 30..60 {
            read(&mut one, round * 10_000, 10_000);
            read(&mut other, round * 10_000, 10_000);
        }
        assert!(one.size <= KEPT / 2 && other.size <= KEPT / 2);
        assert!(one.size + other.size >= KEPT / 2);
        drop(other);
        for round in 60..90 {
            read(&mut one, round * 10_000, 10_000);
        }
        assert!(one.size > KEPT / 2, "there is room again");
    }

    #[test]
    fn a_trace_is_of_what_is_kept() {
        let mut history = History::new(&Arc::default());
        let mut name = |address: u64| format!("f{address}");
        let mut range = |history: &History, range| {
            let export = history.export((1, "app"), range, &mut name);
            export.map(|export| (export.range, export.trace().expect("it fits").len()))
        };
        assert!(range(&history, (0, u64::MAX)).is_none());
        read(&mut history, 1_000, 10);
        read(&mut history, 2_000, 10);
        let (whole, all) = range(&history, (0, u64::MAX)).expect("it is kept");
        assert_eq!(whole, (1_000, 2_000));
        let (part, less) = range(&history, (1_500, 1_999)).expect("it is kept");
        assert!(part == (1_500, 1_999) && less < all);
        assert!(range(&history, (0, 999)).is_none());
        assert!(range(&history, (2_001, 9_999)).is_none());
    }
}
