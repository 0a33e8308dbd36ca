//! Making writes: what is tried at once, and what is queued.
//!
//! A write is attempted at once if no other is before it (`flush.rs`). What the kernel does not
//! take waits in `queue` for the poller; a write that has ended waits in `done` to be reported
//! (`finish.rs`), since no request is reported from within the call that made it.

use super::{Arrivals, Engine, Streams};
use crate::event::Token;
use crate::list::{Links, linked};
use crate::readiness::Interest;
use crate::slab::Key;
use blacklight_sys::buffer::Buffers;
use blacklight_sys::{Errno, RawFd, socket};
use std::io::IoSlice;
use std::os::fd::{AsRawFd, BorrowedFd};

#[derive(Debug)]
pub(crate) struct Write {
    pub(super) token: Token,
    pub(super) stream: u32,
    pub(super) buffers: Buffers,
    /// The handle to pass along with the first byte.
    pub(super) passes: Option<Key>,
    pub(super) written: usize,
    /// How it ended. A write that has ended is in `done`, another in `queue`.
    pub(super) outcome: Option<Result<(), Errno>>,
    pub(super) links: Links,
}

linked!(Write, links);

impl Write {
    /// Counts as many of the `written` bytes as belong to this write. Returns how many those are.
    #[inline]
    pub(super) fn advance(&mut self, written: usize) -> usize {
        let own = written.min(self.buffers.bytes());
        self.buffers.advance(own);
        self.written += own;
        if own > 0 {
            self.passes = None;
        }
        own
    }
}

impl Engine {
    /// Writes buffers to the stream, after all that was written before, and passes the handle
    /// `passes` along with them if the stream is a pipe for that. [`Event::Write`](crate::Event::Write) follows
    /// with `token`. `EBADF` without a descriptor, `EPIPE` if the stream is not writable.
    ///
    /// Returns the key of the write, and how many bytes of the stream are now queued.
    #[inline]
    pub fn stream_write(
        &mut self,
        key: Key,
        token: Token,
        mut buffers: Buffers,
        mut passes: Option<Key>,
    ) -> Result<(Key, usize), Errno> {
        let index = self.open_stream(key).map_err(|_| Errno::EBADF)?;
        let stream = self.stream(index);
        let channel = stream.channel()?;
        if !stream.output.is_open {
            return Err(Errno::EPIPE);
        }
        // A stream that is still connecting writes once it is connected.
        let is_first = !stream.has_to_wait();
        self.check_passing(index, passes)?;
        self.streams.writes.make_room()?;
        let sent = match is_first {
            true => self.transmit(channel, &buffers, passes),
            false => Err(Errno::EAGAIN),
        };
        if let Ok(written) = sent {
            buffers.advance(written);
            if written > 0 {
                passes = None;
            }
        }
        let outcome = match sent {
            Ok(_) => (buffers.bytes() == 0).then_some(Ok(())),
            Err(error) if error.is_full() => None,
            Err(error) => Some(Err(error)),
        };
        let write = self.streams.writes.insert(Write {
            token,
            stream: index,
            buffers,
            passes,
            written: sent.unwrap_or(0),
            outcome,
            links: Links::NONE,
        })?;
        self.requests.begin();
        match outcome {
            None => self.enqueue(write.index, is_first, sent.is_ok()),
            Some(Ok(())) => self.complete(index, write.index),
            Some(Err(_)) => {
                self.count_failed_as_queued(write.index);
                self.complete(index, write.index);
            }
        }
        Ok((write, self.stream(index).output.queued_bytes))
    }

    /// As in libuv, a write that failed counts as queued until it is reported.
    #[cold]
    fn count_failed_as_queued(&mut self, write: u32) {
        let Streams { slab, writes, .. } = &mut self.streams;
        let entry = &writes[write];
        slab[entry.stream].output.queued_bytes += entry.buffers.bytes();
    }

    /// Queues the rest of a new write that the kernel has not taken whole.
    fn enqueue(&mut self, write: u32, is_first: bool, has_begun: bool) {
        let Streams { slab, writes, .. } = &mut self.streams;
        let entry = &writes[write];
        let (index, left) = (entry.stream, entry.buffers.bytes());
        let stream = &mut slab[index];
        stream.output.queue.push_back(writes, write);
        stream.output.queued_bytes += left;
        if is_first {
            match has_begun || self.blocks(index) {
                true => self.flush_writes(index),
                false => self.await_room(index),
            }
        }
    }

    /// Whether the handle may be passed over the stream.
    #[inline]
    fn check_passing(&self, index: u32, passes: Option<Key>) -> Result<(), Errno> {
        let Some(passes) = passes else {
            return Ok(());
        };
        if self.stream(index).arrivals != Arrivals::BytesAndHandles {
            return Err(Errno::EINVAL);
        }
        self.passable_fd(passes).map(drop)
    }

    /// The descriptor of a handle that can be passed to another process.
    pub(super) fn passable_fd(&self, key: Key) -> Result<RawFd, Errno> {
        self.stream_fd(key).or_else(|_| self.udp_fd(key))
    }

    /// Whether a write would have to wait for another, or for the connection.
    pub fn stream_has_to_wait(&self, key: Key) -> bool {
        self.open_stream(key)
            .is_ok_and(|index| self.stream(index).has_to_wait())
    }

    /// Writes as much as goes at once. `EAGAIN` if nothing went, or if other writes are waiting.
    pub fn stream_try_write(
        &mut self,
        key: Key,
        buffers: &Buffers,
        passes: Option<Key>,
    ) -> Result<usize, Errno> {
        let index = self.open_stream(key).map_err(|_| Errno::EBADF)?;
        let stream = self.stream(index);
        if stream.has_to_wait() {
            return Err(Errno::EAGAIN);
        }
        let channel = stream.channel()?;
        if !stream.output.is_open {
            return Err(Errno::EPIPE);
        }
        self.check_passing(index, passes)?;
        let written = self.transmit(channel, buffers, passes);
        written.map_err(Errno::full_is_again)
    }

    /// As [`stream_try_write`](Engine::stream_try_write), from slices.
    pub fn stream_try_write_slices(
        &mut self,
        key: Key,
        slices: &[IoSlice<'_>],
    ) -> Result<usize, Errno> {
        Buffers::lend(slices, |buffers| self.stream_try_write(key, buffers, None))
    }

    /// Writes to a Unix socket as much as goes at once, at least one byte, together with a
    /// descriptor, of which the other end gets a copy. `EAGAIN` as
    /// [`stream_try_write`](Engine::stream_try_write).
    pub fn stream_try_write_descriptor(
        &mut self,
        key: Key,
        bytes: &[u8],
        passes: BorrowedFd<'_>,
    ) -> Result<usize, Errno> {
        let index = self.open_stream(key).map_err(|_| Errno::EBADF)?;
        let stream = self.stream(index);
        if stream.has_to_wait() {
            return Err(Errno::EAGAIN);
        }
        if !stream.output.is_open {
            return Err(Errno::EPIPE);
        }
        if bytes.is_empty() {
            return Err(Errno::EINVAL);
        }
        let fd = self.raw_fd(index)?;
        let sent = self.driver.write(fd, bytes.len(), |len| {
            Buffers::lend(&[IoSlice::new(&bytes[..len])], |buffers| {
                socket::send_with_descriptor(fd, buffers, passes.as_raw_fd())
            })
        });
        sent.map_err(Errno::full_is_again)
    }

    /// Has [`Event::Writable`](crate::Event::Writable) follow, once, when all that was queued is written and the kernel
    /// takes more. The handle does not keep the loop alive for it.
    pub fn stream_want_writable(&mut self, key: Key) -> Result<(), Errno> {
        let index = self.open_stream(key).map_err(|_| Errno::EBADF)?;
        self.driver
            .want(self.stream(index).watcher, Interest::WRITABLE)?;
        self.stream_mut(index).output.tells_writable = true;
        Ok(())
    }
}
