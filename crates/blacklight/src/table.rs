//! The loop's table: whom an event is for.
//!
//! A token of the engine's is an index into this table. Everything that a program gives to the
//! loop (callbacks, and through them whatever these own) hangs on it, and on nothing else.
//! Handles hold on to the engine but not to the table's contents, so that whatever a callback
//! owns, its own handle included, goes when the loop does: that breaks the cycle from the loop
//! over its callbacks to handles and back.
//!
//! User code runs and user values are dropped with nothing borrowed, so entries are cloned or
//! taken out first.

use crate::loop_::Loop;
use blacklight_engine::Event;
use std::rc::Rc;
use std::task::Waker;

/// What a handle's events go to.
pub(crate) trait Source {
    /// Something has happened to the handle.
    fn event(&self, lp: &Loop, event: Event);

    /// The handle is closed, or the loop is going: lets go of all that is the user's.
    fn clear(&self);
}

/// What is to be done when a request is completed, with the event that says so.
pub(crate) type Completion = Box<dyn FnOnce(&Loop, Event)>;

pub(crate) enum Entry {
    Free,
    /// A handle, until it is closed.
    Handle(Rc<dyn Source>),
    /// A request, until it is completed.
    Request(Completion),
    /// A hidden timer, for as long as its owner wants it.
    Sleep {
        is_over: bool,
        waker: Option<Waker>,
    },
    /// Tasks have been woken from other threads.
    Wakes,
    /// Tasks are left over from the last pass.
    Backlog,
}

#[derive(Default)]
pub(crate) struct Table {
    entries: Vec<Entry>,
    free: Vec<usize>,
}

impl Table {
    pub(crate) fn insert(&mut self, entry: Entry) -> usize {
        match self.free.pop() {
            Some(at) => {
                self.entries[at] = entry;
                at
            }
            None => {
                self.entries.push(entry);
                self.entries.len() - 1
            }
        }
    }

    /// Takes an entry out. It is to be dropped after the table has been let go of.
    #[must_use]
    pub(crate) fn remove(&mut self, at: usize) -> Entry {
        match self.entries.get_mut(at) {
            Some(entry) => {
                self.free.push(at);
                std::mem::replace(entry, Entry::Free)
            }
            // The loop is gone, and the table with it.
            None => Entry::Free,
        }
    }

    pub(crate) fn get_mut(&mut self, at: usize) -> Option<&mut Entry> {
        self.entries.get_mut(at)
    }

    /// Takes everything out, for good.
    #[must_use]
    pub(crate) fn take_all(&mut self) -> Vec<Entry> {
        self.free = Vec::new();
        std::mem::take(&mut self.entries)
    }
}
