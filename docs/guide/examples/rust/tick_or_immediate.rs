//! A tick is sooner than an immediate: ticks run when the present callback is over, before the loop
//! goes on, and immediates in the check phase.

use blacklight::node::Node;
use std::io;

fn main() -> io::Result<()> {
    let node = Node::new()?;
    node.set_immediate(|node| {
        println!("immediate 1");
        node.next_tick(|_| println!("tick set by immediate 1"));
    });
    node.set_immediate(|_| println!("immediate 2"));
    node.next_tick(|_| println!("tick"));
    println!("main");
    node.run();
    Ok(())
}
