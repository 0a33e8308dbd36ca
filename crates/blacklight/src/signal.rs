//! Signals as events of the loop.
//!
//! A [`Signal`] handle calls back; a task awaits [`Signals`]. Any number of both, on any number
//! of loops, may watch for the same signal, and all receive it. While at least one watches for a
//! signal, the signal's default action is off.
//!
//! ```
//! use blacklight::{Loop, process, signal::{SignalKind, Signals}};
//!
//! let lp = Loop::new()?;
//! let mut signals = Signals::new([SignalKind::SIGTERM])?;
//! process::kill(std::process::id(), SignalKind::SIGTERM)?;
//! assert_eq!(lp.block_on(signals.recv()), SignalKind::SIGTERM);
//! # Ok::<(), std::io::Error>(())
//! ```

use crate::code::Code;
use crate::current::here;
use crate::event_queue::EventQueue;
use crate::handle::{Handle, Single, common_methods, detach_method};
use crate::loop_::LoopHandle;
use blacklight_engine::Event;
use blacklight_sys::signal as sys;
use std::fmt;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll};

/// A signal, by its number.
///
/// ```
/// use blacklight::SignalKind;
///
/// assert_eq!(SignalKind::SIGINT.to_string(), "SIGINT");
/// assert_eq!(SignalKind::from_raw(15), Some(SignalKind::SIGTERM));
/// assert_eq!(SignalKind::from_raw(0), None);
/// assert_eq!(SignalKind::SIGKILL.as_raw(), 9);
/// assert_eq!(SignalKind::realtime(0).unwrap().name(), None);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SignalKind(i32);

macro_rules! kinds {
    ($($(#[doc = $doc:literal])* $name:ident)*) => {
        impl SignalKind {
            $($(#[doc = $doc])* pub const $name: SignalKind = SignalKind(sys::$name);)*

            /// The name of the signal, or `None` for a real-time signal.
            ///
            /// ```
            /// use blacklight::SignalKind;
            ///
            /// assert_eq!(SignalKind::SIGTERM.name(), Some("SIGTERM"));
            /// assert_eq!(SignalKind::realtime(1).unwrap().name(), None);
            /// # Ok::<(), std::io::Error>(())
            /// ```
            pub fn name(self) -> Option<&'static str> {
                match self.0 {
                    $(sys::$name => Some(stringify!($name)),)*
                    _ => None,
                }
            }
        }
    };
}

kinds! {
    /// Abort, as by `abort`.
    SIGABRT
    /// A timer set with `alarm` has expired.
    SIGALRM
    /// Access to memory that does not exist.
    SIGBUS
    /// A child has ended or stopped.
    SIGCHLD
    /// Continue after a stop.
    SIGCONT
    /// An arithmetic error.
    SIGFPE
    /// The terminal was closed; by convention, daemons reload their configuration.
    SIGHUP
    /// An illegal instruction.
    SIGILL
    /// Ctrl-C.
    SIGINT
    /// A descriptor is ready.
    SIGIO
    /// Kill. Cannot be caught.
    SIGKILL
    /// A write to a pipe or socket without a reader.
    SIGPIPE
    /// A profiling timer has expired.
    SIGPROF
    /// A power failure.
    SIGPWR
    /// Ctrl-\.
    SIGQUIT
    /// An invalid memory access.
    SIGSEGV
    /// Stop. Cannot be caught.
    SIGSTOP
    /// A bad system call.
    SIGSYS
    /// A request to terminate.
    SIGTERM
    /// A breakpoint.
    SIGTRAP
    /// Ctrl-Z.
    SIGTSTP
    /// A background process reads from the terminal.
    SIGTTIN
    /// A background process writes to the terminal.
    SIGTTOU
    /// Urgent data on a socket.
    SIGURG
    /// Free for the program to define.
    SIGUSR1
    /// Free for the program to define.
    SIGUSR2
    /// A timer of processor time, set with `setitimer`, has expired.
    SIGVTALRM
    /// The size of the terminal has changed.
    SIGWINCH
    /// The limit of processor time is exceeded.
    SIGXCPU
    /// The limit of file size is exceeded.
    SIGXFSZ
}

impl SignalKind {
    /// The real-time signal `SIGRTMIN + number`, if it exists.
    ///
    /// ```
    /// use blacklight::SignalKind;
    ///
    /// let first = SignalKind::realtime(0).unwrap();
    /// assert_eq!(first.to_string(), "SIGRTMIN+0");
    /// assert_eq!(SignalKind::realtime(1000), None);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn realtime(number: u32) -> Option<SignalKind> {
        let raw = sys::SIGRTMIN().checked_add_unsigned(number)?;
        (raw <= sys::SIGRTMAX()).then_some(SignalKind(raw))
    }

    /// The signal with this number, if it exists.
    ///
    /// ```
    /// use blacklight::SignalKind;
    ///
    /// assert_eq!(SignalKind::from_raw(2), Some(SignalKind::SIGINT));
    /// assert_eq!(SignalKind::from_raw(1000), None);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn from_raw(raw: i32) -> Option<SignalKind> {
        let realtime = sys::SIGRTMIN()..=sys::SIGRTMAX();
        let kind = SignalKind(raw);
        (kind.name().is_some() || realtime.contains(&raw)).then_some(kind)
    }

    /// The number of the signal.
    ///
    /// ```
    /// use blacklight::SignalKind;
    ///
    /// assert_eq!(SignalKind::SIGHUP.as_raw(), 1);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn as_raw(self) -> i32 {
        self.0
    }
}

impl fmt::Display for SignalKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "SIGRTMIN+{}", self.0 - sys::SIGRTMIN()),
        }
    }
}

impl fmt::Debug for SignalKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Calls back when a signal is caught.
///
/// Reports every signal that the kernel delivers. The kernel merges signals of one kind that are
/// sent before it delivers the first.
///
/// ```
/// use blacklight::{Loop, Mode, Signal, SignalKind, process};
///
/// let lp = Loop::new()?;
/// let signal = Signal::new()?;
/// signal.start(SignalKind::SIGUSR1, |_, signal, kind| {
///     assert_eq!(kind, SignalKind::SIGUSR1);
///     signal.stop();
/// })?;
/// process::kill(std::process::id(), SignalKind::SIGUSR1)?;
/// lp.run(Mode::Default);
/// # Ok::<(), std::io::Error>(())
/// ```
#[must_use = "a handle closes when it is dropped"]
pub struct Signal {
    handle: Rc<Handle<Single>>,
}

common_methods!(Signal);
detach_method!(Signal);

impl Signal {
    /// Creates the handle, stopped.
    ///
    /// ```
    /// use blacklight::{Loop, Signal};
    ///
    /// let lp = Loop::new()?;
    /// assert!(!Signal::new()?.is_active());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn new() -> io::Result<Signal> {
        let lp = &here()?;
        let (handle, ()) =
            Handle::single(lp, |engine, token| Ok((engine.signal_init(token)?, ())))?;
        Ok(Signal { handle })
    }

    /// Watches for a signal, replacing an earlier one.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) if the signal cannot be caught.
    ///
    /// ```
    /// use blacklight::{Loop, Mode, Signal, SignalKind, process};
    /// use std::{cell::Cell, rc::Rc};
    ///
    /// let lp = Loop::new()?;
    /// let signal = Signal::new()?;
    /// assert!(signal.start(SignalKind::SIGKILL, |_, _, _| ()).is_err());
    ///
    /// let reloads = Rc::new(Cell::new(0));
    /// let count = reloads.clone();
    /// signal.start(SignalKind::SIGHUP, move |_, signal, _| {
    ///     count.set(count.get() + 1);
    ///     signal.unref(); // So that this example ends.
    /// })?;
    /// process::kill(std::process::id(), SignalKind::SIGHUP)?;
    /// lp.run(Mode::Default);
    /// assert_eq!(reloads.get(), 1);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn start(
        &self,
        kind: SignalKind,
        callback: impl FnMut(&LoopHandle, &Signal, SignalKind) + 'static,
    ) -> io::Result<()> {
        self.watch(kind, false, callback)
    }

    /// Watches for the next such signal only. Later ones take their default action, unless
    /// another handle watches for them.
    ///
    /// ```
    /// use blacklight::{Loop, Mode, Signal, SignalKind, process};
    ///
    /// let lp = Loop::new()?;
    /// let signal = Signal::new()?;
    /// signal.start_one_shot(SignalKind::SIGUSR2, |_, _, _| ())?;
    /// process::kill(std::process::id(), SignalKind::SIGUSR2)?;
    /// lp.run(Mode::Default);
    /// assert!(!signal.is_active());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn start_one_shot(
        &self,
        kind: SignalKind,
        callback: impl FnMut(&LoopHandle, &Signal, SignalKind) + 'static,
    ) -> io::Result<()> {
        self.watch(kind, true, callback)
    }

    fn watch(
        &self,
        kind: SignalKind,
        one_shot: bool,
        mut callback: impl FnMut(&LoopHandle, &Signal, SignalKind) + 'static,
    ) -> io::Result<()> {
        self.handle
            .live_engine()?
            .signal_start(self.handle.key, kind.0, one_shot)?;
        let code = Code::of(&callback);
        self.handle.set_callback(code, move |lp, handle, event| {
            if let Event::Signal(_, raw) = event {
                let handle = handle.clone();
                callback(lp, &Signal { handle }, SignalKind(raw));
            }
        });
        Ok(())
    }

    /// Stops watching. Signals caught but not yet reported are discarded.
    ///
    /// ```
    /// use blacklight::{Loop, Mode, Signal, SignalKind};
    ///
    /// let lp = Loop::new()?;
    /// let signal = Signal::new()?;
    /// signal.start(SignalKind::SIGWINCH, |_, _, _| ())?;
    /// signal.stop();
    /// assert!(!lp.run(Mode::Default));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn stop(&self) {
        // A closed handle has stopped.
        let _ = self.handle.engine().signal_stop(self.handle.key);
    }
}

/// A stream of signals to await, caught from its creation on. It does not keep the loop running;
/// a task that awaits it does.
///
/// Pending signals of one kind are reported as one.
///
/// ```
/// use blacklight::{Loop, SignalKind, Signals, process};
///
/// let lp = Loop::new()?;
/// let mut signals = Signals::new([SignalKind::SIGHUP, SignalKind::SIGUSR1])?;
/// process::kill(std::process::id(), SignalKind::SIGHUP)?;
/// assert_eq!(lp.block_on(signals.recv()), SignalKind::SIGHUP);
/// # Ok::<(), std::io::Error>(())
/// ```
#[must_use = "a handle closes when it is dropped"]
pub struct Signals {
    handles: Vec<Signal>,
    caught: Rc<EventQueue<SignalKind>>,
}

impl Signals {
    /// Watches for signals of these kinds.
    ///
    /// ```
    /// use blacklight::{Loop, SignalKind, Signals};
    ///
    /// let lp = Loop::new()?;
    /// let _ends = Signals::new([SignalKind::SIGINT, SignalKind::SIGTERM, SignalKind::SIGHUP])?;
    /// assert!(Signals::new([SignalKind::SIGKILL]).is_err(), "it cannot be caught");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn new(kinds: impl IntoIterator<Item = SignalKind>) -> io::Result<Signals> {
        let caught = Rc::new(EventQueue::new());
        let watch = |kind| {
            let handle = Signal::new()?;
            let caught = caught.clone();
            handle.start(kind, move |_, _, kind| {
                caught.update(|waiting| {
                    if !waiting.contains(&kind) {
                        waiting.push_back(kind);
                    }
                });
            })?;
            handle.unref();
            Ok(handle)
        };
        let handles = kinds.into_iter().map(watch).collect::<io::Result<_>>()?;
        Ok(Signals { handles, caught })
    }

    /// Waits for the next signal.
    ///
    /// ```
    /// use blacklight::{Loop, SignalKind, Signals, process};
    ///
    /// let lp = Loop::new()?;
    /// let mut signals = Signals::new([SignalKind::SIGUSR2])?;
    /// lp.block_on(async {
    ///     for _ in 0..2 {
    ///         process::kill(std::process::id(), SignalKind::SIGUSR2)?;
    ///         assert_eq!(signals.recv().await, SignalKind::SIGUSR2);
    ///     }
    ///     # Ok::<(), std::io::Error>(())
    /// })?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub async fn recv(&mut self) -> SignalKind {
        self.caught.pop().await
    }

    /// Polls for the next signal; see [`recv`](Signals::recv).
    ///
    /// ```
    /// use blacklight::{Loop, SignalKind, Signals, process};
    /// use std::future::poll_fn;
    ///
    /// let lp = Loop::new()?;
    /// let mut signals = Signals::new([SignalKind::SIGUSR1])?;
    /// process::kill(std::process::id(), SignalKind::SIGUSR1)?;
    /// let kind = lp.block_on(poll_fn(|context| signals.poll_recv(context)));
    /// assert_eq!(kind, SignalKind::SIGUSR1);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn poll_recv(&mut self, context: &mut Context<'_>) -> Poll<SignalKind> {
        self.caught.poll_pop(context)
    }
}

impl fmt::Debug for Signals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signals")
            .field("handles", &self.handles)
            .finish()
    }
}

/// Waits on the current loop for Ctrl-C (`SIGINT`), caught from the call on.
///
/// # Errors
///
/// [`Error::NoCurrentLoop`](crate::Error::NoCurrentLoop) if there is no
/// [current loop](crate::current).
///
/// ```
/// use blacklight::{Loop, SignalKind, process, signal};
///
/// let lp = Loop::new()?;
/// lp.block_on(async {
///     let pressed = signal::ctrl_c();
///     // Stands in for the key press.
///     process::kill(std::process::id(), SignalKind::SIGINT)?;
///     pressed.await
/// })?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn ctrl_c() -> impl Future<Output = io::Result<()>> + use<> {
    let signals = Signals::new([SignalKind::SIGINT]);
    async move {
        signals?.recv().await;
        Ok(())
    }
}
