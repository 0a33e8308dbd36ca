//! The handle that the loop is in the middle of serving, and how much of that one turn may do.
//!
//! One readiness of a descriptor leads to several events, and the engine hands out one at a time.
//! Where it stands in between is kept in [`Engine::in_hand`] and nowhere else. A run that a
//! callback begins, or the run after one that was given up, goes on with what is in hand.
//! Closing a handle takes it out of hand, so a cursor always names an open handle.
//!
//! A handle's share of a turn is a [`Budget`], so that a peer that never stops sending does not
//! starve other handles. Reading from a stream and receiving datagrams are bounded by the same
//! [`Intake`].

use crate::driver::{Owner, Pending};
use crate::engine::Engine;
use crate::event::Event;
use crate::readiness::Readiness;
use crate::{stream, udp};
use blacklight_sys::Errno;

/// The handle or source that is being served, one event at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) enum InHand {
    Nothing,
    Stream(stream::Cursor),
    Udp(udp::UdpCursor),
    /// Changes that were read from the file watcher.
    FileEvents,
}

impl InHand {
    #[inline]
    pub(crate) fn is_nothing(&self) -> bool {
        matches!(self, InHand::Nothing)
    }
}

/// Why the owner of a watcher is served.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Occasion {
    /// In the poll phase: the poller has reported readiness.
    Ready(Readiness),
    /// In a pending phase.
    Pending(Pending),
}

impl Occasion {
    /// The readiness that the poller has reported, or the error with which it has refused the
    /// descriptor.
    #[inline]
    fn reported(self) -> Option<Result<Readiness, Errno>> {
        match self {
            Occasion::Ready(ready) => Some(Ok(ready)),
            Occasion::Pending(Pending::Refused(error)) => Some(Err(error)),
            Occasion::Pending(Pending::Fed) => None,
        }
    }
}

/// How many operations a handle may still do in its turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Budget(u32);

impl Budget {
    pub(crate) const MAX: u32 = 32;
    pub(crate) const FULL: Budget = Budget(Budget::MAX);

    /// A budget of `operations`, or a full one if that is less.
    pub(crate) fn at_most(operations: u32) -> Budget {
        Budget(operations.min(Budget::MAX))
    }

    #[inline]
    pub(crate) fn is_spent(self) -> bool {
        self.0 == 0
    }

    /// Counts operations that were done; the last may have gone beyond the budget.
    #[inline]
    pub(crate) fn spend(&mut self, operations: u32) {
        self.0 = self.0.saturating_sub(operations);
    }
}

/// The outcome of the last event that told the front end to take something in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Found {
    /// Something, and there may be more; or it has not been told yet.
    More,
    /// All there was; or it has not looked.
    Enough,
    /// Nothing.
    Nothing,
}

/// How far a handle has got in its turn with taking in bytes, datagrams, or errors of datagrams
/// that the kernel has for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Intake {
    budget: Budget,
    found: Found,
}

impl Intake {
    pub(crate) const BEGIN: Intake = Intake {
        budget: Budget::FULL,
        found: Found::More,
    };

    /// Whether the front end is to be told that there is something. If it is and does not take
    /// anything, for want of room or because it has stopped, that is enough for this turn.
    #[inline]
    pub(crate) fn goes_on(&mut self) -> bool {
        let has_more = std::mem::replace(&mut self.found, Found::Enough) == Found::More;
        has_more && !self.budget.is_spent()
    }

    /// Something was taken in, by this many operations.
    #[inline]
    pub(crate) fn took(&mut self, operations: u32, may_be_more: bool) {
        self.budget.spend(operations);
        self.found = match may_be_more {
            true => Found::More,
            false => Found::Enough,
        };
    }

    /// There was nothing to take in.
    #[inline]
    pub(crate) fn took_nothing(&mut self) {
        self.found = Found::Nothing;
    }

    /// Whether there was nothing the last time.
    #[inline]
    pub(crate) fn found_nothing(self) -> bool {
        self.found == Found::Nothing
    }
}

impl Engine {
    /// Begins the turn of a watcher's owner, and goes on with it up to the next thing to call or to
    /// its end.
    #[inline(always)]
    pub(crate) fn begin_turn(
        &mut self,
        watcher: u32,
        owner: Owner,
        why: Occasion,
    ) -> Option<Event> {
        let reported = why.reported();
        match owner {
            Owner::Poll(index) => reported.map(|ready| self.poll_event(watcher, index, ready)),
            Owner::Process(process) => {
                if let Some(ready) = reported {
                    self.driver.process_ready(process, ready);
                }
                None
            }
            Owner::FileWatcher => {
                match reported {
                    Some(Ok(_)) => self.file_watcher_ready(),
                    Some(Err(error)) => self.file_watcher_refused(error),
                    None => {}
                }
                self.begin_with(InHand::FileEvents)
            }
            Owner::Stream(stream) => {
                let cursor = match why {
                    Occasion::Ready(ready) => self.stream_ready(stream, ready),
                    Occasion::Pending(why) => self.stream_pending(stream, why),
                };
                self.begin_with(InHand::Stream(cursor))
            }
            Owner::Udp(udp) => {
                let cursor = match why {
                    Occasion::Ready(ready) => self.udp_ready(udp, ready),
                    Occasion::Pending(why) => self.udp_pending(udp, why),
                };
                self.begin_with(InHand::Udp(cursor))
            }
        }
    }

    #[inline(always)]
    fn begin_with(&mut self, in_hand: InHand) -> Option<Event> {
        self.in_hand = in_hand;
        self.go_on()
    }

    /// Goes on with what is in hand, up to the next thing to call or to its end. Mostly nothing
    /// is, which should not cost a call.
    #[inline(always)]
    pub(crate) fn go_on(&mut self) -> Option<Event> {
        match self.in_hand {
            InHand::Nothing => None,
            InHand::Stream(cursor) => self.next_of_stream(cursor),
            InHand::Udp(cursor) => self.next_of_udp(cursor),
            InHand::FileEvents => {
                let event = self.next_fs_event();
                if event.is_none() {
                    self.in_hand = InHand::Nothing;
                }
                event
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_intake_ends_when_its_budget_is_spent() {
        let mut intake = Intake::BEGIN;
        let mut told = 0;
        while intake.goes_on() {
            told += 1;
            intake.took(1, true);
        }
        assert_eq!(told, Budget::MAX);
    }

    #[test]
    fn a_batch_may_end_beyond_the_budget() {
        let mut intake = Intake::BEGIN;
        assert!(intake.goes_on());
        intake.took(Budget::MAX - 1, true);
        assert!(intake.goes_on());
        intake.took(20, true);
        assert!(!intake.goes_on());
    }

    #[test]
    fn an_intake_ends_when_the_front_end_takes_nothing() {
        let mut intake = Intake::BEGIN;
        assert!(intake.goes_on());
        assert!(!intake.goes_on());
        assert!(!intake.found_nothing());
    }

    #[test]
    fn an_intake_ends_when_nothing_is_there() {
        let mut intake = Intake::BEGIN;
        assert!(intake.goes_on());
        intake.took_nothing();
        assert!(intake.found_nothing());
        assert!(!intake.goes_on());
    }
}
