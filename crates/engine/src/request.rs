//! Requests in progress: how many a loop has, and the ones of which a handle has at most one.
//!
//! A request keeps its loop alive from the call that made it until its event is handed out. Every
//! kind of request begins and ends through [`Requests`], so the count is changed in one place.

use crate::event::Token;

/// The number of requests in progress.
#[derive(Default, Debug)]
pub(crate) struct Requests(u32);

impl Requests {
    /// Counts a request that has been accepted.
    #[inline]
    pub(crate) fn begin(&mut self) {
        self.0 += 1;
    }

    /// Counts a request as over; its event is handed out next.
    #[inline]
    pub(crate) fn end(&mut self) {
        self.end_all(1);
    }

    /// Counts requests as over that are the parent process's, and are never reported here.
    #[inline]
    pub(crate) fn end_all(&mut self, requests: u32) {
        debug_assert!(requests <= self.0, "a request ends twice");
        self.0 -= requests;
    }

    #[inline]
    pub(crate) fn count(&self) -> u32 {
        self.0
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0 == 0
    }
}

/// The token of a request of which a handle has at most one at a time. An `Option` would take
/// twice the room, so one token, [`Token`]`(u64::MAX)`, stands for none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Slot(Token);

impl Slot {
    pub(crate) const EMPTY: Slot = Slot(Token(u64::MAX));

    #[inline]
    pub(crate) fn is_taken(self) -> bool {
        self != Slot::EMPTY
    }

    pub(crate) fn put(&mut self, token: Token) {
        debug_assert!(!self.is_taken(), "a handle has two requests of one kind");
        *self = Slot(token);
        debug_assert!(self.is_taken(), "this token stands for no request");
    }

    /// Empties the slot.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<Token> {
        let Slot(token) = std::mem::replace(self, Slot::EMPTY);
        (Slot(token) != Slot::EMPTY).then_some(token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_gives_its_token_once() {
        let mut slot = Slot::EMPTY;
        assert_eq!(slot.take(), None);
        slot.put(Token(0));
        assert!(slot.is_taken());
        assert_eq!(slot.take(), Some(Token(0)));
        assert_eq!(slot.take(), None);
        assert!(!slot.is_taken());
    }
}
