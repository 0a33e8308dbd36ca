//! The loop's table, which maps the engine's tokens to the receivers of events.
//!
//! A token is an index into this table. The table alone owns the program's callbacks and what
//! these own. A handle keeps the engine alive but not the entries of the table, so tearing the
//! loop down drops every callback with all that it owns, even its own handle. This breaks the
//! reference cycle from loop to callback to handle to loop.
//!
//! User code runs and user values are dropped with nothing borrowed, so callers clone an entry or
//! take it out first.

use crate::code::Code;
use crate::loop_::LoopHandle;
use blacklight_engine::Event;
use std::rc::Rc;
use std::task::Waker;

/// Receives the events of a handle.
pub(crate) trait Source {
    /// Handles an event.
    fn event(&self, lp: &LoopHandle, event: Event);

    /// The code that an event, or the next one, is for.
    fn code(&self, event: Option<&Event>) -> Code;

    /// Drops callbacks and wakes waiting tasks, because the handle is closed or the loop is gone.
    fn clear(&self);
}

/// Called with the event that completes a request.
pub(crate) type Completion = Box<dyn FnOnce(&LoopHandle, Event)>;

pub(crate) enum Entry {
    Free,
    /// A handle, until it is closed.
    Handle(Rc<dyn Source>),
    /// A request, until it is completed.
    Request(Code, Completion),
    /// A hidden timer, until its `Sleep` is dropped.
    Sleep {
        is_over: bool,
        waker: Option<Waker>,
        code: Code,
    },
    /// The async handle with which other threads wake tasks.
    Wakes,
    /// The idle handle that is started while woken tasks are left over from the last pass.
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

    /// Takes an entry out. The caller drops it after the borrow of the table has ended.
    #[must_use]
    pub(crate) fn remove(&mut self, at: usize) -> Entry {
        match self.entries.get_mut(at) {
            Some(entry) => {
                self.free.push(at);
                std::mem::replace(entry, Entry::Free)
            }
            // The loop is gone, and its table empty.
            None => Entry::Free,
        }
    }

    pub(crate) fn get(&self, at: usize) -> Option<&Entry> {
        self.entries.get(at)
    }

    pub(crate) fn get_mut(&mut self, at: usize) -> Option<&mut Entry> {
        self.entries.get_mut(at)
    }

    /// Takes all entries out. The table is not used again.
    #[must_use]
    pub(crate) fn take_all(&mut self) -> Vec<Entry> {
        self.free = Vec::new();
        std::mem::take(&mut self.entries)
    }
}
