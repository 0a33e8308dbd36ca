//! Listening and accepting.
//!
//! The engine takes one connection from the kernel and reports it, and takes no other until the
//! program accepts that one. When the process has run out of descriptors, the engine closes
//! incoming connections, so that they do not keep the loop spinning and their peers waiting, and
//! reports an error.

use super::{Stream, Waiter};
use crate::code::Code;
use crate::error::Error;
use crate::handle::{EngineResult, Handle, Slot};
use crate::loop_::{Inner, LoopHandle};
use crate::options::BACKLOG;
use crate::table::Source;
use blacklight_engine::{Engine, Errno, Event, Key, SharedFd, Token};
use blacklight_sys::socket;
use std::cell::{Cell, OnceCell};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, ready};

/// How many connections are accepted per event, so that a flood does not starve other handles.
const MAX_PER_TURN: usize = 32;

/// The backlog for a socket that a program gives: none if it listens, with a backlog of its own.
pub(crate) fn backlog_of(fd: &OwnedFd) -> Option<i32> {
    (!socket::is_listening(fd.as_raw_fd())).then_some(BACKLOG)
}

/// Creates the engine's handle for an accepted connection.
type Init = fn(&mut Engine, Token) -> EngineResult<Key>;

/// An accepted connection, or the error.
type Accepted = io::Result<Rc<Handle<Stream>>>;

type OnConnection = dyn FnMut(&LoopHandle, &Rc<Handle<Listener>>, Accepted);

/// The loop's part of a listener.
pub(crate) struct Listener {
    handle: OnceCell<Weak<Handle<Listener>>>,
    fd: OnceCell<SharedFd>,
    init: Init,
    acceptor: Waiter,
    failure: Cell<Option<Errno>>,
    on_connection: Slot<OnConnection>,
    has_callback: Cell<bool>,
    detached: Cell<Option<Rc<Handle<Listener>>>>,
}

impl Source for Listener {
    fn event(&self, lp: &LoopHandle, event: Event) {
        let Some(handle) = self.handle.get().and_then(Weak::upgrade) else {
            return;
        };
        let result = match event {
            Event::Connection(_, result) => result,
            Event::TurnedAway(_, error) => Err(error),
            _ => return,
        };
        if self.has_callback.get() {
            self.accept_for_callback(lp, &handle, result);
        } else {
            if let Err(error) = result {
                self.failure.set(Some(error));
            }
            self.acceptor.wake();
        }
    }

    fn code(&self, _: Option<&Event>) -> Code {
        match self.has_callback.get() {
            true => self.on_connection.code(),
            false => self.acceptor.code(),
        }
    }

    fn clear(&self) {
        self.acceptor.wake();
        self.on_connection.clear();
        drop(self.detached.take());
    }
}

impl Listener {
    /// Calls back with all waiting connections, up to the limit.
    fn accept_for_callback(
        &self,
        lp: &LoopHandle,
        handle: &Rc<Handle<Listener>>,
        result: EngineResult<()>,
    ) {
        let call = |accepted| {
            self.on_connection
                .call(|callback| callback(lp, handle, accepted));
        };
        if let Err(error) = result {
            return call(Err(error.into()));
        }
        for _ in 0..MAX_PER_TURN {
            match handle.accept() {
                Ok(Some(stream)) => call(Ok(stream)),
                Ok(None) => return,
                Err(error) => return call(Err(error)),
            }
            if !self.has_callback.get() || handle.engine().is_closing(handle.key) {
                return;
            }
        }
    }
}

impl Handle<Listener> {
    /// Creates a listener; `bind` gives it an address, or a socket that listens already if there is
    /// no `backlog`.
    pub(crate) fn listener(
        lp: &LoopHandle,
        init: Init,
        backlog: Option<i32>,
        bind: impl FnOnce(&mut Engine, Key) -> EngineResult<()>,
    ) -> io::Result<Rc<Handle<Listener>>> {
        let state = Rc::new(Listener {
            handle: OnceCell::new(),
            fd: OnceCell::new(),
            init,
            acceptor: Waiter::default(),
            failure: Cell::new(None),
            on_connection: Slot::new(),
            has_callback: Cell::new(false),
            detached: Cell::new(None),
        });
        let (handle, ()) = lp.attach(state, |engine, token| Ok((init(engine, token)?, ())))?;
        let handle = Rc::new(handle);
        let _ = handle.state.handle.set(Rc::downgrade(&handle));
        bind(&mut handle.engine(), handle.key)?;
        handle.engine().stream_listen(handle.key, backlog)?;
        Ok(handle)
    }

    /// Accepts the next connection, if one is waiting.
    fn accept(&self) -> io::Result<Option<Rc<Handle<Stream>>>> {
        let prepared = self.engine().stream_prepare_accept(self.key);
        match prepared {
            Ok(()) => {}
            Err(Errno::EAGAIN) => return Ok(None),
            Err(error) => return Err(self.explain(error)),
        }
        let inner: &Rc<Inner> = &self.inner;
        let stream = Handle::stream(inner, self.state.init)?;
        self.engine().stream_accept(self.key, stream.key)?;
        Ok(Some(stream))
    }

    pub(crate) fn poll_accept(&self, context: &Context<'_>) -> Poll<Accepted> {
        if self.state.has_callback.get() {
            return Poll::Ready(Err(Error::HasCallback.into()));
        }
        ready!(self.inner.poll_budget(context));
        if let Some(error) = self.state.failure.take() {
            return Poll::Ready(Err(error.into()));
        }
        match self.accept() {
            Ok(Some(stream)) => Poll::Ready(Ok(stream)),
            Ok(None) => {
                self.state.acceptor.set(context);
                self.inner.pending()
            }
            Err(error) => Poll::Ready(Err(error)),
        }
    }

    pub(crate) async fn accept_one(&self) -> Accepted {
        let acceptor = &self.state.acceptor;
        acceptor.wait(|context| self.poll_accept(context)).await
    }

    pub(crate) fn accept_start(
        &self,
        code: Code,
        callback: impl FnMut(&LoopHandle, &Rc<Handle<Listener>>, Accepted) + 'static,
    ) -> io::Result<()> {
        self.check_open()?;
        // A connection may already be waiting.
        self.with(|engine, key| engine.stream_offer_again(key))?;
        self.state.has_callback.set(true);
        self.state.on_connection.set(Box::new(callback), code);
        // A future that accepts gets an error.
        self.state.acceptor.wake();
        Ok(())
    }

    /// A duplicate of the descriptor, for a program that goes on without the loop.
    pub(crate) fn duplicate(&self) -> io::Result<OwnedFd> {
        let shared = self.with(|engine, key| engine.stream_share_fd(key))?;
        shared.as_fd().try_clone_to_owned()
    }

    pub(crate) fn accept_stop(&self) {
        self.state.has_callback.set(false);
        self.state.on_connection.clear();
    }

    pub(crate) fn detach(self: Rc<Self>) {
        // Nothing would take it out of the state that it owns.
        if !self.is_over() {
            let state = self.state.clone();
            state.detached.set(Some(self));
        }
    }
}

impl AsFd for Handle<Listener> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        let shared = self.state.fd.get_or_init(|| {
            let shared = self.engine().stream_share_fd(self.key);
            shared.expect("an open listener has a descriptor")
        });
        shared.as_fd()
    }
}

/// The methods of a listener type (a struct with a `handle`) that accepts streams of another
/// type.
macro_rules! listener_methods {
    ($listener:ident, $stream:ident) => {
        common_methods!($listener);

        impl $listener {
            /// Calls back with each connection, replacing an earlier callback. The callback owns
            /// the connection, which closes when dropped unless `detach` gives it to the loop.
            ///
            /// After an error, such as having no descriptors left, the listener goes on. Until
            /// [`accept_stop`](Self::accept_stop), futures that accept fail with
            /// [`Error::HasCallback`](crate::Error::HasCallback).
            ///
            /// For example, with TCP:
            ///
            /// ```
            /// use blacklight::{Loop, Mode, TcpListener, TcpStream};
            ///
            /// let lp = Loop::new()?;
            /// let listener = lp.block_on(TcpListener::bind("127.0.0.1:0"))?;
            /// listener.accept_start(|_, listener, stream| {
            ///     println!("{} has connected", stream.unwrap().peer_addr().unwrap());
            ///     listener.accept_stop();
            ///     listener.unref();
            /// })?;
            /// TcpStream::connect_then(listener.local_addr()?, |_, stream| drop(stream.unwrap()))?;
            /// lp.run(Mode::Default);
            /// # Ok::<(), std::io::Error>(())
            /// ```
            pub fn accept_start(
                &self,
                mut callback: impl FnMut(&LoopHandle, &$listener, io::Result<$stream>) + 'static,
            ) -> io::Result<()> {
                let code = $crate::code::Code::of(&callback);
                self.handle.accept_start(code, move |lp, handle, accepted| {
                    let listener = $listener {
                        handle: handle.clone(),
                    };
                    callback(lp, &listener, accepted.map(|handle| $stream { handle }));
                })
            }

            /// Stops [`accept_start`](Self::accept_start), and drops its callback. New
            /// connections wait in the kernel's backlog.
            ///
            /// For example, with TCP:
            ///
            /// ```
            /// use blacklight::{Loop, Mode, TcpListener};
            ///
            /// let lp = Loop::new()?;
            /// let listener = lp.block_on(TcpListener::bind("127.0.0.1:0"))?;
            /// listener.accept_start(|_, listener, _| listener.accept_stop())?;
            /// let clients = [(); 2].map(|()| std::net::TcpStream::connect(listener.local_addr().unwrap()));
            /// lp.run(Mode::Once);
            /// // The second one is left for whoever accepts next.
            /// lp.block_on(listener.accept())?;
            /// # drop(clients);
            /// # Ok::<(), std::io::Error>(())
            /// ```
            pub fn accept_stop(&self) {
                self.handle.accept_stop();
            }

            /// Polls for the next connection.
            ///
            /// For example, with TCP:
            ///
            /// ```
            /// use blacklight::{Loop, TcpListener, TcpStream};
            /// use std::future::poll_fn;
            ///
            /// let lp = Loop::new()?;
            /// let listener = lp.block_on(TcpListener::bind("127.0.0.1:0"))?;
            /// lp.block_on(async {
            ///     let client = TcpStream::connect(listener.local_addr()?).await?;
            ///     let server = poll_fn(|context| listener.poll_accept(context)).await?;
            ///     assert_eq!(server.peer_addr()?, client.local_addr()?);
            ///     # Ok::<(), std::io::Error>(())
            /// })?;
            /// # Ok::<(), std::io::Error>(())
            /// ```
            pub fn poll_accept(
                &self,
                context: &mut std::task::Context<'_>,
            ) -> std::task::Poll<io::Result<$stream>> {
                let accepted = self.handle.poll_accept(context);
                accepted.map_ok(|handle| $stream { handle })
            }

            /// Returns a stream of connections, which never ends. After an error, such as having no
            /// descriptors left, it goes on.
            ///
            /// For example, with TCP:
            ///
            /// ```
            /// use blacklight::{Loop, TcpListener};
            /// use futures_lite::StreamExt;
            ///
            /// let lp = Loop::new()?;
            /// let listener = lp.block_on(TcpListener::bind("127.0.0.1:0"))?;
            /// let client = std::net::TcpStream::connect(listener.local_addr()?)?;
            /// let server = lp.block_on(listener.incoming().next()).unwrap()?;
            /// assert_eq!(server.peer_addr()?, client.local_addr()?);
            /// # Ok::<(), std::io::Error>(())
            /// ```
            pub fn incoming(
                &self,
            ) -> impl futures_core::Stream<Item = io::Result<$stream>> + Unpin + '_ {
                $crate::streams::PollFn(|context: &mut std::task::Context<'_>| {
                    self.poll_accept(context).map(Some)
                })
            }

            /// Gives the listener to the loop, which owns it until it is closed or the loop is
            /// gone.
            ///
            /// For example, with TCP:
            ///
            /// ```
            /// use blacklight::{Loop, Mode, TcpListener, TcpStream};
            ///
            /// let lp = Loop::new()?;
            /// let listener = lp.block_on(TcpListener::bind("127.0.0.1:0"))?;
            /// let address = listener.local_addr()?;
            /// listener.accept_start(|_, listener, _| listener.close());
            /// listener.detach();
            /// TcpStream::connect_then(address, |_, stream| drop(stream.unwrap()))?;
            /// lp.run(Mode::Default);
            /// # Ok::<(), std::io::Error>(())
            /// ```
            pub fn detach(self) {
                self.handle.detach();
            }
        }

        /// A descriptor to borrow. Once it has been borrowed it stays open for as long as any clone
        /// of the listener lives, since somebody may still use it: [`close`](Self::close) takes the
        /// listener from the loop and leaves the descriptor open, so that clients still connect, and wait in vain, until the last
        /// clone is dropped.
        ///
        /// # Panics
        ///
        /// If the listener was closed before, and the descriptor never borrowed.
        impl std::os::fd::AsFd for $listener {
            fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
                self.handle.as_fd()
            }
        }
    };
}

pub(crate) use listener_methods;
