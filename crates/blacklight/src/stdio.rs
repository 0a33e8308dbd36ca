//! The standard streams of the process, whatever they are.
//!
//! - A terminal or a pipe is reopened if the system permits it, since making it non-blocking would
//!   change it for all processes that share it. What cannot be reopened, and sockets, is shared.
//! - A file or another device is read and written on the thread pool.

use crate::fs;
use crate::tty::Tty;
use crate::unix::Pipe;
use blacklight_sys::fd::NONBLOCK;
use futures_io::{AsyncRead, AsyncWrite};
use std::fmt;
use std::fs::OpenOptions;
use std::future::poll_fn;
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::pin::Pin;
use std::task::{Context, Poll};

enum Kind {
    Terminal(Tty),
    Pipe(Pipe),
    File(fs::File),
}

impl Kind {
    fn open(fd: BorrowedFd<'_>, writes: bool) -> io::Result<Kind> {
        if fd.is_terminal() {
            return Ok(Kind::Terminal(Tty::new(fd)?));
        }
        let file = std::fs::File::from(fd.try_clone_to_owned()?);
        let kind = file.metadata()?.file_type();
        if kind.is_fifo() {
            let path = format!("/proc/self/fd/{}", file.as_raw_fd());
            let mut options = OpenOptions::new();
            options.read(!writes).write(writes).custom_flags(NONBLOCK);
            let own = options.open(path).unwrap_or(file);
            return Ok(Kind::Pipe(Pipe::from_fd(own.into())?));
        }
        if kind.is_socket() {
            return Ok(Kind::Pipe(Pipe::from_fd(file.into())?));
        }
        Ok(Kind::File(fs::File::from_std(file)))
    }
}

/// Calls a method of the stream, the file or the terminal.
macro_rules! each {
    ($kind:expr, $stream:ident => $call:expr) => {
        match $kind {
            Kind::Terminal($stream) => $call,
            Kind::Pipe($stream) => $call,
            Kind::File($stream) => $call,
        }
    };
}

/// The standard input; see [`stdin`].
///
/// ```
/// use blacklight::{Loop, Stdin};
///
/// let lp = Loop::new()?;
/// let stdin: Stdin = blacklight::stdin()?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Stdin(Kind);

/// Opens the standard input for reading: a terminal, a pipe, a socket or a file.
///
/// What is read here is not seen by [`std::io::stdin`], and the other way round.
///
/// ```
/// use blacklight::Loop;
///
/// # // Tests may be started with any standard input, so this gives up after a while.
/// # use std::time::Duration;
/// let lp = Loop::new()?;
/// lp.block_on(async {
///     let mut stdin = blacklight::stdin()?;
///     let mut buf = [0; 4096];
///     # let _ = blacklight::timeout(Duration::from_millis(1), async {
///     let count = stdin.read(&mut buf).await?;
///     println!("{count} bytes");
///     # Ok::<(), std::io::Error>(()) }).await;
///     # Ok::<(), std::io::Error>(())
/// })?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn stdin() -> io::Result<Stdin> {
    Kind::open(io::stdin().as_fd(), false).map(Stdin)
}

impl Stdin {
    /// Reads, and returns the number of bytes, or zero at the end. Cancel-safe: dropping the
    /// future loses no bytes.
    ///
    /// ```
    /// use blacklight::{Loop, Stdin};
    /// use std::io;
    ///
    /// /// Counts the bytes up to the end.
    /// async fn count(stdin: &mut Stdin) -> io::Result<usize> {
    ///     let (mut buf, mut total) = ([0; 4096], 0);
    ///     loop {
    ///         match stdin.read(&mut buf).await? {
    ///             0 => return Ok(total),
    ///             count => total += count,
    ///         }
    ///     }
    /// }
    ///
    /// # if false { // Tests may be started with any standard input.
    /// let lp = Loop::new()?;
    /// let total = lp.block_on(async { count(&mut blacklight::stdin()?).await })?;
    /// println!("{total} bytes");
    /// # }
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub async fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        each!(&mut self.0, stream => stream.read(buf).await)
    }

    /// Reads to the end, adds the bytes to `bytes`, and returns their number.
    ///
    /// ```no_run
    /// use blacklight::Loop;
    ///
    /// let lp = Loop::new()?;
    /// let mut bytes = Vec::new();
    /// let count = lp.block_on(blacklight::stdin()?.read_to_end(&mut bytes))?;
    /// println!("{count} bytes");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub async fn read_to_end(&mut self, bytes: &mut Vec<u8>) -> io::Result<usize> {
        each!(&mut self.0, stream => stream.read_to_end(bytes).await)
    }
}

impl AsyncRead for Stdin {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buf: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        each!(&mut self.0, stream => AsyncRead::poll_read(Pin::new(stream), context, buf))
    }
}

#[cfg(feature = "tokio")]
impl tokio::io::AsyncRead for Stdin {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buf: &mut tokio::io::ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        each!(&mut self.0, stream => {
            tokio::io::AsyncRead::poll_read(Pin::new(stream), context, buf)
        })
    }
}

impl fmt::Debug for Stdin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stdin").finish_non_exhaustive()
    }
}

macro_rules! output {
    ($(#[$doc:meta])* $name:ident, $(#[$open_doc:meta])* $open:ident) => {
        $(#[$doc])*
        pub struct $name(Kind);

        $(#[$open_doc])*
        pub fn $open() -> io::Result<$name> {
            Kind::open(io::$open().as_fd(), true).map($name)
        }

        impl $name {
            /// Writes all of `bytes`. Not cancel-safe: a dropped future may have written a part.
            ///
            /// ```
            /// use blacklight::Loop;
            ///
            /// let lp = Loop::new()?;
            /// lp.block_on(async {
            ///     let mut stderr = blacklight::stderr()?;
            ///     stderr.write_all(b"black ").await?;
            ///     stderr.write_all(b"light\n").await
            /// })?;
            /// # Ok::<(), std::io::Error>(())
            /// ```
            pub async fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
                each!(&mut self.0, stream => stream.write_all(bytes).await)
            }

            /// Waits until the system has all bytes that were written through the traits.
            ///
            /// ```
            /// use blacklight::Loop;
            /// use futures_lite::AsyncWriteExt;
            ///
            /// let lp = Loop::new()?;
            /// lp.block_on(async {
            ///     let mut stdout = blacklight::stdout()?;
            ///     // A file is written on the thread pool, after this has returned.
            ///     AsyncWriteExt::write(&mut stdout, b"light\n").await?;
            ///     stdout.flush().await
            /// })?;
            /// # Ok::<(), std::io::Error>(())
            /// ```
            pub async fn flush(&mut self) -> io::Result<()> {
                poll_fn(|context| Pin::new(&mut *self).poll_flush(context)).await
            }
        }

        impl AsyncWrite for $name {
            fn poll_write(
                mut self: Pin<&mut Self>,
                context: &mut Context<'_>,
                bytes: &[u8],
            ) -> Poll<io::Result<usize>> {
                each!(&mut self.0, stream => AsyncWrite::poll_write(Pin::new(stream), context, bytes))
            }

            fn poll_flush(
                mut self: Pin<&mut Self>,
                context: &mut Context<'_>,
            ) -> Poll<io::Result<()>> {
                match &mut self.0 {
                    Kind::File(file) => Pin::new(file).poll_flush(context),
                    // Streams keep nothing back.
                    Kind::Terminal(_) | Kind::Pipe(_) => Poll::Ready(Ok(())),
                }
            }

            fn poll_close(
                self: Pin<&mut Self>,
                context: &mut Context<'_>,
            ) -> Poll<io::Result<()>> {
                self.poll_flush(context)
            }
        }

        #[cfg(feature = "tokio")]
        impl tokio::io::AsyncWrite for $name {
            fn poll_write(
                self: Pin<&mut Self>,
                context: &mut Context<'_>,
                bytes: &[u8],
            ) -> Poll<io::Result<usize>> {
                AsyncWrite::poll_write(self, context, bytes)
            }

            fn poll_flush(
                self: Pin<&mut Self>,
                context: &mut Context<'_>,
            ) -> Poll<io::Result<()>> {
                AsyncWrite::poll_flush(self, context)
            }

            fn poll_shutdown(
                self: Pin<&mut Self>,
                context: &mut Context<'_>,
            ) -> Poll<io::Result<()>> {
                AsyncWrite::poll_close(self, context)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }
    };
}

output! {
    /// The standard output; see [`stdout`].
    ///
    /// ```
    /// use blacklight::{Loop, Stdout};
    ///
    /// let lp = Loop::new()?;
    /// let mut stdout: Stdout = blacklight::stdout()?;
    /// lp.block_on(stdout.flush())?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    Stdout,
    /// Opens the standard output for writing: a terminal, a pipe, a socket or a file. Nothing is
    /// kept back, so call [`std::io::stdout`]'s `flush` before, if the program uses both.
    ///
    /// ```
    /// use blacklight::Loop;
    ///
    /// let lp = Loop::new()?;
    /// lp.block_on(async { blacklight::stdout()?.write_all(b"hello\n").await })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    stdout
}

output! {
    /// The standard error stream; see [`stderr`].
    ///
    /// ```
    /// use blacklight::{Loop, Stderr};
    ///
    /// let lp = Loop::new()?;
    /// let mut stderr: Stderr = blacklight::stderr()?;
    /// lp.block_on(stderr.flush())?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    Stderr,
    /// Opens the standard error stream for writing; see [`stdout`].
    ///
    /// ```
    /// use blacklight::Loop;
    ///
    /// let lp = Loop::new()?;
    /// lp.block_on(async { blacklight::stderr()?.write_all(b"oh\n").await })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    stderr
}
