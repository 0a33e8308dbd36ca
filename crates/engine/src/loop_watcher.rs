//! Idle, prepare and check handles: three phases that differ only in when they run.
//!
//! Each phase has a [`PhaseList`] of its started handles. A handle that starts is inserted at the
//! front, so that a phase in progress, which has passed the front, runs it on the next turn only.

use crate::engine::Engine;
use crate::event::Token;
use crate::handle::{Handles, Kind};
use crate::slab::Key;
use blacklight_sys::Errno;

/// The started handles of one phase.
#[derive(Debug)]
pub(crate) struct PhaseList {
    anchor: u32,
    /// The handle that the phase in progress runs next.
    next: Option<u32>,
}

impl PhaseList {
    pub(crate) fn new(handles: &mut Handles) -> Result<PhaseList, Errno> {
        let anchor = handles.anchor()?;
        Ok(PhaseList { anchor, next: None })
    }

    /// Whether no handle is started.
    #[inline]
    pub(crate) fn is_empty(&self, handles: &Handles) -> bool {
        handles.phase_first(self.anchor).is_none()
    }

    /// Whether a phase has begun and has handles left to run: one of its callbacks runs the loop
    /// again, or the run was given up.
    #[inline]
    pub(crate) fn is_under_way(&self) -> bool {
        self.next.is_some()
    }

    /// Begins the phase. Returns whether there is a handle to run.
    #[inline]
    pub(crate) fn begin(&mut self, handles: &Handles) -> bool {
        // A run that was given up half-way has left handles behind; the phase goes on with them.
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
        self.make_handle(Kind::Idle, token)
    }

    /// Makes a prepare handle: while started it runs right before each poll.
    pub fn prepare_init(&mut self, token: Token) -> Result<Key, Errno> {
        self.make_handle(Kind::Prepare, token)
    }

    /// Makes a check handle: while started it runs right after each poll.
    pub fn check_init(&mut self, token: Token) -> Result<Key, Errno> {
        self.make_handle(Kind::Check, token)
    }

    /// The list of a handle's phase, and the table of handles.
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
