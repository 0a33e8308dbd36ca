//! Errors that somebody catches: JavaScript's exceptions are panics here.

use crate::{log, real_time, ring, say, throw, virtual_time};
use blacklight::node::fs;

#[test]
fn error_in_a_timer() {
    virtual_time("error_in_a_timer", |node| {
        node.set_timeout(ring("a"), 10);
        node.set_timeout(|_, _| throw("b"), 10);
        node.set_timeout(ring("c"), 10);
        node.set_timeout(ring("d"), 100);
    });
}

#[test]
fn error_in_an_interval() {
    virtual_time("error_in_an_interval", |node| {
        let mut runs = 0;
        node.set_interval(
            move |_, interval| {
                runs += 1;
                if runs == 3 {
                    interval.clear();
                }
                throw(format!("run {runs}"));
            },
            10,
        );
        node.on_exit(|_| log!("exit"));
    });
}

#[test]
fn error_in_an_immediate() {
    virtual_time("error_in_an_immediate", |node| {
        node.set_immediate(|node| {
            log!("a");
            node.set_immediate(say("d"));
        });
        node.set_immediate(|_| throw("b"));
        node.set_immediate(say("c"));
    });
}

#[test]
fn error_in_a_tick() {
    virtual_time("error_in_a_tick", |node| {
        node.next_tick(say("a"));
        node.next_tick(|_| throw("b"));
        node.next_tick(say("c"));
        node.queue_microtask(say("microtask"));
    });
}

#[test]
fn error_in_a_microtask() {
    virtual_time("error_in_a_microtask", |node| {
        node.queue_microtask(say("a"));
        node.queue_microtask(|_| throw("b"));
        node.queue_microtask(say("c"));
    });
}

#[test]
fn error_in_io() {
    real_time("error_in_io", |node| {
        fs::stat(node, "/", |node, _| {
            node.set_timeout(ring("timeout"), 20);
            node.set_immediate(say("immediate"));
            throw("stat");
        })
        .unwrap();
    });
}
