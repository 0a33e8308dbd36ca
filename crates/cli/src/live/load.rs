//! The program of load tests: many loops, each with many handles, in threads of one process.
//!
//! The numbers are those that the page is made for, and every loop has something to do, so that every document of it changes.

use anyhow::{Context, Result};
use blacklight::{Loop, Mode, Timer};
use std::time::Duration;

/// The loops.
const LOOPS: u64 = 50;
/// The handles of each loop.
const HANDLES: usize = 200;
/// How often a loop turns. Loops differ, so that they do not turn all at once.
const PERIOD: Duration = Duration::from_millis(20);

/// One loop: a timer that repeats, and others that wait for a day.
fn turn(number: u64) -> Result<()> {
    let lp = Loop::builder().name(&format!("load {number}")).build()?;
    let day = Duration::from_secs(86_400);
    let mut waiting = Vec::new();
    for _ in 1..HANDLES {
        let timer = Timer::new()?;
        timer.start(day, |_, _| ())?;
        waiting.push(timer);
    }
    let busy = Timer::new()?;
    let mut next = 0;
    busy.start_repeating(PERIOD + Duration::from_millis(number), move |_, _| {
        // Handles change as those of a server do: one that is started anew is told anew.
        let _ = waiting[next].start(day, |_, _| ());
        next = (next + 1) % waiting.len();
    })?;
    lp.run(Mode::Default);
    Ok(())
}

/// Runs until it is ended.
pub(super) fn run() -> Result<()> {
    let threads = (0..LOOPS).map(|number| {
        let thread = std::thread::Builder::new().name(format!("load {number}"));
        thread.spawn(move || turn(number))
    });
    let threads: Vec<_> = threads.collect::<Result<_, _>>()?;
    for thread in threads {
        thread.join().ok().context("a loop has panicked")??;
    }
    Ok(())
}
