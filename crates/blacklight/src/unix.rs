//! Unix-domain streams and listeners, and pipes, on the common parts in `stream`.

use crate::handle::{Handle, common_methods};
use crate::loop_::{Inner, Loop};
use crate::stream::{Listener, Stream, listener_methods, stream_methods};
use crate::tcp::BACKLOG;
use blacklight_engine::{Address, Engine, Errno, Key, Token};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::SocketAddr;
use std::path::Path;
use std::rc::Rc;

fn init(engine: &mut Engine, token: Token) -> Result<Key, Errno> {
    engine.pipe_init(token, false)
}

/// The name of a socket in the file system. An empty path, or one that begins with NUL, would
/// name something else and is an error.
fn path_name(path: &Path) -> io::Result<Vec<u8>> {
    let name = path.as_os_str().as_bytes();
    match name.first() {
        None | Some(0) => Err(io::ErrorKind::InvalidInput.into()),
        Some(_) => Ok(name.to_vec()),
    }
}

fn abstract_name(name: &[u8]) -> Vec<u8> {
    [b"\0", name].concat()
}

fn unix(address: Result<Address, Errno>) -> io::Result<SocketAddr> {
    let address = address?;
    match address.unix_name() {
        [0, name @ ..] => SocketAddr::from_abstract_name(name),
        path => SocketAddr::from_pathname(std::ffi::OsStr::from_bytes(path)),
    }
}

/// A Unix-domain connection, which can also pass descriptors. Clones refer to the same
/// connection, which closes with the last one.
///
/// ```
/// use blacklight::{Loop, UnixStream};
/// use std::io::Read;
///
/// let lp = Loop::new()?;
/// let (near, far) = UnixStream::pair(&lp)?;
/// let (mut reader, writer) = std::io::pipe()?;
/// lp.block_on(async {
///     near.send_with_fd(b"a pen", writer).await?;
///     let (mut buf, mut pens) = ([0; 16], Vec::new());
///     let count = far.recv_with_fds(&mut buf, &mut pens).await?;
///     assert_eq!(&buf[..count], b"a pen");
///     let mut pen = std::fs::File::from(pens.remove(0));
///     std::io::Write::write_all(&mut pen, b"ink")
/// })?;
/// let mut text = String::new();
/// reader.read_to_string(&mut text)?;
/// assert_eq!(text, "ink");
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct UnixStream {
    handle: Rc<Handle<Stream>>,
}

stream_methods!(UnixStream);

impl UnixStream {
    /// Connects to a socket in the file system. Dropping the future cancels the attempt.
    ///
    /// ```
    /// use blacklight::{Loop, UnixListener, UnixStream, fs::TempDir};
    ///
    /// let lp = Loop::new()?;
    /// let directory = TempDir::new_blocking("socket")?;
    /// let path = directory.path().join("socket");
    /// let _listener = UnixListener::bind(&lp, &path)?;
    /// let stream = lp.block_on(UnixStream::connect(&lp, &path))?;
    /// assert_eq!(stream.peer_addr()?.as_pathname(), Some(path.as_path()));
    /// assert!(stream.local_addr()?.is_unnamed());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn connect<P: AsRef<Path>>(
        lp: &Loop,
        path: P,
    ) -> impl Future<Output = io::Result<UnixStream>> + use<P> {
        UnixStream::connect_to(lp.0.clone(), path_name(path.as_ref()))
    }

    /// Connects to a socket in the abstract namespace.
    ///
    /// ```
    /// use blacklight::{Loop, UnixListener, UnixStream};
    ///
    /// let lp = Loop::new()?;
    /// let name = format!("blacklight-connect-{}", std::process::id());
    /// let _listener = UnixListener::bind_abstract(&lp, name.as_bytes())?;
    /// lp.block_on(UnixStream::connect_abstract(&lp, name.as_bytes()))?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn connect_abstract(
        lp: &Loop,
        name: &[u8],
    ) -> impl Future<Output = io::Result<UnixStream>> + use<> {
        UnixStream::connect_to(lp.0.clone(), Ok(abstract_name(name)))
    }

    async fn connect_to(inner: Rc<Inner>, name: io::Result<Vec<u8>>) -> io::Result<UnixStream> {
        let name = name?;
        let handle = Handle::stream(&inner, init)?;
        let connect = |engine: &mut Engine, key, token| engine.pipe_connect(key, token, &name);
        let handle = handle.connect(connect).await?;
        Ok(UnixStream { handle })
    }

    /// Connects to a socket in the file system, and then calls `after`, which owns the
    /// connection. It closes when dropped unless [`detach`](UnixStream::detach) gives it to the
    /// loop.
    ///
    /// ```
    /// use blacklight::{Loop, Mode, UnixStream};
    /// use std::io::ErrorKind;
    ///
    /// let lp = Loop::new()?;
    /// UnixStream::connect_then(&lp, "/nowhere", |_, stream| {
    ///     assert_eq!(stream.unwrap_err().kind(), ErrorKind::NotFound);
    /// })?;
    /// lp.run(Mode::Default);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn connect_then(
        lp: &Loop,
        path: impl AsRef<Path>,
        after: impl FnOnce(&Loop, io::Result<UnixStream>) + 'static,
    ) -> io::Result<()> {
        let name = path_name(path.as_ref())?;
        let handle = Handle::stream(&lp.0, init)?;
        let stream = UnixStream::of(&handle);
        handle.request(
            |engine, key, token| engine.pipe_connect(key, token, &name),
            move |lp, result| after(lp, result.map(|()| stream)),
        )
    }

    /// Creates two streams that are connected to each other.
    ///
    /// ```
    /// use blacklight::{Loop, UnixStream};
    ///
    /// let lp = Loop::new()?;
    /// let (near, far) = UnixStream::pair(&lp)?;
    /// near.try_write(b"light")?;
    /// assert_eq!(far.try_read(&mut [0; 8])?, 5);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn pair(lp: &Loop) -> io::Result<(UnixStream, UnixStream)> {
        let (one, other) = std::os::unix::net::UnixStream::pair()?;
        Ok((
            UnixStream::from_std(lp, one)?,
            UnixStream::from_std(lp, other)?,
        ))
    }

    /// Takes ownership of a connection, and makes it non-blocking.
    ///
    /// ```
    /// use blacklight::{Loop, UnixStream};
    /// use std::io::Write;
    ///
    /// let lp = Loop::new()?;
    /// let (near, mut far) = std::os::unix::net::UnixStream::pair()?;
    /// let near = UnixStream::from_std(&lp, near)?;
    /// far.write_all(b"light")?;
    /// assert_eq!(lp.block_on(near.read(&mut [0; 8]))?, 5);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn from_std(lp: &Loop, stream: std::os::unix::net::UnixStream) -> io::Result<UnixStream> {
        UnixStream::from_fd(lp, stream.into())
    }

    /// Takes ownership of a connected socket, and makes it non-blocking.
    ///
    /// ```
    /// use blacklight::{Loop, UnixStream};
    /// use std::os::fd::OwnedFd;
    ///
    /// let lp = Loop::new()?;
    /// let (near, _far) = std::os::unix::net::UnixStream::pair()?;
    /// let stream = UnixStream::from_fd(&lp, OwnedFd::from(near))?;
    /// stream.try_write(b"light")?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn from_fd(lp: &Loop, fd: OwnedFd) -> io::Result<UnixStream> {
        let handle = Handle::stream(&lp.0, init)?;
        handle.open(fd)?;
        Ok(UnixStream { handle })
    }

    /// Writes at least one byte of `bytes` together with a duplicate of `fd`, and returns the
    /// number of bytes written.
    pub async fn send_with_fd(&self, bytes: &[u8], fd: impl AsFd) -> io::Result<usize> {
        let fd = fd.as_fd();
        std::future::poll_fn(|context| {
            self.handle.poll_write_with(context, |engine, key| {
                engine.stream_try_write_descriptor(key, bytes, fd)
            })
        })
        .await
    }

    /// Reads, and adds the descriptors that came with the bytes to `fds`.
    /// [`read`](UnixStream::read) closes such descriptors.
    pub async fn recv_with_fds(&self, buf: &mut [u8], fds: &mut Vec<OwnedFd>) -> io::Result<usize> {
        std::future::poll_fn(|context| {
            let len = buf.len();
            self.handle.poll_read_with(context, len, |engine, key| {
                engine.stream_try_read_descriptors(key, &mut *buf, |fd| {
                    fds.extend(fd.into_owned());
                })
            })
        })
        .await
    }

    /// The local address of the socket.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        unix(self.handle.engine().stream_address(self.handle.key, false))
    }

    /// The address of the peer.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        unix(self.handle.engine().stream_address(self.handle.key, true))
    }
}

/// Listens for Unix-domain connections.
///
/// Closing a listener that is bound to a path removes the file.
///
/// ```
/// use blacklight::{Loop, UnixListener, UnixStream};
///
/// let lp = Loop::new()?;
/// let name = format!("blacklight-example-{}", std::process::id());
/// let listener = UnixListener::bind_abstract(&lp, name.as_bytes())?;
/// lp.block_on(async {
///     let client = UnixStream::connect_abstract(&lp, name.as_bytes()).await?;
///     let server = listener.accept().await?;
///     client.write_all(b"x").await?;
///     assert_eq!(server.read(&mut [0; 8]).await?, 1);
///     Ok::<(), std::io::Error>(())
/// })?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct UnixListener {
    handle: Rc<Handle<Listener>>,
}

listener_methods!(UnixListener, UnixStream);

impl UnixListener {
    /// Listens on a path, where no file may exist yet.
    ///
    /// ```
    /// use blacklight::{Loop, Mode, UnixListener, fs::TempDir};
    ///
    /// let lp = Loop::new()?;
    /// let directory = TempDir::new_blocking("socket")?;
    /// let path = directory.path().join("socket");
    /// let listener = UnixListener::bind(&lp, &path)?;
    /// assert_eq!(listener.local_addr()?.as_pathname(), Some(path.as_path()));
    /// drop(listener);
    /// assert!(!path.exists());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn bind(lp: &Loop, path: impl AsRef<Path>) -> io::Result<UnixListener> {
        UnixListener::bind_to(lp, &path_name(path.as_ref())?)
    }

    /// Listens on a name in the abstract namespace.
    pub fn bind_abstract(lp: &Loop, name: &[u8]) -> io::Result<UnixListener> {
        UnixListener::bind_to(lp, &abstract_name(name))
    }

    fn bind_to(lp: &Loop, name: &[u8]) -> io::Result<UnixListener> {
        let handle =
            Handle::listener(lp, init, BACKLOG, |engine, key| engine.pipe_bind(key, name))?;
        Ok(UnixListener { handle })
    }

    /// Takes ownership of a bound socket, makes it non-blocking and listens on it. Closing it
    /// does not remove its file.
    ///
    /// ```
    /// use blacklight::{Loop, UnixListener, UnixStream, fs::TempDir};
    ///
    /// let lp = Loop::new()?;
    /// let directory = TempDir::new_blocking("socket")?;
    /// let path = directory.path().join("socket");
    /// let listener = std::os::unix::net::UnixListener::bind(&path)?;
    /// let listener = UnixListener::from_std(&lp, listener)?;
    /// lp.block_on(async {
    ///     UnixStream::connect(&lp, &path).await?;
    ///     listener.accept().await
    /// })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn from_std(
        lp: &Loop,
        listener: std::os::unix::net::UnixListener,
    ) -> io::Result<UnixListener> {
        let handle = Handle::listener(lp, init, BACKLOG, |engine, key| {
            let opened = engine.stream_open(key, OwnedFd::from(listener).into(), true, true);
            opened.map_err(|(error, _)| error)
        })?;
        Ok(UnixListener { handle })
    }

    /// Accepts the next connection.
    pub async fn accept(&self) -> io::Result<UnixStream> {
        std::future::poll_fn(|context| self.poll_accept(context)).await
    }

    /// The local address of the listener.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        unix(self.handle.engine().stream_address(self.handle.key, false))
    }
}

/// One end of a pipe, or another descriptor that can be polled and read or written. Reading from
/// a write-only end fails, as does writing to a read-only end.
///
/// ```
/// use blacklight::{Loop, Pipe};
///
/// let lp = Loop::new()?;
/// let (reader, writer) = std::io::pipe()?;
/// let reader = Pipe::from_fd(&lp, reader.into())?;
/// let writer = Pipe::from_fd(&lp, writer.into())?;
/// lp.block_on(async {
///     writer.write_all(b"through").await?;
///     drop(writer);
///     let mut buf = [0; 16];
///     assert_eq!(reader.read(&mut buf).await?, 7);
///     assert_eq!(reader.read(&mut buf).await?, 0);
///     Ok::<(), std::io::Error>(())
/// })?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Pipe {
    handle: Rc<Handle<Stream>>,
}

stream_methods!(Pipe);

impl Pipe {
    /// Takes ownership of a descriptor, and makes it non-blocking.
    pub fn from_fd(lp: &Loop, fd: OwnedFd) -> io::Result<Pipe> {
        let handle = Handle::stream(&lp.0, init)?;
        handle.open(fd)?;
        Ok(Pipe { handle })
    }
}
