//! The methods of all public stream types.

/// The methods and traits of a stream type, which is a struct with a `handle`.
macro_rules! stream_methods {
    ($stream:ident) => {
        common_methods!($stream);
        $crate::stream::stream_traits!($stream);
        $crate::stream::split_methods!($stream);

        impl $stream {
            fn of(handle: &std::rc::Rc<Handle<Stream>>) -> $stream {
                $stream {
                    handle: handle.clone(),
                }
            }

            /// Reads, and calls back each time that bytes arrive, replacing an earlier callback.
            /// An empty slice means the end of the stream. Reading stops at the end and after an
            /// error. Until [`read_stop`](Self::read_stop), futures that read fail with
            /// [`Error::HasCallback`](crate::Error::HasCallback).
            ///
            /// For example, with a Unix socket:
            ///
            /// ```
            /// use blacklight::{Loop, Mode, UnixStream};
            ///
            /// let lp = Loop::new()?;
            /// let (near, far) = UnixStream::pair()?;
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
                mut callback: impl FnMut(&LoopHandle, &$stream, io::Result<&[u8]>) + 'static,
            ) -> io::Result<()> {
                let code = $crate::code::Code::of(&callback);
                self.handle.read_start(code, move |lp, handle, bytes| {
                    callback(lp, &$stream::of(handle), bytes);
                })
            }

            /// Stops [`read_start`](Self::read_start), and drops its callback.
            ///
            /// For example, with a Unix socket:
            ///
            /// ```
            /// use blacklight::{Loop, Mode, UnixStream};
            ///
            /// let lp = Loop::new()?;
            /// let (near, far) = UnixStream::pair()?;
            /// near.read_start(|_, _, _| unreachable!("it was stopped"))?;
            /// far.try_write(b"light")?;
            /// near.read_stop();
            /// assert!(!lp.run(Mode::Default));
            /// // The bytes wait for whoever reads next.
            /// assert_eq!(lp.block_on(near.read(&mut [0; 8]))?, 5);
            /// # Ok::<(), std::io::Error>(())
            /// ```
            pub fn read_stop(&self) {
                self.handle.read_stop();
            }

            /// Writes all of `bytes`, after all earlier calls of this method, and then calls
            /// `after`. If this returns an error, `after` is not called. If the stream is dropped
            /// before the write is done, `after` receives `ECANCELED`.
            ///
            /// # Errors
            ///
            /// [`WouldBlock`](io::ErrorKind::WouldBlock) while a [`write_all`](Self::write_all)
            /// is halfway through.
            ///
            /// For example, with a Unix socket:
            ///
            /// ```
            /// use blacklight::{Loop, Mode, UnixStream};
            ///
            /// let lp = Loop::new()?;
            /// let (near, far) = UnixStream::pair()?;
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
                after: impl FnOnce(&LoopHandle, io::Result<()>) + 'static,
            ) -> io::Result<()> {
                self.handle.write(bytes.into(), after)
            }

            /// Shuts down the writing side after all earlier writes, and then calls `after`.
            ///
            /// For example, with a Unix socket:
            ///
            /// ```
            /// use blacklight::{Loop, Mode, UnixStream};
            ///
            /// let lp = Loop::new()?;
            /// let (near, far) = UnixStream::pair()?;
            /// near.write_then("light", |_, _| ())?;
            /// near.shutdown_then(|_, ended| ended.unwrap())?; // After the write.
            /// far.read_start(|_, _, bytes| println!("{}", bytes.unwrap().escape_ascii()))?;
            /// lp.run(Mode::Default); // Until the end is read.
            /// # Ok::<(), std::io::Error>(())
            /// ```
            pub fn shutdown_then(
                &self,
                after: impl FnOnce(&LoopHandle, io::Result<()>) + 'static,
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
            /// let (near, far) = UnixStream::pair()?;
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
            /// [`WouldBlock`](io::ErrorKind::WouldBlock) if nothing can be written now, while
            /// writes of [`write_then`](Self::write_then) are pending, or while a
            /// [`write_all`](Self::write_all) is halfway through.
            ///
            /// For example, with a Unix socket:
            ///
            /// ```
            /// use blacklight::{Loop, UnixStream};
            /// use std::io::ErrorKind;
            ///
            /// let lp = Loop::new()?;
            /// let (near, _far) = UnixStream::pair()?;
            /// let mut written = 0;
            /// let full = loop {
            ///     match near.try_write(&[0; 4096]) {
            ///         Ok(count) => written += count,
            ///         Err(error) => break error,
            ///     }
            /// };
            /// assert_eq!(full.kind(), ErrorKind::WouldBlock);
            /// assert!(written > 4096);
            /// # Ok::<(), std::io::Error>(())
            /// ```
            pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
                self.handle.try_write(&[io::IoSlice::new(bytes)])
            }

            /// The number of bytes of [`write_then`](Self::write_then) that are still pending.
            ///
            /// For example, with a Unix socket:
            ///
            /// ```
            /// use blacklight::{Loop, UnixStream};
            ///
            /// let lp = Loop::new()?;
            /// let (near, _far) = UnixStream::pair()?;
            /// near.write_then(vec![0; 1 << 20], |_, _| ())?;
            /// // The peer does not read, so some of it has to wait.
            /// assert!(near.write_queue_size() > 0);
            /// # Ok::<(), std::io::Error>(())
            /// ```
            pub fn write_queue_size(&self) -> usize {
                self.handle.engine().write_queue_size(self.handle.key)
            }

            /// Reads, and returns the number of bytes, or zero at the end. Cancel-safe: dropping
            /// the future loses no bytes. Several tasks may wait on clones of one stream; each
            /// byte goes to one of them.
            ///
            /// For example, with a Unix socket:
            ///
            /// ```
            /// use blacklight::{Loop, UnixStream};
            ///
            /// let lp = Loop::new()?;
            /// let (near, far) = UnixStream::pair()?;
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
                self.handle.read(buf).await
            }

            /// Writes some of `bytes`, and returns how many.
            ///
            /// For example, with a Unix socket:
            ///
            /// ```
            /// use blacklight::{Loop, UnixStream};
            ///
            /// let lp = Loop::new()?;
            /// let (near, _far) = UnixStream::pair()?;
            /// lp.block_on(async {
            ///     assert_eq!(near.write(b"light").await?, 5);
            ///     let some = near.write(&vec![0; 1 << 24]).await?;
            ///     assert!(some < 1 << 24, "as much as fits");
            ///     # Ok::<(), std::io::Error>(())
            /// })?;
            /// # Ok::<(), std::io::Error>(())
            /// ```
            pub async fn write(&self, bytes: &[u8]) -> io::Result<usize> {
                self.handle.write_some(bytes).await
            }

            /// Reads until `buf` is full. Not cancel-safe: dropping the future loses the bytes that
            /// it has read.
            ///
            /// # Errors
            ///
            /// [`UnexpectedEof`](io::ErrorKind::UnexpectedEof) if the stream ends before.
            ///
            /// For example, with a Unix socket:
            ///
            /// ```
            /// use blacklight::{Loop, UnixStream};
            /// use std::io::ErrorKind;
            ///
            /// let lp = Loop::new()?;
            /// let (near, far) = UnixStream::pair()?;
            /// lp.block_on(async {
            ///     far.write_all(b"black light").await?;
            ///     far.shutdown().await?;
            ///     let mut word = [0; 5];
            ///     near.read_exact(&mut word).await?;
            ///     assert_eq!(&word, b"black");
            ///     let mut rest = Vec::new();
            ///     assert_eq!(near.read_to_end(&mut rest).await?, 6);
            ///     assert_eq!(rest, b" light");
            ///     let error = near.read_exact(&mut word).await.unwrap_err();
            ///     assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
            ///     # Ok::<(), std::io::Error>(())
            /// })?;
            /// # Ok::<(), std::io::Error>(())
            /// ```
            pub async fn read_exact(&self, buf: &mut [u8]) -> io::Result<()> {
                self.handle.read_exact(buf).await
            }

            /// Reads to the end, adds the bytes to `bytes`, and returns their number. Bytes that
            /// were read before an error, or before the future is dropped, are in `bytes`.
            ///
            /// For example, with a Unix socket:
            ///
            /// ```
            /// use blacklight::{Loop, UnixStream};
            ///
            /// let lp = Loop::new()?;
            /// let (near, far) = UnixStream::pair()?;
            /// lp.block_on(async {
            ///     blacklight::spawn(async move { far.write_all(&vec![7; 1 << 20]).await });
            ///     let mut bytes = Vec::new();
            ///     assert_eq!(near.read_to_end(&mut bytes).await?, 1 << 20);
            ///     # Ok::<(), std::io::Error>(())
            /// })?;
            /// # Ok::<(), std::io::Error>(())
            /// ```
            pub async fn read_to_end(&self, bytes: &mut Vec<u8>) -> io::Result<usize> {
                self.handle.read_to_end(bytes).await
            }

            /// Writes all of `bytes`. Not cancel-safe: a dropped future may have written a part.
            ///
            /// Several tasks may write to clones of one stream. What one call of this writes is
            /// not mixed with the bytes of others: while it is halfway through, other futures that
            /// write or shut down wait, and [`try_write`](Self::try_write) and
            /// [`write_then`](Self::write_then) fail with
            /// [`WouldBlock`](io::ErrorKind::WouldBlock). So a task that keeps such a future
            /// without polling it holds the others up.
            ///
            /// For example, with a Unix socket:
            ///
            /// ```
            /// use blacklight::{Loop, UnixStream};
            ///
            /// let lp = Loop::new()?;
            /// let (near, far) = UnixStream::pair()?;
            /// for byte in [b'a', b'b'] {
            ///     let near = near.clone();
            ///     drop(lp.spawn(async move { near.write_all(&vec![byte; 1 << 20]).await }));
            /// }
            /// lp.block_on(async {
            ///     let mut first = vec![0; 1 << 20];
            ///     far.read_exact(&mut first).await?;
            ///     assert!(first.iter().all(|byte| *byte == first[0]));
            ///     far.read_exact(&mut first).await // The other task's megabyte.
            /// })?;
            /// # Ok::<(), std::io::Error>(())
            /// ```
            pub async fn write_all(&self, bytes: &[u8]) -> io::Result<()> {
                self.handle.write_all(bytes).await
            }

            /// Shuts down the writing side after all earlier writes, so that the peer reads the
            /// end. Reading stays possible.
            ///
            /// For example, with a Unix socket:
            ///
            /// ```
            /// use blacklight::{Loop, UnixStream};
            /// use std::io::ErrorKind;
            ///
            /// let lp = Loop::new()?;
            /// let (near, far) = UnixStream::pair()?;
            /// lp.block_on(async {
            ///     near.write_all(b"the last word").await?;
            ///     near.shutdown().await?;
            ///     let error = near.write(b"one more").await.unwrap_err();
            ///     assert_eq!(error.kind(), ErrorKind::BrokenPipe);
            ///     far.read_to_end(&mut Vec::new()).await?;
            ///     far.write_all(b"an answer").await?;
            ///     assert_eq!(near.read(&mut [0; 16]).await?, 9);
            ///     # Ok::<(), std::io::Error>(())
            /// })?;
            /// # Ok::<(), std::io::Error>(())
            /// ```
            pub async fn shutdown(&self) -> io::Result<()> {
                self.handle.shut_down().await
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
            /// let (near, far) = UnixStream::pair()?;
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

        /// A descriptor to borrow. Once it has been borrowed it stays open for as long as any clone
        /// of the stream lives, since somebody may still use it: [`close`](Self::close) takes the
        /// stream from the loop and leaves the descriptor open, so that the peer sees no end until the last
        /// clone is dropped.
        /// [`shutdown`](Self::shutdown) first tells the peer at once.
        ///
        /// # Panics
        ///
        /// If the stream was closed before, and the descriptor never borrowed.
        impl std::os::fd::AsFd for $stream {
            fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
                self.handle.as_fd()
            }
        }
    };
}

pub(crate) use stream_methods;
