//! The table of handles, and the state that handles of all kinds have.
//!
//! Every handle is an entry of one slab; the front end holds its [`Key`]. [`Kind`] has the state of
//! one kind only, and refers to larger state by index. Started idle, prepare and check handles and
//! timers are in a *phase list*, closing handles in a chain. A walk over all handles is a tour of
//! the slab.
//!
//! Lists are circular and run through sentinel entries of the same slab, so that removing a handle
//! does not need to know its list. So the timers phase can move due timers to another list, and
//! callbacks can still stop and close them.
//!
//! `active` counts the handles that are active and referenced, which keep the loop alive. Closing
//! handles keep the loop alive through the closing chain instead.

use crate::engine::Engine;
use crate::event::Token;
use crate::slab::{Key, NIL, Slab, Tour};
use blacklight_sys::Errno;

/// A handle's place in a circular list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Link {
    prev: u32,
    next: u32,
}

/// In no list. A closing handle has the next handle of the closing chain in `next`.
const UNLINKED: Link = Link {
    prev: NIL,
    next: NIL,
};

/// The state that only one kind of handle has.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Timer(crate::timer::Timer),
    Idle,
    Prepare,
    Check,
    Async(crate::mailbox::Ticket),
    /// A poll handle and its I/O watcher.
    Poll(u32),
    /// A TCP, pipe or terminal handle, by its index in the table of streams.
    Stream(u32),
    /// A UDP handle, by its index in the table of UDP handles.
    Udp(u32),
    /// A custom handle of the front end, and the number of holds that delay its closing.
    Custom(u32),
    /// A signal handle, by its index in the table of signal watchers.
    Signal(u32),
    /// A process handle, by its index in the table of processes.
    Process(u32),
    /// A file system event handle, and its monitor while it is started.
    FsEvent(u32),
    /// Not a handle but the anchor of a list.
    Sentinel,
}

/// The kinds of handles, as a front end sees them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the names say it all")]
pub enum HandleKind {
    Timer,
    Idle,
    Prepare,
    Check,
    Async,
    Poll,
    Tcp,
    Pipe,
    Tty,
    FsEvent,
    Udp,
    Custom,
    Signal,
    Process,
}

/// The stages of a handle's life. A handle is stopped before it is closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Life {
    Inactive,
    /// Started, or watching something.
    Active,
    Closing,
}

/// A handle. Packed, since programs have millions of them.
#[derive(Clone, Copy, Debug)]
#[repr(Rust, packed(4))]
pub(crate) struct Handle {
    pub(crate) token: Token,
    /// Its links in a phase's list.
    phase: Link,
    life: Life,
    referenced: bool,
    /// Whether walks pass over it.
    hidden: bool,
    pub(crate) kind: Kind,
}

// With the slab's generation, three quarters of a cache line.
const _: () = assert!(size_of::<Handle>() <= 44);

/// The table of handles and the lists through it.
#[derive(Debug)]
pub(crate) struct Handles {
    slab: Slab<Handle>,
    /// How many entries are hidden.
    hidden: u32,
    /// The first handle of the closing chain, which has the handle closed last in front.
    pub(crate) closing: u32,
    /// How many handles are active and referenced.
    pub(crate) active: u32,
}

impl std::ops::Index<u32> for Handles {
    type Output = Handle;

    #[inline]
    fn index(&self, index: u32) -> &Handle {
        &self.slab[index]
    }
}

impl std::ops::IndexMut<u32> for Handles {
    #[inline]
    fn index_mut(&mut self, index: u32) -> &mut Handle {
        &mut self.slab[index]
    }
}

impl Handles {
    pub(crate) const fn new() -> Handles {
        Handles {
            slab: Slab::new(),
            hidden: 0,
            closing: NIL,
            active: 0,
        }
    }

    #[inline]
    fn entry(kind: Kind, token: Token) -> Handle {
        Handle {
            token,
            phase: UNLINKED,
            life: Life::Inactive,
            referenced: true,
            hidden: false,
            kind,
        }
    }

    /// Makes an empty list. Returns its sentinel.
    pub(crate) fn anchor(&mut self) -> Result<u32, Errno> {
        let anchor = self.insert_hidden(Kind::Sentinel, Token(0))?.index;
        self.slab[anchor].phase = Link {
            prev: anchor,
            next: anchor,
        };
        Ok(anchor)
    }

    /// Makes a handle, inactive and referenced.
    #[inline]
    pub(crate) fn insert(&mut self, kind: Kind, token: Token) -> Result<Key, Errno> {
        self.slab.insert(Self::entry(kind, token))
    }

    /// All handles have indices below this one.
    pub(crate) fn capacity(&self) -> u32 {
        self.slab.capacity() as u32
    }

    /// The key of the entry at this index, if it is a handle that walks visit.
    pub(crate) fn visible(&self, index: u32) -> Option<Key> {
        let key = self.slab.key_at(index)?;
        (!self[index].hidden).then_some(key)
    }

    #[inline]
    pub(crate) fn resolve(&self, key: Key) -> Option<u32> {
        self.slab.resolve(key)
    }

    /// The handle of a key. `EINVAL` if the key is stale or the handle is closing.
    #[inline]
    pub(crate) fn open(&self, key: Key) -> Result<u32, Errno> {
        match self.slab.resolve(key) {
            Some(index) if self.slab[index].life != Life::Closing => Ok(index),
            _ => Err(Errno::EINVAL),
        }
    }

    /// Whether no handle is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many handles there are that walks visit.
    pub(crate) fn len(&self) -> u32 {
        self.slab.len() - self.hidden
    }

    #[inline]
    fn phase(&self, index: u32) -> Link {
        self[index].phase
    }

    /// Whether a handle is in a phase's list.
    #[inline]
    pub(crate) fn is_in_phase(&self, index: u32) -> bool {
        self.phase(index) != UNLINKED
    }

    /// Inserts an entry after `prev`.
    #[inline]
    fn link(&mut self, prev: u32, index: u32) {
        let next = self.slab[prev].phase.next;
        self.slab[index].phase = Link { prev, next };
        self.slab[prev].phase.next = index;
        self.slab[next].phase.prev = index;
    }

    #[inline]
    fn unlink(&mut self, index: u32) {
        let Link { prev, next } = std::mem::replace(&mut self.slab[index].phase, UNLINKED);
        self.slab[prev].phase.next = next;
        self.slab[next].phase.prev = prev;
    }

    #[inline]
    pub(crate) fn is_list_empty(&self, anchor: u32) -> bool {
        self.phase(anchor).next == anchor
    }

    /// Whether a list has a referenced handle in it.
    #[cold]
    pub(crate) fn has_referenced(&self, anchor: u32) -> bool {
        let behind = |&index: &u32| self.phase_after(anchor, index);
        std::iter::successors(self.phase_first(anchor), behind).any(|index| self[index].referenced)
    }

    /// The first handle of a phase's list.
    #[inline]
    pub(crate) fn phase_first(&self, anchor: u32) -> Option<u32> {
        let first = self.phase(anchor).next;
        (first != anchor).then_some(first)
    }

    /// The handle before another in a phase's list, or the last one before the anchor.
    #[inline]
    pub(crate) fn phase_before(&self, anchor: u32, index: u32) -> Option<u32> {
        let before = self.phase(index).prev;
        (before != anchor).then_some(before)
    }

    /// The handle after another in a phase's list, or the first one after the anchor.
    #[inline]
    pub(crate) fn phase_after(&self, anchor: u32, index: u32) -> Option<u32> {
        let after = self.phase(index).next;
        (after != anchor).then_some(after)
    }

    /// Moves the front of a phase's list, up to `last`, to the end of another list. Moves nothing if
    /// `last` is the anchor.
    #[inline]
    pub(crate) fn phase_move_front(&mut self, anchor: u32, last: u32, to: u32) {
        if last == anchor {
            return;
        }
        let first = self.phase(anchor).next;
        let rest = self.phase(last).next;
        self.slab[anchor].phase.next = rest;
        self.slab[rest].phase.prev = anchor;
        let end = self.phase(to).prev;
        self.slab[end].phase.next = first;
        self.slab[first].phase.prev = end;
        self.slab[last].phase.next = to;
        self.slab[to].phase.prev = last;
    }

    /// Inserts a handle after another one in a phase's list, or first after the anchor.
    #[inline]
    pub(crate) fn phase_insert_behind(&mut self, prev: u32, index: u32) {
        self.link(prev, index);
    }

    /// Appends a handle to a phase's list.
    #[inline]
    pub(crate) fn phase_append(&mut self, anchor: u32, index: u32) {
        self.link(self.phase(anchor).prev, index);
    }

    #[inline]
    pub(crate) fn phase_remove(&mut self, index: u32) {
        self.unlink(index);
    }

    /// Makes a handle active or inactive, and updates the count of active handles. Does nothing to
    /// a closing handle.
    #[inline]
    pub(crate) fn set_active(&mut self, index: u32, active: bool) {
        let (from, to) = match active {
            true => (Life::Inactive, Life::Active),
            false => (Life::Active, Life::Inactive),
        };
        let handle = &mut self.slab[index];
        if handle.life == from {
            handle.life = to;
            if handle.referenced {
                self.count(active);
            }
        }
    }

    fn set_referenced(&mut self, index: u32, referenced: bool) {
        let handle = &mut self.slab[index];
        if handle.referenced != referenced {
            handle.referenced = referenced;
            if handle.life == Life::Active {
                self.count(referenced);
            }
        }
    }

    #[inline]
    fn count(&mut self, up: bool) {
        // A C program may have written to the count, so it must not trap.
        self.active = match up {
            true => self.active.wrapping_add(1),
            false => self.active.wrapping_sub(1),
        };
    }

    pub(crate) fn is_active(&self, index: u32) -> bool {
        self[index].life == Life::Active
    }

    /// Queues a stopped handle for the closing phase.
    #[inline]
    pub(crate) fn begin_close(&mut self, index: u32) {
        self.mark_closing(index);
        self.queue_close(index);
    }

    /// Marks a stopped handle as closing: from now on it cannot be opened.
    #[inline]
    pub(crate) fn mark_closing(&mut self, index: u32) {
        let handle = &mut self.slab[index];
        let before = std::mem::replace(&mut handle.life, Life::Closing);
        assert!(before != Life::Closing, "a handle is closed twice");
        debug_assert!(before != Life::Active, "a handle is closed while active");
    }

    /// Queues a handle that is marked as closing for the closing phase.
    #[inline]
    pub(crate) fn queue_close(&mut self, index: u32) {
        self.slab[index].phase.next = self.closing;
        self.closing = index;
    }

    pub(crate) fn is_closing(&self, index: u32) -> bool {
        self[index].life == Life::Closing
    }

    /// Makes an entry that walks pass over and that does not keep the loop alive.
    pub(crate) fn insert_hidden(&mut self, kind: Kind, token: Token) -> Result<Key, Errno> {
        let entry = Handle {
            referenced: false,
            hidden: true,
            ..Self::entry(kind, token)
        };
        let key = self.slab.insert(entry)?;
        self.hidden += 1;
        Ok(key)
    }

    /// Removes a hidden entry at once; no event follows.
    pub(crate) fn remove_hidden(&mut self, index: u32) {
        assert!(self[index].hidden, "a visible handle is removed");
        self.hidden -= 1;
        self.slab.remove(index);
    }

    /// Removes the first handle of a closing chain. Returns its token and the rest of the chain.
    #[inline]
    pub(crate) fn finish_close(&mut self, index: u32) -> (Token, u32) {
        let Handle { token, phase, .. } = self[index];
        self.slab.remove(index);
        (token, phase.next)
    }
}

/// A walk over all handles in progress; see [`Engine::walk`].
#[derive(Debug)]
pub struct Walk(Tour);

impl Engine {
    /// Makes a handle, inactive and referenced.
    #[inline]
    pub(crate) fn make_handle(&mut self, kind: Kind, token: Token) -> Result<Key, Errno> {
        let key = self.handles.insert(kind, token)?;
        if self.driver.observed.is_some() {
            self.record_made(key, token);
        }
        Ok(key)
    }

    /// References the handle: while it is active it keeps the loop alive.
    pub fn reference(&mut self, key: Key) {
        if let Some(index) = self.handles.resolve(key) {
            self.handles.set_referenced(index, true);
        }
    }

    /// Unreferences the handle: it no longer keeps the loop alive.
    pub fn unreference(&mut self, key: Key) {
        if let Some(index) = self.handles.resolve(key) {
            self.handles.set_referenced(index, false);
        }
    }

    /// Whether the handle is referenced; false for a stale key.
    pub fn has_reference(&self, key: Key) -> bool {
        self.handles
            .resolve(key)
            .is_some_and(|index| self.handles[index].referenced)
    }

    /// Whether the handle is active: started, or watching something.
    #[inline]
    pub fn is_active(&self, key: Key) -> bool {
        self.handles
            .resolve(key)
            .is_some_and(|index| self.handles.is_active(index))
    }

    /// Whether the handle is closing or closed; true for a stale key.
    #[inline]
    pub fn is_closing(&self, key: Key) -> bool {
        self.handles
            .resolve(key)
            .is_none_or(|index| self.handles.is_closing(index))
    }

    /// The kind of the handle, or `None` for a stale key.
    pub fn kind(&self, key: Key) -> Option<HandleKind> {
        Some(match self.handles[self.handles.resolve(key)?].kind {
            Kind::Timer(_) => HandleKind::Timer,
            Kind::Idle => HandleKind::Idle,
            Kind::Prepare => HandleKind::Prepare,
            Kind::Check => HandleKind::Check,
            Kind::Async(_) => HandleKind::Async,
            Kind::Poll(_) => HandleKind::Poll,
            Kind::Stream(stream) => self.stream_kind(stream),
            Kind::Udp(_) => HandleKind::Udp,
            Kind::Custom(_) => HandleKind::Custom,
            Kind::Signal(_) => HandleKind::Signal,
            Kind::Process(_) => HandleKind::Process,
            Kind::FsEvent(_) => HandleKind::FsEvent,
            Kind::Sentinel => return None,
        })
    }

    /// Closes the handle: it stops at once, and [`Event::Closed`] follows in the closing
    /// phase. Closing it a second time is `EINVAL`.
    ///
    /// [`Event::Closed`]: crate::Event::Closed
    #[inline]
    pub fn close(&mut self, key: Key) -> Result<(), Errno> {
        let index = self.handles.open(key)?;
        match self.handles[index].kind {
            Kind::Timer(_) => self.stop_timer(index),
            _ => return self.close_other(index),
        }
        self.handles.begin_close(index);
        Ok(())
    }

    /// Closes a handle other than a timer. Out of line, since only timers are closed by the million.
    #[inline(never)]
    fn close_other(&mut self, index: u32) -> Result<(), Errno> {
        match self.handles[index].kind {
            Kind::Timer(_) | Kind::Sentinel => return Err(Errno::EINVAL),
            Kind::Idle | Kind::Prepare | Kind::Check => self.stop_loop_watcher(index)?,
            Kind::Async(ticket) => self.retire_async(index, ticket),
            Kind::Poll(watcher) => self.release_poll(index, watcher),
            Kind::Stream(stream) => self.release_stream(index, stream),
            Kind::Signal(watcher) => self.release_signal(index, watcher),
            Kind::Process(process) => self.release_process(process),
            Kind::Udp(udp) => self.release_udp(index, udp),
            Kind::Custom(holds) => {
                self.handles.set_active(index, false);
                if holds > 0 {
                    self.handles.mark_closing(index);
                    return Ok(());
                }
            }
            Kind::FsEvent(_) => self.stop_fs_event(index),
        }
        self.handles.begin_close(index);
        Ok(())
    }

    /// Starts a walk over all handles, in the order of their creation or, if there is no memory to
    /// sort them, in any order. Handles may be made and closed during the walk, which visits neither
    /// new handles nor those whose closing is finished.
    pub fn walk(&self) -> Walk {
        Walk(self.handles.slab.tour())
    }

    /// The next handle of a walk.
    pub fn walk_next(&self, walk: &mut Walk) -> Option<Token> {
        loop {
            let handle = self.handles[self.handles.slab.next(&mut walk.0)?];
            if !handle.hidden {
                return Some(handle.token);
            }
        }
    }
}
