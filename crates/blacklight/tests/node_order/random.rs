//! Random programs, which are made up as they run from numbers that both languages agree on.

use crate::{log, virtual_time};
use blacklight::node::{Immediate, Node, Timeout};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

const SEEDS: u32 = 40;
const TASKS: u32 = 60;

/// One random program after another. `M` is what it has besides ticks and microtasks.
struct Programs<M> {
    seed: Cell<u32>,
    count: Cell<u32>,
    macrotasks: RefCell<Vec<M>>,
}

impl<M: Clone> Programs<M> {
    fn new() -> Rc<Programs<M>> {
        Rc::new(Programs {
            seed: Cell::new(0),
            count: Cell::new(0),
            macrotasks: RefCell::default(),
        })
    }

    /// The nth random number of a task. No task's numbers depend on what ran before it.
    fn random(&self, task: u32, n: u32, below: usize) -> usize {
        let mut x = self.seed.get() * 0x10001 + task * 0x101 + n + 1;
        for factor in [0x7feb_352d, 0x846c_a68b] {
            x = (x ^ (x >> 16)).wrapping_mul(factor);
            x ^= x >> 15;
        }
        x as usize % below
    }

    /// One of the things that were started before, or none.
    fn which(&self, task: u32, n: u32) -> Option<M> {
        let macrotasks = self.macrotasks.borrow();
        let at = self.random(task, n + 10, macrotasks.len() + 1);
        macrotasks.get(at).cloned()
    }

    /// The number of a task to be started, if there may be one more.
    fn start(&self) -> Option<u32> {
        let next = self.count.get() + 1;
        (next <= TASKS).then(|| self.count.replace(next) + 1)
    }

    /// Whether there is another program to run.
    fn begin(&self) -> bool {
        if self.seed.get() == SEEDS {
            return false;
        }
        self.seed.set(self.seed.get() + 1);
        self.count.set(0);
        self.macrotasks.take();
        log!("seed {}", self.seed.get());
        true
    }
}

type Immediates = Rc<Programs<Immediate>>;

fn set_immediate(all: &Immediates, node: &Node) {
    if let Some(id) = all.start() {
        let its = all.clone();
        let immediate = node.set_immediate(move |node| run_immediates(&its, node, "immediate", id));
        all.macrotasks.borrow_mut().push(immediate);
    }
}

fn run_immediates(all: &Immediates, node: &Node, name: &str, task: u32) {
    log!("{name} {task}");
    for n in 1..=all.random(task, 0, 4) as u32 {
        let (which, its) = (all.which(task, n), all.clone());
        match (all.random(task, n, 8), which) {
            (0 | 1, _) => {
                if let Some(id) = all.start() {
                    node.next_tick(move |node| run_immediates(&its, node, "tick", id));
                }
            }
            (2 | 3, _) => {
                if let Some(id) = all.start() {
                    node.queue_microtask(move |node| run_immediates(&its, node, "microtask", id));
                }
            }
            (4 | 5, _) => set_immediate(all, node),
            (6, Some(which)) => which.clear(),
            (7, Some(which)) if which.has_ref() => log!("reference {}", which.unref().has_ref()),
            (7, Some(which)) => log!("reference {}", which.r#ref().has_ref()),
            _ => {}
        }
    }
}

#[test]
fn random_immediates() {
    virtual_time("random_immediates", |node| {
        let all = Programs::new();
        node.on_before_exit(move |node| {
            if all.begin() {
                (0..4).for_each(|_| set_immediate(&all, node));
                run_immediates(&all, node, "main", 0);
            }
        });
    });
}

type Timers = Rc<Programs<Timeout>>;

fn set_timeout(all: &Timers, node: &Node) {
    if let Some(id) = all.start() {
        let its = all.clone();
        let callback = move |node: &Node, _: &Timeout| run_timers(&its, node, "timeout", id);
        let timeout = node.set_timeout(callback, 2);
        all.macrotasks.borrow_mut().push(timeout);
    }
}

/// An interval that runs three times.
fn set_interval(all: &Timers, node: &Node) {
    let Some(id) = all.start() else { return };
    let its = all.clone();
    let mut left = 3;
    let callback = move |node: &Node, interval: &Timeout| {
        left -= 1;
        if left == 0 {
            interval.clear();
        }
        run_timers(&its, node, "interval", id);
    };
    let interval = node.set_interval(callback, 2);
    all.macrotasks.borrow_mut().push(interval);
}

fn run_timers(all: &Timers, node: &Node, name: &str, task: u32) {
    log!("{name} {task}");
    for n in 1..=all.random(task, 0, 4) as u32 {
        let (which, its) = (all.which(task, n), all.clone());
        match (all.random(task, n, 8), which) {
            (0, _) => {
                if let Some(id) = all.start() {
                    node.next_tick(move |node| run_timers(&its, node, "tick", id));
                }
            }
            (1, _) => {
                if let Some(id) = all.start() {
                    node.queue_microtask(move |node| run_timers(&its, node, "microtask", id));
                }
            }
            (2 | 3, _) => set_timeout(all, node),
            (4, _) => set_interval(all, node),
            (5, Some(which)) => which.clear(),
            // From a tick, it would depend on the clock whether this comes too late.
            (6 | 7, Some(which))
                if !["tick", "microtask"].contains(&name) && all.start().is_some() =>
            {
                which.refresh();
            }
            _ => {}
        }
    }
}

#[test]
fn random_timers() {
    virtual_time("random_timers", |node| {
        let all = Programs::new();
        node.on_before_exit(move |node| {
            if all.begin() {
                (0..4).for_each(|_| set_timeout(&all, node));
                run_timers(&all, node, "main", 0);
            }
        });
    });
}
