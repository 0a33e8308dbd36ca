//! Writing: the queue of requests, and the shutdown that waits for its end.
//!
//! A stream's writes are in one of two lists: `queue`, to be written in order, and `done`, to
//! be reported in order. A write is attempted at once if nothing is before it; what the
//! kernel does not take waits for the poller. Writes that wait behind each other go together.

use super::{Channel, Engine, MAX_PER_TURN};
use crate::event::{Event, Token};
use crate::io::{Pending, Way};
use crate::poller::Call;
use crate::slab::{Key, NIL};
use blacklight_sys::buffer::Buffers;
use blacklight_sys::poll::{POLLOUT, pollfd};
use blacklight_sys::stream::Transport;
use blacklight_sys::{Errno, RawFd, poll, socket, stream};
use std::io::IoSlice;
use std::os::fd::{AsRawFd, BorrowedFd};

/// A list of writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Queue {
    first: u32,
    last: u32,
    pub(super) len: u32,
}

impl Queue {
    pub(super) const EMPTY: Queue = Queue {
        first: NIL,
        last: NIL,
        len: 0,
    };

    pub(super) fn is_empty(&self) -> bool {
        self.first == NIL
    }
}

#[derive(Debug)]
pub(crate) struct Write {
    token: Token,
    stream: u32,
    buffers: Buffers,
    /// The handle to pass along with the first byte.
    passes: Option<Key>,
    written: usize,
    /// How it ended, once it has.
    result: Result<(), Errno>,
    /// Whether it is in `done`, and no longer in `queue`.
    is_done: bool,
    prev: u32,
    next: u32,
}

/// What came of trying to write.
enum Attempt {
    /// All of it went, or nothing of it will any more.
    Over(Result<(), Errno>),
    /// Some of it went.
    Partly,
    /// The kernel has no room.
    Blocked,
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
    fn list(&mut self, stream: u32, done: bool) -> &mut Queue {
        let stream = self.stream_mut(stream);
        match done {
            true => &mut stream.done,
            false => &mut stream.queue,
        }
    }

    /// Puts a write at the end of one of its stream's lists.
    fn append(&mut self, write: u32, done: bool) {
        let stream = self.streams.writes[write].stream;
        let list = self.list(stream, done);
        let prev = std::mem::replace(&mut list.last, write);
        list.len += 1;
        if prev == NIL {
            list.first = write;
        } else {
            self.streams.writes[prev].next = write;
        }
        let entry = &mut self.streams.writes[write];
        entry.prev = prev;
        entry.next = NIL;
        entry.is_done = done;
    }

    /// Takes a write out of the list that it is in.
    fn take_out(&mut self, write: u32) {
        let Write {
            stream,
            is_done,
            prev,
            next,
            ..
        } = self.streams.writes[write];
        let list = self.list(stream, is_done);
        list.len -= 1;
        if prev == NIL {
            list.first = next;
        }
        if next == NIL {
            list.last = prev;
        }
        if prev != NIL {
            self.streams.writes[prev].next = next;
        }
        if next != NIL {
            self.streams.writes[next].prev = prev;
        }
    }

    /// Ends a queued write: its report follows.
    fn finish_write(&mut self, write: u32, result: Result<(), Errno>) {
        self.take_out(write);
        let entry = &mut self.streams.writes[write];
        entry.result = result;
        self.complete(write);
    }

    /// Queues a write that is in no list to be reported.
    #[inline]
    fn complete(&mut self, write: u32) {
        let stream = self.streams.writes[write].stream;
        self.append(write, true);
        if !self.streams.reports_by_itself(stream) {
            self.watchers
                .feed(self.stream(stream).watcher, Pending::Fed);
        }
    }

    /// Counts bytes as no longer queued.
    fn count_written(&mut self, stream: u32, bytes: usize) {
        if bytes > 0 {
            let entry = self.stream_mut(stream);
            entry.queued_bytes -= bytes;
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
        if !stream.writable {
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
            result: sent.map(drop),
            is_done,
            prev: NIL,
            next: NIL,
        })?;
        self.requests.begin();
        match is_done {
            true => self.complete(write.index),
            false => self.enqueue(write.index, is_first, sent.is_ok()),
        }
        Ok((write, self.stream(index).queued_bytes))
    }

    /// Queues what has not gone at once of a new write.
    fn enqueue(&mut self, write: u32, is_first: bool, has_begun: bool) {
        self.append(write, false);
        let entry = &self.streams.writes[write];
        let (index, left) = (entry.stream, entry.buffers.bytes());
        let stream = self.stream_mut(index);
        stream.queued_bytes += left;
        if is_first {
            match has_begun || stream.blocking {
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
        if !self.stream(index).ipc {
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
        if !stream.writable {
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
        if !stream.writable {
            return Err(Errno::EPIPE);
        }
        if bytes.is_empty() {
            return Err(Errno::EINVAL);
        }
        let fd = self.raw_fd(index)?;
        let admitted =
            (self.poller.admit(Call::Write, fd, bytes.len())).map_err(Errno::full_is_again)?;
        let sent = Buffers::lend(&[IoSlice::new(&bytes[..admitted])], |buffers| {
            socket::send_with_descriptor(fd, buffers, passes.as_raw_fd())
        });
        sent.map_err(Errno::full_is_again)
    }

    /// Has [`Event::Writable`] follow, once, when all that was queued is written and the kernel
    /// takes more. The handle does not keep the loop alive for it.
    pub fn stream_want_writable(&mut self, key: Key) -> Result<(), Errno> {
        let index = self.open_stream(key).map_err(|_| Errno::EBADF)?;
        self.io_want(self.stream(index).watcher, POLLOUT)?;
        self.stream_mut(index).tells_writable = true;
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
        let admitted = (self.poller).admit(Call::Write, channel.fd, buffers.bytes());
        let written = admitted.and_then(|some| self.send(channel, buffers, passes, some));
        self.transmitted(channel, written)
    }

    /// One attempt to write what is left of a queued write, and of those behind it.
    fn transmit_queue(&mut self, index: u32, write: u32) -> Result<usize, Errno> {
        let channel = self.stream(index).channel()?;
        let bytes = self.streams.writes[write].buffers.bytes();
        let admitted = self.poller.admit(Call::Write, channel.fd, bytes);
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
        if joins && is_whole && entry.next != NIL {
            match self.send_joined(channel, write) {
                // One of them lends memory that is not there. It must not be the others' fault.
                Err(Errno::EFAULT) => {}
                written => return written,
            }
        }
        self.send(channel, &entry.buffers, entry.passes, admitted)
    }

    /// Writes the queue from this write on, up to one that passes a handle.
    fn send_joined(&self, channel: Channel, write: u32) -> Result<usize, Errno> {
        let writes = &self.streams.writes;
        let queue = std::iter::successors(Some(write), |&write| {
            let next = writes[write].next;
            (next != NIL && writes[next].passes.is_none()).then_some(next)
        });
        let buffers = queue.map(|write| &writes[write].buffers);
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
                self.patience.saw_write();
                self.io_went(channel.watcher, Way::Out);
            }
            // The kernel will say when there is room.
            Err(Errno::EAGAIN) => self.io_used_up(channel.watcher, POLLOUT),
            Err(_) => {}
        }
        written
    }

    /// Tries to write what is left of a queued write. What goes of those behind it is counted
    /// there.
    fn attempt(&mut self, index: u32, write: u32) -> Attempt {
        loop {
            match self.transmit_queue(index, write) {
                Ok(mut written) => {
                    let mut next = write;
                    // Even where no byte went: more empty buffers may lie before the first one
                    // than the kernel looks at.
                    loop {
                        let own = self.streams.writes[next].advance(written);
                        self.count_written(index, own);
                        written -= own;
                        if written == 0 {
                            break;
                        }
                        next = self.streams.writes[next].next;
                    }
                    return match self.streams.writes[write].buffers.bytes() {
                        0 => Attempt::Over(Ok(())),
                        _ => Attempt::Partly,
                    };
                }
                Err(error) if error.is_full() => {
                    if !self.stream(index).blocking || self.wait_writable(index).is_err() {
                        return Attempt::Blocked;
                    }
                }
                Err(error) => return Attempt::Over(Err(error)),
            }
        }
    }

    /// Writes what can be written of the queue.
    pub(super) fn flush_writes(&mut self, index: u32) {
        for _ in 0..MAX_PER_TURN {
            let write = self.stream(index).queue.first;
            if write == NIL {
                return;
            }
            match self.attempt(index, write) {
                Attempt::Over(Ok(())) => {
                    self.finish_write(write, Ok(()));
                    self.finish_written(index);
                }
                Attempt::Over(error) => {
                    self.finish_write(write, error);
                    // The writes behind it find out for themselves.
                    if !self.stream(index).queue.is_empty() {
                        let watcher = self.stream(index).watcher;
                        self.watchers.feed(watcher, Pending::Fed);
                    }
                    return;
                }
                Attempt::Partly => {}
                Attempt::Blocked => break,
            }
        }
        self.await_room(index);
    }

    /// Ends the writes at the front of the queue that have gone together with one before.
    fn finish_written(&mut self, index: u32) {
        loop {
            let write = self.stream(index).queue.first;
            if write == NIL {
                return;
            }
            let entry = &self.streams.writes[write];
            if entry.written == 0 || entry.buffers.bytes() > 0 {
                return;
            }
            self.finish_write(write, Ok(()));
        }
    }

    /// Has the poller say when the queue can be written.
    pub(super) fn await_room(&mut self, index: u32) {
        let watcher = self.stream(index).watcher;
        if let Err(error) = self.io_want(watcher, POLLOUT) {
            self.fail_writes(index, error);
            self.watchers.feed(watcher, Pending::Fed);
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
        let stream = self.stream_mut(index);
        let failed = std::mem::replace(&mut stream.queue, Queue::EMPTY);
        if failed.is_empty() {
            return;
        }
        let last_done = std::mem::replace(&mut stream.done.last, failed.last);
        stream.done.len += failed.len;
        match last_done {
            NIL => stream.done.first = failed.first,
            last => self.streams.writes[last].next = failed.first,
        }
        self.streams.writes[failed.first].prev = last_done;
        let mut write = failed.first;
        while write != NIL {
            let entry = &mut self.streams.writes[write];
            entry.result = Err(error);
            entry.is_done = true;
            write = entry.next;
        }
    }

    /// The next finished write, forgotten.
    #[inline(always)]
    pub(super) fn report_write(&mut self, index: u32) -> Option<Event> {
        let write = self.stream(index).done.first;
        if write == NIL {
            return None;
        }
        let Write {
            token,
            result,
            written,
            next,
            ..
        } = self.streams.writes[write];
        let done = &mut self.stream_mut(index).done;
        done.first = next;
        done.len -= 1;
        match next {
            NIL => done.last = NIL,
            next => self.streams.writes[next].prev = NIL,
        }
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
        let handle = self.handles.key(self.stream(entry.stream).handle);
        if self.is_closing(handle) {
            return Err(Errno::EBUSY);
        }
        if !entry.is_done {
            let watcher = self.stream(entry.stream).watcher;
            self.finish_write(write, Err(Errno::ECANCELED));
            // A shutdown may have waited for nothing else, even if the stream is in hand.
            self.watchers.feed(watcher, Pending::Fed);
        }
        Ok(())
    }

    /// Ends writing once all writes are done. [`Event::Shutdown`] follows with `token`, which must
    /// not be `u64::MAX`. `ENOTCONN` if the stream is not writable, which it is no longer after this.
    pub fn stream_shutdown(&mut self, key: Key, token: Token) -> Result<(), Errno> {
        let index = self.open_stream(key).map_err(|_| Errno::ENOTCONN)?;
        let stream = self.stream_mut(index);
        if !stream.writable || stream.is_shutting_down() {
            return Err(Errno::ENOTCONN);
        }
        stream.writable = false;
        stream.shutdown.put(token);
        let (watcher, is_idle) = (stream.watcher, stream.queue.is_empty());
        self.requests.begin();
        if is_idle {
            self.watchers.feed(watcher, Pending::Fed);
        }
        Ok(())
    }

    /// When nothing is left to be written: stops waiting for room. When all has been reported
    /// as well, shuts down if asked to: a write that was made by the last report, and went at
    /// once, is reported first.
    #[inline]
    pub(super) fn drain(&mut self, index: u32) -> Option<Event> {
        let stream = self.stream(index);
        if !stream.queue.is_empty() {
            return None;
        }
        let all_reported = stream.done.is_empty();
        self.io_unwant(stream.watcher, POLLOUT);
        if !all_reported {
            return None;
        }
        let Some(token) = self.stream_mut(index).shutdown.take() else {
            let stream = self.stream_mut(index);
            let tells = std::mem::take(&mut stream.tells_writable);
            return tells.then(|| Event::Writable(self.handles[self.stream(index).handle].token));
        };
        let result = self.raw_fd(index).and_then(socket::shutdown_write);
        self.requests.end();
        Some(Event::Shutdown(token, result))
    }
}
