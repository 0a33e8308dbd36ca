//! The sizes and offsets of libuv's structs, asserted at compile time.
//!
//! They are those of libuv 1.53.0's headers for 64-bit Linux, and never change. Where a struct
//! contains one of the C library's, its layout depends on the target: such numbers have names here.

use crate::abi::*;
use crate::cpu::uv_cpu_info_t;
use crate::dl::uv_lib_t;
use crate::environment::uv_env_item_t;
use crate::fs::abi::*;
use crate::fs_poll::uv_fs_poll_t;
use crate::host::uv_utsname_t;
use crate::interfaces::uv_interface_address_t;
use crate::own_process::uv_rusage_t;
use crate::thread::uv_thread_options_t;
use crate::user::{uv_group_t, uv_passwd_t};
use blacklight_sys::resolver::{NI_MAXHOST, NI_MAXSERV};
use std::mem::offset_of;

/// `uv_loop_t` has a mutex and a read-write lock of the C library in front of `closing_handles`.
/// The mutex's size depends on the target.
const CLOSING_HANDLES: usize = match size_of::<libc::pthread_mutex_t>() {
    40 => 360,
    48 => 368,
    _ => panic!("the layout of uv_loop_t on this target is not known"),
};
const LOOP_SIZE: usize = CLOSING_HANDLES + 488;

/// `uv_getnameinfo_t` has room for the longest host name, whose length the C library decides.
const NAME_INFO_SIZE: usize =
    (252 + NI_MAXHOST + NI_MAXSERV + size_of::<i32>()).next_multiple_of(8);

const _: () = {
    assert!(size_of::<uv_loop_t>() == LOOP_SIZE);
    assert!(offset_of!(uv_loop_t, active_handles) == 8);
    assert!(offset_of!(uv_loop_t, active_reqs) == 32);
    assert!(offset_of!(uv_loop_t, internal_fields) == 40);
    assert!(offset_of!(uv_loop_t, backend_fd) == 64);
    assert!(offset_of!(uv_loop_t, closing_handles) == CLOSING_HANDLES);
    assert!(size_of::<uv_handle_t>() == 96);
    assert!(offset_of!(uv_handle_t, close_cb) == 24);
    assert!(offset_of!(uv_handle_t, flags) == 88);
    assert!(size_of::<uv_timer_t>() == 152);
    assert!(offset_of!(uv_timer_t, timeout) == 128);
    assert!(size_of::<LoopWatcher>() == 120);
    assert!(size_of::<uv_async_t>() == 128);
    assert!(size_of::<uv_poll_t>() == 160);
    assert!(offset_of!(uv_poll_t, io_watcher) + offset_of!(IoWatcher, fd) == 152);
    assert!(size_of::<uv_signal_t>() == 152);
    assert!(offset_of!(uv_signal_t, signum) == 104);
    assert!(size_of::<uv_process_t>() == 136);
    assert!(offset_of!(uv_process_t, pid) == 104);
    assert!(offset_of!(uv_process_t, status) == 128);
    assert!(size_of::<uv_stdio_container_t>() == 16);
    assert!(size_of::<uv_process_options_t>() == 64);
    assert!(offset_of!(uv_process_options_t, stdio) == 48);
    assert!(size_of::<uv_req_t>() == 64);
    assert!(offset_of!(uv_req_t, nwritten) == 56);
    assert!(size_of::<uv_stream_t>() == 248);
    assert!(offset_of!(uv_stream_t, io_watcher) + offset_of!(IoWatcher, fd) == 184);
    assert!(offset_of!(uv_stream_t, connection_cb) == 224);
    assert!(size_of::<uv_pipe_t>() == 264);
    assert!(offset_of!(uv_pipe_t, ipc) == 248);
    assert!(offset_of!(uv_pipe_t, pipe_fname) == 256);
    assert!(size_of::<uv_fs_event_t>() == 136);
    assert!(offset_of!(uv_fs_event_t, path) == 96);
    assert!(size_of::<uv_tty_t>() == 312);
    assert!(offset_of!(uv_tty_t, mode) == 308);
    assert!(size_of::<uv_write_t>() == 192);
    assert!(offset_of!(uv_write_t, bufsml) == 128);
    assert!(size_of::<uv_connect_t>() == 96);
    assert!(size_of::<uv_shutdown_t>() == 80);
    assert!(size_of::<uv_buf_t>() == size_of::<libc::iovec>());
    assert!(size_of::<PoolRequest>() == 40);
    assert!(size_of::<uv_work_t>() == 128);
    assert!(offset_of!(uv_work_t, loop_) == 64);
    assert!(size_of::<uv_random_t>() == 144);
    assert!(offset_of!(uv_random_t, loop_) == 64);
    assert!(size_of::<uv_getaddrinfo_t>() == 160);
    assert!(offset_of!(uv_getaddrinfo_t, loop_) == 64);
    assert!(offset_of!(uv_getaddrinfo_t, cb) == 112);
    assert!(offset_of!(uv_getaddrinfo_t, addrinfo) == 144);
    assert!(size_of::<uv_getnameinfo_t>() == NAME_INFO_SIZE);
    assert!(offset_of!(uv_getnameinfo_t, loop_) == 64);
    assert!(offset_of!(uv_getnameinfo_t, host) == 252);
    assert!(offset_of!(uv_getnameinfo_t, service) == 252 + NI_MAXHOST);
    assert!(size_of::<uv_udp_t>() == 216);
    assert!(offset_of!(uv_udp_t, send_queue_size) == 96);
    assert!(offset_of!(uv_udp_t, io_watcher) + offset_of!(IoWatcher, fd) == 176);
    assert!(size_of::<uv_udp_send_t>() == 320);
    assert!(offset_of!(uv_udp_send_t, handle) == 64);
    assert!(offset_of!(uv_udp_send_t, bufsml) == 256);
    assert!(size_of::<uv_metrics_t>() == 128);
    assert!(size_of::<uv_stat_t>() == 160);
    assert!(offset_of!(uv_stat_t, st_atim) == 96);
    assert!(size_of::<uv_statfs_t>() == 88);
    assert!(size_of::<uv_dirent_t>() == 16);
    assert!(size_of::<uv_dir_t>() == 56);
    assert!(offset_of!(uv_dir_t, dir) == 48);
    assert!(size_of::<uv_fs_t>() == 440);
    assert!(offset_of!(uv_fs_t, fs_type) == 64);
    assert!(offset_of!(uv_fs_t, loop_) == 72);
    assert!(offset_of!(uv_fs_t, cb) == 80);
    assert!(offset_of!(uv_fs_t, result) == 88);
    assert!(offset_of!(uv_fs_t, ptr) == 96);
    assert!(offset_of!(uv_fs_t, path) == 104);
    assert!(offset_of!(uv_fs_t, statbuf) == 112);
    assert!(offset_of!(uv_fs_t, new_path) == 272);
    assert!(offset_of!(uv_fs_t, bufs) == 296);
    assert!(offset_of!(uv_fs_t, work_req) == 336);
    assert!(offset_of!(uv_fs_t, bufsml) == 376);
    assert!(size_of::<uv_rusage_t>() == 144);
    assert!(size_of::<uv_lib_t>() == 16);
    assert!(size_of::<uv_env_item_t>() == 16);
    assert!(size_of::<uv_thread_options_t>() == 16);
    assert!(size_of::<uv_utsname_t>() == 1024);
    assert!(size_of::<uv_passwd_t>() == 40);
    assert!(size_of::<uv_group_t>() == 24);
    assert!(size_of::<uv_interface_address_t>() == 80);
    assert!(size_of::<uv_cpu_info_t>() == 56);
    assert!(size_of::<uv_fs_poll_t>() == 104);
    assert!(offset_of!(uv_fs_poll_t, watch) == 96);
};
