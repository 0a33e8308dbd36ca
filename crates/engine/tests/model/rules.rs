//! The rules of the loop, written down as plainly as they can be said.
//!
//! This is what the documentation of libuv, and a look at what the original does, would
//! make one write who has all the time in the world: vectors that are searched from end to
//! end, and handles that are numbered in the order of their creation and never forgotten.
//! Nothing here is taken from the engine, so the two are unlikely to be wrong together.
//!
//! Here are the handles and what one can do with them; `turn.rs` runs the loop, and
//! `watch.rs` watches descriptors.

use crate::oracle::Oracle;
use crate::watch::Spin;
use crate::world::World;
use blacklight_engine::{Errno, HandleKind, Mode, RawFd};

pub(crate) const NS_PER_MS: u64 = 1_000_000;

/// The states of a run, in their order. `TimersFirst` is for the default mode only.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Phase {
    Enter,
    TimersFirst,
    Turn,
    Pending,
    Idle,
    Prepare,
    Io,
    Asyncs,
    PendingAgain,
    Check,
    Closing,
    Timers,
    Done,
}

/// How far a handle is on its way out.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Life {
    Open,
    Closing,
    Gone,
}

/// A handle. Each kind uses the fields that it needs.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Handle {
    pub(crate) kind: HandleKind,
    pub(crate) life: Life,
    pub(crate) active: bool,
    pub(crate) referenced: bool,
    pub(crate) due_ns: u64,
    pub(crate) repeat_ms: u64,
    /// The number of the start that holds: timers that are due at the same time run in the
    /// order of starting. Zero when stopped.
    pub(crate) start: u64,
    pub(crate) fd: RawFd,
    /// The conditions that the owner wants to hear of.
    pub(crate) wanted: u32,
    /// The conditions that the kernel has been asked for: not yet all that are wanted, or still more.
    pub(crate) asked: u32,
}

/// The started handles of one phase, and those that the phase has still to run.
#[derive(Clone, PartialEq, Default, Debug)]
pub(crate) struct List {
    pub(crate) started: Vec<usize>,
    pub(crate) aside: Vec<usize>,
}

impl List {
    /// Opens the phase. Those whom a run that was given up, or that waits for this one to end, has
    /// left out go first, and alone.
    pub(crate) fn begin(&mut self) {
        if self.aside.is_empty() {
            self.aside = std::mem::take(&mut self.started);
        }
    }

    /// The next handle to run, which goes to the end of the list.
    pub(crate) fn next(&mut self) -> Option<usize> {
        if self.aside.is_empty() {
            return None;
        }
        let id = self.aside.remove(0);
        self.started.push(id);
        Some(id)
    }

    /// Whether nobody is started.
    pub(crate) fn is_empty(&self) -> bool {
        self.started.is_empty() && self.aside.is_empty()
    }

    fn remove(&mut self, id: usize) {
        self.started.retain(|&other| other != id);
        self.aside.retain(|&other| other != id);
    }
}

/// A run, as far as others do not go on with what it leaves.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Run {
    pub(crate) mode: Mode,
    pub(crate) phase: Phase,
    pub(crate) alive: bool,
    pub(crate) may_sleep: bool,
}

impl Run {
    pub(crate) fn new(mode: Mode, phase: Phase) -> Run {
        Run {
            mode,
            phase,
            alive: false,
            may_sleep: false,
        }
    }
}

#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Model {
    pub(crate) world: World,
    pub(crate) handles: Vec<Handle>,
    /// The cached time.
    pub(crate) now_ns: u64,
    pub(crate) stop: bool,
    pub(crate) starts: u64,
    /// Timers that the phase has found due and has still to run, with their starts.
    pub(crate) ready: Vec<(usize, u64)>,
    pub(crate) idle: List,
    pub(crate) prepare: List,
    pub(crate) check: List,
    /// Async handles that have been sent to, and those about to be called, in no order.
    pub(crate) mail: Vec<usize>,
    pub(crate) delivering: Vec<usize>,
    /// Handles to be finished, and those that the closing phase is finishing.
    pub(crate) closing: Vec<usize>,
    pub(crate) closing_now: Vec<usize>,
    /// The events of the last wait that have not been handed out, in no order.
    pub(crate) batch: Vec<(usize, u32)>,
    /// Poll handles that the kernel has refused to watch.
    pub(crate) pending: Vec<(usize, Errno)>,
    /// All handles in the order of their creation, and those that walks in progress have still to visit.
    pub(crate) all: Vec<usize>,
    pub(crate) walks: Vec<Vec<usize>>,
    pub(crate) run: Run,
    /// The runs whose callbacks have begun that one, the innermost last.
    pub(crate) outer: Vec<Run>,
    /// Whether refused poll handles may be left over by the first pending phase: it tells as many
    /// as there were when it began, and another run may have told those and found more.
    pub(crate) pending_may_wait: bool,
    /// Whether the last wait has found that something was sent.
    pub(crate) had_mail: bool,
    pub(crate) spin: Spin,
    pub(crate) loop_count: u64,
    pub(crate) events: u64,
    pub(crate) events_waiting: u64,
    /// The time spent in waits that were allowed to sleep.
    pub(crate) slept_ns: u64,
}

impl Model {
    pub(crate) fn new(now_ns: u64) -> Model {
        Model {
            world: World::new(now_ns),
            handles: Vec::new(),
            now_ns,
            stop: false,
            starts: 0,
            ready: Vec::new(),
            idle: List::default(),
            prepare: List::default(),
            check: List::default(),
            mail: Vec::new(),
            delivering: Vec::new(),
            closing: Vec::new(),
            closing_now: Vec::new(),
            batch: Vec::new(),
            pending: Vec::new(),
            all: Vec::new(),
            walks: Vec::new(),
            run: Run::new(Mode::Default, Phase::Done),
            outer: Vec::new(),
            pending_may_wait: false,
            had_mail: false,
            spin: Spin::default(),
            loop_count: 0,
            events: 0,
            events_waiting: 0,
            slept_ns: 0,
        }
    }

    /// A new handle: inactive, unless it is an async one, and referenced.
    pub(crate) fn init(&mut self, kind: HandleKind, fd: RawFd) -> usize {
        self.handles.push(Handle {
            kind,
            life: Life::Open,
            active: kind == HandleKind::Async,
            referenced: true,
            due_ns: 0,
            repeat_ms: 0,
            start: 0,
            fd,
            wanted: 0,
            asked: 0,
        });
        let id = self.handles.len() - 1;
        self.all.push(id);
        id
    }

    /// Nothing can be done with a handle of another kind or one that has been closed.
    fn expect(&self, id: usize, kinds: &[HandleKind]) -> Result<(), Errno> {
        let handle = &self.handles[id];
        if handle.life == Life::Open && kinds.contains(&handle.kind) {
            Ok(())
        } else {
            Err(Errno::EINVAL)
        }
    }

    fn expect_timer(&self, id: usize) -> Result<(), Errno> {
        self.expect(id, &[HandleKind::Timer])
    }

    pub(crate) fn arm(&mut self, id: usize, timeout_ms: u64) {
        self.starts += 1;
        let timeout_ns = timeout_ms.saturating_mul(NS_PER_MS);
        let handle = &mut self.handles[id];
        handle.due_ns = self.now_ns.saturating_add(timeout_ns);
        handle.start = self.starts;
        handle.active = true;
    }

    pub(crate) fn timer_start(
        &mut self,
        id: usize,
        timeout_ms: u64,
        repeat_ms: u64,
    ) -> Result<(), Errno> {
        self.expect_timer(id)?;
        self.handles[id].repeat_ms = repeat_ms;
        self.arm(id, timeout_ms);
        Ok(())
    }

    pub(crate) fn timer_stop(&mut self, id: usize) -> Result<(), Errno> {
        self.expect_timer(id)?;
        self.halt(id);
        Ok(())
    }

    pub(crate) fn timer_again(&mut self, id: usize) -> Result<(), Errno> {
        self.expect_timer(id)?;
        let repeat_ms = self.handles[id].repeat_ms;
        if repeat_ms != 0 {
            self.arm(id, repeat_ms);
        }
        Ok(())
    }

    pub(crate) fn timer_set_repeat(&mut self, id: usize, repeat_ms: u64) -> Result<(), Errno> {
        self.expect_timer(id)?;
        self.handles[id].repeat_ms = repeat_ms;
        Ok(())
    }

    pub(crate) fn timer_repeat(&self, id: usize) -> Result<u64, Errno> {
        self.expect_timer(id)?;
        Ok(self.handles[id].repeat_ms)
    }

    pub(crate) fn timer_due(&self, id: usize) -> Result<u64, Errno> {
        self.expect_timer(id)?;
        Ok(self.handles[id].due_ns / NS_PER_MS)
    }

    pub(crate) fn timer_due_in(&self, id: usize) -> Result<u64, Errno> {
        self.expect_timer(id)?;
        let left_ns = self.handles[id].due_ns.saturating_sub(self.now_ns);
        Ok(left_ns.div_ceil(NS_PER_MS))
    }

    fn list(&mut self, kind: HandleKind) -> Option<&mut List> {
        match kind {
            HandleKind::Idle => Some(&mut self.idle),
            HandleKind::Prepare => Some(&mut self.prepare),
            HandleKind::Check => Some(&mut self.check),
            _ => None,
        }
    }

    fn expect_loop_watcher(&self, id: usize) -> Result<(), Errno> {
        self.expect(
            id,
            &[HandleKind::Idle, HandleKind::Prepare, HandleKind::Check],
        )
    }

    /// Starts an idle, prepare or check handle: the last started runs first.
    pub(crate) fn loop_watcher_start(&mut self, id: usize) -> Result<(), Errno> {
        self.expect_loop_watcher(id)?;
        if !self.handles[id].active {
            self.handles[id].active = true;
            if let Some(list) = self.list(self.handles[id].kind) {
                list.started.insert(0, id);
            }
        }
        Ok(())
    }

    pub(crate) fn loop_watcher_stop(&mut self, id: usize) -> Result<(), Errno> {
        self.expect_loop_watcher(id)?;
        self.halt(id);
        Ok(())
    }

    /// Sends to an async handle. A handle that has been sent to and not been called yet has
    /// nothing more to hear; nor has one that is closed.
    pub(crate) fn send(&mut self, id: usize) {
        let on_its_way = self.mail.contains(&id) || self.delivering.contains(&id);
        if self.handles[id].life == Life::Open && !on_its_way {
            self.mail.push(id);
        }
    }

    /// Another handle that watches the descriptor.
    fn is_watched(&self, fd: RawFd, by_other_than: Option<usize>) -> bool {
        let mut others = (0..self.handles.len()).filter(|&id| Some(id) != by_other_than);
        others.any(|id| self.handles[id].wanted != 0 && self.handles[id].fd == fd)
    }

    pub(crate) fn poll_init(&mut self, fd: RawFd) -> Result<usize, Errno> {
        if self.is_watched(fd, None) {
            return Err(Errno::EEXIST);
        }
        self.world.ready(fd).ok_or(Errno::EBADF)?;
        Ok(self.init(HandleKind::Poll, fd))
    }

    pub(crate) fn poll_start(&mut self, id: usize, wanted: u32) -> Result<(), Errno> {
        self.expect(id, &[HandleKind::Poll])?;
        if self.is_watched(self.handles[id].fd, Some(id)) {
            return Err(Errno::EEXIST);
        }
        if wanted == 0 {
            self.halt(id);
        } else {
            self.handles[id].wanted = wanted;
            self.handles[id].active = true;
        }
        Ok(())
    }

    pub(crate) fn poll_stop(&mut self, id: usize) -> Result<(), Errno> {
        self.expect(id, &[HandleKind::Poll])?;
        self.halt(id);
        Ok(())
    }

    pub(crate) fn poll_fd(&self, id: usize) -> Result<RawFd, Errno> {
        let handle = &self.handles[id];
        match (handle.life, handle.kind) {
            (Life::Open, HandleKind::Poll) => Ok(handle.fd),
            (Life::Open, _) => Err(Errno::EINVAL),
            _ => Err(Errno::EBADF),
        }
    }

    /// Stops a handle of any kind. Nothing that has been found out before reaches it.
    pub(crate) fn halt(&mut self, id: usize) {
        let handle = &mut self.handles[id];
        handle.active = false;
        handle.start = 0;
        handle.wanted = 0;
        handle.asked = 0;
        self.batch.retain(|&(other, _)| other != id);
        self.pending.retain(|&(other, _)| other != id);
        if let Some(list) = self.list(self.handles[id].kind) {
            list.remove(id);
        }
    }

    pub(crate) fn close(&mut self, id: usize) -> Result<(), Errno> {
        if self.handles[id].life != Life::Open {
            return Err(Errno::EINVAL);
        }
        self.halt(id);
        self.handles[id].life = Life::Closing;
        self.closing.push(id);
        Ok(())
    }

    pub(crate) fn set_referenced(&mut self, id: usize, referenced: bool) {
        if self.handles[id].life != Life::Gone {
            self.handles[id].referenced = referenced;
        }
    }

    /// Nothing in the kernel holds any more, and what was sent before is somebody else's.
    pub(crate) fn fork(&mut self) {
        self.mail.clear();
        self.delivering.clear();
        self.forget_what_was_asked();
    }

    pub(crate) fn walk(&mut self) {
        self.walks.push(self.all.clone());
    }

    /// The next handle of the innermost walk.
    pub(crate) fn walk_next(&mut self) -> Option<usize> {
        let walk = self.walks.last_mut()?;
        if walk.is_empty() {
            self.walks.pop();
            return None;
        }
        Some(walk.remove(0))
    }

    /// Forgets a handle for good.
    pub(crate) fn bury(&mut self, id: usize) {
        self.handles[id].life = Life::Gone;
        self.handles[id].referenced = false;
        self.all.retain(|&other| other != id);
        for walk in &mut self.walks {
            walk.retain(|&other| other != id);
        }
    }

    pub(crate) fn active_handles(&self) -> u32 {
        let counts = |handle: &&Handle| handle.active && handle.referenced;
        self.handles.iter().filter(counts).count() as u32
    }

    pub(crate) fn is_alive(&self) -> bool {
        let is_referenced = |&(id, _): &(usize, u64)| self.handles[id].referenced;
        self.active_handles() > 0 || self.has_closing() || self.due().any(is_referenced)
    }

    /// Whether handles are to be finished.
    pub(crate) fn has_closing(&self) -> bool {
        !self.closing.is_empty() || !self.closing_now.is_empty()
    }

    /// The timers that have been taken as due and still are.
    fn due(&self) -> impl Iterator<Item = &(usize, u64)> {
        let holds = |(id, start): &&(usize, u64)| self.handles[*id].start == *start;
        self.ready.iter().filter(holds)
    }

    /// How long a poll may sleep.
    pub(crate) fn poll_timeout(&self) -> Option<u64> {
        let busy = self.stop
            || self.active_handles() == 0
            || !self.idle.is_empty()
            || !self.pending.is_empty()
            || self.has_closing();
        if busy {
            return Some(0);
        }
        let next = self.next_timer()?;
        Some(self.handles[next].due_ns.saturating_sub(self.now_ns))
    }

    /// How long somebody else may wait in our place: not before the kernel has been asked for all
    /// that is wanted, nor while something is held that nobody has been told. `None` if that cannot
    /// be known: of async handles that are closed, the engine may have passed some already.
    pub(crate) fn backend_timeout(&self) -> Option<Option<u64>> {
        let is_untold = (self.handles.iter()).any(|handle| handle.wanted & !handle.asked != 0);
        match is_untold || self.holds_something() {
            true => Some(Some(0)),
            false => self.delivering.is_empty().then(|| self.poll_timeout()),
        }
    }

    /// Whether something is to be told that a phase has taken up.
    pub(crate) fn holds_something(&self) -> bool {
        let is_open = |&id: &usize| self.handles[id].active;
        self.delivering.iter().any(is_open)
            || self.due().next().is_some()
            || !self.check.aside.is_empty()
    }

    /// The started timer that is due first.
    pub(crate) fn next_timer(&self) -> Option<usize> {
        let is_started =
            |&id: &usize| self.handles[id].kind == HandleKind::Timer && self.handles[id].active;
        let order = |&id: &usize| (self.handles[id].due_ns, self.handles[id].start);
        (0..self.handles.len()).filter(is_started).min_by_key(order)
    }

    /// Every state that the model can be in after `step`, whatever the oracle says.
    pub(crate) fn explore(
        &self,
        mut step: impl FnMut(&mut Model, &mut Oracle) -> Result<(), String>,
        found: &mut Vec<Model>,
        refuted: &mut Vec<String>,
    ) {
        let mut oracle = Oracle::default();
        loop {
            let mut state = self.clone();
            match step(&mut state, &mut oracle) {
                Ok(()) if found.contains(&state) => {}
                Ok(()) => found.push(state),
                Err(why) => refuted.push(why),
            }
            if !oracle.next_path() {
                return;
            }
        }
    }
}
