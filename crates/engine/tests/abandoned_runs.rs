//! Runs that are given up half-way, as when a callback panics and somebody catches it, and runs
//! inside of others.
//!
//! A callback that was to be called is called on the next turn, before any other of its phase, and
//! none is lost.

#[path = "support/each_mechanism.rs"]
mod each_mechanism;

use blacklight_engine::{
    Command, Engine, Event, Job, Key, Mechanism, Mode, Readiness, Run, StringsBuf, Token, WorkKind,
};
use each_mechanism::{GUARD, guarded_engine_on, on_each_mechanism, run};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, getpid, kill_process, waitid};
use std::os::fd::{AsRawFd, BorrowedFd};

on_each_mechanism!(
    a_child_s_exit_is_told_after_its_batch_was_given_up,
    a_child_s_exit_is_told_in_a_run_inside_of_its_batch,
    a_child_s_status_is_taken_before_its_signal_is_told,
    completions_that_were_collected_are_not_slept_over,
    signals_that_are_due_are_not_slept_over,
);

/// A loop that something keeps alive.
fn engine() -> Engine {
    let mut engine = Engine::new(Some(Mechanism::Sim(1))).unwrap();
    let keeper = engine.timer_init(Token(99)).unwrap();
    engine.timer_start(keeper, u64::MAX, 0).unwrap();
    engine
}

/// Takes one event of a run and gives the run up.
fn first_of_a_run(engine: &mut Engine) -> Option<Event> {
    engine.next(&mut Run::new(Mode::NoWait))
}

fn turn(engine: &mut Engine) -> Vec<Event> {
    let mut run = Run::new(Mode::NoWait);
    std::iter::from_fn(|| engine.next(&mut run)).collect()
}

#[test]
fn loop_watchers_that_were_left_out_go_first() {
    let mut engine = engine();
    for token in [1, 2, 3] {
        let key = engine.prepare_init(Token(token)).unwrap();
        engine.loop_watcher_start(key).unwrap();
    }
    let [one, two, three] = [1, 2, 3].map(|token| Event::Prepare(Token(token)));
    assert_eq!(first_of_a_run(&mut engine), Some(three));
    let late = engine.prepare_init(Token(4)).unwrap();
    engine.loop_watcher_start(late).unwrap();
    assert_eq!(turn(&mut engine), [two, one]);
    let four = Event::Prepare(Token(4));
    assert_eq!(turn(&mut engine), [four, three, two, one]);
}

#[test]
fn timers_that_were_left_out_go_first() {
    let mut engine = engine();
    let mut keys = Vec::new();
    for token in [1, 2, 3] {
        let key = engine.timer_init(Token(token)).unwrap();
        engine.timer_start(key, 0, 0).unwrap();
        keys.push(key);
    }
    assert_eq!(first_of_a_run(&mut engine), Some(Event::Timer(Token(1))));
    engine.timer_start(keys[0], 0, 0).unwrap();
    engine.timer_stop(keys[1]).unwrap();
    let expected = [Event::Timer(Token(3)), Event::Timer(Token(1))];
    assert_eq!(turn(&mut engine), expected);
    assert_eq!(turn(&mut engine), []);
}

#[test]
fn sends_are_delivered_all_the_same() {
    let mut engine = engine();
    let init = |token| engine.async_init(Token(token)).unwrap().1;
    let tickets = [1, 2, 3].map(init);
    for ticket in tickets {
        engine.mailbox().send(ticket);
    }
    assert_eq!(first_of_a_run(&mut engine), Some(Event::Async(Token(1))));
    engine.mailbox().send(tickets[0]);
    let [one, two, three] = [1, 2, 3].map(|token| Event::Async(Token(token)));
    assert_eq!(turn(&mut engine), [two, three]);
    assert_eq!(turn(&mut engine), [one]);
    assert_eq!(turn(&mut engine), []);
}

/// Whether the descriptor that others wait for has something to tell.
fn is_signalled(engine: &Engine) -> bool {
    // SAFETY: the engine has it open.
    let fd = unsafe { BorrowedFd::borrow_raw(engine.backend_fd().unwrap()) };
    let now = Timespec::default();
    poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&now)).unwrap() == 1
}

/// A loop that runs need not be woken, and whoever gives a run up may not be able to say so.
#[test]
fn sends_wake_whoever_waits_for_a_loop_whose_run_was_given_up() {
    for says_so in [true, false] {
        let mut engine = Engine::new(Some(Mechanism::Epoll)).unwrap();
        engine.embed();
        let (_, ticket) = engine.async_init(Token(1)).unwrap();
        assert_eq!(turn(&mut engine), []);
        let timer = engine.timer_init(Token(2)).unwrap();
        engine.timer_start(timer, 0, 0).unwrap();
        assert_eq!(first_of_a_run(&mut engine), Some(Event::Timer(Token(2))));
        match says_so {
            true => engine.give_up_run(),
            false => assert_eq!(engine.backend_timeout(), None),
        }
        assert!(!is_signalled(&engine));
        engine.mailbox().send(ticket);
        assert!(is_signalled(&engine), "{says_so}");
        assert_eq!(turn(&mut engine), [Event::Async(Token(1))]);
        assert!(!is_signalled(&engine));
    }
}

#[test]
fn whoever_waits_for_a_loop_hears_of_what_a_given_up_run_has_left() {
    let mut engine = Engine::new(Some(Mechanism::Epoll)).unwrap();
    engine.embed();
    let init = |token| engine.async_init(Token(token)).unwrap().1;
    for ticket in [1, 2].map(init) {
        engine.mailbox().send(ticket);
    }
    assert_eq!(first_of_a_run(&mut engine), Some(Event::Async(Token(1))));
    assert!(!is_signalled(&engine));
    engine.give_up_run();
    assert!(is_signalled(&engine));
    assert_eq!(turn(&mut engine), [Event::Async(Token(2))]);
    assert!(!is_signalled(&engine));
}

#[test]
fn closing_is_finished_all_the_same() {
    let mut engine = engine();
    for token in [1, 2, 3] {
        let key = engine.timer_init(Token(token)).unwrap();
        engine.close(key).unwrap();
    }
    let [one, two, three] = [1, 2, 3].map(|token| Event::Closed(Token(token)));
    assert_eq!(first_of_a_run(&mut engine), Some(three));
    let late = engine.timer_init(Token(4)).unwrap();
    engine.close(late).unwrap();
    assert_eq!(turn(&mut engine), [two, one]);
    assert_eq!(turn(&mut engine), [Event::Closed(Token(4))]);
    assert_eq!(turn(&mut engine), []);
}

#[test]
fn descriptors_are_reported_again() {
    let mut engine = engine();
    for fd in [5, 6] {
        let sim = engine.sim().unwrap();
        sim.open(fd);
        sim.set_ready(fd, PollFlags::IN.bits() as u32);
        let key = engine.poll_init(Token(fd as u64), fd).unwrap();
        engine.poll_start(key, Readiness::READABLE).unwrap();
    }
    assert!(first_of_a_run(&mut engine).is_some());
    assert_eq!(turn(&mut engine).len(), 2);
}

/// A loop on which nothing but what a test makes keeps anything alive. It does not sleep where
/// nothing will ever wake it: the simulated kernel panics then.
fn bare_engine() -> Engine {
    Engine::new(Some(Mechanism::Sim(1))).unwrap()
}

/// All events of a whole run.
fn all(engine: &mut Engine, mode: Mode) -> Vec<Event> {
    each_mechanism::events(engine, mode)
}

#[test]
fn timers_that_are_due_keep_the_loop_alive() {
    for mode in [Mode::Default, Mode::Once, Mode::NoWait] {
        let mut engine = bare_engine();
        for token in [1, 2] {
            let key = engine.timer_init(Token(token)).unwrap();
            engine.timer_start(key, 0, 0).unwrap();
        }
        assert_eq!(first_of_a_run(&mut engine), Some(Event::Timer(Token(1))));
        assert!(engine.is_alive());
        assert_eq!(engine.backend_timeout(), Some(0));
        assert_eq!(all(&mut engine, mode), [Event::Timer(Token(2))]);
        assert!(!engine.is_alive());
    }
}

#[test]
fn a_due_timer_without_a_reference_keeps_nothing_alive() {
    let mut engine = bare_engine();
    for token in [1, 2] {
        let key = engine.timer_init(Token(token)).unwrap();
        engine.timer_start(key, 0, 0).unwrap();
        if token == 2 {
            engine.unreference(key);
        }
    }
    assert_eq!(first_of_a_run(&mut engine), Some(Event::Timer(Token(1))));
    assert!(!engine.is_alive());
}

#[test]
fn closings_in_progress_keep_the_loop_alive() {
    for mode in [Mode::Default, Mode::Once, Mode::NoWait] {
        let mut engine = bare_engine();
        for token in [1, 2] {
            let key = engine.timer_init(Token(token)).unwrap();
            engine.close(key).unwrap();
        }
        assert_eq!(first_of_a_run(&mut engine), Some(Event::Closed(Token(2))));
        assert!(engine.is_alive());
        assert_eq!(engine.backend_timeout(), Some(0));
        assert_eq!(all(&mut engine, mode), [Event::Closed(Token(1))]);
    }
}

#[test]
fn sends_that_were_collected_are_not_slept_over() {
    let mut engine = bare_engine();
    let init = |token| engine.async_init(Token(token)).unwrap().1;
    let tickets = [1, 2].map(init);
    for ticket in tickets {
        engine.mailbox().send(ticket);
    }
    assert_eq!(first_of_a_run(&mut engine), Some(Event::Async(Token(1))));
    assert_eq!(engine.backend_timeout(), Some(0));
    assert_eq!(all(&mut engine, Mode::Once), [Event::Async(Token(2))]);
}

#[test]
fn an_outer_run_does_not_sleep_over_what_an_inner_one_has_left() {
    let mut engine = bare_engine();
    let prepare = engine.prepare_init(Token(3)).unwrap();
    engine.loop_watcher_start(prepare).unwrap();
    let init = |token| engine.async_init(Token(token)).unwrap().1;
    let tickets = [1, 2].map(init);
    let mut outer = Run::new(Mode::Once);
    assert_eq!(engine.next(&mut outer), Some(Event::Prepare(Token(3))));
    for ticket in tickets {
        engine.mailbox().send(ticket);
    }
    let mut inner = Run::new(Mode::NoWait);
    assert_eq!(engine.next(&mut inner), Some(Event::Prepare(Token(3))));
    assert_eq!(engine.next(&mut inner), Some(Event::Async(Token(1))));
    assert_eq!(engine.next(&mut outer), Some(Event::Async(Token(2))));
    assert_eq!(engine.next(&mut outer), None);
}

#[test]
fn checks_that_were_left_out_are_not_slept_over() {
    for mode in [Mode::Default, Mode::Once, Mode::NoWait] {
        let mut engine = bare_engine();
        let trigger = engine.idle_init(Token(9)).unwrap();
        let checks = [1, 2].map(|token| engine.check_init(Token(token)).unwrap());
        for key in [trigger, checks[0], checks[1]] {
            engine.loop_watcher_start(key).unwrap();
        }
        let mut given_up = Run::new(Mode::Once);
        assert_eq!(engine.next(&mut given_up), Some(Event::Idle(Token(9))));
        engine.loop_watcher_stop(trigger).unwrap();
        assert_eq!(engine.next(&mut given_up), Some(Event::Check(Token(2))));
        engine.loop_watcher_stop(checks[1]).unwrap();
        assert_eq!(engine.backend_timeout(), Some(0));
        let mut told = Vec::new();
        run(&mut engine, mode, |engine, event| {
            told.push(event);
            engine.loop_watcher_stop(checks[0]).unwrap();
        });
        assert_eq!(told, [Event::Check(Token(1))]);
    }
}

/// The original sleeps in such a run. Here it calls the checks that the outer run has still to call,
/// which is something to do; the one after it sleeps.
#[test]
fn a_run_inside_of_a_check_calls_the_other_checks_before_it_sleeps() {
    let mut engine = bare_engine();
    let timer = engine.timer_init(Token(3)).unwrap();
    let trigger = engine.idle_init(Token(9)).unwrap();
    let checks = [1, 2].map(|token| engine.check_init(Token(token)).unwrap());
    for key in [trigger, checks[0], checks[1]] {
        engine.loop_watcher_start(key).unwrap();
    }
    let mut outer = Run::new(Mode::Once);
    assert_eq!(engine.next(&mut outer), Some(Event::Idle(Token(9))));
    engine.loop_watcher_stop(trigger).unwrap();
    assert_eq!(engine.next(&mut outer), Some(Event::Check(Token(2))));
    engine.timer_start(timer, 5, 0).unwrap();
    let begun_ns = engine.now_ns();
    assert_eq!(all(&mut engine, Mode::Once), [Event::Check(Token(1))]);
    assert_eq!(engine.now_ns(), begun_ns, "nobody has slept");
    let [one, two] = [1, 2].map(|token| Event::Check(Token(token)));
    let timer = Event::Timer(Token(3));
    assert_eq!(all(&mut engine, Mode::Once), [two, one, timer]);
    assert_eq!(engine.now_ns() - begun_ns, 5_000_000);
    assert_eq!(engine.next(&mut outer), None, "both have been called");
}

#[test]
fn idle_handles_that_were_left_out_are_not_slept_over() {
    let mut engine = bare_engine();
    let idles = [1, 2].map(|token| engine.idle_init(Token(token)).unwrap());
    for key in idles {
        engine.loop_watcher_start(key).unwrap();
    }
    assert_eq!(first_of_a_run(&mut engine), Some(Event::Idle(Token(2))));
    engine.loop_watcher_stop(idles[1]).unwrap();
    assert_eq!(engine.backend_timeout(), Some(0));
    assert_eq!(all(&mut engine, Mode::Once), [Event::Idle(Token(1))]);
}

#[test]
fn no_timer_is_late_for_the_work_of_callbacks() {
    const MS: u64 = 1_000_000;
    for mode in [Mode::Default, Mode::Once] {
        let mut engine = bare_engine();
        let begun_ns = engine.now_ns();
        for (token, timeout_ms) in [(1, 10), (2, 40)] {
            let key = engine.timer_init(Token(token)).unwrap();
            engine.timer_start(key, timeout_ms, 0).unwrap();
        }
        let mut told = Vec::new();
        while engine.is_alive() {
            run(&mut engine, mode, |engine, event| {
                told.push((event.token().0, (engine.now_ns() - begun_ns) / MS));
                let sim = engine.sim().unwrap();
                sim.advance(25 * MS);
            });
        }
        assert_eq!(told, [(1, 10), (2, 40)]);
    }
}

/// Starts a child that ends at once with status 7, and waits until it has.
fn spawn_and_wait(engine: &mut Engine, token: u64) -> (Key, Pid) {
    let key = engine.process_init(Token(token)).unwrap();
    let args: StringsBuf<'_> = [c"sh", c"-c", c"exit 7"].into_iter().collect();
    let env: StringsBuf<'_> = [].into_iter().collect();
    let command = Command {
        file: c"/bin/sh",
        args: args.strings(),
        env: env.strings(),
        cwd: None,
        detached: false,
        uid: None,
        gid: None,
        stdio: &[],
    };
    let pid = engine.process_spawn(key, &command).unwrap();
    let pid = Pid::from_raw(pid).unwrap();
    let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    waitid(WaitId::Pid(pid), ended).unwrap();
    (key, pid)
}

/// A poll handle that is readable, and stays so.
fn readable(engine: &mut Engine, token: u64) -> (Key, [std::os::fd::OwnedFd; 2]) {
    let (reader, writer) = rustix::pipe::pipe().unwrap();
    rustix::io::write(&writer, b"x").unwrap();
    let key = engine.poll_init(Token(token), reader.as_raw_fd()).unwrap();
    engine.poll_start(key, Readiness::READABLE).unwrap();
    (key, [reader, writer])
}

fn a_child_s_exit_is_told_after_its_batch_was_given_up(mechanism: Mechanism) {
    for mode in [Mode::Default, Mode::Once, Mode::NoWait] {
        let mut engine = guarded_engine_on(mechanism);
        let (poll, _pipe) = readable(&mut engine, 1);
        let (process, _) = spawn_and_wait(&mut engine, 2);
        let first = first_of_a_run(&mut engine);
        assert_eq!(first, Some(Event::Poll(Token(1), Ok(Readiness::READABLE))));
        engine.poll_stop(poll).unwrap();
        assert_eq!(engine.backend_timeout(), Some(0));
        assert_eq!(all(&mut engine, mode), [Event::Exit(Token(2), 7, 0)]);
        assert!(!engine.is_active(process));
    }
}

fn a_child_s_exit_is_told_in_a_run_inside_of_its_batch(mechanism: Mechanism) {
    for mode in [Mode::Once, Mode::NoWait] {
        let mut engine = guarded_engine_on(mechanism);
        let (poll, _pipe) = readable(&mut engine, 1);
        spawn_and_wait(&mut engine, 2);
        let mut told = Vec::new();
        run(&mut engine, Mode::Default, |engine, event| {
            if event.token() == Token(1) {
                engine.poll_stop(poll).unwrap();
                told.extend(all(engine, mode));
            }
        });
        assert_eq!(told, [Event::Exit(Token(2), 7, 0)]);
    }
}

fn a_child_s_status_is_taken_before_its_signal_is_told(mechanism: Mechanism) {
    let mut engine = guarded_engine_on(mechanism);
    let signal = engine.signal_init(Token(1)).unwrap();
    engine
        .signal_start(signal, Signal::CHILD.as_raw(), false)
        .unwrap();
    let (process, pid) = spawn_and_wait(&mut engine, 2);
    let mut told = Vec::new();
    run(&mut engine, Mode::Default, |engine, event| {
        told.push(event);
        if event.token() == Token(1) {
            // As programs do that know of the child, but not whose it is.
            let waited = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::NOHANG);
            assert_eq!(waited.unwrap_err(), rustix::io::Errno::CHILD);
            let killed = engine.process_kill(process, 0);
            assert_eq!(killed, Err(blacklight_engine::Errno::ESRCH));
            engine.signal_stop(signal).unwrap();
        }
    });
    let signal = Event::Signal(Token(1), Signal::CHILD.as_raw());
    assert_eq!(told, [signal, Event::Exit(Token(2), 7, 0)]);
}

fn completions_that_were_collected_are_not_slept_over(mechanism: Mechanism) {
    for mode in [Mode::Default, Mode::Once, Mode::NoWait] {
        let mut engine = guarded_engine_on(mechanism);
        let (done, all_done) = std::sync::mpsc::channel();
        for token in [1, 2] {
            let done = done.clone();
            let job = Job::new(move || done.send(()).unwrap());
            engine
                .work_submit(Token(token), WorkKind::Cpu, job)
                .unwrap();
        }
        for _ in 0..2 {
            all_done.recv().unwrap();
        }
        let mut told = vec![];
        while told.is_empty() {
            told.extend(first_of_a_run(&mut engine));
        }
        while engine.active_requests() > 0 {
            let events = all(&mut engine, mode);
            assert!(!events.contains(&Event::Timer(GUARD)), "the loop has slept");
            told.extend(events);
        }
        told.sort_by_key(|event| event.token().0);
        let done = |token| Event::Work(Token(token), Ok(()));
        assert_eq!(told, [done(1), done(2)]);
    }
}

fn signals_that_are_due_are_not_slept_over(mechanism: Mechanism) {
    for mode in [Mode::Once, Mode::NoWait] {
        let mut engine = guarded_engine_on(mechanism);
        for token in [1, 2] {
            let key = engine.signal_init(Token(token)).unwrap();
            engine
                .signal_start(key, Signal::USR1.as_raw(), true)
                .unwrap();
        }
        kill_process(getpid(), Signal::USR1).unwrap();
        let told = |token| Event::Signal(Token(token), Signal::USR1.as_raw());
        // Any thread may catch it, so that it may take a moment.
        assert_eq!(engine.next(&mut Run::new(Mode::Once)), Some(told(1)));
        assert_eq!(all(&mut engine, mode), [told(2)]);
        assert!(!engine.is_alive(), "both were to be told once");
    }
}
