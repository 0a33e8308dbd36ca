//! poll(2): the poller owns the set, as an array, and passes all of it to the kernel on each wait.
//!
//! The first entry of the array is the mailbox's waker. `places` finds a descriptor's entry.
//! Removing an entry moves the last one into its place.

use super::{BATCH, Batch, Capability, Registration, bits};
use crate::mailbox::Mailbox;
use crate::readiness::Interest;
use blacklight_sys::fallible::{self, Arc};
use blacklight_sys::poll::{poll, pollfd};
use blacklight_sys::signal::SignalSet;
use blacklight_sys::{Errno, RawFd, Timeout};

const NOWHERE: u32 = u32::MAX;

/// Whether this mechanism can do something.
pub(super) fn can(what: Capability) -> bool {
    what == Capability::Errors
}

#[derive(Debug)]
pub(crate) struct Poll {
    mailbox: Arc<Mailbox>,
    fds: Vec<pollfd>,
    data: Vec<u64>,
    /// The index of each descriptor's entry.
    places: Vec<u32>,
    /// Where the next batch starts, so that no descriptor starves when batches are full.
    start: usize,
}

fn entry(fd: RawFd, interest: Interest) -> pollfd {
    pollfd {
        fd,
        events: bits::of(interest) as i16,
        revents: 0,
    }
}

impl Poll {
    pub(super) fn new(mailbox: Arc<Mailbox>) -> Result<Poll, Errno> {
        let (mut fds, mut data) = (Vec::new(), Vec::new());
        fallible::push(&mut fds, entry(mailbox.waker.fd(), Interest::READABLE))?;
        fallible::push(&mut data, 0)?;
        Ok(Poll {
            fds,
            data,
            mailbox,
            places: Vec::new(),
            start: 1,
        })
    }

    pub(super) fn add(&mut self, wanted: Registration) -> Result<(), Errno> {
        let at = usize::try_from(wanted.fd).map_err(|_| Errno::EBADF)?;
        self.fds.try_reserve(1)?;
        self.data.try_reserve(1)?;
        if at >= self.places.len() {
            self.places.try_reserve(at + 1 - self.places.len())?;
            self.places.resize(at + 1, NOWHERE);
        }
        debug_assert_eq!(self.places[at], NOWHERE, "{wanted:?} is there already");
        self.places[at] = self.fds.len() as u32;
        self.fds.push(entry(wanted.fd, wanted.interest));
        self.data.push(wanted.data);
        Ok(())
    }

    pub(super) fn modify(&mut self, wanted: Registration) -> Result<(), Errno> {
        let place = self.places[wanted.fd as usize] as usize;
        self.fds[place] = entry(wanted.fd, wanted.interest);
        self.data[place] = wanted.data;
        Ok(())
    }

    pub(super) fn remove(&mut self, fd: RawFd) {
        let place = std::mem::replace(&mut self.places[fd as usize], NOWHERE);
        self.fds.swap_remove(place as usize);
        self.data.swap_remove(place as usize);
        if let Some(moved) = self.fds.get(place as usize) {
            self.places[moved.fd as usize] = place;
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.fds.len() == 1
    }

    pub(super) fn wait(
        &mut self,
        timeout: Timeout,
        blocked: Option<&SignalSet>,
        batch: &mut Batch,
    ) -> Result<(), Errno> {
        if poll(&mut self.fds, timeout, blocked)? == 0 {
            return Ok(());
        }
        if self.fds[0].revents != 0 {
            self.mailbox.waker.drain();
        }
        let watched = self.fds.len() - 1;
        let first = if self.start <= watched { self.start } else { 1 };
        for place in (first..=watched).chain(1..first) {
            if self.fds[place].revents != 0 {
                let found = self.fds[place].revents as u16 as u32;
                batch.push((bits::readiness(found), self.data[place]));
            }
            if batch.len() == BATCH {
                self.start = place + 1;
                break;
            }
        }
        Ok(())
    }
}
