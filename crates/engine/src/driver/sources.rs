//! Sources of events other than descriptors.
//!
//! | source | events come from | they are collected into |
//! | --- | --- | --- |
//! | pool | workers, through the mailbox | `Receiver` (`work.rs`) |
//! | ring | the kernel, through the ring | the ring itself (`ring.rs`) |
//! | asyncs | any thread, through the mailbox | `Receiver` (`wakeup.rs`) |
//! | signals | the signal handler, through its inbox | `Signals` (`signal.rs`) |
//! | exits | watchers of children and SIGCHLD, in the loop's own thread | `Processes` (`process.rs`) |
//!
//! A new source is one more name in the list of [`Source`]s, and a row in each function that answers a question for all
//! of them: has it news ([`Sources::has_arrived`] and [`Sources::has_collected`]), collect ([`Sources::collect`]), next
//! event ([`Engine::next_of`]).
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

/// Makes all that depends on which sources there are of one list.
macro_rules! sources {
    ($($source:ident),+) => {
        /// The sources, in the order in which a turn hands out their events.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub(crate) enum Source {
            $($source),+
        }

        impl Source {
            const ALL: &[Source] = &[$(Source::$source),+];

            /// Asks all sources until one says yes. The compiler sees the source of each question.
            #[inline(always)]
            fn any(mut ask: impl FnMut(Source) -> bool) -> bool {
                $(ask(Source::$source))||+
            }

            /// Does something with all sources. The compiler sees the source each time.
            #[inline(always)]
            fn each(mut act: impl FnMut(Source)) {
                $(act(Source::$source);)+
            }
        }
    };
}

sources!(Pool, Ring, Asyncs, Signals, Exits);

impl Source {
    pub(crate) const FIRST: Source = Source::ALL[0];

    /// The source that comes after this one.
    #[inline]
    pub(crate) fn following(self) -> Option<Source> {
        Source::ALL.get(self as usize + 1).copied()
    }

    /// Whether its events come through the mailbox.
    fn is_mail(self) -> bool {
        matches!(self, Source::Pool | Source::Asyncs)
    }

    /// Whether a wait counts all that has come to it as one event. Completions are counted one by one
    /// when they are collected, and exits have been counted as signals or events of descriptors.
    fn is_counted_by_wait(self) -> bool {
        matches!(self, Source::Asyncs | Source::Signals)
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
            Source::Signals => self.signals.has_caught(),
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

    /// Takes what has come to a source so far. Counts the events that the wait [has
    /// not](Source::is_counted_by_wait).
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
        Source::any(|source| {
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
        Source::any(|source| self.has_arrived(source))
    }

    /// The events that a wait counts of what has come from outside of the loop.
    #[inline(always)]
    pub(super) fn count_arrivals(&mut self) -> usize {
        let mut events = 0;
        Source::each(|source| {
            if source.is_counted_by_wait() && self.has_arrived(source) {
                events += 1;
            }
        });
        events
    }

    /// Whether there is something to hand out.
    #[inline]
    pub(crate) fn have_news(&mut self) -> bool {
        Source::any(|source| self.has_arrived(source) || self.has_collected(source))
    }

    /// Whether there is something to hand out, as far as the loop must find out by itself before it sleeps. What
    /// arrives in the mailbox is left out: going to sleep asks for it, in step with senders
    /// ([`Receiver::fall_asleep`]).
    #[inline]
    pub(super) fn forbid_sleep(&mut self) -> bool {
        Source::any(|source| {
            self.has_collected(source) || !source.is_mail() && self.has_arrived(source)
        })
    }

    /// A run ends: if something has arrived, makes our descriptor readable, since a program may
    /// wait for it.
    pub(super) fn rest(&mut self) {
        Source::each(|source| match source {
            // The mailbox is that of the asyncs as well.
            Source::Pool => self.receiver.rest(),
            Source::Signals => self.signals.rest(),
            // The kernel signals the waker for the ring, and exits are found in a turn.
            Source::Ring | Source::Asyncs | Source::Exits => {}
        });
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
