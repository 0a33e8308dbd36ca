//! The command as its user sees it. The C library stands in for ours: preloading it changes
//! nothing, and it is on every machine.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn blacklight(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_blacklight"))
        .args(arguments)
        .env_remove("LD_PRELOAD")
        .env_remove("BLACKLIGHT_POLLER")
        .output()
        .expect("the command runs")
}

/// A library that every program here has loaded already.
fn stand_in() -> PathBuf {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("a process has maps");
    let path = maps
        .lines()
        .filter_map(|line| line.split_whitespace().last())
        .find(|path| path.ends_with("/libc.so.6"))
        .expect("tests are linked with the C library");
    Path::new(path).canonicalize().expect("it is there")
}

#[test]
fn run_hands_over_library_poller_and_exit_status() {
    let library = stand_in();
    let library = library.to_str().expect("a plain name");
    let script = "echo $LD_PRELOAD $BLACKLIGHT_POLLER; exit 3";
    let options = ["run", "--library", library, "--poller", "poll", "--"];
    let output = blacklight(&[&options[..], &["sh", "-c", script]].concat());
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(said.trim(), format!("{library} poll"));
    assert_eq!(output.status.code(), Some(3));
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(told.lines().count(), 1, "{told}");
    assert!(told.contains("sh does not load libuv itself"), "{told}");
    assert!(
        told.contains(library) && told.contains("with poll"),
        "{told}"
    );
}

#[test]
fn run_says_what_is_missing() {
    let output = blacklight(&["run", "--library", "/nonexistent/lib", "--", "true"]);
    assert!(!output.status.success());
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(
        told.contains("there is no library at /nonexistent/lib"),
        "{told}"
    );
    let output = blacklight(&["run", "--", "no-such-program-anywhere"]);
    assert!(!output.status.success());
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(
        told.contains("no program no-such-program-anywhere"),
        "{told}"
    );
}

#[test]
fn doctor_does_not_mind_a_reader_that_has_seen_enough() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_blacklight"));
    command.args(["doctor", "sh"]).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{said}");
}

#[test]
fn doctor_tells_of_a_program_without_libuv() {
    let output = blacklight(&["doctor", "sh"]);
    assert!(output.status.success());
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("loads no libuv when it starts"), "{said}");
}

#[test]
fn the_demo_talks_to_itself_and_ends() {
    for poller in ["select", "poll", "epoll"] {
        let output = blacklight(&["demo", "--ms", "100", "--poller", poller]);
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{output:?}");
        assert!(said.contains(&format!("blacklight on {poller}")), "{said}");
        let echoed = said.lines().find_map(|line| {
            let (count, _) = line
                .trim()
                .split_once(" bytes to the echo server at 127.0.0.1:")?;
            count.parse::<u64>().ok()
        });
        assert!(echoed.is_some_and(|bytes| bytes > 0), "{said}");
    }
}

#[test]
fn the_demo_leads_on_by_the_words_that_have_started_it() {
    let path = env!("CARGO_BIN_EXE_blacklight");
    let says = |cargo: Option<&str>| {
        let mut command = Command::new(path);
        command.args(["demo", "--ms", "50"]).env_remove("CARGO");
        let output = command.envs(cargo.map(|cargo| ("CARGO", cargo))).output();
        let output = output.expect("the command runs");
        let said = String::from_utf8(output.stdout).expect("it prints text");
        said.lines().last().expect("a line").to_owned()
    };
    assert!(says(None).contains(&format!("`{path} live --demo`")));
    let by_cargo = says(Some("/usr/bin/cargo"));
    assert!(by_cargo.contains("`cargo run ") && by_cargo.contains("-- live --demo`"));
}
