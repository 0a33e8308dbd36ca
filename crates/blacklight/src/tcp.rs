//! TCP streams and listeners, on the common parts in `stream`.

use crate::address::{Done, ToSocketAddrs};
use crate::code::Code;
use crate::current::here;
use crate::handle::{Handle, common_methods};
use crate::loop_::LoopHandle;
use crate::options::{BindOptions, KeepAlive};
use crate::stream::{Listener, ReadHalf, Stream, backlog_of, listener_methods, stream_methods};
use blacklight_engine::{Address, Engine, Errno, Key, Token};
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::rc::Rc;

pub(crate) fn internet(address: Result<Address, impl Into<io::Error>>) -> io::Result<SocketAddr> {
    let address = address.map_err(Into::into)?.to_socket_addr();
    address.ok_or_else(|| io::Error::other("not an address of the Internet"))
}

async fn connect_to(address: SocketAddr) -> io::Result<TcpStream> {
    let handle = Handle::stream(&here()?.0, init)?;
    let connect = |engine: &mut Engine, key, token| engine.tcp_connect(key, token, &address.into());
    let handle = handle.connect(connect).await?;
    Ok(TcpStream { handle })
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
/// let listener = lp.block_on(TcpListener::bind("127.0.0.1:0"))?;
/// let address = listener.local_addr()?;
/// lp.block_on(async {
///     let server = blacklight::spawn(async move {
///         let (stream, _) = listener.accept().await?;
///         let mut buf = [0; 16];
///         let count = stream.read(&mut buf).await?;
///         stream.write_all(&buf[..count]).await?;
///         Ok::<(), std::io::Error>(())
///     });
///     let client = TcpStream::connect(address).await?;
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
/// let listener = lp.block_on(TcpListener::bind("127.0.0.1:0"))?;
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
/// })?;
/// TcpStream::connect_then(address, |_, stream| {
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
#[must_use = "a handle closes when it is dropped"]
pub struct TcpStream {
    pub(crate) handle: Rc<Handle<Stream>>,
}

stream_methods!(TcpStream);

impl TcpStream {
    /// Connects to an address, or to the first of several that accepts. Dropping the future cancels
    /// the attempt.
    ///
    /// ```
    /// use blacklight::{Loop, TcpStream};
    ///
    /// let lp = Loop::new()?;
    /// let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    /// let stream = lp.block_on(TcpStream::connect(listener.local_addr()?))?;
    /// assert_eq!(stream.peer_addr()?, listener.local_addr()?);
    /// assert_eq!(stream.local_addr()?, listener.accept()?.1);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub async fn connect(to: impl ToSocketAddrs) -> io::Result<TcpStream> {
        to.target().first(connect_to).await
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
    /// TcpStream::connect_then(address, |_, stream| {
    ///     assert_eq!(stream.unwrap_err().kind(), ErrorKind::ConnectionRefused);
    /// })?;
    /// lp.run(Mode::Default);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn connect_then(
        to: impl ToSocketAddrs,
        after: impl FnOnce(&LoopHandle, io::Result<TcpStream>) + 'static,
    ) -> io::Result<()> {
        let code = Code::of(&after);
        let begin = move |lp: &LoopHandle, address: SocketAddr, done: Done<TcpStream>| {
            let handle = Handle::stream(&lp.0, init)?;
            let stream = TcpStream::of(&handle);
            handle.request(
                code,
                |engine, key, token| engine.tcp_connect(key, token, &address.into()),
                move |lp, result| done(lp, result.map(|()| stream)),
            )
        };
        to.target().first_then(&here()?, code, begin, after)
    }

    /// Takes ownership of a connection, and makes it non-blocking.
    ///
    /// ```
    /// use blacklight::{Loop, TcpStream};
    ///
    /// let lp = Loop::new()?;
    /// let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    /// let stream = std::net::TcpStream::connect(listener.local_addr()?)?;
    /// let stream = TcpStream::from_std(stream)?;
    /// lp.block_on(stream.write_all(b"light"))?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn from_std(stream: std::net::TcpStream) -> io::Result<TcpStream> {
        TcpStream::from_fd(stream.into())
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
    /// let stream = TcpStream::from_fd(fd)?;
    /// assert_eq!(stream.peer_addr()?, listener.local_addr()?);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn from_fd(fd: OwnedFd) -> io::Result<TcpStream> {
        let handle = Handle::stream(&here()?.0, init)?;
        handle.open(fd)?;
        Ok(TcpStream { handle })
    }

    /// Returns the connection for use without the loop. It stays non-blocking. What the loop has not
    /// written yet is cancelled.
    ///
    /// ```
    /// use blacklight::{Loop, TcpStream};
    ///
    /// let lp = Loop::new()?;
    /// let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    /// let stream = lp.block_on(TcpStream::connect(listener.local_addr()?))?;
    /// let stream: std::net::TcpStream = stream.into_std()?;
    /// stream.set_nonblocking(false)?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn into_std(self) -> io::Result<std::net::TcpStream> {
        Ok(self.handle.duplicate()?.into())
    }

    /// Reads without taking the bytes out of the stream, and returns their number, or zero at the
    /// end. Waits until there are any. Cancel-safe.
    ///
    /// ```
    /// use blacklight::{Loop, TcpStream};
    /// use std::io::Write;
    ///
    /// let lp = Loop::new()?;
    /// let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    /// let near = lp.block_on(TcpStream::connect(listener.local_addr()?))?;
    /// let (mut far, _) = listener.accept()?;
    /// far.write_all(b"light")?;
    /// let mut buf = [0; 8];
    /// assert_eq!(lp.block_on(near.peek(&mut buf))?, 5);
    /// assert_eq!(lp.block_on(near.read(&mut buf))?, 5, "they are still there");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub async fn peek(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.handle.peek(buf).await
    }

    /// The local address of the connection.
    ///
    /// ```
    /// use blacklight::{Loop, TcpStream};
    ///
    /// let lp = Loop::new()?;
    /// let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    /// let stream = lp.block_on(TcpStream::connect(listener.local_addr()?))?;
    /// let (_, peer) = listener.accept()?;
    /// assert_eq!(stream.local_addr()?, peer);
    /// assert_eq!(stream.peer_addr()?, listener.local_addr()?);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        internet(
            self.handle
                .with(|engine, key| engine.stream_address(key, false)),
        )
    }

    /// The address of the peer.
    ///
    /// ```
    /// use blacklight::{Loop, TcpStream};
    ///
    /// let lp = Loop::new()?;
    /// let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    /// let stream = lp.block_on(TcpStream::connect(listener.local_addr()?))?;
    /// assert_eq!(stream.peer_addr()?, listener.local_addr()?);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        internet(
            self.handle
                .with(|engine, key| engine.stream_address(key, true)),
        )
    }

    /// Sets `TCP_NODELAY`: sends small writes at once (`true`), or collects them while earlier
    /// data is unacknowledged (`false`, the default).
    ///
    /// ```
    /// use blacklight::{Loop, TcpStream};
    ///
    /// let lp = Loop::new()?;
    /// let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    /// let stream = lp.block_on(TcpStream::connect(listener.local_addr()?))?;
    /// stream.set_nodelay(true)?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn set_nodelay(&self, on: bool) -> io::Result<()> {
        self.handle.with(|engine, key| engine.tcp_nodelay(key, on))
    }

    /// Turns keep-alive probes of the idle connection on, or off with `None` (the default).
    ///
    /// ```
    /// use blacklight::{KeepAlive, Loop, TcpStream};
    /// use std::time::Duration;
    ///
    /// let lp = Loop::new()?;
    /// let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    /// let stream = lp.block_on(TcpStream::connect(listener.local_addr()?))?;
    /// stream.set_keepalive(Some(KeepAlive::new(Duration::from_secs(60))))?;
    /// stream.set_keepalive(None)?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn set_keepalive(&self, keepalive: Option<KeepAlive>) -> io::Result<()> {
        let keepalive = keepalive.map(KeepAlive::values).transpose()?;
        self.handle
            .with(|engine, key| engine.tcp_keepalive(key, keepalive))
    }

    /// Makes closing reset the connection: the peer gets an error, and data in flight is lost.
    ///
    /// ```
    /// use blacklight::{Loop, TcpStream};
    /// use std::io::{ErrorKind, Read};
    ///
    /// let lp = Loop::new()?;
    /// let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    /// let stream = lp.block_on(TcpStream::connect(listener.local_addr()?))?;
    /// let (mut server, _) = listener.accept()?;
    /// stream.reset_on_close()?;
    /// drop(stream);
    /// assert_eq!(server.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn reset_on_close(&self) -> io::Result<()> {
        self.handle.with(Engine::tcp_reset_on_close)
    }
}

impl ReadHalf<TcpStream> {
    /// Reads without taking the bytes out of the stream; see [`TcpStream::peek`].
    ///
    /// ```
    /// use blacklight::{Loop, TcpListener, TcpStream};
    ///
    /// let lp = Loop::new()?;
    /// let listener = lp.block_on(TcpListener::bind("127.0.0.1:0"))?;
    /// let near = lp.block_on(TcpStream::connect(listener.local_addr()?))?;
    /// let (far, _) = lp.block_on(listener.accept())?;
    /// let (reader, _writer) = near.into_split();
    /// lp.block_on(async {
    ///     far.write_all(b"light").await?;
    ///     let mut buf = [0; 8];
    ///     assert_eq!(reader.peek(&mut buf).await?, 5);
    ///     assert_eq!(reader.read(&mut buf).await?, 5, "they are still there");
    ///     # Ok::<(), std::io::Error>(())
    /// })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub async fn peek(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.0.peek(buf).await
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
/// let listener = lp.block_on(TcpListener::bind("127.0.0.1:0"))?;
/// let mut client = std::net::TcpStream::connect(listener.local_addr()?)?;
/// client.write_all(b"light")?;
/// lp.block_on(async {
///     let (stream, _) = listener.accept().await?;
///     assert_eq!(stream.read(&mut [0; 8]).await?, 5);
///     # Ok::<(), std::io::Error>(())
/// })?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[must_use = "a handle closes when it is dropped"]
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
    /// let listener = lp.block_on(TcpListener::bind("127.0.0.1:0"))?;
    /// let address = listener.local_addr()?;
    /// assert_ne!(address.port(), 0);
    /// assert!(lp.block_on(TcpListener::bind(address)).is_err(), "it is taken");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub async fn bind(to: impl ToSocketAddrs) -> io::Result<TcpListener> {
        TcpListener::bind_with(to, BindOptions::default()).await
    }

    /// Like [`bind`](TcpListener::bind), with options.
    ///
    /// ```
    /// use blacklight::{BindOptions, Loop, TcpListener};
    ///
    /// let lp = Loop::new()?;
    /// let options = BindOptions::new().reuse_port(true);
    /// let one = lp.block_on(TcpListener::bind_with("127.0.0.1:0", options))?;
    /// // Another loop may listen on the same address.
    /// let two = lp.block_on(TcpListener::bind_with(one.local_addr()?, options))?;
    /// assert_eq!(one.local_addr()?, two.local_addr()?);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub async fn bind_with(
        to: impl ToSocketAddrs,
        options: BindOptions,
    ) -> io::Result<TcpListener> {
        let bind = async |address: SocketAddr| {
            let handle = Handle::listener(&here()?, init, Some(options.backlog), |engine, key| {
                engine.tcp_bind(key, &address.into(), options.bind)
            })?;
            Ok(TcpListener { handle })
        };
        to.target().first(bind).await
    }

    /// Takes ownership of a bound socket, makes it non-blocking, and listens on it unless it listens
    /// already.
    ///
    /// ```
    /// use blacklight::{Loop, TcpListener};
    ///
    /// let lp = Loop::new()?;
    /// let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    /// let address = listener.local_addr()?;
    /// let listener = TcpListener::from_std(listener)?;
    /// assert_eq!(listener.local_addr()?, address);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn from_std(listener: std::net::TcpListener) -> io::Result<TcpListener> {
        TcpListener::from_fd(listener.into())
    }

    /// Like [`from_std`](TcpListener::from_std), for any descriptor.
    ///
    /// ```
    /// use blacklight::{Loop, TcpListener};
    /// use std::os::fd::OwnedFd;
    ///
    /// let lp = Loop::new()?;
    /// let inherited = OwnedFd::from(std::net::TcpListener::bind("127.0.0.1:0")?);
    /// let listener = TcpListener::from_fd(inherited)?;
    /// assert_ne!(listener.local_addr()?.port(), 0);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn from_fd(fd: OwnedFd) -> io::Result<TcpListener> {
        let backlog = backlog_of(&fd);
        let handle = Handle::listener(&here()?, init, backlog, |engine, key| {
            let opened = engine.stream_open(key, fd.into(), true, true);
            opened.map_err(|(error, _)| error)
        })?;
        Ok(TcpListener { handle })
    }

    /// Accepts the next connection, and returns it with the address of the peer. Cancel-safe.
    /// Several tasks may wait; each connection goes to one of them.
    ///
    /// ```
    /// use blacklight::{Loop, TcpListener};
    ///
    /// let lp = Loop::new()?;
    /// let listener = lp.block_on(TcpListener::bind("127.0.0.1:0"))?;
    /// let client = std::net::TcpStream::connect(listener.local_addr()?)?;
    /// let (_stream, peer) = lp.block_on(listener.accept())?;
    /// assert_eq!(peer, client.local_addr()?);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        loop {
            let handle = self.handle.accept_one().await?;
            let stream = TcpStream { handle };
            // Skips a connection that the peer has already reset.
            if let Ok(address) = stream.peer_addr() {
                return Ok((stream, address));
            }
        }
    }

    /// Returns the listener for use without the loop. It stays non-blocking. A connection that the
    /// loop has taken and nobody has accepted is closed.
    ///
    /// ```
    /// use blacklight::{Loop, TcpListener};
    ///
    /// let lp = Loop::new()?;
    /// let listener = lp.block_on(TcpListener::bind("127.0.0.1:0"))?;
    /// let listener: std::net::TcpListener = listener.into_std()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn into_std(self) -> io::Result<std::net::TcpListener> {
        Ok(self.handle.duplicate()?.into())
    }

    /// The local address of the listener.
    ///
    /// ```
    /// use blacklight::{Loop, TcpListener};
    ///
    /// let lp = Loop::new()?;
    /// let listener = lp.block_on(TcpListener::bind("127.0.0.1:0"))?;
    /// assert_ne!(listener.local_addr()?.port(), 0, "the kernel has chosen one");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        internet(
            self.handle
                .with(|engine, key| engine.stream_address(key, false)),
        )
    }
}
