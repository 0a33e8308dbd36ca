//! Recursive watching, through the C interface. libuv has none on Linux; this is ours.

#[path = "support/watching.rs"]
mod watching;

use std::collections::BTreeMap;
use std::ffi::{CString, c_int};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use watching::*;

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
    assert!(
        events.contains(&("a/b/old".into(), UV_CHANGE)),
        "{events:?}"
    );
    root.write("a/new");
    assert_eq!(
        watching.events(),
        pairs(&[("a/new", UV_RENAME), ("a/new", UV_CHANGE)])
    );
    fs::set_permissions(root.at("a/b"), fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(
        watching.events(),
        pairs(&[("a/b", UV_RENAME | UV_CHANGE)]),
        "once, by the directory above"
    );
    fs::remove_file(root.at("a/b/old")).unwrap();
    fs::remove_dir(root.at("a/b")).unwrap();
    assert_eq!(
        watching.events(),
        pairs(&[("a/b/old", UV_RENAME), ("a/b", UV_RENAME)])
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
        ("x", UV_RENAME),
        ("x/one", UV_RENAME),
        ("x/y", UV_RENAME),
        ("x/y/z", UV_RENAME),
        ("x/y/z/two", UV_RENAME),
    ];
    assert_eq!(events, pairs(&expected), "each once");
    root.write("x/y/z/three");
    let created = [("x/y/z/three", UV_RENAME), ("x/y/z/three", UV_CHANGE)];
    assert_eq!(watching.events(), pairs(&created));
    fs::remove_file(root.at("x/one")).unwrap();
    root.write("x/one");
    let again = [
        ("x/one", UV_RENAME),
        ("x/one", UV_RENAME),
        ("x/one", UV_CHANGE),
    ];
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
    let moved_in = [
        ("in", UV_RENAME),
        ("in/sub", UV_RENAME),
        ("in/sub/file", UV_RENAME),
    ];
    assert_eq!(watching.events(), pairs(&moved_in));
    fs::rename(root.at("in"), root.at("there")).unwrap();
    let moved = [
        ("in", UV_RENAME),
        ("there", UV_RENAME),
        ("there/sub", UV_RENAME),
        ("there/sub/file", UV_RENAME),
    ];
    assert_eq!(watching.events(), pairs(&moved));
    root.write("there/sub/more");
    let created = [("there/sub/more", UV_RENAME), ("there/sub/more", UV_CHANGE)];
    assert_eq!(watching.events(), pairs(&created), "by its new name");
    fs::rename(root.at("there"), outside.at("out")).unwrap();
    assert_eq!(watching.events(), pairs(&[("there", UV_RENAME)]));
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
    assert_eq!(watching.events(), pairs(&[("after", UV_RENAME)]));
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
    let removed = [
        ("file", UV_CHANGE),
        ("file", UV_RENAME),
        ("file", UV_RENAME),
    ];
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
        assert_eq!(events[depth - 1], (deepest.clone(), UV_RENAME));
        let file = libc::openat(at, c"file".as_ptr(), libc::O_CREAT | libc::O_WRONLY, 0o644);
        assert!(file >= 0);
        assert_eq!(watching.events(), [(format!("{deepest}/file"), UV_RENAME)]);
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
        assert_eq!(
            (unnamed[0].events, unnamed[0].status),
            (UV_RENAME | UV_CHANGE, 0)
        );
    }
    root.write("lost/below/file");
    let file = [
        ("lost/below/file", UV_RENAME),
        ("lost/below/file", UV_CHANGE),
    ];
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
            let right = events == pairs(&[("a/b/file", UV_RENAME), ("a/b/file", UV_CHANGE)]);
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
        events.contains(&("a/b/file".into(), UV_CHANGE)),
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
fn believe<'a>(
    known: &mut BTreeMap<String, u64>,
    root: &Path,
    seen: impl IntoIterator<Item = &'a Seen>,
) {
    for seen in seen {
        assert_eq!(seen.status, 0);
        let Some(name) = &seen.name else {
            panic!("the queue is long enough for this")
        };
        let below = format!("{name}/");
        let now = fs::symlink_metadata(root.join(name))
            .ok()
            .map(|found| found.ino());
        // A directory with the same number may be another: one that was moved away and removed
        // gives its number back.
        let is_same = known.get(name).copied() == now;
        known.retain(|path, _| {
            let concerns = path == name || path.starts_with(&below);
            !concerns || is_same && root.join(path).symlink_metadata().is_ok()
        });
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
        // Both watch the same directories, so that neither may take from the other.
        let handles = [(); 2].map(|()| watching.add(&root.0, RECURSIVE).unwrap());
        let mut known = [(); 2].map(|()| walk(&root.0));
        for _ in 0..50 {
            (0..=random.below(10)).for_each(|_| disturb(&mut random, &root.0, &outside.0));
            let seen = watching.drain();
            let there = walk(&root.0);
            for (handle, known) in handles.into_iter().zip(&mut known) {
                let is_ours = |seen: &&Seen| seen.handle == handle;
                believe(known, &root.0, seen.iter().filter(is_ours));
                assert_eq!(*known, there, "SEED={seed}, round {round}, handle {handle}");
            }
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
                watching.run(UV_RUN_ONCE);
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

/// Lets this process have no more than so many watches, in a user namespace of its own.
fn limit_watches(limit: u32) -> bool {
    // SAFETY: no pointers.
    let unshared = unsafe { libc::unshare(libc::CLONE_NEWUSER) == 0 };
    unshared && fs::write("/proc/sys/user/max_inotify_watches", limit.to_string()).is_ok()
}

/// In a process with ten watches; which step fails, or zero.
fn run_out_of_watches(root: &Root) -> c_int {
    let mut watching = Watching::new();
    if watching.add(&root.0, RECURSIVE) != Err(-libc::ENOSPC) || watching.is_active(0) {
        return 1;
    }
    // Nothing of the failed attempt is left: there is room for eight directories.
    if watching.add(&root.at("0"), RECURSIVE).is_err() {
        return 2;
    }
    for n in 0..20 {
        fs::create_dir(root.at(&format!("0/{n}"))).unwrap();
    }
    let seen = watching.drain();
    let named = |seen: &Seen, status| seen.name.as_deref() == Some("19") && seen.status == status;
    if !seen.iter().any(|seen| named(seen, 0)) {
        return 3;
    }
    if !seen.iter().any(|seen| named(seen, -libc::ENOSPC)) {
        return 4;
    }
    root.write("0/3/file");
    match watching.events() == pairs(&[("3/file", UV_RENAME), ("3/file", UV_CHANGE)]) {
        true => 0,
        false => 5,
    }
}

#[test]
fn running_out_of_watches_is_told() {
    const CANNOT_LIMIT: c_int = 77;
    let root = Root::new();
    for n in 0..15 {
        fs::create_dir(root.at(&n.to_string())).unwrap();
    }
    // SAFETY: the child has one thread, uses a loop of its own, and leaves at once.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            libc::_exit(match limit_watches(10) {
                true => run_out_of_watches(&root),
                false => CANNOT_LIMIT,
            });
        }
        let mut status = -1;
        assert_eq!(libc::waitpid(child, &mut status, 0), child);
        let status = libc::WEXITSTATUS(status) | libc::WTERMSIG(status) << 8;
        if status == CANNOT_LIMIT {
            eprintln!("skipped: no user namespaces here");
            return;
        }
        assert_eq!(status, 0);
    }
}

/// What departs by a record may be what had the name before.
#[test]
fn directories_that_change_places_are_watched_on() {
    let root = Root::new();
    fs::create_dir(root.at("a")).unwrap();
    fs::create_dir(root.at("b")).unwrap();
    let mut watching = Watching::new();
    watching.add(&root.0, RECURSIVE).unwrap();
    assert_eq!(watching.events(), []);
    let [a, b] = ["a", "b"].map(|name| c_path(&root.at(name)));
    let here = libc::AT_FDCWD;
    // SAFETY: the paths are C strings.
    let changed = unsafe {
        let flags = libc::RENAME_EXCHANGE;
        libc::syscall(
            libc::SYS_renameat2,
            here,
            a.as_ptr(),
            here,
            b.as_ptr(),
            flags,
        )
    };
    assert_eq!(changed, 0);
    watching.events();
    root.write("a/x");
    root.write("b/y");
    let expected = [
        ("a/x", UV_RENAME),
        ("a/x", UV_CHANGE),
        ("b/y", UV_RENAME),
        ("b/y", UV_CHANGE),
    ];
    assert_eq!(watching.events(), pairs(&expected));
}

#[test]
fn a_directory_that_is_there_again_has_each_file_told_once() {
    let root = Root::new();
    let mut watching = Watching::new();
    watching.add(&root.0, RECURSIVE).unwrap();
    fs::create_dir(root.at("d")).unwrap();
    root.write("d/a");
    fs::remove_dir_all(root.at("d")).unwrap();
    fs::create_dir(root.at("d")).unwrap();
    root.write("d/b");
    let events = watching.events();
    let told = events.iter().filter(|(name, _)| name == "d/b").count();
    assert_eq!(told, 1, "{events:?}");
}
