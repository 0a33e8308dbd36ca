//! Whatever ends first, and however: nothing is left behind.

use super::{Events, Folder, LIMIT, Live, live, record_of, until_gone};
use rustix::process::{Pid, Signal, kill_process};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Waits until a file has some lines, and returns them.
fn lines(path: &PathBuf, count: usize) -> Vec<String> {
    let begun = Instant::now();
    loop {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        if text.lines().count() >= count && text.ends_with('\n') {
            return text.lines().map(str::to_owned).collect();
        }
        assert!(begun.elapsed() < LIMIT, "{} has {text:?}", path.display());
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn signal(pid: u32, signal: Signal) {
    // It may have ended with another one.
    let _ = kill_process(Pid::from_raw(pid as i32).expect("a process"), signal);
}

fn parent(pid: u32) -> u32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
    let (_, rest) = stat.rsplit_once(')').expect("a name");
    let parent = rest.split_ascii_whitespace().nth(1).expect("a parent");
    parent.parse().expect("a number")
}

/// A program that has a child with loops, and one that has ended already. They leave what Node.js leaves.
struct Case {
    name: String,
    folder: Folder,
    live: Live,
    events: Events,
    pids: Vec<u32>,
}

impl Case {
    fn new(name: &str, is_stubborn: bool) -> Case {
        let folder = Folder::new(name);
        let trap = if is_stubborn { "trap '' TERM" } else { ":" };
        let litter = ": > /tmp/perf-$$.map; : > isolate0x5-$$-v8.log";
        let script = format!(
            "{trap}; {litter}\n\
             ./blacklight live-demo $$ &\n\
             sh -c '{litter}; sleep 0.2; echo $$ >> pids'\n\
             echo $! >> pids; echo $$ >> pids\n\
             wait"
        );
        let live = folder.live(&["sh", "-c", &script]);
        let mut events = live.events();
        let pids = lines(&folder.path("pids"), 3);
        let mut pids: Vec<u32> = pids.iter().map(|pid| pid.parse().unwrap()).collect();
        assert_eq!(live.pid, pids.last().copied());
        events.frame_with(&format!("\"{}/turn/", pids[1]));
        assert!(record_of(pids[1]) && record_of(live.child.id()));
        // What stands between the server and the program.
        pids.push(parent(pids[2]));
        assert_eq!(parent(pids[3]), live.child.id());
        Case {
            name: name.to_owned(),
            folder,
            live,
            events,
            pids,
        }
    }

    /// Ends all in this order.
    fn end(self, order: &str, with: Signal) {
        let Case {
            name,
            folder,
            mut live,
            events,
            pids,
        } = self;
        let mut events = Some(events);
        for what in order.chars() {
            match what {
                'p' => signal(pids[2], with),
                's' => drop(live.signal(with)),
                _ => drop(events.take()),
            }
        }
        for pid in &pids {
            until_gone(*pid);
        }
        // The process that tidies up was the last.
        assert!(!live.is_served());
        for pid in &pids {
            let map = format!("/tmp/perf-{pid}.map");
            assert!(!std::fs::exists(&map).unwrap(), "{name}: {map}");
            assert!(!record_of(*pid), "{name}: the record of {pid}");
        }
        let left = std::fs::read_dir(&folder.0).expect("it is there");
        let names = left.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let logs: Vec<String> = names.filter(|name| name.ends_with(".log")).collect();
        assert!(logs.is_empty(), "{name}: {logs:?}");
        assert!(!record_of(live.child.id()), "{name}: the server's record");
    }
}

fn matrix(is_stubborn: bool) {
    let program = if is_stubborn { "stubborn" } else { "polite" };
    for (word, with) in [("term", Signal::TERM), ("kill", Signal::KILL)] {
        // The grace that a stubborn program has is waited for in all orders at once.
        let cases = ["psc", "pcs", "spc", "scp", "cps", "csp"].map(|order| {
            let name = format!("{program}-{word}-{order}");
            std::thread::spawn(move || Case::new(&name, is_stubborn).end(order, with))
        });
        for case in cases {
            case.join().expect("nothing is left");
        }
    }
}

#[test]
fn nothing_is_left_of_a_program_with_children_whatever_ends_first() {
    matrix(false);
}

#[test]
fn nothing_is_left_of_a_program_that_ignores_sigterm_whatever_ends_first() {
    matrix(true);
}

#[test]
fn children_that_have_lost_their_parents_are_shown() {
    let folder = Folder::new("orphans");
    // A shell between them, which is gone when the child with loops begins.
    let script = "(sh -c './blacklight live-load & echo $! > pids' &) ; sleep 600";
    let live = folder.live(&["sh", "-c", script]);
    let pids = lines(&folder.path("pids"), 1);
    let orphan = pids[0].parse().expect("a number");
    live.events().frame_with(&format!("\"{orphan}/turn/"));
    assert_ne!(Some(parent(orphan)), live.pid);
    drop(live);
    until_gone(orphan);
}

#[test]
fn a_program_that_makes_no_loop_can_be_given_up() {
    let folder = Folder::new("loopless");
    let mut live = folder.live(&["sh", "-c", "exec sleep 600"]);
    let mut events = live.events();
    events.frame_with("it has not made a loop yet");
    while !live.says().contains("the program has not made a loop yet") {}
    assert!(live.signal(Signal::INT).success());
    until_gone(live.pid.expect("it was started"));
}

#[test]
fn the_end_of_a_program_is_told_though_no_page_is_open() {
    let mut live = live(&["--demo"]);
    let pid = live.pid.expect("it was started");
    live.events().frame_with("/turn/1\":");
    signal(pid, Signal::KILL);
    let said = live.says();
    let expected = format!("process {pid} has ended: signal: 9 (SIGKILL); the page stays");
    assert!(said.contains(&expected), "{said}");
    // It is no zombie either.
    assert!(!std::fs::exists(format!("/proc/{pid}")).unwrap());
    let late = live.events().frame_with("\"state\":\"ended\"");
    assert!(late.contains("signal: 9"), "{late}");
}

#[test]
fn a_program_does_not_outlive_the_process_that_was_to_end_it() {
    for program in [["--demo"].as_slice(), &["--", "sleep", "600"]] {
        let folder = Folder::new(&format!("orphaned-{}", program.len()));
        let live = match program {
            [_] => live(program),
            words => folder.live(&words[1..]),
        };
        let pid = live.pid.expect("it was started");
        let reaper = parent(pid);
        assert_eq!(parent(reaper), live.child.id());
        signal(reaper, Signal::KILL);
        until_gone(pid);
        drop(live);
        // Nobody is left to remove it.
        blacklight_record::read::remove(pid);
    }
}
