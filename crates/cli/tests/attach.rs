//! A reader comes to a process that runs already.

#[path = "support/sleeper.rs"]
mod sleeper;

use blacklight_record::read::Reader;

#[test]
fn a_loop_that_sleeps_begins_to_record_when_it_is_woken_for_that() {
    let name = "a_loop_that_sleeps_begins_to_record_when_it_is_woken_for_that";
    sleeper::apart(name, wake_a_loop_that_sleeps);
}

fn wake_a_loop_that_sleeps() {
    sleeper::start();
    let reader = Reader::open(std::process::id()).expect("it offers a record");
    assert!(!reader.is_recording().expect("it can be read"));
    reader.want().expect("it can be asked");
    assert!(reader.wake().expect("it can be woken"));
    while !reader.is_recording().expect("it can be read") {
        std::thread::yield_now();
    }
    // The table of handles is written before the loop goes to sleep again.
    loop {
        let snapshot = reader.snapshot().expect("it records");
        let handles = snapshot
            .loops
            .first()
            .map(|lp| reader.handles(lp).expect("it has a table"));
        let timer = handles
            .iter()
            .flatten()
            .find(|handle| handle.kind == "timer");
        if let Some(timer) = timer {
            assert!(timer.is_active && timer.due_ns > snapshot.taken_ns);
            assert_ne!(timer.callback, 0, "closures have addresses too");
            assert_eq!(timer.set_for_ns, 0, "nobody saw when it was started");
            assert_eq!(snapshot.loops[0].name, "sleeper");
            return;
        }
        std::thread::yield_now();
    }
}
