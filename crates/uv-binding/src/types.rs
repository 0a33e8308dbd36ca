//! The types of the interface. Written by `cargo xtask abi --bless` from `crates/uv/include`; not edited by hand.

use std::ffi::{c_char, c_int, c_uint, c_void};

#[repr(C)]
#[derive(Clone, Copy)]
pub struct uv__io_t {
    pub bits: u64,
    pub pending_queue: uv__queue,
    pub watcher_queue: uv__queue,
    pub pevents: c_uint,
    pub events: c_uint,
    pub fd: c_int,
}
unsafe impl crate::Plain for uv__io_t {}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct uv__queue {
    pub next: *mut uv__queue,
    pub prev: *mut uv__queue,
}
unsafe impl crate::Plain for uv__queue {}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct uv__req_write_extra_s {
    pub nwritten: usize,
}
unsafe impl crate::Plain for uv__req_write_extra_s {}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct uv__work {
    pub work: Option<unsafe extern "C" fn(*mut uv__work)>,
    pub done: Option<unsafe extern "C" fn(*mut uv__work, c_int)>,
    pub loop_: *mut uv_loop_t,
    pub wq: uv__queue,
}
unsafe impl crate::Plain for uv__work {}

#[repr(C)]
#[derive(Clone, Copy)]
pub union uv_async_t_u {
    pub reserved: [*mut c_void; 4],
    pub fd: c_int,
}
unsafe impl crate::Plain for uv_async_t_u {}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct uv_async_t {
    pub data: *mut c_void,
    pub loop_: *mut uv_loop_t,
    pub type_: uv_handle_type,
    pub close_cb: Option<unsafe extern "C" fn(*mut uv_handle_t)>,
    pub handle_queue: uv__queue,
    pub u: uv_async_t_u,
    pub next_closing: *mut uv_handle_t,
    pub flags: c_uint,
    pub async_cb: Option<unsafe extern "C" fn(*mut uv_async_t)>,
    pub queue: uv__queue,
    pub pending: c_int,
}
unsafe impl crate::Plain for uv_async_t {}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct uv_buf_t {
    pub base: *mut c_char,
    pub len: usize,
}
unsafe impl crate::Plain for uv_buf_t {}

#[repr(C)]
#[derive(Clone, Copy)]
pub union uv_check_t_u {
    pub reserved: [*mut c_void; 4],
    pub fd: c_int,
}
unsafe impl crate::Plain for uv_check_t_u {}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct uv_check_t {
    pub data: *mut c_void,
    pub loop_: *mut uv_loop_t,
    pub type_: uv_handle_type,
    pub close_cb: Option<unsafe extern "C" fn(*mut uv_handle_t)>,
    pub handle_queue: uv__queue,
    pub u: uv_check_t_u,
    pub next_closing: *mut uv_handle_t,
    pub flags: c_uint,
    pub check_cb: Option<unsafe extern "C" fn(*mut uv_check_t)>,
    pub queue: uv__queue,
}
unsafe impl crate::Plain for uv_check_t {}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct uv_connect_t {
    pub data: *mut c_void,
    pub type_: uv_req_type,
    pub reserved: [*mut c_void; 5],
    pub reserved2: [*mut c_void; 1],
    pub cb: Option<unsafe extern "C" fn(*mut uv_connect_t, c_int)>,
    pub handle: *mut uv_stream_t,
    pub queue: uv__queue,
}
unsafe impl crate::Plain for uv_connect_t {}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct uv_cpu_info_t {
    pub model: *const c_char,
    pub speed: c_int,
    pub cpu_times: uv_cpu_times_s,
}
unsafe impl crate::Plain for uv_cpu_info_t {}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct uv_cpu_times_s {
    pub user: u64,
    pub nice: u64,
    pub sys: u64,
    pub idle: u64,
    pub irq: u64,
}
unsafe impl crate::Plain for uv_cpu_times_s {}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct uv_dir_t {
    pub dirents: *mut uv_dirent_t,
    pub nentries: usize,
    pub reserved: [*mut c_void; 4],
    pub dir: *mut libc::DIR,
}
unsafe impl crate::Plain for uv_dir_t {}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct uv_dirent_t {
    pub name: *const c_char,
    pub type_: uv_dirent_type_t,
}
unsafe impl crate::Plain for uv_dirent_t {}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct uv_env_item_t {
    pub name: *mut c_char,
    pub value: *mut c_char,
}
unsafe impl crate::Plain for uv_env_item_t {}

#[repr(C)]
#[derive(Clone, Copy)]
pub union uv_fs_event_t_u {
    pub reserved: [*mut c_void; 4],
    pub fd: c_int,
}
unsafe impl crate::Plain for uv_fs_event_t_u {}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct uv_fs_event_t {
    pub data: *mut c_void,
    pub loop_: *mut uv_loop_t,
    pub type_: uv_handle_type,
    pub close_cb: Option<unsafe extern "C" fn(*mut uv_handle_t)>,
    pub handle_queue: uv__queue,
    pub u: uv_fs_event_t_u,
    pub next_closing: *mut uv_handle_t,
    pub flags: c_uint,
    pub path: *mut c_char,
    pub cb: Option<unsafe extern "C" fn(*mut uv_fs_event_t, *const c_char, c_int, c_int)>,
    pub watchers: uv__queue,
    pub wd: c_int,
}
unsafe impl crate::Plain for uv_fs_event_t {}

#[repr(C)]
#[derive(Clone, Copy)]
pub union uv_fs_poll_t_u {
    pub reserved: [*mut c_void; 4],
    pub fd: c_int,
}
unsafe impl crate::Plain for uv_fs_poll_t_u {}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct uv_fs_poll_t {
    pub data: *mut c_void,
    pub loop_: *mut uv_loop_t,
    pub type_: uv_handle_type,
    pub close_cb: Option<unsafe extern "C" fn(*mut uv_handle_t)>,
    pub handle_queue: uv__queue,
    pub u: uv_fs_poll_t_u,
    pub next_closing: *mut uv_handle_t,
    pub flags: c_uint,
    pub poll_ctx: *mut c_void,
}
unsafe impl crate::Plain for uv_fs_poll_t {}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct uv_fs_t {
    pub data: *mut c_void,
    pub type_: uv_req_type,
    pub reserved: [*mut c_void; 5],
    pub reserved2: [*mut c_void; 1],
    pub fs_type: uv_fs_type,
    pub loop_: *mut uv_loop_t,
    pub cb: Option<unsafe extern "C" fn(*mut uv_fs_t)>,
    pub result: isize,
    pub ptr: *mut c_void,
    pub path: *const c_char,
    pub statbuf: uv_stat_t,
    pub new_path: *const c_char,
    pub file: c_int,
    pub flags: c_int,
    pub mode: c_uint,
    pub nbufs: c_uint,
    pub bufs: *mut uv_buf_t,
    pub off: i64,
    pub uid: c_uint,
    pub gid: c_uint,
    pub atime: f64,
    pub mtime: f64,
    pub work_req: uv__work,
    pub bufsml: [uv_buf_t; 4],
}
unsafe impl crate::Plain for uv_fs_t {}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct uv_getaddrinfo_t {
    pub data: *mut c_void,
    pub type_: uv_req_type,
    pub reserved: [*mut c_void; 5],
    pub reserved2: [*mut c_void; 1],
    pub loop_: *mut uv_loop_t,
    pub work_req: uv__work,
    pub cb: Option<unsafe extern "C" fn(*mut uv_getaddrinfo_t, c_int, *mut libc::addrinfo)>,
    pub hints: *mut libc::addrinfo,
    pub hostname: *mut c_char,
    pub service: *mut c_char,
    pub addrinfo: *mut libc::addrinfo,
    pub retcode: c_int,
}
unsafe impl crate::Plain for uv_getaddrinfo_t {}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct uv_getnameinfo_t {
    pub data: *mut c_void,
    pub type_: uv_req_type,
    pub reserved: [*mut c_void; 5],
    pub reserved2: [*mut c_void; 1],
    pub loop_: *mut uv_loop_t,
    pub work_req: uv__work,
    pub getnameinfo_cb: Option<unsafe extern "C" fn(*mut uv_getnameinfo_t, c_int, *const c_char, *const c_char)>,
    pub storage: libc::sockaddr_storage,
    pub flags: c_int,
    pub host: [c_char; libc::NI_MAXHOST as usize],
    pub service: [c_char; 32],
    pub retcode: c_int,
}
unsafe impl crate::Plain for uv_getnameinfo_t {}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct uv_group_t {
    pub groupname: *mut c_char,
    pub gid: u64,
    pub members: *mut *mut c_char,
}
unsafe impl crate::Plain for uv_group_t {}

#[repr(C)]
#[derive(Clone, Copy)]
pub union uv_handle_t_u {
    pub reserved: [*mut c_void; 4],
    pub fd: c_int,
}
unsafe impl crate::Plain for uv_handle_t_u {}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct uv_handle_t {
    pub data: *mut c_void,
    pub loop_: *mut uv_loop_t,
    pub type_: uv_handle_type,
    pub close_cb: Option<unsafe extern "C" fn(*mut uv_handle_t)>,
    pub handle_queue: uv__queue,
    pub u: uv_handle_t_u,
    pub next_closing: *mut uv_handle_t,
    pub flags: c_uint,
}
unsafe impl crate::Plain for uv_handle_t {}

#[repr(C)]
#[derive(Clone, Copy)]
pub union uv_idle_t_u {
    pub reserved: [*mut c_void; 4],
    pub fd: c_int,
}
unsafe impl crate::Plain for uv_idle_t_u {}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct uv_idle_t {
    pub data: *mut c_void,
    pub loop_: *mut uv_loop_t,
    pub type_: uv_handle_type,
    pub close_cb: Option<unsafe extern "C" fn(*mut uv_handle_t)>,
    pub handle_queue: uv__queue,
    pub u: uv_idle_t_u,
    pub next_closing: *mut uv_handle_t,
    pub flags: c_uint,
    pub idle_cb: Option<unsafe extern "C" fn(*mut uv_idle_t)>,
    pub queue: uv__queue,
}
unsafe impl crate::Plain for uv_idle_t {}

#[repr(C)]
#[derive(Clone, Copy)]
pub union uv_interface_address_t_address {
    pub address6: libc::sockaddr_in6,
    pub address4: libc::sockaddr_in,
}
unsafe impl crate::Plain for uv_interface_address_t_address {}

#[repr(C)]
#[derive(Clone, Copy)]
pub union uv_interface_address_t_netmask {
    pub netmask6: libc::sockaddr_in6,
    pub netmask4: libc::sockaddr_in,
}
unsafe impl crate::Plain for uv_interface_address_t_netmask {}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct uv_interface_address_t {
    pub name: *mut c_char,
    pub phys_addr: [c_char; 6],
    pub is_internal: c_int,
    pub address: uv_interface_address_t_address,
    pub netmask: uv_interface_address_t_netmask,
}
unsafe impl crate::Plain for uv_interface_address_t {}

#[repr(C)]
#[derive(Clone, Copy)]
pub union uv_loop_t_active_reqs {
    pub unused: *mut c_void,
    pub count: c_uint,
}
unsafe impl crate::Plain for uv_loop_t_active_reqs {}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct uv_loop_t_timer_heap {
    pub min: *mut c_void,
    pub nelts: c_uint,
}
unsafe impl crate::Plain for uv_loop_t_timer_heap {}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct uv_loop_t {
    pub data: *mut c_void,
    pub active_handles: c_uint,
    pub handle_queue: uv__queue,
    pub active_reqs: uv_loop_t_active_reqs,
    pub internal_fields: *mut c_void,
    pub stop_flag: c_uint,
    pub flags: u64,
    pub backend_fd: c_int,
    pub pending_queue: uv__queue,
    pub watcher_queue: uv__queue,
    pub watchers: *mut *mut uv__io_t,
    pub nwatchers: c_uint,
    pub nfds: c_uint,
    pub wq: uv__queue,
    pub wq_mutex: libc::pthread_mutex_t,
    pub wq_async: uv_async_t,
    pub cloexec_lock: libc::pthread_rwlock_t,
    pub closing_handles: *mut uv_handle_t,
    pub process_handles: uv__queue,
    pub prepare_handles: uv__queue,
    pub check_handles: uv__queue,
    pub idle_handles: uv__queue,
    pub async_handles: uv__queue,
    pub async_unused: Option<unsafe extern "C" fn()>,
    pub async_io_watcher: uv__io_t,
    pub async_wfd: c_int,
    pub timer_heap: uv_loop_t_timer_heap,
    pub timer_counter: u64,
    pub time: u64,
    pub signal_pipefd: [c_int; 2],
    pub signal_io_watcher: uv__io_t,
    pub child_watcher: uv_signal_t,
    pub emfile_fd: c_int,
    pub inotify_read_watcher: uv__io_t,
    pub inotify_watchers: *mut c_void,
    pub inotify_fd: c_int,
}
unsafe impl crate::Plain for uv_loop_t {}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct uv_metrics_t {
    pub loop_count: u64,
    pub events: u64,
    pub events_waiting: u64,
    pub reserved: [*mut u64; 13],
}
unsafe impl crate::Plain for uv_metrics_t {}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct uv_passwd_t {
    pub username: *mut c_char,
    pub uid: u64,
    pub gid: u64,
    pub shell: *mut c_char,
    pub homedir: *mut c_char,
}
unsafe impl crate::Plain for uv_passwd_t {}

#[repr(C)]
#[derive(Clone, Copy)]
pub union uv_pipe_t_u {
    pub reserved: [*mut c_void; 4],
    pub fd: c_int,
}
unsafe impl crate::Plain for uv_pipe_t_u {}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct uv_pipe_t {
    pub data: *mut c_void,
    pub loop_: *mut uv_loop_t,
    pub type_: uv_handle_type,
    pub close_cb: Option<unsafe extern "C" fn(*mut uv_handle_t)>,
    pub handle_queue: uv__queue,
    pub u: uv_pipe_t_u,
    pub next_closing: *mut uv_handle_t,
    pub flags: c_uint,
    pub write_queue_size: usize,
    pub alloc_cb: Option<unsafe extern "C" fn(*mut uv_handle_t, usize, *mut uv_buf_t)>,
    pub read_cb: Option<unsafe extern "C" fn(*mut uv_stream_t, isize, *const uv_buf_t)>,
    pub connect_req: *mut uv_connect_t,
    pub shutdown_req: *mut uv_shutdown_t,
    pub io_watcher: uv__io_t,
    pub write_queue: uv__queue,
    pub write_completed_queue: uv__queue,
    pub connection_cb: Option<unsafe extern "C" fn(*mut uv_stream_t, c_int)>,
    pub delayed_error: c_int,
    pub accepted_fd: c_int,
    pub queued_fds: *mut c_void,
    pub ipc: c_int,
    pub pipe_fname: *const c_char,
}
unsafe impl crate::Plain for uv_pipe_t {}

#[repr(C)]
#[derive(Clone, Copy)]
pub union uv_poll_t_u {
    pub reserved: [*mut c_void; 4],
    pub fd: c_int,
}
unsafe impl crate::Plain for uv_poll_t_u {}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct uv_poll_t {
    pub data: *mut c_void,
    pub loop_: *mut uv_loop_t,
    pub type_: uv_handle_type,
    pub close_cb: Option<unsafe extern "C" fn(*mut uv_handle_t)>,
    pub handle_queue: uv__queue,
    pub u: uv_poll_t_u,
    pub next_closing: *mut uv_handle_t,
    pub flags: c_uint,
    pub poll_cb: Option<unsafe extern "C" fn(*mut uv_poll_t, c_int, c_int)>,
    pub io_watcher: uv__io_t,
}
unsafe impl crate::Plain for uv_poll_t {}

#[repr(C)]
#[derive(Clone, Copy)]
pub union uv_prepare_t_u {
    pub reserved: [*mut c_void; 4],
    pub fd: c_int,
}
unsafe impl crate::Plain for uv_prepare_t_u {}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct uv_prepare_t {
    pub data: *mut c_void,
    pub loop_: *mut uv_loop_t,
    pub type_: uv_handle_type,
    pub close_cb: Option<unsafe extern "C" fn(*mut uv_handle_t)>,
    pub handle_queue: uv__queue,
    pub u: uv_prepare_t_u,
    pub next_closing: *mut uv_handle_t,
    pub flags: c_uint,
    pub prepare_cb: Option<unsafe extern "C" fn(*mut uv_prepare_t)>,
    pub queue: uv__queue,
}
unsafe impl crate::Plain for uv_prepare_t {}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct uv_process_options_t {
    pub exit_cb: Option<unsafe extern "C" fn(*mut uv_process_t, i64, c_int)>,
    pub file: *const c_char,
    pub args: *mut *mut c_char,
    pub env: *mut *mut c_char,
    pub cwd: *const c_char,
    pub flags: c_uint,
    pub stdio_count: c_int,
    pub stdio: *mut uv_stdio_container_t,
    pub uid: c_uint,
    pub gid: c_uint,
}
unsafe impl crate::Plain for uv_process_options_t {}

#[repr(C)]
#[derive(Clone, Copy)]
pub union uv_process_t_u {
    pub reserved: [*mut c_void; 4],
    pub fd: c_int,
}
unsafe impl crate::Plain for uv_process_t_u {}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct uv_process_t {
    pub data: *mut c_void,
    pub loop_: *mut uv_loop_t,
    pub type_: uv_handle_type,
    pub close_cb: Option<unsafe extern "C" fn(*mut uv_handle_t)>,
    pub handle_queue: uv__queue,
    pub u: uv_process_t_u,
    pub next_closing: *mut uv_handle_t,
    pub flags: c_uint,
    pub exit_cb: Option<unsafe extern "C" fn(*mut uv_process_t, i64, c_int)>,
    pub pid: c_int,
    pub queue: uv__queue,
    pub status: c_int,
}
unsafe impl crate::Plain for uv_process_t {}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct uv_random_t {
    pub data: *mut c_void,
    pub type_: uv_req_type,
    pub reserved: [*mut c_void; 5],
    pub reserved2: [*mut c_void; 1],
    pub loop_: *mut uv_loop_t,
    pub status: c_int,
    pub buf: *mut c_void,
    pub buflen: usize,
    pub cb: Option<unsafe extern "C" fn(*mut uv_random_t, c_int, *mut c_void, usize)>,
    pub work_req: uv__work,
}
unsafe impl crate::Plain for uv_random_t {}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct uv_req_t {
    pub data: *mut c_void,
    pub type_: uv_req_type,
    pub reserved: [*mut c_void; 5],
    pub reserved2: [*mut c_void; 1],
}
unsafe impl crate::Plain for uv_req_t {}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct uv_shutdown_t {
    pub data: *mut c_void,
    pub type_: uv_req_type,
    pub reserved: [*mut c_void; 5],
    pub reserved2: [*mut c_void; 1],
    pub handle: *mut uv_stream_t,
    pub cb: Option<unsafe extern "C" fn(*mut uv_shutdown_t, c_int)>,
}
unsafe impl crate::Plain for uv_shutdown_t {}

#[repr(C)]
#[derive(Clone, Copy)]
pub union uv_signal_t_u {
    pub reserved: [*mut c_void; 4],
    pub fd: c_int,
}
unsafe impl crate::Plain for uv_signal_t_u {}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct uv_signal_t_tree_entry {
    pub rbe_left: *mut uv_signal_t,
    pub rbe_right: *mut uv_signal_t,
    pub rbe_parent: *mut uv_signal_t,
    pub rbe_color: c_int,
}
unsafe impl crate::Plain for uv_signal_t_tree_entry {}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct uv_signal_t {
    pub data: *mut c_void,
    pub loop_: *mut uv_loop_t,
    pub type_: uv_handle_type,
    pub close_cb: Option<unsafe extern "C" fn(*mut uv_handle_t)>,
    pub handle_queue: uv__queue,
    pub u: uv_signal_t_u,
    pub next_closing: *mut uv_handle_t,
    pub flags: c_uint,
    pub signal_cb: Option<unsafe extern "C" fn(*mut uv_signal_t, c_int)>,
    pub signum: c_int,
    pub tree_entry: uv_signal_t_tree_entry,
    pub caught_signals: c_uint,
    pub dispatched_signals: c_uint,
}
unsafe impl crate::Plain for uv_signal_t {}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct uv_statfs_t {
    pub f_type: u64,
    pub f_bsize: u64,
    pub f_blocks: u64,
    pub f_bfree: u64,
    pub f_bavail: u64,
    pub f_files: u64,
    pub f_ffree: u64,
    pub f_frsize: u64,
    pub f_spare: [u64; 3],
}
unsafe impl crate::Plain for uv_statfs_t {}

#[repr(C)]
#[derive(Clone, Copy)]
pub union uv_stdio_container_t_data {
    pub stream: *mut uv_stream_t,
    pub fd: c_int,
}
unsafe impl crate::Plain for uv_stdio_container_t_data {}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct uv_stdio_container_t {
    pub flags: uv_stdio_flags,
    pub data: uv_stdio_container_t_data,
}
unsafe impl crate::Plain for uv_stdio_container_t {}

#[repr(C)]
#[derive(Clone, Copy)]
pub union uv_stream_t_u {
    pub reserved: [*mut c_void; 4],
    pub fd: c_int,
}
unsafe impl crate::Plain for uv_stream_t_u {}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct uv_stream_t {
    pub data: *mut c_void,
    pub loop_: *mut uv_loop_t,
    pub type_: uv_handle_type,
    pub close_cb: Option<unsafe extern "C" fn(*mut uv_handle_t)>,
    pub handle_queue: uv__queue,
    pub u: uv_stream_t_u,
    pub next_closing: *mut uv_handle_t,
    pub flags: c_uint,
    pub write_queue_size: usize,
    pub alloc_cb: Option<unsafe extern "C" fn(*mut uv_handle_t, usize, *mut uv_buf_t)>,
    pub read_cb: Option<unsafe extern "C" fn(*mut uv_stream_t, isize, *const uv_buf_t)>,
    pub connect_req: *mut uv_connect_t,
    pub shutdown_req: *mut uv_shutdown_t,
    pub io_watcher: uv__io_t,
    pub write_queue: uv__queue,
    pub write_completed_queue: uv__queue,
    pub connection_cb: Option<unsafe extern "C" fn(*mut uv_stream_t, c_int)>,
    pub delayed_error: c_int,
    pub accepted_fd: c_int,
    pub queued_fds: *mut c_void,
}
unsafe impl crate::Plain for uv_stream_t {}

#[repr(C)]
#[derive(Clone, Copy)]
pub union uv_tcp_t_u {
    pub reserved: [*mut c_void; 4],
    pub fd: c_int,
}
unsafe impl crate::Plain for uv_tcp_t_u {}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct uv_tcp_t {
    pub data: *mut c_void,
    pub loop_: *mut uv_loop_t,
    pub type_: uv_handle_type,
    pub close_cb: Option<unsafe extern "C" fn(*mut uv_handle_t)>,
    pub handle_queue: uv__queue,
    pub u: uv_tcp_t_u,
    pub next_closing: *mut uv_handle_t,
    pub flags: c_uint,
    pub write_queue_size: usize,
    pub alloc_cb: Option<unsafe extern "C" fn(*mut uv_handle_t, usize, *mut uv_buf_t)>,
    pub read_cb: Option<unsafe extern "C" fn(*mut uv_stream_t, isize, *const uv_buf_t)>,
    pub connect_req: *mut uv_connect_t,
    pub shutdown_req: *mut uv_shutdown_t,
    pub io_watcher: uv__io_t,
    pub write_queue: uv__queue,
    pub write_completed_queue: uv__queue,
    pub connection_cb: Option<unsafe extern "C" fn(*mut uv_stream_t, c_int)>,
    pub delayed_error: c_int,
    pub accepted_fd: c_int,
    pub queued_fds: *mut c_void,
}
unsafe impl crate::Plain for uv_tcp_t {}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct uv_thread_options_t {
    pub flags: c_uint,
    pub stack_size: usize,
}
unsafe impl crate::Plain for uv_thread_options_t {}

#[repr(C)]
#[derive(Clone, Copy)]
pub union uv_timer_t_u {
    pub reserved: [*mut c_void; 4],
    pub fd: c_int,
}
unsafe impl crate::Plain for uv_timer_t_u {}

#[repr(C)]
#[derive(Clone, Copy)]
pub union uv_timer_t_node {
    pub heap: [*mut c_void; 3],
    pub queue: uv__queue,
}
unsafe impl crate::Plain for uv_timer_t_node {}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct uv_timer_t {
    pub data: *mut c_void,
    pub loop_: *mut uv_loop_t,
    pub type_: uv_handle_type,
    pub close_cb: Option<unsafe extern "C" fn(*mut uv_handle_t)>,
    pub handle_queue: uv__queue,
    pub u: uv_timer_t_u,
    pub next_closing: *mut uv_handle_t,
    pub flags: c_uint,
    pub timer_cb: Option<unsafe extern "C" fn(*mut uv_timer_t)>,
    pub node: uv_timer_t_node,
    pub timeout: u64,
    pub repeat: u64,
    pub start_id: u64,
}
unsafe impl crate::Plain for uv_timer_t {}

#[repr(C)]
#[derive(Clone, Copy)]
pub union uv_tty_t_u {
    pub reserved: [*mut c_void; 4],
    pub fd: c_int,
}
unsafe impl crate::Plain for uv_tty_t_u {}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct uv_tty_t {
    pub data: *mut c_void,
    pub loop_: *mut uv_loop_t,
    pub type_: uv_handle_type,
    pub close_cb: Option<unsafe extern "C" fn(*mut uv_handle_t)>,
    pub handle_queue: uv__queue,
    pub u: uv_tty_t_u,
    pub next_closing: *mut uv_handle_t,
    pub flags: c_uint,
    pub write_queue_size: usize,
    pub alloc_cb: Option<unsafe extern "C" fn(*mut uv_handle_t, usize, *mut uv_buf_t)>,
    pub read_cb: Option<unsafe extern "C" fn(*mut uv_stream_t, isize, *const uv_buf_t)>,
    pub connect_req: *mut uv_connect_t,
    pub shutdown_req: *mut uv_shutdown_t,
    pub io_watcher: uv__io_t,
    pub write_queue: uv__queue,
    pub write_completed_queue: uv__queue,
    pub connection_cb: Option<unsafe extern "C" fn(*mut uv_stream_t, c_int)>,
    pub delayed_error: c_int,
    pub accepted_fd: c_int,
    pub queued_fds: *mut c_void,
    pub orig_termios: libc::termios,
    pub mode: c_int,
}
unsafe impl crate::Plain for uv_tty_t {}

#[repr(C)]
#[derive(Clone, Copy)]
pub union uv_udp_t_u {
    pub reserved: [*mut c_void; 4],
    pub fd: c_int,
}
unsafe impl crate::Plain for uv_udp_t_u {}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct uv_udp_t {
    pub data: *mut c_void,
    pub loop_: *mut uv_loop_t,
    pub type_: uv_handle_type,
    pub close_cb: Option<unsafe extern "C" fn(*mut uv_handle_t)>,
    pub handle_queue: uv__queue,
    pub u: uv_udp_t_u,
    pub next_closing: *mut uv_handle_t,
    pub flags: c_uint,
    pub send_queue_size: usize,
    pub send_queue_count: usize,
    pub alloc_cb: Option<unsafe extern "C" fn(*mut uv_handle_t, usize, *mut uv_buf_t)>,
    pub recv_cb: Option<unsafe extern "C" fn(*mut uv_udp_t, isize, *const uv_buf_t, *const libc::sockaddr, c_uint)>,
    pub io_watcher: uv__io_t,
    pub write_queue: uv__queue,
    pub write_completed_queue: uv__queue,
}
unsafe impl crate::Plain for uv_udp_t {}

#[repr(C)]
#[derive(Clone, Copy)]
pub union uv_udp_send_t_u {
    pub storage: libc::sockaddr_storage,
    pub addr: libc::sockaddr,
}
unsafe impl crate::Plain for uv_udp_send_t_u {}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct uv_udp_send_t {
    pub data: *mut c_void,
    pub type_: uv_req_type,
    pub reserved: [*mut c_void; 5],
    pub reserved2: [*mut c_void; 1],
    pub handle: *mut uv_udp_t,
    pub cb: Option<unsafe extern "C" fn(*mut uv_udp_send_t, c_int)>,
    pub queue: uv__queue,
    pub u: uv_udp_send_t_u,
    pub nbufs: c_uint,
    pub bufs: *mut uv_buf_t,
    pub status: isize,
    pub send_cb: Option<unsafe extern "C" fn(*mut uv_udp_send_t, c_int)>,
    pub bufsml: [uv_buf_t; 4],
}
unsafe impl crate::Plain for uv_udp_send_t {}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct uv_utsname_t {
    pub sysname: [c_char; 256],
    pub release: [c_char; 256],
    pub version: [c_char; 256],
    pub machine: [c_char; 256],
}
unsafe impl crate::Plain for uv_utsname_t {}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct uv_work_t {
    pub data: *mut c_void,
    pub type_: uv_req_type,
    pub reserved: [*mut c_void; 5],
    pub reserved2: [*mut c_void; 1],
    pub loop_: *mut uv_loop_t,
    pub work_cb: Option<unsafe extern "C" fn(*mut uv_work_t)>,
    pub after_work_cb: Option<unsafe extern "C" fn(*mut uv_work_t, c_int)>,
    pub work_req: uv__work,
}
unsafe impl crate::Plain for uv_work_t {}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct uv_write_t {
    pub data: *mut c_void,
    pub type_: uv_req_type,
    pub reserved: [*mut c_void; 5],
    pub reserved2: [*mut c_void; 1],
    pub cb: Option<unsafe extern "C" fn(*mut uv_write_t, c_int)>,
    pub send_handle: *mut uv_stream_t,
    pub handle: *mut uv_stream_t,
    pub queue: uv__queue,
    pub write_index: c_uint,
    pub bufs: *mut uv_buf_t,
    pub nbufs: c_uint,
    pub error: c_int,
    pub bufsml: [uv_buf_t; 4],
}
unsafe impl crate::Plain for uv_write_t {}

#[repr(C)]
#[derive(Clone, Copy)]
pub union uv_any_handle {
    pub tty: uv_tty_t,
    pub pipe: uv_pipe_t,
    pub stream: uv_stream_t,
    pub tcp: uv_tcp_t,
    pub udp: uv_udp_t,
    pub poll: uv_poll_t,
    pub signal: uv_signal_t,
    pub timer: uv_timer_t,
    pub fs_event: uv_fs_event_t,
    pub process: uv_process_t,
    pub async_: uv_async_t,
    pub check: uv_check_t,
    pub idle: uv_idle_t,
    pub prepare: uv_prepare_t,
    pub fs_poll: uv_fs_poll_t,
    pub handle: uv_handle_t,
}
unsafe impl crate::Plain for uv_any_handle {}

#[repr(C)]
#[derive(Clone, Copy)]
pub union uv_any_req {
    pub getnameinfo: uv_getnameinfo_t,
    pub fs: uv_fs_t,
    pub udp_send: uv_udp_send_t,
    pub write: uv_write_t,
    pub getaddrinfo: uv_getaddrinfo_t,
    pub random: uv_random_t,
    pub work: uv_work_t,
    pub connect: uv_connect_t,
    pub shutdown: uv_shutdown_t,
    pub req: uv_req_t,
}
unsafe impl crate::Plain for uv_any_req {}

pub type uv_after_work_cb = Option<unsafe extern "C" fn(*mut uv_work_t, c_int)>;

pub type uv_alloc_cb = Option<unsafe extern "C" fn(*mut uv_handle_t, usize, *mut uv_buf_t)>;

pub type uv_async_cb = Option<unsafe extern "C" fn(*mut uv_async_t)>;

pub type uv_barrier_t = libc::pthread_barrier_t;

pub type uv_calloc_func = Option<unsafe extern "C" fn(usize, usize) -> *mut c_void>;

pub type uv_check_cb = Option<unsafe extern "C" fn(*mut uv_check_t)>;

pub type uv_clock_id = c_int;

pub type uv_close_cb = Option<unsafe extern "C" fn(*mut uv_handle_t)>;

pub type uv_cond_t = libc::pthread_cond_t;

pub type uv_connect_cb = Option<unsafe extern "C" fn(*mut uv_connect_t, c_int)>;

pub type uv_connection_cb = Option<unsafe extern "C" fn(*mut uv_stream_t, c_int)>;

pub type uv_dirent_type_t = c_int;

pub type uv_errno_t = c_int;

pub type uv_exit_cb = Option<unsafe extern "C" fn(*mut uv_process_t, i64, c_int)>;

pub type uv_file = c_int;

pub type uv_free_func = Option<unsafe extern "C" fn(*mut c_void)>;

pub type uv_fs_cb = Option<unsafe extern "C" fn(*mut uv_fs_t)>;

pub type uv_fs_event_cb = Option<unsafe extern "C" fn(*mut uv_fs_event_t, *const c_char, c_int, c_int)>;

pub type uv_fs_poll_cb = Option<unsafe extern "C" fn(*mut uv_fs_poll_t, c_int, *const uv_stat_t, *const uv_stat_t)>;

pub type uv_fs_type = c_int;

pub type uv_getaddrinfo_cb = Option<unsafe extern "C" fn(*mut uv_getaddrinfo_t, c_int, *mut libc::addrinfo)>;

pub type uv_getnameinfo_cb = Option<unsafe extern "C" fn(*mut uv_getnameinfo_t, c_int, *const c_char, *const c_char)>;

pub type uv_gid_t = c_uint;

pub type uv_handle_type = c_int;

pub type uv_idle_cb = Option<unsafe extern "C" fn(*mut uv_idle_t)>;

pub type uv_key_t = c_uint;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct uv_lib_t {
    pub handle: *mut c_void,
    pub errmsg: *mut c_char,
}
unsafe impl crate::Plain for uv_lib_t {}

pub type uv_loop_option = c_int;

pub type uv_malloc_func = Option<unsafe extern "C" fn(usize) -> *mut c_void>;

pub type uv_membership = c_int;

pub type uv_mutex_t = libc::pthread_mutex_t;

pub type uv_once_t = c_int;

pub type uv_os_fd_t = c_int;

pub type uv_os_sock_t = c_int;

pub type uv_pid_t = c_int;

pub type uv_poll_cb = Option<unsafe extern "C" fn(*mut uv_poll_t, c_int, c_int)>;

pub type uv_prepare_cb = Option<unsafe extern "C" fn(*mut uv_prepare_t)>;

pub type uv_random_cb = Option<unsafe extern "C" fn(*mut uv_random_t, c_int, *mut c_void, usize)>;

pub type uv_read_cb = Option<unsafe extern "C" fn(*mut uv_stream_t, isize, *const uv_buf_t)>;

pub type uv_realloc_func = Option<unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void>;

pub type uv_req_type = c_int;

pub type uv_run_mode = c_int;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct uv_rusage_t {
    pub ru_utime: uv_timeval_t,
    pub ru_stime: uv_timeval_t,
    pub ru_maxrss: u64,
    pub ru_ixrss: u64,
    pub ru_idrss: u64,
    pub ru_isrss: u64,
    pub ru_minflt: u64,
    pub ru_majflt: u64,
    pub ru_nswap: u64,
    pub ru_inblock: u64,
    pub ru_oublock: u64,
    pub ru_msgsnd: u64,
    pub ru_msgrcv: u64,
    pub ru_nsignals: u64,
    pub ru_nvcsw: u64,
    pub ru_nivcsw: u64,
}
unsafe impl crate::Plain for uv_rusage_t {}

pub type uv_rwlock_t = libc::pthread_rwlock_t;

pub type uv_sem_t = libc::sem_t;

pub type uv_shutdown_cb = Option<unsafe extern "C" fn(*mut uv_shutdown_t, c_int)>;

pub type uv_signal_cb = Option<unsafe extern "C" fn(*mut uv_signal_t, c_int)>;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct uv_stat_t {
    pub st_dev: u64,
    pub st_mode: u64,
    pub st_nlink: u64,
    pub st_uid: u64,
    pub st_gid: u64,
    pub st_rdev: u64,
    pub st_ino: u64,
    pub st_size: u64,
    pub st_blksize: u64,
    pub st_blocks: u64,
    pub st_flags: u64,
    pub st_gen: u64,
    pub st_atim: uv_timespec_t,
    pub st_mtim: uv_timespec_t,
    pub st_ctim: uv_timespec_t,
    pub st_birthtim: uv_timespec_t,
}
unsafe impl crate::Plain for uv_stat_t {}

pub type uv_stdio_flags = c_int;

pub type uv_thread_cb = Option<unsafe extern "C" fn(*mut c_void)>;

pub type uv_thread_create_flags = c_int;

pub type uv_thread_t = u64;

pub type uv_timer_cb = Option<unsafe extern "C" fn(*mut uv_timer_t)>;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct uv_timespec64_t {
    pub tv_sec: i64,
    pub tv_nsec: c_int,
}
unsafe impl crate::Plain for uv_timespec64_t {}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct uv_timespec_t {
    pub tv_sec: i64,
    pub tv_nsec: i64,
}
unsafe impl crate::Plain for uv_timespec_t {}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct uv_timeval64_t {
    pub tv_sec: i64,
    pub tv_usec: c_int,
}
unsafe impl crate::Plain for uv_timeval64_t {}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct uv_timeval_t {
    pub tv_sec: i64,
    pub tv_usec: i64,
}
unsafe impl crate::Plain for uv_timeval_t {}

pub type uv_tty_mode_t = c_int;

pub type uv_tty_vtermstate_t = c_int;

pub type uv_udp_recv_cb = Option<unsafe extern "C" fn(*mut uv_udp_t, isize, *const uv_buf_t, *const libc::sockaddr, c_uint)>;

pub type uv_udp_send_cb = Option<unsafe extern "C" fn(*mut uv_udp_send_t, c_int)>;

pub type uv_uid_t = c_uint;

pub type uv_walk_cb = Option<unsafe extern "C" fn(*mut uv_handle_t, *mut c_void)>;

pub type uv_work_cb = Option<unsafe extern "C" fn(*mut uv_work_t)>;

pub type uv_write_cb = Option<unsafe extern "C" fn(*mut uv_write_t, c_int)>;

#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
const _: () = {
    use std::mem::offset_of;
    assert!(offset_of!(uv__io_t, bits) == 0);
    assert!(offset_of!(uv__io_t, pending_queue) == 8);
    assert!(offset_of!(uv__io_t, watcher_queue) == 24);
    assert!(offset_of!(uv__io_t, pevents) == 40);
    assert!(offset_of!(uv__io_t, events) == 44);
    assert!(offset_of!(uv__io_t, fd) == 48);
    assert!(size_of::<uv__io_t>() == 56);
    assert!(offset_of!(uv__queue, next) == 0);
    assert!(offset_of!(uv__queue, prev) == 8);
    assert!(size_of::<uv__queue>() == 16);
    assert!(offset_of!(uv__req_write_extra_s, nwritten) == 0);
    assert!(size_of::<uv__req_write_extra_s>() == 8);
    assert!(offset_of!(uv__work, work) == 0);
    assert!(offset_of!(uv__work, done) == 8);
    assert!(offset_of!(uv__work, loop_) == 16);
    assert!(offset_of!(uv__work, wq) == 24);
    assert!(size_of::<uv__work>() == 40);
    assert!(offset_of!(uv_async_t, data) == 0);
    assert!(offset_of!(uv_async_t, loop_) == 8);
    assert!(offset_of!(uv_async_t, type_) == 16);
    assert!(offset_of!(uv_async_t, close_cb) == 24);
    assert!(offset_of!(uv_async_t, handle_queue) == 32);
    assert!(offset_of!(uv_async_t, u) == 48);
    assert!(offset_of!(uv_async_t, next_closing) == 80);
    assert!(offset_of!(uv_async_t, flags) == 88);
    assert!(offset_of!(uv_async_t, async_cb) == 96);
    assert!(offset_of!(uv_async_t, queue) == 104);
    assert!(offset_of!(uv_async_t, pending) == 120);
    assert!(size_of::<uv_async_t>() == 128);
    assert!(offset_of!(uv_buf_t, base) == 0);
    assert!(offset_of!(uv_buf_t, len) == 8);
    assert!(size_of::<uv_buf_t>() == 16);
    assert!(offset_of!(uv_check_t, data) == 0);
    assert!(offset_of!(uv_check_t, loop_) == 8);
    assert!(offset_of!(uv_check_t, type_) == 16);
    assert!(offset_of!(uv_check_t, close_cb) == 24);
    assert!(offset_of!(uv_check_t, handle_queue) == 32);
    assert!(offset_of!(uv_check_t, u) == 48);
    assert!(offset_of!(uv_check_t, next_closing) == 80);
    assert!(offset_of!(uv_check_t, flags) == 88);
    assert!(offset_of!(uv_check_t, check_cb) == 96);
    assert!(offset_of!(uv_check_t, queue) == 104);
    assert!(size_of::<uv_check_t>() == 120);
    assert!(offset_of!(uv_connect_t, data) == 0);
    assert!(offset_of!(uv_connect_t, type_) == 8);
    assert!(offset_of!(uv_connect_t, reserved) == 16);
    assert!(offset_of!(uv_connect_t, reserved2) == 56);
    assert!(offset_of!(uv_connect_t, cb) == 64);
    assert!(offset_of!(uv_connect_t, handle) == 72);
    assert!(offset_of!(uv_connect_t, queue) == 80);
    assert!(size_of::<uv_connect_t>() == 96);
    assert!(offset_of!(uv_cpu_info_t, model) == 0);
    assert!(offset_of!(uv_cpu_info_t, speed) == 8);
    assert!(offset_of!(uv_cpu_info_t, cpu_times) == 16);
    assert!(size_of::<uv_cpu_info_t>() == 56);
    assert!(offset_of!(uv_cpu_times_s, user) == 0);
    assert!(offset_of!(uv_cpu_times_s, nice) == 8);
    assert!(offset_of!(uv_cpu_times_s, sys) == 16);
    assert!(offset_of!(uv_cpu_times_s, idle) == 24);
    assert!(offset_of!(uv_cpu_times_s, irq) == 32);
    assert!(size_of::<uv_cpu_times_s>() == 40);
    assert!(offset_of!(uv_dir_t, dirents) == 0);
    assert!(offset_of!(uv_dir_t, nentries) == 8);
    assert!(offset_of!(uv_dir_t, reserved) == 16);
    assert!(offset_of!(uv_dir_t, dir) == 48);
    assert!(size_of::<uv_dir_t>() == 56);
    assert!(offset_of!(uv_dirent_t, name) == 0);
    assert!(offset_of!(uv_dirent_t, type_) == 8);
    assert!(size_of::<uv_dirent_t>() == 16);
    assert!(offset_of!(uv_env_item_t, name) == 0);
    assert!(offset_of!(uv_env_item_t, value) == 8);
    assert!(size_of::<uv_env_item_t>() == 16);
    assert!(offset_of!(uv_fs_event_t, data) == 0);
    assert!(offset_of!(uv_fs_event_t, loop_) == 8);
    assert!(offset_of!(uv_fs_event_t, type_) == 16);
    assert!(offset_of!(uv_fs_event_t, close_cb) == 24);
    assert!(offset_of!(uv_fs_event_t, handle_queue) == 32);
    assert!(offset_of!(uv_fs_event_t, u) == 48);
    assert!(offset_of!(uv_fs_event_t, next_closing) == 80);
    assert!(offset_of!(uv_fs_event_t, flags) == 88);
    assert!(offset_of!(uv_fs_event_t, path) == 96);
    assert!(offset_of!(uv_fs_event_t, cb) == 104);
    assert!(offset_of!(uv_fs_event_t, watchers) == 112);
    assert!(offset_of!(uv_fs_event_t, wd) == 128);
    assert!(size_of::<uv_fs_event_t>() == 136);
    assert!(offset_of!(uv_fs_poll_t, data) == 0);
    assert!(offset_of!(uv_fs_poll_t, loop_) == 8);
    assert!(offset_of!(uv_fs_poll_t, type_) == 16);
    assert!(offset_of!(uv_fs_poll_t, close_cb) == 24);
    assert!(offset_of!(uv_fs_poll_t, handle_queue) == 32);
    assert!(offset_of!(uv_fs_poll_t, u) == 48);
    assert!(offset_of!(uv_fs_poll_t, next_closing) == 80);
    assert!(offset_of!(uv_fs_poll_t, flags) == 88);
    assert!(offset_of!(uv_fs_poll_t, poll_ctx) == 96);
    assert!(size_of::<uv_fs_poll_t>() == 104);
    assert!(offset_of!(uv_fs_t, data) == 0);
    assert!(offset_of!(uv_fs_t, type_) == 8);
    assert!(offset_of!(uv_fs_t, reserved) == 16);
    assert!(offset_of!(uv_fs_t, reserved2) == 56);
    assert!(offset_of!(uv_fs_t, fs_type) == 64);
    assert!(offset_of!(uv_fs_t, loop_) == 72);
    assert!(offset_of!(uv_fs_t, cb) == 80);
    assert!(offset_of!(uv_fs_t, result) == 88);
    assert!(offset_of!(uv_fs_t, ptr) == 96);
    assert!(offset_of!(uv_fs_t, path) == 104);
    assert!(offset_of!(uv_fs_t, statbuf) == 112);
    assert!(offset_of!(uv_fs_t, new_path) == 272);
    assert!(offset_of!(uv_fs_t, file) == 280);
    assert!(offset_of!(uv_fs_t, flags) == 284);
    assert!(offset_of!(uv_fs_t, mode) == 288);
    assert!(offset_of!(uv_fs_t, nbufs) == 292);
    assert!(offset_of!(uv_fs_t, bufs) == 296);
    assert!(offset_of!(uv_fs_t, off) == 304);
    assert!(offset_of!(uv_fs_t, uid) == 312);
    assert!(offset_of!(uv_fs_t, gid) == 316);
    assert!(offset_of!(uv_fs_t, atime) == 320);
    assert!(offset_of!(uv_fs_t, mtime) == 328);
    assert!(offset_of!(uv_fs_t, work_req) == 336);
    assert!(offset_of!(uv_fs_t, bufsml) == 376);
    assert!(size_of::<uv_fs_t>() == 440);
    assert!(offset_of!(uv_getaddrinfo_t, data) == 0);
    assert!(offset_of!(uv_getaddrinfo_t, type_) == 8);
    assert!(offset_of!(uv_getaddrinfo_t, reserved) == 16);
    assert!(offset_of!(uv_getaddrinfo_t, reserved2) == 56);
    assert!(offset_of!(uv_getaddrinfo_t, loop_) == 64);
    assert!(offset_of!(uv_getaddrinfo_t, work_req) == 72);
    assert!(offset_of!(uv_getaddrinfo_t, cb) == 112);
    assert!(offset_of!(uv_getaddrinfo_t, hints) == 120);
    assert!(offset_of!(uv_getaddrinfo_t, hostname) == 128);
    assert!(offset_of!(uv_getaddrinfo_t, service) == 136);
    assert!(offset_of!(uv_getaddrinfo_t, addrinfo) == 144);
    assert!(offset_of!(uv_getaddrinfo_t, retcode) == 152);
    assert!(size_of::<uv_getaddrinfo_t>() == 160);
    assert!(offset_of!(uv_getnameinfo_t, data) == 0);
    assert!(offset_of!(uv_getnameinfo_t, type_) == 8);
    assert!(offset_of!(uv_getnameinfo_t, reserved) == 16);
    assert!(offset_of!(uv_getnameinfo_t, reserved2) == 56);
    assert!(offset_of!(uv_getnameinfo_t, loop_) == 64);
    assert!(offset_of!(uv_getnameinfo_t, work_req) == 72);
    assert!(offset_of!(uv_getnameinfo_t, getnameinfo_cb) == 112);
    assert!(offset_of!(uv_getnameinfo_t, storage) == 120);
    assert!(offset_of!(uv_getnameinfo_t, flags) == 248);
    assert!(offset_of!(uv_getnameinfo_t, host) == 252);
    assert!(offset_of!(uv_getnameinfo_t, service) == 1277);
    assert!(offset_of!(uv_getnameinfo_t, retcode) == 1312);
    assert!(size_of::<uv_getnameinfo_t>() == 1320);
    assert!(offset_of!(uv_group_t, groupname) == 0);
    assert!(offset_of!(uv_group_t, gid) == 8);
    assert!(offset_of!(uv_group_t, members) == 16);
    assert!(size_of::<uv_group_t>() == 24);
    assert!(offset_of!(uv_handle_t, data) == 0);
    assert!(offset_of!(uv_handle_t, loop_) == 8);
    assert!(offset_of!(uv_handle_t, type_) == 16);
    assert!(offset_of!(uv_handle_t, close_cb) == 24);
    assert!(offset_of!(uv_handle_t, handle_queue) == 32);
    assert!(offset_of!(uv_handle_t, u) == 48);
    assert!(offset_of!(uv_handle_t, next_closing) == 80);
    assert!(offset_of!(uv_handle_t, flags) == 88);
    assert!(size_of::<uv_handle_t>() == 96);
    assert!(offset_of!(uv_idle_t, data) == 0);
    assert!(offset_of!(uv_idle_t, loop_) == 8);
    assert!(offset_of!(uv_idle_t, type_) == 16);
    assert!(offset_of!(uv_idle_t, close_cb) == 24);
    assert!(offset_of!(uv_idle_t, handle_queue) == 32);
    assert!(offset_of!(uv_idle_t, u) == 48);
    assert!(offset_of!(uv_idle_t, next_closing) == 80);
    assert!(offset_of!(uv_idle_t, flags) == 88);
    assert!(offset_of!(uv_idle_t, idle_cb) == 96);
    assert!(offset_of!(uv_idle_t, queue) == 104);
    assert!(size_of::<uv_idle_t>() == 120);
    assert!(offset_of!(uv_interface_address_t, name) == 0);
    assert!(offset_of!(uv_interface_address_t, phys_addr) == 8);
    assert!(offset_of!(uv_interface_address_t, is_internal) == 16);
    assert!(offset_of!(uv_interface_address_t, address) == 20);
    assert!(offset_of!(uv_interface_address_t, netmask) == 48);
    assert!(size_of::<uv_interface_address_t>() == 80);
    assert!(offset_of!(uv_loop_t, data) == 0);
    assert!(offset_of!(uv_loop_t, active_handles) == 8);
    assert!(offset_of!(uv_loop_t, handle_queue) == 16);
    assert!(offset_of!(uv_loop_t, active_reqs) == 32);
    assert!(offset_of!(uv_loop_t, internal_fields) == 40);
    assert!(offset_of!(uv_loop_t, stop_flag) == 48);
    assert!(offset_of!(uv_loop_t, flags) == 56);
    assert!(offset_of!(uv_loop_t, backend_fd) == 64);
    assert!(offset_of!(uv_loop_t, pending_queue) == 72);
    assert!(offset_of!(uv_loop_t, watcher_queue) == 88);
    assert!(offset_of!(uv_loop_t, watchers) == 104);
    assert!(offset_of!(uv_loop_t, nwatchers) == 112);
    assert!(offset_of!(uv_loop_t, nfds) == 116);
    assert!(offset_of!(uv_loop_t, wq) == 120);
    assert!(offset_of!(uv_loop_t, wq_mutex) == 136);
    assert!(offset_of!(uv_loop_t, wq_async) == 176);
    assert!(offset_of!(uv_loop_t, cloexec_lock) == 304);
    assert!(offset_of!(uv_loop_t, closing_handles) == 360);
    assert!(offset_of!(uv_loop_t, process_handles) == 368);
    assert!(offset_of!(uv_loop_t, prepare_handles) == 384);
    assert!(offset_of!(uv_loop_t, check_handles) == 400);
    assert!(offset_of!(uv_loop_t, idle_handles) == 416);
    assert!(offset_of!(uv_loop_t, async_handles) == 432);
    assert!(offset_of!(uv_loop_t, async_unused) == 448);
    assert!(offset_of!(uv_loop_t, async_io_watcher) == 456);
    assert!(offset_of!(uv_loop_t, async_wfd) == 512);
    assert!(offset_of!(uv_loop_t, timer_heap) == 520);
    assert!(offset_of!(uv_loop_t, timer_counter) == 536);
    assert!(offset_of!(uv_loop_t, time) == 544);
    assert!(offset_of!(uv_loop_t, signal_pipefd) == 552);
    assert!(offset_of!(uv_loop_t, signal_io_watcher) == 560);
    assert!(offset_of!(uv_loop_t, child_watcher) == 616);
    assert!(offset_of!(uv_loop_t, emfile_fd) == 768);
    assert!(offset_of!(uv_loop_t, inotify_read_watcher) == 776);
    assert!(offset_of!(uv_loop_t, inotify_watchers) == 832);
    assert!(offset_of!(uv_loop_t, inotify_fd) == 840);
    assert!(size_of::<uv_loop_t>() == 848);
    assert!(offset_of!(uv_metrics_t, loop_count) == 0);
    assert!(offset_of!(uv_metrics_t, events) == 8);
    assert!(offset_of!(uv_metrics_t, events_waiting) == 16);
    assert!(offset_of!(uv_metrics_t, reserved) == 24);
    assert!(size_of::<uv_metrics_t>() == 128);
    assert!(offset_of!(uv_passwd_t, username) == 0);
    assert!(offset_of!(uv_passwd_t, uid) == 8);
    assert!(offset_of!(uv_passwd_t, gid) == 16);
    assert!(offset_of!(uv_passwd_t, shell) == 24);
    assert!(offset_of!(uv_passwd_t, homedir) == 32);
    assert!(size_of::<uv_passwd_t>() == 40);
    assert!(offset_of!(uv_pipe_t, data) == 0);
    assert!(offset_of!(uv_pipe_t, loop_) == 8);
    assert!(offset_of!(uv_pipe_t, type_) == 16);
    assert!(offset_of!(uv_pipe_t, close_cb) == 24);
    assert!(offset_of!(uv_pipe_t, handle_queue) == 32);
    assert!(offset_of!(uv_pipe_t, u) == 48);
    assert!(offset_of!(uv_pipe_t, next_closing) == 80);
    assert!(offset_of!(uv_pipe_t, flags) == 88);
    assert!(offset_of!(uv_pipe_t, write_queue_size) == 96);
    assert!(offset_of!(uv_pipe_t, alloc_cb) == 104);
    assert!(offset_of!(uv_pipe_t, read_cb) == 112);
    assert!(offset_of!(uv_pipe_t, connect_req) == 120);
    assert!(offset_of!(uv_pipe_t, shutdown_req) == 128);
    assert!(offset_of!(uv_pipe_t, io_watcher) == 136);
    assert!(offset_of!(uv_pipe_t, write_queue) == 192);
    assert!(offset_of!(uv_pipe_t, write_completed_queue) == 208);
    assert!(offset_of!(uv_pipe_t, connection_cb) == 224);
    assert!(offset_of!(uv_pipe_t, delayed_error) == 232);
    assert!(offset_of!(uv_pipe_t, accepted_fd) == 236);
    assert!(offset_of!(uv_pipe_t, queued_fds) == 240);
    assert!(offset_of!(uv_pipe_t, ipc) == 248);
    assert!(offset_of!(uv_pipe_t, pipe_fname) == 256);
    assert!(size_of::<uv_pipe_t>() == 264);
    assert!(offset_of!(uv_poll_t, data) == 0);
    assert!(offset_of!(uv_poll_t, loop_) == 8);
    assert!(offset_of!(uv_poll_t, type_) == 16);
    assert!(offset_of!(uv_poll_t, close_cb) == 24);
    assert!(offset_of!(uv_poll_t, handle_queue) == 32);
    assert!(offset_of!(uv_poll_t, u) == 48);
    assert!(offset_of!(uv_poll_t, next_closing) == 80);
    assert!(offset_of!(uv_poll_t, flags) == 88);
    assert!(offset_of!(uv_poll_t, poll_cb) == 96);
    assert!(offset_of!(uv_poll_t, io_watcher) == 104);
    assert!(size_of::<uv_poll_t>() == 160);
    assert!(offset_of!(uv_prepare_t, data) == 0);
    assert!(offset_of!(uv_prepare_t, loop_) == 8);
    assert!(offset_of!(uv_prepare_t, type_) == 16);
    assert!(offset_of!(uv_prepare_t, close_cb) == 24);
    assert!(offset_of!(uv_prepare_t, handle_queue) == 32);
    assert!(offset_of!(uv_prepare_t, u) == 48);
    assert!(offset_of!(uv_prepare_t, next_closing) == 80);
    assert!(offset_of!(uv_prepare_t, flags) == 88);
    assert!(offset_of!(uv_prepare_t, prepare_cb) == 96);
    assert!(offset_of!(uv_prepare_t, queue) == 104);
    assert!(size_of::<uv_prepare_t>() == 120);
    assert!(offset_of!(uv_process_options_t, exit_cb) == 0);
    assert!(offset_of!(uv_process_options_t, file) == 8);
    assert!(offset_of!(uv_process_options_t, args) == 16);
    assert!(offset_of!(uv_process_options_t, env) == 24);
    assert!(offset_of!(uv_process_options_t, cwd) == 32);
    assert!(offset_of!(uv_process_options_t, flags) == 40);
    assert!(offset_of!(uv_process_options_t, stdio_count) == 44);
    assert!(offset_of!(uv_process_options_t, stdio) == 48);
    assert!(offset_of!(uv_process_options_t, uid) == 56);
    assert!(offset_of!(uv_process_options_t, gid) == 60);
    assert!(size_of::<uv_process_options_t>() == 64);
    assert!(offset_of!(uv_process_t, data) == 0);
    assert!(offset_of!(uv_process_t, loop_) == 8);
    assert!(offset_of!(uv_process_t, type_) == 16);
    assert!(offset_of!(uv_process_t, close_cb) == 24);
    assert!(offset_of!(uv_process_t, handle_queue) == 32);
    assert!(offset_of!(uv_process_t, u) == 48);
    assert!(offset_of!(uv_process_t, next_closing) == 80);
    assert!(offset_of!(uv_process_t, flags) == 88);
    assert!(offset_of!(uv_process_t, exit_cb) == 96);
    assert!(offset_of!(uv_process_t, pid) == 104);
    assert!(offset_of!(uv_process_t, queue) == 112);
    assert!(offset_of!(uv_process_t, status) == 128);
    assert!(size_of::<uv_process_t>() == 136);
    assert!(offset_of!(uv_random_t, data) == 0);
    assert!(offset_of!(uv_random_t, type_) == 8);
    assert!(offset_of!(uv_random_t, reserved) == 16);
    assert!(offset_of!(uv_random_t, reserved2) == 56);
    assert!(offset_of!(uv_random_t, loop_) == 64);
    assert!(offset_of!(uv_random_t, status) == 72);
    assert!(offset_of!(uv_random_t, buf) == 80);
    assert!(offset_of!(uv_random_t, buflen) == 88);
    assert!(offset_of!(uv_random_t, cb) == 96);
    assert!(offset_of!(uv_random_t, work_req) == 104);
    assert!(size_of::<uv_random_t>() == 144);
    assert!(offset_of!(uv_req_t, data) == 0);
    assert!(offset_of!(uv_req_t, type_) == 8);
    assert!(offset_of!(uv_req_t, reserved) == 16);
    assert!(offset_of!(uv_req_t, reserved2) == 56);
    assert!(size_of::<uv_req_t>() == 64);
    assert!(offset_of!(uv_shutdown_t, data) == 0);
    assert!(offset_of!(uv_shutdown_t, type_) == 8);
    assert!(offset_of!(uv_shutdown_t, reserved) == 16);
    assert!(offset_of!(uv_shutdown_t, reserved2) == 56);
    assert!(offset_of!(uv_shutdown_t, handle) == 64);
    assert!(offset_of!(uv_shutdown_t, cb) == 72);
    assert!(size_of::<uv_shutdown_t>() == 80);
    assert!(offset_of!(uv_signal_t, data) == 0);
    assert!(offset_of!(uv_signal_t, loop_) == 8);
    assert!(offset_of!(uv_signal_t, type_) == 16);
    assert!(offset_of!(uv_signal_t, close_cb) == 24);
    assert!(offset_of!(uv_signal_t, handle_queue) == 32);
    assert!(offset_of!(uv_signal_t, u) == 48);
    assert!(offset_of!(uv_signal_t, next_closing) == 80);
    assert!(offset_of!(uv_signal_t, flags) == 88);
    assert!(offset_of!(uv_signal_t, signal_cb) == 96);
    assert!(offset_of!(uv_signal_t, signum) == 104);
    assert!(offset_of!(uv_signal_t, tree_entry) == 112);
    assert!(offset_of!(uv_signal_t, caught_signals) == 144);
    assert!(offset_of!(uv_signal_t, dispatched_signals) == 148);
    assert!(size_of::<uv_signal_t>() == 152);
    assert!(offset_of!(uv_statfs_t, f_type) == 0);
    assert!(offset_of!(uv_statfs_t, f_bsize) == 8);
    assert!(offset_of!(uv_statfs_t, f_blocks) == 16);
    assert!(offset_of!(uv_statfs_t, f_bfree) == 24);
    assert!(offset_of!(uv_statfs_t, f_bavail) == 32);
    assert!(offset_of!(uv_statfs_t, f_files) == 40);
    assert!(offset_of!(uv_statfs_t, f_ffree) == 48);
    assert!(offset_of!(uv_statfs_t, f_frsize) == 56);
    assert!(offset_of!(uv_statfs_t, f_spare) == 64);
    assert!(size_of::<uv_statfs_t>() == 88);
    assert!(offset_of!(uv_stdio_container_t, flags) == 0);
    assert!(offset_of!(uv_stdio_container_t, data) == 8);
    assert!(size_of::<uv_stdio_container_t>() == 16);
    assert!(offset_of!(uv_stream_t, data) == 0);
    assert!(offset_of!(uv_stream_t, loop_) == 8);
    assert!(offset_of!(uv_stream_t, type_) == 16);
    assert!(offset_of!(uv_stream_t, close_cb) == 24);
    assert!(offset_of!(uv_stream_t, handle_queue) == 32);
    assert!(offset_of!(uv_stream_t, u) == 48);
    assert!(offset_of!(uv_stream_t, next_closing) == 80);
    assert!(offset_of!(uv_stream_t, flags) == 88);
    assert!(offset_of!(uv_stream_t, write_queue_size) == 96);
    assert!(offset_of!(uv_stream_t, alloc_cb) == 104);
    assert!(offset_of!(uv_stream_t, read_cb) == 112);
    assert!(offset_of!(uv_stream_t, connect_req) == 120);
    assert!(offset_of!(uv_stream_t, shutdown_req) == 128);
    assert!(offset_of!(uv_stream_t, io_watcher) == 136);
    assert!(offset_of!(uv_stream_t, write_queue) == 192);
    assert!(offset_of!(uv_stream_t, write_completed_queue) == 208);
    assert!(offset_of!(uv_stream_t, connection_cb) == 224);
    assert!(offset_of!(uv_stream_t, delayed_error) == 232);
    assert!(offset_of!(uv_stream_t, accepted_fd) == 236);
    assert!(offset_of!(uv_stream_t, queued_fds) == 240);
    assert!(size_of::<uv_stream_t>() == 248);
    assert!(offset_of!(uv_tcp_t, data) == 0);
    assert!(offset_of!(uv_tcp_t, loop_) == 8);
    assert!(offset_of!(uv_tcp_t, type_) == 16);
    assert!(offset_of!(uv_tcp_t, close_cb) == 24);
    assert!(offset_of!(uv_tcp_t, handle_queue) == 32);
    assert!(offset_of!(uv_tcp_t, u) == 48);
    assert!(offset_of!(uv_tcp_t, next_closing) == 80);
    assert!(offset_of!(uv_tcp_t, flags) == 88);
    assert!(offset_of!(uv_tcp_t, write_queue_size) == 96);
    assert!(offset_of!(uv_tcp_t, alloc_cb) == 104);
    assert!(offset_of!(uv_tcp_t, read_cb) == 112);
    assert!(offset_of!(uv_tcp_t, connect_req) == 120);
    assert!(offset_of!(uv_tcp_t, shutdown_req) == 128);
    assert!(offset_of!(uv_tcp_t, io_watcher) == 136);
    assert!(offset_of!(uv_tcp_t, write_queue) == 192);
    assert!(offset_of!(uv_tcp_t, write_completed_queue) == 208);
    assert!(offset_of!(uv_tcp_t, connection_cb) == 224);
    assert!(offset_of!(uv_tcp_t, delayed_error) == 232);
    assert!(offset_of!(uv_tcp_t, accepted_fd) == 236);
    assert!(offset_of!(uv_tcp_t, queued_fds) == 240);
    assert!(size_of::<uv_tcp_t>() == 248);
    assert!(offset_of!(uv_thread_options_t, flags) == 0);
    assert!(offset_of!(uv_thread_options_t, stack_size) == 8);
    assert!(size_of::<uv_thread_options_t>() == 16);
    assert!(offset_of!(uv_timer_t, data) == 0);
    assert!(offset_of!(uv_timer_t, loop_) == 8);
    assert!(offset_of!(uv_timer_t, type_) == 16);
    assert!(offset_of!(uv_timer_t, close_cb) == 24);
    assert!(offset_of!(uv_timer_t, handle_queue) == 32);
    assert!(offset_of!(uv_timer_t, u) == 48);
    assert!(offset_of!(uv_timer_t, next_closing) == 80);
    assert!(offset_of!(uv_timer_t, flags) == 88);
    assert!(offset_of!(uv_timer_t, timer_cb) == 96);
    assert!(offset_of!(uv_timer_t, node) == 104);
    assert!(offset_of!(uv_timer_t, timeout) == 128);
    assert!(offset_of!(uv_timer_t, repeat) == 136);
    assert!(offset_of!(uv_timer_t, start_id) == 144);
    assert!(size_of::<uv_timer_t>() == 152);
    assert!(offset_of!(uv_tty_t, data) == 0);
    assert!(offset_of!(uv_tty_t, loop_) == 8);
    assert!(offset_of!(uv_tty_t, type_) == 16);
    assert!(offset_of!(uv_tty_t, close_cb) == 24);
    assert!(offset_of!(uv_tty_t, handle_queue) == 32);
    assert!(offset_of!(uv_tty_t, u) == 48);
    assert!(offset_of!(uv_tty_t, next_closing) == 80);
    assert!(offset_of!(uv_tty_t, flags) == 88);
    assert!(offset_of!(uv_tty_t, write_queue_size) == 96);
    assert!(offset_of!(uv_tty_t, alloc_cb) == 104);
    assert!(offset_of!(uv_tty_t, read_cb) == 112);
    assert!(offset_of!(uv_tty_t, connect_req) == 120);
    assert!(offset_of!(uv_tty_t, shutdown_req) == 128);
    assert!(offset_of!(uv_tty_t, io_watcher) == 136);
    assert!(offset_of!(uv_tty_t, write_queue) == 192);
    assert!(offset_of!(uv_tty_t, write_completed_queue) == 208);
    assert!(offset_of!(uv_tty_t, connection_cb) == 224);
    assert!(offset_of!(uv_tty_t, delayed_error) == 232);
    assert!(offset_of!(uv_tty_t, accepted_fd) == 236);
    assert!(offset_of!(uv_tty_t, queued_fds) == 240);
    assert!(offset_of!(uv_tty_t, orig_termios) == 248);
    assert!(offset_of!(uv_tty_t, mode) == 308);
    assert!(size_of::<uv_tty_t>() == 312);
    assert!(offset_of!(uv_udp_t, data) == 0);
    assert!(offset_of!(uv_udp_t, loop_) == 8);
    assert!(offset_of!(uv_udp_t, type_) == 16);
    assert!(offset_of!(uv_udp_t, close_cb) == 24);
    assert!(offset_of!(uv_udp_t, handle_queue) == 32);
    assert!(offset_of!(uv_udp_t, u) == 48);
    assert!(offset_of!(uv_udp_t, next_closing) == 80);
    assert!(offset_of!(uv_udp_t, flags) == 88);
    assert!(offset_of!(uv_udp_t, send_queue_size) == 96);
    assert!(offset_of!(uv_udp_t, send_queue_count) == 104);
    assert!(offset_of!(uv_udp_t, alloc_cb) == 112);
    assert!(offset_of!(uv_udp_t, recv_cb) == 120);
    assert!(offset_of!(uv_udp_t, io_watcher) == 128);
    assert!(offset_of!(uv_udp_t, write_queue) == 184);
    assert!(offset_of!(uv_udp_t, write_completed_queue) == 200);
    assert!(size_of::<uv_udp_t>() == 216);
    assert!(offset_of!(uv_udp_send_t, data) == 0);
    assert!(offset_of!(uv_udp_send_t, type_) == 8);
    assert!(offset_of!(uv_udp_send_t, reserved) == 16);
    assert!(offset_of!(uv_udp_send_t, reserved2) == 56);
    assert!(offset_of!(uv_udp_send_t, handle) == 64);
    assert!(offset_of!(uv_udp_send_t, cb) == 72);
    assert!(offset_of!(uv_udp_send_t, queue) == 80);
    assert!(offset_of!(uv_udp_send_t, u) == 96);
    assert!(offset_of!(uv_udp_send_t, nbufs) == 224);
    assert!(offset_of!(uv_udp_send_t, bufs) == 232);
    assert!(offset_of!(uv_udp_send_t, status) == 240);
    assert!(offset_of!(uv_udp_send_t, send_cb) == 248);
    assert!(offset_of!(uv_udp_send_t, bufsml) == 256);
    assert!(size_of::<uv_udp_send_t>() == 320);
    assert!(offset_of!(uv_utsname_t, sysname) == 0);
    assert!(offset_of!(uv_utsname_t, release) == 256);
    assert!(offset_of!(uv_utsname_t, version) == 512);
    assert!(offset_of!(uv_utsname_t, machine) == 768);
    assert!(size_of::<uv_utsname_t>() == 1024);
    assert!(offset_of!(uv_work_t, data) == 0);
    assert!(offset_of!(uv_work_t, type_) == 8);
    assert!(offset_of!(uv_work_t, reserved) == 16);
    assert!(offset_of!(uv_work_t, reserved2) == 56);
    assert!(offset_of!(uv_work_t, loop_) == 64);
    assert!(offset_of!(uv_work_t, work_cb) == 72);
    assert!(offset_of!(uv_work_t, after_work_cb) == 80);
    assert!(offset_of!(uv_work_t, work_req) == 88);
    assert!(size_of::<uv_work_t>() == 128);
    assert!(offset_of!(uv_write_t, data) == 0);
    assert!(offset_of!(uv_write_t, type_) == 8);
    assert!(offset_of!(uv_write_t, reserved) == 16);
    assert!(offset_of!(uv_write_t, reserved2) == 56);
    assert!(offset_of!(uv_write_t, cb) == 64);
    assert!(offset_of!(uv_write_t, send_handle) == 72);
    assert!(offset_of!(uv_write_t, handle) == 80);
    assert!(offset_of!(uv_write_t, queue) == 88);
    assert!(offset_of!(uv_write_t, write_index) == 104);
    assert!(offset_of!(uv_write_t, bufs) == 112);
    assert!(offset_of!(uv_write_t, nbufs) == 120);
    assert!(offset_of!(uv_write_t, error) == 124);
    assert!(offset_of!(uv_write_t, bufsml) == 128);
    assert!(size_of::<uv_write_t>() == 192);
    assert!(size_of::<uv_any_handle>() == 312);
    assert!(size_of::<uv_any_req>() == 1320);
    assert!(offset_of!(uv_lib_t, handle) == 0);
    assert!(offset_of!(uv_lib_t, errmsg) == 8);
    assert!(size_of::<uv_lib_t>() == 16);
    assert!(offset_of!(uv_rusage_t, ru_utime) == 0);
    assert!(offset_of!(uv_rusage_t, ru_stime) == 16);
    assert!(offset_of!(uv_rusage_t, ru_maxrss) == 32);
    assert!(offset_of!(uv_rusage_t, ru_ixrss) == 40);
    assert!(offset_of!(uv_rusage_t, ru_idrss) == 48);
    assert!(offset_of!(uv_rusage_t, ru_isrss) == 56);
    assert!(offset_of!(uv_rusage_t, ru_minflt) == 64);
    assert!(offset_of!(uv_rusage_t, ru_majflt) == 72);
    assert!(offset_of!(uv_rusage_t, ru_nswap) == 80);
    assert!(offset_of!(uv_rusage_t, ru_inblock) == 88);
    assert!(offset_of!(uv_rusage_t, ru_oublock) == 96);
    assert!(offset_of!(uv_rusage_t, ru_msgsnd) == 104);
    assert!(offset_of!(uv_rusage_t, ru_msgrcv) == 112);
    assert!(offset_of!(uv_rusage_t, ru_nsignals) == 120);
    assert!(offset_of!(uv_rusage_t, ru_nvcsw) == 128);
    assert!(offset_of!(uv_rusage_t, ru_nivcsw) == 136);
    assert!(size_of::<uv_rusage_t>() == 144);
    assert!(offset_of!(uv_stat_t, st_dev) == 0);
    assert!(offset_of!(uv_stat_t, st_mode) == 8);
    assert!(offset_of!(uv_stat_t, st_nlink) == 16);
    assert!(offset_of!(uv_stat_t, st_uid) == 24);
    assert!(offset_of!(uv_stat_t, st_gid) == 32);
    assert!(offset_of!(uv_stat_t, st_rdev) == 40);
    assert!(offset_of!(uv_stat_t, st_ino) == 48);
    assert!(offset_of!(uv_stat_t, st_size) == 56);
    assert!(offset_of!(uv_stat_t, st_blksize) == 64);
    assert!(offset_of!(uv_stat_t, st_blocks) == 72);
    assert!(offset_of!(uv_stat_t, st_flags) == 80);
    assert!(offset_of!(uv_stat_t, st_gen) == 88);
    assert!(offset_of!(uv_stat_t, st_atim) == 96);
    assert!(offset_of!(uv_stat_t, st_mtim) == 112);
    assert!(offset_of!(uv_stat_t, st_ctim) == 128);
    assert!(offset_of!(uv_stat_t, st_birthtim) == 144);
    assert!(size_of::<uv_stat_t>() == 160);
    assert!(offset_of!(uv_timespec64_t, tv_sec) == 0);
    assert!(offset_of!(uv_timespec64_t, tv_nsec) == 8);
    assert!(size_of::<uv_timespec64_t>() == 16);
    assert!(offset_of!(uv_timespec_t, tv_sec) == 0);
    assert!(offset_of!(uv_timespec_t, tv_nsec) == 8);
    assert!(size_of::<uv_timespec_t>() == 16);
    assert!(offset_of!(uv_timeval64_t, tv_sec) == 0);
    assert!(offset_of!(uv_timeval64_t, tv_usec) == 8);
    assert!(size_of::<uv_timeval64_t>() == 16);
    assert!(offset_of!(uv_timeval_t, tv_sec) == 0);
    assert!(offset_of!(uv_timeval_t, tv_usec) == 8);
    assert!(size_of::<uv_timeval_t>() == 16);
};
