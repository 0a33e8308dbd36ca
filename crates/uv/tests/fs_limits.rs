//! Files when the process has run into its limits. Limits are the whole process's, so all of it
//! is one test in a program of its own.

#[path = "support/fs.rs"]
mod fs;
#[path = "support/limits.rs"]
mod limits;

use fs::*;
use std::ffi::c_int;

fn limit(resource: limits::Resource, value: u64) -> libc::rlimit {
    let mut old = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: both limits live through the calls.
    unsafe {
        assert_eq!(libc::getrlimit(resource, &mut old), 0);
        let new = libc::rlimit {
            rlim_cur: value,
            ..old
        };
        assert_eq!(libc::setrlimit(resource, &new), 0);
    }
    old
}

#[test]
fn limits_are_reported_and_leave_nothing_behind() {
    no_descriptors_left();
    files_may_not_grow();
}

/// Nothing can be opened, and what failed half-way has let go of what it had.
fn no_descriptors_left() {
    let scratch = Scratch::new("emfile");
    std::fs::write(scratch.at("from"), "text").unwrap();
    let (from, to) = (scratch.c("from"), scratch.c("to"));
    let (root, template) = (c_path(scratch.root()), scratch.c("XXXXXX"));
    let mut loop_ = OwnLoop::new();
    // First some requests, so that the threads and whatever they open for a moment when they
    // start are there and gone.
    for _ in 0..200 {
        let mut req = request();
        // SAFETY: the paths outlive all requests.
        unsafe { uv_fs_stat(loop_.ptr(), &mut *req, from.as_ptr(), Some(ignore)) };
        loop_.run();
        req.clean_up();
    }
    let lowest = (0..200).map(|_| File::open(&from, libc::O_RDONLY).0).min();
    let free = lowest.expect("some were opened");
    let old = limit(libc::RLIMIT_NOFILE, free as u64);
    let mut twice = |call: &dyn Fn(*mut uv_loop_t, *mut uv_fs_t, Callback) -> c_int| {
        let mut req = request();
        let now = call(std::ptr::null_mut(), &mut *req, None);
        assert!(req.ptr().is_null());
        req.clean_up();
        assert_eq!(call(loop_.ptr(), &mut *req, Some(ignore)), 0);
        loop_.run();
        assert!(req.ptr().is_null());
        let later = req.result();
        req.clean_up();
        [now, later]
    };
    // SAFETY: as above.
    let results = unsafe {
        [
            twice(&|l, req, cb| uv_fs_open(l, req, from.as_ptr(), libc::O_RDONLY, 0, cb)),
            twice(&|l, req, cb| uv_fs_opendir(l, req, root.as_ptr(), cb)),
            twice(&|l, req, cb| uv_fs_scandir(l, req, root.as_ptr(), 0, cb)),
            twice(&|l, req, cb| uv_fs_mkstemp(l, req, template.as_ptr(), cb)),
            twice(&|l, req, cb| uv_fs_copyfile(l, req, from.as_ptr(), to.as_ptr(), 0, cb)),
        ]
    };
    // One descriptor is not enough for two files.
    limit(libc::RLIMIT_NOFILE, free as u64 + 1);
    // SAFETY: as above.
    let copy =
        unsafe { twice(&|l, req, cb| uv_fs_copyfile(l, req, from.as_ptr(), to.as_ptr(), 0, cb)) };
    let again = File::open(&from, libc::O_RDONLY).0;
    limit(libc::RLIMIT_NOFILE, old.rlim_cur);
    assert_eq!(results, [[-libc::EMFILE; 2]; 5]);
    assert_eq!(copy, [-libc::EMFILE; 2]);
    assert_eq!(again, free, "nothing is left open");
    assert!(!scratch.at("to").exists());
}

/// A write that stops half-way says how far it got, and a copy that stops is removed.
fn files_may_not_grow() {
    let scratch = Scratch::new("efbig");
    let file = File::open(&scratch.c("file"), libc::O_RDWR | libc::O_CREAT);
    std::fs::write(scratch.at("from"), vec![7; 5000]).unwrap();
    let (from, to) = (scratch.c("from"), scratch.c("to"));
    let bufs = repeated(&[1; 600], 3);
    // SAFETY: no pointers; the kernel sends this signal besides the error.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    let old = limit(libc::RLIMIT_FSIZE, 1000);
    // SAFETY: the buffers and the paths outlive the requests.
    let (write, more, copy) = unsafe {
        (
            both(|l, req, cb| uv_fs_write(l, req, file.0, bufs.as_ptr(), 3, 0, cb)),
            both(|l, req, cb| uv_fs_write(l, req, file.0, bufs.as_ptr(), 3, 1000, cb)),
            both(|l, req, cb| uv_fs_copyfile(l, req, from.as_ptr(), to.as_ptr(), 0, cb)),
        )
    };
    limit(libc::RLIMIT_FSIZE, old.rlim_cur);
    assert_eq!(write, [1000; 2]);
    assert_eq!(more, [-libc::EFBIG; 2]);
    assert_eq!(copy, [-libc::EFBIG; 2]);
    assert!(!scratch.at("to").exists(), "half a copy is none");
}
