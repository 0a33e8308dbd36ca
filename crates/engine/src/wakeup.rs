//! Async handles: how other threads and signal handlers reach a loop.
//!
//! Senders touch nothing of the engine. They share a [`Mailbox`] with it: one cell for
//! each async handle, and a lock-free stack of the groups of cells that have been sent to. A
//! send marks its cell, notes it in the cell's group, pushes the group if it is the first
//! there, and wakes the loop if the loop may be asleep; all of it is atomics and at most one
//! `write` to an eventfd, so it may happen in a signal handler.
//!
//! The rules that make this exact:
//!
//! - A cell is noted in its group if and only if it is marked, and a group is in the stack
//!   if and only if a cell is noted in it. So a send to a marked cell has nothing left to do.
//!   Marking is always a read-modify-write: even a send that finds the mark set is ordered
//!   before the delivery that clears it, which is what lets the callback see all that the
//!   sender did before.
//! - The loop takes the whole stack at once, and what is noted in its groups: those and no
//!   others are delivered in this turn. Delivering n sends costs O(n) however many handles
//!   there are, and where they are many the loop goes through cells and handles in the order
//!   in which they are in memory. A cell's mark is cleared before its callback runs.
//! - `asleep` is set whenever the loop may be waiting in the kernel, or whenever it is not
//!   running at all, since then some other loop may be waiting for our descriptor. Only a
//!   sender that clears `asleep` writes to the eventfd. The loop sets it *before* it looks
//!   at the stack for the last time, and a sender looks at it *after* its push, all
//!   sequentially consistent: one of the two sees the other, and no wake-up is lost.
//! - A closed handle's cell is given to a new one only when it is no longer marked.
//! - What has been sent may be delivered, and the loop be closed over it, while its sender is
//!   still about to wake the loop. So each sender keeps the mailbox alive: a [`Sender`] shares
//!   in it, and a front end with plain pointers closes a [`Gate`](crate::Gate) first.
//!
//! Requests of the thread pool come back by a second stack, of cells: a request has a cell
//! from its submission to its completion, and is pushed once. Its mark is the loop's own note
//! that the request was cancelled.

use crate::engine::Engine;
use crate::event::Token;
use crate::handle::Kind;
use crate::poller::Poller;
use crate::pool::Pool;
use crate::slab::{Key, NIL};
use crate::spin::Awaited;
use blacklight_sys::Errno;
use blacklight_sys::eventfd::EventFd;
use blacklight_sys::fallible::Arc;
use blacklight_sys::per_process;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::{AcqRel, Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

/// The mark in a cell's state; the rest is its generation.
const MARKED: u32 = 1;
const GENERATION: u32 = 2;

#[derive(Default, Debug)]
struct Cell {
    state: AtomicU32,
    /// The cell below in the stack.
    below: AtomicU32,
    token: AtomicU64,
}

/// The cells of a group.
const GROUP: u32 = u64::BITS;

/// Cells that are neighbours, a bit for each.
#[derive(Default, Debug)]
struct Group {
    /// Those that have been sent to.
    noted: AtomicU64,
    /// Those that the loop has taken from there to deliver them. Nobody else looks.
    taken: AtomicU64,
    /// The group below in the stack.
    below: AtomicU32,
    /// The group that is delivered next. Nobody else looks.
    next: AtomicU32,
}

#[derive(Debug)]
struct Segment {
    cells: Box<[Cell]>,
    groups: Box<[Group]>,
}

impl Segment {
    fn new(len: usize) -> Result<Segment, Errno> {
        Ok(Segment {
            cells: boxed(len)?,
            groups: boxed(len / GROUP as usize)?,
        })
    }
}

fn boxed<T: Default>(len: usize) -> Result<Box<[T]>, Errno> {
    let mut all = Vec::new();
    all.try_reserve_exact(len)?;
    all.resize_with(len, T::default);
    Ok(all.into_boxed_slice())
}

/// Cells do not move, since senders may be looking at them: they live in segments, each
/// twice as long as the one before.
const FIRST_SEGMENT: u32 = GROUP;
const SEGMENTS: usize = 26;

/// Where a cell is: its segment and its place in it.
fn locate(cell: u32) -> (usize, usize) {
    let at = cell as u64 + FIRST_SEGMENT as u64;
    let segment = at.ilog2() - FIRST_SEGMENT.ilog2();
    (
        segment as usize,
        (at - ((FIRST_SEGMENT as u64) << segment)) as usize,
    )
}

/// Names one async handle to its senders.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ticket {
    cell: u32,
    generation: u32,
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

/// What a loop shares with those who wake it.
#[derive(Debug)]
pub struct Mailbox {
    /// The stack of groups that have been sent to.
    top: AtomicU32,
    /// The stack of completed requests.
    completed: AtomicU32,
    asleep: AtomicBool,
    /// Shared with the process's signal handler.
    pub(crate) eventfd: Arc<EventFd>,
    segments: [OnceLock<Segment>; SEGMENTS],
}

impl Mailbox {
    pub(crate) fn new() -> Result<Mailbox, Errno> {
        Ok(Mailbox {
            top: AtomicU32::new(NIL),
            completed: AtomicU32::new(NIL),
            asleep: AtomicBool::new(true),
            eventfd: Arc::try_new(EventFd::new()?)?,
            segments: [const { OnceLock::new() }; SEGMENTS],
        })
    }

    fn cell(&self, cell: u32) -> Option<&Cell> {
        let (segment, place) = locate(cell);
        self.segments.get(segment)?.get()?.cells.get(place)
    }

    /// The group with this number, which is an existing cell's divided by [`GROUP`].
    fn group(&self, group: u32) -> &Group {
        let (segment, place) = locate(group * GROUP);
        let segment = self.segments[segment].get().expect("a cell has a group");
        &segment.groups[place / GROUP as usize]
    }

    /// Sends to an async handle: its event follows on the loop's next turn. Any number of
    /// sends before that are one. A ticket whose handle has been closed sends nothing.
    ///
    /// May be called from any thread and from signal handlers.
    pub fn send(&self, ticket: Ticket) {
        let (segment, place) = locate(ticket.cell);
        let Some(segment) = self.segments.get(segment).and_then(OnceLock::get) else {
            return;
        };
        let cell = &segment.cells[place];
        // The ticket is checked and the cell marked in one step: the handle may be closed at
        // this very moment, and the cell be given to another.
        let marked = cell.state.fetch_update(SeqCst, Relaxed, |state| {
            (state & !MARKED == ticket.generation).then_some(state | MARKED)
        });
        if marked.is_err() || marked.is_ok_and(|before| before & MARKED != 0) {
            return;
        }
        let group = &segment.groups[place / GROUP as usize];
        if group.noted.fetch_or(1 << (ticket.cell % GROUP), SeqCst) == 0 {
            Self::push(&self.top, ticket.cell / GROUP, &group.below);
            self.wake();
        }
    }

    /// Says that the request with this cell is completed, which happens once to each.
    pub(crate) fn complete(&self, at: u32) {
        let cell = self.cell(at).expect("a request has a cell");
        Self::push(&self.completed, at, &cell.below);
        self.wake();
    }

    /// Pushes `at`, whose link is `below`.
    fn push(stack: &AtomicU32, at: u32, below: &AtomicU32) {
        let mut top = stack.load(Relaxed);
        loop {
            below.store(top, Relaxed);
            match stack.compare_exchange_weak(top, at, SeqCst, Relaxed) {
                Ok(_) => break,
                Err(other) => top = other,
            }
        }
    }

    /// Wakes the loop if it may be asleep.
    fn wake(&self) {
        if self.asleep.load(SeqCst) && self.asleep.swap(false, SeqCst) {
            self.eventfd.signal();
        }
    }

    /// Whether nothing has been sent or completed since the stacks were last taken.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.top.load(SeqCst) == NIL && self.completed.load(SeqCst) == NIL
    }

    /// Whether something has been sent to an async handle since the stack was last taken.
    #[inline]
    pub(crate) fn has_sends(&self) -> bool {
        self.top.load(SeqCst) != NIL
    }

    /// Says that the loop no longer runs. Whoever waits for our descriptor instead must
    /// hear of what has been sent already.
    pub(crate) fn rest(&self) {
        self.asleep.store(true, SeqCst);
        if !self.is_empty() {
            self.wake();
        }
    }
}

/// The loop's own side of the mailbox.
#[derive(Debug)]
pub(crate) struct Receiver {
    pub(crate) mailbox: Arc<Mailbox>,
    /// Groups taken out of the stack and not looked at yet, first sent first.
    chain: u32,
    /// The first cell of the group that is being delivered, and what is left of it.
    base: u32,
    left: u64,
    /// Cells of completed requests that have not been handed out yet, first completed first.
    completed: u32,
    /// Whether the eventfd may have been written to since the poller last looked at it. Until
    /// the poller has looked again, our descriptor may stay readable to others.
    pub(crate) signalled: bool,
    /// Whether the last wait for events has brought sends: more may be on their way.
    pub(crate) had_sends: bool,
    /// Requests in progress: submitted, and not handed out yet.
    pub(crate) requests: u32,
    /// How many have been submitted, ever.
    pub(crate) submitted: u32,
    /// Our place in the table of a process's thread pool, once we have one.
    pub(crate) place: Option<(u64, Key)>,
    /// The process that the requests are of.
    process: u64,
    /// Free cells, chained through `below`.
    free: u32,
    cells: u32,
}

impl Receiver {
    pub(crate) fn new() -> Result<Receiver, Errno> {
        // A child must not wait for senders that exist in its parent only.
        per_process::watch_forks();
        Ok(Receiver {
            mailbox: Arc::try_new(Mailbox::new()?)?,
            chain: NIL,
            base: 0,
            left: 0,
            completed: NIL,
            signalled: false,
            had_sends: false,
            requests: 0,
            submitted: 0,
            place: None,
            process: per_process::generation(),
            free: NIL,
            cells: 0,
        })
    }

    fn cell(&self, cell: u32) -> &Cell {
        self.mailbox
            .cell(cell)
            .expect("a cell that was handed out exists")
    }

    fn allocate(&mut self, token: Token) -> Result<Ticket, Errno> {
        let at = match self.free {
            NIL => self.grow()?,
            free => free,
        };
        let cell = self.cell(at);
        let generation = cell.state.load(Relaxed);
        debug_assert!(generation & MARKED == 0, "a free cell is marked");
        cell.token.store(token.0, Relaxed);
        self.free = cell.below.load(Relaxed);
        Ok(Ticket {
            cell: at,
            generation,
        })
    }

    /// Adds the next segment's first cell to the free chain, and the segment where it is
    /// not there yet.
    fn grow(&mut self) -> Result<u32, Errno> {
        let at = self.cells;
        let (segment, _) = locate(at);
        let place = self.mailbox.segments.get(segment).ok_or(Errno::ENOMEM)?;
        if place.get().is_none() {
            let new = Segment::new((FIRST_SEGMENT as usize) << segment)?;
            place.get_or_init(|| new);
        }
        self.cell(at).below.store(NIL, Relaxed);
        self.cells += 1;
        Ok(at)
    }

    fn recycle(&mut self, at: u32) {
        self.cell(at).below.store(self.free, Relaxed);
        self.free = at;
    }

    /// Makes the ticket stale. Its cell is free at once unless it is marked; then it is freed
    /// when its turn comes.
    fn retire(&mut self, ticket: Ticket) {
        let cell = self.cell(ticket.cell);
        if cell.state.fetch_add(GENERATION, AcqRel) & MARKED == 0 {
            self.recycle(ticket.cell);
        } else {
            cell.token.store(RETIRED, Relaxed);
        }
    }

    /// Says that the loop is about to sleep. If it must not, since something has been sent
    /// meanwhile, the answer is false and the loop is awake.
    pub(crate) fn fall_asleep(&mut self) -> bool {
        self.mailbox.asleep.store(true, SeqCst);
        if self.mailbox.is_empty() {
            return true;
        }
        self.awake();
        false
    }

    /// Says that the loop, which may have been asleep, is running: senders need not wake it.
    #[inline]
    pub(crate) fn awake(&mut self) {
        if !self.mailbox.asleep.swap(false, SeqCst) {
            self.signalled = true;
        }
    }

    /// Takes what has been sent so far. It is delivered by groups, of which the first sent to
    /// is the first, and in a group in the order of its cells.
    pub(crate) fn collect(&mut self) {
        if self.chain != NIL || self.left != 0 || !self.mailbox.has_sends() {
            return;
        }
        let mut at = self.mailbox.top.swap(NIL, SeqCst);
        while at != NIL {
            let group = self.mailbox.group(at);
            // As soon as nothing is noted in it, it may be pushed again.
            let below = group.below.load(Relaxed);
            let taken = group.noted.swap(0, SeqCst);
            debug_assert!(taken != 0, "a group in the stack has nothing noted");
            group.taken.store(taken, Relaxed);
            group.next.store(self.chain, Relaxed);
            self.chain = at;
            at = below;
        }
    }

    /// The chain that begins with this cell the other way round, and its length.
    fn reversed(&self, mut next: u32) -> (u32, u32) {
        let (mut chain, mut length) = (NIL, 0);
        while next != NIL {
            let cell = self.cell(next);
            let below = cell.below.load(Relaxed);
            cell.below.store(chain, Relaxed);
            chain = next;
            next = below;
            length += 1;
        }
        (chain, length)
    }

    /// Whether something has been taken out of the mailbox and not been handed out.
    #[inline]
    pub(crate) fn has_collected(&self) -> bool {
        self.chain != NIL || self.left != 0 || self.completed != NIL
    }

    /// Whether nothing is to be handed out.
    #[inline]
    pub(crate) fn is_quiet(&self) -> bool {
        !self.has_collected() && self.mailbox.is_empty()
    }

    /// The next send to deliver.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<Token> {
        loop {
            while self.left != 0 {
                let at = self.base + self.left.trailing_zeros();
                self.left &= self.left - 1;
                let cell = self.cell(at);
                let token = cell.token.load(Relaxed);
                // From here on the cell may be sent to again.
                cell.state.fetch_and(!MARKED, SeqCst);
                if token != RETIRED {
                    return Some(Token(token));
                }
                self.recycle(at);
            }
            if self.chain == NIL {
                return None;
            }
            let group = self.mailbox.group(self.chain);
            self.left = group.taken.load(Relaxed);
            self.base = self.chain * GROUP;
            self.chain = group.next.load(Relaxed);
        }
    }

    /// A cell for a new request.
    pub(crate) fn allocate_request(&mut self, token: Token) -> Result<u32, Errno> {
        if token.0 == RETIRED {
            return Err(Errno::EINVAL);
        }
        let cell = self.allocate(token)?.cell;
        self.requests += 1;
        self.submitted = self.submitted.wrapping_add(1);
        Ok(cell)
    }

    /// Takes back the cell of a request that is over.
    pub(crate) fn free_request(&mut self, at: u32) {
        self.requests -= 1;
        // The next owner has a generation of its own, and a clean mark.
        let state = &self.cell(at).state;
        state.store(
            (state.load(Relaxed) & !MARKED).wrapping_add(GENERATION),
            Relaxed,
        );
        self.recycle(at);
    }

    /// Completes a request that nobody will do any more.
    pub(crate) fn cancel_request(&mut self, at: u32) {
        self.cell(at).state.fetch_or(MARKED, Relaxed);
        self.mailbox.complete(at);
    }

    /// Takes the requests that have been completed so far; how many there are.
    #[inline]
    pub(crate) fn collect_requests(&mut self) -> u32 {
        if self.completed != NIL || self.mailbox.completed.load(Relaxed) == NIL {
            return 0;
        }
        let taken = self.mailbox.completed.swap(NIL, SeqCst);
        let (chain, length) = self.reversed(taken);
        self.completed = chain;
        length
    }

    /// The next completed request, and whether it was cancelled. Its cell is free from now.
    #[inline]
    pub(crate) fn next_request(&mut self) -> Option<(Token, bool)> {
        if self.completed == NIL {
            return None;
        }
        let at = self.completed;
        let cell = self.cell(at);
        let (below, token) = (cell.below.load(Relaxed), cell.token.load(Relaxed));
        let cancelled = cell.state.load(Relaxed) & MARKED != 0;
        self.completed = below;
        self.free_request(at);
        Some((Token(token), cancelled))
    }

    /// Clears the marks that senders left who were interrupted by the fork before they had
    /// pushed the group: they exist in the parent only.
    fn unmark_all(&mut self) {
        for at in 0..self.cells.div_ceil(GROUP) {
            self.mailbox.group(at).noted.store(0, SeqCst);
        }
        for at in 0..self.cells {
            let cell = self.cell(at);
            let was_marked = cell.state.fetch_and(!MARKED, SeqCst) & MARKED != 0;
            if was_marked && cell.token.load(Relaxed) == RETIRED {
                self.recycle(at);
            }
        }
    }

    /// Gives a child process an eventfd of its own and forgets what was sent before, and
    /// the requests in progress: the threads that have them are not in this process.
    pub(crate) fn fork(&mut self) -> Result<(), Errno> {
        self.mailbox.eventfd.renew()?;
        // The parent's wake-up may have been on its way; the next send has to be ours.
        self.mailbox.asleep.store(true, SeqCst);
        while self.next().is_some() {}
        self.collect();
        while self.next().is_some() {}
        let process = per_process::generation();
        if self.process != process {
            self.process = process;
            self.collect_requests();
            while self.next_request().is_some() {}
            self.requests = 0;
            self.unmark_all();
        }
        Ok(())
    }
}

/// The token of a cell whose handle has been closed while a send was on its way.
const RETIRED: u64 = u64::MAX;

/// The right to send to one async handle, from anywhere and for as long as one likes.
#[derive(Clone, Debug)]
pub struct Sender {
    mailbox: Arc<Mailbox>,
    ticket: Ticket,
}

impl Sender {
    /// Sends; see [`Mailbox::send`].
    pub fn send(&self) {
        self.mailbox.send(self.ticket);
    }
}

/// Waits for something in the mailbox.
struct Mail<'a> {
    poller: &'a mut Poller,
    mailbox: &'a Mailbox,
}

impl Awaited for Mail<'_> {
    #[inline]
    fn is_ready(&mut self) -> bool {
        !self.mailbox.is_empty()
    }

    #[inline]
    fn now_ns(&self) -> u64 {
        self.poller.now_ns()
    }

    #[inline]
    fn pause(&mut self) {
        self.poller.pause();
    }
}

impl Engine {
    /// Makes an async handle, which is active at once. Its token must not be `u64::MAX`.
    pub fn async_init(&mut self, token: Token) -> Result<(Key, Ticket), Errno> {
        if token.0 == RETIRED {
            return Err(Errno::EINVAL);
        }
        let ticket = self.receiver.allocate(token)?;
        match self.handles.insert(Kind::Async(ticket), token) {
            Ok(key) => {
                self.handles.set_active(key.index, true);
                Ok((key, ticket))
            }
            Err(error) => {
                self.receiver.retire(ticket);
                Err(error)
            }
        }
    }

    /// What senders need besides the ticket.
    pub fn mailbox(&self) -> &Arc<Mailbox> {
        &self.receiver.mailbox
    }

    /// A sender to an async handle.
    pub fn async_sender(&self, ticket: Ticket) -> Sender {
        Sender {
            mailbox: self.receiver.mailbox.clone(),
            ticket,
        }
    }

    /// Waits awake for a moment if mail is to be expected, since requests are in progress or
    /// since some has just come, and if waiting awake has paid lately. Returns whether something
    /// has come meanwhile.
    #[inline]
    pub(crate) fn spin_for_mail(&mut self) -> bool {
        let Receiver {
            requests,
            had_sends,
            ..
        } = self.receiver;
        (requests > 0 || had_sends) && self.spin_for_expected_mail()
    }

    #[inline(never)]
    fn spin_for_expected_mail(&mut self) -> bool {
        let Receiver {
            mailbox, requests, ..
        } = &self.receiver;
        if !self.poller.may_spin_for_mail(*requests > 0) || !mailbox.is_empty() {
            return false;
        }
        let spin = match requests {
            0 => self.spin.begin(),
            _ => Pool::get().begin_waiting(&mut self.spin),
        };
        let Some(spin) = spin else {
            return false;
        };
        let poller = &mut self.poller;
        let found = spin.for_mate(Mail { poller, mailbox });
        self.spin.end(found);
        found
    }

    pub(crate) fn retire_async(&mut self, index: u32, ticket: Ticket) {
        self.receiver.retire(ticket);
        self.handles.set_active(index, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_found_across_segments() {
        assert_eq!(locate(0), (0, 0));
        assert_eq!(locate(63), (0, 63));
        assert_eq!(locate(64), (1, 0));
        assert_eq!(locate(191), (1, 127));
        assert_eq!(locate(192), (2, 0));
        assert!(locate(NIL - 1).0 < SEGMENTS + 1);
    }

    #[test]
    fn sends_coalesce_and_arrive_group_by_group() {
        let mut receiver = Receiver::new().unwrap();
        let tickets: Vec<_> = (0..200)
            .map(|token| receiver.allocate(Token(token)).unwrap())
            .collect();
        for &at in &[7, 150, 7, 64, 7, 150] {
            receiver.mailbox.send(tickets[at]);
        }
        receiver.collect();
        receiver.mailbox.send(tickets[64]);
        let delivered: Vec<_> = std::iter::from_fn(|| receiver.next()).collect();
        assert_eq!(delivered, [Token(7), Token(150), Token(64)]);
        assert!(
            receiver.mailbox.is_empty(),
            "a send before its delivery is one with it"
        );
        receiver.mailbox.send(tickets[64]);
        receiver.collect();
        assert_eq!(receiver.next(), Some(Token(64)));
        assert_eq!(receiver.next(), None);
    }

    #[test]
    fn what_is_sent_after_collecting_waits_whatever_its_group() {
        let mut receiver = Receiver::new().unwrap();
        let tickets: Vec<_> = (0..200)
            .map(|token| receiver.allocate(Token(token)).unwrap())
            .collect();
        for at in [130, 65, 70, 3] {
            receiver.mailbox.send(tickets[at]);
        }
        receiver.collect();
        for at in [4, 71, 131, 199] {
            receiver.mailbox.send(tickets[at]);
        }
        let delivered = |receiver: &mut Receiver| -> Vec<u64> {
            std::iter::from_fn(|| receiver.next().map(|token| token.0)).collect()
        };
        assert_eq!(delivered(&mut receiver), [130, 65, 70, 3]);
        receiver.collect();
        assert_eq!(delivered(&mut receiver), [4, 71, 131, 199]);
        assert!(receiver.is_quiet());
    }

    /// What a child finds that was forked while threads of its parent were inside a send.
    #[test]
    fn sends_that_a_fork_cut_short_do_not_deafen_the_child() {
        let mut receiver = Receiver::new().unwrap();
        let [marked, noted] = [1, 2].map(|token| receiver.allocate(Token(token)).unwrap());
        receiver.cell(marked.cell).state.fetch_or(MARKED, SeqCst);
        receiver.cell(noted.cell).state.fetch_or(MARKED, SeqCst);
        let group = receiver.mailbox.group(0);
        group.noted.fetch_or(1 << noted.cell, SeqCst);
        receiver.process = receiver.process.wrapping_sub(1);
        receiver.fork().unwrap();
        for ticket in [marked, noted] {
            receiver.mailbox.send(ticket);
        }
        receiver.collect();
        let delivered: Vec<_> = std::iter::from_fn(|| receiver.next()).collect();
        assert_eq!(delivered, [Token(1), Token(2)]);
    }

    #[test]
    fn a_cell_in_flight_is_not_given_away() {
        let mut receiver = Receiver::new().unwrap();
        let old = receiver.allocate(Token(1)).unwrap();
        receiver.mailbox.send(old);
        receiver.retire(old);
        let new = receiver.allocate(Token(2)).unwrap();
        assert_ne!(new.cell, old.cell);
        receiver.mailbox.send(old);
        receiver.collect();
        assert_eq!(receiver.next(), None, "nothing reaches a closed handle");
        let reused = receiver.allocate(Token(3)).unwrap();
        assert_eq!(reused.cell, old.cell);
        receiver.mailbox.send(old);
        assert!(receiver.mailbox.is_empty(), "a stale ticket sends nothing");
    }

    #[test]
    fn requests_come_back_in_order_with_one_wake_up() {
        let mut receiver = Receiver::new().unwrap();
        let request = |receiver: &mut Receiver, at| receiver.allocate_request(Token(at)).unwrap();
        let cells: Vec<_> = (0..500).map(|at| request(&mut receiver, at)).collect();
        assert!(receiver.fall_asleep());
        std::thread::scope(|scope| {
            for part in cells.chunks(125) {
                let mailbox = receiver.mailbox.clone();
                scope.spawn(move || part.iter().for_each(|&cell| mailbox.complete(cell)));
            }
        });
        assert!(!receiver.fall_asleep(), "there is something to do");
        assert_eq!(
            receiver.mailbox.eventfd.count(),
            1,
            "the loop was woken once"
        );
        assert_eq!(receiver.collect_requests(), 500);
        let told: Vec<_> = std::iter::from_fn(|| receiver.next_request()).collect();
        for thread in 0..4 {
            let of_thread = told
                .iter()
                .map(|(token, _)| token.0)
                .filter(|at| at / 125 == thread);
            assert!(of_thread.eq(thread * 125..(thread + 1) * 125), "in order");
        }
        assert_eq!(receiver.requests, 0);
        // The cells are used again, and a note of cancellation is not inherited.
        let first = request(&mut receiver, 1);
        receiver.cancel_request(first);
        receiver.collect_requests();
        assert_eq!(receiver.next_request(), Some((Token(1), true)));
        let second = request(&mut receiver, 2);
        assert_eq!(first, second);
        receiver.mailbox.complete(second);
        receiver.collect_requests();
        assert_eq!(receiver.next_request(), Some((Token(2), false)));
    }

    #[test]
    fn nothing_is_lost_between_threads() {
        let mut receiver = Receiver::new().unwrap();
        let counters: Vec<_> = (0..4)
            .map(|_| std::sync::Arc::new(AtomicU64::new(0)))
            .collect();
        let tickets: Vec<_> = (0..4)
            .map(|token| receiver.allocate(Token(token)).unwrap())
            .collect();
        let mut seen = [0u64; 4];
        const ROUNDS: u64 = 20_000;
        std::thread::scope(|scope| {
            for sender in 0..8 {
                let (mailbox, ticket) = (receiver.mailbox.clone(), tickets[sender % 4]);
                let counter = counters[sender % 4].clone();
                scope.spawn(move || {
                    for _ in 0..ROUNDS {
                        counter.fetch_add(1, Relaxed);
                        mailbox.send(ticket);
                    }
                });
            }
            while seen.iter().sum::<u64>() < 8 * ROUNDS {
                receiver.collect();
                while let Some(Token(token)) = receiver.next() {
                    seen[token as usize] = counters[token as usize].load(Relaxed);
                }
                std::thread::yield_now();
            }
        });
        assert_eq!(seen, [2 * ROUNDS; 4], "the last send's value was delivered");
    }
}
