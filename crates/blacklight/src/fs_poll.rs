//! Watching a file by asking about it again and again.
//!
//! To the engine the handle is a timer that repeats. Each time that it is due a worker is asked,
//! unless one is at it already; the answer is compared with the one before.
//!
//! What the callback hears: nothing about the first answer unless it is an error; then every
//! change from one answer to another that differs, every error after something else, and every
//! answer after an error. What was last known of the file stays known through errors.

use crate::handle::{Handle, Slot, common_methods};
use crate::loop_::{Inner, Loop};
use crate::queue::Queue;
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
/// let mut changes = StatChanges::new(&lp, "/nowhere", Duration::from_secs(60))?;
/// let StatChange { previous, current } = lp.block_on(changes.recv());
/// assert!(previous.is_none() && current.is_err());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct StatChange {
    /// What was last known of the file, if there has been such a file.
    pub previous: Option<Metadata>,
    /// What it is now, or why nobody knows.
    pub current: io::Result<Metadata>,
}

/// What a worker has last said about the file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answer {
    None,
    /// It is what is known.
    File,
    Error(Option<i32>, io::ErrorKind),
}

type Callback = dyn FnMut(&Loop, &FsPoll, StatChange);

/// The loop's end of a handle.
struct Watch {
    callback: Slot<Callback>,
    handle: OnceCell<Weak<Handle<Watch>>>,
    /// Set by `detach`: the loop then keeps the handle itself.
    detached: Cell<Option<Rc<Handle<Watch>>>>,
    path: RefCell<Arc<Path>>,
    last: Cell<Answer>,
    known: RefCell<Option<Metadata>>,
    /// The question that is on its way.
    asked: RefCell<Option<Work>>,
    /// Counts starts and stops: an answer to a question of before concerns nobody.
    starts: Cell<u64>,
}

impl Watch {
    /// Asks a worker about the file.
    fn ask(self: &Rc<Self>, inner: &Rc<Inner>) -> io::Result<()> {
        let path = self.path.borrow().clone();
        let (watch, start) = (Rc::downgrade(self), self.starts.get());
        let job = move || fs::metadata(&path);
        let work = inner.submit(WorkKind::FastIo, job, move |lp, answer| {
            if let Some(watch) = watch.upgrade()
                && watch.starts.get() == start
            {
                drop(watch.asked.take());
                watch.answered(lp, answer.unwrap_or_else(|error| Err(error.into())));
            }
        })?;
        *self.asked.borrow_mut() = Some(work);
        Ok(())
    }

    fn answered(&self, lp: &Loop, current: io::Result<Metadata>) {
        let answer = match &current {
            Ok(_) => Answer::File,
            Err(error) => Answer::Error(error.raw_os_error(), error.kind()),
        };
        let previous = match &current {
            Ok(now) => self.known.replace(Some(now.clone())),
            Err(_) => self.known.borrow().clone(),
        };
        let is_news = match (self.last.replace(answer), &previous, &current) {
            (before, _, Err(_)) => before != answer,
            (Answer::None, ..) => false,
            (Answer::Error(..), ..) => true,
            (Answer::File, Some(before), Ok(now)) => differs(before, now),
            (Answer::File, None, Ok(_)) => true,
        };
        let handle = self.handle.get().and_then(Weak::upgrade);
        if let (true, Some(handle)) = (is_news, handle) {
            let change = StatChange { previous, current };
            self.callback
                .call(|callback| callback(lp, &FsPoll { handle }, change));
        }
    }

    /// Forgets the question that is on its way.
    fn forget(&self) {
        self.starts.set(self.starts.get() + 1);
        if let Some(work) = self.asked.take() {
            // If no worker has it yet, none needs to.
            work.cancel();
        }
    }
}

/// Whether something about the file has changed. Reading it is no change, so the access time
/// does not count; nor do the blocks, which the kernel may arrange as it likes, and whatever
/// cannot change without the change time.
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
    fn event(&self, _: &Loop, _: Event) {
        if let Some(handle) = self.handle.get().and_then(Weak::upgrade)
            && self.asked.borrow().is_none()
        {
            // If there is no memory to ask now, perhaps there is next time.
            let _ = handle.state.ask(&handle.inner);
        }
    }

    fn clear(&self) {
        self.forget();
        self.callback.set(None);
        drop(self.detached.take());
    }
}

/// Calls back when a file is not what it was, by asking about it every so often. This also works
/// where the kernel tells nothing, as on network file systems, and for files that are not there
/// yet; else [`FsEvent`](crate::FsEvent) is the better choice.
///
/// ```
/// use blacklight::{FsPoll, Loop, Mode, fs};
/// use std::{io::ErrorKind, time::Duration};
///
/// let directory = fs::TempDir::new_blocking("polled")?;
/// let path = directory.path().join("file");
/// let lp = Loop::new()?;
/// let poll = FsPoll::new(&lp)?;
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
pub struct FsPoll {
    handle: Rc<Handle<Watch>>,
}

common_methods!(FsPoll);

impl FsPoll {
    /// Makes the handle, stopped.
    pub fn new(lp: &Loop) -> io::Result<FsPoll> {
        let watch = Rc::new(Watch {
            callback: Slot::new(),
            handle: OnceCell::new(),
            detached: Cell::new(None),
            path: RefCell::new(Arc::from(PathBuf::new())),
            last: Cell::new(Answer::None),
            known: RefCell::default(),
            asked: RefCell::default(),
            starts: Cell::new(0),
        });
        let (handle, ()) = lp.attach(watch, |engine, token| Ok((engine.timer_init(token)?, ())))?;
        let handle = Rc::new(handle);
        let _ = handle.state.handle.set(Rc::downgrade(&handle));
        Ok(FsPoll { handle })
    }

    /// Asks about a file now and then every `interval`, in place of what was asked before. An
    /// interval of less than a millisecond is one.
    pub fn start(
        &self,
        path: impl AsRef<Path>,
        interval: Duration,
        callback: impl FnMut(&Loop, &FsPoll, StatChange) + 'static,
    ) -> io::Result<()> {
        self.stop();
        let Handle { inner, key, state } = &*self.handle;
        *state.path.borrow_mut() = Arc::from(path.as_ref());
        state.last.set(Answer::None);
        state.known.replace(None);
        state.ask(inner)?;
        let interval_ms = u64::try_from(interval.as_millis())
            .unwrap_or(u64::MAX)
            .max(1);
        let started = inner.engine().timer_start(*key, interval_ms, interval_ms);
        started.inspect_err(|_| state.forget())?;
        // Nobody would ever take it back from a loop that is gone.
        if !inner.is_closed() {
            state.callback.set(Some(Box::new(callback)));
        }
        Ok(())
    }

    /// Stops asking. An answer that is on its way is forgotten.
    pub fn stop(&self) {
        self.handle.state.forget();
        // One that is closed has stopped.
        let _ = self.handle.engine().timer_stop(self.handle.key);
    }

    /// Gives the handle to the loop, which keeps it for as long as the loop lives.
    ///
    /// ```
    /// use blacklight::{FsPoll, Loop, Mode};
    /// use std::time::Duration;
    ///
    /// let lp = Loop::new()?;
    /// let poll = FsPoll::new(&lp)?;
    /// poll.start("/nowhere", Duration::from_secs(60), |_, poll, _| poll.close())?;
    /// poll.detach();
    /// lp.run(Mode::Default);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn detach(self) {
        if !self.handle.inner.is_closed() {
            let state = self.handle.state.clone();
            state.detached.set(Some(self.handle));
        }
    }
}

/// Changes of a file to be awaited, found by asking; see [`FsPoll`]. It does not keep the loop
/// running; a task that waits for it does. Changes that nobody has waited for are one.
///
/// ```
/// use blacklight::{Loop, StatChanges, fs};
/// use std::time::Duration;
///
/// let directory = fs::TempDir::new_blocking("polled")?;
/// let path = directory.path().join("file");
/// let lp = Loop::new()?;
/// let mut changes = StatChanges::new(&lp, &path, Duration::from_millis(1))?;
/// lp.block_on(async {
///     assert!(changes.recv().await.current.is_err());
///     fs::write(&path, "light").await?;
///     assert!(changes.recv().await.current?.is_file());
///     # Ok::<(), std::io::Error>(())
/// })?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct StatChanges {
    handle: FsPoll,
    changes: Rc<Queue<StatChange>>,
}

impl StatChanges {
    /// Asks about a file now and then every `interval`.
    pub fn new(lp: &Loop, path: impl AsRef<Path>, interval: Duration) -> io::Result<StatChanges> {
        let handle = FsPoll::new(lp)?;
        let changes = Rc::new(Queue::new());
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
    pub async fn recv(&mut self) -> StatChange {
        self.changes.pop().await
    }

    /// As [`recv`](StatChanges::recv), for those who poll.
    ///
    /// ```
    /// use blacklight::{Loop, StatChanges};
    /// use std::{future::poll_fn, time::Duration};
    ///
    /// let lp = Loop::new()?;
    /// let mut changes = StatChanges::new(&lp, "/nowhere", Duration::from_secs(60))?;
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
