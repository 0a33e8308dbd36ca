//! Timeouts and intervals: Node's timer lists, driven by one timer of the loop.
//!
//! Programs have many timers but few different durations. So each duration has a list, whose
//! oldest timer is the next to come due, and a queue orders the lists by when their first timers
//! are due:
//!
//! ```text
//!   queue        lists
//!   ┌───────┐    ┌───────┐
//!   │ 12:04 ├───►│ 10 ms ├─► 12:04 ─► 12:07 ─► 12:11
//!   │ 12:05 ├─┐  ├───────┤
//!   └───────┘ └─►│ 25 ms ├─► 12:05
//!                └───────┘
//! ```
//!
//! - A list runs all of its due timers before the next list runs. So of two due timers with
//!   different durations, the one that came due later may run first.
//! - A list whose first timer is not due yet goes back into the queue, behind the lists
//!   that are due at the same time.
//! - "Due" refers to the time at which the phase began. A timer started meanwhile waits for a
//!   later turn, even in the list that runs.
//! - Starting a timer and [`Timeout::refresh`] read the clock, not the loop's cached time, and
//!   count from the next whole millisecond: timers of one duration started in the same
//!   millisecond come due together, and none is early. An interval counts from the millisecond in
//!   which its callback began, and so keeps its pace.
//! - A one-shot timer keeps its callback: [`Timeout::refresh`] may start it again.

use super::{Delay, Inner, Node};
use crate::handle::{Handle, Single};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::rc::{Rc, Weak};

type Callback = Box<dyn FnMut(&Node, &Timeout)>;

/// All times in this module are in whole milliseconds.
const NS_PER_MS: u64 = 1_000_000;

/// A timer, in a list or not.
struct Entry {
    /// `None` while it runs, and after the timer is cleared.
    callback: RefCell<Option<Callback>>,
    /// The duration; `None` for a timer that was cleared while it was pending or running, which
    /// cannot be refreshed.
    ms: Cell<Option<u32>>,
    repeats: bool,
    /// The time from which the delay counts.
    start: Cell<u64>,
    /// The key in its list, if it is in one.
    place: Cell<Option<u64>>,
    referenced: Cell<bool>,
    /// The timer is neither pending nor running.
    is_over: Cell<bool>,
    is_cleared: Cell<bool>,
}

/// The timers of one duration.
struct List {
    /// The key of the list in the queue.
    position: (u64, u64),
    /// In the order of starting.
    timers: BTreeMap<u64, Rc<Entry>>,
}

/// All lists.
struct Lists {
    by_duration: HashMap<u32, List>,
    /// Durations, ordered by when their lists are due, then by the order of insertion.
    queue: BTreeMap<(u64, u64), u32>,
    /// The source of all sequence numbers.
    counter: u64,
    /// The time that the loop's timer is set to, or `u64::MAX`.
    armed_for: u64,
    /// The number of referenced timers that are not over.
    references: usize,
}

impl Lists {
    fn count(&mut self) -> u64 {
        self.counter += 1;
        self.counter
    }

    /// The list of this duration, created if necessary.
    fn list(&mut self, ms: u32, start: u64) -> &mut List {
        let Lists {
            by_duration,
            queue,
            counter,
            ..
        } = self;
        by_duration.entry(ms).or_insert_with(|| {
            *counter += 1;
            let position = (start + u64::from(ms), *counter);
            queue.insert(position, ms);
            List {
                position,
                timers: BTreeMap::new(),
            }
        })
    }

    /// Takes a timer out of its list.
    fn unlink(&mut self, entry: &Entry) {
        if let (Some(ms), Some(place)) = (entry.ms.get(), entry.place.take())
            && let Some(list) = self.by_duration.get_mut(&ms)
        {
            list.timers.remove(&place);
        }
    }

    fn remove_if_empty(&mut self, ms: u32) {
        if self
            .by_duration
            .get(&ms)
            .is_some_and(|l| l.timers.is_empty())
            && let Some(list) = self.by_duration.remove(&ms)
        {
            self.queue.remove(&list.position);
        }
    }

    /// The expiry and the duration of the list that is due first.
    fn first(&self) -> Option<(u64, u32)> {
        let (&(expiry, _), &ms) = self.queue.first_key_value()?;
        Some((expiry, ms))
    }

    /// The first timer of a list, if it is due. Otherwise moves the list back into the queue, or
    /// removes it if it is empty.
    fn first_due(&mut self, ms: u32, now: u64) -> Option<Rc<Entry>> {
        let list = self.by_duration.get(&ms)?;
        let Some((_, first)) = list.timers.first_key_value() else {
            self.remove_if_empty(ms);
            return None;
        };
        let due = first.start.get() + u64::from(ms);
        if due <= now {
            return Some(first.clone());
        }
        let position = (due, self.count());
        let list = self.by_duration.get_mut(&ms)?;
        self.queue.remove(&list.position);
        list.position = position;
        self.queue.insert(position, ms);
        None
    }
}

pub(super) struct Timers {
    handle: Rc<Handle<Single>>,
    lists: RefCell<Lists>,
}

impl Timers {
    pub(super) fn new(handle: Rc<Handle<Single>>) -> Timers {
        Timers {
            handle,
            lists: RefCell::new(Lists {
                by_duration: HashMap::new(),
                queue: BTreeMap::new(),
                counter: 0,
                armed_for: u64::MAX,
                references: 0,
            }),
        }
    }

    /// Sets the callback of the loop's timer.
    pub(super) fn begin(node: &Node) {
        let handle = &node.0.timers.handle;
        node.0.lp.engine().unreference(handle.key);
        node.serve(handle, Node::run_timers);
    }

    /// Drops the callbacks of all timers. A callback that owns its own [`Timeout`] would leak
    /// otherwise.
    pub(super) fn abandon(&mut self) {
        for list in self.lists.get_mut().by_duration.values() {
            for timer in list.timers.values() {
                timer.callback.take();
            }
        }
    }
}

impl Inner {
    /// Updates the loop's time, and returns it in nanoseconds.
    fn clock_ns(&self) -> u64 {
        let mut engine = self.lp.engine();
        engine.update_time();
        engine.now_ns()
    }

    /// The current millisecond.
    fn now(&self) -> u64 {
        self.clock_ns() / NS_PER_MS
    }

    /// The millisecond from which a delay counts: the next one, so that no timer is early.
    fn start(&self) -> u64 {
        self.clock_ns().div_ceil(NS_PER_MS)
    }

    /// Adds or removes a referenced timer. The loop's timer is referenced while there are any.
    fn count_reference(&self, more: bool) {
        let references = &mut self.timers.lists.borrow_mut().references;
        *references = if more {
            *references + 1
        } else {
            *references - 1
        };
        let key = self.timers.handle.key;
        match *references {
            0 => self.lp.engine().unreference(key),
            _ => self.lp.engine().reference(key),
        }
    }

    /// Sets the loop's timer.
    fn arm(&self, expiry: u64) {
        let key = self.timers.handle.key;
        let started = (self.lp.engine()).timer_start_at(key, expiry.saturating_mul(NS_PER_MS));
        started.expect("the handle is ours, and there is memory for one more timer");
    }

    /// Appends a timer to the list of its duration, with a delay that counts from `start`.
    fn insert(&self, entry: &Rc<Entry>, ms: u32, start: u64) {
        let mut lists = self.timers.lists.borrow_mut();
        lists.unlink(entry);
        entry.start.set(start);
        let place = lists.count();
        entry.place.set(Some(place));
        // Only a new list can be due earlier than the loop's timer is set to.
        let is_new = !lists.by_duration.contains_key(&ms);
        let list = lists.list(ms, start);
        list.timers.insert(place, entry.clone());
        let expiry = list.position.0;
        if is_new && expiry < lists.armed_for {
            lists.armed_for = expiry;
            drop(lists);
            self.arm(expiry);
        }
    }

    /// Marks a timer that does not run again as over.
    fn finish(&self, entry: &Entry) {
        if !entry.is_over.replace(true) && entry.referenced.get() {
            self.count_reference(false);
        }
    }
}

/// Sets the loop's timer for the next list on drop, even after a panic.
struct Rearm<'a>(&'a Node);

impl Drop for Rearm<'_> {
    fn drop(&mut self) {
        let node = &self.0.0;
        let mut lists = node.timers.lists.borrow_mut();
        let Some((expiry, _)) = lists.first() else {
            return;
        };
        lists.armed_for = expiry;
        drop(lists);
        // The callbacks may have taken long, and the loop must sleep for less.
        node.lp.update_time();
        node.arm(expiry);
    }
}

/// A timer whose callback runs. Dropping this restores the callback and restarts or ends the
/// timer, even after a panic.
struct Firing<'a> {
    node: &'a Node,
    entry: &'a Rc<Entry>,
    start: u64,
    callback: Option<Callback>,
}

impl Drop for Firing<'_> {
    fn drop(&mut self) {
        let Firing { node, entry, .. } = *self;
        if !entry.is_cleared.get() {
            *entry.callback.borrow_mut() = self.callback.take();
        }
        match entry.ms.get() {
            Some(ms) if entry.repeats => node.0.insert(entry, ms, self.start),
            _ if entry.place.get().is_none() => node.0.finish(entry),
            _ => {}
        }
    }
}

impl Node {
    /// Runs `callback` once, after `delay` at the earliest. Node's `setTimeout`.
    ///
    /// The delay is a number of milliseconds or a [`Duration`](std::time::Duration); see
    /// [`Delay`] for its limits. The callback receives the timer, and is kept after it has run,
    /// for [`Timeout::refresh`].
    ///
    /// ```
    /// use blacklight::node::Node;
    /// use std::{cell::RefCell, rc::Rc, time::Duration};
    ///
    /// let node = Node::new()?;
    /// let log = Rc::new(RefCell::new(Vec::new()));
    /// let (slow, fast) = (log.clone(), log.clone());
    /// node.set_timeout(move |_, _| slow.borrow_mut().push("slow"), Duration::from_millis(30));
    /// node.set_timeout(move |_, _| fast.borrow_mut().push("fast"), 1);
    /// node.run();
    /// assert_eq!(*log.borrow(), ["fast", "slow"]);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn set_timeout(
        &self,
        callback: impl FnMut(&Node, &Timeout) + 'static,
        delay: impl Into<Delay>,
    ) -> Timeout {
        self.start_timer(Box::new(callback), delay.into(), false)
    }

    /// Runs `callback` repeatedly until the timer is cleared, each time `delay` after the
    /// millisecond in which the previous call began. Node's `setInterval`.
    ///
    /// ```
    /// use blacklight::node::Node;
    ///
    /// let node = Node::new()?;
    /// let mut left = 3;
    /// node.set_interval(
    ///     move |_, interval| {
    ///         left -= 1;
    ///         if left == 0 {
    ///             interval.clear();
    ///         }
    ///     },
    ///     1,
    /// );
    /// node.run();
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn set_interval(
        &self,
        callback: impl FnMut(&Node, &Timeout) + 'static,
        delay: impl Into<Delay>,
    ) -> Timeout {
        self.start_timer(Box::new(callback), delay.into(), true)
    }

    /// Cancels a timer; the same as [`Timeout::clear`].
    ///
    /// ```
    /// use blacklight::node::Node;
    ///
    /// let node = Node::new()?;
    /// let timer = node.set_timeout(|_, _| unreachable!("it was cleared"), 1);
    /// node.clear_timeout(&timer);
    /// node.run();
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn clear_timeout(&self, timeout: &Timeout) {
        timeout.clear();
    }

    /// Cancels an interval; the same as [`Timeout::clear`].
    ///
    /// ```
    /// use blacklight::node::Node;
    ///
    /// let node = Node::new()?;
    /// node.set_interval(|node, interval| node.clear_interval(interval), 1);
    /// node.run();
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn clear_interval(&self, interval: &Timeout) {
        interval.clear();
    }

    fn start_timer(&self, callback: Callback, delay: Delay, repeats: bool) -> Timeout {
        if let Some(warning) = delay.warning() {
            self.warn(warning);
        }
        let ms = delay.as_ms();
        let entry = Rc::new(Entry {
            callback: RefCell::new(Some(callback)),
            ms: Cell::new(Some(ms)),
            repeats,
            start: Cell::new(0),
            place: Cell::new(None),
            referenced: Cell::new(true),
            is_over: Cell::new(false),
            is_cleared: Cell::new(false),
        });
        self.0.count_reference(true);
        self.0.insert(&entry, ms, self.0.start());
        Timeout {
            node: Rc::downgrade(&self.0),
            entry,
        }
    }

    fn run_timers(&self) {
        let _rearm = Rearm(self);
        let now = self.0.now();
        let lists = &self.0.timers.lists;
        lists.borrow_mut().armed_for = u64::MAX;
        let mut first = true;
        loop {
            let next = lists.borrow().first();
            let Some((_, ms)) = next.filter(|&(expiry, _)| expiry <= now) else {
                return;
            };
            if !first {
                self.run_tasks();
            }
            first = false;
            self.run_list(ms, now);
        }
    }

    fn run_list(&self, ms: u32, now: u64) {
        let lists = &self.0.timers.lists;
        let mut first = true;
        loop {
            let due = lists.borrow_mut().first_due(ms, now);
            let Some(entry) = due else { return };
            if !first {
                self.run_tasks();
            }
            first = false;
            lists.borrow_mut().unlink(&entry);
            self.fire(&entry);
        }
    }

    fn fire(&self, entry: &Rc<Entry>) {
        let callback = entry.callback.take();
        if callback.is_none() {
            // The timer was cleared by a task that ran after the timer was found due, or between
            // an earlier run and its refresh.
            self.0.finish(entry);
            return;
        }
        let mut firing = Firing {
            node: self,
            entry,
            start: if entry.repeats { self.0.now() } else { 0 },
            callback,
        };
        let timeout = Timeout {
            node: Rc::downgrade(&self.0),
            entry: entry.clone(),
        };
        if let Some(callback) = &mut firing.callback {
            callback(self, &timeout);
        }
    }
}

/// A handle to a timer; see [`Node::set_timeout`] and [`Node::set_interval`]. Clones refer to the
/// same timer; dropping them does not clear it.
///
/// ```
/// use blacklight::node::{Node, Timeout};
///
/// let node = Node::new()?;
/// let watchdog: Timeout = node.set_timeout(|_, _| panic!("nothing has happened"), 60_000);
/// node.set_timeout(
///     move |_, _| {
///         watchdog.refresh(); // Restarts the delay.
///         watchdog.unref(); // `run` need not wait for it.
///     },
///     1,
/// );
/// node.run();
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
pub struct Timeout {
    node: Weak<Inner>,
    entry: Rc<Entry>,
}

impl Timeout {
    /// Lets [`Node::run`] end while this timer is pending.
    ///
    /// ```
    /// use blacklight::node::Node;
    ///
    /// let node = Node::new()?;
    /// let timer = node.set_timeout(|_, _| unreachable!("`run` does not wait for it"), 60_000);
    /// timer.unref();
    /// assert!(!timer.has_ref());
    /// node.run();
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn unref(&self) -> &Timeout {
        self.set_referenced(false);
        self
    }

    /// Undoes [`unref`](Timeout::unref).
    ///
    /// ```
    /// use blacklight::node::Node;
    ///
    /// let node = Node::new()?;
    /// let timer = node.set_timeout(|_, _| println!("`run` waits for it again"), 1);
    /// timer.unref().r#ref();
    /// assert!(timer.has_ref());
    /// node.run();
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn r#ref(&self) -> &Timeout {
        self.set_referenced(true);
        self
    }

    /// Whether the timer keeps [`Node::run`] going while it is pending.
    ///
    /// ```
    /// use blacklight::node::Node;
    ///
    /// let node = Node::new()?;
    /// let timer = node.set_timeout(|_, _| unreachable!("`run` does not wait for it"), 60_000);
    /// assert!(timer.has_ref());
    /// timer.unref();
    /// assert!(!timer.has_ref());
    /// node.run();
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn has_ref(&self) -> bool {
        self.entry.referenced.get()
    }

    /// Restarts the timer's delay from now. A timer that has run runs again; a cleared one does
    /// not.
    ///
    /// ```
    /// use blacklight::node::Node;
    /// use std::{cell::Cell, rc::Rc};
    ///
    /// let node = Node::new()?;
    /// let runs = Rc::new(Cell::new(0));
    /// let count = runs.clone();
    /// let again = move |_: &Node, timer: &blacklight::node::Timeout| {
    ///     count.set(count.get() + 1);
    ///     if count.get() < 3 {
    ///         timer.refresh();
    ///     }
    /// };
    /// node.set_timeout(again, 1);
    /// node.run();
    /// assert_eq!(runs.get(), 3);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn refresh(&self) -> &Timeout {
        if let (Some(node), Some(ms)) = (self.node.upgrade(), self.entry.ms.get()) {
            node.insert(&self.entry, ms, node.start());
            if self.entry.is_over.replace(false) && self.entry.referenced.get() {
                node.count_reference(true);
            }
        }
        self
    }

    /// Cancels the timer, and drops its callback.
    ///
    /// ```
    /// use blacklight::node::Node;
    ///
    /// let node = Node::new()?;
    /// let timer = node.set_timeout(|_, _| unreachable!("it was cleared"), 1);
    /// timer.clear();
    /// timer.refresh(); // Too late.
    /// node.run();
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn clear(&self) {
        let entry = &self.entry;
        if entry.is_cleared.replace(true) {
            return;
        }
        let callback = entry.callback.take();
        if let Some(node) = self.node.upgrade()
            && !entry.is_over.replace(true)
        {
            let mut lists = node.timers.lists.borrow_mut();
            lists.unlink(entry);
            if let Some(ms) = entry.ms.take() {
                lists.remove_if_empty(ms);
            }
            drop(lists);
            if entry.referenced.get() {
                node.count_reference(false);
            }
        }
        // Dropped last, because values that the callback owns may use the timers in their own
        // drop.
        drop(callback);
    }

    fn set_referenced(&self, wanted: bool) {
        if self.entry.referenced.replace(wanted) != wanted
            && !self.entry.is_over.get()
            && let Some(node) = self.node.upgrade()
        {
            node.count_reference(wanted);
        }
    }
}

impl fmt::Debug for Timeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timeout")
            .field("ms", &self.entry.ms.get())
            .field("repeats", &self.entry.repeats)
            .field("has_ref", &self.has_ref())
            .finish_non_exhaustive()
    }
}
