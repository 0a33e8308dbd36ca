//! An idle handle: called in each turn, and the loop does not sleep while there is one.
//!
//! It counts the turns, and stops itself after a thousand; then nothing keeps the loop alive.

use blacklight::{Idle, Loop, Mode};
use std::io;

fn main() -> io::Result<()> {
    let lp = Loop::new()?;
    let idle = Idle::new()?;
    let mut turns = 0;
    idle.start(move |_, idle| {
        turns += 1;
        if turns == 1000 {
            println!("{turns} turns");
            idle.stop();
        }
    })?;
    println!("how long the poll may wait: {:?}", lp.backend_timeout());
    lp.run(Mode::Default);
    println!("the loop is alive: {}", lp.is_alive());
    Ok(())
}
