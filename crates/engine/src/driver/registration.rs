//! What watchers want, and what the poller is told of it.
//!
//! The two are brought together lazily. Widening a mask waits until right before the next poll, so that
//! stopping and starting again within a turn costs nothing. Narrowing waits until an event arrives that is not
//! wanted.
//!
//! An owner that always finds out when nothing more is to be had makes its watcher edge-triggered,
//! where the poller can do that: the kernel then need not look at the descriptor on each wait. A bare
//! loop gains 10, 8 and 3 to 7 % by it at 1, 50 and 500 connections (docs/PERFORMANCE.md).

use super::Driver;
use super::watchers::{ASKABLE, Owner, Pending, REMINDER, STOPPERS, Trigger, UNASKED, Watchers};
use crate::slab::NIL;
use blacklight_sys::poll::{POLLIN, POLLPRI};
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

    /// What the watcher watches for.
    #[inline]
    pub(crate) fn wanted(&self, index: u32) -> u32 {
        self.watchers.slab[index].wanted
    }

    /// Queues the watcher's owner to be called outside of the poll phase.
    #[inline]
    pub(crate) fn feed(&mut self, index: u32, why: Pending) {
        self.watchers.feed(index, why);
    }

    /// Watches for `mask`, in place of what was watched for before. `EEXIST` if another
    /// watcher has the descriptor.
    pub(crate) fn want_only(&mut self, index: u32, mask: u32) -> Result<(), Errno> {
        debug_assert!(mask & ASKABLE != 0 && mask & !ASKABLE == 0);
        self.take_descriptor(index)?;
        let watcher = &mut self.watchers.slab[index];
        watcher.wanted = mask;
        if watcher.is_untold() && watcher.queued == NIL {
            watcher.queued = self.watchers.changes.len() as u32;
            self.watchers.changes.push(index);
        }
        if watcher.has_left() {
            self.watchers.note(index);
        }
        Ok(())
    }

    /// Watches for `mask` too.
    pub(crate) fn want(&mut self, index: u32, mask: u32) -> Result<(), Errno> {
        self.want_only(index, self.wanted(index) | mask)
    }

    /// Does not watch for `mask` any more. The poller hears of it when that matters.
    pub(crate) fn unwant(&mut self, index: u32, mask: u32) {
        self.watchers.slab[index].wanted &= !mask;
    }

    /// As [`want`](Driver::want) for a watcher that was stopped. Meanwhile the program may
    /// have put another file in the descriptor's place, by dup2(2), of which epoll knows nothing:
    /// the descriptor is registered anew, once in a turn. The other mechanisms go by the number.
    pub(crate) fn want_anew(&mut self, index: u32, mask: u32) -> Result<(), Errno> {
        if self.poller.supports_edges() {
            let watcher = &mut self.watchers.slab[index];
            watcher.is_doubtful = watcher.current != 0;
        }
        self.want(index, mask)
    }

    /// Makes the watcher its descriptor's only one. A watcher that had the descriptor before and wants
    /// nothing loses it.
    fn take_descriptor(&mut self, index: u32) -> Result<(), Errno> {
        let fd = self.watchers.make_room(self.watchers.slab[index].fd)?;
        let holder = self.watchers.by_fd[fd];
        if holder != NIL && holder != index {
            if self.watchers.slab[holder].wanted != 0 {
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

    /// Tells the poller which wanted masks have changed. If the poller refuses a descriptor, its owner hears
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
            let events = asked | watcher.flag();
            let result = if watcher.current == 0 {
                self.watchers.epochs = epoch;
                watcher.epoch = epoch;
                self.poller.add(watcher.fd, events, data(index, epoch))
            } else {
                let data = data(index, watcher.epoch);
                self.poller.modify(watcher.fd, events, data)
            };
            watcher.is_doubtful = false;
            match result {
                Ok(()) => watcher.current = asked,
                Err(error) => self.watchers.feed(index, Pending::Refused(error)),
            }
        }
        self.watchers.changes.clear();
    }

    /// The watcher that an event is for and the mask to be delivered, unless the event is out of date or
    /// not wanted.
    #[inline]
    pub(super) fn matching(&mut self, mask: u32, data: u64) -> Option<(u32, u32)> {
        let index = self.watchers.registered(data)?;
        let watcher = &self.watchers.slab[index];
        let reported = match watcher.keeps_left() {
            true => self.watchers.add_left(index, mask),
            false => mask,
        };
        let watcher = &mut self.watchers.slab[index];
        let events = reported & (watcher.wanted | UNASKED);
        if events & ASKABLE != 0 {
            return Some((index, events));
        }
        if events != 0 && watcher.wanted != 0 {
            // The kernel may report a bare error or hang-up when all bytes have been read.
            // The owner finds out by doing what it wanted to do. Only the kernel knows whether
            // there is urgent data.
            return Some((index, events | (watcher.wanted & !POLLPRI)));
        }
        if mask == REMINDER {
            return None;
        }
        if watcher.wanted == 0 {
            watcher.current = 0;
            watcher.left = 0;
            self.poller.remove(watcher.fd);
            return None;
        }
        let kept = match watcher.follows_edges() {
            true => watcher.wanted | STOPPERS,
            false => watcher.wanted,
        };
        let asked = kept | watcher.flag();
        if kept != watcher.current && self.poller.modify(watcher.fd, asked, data).is_ok() {
            watcher.current = kept;
            // The kernel reports again what there is of that.
            watcher.left = 0;
        }
        None
    }

    /// Makes the watcher edge-triggered, if the poller can do that. From now on its owner says each
    /// time when it has [used up](Driver::used_up) what was reported.
    pub(crate) fn follow_edges(&mut self, index: u32) {
        if self.poller.supports_edges() && !self.is_embedded {
            self.set_trigger(index, Trigger::Edge);
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
            self.watchers.slab[index].trigger = Trigger::Once;
        }
    }

    /// Makes the watcher level-triggered.
    pub(crate) fn follow_levels(&mut self, index: u32) {
        if self.watchers.slab[index].trigger != Trigger::Level {
            self.set_trigger(index, Trigger::Level);
        }
    }

    #[cold]
    pub(super) fn set_trigger(&mut self, index: u32, trigger: Trigger) {
        let watcher = &mut self.watchers.slab[index];
        watcher.trigger = trigger;
        // The kernel reports again what there is.
        watcher.left = 0;
        if watcher.wanted == 0 {
            self.withdraw(index);
        } else if watcher.current != 0 {
            let asked = watcher.asked();
            let data = data(index, watcher.epoch);
            match (self.poller).modify(watcher.fd, asked | watcher.flag(), data) {
                Ok(()) => watcher.current = asked,
                Err(error) => self.watchers.feed(index, Pending::Refused(error)),
            }
        }
    }

    /// Nothing of `bits` is left, until the kernel reports it again.
    #[inline]
    pub(crate) fn used_up(&mut self, index: u32, bits: u32) {
        self.watchers.slab[index].left &= !bits;
    }

    /// A read was shorter than its room. There is nothing more to read, unless an end, an error or urgent
    /// data has cut it short.
    #[inline]
    pub(crate) fn read_short(&mut self, index: u32) {
        let watcher = &mut self.watchers.slab[index];
        if watcher.left & (STOPPERS | UNASKED) == 0 {
            watcher.left &= !POLLIN;
        }
    }

    /// Before the poller is asked again: keeps those events of its last batch that were not delivered
    /// and that the kernel will not repeat. There are some if a run was given up in the middle of a batch, or
    /// if a callback has begun another run.
    #[inline]
    pub(super) fn keep_rest(&mut self) {
        while let Some((mask, data)) = self.poller.next() {
            if let Some(index) = self.watchers.reported_once(data) {
                self.watchers.add_left(index, mask);
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
        let count = noted.len().min(self.poller.room());
        for index in noted.drain(..count) {
            let watcher = &mut slab[index];
            watcher.is_noted = false;
            self.poller.push((REMINDER, data(index, watcher.epoch)));
        }
    }

    /// Forgets all registrations, so that every started watcher is registered with a new poller.
    pub(super) fn reset_watchers(&mut self) -> Result<(), Errno> {
        let watchers = &mut self.watchers;
        watchers.changes.clear();
        watchers.changes.try_reserve(watchers.slab.capacity())?;
        for index in 0..watchers.slab.capacity() as u32 {
            let watcher = &mut watchers.slab[index];
            watcher.current = 0;
            watcher.left = 0;
            if !self.poller.supports_edges() && watcher.trigger != Trigger::Once {
                watcher.trigger = Trigger::Level;
            }
            watcher.queued = NIL;
            if watcher.wanted != 0 {
                watcher.queued = watchers.changes.len() as u32;
                watchers.changes.push(index);
            }
        }
        Ok(())
    }
}

fn data(index: u32, epoch: u32) -> u64 {
    (epoch as u64) << 32 | index as u64
}
