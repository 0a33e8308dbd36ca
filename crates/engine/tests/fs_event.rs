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
