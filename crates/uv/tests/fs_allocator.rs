//! Files with an allocator that refuses: each request is made with the first, the second, …
//! allocation refused, until it needs no more. It must then say `UV_ENOMEM` and nothing else,
//! leave nothing behind, and work as ever afterwards. The allocator is the whole process's, so
//! all of it is one test in a program of its own.

#[path = "support/fs.rs"]
mod support;

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicIsize, Ordering::SeqCst};
use support::*;

/// How many allocations are granted before one is refused; negative: none is.
static GRANTED: AtomicIsize = AtomicIsize::new(-1);
/// How many pieces of memory are given out.
static OUT: AtomicIsize = AtomicIsize::new(0);

fn grants() -> bool {
    let before = GRANTED.fetch_sub(1, SeqCst);
    if before < 0 {
        GRANTED.store(-1, SeqCst);
    }
    if before != 0 {
        OUT.fetch_add(1, SeqCst);
    }
    before != 0
}

unsafe extern "C" fn malloc(size: usize) -> *mut c_void {
    match grants() {
        // SAFETY: libc takes any size.
        true => unsafe { libc::malloc(size) },
        false => null_mut(),
    }
}

unsafe extern "C" fn realloc(_: *mut c_void, _: usize) -> *mut c_void {
    unreachable!("nothing is ever resized")
}

unsafe extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    match grants() {
        // SAFETY: libc takes any size.
        true => unsafe { libc::calloc(count, size) },
        false => null_mut(),
    }
}

unsafe extern "C" fn free(memory: *mut c_void) {
    OUT.fetch_sub(1, SeqCst);
    // SAFETY: it came from one of the above.
    unsafe { libc::free(memory) }
}

unsafe extern "C" {
    fn uv_fs_poll_init(loop_: *mut Loop, handle: *mut Poll) -> c_int;
    fn uv_fs_poll_start(
        handle: *mut Poll,
        cb: Option<unsafe extern "C" fn()>,
        path: *const c_char,
        interval: c_uint,
    ) -> c_int;
    fn uv_is_active(handle: *const Poll) -> c_int;
    fn uv_close(handle: *mut Poll, cb: Option<unsafe extern "C" fn()>);
    fn uv_replace_allocator(
        malloc: unsafe extern "C" fn(usize) -> *mut c_void,
        realloc: unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void,
        calloc: unsafe extern "C" fn(usize, usize) -> *mut c_void,
        free: unsafe extern "C" fn(*mut c_void),
    ) -> c_int;
}

/// A `uv_fs_poll_t`.
#[repr(C, align(16))]
struct Poll([u8; 104]);

type Call<'a> = &'a dyn Fn(*mut Loop, *mut Request, Callback) -> c_int;

/// Makes the call once with each allocation refused, with and without a callback.
fn refuse_each(loop_: &mut OwnLoop, name: &str, call: Call<'_>, undo: &dyn Fn(&mut Request)) {
    for cb in [None, Some(ignore as unsafe extern "C" fn(_))] {
        for granted in 0.. {
            assert!(granted < 20, "{name} never stops allocating");
            let before = OUT.load(SeqCst);
            let mut req = request();
            GRANTED.store(granted, SeqCst);
            let returned = call(loop_.ptr(), &mut *req, cb);
            loop_.run();
            let refused = GRANTED.swap(-1, SeqCst) < 0;
            let result = match cb {
                Some(_) if returned == 0 => req.result(),
                _ => returned,
            };
            if refused {
                assert_eq!(result, -libc::ENOMEM, "{name}, allocation {granted}");
                assert!(req.ptr().is_null() || name == "readdir");
            } else {
                assert!(result >= 0, "{name} after {granted}: {result}");
                undo(&mut req);
            }
            req.clean_up();
            assert_eq!(OUT.load(SeqCst), before, "{name}, allocation {granted}");
            if !refused {
                break;
            }
        }
    }
}

#[test]
fn each_allocation_may_be_refused() {
    // SAFETY: nothing of libuv has been used before.
    let status = unsafe { uv_replace_allocator(malloc, realloc, calloc, free) };
    assert_eq!(status, 0);
    let scratch = Scratch::new("refusing");
    std::fs::write(scratch.at("file"), "text").unwrap();
    std::os::unix::fs::symlink("file", scratch.at("link")).unwrap();
    let (file, link) = (scratch.c("file"), scratch.c("link"));
    let (to, root, template) = (
        scratch.c("to"),
        c_path(scratch.root()),
        scratch.c("tXXXXXX"),
    );
    let (file, link, to) = (file.as_ptr(), link.as_ptr(), to.as_ptr());
    let open = File::open(&scratch.c("file"), libc::O_RDWR);
    let bufs = repeated(b"text", 6);
    let nothing: &dyn Fn(&mut Request) = &|_| {};
    let mut loop_ = OwnLoop::new();
    let l = &mut loop_;
    // SAFETY: all that is pointed to outlives the requests.
    unsafe {
        refuse_each(l, "stat", &|l, r, cb| uv_fs_stat(l, r, file, cb), nothing);
        refuse_each(
            l,
            "fstat",
            &|l, r, cb| uv_fs_fstat(l, r, open.0, cb),
            nothing,
        );
        refuse_each(
            l,
            "rename",
            &|l, r, cb| uv_fs_rename(l, r, file, file, cb),
            nothing,
        );
        refuse_each(
            l,
            "copyfile",
            &|l, r, cb| uv_fs_copyfile(l, r, file, to, 0, cb),
            nothing,
        );
        refuse_each(
            l,
            "readlink",
            &|l, r, cb| uv_fs_readlink(l, r, link, cb),
            nothing,
        );
        refuse_each(
            l,
            "realpath",
            &|l, r, cb| uv_fs_realpath(l, r, link, cb),
            nothing,
        );
        refuse_each(
            l,
            "statfs",
            &|l, r, cb| uv_fs_statfs(l, r, file, cb),
            nothing,
        );
        refuse_each(
            l,
            "write",
            &|l, r, cb| uv_fs_write(l, r, open.0, bufs.as_ptr(), 6, 0, cb),
            nothing,
        );
        refuse_each(
            l,
            "scandir",
            &|l, r, cb| uv_fs_scandir(l, r, root.as_ptr(), 0, cb),
            nothing,
        );
        let close = |req: &mut Request| drop(File(req.result()));
        refuse_each(
            l,
            "open",
            &|l, r, cb| uv_fs_open(l, r, file, 0, 0, cb),
            &close,
        );
        refuse_each(
            l,
            "mkstemp",
            &|l, r, cb| uv_fs_mkstemp(l, r, template.as_ptr(), cb),
            &close,
        );
        let close_dir = |req: &mut Request| close_dir(req.ptr().cast());
        refuse_each(
            l,
            "opendir",
            &|l, r, cb| uv_fs_opendir(l, r, root.as_ptr(), cb),
            &close_dir,
        );
    }
    read_with_each_refused(l, &root);
    watch_with_each_refused(l);
    drop(loop_);
    drop(open);
    assert_eq!(OUT.load(SeqCst), 0, "everything was given back");
}

fn close_dir(dir: *mut Dir) {
    let mut req = request();
    // SAFETY: the directory is open, and there is no callback.
    unsafe { assert_eq!(uv_fs_closedir(null_mut(), &mut *req, dir, None), 0) };
    req.clean_up();
}

/// A handle that could not be started is as it was, and can be started later.
fn watch_with_each_refused(loop_: &mut OwnLoop) {
    let before = OUT.load(SeqCst);
    let mut handle = Box::new(Poll([0; 104]));
    // SAFETY: there is room for the handle, which lives until it is closed.
    unsafe {
        assert_eq!(uv_fs_poll_init(loop_.ptr(), &mut *handle), 0);
        for granted in 0.. {
            GRANTED.store(granted, SeqCst);
            let started = uv_fs_poll_start(&mut *handle, None, c"/".as_ptr(), 1);
            let refused = GRANTED.swap(-1, SeqCst) < 0;
            assert_eq!(started, if refused { -libc::ENOMEM } else { 0 });
            assert_eq!(uv_is_active(&*handle), c_int::from(!refused));
            if !refused {
                break;
            }
        }
        uv_close(&mut *handle, None);
    }
    loop_.run();
    assert_eq!(OUT.load(SeqCst), before);
}

/// Every reading begins with a fresh directory, since entries that did not fit are gone.
fn read_with_each_refused(loop_: &mut OwnLoop, root: &std::ffi::CStr) {
    let mut entries = [Dirent {
        name: std::ptr::null(),
        type_: 0,
    }; 8];
    let dir = std::cell::Cell::new(null_mut::<Dir>());
    let entries = entries.as_mut_ptr();
    let call = |l: *mut Loop, r: *mut Request, cb: Callback| {
        let granted = GRANTED.swap(-1, SeqCst);
        if !dir.get().is_null() {
            close_dir(dir.get());
        }
        let mut req = request();
        // SAFETY: the path outlives the request, and the entries the directory.
        unsafe {
            uv_fs_opendir(null_mut(), &mut *req, root.as_ptr(), None);
            dir.set(req.ptr().cast());
            req.clean_up();
            (*dir.get()).dirents = entries;
            (*dir.get()).nentries = 8;
            GRANTED.store(granted, SeqCst);
            uv_fs_readdir(l, r, dir.get(), cb)
        }
    };
    // The first is opened here, so that one directory is open before and after each round.
    call(null_mut(), &mut *request(), None);
    close_names(entries);
    refuse_each(loop_, "readdir", &call, &|_| {});
    close_dir(dir.get());
}

/// Gives back the names of a reading whose request was dropped.
fn close_names(entries: *mut Dirent) {
    for index in 0..8 {
        // SAFETY: the reading has filled entries from the front, and the rest is null.
        unsafe {
            let entry = entries.add(index);
            if !(*entry).name.is_null() {
                free((*entry).name.cast_mut().cast());
                (*entry).name = std::ptr::null();
            }
        }
    }
}
