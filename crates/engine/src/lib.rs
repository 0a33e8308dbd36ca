//! Blacklight's event loop: phases, handles and pollers.
//!
//! The engine never calls back and contains no unsafe code. A front end makes handles,
//! asks for the [next](Engine::next) [`Event`] and calls whatever that means to its user,
//! at a time when nothing of the engine is borrowed; see [`Engine`] for an example.
//!
//! Where things are:
//!
//! | | |
//! | --- | --- |
//! | the phases of a turn | `run.rs` |
//! | the handle in progress between two events, and its bounds | `progress.rs` |
//! | the state that all handles have; close, ref, walk | `handle.rs` |
//! | handles of a front end's own making | `custom.rs` |
//! | timers | `timer.rs`, `timer_queue.rs` |
//! | idle, prepare, check | `loop_watcher.rs` |
//! | async handles, wake-ups from other threads | `wakeup.rs`; closing them: `gate.rs` |
//! | the count of requests in progress | `request.rs` |
//! | requests of the thread pool | `work.rs`; the pool itself: `pool/` |
//! | requests for files on a ring | `ring.rs` |
//! | poll handles | `poll.rs` |
//! | streams: read, write, connect, listen | `stream/` |
//! | TCP, pipes, terminals | `tcp.rs`, `pipe.rs`, `tty.rs` |
//! | UDP | `udp/` |
//! | signals, child processes | `signal.rs`, `process.rs` |
//! | file system event handles | `fs_event/` |
//! | whether and how long to spin before sleeping | `patience/` |
//! | waiting: watchers, sources, spinning, sleeping | `driver/` |
//! | waiting for descriptors, a file for each mechanism, and the simulated kernel | `poller/` |
//! | observers of the loop | `probe.rs` |

#![forbid(unsafe_code)]

mod custom;
mod driver;
mod engine;
mod event;
mod fs_event;
mod gate;
mod handle;
mod list;
mod loop_watcher;
mod mailbox;
mod metrics;
#[cfg(all(test, loom))]
mod models;
mod patience;
mod pipe;
mod poll;
mod poller;
mod pool;
mod probe;
mod process;
mod progress;
mod readiness;
mod recorder;
mod request;
mod ring;
mod run;
mod signal;
mod slab;
mod stream;
mod sync;
mod tcp;
mod timer;
mod timer_queue;
mod tty;
mod udp;
mod wakeup;
mod work;

pub use blacklight_sys::buffer::{Buffers, Room, Space};
pub use blacklight_sys::datagram::{
    AddressRef, BATCH, Datagram, Inbox, Outbox, Report, SenderRoom,
};
pub use blacklight_sys::fd::{Descriptor, SharedFd};
pub use blacklight_sys::job::Job;
pub use blacklight_sys::multicast::{Group, Interface};
pub use blacklight_sys::process::{Command, SpawnError, Stdio, Strings, StringsBuf};
pub use blacklight_sys::ring::Operation;
pub use blacklight_sys::socket::Address;
pub use blacklight_sys::{Errno, RawFd, Timeout};
pub use engine::Engine;
pub use event::{Event, Token};
pub use fs_event::Change;
pub use gate::Gate;
pub use handle::{HandleKind, Walk};
pub use mailbox::{Mailbox, Sender, Ticket};
pub use metrics::{IdleTime, Metrics};
pub use patience::Spinning;
pub use poller::{Action, Faults, Mechanism, Sim, Tally};
pub use pool::{PoolMetrics, WorkKind, pool_metrics, set_pool_threads, shut_down_pool};
pub use probe::{Boundary, Phase, Probe};
pub use readiness::{Interest, Readiness};
pub use recorder::{Called, Front, remove_record};
pub use run::{Mode, Run};
pub use slab::Key;
pub use tcp::{BindOptions, KeepAlive};
pub use tty::{TtyMode, reset_terminal};
pub use udp::{UdpBind, UdpReuse};
pub use work::RequestKey;
