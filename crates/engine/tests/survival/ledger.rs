//! The events that are still to come, and those that have come.

use blacklight_engine::{Event, Token};
use std::collections::{BTreeMap, BTreeSet};

/// The kinds of events, and those of what is counted besides.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Kind {
    Timer,
    Idle,
    Prepare,
    Check,
    Async,
    Work,
    Ring,
    Poll,
    Read,
    ReadEnd,
    Write,
    Writable,
    Connect,
    Shutdown,
    Connection,
    TurnedAway,
    Receive,
    ReceiveError,
    ReceiveEnd,
    Send,
    Signal,
    Exit,
    FsEvent,
    Closed,
    /// Not an event: bytes that were sent have been read.
    Arrival,
    /// Not an event: the end of a stream has been read.
    End,
}

impl Kind {
    pub(crate) fn of(event: &Event) -> Kind {
        match event {
            Event::Timer(_) => Kind::Timer,
            Event::Idle(_) => Kind::Idle,
            Event::Prepare(_) => Kind::Prepare,
            Event::Check(_) => Kind::Check,
            Event::Async(_) => Kind::Async,
            Event::Work(..) => Kind::Work,
            Event::Ring(..) => Kind::Ring,
            Event::Poll(..) => Kind::Poll,
            Event::Read(_) => Kind::Read,
            Event::ReadEnd(..) => Kind::ReadEnd,
            Event::Write(..) => Kind::Write,
            Event::Writable(_) => Kind::Writable,
            Event::Connect(..) => Kind::Connect,
            Event::Shutdown(..) => Kind::Shutdown,
            Event::Connection(..) => Kind::Connection,
            Event::TurnedAway(..) => Kind::TurnedAway,
            Event::Receive(_) => Kind::Receive,
            Event::ReceiveError(_) => Kind::ReceiveError,
            Event::ReceiveEnd(..) => Kind::ReceiveEnd,
            Event::Send(..) => Kind::Send,
            Event::Signal(..) => Kind::Signal,
            Event::Exit(..) => Kind::Exit,
            Event::FsEvent(..) => Kind::FsEvent,
            Event::Closed(_) => Kind::Closed,
        }
    }

    /// Events that say how things are, and so may come any number of times. What they lead to is
    /// counted in their place.
    fn is_repeated(self) -> bool {
        use Kind::{Idle, Poll, Read, ReadEnd, Receive};
        matches!(self, Idle | Poll | Read | ReadEnd | Receive)
    }
}

/// The events that are still to come, each with how often.
#[derive(Default)]
pub(crate) struct Ledger {
    open: BTreeMap<(u64, Kind), u32>,
    closing: BTreeSet<u64>,
    /// Events that may come any number of times.
    allowed: BTreeSet<(u64, Kind)>,
}

impl Ledger {
    pub(crate) fn expect(&mut self, token: Token, kind: Kind, times: u32) {
        *self.open.entry((token.0, kind)).or_default() += times;
        if kind == Kind::Closed {
            self.closing.insert(token.0);
        }
    }

    pub(crate) fn allow(&mut self, token: Token, kind: Kind) {
        self.allowed.insert((token.0, kind));
    }

    /// It has come, which is once less to come.
    pub(crate) fn meet(&mut self, token: Token, kind: Kind) {
        let entry = (token.0, kind);
        let Some(times) = self.open.get_mut(&entry) else {
            panic!("{kind:?} of {token:?} comes once too often");
        };
        *times -= 1;
        if *times == 0 {
            self.open.remove(&entry);
        }
    }

    pub(crate) fn told(&mut self, event: &Event) {
        let kind = Kind::of(event);
        let is_allowed = self.allowed.contains(&(event.token().0, kind));
        match kind.is_repeated() || is_allowed {
            false => self.meet(event.token(), kind),
            true => assert!(
                !self.closing.contains(&event.token().0),
                "{event:?} comes after the handle was closed"
            ),
        }
    }

    /// Descriptions of the events that have not come.
    pub(crate) fn missing(&self) -> Vec<String> {
        let open = self.open.iter();
        open.map(|((token, kind), times)| format!("{kind:?} of {token:#x}, {times} times"))
            .collect()
    }
}
