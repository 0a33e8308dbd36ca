//! UDP sockets.
//!
//! Like streams, sockets work with callbacks and in tasks; `stream/mod.rs` explains how tasks
//! wait. A datagram is sent or received whole, or not at all.

use crate::handle::{EngineResult, Handle, Slot, common_methods};
use crate::loop_::{Loop, gone};
use crate::stream::Waiter;
use crate::table::{Entry, Source};
use crate::tcp::internet;
use blacklight_engine::{Address, Buffers, Engine, Errno, Event, Group, Interface, Key};
use blacklight_engine::{AddressRef, SenderRoom, SharedFd, UdpBind, UdpReuse};
use std::cell::{Cell, OnceCell};
use std::future::poll_fn;
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
/// let socket = UdpSocket::bind(&lp, "127.0.0.1:0".parse().unwrap())?;
/// let own = socket.local_addr()?;
/// socket.recv_start(move |_, socket, datagram| {
///     let datagram = datagram.unwrap();
///     assert_eq!((datagram.bytes, datagram.from), (&b"light"[..], own));
///     socket.recv_stop();
/// })?;
/// socket.try_send(b"light", Some(own))?;
/// lp.run(Mode::Default);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Datagram<'a> {
    /// The contents.
    pub bytes: &'a [u8],
    /// The address of the sender.
    pub from: SocketAddr,
}

type Received<'a> = io::Result<Datagram<'a>>;

type OnReceive = dyn FnMut(&Loop, &Rc<Handle<Udp>>, Received<'_>);

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
    fn event(&self, lp: &Loop, event: Event) {
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

    fn clear(&self) {
        // Tasks that wait get the error when they try again.
        self.receiver.wake();
        self.sender.wake();
        self.on_receive.set(None);
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

    fn receive_for_callback(&self, lp: &Loop, handle: &Rc<Handle<Udp>>) {
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
/// let one = UdpSocket::bind(&lp, "127.0.0.1:0".parse().unwrap())?;
/// let two = UdpSocket::bind(&lp, "127.0.0.1:0".parse().unwrap())?;
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
    fn new(lp: &Loop) -> io::Result<UdpSocket> {
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
        let (handle, ()) = lp.attach(state, |engine, token| {
            Ok((engine.udp_init(token, None)?, ()))
        })?;
        let handle = Rc::new(handle);
        let _ = handle.state.handle.set(Rc::downgrade(&handle));
        Ok(UdpSocket { handle })
    }

    /// Creates a socket bound to an address. With port 0, the kernel chooses the port.
    pub fn bind(lp: &Loop, address: SocketAddr) -> io::Result<UdpSocket> {
        UdpSocket::bind_with(lp, address, UdpBind::default())
    }

    /// Like [`bind`](UdpSocket::bind), with options.
    ///
    /// ```
    /// use blacklight::{Loop, UdpBind, UdpReuse, UdpSocket};
    ///
    /// let lp = Loop::new()?;
    /// let reuse = UdpReuse { port: true, ..UdpReuse::default() };
    /// let options = UdpBind { reuse, ..UdpBind::default() };
    /// let one = UdpSocket::bind_with(&lp, "127.0.0.1:0".parse().unwrap(), options)?;
    /// let two = UdpSocket::bind_with(&lp, one.local_addr()?, options)?;
    /// assert_eq!(one.local_addr()?, two.local_addr()?);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn bind_with(lp: &Loop, address: SocketAddr, options: UdpBind) -> io::Result<UdpSocket> {
        let socket = UdpSocket::new(lp)?;
        socket.with(|engine, key| engine.udp_bind(key, &address.into(), options))?;
        Ok(socket)
    }

    /// Takes ownership of a socket, and makes it non-blocking.
    ///
    /// ```
    /// use blacklight::{Loop, UdpSocket};
    ///
    /// let lp = Loop::new()?;
    /// let socket = std::net::UdpSocket::bind("127.0.0.1:0")?;
    /// let address = socket.local_addr()?;
    /// assert_eq!(UdpSocket::from_std(&lp, socket)?.local_addr()?, address);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn from_std(lp: &Loop, socket: std::net::UdpSocket) -> io::Result<UdpSocket> {
        UdpSocket::from_fd(lp, socket.into())
    }

    /// Like [`from_std`](UdpSocket::from_std), for any descriptor.
    ///
    /// ```
    /// use blacklight::{Loop, UdpSocket};
    /// use std::os::fd::OwnedFd;
    ///
    /// let lp = Loop::new()?;
    /// let inherited = OwnedFd::from(std::net::UdpSocket::bind("127.0.0.1:0")?);
    /// let socket = UdpSocket::from_fd(&lp, inherited)?;
    /// assert_ne!(socket.local_addr()?.port(), 0);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn from_fd(lp: &Loop, fd: OwnedFd) -> io::Result<UdpSocket> {
        let socket = UdpSocket::new(lp)?;
        socket.with(|engine, key| {
            let opened = engine.udp_open(key, fd.into(), UdpReuse::default());
            opened.map_err(|(error, _)| error)
        })?;
        Ok(socket)
    }

    fn with<R>(&self, f: impl FnOnce(&mut Engine, Key) -> EngineResult<R>) -> io::Result<R> {
        Ok(f(&mut self.handle.engine(), self.handle.key)?)
    }

    /// Connects the socket: sends go to this address, and datagrams from others are dropped.
    ///
    /// ```
    /// use blacklight::{Loop, UdpSocket};
    ///
    /// let lp = Loop::new()?;
    /// let one = UdpSocket::bind(&lp, "127.0.0.1:0".parse().unwrap())?;
    /// let two = UdpSocket::bind(&lp, "127.0.0.1:0".parse().unwrap())?;
    /// one.connect(two.local_addr()?)?;
    /// two.connect(one.local_addr()?)?;
    /// assert_eq!(one.peer_addr()?, two.local_addr()?);
    /// lp.block_on(async {
    ///     one.send(b"light").await?;
    ///     two.recv(&mut [0; 8]).await
    /// })?;
    /// one.disconnect()?;
    /// assert!(one.peer_addr().is_err());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn connect(&self, address: SocketAddr) -> io::Result<()> {
        self.with(|engine, key| engine.udp_connect(key, &address.into()))
    }

    /// Undoes [`connect`](UdpSocket::connect).
    pub fn disconnect(&self) -> io::Result<()> {
        self.with(|engine, key| engine.udp_disconnect(key))
    }

    /// The local address of the socket.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        internet(self.handle.engine().udp_address(self.handle.key, false))
    }

    /// The address that the socket is connected to.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        internet(self.handle.engine().udp_address(self.handle.key, true))
    }

    /// Calls back with each datagram, replacing an earlier callback. An error usually concerns a
    /// datagram that was sent earlier; receiving goes on.
    ///
    /// ```
    /// use blacklight::{Loop, Mode, UdpSocket};
    ///
    /// let lp = Loop::new()?;
    /// let socket = UdpSocket::bind(&lp, "127.0.0.1:0".parse().unwrap())?;
    /// socket.recv_start(|_, socket, datagram| {
    ///     assert_eq!(datagram.unwrap().bytes, b"to myself");
    ///     socket.recv_stop();
    /// })?;
    /// let own = socket.local_addr()?;
    /// socket.send_then("to myself", Some(own), |_, result| result.unwrap())?;
    /// lp.run(Mode::Default);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn recv_start(
        &self,
        mut callback: impl FnMut(&Loop, &UdpSocket, io::Result<Datagram<'_>>) + 'static,
    ) -> io::Result<()> {
        if self.handle.inner.is_closed() {
            return Err(gone());
        }
        // A task may have started receiving before, without making the handle active.
        self.recv_stop();
        self.with(|engine, key| engine.udp_receive_start(key))?;
        let state = &self.handle.state;
        state.has_callback.set(true);
        let on_receive = move |lp: &Loop, handle: &Rc<Handle<Udp>>, datagram: Received<'_>| {
            let handle = handle.clone();
            callback(lp, &UdpSocket { handle }, datagram);
        };
        state.on_receive.set(Some(Box::new(on_receive)));
        Ok(())
    }

    /// Stops [`recv_start`](UdpSocket::recv_start), and drops its callback.
    pub fn recv_stop(&self) {
        self.handle.engine().udp_receive_stop(self.handle.key);
        self.handle.state.has_callback.set(false);
        self.handle.state.on_receive.set(None);
    }

    /// Sends a datagram, and then calls `after`. `to` is `None` if and only if the socket is
    /// connected. If this returns an error, `after` is not called.
    ///
    /// ```
    /// use blacklight::{Loop, Mode, UdpSocket};
    ///
    /// let lp = Loop::new()?;
    /// let socket = UdpSocket::bind(&lp, "127.0.0.1:0".parse().unwrap())?;
    /// socket.send_then("light", Some(socket.local_addr()?), |_, sent| sent.unwrap())?;
    /// lp.run(Mode::Default);
    /// assert_eq!(socket.send_queue(), (0, 0), "it is sent, and reported");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn send_then(
        &self,
        bytes: impl Into<Vec<u8>>,
        to: Option<SocketAddr>,
        after: impl FnOnce(&Loop, io::Result<()>) + 'static,
    ) -> io::Result<()> {
        let buffers = Buffers::owned(bytes.into());
        let to = to.map(Address::from);
        let key = self.handle.key;
        let completion = move |lp: &Loop, event: Event| {
            let result = match event {
                Event::Send(_, result, _) => result,
                _ => Ok(()),
            };
            after(lp, result.map_err(io::Error::from));
        };
        let entry = Entry::Request(Box::new(completion));
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
    /// let socket = UdpSocket::bind(&lp, "127.0.0.1:0".parse().unwrap())?;
    /// let own = socket.local_addr()?;
    /// let mut buf = [0; 8];
    /// assert_eq!(socket.try_recv_from(&mut buf).unwrap_err().kind(), ErrorKind::WouldBlock);
    /// socket.try_send(b"light", Some(own))?;
    /// assert_eq!(socket.try_recv_from(&mut buf)?, (5, own));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn try_recv_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        let mut sender = SenderRoom::new();
        let mut engine = self.handle.engine();
        let datagram = engine.udp_try_receive(self.handle.key, buf, &mut sender)?;
        Ok((datagram.len, sender_of(datagram.sender)?))
    }

    /// Sends a datagram without waiting.
    ///
    /// # Errors
    ///
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) if the kernel's buffer is full, or while
    /// datagrams of [`send_then`](UdpSocket::send_then) are pending.
    pub fn try_send(&self, bytes: &[u8], to: Option<SocketAddr>) -> io::Result<usize> {
        let to = to.map(Address::from);
        let slices = [IoSlice::new(bytes)];
        self.with(|engine, key| engine.udp_try_send_slices(key, &slices, to.as_ref()))
    }

    /// Receives a datagram, and returns its length and its sender. Bytes that do not fit into
    /// `buf` are lost. Cancel-safe: dropping the future loses no datagram.
    pub async fn recv_from(&self, buf: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        poll_fn(|context| self.poll_recv_from(context, buf)).await
    }

    /// Like [`recv_from`](UdpSocket::recv_from), for a connected socket.
    pub async fn recv(&self, buf: &mut [u8]) -> io::Result<usize> {
        Ok(self.recv_from(buf).await?.0)
    }

    /// Sends a datagram to an address.
    pub async fn send_to(&self, bytes: &[u8], to: SocketAddr) -> io::Result<usize> {
        poll_fn(|context| self.poll_send(context, bytes, Some(to))).await
    }

    /// Sends a datagram to the address that the socket is connected to.
    pub async fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        poll_fn(|context| self.poll_send(context, bytes, None)).await
    }

    /// Polls for a datagram; see [`recv_from`](UdpSocket::recv_from).
    ///
    /// ```
    /// use blacklight::{Loop, UdpSocket};
    /// use std::future::poll_fn;
    ///
    /// let lp = Loop::new()?;
    /// let socket = UdpSocket::bind(&lp, "127.0.0.1:0".parse().unwrap())?;
    /// let own = socket.local_addr()?;
    /// lp.block_on(async {
    ///     poll_fn(|context| socket.poll_send(context, b"light", Some(own))).await?;
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
            Err(error) => return Poll::Ready(Err(error.into())),
        }
        self.handle.state.receiver.set(context);
        self.handle.inner.pending()
    }

    /// Polls to send a datagram; see [`send_to`](UdpSocket::send_to) and
    /// [`send`](UdpSocket::send).
    pub fn poll_send(
        &self,
        context: &mut Context<'_>,
        bytes: &[u8],
        to: Option<SocketAddr>,
    ) -> Poll<io::Result<usize>> {
        ready!(self.handle.inner.poll_budget(context));
        match self.try_send(bytes, to) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            sent => return Poll::Ready(sent),
        }
        if let Err(error) = self.with(|engine, key| engine.udp_want_writable(key)) {
            return Poll::Ready(Err(error));
        }
        self.handle.state.sender.set(context);
        self.handle.inner.pending()
    }

    /// The number of pending datagrams of [`send_then`](UdpSocket::send_then), and their bytes.
    pub fn send_queue(&self) -> (usize, usize) {
        self.handle.engine().udp_send_queue(self.handle.key)
    }

    /// Sets how many hops datagrams may take, from 1 to 255.
    ///
    /// ```
    /// use blacklight::{Loop, UdpSocket};
    ///
    /// let lp = Loop::new()?;
    /// let socket = UdpSocket::bind(&lp, "0.0.0.0:0".parse().unwrap())?;
    /// socket.set_ttl(64)?;
    /// socket.set_broadcast(true)?;
    /// assert!(socket.set_ttl(0).is_err());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn set_ttl(&self, ttl: u8) -> io::Result<()> {
        self.with(|engine, key| engine.udp_set_ttl(key, ttl.into()))
    }

    /// Allows or forbids sending to broadcast addresses.
    pub fn set_broadcast(&self, on: bool) -> io::Result<()> {
        self.with(|engine, key| engine.udp_set_broadcast(key, on))
    }

    /// Sets how many hops multicast datagrams may take.
    ///
    /// ```
    /// use blacklight::{Loop, UdpSocket};
    ///
    /// let lp = Loop::new()?;
    /// let socket = UdpSocket::bind(&lp, "0.0.0.0:0".parse().unwrap())?;
    /// socket.set_multicast_ttl(1)?; // No router forwards it.
    /// socket.set_multicast_loop(false)?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn set_multicast_ttl(&self, ttl: u8) -> io::Result<()> {
        self.with(|engine, key| engine.udp_set_multicast_ttl(key, ttl.into()))
    }

    /// Sets whether members on this machine receive the multicast datagrams that it sends.
    pub fn set_multicast_loop(&self, on: bool) -> io::Result<()> {
        self.with(|engine, key| engine.udp_set_multicast_loop(key, on.into()))
    }

    /// Sends IPv4 multicast from the interface with this address. If it is unspecified, the
    /// kernel chooses the interface.
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
    /// if let Ok(socket) = UdpSocket::bind(&lp, "[::]:0".parse().unwrap()) {
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
    /// chooses the interface. With a `source`, receives its datagrams only.
    ///
    /// ```
    /// use blacklight::{Loop, UdpSocket};
    /// use std::net::Ipv4Addr;
    ///
    /// let lp = Loop::new()?;
    /// let (group, interface) = (Ipv4Addr::new(239, 255, 71, 12), Ipv4Addr::LOCALHOST);
    /// let member = UdpSocket::bind(&lp, "0.0.0.0:0".parse().unwrap())?;
    /// member.join_multicast_v4(group, interface, None)?;
    /// let sender = UdpSocket::bind(&lp, "127.0.0.1:0".parse().unwrap())?;
    /// sender.set_multicast_interface_v4(interface)?;
    /// lp.block_on(async {
    ///     sender.send_to(b"light", (group, member.local_addr()?.port()).into()).await?;
    ///     let (_, from) = member.recv_from(&mut [0; 8]).await?;
    ///     assert_eq!(from, sender.local_addr()?);
    ///     # Ok::<(), std::io::Error>(())
    /// })?;
    /// member.leave_multicast_v4(group, interface, None)?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn join_multicast_v4(
        &self,
        group: Ipv4Addr,
        interface: Ipv4Addr,
        source: Option<Ipv4Addr>,
    ) -> io::Result<()> {
        self.set_membership_v4(group, interface, source, true)
    }

    /// Leaves an IPv4 group that was joined with the same arguments.
    pub fn leave_multicast_v4(
        &self,
        group: Ipv4Addr,
        interface: Ipv4Addr,
        source: Option<Ipv4Addr>,
    ) -> io::Result<()> {
        self.set_membership_v4(group, interface, source, false)
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
    /// the interface. With a `source`, receives its datagrams only.
    ///
    /// ```
    /// use blacklight::{Loop, UdpSocket};
    ///
    /// let lp = Loop::new()?;
    /// // Not every machine has IPv6.
    /// if let Ok(socket) = UdpSocket::bind(&lp, "[::]:0".parse().unwrap()) {
    ///     let group = "ff02::4711".parse().unwrap();
    ///     // The first interface is the loopback interface.
    ///     socket.join_multicast_v6(group, 1, None)?;
    ///     socket.leave_multicast_v6(group, 1, None)?;
    /// }
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn join_multicast_v6(
        &self,
        group: Ipv6Addr,
        interface: u32,
        source: Option<Ipv6Addr>,
    ) -> io::Result<()> {
        self.set_membership_v6(group, interface, source, true)
    }

    /// Leaves an IPv6 group that was joined with the same arguments.
    pub fn leave_multicast_v6(
        &self,
        group: Ipv6Addr,
        interface: u32,
        source: Option<Ipv6Addr>,
    ) -> io::Result<()> {
        self.set_membership_v6(group, interface, source, false)
    }

    /// Gives the socket to the loop, which owns it until it is closed or the loop is gone.
    ///
    /// ```
    /// use blacklight::{Loop, Mode, UdpSocket};
    ///
    /// let lp = Loop::new()?;
    /// let socket = UdpSocket::bind(&lp, "127.0.0.1:0".parse().unwrap())?;
    /// socket.recv_start(|_, socket, _| socket.close())?;
    /// socket.try_send(b"the end", Some(socket.local_addr()?))?;
    /// socket.detach();
    /// lp.run(Mode::Default);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn detach(self) {
        if !self.handle.inner.is_closed() {
            let state = self.handle.state.clone();
            state.detached.set(Some(self.handle));
        }
    }
}

impl AsFd for UdpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        let shared = self.handle.state.fd.get_or_init(|| {
            let shared = self.handle.engine().udp_share_fd(self.handle.key);
            shared.expect("an open socket has a descriptor")
        });
        shared.as_fd()
    }
}
