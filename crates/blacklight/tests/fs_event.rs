//! Watching files and directories, by the kernel's word and by asking.

use blacklight::fs::TempDir;
use blacklight::{
    ChangeKind, FsChange, FsChanges, FsEvent, FsPoll, Loop, LoopHandle, Mode, StatChange,
    StatChanges,
};
use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

const OFTEN: Duration = Duration::from_millis(1);

fn is(change: &FsChange, name: &str, kind: ChangeKind) -> bool {
    change.path.as_deref() == Some(Path::new(name)) && change.kind == kind
}

#[test]
fn entries_are_created_changed_and_removed() {
    let directory = TempDir::new_blocking("watched").unwrap();
    let file = directory.path().join("file");
    let lp = Loop::new().unwrap();
    let mut changes = FsChanges::new(directory.path()).unwrap();
    lp.block_on(async {
        std::fs::write(&file, "light").unwrap();
        let created = changes.recv().await.unwrap();
        assert!(is(&created, "file", ChangeKind::Renamed), "{created:?}");
        let changed = changes.recv().await.unwrap();
        assert!(is(&changed, "file", ChangeKind::Changed), "{changed:?}");
        std::fs::remove_file(&file).unwrap();
        let removed = changes.recv().await.unwrap();
        assert!(is(&removed, "file", ChangeKind::Renamed), "{removed:?}");
        let nothing = blacklight::timeout(OFTEN, changes.recv()).await;
        assert!(nothing.is_err(), "{nothing:?}");
    });
}

#[test]
fn a_tree_is_watched_to_the_leaves() {
    let directory = TempDir::new_blocking("tree").unwrap();
    let lp = Loop::new().unwrap();
    let watch = FsEvent::new().unwrap();
    let deep = directory.path().join("a/b");
    let seen: Rc<RefCell<Vec<PathBuf>>> = Rc::default();
    let see = seen.clone();
    watch
        .start_recursive(directory.path(), move |_, watch, change| {
            let path = change.unwrap().path.unwrap();
            if path == Path::new("a/b/leaf") {
                watch.stop();
            }
            see.borrow_mut().push(path);
        })
        .unwrap();
    std::fs::create_dir_all(&deep).unwrap();
    std::fs::write(deep.join("leaf"), "light").unwrap();
    assert!(!lp.run(Mode::Default));
    let seen = seen.borrow();
    for name in ["a", "a/b", "a/b/leaf"] {
        assert!(seen.contains(&PathBuf::from(name)), "{name} in {seen:?}");
    }
}

#[test]
fn what_is_not_there_cannot_be_watched() {
    let lp = Loop::new().unwrap();
    let watch = FsEvent::new().unwrap();
    let nothing = Path::new("/no/such/file");
    let error = watch.start(nothing, |_, _, _| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    let error = watch.start_recursive(nothing, |_, _, _| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    let error = watch.start("a\0b", |_, _, _| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert_eq!(
        FsChanges::new(nothing).unwrap_err().kind(),
        ErrorKind::NotFound
    );
    assert!(FsChanges::recursive(nothing).is_err());
    assert!(!watch.is_active());
    // The handle can still be started, but only once.
    watch.start("/", |_, _, _| ()).unwrap();
    assert!(watch.is_active());
    let twice = watch.start("/", |_, _, _| ()).unwrap_err();
    assert_eq!(twice.kind(), ErrorKind::InvalidInput);
    watch.stop();
    assert!(!lp.run(Mode::NoWait));
}

#[test]
fn what_is_lost_is_told_as_an_overflow() {
    let limit = std::fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
    let limit: usize = limit.trim().parse().unwrap();
    let directory = TempDir::new_blocking("overflow").unwrap();
    let files = ["a", "b"].map(|name| File::create(directory.path().join(name)).unwrap());
    let lp = Loop::new().unwrap();
    let watch = FsEvent::new().unwrap();
    let count = Rc::new(Cell::new(0));
    let counted = count.clone();
    let started = watch.start(directory.path(), move |_, watch, change| {
        counted.set(counted.get() + 1);
        let change = change.unwrap();
        if change.kind == ChangeKind::Overflow {
            assert_eq!(change.path, None);
            watch.stop();
        }
    });
    started.unwrap();
    // The kernel tells only once of what happens to the same file twice in a row.
    for at in 0..=limit {
        files[at % 2].write_all_at(b"x", 0).unwrap();
    }
    assert!(!lp.run(Mode::Default));
    assert_eq!(count.get(), limit + 1);
}

#[test]
fn a_watch_is_dropped_by_its_own_callback() {
    let directory = TempDir::new_blocking("dropped").unwrap();
    let lp = Loop::new().unwrap();
    let watch = FsEvent::new().unwrap();
    let place = Rc::new(RefCell::new(None));
    let (own, count) = (place.clone(), Rc::new(Cell::new(0)));
    let counted = count.clone();
    let started = watch.start(directory.path(), move |_, _, _| {
        counted.set(counted.get() + 1);
        drop(own.borrow_mut().take());
    });
    started.unwrap();
    *place.borrow_mut() = Some(watch);
    for name in ["one", "two"] {
        std::fs::create_dir(directory.path().join(name)).unwrap();
    }
    assert!(!lp.run(Mode::Default));
    assert_eq!(count.get(), 1);
}

#[test]
fn asking_finds_what_comes_changes_and_goes() {
    let directory = TempDir::new_blocking("polled").unwrap();
    let file = directory.path().join("file");
    let lp = Loop::new().unwrap();
    let mut changes = StatChanges::new(&file, OFTEN).unwrap();
    lp.block_on(async {
        let missing = changes.recv().await;
        assert_eq!(missing.current.unwrap_err().kind(), ErrorKind::NotFound);
        assert!(missing.previous.is_none());

        std::fs::write(&file, "light").unwrap();
        let mut last = changes.recv().await;
        assert!(last.previous.is_none());
        // It may have been seen when it was still empty.
        while last.current.as_ref().unwrap().len() != 5 {
            last = changes.recv().await;
        }

        std::fs::write(&file, "black light").unwrap();
        while last.current.as_ref().unwrap().len() != 11 {
            last = changes.recv().await;
            assert!(last.previous.is_some());
        }

        std::fs::remove_file(&file).unwrap();
        let gone = changes.recv().await;
        assert_eq!(gone.current.unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(gone.previous.unwrap().len(), 11, "it stays known");

        std::fs::create_dir(&file).unwrap();
        let back = changes.recv().await;
        assert!(back.current.unwrap().is_dir());
        assert_eq!(back.previous.unwrap().len(), 11);
    });
}

#[test]
fn asking_tells_nothing_of_what_stays_the_same() {
    let directory = TempDir::new_blocking("same").unwrap();
    let (file, missing) = (
        directory.path().join("file"),
        directory.path().join("missing"),
    );
    std::fs::write(&file, "light").unwrap();
    let lp = Loop::new().unwrap();
    let poll = FsPoll::new().unwrap();
    poll.start(&file, OFTEN, |_, _, change| panic!("{change:?}"))
        .unwrap();
    let other = FsPoll::new().unwrap();
    let errors = Rc::new(Cell::new(0));
    let counted = errors.clone();
    let count = move |_: &LoopHandle, _: &FsPoll, change: StatChange| {
        assert_eq!(change.current.unwrap_err().kind(), ErrorKind::NotFound);
        counted.set(counted.get() + 1);
    };
    other.start(&missing, OFTEN, count).unwrap();
    lp.block_on(async {
        for _ in 0..20 {
            blacklight::sleep(OFTEN).await;
            // To read it is no change.
            assert_eq!(std::fs::read(&file).unwrap(), b"light");
        }
    });
    assert!(poll.is_active() && other.is_active());
    assert_eq!(errors.get(), 1, "an error is told once");
}

#[test]
fn asking_is_stopped_started_anew_and_dropped_at_any_time() {
    let directory = TempDir::new_blocking("stopped").unwrap();
    let missing = directory.path().join("missing");
    let lp = Loop::new().unwrap();
    let poll = FsPoll::new().unwrap();
    poll.start(&missing, OFTEN, |_, _, _| panic!("it was stopped"))
        .unwrap();
    poll.stop();
    assert!(!poll.is_active());
    poll.start(&missing, OFTEN, |_, _, _| panic!("it was replaced"))
        .unwrap();
    let told = Rc::new(Cell::new(false));
    let tell = told.clone();
    let callback = move |_: &LoopHandle, poll: &FsPoll, _: StatChange| {
        tell.set(true);
        poll.stop();
    };
    poll.start(&missing, OFTEN, callback).unwrap();
    assert!(!lp.run(Mode::Default));
    assert!(told.get());
    poll.start(&missing, OFTEN, |_, _, _| panic!("it was dropped"))
        .unwrap();
    drop(poll);
    assert!(!lp.run(Mode::Default));
    let poll = FsPoll::new().unwrap();
    let owned = Rc::new(());
    let weak = Rc::downgrade(&owned);
    poll.start(&missing, OFTEN, move |_, _, _| drop(owned.clone()))
        .unwrap();
    poll.detach();
    drop(lp);
    assert!(weak.upgrade().is_none());
}
