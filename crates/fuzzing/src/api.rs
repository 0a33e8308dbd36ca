//! The C functions that targets call, as a table: one of ours, one of the original's.
//!
//! Handles, loops and requests are memory to both libraries; [`Room`](uv_binding::Room) has enough
//! of it for any.

use std::ffi::{CStr, c_void};
use uv_binding::{pointers, raw};

macro_rules! api {
    ($($name:ident)*) => {
        /// The functions of one library.
        #[allow(missing_docs, reason = "the names are libuv's")]
        #[derive(Debug)]
        pub struct Api {
            $(pub $name: pointers::$name,)*
        }

        /// The functions of our library.
        pub static OURS: Api = Api { $($name: raw::$name),* };

        impl Api {
            /// A library's functions by their names.
            ///
            /// # Safety
            ///
            /// `symbol` gives the address of libuv's function of that name, or does not return.
            pub(crate) unsafe fn by_name(symbol: impl Fn(&CStr) -> *mut c_void) -> Api {
                Api {
                    // SAFETY: the caller vouches for the function, whose type is libuv's.
                    $($name: unsafe {
                        let name = concat!(stringify!($name), "\0");
                        let name = CStr::from_ptr(name.as_ptr().cast());
                        std::mem::transmute::<*mut c_void, pointers::$name>(symbol(name))
                    },)*
                }
            }
        }
    };
}

api! {
    uv_version
    uv_loop_init
    uv_loop_close
    uv_run
    uv_close
    uv_is_closing
    uv_utf16_length_as_wtf8
    uv_utf16_to_wtf8
    uv_wtf8_length_as_utf16
    uv_wtf8_to_utf16
    uv_ip4_addr
    uv_ip6_addr
    uv_inet_pton
    uv_inet_ntop
    uv_ip4_name
    uv_ip6_name
    uv_ip_name
    uv_if_indextoname
    uv_if_indextoiid
    uv_getaddrinfo
    uv_cpu_info
    uv_free_cpu_info
    uv_get_total_memory
    uv_get_free_memory
    uv_get_constrained_memory
    uv_get_available_memory
    uv_available_parallelism
    uv_resident_set_memory
    uv_uptime
    uv_loadavg
    uv_pipe_init
    uv_pipe_open
    uv_pipe_pending_count
    uv_pipe_pending_type
    uv_tcp_init
    uv_udp_init
    uv_accept
    uv_read_start
    uv_read_stop
    uv_spawn
    uv_process_get_pid
    uv_process_kill
    uv_fs_open
    uv_fs_close
    uv_fs_mkdir
    uv_fs_rmdir
    uv_fs_unlink
    uv_fs_rename
    uv_fs_link
    uv_fs_symlink
    uv_fs_copyfile
    uv_fs_readlink
    uv_fs_realpath
    uv_fs_stat
    uv_fs_lstat
    uv_fs_statfs
    uv_fs_access
    uv_fs_chmod
    uv_fs_chown
    uv_fs_lchown
    uv_fs_utime
    uv_fs_lutime
    uv_fs_mkdtemp
    uv_fs_mkstemp
    uv_fs_scandir
    uv_fs_scandir_next
    uv_fs_opendir
    uv_fs_closedir
    uv_fs_req_cleanup
    uv_fs_get_result
    uv_fs_get_ptr
    uv_fs_get_path
    uv_fs_get_statbuf
}
