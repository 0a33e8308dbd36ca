//! The loop's clock: read once in a turn, so that callbacks of a turn agree on what time it is.

use blacklight::{Loop, Mode, Timer};
use std::io;
use std::time::{Duration, Instant};

fn main() -> io::Result<()> {
    let lp = Loop::new()?;
    let timer = Timer::new()?;
    timer.start(Duration::ZERO, |lp, _| {
        let (before, begun) = (lp.now(), Instant::now());
        while begun.elapsed() < Duration::from_millis(20) {
            std::hint::spin_loop(); // The callback computes for 20 ms.
        }
        let is_same = lp.now() == before;
        println!("the loop's clock after 20 ms in a callback is the same: {is_same}");
        lp.update_time();
        let is_later = lp.now() - before >= Duration::from_millis(20);
        println!("after update_time it is 20 ms or more later: {is_later}");
    })?;
    lp.run(Mode::Default);
    Ok(())
}
