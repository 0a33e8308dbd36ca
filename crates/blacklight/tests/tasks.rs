//! Spawning, waking, joining and cancelling.

use blacklight::{Check, Error, JoinError, JoinHandle, Loop, Mode, Phase, Timer, spawn};
use std::cell::{Cell, OnceCell, RefCell};
use std::future::{pending, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::mpsc;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

/// Gives way to the others once.
async fn give_way() {
    let mut gave_way = false;
    poll_fn(|context| {
        if std::mem::replace(&mut gave_way, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// A future that hands out its waker and waits for a word.
fn told(word: Rc<Cell<bool>>, waker: Rc<RefCell<Option<Waker>>>) -> impl Future<Output = ()> {
    poll_fn(move |context| {
        *waker.borrow_mut() = Some(context.waker().clone());
        match word.get() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    })
}

#[test]
fn tasks_take_turns_in_the_order_of_waking() {
    let lp = Loop::new().unwrap();
    let log = Rc::new(RefCell::new(Vec::new()));
    for name in ["a", "b"] {
        let log = log.clone();
        drop(lp.spawn(async move {
            for round in 0..2 {
                log.borrow_mut().push((name, round));
                give_way().await;
            }
        }));
    }
    assert!(lp.is_alive(), "a task keeps the loop running");
    assert!(!lp.run(Mode::Default));
    assert_eq!(*log.borrow(), [("a", 0), ("b", 0), ("a", 1), ("b", 1)]);
}

#[test]
fn a_woken_task_runs_right_after_the_callback() {
    let lp = Loop::new().unwrap();
    let (word, waker) = (Rc::new(Cell::new(false)), Rc::default());
    let log = Rc::new(RefCell::new(Vec::new()));
    let its_log = log.clone();
    let waiting = told(word.clone(), Rc::clone(&waker));
    drop(lp.spawn(async move {
        waiting.await;
        its_log.borrow_mut().push("task");
    }));
    // Two timers of one phase: the task runs between them.
    let timers = [Timer::new().unwrap(), Timer::new().unwrap()];
    let first_log = log.clone();
    timers[0]
        .start(Duration::ZERO, move |_, _| {
            first_log.borrow_mut().push("first");
            word.set(true);
            waker.borrow_mut().take().unwrap().wake();
        })
        .unwrap();
    let second_log = log.clone();
    timers[1]
        .start(Duration::ZERO, move |_, _| {
            second_log.borrow_mut().push("second");
        })
        .unwrap();
    lp.run(Mode::Default);
    assert_eq!(*log.borrow(), ["first", "task", "second"]);
}

#[test]
fn a_task_that_wakes_itself_for_ever_starves_nobody() {
    let lp = Loop::new().unwrap();
    let polls = Rc::new(Cell::new(0u64));
    let its_polls = polls.clone();
    let busy = lp.spawn(async move {
        loop {
            its_polls.set(its_polls.get() + 1);
            give_way().await;
        }
    });
    let (reader, mut writer) = std::io::pipe().unwrap();
    let poll = blacklight::AsyncFd::new(reader).unwrap();
    poll.start(blacklight::Readiness::READABLE, |lp, _| lp.stop())
        .unwrap();
    std::io::Write::write_all(&mut writer, b"x").unwrap();
    assert!(lp.run(Mode::Default), "the busy task is still alive");
    assert!(polls.get() >= 1);
    busy.abort();
    drop(poll);
    assert!(!lp.run(Mode::Default));
}

#[test]
fn a_wake_from_another_thread_reaches_a_sleeping_loop() {
    let lp = Loop::new().unwrap();
    let (send, receive) = mpsc::channel::<Waker>();
    let thread = thread::spawn(move || {
        for waker in receive {
            waker.wake();
        }
    });
    let rounds = 1000;
    lp.block_on(async move {
        for _ in 0..rounds {
            let mut sent = false;
            poll_fn(|context| {
                if std::mem::replace(&mut sent, true) {
                    return Poll::Ready(());
                }
                send.send(context.waker().clone()).unwrap();
                Poll::Pending
            })
            .await;
        }
    });
    thread.join().unwrap();
}

#[test]
fn a_waker_may_outlive_its_task_and_its_loop() {
    let lp = Loop::new().unwrap();
    let waker = Rc::new(RefCell::new(None));
    let task = lp.spawn(told(Rc::default(), waker.clone()));
    lp.run(Mode::NoWait);
    task.abort();
    let waker = waker.borrow_mut().take().unwrap();
    waker.wake_by_ref();
    // Its place is another's by now, who is not to be disturbed.
    let polls = Rc::new(Cell::new(0));
    let counted = polls.clone();
    drop(lp.spawn(poll_fn(move |_| {
        counted.set(counted.get() + 1);
        Poll::<()>::Pending
    })));
    waker.wake_by_ref();
    lp.run(Mode::NoWait);
    lp.run(Mode::NoWait);
    assert_eq!(polls.get(), 1);
    drop(lp);
    waker.wake();
}

#[test]
fn joining_gives_the_result_or_the_panic() {
    let lp = Loop::new().unwrap();
    lp.block_on(async {
        assert_eq!(spawn(async { "result" }).await.unwrap(), "result");
        let error = spawn(async { std::panic::panic_any(String::from("number 7")) })
            .await
            .unwrap_err();
        assert!(error.is_panic() && !error.is_cancelled());
        assert_eq!(error.to_string(), "panicked: number 7");
        let panic = error.into_panic().unwrap();
        assert_eq!(*panic.downcast::<String>().unwrap(), "number 7");
    });
}

#[test]
fn a_panic_of_the_main_future_leaves_the_loop_usable() {
    let lp = Loop::new().unwrap();
    let run = std::panic::AssertUnwindSafe(|| lp.block_on(async { panic!("as expected") }));
    assert!(std::panic::catch_unwind(run).is_err());
    let _other = Loop::new().unwrap();
    assert!(blacklight::try_current().is_none());
    assert!(!lp.is_alive());
    assert_eq!(lp.block_on(async { 3 }), 3);
}

struct OnDrop(Rc<Cell<u32>>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

#[test]
fn cancelling_drops_the_future_at_once() {
    let lp = Loop::new().unwrap();
    let drops = Rc::new(Cell::new(0));
    let owned = OnDrop(drops.clone());
    lp.block_on(async {
        let task = spawn(async move {
            let _owned = owned;
            pending::<()>().await;
        });
        give_way().await;
        assert!(!task.is_finished());
        task.abort();
        assert_eq!(drops.get(), 1);
        task.abort();
        assert!(task.is_finished());
        assert!(task.await.unwrap_err().is_cancelled());

        let over = spawn(async { 5 });
        give_way().await;
        over.abort();
        assert_eq!(over.await.unwrap(), 5, "what is over keeps its result");
    });
}

#[test]
fn a_task_may_cancel_itself() {
    let lp = Loop::new().unwrap();
    let own: Rc<RefCell<Option<JoinHandle<()>>>> = Rc::default();
    let handle = own.clone();
    let drops = Rc::new(Cell::new(0));
    let owned = OnDrop(drops.clone());
    let after = Rc::new(Cell::new(false));
    let its_after = after.clone();
    *own.borrow_mut() = Some(lp.spawn(async move {
        let _owned = owned;
        handle.borrow().as_ref().unwrap().abort();
        assert_eq!(_owned.0.get(), 0, "not under its feet");
        its_after.set(true);
        give_way().await;
        unreachable!("it is not polled any more");
    }));
    assert!(!lp.run(Mode::Default));
    assert!(after.get());
    assert_eq!(drops.get(), 1);
}

#[test]
fn an_unreferenced_task_lets_the_loop_end() {
    let lp = Loop::new().unwrap();
    let task = lp.spawn(pending::<()>());
    assert!(lp.is_alive());
    task.unref();
    task.unref();
    assert!(!lp.run(Mode::Default));
    task.abort();
    assert!(!lp.is_alive());
}

#[test]
fn block_on_runs_callbacks_and_other_tasks_and_borrows() {
    let lp = Loop::new().unwrap();
    let text = String::from("borrowed");
    let ticks = Rc::new(Cell::new(0));
    let counted = ticks.clone();
    let timer = Timer::new().unwrap();
    let word = Rc::new(Cell::new(false));
    let waker: Rc<RefCell<Option<Waker>>> = Rc::default();
    let (says, wakes) = (word.clone(), Rc::clone(&waker));
    timer
        .start_repeating(Duration::from_millis(1), move |_, _| {
            counted.set(counted.get() + 1);
            if counted.get() == 3 {
                says.set(true);
                wakes.borrow_mut().take().unwrap().wake();
            }
        })
        .unwrap();
    let len = lp.block_on(async {
        told(word, waker).await;
        text.len()
    });
    assert_eq!((len, ticks.get()), (8, 3));
    // Somebody else's stop does not end it.
    lp.stop();
    lp.block_on(async {
        blacklight::current().stop();
        blacklight::sleep(Duration::from_millis(2)).await;
    });
}

#[test]
fn the_turn_in_which_block_on_ends_is_finished() {
    let lp = Loop::new().unwrap();
    let check = Check::new().unwrap();
    let checks = Rc::new(Cell::new(0));
    let counted = checks.clone();
    check
        .start(move |_, _| counted.set(counted.get() + 1))
        .unwrap();
    lp.block_on(give_way());
    assert_eq!(checks.get(), 0, "what is over at once takes no turn");
    lp.block_on(async { blacklight::sleep(Duration::from_millis(1)).await });
    assert!(checks.get() >= 1);
    let before = checks.get();
    lp.run(Mode::NoWait);
    assert_eq!(checks.get(), before + 1, "no stop is left behind");
}

#[test]
fn a_loop_does_not_run_inside_itself() {
    let lp = Loop::new().unwrap();
    let inner = Loop::new().unwrap();
    lp.block_on(async {
        let own = std::panic::AssertUnwindSafe(|| lp.run(Mode::NoWait));
        assert!(std::panic::catch_unwind(own).is_err());
        // But another loop does, and the outer one is current again after that.
        assert_eq!(inner.block_on(async { 1 }), 1);
        assert_eq!(spawn(async { 2 }).await.unwrap(), 2);
    });
}

#[test]
fn tasks_of_two_loops_of_one_thread_wake_each_other() {
    let outer = Loop::new().unwrap();
    let inner = Loop::new().unwrap();
    let (word, waker) = (Rc::new(Cell::new(false)), Rc::default());
    let task = outer.spawn(told(word.clone(), Rc::clone(&waker)));
    outer.block_on(async {
        give_way().await;
        inner.block_on(async {
            word.set(true);
            let waker: Option<Waker> = waker.borrow_mut().take();
            waker.unwrap().wake();
        });
        task.await.unwrap();
    });
}

#[test]
fn tasks_are_observed_with_the_callback_that_woke_them() {
    let lp = Loop::new().unwrap();
    let phases = Rc::new(RefCell::new(Vec::new()));
    let log = phases.clone();
    lp.observe(move |dispatch| log.borrow_mut().push((dispatch.phase, dispatch.took)));
    lp.block_on(async {
        blacklight::sleep(Duration::from_millis(1)).await;
        thread::sleep(Duration::from_millis(2));
    });
    let (_, took) = *phases
        .borrow()
        .iter()
        .find(|(phase, _)| *phase == Phase::Timers)
        .unwrap();
    assert!(took >= Duration::from_millis(2));
}

#[test]
fn a_join_handle_may_be_polled_again_and_again() {
    let lp = Loop::new().unwrap();
    lp.block_on(async {
        let (word, waker) = (Rc::new(Cell::new(false)), Rc::default());
        let task = spawn(told(word.clone(), Rc::clone(&waker)));
        let mut task = pin!(task);
        let mut nobody = Context::from_waker(Waker::noop());
        assert!(task.as_mut().poll(&mut nobody).is_pending());
        give_way().await;
        word.set(true);
        waker.borrow_mut().take().unwrap().wake();
        let joined: Result<(), _> = Pin::as_mut(&mut task).await;
        joined.unwrap();
    });
}

#[test]
fn a_set_joins_its_tasks_as_they_end() {
    let lp = Loop::new().unwrap();
    lp.block_on(async {
        let mut tasks = blacklight::JoinSet::new();
        assert!(tasks.join_next().await.is_none());
        let (second, first) = (blacklight::yield_now(), async {});
        tasks.spawn(async {
            second.await;
            2
        });
        tasks.spawn(async {
            first.await;
            1
        });
        tasks.spawn(async { panic!("as expected") });
        tasks.spawn(pending());
        assert_eq!(tasks.join_next().await.unwrap().unwrap(), 1);
        assert!(tasks.join_next().await.unwrap().unwrap_err().is_panic());
        assert_eq!(tasks.join_next().await.unwrap().unwrap(), 2);
        tasks.abort_all();
        let aborted = tasks.join_next().await.unwrap().unwrap_err();
        assert!(aborted.is_cancelled());
        assert!(tasks.join_next().await.is_none());
    });
    assert!(!lp.is_alive());
}

#[test]
fn a_dropped_set_and_handle_abort_their_tasks() {
    let lp = Loop::new().unwrap();
    let drops = Rc::new(Cell::new(0));
    let waits = |owned: OnDrop| async move {
        let _owned = owned;
        pending::<()>().await;
    };
    lp.block_on(async {
        let mut tasks = blacklight::JoinSet::new();
        for _ in 0..3 {
            tasks.spawn(waits(OnDrop(drops.clone())));
        }
        let task = spawn(waits(OnDrop(drops.clone()))).abort_on_drop();
        blacklight::yield_now().await;
        drop(tasks);
        assert_eq!(drops.get(), 3);
        drop(task);
        assert_eq!(drops.get(), 4);
    });
    // On a loop that is gone, tasks are cancelled before they begin.
    let handle = lp.clone();
    drop(lp);
    let mut tasks = blacklight::JoinSet::new();
    handle.enter(|| tasks.spawn(async {}));
    let other = Loop::new().unwrap();
    let joined = other.block_on(tasks.join_next()).unwrap();
    assert!(joined.unwrap_err().is_cancelled());
}

#[test]
fn a_set_whose_tasks_were_detached_is_as_new() {
    let lp = Loop::new().unwrap();
    let mut tasks = blacklight::JoinSet::new();
    let (ended, goes_on) = (Rc::new(Cell::new(0)), Rc::default());
    let its = ended.clone();
    tasks.spawn(async move { its.set(its.get() + 1) });
    lp.run(Mode::Default);
    // One has ended, and one ends later.
    let (word, waker) = (Rc::new(Cell::new(false)), Rc::clone(&goes_on));
    let (its, hears) = (ended.clone(), word.clone());
    tasks.spawn(async move {
        told(hears, waker).await;
        its.set(its.get() + 1);
    });
    lp.run(Mode::NoWait);
    tasks.detach_all();
    assert!(lp.block_on(tasks.join_next()).is_none());
    tasks.spawn(async {});
    word.set(true);
    goes_on.borrow_mut().take().unwrap().wake();
    lp.block_on(async {
        tasks.join_next().await.unwrap().unwrap();
        assert!(tasks.join_next().await.is_none());
    });
    lp.run(Mode::Default);
    assert_eq!(ended.get(), 2);
}

/// Panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("as expected");
    }
}

#[test]
fn a_result_that_panics_when_dropped_ends_no_run() {
    let lp = Loop::new().unwrap();
    drop(lp.spawn(async { Bomb }));
    // One that cancels itself, and whose future is dropped after its poll.
    let own = Rc::new(OnceCell::<JoinHandle<()>>::new());
    let itself = own.clone();
    let task = lp.spawn(async move {
        let _bomb = Bomb;
        itself.get().unwrap().abort();
        pending::<()>().await;
    });
    own.set(task).unwrap();
    let after = lp.spawn(async { 7 });
    assert!(!lp.run(Mode::Default));
    assert_eq!(lp.block_on(after).unwrap(), 7);
}

#[test]
fn what_a_task_ended_with_can_be_told_from_the_io_error() {
    let lp = Loop::new().unwrap();
    let task = lp.spawn(pending::<()>());
    task.abort();
    let error = io::Error::from(lp.block_on(task).unwrap_err());
    assert_eq!(Error::of(&error), Some(Error::Cancelled));
    let error = io::Error::from(lp.block_on(lp.spawn(async { panic!("oh") })).unwrap_err());
    let inner = error.get_ref().unwrap().downcast_ref::<JoinError>();
    assert!(inner.unwrap().is_panic());
}
