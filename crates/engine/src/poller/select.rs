//! select(2): the poller owns the set, as three bit arrays, for descriptors below FD_SETSIZE.
//!
//! select reports only "readable", "writable" and "exceptional". It reports errors as readable and
//! writable, and a hang-up, or a peer that has stopped sending, as readable only, so a watcher
//! without interest in reading does not learn of them. select finds the ready descriptors, and one
//! poll(2) of these, which does not sleep, finds their readiness. A watcher with interest in
//! disconnection only is also woken by data, and the loop turns until the program reads them:
//! select has no narrower interest.

use super::{Batch, Capability, Registration, bits};
use crate::mailbox::Mailbox;
use crate::readiness::{Interest, Readiness};
use blacklight_sys::fallible::Arc;
use blacklight_sys::poll::{poll, pollfd};
use blacklight_sys::select::{FD_SETSIZE, FdSet, select};
use blacklight_sys::signal::SignalSet;
use blacklight_sys::{Errno, RawFd, Timeout, fd};

/// `EINVAL` for descriptors that do not fit into a set.
pub(super) fn check(fd: RawFd) -> Result<(), Errno> {
    match usize::try_from(fd) {
        Err(_) => Err(Errno::EBADF),
        Ok(fd) if fd >= FD_SETSIZE => Err(Errno::EINVAL),
        Ok(_) => Ok(()),
    }
}

/// Whether this mechanism can do something.
pub(super) fn can(_what: Capability) -> bool {
    false
}

#[derive(Debug)]
pub(crate) struct Select {
    mailbox: Arc<Mailbox>,
    read: FdSet,
    write: FdSet,
    except: FdSet,
    /// The interest and word of each descriptor; the interest is empty if it is not watched.
    watched: Vec<(Interest, u64)>,
    count: usize,
    /// The descriptors that select has found, for poll.
    found: Vec<pollfd>,
}

impl Select {
    pub(super) fn new(mailbox: Arc<Mailbox>) -> Result<Select, Errno> {
        let wake = mailbox.waker.fd();
        check(wake)?;
        let mut read = FdSet::new();
        read.insert(wake);
        let mut watched = Vec::new();
        watched.try_reserve_exact(FD_SETSIZE)?;
        watched.resize(FD_SETSIZE, (Interest::NONE, 0));
        let mut found = Vec::new();
        found.try_reserve_exact(FD_SETSIZE)?;
        Ok(Select {
            mailbox,
            read,
            write: FdSet::new(),
            except: FdSet::new(),
            watched,
            count: 0,
            found,
        })
    }

    pub(super) fn add(&mut self, wanted: Registration) -> Result<(), Errno> {
        check(wanted.fd)?;
        // select would fail for all descriptors at once.
        if !fd::is_open(wanted.fd) {
            return Err(Errno::EBADF);
        }
        self.count += 1;
        self.modify(wanted)
    }

    pub(super) fn modify(&mut self, wanted: Registration) -> Result<(), Errno> {
        let Registration { fd, interest, .. } = wanted;
        let put = |set: &mut FdSet, on: bool| match on {
            true => set.insert(fd),
            false => set.remove(fd),
        };
        let reads =
            interest.contains(Interest::READABLE) || interest.contains(Interest::DISCONNECT);
        put(&mut self.read, reads);
        put(&mut self.write, interest.contains(Interest::WRITABLE));
        put(&mut self.except, interest.contains(Interest::PRIORITIZED));
        self.watched[fd as usize] = (interest, wanted.data);
        Ok(())
    }

    pub(super) fn remove(&mut self, fd: RawFd) {
        self.read.remove(fd);
        self.write.remove(fd);
        self.except.remove(fd);
        self.watched[fd as usize] = (Interest::NONE, 0);
        self.count -= 1;
    }

    pub(super) fn is_idle(&self) -> bool {
        self.count == 0
    }

    /// The watched descriptors, and the word of each.
    fn watched_fds(&self) -> impl Iterator<Item = (RawFd, u64)> + '_ {
        let all = self.watched.iter().enumerate();
        all.filter(|(_, (interest, _))| !interest.is_empty())
            .map(|(fd, &(_, data))| (fd as RawFd, data))
    }

    pub(super) fn wait(
        &mut self,
        timeout: Timeout,
        blocked: Option<&SignalSet>,
        batch: &mut Batch,
    ) -> Result<(), Errno> {
        let wake = self.mailbox.waker.fd();
        let top = self
            .watched_fds()
            .last()
            .map_or(wake, |(fd, ..)| fd.max(wake))
            + 1;
        let (mut read, mut write, mut except) = (self.read, self.write, self.except);
        match select(top, &mut read, &mut write, &mut except, timeout, blocked) {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(Errno::EBADF) => return self.find_closed(batch),
            Err(error) => return Err(error),
        }
        if read.contains(wake) {
            self.mailbox.waker.drain();
        }
        self.found.clear();
        let ready = |fd| read.contains(fd) || write.contains(fd) || except.contains(fd);
        self.found.extend(
            self.watched
                .iter()
                .enumerate()
                .filter(|&(fd, (interest, _))| !interest.is_empty() && ready(fd as RawFd))
                .map(|(fd, &(interest, _))| pollfd {
                    fd: fd as RawFd,
                    events: bits::of(interest) as i16,
                    revents: 0,
                }),
        );
        poll(&mut self.found, Some(0), None)?;
        let watched = &self.watched;
        let event = |found: &pollfd| {
            let bits = found.revents as u16 as u32;
            (bits::readiness(bits), watched[found.fd as usize].1)
        };
        let found = self.found.iter();
        batch.extend(found.filter(|found| found.revents != 0).map(event));
        Ok(())
    }

    /// The program has closed a watched descriptor, and select does not report which: finds it.
    #[cold]
    fn find_closed(&self, batch: &mut Batch) -> Result<(), Errno> {
        if !fd::is_open(self.mailbox.waker.fd()) {
            return Err(Errno::EBADF);
        }
        let closed = self.watched_fds().filter(|&(fd, ..)| !fd::is_open(fd));
        batch.extend(closed.map(|(_, data)| (Readiness::CLOSED, data)));
        Ok(())
    }
}
