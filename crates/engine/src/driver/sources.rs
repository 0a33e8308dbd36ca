//! Sources: where events come from that are no descriptors'.
//!
//! | source | events come from | they are collected into |
//! | --- | --- | --- |
//! | pool | workers, through the mailbox | `Receiver` (`work.rs`) |
//! | ring | the kernel, through the ring | the ring itself (`ring.rs`) |
//! | asyncs | any thread, through the mailbox | `Receiver` (`wakeup.rs`) |
//! | signals | the signal handler, through its inbox | `Signals` (`signal.rs`) |
//! | exits | watchers of children and SIGCHLD, in the loop's own thread | `Processes` (`process.rs`) |
//!
//! Each answers three questions, and a new source is a new row in each of them: has it news ([`Sources::has_arrived`] and
//! [`Sources::has_collected`]), collect ([`Sources::collect`]), next event ([`Engine::next_of`]).
//!
//! Sources are handed out after the descriptors of a poll, in the order of [`Source`]. What arrives at a source after
//! it was collected waits for the next turn.

use crate::engine::Engine;
use crate::event::Event;
use crate::metrics::Waits;
use crate::process::Processes;
use crate::ring::RingState;
use crate::signal::Signals;
use crate::wakeup::Receiver;
use blacklight_sys::Errno;

/// The sources, in the order in which a turn hands out their events.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Source {
    Pool,
    Ring,
    Asyncs,
    Signals,
    Exits,
}

/// Asks all sources until one says yes. The compiler sees the source of each question.
macro_rules! any {
    ($ask:expr) => {
        $ask(Source::Pool)
            || $ask(Source::Ring)
            || $ask(Source::Asyncs)
            || $ask(Source::Signals)
            || $ask(Source::Exits)
    };
}

impl Source {
    pub(crate) const FIRST: Source = Source::Pool;

    /// The source that comes after this one.
    #[inline]
    pub(crate) fn following(self) -> Option<Source> {
        match self {
            Source::Pool => Some(Source::Ring),
            Source::Ring => Some(Source::Asyncs),
            Source::Asyncs => Some(Source::Signals),
            Source::Signals => Some(Source::Exits),
            Source::Exits => None,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Sources {
    /// The pool's completions and the sends to asyncs.
    pub(crate) receiver: Receiver,
    pub(crate) ring: RingState,
    pub(crate) signals: Signals,
    pub(crate) processes: Processes,
}

impl Sources {
    pub(super) fn new() -> Result<Sources, Errno> {
        Ok(Sources {
            receiver: Receiver::new()?,
            ring: RingState::default(),
            signals: Signals::new(),
            processes: Processes::new(),
        })
    }

    /// Whether something has come from outside of the loop and has not been collected.
    #[inline(always)]
    fn has_arrived(&mut self, source: Source) -> bool {
        match source {
            Source::Pool => self.receiver.mailbox.has_completed(),
            Source::Ring => self.ring.has_completed(),
            Source::Asyncs => self.receiver.mailbox.has_sends(),
            Source::Signals => self.signals.has_pending(),
            // The loop itself finds out that a child has ended.
            Source::Exits => false,
        }
    }

    /// Whether something has been collected and has not been handed out.
    #[inline(always)]
    fn has_collected(&self, source: Source) -> bool {
        match source {
            Source::Pool => self.receiver.has_collected_requests(),
            Source::Ring => self.ring.has_collected(),
            Source::Asyncs => self.receiver.has_collected_sends(),
            Source::Signals => self.signals.has_collected(),
            Source::Exits => self.processes.has_ended(),
        }
    }

    /// Takes what has come to a source so far. The events of the pool and of the ring are counted here, one by one;
    /// those of the others were counted by the wait.
    #[inline(always)]
    fn collect(&mut self, source: Source, waits: &mut Waits) {
        match source {
            Source::Pool => waits.count(u64::from(self.receiver.collect_requests())),
            Source::Ring => waits.count(self.ring.collect() as u64),
            Source::Asyncs => self.receiver.collect(),
            Source::Signals => {
                if self.signals.collect() {
                    // The handler has signalled the waker, and the poller may not have looked at it yet.
                    self.receiver.signalled = true;
                }
            }
            Source::Exits => self.processes.collect(),
        }
    }

    /// See [`Driver::collect_from`](super::Driver::collect_from).
    pub(super) fn collect_from(&mut self, first: Source, waits: &mut Waits) -> Option<Source> {
        let mut found = None;
        let _ = any!(|source| {
            if first <= source {
                self.collect(source, waits);
                found = self.has_collected(source).then_some(source);
            }
            found.is_some()
        });
        found
    }

    /// Whether something has come from outside of the loop.
    #[inline]
    pub(super) fn have_arrivals(&mut self) -> bool {
        any!(|source| self.has_arrived(source))
    }

    /// Whether there is something to hand out.
    #[inline]
    pub(crate) fn have_news(&mut self) -> bool {
        any!(|source| self.has_arrived(source) || self.has_collected(source))
    }

    /// Whether there is something to hand out, as far as the loop must find out by itself before it sleeps. What
    /// arrives in the mailbox is left out: going to sleep asks for it, in step with senders
    /// ([`Receiver::fall_asleep`]).
    #[inline]
    pub(super) fn forbid_sleep(&mut self) -> bool {
        any!(|source| {
            let is_mail = matches!(source, Source::Pool | Source::Asyncs);
            self.has_collected(source) || !is_mail && self.has_arrived(source)
        })
    }

    /// A run ends: what has arrived must be heard of by whoever waits for our descriptor.
    pub(super) fn rest(&mut self) {
        self.receiver.rest();
        self.signals.rest();
    }
}

impl Engine {
    /// The next event of a source, of those that were collected.
    #[inline]
    pub(crate) fn next_of(&mut self, source: Source) -> Option<Event> {
        match source {
            Source::Pool => self.next_work(),
            Source::Ring => self.next_of_ring(),
            Source::Asyncs => self.driver.sources.receiver.next().map(Event::Async),
            Source::Signals => self.next_signal(),
            Source::Exits => self.next_exit(),
        }
    }
}
