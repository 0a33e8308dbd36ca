//! What a ring makes of requests for files is what the pool makes of them.

#[path = "support/event_loop.rs"]
mod event_loop;
#[path = "support/fs.rs"]
mod fs;
#[path = "support/ring.rs"]
mod ring;

use fs::*;
use ring::{Memory, is_on_ring, ring_loop, turn};
use std::cell::Cell;
use std::ffi::{c_char, c_int};
use std::fs::File as StdFile;
use std::io::{PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd};

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
    rooms: [Memory; 3],
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
            rooms: [Memory::new(1), Memory::new(3), Memory::new(5)],
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

type Submit<'a> = &'a dyn Fn(&World, *mut uv_loop_t, *mut uv_fs_t, &[uv_buf_t]) -> c_int;

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
        let bufs = self.world.rooms.each_mut().map(Memory::buf);
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
            let size =
                u64::from(stat.st_mode as u32 & libc::S_IFMT != libc::S_IFDIR) * stat.st_size;
            [stat.st_mode, stat.st_nlink, size]
        });
        let read = self.world.rooms.iter_mut();
        let read = read.flat_map(|room| std::mem::replace(room, Memory::new(room.0.len())).0);
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
    type Two = unsafe extern "C" fn(
        *mut uv_loop_t,
        *mut uv_fs_t,
        *const c_char,
        *const c_char,
        Callback,
    ) -> c_int;
    let twos: [(&str, Two); 3] = [
        ("link", raw::uv_fs_link),
        ("symlink", symlink),
        ("rename", raw::uv_fs_rename),
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
    lp: *mut uv_loop_t,
    req: *mut uv_fs_t,
    target: *const c_char,
    path: *const c_char,
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
                (numbers(&stat), times(&stat))
            });
            assert_eq!(stats[0], stats[1], "{path:?}");
        }
    }
}

#[test]
fn a_write_that_the_kernel_cuts_short_is_finished() {
    const LEN: usize = 1 << 20;
    let Some(_turn) = turn() else { return };
    let text: Vec<u8> = (0..LEN).map(|at| (at / 255) as u8).collect();
    let buf = |range: std::ops::Range<usize>| uv_buf_t::new(&text[range]);
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
