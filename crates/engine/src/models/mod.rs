//! Models: every interleaving of two and three threads of what they share, tried by loom.
//!
//! `cargo xtask loom` runs them. A model runs the real code, whose shared types `sync` then takes
//! from loom. Whatever waits for ever is found as a deadlock, and whatever is read without having been
//! handed over by a release and an acquire may be read as it was before.
//!
//! Models of which that takes seconds are tried [to the last interleaving](check); the others have
//! interleavings by the million, and are tried [up to a number of preemptions](check_bounded), which
//! are switches from a thread that could have gone on. Switches where a thread blocks, yields or ends
//! are not counted.

mod gate;
mod mailbox;

use crate::event::Token;
use crate::wakeup::Receiver;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// Tries every interleaving of the threads that `model` starts, and says how many there are.
pub(crate) fn check(name: &str, model: impl Fn() + Send + Sync + 'static) {
    check_with(name, None, model);
}

/// Tries every interleaving with at most so many preemptions.
pub(crate) fn check_bounded(
    name: &str,
    preemptions: usize,
    model: impl Fn() + Send + Sync + 'static,
) {
    check_with(name, Some(preemptions), model);
}

fn check_with(name: &str, bound: Option<usize>, model: impl Fn() + Send + Sync + 'static) {
    let tried = Arc::new(AtomicU64::new(0));
    let counted = tried.clone();
    let mut builder = loom::model::Builder::new();
    builder.max_branches = 10_000;
    builder.preemption_bound = bound;
    builder.check(move || {
        counted.fetch_add(1, Relaxed);
        model();
    });
    let (tried, bound) = (
        tried.load(Relaxed),
        bound.map_or(String::new(), |bound| {
            format!(", at most {bound} preemptions")
        }),
    );
    println!("{name}: {tried} interleavings{bound}");
}

/// What a loop does between two waits.
pub(crate) fn turn(receiver: &mut Receiver) -> Vec<Token> {
    receiver.collect();
    let mut told: Vec<_> = std::iter::from_fn(|| receiver.next()).collect();
    receiver.collect_requests();
    told.extend(std::iter::from_fn(|| receiver.next_request()).map(|(token, _)| token));
    told
}

/// Runs the loop until `is_done` with what it is told. It sleeps where it can.
pub(crate) fn run_until(receiver: &mut Receiver, mut is_done: impl FnMut(Token) -> bool) {
    loop {
        if receiver.fall_asleep() {
            receiver.mailbox.waker.wait();
            receiver.awake();
        }
        let mut done = false;
        for token in turn(receiver) {
            done |= is_done(token);
        }
        if done {
            return;
        }
    }
}
