//! The queue of started timers.
//!
//! Most programs start timers with a few different time-outs, so most timers start in the order in
//! which they come due. The queue exploits this: a timer that is due no earlier than the last one
//! of some *run* is appended to that run; only a timer that fits no run goes into a 4-ary heap. The
//! next timer is the least of the runs' fronts and the heap's top.
//!
//! Runs are lists linked through the timers themselves: starting, stopping and restarting need
//! neither memory nor a search. Heap entries need no search either: stopping a timer leaves its
//! entry behind as *stale*. The number of its start identifies a stale entry, which is dropped when
//! it reaches the top. When more than half of the entries are stale the heap is swept, so that its
//! size and the cost per operation stay within a constant of those of the live timers.

use crate::handle::{Handles, Kind};
use crate::slab::make_room;
use crate::timer::Timer;
use blacklight_sys::Errno;

/// A started timer.
#[derive(Clone, Copy, Debug)]
struct Entry {
    due_ns: u64,
    /// The number of this start, which is never zero. It identifies the entry.
    start: u32,
    /// The timer's index in the table of handles.
    handle: u32,
}

impl Entry {
    /// Whether this timer comes before another: by due time, and then in the order of starting.
    ///
    /// Numbers wrap around after 2^32 starts. If more than half as many starts lie between two
    /// timers that are due in the same nanosecond, either may come first.
    #[inline]
    fn is_before(&self, other: &Entry) -> bool {
        self.due_ns < other.due_ns
            || self.due_ns == other.due_ns && (self.start.wrapping_sub(other.start) as i32) < 0
    }
}

/// Enough for the usual mix of time-outs, and few enough that comparing all fronts is cheap.
const RUNS: usize = 4;

/// Up to this many stale entries are not worth a sweep.
const FEW: usize = 64;

#[derive(Debug)]
pub(crate) struct TimerQueue {
    /// The anchors of the runs' lists.
    runs: [u32; RUNS],
    /// No timer of a run is due later than this. It may be later than the last timer's due time, if
    /// timers at the end of the run have been stopped.
    ends_ns: [u64; RUNS],
    heap: Heap,
    /// Entries of the heap that are not stale.
    live: usize,
    /// The number of the last start.
    start: u32,
    /// The run to which a timer was last added: most timers that start in one turn are due at the
    /// same time.
    last: usize,
    /// No timer is due before this. If `is_exact`, a timer is due then.
    next_ns: Option<u64>,
    is_exact: bool,
}

fn timer(handles: &Handles, index: u32) -> Option<&Timer> {
    match &handles[index].kind {
        Kind::Timer(timer) => Some(timer),
        _ => None,
    }
}

/// A started timer's entry.
fn entry(handles: &Handles, handle: u32) -> Option<Entry> {
    let &Timer { due_ns, start, .. } = timer(handles, handle)?;
    Some(Entry {
        due_ns,
        start,
        handle,
    })
}

/// Whether the entry is not stale. The handle may have been restarted, stopped or closed since, and
/// its index reused by a handle of any kind.
fn is_live(handles: &Handles, entry: &Entry) -> bool {
    timer(handles, entry.handle)
        .is_some_and(|timer| timer.start == entry.start && timer.due_ns == entry.due_ns)
}

impl TimerQueue {
    pub(crate) fn new(handles: &mut Handles) -> Result<TimerQueue, Errno> {
        let mut runs = [0; RUNS];
        for run in &mut runs {
            *run = handles.anchor()?;
        }
        Ok(TimerQueue {
            last: 0,
            runs,
            ends_ns: [0; RUNS],
            heap: Heap::default(),
            live: 0,
            start: 0,
            next_ns: None,
            is_exact: true,
        })
    }

    /// Adds a stopped timer.
    #[inline(always)]
    pub(crate) fn push(&mut self, handles: &mut Handles, index: u32, due_ns: u64) {
        let start = self.start.wrapping_add(1).max(1);
        self.start = start;
        let Kind::Timer(timer) = &mut handles[index].kind else {
            return;
        };
        timer.due_ns = due_ns;
        timer.start = start;
        self.next_ns = Some(self.next_ns.map_or(due_ns, |next| next.min(due_ns)));
        match self.ends_ns[self.last] == due_ns {
            true => handles.phase_append(self.runs[self.last], index),
            false => self.push_slow(handles, index, due_ns, start),
        }
    }

    /// Adds a timer whose due time is not the end of the last run.
    #[inline(never)]
    fn push_slow(&mut self, handles: &mut Handles, index: u32, due_ns: u64, start: u32) {
        if let Some(run) = self.run_for(handles, due_ns) {
            self.ends_ns[run] = due_ns;
            self.last = run;
            handles.phase_append(self.runs[run], index);
            return;
        }
        let entry = Entry {
            due_ns,
            start,
            handle: index,
        };
        match self.heap.push(entry) {
            Ok(()) => self.live += 1,
            Err(_) => self.push_without_memory(handles, index, due_ns),
        }
    }

    /// The run with the latest end that is not after `due_ns`.
    #[inline]
    fn run_for(&mut self, handles: &Handles, due_ns: u64) -> Option<usize> {
        let fits = |ends_ns: &[u64; RUNS]| {
            let runs = (0..RUNS).filter(|&run| ends_ns[run] <= due_ns);
            runs.max_by_key(|&run| ends_ns[run])
        };
        fits(&self.ends_ns).or_else(|| {
            // Some runs may end earlier by now.
            for (run, &anchor) in self.runs.iter().enumerate() {
                let last = handles.phase_before(anchor, anchor);
                let last = last.and_then(|last| timer(handles, last));
                self.ends_ns[run] = last.map_or(0, |last| last.due_ns);
            }
            fits(&self.ends_ns)
        })
    }

    /// Inserts a timer into a run by a linear search, where the heap has no memory for it.
    #[cold]
    fn push_without_memory(&mut self, handles: &mut Handles, index: u32, due_ns: u64) {
        let anchor = self.runs[0];
        let mut place = anchor;
        while let Some(before) = handles.phase_before(anchor, place) {
            place = before;
            if timer(handles, place).is_some_and(|timer| timer.due_ns <= due_ns) {
                handles.phase_insert_behind(place, index);
                return;
            }
        }
        handles.phase_insert_behind(anchor, index);
    }

    /// Takes out a timer that is started or ready.
    #[inline(never)]
    pub(crate) fn remove(&mut self, handles: &mut Handles, index: u32) {
        let Kind::Timer(timer) = &mut handles[index].kind else {
            return;
        };
        debug_assert!(timer.start != 0, "a stopped timer is removed");
        timer.start = 0;
        self.is_exact &= Some(timer.due_ns) != self.next_ns;
        if handles.is_in_phase(index) {
            handles.phase_remove(index);
        } else {
            self.live -= 1;
            if self.heap.entries.len() - self.live > self.live + FEW {
                self.heap.retain(|entry| is_live(handles, entry));
            }
        }
    }

    /// The first timer of a run.
    #[inline]
    fn front(&self, handles: &Handles, run: usize) -> Option<Entry> {
        entry(handles, handles.phase_first(self.runs[run])?)
    }

    /// The heap's first timer. Drops stale entries before it.
    #[inline]
    fn top(&mut self, handles: &Handles) -> Option<Entry> {
        while let Some(&top) = self.heap.entries.first() {
            if is_live(handles, &top) {
                return Some(top);
            }
            self.heap.pop();
        }
        None
    }

    /// When the next timer is due.
    #[inline]
    pub(crate) fn next_due_ns(&mut self, handles: &Handles) -> Option<u64> {
        if !self.is_exact {
            self.find_next(handles);
        }
        self.next_ns
    }

    fn find_next(&mut self, handles: &Handles) {
        let top = self.top(handles);
        let fronts = (0..RUNS).filter_map(|run| self.front(handles, run));
        self.next_ns = fronts.chain(top).map(|entry| entry.due_ns).min();
        self.is_exact = true;
    }

    /// Moves all timers that are due by `now_ns` to the end of the list `ready`, in their order, and
    /// makes them inactive.
    #[inline]
    pub(crate) fn take_due(&mut self, handles: &mut Handles, now_ns: u64, ready: u32) {
        if self.next_ns.is_some_and(|next| next <= now_ns) {
            self.take_all_due(handles, now_ns, ready);
            self.find_next(handles);
        }
    }

    fn take_all_due(&mut self, handles: &mut Handles, now_ns: u64, ready: u32) {
        loop {
            // The least due timer, and the least of the others, which bounds how far its run goes.
            let is_due = |entry: &Entry| entry.due_ns <= now_ns;
            let mut least = self.top(handles).filter(is_due);
            let (mut place, mut bound) = (None, None::<Entry>);
            for run in 0..RUNS {
                let Some(front) = self.front(handles, run).filter(is_due) else {
                    continue;
                };
                match least {
                    Some(before) if !front.is_before(&before) => {
                        if bound.is_none_or(|bound| front.is_before(&bound)) {
                            bound = Some(front);
                        }
                    }
                    before => (least, place, bound) = (Some(front), Some(run), before),
                }
            }
            match (least, place) {
                (None, _) => return,
                (Some(_), Some(run)) => self.take_front(handles, run, now_ns, bound, ready),
                (Some(top), None) => {
                    self.heap.pop();
                    self.live -= 1;
                    handles.set_active(top.handle, false);
                    handles.phase_append(ready, top.handle);
                }
            }
        }
    }

    /// Moves the first timer of a run, and the timers after it that are due and before `bound`.
    #[inline]
    fn take_front(
        &self,
        handles: &mut Handles,
        run: usize,
        now_ns: u64,
        bound: Option<Entry>,
        ready: u32,
    ) {
        let anchor = self.runs[run];
        let mut last = anchor;
        while let Some(next) = handles.phase_after(anchor, last) {
            let goes = |entry: Entry| {
                entry.due_ns <= now_ns && bound.is_none_or(|bound| entry.is_before(&bound))
            };
            if last != anchor && !entry(handles, next).is_some_and(goes) {
                break;
            }
            handles.set_active(next, false);
            last = next;
        }
        handles.phase_move_front(anchor, last, ready);
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
            if !entry.is_before(&self.entries[parent]) {
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
            let lesser = |a: usize, b: usize| {
                let is_before = self.entries[b].is_before(&self.entries[a]);
                if is_before { b } else { a }
            };
            let Some(least) = (first..end).reduce(lesser) else {
                break;
            };
            if !self.entries[least].is_before(&entry) {
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
    use crate::Token;
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

    /// A queue with a table of timers beside it.
    struct Bench {
        handles: Handles,
        queue: TimerQueue,
        ready: u32,
    }

    impl Bench {
        fn new() -> Bench {
            let mut handles = Handles::new();
            let mut queue = TimerQueue::new(&mut handles).unwrap();
            // So that numbers wrap around in most tests.
            queue.start = u32::MAX - 1_000;
            let ready = handles.anchor().unwrap();
            Bench {
                handles,
                queue,
                ready,
            }
        }

        fn timer(&mut self) -> u32 {
            let timer = Kind::Timer(Timer::default());
            self.handles.insert(timer, Token(0)).unwrap().index
        }

        fn push(&mut self, index: u32, due_ns: u64) {
            self.queue.push(&mut self.handles, index, due_ns);
        }

        /// Takes a timer out if it is started.
        fn remove(&mut self, index: u32) {
            if timer(&self.handles, index).is_some_and(|timer| timer.start != 0) {
                self.queue.remove(&mut self.handles, index);
            }
        }

        fn take_due(&mut self, now_ns: u64) -> Vec<u32> {
            self.queue.take_due(&mut self.handles, now_ns, self.ready);
            let mut taken = Vec::new();
            while let Some(first) = self.handles.phase_first(self.ready) {
                self.remove(first);
                taken.push(first);
            }
            taken
        }
    }

    /// Starts, restarts and stops timers at random, and compares with a sorted set of
    /// (due time, number of the start, timer).
    fn check(seed: u64, spread: u64) {
        let mut random = Random(seed);
        let mut bench = Bench::new();
        let timers: Vec<u32> = (0..500).map(|_| bench.timer()).collect();
        let mut model = BTreeSet::new();
        let mut now = 0;
        for step in 0..5_000u64 {
            match random.below(8) {
                0..5 => {
                    let timer = timers[random.below(500) as usize];
                    model.retain(|&(_, _, other)| other != timer);
                    bench.remove(timer);
                    let due = now + random.below(spread);
                    bench.push(timer, due);
                    model.insert((due, step, timer));
                }
                5 => {
                    let timer = timers[random.below(500) as usize];
                    model.retain(|&(_, _, other)| other != timer);
                    bench.remove(timer);
                }
                _ => now += random.below(spread / 2 + 1),
            }
            let next = bench.queue.next_due_ns(&bench.handles);
            let expected = model.first().map(|&(due, ..)| due);
            assert_eq!(next, expected, "seed {seed}, step {step}");
            if random.below(8) == 0 {
                let later = model.split_off(&(now + 1, 0, 0));
                let due = std::mem::replace(&mut model, later);
                let due: Vec<u32> = due.into_iter().map(|(.., timer)| timer).collect();
                assert_eq!(bench.take_due(now), due, "seed {seed}, step {step}");
            }
        }
    }

    #[test]
    fn agrees_with_a_sorted_set() {
        for seed in 1..40 {
            check(seed, [1, 3, 50, 100_000][seed as usize % 4]);
        }
    }

    /// Many restarts before the first is due, so that the ends of the runs are looked up again and
    /// again.
    #[test]
    fn agrees_with_a_sorted_set_while_no_timer_is_due() {
        for seed in 1..5_000 {
            let mut random = Random(seed);
            let mut bench = Bench::new();
            let timers: Vec<u32> = (0..12).map(|_| bench.timer()).collect();
            let mut model = BTreeSet::new();
            for step in 0..100u64 {
                let timer = timers[random.below(12) as usize];
                model.retain(|&(_, _, other)| other != timer);
                bench.remove(timer);
                if random.below(10) > 0 {
                    let due = 1 + random.below(12);
                    bench.push(timer, due);
                    model.insert((due, step, timer));
                }
            }
            for now in 1..=12 {
                let due = model.iter().filter(|&&(due, ..)| due == now);
                let due: Vec<u32> = due.map(|&(.., timer)| timer).collect();
                assert_eq!(bench.take_due(now), due, "seed {seed}, at {now}");
            }
        }
    }

    #[test]
    fn a_run_that_ends_earlier_by_now_takes_no_timer_of_its_old_end() {
        let mut bench = Bench::new();
        for due in [400, 300, 200, 50] {
            let timer = bench.timer();
            bench.push(timer, due);
        }
        let stopped = bench.timer();
        bench.push(stopped, 100);
        bench.remove(stopped);
        let [early, old_end, between] = [20, 100, 70].map(|due| {
            let timer = bench.timer();
            bench.push(timer, due);
            timer
        });
        assert_eq!(bench.take_due(20), [early]);
        assert_eq!(bench.take_due(70).last(), Some(&between));
        assert_eq!(bench.take_due(100), [old_end]);
    }

    #[test]
    fn stale_entries_do_not_pile_up() {
        let mut bench = Bench::new();
        let timers: Vec<u32> = (0..10).map(|_| bench.timer()).collect();
        for due in (0..100_000).rev() {
            let timer = timers[due as usize % 10];
            bench.remove(timer);
            bench.push(timer, due);
        }
        let entries = bench.queue.heap.entries.len();
        assert!(entries <= 2 * FEW + 20, "{entries} entries for ten timers");
        assert_eq!(bench.queue.next_due_ns(&bench.handles), Some(0));
    }

    #[test]
    fn timers_of_a_few_time_outs_never_touch_the_heap() {
        let mut bench = Bench::new();
        for now in 0..1_000 {
            for timeout in [5, 60, 1_000, 86_400] {
                let timer = bench.timer();
                bench.push(timer, now + timeout);
            }
        }
        assert!(bench.queue.heap.entries.is_empty());
    }

    #[test]
    fn without_memory_timers_find_their_place_in_a_run() {
        let mut bench = Bench::new();
        for due in [30, 10, 20, 10, 40, 5] {
            let timer = bench.timer();
            bench.push(timer, due);
            bench.remove(timer);
            let Kind::Timer(entry) = &mut bench.handles[timer].kind else {
                panic!("{timer} is no timer");
            };
            entry.due_ns = due;
            entry.start = timer;
            (bench.queue).push_without_memory(&mut bench.handles, timer, due);
        }
        let mut order = Vec::new();
        while let Some(due) = bench.queue.next_due_ns(&bench.handles) {
            for _ in bench.take_due(due) {
                order.push(due);
            }
        }
        assert_eq!(order, [5, 10, 10, 20, 30, 40]);
    }
}
