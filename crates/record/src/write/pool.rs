//! What the thread pool does.

use super::Record;
use super::primitive::what;
use crate::What;
use crate::layout::{Body, REQUESTS, ThreadSegment};
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Relaxed, Release};

/// A request to the thread pool: its kind, and its token.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Request {
    /// One of [`REQUEST_KINDS`](crate::layout::REQUEST_KINDS).
    pub kind: u8,
    /// The name by which the loop's front end knows it.
    pub token: u64,
    /// When it was submitted; 0 if it is not recorded.
    pub queued_ns: u64,
}

impl Request {
    fn index(self) -> usize {
        (self.kind as usize).min(REQUESTS - 1)
    }
}

/// A request waits for a thread, and `oldest` waits longest. The pool's lock is held.
pub fn pool_queued(record: &Record, request: Request, oldest: Option<Request>) {
    if let Some(body) = record.body.get() {
        count(&body.pool.queued[request.index()], 1);
        set_oldest(body, oldest);
    }
}

/// A request that waited was taken by a thread, or was cancelled, and `oldest` waits longest now.
/// The pool's lock is held.
pub fn pool_taken(record: &Record, request: Request, oldest: Option<Request>) {
    if let Some(body) = record.body.get() {
        count(&body.pool.queued[request.index()], -1);
        set_oldest(body, oldest);
    }
}

/// Adds to a number that is only written with the pool's lock, or by one thread.
fn count(to: &AtomicU32, more: i32) {
    to.store(to.load(Relaxed).wrapping_add_signed(more), Relaxed);
}

/// This request waits longest. The pool's lock is held.
pub fn pool_oldest(record: &Record, oldest: Option<Request>) {
    if let Some(body) = record.body.get() {
        set_oldest(body, oldest);
    }
}

fn set_oldest(body: &Body, oldest: Option<Request>) {
    let oldest = oldest.unwrap_or_default();
    body.pool.oldest_kind.store(u64::from(oldest.kind), Relaxed);
    body.pool.oldest_ns.store(oldest.queued_ns, Relaxed);
}

/// What one thread of the pool does.
#[derive(Debug)]
pub struct ThreadWriter {
    pub(super) body: &'static Body,
    /// `None` for a thread that the record has no room for: only its requests are counted.
    pub(super) segment: Option<&'static ThreadSegment>,
}

impl ThreadWriter {
    /// The thread runs a request, since this time at least.
    pub fn runs(&self, request: Request, since_ns: u64) {
        match self.segment {
            Some(segment) => {
                segment.since_ns.store(since_ns, Relaxed);
                segment.token.store(request.token, Relaxed);
                segment.running.store(u32::from(request.kind) + 1, Relaxed);
            }
            None => {
                self.body.pool.running[request.index()].fetch_add(1, Relaxed);
            }
        }
    }

    /// The thread runs a request from now on.
    pub fn begins(&self, request: Request, now_ns: u64) {
        self.runs(request, now_ns);
        let waited_ns = now_ns.saturating_sub(request.queued_ns);
        match self.segment {
            Some(segment) => segment.wait[request.index()].count(waited_ns),
            None => self.body.pool.wait[request.index()].count_shared(waited_ns),
        }
    }

    /// The request has run.
    pub fn ends(&self, request: Request, began_ns: u64, now_ns: u64) {
        let took_ns = now_ns.saturating_sub(began_ns);
        match self.segment {
            Some(segment) => {
                segment.run[request.index()].count(took_ns);
                let what = what(What::Job, 0, request.kind, 0);
                let ring = &segment.ring;
                ring.push(began_ns, took_ns, what, 0, request.token);
            }
            None => self.body.pool.run[request.index()].count_shared(took_ns),
        }
        self.rests(request, now_ns);
    }

    /// The request that the thread ran when recording began has run, for nobody knows how long.
    pub fn adopted_ends(&self, request: Request, now_ns: u64) {
        self.body.pool.untimed[request.index()].fetch_add(1, Relaxed);
        self.rests(request, now_ns);
    }

    fn rests(&self, request: Request, now_ns: u64) {
        match self.segment {
            Some(segment) => {
                segment.running.store(0, Relaxed);
                segment.since_ns.store(now_ns, Relaxed);
            }
            None => {
                self.body.pool.running[request.index()].fetch_sub(1, Relaxed);
            }
        }
    }
}

impl Drop for ThreadWriter {
    fn drop(&mut self) {
        if let Some(segment) = self.segment {
            segment.tid.store(0, Release);
        }
    }
}
