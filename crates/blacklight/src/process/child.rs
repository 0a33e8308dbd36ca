//! A child that has been started.

use crate::handle::Handle;
use crate::loop_::Loop;
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

type OnExit = Box<dyn FnOnce(&Loop, io::Result<ExitStatus>)>;

/// The loop's end of a child.
#[derive(Default)]
pub(super) struct Running {
    /// How it has ended, once that is known.
    status: Cell<Option<Result<ExitStatus, Errno>>>,
    waiter: Waiter,
    on_exit: Cell<Option<OnExit>>,
    /// The handle, once the program has let go of it: the child's end is to be seen all the same.
    kept: Cell<Option<Rc<Handle<Running>>>>,
}

impl Running {
    /// Starts a child; its handle and its number.
    pub(super) fn start(
        lp: &Loop,
        command: &Command<'_>,
    ) -> io::Result<(Rc<Handle<Running>>, u32)> {
        let (handle, ()) = lp.attach(Rc::new(Running::default()), |engine, token| {
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
    fn event(&self, lp: &Loop, event: Event) {
        let Event::Exit(_, status, signum) = event else {
            return;
        };
        // As waitpid(2) tells it, but for an error, which is negative.
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

    fn clear(&self) {
        drop(self.on_exit.take());
        drop(self.kept.take());
        self.waiter.wake();
    }
}

/// A child process.
///
/// It keeps the loop running until it has ended. A child whose `Child` is dropped is left to
/// itself, or killed if its command [says so](super::Command::kill_on_drop); either way the
/// loop, for as long as it runs, sees to it that no zombie is left, without running on for that.
///
/// ```
/// use blacklight::{Loop, SignalKind, process::Command};
/// use std::os::unix::process::ExitStatusExt;
///
/// let lp = Loop::new()?;
/// let mut child = Command::new("sleep").arg("1000").spawn(&lp)?;
/// child.kill(SignalKind::SIGTERM)?;
/// let status = lp.block_on(child.wait())?;
/// assert_eq!(status.signal(), Some(SignalKind::SIGTERM.as_raw()));
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Child {
    pub(super) handle: Rc<Handle<Running>>,
    pub(super) pid: u32,
    pub(super) is_left_alone: bool,
    pub(super) kill_on_drop: bool,
    /// Our end of its standard input, if that is a pipe. It is closed by
    /// [`wait`](Child::wait), so that a child that reads to the end comes to one.
    pub stdin: Option<Pipe>,
    /// Our end of its standard output, if that is a pipe.
    pub stdout: Option<Pipe>,
    /// Our end of its standard error, if that is a pipe.
    pub stderr: Option<Pipe>,
}

/// How much is asked for at once.
const CHUNK: usize = 32 * 1024;

/// Reads up to the end, which is at once if there is nothing to read from.
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

/// What other handles have, too, except that nobody can close this one: the child's end is to
/// be seen in any case.
impl Child {
    /// Whether the child runs, as far as the loop has heard.
    pub fn is_active(&self) -> bool {
        self.handle.engine().is_active(self.handle.key)
    }

    /// Lets the loop end although the child runs.
    ///
    /// ```
    /// use blacklight::{Loop, Mode, process::Command};
    ///
    /// let lp = Loop::new()?;
    /// let child = Command::new("sleep").arg("1000").kill_on_drop(true).spawn(&lp)?;
    /// assert!(child.is_active() && child.has_ref());
    /// child.unref();
    /// lp.run(Mode::Default); // It returns at once.
    /// child.r#ref();
    /// assert!(lp.is_alive());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn unref(&self) {
        self.handle.engine().unreference(self.handle.key);
    }

    /// Takes [`unref`](Child::unref) back.
    pub fn r#ref(&self) {
        self.handle.engine().reference(self.handle.key);
    }

    /// Whether the child keeps the loop running while it runs.
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
    /// Its number.
    ///
    /// ```
    /// use blacklight::{Loop, process::Command};
    ///
    /// let lp = Loop::new()?;
    /// let child = Command::new("sleep").arg("1000").kill_on_drop(true).spawn(&lp)?;
    /// assert!(std::fs::exists(format!("/proc/{}", child.pid()))?);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Sends a signal to the child, and never to another process that has its number by now. It
    /// is an error (`ESRCH`) once the loop has told of its end.
    pub fn kill(&self, kind: SignalKind) -> io::Result<()> {
        let engine = self.handle.engine();
        Ok(engine.process_kill(self.handle.key, kind.as_raw())?)
    }

    /// Calls back when the child has ended, in place of any callback before. If the loop has
    /// told of its end already, which [`try_wait`](Child::try_wait) knows, nothing is called.
    ///
    /// ```
    /// use blacklight::{Loop, Mode, process::Command};
    ///
    /// let lp = Loop::new()?;
    /// let child = Command::new("false").spawn(&lp)?;
    /// child.on_exit(|_, status| assert_eq!(status.unwrap().code(), Some(1)));
    /// lp.run(Mode::Default);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn on_exit(&self, callback: impl FnOnce(&Loop, io::Result<ExitStatus>) + 'static) {
        let state = &self.handle.state;
        if state.status.get().is_none() && !self.handle.inner.is_closed() {
            drop(state.on_exit.replace(Some(Box::new(callback))));
        }
    }

    /// How the child has ended, if the loop has heard of that.
    ///
    /// ```
    /// use blacklight::{Loop, Mode, process::Command};
    ///
    /// let lp = Loop::new()?;
    /// let child = Command::new("true").spawn(&lp)?;
    /// assert!(child.try_wait()?.is_none(), "the loop has not run yet");
    /// lp.run(Mode::Default);
    /// assert!(child.try_wait()?.unwrap().success());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn try_wait(&self) -> io::Result<Option<ExitStatus>> {
        self.handle.state.status().transpose()
    }

    /// Closes its standard input and waits for its end. It may be asked again.
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

    /// Closes its standard input, reads what comes from the pipes, and waits for its end.
    ///
    /// ```
    /// use blacklight::{Loop, process::{Command, Stdio}};
    ///
    /// let lp = Loop::new()?;
    /// let mut command = Command::new("tr");
    /// command.args(["a-z", "A-Z"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    /// let mut child = command.spawn(&lp)?;
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
            // Both together: a child may fill one pipe while we wait for the other.
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

    /// Gives the child to the loop, which then also runs on for it, and still calls back.
    ///
    /// ```
    /// use blacklight::{Loop, Mode, process::Command};
    ///
    /// let lp = Loop::new()?;
    /// let child = Command::new("true").spawn(&lp)?;
    /// child.on_exit(|_, status| println!("{}", status.unwrap()));
    /// child.detach();
    /// lp.run(Mode::Default);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn detach(mut self) {
        self.leave();
    }

    /// Leaves it to the loop to see the child's end.
    fn leave(&mut self) {
        self.is_left_alone = true;
        let state = &self.handle.state;
        if state.status.get().is_none() && !self.handle.inner.is_closed() {
            state.kept.set(Some(self.handle.clone()));
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.is_left_alone {
            return;
        }
        drop(self.handle.state.on_exit.take());
        if self.kill_on_drop {
            // One that has ended needs no more.
            let _ = self.kill(SignalKind::SIGKILL);
        }
        self.unref();
        self.leave();
    }
}
