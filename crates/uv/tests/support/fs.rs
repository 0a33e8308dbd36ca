//! What the tests on files share: what requests answer, loops, and scratch directories.
#![allow(dead_code, reason = "each test program uses the part that it needs")]

use std::ffi::{CStr, CString, c_int, c_void};
use std::path::{Path, PathBuf};
use uv as _;
pub(crate) use uv_binding::*;

pub(crate) type Callback = Option<unsafe extern "C" fn(*mut uv_fs_t)>;

/// A request with garbage in it, as a program may give us.
pub(crate) fn request() -> Box<uv_fs_t> {
    Box::new(garbage())
}

/// The members of a description that are plain numbers, in their order.
pub(crate) fn numbers(stat: &uv_stat_t) -> [u64; 12] {
    [
        stat.st_dev,
        stat.st_mode,
        stat.st_nlink,
        stat.st_uid,
        stat.st_gid,
        stat.st_rdev,
        stat.st_ino,
        stat.st_size,
        stat.st_blksize,
        stat.st_blocks,
        stat.st_flags,
        stat.st_gen,
    ]
}

/// Access, modification, change and birth, each in seconds and nanoseconds.
pub(crate) fn times(stat: &uv_stat_t) -> [[i64; 2]; 4] {
    [stat.st_atim, stat.st_mtim, stat.st_ctim, stat.st_birthtim]
        .map(|time| [time.tv_sec, time.tv_nsec])
}

/// What a request that is done says.
pub(crate) trait Answer {
    fn result(&self) -> c_int;
    fn path(&self) -> Option<&CStr>;
    /// The text that `ptr` points to.
    fn text(&self) -> &CStr;
    fn ptr(&self) -> *mut c_void;
    fn stat(&mut self) -> uv_stat_t;
    fn clean_up(&mut self);
}

impl Answer for uv_fs_t {
    fn result(&self) -> c_int {
        // SAFETY: the request was filled in.
        unsafe { uv_fs_get_result(self) as c_int }
    }

    fn path(&self) -> Option<&CStr> {
        // SAFETY: the request was filled in, and its path lives until it is cleaned up.
        unsafe {
            let path = uv_fs_get_path(self);
            (!path.is_null()).then(|| CStr::from_ptr(path))
        }
    }

    fn text(&self) -> &CStr {
        // SAFETY: the caller has asked for a text and got one.
        unsafe { CStr::from_ptr(uv_fs_get_ptr(self).cast()) }
    }

    fn ptr(&self) -> *mut c_void {
        // SAFETY: the request was filled in.
        unsafe { uv_fs_get_ptr(self) }
    }

    fn stat(&mut self) -> uv_stat_t {
        // SAFETY: the request was filled in.
        unsafe { *uv_fs_get_statbuf(self) }
    }

    fn clean_up(&mut self) {
        // SAFETY: the request is done. Twice is as good as once.
        unsafe {
            uv_fs_req_cleanup(self);
            uv_fs_req_cleanup(self);
        }
        assert!(self.ptr().is_null());
        assert!(self.path().is_none());
    }
}

/// A loop of our own.
pub(crate) struct OwnLoop(Box<uv_loop_t>);

impl OwnLoop {
    pub(crate) fn new() -> OwnLoop {
        let mut loop_ = Box::new(zeroed::<uv_loop_t>());
        // SAFETY: there is room for a loop.
        assert_eq!(unsafe { uv_loop_init(&mut *loop_) }, 0);
        OwnLoop(loop_)
    }

    pub(crate) fn ptr(&mut self) -> *mut uv_loop_t {
        &mut *self.0
    }

    /// Runs until nothing is left to do.
    pub(crate) fn run(&mut self) {
        // SAFETY: the loop is ours.
        assert_eq!(unsafe { uv_run(self.ptr(), 0) }, 0);
    }
}

impl Drop for OwnLoop {
    fn drop(&mut self) {
        // SAFETY: the loop is ours.
        let closed = unsafe { uv_loop_close(self.ptr()) };
        assert!(closed == 0 || std::thread::panicking());
    }
}

/// Does nothing: the test looks at the request after the run.
///
/// # Safety
///
/// None is needed.
pub(crate) unsafe extern "C" fn ignore(_: *mut uv_fs_t) {}

/// Makes a call without a callback and returns its result, then makes it with one and returns
/// that. Checks that the request says the same as the function.
pub(crate) fn both(
    mut call: impl FnMut(*mut uv_loop_t, *mut uv_fs_t, Callback) -> c_int,
) -> [c_int; 2] {
    let mut req = request();
    let now = call(std::ptr::null_mut(), &mut *req, None);
    assert_eq!(req.result(), now);
    // SAFETY: the request was filled in.
    assert_eq!(unsafe { uv_fs_get_system_error(&*req) }, -now);
    req.clean_up();
    let mut loop_ = OwnLoop::new();
    let mut req = request();
    assert_eq!(call(loop_.ptr(), &mut *req, Some(ignore)), 0);
    loop_.run();
    let later = req.result();
    req.clean_up();
    [now, later]
}

/// A directory of its own for a test, removed at the end.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str) -> Scratch {
        let name = format!("blacklight-uv-{}-{name}", std::process::id());
        let root = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&root);
        std::fs::create_dir(&root).unwrap();
        Scratch(root)
    }

    /// Another in this one.
    pub(crate) fn below(&self, name: &str) -> Scratch {
        let root = self.at(name);
        std::fs::create_dir(&root).unwrap();
        Scratch(root)
    }

    pub(crate) fn root(&self) -> &Path {
        &self.0
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The same as C wants it.
    pub(crate) fn c(&self, name: &str) -> CString {
        c_path(&self.at(name))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn c_path(path: &Path) -> CString {
    CString::new(path.to_str().unwrap()).unwrap()
}

/// Opens a file as C would, and closes it at the end.
pub(crate) struct File(pub(crate) c_int);

impl File {
    pub(crate) fn open(path: &CStr, flags: c_int) -> File {
        let mut req = request();
        // SAFETY: the path is a C string, and there is no callback.
        let fd = unsafe {
            uv_fs_open(
                std::ptr::null_mut(),
                &mut *req,
                path.as_ptr(),
                flags,
                0o600,
                None,
            )
        };
        req.clean_up();
        assert!(fd >= 0, "{path:?}: {fd}");
        File(fd)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let mut req = request();
        // SAFETY: the descriptor is ours, and there is no callback.
        unsafe { uv_fs_close(std::ptr::null_mut(), &mut *req, self.0, None) };
    }
}

/// Buffers that all describe the same text.
pub(crate) fn repeated(text: &[u8], times: usize) -> Vec<uv_buf_t> {
    vec![uv_buf_t::new(text); times]
}
