//! A kernel made up from a seed: time, readiness and faults, all repeatable.
//!
//! Descriptors are numbers that [`Sim::open`] has been told of, with a mask of what is
//! ready on each. Time stands still while the program runs and moves only in waits: to
//! the end of the time-out, or to the next scripted [`Action`], whichever is first. Nothing
//! here depends on the real clock, on addresses or on the order of threads, so the same
//! program with the same seed takes the same steps.
//!
//! Streams and datagrams need sockets that carry bytes. After [`Sim::use_kernel`] those are
//! the real kernel's: it is asked what is ready, without waiting, and every call on a socket
//! asks here first how much of it may be done. Sockets that never leave the process by way of
//! a network, as Unix sockets and pipes do not, keep the steps repeatable.

use super::{BATCH, Batch};
use crate::wakeup::Sender;
use blacklight_sys::poll::{POLLERR, POLLHUP, POLLNVAL, poll, pollfd};
use blacklight_sys::{Errno, RawFd, Timeout, fd};
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
    /// A call on a socket is told to come again (`EAGAIN`), although it could be done.
    pub again: u8,
    /// A call on a socket does less than it could.
    pub shorten: u8,
    /// A call on a socket fails for want of descriptors or memory.
    pub exhaust: u8,
    /// A call on a socket finds its connection broken or refused.
    pub reset: u8,
}

/// The calls on sockets, as far as they fail in ways of their own.
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
    /// What a call fails with when something has run out.
    fn exhausted(self) -> &'static [Errno] {
        match self {
            Call::Accept => &[Errno::EMFILE, Errno::ENFILE, Errno::ENOMEM],
            Call::Connect => &[Errno::EAGAIN, Errno::ENOBUFS],
            _ => &[Errno::ENOBUFS, Errno::ENOMEM],
        }
    }

    /// What a call fails with when the other end is not what it was.
    fn broken(self) -> &'static [Errno] {
        match self {
            Call::Accept => &[Errno::ECONNABORTED],
            Call::Connect | Call::Receive | Call::Send => &[Errno::ECONNREFUSED],
            Call::Read => &[Errno::ECONNRESET, Errno::ETIMEDOUT],
            Call::Write => &[Errno::ECONNRESET, Errno::EPIPE],
        }
    }
}

/// How long the real kernel is waited for, where nothing else can end a wait.
const KERNEL_NS: u64 = 10_000_000_000;

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
    uses_kernel: bool,
    /// The real descriptors that were last seen hung up.
    hung_up: Vec<RawFd>,
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
            uses_kernel: false,
            hung_up: Vec::new(),
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

    /// From now on, descriptors that have not been [opened](Sim::open) here are the real
    /// kernel's.
    pub fn use_kernel(&mut self) {
        self.uses_kernel = true;
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
        match self.open.contains_key(&fd) {
            true => Ok(()),
            false if self.uses_kernel => fd::check_pollable(fd),
            false => Err(Errno::EBADF),
        }
    }

    /// How much of a call on a socket is to be done: all of `len`, or a part of it, or
    /// nothing for a reason.
    #[cold]
    pub(super) fn admit(&mut self, call: Call, fd: RawFd, len: usize) -> Result<usize, Errno> {
        // What has hung up has an end; no kernel says that more may come.
        let never_again = call == Call::Connect || self.hung_up.contains(&fd);
        if !never_again && self.strikes(self.faults.again) {
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

    fn collect(&mut self, kernel_timeout_ns: u64, batch: &mut Batch) {
        for (fd, watched) in &self.watched {
            let ready = match self.open.get(fd) {
                Some(ready) => ready & (watched.mask | POLLERR | POLLHUP),
                None if self.uses_kernel => continue,
                None => POLLNVAL,
            };
            if ready != 0 {
                batch.push((ready, watched.data));
            }
        }
        if self.uses_kernel {
            self.ask_kernel(kernel_timeout_ns, batch);
        }
        // Kernels promise no order.
        for last in (1..batch.len()).rev() {
            let other = self.random() as usize % (last + 1);
            batch.swap(last, other);
        }
        batch.truncate(BATCH);
    }

    /// Adds what is ready in the real kernel.
    fn ask_kernel(&mut self, timeout_ns: u64, batch: &mut Batch) {
        let real = || {
            let watched = self.watched.iter();
            watched.filter(|(fd, _)| !self.open.contains_key(fd))
        };
        let question = |(&fd, watched): (&RawFd, &Watched)| pollfd {
            fd,
            events: watched.mask as i16,
            revents: 0,
        };
        let mut fds: Vec<pollfd> = real().map(question).collect();
        let asked = poll(&mut fds, Some(timeout_ns), None);
        assert!(asked.is_ok(), "seed {}: {asked:?}", self.seed);
        let hung_up = fds
            .iter()
            .filter(|fd| fd.revents as u16 as u32 & POLLHUP != 0);
        self.hung_up = hung_up.map(|fd| fd.fd).collect();
        let answers = fds.iter().zip(real());
        let answers = answers.map(|(fd, (_, watched))| (fd.revents as u16 as u32, watched.data));
        batch.extend(answers.filter(|&(ready, _)| ready != 0));
    }

    pub(super) fn wait(&mut self, timeout: Timeout, batch: &mut Batch) -> Result<(), Errno> {
        if self.strikes(self.faults.break_down) {
            return Err(Errno::EBADF);
        }
        let deadline = timeout.map(|timeout| self.now_ns.saturating_add(timeout));
        loop {
            let sent = self.act();
            self.collect(0, batch);
            if sent || !batch.is_empty() || deadline.is_some_and(|at| at <= self.now_ns) {
                return Ok(());
            }
            let next = self.script.keys().next().map(|key| key.0);
            let Some(until) = deadline.into_iter().chain(next).min() else {
                // Packets may still be on their way.
                self.collect(KERNEL_NS, batch);
                assert!(
                    !batch.is_empty(),
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
