//! Changes of files and directories, as the kernel reports them.

use crate::code::Code;
use crate::current::here;
use crate::event_queue::EventQueue;
use crate::handle::{Handle, Single, common_methods, detach_method};
use crate::loop_::LoopHandle;
use blacklight_engine::{Change, Errno, Event};
use std::cmp::Ordering;
use std::ffi::{CString, OsStr};
use std::fmt;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::task::{Context, Poll};

/// How many changes a queue holds before it reports an overflow.
const LIMIT: usize = 16 * 1024;

/// The kind of a change.
///
/// ```
/// use blacklight::{ChangeKind, FsChanges, Loop, fs};
///
/// let lp = Loop::new()?;
/// lp.block_on(async {
///     let file = fs::TempFile::new("watched").await?;
///     let mut changes = FsChanges::new(file.path())?;
///     fs::write(file.path(), "light").await?;
///     assert_eq!(changes.recv().await?.kind, ChangeKind::Changed);
///     # Ok::<(), std::io::Error>(())
/// })?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum ChangeKind {
    /// The file was created, removed or renamed.
    Renamed,
    /// The contents or attributes have changed.
    Changed,
    /// Changes were lost: scan the directory again. Has no path.
    Overflow,
}

/// A change of a watched file or directory.
///
/// ```
/// use blacklight::{ChangeKind, FsChange, FsChanges, Loop, fs};
/// use std::path::Path;
///
/// let lp = Loop::new()?;
/// let directory = fs::TempDir::new_blocking("watched")?;
/// let mut changes = FsChanges::new(directory.path())?;
/// std::fs::create_dir(directory.path().join("new"))?;
/// let FsChange { path, kind, .. } = lp.block_on(changes.recv())?;
/// assert_eq!((path.as_deref(), kind), (Some(Path::new("new")), ChangeKind::Renamed));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct FsChange {
    /// The path of the entry relative to the watched directory, or the file name of a watched
    /// file.
    pub path: Option<PathBuf>,
    /// The kind of the change.
    pub kind: ChangeKind,
}

impl FsChange {
    /// Converts the engine's event. An error with a path concerns a subdirectory of the watched
    /// directory.
    fn of(path: Option<PathBuf>, change: Result<Change, Errno>) -> io::Result<FsChange> {
        let kind = match change {
            Ok(Change::ANYTHING) if path.is_none() => ChangeKind::Overflow,
            Ok(Change::CHANGED | Change::FOLDER_CHANGED) => ChangeKind::Changed,
            Ok(_) => ChangeKind::Renamed,
            Err(error) => {
                let error = io::Error::from(error);
                return Err(match path {
                    Some(path) => {
                        io::Error::new(error.kind(), format!("{}: {error}", path.display()))
                    }
                    None => error,
                });
            }
        };
        Ok(FsChange { path, kind })
    }
}

/// Calls back when a file or the entries of a directory change.
///
/// ```
/// use blacklight::{ChangeKind, FsEvent, Loop, Mode, fs};
///
/// let directory = fs::TempDir::new_blocking("watched")?;
/// let lp = Loop::new()?;
/// let watch = FsEvent::new()?;
/// watch.start(directory.path(), |_, watch, change| {
///     let change = change.unwrap();
///     assert_eq!(change.kind, ChangeKind::Renamed);
///     assert_eq!(change.path.unwrap().as_os_str(), "new");
///     watch.stop();
/// })?;
/// std::fs::write(directory.path().join("new"), "light")?;
/// lp.run(Mode::Default);
/// # Ok::<(), std::io::Error>(())
/// ```
#[must_use = "a handle closes when it is dropped"]
pub struct FsEvent {
    handle: Rc<Handle<Single>>,
}

common_methods!(FsEvent);
detach_method!(FsEvent);

impl FsEvent {
    /// Creates the handle, stopped.
    ///
    /// ```
    /// use blacklight::{FsEvent, Loop};
    ///
    /// let lp = Loop::new()?;
    /// let watch = FsEvent::new()?;
    /// assert!(!watch.is_active(), "it has not started");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn new() -> io::Result<FsEvent> {
        let lp = &here()?;
        let (handle, ()) =
            Handle::single(lp, |engine, token| Ok((engine.fs_event_init(token)?, ())))?;
        Ok(FsEvent { handle })
    }

    /// Watches a file or the entries of a directory. After an error is passed to the callback,
    /// watching goes on where it can.
    ///
    /// # Errors
    ///
    /// If the path does not exist, or the handle is started already.
    ///
    /// ```
    /// use blacklight::{ChangeKind, FsEvent, Loop, Mode, fs};
    ///
    /// let directory = fs::TempDir::new_blocking("watched")?;
    /// let path = directory.path().join("file");
    /// std::fs::write(&path, "black")?;
    /// let lp = Loop::new()?;
    /// let watch = FsEvent::new()?;
    /// watch.start(&path, |_, watch, change| {
    ///     assert_eq!(change.unwrap().kind, ChangeKind::Changed);
    ///     watch.stop();
    /// })?;
    /// assert!(watch.start(&path, |_, _, _| ()).is_err(), "it is started");
    /// std::fs::write(&path, "light")?;
    /// lp.run(Mode::Default);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn start(
        &self,
        path: impl AsRef<Path>,
        callback: impl FnMut(&LoopHandle, &FsEvent, io::Result<FsChange>) + 'static,
    ) -> io::Result<()> {
        self.watch(path.as_ref(), false, callback)
    }

    /// Watches a directory and everything below it, now and later. Follows symbolic links in
    /// `path` itself, but not below the directory.
    ///
    /// ```
    /// use blacklight::{FsEvent, Loop, Mode, fs};
    ///
    /// let directory = fs::TempDir::new_blocking("watched")?;
    /// std::fs::create_dir(directory.path().join("below"))?;
    /// let lp = Loop::new()?;
    /// let watch = FsEvent::new()?;
    /// watch.start_recursive(directory.path(), |_, watch, change| {
    ///     assert_eq!(change.unwrap().path.unwrap().as_os_str(), "below/new");
    ///     watch.stop();
    /// })?;
    /// std::fs::create_dir(directory.path().join("below/new"))?;
    /// lp.run(Mode::Default);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn start_recursive(
        &self,
        path: impl AsRef<Path>,
        callback: impl FnMut(&LoopHandle, &FsEvent, io::Result<FsChange>) + 'static,
    ) -> io::Result<()> {
        self.watch(path.as_ref(), true, callback)
    }

    fn watch(
        &self,
        path: &Path,
        recursive: bool,
        mut callback: impl FnMut(&LoopHandle, &FsEvent, io::Result<FsChange>) + 'static,
    ) -> io::Result<()> {
        let path = CString::new(path.as_os_str().as_bytes())?;
        self.handle
            .live_engine()?
            .fs_event_start(self.handle.key, &path, recursive)?;
        let code = Code::of(&callback);
        self.handle.set_callback(code, move |lp, handle, event| {
            if let Event::FsEvent(_, change) = event {
                let name = lp
                    .engine()
                    .fs_event_name()
                    .map(OsStr::from_bytes)
                    .map(PathBuf::from);
                let handle = handle.clone();
                callback(lp, &FsEvent { handle }, FsChange::of(name, change));
            }
        });
        Ok(())
    }

    /// Stops watching. Pending changes are discarded.
    ///
    /// ```
    /// use blacklight::{FsEvent, Loop, Mode};
    ///
    /// let lp = Loop::new()?;
    /// let watch = FsEvent::new()?;
    /// watch.start("/", |_, _, _| unreachable!("it was stopped"))?;
    /// watch.stop();
    /// assert!(!lp.run(Mode::Default));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn stop(&self) {
        // A closed handle has stopped.
        let _ = self.handle.engine().fs_event_stop(self.handle.key);
    }
}

/// A stream of changes to await, watched from its creation on. It does not keep the loop running;
/// a task that awaits it does.
///
/// Changes are queued until they are received. When the queue is full, further changes are
/// reported as one [overflow](ChangeKind::Overflow).
///
/// ```
/// use blacklight::{FsChanges, Loop, fs};
///
/// let directory = fs::TempDir::new_blocking("watched")?;
/// let lp = Loop::new()?;
/// let mut changes = FsChanges::new(directory.path())?;
/// lp.block_on(async {
///     fs::write(directory.path().join("new"), "light").await?;
///     let change = changes.recv().await?;
///     assert_eq!(change.path.unwrap().as_os_str(), "new");
///     # Ok::<(), std::io::Error>(())
/// })?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[must_use = "a handle closes when it is dropped"]
pub struct FsChanges {
    handle: FsEvent,
    changes: Rc<EventQueue<io::Result<FsChange>>>,
}

impl FsChanges {
    /// Watches like [`FsEvent::start`].
    ///
    /// ```
    /// use blacklight::fs::TempDir;
    /// use blacklight::{FsChanges, Loop};
    ///
    /// let lp = Loop::new()?;
    /// let directory = TempDir::new_blocking("changes")?;
    /// let mut changes = FsChanges::new(directory.path())?;
    /// std::fs::write(directory.path().join("new"), "light")?;
    /// let change = lp.block_on(changes.recv())?;
    /// assert_eq!(change.path.unwrap().as_os_str(), "new");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn new(path: impl AsRef<Path>) -> io::Result<FsChanges> {
        FsChanges::watch(path.as_ref(), false)
    }

    /// Watches like [`FsEvent::start_recursive`].
    ///
    /// ```
    /// use blacklight::{FsChanges, Loop, fs};
    ///
    /// let directory = fs::TempDir::new_blocking("watched")?;
    /// std::fs::create_dir(directory.path().join("below"))?;
    /// let lp = Loop::new()?;
    /// let mut changes = FsChanges::recursive(directory.path())?;
    /// std::fs::create_dir(directory.path().join("below/new"))?;
    /// let change = lp.block_on(changes.recv())?;
    /// assert_eq!(change.path.unwrap().as_os_str(), "below/new");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn recursive(path: impl AsRef<Path>) -> io::Result<FsChanges> {
        FsChanges::watch(path.as_ref(), true)
    }

    fn watch(path: &Path, recursive: bool) -> io::Result<FsChanges> {
        let handle = FsEvent::new()?;
        let changes = Rc::new(EventQueue::new());
        let queue = changes.clone();
        handle.watch(path, recursive, move |_, _, change| push(&queue, change))?;
        handle.unref();
        Ok(FsChanges { handle, changes })
    }

    /// Waits for the next change.
    ///
    /// ```
    /// use blacklight::{ChangeKind, FsChanges, Loop, fs};
    ///
    /// let directory = fs::TempDir::new_blocking("watched")?;
    /// let lp = Loop::new()?;
    /// let mut changes = FsChanges::new(directory.path())?;
    /// lp.block_on(async {
    ///     let (old, new) = (directory.path().join("old"), directory.path().join("new"));
    ///     fs::write(&old, "light").await?;
    ///     fs::rename(&old, &new).await?;
    ///     loop {
    ///         let change = changes.recv().await?;
    ///         if change.kind == ChangeKind::Renamed && change.path.unwrap().as_os_str() == "new" {
    ///             return Ok(());
    ///         }
    ///     }
    ///     # #[allow(unreachable_code)]
    ///     # Ok::<(), std::io::Error>(())
    /// })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub async fn recv(&mut self) -> io::Result<FsChange> {
        self.changes.pop().await
    }

    /// Polls for the next change; see [`recv`](FsChanges::recv).
    ///
    /// ```
    /// use blacklight::{FsChanges, Loop, fs};
    /// use std::future::poll_fn;
    ///
    /// let directory = fs::TempDir::new_blocking("watched")?;
    /// let lp = Loop::new()?;
    /// let mut changes = FsChanges::new(directory.path())?;
    /// std::fs::create_dir(directory.path().join("new"))?;
    /// let change = lp.block_on(poll_fn(|context| changes.poll_recv(context)))?;
    /// assert_eq!(change.path.unwrap().as_os_str(), "new");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn poll_recv(&mut self, context: &mut Context<'_>) -> Poll<io::Result<FsChange>> {
        self.changes.poll_pop(context)
    }
}

/// Queues a change, or an overflow when the queue is full.
fn push(queue: &EventQueue<io::Result<FsChange>>, change: io::Result<FsChange>) {
    let overflow = FsChange {
        path: None,
        kind: ChangeKind::Overflow,
    };
    queue.update(|waiting| match waiting.len().cmp(&LIMIT) {
        Ordering::Less => waiting.push_back(change),
        Ordering::Equal => waiting.push_back(Ok(overflow)),
        Ordering::Greater => {}
    });
}

impl fmt::Debug for FsChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FsChanges")
            .field("handle", &self.handle)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Waker;

    fn changed(name: &str) -> FsChange {
        FsChange {
            path: Some(name.into()),
            kind: ChangeKind::Changed,
        }
    }

    #[test]
    fn the_engine_says_what_has_happened() {
        let of = |name: Option<&str>, change| FsChange::of(name.map(PathBuf::from), change);
        let kind = |name, change| of(name, Ok(change)).unwrap().kind;
        assert_eq!(kind(Some("a"), Change::CHANGED), ChangeKind::Changed);
        assert_eq!(kind(Some("a"), Change::FOLDER_CHANGED), ChangeKind::Changed);
        assert_eq!(kind(Some("a"), Change::RENAMED), ChangeKind::Renamed);
        assert_eq!(kind(None, Change::RENAMED), ChangeKind::Renamed);
        assert_eq!(kind(None, Change::ANYTHING), ChangeKind::Overflow);
        let error = of(Some("a/b"), Err(Errno::EACCES)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        assert!(error.to_string().starts_with("a/b: "), "{error}");
        let error = of(None, Err(Errno::ENOSPC)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }

    #[test]
    fn too_many_that_wait_are_an_overflow() {
        let queue = EventQueue::new();
        for _ in 0..LIMIT + 5 {
            push(&queue, Ok(changed("a")));
        }
        let context = Context::from_waker(Waker::noop());
        for _ in 0..LIMIT {
            assert!(
                matches!(queue.poll_pop(&context), Poll::Ready(Ok(change)) if change == changed("a"))
            );
        }
        let last = queue.poll_pop(&context);
        assert!(matches!(last, Poll::Ready(Ok(change)) if change.kind == ChangeKind::Overflow));
        assert!(queue.poll_pop(&context).is_pending());
        push(&queue, Ok(changed("b")));
        assert!(
            matches!(queue.poll_pop(&context), Poll::Ready(Ok(change)) if change == changed("b"))
        );
    }
}
