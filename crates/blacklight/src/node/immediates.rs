//! Immediates: callbacks of the check phase, right after the loop has polled.
//!
//! - A phase runs the immediates that were set before it began. Immediates that they set wait for
//!   the next turn, so that they do not starve I/O.
//! - A check handle, unreferenced and always started, runs the immediates. While a referenced
//!   immediate is pending, a started idle handle keeps the loop alive and awake.
//! - A cleared immediate stays in its queue without its callback, and is skipped.

use super::{Inner, Node, Task};
use crate::handle::{Handle, Single};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::rc::{Rc, Weak};

/// An immediate, which has its callback until it runs or is cleared.
struct Entry {
    callback: RefCell<Option<Task>>,
    referenced: Cell<bool>,
}

pub(super) struct Immediates {
    check: Rc<Handle<Single>>,
    idle: Rc<Handle<Single>>,
    /// Immediates for the next phase.
    waiting: RefCell<VecDeque<Rc<Entry>>>,
    /// The rest of the phase in progress, or of one that a panic ended.
    running: RefCell<VecDeque<Rc<Entry>>>,
    /// The number of referenced pending immediates.
    references: Cell<usize>,
}

impl Immediates {
    pub(super) fn new(check: Rc<Handle<Single>>, idle: Rc<Handle<Single>>) -> Immediates {
        Immediates {
            check,
            idle,
            waiting: RefCell::default(),
            running: RefCell::default(),
            references: Cell::new(0),
        }
    }

    /// Starts the check handle.
    pub(super) fn begin(node: &Node) -> std::io::Result<()> {
        let check = &node.0.immediates.check;
        let mut engine = node.0.lp.engine();
        engine.loop_watcher_start(check.key)?;
        engine.unreference(check.key);
        drop(engine);
        node.serve(check, Node::run_immediates);
        Ok(())
    }

    /// Drops all callbacks. A callback that owns its own [`Immediate`] would leak otherwise.
    pub(super) fn abandon(&mut self) {
        for queue in [&mut self.waiting, &mut self.running] {
            for entry in queue.get_mut() {
                entry.callback.take();
            }
        }
    }

    /// Adds or removes a reference, and starts or stops the idle handle accordingly.
    fn count(&self, node: &Inner, more: bool) {
        let before = self.references.get();
        let now = if more { before + 1 } else { before - 1 };
        self.references.set(now);
        let key = self.idle.key;
        let switched = match (before, now) {
            (0, _) => node.lp.engine().loop_watcher_start(key),
            (_, 0) => node.lp.engine().loop_watcher_stop(key),
            _ => Ok(()),
        };
        debug_assert!(switched.is_ok(), "the handle is ours and open");
    }
}

impl Node {
    /// Runs `callback` in the check phase: of this turn if that is still to come, or else of the
    /// next turn. Node's `setImmediate`.
    ///
    /// An immediate set in an I/O callback always runs before any timer, because the check phase
    /// comes between the poll phase and the timers.
    ///
    /// ```
    /// use blacklight::node::{Node, fs};
    /// use std::{cell::RefCell, rc::Rc};
    ///
    /// let node = Node::new()?;
    /// let log = Rc::new(RefCell::new(Vec::new()));
    /// let (timeout, immediate) = (log.clone(), log.clone());
    /// fs::stat(&node, "/", move |node, _| {
    ///     node.set_timeout(move |_, _| timeout.borrow_mut().push("timeout"), 0);
    ///     node.set_immediate(move |_| immediate.borrow_mut().push("immediate"));
    /// })?;
    /// node.run();
    /// assert_eq!(*log.borrow(), ["immediate", "timeout"]);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn set_immediate(&self, callback: impl FnOnce(&Node) + 'static) -> Immediate {
        let entry = Rc::new(Entry {
            callback: RefCell::new(Some(Box::new(callback))),
            referenced: Cell::new(true),
        });
        let immediates = &self.0.immediates;
        immediates.waiting.borrow_mut().push_back(entry.clone());
        immediates.count(&self.0, true);
        Immediate {
            node: Rc::downgrade(&self.0),
            entry,
        }
    }

    /// Cancels an immediate that has not run yet; the same as [`Immediate::clear`].
    ///
    /// ```
    /// use blacklight::node::Node;
    ///
    /// let node = Node::new()?;
    /// let immediate = node.set_immediate(|_| unreachable!("it was cleared"));
    /// node.clear_immediate(&immediate);
    /// node.run();
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn clear_immediate(&self, immediate: &Immediate) {
        immediate.clear();
    }

    fn run_immediates(&self) {
        let immediates = &self.0.immediates;
        if immediates.running.borrow().is_empty() {
            immediates.running.swap(&immediates.waiting);
        }
        let mut first = true;
        loop {
            let next = immediates.running.borrow_mut().pop_front();
            let Some(entry) = next else { break };
            if !first {
                self.run_tasks();
            }
            first = false;
            // Taken only now, because the tasks may have cleared it.
            let callback = entry.callback.take();
            let Some(callback) = callback else { continue };
            if entry.referenced.replace(false) {
                immediates.count(&self.0, false);
            }
            callback(self);
        }
    }
}

/// A handle to an immediate; see [`Node::set_immediate`]. Clones refer to the same immediate;
/// dropping them does not clear it.
///
/// ```
/// use blacklight::node::Node;
///
/// let node = Node::new()?;
/// let unreferenced = node.set_immediate(|_| unreachable!("`run` does not wait for it"));
/// assert!(unreferenced.has_ref());
/// unreferenced.unref();
/// assert!(!unreferenced.has_ref());
/// node.run();
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
pub struct Immediate {
    node: Weak<Inner>,
    entry: Rc<Entry>,
}

impl Immediate {
    /// Lets [`Node::run`] end without running this immediate.
    ///
    /// ```
    /// use blacklight::node::Node;
    ///
    /// let node = Node::new()?;
    /// node.set_immediate(|_| unreachable!("nothing waits for it")).unref();
    /// node.run();
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn unref(&self) -> &Immediate {
        self.set_referenced(false);
        self
    }

    /// Undoes [`unref`](Immediate::unref).
    ///
    /// ```
    /// use blacklight::node::Node;
    ///
    /// let node = Node::new()?;
    /// let immediate = node.set_immediate(|_| println!("`run` waits for it again"));
    /// immediate.unref().r#ref();
    /// assert!(immediate.has_ref());
    /// node.run();
    /// assert!(!immediate.has_ref());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn r#ref(&self) -> &Immediate {
        self.set_referenced(true);
        self
    }

    /// Whether the immediate keeps [`Node::run`] going. False after it has run or was cleared.
    ///
    /// ```
    /// use blacklight::node::Node;
    ///
    /// let node = Node::new()?;
    /// let immediate = node.set_immediate(|_| ());
    /// assert!(immediate.has_ref());
    /// immediate.clear();
    /// assert!(!immediate.has_ref());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn has_ref(&self) -> bool {
        self.entry.referenced.get()
    }

    /// Cancels the immediate, if it has not run yet.
    ///
    /// ```
    /// use blacklight::node::Node;
    ///
    /// let node = Node::new()?;
    /// node.set_immediate(|node| {
    ///     let next = node.set_immediate(|_| unreachable!("it was cleared"));
    ///     node.next_tick(move |_| next.clear());
    /// });
    /// node.run();
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn clear(&self) {
        self.set_referenced(false);
        let callback = self.entry.callback.take();
        drop(callback);
    }

    fn set_referenced(&self, wanted: bool) {
        let waits = self.entry.callback.borrow().is_some();
        if !waits || self.entry.referenced.replace(wanted) == wanted {
            return;
        }
        if let Some(node) = self.node.upgrade() {
            node.immediates.count(&node, wanted);
        }
    }
}

impl fmt::Debug for Immediate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Immediate")
            .field("has_ref", &self.has_ref())
            .finish_non_exhaustive()
    }
}
