//! An allocator of the program's that calls functions of the library: it is never called while the
//! loop's engine is lent, so it finds the loop whole. Debug builds end the process where it is.
//!
//! One test, as a process has one allocator.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize};
use uv as _;
use uv_binding::*;

/// The loop that the allocator uses, and how often it did.
static LOOP: AtomicPtr<uv_loop_t> = AtomicPtr::new(std::ptr::null_mut());
static USES: AtomicU32 = AtomicU32::new(0);
static NAME: AtomicUsize = AtomicUsize::new(0);

/// Uses the loop, if this is its thread.
fn use_loop() {
    let lp = LOOP.load(Relaxed);
    if !lp.is_null() && std::thread::current().name() == Some("the loop's") {
        USES.fetch_add(1, Relaxed);
        // SAFETY: the loop is open, and this is its thread.
        unsafe { uv_update_time(lp) };
    }
}

unsafe extern "C" fn malloc(size: usize) -> *mut c_void {
    use_loop();
    // SAFETY: any size is allowed.
    unsafe { libc::malloc(size) }
}

unsafe extern "C" fn realloc(memory: *mut c_void, size: usize) -> *mut c_void {
    use_loop();
    // SAFETY: the memory is from these functions.
    unsafe { libc::realloc(memory, size) }
}

unsafe extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    use_loop();
    // SAFETY: any size is allowed.
    unsafe { libc::calloc(count, size) }
}

unsafe extern "C" fn free(memory: *mut c_void) {
    use_loop();
    // SAFETY: the memory is from these functions.
    unsafe { libc::free(memory) };
}

unsafe extern "C" fn changed(
    handle: *mut uv_fs_event_t,
    name: *const c_char,
    _: c_int,
    status: c_int,
) {
    assert_eq!(status, 0);
    // SAFETY: the name is a C string, and this is the handle's loop.
    unsafe {
        NAME.fetch_max(CStr::from_ptr(name).count_bytes(), Relaxed);
        if NAME.load(Relaxed) > 1_024 {
            uv_close(handle, None);
        }
    }
}

unsafe extern "C" fn written(_: *mut Room, status: c_int) {
    assert_eq!(status, 0);
}

unsafe extern "C" fn told(req: *mut Room) {
    // SAFETY: the request is done.
    unsafe { uv_fs_req_cleanup(req) };
}

/// A directory so deep that the path in it is longer than any name.
fn deep_directory(root: &std::path::Path) -> std::path::PathBuf {
    let mut path = root.to_owned();
    for _ in 0..5 {
        path.push("d".repeat(250));
    }
    std::fs::create_dir_all(&path).unwrap();
    path
}

fn c_path(path: &std::path::Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).unwrap()
}

#[test]
fn an_allocator_may_use_the_loop() {
    let run = std::thread::Builder::new().name("the loop's".to_owned());
    run.spawn(use_all).unwrap().join().unwrap();
}

fn use_all() {
    let root = std::env::temp_dir().join(format!("blacklight-allocator-{}", std::process::id()));
    let deep = deep_directory(&root);
    let mut lp = Box::new(zeroed::<uv_loop_t>());
    let mut watcher = Box::new(zeroed());
    let [mut pipe, mut bound, mut write, mut stat] = std::array::from_fn(|_| Room::new());
    let path = c_path(&root);
    let (reader, writer) = std::io::pipe().unwrap();
    let bufs = [uv_buf_t::new(b"x"); 100];
    // SAFETY: all handles and requests live until the loop is closed, and this is its thread.
    unsafe {
        assert_eq!(
            uv_replace_allocator(Some(malloc), Some(realloc), Some(calloc), Some(free)),
            0
        );
        assert_eq!(uv_loop_init(&mut *lp), 0);
        LOOP.store(&mut *lp, Relaxed);
        assert_eq!(uv_fs_event_init(&mut *lp, &mut *watcher), 0);
        assert_eq!(
            uv_fs_event_start(&mut *watcher, Some(changed), path.as_ptr(), 4),
            0
        );
        std::fs::write(deep.join("file"), "").unwrap();
        assert_eq!(uv_pipe_init(&mut *lp, &mut *pipe, 0), 0);
        let writer = std::os::fd::IntoRawFd::into_raw_fd(writer);
        assert_eq!(uv_pipe_open(&mut *pipe, writer), 0);
        let wrote = uv_write(&mut *write, &mut *pipe, bufs.as_ptr(), 100, Some(written));
        assert_eq!(wrote, 0);
        assert_eq!(uv_pipe_init(&mut *lp, &mut *bound, 0), 0);
        let name = c_path(&root.join("socket"));
        assert_eq!(uv_pipe_bind(&mut *bound, name.as_ptr()), 0);
        assert_eq!(
            uv_fs_stat(&mut *lp, &mut *stat, path.as_ptr(), Some(told)),
            0
        );
        uv_close(&mut *bound, None);
        assert_eq!(uv_run(&mut *lp, 0), 0);
        uv_close(&mut *pipe, None);
        assert_eq!(uv_run(&mut *lp, 0), 0);
        LOOP.store(std::ptr::null_mut(), Relaxed);
        assert_eq!(uv_loop_close(&mut *lp), 0);
    }
    drop(reader);
    std::fs::remove_dir_all(&root).unwrap();
    assert!(USES.load(Relaxed) > 5);
}
