//! The mailbox of a loop: how other threads and signal handlers reach it.
//!
//! Senders touch nothing of the engine. They share a [`Mailbox`] with it, which has a cell for
//! each async handle and each request of the thread pool. A send marks its cell, sets a bit for
//! the cell and for everything that the cell is part of, and wakes the loop if the loop may be
//! asleep. All of it is atomics and at most one signal of the waker, so it may happen in a
//! signal handler.
//!
//! The loop's side is the [`Receiver`](crate::wakeup::Receiver). The invariants:
//!
//! - A mark says that a cell has been sent to and that this has not been delivered. Marking is
//!   always a read-modify-write: even a send that finds the mark set is ordered before the delivery
//!   that clears it, so the callback sees all that the sender did before. The mark is cleared
//!   before the callback runs.
//! - No send relies on another sender's progress, since that one may have been preempted for as long
//!   as it pleases the scheduler. Each send sees to it by itself that all bits are set that lead the
//!   loop to its cell, and that the loop is woken. It may skip a step only if it has seen that the
//!   step has been done, never because another sender has begun to.
//! - Bits are set from the cell upwards (group, bank, segment) and cleared by the loop from the
//!   segment downwards. So whenever a bit is set and nobody is about to set those above it, the
//!   loop will come by. A sender that was held up may set bits for what has been delivered
//!   meanwhile: the loop then finds no mark, or no bit below, and goes on.
//! - `sleep` says that the loop may be waiting in the kernel, or that it is not running at all,
//!   since then some other loop may be waiting for our descriptor. The loop says so *before*
//!   it looks at the bits for the last time, and a sender looks *after* it has set them, all
//!   sequentially consistent: one of the two sees the other. A sender takes the word back only when
//!   its `write` has returned, and only the word of that very sleep: who finds it taken back knows
//!   that the loop has been woken.
//! - A closed handle's cell is given to a new one only when it is no longer marked.
//! - What has been sent may be delivered, and the loop be closed over it, while its sender is
//!   still about to wake the loop. So each sender keeps the mailbox alive: a [`Sender`] shares
//!   in it, and a front end with plain pointers closes a [`Gate`](crate::Gate) first.
//!
//! Requests of the thread pool come back by a stack of their cells: each is pushed once, by one
//! compare-and-swap, so no push waits for another, and whoever pushes wakes the loop as above.

use crate::slab::NIL;
use crate::sync::{AtomicU32, AtomicU64, SharedWaker, shared_waker};
use blacklight_sys::Errno;
use blacklight_sys::fallible::Arc;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

/// In a cell's state: an async handle's cell has been sent to.
pub(crate) const MARKED: u32 = 1;
/// In a cell's state: a request was cancelled. Only the loop looks.
pub(crate) const CANCELLED: u32 = 2;
/// The rest of the state is the cell's generation, which counts in these.
pub(crate) const GENERATION: u32 = 4;

#[derive(Default, Debug)]
pub(crate) struct Cell {
    pub(crate) state: AtomicU32,
    /// The cell below in the stack.
    pub(crate) below: AtomicU32,
    pub(crate) token: AtomicU64,
}

/// The cells of a group, and the groups of a bank. A bit for each fits into a word. Models have
/// so few that all kinds of segments are within their reach.
pub(crate) const GROUP: u32 = if cfg!(all(test, loom)) { 2 } else { u64::BITS };

/// Cells that are neighbours, with a bit for each.
#[derive(Debug)]
pub(crate) struct Group {
    /// Those that have been sent to.
    pub(crate) noted: AtomicU64,
    /// Those that the loop has taken from there and not delivered yet. The loop alone writes.
    pub(crate) taken: AtomicU64,
    /// The group that is delivered next. Nobody else looks.
    pub(crate) next: AtomicU32,
    cells: [Cell; GROUP as usize],
}

impl Default for Group {
    fn default() -> Group {
        Group {
            noted: AtomicU64::default(),
            taken: AtomicU64::default(),
            next: AtomicU32::default(),
            cells: std::array::from_fn(|_| Cell::default()),
        }
    }
}

impl Group {
    /// The cell of this group with this number, of which only the place in the group counts.
    #[inline]
    pub(crate) fn cell(&self, number: u32) -> &Cell {
        &self.cells[(number % GROUP) as usize]
    }
}

#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) groups: Box<[Group]>,
    /// A word for each bank of groups, with a bit for each group that has something noted. A segment
    /// of one bank has none: looking at so few groups costs less than keeping their bits.
    pub(crate) banks: Box<[AtomicU64]>,
}

impl Segment {
    pub(crate) fn new(number: usize) -> Result<Segment, Errno> {
        let groups = 1 << number;
        Ok(Segment {
            groups: boxed(groups)?,
            banks: match groups as u32 <= GROUP {
                true => Box::default(),
                false => boxed(groups / GROUP as usize)?,
            },
        })
    }
}

fn boxed<T: Default>(len: usize) -> Result<Box<[T]>, Errno> {
    let mut all = Vec::new();
    all.try_reserve_exact(len)?;
    all.resize_with(len, T::default);
    Ok(all.into_boxed_slice())
}

/// Cells do not move, since senders may be looking at them: their groups live in segments, each
/// twice as long as the one before. The first has one group.
const SEGMENTS: usize = 26;

/// Where a group is: its segment and its place in it.
#[inline]
pub(crate) fn locate(group: u32) -> (usize, usize) {
    let segment = (group + 1).ilog2();
    (segment as usize, (group + 1 - (1 << segment)) as usize)
}

/// Names one async handle to its senders.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ticket {
    pub(crate) cell: u32,
    pub(crate) generation: u32,
}

impl Ticket {
    /// The ticket as a number, for a front end that has to keep it in foreign memory.
    pub const fn to_bits(self) -> u64 {
        (self.generation as u64) << 32 | self.cell as u64
    }

    /// The ticket that [`Ticket::to_bits`] made into `bits`.
    pub const fn from_bits(bits: u64) -> Ticket {
        Ticket {
            cell: bits as u32,
            generation: (bits >> 32) as u32,
        }
    }
}

/// In the word about sleep: the loop may be asleep. The rest counts the sleeps in steps of
/// [`SLEEPS`].
pub(crate) const ASLEEP: u64 = 1;
pub(crate) const SLEEPS: u64 = 2;

/// What a loop shares with those who wake it.
#[derive(Debug)]
pub struct Mailbox {
    /// A bit for each segment that has something noted.
    pub(crate) top: AtomicU32,
    /// The stack of completed requests.
    pub(crate) completed: AtomicU32,
    /// Whether the loop may be asleep, and which sleep it is. The loop writes it, and
    /// senders take [`ASLEEP`] back.
    pub(crate) sleep: AtomicU64,
    /// Shared with the process's signal handler.
    pub(crate) waker: SharedWaker,
    pub(crate) segments: [OnceLock<Segment>; SEGMENTS],
}

impl Mailbox {
    pub(crate) fn new() -> Result<Mailbox, Errno> {
        Ok(Mailbox {
            top: AtomicU32::new(0),
            completed: AtomicU32::new(NIL),
            sleep: AtomicU64::new(ASLEEP),
            waker: shared_waker()?,
            segments: [const { OnceLock::new() }; SEGMENTS],
        })
    }

    /// The cell with this number, if it exists.
    pub(crate) fn cell(&self, number: u32) -> Option<&Cell> {
        let (segment, at) = locate(number / GROUP);
        let group = self.segments.get(segment)?.get()?.groups.get(at)?;
        Some(group.cell(number))
    }

    /// The segment with this number, which has been sent to.
    #[inline]
    pub(crate) fn segment(&self, number: usize) -> &Segment {
        self.segments[number].get().expect("a cell has a segment")
    }

    /// The group with this number, which has been sent to.
    #[inline]
    pub(crate) fn group(&self, number: u32) -> &Group {
        let (segment, at) = locate(number);
        &self.segment(segment).groups[at]
    }

    /// Sends to an async handle: its event follows on the loop's next turn. Any number of
    /// sends before that are one. A ticket whose handle has been closed sends nothing.
    ///
    /// May be called from any thread and from signal handlers.
    pub fn send(&self, ticket: Ticket) {
        let (number, at) = locate(ticket.cell / GROUP);
        let Some(segment) = self.segments.get(number).and_then(OnceLock::get) else {
            return;
        };
        let (group, bit) = (&segment.groups[at], 1 << (ticket.cell % GROUP));
        let state = &group.cell(ticket.cell).state;
        // The ticket is checked and the cell marked in one step: the handle may be closed at
        // this very moment, and the cell be given to another.
        let before = state.fetch_update(SeqCst, Relaxed, |state| {
            (state & !MARKED == ticket.generation).then_some(state | MARKED)
        });
        let Ok(before) = before else {
            return;
        };
        if before & MARKED == 0 {
            group.noted.fetch_or(bit, SeqCst);
        } else if group.noted.load(SeqCst) & bit == 0 {
            // The loop clears `taken` before it clears the mark. So the mark that we found
            // is still to be delivered, and the loop does not sleep before it has been.
            if group.taken.load(SeqCst) & bit != 0 {
                return;
            }
            group.noted.fetch_or(bit, SeqCst);
        }
        if let Some(bank) = segment.banks.get(at / GROUP as usize) {
            let bit = 1 << (at as u32 % GROUP);
            if bank.load(SeqCst) & bit == 0 {
                bank.fetch_or(bit, SeqCst);
            }
        }
        if self.top.load(SeqCst) & 1 << number == 0 {
            self.top.fetch_or(1 << number, SeqCst);
        }
        self.wake();
    }

    /// Says that the request with this cell is completed, which happens once to each.
    pub(crate) fn complete(&self, at: u32) {
        let cell = self.cell(at).expect("a request has a cell");
        let mut top = self.completed.load(Relaxed);
        loop {
            cell.below.store(top, Relaxed);
            let pushed = self
                .completed
                .compare_exchange_weak(top, at, SeqCst, Relaxed);
            match pushed {
                Ok(_) => break,
                Err(other) => top = other,
            }
        }
        self.wake();
    }

    /// Wakes the loop if it may be asleep. Whoever comes while another is about to do so
    /// does it as well.
    #[inline]
    pub(crate) fn wake(&self) {
        let sleep = self.sleep.load(SeqCst);
        if sleep & ASLEEP != 0 {
            self.waker.signal();
            // If this fails, another has been faster, or the loop has woken up and perhaps
            // fallen asleep anew.
            let _ = self
                .sleep
                .compare_exchange(sleep, sleep & !ASLEEP, SeqCst, Relaxed);
        }
    }

    /// Whether nothing has been sent or completed since the loop last looked.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        !self.has_sends() && !self.has_completed()
    }

    /// Whether a request has been completed since the loop last looked.
    #[inline]
    pub(crate) fn has_completed(&self) -> bool {
        self.completed.load(SeqCst) != NIL
    }

    /// Whether something has been sent to an async handle since the loop last looked.
    #[inline]
    pub(crate) fn has_sends(&self) -> bool {
        self.top.load(SeqCst) != 0
    }
}

/// The right to send to one async handle, from anywhere and for as long as one likes.
#[derive(Clone, Debug)]
pub struct Sender {
    mailbox: Arc<Mailbox>,
    ticket: Ticket,
}

impl Sender {
    pub(crate) fn new(mailbox: Arc<Mailbox>, ticket: Ticket) -> Sender {
        Sender { mailbox, ticket }
    }

    /// Sends; see [`Mailbox::send`].
    pub fn send(&self) {
        self.mailbox.send(self.ticket);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn groups_are_found_across_segments() {
        assert_eq!(locate(0), (0, 0));
        assert_eq!(locate(1), (1, 0));
        assert_eq!(locate(2), (1, 1));
        assert_eq!(locate(3), (2, 0));
        assert_eq!(locate(6), (2, 3));
        assert!(locate((NIL - 1) / GROUP).0 < SEGMENTS + 1);
    }
}
