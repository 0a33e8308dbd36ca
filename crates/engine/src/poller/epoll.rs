//! epoll(7): the kernel owns the set, and the cost of a wait grows with the number of events only.
//!
//! The waker is watched edge-triggered: each signal is one event and the counter need
//! never be read, which saves a system call per wake-up.

use super::{BATCH, Batch, Capability, Registration, bits};
use crate::mailbox::Mailbox;
use crate::readiness::{Interest, Trigger};
use blacklight_sys::epoll::{EDGE, Events, ONCE};
use blacklight_sys::signal::SignalSet;
use blacklight_sys::{Errno, RawFd, Timeout, epoll};

/// The word that is registered with the waker.
const WAKE: u64 = u64::MAX;

/// The bits that ask epoll for an interest.
fn mask(interest: Interest, trigger: Trigger) -> u32 {
    let flag = match trigger {
        Trigger::Level => 0,
        Trigger::Edge => EDGE,
        Trigger::Once => ONCE,
    };
    bits::of(interest) | flag
}

/// Whether this mechanism can do something.
pub(super) fn can(what: Capability) -> bool {
    matches!(
        what,
        Capability::Edges | Capability::Errors | Capability::CheapLooks
    )
}

#[derive(Debug)]
pub(crate) struct Epoll {
    epoll: epoll::Epoll,
    events: Events,
    watched: usize,
}

impl Epoll {
    pub(super) fn new(mailbox: &Mailbox) -> Result<Epoll, Errno> {
        let epoll = epoll::Epoll::new()?;
        let wake = mask(Interest::READABLE, Trigger::Edge);
        epoll.add(mailbox.waker.fd(), wake, WAKE)?;
        Ok(Epoll {
            epoll,
            events: Events::with_capacity(BATCH)?,
            watched: 0,
        })
    }

    pub(super) fn fd(&self) -> RawFd {
        self.epoll.fd()
    }

    pub(super) fn check(&self, fd: RawFd) -> Result<(), Errno> {
        match self.epoll.add(fd, 0, WAKE) {
            Ok(()) => self.epoll.delete(fd),
            Err(Errno::EEXIST) => Ok(()),
            refused => refused,
        }
    }

    pub(super) fn add(&mut self, wanted: Registration) -> Result<(), Errno> {
        let Registration { fd, data, .. } = wanted;
        let mask = mask(wanted.interest, wanted.trigger);
        match self.epoll.add(fd, mask, data) {
            // The kernel still watches this number: dup(2) has put the same file behind it again.
            Err(Errno::EEXIST) => self.epoll.modify(fd, mask, data)?,
            added => added?,
        }
        self.watched += 1;
        Ok(())
    }

    pub(super) fn modify(&mut self, wanted: Registration) -> Result<(), Errno> {
        let Registration { fd, data, .. } = wanted;
        let mask = mask(wanted.interest, wanted.trigger);
        match self.epoll.modify(fd, mask, data) {
            // The program closed the descriptor and opened another under the same number.
            Err(Errno::ENOENT) => self.epoll.add(fd, mask, data),
            modified => modified,
        }
    }

    pub(super) fn remove(&mut self, fd: RawFd) {
        // An error means that the descriptor was closed, which has removed it already.
        let _ = self.epoll.delete(fd);
        self.watched -= 1;
    }

    /// A one-shot descriptor has been reported and is closed next: the kernel removes it when its
    /// last copy is closed, and does not report it until then.
    pub(super) fn forget(&mut self) {
        self.watched -= 1;
    }

    pub(super) fn is_idle(&self) -> bool {
        self.watched == 0
    }

    /// Whether the last wait had any event, that of the waker included.
    pub(super) fn has_events(&self) -> bool {
        self.events.iter().next().is_some()
    }

    pub(super) fn wait(
        &mut self,
        timeout: Timeout,
        blocked: Option<&SignalSet>,
        batch: &mut Batch,
    ) -> Result<(), Errno> {
        self.epoll.wait(&mut self.events, timeout, blocked)?;
        let events = self.events.iter().filter(|&(_, data)| data != WAKE);
        batch.extend(events.map(|(mask, data)| (bits::readiness(mask), data)));
        Ok(())
    }
}
