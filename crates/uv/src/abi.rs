//! The C structs, as far as this library reads or writes them.
//!
//! Sizes and offsets are libuv 1.53.0's and never change; `layout.rs` checks them. Programs may
//! read these fields directly:
//!
//! | field | owner | when it is written |
//! | --- | --- | --- |
//! | `uv_loop_t.data`, `uv_handle_t.data` | the program | never by this library |
//! | `uv_loop_t.active_handles` | shared: programs may change it to keep a loop alive | the engine reads it before every call and writes it after |
//! | `uv_loop_t.active_reqs.count` | this library | written after every call |
//! | `uv_loop_t.closing_handles` | this library | null or not, after every call |
//! | `uv_loop_t.backend_fd` | this library | written at init and fork |
//! | `uv_handle_t.loop`, `.type` | this library | written at init |
//! | `uv_handle_t.close_cb`, `.flags` bits 0x1 (closing), 0x2 (closed) | this library | written by `uv_close` and before the callback; programs query zeroed handles, and closed ones whose loop is gone |
//! | `uv_timer_t.timeout`, `.repeat` | this library | written whenever the timer is started or set |
//! | `uv_poll_t.io_watcher.fd`, `uv_stream_t.io_watcher.fd` | this library | set with the descriptor, −1 before and after |
//! | `uv_stream_t.flags`, bit 0x4000 (readable) | shared: a program may set it | read before reading starts, written when the stream opens |
//! | `uv_stream_t.flags`, bit 0x8000 (writable) | this library | likewise |
//! | `uv_stream_t.write_queue_size` | shared: programs may add to it | changed by as much as our own count has changed |
//! | `uv_tty_t.mode`, `.flags` bit 0x100000 (writes block) | this library | written at init and when the mode is set |
//! | `uv_fs_event_t.path` | this library | a copy while the handle is started, null otherwise |
//! | `uv_pipe_t.ipc`, `.pipe_fname` | this library | written at init and bind |
//! | `uv_signal_t.signum` | this library | the signal while started, else zero |
//! | `uv_process_t.pid`, `.status` | this library | written by `uv_spawn`, and when the child has exited |
//! | `uv_udp_t.send_queue_size`, `.send_queue_count` | this library | changed when a send begins and before it is reported |
//! | `uv_udp_t.io_watcher.fd`, `.flags` bits 0x2000 (bound), 0x400000 (IPv6), 0x2000000 (connected) | this library | written when there is a socket, and when it is bound, connected or disconnected |
//! | `uv_udp_t.flags`, bit 0x4000000 (batches) | shared: a program may copy it from another handle | written at init, read before every receive |
//! | `uv_fs_t.work_req.done` | this library | null or not, written when a request with a callback goes to the ring or to the pool |
//! | `uv_getaddrinfo_t.addrinfo`, `uv_getnameinfo_t.host`, `.service` | this library | written with the result; the list is the program's to free |
//!
//! The engine's key for a handle is in `handle_queue`, that for a request of the thread pool in
//! `reserved`. No program uses either field.

use blacklight_sys::resolver::{NI_MAXHOST, NI_MAXSERV};
use std::ffi::{c_char, c_int, c_uint, c_ulong, c_void};
use std::sync::atomic::{AtomicPtr, AtomicU64};

/// Two words that libuv used as links of a list.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Queue {
    pub(crate) next: *mut c_void,
    pub(crate) prev: *mut c_void,
}

/// The loop.
#[repr(C)]
pub struct uv_loop_t {
    pub(crate) data: *mut c_void,
    pub(crate) active_handles: c_uint,
    handle_queue: Queue,
    pub(crate) active_reqs: ActiveRequests,
    pub(crate) internal_fields: *mut crate::engine::LoopState,
    stop_flag: c_uint,
    flags: c_ulong,
    pub(crate) backend_fd: c_int,
    lists: [Queue; 2],
    watchers: *mut c_void,
    nwatchers: c_uint,
    nfds: c_uint,
    wq: Queue,
    wq_mutex: libc::pthread_mutex_t,
    wq_async: uv_async_t,
    cloexec_lock: libc::pthread_rwlock_t,
    pub(crate) closing_handles: *mut uv_handle_t,
    rest: [u64; 60],
}

/// The count of active requests, in the place of an older pointer.
#[repr(C)]
pub union ActiveRequests {
    unused: *mut c_void,
    pub(crate) count: c_uint,
}

/// Called when a handle has been closed.
pub type uv_close_cb = Option<unsafe extern "C" fn(*mut uv_handle_t)>;
/// Called for each handle of a loop.
pub type uv_walk_cb = Option<unsafe extern "C" fn(*mut uv_handle_t, *mut c_void)>;
/// Called when a timer is due.
pub type uv_timer_cb = Option<unsafe extern "C" fn(*mut uv_timer_t)>;
/// Called on every turn of the loop by an idle, prepare or check handle.
pub type LoopWatcherCb = Option<unsafe extern "C" fn(*mut LoopWatcher)>;
/// Called after `uv_async_send`.
pub type uv_async_cb = Option<unsafe extern "C" fn(*mut uv_async_t)>;
/// Called when a descriptor is ready.
pub type uv_poll_cb = Option<unsafe extern "C" fn(*mut uv_poll_t, c_int, c_int)>;

/// The fields that all handles begin with.
#[repr(C)]
pub struct uv_handle_t {
    pub(crate) data: *mut c_void,
    pub(crate) loop_: *mut uv_loop_t,
    pub(crate) type_: c_int,
    pub(crate) close_cb: uv_close_cb,
    /// The engine's key.
    pub(crate) key: u64,
    spare: u64,
    u: [*mut c_void; 4],
    next_closing: *mut uv_handle_t,
    pub(crate) flags: c_uint,
}

/// A timer.
#[repr(C)]
pub struct uv_timer_t {
    pub(crate) handle: uv_handle_t,
    pub(crate) timer_cb: uv_timer_cb,
    node: [*mut c_void; 3],
    pub(crate) timeout: u64,
    pub(crate) repeat: u64,
    start_id: u64,
}

/// `uv_idle_t`, `uv_prepare_t` and `uv_check_t`, which are alike.
#[repr(C)]
pub struct LoopWatcher {
    pub(crate) handle: uv_handle_t,
    pub(crate) cb: LoopWatcherCb,
    queue: Queue,
}

/// An async handle.
#[repr(C)]
pub struct uv_async_t {
    pub(crate) handle: uv_handle_t,
    pub(crate) async_cb: uv_async_cb,
    /// The loop's mailbox, and the handle's ticket to it. Senders read them only inside the gate.
    /// All three are atomic, since a program may initialise a new handle in this memory while
    /// another thread still sends.
    pub(crate) mailbox: AtomicPtr<blacklight_engine::Mailbox>,
    pub(crate) ticket: AtomicU64,
    pub(crate) gate: blacklight_engine::Gate,
}

/// A poll handle.
#[repr(C)]
pub struct uv_poll_t {
    pub(crate) handle: uv_handle_t,
    pub(crate) poll_cb: uv_poll_cb,
    pub(crate) io_watcher: IoWatcher,
}

/// The part of libuv's watcher of a descriptor that programs read.
#[repr(C)]
pub struct IoWatcher {
    bits: usize,
    queues: [Queue; 2],
    pevents: c_uint,
    events: c_uint,
    pub(crate) fd: c_int,
}

/// Called when a signal was caught.
pub type uv_signal_cb = Option<unsafe extern "C" fn(*mut uv_signal_t, c_int)>;
/// Called when a child has ended.
pub type uv_exit_cb = Option<unsafe extern "C" fn(*mut uv_process_t, i64, c_int)>;

/// A signal handle.
#[repr(C)]
pub struct uv_signal_t {
    pub(crate) handle: uv_handle_t,
    pub(crate) signal_cb: uv_signal_cb,
    pub(crate) signum: c_int,
    tree_entry: [*mut c_void; 4],
    caught_signals: c_uint,
    dispatched_signals: c_uint,
}

/// A process handle.
#[repr(C)]
pub struct uv_process_t {
    pub(crate) handle: uv_handle_t,
    pub(crate) exit_cb: uv_exit_cb,
    pub(crate) pid: c_int,
    /// Whether the child's exit has been reported, in a field that no program uses.
    pub(crate) ended: usize,
    unused: usize,
    pub(crate) status: c_int,
}

/// One of a child's descriptors.
#[repr(C)]
pub struct uv_stdio_container_t {
    pub(crate) flags: c_int,
    pub(crate) data: StdioData,
}

/// A stream or a descriptor, depending on the flags.
#[repr(C)]
pub union StdioData {
    pub(crate) stream: *mut uv_stream_t,
    pub(crate) fd: c_int,
}

/// The options of `uv_spawn`.
#[repr(C)]
pub struct uv_process_options_t {
    pub(crate) exit_cb: uv_exit_cb,
    pub(crate) file: *const c_char,
    pub(crate) args: *const *const c_char,
    pub(crate) env: *const *const c_char,
    pub(crate) cwd: *const c_char,
    pub(crate) flags: c_uint,
    pub(crate) stdio_count: c_int,
    pub(crate) stdio: *mut uv_stdio_container_t,
    pub(crate) uid: libc::uid_t,
    pub(crate) gid: libc::gid_t,
}

/// Supplies a buffer to read into.
pub type uv_alloc_cb = Option<unsafe extern "C" fn(*mut uv_handle_t, usize, *mut uv_buf_t)>;
/// Called with the bytes read, or an error.
pub type uv_read_cb = Option<unsafe extern "C" fn(*mut uv_stream_t, isize, *const uv_buf_t)>;
/// Called when a server has a connection.
pub type uv_connection_cb = Option<unsafe extern "C" fn(*mut uv_stream_t, c_int)>;
/// Called when a write is done.
pub type uv_write_cb = Option<unsafe extern "C" fn(*mut uv_write_t, c_int)>;
/// Called when connecting is done.
pub type uv_connect_cb = Option<unsafe extern "C" fn(*mut uv_connect_t, c_int)>;
/// Called when a stream has been shut down.
pub type uv_shutdown_cb = Option<unsafe extern "C" fn(*mut uv_shutdown_t, c_int)>;

/// A piece of memory: the same as a `struct iovec`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct uv_buf_t {
    pub(crate) base: *mut std::ffi::c_char,
    pub(crate) len: usize,
}

/// The fields that TCP, pipe and terminal handles begin with.
#[repr(C)]
pub struct uv_stream_t {
    pub(crate) handle: uv_handle_t,
    pub(crate) write_queue_size: usize,
    pub(crate) alloc_cb: uv_alloc_cb,
    pub(crate) read_cb: uv_read_cb,
    connect_req: *mut uv_connect_t,
    shutdown_req: *mut uv_shutdown_t,
    pub(crate) io_watcher: IoWatcher,
    /// The part of `write_queue_size` that is ours: programs may add to the field.
    pub(crate) queued_bytes: usize,
    queues: [usize; 3],
    pub(crate) connection_cb: uv_connection_cb,
    delayed_error: c_int,
    accepted_fd: c_int,
    queued_fds: *mut c_void,
}

/// A TCP handle adds nothing to a stream.
pub type uv_tcp_t = uv_stream_t;

/// A pipe.
#[repr(C)]
pub struct uv_pipe_t {
    pub(crate) stream: uv_stream_t,
    pub(crate) ipc: c_int,
    /// The path that a pipe is bound to.
    pub(crate) pipe_fname: *mut std::ffi::c_char,
}

/// A terminal.
#[repr(C)]
pub struct uv_tty_t {
    pub(crate) stream: uv_stream_t,
    /// Unused: the engine keeps the terminal's attributes.
    orig_termios: libc::termios,
    pub(crate) mode: c_int,
}

/// Called when something has happened to a watched file.
pub type uv_fs_event_cb =
    Option<unsafe extern "C" fn(*mut uv_fs_event_t, *const c_char, c_int, c_int)>;

/// A file system event handle.
#[repr(C)]
pub struct uv_fs_event_t {
    pub(crate) handle: uv_handle_t,
    /// The path that a started handle watches.
    pub(crate) path: *mut c_char,
    pub(crate) cb: uv_fs_event_cb,
    watchers: Queue,
    wd: c_int,
}

/// A request to write.
#[repr(C)]
pub struct uv_write_t {
    pub(crate) req: uv_req_t,
    pub(crate) cb: uv_write_cb,
    pub(crate) send_handle: *mut uv_stream_t,
    pub(crate) handle: *mut uv_stream_t,
    queue: Queue,
    write_index: c_uint,
    pub(crate) bufs: *mut uv_buf_t,
    pub(crate) nbufs: c_uint,
    pub(crate) error: c_int,
    pub(crate) bufsml: [uv_buf_t; 4],
}

/// A request to connect.
#[repr(C)]
pub struct uv_connect_t {
    pub(crate) req: uv_req_t,
    pub(crate) cb: uv_connect_cb,
    pub(crate) handle: *mut uv_stream_t,
    queue: Queue,
}

/// A request to shut down.
#[repr(C)]
pub struct uv_shutdown_t {
    pub(crate) req: uv_req_t,
    pub(crate) handle: *mut uv_stream_t,
    pub(crate) cb: uv_shutdown_cb,
}

/// The fields that all requests begin with.
#[repr(C)]
pub struct uv_req_t {
    pub(crate) data: *mut c_void,
    pub(crate) type_: c_int,
    /// The engine's key for the request.
    pub(crate) key: u64,
    reserved: [*mut c_void; 4],
    /// How many bytes a write has written.
    pub(crate) nwritten: usize,
}

/// Does the work of a request, on a worker.
pub type uv_work_cb = Option<unsafe extern "C" fn(*mut uv_work_t)>;
/// Called when the work is done.
pub type uv_after_work_cb = Option<unsafe extern "C" fn(*mut uv_work_t, c_int)>;

/// The pool's fields of a request.
#[repr(C)]
pub struct PoolRequest {
    pub(crate) work: *mut c_void,
    pub(crate) done: *mut c_void,
    pub(crate) loop_: *mut uv_loop_t,
    wq: Queue,
}

/// A request to run a function of the program.
#[repr(C)]
pub struct uv_work_t {
    pub(crate) req: uv_req_t,
    pub(crate) loop_: *mut uv_loop_t,
    pub(crate) work_cb: uv_work_cb,
    pub(crate) after_work_cb: uv_after_work_cb,
    work_req: PoolRequest,
}

/// Called with random bytes.
pub type uv_random_cb = Option<unsafe extern "C" fn(*mut uv_random_t, c_int, *mut c_void, usize)>;

/// A request for random bytes.
#[repr(C)]
pub struct uv_random_t {
    pub(crate) req: uv_req_t,
    pub(crate) loop_: *mut uv_loop_t,
    pub(crate) status: c_int,
    pub(crate) buf: *mut c_void,
    pub(crate) buflen: usize,
    pub(crate) cb: uv_random_cb,
    work_req: PoolRequest,
}

/// Called with the addresses of a host.
pub type uv_getaddrinfo_cb =
    Option<unsafe extern "C" fn(*mut uv_getaddrinfo_t, c_int, *mut libc::addrinfo)>;

/// A request for the addresses of a host.
#[repr(C)]
pub struct uv_getaddrinfo_t {
    pub(crate) req: uv_req_t,
    pub(crate) loop_: *mut uv_loop_t,
    /// The memory of the copies that the last three of the following point into.
    pub(crate) memory: *mut c_void,
    work_req: [*mut c_void; 4],
    pub(crate) cb: uv_getaddrinfo_cb,
    pub(crate) hints: *mut libc::addrinfo,
    pub(crate) hostname: *mut c_char,
    pub(crate) service: *mut c_char,
    pub(crate) addrinfo: *mut libc::addrinfo,
    pub(crate) retcode: c_int,
}

/// Called with the names of a host and a service.
pub type uv_getnameinfo_cb =
    Option<unsafe extern "C" fn(*mut uv_getnameinfo_t, c_int, *const c_char, *const c_char)>;

/// A request for the names that belong to an address.
#[repr(C)]
pub struct uv_getnameinfo_t {
    pub(crate) req: uv_req_t,
    pub(crate) loop_: *mut uv_loop_t,
    work_req: PoolRequest,
    pub(crate) cb: uv_getnameinfo_cb,
    pub(crate) storage: libc::sockaddr_storage,
    pub(crate) flags: c_int,
    pub(crate) host: [c_char; NI_MAXHOST],
    pub(crate) service: [c_char; NI_MAXSERV],
    pub(crate) retcode: c_int,
}

/// Called with a datagram, an error, or nothing.
pub type uv_udp_recv_cb = Option<
    unsafe extern "C" fn(*mut uv_udp_t, isize, *const uv_buf_t, *const libc::sockaddr, c_uint),
>;
/// Called when a datagram has been sent.
pub type uv_udp_send_cb = Option<unsafe extern "C" fn(*mut uv_udp_send_t, c_int)>;

/// A UDP handle.
#[repr(C)]
pub struct uv_udp_t {
    pub(crate) handle: uv_handle_t,
    pub(crate) send_queue_size: usize,
    pub(crate) send_queue_count: usize,
    pub(crate) alloc_cb: uv_alloc_cb,
    pub(crate) recv_cb: uv_udp_recv_cb,
    pub(crate) io_watcher: IoWatcher,
    queues: [Queue; 2],
}

/// A request to send a datagram.
#[repr(C)]
pub struct uv_udp_send_t {
    pub(crate) req: uv_req_t,
    pub(crate) handle: *mut uv_udp_t,
    cb: uv_udp_send_cb,
    queue: Queue,
    u: libc::sockaddr_storage,
    pub(crate) nbufs: c_uint,
    pub(crate) bufs: *mut uv_buf_t,
    status: isize,
    pub(crate) send_cb: uv_udp_send_cb,
    pub(crate) bufsml: [uv_buf_t; 4],
}

/// Counters of a loop.
#[repr(C)]
pub struct uv_metrics_t {
    pub(crate) loop_count: u64,
    pub(crate) events: u64,
    pub(crate) events_waiting: u64,
    reserved: [*mut u64; 13],
}

/// The kinds of handles, in libuv's order: the number, the name and the size of the struct.
pub(crate) const HANDLE_TYPES: [(&std::ffi::CStr, usize); 17] = [
    (c"async", size_of::<uv_async_t>()),
    (c"check", size_of::<LoopWatcher>()),
    (c"fs_event", size_of::<uv_fs_event_t>()),
    (c"fs_poll", size_of::<crate::fs_poll::uv_fs_poll_t>()),
    (c"handle", size_of::<uv_handle_t>()),
    (c"idle", size_of::<LoopWatcher>()),
    (c"pipe", size_of::<uv_pipe_t>()),
    (c"poll", size_of::<uv_poll_t>()),
    (c"prepare", size_of::<LoopWatcher>()),
    (c"process", size_of::<uv_process_t>()),
    (c"stream", size_of::<uv_stream_t>()),
    (c"tcp", size_of::<uv_tcp_t>()),
    (c"timer", size_of::<uv_timer_t>()),
    (c"tty", size_of::<uv_tty_t>()),
    (c"udp", size_of::<uv_udp_t>()),
    (c"signal", size_of::<uv_signal_t>()),
    // Not a handle and without a size, but it has a name.
    (c"file", usize::MAX),
];

pub(crate) const UV_UNKNOWN_HANDLE: c_int = 0;
pub(crate) const UV_ASYNC: c_int = 1;
pub(crate) const UV_CHECK: c_int = 2;
pub(crate) const UV_FS_POLL: c_int = 4;
pub(crate) const UV_FS_EVENT: c_int = 3;
pub(crate) const UV_IDLE: c_int = 6;
pub(crate) const UV_NAMED_PIPE: c_int = 7;
pub(crate) const UV_POLL: c_int = 8;
pub(crate) const UV_PREPARE: c_int = 9;
pub(crate) const UV_PROCESS: c_int = 10;
pub(crate) const UV_TCP: c_int = 12;
pub(crate) const UV_TIMER: c_int = 13;
pub(crate) const UV_TTY: c_int = 14;
pub(crate) const UV_UDP: c_int = 15;
pub(crate) const UV_SIGNAL: c_int = 16;
pub(crate) const UV_FILE: c_int = 17;

pub(crate) const UV_CONNECT: c_int = 2;
pub(crate) const UV_WRITE: c_int = 3;
pub(crate) const UV_SHUTDOWN: c_int = 4;
pub(crate) const UV_UDP_SEND: c_int = 5;

/// Bits of a handle's `flags` that programs look at or set.
pub(crate) const UV_HANDLE_CLOSING: c_uint = 0x1;
pub(crate) const UV_HANDLE_CLOSED: c_uint = 0x2;
pub(crate) const UV_HANDLE_BOUND: c_uint = 0x2000;
pub(crate) const UV_HANDLE_IPV6: c_uint = 0x40_0000;
pub(crate) const UV_HANDLE_UDP_CONNECTED: c_uint = 0x200_0000;
pub(crate) const UV_HANDLE_UDP_RECVMMSG: c_uint = 0x400_0000;
pub(crate) const UV_HANDLE_READABLE: c_uint = 0x4000;
pub(crate) const UV_HANDLE_WRITABLE: c_uint = 0x8000;
pub(crate) const UV_HANDLE_BLOCKING_WRITES: c_uint = 0x10_0000;

pub(crate) const UV_FS: c_int = 6;
pub(crate) const UV_WORK: c_int = 7;
pub(crate) const UV_GETADDRINFO: c_int = 8;
pub(crate) const UV_GETNAMEINFO: c_int = 9;
pub(crate) const UV_RANDOM: c_int = 10;

/// The kinds of requests, in libuv's order: the name and the size of the struct.
pub(crate) const REQUEST_TYPES: [(&std::ffi::CStr, usize); 10] = [
    (c"req", size_of::<uv_req_t>()),
    (c"connect", size_of::<uv_connect_t>()),
    (c"write", size_of::<uv_write_t>()),
    (c"shutdown", size_of::<uv_shutdown_t>()),
    (c"udp_send", size_of::<uv_udp_send_t>()),
    (c"fs", size_of::<crate::fs::abi::uv_fs_t>()),
    (c"work", size_of::<uv_work_t>()),
    (c"getaddrinfo", size_of::<uv_getaddrinfo_t>()),
    (c"getnameinfo", size_of::<uv_getnameinfo_t>()),
    (c"random", size_of::<uv_random_t>()),
];
