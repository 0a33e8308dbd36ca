//! The functions of the interface. Written by `cargo xtask abi --bless` from `crates/uv/include`; not edited by hand.

use crate::{Holds, held, held_const};
use crate::types::*;
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::mem::transmute;

/// Exactly what the headers declare.
pub mod raw {
    use super::*;

    unsafe extern "C" {
        pub fn uv_accept(_: *mut uv_stream_t, _: *mut uv_stream_t) -> c_int;
        pub fn uv_async_init(_: *mut uv_loop_t, _: *mut uv_async_t, _: Option<unsafe extern "C" fn(*mut uv_async_t)>) -> c_int;
        pub fn uv_async_send(_: *mut uv_async_t) -> c_int;
        pub safe fn uv_available_parallelism() -> c_uint;
        pub fn uv_backend_fd(_: *const uv_loop_t) -> c_int;
        pub fn uv_backend_timeout(_: *const uv_loop_t) -> c_int;
        pub fn uv_barrier_destroy(_: *mut libc::pthread_barrier_t);
        pub fn uv_barrier_init(_: *mut libc::pthread_barrier_t, _: c_uint) -> c_int;
        pub fn uv_barrier_wait(_: *mut libc::pthread_barrier_t) -> c_int;
        pub fn uv_buf_init(_: *mut c_char, _: c_uint) -> uv_buf_t;
        pub fn uv_cancel(_: *mut uv_req_t) -> c_int;
        pub fn uv_chdir(_: *const c_char) -> c_int;
        pub fn uv_check_init(_: *mut uv_loop_t, _: *mut uv_check_t) -> c_int;
        pub fn uv_check_start(_: *mut uv_check_t, _: Option<unsafe extern "C" fn(*mut uv_check_t)>) -> c_int;
        pub fn uv_check_stop(_: *mut uv_check_t) -> c_int;
        pub fn uv_clock_gettime(_: uv_clock_id, _: *mut uv_timespec64_t) -> c_int;
        pub fn uv_close(_: *mut uv_handle_t, _: Option<unsafe extern "C" fn(*mut uv_handle_t)>);
        pub fn uv_cond_broadcast(_: *mut libc::pthread_cond_t);
        pub fn uv_cond_destroy(_: *mut libc::pthread_cond_t);
        pub fn uv_cond_init(_: *mut libc::pthread_cond_t) -> c_int;
        pub fn uv_cond_signal(_: *mut libc::pthread_cond_t);
        pub fn uv_cond_timedwait(_: *mut libc::pthread_cond_t, _: *mut libc::pthread_mutex_t, _: u64) -> c_int;
        pub fn uv_cond_wait(_: *mut libc::pthread_cond_t, _: *mut libc::pthread_mutex_t);
        pub fn uv_cpu_info(_: *mut *mut uv_cpu_info_t, _: *mut c_int) -> c_int;
        pub safe fn uv_cpumask_size() -> c_int;
        pub fn uv_cwd(_: *mut c_char, _: *mut usize) -> c_int;
        pub fn uv_default_loop() -> *mut uv_loop_t;
        pub fn uv_disable_stdio_inheritance();
        pub fn uv_dlclose(_: *mut uv_lib_t);
        pub fn uv_dlerror(_: *const uv_lib_t) -> *const c_char;
        pub fn uv_dlopen(_: *const c_char, _: *mut uv_lib_t) -> c_int;
        pub fn uv_dlsym(_: *mut uv_lib_t, _: *const c_char, _: *mut *mut c_void) -> c_int;
        pub fn uv_err_name(_: c_int) -> *const c_char;
        pub fn uv_err_name_r(_: c_int, _: *mut c_char, _: usize) -> *mut c_char;
        pub fn uv_exepath(_: *mut c_char, _: *mut usize) -> c_int;
        pub fn uv_fileno(_: *const uv_handle_t, _: *mut c_int) -> c_int;
        pub fn uv_free_cpu_info(_: *mut uv_cpu_info_t, _: c_int);
        pub fn uv_free_interface_addresses(_: *mut uv_interface_address_t, _: c_int);
        pub fn uv_freeaddrinfo(_: *mut libc::addrinfo);
        pub fn uv_fs_access(_: *mut uv_loop_t, _: *mut uv_fs_t, _: *const c_char, _: c_int, _: Option<unsafe extern "C" fn(*mut uv_fs_t)>) -> c_int;
        pub fn uv_fs_chmod(_: *mut uv_loop_t, _: *mut uv_fs_t, _: *const c_char, _: c_int, _: Option<unsafe extern "C" fn(*mut uv_fs_t)>) -> c_int;
        pub fn uv_fs_chown(_: *mut uv_loop_t, _: *mut uv_fs_t, _: *const c_char, _: c_uint, _: c_uint, _: Option<unsafe extern "C" fn(*mut uv_fs_t)>) -> c_int;
        pub fn uv_fs_close(_: *mut uv_loop_t, _: *mut uv_fs_t, _: c_int, _: Option<unsafe extern "C" fn(*mut uv_fs_t)>) -> c_int;
        pub fn uv_fs_closedir(_: *mut uv_loop_t, _: *mut uv_fs_t, _: *mut uv_dir_t, _: Option<unsafe extern "C" fn(*mut uv_fs_t)>) -> c_int;
        pub fn uv_fs_copyfile(_: *mut uv_loop_t, _: *mut uv_fs_t, _: *const c_char, _: *const c_char, _: c_int, _: Option<unsafe extern "C" fn(*mut uv_fs_t)>) -> c_int;
        pub fn uv_fs_event_getpath(_: *mut uv_fs_event_t, _: *mut c_char, _: *mut usize) -> c_int;
        pub fn uv_fs_event_init(_: *mut uv_loop_t, _: *mut uv_fs_event_t) -> c_int;
        pub fn uv_fs_event_start(_: *mut uv_fs_event_t, _: Option<unsafe extern "C" fn(*mut uv_fs_event_t, *const c_char, c_int, c_int)>, _: *const c_char, _: c_uint) -> c_int;
        pub fn uv_fs_event_stop(_: *mut uv_fs_event_t) -> c_int;
        pub fn uv_fs_fchmod(_: *mut uv_loop_t, _: *mut uv_fs_t, _: c_int, _: c_int, _: Option<unsafe extern "C" fn(*mut uv_fs_t)>) -> c_int;
        pub fn uv_fs_fchown(_: *mut uv_loop_t, _: *mut uv_fs_t, _: c_int, _: c_uint, _: c_uint, _: Option<unsafe extern "C" fn(*mut uv_fs_t)>) -> c_int;
        pub fn uv_fs_fdatasync(_: *mut uv_loop_t, _: *mut uv_fs_t, _: c_int, _: Option<unsafe extern "C" fn(*mut uv_fs_t)>) -> c_int;
        pub fn uv_fs_fstat(_: *mut uv_loop_t, _: *mut uv_fs_t, _: c_int, _: Option<unsafe extern "C" fn(*mut uv_fs_t)>) -> c_int;
        pub fn uv_fs_fsync(_: *mut uv_loop_t, _: *mut uv_fs_t, _: c_int, _: Option<unsafe extern "C" fn(*mut uv_fs_t)>) -> c_int;
        pub fn uv_fs_ftruncate(_: *mut uv_loop_t, _: *mut uv_fs_t, _: c_int, _: i64, _: Option<unsafe extern "C" fn(*mut uv_fs_t)>) -> c_int;
        pub fn uv_fs_futime(_: *mut uv_loop_t, _: *mut uv_fs_t, _: c_int, _: f64, _: f64, _: Option<unsafe extern "C" fn(*mut uv_fs_t)>) -> c_int;
        pub fn uv_fs_get_path(_: *const uv_fs_t) -> *const c_char;
        pub fn uv_fs_get_ptr(_: *const uv_fs_t) -> *mut c_void;
        pub fn uv_fs_get_result(_: *const uv_fs_t) -> isize;
        pub fn uv_fs_get_statbuf(_: *mut uv_fs_t) -> *mut uv_stat_t;
        pub fn uv_fs_get_system_error(_: *const uv_fs_t) -> c_int;
        pub fn uv_fs_get_type(_: *const uv_fs_t) -> uv_fs_type;
        pub fn uv_fs_lchown(_: *mut uv_loop_t, _: *mut uv_fs_t, _: *const c_char, _: c_uint, _: c_uint, _: Option<unsafe extern "C" fn(*mut uv_fs_t)>) -> c_int;
        pub fn uv_fs_link(_: *mut uv_loop_t, _: *mut uv_fs_t, _: *const c_char, _: *const c_char, _: Option<unsafe extern "C" fn(*mut uv_fs_t)>) -> c_int;
        pub fn uv_fs_lstat(_: *mut uv_loop_t, _: *mut uv_fs_t, _: *const c_char, _: Option<unsafe extern "C" fn(*mut uv_fs_t)>) -> c_int;
        pub fn uv_fs_lutime(_: *mut uv_loop_t, _: *mut uv_fs_t, _: *const c_char, _: f64, _: f64, _: Option<unsafe extern "C" fn(*mut uv_fs_t)>) -> c_int;
        pub fn uv_fs_mkdir(_: *mut uv_loop_t, _: *mut uv_fs_t, _: *const c_char, _: c_int, _: Option<unsafe extern "C" fn(*mut uv_fs_t)>) -> c_int;
        pub fn uv_fs_mkdtemp(_: *mut uv_loop_t, _: *mut uv_fs_t, _: *const c_char, _: Option<unsafe extern "C" fn(*mut uv_fs_t)>) -> c_int;
        pub fn uv_fs_mkstemp(_: *mut uv_loop_t, _: *mut uv_fs_t, _: *const c_char, _: Option<unsafe extern "C" fn(*mut uv_fs_t)>) -> c_int;
        pub fn uv_fs_open(_: *mut uv_loop_t, _: *mut uv_fs_t, _: *const c_char, _: c_int, _: c_int, _: Option<unsafe extern "C" fn(*mut uv_fs_t)>) -> c_int;
        pub fn uv_fs_opendir(_: *mut uv_loop_t, _: *mut uv_fs_t, _: *const c_char, _: Option<unsafe extern "C" fn(*mut uv_fs_t)>) -> c_int;
        pub fn uv_fs_poll_getpath(_: *mut uv_fs_poll_t, _: *mut c_char, _: *mut usize) -> c_int;
        pub fn uv_fs_poll_init(_: *mut uv_loop_t, _: *mut uv_fs_poll_t) -> c_int;
        pub fn uv_fs_poll_start(_: *mut uv_fs_poll_t, _: Option<unsafe extern "C" fn(*mut uv_fs_poll_t, c_int, *const uv_stat_t, *const uv_stat_t)>, _: *const c_char, _: c_uint) -> c_int;
        pub fn uv_fs_poll_stop(_: *mut uv_fs_poll_t) -> c_int;
        pub fn uv_fs_read(_: *mut uv_loop_t, _: *mut uv_fs_t, _: c_int, _: *const uv_buf_t, _: c_uint, _: i64, _: Option<unsafe extern "C" fn(*mut uv_fs_t)>) -> c_int;
        pub fn uv_fs_readdir(_: *mut uv_loop_t, _: *mut uv_fs_t, _: *mut uv_dir_t, _: Option<unsafe extern "C" fn(*mut uv_fs_t)>) -> c_int;
        pub fn uv_fs_readlink(_: *mut uv_loop_t, _: *mut uv_fs_t, _: *const c_char, _: Option<unsafe extern "C" fn(*mut uv_fs_t)>) -> c_int;
        pub fn uv_fs_realpath(_: *mut uv_loop_t, _: *mut uv_fs_t, _: *const c_char, _: Option<unsafe extern "C" fn(*mut uv_fs_t)>) -> c_int;
        pub fn uv_fs_rename(_: *mut uv_loop_t, _: *mut uv_fs_t, _: *const c_char, _: *const c_char, _: Option<unsafe extern "C" fn(*mut uv_fs_t)>) -> c_int;
        pub fn uv_fs_req_cleanup(_: *mut uv_fs_t);
        pub fn uv_fs_rmdir(_: *mut uv_loop_t, _: *mut uv_fs_t, _: *const c_char, _: Option<unsafe extern "C" fn(*mut uv_fs_t)>) -> c_int;
        pub fn uv_fs_scandir(_: *mut uv_loop_t, _: *mut uv_fs_t, _: *const c_char, _: c_int, _: Option<unsafe extern "C" fn(*mut uv_fs_t)>) -> c_int;
        pub fn uv_fs_scandir_next(_: *mut uv_fs_t, _: *mut uv_dirent_t) -> c_int;
        pub fn uv_fs_sendfile(_: *mut uv_loop_t, _: *mut uv_fs_t, _: c_int, _: c_int, _: i64, _: usize, _: Option<unsafe extern "C" fn(*mut uv_fs_t)>) -> c_int;
        pub fn uv_fs_stat(_: *mut uv_loop_t, _: *mut uv_fs_t, _: *const c_char, _: Option<unsafe extern "C" fn(*mut uv_fs_t)>) -> c_int;
        pub fn uv_fs_statfs(_: *mut uv_loop_t, _: *mut uv_fs_t, _: *const c_char, _: Option<unsafe extern "C" fn(*mut uv_fs_t)>) -> c_int;
        pub fn uv_fs_symlink(_: *mut uv_loop_t, _: *mut uv_fs_t, _: *const c_char, _: *const c_char, _: c_int, _: Option<unsafe extern "C" fn(*mut uv_fs_t)>) -> c_int;
        pub fn uv_fs_unlink(_: *mut uv_loop_t, _: *mut uv_fs_t, _: *const c_char, _: Option<unsafe extern "C" fn(*mut uv_fs_t)>) -> c_int;
        pub fn uv_fs_utime(_: *mut uv_loop_t, _: *mut uv_fs_t, _: *const c_char, _: f64, _: f64, _: Option<unsafe extern "C" fn(*mut uv_fs_t)>) -> c_int;
        pub fn uv_fs_write(_: *mut uv_loop_t, _: *mut uv_fs_t, _: c_int, _: *const uv_buf_t, _: c_uint, _: i64, _: Option<unsafe extern "C" fn(*mut uv_fs_t)>) -> c_int;
        pub safe fn uv_get_available_memory() -> u64;
        pub safe fn uv_get_constrained_memory() -> u64;
        pub safe fn uv_get_free_memory() -> u64;
        pub safe fn uv_get_osfhandle(_: c_int) -> c_int;
        pub fn uv_get_process_title(_: *mut c_char, _: usize) -> c_int;
        pub safe fn uv_get_total_memory() -> u64;
        pub fn uv_getaddrinfo(_: *mut uv_loop_t, _: *mut uv_getaddrinfo_t, _: Option<unsafe extern "C" fn(*mut uv_getaddrinfo_t, c_int, *mut libc::addrinfo)>, _: *const c_char, _: *const c_char, _: *const libc::addrinfo) -> c_int;
        pub fn uv_getnameinfo(_: *mut uv_loop_t, _: *mut uv_getnameinfo_t, _: Option<unsafe extern "C" fn(*mut uv_getnameinfo_t, c_int, *const c_char, *const c_char)>, _: *const libc::sockaddr, _: c_int) -> c_int;
        pub fn uv_getrusage(_: *mut uv_rusage_t) -> c_int;
        pub fn uv_getrusage_thread(_: *mut uv_rusage_t) -> c_int;
        pub fn uv_gettimeofday(_: *mut uv_timeval64_t) -> c_int;
        pub fn uv_guess_handle(_: c_int) -> uv_handle_type;
        pub fn uv_handle_get_data(_: *const uv_handle_t) -> *mut c_void;
        pub fn uv_handle_get_loop(_: *const uv_handle_t) -> *mut uv_loop_t;
        pub fn uv_handle_get_type(_: *const uv_handle_t) -> uv_handle_type;
        pub fn uv_handle_set_data(_: *mut uv_handle_t, _: *mut c_void);
        pub fn uv_handle_size(_: uv_handle_type) -> usize;
        pub fn uv_handle_type_name(_: uv_handle_type) -> *const c_char;
        pub fn uv_has_ref(_: *const uv_handle_t) -> c_int;
        pub safe fn uv_hrtime() -> u64;
        pub fn uv_idle_init(_: *mut uv_loop_t, _: *mut uv_idle_t) -> c_int;
        pub fn uv_idle_start(_: *mut uv_idle_t, _: Option<unsafe extern "C" fn(*mut uv_idle_t)>) -> c_int;
        pub fn uv_idle_stop(_: *mut uv_idle_t) -> c_int;
        pub fn uv_if_indextoiid(_: c_uint, _: *mut c_char, _: *mut usize) -> c_int;
        pub fn uv_if_indextoname(_: c_uint, _: *mut c_char, _: *mut usize) -> c_int;
        pub fn uv_inet_ntop(_: c_int, _: *const c_void, _: *mut c_char, _: usize) -> c_int;
        pub fn uv_inet_pton(_: c_int, _: *const c_char, _: *mut c_void) -> c_int;
        pub fn uv_interface_addresses(_: *mut *mut uv_interface_address_t, _: *mut c_int) -> c_int;
        pub fn uv_ip4_addr(_: *const c_char, _: c_int, _: *mut libc::sockaddr_in) -> c_int;
        pub fn uv_ip4_name(_: *const libc::sockaddr_in, _: *mut c_char, _: usize) -> c_int;
        pub fn uv_ip6_addr(_: *const c_char, _: c_int, _: *mut libc::sockaddr_in6) -> c_int;
        pub fn uv_ip6_name(_: *const libc::sockaddr_in6, _: *mut c_char, _: usize) -> c_int;
        pub fn uv_ip_name(_: *const libc::sockaddr, _: *mut c_char, _: usize) -> c_int;
        pub fn uv_is_active(_: *const uv_handle_t) -> c_int;
        pub fn uv_is_closing(_: *const uv_handle_t) -> c_int;
        pub fn uv_is_readable(_: *const uv_stream_t) -> c_int;
        pub fn uv_is_writable(_: *const uv_stream_t) -> c_int;
        pub fn uv_key_create(_: *mut c_uint) -> c_int;
        pub fn uv_key_delete(_: *mut c_uint);
        pub fn uv_key_get(_: *mut c_uint) -> *mut c_void;
        pub fn uv_key_set(_: *mut c_uint, _: *mut c_void);
        pub safe fn uv_kill(_: c_int, _: c_int) -> c_int;
        pub fn uv_library_shutdown();
        pub fn uv_listen(_: *mut uv_stream_t, _: c_int, _: Option<unsafe extern "C" fn(*mut uv_stream_t, c_int)>) -> c_int;
        pub fn uv_loadavg(_: *mut f64);
        pub fn uv_loop_alive(_: *const uv_loop_t) -> c_int;
        pub fn uv_loop_close(_: *mut uv_loop_t) -> c_int;
        pub fn uv_loop_configure(_: *mut uv_loop_t, _: uv_loop_option, ...) -> c_int;
        pub fn uv_loop_delete(_: *mut uv_loop_t);
        pub fn uv_loop_fork(_: *mut uv_loop_t) -> c_int;
        pub fn uv_loop_get_data(_: *const uv_loop_t) -> *mut c_void;
        pub fn uv_loop_init(_: *mut uv_loop_t) -> c_int;
        pub fn uv_loop_new() -> *mut uv_loop_t;
        pub fn uv_loop_set_data(_: *mut uv_loop_t, _: *mut c_void);
        pub safe fn uv_loop_size() -> usize;
        pub fn uv_metrics_idle_time(_: *mut uv_loop_t) -> u64;
        pub fn uv_metrics_info(_: *mut uv_loop_t, _: *mut uv_metrics_t) -> c_int;
        pub fn uv_mutex_destroy(_: *mut libc::pthread_mutex_t);
        pub fn uv_mutex_init(_: *mut libc::pthread_mutex_t) -> c_int;
        pub fn uv_mutex_init_recursive(_: *mut libc::pthread_mutex_t) -> c_int;
        pub fn uv_mutex_lock(_: *mut libc::pthread_mutex_t);
        pub fn uv_mutex_trylock(_: *mut libc::pthread_mutex_t) -> c_int;
        pub fn uv_mutex_unlock(_: *mut libc::pthread_mutex_t);
        pub fn uv_now(_: *const uv_loop_t) -> u64;
        pub fn uv_once(_: *mut c_int, _: Option<unsafe extern "C" fn()>);
        pub safe fn uv_open_osfhandle(_: c_int) -> c_int;
        pub fn uv_os_environ(_: *mut *mut uv_env_item_t, _: *mut c_int) -> c_int;
        pub fn uv_os_free_environ(_: *mut uv_env_item_t, _: c_int);
        pub fn uv_os_free_group(_: *mut uv_group_t);
        pub fn uv_os_free_passwd(_: *mut uv_passwd_t);
        pub fn uv_os_get_group(_: *mut uv_group_t, _: c_uint) -> c_int;
        pub fn uv_os_get_passwd(_: *mut uv_passwd_t) -> c_int;
        pub fn uv_os_get_passwd2(_: *mut uv_passwd_t, _: c_uint) -> c_int;
        pub fn uv_os_getenv(_: *const c_char, _: *mut c_char, _: *mut usize) -> c_int;
        pub fn uv_os_gethostname(_: *mut c_char, _: *mut usize) -> c_int;
        pub safe fn uv_os_getpid() -> c_int;
        pub safe fn uv_os_getppid() -> c_int;
        pub fn uv_os_getpriority(_: c_int, _: *mut c_int) -> c_int;
        pub fn uv_os_homedir(_: *mut c_char, _: *mut usize) -> c_int;
        pub fn uv_os_setenv(_: *const c_char, _: *const c_char) -> c_int;
        pub safe fn uv_os_setpriority(_: c_int, _: c_int) -> c_int;
        pub fn uv_os_tmpdir(_: *mut c_char, _: *mut usize) -> c_int;
        pub fn uv_os_uname(_: *mut uv_utsname_t) -> c_int;
        pub fn uv_os_unsetenv(_: *const c_char) -> c_int;
        pub fn uv_pipe(_: *mut c_int, _: c_int, _: c_int) -> c_int;
        pub fn uv_pipe_bind(_: *mut uv_pipe_t, _: *const c_char) -> c_int;
        pub fn uv_pipe_bind2(_: *mut uv_pipe_t, _: *const c_char, _: usize, _: c_uint) -> c_int;
        pub fn uv_pipe_chmod(_: *mut uv_pipe_t, _: c_int) -> c_int;
        pub fn uv_pipe_connect(_: *mut uv_connect_t, _: *mut uv_pipe_t, _: *const c_char, _: Option<unsafe extern "C" fn(*mut uv_connect_t, c_int)>);
        pub fn uv_pipe_connect2(_: *mut uv_connect_t, _: *mut uv_pipe_t, _: *const c_char, _: usize, _: c_uint, _: Option<unsafe extern "C" fn(*mut uv_connect_t, c_int)>) -> c_int;
        pub fn uv_pipe_getpeername(_: *const uv_pipe_t, _: *mut c_char, _: *mut usize) -> c_int;
        pub fn uv_pipe_getsockname(_: *const uv_pipe_t, _: *mut c_char, _: *mut usize) -> c_int;
        pub fn uv_pipe_init(_: *mut uv_loop_t, _: *mut uv_pipe_t, _: c_int) -> c_int;
        pub fn uv_pipe_open(_: *mut uv_pipe_t, _: c_int) -> c_int;
        pub fn uv_pipe_pending_count(_: *mut uv_pipe_t) -> c_int;
        pub fn uv_pipe_pending_instances(_: *mut uv_pipe_t, _: c_int);
        pub fn uv_pipe_pending_type(_: *mut uv_pipe_t) -> uv_handle_type;
        pub fn uv_poll_init(_: *mut uv_loop_t, _: *mut uv_poll_t, _: c_int) -> c_int;
        pub fn uv_poll_init_socket(_: *mut uv_loop_t, _: *mut uv_poll_t, _: c_int) -> c_int;
        pub fn uv_poll_start(_: *mut uv_poll_t, _: c_int, _: Option<unsafe extern "C" fn(*mut uv_poll_t, c_int, c_int)>) -> c_int;
        pub fn uv_poll_stop(_: *mut uv_poll_t) -> c_int;
        pub fn uv_prepare_init(_: *mut uv_loop_t, _: *mut uv_prepare_t) -> c_int;
        pub fn uv_prepare_start(_: *mut uv_prepare_t, _: Option<unsafe extern "C" fn(*mut uv_prepare_t)>) -> c_int;
        pub fn uv_prepare_stop(_: *mut uv_prepare_t) -> c_int;
        pub fn uv_print_active_handles(_: *mut uv_loop_t, _: *mut libc::FILE);
        pub fn uv_print_all_handles(_: *mut uv_loop_t, _: *mut libc::FILE);
        pub fn uv_process_get_pid(_: *const uv_process_t) -> c_int;
        pub fn uv_process_kill(_: *mut uv_process_t, _: c_int) -> c_int;
        pub fn uv_queue_work(_: *mut uv_loop_t, _: *mut uv_work_t, _: Option<unsafe extern "C" fn(*mut uv_work_t)>, _: Option<unsafe extern "C" fn(*mut uv_work_t, c_int)>) -> c_int;
        pub fn uv_random(_: *mut uv_loop_t, _: *mut uv_random_t, _: *mut c_void, _: usize, _: c_uint, _: Option<unsafe extern "C" fn(*mut uv_random_t, c_int, *mut c_void, usize)>) -> c_int;
        pub fn uv_read_start(_: *mut uv_stream_t, _: Option<unsafe extern "C" fn(*mut uv_handle_t, usize, *mut uv_buf_t)>, _: Option<unsafe extern "C" fn(*mut uv_stream_t, isize, *const uv_buf_t)>) -> c_int;
        pub fn uv_read_stop(_: *mut uv_stream_t) -> c_int;
        pub fn uv_recv_buffer_size(_: *mut uv_handle_t, _: *mut c_int) -> c_int;
        pub fn uv_ref(_: *mut uv_handle_t);
        pub fn uv_replace_allocator(_: Option<unsafe extern "C" fn(usize) -> *mut c_void>, _: Option<unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void>, _: Option<unsafe extern "C" fn(usize, usize) -> *mut c_void>, _: Option<unsafe extern "C" fn(*mut c_void)>) -> c_int;
        pub fn uv_req_get_data(_: *const uv_req_t) -> *mut c_void;
        pub fn uv_req_get_type(_: *const uv_req_t) -> uv_req_type;
        pub fn uv_req_set_data(_: *mut uv_req_t, _: *mut c_void);
        pub fn uv_req_size(_: uv_req_type) -> usize;
        pub fn uv_req_type_name(_: uv_req_type) -> *const c_char;
        pub fn uv_resident_set_memory(_: *mut usize) -> c_int;
        pub fn uv_run(_: *mut uv_loop_t, _: uv_run_mode) -> c_int;
        pub fn uv_rwlock_destroy(_: *mut libc::pthread_rwlock_t);
        pub fn uv_rwlock_init(_: *mut libc::pthread_rwlock_t) -> c_int;
        pub fn uv_rwlock_rdlock(_: *mut libc::pthread_rwlock_t);
        pub fn uv_rwlock_rdunlock(_: *mut libc::pthread_rwlock_t);
        pub fn uv_rwlock_tryrdlock(_: *mut libc::pthread_rwlock_t) -> c_int;
        pub fn uv_rwlock_trywrlock(_: *mut libc::pthread_rwlock_t) -> c_int;
        pub fn uv_rwlock_wrlock(_: *mut libc::pthread_rwlock_t);
        pub fn uv_rwlock_wrunlock(_: *mut libc::pthread_rwlock_t);
        pub fn uv_sem_destroy(_: *mut libc::sem_t);
        pub fn uv_sem_init(_: *mut libc::sem_t, _: c_uint) -> c_int;
        pub fn uv_sem_post(_: *mut libc::sem_t);
        pub fn uv_sem_trywait(_: *mut libc::sem_t) -> c_int;
        pub fn uv_sem_wait(_: *mut libc::sem_t);
        pub fn uv_send_buffer_size(_: *mut uv_handle_t, _: *mut c_int) -> c_int;
        pub fn uv_set_process_title(_: *const c_char) -> c_int;
        pub fn uv_setup_args(_: c_int, _: *mut *mut c_char) -> *mut *mut c_char;
        pub fn uv_shutdown(_: *mut uv_shutdown_t, _: *mut uv_stream_t, _: Option<unsafe extern "C" fn(*mut uv_shutdown_t, c_int)>) -> c_int;
        pub fn uv_signal_init(_: *mut uv_loop_t, _: *mut uv_signal_t) -> c_int;
        pub fn uv_signal_start(_: *mut uv_signal_t, _: Option<unsafe extern "C" fn(*mut uv_signal_t, c_int)>, _: c_int) -> c_int;
        pub fn uv_signal_start_oneshot(_: *mut uv_signal_t, _: Option<unsafe extern "C" fn(*mut uv_signal_t, c_int)>, _: c_int) -> c_int;
        pub fn uv_signal_stop(_: *mut uv_signal_t) -> c_int;
        pub fn uv_sleep(_: c_uint);
        pub fn uv_socketpair(_: c_int, _: c_int, _: *mut c_int, _: c_int, _: c_int) -> c_int;
        pub fn uv_spawn(_: *mut uv_loop_t, _: *mut uv_process_t, _: *const uv_process_options_t) -> c_int;
        pub fn uv_stop(_: *mut uv_loop_t);
        pub fn uv_stream_get_write_queue_size(_: *const uv_stream_t) -> usize;
        pub fn uv_stream_set_blocking(_: *mut uv_stream_t, _: c_int) -> c_int;
        pub fn uv_strerror(_: c_int) -> *const c_char;
        pub fn uv_strerror_r(_: c_int, _: *mut c_char, _: usize) -> *mut c_char;
        pub fn uv_tcp_bind(_: *mut uv_tcp_t, _: *const libc::sockaddr, _: c_uint) -> c_int;
        pub fn uv_tcp_close_reset(_: *mut uv_tcp_t, _: Option<unsafe extern "C" fn(*mut uv_handle_t)>) -> c_int;
        pub fn uv_tcp_connect(_: *mut uv_connect_t, _: *mut uv_tcp_t, _: *const libc::sockaddr, _: Option<unsafe extern "C" fn(*mut uv_connect_t, c_int)>) -> c_int;
        pub fn uv_tcp_getpeername(_: *const uv_tcp_t, _: *mut libc::sockaddr, _: *mut c_int) -> c_int;
        pub fn uv_tcp_getsockname(_: *const uv_tcp_t, _: *mut libc::sockaddr, _: *mut c_int) -> c_int;
        pub fn uv_tcp_init(_: *mut uv_loop_t, _: *mut uv_tcp_t) -> c_int;
        pub fn uv_tcp_init_ex(_: *mut uv_loop_t, _: *mut uv_tcp_t, _: c_uint) -> c_int;
        pub fn uv_tcp_keepalive(_: *mut uv_tcp_t, _: c_int, _: c_uint) -> c_int;
        pub fn uv_tcp_keepalive_ex(_: *mut uv_tcp_t, _: c_int, _: c_uint, _: c_uint, _: c_uint) -> c_int;
        pub fn uv_tcp_nodelay(_: *mut uv_tcp_t, _: c_int) -> c_int;
        pub fn uv_tcp_open(_: *mut uv_tcp_t, _: c_int) -> c_int;
        pub fn uv_tcp_simultaneous_accepts(_: *mut uv_tcp_t, _: c_int) -> c_int;
        pub fn uv_thread_create(_: *mut u64, _: Option<unsafe extern "C" fn(*mut c_void)>, _: *mut c_void) -> c_int;
        pub fn uv_thread_create_ex(_: *mut u64, _: *const uv_thread_options_t, _: Option<unsafe extern "C" fn(*mut c_void)>, _: *mut c_void) -> c_int;
        pub fn uv_thread_detach(_: *mut u64) -> c_int;
        pub fn uv_thread_equal(_: *const u64, _: *const u64) -> c_int;
        pub fn uv_thread_getaffinity(_: *mut u64, _: *mut c_char, _: usize) -> c_int;
        pub safe fn uv_thread_getcpu() -> c_int;
        pub fn uv_thread_getname(_: *mut u64, _: *mut c_char, _: usize) -> c_int;
        pub fn uv_thread_getpriority(_: u64, _: *mut c_int) -> c_int;
        pub fn uv_thread_join(_: *mut u64) -> c_int;
        pub safe fn uv_thread_self() -> u64;
        pub fn uv_thread_setaffinity(_: *mut u64, _: *mut c_char, _: *mut c_char, _: usize) -> c_int;
        pub fn uv_thread_setname(_: *const c_char) -> c_int;
        pub fn uv_thread_setpriority(_: u64, _: c_int) -> c_int;
        pub fn uv_timer_again(_: *mut uv_timer_t) -> c_int;
        pub fn uv_timer_get_due_in(_: *const uv_timer_t) -> u64;
        pub fn uv_timer_get_repeat(_: *const uv_timer_t) -> u64;
        pub fn uv_timer_init(_: *mut uv_loop_t, _: *mut uv_timer_t) -> c_int;
        pub fn uv_timer_set_repeat(_: *mut uv_timer_t, _: u64);
        pub fn uv_timer_start(_: *mut uv_timer_t, _: Option<unsafe extern "C" fn(*mut uv_timer_t)>, _: u64, _: u64) -> c_int;
        pub fn uv_timer_stop(_: *mut uv_timer_t) -> c_int;
        pub safe fn uv_translate_sys_error(_: c_int) -> c_int;
        pub fn uv_try_write(_: *mut uv_stream_t, _: *const uv_buf_t, _: c_uint) -> c_int;
        pub fn uv_try_write2(_: *mut uv_stream_t, _: *const uv_buf_t, _: c_uint, _: *mut uv_stream_t) -> c_int;
        pub fn uv_tty_get_vterm_state(_: *mut uv_tty_vtermstate_t) -> c_int;
        pub fn uv_tty_get_winsize(_: *mut uv_tty_t, _: *mut c_int, _: *mut c_int) -> c_int;
        pub fn uv_tty_init(_: *mut uv_loop_t, _: *mut uv_tty_t, _: c_int, _: c_int) -> c_int;
        pub safe fn uv_tty_reset_mode() -> c_int;
        pub fn uv_tty_set_mode(_: *mut uv_tty_t, _: uv_tty_mode_t) -> c_int;
        pub fn uv_tty_set_vterm_state(_: uv_tty_vtermstate_t);
        pub fn uv_udp_bind(_: *mut uv_udp_t, _: *const libc::sockaddr, _: c_uint) -> c_int;
        pub fn uv_udp_connect(_: *mut uv_udp_t, _: *const libc::sockaddr) -> c_int;
        pub fn uv_udp_get_send_queue_count(_: *const uv_udp_t) -> usize;
        pub fn uv_udp_get_send_queue_size(_: *const uv_udp_t) -> usize;
        pub fn uv_udp_getpeername(_: *const uv_udp_t, _: *mut libc::sockaddr, _: *mut c_int) -> c_int;
        pub fn uv_udp_getsockname(_: *const uv_udp_t, _: *mut libc::sockaddr, _: *mut c_int) -> c_int;
        pub fn uv_udp_init(_: *mut uv_loop_t, _: *mut uv_udp_t) -> c_int;
        pub fn uv_udp_init_ex(_: *mut uv_loop_t, _: *mut uv_udp_t, _: c_uint) -> c_int;
        pub fn uv_udp_open(_: *mut uv_udp_t, _: c_int) -> c_int;
        pub fn uv_udp_open_ex(_: *mut uv_udp_t, _: c_int, _: c_uint) -> c_int;
        pub fn uv_udp_recv_start(_: *mut uv_udp_t, _: Option<unsafe extern "C" fn(*mut uv_handle_t, usize, *mut uv_buf_t)>, _: Option<unsafe extern "C" fn(*mut uv_udp_t, isize, *const uv_buf_t, *const libc::sockaddr, c_uint)>) -> c_int;
        pub fn uv_udp_recv_stop(_: *mut uv_udp_t) -> c_int;
        pub fn uv_udp_send(_: *mut uv_udp_send_t, _: *mut uv_udp_t, _: *const uv_buf_t, _: c_uint, _: *const libc::sockaddr, _: Option<unsafe extern "C" fn(*mut uv_udp_send_t, c_int)>) -> c_int;
        pub fn uv_udp_set_broadcast(_: *mut uv_udp_t, _: c_int) -> c_int;
        pub fn uv_udp_set_membership(_: *mut uv_udp_t, _: *const c_char, _: *const c_char, _: uv_membership) -> c_int;
        pub fn uv_udp_set_multicast_interface(_: *mut uv_udp_t, _: *const c_char) -> c_int;
        pub fn uv_udp_set_multicast_loop(_: *mut uv_udp_t, _: c_int) -> c_int;
        pub fn uv_udp_set_multicast_ttl(_: *mut uv_udp_t, _: c_int) -> c_int;
        pub fn uv_udp_set_source_membership(_: *mut uv_udp_t, _: *const c_char, _: *const c_char, _: *const c_char, _: uv_membership) -> c_int;
        pub fn uv_udp_set_ttl(_: *mut uv_udp_t, _: c_int) -> c_int;
        pub fn uv_udp_try_send(_: *mut uv_udp_t, _: *const uv_buf_t, _: c_uint, _: *const libc::sockaddr) -> c_int;
        pub fn uv_udp_try_send2(_: *mut uv_udp_t, _: c_uint, _: *mut *mut uv_buf_t, _: *mut c_uint, _: *mut *mut libc::sockaddr, _: c_uint) -> c_int;
        pub fn uv_udp_using_recvmmsg(_: *const uv_udp_t) -> c_int;
        pub fn uv_unref(_: *mut uv_handle_t);
        pub fn uv_update_time(_: *mut uv_loop_t);
        pub fn uv_uptime(_: *mut f64) -> c_int;
        pub fn uv_utf16_length_as_wtf8(_: *const u16, _: isize) -> usize;
        pub fn uv_utf16_to_wtf8(_: *const u16, _: isize, _: *mut *mut c_char, _: *mut usize) -> c_int;
        pub safe fn uv_version() -> c_uint;
        pub fn uv_version_string() -> *const c_char;
        pub fn uv_walk(_: *mut uv_loop_t, _: Option<unsafe extern "C" fn(*mut uv_handle_t, *mut c_void)>, _: *mut c_void);
        pub fn uv_write(_: *mut uv_write_t, _: *mut uv_stream_t, _: *const uv_buf_t, _: c_uint, _: Option<unsafe extern "C" fn(*mut uv_write_t, c_int)>) -> c_int;
        pub fn uv_write2(_: *mut uv_write_t, _: *mut uv_stream_t, _: *const uv_buf_t, _: c_uint, _: *mut uv_stream_t, _: Option<unsafe extern "C" fn(*mut uv_write_t, c_int)>) -> c_int;
        pub fn uv_write_nwritten(_: *const uv_write_t) -> usize;
        pub fn uv_wtf8_length_as_utf16(_: *const c_char) -> isize;
        pub fn uv_wtf8_to_utf16(_: *const c_char, _: *mut u16, _: usize);
    }
}

/// The type of a pointer to each function, for a library that is loaded while running.
pub mod pointers {
    use super::*;

    pub type uv_accept = unsafe extern "C" fn(*mut uv_stream_t, *mut uv_stream_t) -> c_int;
    pub type uv_async_init = unsafe extern "C" fn(*mut uv_loop_t, *mut uv_async_t, Option<unsafe extern "C" fn(*mut uv_async_t)>) -> c_int;
    pub type uv_async_send = unsafe extern "C" fn(*mut uv_async_t) -> c_int;
    pub type uv_available_parallelism = unsafe extern "C" fn() -> c_uint;
    pub type uv_backend_fd = unsafe extern "C" fn(*const uv_loop_t) -> c_int;
    pub type uv_backend_timeout = unsafe extern "C" fn(*const uv_loop_t) -> c_int;
    pub type uv_barrier_destroy = unsafe extern "C" fn(*mut libc::pthread_barrier_t);
    pub type uv_barrier_init = unsafe extern "C" fn(*mut libc::pthread_barrier_t, c_uint) -> c_int;
    pub type uv_barrier_wait = unsafe extern "C" fn(*mut libc::pthread_barrier_t) -> c_int;
    pub type uv_buf_init = unsafe extern "C" fn(*mut c_char, c_uint) -> uv_buf_t;
    pub type uv_cancel = unsafe extern "C" fn(*mut uv_req_t) -> c_int;
    pub type uv_chdir = unsafe extern "C" fn(*const c_char) -> c_int;
    pub type uv_check_init = unsafe extern "C" fn(*mut uv_loop_t, *mut uv_check_t) -> c_int;
    pub type uv_check_start = unsafe extern "C" fn(*mut uv_check_t, Option<unsafe extern "C" fn(*mut uv_check_t)>) -> c_int;
    pub type uv_check_stop = unsafe extern "C" fn(*mut uv_check_t) -> c_int;
    pub type uv_clock_gettime = unsafe extern "C" fn(uv_clock_id, *mut uv_timespec64_t) -> c_int;
    pub type uv_close = unsafe extern "C" fn(*mut uv_handle_t, Option<unsafe extern "C" fn(*mut uv_handle_t)>);
    pub type uv_cond_broadcast = unsafe extern "C" fn(*mut libc::pthread_cond_t);
    pub type uv_cond_destroy = unsafe extern "C" fn(*mut libc::pthread_cond_t);
    pub type uv_cond_init = unsafe extern "C" fn(*mut libc::pthread_cond_t) -> c_int;
    pub type uv_cond_signal = unsafe extern "C" fn(*mut libc::pthread_cond_t);
    pub type uv_cond_timedwait = unsafe extern "C" fn(*mut libc::pthread_cond_t, *mut libc::pthread_mutex_t, u64) -> c_int;
    pub type uv_cond_wait = unsafe extern "C" fn(*mut libc::pthread_cond_t, *mut libc::pthread_mutex_t);
    pub type uv_cpu_info = unsafe extern "C" fn(*mut *mut uv_cpu_info_t, *mut c_int) -> c_int;
    pub type uv_cpumask_size = unsafe extern "C" fn() -> c_int;
    pub type uv_cwd = unsafe extern "C" fn(*mut c_char, *mut usize) -> c_int;
    pub type uv_default_loop = unsafe extern "C" fn() -> *mut uv_loop_t;
    pub type uv_disable_stdio_inheritance = unsafe extern "C" fn();
    pub type uv_dlclose = unsafe extern "C" fn(*mut uv_lib_t);
    pub type uv_dlerror = unsafe extern "C" fn(*const uv_lib_t) -> *const c_char;
    pub type uv_dlopen = unsafe extern "C" fn(*const c_char, *mut uv_lib_t) -> c_int;
    pub type uv_dlsym = unsafe extern "C" fn(*mut uv_lib_t, *const c_char, *mut *mut c_void) -> c_int;
    pub type uv_err_name = unsafe extern "C" fn(c_int) -> *const c_char;
    pub type uv_err_name_r = unsafe extern "C" fn(c_int, *mut c_char, usize) -> *mut c_char;
    pub type uv_exepath = unsafe extern "C" fn(*mut c_char, *mut usize) -> c_int;
    pub type uv_fileno = unsafe extern "C" fn(*const uv_handle_t, *mut c_int) -> c_int;
    pub type uv_free_cpu_info = unsafe extern "C" fn(*mut uv_cpu_info_t, c_int);
    pub type uv_free_interface_addresses = unsafe extern "C" fn(*mut uv_interface_address_t, c_int);
    pub type uv_freeaddrinfo = unsafe extern "C" fn(*mut libc::addrinfo);
    pub type uv_fs_access = unsafe extern "C" fn(*mut uv_loop_t, *mut uv_fs_t, *const c_char, c_int, Option<unsafe extern "C" fn(*mut uv_fs_t)>) -> c_int;
    pub type uv_fs_chmod = unsafe extern "C" fn(*mut uv_loop_t, *mut uv_fs_t, *const c_char, c_int, Option<unsafe extern "C" fn(*mut uv_fs_t)>) -> c_int;
    pub type uv_fs_chown = unsafe extern "C" fn(*mut uv_loop_t, *mut uv_fs_t, *const c_char, c_uint, c_uint, Option<unsafe extern "C" fn(*mut uv_fs_t)>) -> c_int;
    pub type uv_fs_close = unsafe extern "C" fn(*mut uv_loop_t, *mut uv_fs_t, c_int, Option<unsafe extern "C" fn(*mut uv_fs_t)>) -> c_int;
    pub type uv_fs_closedir = unsafe extern "C" fn(*mut uv_loop_t, *mut uv_fs_t, *mut uv_dir_t, Option<unsafe extern "C" fn(*mut uv_fs_t)>) -> c_int;
    pub type uv_fs_copyfile = unsafe extern "C" fn(*mut uv_loop_t, *mut uv_fs_t, *const c_char, *const c_char, c_int, Option<unsafe extern "C" fn(*mut uv_fs_t)>) -> c_int;
    pub type uv_fs_event_getpath = unsafe extern "C" fn(*mut uv_fs_event_t, *mut c_char, *mut usize) -> c_int;
    pub type uv_fs_event_init = unsafe extern "C" fn(*mut uv_loop_t, *mut uv_fs_event_t) -> c_int;
    pub type uv_fs_event_start = unsafe extern "C" fn(*mut uv_fs_event_t, Option<unsafe extern "C" fn(*mut uv_fs_event_t, *const c_char, c_int, c_int)>, *const c_char, c_uint) -> c_int;
    pub type uv_fs_event_stop = unsafe extern "C" fn(*mut uv_fs_event_t) -> c_int;
    pub type uv_fs_fchmod = unsafe extern "C" fn(*mut uv_loop_t, *mut uv_fs_t, c_int, c_int, Option<unsafe extern "C" fn(*mut uv_fs_t)>) -> c_int;
    pub type uv_fs_fchown = unsafe extern "C" fn(*mut uv_loop_t, *mut uv_fs_t, c_int, c_uint, c_uint, Option<unsafe extern "C" fn(*mut uv_fs_t)>) -> c_int;
    pub type uv_fs_fdatasync = unsafe extern "C" fn(*mut uv_loop_t, *mut uv_fs_t, c_int, Option<unsafe extern "C" fn(*mut uv_fs_t)>) -> c_int;
    pub type uv_fs_fstat = unsafe extern "C" fn(*mut uv_loop_t, *mut uv_fs_t, c_int, Option<unsafe extern "C" fn(*mut uv_fs_t)>) -> c_int;
    pub type uv_fs_fsync = unsafe extern "C" fn(*mut uv_loop_t, *mut uv_fs_t, c_int, Option<unsafe extern "C" fn(*mut uv_fs_t)>) -> c_int;
    pub type uv_fs_ftruncate = unsafe extern "C" fn(*mut uv_loop_t, *mut uv_fs_t, c_int, i64, Option<unsafe extern "C" fn(*mut uv_fs_t)>) -> c_int;
    pub type uv_fs_futime = unsafe extern "C" fn(*mut uv_loop_t, *mut uv_fs_t, c_int, f64, f64, Option<unsafe extern "C" fn(*mut uv_fs_t)>) -> c_int;
    pub type uv_fs_get_path = unsafe extern "C" fn(*const uv_fs_t) -> *const c_char;
    pub type uv_fs_get_ptr = unsafe extern "C" fn(*const uv_fs_t) -> *mut c_void;
    pub type uv_fs_get_result = unsafe extern "C" fn(*const uv_fs_t) -> isize;
    pub type uv_fs_get_statbuf = unsafe extern "C" fn(*mut uv_fs_t) -> *mut uv_stat_t;
    pub type uv_fs_get_system_error = unsafe extern "C" fn(*const uv_fs_t) -> c_int;
    pub type uv_fs_get_type = unsafe extern "C" fn(*const uv_fs_t) -> uv_fs_type;
    pub type uv_fs_lchown = unsafe extern "C" fn(*mut uv_loop_t, *mut uv_fs_t, *const c_char, c_uint, c_uint, Option<unsafe extern "C" fn(*mut uv_fs_t)>) -> c_int;
    pub type uv_fs_link = unsafe extern "C" fn(*mut uv_loop_t, *mut uv_fs_t, *const c_char, *const c_char, Option<unsafe extern "C" fn(*mut uv_fs_t)>) -> c_int;
    pub type uv_fs_lstat = unsafe extern "C" fn(*mut uv_loop_t, *mut uv_fs_t, *const c_char, Option<unsafe extern "C" fn(*mut uv_fs_t)>) -> c_int;
    pub type uv_fs_lutime = unsafe extern "C" fn(*mut uv_loop_t, *mut uv_fs_t, *const c_char, f64, f64, Option<unsafe extern "C" fn(*mut uv_fs_t)>) -> c_int;
    pub type uv_fs_mkdir = unsafe extern "C" fn(*mut uv_loop_t, *mut uv_fs_t, *const c_char, c_int, Option<unsafe extern "C" fn(*mut uv_fs_t)>) -> c_int;
    pub type uv_fs_mkdtemp = unsafe extern "C" fn(*mut uv_loop_t, *mut uv_fs_t, *const c_char, Option<unsafe extern "C" fn(*mut uv_fs_t)>) -> c_int;
    pub type uv_fs_mkstemp = unsafe extern "C" fn(*mut uv_loop_t, *mut uv_fs_t, *const c_char, Option<unsafe extern "C" fn(*mut uv_fs_t)>) -> c_int;
    pub type uv_fs_open = unsafe extern "C" fn(*mut uv_loop_t, *mut uv_fs_t, *const c_char, c_int, c_int, Option<unsafe extern "C" fn(*mut uv_fs_t)>) -> c_int;
    pub type uv_fs_opendir = unsafe extern "C" fn(*mut uv_loop_t, *mut uv_fs_t, *const c_char, Option<unsafe extern "C" fn(*mut uv_fs_t)>) -> c_int;
    pub type uv_fs_poll_getpath = unsafe extern "C" fn(*mut uv_fs_poll_t, *mut c_char, *mut usize) -> c_int;
    pub type uv_fs_poll_init = unsafe extern "C" fn(*mut uv_loop_t, *mut uv_fs_poll_t) -> c_int;
    pub type uv_fs_poll_start = unsafe extern "C" fn(*mut uv_fs_poll_t, Option<unsafe extern "C" fn(*mut uv_fs_poll_t, c_int, *const uv_stat_t, *const uv_stat_t)>, *const c_char, c_uint) -> c_int;
    pub type uv_fs_poll_stop = unsafe extern "C" fn(*mut uv_fs_poll_t) -> c_int;
    pub type uv_fs_read = unsafe extern "C" fn(*mut uv_loop_t, *mut uv_fs_t, c_int, *const uv_buf_t, c_uint, i64, Option<unsafe extern "C" fn(*mut uv_fs_t)>) -> c_int;
    pub type uv_fs_readdir = unsafe extern "C" fn(*mut uv_loop_t, *mut uv_fs_t, *mut uv_dir_t, Option<unsafe extern "C" fn(*mut uv_fs_t)>) -> c_int;
    pub type uv_fs_readlink = unsafe extern "C" fn(*mut uv_loop_t, *mut uv_fs_t, *const c_char, Option<unsafe extern "C" fn(*mut uv_fs_t)>) -> c_int;
    pub type uv_fs_realpath = unsafe extern "C" fn(*mut uv_loop_t, *mut uv_fs_t, *const c_char, Option<unsafe extern "C" fn(*mut uv_fs_t)>) -> c_int;
    pub type uv_fs_rename = unsafe extern "C" fn(*mut uv_loop_t, *mut uv_fs_t, *const c_char, *const c_char, Option<unsafe extern "C" fn(*mut uv_fs_t)>) -> c_int;
    pub type uv_fs_req_cleanup = unsafe extern "C" fn(*mut uv_fs_t);
    pub type uv_fs_rmdir = unsafe extern "C" fn(*mut uv_loop_t, *mut uv_fs_t, *const c_char, Option<unsafe extern "C" fn(*mut uv_fs_t)>) -> c_int;
    pub type uv_fs_scandir = unsafe extern "C" fn(*mut uv_loop_t, *mut uv_fs_t, *const c_char, c_int, Option<unsafe extern "C" fn(*mut uv_fs_t)>) -> c_int;
    pub type uv_fs_scandir_next = unsafe extern "C" fn(*mut uv_fs_t, *mut uv_dirent_t) -> c_int;
    pub type uv_fs_sendfile = unsafe extern "C" fn(*mut uv_loop_t, *mut uv_fs_t, c_int, c_int, i64, usize, Option<unsafe extern "C" fn(*mut uv_fs_t)>) -> c_int;
    pub type uv_fs_stat = unsafe extern "C" fn(*mut uv_loop_t, *mut uv_fs_t, *const c_char, Option<unsafe extern "C" fn(*mut uv_fs_t)>) -> c_int;
    pub type uv_fs_statfs = unsafe extern "C" fn(*mut uv_loop_t, *mut uv_fs_t, *const c_char, Option<unsafe extern "C" fn(*mut uv_fs_t)>) -> c_int;
    pub type uv_fs_symlink = unsafe extern "C" fn(*mut uv_loop_t, *mut uv_fs_t, *const c_char, *const c_char, c_int, Option<unsafe extern "C" fn(*mut uv_fs_t)>) -> c_int;
    pub type uv_fs_unlink = unsafe extern "C" fn(*mut uv_loop_t, *mut uv_fs_t, *const c_char, Option<unsafe extern "C" fn(*mut uv_fs_t)>) -> c_int;
    pub type uv_fs_utime = unsafe extern "C" fn(*mut uv_loop_t, *mut uv_fs_t, *const c_char, f64, f64, Option<unsafe extern "C" fn(*mut uv_fs_t)>) -> c_int;
    pub type uv_fs_write = unsafe extern "C" fn(*mut uv_loop_t, *mut uv_fs_t, c_int, *const uv_buf_t, c_uint, i64, Option<unsafe extern "C" fn(*mut uv_fs_t)>) -> c_int;
    pub type uv_get_available_memory = unsafe extern "C" fn() -> u64;
    pub type uv_get_constrained_memory = unsafe extern "C" fn() -> u64;
    pub type uv_get_free_memory = unsafe extern "C" fn() -> u64;
    pub type uv_get_osfhandle = unsafe extern "C" fn(c_int) -> c_int;
    pub type uv_get_process_title = unsafe extern "C" fn(*mut c_char, usize) -> c_int;
    pub type uv_get_total_memory = unsafe extern "C" fn() -> u64;
    pub type uv_getaddrinfo = unsafe extern "C" fn(*mut uv_loop_t, *mut uv_getaddrinfo_t, Option<unsafe extern "C" fn(*mut uv_getaddrinfo_t, c_int, *mut libc::addrinfo)>, *const c_char, *const c_char, *const libc::addrinfo) -> c_int;
    pub type uv_getnameinfo = unsafe extern "C" fn(*mut uv_loop_t, *mut uv_getnameinfo_t, Option<unsafe extern "C" fn(*mut uv_getnameinfo_t, c_int, *const c_char, *const c_char)>, *const libc::sockaddr, c_int) -> c_int;
    pub type uv_getrusage = unsafe extern "C" fn(*mut uv_rusage_t) -> c_int;
    pub type uv_getrusage_thread = unsafe extern "C" fn(*mut uv_rusage_t) -> c_int;
    pub type uv_gettimeofday = unsafe extern "C" fn(*mut uv_timeval64_t) -> c_int;
    pub type uv_guess_handle = unsafe extern "C" fn(c_int) -> uv_handle_type;
    pub type uv_handle_get_data = unsafe extern "C" fn(*const uv_handle_t) -> *mut c_void;
    pub type uv_handle_get_loop = unsafe extern "C" fn(*const uv_handle_t) -> *mut uv_loop_t;
    pub type uv_handle_get_type = unsafe extern "C" fn(*const uv_handle_t) -> uv_handle_type;
    pub type uv_handle_set_data = unsafe extern "C" fn(*mut uv_handle_t, *mut c_void);
    pub type uv_handle_size = unsafe extern "C" fn(uv_handle_type) -> usize;
    pub type uv_handle_type_name = unsafe extern "C" fn(uv_handle_type) -> *const c_char;
    pub type uv_has_ref = unsafe extern "C" fn(*const uv_handle_t) -> c_int;
    pub type uv_hrtime = unsafe extern "C" fn() -> u64;
    pub type uv_idle_init = unsafe extern "C" fn(*mut uv_loop_t, *mut uv_idle_t) -> c_int;
    pub type uv_idle_start = unsafe extern "C" fn(*mut uv_idle_t, Option<unsafe extern "C" fn(*mut uv_idle_t)>) -> c_int;
    pub type uv_idle_stop = unsafe extern "C" fn(*mut uv_idle_t) -> c_int;
    pub type uv_if_indextoiid = unsafe extern "C" fn(c_uint, *mut c_char, *mut usize) -> c_int;
    pub type uv_if_indextoname = unsafe extern "C" fn(c_uint, *mut c_char, *mut usize) -> c_int;
    pub type uv_inet_ntop = unsafe extern "C" fn(c_int, *const c_void, *mut c_char, usize) -> c_int;
    pub type uv_inet_pton = unsafe extern "C" fn(c_int, *const c_char, *mut c_void) -> c_int;
    pub type uv_interface_addresses = unsafe extern "C" fn(*mut *mut uv_interface_address_t, *mut c_int) -> c_int;
    pub type uv_ip4_addr = unsafe extern "C" fn(*const c_char, c_int, *mut libc::sockaddr_in) -> c_int;
    pub type uv_ip4_name = unsafe extern "C" fn(*const libc::sockaddr_in, *mut c_char, usize) -> c_int;
    pub type uv_ip6_addr = unsafe extern "C" fn(*const c_char, c_int, *mut libc::sockaddr_in6) -> c_int;
    pub type uv_ip6_name = unsafe extern "C" fn(*const libc::sockaddr_in6, *mut c_char, usize) -> c_int;
    pub type uv_ip_name = unsafe extern "C" fn(*const libc::sockaddr, *mut c_char, usize) -> c_int;
    pub type uv_is_active = unsafe extern "C" fn(*const uv_handle_t) -> c_int;
    pub type uv_is_closing = unsafe extern "C" fn(*const uv_handle_t) -> c_int;
    pub type uv_is_readable = unsafe extern "C" fn(*const uv_stream_t) -> c_int;
    pub type uv_is_writable = unsafe extern "C" fn(*const uv_stream_t) -> c_int;
    pub type uv_key_create = unsafe extern "C" fn(*mut c_uint) -> c_int;
    pub type uv_key_delete = unsafe extern "C" fn(*mut c_uint);
    pub type uv_key_get = unsafe extern "C" fn(*mut c_uint) -> *mut c_void;
    pub type uv_key_set = unsafe extern "C" fn(*mut c_uint, *mut c_void);
    pub type uv_kill = unsafe extern "C" fn(c_int, c_int) -> c_int;
    pub type uv_library_shutdown = unsafe extern "C" fn();
    pub type uv_listen = unsafe extern "C" fn(*mut uv_stream_t, c_int, Option<unsafe extern "C" fn(*mut uv_stream_t, c_int)>) -> c_int;
    pub type uv_loadavg = unsafe extern "C" fn(*mut f64);
    pub type uv_loop_alive = unsafe extern "C" fn(*const uv_loop_t) -> c_int;
    pub type uv_loop_close = unsafe extern "C" fn(*mut uv_loop_t) -> c_int;
    pub type uv_loop_configure = unsafe extern "C" fn(*mut uv_loop_t, uv_loop_option, ...) -> c_int;
    pub type uv_loop_delete = unsafe extern "C" fn(*mut uv_loop_t);
    pub type uv_loop_fork = unsafe extern "C" fn(*mut uv_loop_t) -> c_int;
    pub type uv_loop_get_data = unsafe extern "C" fn(*const uv_loop_t) -> *mut c_void;
    pub type uv_loop_init = unsafe extern "C" fn(*mut uv_loop_t) -> c_int;
    pub type uv_loop_new = unsafe extern "C" fn() -> *mut uv_loop_t;
    pub type uv_loop_set_data = unsafe extern "C" fn(*mut uv_loop_t, *mut c_void);
    pub type uv_loop_size = unsafe extern "C" fn() -> usize;
    pub type uv_metrics_idle_time = unsafe extern "C" fn(*mut uv_loop_t) -> u64;
    pub type uv_metrics_info = unsafe extern "C" fn(*mut uv_loop_t, *mut uv_metrics_t) -> c_int;
    pub type uv_mutex_destroy = unsafe extern "C" fn(*mut libc::pthread_mutex_t);
    pub type uv_mutex_init = unsafe extern "C" fn(*mut libc::pthread_mutex_t) -> c_int;
    pub type uv_mutex_init_recursive = unsafe extern "C" fn(*mut libc::pthread_mutex_t) -> c_int;
    pub type uv_mutex_lock = unsafe extern "C" fn(*mut libc::pthread_mutex_t);
    pub type uv_mutex_trylock = unsafe extern "C" fn(*mut libc::pthread_mutex_t) -> c_int;
    pub type uv_mutex_unlock = unsafe extern "C" fn(*mut libc::pthread_mutex_t);
    pub type uv_now = unsafe extern "C" fn(*const uv_loop_t) -> u64;
    pub type uv_once = unsafe extern "C" fn(*mut c_int, Option<unsafe extern "C" fn()>);
    pub type uv_open_osfhandle = unsafe extern "C" fn(c_int) -> c_int;
    pub type uv_os_environ = unsafe extern "C" fn(*mut *mut uv_env_item_t, *mut c_int) -> c_int;
    pub type uv_os_free_environ = unsafe extern "C" fn(*mut uv_env_item_t, c_int);
    pub type uv_os_free_group = unsafe extern "C" fn(*mut uv_group_t);
    pub type uv_os_free_passwd = unsafe extern "C" fn(*mut uv_passwd_t);
    pub type uv_os_get_group = unsafe extern "C" fn(*mut uv_group_t, c_uint) -> c_int;
    pub type uv_os_get_passwd = unsafe extern "C" fn(*mut uv_passwd_t) -> c_int;
    pub type uv_os_get_passwd2 = unsafe extern "C" fn(*mut uv_passwd_t, c_uint) -> c_int;
    pub type uv_os_getenv = unsafe extern "C" fn(*const c_char, *mut c_char, *mut usize) -> c_int;
    pub type uv_os_gethostname = unsafe extern "C" fn(*mut c_char, *mut usize) -> c_int;
    pub type uv_os_getpid = unsafe extern "C" fn() -> c_int;
    pub type uv_os_getppid = unsafe extern "C" fn() -> c_int;
    pub type uv_os_getpriority = unsafe extern "C" fn(c_int, *mut c_int) -> c_int;
    pub type uv_os_homedir = unsafe extern "C" fn(*mut c_char, *mut usize) -> c_int;
    pub type uv_os_setenv = unsafe extern "C" fn(*const c_char, *const c_char) -> c_int;
    pub type uv_os_setpriority = unsafe extern "C" fn(c_int, c_int) -> c_int;
    pub type uv_os_tmpdir = unsafe extern "C" fn(*mut c_char, *mut usize) -> c_int;
    pub type uv_os_uname = unsafe extern "C" fn(*mut uv_utsname_t) -> c_int;
    pub type uv_os_unsetenv = unsafe extern "C" fn(*const c_char) -> c_int;
    pub type uv_pipe = unsafe extern "C" fn(*mut c_int, c_int, c_int) -> c_int;
    pub type uv_pipe_bind = unsafe extern "C" fn(*mut uv_pipe_t, *const c_char) -> c_int;
    pub type uv_pipe_bind2 = unsafe extern "C" fn(*mut uv_pipe_t, *const c_char, usize, c_uint) -> c_int;
    pub type uv_pipe_chmod = unsafe extern "C" fn(*mut uv_pipe_t, c_int) -> c_int;
    pub type uv_pipe_connect = unsafe extern "C" fn(*mut uv_connect_t, *mut uv_pipe_t, *const c_char, Option<unsafe extern "C" fn(*mut uv_connect_t, c_int)>);
    pub type uv_pipe_connect2 = unsafe extern "C" fn(*mut uv_connect_t, *mut uv_pipe_t, *const c_char, usize, c_uint, Option<unsafe extern "C" fn(*mut uv_connect_t, c_int)>) -> c_int;
    pub type uv_pipe_getpeername = unsafe extern "C" fn(*const uv_pipe_t, *mut c_char, *mut usize) -> c_int;
    pub type uv_pipe_getsockname = unsafe extern "C" fn(*const uv_pipe_t, *mut c_char, *mut usize) -> c_int;
    pub type uv_pipe_init = unsafe extern "C" fn(*mut uv_loop_t, *mut uv_pipe_t, c_int) -> c_int;
    pub type uv_pipe_open = unsafe extern "C" fn(*mut uv_pipe_t, c_int) -> c_int;
    pub type uv_pipe_pending_count = unsafe extern "C" fn(*mut uv_pipe_t) -> c_int;
    pub type uv_pipe_pending_instances = unsafe extern "C" fn(*mut uv_pipe_t, c_int);
    pub type uv_pipe_pending_type = unsafe extern "C" fn(*mut uv_pipe_t) -> uv_handle_type;
    pub type uv_poll_init = unsafe extern "C" fn(*mut uv_loop_t, *mut uv_poll_t, c_int) -> c_int;
    pub type uv_poll_init_socket = unsafe extern "C" fn(*mut uv_loop_t, *mut uv_poll_t, c_int) -> c_int;
    pub type uv_poll_start = unsafe extern "C" fn(*mut uv_poll_t, c_int, Option<unsafe extern "C" fn(*mut uv_poll_t, c_int, c_int)>) -> c_int;
    pub type uv_poll_stop = unsafe extern "C" fn(*mut uv_poll_t) -> c_int;
    pub type uv_prepare_init = unsafe extern "C" fn(*mut uv_loop_t, *mut uv_prepare_t) -> c_int;
    pub type uv_prepare_start = unsafe extern "C" fn(*mut uv_prepare_t, Option<unsafe extern "C" fn(*mut uv_prepare_t)>) -> c_int;
    pub type uv_prepare_stop = unsafe extern "C" fn(*mut uv_prepare_t) -> c_int;
    pub type uv_print_active_handles = unsafe extern "C" fn(*mut uv_loop_t, *mut libc::FILE);
    pub type uv_print_all_handles = unsafe extern "C" fn(*mut uv_loop_t, *mut libc::FILE);
    pub type uv_process_get_pid = unsafe extern "C" fn(*const uv_process_t) -> c_int;
    pub type uv_process_kill = unsafe extern "C" fn(*mut uv_process_t, c_int) -> c_int;
    pub type uv_queue_work = unsafe extern "C" fn(*mut uv_loop_t, *mut uv_work_t, Option<unsafe extern "C" fn(*mut uv_work_t)>, Option<unsafe extern "C" fn(*mut uv_work_t, c_int)>) -> c_int;
    pub type uv_random = unsafe extern "C" fn(*mut uv_loop_t, *mut uv_random_t, *mut c_void, usize, c_uint, Option<unsafe extern "C" fn(*mut uv_random_t, c_int, *mut c_void, usize)>) -> c_int;
    pub type uv_read_start = unsafe extern "C" fn(*mut uv_stream_t, Option<unsafe extern "C" fn(*mut uv_handle_t, usize, *mut uv_buf_t)>, Option<unsafe extern "C" fn(*mut uv_stream_t, isize, *const uv_buf_t)>) -> c_int;
    pub type uv_read_stop = unsafe extern "C" fn(*mut uv_stream_t) -> c_int;
    pub type uv_recv_buffer_size = unsafe extern "C" fn(*mut uv_handle_t, *mut c_int) -> c_int;
    pub type uv_ref = unsafe extern "C" fn(*mut uv_handle_t);
    pub type uv_replace_allocator = unsafe extern "C" fn(Option<unsafe extern "C" fn(usize) -> *mut c_void>, Option<unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void>, Option<unsafe extern "C" fn(usize, usize) -> *mut c_void>, Option<unsafe extern "C" fn(*mut c_void)>) -> c_int;
    pub type uv_req_get_data = unsafe extern "C" fn(*const uv_req_t) -> *mut c_void;
    pub type uv_req_get_type = unsafe extern "C" fn(*const uv_req_t) -> uv_req_type;
    pub type uv_req_set_data = unsafe extern "C" fn(*mut uv_req_t, *mut c_void);
    pub type uv_req_size = unsafe extern "C" fn(uv_req_type) -> usize;
    pub type uv_req_type_name = unsafe extern "C" fn(uv_req_type) -> *const c_char;
    pub type uv_resident_set_memory = unsafe extern "C" fn(*mut usize) -> c_int;
    pub type uv_run = unsafe extern "C" fn(*mut uv_loop_t, uv_run_mode) -> c_int;
    pub type uv_rwlock_destroy = unsafe extern "C" fn(*mut libc::pthread_rwlock_t);
    pub type uv_rwlock_init = unsafe extern "C" fn(*mut libc::pthread_rwlock_t) -> c_int;
    pub type uv_rwlock_rdlock = unsafe extern "C" fn(*mut libc::pthread_rwlock_t);
    pub type uv_rwlock_rdunlock = unsafe extern "C" fn(*mut libc::pthread_rwlock_t);
    pub type uv_rwlock_tryrdlock = unsafe extern "C" fn(*mut libc::pthread_rwlock_t) -> c_int;
    pub type uv_rwlock_trywrlock = unsafe extern "C" fn(*mut libc::pthread_rwlock_t) -> c_int;
    pub type uv_rwlock_wrlock = unsafe extern "C" fn(*mut libc::pthread_rwlock_t);
    pub type uv_rwlock_wrunlock = unsafe extern "C" fn(*mut libc::pthread_rwlock_t);
    pub type uv_sem_destroy = unsafe extern "C" fn(*mut libc::sem_t);
    pub type uv_sem_init = unsafe extern "C" fn(*mut libc::sem_t, c_uint) -> c_int;
    pub type uv_sem_post = unsafe extern "C" fn(*mut libc::sem_t);
    pub type uv_sem_trywait = unsafe extern "C" fn(*mut libc::sem_t) -> c_int;
    pub type uv_sem_wait = unsafe extern "C" fn(*mut libc::sem_t);
    pub type uv_send_buffer_size = unsafe extern "C" fn(*mut uv_handle_t, *mut c_int) -> c_int;
    pub type uv_set_process_title = unsafe extern "C" fn(*const c_char) -> c_int;
    pub type uv_setup_args = unsafe extern "C" fn(c_int, *mut *mut c_char) -> *mut *mut c_char;
    pub type uv_shutdown = unsafe extern "C" fn(*mut uv_shutdown_t, *mut uv_stream_t, Option<unsafe extern "C" fn(*mut uv_shutdown_t, c_int)>) -> c_int;
    pub type uv_signal_init = unsafe extern "C" fn(*mut uv_loop_t, *mut uv_signal_t) -> c_int;
    pub type uv_signal_start = unsafe extern "C" fn(*mut uv_signal_t, Option<unsafe extern "C" fn(*mut uv_signal_t, c_int)>, c_int) -> c_int;
    pub type uv_signal_start_oneshot = unsafe extern "C" fn(*mut uv_signal_t, Option<unsafe extern "C" fn(*mut uv_signal_t, c_int)>, c_int) -> c_int;
    pub type uv_signal_stop = unsafe extern "C" fn(*mut uv_signal_t) -> c_int;
    pub type uv_sleep = unsafe extern "C" fn(c_uint);
    pub type uv_socketpair = unsafe extern "C" fn(c_int, c_int, *mut c_int, c_int, c_int) -> c_int;
    pub type uv_spawn = unsafe extern "C" fn(*mut uv_loop_t, *mut uv_process_t, *const uv_process_options_t) -> c_int;
    pub type uv_stop = unsafe extern "C" fn(*mut uv_loop_t);
    pub type uv_stream_get_write_queue_size = unsafe extern "C" fn(*const uv_stream_t) -> usize;
    pub type uv_stream_set_blocking = unsafe extern "C" fn(*mut uv_stream_t, c_int) -> c_int;
    pub type uv_strerror = unsafe extern "C" fn(c_int) -> *const c_char;
    pub type uv_strerror_r = unsafe extern "C" fn(c_int, *mut c_char, usize) -> *mut c_char;
    pub type uv_tcp_bind = unsafe extern "C" fn(*mut uv_tcp_t, *const libc::sockaddr, c_uint) -> c_int;
    pub type uv_tcp_close_reset = unsafe extern "C" fn(*mut uv_tcp_t, Option<unsafe extern "C" fn(*mut uv_handle_t)>) -> c_int;
    pub type uv_tcp_connect = unsafe extern "C" fn(*mut uv_connect_t, *mut uv_tcp_t, *const libc::sockaddr, Option<unsafe extern "C" fn(*mut uv_connect_t, c_int)>) -> c_int;
    pub type uv_tcp_getpeername = unsafe extern "C" fn(*const uv_tcp_t, *mut libc::sockaddr, *mut c_int) -> c_int;
    pub type uv_tcp_getsockname = unsafe extern "C" fn(*const uv_tcp_t, *mut libc::sockaddr, *mut c_int) -> c_int;
    pub type uv_tcp_init = unsafe extern "C" fn(*mut uv_loop_t, *mut uv_tcp_t) -> c_int;
    pub type uv_tcp_init_ex = unsafe extern "C" fn(*mut uv_loop_t, *mut uv_tcp_t, c_uint) -> c_int;
    pub type uv_tcp_keepalive = unsafe extern "C" fn(*mut uv_tcp_t, c_int, c_uint) -> c_int;
    pub type uv_tcp_keepalive_ex = unsafe extern "C" fn(*mut uv_tcp_t, c_int, c_uint, c_uint, c_uint) -> c_int;
    pub type uv_tcp_nodelay = unsafe extern "C" fn(*mut uv_tcp_t, c_int) -> c_int;
    pub type uv_tcp_open = unsafe extern "C" fn(*mut uv_tcp_t, c_int) -> c_int;
    pub type uv_tcp_simultaneous_accepts = unsafe extern "C" fn(*mut uv_tcp_t, c_int) -> c_int;
    pub type uv_thread_create = unsafe extern "C" fn(*mut u64, Option<unsafe extern "C" fn(*mut c_void)>, *mut c_void) -> c_int;
    pub type uv_thread_create_ex = unsafe extern "C" fn(*mut u64, *const uv_thread_options_t, Option<unsafe extern "C" fn(*mut c_void)>, *mut c_void) -> c_int;
    pub type uv_thread_detach = unsafe extern "C" fn(*mut u64) -> c_int;
    pub type uv_thread_equal = unsafe extern "C" fn(*const u64, *const u64) -> c_int;
    pub type uv_thread_getaffinity = unsafe extern "C" fn(*mut u64, *mut c_char, usize) -> c_int;
    pub type uv_thread_getcpu = unsafe extern "C" fn() -> c_int;
    pub type uv_thread_getname = unsafe extern "C" fn(*mut u64, *mut c_char, usize) -> c_int;
    pub type uv_thread_getpriority = unsafe extern "C" fn(u64, *mut c_int) -> c_int;
    pub type uv_thread_join = unsafe extern "C" fn(*mut u64) -> c_int;
    pub type uv_thread_self = unsafe extern "C" fn() -> u64;
    pub type uv_thread_setaffinity = unsafe extern "C" fn(*mut u64, *mut c_char, *mut c_char, usize) -> c_int;
    pub type uv_thread_setname = unsafe extern "C" fn(*const c_char) -> c_int;
    pub type uv_thread_setpriority = unsafe extern "C" fn(u64, c_int) -> c_int;
    pub type uv_timer_again = unsafe extern "C" fn(*mut uv_timer_t) -> c_int;
    pub type uv_timer_get_due_in = unsafe extern "C" fn(*const uv_timer_t) -> u64;
    pub type uv_timer_get_repeat = unsafe extern "C" fn(*const uv_timer_t) -> u64;
    pub type uv_timer_init = unsafe extern "C" fn(*mut uv_loop_t, *mut uv_timer_t) -> c_int;
    pub type uv_timer_set_repeat = unsafe extern "C" fn(*mut uv_timer_t, u64);
    pub type uv_timer_start = unsafe extern "C" fn(*mut uv_timer_t, Option<unsafe extern "C" fn(*mut uv_timer_t)>, u64, u64) -> c_int;
    pub type uv_timer_stop = unsafe extern "C" fn(*mut uv_timer_t) -> c_int;
    pub type uv_translate_sys_error = unsafe extern "C" fn(c_int) -> c_int;
    pub type uv_try_write = unsafe extern "C" fn(*mut uv_stream_t, *const uv_buf_t, c_uint) -> c_int;
    pub type uv_try_write2 = unsafe extern "C" fn(*mut uv_stream_t, *const uv_buf_t, c_uint, *mut uv_stream_t) -> c_int;
    pub type uv_tty_get_vterm_state = unsafe extern "C" fn(*mut uv_tty_vtermstate_t) -> c_int;
    pub type uv_tty_get_winsize = unsafe extern "C" fn(*mut uv_tty_t, *mut c_int, *mut c_int) -> c_int;
    pub type uv_tty_init = unsafe extern "C" fn(*mut uv_loop_t, *mut uv_tty_t, c_int, c_int) -> c_int;
    pub type uv_tty_reset_mode = unsafe extern "C" fn() -> c_int;
    pub type uv_tty_set_mode = unsafe extern "C" fn(*mut uv_tty_t, uv_tty_mode_t) -> c_int;
    pub type uv_tty_set_vterm_state = unsafe extern "C" fn(uv_tty_vtermstate_t);
    pub type uv_udp_bind = unsafe extern "C" fn(*mut uv_udp_t, *const libc::sockaddr, c_uint) -> c_int;
    pub type uv_udp_connect = unsafe extern "C" fn(*mut uv_udp_t, *const libc::sockaddr) -> c_int;
    pub type uv_udp_get_send_queue_count = unsafe extern "C" fn(*const uv_udp_t) -> usize;
    pub type uv_udp_get_send_queue_size = unsafe extern "C" fn(*const uv_udp_t) -> usize;
    pub type uv_udp_getpeername = unsafe extern "C" fn(*const uv_udp_t, *mut libc::sockaddr, *mut c_int) -> c_int;
    pub type uv_udp_getsockname = unsafe extern "C" fn(*const uv_udp_t, *mut libc::sockaddr, *mut c_int) -> c_int;
    pub type uv_udp_init = unsafe extern "C" fn(*mut uv_loop_t, *mut uv_udp_t) -> c_int;
    pub type uv_udp_init_ex = unsafe extern "C" fn(*mut uv_loop_t, *mut uv_udp_t, c_uint) -> c_int;
    pub type uv_udp_open = unsafe extern "C" fn(*mut uv_udp_t, c_int) -> c_int;
    pub type uv_udp_open_ex = unsafe extern "C" fn(*mut uv_udp_t, c_int, c_uint) -> c_int;
    pub type uv_udp_recv_start = unsafe extern "C" fn(*mut uv_udp_t, Option<unsafe extern "C" fn(*mut uv_handle_t, usize, *mut uv_buf_t)>, Option<unsafe extern "C" fn(*mut uv_udp_t, isize, *const uv_buf_t, *const libc::sockaddr, c_uint)>) -> c_int;
    pub type uv_udp_recv_stop = unsafe extern "C" fn(*mut uv_udp_t) -> c_int;
    pub type uv_udp_send = unsafe extern "C" fn(*mut uv_udp_send_t, *mut uv_udp_t, *const uv_buf_t, c_uint, *const libc::sockaddr, Option<unsafe extern "C" fn(*mut uv_udp_send_t, c_int)>) -> c_int;
    pub type uv_udp_set_broadcast = unsafe extern "C" fn(*mut uv_udp_t, c_int) -> c_int;
    pub type uv_udp_set_membership = unsafe extern "C" fn(*mut uv_udp_t, *const c_char, *const c_char, uv_membership) -> c_int;
    pub type uv_udp_set_multicast_interface = unsafe extern "C" fn(*mut uv_udp_t, *const c_char) -> c_int;
    pub type uv_udp_set_multicast_loop = unsafe extern "C" fn(*mut uv_udp_t, c_int) -> c_int;
    pub type uv_udp_set_multicast_ttl = unsafe extern "C" fn(*mut uv_udp_t, c_int) -> c_int;
    pub type uv_udp_set_source_membership = unsafe extern "C" fn(*mut uv_udp_t, *const c_char, *const c_char, *const c_char, uv_membership) -> c_int;
    pub type uv_udp_set_ttl = unsafe extern "C" fn(*mut uv_udp_t, c_int) -> c_int;
    pub type uv_udp_try_send = unsafe extern "C" fn(*mut uv_udp_t, *const uv_buf_t, c_uint, *const libc::sockaddr) -> c_int;
    pub type uv_udp_try_send2 = unsafe extern "C" fn(*mut uv_udp_t, c_uint, *mut *mut uv_buf_t, *mut c_uint, *mut *mut libc::sockaddr, c_uint) -> c_int;
    pub type uv_udp_using_recvmmsg = unsafe extern "C" fn(*const uv_udp_t) -> c_int;
    pub type uv_unref = unsafe extern "C" fn(*mut uv_handle_t);
    pub type uv_update_time = unsafe extern "C" fn(*mut uv_loop_t);
    pub type uv_uptime = unsafe extern "C" fn(*mut f64) -> c_int;
    pub type uv_utf16_length_as_wtf8 = unsafe extern "C" fn(*const u16, isize) -> usize;
    pub type uv_utf16_to_wtf8 = unsafe extern "C" fn(*const u16, isize, *mut *mut c_char, *mut usize) -> c_int;
    pub type uv_version = unsafe extern "C" fn() -> c_uint;
    pub type uv_version_string = unsafe extern "C" fn() -> *const c_char;
    pub type uv_walk = unsafe extern "C" fn(*mut uv_loop_t, Option<unsafe extern "C" fn(*mut uv_handle_t, *mut c_void)>, *mut c_void);
    pub type uv_write = unsafe extern "C" fn(*mut uv_write_t, *mut uv_stream_t, *const uv_buf_t, c_uint, Option<unsafe extern "C" fn(*mut uv_write_t, c_int)>) -> c_int;
    pub type uv_write2 = unsafe extern "C" fn(*mut uv_write_t, *mut uv_stream_t, *const uv_buf_t, c_uint, *mut uv_stream_t, Option<unsafe extern "C" fn(*mut uv_write_t, c_int)>) -> c_int;
    pub type uv_write_nwritten = unsafe extern "C" fn(*const uv_write_t) -> usize;
    pub type uv_wtf8_length_as_utf16 = unsafe extern "C" fn(*const c_char) -> isize;
    pub type uv_wtf8_to_utf16 = unsafe extern "C" fn(*const c_char, *mut u16, usize);
}

pub use raw::{
    uv_available_parallelism,
    uv_backend_fd,
    uv_backend_timeout,
    uv_barrier_destroy,
    uv_barrier_init,
    uv_barrier_wait,
    uv_buf_init,
    uv_chdir,
    uv_clock_gettime,
    uv_cond_broadcast,
    uv_cond_destroy,
    uv_cond_init,
    uv_cond_signal,
    uv_cond_timedwait,
    uv_cond_wait,
    uv_cpu_info,
    uv_cpumask_size,
    uv_cwd,
    uv_default_loop,
    uv_disable_stdio_inheritance,
    uv_dlclose,
    uv_dlerror,
    uv_dlopen,
    uv_dlsym,
    uv_err_name,
    uv_err_name_r,
    uv_exepath,
    uv_free_cpu_info,
    uv_free_interface_addresses,
    uv_freeaddrinfo,
    uv_get_available_memory,
    uv_get_constrained_memory,
    uv_get_free_memory,
    uv_get_osfhandle,
    uv_get_process_title,
    uv_get_total_memory,
    uv_getrusage,
    uv_getrusage_thread,
    uv_gettimeofday,
    uv_guess_handle,
    uv_handle_size,
    uv_handle_type_name,
    uv_hrtime,
    uv_if_indextoiid,
    uv_if_indextoname,
    uv_inet_ntop,
    uv_inet_pton,
    uv_interface_addresses,
    uv_ip4_addr,
    uv_ip4_name,
    uv_ip6_addr,
    uv_ip6_name,
    uv_key_create,
    uv_key_delete,
    uv_key_get,
    uv_key_set,
    uv_kill,
    uv_library_shutdown,
    uv_loadavg,
    uv_loop_alive,
    uv_loop_close,
    uv_loop_configure,
    uv_loop_delete,
    uv_loop_fork,
    uv_loop_get_data,
    uv_loop_init,
    uv_loop_new,
    uv_loop_set_data,
    uv_loop_size,
    uv_metrics_idle_time,
    uv_metrics_info,
    uv_mutex_destroy,
    uv_mutex_init,
    uv_mutex_init_recursive,
    uv_mutex_lock,
    uv_mutex_trylock,
    uv_mutex_unlock,
    uv_now,
    uv_once,
    uv_open_osfhandle,
    uv_os_environ,
    uv_os_free_environ,
    uv_os_free_group,
    uv_os_free_passwd,
    uv_os_get_group,
    uv_os_get_passwd,
    uv_os_get_passwd2,
    uv_os_getenv,
    uv_os_gethostname,
    uv_os_getpid,
    uv_os_getppid,
    uv_os_getpriority,
    uv_os_homedir,
    uv_os_setenv,
    uv_os_setpriority,
    uv_os_tmpdir,
    uv_os_uname,
    uv_os_unsetenv,
    uv_pipe,
    uv_print_active_handles,
    uv_print_all_handles,
    uv_replace_allocator,
    uv_req_size,
    uv_req_type_name,
    uv_resident_set_memory,
    uv_run,
    uv_rwlock_destroy,
    uv_rwlock_init,
    uv_rwlock_rdlock,
    uv_rwlock_rdunlock,
    uv_rwlock_tryrdlock,
    uv_rwlock_trywrlock,
    uv_rwlock_wrlock,
    uv_rwlock_wrunlock,
    uv_sem_destroy,
    uv_sem_init,
    uv_sem_post,
    uv_sem_trywait,
    uv_sem_wait,
    uv_set_process_title,
    uv_setup_args,
    uv_sleep,
    uv_socketpair,
    uv_stop,
    uv_strerror,
    uv_strerror_r,
    uv_thread_create,
    uv_thread_create_ex,
    uv_thread_detach,
    uv_thread_equal,
    uv_thread_getaffinity,
    uv_thread_getcpu,
    uv_thread_getname,
    uv_thread_getpriority,
    uv_thread_join,
    uv_thread_self,
    uv_thread_setaffinity,
    uv_thread_setname,
    uv_thread_setpriority,
    uv_translate_sys_error,
    uv_tty_get_vterm_state,
    uv_tty_reset_mode,
    uv_tty_set_vterm_state,
    uv_update_time,
    uv_uptime,
    uv_utf16_length_as_wtf8,
    uv_utf16_to_wtf8,
    uv_version,
    uv_version_string,
    uv_walk,
    uv_wtf8_length_as_utf16,
    uv_wtf8_to_utf16,
};

unsafe impl Holds<uv_handle_t> for uv_async_t {}
unsafe impl Holds<uv_handle_t> for uv_check_t {}
unsafe impl Holds<uv_handle_t> for uv_fs_event_t {}
unsafe impl Holds<uv_handle_t> for uv_fs_poll_t {}
unsafe impl Holds<uv_handle_t> for uv_idle_t {}
unsafe impl Holds<uv_handle_t> for uv_pipe_t {}
unsafe impl Holds<uv_handle_t> for uv_poll_t {}
unsafe impl Holds<uv_handle_t> for uv_prepare_t {}
unsafe impl Holds<uv_handle_t> for uv_process_t {}
unsafe impl Holds<uv_handle_t> for uv_signal_t {}
unsafe impl Holds<uv_handle_t> for uv_stream_t {}
unsafe impl Holds<uv_handle_t> for uv_tcp_t {}
unsafe impl Holds<uv_handle_t> for uv_timer_t {}
unsafe impl Holds<uv_handle_t> for uv_tty_t {}
unsafe impl Holds<uv_handle_t> for uv_udp_t {}
unsafe impl Holds<uv_req_t> for uv_connect_t {}
unsafe impl Holds<uv_req_t> for uv_fs_t {}
unsafe impl Holds<uv_req_t> for uv_getaddrinfo_t {}
unsafe impl Holds<uv_req_t> for uv_getnameinfo_t {}
unsafe impl Holds<uv_req_t> for uv_random_t {}
unsafe impl Holds<uv_req_t> for uv_shutdown_t {}
unsafe impl Holds<uv_req_t> for uv_udp_send_t {}
unsafe impl Holds<uv_req_t> for uv_work_t {}
unsafe impl Holds<uv_req_t> for uv_write_t {}

pub unsafe fn uv_accept<A: Holds<uv_stream_t>, B: Holds<uv_stream_t>>(a: *mut A, b: *mut B) -> c_int {
    unsafe { raw::uv_accept(held(a), held(b)) }
}

pub unsafe fn uv_async_init<B: Holds<uv_async_t>>(a: *mut uv_loop_t, b: *mut B, c: Option<unsafe extern "C" fn(*mut B)>) -> c_int {
    unsafe { raw::uv_async_init(a, held(b), transmute(c)) }
}

pub unsafe fn uv_async_send<A: Holds<uv_async_t>>(a: *mut A) -> c_int {
    unsafe { raw::uv_async_send(held(a)) }
}

pub unsafe fn uv_cancel<A: Holds<uv_req_t>>(a: *mut A) -> c_int {
    unsafe { raw::uv_cancel(held(a)) }
}

pub unsafe fn uv_check_init<B: Holds<uv_check_t>>(a: *mut uv_loop_t, b: *mut B) -> c_int {
    unsafe { raw::uv_check_init(a, held(b)) }
}

pub unsafe fn uv_check_start<A: Holds<uv_check_t>>(a: *mut A, b: Option<unsafe extern "C" fn(*mut A)>) -> c_int {
    unsafe { raw::uv_check_start(held(a), transmute(b)) }
}

pub unsafe fn uv_check_stop<A: Holds<uv_check_t>>(a: *mut A) -> c_int {
    unsafe { raw::uv_check_stop(held(a)) }
}

pub unsafe fn uv_close<A: Holds<uv_handle_t>>(a: *mut A, b: Option<unsafe extern "C" fn(*mut A)>) {
    unsafe { raw::uv_close(held(a), transmute(b)) }
}

pub unsafe fn uv_fileno<A: Holds<uv_handle_t>>(a: *const A, b: *mut c_int) -> c_int {
    unsafe { raw::uv_fileno(held_const(a), b) }
}

pub unsafe fn uv_fs_access<B: Holds<uv_fs_t>>(a: *mut uv_loop_t, b: *mut B, c: *const c_char, d: c_int, e: Option<unsafe extern "C" fn(*mut B)>) -> c_int {
    unsafe { raw::uv_fs_access(a, held(b), c, d, transmute(e)) }
}

pub unsafe fn uv_fs_chmod<B: Holds<uv_fs_t>>(a: *mut uv_loop_t, b: *mut B, c: *const c_char, d: c_int, e: Option<unsafe extern "C" fn(*mut B)>) -> c_int {
    unsafe { raw::uv_fs_chmod(a, held(b), c, d, transmute(e)) }
}

pub unsafe fn uv_fs_chown<B: Holds<uv_fs_t>>(a: *mut uv_loop_t, b: *mut B, c: *const c_char, d: c_uint, e: c_uint, f: Option<unsafe extern "C" fn(*mut B)>) -> c_int {
    unsafe { raw::uv_fs_chown(a, held(b), c, d, e, transmute(f)) }
}

pub unsafe fn uv_fs_close<B: Holds<uv_fs_t>>(a: *mut uv_loop_t, b: *mut B, c: c_int, d: Option<unsafe extern "C" fn(*mut B)>) -> c_int {
    unsafe { raw::uv_fs_close(a, held(b), c, transmute(d)) }
}

pub unsafe fn uv_fs_closedir<B: Holds<uv_fs_t>>(a: *mut uv_loop_t, b: *mut B, c: *mut uv_dir_t, d: Option<unsafe extern "C" fn(*mut B)>) -> c_int {
    unsafe { raw::uv_fs_closedir(a, held(b), c, transmute(d)) }
}

pub unsafe fn uv_fs_copyfile<B: Holds<uv_fs_t>>(a: *mut uv_loop_t, b: *mut B, c: *const c_char, d: *const c_char, e: c_int, f: Option<unsafe extern "C" fn(*mut B)>) -> c_int {
    unsafe { raw::uv_fs_copyfile(a, held(b), c, d, e, transmute(f)) }
}

pub unsafe fn uv_fs_event_getpath<A: Holds<uv_fs_event_t>>(a: *mut A, b: *mut c_char, c: *mut usize) -> c_int {
    unsafe { raw::uv_fs_event_getpath(held(a), b, c) }
}

pub unsafe fn uv_fs_event_init<B: Holds<uv_fs_event_t>>(a: *mut uv_loop_t, b: *mut B) -> c_int {
    unsafe { raw::uv_fs_event_init(a, held(b)) }
}

pub unsafe fn uv_fs_event_start<A: Holds<uv_fs_event_t>>(a: *mut A, b: Option<unsafe extern "C" fn(*mut A, *const c_char, c_int, c_int)>, c: *const c_char, d: c_uint) -> c_int {
    unsafe { raw::uv_fs_event_start(held(a), transmute(b), c, d) }
}

pub unsafe fn uv_fs_event_stop<A: Holds<uv_fs_event_t>>(a: *mut A) -> c_int {
    unsafe { raw::uv_fs_event_stop(held(a)) }
}

pub unsafe fn uv_fs_fchmod<B: Holds<uv_fs_t>>(a: *mut uv_loop_t, b: *mut B, c: c_int, d: c_int, e: Option<unsafe extern "C" fn(*mut B)>) -> c_int {
    unsafe { raw::uv_fs_fchmod(a, held(b), c, d, transmute(e)) }
}

pub unsafe fn uv_fs_fchown<B: Holds<uv_fs_t>>(a: *mut uv_loop_t, b: *mut B, c: c_int, d: c_uint, e: c_uint, f: Option<unsafe extern "C" fn(*mut B)>) -> c_int {
    unsafe { raw::uv_fs_fchown(a, held(b), c, d, e, transmute(f)) }
}

pub unsafe fn uv_fs_fdatasync<B: Holds<uv_fs_t>>(a: *mut uv_loop_t, b: *mut B, c: c_int, d: Option<unsafe extern "C" fn(*mut B)>) -> c_int {
    unsafe { raw::uv_fs_fdatasync(a, held(b), c, transmute(d)) }
}

pub unsafe fn uv_fs_fstat<B: Holds<uv_fs_t>>(a: *mut uv_loop_t, b: *mut B, c: c_int, d: Option<unsafe extern "C" fn(*mut B)>) -> c_int {
    unsafe { raw::uv_fs_fstat(a, held(b), c, transmute(d)) }
}

pub unsafe fn uv_fs_fsync<B: Holds<uv_fs_t>>(a: *mut uv_loop_t, b: *mut B, c: c_int, d: Option<unsafe extern "C" fn(*mut B)>) -> c_int {
    unsafe { raw::uv_fs_fsync(a, held(b), c, transmute(d)) }
}

pub unsafe fn uv_fs_ftruncate<B: Holds<uv_fs_t>>(a: *mut uv_loop_t, b: *mut B, c: c_int, d: i64, e: Option<unsafe extern "C" fn(*mut B)>) -> c_int {
    unsafe { raw::uv_fs_ftruncate(a, held(b), c, d, transmute(e)) }
}

pub unsafe fn uv_fs_futime<B: Holds<uv_fs_t>>(a: *mut uv_loop_t, b: *mut B, c: c_int, d: f64, e: f64, f: Option<unsafe extern "C" fn(*mut B)>) -> c_int {
    unsafe { raw::uv_fs_futime(a, held(b), c, d, e, transmute(f)) }
}

pub unsafe fn uv_fs_get_path<A: Holds<uv_fs_t>>(a: *const A) -> *const c_char {
    unsafe { raw::uv_fs_get_path(held_const(a)) }
}

pub unsafe fn uv_fs_get_ptr<A: Holds<uv_fs_t>>(a: *const A) -> *mut c_void {
    unsafe { raw::uv_fs_get_ptr(held_const(a)) }
}

pub unsafe fn uv_fs_get_result<A: Holds<uv_fs_t>>(a: *const A) -> isize {
    unsafe { raw::uv_fs_get_result(held_const(a)) }
}

pub unsafe fn uv_fs_get_statbuf<A: Holds<uv_fs_t>>(a: *mut A) -> *mut uv_stat_t {
    unsafe { raw::uv_fs_get_statbuf(held(a)) }
}

pub unsafe fn uv_fs_get_system_error<A: Holds<uv_fs_t>>(a: *const A) -> c_int {
    unsafe { raw::uv_fs_get_system_error(held_const(a)) }
}

pub unsafe fn uv_fs_get_type<A: Holds<uv_fs_t>>(a: *const A) -> uv_fs_type {
    unsafe { raw::uv_fs_get_type(held_const(a)) }
}

pub unsafe fn uv_fs_lchown<B: Holds<uv_fs_t>>(a: *mut uv_loop_t, b: *mut B, c: *const c_char, d: c_uint, e: c_uint, f: Option<unsafe extern "C" fn(*mut B)>) -> c_int {
    unsafe { raw::uv_fs_lchown(a, held(b), c, d, e, transmute(f)) }
}

pub unsafe fn uv_fs_link<B: Holds<uv_fs_t>>(a: *mut uv_loop_t, b: *mut B, c: *const c_char, d: *const c_char, e: Option<unsafe extern "C" fn(*mut B)>) -> c_int {
    unsafe { raw::uv_fs_link(a, held(b), c, d, transmute(e)) }
}

pub unsafe fn uv_fs_lstat<B: Holds<uv_fs_t>>(a: *mut uv_loop_t, b: *mut B, c: *const c_char, d: Option<unsafe extern "C" fn(*mut B)>) -> c_int {
    unsafe { raw::uv_fs_lstat(a, held(b), c, transmute(d)) }
}

pub unsafe fn uv_fs_lutime<B: Holds<uv_fs_t>>(a: *mut uv_loop_t, b: *mut B, c: *const c_char, d: f64, e: f64, f: Option<unsafe extern "C" fn(*mut B)>) -> c_int {
    unsafe { raw::uv_fs_lutime(a, held(b), c, d, e, transmute(f)) }
}

pub unsafe fn uv_fs_mkdir<B: Holds<uv_fs_t>>(a: *mut uv_loop_t, b: *mut B, c: *const c_char, d: c_int, e: Option<unsafe extern "C" fn(*mut B)>) -> c_int {
    unsafe { raw::uv_fs_mkdir(a, held(b), c, d, transmute(e)) }
}

pub unsafe fn uv_fs_mkdtemp<B: Holds<uv_fs_t>>(a: *mut uv_loop_t, b: *mut B, c: *const c_char, d: Option<unsafe extern "C" fn(*mut B)>) -> c_int {
    unsafe { raw::uv_fs_mkdtemp(a, held(b), c, transmute(d)) }
}

pub unsafe fn uv_fs_mkstemp<B: Holds<uv_fs_t>>(a: *mut uv_loop_t, b: *mut B, c: *const c_char, d: Option<unsafe extern "C" fn(*mut B)>) -> c_int {
    unsafe { raw::uv_fs_mkstemp(a, held(b), c, transmute(d)) }
}

pub unsafe fn uv_fs_open<B: Holds<uv_fs_t>>(a: *mut uv_loop_t, b: *mut B, c: *const c_char, d: c_int, e: c_int, f: Option<unsafe extern "C" fn(*mut B)>) -> c_int {
    unsafe { raw::uv_fs_open(a, held(b), c, d, e, transmute(f)) }
}

pub unsafe fn uv_fs_opendir<B: Holds<uv_fs_t>>(a: *mut uv_loop_t, b: *mut B, c: *const c_char, d: Option<unsafe extern "C" fn(*mut B)>) -> c_int {
    unsafe { raw::uv_fs_opendir(a, held(b), c, transmute(d)) }
}

pub unsafe fn uv_fs_poll_getpath<A: Holds<uv_fs_poll_t>>(a: *mut A, b: *mut c_char, c: *mut usize) -> c_int {
    unsafe { raw::uv_fs_poll_getpath(held(a), b, c) }
}

pub unsafe fn uv_fs_poll_init<B: Holds<uv_fs_poll_t>>(a: *mut uv_loop_t, b: *mut B) -> c_int {
    unsafe { raw::uv_fs_poll_init(a, held(b)) }
}

pub unsafe fn uv_fs_poll_start<A: Holds<uv_fs_poll_t>>(a: *mut A, b: Option<unsafe extern "C" fn(*mut A, c_int, *const uv_stat_t, *const uv_stat_t)>, c: *const c_char, d: c_uint) -> c_int {
    unsafe { raw::uv_fs_poll_start(held(a), transmute(b), c, d) }
}

pub unsafe fn uv_fs_poll_stop<A: Holds<uv_fs_poll_t>>(a: *mut A) -> c_int {
    unsafe { raw::uv_fs_poll_stop(held(a)) }
}

pub unsafe fn uv_fs_read<B: Holds<uv_fs_t>>(a: *mut uv_loop_t, b: *mut B, c: c_int, d: *const uv_buf_t, e: c_uint, f: i64, g: Option<unsafe extern "C" fn(*mut B)>) -> c_int {
    unsafe { raw::uv_fs_read(a, held(b), c, d, e, f, transmute(g)) }
}

pub unsafe fn uv_fs_readdir<B: Holds<uv_fs_t>>(a: *mut uv_loop_t, b: *mut B, c: *mut uv_dir_t, d: Option<unsafe extern "C" fn(*mut B)>) -> c_int {
    unsafe { raw::uv_fs_readdir(a, held(b), c, transmute(d)) }
}

pub unsafe fn uv_fs_readlink<B: Holds<uv_fs_t>>(a: *mut uv_loop_t, b: *mut B, c: *const c_char, d: Option<unsafe extern "C" fn(*mut B)>) -> c_int {
    unsafe { raw::uv_fs_readlink(a, held(b), c, transmute(d)) }
}

pub unsafe fn uv_fs_realpath<B: Holds<uv_fs_t>>(a: *mut uv_loop_t, b: *mut B, c: *const c_char, d: Option<unsafe extern "C" fn(*mut B)>) -> c_int {
    unsafe { raw::uv_fs_realpath(a, held(b), c, transmute(d)) }
}

pub unsafe fn uv_fs_rename<B: Holds<uv_fs_t>>(a: *mut uv_loop_t, b: *mut B, c: *const c_char, d: *const c_char, e: Option<unsafe extern "C" fn(*mut B)>) -> c_int {
    unsafe { raw::uv_fs_rename(a, held(b), c, d, transmute(e)) }
}

pub unsafe fn uv_fs_req_cleanup<A: Holds<uv_fs_t>>(a: *mut A) {
    unsafe { raw::uv_fs_req_cleanup(held(a)) }
}

pub unsafe fn uv_fs_rmdir<B: Holds<uv_fs_t>>(a: *mut uv_loop_t, b: *mut B, c: *const c_char, d: Option<unsafe extern "C" fn(*mut B)>) -> c_int {
    unsafe { raw::uv_fs_rmdir(a, held(b), c, transmute(d)) }
}

pub unsafe fn uv_fs_scandir<B: Holds<uv_fs_t>>(a: *mut uv_loop_t, b: *mut B, c: *const c_char, d: c_int, e: Option<unsafe extern "C" fn(*mut B)>) -> c_int {
    unsafe { raw::uv_fs_scandir(a, held(b), c, d, transmute(e)) }
}

pub unsafe fn uv_fs_scandir_next<A: Holds<uv_fs_t>>(a: *mut A, b: *mut uv_dirent_t) -> c_int {
    unsafe { raw::uv_fs_scandir_next(held(a), b) }
}

pub unsafe fn uv_fs_sendfile<B: Holds<uv_fs_t>>(a: *mut uv_loop_t, b: *mut B, c: c_int, d: c_int, e: i64, f: usize, g: Option<unsafe extern "C" fn(*mut B)>) -> c_int {
    unsafe { raw::uv_fs_sendfile(a, held(b), c, d, e, f, transmute(g)) }
}

pub unsafe fn uv_fs_stat<B: Holds<uv_fs_t>>(a: *mut uv_loop_t, b: *mut B, c: *const c_char, d: Option<unsafe extern "C" fn(*mut B)>) -> c_int {
    unsafe { raw::uv_fs_stat(a, held(b), c, transmute(d)) }
}

pub unsafe fn uv_fs_statfs<B: Holds<uv_fs_t>>(a: *mut uv_loop_t, b: *mut B, c: *const c_char, d: Option<unsafe extern "C" fn(*mut B)>) -> c_int {
    unsafe { raw::uv_fs_statfs(a, held(b), c, transmute(d)) }
}

pub unsafe fn uv_fs_symlink<B: Holds<uv_fs_t>>(a: *mut uv_loop_t, b: *mut B, c: *const c_char, d: *const c_char, e: c_int, f: Option<unsafe extern "C" fn(*mut B)>) -> c_int {
    unsafe { raw::uv_fs_symlink(a, held(b), c, d, e, transmute(f)) }
}

pub unsafe fn uv_fs_unlink<B: Holds<uv_fs_t>>(a: *mut uv_loop_t, b: *mut B, c: *const c_char, d: Option<unsafe extern "C" fn(*mut B)>) -> c_int {
    unsafe { raw::uv_fs_unlink(a, held(b), c, transmute(d)) }
}

pub unsafe fn uv_fs_utime<B: Holds<uv_fs_t>>(a: *mut uv_loop_t, b: *mut B, c: *const c_char, d: f64, e: f64, f: Option<unsafe extern "C" fn(*mut B)>) -> c_int {
    unsafe { raw::uv_fs_utime(a, held(b), c, d, e, transmute(f)) }
}

pub unsafe fn uv_fs_write<B: Holds<uv_fs_t>>(a: *mut uv_loop_t, b: *mut B, c: c_int, d: *const uv_buf_t, e: c_uint, f: i64, g: Option<unsafe extern "C" fn(*mut B)>) -> c_int {
    unsafe { raw::uv_fs_write(a, held(b), c, d, e, f, transmute(g)) }
}

pub unsafe fn uv_getaddrinfo<B: Holds<uv_getaddrinfo_t>>(a: *mut uv_loop_t, b: *mut B, c: Option<unsafe extern "C" fn(*mut B, c_int, *mut libc::addrinfo)>, d: *const c_char, e: *const c_char, f: *const libc::addrinfo) -> c_int {
    unsafe { raw::uv_getaddrinfo(a, held(b), transmute(c), d, e, f) }
}

pub unsafe fn uv_getnameinfo<B: Holds<uv_getnameinfo_t>, D: Holds<libc::sockaddr>>(a: *mut uv_loop_t, b: *mut B, c: Option<unsafe extern "C" fn(*mut B, c_int, *const c_char, *const c_char)>, d: *const D, e: c_int) -> c_int {
    unsafe { raw::uv_getnameinfo(a, held(b), transmute(c), held_const(d), e) }
}

pub unsafe fn uv_handle_get_data<A: Holds<uv_handle_t>>(a: *const A) -> *mut c_void {
    unsafe { raw::uv_handle_get_data(held_const(a)) }
}

pub unsafe fn uv_handle_get_loop<A: Holds<uv_handle_t>>(a: *const A) -> *mut uv_loop_t {
    unsafe { raw::uv_handle_get_loop(held_const(a)) }
}

pub unsafe fn uv_handle_get_type<A: Holds<uv_handle_t>>(a: *const A) -> uv_handle_type {
    unsafe { raw::uv_handle_get_type(held_const(a)) }
}

pub unsafe fn uv_handle_set_data<A: Holds<uv_handle_t>>(a: *mut A, b: *mut c_void) {
    unsafe { raw::uv_handle_set_data(held(a), b) }
}

pub unsafe fn uv_has_ref<A: Holds<uv_handle_t>>(a: *const A) -> c_int {
    unsafe { raw::uv_has_ref(held_const(a)) }
}

pub unsafe fn uv_idle_init<B: Holds<uv_idle_t>>(a: *mut uv_loop_t, b: *mut B) -> c_int {
    unsafe { raw::uv_idle_init(a, held(b)) }
}

pub unsafe fn uv_idle_start<A: Holds<uv_idle_t>>(a: *mut A, b: Option<unsafe extern "C" fn(*mut A)>) -> c_int {
    unsafe { raw::uv_idle_start(held(a), transmute(b)) }
}

pub unsafe fn uv_idle_stop<A: Holds<uv_idle_t>>(a: *mut A) -> c_int {
    unsafe { raw::uv_idle_stop(held(a)) }
}

pub unsafe fn uv_ip_name<A: Holds<libc::sockaddr>>(a: *const A, b: *mut c_char, c: usize) -> c_int {
    unsafe { raw::uv_ip_name(held_const(a), b, c) }
}

pub unsafe fn uv_is_active<A: Holds<uv_handle_t>>(a: *const A) -> c_int {
    unsafe { raw::uv_is_active(held_const(a)) }
}

pub unsafe fn uv_is_closing<A: Holds<uv_handle_t>>(a: *const A) -> c_int {
    unsafe { raw::uv_is_closing(held_const(a)) }
}

pub unsafe fn uv_is_readable<A: Holds<uv_stream_t>>(a: *const A) -> c_int {
    unsafe { raw::uv_is_readable(held_const(a)) }
}

pub unsafe fn uv_is_writable<A: Holds<uv_stream_t>>(a: *const A) -> c_int {
    unsafe { raw::uv_is_writable(held_const(a)) }
}

pub unsafe fn uv_listen<A: Holds<uv_stream_t>>(a: *mut A, b: c_int, c: Option<unsafe extern "C" fn(*mut A, c_int)>) -> c_int {
    unsafe { raw::uv_listen(held(a), b, transmute(c)) }
}

pub unsafe fn uv_pipe_bind<A: Holds<uv_pipe_t>>(a: *mut A, b: *const c_char) -> c_int {
    unsafe { raw::uv_pipe_bind(held(a), b) }
}

pub unsafe fn uv_pipe_bind2<A: Holds<uv_pipe_t>>(a: *mut A, b: *const c_char, c: usize, d: c_uint) -> c_int {
    unsafe { raw::uv_pipe_bind2(held(a), b, c, d) }
}

pub unsafe fn uv_pipe_chmod<A: Holds<uv_pipe_t>>(a: *mut A, b: c_int) -> c_int {
    unsafe { raw::uv_pipe_chmod(held(a), b) }
}

pub unsafe fn uv_pipe_connect<A: Holds<uv_connect_t>, B: Holds<uv_pipe_t>>(a: *mut A, b: *mut B, c: *const c_char, d: Option<unsafe extern "C" fn(*mut A, c_int)>) {
    unsafe { raw::uv_pipe_connect(held(a), held(b), c, transmute(d)) }
}

pub unsafe fn uv_pipe_connect2<A: Holds<uv_connect_t>, B: Holds<uv_pipe_t>>(a: *mut A, b: *mut B, c: *const c_char, d: usize, e: c_uint, f: Option<unsafe extern "C" fn(*mut A, c_int)>) -> c_int {
    unsafe { raw::uv_pipe_connect2(held(a), held(b), c, d, e, transmute(f)) }
}

pub unsafe fn uv_pipe_getpeername<A: Holds<uv_pipe_t>>(a: *const A, b: *mut c_char, c: *mut usize) -> c_int {
    unsafe { raw::uv_pipe_getpeername(held_const(a), b, c) }
}

pub unsafe fn uv_pipe_getsockname<A: Holds<uv_pipe_t>>(a: *const A, b: *mut c_char, c: *mut usize) -> c_int {
    unsafe { raw::uv_pipe_getsockname(held_const(a), b, c) }
}

pub unsafe fn uv_pipe_init<B: Holds<uv_pipe_t>>(a: *mut uv_loop_t, b: *mut B, c: c_int) -> c_int {
    unsafe { raw::uv_pipe_init(a, held(b), c) }
}

pub unsafe fn uv_pipe_open<A: Holds<uv_pipe_t>>(a: *mut A, b: c_int) -> c_int {
    unsafe { raw::uv_pipe_open(held(a), b) }
}

pub unsafe fn uv_pipe_pending_count<A: Holds<uv_pipe_t>>(a: *mut A) -> c_int {
    unsafe { raw::uv_pipe_pending_count(held(a)) }
}

pub unsafe fn uv_pipe_pending_instances<A: Holds<uv_pipe_t>>(a: *mut A, b: c_int) {
    unsafe { raw::uv_pipe_pending_instances(held(a), b) }
}

pub unsafe fn uv_pipe_pending_type<A: Holds<uv_pipe_t>>(a: *mut A) -> uv_handle_type {
    unsafe { raw::uv_pipe_pending_type(held(a)) }
}

pub unsafe fn uv_poll_init<B: Holds<uv_poll_t>>(a: *mut uv_loop_t, b: *mut B, c: c_int) -> c_int {
    unsafe { raw::uv_poll_init(a, held(b), c) }
}

pub unsafe fn uv_poll_init_socket<B: Holds<uv_poll_t>>(a: *mut uv_loop_t, b: *mut B, c: c_int) -> c_int {
    unsafe { raw::uv_poll_init_socket(a, held(b), c) }
}

pub unsafe fn uv_poll_start<A: Holds<uv_poll_t>>(a: *mut A, b: c_int, c: Option<unsafe extern "C" fn(*mut A, c_int, c_int)>) -> c_int {
    unsafe { raw::uv_poll_start(held(a), b, transmute(c)) }
}

pub unsafe fn uv_poll_stop<A: Holds<uv_poll_t>>(a: *mut A) -> c_int {
    unsafe { raw::uv_poll_stop(held(a)) }
}

pub unsafe fn uv_prepare_init<B: Holds<uv_prepare_t>>(a: *mut uv_loop_t, b: *mut B) -> c_int {
    unsafe { raw::uv_prepare_init(a, held(b)) }
}

pub unsafe fn uv_prepare_start<A: Holds<uv_prepare_t>>(a: *mut A, b: Option<unsafe extern "C" fn(*mut A)>) -> c_int {
    unsafe { raw::uv_prepare_start(held(a), transmute(b)) }
}

pub unsafe fn uv_prepare_stop<A: Holds<uv_prepare_t>>(a: *mut A) -> c_int {
    unsafe { raw::uv_prepare_stop(held(a)) }
}

pub unsafe fn uv_process_get_pid<A: Holds<uv_process_t>>(a: *const A) -> c_int {
    unsafe { raw::uv_process_get_pid(held_const(a)) }
}

pub unsafe fn uv_process_kill<A: Holds<uv_process_t>>(a: *mut A, b: c_int) -> c_int {
    unsafe { raw::uv_process_kill(held(a), b) }
}

pub unsafe fn uv_queue_work<B: Holds<uv_work_t>>(a: *mut uv_loop_t, b: *mut B, c: Option<unsafe extern "C" fn(*mut B)>, d: Option<unsafe extern "C" fn(*mut B, c_int)>) -> c_int {
    unsafe { raw::uv_queue_work(a, held(b), transmute(c), transmute(d)) }
}

pub unsafe fn uv_random<B: Holds<uv_random_t>>(a: *mut uv_loop_t, b: *mut B, c: *mut c_void, d: usize, e: c_uint, f: Option<unsafe extern "C" fn(*mut B, c_int, *mut c_void, usize)>) -> c_int {
    unsafe { raw::uv_random(a, held(b), c, d, e, transmute(f)) }
}

pub unsafe fn uv_read_start<A: Holds<uv_stream_t>>(a: *mut A, b: Option<unsafe extern "C" fn(*mut A, usize, *mut uv_buf_t)>, c: Option<unsafe extern "C" fn(*mut A, isize, *const uv_buf_t)>) -> c_int {
    unsafe { raw::uv_read_start(held(a), transmute(b), transmute(c)) }
}

pub unsafe fn uv_read_stop<A: Holds<uv_stream_t>>(a: *mut A) -> c_int {
    unsafe { raw::uv_read_stop(held(a)) }
}

pub unsafe fn uv_recv_buffer_size<A: Holds<uv_handle_t>>(a: *mut A, b: *mut c_int) -> c_int {
    unsafe { raw::uv_recv_buffer_size(held(a), b) }
}

pub unsafe fn uv_ref<A: Holds<uv_handle_t>>(a: *mut A) {
    unsafe { raw::uv_ref(held(a)) }
}

pub unsafe fn uv_req_get_data<A: Holds<uv_req_t>>(a: *const A) -> *mut c_void {
    unsafe { raw::uv_req_get_data(held_const(a)) }
}

pub unsafe fn uv_req_get_type<A: Holds<uv_req_t>>(a: *const A) -> uv_req_type {
    unsafe { raw::uv_req_get_type(held_const(a)) }
}

pub unsafe fn uv_req_set_data<A: Holds<uv_req_t>>(a: *mut A, b: *mut c_void) {
    unsafe { raw::uv_req_set_data(held(a), b) }
}

pub unsafe fn uv_send_buffer_size<A: Holds<uv_handle_t>>(a: *mut A, b: *mut c_int) -> c_int {
    unsafe { raw::uv_send_buffer_size(held(a), b) }
}

pub unsafe fn uv_shutdown<A: Holds<uv_shutdown_t>, B: Holds<uv_stream_t>>(a: *mut A, b: *mut B, c: Option<unsafe extern "C" fn(*mut A, c_int)>) -> c_int {
    unsafe { raw::uv_shutdown(held(a), held(b), transmute(c)) }
}

pub unsafe fn uv_signal_init<B: Holds<uv_signal_t>>(a: *mut uv_loop_t, b: *mut B) -> c_int {
    unsafe { raw::uv_signal_init(a, held(b)) }
}

pub unsafe fn uv_signal_start<A: Holds<uv_signal_t>>(a: *mut A, b: Option<unsafe extern "C" fn(*mut A, c_int)>, c: c_int) -> c_int {
    unsafe { raw::uv_signal_start(held(a), transmute(b), c) }
}

pub unsafe fn uv_signal_start_oneshot<A: Holds<uv_signal_t>>(a: *mut A, b: Option<unsafe extern "C" fn(*mut A, c_int)>, c: c_int) -> c_int {
    unsafe { raw::uv_signal_start_oneshot(held(a), transmute(b), c) }
}

pub unsafe fn uv_signal_stop<A: Holds<uv_signal_t>>(a: *mut A) -> c_int {
    unsafe { raw::uv_signal_stop(held(a)) }
}

pub unsafe fn uv_spawn<B: Holds<uv_process_t>>(a: *mut uv_loop_t, b: *mut B, c: *const uv_process_options_t) -> c_int {
    unsafe { raw::uv_spawn(a, held(b), c) }
}

pub unsafe fn uv_stream_get_write_queue_size<A: Holds<uv_stream_t>>(a: *const A) -> usize {
    unsafe { raw::uv_stream_get_write_queue_size(held_const(a)) }
}

pub unsafe fn uv_stream_set_blocking<A: Holds<uv_stream_t>>(a: *mut A, b: c_int) -> c_int {
    unsafe { raw::uv_stream_set_blocking(held(a), b) }
}

pub unsafe fn uv_tcp_bind<A: Holds<uv_tcp_t>, B: Holds<libc::sockaddr>>(a: *mut A, b: *const B, c: c_uint) -> c_int {
    unsafe { raw::uv_tcp_bind(held(a), held_const(b), c) }
}

pub unsafe fn uv_tcp_close_reset<A: Holds<uv_tcp_t>>(a: *mut A, b: Option<unsafe extern "C" fn(*mut A)>) -> c_int {
    unsafe { raw::uv_tcp_close_reset(held(a), transmute(b)) }
}

pub unsafe fn uv_tcp_connect<A: Holds<uv_connect_t>, B: Holds<uv_tcp_t>, C: Holds<libc::sockaddr>>(a: *mut A, b: *mut B, c: *const C, d: Option<unsafe extern "C" fn(*mut A, c_int)>) -> c_int {
    unsafe { raw::uv_tcp_connect(held(a), held(b), held_const(c), transmute(d)) }
}

pub unsafe fn uv_tcp_getpeername<A: Holds<uv_tcp_t>, B: Holds<libc::sockaddr>>(a: *const A, b: *mut B, c: *mut c_int) -> c_int {
    unsafe { raw::uv_tcp_getpeername(held_const(a), held(b), c) }
}

pub unsafe fn uv_tcp_getsockname<A: Holds<uv_tcp_t>, B: Holds<libc::sockaddr>>(a: *const A, b: *mut B, c: *mut c_int) -> c_int {
    unsafe { raw::uv_tcp_getsockname(held_const(a), held(b), c) }
}

pub unsafe fn uv_tcp_init<B: Holds<uv_tcp_t>>(a: *mut uv_loop_t, b: *mut B) -> c_int {
    unsafe { raw::uv_tcp_init(a, held(b)) }
}

pub unsafe fn uv_tcp_init_ex<B: Holds<uv_tcp_t>>(a: *mut uv_loop_t, b: *mut B, c: c_uint) -> c_int {
    unsafe { raw::uv_tcp_init_ex(a, held(b), c) }
}

pub unsafe fn uv_tcp_keepalive<A: Holds<uv_tcp_t>>(a: *mut A, b: c_int, c: c_uint) -> c_int {
    unsafe { raw::uv_tcp_keepalive(held(a), b, c) }
}

pub unsafe fn uv_tcp_keepalive_ex<A: Holds<uv_tcp_t>>(a: *mut A, b: c_int, c: c_uint, d: c_uint, e: c_uint) -> c_int {
    unsafe { raw::uv_tcp_keepalive_ex(held(a), b, c, d, e) }
}

pub unsafe fn uv_tcp_nodelay<A: Holds<uv_tcp_t>>(a: *mut A, b: c_int) -> c_int {
    unsafe { raw::uv_tcp_nodelay(held(a), b) }
}

pub unsafe fn uv_tcp_open<A: Holds<uv_tcp_t>>(a: *mut A, b: c_int) -> c_int {
    unsafe { raw::uv_tcp_open(held(a), b) }
}

pub unsafe fn uv_tcp_simultaneous_accepts<A: Holds<uv_tcp_t>>(a: *mut A, b: c_int) -> c_int {
    unsafe { raw::uv_tcp_simultaneous_accepts(held(a), b) }
}

pub unsafe fn uv_timer_again<A: Holds<uv_timer_t>>(a: *mut A) -> c_int {
    unsafe { raw::uv_timer_again(held(a)) }
}

pub unsafe fn uv_timer_get_due_in<A: Holds<uv_timer_t>>(a: *const A) -> u64 {
    unsafe { raw::uv_timer_get_due_in(held_const(a)) }
}

pub unsafe fn uv_timer_get_repeat<A: Holds<uv_timer_t>>(a: *const A) -> u64 {
    unsafe { raw::uv_timer_get_repeat(held_const(a)) }
}

pub unsafe fn uv_timer_init<B: Holds<uv_timer_t>>(a: *mut uv_loop_t, b: *mut B) -> c_int {
    unsafe { raw::uv_timer_init(a, held(b)) }
}

pub unsafe fn uv_timer_set_repeat<A: Holds<uv_timer_t>>(a: *mut A, b: u64) {
    unsafe { raw::uv_timer_set_repeat(held(a), b) }
}

pub unsafe fn uv_timer_start<A: Holds<uv_timer_t>>(a: *mut A, b: Option<unsafe extern "C" fn(*mut A)>, c: u64, d: u64) -> c_int {
    unsafe { raw::uv_timer_start(held(a), transmute(b), c, d) }
}

pub unsafe fn uv_timer_stop<A: Holds<uv_timer_t>>(a: *mut A) -> c_int {
    unsafe { raw::uv_timer_stop(held(a)) }
}

pub unsafe fn uv_try_write<A: Holds<uv_stream_t>>(a: *mut A, b: *const uv_buf_t, c: c_uint) -> c_int {
    unsafe { raw::uv_try_write(held(a), b, c) }
}

pub unsafe fn uv_try_write2<A: Holds<uv_stream_t>, D: Holds<uv_stream_t>>(a: *mut A, b: *const uv_buf_t, c: c_uint, d: *mut D) -> c_int {
    unsafe { raw::uv_try_write2(held(a), b, c, held(d)) }
}

pub unsafe fn uv_tty_get_winsize<A: Holds<uv_tty_t>>(a: *mut A, b: *mut c_int, c: *mut c_int) -> c_int {
    unsafe { raw::uv_tty_get_winsize(held(a), b, c) }
}

pub unsafe fn uv_tty_init<B: Holds<uv_tty_t>>(a: *mut uv_loop_t, b: *mut B, c: c_int, d: c_int) -> c_int {
    unsafe { raw::uv_tty_init(a, held(b), c, d) }
}

pub unsafe fn uv_tty_set_mode<A: Holds<uv_tty_t>>(a: *mut A, b: uv_tty_mode_t) -> c_int {
    unsafe { raw::uv_tty_set_mode(held(a), b) }
}

pub unsafe fn uv_udp_bind<A: Holds<uv_udp_t>, B: Holds<libc::sockaddr>>(a: *mut A, b: *const B, c: c_uint) -> c_int {
    unsafe { raw::uv_udp_bind(held(a), held_const(b), c) }
}

pub unsafe fn uv_udp_connect<A: Holds<uv_udp_t>, B: Holds<libc::sockaddr>>(a: *mut A, b: *const B) -> c_int {
    unsafe { raw::uv_udp_connect(held(a), held_const(b)) }
}

pub unsafe fn uv_udp_get_send_queue_count<A: Holds<uv_udp_t>>(a: *const A) -> usize {
    unsafe { raw::uv_udp_get_send_queue_count(held_const(a)) }
}

pub unsafe fn uv_udp_get_send_queue_size<A: Holds<uv_udp_t>>(a: *const A) -> usize {
    unsafe { raw::uv_udp_get_send_queue_size(held_const(a)) }
}

pub unsafe fn uv_udp_getpeername<A: Holds<uv_udp_t>, B: Holds<libc::sockaddr>>(a: *const A, b: *mut B, c: *mut c_int) -> c_int {
    unsafe { raw::uv_udp_getpeername(held_const(a), held(b), c) }
}

pub unsafe fn uv_udp_getsockname<A: Holds<uv_udp_t>, B: Holds<libc::sockaddr>>(a: *const A, b: *mut B, c: *mut c_int) -> c_int {
    unsafe { raw::uv_udp_getsockname(held_const(a), held(b), c) }
}

pub unsafe fn uv_udp_init<B: Holds<uv_udp_t>>(a: *mut uv_loop_t, b: *mut B) -> c_int {
    unsafe { raw::uv_udp_init(a, held(b)) }
}

pub unsafe fn uv_udp_init_ex<B: Holds<uv_udp_t>>(a: *mut uv_loop_t, b: *mut B, c: c_uint) -> c_int {
    unsafe { raw::uv_udp_init_ex(a, held(b), c) }
}

pub unsafe fn uv_udp_open<A: Holds<uv_udp_t>>(a: *mut A, b: c_int) -> c_int {
    unsafe { raw::uv_udp_open(held(a), b) }
}

pub unsafe fn uv_udp_open_ex<A: Holds<uv_udp_t>>(a: *mut A, b: c_int, c: c_uint) -> c_int {
    unsafe { raw::uv_udp_open_ex(held(a), b, c) }
}

pub unsafe fn uv_udp_recv_start<A: Holds<uv_udp_t>>(a: *mut A, b: Option<unsafe extern "C" fn(*mut A, usize, *mut uv_buf_t)>, c: Option<unsafe extern "C" fn(*mut A, isize, *const uv_buf_t, *const libc::sockaddr, c_uint)>) -> c_int {
    unsafe { raw::uv_udp_recv_start(held(a), transmute(b), transmute(c)) }
}

pub unsafe fn uv_udp_recv_stop<A: Holds<uv_udp_t>>(a: *mut A) -> c_int {
    unsafe { raw::uv_udp_recv_stop(held(a)) }
}

pub unsafe fn uv_udp_send<A: Holds<uv_udp_send_t>, B: Holds<uv_udp_t>, E: Holds<libc::sockaddr>>(a: *mut A, b: *mut B, c: *const uv_buf_t, d: c_uint, e: *const E, f: Option<unsafe extern "C" fn(*mut A, c_int)>) -> c_int {
    unsafe { raw::uv_udp_send(held(a), held(b), c, d, held_const(e), transmute(f)) }
}

pub unsafe fn uv_udp_set_broadcast<A: Holds<uv_udp_t>>(a: *mut A, b: c_int) -> c_int {
    unsafe { raw::uv_udp_set_broadcast(held(a), b) }
}

pub unsafe fn uv_udp_set_membership<A: Holds<uv_udp_t>>(a: *mut A, b: *const c_char, c: *const c_char, d: uv_membership) -> c_int {
    unsafe { raw::uv_udp_set_membership(held(a), b, c, d) }
}

pub unsafe fn uv_udp_set_multicast_interface<A: Holds<uv_udp_t>>(a: *mut A, b: *const c_char) -> c_int {
    unsafe { raw::uv_udp_set_multicast_interface(held(a), b) }
}

pub unsafe fn uv_udp_set_multicast_loop<A: Holds<uv_udp_t>>(a: *mut A, b: c_int) -> c_int {
    unsafe { raw::uv_udp_set_multicast_loop(held(a), b) }
}

pub unsafe fn uv_udp_set_multicast_ttl<A: Holds<uv_udp_t>>(a: *mut A, b: c_int) -> c_int {
    unsafe { raw::uv_udp_set_multicast_ttl(held(a), b) }
}

pub unsafe fn uv_udp_set_source_membership<A: Holds<uv_udp_t>>(a: *mut A, b: *const c_char, c: *const c_char, d: *const c_char, e: uv_membership) -> c_int {
    unsafe { raw::uv_udp_set_source_membership(held(a), b, c, d, e) }
}

pub unsafe fn uv_udp_set_ttl<A: Holds<uv_udp_t>>(a: *mut A, b: c_int) -> c_int {
    unsafe { raw::uv_udp_set_ttl(held(a), b) }
}

pub unsafe fn uv_udp_try_send<A: Holds<uv_udp_t>, D: Holds<libc::sockaddr>>(a: *mut A, b: *const uv_buf_t, c: c_uint, d: *const D) -> c_int {
    unsafe { raw::uv_udp_try_send(held(a), b, c, held_const(d)) }
}

pub unsafe fn uv_udp_try_send2<A: Holds<uv_udp_t>>(a: *mut A, b: c_uint, c: *mut *mut uv_buf_t, d: *mut c_uint, e: *mut *mut libc::sockaddr, f: c_uint) -> c_int {
    unsafe { raw::uv_udp_try_send2(held(a), b, c, d, e, f) }
}

pub unsafe fn uv_udp_using_recvmmsg<A: Holds<uv_udp_t>>(a: *const A) -> c_int {
    unsafe { raw::uv_udp_using_recvmmsg(held_const(a)) }
}

pub unsafe fn uv_unref<A: Holds<uv_handle_t>>(a: *mut A) {
    unsafe { raw::uv_unref(held(a)) }
}

pub unsafe fn uv_write<A: Holds<uv_write_t>, B: Holds<uv_stream_t>>(a: *mut A, b: *mut B, c: *const uv_buf_t, d: c_uint, e: Option<unsafe extern "C" fn(*mut A, c_int)>) -> c_int {
    unsafe { raw::uv_write(held(a), held(b), c, d, transmute(e)) }
}

pub unsafe fn uv_write2<A: Holds<uv_write_t>, B: Holds<uv_stream_t>, E: Holds<uv_stream_t>>(a: *mut A, b: *mut B, c: *const uv_buf_t, d: c_uint, e: *mut E, f: Option<unsafe extern "C" fn(*mut A, c_int)>) -> c_int {
    unsafe { raw::uv_write2(held(a), held(b), c, d, held(e), transmute(f)) }
}

pub unsafe fn uv_write_nwritten<A: Holds<uv_write_t>>(a: *const A) -> usize {
    unsafe { raw::uv_write_nwritten(held_const(a)) }
}

