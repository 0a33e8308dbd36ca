//! The C structs of file requests.
//!
//! Programs read `result`, `ptr`, `path` and `statbuf` of a request, and `dirents` and `nentries`
//! of a directory; libuv's tests also read `new_path` and `bufs`. All other fields are ours, and
//! hold the operation's arguments.

use crate::abi::{PoolRequest, uv_loop_t, uv_req_t};
use blacklight_sys::fs::io::Buffer;
use blacklight_sys::fs::stat::{FileSystem, Stat, Timestamp};
use std::ffi::{c_char, c_int, c_long, c_uint, c_void};

/// Called when a request is done.
pub type uv_fs_cb = Option<unsafe extern "C" fn(*mut uv_fs_t)>;

/// Seconds since 1970 and nanoseconds.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct uv_timespec_t {
    pub(crate) tv_sec: c_long,
    pub(crate) tv_nsec: c_long,
}

/// A file's metadata.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct uv_stat_t {
    pub(crate) st_dev: u64,
    pub(crate) st_mode: u64,
    pub(crate) st_nlink: u64,
    pub(crate) st_uid: u64,
    pub(crate) st_gid: u64,
    pub(crate) st_rdev: u64,
    pub(crate) st_ino: u64,
    pub(crate) st_size: u64,
    pub(crate) st_blksize: u64,
    pub(crate) st_blocks: u64,
    /// BSD only; zero here.
    pub(crate) st_flags: u64,
    /// BSD only; zero here.
    pub(crate) st_gen: u64,
    pub(crate) st_atim: uv_timespec_t,
    pub(crate) st_mtim: uv_timespec_t,
    pub(crate) st_ctim: uv_timespec_t,
    pub(crate) st_birthtim: uv_timespec_t,
}

impl uv_stat_t {
    /// The metadata of a file that does not exist.
    pub(crate) const ZERO: uv_stat_t = {
        let never = uv_timespec_t {
            tv_sec: 0,
            tv_nsec: 0,
        };
        uv_stat_t {
            st_dev: 0,
            st_mode: 0,
            st_nlink: 0,
            st_uid: 0,
            st_gid: 0,
            st_rdev: 0,
            st_ino: 0,
            st_size: 0,
            st_blksize: 0,
            st_blocks: 0,
            st_flags: 0,
            st_gen: 0,
            st_atim: never,
            st_mtim: never,
            st_ctim: never,
            st_birthtim: never,
        }
    };
}

impl From<Timestamp> for uv_timespec_t {
    fn from(time: Timestamp) -> uv_timespec_t {
        uv_timespec_t {
            tv_sec: time.seconds,
            tv_nsec: time.nanoseconds.into(),
        }
    }
}

impl From<Stat> for uv_stat_t {
    fn from(stat: Stat) -> uv_stat_t {
        uv_stat_t {
            st_dev: stat.dev,
            st_mode: stat.mode.into(),
            st_nlink: stat.nlink,
            st_uid: stat.uid.into(),
            st_gid: stat.gid.into(),
            st_rdev: stat.rdev,
            st_ino: stat.ino,
            st_size: stat.size,
            st_blksize: stat.blksize,
            st_blocks: stat.blocks,
            st_flags: 0,
            st_gen: 0,
            st_atim: stat.atime.into(),
            st_mtim: stat.mtime.into(),
            st_ctim: stat.ctime.into(),
            st_birthtim: stat.birthtime.into(),
        }
    }
}

/// A file system's metadata.
#[repr(C)]
pub struct uv_statfs_t {
    f_type: u64,
    f_bsize: u64,
    f_blocks: u64,
    f_bfree: u64,
    f_bavail: u64,
    f_files: u64,
    f_ffree: u64,
    f_frsize: u64,
    f_spare: [u64; 3],
}

impl From<FileSystem> for uv_statfs_t {
    fn from(system: FileSystem) -> uv_statfs_t {
        uv_statfs_t {
            f_type: system.type_,
            f_bsize: system.bsize,
            f_blocks: system.blocks,
            f_bfree: system.bfree,
            f_bavail: system.bavail,
            f_files: system.files,
            f_ffree: system.ffree,
            f_frsize: system.frsize,
            f_spare: [0; 3],
        }
    }
}

/// An entry of a directory.
#[repr(C)]
pub struct uv_dirent_t {
    pub(crate) name: *const c_char,
    pub(crate) type_: c_int,
}

/// An open directory.
#[repr(C)]
pub struct uv_dir_t {
    /// The program's own array, and how many entries it has room for.
    pub(crate) dirents: *mut uv_dirent_t,
    pub(crate) nentries: usize,
    pub(crate) reserved: [*mut c_void; 4],
    pub(crate) dir: *mut libc::DIR,
}

/// A request.
#[repr(C)]
pub struct uv_fs_t {
    pub(crate) req: uv_req_t,
    pub(crate) fs_type: c_int,
    pub(crate) loop_: *mut uv_loop_t,
    pub(crate) cb: uv_fs_cb,
    pub(crate) result: isize,
    pub(crate) ptr: *mut c_void,
    pub(crate) path: *const c_char,
    pub(crate) statbuf: uv_stat_t,
    /// In the same memory as `path`, if the request owns that.
    pub(crate) new_path: *const c_char,
    pub(crate) file: c_int,
    /// For `uv_fs_sendfile`: the file to read from.
    pub(crate) flags: c_int,
    pub(crate) mode: libc::mode_t,
    pub(crate) nbufs: c_uint,
    pub(crate) bufs: *mut Buffer,
    pub(crate) off: i64,
    pub(crate) uid: libc::uid_t,
    pub(crate) gid: libc::gid_t,
    pub(crate) atime: f64,
    pub(crate) mtime: f64,
    pub(crate) work_req: PoolRequest,
    /// For reading and writing with a callback: the buffers, up to four. For `uv_fs_sendfile`: the
    /// length of the first is the number of bytes to send.
    pub(crate) bufsml: [Buffer; 4],
}

/// The operation of a request: the values of `uv_fs_type`.
#[repr(i32)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Op {
    Open = 1,
    Close,
    Read,
    Write,
    Sendfile,
    Stat,
    Lstat,
    Fstat,
    Ftruncate,
    Utime,
    Futime,
    Access,
    Chmod,
    Fchmod,
    Fsync,
    Fdatasync,
    Unlink,
    Rmdir,
    Mkdir,
    Mkdtemp,
    Rename,
    Scandir,
    Link,
    Symlink,
    Readlink,
    Chown,
    Fchown,
    Realpath,
    Copyfile,
    Lchown,
    Opendir,
    Readdir,
    Closedir,
    Statfs,
    Mkstemp,
    Lutime,
}

impl Op {
    /// The operation with that number, if there is one: a program may have cleared its request.
    pub(crate) fn from_raw(fs_type: c_int) -> Option<Op> {
        match fs_type {
            // SAFETY: the enum has a variant for each of these numbers.
            1..=36 => Some(unsafe { std::mem::transmute::<i32, Op>(fs_type) }),
            _ => None,
        }
    }
}

const _: () = assert!(Op::Open as i32 == 1 && Op::Lutime as i32 == 36);
