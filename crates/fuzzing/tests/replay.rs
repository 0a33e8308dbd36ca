//! Runs every target on its corpus, without libFuzzer.

use blacklight_fuzzing::TARGETS;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// Targets look at what is the whole process's, so they take turns.
static ALONE: Mutex<()> = Mutex::new(());

fn replay(name: &str) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let target = TARGETS.iter().find(|target| target.name == name).unwrap();
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let entries = std::fs::read_dir(corpus.join(name)).expect("the target has a corpus");
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "an empty corpus tries nothing");
    for path in paths {
        let data = std::fs::read(&path).unwrap();
        // A failing input is named by what was printed last.
        println!("{}", path.display());
        (target.run)(&data);
    }
}

macro_rules! replays {
    ($($name:ident)*) => {
        $(#[test] fn $name() { replay(stringify!($name)); })*

        #[test]
        fn every_target_is_replayed() {
            let replayed = [$(stringify!($name)),*];
            assert!(TARGETS.iter().map(|target| target.name).eq(replayed));
        }
    };
}

replays!(addresses cgroups fs_paths host_names inotify ipc proc_files spawn wtf8);
