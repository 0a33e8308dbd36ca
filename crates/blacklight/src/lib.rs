//! libuv's event loop for Rust: owned handles, closures and futures, no callbacks while anything
//! is borrowed, and no `unsafe`.
//!
//! A [`Loop`] runs on one thread. What it does can be said in two ways, which mix.
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
//!     let mut room = [0; 4096];
//!     loop {
//!         match stream.read(&mut room).await? {
//!             0 => return Ok(()), // The client has left.
//!             count => stream.write_all(&room[..count]).await?,
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
//! Tasks need not be `Send`, so they may share what they like by [`Rc`](std::rc::Rc). [`sleep`],
//! [`timeout`] and [`interval`] wait, [`spawn_blocking`] has a closure run by the thread pool.
//! Woken tasks run right after the callback that woke them; see [`Loop::spawn`].
//!
//! # Callbacks
//!
//! Handles are made on a loop, do something when they are started, and are closed when they are
//! dropped; a callback is free to start, stop and drop any handle, its own included.
//! [`Loop::run`] returns when there is nothing more to do: handles keep it running while they
//! are active, unless they are [`unref`](Timer::unref)ed.
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
//! A handle that goes out of scope is closed, and its callback is not called any more. One that
//! nobody wants to hold is given to the loop by `detach`, as the connections of the same echo
//! server in this style, which would otherwise be closed as soon as they are accepted:
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
//!             eprintln!("a client is turned away: {error}");
//!         }
//!     });
//!     lp.run(Mode::Default);
//!     Ok(())
//! }
//! ```
//!
//! # What else there is
//!
//! | for | there is |
//! | --- | --- |
//! | connections | [`TcpListener`], [`TcpStream`], [`UnixListener`], [`UnixStream`], [`Pipe`], [`Tty`] |
//! | datagrams | [`UdpSocket`] |
//! | other descriptors | [`Poll`] |
//! | the machine | [`fs`], [`process`], [`signal`], [`dns`] |
//! | other threads | [`Async`] and its [`Sender`], which alone is `Send` |
//! | each turn of the loop | [`Prepare`], [`Check`], [`Idle`], and [`Loop::observe`] |
//! | Node's scheduling | [`node`]: `setTimeout`, `setImmediate`, `process.nextTick`, in Node's order |
//!
//! Streams have the traits of `futures-io`. With the feature `tokio` they have tokio's as well,
//! so that what is written for those works, such as TLS by tokio-rustls; with the feature
//! `hyper`, hyper's, and there are `LoopExecutor` and `LoopTimer` for it. The feature `tracing` tells
//! `tracing` what happens, always with the target `blacklight` and the name of the `loop`:
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

// What is the engine's own, each with an example of its use here.

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

/// When a silent connection is probed; see [`TcpStream::set_keepalive`].
///
/// ```
/// use blacklight::KeepAlive;
///
/// // Whoever has been silent for a minute has half a minute to answer.
/// let patience = KeepAlive { idle: 60, interval: 10, count: 3 };
/// assert_eq!(patience.interval * patience.count, 30);
/// ```
pub use blacklight_engine::KeepAlive;

/// What a loop waits with; see [`Builder::poller`].
///
/// ```
/// use blacklight::{Loop, Mechanism};
///
/// let poll = Mechanism::from_name("poll").unwrap();
/// assert_eq!(Loop::builder().poller(poll).build()?.mechanism().name(), "poll");
/// # Ok::<(), std::io::Error>(())
/// ```
pub use blacklight_engine::Mechanism;

/// What [`Loop::metrics`] has counted.
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

/// How long [`Loop::run`] goes on.
///
/// ```
/// use blacklight::{Loop, Mode, Timer};
/// use std::time::Duration;
///
/// let lp = Loop::new()?;
/// let timer = Timer::new(&lp)?;
/// timer.start_repeating(Duration::from_millis(1), |_, _| println!("tick"))?;
/// lp.run(Mode::NoWait); // Whatever can be done now.
/// lp.run(Mode::Once); // One tick.
/// timer.stop();
/// lp.run(Mode::Default); // All that is left to do.
/// # Ok::<(), std::io::Error>(())
/// ```
pub use blacklight_engine::Mode;

/// What a [`Poll`] watches for, and what it finds.
///
/// ```
/// use blacklight::Readiness;
///
/// let both = Readiness::READABLE | Readiness::WRITABLE;
/// assert!(both.contains(Readiness::READABLE));
/// assert!(!both.contains(Readiness::DISCONNECT));
/// ```
pub use blacklight_engine::Readiness;

/// Wakes an [`Async`]: the only part of a loop that other threads may have.
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

/// What [`Tty::set_mode`] makes of a terminal.
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

/// Who else may have the address of a [`UdpSocket`]; part of [`UdpBind`].
///
/// ```
/// use blacklight::{UdpBind, UdpReuse};
///
/// let reuse = UdpReuse { address: true, ..UdpReuse::default() };
/// let options = UdpBind { reuse, ..UdpBind::default() };
/// assert!(options.reuse.address && !options.reuse.port);
/// ```
pub use blacklight_engine::UdpReuse;
