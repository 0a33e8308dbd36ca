//! Signals. They are the whole process's, so the tests take turns.

#![allow(clippy::vec_box, reason = "the loop knows handles by their address")]

#[path = "support/event_loop.rs"]
mod event_loop;

use event_loop::{alone, new_loop};
use std::ffi::c_int;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use uv as _;
use uv_binding::*;

/// A handle whose `data` counts its calls.
fn new_signal(loop_: &mut uv_loop_t, count: &AtomicUsize) -> Box<uv_signal_t> {
    let mut signal: Box<uv_signal_t> = Box::new(zeroed());
    // SAFETY: the loop is initialised.
    assert_eq!(unsafe { uv_signal_init(loop_, &mut *signal) }, 0);
    signal.data = std::ptr::from_ref(count).cast_mut().cast();
    signal
}

unsafe extern "C" fn count_it(signal: *mut uv_signal_t, signum: c_int) {
    // SAFETY: `data` points to a counter that outlives the loop.
    unsafe {
        assert_eq!((*signal).signum, signum);
        (*(*signal).data.cast::<AtomicUsize>()).fetch_add(1, SeqCst);
    }
}

fn run(loop_: &mut uv_loop_t, mode: c_int) -> c_int {
    // SAFETY: the loop is initialised and used here only.
    unsafe { uv_run(loop_, mode) }
}

/// Closes handles and their loop.
fn close(mut loop_: Box<uv_loop_t>, signals: Vec<Box<uv_signal_t>>) {
    for mut signal in signals.into_iter().map(std::mem::ManuallyDrop::new) {
        // SAFETY: the handle is open; its memory is leaked, so it stays valid.
        unsafe { uv_close(std::ptr::from_mut(&mut **signal), None) };
    }
    assert_eq!(run(&mut loop_, UV_RUN_DEFAULT), 0);
    // SAFETY: the loop is initialised, and nobody uses it.
    assert_eq!(unsafe { uv_loop_close(&mut *loop_) }, 0);
}

fn raise(signum: c_int) {
    // SAFETY: somebody watches the signal.
    assert_eq!(unsafe { libc::raise(signum) }, 0);
}

fn action(signum: c_int) -> libc::sigaction {
    // SAFETY: all zeros are a valid action, and there is room for the present one.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        assert_eq!(libc::sigaction(signum, std::ptr::null(), &mut action), 0);
        action
    }
}

/// A signal that a thread sends to itself is caught before the call returns, so we know exactly
/// how many there were, and every watcher must hear of each.
#[test]
fn nothing_is_lost_in_a_storm() {
    const THREADS: usize = 4;
    const EACH: usize = 20_000;
    let _alone = alone();
    let counts = [const { AtomicUsize::new(0) }; 3];
    let mut loop_ = new_loop();
    let mut signals: Vec<_> = counts
        .iter()
        .map(|count| new_signal(&mut loop_, count))
        .collect();
    for (signal, signum) in signals
        .iter_mut()
        .zip([libc::SIGUSR1, libc::SIGUSR1, libc::SIGUSR2])
    {
        // SAFETY: the handle is initialised.
        assert_eq!(
            // SAFETY: as above.
            unsafe { uv_signal_start(&mut **signal, Some(count_it), signum) },
            0
        );
    }
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                let signum = [libc::SIGUSR1, libc::SIGUSR2][thread % 2];
                (0..EACH).for_each(|_| raise(signum));
            });
        }
        let wanted = THREADS * EACH / 2;
        while counts.iter().any(|count| count.load(SeqCst) < wanted) {
            assert_eq!(run(&mut loop_, UV_RUN_ONCE), 1);
        }
    });
    assert_eq!(run(&mut loop_, UV_RUN_NOWAIT), 1);
    assert!(
        counts
            .iter()
            .all(|count| count.load(SeqCst) == THREADS * EACH / 2),
        "{counts:?}"
    );
    close(loop_, signals);
}

#[test]
fn every_loop_hears_of_it() {
    const LOOPS: usize = 8;
    let _alone = alone();
    let count = AtomicUsize::new(0);
    let started = std::sync::Barrier::new(LOOPS + 1);
    std::thread::scope(|scope| {
        for _ in 0..LOOPS {
            scope.spawn(|| {
                let mut loop_ = new_loop();
                let mut signal = new_signal(&mut loop_, &count);
                // SAFETY: the handle is initialised.
                unsafe {
                    assert_eq!(
                        uv_signal_start_oneshot(&mut *signal, Some(count_it), libc::SIGUSR1),
                        0
                    )
                };
                started.wait();
                assert_eq!(run(&mut loop_, UV_RUN_DEFAULT), 0);
                close(loop_, vec![signal]);
            });
        }
        started.wait();
        // SAFETY: the signal is watched.
        assert_eq!(unsafe { libc::kill(libc::getpid(), libc::SIGUSR1) }, 0);
    });
    assert_eq!(count.load(SeqCst), LOOPS);
    assert_eq!(action(libc::SIGUSR1).sa_sigaction, libc::SIG_DFL);
}

#[test]
fn the_handler_goes_with_the_last_watcher() {
    let _alone = alone();
    let count = AtomicUsize::new(0);
    let mut loop_ = new_loop();
    let mut regular = new_signal(&mut loop_, &count);
    let mut once = new_signal(&mut loop_, &count);
    // SAFETY: the handles are initialised.
    unsafe {
        assert_eq!(
            uv_signal_start_oneshot(&mut *once, Some(count_it), libc::SIGUSR2),
            0
        );
        assert_ne!(action(libc::SIGUSR2).sa_sigaction, libc::SIG_DFL);
        assert_ne!(action(libc::SIGUSR2).sa_flags & libc::SA_RESETHAND, 0);
        assert_eq!(
            uv_signal_start(&mut *regular, Some(count_it), libc::SIGUSR2),
            0
        );
        let flags = action(libc::SIGUSR2).sa_flags;
        assert_eq!(
            flags & (libc::SA_RESETHAND | libc::SA_RESTART),
            libc::SA_RESTART
        );
        assert_eq!(uv_signal_stop(&mut *regular), 0);
        assert_ne!(action(libc::SIGUSR2).sa_flags & libc::SA_RESETHAND, 0);
        raise(libc::SIGUSR2);
        assert_eq!(
            action(libc::SIGUSR2).sa_sigaction,
            libc::SIG_DFL,
            "the kernel put it back"
        );
        assert_eq!(run(&mut loop_, UV_RUN_DEFAULT), 0);
        assert_eq!((count.load(SeqCst), once.signum), (1, 0));
        assert_eq!(
            uv_signal_start(&mut *regular, Some(count_it), libc::SIGUSR2),
            0
        );
        assert_eq!(
            uv_signal_start(&mut *regular, Some(count_it), libc::SIGUSR1),
            0
        );
        assert_eq!(
            action(libc::SIGUSR2).sa_sigaction,
            libc::SIG_DFL,
            "it watches another"
        );
        assert_ne!(action(libc::SIGUSR1).sa_sigaction, libc::SIG_DFL);
    }
    close(loop_, vec![regular, once]);
    assert_eq!(action(libc::SIGUSR1).sa_sigaction, libc::SIG_DFL);
}

#[test]
fn what_cannot_be_caught_is_refused() {
    let _alone = alone();
    let count = AtomicUsize::new(0);
    let mut loop_ = new_loop();
    let mut signal = new_signal(&mut loop_, &count);
    for signum in [
        0,
        -1,
        65,
        1 << 20,
        c_int::MIN,
        libc::SIGKILL,
        libc::SIGSTOP,
        32,
        33,
    ] {
        // SAFETY: the handle is initialised.
        let started = unsafe { uv_signal_start(&mut *signal, Some(count_it), signum) };
        assert_eq!(started, -libc::EINVAL, "{signum}");
        // SAFETY: as above.
        assert_eq!(
            // SAFETY: as above.
            unsafe { uv_is_active(std::ptr::from_ref(&*signal)) },
            0
        );
    }
    close(loop_, vec![signal]);
}

#[test]
fn a_watcher_hears_of_what_happens_while_it_is_started() {
    let _alone = alone();
    let [early, late, stopped] = [const { AtomicUsize::new(0) }; 3];
    let mut loop_ = new_loop();
    let mut signals: Vec<_> = [&early, &late, &stopped]
        .map(|count| new_signal(&mut loop_, count))
        .into();
    // SAFETY: the handles are initialised.
    unsafe {
        assert_eq!(
            uv_signal_start(&mut *signals[0], Some(count_it), libc::SIGUSR1),
            0
        );
        assert_eq!(
            uv_signal_start(&mut *signals[2], Some(count_it), libc::SIGUSR1),
            0
        );
        raise(libc::SIGUSR1);
        raise(libc::SIGUSR1);
        assert_eq!(
            uv_signal_start(&mut *signals[1], Some(count_it), libc::SIGUSR1),
            0
        );
        raise(libc::SIGUSR1);
        assert_eq!(uv_signal_stop(&mut *signals[2]), 0);
    }
    assert_eq!(run(&mut loop_, UV_RUN_NOWAIT), 1);
    assert_eq!(
        [&early, &late, &stopped].map(|count| count.load(SeqCst)),
        [3, 1, 0]
    );
    close(loop_, signals);
}

#[test]
fn the_handler_leaves_errno_alone() {
    let _alone = alone();
    let count = AtomicUsize::new(0);
    let mut loop_ = new_loop();
    let mut signal = new_signal(&mut loop_, &count);
    // SAFETY: the handle is initialised, and errno is this thread's.
    unsafe {
        assert_eq!(
            uv_signal_start(&mut *signal, Some(count_it), libc::SIGUSR1),
            0
        );
        *libc::__errno_location() = 77;
        libc::raise(libc::SIGUSR1);
        assert_eq!(*libc::__errno_location(), 77);
    }
    assert_eq!(run(&mut loop_, UV_RUN_ONCE), 1);
    assert_eq!(count.load(SeqCst), 1);
    close(loop_, vec![signal]);
}

/// The parent hears of what was caught before the fork, the child of what it catches itself,
/// before and after it has told the loop.
#[test]
fn parent_and_child_hear_of_their_own() {
    let _alone = alone();
    let count = AtomicUsize::new(0);
    let mut loop_ = new_loop();
    let mut signal = new_signal(&mut loop_, &count);
    // SAFETY: the handle is initialised. The child is a copy of this thread alone, uses the
    // loop and atomics, and leaves without running destructors.
    unsafe {
        assert_eq!(
            uv_signal_start(&mut *signal, Some(count_it), libc::SIGUSR1),
            0
        );
        raise(libc::SIGUSR1);
        let child = libc::fork();
        if child == 0 {
            raise(libc::SIGUSR1);
            let forked = uv_loop_fork(&mut *loop_) == 0;
            raise(libc::SIGUSR1);
            run(&mut loop_, UV_RUN_ONCE);
            libc::_exit(if forked {
                count.load(SeqCst) as c_int
            } else {
                99
            });
        }
        let mut status = 0;
        assert_eq!(libc::waitpid(child, &mut status, 0), child);
        assert_eq!(libc::WEXITSTATUS(status), 2);
    }
    assert_eq!(run(&mut loop_, UV_RUN_ONCE), 1);
    assert_eq!(run(&mut loop_, UV_RUN_NOWAIT), 1);
    assert_eq!(count.load(SeqCst), 1);
    close(loop_, vec![signal]);
}

static ORDER: Mutex<Vec<&str>> = Mutex::new(Vec::new());

unsafe extern "C" fn note_async(_: *mut uv_async_t) {
    ORDER.lock().unwrap().push("async");
}

unsafe extern "C" fn note_signal(_: *mut uv_signal_t, _: c_int) {
    ORDER.lock().unwrap().push("signal");
    // Caught while signals are handed out: that is for the next turn.
    if ORDER.lock().unwrap().len() == 2 {
        raise(libc::SIGUSR1);
    }
}

#[test]
fn signals_come_last() {
    let _alone = alone();
    let count = AtomicUsize::new(0);
    let mut loop_ = new_loop();
    let mut signal = new_signal(&mut loop_, &count);
    // SAFETY: all zeros are memory for a handle; it stays where it is until the loop is closed.
    unsafe {
        let mut async_: Box<uv_async_t> = Box::new(std::mem::zeroed());
        assert_eq!(
            uv_async_init(&mut *loop_, &mut *async_, Some(note_async)),
            0
        );
        assert_eq!(
            uv_signal_start(&mut *signal, Some(note_signal), libc::SIGUSR1),
            0
        );
        raise(libc::SIGUSR1);
        assert_eq!(uv_async_send(&mut *async_), 0);
        assert_eq!(run(&mut loop_, UV_RUN_ONCE), 1);
        assert_eq!(*ORDER.lock().unwrap(), ["async", "signal"]);
        assert_eq!(run(&mut loop_, UV_RUN_ONCE), 1);
        assert_eq!(*ORDER.lock().unwrap(), ["async", "signal", "signal"]);
        uv_close(std::ptr::from_mut(&mut *async_), None);
        close(loop_, vec![signal]);
    }
}

unsafe extern "C" fn again(signal: *mut uv_signal_t, signum: c_int) {
    // SAFETY: the handle is open, and `data` points to a counter.
    unsafe {
        let count = &*(*signal).data.cast::<AtomicUsize>();
        if count.fetch_add(1, SeqCst) == 0 {
            assert_eq!(uv_signal_start_oneshot(signal, Some(again), signum), 0);
        }
    }
}

#[test]
fn a_one_shot_watcher_can_be_started_by_its_callback() {
    let _alone = alone();
    let count = AtomicUsize::new(0);
    let mut loop_ = new_loop();
    let mut signal = new_signal(&mut loop_, &count);
    // SAFETY: the handle is initialised.
    unsafe {
        assert_eq!(
            uv_signal_start_oneshot(&mut *signal, Some(again), libc::SIGUSR1),
            0
        )
    };
    raise(libc::SIGUSR1);
    assert_eq!(run(&mut loop_, UV_RUN_ONCE), 1, "it is active again");
    assert_eq!(signal.signum, libc::SIGUSR1);
    raise(libc::SIGUSR1);
    assert_eq!(run(&mut loop_, UV_RUN_DEFAULT), 0);
    assert_eq!((count.load(SeqCst), signal.signum), (2, 0));
    close(loop_, vec![signal]);
}
