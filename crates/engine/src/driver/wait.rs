//! Waiting: spinning, sleeping, and recovering from a broken poller.

use super::Driver;
use super::sources::Sources;
use crate::mailbox::Mailbox;
use crate::patience::{Awaited, Awaits, Clocks, Expected};
use crate::poller::{Capability, Poller};
use crate::pool::Pool;
use crate::probe::Boundary;
use blacklight_sys::{Errno, Timeout, clock};

/// How long to hold still after the kernel has failed to wait for us, so that a broken
/// poller costs no more than a little latency.
const BROKEN_POLLER_NS: u64 = 1_000_000;

/// Looks for something in the mailbox.
struct Mail<'a> {
    poller: &'a mut Poller,
    mailbox: &'a Mailbox,
}

impl Awaited for Mail<'_> {
    #[inline]
    fn is_ready(&mut self) -> bool {
        !self.mailbox.is_empty()
    }

    #[inline]
    fn now_ns(&self) -> u64 {
        self.poller.now_ns()
    }

    #[inline]
    fn pause(&mut self) {
        self.poller.pause();
    }
}

/// Looks for events of descriptors, and for what comes to sources meanwhile.
struct Io<'a> {
    poller: &'a mut Poller,
    sources: &'a mut Sources,
    /// How many events the last look has found.
    found: Result<usize, Errno>,
}

impl Awaited for Io<'_> {
    #[inline]
    fn is_ready(&mut self) -> bool {
        self.found = self.poller.look();
        self.found != Ok(0) || self.sources.have_arrivals()
    }

    #[inline]
    fn now_ns(&self) -> u64 {
        self.poller.now_ns()
    }

    #[inline]
    fn pause(&mut self) {
        self.poller.pause();
    }
}

impl Driver {
    /// Waits until something happens, for as long after the cached time as `timeout` allows, and
    /// fetches a batch of events. Does not sleep if there is [news](Driver::has_news).
    pub(crate) fn wait(&mut self, mut timeout: Timeout) {
        let deadline_ns = timeout.map(|timeout| self.now_ns.saturating_add(timeout));
        let expected = self.patience.end_turn();
        self.keep_rest();
        loop {
            self.flush();
            if timeout != Some(0) && self.has_news() {
                timeout = Some(0);
            }
            if timeout != Some(0)
                && let Some(deadline_ns) = deadline_ns
            {
                // The cached time is that before the callbacks of this turn.
                timeout = Some(deadline_ns.saturating_sub(self.poller.now_ns()));
            }
            let is_idle = self.poller.is_idle() && !self.sources.receiver.signalled;
            if timeout == Some(0) && is_idle {
                // Nothing is watched: there is no reason to ask the kernel.
                self.poller.clear();
                self.waits.slept = false;
                return;
            }
            self.spin_or_sleep(&mut timeout, deadline_ns, expected, is_idle);
            self.repeat_left();
            let has_come = self.count_arrivals();
            if has_come || timeout == Some(0) {
                return;
            }
            if deadline_ns.is_some_and(|deadline_ns| self.now_ns >= deadline_ns) {
                return;
            }
        }
    }

    /// Asks the poller, after spinning if that is expected to pay. The time-out becomes zero if the
    /// loop must not sleep after all.
    fn spin_or_sleep(
        &mut self,
        timeout: &mut Timeout,
        deadline_ns: Option<u64>,
        expected: Expected,
        is_idle: bool,
    ) {
        let spin = match timeout {
            Some(0) => None,
            _ => self.spin_for_mail(),
        };
        let has_mail = spin == Some(true);
        if spin == Some(false)
            && let Some(deadline_ns) = deadline_ns
        {
            // The time of a spin in vain is not waited again.
            *timeout = Some(deadline_ns.saturating_sub(self.poller.now_ns()));
        }
        let may_spin = *timeout != Some(0)
            && expected != Expected::Anything
            && !has_mail
            && self.poller.can(Capability::CheapLooks);
        if may_spin {
            if self.spin_for_io(*timeout, expected) {
                return;
            }
            if let Some(deadline_ns) = deadline_ns {
                *timeout = Some(deadline_ns.saturating_sub(self.now_ns));
            }
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

    /// Counts what the wait has brought; whether it has brought anything. Completions of
    /// requests are counted one by one when they are collected.
    #[inline(always)]
    fn count_arrivals(&mut self) -> bool {
        let receiver = &mut self.sources.receiver;
        receiver.had_sends = receiver.mailbox.has_sends();
        let sends = usize::from(receiver.had_sends);
        let signals = usize::from(self.sources.signals.has_pending());
        let events = self.poller.len() + sends + signals;
        self.waits.count(events as u64);
        events > 0 || self.sources.have_arrivals()
    }

    /// Spins for a send or a completion if one is to be expected, since requests are in progress or the last
    /// wait has brought sends, and if the loop's patience allows it. If it has spun, returns whether
    /// something has come meanwhile.
    #[inline]
    fn spin_for_mail(&mut self) -> Option<bool> {
        let receiver = &self.sources.receiver;
        match receiver.requests > 0 || receiver.had_sends {
            true => self.spin_for_expected_mail(),
            false => None,
        }
    }

    #[inline(never)]
    fn spin_for_expected_mail(&mut self) -> Option<bool> {
        let requests = self.sources.receiver.requests;
        let mailbox = &self.sources.receiver.mailbox;
        if !self.poller.may_spin_for_mail(requests > 0) || !mailbox.is_empty() {
            return None;
        }
        let awaits = match requests {
            0 => Awaits::Send,
            _ => Awaits::Pool(Pool::get()?.workers()),
        };
        let spin = self.patience.plan(awaits)?;
        self.cross(Boundary::SpinBegins);
        let spun = spin.run(&mut Mail {
            poller: &mut self.poller,
            mailbox: &self.sources.receiver.mailbox,
        });
        self.patience.learn(&spun, spun.is_ready);
        let found = spun.is_ready;
        self.cross(Boundary::SpinEnds { found });
        Some(found)
    }

    /// Spins for descriptors if the loop's patience allows it. Returns whether the poller has been asked
    /// and there is something.
    #[inline(never)]
    fn spin_for_io(&mut self, timeout: Timeout, expected: Expected) -> bool {
        let Some(spin) = self.patience.plan(Awaits::Io(expected, timeout)) else {
            return false;
        };
        self.cross(Boundary::SpinBegins);
        if self.waits.is_timed {
            self.waits.idle_time.enter(self.poller.now_ns());
        }
        let mut io = Io {
            poller: &mut self.poller,
            sources: &mut self.sources,
            found: Ok(0),
        };
        let spun = spin.run(&mut io);
        // A poller that fails is replaced when it is asked to sleep.
        let found = spun.is_ready && io.found.is_ok();
        self.patience.learn(&spun, found);
        self.update_time();
        if self.waits.is_timed {
            self.waits.idle_time.leave(self.now_ns);
        }
        self.cross(Boundary::SpinEnds { found });
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
            self.waits.idle_time.enter(self.poller.now_ns());
        }
        let is_sampled =
            sleeps && self.poller.can(Capability::CheapLooks) && self.patience.samples_sleep();
        let before = is_sampled.then(|| self.clocks());
        if sleeps {
            self.cross(Boundary::SleepBegins { timeout });
        }
        let result = self.poller.wait(timeout, self.blocked_signals.as_ref());
        self.update_time();
        if sleeps {
            self.cross(Boundary::SleepEnds);
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
            true => self.waits.idle_time.has_slept_until(self.now_ns),
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
