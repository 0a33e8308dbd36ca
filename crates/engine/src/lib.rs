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
//! | poll handles | `poll.rs` |
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
mod run;
mod slab;
mod timer;
mod timer_queue;
mod wakeup;

pub use blacklight_sys::{Errno, RawFd, Timeout};
pub use engine::Engine;
pub use event::{Event, Readiness, Token};
pub use handle::{HandleKind, Walk};
pub use metrics::{IdleTime, Metrics};
pub use poller::{Action, Faults, Mechanism, Sim};
pub use run::{Mode, Run};
pub use slab::Key;
pub use wakeup::{Mailbox, Sender, Ticket};
