//! Streams: what TCP, pipe and terminal handles have in common.
//!
//! A stream reads and writes its descriptor itself, without blocking, when the poller says
//! that it may. Reading is a dialogue, since the room to read into is the front end's: the
//! engine hands out [`Event::Read`], the front end calls [`Engine::stream_read`], and hears
//! how it went. Writing is the engine's own business once it has the buffers.
//!
//! Requests (connect, write, shutdown) keep the loop alive until they are reported; the
//! handle itself is active while it reads or listens. No request is ever reported from
//! within the call that made it: what succeeds or fails at once is *fed* to the next pending
//! phase.
//!
//! | file | what it owns |
//! | --- | --- |
//! | `mod.rs` | the table of streams, opening and closing |
//! | `state.rs` | the state of one stream |
//! | `turn.rs` | the steps that one readiness leads to |
//! | `read.rs` | reading |
//! | `write.rs` | the queue of writes, shutdown |
//! | `connect.rs` | connecting, listening, accepting |
//!
//! [`Event::Read`]: crate::Event::Read

mod connect;
mod read;
mod state;
mod turn;
mod write;

pub(crate) use state::{Arrivals, Extra, Stream};
pub(crate) use turn::Cursor;
pub(crate) use write::Write;

use crate::driver::Owner;
use crate::engine::Engine;
use crate::event::{Event, Token};
use crate::handle::{HandleKind, Kind};
use crate::slab::{Key, NIL, Slab};
use crate::tcp;
use blacklight_sys::fd::{self, Descriptor, SharedFd};
use blacklight_sys::stream::Transport;
use blacklight_sys::{Errno, RawFd, socket};

/// All streams of a loop, and their writes.
#[derive(Debug)]
pub(crate) struct Streams {
    slab: Slab<Stream>,
    extras: Slab<Extra>,
    writes: Slab<Write>,
    /// Held back for the day when there are no descriptors left; see `connect.rs`.
    reserve: Option<Descriptor>,
    /// Streams whose count of queued bytes has changed since the front end asked, each once.
    progressed: Vec<u32>,
}

impl Streams {
    pub(crate) fn new() -> Streams {
        Streams {
            slab: Slab::new(),
            extras: Slab::new(),
            writes: Slab::new(),
            reserve: None,
            progressed: Vec::new(),
        }
    }

    /// Notes that a stream's count of queued bytes has changed.
    fn note_progress(&mut self, stream: u32) {
        let place = &mut self.slab[stream].output.progressed_at;
        if *place == NIL {
            *place = self.progressed.len() as u32;
            self.progressed.push(stream);
        }
    }

    /// Forgets a stream.
    fn remove(&mut self, stream: u32) {
        let place = self.slab[stream].output.progressed_at;
        if place != NIL {
            // A front end that never asks leaves every stream that has written in the list.
            self.progressed.swap_remove(place as usize);
            if let Some(&moved) = self.progressed.get(place as usize) {
                self.slab[moved].output.progressed_at = place;
            }
        }
        self.slab.remove(stream);
    }
}

impl Engine {
    /// A new stream without a descriptor.
    pub(crate) fn stream_init(&mut self, token: Token, kind: HandleKind) -> Result<Key, Errno> {
        // Room for every stream once.
        let progressed = &mut self.streams.progressed;
        let streams = self.streams.slab.capacity() + 1;
        progressed.try_reserve(streams.saturating_sub(progressed.len()))?;
        let watcher = self.driver.add(-1, Owner::Stream(0))?;
        let stream = Stream::new(kind, watcher);
        let inserted = self.streams.slab.insert(stream).and_then(|stream| {
            let key = self.handles.insert(Kind::Stream(stream.index), token);
            key.map(|key| (stream.index, key))
                .inspect_err(|_| self.streams.slab.remove(stream.index))
        });
        let (stream, key) = inserted.inspect_err(|_| self.driver.remove(watcher))?;
        self.streams.slab[stream].handle = key.index;
        self.driver.set_owner(watcher, Owner::Stream(stream));
        Ok(key)
    }

    pub(crate) fn stream_kind(&self, stream: u32) -> HandleKind {
        self.streams.slab[stream].kind
    }

    pub(crate) fn stream(&self, index: u32) -> &Stream {
        &self.streams.slab[index]
    }

    pub(crate) fn stream_mut(&mut self, index: u32) -> &mut Stream {
        &mut self.streams.slab[index]
    }

    /// What few streams have, made where it is not there yet.
    pub(crate) fn stream_extra(&mut self, index: u32) -> Result<&mut Extra, Errno> {
        let streams = &mut self.streams;
        if streams.slab[index].extra == NIL {
            streams.slab[index].extra = streams.extras.insert(Extra::default())?.index;
        }
        Ok(&mut streams.extras[streams.slab[index].extra])
    }

    /// What few streams have, where it is there.
    pub(crate) fn known_extra(&mut self, index: u32) -> Option<&mut Extra> {
        let extra = self.streams.slab[index].extra;
        (extra != NIL).then(|| &mut self.streams.extras[extra])
    }

    /// The stream behind a key, if that is an open stream.
    #[inline]
    pub(crate) fn open_stream(&self, key: Key) -> Result<u32, Errno> {
        match self.handles[self.handles.open(key)?].kind {
            Kind::Stream(stream) => Ok(stream),
            _ => Err(Errno::EINVAL),
        }
    }

    /// The stream's descriptor; `EBADF` if it has none or is closing.
    pub fn stream_fd(&self, key: Key) -> Result<RawFd, Errno> {
        let stream = self.open_stream(key).map_err(|_| Errno::EBADF)?;
        self.raw_fd(stream)
    }

    /// A hold on the stream's descriptor, which stays open until that is let go of.
    pub fn stream_share_fd(&mut self, key: Key) -> Result<SharedFd, Errno> {
        let stream = self.open_stream(key).map_err(|_| Errno::EBADF)?;
        let fd = self.streams.slab[stream].fd.as_mut();
        fd.ok_or(Errno::EBADF)?.share()
    }

    pub(crate) fn raw_fd(&self, stream: u32) -> Result<RawFd, Errno> {
        let fd = self.streams.slab[stream].fd.as_ref();
        fd.map(Descriptor::raw).ok_or(Errno::EBADF)
    }

    /// Gives a stream its descriptor, of whatever kind. As [`stream_attach_socket`].
    ///
    /// [`stream_attach_socket`]: Engine::stream_attach_socket
    pub(crate) fn stream_attach(
        &mut self,
        stream: u32,
        fd: Descriptor,
    ) -> Result<(), (Errno, Descriptor)> {
        let transport = match Transport::of(fd.raw()) {
            Ok(transport) => transport,
            Err(error) => return Err((error, fd)),
        };
        let follows_edges = transport == Transport::Socket
            && self.streams.slab[stream].kind == HandleKind::Tcp
            && socket::is_tcp(fd.raw());
        self.stream_attach_socket(stream, fd)?;
        self.streams.slab[stream].transport = transport;
        if follows_edges {
            self.driver.follow_edges(self.streams.slab[stream].watcher);
        }
        Ok(())
    }

    /// Gives a stream its descriptor, which is a socket and must not be blocking. On error the
    /// descriptor comes back.
    pub(crate) fn stream_attach_socket(
        &mut self,
        stream: u32,
        fd: Descriptor,
    ) -> Result<(), (Errno, Descriptor)> {
        let entry = &self.streams.slab[stream];
        let attached = match entry.fd {
            Some(_) => Err(Errno::EBUSY),
            None => self.driver.attach(entry.watcher, fd.raw()),
        };
        if let Err(error) = attached {
            return Err((error, fd));
        }
        if self.streams.slab[stream].kind == HandleKind::Tcp {
            let keepalive = self.known_extra(stream).and_then(|extra| extra.keepalive);
            // Failing to set an option must not fail the connection.
            let _ = tcp::apply_options(fd.raw(), self.streams.slab[stream].nodelay, keepalive);
        }
        let stream = &mut self.streams.slab[stream];
        stream.transport = Transport::Socket;
        stream.fd = Some(fd);
        Ok(())
    }

    /// Opens a stream on a descriptor that the program made, in the directions given. It
    /// becomes non-blocking. On error the program keeps it.
    ///
    /// The descriptor may be the one that the stream has already, which makes a bound socket
    /// readable and writable.
    pub fn stream_open(
        &mut self,
        key: Key,
        fd: Descriptor,
        readable: bool,
        writable: bool,
    ) -> Result<(), (Errno, Descriptor)> {
        let checked = self.open_stream(key).and_then(|stream| {
            if self.driver.is_taken(fd.raw(), NIL) {
                return Err(Errno::EEXIST);
            }
            fd::set_nonblocking(fd.raw(), true)?;
            Ok(stream)
        });
        let stream = match checked {
            Ok(stream) => stream,
            Err(error) => return Err((error, fd)),
        };
        if self.raw_fd(stream) == Ok(fd.raw()) {
            // The stream owns it already.
            fd.release();
            self.stream_mut(stream).open(readable, writable);
            return Ok(());
        }
        self.stream_attach(stream, fd)?;
        let stream = self.stream_mut(stream);
        stream.close();
        stream.open(readable, writable);
        Ok(())
    }

    /// As [`stream_open`](Engine::stream_open), in the directions that the descriptor was opened
    /// for.
    pub fn stream_open_as_it_is(
        &mut self,
        key: Key,
        fd: Descriptor,
    ) -> Result<(), (Errno, Descriptor)> {
        match fd::directions(fd.raw()) {
            Ok((readable, writable)) => self.stream_open(key, fd, readable, writable),
            Err(error) => Err((error, fd)),
        }
    }

    /// Whether the stream can be read from.
    pub fn is_readable(&self, key: Key) -> bool {
        self.open_stream(key)
            .is_ok_and(|stream| self.stream(stream).input.is_open())
    }

    /// Whether the stream can be written to.
    pub fn is_writable(&self, key: Key) -> bool {
        self.open_stream(key)
            .is_ok_and(|stream| self.stream(stream).output.is_open)
    }

    /// Says that the stream can be read from although the engine does not know why.
    pub fn set_readable(&mut self, key: Key) {
        if let Ok(stream) = self.open_stream(key) {
            self.stream_mut(stream).open(true, false);
        }
    }

    /// Makes the descriptor blocking or not.
    pub fn stream_set_blocking(&mut self, key: Key, blocking: bool) -> Result<(), Errno> {
        let stream = self.open_stream(key).map_err(|_| Errno::EBADF)?;
        if blocking {
            // To find out that there is nothing more would block.
            self.driver.follow_levels(self.stream(stream).watcher);
        }
        fd::set_nonblocking(self.raw_fd(stream)?, !blocking)?;
        if let Some(extra) = self.known_extra(stream) {
            extra.backlog.may_block = blocking;
        }
        Ok(())
    }

    /// How many bytes wait to be written.
    #[inline]
    pub fn write_queue_size(&self, key: Key) -> usize {
        let Some(index) = self.handles.resolve(key) else {
            return 0;
        };
        match self.handles[index].kind {
            Kind::Stream(stream) => self.streams.slab[stream].output.queued_bytes,
            _ => 0,
        }
    }

    /// Whether the number of queued bytes has changed of some stream.
    #[inline]
    pub fn has_progress(&self) -> bool {
        !self.streams.progressed.is_empty()
    }

    /// A stream whose number of queued bytes has changed, with that number, for a front end
    /// whose users look at it at any time.
    #[inline]
    pub fn next_progress(&mut self) -> Option<(Token, usize)> {
        let stream = &mut self.streams.slab[self.streams.progressed.pop()?];
        stream.output.progressed_at = NIL;
        Some((
            self.handles[stream.handle].token,
            stream.output.queued_bytes,
        ))
    }

    /// Closes a stream's descriptor. What it had promised is cancelled in the closing phase.
    pub(crate) fn release_stream(&mut self, index: u32, stream: u32) {
        self.driver.remove(self.streams.slab[stream].watcher);
        self.handles.set_active(index, false);
        self.end_turn_of_stream(stream);
        let terminal = std::mem::replace(&mut self.streams.slab[stream].terminal, NIL);
        if terminal != NIL {
            self.release_tty(terminal, self.raw_fd(stream).ok());
        }
        let stream = &mut self.streams.slab[stream];
        stream.close();
        stream.accepted = None;
        // Kept until its name is gone: whoever finds a name without a server takes it over, and
        // we would take it from them.
        let _socket = stream.fd.take();
        let extra = std::mem::replace(&mut stream.extra, NIL);
        if extra != NIL {
            let Extra { path, .. } = std::mem::take(&mut self.streams.extras[extra]);
            self.streams.extras.remove(extra);
            if let Some(path) = path {
                // The file may be gone, or somebody else's by now: nothing can be done about it.
                let _ = fd::unlink(&path);
            }
        }
    }

    /// Forgets a stream that was just made, and that nobody has heard of.
    pub(crate) fn stream_discard(&mut self, key: Key, stream: u32) {
        self.release_stream(key.index, stream);
        let request = self.cancel_next_request(stream);
        debug_assert!(request.is_none(), "a new stream has no requests");
        self.handles.finish_close(key.index);
    }

    /// Cancels the next request of a closed stream, in the order connect, writes, shutdown;
    /// `None` after the last, when the stream is forgotten.
    pub(crate) fn cancel_next_request(&mut self, index: u32) -> Option<Event> {
        let stream = &mut self.streams.slab[index];
        if let Some(token) = stream.connect.take() {
            self.requests.end();
            return Some(Event::Connect(token, Err(Errno::ECANCELED)));
        }
        if !self.stream(index).output.queue.is_empty() {
            self.fail_writes(index, Errno::ECANCELED);
        }
        if let Some(write) = self.report_write(index) {
            return Some(write);
        }
        if let Some(token) = self.streams.slab[index].output.shutdown.take() {
            self.requests.end();
            return Some(Event::Shutdown(token, Err(Errno::ECANCELED)));
        }
        self.streams.remove(index);
        None
    }
}
