//! The process's thread pool: threads that do what the kernel cannot do without blocking.
//!
//! One pool serves all loops of the process. It starts with the first request and belongs
//! to the process that started it: a child made by `fork` has none of the threads, so it
//! begins with a pool of its own, and what its parent had queued is its parent's.
//!
//! The rules:
//!
//! - One lock guards the queues, the counters and who sleeps. Work never runs under it, and
//!   neither is a completion delivered under it.
//! - A request is in a queue if and only if its key resolves. Whoever takes it out, a worker
//!   or a cancellation, owns it and sees to its completion: there is exactly one.
//! - Requests run in the order of their submission, whichever loop they are from, save that
//!   slow ones (those that wait for the network) never occupy more than half of the threads,
//!   rounded up: they cannot keep fast ones waiting.
//! - Waking a worker is the dear part of handing work over. It is done if one sleeps, there
//!   is something for it to do, and no other is already on its way to look; whoever takes up
//!   work wakes the next on the same conditions. A burst of requests so costs a wake-up for
//!   each worker that it really takes, not one for each request.
//! - A request names its loop by the place that the loop has in the pool's table. A worker
//!   holds on to the mailbox of the loop that it works for while it has work, and only then.

use crate::slab::{Key, NIL, Slab};
use crate::spin::Spin;
use crate::wakeup::Mailbox;
use blacklight_sys::job::Job;
use blacklight_sys::per_process::PerProcess;
use blacklight_sys::{Errno, clock};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// What a request spends its time with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WorkKind {
    /// Computing.
    Cpu,
    /// Files: blocks, but not for long.
    FastIo,
    /// The network: may block for as long as it likes.
    SlowIo,
}

/// What the pool tells of itself, taken at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct PoolMetrics {
    /// Threads of the pool.
    pub threads: u32,
    /// Requests that wait for a thread.
    pub queued: u32,
    /// The most that ever waited at the same time.
    pub queued_max: u32,
    /// Requests that run.
    pub running: u32,
    /// Requests handed in so far.
    pub submitted: u64,
    /// Requests that have run to their end.
    pub completed: u64,
    /// Requests that were cancelled before they ran.
    pub cancelled: u64,
    /// Those of the completed requests that were measured. Looking at the clock costs as much
    /// as all the rest of handing a request over, so of the fast ones only some are.
    pub measured: u64,
    /// Time that these have waited for a thread, all together.
    pub waiting_ns: u64,
    /// Time that these have run, all together.
    pub running_ns: u64,
}

/// Whether a loop's request with this number is measured: all slow ones, and of the others one
/// in eight, not every eighth, since programs have their rhythms.
#[inline]
pub(crate) fn is_measured(kind: WorkKind, number: u32) -> bool {
    kind == WorkKind::SlowIo || number.wrapping_mul(0x9E37_79B9) >> 29 == 0
}

/// The name and the stack of a worker, as libuv documents them.
const THREAD_NAME: &str = "libuv-worker";
const THREAD_STACK: usize = 8 << 20;

const DEFAULT_THREADS: u32 = 4;
const MAX_THREADS: u32 = 1024;

/// How many threads `UV_THREADPOOL_SIZE` asks for. What is no number counts as zero, and
/// zero as one; negative and enormous numbers ask for as many as there can be.
fn threads_wanted(setting: Option<&str>) -> u32 {
    let Some(setting) = setting else {
        return DEFAULT_THREADS;
    };
    let setting = setting.trim_start();
    if setting
        .strip_prefix('-')
        .is_some_and(|rest| leading_number(rest) > 0)
    {
        return MAX_THREADS;
    }
    let number = leading_number(setting.strip_prefix('+').unwrap_or(setting));
    number.clamp(1, MAX_THREADS)
}

/// The number that the text begins with, or zero.
fn leading_number(text: &str) -> u32 {
    let digits = text.bytes().take_while(u8::is_ascii_digit);
    digits.fold(0, |number, digit| {
        number
            .saturating_mul(10)
            .saturating_add(u32::from(digit - b'0'))
    })
}

/// A request on its way.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) job: Job,
    pub(crate) kind: WorkKind,
    /// Where the completion goes, and under which number.
    pub(crate) lp: Key,
    pub(crate) cell: u32,
    /// When it was handed in, or zero if that is not to be measured.
    pub(crate) queued_ns: u64,
}

impl Task {
    fn is_slow(&self) -> bool {
        self.kind == WorkKind::SlowIo
    }
}

/// The loop that a worker works for.
struct Serving {
    lp: Key,
    mailbox: Arc<Mailbox>,
}

/// A place in a queue.
#[derive(Debug)]
struct Node {
    task: Option<Task>,
    /// Orders the queues among each other.
    number: u64,
    prev: u32,
    next: u32,
}

/// Requests of one sort, first come first served.
#[derive(Debug)]
struct Queue {
    first: u32,
    last: u32,
    len: u32,
}

impl Queue {
    const fn new() -> Queue {
        Queue {
            first: NIL,
            last: NIL,
            len: 0,
        }
    }

    fn push(&mut self, nodes: &mut Slab<Node>, index: u32) {
        nodes[index].prev = self.last;
        match self.last {
            NIL => self.first = index,
            last => nodes[last].next = index,
        }
        self.last = index;
        self.len += 1;
    }

    fn remove(&mut self, nodes: &mut Slab<Node>, index: u32) {
        let (prev, next) = (nodes[index].prev, nodes[index].next);
        match prev {
            NIL => self.first = next,
            prev => nodes[prev].next = next,
        }
        match next {
            NIL => self.last = prev,
            next => nodes[next].prev = prev,
        }
        self.len -= 1;
    }
}

#[derive(Debug)]
struct State {
    /// The loops that have ever asked for something and are still there.
    loops: Slab<Option<Arc<Mailbox>>>,
    nodes: Slab<Node>,
    fast: Queue,
    slow: Queue,
    slow_running: u32,
    /// How many slow requests may run at the same time.
    slow_limit: u32,
    /// Workers that wait to be woken, and those that have been and have not come yet.
    sleeping: u32,
    woken: u32,
    /// Whether a worker is awake without work, for a moment, in case that more comes.
    spinning: bool,
    spin: Spin,
    stopping: bool,
    threads: Vec<JoinHandle<()>>,
    metrics: PoolMetrics,
}

impl State {
    /// How many of the queued requests could start now, given enough threads.
    fn startable(&self) -> u32 {
        self.fast.len + self.slow.len.min(self.slow_limit - self.slow_running)
    }

    /// Whether a sleeping worker is to be woken now, which then counts as woken.
    fn wakes_another(&mut self) -> bool {
        let nobody_looks = self.woken == 0 && !self.spinning;
        let wakes = self.sleeping > 0 && nobody_looks && self.startable() > 0;
        self.sleeping -= u32::from(wakes);
        self.woken += u32::from(wakes);
        wakes
    }

    /// Takes the oldest request that may run now.
    fn take(&mut self) -> Option<Task> {
        let may_run_slow = self.slow_running < self.slow_limit;
        let index = match (self.fast.first, self.slow.first) {
            (NIL, NIL) => return None,
            (NIL, slow) if may_run_slow => slow,
            (NIL, _) => return None,
            (fast, NIL) => fast,
            (fast, slow) if may_run_slow && self.nodes[slow].number < self.nodes[fast].number => {
                slow
            }
            (fast, _) => fast,
        };
        let task = self.unqueue(index);
        self.slow_running += u32::from(task.is_slow());
        self.metrics.running += 1;
        Some(task)
    }

    fn unqueue(&mut self, index: u32) -> Task {
        let task = self.nodes[index].task.take();
        let task = task.expect("a queued request is there");
        match task.is_slow() {
            true => self.slow.remove(&mut self.nodes, index),
            false => self.fast.remove(&mut self.nodes, index),
        }
        self.nodes.remove(index);
        self.metrics.queued -= 1;
        task
    }

    /// Takes a request out of its queue if it is there and the given loop's.
    fn take_back(&mut self, index: u32, lp: Key) -> Option<Task> {
        let task = self.nodes[index].task.as_ref()?;
        if task.lp != lp {
            return None;
        }
        self.metrics.cancelled += 1;
        Some(self.unqueue(index))
    }

    /// The worker's hold on the loop that a request is from, or `None` if it has that.
    fn serve(&self, serving: Option<&Serving>, lp: Key) -> Option<Serving> {
        if serving.is_some_and(|serving| serving.lp == lp) {
            return None;
        }
        let mailbox = self.loops[lp.index].clone();
        let mailbox = mailbox.expect("a loop takes its requests along when it goes");
        Some(Serving { lp, mailbox })
    }

    fn finish(&mut self, slow: bool, times_ns: Option<(u64, u64)>) {
        self.slow_running -= u32::from(slow);
        self.metrics.running -= 1;
        self.metrics.completed += 1;
        if let Some((waited_ns, ran_ns)) = times_ns {
            self.metrics.measured += 1;
            self.metrics.waiting_ns += waited_ns;
            self.metrics.running_ns += ran_ns;
        }
    }
}

#[derive(Debug)]
pub(crate) struct Pool {
    state: Mutex<State>,
    wake: Condvar,
    /// Tells the worker that spins that there may be something to do.
    hint: AtomicBool,
    /// How many requests run, for those who ask without the lock.
    running: AtomicU32,
}

static POOL: PerProcess<Pool> = PerProcess::new();

impl Pool {
    fn new() -> Pool {
        Pool {
            state: Mutex::new(State {
                loops: Slab::new(),
                nodes: Slab::new(),
                fast: Queue::new(),
                slow: Queue::new(),
                slow_running: 0,
                slow_limit: 0,
                sleeping: 0,
                woken: 0,
                spinning: false,
                spin: Spin::new(),
                stopping: false,
                threads: Vec::new(),
                metrics: PoolMetrics::default(),
            }),
            wake: Condvar::new(),
            hint: AtomicBool::new(false),
            running: AtomicU32::new(0),
        }
    }

    /// The pool of this process.
    #[inline]
    pub(crate) fn get() -> &'static Pool {
        POOL.get_or_make(Pool::new)
    }

    /// How many requests run, all loops' together.
    #[inline]
    pub(crate) fn running(&self) -> u32 {
        self.running.load(Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing of ours panics half-way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the threads: as many as were asked for, or as many as there can be.
    #[cold]
    fn start(&'static self, state: &mut State) -> Result<(), Errno> {
        let setting = std::env::var_os("UV_THREADPOOL_SIZE");
        let setting = setting.as_ref().map(|setting| setting.to_string_lossy());
        let wanted = threads_wanted(setting.as_deref());
        state.threads.try_reserve_exact(wanted as usize)?;
        for _ in 0..wanted {
            let thread = std::thread::Builder::new()
                .name(THREAD_NAME.into())
                .stack_size(THREAD_STACK);
            match thread.spawn(|| self.work()) {
                Ok(thread) => state.threads.push(thread),
                Err(error) if state.threads.is_empty() => return Err(error.into()),
                Err(_) => break,
            }
        }
        state.metrics.threads = state.threads.len() as u32;
        state.slow_limit = state.metrics.threads.div_ceil(2);
        Ok(())
    }

    /// Gives a loop its place.
    pub(crate) fn enrol(&self, mailbox: &Arc<Mailbox>) -> Result<Key, Errno> {
        self.lock().loops.insert(Some(mailbox.clone()))
    }

    /// Queues a request, which then has exactly one completion.
    pub(crate) fn submit(&'static self, task: Task) -> Result<Key, Errno> {
        let slow = task.is_slow();
        let mut guard = self.lock();
        let state = &mut *guard;
        if state.threads.is_empty() {
            self.start(state)?;
        }
        let key = state.nodes.insert(Node {
            task: Some(task),
            number: state.metrics.submitted,
            prev: NIL,
            next: NIL,
        })?;
        match slow {
            true => state.slow.push(&mut state.nodes, key.index),
            false => state.fast.push(&mut state.nodes, key.index),
        }
        state.metrics.submitted += 1;
        state.metrics.queued += 1;
        state.metrics.queued_max = state.metrics.queued_max.max(state.metrics.queued);
        let wakes = state.wakes_another();
        if state.spinning {
            self.hint.store(true, Relaxed);
        }
        drop(guard);
        if wakes {
            self.wake.notify_one();
        }
        Ok(key)
    }

    /// Takes a request of the given loop out of its queue; `None` if it is not queued.
    pub(crate) fn cancel(&self, key: Key, lp: Key) -> Option<Task> {
        let mut state = self.lock();
        let index = state.nodes.resolve(key)?;
        state.take_back(index, lp)
    }

    /// The life of a worker.
    fn work(&'static self) {
        let mut serving: Option<Serving> = None;
        let mut state = self.lock();
        loop {
            let Some(task) = state.take() else {
                if state.stopping {
                    return;
                }
                if serving.is_some() {
                    // The last to hold on to a mailbox closes its descriptor.
                    drop(state);
                    serving = None;
                    state = self.lock();
                    continue;
                }
                state = self.rest(state);
                continue;
            };
            self.running.store(state.metrics.running, Relaxed);
            let other = state.serve(serving.as_ref(), task.lp);
            let wakes = state.wakes_another();
            drop(state);
            if wakes {
                self.wake.notify_one();
            }
            if other.is_some() {
                serving = other;
            }
            let slow = task.is_slow();
            let times_ns = run(task, serving.as_ref().expect("it has just been set"));
            state = self.lock();
            state.finish(slow, times_ns);
            self.running.store(state.metrics.running, Relaxed);
        }
    }

    /// A worker's wait for something to do, of which nobody has said yet that there is.
    fn rest<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        // The loop that waits for us has to run, too.
        let others = state.metrics.running + 1;
        if !state.spinning
            && let Some(spin) = state.spin.begin(others)
        {
            state.spinning = true;
            self.hint.store(false, Relaxed);
            drop(state);
            let found = spin.until(|| self.hint.load(Relaxed));
            state = self.lock();
            state.spinning = false;
            state.spin.end(found);
            if found || state.startable() > 0 || state.stopping {
                return state;
            }
        }
        state.sleeping += 1;
        while state.woken == 0 {
            state = self
                .wake
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        state.woken -= 1;
        state
    }

    /// Lets the workers finish what is queued, and ends them. The next request would start
    /// new ones.
    fn shut_down(&self) {
        let mut state = self.lock();
        let threads = std::mem::take(&mut state.threads);
        if threads.is_empty() {
            return;
        }
        state.stopping = true;
        state.woken += state.sleeping;
        state.sleeping = 0;
        self.hint.store(true, Relaxed);
        drop(state);
        self.wake.notify_all();
        let this = std::thread::current().id();
        for thread in threads {
            // A worker that ends the process cannot wait for itself.
            if thread.thread().id() != this {
                let _ = thread.join();
            }
        }
        let mut state = self.lock();
        state.stopping = false;
        state.metrics.threads = 0;
    }
}

/// Does the work and completes the request. How long it has waited and run, if that is to be
/// measured.
fn run(task: Task, serving: &Serving) -> Option<(u64, u64)> {
    let is_measured = task.queued_ns != 0;
    let started_ns = if is_measured {
        clock::monotonic_ns()
    } else {
        0
    };
    // A closure that panics has told so already, and is over like any other.
    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| task.job.run()));
    let times_ns = is_measured.then(|| {
        let ran_ns = clock::monotonic_ns().saturating_sub(started_ns);
        (started_ns.saturating_sub(task.queued_ns), ran_ns)
    });
    serving.mailbox.complete(task.cell);
    times_ns
}

/// Takes a loop's place back, and so many requests out of the queues: nobody is interested in
/// them any more.
#[cold]
pub(crate) fn forget(lp: Key, requests: u32) {
    let Some(pool) = POOL.get() else { return };
    let places = match requests {
        0 => 0,
        _ => pool.lock().nodes.capacity() as u32,
    };
    for index in 0..places {
        let task = pool.lock().take_back(index, lp);
        // What a closure owns is dropped without the lock: it may do anything.
        drop(task);
    }
    let mut state = pool.lock();
    let mailbox = state.loops[lp.index].take();
    state.loops.remove(lp.index);
    drop(state);
    drop(mailbox);
}

/// What the pool of this process has done so far.
pub fn pool_metrics() -> PoolMetrics {
    POOL.get()
        .map_or(PoolMetrics::default(), |pool| pool.lock().metrics)
}

/// Ends the threads of this process's pool, if it has any, when they have done what is
/// queued.
pub fn shut_down_pool() {
    if let Some(pool) = POOL.get() {
        pool.shut_down();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absurd_sizes_are_clamped() {
        assert_eq!(threads_wanted(None), 4);
        for (setting, threads) in [
            ("1", 1),
            ("7", 7),
            (" 7", 7),
            ("+7", 7),
            ("3x", 3),
            ("1024", 1024),
            ("0", 1),
            ("", 1),
            ("-", 1),
            ("-0", 1),
            ("many", 1),
            ("-1", 1024),
            ("1025", 1024),
            ("99999999999999999999", 1024),
        ] {
            assert_eq!(threads_wanted(Some(setting)), threads, "{setting:?}");
        }
    }
}
