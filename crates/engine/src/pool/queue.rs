//! The requests that wait for a worker, and which of them is next.
//!
//! Fast requests are in one queue and slow requests in another, each in the order of submission.
//! The invariants:
//!
//! - Numbers of requests grow over both queues; no number is used twice. The oldest request of
//!   both queues is next, unless it is slow and the limit of running slow requests is reached.
//! - A request is found by its number until a worker or a cancellation takes it out.
//! - A request that is taken out of the middle leaves a hole. No queue begins or ends with a hole,
//!   and holes never outnumber requests, so that taking a request out costs amortized constant
//!   time besides the search.

use super::WorkKind;
use crate::slab::Key;
use blacklight_record::Request;
use blacklight_sys::Errno;
use blacklight_sys::job::Job;
use blacklight_sys::per_process;
use std::collections::VecDeque;

/// A request of a loop to the pool.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) job: Job,
    pub(crate) kind: WorkKind,
    /// The loop that the completion goes to, and the request's cell in that loop's mailbox.
    pub(crate) lp: Key,
    pub(crate) cell: u32,
    /// When the request was submitted, or zero if it is not measured.
    pub(crate) queued_ns: u64,
    /// Whether the worker that has run the request may spin for the next one.
    pub(crate) may_spin: bool,
    /// By what name the record knows the request, and whether it has been told of it.
    pub(crate) name: Name,
    pub(crate) is_recorded: bool,
}

/// A request's name in the record.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Name {
    /// An index into [`REQUEST_KINDS`](blacklight_record::layout::REQUEST_KINDS).
    pub(crate) kind: u8,
    /// The front end's name for it.
    pub(crate) token: u64,
}

impl Task {
    /// What the record is told of the request.
    pub(super) fn request(&self) -> Request {
        Request {
            kind: self.name.kind,
            token: self.name.token,
            queued_ns: self.queued_ns,
        }
    }

    /// What the record was told of the request; `None` if it was not told of it.
    pub(super) fn recorded(&self) -> Option<Request> {
        self.is_recorded.then(|| self.request())
    }

    /// Has the request recorded, as one that waits since now if nobody knows since when it does.
    pub(super) fn record(&mut self, now_ns: u64) -> Request {
        if self.queued_ns == 0 {
            self.queued_ns = now_ns;
        }
        self.is_recorded = true;
        self.request()
    }

    pub(super) fn is_slow(&self) -> bool {
        self.kind == WorkKind::SlowIo
    }
}

/// Names one request while it is in a queue. No number is zero.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Number(u64);

impl Number {
    pub(crate) const fn to_bits(self) -> u64 {
        self.0
    }

    pub(crate) const fn from_bits(bits: u64) -> Number {
        Number(bits)
    }

    /// The lowest bit says which queue the request is in.
    fn is_slow(self) -> bool {
        self.0 & 1 == 1
    }
}

#[derive(Debug)]
struct Entry {
    number: Number,
    task: Option<Task>,
}

#[derive(Default, Debug)]
struct Queue {
    entries: VecDeque<Entry>,
    holes: usize,
}

impl Queue {
    /// How many requests there are.
    fn len(&self) -> usize {
        self.entries.len() - self.holes
    }

    /// The number of the oldest request.
    fn first(&self) -> Option<Number> {
        self.entries.front().map(|entry| entry.number)
    }

    fn pop(&mut self) -> Option<Task> {
        let task = self.entries.pop_front()?.task;
        debug_assert!(task.is_some(), "a queue begins with a hole");
        if self.holes > 0 {
            self.trim();
        }
        task
    }

    fn position(&self, number: Number) -> Option<usize> {
        let by_number = |entry: &Entry| entry.number.0.cmp(&number.0);
        self.entries.binary_search_by(by_number).ok()
    }

    /// Takes out a request, if it is queued and belongs to the given loop.
    fn remove(&mut self, number: Number, lp: Key) -> Option<Task> {
        let at = self.position(number)?;
        let task = self.entries[at].task.take_if(|task| task.lp == lp)?;
        self.holes += 1;
        self.trim();
        Some(task)
    }

    /// Moves all requests of a loop to `removed`. Requests beyond its capacity are dropped.
    fn remove_all(&mut self, lp: Key, removed: &mut Vec<Task>) {
        for entry in &mut self.entries {
            if let Some(task) = entry.task.take_if(|task| task.lp == lp) {
                self.holes += 1;
                if removed.len() < removed.capacity() {
                    removed.push(task);
                }
            }
        }
        self.trim();
    }

    /// Restores the invariants about holes.
    fn trim(&mut self) {
        let is_hole = |entry: Option<&Entry>| entry.is_some_and(|entry| entry.task.is_none());
        while is_hole(self.entries.front()) {
            self.entries.pop_front();
            self.holes -= 1;
        }
        while is_hole(self.entries.back()) {
            self.entries.pop_back();
            self.holes -= 1;
        }
        if self.holes > self.entries.len() / 2 {
            self.entries.retain(|entry| entry.task.is_some());
            self.holes = 0;
        }
    }
}

#[derive(Default, Debug)]
pub(super) struct Queues {
    fast: Queue,
    slow: Queue,
    /// How many numbers have been given out.
    pub(super) submitted: u64,
    slow_running: usize,
    /// How many slow requests may run at the same time.
    pub(super) slow_limit: usize,
}

impl Queues {
    /// How many requests are queued.
    pub(super) fn len(&self) -> usize {
        self.fast.len() + self.slow.len()
    }

    /// What the record is told of the request that waits longest. It knows all requests that wait:
    /// those from before it began were [adopted](super::Pool::adopt).
    pub(super) fn oldest(&self) -> Option<Request> {
        let first = |queue: &Queue| queue.entries.front()?.task.as_ref()?.recorded();
        let (fast, slow) = (first(&self.fast), first(&self.slow));
        match (fast, slow) {
            (Some(fast), Some(slow)) if slow.queued_ns < fast.queued_ns => Some(slow),
            (None, slow) => slow,
            (fast, _) => fast,
        }
    }

    /// All requests that wait.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Task> {
        let entries = self.fast.entries.iter_mut();
        let entries = entries.chain(&mut self.slow.entries);
        entries.filter_map(|entry| entry.task.as_mut())
    }

    /// How many requests could start now, if there were threads for all.
    pub(super) fn startable(&self) -> usize {
        self.fast.len() + self.startable_slow()
    }

    /// How many slow requests could start now.
    pub(super) fn startable_slow(&self) -> usize {
        (self.slow.len()).min(self.slow_limit.saturating_sub(self.slow_running))
    }

    /// Adds a request. If there is no memory for it, the request comes back.
    pub(super) fn push(&mut self, task: Task) -> Result<Number, (Errno, Task)> {
        let is_slow = task.is_slow();
        let queue = match is_slow {
            true => &mut self.slow.entries,
            false => &mut self.fast.entries,
        };
        if let Err(error) = queue.try_reserve(1) {
            return Err((error.into(), task));
        }
        self.submitted += 1;
        // A child's numbers are none of its parent's, whose requests it may still try to cancel.
        let process = per_process::generation() << 48;
        let number = Number((process | self.submitted) << 1 | u64::from(is_slow));
        queue.push_back(Entry {
            number,
            task: Some(task),
        });
        Ok(number)
    }

    /// Takes out the oldest request that may run now.
    pub(super) fn take(&mut self) -> Option<Task> {
        let slow = match self.slow_running < self.slow_limit {
            true => self.slow.first(),
            false => None,
        };
        match (self.fast.first(), slow) {
            (Some(fast), Some(slow)) if slow.0 > fast.0 => self.fast.pop(),
            (_, Some(_)) => {
                self.slow_running += 1;
                self.slow.pop()
            }
            (_, None) => self.fast.pop(),
        }
    }

    /// Counts a slow request as finished.
    pub(super) fn slow_is_over(&mut self) {
        self.slow_running -= 1;
    }

    /// Takes out a request to cancel it. `None` if it is not queued or belongs to another loop.
    pub(super) fn cancel(&mut self, number: Number, lp: Key) -> Option<Task> {
        match number.is_slow() {
            true => self.slow.remove(number, lp),
            false => self.fast.remove(number, lp),
        }
    }

    /// Takes out all requests of a loop; see [`Queue::remove_all`].
    pub(super) fn cancel_all(&mut self, lp: Key, removed: &mut Vec<Task>) {
        self.fast.remove_all(lp, removed);
        self.slow.remove_all(lp, removed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn task(lp: u64, cell: u32, slow: bool) -> Task {
        Task {
            job: Job::new(|| ()),
            kind: if slow {
                WorkKind::SlowIo
            } else {
                WorkKind::Cpu
            },
            lp: Key::from_bits(lp),
            cell,
            queued_ns: 0,
            may_spin: true,
            name: Name::default(),
            is_recorded: false,
        }
    }

    /// Random operations agree with a plain table of requests.
    #[test]
    fn queues_do_what_a_table_would() {
        let mut random = 88_172_645_463_325_252u64;
        let mut next = |below: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random % below
        };
        let mut queues = Queues {
            slow_limit: 2,
            ..Queues::default()
        };
        let mut table: BTreeMap<u32, (Number, bool, u64)> = BTreeMap::new();
        // Maintained, since scanning the table in each round takes minutes under the thread
        // sanitizer.
        let mut waiting_slow = 0;
        let mut running_slow = 0;
        for cell in 0..200_000 {
            // Queues grow long and short by turns.
            let phase = u64::from(cell / 20_000 % 2);
            match next(6) {
                0..=2 => {
                    let (slow, lp) = (next(2) == 0, next(3));
                    let number = queues.push(task(lp, cell, slow)).unwrap();
                    table.insert(cell, (number, slow, lp));
                    waiting_slow += usize::from(slow);
                }
                3 if next(2) >= phase => {
                    let may = |slow: bool| !slow || running_slow < 2;
                    let oldest = table.iter().find(|(_, request)| may(request.1));
                    let oldest = oldest.map(|(&cell, &(_, slow, _))| (cell, slow));
                    let taken = queues.take().map(|task| (task.cell, task.is_slow()));
                    assert_eq!(taken, oldest);
                    if let Some((cell, slow)) = taken {
                        table.remove(&cell);
                        waiting_slow -= usize::from(slow);
                        running_slow += u32::from(slow);
                    }
                }
                4 if running_slow > 0 => {
                    running_slow -= 1;
                    queues.slow_is_over();
                }
                _ => {
                    let from = next(u64::from(cell) + 1) as u32;
                    let some = table.range(from..).next();
                    let some = some.map(|(&cell, &request)| (cell, request));
                    if let Some((cell, (number, slow, lp))) = some {
                        let other = Key::from_bits(lp + 1);
                        assert!(queues.cancel(number, other).is_none());
                        let lp = Key::from_bits(lp);
                        assert_eq!(queues.cancel(number, lp).unwrap().cell, cell);
                        assert!(queues.cancel(number, lp).is_none());
                        table.remove(&cell);
                        waiting_slow -= usize::from(slow);
                    }
                }
            }
            assert_eq!(queues.len(), table.len());
            let startable =
                table.len() - waiting_slow + waiting_slow.min(2 - running_slow as usize);
            assert_eq!(queues.startable(), startable);
            for queue in [&queues.fast, &queues.slow] {
                assert!(queue.holes <= queue.entries.len() / 2);
            }
            if cell % 5_000 == 0 {
                let lp = next(3);
                let mut removed = Vec::with_capacity(table.len());
                queues.cancel_all(Key::from_bits(lp), &mut removed);
                let before = table.len();
                table.retain(|_, request| request.2 != lp);
                waiting_slow = table.values().filter(|request| request.1).count();
                assert_eq!(removed.len(), before - table.len());
            }
        }
    }
}
