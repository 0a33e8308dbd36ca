//! Streams: the common part of TCP and Unix streams, pipes and terminals.
//!
//! A program uses a stream through callbacks or futures, one of the two at a time for each
//! direction. While there is a callback for reading, futures that read fail.
//!
//! **Callbacks.** When the engine reports a readable stream, the loop reads into its scratch
//! buffer and passes the bytes to the callback. A write takes ownership of its bytes, and calls
//! back when they are written.
//!
//! **Futures.** A read or write is tried at once, with the caller's buffer. If it would block,
//! the task waits for [`Event::Read`] or [`Event::Writable`] and tries again. So a dropped future
//! loses no bytes, and nothing writes to its buffer later. A read that did not fill its buffer
//! has drained the socket: the next read waits without trying, which saves a system call per
//! message. When the stream becomes readable and no task waits, reading stops until one does.
//! Any number of tasks may wait: all try again, and those that get nothing wait again.
//!
//! **Whole writes.** `write_all` may need several calls. Once it has written a part, it has the
//! turn: until it is over or dropped, other futures that write wait, `try_write` would block, and
//! `write_then` is refused. So what is written whole arrives whole.
//!
//! | file | contents |
//! | --- | --- |
//! | `mod.rs` | a stream's state, its events, reading, writing, shutting down |
//! | `methods.rs` | the methods that all public types of streams have |
//! | `split.rs` | the halves of streams |
//! | `traits.rs` | the traits of futures, tokio and hyper for them |
//! | `listener.rs` | listening and accepting |
//! | `waiter.rs` | the tasks that wait for one event |

mod listener;
mod methods;
mod split;
mod traits;
mod waiter;

pub(crate) use listener::{Listener, backlog_of, listener_methods};
pub(crate) use methods::stream_methods;
pub use split::{ReadHalf, ReuniteError, WriteHalf};
pub(crate) use split::{ShutDownOnDrop, split_methods};
pub(crate) use traits::stream_traits;
pub(crate) use waiter::Waiter;

use crate::code::Code;
use crate::error::Error;
use crate::handle::{EngineResult, Handle, Slot};
use crate::loop_::{Inner, LoopHandle};
use crate::table::{Entry, Source};
use crate::task::{Completer, Join};
use blacklight_engine::{Buffers, Engine, Errno, Event, Key, SharedFd, Token};
use std::cell::{Cell, OnceCell};
use std::future::poll_fn;
use std::io::{self, IoSlice, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, ready};

/// Slices of at most this many bytes in total are copied together and written as one, which is
/// faster than `writev`.
const GATHER_MAX: usize = 512;

/// The callback of a read, called with bytes, with an empty slice at the end, or with an error.
type OnRead = dyn FnMut(&LoopHandle, &Rc<Handle<Stream>>, io::Result<&[u8]>);

/// The state of a shutdown.
#[derive(Clone, Copy)]
enum Shutdown {
    NotBegun,
    Begun,
    Over(Result<(), Errno>),
}

/// The loop's part of a stream.
pub(crate) struct Stream {
    handle: OnceCell<Weak<Handle<Stream>>>,
    fd: OnceCell<SharedFd>,
    pub(crate) reader: Waiter,
    pub(crate) writer: Waiter,
    /// A `write_all` has written a part and goes on.
    has_turn: Cell<bool>,
    /// The last read drained the socket, and nothing has arrived since.
    is_drained: Cell<bool>,
    /// The engine reports when the stream becomes readable.
    is_watched: Cell<bool>,
    /// The error after which the poller no longer watches the descriptor.
    failure: Cell<Option<Errno>>,
    shutdown: Cell<Shutdown>,
    on_read: Slot<OnRead>,
    has_callback: Cell<bool>,
    detached: Cell<Option<Rc<Handle<Stream>>>>,
}

impl Source for Stream {
    fn event(&self, lp: &LoopHandle, event: Event) {
        // Ignores the events of a stream that was dropped.
        let Some(handle) = self.handle.get().and_then(Weak::upgrade) else {
            return;
        };
        match event {
            Event::Read(_) if self.has_callback.get() => self.read_for_callback(lp, &handle),
            Event::Read(_) => {
                self.is_drained.set(false);
                if !self.reader.wake() {
                    self.is_watched.set(false);
                    handle.engine().read_stop(handle.key);
                }
            }
            Event::ReadEnd(_, error) if self.has_callback.get() => {
                self.report_end(lp, &handle, error);
            }
            Event::ReadEnd(_, error) => {
                self.is_drained.set(false);
                self.is_watched.set(false);
                if error != Errno::EOF {
                    self.failure.set(Some(error));
                }
                self.reader.wake();
            }
            Event::Writable(_) => {
                self.writer.wake();
            }
            _ => {}
        }
    }

    fn code(&self, event: Option<&Event>) -> Code {
        match event {
            Some(Event::Writable(_)) => self.writer.code(),
            _ if self.has_callback.get() => self.on_read.code(),
            _ => self.reader.code(),
        }
    }

    fn clear(&self) {
        // Tasks that wait get the error when they try again.
        self.is_drained.set(false);
        self.reader.wake();
        self.writer.wake();
        self.on_read.clear();
        drop(self.detached.take());
    }
}

impl Stream {
    fn read_for_callback(&self, lp: &LoopHandle, handle: &Rc<Handle<Stream>>) {
        handle.inner.with_scratch(|scratch| {
            // Ends the borrow of the engine before the callback runs.
            let read = handle.engine().stream_read(handle.key, &mut *scratch);
            match read {
                Ok(count) => {
                    let bytes = &scratch[..count];
                    self.on_read
                        .call(|callback| callback(lp, handle, Ok(bytes)));
                }
                Err(Errno::EAGAIN) => {}
                Err(error) => self.report_end(lp, handle, error),
            }
        });
    }

    fn report_end(&self, lp: &LoopHandle, handle: &Rc<Handle<Stream>>, error: Errno) {
        let end = match error {
            Errno::EOF => Ok(&[][..]),
            error => Err(error.into()),
        };
        self.on_read.call(|callback| callback(lp, handle, end));
    }
}

/// Whether an operation would block, so that it must be tried again later.
fn would_block(error: Errno) -> bool {
    matches!(error, Errno::EAGAIN | Errno::ENOBUFS)
}

/// The result of a shutdown. Pipes and terminals cannot be shut down, which is not an error.
fn shutdown_result(result: EngineResult<()>) -> EngineResult<()> {
    match result {
        Err(Errno::ENOTSOCK) => Ok(()),
        result => result,
    }
}

impl Handle<Stream> {
    /// Creates a stream; `make` receives its token.
    pub(crate) fn stream(
        inner: &Rc<Inner>,
        make: impl FnOnce(&mut Engine, Token) -> EngineResult<Key>,
    ) -> io::Result<Rc<Handle<Stream>>> {
        let state = Rc::new(Stream {
            handle: OnceCell::new(),
            fd: OnceCell::new(),
            reader: Waiter::default(),
            writer: Waiter::default(),
            has_turn: Cell::new(false),
            is_drained: Cell::new(false),
            is_watched: Cell::new(false),
            failure: Cell::new(None),
            shutdown: Cell::new(Shutdown::NotBegun),
            on_read: Slot::new(),
            has_callback: Cell::new(false),
            detached: Cell::new(None),
        });
        let (handle, ()) = inner.attach(state, |engine, token| Ok((make(engine, token)?, ())))?;
        let handle = Rc::new(handle);
        let _ = handle.state.handle.set(Rc::downgrade(&handle));
        Ok(handle)
    }

    /// Opens a stream on a descriptor.
    pub(crate) fn open(&self, fd: OwnedFd) -> io::Result<()> {
        let opened = self.engine().stream_open_as_it_is(self.key, fd.into());
        opened.map_err(|(error, _)| error.into())
    }

    /// Connects the stream with the request that `begin` submits.
    pub(crate) async fn connect(
        self: Rc<Self>,
        begin: impl FnOnce(&mut Engine, Key, Token) -> EngineResult<()>,
    ) -> io::Result<Rc<Handle<Stream>>> {
        let join = Rc::new(Join::<io::Result<()>>::new());
        let completer = Completer(join.clone());
        let code = Code::polled();
        self.request(code, begin, move |_, result| {
            completer.0.complete(Ok(result))
        })?;
        poll_fn(|context| join.poll(context))
            .await
            .map_err(io::Error::from)??;
        Ok(self)
    }

    /// Submits a request with `begin`; `after` receives its result, and `code` is that of the program's own.
    pub(crate) fn request<T>(
        &self,
        code: Code,
        begin: impl FnOnce(&mut Engine, Key, Token) -> EngineResult<T>,
        after: impl FnOnce(&LoopHandle, io::Result<()>) + 'static,
    ) -> io::Result<()> {
        let completion = move |lp: &LoopHandle, event: Event| {
            let result = match event {
                Event::Write(_, result, _)
                | Event::Connect(_, result)
                | Event::Send(_, result, _) => result,
                Event::Shutdown(_, result) => shutdown_result(result),
                _ => Ok(()),
            };
            after(lp, result.map_err(io::Error::from));
        };
        let entry = Entry::Request(code, Box::new(completion));
        let key = self.key;
        let begun = self
            .inner
            .register(entry, |engine, token| begin(engine, key, token));
        match begun {
            Err(_) if self.is_closed.get() => Err(Errno::ECANCELED.into()),
            begun => begun.map(drop),
        }
    }

    pub(crate) fn read_start(
        &self,
        code: Code,
        callback: impl FnMut(&LoopHandle, &Rc<Handle<Stream>>, io::Result<&[u8]>) + 'static,
    ) -> io::Result<()> {
        self.check_open()?;
        // A task may have started reading before, without making the handle active.
        self.read_stop();
        let started = self.engine().read_start(self.key);
        started.map_err(|error| self.explain(error))?;
        self.state.has_callback.set(true);
        self.state.on_read.set(Box::new(callback), code);
        // A future that reads gets an error.
        self.state.reader.wake();
        Ok(())
    }

    pub(crate) fn read_stop(&self) {
        self.engine().read_stop(self.key);
        self.state.is_watched.set(false);
        self.state.is_drained.set(false);
        self.state.has_callback.set(false);
        self.state.on_read.clear();
    }

    pub(crate) fn try_read(&self, buf: &mut [u8]) -> io::Result<usize> {
        let read = self.engine().stream_try_read(self.key, buf);
        read.map_err(|error| self.explain(error))
    }

    pub(crate) fn try_write(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.check_turn()?;
        let written = self.engine().stream_try_write_slices(self.key, slices);
        written.map_err(|error| self.explain(error))
    }

    pub(crate) fn write(
        &self,
        bytes: Vec<u8>,
        after: impl FnOnce(&LoopHandle, io::Result<()>) + 'static,
    ) -> io::Result<()> {
        self.check_turn()?;
        self.request(
            Code::of(&after),
            |engine, key, token| engine.stream_write(key, token, Buffers::owned(bytes), None),
            after,
        )
    }

    /// Waits if the socket is known to be drained.
    #[inline]
    pub(crate) fn poll_drained(&self, context: &Context<'_>) -> Poll<io::Result<()>> {
        let state = &*self.state;
        if !state.is_drained.get() {
            return Poll::Ready(Ok(()));
        }
        if !state.is_watched.get() {
            // The task keeps the loop running, so the handle must not.
            let started = self.engine().read_start_quietly(self.key);
            match started {
                Ok(()) | Err(Errno::EALREADY) => state.is_watched.set(true),
                Err(error) => return Poll::Ready(Err(self.explain(error))),
            }
        }
        state.reader.set(context);
        self.inner.pending()
    }

    /// Tries `read`, and waits until the stream is readable if `read` would block.
    pub(crate) fn poll_read_with(
        &self,
        context: &Context<'_>,
        capacity: usize,
        read: impl FnOnce(&mut Engine, Key) -> EngineResult<usize>,
    ) -> Poll<io::Result<usize>> {
        let state = &*self.state;
        if state.has_callback.get() {
            return Poll::Ready(Err(Error::HasCallback.into()));
        }
        ready!(self.poll_drained(context))?;
        ready!(self.inner.poll_budget(context));
        if let Some(error) = state.failure.get() {
            return Poll::Ready(Err(error.into()));
        }
        let read = read(&mut self.engine(), self.key);
        match read {
            Ok(count) => {
                state.is_drained.set(count < capacity && count > 0);
                Poll::Ready(Ok(count))
            }
            Err(Errno::EAGAIN) => {
                state.is_drained.set(true);
                self.poll_drained(context).map_ok(|()| 0)
            }
            Err(error) => {
                state.is_watched.set(false);
                Poll::Ready(Err(self.explain(error)))
            }
        }
    }

    pub(crate) fn poll_read(
        &self,
        context: &Context<'_>,
        buf: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        if buf.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let len = buf.len();
        self.poll_read_with(context, len, |engine, key| engine.stream_try_read(key, buf))
    }

    pub(crate) async fn read(&self, buf: &mut [u8]) -> io::Result<usize> {
        let reader = &self.state.reader;
        reader.wait(|context| self.poll_read(context, buf)).await
    }

    pub(crate) async fn read_exact(&self, mut buf: &mut [u8]) -> io::Result<()> {
        while !buf.is_empty() {
            match self.read(buf).await? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => buf = &mut buf[count..],
            }
        }
        Ok(())
    }

    pub(crate) async fn read_to_end(&self, bytes: &mut Vec<u8>) -> io::Result<usize> {
        let before = bytes.len();
        let mut read_some = |context: &mut Context<'_>| {
            self.inner.with_scratch(|scratch| {
                let read = self.poll_read(context, scratch);
                read.map_ok(|count| {
                    bytes.extend_from_slice(&scratch[..count]);
                    count
                })
            })
        };
        while self.state.reader.wait(&mut read_some).await? > 0 {}
        Ok(bytes.len() - before)
    }

    pub(crate) async fn peek(&self, buf: &mut [u8]) -> io::Result<usize> {
        let peek = |context: &mut Context<'_>| {
            if buf.is_empty() {
                return Poll::Ready(Ok(0));
            }
            // What was seen has not been read, so nothing is drained.
            self.poll_read_with(context, 0, |engine, key| engine.stream_peek(key, &mut *buf))
        };
        self.state.reader.wait(peek).await
    }

    pub(crate) async fn write_some(&self, bytes: &[u8]) -> io::Result<usize> {
        let slices = [IoSlice::new(bytes)];
        let writer = &self.state.writer;
        writer
            .wait(|context| self.poll_write(context, &slices))
            .await
    }

    pub(crate) async fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        let mut turn = None;
        while !bytes.is_empty() {
            let slices = [IoSlice::new(bytes)];
            let write = |context: &mut Context<'_>| match &turn {
                None => self.poll_write(context, &slices),
                Some(_) => self.poll_write_in_turn(context, |engine, key| {
                    engine.stream_try_write_slices(key, &slices)
                }),
            };
            match self.state.writer.wait(write).await? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                count => bytes = &bytes[count..],
            }
            if !bytes.is_empty() {
                turn.get_or_insert_with(|| Turn::take(&self.state));
            }
        }
        Ok(())
    }

    /// Fails while a `write_all` has the turn.
    fn check_turn(&self) -> io::Result<()> {
        match self.state.has_turn.get() && !self.is_closed.get() {
            true => Err(Errno::EAGAIN.into()),
            false => Ok(()),
        }
    }

    /// Waits while a `write_all` has the turn. Its end wakes the task.
    #[inline]
    fn poll_turn(&self, context: &Context<'_>) -> Poll<io::Result<()>> {
        if !self.state.has_turn.get() || self.is_closed.get() {
            return Poll::Ready(Ok(()));
        }
        self.state.writer.set(context);
        self.inner.pending()
    }

    pub(crate) async fn shut_down(&self) -> io::Result<()> {
        let writer = &self.state.writer;
        writer.wait(|context| self.poll_shutdown(context)).await
    }

    /// A duplicate of the descriptor, for a program that goes on without the loop.
    pub(crate) fn duplicate(&self) -> io::Result<OwnedFd> {
        let shared = self.with(|engine, key| engine.stream_share_fd(key))?;
        shared.as_fd().try_clone_to_owned()
    }

    /// Tries `write`, and waits until the stream is writable if `write` would block.
    pub(crate) fn poll_write_with(
        &self,
        context: &Context<'_>,
        write: impl FnOnce(&mut Engine, Key) -> EngineResult<usize>,
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_turn(context))?;
        self.poll_write_in_turn(context, write)
    }

    fn poll_write_in_turn(
        &self,
        context: &Context<'_>,
        write: impl FnOnce(&mut Engine, Key) -> EngineResult<usize>,
    ) -> Poll<io::Result<usize>> {
        ready!(self.inner.poll_budget(context));
        let mut engine = self.engine();
        match write(&mut engine, self.key) {
            Ok(count) => return Poll::Ready(Ok(count)),
            Err(error) if would_block(error) => {}
            Err(error) => return Poll::Ready(Err(self.explain(error))),
        }
        if let Err(error) = engine.stream_want_writable(self.key) {
            return Poll::Ready(Err(self.explain(error)));
        }
        drop(engine);
        self.state.writer.set(context);
        self.inner.pending()
    }

    pub(crate) fn poll_write(
        &self,
        context: &Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let lengths = slices.iter().map(|slice| slice.len());
        let bytes = lengths.fold(0, usize::saturating_add);
        if bytes == 0 {
            return Poll::Ready(Ok(0));
        }
        if slices.len() > 1 && bytes <= GATHER_MAX {
            let mut gathered = [0; GATHER_MAX];
            let mut rest = &mut gathered[..];
            for slice in slices {
                // The buffer is long enough for all slices.
                rest.write_all(slice)?;
            }
            return self.poll_write(context, &[IoSlice::new(&gathered[..bytes])]);
        }
        self.poll_write_with(context, |engine, key| {
            engine.stream_try_write_slices(key, slices)
        })
    }

    /// Shuts down after all queued writes. Not an error if the peer has already torn the
    /// connection down.
    pub(crate) fn poll_shutdown(&self, context: &Context<'_>) -> Poll<io::Result<()>> {
        let state = &self.state;
        if let Shutdown::Over(result) = state.shutdown.get() {
            return Poll::Ready(result.map_err(io::Error::from));
        }
        if let Shutdown::NotBegun = state.shutdown.get() {
            ready!(self.poll_turn(context))?;
            match self.begin_shutdown() {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::NotConnected => {
                    return Poll::Ready(Ok(()));
                }
                Err(_) if self.is_closed.get() => {
                    return Poll::Ready(Err(Errno::ECANCELED.into()));
                }
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        state.writer.set(context);
        self.inner.pending()
    }

    /// Has the engine shut down after all queued writes, and wakes those who write when it has.
    pub(crate) fn begin_shutdown(&self) -> io::Result<()> {
        let state = self.state.clone();
        let completion = move |_: &LoopHandle, event: Event| {
            if let Event::Shutdown(_, result) = event {
                let result = shutdown_result(result).or_else(|error| match error {
                    Errno::ENOTCONN => Ok(()),
                    error => Err(error),
                });
                state.shutdown.set(Shutdown::Over(result));
                state.writer.wake();
            }
        };
        let key = self.key;
        let entry = Entry::Request(Code::polled(), Box::new(completion));
        let register = |engine: &mut Engine, token| engine.stream_shutdown(key, token);
        self.inner.register(entry, register)?;
        self.state.shutdown.set(Shutdown::Begun);
        Ok(())
    }

    /// Shuts down, then calls `after`.
    pub(crate) fn shutdown(
        &self,
        after: impl FnOnce(&LoopHandle, io::Result<()>) + 'static,
    ) -> io::Result<()> {
        let state = self.state.clone();
        self.request(
            Code::of(&after),
            |engine, key, token| engine.stream_shutdown(key, token),
            move |lp, result| {
                // A task that waits to write gets an error when it tries again.
                state.writer.wake();
                after(lp, result);
            },
        )
    }

    pub(crate) fn detach(self: Rc<Self>) {
        // Nothing would take it out of the state that it owns.
        if !self.is_over() {
            let state = self.state.clone();
            state.detached.set(Some(self));
        }
    }
}

/// The turn of a `write_all`, until this is dropped.
struct Turn<'a>(&'a Stream);

impl Turn<'_> {
    fn take(stream: &Stream) -> Turn<'_> {
        stream.has_turn.set(true);
        Turn(stream)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.has_turn.set(false);
        self.0.writer.wake();
    }
}

impl AsFd for Handle<Stream> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        let shared = self.state.fd.get_or_init(|| {
            let shared = self.engine().stream_share_fd(self.key);
            shared.expect("an open stream has a descriptor")
        });
        shared.as_fd()
    }
}
