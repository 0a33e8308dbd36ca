//! Node's scheduling on a [`Loop`]: `setTimeout`, `setInterval`, `setImmediate`,
//! `process.nextTick` and `queueMicrotask`, in Rust and in Node's order.
//!
//! ```
//! use blacklight::node::Node;
//! use std::{cell::RefCell, rc::Rc};
//!
//! let node = Node::new()?;
//! let log = Rc::new(RefCell::new(Vec::new()));
//! let say = |word| {
//!     let log = log.clone();
//!     move |_: &Node| log.borrow_mut().push(word)
//! };
//!
//! node.set_immediate(say("immediate"));
//! node.queue_microtask(say("microtask"));
//! node.next_tick(say("tick"));
//! say("main")(&node);
//! node.run();
//! assert_eq!(*log.borrow(), ["main", "tick", "microtask", "immediate"]);
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! # A turn of the loop
//!
//! The code before [`Node::run`] corresponds to Node's main script. Then the loop takes turns for
//! as long as something keeps it alive:
//!
//! ```text
//!           main program ●
//!                │
//!       ┌────────▼────────┐
//!  ┌───►│     timers      │  set_timeout ●  set_interval ●
//!  │    └────────┬────────┘
//!  │          alive? ── no ──► on_before_exit ●
//!  │             │ yes               │
//!  │             │                alive? ── no ──► on_exit, microtasks
//!  ├◄────────────│────────── yes ────┘
//!  │    ┌────────▼────────┐
//!  │    │ pending, idle,  │  handles of the loop ●
//!  │    │ prepare         │
//!  │    ├─────────────────┤
//!  │    │      poll       │  files ●  sockets ●  wake-ups ●
//!  │    │                 │  (sleeps, unless there are immediates)
//!  │    ├─────────────────┤
//!  │    │      check      │  set_immediate ●
//!  │    ├─────────────────┤
//!  │    │     closing     │  closed handles ●
//!  │    └────────┬────────┘
//!  └─────────────┘
//!
//!  ● = next_tick, until there are none; queue_microtask, until there are none;
//!      and again, while there are ticks
//! ```
//!
//! - **Ticks and microtasks** run after *every* callback: at each ● above, between two timers or
//!   two immediates of one phase, and after the callbacks of [`AsyncFd`], [`Async`] and all other
//!   handles of the same loop. Ticks come first. A tick that queues ticks for ever starves the
//!   loop.
//! - **Immediates** run once per turn: an immediate that another one sets waits for the next
//!   turn.
//! - **Timers** of one duration run in the order in which they were started. A timer set by a
//!   timer waits for a later turn. In an I/O callback, an immediate always comes before a timer.
//! - From the main program, the order of `set_timeout(…, 0)` and `set_immediate` depends on
//!   whether a millisecond has passed when the loop begins: as in Node, do not rely on it.
//!
//! # Coming from Node
//!
//! | Node | here |
//! | --- | --- |
//! | `setTimeout(f, ms)`, `clearTimeout(t)` | [`Node::set_timeout`], [`Node::clear_timeout`] or [`Timeout::clear`] |
//! | `setInterval(f, ms)`, `clearInterval(t)` | [`Node::set_interval`], [`Node::clear_interval`] |
//! | `t.ref()`, `t.unref()`, `t.hasRef()`, `t.refresh()` | [`Timeout::ref`], [`Timeout::unref`], [`Timeout::has_ref`], [`Timeout::refresh`] |
//! | `setImmediate(f)`, `clearImmediate(i)` | [`Node::set_immediate`], [`Node::clear_immediate`] or [`Immediate::clear`] |
//! | `process.nextTick(f)` | [`Node::next_tick`] |
//! | `queueMicrotask(f)`, `Promise.resolve().then(f)` | [`Node::queue_microtask`] |
//! | `process.on('beforeExit', f)`, `process.on('exit', f)` | [`Node::on_before_exit`], [`Node::on_exit`] |
//! | `process.on('warning', f)` | [`Node::on_warning`], in place of printing |
//! | `fs.readFile`, `fs.writeFile`, `fs.stat` | [`fs`] |
//!
//! Callbacks receive the [`Node`], so that they need not own a clone of it; those of timers also
//! receive the [`Timeout`], which is `this` in JavaScript.
//!
//! A panic in a callback ends [`Node::run`], and nothing else is lost: a program that catches the
//! panic may call `run` again, which continues with the next callback.
//!
//! # Coming from Rust
//!
//! A [`Node`] is a reference to the scheduler of one loop, cheap to clone and not `Send`. Handles
//! and tasks of the same loop work as usual. Woken tasks run after ticks and microtasks. Tasks
//! that timers or immediates woke run after all timers or immediates of that phase.
//!
//! ```
//! use blacklight::{Async, node::Node};
//!
//! let node = Node::new()?;
//! let wakeup = Async::new(|lp, wakeup| {
//!     wakeup.unref();
//!     let node = lp.node().expect("it is there already");
//!     node.next_tick(|_| println!("right after this callback"));
//! })?;
//! wakeup.sender().send();
//! node.run();
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! [`AsyncFd`]: crate::AsyncFd
//! [`Async`]: crate::Async

mod delay;
pub mod fs;
mod immediates;
mod timers;

pub use delay::{Delay, TIMEOUT_MAX, Warning, WarningKind};
pub use immediates::Immediate;
pub use timers::Timeout;

use crate::code::Code;
use crate::handle::{Handle, Single};
use crate::loop_::{Loop, LoopHandle};
use blacklight_engine::Mode;
use immediates::Immediates;
use std::cell::{Cell, RefCell};
use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::io;
use std::process;
use std::rc::Rc;
use timers::Timers;

/// A callback that runs once.
type Task = Box<dyn FnOnce(&Node)>;

/// Listeners of an event. Shared, so that a listener may add another.
type Listeners = RefCell<Vec<Rc<RefCell<dyn FnMut(&Node)>>>>;

type WarningHook = Rc<RefCell<dyn FnMut(&Node, &Warning)>>;

pub(crate) struct Inner {
    lp: LoopHandle,
    /// The loop, if it belongs to this Node.
    own: Cell<Option<Loop>>,
    ticks: RefCell<VecDeque<Task>>,
    microtasks: RefCell<VecDeque<Task>>,
    timers: Timers,
    immediates: Immediates,
    before_exit: Listeners,
    exit: Listeners,
    /// Whether exit listeners run, during which new ticks are dropped.
    is_exiting: Cell<bool>,
    warning_hook: RefCell<Option<WarningHook>>,
    /// The kinds that warn only once and have done so.
    warned: RefCell<HashSet<WarningKind>>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.timers.abandon();
        self.immediates.abandon();
    }
}

impl Loop {
    /// Returns the Node on this loop, which the Node owns from now on.
    ///
    /// ```
    /// use blacklight::Loop;
    ///
    /// let node = Loop::builder().name("node").build()?.into_node()?;
    /// node.set_timeout(|node, _| assert_eq!(node.event_loop().name(), "node"), 1);
    /// node.run();
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn into_node(self) -> io::Result<Node> {
        let node = self.node()?;
        node.0.own.set(Some(self));
        Ok(node)
    }
}

impl LoopHandle {
    /// Returns the Node on this loop, creating it if necessary. A loop has at most one.
    ///
    /// ```
    /// use blacklight::Loop;
    ///
    /// let lp = Loop::new()?;
    /// let node = lp.node()?;
    /// lp.node()?.next_tick(|_| println!("the same Node"));
    /// node.run();
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn node(&self) -> io::Result<Node> {
        match self.existing_node() {
            Some(node) => Ok(Node(node)),
            None => Node::on(self),
        }
    }
}

/// Node's scheduler on one loop. Clones refer to the same scheduler.
///
/// The scheduler and everything scheduled on it are dropped with the last clone. A callback that
/// owns a clone and neither runs nor is cleared leaks: use the `Node` that the callback receives.
///
/// See the [module](self) for the order of callbacks.
///
/// ```
/// use blacklight::node::Node;
/// use std::{cell::RefCell, rc::Rc};
///
/// let node = Node::new()?;
/// let log = Rc::new(RefCell::new(Vec::new()));
/// let (tick, timer) = (log.clone(), log.clone());
/// node.set_timeout(
///     move |node, _| {
///         timer.borrow_mut().push("timer");
///         let tick = tick.clone();
///         node.next_tick(move |_| tick.borrow_mut().push("tick"));
///     },
///     1,
/// );
/// node.run();
/// assert_eq!(*log.borrow(), ["timer", "tick"]);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
pub struct Node(pub(crate) Rc<Inner>);

impl Node {
    /// Creates a Node on a new loop.
    ///
    /// ```
    /// let node = blacklight::node::Node::new()?;
    /// node.set_timeout(|_, _| println!("a millisecond later"), 1);
    /// node.run();
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn new() -> io::Result<Node> {
        Loop::new()?.into_node()
    }

    fn on(lp: &LoopHandle) -> io::Result<Node> {
        let (timer, ()) = Handle::single(lp, |engine, token| Ok((engine.timer_init(token)?, ())))?;
        let (check, ()) = Handle::single(lp, |engine, token| Ok((engine.check_init(token)?, ())))?;
        let (idle, ()) = Handle::single(lp, |engine, token| Ok((engine.idle_init(token)?, ())))?;
        let node = Node(Rc::new(Inner {
            lp: lp.clone(),
            own: Cell::new(None),
            ticks: RefCell::default(),
            microtasks: RefCell::default(),
            timers: Timers::new(timer),
            immediates: Immediates::new(check, idle),
            before_exit: RefCell::default(),
            exit: RefCell::default(),
            is_exiting: Cell::new(false),
            warning_hook: RefCell::default(),
            warned: RefCell::default(),
        }));
        Timers::begin(&node);
        Immediates::begin(&node)?;
        lp.set_node(Rc::downgrade(&node.0));
        Ok(node)
    }

    /// Makes a handle of the loop call a method of this Node.
    fn serve(&self, handle: &Handle<Single>, method: fn(&Node)) {
        let weak = Rc::downgrade(&self.0);
        handle.set_callback(Code::of(&weak), move |_, _, _| {
            if let Some(node) = weak.upgrade() {
                method(&Node(node));
            }
        });
    }

    /// The loop that this Node runs on.
    ///
    /// ```
    /// use blacklight::{Idle, node::Node};
    ///
    /// let node = Node::new()?;
    /// let idle = Idle::new()?;
    /// idle.start(|_, idle| idle.stop())?;
    /// node.run();
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn event_loop(&self) -> &LoopHandle {
        &self.0.lp
    }

    /// Runs `callback` right after the current callback, before the loop continues. Node's
    /// `process.nextTick`.
    ///
    /// Ticks run in the order of queueing and before microtasks, including ticks queued
    /// meanwhile. Ticks queued while [exit listeners](Node::on_exit) run are dropped.
    ///
    /// ```
    /// use blacklight::node::Node;
    /// use std::{cell::Cell, rc::Rc};
    ///
    /// let node = Node::new()?;
    /// let bar = Rc::new(Cell::new(None));
    /// let seen = bar.clone();
    /// node.next_tick(move |_| assert_eq!(seen.get(), Some(1)));
    /// bar.set(Some(1));
    /// node.run();
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn next_tick(&self, callback: impl FnOnce(&Node) + 'static) {
        if !self.0.is_exiting.get() {
            self.0.ticks.borrow_mut().push_back(Box::new(callback));
        }
    }

    /// Runs `callback` when no ticks are left. Node's `queueMicrotask`, and the same as `then` on
    /// a settled promise.
    ///
    /// Microtasks run in the order of queueing, including those queued meanwhile. Ticks that they
    /// queue run afterwards.
    ///
    /// ```
    /// use blacklight::node::Node;
    /// use std::{cell::RefCell, rc::Rc};
    ///
    /// let node = Node::new()?;
    /// let log = Rc::new(RefCell::new(Vec::new()));
    /// let (one, two, tick) = (log.clone(), log.clone(), log.clone());
    /// node.queue_microtask(move |node| {
    ///     one.borrow_mut().push("one");
    ///     node.next_tick(move |_| tick.borrow_mut().push("tick"));
    ///     node.queue_microtask(move |_| two.borrow_mut().push("two"));
    /// });
    /// node.run();
    /// assert_eq!(*log.borrow(), ["one", "two", "tick"]);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn queue_microtask(&self, callback: impl FnOnce(&Node) + 'static) {
        self.0.microtasks.borrow_mut().push_back(Box::new(callback));
    }

    /// Runs all ticks and microtasks. The loop calls this after every callback.
    pub(crate) fn run_tasks(&self) {
        loop {
            self.run_all(&self.0.ticks);
            self.run_all(&self.0.microtasks);
            if self.0.ticks.borrow().is_empty() {
                return;
            }
        }
    }

    fn run_all(&self, queue: &RefCell<VecDeque<Task>>) {
        loop {
            // Ends the borrow of the queue before the task runs.
            let task = queue.borrow_mut().pop_front();
            let Some(task) = task else { return };
            task(self);
        }
    }

    /// Calls `listener` whenever the loop has nothing left to do. If the listener schedules
    /// something, the loop runs it and calls the listener again; otherwise [`Node::run`] ends.
    /// Node's `process.on('beforeExit', …)`.
    ///
    /// ```
    /// use blacklight::node::Node;
    ///
    /// let node = Node::new()?;
    /// let mut encores = 2;
    /// node.on_before_exit(move |node| {
    ///     if encores > 0 {
    ///         encores -= 1;
    ///         node.set_immediate(|_| println!("once more"));
    ///     }
    /// });
    /// node.run();
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn on_before_exit(&self, listener: impl FnMut(&Node) + 'static) {
        let listener = Rc::new(RefCell::new(listener));
        self.0.before_exit.borrow_mut().push(listener);
    }

    /// Calls `listener` at the end of [`Node::run`]. Of the callbacks that it schedules, only
    /// microtasks still run. Node's `process.on('exit', …)`.
    ///
    /// ```
    /// use blacklight::node::Node;
    ///
    /// let node = Node::new()?;
    /// node.on_exit(|_| println!("good night"));
    /// node.run();
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn on_exit(&self, listener: impl FnMut(&Node) + 'static) {
        let listener = Rc::new(RefCell::new(listener));
        self.0.exit.borrow_mut().push(listener);
    }

    /// Calls the present listeners, with no ticks or microtasks between them.
    fn emit(&self, listeners: &Listeners) {
        let present = listeners.borrow().clone();
        for listener in present {
            (listener.borrow_mut())(self);
        }
    }

    /// Calls `hook` with each [`Warning`], in place of printing it to the standard error
    /// stream as Node does.
    ///
    /// The hook runs as a tick.
    ///
    /// ```
    /// use blacklight::node::Node;
    ///
    /// let node = Node::new()?;
    /// node.on_warning(|_, warning| assert_eq!(warning.name(), "TimeoutNegativeWarning"));
    /// node.set_timeout(|_, _| (), -1);
    /// node.run();
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn on_warning(&self, hook: impl FnMut(&Node, &Warning) + 'static) {
        let hook = Rc::new(RefCell::new(hook));
        let before = self.0.warning_hook.borrow_mut().replace(hook);
        drop(before);
    }

    /// Queues a warning, unless its kind warns only once and has done so.
    fn warn(&self, warning: Warning) {
        let kind = warning.kind();
        if kind == WarningKind::Overflow || self.0.warned.borrow_mut().insert(kind) {
            self.next_tick(move |node| node.report(&warning));
        }
    }

    fn report(&self, warning: &Warning) {
        let hook = self.0.warning_hook.borrow().clone();
        match hook {
            Some(hook) => (hook.borrow_mut())(self, warning),
            None => eprintln!("(node:{}) {warning}", process::id()),
        }
    }

    /// Runs the loop until nothing keeps it alive, then calls the exit listeners and returns
    /// `false`. Returns `true` if the loop was [stopped](LoopHandle::stop) before: then no listener was
    /// called, and another `run` continues.
    ///
    /// ```
    /// use blacklight::node::Node;
    ///
    /// let node = Node::new()?;
    /// let tick = node.set_interval(|node, _| node.event_loop().stop(), 1);
    /// assert!(node.run());
    /// tick.clear();
    /// assert!(!node.run());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Panics
    ///
    /// If the loop is running already, and if a callback panics.
    pub fn run(&self) -> bool {
        self.run_tasks();
        loop {
            if self.0.lp.run_to(Mode::Default) {
                return true;
            }
            self.emit(&self.0.before_exit);
            self.run_tasks();
            // The listeners, or the tasks after them, may have scheduled something.
            if !self.0.lp.is_alive() {
                break;
            }
        }
        let _exiting = Exiting::begin(&self.0.is_exiting);
        self.emit(&self.0.exit);
        self.run_tasks();
        false
    }
}

/// Sets the flag while exit listeners run, and clears it even after a panic.
struct Exiting<'a>(&'a Cell<bool>);

impl Exiting<'_> {
    fn begin(flag: &Cell<bool>) -> Exiting<'_> {
        flag.set(true);
        Exiting(flag)
    }
}

impl Drop for Exiting<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node")
            .field("loop", &self.0.lp)
            .field("ticks", &self.0.ticks.borrow().len())
            .field("microtasks", &self.0.microtasks.borrow().len())
            .finish_non_exhaustive()
    }
}
