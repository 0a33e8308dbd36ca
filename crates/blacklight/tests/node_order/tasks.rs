//! Ticks and microtasks.

use crate::{log, ring, say, virtual_time};
use blacklight::node::Node;
use std::cell::Cell;
use std::rc::Rc;

#[test]
fn ticks_before_microtasks() {
    virtual_time("ticks_before_microtasks", |node| {
        node.queue_microtask(say("microtask 1"));
        node.next_tick(say("tick 1"));
        node.queue_microtask(say("microtask 2"));
        node.next_tick(say("tick 2"));
        log!("main");
    });
}

#[test]
fn main_order() {
    virtual_time("main_order", |node| {
        node.set_timeout(ring("timeout"), 300);
        node.set_immediate(say("immediate"));
        node.queue_microtask(say("microtask"));
        node.next_tick(say("tick"));
        log!("main");
    });
}

#[test]
fn tick_recursion() {
    fn again(node: &Node, depth: u32) {
        log!("tick {depth}");
        if depth < 4 {
            node.next_tick(move |node| again(node, depth + 1));
        }
    }
    virtual_time("tick_recursion", |node| {
        node.set_immediate(say("immediate"));
        node.queue_microtask(say("microtask"));
        node.next_tick(|node| again(node, 1));
    });
}

#[test]
fn microtask_recursion() {
    fn again(node: &Node, depth: u32) {
        log!("microtask {depth}");
        if depth < 4 {
            node.queue_microtask(move |node| again(node, depth + 1));
        }
    }
    virtual_time("microtask_recursion", |node| {
        node.set_immediate(say("immediate"));
        node.queue_microtask(|node| again(node, 1));
        node.queue_microtask(say("other"));
    });
}

#[test]
fn microtasks_queue_ticks() {
    virtual_time("microtasks_queue_ticks", |node| {
        node.queue_microtask(|node| {
            log!("microtask 1");
            node.next_tick(|node| {
                log!("tick");
                node.queue_microtask(say("microtask 3"));
            });
            node.queue_microtask(say("microtask 2"));
        });
        node.set_immediate(say("immediate"));
    });
}

#[test]
fn ticks_queue_microtasks() {
    virtual_time("ticks_queue_microtasks", |node| {
        node.next_tick(|node| {
            log!("tick 1");
            node.queue_microtask(say("microtask 1"));
            node.next_tick(|node| {
                log!("tick 3");
                node.queue_microtask(say("microtask 2"));
            });
        });
        node.next_tick(say("tick 2"));
    });
}

#[test]
fn ticks_starve_the_loop() {
    fn again(node: &Node, count: u32) {
        if count < 100_000 {
            node.next_tick(move |node| again(node, count + 1));
        } else {
            log!("ticks {count}");
        }
    }
    virtual_time("ticks_starve_the_loop", |node| {
        node.set_timeout(ring("timeout"), 1);
        node.next_tick(|node| again(node, 1));
    });
}

#[test]
fn promise_chains() {
    fn chain(node: &Node, name: &'static str, link: u32) {
        node.queue_microtask(move |node| {
            log!("{name} {link}");
            if link < 3 {
                chain(node, name, link + 1);
            }
        });
    }
    virtual_time("promise_chains", |node| {
        chain(node, "a", 1);
        chain(node, "b", 1);
        node.next_tick(say("tick"));
    });
}

#[test]
fn await_order() {
    fn work(node: &Node, name: &'static str) {
        log!("{name} begins");
        node.queue_microtask(move |node| {
            log!("{name} goes on");
            node.queue_microtask(move |_| log!("{name} ends"));
        });
    }
    virtual_time("await_order", |node| {
        work(node, "first");
        work(node, "second");
        node.next_tick(say("tick"));
        log!("main");
    });
}

#[test]
fn tick_sees_later_assignment() {
    virtual_time("tick_sees_later_assignment", |node| {
        let bar = Rc::new(Cell::new(0));
        let seen = bar.clone();
        node.next_tick(move |_| log!("bar {}", seen.get()));
        bar.set(1);
    });
}

#[test]
fn tasks_in_a_timer() {
    virtual_time("tasks_in_a_timer", |node| {
        node.set_timeout(
            |node, _| {
                node.set_timeout(ring("timeout"), 0);
                node.set_immediate(say("immediate"));
                node.queue_microtask(say("microtask"));
                node.next_tick(say("tick"));
                log!("timer");
            },
            5,
        );
    });
}

#[test]
fn tasks_in_an_immediate() {
    virtual_time("tasks_in_an_immediate", |node| {
        node.set_immediate(|node| {
            node.set_immediate(say("immediate 3"));
            node.queue_microtask(say("microtask"));
            node.next_tick(say("tick"));
            log!("immediate 1");
        });
        node.set_immediate(say("immediate 2"));
    });
}
