//! Streams: what TCP and Unix streams, pipes and terminals have in common.
//!
//! A stream can be used in two ways, which may be mixed as long as each direction is used in
//! one way at a time.
//!
//! **Callbacks.** The engine says that there is something to read; it is read into room that
//! the loop owns, and the callback is shown it. What is to be written is given away, and the
//! callback hears when it is written.
//!
//! **Futures.** A read or a write is tried at once, with the caller's own buffer. Only if the
//! kernel has nothing, or no room, does the task wait: for [`Event::Read`] or
//! [`Event::Writable`], after which it tries again. So a future that is dropped has lost no byte
//! and nobody ever writes into its buffer later. A read that did not fill its buffer has
//! emptied the kernel's: the next one waits without asking, which saves a system call for
//! each message. When the kernel has something and nobody waits for it, reading is stopped
//! until somebody does.
//!
//! | file | what it owns |
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

/// Slices with no more bytes than this together are written as one: to copy them takes less time
/// than the kernel needs to read the description of several.
const GATHERED: usize = 512;

/// A task that waits for something.
#[derive(Default)]
pub(crate) struct Waiter(Cell<Option<Waker>>);

impl Waiter {
    /// Remembers the task, in place of the one before.
    pub(crate) fn set(&self, context: &Context<'_>) {
        let before = self.0.take();
        let waker = match before {
            Some(waker) if waker.will_wake(context.waker()) => waker,
            _ => context.waker().clone(),
        };
        self.0.set(Some(waker));
    }

    /// Wakes the task, and says whether there was one.
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

/// What is called with what was read, with nothing at the end, or with an error.
type OnRead = dyn FnMut(&Loop, &Rc<Handle<Stream>>, io::Result<&[u8]>);

/// How far shutting down has come.
#[derive(Clone, Copy)]
enum Shutdown {
    NotBegun,
    Begun,
    Over(Result<(), Errno>),
}

/// The loop's end of a stream.
pub(crate) struct Stream {
    handle: OnceCell<Weak<Handle<Stream>>>,
    fd: OnceCell<SharedFd>,
    reader: Waiter,
    writer: Waiter,
    /// The last read left nothing behind, and nothing has come since.
    is_drained: Cell<bool>,
    /// The engine says when something has come.
    is_watched: Cell<bool>,
    /// Why the poller does not watch the descriptor any more.
    failure: Cell<Option<Errno>>,
    shutdown: Cell<Shutdown>,
    on_read: Slot<OnRead>,
    has_callback: Cell<bool>,
    detached: Cell<Option<Rc<Handle<Stream>>>>,
}

impl Source for Stream {
    fn event(&self, lp: &Loop, event: Event) {
        // A stream that has been dropped hears of nothing any more.
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
                self.tell_end(lp, &handle, error);
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
        // Who waits finds out when he tries again.
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
            // The engine is let go of before the callback runs.
            let read = handle.engine().stream_read(handle.key, &mut *scratch);
            match read {
                Ok(count) => {
                    let bytes = &scratch[..count];
                    self.on_read
                        .call(|callback| callback(lp, handle, Ok(bytes)));
                }
                Err(Errno::EAGAIN) => {}
                Err(error) => self.tell_end(lp, handle, error),
            }
        });
    }

    fn tell_end(&self, lp: &Loop, handle: &Rc<Handle<Stream>>, error: Errno) {
        let end = match error {
            Errno::EOF => Ok(&[][..]),
            error => Err(error.into()),
        };
        self.on_read.call(|callback| callback(lp, handle, end));
    }
}

/// What everybody is told when the kernel wants to be asked again later.
fn is_later(error: Errno) -> bool {
    matches!(error, Errno::EAGAIN | Errno::ENOBUFS)
}

/// What a shutdown comes to. Pipes and terminals have no direction to shut, which is no error.
fn shut(result: EngineResult<()>) -> EngineResult<()> {
    match result {
        Err(Errno::ENOTSOCK) => Ok(()),
        result => result,
    }
}

impl Handle<Stream> {
    /// Makes a stream: `make` is given its token.
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

    /// Connects a stream with a request that `begin` makes.
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

    /// Makes a request of the stream; `after` is called with its result.
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
                Event::Shutdown(_, result) => shut(result),
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
        // A task may have waited before, which did not make the handle active.
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

    pub(crate) fn try_read(&self, room: &mut [u8]) -> io::Result<usize> {
        let read = self.engine().stream_try_read(self.key, room);
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

    /// Waits if it is known that there is nothing to read.
    #[inline]
    pub(crate) fn poll_drained(&self, context: &Context<'_>) -> Poll<io::Result<()>> {
        let state = &*self.state;
        if !state.is_drained.get() {
            return Poll::Ready(Ok(()));
        }
        if !state.is_watched.get() {
            // Tasks keep the loop running, not what they wait for.
            match self.engine().read_start_quietly(self.key) {
                Ok(()) | Err(Errno::EALREADY) => state.is_watched.set(true),
                Err(error) => return Poll::Ready(Err(error.into())),
            }
        }
        state.reader.set(context);
        self.inner.pending()
    }

    /// Tries `read` and waits until there is something, if need be.
    pub(crate) fn poll_read_with(
        &self,
        context: &Context<'_>,
        room: usize,
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
                state.is_drained.set(count < room && count > 0);
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
        room: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        if room.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let len = room.len();
        self.poll_read_with(context, len, |engine, key| {
            engine.stream_try_read(key, room)
        })
    }

    /// Tries `write` and waits until there is room, if need be.
    pub(crate) fn poll_write_with(
        &self,
        context: &Context<'_>,
        write: impl FnOnce(&mut Engine, Key) -> EngineResult<usize>,
    ) -> Poll<io::Result<usize>> {
        ready!(self.inner.poll_budget(context));
        let mut engine = self.engine();
        match write(&mut engine, self.key) {
            Ok(count) => return Poll::Ready(Ok(count)),
            Err(error) if is_later(error) => {}
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
        if slices.len() > 1 && bytes <= GATHERED {
            let mut gathered = [0; GATHERED];
            let mut room = &mut gathered[..];
            for slice in slices {
                // It is long enough for them all.
                room.write_all(slice)?;
            }
            return self.poll_write(context, &[IoSlice::new(&gathered[..bytes])]);
        }
        self.poll_write_with(context, |engine, key| {
            engine.stream_try_write_slices(key, slices)
        })
    }

    /// Shuts down after all that was given away has been written. A connection that the other
    /// end has torn down has come to its end already, which is no error.
    pub(crate) fn poll_shutdown(&self, context: &Context<'_>) -> Poll<io::Result<()>> {
        let state = &self.state;
        if let Shutdown::Over(result) = state.shutdown.get() {
            return Poll::Ready(result.map_err(io::Error::from));
        }
        if let Shutdown::NotBegun = state.shutdown.get() {
            let its_state = state.clone();
            let completion = move |_: &Loop, event: Event| {
                if let Event::Shutdown(_, result) = event {
                    let result = shut(result).or_else(|error| match error {
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

    /// Shuts down in callback style.
    pub(crate) fn shutdown(
        &self,
        after: impl FnOnce(&Loop, io::Result<()>) + 'static,
    ) -> io::Result<()> {
        let state = self.state.clone();
        self.request(
            |engine, key, token| engine.stream_shutdown(key, token),
            move |lp, result| {
                // A task that waited for room will find that there is none any more.
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
