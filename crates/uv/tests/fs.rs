//! Files through the C face: what goes wrong, and what libuv's own tests do not look at.

#[path = "support/fs.rs"]
mod fs;

use fs::*;
use std::ffi::{CString, c_char, c_int};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::ptr::{null, null_mut};

fn error(code: c_int) -> [c_int; 2] {
    [-code; 2]
}

#[test]
fn a_full_disk_is_reported() {
    let full = File::open(c"/dev/full", libc::O_WRONLY);
    let bufs = repeated(b"text", 3);
    for (count, offset) in [(1, -1), (3, -1), (1, 0), (3, 0)] {
        // SAFETY: the buffers outlive the request.
        let write = both(|loop_, req, cb| unsafe {
            uv_fs_write(loop_, req, full.0, bufs.as_ptr(), count, offset, cb)
        });
        assert_eq!(write, error(libc::ENOSPC));
    }
    let scratch = Scratch::new("full");
    std::fs::write(scratch.at("from"), "text").unwrap();
    let from = File::open(&scratch.c("from"), libc::O_RDONLY);
    // SAFETY: no pointers.
    let send =
        both(|loop_, req, cb| unsafe { uv_fs_sendfile(loop_, req, full.0, from.0, 0, 4, cb) });
    assert_eq!(send, error(libc::ENOSPC));
}

#[test]
fn a_name_that_is_too_long_is_reported() {
    let long = CString::new(vec![b'a'; 5000]).unwrap();
    let path = long.as_ptr();
    type Call =
        unsafe extern "C" fn(*mut uv_loop_t, *mut uv_fs_t, *const c_char, Callback) -> c_int;
    let calls: [Call; 9] = [
        raw::uv_fs_stat,
        raw::uv_fs_lstat,
        raw::uv_fs_unlink,
        raw::uv_fs_rmdir,
        uv_fs_scandir_,
        raw::uv_fs_opendir,
        raw::uv_fs_readlink,
        raw::uv_fs_realpath,
        raw::uv_fs_statfs,
    ];
    for (index, call) in calls.into_iter().enumerate() {
        // SAFETY: the path outlives the request.
        let result = both(|loop_, req, cb| unsafe { call(loop_, req, path, cb) });
        assert_eq!(result, error(libc::ENAMETOOLONG), "call {index}");
    }
}

/// Without flags, like the others.
unsafe extern "C" fn uv_fs_scandir_(
    loop_: *mut uv_loop_t,
    req: *mut uv_fs_t,
    path: *const c_char,
    cb: Callback,
) -> c_int {
    // SAFETY: the caller's duties are the same.
    unsafe { uv_fs_scandir(loop_, req, path, 0, cb) }
}

#[test]
fn what_one_may_not_do_is_refused() {
    let scratch = Scratch::new("refused");
    let locked = scratch.at("locked");
    std::fs::create_dir(&locked).unwrap();
    std::fs::set_permissions(&locked, PermissionsExt::from_mode(0o000)).unwrap();
    let (dir, inside) = (scratch.c("locked"), scratch.c("locked/file"));
    // SAFETY: these take no pointers. Root may do everything, so this thread stops being root
    // towards the file system.
    let fsuid = unsafe { libc::setfsuid(65534) };
    let now = |call: &dyn Fn(*mut uv_fs_t) -> c_int| {
        let mut req = request();
        let result = call(&mut *req);
        assert!(req.ptr().is_null());
        req.clean_up();
        result
    };
    let loop_ = null_mut();
    // SAFETY: the paths outlive the requests.
    let results = unsafe {
        [
            now(&|req| uv_fs_stat(loop_, req, inside.as_ptr(), None)),
            now(&|req| uv_fs_open(loop_, req, inside.as_ptr(), libc::O_CREAT, 0o600, None)),
            now(&|req| uv_fs_scandir(loop_, req, dir.as_ptr(), 0, None)),
            now(&|req| uv_fs_opendir(loop_, req, dir.as_ptr(), None)),
            now(&|req| uv_fs_mkdir(loop_, req, inside.as_ptr(), 0o700, None)),
            now(&|req| uv_fs_realpath(loop_, req, inside.as_ptr(), None)),
            now(&|req| uv_fs_copyfile(loop_, req, inside.as_ptr(), dir.as_ptr(), 0, None)),
        ]
    };
    // SAFETY: as above.
    unsafe { libc::setfsuid(fsuid as libc::uid_t) };
    std::fs::set_permissions(&locked, PermissionsExt::from_mode(0o700)).unwrap();
    assert_eq!(results, [-libc::EACCES; 7]);
}

#[test]
fn a_directory_that_vanishes_has_no_more_entries() {
    let scratch = Scratch::new("vanished");
    std::fs::create_dir(scratch.at("dir")).unwrap();
    let path = scratch.c("dir");
    let mut req = request();
    // SAFETY: the path and the directory are valid where they are used, and there is no callback.
    unsafe {
        assert_eq!(uv_fs_opendir(null_mut(), &mut *req, path.as_ptr(), None), 0);
        let dir = req.ptr().cast::<uv_dir_t>();
        req.clean_up();
        std::fs::remove_dir(scratch.at("dir")).unwrap();
        let mut entries = [uv_dirent_t {
            name: null(),
            type_: 0,
        }; 3];
        (*dir).dirents = entries.as_mut_ptr();
        (*dir).nentries = 3;
        assert_eq!(uv_fs_readdir(null_mut(), &mut *req, dir, None), 0);
        req.clean_up();
        assert_eq!(uv_fs_closedir(null_mut(), &mut *req, dir, None), 0);
        req.clean_up();
    }
    // SAFETY: the path outlives the requests.
    let scan = both(|loop_, req, cb| unsafe { uv_fs_scandir(loop_, req, path.as_ptr(), 0, cb) });
    assert_eq!(scan, error(libc::ENOENT));
    // SAFETY: as above.
    let open = both(|loop_, req, cb| unsafe { uv_fs_opendir(loop_, req, path.as_ptr(), cb) });
    assert_eq!(open, error(libc::ENOENT));
}

#[test]
fn arguments_that_make_no_sense_are_refused_at_once() {
    let mut loop_ = OwnLoop::new();
    let path = c"/".as_ptr();
    let buf = repeated(b"text", 1);
    for cb in [None, Some(ignore as unsafe extern "C" fn(_))] {
        let mut req = request();
        let (loop_, req) = (loop_.ptr(), &raw mut *req);
        // SAFETY: that is what is tested: none of these is used.
        unsafe {
            let refused = [
                uv_fs_stat(loop_, null_mut(), path, cb),
                uv_fs_close(loop_, null_mut(), 0, cb),
                uv_fs_read(loop_, null_mut(), 0, buf.as_ptr(), 1, 0, cb),
                uv_fs_rename(loop_, null_mut(), path, path, cb),
                uv_fs_stat(loop_, req, null(), cb),
                uv_fs_open(loop_, req, null(), 0, 0, cb),
                uv_fs_mkdtemp(loop_, req, null(), cb),
                uv_fs_mkstemp(loop_, req, null(), cb),
                uv_fs_rename(loop_, req, path, null(), cb),
                uv_fs_rename(loop_, req, null(), path, cb),
                uv_fs_copyfile(loop_, req, path, path, 8, cb),
                uv_fs_copyfile(loop_, req, path, path, -1, cb),
                uv_fs_read(loop_, req, 0, null(), 1, 0, cb),
                uv_fs_read(loop_, req, 0, buf.as_ptr(), 0, 0, cb),
                uv_fs_write(loop_, req, 0, null(), 1, 0, cb),
                uv_fs_write(loop_, req, 0, buf.as_ptr(), 0, 0, cb),
                uv_fs_readdir(loop_, req, null_mut(), cb),
                uv_fs_closedir(loop_, req, null_mut(), cb),
            ];
            assert_eq!(refused, [-libc::EINVAL; 18]);
            assert!((*req).ptr().is_null() && (*req).path().is_none());
            (*req).clean_up();
        }
    }
    loop_.run();
    // SAFETY: nothing is there to be cleaned up.
    unsafe { uv_fs_req_cleanup(null_mut::<uv_fs_t>()) };
}

#[test]
fn descriptors_that_are_none_are_refused() {
    let buf = repeated(b"text", 1);
    for fd in [-1, -100, 1_000_000] {
        // SAFETY: the buffers outlive the requests.
        let results = unsafe {
            [
                both(|loop_, req, cb| uv_fs_close(loop_, req, fd, cb)),
                both(|loop_, req, cb| uv_fs_fstat(loop_, req, fd, cb)),
                both(|loop_, req, cb| uv_fs_read(loop_, req, fd, buf.as_ptr(), 1, -1, cb)),
                both(|loop_, req, cb| uv_fs_write(loop_, req, fd, buf.as_ptr(), 1, 0, cb)),
                both(|loop_, req, cb| uv_fs_fsync(loop_, req, fd, cb)),
                both(|loop_, req, cb| uv_fs_fdatasync(loop_, req, fd, cb)),
                both(|loop_, req, cb| uv_fs_fchmod(loop_, req, fd, 0o600, cb)),
                both(|loop_, req, cb| uv_fs_sendfile(loop_, req, fd, 0, 0, 1, cb)),
            ]
        };
        assert_eq!(results, [error(libc::EBADF); 8]);
    }
}

#[test]
fn more_buffers_than_the_kernel_takes_at_once() {
    const MANY: usize = 5000;
    let scratch = Scratch::new("many");
    let file = File::open(&scratch.c("file"), libc::O_RDWR | libc::O_CREAT);
    let bufs = repeated(b"0123456789", MANY);
    // SAFETY: the buffers outlive the requests. With a callback the array need not.
    let written = both(|loop_, req, cb| unsafe {
        let copy = bufs.clone();
        uv_fs_write(loop_, req, file.0, copy.as_ptr(), MANY as u32, 0, cb)
    });
    assert_eq!(written, [10 * MANY as c_int; 2]);
    let content = std::fs::read(scratch.at("file")).unwrap();
    assert!(content == b"0123456789".repeat(MANY));
    let room = vec![0u8; 10 * MANY];
    let into: Vec<uv_buf_t> = room.chunks(10).map(uv_buf_t::new).collect();
    // SAFETY: the room outlives the requests and nobody looks at it meanwhile.
    let read = both(|loop_, req, cb| unsafe {
        uv_fs_read(loop_, req, file.0, into.as_ptr(), MANY as u32, 0, cb)
    });
    assert_eq!(read, [10 * 1024; 2], "one call's worth");
}

#[test]
fn sizes_and_offsets_beyond_all_bounds() {
    const AT_ONCE: usize = 0x7fff_f000;
    let scratch = Scratch::new("huge");
    let file = File::open(&scratch.c("file"), libc::O_RDWR | libc::O_CREAT);
    std::fs::write(scratch.at("file"), "text").unwrap();
    let huge = [uv_buf_t {
        base: null_mut(),
        len: usize::MAX / 2,
    }; 3];
    let impossible = huge.map(|buf| uv_buf_t {
        len: usize::MAX,
        ..buf
    });
    let byte = repeated(b"x", 1);
    // SAFETY: the kernel finds out before it touches anything.
    unsafe {
        let read =
            both(|loop_, req, cb| uv_fs_read(loop_, req, file.0, impossible.as_ptr(), 3, 0, cb));
        assert_eq!(read, error(libc::EINVAL));
        let read = both(|loop_, req, cb| uv_fs_read(loop_, req, file.0, huge.as_ptr(), 1, 0, cb));
        assert_eq!(read, error(libc::EFAULT));
        let write =
            both(|loop_, req, cb| uv_fs_write(loop_, req, file.0, byte.as_ptr(), 1, i64::MAX, cb));
        assert!(write[0] < 0 && write[0] == write[1]);
        let cut = both(|loop_, req, cb| uv_fs_ftruncate(loop_, req, file.0, i64::MAX, cb));
        assert!(cut[0] < 0 && cut[0] == cut[1]);
        assert_eq!(
            both(|loop_, req, cb| uv_fs_ftruncate(loop_, req, file.0, -1, cb)),
            error(libc::EINVAL)
        );
        let to = File::open(&scratch.c("to"), libc::O_WRONLY | libc::O_CREAT);
        let sent = both(|loop_, req, cb| uv_fs_sendfile(loop_, req, to.0, file.0, 1, AT_ONCE, cb));
        assert_eq!(sent, [3, 3]);
        // More than the kernel writes in one call is refused before anything is done.
        let just_too_much = [uv_buf_t {
            base: null_mut(),
            len: AT_ONCE / 2 + 1,
        }; 2];
        let mut loop_ = OwnLoop::new();
        for cb in [None, Some(ignore as unsafe extern "C" fn(_))] {
            let mut req = request();
            let (loop_, req) = (loop_.ptr(), &raw mut *req);
            let refused = [
                uv_fs_write(loop_, req, file.0, huge.as_ptr(), 1, -1, cb),
                uv_fs_write(loop_, req, file.0, huge.as_ptr(), 3, 0, cb),
                uv_fs_write(loop_, req, file.0, impossible.as_ptr(), 3, 0, cb),
                uv_fs_write(loop_, req, file.0, just_too_much.as_ptr(), 2, 0, cb),
                uv_fs_sendfile(loop_, req, to.0, file.0, 0, AT_ONCE + 1, cb),
            ];
            assert_eq!(refused, [-libc::EINVAL; 5]);
            (*req).clean_up();
        }
        loop_.run();
    }
    assert_eq!(std::fs::read(scratch.at("to")).unwrap(), b"extext");
}

#[test]
fn links_and_paths_of_any_length() {
    let scratch = Scratch::new("long");
    let target = "x".repeat(4000);
    symlink(&target, scratch.at("link")).unwrap();
    let link = scratch.c("link");
    let mut req = request();
    // SAFETY: the path outlives the request, and there is no callback.
    unsafe {
        assert_eq!(
            uv_fs_readlink(null_mut(), &mut *req, link.as_ptr(), None),
            0
        );
        assert_eq!(req.text().to_str(), Ok(target.as_str()));
        req.clean_up();
    }
    let deep = scratch.root().canonicalize().unwrap().join("d".repeat(250));
    let deep = (0..10).fold(deep, |path, _| path.join("e".repeat(250)));
    std::fs::create_dir_all(&deep).unwrap();
    let dotted = c_path(&deep.join("..").join(".").join("e".repeat(250)));
    // SAFETY: as above.
    unsafe {
        assert_eq!(
            uv_fs_realpath(null_mut(), &mut *req, dotted.as_ptr(), None),
            0
        );
        assert_eq!(req.text().to_str().ok(), deep.to_str());
        req.clean_up();
    }
}

#[test]
fn what_is_opened_does_not_survive_exec() {
    let scratch = Scratch::new("exec");
    let file = File::open(&scratch.c("file"), libc::O_RDWR | libc::O_CREAT);
    let mut req = request();
    let template = scratch.c("XXXXXX");
    // SAFETY: the template outlives the request, and there is no callback.
    let made = unsafe { uv_fs_mkstemp(null_mut(), &mut *req, template.as_ptr(), None) };
    assert!(made >= 0);
    assert_ne!(
        req.path(),
        Some(template.as_c_str()),
        "the caller's is not touched"
    );
    req.clean_up();
    for fd in [file.0, made] {
        // SAFETY: no pointers.
        assert_eq!(unsafe { libc::fcntl(fd, libc::F_GETFD) }, libc::FD_CLOEXEC);
    }
    drop(File(made));
}

#[test]
fn a_failed_copy_leaves_what_it_should() {
    let scratch = Scratch::new("copy");
    std::fs::create_dir(scratch.at("dir")).unwrap();
    std::fs::write(scratch.at("from"), "new").unwrap();
    std::fs::write(scratch.at("to"), "old").unwrap();
    std::fs::set_permissions(scratch.at("from"), PermissionsExt::from_mode(0o640)).unwrap();
    symlink("from", scratch.at("alias")).unwrap();
    let names = ["dir", "from", "to", "alias", "fresh"].map(|name| scratch.c(name));
    let [dir, from, to, alias, fresh] = names.each_ref().map(|name| name.as_ptr());
    // SAFETY: the paths outlive the requests.
    let copy =
        |a, b, flags| both(|loop_, req, cb| unsafe { uv_fs_copyfile(loop_, req, a, b, flags, cb) });
    assert_eq!(copy(dir, to, 0), error(libc::EISDIR));
    assert_eq!(copy(from, to, 1), error(libc::EEXIST));
    assert_eq!(std::fs::read(scratch.at("to")).unwrap(), b"old");
    assert_eq!(copy(from, from, 0), [0, 0]);
    assert_eq!(copy(alias, from, 2), [0, 0]);
    assert_eq!(std::fs::read(scratch.at("from")).unwrap(), b"new");
    let device = copy(from, c"/dev/full".as_ptr(), 0);
    assert!(device[0] < 0 && device[0] == device[1]);
    assert!(
        std::fs::metadata("/dev/full").is_ok(),
        "a device is not removed"
    );
    assert_eq!(copy(from, to, 2), [0, 0]);
    assert_eq!(std::fs::read(scratch.at("to")).unwrap(), b"new");
    assert_eq!(
        std::fs::metadata(scratch.at("to")).unwrap().mode() & 0o7777,
        0o640
    );
    // SAFETY: as above.
    let cloned = both(|loop_, req, cb| unsafe { uv_fs_copyfile(loop_, req, from, fresh, 4, cb) });
    assert_eq!(cloned[0] == 0, scratch.at("fresh").exists());
}

#[test]
fn times_are_set_with_fractions_now_or_not_at_all() {
    let scratch = Scratch::new("times");
    std::fs::write(scratch.at("file"), "").unwrap();
    symlink("file", scratch.at("link")).unwrap();
    let (path, link) = (scratch.c("file"), scratch.c("link"));
    let set = |path: &CString, atime: f64, mtime: f64| {
        // SAFETY: the path outlives the request.
        both(|loop_, req, cb| unsafe { uv_fs_lutime(loop_, req, path.as_ptr(), atime, mtime, cb) })
    };
    let times = |path: &CString| {
        let mut req = request();
        // SAFETY: the path outlives the request, and there is no callback.
        unsafe { uv_fs_lstat(null_mut(), &mut *req, path.as_ptr(), None) };
        let [access, modification, ..] = fs::times(&req.stat());
        [access, modification]
    };
    assert_eq!(set(&path, 1.25, -0.5), [0, 0]);
    assert_eq!(times(&path), [[1, 250_000_000], [-1, 500_000_000]]);
    assert_eq!(set(&path, f64::NAN, 7.0), [0, 0]);
    assert_eq!(times(&path), [[1, 250_000_000], [7, 0]]);
    assert_eq!(set(&link, 3.0, 4.0), [0, 0]);
    assert_eq!(times(&link)[1], [4, 0]);
    assert_eq!(times(&path)[1], [7, 0], "the file is not the link");
    assert_eq!(set(&path, f64::INFINITY, f64::NAN), [0, 0]);
    assert!(times(&path)[0][0] > 1_700_000_000);
    assert_eq!(set(&path, 1e30, 1.0), error(libc::EINVAL));
    assert_eq!(times(&path)[1], [7, 0]);
}

#[test]
fn scanned_names_stay_until_the_end() {
    let scratch = Scratch::new("scan");
    for index in 0..200 {
        std::fs::write(scratch.at(&format!("{index:03}")), "").unwrap();
    }
    let root = c_path(scratch.root());
    let mut req = request();
    // SAFETY: the path outlives the request, and there is no callback; the names live until the
    // last was handed out.
    unsafe {
        assert_eq!(
            uv_fs_scandir(null_mut(), &mut *req, root.as_ptr(), 0, None),
            200
        );
        let mut names = Vec::new();
        let mut entry = uv_dirent_t {
            name: null(),
            type_: 0,
        };
        for _ in 0..200 {
            assert_eq!(uv_fs_scandir_next(&mut *req, &mut entry), 0);
            assert_eq!(entry.type_, 1);
            names.push(entry.name);
        }
        for (index, name) in names.into_iter().enumerate() {
            let name = std::ffi::CStr::from_ptr(name).to_str().unwrap();
            assert_eq!(name, format!("{index:03}"));
        }
        assert_eq!(uv_fs_scandir_next(&mut *req, &mut entry), UV_EOF);
        assert_eq!(uv_fs_scandir_next(&mut *req, &mut entry), UV_EOF);
        req.clean_up();
    }
}

#[test]
fn a_file_is_described_as_the_system_describes_it() {
    let scratch = Scratch::new("stat");
    std::fs::write(scratch.at("file"), "four").unwrap();
    let path = scratch.c("file");
    let mut req = request();
    // SAFETY: the path outlives the request, and there is no callback.
    unsafe { assert_eq!(uv_fs_stat(null_mut(), &mut *req, path.as_ptr(), None), 0) };
    let (ours, theirs) = (req.stat(), std::fs::metadata(scratch.at("file")).unwrap());
    let expected = [
        theirs.dev(),
        theirs.mode().into(),
        theirs.nlink(),
        theirs.uid().into(),
        theirs.gid().into(),
        theirs.rdev(),
        theirs.ino(),
        theirs.size(),
        theirs.blksize(),
        theirs.blocks(),
        0,
        0,
    ];
    assert_eq!(numbers(&ours), expected);
    assert_eq!(ours.st_size, 4);
    let times = times(&ours);
    assert_eq!(times[0], [theirs.atime(), theirs.atime_nsec()]);
    assert_eq!(times[1], [theirs.mtime(), theirs.mtime_nsec()]);
    assert_eq!(times[2], [theirs.ctime(), theirs.ctime_nsec()]);
    if let Ok(birth) = theirs.created() {
        let since = birth.duration_since(std::time::UNIX_EPOCH).unwrap();
        let birth = [since.as_secs() as i64, i64::from(since.subsec_nanos())];
        assert_eq!(times[3], birth);
    }
    req.clean_up();
}

/// Keeps a worker busy until the test lets go.
static GATE: std::sync::Mutex<()> = std::sync::Mutex::new(());

unsafe extern "C" fn wait_at_gate(_: *mut uv_work_t) {
    drop(GATE.lock().unwrap());
}

#[test]
fn what_no_worker_has_yet_can_be_cancelled() {
    let scratch = Scratch::new("cancel");
    std::fs::write(scratch.at("file"), "keep").unwrap();
    let (path, to) = (scratch.c("file"), scratch.c("to"));
    let file = File::open(&path, libc::O_RDWR);
    let bufs = repeated(b"lost", 9);
    let mut loop_ = OwnLoop::new();
    let mut workers: Vec<uv_work_t> = (0..64).map(|_| zeroed()).collect();
    let mut requests = [request(), request(), request(), request()];
    let gate = GATE.lock().unwrap();
    // SAFETY: all that is pointed to outlives the run.
    unsafe {
        for work in &mut workers {
            let queued = uv_queue_work(loop_.ptr(), work, Some(wait_at_gate), None);
            assert_eq!(queued, 0);
        }
        let [rename, write, stat, close] = requests.each_mut().map(|req| &raw mut **req);
        let cb: Callback = Some(ignore);
        assert_eq!(
            uv_fs_rename(loop_.ptr(), rename, path.as_ptr(), to.as_ptr(), cb),
            0
        );
        assert_eq!(
            uv_fs_write(loop_.ptr(), write, file.0, bufs.as_ptr(), 9, 0, cb),
            0
        );
        assert_eq!(uv_fs_stat(loop_.ptr(), stat, path.as_ptr(), cb), 0);
        assert_eq!(uv_fs_close(loop_.ptr(), close, file.0, cb), 0);
        for req in [rename, write, stat, close] {
            assert_eq!(uv_cancel(req), 0);
            assert_eq!(uv_cancel(req), 0, "it is cancelled already");
        }
    }
    drop(gate);
    loop_.run();
    for req in &mut requests {
        assert_eq!(req.result(), -libc::ECANCELED);
        req.clean_up();
    }
    assert_eq!(std::fs::read(scratch.at("file")).unwrap(), b"keep");
}
