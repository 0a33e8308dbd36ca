//! Waiting awake, for a moment, in place of going to sleep.
//!
//! Putting a thread to sleep and waking it costs the better part of what a small piece of
//! work takes. Where threads hand each other work at a high rate, whoever waits a few
//! microseconds awake saves both of them that price. Where they do not, the waiting is for
//! nothing: each time that it was, the next tries are left out, twice as many as before, so
//! that a program which does not profit pays next to nothing. And it must not cost those who
//! do something: who waits awake offers its processor to them all the while, and where more
//! threads than processors are known to be busy nobody waits awake. Nor do the thread pool and those
//! who wait for it for a while after somebody else has taken up the offer and kept the processor: who
//! has offered it comes last, who sleeps is let in at once. Elsewhere whoever keeps the processor may
//! be the one that is waited for.
//!
//! How long that moment may be depends on what a sleep costs, which differs from machine to
//! machine, most of all where a processor that has nothing to do is given back to a host. For
//! descriptors, whose next event may be far off, it is therefore measured.
//!
//! [`Spinning`] turns all of it off for a loop, and for the pool's workers after a request of that loop.

use crate::sync;
use blacklight_sys::{Errno, clock, cpu};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// How long to wait awake for other threads of this process.
const SPIN_NS: u64 = 20_000;

/// The most that a sleep is taken to cost.
const MAX_PRICE_NS: u64 = 25_000;

/// One of so many sleeps is measured.
const SAMPLE: u32 = 32;

/// A wait that returned this fast has not slept: what it was for was there before.
pub(crate) const NO_SLEEP_NS: u64 = 10_000;

/// The longest that others may keep the processor meanwhile: less than any scheduler gives to
/// one that goes on computing.
const AWAY_NS: u64 = 200_000;

/// Who keeps it for so long goes on computing.
const SLICE_NS: u64 = 1_000_000;

/// For so many times as long as others have kept it nobody waits awake: it is then lost for no more
/// than a twentieth of the time.
const AWAY_FACTOR: u64 = 20;

/// Requests that take longer are not worth to wait awake for.
const REQUEST_NS: u64 = 100_000;

/// The longest for which others are taken to have kept it; a machine may have been suspended.
const MAX_AWAY_NS: u64 = 20_000_000;

/// Whether other programs want the processors.
static CROWD: Crowd = Crowd {
    until_ns: AtomicU64::new(0),
};

/// The most tries that are left out after tries in vain.
const MAX_SKIP: u32 = 1024;

/// As many tries are left out where none is ever made. No penalty is as high.
const FOR_EVER: u32 = u32::MAX;

/// The part of the penalty that a success takes away where [strict](Spin::strict). A try in vain
/// doubles it, so that tries follow each other only where five out of six succeed.
const FORGIVEN: u32 = 8;

/// Whether a loop may spin before it sleeps.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Spinning {
    /// Where it has paid lately.
    #[default]
    Adaptive,
    /// Never: the loop sleeps at once, and so do the pool's workers after its requests.
    Never,
}

impl Spinning {
    /// What the environment asks for by `BLACKLIGHT_SPIN`: `0` is never, `1` is the same as nothing.
    /// Any other value is `EINVAL`, not a guess, as it is for `BLACKLIGHT_POLLER`.
    pub fn from_environment() -> Result<Spinning, Errno> {
        let setting = std::env::var_os("BLACKLIGHT_SPIN").unwrap_or_default();
        Spinning::from_setting(setting.as_encoded_bytes())
    }

    fn from_setting(setting: &[u8]) -> Result<Spinning, Errno> {
        match setting {
            b"" | b"1" => Ok(Spinning::Adaptive),
            b"0" => Ok(Spinning::Never),
            _ => Err(Errno::EINVAL),
        }
    }
}

/// Whether and how long it pays to wait awake in one place.
#[derive(Debug)]
pub(crate) struct Spin {
    /// Tries to leave out until the next.
    skip: u32,
    /// Tries to leave out after the next one, should it be in vain.
    penalty: u32,
    is_strict: bool,
}

/// One try.
#[derive(Debug)]
pub(crate) struct Try<'a> {
    /// For those who work together: how many requests they have taken up.
    requests: Option<&'a sync::AtomicU64>,
}

/// What a try waits for, and the clock by which it does.
pub(crate) trait Awaited {
    /// Whether it is there.
    fn is_ready(&mut self) -> bool;

    fn now_ns(&self) -> u64 {
        clock::monotonic_ns()
    }

    /// Offers the processor to whoever else could run on it.
    fn pause(&mut self) {
        std::thread::yield_now();
    }
}

impl<F: FnMut() -> bool> Awaited for F {
    fn is_ready(&mut self) -> bool {
        self()
    }
}

/// What tells at next to no cost whether it is there.
struct Soon<A>(A);

impl<A: Awaited> Awaited for Soon<A> {
    /// Whether it is within a few looks.
    #[inline]
    fn is_ready(&mut self) -> bool {
        (0..16).any(|_| {
            std::hint::spin_loop();
            self.0.is_ready()
        })
    }

    fn now_ns(&self) -> u64 {
        self.0.now_ns()
    }

    fn pause(&mut self) {
        self.0.pause();
    }
}

/// What is known of others who want the processors.
#[derive(Debug)]
struct Crowd {
    /// Until when they are taken to; zero if they are not.
    until_ns: AtomicU64,
}

impl Crowd {
    /// Somebody has kept a processor that was offered, for so long until now. If so many requests
    /// were taken up meanwhile, it was one of those who work on them; else it has held them up.
    #[cold]
    fn judge(&self, now_ns: u64, kept_ns: u64, requests: u64) {
        if kept_ns >= SLICE_NS.max(requests.saturating_mul(REQUEST_NS)) {
            let until_ns = now_ns.saturating_add(AWAY_FACTOR * kept_ns.min(MAX_AWAY_NS));
            self.until_ns.store(until_ns, Relaxed);
        }
    }

    #[inline]
    fn is_here(&self) -> bool {
        self.until_ns.load(Relaxed) != 0 && self.is_here_at(clock::monotonic_ns())
    }

    #[cold]
    fn is_here_at(&self, now_ns: u64) -> bool {
        let is_here = now_ns < self.until_ns.load(Relaxed);
        if !is_here {
            self.until_ns.store(0, Relaxed);
        }
        is_here
    }
}

/// How many threads can run at the same time.
///
/// Threads that ask first at the same moment each find out. None waits for another: in a child
/// made by `fork` at that moment it would wait for ever.
#[inline]
pub(crate) fn processors() -> u32 {
    static PROCESSORS: AtomicU32 = AtomicU32::new(0);
    match PROCESSORS.load(Relaxed) {
        0 => {
            let known = cpu::parallelism() as u32;
            PROCESSORS.store(known, Relaxed);
            known
        }
        known => known,
    }
}

impl Spin {
    /// For those who hand each other work: one success makes up for all that was in vain, since
    /// they go to sleep at the same time if both do.
    pub(crate) fn lenient() -> Spin {
        Spin {
            skip: 0,
            penalty: 1,
            is_strict: false,
        }
    }

    /// For what comes from elsewhere: a try in vain costs more than a success saves.
    pub(crate) fn strict() -> Spin {
        Spin {
            skip: 0,
            penalty: FORGIVEN,
            is_strict: true,
        }
    }

    /// For a loop that [never](Spinning::Never) spins: no try is ever worth it.
    pub(crate) fn never() -> Spin {
        Spin {
            skip: FOR_EVER,
            penalty: MAX_SKIP,
            is_strict: true,
        }
    }

    /// Whether a try may ever be worth it.
    #[inline]
    pub(crate) fn is_possible(&self) -> bool {
        self.skip != FOR_EVER
    }

    /// A try, if one is worth it.
    #[inline]
    pub(crate) fn begin<'a>(&mut self) -> Option<Try<'a>> {
        self.is_due().then_some(Try { requests: None })
    }

    /// A try, if one is worth it for a thread that works together with others: so many of them are
    /// busy, and so many requests have been taken up by them.
    #[inline]
    pub(crate) fn begin_among_workers<'a>(
        &mut self,
        busy: u32,
        requests: &'a sync::AtomicU64,
    ) -> Option<Try<'a>> {
        let is_crowded = || busy > processors() || CROWD.is_here();
        let may = self.is_due() && (cfg!(all(test, loom)) || !is_crowded());
        may.then_some(Try {
            requests: Some(requests),
        })
    }

    /// Whether the tries that are to be left out have been.
    #[inline]
    fn is_due(&mut self) -> bool {
        let is_due = self.skip == 0;
        if self.is_possible() {
            self.skip = self.skip.saturating_sub(1);
        }
        is_due
    }

    /// Whether the next try is near, so that it is worth while to know what a sleep costs.
    #[inline]
    pub(crate) fn is_near(&self) -> bool {
        self.skip <= SAMPLE
    }

    /// Learns from a try.
    #[inline]
    pub(crate) fn end(&mut self, found: bool) {
        if found {
            self.penalty = match self.is_strict {
                true => self.penalty - self.penalty / FORGIVEN,
                false => 1,
            };
        } else {
            self.skip = self.penalty;
            self.penalty = (self.penalty * 2).min(MAX_SKIP);
        }
    }
}

impl Try<'_> {
    /// Waits for another thread of this process, of whom it can be told at next to no cost whether
    /// it is ready; whether it was in time.
    #[inline]
    pub(crate) fn for_mate(self, mut mate: impl Awaited) -> bool {
        if cfg!(all(test, loom)) {
            // In a model no time passes: others run, and then there is one look.
            sync::yield_now();
            return mate.is_ready();
        }
        let mut mate = Soon(mate);
        mate.is_ready() || self.until(0, SPIN_NS, &mut mate)
    }

    /// Waits for what was not ready, for `limit_ns` at the most; whether it was in time. It is not
    /// asked before `rest_ns` are over. Whoever else could run on this processor does so
    /// meanwhile, above all the one we wait for. If they keep the processor for long, it was in
    /// vain, and would be again: a sleeper would have been woken.
    #[inline]
    pub(crate) fn until(self, rest_ns: u64, limit_ns: u64, awaited: &mut impl Awaited) -> bool {
        let begun_ns = awaited.now_ns();
        let requests = self.requests.map_or(0, |requests| requests.load(Relaxed));
        loop {
            awaited.pause();
            let now_ns = awaited.now_ns();
            let waited_ns = now_ns - begun_ns;
            if waited_ns >= AWAY_NS {
                if let Some(now) = self.requests {
                    CROWD.judge(now_ns, waited_ns, now.load(Relaxed) - requests);
                }
                return false;
            }
            if waited_ns >= rest_ns && awaited.is_ready() {
                return true;
            }
            if waited_ns >= limit_ns {
                return false;
            }
        }
    }
}

/// Whom the streams of a loop have talked with in a turn: what is worth waiting for, and how.
#[derive(Debug)]
pub(crate) struct Talk {
    /// The stream that was read last.
    speaker: u32,
    /// Whether no other was read in this turn, nor last before it.
    is_same: bool,
    has_read: bool,
    has_written: bool,
}

/// What to wait for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Next {
    /// The next word of the one that was answered.
    Word,
    /// More of what comes from one that is only listened to.
    More,
    /// Whatever comes.
    Anything,
}

impl Talk {
    pub(crate) fn new() -> Talk {
        Talk {
            speaker: u32::MAX,
            is_same: true,
            has_read: false,
            has_written: false,
        }
    }

    /// Something was read from a stream.
    #[inline]
    pub(crate) fn heard(&mut self, stream: u32) {
        self.is_same &= self.speaker == stream;
        self.speaker = stream;
        self.has_read = true;
    }

    /// Something was written to a stream.
    #[inline]
    pub(crate) fn said(&mut self) {
        self.has_written = true;
    }

    /// What to wait for at the end of a turn, which this is.
    #[inline]
    pub(crate) fn next(&mut self) -> Next {
        let has_read = std::mem::take(&mut self.has_read);
        let has_written = std::mem::take(&mut self.has_written);
        let is_same = std::mem::replace(&mut self.is_same, true);
        match (has_read && is_same, has_written) {
            (true, true) => Next::Word,
            (true, false) => Next::More,
            (false, _) => Next::Anything,
        }
    }
}

/// What a sleep costs a thread in processor time, found out from time to time.
#[derive(Default, Debug)]
pub(crate) struct Price {
    ns: u64,
    /// Sleeps until the next is measured.
    unmeasured: u32,
}

/// What the clocks say before or after a sleep that is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measure {
    pub(crate) now_ns: u64,
    /// The thread's processor time.
    pub(crate) cpu_ns: u64,
}

impl Price {
    /// What it costs the sleeper; zero as long as that is not known.
    #[inline]
    pub(crate) fn own_ns(&self) -> u64 {
        self.ns
    }

    /// How long it pays to wait awake: as long as the sleep would cost both the sleeper and
    /// whoever wakes it, which is up to twice as much again where it has to wake a processor too.
    #[inline]
    pub(crate) fn worth_ns(&self) -> u64 {
        3 * self.ns
    }

    /// Whether it is time to measure a sleep.
    #[inline]
    pub(crate) fn is_due(&mut self) -> bool {
        if self.unmeasured > 0 {
            self.unmeasured -= 1;
            return false;
        }
        // Tries that follow need to know, and to find it out allocates: better before a sleep.
        processors();
        true
    }

    /// Learns from a sleep that was measured.
    pub(crate) fn measured(&mut self, before: Measure, after: Measure) {
        self.unmeasured = SAMPLE;
        if after.now_ns - before.now_ns > NO_SLEEP_NS {
            self.learn(after.cpu_ns - before.cpu_ns);
        }
    }

    fn learn(&mut self, ns: u64) {
        let ns = ns.min(MAX_PRICE_NS);
        self.ns = match self.ns {
            0 => ns,
            known => (3 * known + ns) / 4,
        };
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const TRY: Try<'_> = Try { requests: None };

    fn tries(spin: &mut Spin, chances: u32, found: impl Fn(u32) -> bool) -> u32 {
        let mut tries = 0;
        for _ in 0..chances {
            if spin.is_due() {
                tries += 1;
                spin.end(found(tries));
            }
        }
        tries
    }

    #[test]
    fn tries_in_vain_become_rare_and_success_brings_them_back() {
        for mut spin in [Spin::lenient(), Spin::strict()] {
            let made = tries(&mut spin, 100_000, |_| false);
            assert!((50..200).contains(&made), "{made} tries");
            tries(&mut spin, 100_000, |_| true);
            assert_eq!(tries(&mut spin, 100, |_| true), 100, "one after the other");
            let requests = AtomicU64::new(0);
            let tried = spin.begin_among_workers(processors() + 1, &requests);
            assert!(tried.is_none(), "too few processors");
        }
    }

    #[test]
    fn a_loop_that_never_spins_makes_no_try_and_measures_no_sleep() {
        let mut spin = Spin::never();
        assert_eq!(tries(&mut spin, 100_000, |_| true), 0);
        assert!(spin.begin().is_none());
        assert!(spin.begin_among_workers(0, &AtomicU64::new(0)).is_none());
        assert!(!spin.is_near() && !spin.is_possible());
        let others = [Spin::lenient(), Spin::strict()];
        assert!(others.iter().all(Spin::is_possible));
    }

    #[test]
    fn a_setting_that_says_neither_yes_nor_no_is_refused() {
        let meant = |setting: &str| Spinning::from_setting(setting.as_bytes());
        assert_eq!(meant("0"), Ok(Spinning::Never));
        assert_eq!(meant("1"), Ok(Spinning::Adaptive));
        assert_eq!(meant(""), Ok(Spinning::Adaptive));
        for unclear in ["00", "no", "off", "false", "2", " 0", "-0", "\u{fc}"] {
            assert_eq!(meant(unclear), Err(Errno::EINVAL), "{unclear}");
        }
    }

    #[test]
    fn one_success_is_enough_for_the_lenient_only() {
        let every_other = |tries: u32| tries.is_multiple_of(2);
        let made = tries(&mut Spin::lenient(), 10_000, every_other);
        assert!(made > 5_000, "{made} tries");
        let made = tries(&mut Spin::strict(), 10_000, every_other);
        assert!(made < 500, "{made} tries");
        let nearly_all = |tries: u32| !tries.is_multiple_of(20);
        let made = tries(&mut Spin::strict(), 10_000, nearly_all);
        assert!(made > 5_000, "{made} tries");
    }

    #[test]
    fn nobody_waits_awake_for_a_while_after_others_kept_the_processor() {
        let crowd = Crowd {
            until_ns: AtomicU64::new(0),
        };
        assert!(!crowd.is_here());
        let now_ns = clock::monotonic_ns();
        crowd.judge(now_ns, 4_000_000, 41);
        assert!(!crowd.is_here(), "it was one of us");
        crowd.judge(now_ns, SLICE_NS - 1, 0);
        assert!(!crowd.is_here(), "it was not for long");
        crowd.judge(now_ns, 4_000_000, 40);
        assert!(crowd.is_here_at(now_ns + 79_000_000));
        assert!(!crowd.is_here_at(now_ns + 80_000_000));
        assert!(!crowd.is_here_at(now_ns), "it is over for good");
        crowd.judge(now_ns, u64::MAX, 1);
        assert!(crowd.is_here_at(now_ns + AWAY_FACTOR * MAX_AWAY_NS - 1));
        assert!(!crowd.is_here_at(now_ns + AWAY_FACTOR * MAX_AWAY_NS));
    }

    #[test]
    fn one_who_goes_on_talking_is_waited_for() {
        let mut talk = Talk::new();
        assert_eq!(talk.next(), Next::Anything, "nobody has spoken");
        for _ in 0..2 {
            talk.heard(1);
        }
        assert_eq!(talk.next(), Next::Anything, "it may have been once");
        talk.heard(1);
        assert_eq!(talk.next(), Next::More);
        talk.heard(1);
        talk.said();
        assert_eq!(talk.next(), Next::Word);
        talk.said();
        assert_eq!(talk.next(), Next::Anything);
        talk.heard(1);
        talk.heard(2);
        assert_eq!(talk.next(), Next::Anything, "two have spoken");
        talk.heard(1);
        assert_eq!(talk.next(), Next::Anything, "the other may be next");
        talk.heard(1);
        assert_eq!(talk.next(), Next::More);
    }

    #[test]
    fn a_try_ends() {
        // Others may keep the processor for too long.
        assert!((0..1000).any(|_| { TRY.until(0, SPIN_NS, &mut || true) }));
        assert!(!TRY.until(0, SPIN_NS, &mut || false));
        assert!(TRY.for_mate(|| true));
        assert!(!TRY.for_mate(|| false));
    }

    #[test]
    fn who_rests_does_not_ask_too_soon() {
        let begun_ns = clock::monotonic_ns();
        let mut asked_ns = 0;
        let found = TRY.until(SPIN_NS, 2 * SPIN_NS, &mut || {
            asked_ns = clock::monotonic_ns() - begun_ns;
            true
        });
        // Others may have kept the processor for too long.
        assert!(!found || asked_ns >= SPIN_NS, "{asked_ns}");
    }

    #[test]
    fn a_price_is_learnt_and_has_a_limit() {
        let mut price = Price::default();
        assert_eq!(price.worth_ns(), 0, "nothing is known yet");
        price.learn(4_000);
        assert_eq!(price.worth_ns(), 12_000);
        price.learn(8_000);
        assert_eq!(price.worth_ns(), 15_000);
        for _ in 0..100 {
            price.learn(u64::MAX);
        }
        assert!((74_000..=75_000).contains(&price.worth_ns()));
    }

    #[test]
    fn one_of_many_sleeps_is_measured() {
        let mut price = Price::default();
        let mut measured = 0;
        for _ in 0..4 * (SAMPLE + 1) {
            if price.is_due() {
                let at = |now_ns, cpu_ns| Measure { now_ns, cpu_ns };
                price.measured(at(7, 1_000), at(8 + NO_SLEEP_NS, 2_000));
                measured += 1;
            }
        }
        assert_eq!(measured, 4);
        assert_eq!(price.own_ns(), 1_000);
    }
}
