//! Sending datagrams.
//!
//! A datagram is sent at once if the handle has no other send. Datagrams that follow before the
//! first has been reported are queued and sent together in the next pending phase; those that the
//! kernel has no room for wait for the poller. So a handle with sends in either list is fed, waits
//! for writability, or has the current cursor.
//!
//! Finished sends are reported in pending phases, of which a turn has a bounded number, and a flush
//! makes a bounded number of calls. So a program that sends again from each callback, or queues very
//! many datagrams, does not starve other handles.

use super::{Engine, Udp, Udps};
use crate::driver::Pending;
use crate::event::{Event, Token};
use crate::list::{Links, linked};
use crate::progress::Budget;
use crate::readiness::Interest;
use crate::slab::Key;
use blacklight_sys::buffer::Buffers;
use blacklight_sys::datagram::{self, AddressRef, BATCH, Outbox};
use blacklight_sys::socket::Address;
use blacklight_sys::{Errno, RawFd};
use std::io::IoSlice;

#[derive(Debug)]
pub(super) struct Send {
    token: Token,
    bytes: usize,
    /// `None` once the datagram has been sent or has failed.
    buffers: Option<Buffers>,
    to: Option<Address>,
    result: Result<(), Errno>,
    links: Links,
}

linked!(Send, links);

impl Engine {
    /// Checks that the handle can send to this destination. If it has no socket, makes one.
    fn prepare_to_send(&mut self, index: u32, to: Option<AddressRef<'_>>) -> Result<(), Errno> {
        match (self.udp(index).is_connected(), to) {
            (true, Some(_)) => Err(Errno::EISCONN),
            (false, None) => Err(Errno::EDESTADDRREQ),
            (true, None) => self.udp_raw_fd(index).map(drop),
            (false, Some(to)) => self.udp_ensure_bound(index, to.family(), false),
        }
    }

    /// Counts a new send as a request.
    fn count_send(&mut self, index: u32, bytes: usize) {
        let udp = self.udp_mut(index);
        udp.queued_bytes += bytes;
        let handle = udp.handle;
        self.handles.set_active(handle, true);
        self.requests.begin();
    }

    /// Sends a datagram, to `to` or to the peer that the handle is connected to, if it can be sent
    /// at once. [`Event::Send`] then follows with `token`, and the buffers are no longer needed. If
    /// not, returns false: use [`udp_send_later`](Engine::udp_send_later) then.
    ///
    /// `EISCONN` if the handle is connected and there is a destination, `EDESTADDRREQ` if
    /// neither is so. If the handle has no socket, makes one, bound to a port of the kernel's
    /// choice.
    pub fn udp_send(
        &mut self,
        key: Key,
        token: Token,
        buffers: &Buffers,
        to: Option<AddressRef<'_>>,
    ) -> Result<bool, Errno> {
        let index = self.open_udp(key)?;
        self.prepare_to_send(index, to)?;
        let udp = self.udp(index);
        if udp.has_sends() {
            return Ok(false);
        }
        let fd = self.udp_raw_fd(index)?;
        let bytes = buffers.bytes();
        // Memory for the report is allocated first, since sending cannot be undone.
        let send = self.udps.sends.insert(Send {
            token,
            bytes,
            buffers: None,
            to: None,
            result: Ok(()),
            links: Links::NONE,
        })?;
        match self.driver.send(fd, 1, |_| datagram::send(fd, buffers, to)) {
            Ok(_) => {}
            Err(error) if error.is_full() => {
                self.udps.sends.remove(send.index);
                return Ok(false);
            }
            Err(error) => self.udps.sends[send.index].result = Err(error),
        }
        self.count_send(index, bytes);
        let Udps { slab, sends } = &mut self.udps;
        let udp = &mut slab[index];
        udp.done.push_back(sends, send.index);
        let watcher = udp.watcher;
        self.driver.feed(watcher, Pending::Fed);
        Ok(true)
    }

    /// Queues a datagram after all others. [`Event::Send`] follows with `token`. Errors are those of
    /// [`udp_send`](Engine::udp_send).
    pub fn udp_send_later(
        &mut self,
        key: Key,
        token: Token,
        buffers: Buffers,
        to: Option<AddressRef<'_>>,
    ) -> Result<(), Errno> {
        let index = self.open_udp(key)?;
        self.prepare_to_send(index, to)?;
        let bytes = buffers.bytes();
        let send = self.udps.sends.insert(Send {
            token,
            bytes,
            buffers: Some(buffers),
            to: to.map(AddressRef::to_address),
            result: Ok(()),
            links: Links::NONE,
        })?;
        let udp = self.udp(index);
        let watcher = udp.watcher;
        if !udp.has_sends() {
            // The handle has no other sends, so `udp_send` has failed for want of room.
            if let Err(error) = self.driver.want(watcher, Interest::WRITABLE) {
                self.udps.sends.remove(send.index);
                return Err(error);
            }
        } else if !self.driver.wanted(watcher).contains(Interest::WRITABLE) {
            self.driver.feed(watcher, Pending::Fed);
        }
        self.count_send(index, bytes);
        let Udps { slab, sends } = &mut self.udps;
        slab[index].queue.push_back(sends, send.index);
        Ok(())
    }

    /// Sends a datagram if it can be sent at once. Returns its length in bytes. `EAGAIN` if it
    /// cannot, or if other sends have not been reported yet.
    pub fn udp_try_send(
        &mut self,
        key: Key,
        buffers: &Buffers,
        to: Option<AddressRef<'_>>,
    ) -> Result<usize, Errno> {
        let index = self.open_udp(key)?;
        self.prepare_to_send(index, to)?;
        let fd = self.udp_free_fd(index)?;
        let sent = self.driver.send(fd, 1, |_| datagram::send(fd, buffers, to));
        sent.map_err(Errno::full_is_again)
    }

    /// As [`udp_try_send`](Engine::udp_try_send), from slices.
    pub fn udp_try_send_slices(
        &mut self,
        key: Key,
        slices: &[IoSlice<'_>],
        to: Option<&Address>,
    ) -> Result<usize, Errno> {
        let to = to.map(AddressRef::from);
        Buffers::lend(slices, |buffers| self.udp_try_send(key, buffers, to))
    }

    /// Requests one [`Event::Writable`], which follows when all sends are reported and the kernel has
    /// room. The request does not keep the loop alive.
    pub fn udp_want_writable(&mut self, key: Key) -> Result<(), Errno> {
        let index = self.open_udp(key).map_err(|_| Errno::EBADF)?;
        self.driver
            .want(self.udp(index).watcher, Interest::WRITABLE)?;
        self.udp_mut(index).wants_writable_event = true;
        Ok(())
    }

    /// Sends as many of the datagrams as can be sent at once, and returns how many. An error is that
    /// of the first datagram. `EINVAL` if the handle has no socket. The caller ensures that
    /// destinations are given if and only if the handle is not
    /// [connected](Engine::udp_is_connected).
    pub fn udp_try_send_batch(
        &mut self,
        key: Key,
        outbox: &mut Outbox<'_>,
    ) -> Result<usize, Errno> {
        let index = self.open_udp(key)?;
        self.udp_raw_fd(index).map_err(|_| Errno::EINVAL)?;
        let fd = self.udp_free_fd(index)?;
        let sent = self.driver.send(fd, outbox.len(), |count| {
            outbox.truncate(count);
            outbox.send(fd)
        });
        sent.map_err(Errno::full_is_again)
    }

    /// The socket; `EAGAIN` if there are sends that a new datagram would overtake.
    fn udp_free_fd(&self, index: u32) -> Result<RawFd, Errno> {
        if self.udp(index).has_sends() {
            return Err(Errno::EAGAIN);
        }
        self.udp_raw_fd(index)
    }

    /// How many sends have not been reported yet, and how many bytes they have.
    pub fn udp_send_queue(&self, key: Key) -> (usize, usize) {
        let Ok(index) = self.open_udp(key) else {
            return (0, 0);
        };
        let (sends, bytes) = self.udp(index).sends();
        (sends as usize, bytes)
    }

    /// Sends as much of the queue as possible.
    #[inline]
    pub(super) fn flush_sends(&mut self, index: u32) {
        if !self.udp(index).queue.is_empty() {
            self.flush_queue(index);
        }
    }

    /// Out of line, since a batch takes much stack, and most sends need no batch.
    #[inline(never)]
    fn flush_queue(&mut self, index: u32) {
        let Ok(fd) = self.udp_raw_fd(index) else {
            return;
        };
        let mut budget = Budget::FULL;
        while !self.udp(index).queue.is_empty() {
            if budget.is_spent() {
                // The kernel has room, so the poller need not be asked, and may not know the socket.
                self.driver.feed(self.udp(index).watcher, Pending::Fed);
                return;
            }
            budget.spend(1);
            match self.send_batch(index, fd) {
                Ok(sent) => self.finish_sends(index, sent, Ok(())),
                Err(error) if error.is_full() => return self.await_room_to_send(index),
                // The error is that of the first datagram; the others are tried again.
                Err(error) => self.finish_sends(index, 1, Err(error)),
            }
        }
    }

    /// Waits for the poller to report room for the queue.
    fn await_room_to_send(&mut self, index: u32) {
        let watcher = self.udp(index).watcher;
        if let Err(error) = self.driver.want(watcher, Interest::WRITABLE) {
            self.fail_sends(index, error);
        }
    }

    /// Sends a batch from the front of the queue by one call. Returns how many were sent.
    fn send_batch(&mut self, index: u32, fd: RawFd) -> Result<usize, Errno> {
        let Udps { slab, sends } = &self.udps;
        self.driver.send(fd, BATCH, |count| {
            let mut outbox = Outbox::new();
            for send in slab[index].queue.entries(sends).take(count) {
                if let Some(buffers) = &send.buffers {
                    outbox.push(buffers, send.to.as_ref().map(AddressRef::from));
                }
            }
            debug_assert!(!outbox.is_empty(), "a queued send has buffers");
            outbox.send(fd)
        })
    }

    /// Moves sends from the front of the queue to the list `done`.
    fn finish_sends(&mut self, index: u32, count: usize, result: Result<(), Errno>) {
        let Udps { slab, sends } = &mut self.udps;
        let Udp { queue, done, .. } = &mut slab[index];
        for _ in 0..count {
            let Some(send) = queue.pop_front(sends) else {
                return;
            };
            sends[send].result = result;
            sends[send].buffers = None;
            done.push_back(sends, send);
        }
    }

    /// Finishes all queued sends with an error.
    pub(super) fn fail_sends(&mut self, index: u32, error: Errno) {
        let count = self.udp(index).queue.len() as usize;
        self.finish_sends(index, count, Err(error));
    }

    /// Removes the next finished send and returns its event.
    pub(super) fn report_send(&mut self, index: u32) -> Option<Event> {
        let Udps { slab, sends } = &mut self.udps;
        let udp = &mut slab[index];
        let send = udp.done.pop_front(sends)?;
        let Send {
            token,
            bytes,
            result,
            ..
        } = sends[send];
        sends.remove(send);
        udp.queued_bytes -= bytes;
        self.requests.end();
        Some(Event::Send(token, result, bytes))
    }

    /// Ends a turn's reports: stops waiting for room if nothing is queued, and returns
    /// [`Event::Writable`] if the front end has requested it.
    pub(super) fn after_reports(&mut self, index: u32) -> Option<Event> {
        let udp = self.udp(index);
        let is_free = udp.queue.is_empty();
        if is_free {
            self.driver.unwant(udp.watcher, Interest::WRITABLE);
        }
        self.udp_update_active(index);
        let udp = self.udp_mut(index);
        let tells = is_free && udp.done.is_empty() && std::mem::take(&mut udp.wants_writable_event);
        tells.then(|| Event::Writable(self.handles[self.udp(index).handle].token))
    }
}
