//! Signal handles: signals as events of the loop.
//!
//! The process's one handler counts the signals it catches in an inbox that it shares with the
//! loop; see [`blacklight_sys::signal`]. A signal watcher starts at the count of that moment and
//! counts the signals it has delivered, so it delivers every signal that is caught while it is
//! started, however many come at once, and none from before.
//!
//! Signals are delivered after everything else that a poll has brought. A signal that is caught
//! while signals are delivered waits for the next turn.
//!
//! A one-shot watcher stops after its callback, unless the callback has started it again:
//! [`Engine::signal_settle`].

use crate::engine::Engine;
use crate::event::{Event, Token};
use crate::handle::Kind;
use crate::slab::{Key, Slab};
use blacklight_sys::Errno;
use blacklight_sys::signal::Subscription;
use std::collections::VecDeque;

/// What a signal watcher serves.
#[derive(Clone, Copy, Debug)]
enum Owner {
    /// A handle, by its index.
    Handle(u32),
    /// The loop's own children; see `process.rs`.
    Children,
}

#[derive(Debug)]
struct Watcher {
    owner: Owner,
    signum: i32,
    one_shot: bool,
    /// Unique to each start; zero while stopped.
    order: u64,
    /// The count of the last signal delivered, and of the last one to deliver in this turn.
    seen: u32,
    until: u32,
    /// In the queue of watchers that are due.
    queued: bool,
}

/// The signal watchers of a loop.
#[derive(Debug)]
pub(crate) struct Signals {
    /// Made when the first watcher is started.
    subscription: Option<Subscription>,
    slab: Slab<Watcher>,
    /// Signal number, order and index of each started watcher, sorted.
    started: Vec<(i32, u64, u32)>,
    /// Order and index of watchers with signals to deliver. Some may have been stopped since.
    due: VecDeque<(u64, u32)>,
    orders: u64,
    /// The one-shot watcher whose callback is running.
    settling: Option<(u64, u32)>,
}

impl Signals {
    pub(crate) fn new() -> Signals {
        Signals {
            subscription: None,
            slab: Slab::new(),
            started: Vec::new(),
            due: VecDeque::new(),
            orders: 0,
            settling: None,
        }
    }

    /// Whether a signal has been caught and not been collected.
    #[inline]
    pub(crate) fn has_pending(&self) -> bool {
        self.subscription
            .as_ref()
            .is_some_and(Subscription::has_pending)
    }

    /// Whether a collected signal is left to deliver, or a one-shot handle to stop.
    #[inline]
    pub(crate) fn has_collected(&self) -> bool {
        !self.due.is_empty() || self.settling.is_some()
    }

    fn insert(&mut self, owner: Owner) -> Result<u32, Errno> {
        let watcher = Watcher {
            owner,
            signum: 0,
            one_shot: false,
            order: 0,
            seen: 0,
            until: 0,
            queued: false,
        };
        Ok(self.slab.insert(watcher)?.index)
    }

    /// Starts a stopped watcher.
    fn start(&mut self, index: u32, signum: i32, one_shot: bool) -> Result<(), Errno> {
        self.started.try_reserve(1)?;
        let places = self.started.len() + 1;
        self.due
            .try_reserve(places.saturating_sub(self.due.len()))?;
        let subscription = self.subscription.as_ref().ok_or(Errno::EINVAL)?;
        let caught = subscription.add(signum, one_shot)?;
        self.orders += 1;
        let order = self.orders;
        let watcher = &mut self.slab[index];
        debug_assert_eq!(watcher.order, 0, "a watcher is started twice");
        (watcher.signum, watcher.one_shot, watcher.order) = (signum, one_shot, order);
        (watcher.seen, watcher.until, watcher.queued) = (caught, caught, false);
        let place = self
            .started
            .partition_point(|entry| *entry < (signum, order, index));
        self.started.insert(place, (signum, order, index));
        Ok(())
    }

    /// Makes a started watcher one-shot or not, and ensures that it can fire once more.
    fn rearm(&mut self, index: u32, one_shot: bool) -> Result<(), Errno> {
        let watcher = &mut self.slab[index];
        let settles = self.settling == Some((watcher.order, index));
        if watcher.one_shot == one_shot && !settles {
            return Ok(());
        }
        if let Some(subscription) = &self.subscription {
            // Adds before it removes, so that no signal is missed in between.
            subscription.add(watcher.signum, one_shot)?;
            subscription.remove(watcher.signum, watcher.one_shot);
        }
        watcher.one_shot = one_shot;
        if settles {
            self.settling = None;
        }
        Ok(())
    }

    fn stop(&mut self, index: u32) {
        let watcher = &mut self.slab[index];
        let entry = (watcher.signum, std::mem::take(&mut watcher.order), index);
        if entry.1 == 0 {
            return;
        }
        if let Ok(place) = self.started.binary_search(&entry) {
            self.started.remove(place);
        }
        if let Some(subscription) = &self.subscription {
            subscription.remove(watcher.signum, watcher.one_shot);
        }
    }

    /// Queues the watchers of the signals that have been caught. Returns whether there were any.
    #[inline]
    pub(crate) fn collect(&mut self) -> bool {
        let has_pending = self.has_pending();
        if has_pending {
            self.collect_pending();
        }
        has_pending
    }

    fn collect_pending(&mut self) {
        let Some(subscription) = &self.subscription else {
            return;
        };
        for signum in subscription.take_pending() {
            let caught = subscription.caught(signum);
            let first = self.started.partition_point(|entry| entry.0 < signum);
            let watchers = self.started[first..]
                .iter()
                .take_while(|entry| entry.0 == signum);
            for &(_, order, index) in watchers {
                let watcher = &mut self.slab[index];
                watcher.until = caught;
                if watcher.seen != caught && !watcher.queued {
                    watcher.queued = true;
                    self.due.push_back((order, index));
                }
            }
        }
    }

    /// The next signal to deliver, and its watcher's owner. Watchers with several signals take
    /// turns.
    fn next(&mut self) -> Option<(Owner, i32)> {
        while let Some((order, index)) = self.due.pop_front() {
            let watcher = &mut self.slab[index];
            if watcher.order != order {
                continue;
            }
            watcher.queued = false;
            if watcher.seen == watcher.until {
                continue;
            }
            watcher.seen = match watcher.owner {
                Owner::Handle(_) => watcher.seen.wrapping_add(1),
                // One examination of the children serves all of their signals.
                Owner::Children => watcher.until,
            };
            if watcher.one_shot {
                self.settling = Some((order, index));
            } else if watcher.seen != watcher.until {
                watcher.queued = true;
                self.due.push_back((order, index));
            }
            return Some((watcher.owner, watcher.signum));
        }
        None
    }

    /// In the child of a fork: discards signals that were caught before, which are the parent's.
    pub(crate) fn fork(&mut self) {
        let Some(subscription) = &self.subscription else {
            return;
        };
        subscription.fork();
        self.due.clear();
        for &(signum, _, index) in &self.started {
            let watcher = &mut self.slab[index];
            watcher.seen = subscription.inherited(signum);
            watcher.until = watcher.seen;
            watcher.queued = false;
        }
    }

    /// At the end of a run: makes the loop's descriptor readable if signals are pending, since an
    /// embedding program may wait for it.
    #[inline]
    pub(crate) fn rest(&self) {
        if let Some(subscription) = &self.subscription
            && subscription.has_pending()
        {
            subscription.remind();
        }
    }
}

impl Engine {
    /// Makes a signal handle, stopped.
    pub fn signal_init(&mut self, token: Token) -> Result<Key, Errno> {
        let watcher = self.driver.sources.signals.insert(Owner::Handle(0))?;
        let key = self
            .handles
            .insert(Kind::Signal(watcher), token)
            .inspect_err(|_| self.driver.sources.signals.slab.remove(watcher))?;
        self.driver.sources.signals.slab[watcher].owner = Owner::Handle(key.index);
        Ok(key)
    }

    fn signal_watcher(&self, key: Key) -> Result<(u32, u32), Errno> {
        let index = self.handles.open(key)?;
        match self.handles[index].kind {
            Kind::Signal(watcher) => Ok((index, watcher)),
            _ => Err(Errno::EINVAL),
        }
    }

    fn subscribe(&mut self) -> Result<(), Errno> {
        if self.driver.sources.signals.subscription.is_none() {
            let waker = self.driver.sources.receiver.mailbox.waker.clone();
            self.driver.sources.signals.subscription = Some(Subscription::new(waker)?);
        }
        Ok(())
    }

    /// Watches for a signal, in place of the one watched before. A one-shot handle fires once.
    /// `EINVAL` if there is no such signal or it cannot be caught; the handle is stopped then,
    /// unless the number was zero.
    pub fn signal_start(&mut self, key: Key, signum: i32, one_shot: bool) -> Result<(), Errno> {
        let (index, watcher) = self.signal_watcher(key)?;
        if signum == 0 {
            return Err(Errno::EINVAL);
        }
        if self.handles.is_active(index)
            && self.driver.sources.signals.slab[watcher].signum == signum
        {
            return self.driver.sources.signals.rearm(watcher, one_shot);
        }
        self.subscribe()?;
        self.stop_signal(index, watcher);
        self.driver
            .sources
            .signals
            .start(watcher, signum, one_shot)?;
        self.handles.set_active(index, true);
        Ok(())
    }

    /// Stops watching. Signals that have been caught and not delivered are discarded.
    pub fn signal_stop(&mut self, key: Key) -> Result<(), Errno> {
        let (index, watcher) = self.signal_watcher(key)?;
        self.stop_signal(index, watcher);
        Ok(())
    }

    fn stop_signal(&mut self, index: u32, watcher: u32) {
        self.driver.sources.signals.stop(watcher);
        self.handles.set_active(index, false);
    }

    pub(crate) fn release_signal(&mut self, index: u32, watcher: u32) {
        self.stop_signal(index, watcher);
        self.driver.sources.signals.slab.remove(watcher);
    }

    /// Starts watching for SIGCHLD, without a handle. Returns the watcher.
    pub(crate) fn start_child_signal(&mut self) -> Result<u32, Errno> {
        self.subscribe()?;
        let watcher = self.driver.sources.signals.insert(Owner::Children)?;
        self.driver
            .sources
            .signals
            .start(watcher, blacklight_sys::signal::SIGCHLD, false)
            .inspect_err(|_| self.driver.sources.signals.slab.remove(watcher))?;
        Ok(watcher)
    }

    pub(crate) fn stop_child_signal(&mut self, watcher: u32) {
        self.driver.sources.signals.stop(watcher);
        self.driver.sources.signals.slab.remove(watcher);
    }

    /// Stops the one-shot handle whose callback was called last, unless the callback has started
    /// or stopped it. Returns its token if it did. [`Engine::next`] does the same; this is for
    /// front ends whose users inspect the handle before that.
    pub fn signal_settle(&mut self) -> Option<Token> {
        let (order, watcher) = self.driver.sources.signals.settling.take()?;
        let entry = &self.driver.sources.signals.slab[watcher];
        match entry.owner {
            Owner::Handle(index) if entry.order == order => {
                self.stop_signal(index, watcher);
                Some(self.handles[index].token)
            }
            _ => None,
        }
    }

    /// Delivers the next signal.
    pub(crate) fn next_signal(&mut self) -> Option<Event> {
        self.signal_settle();
        while let Some((owner, signum)) = self.driver.sources.signals.next() {
            match owner {
                Owner::Handle(index) => {
                    if signum == blacklight_sys::signal::SIGCHLD {
                        self.reap_children();
                    }
                    return Some(Event::Signal(self.handles[index].token, signum));
                }
                Owner::Children => self.examine_children(),
            }
        }
        None
    }
}
