//! The interest of watchers, and how the poller learns of it.
//!
//! The two are brought together lazily. Widening an interest waits until right before the next poll, so that
//! stopping and starting again within a turn costs nothing. Narrowing waits until an event arrives that is not
//! wanted.
//!
//! An owner that always finds out when nothing more is to be had makes its watcher edge-triggered,
//! where the poller can do that: the kernel then need not look at the descriptor on each wait. A bare
//! loop gains 10, 8 and 3 to 7 % by it at 1, 50 and 500 connections (docs/PERFORMANCE.md).

use super::Driver;
use super::watchers::{Owner, Pending, REMINDER, Reports, Watchers, stoppers, word};
use crate::patience::{FlowChange, Way};
use crate::poller::Capability;
use crate::readiness::{Interest, Readiness};
use crate::slab::NIL;
use blacklight_sys::{Errno, RawFd};

impl Driver {
    /// Makes a stopped watcher. Its descriptor may come later and be −1 until then.
    pub(crate) fn add(&mut self, fd: RawFd, owner: Owner) -> Result<u32, Errno> {
        self.watchers.insert(fd, owner)
    }

    pub(crate) fn set_owner(&mut self, index: u32, owner: Owner) {
        self.watchers.slab[index].owner = owner;
    }

    /// Gives a watcher without a descriptor one.
    pub(crate) fn attach(&mut self, index: u32, fd: RawFd) -> Result<(), Errno> {
        self.watchers.attach(index, fd)
    }

    /// Whether another started watcher has the descriptor.
    pub(crate) fn is_taken(&self, fd: RawFd, by_other_than: u32) -> bool {
        self.watchers.is_taken(fd, by_other_than)
    }

    /// The watcher's descriptor.
    pub(crate) fn fd(&self, index: u32) -> RawFd {
        self.watchers.slab[index].fd
    }

    /// The interest of the watcher.
    #[inline]
    pub(crate) fn wanted(&self, index: u32) -> Interest {
        self.watchers.slab[index].wanted
    }

    /// Queues the watcher's owner to be called outside of the poll phase.
    #[inline]
    pub(crate) fn feed(&mut self, index: u32, why: Pending) {
        self.watchers.feed(index, why);
    }

    /// Watches for `interest`, in place of the interest before. `EEXIST` if another
    /// watcher has the descriptor.
    pub(crate) fn want_only(&mut self, index: u32, interest: Interest) -> Result<(), Errno> {
        debug_assert!(!interest.is_empty());
        self.take_descriptor(index)?;
        let watcher = &mut self.watchers.slab[index];
        watcher.wanted = interest;
        if watcher.is_untold() && watcher.queued == NIL {
            watcher.queued = self.watchers.changes.len() as u32;
            self.watchers.changes.push(index);
        }
        if watcher.has_left() {
            self.watchers.note(index);
        }
        Ok(())
    }

    /// Watches for `interest` too.
    pub(crate) fn want(&mut self, index: u32, interest: Interest) -> Result<(), Errno> {
        self.want_only(index, self.wanted(index) | interest)
    }

    /// Does not watch for `interest` any more. The poller hears of it when that matters.
    pub(crate) fn unwant(&mut self, index: u32, interest: Interest) {
        let wanted = &mut self.watchers.slab[index].wanted;
        *wanted = wanted.without(interest);
    }

    /// As [`want`](Driver::want) for a watcher that was stopped. Meanwhile the program may
    /// have put another file in the descriptor's place, by dup2(2), which a poller that reports edges
    /// does not notice: the descriptor is registered anew, once in a turn. The other pollers go by the number.
    pub(crate) fn want_anew(&mut self, index: u32, interest: Interest) -> Result<(), Errno> {
        if self.poller.can(Capability::Edges) {
            let watcher = &mut self.watchers.slab[index];
            watcher.is_doubtful = !watcher.current.is_empty();
        }
        self.want(index, interest)
    }

    /// Makes the watcher its descriptor's only one. A watcher that had the descriptor before and wants
    /// nothing loses it.
    fn take_descriptor(&mut self, index: u32) -> Result<(), Errno> {
        let fd = self.watchers.make_room(self.watchers.slab[index].fd)?;
        let holder = self.watchers.by_fd[fd];
        if holder != NIL && holder != index {
            if !self.watchers.slab[holder].wanted.is_empty() {
                return Err(Errno::EEXIST);
            }
            // Its pending callback, if it has one, still comes.
            self.withdraw(holder);
        }
        self.watchers.by_fd[fd] = index;
        Ok(())
    }

    /// Stops watching at once: the descriptor may be closed right after. Events of the current batch
    /// are not delivered.
    pub(crate) fn stop(&mut self, index: u32) {
        self.watchers.unfeed(index);
        self.withdraw(index);
    }

    /// Gives up the descriptor, here and at the poller.
    fn withdraw(&mut self, index: u32) {
        if let Some(fd) = self.watchers.withdraw(index) {
            self.poller.remove(fd);
        }
    }

    /// Forgets a watcher.
    pub(crate) fn remove(&mut self, index: u32) {
        self.stop(index);
        self.watchers.remove(index);
    }

    /// Forgets a watcher that was to be [reported once](Driver::report_once) and has been, and whose
    /// descriptor is ours and closed next: the poller need not hear of it.
    pub(crate) fn remove_reported(&mut self, index: u32) {
        self.watchers.unfeed(index);
        if let Some(fd) = self.watchers.withdraw(index) {
            self.poller.forget(fd);
        }
        self.watchers.remove(index);
    }

    /// Tells the poller which wanted interests have changed. If the poller refuses a descriptor, its owner hears
    /// of it in a pending callback.
    #[inline]
    pub(super) fn flush(&mut self) {
        if !self.watchers.changes.is_empty() {
            self.flush_changes();
        }
    }

    #[inline(never)]
    fn flush_changes(&mut self) {
        for at in 0..self.watchers.changes.len() {
            let index = self.watchers.changes[at];
            let epoch = self.watchers.epochs.wrapping_add(1);
            let watcher = &mut self.watchers.slab[index];
            watcher.queued = NIL;
            if !watcher.is_untold() {
                continue;
            }
            let asked = watcher.asked();
            let result = if watcher.current.is_empty() {
                self.watchers.epochs = epoch;
                watcher.epoch = epoch;
                self.poller.add(watcher.registration(index, asked))
            } else {
                self.poller.modify(watcher.registration(index, asked))
            };
            watcher.is_doubtful = false;
            match result {
                Ok(()) => watcher.current = asked,
                Err(error) => self.watchers.feed(index, Pending::Refused(error)),
            }
        }
        self.watchers.changes.clear();
    }

    /// The watcher that an event is for and the readiness to be delivered, unless the event is out of date or
    /// not wanted.
    #[inline]
    pub(super) fn matching(&mut self, ready: Readiness, data: u64) -> Option<(u32, Readiness)> {
        let index = self.watchers.registered(data)?;
        let watcher = &self.watchers.slab[index];
        let reported = match watcher.keeps_left() {
            true => self.watchers.add_left(index, ready),
            false => ready,
        };
        let watcher = &mut self.watchers.slab[index];
        let events = reported.for_interest(watcher.wanted);
        if events.intersects(Interest::ALL) {
            return Some((index, events));
        }
        if !events.is_empty() && !watcher.wanted.is_empty() {
            // The kernel may report a bare error or hang-up when all bytes have been read.
            // The owner finds out by trying to read or write. Only the kernel knows whether
            // there is urgent data.
            let wanted = watcher.wanted.without(Interest::PRIORITIZED);
            return Some((index, events | wanted.into()));
        }
        if ready == REMINDER {
            return None;
        }
        if watcher.wanted.is_empty() {
            watcher.current = Interest::NONE;
            watcher.left = Readiness::NONE;
            self.poller.remove(watcher.fd);
            return None;
        }
        let kept = match watcher.follows_edges() {
            true => watcher.wanted | stoppers(),
            false => watcher.wanted,
        };
        if kept != watcher.current {
            let kept_only = watcher.registration(index, kept);
            if self.poller.modify(kept_only).is_ok() {
                watcher.current = kept;
                // The kernel reports all of that anew that still holds.
                watcher.left = Readiness::NONE;
            }
        }
        None
    }

    /// Makes the watcher edge-triggered, if the poller can do that. From now on its owner says each
    /// time when it has [used up](Driver::used_up) what was reported.
    pub(crate) fn follow_edges(&mut self, index: u32) {
        if self.poller.can(Capability::Edges) && !self.is_embedded {
            self.set_reports(index, Reports::Edge);
        }
    }

    /// Makes all watchers level-triggered, also those that were to be reported once.
    #[cold]
    pub(super) fn follow_levels_only(&mut self) {
        for index in 0..self.watchers.slab.capacity() as u32 {
            self.follow_levels(index);
        }
    }

    /// Makes a stopped watcher one-shot, unless an embedding program may take its event from our
    /// descriptor.
    pub(crate) fn report_once(&mut self, index: u32) {
        if !self.is_embedded {
            self.watchers.slab[index].reports = Reports::Once;
        }
    }

    /// Makes the watcher level-triggered.
    pub(crate) fn follow_levels(&mut self, index: u32) {
        if self.watchers.slab[index].reports != Reports::Level {
            self.set_reports(index, Reports::Level);
        }
    }

    #[cold]
    pub(super) fn set_reports(&mut self, index: u32, reports: Reports) {
        let watcher = &mut self.watchers.slab[index];
        watcher.reports = reports;
        // The kernel reports all conditions anew that still hold.
        watcher.left = Readiness::NONE;
        if watcher.wanted.is_empty() {
            self.withdraw(index);
        } else if !watcher.current.is_empty() {
            let asked = watcher.asked();
            match self.poller.modify(watcher.registration(index, asked)) {
                Ok(()) => watcher.current = asked,
                Err(error) => self.watchers.feed(index, Pending::Refused(error)),
            }
        }
    }

    /// The watcher's owner has transferred bytes.
    #[inline]
    pub(super) fn transferred(&mut self, index: u32, way: Way) {
        let watcher = &mut self.watchers.slab[index];
        match (watcher.flow.saw(way), watcher.reports) {
            (Some(FlowChange::Begins), Reports::Edge) => self.set_reports(index, Reports::Flow),
            (Some(FlowChange::Ends), Reports::Flow) => self.set_reports(index, Reports::Edge),
            _ => {}
        }
    }

    /// Nothing of `interest` is left, until the kernel reports it again.
    #[inline]
    pub(crate) fn used_up(&mut self, index: u32, interest: Interest) {
        let left = &mut self.watchers.slab[index].left;
        *left = left.without(interest);
    }

    /// Nothing of what the kernel has reported is left, not even an error.
    pub(crate) fn all_used_up(&mut self, index: u32) {
        self.watchers.slab[index].left = Readiness::NONE;
    }

    /// A read was shorter than its room. There is nothing more to read, unless an end, an error or urgent
    /// data has cut it short.
    #[inline]
    pub(crate) fn read_short(&mut self, index: u32) {
        let watcher = &mut self.watchers.slab[index];
        if !watcher
            .left
            .intersects(Readiness::TROUBLE | stoppers().into())
        {
            watcher.left = watcher.left.without(Interest::READABLE);
        }
    }

    /// Before the poller is asked again: keeps those events of its last batch that were not delivered
    /// and that the kernel will not repeat. There are some if a run was given up in the middle of a batch, or
    /// if a callback has begun another run.
    #[inline]
    pub(super) fn keep_rest(&mut self) {
        while let Some((ready, data)) = self.poller.next() {
            if let Some(index) = self.watchers.reported_once(data) {
                self.watchers.add_left(index, ready);
            }
        }
    }

    /// Whether the batch still has events that the kernel will not repeat.
    pub(super) fn has_unrepeated(&self) -> bool {
        let mut rest = self.poller.rest().iter();
        rest.any(|&(_, data)| self.watchers.reported_once(data).is_some())
    }

    /// Adds to the batch what watchers [have left](Watchers::has_left). If the batch has no room for all, the
    /// loop does not sleep before the next turn.
    #[inline]
    pub(super) fn repeat_left(&mut self) {
        let Watchers { noted, slab, .. } = &mut self.watchers;
        for _ in 0..self.poller.room() {
            let Some(index) = noted.pop_front(slab) else {
                break;
            };
            let watcher = &mut slab[index];
            watcher.is_noted = false;
            self.poller.push((REMINDER, word(index, watcher.epoch)));
        }
    }

    /// Forgets all registrations, so that every started watcher is registered with a new poller.
    pub(super) fn reset_watchers(&mut self) -> Result<(), Errno> {
        let watchers = &mut self.watchers;
        watchers.changes.clear();
        watchers.changes.try_reserve(watchers.slab.capacity())?;
        for index in 0..watchers.slab.capacity() as u32 {
            let watcher = &mut watchers.slab[index];
            watcher.current = Interest::NONE;
            watcher.left = Readiness::NONE;
            if !self.poller.can(Capability::Edges) && watcher.reports != Reports::Once {
                watcher.reports = Reports::Level;
            }
            watcher.queued = NIL;
            if !watcher.wanted.is_empty() {
                watcher.queued = watchers.changes.len() as u32;
                watchers.changes.push(index);
            }
        }
        Ok(())
    }
}
