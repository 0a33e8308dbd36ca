//! Receiving datagrams, and the errors of datagrams sent earlier.

use super::{Engine, Receiving};
use crate::driver::Driver;
use crate::event::Event;
use crate::progress::Budget;
use crate::readiness::Interest;
use crate::slab::Key;
use blacklight_sys::Errno;
use blacklight_sys::buffer::{Room, Space};
use blacklight_sys::datagram::{self, Datagram, Inbox, Report, SenderRoom};
use blacklight_sys::socket::AF_INET;
use std::mem::MaybeUninit;

impl Engine {
    /// Starts receiving: [`Event::Receive`] follows whenever the socket is readable. If the handle
    /// has no socket, makes one first, bound to a port of the kernel's choice. `EALREADY` if the
    /// handle is receiving.
    ///
    /// While a handle was stopped, the program may have put another socket under its descriptor, so
    /// the kernel is asked about the descriptor anew.
    pub fn udp_receive_start(&mut self, key: Key) -> Result<(), Errno> {
        self.start_receiving(key, Receiving::Yes, Driver::want_anew)
    }

    /// As [`udp_receive_start`](Engine::udp_receive_start), but the handle does not become
    /// active, for a front end that keeps the loop alive by other means. Such a front end never
    /// exchanges the socket.
    pub fn udp_receive_start_quietly(&mut self, key: Key) -> Result<(), Errno> {
        self.start_receiving(key, Receiving::Quietly, Driver::want)
    }

    fn start_receiving(
        &mut self,
        key: Key,
        how: Receiving,
        want: impl FnOnce(&mut Driver, u32, Interest) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let index = self.open_udp(key)?;
        if self.is_receiving(index) {
            return Err(Errno::EALREADY);
        }
        self.udp_ensure_bound(index, AF_INET, false)?;
        let watcher = self.udp(index).watcher;
        want(&mut self.driver, watcher, Interest::READABLE)?;
        self.udp_mut(index).receiving = how;
        self.udp_update_active(index);
        Ok(())
    }

    /// Stops receiving. A handle that does not receive stays as it is.
    pub fn udp_receive_stop(&mut self, key: Key) {
        if let Ok(index) = self.open_udp(key)
            && self.is_receiving(index)
        {
            self.stop_receiving(index);
        }
    }

    fn stop_receiving(&mut self, index: u32) {
        let udp = self.udp_mut(index);
        udp.receiving = Receiving::No;
        let watcher = udp.watcher;
        self.driver.unwant(watcher, Interest::READABLE);
        self.udp_update_active(index);
    }

    /// The handle; `EAGAIN` if it is not receiving.
    fn receiving_udp(&self, key: Key) -> Result<u32, Errno> {
        match self.open_udp(key) {
            Ok(index) if self.is_receiving(index) => Ok(index),
            _ => Err(Errno::EAGAIN),
        }
    }

    /// Receives one datagram into `room`, in answer to [`Event::Receive`]. `EAGAIN` means that there
    /// is none. Other errors are those of datagrams sent earlier.
    pub fn udp_receive<'a, 'b>(
        &mut self,
        key: Key,
        room: impl Into<Space<'b>>,
        sender: &'a mut SenderRoom,
    ) -> Result<Datagram<'a>, Errno> {
        let index = self.receiving_udp(key)?;
        let result = self.receive_one(index, room.into(), sender);
        self.note_received(index, u32::from(result.is_ok()));
        result
    }

    /// Receives one datagram into `room`, at any time. `EAGAIN` means that there is none: start
    /// receiving to be notified of the next.
    pub fn udp_try_receive<'a, 'b>(
        &mut self,
        key: Key,
        room: impl Into<Space<'b>>,
        sender: &'a mut SenderRoom,
    ) -> Result<Datagram<'a>, Errno> {
        let index = self.open_udp(key)?;
        self.receive_one(index, room.into(), sender)
    }

    #[inline]
    fn receive_one<'a>(
        &mut self,
        index: u32,
        room: Space<'_>,
        sender: &'a mut SenderRoom,
    ) -> Result<Datagram<'a>, Errno> {
        let socket = self.udp_socket(index)?;
        let (fd, is_quick) = (socket.fd.raw(), socket.is_quick);
        self.driver
            .receive(fd, 1, |_| datagram::receive(fd, room, is_quick, sender))
    }

    /// As [`udp_receive`](Engine::udp_receive), for several datagrams at once: `room` is cut
    /// into pieces of `chunk` bytes. Returns how many datagrams are in the `inbox`.
    pub fn udp_receive_batch(
        &mut self,
        key: Key,
        room: Room<'_>,
        chunk: usize,
        inbox: &mut Inbox,
    ) -> Result<usize, Errno> {
        let index = self.receiving_udp(key)?;
        let fd = self.udp_raw_fd(index)?;
        let pieces = room.len() / chunk.max(1);
        let result = self.driver.receive(fd, pieces, |pieces| {
            let len = room.len().min(pieces * chunk);
            inbox.receive(fd, &mut room[..len], chunk)
        });
        self.note_received(index, result.map_or(0, |count| count as u32));
        result
    }

    /// Takes the next error off the socket's error queue, in answer to [`Event::ReceiveError`], with
    /// as much of the failed datagram as fits into `room`. `EAGAIN` means that there is none.
    pub fn udp_receive_error(&mut self, key: Key, room: Room<'_>) -> Result<Report, Errno> {
        let index = self.receiving_udp(key)?;
        let fd = self.udp_raw_fd(index)?;
        let result = datagram::receive_error(fd, room);
        self.note_received(index, u32::from(result.is_ok()));
        result
    }

    /// Discards queued errors if the handle does not receive and has queued sends. A socket stays
    /// ready while it has errors, so that the loop would turn in vain.
    #[cold]
    pub(super) fn discard_errors(&mut self, index: u32) {
        if self.is_receiving(index) || self.udp(index).queue.is_empty() {
            return;
        }
        let mut room = [MaybeUninit::uninit(); 1];
        for _ in 0..Budget::MAX {
            let Ok(fd) = self.udp_raw_fd(index) else {
                return;
            };
            if datagram::receive_error(fd, &mut room).is_err() {
                return;
            }
        }
    }

    /// Stops receiving because the descriptor is unusable.
    pub(super) fn receiving_failed(&mut self, index: u32, error: Errno) -> Option<Event> {
        if !self.is_receiving(index) {
            return None;
        }
        self.stop_receiving(index);
        let token = self.handles[self.udp(index).handle].token;
        Some(Event::ReceiveEnd(token, error))
    }
}
