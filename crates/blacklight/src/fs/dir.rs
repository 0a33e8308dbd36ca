//! The entries of a directory.

use super::on_pool;
use crate::work::OnPool;
use std::collections::VecDeque;
use std::fmt;
use std::fs::{self, DirEntry};
use std::future::poll_fn;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// How many entries one job reads.
const BATCH: usize = 64;

/// The entries that a job has read, and the rest of the directory.
type Batch = (VecDeque<io::Result<DirEntry>>, Option<fs::ReadDir>);

/// Opens a directory to read its entries, which come in no particular order.
///
/// ```
/// use blacklight::{Loop, fs};
///
/// let lp = Loop::new()?;
/// lp.block_on(async {
///     let mut entries = fs::read_dir("/proc/self").await?;
///     let mut names = Vec::new();
///     while let Some(entry) = entries.next_entry().await? {
///         names.push(entry.file_name());
///     }
///     assert!(names.iter().any(|name| name == "stat"));
///     # Ok::<(), std::io::Error>(())
/// })?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub async fn read_dir(path: impl AsRef<Path>) -> io::Result<ReadDir> {
    let path = path.as_ref().to_owned();
    let (entries, rest) = on_pool(move || Ok(batch(fs::read_dir(path)?))).await?;
    Ok(ReadDir {
        entries,
        rest,
        reading: None,
    })
}

fn batch(mut rest: fs::ReadDir) -> Batch {
    let entries: VecDeque<_> = rest.by_ref().take(BATCH).collect();
    let is_over = entries.len() < BATCH;
    (entries, (!is_over).then_some(rest))
}

/// The entries of a directory; see [`read_dir`].
///
/// ```
/// use blacklight::{Loop, fs};
/// use std::future::poll_fn;
///
/// let lp = Loop::new()?;
/// lp.block_on(async {
///     let mut entries: fs::ReadDir = fs::read_dir("/proc/self/task").await?;
///     assert!(entries.next_entry().await?.is_some(), "this very thread");
///     while poll_fn(|context| entries.poll_next_entry(context)).await?.is_some() {}
///     # Ok::<(), std::io::Error>(())
/// })?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct ReadDir {
    entries: VecDeque<io::Result<DirEntry>>,
    rest: Option<fs::ReadDir>,
    /// Kept between calls, so that dropping the future of a call loses no entry.
    reading: Option<OnPool<Batch>>,
}

impl ReadDir {
    /// Returns the next entry, or `None` after the last. Cancel-safe: dropping the future loses
    /// no entry.
    ///
    /// ```
    /// use blacklight::{Loop, fs};
    ///
    /// let lp = Loop::new()?;
    /// lp.block_on(async {
    ///     let directory = fs::TempDir::new("entries").await?;
    ///     for name in ["one", "two"] {
    ///         fs::write(directory.path().join(name), name).await?;
    ///     }
    ///     let mut entries = fs::read_dir(directory.path()).await?;
    ///     let mut names = Vec::new();
    ///     while let Some(entry) = entries.next_entry().await? {
    ///         names.push(entry.file_name());
    ///     }
    ///     names.sort();
    ///     assert_eq!(names, ["one", "two"]);
    ///     # Ok::<(), std::io::Error>(())
    /// })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub async fn next_entry(&mut self) -> io::Result<Option<DirEntry>> {
        poll_fn(|context| self.poll_next_entry(context)).await
    }

    /// Polls for the next entry; see [`next_entry`](ReadDir::next_entry).
    ///
    /// ```
    /// use blacklight::{Loop, fs};
    /// use std::future::poll_fn;
    ///
    /// let lp = Loop::new()?;
    /// lp.block_on(async {
    ///     let directory = fs::TempDir::new("entries").await?;
    ///     let mut entries = fs::read_dir(directory.path()).await?;
    ///     let first = poll_fn(|context| entries.poll_next_entry(context)).await?;
    ///     assert!(first.is_none(), "it is empty");
    ///     # Ok::<(), std::io::Error>(())
    /// })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn poll_next_entry(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<Option<DirEntry>>> {
        loop {
            if let Some(entry) = self.entries.pop_front() {
                return Poll::Ready(entry.map(Some));
            }
            if let Some(rest) = self.rest.take() {
                self.reading = Some(on_pool(move || Ok(batch(rest))));
            }
            let Some(reading) = &mut self.reading else {
                return Poll::Ready(Ok(None));
            };
            let read = ready!(Pin::new(reading).poll(context));
            self.reading = None;
            (self.entries, self.rest) = read?;
        }
    }
}

impl fmt::Debug for ReadDir {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadDir").finish_non_exhaustive()
    }
}
