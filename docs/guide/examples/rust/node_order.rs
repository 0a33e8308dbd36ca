//! Node's order in Rust: ticks and microtasks after each callback, an immediate before a time-out
//! that an I/O callback sets, and a due timer that waits for a callback of the poll phase.

use blacklight::node::{Node, fs};
use std::io;
use std::time::{Duration, Instant};

fn main() -> io::Result<()> {
    let node = Node::new()?;
    let begun = Instant::now();
    node.set_timeout(|_, _| println!("the timer of 1 s"), 1000);
    fs::read_file(&node, file!(), move |node, _| {
        println!("the file is read");
        node.set_timeout(|_, _| println!("timeout"), 0);
        node.set_immediate(|node| {
            println!("immediate");
            node.next_tick(|_| println!("  a tick"));
            node.queue_microtask(|_| println!("  a microtask"));
        });
        node.next_tick(move |_| {
            println!("  a tick, which computes until the other timer is overdue");
            while begun.elapsed() < Duration::from_millis(1010) {
                std::hint::spin_loop();
            }
        });
    })?;
    node.next_tick(|_| println!("  the first tick"));
    println!("main");
    node.run();
    Ok(())
}
