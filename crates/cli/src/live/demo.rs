//! The program that `blacklight live --demo` shows: it does three things wrong, for its viewer to find.
//!
//! - The loop `web` is blocked every few seconds, by a report that is put together in one go.
//! - The thread pool is starved: exports take all of its threads, and the short work that requests need waits.
//! - A client that gives up leaves its timer behind.
//!
//! The loop `mail`, in a thread of its own, does everything right.

use anyhow::Result;
use blacklight::{Loop, Mode, TcpListener, TcpStream, Timer};
use std::cell::RefCell;
use std::hint::black_box;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// How long the report takes, and how often it is made.
const REPORT: (Duration, Duration) = (Duration::from_millis(450), Duration::from_millis(4_000));
/// How long an export takes, how often some are made, and how many.
const EXPORT: (Duration, Duration, usize) =
    (Duration::from_millis(700), Duration::from_millis(1_500), 9);
/// How often a client gives up.
const CLIENT: Duration = Duration::from_millis(250);

/// Computes for a while.
#[inline(never)]
fn compute(time: Duration) -> u64 {
    let begun = Instant::now();
    let mut sum = 0_u64;
    while begun.elapsed() < time {
        // Operators have the line of this file in a stack, where methods of numbers have one of the library.
        let mut step = 0;
        while step < 100_000 {
            sum ^= sum << 7 ^ step;
            step += 1;
        }
        sum = black_box(sum);
    }
    sum
}

/// The mistake that blocks the loop.
#[inline(never)]
fn assemble_report() {
    black_box(compute(black_box(REPORT.0)));
}

/// The mistake that starves the pool.
#[inline(never)]
fn export_table() {
    std::thread::sleep(black_box(EXPORT.0));
}

/// The mistake that leaks: the timer is for a client that is gone, and nobody stops it.
#[inline(never)]
fn remember_client(forgotten: &RefCell<Vec<Timer>>) -> Result<()> {
    let timer = Timer::new()?;
    timer.start(Duration::from_secs(86_400), |_, _| ())?;
    forgotten.borrow_mut().push(timer);
    Ok(())
}

/// A server that echoes, and a client that talks to it.
fn echo(lp: &Loop) -> Result<()> {
    let listener = lp.block_on(TcpListener::bind("127.0.0.1:0"))?;
    let address = listener.local_addr()?;
    lp.spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            blacklight::spawn(async move {
                let mut room = [0; 512];
                while let Ok(count @ 1..) = stream.read(&mut room).await {
                    let _ =
                        blacklight::spawn_blocking(|| compute(Duration::from_micros(300))).await;
                    if stream.write_all(&room[..count]).await.is_err() {
                        break;
                    }
                }
            });
        }
    })
    .unref();
    for client in 0..6 {
        lp.spawn(async move {
            let stream = TcpStream::connect(address).await?;
            let mut room = [0; 512];
            loop {
                stream.write_all(b"what nobody saw before").await?;
                stream.read(&mut room).await?;
                compute(Duration::from_micros(400));
                blacklight::sleep(Duration::from_millis(12 + client * 5)).await;
            }
            #[expect(unreachable_code, reason = "says what the task may fail with")]
            std::io::Result::Ok(())
        })
        .unref();
    }
    Ok(())
}

/// The loop that does everything right.
fn mail() -> Result<()> {
    let lp = Loop::builder().name("mail").build()?;
    let timer = Timer::new()?;
    timer.start_repeating(Duration::from_millis(25), |_, _| {
        black_box(compute(Duration::from_micros(600)));
    })?;
    lp.run(Mode::Default);
    Ok(())
}

/// Runs until it is ended.
pub(super) fn run() -> Result<()> {
    let lp = Loop::builder().name("web").build()?;
    std::thread::Builder::new()
        .name("mail".into())
        .spawn(mail)?;
    echo(&lp)?;
    let report = Timer::new()?;
    report.start_repeating(REPORT.1, |_, _| assemble_report())?;
    let export = Timer::new()?;
    export.start_repeating(EXPORT.1, |lp, _| {
        for _ in 0..EXPORT.2 {
            // One that cannot be submitted is tried again the next time.
            let _ = lp.work(export_table, |_, _| ());
        }
    })?;
    let forgotten = Rc::new(RefCell::new(Vec::new()));
    let client = Timer::new()?;
    client.start_repeating(CLIENT, move |_, _| {
        // Where there is no memory for more, the leak is found.
        let _ = remember_client(&forgotten);
    })?;
    lp.run(Mode::Default);
    Ok(())
}
