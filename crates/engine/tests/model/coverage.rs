//! Counts of the situations that the programs have met. A situation that none has met fails the test.

use blacklight_engine::{Errno, Event, Tally};

#[derive(Default, Debug)]
pub(crate) struct Coverage {
    timers: u64,
    idles: u64,
    prepares: u64,
    checks: u64,
    asyncs: u64,
    polls: u64,
    /// Closed in the same phase as another, so that their order shows.
    closed_together: u64,
    bad_descriptors: u64,
    refused_descriptors: u64,
    already_watched: u64,
    invalid: u64,
    not_open: u64,
    /// Walks by how deep inside others they were.
    pub(crate) walks: [u64; 2],
    /// Runs that callbacks have begun, runs that were given up, and those of them whose outer run
    /// went on.
    pub(crate) nested: u64,
    pub(crate) given_up: u64,
    pub(crate) went_on: u64,
    /// Of spinning in place of sleeping.
    pub(crate) tally: Tally,
    /// The most ways in which a program may have gone at one time.
    pub(crate) states: usize,
}

impl Coverage {
    pub(crate) fn event(&mut self, event: Event, after_a_close: bool) {
        *match event {
            Event::Timer(_) => &mut self.timers,
            Event::Idle(_) => &mut self.idles,
            Event::Prepare(_) => &mut self.prepares,
            Event::Check(_) => &mut self.checks,
            Event::Async(_) => &mut self.asyncs,
            Event::Poll(_, Ok(_)) => &mut self.polls,
            Event::Poll(_, Err(Errno::ENOMEM)) => &mut self.refused_descriptors,
            Event::Poll(_, Err(_)) => &mut self.bad_descriptors,
            Event::Closed(_) if after_a_close => &mut self.closed_together,
            _ => return,
        } += 1;
    }

    pub(crate) fn error(&mut self, error: Errno) {
        match error {
            Errno::EEXIST => self.already_watched += 1,
            Errno::EINVAL => self.invalid += 1,
            Errno::EBADF => self.not_open += 1,
            _ => {}
        }
    }

    pub(crate) fn add(&mut self, other: &Coverage) {
        for (mine, theirs) in self.counts_mut().into_iter().zip(other.counts()) {
            *mine += theirs;
        }
        self.tally.add(&other.tally);
        self.states = self.states.max(other.states);
    }

    fn counts_mut(&mut self) -> [&mut u64; 17] {
        let [outer, inner] = &mut self.walks;
        [
            &mut self.timers,
            &mut self.idles,
            &mut self.prepares,
            &mut self.checks,
            &mut self.asyncs,
            &mut self.polls,
            &mut self.closed_together,
            &mut self.bad_descriptors,
            &mut self.refused_descriptors,
            &mut self.already_watched,
            &mut self.invalid,
            &mut self.not_open,
            outer,
            inner,
            &mut self.nested,
            &mut self.given_up,
            &mut self.went_on,
        ]
    }

    fn counts(&self) -> [u64; 17] {
        let [outer, inner] = self.walks;
        [
            self.timers,
            self.idles,
            self.prepares,
            self.checks,
            self.asyncs,
            self.polls,
            self.closed_together,
            self.bad_descriptors,
            self.refused_descriptors,
            self.already_watched,
            self.invalid,
            self.not_open,
            outer,
            inner,
            self.nested,
            self.given_up,
            self.went_on,
        ]
    }

    /// Fails if something has never happened, or if nothing was ever left open.
    pub(crate) fn assert_complete(&self) {
        let spun = self.tally.sends_while_spinning.min(self.tally.vain_spins);
        let never = self.counts().contains(&0) || self.states < 2 || spun == 0;
        assert!(!never, "the programs do too little: {self:?}");
    }
}
