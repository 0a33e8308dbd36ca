//! Watching a file by calling `stat` at intervals.
//!
//! The engine's handle is a repeating timer. Each time it fires, it submits a `stat` to the
//! thread pool, unless one is in progress. The result is compared with the previous one.
//!
//! The first result is reported only if it is an error. Later, a result is reported if its
//! metadata differs, if it is an error that differs from the previous result, or if it follows an
//! error. The last known metadata is kept through errors.

use crate::code::Code;
use crate::current::here;
use crate::event_queue::EventQueue;
use crate::handle::{Handle, Slot, common_methods};
use crate::loop_::{Inner, LoopHandle};
use crate::table::Source;
use crate::work::Work;
use blacklight_engine::{Event, WorkKind};
use std::cell::{Cell, OnceCell, RefCell};
use std::fmt;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// A change that [`FsPoll`] has found.
///
/// ```
/// use blacklight::{Loop, StatChange, StatChanges};
/// use std::time::Duration;
///
/// let lp = Loop::new()?;
/// let mut changes = StatChanges::new("/nowhere", Duration::from_secs(60))?;
/// let StatChange { previous, current, .. } = lp.block_on(changes.recv());
/// assert!(previous.is_none() && current.is_err());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct StatChange {
    /// The last known metadata, or `None` if the file has never been found.
    pub previous: Option<Metadata>,
    /// The metadata now, or the error of `stat`.
    pub current: io::Result<Metadata>,
}

/// The last result of `stat`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    None,
    /// The metadata is in `known`.
    File,
    Error(Option<i32>, io::ErrorKind),
}

type Callback = dyn FnMut(&LoopHandle, &FsPoll, StatChange);

/// The loop's part of a handle.
struct Watch {
    callback: Slot<Callback>,
    handle: OnceCell<Weak<Handle<Watch>>>,
    /// Set by `detach`, so that the loop owns the handle.
    detached: Cell<Option<Rc<Handle<Watch>>>>,
    path: RefCell<Arc<Path>>,
    last: Cell<Outcome>,
    known: RefCell<Option<Metadata>>,
    /// The `stat` in progress.
    in_progress: RefCell<Option<Work>>,
    /// Counts starts and stops, to ignore the result of a `stat` from before.
    starts: Cell<u64>,
}

impl Watch {
    /// Submits a `stat` of the file.
    fn submit_stat(self: &Rc<Self>, inner: &Rc<Inner>, code: Code) -> io::Result<()> {
        let path = self.path.borrow().clone();
        let (watch, start) = (Rc::downgrade(self), self.starts.get());
        let job = move || fs::metadata(&path);
        let work = inner.submit(WorkKind::FastIo, job, code, move |lp, outcome| {
            if let Some(watch) = watch.upgrade()
                && watch.starts.get() == start
            {
                drop(watch.in_progress.take());
                watch.complete(lp, outcome.unwrap_or_else(|error| Err(error.into())));
            }
        })?;
        *self.in_progress.borrow_mut() = Some(work);
        Ok(())
    }

    fn complete(&self, lp: &LoopHandle, current: io::Result<Metadata>) {
        let outcome = match &current {
            Ok(_) => Outcome::File,
            Err(error) => Outcome::Error(error.raw_os_error(), error.kind()),
        };
        let previous = match &current {
            Ok(now) => self.known.replace(Some(now.clone())),
            Err(_) => self.known.borrow().clone(),
        };
        let is_change = match (self.last.replace(outcome), &previous, &current) {
            (before, _, Err(_)) => before != outcome,
            (Outcome::None, ..) => false,
            (Outcome::Error(..), ..) => true,
            (Outcome::File, Some(before), Ok(now)) => differs(before, now),
            (Outcome::File, None, Ok(_)) => true,
        };
        let handle = self.handle.get().and_then(Weak::upgrade);
        if let (true, Some(handle)) = (is_change, handle) {
            let change = StatChange { previous, current };
            self.callback
                .call(|callback| callback(lp, &FsPoll { handle }, change));
        }
    }

    /// Cancels the `stat` in progress, or ignores its result.
    fn cancel(&self) {
        self.starts.set(self.starts.get() + 1);
        if let Some(work) = self.in_progress.take() {
            // Has no effect if a thread has started it.
            work.cancel();
        }
    }
}

/// Whether the file has changed. Ignores the access time, since reading is not a change, the
/// number of blocks, which the kernel may change on its own, and fields that cannot change
/// without the change time.
fn differs(before: &Metadata, now: &Metadata) -> bool {
    let what = |stat: &Metadata| {
        (
            [
                stat.mtime(),
                stat.mtime_nsec(),
                stat.ctime(),
                stat.ctime_nsec(),
            ],
            stat.created().ok(),
            [stat.dev(), stat.ino(), stat.size()],
            [stat.mode(), stat.uid(), stat.gid()],
        )
    };
    what(before) != what(now)
}

impl Source for Watch {
    fn event(&self, _: &LoopHandle, _: Event) {
        if let Some(handle) = self.handle.get().and_then(Weak::upgrade)
            && self.in_progress.borrow().is_none()
        {
            // If this fails for lack of memory, the next interval tries again.
            let _ = handle
                .state
                .submit_stat(&handle.inner, self.callback.code());
        }
    }

    fn code(&self, _: Option<&Event>) -> Code {
        self.callback.code()
    }

    fn clear(&self) {
        self.cancel();
        self.callback.clear();
        drop(self.detached.take());
    }
}

/// Calls back when a file changes, by calling `stat` at intervals. Use it where the kernel
/// reports no changes, as on network file systems, and for files that do not exist yet; otherwise
/// prefer [`FsEvent`](crate::FsEvent).
///
/// ```
/// use blacklight::{FsPoll, Loop, Mode, fs};
/// use std::{io::ErrorKind, time::Duration};
///
/// let directory = fs::TempDir::new_blocking("polled")?;
/// let path = directory.path().join("file");
/// let lp = Loop::new()?;
/// let poll = FsPoll::new()?;
/// poll.start(path.clone(), Duration::from_millis(1), move |_, poll, change| match change.current {
///     Err(error) => {
///         assert_eq!(error.kind(), ErrorKind::NotFound);
///         std::fs::write(&path, "light").unwrap();
///     }
///     Ok(now) => {
///         assert!(now.is_file() && change.previous.is_none());
///         poll.stop();
///     }
/// })?;
/// lp.run(Mode::Default);
/// # Ok::<(), std::io::Error>(())
/// ```
#[must_use = "a handle closes when it is dropped"]
pub struct FsPoll {
    handle: Rc<Handle<Watch>>,
}

common_methods!(FsPoll);

impl FsPoll {
    /// Creates the handle, stopped.
    ///
    /// ```
    /// use blacklight::{FsPoll, Loop};
    ///
    /// let lp = Loop::new()?;
    /// let poll = FsPoll::new()?;
    /// assert!(!poll.is_active(), "it has not started");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn new() -> io::Result<FsPoll> {
        let lp = &here()?;
        let watch = Rc::new(Watch {
            callback: Slot::new(),
            handle: OnceCell::new(),
            detached: Cell::new(None),
            path: RefCell::new(Arc::from(PathBuf::new())),
            last: Cell::new(Outcome::None),
            known: RefCell::default(),
            in_progress: RefCell::default(),
            starts: Cell::new(0),
        });
        let (handle, ()) = lp.attach(watch, |engine, token| Ok((engine.timer_init(token)?, ())))?;
        let handle = Rc::new(handle);
        let _ = handle.state.handle.set(Rc::downgrade(&handle));
        Ok(FsPoll { handle })
    }

    /// Watches a file by calling `stat` now and then every `interval`, which is at least one
    /// millisecond. Replaces an earlier file and callback.
    ///
    /// ```
    /// use blacklight::{FsPoll, Loop, Mode, fs};
    /// use std::time::Duration;
    ///
    /// let directory = fs::TempDir::new_blocking("polled")?;
    /// let path = directory.path().join("file");
    /// std::fs::write(&path, "black")?;
    /// let lp = Loop::new()?;
    /// let poll = FsPoll::new()?;
    /// let longer = path.clone();
    /// poll.start(&path, Duration::from_millis(1), move |_, poll, change| {
    ///     let (before, now) = (change.previous.unwrap(), change.current.unwrap());
    ///     assert_eq!((before.len(), now.len()), (5, 11));
    ///     poll.stop();
    /// })?;
    /// // A change after the first look at the file.
    /// let timer = blacklight::Timer::new()?;
    /// timer.start(Duration::from_millis(20), move |_, _| {
    ///     std::fs::write(&longer, "black light").unwrap();
    /// })?;
    /// lp.run(Mode::Default);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn start(
        &self,
        path: impl AsRef<Path>,
        interval: Duration,
        callback: impl FnMut(&LoopHandle, &FsPoll, StatChange) + 'static,
    ) -> io::Result<()> {
        self.handle.check_open()?;
        self.stop();
        let Handle {
            inner, key, state, ..
        } = &*self.handle;
        *state.path.borrow_mut() = Arc::from(path.as_ref());
        state.last.set(Outcome::None);
        state.known.replace(None);
        let code = Code::of(&callback);
        state.submit_stat(inner, code)?;
        let interval_ms = u64::try_from(interval.as_millis())
            .unwrap_or(u64::MAX)
            .max(1);
        let started = inner.engine().timer_start(*key, interval_ms, interval_ms);
        started.inspect_err(|_| state.cancel())?;
        state.callback.set(Box::new(callback), code);
        Ok(())
    }

    /// Stops watching. The result of a `stat` in progress is ignored.
    ///
    /// ```
    /// use blacklight::{FsPoll, Loop, Mode};
    /// use std::time::Duration;
    ///
    /// let lp = Loop::new()?;
    /// let poll = FsPoll::new()?;
    /// poll.start("/nowhere", Duration::from_millis(1), |_, poll, change| {
    ///     assert!(change.current.is_err());
    ///     poll.stop();
    /// })?;
    /// assert!(!lp.run(Mode::Default));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn stop(&self) {
        self.handle.state.cancel();
        // A closed handle has stopped.
        let _ = self.handle.engine().timer_stop(self.handle.key);
    }

    /// Gives the handle to the loop, which owns it until it is closed or the loop is gone.
    ///
    /// ```
    /// use blacklight::{FsPoll, Loop, Mode};
    /// use std::time::Duration;
    ///
    /// let lp = Loop::new()?;
    /// let poll = FsPoll::new()?;
    /// poll.start("/nowhere", Duration::from_secs(60), |_, poll, _| poll.close())?;
    /// poll.detach();
    /// lp.run(Mode::Default);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn detach(self) {
        // Nothing would take it out of the state that it owns.
        if !self.handle.is_over() {
            let state = self.handle.state.clone();
            state.detached.set(Some(self.handle));
        }
    }
}

/// A stream of changes of a file to await; see [`FsPoll`]. It does not keep the loop running; a
/// task that awaits it does. Pending changes are merged into one.
///
/// ```
/// use blacklight::{Loop, StatChanges, fs};
/// use std::time::Duration;
///
/// let directory = fs::TempDir::new_blocking("polled")?;
/// let path = directory.path().join("file");
/// let lp = Loop::new()?;
/// let mut changes = StatChanges::new(&path, Duration::from_millis(1))?;
/// lp.block_on(async {
///     assert!(changes.recv().await.current.is_err());
///     fs::write(&path, "light").await?;
///     assert!(changes.recv().await.current?.is_file());
///     # Ok::<(), std::io::Error>(())
/// })?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[must_use = "a handle closes when it is dropped"]
pub struct StatChanges {
    handle: FsPoll,
    changes: Rc<EventQueue<StatChange>>,
}

impl StatChanges {
    /// Watches a file by calling `stat` now and then every `interval`.
    ///
    /// ```
    /// use blacklight::{Loop, StatChanges};
    /// use std::time::Duration;
    ///
    /// let lp = Loop::new()?;
    /// let mut changes = StatChanges::new("/nowhere", Duration::from_millis(1))?;
    /// let first = lp.block_on(changes.recv());
    /// assert!(first.previous.is_none() && first.current.is_err());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn new(path: impl AsRef<Path>, interval: Duration) -> io::Result<StatChanges> {
        let handle = FsPoll::new()?;
        let changes = Rc::new(EventQueue::new());
        let queue = changes.clone();
        handle.start(path, interval, move |_, _, change| {
            queue.update(|waiting| {
                let before = waiting.pop_back();
                let previous = before.map_or(change.previous, |before: StatChange| before.previous);
                let current = change.current;
                waiting.push_back(StatChange { previous, current });
            });
        })?;
        handle.unref();
        Ok(StatChanges { handle, changes })
    }

    /// Waits for the next change.
    ///
    /// ```
    /// use blacklight::{Loop, StatChanges};
    /// use std::io::ErrorKind;
    /// use std::time::Duration;
    ///
    /// let lp = Loop::new()?;
    /// let mut changes = StatChanges::new("/nowhere", Duration::from_secs(60))?;
    /// // A file that is missing is told of once.
    /// let change = lp.block_on(changes.recv());
    /// assert_eq!(change.current.unwrap_err().kind(), ErrorKind::NotFound);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub async fn recv(&mut self) -> StatChange {
        self.changes.pop().await
    }

    /// Polls for the next change; see [`recv`](StatChanges::recv).
    ///
    /// ```
    /// use blacklight::{Loop, StatChanges};
    /// use std::{future::poll_fn, time::Duration};
    ///
    /// let lp = Loop::new()?;
    /// let mut changes = StatChanges::new("/nowhere", Duration::from_secs(60))?;
    /// let change = lp.block_on(poll_fn(|context| changes.poll_recv(context)));
    /// assert!(change.current.is_err());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn poll_recv(&mut self, context: &mut Context<'_>) -> Poll<StatChange> {
        self.changes.poll_pop(context)
    }
}

impl fmt::Debug for StatChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StatChanges")
            .field("handle", &self.handle)
            .finish()
    }
}
