//! Models: loom tries every interleaving of two or three threads that share a mailbox, a gate or a
//! pool.
//!
//! `cargo xtask loom` runs them. A model runs the real code, for which `sync` supplies loom's types.
//! loom reports a thread that waits for ever as a deadlock, and a load without an acquire that pairs
//! with the store's release may return an older value.
//!
//! Models that take seconds are tried [in every interleaving](check). The others have millions of
//! interleavings, and are tried [up to a number of preemptions](check_bounded): switches from a
//! thread that could have gone on. Switches where a thread blocks, yields or ends do not count.

mod gate;
mod mailbox;

use crate::event::Token;
use crate::wakeup::Receiver;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// Tries every interleaving of the threads that `model` starts, and prints how many there are.
pub(crate) fn check(name: &str, model: impl Fn() + Send + Sync + 'static) {
    check_with(name, None, model);
}

/// Tries every interleaving with at most this many preemptions.
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

/// Collects and delivers, as a loop does between two waits. Returns the tokens delivered.
pub(crate) fn turn(receiver: &mut Receiver) -> Vec<Token> {
    receiver.collect();
    let mut delivered: Vec<_> = std::iter::from_fn(|| receiver.next()).collect();
    receiver.collect_requests();
    delivered.extend(std::iter::from_fn(|| receiver.next_request()).map(|(token, _)| token));
    delivered
}

/// Runs the loop until `is_done` returns true for a token delivered. Sleeps whenever possible.
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
