//! Waiting: spinning, sleeping, and recovering from a broken poller.

use super::Driver;
use crate::patience::{Awaits, Clocks, Processor, Spin};
use crate::poller::Capability;
use crate::pool::Pool;
use crate::probe::Boundary;
use blacklight_sys::{Errno, Timeout, clock};

/// How long to hold still after the kernel has failed to wait for us, so that a broken
/// poller costs no more than a little latency.
const BROKEN_POLLER_NS: u64 = 1_000_000;

/// Why a wait has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Waited {
    /// Something has happened, or the time is over.
    Done,
    /// Nothing has happened, but [a reader has asked](Driver::is_asked) for something.
    IsAsked,
}

impl Driver {
    /// Waits until something happens, for as long after the cached time as `timeout` allows, and
    /// fetches a batch of events. Does not sleep if there is [news](Driver::has_news).
    pub(crate) fn wait(&mut self, mut timeout: Timeout) -> Waited {
        let deadline_ns = timeout.map(|timeout| self.now_ns.saturating_add(timeout));
        self.keep_rest();
        loop {
            self.flush();
            if timeout != Some(0) && self.has_news() {
                timeout = Some(0);
            }
            if timeout != Some(0) {
                // The cached time is that before the callbacks of this turn.
                timeout = self.time_left(deadline_ns);
            }
            let is_idle = self.poller.is_idle() && !self.sources.receiver.signalled;
            if timeout == Some(0) && is_idle {
                // Nothing is watched: there is no reason to ask the kernel.
                self.poller.clear();
                self.waits.slept = false;
                return Waited::Done;
            }
            self.spin_or_sleep(&mut timeout, deadline_ns, is_idle);
            self.repeat_left();
            let has_come = self.count_arrivals();
            if has_come || timeout == Some(0) {
                return Waited::Done;
            }
            if deadline_ns.is_some_and(|deadline_ns| self.now_ns >= deadline_ns) {
                return Waited::Done;
            }
            if self.is_asked() {
                return Waited::IsAsked;
            }
        }
    }

    /// Asks the poller, after spinning if that is expected to pay. The time-out becomes zero if the
    /// loop must not sleep after all.
    fn spin_or_sleep(&mut self, timeout: &mut Timeout, deadline_ns: Option<u64>, is_idle: bool) {
        let mut has_mail = false;
        if *timeout != Some(0)
            && let Some(found) = self.spin_for_mail()
        {
            has_mail = found;
            *timeout = self.time_left(deadline_ns);
        }
        if *timeout != Some(0)
            && !has_mail
            && let Some(found) = self.spin_for_io(*timeout)
        {
            if found {
                return;
            }
            *timeout = self.time_left(deadline_ns);
        }
        if *timeout != Some(0) && !self.sources.receiver.fall_asleep() {
            *timeout = Some(0);
        }
        if *timeout == Some(0) && is_idle && !self.sources.receiver.signalled {
            // There is mail, and the kernel knows nothing more.
            self.poller.clear();
            self.waits.slept = has_mail;
            self.update_time();
        } else {
            self.waits.slept = self.ask_poller(*timeout) || has_mail;
            self.sources.receiver.signalled = false;
            if *timeout != Some(0) {
                self.sources.receiver.awake();
            }
        }
    }

    /// Counts the events that the wait has brought, and returns whether there are any. Completions
    /// of requests are counted one by one when they are collected.
    #[inline(always)]
    fn count_arrivals(&mut self) -> bool {
        let receiver = &mut self.sources.receiver;
        receiver.had_sends = receiver.mailbox.has_sends();
        let events = self.poller.len() + self.sources.count_arrivals();
        self.waits.count(events as u64);
        events > 0 || self.sources.have_arrivals()
    }

    /// How long it is until the deadline.
    #[inline]
    fn time_left(&self, deadline_ns: Option<u64>) -> Timeout {
        deadline_ns.map(|deadline_ns| deadline_ns.saturating_sub(self.poller.now_ns()))
    }

    /// Spins for a send or a completion if the loop's patience plans that. If it has spun, returns
    /// whether something has come meanwhile.
    #[inline]
    fn spin_for_mail(&mut self) -> Option<bool> {
        let receiver = &self.sources.receiver;
        let waits_for_pool = receiver.requests > 0;
        if !self.poller.may_spin_for_mail(waits_for_pool) || !receiver.mailbox.is_empty() {
            return None;
        }
        let awaits = match waits_for_pool {
            true => Awaits::Pool(Pool::get()?.workers()),
            false => Awaits::Send {
                was_sent_to: receiver.had_sends,
            },
        };
        let spin = self.patience.plan(awaits)?;
        Some(self.run_for_mail(spin))
    }

    #[inline(never)]
    fn run_for_mail(&mut self, spin: Spin<'_>) -> bool {
        self.cross(Boundary::SpinBegins);
        let mailbox = &self.sources.receiver.mailbox;
        let spun = spin.run_on(&mut self.poller, |_| !mailbox.is_empty());
        self.patience.learn(&spun, spun.is_ready);
        let found = spun.is_ready;
        self.cross(Boundary::SpinEnds { found });
        found
    }

    /// Spins for descriptors if the loop's patience plans that. If it has spun, returns whether the
    /// poller has been asked and there is something.
    #[inline]
    fn spin_for_io(&mut self, timeout: Timeout) -> Option<bool> {
        let looks_are_cheap = || self.poller.can(Capability::CheapLooks);
        let spin = self.patience.plan_for_io(timeout, looks_are_cheap)?;
        Some(self.run_for_io(spin))
    }

    #[inline(never)]
    fn run_for_io(&mut self, spin: Spin<'static>) -> bool {
        self.cross(Boundary::SpinBegins);
        if self.waits.is_timed {
            self.waits.enter(self.poller.now_ns());
        }
        let mut looked = Ok(0);
        let sources = &mut self.sources;
        let spun = spin.run_on(&mut self.poller, |poller| {
            looked = poller.look();
            looked != Ok(0) || sources.have_arrivals()
        });
        // A poller that fails is replaced when it is asked to sleep.
        let found = spun.is_ready && looked.is_ok();
        self.patience.learn(&spun, found);
        self.update_time();
        if self.waits.is_timed {
            self.waits.leave(self.now_ns);
        }
        self.cross_now(Boundary::SpinEnds { found });
        self.waits.slept = !spun.was_ready;
        self.sources.receiver.signalled &= !found;
        found
    }

    fn clocks(&self) -> Clocks {
        Clocks {
            now_ns: self.poller.now_ns(),
            cpu_ns: self.poller.thread_cpu_ns(),
        }
    }

    /// One call of the poller; whether it has slept before it returned. An interrupted call
    /// is one without events.
    fn ask_poller(&mut self, timeout: Timeout) -> bool {
        let sleeps = timeout != Some(0);
        let is_timed = self.waits.is_timed && sleeps;
        if is_timed {
            self.waits.enter(self.poller.now_ns());
        }
        let looks_are_cheap = || self.poller.can(Capability::CheapLooks);
        let is_sampled = sleeps && self.patience.samples_sleep(looks_are_cheap);
        let before = is_sampled.then(|| self.clocks());
        if sleeps {
            self.cross(Boundary::SleepBegins { timeout });
        }
        let result = self.poller.wait(timeout, self.blocked_signals.as_ref());
        self.update_time();
        if sleeps {
            self.cross_now(Boundary::SleepEnds);
        }
        if let Some(before) = before {
            let after = self.clocks();
            self.patience.slept(before, after);
        }
        if let Err(error) = result
            && error != Errno::EINTR
        {
            self.recover();
        }
        match is_timed {
            true => self.waits.leave(self.now_ns),
            false => sleeps,
        }
    }

    /// The kernel does not wait for us any more, perhaps because the program has closed the
    /// poller's own descriptor: start afresh with a new one.
    #[cold]
    fn recover(&mut self) {
        if self.renew_poller().is_err() {
            clock::sleep_ns(BROKEN_POLLER_NS);
        }
    }
}
