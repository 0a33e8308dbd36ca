//! The process's thread pool. It owns the worker threads and the queues of requests that would
//! block a loop.
//!
//! One pool serves all loops of the process. The first request starts it. A child made by `fork`
//! has none of the threads, so it starts a pool of its own; requests that its parent had queued
//! stay the parent's.
//!
//! The invariants:
//!
//! - One lock guards the queues and the counts of sleeping workers. No job runs and no completion
//!   is delivered under the lock. State that many threads write under the lock is kept small:
//!   each cache line that moves between processors costs as much as the lock.
//! - The thread that takes a request out of its queue (see `queue.rs`), to run or to cancel it,
//!   owns the request and completes it: each request has exactly one completion.
//! - Requests of all loops run in the order of their submission, except that slow requests (those
//!   that wait for the network) never occupy more than half of the threads, rounded up, so that
//!   they cannot block fast requests.
//! - Waking a worker is the expensive part of a submission. A thread that gives back the lock wakes
//!   a worker only if one sleeps, a request could start, and no worker is already awake for it. A
//!   worker that takes a request wakes the next on the same conditions. So a burst of requests
//!   costs one wake-up for each worker that it needs, not one for each request. For slow requests,
//!   and where fast requests have lately taken longer than a wake-up, one worker is woken for each
//!   request that could start: woken one after the other, the workers would come too late.
//! - A request names its loop by the loop's key in the pool's table. A worker owns a share of the
//!   mailbox of the loop that it works for, and drops it before it sleeps.

#[cfg(all(test, loom))]
mod models;
mod queue;
mod running;

use crate::mailbox::Mailbox;
use crate::patience::{self, Awaits, Patience, Spinning, Workers};
use crate::recorder;
use crate::slab::{Key, Slab};
use crate::sync::{
    AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Body, Condvar, Mutex, MutexGuard, Thread, pause,
};
use blacklight_record::{Record, Request};
use blacklight_sys::fallible::Arc;
use blacklight_sys::per_process::PerProcess;
use blacklight_sys::{Errno, clock};
use queue::Queues;
pub(crate) use queue::{Name, Number, Task};
use running::Running;
use std::ffi::CStr;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::{PoisonError, TryLockError};

/// The kind of a request, by how it spends its time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WorkKind {
    /// Computing.
    Cpu,
    /// Files: blocks, but not for long.
    FastIo,
    /// The network: may block for any length of time.
    SlowIo,
}

/// The pool's counters, taken at one moment.
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
    /// Completed requests that were measured. Reading the clock costs as much as the rest of a
    /// submission, so only some of the fast requests are measured.
    pub measured: u64,
    /// The total time that measured requests have waited for a thread.
    pub waiting_ns: u64,
    /// The total time that measured requests have run.
    pub running_ns: u64,
}

/// Whether a loop's request with this number is measured: all slow requests, and one in eight of
/// the others. It is not every eighth, since programs submit in regular patterns.
#[inline]
pub(crate) fn is_measured(kind: WorkKind, number: u32) -> bool {
    kind == WorkKind::SlowIo || number.wrapping_mul(0x9E37_79B9) >> 29 == 0
}

/// The stack of a worker, as libuv documents it.
const THREAD_STACK: usize = 8 << 20;

const DEFAULT_THREADS: u32 = 4;
const MAX_THREADS: u32 = 1024;

/// How many threads `UV_THREADPOOL_SIZE` asks for. Text that is no number counts as zero, and
/// zero as one; negative and larger numbers count as [`MAX_THREADS`].
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

/// The counters of one worker. Only that worker writes them, and no other data shares their cache
/// lines.
#[derive(Default, Debug)]
#[repr(align(128))]
struct Counters {
    completed: AtomicU64,
    measured: AtomicU64,
    waiting_ns: AtomicU64,
    running_ns: AtomicU64,
}

impl Counters {
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

/// A thread of the pool.
#[derive(Debug)]
struct Worker {
    pool: &'static Pool,
    counters: Counters,
    running: Running,
}

impl Body for Worker {
    const NAME: &CStr = c"libuv-worker";

    fn run(&self) {
        self.running.starts();
        self.pool.work(self);
    }
}

#[derive(Debug)]
struct State {
    queues: Queues,
    /// Workers that sleep, and workers that have been woken and do not run yet.
    sleeping: u32,
    woken: u32,
    stopping: bool,
    queued_max: usize,
    /// The loops that have submitted a request and still exist.
    loops: Slab<Option<Arc<Mailbox>>>,
    workers: Vec<Thread<Worker>>,
    /// Cancelled requests, and the counters of workers that have ended.
    past: PoolMetrics,
}

impl State {
    /// The loop of a request, or `None` if the worker is serving that loop already.
    fn serve(&self, serving: Option<&Serving>, lp: Key) -> Option<Serving> {
        if serving.is_some_and(|serving| serving.lp == lp) {
            return None;
        }
        let mailbox = self.loops[lp.index].clone();
        let mailbox = mailbox.expect("a loop that is dropped takes its requests out of the queues");
        Some(Serving { lp, mailbox })
    }

    fn metrics(&self) -> PoolMetrics {
        let mut metrics = self.past;
        for worker in &self.workers {
            worker.body().counters.add_to(&mut metrics);
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
    hints: Hints,
}

/// State that threads read without the lock.
#[derive(Default, Debug)]
#[repr(align(128))]
struct Hints {
    /// Queued requests, as of the last time that a thread held the lock.
    queued: AtomicUsize,
    /// Whether a worker spins for the next request. It checks the queues, with the lock, after it
    /// has cleared this.
    spinning: AtomicBool,
    /// Workers that do not sleep.
    busy: AtomicU32,
    /// Requests that workers have taken so far, written with the lock.
    taken: AtomicU64,
    /// A moving average of the time that fast requests take, each up to a limit.
    running_ns: AtomicU64,
}

/// How long it takes to wake a worker.
const WAKE_UP_NS: u64 = 20_000;

impl Hints {
    /// Longer requests count as this long, so that a few short ones outweigh a long one.
    const MAX_RUNNING_NS: u64 = 4 * WAKE_UP_NS;

    /// Adds a fast request to the average. Concurrent updates may get lost.
    fn learn(&self, ran_ns: u64) {
        let known_ns = self.running_ns.load(Relaxed);
        let ran_ns = ran_ns.min(Hints::MAX_RUNNING_NS);
        self.running_ns.store((3 * known_ns + ran_ns) / 4, Relaxed);
    }

    /// Whether fast requests take longer than waking a worker.
    fn are_requests_long(&self) -> bool {
        self.running_ns.load(Relaxed) >= WAKE_UP_NS
    }
}

static POOL: PerProcess<Pool> = PerProcess::new();

/// How many threads the program has chosen, or zero. Written under the lock of the pool that has
/// not started.
static CHOSEN: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);

/// Chooses how many threads the pool starts, in place of `UV_THREADPOOL_SIZE`. `EINVAL` unless the
/// number is from 1 to 1024; `EBUSY` if the pool has started with another number.
pub fn set_pool_threads(threads: u32) -> Result<(), Errno> {
    if !(1..=MAX_THREADS).contains(&threads) {
        return Err(Errno::EINVAL);
    }
    let state = Pool::obtain()?.lock();
    match state.workers.len() {
        0 => CHOSEN.store(threads, Relaxed),
        started if started == threads as usize => {}
        _ => return Err(Errno::EBUSY),
    }
    Ok(())
}

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
            hints: Hints::default(),
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

    /// The state of the workers, by which a patience decides whether to spin for the pool.
    #[inline]
    pub(crate) fn workers(&self) -> Workers<'_> {
        Workers {
            busy: self.hints.busy.load(Relaxed),
            taken: &self.hints.taken,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No code panics half-way through a change of the state.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the lock for a worker, backing off while the lock is contended: threads get more done
    /// in total if workers leave the lock to others.
    fn lock_with_backoff(&self) -> MutexGuard<'_, State> {
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

    /// Starts as many threads as the program or the environment asks for, or as many as the system
    /// permits.
    #[cold]
    fn start(&'static self, state: &mut State) -> Result<(), Errno> {
        let chosen = CHOSEN.load(Relaxed);
        if chosen != 0 {
            return self.start_workers(state, chosen);
        }
        let setting = std::env::var_os("UV_THREADPOOL_SIZE");
        let setting = setting.as_ref().map(|setting| setting.to_string_lossy());
        self.start_workers(state, threads_wanted(setting.as_deref()))
    }

    fn start_workers(&'static self, state: &mut State, wanted: u32) -> Result<(), Errno> {
        state.workers.try_reserve_exact(wanted as usize)?;
        // Cached here, since a fork could interrupt a worker that initializes the cache.
        patience::processors();
        for _ in 0..wanted {
            let worker = Arc::try_new(Worker {
                pool: self,
                counters: Counters::default(),
                running: Running::default(),
            });
            match worker.and_then(|worker| Thread::start(THREAD_STACK, worker)) {
                Ok(worker) => state.workers.push(worker),
                Err(error) if state.workers.is_empty() => return Err(error),
                Err(_) => break,
            }
        }
        self.hints.busy.store(state.workers.len() as u32, Relaxed);
        state.queues.slow_limit = state.workers.len().div_ceil(2);
        if let Some(record) = recorder::recording() {
            publish_threads(record, state);
        }
        Ok(())
    }

    /// Adds a loop to the pool's table.
    pub(crate) fn add_loop(&self, mailbox: &Arc<Mailbox>) -> Result<Key, Errno> {
        self.lock().loops.insert(Some(mailbox.clone()))
    }

    /// Queues a request, which then has exactly one completion. On error the request comes back.
    pub(crate) fn submit(&'static self, mut task: Task) -> Result<Number, (Errno, Task)> {
        let mut guard = self.lock();
        let state = &mut *guard;
        if state.workers.is_empty()
            && let Err(error) = self.start(state)
        {
            return Err((error, task));
        }
        let recorded = recorder::recording().map(|record| (record, record_task(&mut task)));
        let number = state.queues.push(task)?;
        if let Some((record, request)) = recorded {
            blacklight_record::pool_queued(record, request, state.queues.oldest());
        }
        let queued = state.queues.len();
        if queued > state.queued_max {
            state.queued_max = queued;
        }
        self.hints.queued.store(queued, SeqCst);
        self.unlock_and_wake(guard);
        Ok(number)
    }

    /// Tells a record that begins of what it has missed: the threads, and the requests that wait or
    /// run. Calls `tell` for each such request of the given loop. Where nobody knows since when a
    /// request waits or runs, it is since now.
    #[cold]
    pub(crate) fn adopt(
        &self,
        record: &'static Record,
        lp: Option<Key>,
        now_ns: u64,
        mut tell: impl FnMut(Request),
    ) {
        let mut guard = self.lock();
        let state = &mut *guard;
        if state.workers.is_empty() {
            return;
        }
        publish_threads(record, state);
        for task in state.queues.iter_mut() {
            if !task.is_recorded {
                blacklight_record::pool_queued(record, task.record(now_ns), None);
            }
            if Some(task.lp) == lp {
                tell(task.request());
            }
        }
        blacklight_record::pool_oldest(record, state.queues.oldest());
        for worker in &state.workers {
            let running = worker.body().running.adopt(record, now_ns);
            if let Some((of, request)) = running
                && Some(of) == lp
            {
                tell(request);
            }
        }
    }

    /// Gives the lock back, and wakes a worker on the conditions that the module states.
    fn unlock_and_wake(&self, mut state: MutexGuard<'_, State>) {
        let awake = state.woken as usize + usize::from(self.hints.spinning.load(SeqCst));
        let startable = state.queues.startable();
        let wanted = match self.hints.are_requests_long() {
            true => startable,
            false => startable.min(state.queues.startable_slow().max(1)),
        };
        let wakes = state.sleeping > 0 && awake < wanted;
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
        if let (Some(request), Some(record)) = (task.recorded(), recorder::recording()) {
            blacklight_record::pool_taken(record, request, state.queues.oldest());
        }
        Some(task)
    }

    /// The main function of a worker.
    fn work(&'static self, worker: &Worker) {
        let mut serving: Option<Serving> = None;
        let mut patience = Patience::new(Spinning::Adaptive);
        let mut state = self.lock();
        loop {
            let Some(task) = state.queues.take() else {
                if state.stopping {
                    return;
                }
                state = self.sleep(state, &mut serving);
                continue;
            };
            if let (Some(request), Some(record)) = (task.recorded(), recorder::recording()) {
                blacklight_record::pool_taken(record, request, state.queues.oldest());
            }
            worker.running.begins(&task);
            self.hints.queued.store(state.queues.len(), Relaxed);
            let taken = self.hints.taken.load(Relaxed) + 1;
            self.hints.taken.store(taken, Relaxed);
            let other = state.serve(serving.as_ref(), task.lp);
            self.unlock_and_wake(state);
            if other.is_some() {
                serving = other;
            }
            let (is_slow, may_spin) = (task.is_slow(), task.may_spin);
            let serving = serving.as_ref().expect("it has just been set");
            let times_ns = run(task, serving, &worker.running);
            worker.counters.count(times_ns);
            if is_slow {
                state = self.lock();
                state.queues.slow_is_over();
            } else {
                if let Some((_, ran_ns)) = times_ns {
                    self.hints.learn(ran_ns);
                }
                if may_spin {
                    self.spin(&mut patience);
                }
                state = self.lock_with_backoff();
            }
        }
    }

    /// Spins for the next request, without the lock, if none is queued, no other worker spins, and
    /// the patience expects it to pay.
    fn spin(&self, patience: &mut Patience) {
        let Hints {
            queued, spinning, ..
        } = &self.hints;
        if queued.load(Relaxed) != 0 || spinning.load(Relaxed) {
            return;
        }
        let Some(spin) = patience.plan(Awaits::Pool(self.workers())) else {
            return;
        };
        if !spinning.swap(true, SeqCst) {
            let spun = spin.run(&mut || queued.load(Relaxed) != 0);
            patience.learn(&spun, spun.is_ready);
            spinning.store(false, SeqCst);
        }
    }

    /// Sleeps until another thread wakes this worker, or returns at once if a request has come.
    fn sleep<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        serving: &mut Option<Serving>,
    ) -> MutexGuard<'a, State> {
        if serving.is_some() {
            // Without the lock, since dropping the last share of a mailbox closes its descriptor.
            drop(state);
            *serving = None;
            state = self.lock();
            if state.queues.startable() > 0 || state.stopping {
                return state;
            }
        }
        self.hints.busy.fetch_sub(1, Relaxed);
        state.sleeping += 1;
        while state.woken == 0 {
            let woken = self.wake.wait(state);
            state = woken.unwrap_or_else(PoisonError::into_inner);
        }
        state.woken -= 1;
        self.hints.busy.fetch_add(1, Relaxed);
        state
    }

    /// Removes a loop that is being dropped, and takes its requests out of the queues. There are at
    /// most `requests` of them.
    fn remove_loop(&self, lp: Key, requests: u32) {
        // Jobs are dropped without the lock, since dropping a closure may run any code. Jobs that
        // this has no memory for are dropped under the lock.
        let mut removed = Vec::new();
        let _ = removed.try_reserve_exact(requests as usize);
        let mut state = self.lock();
        if requests > 0 {
            let before = state.queues.len();
            state.queues.cancel_all(lp, &mut removed);
            self.record_removed(&state, &removed);
            state.past.cancelled += (before - state.queues.len()) as u64;
        }
        let mailbox = state.loops[lp.index].take();
        state.loops.remove(lp.index);
        drop(state);
        drop((mailbox, removed));
    }

    /// Tells the record of requests that were taken out of the queues.
    fn record_removed(&self, state: &State, removed: &[Task]) {
        let Some(record) = recorder::recording() else {
            return;
        };
        for request in removed.iter().filter_map(Task::recorded) {
            blacklight_record::pool_taken(record, request, state.queues.oldest());
        }
    }

    /// Ends the workers after they have drained the queues. The next request starts new workers.
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
            // `join` returns at once in a worker that ends the process and would join itself.
            worker.join().counters.add_to(&mut past);
        }
        let mut state = self.lock();
        state.stopping = false;
        state.past.completed += past.completed;
        state.past.measured += past.measured;
        state.past.waiting_ns += past.waiting_ns;
        state.past.running_ns += past.running_ns;
    }
}

/// Has a request that is submitted recorded.
#[cold]
#[inline(never)]
fn record_task(task: &mut Task) -> Request {
    // One that is not measured was about to be submitted when the record began.
    let now_ns = match task.queued_ns {
        0 => clock::monotonic_ns(),
        queued_ns => queued_ns,
    };
    task.record(now_ns)
}

fn publish_threads(record: &Record, state: &State) {
    let (threads, slow_limit) = (state.workers.len(), state.queues.slow_limit);
    record.pool_threads(threads as u32, slow_limit as u32);
}

/// Runs the job and completes the request. Returns how long the request has waited and run, if it
/// is measured.
fn run(task: Task, serving: &Serving, running: &Running) -> Option<(u64, u64)> {
    let is_measured = task.queued_ns != 0;
    let started_ns = match is_measured {
        true => clock::monotonic_ns(),
        false => 0,
    };
    let recorded = task.recorded();
    let writer = recorded.and_then(|_| running.writer(recorder::recording()?));
    let recorded = recorded.zip(writer);
    if let Some((request, writer)) = recorded {
        writer.begins(request, started_ns);
    }
    // The panic hook has reported a panic already, and the request completes like any other.
    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| task.job.run()));
    let times_ns = is_measured.then(|| {
        let ended_ns = clock::monotonic_ns();
        // A job that has forked and returns in the child too does not write to its parent's record.
        if let Some((request, writer)) = recorded
            && recorder::recording().is_some()
        {
            writer.ends(request, started_ns, ended_ns);
        }
        let ran_ns = ended_ns.saturating_sub(started_ns);
        (started_ns.saturating_sub(task.queued_ns), ran_ns)
    });
    running.ends(recorded.is_some());
    serving.mailbox.complete(task.cell);
    times_ns
}

/// Removes a loop from the pool of this process; see [`Pool::remove_loop`].
#[cold]
pub(crate) fn remove_loop(lp: Key, requests: u32) {
    if let Some(pool) = POOL.get() {
        pool.remove_loop(lp, requests);
    }
}

/// The counters of this process's pool.
pub fn pool_metrics() -> PoolMetrics {
    let pool = POOL.get();
    pool.map_or(PoolMetrics::default(), |pool| pool.lock().metrics())
}

/// Ends the threads of this process's pool, if it has any, after they have drained the queues.
pub fn shut_down_pool() {
    if let Some(pool) = POOL.get() {
        pool.shut_down();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use blacklight_sys::job::Job;

    /// How many of four sleeping workers three requests wake that come one by one.
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
                may_spin: true,
                name: Name::default(),
                is_recorded: false,
            };
            state.queues.push(task).unwrap();
            pool.unlock_and_wake(state);
        }
        let state = pool.lock();
        assert_eq!(state.sleeping + state.woken, 4);
        state.woken
    }

    #[test]
    fn each_long_request_wakes_a_worker() {
        assert_eq!(woken_for_three(&Pool::new(), WorkKind::FastIo), 1);
        let pool = Pool::new();
        pool.hints.learn(u64::MAX);
        assert_eq!(woken_for_three(&pool, WorkKind::FastIo), 3);
        let pool = Pool::new();
        pool.hints.learn(u64::MAX);
        pool.hints.spinning.store(true, SeqCst);
        assert_eq!(woken_for_three(&pool, WorkKind::Cpu), 2, "one spins");
        let woken = woken_for_three(&Pool::new(), WorkKind::SlowIo);
        assert_eq!(woken, 2, "one for each slow request that may run");
    }

    #[test]
    fn requests_are_long_until_some_are_short_again() {
        let hints = Hints::default();
        assert!(!hints.are_requests_long(), "nothing is known yet");
        for _ in 0..100 {
            hints.learn(u64::MAX);
        }
        for _ in 0..4 {
            hints.learn(1_000);
            assert!(hints.are_requests_long());
        }
        hints.learn(1_000);
        assert!(!hints.are_requests_long());
        for _ in 0..100 {
            hints.learn(WAKE_UP_NS - 1);
        }
        assert!(!hints.are_requests_long());
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
