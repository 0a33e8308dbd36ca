//! Which timer is due next.
//!
//! Programs start timers mostly with a few different time-outs, so most of them are
//! started in the order in which they will come due. The queue makes use of it: a timer
//! that is due no earlier than the last one of some *run* is appended to that run, which
//! costs nothing; only a timer that fits no run goes into a 4-ary heap. The next timer is
//! the least of the runs' fronts and the heap's top.
//!
//! Entries are never searched for. Stopping a timer leaves its entry behind as *stale*:
//! the caller knows an entry by its sequence number, and drops it when it surfaces. When
//! more than half of the entries are stale the queue is swept, so that its size and the
//! cost per operation stay within a constant of those of the live timers.

use crate::slab::make_room;
use blacklight_sys::Errno;

/// A started timer: ordered by due time and then by the order of starting.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Entry {
    pub(crate) due_ns: u64,
    /// The number of this start. It identifies the entry: no two starts share one.
    pub(crate) start: u64,
    /// The timer's index in the table of handles.
    pub(crate) handle: u32,
}

/// Enough for the usual mix of time-outs; looking at all fronts stays cheap.
const RUNS: usize = 4;

/// Stale entries that are not worth a sweep yet.
const FEW: usize = 64;

#[derive(Default, Debug)]
pub(crate) struct TimerQueue {
    runs: [Sorted; RUNS],
    heap: Heap,
    /// Started timers, of which each has one entry.
    live: usize,
    starts: u64,
}

impl TimerQueue {
    /// Adds a timer and returns the number of this start, which is not zero.
    pub(crate) fn push(&mut self, due_ns: u64, handle: u32) -> Result<u64, Errno> {
        let entry = Entry {
            due_ns,
            start: self.starts + 1,
            handle,
        };
        match self.run_for(due_ns) {
            Some(run) => run.push(entry)?,
            None => self.heap.push(entry)?,
        }
        self.starts += 1;
        self.live += 1;
        Ok(entry.start)
    }

    /// The run that ends closest before `due_ns`, else an empty one.
    fn run_for(&mut self, due_ns: u64) -> Option<&mut Sorted> {
        let fit = |run: &Sorted| match run.entries.last() {
            None => Some(0),
            Some(last) if last.due_ns <= due_ns => Some(last.due_ns.saturating_add(1)),
            Some(_) => None,
        };
        let best = (0..RUNS).max_by_key(|&run| fit(&self.runs[run]))?;
        fit(&self.runs[best])?;
        Some(&mut self.runs[best])
    }

    /// Says that a timer with an entry in the queue has been stopped. `is_live` tells of
    /// an entry whether its timer still waits for it.
    pub(crate) fn forget(&mut self, is_live: impl Fn(&Entry) -> bool) {
        self.live -= 1;
        let entries = self.heap.entries.len() + self.runs.iter().map(Sorted::len).sum::<usize>();
        if entries - self.live > self.live + FEW {
            for run in &mut self.runs {
                run.retain(&is_live);
            }
            self.heap.retain(&is_live);
        }
    }

    /// The next entry, live or stale, and where it is.
    fn first(&self) -> Option<(Entry, usize)> {
        let fronts = self
            .runs
            .iter()
            .enumerate()
            .filter_map(|(i, run)| Some((*run.front()?, i)));
        let top = self.heap.entries.first().map(|top| (*top, RUNS));
        fronts.chain(top).min()
    }

    fn discard(&mut self, place: usize) {
        match self.runs.get_mut(place) {
            Some(run) => run.pop(),
            None => self.heap.pop(),
        }
    }

    /// The next live timer. Stale entries before it are dropped on the way.
    #[inline]
    pub(crate) fn peek(&mut self, is_live: impl Fn(&Entry) -> bool) -> Option<Entry> {
        while let Some((entry, place)) = self.first() {
            if is_live(&entry) {
                return Some(entry);
            }
            self.discard(place);
        }
        None
    }

    /// Takes out the next live timer if it is due.
    #[inline]
    pub(crate) fn pop_due(
        &mut self,
        now_ns: u64,
        is_live: impl Fn(&Entry) -> bool,
    ) -> Option<Entry> {
        while let Some((entry, place)) = self.first() {
            let live = is_live(&entry);
            if live && entry.due_ns > now_ns {
                return None;
            }
            self.discard(place);
            if live {
                self.live -= 1;
                return Some(entry);
            }
        }
        None
    }
}

/// Entries in order, taken from the front.
#[derive(Default, Debug)]
struct Sorted {
    entries: Vec<Entry>,
    /// How many of them have been taken already. Never all of them.
    taken: usize,
}

impl Sorted {
    fn len(&self) -> usize {
        self.entries.len() - self.taken
    }

    #[inline]
    fn front(&self) -> Option<&Entry> {
        self.entries.get(self.taken)
    }

    #[inline]
    fn push(&mut self, entry: Entry) -> Result<(), Errno> {
        if self.entries.len() == self.entries.capacity() && self.taken > self.len() {
            // Moving the fewer entries that are left pays for itself.
            self.entries.drain(..self.taken);
            self.taken = 0;
        }
        make_room(&mut self.entries)?;
        self.entries.push(entry);
        Ok(())
    }

    #[inline]
    fn pop(&mut self) {
        self.taken += 1;
        if self.taken >= self.entries.len() {
            self.entries.clear();
            self.taken = 0;
        }
    }

    fn retain(&mut self, keep: impl Fn(&Entry) -> bool) {
        self.entries.drain(..self.taken);
        self.taken = 0;
        self.entries.retain(keep);
    }
}

/// A 4-ary heap in a vector: half the height of a binary one, and a node's children
/// lie side by side.
#[derive(Default, Debug)]
struct Heap {
    entries: Vec<Entry>,
}

const ARITY: usize = 4;

impl Heap {
    fn push(&mut self, entry: Entry) -> Result<(), Errno> {
        make_room(&mut self.entries)?;
        let mut at = self.entries.len();
        self.entries.push(entry);
        while at > 0 {
            let parent = (at - 1) / ARITY;
            if self.entries[parent] <= entry {
                break;
            }
            self.entries[at] = self.entries[parent];
            at = parent;
        }
        self.entries[at] = entry;
        Ok(())
    }

    fn pop(&mut self) {
        let Some(last) = self.entries.pop() else {
            return;
        };
        if !self.entries.is_empty() {
            self.entries[0] = last;
            self.sift_down(0);
        }
    }

    fn sift_down(&mut self, mut at: usize) {
        let entry = self.entries[at];
        loop {
            let first = at * ARITY + 1;
            let end = (first + ARITY).min(self.entries.len());
            let Some(least) = (first..end).min_by_key(|&child| self.entries[child]) else {
                break;
            };
            if entry <= self.entries[least] {
                break;
            }
            self.entries[at] = self.entries[least];
            at = least;
        }
        self.entries[at] = entry;
    }

    fn retain(&mut self, keep: impl Fn(&Entry) -> bool) {
        self.entries.retain(keep);
        for at in (0..self.entries.len().div_ceil(ARITY)).rev() {
            self.sift_down(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// xorshift64*, so that a failure can be repeated.
    struct Random(u64);

    impl Random {
        fn below(&mut self, n: u64) -> u64 {
            self.0 ^= self.0 >> 12;
            self.0 ^= self.0 << 25;
            self.0 ^= self.0 >> 27;
            self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) % n
        }
    }

    fn check(seed: u64, spread: u64) {
        let mut random = Random(seed);
        let mut queue = TimerQueue::default();
        let mut model = BTreeSet::new();
        let mut now = 0;
        for step in 0..5_000 {
            match random.below(8) {
                0..4 => {
                    let due = now + random.below(spread);
                    let start = queue.push(due, step).unwrap();
                    model.insert((due, start, step));
                }
                4..6 if !model.is_empty() => {
                    let nth = random.below(model.len() as u64) as usize;
                    let victim = *model.iter().nth(nth).unwrap();
                    model.remove(&victim);
                    queue.forget(|e| model.contains(&(e.due_ns, e.start, e.handle)));
                }
                _ => now += random.below(spread / 2 + 1),
            }
            let live = |e: &Entry| model.contains(&(e.due_ns, e.start, e.handle));
            let first = queue.peek(live).map(|e| (e.due_ns, e.start, e.handle));
            assert_eq!(first, model.first().copied(), "seed {seed}, step {step}");
            if random.below(4) == 0 {
                let due = queue
                    .pop_due(now, live)
                    .map(|e| (e.due_ns, e.start, e.handle));
                let expected = model.first().copied().filter(|e| e.0 <= now);
                assert_eq!(due, expected, "seed {seed}, step {step}");
                if let Some(e) = due {
                    model.remove(&e);
                }
            }
        }
    }

    #[test]
    fn agrees_with_a_sorted_set() {
        for seed in 1..40 {
            check(seed, [1, 3, 50, 100_000][seed as usize % 4]);
        }
    }

    #[test]
    fn stale_entries_do_not_pile_up() {
        let mut queue = TimerQueue::default();
        let mut current = 0;
        for due in (0..100_000).rev() {
            if current != 0 {
                queue.forget(|_| false);
            }
            current = queue.push(due, 0).unwrap();
        }
        let entries = queue.heap.entries.len() + queue.runs.iter().map(Sorted::len).sum::<usize>();
        assert!(entries <= 2 * FEW + 4, "{entries} entries for one timer");
        assert_eq!(queue.peek(|e| e.start == current).unwrap().due_ns, 0);
    }

    #[test]
    fn timers_of_one_time_out_never_touch_the_heap() {
        let mut queue = TimerQueue::default();
        for now in 0..1_000 {
            for timeout in [5, 60, 1_000, 86_400] {
                queue.push(now + timeout, 0).unwrap();
            }
        }
        assert!(queue.heap.entries.is_empty());
    }
}
