//! Timers and an idle handle: the order of due times, a repeating timer, and counted turns.

use blacklight::{Idle, Loop, Mode, Timer};
use std::io;
use std::time::Duration;

fn main() -> io::Result<()> {
    let lp = Loop::new()?;
    let later = Timer::new()?;
    later.start(Duration::from_millis(60), |_, _| println!("60 ms"))?;
    let sooner = Timer::new()?;
    sooner.start(Duration::from_millis(20), |_, _| println!("20 ms"))?;
    lp.run(Mode::Default);

    let mut ticks = 0;
    sooner.start_repeating(Duration::from_millis(5), move |_, timer| {
        ticks += 1;
        println!("tick {ticks}");
        if ticks == 3 {
            timer.stop();
        }
    })?;
    lp.run(Mode::Default);

    let mut turns = 0;
    let idle = Idle::new()?;
    idle.start(move |_, idle| {
        turns += 1;
        println!("turn {turns}");
        if turns == 3 {
            idle.stop();
        }
    })?;
    lp.run(Mode::Default);
    Ok(())
}
