//! A kernel made up from a seed: time, readiness and faults, all repeatable.
//!
//! Descriptors are numbers that [`Sim::open`] has been told of, with a mask of what is
//! ready on each. Time stands still while the program runs and moves only in waits: to
//! the end of the time-out, or to the next scripted [`Action`], whichever is first. Nothing
//! here depends on the real clock, on addresses or on the order of threads, so the same
//! program with the same seed takes the same steps.

use super::BATCH;
use crate::wakeup::Sender;
use blacklight_sys::poll::{POLLERR, POLLHUP, POLLNVAL};
use blacklight_sys::{Errno, RawFd, Timeout};
use std::collections::BTreeMap;

/// How often, in parts of 256, the simulated kernel misbehaves.
#[derive(Clone, Copy, Default, Debug)]
pub struct Faults {
    /// A wait is interrupted (`EINTR`) before its time.
    pub interrupt: u8,
    /// Starting to watch a descriptor fails for want of memory.
    pub refuse: u8,
    /// A wait fails outright, as if the poller's own descriptor were gone.
    pub break_down: u8,
    /// A wait returns without events before its time.
    pub spurious: u8,
}

/// Something that happens at a given time, while the loop waits or before it asks.
#[derive(Clone, Debug)]
pub enum Action {
    /// A descriptor's readiness (the kernel's poll bits) is from now on this.
    Ready(RawFd, u32),
    /// Another thread sends to an async handle.
    Send(Sender),
}

#[derive(Clone, Copy, Debug)]
struct Watched {
    mask: u32,
    data: u64,
}

/// The simulated kernel.
#[derive(Debug)]
pub struct Sim {
    seed: u64,
    random: u64,
    now_ns: u64,
    faults: Faults,
    open: BTreeMap<RawFd, u32>,
    watched: BTreeMap<RawFd, Watched>,
    script: BTreeMap<(u64, u64), Action>,
    scripted: u64,
    batch: Vec<(u32, u64)>,
}

impl Sim {
    pub(super) fn new(seed: u64) -> Sim {
        Sim {
            seed,
            // xorshift must not start from zero.
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            now_ns: 1_000_000_000,
            faults: Faults::default(),
            open: BTreeMap::new(),
            watched: BTreeMap::new(),
            script: BTreeMap::new(),
            scripted: 0,
            batch: Vec::with_capacity(BATCH),
        }
    }

    pub(super) fn seed(&self) -> u64 {
        self.seed
    }

    /// The simulated time.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Lets time pass outside of a wait, as a slow callback does. Actions that were due
    /// meanwhile have happened by the time the loop looks.
    pub fn advance(&mut self, ns: u64) {
        self.now_ns += ns;
    }

    /// Sets how often the kernel misbehaves.
    pub fn set_faults(&mut self, faults: Faults) {
        self.faults = faults;
    }

    /// Makes a descriptor number valid, with nothing ready on it.
    pub fn open(&mut self, fd: RawFd) {
        self.open.insert(fd, 0);
    }

    /// Closes a descriptor behind the loop's back; a watched one then reports `POLLNVAL`.
    pub fn close(&mut self, fd: RawFd) {
        self.open.remove(&fd);
    }

    /// Sets what is ready on a descriptor now.
    pub fn set_ready(&mut self, fd: RawFd, mask: u32) {
        if let Some(ready) = self.open.get_mut(&fd) {
            *ready = mask;
        }
    }

    /// Lets something happen `delay_ns` from now.
    pub fn schedule(&mut self, delay_ns: u64, action: Action) {
        self.scripted += 1;
        self.script
            .insert((self.now_ns + delay_ns, self.scripted), action);
    }

    /// The next number of the seeded sequence.
    pub fn random(&mut self) -> u64 {
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        self.random.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn strikes(&mut self, fault: u8) -> bool {
        fault != 0 && (self.random() >> 56) < fault as u64
    }

    pub(super) fn forget_all(&mut self) {
        self.watched.clear();
    }

    pub(super) fn check(&self, fd: RawFd) -> Result<(), Errno> {
        self.open.get(&fd).map(drop).ok_or(Errno::EBADF)
    }

    pub(super) fn add(&mut self, fd: RawFd, mask: u32, data: u64) -> Result<(), Errno> {
        self.check(fd)?;
        if self.strikes(self.faults.refuse) {
            return Err(Errno::ENOMEM);
        }
        let before = self.watched.insert(fd, Watched { mask, data });
        assert!(
            before.is_none(),
            "seed {}: fd {fd} is added twice",
            self.seed
        );
        Ok(())
    }

    pub(super) fn modify(&mut self, fd: RawFd, mask: u32, data: u64) -> Result<(), Errno> {
        let watched = self.watched.get_mut(&fd).ok_or(Errno::ENOENT)?;
        *watched = Watched { mask, data };
        Ok(())
    }

    pub(super) fn remove(&mut self, fd: RawFd) {
        let watched = self.watched.remove(&fd);
        assert!(
            watched.is_some(),
            "seed {}: fd {fd} is removed twice",
            self.seed
        );
    }

    /// Does what was scripted up to now. Returns whether anything was sent.
    fn act(&mut self) -> bool {
        let mut sent = false;
        while let Some(entry) = self.script.first_entry()
            && entry.key().0 <= self.now_ns
        {
            match entry.remove() {
                Action::Ready(fd, mask) => self.set_ready(fd, mask),
                Action::Send(sender) => {
                    sender.send();
                    sent = true;
                }
            }
        }
        sent
    }

    fn collect(&mut self) {
        for (fd, watched) in &self.watched {
            let ready = match self.open.get(fd) {
                Some(ready) => ready & (watched.mask | POLLERR | POLLHUP),
                None => POLLNVAL,
            };
            if ready != 0 {
                self.batch.push((ready, watched.data));
            }
        }
        // Kernels promise no order.
        for last in (1..self.batch.len()).rev() {
            let other = self.random() as usize % (last + 1);
            self.batch.swap(last, other);
        }
        self.batch.truncate(BATCH);
    }

    pub(super) fn wait(&mut self, timeout: Timeout) -> Result<(), Errno> {
        self.batch.clear();
        if self.strikes(self.faults.break_down) {
            return Err(Errno::EBADF);
        }
        let deadline = timeout.map(|timeout| self.now_ns.saturating_add(timeout));
        loop {
            let sent = self.act();
            self.collect();
            if sent || !self.batch.is_empty() || deadline.is_some_and(|at| at <= self.now_ns) {
                return Ok(());
            }
            let next = self.script.keys().next().map(|key| key.0);
            let until = deadline.into_iter().chain(next).min();
            let until = until.unwrap_or_else(|| {
                panic!(
                    "seed {}: the loop sleeps and nothing will ever wake it",
                    self.seed
                )
            });
            let interrupted = self.strikes(self.faults.interrupt);
            if interrupted || self.strikes(self.faults.spurious) {
                self.now_ns += self.random() % (until - self.now_ns);
                return if interrupted {
                    Err(Errno::EINTR)
                } else {
                    Ok(())
                };
            }
            self.now_ns = until;
        }
    }

    pub(super) fn batch(&self) -> &[(u32, u64)] {
        &self.batch
    }

    pub(super) fn batch_mut(&mut self) -> &mut Vec<(u32, u64)> {
        &mut self.batch
    }
}
