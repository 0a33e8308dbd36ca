//! Delays below 1 ms, above 2^31 - 1 ms and what is no number are 1 ms, as in Node. All these timers are in
//! one list, and run in the order in which they were set.

use blacklight::node::Node;
use std::io;

fn main() -> io::Result<()> {
    let node = Node::new()?;
    node.on_warning(|_, warning| println!("{warning}"));
    for delay in [1.0, 0.0, -1.0, f64::NAN, 0.5, 2f64.powi(31)] {
        node.set_timeout(move |_, _| println!("the timer of {delay}"), delay);
    }
    node.run();
    Ok(())
}
