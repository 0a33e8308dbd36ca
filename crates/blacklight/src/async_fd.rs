//! Poll handles, for descriptors that the program itself reads and writes.
//!
//! A handle has one callback: the program's, or that of futures, which tells each future of the
//! events that it waits for. While futures wait, the handle watches for what all of them want.
//! Dropping the futures' callback, because the handle is closed or another callback takes its
//! place, cancels them.

use crate::code::Code;
use crate::current::here;
use crate::error::Error;
use crate::handle::{Handle, Single, common_methods};
use crate::loop_::LoopHandle;
use crate::stream::Waiter;
use blacklight_engine::{Errno, Event, Readiness};
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::ops::Deref;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::rc::Rc;
use std::task::Poll;

/// Watches a descriptor, which it owns and makes non-blocking.
///
/// ```
/// use blacklight::{AsyncFd, Loop};
/// use std::io::{Read, Write};
/// use std::os::unix::net::UnixStream;
///
/// let lp = Loop::new()?;
/// let (near, mut far) = UnixStream::pair()?;
/// let near = AsyncFd::new(near)?;
/// far.write_all(b"light")?;
/// lp.block_on(async {
///     near.readable().await?;
///     let mut word = [0; 5];
///     near.get_ref().read_exact(&mut word)?;
///     assert_eq!(&word, b"light");
///     # Ok::<(), std::io::Error>(())
/// })?;
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// Watching with a callback is level-triggered: the callback runs on each turn for as long as the
/// descriptor is ready.
///
/// ```
/// use blacklight::{AsyncFd, Loop, Mode, Readiness};
/// use std::io::{Read, Write};
/// use std::os::unix::net::UnixStream;
///
/// let lp = Loop::new()?;
/// let (near, mut far) = UnixStream::pair()?;
/// far.write_all(b"light")?;
///
/// let near = AsyncFd::new(near)?;
/// near.start(Readiness::READABLE, |lp, ready| {
///     assert!(ready.is_ok_and(|ready| ready.contains(Readiness::READABLE)));
///     lp.stop();
/// })?;
/// lp.run(Mode::Default);
///
/// let mut word = [0; 5];
/// near.get_ref().read_exact(&mut word)?;
/// assert_eq!(&word, b"light");
/// # Ok::<(), std::io::Error>(())
/// ```
#[must_use = "a handle closes when it is dropped"]
pub struct AsyncFd<Io> {
    handle: StopOnDrop,
    waits: Rc<Waits>,
    has_callback: Cell<bool>,
    /// Dropped after the handle has stopped.
    io: Io,
}

/// The handle. If its callback drops it, the call in progress keeps the handle open; but the
/// descriptor is closed then, and its number may be reused.
struct StopOnDrop(Rc<Handle<Single>>);

impl Deref for StopOnDrop {
    type Target = Handle<Single>;

    fn deref(&self) -> &Handle<Single> {
        &self.0
    }
}

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        let _ = self.0.engine().poll_stop(self.0.key);
    }
}

/// A future that waits.
struct Wait {
    wanted: Readiness,
    outcome: Cell<Option<Result<Readiness, Errno>>>,
    waiter: Waiter,
}

impl Wait {
    fn end(&self, outcome: Result<Readiness, Errno>) {
        self.outcome.set(Some(outcome));
        self.waiter.wake();
    }
}

/// The futures that wait.
#[derive(Default)]
struct Waits(RefCell<Vec<Rc<Wait>>>);

impl Waits {
    /// Tells those that wait for one of these events.
    fn tell(&self, ready: Result<Readiness, Errno>) {
        let is_told = |wait: &mut Rc<Wait>| match ready {
            Ok(ready) => wait.wanted.intersects(ready),
            Err(_) => true,
        };
        let told: Vec<_> = self.0.borrow_mut().extract_if(.., is_told).collect();
        for wait in told {
            wait.end(ready);
        }
    }

    /// What all of them want.
    fn wanted(&self) -> Readiness {
        let waits = self.0.borrow();
        waits
            .iter()
            .fold(Readiness::default(), |all, wait| all | wait.wanted)
    }
}

/// The callback of the futures owns this.
struct CancelOnDrop(Rc<Waits>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.tell(Err(Errno::ECANCELED));
    }
}

/// Takes a future that was dropped out of those that wait.
struct LeaveOnDrop<'a> {
    handle: &'a Handle<Single>,
    waits: &'a Waits,
    wait: Rc<Wait>,
}

impl Drop for LeaveOnDrop<'_> {
    fn drop(&mut self) {
        let before = self.waits.0.borrow().len();
        self.waits
            .0
            .borrow_mut()
            .retain(|wait| !Rc::ptr_eq(wait, &self.wait));
        if self.waits.0.borrow().len() != before {
            // Ending an interest needs neither memory nor a descriptor, so it cannot fail.
            let _ = self
                .handle
                .engine()
                .poll_start(self.handle.key, self.waits.wanted());
        }
    }
}

common_methods!(AsyncFd<Io>);

impl<Io: AsFd> AsyncFd<Io> {
    /// Creates the handle, stopped. Returns an error for files and directories, which are always
    /// ready.
    ///
    /// ```
    /// use blacklight::{AsyncFd, Loop};
    ///
    /// let lp = Loop::new()?;
    /// let (reader, _writer) = std::io::pipe()?;
    /// assert!(!AsyncFd::new(reader)?.is_active());
    /// let file = std::fs::File::open("/proc/self/comm")?;
    /// assert!(AsyncFd::new(file).is_err(), "a file is always ready");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn new(io: Io) -> io::Result<AsyncFd<Io>> {
        let fd = io.as_fd().as_raw_fd();
        let (handle, ()) = Handle::single(&here()?, |engine, token| {
            Ok((engine.poll_init(token, fd)?, ()))
        })?;
        Ok(AsyncFd {
            handle: StopOnDrop(handle),
            waits: Rc::default(),
            has_callback: Cell::new(false),
            io,
        })
    }

    /// Watches for `wanted`, replacing earlier events and their callback. The callback receives
    /// the events that are ready, or an error after which the descriptor is no longer watched.
    /// Futures that wait fail with `ECANCELED`.
    ///
    /// ```
    /// use blacklight::{AsyncFd, Loop, Mode, Readiness};
    /// use std::io::{Read, Write};
    /// use std::rc::Rc;
    ///
    /// let lp = Loop::new()?;
    /// let (reader, mut writer) = std::io::pipe()?;
    /// let reader = Rc::new(AsyncFd::new(reader)?);
    /// let its = reader.clone();
    /// reader.start(Readiness::READABLE, move |_, _| {
    ///     let count = its.get_ref().read(&mut [0; 8]).unwrap();
    ///     assert_eq!(count, 5);
    ///     its.close(); // It owns itself through this closure, which closing drops.
    /// })?;
    /// writer.write_all(b"light")?;
    /// lp.run(Mode::Default);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn start(
        &self,
        wanted: Readiness,
        mut callback: impl FnMut(&LoopHandle, io::Result<Readiness>) + 'static,
    ) -> io::Result<()> {
        self.handle
            .live_engine()?
            .poll_start(self.handle.key, wanted)?;
        self.has_callback.set(true);
        let code = Code::of(&callback);
        self.handle.set_callback(code, move |lp, _, event| {
            if let Event::Poll(_, ready) = event {
                callback(lp, ready.map_err(io::Error::from));
            }
        });
        Ok(())
    }

    /// Stops watching. Pending events are discarded, and futures that wait fail with `ECANCELED`.
    ///
    /// ```
    /// use blacklight::{AsyncFd, Loop, Mode, Readiness};
    ///
    /// let lp = Loop::new()?;
    /// let (_reader, writer) = std::io::pipe()?;
    /// let writer = AsyncFd::new(writer)?;
    /// writer.start(Readiness::WRITABLE, |_, _| unreachable!("it was stopped"))?;
    /// writer.stop();
    /// assert!(!lp.run(Mode::Default));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn stop(&self) {
        // A closed handle has stopped.
        let _ = self.handle.engine().poll_stop(self.handle.key);
        self.has_callback.set(false);
        self.handle.drop_callback();
    }

    /// Waits until one of the `wanted` events is ready, and returns those that are. Any number of
    /// futures may wait at once. Cancel-safe.
    ///
    /// # Errors
    ///
    /// [`Error::HasCallback`] while the handle is [started](AsyncFd::start) with a callback;
    /// `ECANCELED` if it is closed or stopped meanwhile.
    ///
    /// ```
    /// use blacklight::{AsyncFd, Loop, Readiness};
    ///
    /// let lp = Loop::new()?;
    /// let (reader, writer) = std::io::pipe()?;
    /// let reader = AsyncFd::new(reader)?;
    /// drop(writer);
    /// let ready = lp.block_on(reader.ready(Readiness::READABLE | Readiness::DISCONNECT))?;
    /// assert!(ready.contains(Readiness::DISCONNECT));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub async fn ready(&self, wanted: Readiness) -> io::Result<Readiness> {
        if self.has_callback.get() {
            return Err(Error::HasCallback.into());
        }
        let wait = Rc::new(Wait {
            wanted,
            outcome: Cell::new(None),
            waiter: Waiter::default(),
        });
        let all = self.waits.wanted() | wanted;
        self.handle
            .live_engine()?
            .poll_start(self.handle.key, all)?;
        if self.waits.0.borrow().is_empty() {
            let waits = CancelOnDrop(self.waits.clone());
            let code = Code::polled();
            self.handle.set_callback(code, move |_, handle, event| {
                if let Event::Poll(_, ready) = event {
                    waits.0.tell(ready);
                    let _ = handle.engine().poll_start(handle.key, waits.0.wanted());
                }
            });
        }
        self.waits.0.borrow_mut().push(wait.clone());
        let _leave = LeaveOnDrop {
            handle: &self.handle,
            waits: &self.waits,
            wait: wait.clone(),
        };
        poll_fn(|context| match wait.outcome.take() {
            Some(outcome) => Poll::Ready(outcome.map_err(io::Error::from)),
            None => {
                wait.waiter.set(context);
                self.handle.inner.pending()
            }
        })
        .await
    }

    /// Waits until the descriptor is readable; see [`ready`](AsyncFd::ready).
    ///
    /// ```
    /// use blacklight::{AsyncFd, Loop};
    /// use std::io::{Read, Write};
    ///
    /// let lp = Loop::new()?;
    /// let (reader, mut writer) = std::io::pipe()?;
    /// let reader = AsyncFd::new(reader)?;
    /// lp.spawn_blocking(move || writer.write_all(b"light"));
    /// lp.block_on(reader.readable())?;
    /// assert_eq!(reader.get_ref().read(&mut [0; 8])?, 5);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub async fn readable(&self) -> io::Result<()> {
        self.ready(Readiness::READABLE).await.map(drop)
    }

    /// Waits until the descriptor is writable; see [`ready`](AsyncFd::ready).
    ///
    /// ```
    /// use blacklight::{AsyncFd, Loop};
    /// use std::io::Write;
    ///
    /// let lp = Loop::new()?;
    /// let (_reader, writer) = std::io::pipe()?;
    /// let writer = AsyncFd::new(writer)?;
    /// lp.block_on(writer.writable())?;
    /// writer.get_ref().write_all(b"light")?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub async fn writable(&self) -> io::Result<()> {
        self.ready(Readiness::WRITABLE).await.map(drop)
    }

    /// Calls `operation` until it does not fail with [`WouldBlock`](io::ErrorKind::WouldBlock),
    /// and waits for one of the `wanted` events after each such failure.
    ///
    /// ```
    /// use blacklight::{AsyncFd, Loop, Readiness};
    /// use std::io::{Read, Write};
    ///
    /// let lp = Loop::new()?;
    /// let (reader, mut writer) = std::io::pipe()?;
    /// let reader = AsyncFd::new(reader)?;
    /// let mut buf = [0; 8];
    /// let count = lp.block_on(async {
    ///     blacklight::spawn(async move { writer.write_all(b"light") });
    ///     reader.async_io(Readiness::READABLE, |mut reader| reader.read(&mut buf)).await
    /// })?;
    /// assert_eq!(&buf[..count], b"light");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub async fn async_io<T>(
        &self,
        wanted: Readiness,
        mut operation: impl FnMut(&Io) -> io::Result<T>,
    ) -> io::Result<T> {
        loop {
            match operation(&self.io) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                result => return result,
            }
            self.ready(wanted).await?;
        }
    }

    /// The object that is watched.
    ///
    /// ```
    /// use blacklight::{AsyncFd, Loop};
    /// use std::io::{Read, Write};
    ///
    /// let lp = Loop::new()?;
    /// let (reader, mut writer) = std::io::pipe()?;
    /// let reader = AsyncFd::new(reader)?;
    /// writer.write_all(b"light")?;
    /// lp.block_on(reader.readable())?;
    /// assert_eq!(reader.get_ref().read(&mut [0; 8])?, 5);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn get_ref(&self) -> &Io {
        &self.io
    }

    /// Closes the handle and returns the object, which stays non-blocking.
    ///
    /// ```
    /// use blacklight::{AsyncFd, Loop};
    ///
    /// let lp = Loop::new()?;
    /// let (reader, _writer) = std::io::pipe()?;
    /// let reader: std::io::PipeReader = AsyncFd::new(reader)?.into_inner();
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn into_inner(self) -> Io {
        self.io
    }
}

impl<Io: AsFd> AsFd for AsyncFd<Io> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.io.as_fd()
    }
}
