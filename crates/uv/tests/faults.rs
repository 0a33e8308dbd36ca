//! Every request to the thread pool under every misfortune: one table of requests, and a test
//! for each condition that runs through it. Whatever happens, a request is told exactly once,
//! with the right error, nothing is leaked, and the loop goes on.
//!
//! The pool has one thread here, so that it is full with one request, and it is supervised, so
//! that a request can be caught running and the kernel can be made to refuse anything.
#![allow(
    clashing_extern_declarations,
    reason = "the two views of a request have the same memory behind them"
)]

#[path = "support/allocator.rs"]
mod allocator;
#[path = "support/fs.rs"]
mod fs;
#[path = "support/pool.rs"]
mod pool;
#[path = "support/supervisor.rs"]
mod supervisor;

use fs::{Answer, Scratch, c_path};
use libc::{EACCES, ECANCELED, EMFILE, ENAMETOOLONG, ENOENT, ENOMEM, ENOSPC};
use pool::Request;
use std::cell::{Cell, RefCell};
use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::os::fd::{AsRawFd, IntoRawFd};
use std::os::unix::fs::PermissionsExt;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering::SeqCst};
use std::sync::{Barrier, Mutex, MutexGuard, Once, PoisonError};
use uv_binding::*;

/// What has been told about a request.
#[derive(Default)]
struct Seen {
    told: AtomicU32,
    status: AtomicI32,
}

impl Seen {
    fn tell(&self, status: c_int) {
        self.status.store(status, SeqCst);
        self.told.fetch_add(1, SeqCst);
    }

    fn told(&self) -> u32 {
        self.told.load(SeqCst)
    }
}

/// # Safety
///
/// The request was made by [`Ask::new`].
unsafe fn tell(request: *mut Request, status: c_int) {
    // SAFETY: the caller vouches for it.
    unsafe { Request::data::<Seen>(request) }.tell(status);
}

unsafe extern "C" fn on_fs(request: *mut uv_fs_t) {
    // SAFETY: the request is done, and ours.
    unsafe { tell(request.cast(), uv_fs_get_result(request) as c_int) }
}

unsafe extern "C" fn work(_: *mut Request) {
    // SAFETY: it takes nothing; it is the system call by which this work is known to run.
    unsafe { libc::getppid() };
}

unsafe extern "C" fn on_work(request: *mut Request, status: c_int) {
    // SAFETY: the request is ours.
    unsafe { tell(request, status) }
}

unsafe extern "C" fn on_random(request: *mut Request, status: c_int, _: *mut c_void, _: usize) {
    // SAFETY: the request is ours.
    unsafe { tell(request, status) }
}

unsafe extern "C" fn on_addresses(request: *mut Request, status: c_int, list: *mut libc::addrinfo) {
    assert_eq!(list.is_null(), status != 0);
    // SAFETY: the list is ours to free, and so is the request.
    unsafe {
        uv_freeaddrinfo(list);
        tell(request, status);
    }
}

unsafe extern "C" fn on_name(
    request: *mut Request,
    status: c_int,
    host: *const c_char,
    _: *const c_char,
) {
    assert_eq!(host.is_null(), status != 0);
    // SAFETY: the request is ours.
    unsafe { tell(request, status) }
}

/// What requests are about: some files, and how they are named.
struct World {
    scratch: Scratch,
    /// Put in front of every name.
    prefix: String,
    names: RefCell<Vec<CString>>,
    from: c_int,
    to: c_int,
    dir: Cell<*mut uv_dir_t>,
    _entries: Box<[uv_dirent_t; 8]>,
    bytes: RefCell<[u8; 4]>,
    bufs: Cell<[uv_buf_t; 6]>,
}

impl World {
    fn new() -> World {
        World::at(Scratch::new("faults"), String::new())
    }

    fn at(scratch: Scratch, prefix: String) -> World {
        let open = |name| {
            let mut options = std::fs::File::options();
            let options = options.read(true).write(true).create(true);
            options.open(scratch.at(name)).unwrap().into_raw_fd()
        };
        std::fs::write(scratch.at("file"), "text").unwrap();
        std::os::unix::fs::symlink("file", scratch.at("link")).unwrap();
        std::fs::create_dir(scratch.at("dir")).unwrap();
        let (from, to) = (open("file"), open("other"));
        let mut request = fs::request();
        let root = c_path(scratch.root());
        // SAFETY: the path lives through the call, which has no callback.
        unsafe { uv_fs_opendir(null_mut(), &mut *request, root.as_ptr(), None) };
        let dir: *mut uv_dir_t = request.ptr().cast();
        request.clean_up();
        let no_entry = uv_dirent_t {
            name: null(),
            type_: 0,
        };
        let mut entries = Box::new([no_entry; 8]);
        // SAFETY: the directory was opened, and its entries live as long.
        unsafe {
            (*dir).dirents = entries.as_mut_ptr();
            (*dir).nentries = entries.len();
        }
        let no_buf = uv_buf_t {
            base: null_mut(),
            len: 0,
        };
        World {
            scratch,
            prefix,
            names: RefCell::default(),
            from,
            to,
            dir: Cell::new(dir),
            _entries: entries,
            bytes: RefCell::new(*b"text"),
            bufs: Cell::new([no_buf; 6]),
        }
    }

    /// The path of a file, which lives as long as the world.
    fn path(&self, name: &str) -> *const c_char {
        let name = self.scratch.c(&format!("{}{name}", self.prefix));
        let path = name.as_ptr();
        self.names.borrow_mut().push(name);
        path
    }

    /// More buffers than fit into a request.
    fn bufs(&self) -> *const uv_buf_t {
        let base = self.bytes.as_ptr().cast::<c_char>();
        self.bufs.set([uv_buf_t { base, len: 4 }; 6]);
        self.bufs.as_ptr().cast()
    }

    /// A directory is gone once it has been closed.
    fn without_dir(&self) {
        self.dir.set(null_mut());
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if !self.dir.get().is_null() {
            close_dir(self.dir.get());
        }
        for fd in [self.from, self.to] {
            // SAFETY: it is ours; one that a request has closed is not anybody's by now.
            unsafe { libc::close(fd) };
        }
        // What is closed to us cannot be removed; it may be gone already.
        let open = std::fs::Permissions::from_mode(0o700);
        let _ = std::fs::set_permissions(self.scratch.at("dir"), open);
    }
}

fn close_dir(dir: *mut uv_dir_t) {
    let mut request = fs::request();
    // SAFETY: the directory is open, and there is no callback.
    unsafe { assert_eq!(uv_fs_closedir(null_mut(), &mut *request, dir, None), 0) };
}

/// What a request is like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// Asks for something else than a file.
    Other,
    /// Looks a name up, or an address.
    Lookup,
    /// Is about an open file.
    OnFile,
    /// Is about names.
    OnPath,
    /// Is about names, and makes something new.
    Making,
    /// Gives back what is open, which the kernel never refuses.
    Closing,
}

/// A row of the table.
struct Case {
    name: &'static str,
    kind: Kind,
    start: fn(&World, *mut uv_loop_t, *mut Request, is_async: bool) -> c_int,
}

macro_rules! fs {
    ($kind:ident $function:ident(|$world:ident| $($argument:expr),*)) => {
        Case {
            name: stringify!($function),
            kind: Kind::$kind,
            start: |$world, lp, request, is_async| {
                let cb = is_async.then_some(on_fs as unsafe extern "C" fn(_));
                // SAFETY: request, loop and world live until the request is done.
                unsafe { $function(lp, request.cast(), $($argument,)* cb) }
            },
        }
    };
}

/// The owner stays who it is.
const SAME: c_uint = c_uint::MAX;

const CASES: [Case; 40] = [
    Case {
        name: "uv_queue_work",
        kind: Kind::Other,
        // SAFETY: request and loop live until the request is done.
        start: |_, lp, request, _| unsafe { uv_queue_work(lp, request, Some(work), Some(on_work)) },
    },
    Case {
        name: "uv_random",
        kind: Kind::Other,
        // SAFETY: as above, and so do the bytes.
        start: |world, lp, request, _| unsafe {
            let bytes = world.bytes.as_ptr().cast();
            uv_random(lp, request, bytes, 4, 0, Some(on_random))
        },
    },
    Case {
        name: "uv_getaddrinfo",
        kind: Kind::Lookup,
        // An address is known without asking anybody; only the interfaces are looked at.
        // SAFETY: as above; what is asked for is copied.
        start: |_, lp, request, _| unsafe {
            let mut hints: libc::addrinfo = std::mem::zeroed();
            hints.ai_flags = libc::AI_ADDRCONFIG;
            let (node, service) = (c"127.0.0.1".as_ptr(), c"80".as_ptr());
            uv_getaddrinfo(lp, request, Some(on_addresses), node, service, &hints)
        },
    },
    Case {
        name: "uv_getnameinfo",
        kind: Kind::Lookup,
        // The name of the interface is part of such an address.
        // SAFETY: as above; the address is copied.
        start: |_, lp, request, _| unsafe {
            let mut address: libc::sockaddr_in6 = std::mem::zeroed();
            address.sin6_family = libc::AF_INET6 as _;
            address.sin6_addr.s6_addr = "fe80::1".parse::<std::net::Ipv6Addr>().unwrap().octets();
            address.sin6_scope_id = 1;
            let flags = libc::NI_NUMERICHOST | libc::NI_NUMERICSERV;
            uv_getnameinfo(lp, request, Some(on_name), (&raw const address), flags)
        },
    },
    fs!(OnPath uv_fs_open(|w| w.path("file"), libc::O_RDWR, 0)),
    fs!(Closing uv_fs_close(|w| w.from)),
    fs!(OnFile uv_fs_read(|w| w.from, w.bufs(), 6, 0)),
    fs!(OnFile uv_fs_write(|w| w.to, w.bufs(), 6, 0)),
    fs!(OnFile uv_fs_fsync(|w| w.to)),
    fs!(OnFile uv_fs_fdatasync(|w| w.to)),
    fs!(OnFile uv_fs_ftruncate(|w| w.to, 2)),
    fs!(OnFile uv_fs_sendfile(|w| w.to, w.from, 0, 4)),
    fs!(OnFile uv_fs_fstat(|w| w.from)),
    fs!(OnFile uv_fs_fchmod(|w| w.from, 0o600)),
    fs!(OnFile uv_fs_fchown(|w| w.from, SAME, SAME)),
    fs!(OnFile uv_fs_futime(|w| w.from, 1.0, 2.0)),
    fs!(Making uv_fs_copyfile(|w| w.path("file"), w.path("copy"), 0)),
    fs!(OnPath uv_fs_rename(|w| w.path("file"), w.path("renamed"))),
    fs!(Making uv_fs_link(|w| w.path("file"), w.path("second"))),
    fs!(Making uv_fs_symlink(|w| w.path("file"), w.path("pointer"), 0)),
    fs!(OnPath uv_fs_unlink(|w| w.path("file"))),
    fs!(OnPath uv_fs_access(|w| w.path("file"), libc::R_OK)),
    fs!(Making uv_fs_mkstemp(|w| w.path("fXXXXXX"))),
    fs!(Making uv_fs_mkdtemp(|w| w.path("dXXXXXX"))),
    fs!(Making uv_fs_mkdir(|w| w.path("new"), 0o700)),
    fs!(OnPath uv_fs_rmdir(|w| w.path("dir"))),
    fs!(OnPath uv_fs_scandir(|w| w.path(""), 0)),
    fs!(OnPath uv_fs_opendir(|w| w.path(""))),
    fs!(OnFile uv_fs_readdir(|w| w.dir.get())),
    fs!(Closing uv_fs_closedir(|w| w.dir.get())),
    fs!(OnPath uv_fs_readlink(|w| w.path("link"))),
    fs!(OnPath uv_fs_realpath(|w| w.path("link"))),
    fs!(OnPath uv_fs_stat(|w| w.path("file"))),
    fs!(OnPath uv_fs_lstat(|w| w.path("link"))),
    fs!(OnPath uv_fs_statfs(|w| w.path("file"))),
    fs!(OnPath uv_fs_chmod(|w| w.path("file"), 0o600)),
    fs!(OnPath uv_fs_chown(|w| w.path("file"), SAME, SAME)),
    fs!(OnPath uv_fs_lchown(|w| w.path("link"), SAME, SAME)),
    fs!(OnPath uv_fs_utime(|w| w.path("file"), 1.0, 2.0)),
    fs!(OnPath uv_fs_lutime(|w| w.path("link"), 1.0, 2.0)),
];

impl Case {
    fn is_fs(&self) -> bool {
        !matches!(self.kind, Kind::Other | Kind::Lookup)
    }

    /// What a cancelled request of this kind says.
    fn cancelled(&self) -> c_int {
        match self.kind {
            Kind::Lookup => UV_EAI_CANCELED,
            _ => -ECANCELED,
        }
    }
}

/// One request of the table in a world of its own.
struct Ask<'a> {
    case: &'a Case,
    /// Requests point into it, so it stays where it is.
    world: Box<World>,
    request: Box<Request>,
    seen: Box<Seen>,
}

impl<'a> Ask<'a> {
    fn new(case: &'a Case, world: World) -> Ask<'a> {
        let seen = Box::<Seen>::default();
        Ask {
            case,
            world: Box::new(world),
            request: Box::new(Request::with_data(&*seen)),
            seen,
        }
    }

    fn start(&mut self, lp: &mut uv_loop_t) -> c_int {
        (self.case.start)(&self.world, lp, &mut *self.request, true)
    }

    fn cancel(&mut self) -> c_int {
        // SAFETY: the request was started.
        unsafe { uv_cancel(&mut *self.request) }
    }

    /// What the request says at its end, after exactly one word; gives back what it has.
    fn end(mut self) -> c_int {
        assert_eq!(self.seen.told(), 1, "{}", self.case.name);
        let status = self.seen.status.load(SeqCst);
        self.give_back(status);
        status
    }

    fn give_back(&mut self, status: c_int) {
        if !self.case.is_fs() {
            return;
        }
        let request: *mut uv_fs_t = (&raw mut *self.request).cast();
        // SAFETY: the request is over, and these are what it has left us with.
        unsafe {
            match self.case.name {
                "uv_fs_open" | "uv_fs_mkstemp" if status >= 0 => drop(fs::File(status)),
                "uv_fs_opendir" if status == 0 => close_dir((*request).ptr().cast()),
                "uv_fs_closedir" if status == 0 => self.world.without_dir(),
                _ => {}
            }
            // With these it is the program's own directory.
            let is_own = ["uv_fs_readdir", "uv_fs_closedir"].contains(&self.case.name);
            if status < 0 && !is_own {
                assert!((*request).ptr().is_null(), "{}", self.case.name);
            }
            (*request).clean_up();
        }
    }
}

/// The pool, the allocator and the supervisor are the whole process's, and so are descriptors:
/// conditions come one after the other.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    static BEGUN: Once = Once::new();
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    BEGUN.call_once(|| {
        allocator::install();
        // SAFETY: no other thread of this program looks at the environment.
        unsafe { std::env::set_var("UV_THREADPOOL_SIZE", "1") };
        supervisor::begin(|| {
            let mut lp = pool::new_loop();
            let seen = Seen::default();
            let mut request = Request::with_data(&seen);
            // SAFETY: the request lives until the loop has run.
            unsafe { uv_queue_work(&mut *lp, &mut request, Some(work), Some(on_work)) };
            pool::run(&mut lp);
            pool::close(lp);
        });
    });
    alone
}

fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Runs `condition` with each request of the table that is of one of these kinds, and checks
/// that nothing is left behind and the loop still works.
fn each(kinds: &[Kind], condition: impl Fn(&mut uv_loop_t, &Case)) {
    let _alone = alone();
    let mut lp = pool::new_loop();
    work_once(&mut lp);
    for case in CASES.iter().filter(|case| kinds.contains(&case.kind)) {
        let before = (allocator::outstanding(), open_descriptors());
        condition(&mut lp, case);
        let after = (allocator::outstanding(), open_descriptors());
        assert_eq!(after, before, "{} leaves memory or files", case.name);
        work_once(&mut lp);
    }
    pool::close(lp);
}

/// The loop and the pool are alive.
fn work_once(lp: &mut uv_loop_t) {
    let seen = Seen::default();
    let mut request = Request::with_data(&seen);
    // SAFETY: the request lives until the loop has run.
    unsafe {
        assert_eq!(
            uv_queue_work(lp, &mut request, Some(work), Some(on_work)),
            0
        );
    }
    pool::run(lp);
    assert_eq!((seen.told(), seen.status.load(SeqCst)), (1, 0));
}

const ALL: [Kind; 6] = [
    Kind::Other,
    Kind::Lookup,
    Kind::OnFile,
    Kind::OnPath,
    Kind::Making,
    Kind::Closing,
];

unsafe extern "C" fn occupy(request: *mut Request) {
    // SAFETY: `with_full_pool` puts a barrier into the request.
    let gate = unsafe { Request::data::<Barrier>(request) };
    gate.wait();
    gate.wait();
}

/// Runs `call` while the pool's only thread is occupied, and then lets it go on.
fn with_full_pool<R>(lp: &mut uv_loop_t, call: impl FnOnce(&mut uv_loop_t) -> R) -> R {
    let gate = Barrier::new(2);
    let mut request = Request::with_data(&gate);
    // SAFETY: the request lives until the loop has run.
    let queued = unsafe { uv_queue_work(lp, &mut request, Some(occupy), None) };
    assert_eq!(queued, 0);
    gate.wait();
    let result = call(lp);
    gate.wait();
    pool::run(lp);
    result
}

fn run_without_waiting(lp: &mut uv_loop_t) {
    // SAFETY: the loop is this thread's.
    unsafe { uv_run(lp, 2) };
}

#[test]
fn a_full_pool_only_delays() {
    each(&ALL, |lp, case| {
        let ask = with_full_pool(lp, |lp| {
            let mut ask = Ask::new(case, World::new());
            assert_eq!(ask.start(lp), 0, "{}", case.name);
            run_without_waiting(lp);
            assert_eq!(ask.seen.told(), 0, "{}", case.name);
            ask
        });
        let status = ask.end();
        assert!(status >= 0, "{}: {status}", case.name);
    });
}

#[test]
fn a_loop_that_stops_tells_when_it_runs_again() {
    each(&ALL, |lp, case| {
        let mut ask = Ask::new(case, World::new());
        assert_eq!(ask.start(lp), 0, "{}", case.name);
        // SAFETY: the loop is this thread's.
        unsafe {
            uv_stop(lp);
            assert_eq!(uv_run(lp, 0), 1, "{}", case.name);
            assert_eq!(uv_loop_close(lp), -libc::EBUSY, "{}", case.name);
        }
        assert_eq!(ask.seen.told(), 0, "{}", case.name);
        pool::run(lp);
        let status = ask.end();
        assert!(status >= 0, "{}: {status}", case.name);
    });
}

#[test]
fn cancelled_while_queued() {
    each(&ALL, |lp, case| {
        let mut ask = with_full_pool(lp, |lp| {
            let mut ask = Ask::new(case, World::new());
            assert_eq!(ask.start(lp), 0, "{}", case.name);
            assert_eq!(ask.cancel(), 0, "{}", case.name);
            assert_eq!(ask.seen.told(), 0, "{}", case.name);
            ask
        });
        assert_eq!(ask.cancel(), 0, "{}", case.name);
        assert_eq!(ask.end(), case.cancelled(), "{}", case.name);
    });
}

#[test]
fn what_is_cancelled_is_not_done() {
    each(&ALL, |lp, case| {
        let calls = supervisor::counting(|| {
            let ask = with_full_pool(lp, |lp| {
                let mut ask = Ask::new(case, World::new());
                assert_eq!((ask.start(lp), ask.cancel()), (0, 0), "{}", case.name);
                ask
            });
            ask.end();
        });
        assert_eq!(calls, 0, "{}", case.name);
    });
}

#[test]
fn cancelled_while_running() {
    each(&ALL, |lp, case| {
        let mut ask = Ask::new(case, World::new());
        supervisor::hold();
        assert_eq!(ask.start(lp), 0, "{}", case.name);
        supervisor::await_held();
        assert_eq!(ask.cancel(), -libc::EBUSY, "{}", case.name);
        run_without_waiting(lp);
        assert_eq!(ask.seen.told(), 0, "{}", case.name);
        supervisor::release();
        pool::run(lp);
        let status = ask.end();
        assert!(status >= 0, "{}: {status}", case.name);
    });
}

#[test]
fn cancelled_when_done_but_not_told() {
    each(&ALL, |lp, case| {
        let mut ask = Ask::new(case, World::new());
        assert_eq!(ask.start(lp), 0, "{}", case.name);
        // The pool's only thread does one thing after the other.
        with_full_pool(lp, |_| {
            assert_eq!(ask.cancel(), -libc::EBUSY, "{}", case.name);
            assert_eq!(ask.seen.told(), 0, "{}", case.name);
        });
        let status = ask.end();
        assert!(status >= 0, "{}: {status}", case.name);
    });
}

/// Each system call of a request is refused in turn, alone and with all that follow. Some can be
/// done without, but not all, and the error is what the program is told.
#[test]
fn refused_by_the_kernel() {
    let refusable = ALL.map(|kind| match kind {
        Kind::Closing => Kind::Other,
        kind => kind,
    });
    for error in [ENOSPC, EACCES, EMFILE, ENOMEM, libc::EIO] {
        each(&refusable, |lp, case| {
            refuse_each_call(lp, case, error, false);
            let failed = refuse_each_call(lp, case, error, true);
            assert!(failed > 0 || !case.is_fs(), "{} ignores {error}", case.name);
        });
    }
}

/// How many refusals were told to the program.
fn refuse_each_call(lp: &mut uv_loop_t, case: &Case, error: c_int, and_the_rest: bool) -> u32 {
    let mut failed = 0;
    for first in 0..50 {
        let mut ask = Ask::new(case, World::new());
        let end = if and_the_rest { usize::MAX } else { first + 1 };
        let (started, refused) = supervisor::refusing(first..end, error, || {
            let started = ask.start(lp);
            pool::run(lp);
            started
        });
        assert_eq!(started, 0, "{}", case.name);
        let status = ask.end();
        if !refused {
            assert!(status >= 0, "{}: {status}", case.name);
            return failed;
        }
        let known = status >= 0 || status == -error || case.kind == Kind::Lookup;
        assert!(known, "{}, call {first}: {status}, not {error}", case.name);
        failed += u32::from(status < 0);
    }
    panic!("{} never ends", case.name)
}

/// Each allocation of a request is refused in turn, on whichever thread it is made, with a
/// callback and without.
#[test]
fn refused_memory() {
    for is_async in [true, false] {
        each(&ALL, |lp, case| {
            if !is_async && !case.is_fs() {
                return;
            }
            for granted in 0.. {
                assert!(granted < 20, "{} never stops allocating", case.name);
                let mut ask = Ask::new(case, World::new());
                let (started, refused) = allocator::refusing(granted, || {
                    let request = &raw mut *ask.request;
                    let started = (case.start)(&ask.world, lp, request, is_async);
                    pool::run(lp);
                    started
                });
                let status = match ask.seen.told() {
                    1 => ask.seen.status.load(SeqCst),
                    _ => started,
                };
                ask.give_back(status);
                match refused {
                    true => assert_eq!(status, -ENOMEM, "{}, {granted}", case.name),
                    false => assert!(status >= 0, "{}: {status}", case.name),
                }
                if !refused {
                    break;
                }
            }
        });
    }
}

/// Makes the request in such a world, and expects this error of it.
fn expect(lp: &mut uv_loop_t, case: &Case, world: World, error: c_int) {
    let mut ask = Ask::new(case, world);
    assert_eq!(ask.start(lp), 0, "{}", case.name);
    pool::run(lp);
    assert_eq!(ask.end(), -error, "{}", case.name);
}

#[test]
fn names_that_are_too_long() {
    each(&[Kind::OnPath, Kind::Making], |lp, case| {
        let world = World::at(Scratch::new("faults"), "n".repeat(300));
        expect(lp, case, world, ENAMETOOLONG);
    });
}

#[test]
fn a_directory_that_has_vanished() {
    each(&[Kind::OnPath, Kind::Making], |lp, case| {
        let world = World::new();
        std::fs::remove_dir_all(world.scratch.root()).unwrap();
        expect(lp, case, world, ENOENT);
    });
    // What is open stays open.
    each(&[Kind::OnFile, Kind::Closing], |lp, case| {
        let world = World::new();
        std::fs::remove_dir_all(world.scratch.root()).unwrap();
        let mut ask = Ask::new(case, world);
        assert_eq!(ask.start(lp), 0, "{}", case.name);
        pool::run(lp);
        let status = ask.end();
        assert!(status >= 0, "{}: {status}", case.name);
    });
}

const NOBODY: u32 = 65_534;

/// Somebody who may do nothing, for as long as it lives; all threads are.
struct Nobody(u32);

impl Nobody {
    fn new() -> Nobody {
        // SAFETY: no pointers. Who is not root is nobody enough.
        unsafe {
            let user = libc::geteuid();
            if user == 0 {
                assert_eq!(libc::setresuid(NOBODY, NOBODY, user), 0);
            }
            Nobody(user)
        }
    }
}

impl Drop for Nobody {
    fn drop(&mut self) {
        // SAFETY: no pointers; this is who we have been.
        assert_eq!(unsafe { libc::setresuid(self.0, self.0, self.0) }, 0);
    }
}

#[test]
fn a_directory_that_is_closed_to_us() {
    each(&[Kind::OnPath, Kind::Making], |lp, case| {
        let world = World::at(Scratch::new("faults"), "dir/".to_owned());
        let closed = std::fs::Permissions::from_mode(0o000);
        std::fs::set_permissions(world.scratch.at("dir"), closed).unwrap();
        let nobody = Nobody::new();
        let mut ask = Ask::new(case, world);
        assert_eq!(ask.start(lp), 0, "{}", case.name);
        pool::run(lp);
        drop(nobody);
        assert_eq!(ask.end(), -EACCES, "{}", case.name);
    });
}

/// A file system of the test's own with room for what a world needs and no more.
struct Full(CString);

impl Full {
    /// `None` where one may not mount anything.
    fn mount(at: &std::path::Path) -> Option<Full> {
        let at = c_path(at);
        let (kind, options) = (c"tmpfs", c"size=12k,nr_inodes=8");
        // SAFETY: all strings live through the call. The mount is taken away at the end.
        let mounted = unsafe {
            libc::mount(
                kind.as_ptr(),
                at.as_ptr(),
                kind.as_ptr(),
                0,
                options.as_ptr().cast(),
            )
        };
        (mounted == 0).then_some(Full(at))
    }
}

impl Drop for Full {
    fn drop(&mut self) {
        // SAFETY: the path lives through the call.
        unsafe { libc::umount2(self.0.as_ptr(), libc::MNT_DETACH) };
    }
}

#[test]
fn a_file_system_that_is_full() {
    let outer = Scratch::new("full");
    let mut kinds = vec![Kind::Making];
    if Full::mount(outer.root()).is_none() {
        // Without the right to mount, `refused_by_the_kernel` is all there is.
        kinds.clear();
    }
    each(&kinds, |lp, case| {
        let _full = Full::mount(outer.root()).unwrap();
        let world = World::at(outer.below("world"), String::new());
        fill(&world);
        expect(lp, case, world, ENOSPC);
    });
    each(&[Kind::OnFile], |lp, case| {
        if !["uv_fs_write", "uv_fs_sendfile"].contains(&case.name) {
            return;
        }
        let world = World::new();
        let full = std::fs::File::options().write(true).open("/dev/full");
        let full = full.unwrap();
        // SAFETY: both are open, and the copy is the world's to close.
        let copied = unsafe { libc::dup2(full.as_raw_fd(), world.to) };
        assert_eq!(copied, world.to);
        expect(lp, case, world, ENOSPC);
    });
}

/// Uses up what room there is.
fn fill(world: &World) {
    let fill = |number: u32| std::fs::write(world.scratch.at(&format!("fill-{number}")), [1; 4096]);
    let refused = (0..100).find_map(|number| fill(number).err());
    assert_eq!(refused.and_then(|error| error.raw_os_error()), Some(ENOSPC));
}

/// A handle that could not be started is as it was, and can be started later.
#[test]
fn a_watch_that_is_refused_memory() {
    let _alone = alone();
    let mut lp = pool::new_loop();
    let before = allocator::outstanding();
    let mut handle = Box::new(garbage::<uv_fs_poll_t>());
    // SAFETY: there is room for the handle, which lives until it is closed.
    unsafe {
        assert_eq!(uv_fs_poll_init(&mut *lp, &mut *handle), 0);
        for granted in 0.. {
            let start = || uv_fs_poll_start(&mut *handle, None, c"/".as_ptr(), 1);
            let (started, refused) = allocator::refusing(granted, start);
            assert_eq!(started, if refused { -ENOMEM } else { 0 });
            assert_eq!(uv_is_active(&*handle), c_int::from(!refused));
            if !refused {
                break;
            }
        }
        uv_close(&mut *handle, None);
    }
    pool::run(&mut lp);
    assert_eq!(allocator::outstanding(), before);
    pool::close(lp);
}
