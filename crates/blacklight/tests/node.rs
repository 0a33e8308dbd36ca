//! What Node's scheduling has to do with the rest of the crate: other handles of the loop,
//! futures, panics, and the end of things.

use blacklight::node::{Immediate, Node, Timeout, fs};
use blacklight::{Async, AsyncFd, Idle, Loop, LoopHandle, Mode, Readiness, Timer, spawn, timeout};
use std::cell::{Cell, OnceCell, RefCell};
use std::future::poll_fn;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::Command;
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

/// What has happened, in order.
#[derive(Clone, Default)]
struct Log(Rc<RefCell<Vec<&'static str>>>);

impl Log {
    fn add(&self, line: &'static str) {
        self.0.borrow_mut().push(line);
    }

    /// Something to run once.
    fn once(&self, line: &'static str) -> impl FnOnce(&Node) + 'static {
        let log = self.clone();
        move |_| log.add(line)
    }

    /// A timer's callback.
    fn timer(&self, line: &'static str) -> impl FnMut(&Node, &Timeout) + 'static {
        let log = self.clone();
        move |_, _| log.add(line)
    }

    #[track_caller]
    fn assert(&self, expected: &[&str]) {
        assert_eq!(*self.0.borrow(), expected);
    }

    /// How many there are of it: one, and one for each callback that has not been dropped.
    fn owners(&self) -> usize {
        Rc::strong_count(&self.0)
    }
}

fn virtual_loop() -> Loop {
    Loop::builder().simulated(1).build().unwrap()
}

fn virtual_node() -> Node {
    virtual_loop().into_node().unwrap()
}

/// A panic that prints nothing.
fn throw() -> ! {
    resume_unwind(Box::new("thrown"))
}

/// A word that wakes the task that waits for it.
#[derive(Clone, Default)]
struct Word(Rc<(Cell<bool>, RefCell<Option<Waker>>)>);

impl Word {
    fn say(&self) {
        self.0.0.set(true);
        if let Some(waker) = self.0.1.take() {
            waker.wake();
        }
    }

    async fn heard(&self) {
        poll_fn(|context| {
            *self.0.1.borrow_mut() = Some(context.waker().clone());
            match self.0.0.get() {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        })
        .await;
    }
}

/// Whether the future is over before the loop has reason to sleep.
fn is_over_at_once(lp: &Loop, future: impl Future<Output = ()>) -> bool {
    // On a simulated loop, an hour passes as soon as there is nothing else to do.
    let (hour, before) = (Duration::from_secs(3600), lp.now());
    let _ = lp.block_on(timeout(hour, future));
    lp.now() - before < hour
}

#[test]
fn a_tick_that_a_task_queues_may_wake_tasks() {
    let lp = virtual_loop();
    let node = lp.node().unwrap();
    for is_microtask in [false, true] {
        let its_node = node.clone();
        let waits = async move {
            let word = Word::default();
            let its = word.clone();
            match is_microtask {
                true => its_node.queue_microtask(move |_| its.say()),
                false => its_node.next_tick(move |_| its.say()),
            }
            word.heard().await;
        };
        assert!(is_over_at_once(&lp, waits));
    }
    // One that spawns.
    let waits = async move {
        let word = Word::default();
        let its = word.clone();
        node.next_tick(move |_| drop(spawn(async move { its.say() })));
        word.heard().await;
    };
    assert!(is_over_at_once(&lp, waits));
}

#[test]
fn tasks_and_ticks_that_take_turns_for_ever_starve_no_handle() {
    let lp = virtual_loop();
    let node = lp.node().unwrap();
    let busy = lp.spawn(async move {
        loop {
            let word = Word::default();
            let its = word.clone();
            node.next_tick(move |_| its.say());
            word.heard().await;
        }
    });
    let timer = Timer::new().unwrap();
    timer.start(Duration::ZERO, |lp, _| lp.stop()).unwrap();
    assert!(lp.run(Mode::Default));
    busy.abort();
}

#[test]
fn an_observer_may_wake_tasks_and_queue_ticks() {
    let lp = virtual_loop();
    let node = lp.node().unwrap();
    for is_tick in [false, true] {
        let word = Word::default();
        let (its, its_node) = (word.clone(), node.clone());
        lp.observe(move |_| {
            let its = its.clone();
            match is_tick {
                true => its_node.next_tick(move |_| its.say()),
                false => its.say(),
            }
        });
        let timer = Timer::new().unwrap();
        timer.start(Duration::ZERO, |_, _| ()).unwrap();
        assert!(is_over_at_once(&lp, async move { word.heard().await }));
    }
}

/// Runs the Node, and says whether a callback panicked.
fn panics(node: &Node) -> bool {
    catch_unwind(AssertUnwindSafe(|| node.run())).is_err()
}

#[test]
fn all_handles_are_followed_by_ticks() {
    let node = Node::new().unwrap();
    let _lp = node.event_loop();
    let log = Log::default();

    let (near, mut far) = UnixStream::pair().unwrap();
    far.write_all(b"light").unwrap();
    let poll = Rc::new(OnceCell::new());
    let (its_poll, its_log) = (poll.clone(), log.clone());
    let (tick, task) = (log.clone(), log.clone());
    let watched = AsyncFd::new(near).unwrap();
    watched
        .start(Readiness::READABLE, move |lp, _| {
            its_log.add("poll");
            let poll: &AsyncFd<UnixStream> = its_poll.get().unwrap();
            poll.get_ref().read_exact(&mut [0; 5]).unwrap();
            poll.stop();
            let node = lp.node().unwrap();
            node.set_timeout(its_log.timer("timeout"), 0);
            node.set_immediate(its_log.once("immediate"));
            node.queue_microtask(task.once("poll's microtask"));
            node.next_tick(tick.once("poll's tick"));
        })
        .unwrap();
    assert!(poll.set(watched).is_ok());
    node.run();
    log.assert(&[
        "poll",
        "poll's tick",
        "poll's microtask",
        "immediate",
        "timeout",
    ]);
}

#[test]
fn each_handle_is_followed_by_its_own_ticks() {
    let node = Node::new().unwrap();
    let _lp = node.event_loop();
    let log = Log::default();

    let callback = |name: &'static str, tick: &'static str| {
        let log = log.clone();
        move |lp: &LoopHandle| {
            log.add(name);
            lp.node().unwrap().next_tick(log.once(tick));
        }
    };
    let first = callback("first wake-up", "its tick");
    let second = callback("second wake-up", "its tick, too");
    let handles = [
        Async::new(move |lp, handle| {
            handle.unref();
            first(lp);
        }),
        Async::new(move |lp, handle| {
            handle.unref();
            second(lp);
        }),
    ];
    let handles = handles.map(Result::unwrap);
    handles.iter().for_each(|handle| {
        handle.sender().send();
    });
    let timer = Timer::new().unwrap();
    let third = callback("timer", "the timer's tick");
    timer.start(Duration::ZERO, move |lp, _| third(lp)).unwrap();
    node.run();
    log.assert(&[
        "timer",
        "the timer's tick",
        "first wake-up",
        "its tick",
        "second wake-up",
        "its tick, too",
    ]);
}

#[test]
fn futures_run_between_microtasks_and_the_next_callback() {
    let node = virtual_node();
    let log = Log::default();
    let its = log.clone();
    node.set_immediate(move |node| {
        let log = its.clone();
        node.event_loop().spawn(async move {
            log.add("future");
            let lp = blacklight::current();
            lp.node().unwrap().next_tick(log.once("future's tick"));
        });
        node.queue_microtask(its.once("microtask"));
        node.next_tick(its.once("tick"));
    });
    node.set_timeout(log.timer("timeout"), 10);
    node.run();
    log.assert(&["tick", "microtask", "future", "future's tick", "timeout"]);
}

#[test]
fn ticks_of_a_future_in_block_on_run() {
    let lp = virtual_loop();
    let _node = lp.node().unwrap();
    let log = Log::default();
    let its = log.clone();
    lp.block_on(async move {
        let node = blacklight::current().node().unwrap();
        node.next_tick(its.once("tick"));
        blacklight::sleep(Duration::from_millis(1)).await;
        its.add("future");
    });
    log.assert(&["tick", "future"]);
}

#[test]
fn a_plain_run_of_the_loop_runs_everything() {
    let lp = virtual_loop();
    let node = lp.node().unwrap();
    let log = Log::default();
    node.set_timeout(log.timer("timeout"), 1);
    node.next_tick(log.once("tick"));
    lp.run(Mode::Default);
    log.assert(&["tick", "timeout"]);
}

#[test]
fn a_loop_has_one_node() {
    let lp = Loop::new().unwrap();
    let log = Log::default();
    let node = lp.node().unwrap();
    lp.node().unwrap().next_tick(log.once("tick"));
    node.run();
    log.assert(&["tick"]);

    drop(node);
    let another = lp.node().unwrap();
    another.set_immediate(log.once("immediate"));
    another.run();
    log.assert(&["tick", "immediate"]);
}

#[test]
fn a_stopped_run_goes_on() {
    let node = virtual_node();
    let log = Log::default();
    let exit = log.clone();
    node.on_exit(move |_| exit.add("exit"));
    node.set_timeout(|node, _| node.event_loop().stop(), 1);
    node.set_timeout(log.timer("later"), 5);
    assert!(node.run());
    log.assert(&[]);
    assert!(!node.run());
    log.assert(&["later", "exit"]);
}

#[test]
#[should_panic(expected = "cannot be run from its own callbacks")]
fn a_run_within_a_run_is_refused() {
    let node = virtual_node();
    node.set_immediate(|node| {
        node.run();
    });
    node.run();
}

#[test]
fn timers_are_never_early() {
    let node = Node::new().unwrap();
    let begun = Instant::now();
    for delay in [1, 2, 5, 10, 20] {
        let is_due = move || begun.elapsed() >= Duration::from_millis(delay);
        node.set_timeout(move |_, _| assert!(is_due()), delay);
        node.set_timeout(move |_, _| assert!(is_due()), Duration::from_millis(delay));
    }
    node.run();
}

#[test]
fn panics_leave_all_but_the_callback_that_panicked() {
    let node = virtual_node();
    let log = Log::default();
    node.set_timeout(|_, _| throw(), 1);
    node.set_timeout(log.timer("timer of the same list"), 1);
    node.set_timeout(log.timer("timer of another list"), 2);
    assert!(panics(&node));
    node.next_tick(|_| throw());
    node.next_tick(log.once("tick"));
    assert!(panics(&node));
    node.set_immediate(|_| throw());
    node.set_immediate(log.once("immediate"));
    assert!(panics(&node));
    let mut first = true;
    node.on_exit(move |_| {
        if std::mem::take(&mut first) {
            throw();
        }
    });
    assert!(panics(&node));
    node.next_tick(log.once("tick after the exit"));
    assert!(!panics(&node));
    log.assert(&[
        "tick",
        "timer of the same list",
        "immediate",
        "timer of another list",
        "tick after the exit",
    ]);
}

#[test]
fn a_handle_keeps_a_callback_that_panicked() {
    let node = Node::new().unwrap();
    let mut runs = 0;
    let idle = Idle::new().unwrap();
    idle.start(move |_, idle| {
        runs += 1;
        if runs == 2 {
            idle.stop();
        } else {
            throw();
        }
    })
    .unwrap();
    assert!(panics(&node));
    assert!(!panics(&node));
    assert!(!idle.is_active());
}

#[test]
fn a_panic_on_the_pool_is_an_error() {
    struct Bomb;
    impl AsRef<[u8]> for Bomb {
        fn as_ref(&self) -> &[u8] {
            throw()
        }
    }
    let node = Node::new().unwrap();
    let log = Log::default();
    let its = log.clone();
    fs::write_file(&node, "/dev/null", Bomb, move |_, result| {
        assert!(result.is_err());
        its.add("error");
    })
    .unwrap();
    node.run();
    log.assert(&["error"]);
}

#[test]
fn what_has_run_is_dropped() {
    let node = virtual_node();
    let log = Log::default();
    node.next_tick(log.once("tick"));
    node.queue_microtask(log.once("microtask"));
    node.set_immediate(log.once("immediate"));
    node.set_timeout(log.timer("timeout"), 1);
    node.run();
    assert_eq!(log.owners(), 1);
}

#[test]
fn what_was_cleared_is_dropped_at_once() {
    let node = virtual_node();
    let log = Log::default();
    let timeout = node.set_timeout(log.timer("never"), 1);
    let immediate = node.set_immediate(log.once("never"));
    assert_eq!(log.owners(), 3);
    timeout.clear();
    immediate.clear();
    assert_eq!(log.owners(), 1);
    node.run();
    log.assert(&[]);
}

#[test]
fn what_never_runs_goes_with_the_node() {
    let log = Log::default();
    let node = virtual_node();
    node.set_timeout(log.timer("never"), 1);
    node.set_interval(log.timer("never"), 1);
    node.set_immediate(log.once("never"));
    node.next_tick(log.once("never"));
    node.queue_microtask(log.once("never"));
    let its = log.clone();
    node.on_before_exit(move |_| its.add("never"));

    // These own themselves.
    let (its, timeout) = (log.clone(), Rc::new(OnceCell::<Timeout>::new()));
    let itself = timeout.clone();
    let owner = node.set_timeout(move |_, _| drop((itself.clone(), its.clone())), 1);
    assert!(timeout.set(owner).is_ok());
    let (its, immediate) = (log.clone(), Rc::new(OnceCell::<Immediate>::new()));
    let itself = immediate.clone();
    let owner = node.set_immediate(move |_| drop((itself, its)));
    assert!(immediate.set(owner).is_ok());

    assert!(log.owners() > 1);
    drop(node);
    assert_eq!(log.owners(), 1);

    // Nothing is left for these to do, and they know.
    let timeout = timeout.get().unwrap();
    assert!(timeout.unref().r#ref().refresh().has_ref());
    timeout.clear();
    immediate.get().unwrap().unref().clear();
}

#[test]
fn a_node_that_is_gone_hears_of_no_file() {
    let lp = Loop::new().unwrap();
    let node = lp.node().unwrap();
    let log = Log::default();
    let its = log.clone();
    fs::stat(&node, "/", move |_, _| its.add("stat")).unwrap();
    drop(node);
    lp.run(Mode::Default);
    log.assert(&[]);
    assert_eq!(log.owners(), 1);
}

/// A value that uses the timers while it is dropped.
struct Clears(Rc<RefCell<Vec<Timeout>>>, Node);

impl Drop for Clears {
    fn drop(&mut self) {
        self.0
            .borrow_mut()
            .drain(..)
            .for_each(|timer| timer.clear());
        self.1.set_immediate(|_| ()).clear();
        self.1.next_tick(|_| ());
    }
}

#[test]
fn what_a_callback_owns_may_use_the_node_when_it_is_dropped() {
    let node = virtual_node();
    let log = Log::default();
    let others = Rc::new(RefCell::new(vec![
        node.set_timeout(log.timer("never"), 1),
        node.set_timeout(log.timer("never"), 2),
    ]));
    let clears = || Clears(others.clone(), node.clone());
    let (one, two, three) = (clears(), clears(), clears());
    let timer = node.set_timeout(move |_, _| drop(one.0.clone()), 1);
    let immediate = node.set_immediate(move |_| drop(two));
    timer.clear();
    immediate.clear();
    node.next_tick(move |_| drop(three));
    node.run();
    log.assert(&[]);
}

#[test]
fn a_listener_may_add_another() {
    let node = virtual_node();
    let log = Log::default();
    let mut its = Some(log.clone());
    node.on_before_exit(move |node| {
        if let Some(log) = its.take() {
            log.add("first");
            let added = log.clone();
            node.on_before_exit(move |_| added.add("added"));
            node.set_immediate(log.once("immediate"));
        }
    });
    node.run();
    log.assert(&["first", "immediate", "added"]);
}

#[test]
fn warnings_of_a_kind_come_once_except_overflows() {
    let node = virtual_node();
    let names = Rc::new(RefCell::new(Vec::new()));
    let seen = names.clone();
    node.on_warning(move |_, warning| seen.borrow_mut().push(warning.name()));
    for delay in [-1.0, f64::NAN, 1e10] {
        node.set_timeout(|_, _| (), delay);
        node.set_timeout(|_, _| (), delay);
    }
    node.run();
    assert_eq!(
        *names.borrow(),
        [
            "TimeoutNegativeWarning",
            "TimeoutNaNWarning",
            "TimeoutOverflowWarning",
            "TimeoutOverflowWarning",
        ]
    );
}

#[test]
fn a_warning_is_printed_unless_there_is_a_hook() {
    // Another process, because this one's standard error stream is the test runner's.
    if std::env::var_os("BLACKLIGHT_WARN").is_some() {
        let node = virtual_node();
        node.set_timeout(|_, _| (), 3_000_000_000_i64);
        node.run();
        return;
    }
    let name = "a_warning_is_printed_unless_there_is_a_hook";
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env("BLACKLIGHT_WARN", "1")
        .output()
        .unwrap();
    let printed = String::from_utf8(child.stderr).unwrap();
    let text = "TimeoutOverflowWarning: 3000000000 does not fit into a 32-bit signed integer.\n\
                Timeout duration was set to 1.\n";
    assert!(printed.contains("(node:"), "{printed}");
    assert!(printed.contains(text), "{printed}");
}

#[test]
fn many_timers_of_many_durations_come_in_order() {
    let node = virtual_node();
    let fired = Rc::new(RefCell::new(Vec::new()));
    let started = Cell::new(0_u32);
    for round in 0..2_000_u32 {
        let delay = round * 7919 % 97 + 1;
        let number = started.replace(started.get() + 1);
        let its = fired.clone();
        let timer = node.set_timeout(move |_, _| its.borrow_mut().push((delay, number)), delay);
        if round % 3 == 0 {
            timer.clear();
        }
    }
    node.run();
    let fired = fired.borrow();
    assert_eq!(fired.len(), 1333);
    assert!(fired.is_sorted());
    assert!(!node.event_loop().is_alive());
}
