//! Small programs, each in JavaScript (`tests/node/NAME.js`) and in Rust (a test `NAME` here),
//! which print the same: the output of a real Node lies beside the former (`NAME.out`), and
//! `cargo xtask node-order` records it.
//!
//! Programs that need nothing but timers run on a simulated clock, where no time passes but
//! that for which the loop sleeps.

mod errors;
mod exit;
mod immediates;
mod io;
mod random;
mod references;
mod tasks;
mod timers;

use blacklight::Loop;
use blacklight::node::{Node, Timeout};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::time::Duration;

/// The sources of all programs.
const SOURCES: [&str; 8] = [
    include_str!("errors.rs"),
    include_str!("exit.rs"),
    include_str!("immediates.rs"),
    include_str!("io.rs"),
    include_str!("random.rs"),
    include_str!("references.rs"),
    include_str!("tasks.rs"),
    include_str!("timers.rs"),
];

thread_local! {
    static OUTPUT: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Node's `console.log`.
macro_rules! log {
    ($($text:tt)*) => {
        crate::write_line(&format!($($text)*))
    };
}
pub(crate) use log;

fn write_line(line: &str) {
    OUTPUT.with_borrow_mut(|output| {
        output.push_str(line);
        output.push('\n');
    });
}

/// A callback that prints a line.
fn say(line: &'static str) -> impl FnOnce(&Node) + 'static {
    move |_| log!("{line}")
}

/// A timer's callback that prints a line.
fn ring(line: &'static str) -> impl FnMut(&Node, &Timeout) + 'static {
    move |_, _| log!("{line}")
}

/// An error that the program's `uncaughtException` listener catches.
struct Thrown(String);

/// JavaScript's `throw`. Nothing is printed of it.
fn throw(message: impl Into<String>) -> ! {
    resume_unwind(Box::new(Thrown(message.into())))
}

fn programs() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "node"]
        .iter()
        .collect()
}

/// Runs a program on a clock that moves only while the loop sleeps.
fn virtual_time(name: &str, program: impl FnOnce(&Node)) {
    let lp = Loop::builder().simulated(1).build();
    check(name, lp.expect("no kernel is needed"), program);
}

/// Runs a program that reads files, or that keeps the loop busy for a while.
fn real_time(name: &str, program: impl FnOnce(&Node)) {
    check(name, Loop::new().expect("a loop"), program);
}

/// Keeps the loop busy.
fn busy(ms: u64) {
    std::thread::sleep(Duration::from_millis(ms));
}

fn check(name: &str, lp: Loop, program: impl FnOnce(&Node)) {
    OUTPUT.take();
    let node = lp.node().expect("a Node");
    program(&node);
    while let Err(panic) = catch_unwind(AssertUnwindSafe(|| node.run())) {
        match panic.downcast::<Thrown>() {
            Ok(thrown) => log!("caught {}", thrown.0),
            Err(other) => resume_unwind(other),
        }
    }
    let recorded = programs().join(name).with_extension("out");
    let expected = std::fs::read_to_string(recorded).expect("the program was recorded");
    assert_eq!(OUTPUT.take(), expected, "{name} prints what Node prints");
}

/// Each program is there three times: in JavaScript, in Rust, and recorded.
#[test]
fn every_program_has_its_twin() {
    let names = |extension: &str| -> BTreeSet<String> {
        let files = std::fs::read_dir(programs()).expect("the programs are there");
        let paths = files.map(|file| file.expect("a readable directory").path());
        let wanted = paths.filter(|path| path.extension().is_some_and(|e| e == extension));
        wanted
            .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
            .collect()
    };
    let scripts = names("js");
    assert!(scripts.len() >= 40);
    assert_eq!(scripts, names("out"));
    for script in scripts {
        let test = format!("_time(\"{script}\",");
        assert!(
            SOURCES.iter().any(|source| source.contains(&test)),
            "no Rust program is called {script}"
        );
    }
}
