//! I/O watchers: the engine's interest in file descriptors.
//!
//! A watcher has a *wanted* mask, which its owner sets, and a *current* one, which the
//! poller knows. They are brought together lazily: widening waits until right before the
//! next poll, so that stopping and starting again within a turn costs nothing; narrowing
//! waits until an event arrives that nobody wants.
//!
//! Every registration has an *epoch*, which goes to the poller with the watcher's index and
//! comes back with each event. An event whose epoch does not hold any more is dropped: the
//! descriptor may have been closed, and its number opened again, by an earlier event of the
//! same batch.
//!
//! At most one started watcher exists per descriptor.
//!
//! An owner that always finds out when there is nothing more has its watcher *follow edges*,
//! where the poller can do that: the kernel then tells of changes only, and need not look at the
//! descriptor again on each wait. What has been told and not used up is kept here, as `left`; as
//! long as it is wanted, it is told again in every turn. So to its owner such a watcher looks
//! like any other.
//!
//! Where bytes go one way only, levels serve better: the kernel finds more of them at each look,
//! and a loop of many such flows sleeps less often. A watcher that follows edges therefore goes
//! back to levels while it *flows*.

use crate::engine::Engine;
use crate::slab::{NIL, Slab};
use blacklight_sys::poll::{POLLERR, POLLHUP, POLLIN, POLLNVAL, POLLOUT, POLLPRI, POLLRDHUP};
use blacklight_sys::{Errno, RawFd, epoll};
use std::collections::VecDeque;

/// What watchers can ask for. Errors and hang-ups come unasked.
pub(crate) const ASKABLE: u32 = POLLIN | POLLOUT | POLLPRI | POLLRDHUP;
const UNASKED: u32 = POLLERR | POLLHUP | POLLNVAL;
/// Asked for by every watcher that follows edges: what makes a read stop before the end of what
/// is there.
const STOPPERS: u32 = POLLRDHUP | POLLPRI;
/// So many uses in a row that go the same way make a flow.
const FLOW: u8 = 64;
/// An event that says nothing new: what it is about is in what the watcher has left.
const REMINDER: u32 = 0;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Owner {
    /// A poll handle, by its index.
    Poll(u32),
    /// A stream, by its index in the table of streams.
    Stream(u32),
    /// The file system event handles' common instance.
    Inotify,
    /// A child process, by its index in the table of processes.
    Process(u32),
    /// A UDP handle, by its index in the table of those.
    Udp(u32),
}

/// Why a watcher's owner is to be called outside of the poll phase.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pending {
    /// The poller has refused the descriptor.
    Refused(Errno),
    /// The owner has something to hand out, or wants to try something.
    Fed,
}

/// Which way bytes go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    In,
    Out,
}

/// How the kernel is to tell a watcher what there is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Trigger {
    /// As long as it is there.
    Level,
    /// When it changes.
    Edge,
    /// When it changes, but for now as long as it is there.
    Flow,
    /// Once, since there is one thing to tell. Mechanisms that cannot do that tell it again.
    Once,
}

#[derive(Debug)]
pub(crate) struct Watcher {
    pub(crate) fd: RawFd,
    pub(crate) owner: Owner,
    wanted: u32,
    current: u32,
    /// What has been told and not used up, if the kernel does not tell it again.
    left: u32,
    trigger: Trigger,
    /// Which way the last use went, and how many more before it.
    way: Way,
    in_a_row: u8,
    /// In the list of those to be looked at for what is left.
    is_noted: bool,
    /// The descriptor may stand for another file than the one that the poller knows.
    is_doubtful: bool,
    epoch: u32,
    /// Its place in the queue of changes, or `NIL`.
    queued: u32,
    /// In the queue of pending callbacks, unless it has been taken back.
    pending: Option<Pending>,
}

#[derive(Debug)]
pub(crate) struct Watchers {
    slab: Slab<Watcher>,
    /// The started watcher of each descriptor.
    by_fd: Vec<u32>,
    /// Watchers whose wanted mask has to be told to the poller.
    changes: Vec<u32>,
    /// Watchers whose owners are to be called outside of the poll phase; some may have
    /// been taken back since, and stand here for nothing.
    pending: VecDeque<u32>,
    /// Those that have not.
    fed: usize,
    /// Watchers that may have something left.
    noted: Vec<u32>,
    epochs: u32,
}

impl Watcher {
    /// What the kernel is asked for on the watcher's behalf.
    fn asked(&self) -> u32 {
        match self.trigger {
            Trigger::Edge if self.is_doubtful => self.wanted | POLLIN | STOPPERS,
            Trigger::Edge => self.wanted | self.current | POLLIN | STOPPERS,
            Trigger::Level | Trigger::Flow | Trigger::Once => self.wanted,
        }
    }

    /// How the kernel is asked for that.
    fn flag(&self) -> u32 {
        match self.trigger {
            Trigger::Edge => epoll::EDGE,
            Trigger::Once => epoll::ONCE,
            Trigger::Level | Trigger::Flow => 0,
        }
    }

    /// Whether what the kernel has told is kept here, since it does not say so again.
    fn keeps_left(&self) -> bool {
        matches!(self.trigger, Trigger::Edge | Trigger::Once)
    }

    fn follows_edges(&self) -> bool {
        self.trigger == Trigger::Edge
    }

    fn has_left(&self) -> bool {
        self.left & self.wanted != 0
    }

    /// Wants something that the poller does not know of, or not for sure.
    fn is_untold(&self) -> bool {
        self.wanted & !self.current != 0 || self.is_doubtful && self.wanted != 0
    }
}

impl Watchers {
    pub(crate) fn new() -> Watchers {
        Watchers {
            slab: Slab::new(),
            by_fd: Vec::new(),
            changes: Vec::new(),
            pending: VecDeque::new(),
            fed: 0,
            noted: Vec::new(),
            epochs: 0,
        }
    }

    pub(crate) fn get(&self, index: u32) -> &Watcher {
        &self.slab[index]
    }

    pub(crate) fn has_pending(&self) -> bool {
        self.fed != 0
    }

    /// Whether the poller has still to be told of something that is wanted.
    pub(crate) fn has_changes(&self) -> bool {
        let is_untold = |&index: &u32| self.slab[index].is_untold();
        self.changes.iter().any(is_untold)
    }

    pub(crate) fn pending_len(&self) -> usize {
        self.pending.len()
    }

    /// A new, stopped watcher. Its descriptor may come later and be −1 until then.
    pub(crate) fn insert(&mut self, fd: RawFd, owner: Owner) -> Result<u32, Errno> {
        // Room for every watcher once: what starting, stopping and feeding need later.
        let watchers = self.slab.capacity() + 1;
        self.changes
            .try_reserve(watchers.saturating_sub(self.changes.len()))?;
        self.pending
            .try_reserve(watchers.saturating_sub(self.pending.len()))?;
        self.noted
            .try_reserve(watchers.saturating_sub(self.noted.len()))?;
        let watcher = Watcher {
            fd,
            owner,
            wanted: 0,
            current: 0,
            left: 0,
            trigger: Trigger::Level,
            way: Way::In,
            in_a_row: 0,
            is_noted: false,
            is_doubtful: false,
            epoch: 0,
            queued: NIL,
            pending: None,
        };
        Ok(self.slab.insert(watcher)?.index)
    }

    pub(crate) fn set_owner(&mut self, index: u32, owner: Owner) {
        self.slab[index].owner = owner;
    }

    /// Whether another started watcher has the descriptor.
    pub(crate) fn is_taken(&self, fd: RawFd, by_other_than: u32) -> bool {
        let taken = usize::try_from(fd).ok().and_then(|fd| self.by_fd.get(fd));
        taken.is_some_and(|&watcher| {
            watcher != NIL && watcher != by_other_than && self.slab[watcher].wanted != 0
        })
    }

    /// Makes room for a descriptor in the table of those.
    fn make_room(&mut self, fd: RawFd) -> Result<usize, Errno> {
        let fd = usize::try_from(fd).map_err(|_| Errno::EBADF)?;
        if fd >= self.by_fd.len() {
            self.by_fd.try_reserve(fd + 1 - self.by_fd.len())?;
            self.by_fd.resize(fd + 1, NIL);
        }
        Ok(fd)
    }

    /// Gives a watcher without a descriptor one.
    pub(crate) fn attach(&mut self, index: u32, fd: RawFd) -> Result<(), Errno> {
        debug_assert_eq!(
            self.slab[index].fd, -1,
            "a watcher has one descriptor in its life"
        );
        self.make_room(fd)?;
        self.slab[index].fd = fd;
        Ok(())
    }

    /// What the watcher watches for.
    pub(crate) fn wanted(&self, index: u32) -> u32 {
        self.slab[index].wanted
    }

    /// Has the watcher looked at for what is left before the next poll.
    #[inline]
    fn note(&mut self, index: u32) {
        if !std::mem::replace(&mut self.slab[index].is_noted, true) {
            self.noted.push(index);
        }
    }

    /// The watcher of a registration that still holds.
    #[inline]
    fn registered(&self, data: u64) -> Option<u32> {
        let (index, epoch) = (data as u32, (data >> 32) as u32);
        if index as usize >= self.slab.capacity() {
            return None;
        }
        let watcher = &self.slab[index];
        (watcher.epoch == epoch && watcher.current != 0).then_some(index)
    }

    /// The watcher of a registration that still holds, if the kernel says once what it has to say.
    fn said_once(&self, data: u64) -> Option<u32> {
        let index = self.registered(data)?;
        self.slab[index].keeps_left().then_some(index)
    }

    /// Remembers what the kernel has told, and returns all that has not been used up.
    #[inline]
    fn add_left(&mut self, index: u32, mask: u32) -> u32 {
        self.note(index);
        let watcher = &mut self.slab[index];
        watcher.left |= mask;
        watcher.left
    }

    /// Whether something is left of what was told, and wanted. Those of whom nothing is are no
    /// longer noted.
    #[inline]
    pub(crate) fn has_left(&mut self) -> bool {
        let Watchers { noted, slab, .. } = self;
        if !noted.is_empty() {
            noted.retain(|&index| {
                let watcher = &mut slab[index];
                watcher.is_noted = watcher.has_left();
                watcher.is_noted
            });
        }
        !noted.is_empty()
    }

    /// Queues the watcher's owner to be called outside of the poll phase. That the poller has
    /// refused it is not forgotten for something else.
    #[inline]
    pub(crate) fn feed(&mut self, index: u32, why: Pending) {
        let pending = &mut self.slab[index].pending;
        if matches!(pending, Some(Pending::Refused(_))) {
            return;
        }
        if pending.replace(why).is_none() {
            self.pending.push_back(index);
            self.fed += 1;
        }
    }

    /// Takes [`feed`](Watchers::feed) back.
    fn unfeed(&mut self, index: u32) {
        if self.slab[index].pending.take().is_some() {
            self.fed -= 1;
        }
    }

    /// Has the watcher want nothing any more; its descriptor, if the poller knows of it.
    fn withdraw(&mut self, index: u32) -> Option<RawFd> {
        let watcher = &mut self.slab[index];
        watcher.wanted = 0;
        watcher.left = 0;
        watcher.is_doubtful = false;
        let (fd, current) = (watcher.fd, std::mem::take(&mut watcher.current));
        if let Ok(at) = usize::try_from(fd)
            && self.by_fd.get(at) == Some(&index)
        {
            self.by_fd[at] = NIL;
        }
        (current != 0).then_some(fd)
    }

    /// Gives the place of a stopped watcher back.
    fn remove(&mut self, index: u32) {
        let place = self.slab[index].queued;
        if place != NIL {
            // Its place in the queue would outlive it.
            self.changes.swap_remove(place as usize);
            if let Some(&moved) = self.changes.get(place as usize) {
                self.slab[moved].queued = place;
            }
        }
        self.slab.remove(index);
    }

    /// Takes the next watcher whose owner is to be called.
    #[inline]
    fn next_pending(&mut self) -> Option<(u32, Pending)> {
        while let Some(index) = self.pending.pop_front() {
            if let Some(why) = self.slab[index].pending.take() {
                self.fed -= 1;
                return Some((index, why));
            }
        }
        None
    }
}

impl Engine {
    /// Watches for `mask`, in place of what was watched for before. `EEXIST` if another
    /// watcher has the descriptor.
    pub(crate) fn io_start(&mut self, index: u32, mask: u32) -> Result<(), Errno> {
        debug_assert!(mask & ASKABLE != 0 && mask & !ASKABLE == 0);
        self.io_take(index)?;
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
    pub(crate) fn io_want(&mut self, index: u32, mask: u32) -> Result<(), Errno> {
        self.io_start(index, self.watchers.wanted(index) | mask)
    }

    /// Does not watch for `mask` any more. The poller hears of it when that matters.
    pub(crate) fn io_unwant(&mut self, index: u32, mask: u32) {
        self.watchers.slab[index].wanted &= !mask;
    }

    /// As [`io_want`](Engine::io_want) for a watcher that was stopped. Meanwhile the program may
    /// have put another file in the descriptor's place, by dup2(2), of which epoll knows nothing:
    /// it is asked anew, once in a turn. The other mechanisms go by the number.
    pub(crate) fn io_want_anew(&mut self, index: u32, mask: u32) -> Result<(), Errno> {
        if self.poller.supports_edges() {
            let watcher = &mut self.watchers.slab[index];
            watcher.is_doubtful = watcher.current != 0;
        }
        self.io_want(index, mask)
    }

    /// Enters the watcher as its descriptor's only one. One that had it before but wants
    /// nothing has to go.
    fn io_take(&mut self, index: u32) -> Result<(), Errno> {
        let fd = self.watchers.make_room(self.watchers.slab[index].fd)?;
        let holder = self.watchers.by_fd[fd];
        if holder != NIL && holder != index {
            if self.watchers.slab[holder].wanted != 0 {
                return Err(Errno::EEXIST);
            }
            // What it has been fed is still its own to hear of.
            self.io_withdraw(holder);
        }
        self.watchers.by_fd[fd] = index;
        Ok(())
    }

    /// Stops watching at once: the descriptor may be closed right after, and no event that
    /// has been fetched already is delivered.
    pub(crate) fn io_stop(&mut self, index: u32) {
        self.watchers.unfeed(index);
        self.io_withdraw(index);
    }

    /// Gives up the descriptor, here and at the poller.
    fn io_withdraw(&mut self, index: u32) {
        if let Some(fd) = self.watchers.withdraw(index) {
            self.poller.remove(fd);
        }
    }

    /// Forgets a watcher.
    pub(crate) fn io_close(&mut self, index: u32) {
        self.io_stop(index);
        self.watchers.remove(index);
    }

    /// Forgets a watcher that was to be [told once](Engine::io_tell_once), has been, and whose
    /// descriptor is ours and closed next: the poller has nothing to be told.
    pub(crate) fn io_retire(&mut self, index: u32) {
        self.watchers.unfeed(index);
        if let Some(fd) = self.watchers.withdraw(index) {
            self.poller.forget(fd);
        }
        self.watchers.remove(index);
    }

    /// Tells the poller what has changed. Where it refuses, the owner hears of it in a
    /// pending callback.
    #[inline]
    pub(crate) fn io_flush(&mut self) {
        if !self.watchers.changes.is_empty() {
            self.io_flush_changes();
        }
    }

    #[inline(never)]
    fn io_flush_changes(&mut self) {
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

    /// The watcher that an event is for and what it is to be told, unless the event is out
    /// of date or nobody wants it.
    #[inline]
    pub(crate) fn io_match(&mut self, mask: u32, data: u64) -> Option<(u32, u32)> {
        let index = self.watchers.registered(data)?;
        let watcher = &self.watchers.slab[index];
        let told = match watcher.keeps_left() {
            true => self.watchers.add_left(index, mask),
            false => mask,
        };
        let watcher = &mut self.watchers.slab[index];
        let events = told & (watcher.wanted | UNASKED);
        if events & ASKABLE != 0 {
            return Some((index, events));
        }
        if events != 0 && watcher.wanted != 0 {
            // The kernel may report a bare error or hang-up, when what there was to read
            // has been read. The owner finds out by doing what it wanted to do. Only
            // the kernel knows whether there is urgent data.
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
            // The kernel tells again what there is of that.
            watcher.left = 0;
        }
        None
    }

    /// Lets the kernel tell the watcher of changes only, if it can do that: its owner says each
    /// time that it has used up what there was, and which way it went.
    pub(crate) fn io_follow_edges(&mut self, index: u32) {
        if self.poller.supports_edges() && !self.is_embedded {
            self.io_set_trigger(index, Trigger::Edge);
        }
    }

    /// Lets the kernel tell all watchers in every turn what there is, and those too that were to
    /// be told once.
    #[cold]
    pub(crate) fn io_follow_levels_only(&mut self) {
        for index in 0..self.watchers.slab.capacity() as u32 {
            self.io_follow_levels(index);
        }
    }

    /// Lets the kernel tell a stopped watcher once what it has to tell, if nobody else may take
    /// that from our descriptor.
    pub(crate) fn io_tell_once(&mut self, index: u32) {
        if !self.is_embedded {
            self.watchers.slab[index].trigger = Trigger::Once;
        }
    }

    /// Lets the kernel tell the watcher in every turn what there is, after all.
    pub(crate) fn io_follow_levels(&mut self, index: u32) {
        if self.watchers.slab[index].trigger != Trigger::Level {
            self.io_set_trigger(index, Trigger::Level);
        }
    }

    #[cold]
    fn io_set_trigger(&mut self, index: u32, trigger: Trigger) {
        let watcher = &mut self.watchers.slab[index];
        watcher.trigger = trigger;
        // The kernel tells again what there is.
        watcher.left = 0;
        if watcher.wanted == 0 {
            self.io_withdraw(index);
        } else if watcher.current != 0 {
            let asked = watcher.asked();
            let data = data(index, watcher.epoch);
            match (self.poller).modify(watcher.fd, asked | watcher.flag(), data) {
                Ok(()) => watcher.current = asked,
                Err(error) => self.watchers.feed(index, Pending::Refused(error)),
            }
        }
    }

    /// Bytes went one way.
    #[inline]
    pub(crate) fn io_went(&mut self, index: u32, way: Way) {
        let watcher = &mut self.watchers.slab[index];
        if watcher.way != way {
            (watcher.way, watcher.in_a_row) = (way, 0);
            if watcher.trigger == Trigger::Flow {
                self.io_set_trigger(index, Trigger::Edge);
            }
        } else if watcher.in_a_row < FLOW {
            watcher.in_a_row += 1;
            if watcher.in_a_row == FLOW && watcher.trigger == Trigger::Edge {
                self.io_set_trigger(index, Trigger::Flow);
            }
        }
    }

    /// There is nothing more of `bits`, until the kernel says that there is.
    #[inline]
    pub(crate) fn io_used_up(&mut self, index: u32, bits: u32) {
        self.watchers.slab[index].left &= !bits;
    }

    /// A read has given less than it could take. There is nothing more to read, unless something
    /// else has made it stop.
    #[inline]
    pub(crate) fn io_read_short(&mut self, index: u32) {
        let watcher = &mut self.watchers.slab[index];
        if watcher.left & (STOPPERS | UNASKED) == 0 {
            watcher.left &= !POLLIN;
        }
    }

    /// Before the poller is asked anew: keeps what is left of its last batch and the kernel will
    /// not say again. There is something if a run was given up in the middle of a batch, or if a
    /// callback has begun another run.
    #[inline]
    pub(crate) fn io_salvage(&mut self) {
        while let Some((mask, data)) = self.poller.next() {
            if let Some(index) = self.watchers.said_once(data) {
                self.watchers.add_left(index, mask);
            }
        }
    }

    /// Whether the poller's batch still has something that the kernel will not say again.
    pub(crate) fn io_has_untold(&self) -> bool {
        let mut rest = self.poller.rest().iter();
        rest.any(|&(_, data)| self.watchers.said_once(data).is_some())
    }

    /// Adds to the batch what the last turn [has left](Watchers::has_left) over. For those for
    /// whom it has no room, the next turn comes at once.
    #[inline]
    pub(crate) fn io_tell_left(&mut self) {
        let Watchers { noted, slab, .. } = &mut self.watchers;
        let count = noted.len().min(self.poller.room());
        for index in noted.drain(..count) {
            let watcher = &mut slab[index];
            watcher.is_noted = false;
            self.poller.tell((REMINDER, data(index, watcher.epoch)));
        }
    }

    /// The next pending callback.
    pub(crate) fn io_next_pending(&mut self) -> Option<(u32, Pending)> {
        self.watchers.next_pending()
    }

    /// Forgets all registrations, so that every started watcher is registered anew with
    /// a new poller.
    pub(crate) fn io_reset(&mut self) -> Result<(), Errno> {
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
