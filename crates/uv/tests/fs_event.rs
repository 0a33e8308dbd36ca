//! File system event handles, through the C interface. What libuv has on Linux is compared
//! with what the original was seen to do; recursive watching is ours.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use uv as _;

const RENAME: c_int = 1;
const CHANGE: c_int = 2;
const RECURSIVE: c_uint = 4;
const UV_EINVAL: c_int = -libc::EINVAL;
const RUN_ONCE: c_int = 1;
const RUN_NOWAIT: c_int = 2;

#[repr(C, align(16))]
struct Loop([u8; 848]);

type Cb = unsafe extern "C" fn(*mut Handle, *const c_char, c_int, c_int);

/// A `uv_fs_event_t`.
#[repr(C, align(16))]
struct Handle {
    data: *mut c_void,
    rest: [u64; 16],
}

unsafe extern "C" {
    fn uv_loop_init(l: *mut Loop) -> c_int;
    fn uv_loop_close(l: *mut Loop) -> c_int;
    fn uv_loop_fork(l: *mut Loop) -> c_int;
    fn uv_run(l: *mut Loop, mode: c_int) -> c_int;
    fn uv_fs_event_init(l: *mut Loop, handle: *mut Handle) -> c_int;
    fn uv_fs_event_start(handle: *mut Handle, cb: Cb, path: *const c_char, flags: c_uint) -> c_int;
    fn uv_fs_event_stop(handle: *mut Handle) -> c_int;
    fn uv_fs_event_getpath(handle: *mut Handle, buffer: *mut c_char, size: *mut usize) -> c_int;
    fn uv_close(handle: *mut Handle, cb: Option<unsafe extern "C" fn(*mut Handle)>);
    fn uv_is_active(handle: *const Handle) -> c_int;
    fn uv_handle_size(type_: c_int) -> usize;
}

/// A directory of the test's own, removed at its end.
struct Root(PathBuf);

impl Root {
    fn new() -> Root {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "blacklight-fs-event-{}-{}",
            std::process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        );
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).unwrap();
        Root(path)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn write(&self, name: &str) {
        fs::write(self.at(name), name).unwrap();
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn c_path(path: &Path) -> CString {
    CString::new(path.to_str().unwrap()).unwrap()
}

/// A loop with any number of watchers, whose events are collected.
struct Watching {
    l: Box<Loop>,
    handles: Vec<Box<Handle>>,
    log: Box<Vec<Seen>>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Seen {
    handle: usize,
    name: Option<String>,
    events: c_int,
    status: c_int,
}

/// What a handle's `data` points to.
struct Context {
    log: *mut Vec<Seen>,
    handle: usize,
}

unsafe extern "C" fn collect(
    handle: *mut Handle,
    name: *const c_char,
    events: c_int,
    status: c_int,
) {
    // SAFETY: `data` points to a context that outlives the handle, and the name is a C string.
    unsafe {
        let context = &*(*handle).data.cast::<Context>();
        let name = (!name.is_null()).then(|| CStr::from_ptr(name).to_str().unwrap().to_owned());
        (*context.log).push(Seen {
            handle: context.handle,
            name,
            events,
            status,
        });
    }
}

impl Watching {
    fn new() -> Watching {
        let mut l = Box::new(Loop([0; 848]));
        // SAFETY: the memory is a loop's.
        assert_eq!(unsafe { uv_loop_init(&mut *l) }, 0);
        Watching {
            l,
            handles: Vec::new(),
            log: Box::default(),
        }
    }

    fn add(&mut self, path: &Path, flags: c_uint) -> Result<usize, c_int> {
        self.add_with(path, flags, collect)
    }

    fn add_with(&mut self, path: &Path, flags: c_uint, cb: Cb) -> Result<usize, c_int> {
        let handle = self.handles.len();
        let context = Box::leak(Box::new(Context {
            log: &mut *self.log,
            handle,
        }));
        let mut new = Box::new(Handle {
            data: std::ptr::null_mut(),
            rest: [0; 16],
        });
        new.data = (&raw mut *context).cast();
        // SAFETY: an initialised loop, memory for a handle that outlives it, a C string.
        let started = unsafe {
            assert_eq!(uv_fs_event_init(&mut *self.l, &mut *new), 0);
            uv_fs_event_start(&mut *new, cb, c_path(path).as_ptr(), flags)
        };
        self.handles.push(new);
        match started {
            0 => Ok(handle),
            error => Err(error),
        }
    }

    fn run(&mut self, mode: c_int) {
        // SAFETY: an initialised loop.
        unsafe { uv_run(&mut *self.l, mode) };
    }

    /// All that is there to be told.
    fn drain(&mut self) -> Vec<Seen> {
        let mut before = usize::MAX;
        while before != self.log.len() {
            before = self.log.len();
            self.run(RUN_NOWAIT);
        }
        std::mem::take(&mut *self.log)
    }

    /// The same, as names and kinds.
    fn events(&mut self) -> Vec<(String, c_int)> {
        let seen = self.drain().into_iter();
        seen.map(|seen| {
            assert_eq!(seen.status, 0);
            (seen.name.unwrap_or_default(), seen.events)
        })
        .collect()
    }

    fn stop(&mut self, handle: usize) {
        // SAFETY: an initialised handle.
        assert_eq!(unsafe { uv_fs_event_stop(&mut *self.handles[handle]) }, 0);
    }

    fn is_active(&self, handle: usize) -> bool {
        // SAFETY: an initialised handle.
        unsafe { uv_is_active(&*self.handles[handle]) == 1 }
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        // SAFETY: the loop and its handles live to the end of this.
        unsafe {
            for handle in &mut self.handles {
                uv_close(&mut **handle, None);
            }
            uv_run(&mut *self.l, 0);
            assert_eq!(uv_loop_close(&mut *self.l), 0);
        }
    }
}

fn pairs(expected: &[(&str, c_int)]) -> Vec<(String, c_int)> {
    expected
        .iter()
        .map(|&(name, events)| (name.to_owned(), events))
        .collect()
}

#[test]
fn a_directory_tells_what_happens_to_its_entries() {
    let root = Root::new();
    let outside = Root::new();
    let mut watching = Watching::new();
    watching.add(&root.0, 0).unwrap();
    assert_eq!(watching.events(), []);
    root.write("new");
    let created = [("new", RENAME), ("new", CHANGE)];
    assert_eq!(watching.events(), pairs(&created));
    fs::set_permissions(root.at("new"), fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(watching.events(), pairs(&[("new", CHANGE)]));
    fs::rename(root.at("new"), root.at("other")).unwrap();
    assert_eq!(
        watching.events(),
        pairs(&[("new", RENAME), ("other", RENAME)])
    );
    fs::rename(root.at("other"), outside.at("other")).unwrap();
    assert_eq!(watching.events(), pairs(&[("other", RENAME)]));
    fs::rename(outside.at("other"), root.at("back")).unwrap();
    assert_eq!(watching.events(), pairs(&[("back", RENAME)]));
    fs::remove_file(root.at("back")).unwrap();
    assert_eq!(watching.events(), pairs(&[("back", RENAME)]));
    fs::create_dir(root.at("sub")).unwrap();
    root.write("sub/hidden");
    assert_eq!(
        watching.events(),
        pairs(&[("sub", RENAME)]),
        "what is below is not told"
    );
}

#[test]
fn a_file_goes_by_its_last_name_and_ends_when_it_is_replaced() {
    let root = Root::new();
    root.write("file");
    root.write("next");
    let mut watching = Watching::new();
    let handle = watching.add(&root.at("file"), 0).unwrap();
    fs::OpenOptions::new()
        .append(true)
        .open(root.at("file"))
        .unwrap();
    assert_eq!(watching.events(), [], "opening changes nothing");
    root.write("file");
    let events = watching.events();
    assert!(!events.is_empty() && events.iter().all(|event| *event == ("file".into(), CHANGE)));
    fs::rename(root.at("next"), root.at("file")).unwrap();
    let replaced = [("file", CHANGE), ("file", RENAME), ("file", RENAME)];
    assert_eq!(
        watching.events(),
        pairs(&replaced),
        "as the original tells it"
    );
    root.write("file");
    assert_eq!(watching.events(), [], "the new file is another");
    assert!(watching.is_active(handle));
    watching.stop(handle);
    // The path can be watched again, by the same handle.
    let path = c_path(&root.at("file"));
    // SAFETY: an initialised handle and a C string.
    let again =
        unsafe { uv_fs_event_start(&mut *watching.handles[handle], collect, path.as_ptr(), 0) };
    assert_eq!(again, 0);
    root.write("file");
    assert!(!watching.events().is_empty());
}

#[test]
fn many_watchers_share_a_path() {
    let root = Root::new();
    root.write("file");
    let mut watching = Watching::new();
    for _ in 0..3 {
        watching.add(&root.at("file"), 0).unwrap();
    }
    watching.add(&root.at("./file"), 0).unwrap();
    let touch = || fs::set_permissions(root.at("file"), fs::Permissions::from_mode(0o600)).unwrap();
    touch();
    let seen: Vec<usize> = watching.drain().iter().map(|seen| seen.handle).collect();
    assert_eq!(seen, [0, 1, 2, 3], "in the order of their starting");
    watching.stop(1);
    touch();
    let seen: Vec<usize> = watching.drain().iter().map(|seen| seen.handle).collect();
    assert_eq!(seen, [0, 2, 3]);
    // Stopping and starting again puts it last, and gives it nothing from before.
    touch();
    watching.stop(0);
    let path = c_path(&root.at("file"));
    // SAFETY: an initialised handle and a C string.
    unsafe { uv_fs_event_start(&mut *watching.handles[0], collect, path.as_ptr(), 0) };
    touch();
    let seen: Vec<usize> = watching.drain().iter().map(|seen| seen.handle).collect();
    // The kernel joins equal records that follow each other, so one or two are told.
    assert!(
        seen == [2, 3, 0] || seen == [2, 3, 0, 2, 3, 0] || seen == [2, 3, 2, 3, 0],
        "{seen:?}"
    );
    for handle in [0, 2, 3] {
        watching.stop(handle);
    }
    touch();
    assert_eq!(watching.drain(), []);
}

#[test]
fn errors_are_told_at_once() {
    let root = Root::new();
    let mut watching = Watching::new();
    assert_eq!(watching.add(&root.at("missing"), 0), Err(-libc::ENOENT));
    assert_eq!(
        watching.add(&root.at("missing"), RECURSIVE),
        Err(-libc::ENOENT)
    );
    assert_eq!(watching.add(Path::new(""), 0), Err(-libc::ENOENT));
    assert!(!watching.is_active(0));
    root.write("file");
    assert_eq!(
        watching.add(&root.at("file/below"), RECURSIVE),
        Err(-libc::ENOTDIR)
    );
    let handle = watching.add(&root.0, 0).unwrap();
    let path = c_path(&root.0);
    let raw: *mut Handle = &mut *watching.handles[handle];
    // SAFETY: an initialised handle.
    unsafe {
        assert_eq!(
            uv_fs_event_start(raw, collect, path.as_ptr(), 0),
            UV_EINVAL,
            "started"
        );
        assert_eq!(
            uv_fs_event_start(raw, collect, std::ptr::null(), 0),
            UV_EINVAL
        );
        assert_eq!(uv_fs_event_stop(raw), 0);
        assert_eq!(uv_fs_event_stop(raw), 0, "twice is no error");
        assert_eq!(
            uv_fs_event_start(raw, collect, std::ptr::null(), 0),
            UV_EINVAL
        );
        assert_eq!(uv_is_active(raw), 0);
        uv_close(raw, None);
        assert_eq!(
            uv_fs_event_start(raw, collect, path.as_ptr(), 0),
            UV_EINVAL,
            "closing"
        );
        assert_eq!(uv_fs_event_stop(raw), 0);
        assert_eq!(uv_handle_size(3), 136);
    }
}

#[test]
fn the_path_needs_room() {
    let root = Root::new();
    let mut watching = Watching::new();
    let handle = watching.add(&root.0, 0).unwrap();
    let path = c_path(&root.0);
    let len = path.count_bytes();
    let raw: *mut Handle = &mut *watching.handles[handle];
    let mut buffer = [1; 256];
    let mut get = |mut size: usize| {
        // SAFETY: an initialised handle, and a buffer at least that large.
        let code = unsafe { uv_fs_event_getpath(raw, buffer.as_mut_ptr(), &mut size) };
        (code, size)
    };
    assert_eq!(get(0), (UV_EINVAL, 0));
    assert_eq!(get(1), (-libc::ENOBUFS, len + 1));
    assert_eq!(get(len), (-libc::ENOBUFS, len + 1));
    assert_eq!(get(len + 1), (0, len));
    // SAFETY: the buffer ends in a NUL.
    assert_eq!(unsafe { CStr::from_ptr(buffer.as_ptr()) }, &*path);
    watching.stop(handle);
    let mut size = 256;
    let raw: *mut Handle = &mut *watching.handles[handle];
    // SAFETY: as above.
    let code = unsafe { uv_fs_event_getpath(raw, buffer.as_mut_ptr(), &mut size) };
    assert_eq!(code, UV_EINVAL, "a stopped handle has none");
}

/// The handles that the callbacks below stop or close.
static VICTIMS: std::sync::Mutex<Vec<usize>> = std::sync::Mutex::new(Vec::new());

unsafe extern "C" fn stop_all(
    handle: *mut Handle,
    name: *const c_char,
    events: c_int,
    status: c_int,
) {
    // SAFETY: the victims are initialised handles of this loop.
    unsafe {
        collect(handle, name, events, status);
        for victim in VICTIMS.lock().unwrap().drain(..) {
            let victim: *mut Handle = std::ptr::with_exposed_provenance_mut(victim);
            match victim == handle {
                true => uv_close(victim, None),
                false => drop(uv_fs_event_stop(victim)),
            }
        }
    }
}

#[test]
fn a_callback_may_stop_and_close_any_watcher() {
    let root = Root::new();
    let other = Root::new();
    let mut watching = Watching::new();
    watching.add_with(&root.0, 0, stop_all).unwrap();
    watching.add(&root.0, RECURSIVE).unwrap();
    watching.add(&other.0, 0).unwrap();
    let survivor = watching.add(&other.0, 0).unwrap();
    let address = |handle: &mut Box<Handle>| (&raw mut **handle).expose_provenance();
    *VICTIMS.lock().unwrap() = watching.handles[..3].iter_mut().map(address).collect();
    for name in ["a", "b", "c"] {
        root.write(name);
        other.write(name);
    }
    let seen = watching.drain();
    assert_eq!(seen[0].handle, 0);
    assert!(
        seen[1..].iter().all(|seen| seen.handle == survivor),
        "{seen:?}"
    );
    assert_eq!(seen.len(), 1 + 6, "and the survivor loses nothing");
}

#[test]
fn a_tree_is_watched_with_relative_names() {
    let root = Root::new();
    fs::create_dir_all(root.at("a/b")).unwrap();
    root.write("a/b/old");
    let mut watching = Watching::new();
    watching.add(&root.0, RECURSIVE).unwrap();
    assert_eq!(watching.events(), [], "what is there is not told");
    root.write("a/b/old");
    let events = watching.events();
    assert!(events.contains(&("a/b/old".into(), CHANGE)), "{events:?}");
    root.write("a/new");
    assert_eq!(
        watching.events(),
        pairs(&[("a/new", RENAME), ("a/new", CHANGE)])
    );
    fs::set_permissions(root.at("a/b"), fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(
        watching.events(),
        pairs(&[("a/b", CHANGE)]),
        "once, by the directory above"
    );
    fs::remove_file(root.at("a/b/old")).unwrap();
    fs::remove_dir(root.at("a/b")).unwrap();
    assert_eq!(
        watching.events(),
        pairs(&[("a/b/old", RENAME), ("a/b", RENAME)])
    );
}

#[test]
fn new_directories_are_picked_up_with_what_is_in_them() {
    let root = Root::new();
    let mut watching = Watching::new();
    watching.add(&root.0, RECURSIVE).unwrap();
    // All of this happens before the loop hears of the first directory.
    fs::create_dir_all(root.at("x/y/z")).unwrap();
    root.write("x/one");
    root.write("x/y/z/two");
    let mut events = watching.events();
    events.sort();
    let expected = [
        ("x", RENAME),
        ("x/one", RENAME),
        ("x/y", RENAME),
        ("x/y/z", RENAME),
        ("x/y/z/two", RENAME),
    ];
    assert_eq!(events, pairs(&expected), "each once");
    root.write("x/y/z/three");
    let created = [("x/y/z/three", RENAME), ("x/y/z/three", CHANGE)];
    assert_eq!(watching.events(), pairs(&created));
    fs::remove_file(root.at("x/one")).unwrap();
    root.write("x/one");
    let again = [("x/one", RENAME), ("x/one", RENAME), ("x/one", CHANGE)];
    assert_eq!(
        watching.events(),
        pairs(&again),
        "what was found can be created again"
    );
}

#[test]
fn directories_move_in_out_and_about() {
    let root = Root::new();
    let outside = Root::new();
    fs::create_dir_all(outside.at("tree/sub")).unwrap();
    outside.write("tree/sub/file");
    let mut watching = Watching::new();
    watching.add(&root.0, RECURSIVE).unwrap();
    fs::rename(outside.at("tree"), root.at("in")).unwrap();
    let moved_in = [("in", RENAME), ("in/sub", RENAME), ("in/sub/file", RENAME)];
    assert_eq!(watching.events(), pairs(&moved_in));
    fs::rename(root.at("in"), root.at("there")).unwrap();
    let moved = [
        ("in", RENAME),
        ("there", RENAME),
        ("there/sub", RENAME),
        ("there/sub/file", RENAME),
    ];
    assert_eq!(watching.events(), pairs(&moved));
    root.write("there/sub/more");
    let created = [("there/sub/more", RENAME), ("there/sub/more", CHANGE)];
    assert_eq!(watching.events(), pairs(&created), "by its new name");
    fs::rename(root.at("there"), outside.at("out")).unwrap();
    assert_eq!(watching.events(), pairs(&[("there", RENAME)]));
    outside.write("out/sub/unseen");
    assert_eq!(watching.events(), [], "what has left is not watched");
}

#[test]
fn links_are_not_followed_below_the_root() {
    let root = Root::new();
    let outside = Root::new();
    fs::create_dir(outside.at("sub")).unwrap();
    std::os::unix::fs::symlink(&outside.0, root.at("before")).unwrap();
    let link = Root::new();
    std::os::unix::fs::symlink(&root.0, link.at("link")).unwrap();
    let mut watching = Watching::new();
    watching.add(&link.at("link"), RECURSIVE).unwrap();
    std::os::unix::fs::symlink(&outside.0, root.at("after")).unwrap();
    assert_eq!(watching.events(), pairs(&[("after", RENAME)]));
    outside.write("file");
    outside.write("sub/file");
    assert_eq!(watching.events(), []);
}

#[test]
fn a_recursive_watch_of_a_file_is_a_plain_one() {
    let root = Root::new();
    root.write("file");
    let mut watching = Watching::new();
    watching.add(&root.at("file"), RECURSIVE).unwrap();
    fs::remove_file(root.at("file")).unwrap();
    let removed = [("file", CHANGE), ("file", RENAME), ("file", RENAME)];
    assert_eq!(watching.events(), pairs(&removed));
}

#[test]
fn a_tree_may_be_deeper_than_a_path_is_long() {
    let root = Root::new();
    let mut watching = Watching::new();
    watching.add(&root.0, RECURSIVE).unwrap();
    let name = "d".repeat(200);
    // Each step is relative to the last: the whole path is longer than the kernel takes.
    let mut dir = c_path(&root.0);
    let depth = 40;
    // SAFETY: paths are C strings, and descriptors our own.
    unsafe {
        let mut at = libc::open(dir.as_ptr(), libc::O_PATH | libc::O_DIRECTORY);
        dir = CString::new(&*name).unwrap();
        for _ in 0..depth {
            assert_eq!(libc::mkdirat(at, dir.as_ptr(), 0o755), 0);
            let next = libc::openat(at, dir.as_ptr(), libc::O_PATH | libc::O_DIRECTORY);
            libc::close(at);
            at = next;
        }
        let deepest = vec![&*name; depth].join("/");
        let events = watching.events();
        assert_eq!(events.len(), depth);
        assert_eq!(events[depth - 1], (deepest.clone(), RENAME));
        let file = libc::openat(at, c"file".as_ptr(), libc::O_CREAT | libc::O_WRONLY, 0o644);
        assert!(file >= 0);
        assert_eq!(watching.events(), [(format!("{deepest}/file"), RENAME)]);
        libc::close(file);
        libc::close(at);
    }
}

#[test]
fn a_lost_record_is_told_and_made_up_for() {
    let root = Root::new();
    fs::create_dir(root.at("sub")).unwrap();
    let mut watching = Watching::new();
    let plain = watching.add(&root.0, 0).unwrap();
    let tree = watching.add(&root.0, RECURSIVE).unwrap();
    let limit = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
    let limit: usize = limit.trim().parse().unwrap();
    if limit > 200_000 {
        return;
    }
    for n in 0..=limit / 2 + 1 {
        // Two records each that the kernel does not join.
        let path = root.at(&format!("{}", n % 2));
        fs::write(&path, "").unwrap();
        fs::remove_file(&path).unwrap();
    }
    fs::create_dir_all(root.at("lost/below")).unwrap();
    fs::remove_dir(root.at("sub")).unwrap();
    let seen = watching.drain();
    for handle in [plain, tree] {
        let unnamed: Vec<_> = seen
            .iter()
            .filter(|s| s.handle == handle && s.name.is_none())
            .collect();
        assert_eq!(unnamed.len(), 1);
        assert_eq!((unnamed[0].events, unnamed[0].status), (RENAME | CHANGE, 0));
    }
    root.write("lost/below/file");
    let file = [("lost/below/file", RENAME), ("lost/below/file", CHANGE)];
    assert_eq!(
        watching.events(),
        pairs(&file),
        "the directory that was missed is watched"
    );
}

#[test]
fn a_forked_child_watches_for_itself() {
    let root = Root::new();
    fs::create_dir_all(root.at("a/b")).unwrap();
    let mut watching = Watching::new();
    watching.add(&root.0, 0).unwrap();
    watching.add(&root.0, RECURSIVE).unwrap();
    root.write("before");
    // SAFETY: the child uses its copy of the loop and leaves at once. Its one thread was the
    // only one that used the loop.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            let forked = uv_loop_fork(&mut *watching.l);
            let quiet = watching.drain().is_empty();
            root.write("a/b/file");
            let events = watching.events();
            let right = events == pairs(&[("a/b/file", RENAME), ("a/b/file", CHANGE)]);
            libc::_exit(
                c_int::from(forked != 0) | c_int::from(!quiet) << 1 | c_int::from(!right) << 2,
            );
        }
        let mut status = -1;
        assert_eq!(libc::waitpid(child, &mut status, 0), child);
        assert_eq!(status, 0);
    }
    let events = watching.events();
    assert!(
        events.contains(&("a/b/file".into(), CHANGE)),
        "the parent goes on: {events:?}"
    );
    assert_eq!(events.iter().filter(|event| event.0 == "before").count(), 4);
}

fn seed() -> u64 {
    let given = std::env::var("SEED").ok();
    given.map_or(std::process::id().into(), |seed| seed.parse().unwrap())
}

/// A small generator, so that a failure can be repeated from its seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}

/// All paths below a directory, with what tells files apart.
fn walk(root: &Path) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    let mut left = vec![root.to_owned()];
    while let Some(dir) = left.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let entry = entry.unwrap();
            let path = entry.path();
            let name = path
                .strip_prefix(root)
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned();
            found.insert(name, entry.metadata().unwrap().ino());
            if entry.file_type().unwrap().is_dir() {
                left.push(path);
            }
        }
    }
    found
}

/// Does something to a tree, which may well fail.
fn disturb(random: &mut Random, root: &Path, outside: &Path) {
    let names = ["a", "b", "c", "d"];
    let mut path = |base: &Path| {
        let steps = 1 + random.below(4);
        (0..steps).fold(base.to_owned(), |path, _| path.join(names[random.below(4)]))
    };
    let (one, two, away) = (path(root), path(root), path(outside));
    let _ = match random.below(10) {
        0 | 1 => fs::create_dir_all(&one),
        2 | 3 => fs::write(&one, "text"),
        4 => fs::rename(&one, &two),
        5 => fs::rename(&one, &away),
        6 => fs::rename(&away, &one),
        7 => fs::remove_file(&one),
        8 => fs::remove_dir_all(&one),
        _ => fs::create_dir_all(&away).and_then(|()| fs::write(away.join("d"), "")),
    };
}

/// What a program that believes the events thinks is there.
fn believe(known: &mut BTreeMap<String, u64>, root: &Path, seen: &[Seen]) {
    for seen in seen {
        assert_eq!(seen.status, 0);
        let Some(name) = &seen.name else {
            panic!("the queue is long enough for this")
        };
        let below = format!("{name}/");
        let now = fs::symlink_metadata(root.join(name))
            .ok()
            .map(|found| found.ino());
        if known.get(name).copied() != now {
            known.retain(|path, _| path != name && !path.starts_with(&below));
        }
        if let Some(now) = now {
            known.insert(name.clone(), now);
        }
    }
}

#[test]
fn random_changes_leave_no_difference() {
    let seed = seed();
    for round in 0..20 {
        let mut random = Random((seed ^ round << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let (root, outside) = (Root::new(), Root::new());
        (0..30).for_each(|_| disturb(&mut random, &root.0, &outside.0));
        let mut watching = Watching::new();
        watching.add(&root.0, RECURSIVE).unwrap();
        let mut known = walk(&root.0);
        for _ in 0..50 {
            (0..=random.below(10)).for_each(|_| disturb(&mut random, &root.0, &outside.0));
            let seen = watching.drain();
            believe(&mut known, &root.0, &seen);
            assert_eq!(known, walk(&root.0), "SEED={seed}, round {round}");
        }
    }
}

#[test]
fn changes_by_others_meanwhile_leave_no_difference() {
    let seed = seed();
    for round in 0..10 {
        let mut random = Random((seed ^ round << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let (root, outside) = (Root::new(), Root::new());
        let mut watching = Watching::new();
        watching.add(&root.0, RECURSIVE).unwrap();
        let mut known = BTreeMap::new();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                (0..1000).for_each(|_| disturb(&mut random, &root.0, &outside.0));
                root.write("the end");
            });
            let is_end = |seen: &Seen| seen.name.as_deref() == Some("the end");
            let mut ended = false;
            while !ended {
                watching.run(RUN_ONCE);
                ended = watching.log.iter().any(is_end);
                let seen = std::mem::take(&mut *watching.log);
                believe(&mut known, &root.0, &seen);
            }
        });
        let seen = watching.drain();
        believe(&mut known, &root.0, &seen);
        assert_eq!(known, walk(&root.0), "SEED={seed}, round {round}");
    }
}
