//! Blacklight's event loop: phases, handles and pollers.
//!
//! The engine calls nobody back and contains no unsafe code. A front end makes handles,
//! asks for the [next](Engine::next) [`Event`] and calls whatever that means to its user,
//! at a time when nothing of the engine is borrowed; see [`Engine`] for an example.
//!
//! Where to find what:
//!
//! | | |
//! | --- | --- |
//! | the phases of a turn | `run.rs` |
//! | what all handles have in common; close, ref, walk | `handle.rs` |
//! | timers | `timer.rs`, `timer_queue.rs` |
//! | idle, prepare, check | `loop_watcher.rs` |
//! | async handles, wake-ups from other threads | `wakeup.rs` |
//! | requests of the thread pool | `work.rs`; the pool itself: `pool.rs` |
//! | poll handles | `poll.rs` |
//! | streams: read, write, connect, listen | `stream/` |
//! | TCP, pipes | `tcp.rs`, `pipe.rs` |
//! | watching descriptors | `io.rs` |
//! | select, poll, epoll and the simulated kernel | `poller/` |

#![forbid(unsafe_code)]

mod engine;
mod event;
mod handle;
mod io;
mod loop_watcher;
mod metrics;
mod poll;
mod poller;
mod pool;
mod run;
mod pipe;
mod slab;
mod stream;
mod tcp;
mod spin;
mod timer;
mod timer_queue;
mod wakeup;
mod work;

pub use blacklight_sys::job::Job;
pub use blacklight_sys::buffer::{Buffers, Room};
pub use blacklight_sys::fd::Descriptor;
pub use blacklight_sys::socket::Address;
pub use blacklight_sys::{Errno, RawFd, Timeout};
pub use engine::Engine;
pub use event::{Event, Readiness, Token};
pub use handle::{HandleKind, Walk};
pub use metrics::{IdleTime, Metrics};
pub use poller::{Action, Faults, Mechanism, Sim};
pub use pool::{PoolMetrics, WorkKind, pool_metrics, shut_down_pool};
pub use run::{Mode, Run};
pub use slab::Key;
pub use tcp::{BindOptions, KeepAlive};
pub use wakeup::{Mailbox, Sender, Ticket};
pub use work::RequestKey;
