//! What a platform must supply.
//!
//! `unix/` has what POSIX has. All else that this crate needs from the operating system comes from the
//! platform's own folder, by the modules that are listed here. To bring Blacklight to another Unix, write
//! a folder with these modules and name it below; nothing else in the crate, and nothing above it, asks
//! which system it runs on.

#[cfg(target_os = "linux")]
use crate::linux as system;

/// `IOV_MAX` and `MAX_BYTES`: the most buffers that one system call takes, and the most bytes.
pub(crate) use system::buffer;
/// `ChildWatch`: a descriptor that tells of the end of one child, and a way to send the child a signal.
pub(crate) use system::child;
/// `copy_range`, `send_file` and `clone`: copying files inside the kernel, as far as it can.
pub(crate) use system::copy;
/// `all`, what is known of each processor, and `parallelism`.
pub use system::cpu;
/// `Inbox` and `Outbox`: batches of datagrams. `receive_error`: errors that a socket has kept.
pub(crate) use system::datagram;
/// `location`: where the C library keeps `errno`.
pub(crate) use system::errno;
/// `is_gone_with`: the errors of `close` after which the descriptor is closed.
pub(crate) use system::file;
/// `FileWatcher` and its `Record`s: changes to files. `Folder`: a directory that is reached step by step.
pub use system::file_watch;
/// `uptime`, `load_averages`, and `numbers`, which reads such figures from a text.
pub(crate) use system::host;
/// `physical`, an interface's hardware address, and `belongs_to`, which knows aliases by their names.
pub(crate) use system::interfaces;
/// `free`, `total`, `constrained`, `available` and `resident_set`.
pub use system::memory;
/// `executable`, the path of the program, and `RUSAGE_THREAD`.
pub(crate) use system::own_process;
/// `POLLRDHUP`.
pub(crate) use system::poll;
/// `fill`: random bytes by a system call, or `ENOSYS`.
pub(crate) use system::random;
/// Errors and limits of `<netdb.h>`.
pub(crate) use system::resolver;
/// `Ring`: requests for files that the kernel does in the background. A platform without one says `ENOSYS` when a
/// `Ring` is to be made, and the thread pool does all requests.
pub use system::ring;
/// `SIGNALS`, the highest number, and signals that POSIX does not name.
pub(crate) use system::signal;
/// Options that keep connections alive, and the lengths of Unix sockets' addresses.
pub(crate) use system::socket;
/// `start`: makes a child that shares the memory of its parent, or has a copy of it. And what such a child
/// does to itself: `default_signals`, `unblock_signals`, `drop_groups`, `set_gid`, `set_uid`.
pub(crate) use system::spawn;
/// `query` and `query_open`: what is known about a file, with its birth time if possible.
pub(crate) use system::stat;
/// `write_without_sigpipe`: a flag for a write to a pipe, if there is one.
pub(crate) use system::stream;
/// `is_controller`, whether a descriptor is a pseudo-terminal's controlling side, and `path_of`, which
/// leads to an open terminal.
pub(crate) use system::terminal;
/// Names, affinity and niceness of threads.
pub(crate) use system::thread;
/// `Waker`: what other threads and signal handlers wake a loop with.
pub use system::waker;
