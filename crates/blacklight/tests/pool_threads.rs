//! The number of the pool's threads, in a process of its own.

use blacklight::{Error, Loop};
use std::sync::{Arc, Barrier};

#[test]
fn the_first_loop_chooses_the_threads_of_the_pool() {
    for impossible in [0, 1025] {
        let built = Loop::builder().pool_threads(impossible).build();
        assert_eq!(built.unwrap_err().kind(), std::io::ErrorKind::InvalidInput);
    }
    // Until the pool starts, the last one to choose wins.
    let _other = Loop::builder().pool_threads(7).build().unwrap();
    let lp = Loop::builder().pool_threads(3).build().unwrap();
    lp.block_on(async {
        // It ends only if three jobs run at once.
        let together = Arc::new(Barrier::new(3));
        let jobs: Vec<_> = (0..3)
            .map(|_| {
                let together = together.clone();
                blacklight::spawn_blocking(move || together.wait())
            })
            .collect();
        for job in jobs {
            job.await.unwrap();
        }
    });
    assert_eq!(blacklight_engine::pool_metrics().threads, 3);
    assert!(Loop::builder().pool_threads(3).build().is_ok());
    let error = Loop::builder().pool_threads(4).build().unwrap_err();
    assert_eq!(Error::of(&error), Some(Error::PoolStarted));
}
