//! A timer against slow I/O: a callback of the poll phase keeps a due timer waiting.
//!
//! A timer is set to 100 ms. Meanwhile something is read, which takes 95 ms, and the callback
//! with the result computes for 10 ms more. The timer comes due in the middle of that, and runs
//! when the loop gets round to its timers again: after some 105 ms. So a time-out is the least
//! time that passes, and never the most.

use blacklight::node::Node;
use std::io;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Reads a file from a slow disk.
fn slow_read(begun: Instant) -> io::Result<Vec<u8>> {
    sleep(Duration::from_millis(95).saturating_sub(begun.elapsed()));
    std::fs::read("/proc/self/comm")
}

fn main() -> io::Result<()> {
    let node = Node::new()?;
    let begun = Instant::now();
    let passed = move || begun.elapsed().as_millis();
    node.set_timeout(
        move |_, _| println!("{} ms have passed since I was scheduled", passed()),
        100,
    );
    let read = move || slow_read(begun);
    node.event_loop().work(read, move |_, content| {
        let is_read = matches!(content, Ok(Ok(_)));
        println!("{} ms: read: {is_read}", passed());
        let computing = Instant::now();
        while computing.elapsed() < Duration::from_millis(10) {
            std::hint::spin_loop();
        }
        println!("{} ms: the callback is over", passed());
    })?;
    node.run();
    Ok(())
}
