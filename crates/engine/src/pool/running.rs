//! What a worker runs, for a record that begins meanwhile.
//!
//! A worker notes each request that it takes, with the pool's lock. A record that begins adopts
//! what the workers run, with the lock too: it marks the note. The worker takes its note back
//! without the lock when the request has run, and finds the mark. Nothing here orders any other
//! memory, so that the models of the pool do without it.

use super::queue::Task;
use crate::recorder;
use crate::slab::Key;
use blacklight_record::{Record, Request, ThreadWriter};
use blacklight_sys::clock;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};

/// In a note: the record knows of the request.
const RECORDED: u32 = 1 << 8;

/// What one worker runs.
#[derive(Default, Debug)]
pub(super) struct Running {
    /// The worker's thread; 0 before it has started.
    tid: AtomicU32,
    /// The kind of the request, and 1 more, and whether it is recorded; 0 for none.
    note: AtomicU32,
    token: AtomicU64,
    /// The loop that the request is of.
    lp: AtomicU64,
    /// The worker's part of the record, made for the first request of which the record hears.
    writer: OnceLock<Option<ThreadWriter>>,
}

impl Running {
    /// The worker's thread has started.
    pub(super) fn starts(&self) {
        self.tid.store(blacklight_record::thread_id(), Relaxed);
    }

    /// The worker has taken a request. The pool's lock is held.
    #[inline]
    pub(super) fn begins(&self, task: &Task) {
        self.token.store(task.name.token, Relaxed);
        self.lp.store(task.lp.to_bits(), Relaxed);
        let recorded = if task.is_recorded { RECORDED } else { 0 };
        let note = u32::from(task.name.kind) + 1;
        self.note.store(note | recorded, Release);
    }

    /// The request has run. `was_told` says whether the record knew of it from its beginning.
    #[inline]
    pub(super) fn ends(&self, was_told: bool) {
        let note = self.note.swap(0, AcqRel);
        if note & RECORDED != 0 && !was_told {
            self.adopted_ends(note);
        }
    }

    #[cold]
    fn adopted_ends(&self, note: u32) {
        if recorder::recording().is_some()
            && let Some(Some(writer)) = self.writer.get()
        {
            writer.adopted_ends(self.request(note, 0), clock::monotonic_ns());
        }
    }

    fn request(&self, note: u32, queued_ns: u64) -> Request {
        Request {
            kind: (note & 0xff).saturating_sub(1) as u8,
            token: self.token.load(Relaxed),
            queued_ns,
        }
    }

    /// The worker's part of the record.
    #[cold]
    pub(super) fn writer(&self, record: &'static Record) -> Option<&ThreadWriter> {
        let make = || record.add_thread(self.tid.load(Relaxed), clock::monotonic_ns());
        self.writer.get_or_init(make).as_ref()
    }

    /// Tells a record that begins what the worker runs, if it runs anything. The pool's lock is
    /// held.
    pub(super) fn adopt(&self, record: &'static Record, now_ns: u64) -> Option<(Key, Request)> {
        let note = self.note.load(Acquire);
        if note == 0 {
            return None;
        }
        let lp = Key::from_bits(self.lp.load(Relaxed));
        let request = self.request(note, now_ns);
        if note & RECORDED == 0 {
            let writer = self.writer(record)?;
            // Told before it is marked, since the worker may be done right after.
            writer.runs(request, now_ns);
            let marked = (self.note).compare_exchange(note, note | RECORDED, AcqRel, Acquire);
            if marked.is_err() {
                // It has been done meanwhile, and its worker waits for the lock.
                writer.adopted_ends(request, now_ns);
                return None;
            }
        }
        Some((lp, request))
    }
}
