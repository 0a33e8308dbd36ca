//! One callback for each phase of a turn of the loop.
//!
//! The handles are started in the opposite order of that in which the loop calls them.

use blacklight::{Async, Check, Idle, Loop, Mode, Prepare, Timer};
use std::io;
use std::time::Duration;

fn main() -> io::Result<()> {
    let lp = Loop::new()?;
    let check = Check::new()?;
    check.start(|lp, _| {
        println!("check: right after the poll");
        lp.stop();
    })?;
    let wakeup = Async::new(|_, _| println!("poll: a wake-up was sent"))?;
    wakeup.sender().send();
    let prepare = Prepare::new()?;
    prepare.start(|_, _| println!("prepare: right before the poll"))?;
    let idle = Idle::new()?;
    idle.start(|_, _| println!("idle: in each turn, and the poll does not wait"))?;
    let timer = Timer::new()?;
    timer.start(Duration::ZERO, |_, _| println!("timers: it is due at once"))?;
    lp.run(Mode::Default);
    drop((check, wakeup, prepare, idle, timer));
    println!("all handles are closing");
    lp.run(Mode::Default);
    Ok(())
}
