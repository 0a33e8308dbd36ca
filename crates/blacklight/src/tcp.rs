//! TCP streams and listeners, on the common parts in `stream`.

use crate::handle::{Handle, common_methods};
use crate::loop_::Loop;
use crate::stream::{Listener, Stream, listener_methods, stream_methods};
use blacklight_engine::{Address, BindOptions, Engine, Errno, KeepAlive, Key, Token};
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::rc::Rc;

/// The default length of the queue of connections that wait to be accepted.
pub(crate) const BACKLOG: i32 = 1024;

pub(crate) fn internet(address: Result<Address, Errno>) -> io::Result<SocketAddr> {
    let address = address?.to_socket_addr();
    address.ok_or_else(|| io::Error::other("not an address of the Internet"))
}

fn init(engine: &mut Engine, token: Token) -> Result<Key, Errno> {
    engine.tcp_init(token, None)
}

/// A TCP connection, for callbacks and tasks. Clones refer to the same connection, which closes
/// with the last one.
///
/// ```
/// use blacklight::{Loop, TcpListener, TcpStream};
///
/// let lp = Loop::new()?;
/// let listener = TcpListener::bind(&lp, "127.0.0.1:0".parse().unwrap())?;
/// let address = listener.local_addr()?;
/// lp.block_on(async {
///     let server = blacklight::spawn(async move {
///         let (stream, _) = listener.accept().await?;
///         let mut buf = [0; 16];
///         let count = stream.read(&mut buf).await?;
///         stream.write_all(&buf[..count]).await?;
///         Ok::<(), std::io::Error>(())
///     });
///     let client = TcpStream::connect(&blacklight::current(), address).await?;
///     client.write_all(b"hello").await?;
///     let mut buf = [0; 16];
///     let count = client.read(&mut buf).await?;
///     assert_eq!(&buf[..count], b"hello");
///     server.await.unwrap()
/// })?;
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// With callbacks:
///
/// ```
/// use blacklight::{Loop, Mode, TcpListener, TcpStream};
///
/// let lp = Loop::new()?;
/// let listener = TcpListener::bind(&lp, "127.0.0.1:0".parse().unwrap())?;
/// let address = listener.local_addr()?;
/// listener.accept_start(|_, _, stream| {
///     let stream = stream.unwrap();
///     stream
///         .read_start(|_, stream, bytes| match bytes.unwrap() {
///             [] => drop(stream.shutdown_then(|_, _| ())),
///             bytes => drop(stream.write_then(bytes, |_, result| result.unwrap())),
///         })
///         .unwrap();
///     stream.detach();
/// });
/// TcpStream::connect_then(&lp, address, |_, stream| {
///     let stream = stream.unwrap();
///     stream.write_then("hello", |_, result| result.unwrap()).unwrap();
///     stream
///         .read_start(|lp, _, bytes| {
///             assert_eq!(bytes.unwrap(), b"hello");
///             lp.stop();
///         })
///         .unwrap();
///     stream.detach();
/// })?;
/// lp.run(Mode::Default);
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct TcpStream {
    pub(crate) handle: Rc<Handle<Stream>>,
}

stream_methods!(TcpStream);

impl TcpStream {
    /// Connects to an address. Dropping the future cancels the attempt.
    ///
    /// ```
    /// use blacklight::{Loop, TcpStream};
    ///
    /// let lp = Loop::new()?;
    /// let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    /// let stream = lp.block_on(TcpStream::connect(&lp, listener.local_addr()?))?;
    /// assert_eq!(stream.peer_addr()?, listener.local_addr()?);
    /// assert_eq!(stream.local_addr()?, listener.accept()?.1);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn connect(
        lp: &Loop,
        address: SocketAddr,
    ) -> impl Future<Output = io::Result<TcpStream>> + use<> {
        let inner = lp.0.clone();
        async move {
            let handle = Handle::stream(&inner, init)?;
            let connect =
                |engine: &mut Engine, key, token| engine.tcp_connect(key, token, &address.into());
            let handle = handle.connect(connect).await?;
            Ok(TcpStream { handle })
        }
    }

    /// Connects to an address, and then calls `after`, which owns the connection. It closes when
    /// dropped unless [`detach`](TcpStream::detach) gives it to the loop.
    ///
    /// ```
    /// use blacklight::{Loop, Mode, TcpStream};
    /// use std::io::ErrorKind;
    ///
    /// let lp = Loop::new()?;
    /// // Nothing listens there now.
    /// let address = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    /// TcpStream::connect_then(&lp, address, |_, stream| {
    ///     assert_eq!(stream.unwrap_err().kind(), ErrorKind::ConnectionRefused);
    /// })?;
    /// lp.run(Mode::Default);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn connect_then(
        lp: &Loop,
        address: SocketAddr,
        after: impl FnOnce(&Loop, io::Result<TcpStream>) + 'static,
    ) -> io::Result<()> {
        let handle = Handle::stream(&lp.0, init)?;
        let stream = TcpStream::of(&handle);
        handle.request(
            |engine, key, token| engine.tcp_connect(key, token, &address.into()),
            move |lp, result| after(lp, result.map(|()| stream)),
        )
    }

    /// Takes ownership of a connection, and makes it non-blocking.
    ///
    /// ```
    /// use blacklight::{Loop, TcpStream};
    ///
    /// let lp = Loop::new()?;
    /// let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    /// let stream = std::net::TcpStream::connect(listener.local_addr()?)?;
    /// let stream = TcpStream::from_std(&lp, stream)?;
    /// lp.block_on(stream.write_all(b"light"))?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn from_std(lp: &Loop, stream: std::net::TcpStream) -> io::Result<TcpStream> {
        TcpStream::from_fd(lp, stream.into())
    }

    /// Takes ownership of a connected socket, and makes it non-blocking.
    ///
    /// ```
    /// use blacklight::{Loop, TcpStream};
    /// use std::os::fd::OwnedFd;
    ///
    /// let lp = Loop::new()?;
    /// let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    /// let fd = OwnedFd::from(std::net::TcpStream::connect(listener.local_addr()?)?);
    /// let stream = TcpStream::from_fd(&lp, fd)?;
    /// assert_eq!(stream.peer_addr()?, listener.local_addr()?);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn from_fd(lp: &Loop, fd: OwnedFd) -> io::Result<TcpStream> {
        let handle = Handle::stream(&lp.0, init)?;
        handle.open(fd)?;
        Ok(TcpStream { handle })
    }

    /// The local address of the connection.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        internet(self.handle.engine().stream_address(self.handle.key, false))
    }

    /// The address of the peer.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        internet(self.handle.engine().stream_address(self.handle.key, true))
    }

    /// Sets `TCP_NODELAY`: sends small writes at once (`true`), or collects them while earlier
    /// data is unacknowledged (`false`, the default).
    ///
    /// ```
    /// use blacklight::{Loop, TcpStream};
    ///
    /// let lp = Loop::new()?;
    /// let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    /// let stream = lp.block_on(TcpStream::connect(&lp, listener.local_addr()?))?;
    /// stream.set_nodelay(true)?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn set_nodelay(&self, on: bool) -> io::Result<()> {
        Ok(self.handle.engine().tcp_nodelay(self.handle.key, on)?)
    }

    /// Turns keep-alive probes of the idle connection on, or off with `None` (the default).
    ///
    /// ```
    /// use blacklight::{KeepAlive, Loop, TcpStream};
    ///
    /// let lp = Loop::new()?;
    /// let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    /// let stream = lp.block_on(TcpStream::connect(&lp, listener.local_addr()?))?;
    /// stream.set_keepalive(Some(KeepAlive { idle: 60, interval: 10, count: 3 }))?;
    /// stream.set_keepalive(None)?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn set_keepalive(&self, keepalive: Option<KeepAlive>) -> io::Result<()> {
        let mut engine = self.handle.engine();
        Ok(engine.tcp_keepalive(self.handle.key, keepalive)?)
    }

    /// Makes closing reset the connection: the peer gets an error, and data in flight is lost.
    ///
    /// ```
    /// use blacklight::{Loop, TcpStream};
    /// use std::io::{ErrorKind, Read};
    ///
    /// let lp = Loop::new()?;
    /// let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    /// let stream = lp.block_on(TcpStream::connect(&lp, listener.local_addr()?))?;
    /// let (mut server, _) = listener.accept()?;
    /// stream.reset_on_close()?;
    /// drop(stream);
    /// assert_eq!(server.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn reset_on_close(&self) -> io::Result<()> {
        Ok(self.handle.engine().tcp_reset_on_close(self.handle.key)?)
    }
}

/// Listens for TCP connections; see [`TcpStream`] for a complete server and client.
///
/// The listener keeps the loop running, whether or not the program accepts, unless it is
/// [`unref`](TcpListener::unref)ed.
///
/// ```
/// use blacklight::{Loop, TcpListener};
/// use std::io::Write;
///
/// let lp = Loop::new()?;
/// let listener = TcpListener::bind(&lp, "127.0.0.1:0".parse().unwrap())?;
/// let mut client = std::net::TcpStream::connect(listener.local_addr()?)?;
/// client.write_all(b"light")?;
/// lp.block_on(async {
///     let (stream, _) = listener.accept().await?;
///     assert_eq!(stream.read(&mut [0; 8]).await?, 5);
///     # Ok::<(), std::io::Error>(())
/// })?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct TcpListener {
    handle: Rc<Handle<Listener>>,
}

listener_methods!(TcpListener, TcpStream);

impl TcpListener {
    /// Listens on an address. With port 0, the kernel chooses the port.
    ///
    /// ```
    /// use blacklight::{Loop, TcpListener};
    ///
    /// let lp = Loop::new()?;
    /// let listener = TcpListener::bind(&lp, "127.0.0.1:0".parse().unwrap())?;
    /// let address = listener.local_addr()?;
    /// assert_ne!(address.port(), 0);
    /// assert!(TcpListener::bind(&lp, address).is_err(), "it is taken");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn bind(lp: &Loop, address: SocketAddr) -> io::Result<TcpListener> {
        TcpListener::bind_with(lp, address, BindOptions::default(), BACKLOG)
    }

    /// Like [`bind`](TcpListener::bind), with options and the number of connections that may wait
    /// to be accepted.
    ///
    /// ```
    /// use blacklight::{BindOptions, Loop, TcpListener};
    ///
    /// let lp = Loop::new()?;
    /// let options = BindOptions { reuse_port: true, ..BindOptions::default() };
    /// let one = TcpListener::bind_with(&lp, "127.0.0.1:0".parse().unwrap(), options, 128)?;
    /// // Another loop may listen on the same address.
    /// let two = TcpListener::bind_with(&lp, one.local_addr()?, options, 128)?;
    /// assert_eq!(one.local_addr()?, two.local_addr()?);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn bind_with(
        lp: &Loop,
        address: SocketAddr,
        options: BindOptions,
        backlog: i32,
    ) -> io::Result<TcpListener> {
        let handle = Handle::listener(lp, init, backlog, |engine, key| {
            engine.tcp_bind(key, &address.into(), options)
        })?;
        Ok(TcpListener { handle })
    }

    /// Takes ownership of a bound socket, makes it non-blocking and listens on it.
    ///
    /// ```
    /// use blacklight::{Loop, TcpListener};
    ///
    /// let lp = Loop::new()?;
    /// let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    /// let address = listener.local_addr()?;
    /// let listener = TcpListener::from_std(&lp, listener)?;
    /// assert_eq!(listener.local_addr()?, address);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn from_std(lp: &Loop, listener: std::net::TcpListener) -> io::Result<TcpListener> {
        TcpListener::from_fd(lp, listener.into())
    }

    /// Like [`from_std`](TcpListener::from_std), for any descriptor.
    ///
    /// ```
    /// use blacklight::{Loop, TcpListener};
    /// use std::os::fd::OwnedFd;
    ///
    /// let lp = Loop::new()?;
    /// let inherited = OwnedFd::from(std::net::TcpListener::bind("127.0.0.1:0")?);
    /// let listener = TcpListener::from_fd(&lp, inherited)?;
    /// assert_ne!(listener.local_addr()?.port(), 0);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn from_fd(lp: &Loop, fd: OwnedFd) -> io::Result<TcpListener> {
        let handle = Handle::listener(lp, init, BACKLOG, |engine, key| {
            let opened = engine.stream_open(key, fd.into(), true, true);
            opened.map_err(|(error, _)| error)
        })?;
        Ok(TcpListener { handle })
    }

    /// Accepts the next connection, and returns it with the address of the peer.
    ///
    /// ```
    /// use blacklight::{Loop, TcpListener};
    ///
    /// let lp = Loop::new()?;
    /// let listener = TcpListener::bind(&lp, "127.0.0.1:0".parse().unwrap())?;
    /// let client = std::net::TcpStream::connect(listener.local_addr()?)?;
    /// let (_stream, peer) = lp.block_on(listener.accept())?;
    /// assert_eq!(peer, client.local_addr()?);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        loop {
            let stream = std::future::poll_fn(|context| self.poll_accept(context)).await?;
            // Skips a connection that the peer has already reset.
            if let Ok(address) = stream.peer_addr() {
                return Ok((stream, address));
            }
        }
    }

    /// The local address of the listener.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        internet(self.handle.engine().stream_address(self.handle.key, false))
    }
}
