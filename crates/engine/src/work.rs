//! Requests of the loop to the thread pool.
//!
//! A request in progress owns a cell of the loop's mailbox (see `wakeup.rs`), through which its
//! completion comes back: workers push cells onto a stack without a lock, and wake the loop if it
//! is asleep. The loop takes the whole stack at once and delivers the completions in the order in
//! which they were pushed.
//!
//! A request keeps its loop alive from its submission until its completion is delivered. The cell
//! is free before the callback runs, so that the callback may submit again.

use crate::engine::Engine;
use crate::event::{Event, Token};
use crate::pool::{self, Number, Pool, Task, WorkKind};
use crate::slab::Key;
use crate::wakeup::Receiver;
use blacklight_sys::job::Job;
use blacklight_sys::{Errno, clock, per_process};

/// Names one request for as long as it is in progress.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RequestKey(Number);

impl RequestKey {
    /// The key as a number, for a front end that has to keep it in foreign memory.
    pub const fn to_bits(self) -> u64 {
        self.0.to_bits()
    }

    /// The key that [`RequestKey::to_bits`] made into `bits`. Any number is allowed: one
    /// that was never a key names nothing.
    pub const fn from_bits(bits: u64) -> RequestKey {
        RequestKey(Number::from_bits(bits))
    }
}

impl Engine {
    /// Submits a job to the thread pool. [`Event::Work`](crate::Event::Work) follows when
    /// it is done, and the loop stays alive until then.
    ///
    /// A job that panics counts as done. The token must not be `u64::MAX`.
    ///
    /// On error the job comes back. The caller drops it when nothing of the engine is borrowed,
    /// since dropping a closure may use the loop.
    pub fn work_submit(
        &mut self,
        token: Token,
        kind: WorkKind,
        job: Job,
    ) -> Result<RequestKey, (Errno, Job)> {
        let queued_ns = match pool::is_measured(kind, self.driver.sources.receiver.submitted) {
            true => clock::monotonic_ns(),
            false => 0,
        };
        let (pool, lp, cell) = match self.driver.sources.receiver.prepare_request(token) {
            Ok(prepared) => prepared,
            Err(error) => return Err((error, job)),
        };
        let task = Task {
            job,
            kind,
            lp,
            cell,
            queued_ns,
            may_spin: self.driver.may_spin(),
        };
        match pool.submit(task) {
            Ok(key) => {
                self.requests.begin();
                Ok(RequestKey(key))
            }
            Err((error, task)) => {
                self.driver.sources.receiver.free_request(cell);
                Err((error, task.job))
            }
        }
    }

    /// Cancels a request that no thread has taken yet: it completes with `ECANCELED` on a later
    /// turn. `EBUSY` for a request that runs or has run, which completes as usual.
    ///
    /// Drops the job. Where dropping it may run user code, use [`Engine::work_take_back`].
    pub fn work_cancel(&mut self, key: RequestKey) -> Result<(), Errno> {
        self.work_take_back(key).map(drop)
    }

    /// As [`Engine::work_cancel`], but returns the job. The caller drops it when nothing of the
    /// engine is borrowed, since dropping a closure may use the loop.
    pub fn work_take_back(&mut self, key: RequestKey) -> Result<Job, Errno> {
        let place = self.driver.sources.receiver.place().ok_or(Errno::EBUSY)?;
        let task = Pool::get().and_then(|pool| pool.cancel(key.0, place));
        let task = task.ok_or(Errno::EBUSY)?;
        self.driver.sources.receiver.cancel_request(task.cell);
        Ok(task.job)
    }

    /// Delivers the next completed request.
    #[inline]
    pub(crate) fn next_work(&mut self) -> Option<Event> {
        let (token, cancelled) = self.driver.sources.receiver.next_request()?;
        self.requests.end();
        Some(match cancelled {
            true => Event::Work(token, Err(Errno::ECANCELED)),
            false => Event::Work(token, Ok(())),
        })
    }
}

impl Receiver {
    /// The loop's key in the pool's table, unless that is the pool of another process.
    #[inline]
    fn place(&self) -> Option<Key> {
        let (process, place) = self.place?;
        (process == per_process::generation()).then_some(place)
    }

    /// The pool, the loop's key in its table, and a cell for a new request.
    #[inline]
    fn prepare_request(&mut self, token: Token) -> Result<(&'static Pool, Key, u32), Errno> {
        let pool = Pool::obtain()?;
        let lp = match self.place() {
            Some(place) => place,
            None => self.join(pool)?,
        };
        Ok((pool, lp, self.allocate_request(token)?))
    }

    #[cold]
    fn join(&mut self, pool: &Pool) -> Result<Key, Errno> {
        let place = pool.add_loop(&self.mailbox)?;
        self.place = Some((per_process::generation(), place));
        Ok(place)
    }
}

/// A loop that is dropped with requests in progress takes back those that have not begun. The
/// completions of the others are discarded.
impl Drop for Receiver {
    fn drop(&mut self) {
        if let Some(place) = self.place() {
            pool::remove_loop(place, self.requests);
        }
    }
}
