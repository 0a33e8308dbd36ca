//! The thread pool: four jobs that wait for each other, which they can because they run at once.

use blacklight::Loop;
use std::io;
use std::sync::{Arc, Barrier};
use std::thread;

fn main() -> io::Result<()> {
    let lp = Loop::new()?;
    let own = thread::current().id();
    let four = Arc::new(Barrier::new(4));
    lp.block_on(async {
        let jobs: Vec<_> = (0..4)
            .map(|number| {
                let four = four.clone();
                blacklight::spawn_blocking(move || {
                    four.wait();
                    (number, thread::current().id() != own)
                })
            })
            .collect();
        println!("4 jobs are queued, and nothing has waited");
        for job in jobs {
            let (number, is_elsewhere) = job.await.expect("it does not panic");
            println!("job {number} is done, on a thread of the pool: {is_elsewhere}");
        }
        assert_eq!(thread::current().id(), own);
    });
    Ok(())
}
