//! What the loop is in the middle of, and how much of it one turn may do.
//!
//! One readiness of a descriptor leads to several events, and the engine hands out one at a time.
//! Where it stands in between is kept in [`Engine::in_hand`] and nowhere else. A run that a
//! callback begins, or the run after one that was given up, goes on with what is in hand.
//! Closing a handle takes it out of hand, so a cursor always names an open handle.
//!
//! A handle's share of a turn is a [`Budget`], so that a peer that never stops sending does not
//! starve other handles. Reading from a stream and receiving datagrams are bounded by the same
//! [`Intake`].

use crate::engine::Engine;
use crate::event::Event;
use crate::{stream, udp};

/// What is being dealt with, one event at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) enum InHand {
    Nothing,
    Stream(stream::Cursor),
    Udp(udp::Cursor),
    /// What was read of the file system.
    FileEvents,
}

impl InHand {
    #[inline]
    pub(crate) fn is_nothing(&self) -> bool {
        matches!(self, InHand::Nothing)
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

/// What the front end has found when it was last told that there is something to take in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Found {
    /// Something, and there may be more; or it has not been told yet.
    More,
    /// All there was; or it has not looked.
    Enough,
    /// Nothing.
    Nothing,
}

/// How far a handle has got in its turn with taking in what the kernel has for it: bytes,
/// datagrams, or errors of datagrams.
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
    fn an_intake_ends_when_nobody_takes_anything() {
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
