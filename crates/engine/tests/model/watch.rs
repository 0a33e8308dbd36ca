//! Waiting for descriptors, and what their owners are told.
//!
//! The kernel is asked late for the conditions that are wanted: for more of them right before a
//! wait, for fewer once it has reported something that nobody wants. And a
//! wait that ended without anything to tell goes on for the rest of its time, which counts
//! from the loop's own time.

use crate::oracle::Oracle;
use crate::rules::{Model, Phase};
use crate::turn::Seen;
use crate::world::{POLLERR, POLLHUP, POLLIN, POLLNVAL, POLLOUT, POLLPRI, POLLRDHUP};
use blacklight_engine::{Errno, Event, Mode, Readiness};

const ASKABLE: u32 = POLLIN | POLLOUT | POLLPRI | POLLRDHUP;

/// One wait that breaks down is as good as many; a second one may hit after a refusal.
const BREAKDOWNS: u32 = 2;

/// How long a pause takes while the loop spins, and how long the loop does.
pub(crate) const MOMENT_NS: u64 = 1_000;
const SPIN_NS: u64 = 20_000;

/// Whether it pays to spin: after each time in vain twice as many chances are left out.
#[derive(Clone, PartialEq, Default, Debug)]
pub(crate) struct Spin {
    to_leave_out: u32,
    in_vain: u32,
}

impl Spin {
    fn is_due(&mut self) -> bool {
        let is_due = self.to_leave_out == 0;
        self.to_leave_out = self.to_leave_out.saturating_sub(1);
        is_due
    }

    fn end(&mut self, found: bool) {
        self.in_vain = if found { 0 } else { self.in_vain + 1 };
        if !found {
            self.to_leave_out = 1 << (self.in_vain - 1).min(10);
        }
    }
}

/// The kernel's bits for a poll handle's mask.
pub(crate) fn to_mask(wanted: Readiness) -> u32 {
    let mut mask = 0;
    for (readiness, bit) in [
        (Readiness::READABLE, POLLIN),
        (Readiness::WRITABLE, POLLOUT),
        (Readiness::DISCONNECT, POLLRDHUP),
        (Readiness::PRIORITIZED, POLLPRI),
    ] {
        if wanted.contains(readiness) {
            mask |= bit;
        }
    }
    mask
}

impl Model {
    pub(crate) fn poll(&mut self, seen: Seen, oracle: &mut Oracle) -> Result<(), String> {
        let sleeps = match self.run.mode {
            Mode::Default => true,
            Mode::Once => self.run.may_sleep,
            _ => false,
        };
        let mut timeout = if sleeps { self.poll_timeout() } else { Some(0) };
        let deadline_ns = timeout.map(|timeout| self.now_ns.saturating_add(timeout));
        self.loop_count += 1;
        let mut holds = self.holds_something();
        if !holds && !self.delivering.is_empty() {
            // Closed async handles, which the engine has passed or has not.
            holds = oracle.choose(2) == 1;
        }
        let mut breakdowns = 0;
        let mut may_end_early = self.world.may.end_early;
        loop {
            self.ask(oracle);
            if holds || !self.pending.is_empty() || !self.mail.is_empty() {
                timeout = Some(0);
            }
            // Callbacks have taken their time since that of the loop was cached.
            if deadline_ns.is_some_and(|deadline_ns| deadline_ns <= self.world.now_ns) {
                timeout = Some(0);
            }
            let mut spun = false;
            if timeout != Some(0) {
                spun = self.spin_for_mail();
                let left_ns = |deadline_ns: u64| deadline_ns.saturating_sub(self.world.now_ns);
                timeout = match spun {
                    true => Some(0),
                    false => deadline_ns.map(left_ns),
                };
            }
            let may_break = self.world.may.break_down && breakdowns < BREAKDOWNS;
            if may_break && oracle.choose(2) == 1 {
                breakdowns += 1;
                self.forget_what_was_asked();
            } else {
                let began_ns = self.world.now_ns;
                let mut end_ns = timeout.map(|timeout| began_ns.saturating_add(timeout));
                if may_end_early && timeout != Some(0) {
                    // Ended early, a wait goes on until the loop's own deadline, or it is
                    // over by then; that is seen.
                    let early_ns = match oracle.choose(3) {
                        0 => None,
                        1 => deadline_ns,
                        _ => Some(seen.now_ns),
                    };
                    may_end_early = early_ns.is_none();
                    let early_ns = early_ns.map(|early_ns| early_ns.max(began_ns));
                    end_ns = end_ns.into_iter().chain(early_ns).min();
                }
                self.wait_until(end_ns)?;
                self.slept_ns += self.world.now_ns - began_ns;
            }
            self.now_ns = self.world.now_ns;
            let events = self.batch.len() as u64 + u64::from(!self.mail.is_empty());
            self.events += events;
            if timeout == Some(0) && !spun {
                self.events_waiting += events;
            }
            self.had_mail = !self.mail.is_empty();
            if events > 0 || timeout == Some(0) {
                return Ok(());
            }
            if deadline_ns.is_some_and(|deadline_ns| self.now_ns >= deadline_ns) {
                return Ok(());
            }
        }
    }

    /// Lets a moment pass in place of a sleep if something was sent before the last turn; whether
    /// something has been sent meanwhile.
    fn spin_for_mail(&mut self) -> bool {
        if !self.world.is_dear || !self.had_mail || !self.spin.is_due() {
            return false;
        }
        let end_ns = self.world.now_ns + SPIN_NS;
        while self.mail.is_empty() && self.world.now_ns < end_ns {
            self.world.now_ns += MOMENT_NS;
            for id in self.world.act() {
                self.send(id);
            }
        }
        let found = !self.mail.is_empty();
        self.spin.end(found);
        found
    }

    /// Asks the kernel for what is wanted and has not been asked for yet.
    fn ask(&mut self, oracle: &mut Oracle) {
        for id in 0..self.handles.len() {
            let handle = &mut self.handles[id];
            if handle.wanted & !handle.asked == 0 {
                continue;
            }
            let is_new = handle.asked == 0;
            if is_new && self.world.ready(handle.fd).is_none() {
                self.pending.push((id, Errno::EBADF));
            } else if is_new && self.world.may.refuse && oracle.choose(2) == 1 {
                self.pending.push((id, Errno::ENOMEM));
            } else {
                handle.asked = handle.wanted;
            }
        }
    }

    pub(crate) fn forget_what_was_asked(&mut self) {
        self.batch.clear();
        for handle in &mut self.handles {
            handle.asked = 0;
        }
    }

    /// Lets time pass until something happens, but not for longer than asked for.
    fn wait_until(&mut self, until_ns: Option<u64>) -> Result<(), String> {
        loop {
            let sends = self.world.act();
            for &id in &sends {
                self.send(id);
            }
            self.batch = self.found();
            let is_over = until_ns.is_some_and(|until_ns| until_ns <= self.world.now_ns);
            if !sends.is_empty() || !self.batch.is_empty() || is_over {
                return Ok(());
            }
            let next_ns = until_ns.into_iter().chain(self.world.next_act_ns()).min();
            self.world.now_ns = next_ns.ok_or("nothing will ever wake the loop")?;
        }
    }

    /// The events that the kernel has to report right now.
    fn found(&self) -> Vec<(usize, u32)> {
        let mut found = Vec::new();
        for (id, handle) in self.handles.iter().enumerate() {
            let mask = match self.world.ready(handle.fd) {
                Some(ready) => ready & (handle.asked | POLLERR | POLLHUP),
                None => POLLNVAL,
            };
            if handle.asked != 0 && mask != 0 {
                found.push((id, mask));
            }
        }
        found
    }

    /// The result that a handle is told of an event of the kernel's, if it wants to hear of it.
    fn told(&self, id: usize, mask: u32) -> Option<Result<Readiness, Errno>> {
        let wanted = self.handles[id].wanted;
        let mut events = mask & (wanted | POLLERR | POLLHUP | POLLNVAL);
        if events == 0 {
            return None;
        }
        let is_error = events & POLLERR != 0 && events & POLLPRI == 0;
        if is_error || events & POLLNVAL != 0 {
            return Some(Err(Errno::EBADF));
        }
        if events & POLLHUP != 0 {
            // No operation blocks after a hang-up.
            events |= wanted;
        }
        let all = (0..16).filter_map(Readiness::from_bits);
        let told = all.filter(|&readiness| to_mask(readiness) == events & ASKABLE);
        told.map(Ok).next()
    }

    /// Accepts a poll handle's event if it is one of those that may come now. If it is not,
    /// the poll phase must be over: whoever is left in the batch wants nothing of it.
    pub(crate) fn accept_io(
        &mut self,
        event: Option<Event>,
        oracle: &mut Oracle,
    ) -> Result<bool, String> {
        let batch = std::mem::take(&mut self.batch);
        let is_seen = |&(id, mask): &(usize, u32)| match event {
            Some(Event::Poll(token, result)) => {
                token.0 == id as u64 && self.told(id, mask) == Some(result)
            }
            _ => false,
        };
        let Some(at) = batch.iter().position(is_seen) else {
            for (id, mask) in batch {
                if let Some(told) = self.told(id, mask) {
                    return Err(format!("poll handle {id} was to be told {told:?}"));
                }
                self.handles[id].asked = self.handles[id].wanted;
            }
            return Ok(false);
        };
        for (other, &(id, mask)) in batch.iter().enumerate() {
            let is_wanted = self.told(id, mask).is_some();
            if other == at {
                continue;
            }
            if is_wanted || oracle.choose(2) == 0 {
                self.batch.push((id, mask));
            } else {
                // It came before this one in the batch, and nobody wanted it then.
                self.handles[id].asked = self.handles[id].wanted;
            }
        }
        let (id, mask) = batch[at];
        if self.told(id, mask) == Some(Err(Errno::EBADF)) {
            self.halt(id);
        }
        Ok(true)
    }

    /// Accepts the error of a poll handle that the kernel has refused to watch, which is
    /// stopped by that. All of them must have come before the phase is over.
    pub(crate) fn accept_pending(&mut self, event: Option<Event>) -> Result<bool, String> {
        if let Some(Event::Poll(token, Err(error))) = event
            && let Some(&(id, _)) = self
                .pending
                .iter()
                .find(|&&(id, refused)| id as u64 == token.0 && refused == error)
        {
            self.halt(id);
            return Ok(true);
        }
        match self.pending.first() {
            Some(_) if self.pending_may_wait && self.run.phase == Phase::Pending => Ok(false),
            Some((id, error)) => Err(format!("poll handle {id} was to be told {error:?}")),
            None => {
                self.pending_may_wait = false;
                Ok(false)
            }
        }
    }
}
