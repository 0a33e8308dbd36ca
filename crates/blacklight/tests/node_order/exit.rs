//! The end of a program.

use crate::{log, ring, say, virtual_time};

#[test]
fn before_exit_without_work() {
    virtual_time("before_exit_without_work", |node| {
        node.on_before_exit(|_| log!("before exit"));
        node.on_exit(|_| log!("exit"));
        node.set_timeout(ring("timeout"), 10);
    });
}

#[test]
fn before_exit_reschedules() {
    virtual_time("before_exit_reschedules", |node| {
        let mut encores = 0;
        node.on_before_exit(move |node| {
            log!("before exit");
            encores += 1;
            if encores == 1 {
                node.set_timeout(ring("timeout"), 10);
            }
            if encores == 2 {
                node.set_immediate(say("immediate"));
            }
        });
        node.on_exit(|_| log!("exit"));
        log!("main");
    });
}

#[test]
fn before_exit_only_ticks() {
    virtual_time("before_exit_only_ticks", |node| {
        node.on_before_exit(|node| {
            log!("before exit");
            node.queue_microtask(say("microtask"));
            node.next_tick(say("tick"));
        });
        node.on_exit(|_| log!("exit"));
    });
}

#[test]
fn before_exit_tick_sets_a_timer() {
    virtual_time("before_exit_tick_sets_a_timer", |node| {
        let mut first = true;
        node.on_before_exit(move |node| {
            log!("before exit");
            if first {
                first = false;
                node.next_tick(|node| {
                    node.set_timeout(ring("timeout"), 10);
                });
            }
        });
    });
}

#[test]
fn before_exit_two_listeners() {
    virtual_time("before_exit_two_listeners", |node| {
        node.on_before_exit(|node| {
            log!("first");
            node.next_tick(say("tick"));
        });
        node.on_before_exit(|_| log!("second"));
    });
}

#[test]
fn before_exit_unref() {
    virtual_time("before_exit_unref", |node| {
        node.on_before_exit(|node| {
            log!("before exit");
            node.set_timeout(ring("never"), 10).unref();
        });
    });
}

#[test]
fn exit_listeners() {
    virtual_time("exit_listeners", |node| {
        node.on_exit(|node| {
            log!("exit 1");
            node.set_timeout(ring("timeout"), 0);
            node.set_immediate(say("immediate"));
            node.next_tick(say("tick"));
            node.queue_microtask(say("microtask"));
        });
        node.on_exit(|_| log!("exit 2"));
    });
}
