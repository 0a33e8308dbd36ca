//! Boundaries that an observer of a loop is told of, by a simulated clock.

use blacklight_engine::{
    Address, AddressRef, Boundary, Buffers, Engine, Event, Mechanism, Mode, Phase, Probe, Run,
    Token,
};
use std::cell::RefCell;
use std::rc::Rc;

type Log = Rc<RefCell<Vec<(u64, Boundary)>>>;

#[derive(Debug)]
struct Recorder(Log);

impl Probe for Recorder {
    fn cross(&mut self, at_ns: u64, boundary: Boundary) {
        self.0.borrow_mut().push((at_ns, boundary));
    }
}

fn observed() -> (Engine, Log) {
    let mut engine = Engine::new(Some(Mechanism::Sim(1))).unwrap();
    let log = Log::default();
    engine.set_probe(Some(Box::new(Recorder(log.clone()))));
    (engine, log)
}

/// The phases and turns of the callbacks, by their tokens.
fn callbacks(log: &Log) -> Vec<(Token, Phase, u64)> {
    let log = log.borrow();
    let callbacks = log.iter().filter_map(|&(_, boundary)| match boundary {
        Boundary::CallbackBegins { phase, turn, event } => Some((event.token(), phase, turn)),
        _ => None,
    });
    callbacks.collect()
}

#[test]
fn a_run_is_observed_from_its_beginning_to_its_end() {
    let (mut engine, log) = observed();
    let begun_ns = engine.clock_ns();
    let timer = engine.timer_init(Token(1)).unwrap();
    engine.timer_start(timer, 2, 0).unwrap();
    let mut run = Run::new(Mode::Default);
    assert_eq!(engine.next(&mut run), Some(Event::Timer(Token(1))));
    assert_eq!(run.phase(), Some(Phase::Timers));
    engine.sim().unwrap().advance(700);
    assert_eq!(engine.next(&mut run), None);
    assert_eq!(run.phase(), None);
    let callback = Boundary::CallbackBegins {
        phase: Phase::Timers,
        turn: 1,
        event: Event::Timer(Token(1)),
    };
    let timeout = Some(2_000_000);
    let expected = [
        (0, Boundary::RunBegins(Mode::Default)),
        (0, Boundary::SleepBegins { timeout }),
        (2_000_000, Boundary::SleepEnds),
        (2_000_000, callback),
        (2_000_700, Boundary::CallbackEnds),
        (2_000_700, Boundary::RunEnds),
    ];
    let expected = expected.map(|(after_ns, boundary)| (begun_ns + after_ns, boundary));
    assert_eq!(*log.borrow(), expected);
}

#[test]
fn each_callback_is_told_with_the_phase_and_turn_that_it_is_of() {
    let (mut engine, log) = observed();
    engine.sim().unwrap().use_kernel();
    let idle = engine.idle_init(Token(1)).unwrap();
    let prepare = engine.prepare_init(Token(2)).unwrap();
    let check = engine.check_init(Token(3)).unwrap();
    for key in [idle, prepare, check] {
        engine.loop_watcher_start(key).unwrap();
    }
    let (_, ticket) = engine.async_init(Token(4)).unwrap();
    engine.mailbox().send(ticket);
    // A datagram that goes at once is reported in the pending phase.
    let udp = engine.udp_init(Token(7), None).unwrap();
    let datagram = Buffers::owned(b"datagram".to_vec());
    let to = Address::from("127.0.0.1:1".parse::<std::net::SocketAddr>().unwrap());
    let sent = engine.udp_send(udp, Token(8), &datagram, Some(AddressRef::from(&to)));
    assert_eq!(sent, Ok(true));
    let tcp = engine.tcp_init(Token(5), None).unwrap();
    engine.tcp_connect(tcp, Token(6), &to).unwrap();
    engine.close(tcp).unwrap();
    let mut run = Run::new(Mode::NoWait);
    while engine.next(&mut run).is_some() {}
    let expected = [
        (Token(8), Phase::Pending, 1),
        (Token(1), Phase::Idle, 1),
        (Token(2), Phase::Prepare, 1),
        (Token(4), Phase::Poll, 1),
        (Token(3), Phase::Check, 1),
        // The request ends with its handle.
        (Token(6), Phase::Closing, 1),
        (Token(5), Phase::Closing, 1),
    ];
    assert_eq!(callbacks(&log), expected);
}

#[test]
fn a_callback_ends_once_whoever_says_so() {
    let (mut engine, log) = observed();
    let idle = engine.idle_init(Token(1)).unwrap();
    engine.loop_watcher_start(idle).unwrap();
    let mut run = Run::new(Mode::NoWait);
    assert!(engine.next(&mut run).is_some());
    for _ in 0..2 {
        engine.end_callback(&mut run);
    }
    assert!(engine.next(&mut run).is_none());
    let log = log.borrow();
    let ends = log.iter().filter(|(_, it)| *it == Boundary::CallbackEnds);
    assert_eq!(ends.count(), 1);
}

#[test]
fn a_nested_run_is_inside_of_the_callback_that_began_it_and_a_given_up_one_ends() {
    let (mut engine, log) = observed();
    let idle = engine.idle_init(Token(1)).unwrap();
    engine.loop_watcher_start(idle).unwrap();
    let mut outer = Run::new(Mode::NoWait);
    assert!(engine.next(&mut outer).is_some());
    let mut inner = Run::new(Mode::NoWait);
    assert!(engine.next(&mut inner).is_some());
    engine.give_up_run();
    assert!(engine.next(&mut outer).is_none());
    let log = log.borrow();
    let callback = Boundary::CallbackBegins {
        phase: Phase::Idle,
        turn: 1,
        event: Event::Idle(Token(1)),
    };
    let boundaries: Vec<_> = log.iter().map(|&(_, boundary)| boundary).collect();
    let expected = [
        Boundary::RunBegins(Mode::NoWait),
        callback,
        Boundary::RunBegins(Mode::NoWait),
        callback,
        Boundary::RunEnds,
        Boundary::CallbackEnds,
        Boundary::RunEnds,
    ];
    assert_eq!(boundaries, expected);
}

#[test]
fn spins_are_told_apart_from_sleeps() {
    let (mut engine, log) = observed();
    let sim = engine.sim().unwrap();
    sim.set_price_of_sleep(10_000);
    sim.set_moment(1_000);
    let timer = engine.timer_init(Token(1)).unwrap();
    engine.timer_start(timer, 1, 0).unwrap();
    let (handle, ticket) = engine.async_init(Token(2)).unwrap();
    // Having been sent to, the loop spins for the next send, and then sleeps.
    engine.mailbox().send(ticket);
    let mut run = Run::new(Mode::Default);
    assert_eq!(engine.next(&mut run), Some(Event::Async(Token(2))));
    assert_eq!(engine.next(&mut run), Some(Event::Timer(Token(1))));
    engine.close(handle).unwrap();
    while engine.next(&mut run).is_some() {}
    let log = log.borrow();
    let at = |wanted: fn(&Boundary) -> bool| log.iter().position(|(_, it)| wanted(it)).unwrap();
    let begins = at(|it| *it == Boundary::SpinBegins);
    assert!(begins > at(|it| *it == Boundary::CallbackEnds));
    let (_, ends) = log[begins + 1];
    assert_eq!(ends, Boundary::SpinEnds { found: false });
    let (_, sleeps) = log[begins + 2];
    assert!(matches!(sleeps, Boundary::SleepBegins { .. }), "{sleeps:?}");
}
