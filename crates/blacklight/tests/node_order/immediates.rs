//! Immediates.

use crate::{log, real_time, say, virtual_time};
use blacklight::node::{Immediate, Node};
use std::cell::{Cell, OnceCell};
use std::rc::Rc;

/// A variable that holds an immediate which is set later.
type Later = Rc<OnceCell<Immediate>>;

#[test]
fn tasks_between_immediates() {
    virtual_time("tasks_between_immediates", |node| {
        for name in ["a", "b", "c"] {
            node.set_immediate(move |node| {
                log!("immediate {name}");
                node.queue_microtask(move |_| log!("microtask {name}"));
                node.next_tick(move |_| log!("tick {name}"));
            });
        }
    });
}

#[test]
fn immediates_add_immediates() {
    fn generation(node: &Node, number: u32) {
        for name in ["a", "b"] {
            node.set_immediate(move |node| {
                log!("{number} {name}");
                if name == "a" && number < 3 {
                    generation(node, number + 1);
                }
            });
        }
    }
    virtual_time("immediates_add_immediates", |node| generation(node, 1));
}

#[test]
fn immediate_recursion_lets_timers_run() {
    fn again(node: &Node, done: Rc<Cell<bool>>, turns: Rc<Cell<u32>>) {
        turns.set(turns.get() + 1);
        if !done.get() {
            node.set_immediate(move |node| again(node, done, turns));
        }
    }
    // The clock must move although the loop never sleeps.
    real_time("immediate_recursion_lets_timers_run", |node| {
        let (done, turns) = (Rc::new(Cell::new(false)), Rc::new(Cell::new(0)));
        let (done2, turns2) = (done.clone(), turns.clone());
        node.set_immediate(move |node| again(node, done2, turns2));
        node.set_timeout(
            move |_, _| {
                done.set(true);
                log!("timeout, after more than one turn: {}", turns.get() > 1);
            },
            100,
        );
    });
}

#[test]
fn clear_later_immediate() {
    virtual_time("clear_later_immediate", |node| {
        let b = Later::default();
        let it = b.clone();
        node.set_immediate(move |node| {
            log!("a");
            node.clear_immediate(it.get().unwrap());
        });
        b.set(node.set_immediate(say("b"))).unwrap();
        node.set_immediate(say("c"));
    });
}

#[test]
fn clear_immediate_from_a_tick() {
    virtual_time("clear_immediate_from_a_tick", |node| {
        let b = Later::default();
        let it = b.clone();
        node.set_immediate(|node| {
            log!("a");
            node.next_tick(move |_| it.get().unwrap().clear());
        });
        b.set(node.set_immediate(say("b"))).unwrap();
        node.set_immediate(say("c"));
    });
}

#[test]
fn clear_all_immediates() {
    virtual_time("clear_all_immediates", |node| {
        let a = node.set_immediate(say("a"));
        let b = node.set_immediate(say("b"));
        a.clear();
        b.clear();
        b.clear();
        node.on_before_exit(|_| log!("before exit"));
    });
}

#[test]
fn clear_immediate_of_the_next_turn() {
    virtual_time("clear_immediate_of_the_next_turn", |node| {
        node.set_immediate(|node| {
            log!("a");
            let c = node.set_immediate(say("c"));
            node.set_immediate(say("d"));
            node.next_tick(move |_| c.clear());
        });
        let itself = Later::default();
        let it = itself.clone();
        let b = node.set_immediate(move |_| {
            log!("b");
            it.get().unwrap().clear();
        });
        itself.set(b).unwrap();
    });
}

#[test]
fn immediate_unref_alone() {
    virtual_time("immediate_unref_alone", |node| {
        node.set_immediate(say("never")).unref();
        node.on_exit(|_| log!("exit"));
    });
}

#[test]
fn immediate_unref_beside_another() {
    virtual_time("immediate_unref_beside_another", |node| {
        node.set_immediate(say("unreferenced")).unref();
        node.set_immediate(say("referenced"));
    });
}

#[test]
fn immediate_references() {
    virtual_time("immediate_references", |node| {
        let itself = Later::default();
        let it = itself.clone();
        let immediate = node.set_immediate(move |_| {
            log!("immediate {}", it.get().unwrap().has_ref());
        });
        itself.set(immediate.clone()).unwrap();
        log!("{}", immediate.has_ref());
        log!("{}", immediate.unref().has_ref());
        log!("{}", immediate.unref().has_ref());
        log!("{}", immediate.r#ref().has_ref());
        node.set_immediate(move |_| log!("after {}", immediate.r#ref().has_ref()));
    });
}
