//! Idle, prepare and check handles: three phases that differ only in when they run.

use crate::engine::Engine;
use crate::event::Token;
use crate::handle::{Handles, Kind};
use crate::slab::Key;
use blacklight_sys::Errno;

/// The started handles of one phase. Whoever starts stands in front of all others, so that a
/// phase in progress, which is beyond the front, leaves it for the next turn.
#[derive(Debug)]
pub(crate) struct PhaseList {
    anchor: u32,
    /// Whom a phase in progress runs next.
    next: Option<u32>,
}

impl PhaseList {
    pub(crate) fn new(handles: &mut Handles) -> Result<PhaseList, Errno> {
        let anchor = handles.anchor()?;
        Ok(PhaseList { anchor, next: None })
    }

    /// Whether nobody is started.
    #[inline]
    pub(crate) fn is_empty(&self, handles: &Handles) -> bool {
        handles.phase_first(self.anchor).is_none()
    }

    /// Whether a phase has begun and has still to run somebody: a callback of it runs the loop
    /// again, or the run was given up.
    #[inline]
    pub(crate) fn is_under_way(&self) -> bool {
        self.next.is_some()
    }

    /// Opens the phase; whether there is anything to run in it.
    #[inline]
    pub(crate) fn begin(&mut self, handles: &Handles) -> bool {
        // A run that was given up half-way leaves some behind; they go first.
        if self.next.is_none() {
            self.next = handles.phase_first(self.anchor);
        }
        self.next.is_some()
    }

    /// The next handle to run in the phase.
    #[inline]
    pub(crate) fn next(&mut self, handles: &Handles) -> Option<Token> {
        let index = self.next?;
        self.next = handles.phase_after(self.anchor, index);
        Some(handles[index].token)
    }

    fn insert(&self, handles: &mut Handles, index: u32) {
        handles.phase_insert_behind(self.anchor, index);
    }

    fn remove(&mut self, handles: &mut Handles, index: u32) {
        if self.next == Some(index) {
            self.next = handles.phase_after(self.anchor, index);
        }
        handles.phase_remove(index);
    }
}

impl Engine {
    /// Makes an idle handle: while started it runs on every turn, and the loop does not
    /// sleep.
    pub fn idle_init(&mut self, token: Token) -> Result<Key, Errno> {
        self.handles.insert(Kind::Idle, token)
    }

    /// Makes a prepare handle: while started it runs right before each poll.
    pub fn prepare_init(&mut self, token: Token) -> Result<Key, Errno> {
        self.handles.insert(Kind::Prepare, token)
    }

    /// Makes a check handle: while started it runs right after each poll.
    pub fn check_init(&mut self, token: Token) -> Result<Key, Errno> {
        self.handles.insert(Kind::Check, token)
    }

    /// The list that a handle stands in while it is started, and the table it runs through.
    fn phase_list(&mut self, index: u32) -> Result<(&mut PhaseList, &mut Handles), Errno> {
        let list = match self.handles[index].kind {
            Kind::Idle => &mut self.idle,
            Kind::Prepare => &mut self.prepare,
            Kind::Check => &mut self.check,
            _ => return Err(Errno::EINVAL),
        };
        Ok((list, &mut self.handles))
    }

    /// Starts an idle, prepare or check handle. A started one stays as it is.
    pub fn loop_watcher_start(&mut self, key: Key) -> Result<(), Errno> {
        let index = self.handles.open(key)?;
        let (list, handles) = self.phase_list(index)?;
        if !handles.is_active(index) {
            list.insert(handles, index);
            handles.set_active(index, true);
        }
        Ok(())
    }

    /// Stops an idle, prepare or check handle. A stopped one stays stopped.
    pub fn loop_watcher_stop(&mut self, key: Key) -> Result<(), Errno> {
        let index = self.handles.open(key)?;
        self.stop_loop_watcher(index)
    }

    pub(crate) fn stop_loop_watcher(&mut self, index: u32) -> Result<(), Errno> {
        let (list, handles) = self.phase_list(index)?;
        if handles.is_active(index) {
            list.remove(handles, index);
            handles.set_active(index, false);
        }
        Ok(())
    }
}
