//! The methods of all public stream types.

use std::fmt;

/// The methods and traits of a stream type, which is a struct with a `handle`.
macro_rules! stream_methods {
    ($stream:ident) => {
        common_methods!($stream);
        $crate::stream::stream_traits!($stream);

        impl $stream {
            fn of(handle: &std::rc::Rc<Handle<Stream>>) -> $stream {
                $stream {
                    handle: handle.clone(),
                }
            }

            /// Reads, and calls back each time that bytes arrive, replacing an earlier callback.
            /// An empty slice means the end of the stream. Reading stops at the end and after an
            /// error.
            ///
            /// For example, with a Unix socket:
            ///
            /// ```
            /// use blacklight::{Loop, Mode, UnixStream};
            ///
            /// let lp = Loop::new()?;
            /// let (near, far) = UnixStream::pair(&lp)?;
            /// near.read_start(|_, near, bytes| match bytes.unwrap() {
            ///     b"enough" => near.read_stop(),
            ///     bytes => println!("{}", bytes.escape_ascii()),
            /// })?;
            /// far.try_write(b"enough")?;
            /// lp.run(Mode::Default); // Returns after `read_stop`.
            /// # Ok::<(), std::io::Error>(())
            /// ```
            pub fn read_start(
                &self,
                mut callback: impl FnMut(&Loop, &$stream, io::Result<&[u8]>) + 'static,
            ) -> io::Result<()> {
                self.handle.read_start(move |lp, handle, bytes| {
                    callback(lp, &$stream::of(handle), bytes);
                })
            }

            /// Stops [`read_start`](Self::read_start), and drops its callback.
            pub fn read_stop(&self) {
                self.handle.read_stop();
            }

            /// Writes all of `bytes`, after all earlier calls of this method, and then calls
            /// `after`. If this returns an error, `after` is not called. If the stream is dropped
            /// before the write is done, `after` receives `ECANCELED`.
            ///
            /// For example, with a Unix socket:
            ///
            /// ```
            /// use blacklight::{Loop, Mode, UnixStream};
            ///
            /// let lp = Loop::new()?;
            /// let (near, far) = UnixStream::pair(&lp)?;
            /// near.write_then("light", |_, written| assert!(written.is_ok()))?;
            /// near.shutdown_then(|_, ended| assert!(ended.is_ok()))?;
            /// lp.run(Mode::Default);
            /// assert_eq!(near.write_queue_size(), 0, "all of it is written");
            /// assert_eq!(far.try_read(&mut [0; 8])?, 5);
            /// assert_eq!(far.try_read(&mut [0; 8])?, 0, "the end");
            /// # Ok::<(), std::io::Error>(())
            /// ```
            pub fn write_then(
                &self,
                bytes: impl Into<Vec<u8>>,
                after: impl FnOnce(&Loop, io::Result<()>) + 'static,
            ) -> io::Result<()> {
                self.handle.write(bytes.into(), after)
            }

            /// Shuts down the writing side after all earlier writes, and then calls `after`.
            pub fn shutdown_then(
                &self,
                after: impl FnOnce(&Loop, io::Result<()>) + 'static,
            ) -> io::Result<()> {
                self.handle.shutdown(after)
            }

            /// Reads without waiting, and returns the number of bytes, or zero at the end.
            ///
            /// # Errors
            ///
            /// [`WouldBlock`](io::ErrorKind::WouldBlock) if nothing has arrived.
            ///
            /// For example, with a Unix socket:
            ///
            /// ```
            /// use blacklight::{Loop, UnixStream};
            /// use std::io::ErrorKind;
            ///
            /// let lp = Loop::new()?;
            /// let (near, far) = UnixStream::pair(&lp)?;
            /// let mut buf = [0; 8];
            /// assert_eq!(near.try_read(&mut buf).unwrap_err().kind(), ErrorKind::WouldBlock);
            /// assert_eq!(far.try_write(b"light")?, 5);
            /// assert_eq!(near.try_read(&mut buf)?, 5);
            /// # Ok::<(), std::io::Error>(())
            /// ```
            pub fn try_read(&self, buf: &mut [u8]) -> io::Result<usize> {
                self.handle.try_read(buf)
            }

            /// Writes without waiting, and returns the number of bytes written.
            ///
            /// # Errors
            ///
            /// [`WouldBlock`](io::ErrorKind::WouldBlock) if nothing can be written now, or while
            /// writes of [`write_then`](Self::write_then) are pending.
            pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
                self.handle.try_write(&[io::IoSlice::new(bytes)])
            }

            /// The number of bytes of [`write_then`](Self::write_then) that are still pending.
            pub fn write_queue_size(&self) -> usize {
                self.handle.engine().write_queue_size(self.handle.key)
            }

            /// Reads, and returns the number of bytes, or zero at the end. Cancel-safe: dropping
            /// the future loses no bytes.
            ///
            /// For example, with a Unix socket:
            ///
            /// ```
            /// use blacklight::{Loop, UnixStream};
            ///
            /// let lp = Loop::new()?;
            /// let (near, far) = UnixStream::pair(&lp)?;
            /// lp.block_on(async {
            ///     far.write_all(b"black ").await?;
            ///     far.write(b"light").await?;
            ///     far.shutdown().await?;
            ///     let (mut text, mut buf) = (Vec::new(), [0; 8]);
            ///     loop {
            ///         match near.read(&mut buf).await? {
            ///             0 => break,
            ///             count => text.extend_from_slice(&buf[..count]),
            ///         }
            ///     }
            ///     assert_eq!(text, b"black light");
            ///     # Ok::<(), std::io::Error>(())
            /// })?;
            /// # Ok::<(), std::io::Error>(())
            /// ```
            pub async fn read(&self, buf: &mut [u8]) -> io::Result<usize> {
                std::future::poll_fn(|context| self.handle.poll_read(context, buf)).await
            }

            /// Writes some of `bytes`, and returns how many.
            pub async fn write(&self, bytes: &[u8]) -> io::Result<usize> {
                let slices = [io::IoSlice::new(bytes)];
                std::future::poll_fn(|context| self.handle.poll_write(context, &slices)).await
            }

            /// Writes all of `bytes`. Not cancel-safe: a dropped future may have written a part.
            pub async fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
                while !bytes.is_empty() {
                    let count = self.write(bytes).await?;
                    if count == 0 {
                        return Err(io::ErrorKind::WriteZero.into());
                    }
                    bytes = &bytes[count..];
                }
                Ok(())
            }

            /// Shuts down the writing side after all earlier writes, so that the peer reads the
            /// end. Reading stays possible.
            pub async fn shutdown(&self) -> io::Result<()> {
                std::future::poll_fn(|context| self.handle.poll_shutdown(context)).await
            }

            /// Splits the stream into two halves, for reading and writing in different tasks. The
            /// stream closes when both are dropped.
            ///
            /// For example, with a Unix socket:
            ///
            /// ```
            /// use blacklight::{Loop, UnixStream};
            ///
            /// let lp = Loop::new()?;
            /// let (near, far) = UnixStream::pair(&lp)?;
            /// let (reader, writer) = near.split();
            /// lp.block_on(async {
            ///     let reading = blacklight::spawn(async move { reader.as_ref().read(&mut [0; 8]).await });
            ///     writer.as_ref().write_all(b"out").await?;
            ///     far.write_all(b"in").await?;
            ///     assert_eq!(reading.await.unwrap()?, 2);
            ///     # Ok::<(), std::io::Error>(())
            /// })?;
            /// # Ok::<(), std::io::Error>(())
            /// ```
            pub fn split(self) -> ($crate::ReadHalf<$stream>, $crate::WriteHalf<$stream>) {
                let other = self.clone();
                ($crate::ReadHalf(self), $crate::WriteHalf(other))
            }

            /// Gives the stream to the loop, which owns it until it is closed or the loop is
            /// gone.
            ///
            /// For example, with a Unix socket:
            ///
            /// ```
            /// use blacklight::{Loop, Mode, UnixStream};
            ///
            /// let lp = Loop::new()?;
            /// let (near, far) = UnixStream::pair(&lp)?;
            /// near.read_start(|_, near, bytes| {
            ///     assert_eq!(bytes.unwrap(), b"light");
            ///     near.close();
            /// })?;
            /// near.detach();
            /// far.try_write(b"light")?;
            /// lp.run(Mode::Default);
            /// # Ok::<(), std::io::Error>(())
            /// ```
            pub fn detach(self) {
                self.handle.detach();
            }
        }

        impl Clone for $stream {
            /// Returns another reference to the same stream, which closes with the last one.
            fn clone(&self) -> $stream {
                $stream::of(&self.handle)
            }
        }

        /// # Panics
        ///
        /// If the stream was [closed](Self::close).
        impl std::os::fd::AsFd for $stream {
            fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
                self.handle.as_fd()
            }
        }
    };
}

pub(crate) use stream_methods;

/// The reading half of a stream; see [`TcpStream::split`](crate::TcpStream::split).
///
/// ```
/// use blacklight::{Loop, UnixStream};
///
/// let lp = Loop::new()?;
/// let (near, far) = UnixStream::pair(&lp)?;
/// let (reader, writer) = near.split();
/// lp.block_on(async {
///     writer.as_ref().write_all(b"out").await?;
///     far.write_all(b"in").await?;
///     assert_eq!(reader.as_ref().read(&mut [0; 8]).await?, 2);
///     assert_eq!(far.read(&mut [0; 8]).await?, 3);
///     Ok::<(), std::io::Error>(())
/// })?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct ReadHalf<S>(pub(crate) S);

/// The writing half of a stream; see [`TcpStream::split`](crate::TcpStream::split).
///
/// ```
/// use blacklight::{Loop, UnixStream};
/// use futures_lite::AsyncWriteExt;
///
/// let lp = Loop::new()?;
/// let (near, far) = UnixStream::pair(&lp)?;
/// let (_reader, mut writer) = near.split();
/// lp.block_on(async {
///     writer.write_all(b"out").await?;
///     writer.close().await?; // Only this half; the other can still read.
///     assert_eq!(far.read(&mut [0; 8]).await?, 3);
///     assert_eq!(far.read(&mut [0; 8]).await?, 0);
///     # Ok::<(), std::io::Error>(())
/// })?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct WriteHalf<S>(pub(crate) S);

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
