//! A time-out of zero against an immediate, set in an I/O callback: the immediate comes first.
//!
//! The check phase follows right after the poll phase, and the timers only in the next turn.

use blacklight::node::{Node, fs};
use std::io;

fn main() -> io::Result<()> {
    let node = Node::new()?;
    fs::read_file(&node, "/proc/self/comm", |node, _| {
        println!("the file is read");
        node.set_timeout(|_, _| println!("timeout"), 0);
        node.set_immediate(|_| println!("immediate"));
    })?;
    node.run();
    Ok(())
}
