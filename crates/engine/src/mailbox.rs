//! The mailbox of a loop: other threads and signal handlers reach the loop through it.
//!
//! Senders touch nothing else of the engine. A [`Mailbox`] has a cell for each async handle and
//! each request of the thread pool. A send marks its cell, sets a bit for the cell and for each
//! level above it, and wakes the loop if the loop may be asleep. A send consists of atomic
//! operations and at most one signal of the waker, so a signal handler may send.
//!
//! The loop's side is the [`Receiver`](crate::wakeup::Receiver). The invariants:
//!
//! - A marked cell has a pending send: sent, and not delivered yet. Marking is always a
//!   read-modify-write, so even a send that finds the mark set is ordered before the delivery that
//!   clears the mark, and the callback sees all that the sender wrote before. The loop clears the
//!   mark before the callback runs.
//! - No send relies on another sender's progress, since the scheduler may have preempted that
//!   sender for any length of time. Each send itself ensures that all bits on the way to its cell
//!   are set, and that the loop is woken. A send skips a step only if it has seen that the step is
//!   done, never because another sender has begun it.
//! - Senders set bits from the cell upwards (group, bank, segment); the loop clears bits from the
//!   segment downwards. So the loop finds every bit that is set, unless a sender is still about to
//!   set the bits above it. A preempted sender may set bits for a send that has been delivered
//!   meanwhile: the loop then finds no mark, or no bit below, and goes on.
//! - `sleep` has [`ASLEEP`] set while the loop may be waiting in the kernel, and while the loop is
//!   not running, since then another loop may be waiting for its descriptor. The loop sets
//!   `ASLEEP` *before* it checks the bits for the last time, and a sender checks `sleep` *after* it
//!   has set its bits, all sequentially consistent: one of the two sees the other. A sender clears
//!   `ASLEEP` only after its `write` has returned, and only for that same sleep: a sender that finds
//!   `ASLEEP` cleared knows that the loop has been woken.
//! - The loop reuses a closed handle's cell only when the cell is no longer marked.
//! - A send may be delivered, and its loop closed, before the sender has woken the loop. So each
//!   sender keeps the mailbox alive: a [`Sender`] owns a share of the mailbox, and a front end with
//!   plain pointers closes a [`Gate`](crate::Gate) first.
//!
//! Requests of the thread pool come back through a stack of their cells. A worker pushes each cell
//! once, by one compare-and-swap, so no push waits for another, and wakes the loop as above.

use crate::slab::NIL;
use crate::sync::{AtomicU32, AtomicU64, SharedWaker, shared_waker};
use blacklight_sys::Errno;
use blacklight_sys::fallible::Arc;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

/// In a cell's state: an async handle's cell has been sent to.
pub(crate) const MARKED: u32 = 1;
/// In a cell's state: a request was cancelled. Only the loop reads this bit.
pub(crate) const CANCELLED: u32 = 2;
/// In a cell's state: a request has been submitted and not delivered. Only the loop uses this bit.
pub(crate) const REQUESTED: u32 = 4;
/// The other bits of the state are the cell's generation, counted in steps of this.
pub(crate) const GENERATION: u32 = 8;

#[derive(Default, Debug)]
pub(crate) struct Cell {
    pub(crate) state: AtomicU32,
    /// The cell below in the stack.
    pub(crate) below: AtomicU32,
    pub(crate) token: AtomicU64,
}

/// How many cells a group has, and how many groups a bank has: one per bit of a word. Models have
/// only two, so that they reach every kind of segment.
pub(crate) const GROUP: u32 = if cfg!(all(test, loom)) { 2 } else { u64::BITS };

/// Neighbouring cells, with a bit for each.
#[derive(Debug)]
pub(crate) struct Group {
    /// Cells that have been sent to.
    pub(crate) sent: AtomicU64,
    /// Cells that the loop has taken from `sent` and not delivered yet. Only the loop writes it.
    pub(crate) taken: AtomicU64,
    /// The group that the loop delivers next. Only the loop uses it.
    pub(crate) next: AtomicU32,
    cells: [Cell; GROUP as usize],
}

impl Default for Group {
    fn default() -> Group {
        Group {
            sent: AtomicU64::default(),
            taken: AtomicU64::default(),
            next: AtomicU32::default(),
            cells: std::array::from_fn(|_| Cell::default()),
        }
    }
}

impl Group {
    /// The cell with this number, which is a cell of this group.
    #[inline]
    pub(crate) fn cell(&self, number: u32) -> &Cell {
        &self.cells[(number % GROUP) as usize]
    }
}

#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) groups: Box<[Group]>,
    /// A word for each bank, with a bit for each group that has sends. A segment of one
    /// bank has no such word: scanning so few groups costs less than maintaining their bits.
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

/// How many segments there can be. The first has one group, and each has twice as many as the one
/// before. Segments never move, since senders may be accessing their cells.
const SEGMENTS: usize = 26;

/// A group's segment, and its index in that segment.
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

/// In [`Mailbox::sleep`]: the loop may be asleep. The other bits count the sleeps in steps of
/// [`SLEEPS`].
pub(crate) const ASLEEP: u64 = 1;
pub(crate) const SLEEPS: u64 = 2;

/// The memory that a loop shares with its senders; see the module.
#[derive(Debug)]
pub struct Mailbox {
    /// A bit for each segment that has sends.
    pub(crate) top: AtomicU32,
    /// The top of the stack of completed requests.
    pub(crate) completed: AtomicU32,
    /// Whether the loop may be asleep, and the number of the sleep. The loop writes it; senders
    /// only clear [`ASLEEP`].
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

    /// Sends to an async handle: its event follows on the loop's next turn. Sends before that
    /// coalesce into one event. A send with the ticket of a closed handle does nothing.
    ///
    /// Any thread and any signal handler may call this.
    pub fn send(&self, ticket: Ticket) {
        let (number, at) = locate(ticket.cell / GROUP);
        let Some(segment) = self.segments.get(number).and_then(OnceLock::get) else {
            return;
        };
        let (group, bit) = (&segment.groups[at], 1 << (ticket.cell % GROUP));
        let state = &group.cell(ticket.cell).state;
        // One step checks the ticket and marks the cell: the loop may close the handle at this
        // moment and reuse the cell.
        let before = state.fetch_update(SeqCst, Relaxed, |state| {
            (state & !MARKED == ticket.generation).then_some(state | MARKED)
        });
        let Ok(before) = before else {
            return;
        };
        if before & MARKED == 0 {
            group.sent.fetch_or(bit, SeqCst);
        } else if group.sent.load(SeqCst) & bit == 0 {
            // The loop clears `taken` before it clears the mark. So the mark that this send found
            // is pending, and the loop does not sleep before it has delivered it.
            if group.taken.load(SeqCst) & bit != 0 {
                return;
            }
            group.sent.fetch_or(bit, SeqCst);
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

    /// Completes the request with this cell. Each request is completed once.
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

    /// Wakes the loop if it may be asleep, even if another sender is about to wake it.
    #[inline]
    pub(crate) fn wake(&self) {
        let sleep = self.sleep.load(SeqCst);
        if sleep & ASLEEP != 0 {
            self.waker.signal();
            // This fails if another sender was faster, or if the loop has woken up and perhaps
            // fallen asleep again.
            let _ = self
                .sleep
                .compare_exchange(sleep, sleep & !ASLEEP, SeqCst, Relaxed);
        }
    }

    /// Whether nothing has been sent or completed since the loop last collected.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        !self.has_sends() && !self.has_completed()
    }

    /// Whether a request has been completed since the loop last collected.
    #[inline]
    pub(crate) fn has_completed(&self) -> bool {
        self.completed.load(SeqCst) != NIL
    }

    /// Whether an async handle has been sent to since the loop last collected.
    #[inline]
    pub(crate) fn has_sends(&self) -> bool {
        self.top.load(SeqCst) != 0
    }
}

/// Sends to one async handle, from any thread. It may outlive the handle and the loop.
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
