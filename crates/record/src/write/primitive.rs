//! Numbers, texts, histograms and rings, as they are written.

use crate::What;
use crate::layout::{BUCKETS, Event, Histogram, RING, Ring};
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::sync::atomic::{AtomicU64, fence};

/// Adds to a number that only this thread writes.
#[inline]
pub(super) fn add(to: &AtomicU64, more: u64) {
    to.store(to.load(Relaxed).wrapping_add(more), Relaxed);
}

/// Writes text into words, cut at a character where it is too long, with zeros behind.
pub(super) fn write_text(words: &[AtomicU64], text: &str) -> usize {
    let bytes = crate::beginning(text, words.len() * 8).as_bytes();
    for (at, word) in words.iter().enumerate() {
        let mut chunk = [0; 8];
        let part = bytes.get(at * 8..).unwrap_or_default();
        let count = part.len().min(8);
        chunk[..count].copy_from_slice(&part[..count]);
        word.store(u64::from_ne_bytes(chunk), Relaxed);
    }
    bytes.len()
}

/// The bucket of a number.
#[inline]
fn bucket(number: u64) -> usize {
    (64 - number.leading_zeros() as usize).min(BUCKETS - 1)
}

impl Histogram {
    /// Counts a number; only one thread may do so.
    #[inline]
    pub(super) fn count(&self, number: u64) {
        add(&self.buckets[bucket(number)], 1);
        add(&self.sum, number);
        if number > self.max.load(Relaxed) {
            self.max.store(number, Relaxed);
        }
    }

    /// Counts a number; any thread may do so.
    pub(super) fn count_shared(&self, number: u64) {
        self.buckets[bucket(number)].fetch_add(1, Relaxed);
        self.sum.fetch_add(number, Relaxed);
        self.max.fetch_max(number, Relaxed);
    }

    pub(super) fn clear(&self) {
        for word in self.buckets.iter().chain([&self.sum, &self.max]) {
            word.store(0, Relaxed);
        }
    }
}

impl Ring {
    #[inline]
    pub(super) fn push(&self, at_ns: u64, took_ns: u64, what: u64, address: u64, token: u64) {
        let count = self.count.load(Relaxed);
        let event: &Event = &self.events[count as usize % RING];
        // A reader that sees any of what follows sees the count of the events before.
        fence(Release);
        event.at_ns.store(at_ns, Relaxed);
        event.took_ns.store(took_ns, Relaxed);
        event.what.store(what, Relaxed);
        event.address.store(address, Relaxed);
        event.token.store(token, Relaxed);
        self.count.store(count.wrapping_add(1), Release);
    }
}

/// An event's `what`.
#[inline]
pub(super) fn what(what: What, phase: u8, kind: u8, turn: u64) -> u64 {
    what as u64 | u64::from(phase) << 8 | u64::from(kind) << 16 | turn << 32
}
