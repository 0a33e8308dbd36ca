//! The thread pool.

use blacklight::{Loop, LoopHandle, Mode, spawn_blocking};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::thread;

#[test]
fn results_come_back_to_the_loops_thread() {
    let lp = Loop::new().unwrap();
    let here = thread::current().id();
    let seen = Rc::new(Cell::new(None));
    let told = seen.clone();
    lp.work(
        move || thread::current().id(),
        move |_, there| {
            assert_eq!(thread::current().id(), here);
            told.set(there.ok());
        },
    )
    .unwrap();
    assert!(lp.is_alive());
    assert!(!lp.run(Mode::Default));
    assert!(seen.get().is_some_and(|there| there != here));
}

#[test]
fn a_panicking_job_tells_who_waits_for_it() {
    let lp = Loop::new().unwrap();
    let error = lp.block_on(async { spawn_blocking(|| -> () { panic!("as expected") }).await });
    let error = error.unwrap_err();
    assert_eq!(error.to_string(), "panicked: as expected");
}

#[test]
fn what_no_thread_has_taken_up_can_be_cancelled() {
    let lp = Loop::new().unwrap();
    // As many as the pool may ever have threads stay busy until the barrier opens.
    let (open, gate) = mpsc::channel::<()>();
    let gate = Arc::new(Mutex::new(gate));
    let log = Rc::new(RefCell::new(Vec::new()));
    let began = Arc::new(Barrier::new(2));
    for at in 0..1024 {
        let (gate, began) = (gate.clone(), began.clone());
        let job = move || {
            if at == 0 {
                began.wait();
            }
            let _ = gate.lock().unwrap().recv();
        };
        lp.work(job, |_, result| assert!(result.is_ok())).unwrap();
    }
    began.wait();
    let its_log = log.clone();
    let last = lp
        .work(
            || -> () { unreachable!("it is cancelled") },
            move |_, result| {
                let error = result.unwrap_err();
                its_log.borrow_mut().push(error.is_cancelled());
            },
        )
        .unwrap();
    let blocking = lp.spawn_blocking(|| 1);
    assert!(last.cancel());
    assert!(!last.cancel(), "once is enough");
    assert!(blocking.abort());
    drop(open);
    assert!(!lp.run(Mode::Default));
    assert_eq!(*log.borrow(), [true]);
    assert!(blocking.is_finished());
    assert!(lp.block_on(blocking).unwrap_err().is_cancelled());
}

#[test]
fn a_loop_that_goes_takes_back_its_callbacks() {
    let lp = Loop::new().unwrap();
    let owned = Rc::new(());
    let weak = Rc::downgrade(&owned);
    let (open, gate) = mpsc::channel::<()>();
    lp.work(move || gate.recv(), move |_, _| drop(owned))
        .unwrap();
    let blocking = lp.spawn_blocking(|| ());
    drop(lp);
    assert!(weak.upgrade().is_none());
    drop(open);
    // Nobody will ever run this one's end.
    assert!(blocking.is_finished());
    let other = Loop::new().unwrap();
    assert!(other.block_on(blocking).unwrap_err().is_cancelled());
}

thread_local! {
    static LOOP: RefCell<Option<LoopHandle>> = const { RefCell::new(None) };
}

/// Uses the loop of the thread that drops it.
struct UsesLoop;

impl Drop for UsesLoop {
    fn drop(&mut self) {
        LOOP.with_borrow(|lp| assert!(lp.as_ref().is_some_and(|lp| lp.is_alive())));
    }
}

#[test]
fn a_cancelled_job_may_use_the_loop_when_it_is_dropped() {
    let lp = Loop::new().unwrap();
    LOOP.set(Some(lp.clone()));
    let (open, gate) = mpsc::channel::<()>();
    let gate = Arc::new(Mutex::new(gate));
    for _ in 0..1024 {
        let gate = gate.clone();
        let job = move || {
            let _ = gate.lock().unwrap().recv();
        };
        lp.work(job, |_, result| assert!(result.is_ok())).unwrap();
    }
    let told = Rc::new(Cell::new(false));
    let (its_told, uses_loop) = (told.clone(), UsesLoop);
    let work = lp.work(
        move || drop(uses_loop),
        move |_, result| its_told.set(result.unwrap_err().is_cancelled()),
    );
    assert!(work.unwrap().cancel());
    drop(open);
    assert!(!lp.run(Mode::Default));
    assert!(told.get(), "the request has ended");
    LOOP.set(None);
}
