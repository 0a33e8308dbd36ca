//! libuv's event loop for Rust: owned handles, closures and futures, no callbacks while anything
//! is borrowed, and no `unsafe`.
//!
//! A [`Loop`] runs on one thread. Programs use it through futures or callbacks, and may mix both.
//!
//! # Futures
//!
//! [`Loop::block_on`] runs the loop until a future is ready, and [`spawn`] starts another beside
//! it. An echo server, with a task for each client:
//!
//! ```no_run
//! use blacklight::{Loop, TcpListener, TcpStream};
//! use std::io;
//!
//! async fn echo(stream: TcpStream) -> io::Result<()> {
//!     let mut buf = [0; 4096];
//!     loop {
//!         match stream.read(&mut buf).await? {
//!             0 => return Ok(()), // The client has left.
//!             count => stream.write_all(&buf[..count]).await?,
//!         }
//!     }
//! }
//!
//! fn main() -> io::Result<()> {
//!     let lp = Loop::new()?;
//!     lp.block_on(async {
//!         let listener = TcpListener::bind("127.0.0.1:7000").await?;
//!         loop {
//!             // An error is that of one client, or passes, as a lack of descriptors does.
//!             if let Ok((stream, _)) = listener.accept().await {
//!                 blacklight::spawn(echo(stream));
//!             }
//!         }
//!     })
//! }
//! ```
//!
//! Tasks need not be `Send`, so they may share data through [`Rc`](std::rc::Rc). [`sleep`],
//! [`timeout`] and [`interval`] wait; [`spawn_blocking`] runs a closure on the thread pool. Woken
//! tasks run right after the callback that woke them; see [`LoopHandle::spawn`].
//!
//! # Callbacks
//!
//! A handle belongs to a loop, does its work once started, and closes when dropped. A callback
//! may start, stop and drop any handle, including its own. [`Loop::run`] returns when there is
//! nothing left to do: an active handle keeps the loop running unless it is
//! [`unref`](Timer::unref)ed.
//!
//! ```
//! use blacklight::{Loop, Mode, Timer};
//! use std::time::Duration;
//!
//! fn main() -> std::io::Result<()> {
//!     let lp = Loop::new()?;
//!     let timer = Timer::new()?;
//!     let mut ticks = 0;
//!     timer.start_repeating(Duration::from_millis(100), move |_, timer| {
//!         ticks += 1;
//!         println!("tick {ticks}");
//!         if ticks == 3 {
//!             timer.stop();
//!         }
//!     })?;
//!     lp.run(Mode::Default);
//!     Ok(())
//! }
//! ```
//!
//! A handle that goes out of scope closes, and its callback is not called again. `detach` gives a
//! handle to the loop instead. The callback version of the echo server detaches its connections,
//! which would otherwise close as soon as they are accepted:
//!
//! ```no_run
//! use blacklight::{Loop, Mode, TcpListener, TcpStream};
//! use std::io;
//!
//! fn echo(client: TcpStream) -> io::Result<()> {
//!     client.read_start(|_, client, bytes| {
//!         let own = client.clone();
//!         let begun = match bytes {
//!             Ok([]) => client.shutdown_then(move |_, _| own.close()), // The client has left.
//!             Ok(bytes) => client.write_then(bytes, move |_, written| {
//!                 written.unwrap_or_else(|_| own.close());
//!             }),
//!             Err(error) => Err(error),
//!         };
//!         begun.unwrap_or_else(|_| client.close());
//!     })?;
//!     client.detach();
//!     Ok(())
//! }
//!
//! fn main() -> io::Result<()> {
//!     let lp = Loop::new()?;
//!     let listener = lp.block_on(TcpListener::bind("127.0.0.1:7000"))?;
//!     listener.accept_start(|_, _, client| {
//!         if let Err(error) = client.and_then(echo) {
//!             eprintln!("cannot serve a client: {error}");
//!         }
//!     })?;
//!     lp.run(Mode::Default);
//!     Ok(())
//! }
//! ```
//!
//! # Which loop
//!
//! There is one rule: **what is made belongs to the current loop.** Constructors and functions
//! never take a loop. The current loop is the one whose callbacks and tasks run; outside of these,
//! it is the only loop that the thread has made. A thread with several loops says which one it
//! means with [`LoopHandle::enter`]. An `async fn` takes the loop that first polls it; all else
//! takes the loop of the call.
//!
//! Without a current loop, whatever returns an [`io::Result`](std::io::Result) fails with
//! [`Error::NoCurrentLoop`], and all else panics.
//!
//! | type | what it is |
//! | --- | --- |
//! | [`Loop`] | the owner, which alone runs the loop and ends it when dropped |
//! | [`LoopHandle`] | a reference that is cheap to clone: [`current()`], and the first argument of callbacks |
//! | [`WeakLoopHandle`] | a reference that does not keep the loop's descriptors |
//!
#![doc = include_str!("send.md")]
//! # What else there is
//!
//! | to work with | use |
//! | --- | --- |
//! | connections | [`TcpListener`], [`TcpStream`], [`UnixListener`], [`UnixStream`], [`Pipe`], [`Tty`] |
//! | datagrams | [`UdpSocket`] |
//! | other descriptors | [`AsyncFd`] |
//! | files, processes, signals, names | [`fs`], [`process`], [`signal`], [`dns`] |
//! | a loop for each processor | [`multi`], and [`Stop`] to end it all |
//! | other threads | [`Remote`], which spawns tasks; [`Async`] and its [`Sender`], which wake |
//! | each turn of the loop | [`Prepare`], [`Check`], [`Idle`], and [`LoopHandle::observe`] |
//! | Node's scheduling | [`node`]: `setTimeout`, `setImmediate`, `process.nextTick`, in Node's order |
//!
//! Streams, files and the standard streams implement the traits of `futures-io`. Three features add
//! those of others:
//!
//! | feature | adds |
//! | --- | --- |
//! | `tokio` | tokio's traits, with which libraries for its streams work, such as tokio-rustls |
//! | `hyper` | hyper's traits for streams, `LoopExecutor` and `LoopTimer` |
//! | `hyper-util` | `LoopConnector`, for the pooled client of hyper-util |
//!
//! # Tracing
//!
//! The feature `tracing` tells subscribers what loops do, with the target `blacklight` and the
//! field `loop`, the name of the loop. Events:
//!
//! | level | message | further fields |
//! | --- | --- | --- |
//! | `DEBUG` | `loop made`, `loop gone` | |
//! | `TRACE` | `dispatch`, before each callback | `phase` as in [`Phase::name`], `event` |
//! | `TRACE` | `task spawned`, `task over`, `task cancelled` | `task` |
//! | `WARN` | `task panicked` | `task` |
//!
//! Spans, which nest: what a program says in a callback or task is in the spans of these. All have
//! the level `TRACE`. A loop opens them from its next run on when a subscriber listens, and asks
//! only when a run begins.
//!
//! | span | from | to | further fields |
//! | --- | --- | --- | --- |
//! | `run` | [`Loop::run`] begins; [`Loop::block_on`] begins to wait | its end | `mode` |
//! | `callback` | a callback begins | it and the tasks that it woke have run | `phase`, `turn`, `event` |
//! | `poll` | a task is polled | it is pending or over | `task`; none for the future of `block_on` |
//! | `spin` | the loop asks again and again | it sleeps or has something to do | `found` |
//! | `sleep` | the loop sleeps | it wakes up | `timeout` |
//!
//! A subscriber hears of `run`, `callback`, `spin` and `sleep` while the loop is at work, so it may
//! wake tasks of the loop then, but not use its handles.
//!
//! # Examples
//!
//! The directory `examples` has whole programs: servers for echo, chat and HTTP, one on all cores,
//! a port scanner, a supervisor of processes, and others. `cargo run --example echo` runs one.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod address;
mod async_fd;
mod code;
mod current;
pub mod dns;
mod error;
mod event_queue;
pub mod fs;
mod fs_event;
mod fs_poll;
mod handle;

#[cfg(feature = "hyper")]
mod hyper;
#[cfg(feature = "hyper-util")]
mod hyper_client;
mod join_set;
mod local;
mod loop_;
mod mechanism;
pub mod multi;
pub mod node;
mod observe;
mod options;
pub mod process;
mod random;
mod remote;
pub mod signal;
mod stdio;
mod stop;
mod stream;
mod streams;
mod table;
mod task;
mod tcp;
mod time;
mod timer;
mod trace;
mod tty;
mod udp;
mod unix;
mod wakeup;
mod watcher;
mod work;

#[cfg(feature = "hyper")]
pub use self::hyper::{LoopExecutor, LoopTimer};
#[cfg(feature = "hyper-util")]
pub use self::hyper_client::LoopConnector;
pub use address::ToSocketAddrs;
pub use async_fd::AsyncFd;
pub use blacklight_engine::Phase;
pub use current::{current, spawn, spawn_blocking, try_current};
pub use error::Error;
pub use fs_event::{ChangeKind, FsChange, FsChanges, FsEvent};
pub use fs_poll::{FsPoll, StatChange, StatChanges};
pub use join_set::{AbortOnDrop, JoinSet};
pub use local::Local;
pub use loop_::{Builder, Loop, LoopHandle, WeakLoopHandle};
pub use mechanism::Mechanism;
pub use observe::Dispatch;
pub use options::{BindOptions, KeepAlive, UdpOptions};
pub use random::{random, random_bytes};
pub use remote::{Remote, RemoteHandle};
pub use signal::{Signal, SignalKind, Signals};
pub use stdio::{Stderr, Stdin, Stdout, stderr, stdin, stdout};
pub use stop::{Stop, Stopped};
pub use stream::{ReadHalf, ReuniteError, WriteHalf};
pub use task::{JoinError, JoinHandle, yield_now};
pub use tcp::{TcpListener, TcpStream};
pub use time::{Elapsed, Interval, Sleep, interval, sleep, sleep_until, timeout};
pub use timer::Timer;
pub use tty::{Tty, TtySize, reset_terminal};
pub use udp::{Datagram, SendQueue, UdpSocket};
pub use unix::{Pipe, UnixListener, UnixStream};
pub use wakeup::Async;
pub use watcher::{Check, Idle, Prepare};
pub use work::{Blocking, Work};

// Types of the engine, each with an example.

/// The counters that [`LoopHandle::metrics`] returns.
///
/// ```
/// use blacklight::{Async, Loop, Mode};
///
/// let lp = Loop::new()?;
/// let wakeup = Async::new(|lp, _| lp.stop())?;
/// wakeup.sender().send();
/// lp.run(Mode::Default);
/// let metrics = lp.metrics();
/// assert_eq!((metrics.loop_count, metrics.events), (1, 1));
/// # Ok::<(), std::io::Error>(())
/// ```
pub use blacklight_engine::Metrics;

/// When [`Loop::run`] returns.
///
/// ```
/// use blacklight::{Loop, Mode, Timer};
/// use std::time::Duration;
///
/// let lp = Loop::new()?;
/// let timer = Timer::new()?;
/// timer.start_repeating(Duration::from_millis(1), |_, _| println!("tick"))?;
/// lp.run(Mode::NoWait); // Runs what is due now, without waiting.
/// lp.run(Mode::Once); // Waits for one tick.
/// timer.stop();
/// lp.run(Mode::Default); // Runs until nothing is left to do.
/// # Ok::<(), std::io::Error>(())
/// ```
pub use blacklight_engine::Mode;

/// The events that a [`AsyncFd`] watches for and reports.
///
/// ```
/// use blacklight::Readiness;
///
/// let both = Readiness::READABLE | Readiness::WRITABLE;
/// assert!(both.contains(Readiness::READABLE));
/// assert!(!both.contains(Readiness::DISCONNECT));
/// ```
pub use blacklight_engine::Readiness;

/// Wakes an [`Async`] from any thread.
///
/// ```
/// use blacklight::{Async, Loop, Mode, Sender};
///
/// let lp = Loop::new()?;
/// let wakeup = Async::new(|lp, _| lp.stop())?;
/// let sender: Sender = wakeup.sender();
/// std::thread::scope(|scope| {
///     scope.spawn(|| sender.send());
///     lp.run(Mode::Default);
/// });
/// # Ok::<(), std::io::Error>(())
/// ```
pub use blacklight_engine::Sender;

/// The modes of a terminal; see [`Tty::set_mode`].
///
/// ```no_run
/// use blacklight::{Loop, Tty, TtyMode};
///
/// let lp = Loop::new()?;
/// let tty = Tty::new(std::io::stdin())?;
/// tty.set_mode(TtyMode::Raw)?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub use blacklight_engine::TtyMode;

/// Runs the programs of the README with those of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
