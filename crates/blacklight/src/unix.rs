//! Unix-domain streams and listeners, and pipes, on the common parts in `stream`.

use crate::current::here;
use crate::handle::{Handle, common_methods};
use crate::loop_::LoopHandle;
use crate::options::BACKLOG;
use crate::stream::{Listener, ReadHalf, Stream, backlog_of, listener_methods, stream_methods};
use blacklight_engine::{Address, Engine, Errno, Key, Token};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::SocketAddr;
use std::path::Path;
use std::rc::Rc;
use std::task::Context;

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

fn unix(address: io::Result<Address>) -> io::Result<SocketAddr> {
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
/// let (near, far) = UnixStream::pair()?;
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
#[must_use = "a handle closes when it is dropped"]
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
    /// let _listener = UnixListener::bind(&path)?;
    /// let stream = lp.block_on(UnixStream::connect(&path))?;
    /// assert_eq!(stream.peer_addr()?.as_pathname(), Some(path.as_path()));
    /// assert!(stream.local_addr()?.is_unnamed());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub async fn connect(path: impl AsRef<Path>) -> io::Result<UnixStream> {
        UnixStream::connect_to(path_name(path.as_ref())?).await
    }

    /// Connects to a socket in the abstract namespace.
    ///
    /// ```
    /// use blacklight::{Loop, UnixListener, UnixStream};
    ///
    /// let lp = Loop::new()?;
    /// let name = format!("blacklight-connect-{}", std::process::id());
    /// let _listener = UnixListener::bind_abstract(name.as_bytes())?;
    /// lp.block_on(UnixStream::connect_abstract(name.as_bytes()))?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub async fn connect_abstract(name: &[u8]) -> io::Result<UnixStream> {
        UnixStream::connect_to(abstract_name(name)).await
    }

    async fn connect_to(name: Vec<u8>) -> io::Result<UnixStream> {
        let handle = Handle::stream(&here()?.0, init)?;
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
    /// UnixStream::connect_then("/nowhere", |_, stream| {
    ///     assert_eq!(stream.unwrap_err().kind(), ErrorKind::NotFound);
    /// })?;
    /// lp.run(Mode::Default);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn connect_then(
        path: impl AsRef<Path>,
        after: impl FnOnce(&LoopHandle, io::Result<UnixStream>) + 'static,
    ) -> io::Result<()> {
        let name = path_name(path.as_ref())?;
        let handle = Handle::stream(&here()?.0, init)?;
        let stream = UnixStream::of(&handle);
        handle.request(
            crate::code::Code::of(&after),
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
    /// let (near, far) = UnixStream::pair()?;
    /// near.try_write(b"light")?;
    /// assert_eq!(far.try_read(&mut [0; 8])?, 5);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn pair() -> io::Result<(UnixStream, UnixStream)> {
        let (one, other) = std::os::unix::net::UnixStream::pair()?;
        Ok((UnixStream::from_std(one)?, UnixStream::from_std(other)?))
    }

    /// Takes ownership of a connection, and makes it non-blocking.
    ///
    /// ```
    /// use blacklight::{Loop, UnixStream};
    /// use std::io::Write;
    ///
    /// let lp = Loop::new()?;
    /// let (near, mut far) = std::os::unix::net::UnixStream::pair()?;
    /// let near = UnixStream::from_std(near)?;
    /// far.write_all(b"light")?;
    /// assert_eq!(lp.block_on(near.read(&mut [0; 8]))?, 5);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn from_std(stream: std::os::unix::net::UnixStream) -> io::Result<UnixStream> {
        UnixStream::from_fd(stream.into())
    }

    /// Takes ownership of a connected socket, and makes it non-blocking.
    ///
    /// ```
    /// use blacklight::{Loop, UnixStream};
    /// use std::os::fd::OwnedFd;
    ///
    /// let lp = Loop::new()?;
    /// let (near, _far) = std::os::unix::net::UnixStream::pair()?;
    /// let stream = UnixStream::from_fd(OwnedFd::from(near))?;
    /// stream.try_write(b"light")?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn from_fd(fd: OwnedFd) -> io::Result<UnixStream> {
        let handle = Handle::stream(&here()?.0, init)?;
        handle.open(fd)?;
        Ok(UnixStream { handle })
    }

    /// Writes at least one byte of `bytes` together with a duplicate of `fd`, and returns the
    /// number of bytes written.
    ///
    /// ```
    /// use blacklight::{Loop, UnixStream};
    /// use std::io::{Read, pipe};
    ///
    /// let lp = Loop::new()?;
    /// let (near, far) = UnixStream::pair()?;
    /// let (mut reader, writer) = pipe()?;
    /// lp.block_on(async {
    ///     near.send_with_fd(b"w", &writer).await?;
    ///     let mut received = Vec::new();
    ///     far.recv_with_fds(&mut [0; 1], &mut received).await?;
    ///     assert_eq!(received.len(), 1);
    ///     # Ok::<(), std::io::Error>(())
    /// })?;
    /// // The duplicate is closed with the vector, and ours here.
    /// drop(writer);
    /// assert_eq!(reader.read(&mut [0; 8])?, 0);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub async fn send_with_fd(&self, bytes: &[u8], fd: impl AsFd) -> io::Result<usize> {
        let fd = fd.as_fd();
        let write = |context: &mut Context<'_>| {
            self.handle.poll_write_with(context, |engine, key| {
                engine.stream_try_write_descriptor(key, bytes, fd)
            })
        };
        self.handle.state.writer.wait(write).await
    }

    /// Reads, and adds the descriptors that came with the bytes to `fds`.
    /// [`read`](UnixStream::read) closes such descriptors.
    ///
    /// ```
    /// use blacklight::{Loop, UnixStream};
    ///
    /// let lp = Loop::new()?;
    /// let (near, far) = UnixStream::pair()?;
    /// lp.block_on(async {
    ///     near.send_with_fd(b"one", std::io::stderr()).await?;
    ///     near.write_all(b"two").await?;
    ///     let (mut buf, mut fds) = ([0; 3], Vec::new());
    ///     far.recv_with_fds(&mut buf, &mut fds).await?;
    ///     assert_eq!((&buf, fds.len()), (b"one", 1));
    ///     far.recv_with_fds(&mut buf, &mut fds).await?;
    ///     assert_eq!((&buf, fds.len()), (b"two", 1), "no descriptor came with it");
    ///     # Ok::<(), std::io::Error>(())
    /// })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub async fn recv_with_fds(&self, buf: &mut [u8], fds: &mut Vec<OwnedFd>) -> io::Result<usize> {
        let read = |context: &mut Context<'_>| {
            let len = buf.len();
            self.handle.poll_read_with(context, len, |engine, key| {
                engine.stream_try_read_descriptors(key, &mut *buf, |fd| {
                    fds.extend(fd.into_owned());
                })
            })
        };
        self.handle.state.reader.wait(read).await
    }

    /// Returns the connection for use without the loop. It stays non-blocking. What the loop has not
    /// written yet is cancelled.
    ///
    /// ```
    /// use blacklight::{Loop, UnixStream};
    ///
    /// let lp = Loop::new()?;
    /// let (near, _far) = UnixStream::pair()?;
    /// let near: std::os::unix::net::UnixStream = near.into_std()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn into_std(self) -> io::Result<std::os::unix::net::UnixStream> {
        Ok(self.handle.duplicate()?.into())
    }

    /// Reads without taking the bytes out of the stream, and returns their number, or zero at the
    /// end. Waits until there are any. Cancel-safe.
    ///
    /// ```
    /// use blacklight::{Loop, UnixStream};
    /// use std::io::Write;
    ///
    /// let lp = Loop::new()?;
    /// let (near, mut far) = std::os::unix::net::UnixStream::pair()?;
    /// let near = UnixStream::from_std(near)?;
    /// far.write_all(b"light")?;
    /// let mut buf = [0; 8];
    /// assert_eq!(lp.block_on(near.peek(&mut buf))?, 5);
    /// assert_eq!(lp.block_on(near.read(&mut buf))?, 5, "they are still there");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub async fn peek(&self, buf: &mut [u8]) -> io::Result<usize> {
        self.handle.peek(buf).await
    }

    /// The local address of the socket.
    ///
    /// ```
    /// use blacklight::{Loop, UnixStream};
    ///
    /// let lp = Loop::new()?;
    /// let (near, _far) = UnixStream::pair()?;
    /// assert!(near.local_addr()?.is_unnamed());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        unix(
            self.handle
                .with(|engine, key| engine.stream_address(key, false)),
        )
    }

    /// The address of the peer.
    ///
    /// ```
    /// use blacklight::fs::TempDir;
    /// use blacklight::{Loop, UnixListener, UnixStream};
    ///
    /// let lp = Loop::new()?;
    /// let directory = TempDir::new_blocking("peer")?;
    /// let path = directory.path().join("socket");
    /// let _listener = UnixListener::bind(&path)?;
    /// let stream = lp.block_on(UnixStream::connect(&path))?;
    /// assert_eq!(stream.peer_addr()?.as_pathname(), Some(&*path));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        unix(
            self.handle
                .with(|engine, key| engine.stream_address(key, true)),
        )
    }
}

impl ReadHalf<UnixStream> {
    /// Reads without taking the bytes out of the stream; see [`UnixStream::peek`].
    ///
    /// ```
    /// use blacklight::{Loop, UnixStream};
    ///
    /// let lp = Loop::new()?;
    /// let (near, far) = UnixStream::pair()?;
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

/// Listens for Unix-domain connections.
///
/// Closing a listener that is bound to a path removes the file.
///
/// ```
/// use blacklight::{Loop, UnixListener, UnixStream};
///
/// let lp = Loop::new()?;
/// let name = format!("blacklight-example-{}", std::process::id());
/// let listener = UnixListener::bind_abstract(name.as_bytes())?;
/// lp.block_on(async {
///     let client = UnixStream::connect_abstract(name.as_bytes()).await?;
///     let (server, _) = listener.accept().await?;
///     client.write_all(b"x").await?;
///     assert_eq!(server.read(&mut [0; 8]).await?, 1);
///     Ok::<(), std::io::Error>(())
/// })?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[must_use = "a handle closes when it is dropped"]
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
    /// let listener = UnixListener::bind(&path)?;
    /// assert_eq!(listener.local_addr()?.as_pathname(), Some(path.as_path()));
    /// drop(listener);
    /// assert!(!path.exists());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn bind(path: impl AsRef<Path>) -> io::Result<UnixListener> {
        UnixListener::bind_to(&path_name(path.as_ref())?)
    }

    /// Listens on a name in the abstract namespace.
    ///
    /// ```
    /// use blacklight::{Loop, UnixListener};
    /// use std::os::linux::net::SocketAddrExt;
    ///
    /// let lp = Loop::new()?;
    /// let name = format!("blacklight-bind-{}", std::process::id());
    /// let listener = UnixListener::bind_abstract(name.as_bytes())?;
    /// assert_eq!(listener.local_addr()?.as_abstract_name(), Some(name.as_bytes()));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn bind_abstract(name: &[u8]) -> io::Result<UnixListener> {
        UnixListener::bind_to(&abstract_name(name))
    }

    fn bind_to(name: &[u8]) -> io::Result<UnixListener> {
        let handle = Handle::listener(&here()?, init, Some(BACKLOG), |engine, key| {
            engine.pipe_bind(key, name)
        })?;
        Ok(UnixListener { handle })
    }

    /// Takes ownership of a bound socket, makes it non-blocking, and listens on it unless it listens
    /// already. Closing it does not remove its file.
    ///
    /// ```
    /// use blacklight::{Loop, UnixListener, UnixStream, fs::TempDir};
    ///
    /// let lp = Loop::new()?;
    /// let directory = TempDir::new_blocking("socket")?;
    /// let path = directory.path().join("socket");
    /// let listener = std::os::unix::net::UnixListener::bind(&path)?;
    /// let listener = UnixListener::from_std(listener)?;
    /// lp.block_on(async {
    ///     UnixStream::connect(&path).await?;
    ///     listener.accept().await
    /// })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn from_std(listener: std::os::unix::net::UnixListener) -> io::Result<UnixListener> {
        let fd = OwnedFd::from(listener);
        let backlog = backlog_of(&fd);
        let handle = Handle::listener(&here()?, init, backlog, |engine, key| {
            let opened = engine.stream_open(key, fd.into(), true, true);
            opened.map_err(|(error, _)| error)
        })?;
        Ok(UnixListener { handle })
    }

    /// Accepts the next connection, and returns it with the address of the peer, which has no name
    /// in most cases. Cancel-safe. Several tasks may wait; each connection goes to one of them.
    ///
    /// ```
    /// use blacklight::{Loop, UnixListener, UnixStream, fs::TempDir};
    ///
    /// let lp = Loop::new()?;
    /// let directory = TempDir::new_blocking("socket")?;
    /// let path = directory.path().join("socket");
    /// let listener = UnixListener::bind(&path)?;
    /// lp.block_on(async {
    ///     let client = UnixStream::connect(&path).await?;
    ///     let (server, peer) = listener.accept().await?;
    ///     assert!(peer.is_unnamed());
    ///     server.write_all(b"light").await?;
    ///     client.read(&mut [0; 8]).await
    /// })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub async fn accept(&self) -> io::Result<(UnixStream, SocketAddr)> {
        let stream = UnixStream::of(&self.handle.accept_one().await?);
        let peer = stream.peer_addr()?;
        Ok((stream, peer))
    }

    /// Returns the listener for use without the loop. It stays non-blocking, and its file, if it
    /// has one, stays. A connection that the loop has taken and nobody has accepted is closed.
    ///
    /// ```
    /// use blacklight::{Loop, UnixListener, UnixStream, fs::TempDir};
    ///
    /// let lp = Loop::new()?;
    /// let directory = TempDir::new_blocking("socket")?;
    /// let path = directory.path().join("socket");
    /// let listener: std::os::unix::net::UnixListener = UnixListener::bind(&path)?.into_std()?;
    /// let _client = std::os::unix::net::UnixStream::connect(&path)?;
    /// listener.accept()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn into_std(self) -> io::Result<std::os::unix::net::UnixListener> {
        let fd = self.handle.duplicate()?;
        self.handle.engine().pipe_keep_file(self.handle.key)?;
        Ok(fd.into())
    }

    /// The local address of the listener.
    ///
    /// ```
    /// use blacklight::{Loop, UnixListener, fs::TempDir};
    ///
    /// let lp = Loop::new()?;
    /// let directory = TempDir::new_blocking("socket")?;
    /// let path = directory.path().join("socket");
    /// let listener = UnixListener::bind(&path)?;
    /// assert_eq!(listener.local_addr()?.as_pathname(), Some(path.as_path()));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        unix(
            self.handle
                .with(|engine, key| engine.stream_address(key, false)),
        )
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
/// let reader = Pipe::from_fd(reader.into())?;
/// let writer = Pipe::from_fd(writer.into())?;
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
#[must_use = "a handle closes when it is dropped"]
pub struct Pipe {
    handle: Rc<Handle<Stream>>,
}

stream_methods!(Pipe);

impl Pipe {
    /// Takes ownership of a descriptor, and makes it non-blocking.
    ///
    /// ```
    /// use blacklight::{Loop, Pipe};
    /// use std::io::Write;
    ///
    /// let lp = Loop::new()?;
    /// let (reader, mut writer) = std::io::pipe()?;
    /// let reader = Pipe::from_fd(reader.into())?;
    /// writer.write_all(b"light")?;
    /// assert_eq!(lp.block_on(reader.read(&mut [0; 8]))?, 5);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn from_fd(fd: OwnedFd) -> io::Result<Pipe> {
        let handle = Handle::stream(&here()?.0, init)?;
        handle.open(fd)?;
        Ok(Pipe { handle })
    }
    /// Returns the descriptor for use without the loop. It stays non-blocking. What the loop has
    /// not written yet is cancelled.
    ///
    /// ```
    /// use blacklight::{Loop, Pipe};
    /// use std::os::fd::OwnedFd;
    ///
    /// let lp = Loop::new()?;
    /// let (reader, _writer) = std::io::pipe()?;
    /// let reader: OwnedFd = Pipe::from_fd(reader.into())?.into_fd()?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn into_fd(self) -> io::Result<OwnedFd> {
        self.handle.duplicate()
    }
}
