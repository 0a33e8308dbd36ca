//! Handing writes to the kernel.
//!
//! A write is tried at once if none is before it. What the kernel does not take is queued and
//! written when the poller says that there is room. Writes that are queued behind each other go in
//! one call, and a flush makes a bounded number of calls.

use super::state::Channel;
use super::{Engine, Streams};
use crate::driver::Pending;
use crate::list::List;
use crate::progress::Budget;
use crate::readiness::Interest;
use crate::slab::Key;
use blacklight_sys::buffer::Buffers;
use blacklight_sys::stream::Transport;
use blacklight_sys::{Errno, RawFd, poll, socket, stream};

impl Engine {
    /// Writes what can be written of the queue.
    pub(super) fn flush_writes(&mut self, index: u32) {
        let mut budget = Budget::FULL;
        while let Some(write) = self.stream(index).output.queue.first()
            && !budget.is_spent()
        {
            budget.spend(1);
            match self.transmit_or_wait(index, write) {
                Ok(written) => self.count_off(index, written),
                Err(error) if error.is_full() => break,
                Err(error) => {
                    self.finish_write(index, write, Err(error));
                    // Each write behind it is tried by itself.
                    if !self.stream(index).output.queue.is_empty() {
                        let watcher = self.stream(index).watcher;
                        self.driver.feed(watcher, Pending::Fed);
                    }
                    return;
                }
            }
        }
        if !self.stream(index).output.queue.is_empty() {
            self.await_room(index);
        }
    }

    /// As [`transmit_queue`](Engine::transmit_queue). A stream that was asked to block waits until
    /// the kernel has room.
    fn transmit_or_wait(&mut self, index: u32, write: u32) -> Result<usize, Errno> {
        loop {
            match self.transmit_queue(index, write) {
                Err(error) if error.is_full() && self.blocks(index) => {
                    self.wait_writable(index).map_err(|_| error)?;
                }
                written => return written,
            }
        }
    }

    /// Takes bytes that have been written off the front of the queue. Each write that has been
    /// written whole ends; an empty one ends when it was tried itself, or when bytes behind it went.
    fn count_off(&mut self, index: u32, mut written: usize) {
        while let Some(write) = self.stream(index).output.queue.first() {
            let entry = &mut self.streams.writes[write];
            // Even where no byte went: more empty buffers may lie before the first one than the
            // kernel looks at.
            let own = entry.advance(written);
            let is_whole = entry.buffers.bytes() == 0;
            self.count_written(index, own);
            written -= own;
            if is_whole {
                self.finish_write(index, write, Ok(()));
            }
            if written == 0 {
                return;
            }
        }
    }

    /// Counts bytes as no longer queued.
    pub(super) fn count_written(&mut self, stream: u32, bytes: usize) {
        if bytes > 0 {
            let entry = self.stream_mut(stream);
            entry.output.queued_bytes -= bytes;
            self.streams.note_progress(stream);
        }
    }

    /// Asks the poller to say when the queue can be written.
    pub(super) fn await_room(&mut self, index: u32) {
        let watcher = self.stream(index).watcher;
        if let Err(error) = self.driver.want(watcher, Interest::WRITABLE) {
            self.fail_writes(index, error);
            self.driver.feed(watcher, Pending::Fed);
        }
    }

    /// Waits until the kernel has room, for a stream whose descriptor blocks.
    fn wait_writable(&self, index: u32) -> Result<(), Errno> {
        match poll::wait_writable(self.raw_fd(index)?) {
            Err(Errno::EINTR) => Ok(()),
            waited => waited,
        }
    }

    /// One attempt to write.
    #[inline]
    pub(super) fn transmit(
        &mut self,
        channel: Channel,
        buffers: &Buffers,
        passes: Option<Key>,
    ) -> Result<usize, Errno> {
        let passed = passes.map(|key| self.passable_fd(key)).transpose()?;
        let bytes = buffers.bytes();
        let written =
            (self.driver).write(channel.fd, bytes, |len| send(channel, buffers, passed, len));
        self.transmitted(channel, written)
    }

    /// One attempt to write what is left of a queued write, and of those behind it.
    fn transmit_queue(&mut self, index: u32, write: u32) -> Result<usize, Errno> {
        let channel = self.stream(index).channel()?;
        let entry = &self.streams.writes[write];
        let (passes, bytes) = (entry.passes, entry.buffers.bytes());
        let passed = passes.map(|key| self.passable_fd(key)).transpose()?;
        let streams = &self.streams;
        let written = (self.driver).write(channel.fd, bytes, |len| {
            streams.send_queue(channel, write, passed, len)
        });
        self.transmitted(channel, written)
    }

    /// Notes what an attempt to write says about the descriptor.
    #[inline]
    fn transmitted(
        &mut self,
        channel: Channel,
        written: Result<usize, Errno>,
    ) -> Result<usize, Errno> {
        match written {
            Ok(_) => self.driver.saw_write(channel.watcher),
            // The kernel will say when there is room.
            Err(Errno::EAGAIN) => self.driver.used_up(channel.watcher, Interest::WRITABLE),
            Err(_) => {}
        }
        written
    }
}

/// Writes `len` bytes, and passes a descriptor with them if there is one.
#[inline]
fn send(
    channel: Channel,
    buffers: &Buffers,
    passed: Option<RawFd>,
    len: usize,
) -> Result<usize, Errno> {
    let Channel { fd, transport, .. } = channel;
    if let Some(passed) = passed {
        return socket::send_with_descriptor(fd, buffers, passed);
    }
    match len < buffers.bytes() {
        true => stream::write_part(fd, buffers, transport, len),
        false => stream::write(fd, buffers, transport),
    }
}

impl Streams {
    /// As [`send`], from this write on.
    fn send_queue(
        &self,
        channel: Channel,
        write: u32,
        passed: Option<RawFd>,
        len: usize,
    ) -> Result<usize, Errno> {
        let entry = &self.writes[write];
        let is_whole = passed.is_none() && len == entry.buffers.bytes();
        let joins = channel.transport == Transport::Socket;
        let queue = self.slab[entry.stream].output.queue;
        if joins && is_whole && queue.len() > 1 {
            match self.send_joined(channel, queue) {
                // One of the writes points to memory that is not mapped. The others must not fail
                // with it.
                Err(Errno::EFAULT) => {}
                written => return written,
            }
        }
        send(channel, &entry.buffers, passed, len)
    }

    /// Writes the queue, up to a write that passes a handle.
    fn send_joined(&self, channel: Channel, queue: List) -> Result<usize, Errno> {
        let joined = (queue.entries(&self.writes)).take_while(|write| write.passes.is_none());
        let buffers = joined.map(|write| &write.buffers);
        stream::write_joined(channel.fd, buffers, channel.transport)
    }
}
