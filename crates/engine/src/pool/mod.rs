//! The process's thread pool: threads that do what the kernel cannot do without blocking.
//!
//! One pool serves all loops of the process. It starts with the first request and belongs
//! to the process that started it: a child made by `fork` has none of the threads, so it
//! begins with a pool of its own, and what its parent had queued is its parent's.
//!
//! The rules:
//!
//! - One lock guards the queues and who sleeps. Work never runs under it, and neither is a
//!   completion delivered under it. What many threads write under it is kept small: each
//!   line of memory that wanders between processors costs as much as the lock.
//! - Whoever takes a request out of its queue (see `queue.rs`), a worker or a cancellation,
//!   owns it and sees to its completion: there is exactly one.
//! - Requests run in the order of their submission, whichever loop they are from, save that
//!   slow ones (those that wait for the network) never occupy more than half of the threads,
//!   rounded up: they cannot keep fast ones waiting.
//! - Waking a worker is the dear part of handing work over. It is done if one sleeps, there
//!   is something for it to do, and no other is already on its way to look; whoever takes up
//!   work wakes the next on the same conditions. A burst of requests so costs a wake-up for
//!   each worker that it really takes, not one for each request. For slow requests, and where
//!   the fast ones have taken longer than a wake-up does, as many are on their way as have
//!   something to do: one after the other they would come too late.
//! - A request names its loop by the place that the loop has in the pool's table. A worker
//!   holds on to the mailbox of the loop that it works for while it has work, and only then.

#[cfg(all(test, loom))]
mod models;
mod queue;

use crate::mailbox::Mailbox;
use crate::patience::{self, Awaits, Patience, Spinning, Workers};
use crate::slab::{Key, Slab};
use crate::sync::{
    AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Body, Condvar, Mutex, MutexGuard, Thread, pause,
};
use blacklight_sys::fallible::Arc;
use blacklight_sys::per_process::PerProcess;
use blacklight_sys::{Errno, clock};
use queue::Queues;
pub(crate) use queue::{Number, Task};
use std::ffi::CStr;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::{PoisonError, TryLockError};

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

/// The stack of a worker, as libuv documents it.
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
pub(crate) fn leading_number(text: &str) -> u32 {
    let digits = text.bytes().take_while(u8::is_ascii_digit);
    digits.fold(0, |number, digit| {
        number
            .saturating_mul(10)
            .saturating_add(u32::from(digit - b'0'))
    })
}

/// The loop that a worker works for.
struct Serving {
    lp: Key,
    mailbox: Arc<Mailbox>,
}

/// What one worker has done. It alone writes, and nobody else's counters are near.
#[derive(Default, Debug)]
#[repr(align(128))]
struct Tally {
    completed: AtomicU64,
    measured: AtomicU64,
    waiting_ns: AtomicU64,
    running_ns: AtomicU64,
}

impl Tally {
    fn count(&self, times_ns: Option<(u64, u64)>) {
        let add = |to: &AtomicU64, more| to.store(to.load(Relaxed) + more, Relaxed);
        add(&self.completed, 1);
        if let Some((waited_ns, ran_ns)) = times_ns {
            add(&self.measured, 1);
            add(&self.waiting_ns, waited_ns);
            add(&self.running_ns, ran_ns);
        }
    }

    fn add_to(&self, metrics: &mut PoolMetrics) {
        metrics.completed += self.completed.load(Relaxed);
        metrics.measured += self.measured.load(Relaxed);
        metrics.waiting_ns += self.waiting_ns.load(Relaxed);
        metrics.running_ns += self.running_ns.load(Relaxed);
    }
}

/// A thread of a pool's.
#[derive(Debug)]
struct Worker {
    pool: &'static Pool,
    tally: Tally,
}

impl Body for Worker {
    const NAME: &CStr = c"libuv-worker";

    fn run(&self) {
        self.pool.work(&self.tally);
    }
}

#[derive(Debug)]
struct State {
    queues: Queues,
    /// Workers that wait to be woken, and those that have been and have not come yet.
    sleeping: u32,
    woken: u32,
    stopping: bool,
    queued_max: usize,
    /// The loops that have ever asked for something and are still there.
    loops: Slab<Option<Arc<Mailbox>>>,
    workers: Vec<Thread<Worker>>,
    /// What has been cancelled, and what workers that are no more have done.
    past: PoolMetrics,
}

impl State {
    /// The worker's hold on the loop that a request is from, or `None` if it has that.
    fn serve(&self, serving: Option<&Serving>, lp: Key) -> Option<Serving> {
        if serving.is_some_and(|serving| serving.lp == lp) {
            return None;
        }
        let mailbox = self.loops[lp.index].clone();
        let mailbox = mailbox.expect("a loop takes its requests along when it goes");
        Some(Serving { lp, mailbox })
    }

    fn metrics(&self) -> PoolMetrics {
        let mut metrics = self.past;
        for worker in &self.workers {
            worker.body().tally.add_to(&mut metrics);
        }
        metrics.threads = self.workers.len() as u32;
        metrics.queued = self.queues.len() as u32;
        metrics.queued_max = self.queued_max as u32;
        metrics.submitted = self.queues.submitted;
        let taken = metrics.submitted - metrics.cancelled - u64::from(metrics.queued);
        metrics.running = taken.saturating_sub(metrics.completed) as u32;
        metrics
    }
}

#[derive(Debug)]
pub(crate) struct Pool {
    state: Mutex<State>,
    wake: Condvar,
    signs: Signs,
}

/// What is looked at without the lock.
#[derive(Default, Debug)]
#[repr(align(128))]
struct Signs {
    /// Requests that wait, as of the last time that somebody had the lock.
    queued: AtomicUsize,
    /// Whether a worker is awake without work, for a moment, in case that more comes. It looks
    /// at the queues, with the lock, after it has said that it no longer is.
    lingering: AtomicBool,
    /// Workers that have something to do.
    busy: AtomicU32,
    /// Requests that workers have taken up so far, written with the lock.
    taken: AtomicU64,
    /// How long fast requests have taken lately, up to a limit.
    running_ns: AtomicU64,
}

/// As long as it takes to wake a worker.
const WAKE_UP_NS: u64 = 20_000;

impl Signs {
    /// The longest that a request is taken to last: a few short ones make up for it.
    const MAX_RUNNING_NS: u64 = 4 * WAKE_UP_NS;

    /// Learns from a fast request that took so long. Where many do so at once some may get lost.
    fn learn(&self, ran_ns: u64) {
        let known_ns = self.running_ns.load(Relaxed);
        let ran_ns = ran_ns.min(Signs::MAX_RUNNING_NS);
        self.running_ns.store((3 * known_ns + ran_ns) / 4, Relaxed);
    }

    /// Whether fast requests take longer than it does to wake somebody for them.
    fn are_requests_long(&self) -> bool {
        self.running_ns.load(Relaxed) >= WAKE_UP_NS
    }
}

static POOL: PerProcess<Pool> = PerProcess::new();

impl Pool {
    fn new() -> Pool {
        Pool {
            state: Mutex::new(State {
                queues: Queues::default(),
                sleeping: 0,
                woken: 0,
                stopping: false,
                queued_max: 0,
                loops: Slab::new(),
                workers: Vec::new(),
                past: PoolMetrics::default(),
            }),
            wake: Condvar::new(),
            signs: Signs::default(),
        }
    }

    /// The pool of this process, made if there is none yet.
    #[inline]
    pub(crate) fn obtain() -> Result<&'static Pool, Errno> {
        POOL.get_or_make(Pool::new)
    }

    /// The pool of this process, if there is one.
    #[inline]
    pub(crate) fn get() -> Option<&'static Pool> {
        POOL.get()
    }

    /// What decides whether to spin for the pool.
    #[inline]
    pub(crate) fn workers(&self) -> Workers<'_> {
        Workers {
            busy: self.signs.busy.load(Relaxed),
            taken: &self.signs.taken,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing of ours panics half-way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The lock for a worker, who is not in a hurry: where the lock is wanted by many, each
    /// that has it does more with it if the others stand back.
    fn lock_politely(&self) -> MutexGuard<'_, State> {
        for pauses in [16, 64, 256] {
            match self.state.try_lock() {
                Ok(state) => return state,
                Err(TryLockError::Poisoned(poisoned)) => return poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => {}
            }
            pause(pauses);
        }
        self.lock()
    }

    /// Starts the threads: as many as were asked for, or as many as there can be.
    #[cold]
    fn start(&'static self, state: &mut State) -> Result<(), Errno> {
        let setting = std::env::var_os("UV_THREADPOOL_SIZE");
        let setting = setting.as_ref().map(|setting| setting.to_string_lossy());
        self.start_workers(state, threads_wanted(setting.as_deref()))
    }

    fn start_workers(&'static self, state: &mut State, wanted: u32) -> Result<(), Errno> {
        state.workers.try_reserve_exact(wanted as usize)?;
        // A worker that found this out could be interrupted by a fork half-way.
        patience::processors();
        for _ in 0..wanted {
            let worker = Arc::try_new(Worker {
                pool: self,
                tally: Tally::default(),
            });
            match worker.and_then(|worker| Thread::start(THREAD_STACK, worker)) {
                Ok(worker) => state.workers.push(worker),
                Err(error) if state.workers.is_empty() => return Err(error),
                Err(_) => break,
            }
        }
        self.signs.busy.store(state.workers.len() as u32, Relaxed);
        state.queues.slow_limit = state.workers.len().div_ceil(2);
        Ok(())
    }

    /// Gives a loop its place.
    pub(crate) fn enrol(&self, mailbox: &Arc<Mailbox>) -> Result<Key, Errno> {
        self.lock().loops.insert(Some(mailbox.clone()))
    }

    /// Queues a request, which then has exactly one completion, or gives it back.
    pub(crate) fn submit(&'static self, task: Task) -> Result<Number, (Errno, Task)> {
        let mut guard = self.lock();
        let state = &mut *guard;
        if state.workers.is_empty()
            && let Err(error) = self.start(state)
        {
            return Err((error, task));
        }
        let number = state.queues.push(task)?;
        let queued = state.queues.len();
        if queued > state.queued_max {
            state.queued_max = queued;
        }
        self.signs.queued.store(queued, SeqCst);
        self.unlock(guard);
        Ok(number)
    }

    /// Gives the lock back, and wakes a worker if one sleeps and should not.
    fn unlock(&self, mut state: MutexGuard<'_, State>) {
        let lookers = state.woken as usize + usize::from(self.signs.lingering.load(SeqCst));
        let startable = state.queues.startable();
        let wanted = match self.signs.are_requests_long() {
            true => startable,
            false => startable.min(state.queues.startable_slow().max(1)),
        };
        let wakes = state.sleeping > 0 && lookers < wanted;
        if wakes {
            state.sleeping -= 1;
            state.woken += 1;
        }
        drop(state);
        if wakes {
            self.wake.notify_one();
        }
    }

    /// Takes a request of the given loop out of its queue; `None` if it is not queued.
    pub(crate) fn cancel(&self, number: Number, lp: Key) -> Option<Task> {
        let mut state = self.lock();
        let task = state.queues.cancel(number, lp)?;
        state.past.cancelled += 1;
        Some(task)
    }

    /// The life of a worker.
    fn work(&'static self, tally: &Tally) {
        let mut serving: Option<Serving> = None;
        let mut patience = Patience::new(Spinning::Adaptive);
        let mut state = self.lock();
        loop {
            let Some(task) = state.queues.take() else {
                if state.stopping {
                    return;
                }
                state = self.rest(state, &mut serving);
                continue;
            };
            self.signs.queued.store(state.queues.len(), Relaxed);
            let taken = self.signs.taken.load(Relaxed) + 1;
            self.signs.taken.store(taken, Relaxed);
            let other = state.serve(serving.as_ref(), task.lp);
            self.unlock(state);
            if other.is_some() {
                serving = other;
            }
            let (is_slow, may_linger) = (task.is_slow(), task.may_linger);
            let times_ns = run(task, serving.as_ref().expect("it has just been set"));
            tally.count(times_ns);
            if is_slow {
                state = self.lock();
                state.queues.slow_is_over();
            } else {
                if let Some((_, ran_ns)) = times_ns {
                    self.signs.learn(ran_ns);
                }
                if may_linger {
                    self.linger(&mut patience);
                }
                state = self.lock_politely();
            }
        }
    }

    /// Spins for the next request if there is none, it is likely to pay, and no other worker spins. The
    /// lock is not held meanwhile.
    fn linger(&self, patience: &mut Patience) {
        let Signs {
            queued, lingering, ..
        } = &self.signs;
        if queued.load(Relaxed) != 0 || lingering.load(Relaxed) {
            return;
        }
        let Some(spin) = patience.plan(Awaits::Pool(self.workers())) else {
            return;
        };
        if !lingering.swap(true, SeqCst) {
            let spun = spin.run(&mut || queued.load(Relaxed) != 0);
            patience.learn(&spun, spun.is_ready);
            lingering.store(false, SeqCst);
        }
    }

    /// A worker's sleep, when there is nothing that it could do.
    fn rest<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        serving: &mut Option<Serving>,
    ) -> MutexGuard<'a, State> {
        if serving.is_some() {
            // The last to hold on to a mailbox closes its descriptor.
            drop(state);
            *serving = None;
            state = self.lock();
            if state.queues.startable() > 0 || state.stopping {
                return state;
            }
        }
        self.signs.busy.fetch_sub(1, Relaxed);
        state.sleeping += 1;
        while state.woken == 0 {
            let woken = self.wake.wait(state);
            state = woken.unwrap_or_else(PoisonError::into_inner);
        }
        state.woken -= 1;
        self.signs.busy.fetch_add(1, Relaxed);
        state
    }

    /// Takes a loop's place back, and its requests, of which there are at most so many, out of the
    /// queues: nobody is interested in them any more.
    fn forget(&self, lp: Key, requests: u32) {
        // What closures own is dropped without the lock, since it may do anything; without memory
        // for that, under it.
        let mut forgotten = Vec::new();
        let _ = forgotten.try_reserve_exact(requests as usize);
        let mut state = self.lock();
        if requests > 0 {
            let before = state.queues.len();
            state.queues.cancel_all(lp, &mut forgotten);
            state.past.cancelled += (before - state.queues.len()) as u64;
        }
        let mailbox = state.loops[lp.index].take();
        state.loops.remove(lp.index);
        drop(state);
        drop((mailbox, forgotten));
    }

    /// Lets the workers finish what is queued, and ends them. The next request would start
    /// new ones.
    fn shut_down(&self) {
        let mut state = self.lock();
        let workers = std::mem::take(&mut state.workers);
        if workers.is_empty() {
            return;
        }
        state.stopping = true;
        state.woken += state.sleeping;
        state.sleeping = 0;
        drop(state);
        self.wake.notify_all();
        let mut past = PoolMetrics::default();
        for worker in workers {
            // A worker that ends the process cannot wait for itself, and does not.
            worker.join().tally.add_to(&mut past);
        }
        let mut state = self.lock();
        state.stopping = false;
        state.past.completed += past.completed;
        state.past.measured += past.measured;
        state.past.waiting_ns += past.waiting_ns;
        state.past.running_ns += past.running_ns;
    }
}

/// Does the work and completes the request. How long it has waited and run, if that is to be
/// measured.
fn run(task: Task, serving: &Serving) -> Option<(u64, u64)> {
    let is_measured = task.queued_ns != 0;
    let started_ns = match is_measured {
        true => clock::monotonic_ns(),
        false => 0,
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

/// Takes a loop's place in the pool of this process back; see [`Pool::forget`].
#[cold]
pub(crate) fn forget(lp: Key, requests: u32) {
    if let Some(pool) = POOL.get() {
        pool.forget(lp, requests);
    }
}

/// What the pool of this process has done so far.
pub fn pool_metrics() -> PoolMetrics {
    let pool = POOL.get();
    pool.map_or(PoolMetrics::default(), |pool| pool.lock().metrics())
}

/// Ends the threads of this process's pool, if it has any, when they have done what is
/// queued.
pub fn shut_down_pool() {
    if let Some(pool) = POOL.get() {
        pool.shut_down();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use blacklight_sys::job::Job;

    /// How many of four sleeping workers are woken for three requests that come one by one.
    fn woken_for_three(pool: &Pool, kind: WorkKind) -> u32 {
        pool.lock().sleeping = 4;
        pool.lock().queues.slow_limit = 2;
        for cell in 0..3 {
            let mut state = pool.lock();
            let task = Task {
                job: Job::new(|| ()),
                kind,
                lp: Key::from_bits(0),
                cell,
                queued_ns: 0,
                may_linger: true,
            };
            state.queues.push(task).unwrap();
            pool.unlock(state);
        }
        let state = pool.lock();
        assert_eq!(state.sleeping + state.woken, 4);
        state.woken
    }

    #[test]
    fn long_requests_have_a_worker_each_on_its_way() {
        assert_eq!(woken_for_three(&Pool::new(), WorkKind::FastIo), 1);
        let pool = Pool::new();
        pool.signs.learn(u64::MAX);
        assert_eq!(woken_for_three(&pool, WorkKind::FastIo), 3);
        let pool = Pool::new();
        pool.signs.learn(u64::MAX);
        pool.signs.lingering.store(true, SeqCst);
        assert_eq!(woken_for_three(&pool, WorkKind::Cpu), 2, "one is awake");
        let woken = woken_for_three(&Pool::new(), WorkKind::SlowIo);
        assert_eq!(woken, 2, "as many slow ones as may run");
    }

    #[test]
    fn requests_are_long_until_some_are_short_again() {
        let signs = Signs::default();
        assert!(!signs.are_requests_long(), "nothing is known yet");
        for _ in 0..100 {
            signs.learn(u64::MAX);
        }
        for _ in 0..4 {
            signs.learn(1_000);
            assert!(signs.are_requests_long());
        }
        signs.learn(1_000);
        assert!(!signs.are_requests_long());
        for _ in 0..100 {
            signs.learn(WAKE_UP_NS - 1);
        }
        assert!(!signs.are_requests_long());
    }

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
