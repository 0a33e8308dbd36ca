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
//!     let listener = TcpListener::bind(&lp, "127.0.0.1:7000".parse().unwrap())?;
//!     lp.block_on(async {
//!         loop {
//!             let (stream, _) = listener.accept().await?;
//!             blacklight::spawn(echo(stream));
//!         }
//!     })
//! }
//! ```
//!
//! Tasks need not be `Send`, so they may share data through [`Rc`](std::rc::Rc). [`sleep`],
//! [`timeout`] and [`interval`] wait; [`spawn_blocking`] runs a closure on the thread pool. Woken
//! tasks run right after the callback that woke them; see [`Loop::spawn`].
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
//!     let timer = Timer::new(&lp)?;
//!     let mut ticks = 0;
//!     timer.start_repeating(Duration::from_millis(1), move |_, timer| {
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
//!     let listener = TcpListener::bind(&lp, "127.0.0.1:7000".parse().unwrap())?;
//!     listener.accept_start(|_, _, client| {
//!         if let Err(error) = client.and_then(echo) {
//!             eprintln!("cannot serve a client: {error}");
//!         }
//!     });
//!     lp.run(Mode::Default);
//!     Ok(())
//! }
//! ```
//!
//! # What else there is
//!
//! | to work with | use |
//! | --- | --- |
//! | connections | [`TcpListener`], [`TcpStream`], [`UnixListener`], [`UnixStream`], [`Pipe`], [`Tty`] |
//! | datagrams | [`UdpSocket`] |
//! | other descriptors | [`Poll`] |
//! | files, processes, signals, names | [`fs`], [`process`], [`signal`], [`dns`] |
//! | other threads | [`Async`] and its [`Sender`], the only type that is `Send` |
//! | each turn of the loop | [`Prepare`], [`Check`], [`Idle`], and [`Loop::observe`] |
//! | Node's scheduling | [`node`]: `setTimeout`, `setImmediate`, `process.nextTick`, in Node's order |
//!
//! Streams implement the traits of `futures-io`. The feature `tokio` adds tokio's traits, so that
//! libraries written for tokio, such as tokio-rustls, work on these streams. The feature `hyper`
//! adds hyper's traits, `LoopExecutor` and `LoopTimer`. The feature `tracing` emits events with
//! the target `blacklight` and the field `loop`, the name of the loop:
//!
//! | level | message | further fields |
//! | --- | --- | --- |
//! | `DEBUG` | `loop made`, `loop gone` | |
//! | `TRACE` | `dispatch`, before each callback | `phase` as in [`Phase::name`], `event` |
//! | `TRACE` | `task spawned`, `task over`, `task cancelled` | `task` |
//! | `WARN` | `task panicked` | `task` |
//!
//! The directory `examples` has whole programs: servers for echo, chat and HTTP, one on all cores,
//! a port scanner, a supervisor of processes, and others. `cargo run --example echo` runs one.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod current;
pub mod dns;
pub mod fs;
mod fs_event;
mod fs_poll;
mod handle;
#[cfg(feature = "hyper")]
mod hyper;
mod loop_;
pub mod node;
mod observe;
mod poll;
pub mod process;
mod queue;
mod random;
pub mod signal;
mod stream;
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
pub use blacklight_engine::Phase;
pub use current::{current, interval, sleep, sleep_until, spawn, spawn_blocking, timeout};
pub use fs_event::{ChangeKind, FsChange, FsChanges, FsEvent};
pub use fs_poll::{FsPoll, StatChange, StatChanges};
pub use loop_::{Builder, Loop};
pub use observe::Dispatch;
pub use poll::Poll;
pub use random::{random, random_bytes};
pub use signal::{Signal, SignalKind, Signals};
pub use stream::{ReadHalf, WriteHalf};
pub use task::{JoinError, JoinHandle};
pub use tcp::{TcpListener, TcpStream};
pub use time::{Elapsed, Interval, Sleep};
pub use timer::Timer;
pub use tty::{Tty, reset_terminal};
pub use udp::{Datagram, UdpSocket};
pub use unix::{Pipe, UnixListener, UnixStream};
pub use wakeup::Async;
pub use watcher::{Check, Idle, Prepare};
pub use work::{Blocking, Work};

// Types of the engine, each with an example.

/// Options of [`TcpListener::bind_with`].
///
/// ```
/// use blacklight::{BindOptions, Loop, TcpListener};
///
/// let lp = Loop::new()?;
/// let options = BindOptions { reuse_port: true, ..BindOptions::default() };
/// TcpListener::bind_with(&lp, "127.0.0.1:0".parse().unwrap(), options, 128)?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub use blacklight_engine::BindOptions;

/// When the kernel probes an idle connection; see [`TcpStream::set_keepalive`].
///
/// ```
/// use blacklight::KeepAlive;
///
/// // After a minute of silence, the peer has half a minute to answer.
/// let keepalive = KeepAlive { idle: 60, interval: 10, count: 3 };
/// assert_eq!(keepalive.interval * keepalive.count, 30);
/// ```
pub use blacklight_engine::KeepAlive;

/// The system call that a loop polls with; see [`Builder::poller`].
///
/// ```
/// use blacklight::{Loop, Mechanism};
///
/// let poll = Mechanism::from_name("poll").unwrap();
/// assert_eq!(Loop::builder().poller(poll).build()?.mechanism().name(), "poll");
/// # Ok::<(), std::io::Error>(())
/// ```
pub use blacklight_engine::Mechanism;

/// The counters that [`Loop::metrics`] returns.
///
/// ```
/// use blacklight::{Async, Loop, Mode};
///
/// let lp = Loop::new()?;
/// let wakeup = Async::new(&lp, |lp, _| lp.stop())?;
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
/// let timer = Timer::new(&lp)?;
/// timer.start_repeating(Duration::from_millis(1), |_, _| println!("tick"))?;
/// lp.run(Mode::NoWait); // Runs what is due now, without waiting.
/// lp.run(Mode::Once); // Waits for one tick.
/// timer.stop();
/// lp.run(Mode::Default); // Runs until nothing is left to do.
/// # Ok::<(), std::io::Error>(())
/// ```
pub use blacklight_engine::Mode;

/// The events that a [`Poll`] watches for and reports.
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
/// let wakeup = Async::new(&lp, |lp, _| lp.stop())?;
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
/// let tty = Tty::new(&lp, std::io::stdin())?;
/// tty.set_mode(TtyMode::Raw)?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub use blacklight_engine::TtyMode;

/// Options of [`UdpSocket::bind_with`].
///
/// ```
/// use blacklight::{Loop, UdpBind, UdpSocket};
///
/// let lp = Loop::new()?;
/// let options = UdpBind { errors: true, ..UdpBind::default() };
/// UdpSocket::bind_with(&lp, "127.0.0.1:0".parse().unwrap(), options)?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub use blacklight_engine::UdpBind;

/// Which other sockets may bind the address of a [`UdpSocket`]; part of [`UdpBind`].
///
/// ```
/// use blacklight::{UdpBind, UdpReuse};
///
/// let reuse = UdpReuse { address: true, ..UdpReuse::default() };
/// let options = UdpBind { reuse, ..UdpBind::default() };
/// assert!(options.reuse.address && !options.reuse.port);
/// ```
pub use blacklight_engine::UdpReuse;
