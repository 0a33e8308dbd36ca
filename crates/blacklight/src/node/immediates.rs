//! Immediates: what runs in the check phase, right after the loop has polled.
//!
//! - A phase runs the immediates that were there when it began. What they add waits for the
//!   next turn, so that immediates which add immediates do not keep the loop from its I/O.
//! - A check handle, unreferenced and always started, runs them. While a referenced one
//!   waits, an idle handle is started, which keeps the loop alive and from sleeping.
//! - A cleared immediate stays in its queue without its callback, and is passed over.

use super::{Inner, Node, Task};
use crate::handle::{Handle, Single};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::rc::{Rc, Weak};

/// One that waits has its callback. Nothing is left of one that has run or was cleared.
struct Entry {
    callback: RefCell<Option<Task>>,
    referenced: Cell<bool>,
}

pub(super) struct Immediates {
    check: Rc<Handle<Single>>,
    idle: Rc<Handle<Single>>,
    /// For the next phase.
    waiting: RefCell<VecDeque<Rc<Entry>>>,
    /// What is left of the phase in progress, or of one that a panic has ended.
    running: RefCell<VecDeque<Rc<Entry>>>,
    /// How many that wait are referenced.
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

    /// Arranges for the check phase to come to us.
    pub(super) fn begin(node: &Node) -> std::io::Result<()> {
        let check = &node.0.immediates.check;
        let mut engine = node.0.lp.engine();
        engine.loop_watcher_start(check.key)?;
        engine.unreference(check.key);
        drop(engine);
        node.serve(check, Node::run_immediates);
        Ok(())
    }

    /// Drops all callbacks. One that owns its own [`Immediate`] would otherwise live for ever.
    pub(super) fn abandon(&mut self) {
        for queue in [&mut self.waiting, &mut self.running] {
            for entry in queue.get_mut() {
                entry.callback.take();
            }
        }
    }

    /// Counts a reference more or less, and lets the idle handle follow.
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
    /// Runs `callback` in the check phase: after the poll of this turn if that is still to
    /// come, and otherwise after that of the next. Node's `setImmediate`.
    ///
    /// Within an I/O callback an immediate always comes before any timer, because the check
    /// phase follows the poll phase, and the timers follow after it.
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

    /// Forgets an immediate that has not run yet; the same as [`Immediate::clear`].
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
            // Looked for only now: the tasks may have cleared it.
            let callback = entry.callback.take();
            let Some(callback) = callback else { continue };
            if entry.referenced.replace(false) {
                immediates.count(&self.0, false);
            }
            callback(self);
        }
    }
}

/// What [`Node::set_immediate`] returns. Clones are the same immediate; dropping them changes
/// nothing.
///
/// ```
/// use blacklight::node::Node;
///
/// let node = Node::new()?;
/// let unheard = node.set_immediate(|_| unreachable!("nobody waits for it"));
/// assert!(unheard.has_ref());
/// unheard.unref();
/// assert!(!unheard.has_ref());
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
    pub fn unref(&self) -> &Immediate {
        self.set_referenced(false);
        self
    }

    /// Takes [`unref`](Immediate::unref) back.
    ///
    /// ```
    /// use blacklight::node::Node;
    ///
    /// let node = Node::new()?;
    /// let immediate = node.set_immediate(|_| println!("it is waited for, after all"));
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

    /// Whether the immediate keeps [`Node::run`] going: not after it has run or was cleared.
    pub fn has_ref(&self) -> bool {
        self.entry.referenced.get()
    }

    /// Forgets the immediate, if it has not run yet.
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
