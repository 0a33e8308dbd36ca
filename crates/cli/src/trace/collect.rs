//! Reading the rings of a process, round by round.

use anyhow::Result;
use blacklight_record::What;
use blacklight_record::layout::{RING, State};
use blacklight_record::read::{Event, Reader, RingId, Snapshot};
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// The time between two rounds, unless rings fill fast.
const INTERVAL: Duration = Duration::from_millis(20);
/// The least time between two rounds.
const SHORTEST: Duration = Duration::from_millis(1);
/// The events in a ring by the next round that are to be expected at most.
const COMFORTABLE: usize = RING / 4;

/// The most bytes of an event in a trace: the beginning and the end of its slice, and those of a phase that has only this slice.
const SLICE: u64 = 256;
/// The bytes of a counter's value.
const COUNT: u64 = 40;

/// What a track is of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Source {
    /// A loop.
    Loop { id: u32, name: String, tid: u32 },
    /// A thread of the pool.
    Thread { place: u32, tid: u32 },
}

impl Source {
    /// The name of the track.
    pub(super) fn name(&self) -> String {
        match self {
            Source::Loop { id, name, .. } if name.is_empty() => format!("loop {id}"),
            Source::Loop { id, name, .. } => format!("loop {id} ({name})"),
            Source::Thread { place, .. } => format!("pool thread {}", place + 1),
        }
    }

    /// Whether it is the same loop, by whichever thread it runs, or the same thread.
    pub(super) fn is_same(&self, other: &Source) -> bool {
        match (self, other) {
            (Source::Loop { id, .. }, Source::Loop { id: other, .. }) => id == other,
            _ => self == other,
        }
    }

    /// The thread.
    pub(super) fn tid(&self) -> u32 {
        match self {
            Source::Loop { tid, .. } | Source::Thread { tid, .. } => *tid,
        }
    }
}

/// What one ring had in a round.
#[derive(Clone, Debug)]
pub(super) struct Part {
    /// The number of the track, from 0.
    pub(super) track: usize,
    /// What the track is of.
    pub(super) source: Arc<Source>,
    /// Events in the order in which they ended.
    pub(super) events: Vec<Event>,
    /// Events that ended by then are in no callback that has not ended.
    pub(super) until_ns: u64,
    /// The events before these that were overwritten.
    pub(super) lost: u64,
    /// Whether the loop or thread is gone.
    pub(super) is_last: bool,
}

/// What the rings had at one time.
#[derive(Clone, Debug)]
pub(super) struct Round {
    /// When.
    pub(super) at_ns: u64,
    /// The rings that had something.
    pub(super) parts: Vec<Part>,
    /// Numbers to draw over time, by name.
    pub(super) counters: Vec<(String, u64)>,
}

impl Round {
    /// How many events it has.
    pub(super) fn len(&self) -> usize {
        self.parts.iter().map(|part| part.events.len()).sum()
    }

    /// The most bytes of a trace that it will be, but for names.
    pub(super) fn size(&self) -> u64 {
        SLICE * self.len() as u64 + COUNT * self.counters.len() as u64
    }

    /// Keeps only so many events, those that ended last.
    fn shorten(&mut self, kept: usize) {
        let parts = self.parts.iter().flat_map(|part| &part.events);
        let mut ends: Vec<u64> = parts.map(end_ns).collect();
        if ends.len() <= kept {
            return;
        }
        ends.sort_unstable_by_key(|end| Reverse(*end));
        let since_ns = ends.get(kept).map_or(0, |end| end.saturating_add(1));
        for part in &mut self.parts {
            part.events.retain(|event| end_ns(event) >= since_ns);
        }
    }
}

/// When an event was over.
fn end_ns(event: &Event) -> u64 {
    event.at_ns.saturating_add(event.took_ns)
}

/// The last rounds, as many as fit into a size.
#[derive(Debug)]
pub(super) struct Ring {
    pub(super) rounds: VecDeque<Round>,
    size: u64,
    limit: u64,
}

impl Ring {
    /// Keeps rounds that together are a trace of at most this many bytes.
    pub(super) fn new(limit: u64) -> Ring {
        Ring {
            rounds: VecDeque::new(),
            size: 0,
            limit,
        }
    }

    /// Keeps the newest round, and gives up those that there is no room for with it.
    pub(super) fn push(&mut self, round: Round) {
        self.size += round.size();
        self.rounds.push_back(round);
        while let Some(oldest) = self.rounds.front()
            && self.size - oldest.size() >= self.limit
        {
            self.size -= oldest.size();
            self.rounds.pop_front();
        }
    }

    /// The rounds, of which the oldest may be a part.
    pub(super) fn into_rounds(mut self) -> VecDeque<Round> {
        if let Some(oldest) = self.rounds.front_mut()
            && let Some(excess) = self.size.checked_sub(self.limit)
        {
            let size = SLICE * oldest.len() as u64;
            oldest.shorten((size.saturating_sub(excess) / SLICE) as usize);
        }
        self.rounds
    }
}

/// A ring that is being read.
#[derive(Debug)]
struct Lane {
    source: Arc<Source>,
    ring: RingId,
    next: u64,
    /// The latest end of an event.
    ended_ns: u64,
    is_gone: bool,
}

/// What was taken of a ring.
#[derive(Default, Debug)]
struct Taken {
    events: Vec<Event>,
    /// The events before these that were overwritten.
    lost: u64,
}

/// Reads the rings of a process.
#[derive(Debug)]
pub(super) struct Collector<'a> {
    reader: &'a Reader,
    lanes: Vec<Lane>,
    /// Events that ended earlier are not wanted.
    since_ns: u64,
    is_first: bool,
    /// The most events that a ring had in the last round.
    most: usize,
    /// The events that were overwritten before they could be read.
    pub(super) lost: u64,
    /// The loops that were there when the trace began, by the highest number.
    old_loops: u32,
    /// The numbers of the loops that are newer.
    new_loops: BTreeSet<u32>,
    /// The loops whose last events were gone before they could be read, with their place in the record.
    cut_loops: u32,
}

impl<'a> Collector<'a> {
    /// Reads events that end after `since_ns`.
    pub(super) fn new(reader: &'a Reader, since_ns: u64) -> Collector<'a> {
        Collector {
            reader,
            lanes: Vec::new(),
            since_ns,
            is_first: true,
            most: 0,
            lost: 0,
            old_loops: 0,
            new_loops: BTreeSet::new(),
            cut_loops: 0,
        }
    }

    /// How long to wait for the next round, so that no ring overflows at the present rate.
    pub(super) fn interval(&self) -> Duration {
        let slower = (self.most / COMFORTABLE.max(1)).max(1) as u32;
        (INTERVAL / slower).max(SHORTEST)
    }

    /// Reads what is new. The last round has what has not ended yet, too.
    ///
    /// A request is in the ring of its loop before it is in that of a thread. So threads are read first, then it is seen which loops
    /// there are, and then loops are read: the submission of each job is there. What a loop does is copied before its events, so that
    /// all events are there which ended before that began.
    pub(super) fn round(&mut self, is_last: bool) -> Result<Round> {
        let mut ran = self.take_threads()?;
        let snapshot = self.reader.snapshot()?;
        self.find_lanes(&snapshot);
        let reused: HashSet<(RingId, u32)> =
            snapshot.loops.iter().map(|lp| (lp.ring(), lp.id)).collect();
        let (mut parts, mut most) = (Vec::new(), 0);
        let (threads, loops): (Vec<usize>, Vec<usize>) = (0..self.lanes.len())
            .partition(|at| matches!(*self.lanes[*at].source, Source::Thread { .. }));
        for at in threads.into_iter().chain(loops) {
            let taken = ran.get_mut(at).and_then(Option::take);
            let lane = &self.lanes[at];
            if lane.is_gone {
                continue;
            }
            let until_ns = self.look(at, &snapshot);
            let is_other = |(ring, id): &(RingId, u32)| {
                *ring == lane.ring
                    && matches!(*lane.source, Source::Loop { id: own, .. } if own != *id)
            };
            if until_ns.is_none() && reused.iter().any(is_other) {
                self.lanes[at].is_gone = true;
                self.cut_loops += 1;
                continue;
            }
            let is_thread = matches!(*lane.source, Source::Thread { .. });
            // A thread that has just been found is read in the next round, if there is one.
            let mut taken = taken.unwrap_or_default();
            let began_later = self.is_first && self.since_ns > 0;
            if !is_thread || began_later || is_last || until_ns.is_none() {
                let more = self.take(at)?;
                taken.events.extend(more.events);
                taken.lost += more.lost;
            }
            let mut part = self.part(at, taken, until_ns);
            if is_last {
                part.events.extend(self.running(at, &snapshot));
            }
            most = most.max(part.events.len());
            if !part.events.is_empty() || part.lost > 0 || part.is_last {
                parts.push(part);
            }
        }
        self.is_first = false;
        self.most = most;
        Ok(Round {
            at_ns: snapshot.taken_ns,
            parts,
            counters: counters(&snapshot),
        })
    }

    /// Up to when the events of a lane are complete; `None` if its loop or thread is gone.
    fn look(&self, at: usize, snapshot: &Snapshot) -> Option<u64> {
        let lane = &self.lanes[at];
        match *lane.source {
            Source::Loop { id, .. } => {
                let mut loops = snapshot.loops.iter();
                let lp = loops.find(|lp| lp.ring() == lane.ring && lp.id == id)?;
                Some(lp.now.since_ns)
            }
            // Jobs have nothing inside.
            Source::Thread { tid, .. } => {
                let mut threads = snapshot.pool.members.iter();
                threads.find(|thread| thread.ring == lane.ring && thread.tid == tid)?;
                Some(u64::MAX)
            }
        }
    }

    /// The callback that a loop is in, as if it ended now. Of what is around it nothing is known.
    fn running(&self, at: usize, snapshot: &Snapshot) -> Option<Event> {
        let Source::Loop { id, .. } = *self.lanes[at].source else {
            return None;
        };
        let lp = snapshot.loops.iter().find(|lp| lp.id == id)?;
        let (now, ring) = (lp.now, self.lanes[at].ring);
        // It has returned, if something has ended since it began.
        let is_over = self.lanes[at].ended_ns > now.since_ns;
        if lp.ring() != ring || now.state != State::Callback || is_over || now.is_torn {
            return None;
        }
        Some(Event {
            what: What::Callback,
            at_ns: now.since_ns,
            took_ns: snapshot.taken_ns.saturating_sub(now.since_ns),
            phase: now.phase,
            kind: now.kind,
            turn: now.turn,
            address: now.callback,
            token: now.token,
        })
    }

    /// What the rings of the threads that are known have.
    fn take_threads(&mut self) -> Result<Vec<Option<Taken>>> {
        let mut all = Vec::with_capacity(self.lanes.len());
        for at in 0..self.lanes.len() {
            let lane = &self.lanes[at];
            let is_read = !lane.is_gone && matches!(*lane.source, Source::Thread { .. });
            all.push(is_read.then(|| self.take(at)).transpose()?);
        }
        Ok(all)
    }

    /// What a ring has that was not taken yet.
    fn take(&mut self, at: usize) -> Result<Taken> {
        let lane = &mut self.lanes[at];
        let mut read = self.reader.events(lane.ring, lane.next)?;
        lane.next = read.next;
        let ends = read.events.iter().map(end_ns);
        lane.ended_ns = ends.fold(lane.ended_ns, u64::max);
        let since_ns = self.since_ns;
        read.events.retain(|event| end_ns(event) >= since_ns);
        // What was overwritten before the trace began is not missing in it.
        let lost = match self.is_first && since_ns > 0 {
            true => 0,
            false => read.lost,
        };
        self.lost += lost;
        Ok(Taken {
            events: read.events,
            lost,
        })
    }

    /// What was taken of a ring, which is complete up to then; `None` if its loop or thread is gone.
    fn part(&mut self, at: usize, taken: Taken, until_ns: Option<u64>) -> Part {
        let lane = &mut self.lanes[at];
        lane.is_gone = until_ns.is_none();
        Part {
            track: at,
            source: Arc::clone(&lane.source),
            events: taken.events,
            until_ns: until_ns.unwrap_or(u64::MAX),
            lost: taken.lost,
            is_last: lane.is_gone,
        }
    }

    /// The loops of which some or all events are missing, since they were closed between two rounds.
    pub(super) fn missed_loops(&self) -> u64 {
        // Loops are numbered as they are made.
        let newest = self.new_loops.last().copied().unwrap_or(self.old_loops);
        let seen = self.new_loops.len() as u64;
        let unseen = u64::from(newest - self.old_loops).saturating_sub(seen);
        unseen + u64::from(self.cut_loops)
    }

    /// Adds lanes for loops and threads that are new.
    fn find_lanes(&mut self, snapshot: &Snapshot) {
        let ids = || snapshot.loops.iter().map(|lp| lp.id);
        if self.is_first && self.since_ns > 0 {
            self.old_loops = ids().max().unwrap_or(0);
        }
        self.new_loops
            .extend(ids().filter(|id| *id > self.old_loops));
        for lp in &snapshot.loops {
            let ring = lp.ring();
            let source = Source::Loop {
                id: lp.id,
                name: lp.name.clone(),
                tid: lp.tid,
            };
            let mut lanes = self.lanes.iter_mut();
            match lanes.find(|lane| lane.ring == ring && lane.source.is_same(&source)) {
                // One thread may have made the loop, and another run it.
                Some(lane) if *lane.source != source => lane.source = Arc::new(source),
                Some(_) => {}
                None => self.add(source, ring, 0),
            }
        }
        for thread in &snapshot.pool.members {
            let (place, tid) = (thread.place, thread.tid);
            let source = Source::Thread { place, tid };
            let last = self.lanes.iter().rfind(|lane| lane.ring == thread.ring);
            if last.is_none_or(|lane| *lane.source != source) {
                // A thread goes on in the ring of the one before it.
                let next = last.map_or(0, |lane| lane.next);
                self.add(source, thread.ring, next);
            }
        }
    }

    fn add(&mut self, source: Source, ring: RingId, next: u64) {
        self.lanes.push(Lane {
            source: Arc::new(source),
            ring,
            next,
            ended_ns: 0,
            is_gone: false,
        });
    }
}

/// The numbers to draw over time.
pub(super) fn counters(snapshot: &Snapshot) -> Vec<(String, u64)> {
    let sum = |numbers: &[u32]| numbers.iter().map(|number| u64::from(*number)).sum();
    let mut counters = vec![
        ("pool queued".to_owned(), sum(&snapshot.pool.queued)),
        ("pool running".to_owned(), sum(&snapshot.pool.running)),
    ];
    for lp in &snapshot.loops {
        counters.push((format!("loop {} handles", lp.id), lp.active.into()));
        counters.push((format!("loop {} requests", lp.id), lp.requests.into()));
    }
    counters
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A round with events that end at these times, in two parts.
    fn round(ends: &[u64]) -> Round {
        let part = |track: usize, ends: &[u64]| Part {
            track,
            source: Arc::new(Source::Thread { place: 0, tid: 1 }),
            events: ends.iter().map(|end| event(*end)).collect(),
            until_ns: 0,
            lost: 0,
            is_last: false,
        };
        let (first, second) = ends.split_at(ends.len() / 2);
        Round {
            at_ns: 0,
            parts: vec![part(0, first), part(1, second)],
            counters: Vec::new(),
        }
    }

    fn event(end_ns: u64) -> Event {
        Event {
            what: What::Job,
            at_ns: end_ns - 1,
            took_ns: 1,
            phase: 0,
            kind: 1,
            turn: 0,
            address: 0,
            token: 0,
        }
    }

    /// The ends of what a ring with room for so many events keeps.
    fn kept(room: u64, rounds: &[&[u64]]) -> Vec<u64> {
        let mut ring = Ring::new(room * SLICE);
        for ends in rounds {
            ring.push(round(ends));
        }
        let rounds = ring.into_rounds();
        let parts = rounds.iter().flat_map(|round| &round.parts);
        let mut ends: Vec<u64> = parts
            .flat_map(|part| &part.events)
            .map(super::end_ns)
            .collect();
        ends.sort_unstable();
        ends
    }

    #[test]
    fn a_ring_keeps_the_newest_events_that_fit() {
        assert_eq!(kept(4, &[&[1, 2], &[3, 4]]), [1, 2, 3, 4]);
        assert_eq!(kept(3, &[&[1, 2], &[3, 4]]), [2, 3, 4]);
        assert_eq!(kept(2, &[&[1, 2], &[3, 4], &[]]), [3, 4]);
        assert_eq!(kept(2, &[&[1, 2], &[3, 4], &[5]]), [4, 5]);
        // A round alone may be too much.
        assert_eq!(kept(3, &[&[1], &[2, 9, 4, 7, 5, 8]]), [7, 8, 9]);
        assert_eq!(kept(0, &[&[1, 2]]), [0; 0]);
        // Of events that end at once, none is kept for which there is no room.
        assert_eq!(kept(2, &[&[5, 5, 5, 6]]), [6]);
    }
}
