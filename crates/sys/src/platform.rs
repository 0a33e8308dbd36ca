//! The modules that a platform must supply.
//!
//! `unix/` needs only POSIX. All else that this crate needs from the operating system comes from
//! the platform's own folder, through the modules listed here. To port Blacklight to another Unix,
//! write a folder with these modules and name it below.
//!
//! Outside of this crate the following depends on Linux:
//!
//! - The engine's pollers. `poller/epoll.rs` is the default one, through `sys::epoll`, which is not
//!   listed here, and `poller/no_epoll.rs` takes its place elsewhere; `poller/sim.rs` asks it for the
//!   readiness of real descriptors; and `poller/bits.rs` expects Linux' numbers for the bits of
//!   `poll`. Select and poll need nothing more, and no other module of the engine depends on the
//!   system.
//! - Recording. `crates/record` reads `/proc`, wakes the loops of other processes through
//!   `pidfd_getfd`, and permits readers to do that by `PR_SET_PTRACER`.
//! - Two features of `crates/blacklight`: abstract names of Unix sockets (`unix.rs`), and opening a
//!   pipe among the standard streams anew through `/proc/self/fd` (`stdio.rs`).
//! - `crates/swap` and `crates/cli`, which work on ELF files and on `/proc`.

#[cfg(target_os = "linux")]
use crate::linux as system;

/// `IOV_MAX` and `MAX_BYTES`: the most buffers that one system call takes, and the most bytes.
pub(crate) use system::buffer;
/// `ChildWatch`: a descriptor that becomes readable when a child exits, and a way to send the child
/// a signal.
pub(crate) use system::child;
/// `copy_range`, `send_file` and `clone`: copies files inside the kernel, as far as possible.
pub(crate) use system::copy;
/// `all`, the model, speed and times of each processor, and `parallelism`.
pub use system::cpu;
/// `Inbox` and `Outbox`: batches of datagrams. `receive_error`: the errors that a socket has
/// queued.
pub(crate) use system::datagram;
/// `location`: the address of `errno`.
pub(crate) use system::errno;
/// `is_closed_despite`: the errors of `close` after which the descriptor is closed.
pub(crate) use system::file;
/// `FileWatcher` and its `Record`s: changes to files. `Folder`: an open directory of a watched
/// tree.
pub use system::file_watch;
/// `uptime`, `load_averages`, and `numbers`, which reads such figures from a text.
pub(crate) use system::host;
/// `physical`, an interface's hardware address, and `belongs_to`, which recognises aliases by their
/// names.
pub(crate) use system::interfaces;
/// `free`, `total`, `constrained`, `available` and `resident_set`.
pub use system::memory;
/// `executable`, the path of the program, `is_privileged`, and `RUSAGE_THREAD`.
pub(crate) use system::own_process;
/// `POLLRDHUP`.
pub(crate) use system::poll;
/// `fill`: random bytes by a system call, or `ENOSYS`.
pub(crate) use system::random;
/// Errors and limits of `<netdb.h>`.
pub(crate) use system::resolver;
/// `Ring`: file requests that the kernel runs in the background. On a platform without rings,
/// making a `Ring` fails with `ENOSYS`, and the thread pool runs all requests.
pub use system::ring;
/// `SIGNALS`, the highest number, and signals that POSIX does not name.
pub(crate) use system::signal;
/// Options that keep connections alive, and the lengths of Unix sockets' addresses.
pub(crate) use system::socket;
/// `start`: creates a child that shares its parent's memory, or has a copy of it; and the calls
/// that such a child makes: `default_signals`, `unblock_signals`, `drop_groups`, `set_gid`,
/// `set_uid`.
pub(crate) use system::spawn;
/// `query` and `query_open`: a file's metadata, with its birth time if possible.
pub(crate) use system::stat;
/// `write_without_sigpipe`: a flag for a write to a pipe, if there is one.
pub(crate) use system::stream;
/// `is_controller`, whether a descriptor is a pseudo-terminal's controlling side, and `path_of`, a
/// path to an open terminal.
pub(crate) use system::terminal;
/// Names, affinity and niceness of threads.
pub(crate) use system::thread;
/// `Waker`: wakes a loop from other threads and signal handlers.
pub use system::waker;
