//! A callback that is put off to the next tick sees what the program has set meanwhile.

use blacklight::node::Node;
use std::cell::Cell;
use std::io;
use std::rc::Rc;

fn some_async_api_call(node: &Node, callback: impl FnOnce(&Node) + 'static) {
    node.next_tick(callback);
}

fn main() -> io::Result<()> {
    let node = Node::new()?;
    let bar = Rc::new(Cell::new(None));
    let seen = bar.clone();
    some_async_api_call(&node, move |_| println!("bar {:?}", seen.get()));
    bar.set(Some(1));
    println!("the main program is over");
    node.run();
    Ok(())
}
