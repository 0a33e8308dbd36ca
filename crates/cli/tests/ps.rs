//! `blacklight ps --record` has loops record that sleep.

#[path = "support/sleeper.rs"]
mod sleeper;

use std::process::Command;

#[test]
fn a_loop_that_sleeps_is_woken_to_be_listed() {
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
    let process = list(&["ps", "--json", "--record"]);
    assert_eq!(process["recording"], true);
    assert_eq!(process["loops"][0]["name"], "sleeper", "{process}");
}
