//! Listening and accepting.
//!
//! The engine takes one connection from the kernel and reports it, and takes no other until the
//! program accepts that one. When the process has run out of descriptors, the engine closes
//! incoming connections, so that they do not keep the loop spinning and their peers waiting, and
//! reports an error.

use super::{Stream, Waiter};
use crate::handle::{EngineResult, Handle, Slot};
use crate::loop_::{Inner, Loop};
use crate::table::Source;
use blacklight_engine::{Engine, Errno, Event, Key, SharedFd, Token};
use std::cell::{Cell, OnceCell};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, ready};

/// How many connections are accepted per event, so that a flood does not starve other handles.
const MAX_PER_TURN: usize = 32;

/// Creates the engine's handle for an accepted connection.
type Init = fn(&mut Engine, Token) -> EngineResult<Key>;

/// An accepted connection, or the error.
type Accepted = io::Result<Rc<Handle<Stream>>>;

type OnConnection = dyn FnMut(&Loop, &Rc<Handle<Listener>>, Accepted);

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
    fn event(&self, lp: &Loop, event: Event) {
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

    fn clear(&self) {
        self.acceptor.wake();
        self.on_connection.set(None);
        drop(self.detached.take());
    }
}

impl Listener {
    /// Calls back with all waiting connections, up to the limit.
    fn accept_for_callback(
        &self,
        lp: &Loop,
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
    /// Creates a listener; `bind` gives it an address.
    pub(crate) fn listener(
        lp: &Loop,
        init: Init,
        backlog: i32,
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
            Err(error) => return Err(error.into()),
        }
        let inner: &Rc<Inner> = &self.inner;
        let stream = Handle::stream(inner, self.state.init)?;
        self.engine().stream_accept(self.key, stream.key)?;
        Ok(Some(stream))
    }

    pub(crate) fn poll_accept(&self, context: &Context<'_>) -> Poll<Accepted> {
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

    pub(crate) fn accept_start(
        &self,
        callback: impl FnMut(&Loop, &Rc<Handle<Listener>>, Accepted) + 'static,
    ) {
        if !self.inner.is_closed() {
            self.state.has_callback.set(true);
            self.state.on_connection.set(Some(Box::new(callback)));
            // A connection may already be waiting.
            let offered = self.engine().stream_offer_again(self.key);
            debug_assert!(offered.is_ok(), "the handle is ours and open");
        }
    }

    pub(crate) fn accept_stop(&self) {
        self.state.has_callback.set(false);
        self.state.on_connection.set(None);
    }

    pub(crate) fn detach(self: Rc<Self>) {
        if !self.inner.is_closed() {
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
            /// After an error, such as having no descriptors left, the listener goes on.
            ///
            /// For example, with TCP:
            ///
            /// ```
            /// use blacklight::{Loop, Mode, TcpListener, TcpStream};
            ///
            /// let lp = Loop::new()?;
            /// let listener = TcpListener::bind(&lp, "127.0.0.1:0".parse().unwrap())?;
            /// listener.accept_start(|_, listener, stream| {
            ///     println!("{} has connected", stream.unwrap().peer_addr().unwrap());
            ///     listener.accept_stop();
            ///     listener.unref();
            /// });
            /// TcpStream::connect_then(&lp, listener.local_addr()?, |_, stream| drop(stream.unwrap()))?;
            /// lp.run(Mode::Default);
            /// # Ok::<(), std::io::Error>(())
            /// ```
            pub fn accept_start(
                &self,
                mut callback: impl FnMut(&Loop, &$listener, io::Result<$stream>) + 'static,
            ) {
                self.handle.accept_start(move |lp, handle, accepted| {
                    let listener = $listener {
                        handle: handle.clone(),
                    };
                    callback(lp, &listener, accepted.map(|handle| $stream { handle }));
                });
            }

            /// Stops [`accept_start`](Self::accept_start), and drops its callback. New
            /// connections wait in the kernel's backlog.
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
            /// let listener = TcpListener::bind(&lp, "127.0.0.1:0".parse().unwrap())?;
            /// lp.block_on(async {
            ///     let client = TcpStream::connect(&lp, listener.local_addr()?).await?;
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

            /// Gives the listener to the loop, which owns it until it is closed or the loop is
            /// gone.
            ///
            /// For example, with TCP:
            ///
            /// ```
            /// use blacklight::{Loop, Mode, TcpListener, TcpStream};
            ///
            /// let lp = Loop::new()?;
            /// let listener = TcpListener::bind(&lp, "127.0.0.1:0".parse().unwrap())?;
            /// let address = listener.local_addr()?;
            /// listener.accept_start(|_, listener, _| listener.close());
            /// listener.detach();
            /// TcpStream::connect_then(&lp, address, |_, stream| drop(stream.unwrap()))?;
            /// lp.run(Mode::Default);
            /// # Ok::<(), std::io::Error>(())
            /// ```
            pub fn detach(self) {
                self.handle.detach();
            }
        }

        impl std::os::fd::AsFd for $listener {
            fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
                self.handle.as_fd()
            }
        }
    };
}

pub(crate) use listener_methods;
