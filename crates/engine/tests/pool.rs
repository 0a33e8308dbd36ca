//! The thread pool, with real threads. Nothing here looks at a clock: what must not happen
//! is excluded by what has to happen before, and what must happen is waited for.

#[path = "support/each_mechanism.rs"]
mod each_mechanism;

use blacklight_engine::{
    Engine, Errno, Event, Job, Mechanism, Mode, RequestKey, Token, WorkKind, pool_metrics,
    shut_down_pool,
};
use each_mechanism::{engine_on, events, on_each_mechanism, run, told};
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};

on_each_mechanism!(
    work_is_done_elsewhere_and_told_here,
    a_request_keeps_the_loop_alive,
    a_callback_may_submit_again,
    requests_begin_in_the_order_of_submission,
    slow_work_leaves_half_of_the_threads,
    slow_work_takes_its_turn,
    what_is_queued_is_cancelled,
    what_runs_or_has_run_is_busy,
    a_request_is_its_own_loops,
    cancelled_work_is_dropped_once,
    work_that_is_refused_is_given_back,
    completions_come_together,
    completions_come_before_sends,
    loops_share_the_pool,
    a_loop_that_goes_away_takes_its_queue_along,
    a_panic_is_the_end_of_one_request,
    the_pool_counts,
    the_pool_ends_and_begins_again,
    requests_are_forgotten_only_in_a_child,
);

/// The size of the pool when nobody asks for another.
const THREADS: usize = 4;

fn submit(
    engine: &mut Engine,
    token: u64,
    kind: WorkKind,
    work: impl FnOnce() + Send + 'static,
) -> RequestKey {
    let job = Job::new(work);
    engine.work_submit(Token(token), kind, job).unwrap()
}

fn done(token: u64) -> Event {
    Event::Work(Token(token), Ok(()))
}

fn cancelled(token: u64) -> Event {
    Event::Work(Token(token), Err(Errno::ECANCELED))
}

fn sorted(mut events: Vec<Event>) -> Vec<Event> {
    events.sort_by_key(|event| match event {
        Event::Work(token, _) => token.0,
        other => panic!("{other:?} is not of the pool"),
    });
    events
}

/// Threads of the pool that are held up until they are let go, one by one or all together.
struct Held {
    go: Vec<Sender<()>>,
}

impl Held {
    /// Holds up so many threads. Their requests have the tokens from 1000 on.
    fn new(engine: &mut Engine, threads: usize) -> Held {
        let (started, has_started) = mpsc::channel();
        let hold = |at: usize| {
            let (go, wait): (Sender<()>, Receiver<()>) = mpsc::channel();
            let started = started.clone();
            submit(engine, 1000 + at as u64, WorkKind::Cpu, move || {
                started.send(()).unwrap();
                // An error means that the test has failed already.
                let _ = wait.recv();
            });
            go
        };
        let go = (0..threads).map(hold).collect();
        for _ in 0..threads {
            has_started.recv().unwrap();
        }
        Held { go }
    }
}

fn work_is_done_elsewhere_and_told_here(mechanism: Mechanism) {
    let mut engine = engine_on(mechanism);
    let (tell, told) = mpsc::channel();
    submit(&mut engine, 7, WorkKind::Cpu, move || {
        let name = std::fs::read_to_string("/proc/thread-self/comm").unwrap();
        tell.send((std::thread::current().id(), name)).unwrap();
    });
    assert_eq!(events(&mut engine, Mode::Default), [done(7)]);
    let (thread, name) = told.recv().unwrap();
    assert_ne!(thread, std::thread::current().id());
    assert_eq!(name, "libuv-worker\n");
}

fn a_request_keeps_the_loop_alive(mechanism: Mechanism) {
    let mut engine = engine_on(mechanism);
    assert!(!engine.is_alive() && engine.is_unused());
    let (go, wait) = mpsc::channel::<()>();
    submit(&mut engine, 1, WorkKind::FastIo, move || {
        wait.recv().unwrap()
    });
    assert_eq!(engine.active_requests(), 1);
    assert!(engine.is_alive() && !engine.is_unused());
    assert_eq!(
        engine.backend_timeout(),
        None,
        "the loop may sleep until then"
    );
    assert_eq!(told(&mut engine), []);
    assert!(engine.is_alive());
    go.send(()).unwrap();
    run(&mut engine, Mode::Default, |engine, event| {
        assert_eq!(event, done(1));
        assert!(!engine.is_alive(), "it is over before it is told");
        assert!(engine.is_unused());
    });
    assert!(engine.is_unused());
}

fn a_callback_may_submit_again(mechanism: Mechanism) {
    const TIMES: u64 = 5_000;
    let mut engine = engine_on(mechanism);
    let ran = Arc::new(AtomicU32::new(0));
    let again = |engine: &mut Engine| {
        let ran = ran.clone();
        submit(engine, 1, WorkKind::Cpu, move || {
            ran.fetch_add(1, SeqCst);
        });
    };
    again(&mut engine);
    let mut told = 0;
    run(&mut engine, Mode::Default, |engine, event| {
        assert_eq!(event, done(1));
        told += 1;
        if told < TIMES {
            again(engine);
        }
    });
    assert_eq!((told, ran.load(SeqCst)), (TIMES, TIMES as u32));
}

fn requests_begin_in_the_order_of_submission(mechanism: Mechanism) {
    let mut engine = engine_on(mechanism);
    let held = Held::new(&mut engine, THREADS);
    let (begun, order) = mpsc::channel();
    for token in 0..100 {
        let begun = begun.clone();
        let kind = [WorkKind::Cpu, WorkKind::FastIo][token as usize % 2];
        submit(&mut engine, token, kind, move || begun.send(token).unwrap());
    }
    // With one thread to do it all, the order is plain to see.
    held.go[0].send(()).unwrap();
    let order: Vec<_> = order.iter().take(100).collect();
    assert_eq!(order, (0..100).collect::<Vec<_>>());
    drop(held);
    let told = events(&mut engine, Mode::Default);
    let quick = told
        .into_iter()
        .filter(|event| !matches!(event, Event::Work(token, _) if token.0 >= 1000));
    assert_eq!(
        quick.collect::<Vec<_>>(),
        (0..100).map(done).collect::<Vec<_>>()
    );
}

fn slow_work_leaves_half_of_the_threads(mechanism: Mechanism) {
    const SLOW: u64 = 100;
    let mut engine = engine_on(mechanism);
    let gate = Arc::new(Mutex::new(()));
    let closed = gate.lock().unwrap();
    let (begun, has_begun) = mpsc::channel();
    for token in 0..SLOW {
        let (begun, gate) = (begun.clone(), gate.clone());
        submit(&mut engine, token, WorkKind::SlowIo, move || {
            begun.send(token).unwrap();
            drop(gate.lock().unwrap());
        });
    }
    let limit = THREADS / 2;
    for _ in 0..limit {
        has_begun.recv().unwrap();
    }
    // A hundred are queued before them, and yet these come through, thousands of times.
    let (ran, has_run) = mpsc::channel();
    for token in 0..2_000 {
        let ran = ran.clone();
        submit(&mut engine, 1000 + token, WorkKind::FastIo, move || {
            ran.send(()).unwrap()
        });
        if token % 2 == 0 {
            has_run.recv().unwrap();
        }
    }
    for _ in 0..1_000 {
        has_run.recv().unwrap();
    }
    assert!(
        has_begun.try_recv().is_err(),
        "no more slow ones have begun"
    );
    assert_eq!(pool_metrics().queued as u64, SLOW - limit as u64);
    drop(closed);
    let told = events(&mut engine, Mode::Default);
    assert_eq!(told.len(), 2_000 + SLOW as usize);
    let slow = told
        .into_iter()
        .filter(|event| matches!(event, Event::Work(token, _) if token.0 < SLOW));
    assert_eq!(
        sorted(slow.collect()),
        (0..SLOW).map(done).collect::<Vec<_>>()
    );
}

fn slow_work_takes_its_turn(mechanism: Mechanism) {
    let mut engine = engine_on(mechanism);
    let held = Held::new(&mut engine, THREADS);
    let (begun, order) = mpsc::channel();
    for token in 0..60 {
        let begun = begun.clone();
        let kind = [WorkKind::FastIo, WorkKind::SlowIo, WorkKind::Cpu][token as usize % 3];
        submit(&mut engine, token, kind, move || begun.send(token).unwrap());
    }
    held.go[0].send(()).unwrap();
    let order: Vec<_> = order.iter().take(60).collect();
    assert_eq!(
        order,
        (0..60).collect::<Vec<_>>(),
        "fast work does not push slow work back"
    );
    drop(held);
    assert_eq!(events(&mut engine, Mode::Default).len(), 60 + THREADS);
}

fn what_is_queued_is_cancelled(mechanism: Mechanism) {
    let mut engine = engine_on(mechanism);
    let held = Held::new(&mut engine, THREADS);
    let ran = Arc::new(AtomicU32::new(0));
    let keys: Vec<_> = (0..9)
        .map(|token| {
            let ran = ran.clone();
            let kind = [WorkKind::Cpu, WorkKind::SlowIo][token as usize % 2];
            submit(&mut engine, token, kind, move || {
                ran.fetch_add(1, SeqCst);
            })
        })
        .collect();
    // The first and the last of each queue, and some between.
    for at in [0, 1, 4, 5, 7, 8] {
        assert_eq!(engine.work_cancel(keys[at]), Ok(()));
        assert_eq!(
            engine.work_cancel(keys[at]),
            Err(Errno::EBUSY),
            "once is enough"
        );
    }
    assert_eq!(
        engine.active_requests(),
        9 + THREADS as u32,
        "they are still to be told"
    );
    assert_eq!(told(&mut engine), [0, 1, 4, 5, 7, 8].map(cancelled));
    drop(held);
    let rest = events(&mut engine, Mode::Default);
    let rest = sorted(rest);
    assert_eq!(rest[..3], [2, 3, 6].map(done));
    assert_eq!(ran.load(SeqCst), 3);
}

fn what_runs_or_has_run_is_busy(mechanism: Mechanism) {
    let mut engine = engine_on(mechanism);
    let (started, has_started) = mpsc::channel();
    let (go, wait) = mpsc::channel::<()>();
    let key = submit(&mut engine, 1, WorkKind::Cpu, move || {
        started.send(()).unwrap();
        wait.recv().unwrap();
    });
    has_started.recv().unwrap();
    assert_eq!(engine.work_cancel(key), Err(Errno::EBUSY), "it runs");
    let completed = pool_metrics().completed;
    go.send(()).unwrap();
    while pool_metrics().completed == completed {
        std::thread::yield_now();
    }
    assert_eq!(engine.work_cancel(key), Err(Errno::EBUSY), "it has run");
    assert_eq!(events(&mut engine, Mode::Default), [done(1)]);
    assert_eq!(
        engine.work_cancel(key),
        Err(Errno::EBUSY),
        "it has been told"
    );
    assert_eq!(
        engine.work_cancel(RequestKey::from_bits(0)),
        Err(Errno::EBUSY)
    );
    assert_eq!(
        engine.work_cancel(RequestKey::from_bits(u64::MAX)),
        Err(Errno::EBUSY)
    );
}

fn a_request_is_its_own_loops(mechanism: Mechanism) {
    let (mut one, mut other) = (engine_on(mechanism), engine_on(mechanism));
    let held = Held::new(&mut one, THREADS);
    let key = submit(&mut one, 1, WorkKind::Cpu, || ());
    assert_eq!(other.work_cancel(key), Err(Errno::EBUSY));
    assert_eq!(one.work_cancel(key), Ok(()));
    drop(held);
    assert!(events(&mut one, Mode::Default).contains(&cancelled(1)));
}

fn cancelled_work_is_dropped_once(mechanism: Mechanism) {
    struct Counts(Arc<AtomicU32>);
    impl Drop for Counts {
        fn drop(&mut self) {
            self.0.fetch_add(1, SeqCst);
        }
    }
    let mut engine = engine_on(mechanism);
    let drops = Arc::new(AtomicU32::new(0));
    let held = Held::new(&mut engine, THREADS);
    let mut job = |token| {
        let counts = Counts(drops.clone());
        submit(&mut engine, token, WorkKind::Cpu, move || drop(counts))
    };
    let keys = [job(0), job(1)];
    engine.work_cancel(keys[0]).unwrap();
    assert_eq!(drops.load(SeqCst), 1, "what it owned is free at once");
    drop(held);
    events(&mut engine, Mode::Default);
    assert_eq!(drops.load(SeqCst), 2);
}

/// Dropping a job may use the loop, through the things that the job owns, so the caller has to do it.
fn work_that_is_refused_is_given_back(mechanism: Mechanism) {
    let mut engine = engine_on(mechanism);
    let owned = Arc::new(());
    let its = owned.clone();
    let job = Job::new(move || drop(its));
    let refused = engine.work_submit(Token(u64::MAX), WorkKind::Cpu, job);
    let (error, job) = refused.unwrap_err();
    assert_eq!(error, Errno::EINVAL);
    assert_eq!(Arc::strong_count(&owned), 2);
    drop(job);
    assert_eq!(Arc::strong_count(&owned), 1);
    assert!(!engine.is_alive());
}

fn completions_come_together(mechanism: Mechanism) {
    const REQUESTS: u64 = 500;
    let mut engine = engine_on(mechanism);
    let (ran, has_run) = mpsc::channel();
    let completed = pool_metrics().completed;
    for token in 0..REQUESTS {
        let ran = ran.clone();
        submit(&mut engine, token, WorkKind::Cpu, move || {
            ran.send(()).unwrap()
        });
    }
    has_run.iter().take(REQUESTS as usize).for_each(drop);
    while pool_metrics().completed < completed + REQUESTS {
        std::thread::yield_now();
    }
    let before = engine.metrics();
    let told = events(&mut engine, Mode::Once);
    assert_eq!(sorted(told), (0..REQUESTS).map(done).collect::<Vec<_>>());
    let after = engine.metrics();
    assert_eq!(after.loop_count - before.loop_count, 1);
    assert_eq!(after.events - before.events, REQUESTS);
    assert_eq!(after.events_waiting - before.events_waiting, REQUESTS);
}

fn completions_come_before_sends(mechanism: Mechanism) {
    let mut engine = engine_on(mechanism);
    let (key, ticket) = engine.async_init(Token(50)).unwrap();
    let held = Held::new(&mut engine, THREADS);
    engine.async_sender(ticket).send();
    let request = submit(&mut engine, 1, WorkKind::Cpu, || ());
    engine.work_cancel(request).unwrap();
    assert_eq!(told(&mut engine), [cancelled(1), Event::Async(Token(50))]);
    // A send from the completion's callback is part of the same turn.
    let request = submit(&mut engine, 2, WorkKind::Cpu, || ());
    engine.work_cancel(request).unwrap();
    let mut order = Vec::new();
    run(&mut engine, Mode::NoWait, |engine, event| {
        if event == cancelled(2) {
            engine.async_sender(ticket).send();
        }
        order.push(event);
    });
    assert_eq!(order, [cancelled(2), Event::Async(Token(50))]);
    drop(held);
    engine.close(key).unwrap();
    events(&mut engine, Mode::Default);
}

fn loops_share_the_pool(mechanism: Mechanism) {
    const REQUESTS: u64 = 1_000;
    let ran = Arc::new(AtomicU32::new(0));
    std::thread::scope(|scope| {
        for lp in 0..6 {
            let ran = ran.clone();
            scope.spawn(move || {
                let mut engine = engine_on(mechanism);
                let kinds = [WorkKind::Cpu, WorkKind::FastIo, WorkKind::SlowIo];
                let mut left = REQUESTS;
                let mut next = |engine: &mut Engine| {
                    if left > 0 {
                        left -= 1;
                        let ran = ran.clone();
                        let kind = kinds[left as usize % 3];
                        let key = submit(engine, lp, kind, move || {
                            ran.fetch_add(1, SeqCst);
                        });
                        // Some are cancelled, if they can be.
                        if left.is_multiple_of(7) {
                            let _ = engine.work_cancel(key);
                        }
                    }
                };
                (0..32).for_each(|_| next(&mut engine));
                let (mut told, mut cancelled) = (0, 0);
                run(&mut engine, Mode::Default, |engine, event| {
                    let Event::Work(Token(token), result) = event else {
                        panic!("{event:?}");
                    };
                    assert_eq!(token, lp, "a completion comes to its own loop");
                    told += 1;
                    cancelled += u32::from(result.is_err());
                    next(engine);
                });
                assert_eq!(told, REQUESTS);
                assert!(engine.is_unused());
                ran.fetch_add(cancelled, SeqCst);
            });
        }
    });
    assert_eq!(ran.load(SeqCst), 6 * REQUESTS as u32);
}

fn a_loop_that_goes_away_takes_its_queue_along(mechanism: Mechanism) {
    let (mut stays, mut goes) = (engine_on(mechanism), engine_on(mechanism));
    let held = Held::new(&mut stays, THREADS);
    let owned = Arc::new(());
    for token in 0..10 {
        let owned = owned.clone();
        submit(&mut goes, token, WorkKind::SlowIo, move || {
            drop(owned);
            panic!("nobody is there for this any more");
        });
        submit(&mut stays, token, WorkKind::SlowIo, || ());
    }
    drop(goes);
    assert_eq!(Arc::strong_count(&owned), 1, "what they owned is free");
    assert_eq!(pool_metrics().queued, 10);
    // A request that runs while its loop goes away is nobody's problem either.
    let mut goes = engine_on(mechanism);
    held.go[0].send(()).unwrap();
    let inner = Held::new(&mut goes, 1);
    drop(goes);
    drop(inner);
    drop(held);
    assert_eq!(events(&mut stays, Mode::Default).len(), 10 + THREADS);
}

fn a_panic_is_the_end_of_one_request(mechanism: Mechanism) {
    let mut engine = engine_on(mechanism);
    for token in 0..2 * THREADS as u64 {
        // Quiet: the hook has nothing to say about this payload's unwinding.
        submit(&mut engine, token, WorkKind::SlowIo, || {
            std::panic::resume_unwind(Box::new(()))
        });
    }
    let told = events(&mut engine, Mode::Default);
    assert_eq!(told.len(), 2 * THREADS);
    let held = Held::new(&mut engine, THREADS);
    drop(held);
    assert_eq!(
        events(&mut engine, Mode::Default).len(),
        THREADS,
        "no thread was lost"
    );
}

fn the_pool_counts(mechanism: Mechanism) {
    let mut engine = engine_on(mechanism);
    let held = Held::new(&mut engine, THREADS);
    let before = pool_metrics();
    assert_eq!((before.threads, before.running, before.queued), (4, 4, 0));
    let keys: Vec<_> = (0..10)
        .map(|token| submit(&mut engine, token, WorkKind::Cpu, || ()))
        .collect();
    engine.work_cancel(keys[3]).unwrap();
    let full = pool_metrics();
    assert_eq!((full.running, full.queued), (4, 9));
    assert!(full.queued_max >= 10);
    assert_eq!(full.submitted - before.submitted, 10);
    assert_eq!(full.cancelled - before.cancelled, 1);
    drop(held);
    events(&mut engine, Mode::Default);
    while pool_metrics().running > 0 {
        std::thread::yield_now();
    }
    let after = pool_metrics();
    assert_eq!(after.queued, 0);
    assert_eq!(after.completed - before.completed, 9 + THREADS as u64);
    // Slow requests are measured, every one of them.
    for token in 0..10 {
        submit(&mut engine, token, WorkKind::SlowIo, || ());
    }
    events(&mut engine, Mode::Default);
    while pool_metrics().running > 0 {
        std::thread::yield_now();
    }
    let measured = pool_metrics();
    assert_eq!(measured.measured - after.measured, 10);
    assert!(measured.waiting_ns > after.waiting_ns && measured.running_ns > after.running_ns);
}

fn the_pool_ends_and_begins_again(mechanism: Mechanism) {
    let mut engine = engine_on(mechanism);
    let ran = Arc::new(AtomicU32::new(0));
    let add = |engine: &mut Engine, token| {
        let ran = ran.clone();
        submit(engine, token, WorkKind::SlowIo, move || {
            ran.fetch_add(1, SeqCst);
        });
    };
    (0..50).for_each(|token| add(&mut engine, token));
    shut_down_pool();
    shut_down_pool();
    assert_eq!(pool_metrics().threads, 0);
    assert_eq!(ran.load(SeqCst), 50, "what was queued has been done");
    assert_eq!(
        sorted(told(&mut engine)),
        (0..50).map(done).collect::<Vec<_>>()
    );
    add(&mut engine, 50);
    assert_eq!(events(&mut engine, Mode::Default), [done(50)]);
    assert_eq!(pool_metrics().threads, THREADS as u32);
}

/// The tests of the C face have a child, and see that it forgets them.
fn requests_are_forgotten_only_in_a_child(mechanism: Mechanism) {
    let mut engine = engine_on(mechanism);
    let held = Held::new(&mut engine, THREADS);
    let key = submit(&mut engine, 1, WorkKind::Cpu, || ());
    engine.work_cancel(key).unwrap();
    engine.fork().unwrap();
    assert_eq!(engine.active_requests(), 1 + THREADS as u32);
    drop(held);
    assert_eq!(events(&mut engine, Mode::Default).len(), 1 + THREADS);
}
