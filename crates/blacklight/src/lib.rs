//! libuv's event loop for Rust: owned handles, closures and futures over one loop, no callbacks
//! while anything is borrowed, and no `unsafe`.
//!
//! A [`Loop`] runs on one thread. Handles are made on it, do something when they are
//! started, and are closed when they are dropped; a callback is free to start, stop and drop
//! any handle, its own included.
//!
//! ```
//! use blacklight::{Loop, Mode, Timer};
//! use std::{cell::Cell, rc::Rc, time::Duration};
//!
//! let lp = Loop::new()?;
//! let timer = Timer::new(&lp)?;
//! let ticks = Rc::new(Cell::new(0));
//! let counted = ticks.clone();
//! timer.start_repeating(Duration::from_millis(1), move |_, timer| {
//!     counted.set(counted.get() + 1);
//!     if counted.get() == 3 {
//!         timer.stop();
//!     }
//! })?;
//! lp.run(Mode::Default);
//! assert_eq!(ticks.get(), 3);
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! Handles keep the loop running while they are active, unless they are
//! [`unref`](Timer::unref)ed.
//!
//! The same loop runs futures, which may use the same handles:
//!
//! ```
//! use blacklight::{Loop, TcpListener, TcpStream, current, spawn};
//!
//! let lp = Loop::new()?;
//! let listener = TcpListener::bind(&lp, "127.0.0.1:0".parse().unwrap())?;
//! let address = listener.local_addr()?;
//! let heard = lp.block_on(async move {
//!     let server = spawn(async move {
//!         let (stream, _) = listener.accept().await?;
//!         stream.write_all(b"what nobody saw before").await
//!     });
//!     let client = TcpStream::connect(&current(), address).await?;
//!     let (mut heard, mut room) = (Vec::new(), [0; 64]);
//!     loop {
//!         match client.read(&mut room).await? {
//!             0 => break,
//!             count => heard.extend_from_slice(&room[..count]),
//!         }
//!     }
//!     server.await??;
//!     Ok::<_, std::io::Error>(heard)
//! })?;
//! assert_eq!(heard, b"what nobody saw before");
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! Woken tasks run right after the callback that woke them; see [`Loop::spawn`]. Nothing here
//! is `Send` but the [`Sender`] of an [`Async`] and the wakers of tasks.
//!
//! The module [`node`] has `setTimeout`, `setImmediate`, `process.nextTick` and the rest of
//! Node's scheduling, in Node's order.
//!
//! | feature | what it adds |
//! | --- | --- |
//! | `tokio` | tokio's `AsyncRead` and `AsyncWrite` for streams, besides those of futures |
//! | `hyper` | hyper's `Read` and `Write` for streams, `LoopExecutor`, `LoopTimer` |
//! | `tracing` | tells `tracing` of loops, callbacks and tasks |

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
pub use blacklight_engine::{BindOptions, KeepAlive, TtyMode, UdpBind, UdpReuse};
pub use blacklight_engine::{Mechanism, Metrics, Mode, Readiness, Sender};
pub use current::{current, interval, sleep, sleep_until, spawn, spawn_blocking, timeout};
pub use fs_event::{ChangeKind, FsChange, FsChanges, FsEvent};
pub use fs_poll::{FsPoll, StatChange, StatChanges};
pub use loop_::{Builder, Loop};
pub use observe::{Dispatch, Phase};
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
