//! The C functions that targets call, as a table: one of ours, one of the original's.
//!
//! Handles, loops and requests are memory to both libraries; [`Memory`] has enough of it for any.

use std::ffi::{CStr, c_char, c_double, c_int, c_uint, c_void};

/// Called with a handle or a request.
pub type Callback = Option<unsafe extern "C" fn(*mut c_void)>;

/// Called with a process, its exit status and the signal that ended it.
pub type ExitCb = Option<unsafe extern "C" fn(*mut c_void, i64, c_int)>;

/// A piece of memory.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Buf {
    /// Where it begins.
    pub base: *mut c_char,
    /// How many bytes it has.
    pub len: usize,
}

/// Finds room to read into.
pub type AllocCb = unsafe extern "C" fn(*mut c_void, usize, *mut Buf);
/// Called with what was read.
pub type ReadCb = unsafe extern "C" fn(*mut c_void, isize, *const Buf);

/// `uv_dirent_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Dirent {
    /// The entry's name.
    pub name: *const c_char,
    /// What it is.
    pub kind: c_int,
}

/// `uv_cpu_info_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CpuInfo {
    /// What the processor's maker calls it.
    pub model: *const c_char,
    /// MHz.
    pub speed: c_int,
    /// Milliseconds as user, nice, system, idle and for interrupts.
    pub times: [u64; 5],
}

/// `uv_stdio_container_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Stdio {
    /// What becomes of the child's descriptor.
    pub flags: c_int,
    /// A descriptor or the address of a stream.
    pub data: usize,
}

/// `uv_process_options_t`.
#[repr(C)]
#[derive(Debug)]
#[allow(missing_docs, reason = "the names are libuv's")]
pub struct SpawnOptions {
    pub exit_cb: ExitCb,
    pub file: *const c_char,
    pub args: *const *const c_char,
    pub env: *const *const c_char,
    pub cwd: *const c_char,
    pub flags: c_uint,
    pub stdio_count: c_int,
    pub stdio: *mut Stdio,
    pub uid: libc::uid_t,
    pub gid: libc::gid_t,
}

/// Room for any loop, handle or request.
#[repr(C, align(16))]
#[derive(Debug)]
pub struct Memory {
    /// The one field that is the program's.
    pub data: *mut c_void,
    rest: [u64; 199],
}

impl Memory {
    /// Fresh memory, full of garbage as a program may have it.
    pub fn new() -> Box<Memory> {
        Box::new(Memory {
            data: std::ptr::null_mut(),
            rest: [0xdbdb_dbdb_dbdb_dbdb; 199],
        })
    }

    /// As C gets it.
    pub fn ptr(&mut self) -> *mut c_void {
        std::ptr::from_mut(self).cast()
    }
}

macro_rules! api {
    ($(fn $name:ident($($argument:ty),*) $(-> $result:ty)?;)*) => {
        mod ours {
            #![allow(clippy::wildcard_imports, reason = "the types of the functions")]
            use super::*;
            unsafe extern "C" {
                $(pub(super) fn $name($(_: $argument),*) $(-> $result)?;)*
            }
        }

        /// The functions of one library.
        #[allow(missing_docs, reason = "the names are libuv's")]
        #[derive(Debug)]
        pub struct Api {
            $(pub $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        /// The functions of our library.
        pub static OURS: Api = Api { $($name: ours::$name),* };

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
                        std::mem::transmute::<
                            *mut c_void,
                            unsafe extern "C" fn($($argument),*) $(-> $result)?,
                        >(symbol(name))
                    },)*
                }
            }
        }
    };
}

api! {
    fn uv_version() -> c_uint;
    fn uv_loop_init(*mut c_void) -> c_int;
    fn uv_loop_close(*mut c_void) -> c_int;
    fn uv_run(*mut c_void, c_int) -> c_int;
    fn uv_close(*mut c_void, Callback);
    fn uv_is_closing(*const c_void) -> c_int;
    fn uv_utf16_length_as_wtf8(*const u16, isize) -> usize;
    fn uv_utf16_to_wtf8(*const u16, isize, *mut *mut c_char, *mut usize) -> c_int;
    fn uv_wtf8_length_as_utf16(*const c_char) -> isize;
    fn uv_wtf8_to_utf16(*const c_char, *mut u16, usize);
    fn uv_ip4_addr(*const c_char, c_int, *mut c_void) -> c_int;
    fn uv_ip6_addr(*const c_char, c_int, *mut c_void) -> c_int;
    fn uv_inet_pton(c_int, *const c_char, *mut c_void) -> c_int;
    fn uv_inet_ntop(c_int, *const c_void, *mut c_char, usize) -> c_int;
    fn uv_ip4_name(*const c_void, *mut c_char, usize) -> c_int;
    fn uv_ip6_name(*const c_void, *mut c_char, usize) -> c_int;
    fn uv_ip_name(*const c_void, *mut c_char, usize) -> c_int;
    fn uv_if_indextoname(c_uint, *mut c_char, *mut usize) -> c_int;
    fn uv_if_indextoiid(c_uint, *mut c_char, *mut usize) -> c_int;
    fn uv_getaddrinfo(*mut c_void, *mut c_void, Callback, *const c_char, *const c_char, *const libc::addrinfo) -> c_int;
    fn uv_cpu_info(*mut *mut CpuInfo, *mut c_int) -> c_int;
    fn uv_free_cpu_info(*mut CpuInfo, c_int);
    fn uv_get_total_memory() -> u64;
    fn uv_get_free_memory() -> u64;
    fn uv_get_constrained_memory() -> u64;
    fn uv_get_available_memory() -> u64;
    fn uv_available_parallelism() -> c_uint;
    fn uv_resident_set_memory(*mut usize) -> c_int;
    fn uv_uptime(*mut c_double) -> c_int;
    fn uv_loadavg(*mut [c_double; 3]);
    fn uv_pipe_init(*mut c_void, *mut c_void, c_int) -> c_int;
    fn uv_pipe_open(*mut c_void, c_int) -> c_int;
    fn uv_pipe_pending_count(*mut c_void) -> c_int;
    fn uv_pipe_pending_type(*mut c_void) -> c_int;
    fn uv_tcp_init(*mut c_void, *mut c_void) -> c_int;
    fn uv_udp_init(*mut c_void, *mut c_void) -> c_int;
    fn uv_accept(*mut c_void, *mut c_void) -> c_int;
    fn uv_read_start(*mut c_void, AllocCb, ReadCb) -> c_int;
    fn uv_read_stop(*mut c_void) -> c_int;
    fn uv_spawn(*mut c_void, *mut c_void, *const SpawnOptions) -> c_int;
    fn uv_process_get_pid(*const c_void) -> c_int;
    fn uv_process_kill(*mut c_void, c_int) -> c_int;
    fn uv_fs_open(*mut c_void, *mut c_void, *const c_char, c_int, c_int, Callback) -> c_int;
    fn uv_fs_close(*mut c_void, *mut c_void, c_int, Callback) -> c_int;
    fn uv_fs_mkdir(*mut c_void, *mut c_void, *const c_char, c_int, Callback) -> c_int;
    fn uv_fs_rmdir(*mut c_void, *mut c_void, *const c_char, Callback) -> c_int;
    fn uv_fs_unlink(*mut c_void, *mut c_void, *const c_char, Callback) -> c_int;
    fn uv_fs_rename(*mut c_void, *mut c_void, *const c_char, *const c_char, Callback) -> c_int;
    fn uv_fs_link(*mut c_void, *mut c_void, *const c_char, *const c_char, Callback) -> c_int;
    fn uv_fs_symlink(*mut c_void, *mut c_void, *const c_char, *const c_char, c_int, Callback) -> c_int;
    fn uv_fs_copyfile(*mut c_void, *mut c_void, *const c_char, *const c_char, c_int, Callback) -> c_int;
    fn uv_fs_readlink(*mut c_void, *mut c_void, *const c_char, Callback) -> c_int;
    fn uv_fs_realpath(*mut c_void, *mut c_void, *const c_char, Callback) -> c_int;
    fn uv_fs_stat(*mut c_void, *mut c_void, *const c_char, Callback) -> c_int;
    fn uv_fs_lstat(*mut c_void, *mut c_void, *const c_char, Callback) -> c_int;
    fn uv_fs_statfs(*mut c_void, *mut c_void, *const c_char, Callback) -> c_int;
    fn uv_fs_access(*mut c_void, *mut c_void, *const c_char, c_int, Callback) -> c_int;
    fn uv_fs_chmod(*mut c_void, *mut c_void, *const c_char, c_int, Callback) -> c_int;
    fn uv_fs_chown(*mut c_void, *mut c_void, *const c_char, libc::uid_t, libc::gid_t, Callback) -> c_int;
    fn uv_fs_lchown(*mut c_void, *mut c_void, *const c_char, libc::uid_t, libc::gid_t, Callback) -> c_int;
    fn uv_fs_utime(*mut c_void, *mut c_void, *const c_char, c_double, c_double, Callback) -> c_int;
    fn uv_fs_lutime(*mut c_void, *mut c_void, *const c_char, c_double, c_double, Callback) -> c_int;
    fn uv_fs_mkdtemp(*mut c_void, *mut c_void, *const c_char, Callback) -> c_int;
    fn uv_fs_mkstemp(*mut c_void, *mut c_void, *const c_char, Callback) -> c_int;
    fn uv_fs_scandir(*mut c_void, *mut c_void, *const c_char, c_int, Callback) -> c_int;
    fn uv_fs_scandir_next(*mut c_void, *mut Dirent) -> c_int;
    fn uv_fs_opendir(*mut c_void, *mut c_void, *const c_char, Callback) -> c_int;
    fn uv_fs_closedir(*mut c_void, *mut c_void, *mut c_void, Callback) -> c_int;
    fn uv_fs_req_cleanup(*mut c_void);
    fn uv_fs_get_result(*const c_void) -> isize;
    fn uv_fs_get_ptr(*const c_void) -> *mut c_void;
    fn uv_fs_get_path(*const c_void) -> *const c_char;
    fn uv_fs_get_statbuf(*mut c_void) -> *mut [u64; 20];
}
