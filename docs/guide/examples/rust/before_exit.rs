//! The loop ends when nothing keeps it alive. Then listeners are told so, and it runs again if one of them has
//! found work, as Node's does.

use blacklight::node::Node;
use std::cell::Cell;
use std::io;

fn main() -> io::Result<()> {
    let node = Node::new()?;
    let rounds = Cell::new(0);
    node.on_before_exit(move |node| {
        println!("the loop has ended");
        rounds.set(rounds.get() + 1);
        if rounds.get() == 1 {
            node.set_timeout(|_, _| println!("the timer of the second run"), 1);
        }
    });
    node.set_timeout(|_, _| println!("the timer of the first run"), 1);
    node.run();
    Ok(())
}
