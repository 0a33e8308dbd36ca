//! Idle, prepare and check handles: three phases that differ only in when they run.

use crate::engine::Engine;
use crate::event::Token;
use crate::handle::{Handles, Kind};
use crate::slab::Key;
use blacklight_sys::Errno;

/// The started handles of one phase, and those of them that a phase in progress has
/// still to run.
#[derive(Debug)]
pub(crate) struct PhaseList {
    started: u32,
    aside: u32,
}

impl PhaseList {
    pub(crate) fn new(handles: &mut Handles) -> Result<PhaseList, Errno> {
        Ok(PhaseList {
            started: handles.anchor()?,
            aside: handles.anchor()?,
        })
    }

    pub(crate) fn is_empty(&self, handles: &Handles) -> bool {
        handles.is_list_empty(self.started)
    }

    /// Opens the phase; whether there is anything to run in it.
    #[inline]
    pub(crate) fn begin(&self, handles: &mut Handles) -> bool {
        handles.phase_begin(self.started, self.aside);
        !handles.is_list_empty(self.aside)
    }

    /// The next handle to run in the phase.
    #[inline]
    pub(crate) fn next(&self, handles: &mut Handles) -> Option<Token> {
        handles.phase_next(self.started, self.aside)
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

    /// Starts an idle, prepare or check handle. A started one stays as it is.
    pub fn loop_watcher_start(&mut self, key: Key) -> Result<(), Errno> {
        let index = self.handles.open(key)?;
        let list = match self.handles[index].kind {
            Kind::Idle => self.idle.started,
            Kind::Prepare => self.prepare.started,
            Kind::Check => self.check.started,
            _ => return Err(Errno::EINVAL),
        };
        if !self.handles.is_active(index) {
            self.handles.phase_insert(list, index);
            self.handles.set_active(index, true);
        }
        Ok(())
    }

    /// Stops an idle, prepare or check handle. A stopped one stays stopped.
    pub fn loop_watcher_stop(&mut self, key: Key) -> Result<(), Errno> {
        let index = self.handles.open(key)?;
        match self.handles[index].kind {
            Kind::Idle | Kind::Prepare | Kind::Check => self.stop_loop_watcher(index),
            _ => return Err(Errno::EINVAL),
        }
        Ok(())
    }

    pub(crate) fn stop_loop_watcher(&mut self, index: u32) {
        if self.handles.is_active(index) {
            self.handles.phase_remove(index);
            self.handles.set_active(index, false);
        }
    }
}
