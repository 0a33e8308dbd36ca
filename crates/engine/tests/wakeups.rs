//! Async handles across threads, and loops that wait for other loops.

#[path = "support/each_mechanism.rs"]
mod each_mechanism;

use blacklight_engine::{
    Boundary, Engine, Errno, Event, Mechanism, Mode, Probe, Run, Sender, Token,
};
use each_mechanism::{alone, engine_on, events, on_each_mechanism, run, told};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;

on_each_mechanism!(
    a_sleeping_loop_wakes_up_for_each_send,
    the_last_send_of_each_thread_arrives,
    a_loop_that_was_woken_goes_back_to_sleep,
    a_callback_sees_what_was_done_before_the_send,
    senders_may_outlive_their_handle,
    sends_before_a_fork_stay_with_the_parent,
    a_loop_inside_another,
    a_loop_inside_another_serves_a_thread,
);

fn async_handle(engine: &mut Engine, token: u64) -> Sender {
    let (_, ticket) = engine.async_init(Token(token)).unwrap();
    engine.async_sender(ticket)
}

fn a_sleeping_loop_wakes_up_for_each_send(mechanism: Mechanism) {
    const SENDS: u32 = 2_000;
    let mut engine = engine_on(mechanism);
    let sender = async_handle(&mut engine, 1);
    let (arrived, has_arrived) = mpsc::channel();
    std::thread::scope(|scope| {
        // Should the loop fail, the thread must not wait for it.
        let arrived = arrived;
        scope.spawn(move || {
            for _ in 0..SENDS {
                sender.send();
                has_arrived.recv().expect("the loop runs");
            }
        });
        let mut left = SENDS;
        run(&mut engine, Mode::Default, |engine, event| {
            assert_eq!(event, Event::Async(Token(1)));
            left -= 1;
            if left == 0 {
                engine.stop();
            }
            arrived.send(()).expect("the sender waits");
        });
        assert_eq!(left, 0);
    });
}

fn the_last_send_of_each_thread_arrives(mechanism: Mechanism) {
    const THREADS: usize = 4;
    const SENDS: u64 = 5_000;
    let mut engine = engine_on(mechanism);
    let sent: Vec<_> = (0..THREADS).map(|_| AtomicU64::new(0)).collect();
    let senders: Vec<_> = (0..THREADS)
        .map(|token| async_handle(&mut engine, token as u64))
        .collect();
    let mut seen = [0; THREADS];
    std::thread::scope(|scope| {
        for (sender, sent) in senders.into_iter().zip(&sent) {
            scope.spawn(move || {
                for _ in 0..SENDS {
                    sent.fetch_add(1, Ordering::Relaxed);
                    sender.send();
                }
            });
        }
        run(&mut engine, Mode::Default, |engine, event| {
            let Event::Async(Token(token)) = event else {
                panic!("{event:?}");
            };
            seen[token as usize] = sent[token as usize].load(Ordering::Relaxed);
            if seen.iter().all(|&seen| seen == SENDS) {
                engine.stop();
            }
        });
    });
    assert_eq!(seen, [SENDS; THREADS]);
}

/// Counts what a loop does that waits: it goes to sleep, and may ask for some microseconds before.
#[derive(Debug)]
struct Waits(Rc<Cell<u64>>);

impl Probe for Waits {
    fn cross(&mut self, _: u64, boundary: Boundary) {
        if matches!(
            boundary,
            Boundary::SpinBegins | Boundary::SleepBegins { .. }
        ) {
            self.0.set(self.0.get() + 1);
        }
    }
}

fn a_loop_that_was_woken_goes_back_to_sleep(mechanism: Mechanism) {
    const TIMEOUT_MS: u64 = 40;
    let mut engine = engine_on(mechanism);
    let sender = async_handle(&mut engine, 1);
    sender.send();
    assert_eq!(events(&mut engine, Mode::Once), [Event::Async(Token(1))]);
    let timer = engine.timer_init(Token(2)).unwrap();
    engine.update_time();
    engine.timer_start(timer, TIMEOUT_MS, 0).unwrap();
    let waits = Rc::new(Cell::new(0));
    engine.set_probe(Some(Box::new(Waits(waits.clone()))));
    let before = engine.metrics().loop_count;
    assert_eq!(events(&mut engine, Mode::Once), [Event::Timer(Token(2))]);
    // A wake-up that is noticed over and over would have it go round and round, in turns or within one.
    let turns = engine.metrics().loop_count - before;
    assert!(turns < 5 && waits.get() < 10, "{turns}, {waits:?}");
}

fn a_callback_sees_what_was_done_before_the_send(mechanism: Mechanism) {
    let mut engine = engine_on(mechanism);
    let sender = async_handle(&mut engine, 1);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            done.store(true, Ordering::Relaxed);
            sender.send();
        });
        assert_eq!(events(&mut engine, Mode::Once), [Event::Async(Token(1))]);
        assert!(done.load(Ordering::Relaxed));
    });
}

/// Threads go on sending while handles are closed and new ones take their places.
fn senders_may_outlive_their_handle(mechanism: Mechanism) {
    const GENERATIONS: u64 = 50_000;
    let mut engine = engine_on(mechanism);
    let (give, take) = mpsc::channel::<Sender>();
    let (bystander, ticket) = engine.async_init(Token(0)).unwrap();
    let bystander_sender = engine.async_sender(ticket);
    std::thread::scope(|scope| {
        let give = give;
        scope.spawn(move || {
            let mut sender = take.recv().expect("the first one comes");
            loop {
                sender.send();
                match take.try_recv() {
                    Ok(next) => sender = next,
                    Err(mpsc::TryRecvError::Empty) => {}
                    Err(mpsc::TryRecvError::Disconnected) => break,
                }
            }
        });
        for token in 1..=GENERATIONS {
            let (key, ticket) = engine.async_init(Token(token)).unwrap();
            give.send(engine.async_sender(ticket))
                .expect("the sender waits");
            // It may have been sent to by now or not, but nobody else has.
            run(&mut engine, Mode::NoWait, |_, event| {
                assert_eq!(event, Event::Async(Token(token)));
            });
            engine.close(key).unwrap();
            assert_eq!(told(&mut engine), [Event::Closed(Token(token))]);
        }
    });
    bystander_sender.send();
    assert_eq!(
        told(&mut engine),
        [Event::Async(Token(0))],
        "nothing else is left over"
    );
    engine.close(bystander).unwrap();
    assert_eq!(told(&mut engine), [Event::Closed(Token(0))]);
    assert!(engine.is_unused());
}

fn sends_before_a_fork_stay_with_the_parent(mechanism: Mechanism) {
    let mut engine = engine_on(mechanism);
    let sender = async_handle(&mut engine, 1);
    sender.send();
    engine.fork().unwrap();
    assert_eq!(told(&mut engine), []);
    sender.send();
    assert_eq!(told(&mut engine), [Event::Async(Token(1))]);
}

/// A loop on the given mechanism that waits for another loop's descriptor.
fn around(inner: &Engine, mechanism: Mechanism) -> Engine {
    let mut outer = engine_on(mechanism);
    let fd = inner.backend_fd().expect("epoll has a descriptor");
    let key = outer.poll_init(Token(1), fd).unwrap();
    outer
        .poll_start(key, blacklight_engine::Readiness::READABLE)
        .unwrap();
    outer
}

fn a_loop_inside_another(mechanism: Mechanism) {
    let mut inner = engine_on(Mechanism::Epoll);
    let sender = async_handle(&mut inner, 7);
    let mut outer = around(&inner, mechanism);
    let mut calls_the_outer = || !told(&mut outer).is_empty();
    assert!(!calls_the_outer(), "nothing has happened yet");
    for _ in 0..3 {
        sender.send();
        assert!(calls_the_outer(), "a send while the loop does not run");
        assert_eq!(told(&mut inner), [Event::Async(Token(7))]);
        assert!(!calls_the_outer(), "all has been delivered");
    }

    // A send that the run leaves behind.
    let mut sends = 1;
    sender.send();
    run(&mut inner, Mode::NoWait, |_, _| {
        if sends > 0 {
            sends -= 1;
            sender.send();
        }
    });
    assert!(
        calls_the_outer(),
        "a send during the run that was not delivered in it"
    );
    assert_eq!(told(&mut inner), [Event::Async(Token(7))]);
    assert!(!calls_the_outer());

    // A descriptor of the inner loop becomes ready.
    let (reader, writer) = rustix::pipe::pipe().unwrap();
    let fd = std::os::fd::AsRawFd::as_raw_fd(&reader);
    let key = inner.poll_init(Token(8), fd).unwrap();
    inner
        .poll_start(key, blacklight_engine::Readiness::READABLE)
        .unwrap();
    assert_eq!(told(&mut inner), []);
    assert!(!calls_the_outer());
    rustix::io::write(&writer, b"!").unwrap();
    assert!(calls_the_outer());
    assert_eq!(told(&mut inner).len(), 1);
    assert!(calls_the_outer(), "nobody has read");
    rustix::io::read(&reader, &mut [0u8; 1]).unwrap();
    assert!(!calls_the_outer());
}

fn a_loop_inside_another_serves_a_thread(mechanism: Mechanism) {
    const SENDS: u32 = 500;
    let mut inner = engine_on(Mechanism::Epoll);
    let sender = async_handle(&mut inner, 7);
    let mut outer = around(&inner, mechanism);
    let (arrived, has_arrived) = mpsc::channel();
    std::thread::scope(|scope| {
        // Should the loop fail, the thread must not wait for it.
        let arrived = arrived;
        scope.spawn(move || {
            for _ in 0..SENDS {
                sender.send();
                has_arrived.recv().expect("the loop runs");
            }
        });
        let mut left = SENDS;
        run(&mut outer, Mode::Default, |outer, _| {
            run(&mut inner, Mode::NoWait, |_, event| {
                assert_eq!(event, Event::Async(Token(7)));
                left -= 1;
                if left == 0 {
                    outer.stop();
                }
                arrived.send(()).expect("the sender waits");
            });
        });
        assert_eq!(left, 0);
    });
}

#[test]
fn only_epoll_has_a_descriptor_to_wait_for() {
    alone(|| {
        assert!(engine_on(Mechanism::Epoll).backend_fd().is_some());
        assert_eq!(engine_on(Mechanism::Poll).backend_fd(), None);
        assert_eq!(engine_on(Mechanism::Select).backend_fd(), None);
    });
}

#[test]
fn a_forked_loop_inside_another_hears_sends() {
    alone(|| {
        let mut inner = engine_on(Mechanism::Epoll);
        let sender = async_handle(&mut inner, 7);
        // The parent's, which has been woken for it.
        sender.send();
        inner.fork().unwrap();
        let mut outer = around(&inner, Mechanism::Poll);
        assert_eq!(told(&mut outer), []);
        sender.send();
        assert_eq!(told(&mut outer).len(), 1);
        assert_eq!(told(&mut inner), [Event::Async(Token(7))]);
    });
}

#[test]
fn one_token_is_reserved() {
    let mut engine = Engine::new(None).unwrap();
    let refused = engine.async_init(Token(u64::MAX)).map(drop);
    assert_eq!(refused, Err(Errno::EINVAL));
    let mut run = Run::new(Mode::Default);
    assert_eq!(engine.next(&mut run), None);
}
