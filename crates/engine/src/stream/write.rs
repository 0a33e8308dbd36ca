//! Writing: the queue of requests, and the shutdown that waits for its end.
//!
//! A stream's writes are in one of two lists: `queue`, to be written in order, and `done`, to
//! be reported in order. A write is attempted at once if nothing is before it; what the
//! kernel does not take waits for the poller. Writes that wait behind each other go together.

use super::state::{Channel, Output};
use super::{Arrivals, Engine, Streams};
use crate::driver::{Pending, Way};
use crate::event::{Event, Token};
use crate::list::{Linked, Links, List};
use crate::poller::Call;
use crate::progress::Budget;
use crate::slab::Key;
use blacklight_sys::buffer::Buffers;
use blacklight_sys::poll::{POLLOUT, pollfd};
use blacklight_sys::stream::Transport;
use blacklight_sys::{Errno, RawFd, poll, socket, stream};
use std::io::IoSlice;
use std::os::fd::{AsRawFd, BorrowedFd};

#[derive(Debug)]
pub(crate) struct Write {
    token: Token,
    stream: u32,
    buffers: Buffers,
    /// The handle to pass along with the first byte.
    passes: Option<Key>,
    written: usize,
    /// How it ended. A write that has ended is in `done`, another in `queue`.
    outcome: Option<Result<(), Errno>>,
    links: Links,
}

impl Linked for Write {
    #[inline]
    fn links(&self) -> Links {
        self.links
    }

    #[inline]
    fn links_mut(&mut self) -> &mut Links {
        &mut self.links
    }
}

impl Write {
    /// Counts bytes as written, as many as there are of them. Returns how many.
    #[inline]
    fn advance(&mut self, written: usize) -> usize {
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
    /// Ends a queued write of the stream: its report follows.
    fn finish_write(&mut self, index: u32, write: u32, result: Result<(), Errno>) {
        let Streams { slab, writes, .. } = &mut self.streams;
        slab[index].output.queue.remove(writes, write);
        writes[write].outcome = Some(result);
        self.complete(index, write);
    }

    /// Queues a write of the stream that has ended, and is in no list, to be reported.
    #[inline]
    fn complete(&mut self, index: u32, write: u32) {
        let Streams { slab, writes, .. } = &mut self.streams;
        let stream = &mut slab[index];
        stream.output.done.push_back(writes, write);
        let watcher = stream.watcher;
        if !self.reports_later(index) {
            self.driver.feed(watcher, Pending::Fed);
        }
    }

    /// Counts bytes as no longer queued.
    fn count_written(&mut self, stream: u32, bytes: usize) {
        if bytes > 0 {
            let entry = self.stream_mut(stream);
            entry.output.queued_bytes -= bytes;
            self.streams.note_progress(stream);
        }
    }

    /// Writes buffers to the stream, after all that was written before, and passes the handle
    /// `passes` along with them if the stream is a pipe for that. [`Event::Write`] follows
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
        let is_done = match sent {
            Ok(_) => buffers.bytes() == 0,
            Err(error) if error.is_full() => false,
            Err(_) => {
                // None of it is ever queued.
                buffers.advance(buffers.bytes());
                true
            }
        };
        let write = self.streams.writes.insert(Write {
            token,
            stream: index,
            buffers,
            passes,
            written: sent.unwrap_or(0),
            outcome: is_done.then(|| sent.map(drop)),
            links: Links::NONE,
        })?;
        self.requests.begin();
        match is_done {
            true => self.complete(index, write.index),
            false => self.enqueue(write.index, is_first, sent.is_ok()),
        }
        Ok((write, self.stream(index).output.queued_bytes))
    }

    /// Queues what has not gone at once of a new write.
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
    fn passable_fd(&self, key: Key) -> Result<RawFd, Errno> {
        self.stream_fd(key).or_else(|_| self.udp_fd(key))
    }

    /// Whether a write would have to wait for another, or for the connection.
    pub fn stream_has_to_wait(&self, key: Key) -> bool {
        self.open_stream(key)
            .is_ok_and(|index| self.stream(index).has_to_wait())
    }

    /// Writes as much as goes at once, in front of nobody. `EAGAIN` if nothing went, or if
    /// other writes are waiting.
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
        let admitted =
            (self.driver.admit(Call::Write, fd, bytes.len())).map_err(Errno::full_is_again)?;
        let sent = Buffers::lend(&[IoSlice::new(&bytes[..admitted])], |buffers| {
            socket::send_with_descriptor(fd, buffers, passes.as_raw_fd())
        });
        sent.map_err(Errno::full_is_again)
    }

    /// Has [`Event::Writable`] follow, once, when all that was queued is written and the kernel
    /// takes more. The handle does not keep the loop alive for it.
    pub fn stream_want_writable(&mut self, key: Key) -> Result<(), Errno> {
        let index = self.open_stream(key).map_err(|_| Errno::EBADF)?;
        self.driver.want(self.stream(index).watcher, POLLOUT)?;
        self.stream_mut(index).output.tells_writable = true;
        Ok(())
    }

    /// One attempt to write.
    #[inline]
    fn transmit(
        &mut self,
        channel: Channel,
        buffers: &Buffers,
        passes: Option<Key>,
    ) -> Result<usize, Errno> {
        let admitted = (self.driver).admit(Call::Write, channel.fd, buffers.bytes());
        let written = admitted.and_then(|some| self.send(channel, buffers, passes, some));
        self.transmitted(channel, written)
    }

    /// One attempt to write what is left of a queued write, and of those behind it.
    fn transmit_queue(&mut self, index: u32, write: u32) -> Result<usize, Errno> {
        let channel = self.stream(index).channel()?;
        let bytes = self.streams.writes[write].buffers.bytes();
        let admitted = self.driver.admit(Call::Write, channel.fd, bytes);
        let written = admitted.and_then(|some| self.send_queue(channel, write, some));
        self.transmitted(channel, written)
    }

    /// Writes as much as the poller has admitted.
    #[inline]
    fn send(
        &self,
        channel: Channel,
        buffers: &Buffers,
        passes: Option<Key>,
        admitted: usize,
    ) -> Result<usize, Errno> {
        let Channel { fd, transport, .. } = channel;
        if let Some(passes) = passes {
            return socket::send_with_descriptor(fd, buffers, self.passable_fd(passes)?);
        }
        match admitted < buffers.bytes() {
            true => stream::write_part(fd, buffers, transport, admitted),
            false => stream::write(fd, buffers, transport),
        }
    }

    /// As [`send`](Engine::send), from this write on.
    fn send_queue(&self, channel: Channel, write: u32, admitted: usize) -> Result<usize, Errno> {
        let entry = &self.streams.writes[write];
        let is_whole = entry.passes.is_none() && admitted == entry.buffers.bytes();
        let joins = channel.transport == Transport::Socket;
        let queue = self.stream(entry.stream).output.queue;
        if joins && is_whole && queue.len() > 1 {
            match self.send_joined(channel, queue) {
                // One of them lends memory that is not there. It must not be the others' fault.
                Err(Errno::EFAULT) => {}
                written => return written,
            }
        }
        self.send(channel, &entry.buffers, entry.passes, admitted)
    }

    /// Writes the queue, up to a write that passes a handle.
    fn send_joined(&self, channel: Channel, queue: List) -> Result<usize, Errno> {
        let joined =
            (queue.entries(&self.streams.writes)).take_while(|write| write.passes.is_none());
        let buffers = joined.map(|write| &write.buffers);
        stream::write_joined(channel.fd, buffers, channel.transport)
    }

    /// Learns from an attempt to write.
    #[inline]
    fn transmitted(
        &mut self,
        channel: Channel,
        written: Result<usize, Errno>,
    ) -> Result<usize, Errno> {
        match written {
            Ok(_) => {
                self.driver.patience.saw_write();
                self.driver.transferred(channel.watcher, Way::Out);
            }
            // The kernel will say when there is room.
            Err(Errno::EAGAIN) => self.driver.used_up(channel.watcher, POLLOUT),
            Err(_) => {}
        }
        written
    }

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
                    // The writes behind it find out for themselves.
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

    /// Counts bytes that have been written off the front of the queue. Writes of which nothing is
    /// left end; an empty one ends when it is its turn to be tried, or bytes behind it have gone.
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

    /// Has the poller say when the queue can be written.
    pub(super) fn await_room(&mut self, index: u32) {
        let watcher = self.stream(index).watcher;
        if let Err(error) = self.driver.want(watcher, POLLOUT) {
            self.fail_writes(index, error);
            self.driver.feed(watcher, Pending::Fed);
        }
    }

    /// Waits for a stream that was asked to block.
    fn wait_writable(&self, index: u32) -> Result<(), Errno> {
        let mut fds = [pollfd {
            fd: self.raw_fd(index)?,
            events: POLLOUT as i16,
            revents: 0,
        }];
        match poll::poll(&mut fds, None, None) {
            Err(Errno::EINTR) | Ok(_) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Ends all queued writes.
    pub(super) fn fail_writes(&mut self, index: u32, error: Errno) {
        let Streams { slab, writes, .. } = &mut self.streams;
        let Output { queue, done, .. } = &mut slab[index].output;
        while let Some(write) = queue.pop_front(writes) {
            writes[write].outcome = Some(Err(error));
            done.push_back(writes, write);
        }
    }

    /// The next finished write, forgotten.
    #[inline(always)]
    pub(super) fn report_write(&mut self, index: u32) -> Option<Event> {
        let Streams { slab, writes, .. } = &mut self.streams;
        let write = slab[index].output.done.pop_front(writes)?;
        let Write {
            token,
            outcome,
            written,
            ..
        } = writes[write];
        let result = outcome.unwrap_or(Ok(()));
        if result.is_err() {
            self.count_failed(index, write);
        }
        self.streams.writes[write].buffers.release();
        self.streams.writes.remove(write);
        self.requests.end();
        Some(Event::Write(token, result, written))
    }

    /// As in libuv, a write that failed counts as queued until it is reported.
    #[cold]
    fn count_failed(&mut self, index: u32, write: u32) {
        let left = self.streams.writes[write].buffers.bytes();
        self.count_written(index, left);
    }

    /// Cancels a write: one that has not been finished is reported with `ECANCELED`, after
    /// what the kernel has taken of it; one that has been is left alone. `EBUSY` if its
    /// stream is closing, which cancels it anyway.
    pub fn write_cancel(&mut self, key: Key) -> Result<(), Errno> {
        let write = self.streams.writes.resolve(key).ok_or(Errno::EINVAL)?;
        let entry = &self.streams.writes[write];
        let index = entry.stream;
        let stream = self.stream(index);
        if self.handles.is_closing(stream.handle) {
            return Err(Errno::EBUSY);
        }
        if entry.outcome.is_none() {
            let watcher = stream.watcher;
            self.finish_write(index, write, Err(Errno::ECANCELED));
            // A shutdown may have waited for nothing else, even if the stream is in hand.
            self.driver.feed(watcher, Pending::Fed);
        }
        Ok(())
    }

    /// Ends writing once all writes are done. [`Event::Shutdown`] follows with `token`, which must
    /// not be `u64::MAX`. `ENOTCONN` if the stream is not writable, which it is no longer after this.
    pub fn stream_shutdown(&mut self, key: Key, token: Token) -> Result<(), Errno> {
        let index = self.open_stream(key).map_err(|_| Errno::ENOTCONN)?;
        let stream = self.stream_mut(index);
        if !stream.output.is_open || stream.is_shutting_down() {
            return Err(Errno::ENOTCONN);
        }
        stream.output.is_open = false;
        stream.output.shutdown.put(token);
        let (watcher, is_idle) = (stream.watcher, stream.output.queue.is_empty());
        self.requests.begin();
        if is_idle {
            self.driver.feed(watcher, Pending::Fed);
        }
        Ok(())
    }

    /// When nothing is left to be written: stops waiting for room. When all has been reported
    /// as well, shuts down if asked to: a write that was made by the last report, and went at
    /// once, is reported first.
    #[inline]
    pub(super) fn drain(&mut self, index: u32) -> Option<Event> {
        let stream = self.stream(index);
        if !stream.output.queue.is_empty() {
            return None;
        }
        let all_reported = stream.output.done.is_empty();
        self.driver.unwant(stream.watcher, POLLOUT);
        if !all_reported {
            return None;
        }
        let Some(token) = self.stream_mut(index).output.shutdown.take() else {
            let stream = self.stream_mut(index);
            let tells = std::mem::take(&mut stream.output.tells_writable);
            return tells.then(|| Event::Writable(self.handles[self.stream(index).handle].token));
        };
        let result = self.raw_fd(index).and_then(socket::shutdown_write);
        self.requests.end();
        Some(Event::Shutdown(token, result))
    }
}
