//! `blacklight ps --record` has loops record that sleep.

#[path = "support/sleeper.rs"]
mod sleeper;

use std::process::Command;
use std::time::{Duration, Instant};

/// How long to wait for what must come.
const LIMIT: Duration = Duration::from_secs(60);

#[test]
fn a_loop_that_sleeps_is_woken_to_be_listed() {
    sleeper::apart("a_loop_that_sleeps_is_woken_to_be_listed", wake_to_list);
}

fn wake_to_list() {
    sleeper::start();
    let list = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_blacklight"))
            .args(arguments)
            .output()
            .expect("the command runs");
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).expect("it prints text");
        let list: serde_json::Value = serde_json::from_str(&text).expect("it prints JSON");
        let mut list = list.as_array().expect("a list").clone();
        list.retain(|process| process["pid"] == std::process::id());
        assert_eq!(list.len(), 1, "{text}");
        list.remove(0)
    };
    assert_eq!(list(&["ps", "--json"])["recording"], false);
    let mut process = list(&["ps", "--json", "--record"]);
    // It is woken once. Under load it may take longer than the command waits.
    let begun = Instant::now();
    while process["loops"][0].is_null() && begun.elapsed() < LIMIT {
        process = list(&["ps", "--json"]);
    }
    assert_eq!(process["recording"], true);
    assert_eq!(process["loops"][0]["name"], "sleeper", "{process}");
}
