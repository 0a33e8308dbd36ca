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

use crate::driver::Sources;
use crate::engine::Engine;
use crate::event::{Event, Token};
use crate::handle::Kind;
use crate::list::{Links, List, linked};
use crate::slab::{Key, Slab};
use blacklight_sys::Errno;
use blacklight_sys::signal::{SIGCHLD, Subscription};

/// The recipient of a watcher's signals.
#[derive(Clone, Copy, Debug)]
enum Recipient {
    /// A handle, by its index.
    Handle(u32),
    /// The loop's own children; see `process.rs`.
    Children,
}

#[derive(Debug)]
struct SignalWatch {
    recipient: Recipient,
    signum: i32,
    one_shot: bool,
    /// Unique to each start; zero while stopped.
    order: u64,
    /// The count of the last signal delivered, and of the last one to deliver in this turn.
    seen: u32,
    until: u32,
    /// In the list of watchers that are due, at `links`.
    is_due: bool,
    links: Links,
}

linked!(SignalWatch, links);

/// The signal watchers of a loop.
#[derive(Debug)]
pub(crate) struct Signals {
    /// Made when the first watcher is started.
    subscription: Option<Subscription>,
    slab: Slab<SignalWatch>,
    /// Signal number, order and index of each started watcher, sorted.
    started: Vec<(i32, u64, u32)>,
    /// Watchers with signals to deliver.
    due: List,
    orders: u64,
    /// The one-shot watcher whose callback is running.
    settling: Option<(u64, u32)>,
}

impl Signals {
    /// The signal that a watcher waits for, or -1.
    pub(crate) fn signum(&self, watcher: u32) -> i32 {
        let watcher = &self.slab[watcher];
        if watcher.order == 0 {
            -1
        } else {
            watcher.signum
        }
    }

    pub(crate) fn new() -> Signals {
        Signals {
            subscription: None,
            slab: Slab::new(),
            started: Vec::new(),
            due: List::EMPTY,
            orders: 0,
            settling: None,
        }
    }

    /// Whether a signal has been caught and not been collected.
    #[inline]
    pub(crate) fn has_caught(&self) -> bool {
        self.subscription
            .as_ref()
            .is_some_and(Subscription::has_pending)
    }

    /// Whether a collected signal is left to deliver, or a one-shot handle to stop.
    #[inline]
    pub(crate) fn has_collected(&self) -> bool {
        !self.due.is_empty() || self.settling.is_some()
    }

    fn insert(&mut self, recipient: Recipient) -> Result<u32, Errno> {
        let watcher = SignalWatch {
            recipient,
            signum: 0,
            one_shot: false,
            order: 0,
            seen: 0,
            until: 0,
            is_due: false,
            links: Links::NONE,
        };
        Ok(self.slab.insert(watcher)?.index)
    }

    /// Starts a stopped watcher.
    fn start(&mut self, index: u32, signum: i32, one_shot: bool) -> Result<(), Errno> {
        self.started.try_reserve(1)?;
        let subscription = self.subscription.as_ref().ok_or(Errno::EINVAL)?;
        let caught = subscription.add(signum, one_shot)?;
        self.orders += 1;
        let order = self.orders;
        let watcher = &mut self.slab[index];
        debug_assert_eq!(watcher.order, 0, "a watcher is started twice");
        (watcher.signum, watcher.one_shot, watcher.order) = (signum, one_shot, order);
        (watcher.seen, watcher.until) = (caught, caught);
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
        if std::mem::take(&mut watcher.is_due) {
            self.due.remove(&mut self.slab, index);
        }
        if let Ok(place) = self.started.binary_search(&entry) {
            self.started.remove(place);
        }
        if let Some(subscription) = &self.subscription {
            subscription.remove(entry.0, self.slab[index].one_shot);
        }
    }

    /// Stops a watcher and forgets it.
    pub(crate) fn remove(&mut self, index: u32) {
        self.stop(index);
        self.slab.remove(index);
    }

    /// Queues the watchers of the signals that have been caught. Returns whether there were any.
    #[inline]
    pub(crate) fn collect(&mut self) -> bool {
        let has_caught = self.has_caught();
        if has_caught {
            self.collect_caught();
        }
        has_caught
    }

    fn collect_caught(&mut self) {
        let Some(subscription) = &self.subscription else {
            return;
        };
        for signum in subscription.take_pending() {
            let caught = subscription.caught(signum);
            let first = self.started.partition_point(|entry| entry.0 < signum);
            let watchers = self.started[first..]
                .iter()
                .take_while(|entry| entry.0 == signum);
            for &(_, _, index) in watchers {
                let watcher = &mut self.slab[index];
                watcher.until = caught;
                if watcher.seen != caught && !std::mem::replace(&mut watcher.is_due, true) {
                    self.due.push_back(&mut self.slab, index);
                }
            }
        }
    }

    /// The next signal to deliver, and its recipient. Watchers with several signals take
    /// turns.
    fn next(&mut self) -> Option<(Recipient, i32)> {
        while let Some(index) = self.due.pop_front(&mut self.slab) {
            let watcher = &mut self.slab[index];
            watcher.is_due = false;
            if watcher.seen == watcher.until {
                continue;
            }
            watcher.seen = match watcher.recipient {
                Recipient::Handle(_) => watcher.seen.wrapping_add(1),
                // One examination of the children serves all of their signals.
                Recipient::Children => watcher.until,
            };
            let delivered = (watcher.recipient, watcher.signum);
            if watcher.one_shot {
                self.settling = Some((watcher.order, index));
            } else if watcher.seen != watcher.until {
                watcher.is_due = true;
                self.due.push_back(&mut self.slab, index);
            }
            return Some(delivered);
        }
        None
    }

    /// The one-shot handle whose callback was called last, and its watcher, if the callback has
    /// neither started nor stopped the handle.
    fn take_settling(&mut self) -> Option<(u32, u32)> {
        let (order, index) = self.settling.take()?;
        let watcher = &self.slab[index];
        match watcher.recipient {
            Recipient::Handle(handle) if watcher.order == order => Some((handle, index)),
            _ => None,
        }
    }

    /// In the child of a fork: discards signals that were caught before, which are the parent's.
    pub(crate) fn fork(&mut self) {
        let Some(subscription) = &self.subscription else {
            return;
        };
        subscription.fork();
        self.due = List::EMPTY;
        for &(signum, _, index) in &self.started {
            let watcher = &mut self.slab[index];
            watcher.seen = subscription.inherited(signum);
            watcher.until = watcher.seen;
            watcher.is_due = false;
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

impl Sources {
    /// Makes the inbox in which the process's handler counts signals, if there is none yet.
    fn subscribe(&mut self) -> Result<(), Errno> {
        if self.signals.subscription.is_none() {
            let waker = self.receiver.mailbox.waker.clone();
            self.signals.subscription = Some(Subscription::new(waker)?);
        }
        Ok(())
    }

    /// Starts watching for SIGCHLD, without a handle. Returns the watcher.
    pub(crate) fn start_child_signal(&mut self) -> Result<u32, Errno> {
        self.subscribe()?;
        let watcher = self.signals.insert(Recipient::Children)?;
        self.signals
            .start(watcher, SIGCHLD, false)
            .inspect_err(|_| self.signals.remove(watcher))?;
        Ok(watcher)
    }
}

impl Engine {
    fn signals(&mut self) -> &mut Signals {
        &mut self.driver.sources.signals
    }

    /// Makes a signal handle, stopped.
    pub fn signal_init(&mut self, token: Token) -> Result<Key, Errno> {
        let watcher = self.signals().insert(Recipient::Handle(0))?;
        let key = self
            .make_handle(Kind::Signal(watcher), token)
            .inspect_err(|_| self.signals().remove(watcher))?;
        self.signals().slab[watcher].recipient = Recipient::Handle(key.index);
        Ok(key)
    }

    fn signal_watcher(&self, key: Key) -> Result<(u32, u32), Errno> {
        let index = self.handles.open(key)?;
        match self.handles[index].kind {
            Kind::Signal(watcher) => Ok((index, watcher)),
            _ => Err(Errno::EINVAL),
        }
    }

    /// Watches for a signal, in place of the one watched before. A one-shot handle fires once.
    /// `EINVAL` if there is no such signal or it cannot be caught; the handle is stopped then,
    /// unless the number was zero.
    pub fn signal_start(&mut self, key: Key, signum: i32, one_shot: bool) -> Result<(), Errno> {
        let (index, watcher) = self.signal_watcher(key)?;
        if signum == 0 {
            return Err(Errno::EINVAL);
        }
        if self.handles.is_active(index) && self.signals().signum(watcher) == signum {
            return self.signals().rearm(watcher, one_shot);
        }
        self.driver.sources.subscribe()?;
        self.stop_signal(index, watcher);
        self.signals().start(watcher, signum, one_shot)?;
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
        self.signals().stop(watcher);
        self.handles.set_active(index, false);
    }

    pub(crate) fn release_signal(&mut self, index: u32, watcher: u32) {
        self.signals().remove(watcher);
        self.handles.set_active(index, false);
    }

    /// Stops the one-shot handle whose callback was called last, unless the callback has started
    /// or stopped it. Returns its token if it did. [`Engine::next`] does the same; this is for
    /// front ends whose users inspect the handle before that.
    pub fn signal_settle(&mut self) -> Option<Token> {
        let (index, watcher) = self.signals().take_settling()?;
        self.stop_signal(index, watcher);
        Some(self.handles[index].token)
    }

    /// Delivers the next signal.
    pub(crate) fn next_signal(&mut self) -> Option<Event> {
        self.signal_settle();
        while let Some((recipient, signum)) = self.signals().next() {
            let processes = &mut self.driver.sources.processes;
            match recipient {
                Recipient::Handle(index) => {
                    if signum == SIGCHLD {
                        processes.reap();
                    }
                    return Some(Event::Signal(self.handles[index].token, signum));
                }
                Recipient::Children => processes.examine(),
            }
        }
        None
    }
}
