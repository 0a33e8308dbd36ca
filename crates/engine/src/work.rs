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
use crate::pool::{self, Name, Number, Pool, Task, WorkKind};
use crate::recorder;
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
    #[inline]
    pub fn work_submit(
        &mut self,
        token: Token,
        kind: WorkKind,
        job: Job,
    ) -> Result<RequestKey, (Errno, Job)> {
        // The record's name for a request that the front end gives no name of its own.
        let label = match kind {
            WorkKind::Cpu => recorder::WORK,
            WorkKind::FastIo => recorder::FILES,
            WorkKind::SlowIo => recorder::LOOKUP,
        };
        self.work_submit_as(token, kind, label, job)
    }

    /// As [`Engine::work_submit`], with the kind of the request for the record: an index into
    /// [`REQUEST_KINDS`](blacklight_record::layout::REQUEST_KINDS).
    pub fn work_submit_as(
        &mut self,
        token: Token,
        kind: WorkKind,
        label: u8,
        job: Job,
    ) -> Result<RequestKey, (Errno, Job)> {
        let is_recorded = blacklight_record::is_any_recording();
        let submitted = self.receiver().submitted;
        let queued_ns = match is_recorded || pool::is_measured(kind, submitted) {
            true => clock::monotonic_ns(),
            false => 0,
        };
        let (pool, lp, cell) = match self.receiver().prepare_request(token) {
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
            name: Name {
                kind: label,
                token: token.0,
            },
            is_recorded: false,
        };
        // A reader who finds the job in the record finds the submission too.
        if is_recorded {
            self.record_submitted(label, token, queued_ns);
        }
        match pool.submit(task) {
            Ok(key) => {
                self.requests.begin();
                Ok(RequestKey(key))
            }
            Err((error, task)) => {
                if is_recorded {
                    self.record_refused(token);
                }
                self.receiver().free_request(cell);
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
        let place = self.receiver().place().ok_or(Errno::EBUSY)?;
        let task = Pool::get().and_then(|pool| pool.cancel(key.0, place));
        let task = task.ok_or(Errno::EBUSY)?;
        self.receiver().cancel_request(task.cell);
        Ok(task.job)
    }

    /// Delivers the next completed request.
    #[inline]
    pub(crate) fn next_work(&mut self) -> Option<Event> {
        let (token, cancelled) = self.receiver().next_request()?;
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
    pub(crate) fn place(&self) -> Option<Key> {
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
