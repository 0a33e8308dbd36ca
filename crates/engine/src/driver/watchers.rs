//! Watchers: the loop's interest in file descriptors.
//!
//! A watcher has a *wanted* interest, which its owner sets, and a *current* interest, which the
//! poller knows. `registration.rs` brings the two together.
//!
//! Every registration has an *epoch*, which goes to the poller with the watcher's index and
//! comes back with each event. An event whose epoch does not hold any more is dropped: the
//! descriptor may have been closed, and its number opened again, by an earlier event of the
//! same batch.
//!
//! At most one started watcher exists per descriptor.
//!
//! A watcher is level-triggered to its owner. To the kernel it may be edge-triggered or one-shot
//! ([`Reports`]). What the kernel has then reported and the owner has not used up is kept in the
//! watcher, as `left`, and is reported to the owner again in every turn as long as it is wanted.

use crate::list::{Links, List, Rounds, linked};
use crate::patience::Flow;
use crate::poller::Registration;
use crate::readiness::{Interest, Readiness, Trigger};
use crate::slab::{NIL, Slab};
use blacklight_sys::{Errno, RawFd};

/// The readiness of an event that only reminds a watcher of what it has left. The kernel never
/// reports an empty set.
pub(super) const REMINDER: Readiness = Readiness::NONE;

/// The conditions that end a read before all bytes are read. Every edge-triggered watcher asks for
/// them too, so that it learns of them.
pub(super) fn stoppers() -> Interest {
    Interest::DISCONNECT | Interest::PRIORITIZED
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Owner {
    /// A poll handle, by its index.
    Poll(u32),
    /// A stream, by its index in the table of streams.
    Stream(u32),
    /// The file watcher of all file system event handles.
    FileWatcher,
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

/// How readiness is to be reported to a watcher.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reports {
    /// In every wait, as long as it lasts.
    Level,
    /// When it begins.
    Edge,
    /// As `Level`, for an edge-triggered watcher whose bytes go one way for now; see
    /// `patience/flow.rs`.
    Flow,
    /// Once, since there is one event to report. Mechanisms that cannot do that report it in every wait.
    Once,
}

#[derive(Debug)]
pub(super) struct Watcher {
    pub(super) fd: RawFd,
    pub(super) owner: Owner,
    pub(super) wanted: Interest,
    pub(super) current: Interest,
    /// The readiness that was reported and not used up, if the kernel does not report it again.
    pub(super) left: Readiness,
    pub(super) reports: Reports,
    pub(super) flow: Flow,
    /// In the list of watchers that may have something left.
    pub(super) is_noted: bool,
    noted: Links,
    /// The descriptor may stand for another file than the one that the poller knows.
    pub(super) is_doubtful: bool,
    pub(super) epoch: u32,
    /// Its place in the queue of changes, or `NIL`.
    pub(super) queued: u32,
    fed: Fed,
}

/// Whether a watcher is in the list of pending callbacks, and where.
#[derive(Debug)]
struct Fed {
    why: Option<Pending>,
    links: Links,
}

linked!(Watcher, fed.links);

/// Marks the list of watchers that may have something left.
#[derive(Debug)]
pub(super) struct Noted;

linked!(Watcher, noted, Noted);

#[derive(Debug)]
pub(super) struct Watchers {
    pub(super) slab: Slab<Watcher>,
    /// The started watcher of each descriptor.
    pub(super) by_fd: Vec<u32>,
    /// Watchers whose wanted interest the poller has to hear of.
    pub(super) changes: Vec<u32>,
    /// Watchers whose owners are to be called outside of the poll phase.
    pending: Rounds,
    /// Watchers that may have something left.
    pub(super) noted: List<Noted>,
    pub(super) epochs: u32,
}

/// The word that goes to the poller with a registration.
pub(super) fn word(index: u32, epoch: u32) -> u64 {
    (epoch as u64) << 32 | index as u64
}

impl Watcher {
    /// The interest that the poller registers for the watcher. An edge-triggered one asks for more
    /// than it wants, so that it need not be registered anew when it wants that.
    pub(super) fn asked(&self) -> Interest {
        let reading = Interest::READABLE | stoppers();
        match self.reports {
            Reports::Edge if self.is_doubtful => self.wanted | reading,
            Reports::Edge => self.wanted | self.current | reading,
            Reports::Level | Reports::Flow | Reports::Once => self.wanted,
        }
    }

    /// The registration of this watcher for an interest. Its word is the watcher's index and epoch.
    pub(super) fn registration(&self, index: u32, interest: Interest) -> Registration {
        let trigger = match self.reports {
            Reports::Edge => Trigger::Edge,
            Reports::Once => Trigger::Once,
            Reports::Level | Reports::Flow => Trigger::Level,
        };
        Registration {
            fd: self.fd,
            interest,
            trigger,
            data: word(index, self.epoch),
        }
    }

    /// Whether readiness is kept here once it is reported, since the kernel does not report it
    /// again.
    pub(super) fn keeps_left(&self) -> bool {
        matches!(self.reports, Reports::Edge | Reports::Once)
    }

    pub(super) fn follows_edges(&self) -> bool {
        self.reports == Reports::Edge
    }

    pub(super) fn has_left(&self) -> bool {
        self.left.intersects(self.wanted)
    }

    /// Wants something that the poller does not know of, or not for sure.
    pub(super) fn is_untold(&self) -> bool {
        !self.current.contains(self.wanted) || self.is_doubtful && !self.wanted.is_empty()
    }
}

impl Watchers {
    pub(super) fn new() -> Watchers {
        Watchers {
            slab: Slab::new(),
            by_fd: Vec::new(),
            changes: Vec::new(),
            pending: Rounds::EMPTY,
            noted: List::EMPTY,
            epochs: 0,
        }
    }

    pub(super) fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Whether the poller has still to be told of something that is wanted.
    pub(super) fn has_changes(&self) -> bool {
        let is_untold = |&index: &u32| self.slab[index].is_untold();
        self.changes.iter().any(is_untold)
    }

    /// A new, stopped watcher. Its descriptor may come later and be −1 until then.
    pub(super) fn insert(&mut self, fd: RawFd, owner: Owner) -> Result<u32, Errno> {
        // Room for every watcher once: what starting and stopping need later.
        let watchers = self.slab.capacity() + 1;
        self.changes
            .try_reserve(watchers.saturating_sub(self.changes.len()))?;
        let watcher = Watcher {
            fd,
            owner,
            wanted: Interest::NONE,
            current: Interest::NONE,
            left: Readiness::NONE,
            reports: Reports::Level,
            flow: Flow::default(),
            is_noted: false,
            noted: Links::NONE,
            is_doubtful: false,
            epoch: 0,
            queued: NIL,
            fed: Fed {
                why: None,
                links: Links::NONE,
            },
        };
        Ok(self.slab.insert(watcher)?.index)
    }

    /// Whether another started watcher has the descriptor.
    pub(super) fn is_taken(&self, fd: RawFd, by_other_than: u32) -> bool {
        let taken = usize::try_from(fd).ok().and_then(|fd| self.by_fd.get(fd));
        taken.is_some_and(|&watcher| {
            watcher != NIL && watcher != by_other_than && !self.slab[watcher].wanted.is_empty()
        })
    }

    /// Makes room for a descriptor in the table of those.
    pub(super) fn make_room(&mut self, fd: RawFd) -> Result<usize, Errno> {
        let fd = usize::try_from(fd).map_err(|_| Errno::EBADF)?;
        if fd >= self.by_fd.len() {
            self.by_fd.try_reserve(fd + 1 - self.by_fd.len())?;
            self.by_fd.resize(fd + 1, NIL);
        }
        Ok(fd)
    }

    /// Gives a watcher without a descriptor one.
    pub(super) fn attach(&mut self, index: u32, fd: RawFd) -> Result<(), Errno> {
        debug_assert_eq!(
            self.slab[index].fd, -1,
            "a watcher has one descriptor in its life"
        );
        self.make_room(fd)?;
        self.slab[index].fd = fd;
        Ok(())
    }

    /// Adds the watcher to the list of those that may have something left.
    #[inline]
    pub(super) fn note(&mut self, index: u32) {
        if !std::mem::replace(&mut self.slab[index].is_noted, true) {
            self.noted.push_back(&mut self.slab, index);
        }
    }

    /// The watcher of a registration that still holds.
    #[inline]
    pub(super) fn registered(&self, data: u64) -> Option<u32> {
        let (index, epoch) = (data as u32, (data >> 32) as u32);
        if index as usize >= self.slab.capacity() {
            return None;
        }
        let watcher = &self.slab[index];
        (watcher.epoch == epoch && !watcher.current.is_empty()).then_some(index)
    }

    /// The watcher of a registration that still holds, if the kernel does not repeat its events.
    pub(super) fn reported_once(&self, data: u64) -> Option<u32> {
        let index = self.registered(data)?;
        self.slab[index].keeps_left().then_some(index)
    }

    /// Remembers a readiness that the kernel has reported, and returns all that has not been used
    /// up.
    #[inline]
    pub(super) fn add_left(&mut self, index: u32, ready: Readiness) -> Readiness {
        self.note(index);
        let watcher = &mut self.slab[index];
        watcher.left |= ready;
        watcher.left
    }

    /// Whether something that is wanted is left of what the kernel has reported. Watchers without any
    /// are taken off the list.
    #[inline]
    pub(super) fn has_left(&mut self) -> bool {
        let Watchers { noted, slab, .. } = self;
        let mut at = noted.first();
        while let Some(index) = at {
            at = noted.behind(slab, index);
            if !slab[index].has_left() {
                slab[index].is_noted = false;
                noted.remove(slab, index);
            }
        }
        !noted.is_empty()
    }

    /// Queues the watcher's owner to be called outside of the poll phase. A refusal by the poller is
    /// not replaced by another reason.
    #[inline]
    pub(super) fn feed(&mut self, index: u32, why: Pending) {
        let fed = &mut self.slab[index].fed;
        if matches!(fed.why, Some(Pending::Refused(_))) {
            return;
        }
        if fed.why.replace(why).is_none() {
            self.pending.push_back(&mut self.slab, index);
        }
    }

    /// Takes [`feed`](Watchers::feed) back.
    pub(super) fn unfeed(&mut self, index: u32) {
        if self.slab[index].fed.why.take().is_some() {
            self.pending.remove(&mut self.slab, index);
        }
    }

    /// Makes the watcher want nothing any more. Returns its descriptor if the poller knows it.
    pub(super) fn withdraw(&mut self, index: u32) -> Option<RawFd> {
        let watcher = &mut self.slab[index];
        watcher.wanted = Interest::NONE;
        watcher.left = Readiness::NONE;
        watcher.is_doubtful = false;
        let (fd, current) = (watcher.fd, std::mem::take(&mut watcher.current));
        if let Ok(at) = usize::try_from(fd)
            && self.by_fd.get(at) == Some(&index)
        {
            self.by_fd[at] = NIL;
        }
        (!current.is_empty()).then_some(fd)
    }

    /// Gives the place of a stopped watcher back.
    pub(super) fn remove(&mut self, index: u32) {
        let place = self.slab[index].queued;
        if place != NIL {
            // Its place in the queue would outlive it.
            self.changes.swap_remove(place as usize);
            if let Some(&moved) = self.changes.get(place as usize) {
                self.slab[moved].queued = place;
            }
        }
        if self.slab[index].is_noted {
            self.noted.remove(&mut self.slab, index);
        }
        self.slab.remove(index);
    }

    /// Begins a round of pending callbacks; whether there are any.
    pub(super) fn begin_pending(&mut self) -> bool {
        self.pending.begin()
    }

    /// Takes the next watcher of the round.
    #[inline]
    pub(super) fn next_pending(&mut self) -> Option<(u32, Pending)> {
        let index = self.pending.next(&mut self.slab)?;
        let why = self.slab[index].fed.why.take()?;
        Some((index, why))
    }
}
