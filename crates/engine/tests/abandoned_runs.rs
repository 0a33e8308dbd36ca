//! Runs that are given up half-way, as when a callback panics and somebody catches it.
//!
//! Whoever was to be called is called on the next turn, before anybody else of its phase,
//! and nobody is lost.

use blacklight_engine::{Engine, Event, Mechanism, Mode, Readiness, Run, Token};
use rustix::event::PollFlags;

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
