//! A loop that sleeps.

use blacklight::{Loop, Mode, Timer};
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

/// Runs the body in this program started once more, with a directory of its own for its record: other readers, whoever has started
/// them, have all programs record whose records they find. To be called by the test of that name.
#[allow(dead_code, reason = "one test's record is never written to by readers")]
pub(crate) fn apart(name: &str, body: impl FnOnce()) {
    const APART: &str = "BLACKLIGHT_TEST_APART";
    if std::env::var_os(APART).is_some() {
        return body();
    }
    let place = format!("/dev/shm/blacklight-test-{}-{name}", std::process::id());
    // Numbers of processes are used again, and one that was killed has left its own.
    let _ = std::fs::remove_dir_all(&place);
    std::fs::create_dir(&place).expect("there is /dev/shm");
    let own = std::env::current_exe().expect("a test has a program");
    let output = Command::new(own)
        .args(["--exact", name, "--nocapture"])
        .env(APART, "1")
        .env("XDG_RUNTIME_DIR", &place)
        .output();
    let removed = std::fs::remove_dir_all(&place);
    let output = output.expect("the program starts again");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", output.status);
    removed.expect("it is still there");
}

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
