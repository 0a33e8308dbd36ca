//! Spinning in place of a sleep, by a simulated clock.
//!
//! The clock passes in waits only, so that it shows to the nanosecond when a timer is told.

use blacklight_engine::{
    Descriptor, Engine, Event, Interest, Key, Mechanism, Mode, Run, Tally, Token,
};
use std::io::Write;
use std::mem::MaybeUninit;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd};

const TIMER: Token = Token(1);
const OTHER: Token = Token(2);
const TIMEOUT_MS: u64 = 5;

/// A loop that knows that a sleep costs something.
fn engine(seed: u64) -> (Engine, Key) {
    let mut engine = Engine::new(Some(Mechanism::Sim(seed))).unwrap();
    let sim = engine.sim().unwrap();
    sim.use_kernel();
    sim.set_price_of_sleep(10_000);
    let timer = engine.timer_init(TIMER).unwrap();
    engine.timer_start(timer, 1, 0).unwrap();
    assert_eq!(next(&mut engine, Mode::Default), Event::Timer(TIMER));
    (engine, timer)
}

fn tally(engine: &mut Engine) -> Tally {
    engine.sim().unwrap().tally()
}

/// The first event of a run.
fn next(engine: &mut Engine, mode: Mode) -> Event {
    engine.next(&mut Run::new(mode)).expect("something happens")
}

/// Runs until the timer is told, which must be at its time. Returns whether the loop has spun in
/// vain before: it does not where the first look has taken long.
fn is_vain(engine: &mut Engine, timer: Key, mut call: impl FnMut(&mut Engine)) -> bool {
    engine.timer_start(timer, TIMEOUT_MS, 0).unwrap();
    let due_ns = engine.now_ns() + TIMEOUT_MS * 1_000_000;
    let mut run = Run::new(Mode::Default);
    loop {
        match engine.next(&mut run).expect("the timer is told") {
            Event::Timer(TIMER) => break,
            event => assert_eq!(event.token(), OTHER),
        }
        call(engine);
    }
    assert_eq!(engine.now_ns(), due_ns);
    tally(engine).vain_spins > 0
}

#[test]
fn no_timer_is_late_for_spinning_in_vain_for_mail() {
    let is_vain = |&seed: &u64| {
        let (mut engine, timer) = engine(seed);
        let (_, ticket) = engine.async_init(OTHER).unwrap();
        engine.mailbox().send(ticket);
        is_vain(&mut engine, timer, |_| {})
    };
    assert_eq!((0..100).filter(is_vain).count(), 100);
}

/// A connection, with its end in the loop and the other one.
fn connection(engine: &mut Engine, token: Token) -> (Key, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let other = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (ours, _) = listener.accept().unwrap();
    let key = engine.tcp_init(token, None).unwrap();
    // SAFETY: whoever had it has given it away.
    let ours = unsafe { Descriptor::adopt(OwnedFd::from(ours).into_raw_fd()) };
    engine.stream_open(key, ours, true, true).unwrap();
    engine.read_start(key).unwrap();
    (key, other)
}

#[test]
fn no_timer_is_late_for_spinning_in_vain_for_descriptors() {
    let is_vain = |&seed: &u64| {
        let (mut engine, timer) = engine(seed);
        let (key, mut other) = connection(&mut engine, OTHER);
        let mut words = 3;
        other.write_all(b"x").unwrap();
        let is_vain = is_vain(&mut engine, timer, |engine| {
            let read = engine.stream_read(key, &mut [MaybeUninit::uninit(); 8]);
            if read == Ok(1) && words > 0 {
                words -= 1;
                other.write_all(b"x").unwrap();
            }
        });
        assert_eq!(words, 0);
        is_vain
    };
    assert!((0..100).filter(is_vain).count() > 50);
}

#[test]
fn no_timer_is_late_for_slow_callbacks_where_no_spin_is_planned() {
    let mut engine = Engine::new(Some(Mechanism::Sim(1))).unwrap();
    let sim = engine.sim().unwrap();
    sim.use_kernel();
    // The loop has not slept yet, and does not know the price.
    sim.set_price_of_sleep(10_000);
    let timer = engine.timer_init(TIMER).unwrap();
    let prepare = engine.prepare_init(OTHER).unwrap();
    engine.loop_watcher_start(prepare).unwrap();
    let (key, mut other) = connection(&mut engine, OTHER);
    let mut words = 3;
    other.write_all(b"x").unwrap();
    let is_vain = is_vain(&mut engine, timer, |engine| {
        // The call before the poll finds nothing to read, and takes its time too.
        let read = engine.stream_read(key, &mut [MaybeUninit::uninit(); 8]);
        if read == Ok(1) && words > 0 {
            words -= 1;
            other.write_all(b"x").unwrap();
        }
        engine.sim().unwrap().advance(100_000);
    });
    assert_eq!((words, is_vain), (0, false));
}

/// The first poll of the turn finds two peers talking and as much else as it has room for, so that
/// the same turn polls again, and finds one of the two talking on.
#[test]
fn a_turn_in_which_two_peers_talk_plans_no_spin_however_often_it_polls() {
    const ROOM: u64 = 512;
    const READY: Token = Token(1_000);
    for seed in 0..20 {
        let (mut engine, timer) = engine(seed);
        let mut peers = [OTHER, Token(OTHER.0 + 1)].map(|token| connection(&mut engine, token));
        let (_reader, ready) = std::io::pipe().unwrap();
        let ends: Vec<_> = (2..ROOM).map(|_| ready.try_clone().unwrap()).collect();
        let polls = (READY.0..).zip(&ends).map(|(token, end)| {
            let poll = engine.poll_init(Token(token), end.as_raw_fd()).unwrap();
            engine.poll_start(poll, Interest::WRITABLE).unwrap();
            poll
        });
        let polls: Vec<_> = polls.collect();
        for (_, other) in &mut peers {
            other.write_all(b"x").unwrap();
        }
        let mut reads = Vec::new();
        engine.timer_start(timer, TIMEOUT_MS, 0).unwrap();
        let mut run = Run::new(Mode::Default);
        loop {
            match engine.next(&mut run).expect("the timer is told") {
                Event::Timer(TIMER) => break,
                Event::Poll(Token(token), _) => {
                    engine.poll_stop(polls[(token - READY.0) as usize]).unwrap();
                }
                event => {
                    let (key, other) = &mut peers[(event.token().0 - OTHER.0) as usize];
                    let read = engine.stream_read(*key, &mut [MaybeUninit::uninit(); 8]);
                    reads.push(((engine.metrics().loop_count, event.token()), read));
                    if reads.len() == 2 {
                        other.write_all(b"x").unwrap();
                    }
                }
            }
        }
        let ((turns, tokens), results): ((Vec<_>, Vec<_>), Vec<_>) = reads.into_iter().unzip();
        assert_eq!(results, [Ok(1); 3]);
        assert_eq!(turns, [turns[0]; 3], "all in one turn");
        assert!(tokens[0] != tokens[1] && tokens[1] == tokens[2]);
        assert_eq!(tally(&mut engine).vain_spins, 0, "seed {seed}");
    }
}

#[test]
fn spinning_finds_what_comes_while_it_lasts() {
    for seed in 0..100 {
        let (mut engine, _) = engine(seed);
        let sim = engine.sim().unwrap();
        sim.set_moment(1_000);
        let (_, ticket) = engine.async_init(OTHER).unwrap();
        engine.mailbox().send(ticket);
        assert_eq!(next(&mut engine, Mode::Once), Event::Async(OTHER));
        let send = blacklight_engine::Action::Send(engine.async_sender(ticket));
        engine.sim().unwrap().schedule(1_500, send);
        let begun_ns = engine.now_ns();
        assert_eq!(next(&mut engine, Mode::Once), Event::Async(OTHER));
        assert_eq!(engine.now_ns(), begun_ns + 2_000, "in the second look");
        assert_eq!(tally(&mut engine).sends_while_spinning, 1);
    }
}
