//! The program's side of its objects: the engine, random numbers and the ledger.

use crate::ledger::{Kind, Ledger};
use crate::random::Random;
use blacklight_engine::{Engine, Key, Token};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub(crate) struct Desk {
    pub(crate) engine: Engine,
    pub(crate) random: Random,
    pub(crate) ledger: Arc<Mutex<Ledger>>,
    /// Whose turn it is.
    pub(crate) object: u64,
    tokens: u64,
    /// Whether handles stay open until the loop is over. A handle that closes keeps the loop from
    /// sleeping and from being over, whatever else it has forgotten.
    closes_late: bool,
    /// The handles that have heard of everything and are still open.
    late: Vec<(Key, Token)>,
}

impl Desk {
    pub(crate) fn new(engine: Engine, mut random: Random) -> Desk {
        Desk {
            closes_late: random.chance(1, 2),
            late: Vec::new(),
            engine,
            random,
            ledger: Arc::default(),
            object: 0,
            tokens: 0,
        }
    }

    /// A token of the object whose turn it is.
    pub(crate) fn new_token(&mut self) -> Token {
        self.tokens += 1;
        Token(self.object << 16 | self.tokens)
    }

    pub(crate) fn object_of(token: Token) -> usize {
        (token.0 >> 16) as usize
    }

    pub(crate) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        // It is whole after any panic, and the watchdog prints it.
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn expect(&mut self, token: Token, kind: Kind, times: u32) {
        self.ledger().expect(token, kind, times);
    }

    pub(crate) fn meet(&mut self, token: Token, kind: Kind) {
        self.ledger().meet(token, kind);
    }

    /// Closes a handle that has heard of everything, now or when the loop is over.
    pub(crate) fn close(&mut self, key: Key, token: Token) {
        match self.closes_late {
            true => self.close_late_only(key, token),
            false => self.close_now(key, token),
        }
    }

    /// Closes a handle that is not waited for when the loop is over.
    pub(crate) fn close_late_only(&mut self, key: Key, token: Token) {
        self.engine.unreference(key);
        self.late.push((key, token));
    }

    /// Closes what is still open; whether there was anything.
    pub(crate) fn close_late(&mut self) -> bool {
        let late = std::mem::take(&mut self.late);
        for &(key, token) in &late {
            self.close_now(key, token);
        }
        !late.is_empty()
    }

    pub(crate) fn close_now(&mut self, key: Key, token: Token) {
        self.engine.close(key).unwrap();
        self.expect(token, Kind::Closed, 1);
    }

    /// From one to `most`.
    pub(crate) fn up_to(&mut self, most: u64) -> u32 {
        1 + self.random.below(most) as u32
    }

    /// Whether what there is to be read is left for the next event, as by a callback that panics
    /// before it reads.
    pub(crate) fn leaves_it(&mut self) -> bool {
        self.random.chance(1, 4)
    }
}
