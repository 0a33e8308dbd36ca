//! Signals, caught on loops. Each test has a signal of its own, since they share a process.

use blacklight::{Loop, Mode, Signal, SignalKind, Signals, process, signal};
use std::cell::{Cell, RefCell};
use std::io::ErrorKind;
use std::rc::Rc;
use std::time::Duration;

fn raise(kind: SignalKind) {
    process::kill(std::process::id(), kind).unwrap();
}

#[test]
fn every_signal_is_told_until_the_handle_is_stopped() {
    let lp = Loop::new().unwrap();
    let signal = Signal::new().unwrap();
    let count = Rc::new(Cell::new(0));
    let counted = count.clone();
    signal
        .start(SignalKind::SIGUSR1, move |_, signal, kind| {
            assert_eq!(kind, SignalKind::SIGUSR1);
            counted.set(counted.get() + 1);
            match counted.get() {
                3 => signal.stop(),
                _ => raise(kind),
            }
        })
        .unwrap();
    raise(SignalKind::SIGUSR1);
    lp.run(Mode::Default);
    assert_eq!(count.get(), 3);
    assert!(!signal.is_active());
}

#[test]
fn a_one_shot_handle_hears_of_one_signal() {
    let lp = Loop::new().unwrap();
    let kind = SignalKind::realtime(1).unwrap();
    let count = Rc::new(Cell::new(0));
    let counted = count.clone();
    let once = Signal::new().unwrap();
    once.start_one_shot(kind, move |_, _, _| counted.set(counted.get() + 1))
        .unwrap();
    // Another one hears of both, and catches the second.
    let always = Signal::new().unwrap();
    let both = Rc::new(Cell::new(0));
    let counted = both.clone();
    always
        .start(kind, move |_, always, _| {
            counted.set(counted.get() + 1);
            match counted.get() {
                1 => raise(kind),
                _ => always.stop(),
            }
        })
        .unwrap();
    raise(kind);
    lp.run(Mode::Default);
    assert_eq!((count.get(), both.get()), (1, 2));
    assert!(!once.is_active());
}

#[test]
fn a_handle_is_started_anew_for_another_signal() {
    let lp = Loop::new().unwrap();
    let (first, second) = (
        SignalKind::realtime(2).unwrap(),
        SignalKind::realtime(3).unwrap(),
    );
    // So that the first does nothing to the process when nobody else watches for it.
    let other = Loop::new().unwrap();
    let _ignored = other.enter(|| Signals::new([first])).unwrap();
    let signal = lp.enter(Signal::new).unwrap();
    signal
        .start(first, |_, _, _| panic!("it was replaced"))
        .unwrap();
    let told = Rc::new(Cell::new(None));
    let tell = told.clone();
    signal
        .start(second, move |lp, _, kind| {
            tell.set(Some(kind));
            lp.stop();
        })
        .unwrap();
    raise(first);
    raise(second);
    lp.run(Mode::Default);
    assert_eq!(told.get(), Some(second));
}

#[test]
fn what_cannot_be_caught_is_an_error() {
    let lp = Loop::new().unwrap();
    let signal = Signal::new().unwrap();
    for kind in [SignalKind::SIGKILL, SignalKind::SIGSTOP] {
        let error = signal.start(kind, |_, _, _| ()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{kind}");
        assert!(!signal.is_active());
        assert!(Signals::new([SignalKind::SIGUSR2, kind]).is_err());
    }
    assert!(!lp.run(Mode::Default));
    let nobody = process::kill(0, SignalKind::SIGCONT).unwrap_err();
    assert_eq!(nobody.kind(), ErrorKind::InvalidInput);
    assert!(process::kill(i32::MAX as u32, SignalKind::SIGCONT).is_err());
}

#[test]
fn signals_come_in_the_order_in_which_they_are_caught_and_repeated_ones_are_one() {
    let lp = Loop::new().unwrap();
    let kinds = [5, 4, 6].map(|number| SignalKind::realtime(number).unwrap());
    let mut signals = Signals::new(kinds).unwrap();
    let told = lp.block_on(async {
        let mut told = Vec::new();
        for kind in [kinds[0], kinds[1], kinds[0]] {
            raise(kind);
            raise(kind);
            // Lets the loop see it.
            blacklight::sleep(Duration::ZERO).await;
        }
        raise(kinds[2]);
        while told.last() != Some(&kinds[2]) {
            told.push(signals.recv().await);
        }
        told.dedup();
        told
    });
    let position = |kind| told.iter().position(|&other| other == kind);
    assert_eq!(position(kinds[2]), Some(told.len() - 1));
    for kind in kinds {
        assert!(position(kind).is_some(), "{kind} in {told:?}");
    }
}

#[test]
fn signals_keep_no_loop_running_and_wake_whoever_waits() {
    let lp = Loop::new().unwrap();
    let kind = SignalKind::realtime(7).unwrap();
    let mut signals = Signals::new([kind]).unwrap();
    assert!(!lp.run(Mode::Default), "nobody waits");
    let told = Rc::new(RefCell::new(Vec::new()));
    let tell = told.clone();
    lp.spawn(async move {
        for _ in 0..2 {
            let kind = signals.recv().await;
            tell.borrow_mut().push(kind);
            if tell.borrow().len() == 1 {
                raise(kind);
            }
        }
    });
    let thread = std::thread::spawn(move || raise(kind));
    assert!(!lp.run(Mode::Default));
    thread.join().unwrap();
    assert_eq!(*told.borrow(), [kind, kind]);
}

#[test]
fn a_dropped_wait_loses_no_signal() {
    let lp = Loop::new().unwrap();
    let kind = SignalKind::realtime(8).unwrap();
    let mut signals = Signals::new([kind]).unwrap();
    lp.block_on(async {
        let nothing = blacklight::timeout(Duration::from_millis(1), signals.recv()).await;
        assert!(nothing.is_err());
        raise(kind);
        assert_eq!(signals.recv().await, kind);
    });
}

#[test]
fn ctrl_c_can_be_awaited_by_several() {
    let lp = Loop::new().unwrap();
    lp.block_on(async {
        let (one, two) = (signal::ctrl_c(), signal::ctrl_c());
        raise(SignalKind::SIGINT);
        one.await.unwrap();
        two.await.unwrap();
    });
}

#[test]
fn kinds_have_names_and_numbers() {
    assert_eq!(SignalKind::from_raw(2), Some(SignalKind::SIGINT));
    assert_eq!(format!("{:?}", SignalKind::SIGTERM), "SIGTERM");
    assert_eq!(SignalKind::realtime(3).unwrap().to_string(), "SIGRTMIN+3");
    assert_eq!(SignalKind::realtime(u32::MAX), None);
    assert_eq!(SignalKind::realtime(64), None);
    for raw in [-1, 0, 65, i32::MAX] {
        assert_eq!(SignalKind::from_raw(raw), None);
    }
}
