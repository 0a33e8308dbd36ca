//! A timer against I/O: a callback of the poll phase keeps a due timer waiting.
//!
//! A timer is set to 1 s. A file is read, and the callback computes until the timer is 10 ms overdue.
//! A time-out is the least time that passes, and never the most.

use blacklight::node::{Node, fs};
use std::io;
use std::time::{Duration, Instant};

fn main() -> io::Result<()> {
    let node = Node::new()?;
    let scheduled = Instant::now();
    let is_overdue = move || scheduled.elapsed() >= Duration::from_millis(1010);
    node.set_timeout(
        move |_, _| println!("the timer, not before 1010 ms: {}", is_overdue()),
        1000,
    );
    fs::read_file(&node, "/proc/self/comm", move |_, _| {
        println!("the file is read");
        while !is_overdue() {
            std::hint::spin_loop();
        }
        println!("the callback is over");
    })?;
    node.run();
    Ok(())
}
