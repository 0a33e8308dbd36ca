//! Within and around I/O callbacks.

use crate::{busy, log, real_time, ring, say};
use blacklight::node::{Node, fs};
use std::io;
use std::time::Instant;

fn stat(node: &Node, callback: impl FnOnce(&Node) + 'static) {
    fs::stat(node, env!("CARGO_MANIFEST_PATH"), move |node, stats| {
        assert!(stats.is_ok_and(|stats| stats.is_file()));
        callback(node);
    })
    .unwrap();
}

fn read_file(node: &Node, callback: impl FnOnce(&Node) + 'static) {
    fs::read_file(node, env!("CARGO_MANIFEST_PATH"), move |node, data| {
        assert!(data.is_ok_and(|data| !data.is_empty()));
        callback(node);
    })
    .unwrap();
}

#[test]
fn timeout_vs_immediate() {
    real_time("timeout_vs_immediate", |node| {
        read_file(node, |node| {
            node.set_timeout(ring("timeout"), 0);
            node.set_immediate(say("immediate"));
        });
    });
}

#[test]
fn timer_against_slow_io() {
    real_time("timer_against_slow_io", |node| {
        let timeout_scheduled = Instant::now();
        node.set_timeout(
            move |_, _| {
                let delay = timeout_scheduled.elapsed().as_millis().min(500);
                log!("{delay}ms have passed since I was scheduled");
            },
            500,
        );
        read_file(node, |_| {
            busy(510);
            log!("slow callback is done");
        });
    });
}

#[test]
fn tasks_in_io() {
    real_time("tasks_in_io", |node| {
        stat(node, |node| {
            node.set_timeout(ring("timeout"), 0);
            node.set_immediate(say("immediate"));
            node.queue_microtask(say("microtask"));
            node.next_tick(|node| {
                log!("tick");
                node.next_tick(say("tick of the tick"));
            });
            log!("stat");
        });
        log!("main");
    });
}

#[test]
fn io_error() {
    real_time("io_error", |node| {
        fs::read_file(node, "/nowhere/at/all", |node, data| {
            node.next_tick(say("tick"));
            if data.unwrap_err().kind() == io::ErrorKind::NotFound {
                log!("ENOENT");
            }
        })
        .unwrap();
    });
}

#[test]
fn io_in_a_chain() {
    fn link(node: &Node, depth: u32) {
        stat(node, move |node| {
            log!("stat {depth} true");
            node.next_tick(move |_| log!("tick {depth}"));
            node.set_immediate(move |_| log!("immediate {depth}"));
            if depth < 3 {
                node.set_immediate(move |node| link(node, depth + 1));
            }
        });
    }
    real_time("io_in_a_chain", |node| link(node, 1));
}

#[test]
fn io_clears_timer_and_immediate() {
    real_time("io_clears_timer_and_immediate", |node| {
        stat(node, |node| {
            log!("stat");
            node.set_timeout(ring("never"), 0).clear();
            node.set_immediate(say("never")).clear();
        });
        node.on_before_exit(|_| log!("before exit"));
    });
}

#[test]
fn io_keeps_the_loop_alive() {
    real_time("io_keeps_the_loop_alive", |node| {
        node.set_timeout(ring("never"), 60_000).unref();
        fs::write_file(node, "/dev/null", "light", |_, result| {
            log!("written {}", result.is_ok());
        })
        .unwrap();
        node.on_exit(|_| log!("exit"));
    });
}

#[test]
fn io_before_exit() {
    real_time("io_before_exit", |node| {
        let mut first = true;
        node.on_before_exit(move |node| {
            log!("before exit");
            if first {
                first = false;
                stat(node, |_| log!("stat"));
            }
        });
    });
}
