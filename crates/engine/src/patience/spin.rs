//! Spinning: a thread looks again and again whether an event is there, and yields its processor in between.

use super::contention::Workers;
use crate::sync;
use blacklight_sys::clock;
use std::sync::atomic::Ordering::Relaxed;

/// How long to spin for other threads of this process.
///
/// Measured with `queue_work` (docs/PERFORMANCE.md): a job takes 2.9 futex calls and 0.15 wake-ups of the loop, the
/// original's 5.9 and one.
const THREAD_NS: u64 = 20_000;

/// How often to look for another thread between two yields: some hundred nanoseconds, less than a
/// system call takes.
const LOOKS: u32 = 16;

/// The longest that others may keep the processor before the spin is given up: less than any scheduler gives to
/// a thread that computes.
const AWAY_NS: u64 = 200_000;

/// What is spun for, and the clock by which it is.
pub(crate) trait Awaited {
    /// Whether it is there.
    fn is_ready(&mut self) -> bool;

    fn now_ns(&self) -> u64 {
        clock::monotonic_ns()
    }

    /// Yields the processor to any other thread that could run on it.
    fn pause(&mut self) {
        std::thread::yield_now();
    }
}

impl<F: FnMut() -> bool> Awaited for F {
    fn is_ready(&mut self) -> bool {
        self()
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
    /// The most that a look may take for the spin to go on.
    look_ns: u64,
}

/// How a spin ended.
#[derive(Debug)]
pub(crate) struct Spun {
    pub(super) target: Target,
    /// Whether the event is there.
    pub(crate) is_ready: bool,
    /// Whether it was there at the first look, as it would have been without spinning.
    pub(crate) was_ready: bool,
    /// Whether something can be learnt from it.
    pub(super) is_telling: bool,
}

/// An event for which looking costs next to nothing.
struct Cheap<'a, A>(&'a mut A);

impl<A: Awaited> Awaited for Cheap<'_, A> {
    #[inline]
    fn is_ready(&mut self) -> bool {
        (0..LOOKS).any(|_| {
            std::hint::spin_loop();
            self.0.is_ready()
        })
    }

    fn now_ns(&self) -> u64 {
        self.0.now_ns()
    }

    fn pause(&mut self) {
        self.0.pause();
    }
}

/// Counts the looks.
struct Counted<'a, A> {
    awaited: &'a mut A,
    looks: u32,
}

impl<A: Awaited> Awaited for Counted<'_, A> {
    #[inline]
    fn is_ready(&mut self) -> bool {
        self.looks += 1;
        self.awaited.is_ready()
    }

    #[inline]
    fn now_ns(&self) -> u64 {
        self.awaited.now_ns()
    }

    #[inline]
    fn pause(&mut self) {
        self.awaited.pause();
    }
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

    /// Spins until the event is there or the time is over.
    #[inline]
    pub(crate) fn run(self, awaited: &mut impl Awaited) -> Spun {
        match self.target {
            Target::Thread => self.run_for_thread(awaited),
            Target::Io => self.run_for_io(awaited),
        }
    }

    #[inline]
    fn run_for_thread(self, awaited: &mut impl Awaited) -> Spun {
        let is_ready = if cfg!(all(test, loom)) {
            // In a model no time passes: other threads run, and then there is one look.
            sync::yield_now();
            awaited.is_ready()
        } else {
            let mut awaited = Cheap(awaited);
            awaited.is_ready() || self.until(&mut awaited)
        };
        Spun {
            target: Target::Thread,
            is_ready,
            was_ready: false,
            is_telling: true,
        }
    }

    /// An event that is there at the first look would have been there for a sleeper too, so nothing is learnt
    /// from it; nor from a spin in which others have kept the processor before the second look.
    fn run_for_io(self, awaited: &mut impl Awaited) -> Spun {
        let begun_ns = awaited.now_ns();
        let mut awaited = Counted { awaited, looks: 0 };
        let was_ready = awaited.is_ready();
        let is_dear = !was_ready && awaited.now_ns() - begun_ns > self.look_ns;
        let is_ready = was_ready || (!is_dear && self.until(&mut awaited));
        Spun {
            target: Target::Io,
            is_ready,
            was_ready,
            is_telling: is_dear || awaited.looks > 1,
        }
    }

    /// Spins for an event that was not there. Other threads run on this processor meanwhile, above all
    /// the one that is waited for. If they keep the processor for long, the spin is given up: a
    /// sleeper would have been scheduled at once.
    #[inline]
    fn until(&self, awaited: &mut impl Awaited) -> bool {
        let begun_ns = awaited.now_ns();
        let taken = self
            .workers
            .map_or(0, |workers| workers.taken.load(Relaxed));
        loop {
            awaited.pause();
            let now_ns = awaited.now_ns();
            let waited_ns = now_ns - begun_ns;
            if waited_ns >= AWAY_NS {
                if let Some(workers) = self.workers {
                    let requests = workers.taken.load(Relaxed) - taken;
                    Workers::were_held_up(now_ns, waited_ns, requests);
                }
                return false;
            }
            if waited_ns >= self.unasked_ns && awaited.is_ready() {
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
        assert!((0..1000).any(|_| spin().until(&mut || true)));
        assert!(!spin().until(&mut || false));
        assert!(Spin::for_thread(None).run(&mut || true).is_ready);
        assert!(!Spin::for_thread(None).run(&mut || false).is_ready);
    }

    #[test]
    fn bytes_that_are_to_accumulate_are_not_asked_for_too_soon() {
        let begun_ns = clock::monotonic_ns();
        let mut asked_ns = 0;
        let found = Spin::for_io(THREAD_NS, 2 * THREAD_NS, u64::MAX).until(&mut || {
            asked_ns = clock::monotonic_ns() - begun_ns;
            true
        });
        // Others may have kept the processor for too long.
        assert!(!found || asked_ns >= THREAD_NS, "{asked_ns}");
    }

    #[test]
    fn nothing_is_learnt_from_an_event_that_was_there_before() {
        let spun = Spin::for_io(0, THREAD_NS, u64::MAX).run(&mut || true);
        assert!(spun.is_ready && spun.was_ready && !spun.is_telling);
        let mut looks = 0;
        let spun = Spin::for_io(0, 1_000_000_000, u64::MAX).run(&mut || {
            looks += 1;
            looks == 2
        });
        assert!(!spun.was_ready);
        assert_eq!(
            spun.is_telling,
            looks == 2,
            "unless others kept the processor"
        );
    }
}
