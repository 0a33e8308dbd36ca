//! What the tests on files share: libuv's functions as C declares them, requests with room for
//! what the library keeps in them, and scratch directories.
#![allow(dead_code, reason = "each test program uses the part that it needs")]

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::path::{Path, PathBuf};
use uv as _;

pub(crate) type Callback = Option<unsafe extern "C" fn(*mut Request)>;

/// A `uv_fs_t`. What is looked at is looked at through libuv's functions.
#[repr(C, align(16))]
pub(crate) struct Request([u8; 440]);

/// A `uv_loop_t`.
#[repr(C, align(16))]
pub(crate) struct Loop([u8; 848]);

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Buf {
    pub(crate) base: *const c_char,
    pub(crate) len: usize,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dirent {
    pub(crate) name: *const c_char,
    pub(crate) type_: c_int,
}

/// The public part of a `uv_dir_t`.
#[repr(C)]
pub(crate) struct Dir {
    pub(crate) dirents: *mut Dirent,
    pub(crate) nentries: usize,
}

#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stat {
    pub(crate) numbers: [u64; 12],
    /// Access, modification, change and birth, each in seconds and nanoseconds.
    pub(crate) times: [[i64; 2]; 4],
}

impl Stat {
    pub(crate) fn mode(&self) -> u32 {
        self.numbers[1] as u32
    }

    pub(crate) fn size(&self) -> u64 {
        self.numbers[7]
    }
}

macro_rules! functions {
    ($($name:ident($($argument:ty),*);)*) => {
        unsafe extern "C" {
            $(pub(crate) fn $name(loop_: *mut Loop, req: *mut Request, $(_: $argument,)* cb: Callback) -> c_int;)*
        }
    };
}

functions! {
    uv_fs_open(*const c_char, c_int, c_int);
    uv_fs_close(c_int);
    uv_fs_read(c_int, *const Buf, c_uint, i64);
    uv_fs_write(c_int, *const Buf, c_uint, i64);
    uv_fs_fsync(c_int);
    uv_fs_fdatasync(c_int);
    uv_fs_ftruncate(c_int, i64);
    uv_fs_sendfile(c_int, c_int, i64, usize);
    uv_fs_copyfile(*const c_char, *const c_char, c_int);
    uv_fs_rename(*const c_char, *const c_char);
    uv_fs_link(*const c_char, *const c_char);
    uv_fs_symlink(*const c_char, *const c_char, c_int);
    uv_fs_unlink(*const c_char);
    uv_fs_access(*const c_char, c_int);
    uv_fs_mkstemp(*const c_char);
    uv_fs_mkdtemp(*const c_char);
    uv_fs_mkdir(*const c_char, c_int);
    uv_fs_rmdir(*const c_char);
    uv_fs_scandir(*const c_char, c_int);
    uv_fs_opendir(*const c_char);
    uv_fs_readdir(*mut Dir);
    uv_fs_closedir(*mut Dir);
    uv_fs_readlink(*const c_char);
    uv_fs_realpath(*const c_char);
    uv_fs_stat(*const c_char);
    uv_fs_lstat(*const c_char);
    uv_fs_fstat(c_int);
    uv_fs_statfs(*const c_char);
    uv_fs_chmod(*const c_char, c_int);
    uv_fs_fchmod(c_int, c_int);
    uv_fs_chown(*const c_char, c_uint, c_uint);
    uv_fs_fchown(c_int, c_uint, c_uint);
    uv_fs_lchown(*const c_char, c_uint, c_uint);
    uv_fs_utime(*const c_char, f64, f64);
    uv_fs_futime(c_int, f64, f64);
    uv_fs_lutime(*const c_char, f64, f64);
}

unsafe extern "C" {
    pub(crate) fn uv_fs_scandir_next(req: *mut Request, ent: *mut Dirent) -> c_int;
    pub(crate) fn uv_fs_req_cleanup(req: *mut Request);
    pub(crate) fn uv_fs_get_type(req: *const Request) -> c_int;
    pub(crate) fn uv_fs_get_result(req: *const Request) -> isize;
    pub(crate) fn uv_fs_get_system_error(req: *const Request) -> c_int;
    pub(crate) fn uv_fs_get_ptr(req: *const Request) -> *mut c_void;
    pub(crate) fn uv_fs_get_path(req: *const Request) -> *const c_char;
    pub(crate) fn uv_fs_get_statbuf(req: *mut Request) -> *mut Stat;
    pub(crate) fn uv_cancel(req: *mut c_void) -> c_int;
    pub(crate) fn uv_queue_work(
        loop_: *mut Loop,
        req: *mut Work,
        work: Option<unsafe extern "C" fn(*mut Work)>,
        after: Option<unsafe extern "C" fn(*mut Work, c_int)>,
    ) -> c_int;
    pub(crate) fn uv_loop_init(loop_: *mut Loop) -> c_int;
    pub(crate) fn uv_loop_close(loop_: *mut Loop) -> c_int;
    pub(crate) fn uv_run(loop_: *mut Loop, mode: c_int) -> c_int;
}

/// A `uv_work_t`.
#[repr(C, align(16))]
pub(crate) struct Work(pub(crate) [u8; 128]);

pub(crate) const UV_EOF: c_int = -4095;

/// A request with garbage in it, as a program may give us.
pub(crate) fn request() -> Box<Request> {
    Box::new(Request([0xdb; 440]))
}

impl Request {
    pub(crate) fn result(&self) -> c_int {
        // SAFETY: the request was filled in.
        unsafe { uv_fs_get_result(self) as c_int }
    }

    pub(crate) fn path(&self) -> Option<&CStr> {
        // SAFETY: the request was filled in, and its path lives until it is cleaned up.
        unsafe {
            let path = uv_fs_get_path(self);
            (!path.is_null()).then(|| CStr::from_ptr(path))
        }
    }

    /// The text that `ptr` points to.
    pub(crate) fn text(&self) -> &CStr {
        // SAFETY: the caller has asked for a text and got one.
        unsafe { CStr::from_ptr(uv_fs_get_ptr(self).cast()) }
    }

    pub(crate) fn ptr(&self) -> *mut c_void {
        // SAFETY: the request was filled in.
        unsafe { uv_fs_get_ptr(self) }
    }

    pub(crate) fn stat(&mut self) -> Stat {
        // SAFETY: the request was filled in.
        unsafe { *uv_fs_get_statbuf(self) }
    }

    pub(crate) fn clean_up(&mut self) {
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
pub(crate) struct OwnLoop(Box<Loop>);

impl OwnLoop {
    pub(crate) fn new() -> OwnLoop {
        let mut loop_ = Box::new(Loop([0; 848]));
        // SAFETY: there is room for a loop.
        assert_eq!(unsafe { uv_loop_init(&mut *loop_) }, 0);
        OwnLoop(loop_)
    }

    pub(crate) fn ptr(&mut self) -> *mut Loop {
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
pub(crate) unsafe extern "C" fn ignore(_: *mut Request) {}

/// Makes a call without a callback and returns its result, then makes it with one and returns
/// that. Checks that the request says the same as the function.
pub(crate) fn both(mut call: impl FnMut(*mut Loop, *mut Request, Callback) -> c_int) -> [c_int; 2] {
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
pub(crate) fn repeated(text: &[u8], times: usize) -> Vec<Buf> {
    let buf = Buf {
        base: text.as_ptr().cast(),
        len: text.len(),
    };
    vec![buf; times]
}
