//! Spinning in place of a sleep, by a simulated clock.
//!
//! The clock passes in waits only, so that it shows to the nanosecond when a timer is told.

use blacklight_engine::{Descriptor, Engine, Event, Key, Mechanism, Mode, Run, Tally, Token};
use std::io::Write;
use std::mem::MaybeUninit;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{IntoRawFd, OwnedFd};

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
fn connection(engine: &mut Engine) -> (Key, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let other = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (ours, _) = listener.accept().unwrap();
    let key = engine.tcp_init(OTHER, None).unwrap();
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
        let (key, mut other) = connection(&mut engine);
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
