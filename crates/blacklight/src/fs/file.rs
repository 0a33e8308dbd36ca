//! An open file.
//!
//! Jobs on the pool use their own buffers, so that a call's future may be dropped at any time.
//! The file, not the future, owns the job in progress:
//!
//! - The next read returns the bytes of a read whose future was dropped.
//! - A write returns once its job is submitted, and the job runs even if the file is dropped. If
//!   the write fails, the next call returns the error; `flush` waits for it.
//! - The kernel's file position is ahead of the file's by the bytes that are read and not yet
//!   returned. A write, a seek or `into_std` moves it back first.

use super::on_pool;
use crate::current::here;
use crate::work::{Blocking, OnPool};
use blacklight_engine::WorkKind;
use futures_io::{AsyncRead, AsyncSeek, AsyncWrite};
use std::fmt;
use std::fs::{self, FileTimes, Metadata, OpenOptions, Permissions};
use std::future::poll_fn;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// The most bytes that one job reads or writes.
const CHUNK: usize = 64 * 1024;

/// The job in progress.
enum Operation {
    None,
    Reading(OnPool<Vec<u8>>),
    Writing(Blocking<io::Result<()>>),
    Seeking(SeekFrom, OnPool<u64>),
}

/// An open file, like [`std::fs::File`], read and written on the thread pool.
///
/// ```
/// use blacklight::{Loop, fs::{File, TempDir}};
/// use std::io::SeekFrom;
///
/// let lp = Loop::new()?;
/// lp.block_on(async {
///     let directory = TempDir::new("file").await?;
///     let path = directory.path().join("file");
///     let mut file = File::create(&path).await?;
///     file.write_all(b"black light").await?;
///     file.sync_all().await?;
///
///     let mut file = File::open(&path).await?;
///     file.seek(SeekFrom::Start(6)).await?;
///     let mut rest = Vec::new();
///     file.read_to_end(&mut rest).await?;
///     assert_eq!(rest, b"light");
///     let mut word = [0; 5];
///     assert_eq!(file.read_at(&mut word, 0).await?, 5);
///     assert_eq!(&word, b"black");
///     # Ok::<(), std::io::Error>(())
/// })?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct File {
    file: Arc<fs::File>,
    operation: Operation,
    /// Bytes that were read, of which the first `taken` were returned.
    read: Vec<u8>,
    taken: usize,
}

impl File {
    /// Opens a file for reading.
    ///
    /// ```
    /// use blacklight::{Loop, fs::File};
    /// use std::io::ErrorKind;
    ///
    /// let lp = Loop::new()?;
    /// lp.block_on(async {
    ///     let mut name = Vec::new();
    ///     File::open("/proc/self/comm").await?.read_to_end(&mut name).await?;
    ///     assert!(name.ends_with(b"\n"));
    ///     assert_eq!(File::open("/nowhere").await.unwrap_err().kind(), ErrorKind::NotFound);
    ///     # Ok::<(), std::io::Error>(())
    /// })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub async fn open(path: impl AsRef<Path>) -> io::Result<File> {
        File::open_with(path, OpenOptions::new().read(true)).await
    }

    /// Creates a file for writing, truncating an existing one.
    ///
    /// ```
    /// use blacklight::{Loop, fs::{self, File, TempDir}};
    ///
    /// let lp = Loop::new()?;
    /// lp.block_on(async {
    ///     let directory = TempDir::new("create").await?;
    ///     let path = directory.path().join("file");
    ///     File::create(&path).await?.write_all(b"black light").await?;
    ///     File::create(&path).await?.write_all(b"light").await?;
    ///     assert_eq!(fs::read(&path).await?, b"light");
    ///     # Ok::<(), std::io::Error>(())
    /// })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub async fn create(path: impl AsRef<Path>) -> io::Result<File> {
        let mut options = OpenOptions::new();
        File::open_with(path, options.write(true).create(true).truncate(true)).await
    }

    /// Opens a file with options.
    ///
    /// ```
    /// use blacklight::{Loop, fs::File};
    /// use std::fs::OpenOptions;
    ///
    /// let lp = Loop::new()?;
    /// lp.block_on(File::open_with("/dev/null", OpenOptions::new().append(true)))?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub async fn open_with(path: impl AsRef<Path>, options: &OpenOptions) -> io::Result<File> {
        let (path, options) = (path.as_ref().to_owned(), options.clone());
        let file = on_pool(move || options.open(path)).await?;
        Ok(File::from_std(file))
    }

    /// Takes ownership of an open file.
    ///
    /// ```
    /// use blacklight::{Loop, fs::File};
    ///
    /// let lp = Loop::new()?;
    /// let file = File::from_std(std::fs::File::open("/proc/self/comm")?);
    /// lp.block_on(file.into_std())?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn from_std(file: fs::File) -> File {
        File {
            file: Arc::new(file),
            operation: Operation::None,
            read: Vec::new(),
            taken: 0,
        }
    }

    /// Waits for pending writes, and returns the file. Its position is behind the last byte that was
    /// written or that a read has returned, if it can be moved.
    ///
    /// ```
    /// use blacklight::{Loop, fs::TempFile};
    /// use std::io::{Read, Seek};
    ///
    /// let lp = Loop::new()?;
    /// lp.block_on(async {
    ///     let mut temporary = TempFile::new("std").await?.file;
    ///     temporary.write_all(b"light").await?;
    ///     let mut file: std::fs::File = temporary.into_std().await?;
    ///     file.rewind()?;
    ///     let mut text = String::new();
    ///     file.read_to_string(&mut text)?;
    ///     assert_eq!(text, "light");
    ///     # Ok::<(), std::io::Error>(())
    /// })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub async fn into_std(mut self) -> io::Result<fs::File> {
        self.flush().await?;
        if !self.unread().is_empty() {
            let position = self.seek(SeekFrom::Current(0)).await;
            // A pipe has no position, and what was read of it is lost.
            position.map(drop).or_else(|error| match error.kind() {
                io::ErrorKind::NotSeekable => Ok(()),
                _ => Err(error),
            })?;
        }
        let file = self.file.clone();
        drop(self);
        // The job of a dropped read may own the file as well.
        Arc::try_unwrap(file).or_else(|file| file.try_clone())
    }

    fn unread(&self) -> &[u8] {
        &self.read[self.taken..]
    }

    /// Discards bytes that were not returned, and returns the seek that undoes their read.
    fn forget_unread(&mut self) -> i64 {
        let ahead = self.unread().len();
        self.read.clear();
        self.taken = 0;
        -(ahead as i64)
    }

    /// Waits for the job in progress. Keeps the bytes of a read.
    fn poll_idle(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = match &mut self.operation {
            Operation::None => return Poll::Ready(Ok(())),
            Operation::Reading(reading) => ready!(Pin::new(reading).poll(context)).map(|bytes| {
                self.read = bytes;
                self.taken = 0;
            }),
            Operation::Writing(writing) => {
                let result = ready!(Pin::new(writing).poll(context));
                result.unwrap_or_else(|error| Err(error.into()))
            }
            Operation::Seeking(_, seeking) => ready!(Pin::new(seeking).poll(context)).map(drop),
        };
        self.operation = Operation::None;
        Poll::Ready(result)
    }

    /// Runs a job on the file, after the one in progress.
    async fn with<T: Send + 'static>(
        &mut self,
        job: impl FnOnce(&fs::File) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        self.flush().await?;
        let file = self.file.clone();
        on_pool(move || job(&file)).await
    }

    /// Waits until the kernel has all written bytes, and returns the error of a failed write.
    ///
    /// ```
    /// use blacklight::{Loop, fs::{self, TempFile}};
    /// use futures_lite::AsyncWriteExt;
    ///
    /// let lp = Loop::new()?;
    /// lp.block_on(async {
    ///     let mut temporary = TempFile::new("flush").await?;
    ///     // A write returns before the pool has done it.
    ///     AsyncWriteExt::write(&mut temporary.file, b"light").await?;
    ///     temporary.file.flush().await?;
    ///     assert_eq!(fs::read(temporary.path()).await?, b"light");
    ///     # Ok::<(), std::io::Error>(())
    /// })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub async fn flush(&mut self) -> io::Result<()> {
        poll_fn(|context| self.poll_idle(context)).await
    }

    /// Reads up to `buf.len()` bytes, and returns their number, or zero at the end.
    ///
    /// ```
    /// use blacklight::{Loop, fs::File};
    ///
    /// let lp = Loop::new()?;
    /// lp.block_on(async {
    ///     let mut file = File::open("/dev/zero").await?;
    ///     let mut room = [1; 8];
    ///     assert_eq!(file.read(&mut room).await?, 8);
    ///     assert_eq!(room, [0; 8]);
    ///     # Ok::<(), std::io::Error>(())
    /// })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub async fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        poll_fn(|context| Pin::new(&mut *self).poll_read(context, buf)).await
    }

    /// Reads to the end, adds the bytes to `bytes`, and returns their number. Not cancel-safe:
    /// dropping the future loses the bytes read.
    ///
    /// ```
    /// use blacklight::{Loop, fs::TempFile};
    /// use std::io::SeekFrom;
    ///
    /// let lp = Loop::new()?;
    /// lp.block_on(async {
    ///     let mut file = TempFile::new("end").await?.file;
    ///     file.write_all(b"black light").await?;
    ///     file.seek(SeekFrom::Start(6)).await?;
    ///     let mut bytes = b"> ".to_vec();
    ///     assert_eq!(file.read_to_end(&mut bytes).await?, 5);
    ///     assert_eq!(bytes, b"> light");
    ///     # Ok::<(), std::io::Error>(())
    /// })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub async fn read_to_end(&mut self, bytes: &mut Vec<u8>) -> io::Result<usize> {
        self.flush().await?;
        let mut all = self.unread().to_owned();
        self.forget_unread();
        let file = self.file.clone();
        let mut all = on_pool(move || {
            (&*file).read_to_end(&mut all)?;
            Ok(all)
        })
        .await?;
        let count = all.len();
        bytes.append(&mut all);
        Ok(count)
    }

    /// Writes all of `bytes`, and waits until they are written.
    ///
    /// ```
    /// use blacklight::{Loop, fs::{self, TempFile}};
    ///
    /// let lp = Loop::new()?;
    /// lp.block_on(async {
    ///     let mut temporary = TempFile::new("write").await?;
    ///     temporary.file.write_all(&vec![7; 1 << 20]).await?;
    ///     assert_eq!(fs::metadata(temporary.path()).await?.len(), 1 << 20);
    ///     # Ok::<(), std::io::Error>(())
    /// })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub async fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let written = poll_fn(|context| Pin::new(&mut *self).poll_write(context, bytes));
            bytes = &bytes[written.await?..];
        }
        self.flush().await
    }

    /// Moves the file position, and returns it.
    ///
    /// ```
    /// use blacklight::{Loop, fs::TempFile};
    /// use std::io::SeekFrom;
    ///
    /// let lp = Loop::new()?;
    /// lp.block_on(async {
    ///     let mut file = TempFile::new("seek").await?.file;
    ///     file.write_all(b"black light").await?;
    ///     assert_eq!(file.seek(SeekFrom::End(-5)).await?, 6);
    ///     file.write_all(b"board").await?;
    ///     assert_eq!(file.seek(SeekFrom::Start(0)).await?, 0);
    ///     let mut bytes = Vec::new();
    ///     file.read_to_end(&mut bytes).await?;
    ///     assert_eq!(bytes, b"black board");
    ///     # Ok::<(), std::io::Error>(())
    /// })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub async fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        poll_fn(|context| Pin::new(&mut *self).poll_seek(context, to)).await
    }

    /// Reads at an offset, without moving the file position. Returns zero at the end.
    ///
    /// ```
    /// use blacklight::{Loop, fs::TempFile};
    ///
    /// let lp = Loop::new()?;
    /// lp.block_on(async {
    ///     let mut file = TempFile::new("at").await?.file;
    ///     file.write_all(b"black light").await?;
    ///     let mut word = [0; 8];
    ///     assert_eq!(file.read_at(&mut word, 6).await?, 5);
    ///     assert_eq!(&word[..5], b"light");
    ///     assert_eq!(file.read_at(&mut word, 100).await?, 0, "beyond the end");
    ///     # Ok::<(), std::io::Error>(())
    /// })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub async fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let (file, len) = (self.file.clone(), buf.len());
        let bytes = on_pool(move || {
            let mut bytes = vec![0; len];
            let count = file.read_at(&mut bytes, offset)?;
            bytes.truncate(count);
            Ok(bytes)
        })
        .await?;
        buf[..bytes.len()].copy_from_slice(&bytes);
        Ok(bytes.len())
    }

    /// Writes at an offset, without moving the file position.
    ///
    /// ```
    /// use blacklight::{Loop, fs::TempFile};
    ///
    /// let lp = Loop::new()?;
    /// lp.block_on(async {
    ///     let mut file = TempFile::new("at").await?.file;
    ///     file.write_all_at(b"light", 6).await?;
    ///     file.write_all_at(b"black ", 0).await?;
    ///     let mut all = Vec::new();
    ///     file.read_to_end(&mut all).await?;
    ///     assert_eq!(all, b"black light");
    ///     file.sync_data().await?;
    ///     # Ok::<(), std::io::Error>(())
    /// })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub async fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let (file, bytes) = (self.file.clone(), bytes.to_owned());
        on_pool(move || file.write_all_at(&bytes, offset)).await
    }

    /// Waits until contents and metadata are on disk.
    ///
    /// ```
    /// use blacklight::{Loop, fs::TempFile};
    ///
    /// let lp = Loop::new()?;
    /// lp.block_on(async {
    ///     let mut file = TempFile::new("sync").await?.file;
    ///     file.write_all(b"light").await?;
    ///     file.sync_data().await?; // The contents, and the length that they need.
    ///     file.sync_all().await // The times as well.
    /// })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub async fn sync_all(&mut self) -> io::Result<()> {
        self.with(fs::File::sync_all).await
    }

    /// Waits until the contents are on disk.
    ///
    /// ```
    /// use blacklight::{Loop, fs::TempFile};
    ///
    /// let lp = Loop::new()?;
    /// lp.block_on(async {
    ///     let mut file = TempFile::new("data").await?.file;
    ///     file.write_all(b"light").await?;
    ///     file.sync_data().await
    /// })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub async fn sync_data(&mut self) -> io::Result<()> {
        self.with(fs::File::sync_data).await
    }

    /// Truncates the file, or extends it with zeros.
    ///
    /// ```
    /// use blacklight::{Loop, fs::TempFile};
    ///
    /// let lp = Loop::new()?;
    /// lp.block_on(async {
    ///     let mut file = TempFile::new("len").await?.file;
    ///     file.set_len(1000).await?;
    ///     assert_eq!(file.metadata().await?.len(), 1000);
    ///     # Ok::<(), std::io::Error>(())
    /// })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub async fn set_len(&mut self, len: u64) -> io::Result<()> {
        self.with(move |file| file.set_len(len)).await
    }

    /// Returns the metadata of the file.
    ///
    /// ```
    /// use blacklight::{Loop, fs::File};
    ///
    /// let lp = Loop::new()?;
    /// lp.block_on(async {
    ///     let metadata = File::open("/proc/self/comm").await?.metadata().await?;
    ///     assert!(metadata.is_file());
    ///     # Ok::<(), std::io::Error>(())
    /// })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub async fn metadata(&mut self) -> io::Result<Metadata> {
        self.with(fs::File::metadata).await
    }

    /// Changes the permissions of the file.
    ///
    /// ```
    /// use blacklight::{Loop, fs::TempFile};
    /// use std::fs::Permissions;
    /// use std::os::unix::fs::PermissionsExt;
    ///
    /// let lp = Loop::new()?;
    /// lp.block_on(async {
    ///     let mut file = TempFile::new("mode").await?.file;
    ///     file.set_permissions(Permissions::from_mode(0o640)).await?;
    ///     assert_eq!(file.metadata().await?.permissions().mode() & 0o777, 0o640);
    ///     # Ok::<(), std::io::Error>(())
    /// })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub async fn set_permissions(&mut self, permissions: Permissions) -> io::Result<()> {
        self.with(move |file| file.set_permissions(permissions))
            .await
    }

    /// Sets the times of the file.
    ///
    /// ```
    /// use blacklight::{Loop, fs::TempFile};
    /// use std::{fs::FileTimes, time::UNIX_EPOCH};
    ///
    /// let lp = Loop::new()?;
    /// lp.block_on(async {
    ///     let mut file = TempFile::new("times").await?.file;
    ///     file.set_times(FileTimes::new().set_modified(UNIX_EPOCH)).await?;
    ///     assert_eq!(file.metadata().await?.modified()?, UNIX_EPOCH);
    ///     # Ok::<(), std::io::Error>(())
    /// })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub async fn set_times(&mut self, times: FileTimes) -> io::Result<()> {
        self.with(move |file| file.set_times(times)).await
    }
}

impl File {
    /// Reads at most `len` bytes.
    fn poll_some(&mut self, context: &mut Context<'_>, len: usize) -> Poll<io::Result<&[u8]>> {
        let was_reading = matches!(self.operation, Operation::Reading(_));
        ready!(self.poll_idle(context))?;
        if self.unread().is_empty() && !was_reading && len > 0 {
            let (file, len) = (self.file.clone(), len.min(CHUNK));
            self.operation = Operation::Reading(on_pool(move || {
                let mut bytes = vec![0; len];
                let count = (&*file).read(&mut bytes)?;
                bytes.truncate(count);
                Ok(bytes)
            }));
            ready!(self.poll_idle(context))?;
        }
        let begin = self.taken;
        self.taken += self.unread().len().min(len);
        Poll::Ready(Ok(&self.read[begin..self.taken]))
    }

    fn poll_write_some(
        &mut self,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_idle(context))?;
        let (back, file) = (self.forget_unread(), self.file.clone());
        let bytes = bytes[..bytes.len().min(CHUNK)].to_owned();
        let count = bytes.len();
        let write = move || {
            if back != 0 {
                (&*file).seek(SeekFrom::Current(back))?;
            }
            (&*file).write_all(&bytes)
        };
        self.operation = Operation::Writing(here()?.0.spawn_blocking(WorkKind::FastIo, write));
        Poll::Ready(Ok(count))
    }

    fn begin_to_seek(&mut self, to: SeekFrom) {
        let (back, file) = (self.forget_unread(), self.file.clone());
        let seeking = on_pool(move || {
            if back != 0 {
                (&*file).seek(SeekFrom::Current(back))?;
            }
            (&*file).seek(to)
        });
        self.operation = Operation::Seeking(to, seeking);
    }
}

impl AsyncRead for File {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buf: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let some = ready!(self.poll_some(context, buf.len()))?;
        buf[..some.len()].copy_from_slice(some);
        Poll::Ready(Ok(some.len()))
    }
}

impl AsyncWrite for File {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_some(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_idle(context)
    }

    fn poll_close(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_idle(context)
    }
}

impl AsyncSeek for File {
    fn poll_seek(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        to: SeekFrom,
    ) -> Poll<io::Result<u64>> {
        loop {
            if let Operation::Seeking(target, seeking) = &mut self.operation
                && *target == to
            {
                let sought = ready!(Pin::new(seeking).poll(context));
                self.operation = Operation::None;
                return Poll::Ready(sought);
            }
            ready!(self.poll_idle(context))?;
            self.begin_to_seek(to);
        }
    }
}

#[cfg(feature = "tokio")]
impl tokio::io::AsyncRead for File {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buf: &mut tokio::io::ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        buf.put_slice(ready!(self.poll_some(context, buf.remaining()))?);
        Poll::Ready(Ok(()))
    }
}

#[cfg(feature = "tokio")]
impl tokio::io::AsyncWrite for File {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_some(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_idle(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_idle(context)
    }
}

#[cfg(feature = "tokio")]
impl tokio::io::AsyncSeek for File {
    fn start_seek(mut self: Pin<&mut Self>, to: SeekFrom) -> io::Result<()> {
        if !matches!(self.operation, Operation::None) {
            return Err(io::Error::other("another operation is in progress"));
        }
        self.begin_to_seek(to);
        Ok(())
    }

    fn poll_complete(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<u64>> {
        if let Operation::Seeking(to, _) = &self.operation {
            let to = *to;
            return self.poll_seek(context, to);
        }
        // There is no seek of which to tell the position.
        self.poll_idle(context).map_ok(|()| 0)
    }
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("File").field(&self.file).finish()
    }
}
