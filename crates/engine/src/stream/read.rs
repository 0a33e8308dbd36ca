//! Reading.

use super::{Engine, MAX_PER_TURN, Streams};
use crate::event::Event;
use crate::poller::Call;
use crate::slab::Key;
use blacklight_sys::buffer::Room;
use blacklight_sys::poll::POLLIN;
use blacklight_sys::stream::Transport;
use blacklight_sys::{Errno, socket, stream};

impl Engine {
    /// Starts reading: [`Event::Read`] follows whenever there is something. `ENOTCONN` if
    /// the stream cannot be read from, `EALREADY` if it is reading.
    pub fn read_start(&mut self, key: Key) -> Result<(), Errno> {
        let index = self.open_stream(key)?;
        let stream = self.stream(index);
        if stream.reading {
            return Err(Errno::EALREADY);
        }
        if !stream.readable {
            return Err(Errno::ENOTCONN);
        }
        let (handle, watcher) = (stream.handle, stream.watcher);
        self.io_want(watcher, POLLIN)?;
        self.stream_mut(index).reading = true;
        self.handles.set_active(handle, true);
        Ok(())
    }

    /// Stops reading. A stream that does not read stays as it is.
    pub fn read_stop(&mut self, key: Key) {
        if let Ok(index) = self.open_stream(key)
            && self.stream(index).reading
        {
            self.stop_reading(index);
        }
    }

    fn stop_reading(&mut self, index: u32) {
        let stream = self.stream_mut(index);
        stream.reading = false;
        let (handle, watcher) = (stream.handle, stream.watcher);
        self.io_unwant(watcher, POLLIN);
        self.handles.set_active(handle, false);
    }

    /// Reads once into `room`, in answer to [`Event::Read`]. `EAGAIN` means that there was
    /// nothing after all; `EOF` and all other errors, that reading has stopped.
    pub fn stream_read(&mut self, key: Key, room: Room<'_>) -> Result<usize, Errno> {
        let index = self.open_stream(key)?;
        if !self.stream(index).reading {
            return Err(Errno::EAGAIN);
        }
        let wanted = room.len();
        match self.receive(index, room) {
            Ok(0) => {
                self.end(index);
                Err(Errno::EOF)
            }
            Ok(count) => {
                let stream = self.stream_mut(index);
                // A descriptor that blocks is read when the poller says so only. One that is
                // hung up gives all it has, even where the kernel gives it piece by piece, as
                // it does when descriptors are passed.
                stream.more = count == wanted && !stream.blocking || stream.hung_up;
                stream.nearly_ended = stream.hung_up && count < wanted;
                Ok(count)
            }
            Err(Errno::EAGAIN) => {
                self.stream_mut(index).dry = true;
                Err(Errno::EAGAIN)
            }
            Err(_) if self.stream(index).nearly_ended => {
                self.end(index);
                Err(Errno::EOF)
            }
            Err(error) => {
                self.fail_reading(index);
                Err(error)
            }
        }
    }

    fn receive(&mut self, index: u32, room: Room<'_>) -> Result<usize, Errno> {
        let fd = self.raw_fd(index)?;
        let admitted = self.poller.admit(Call::Read, fd, room.len())?;
        let room = &mut room[..admitted];
        let stream = self.stream(index);
        if !stream.ipc || stream.transport != Transport::Socket {
            return stream::read(fd, room);
        }
        let Streams { slab, extras, .. } = &mut self.streams;
        let stream = &mut slab[index];
        // A pipe for passing was made with it.
        let extra = &mut extras[stream.extra];
        socket::receive_with_descriptors(fd, room, |passed| match stream.accepted {
            None => stream.accepted = Some(passed),
            Some(_) => extra.passed.push_back(passed),
        })
    }

    fn end(&mut self, index: u32) {
        self.stream_mut(index).ended = true;
        self.stop_reading(index);
    }

    pub(super) fn end_of_stream(&mut self, index: u32) -> Event {
        self.end(index);
        let token = self.handles[self.stream(index).handle].token;
        Event::ReadEnd(token, Errno::EOF)
    }

    /// An error that is not the end is the end of both directions.
    fn fail_reading(&mut self, index: u32) {
        let stream = self.stream_mut(index);
        stream.readable = false;
        stream.writable = false;
        self.stop_reading(index);
    }

    pub(super) fn read_failed(&mut self, index: u32, error: Errno) -> Event {
        self.fail_reading(index);
        let token = self.handles[self.stream(index).handle].token;
        Event::ReadEnd(token, error)
    }
}

const _: () = assert!(
    MAX_PER_TURN > 1,
    "a stream that fills its room is read again at once"
);
