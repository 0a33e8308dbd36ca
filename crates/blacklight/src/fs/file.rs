//! An open file.
//!
//! Bytes go to and come from workers in buffers of their own, so that a call may be dropped at
//! any time. What is under way belongs to the file and not to the call:
//!
//! - A read that nobody waits for any more is what the next read returns.
//! - A write counts as done when it is handed to a worker, and is done even if the file is
//!   dropped. If it fails, the next call says so; whoever wants to know calls `flush`.
//! - The system's position is ahead of ours by what has been read and not been taken. A write or
//!   a seek goes back first.

use super::on_pool;
use crate::current::current;
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

/// How much a worker reads or writes at once at the most.
const CHUNK: usize = 64 * 1024;

/// What a worker does with the file.
enum Under {
    Nothing,
    Reading(OnPool<Vec<u8>>),
    Writing(Blocking<io::Result<()>>),
    Seeking(SeekFrom, OnPool<u64>),
}

/// An open file, as [`std::fs::File`], read and written by the thread pool.
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
///     assert_eq!(file.read_to_end().await?, b"light");
///     let mut word = [0; 5];
///     assert_eq!(file.read_at(&mut word, 0).await?, 5);
///     assert_eq!(&word, b"black");
///     # Ok::<(), std::io::Error>(())
/// })?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct File {
    file: Arc<fs::File>,
    under: Under,
    /// What has been read, of which that before `taken` has been taken.
    read: Vec<u8>,
    taken: usize,
}

impl File {
    /// Opens a file to read it.
    pub async fn open(path: impl AsRef<Path>) -> io::Result<File> {
        File::open_with(path, OpenOptions::new().read(true)).await
    }

    /// Makes an empty file to write to it, in place of the one that is there.
    pub async fn create(path: impl AsRef<Path>) -> io::Result<File> {
        let mut options = OpenOptions::new();
        File::open_with(path, options.write(true).create(true).truncate(true)).await
    }

    /// Opens a file in any way.
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

    /// Takes over a file that is open already.
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
            under: Under::Nothing,
            read: Vec::new(),
            taken: 0,
        }
    }

    /// The file, after all that was written to it.
    pub async fn into_std(mut self) -> io::Result<fs::File> {
        self.flush().await?;
        let file = self.file.clone();
        drop(self);
        // A worker that reads for a call that was dropped has it, too.
        Arc::try_unwrap(file).or_else(|file| file.try_clone())
    }

    fn unread(&self) -> &[u8] {
        &self.read[self.taken..]
    }

    /// Forgets what was read and not taken; by how much to go back for that.
    fn forget_unread(&mut self) -> i64 {
        let ahead = self.unread().len();
        self.read.clear();
        self.taken = 0;
        -(ahead as i64)
    }

    /// Waits for what is under way. What is read is kept.
    fn poll_idle(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = match &mut self.under {
            Under::Nothing => return Poll::Ready(Ok(())),
            Under::Reading(reading) => ready!(Pin::new(reading).poll(context)).map(|bytes| {
                self.read = bytes;
                self.taken = 0;
            }),
            Under::Writing(writing) => {
                let result = ready!(Pin::new(writing).poll(context));
                result.unwrap_or_else(|error| Err(error.into()))
            }
            Under::Seeking(_, seeking) => ready!(Pin::new(seeking).poll(context)).map(drop),
        };
        self.under = Under::Nothing;
        Poll::Ready(result)
    }

    /// Does something with the file itself, after what is under way.
    async fn with<T: Send + 'static>(
        &mut self,
        job: impl FnOnce(&fs::File) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        self.flush().await?;
        let file = self.file.clone();
        on_pool(move || job(&file)).await
    }

    /// Waits until all that was written is with the system, and says if it could not be.
    ///
    /// ```
    /// use blacklight::{Loop, fs::{self, TempFile}};
    /// use futures_lite::AsyncWriteExt;
    ///
    /// let lp = Loop::new()?;
    /// lp.block_on(async {
    ///     let mut temporary = TempFile::new("flush").await?;
    ///     // A single write is done by a worker, some time.
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

    /// Reads what there is, up to the length of the buffer. Zero is the end.
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
    pub async fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        poll_fn(|context| Pin::new(&mut *self).poll_read(context, buffer)).await
    }

    /// Reads everything up to the end. What this has read is lost if it is dropped.
    pub async fn read_to_end(&mut self) -> io::Result<Vec<u8>> {
        self.flush().await?;
        let mut bytes = self.unread().to_owned();
        self.forget_unread();
        let file = self.file.clone();
        on_pool(move || {
            (&*file).read_to_end(&mut bytes)?;
            Ok(bytes)
        })
        .await
    }

    /// Writes all of this, and waits until it is written.
    pub async fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let written = poll_fn(|context| Pin::new(&mut *self).poll_write(context, bytes));
            bytes = &bytes[written.await?..];
        }
        self.flush().await
    }

    /// Goes to another place in the file; where that is from its start.
    pub async fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        poll_fn(|context| Pin::new(&mut *self).poll_seek(context, to)).await
    }

    /// Reads at a place of the file, wherever else it is read. Zero is the end.
    pub async fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let (file, len) = (self.file.clone(), buffer.len());
        let bytes = on_pool(move || {
            let mut bytes = vec![0; len];
            let count = file.read_at(&mut bytes, offset)?;
            bytes.truncate(count);
            Ok(bytes)
        })
        .await?;
        buffer[..bytes.len()].copy_from_slice(&bytes);
        Ok(bytes.len())
    }

    /// Writes at a place of the file, wherever else it is written to.
    ///
    /// ```
    /// use blacklight::{Loop, fs::TempFile};
    ///
    /// let lp = Loop::new()?;
    /// lp.block_on(async {
    ///     let mut file = TempFile::new("at").await?.file;
    ///     file.write_all_at(b"light", 6).await?;
    ///     file.write_all_at(b"black ", 0).await?;
    ///     assert_eq!(file.read_to_end().await?, b"black light");
    ///     file.sync_data().await?;
    ///     # Ok::<(), std::io::Error>(())
    /// })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub async fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let (file, bytes) = (self.file.clone(), bytes.to_owned());
        on_pool(move || file.write_all_at(&bytes, offset)).await
    }

    /// Waits until everything about the file is on its disk.
    pub async fn sync_all(&mut self) -> io::Result<()> {
        self.with(fs::File::sync_all).await
    }

    /// Waits until the content of the file is on its disk.
    pub async fn sync_data(&mut self) -> io::Result<()> {
        self.with(fs::File::sync_data).await
    }

    /// Cuts the file off, or fills it up with zeros.
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

    /// What is known of the file.
    pub async fn metadata(&mut self) -> io::Result<Metadata> {
        self.with(fs::File::metadata).await
    }

    /// Changes who may do what with the file.
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

    /// Changes when the file was used.
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

impl AsyncRead for File {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let was_reading = matches!(self.under, Under::Reading(_));
        ready!(self.poll_idle(context))?;
        if self.unread().is_empty() && !was_reading && !buffer.is_empty() {
            let (file, len) = (self.file.clone(), buffer.len().min(CHUNK));
            self.under = Under::Reading(on_pool(move || {
                let mut bytes = vec![0; len];
                let count = (&*file).read(&mut bytes)?;
                bytes.truncate(count);
                Ok(bytes)
            }));
            ready!(self.poll_idle(context))?;
        }
        let count = self.unread().len().min(buffer.len());
        buffer[..count].copy_from_slice(&self.unread()[..count]);
        self.taken += count;
        Poll::Ready(Ok(count))
    }
}

impl AsyncWrite for File {
    fn poll_write(
        mut self: Pin<&mut Self>,
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
        self.under = Under::Writing(current().0.spawn_blocking(WorkKind::FastIo, write));
        Poll::Ready(Ok(count))
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
            if let Under::Seeking(target, seeking) = &mut self.under
                && *target == to
            {
                let sought = ready!(Pin::new(seeking).poll(context));
                self.under = Under::Nothing;
                return Poll::Ready(sought);
            }
            ready!(self.poll_idle(context))?;
            let (back, file) = (self.forget_unread(), self.file.clone());
            let seeking = on_pool(move || {
                if back != 0 {
                    (&*file).seek(SeekFrom::Current(back))?;
                }
                (&*file).seek(to)
            });
            self.under = Under::Seeking(to, seeking);
        }
    }
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("File").field(&self.file).finish()
    }
}
