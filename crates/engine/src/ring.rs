//! Requests for files that the kernel completes in the background, on a ring, in place of the thread
//! pool.
//!
//! A loop has a ring if the front end permits it, the environment asks for it, and the platform has
//! one. The first request makes the ring. The front end submits to the pool every request that the
//! ring does not take.
//!
//! The kernel signals the mailbox's waker when it has completed a request, so that every poller
//! wakes up for it. The loop delivers results after the pool's, in the same phase. It delivers only
//! those that are there when the phase begins, so that a callback that makes another request cannot
//! keep the loop in the phase. A request keeps its loop alive until its result is delivered.
//!
//! The kernel stores the token of a request, and the engine keeps no other state of it.

use crate::engine::Engine;
use crate::event::{Event, Token};
use crate::mailbox::Mailbox;
use crate::pool::leading_number;
use crate::recorder::FILES;
use blacklight_sys::ring::{self, Operation, Ring};
use blacklight_sys::{Errno, fallible};

/// Whether a loop has a ring.
#[derive(Default, Debug)]
pub(crate) enum RingState {
    /// It has none and will not make one: it is not permitted or not asked for, or the kernel has
    /// refused it.
    #[default]
    Never,
    /// The first request makes it.
    Permitted,
    Made(LoopRing),
}

#[derive(Debug)]
pub(crate) struct LoopRing {
    ring: Box<Ring>,
    /// How many results the phase in progress has still to deliver.
    due: usize,
}

impl RingState {
    /// Makes the ring, if the environment and the kernel permit it.
    #[cold]
    fn make(mailbox: &Mailbox) -> RingState {
        let setting = std::env::var_os(ring::SETTING);
        let is_wanted = setting.is_some_and(|setting| {
            let setting = setting.to_string_lossy();
            let setting = setting.trim_start();
            leading_number(setting.strip_prefix('+').unwrap_or(setting)) > 0
        });
        let ring = is_wanted.then(|| Ring::new(&mailbox.waker).and_then(fallible::try_box));
        match ring {
            Some(Ok(ring)) => RingState::Made(LoopRing { ring, due: 0 }),
            _ => RingState::Never,
        }
    }

    fn ring(&mut self) -> Option<&mut Ring> {
        match self {
            RingState::Made(made) => Some(&mut made.ring),
            _ => None,
        }
    }

    /// Counts the results that are there, to be delivered in this phase. Returns how many are new.
    #[inline]
    pub(crate) fn collect(&mut self) -> usize {
        let RingState::Made(made) = self else {
            return 0;
        };
        let before = made.due;
        made.due = made.ring.collect();
        made.due.saturating_sub(before)
    }

    /// Whether collected results are left to deliver.
    #[inline]
    pub(crate) fn has_collected(&self) -> bool {
        matches!(self, RingState::Made(made) if made.due > 0)
    }

    /// Whether the kernel has completed requests that are not delivered yet.
    #[inline]
    pub(crate) fn has_completed(&mut self) -> bool {
        self.ring().is_some_and(Ring::has_completed)
    }
}

impl Engine {
    fn ring(&mut self) -> &mut RingState {
        &mut self.driver.sources.ring
    }

    /// Permits the loop to have a ring.
    pub fn ring_permit(&mut self) {
        if matches!(self.ring(), RingState::Never) && self.driver.reaches_kernel() {
            *self.ring() = RingState::Permitted;
        }
    }

    /// Whether the loop has a ring. Makes the ring if that is permitted and has not been tried.
    #[inline]
    pub fn ring_is_there(&mut self) -> bool {
        if matches!(self.ring(), RingState::Permitted) {
            *self.ring() = RingState::make(self.mailbox());
        }
        matches!(self.ring(), RingState::Made(_))
    }

    /// Submits an operation to the ring: [`Event::Ring`](crate::Event::Ring) follows. Returns false
    /// if there is no ring or the ring does not take the operation, which is then not done. The
    /// token must not be that of another request in progress on the ring, nor `u64::MAX`.
    pub fn ring_submit(&mut self, token: Token, operation: Operation) -> bool {
        let ring = self.ring().ring();
        let taken = ring.is_some_and(|ring| ring.submit(operation, token.0));
        if taken {
            self.requests.begin();
            if self.driver.observed.is_some() {
                self.record_submitted(FILES, token, self.driver.clock_ns());
            }
        }
        taken
    }

    /// Cancels a request on the ring: it completes with an error on a later turn. `EBUSY` for a
    /// request that the kernel has begun or completed. If such a request still completes with
    /// `EINTR` or `ECANCELED`, the front end has to submit it elsewhere.
    pub fn ring_cancel(&mut self, token: Token) -> Result<(), Errno> {
        let ring = self.ring().ring().ok_or(Errno::EBUSY)?;
        ring.cancel(token.0)
    }

    /// Delivers the next result.
    #[inline]
    pub(crate) fn next_of_ring(&mut self) -> Option<Event> {
        let RingState::Made(made) = self.ring() else {
            return None;
        };
        made.due = made.due.checked_sub(1)?;
        let completion = made.ring.take()?;
        self.requests.end();
        Some(Event::Ring(Token(completion.number), completion.result))
    }

    /// In a child process, drops the ring with its requests, which are the parent's; the next
    /// request makes another ring. In the process that made the ring, keeps using it.
    pub(crate) fn fork_ring(&mut self) -> Result<(), Errno> {
        let Some(ring) = self.driver.sources.ring.ring() else {
            return Ok(());
        };
        if ring.is_ours() {
            return ring.wake_through(&self.driver.sources.receiver.mailbox.waker);
        }
        self.requests.end_all(ring.requests() as u32);
        *self.ring() = RingState::Permitted;
        Ok(())
    }
}
