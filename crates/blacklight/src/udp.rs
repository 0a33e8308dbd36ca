//! UDP sockets.
//!
//! Like streams, sockets work with callbacks and in tasks; `stream/mod.rs` explains how tasks
//! wait. A datagram is sent or received whole, or not at all.

use crate::address::{Done, ToSocketAddrs};
use crate::code::Code;
use crate::current::here;
use crate::error::Error;
use crate::handle::{EngineResult, Handle, Slot, common_methods};
use crate::loop_::LoopHandle;
use crate::options::UdpOptions;
use crate::stream::Waiter;
use crate::table::{Entry, Source};
use crate::tcp::internet;
use blacklight_engine::{Address, Buffers, Engine, Errno, Event, Group, Interface, Key};
use blacklight_engine::{AddressRef, SenderRoom, SharedFd, UdpReuse};
use std::cell::{Cell, OnceCell};
use std::io::{self, IoSlice};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, ready};

/// A received datagram; see [`UdpSocket::recv_start`].
///
/// ```
/// use blacklight::{Loop, Mode, UdpSocket};
///
/// let lp = Loop::new()?;
/// let socket = lp.block_on(UdpSocket::bind("127.0.0.1:0"))?;
/// let own = socket.local_addr()?;
/// socket.recv_start(move |_, socket, datagram| {
///     let datagram = datagram.unwrap();
///     assert_eq!((datagram.bytes, datagram.from), (&b"light"[..], own));
///     socket.recv_stop();
/// })?;
/// socket.try_send_to(b"light", own)?;
/// lp.run(Mode::Default);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Datagram<'a> {
    /// The contents.
    pub bytes: &'a [u8],
    /// The address of the sender.
    pub from: SocketAddr,
}

/// What waits to be sent; see [`UdpSocket::send_queue`].
///
/// ```
/// use blacklight::{Loop, Mode, SendQueue, UdpSocket};
///
/// let lp = Loop::new()?;
/// let socket = lp.block_on(UdpSocket::bind("127.0.0.1:0"))?;
/// let SendQueue { datagrams, bytes, .. } = socket.send_queue();
/// assert_eq!((datagrams, bytes), (0, 0));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct SendQueue {
    /// The number of datagrams.
    pub datagrams: usize,
    /// Their bytes.
    pub bytes: usize,
}

type Received<'a> = io::Result<Datagram<'a>>;

type OnReceive = dyn FnMut(&LoopHandle, &Rc<Handle<Udp>>, Received<'_>);

/// The loop's part of a socket.
pub(crate) struct Udp {
    handle: OnceCell<Weak<Handle<Udp>>>,
    fd: OnceCell<SharedFd>,
    receiver: Waiter,
    sender: Waiter,
    failure: Cell<Option<Errno>>,
    on_receive: Slot<OnReceive>,
    has_callback: Cell<bool>,
    detached: Cell<Option<Rc<Handle<Udp>>>>,
}

impl Source for Udp {
    fn event(&self, lp: &LoopHandle, event: Event) {
        let Some(handle) = self.handle.get().and_then(Weak::upgrade) else {
            return;
        };
        match event {
            Event::Receive(_) if self.has_callback.get() => self.receive_for_callback(lp, &handle),
            Event::Receive(_) => self.wake_or_stop(&handle),
            Event::ReceiveEnd(_, error) if self.has_callback.get() => {
                let end = Err(error.into());
                self.on_receive.call(|callback| callback(lp, &handle, end));
            }
            Event::ReceiveEnd(_, error) => {
                self.failure.set(Some(error));
                self.receiver.wake();
            }
            Event::Writable(_) => {
                self.sender.wake();
            }
            _ => {}
        }
    }

    fn code(&self, event: Option<&Event>) -> Code {
        match event {
            Some(Event::Writable(_)) => self.sender.code(),
            _ if self.has_callback.get() => self.on_receive.code(),
            _ => self.receiver.code(),
        }
    }

    fn clear(&self) {
        // Tasks that wait get the error when they try again.
        self.receiver.wake();
        self.sender.wake();
        self.on_receive.clear();
        drop(self.detached.take());
    }
}

/// The sender of a datagram, which the kernel always reports for Internet sockets.
fn sender_of(sender: Option<AddressRef<'_>>) -> io::Result<SocketAddr> {
    internet(sender.map(AddressRef::to_address).ok_or(Errno::EINVAL))
}

impl Udp {
    /// Wakes the task that waits for a datagram, or stops receiving if there is none.
    fn wake_or_stop(&self, handle: &Handle<Udp>) {
        if !self.receiver.wake() {
            handle.engine().udp_receive_stop(handle.key);
        }
    }

    fn receive_for_callback(&self, lp: &LoopHandle, handle: &Rc<Handle<Udp>>) {
        handle.inner.with_scratch(|scratch| {
            let mut sender = SenderRoom::new();
            let received = handle
                .engine()
                .udp_receive(handle.key, &mut *scratch, &mut sender);
            let received = match received {
                Err(Errno::EAGAIN) => return,
                Err(error) => Err(error.into()),
                Ok(datagram) => sender_of(datagram.sender).map(|from| Datagram {
                    bytes: &scratch[..datagram.len],
                    from,
                }),
            };
            self.on_receive
                .call(|callback| callback(lp, handle, received));
        });
    }
}

/// A UDP socket, for callbacks and tasks. Clones refer to the same socket, which closes with the
/// last one.
///
/// ```
/// use blacklight::{Loop, UdpSocket};
///
/// let lp = Loop::new()?;
/// let one = lp.block_on(UdpSocket::bind("127.0.0.1:0"))?;
/// let two = lp.block_on(UdpSocket::bind("127.0.0.1:0"))?;
/// lp.block_on(async {
///     one.send_to(b"hello", two.local_addr()?).await?;
///     let mut buf = [0; 16];
///     let (count, from) = two.recv_from(&mut buf).await?;
///     assert_eq!(&buf[..count], b"hello");
///     assert_eq!(from, one.local_addr()?);
///     Ok::<(), std::io::Error>(())
/// })?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[must_use = "a handle closes when it is dropped"]
pub struct UdpSocket {
    handle: Rc<Handle<Udp>>,
}

common_methods!(UdpSocket);

impl Clone for UdpSocket {
    /// Returns another reference to the same socket, which closes with the last one.
    fn clone(&self) -> UdpSocket {
        UdpSocket {
            handle: self.handle.clone(),
        }
    }
}

impl UdpSocket {
    fn new() -> io::Result<UdpSocket> {
        let state = Rc::new(Udp {
            handle: OnceCell::new(),
            fd: OnceCell::new(),
            receiver: Waiter::default(),
            sender: Waiter::default(),
            failure: Cell::new(None),
            on_receive: Slot::new(),
            has_callback: Cell::new(false),
            detached: Cell::new(None),
        });
        let (handle, ()) = here()?.attach(state, |engine, token| {
            Ok((engine.udp_init(token, None)?, ()))
        })?;
        let handle = Rc::new(handle);
        let _ = handle.state.handle.set(Rc::downgrade(&handle));
        Ok(UdpSocket { handle })
    }

    /// Creates a socket bound to an address. With port 0, the kernel chooses the port.
    ///
    /// ```
    /// use blacklight::{Loop, UdpSocket};
    ///
    /// let lp = Loop::new()?;
    /// lp.block_on(async {
    ///     let socket = UdpSocket::bind(("127.0.0.1", 0)).await?;
    ///     let taken = UdpSocket::bind(socket.local_addr()?).await;
    ///     assert_eq!(taken.unwrap_err().kind(), std::io::ErrorKind::AddrInUse);
    ///     # Ok::<(), std::io::Error>(())
    /// })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub async fn bind(to: impl ToSocketAddrs) -> io::Result<UdpSocket> {
        UdpSocket::bind_with(to, UdpOptions::default()).await
    }

    /// Like [`bind`](UdpSocket::bind), with options.
    ///
    /// ```
    /// use blacklight::{Loop, UdpOptions, UdpSocket};
    ///
    /// let lp = Loop::new()?;
    /// let options = UdpOptions::new().reuse_port(true);
    /// let one = lp.block_on(UdpSocket::bind_with("127.0.0.1:0", options))?;
    /// let two = lp.block_on(UdpSocket::bind_with(one.local_addr()?, options))?;
    /// assert_eq!(one.local_addr()?, two.local_addr()?);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub async fn bind_with(to: impl ToSocketAddrs, options: UdpOptions) -> io::Result<UdpSocket> {
        let bind = async |address: SocketAddr| {
            let socket = UdpSocket::new()?;
            socket.with(|engine, key| engine.udp_bind(key, &address.into(), options.0))?;
            Ok(socket)
        };
        to.target().first(bind).await
    }

    /// Takes ownership of a socket, and makes it non-blocking.
    ///
    /// ```
    /// use blacklight::{Loop, UdpSocket};
    ///
    /// let lp = Loop::new()?;
    /// let socket = std::net::UdpSocket::bind("127.0.0.1:0")?;
    /// let address = socket.local_addr()?;
    /// assert_eq!(UdpSocket::from_std(socket)?.local_addr()?, address);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn from_std(socket: std::net::UdpSocket) -> io::Result<UdpSocket> {
        UdpSocket::from_fd(socket.into())
    }

    /// Like [`from_std`](UdpSocket::from_std), for any descriptor.
    ///
    /// ```
    /// use blacklight::{Loop, UdpSocket};
    /// use std::os::fd::OwnedFd;
    ///
    /// let lp = Loop::new()?;
    /// let inherited = OwnedFd::from(std::net::UdpSocket::bind("127.0.0.1:0")?);
    /// let socket = UdpSocket::from_fd(inherited)?;
    /// assert_ne!(socket.local_addr()?.port(), 0);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn from_fd(fd: OwnedFd) -> io::Result<UdpSocket> {
        let socket = UdpSocket::new()?;
        socket.with(|engine, key| {
            let opened = engine.udp_open(key, fd.into(), UdpReuse::default());
            opened.map_err(|(error, _)| error)
        })?;
        Ok(socket)
    }

    fn with<R>(&self, f: impl FnOnce(&mut Engine, Key) -> EngineResult<R>) -> io::Result<R> {
        self.handle.with(f)
    }

    /// Connects the socket: sends go to this address, and datagrams from others are dropped.
    ///
    /// ```
    /// use blacklight::{Loop, UdpSocket};
    ///
    /// let lp = Loop::new()?;
    /// let one = lp.block_on(UdpSocket::bind("127.0.0.1:0"))?;
    /// let two = lp.block_on(UdpSocket::bind("127.0.0.1:0"))?;
    /// lp.block_on(async {
    ///     one.connect(two.local_addr()?).await?;
    ///     two.connect(one.local_addr()?).await?;
    ///     assert_eq!(one.peer_addr()?, two.local_addr()?);
    ///     one.send(b"light").await?;
    ///     two.recv(&mut [0; 8]).await
    /// })?;
    /// one.disconnect()?;
    /// assert!(one.peer_addr().is_err());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub async fn connect(&self, to: impl ToSocketAddrs) -> io::Result<()> {
        let connect = async |address: SocketAddr| {
            self.with(|engine, key| engine.udp_connect(key, &address.into()))
        };
        to.target().first(connect).await
    }

    /// Undoes [`connect`](UdpSocket::connect).
    ///
    /// ```
    /// use blacklight::{Loop, UdpSocket};
    ///
    /// let lp = Loop::new()?;
    /// let socket = lp.block_on(UdpSocket::bind("127.0.0.1:0"))?;
    /// lp.block_on(socket.connect(socket.local_addr()?))?;
    /// socket.disconnect()?;
    /// assert!(socket.try_send(b"to whom?").is_err());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn disconnect(&self) -> io::Result<()> {
        self.with(|engine, key| engine.udp_disconnect(key))
    }

    /// Returns the socket for use without the loop. It stays non-blocking.
    ///
    /// ```
    /// use blacklight::{Loop, UdpSocket};
    ///
    /// let lp = Loop::new()?;
    /// let socket = lp.block_on(UdpSocket::bind("127.0.0.1:0"))?;
    /// let socket: std::net::UdpSocket = socket.into_std()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn into_std(self) -> io::Result<std::net::UdpSocket> {
        let shared = self.with(|engine, key| engine.udp_share_fd(key))?;
        Ok(shared.as_fd().try_clone_to_owned()?.into())
    }

    /// The local address of the socket.
    ///
    /// ```
    /// use blacklight::{Loop, UdpSocket};
    ///
    /// let lp = Loop::new()?;
    /// let socket = lp.block_on(UdpSocket::bind("127.0.0.1:0"))?;
    /// assert_ne!(socket.local_addr()?.port(), 0, "the kernel has chosen one");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        internet(self.with(|engine, key| engine.udp_address(key, false)))
    }

    /// The address that the socket is connected to.
    ///
    /// ```
    /// use blacklight::{Loop, UdpSocket};
    /// use std::io::ErrorKind;
    ///
    /// let lp = Loop::new()?;
    /// let socket = lp.block_on(UdpSocket::bind("127.0.0.1:0"))?;
    /// assert_eq!(socket.peer_addr().unwrap_err().kind(), ErrorKind::NotConnected);
    /// lp.block_on(socket.connect(socket.local_addr()?))?;
    /// assert_eq!(socket.peer_addr()?, socket.local_addr()?);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        internet(self.with(|engine, key| engine.udp_address(key, true)))
    }

    /// Calls back with each datagram, replacing an earlier callback. An error usually concerns a
    /// datagram that was sent earlier; receiving goes on. Until [`recv_stop`](UdpSocket::recv_stop),
    /// futures that receive fail with [`Error::HasCallback`].
    ///
    /// ```
    /// use blacklight::{Loop, Mode, UdpSocket};
    ///
    /// let lp = Loop::new()?;
    /// let socket = lp.block_on(UdpSocket::bind("127.0.0.1:0"))?;
    /// socket.recv_start(|_, socket, datagram| {
    ///     assert_eq!(datagram.unwrap().bytes, b"to myself");
    ///     socket.recv_stop();
    /// })?;
    /// let own = socket.local_addr()?;
    /// socket.send_to_then("to myself", own, |_, result| result.unwrap())?;
    /// lp.run(Mode::Default);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn recv_start(
        &self,
        mut callback: impl FnMut(&LoopHandle, &UdpSocket, io::Result<Datagram<'_>>) + 'static,
    ) -> io::Result<()> {
        self.handle.check_open()?;
        // A task may have started receiving before, without making the handle active.
        self.recv_stop();
        self.with(|engine, key| engine.udp_receive_start(key))?;
        let state = &self.handle.state;
        state.has_callback.set(true);
        // A future that receives gets an error.
        state.receiver.wake();
        let code = Code::of(&callback);
        let on_receive =
            move |lp: &LoopHandle, handle: &Rc<Handle<Udp>>, datagram: Received<'_>| {
                let handle = handle.clone();
                callback(lp, &UdpSocket { handle }, datagram);
            };
        state.on_receive.set(Box::new(on_receive), code);
        Ok(())
    }

    /// Stops [`recv_start`](UdpSocket::recv_start), and drops its callback.
    ///
    /// ```
    /// use blacklight::{Loop, Mode, UdpSocket};
    ///
    /// let lp = Loop::new()?;
    /// let socket = lp.block_on(UdpSocket::bind("127.0.0.1:0"))?;
    /// socket.recv_start(|_, _, _| unreachable!("it was stopped"))?;
    /// socket.try_send_to(b"light", socket.local_addr()?)?;
    /// socket.recv_stop();
    /// assert!(!lp.run(Mode::Default));
    /// // The datagram waits for whoever receives next.
    /// assert_eq!(lp.block_on(socket.recv(&mut [0; 8]))?, 5);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn recv_stop(&self) {
        self.handle.engine().udp_receive_stop(self.handle.key);
        self.handle.state.has_callback.set(false);
        self.handle.state.on_receive.clear();
    }

    /// Sends a datagram to the address that the socket is connected to, and then calls `after`. If
    /// this returns an error, `after` is not called.
    ///
    /// ```
    /// use blacklight::{Loop, Mode, UdpSocket};
    ///
    /// let lp = Loop::new()?;
    /// let socket = lp.block_on(UdpSocket::bind("127.0.0.1:0"))?;
    /// lp.block_on(socket.connect(socket.local_addr()?))?;
    /// socket.send_then("light", |_, sent| sent.unwrap())?;
    /// lp.run(Mode::Default);
    /// assert_eq!(socket.try_recv_from(&mut [0; 8])?.0, 5);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn send_then(
        &self,
        bytes: impl Into<Vec<u8>>,
        after: impl FnOnce(&LoopHandle, io::Result<()>) + 'static,
    ) -> io::Result<()> {
        let code = Code::of(&after);
        self.request_send(code, bytes.into(), None, after)
    }

    /// Sends a datagram to an address, or to the first of several that works, and then calls `after`.
    /// If this returns an error, `after` is not called.
    ///
    /// ```
    /// use blacklight::{Loop, Mode, UdpSocket};
    ///
    /// let lp = Loop::new()?;
    /// let socket = lp.block_on(UdpSocket::bind("127.0.0.1:0"))?;
    /// socket.send_to_then("light", socket.local_addr()?, |_, sent| sent.unwrap())?;
    /// lp.run(Mode::Default);
    /// assert_eq!(socket.send_queue().datagrams, 0, "it is sent, and reported");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn send_to_then(
        &self,
        bytes: impl Into<Vec<u8>>,
        to: impl ToSocketAddrs,
        after: impl FnOnce(&LoopHandle, io::Result<()>) + 'static,
    ) -> io::Result<()> {
        self.handle.check_open()?;
        let (code, bytes, target) = (Code::of(&after), bytes.into(), to.target());
        if let Some(address) = target.one() {
            return self.request_send(code, bytes, Some(address), after);
        }
        let lp = LoopHandle(self.handle.inner.clone());
        let own = self.clone();
        let begin = move |_: &LoopHandle, address, done: Done<()>| {
            own.request_send(code, bytes.clone(), Some(address), done)
        };
        target.first_then(&lp, code, begin, after)
    }

    fn request_send(
        &self,
        code: Code,
        bytes: Vec<u8>,
        to: Option<SocketAddr>,
        after: impl FnOnce(&LoopHandle, io::Result<()>) + 'static,
    ) -> io::Result<()> {
        self.handle.check_open()?;
        let buffers = Buffers::owned(bytes);
        let to = to.map(Address::from);
        let key = self.handle.key;
        let completion = move |lp: &LoopHandle, event: Event| {
            let result = match event {
                Event::Send(_, result, _) => result,
                _ => Ok(()),
            };
            after(lp, result.map_err(io::Error::from));
        };
        let entry = Entry::Request(code, Box::new(completion));
        self.handle.inner.register(entry, |engine, token| {
            let to = to.as_ref().map(AddressRef::from);
            match engine.udp_send(key, token, &buffers, to)? {
                true => Ok(()),
                false => engine.udp_send_later(key, token, buffers, to),
            }
        })?;
        Ok(())
    }

    /// Receives a datagram without waiting, and returns its length and its sender.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if none has arrived.
    ///
    /// ```
    /// use blacklight::{Loop, UdpSocket};
    /// use std::io::ErrorKind;
    ///
    /// let lp = Loop::new()?;
    /// let socket = lp.block_on(UdpSocket::bind("127.0.0.1:0"))?;
    /// let own = socket.local_addr()?;
    /// let mut buf = [0; 8];
    /// assert_eq!(socket.try_recv_from(&mut buf).unwrap_err().kind(), ErrorKind::WouldBlock);
    /// socket.try_send_to(b"light", own)?;
    /// assert_eq!(socket.try_recv_from(&mut buf)?, (5, own));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn try_recv_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        let mut sender = SenderRoom::new();
        let mut engine = self.handle.engine();
        let datagram = engine.udp_try_receive(self.handle.key, buf, &mut sender);
        let datagram = datagram.map_err(|error| self.handle.explain(error))?;
        Ok((datagram.len, sender_of(datagram.sender)?))
    }

    /// Sends a datagram without waiting.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if the kernel's buffer is full, or while
    /// datagrams of [`send_then`](UdpSocket::send_then) are pending.
    ///
    /// A name has to be looked up, which waits, so this takes an address; see
    /// [`dns::lookup`](crate::dns::lookup).
    ///
    /// ```
    /// use blacklight::{Loop, UdpSocket};
    ///
    /// let lp = Loop::new()?;
    /// let socket = lp.block_on(UdpSocket::bind("127.0.0.1:0"))?;
    /// assert_eq!(socket.try_send_to(b"light", socket.local_addr()?)?, 5);
    /// let too_long = vec![0; 1 << 17];
    /// assert!(socket.try_send_to(&too_long, socket.local_addr()?).is_err());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn try_send_to(&self, bytes: &[u8], to: SocketAddr) -> io::Result<usize> {
        self.try_send_any(bytes, Some(to))
    }

    /// Like [`try_send_to`](UdpSocket::try_send_to), for a connected socket.
    ///
    /// ```
    /// use blacklight::{Loop, UdpSocket};
    /// use std::io::ErrorKind;
    ///
    /// let lp = Loop::new()?;
    /// lp.block_on(async {
    ///     let socket = UdpSocket::bind("127.0.0.1:0").await?;
    ///     let error = socket.try_send(b"to whom?").unwrap_err();
    ///     assert_eq!(error.raw_os_error(), Some(libc::EDESTADDRREQ));
    ///     socket.connect(socket.local_addr()?).await?;
    ///     assert_eq!(socket.try_send(b"light")?, 5);
    ///     assert_eq!(socket.recv(&mut [0; 8]).await?, 5);
    ///     let error = socket.try_recv_from(&mut [0; 8]).unwrap_err();
    ///     assert_eq!(error.kind(), ErrorKind::WouldBlock);
    ///     # Ok::<(), std::io::Error>(())
    /// })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn try_send(&self, bytes: &[u8]) -> io::Result<usize> {
        self.try_send_any(bytes, None)
    }

    fn try_send_any(&self, bytes: &[u8], to: Option<SocketAddr>) -> io::Result<usize> {
        let to = to.map(Address::from);
        let slices = [IoSlice::new(bytes)];
        self.with(|engine, key| engine.udp_try_send_slices(key, &slices, to.as_ref()))
    }

    /// Receives a datagram, and returns its length and its sender. Bytes that do not fit into
    /// `buf` are lost. Cancel-safe: dropping the future loses no datagram. Several tasks may wait on
    /// clones of one socket; each datagram goes to one of them.
    ///
    /// ```
    /// use blacklight::{Loop, UdpSocket};
    ///
    /// let lp = Loop::new()?;
    /// lp.block_on(async {
    ///     let socket = UdpSocket::bind("127.0.0.1:0").await?;
    ///     let own = socket.local_addr()?;
    ///     socket.send_to(b"black light", own).await?;
    ///     socket.send_to(b"", own).await?;
    ///     let mut buf = [0; 5];
    ///     assert_eq!(socket.recv_from(&mut buf).await?, (5, own));
    ///     assert_eq!(&buf, b"black", "the rest is lost");
    ///     assert_eq!(socket.recv_from(&mut buf).await?, (0, own), "an empty one");
    ///     # Ok::<(), std::io::Error>(())
    /// })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub async fn recv_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        let receiver = &self.handle.state.receiver;
        receiver
            .wait(|context| self.poll_recv_from(context, buf))
            .await
    }

    /// Like [`recv_from`](UdpSocket::recv_from), for a connected socket.
    ///
    /// ```
    /// use blacklight::{Loop, UdpSocket};
    ///
    /// let lp = Loop::new()?;
    /// lp.block_on(async {
    ///     let client = UdpSocket::bind("127.0.0.1:0").await?;
    ///     let server = UdpSocket::bind("127.0.0.1:0").await?;
    ///     client.connect(server.local_addr()?).await?;
    ///     let stranger = UdpSocket::bind("127.0.0.1:0").await?;
    ///     stranger.send_to(b"not heard", client.local_addr()?).await?;
    ///     server.send_to(b"light", client.local_addr()?).await?;
    ///     let mut buf = [0; 16];
    ///     let count = client.recv(&mut buf).await?;
    ///     assert_eq!(&buf[..count], b"light");
    ///     # Ok::<(), std::io::Error>(())
    /// })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub async fn recv(&self, buf: &mut [u8]) -> io::Result<usize> {
        Ok(self.recv_from(buf).await?.0)
    }

    /// Sends a datagram to an address.
    ///
    /// ```
    /// use blacklight::{Loop, UdpSocket};
    ///
    /// let lp = Loop::new()?;
    /// lp.block_on(async {
    ///     let socket = UdpSocket::bind("127.0.0.1:0").await?;
    ///     let port = socket.local_addr()?.port();
    ///     assert_eq!(socket.send_to(b"light", ("127.0.0.1", port)).await?, 5);
    ///     # Ok::<(), std::io::Error>(())
    /// })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub async fn send_to(&self, bytes: &[u8], to: impl ToSocketAddrs) -> io::Result<usize> {
        let send = async |address| self.send_any(bytes, Some(address)).await;
        to.target().first(send).await
    }

    /// Sends a datagram to the address that the socket is connected to.
    ///
    /// ```
    /// use blacklight::{Loop, UdpSocket};
    ///
    /// let lp = Loop::new()?;
    /// lp.block_on(async {
    ///     let socket = UdpSocket::bind("127.0.0.1:0").await?;
    ///     assert!(socket.send(b"to whom?").await.is_err());
    ///     socket.connect(socket.local_addr()?).await?;
    ///     assert_eq!(socket.send(b"to me").await?, 5);
    ///     # Ok::<(), std::io::Error>(())
    /// })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub async fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        self.send_any(bytes, None).await
    }

    async fn send_any(&self, bytes: &[u8], to: Option<SocketAddr>) -> io::Result<usize> {
        let sender = &self.handle.state.sender;
        sender
            .wait(|context| self.poll_send_any(context, bytes, to))
            .await
    }

    /// Polls for a datagram; see [`recv_from`](UdpSocket::recv_from).
    ///
    /// ```
    /// use blacklight::{Loop, UdpSocket};
    /// use std::future::poll_fn;
    ///
    /// let lp = Loop::new()?;
    /// let socket = lp.block_on(UdpSocket::bind("127.0.0.1:0"))?;
    /// let own = socket.local_addr()?;
    /// lp.block_on(async {
    ///     poll_fn(|context| socket.poll_send_to(context, b"light", own)).await?;
    ///     let mut buf = [0; 8];
    ///     let received = poll_fn(|context| socket.poll_recv_from(context, &mut buf)).await?;
    ///     assert_eq!(received, (5, own));
    ///     # Ok::<(), std::io::Error>(())
    /// })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn poll_recv_from(
        &self,
        context: &mut Context<'_>,
        buf: &mut [u8],
    ) -> Poll<io::Result<(usize, SocketAddr)>> {
        if self.handle.state.has_callback.get() {
            return Poll::Ready(Err(Error::HasCallback.into()));
        }
        ready!(self.handle.inner.poll_budget(context));
        if let Some(error) = self.handle.state.failure.get() {
            return Poll::Ready(Err(error.into()));
        }
        match self.try_recv_from(buf) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            received => return Poll::Ready(received),
        }
        // The task keeps the loop running, so the handle must not.
        let started = (self.handle.engine()).udp_receive_start_quietly(self.handle.key);
        match started {
            Ok(()) | Err(Errno::EALREADY) => {}
            Err(error) => return Poll::Ready(Err(self.handle.explain(error))),
        }
        self.handle.state.receiver.set(context);
        self.handle.inner.pending()
    }

    /// Polls to send a datagram; see [`send_to`](UdpSocket::send_to). This takes an address, since
    /// each poll would look a name up again.
    ///
    /// ```
    /// use blacklight::{Loop, UdpSocket};
    /// use std::future::poll_fn;
    ///
    /// let lp = Loop::new()?;
    /// let socket = lp.block_on(UdpSocket::bind("127.0.0.1:0"))?;
    /// let own = socket.local_addr()?;
    /// let sent = lp.block_on(poll_fn(|context| socket.poll_send_to(context, b"light", own)));
    /// assert_eq!(sent?, 5);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn poll_send_to(
        &self,
        context: &mut Context<'_>,
        bytes: &[u8],
        to: SocketAddr,
    ) -> Poll<io::Result<usize>> {
        self.poll_send_any(context, bytes, Some(to))
    }

    /// Polls to send a datagram; see [`send`](UdpSocket::send).
    ///
    /// ```
    /// use blacklight::{Loop, UdpSocket};
    /// use std::future::poll_fn;
    ///
    /// let lp = Loop::new()?;
    /// lp.block_on(async {
    ///     let socket = UdpSocket::bind("127.0.0.1:0").await?;
    ///     socket.connect(socket.local_addr()?).await?;
    ///     let sent = poll_fn(|context| socket.poll_send(context, b"light")).await?;
    ///     assert_eq!(sent, 5);
    ///     # Ok::<(), std::io::Error>(())
    /// })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn poll_send(&self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_send_any(context, bytes, None)
    }

    fn poll_send_any(
        &self,
        context: &mut Context<'_>,
        bytes: &[u8],
        to: Option<SocketAddr>,
    ) -> Poll<io::Result<usize>> {
        ready!(self.handle.inner.poll_budget(context));
        match self.try_send_any(bytes, to) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            sent => return Poll::Ready(sent),
        }
        if let Err(error) = self.with(|engine, key| engine.udp_want_writable(key)) {
            return Poll::Ready(Err(error));
        }
        self.handle.state.sender.set(context);
        self.handle.inner.pending()
    }

    /// The pending datagrams of [`send_then`](UdpSocket::send_then) and
    /// [`send_to_then`](UdpSocket::send_to_then).
    ///
    /// ```
    /// use blacklight::{Loop, Mode, UdpSocket};
    ///
    /// let lp = Loop::new()?;
    /// let socket = lp.block_on(UdpSocket::bind("127.0.0.1:0"))?;
    /// socket.send_to_then("light", socket.local_addr()?, |_, sent| sent.unwrap())?;
    /// lp.run(Mode::Default);
    /// let queue = socket.send_queue();
    /// assert_eq!((queue.datagrams, queue.bytes), (0, 0));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn send_queue(&self) -> SendQueue {
        let (datagrams, bytes) = self.handle.engine().udp_send_queue(self.handle.key);
        SendQueue { datagrams, bytes }
    }

    /// Sets how many hops datagrams may take, from 1 to 255.
    ///
    /// ```
    /// use blacklight::{Loop, UdpSocket};
    ///
    /// let lp = Loop::new()?;
    /// let socket = lp.block_on(UdpSocket::bind("0.0.0.0:0"))?;
    /// socket.set_ttl(64)?;
    /// socket.set_broadcast(true)?;
    /// assert!(socket.set_ttl(0).is_err());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn set_ttl(&self, ttl: u8) -> io::Result<()> {
        self.with(|engine, key| engine.udp_set_ttl(key, ttl.into()))
    }

    /// Allows or forbids sending to broadcast addresses.
    ///
    /// ```
    /// use blacklight::{Loop, UdpSocket};
    /// use std::net::Ipv4Addr;
    ///
    /// let lp = Loop::new()?;
    /// let socket = lp.block_on(UdpSocket::bind("0.0.0.0:0"))?;
    /// let everybody = (Ipv4Addr::BROADCAST, 9).into();
    /// let error = socket.try_send_to(b"light", everybody).unwrap_err();
    /// println!("not allowed yet: {error}");
    /// socket.set_broadcast(true)?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn set_broadcast(&self, on: bool) -> io::Result<()> {
        self.with(|engine, key| engine.udp_set_broadcast(key, on))
    }

    /// Sets how many hops multicast datagrams may take.
    ///
    /// ```
    /// use blacklight::{Loop, UdpSocket};
    ///
    /// let lp = Loop::new()?;
    /// let socket = lp.block_on(UdpSocket::bind("0.0.0.0:0"))?;
    /// socket.set_multicast_ttl(1)?; // No router forwards it.
    /// socket.set_multicast_loop(false)?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn set_multicast_ttl(&self, ttl: u8) -> io::Result<()> {
        self.with(|engine, key| engine.udp_set_multicast_ttl(key, ttl.into()))
    }

    /// Sets whether members on this machine receive the multicast datagrams that it sends.
    ///
    /// ```
    /// use blacklight::{Loop, UdpSocket};
    ///
    /// let lp = Loop::new()?;
    /// let socket = lp.block_on(UdpSocket::bind("0.0.0.0:0"))?;
    /// socket.set_multicast_loop(false)?; // Only other machines hear it.
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn set_multicast_loop(&self, on: bool) -> io::Result<()> {
        self.with(|engine, key| engine.udp_set_multicast_loop(key, on.into()))
    }

    /// Sends IPv4 multicast from the interface with this address. If it is unspecified, the
    /// kernel chooses the interface.
    ///
    /// ```
    /// use blacklight::{Loop, UdpSocket};
    /// use std::net::Ipv4Addr;
    ///
    /// let lp = Loop::new()?;
    /// let socket = lp.block_on(UdpSocket::bind("127.0.0.1:0"))?;
    /// socket.set_multicast_interface_v4(Ipv4Addr::LOCALHOST)?;
    /// // An address that no interface has.
    /// let nowhere = Ipv4Addr::new(192, 0, 2, 1);
    /// assert!(socket.set_multicast_interface_v4(nowhere).is_err());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn set_multicast_interface_v4(&self, interface: Ipv4Addr) -> io::Result<()> {
        let interface = Some(Interface::V4(interface));
        self.with(|engine, key| engine.udp_set_multicast_interface(key, interface))
    }

    /// Sends IPv6 multicast from the interface with this index. If it is zero, the kernel chooses
    /// the interface.
    ///
    /// ```
    /// use blacklight::{Loop, UdpSocket};
    ///
    /// let lp = Loop::new()?;
    /// // Not every machine has IPv6.
    /// if let Ok(socket) = lp.block_on(UdpSocket::bind("[::]:0")) {
    ///     socket.set_multicast_interface_v6(0)?;
    /// }
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn set_multicast_interface_v6(&self, interface: u32) -> io::Result<()> {
        let interface = Some(Interface::V6(interface));
        self.with(|engine, key| engine.udp_set_multicast_interface(key, interface))
    }

    fn set_membership_v4(
        &self,
        group: Ipv4Addr,
        interface: Ipv4Addr,
        source: Option<Ipv4Addr>,
        is_member: bool,
    ) -> io::Result<()> {
        let group = Group::V4 {
            group,
            interface,
            source,
        };
        self.with(|engine, key| engine.udp_set_membership(key, group, is_member))
    }

    /// Joins an IPv4 group on the interface with this address. If it is unspecified, the kernel
    /// chooses the interface.
    ///
    /// ```
    /// use blacklight::{Loop, UdpSocket};
    /// use std::net::Ipv4Addr;
    ///
    /// let lp = Loop::new()?;
    /// let (group, interface) = (Ipv4Addr::new(239, 255, 71, 12), Ipv4Addr::LOCALHOST);
    /// lp.block_on(async {
    ///     let member = UdpSocket::bind("0.0.0.0:0").await?;
    ///     member.join_multicast_v4(group, interface)?;
    ///     let sender = UdpSocket::bind("127.0.0.1:0").await?;
    ///     sender.set_multicast_interface_v4(interface)?;
    ///     sender.send_to(b"light", (group, member.local_addr()?.port())).await?;
    ///     let (_, from) = member.recv_from(&mut [0; 8]).await?;
    ///     assert_eq!(from, sender.local_addr()?);
    ///     member.leave_multicast_v4(group, interface)
    /// })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn join_multicast_v4(&self, group: Ipv4Addr, interface: Ipv4Addr) -> io::Result<()> {
        self.set_membership_v4(group, interface, None, true)
    }

    /// Leaves an IPv4 group that was joined with the same arguments.
    ///
    /// ```
    /// use blacklight::{Loop, UdpSocket};
    /// use std::net::Ipv4Addr;
    ///
    /// let lp = Loop::new()?;
    /// let (group, interface) = (Ipv4Addr::new(239, 255, 71, 13), Ipv4Addr::LOCALHOST);
    /// let member = lp.block_on(UdpSocket::bind("0.0.0.0:0"))?;
    /// member.join_multicast_v4(group, interface)?;
    /// member.leave_multicast_v4(group, interface)?;
    /// assert!(member.leave_multicast_v4(group, interface).is_err(), "no member any more");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn leave_multicast_v4(&self, group: Ipv4Addr, interface: Ipv4Addr) -> io::Result<()> {
        self.set_membership_v4(group, interface, None, false)
    }

    /// Joins an IPv4 group on an interface, and receives the datagrams of one source only
    /// (source-specific multicast).
    ///
    /// ```
    /// use blacklight::{Loop, UdpSocket};
    /// use std::net::Ipv4Addr;
    ///
    /// let lp = Loop::new()?;
    /// let (group, interface) = (Ipv4Addr::new(232, 1, 71, 12), Ipv4Addr::LOCALHOST);
    /// let member = lp.block_on(UdpSocket::bind("0.0.0.0:0"))?;
    /// let source = Ipv4Addr::LOCALHOST;
    /// member.join_ssm_v4(source, group, interface)?;
    /// member.leave_ssm_v4(source, group, interface)?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn join_ssm_v4(
        &self,
        source: Ipv4Addr,
        group: Ipv4Addr,
        interface: Ipv4Addr,
    ) -> io::Result<()> {
        self.set_membership_v4(group, interface, Some(source), true)
    }

    /// Leaves an IPv4 group that was joined with the same arguments.
    ///
    /// ```
    /// use blacklight::{Loop, UdpSocket};
    /// use std::net::Ipv4Addr;
    ///
    /// let lp = Loop::new()?;
    /// let member = lp.block_on(UdpSocket::bind("0.0.0.0:0"))?;
    /// let (source, group) = (Ipv4Addr::LOCALHOST, Ipv4Addr::new(232, 1, 71, 13));
    /// assert!(member.leave_ssm_v4(source, group, source).is_err(), "it is no member");
    /// member.join_ssm_v4(source, group, source)?;
    /// member.leave_ssm_v4(source, group, source)?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn leave_ssm_v4(
        &self,
        source: Ipv4Addr,
        group: Ipv4Addr,
        interface: Ipv4Addr,
    ) -> io::Result<()> {
        self.set_membership_v4(group, interface, Some(source), false)
    }

    fn set_membership_v6(
        &self,
        group: Ipv6Addr,
        interface: u32,
        source: Option<Ipv6Addr>,
        is_member: bool,
    ) -> io::Result<()> {
        let group = Group::V6 {
            group,
            interface,
            source,
        };
        self.with(|engine, key| engine.udp_set_membership(key, group, is_member))
    }

    /// Joins an IPv6 group on the interface with this index. If it is zero, the kernel chooses
    /// the interface.
    ///
    /// ```
    /// use blacklight::{Loop, UdpSocket};
    /// use std::net::Ipv6Addr;
    ///
    /// let lp = Loop::new()?;
    /// // Not every machine has IPv6.
    /// if let Ok(socket) = lp.block_on(UdpSocket::bind("[::]:0")) {
    ///     let group = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0x4711);
    ///     // The first interface is the loopback interface.
    ///     socket.join_multicast_v6(group, 1)?;
    ///     socket.leave_multicast_v6(group, 1)?;
    /// }
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn join_multicast_v6(&self, group: Ipv6Addr, interface: u32) -> io::Result<()> {
        self.set_membership_v6(group, interface, None, true)
    }

    /// Leaves an IPv6 group that was joined with the same arguments.
    ///
    /// ```
    /// use blacklight::{Loop, UdpSocket};
    /// use std::net::Ipv6Addr;
    ///
    /// let lp = Loop::new()?;
    /// // Not every machine has IPv6.
    /// if let Ok(socket) = lp.block_on(UdpSocket::bind("[::]:0")) {
    ///     let group = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0x4712);
    ///     assert!(socket.leave_multicast_v6(group, 1).is_err(), "it is no member");
    ///     socket.join_multicast_v6(group, 1)?;
    ///     socket.leave_multicast_v6(group, 1)?;
    /// }
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn leave_multicast_v6(&self, group: Ipv6Addr, interface: u32) -> io::Result<()> {
        self.set_membership_v6(group, interface, None, false)
    }

    /// Joins an IPv6 group on an interface, and receives the datagrams of one source only
    /// (source-specific multicast).
    ///
    /// ```
    /// use blacklight::{Loop, UdpSocket};
    /// use std::net::Ipv6Addr;
    ///
    /// let lp = Loop::new()?;
    /// // Not every machine has IPv6.
    /// if let Ok(socket) = lp.block_on(UdpSocket::bind("[::]:0")) {
    ///     let group = Ipv6Addr::new(0xff32, 0, 0, 0, 0, 0, 0, 0x4711);
    ///     socket.join_ssm_v6(Ipv6Addr::LOCALHOST, group, 1)?;
    ///     socket.leave_ssm_v6(Ipv6Addr::LOCALHOST, group, 1)?;
    /// }
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn join_ssm_v6(&self, source: Ipv6Addr, group: Ipv6Addr, interface: u32) -> io::Result<()> {
        self.set_membership_v6(group, interface, Some(source), true)
    }

    /// Leaves an IPv6 group that was joined with the same arguments.
    ///
    /// ```
    /// use blacklight::{Loop, UdpSocket};
    /// use std::net::Ipv6Addr;
    ///
    /// let lp = Loop::new()?;
    /// // Not every machine has IPv6.
    /// if let Ok(socket) = lp.block_on(UdpSocket::bind("[::]:0")) {
    ///     let source = Ipv6Addr::LOCALHOST;
    ///     let group = Ipv6Addr::new(0xff32, 0, 0, 0, 0, 0, 0, 0x4712);
    ///     assert!(socket.leave_ssm_v6(source, group, 1).is_err(), "it is no member");
    ///     socket.join_ssm_v6(source, group, 1)?;
    ///     socket.leave_ssm_v6(source, group, 1)?;
    /// }
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn leave_ssm_v6(
        &self,
        source: Ipv6Addr,
        group: Ipv6Addr,
        interface: u32,
    ) -> io::Result<()> {
        self.set_membership_v6(group, interface, Some(source), false)
    }

    /// Gives the socket to the loop, which owns it until it is closed or the loop is gone.
    ///
    /// ```
    /// use blacklight::{Loop, Mode, UdpSocket};
    ///
    /// let lp = Loop::new()?;
    /// let socket = lp.block_on(UdpSocket::bind("127.0.0.1:0"))?;
    /// socket.recv_start(|_, socket, _| socket.close())?;
    /// socket.try_send_to(b"the end", socket.local_addr()?)?;
    /// socket.detach();
    /// lp.run(Mode::Default);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn detach(self) {
        // Nothing would take it out of the state that it owns.
        if !self.handle.is_over() {
            let state = self.handle.state.clone();
            state.detached.set(Some(self.handle));
        }
    }
}

/// A descriptor to borrow. Once it has been borrowed it stays open for as long as any clone
/// of the socket lives, since somebody may still use it: [`close`](Self::close) takes the
/// socket from the loop and leaves the descriptor open, so that the port is taken until the last
/// clone is dropped.
///
/// # Panics
///
/// If the socket was closed before, and the descriptor never borrowed.
impl AsFd for UdpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        let shared = self.handle.state.fd.get_or_init(|| {
            let shared = self.handle.engine().udp_share_fd(self.handle.key);
            shared.expect("an open socket has a descriptor")
        });
        shared.as_fd()
    }
}
