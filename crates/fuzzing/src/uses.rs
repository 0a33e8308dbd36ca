//! What a process holds: nothing may be left of a run.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

/// The descriptors that were open at one time, and the children that ran or were not reaped.
///
/// What the fuzzer itself has, such as the program that names functions for it, is part of it.
#[derive(Debug, PartialEq, Eq)]
pub struct Held {
    descriptors: BTreeMap<i32, String>,
    children: BTreeMap<i32, String>,
}

impl Held {
    /// What is held now.
    pub fn now() -> Held {
        Held {
            descriptors: descriptors(),
            children: children(),
        }
    }

    /// Checks that nothing more is held than before, and nothing less.
    pub fn assert_unchanged(&self) {
        let now = until(|now| now == self);
        assert!(*self == now, "before: {self:#?}\nnow: {now:#?}");
    }

    /// Waits for workers that hold on to the descriptor of a closed loop.
    pub fn await_idle_workers() {
        let is_eventfd = |of: &String| of.contains("eventfd");
        let now = until(|now| !now.descriptors.values().any(is_eventfd));
        assert!(!now.descriptors.values().any(is_eventfd), "{now:#?}");
    }
}

/// What is held as soon as it is as expected, or after some time if it is not. A worker of the
/// thread pool holds on to the descriptor of a closed loop until it has nothing more to do, of
/// which nobody is told.
fn until(is_expected: impl Fn(&Held) -> bool) -> Held {
    let begun = Instant::now();
    loop {
        let now = Held::now();
        if is_expected(&now) || begun.elapsed() > Duration::from_secs(5) {
            return now;
        }
        std::thread::yield_now();
    }
}

/// The open descriptors and what they are of.
fn descriptors() -> BTreeMap<i32, String> {
    let entries = fs::read_dir("/proc/self/fd").expect("the kernel lists descriptors");
    let numbers: Vec<i32> = entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    let describe = |fd| {
        // The one that the list was read with is closed by now.
        let of = fs::read_link(format!("/proc/self/fd/{fd}")).ok()?;
        Some((fd, of.to_string_lossy().into_owned()))
    };
    numbers.into_iter().filter_map(describe).collect()
}

/// The children of all threads and what they run.
fn children() -> BTreeMap<i32, String> {
    let tasks = fs::read_dir("/proc/self/task").expect("the kernel lists threads");
    assert!(
        fs::exists("/proc/thread-self/children").is_ok_and(|exists| exists),
        "the kernel lists no children"
    );
    let mut found = BTreeMap::new();
    for task in tasks.flatten() {
        // A thread may have ended meanwhile.
        let pids = fs::read_to_string(task.path().join("children")).unwrap_or_default();
        for pid in pids.split_whitespace() {
            let pid = pid.parse().expect("a number");
            let command = fs::read_to_string(format!("/proc/{pid}/cmdline"));
            found.insert(pid, command.unwrap_or_default().replace('\0', " "));
        }
    }
    found
}
