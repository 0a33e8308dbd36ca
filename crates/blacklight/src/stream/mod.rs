//! Streams: the common part of TCP and Unix streams, pipes and terminals.
//!
//! A program uses a stream through callbacks or futures, one of the two at a time for each
//! direction.
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
//!
//! | file | contents |
//! | --- | --- |
//! | `mod.rs` | a stream's state, its events, reading, writing, shutting down |
//! | `methods.rs` | the methods that all public types of streams have |
//! | `traits.rs` | the traits of futures, tokio and hyper for them |
//! | `listener.rs` | listening and accepting |

mod listener;
mod methods;
mod traits;

pub(crate) use listener::{Listener, listener_methods};
pub(crate) use methods::stream_methods;
pub use methods::{ReadHalf, WriteHalf};
pub(crate) use traits::stream_traits;

use crate::handle::{EngineResult, Handle, Slot};
use crate::loop_::{Inner, Loop, gone};
use crate::table::{Entry, Source};
use crate::task::{Completer, Join};
use blacklight_engine::{Buffers, Engine, Errno, Event, Key, SharedFd, Token};
use std::cell::{Cell, OnceCell};
use std::io::{self, IoSlice, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker, ready};

/// Slices of at most this many bytes in total are copied together and written as one, which is
/// faster than `writev`.
const GATHER_MAX: usize = 512;

/// The waker of a task that waits.
#[derive(Default)]
pub(crate) struct Waiter(Cell<Option<Waker>>);

impl Waiter {
    /// Stores the task's waker, replacing an earlier one.
    pub(crate) fn set(&self, context: &Context<'_>) {
        let before = self.0.take();
        let waker = match before {
            Some(waker) if waker.will_wake(context.waker()) => waker,
            _ => context.waker().clone(),
        };
        self.0.set(Some(waker));
    }

    /// Wakes the task, and returns whether one was waiting.
    pub(crate) fn wake(&self) -> bool {
        match self.0.take() {
            Some(waker) => {
                waker.wake();
                true
            }
            None => false,
        }
    }
}

/// The callback of a read, called with bytes, with an empty slice at the end, or with an error.
type OnRead = dyn FnMut(&Loop, &Rc<Handle<Stream>>, io::Result<&[u8]>);

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
    reader: Waiter,
    writer: Waiter,
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
    fn event(&self, lp: &Loop, event: Event) {
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

    fn clear(&self) {
        // Tasks that wait get the error when they try again.
        self.is_drained.set(false);
        self.reader.wake();
        self.writer.wake();
        self.on_read.set(None);
        drop(self.detached.take());
    }
}

impl Stream {
    fn read_for_callback(&self, lp: &Loop, handle: &Rc<Handle<Stream>>) {
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

    fn report_end(&self, lp: &Loop, handle: &Rc<Handle<Stream>>, error: Errno) {
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
        self.request(begin, move |_, result| completer.0.complete(Ok(result)))?;
        std::future::poll_fn(|context| join.poll(context))
            .await
            .map_err(io::Error::from)??;
        Ok(self)
    }

    /// Submits a request with `begin`; `after` receives its result.
    pub(crate) fn request<T>(
        &self,
        begin: impl FnOnce(&mut Engine, Key, Token) -> EngineResult<T>,
        after: impl FnOnce(&Loop, io::Result<()>) + 'static,
    ) -> io::Result<()> {
        let completion = move |lp: &Loop, event: Event| {
            let result = match event {
                Event::Write(_, result, _)
                | Event::Connect(_, result)
                | Event::Send(_, result, _) => result,
                Event::Shutdown(_, result) => shutdown_result(result),
                _ => Ok(()),
            };
            after(lp, result.map_err(io::Error::from));
        };
        let entry = Entry::Request(Box::new(completion));
        let key = self.key;
        self.inner
            .register(entry, |engine, token| begin(engine, key, token))?;
        Ok(())
    }

    pub(crate) fn read_start(
        &self,
        callback: impl FnMut(&Loop, &Rc<Handle<Stream>>, io::Result<&[u8]>) + 'static,
    ) -> io::Result<()> {
        if self.inner.is_closed() {
            return Err(gone());
        }
        // A task may have started reading before, without making the handle active.
        self.read_stop();
        self.engine().read_start(self.key)?;
        self.state.has_callback.set(true);
        self.state.on_read.set(Some(Box::new(callback)));
        Ok(())
    }

    pub(crate) fn read_stop(&self) {
        self.engine().read_stop(self.key);
        self.state.is_watched.set(false);
        self.state.is_drained.set(false);
        self.state.has_callback.set(false);
        self.state.on_read.set(None);
    }

    pub(crate) fn try_read(&self, buf: &mut [u8]) -> io::Result<usize> {
        let read = self.engine().stream_try_read(self.key, buf);
        read.map_err(io::Error::from)
    }

    pub(crate) fn try_write(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let written = self.engine().stream_try_write_slices(self.key, slices);
        written.map_err(io::Error::from)
    }

    pub(crate) fn write(
        &self,
        bytes: Vec<u8>,
        after: impl FnOnce(&Loop, io::Result<()>) + 'static,
    ) -> io::Result<()> {
        self.request(
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
            match self.engine().read_start_quietly(self.key) {
                Ok(()) | Err(Errno::EALREADY) => state.is_watched.set(true),
                Err(error) => return Poll::Ready(Err(error.into())),
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
        ready!(self.poll_drained(context))?;
        ready!(self.inner.poll_budget(context));
        let state = &*self.state;
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
                Poll::Ready(Err(error.into()))
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

    /// Tries `write`, and waits until the stream is writable if `write` would block.
    pub(crate) fn poll_write_with(
        &self,
        context: &Context<'_>,
        write: impl FnOnce(&mut Engine, Key) -> EngineResult<usize>,
    ) -> Poll<io::Result<usize>> {
        ready!(self.inner.poll_budget(context));
        let mut engine = self.engine();
        match write(&mut engine, self.key) {
            Ok(count) => return Poll::Ready(Ok(count)),
            Err(error) if would_block(error) => {}
            Err(error) => return Poll::Ready(Err(error.into())),
        }
        if let Err(error) = engine.stream_want_writable(self.key) {
            return Poll::Ready(Err(error.into()));
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
            let its_state = state.clone();
            let completion = move |_: &Loop, event: Event| {
                if let Event::Shutdown(_, result) = event {
                    let result = shutdown_result(result).or_else(|error| match error {
                        Errno::ENOTCONN => Ok(()),
                        error => Err(error),
                    });
                    its_state.shutdown.set(Shutdown::Over(result));
                    its_state.writer.wake();
                }
            };
            let key = self.key;
            let entry = Entry::Request(Box::new(completion));
            let begun = self
                .inner
                .register(entry, |engine, token| engine.stream_shutdown(key, token));
            match begun {
                Ok(_) => state.shutdown.set(Shutdown::Begun),
                Err(error) if error.kind() == io::ErrorKind::NotConnected => {
                    return Poll::Ready(Ok(()));
                }
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        state.writer.set(context);
        self.inner.pending()
    }

    /// Shuts down, then calls `after`.
    pub(crate) fn shutdown(
        &self,
        after: impl FnOnce(&Loop, io::Result<()>) + 'static,
    ) -> io::Result<()> {
        let state = self.state.clone();
        self.request(
            |engine, key, token| engine.stream_shutdown(key, token),
            move |lp, result| {
                // A task that waits to write gets an error when it tries again.
                state.writer.wake();
                after(lp, result);
            },
        )
    }

    pub(crate) fn detach(self: Rc<Self>) {
        if !self.inner.is_closed() {
            let state = self.state.clone();
            state.detached.set(Some(self));
        }
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
