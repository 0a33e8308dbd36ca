//! select(2): we keep the set, as three bit arrays, for descriptors below FD_SETSIZE.
//!
//! select tells only "readable", "writable" and "exceptional". Errors show as both of the first;
//! a hang-up, and a peer that has stopped sending, as the first alone, so a watcher that does not
//! want to read is not told of them. select finds who has something to report, and one poll(2)
//! of those alone, which does not sleep, finds out what. A watcher that asks for nothing but disconnection is also woken by data, and the
//! loop turns until somebody reads them: select cannot be asked for less.

use super::Batch;
use crate::mailbox::Mailbox;
use blacklight_sys::fallible::Arc;
use blacklight_sys::poll::{POLLIN, POLLNVAL, POLLOUT, POLLPRI, POLLRDHUP, poll, pollfd};
use blacklight_sys::select::{FD_SETSIZE, FdSet, select};
use blacklight_sys::signal::SignalSet;
use blacklight_sys::{Errno, RawFd, Timeout, fd};

/// Refuses descriptors that do not fit into a set with `EINVAL`.
pub(super) fn check(fd: RawFd) -> Result<(), Errno> {
    match usize::try_from(fd) {
        Err(_) => Err(Errno::EBADF),
        Ok(fd) if fd >= FD_SETSIZE => Err(Errno::EINVAL),
        Ok(_) => Ok(()),
    }
}

#[derive(Debug)]
pub(crate) struct Select {
    mailbox: Arc<Mailbox>,
    read: FdSet,
    write: FdSet,
    except: FdSet,
    /// Each watched descriptor's mask, or zero, and its word.
    watched: Vec<(u32, u64)>,
    count: usize,
    /// Those that select has found, for poll.
    found: Vec<pollfd>,
}

impl Select {
    pub(super) fn new(mailbox: Arc<Mailbox>) -> Result<Select, Errno> {
        let wake = mailbox.eventfd.fd();
        check(wake)?;
        let mut read = FdSet::new();
        read.insert(wake);
        let mut watched = Vec::new();
        watched.try_reserve_exact(FD_SETSIZE)?;
        watched.resize(FD_SETSIZE, (0, 0));
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

    pub(super) fn add(&mut self, fd: RawFd, mask: u32, data: u64) -> Result<(), Errno> {
        check(fd)?;
        // What select would say about all descriptors at once, said about this one.
        if !fd::is_open(fd) {
            return Err(Errno::EBADF);
        }
        self.count += 1;
        self.modify(fd, mask, data)
    }

    pub(super) fn modify(&mut self, fd: RawFd, mask: u32, data: u64) -> Result<(), Errno> {
        let put = |set: &mut FdSet, on: bool| match on {
            true => set.insert(fd),
            false => set.remove(fd),
        };
        put(&mut self.read, mask & (POLLIN | POLLRDHUP) != 0);
        put(&mut self.write, mask & POLLOUT != 0);
        put(&mut self.except, mask & POLLPRI != 0);
        self.watched[fd as usize] = (mask, data);
        Ok(())
    }

    pub(super) fn remove(&mut self, fd: RawFd) {
        self.read.remove(fd);
        self.write.remove(fd);
        self.except.remove(fd);
        self.watched[fd as usize] = (0, 0);
        self.count -= 1;
    }

    pub(super) fn is_idle(&self) -> bool {
        self.count == 0
    }

    fn watched_fds(&self) -> impl Iterator<Item = (RawFd, u32, u64)> + '_ {
        let all = self.watched.iter().enumerate();
        all.filter(|(_, (mask, _))| *mask != 0)
            .map(|(fd, &(mask, data))| (fd as RawFd, mask, data))
    }

    pub(super) fn wait(
        &mut self,
        timeout: Timeout,
        blocked: Option<&SignalSet>,
        batch: &mut Batch,
    ) -> Result<(), Errno> {
        let wake = self.mailbox.eventfd.fd();
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
            self.mailbox.eventfd.drain();
        }
        self.found.clear();
        let ready = |fd| read.contains(fd) || write.contains(fd) || except.contains(fd);
        self.found.extend(
            self.watched
                .iter()
                .enumerate()
                .filter(|&(fd, (mask, _))| *mask != 0 && ready(fd as RawFd))
                .map(|(fd, (mask, _))| pollfd {
                    fd: fd as RawFd,
                    events: *mask as i16,
                    revents: 0,
                }),
        );
        poll(&mut self.found, Some(0), None)?;
        let watched = &self.watched;
        let tell = |found: &pollfd| (found.revents as u16 as u32, watched[found.fd as usize].1);
        let found = self.found.iter();
        batch.extend(found.filter(|found| found.revents != 0).map(tell));
        Ok(())
    }

    /// Somebody closed a watched descriptor behind our back, and select will not say which.
    #[cold]
    fn find_closed(&self, batch: &mut Batch) -> Result<(), Errno> {
        if !fd::is_open(self.mailbox.eventfd.fd()) {
            return Err(Errno::EBADF);
        }
        let closed = self.watched_fds().filter(|&(fd, ..)| !fd::is_open(fd));
        batch.extend(closed.map(|(_, _, data)| (POLLNVAL, data)));
        Ok(())
    }
}
