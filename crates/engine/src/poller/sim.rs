//! A kernel simulated from a seed: time, readiness and faults, all repeatable.
//!
//! Simulated descriptors are numbers that [`Sim::open`] has made valid, each with a mask of its
//! readiness. Time stands still while the program runs and advances only in waits: to the end of
//! the time-out, or to the next scripted [`Action`], whichever is first. Nothing here depends on the
//! real clock, on addresses or on the order of threads, so the same program with the same seed takes
//! the same steps.
//!
//! Streams, datagrams and children need real descriptors. After [`Sim::use_kernel`] the simulation
//! asks the kernel for their readiness, by epoll and without waiting, so that edge-triggered and
//! one-shot registrations work as usual; and every call on a socket asks [`Sim`] first how much of
//! the call may be done. Steps stay repeatable with sockets that use no network, such as Unix sockets
//! and pipes. Other threads and signals wake the loop too, and are not repeatable.
//!
//! A loop spins here if [a sleep has a price](Sim::set_price_of_sleep). Spinning advances simulated
//! time: a little with each poll and each pause, and sometimes as much as if another thread had
//! run on the processor.
//!
//! A [`Tally`] counts the features that were used, so that a test can check its own coverage.

use super::epoll::Epoll;
use super::{BATCH, Batch, Capability, Registration, bits};
use crate::mailbox::{Mailbox, Sender};
use crate::readiness::{Readiness, Trigger};
use blacklight_sys::fallible::Arc;
use blacklight_sys::poll::{POLLHUP, poll, pollfd};
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
    /// Events of the real kernel are reported late.
    pub delay: u8,
    /// A call on a socket fails with `EAGAIN`, although it could be done.
    pub again: u8,
    /// A call on a socket does less than it could.
    pub shorten: u8,
    /// A call on a socket fails for want of descriptors or memory.
    pub exhaust: u8,
    /// A call on a socket finds its connection broken or refused.
    pub reset: u8,
}

/// The calls on sockets, which differ in the errors of their faults.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Call {
    Accept,
    Connect,
    Read,
    Write,
    /// Datagrams.
    Receive,
    Send,
}

impl Call {
    /// The errors of a call for want of descriptors or memory.
    fn exhausted(self) -> &'static [Errno] {
        match self {
            Call::Accept => &[Errno::EMFILE, Errno::ENFILE, Errno::ENOMEM],
            Call::Connect => &[Errno::EAGAIN, Errno::ENOBUFS],
            _ => &[Errno::ENOBUFS, Errno::ENOMEM],
        }
    }

    /// The errors of a call whose connection is broken or refused.
    fn broken(self) -> &'static [Errno] {
        match self {
            Call::Accept => &[Errno::ECONNABORTED],
            Call::Connect | Call::Receive | Call::Send => &[Errno::ECONNREFUSED],
            Call::Read => &[Errno::ECONNRESET, Errno::ETIMEDOUT],
            Call::Write => &[Errno::ECONNRESET, Errno::EPIPE],
        }
    }
}

/// How long a wait waits for the real kernel, where nothing else can end the wait.
const KERNEL_NS: u64 = 10_000_000_000;

/// A scripted action, which happens at a given time.
#[derive(Clone, Debug)]
pub enum Action {
    /// Sets a descriptor's readiness, in the bits of poll(2).
    Ready(RawFd, u32),
    /// Another thread sends to an async handle.
    Send(Sender),
}

/// One poll or pause in this many takes [`LONG_NS`].
const SELDOM: u64 = 64;

/// How long a poll or pause takes if another thread had the processor.
const LONG_NS: u64 = 300_000;

/// The longest delay of events.
const DELAY_NS: u64 = 100_000;

#[derive(Clone, Copy, Debug)]
struct Watched {
    wanted: Registration,
    /// Whether the real kernel watches the descriptor.
    is_real: bool,
    /// The descriptor is one-shot and has been reported.
    is_spent: bool,
}

/// How often a loop has used features that only some pollers have.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Tally {
    /// Descriptors were registered edge-triggered.
    pub edges: u64,
    /// Descriptors changed from edge-triggered to level-triggered, as flows do.
    pub flows: u64,
    /// Descriptors changed from level-triggered to edge-triggered.
    pub ends_of_flows: u64,
    /// Descriptors were registered as one-shot.
    pub one_shots: u64,
    /// One-shot descriptors were reported, and then removed without a system call.
    pub forgotten: u64,
    /// Calls on edge-triggered descriptors failed with `EAGAIN` by a fault.
    pub renewed_edges: u64,
    /// Spins found an event of the poller.
    pub spins_that_paid: u64,
    /// A send came while the loop spun.
    pub sends_while_spinning: u64,
    /// The loop slept after a spin.
    pub vain_spins: u64,
}

impl Tally {
    fn counts(&mut self) -> [&mut u64; 9] {
        [
            &mut self.edges,
            &mut self.flows,
            &mut self.ends_of_flows,
            &mut self.one_shots,
            &mut self.forgotten,
            &mut self.renewed_edges,
            &mut self.spins_that_paid,
            &mut self.sends_while_spinning,
            &mut self.vain_spins,
        ]
    }

    /// Adds the counts of another loop.
    pub fn add(&mut self, other: &Tally) {
        let mut other = *other;
        for (sum, count) in self.counts().into_iter().zip(other.counts()) {
            *sum += *count;
        }
    }

    /// Whether every feature has been used.
    pub fn is_complete(mut self) -> bool {
        self.counts().into_iter().all(|count| *count > 0)
    }
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
    mailbox: Arc<Mailbox>,
    /// The real kernel, if it is used.
    kernel: Option<Epoll>,
    /// Real descriptors with an injected `EAGAIN`, whose readiness the kernel has to report again.
    to_renew: Vec<RawFd>,
    /// The processor time that a sleep costs.
    price_ns: u64,
    /// The processor time that all sleeps have cost.
    cpu_ns: u64,
    /// How long each poll and each pause takes, if that is not random.
    moment_ns: Option<u64>,
    is_spinning: bool,
    tally: Tally,
}

impl Sim {
    pub(super) fn new(seed: u64, mailbox: Arc<Mailbox>) -> Sim {
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
            mailbox,
            kernel: None,
            to_renew: Vec::new(),
            price_ns: 0,
            cpu_ns: 0,
            moment_ns: None,
            is_spinning: false,
            tally: Tally::default(),
        }
    }

    pub(super) fn seed(&self) -> u64 {
        self.seed
    }

    /// The simulated time.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Advances time outside of a wait, as a slow callback does. Actions that come due meanwhile
    /// happen before the loop polls.
    pub fn advance(&mut self, ns: u64) {
        self.now_ns += ns;
    }

    /// Sets how often the kernel misbehaves.
    pub fn set_faults(&mut self, faults: Faults) {
        self.faults = faults;
    }

    /// From now on, descriptors that have not been [opened](Sim::open) here are real.
    pub fn use_kernel(&mut self) {
        self.kernel = Epoll::new(&self.mailbox).ok();
        assert!(self.kernel.is_some(), "there is no epoll instance");
    }

    pub(super) fn uses_kernel(&self) -> bool {
        self.kernel.is_some()
    }

    /// Sets the processor time that a sleep costs, so that it may pay to spin. The default is zero.
    pub fn set_price_of_sleep(&mut self, ns: u64) {
        self.price_ns = ns;
    }

    /// Sets how long each poll and each pause takes, in place of a random time.
    pub fn set_moment(&mut self, ns: u64) {
        self.moment_ns = Some(ns);
    }

    /// Whether the simulated kernel can do this.
    pub(super) fn can(&self, what: Capability) -> bool {
        match what {
            Capability::Edges | Capability::Errors => self.uses_kernel(),
            Capability::CheapLooks => self.may_spin(),
        }
    }

    /// Whether spinning can pay.
    pub(super) fn may_spin(&self) -> bool {
        self.price_ns != 0
    }

    /// The features that the loop has used so far.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// The simulated processor time of the thread.
    pub(super) fn thread_cpu_ns(&self) -> u64 {
        self.cpu_ns
    }

    /// Makes a descriptor number valid, with nothing ready on it.
    pub fn open(&mut self, fd: RawFd) {
        self.open.insert(fd, 0);
    }

    /// Closes a descriptor without the loop's knowledge; a watched one then reports `POLLNVAL`.
    pub fn close(&mut self, fd: RawFd) {
        self.open.remove(&fd);
    }

    /// Sets the readiness of a descriptor, in the bits of poll(2).
    pub fn set_ready(&mut self, fd: RawFd, mask: u32) {
        if let Some(ready) = self.open.get_mut(&fd) {
            *ready = mask;
        }
    }

    /// Schedules an action `delay_ns` from now.
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
        self.to_renew.clear();
        if self.uses_kernel() {
            self.use_kernel();
        }
    }

    pub(super) fn check(&self, fd: RawFd) -> Result<(), Errno> {
        match (self.open.contains_key(&fd), &self.kernel) {
            (true, _) => Ok(()),
            (false, Some(kernel)) => kernel.check(fd),
            (false, None) => Err(Errno::EBADF),
        }
    }

    /// How much of a call on a socket may be done: all of `len`, a part of it, or nothing with an
    /// error.
    #[cold]
    pub(super) fn admit(&mut self, call: Call, fd: RawFd, len: usize) -> Result<usize, Errno> {
        // No kernel returns `EAGAIN` after a hang-up.
        let strikes = call != Call::Connect && self.strikes(self.faults.again);
        if strikes && !self.has_hung_up(fd) {
            self.to_renew.push(fd);
            return Err(Errno::EAGAIN);
        }
        let errors = if self.strikes(self.faults.exhaust) {
            call.exhausted()
        } else if self.strikes(self.faults.reset) {
            call.broken()
        } else {
            &[]
        };
        if !errors.is_empty() {
            return Err(errors[self.random() as usize % errors.len()]);
        }
        if len > 1 && self.strikes(self.faults.shorten) {
            return Ok(1 + self.random() as usize % (len - 1));
        }
        Ok(len)
    }

    fn has_hung_up(&self, fd: RawFd) -> bool {
        let mut fds = [pollfd {
            fd,
            events: 0,
            revents: 0,
        }];
        let asked = poll(&mut fds, Some(0), None);
        assert!(asked.is_ok(), "seed {}: {asked:?}", self.seed);
        fds[0].revents as u16 as u32 & POLLHUP != 0
    }

    pub(super) fn add(&mut self, wanted: Registration) -> Result<(), Errno> {
        let Registration { fd, trigger, .. } = wanted;
        self.check(fd)?;
        if self.strikes(self.faults.refuse) {
            return Err(Errno::ENOMEM);
        }
        let is_real = !self.open.contains_key(&fd);
        match &mut self.kernel {
            Some(kernel) if is_real => kernel.add(wanted)?,
            _ => assert_eq!(
                trigger,
                Trigger::Level,
                "simulated descriptors are level-triggered"
            ),
        }
        self.tally.edges += u64::from(trigger == Trigger::Edge);
        self.tally.one_shots += u64::from(trigger == Trigger::Once);
        let watched = Watched {
            wanted,
            is_real,
            is_spent: false,
        };
        let before = self.watched.insert(fd, watched);
        assert!(
            before.is_none(),
            "seed {}: fd {fd} is added twice",
            self.seed
        );
        Ok(())
    }

    pub(super) fn modify(&mut self, wanted: Registration) -> Result<(), Errno> {
        let watched = (self.watched.get_mut(&wanted.fd)).ok_or(Errno::ENOENT)?;
        if let Some(kernel) = &mut self.kernel
            && watched.is_real
        {
            kernel.modify(wanted)?;
        }
        let was_edge = watched.wanted.trigger == Trigger::Edge;
        match (was_edge, wanted.trigger == Trigger::Edge) {
            (true, false) => self.tally.flows += 1,
            (false, true) => self.tally.ends_of_flows += 1,
            _ => {}
        }
        watched.wanted = wanted;
        watched.is_spent = false;
        Ok(())
    }

    fn take_out(&mut self, fd: RawFd) -> Watched {
        let watched = self.watched.remove(&fd);
        watched.unwrap_or_else(|| panic!("seed {}: fd {fd} is removed twice", self.seed))
    }

    pub(super) fn remove(&mut self, fd: RawFd) {
        if self.take_out(fd).is_real
            && let Some(kernel) = &mut self.kernel
        {
            kernel.remove(fd);
        }
    }

    /// Stops watching a descriptor, which the kernel removes when it is closed.
    pub(super) fn forget(&mut self, fd: RawFd) {
        let watched = self.take_out(fd);
        assert!(
            watched.is_real && watched.is_spent,
            "seed {}: fd {fd} may be reported again",
            self.seed
        );
        if let Some(kernel) = &mut self.kernel {
            kernel.forget();
        }
        self.tally.forgotten += 1;
    }

    /// Runs the actions that are due. Returns whether any of them was a send.
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

    /// Adds ready descriptors to the batch. Returns whether the kernel had an event, or a signal or
    /// another thread has woken the loop.
    fn collect(&mut self, kernel_timeout_ns: u64, batch: &mut Batch) -> bool {
        for (fd, watched) in &self.watched {
            let ready = match self.open.get(fd) {
                Some(&ready) => bits::readiness(ready)
                    .for_interest(watched.wanted.interest)
                    .without(Readiness::CLOSED),
                None if watched.is_real => continue,
                None => Readiness::CLOSED,
            };
            if !ready.is_empty() {
                batch.push((ready, watched.wanted.data));
            }
        }
        let is_woken = self.ask_kernel(kernel_timeout_ns, batch);
        // Kernels guarantee no order.
        for last in (1..batch.len()).rev() {
            let other = self.random() as usize % (last + 1);
            batch.swap(last, other);
        }
        assert!(
            batch.len() <= BATCH,
            "an edge beyond the batch would be lost"
        );
        is_woken
    }

    /// Adds ready real descriptors to the batch. Returns the same as `collect`.
    fn ask_kernel(&mut self, timeout_ns: u64, batch: &mut Batch) -> bool {
        let Some(kernel) = &mut self.kernel else {
            return false;
        };
        for fd in self.to_renew.drain(..) {
            if let Some(watched) = self.watched.get(&fd).filter(|watched| watched.is_real) {
                let renewed = kernel.modify(watched.wanted);
                assert!(renewed.is_ok(), "seed {}: {renewed:?}", self.seed);
                self.tally.renewed_edges += u64::from(watched.wanted.trigger == Trigger::Edge);
            }
        }
        let mut found = Batch::new();
        let is_woken = match kernel.wait(Some(timeout_ns), None, &mut found) {
            Ok(()) => kernel.has_events(),
            Err(Errno::EINTR) => true,
            Err(error) => panic!("seed {}: {error:?}", self.seed),
        };
        // The real kernel's order is not repeatable; this one is.
        found.sort_by_key(|&(_, data)| data);
        for &(_, data) in &found {
            let mut watched = self.watched.values_mut();
            if let Some(watched) = watched.find(|watched| watched.wanted.data == data) {
                watched.is_spent = watched.wanted.trigger == Trigger::Once;
            }
        }
        batch.append(&mut found);
        is_woken
    }

    /// Advances time by the length of a poll or pause.
    fn advance_a_moment(&mut self) {
        let random = self.random() >> 16;
        self.now_ns += match (self.moment_ns, random % SELDOM) {
            (Some(ns), _) => ns,
            (None, 0) => LONG_NS,
            (None, _) => 200 + random % 1_000,
        };
    }

    /// Polls without waiting.
    pub(super) fn look(&mut self, batch: &mut Batch) -> Result<(), Errno> {
        self.advance_a_moment();
        if self.strikes(self.faults.break_down) {
            return Err(Errno::EBADF);
        }
        self.act();
        if !self.strikes(self.faults.delay) {
            self.collect(0, batch);
        }
        if !batch.is_empty() && std::mem::take(&mut self.is_spinning) {
            self.tally.spins_that_paid += 1;
        }
        Ok(())
    }

    /// One pause of a spin.
    pub(super) fn pause(&mut self) {
        self.advance_a_moment();
        self.is_spinning = true;
        if self.act() {
            self.tally.sends_while_spinning += 1;
        }
    }

    pub(super) fn wait(&mut self, timeout: Timeout, batch: &mut Batch) -> Result<(), Errno> {
        let has_spun = std::mem::take(&mut self.is_spinning);
        if self.strikes(self.faults.break_down) {
            return Err(Errno::EBADF);
        }
        if timeout != Some(0) {
            self.tally.vain_spins += u64::from(has_spun);
            self.cpu_ns += self.price_ns;
        }
        let deadline = timeout.map(|timeout| self.now_ns.saturating_add(timeout));
        if self.strikes(self.faults.delay) {
            let until = self.now_ns + self.random() % DELAY_NS;
            self.now_ns = deadline.map_or(until, |deadline| deadline.min(until));
            if deadline == Some(self.now_ns) {
                self.act();
                return Ok(());
            }
        }
        loop {
            let sent = self.act();
            let is_woken = self.collect(0, batch) || sent;
            if is_woken || !batch.is_empty() || deadline.is_some_and(|at| at <= self.now_ns) {
                return Ok(());
            }
            let next = self.script.keys().next().map(|key| key.0);
            let Some(until) = deadline.into_iter().chain(next).min() else {
                // Packets, children and other threads may still wake the loop.
                let is_woken = self.collect(KERNEL_NS, batch);
                assert!(
                    is_woken || !batch.is_empty(),
                    "seed {}: the loop sleeps and nothing will ever wake it",
                    self.seed
                );
                return Ok(());
            };
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
}
