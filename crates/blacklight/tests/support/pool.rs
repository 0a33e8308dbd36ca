//! The thread pool, kept busy.

use blacklight::Loop;
use std::sync::{Arc, Barrier};

/// Occupies all threads of the pool until the barrier is passed.
pub(crate) fn occupy(lp: &Loop) -> Arc<Barrier> {
    let size = std::env::var("UV_THREADPOOL_SIZE").ok();
    let threads = size.and_then(|size| size.parse().ok()).unwrap_or(4);
    let begun = Arc::new(Barrier::new(threads + 1));
    let end = Arc::new(Barrier::new(threads + 1));
    for _ in 0..threads {
        let (begun, end) = (begun.clone(), end.clone());
        let job = move || {
            begun.wait();
            end.wait();
        };
        lp.work(job, |_, done| done.unwrap()).unwrap();
    }
    begun.wait();
    end
}
