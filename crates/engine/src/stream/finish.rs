//! How writes end: finished, failed or cancelled, then reported in order; and the shutdown that
//! follows the last of them.

use super::state::Output;
use super::write::Write;
use super::{Engine, Streams};
use crate::driver::Pending;
use crate::event::{Event, Token};
use crate::readiness::Interest;
use crate::slab::Key;
use blacklight_sys::{Errno, socket};

impl Engine {
    /// Ends a queued write of the stream: its report follows.
    pub(super) fn finish_write(&mut self, index: u32, write: u32, result: Result<(), Errno>) {
        let Streams { slab, writes, .. } = &mut self.streams;
        slab[index].output.queue.remove(writes, write);
        writes[write].outcome = Some(result);
        self.complete(index, write);
    }

    /// Queues a write of the stream that has ended, and is in no list, to be reported.
    #[inline]
    pub(super) fn complete(&mut self, index: u32, write: u32) {
        let Streams { slab, writes, .. } = &mut self.streams;
        let stream = &mut slab[index];
        stream.output.done.push_back(writes, write);
        let watcher = stream.watcher;
        if !self.reports_later(index) {
            self.driver.feed(watcher, Pending::Fed);
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

    /// Removes the next finished write and reports it.
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
            // A shutdown may have been waiting for this write, even if the stream is in hand.
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
        self.driver.unwant(stream.watcher, Interest::WRITABLE);
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
