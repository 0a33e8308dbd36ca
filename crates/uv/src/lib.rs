//! `libuv.so.1` on the Blacklight engine: the C interface.
//!
//! Every exported function does the same four things: it checks its arguments, reads the handle's
//! key from the C struct, makes one safe call into the engine, and returns the result as libuv's
//! error code. Each function relies on its caller for what libuv's documentation requires: pointers
//! are valid, handles are initialised and not freed, and only one thread at a time uses a loop. It
//! relies on the caller for nothing else.
//!
//! Rules of this crate:
//!
//! 1. **No reference to the engine is held while user code runs.** [`engine::with`] lends it
//!    for the length of one call; `uv_run` calls back with nothing borrowed.
//! 2. **C structs are accessed by raw pointer only**, field by field, since the program may access
//!    them at any time. [`abi`] describes them and lists the fields that programs may use; constant
//!    assertions pin the offsets.
//! 3. **Nothing unwinds into C**: the release profile aborts on panic, and so does Rust at
//!    the border of an `extern "C"` function otherwise.
//! 4. **Memory that C callers see or free** comes from [`alloc`], which honours
//!    `uv_replace_allocator`.

#![allow(non_camel_case_types, reason = "the C names are the interface")]
#![allow(
    clippy::missing_safety_doc,
    reason = "what C callers owe is libuv's documentation, once for all; see above"
)]

pub mod abi;
pub mod alloc;
pub mod async_;
mod callbacks;
pub mod cpu;
pub mod descriptor;
pub mod dl;
pub mod dns;
pub mod engine;
pub mod environment;
pub mod error;
pub mod fs;
pub mod fs_event;
pub mod fs_poll;
pub mod guess;
pub mod handle;
pub mod host;
pub mod inet;
pub mod interfaces;
mod layout;
pub mod loop_;
pub mod loop_watcher;
pub mod memory;
pub mod metrics;
pub mod own_process;
pub mod packed;
pub mod pipe;
pub mod poll;
pub mod process;
pub mod process_title;
pub mod random;
pub mod req;
pub mod run;
pub mod signal;
pub mod stream;
pub mod sync;
pub mod tcp;
pub mod text;
pub mod thread;
pub mod time;
pub mod timer;
pub mod tty;
pub mod udp;
pub mod user;
pub mod version;
pub mod work;
pub mod wtf8;
