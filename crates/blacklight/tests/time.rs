//! Sleeps, time-outs and intervals.

use blacklight::{Loop, Mode, current, interval, sleep, sleep_until, spawn, timeout};
use std::cell::{Cell, RefCell};
use std::future::pending;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

const MS: Duration = Duration::from_millis(1);

#[test]
fn sleeps_end_in_the_order_of_their_times_and_never_early() {
    let lp = Loop::new().unwrap();
    let log = Rc::new(RefCell::new(Vec::new()));
    let begun = Instant::now();
    for ms in [9, 3, 6] {
        let log = log.clone();
        let due = begun + ms * MS;
        drop(lp.spawn(async move {
            sleep_until(due).await;
            assert!(Instant::now() >= due);
            log.borrow_mut().push(ms);
        }));
    }
    lp.run(Mode::Default);
    assert_eq!(*log.borrow(), [3, 6, 9]);
}

#[test]
fn a_sleep_counts_from_now_and_not_from_the_cached_time() {
    let lp = Loop::new().unwrap();
    lp.block_on(async {
        std::thread::sleep(5 * MS);
        let begun = Instant::now();
        sleep(3 * MS).await;
        assert!(begun.elapsed() >= 3 * MS);
    });
}

#[test]
fn time_outs_and_intervals_count_from_the_call_after_a_long_computation() {
    let lp = Loop::new().unwrap();
    let (long, short) = (Duration::from_millis(30), Duration::from_millis(10));
    lp.block_on(async {
        // The loop's cached time is from before it.
        std::thread::sleep(long);
        let begun = Instant::now();
        let late = blacklight::timeout(short, std::future::pending::<()>()).await;
        assert!(late.is_err() && begun.elapsed() >= short);
        std::thread::sleep(long);
        let begun = Instant::now();
        blacklight::interval(short).tick().await;
        assert!(begun.elapsed() >= short);
    });
}

#[test]
fn a_sleep_can_be_reset_and_dropped() {
    let lp = Loop::new().unwrap();
    lp.block_on(async {
        let mut long = sleep(Duration::from_secs(3600));
        let mut nobody = Context::from_waker(Waker::noop());
        assert!(pin!(&mut long).poll(&mut nobody).is_pending());
        let begun = Instant::now();
        long.reset(2 * MS);
        (&mut long).await;
        assert!(begun.elapsed() >= 2 * MS && long.is_elapsed());
        // What is over can be used again.
        long.reset(Duration::from_secs(3600));
        assert!(!long.is_elapsed());
        long.reset(MS);
        long.await;
        drop(sleep(Duration::MAX));
    });
    assert!(!lp.is_alive());
}

#[test]
fn who_waits_for_no_time_gives_way_in_the_end() {
    let lp = Loop::new().unwrap();
    let rounds = Rc::new(Cell::new(0u32));
    let counted = rounds.clone();
    lp.block_on(async move {
        let restless = spawn(async move {
            loop {
                sleep(Duration::ZERO).await;
                counted.set(counted.get() + 1);
            }
        });
        sleep(MS).await;
        restless.abort();
    });
    assert!(rounds.get() > 0);
}

#[test]
fn a_time_out_drops_the_future() {
    let lp = Loop::new().unwrap();
    lp.block_on(async {
        let owned = Rc::new(());
        let weak = Rc::downgrade(&owned);
        let late = timeout(MS, async move {
            let _owned = owned;
            pending::<()>().await;
        });
        let error = late.await.unwrap_err();
        assert!(weak.upgrade().is_none());
        let error = std::io::Error::from(error);
        assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
        assert_eq!(timeout(Duration::ZERO, async { 1 }).await, Ok(1));
        let nested = timeout(MS, timeout(Duration::from_secs(60), pending::<()>()));
        assert!(nested.await.is_err());
    });
}

#[test]
fn an_interval_keeps_its_pace_and_leaves_out_what_is_missed() {
    let lp = Loop::new().unwrap();
    lp.block_on(async {
        let begun = Instant::now();
        let mut ticks = interval(2 * MS);
        for tick in 1..=5 {
            ticks.tick().await;
            assert!(begun.elapsed() >= tick * 2 * MS);
        }
        std::thread::sleep(20 * MS);
        let late = Instant::now();
        ticks.tick().await;
        ticks.tick().await;
        ticks.tick().await;
        assert!(late.elapsed() >= 2 * MS, "not one for each that was missed");
    });
}

#[test]
fn a_sleep_ends_with_its_loop() {
    let lp = Loop::new().unwrap();
    let mut long = sleep_of();
    let mut nobody = Context::from_waker(Waker::noop());
    assert!(pin!(&mut long).poll(&mut nobody).is_pending());
    drop(lp);
    assert!(pin!(&mut long).poll(&mut nobody).is_ready());
}

fn sleep_of() -> blacklight::Sleep {
    blacklight::sleep(Duration::from_secs(3600))
}

/// At how many moments twenty sleeps of 1 to 20 ms end, on a clock that passes only while the loop
/// sleeps.
fn moments_of_sleeps(slot: Duration) -> usize {
    let lp = Loop::builder().simulated(1).sleep_slot(slot).build();
    let lp = lp.unwrap();
    let moments = Rc::new(RefCell::new(Vec::new()));
    let begun = lp.now();
    for ms in 1..=20 {
        let moments = moments.clone();
        drop(lp.spawn(async move {
            let mut waiting = sleep(Duration::from_secs(3600));
            // Whether it was started or is reset before that, it keeps to the slots.
            if ms % 2 == 0 {
                assert!(timeout(Duration::ZERO, &mut waiting).await.is_err());
            }
            waiting.reset(ms * MS);
            waiting.await;
            let now = current().now();
            assert!(now >= begun + ms * MS, "{ms} ms end early");
            assert!(now <= begun + ms * MS + slot + MS, "{ms} ms end late");
            moments.borrow_mut().push(now);
        }));
    }
    lp.run(Mode::Default);
    let mut moments = moments.take();
    assert!(moments.is_sorted() && moments.len() == 20);
    moments.dedup();
    moments.len()
}

#[test]
fn sleeps_of_one_slot_end_together() {
    assert_eq!(moments_of_sleeps(Duration::ZERO), 20);
    // Where the slots begin is the clock's to say.
    assert!((2..=3).contains(&moments_of_sleeps(10 * MS)));
}

#[test]
fn an_interval_keeps_its_pace_in_slots() {
    let lp = Loop::builder().simulated(1).sleep_slot(2 * MS).build();
    let lp = lp.unwrap();
    let begun = lp.now();
    lp.block_on(async {
        let mut ticks = interval(5 * MS);
        for tick in 1..=10 {
            ticks.tick().await;
            let late = current().now() - begun - tick * 5 * MS;
            assert!(late <= 3 * MS, "tick {tick} is {late:?} late");
        }
    });
}
