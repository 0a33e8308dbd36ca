//! Children of a program that changes its environment meanwhile, from another thread. Other
//! tests would read it beside that, so this one has a process of its own.

use blacklight::{Loop, process::Command};
use std::env;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

const KEPT: usize = 100;
const MOVED: usize = 1000;

/// Sets a variable of our own.
fn set(name: &str, number: usize) {
    // SAFETY: everything in this process reads the environment through the standard library,
    // whose lock this takes as well.
    unsafe { env::set_var(format!("{name}_{number}"), "1") };
}

/// Removes a variable of our own.
fn remove(name: &str, number: usize) {
    // SAFETY: as for `set`.
    unsafe { env::remove_var(format!("{name}_{number}")) };
}

#[test]
fn a_child_has_a_whole_environment_while_another_thread_changes_ours() {
    for number in 0..MOVED {
        set("MOVED", number);
    }
    for number in 0..KEPT {
        set("KEPT", number);
    }
    let enough = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            // The first is taken out, which moves all others, and put to the end.
            for number in (0..MOVED).cycle() {
                remove("MOVED", number);
                set("MOVED", number);
                if enough.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        let lp = Loop::new().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", "env | grep -c ^KEPT_"]);
        let outputs: Vec<_> = (0..100).map(|_| lp.block_on(command.output())).collect();
        enough.store(true, Ordering::Relaxed);
        for output in outputs {
            let kept = String::from_utf8(output.unwrap().stdout).unwrap();
            assert_eq!(kept.trim(), KEPT.to_string());
        }
    });
}
