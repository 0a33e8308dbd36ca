//! For how long the poll phase may wait: the rules, one after the other.
//!
//! A program with a loop of its own asks for this before it waits for the descriptor of this one.

use blacklight::{Async, Idle, Loop, LoopHandle, Mode, Timer};
use std::io;
use std::time::Duration;

fn say(lp: &LoopHandle, when: &str) {
    match lp.backend_timeout() {
        None => println!("{when}: for ever"),
        Some(Duration::ZERO) => println!("{when}: not at all"),
        Some(time) => {
            let seconds = time.as_secs_f64().ceil();
            println!("{when}: for some time, and at most {seconds} s");
        }
    }
}

fn main() -> io::Result<()> {
    let lp = Loop::new()?;
    say(&lp, "no handle and no request");
    let wakeup = Async::new(|_, _| ())?;
    // What the loop waits for has to be told to the kernel first, for which it takes a turn.
    lp.run(Mode::NoWait);
    say(&lp, "an async handle, which anybody may send to");
    let timer = Timer::new()?;
    timer.start(Duration::from_secs(10), |_, _| ())?;
    say(&lp, "a timer of 10 s");
    timer.start(Duration::ZERO, |_, _| ())?;
    say(&lp, "a timer that is due");
    timer.start(Duration::from_secs(10), |_, _| ())?;
    let idle = Idle::new()?;
    idle.start(|_, _| ())?;
    say(&lp, "an idle handle");
    idle.stop();
    lp.stop();
    say(&lp, "the loop is to stop");
    lp.run(Mode::Default);
    drop(wakeup);
    say(&lp, "a handle that is closing");
    Ok(())
}
