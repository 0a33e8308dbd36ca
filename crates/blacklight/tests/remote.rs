//! Tasks that other threads spawn.

use blacklight::{Error, Loop, Mode, Remote};
use std::cell::RefCell;
use std::future::pending;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

/// A loop on a thread of its own, which runs until this is dropped.
struct Elsewhere {
    remote: Remote,
    end: Option<futures_end::Sender>,
    thread: Option<thread::JoinHandle<()>>,
}

/// A task that ends when its sender is dropped.
mod futures_end {
    use std::sync::{Arc, Mutex};
    use std::task::{Poll, Waker};

    #[derive(Default)]
    struct State(bool, Option<Waker>);

    pub(super) struct Sender(Arc<Mutex<State>>);

    pub(super) fn channel() -> (Sender, impl Future<Output = ()> + Send) {
        let state = Arc::new(Mutex::new(State::default()));
        let its = state.clone();
        let ended = std::future::poll_fn(move |context| {
            let mut state = its.lock().unwrap();
            state.1 = Some(context.waker().clone());
            match state.0 {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        });
        (Sender(state), ended)
    }

    impl Drop for Sender {
        fn drop(&mut self) {
            let mut state = self.0.lock().unwrap();
            state.0 = true;
            if let Some(waker) = state.1.take() {
                waker.wake();
            }
        }
    }
}

impl Elsewhere {
    fn start() -> Elsewhere {
        let (end, ended) = futures_end::channel();
        let (tell, told) = mpsc::channel();
        let thread = thread::spawn(move || {
            let lp = Loop::new().unwrap();
            tell.send(lp.remote()).unwrap();
            lp.block_on(ended);
        });
        Elsewhere {
            remote: told.recv().unwrap(),
            end: Some(end),
            thread: Some(thread),
        }
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        drop(self.end.take());
        self.thread.take().unwrap().join().unwrap();
    }
}

#[test]
fn many_threads_spawn_on_one_loop() {
    let elsewhere = Elsewhere::start();
    thread::scope(|scope| {
        for thread in 0..4_u64 {
            let remote = elsewhere.remote.clone();
            scope.spawn(move || {
                let add = |number| async move {
                    blacklight::yield_now().await;
                    thread + number
                };
                let tasks: Vec<_> = (0..500).map(|number| remote.spawn(add(number))).collect();
                for (number, task) in (0..).zip(tasks) {
                    assert_eq!(task.join().unwrap(), thread + number);
                }
            });
        }
    });
}

#[test]
fn another_loop_awaits_the_result() {
    let elsewhere = Elsewhere::start();
    let here = Loop::new().unwrap();
    let name = here.block_on(elsewhere.remote.spawn_with(|| async {
        // It is not `Send`, and need not be.
        let shared = Rc::new(RefCell::new(String::new()));
        let its = shared.clone();
        let task = blacklight::spawn(async move { its.borrow_mut().push_str("light") });
        task.await.unwrap();
        shared.take()
    }));
    assert_eq!(name.unwrap(), "light");
}

#[test]
fn a_panic_and_an_abort_are_told() {
    let elsewhere = Elsewhere::start();
    let remote = &elsewhere.remote;
    let failed = remote.spawn(async { panic!("as expected") });
    assert!(failed.join().unwrap_err().is_panic());
    let unmade = remote.spawn_with(|| -> std::future::Ready<()> { panic!("as expected") });
    assert!(unmade.join().unwrap_err().is_panic());
    let begun = remote.spawn(pending::<()>());
    // The loop has begun with the first when it is done with this one.
    remote.spawn(async {}).join().unwrap();
    begun.abort();
    let error = begun.join().unwrap_err();
    assert!(error.is_cancelled() && !error.is_loop_gone());
    let at_once = remote.spawn(pending::<()>());
    at_once.abort();
    assert!(at_once.join().unwrap_err().is_cancelled());
    assert_eq!(remote.spawn(async { 7 }).join().unwrap(), 7, "it goes on");
}

#[test]
fn a_loop_that_is_gone_is_an_error() {
    let lp = Loop::new().unwrap();
    let remote = lp.remote();
    let begun = remote.spawn(pending::<()>());
    lp.run(Mode::NoWait);
    let waiting = remote.spawn(pending::<()>());
    drop(lp);
    assert!(remote.is_gone());
    let late = remote.spawn(pending::<()>());
    for task in [begun, waiting, late] {
        assert!(task.is_finished());
        let error = task.join().unwrap_err();
        assert!(error.is_loop_gone() && error.is_cancelled());
        let error = std::io::Error::from(error);
        assert_eq!(Error::of(&error), Some(Error::LoopGone));
    }
}

#[test]
fn a_task_of_a_remote_is_reason_to_run() {
    let lp = Loop::new().unwrap();
    let remote = lp.remote();
    let task = remote.spawn(async { 7 });
    lp.run(Mode::Default);
    assert_eq!(task.join().unwrap(), 7);
}

#[test]
fn a_loop_does_not_wait_for_itself() {
    let lp = Loop::new().unwrap();
    lp.block_on(async {
        let task = blacklight::current().remote().spawn(async {});
        assert!(catch_unwind(AssertUnwindSafe(|| task.join())).is_err());
    });
    // While it does not run, either.
    let task = lp.remote().spawn(async {});
    assert!(catch_unwind(AssertUnwindSafe(|| task.join())).is_err());
    let task = lp.remote().spawn(async { 7 });
    lp.run(Mode::Default);
    assert_eq!(task.join().unwrap(), 7, "it is over");
}

/// Loops go at any moment; every task's end is told.
#[test]
fn loops_that_go_while_threads_spawn_leave_nobody_waiting() {
    for round in 0..50 {
        let lp = Loop::new().unwrap();
        let remote = lp.remote();
        let spawner = thread::spawn(move || {
            let tasks: Vec<_> = (0..100)
                .map(|number| remote.spawn(async move { number }))
                .collect();
            for (number, task) in (0..).zip(tasks) {
                match task.join() {
                    Ok(come) => assert_eq!(come, number),
                    Err(error) => assert!(error.is_loop_gone()),
                }
            }
        });
        for _ in 0..round {
            lp.run(Mode::NoWait);
        }
        drop(lp);
        spawner.join().unwrap();
    }
}

#[test]
fn what_is_for_other_threads_may_go_there() {
    fn check<T: Send + Sync>() {}
    check::<Remote>();
    check::<blacklight::RemoteHandle<u8>>();
    check::<blacklight::Sender>();
    check::<blacklight::Stop>();
    check::<blacklight::Local<Rc<u8>>>();
    check::<blacklight::JoinError>();
    check::<blacklight::multi::Multi>();
    check::<blacklight::multi::ThreadError>();
}

#[test]
fn a_result_is_taken_once() {
    let lp = Loop::new().unwrap();
    let mut task = lp.remote().spawn(async { 7 });
    assert_eq!(lp.block_on(&mut task).unwrap(), 7);
    let joined = catch_unwind(AssertUnwindSafe(|| task.join()));
    let message = joined.unwrap_err().downcast::<&str>().unwrap();
    assert_eq!(*message, "a result is taken once");
}

#[test]
fn what_is_aborted_before_it_begins_never_begins() {
    let lp = Loop::new().unwrap();
    let begun = Arc::new(AtomicBool::new(false));
    let its = begun.clone();
    let task = lp.remote().spawn_with(move || {
        its.store(true, Ordering::Relaxed);
        pending::<()>()
    });
    task.abort();
    assert!(lp.block_on(task).unwrap_err().is_cancelled());
    assert!(!begun.load(Ordering::Relaxed));
}
