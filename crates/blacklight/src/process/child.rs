//! A started child process.

use crate::code::Code;
use crate::current::here;
use crate::handle::Handle;
use crate::loop_::LoopHandle;
use crate::signal::SignalKind;
use crate::stream::Waiter;
use crate::table::Source;
use crate::unix::Pipe;
use blacklight_engine::{Command, Errno, Event};
use futures_io::AsyncRead;
use std::cell::Cell;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::pin::Pin;
use std::process::{ExitStatus, Output};
use std::rc::Rc;
use std::task::{Context, Poll, ready};

type OnExit = Box<dyn FnOnce(&LoopHandle, io::Result<ExitStatus>)>;

/// The loop's part of a child.
#[derive(Default)]
pub(super) struct Running {
    /// The exit status, once it is known.
    status: Cell<Option<Result<ExitStatus, Errno>>>,
    waiter: Waiter,
    on_exit: Cell<Option<OnExit>>,
    /// What names the callback.
    code: Cell<Code>,
    /// The handle of a child whose `Child` was dropped or detached, so that the loop still reaps
    /// the child.
    kept: Cell<Option<Rc<Handle<Running>>>>,
}

impl Running {
    /// Starts a child, and returns its handle and its process ID.
    pub(super) fn start(command: &Command<'_>) -> io::Result<(Rc<Handle<Running>>, u32)> {
        let (handle, ()) = here()?.attach(Rc::new(Running::default()), |engine, token| {
            Ok((engine.process_init(token)?, ()))
        })?;
        let spawned = handle.engine().process_spawn(handle.key, command);
        let pid = spawned.map_err(|failure| failure.error)?;
        Ok((Rc::new(handle), pid.unsigned_abs()))
    }

    fn status(&self) -> Option<io::Result<ExitStatus>> {
        Some(self.status.get()?.map_err(io::Error::from))
    }
}

impl Source for Running {
    fn event(&self, lp: &LoopHandle, event: Event) {
        let Event::Exit(_, status, signum) = event else {
            return;
        };
        // The status of waitpid(2), or a negative error.
        let status = match i32::try_from(status) {
            Ok(error) if error < 0 => Err(Errno::from_code(error)),
            Ok(code) => Ok(ExitStatus::from_raw(code << 8 | signum)),
            Err(_) => Err(Errno::ERANGE),
        };
        self.status.set(Some(status));
        self.waiter.wake();
        let kept = self.kept.take();
        if let Some(on_exit) = self.on_exit.take() {
            on_exit(lp, status.map_err(io::Error::from));
        }
        drop(kept);
    }

    fn code(&self, _: Option<&Event>) -> Code {
        self.code.get().or(self.waiter.code())
    }

    fn clear(&self) {
        drop(self.on_exit.take());
        drop(self.kept.take());
        self.waiter.wake();
    }
}

/// A child process.
///
/// A child keeps the loop running until it exits. Dropping the `Child` leaves the process
/// running, or kills it with [`kill_on_drop`](super::Command::kill_on_drop). Either way the loop
/// reaps the process if it exits while the loop runs, but does not keep running for that.
///
/// ```
/// use blacklight::{Loop, SignalKind, process::Command};
/// use std::os::unix::process::ExitStatusExt;
///
/// let lp = Loop::new()?;
/// let mut child = Command::new("sleep").arg("1000").spawn()?;
/// child.kill(SignalKind::SIGTERM)?;
/// let status = lp.block_on(child.wait())?;
/// assert_eq!(status.signal(), Some(SignalKind::SIGTERM.as_raw()));
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Child {
    pub(super) handle: Rc<Handle<Running>>,
    pub(super) pid: u32,
    pub(super) is_detached: bool,
    pub(super) kill_on_drop: bool,
    /// The writing end of its standard input, if that is a pipe. [`wait`](Child::wait) closes it,
    /// so that a child that reads its input to the end can exit.
    pub stdin: Option<Pipe>,
    /// The reading end of its standard output, if that is a pipe.
    pub stdout: Option<Pipe>,
    /// The reading end of its standard error, if that is a pipe.
    pub stderr: Option<Pipe>,
}

/// The size of one read.
const CHUNK: usize = 32 * 1024;

/// Reads to the end. Ready at once if there is no pipe.
fn poll_to_end(
    source: &mut Option<Pipe>,
    bytes: &mut Vec<u8>,
    context: &mut Context<'_>,
) -> Poll<io::Result<()>> {
    while let Some(end) = source {
        let len = bytes.len();
        bytes.resize(len + CHUNK, 0);
        let read = Pin::new(end).poll_read(context, &mut bytes[len..]);
        let count = match &read {
            Poll::Ready(Ok(count)) => *count,
            _ => 0,
        };
        bytes.truncate(len + count);
        if ready!(read)? == 0 {
            *source = None;
        }
    }
    Poll::Ready(Ok(()))
}

/// The methods of all handles, except `close`, because the loop must reap the child.
impl Child {
    /// Whether the child runs, as far as the loop knows.
    ///
    /// ```
    /// use blacklight::{Loop, process::Command};
    ///
    /// let lp = Loop::new()?;
    /// let mut child = Command::new("true").spawn()?;
    /// assert!(child.is_active());
    /// lp.block_on(child.wait())?;
    /// assert!(!child.is_active());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn is_active(&self) -> bool {
        self.handle.engine().is_active(self.handle.key)
    }

    /// Lets the loop end while the child runs.
    ///
    /// ```
    /// use blacklight::{Loop, Mode, process::Command};
    ///
    /// let lp = Loop::new()?;
    /// let child = Command::new("sleep").arg("1000").kill_on_drop(true).spawn()?;
    /// assert!(child.is_active() && child.has_ref());
    /// child.unref();
    /// lp.run(Mode::Default); // Returns at once.
    /// child.r#ref();
    /// assert!(lp.is_alive());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn unref(&self) {
        self.handle.engine().unreference(self.handle.key);
    }

    /// Undoes [`unref`](Child::unref).
    ///
    /// ```
    /// use blacklight::{Loop, process::Command};
    ///
    /// let lp = Loop::new()?;
    /// let child = Command::new("sleep").arg("1000").kill_on_drop(true).spawn()?;
    /// child.unref();
    /// assert!(!child.has_ref() && !lp.is_alive());
    /// child.r#ref();
    /// assert!(child.has_ref() && lp.is_alive());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn r#ref(&self) {
        self.handle.engine().reference(self.handle.key);
    }

    /// Whether the child keeps the loop running while it runs.
    ///
    /// ```
    /// use blacklight::{Loop, process::Command};
    ///
    /// let lp = Loop::new()?;
    /// let child = Command::new("sleep").arg("1000").kill_on_drop(true).spawn()?;
    /// child.unref();
    /// assert!(!child.has_ref() && !lp.is_alive());
    /// child.r#ref();
    /// assert!(child.has_ref() && lp.is_alive());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn has_ref(&self) -> bool {
        self.handle.engine().has_reference(self.handle.key)
    }
}

impl fmt::Debug for Child {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Child")
            .field("pid", &self.pid)
            .field("active", &self.is_active())
            .field("has_ref", &self.has_ref())
            .finish()
    }
}

impl Child {
    /// The process ID of the child.
    ///
    /// ```
    /// use blacklight::{Loop, process::Command};
    ///
    /// let lp = Loop::new()?;
    /// let child = Command::new("sleep").arg("1000").kill_on_drop(true).spawn()?;
    /// assert!(std::fs::exists(format!("/proc/{}", child.id()))?);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn id(&self) -> u32 {
        self.pid
    }

    /// Sends a signal to the child, and never to another process that reuses its process ID.
    ///
    /// # Errors
    ///
    /// `ESRCH` once the loop has reported the exit.
    ///
    /// ```
    /// use blacklight::{Loop, SignalKind, process::Command};
    ///
    /// let lp = Loop::new()?;
    /// let mut child = Command::new("sleep").arg("1000").spawn()?;
    /// child.kill(SignalKind::SIGKILL)?;
    /// assert!(!lp.block_on(child.wait())?.success());
    /// assert!(child.kill(SignalKind::SIGKILL).is_err(), "it is gone");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn kill(&self, kind: SignalKind) -> io::Result<()> {
        let engine = self.handle.engine();
        Ok(engine.process_kill(self.handle.key, kind.as_raw())?)
    }

    /// Calls back when the child exits, replacing an earlier callback. Never calls back if the
    /// loop has already reported the exit, which [`try_wait`](Child::try_wait) returns.
    ///
    /// ```
    /// use blacklight::{Loop, Mode, process::Command};
    ///
    /// let lp = Loop::new()?;
    /// let child = Command::new("false").spawn()?;
    /// child.on_exit(|_, status| assert_eq!(status.unwrap().code(), Some(1)));
    /// lp.run(Mode::Default);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn on_exit(&self, callback: impl FnOnce(&LoopHandle, io::Result<ExitStatus>) + 'static) {
        let state = &self.handle.state;
        if state.status.get().is_none() && !self.handle.inner.is_closed() {
            state.code.set(Code::of(&callback));
            drop(state.on_exit.replace(Some(Box::new(callback))));
        }
    }

    /// The exit status, or `None` if the loop has not reported the exit yet.
    ///
    /// ```
    /// use blacklight::{Loop, Mode, process::Command};
    ///
    /// let lp = Loop::new()?;
    /// let child = Command::new("true").spawn()?;
    /// assert!(child.try_wait()?.is_none(), "the loop has not run yet");
    /// lp.run(Mode::Default);
    /// assert!(child.try_wait()?.unwrap().success());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn try_wait(&self) -> io::Result<Option<ExitStatus>> {
        self.handle.state.status().transpose()
    }

    /// Closes the child's standard input and waits for its exit. Later calls return the same
    /// status.
    ///
    /// ```
    /// use blacklight::{Loop, process::{Command, Stdio}};
    ///
    /// let lp = Loop::new()?;
    /// let mut child = Command::new("cat").stdin(Stdio::piped()).spawn()?;
    /// // `cat` reads to the end of its input, which `wait` closes.
    /// let status = lp.block_on(child.wait())?;
    /// assert!(status.success() && lp.block_on(child.wait())?.success());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        drop(self.stdin.take());
        poll_fn(|context| self.poll_wait(context)).await
    }

    fn poll_wait(&self, context: &Context<'_>) -> Poll<io::Result<ExitStatus>> {
        let state = &self.handle.state;
        match state.status() {
            Some(status) => Poll::Ready(status),
            None => {
                state.waiter.set(context);
                self.handle.inner.pending()
            }
        }
    }

    /// Closes the child's standard input, reads its output pipes to their ends, and waits for its
    /// exit.
    ///
    /// ```
    /// use blacklight::{Loop, process::{Command, Stdio}};
    ///
    /// let lp = Loop::new()?;
    /// let mut command = Command::new("tr");
    /// command.args(["a-z", "A-Z"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    /// let mut child = command.spawn()?;
    /// let output = lp.block_on(async {
    ///     child.stdin.as_mut().unwrap().write_all(b"light").await?;
    ///     child.wait_with_output().await
    /// })?;
    /// assert_eq!(output.stdout, b"LIGHT");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub async fn wait_with_output(mut self) -> io::Result<Output> {
        drop(self.stdin.take());
        let (mut from_stdout, mut from_stderr) = (self.stdout.take(), self.stderr.take());
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        poll_fn(|context| {
            // Reads both at once: a child may fill one pipe while we wait for the other.
            let out = poll_to_end(&mut from_stdout, &mut stdout, context)?;
            let err = poll_to_end(&mut from_stderr, &mut stderr, context)?;
            match out.is_ready() && err.is_ready() {
                true => Poll::Ready(io::Result::Ok(())),
                false => Poll::Pending,
            }
        })
        .await?;
        let status = self.wait().await?;
        Ok(Output {
            status,
            stdout,
            stderr,
        })
    }

    /// Gives the child to the loop, which keeps running until the child exits, and still calls
    /// back.
    ///
    /// ```
    /// use blacklight::{Loop, Mode, process::Command};
    ///
    /// let lp = Loop::new()?;
    /// let child = Command::new("true").spawn()?;
    /// child.on_exit(|_, status| println!("{}", status.unwrap()));
    /// child.detach();
    /// lp.run(Mode::Default);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn detach(mut self) {
        self.keep_in_loop();
    }

    /// Lets the loop own the handle until it has reaped the child.
    fn keep_in_loop(&mut self) {
        self.is_detached = true;
        let state = &self.handle.state;
        if state.status.get().is_none() && !self.handle.inner.is_closed() {
            state.kept.set(Some(self.handle.clone()));
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.is_detached {
            return;
        }
        drop(self.handle.state.on_exit.take());
        if self.kill_on_drop {
            // Fails if the child has exited already.
            let _ = self.kill(SignalKind::SIGKILL);
        }
        self.unref();
        self.keep_in_loop();
    }
}
