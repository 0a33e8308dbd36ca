//! Reading.
//!
//! The front end finds room when [`Event::Read`] tells it to, and calls [`Engine::stream_read`], which
//! makes one system call. What the call found decides whether the turn tells the front end to read
//! again (`turn.rs`). [`Engine::stream_try_read`] reads at any other time and leaves the turn alone.

use super::state::{Channel, Input};
use super::{Arrivals, Engine, Streams};
use crate::driver::Driver;
use crate::event::Event;
use crate::handle::HandleKind;
use crate::readiness::Interest;
use crate::slab::Key;
use blacklight_sys::buffer::Space;
use blacklight_sys::fd::Descriptor;
use blacklight_sys::stream::Transport;
use blacklight_sys::{Errno, RawFd, poll, socket, stream};

impl Engine {
    /// Starts reading: [`Event::Read`] follows whenever there is something. `ENOTCONN` if
    /// the stream cannot be read from, `EALREADY` if it is reading.
    ///
    /// While a stream was stopped, the program may have put another file under its descriptor, so
    /// the kernel is asked about the descriptor anew.
    pub fn read_start(&mut self, key: Key) -> Result<(), Errno> {
        let handle = self.start_reading(key, Driver::want_anew)?;
        self.handles.set_active(handle, true);
        Ok(())
    }

    /// As [`read_start`](Engine::read_start), but the handle does not become active, for a front
    /// end that has a reason of its own to keep the loop alive. Such a
    /// front end never exchanges the file under the descriptor, so stopping and starting again costs
    /// no system call.
    pub fn read_start_quietly(&mut self, key: Key) -> Result<(), Errno> {
        self.start_reading(key, Driver::want).map(drop)
    }

    fn start_reading(
        &mut self,
        key: Key,
        want: impl FnOnce(&mut Driver, u32, Interest) -> Result<(), Errno>,
    ) -> Result<u32, Errno> {
        let index = self.open_stream(key)?;
        let stream = self.stream(index);
        if stream.input.is_reading() {
            return Err(Errno::EALREADY);
        }
        if !stream.input.is_open() {
            return Err(Errno::ENOTCONN);
        }
        let (handle, watcher) = (stream.handle, stream.watcher);
        want(&mut self.driver, watcher, Interest::READABLE)?;
        self.stream_mut(index).input.start();
        Ok(handle)
    }

    /// Stops reading. A stream that does not read stays as it is.
    pub fn read_stop(&mut self, key: Key) {
        if let Ok(index) = self.open_stream(key)
            && self.stream(index).input.is_reading()
        {
            self.stop_reading(index);
        }
    }

    fn stop_reading(&mut self, index: u32) {
        let stream = self.stream_mut(index);
        stream.input.stop();
        let (handle, watcher) = (stream.handle, stream.watcher);
        self.driver.unwant(watcher, Interest::READABLE);
        self.handles.set_active(handle, false);
    }

    /// Reads once into `room`, in answer to [`Event::Read`]. `EAGAIN` means that there was
    /// nothing after all; `EOF` and all other errors, that reading has stopped.
    #[inline]
    pub fn stream_read<'a>(
        &mut self,
        key: Key,
        room: impl Into<Space<'a>>,
    ) -> Result<usize, Errno> {
        let index = self.open_stream(key)?;
        if !self.stream(index).input.is_reading() {
            return Err(Errno::EAGAIN);
        }
        let room = room.into();
        let wanted = room.len();
        match self.receive(index, room) {
            Ok(0) => {
                self.end(index);
                Err(Errno::EOF)
            }
            Ok(count) => {
                // A second read of a descriptor that blocks might block.
                let filled = count == wanted && !self.blocks(index);
                self.note_read(index, filled);
                Ok(count)
            }
            Err(Errno::EAGAIN) => {
                self.note_nothing_read(index);
                Err(Errno::EAGAIN)
            }
            Err(Errno::EIO) if self.is_hung_up_terminal(index) => {
                self.end(index);
                Err(Errno::EOF)
            }
            Err(error) => {
                self.fail_reading(index);
                Err(error)
            }
        }
    }

    /// Reads once into `room`, at any time. Zero is the end; `EAGAIN` means that there is
    /// nothing to read: start reading to hear when there is. `ENOTCONN` if the stream cannot be
    /// read from.
    pub fn stream_try_read<'a>(
        &mut self,
        key: Key,
        room: impl Into<Space<'a>>,
    ) -> Result<usize, Errno> {
        let index = self.readable_stream(key)?;
        let result = self.receive(index, room.into());
        self.tried_to_read(index, result)
    }

    /// As [`stream_try_read`](Engine::stream_try_read) on a Unix socket, with the descriptors
    /// that come along.
    pub fn stream_try_read_descriptors<'a>(
        &mut self,
        key: Key,
        room: impl Into<Space<'a>>,
        take: impl FnMut(Descriptor),
    ) -> Result<usize, Errno> {
        let index = self.readable_stream(key)?;
        let fd = self.raw_fd(index)?;
        let result = self.driver.read(fd, room.into(), |room| {
            socket::receive_with_descriptors(fd, room, take)
        });
        self.tried_to_read(index, result)
    }

    /// As [`stream_try_read`](Engine::stream_try_read) on a socket, but leaves the bytes there.
    pub fn stream_peek<'a>(
        &mut self,
        key: Key,
        room: impl Into<Space<'a>>,
    ) -> Result<usize, Errno> {
        let index = self.readable_stream(key)?;
        let Channel { fd, watcher, .. } = self.stream(index).channel()?;
        let result = (self.driver).read(fd, room.into(), |room| socket::peek(fd, room));
        if result == Err(Errno::EAGAIN) {
            self.driver
                .used_up(watcher, Interest::READABLE | Interest::PRIORITIZED);
        }
        self.tried_to_read(index, result)
    }

    fn readable_stream(&self, key: Key) -> Result<u32, Errno> {
        let index = self.open_stream(key)?;
        let stream = self.stream(index);
        if !stream.input.is_open() {
            return Err(Errno::ENOTCONN);
        }
        // A descriptor that blocks is read only if there is something.
        match self.blocks(index) && !self.is_ready_to_read(index)? {
            true => Err(Errno::EAGAIN),
            false => Ok(index),
        }
    }

    /// Whether the stream is a pipe handle on a terminal whose other side no process has open any
    /// more. The kernel then fails reads with `EIO`, once everything has been read. A socket's
    /// error is never an end: what came before a reset may be incomplete.
    #[cold]
    fn is_hung_up_terminal(&self, index: u32) -> bool {
        let stream = self.stream(index);
        let is_device = stream.transport == Transport::Device && stream.kind == HandleKind::Pipe;
        let Ok(fd) = self.raw_fd(index) else {
            return false;
        };
        is_device && poll::has_only_hung_up(fd)
    }

    fn is_ready_to_read(&self, index: u32) -> Result<bool, Errno> {
        poll::is_readable(self.raw_fd(index)?)
    }

    fn tried_to_read(&mut self, index: u32, result: Result<usize, Errno>) -> Result<usize, Errno> {
        match result {
            Ok(_) | Err(Errno::EAGAIN) => {}
            Err(Errno::EIO) if self.is_hung_up_terminal(index) => return Ok(0),
            Err(_) => self.fail_reading(index),
        }
        result
    }

    #[inline]
    fn receive(&mut self, index: u32, room: Space<'_>) -> Result<usize, Errno> {
        let stream = self.stream(index);
        let passes_handles = stream.arrivals == Arrivals::BytesAndHandles;
        let Channel {
            fd,
            transport,
            watcher,
        } = stream.channel()?;
        if passes_handles && transport.is_socket() {
            return self.receive_passed(fd, index, room);
        }
        let mut wanted = 0;
        let result = self.driver.read(fd, room, |room| {
            wanted = room.len();
            stream::read(fd, room, transport)
        });
        if result.is_ok() {
            self.driver.saw_read(watcher, index);
        }
        match result {
            Ok(count) if count < wanted => self.driver.read_short(watcher),
            Err(Errno::EAGAIN) => self
                .driver
                .used_up(watcher, Interest::READABLE | Interest::PRIORITIZED),
            _ => {}
        }
        result
    }

    /// Reads from a pipe for passing handles, and keeps those that come along.
    fn receive_passed(&mut self, fd: RawFd, index: u32, room: Space<'_>) -> Result<usize, Errno> {
        let Streams { slab, extras, .. } = &mut self.streams;
        let stream = &mut slab[index];
        // Every pipe that passes handles is made with an `Extra`.
        let extra = &mut extras[stream.extra];
        let keep = |passed| match stream.accepted {
            None => stream.accepted = Some(passed),
            Some(_) => extra.passed.push_back(passed),
        };
        self.driver.read(fd, room, |room| {
            socket::receive_with_descriptors(fd, room, keep)
        })
    }

    fn end(&mut self, index: u32) {
        self.stop_reading(index);
        self.stream_mut(index).input = Input::Ended;
    }

    pub(super) fn end_of_stream(&mut self, index: u32) -> Event {
        self.end(index);
        let token = self.handles[self.stream(index).handle].token;
        Event::ReadEnd(token, Errno::EOF)
    }

    /// Stops reading after an error other than the end. Nothing can be read or written any more.
    fn fail_reading(&mut self, index: u32) {
        self.stop_reading(index);
        self.stream_mut(index).close();
    }

    pub(super) fn read_failed(&mut self, index: u32, error: Errno) -> Event {
        self.fail_reading(index);
        let token = self.handles[self.stream(index).handle].token;
        Event::ReadEnd(token, error)
    }
}
