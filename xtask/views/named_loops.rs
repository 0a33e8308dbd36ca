//! Two loops with names: one runs a task now and then, and one has a callback
//! that computes for too long.

use blacklight::{Loop, Mode, Timer};
use std::io;
use std::time::{Duration, Instant};

/// What keeps the loop from its work.
#[inline(never)]
fn grind(time: Duration) {
    let begun = Instant::now();
    while begun.elapsed() < time {
        std::hint::spin_loop();
    }
}

/// Goes on for ever.
async fn tick() {
    loop {
        blacklight::sleep(Duration::from_millis(20)).await;
    }
}

fn main() -> io::Result<()> {
    let quiet = std::thread::spawn(|| -> io::Result<()> {
        let lp = Loop::builder().name("quiet").build()?;
        lp.spawn(tick()).unref();
        let timer = Timer::new()?;
        timer.start(Duration::from_secs(3600), |_, _| {})?;
        lp.run(Mode::Default);
        Ok(())
    });
    let lp = Loop::builder().name("grinder").build()?;
    let timer = Timer::new()?;
    let interval = Duration::from_millis(10);
    timer.start_repeating(interval, |_, _| grind(Duration::from_millis(300)))?;
    println!("ready");
    lp.run(Mode::Default);
    quiet.join().expect("the other loop has not panicked")
}
