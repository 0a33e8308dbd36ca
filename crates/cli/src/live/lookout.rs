//! The thread that finds stalls: it looks at what loops do every few milliseconds, and takes the stacks of those that run for too long.
//!
//! It does nothing else. Reading records, and above all the names of code, can take seconds, in which a stall would come and go unseen; so
//! the sampler reads, and names the stacks that this thread has taken.

use crate::stack::Unwinder;
use crate::stalls::Watcher;
use blacklight_record::read::{Reader, Snapshot, now_ns};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

/// How often loops are looked at.
const LOOK: Duration = Duration::from_millis(10);

/// One process that is looked at, for as long as somebody has it.
pub(super) struct Post {
    reader: Arc<Reader>,
    watcher: Mutex<Watcher>,
    /// What was read last, which has the loops.
    last: Mutex<Option<Arc<Snapshot>>>,
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    // What a thread that panics leaves behind is whole: each change is one call.
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Post {
    /// The stalls. This is held for a moment only, since the thread waits for it.
    pub(super) fn watcher(&self) -> MutexGuard<'_, Watcher> {
        lock(&self.watcher)
    }

    /// Says which loops there are.
    pub(super) fn tell(&self, snapshot: Arc<Snapshot>) {
        *lock(&self.last) = Some(snapshot);
    }

    /// Looks at each loop. The tables for unwinding are made where there are none.
    fn look(&self, unwinder: &mut Option<Unwinder>) {
        let last = lock(&self.last).clone();
        for lp in last.iter().flat_map(|of| &of.loops) {
            // What cannot be read is noticed by the next reading.
            let Ok(now) = self.reader.now(lp) else {
                return;
            };
            let wanted = self.watcher().see(lp.id, &now, now_ns());
            // Nothing is held while the stack is taken and unwound, which takes long where tables are read first.
            let (Some(began_ns), Some(unwinder)) = (wanted, unwinder.as_mut()) else {
                continue;
            };
            match unwinder.sample(lp.tid) {
                Ok(sample) => self.watcher().add(lp.id, began_ns, sample.into()),
                Err(error) => {
                    let refusal = Some(error.to_string());
                    self.watcher().refuse(lp.id, began_ns, refusal);
                }
            }
        }
    }
}

/// What the thread is told.
#[derive(Default)]
struct Orders {
    posts: Vec<(u32, Weak<Post>)>,
    is_resting: bool,
    is_over: bool,
}

#[derive(Default)]
struct Shared {
    orders: Mutex<Orders>,
    changed: Condvar,
}

/// The thread.
pub(super) struct Lookout(Arc<Shared>);

impl Drop for Lookout {
    fn drop(&mut self) {
        self.change(|orders| orders.is_over = true);
    }
}

impl Lookout {
    /// Starts it.
    pub(super) fn new() -> std::io::Result<Lookout> {
        let shared = Arc::new(Shared::default());
        let own = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("lookout".into());
        thread.spawn(move || watch(&own))?;
        Ok(Lookout(shared))
    }

    fn change(&self, change: impl FnOnce(&mut Orders)) {
        change(&mut lock(&self.0.orders));
        self.0.changed.notify_all();
    }

    /// Looks at the loops of a process from now on.
    pub(super) fn post(&self, reader: &Arc<Reader>, stall_ns: u64) -> Arc<Post> {
        let post = Arc::new(Post {
            reader: Arc::clone(reader),
            watcher: Mutex::new(Watcher::new(stall_ns)),
            last: Mutex::new(None),
        });
        let known = (reader.pid(), Arc::downgrade(&post));
        self.change(|orders| orders.posts.push(known));
        post
    }

    /// Looks at nothing, or again.
    pub(super) fn rest(&self, is_resting: bool) {
        self.change(|orders| orders.is_resting = is_resting);
    }
}

fn watch(shared: &Shared) {
    let mut unwinders: HashMap<u32, Option<Unwinder>> = HashMap::new();
    loop {
        let is_idle = |orders: &mut Orders| {
            orders.posts.retain(|(_, post)| post.strong_count() > 0);
            !orders.is_over && (orders.is_resting || orders.posts.is_empty())
        };
        let orders = shared.changed.wait_while(lock(&shared.orders), is_idle);
        let orders = orders.unwrap_or_else(PoisonError::into_inner);
        if orders.is_over {
            return;
        }
        let posts = orders.posts.clone();
        drop(orders);
        unwinders.retain(|pid, _| posts.iter().any(|(of, _)| of == pid));
        for (pid, post) in posts {
            let Some(post) = post.upgrade() else { continue };
            let unwinder = unwinders.entry(pid);
            let unwinder = unwinder.or_insert_with(|| Unwinder::new(pid).ok());
            // The tables of a program may be damaged: then it has no stacks, and others have.
            if catch_unwind(AssertUnwindSafe(|| post.look(unwinder))).is_err() {
                *unwinder = None;
            }
        }
        std::thread::sleep(LOOK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blacklight::{Loop, Mode, Timer};
    use std::process::{Command, Stdio};
    use std::time::Instant;

    /// The program of the test below: its loop is blocked again and again, for so long that even a machine that has much else to do looks
    /// at it meanwhile.
    #[test]
    #[ignore = "is a program, and runs until it is ended"]
    fn program_that_stalls() {
        let lp = Loop::builder().name("stalls").build().expect("a loop");
        let timer = Timer::new().expect("a timer");
        let started = timer.start_repeating(Duration::from_millis(500), |_, _| {
            let begun = Instant::now();
            while begun.elapsed() < Duration::from_millis(400) {
                std::hint::black_box(&begun);
            }
        });
        started.expect("it starts");
        lp.run(Mode::Default);
    }

    #[test]
    fn stalls_have_stacks_though_nobody_reads_the_record_meanwhile() {
        let own = std::env::current_exe().expect("it is a file");
        let mut command = Command::new(own);
        let name = "live::lookout::tests::program_that_stalls";
        command.args(["--ignored", "--exact", name]);
        command.env("BLACKLIGHT_RECORD", "1").stdout(Stdio::null());
        let mut program = command.spawn().expect("it runs");
        let (reader, snapshot) = loop {
            let reader = Reader::open(program.id());
            let snapshot = reader.and_then(|reader| Ok((reader.snapshot()?, reader)));
            match snapshot {
                Ok((snapshot, reader)) if !snapshot.loops.is_empty() => break (reader, snapshot),
                _ => std::thread::sleep(LOOK),
            }
        };
        let lookout = Lookout::new().expect("there is room for a thread");
        let post = lookout.post(&Arc::new(reader), 100_000_000);
        post.tell(Arc::new(snapshot));
        // This thread stands for one that reads names for all this time.
        let begun = Instant::now();
        let found = loop {
            let stalls = post.watcher().stalls();
            let over = stalls.iter().filter(|stall| stall.is_over);
            let last: Vec<_> = over.take(10).collect();
            let found = last.iter().filter(|of| !of.samples.is_empty()).count();
            let is_late = begun.elapsed() > Duration::from_secs(180);
            if (last.len() == 10 && found >= 9) || is_late {
                break found;
            }
            std::thread::sleep(LOOK);
        };
        program.kill().expect("it runs");
        program.wait().expect("it ends");
        blacklight_record::read::remove(program.id());
        assert!(found >= 9, "{found} of ten stalls have a stack");
        // Nobody is looked at any more when there is no post.
        let last = Arc::downgrade(&post);
        drop(post);
        while last.strong_count() > 0 {
            std::thread::yield_now();
        }
    }
}
