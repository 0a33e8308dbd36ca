//! A loop that sleeps.

use blacklight::{Loop, Mode, Timer};
use std::sync::mpsc;
use std::time::Duration;

/// Whether a thread of this process waits in the kernel.
fn is_asleep(tid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/self/task/{tid}/stat"));
    stat.is_ok_and(|stat| {
        stat.rsplit_once(") ")
            .is_some_and(|(_, rest)| rest.starts_with('S'))
    })
}

/// Starts a thread whose loop sleeps for an hour, and waits until it does.
pub(crate) fn start() {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let lp = Loop::builder().name("sleeper").build().expect("a loop");
        let timer = Timer::new().expect("a timer");
        let hour = Duration::from_secs(3600);
        timer.start(hour, |_, _| {}).expect("it starts");
        let told = sender.send(rustix::thread::gettid().as_raw_nonzero().get());
        told.expect("somebody listens");
        // Nothing ever comes, so only a wake-up can have it record.
        lp.run(Mode::Default);
    });
    let tid = receiver.recv().expect("the loop is there");
    while !is_asleep(tid) {
        std::thread::yield_now();
    }
}
