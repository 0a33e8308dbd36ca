//! The three ways to run the loop, and what they return: whether there is more to do.

use blacklight::{Loop, Mode, Timer};
use std::io;
use std::time::Duration;

fn main() -> io::Result<()> {
    let lp = Loop::new()?;
    let soon = Timer::new()?;
    let later = Timer::new()?;
    later.start(Duration::from_secs(3600), |_, _| println!("  an hour"))?;
    let run = |mode, what: &str| {
        println!("{what}");
        println!("  more to do: {}", lp.run(mode));
    };
    run(Mode::NoWait, "no wait: nothing is due yet");
    soon.start(Duration::from_millis(10), |_, _| {
        println!("  a timer of 10 ms")
    })?;
    run(Mode::Once, "once: waits until one callback has run");
    soon.start(Duration::from_millis(10), |lp, _| {
        println!("  a timer stops the loop");
        lp.stop();
    })?;
    run(
        Mode::Default,
        "default: until nothing is left, or somebody stops it",
    );
    later.unref();
    run(
        Mode::Default,
        "default: an unreferenced timer does not keep it",
    );
    Ok(())
}
