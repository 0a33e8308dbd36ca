//! Streams: what TCP, pipe and terminal handles have in common.
//!
//! The engine reads and writes a stream's descriptor without blocking, when the poller says that it
//! may. The front end provides the memory to read into: the engine hands out [`Event::Read`], and
//! the front end calls [`Engine::stream_read`] with a buffer. For writing the front end hands over
//! its buffers once, and the engine does the rest.
//!
//! Requests (connect, write, shutdown) keep the loop alive until they are reported; the
//! handle itself is active while it reads or listens. No request is ever reported from
//! within the call that made it: what succeeds or fails at once is *fed* to the next pending
//! phase.
//!
//! | file | what it owns |
//! | --- | --- |
//! | `mod.rs` | the table of streams |
//! | `state.rs` | the state of one stream |
//! | `open.rs`, `close.rs` | giving a stream its descriptor, and taking it away |
//! | `turn.rs` | the steps that one readiness leads to |
//! | `read.rs` | reading |
//! | `write.rs` | making writes |
//! | `flush.rs` | handing writes to the kernel |
//! | `finish.rs` | how writes end; shutdown |
//! | `connect.rs` | connecting, listening, accepting |
//!
//! [`Event::Read`]: crate::Event::Read

mod close;
mod connect;
mod finish;
mod flush;
mod open;
mod read;
mod state;
mod turn;
mod write;

pub(crate) use state::{Arrivals, Extra, Stream};
pub(crate) use turn::Cursor;
pub(crate) use write::Write;

use crate::driver::Owner;
use crate::engine::Engine;
use crate::event::Token;
use crate::handle::{HandleKind, Kind};
use crate::slab::{Key, NIL, Slab};
use blacklight_sys::fd::{Descriptor, SharedFd};
use blacklight_sys::{Errno, RawFd};

/// All streams of a loop, and their writes.
#[derive(Debug)]
pub(crate) struct Streams {
    slab: Slab<Stream>,
    extras: Slab<Extra>,
    writes: Slab<Write>,
    /// A descriptor to give up when the process has none left; see `connect.rs`.
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
        // `progressed` never grows later: it has room for every stream once.
        let progressed = &mut self.streams.progressed;
        let streams = self.streams.slab.capacity() + 1;
        progressed.try_reserve(streams.saturating_sub(progressed.len()))?;
        let watcher = self.driver.add(-1, Owner::Stream(0))?;
        let stream = Stream::new(kind, watcher);
        let inserted = self.streams.slab.insert(stream).and_then(|stream| {
            let key = self.make_handle(Kind::Stream(stream.index), token);
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

    /// The stream's `Extra`, which is made if it has none yet.
    pub(crate) fn stream_extra(&mut self, index: u32) -> Result<&mut Extra, Errno> {
        let streams = &mut self.streams;
        if streams.slab[index].extra == NIL {
            streams.slab[index].extra = streams.extras.insert(Extra::default())?.index;
        }
        Ok(&mut streams.extras[streams.slab[index].extra])
    }

    /// The stream's `Extra`, if it has one.
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

    /// Whether the number of queued bytes of any stream has changed.
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
}
