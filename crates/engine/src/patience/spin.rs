//! Spinning: a thread looks again and again whether an event is there, and yields its processor in between.

use super::contention::Workers;
use crate::sync;
use blacklight_sys::clock;
use std::sync::atomic::Ordering::Relaxed;

/// How long to spin for other threads of this process.
///
/// Measured with `queue_work` (docs/PERFORMANCE.md): a job takes 2.9 system calls by which threads
/// sleep or wake each other, and 0.15 wake-ups of the loop; with the original it takes 5.9 and one.
const THREAD_NS: u64 = 20_000;

/// How often to look for another thread between two yields: some hundred nanoseconds, less than a
/// system call takes. In a model no time passes, and a look is as good as many.
const LOOKS: u32 = if cfg!(all(test, loom)) { 1 } else { 16 };

/// The longest that others may keep the processor before the spin is given up: less than any scheduler gives to
/// a thread that computes.
const AWAY_NS: u64 = 200_000;

/// A processor that a thread spins on, and its clock. A simulated loop has simulated ones.
pub(crate) trait Processor {
    fn now_ns(&self) -> u64;

    /// Yields the processor to any other thread that could run on it.
    fn pause(&mut self);
}

/// The processor that the thread really runs on.
struct Real;

impl Processor for Real {
    fn now_ns(&self) -> u64 {
        clock::monotonic_ns()
    }

    fn pause(&mut self) {
        std::thread::yield_now();
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Target {
    Thread,
    Io,
}

/// One spin, as [`Patience`](super::Patience) has planned it.
#[derive(Debug)]
pub(crate) struct Spin<'a> {
    target: Target,
    workers: Option<Workers<'a>>,
    /// How long to yield before the event is looked for again.
    unasked_ns: u64,
    limit_ns: u64,
    /// The spin is given up if its first look takes longer than this.
    look_ns: u64,
}

/// How a spin ended.
#[derive(Debug)]
pub(crate) struct Spun {
    /// Whether the event is there.
    pub(crate) is_ready: bool,
    /// Whether it was there at the first look, as it would have been without spinning.
    pub(crate) was_ready: bool,
    /// The kind of spins about which this one says something.
    pub(super) lesson: Option<Target>,
}

impl<'a> Spin<'a> {
    pub(super) fn for_thread(workers: Option<Workers<'a>>) -> Spin<'a> {
        Spin {
            target: Target::Thread,
            workers,
            unasked_ns: 0,
            limit_ns: THREAD_NS,
            look_ns: u64::MAX,
        }
    }

    pub(super) fn for_io(unasked_ns: u64, limit_ns: u64, look_ns: u64) -> Spin<'a> {
        Spin {
            target: Target::Io,
            workers: None,
            unasked_ns,
            limit_ns,
            look_ns,
        }
    }

    /// Spins until the event is there or the time is over. `is_ready` looks for the event.
    #[inline]
    pub(crate) fn run(self, is_ready: &mut impl FnMut() -> bool) -> Spun {
        self.run_on(&mut Real, |_| is_ready())
    }

    /// As [`run`](Spin::run), on this processor.
    #[inline]
    pub(crate) fn run_on<P: Processor>(
        self,
        processor: &mut P,
        is_ready: impl FnMut(&mut P) -> bool,
    ) -> Spun {
        match self.target {
            Target::Thread => self.run_for_thread(processor, is_ready),
            Target::Io => self.run_for_io(processor, is_ready),
        }
    }

    /// Looking for another thread costs next to nothing, so it is done often.
    #[inline]
    fn run_for_thread<P: Processor>(
        self,
        processor: &mut P,
        mut is_ready: impl FnMut(&mut P) -> bool,
    ) -> Spun {
        let mut look = |processor: &mut P| {
            (0..LOOKS).any(|_| {
                std::hint::spin_loop();
                is_ready(processor)
            })
        };
        let is_ready = if cfg!(all(test, loom)) {
            // Other threads run, and then there is one look.
            sync::yield_now();
            look(processor)
        } else {
            look(processor) || self.until(processor, &mut look)
        };
        Spun {
            is_ready,
            was_ready: false,
            lesson: Some(Target::Thread),
        }
    }

    /// An event that is there at the first look would have been there for a sleeper too, so nothing is learnt
    /// from it; nor from a spin in which others have kept the processor before the second look.
    fn run_for_io<P: Processor>(
        self,
        processor: &mut P,
        mut is_ready: impl FnMut(&mut P) -> bool,
    ) -> Spun {
        let begun_ns = processor.now_ns();
        let was_ready = is_ready(processor);
        let is_slow = !was_ready && processor.now_ns() - begun_ns > self.look_ns;
        let mut has_looked_again = false;
        let is_ready = was_ready
            || !is_slow
                && self.until(processor, &mut |processor| {
                    has_looked_again = true;
                    is_ready(processor)
                });
        Spun {
            is_ready,
            was_ready,
            lesson: (is_slow || has_looked_again).then_some(Target::Io),
        }
    }

    /// Spins for an event that was not there. Other threads run on this processor meanwhile, above all
    /// the one that is waited for. If they keep the processor for long, the spin is given up: a
    /// sleeper would have been scheduled at once.
    #[inline]
    fn until<P: Processor>(
        &self,
        processor: &mut P,
        is_ready: &mut impl FnMut(&mut P) -> bool,
    ) -> bool {
        let begun_ns = processor.now_ns();
        let taken = self
            .workers
            .map_or(0, |workers| workers.taken.load(Relaxed));
        loop {
            processor.pause();
            let now_ns = processor.now_ns();
            let waited_ns = now_ns - begun_ns;
            if waited_ns >= AWAY_NS {
                if let Some(workers) = self.workers {
                    let requests = workers.taken.load(Relaxed) - taken;
                    Workers::were_held_up(now_ns, waited_ns, requests);
                }
                return false;
            }
            if waited_ns >= self.unasked_ns && is_ready(processor) {
                return true;
            }
            if waited_ns >= self.limit_ns {
                return false;
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_spin_ends() {
        // Others may keep the processor for too long.
        let spin = || Spin::for_io(0, THREAD_NS, u64::MAX);
        assert!((0..1000).any(|_| spin().until(&mut Real, &mut |_| true)));
        assert!(!spin().until(&mut Real, &mut |_| false));
        assert!(Spin::for_thread(None).run(&mut || true).is_ready);
        assert!(!Spin::for_thread(None).run(&mut || false).is_ready);
    }

    #[test]
    fn bytes_that_are_to_accumulate_are_not_asked_for_too_soon() {
        let begun_ns = clock::monotonic_ns();
        let mut asked_ns = 0;
        let spin = Spin::for_io(THREAD_NS, 2 * THREAD_NS, u64::MAX);
        let found = spin.until(&mut Real, &mut |_| {
            asked_ns = clock::monotonic_ns() - begun_ns;
            true
        });
        // Others may have kept the processor for too long.
        assert!(!found || asked_ns >= THREAD_NS, "{asked_ns}");
    }

    #[test]
    fn nothing_is_learnt_from_an_event_that_was_there_before() {
        let spun = Spin::for_io(0, THREAD_NS, u64::MAX).run(&mut || true);
        assert!(spun.is_ready && spun.was_ready && spun.lesson.is_none());
        let mut looks = 0;
        let spun = Spin::for_io(0, 1_000_000_000, u64::MAX).run(&mut || {
            looks += 1;
            looks == 2
        });
        assert!(!spun.was_ready);
        assert_eq!(
            spun.lesson.is_some(),
            looks == 2,
            "unless others kept the processor"
        );
    }
}
