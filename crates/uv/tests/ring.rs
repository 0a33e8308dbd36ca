//! Requests for files on a loop's io_uring: they do what the pool does, can be cancelled, and
//! come to their end whatever becomes of the ring.

#[path = "support/fs.rs"]
mod support;
#[path = "support/system.rs"]
mod system;

use std::cell::Cell;
use std::ffi::{CStr, c_int, c_long, c_void};
use std::fs::File as StdFile;
use std::io::{PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use support::*;
use system::must_succeed_in_child;

const UV_LOOP_USE_IO_URING_SQPOLL: c_int = 2;
const ONCE: c_int = 1;
const NOWAIT: c_int = 2;
const POLLERS: [&str; 3] = ["epoll", "poll", "select"];
/// How many requests a ring takes.
const ENTRIES: usize = 256;

unsafe extern "C" {
    fn uv_loop_configure(loop_: *mut Loop, option: c_int, ...) -> c_int;
    fn uv_loop_fork(loop_: *mut Loop) -> c_int;
    fn uv_loop_alive(loop_: *const Loop) -> c_int;
    fn uv_backend_fd(loop_: *const Loop) -> c_int;
    fn uv_metrics_info(loop_: *mut Loop, metrics: *mut [u64; 16]) -> c_int;
}

/// Lets the tests take turns, since they change the environment. `None` on a machine where
/// nobody may have a ring.
fn turn() -> Option<MutexGuard<'static, ()>> {
    static ALONE: Mutex<()> = Mutex::new(());
    static BEGUN: Once = Once::new();
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: the tests take turns, and nobody else changes the environment.
    BEGUN.call_once(|| unsafe { std::env::set_var("UV_USE_IO_URING", "1") });
    match io_uring() {
        Ok(_) => Some(alone),
        Err(error) => {
            eprintln!("skipped: no io_uring here: {error}");
            None
        }
    }
}

/// A ring of our own, to see whether there can be one.
fn io_uring() -> std::io::Result<OwnedFd> {
    let mut parameters = [0u8; 120];
    // SAFETY: the parameters are large enough and all zeros; the descriptor is new and ours.
    unsafe {
        match libc::syscall(libc::SYS_io_uring_setup, 1, parameters.as_mut_ptr()) {
            -1 => Err(std::io::Error::last_os_error()),
            fd => Ok(OwnedFd::from_raw_fd(fd as c_int)),
        }
    }
}

fn permit(loop_: &mut OwnLoop) {
    // SAFETY: the loop is ours.
    let result = unsafe { uv_loop_configure(loop_.ptr(), UV_LOOP_USE_IO_URING_SQPOLL) };
    assert_eq!(result, 0);
}

/// A loop that may have a ring.
fn ring_loop() -> OwnLoop {
    let mut loop_ = OwnLoop::new();
    permit(&mut loop_);
    loop_
}

/// The same on the named poller.
fn ring_loop_on(poller: &str) -> OwnLoop {
    // SAFETY: the tests take turns, and nobody else changes the environment.
    unsafe {
        let before = std::env::var_os("BLACKLIGHT_POLLER");
        std::env::set_var("BLACKLIGHT_POLLER", poller);
        let loop_ = ring_loop();
        match before {
            Some(before) => std::env::set_var("BLACKLIGHT_POLLER", before),
            None => std::env::remove_var("BLACKLIGHT_POLLER"),
        }
        loop_
    }
}

/// Whether the request was last given to a ring: `work_req.done` is null.
fn is_on_ring(request: &Request) -> bool {
    // SAFETY: the offset is within the struct and aligned; any bytes are a pointer.
    unsafe {
        let done = (&raw const *request).byte_add(344);
        done.cast::<*const c_void>().read().is_null()
    }
}

fn cancel(request: &mut Request) -> c_int {
    // SAFETY: the request was submitted.
    unsafe { uv_cancel((&raw mut *request).cast()) }
}

fn turn_once(loop_: &mut OwnLoop, mode: c_int) -> c_int {
    // SAFETY: the loop is ours.
    unsafe { uv_run(loop_.ptr(), mode) }
}

/// Memory to read into, which stays where it is.
struct Room(Box<[u8]>);

impl Room {
    fn new(len: usize) -> Room {
        Room(vec![b'#'; len].into())
    }

    fn buf(&mut self) -> Buf {
        Buf {
            base: self.0.as_mut_ptr().cast(),
            len: self.0.len(),
        }
    }
}

/// A read from a pipe without anything in it, which waits on the ring.
struct Waiting {
    request: Box<Request>,
    room: Room,
    from: PipeReader,
    to: PipeWriter,
}

impl Waiting {
    fn begin(loop_: &mut OwnLoop) -> Waiting {
        let (from, to) = std::io::pipe().unwrap();
        let mut waiting = Waiting {
            request: request(),
            room: Room::new(4),
            from,
            to,
        };
        let (buf, fd) = (waiting.room.buf(), waiting.from.as_raw_fd());
        // SAFETY: the request and its memory live until it is done.
        let result = unsafe {
            uv_fs_read(
                loop_.ptr(),
                &mut *waiting.request,
                fd,
                &buf,
                1,
                -1,
                Some(ignore),
            )
        };
        assert_eq!(result, 0);
        assert!(is_on_ring(&waiting.request));
        waiting
    }

    /// Lets the read come to its end and checks that it does.
    fn finish(mut self, loop_: &mut OwnLoop) {
        self.to.write_all(b"text").unwrap();
        loop_.run();
        assert_eq!(self.request.result(), 4);
        assert_eq!(*self.room.0, *b"text");
        self.request.clean_up();
    }
}

/// What requests are about.
struct World {
    scratch: Scratch,
    /// For reading and writing, reading, and appending.
    file: StdFile,
    reader: StdFile,
    appender: StdFile,
    directory: StdFile,
    full: StdFile,
    pipe: (PipeReader, PipeWriter),
    /// Without a reader.
    broken: PipeWriter,
    spare: Cell<c_int>,
    rooms: [Room; 3],
}

impl World {
    fn new(name: &str) -> World {
        let scratch = Scratch::new(name);
        std::fs::write(scratch.at("file"), "0123456789").unwrap();
        std::os::unix::fs::symlink("file", scratch.at("link")).unwrap();
        std::fs::create_dir_all(scratch.at("full/inside")).unwrap();
        let pipe = std::io::pipe().unwrap();
        // SAFETY: the descriptor is open.
        unsafe { libc::fcntl(pipe.0.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) };
        let mut appending = StdFile::options();
        let appending = appending.append(true).create(true);
        World {
            file: StdFile::options()
                .read(true)
                .write(true)
                .open(scratch.at("file"))
                .unwrap(),
            reader: StdFile::open(scratch.at("file")).unwrap(),
            appender: appending.open(scratch.at("appended")).unwrap(),
            directory: StdFile::open(scratch.root()).unwrap(),
            full: StdFile::options().write(true).open("/dev/full").unwrap(),
            pipe,
            broken: std::io::pipe().unwrap().1,
            spare: Cell::new(StdFile::open("/dev/null").unwrap().into_raw_fd()),
            rooms: [Room::new(1), Room::new(3), Room::new(5)],
            scratch,
        }
    }
}

/// What became of a request.
#[derive(PartialEq, Eq, Debug)]
struct Outcome {
    /// Descriptors that were opened count as zero.
    result: c_int,
    read: Vec<u8>,
    /// Type and permissions, links and size, if it was a question about a file.
    stat: Option<[u64; 3]>,
}

/// The world of one way of doing requests.
struct Way {
    world: World,
    loop_: OwnLoop,
    /// The outcomes by name, and whether each was come by on a ring.
    outcomes: Vec<(String, Outcome, bool)>,
}

type Submit<'a> = &'a dyn Fn(&World, *mut Loop, *mut Request, &[Buf]) -> c_int;

impl Way {
    fn new(name: &str, loop_: OwnLoop) -> Way {
        Way {
            world: World::new(name),
            loop_,
            outcomes: Vec::new(),
        }
    }

    fn ask(&mut self, name: &str, submit: Submit<'_>) {
        let mut request = request();
        let bufs = self.world.rooms.each_mut().map(Room::buf);
        let submitted = submit(&self.world, self.loop_.ptr(), &mut *request, &bufs);
        assert_eq!(submitted, 0, "{name}");
        let on_ring = is_on_ring(&request);
        self.loop_.run();
        let mut result = request.result();
        if name.starts_with("open") && result >= 0 {
            // SAFETY: the request has opened it, for us.
            let opened = unsafe { OwnedFd::from_raw_fd(result) };
            // SAFETY: the descriptor is open.
            let flags = unsafe { libc::fcntl(opened.as_raw_fd(), libc::F_GETFD) };
            assert_eq!(flags, libc::FD_CLOEXEC);
            result = 0;
        }
        let is_stat = !request.ptr().is_null();
        let stat = is_stat.then(|| request.stat()).map(|stat| {
            // Directories have as many bytes as their file system likes.
            let size = u64::from(stat.mode() & libc::S_IFMT != libc::S_IFDIR) * stat.size();
            [u64::from(stat.mode()), stat.numbers[2], size]
        });
        let read = self.world.rooms.iter_mut();
        let read = read.flat_map(|room| std::mem::replace(room, Room::new(room.0.len())).0);
        let outcome = Outcome {
            result,
            read: read.collect(),
            stat,
        };
        self.outcomes.push((name.into(), outcome, on_ring));
        request.clean_up();
    }
}

/// Asks for reading, writing and all else that is done with open files.
fn use_files(way: &mut Way) {
    type Fd = fn(&World) -> c_int;
    let files: [(&str, Fd); 8] = [
        ("file", |world| world.file.as_raw_fd()),
        ("reader", |world| world.reader.as_raw_fd()),
        ("appender", |world| world.appender.as_raw_fd()),
        ("directory", |world| world.directory.as_raw_fd()),
        ("full", |world| world.full.as_raw_fd()),
        ("pipe", |world| world.pipe.0.as_raw_fd()),
        ("broken", |world| world.broken.as_raw_fd()),
        ("nothing", |_| -1),
    ];
    for (name, fd) in files {
        for (offset, nbufs) in [(-1, 1), (-1, 3), (4, 1), (4, 2), (100, 3)] {
            let with = format!("{nbufs} buffers of {name} at {offset}");
            // SAFETY: the buffers live until the request is done; here and below.
            way.ask(&format!("write {with}"), &|world, lp, req, bufs| unsafe {
                uv_fs_write(
                    lp,
                    req,
                    fd(world),
                    bufs.as_ptr(),
                    nbufs,
                    offset,
                    Some(ignore),
                )
            });
            // SAFETY: as above.
            way.ask(&format!("read {with}"), &|world, lp, req, bufs| unsafe {
                uv_fs_read(
                    lp,
                    req,
                    fd(world),
                    bufs.as_ptr(),
                    nbufs,
                    offset,
                    Some(ignore),
                )
            });
        }
        // SAFETY: no pointers, here and below.
        way.ask(&format!("fsync {name}"), &|world, lp, req, _| unsafe {
            uv_fs_fsync(lp, req, fd(world), Some(ignore))
        });
        // SAFETY: as above.
        way.ask(&format!("fdatasync {name}"), &|world, lp, req, _| unsafe {
            uv_fs_fdatasync(lp, req, fd(world), Some(ignore))
        });
        // SAFETY: as above.
        way.ask(&format!("fstat {name}"), &|world, lp, req, _| unsafe {
            uv_fs_fstat(lp, req, fd(world), Some(ignore))
        });
        for length in [7, 20, -1] {
            let what = format!("truncate {name} to {length}");
            // SAFETY: as above.
            way.ask(&what, &|world, lp, req, _| unsafe {
                uv_fs_ftruncate(lp, req, fd(world), length, Some(ignore))
            });
        }
    }
    way.ask(
        "read from a pipe with something in it",
        &|world, lp, req, bufs| {
            (&world.pipe.1).write_all(b"some").unwrap();
            let fd = world.pipe.0.as_raw_fd();
            // SAFETY: the buffers live until the request is done.
            unsafe { uv_fs_read(lp, req, fd, bufs.as_ptr(), 3, -1, Some(ignore)) }
        },
    );
    for what in ["close", "close once more"] {
        // SAFETY: no pointers, and the descriptor is nobody else's.
        way.ask(what, &|world, lp, req, _| unsafe {
            uv_fs_close(lp, req, world.spare.get(), Some(ignore))
        });
    }
}

/// Asks for what is done with names.
fn use_names(way: &mut Way) {
    let long = "x".repeat(300);
    for name in ["file", "link", "full", "missing", "file/below", "", &long] {
        let flags = libc::O_RDWR;
        for (how, flags) in [("", flags), ("new ", flags | libc::O_CREAT | libc::O_EXCL)] {
            // SAFETY: the path is copied, here and below.
            way.ask(&format!("open {how}{name}"), &|world, lp, req, _| unsafe {
                let path = world.scratch.c(name);
                uv_fs_open(lp, req, path.as_ptr(), flags, 0o640, Some(ignore))
            });
        }
        // SAFETY: as above.
        way.ask(&format!("stat {name}"), &|world, lp, req, _| unsafe {
            uv_fs_stat(lp, req, world.scratch.c(name).as_ptr(), Some(ignore))
        });
        // SAFETY: as above.
        way.ask(&format!("lstat {name}"), &|world, lp, req, _| unsafe {
            uv_fs_lstat(lp, req, world.scratch.c(name).as_ptr(), Some(ignore))
        });
        // SAFETY: as above.
        way.ask(&format!("mkdir {name}"), &|world, lp, req, _| unsafe {
            uv_fs_mkdir(lp, req, world.scratch.c(name).as_ptr(), 0o751, Some(ignore))
        });
    }
    type Two =
        unsafe extern "C" fn(*mut Loop, *mut Request, *const i8, *const i8, Callback) -> c_int;
    let twos: [(&str, Two); 3] = [
        ("link", uv_fs_link),
        ("symlink", symlink),
        ("rename", uv_fs_rename),
    ];
    let pairs = [
        ("file", "a"),
        ("file", "full"),
        ("missing", "b"),
        ("full", "a"),
        ("link", "c"),
    ];
    for (what, call) in twos {
        for (from, to) in pairs
            .iter()
            .chain(&[("c", "d/e"), (&long[..], "f"), ("", "")])
        {
            let to = &format!("{what}-{to}");
            // SAFETY: as above.
            way.ask(
                &format!("{what} {from} {to}"),
                &|world, lp, req, _| unsafe {
                    let (from, to) = (world.scratch.c(from), world.scratch.c(to));
                    call(lp, req, from.as_ptr(), to.as_ptr(), Some(ignore))
                },
            );
        }
    }
    for name in [
        "rename-a",
        "full",
        "link-a",
        "missing",
        "symlink-c",
        "link-a/below",
        "",
        &long,
    ] {
        // SAFETY: as above.
        way.ask(&format!("unlink {name}"), &|world, lp, req, _| unsafe {
            uv_fs_unlink(lp, req, world.scratch.c(name).as_ptr(), Some(ignore))
        });
        // SAFETY: as above.
        way.ask(&format!("rmdir {name}"), &|world, lp, req, _| unsafe {
            uv_fs_rmdir(lp, req, world.scratch.c(name).as_ptr(), Some(ignore))
        });
    }
}

/// Without flags, like the others.
unsafe extern "C" fn symlink(
    lp: *mut Loop,
    req: *mut Request,
    target: *const i8,
    path: *const i8,
    cb: Callback,
) -> c_int {
    // SAFETY: the caller's duties are the same.
    unsafe { uv_fs_symlink(lp, req, target, path, 0, cb) }
}

/// What is in a directory and below, with the contents of files.
fn contents(scratch: &Scratch) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut to_visit = vec![scratch.root().to_owned()];
    while let Some(directory) = to_visit.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let (path, type_) = entry
                .map(|it| (it.path(), it.file_type().unwrap()))
                .unwrap();
            let name = path.strip_prefix(scratch.root()).unwrap().to_str().unwrap();
            let is_file = type_.is_file();
            let text = if is_file {
                std::fs::read(&path).unwrap()
            } else {
                Vec::new()
            };
            found.push((name.to_owned(), text));
            if type_.is_dir() {
                to_visit.push(path);
            }
        }
    }
    found.sort();
    found
}

#[test]
fn a_ring_and_the_pool_come_to_the_same() {
    let Some(_turn) = turn() else { return };
    let mut pool = Way::new("by-pool", OwnLoop::new());
    let mut ring = Way::new("by-ring", ring_loop());
    for way in [&mut pool, &mut ring] {
        use_files(way);
        use_names(way);
    }
    assert_eq!(pool.outcomes.len(), ring.outcomes.len());
    for (by_pool, by_ring) in pool.outcomes.iter().zip(&ring.outcomes) {
        assert_eq!((&by_pool.0, &by_pool.1), (&by_ring.0, &by_ring.1));
        assert!(!by_pool.2, "{}", by_pool.0);
    }
    assert_eq!(contents(&pool.world.scratch), contents(&ring.world.scratch));
    let not_on_ring = ring.outcomes.iter().filter(|outcome| !outcome.2);
    for (name, outcome, _) in not_on_ring {
        let is_exception = match name.split(' ').next() {
            Some("read" | "write") => {
                name.contains("pipe") || [-libc::ESPIPE, -libc::EBADF].contains(&outcome.result)
            }
            // Older kernels have no such operation.
            Some("truncate") => true,
            _ => name == "fstat nothing",
        };
        assert!(is_exception, "{name} could be on the ring");
    }
}

#[test]
fn all_that_is_known_of_a_file_is_the_same() {
    let Some(_turn) = turn() else { return };
    let (mut pool, mut ring) = (OwnLoop::new(), ring_loop());
    for path in [c"/", c"/dev/null", c"/proc/self/exe", c"/etc/passwd"] {
        for call in [uv_fs_stat, uv_fs_lstat] {
            let stats = [&mut pool, &mut ring].map(|loop_| {
                let mut request = request();
                // SAFETY: the path is copied.
                unsafe { call(loop_.ptr(), &mut *request, path.as_ptr(), Some(ignore)) };
                loop_.run();
                let stat = request.stat();
                // SAFETY: the request was filled in.
                let statbuf = unsafe { uv_fs_get_statbuf(&mut *request) };
                assert_eq!(request.ptr(), statbuf.cast());
                request.clean_up();
                (stat.numbers, stat.times)
            });
            assert_eq!(stats[0], stats[1], "{path:?}");
        }
    }
}

#[test]
fn each_completion_counts_as_an_event() {
    let Some(_turn) = turn() else { return };
    let events = [OwnLoop::new(), ring_loop()].map(|mut loop_| {
        for _ in 0..3 {
            stat_on(&mut loop_, c"/dev/null");
        }
        let mut metrics = [0; 16];
        // SAFETY: there is room for them.
        assert_eq!(unsafe { uv_metrics_info(loop_.ptr(), &mut metrics) }, 0);
        metrics[1]
    });
    assert_eq!(events, [3, 3]);
}

/// Calls `wake` on another thread as soon as the calling thread waits for events.
fn when_asleep(wake: impl FnOnce() + Send + 'static) {
    let waits = [
        libc::SYS_epoll_wait,
        libc::SYS_epoll_pwait,
        libc::SYS_epoll_pwait2,
    ];
    let waits = waits
        .into_iter()
        .chain([libc::SYS_ppoll, libc::SYS_pselect6]);
    let waits: Vec<String> = waits.map(|call| call.to_string()).collect();
    // SAFETY: it takes nothing.
    let thread = unsafe { libc::gettid() };
    let path = format!("/proc/self/task/{thread}/syscall");
    std::thread::spawn(move || {
        loop {
            let call = std::fs::read_to_string(&path).unwrap();
            let number = call.split(' ').next().unwrap();
            if waits.iter().any(|wait| wait == number) {
                break wake();
            }
            std::thread::yield_now();
        }
    });
}

#[test]
fn a_loop_that_sleeps_is_woken() {
    let Some(_turn) = turn() else { return };
    for poller in POLLERS {
        let mut loop_ = ring_loop_on(poller);
        for _ in 0..3 {
            let mut waiting = Waiting::begin(&mut loop_);
            let mut to = waiting.to.try_clone().unwrap();
            when_asleep(move || to.write_all(b"text").unwrap());
            loop_.run();
            assert_eq!(waiting.request.result(), 4);
            waiting.request.clean_up();
            // SAFETY: the loop is ours. There was no fork, and nothing changes.
            assert_eq!(unsafe { uv_loop_fork(loop_.ptr()) }, 0);
        }
        let mut metrics = [0; 16];
        // SAFETY: there is room for them.
        assert_eq!(unsafe { uv_metrics_info(loop_.ptr(), &mut metrics) }, 0);
        assert_eq!(
            metrics[1..3],
            [3, 0],
            "no event was there before the loop slept"
        );
    }
}

#[test]
fn a_write_that_the_kernel_cuts_short_is_finished() {
    const LEN: usize = 1 << 20;
    let Some(_turn) = turn() else { return };
    let text: Vec<u8> = (0..LEN).map(|at| (at / 255) as u8).collect();
    let buf = |range: std::ops::Range<usize>| Buf {
        base: text[range.clone()].as_ptr().cast(),
        len: range.len(),
    };
    let (first, rest) = (buf(0..99_999), buf(99_999..LEN));
    for bufs in [&[buf(0..LEN)][..], &[first, rest]] {
        let mut loop_ = ring_loop();
        let (mut from, to) = std::io::pipe().unwrap();
        let reader = std::thread::spawn(move || {
            let mut all = Vec::new();
            from.read_to_end(&mut all).unwrap();
            all
        });
        let (mut request, count) = (request(), bufs.len() as u32);
        // SAFETY: the buffers live until the request is done.
        unsafe {
            let (lp, req, fd) = (loop_.ptr(), &mut *request, to.as_raw_fd());
            assert_eq!(
                uv_fs_write(lp, req, fd, bufs.as_ptr(), count, -1, Some(ignore)),
                0
            );
        }
        assert!(is_on_ring(&request));
        loop_.run();
        assert_eq!(request.result(), LEN as c_int);
        assert!(!is_on_ring(&request), "the pool has finished it");
        request.clean_up();
        drop(to);
        assert!(reader.join().unwrap() == text);
    }
}

#[test]
fn more_buffers_than_a_call_takes_are_the_pools() {
    let Some(_turn) = turn() else { return };
    let scratch = Scratch::new("ring-many-buffers");
    let file = File::open(&scratch.c("file"), libc::O_RDWR | libc::O_CREAT);
    let (mut loop_, bufs) = (ring_loop(), repeated(b"text", 1025));
    for (count, on_ring) in [(1024, true), (1025, false)] {
        let mut request = request();
        // SAFETY: the buffers live until the request is done.
        unsafe {
            let (lp, req) = (loop_.ptr(), &mut *request);
            uv_fs_write(lp, req, file.0, bufs.as_ptr(), count, 0, Some(ignore));
        }
        assert_eq!(is_on_ring(&request), on_ring);
        loop_.run();
        assert_eq!(request.result(), 4 * count as c_int);
        request.clean_up();
    }
}

#[test]
fn a_read_that_waits_can_be_cancelled() {
    let Some(_turn) = turn() else { return };
    for poller in POLLERS {
        let mut loop_ = ring_loop_on(poller);
        let (mut one, other) = (Waiting::begin(&mut loop_), Waiting::begin(&mut loop_));
        assert_eq!(turn_once(&mut loop_, NOWAIT), 1, "the loop is alive");
        // SAFETY: the loop is ours.
        assert_eq!(unsafe { uv_loop_close(loop_.ptr()) }, -libc::EBUSY);
        assert_eq!(cancel(&mut one.request), 0);
        assert_eq!(cancel(&mut one.request), -libc::EBUSY);
        assert_eq!(
            one.request.result(),
            0,
            "nothing is told before the loop runs"
        );
        turn_once(&mut loop_, ONCE);
        assert_eq!(one.request.result(), -libc::ECANCELED, "{poller}");
        one.request.clean_up();
        one.to.write_all(b"rest").unwrap();
        let mut rest = [0; 4];
        one.from.read_exact(&mut rest).unwrap();
        assert_eq!((&rest, &*one.room.0), (b"rest", &b"####"[..]));
        other.finish(&mut loop_);
    }
}

#[test]
fn what_is_done_is_too_late_to_cancel() {
    let Some(_turn) = turn() else { return };
    let mut loop_ = ring_loop();
    let mut waiting = Waiting::begin(&mut loop_);
    waiting.to.write_all(b"text").unwrap();
    assert_eq!(cancel(&mut waiting.request), -libc::EBUSY);
    loop_.run();
    assert_eq!(waiting.request.result(), 4);
    assert_eq!(cancel(&mut waiting.request), -libc::EBUSY);
    waiting.request.clean_up();
}

/// Opening a fifo waits for somebody to open the other end, on a thread of the kernel's, and
/// is beyond cancellation once it does. The kernel gives it up all the same, and nobody may
/// notice.
#[test]
fn a_cancellation_that_comes_too_late_changes_nothing() {
    let Some(_turn) = turn() else { return };
    let scratch = Scratch::new("ring-fifo");
    let fifo = scratch.c("fifo");
    // SAFETY: the path lives through the call.
    assert_eq!(unsafe { libc::mkfifo(fifo.as_ptr(), 0o600) }, 0);
    let mut loop_ = ring_loop();
    loop {
        let mut request = request();
        // SAFETY: the path is copied.
        unsafe {
            let (lp, req) = (loop_.ptr(), &mut *request);
            assert_eq!(
                uv_fs_open(lp, req, fifo.as_ptr(), libc::O_RDONLY, 0, Some(ignore)),
                0
            );
        }
        assert!(is_on_ring(&request));
        std::thread::yield_now();
        if cancel(&mut request) == 0 {
            // No thread had got to it yet. The next may be there in time.
            loop_.run();
            assert_eq!(request.result(), -libc::ECANCELED);
            request.clean_up();
            continue;
        }
        let path = scratch.at("fifo");
        let opener = std::thread::spawn(|| StdFile::options().write(true).open(path));
        loop_.run();
        let opened = request.result();
        assert!(opened >= 0, "{opened}");
        // SAFETY: the request has opened it, for us.
        drop(unsafe { OwnedFd::from_raw_fd(opened) });
        request.clean_up();
        opener.join().unwrap().unwrap();
        return;
    }
}

#[test]
fn what_a_ring_has_no_room_for_is_the_pools() {
    const REQUESTS: usize = ENTRIES + 40;
    let Some(_turn) = turn() else { return };
    for poller in POLLERS {
        let mut loop_ = ring_loop_on(poller);
        let (from, mut to) = std::io::pipe().unwrap();
        let mut requests: Vec<_> = (0..REQUESTS).map(|_| (request(), Room::new(1))).collect();
        for (request, room) in &mut requests {
            let (buf, fd) = (room.buf(), from.as_raw_fd());
            // SAFETY: the request and its memory live until it is done.
            let result =
                unsafe { uv_fs_read(loop_.ptr(), &mut **request, fd, &buf, 1, -1, Some(ignore)) };
            assert_eq!(result, 0);
        }
        let on_ring = requests.iter().filter(|(request, _)| is_on_ring(request));
        assert_eq!(on_ring.count(), ENTRIES);
        let sent: Vec<u8> = (0..REQUESTS).map(|at| at as u8).collect();
        to.write_all(&sent).unwrap();
        loop_.run();
        let mut received: Vec<u8> = requests.iter().map(|(_, room)| room.0[0]).collect();
        received.sort();
        let mut expected = sent;
        expected.sort();
        assert_eq!(received, expected, "{poller}");
        for (request, _) in &mut requests {
            assert_eq!(request.result(), 1);
            request.clean_up();
        }
        // And there is room again.
        Waiting::begin(&mut loop_).finish(&mut loop_);
    }
}

/// A request that reads from `/dev/zero` and makes another when it is done.
unsafe extern "C" fn read_again(request: *mut Request) {
    // SAFETY: the request is done; `data`, which is its first field, points to the chain.
    unsafe {
        let chain = request.cast::<*mut Chain>().read();
        assert_eq!(uv_fs_get_result(request), 4);
        (*chain).done += 1;
        if (*chain).left > 0 {
            (*chain).left -= 1;
            Chain::read(chain, request);
        }
    }
}

struct Chain {
    loop_: *mut Loop,
    file: c_int,
    room: Room,
    done: u32,
    left: u32,
}

impl Chain {
    /// # Safety
    ///
    /// Both live until the chain is at its end.
    unsafe fn read(chain: *mut Chain, request: *mut Request) {
        // SAFETY: the caller vouches for it.
        unsafe {
            request.cast::<*mut Chain>().write(chain);
            let (loop_, file, buf) = ((*chain).loop_, (*chain).file, (*chain).room.buf());
            let result = uv_fs_read(loop_, request, file, &buf, 1, -1, Some(read_again));
            assert_eq!(result, 0);
            assert!(is_on_ring(&*request));
        }
    }
}

#[test]
fn requests_made_by_callbacks_wait_for_the_next_turn() {
    let Some(_turn) = turn() else { return };
    let (mut loop_, mut request) = (ring_loop(), request());
    let zero = File::open(c"/dev/zero", libc::O_RDONLY);
    let mut chain = Chain {
        loop_: loop_.ptr(),
        file: zero.0,
        room: Room::new(4),
        done: 0,
        left: 100,
    };
    // SAFETY: the chain is at its end when the loop has run.
    unsafe { Chain::read(&mut chain, &mut *request) };
    for turn in 1..=101 {
        turn_once(&mut loop_, ONCE);
        assert_eq!(chain.done, turn);
    }
    // SAFETY: the loop is ours.
    assert_eq!(unsafe { uv_loop_alive(loop_.ptr()) }, 0);
    request.clean_up();
}

#[test]
fn who_waits_for_the_loops_descriptor_hears_of_a_ring() {
    let Some(_turn) = turn() else { return };
    let mut loop_ = ring_loop_on("epoll");
    let mut waiting = Waiting::begin(&mut loop_);
    turn_once(&mut loop_, NOWAIT);
    // SAFETY: the loop is ours.
    let fd = unsafe { uv_backend_fd(loop_.ptr()) };
    let readable = |timeout_ms| {
        let mut poll = libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: the array of one lives through the call.
        unsafe { libc::poll(&mut poll, 1, timeout_ms) }
    };
    assert_eq!(readable(0), 0);
    waiting.to.write_all(b"text").unwrap();
    assert_eq!(readable(-1), 1);
    assert_eq!(turn_once(&mut loop_, NOWAIT), 0);
    assert_eq!(waiting.request.result(), 4);
    waiting.request.clean_up();
    turn_once(&mut loop_, NOWAIT);
    assert_eq!(readable(0), 0);
}

#[test]
fn a_child_leaves_its_parents_ring_alone() {
    let Some(_turn) = turn() else { return };
    let mut loop_ = ring_loop();
    let waiting = Waiting::begin(&mut loop_);
    // SAFETY: the child uses what the tests of this program, who take turns, leave usable after a
    // fork, and leaves without running any destructors. An alarm ends it if it hangs.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            libc::alarm(20);
            let before = uv_loop_alive(loop_.ptr()) == 1;
            let forked = uv_loop_fork(loop_.ptr()) == 0 && uv_loop_alive(loop_.ptr()) == 0;
            let mut own = request();
            let path = c"/dev/null".as_ptr();
            uv_fs_stat(loop_.ptr(), &mut *own, path, Some(ignore));
            let on_ring = is_on_ring(&own);
            uv_run(loop_.ptr(), 0);
            let told = own.result() == 0;
            let closed = uv_loop_close(loop_.ptr()) == 0;
            let all = [before, forked, on_ring, told, closed];
            libc::_exit(
                all.iter()
                    .fold(0, |bits, right| bits << 1 | c_int::from(!right)),
            );
        }
        let mut status = -1;
        assert_eq!(libc::waitpid(child, &mut status, 0), child);
        assert_eq!(status, 0, "{:b}", libc::WEXITSTATUS(status));
    }
    waiting.finish(&mut loop_);
}

#[test]
fn a_child_that_forgets_to_fork_its_loop_does_no_harm() {
    let Some(_turn) = turn() else { return };
    let mut loop_ = ring_loop();
    let mut waiting = Waiting::begin(&mut loop_);
    waiting.to.write_all(b"text").unwrap();
    // SAFETY: as above.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            libc::alarm(20);
            let alive = uv_run(loop_.ptr(), NOWAIT) == 1;
            let refused = cancel(&mut waiting.request) == -libc::EBUSY;
            let nothing = waiting.request.result() == 0;
            libc::_exit(c_int::from(!(alive && refused && nothing)));
        }
        let mut status = -1;
        assert_eq!(libc::waitpid(child, &mut status, 0), child);
        assert_eq!(status, 0);
    }
    loop_.run();
    assert_eq!(waiting.request.result(), 4);
    waiting.request.clean_up();
}

#[test]
fn a_loop_that_is_forked_without_a_fork_goes_on() {
    let Some(_turn) = turn() else { return };
    for poller in POLLERS {
        let mut loop_ = ring_loop_on(poller);
        let waiting = Waiting::begin(&mut loop_);
        // SAFETY: the loop is ours.
        assert_eq!(unsafe { uv_loop_fork(loop_.ptr()) }, 0);
        waiting.finish(&mut loop_);
        Waiting::begin(&mut loop_).finish(&mut loop_);
    }
}

#[test]
fn a_request_outlives_the_thread_that_made_it() {
    let Some(_turn) = turn() else { return };
    struct Moved<T>(T);
    // SAFETY: one thread at a time uses the loop and the request.
    unsafe impl<T> Send for Moved<T> {}
    let made = std::thread::spawn(|| {
        let mut loop_ = ring_loop();
        let waiting = Waiting::begin(&mut loop_);
        Moved((loop_, waiting))
    });
    let Moved((mut loop_, waiting)) = made.join().unwrap();
    waiting.finish(&mut loop_);
}

/// Has a system call refused to the calling thread, and to those that it starts.
fn refuse(call: c_long, error: c_int) {
    let step = |code: u32, jt, jf, k| libc::sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    };
    let mut filter = [
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        step(
            libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
            0,
            1,
            call as u32,
        ),
        step(
            libc::BPF_RET | libc::BPF_K,
            0,
            0,
            libc::SECCOMP_RET_ERRNO | error as u32,
        ),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: the program lives through the call.
    unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        let mode = libc::SECCOMP_SET_MODE_FILTER;
        assert_eq!(libc::syscall(libc::SYS_seccomp, mode, 0, &program), 0);
    }
}

/// Asks about a file; whether that was on a ring.
fn stat_on(loop_: &mut OwnLoop, path: &CStr) -> bool {
    let mut request = request();
    // SAFETY: the path is copied.
    let result = unsafe { uv_fs_stat(loop_.ptr(), &mut *request, path.as_ptr(), Some(ignore)) };
    assert_eq!(result, 0);
    let on_ring = is_on_ring(&request);
    loop_.run();
    assert_eq!(request.result(), 0);
    assert_eq!(request.stat().mode() & libc::S_IFMT, libc::S_IFCHR);
    request.clean_up();
    on_ring
}

#[test]
fn without_a_ring_the_pool_does_everything() {
    let Some(_turn) = turn() else { return };
    let refusals = [
        (libc::SYS_io_uring_setup, libc::ENOSYS),
        (libc::SYS_io_uring_setup, libc::EPERM),
        (libc::SYS_io_uring_setup, libc::ENOMEM),
        (libc::SYS_io_uring_register, libc::EINVAL),
        (libc::SYS_io_uring_enter, libc::EPERM),
        (libc::SYS_io_uring_enter, libc::EAGAIN),
    ];
    for (call, error) in refusals {
        let refused = std::thread::spawn(move || {
            refuse(call, error);
            let mut loop_ = ring_loop();
            assert!(!stat_on(&mut loop_, c"/dev/null"));
            assert!(!stat_on(&mut loop_, c"/dev/zero"));
        });
        refused.join().unwrap();
    }
}

/// A sandbox may close round a program that has a ring already.
#[test]
fn a_ring_that_is_cut_off_finishes_what_it_has() {
    let Some(_turn) = turn() else { return };
    let cut_off = std::thread::spawn(|| {
        let mut loop_ = ring_loop();
        let mut waiting = Waiting::begin(&mut loop_);
        assert!(stat_on_while_waiting(&mut loop_));
        refuse(libc::SYS_io_uring_enter, libc::EPERM);
        assert!(!stat_on_while_waiting(&mut loop_));
        assert_eq!(cancel(&mut waiting.request), -libc::EBUSY);
        waiting.finish(&mut loop_);
    });
    cut_off.join().unwrap();
}

/// As [`stat_on`], on a loop that stays alive.
fn stat_on_while_waiting(loop_: &mut OwnLoop) -> bool {
    let mut request = request();
    // SAFETY: the path is copied.
    unsafe {
        uv_fs_stat(
            loop_.ptr(),
            &mut *request,
            c"/dev/null".as_ptr(),
            Some(ignore),
        )
    };
    let on_ring = is_on_ring(&request);
    while request.ptr().is_null() || request.stat().mode() & libc::S_IFMT != libc::S_IFCHR {
        turn_once(loop_, ONCE);
    }
    request.clean_up();
    on_ring
}

/// The rings of this process, and whether a program that it starts would have them.
fn rings() -> Vec<bool> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc/self/fd").unwrap().flatten() {
        let target = std::fs::read_link(entry.path()).unwrap_or_default();
        if target.to_str() == Some("anon_inode:[io_uring]") {
            let fd = entry.file_name().to_str().unwrap().parse().unwrap();
            // SAFETY: any number is allowed.
            found.push(unsafe { libc::fcntl(fd, libc::F_GETFD) } & libc::FD_CLOEXEC == 0);
        }
    }
    found
}

#[test]
fn a_ring_is_made_for_those_who_ask_and_goes_with_its_loop() {
    if turn().is_none() {
        return;
    }
    let name = "a_ring_is_made_for_those_who_ask_and_goes_with_its_loop";
    must_succeed_in_child(name, || {
        let set = |value: &str| {
            // SAFETY: this process has one thread that looks at the environment.
            unsafe { std::env::set_var("UV_USE_IO_URING", value) };
        };
        for value in ["0", "", "-1", "yes", " 0 "] {
            set(value);
            assert!(!stat_on(&mut ring_loop(), c"/dev/null"), "{value:?}");
        }
        // SAFETY: as above.
        unsafe { std::env::remove_var("UV_USE_IO_URING") };
        assert!(!stat_on(&mut ring_loop(), c"/dev/null"));
        set("1");
        assert!(!stat_on(&mut OwnLoop::new(), c"/dev/null"));
        assert_eq!(rings(), []);
        for value in ["1", "2", " 1", "+1"] {
            set(value);
            let mut loop_ = ring_loop();
            assert_eq!(rings(), [], "none is made before it is needed");
            assert!(stat_on(&mut loop_, c"/dev/null"), "{value:?}");
            permit(&mut loop_);
            assert!(stat_on(&mut loop_, c"/dev/null"), "{value:?}");
            assert_eq!(rings(), [false]);
            drop(loop_);
            assert_eq!(rings(), []);
        }
    });
}
