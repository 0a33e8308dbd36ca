//! The driver: everything through which the loop waits for the kernel and for other threads.
//!
//! It owns the poller, the watchers, the [sources](Sources), the clock, the [patience](Patience)
//! and the metrics of waiting. The engine above it owns handles, requests and phases: of a handle
//! the driver keeps only the index by which it names a watcher's owner to the engine, and of phases
//! it knows nothing.
//!
//! The door:
//!
//! - [`want`](Driver::want) and [`unwant`](Driver::unwant): which readiness a watcher's owner waits
//!   for, and [`used_up`](Driver::used_up): that nothing is left of the readiness that was reported
//!   to it;
//! - [`wait`](Driver::wait): registers what has changed, spins or sleeps, and fetches a batch of events;
//! - [`next_ready`](Driver::next_ready): the next event of that batch, and the owner it is for;
//! - [`collect_from`](Driver::collect_from): collects the events that have come to the sources,
//!   source by source.
//!
//! Events that were fetched stay here until they are handed out, whichever run asks for them, so
//! that a run may be given up or nested at any event. A driver that [has news](Driver::has_news)
//! does not sleep.
//!
//! | | |
//! | --- | --- |
//! | `watchers.rs` | the table of watchers |
//! | `registration.rs` | the interest of watchers, and how the poller learns of it |
//! | `calls.rs` | calls on sockets, which the simulated kernel may shorten or refuse |
//! | `sources.rs` | events from other threads, signals, children and the ring |
//! | `wait.rs` | spinning, sleeping, and recovering from a broken poller |

mod calls;
mod registration;
mod sources;
mod wait;
mod watchers;

pub(crate) use sources::{Source, Sources};
pub(crate) use wait::Waited;
pub(crate) use watchers::{Owner, Pending};

use crate::metrics::{IdleTime, Metrics, Waits};
use crate::patience::{Patience, Processor, Spinning, Way};
use crate::poller::{Capability, Mechanism, Poller, Sim};
use crate::probe::Observed;
use crate::readiness::Readiness;
use crate::recorder::{self, Late, Offered};
use blacklight_sys::fallible::Arc;
use blacklight_sys::signal::SignalSet;
use blacklight_sys::{Errno, RawFd};
use std::sync::atomic::AtomicU32;
use watchers::Watchers;

/// Waits for the kernel and for other threads.
#[derive(Debug)]
pub(crate) struct Driver {
    /// The probes that observe the loop. They are dropped before the sources: as long as the loop's
    /// record exists, its readers may use the waker that it names.
    pub(crate) observed: Option<Box<Observed>>,
    /// The means to record the loop when a reader asks for it.
    pub(crate) offered: Option<Box<Offered>>,
    /// What is to be offered to the record once another thread has made it.
    pub(crate) late: Option<Box<Late>>,
    poller: Poller,
    watchers: Watchers,
    pub(crate) sources: Sources,
    patience: Patience,
    /// The cached time.
    now_ns: u64,
    /// Blocked while the loop sleeps.
    blocked_signals: Option<SignalSet>,
    waits: Waits,
    /// Whether an embedding program may wait for our descriptor.
    is_embedded: bool,
    /// Not zero if the loop is recorded, or is to be.
    pub(crate) wanted: &'static AtomicU32,
}

impl Driver {
    /// On the given mechanism, or on the best there is.
    pub(crate) fn new(mechanism: Option<Mechanism>) -> Result<Driver, Errno> {
        let sources = Sources::new()?;
        let poller = Poller::new(mechanism, &sources.receiver.mailbox)?;
        Ok(Driver {
            now_ns: poller.now_ns(),
            poller,
            watchers: Watchers::new(),
            sources,
            patience: Patience::new(Spinning::default()),
            blocked_signals: None,
            waits: Waits::new()?,
            is_embedded: false,
            observed: None,
            offered: None,
            late: None,
            wanted: &recorder::UNWANTED,
        })
    }

    pub(crate) fn mechanism(&self) -> Mechanism {
        self.poller.mechanism()
    }

    pub(crate) fn sim(&mut self) -> Option<&mut Sim> {
        self.poller.sim()
    }

    /// The cached time.
    #[inline]
    pub(crate) fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// The time as it is now.
    #[inline]
    pub(crate) fn clock_ns(&self) -> u64 {
        self.poller.now_ns()
    }

    /// Caches the time anew.
    #[inline]
    pub(crate) fn update_time(&mut self) {
        self.now_ns = self.poller.now_ns();
    }

    pub(crate) fn backend_fd(&self) -> Option<RawFd> {
        self.poller.backend_fd()
    }

    /// From now on an embedding program may wait for our descriptor, and take events from it: all
    /// registrations are level-triggered, so that none is lost.
    pub(crate) fn embed(&mut self) {
        if !std::mem::replace(&mut self.is_embedded, true) {
            self.follow_levels_only();
        }
    }

    pub(crate) fn is_embedded(&self) -> bool {
        self.is_embedded
    }

    pub(crate) fn block_sigprof(&mut self) {
        self.blocked_signals = Some(SignalSet::sigprof());
    }

    /// Says whether the loop may spin. What was learnt about spinning so far is forgotten.
    pub(crate) fn set_spinning(&mut self, spinning: Spinning) {
        self.patience = Patience::new(spinning);
    }

    /// Whether the loop, and the pool's workers after its requests, may ever spin.
    pub(crate) fn may_spin(&self) -> bool {
        self.patience.may_spin()
    }

    /// Bytes of a stream were read.
    #[inline]
    pub(crate) fn saw_read(&mut self, watcher: u32, stream: u32) {
        self.patience.saw_read(stream);
        self.transferred(watcher, Way::In);
    }

    /// Bytes of a stream were written.
    #[inline]
    pub(crate) fn saw_write(&mut self, watcher: u32) {
        self.patience.saw_write();
        self.transferred(watcher, Way::Out);
    }

    pub(crate) fn measure_idle_time(&mut self) {
        self.waits.is_timed = true;
    }

    pub(crate) fn idle_time(&self) -> &Arc<IdleTime> {
        &self.waits.idle_time
    }

    pub(crate) fn metrics(&self) -> Metrics {
        self.waits.metrics
    }

    /// How many turns have begun to poll so far.
    pub(crate) fn loop_count(&self) -> u64 {
        self.waits.metrics.loop_count
    }

    /// A turn begins to poll, which it may do several times. For the patience a turn ends here.
    pub(crate) fn begin_poll(&mut self) {
        self.waits.metrics.loop_count += 1;
        self.patience.end_turn();
    }

    /// Whether the descriptor can be watched at all.
    pub(crate) fn check(&self, fd: RawFd) -> Result<(), Errno> {
        self.poller.check(fd)
    }

    /// Makes a descriptor of the program's non-blocking.
    pub(crate) fn set_nonblocking(&self, fd: RawFd) -> Result<(), Errno> {
        self.poller.set_nonblocking(fd)
    }

    /// Whether an event says of a socket that it has failed.
    pub(crate) fn tells_errors(&self) -> bool {
        self.poller.can(Capability::Errors)
    }

    /// Whether descriptors of the real kernel can be watched.
    pub(crate) fn reaches_kernel(&self) -> bool {
        self.poller.reaches_kernel()
    }

    /// A run begins: senders need not wake the loop. A run that does not sleep has the poller look at
    /// the waker in any case: an embedding program may be waiting for our descriptor, and a sender may be about
    /// to signal the waker for what the loop has seen already.
    pub(crate) fn begin_run(&mut self, sleeps: bool) {
        self.sources.receiver.awake();
        if !sleeps {
            self.sources.receiver.signalled = true;
        }
    }

    /// A run ends: from now on senders and signal handlers wake a program that waits for our
    /// descriptor.
    pub(crate) fn end_run(&mut self) {
        self.sources.rest();
    }

    /// As [`end_run`](Driver::end_run), if it has not been called.
    pub(crate) fn ensure_run_ended(&mut self) {
        if !self.sources.receiver.may_be_asleep() {
            self.end_run();
        }
    }

    /// Makes our descriptor readable.
    pub(crate) fn wake(&self) {
        self.sources.receiver.mailbox.wake();
    }

    /// Whether the driver has something to hand out that no wait would report again: readiness that
    /// watchers have left, pending callbacks, and events of the sources. Due timers, closing
    /// handles and the stream in hand are the engine's to know
    /// ([`Engine::has_undelivered`](crate::Engine::has_undelivered)).
    #[inline]
    pub(crate) fn has_news(&mut self) -> bool {
        self.watchers.has_left() || self.watchers.has_pending() || self.sources.forbid_sleep()
    }

    /// Whether an embedding program must run the loop before it waits for our descriptor: there is
    /// news, the batch has events that the kernel will not repeat, or the kernel does not know yet what is wanted.
    pub(crate) fn must_run(&mut self) -> bool {
        self.watchers.has_changes() || self.has_news() || self.has_unrepeated()
    }

    /// Whether pending callbacks are queued.
    #[inline]
    pub(crate) fn has_pending(&self) -> bool {
        self.watchers.has_pending()
    }

    /// Begins a round of pending callbacks; whether there are any. Those that are queued meanwhile
    /// wait for the next round.
    pub(crate) fn begin_pending(&mut self) -> bool {
        self.watchers.begin_pending()
    }

    /// The next watcher of the round whose owner is to be called outside of the poll phase, and
    /// why.
    pub(crate) fn next_pending(&mut self) -> Option<(u32, Owner, Pending)> {
        let (index, why) = self.watchers.next_pending()?;
        Some((index, self.watchers.slab[index].owner, why))
    }

    /// Whether the last wait has fetched events of descriptors.
    #[inline]
    pub(crate) fn has_batch(&self) -> bool {
        self.poller.len() != 0
    }

    /// Whether the kernel may have more events than the batch had room for.
    pub(crate) fn is_batch_full(&self) -> bool {
        self.poller.is_full()
    }

    /// Forgets a batch of which nothing is left.
    pub(crate) fn end_batch(&mut self) {
        self.poller.clear();
    }

    /// The next event of the batch that is wanted: its watcher, the watcher's owner and what is ready.
    #[inline]
    pub(crate) fn next_ready(&mut self) -> Option<(u32, Owner, Readiness)> {
        loop {
            let (ready, data) = self.poller.next()?;
            if let Some((index, ready)) = self.matching(ready, data) {
                return Some((index, self.watchers.slab[index].owner, ready));
            }
        }
    }

    /// Takes what has come to a source so far, source by source from `first` on, up to the first
    /// that has something to hand out.
    pub(crate) fn collect_from(&mut self, first: Source) -> Option<Source> {
        let Driver { sources, waits, .. } = self;
        sources.collect_from(first, waits)
    }

    /// A new poller of the same kind in place of this one, with all that is wanted registered anew.
    pub(crate) fn renew_poller(&mut self) -> Result<(), Errno> {
        self.poller.renew(&self.sources.receiver.mailbox)?;
        self.reset_watchers()
    }
}
