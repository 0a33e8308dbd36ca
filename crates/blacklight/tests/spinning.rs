//! Loops spin before they sleep, and those that were told not to never do.
//!
//! Whoever spins offers its processor with `sched_yield`, which this program replaces and counts. Each
//! case is a process of its own, since the pool's threads and the environment belong to the process.

use blacklight::{Async, Builder, Loop, Mode, TcpStream, spawn_blocking};
use std::cell::Cell;
use std::ffi::c_int;
use std::io::{Read, Write};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc;

/// Calls by the thread of the loop, and by all others.
static BY_LOOP: AtomicU64 = AtomicU64::new(0);
static BY_OTHERS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static IS_LOOP: Cell<bool> = const { Cell::new(false) };
}

#[unsafe(no_mangle)]
extern "C" fn sched_yield() -> c_int {
    let counter = match IS_LOOP.get() {
        true => &BY_LOOP,
        false => &BY_OTHERS,
    };
    counter.fetch_add(1, Relaxed);
    // SAFETY: the call takes nothing.
    unsafe { libc::syscall(libc::SYS_sched_yield) as c_int }
}

/// A loop that spins would do so within some of these.
const ROUNDS: u32 = 2_000;

/// One that spins, and learns where it pays, does so within as many, whatever the load.
const MANY_ROUNDS: u32 = 1_000_000;

/// Plays rounds until `is_enough`; how many of them.
fn play(rounds: u32, is_enough: impl Fn() -> bool, mut round: impl FnMut()) -> u32 {
    let mut played = 0;
    while played < rounds && !is_enough() {
        round();
        played += 1;
    }
    played
}

/// Another thread answers each word with a send.
fn mail(lp: &Loop, rounds: u32, is_enough: impl Fn() -> bool) {
    let handle = Async::new(|lp, _| lp.stop()).unwrap();
    let (sender, (word, words)) = (handle.sender(), mpsc::channel());
    let mate = std::thread::spawn(move || {
        while words.recv().is_ok() {
            sender.send();
        }
    });
    play(rounds, is_enough, || {
        word.send(()).unwrap();
        assert!(lp.run(Mode::Default));
    });
    drop(word);
    mate.join().unwrap();
}

/// The pool does one small request after the other.
fn requests(lp: &Loop, rounds: u32, is_enough: impl Fn() -> bool) {
    play(rounds, is_enough, || {
        lp.block_on(async { spawn_blocking(|| ()).await.unwrap() });
    });
}

/// A peer echoes each byte.
fn descriptors(lp: &Loop, rounds: u32, is_enough: impl Fn() -> bool) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let stream = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let mut peer = listener.accept().unwrap().0;
    peer.set_nodelay(true).unwrap();
    let mate = std::thread::spawn(move || {
        let mut byte = [0];
        while peer.read(&mut byte).unwrap() > 0 {
            peer.write_all(&byte).unwrap();
        }
    });
    let stream = TcpStream::from_std(stream).unwrap();
    stream.set_nodelay(true).unwrap();
    play(rounds, is_enough, || {
        lp.block_on(async {
            stream.write_all(b"x").await.unwrap();
            assert_eq!(stream.read(&mut [0; 8]).await.unwrap(), 1);
        });
    });
    drop(stream);
    lp.run(Mode::Default);
    mate.join().unwrap();
}

/// What a loop of this process does, with enough of each: that nobody has ever spun, or that each
/// has that can.
fn converse(builder: Builder, spins: bool) {
    IS_LOOP.set(true);
    let lp = builder.build().unwrap();
    let spun = |counter: &AtomicU64| counter.swap(0, Relaxed) > 0;
    let has = |counter: &'static AtomicU64| move || spins && counter.load(Relaxed) > 0;
    let rounds = if spins { MANY_ROUNDS } else { ROUNDS };
    mail(&lp, rounds, has(&BY_LOOP));
    assert_eq!(spun(&BY_LOOP), spins, "for mail");
    descriptors(&lp, rounds, has(&BY_LOOP));
    assert_eq!(spun(&BY_LOOP), spins, "for descriptors");
    requests(&lp, rounds, has(&BY_LOOP));
    assert_eq!(spun(&BY_LOOP), spins, "for the pool");
    requests(&lp, rounds, has(&BY_OTHERS));
    assert_eq!(spun(&BY_OTHERS), spins, "the pool's workers");
}

/// Runs the body in a process of its own, with this value of `BLACKLIGHT_SPIN`. To be called by the
/// test of that name.
fn with_setting(name: &str, setting: Option<&str>, body: impl FnOnce()) {
    const CHILD: &str = "BLACKLIGHT_TEST_CHILD";
    if std::env::var_os(CHILD).is_some() {
        return body();
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", name, "--nocapture"])
        .env(CHILD, "1")
        .env_remove("BLACKLIGHT_SPIN")
        .env_remove("BLACKLIGHT_POLLER")
        .envs(setting.map(|setting| ("BLACKLIGHT_SPIN", setting)));
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", output.status);
}

#[test]
fn a_loop_spins_where_nobody_has_said_anything() {
    let name = "a_loop_spins_where_nobody_has_said_anything";
    with_setting(name, None, || converse(Loop::builder(), true));
}

#[test]
fn a_loop_spins_if_the_environment_says_one() {
    let name = "a_loop_spins_if_the_environment_says_one";
    with_setting(name, Some("1"), || converse(Loop::builder(), true));
}

#[test]
fn nobody_spins_if_the_environment_says_zero() {
    let name = "nobody_spins_if_the_environment_says_zero";
    with_setting(name, Some("0"), || converse(Loop::builder(), false));
}

#[test]
fn nobody_spins_if_the_builder_says_so() {
    let name = "nobody_spins_if_the_builder_says_so";
    with_setting(name, None, || {
        converse(Loop::builder().never_spin(), false);
    });
}

#[test]
fn a_loop_is_refused_if_the_environment_says_something_else() {
    let name = "a_loop_is_refused_if_the_environment_says_something_else";
    with_setting(name, Some("off"), || {
        let error = Loop::new().unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
        let _ = Loop::builder().never_spin().build().unwrap();
    });
}
