//! A time-out of zero against an immediate: which one is first?
//!
//! From the main program it depends: if a whole millisecond has passed when the loop begins, the
//! timer is due and timers come first; else the check phase does. From an I/O callback it is
//! certain: the check phase follows right after the poll phase, and the timers only then.

use blacklight::node::{Node, fs};
use std::io;

fn race(node: &Node, from: &'static str) {
    node.set_timeout(move |_, _| println!("from {from}: timeout"), 0);
    node.set_immediate(move |_| println!("from {from}: immediate"));
}

fn main() -> io::Result<()> {
    let node = Node::new()?;
    race(&node, "the main program");
    fs::read_file(&node, file!(), |node, _| race(node, "an I/O callback"))?;
    node.run();
    Ok(())
}
