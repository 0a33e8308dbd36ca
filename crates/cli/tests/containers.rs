//! Readers in a container leave the records of processes outside alone, which they do not see.

#[path = "support/sleeper.rs"]
mod sleeper;

use blacklight_record::read;
use std::fs::File;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, SystemTime};

/// The record of this process.
fn own_record() -> PathBuf {
    let own = format!("{}.", std::process::id());
    let files = read::directories().into_iter().filter_map(|directory| {
        let entries = std::fs::read_dir(directory).ok()?;
        let mut paths = entries.map(|entry| entry.expect("it can be read").path());
        paths.find(|path| {
            path.file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with(&own))
        })
    });
    files.into_iter().next().expect("the loop is offered")
}

/// A command that runs in a pid namespace of its own, and perhaps sees only its processes.
fn contained(mounts_proc: bool) -> Command {
    let mut command = Command::new("unshare");
    if !rustix::process::geteuid().is_root() {
        command.args(["--user", "--map-current-user"]);
    }
    command.args(["--pid", "--fork"]);
    if mounts_proc {
        command.arg("--mount-proc");
    }
    command
}

#[test]
fn the_record_of_a_process_that_is_not_seen_is_kept() {
    sleeper::start();
    let record = own_record();
    let file = File::options()
        .write(true)
        .open(&record)
        .expect("it is ours");
    // Old enough for one that a dead process has left.
    let old = SystemTime::now() - Duration::from_secs(3600);
    file.set_modified(old).expect("it is ours");
    for mounts_proc in [true, false] {
        if !contained(mounts_proc)
            .arg("true")
            .status()
            .is_ok_and(|status| status.success())
        {
            eprintln!("no namespaces are to be had here");
            continue;
        }
        let mut command = contained(mounts_proc);
        let listed = command
            .args([env!("CARGO_BIN_EXE_blacklight"), "ps"])
            .output();
        assert!(listed.expect("it runs").status.success());
        assert!(record.exists(), "it was removed while its process runs");
    }
    assert!(read::list().contains(&std::process::id()));
    assert!(record.exists());
}
