//! File system events, without a front end in between.

use blacklight_engine::{Engine, Event, HandleKind, Mechanism, Mode, Run, Token};
use std::ffi::CString;
use std::fs;
use std::path::{Path, PathBuf};

fn new_dir(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("blacklight-{name}-{}", std::process::id()));
    fs::create_dir_all(&path).unwrap();
    path
}

fn c_path(path: &Path) -> CString {
    CString::new(path.to_str().unwrap()).unwrap()
}

/// The next event of a run, as the handle's token and the name.
fn next(engine: &mut Engine, run: &mut Run) -> Option<(u64, String)> {
    match engine.next(run)? {
        Event::FsEvent(token, Ok(_)) => {
            let name = engine.fs_event_name().unwrap_or_default();
            Some((token.0, String::from_utf8(name.to_vec()).unwrap()))
        }
        event => panic!("{event:?}"),
    }
}

#[test]
fn a_run_that_is_given_up_loses_nothing() {
    for mechanism in [Mechanism::Select, Mechanism::Poll, Mechanism::Epoll] {
        let dir = new_dir(&format!("given-up-{mechanism:?}"));
        let mut engine = Engine::new(Some(mechanism)).unwrap();
        let mut handles = Vec::new();
        for token in [1, 2] {
            let handle = engine.fs_event_init(Token(token)).unwrap();
            engine.fs_event_start(handle, &c_path(&dir), false).unwrap();
            assert_eq!(engine.kind(handle), Some(HandleKind::FsEvent));
            assert_eq!(engine.fs_event_path(handle), Ok(&*c_path(&dir)));
            handles.push(handle);
        }
        for name in ["a", "b", "c"] {
            fs::create_dir(dir.join(name)).unwrap();
        }
        // Every run is dropped after one event, and the next goes on from there.
        let mut seen = Vec::new();
        for _ in 0..6 {
            seen.extend(next(&mut engine, &mut Run::new(Mode::NoWait)));
        }
        let expected = ["a", "b", "c"].iter();
        let expected = expected.flat_map(|name| [1, 2].map(|token| (token, name.to_string())));
        assert_eq!(seen, expected.collect::<Vec<_>>());
        assert_eq!(next(&mut engine, &mut Run::new(Mode::NoWait)), None);
        for handle in handles {
            engine.fs_event_stop(handle).unwrap();
            assert!(!engine.is_active(handle));
            engine.close(handle).unwrap();
        }
        fs::remove_dir_all(&dir).unwrap();
    }
}

#[test]
fn watching_keeps_a_loop_alive_and_wakes_it() {
    let dir = new_dir("awake");
    let mut engine = Engine::new(None).unwrap();
    let handle = engine.fs_event_init(Token(1)).unwrap();
    assert!(!engine.is_alive());
    engine.fs_event_start(handle, &c_path(&dir), true).unwrap();
    assert!(engine.is_alive());
    std::thread::scope(|scope| {
        scope.spawn(|| fs::create_dir_all(dir.join("x/y")).unwrap());
        let mut seen = Vec::new();
        let mut run = Run::new(Mode::Default);
        while seen.len() < 2 {
            seen.extend(next(&mut engine, &mut run));
        }
        assert_eq!(seen, [(1, "x".to_owned()), (1, "x/y".to_owned())]);
    });
    engine.close(handle).unwrap();
    fs::remove_dir_all(&dir).unwrap();
}

/// Handles with the tokens 1, 2 and so on: which directory each watches, and whether recursively.
fn watch(watched: &[(&Path, bool)]) -> Engine {
    let mut engine = Engine::new(None).unwrap();
    for (token, &(path, recursive)) in (1..).zip(watched) {
        let handle = engine.fs_event_init(Token(token)).unwrap();
        engine
            .fs_event_start(handle, &c_path(path), recursive)
            .unwrap();
    }
    engine
}

/// All events that are there, each with the handle's token. `meanwhile` is called after each.
fn all(engine: &mut Engine, mut meanwhile: impl FnMut(u64, &str)) -> Vec<(u64, String)> {
    let mut seen = Vec::new();
    loop {
        let before = seen.len();
        let mut run = Run::new(Mode::NoWait);
        while let Some((token, name)) = next(engine, &mut run) {
            meanwhile(token, &name);
            seen.push((token, name));
        }
        if seen.len() == before {
            return seen;
        }
    }
}

fn events(expected: &[(u64, &str)]) -> Vec<(u64, String)> {
    let event = |&(token, name): &(u64, &str)| (token, name.to_owned());
    expected.iter().map(event).collect()
}

#[test]
fn two_handles_watch_the_same_tree() {
    let dir = new_dir("two-trees");
    fs::create_dir(dir.join("old")).unwrap();
    let mut engine = watch(&[(&dir, true), (&dir, true)]);
    fs::create_dir(dir.join("old/a")).unwrap();
    let both = events(&[(1, "old/a"), (2, "old/a")]);
    assert_eq!(all(&mut engine, |_, _| ()), both);
    fs::create_dir_all(dir.join("new/b")).unwrap();
    let mut seen = all(&mut engine, |_, _| ());
    seen.sort();
    let each = [(1, "new"), (1, "new/b"), (2, "new"), (2, "new/b")];
    assert_eq!(seen, events(&each));
    fs::create_dir(dir.join("new/b/c")).unwrap();
    let both = events(&[(1, "new/b/c"), (2, "new/b/c")]);
    assert_eq!(all(&mut engine, |_, _| ()), both);
    fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn a_tree_has_a_directory_that_another_handle_watches() {
    let dir = new_dir("tree-and-part");
    let part = dir.join("part");
    fs::create_dir(&part).unwrap();
    for (order, tree, plain) in [
        ([(&*part, false), (&*dir, true)], 2, 1),
        ([(&*dir, true), (&*part, false)], 1, 2),
    ] {
        let mut engine = watch(&order);
        fs::create_dir(part.join("a")).unwrap();
        let mut seen = all(&mut engine, |_, _| ());
        seen.sort_by_key(|&(token, _)| token != tree);
        assert_eq!(seen, events(&[(tree, "part/a"), (plain, "a")]));
        fs::create_dir(part.join("a/b")).unwrap();
        let seen = all(&mut engine, |_, _| ());
        assert_eq!(seen, events(&[(tree, "part/a/b")]));
        fs::remove_dir_all(part.join("a")).unwrap();
    }
    fs::remove_dir_all(&dir).unwrap();
}

/// Two trees list a new directory at different moments: an entry that is created between the two
/// listings is found by the later one only.
#[test]
fn an_entry_created_between_two_trees_listings_is_heard_once_by_each() {
    let dir = new_dir("between-listings");
    let mut engine = watch(&[(&dir, true), (&dir, true)]);
    fs::create_dir(dir.join("x")).unwrap();
    let mut seen = all(&mut engine, |token, name| {
        if (token, name) == (1, "x") {
            fs::create_dir(dir.join("x/y")).unwrap();
        }
    });
    seen.sort();
    let each = [(1, "x"), (1, "x/y"), (2, "x"), (2, "x/y")];
    assert_eq!(seen, events(&each));
    fs::remove_dir_all(&dir).unwrap();
}
