//! The halves of streams.

use super::{Shutdown, Stream};
use crate::handle::Handle;
use std::fmt;
use std::rc::Rc;

/// Splitting a stream type, which is a struct with a `handle`, and the methods of its halves.
macro_rules! split_methods {
    ($stream:ident) => {
        impl $stream {
            /// Splits the stream into two halves, for reading and writing in different tasks. The
            /// end of the writing half is the end for the peer, who reads it after all that was
            /// written. The stream closes when both are dropped.
            ///
            /// For example, with a Unix socket:
            ///
            /// ```
            /// use blacklight::{Loop, UnixStream};
            ///
            /// let lp = Loop::new()?;
            /// let (near, far) = UnixStream::pair()?;
            /// let (reader, writer) = near.into_split();
            /// lp.block_on(async {
            ///     let reading = blacklight::spawn(async move { reader.read(&mut [0; 8]).await });
            ///     writer.write_all(b"out").await?;
            ///     far.write_all(b"in").await?;
            ///     assert_eq!(reading.await.unwrap()?, 2);
            ///     # Ok::<(), std::io::Error>(())
            /// })?;
            /// # Ok::<(), std::io::Error>(())
            /// ```
            pub fn into_split(self) -> ($crate::ReadHalf<$stream>, $crate::WriteHalf<$stream>) {
                let end = $crate::stream::ShutDownOnDrop(Some(self.handle.clone()));
                let other = self.clone();
                ($crate::ReadHalf(self), $crate::WriteHalf(other, end))
            }
        }

        impl $crate::ReadHalf<$stream> {
            /// Puts the two halves together again, or gives both back if they are of different
            /// streams.
            ///
            /// For example, with a Unix socket:
            ///
            /// ```
            /// use blacklight::{Loop, UnixStream};
            ///
            /// let lp = Loop::new()?;
            /// let (near, far) = UnixStream::pair()?;
            /// let (reader, writer) = near.into_split();
            /// let (other, _writer) = far.into_split();
            /// let error = other.reunite(writer).unwrap_err();
            /// let near = reader.reunite(error.1).unwrap();
            /// near.try_write(b"light")?;
            /// # Ok::<(), std::io::Error>(())
            /// ```
            pub fn reunite(
                self,
                writer: $crate::WriteHalf<$stream>,
            ) -> Result<$stream, $crate::ReuniteError<$stream>> {
                match std::rc::Rc::ptr_eq(&self.0.handle, &writer.0.handle) {
                    true => {
                        writer.forget();
                        Ok(self.0)
                    }
                    false => Err($crate::ReuniteError(self, writer)),
                }
            }

            /// Reads, and returns the number of bytes, or zero at the end. Cancel-safe.
            ///
            /// For example, with a Unix socket:
            ///
            /// ```
            /// use blacklight::{Loop, UnixStream};
            ///
            /// let lp = Loop::new()?;
            /// let (near, far) = UnixStream::pair()?;
            /// let (reader, _writer) = near.into_split();
            /// far.try_write(b"light")?;
            /// assert_eq!(lp.block_on(reader.read(&mut [0; 8]))?, 5);
            /// # Ok::<(), std::io::Error>(())
            /// ```
            pub async fn read(&self, buf: &mut [u8]) -> io::Result<usize> {
                self.0.read(buf).await
            }

            /// Reads until `buf` is full. Not cancel-safe.
            ///
            /// For example, with a Unix socket:
            ///
            /// ```
            /// use blacklight::{Loop, UnixStream};
            ///
            /// let lp = Loop::new()?;
            /// let (near, far) = UnixStream::pair()?;
            /// let (reader, writer) = near.into_split();
            /// lp.block_on(async {
            ///     blacklight::spawn(async move { writer.write_all(b"a question").await });
            ///     far.write_all(b"answer").await?;
            ///     let mut word = [0; 6];
            ///     reader.read_exact(&mut word).await?;
            ///     assert_eq!(&word, b"answer");
            ///     # Ok::<(), std::io::Error>(())
            /// })?;
            /// # Ok::<(), std::io::Error>(())
            /// ```
            pub async fn read_exact(&self, buf: &mut [u8]) -> io::Result<()> {
                self.0.read_exact(buf).await
            }

            /// Reads to the end, adds the bytes to `bytes`, and returns their number.
            ///
            /// For example, with a Unix socket:
            ///
            /// ```
            /// use blacklight::{Loop, UnixStream};
            ///
            /// let lp = Loop::new()?;
            /// let (near, far) = UnixStream::pair()?;
            /// let (reader, _writer) = near.into_split();
            /// lp.block_on(async {
            ///     far.write_all(b"light").await?;
            ///     far.shutdown().await?;
            ///     let mut bytes = Vec::new();
            ///     assert_eq!(reader.read_to_end(&mut bytes).await?, 5);
            ///     # Ok::<(), std::io::Error>(())
            /// })?;
            /// # Ok::<(), std::io::Error>(())
            /// ```
            pub async fn read_to_end(&self, bytes: &mut Vec<u8>) -> io::Result<usize> {
                self.0.read_to_end(bytes).await
            }

            /// Reads without waiting, and returns the number of bytes, or zero at the end.
            ///
            /// For example, with a Unix socket:
            ///
            /// ```
            /// use blacklight::{Loop, UnixStream};
            /// use std::io::ErrorKind;
            ///
            /// let lp = Loop::new()?;
            /// let (near, _far) = UnixStream::pair()?;
            /// let (reader, _writer) = near.into_split();
            /// let error = reader.try_read(&mut [0; 8]).unwrap_err();
            /// assert_eq!(error.kind(), ErrorKind::WouldBlock);
            /// # Ok::<(), std::io::Error>(())
            /// ```
            pub fn try_read(&self, buf: &mut [u8]) -> io::Result<usize> {
                self.0.try_read(buf)
            }
        }

        impl $crate::WriteHalf<$stream> {
            /// Puts the two halves together again, or gives both back if they are of different
            /// streams.
            ///
            /// For example, with a Unix socket:
            ///
            /// ```
            /// use blacklight::{Loop, UnixStream};
            ///
            /// let lp = Loop::new()?;
            /// let (near, _far) = UnixStream::pair()?;
            /// let (reader, writer) = near.into_split();
            /// let near = writer.reunite(reader).unwrap();
            /// near.try_write(b"light")?;
            /// # Ok::<(), std::io::Error>(())
            /// ```
            pub fn reunite(
                self,
                reader: $crate::ReadHalf<$stream>,
            ) -> Result<$stream, $crate::ReuniteError<$stream>> {
                reader.reunite(self)
            }

            /// Writes some of `bytes`, and returns how many.
            ///
            /// For example, with a Unix socket:
            ///
            /// ```
            /// use blacklight::{Loop, UnixStream};
            ///
            /// let lp = Loop::new()?;
            /// let (near, far) = UnixStream::pair()?;
            /// let (_reader, writer) = near.into_split();
            /// assert_eq!(lp.block_on(writer.write(b"light"))?, 5);
            /// assert_eq!(far.try_read(&mut [0; 8])?, 5);
            /// # Ok::<(), std::io::Error>(())
            /// ```
            pub async fn write(&self, bytes: &[u8]) -> io::Result<usize> {
                self.0.write(bytes).await
            }

            /// Writes all of `bytes`. Not cancel-safe.
            ///
            /// For example, with a Unix socket:
            ///
            /// ```
            /// use blacklight::{Loop, UnixStream};
            ///
            /// let lp = Loop::new()?;
            /// let (near, far) = UnixStream::pair()?;
            /// let (_reader, writer) = near.into_split();
            /// lp.block_on(async {
            ///     let writing = blacklight::spawn(async move { writer.write_all(&vec![7; 1 << 20]).await });
            ///     let mut bytes = vec![0; 1 << 20];
            ///     far.read_exact(&mut bytes).await?;
            ///     writing.await?
            /// })?;
            /// # Ok::<(), std::io::Error>(())
            /// ```
            pub async fn write_all(&self, bytes: &[u8]) -> io::Result<()> {
                self.0.write_all(bytes).await
            }

            /// Writes without waiting, and returns the number of bytes written.
            ///
            /// For example, with a Unix socket:
            ///
            /// ```
            /// use blacklight::{Loop, UnixStream};
            ///
            /// let lp = Loop::new()?;
            /// let (near, far) = UnixStream::pair()?;
            /// let (_reader, writer) = near.into_split();
            /// assert_eq!(writer.try_write(b"light")?, 5);
            /// assert_eq!(far.try_read(&mut [0; 8])?, 5);
            /// # Ok::<(), std::io::Error>(())
            /// ```
            pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
                self.0.try_write(bytes)
            }

            /// Shuts down the writing side, so that the peer reads the end. The other half can
            /// still read.
            ///
            /// For example, with a Unix socket:
            ///
            /// ```
            /// use blacklight::{Loop, UnixStream};
            ///
            /// let lp = Loop::new()?;
            /// let (near, far) = UnixStream::pair()?;
            /// let (reader, writer) = near.into_split();
            /// lp.block_on(async {
            ///     writer.shutdown().await?;
            ///     assert_eq!(far.read(&mut [0; 8]).await?, 0);
            ///     far.write_all(b"light").await?;
            ///     assert_eq!(reader.read(&mut [0; 8]).await?, 5);
            ///     # Ok::<(), std::io::Error>(())
            /// })?;
            /// # Ok::<(), std::io::Error>(())
            /// ```
            pub async fn shutdown(&self) -> io::Result<()> {
                self.0.shutdown().await
            }
        }
    };
}

pub(crate) use split_methods;

/// The reading half of a stream; see [`TcpStream::into_split`](crate::TcpStream::into_split).
///
/// ```
/// use blacklight::{Loop, UnixStream};
///
/// let lp = Loop::new()?;
/// let (near, far) = UnixStream::pair()?;
/// let (reader, writer) = near.into_split();
/// lp.block_on(async {
///     writer.write_all(b"out").await?;
///     far.write_all(b"in").await?;
///     assert_eq!(reader.read(&mut [0; 8]).await?, 2);
///     assert_eq!(far.read(&mut [0; 8]).await?, 3);
///     Ok::<(), std::io::Error>(())
/// })?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct ReadHalf<S>(pub(crate) S);

/// The writing half of a stream; see [`TcpStream::into_split`](crate::TcpStream::into_split).
///
/// When it is dropped, writing ends as with `shutdown`: the peer reads all that was written, and
/// then the end. [`forget`](WriteHalf::forget) leaves the stream open for its other owners.
///
/// ```
/// use blacklight::{Loop, UnixStream};
///
/// let lp = Loop::new()?;
/// let (near, far) = UnixStream::pair()?;
/// let (_reader, writer) = near.into_split();
/// lp.block_on(async {
///     writer.write_all(b"out").await?;
///     drop(writer); // The other half can still read.
///     assert_eq!(far.read(&mut [0; 8]).await?, 3);
///     assert_eq!(far.read(&mut [0; 8]).await?, 0);
///     # Ok::<(), std::io::Error>(())
/// })?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct WriteHalf<S>(pub(crate) S, pub(crate) ShutDownOnDrop);

/// Ends writing when it is dropped, unless that was done or the stream is closed.
pub(crate) struct ShutDownOnDrop(pub(crate) Option<Rc<Handle<Stream>>>);

impl Drop for ShutDownOnDrop {
    fn drop(&mut self) {
        if let Some(handle) = self.0.take()
            && let Shutdown::NotBegun = handle.state.shutdown.get()
        {
            // Fails if the stream is closed, or was never connected.
            let _ = handle.begin_shutdown();
        }
    }
}

impl<S> WriteHalf<S> {
    /// Drops the half without an end of writing: the peer goes on waiting for more, until the
    /// other half is dropped as well.
    ///
    /// ```
    /// use blacklight::{Loop, UnixStream};
    /// use std::io::ErrorKind;
    ///
    /// let lp = Loop::new()?;
    /// let (near, far) = UnixStream::pair()?;
    /// let (reader, writer) = near.into_split();
    /// writer.forget();
    /// lp.block_on(blacklight::yield_now());
    /// assert_eq!(far.try_read(&mut [0; 8]).unwrap_err().kind(), ErrorKind::WouldBlock);
    /// drop(reader);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn forget(mut self) {
        self.1.0 = None;
    }
}

/// The error of halves that are not of one stream, with both of them; see
/// [`ReadHalf::reunite`](crate::ReadHalf#method.reunite).
///
/// ```
/// use blacklight::{Loop, ReuniteError, UnixStream};
///
/// let lp = Loop::new()?;
/// let (near, far) = UnixStream::pair()?;
/// let ((reader, _writer), (_reader, writer)) = (near.into_split(), far.into_split());
/// let ReuniteError(_reader, _writer) = reader.reunite(writer).unwrap_err();
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct ReuniteError<S>(pub ReadHalf<S>, pub WriteHalf<S>);

impl<S> fmt::Display for ReuniteError<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the halves are of different streams")
    }
}

impl<S: fmt::Debug> std::error::Error for ReuniteError<S> {}

impl<S> AsRef<S> for ReadHalf<S> {
    fn as_ref(&self) -> &S {
        &self.0
    }
}

impl<S> AsRef<S> for WriteHalf<S> {
    fn as_ref(&self) -> &S {
        &self.0
    }
}

impl<S: fmt::Debug> fmt::Debug for ReadHalf<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ReadHalf").field(&self.0).finish()
    }
}

impl<S: fmt::Debug> fmt::Debug for WriteHalf<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WriteHalf").field(&self.0).finish()
    }
}
