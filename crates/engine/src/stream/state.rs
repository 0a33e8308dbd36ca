//! The state of one stream.
//!
//! The state of a turn in progress (how far reading has got, which writes are to be reported) is
//! not here but in the turn's [`Cursor`](super::Cursor).

use super::connect::Backlog;
use crate::handle::HandleKind;
use crate::list::List;
use crate::request::Slot;
use crate::slab::NIL;
use crate::tcp::KeepAlive;
use blacklight_sys::fd::Descriptor;
use blacklight_sys::stream::Transport;
use blacklight_sys::{Errno, RawFd};
use std::collections::VecDeque;
use std::ffi::CStr;

#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) kind: HandleKind,
    pub(super) handle: u32,
    pub(crate) watcher: u32,
    pub(crate) fd: Option<Descriptor>,
    pub(super) transport: Transport,
    pub(crate) arrivals: Arrivals,
    pub(super) input: Input,
    pub(super) output: Output,
    pub(super) connect: Slot,
    /// Nagle's algorithm is to be off once there is a socket.
    pub(crate) nodelay: bool,
    /// The error of a call that had to return success; a later call or event reports it.
    pub(crate) delayed_error: Option<Errno>,
    /// The connection or passed descriptor that waits to be accepted; those behind it are in
    /// [`Extra`].
    pub(super) accepted: Option<Descriptor>,
    /// The index of a terminal handle's own state.
    pub(crate) terminal: u32,
    /// The index of the stream's [`Extra`], or `NIL`.
    pub(super) extra: u32,
}

// There may be very many of them, and most of the time most are idle.
const _: () = assert!(size_of::<Stream>() <= 120);

/// The things that arrive at a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Arrivals {
    Bytes,
    /// Bytes, and other handles along with them, as at an IPC pipe.
    BytesAndHandles,
    /// Connections: the stream listens.
    Connections,
}

/// The read side of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Input {
    /// Nothing can be read: the stream is not connected, not open for reading, or has failed.
    Closed,
    /// Something could be read.
    Stopped,
    Reading,
    /// The end has been reported. Reading may be started again.
    Ended,
    /// Reading has been started again after the end. A hang-up is not the end a second time.
    ReadingAgain,
}

impl Input {
    #[inline]
    pub(super) fn is_open(self) -> bool {
        self != Input::Closed
    }

    #[inline]
    pub(super) fn is_reading(self) -> bool {
        matches!(self, Input::Reading | Input::ReadingAgain)
    }

    /// Makes it possible to read.
    fn open(&mut self) {
        if *self == Input::Closed {
            *self = Input::Stopped;
        }
    }

    /// Starts reading, where it is possible to read.
    pub(super) fn start(&mut self) {
        debug_assert!(self.is_open() && !self.is_reading());
        *self = match *self {
            Input::Ended => Input::ReadingAgain,
            _ => Input::Reading,
        };
    }

    pub(super) fn stop(&mut self) {
        *self = match *self {
            Input::Reading => Input::Stopped,
            Input::ReadingAgain => Input::Ended,
            stopped => stopped,
        };
    }
}

/// The write side of a stream. A write is in one of two lists, of which the first is to be written
/// in order and the second to be reported in order.
#[derive(Debug)]
pub(super) struct Output {
    pub(super) queue: List,
    pub(super) done: List,
    /// Bytes in `queue` that have not been written.
    pub(super) queued_bytes: usize,
    /// Its place in the list of streams whose `queued_bytes` have changed, or `NIL`.
    pub(super) progressed_at: u32,
    /// Whether more may be written.
    pub(super) is_open: bool,
    /// The front end wants to hear once when it can write.
    pub(super) tells_writable: bool,
    /// Asks for the end of writing, after the last write.
    pub(super) shutdown: Slot,
}

/// State that few streams need.
#[derive(Default, Debug)]
pub(crate) struct Extra {
    /// The passed descriptors that wait behind the first.
    pub(super) passed: VecDeque<Descriptor>,
    /// The setting for a TCP socket that does not exist yet.
    pub(crate) keepalive: Option<KeepAlive>,
    /// The file of a bound Unix socket, removed on close.
    pub(crate) path: Option<Box<CStr>>,
    /// How a server takes connections.
    pub(super) backlog: Backlog,
}

/// The requests of a stream that are not reported yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamRequests {
    pub(crate) writes: u32,
    pub(crate) queued_bytes: usize,
    pub(crate) connects: bool,
    pub(crate) shuts_down: bool,
}

/// The facts of a stream that reading from it or writing to it needs.
#[derive(Clone, Copy)]
pub(super) struct Channel {
    pub(super) fd: RawFd,
    pub(super) transport: Transport,
    pub(super) watcher: u32,
}

impl Stream {
    /// A stream without a descriptor, whose handle is not known yet.
    pub(super) fn new(kind: HandleKind, watcher: u32) -> Stream {
        Stream {
            kind,
            handle: NIL,
            watcher,
            fd: None,
            transport: Transport::Socket,
            arrivals: Arrivals::Bytes,
            input: Input::Closed,
            output: Output {
                queue: List::EMPTY,
                done: List::EMPTY,
                queued_bytes: 0,
                progressed_at: NIL,
                is_open: false,
                tells_writable: false,
                shutdown: Slot::EMPTY,
            },
            connect: Slot::EMPTY,
            nodelay: false,
            delayed_error: None,
            accepted: None,
            terminal: NIL,
            extra: NIL,
        }
    }

    /// `EBADF` without a descriptor.
    #[inline]
    pub(super) fn channel(&self) -> Result<Channel, Errno> {
        let fd = self.fd.as_ref().ok_or(Errno::EBADF)?;
        Ok(Channel {
            fd: fd.raw(),
            transport: self.transport,
            watcher: self.watcher,
        })
    }

    /// Opens the stream in the directions given; others stay as they are.
    pub(crate) fn open(&mut self, readable: bool, writable: bool) {
        if readable {
            self.input.open();
        }
        self.output.is_open |= writable;
    }

    /// Closes both directions.
    pub(super) fn close(&mut self) {
        self.input = Input::Closed;
        self.output.is_open = false;
    }

    /// Whether a write would have to wait for another, or for the connection.
    #[inline]
    pub(super) fn has_to_wait(&self) -> bool {
        self.is_connecting() || !self.output.queue.is_empty()
    }

    /// The requests in progress.
    pub(crate) fn requests(&self) -> StreamRequests {
        StreamRequests {
            writes: self.output.queue.len() + self.output.done.len(),
            queued_bytes: self.output.queued_bytes,
            connects: self.connect.is_taken(),
            shuts_down: self.output.shutdown.is_taken(),
        }
    }

    #[inline]
    pub(crate) fn is_listening(&self) -> bool {
        self.arrivals == Arrivals::Connections
    }

    #[inline]
    pub(crate) fn is_connecting(&self) -> bool {
        self.connect.is_taken()
    }

    pub(crate) fn is_shutting_down(&self) -> bool {
        self.output.shutdown.is_taken()
    }
}
