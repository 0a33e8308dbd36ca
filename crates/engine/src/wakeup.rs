//! The loop's side of its mailbox. The [`Receiver`] owns the cells, allocates them, and delivers
//! sends and completed requests. `mailbox.rs` has the invariants that both sides keep.
//!
//! The loop takes everything that has been sent so far at once, and delivers in this turn only
//! that. Delivering n sends costs O(n) and one load for each 4096 handles. Cells are delivered in
//! the order of their addresses.

use crate::engine::Engine;
use crate::event::Token;
use crate::handle::Kind;
use crate::mailbox::{
    ASLEEP, CANCELLED, Cell, GENERATION, GROUP, Group, MARKED, Mailbox, REQUESTED, SLEEPS, Segment,
    Sender, Ticket, locate,
};
use crate::slab::{Key, NIL};
use blacklight_sys::Errno;
use blacklight_sys::fallible::Arc;
use blacklight_sys::per_process;
use std::sync::atomic::Ordering::{AcqRel, Relaxed, SeqCst};

/// The loop's own side of the mailbox.
#[derive(Debug)]
pub(crate) struct Receiver {
    pub(crate) mailbox: Arc<Mailbox>,
    /// The first of the groups with taken cells of which none has been delivered yet.
    chain: u32,
    /// The group that is being delivered, and its cells that are left.
    group: u32,
    left: u64,
    /// Cells of completed requests that have not been delivered yet, first completed first.
    completed: u32,
    /// Whether the waker may have been signalled since the poller last polled it. Until the next
    /// poll, the loop's descriptor may stay readable to an embedding program.
    pub(crate) signalled: bool,
    /// Whether the last wait for events has brought sends: more may follow soon.
    pub(crate) had_sends: bool,
    /// Requests in progress: submitted, and not delivered yet.
    pub(crate) requests: u32,
    /// How many requests have been submitted so far.
    pub(crate) submitted: u32,
    /// The loop's entry in the table of the thread pool, and the process of that pool.
    pub(crate) place: Option<(u64, Key)>,
    /// The process that submitted the requests.
    pub(crate) process: u64,
    /// Free cells, chained through `below`.
    free: u32,
    cells: u32,
    /// The number of the last sleep, in steps of [`SLEEPS`].
    sleeps: u64,
}

impl Receiver {
    pub(crate) fn new() -> Result<Receiver, Errno> {
        // A child must not wait for senders that exist in its parent only.
        per_process::watch_forks();
        Ok(Receiver {
            mailbox: Arc::try_new(Mailbox::new()?)?,
            chain: NIL,
            group: 0,
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
            sleeps: 0,
        })
    }

    fn cell(&self, cell: u32) -> &Cell {
        self.mailbox.cell(cell).expect("an allocated cell exists")
    }

    pub(crate) fn allocate(&mut self, token: Token) -> Result<Ticket, Errno> {
        let at = match self.free {
            NIL => self.grow()?,
            free => free,
        };
        let cell = self.cell(at);
        let generation = cell.state.load(Relaxed);
        debug_assert!(
            generation.is_multiple_of(GENERATION),
            "a free cell is marked"
        );
        cell.token.store(token.0, Relaxed);
        self.free = cell.below.load(Relaxed);
        Ok(Ticket {
            cell: at,
            generation,
        })
    }

    /// A cell that has never been used. Allocates its segment if that does not exist yet.
    fn grow(&mut self) -> Result<u32, Errno> {
        let at = self.cells;
        let (segment, _) = locate(at / GROUP);
        let place = self.mailbox.segments.get(segment).ok_or(Errno::ENOMEM)?;
        if place.get().is_none() {
            let new = Segment::new(segment)?;
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

    /// Makes the ticket stale. Frees its cell at once or, if the cell is marked, when the pending
    /// send comes up for delivery.
    pub(crate) fn retire(&mut self, ticket: Ticket) {
        let cell = self.cell(ticket.cell);
        if cell.state.fetch_add(GENERATION, AcqRel) & MARKED == 0 {
            self.recycle(ticket.cell);
        } else {
            cell.token.store(RETIRED, Relaxed);
        }
    }

    /// Announces that the loop is about to sleep. Returns false, with the loop awake, if something
    /// has been sent meanwhile.
    pub(crate) fn fall_asleep(&mut self) -> bool {
        self.begin_sleep();
        if self.mailbox.is_empty() {
            return true;
        }
        self.awake();
        false
    }

    /// Sets `ASLEEP` under a new number, so that senders that saw an older sleep cannot clear it.
    fn begin_sleep(&mut self) {
        self.sleeps = self.sleeps.wrapping_add(SLEEPS);
        self.mailbox.sleep.swap(self.sleeps | ASLEEP, SeqCst);
    }

    /// Announces that the loop, which may have been asleep, is running: senders need not wake it.
    #[inline]
    pub(crate) fn awake(&mut self) {
        if self.mailbox.sleep.swap(self.sleeps, SeqCst) & ASLEEP == 0 {
            self.signalled = true;
        }
    }

    /// Whether the next sender wakes the loop.
    pub(crate) fn may_be_asleep(&self) -> bool {
        self.mailbox.sleep.load(SeqCst) & ASLEEP != 0
    }

    /// Announces that the loop no longer runs. Signals the waker for sends that are pending, since
    /// an embedding program may wait for the loop's descriptor.
    pub(crate) fn rest(&mut self) {
        self.begin_sleep();
        if !self.mailbox.is_empty() {
            self.mailbox.wake();
        }
    }

    /// Takes all sends so far, to be delivered in the order of the cells.
    pub(crate) fn collect(&mut self) {
        if self.chain != NIL || self.left != 0 || !self.mailbox.has_sends() {
            return;
        }
        // From the last segment to the first, since `take` prepends each group to the chain.
        let mut left = self.mailbox.top.swap(0, SeqCst);
        while let Some(number) = left.checked_ilog2() {
            left &= !(1 << number);
            let segment = self.mailbox.segment(number as usize);
            let first = (1 << number) - 1;
            if segment.banks.is_empty() {
                for (at, group) in segment.groups.iter().enumerate().rev() {
                    take(group, first + at as u32, &mut self.chain);
                }
            } else {
                take_from_banks(segment, first, &mut self.chain);
            }
        }
    }

    /// Reverses the chain that begins with this cell. Returns its new first cell and its length.
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

    /// Whether sends have been taken out of the mailbox and not been delivered.
    #[inline]
    pub(crate) fn has_collected_sends(&self) -> bool {
        self.chain != NIL || self.left != 0
    }

    /// Whether completed requests have been taken out of the mailbox and not been delivered.
    #[inline]
    pub(crate) fn has_collected_requests(&self) -> bool {
        self.completed != NIL
    }

    /// Whether nothing is left to deliver.
    #[cfg(test)]
    pub(crate) fn is_quiet(&self) -> bool {
        !self.has_collected_sends() && !self.has_collected_requests() && self.mailbox.is_empty()
    }

    /// The next send to deliver.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<Token> {
        loop {
            while self.left != 0 {
                let group = self.mailbox.group(self.group);
                let at = self.group * GROUP + self.left.trailing_zeros();
                self.left &= self.left - 1;
                // Before the mark is cleared; see `Mailbox::send`.
                group.taken.store(self.left, Relaxed);
                let cell = group.cell(at);
                let token = cell.token.load(Relaxed);
                // From here on a send marks the cell again.
                if cell.state.fetch_and(!MARKED, SeqCst) & MARKED == 0 {
                    // A preempted sender has set the bits after its send was delivered.
                    continue;
                }
                if token != RETIRED {
                    return Some(Token(token));
                }
                self.recycle(at);
            }
            if self.chain == NIL {
                return None;
            }
            self.group = self.chain;
            let group = self.mailbox.group(self.group);
            self.left = group.taken.load(Relaxed);
            self.chain = group.next.load(Relaxed);
        }
    }

    /// A cell for a new request.
    pub(crate) fn allocate_request(&mut self, token: Token) -> Result<u32, Errno> {
        if token.0 == RETIRED {
            return Err(Errno::EINVAL);
        }
        let Ticket { cell, generation } = self.allocate(token)?;
        let state = &self.cell(cell).state;
        state.store(generation | REQUESTED, Relaxed);
        self.requests += 1;
        self.submitted = self.submitted.wrapping_add(1);
        Ok(cell)
    }

    /// Frees the cell of a request that is over.
    pub(crate) fn free_request(&mut self, at: u32) {
        self.requests -= 1;
        // The next request in this cell has another generation, and was not cancelled.
        let state = &self.cell(at).state;
        state.store(
            (state.load(Relaxed) & !(CANCELLED | REQUESTED)).wrapping_add(GENERATION),
            Relaxed,
        );
        self.recycle(at);
    }

    /// Completes a request that was taken back from the pool, as cancelled.
    pub(crate) fn cancel_request(&mut self, at: u32) {
        self.cell(at).state.fetch_or(CANCELLED, Relaxed);
        self.mailbox.complete(at);
    }

    /// Takes all requests that have been completed so far. Returns how many.
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

    /// The next completed request, and whether it was cancelled. Frees its cell.
    #[inline]
    pub(crate) fn next_request(&mut self) -> Option<(Token, bool)> {
        if self.completed == NIL {
            return None;
        }
        let at = self.completed;
        let cell = self.cell(at);
        let (below, token) = (cell.below.load(Relaxed), cell.token.load(Relaxed));
        let cancelled = cell.state.load(Relaxed) & CANCELLED != 0;
        self.completed = below;
        self.free_request(at);
        Some((Token(token), cancelled))
    }

    /// Clears the marks of senders that the fork interrupted before they had set all bits: those
    /// threads exist in the parent only. Bits that they have set lead to no mark.
    fn unmark_all(&mut self) {
        for at in 0..self.cells {
            let cell = self.cell(at);
            let was_marked = cell.state.fetch_and(!MARKED, SeqCst) & MARKED != 0;
            if was_marked && cell.token.load(Relaxed) == RETIRED {
                self.recycle(at);
            }
        }
    }

    /// Forgets requests that no thread of this process will complete, and frees their cells. The cells
    /// stay taken if the program has submitted requests in this process already, since these are
    /// still to be completed; that is as many cells as there are such requests.
    fn forget_requests(&mut self) {
        if self.place().is_none() {
            for at in 0..self.cells {
                if self.cell(at).state.load(Relaxed) & REQUESTED != 0 {
                    self.free_request(at);
                }
            }
        }
        self.requests = 0;
    }

    /// Gives a child process its own waker. Discards all sends, and all requests in progress,
    /// since the pool's threads exist in the parent only.
    pub(crate) fn fork(&mut self) -> Result<(), Errno> {
        self.mailbox.waker.renew()?;
        // A thread of the parent may have been about to wake the loop; the next send must wake it.
        self.begin_sleep();
        while self.next().is_some() {}
        self.collect();
        while self.next().is_some() {}
        let process = per_process::generation();
        if self.process != process {
            self.process = process;
            while self.next_request().is_some() {}
            self.collect_requests();
            while self.next_request().is_some() {}
            self.forget_requests();
            self.unmark_all();
        }
        Ok(())
    }
}

/// The token of a cell whose handle was closed while a send was pending.
const RETIRED: u64 = u64::MAX;

/// Takes the sends of a group and prepends the group to the chain. While a cell is in `taken`,
/// further sends to it coalesce with the one that was taken.
#[inline]
fn take(group: &Group, number: u32, chain: &mut u32) {
    let sent = group.sent.load(SeqCst);
    if sent != 0 {
        group.taken.store(sent, Relaxed);
        group.sent.fetch_and(!sent, SeqCst);
        group.next.store(*chain, Relaxed);
        *chain = number;
    }
}

/// Takes the sends of a segment that has banks. Its first group has the number `first`.
fn take_from_banks(segment: &Segment, first: u32, chain: &mut u32) {
    for (bank, word) in segment.banks.iter().enumerate().rev() {
        if word.load(SeqCst) == 0 {
            continue;
        }
        let mut left = word.swap(0, SeqCst);
        while let Some(bit) = left.checked_ilog2() {
            left &= !(1 << bit);
            let at = bank as u32 * GROUP + bit;
            take(&segment.groups[at as usize], first + at, chain);
        }
    }
}

impl Engine {
    pub(crate) fn receiver(&mut self) -> &mut Receiver {
        &mut self.driver.sources.receiver
    }

    /// Makes an async handle, which is active at once. Its token must not be `u64::MAX`.
    pub fn async_init(&mut self, token: Token) -> Result<(Key, Ticket), Errno> {
        if token.0 == RETIRED {
            return Err(Errno::EINVAL);
        }
        let ticket = self.receiver().allocate(token)?;
        match self.make_handle(Kind::Async(ticket), token) {
            Ok(key) => {
                self.handles.set_active(key.index, true);
                Ok((key, ticket))
            }
            Err(error) => {
                self.receiver().retire(ticket);
                Err(error)
            }
        }
    }

    /// The mailbox, which senders need besides the ticket.
    pub fn mailbox(&self) -> &Arc<Mailbox> {
        &self.driver.sources.receiver.mailbox
    }

    /// A sender to an async handle.
    pub fn async_sender(&self, ticket: Ticket) -> Sender {
        Sender::new(self.mailbox().clone(), ticket)
    }

    pub(crate) fn retire_async(&mut self, index: u32, ticket: Ticket) {
        self.receiver().retire(ticket);
        self.handles.set_active(index, false);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn sends_coalesce_and_arrive_in_the_order_of_the_cells() {
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
        assert_eq!(delivered, [Token(7), Token(64), Token(150)]);
        assert!(
            receiver.mailbox.is_empty(),
            "a send before the delivery coalesces with it"
        );
        receiver.mailbox.send(tickets[64]);
        receiver.collect();
        assert_eq!(receiver.next(), Some(Token(64)));
        assert_eq!(receiver.next(), None);
    }

    #[test]
    fn a_send_after_collecting_waits_for_the_next_turn_in_any_group() {
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
        assert_eq!(delivered(&mut receiver), [3, 65, 70, 130]);
        receiver.collect();
        assert_eq!(delivered(&mut receiver), [4, 71, 131, 199]);
        assert!(receiver.is_quiet());
    }

    /// The child of a process whose threads were inside a send during the fork.
    #[test]
    fn a_send_that_a_fork_interrupted_does_not_block_later_sends_in_the_child() {
        let mut receiver = Receiver::new().unwrap();
        let [marked, sent] = [1, 2].map(|token| receiver.allocate(Token(token)).unwrap());
        receiver.cell(marked.cell).state.fetch_or(MARKED, SeqCst);
        receiver.cell(sent.cell).state.fetch_or(MARKED, SeqCst);
        let group = &receiver.mailbox.segment(0).groups[0];
        group.sent.fetch_or(1 << sent.cell, SeqCst);
        receiver.process = receiver.process.wrapping_sub(1);
        receiver.fork().unwrap();
        for ticket in [marked, sent] {
            receiver.mailbox.send(ticket);
        }
        receiver.collect();
        let delivered: Vec<_> = std::iter::from_fn(|| receiver.next()).collect();
        assert_eq!(delivered, [Token(1), Token(2)]);
    }

    #[test]
    fn a_fork_frees_the_cells_of_requests_that_the_parent_runs() {
        let mut receiver = Receiver::new().unwrap();
        let handle = receiver.allocate(Token(1)).unwrap();
        let request = |receiver: &mut Receiver| receiver.allocate_request(Token(2)).unwrap();
        let [completed, cancelled, running] = [(); 3].map(|()| request(&mut receiver));
        receiver.mailbox.complete(completed);
        receiver.collect_requests();
        receiver.cancel_request(cancelled);
        receiver.process = receiver.process.wrapping_sub(1);
        receiver.fork().unwrap();
        assert_eq!((receiver.requests, receiver.collect_requests()), (0, 0));
        let mut reused = [(); 3].map(|()| request(&mut receiver));
        reused.sort_unstable();
        assert_eq!(reused, [completed, cancelled, running]);
        receiver.mailbox.send(handle);
        receiver.collect();
        assert_eq!(receiver.next(), Some(Token(1)), "handles keep their cells");
    }

    /// A sender is preempted after it has marked its cell, then also after it has set the bit in the
    /// group, then also after the bit in the bank. Another sender still wakes the loop.
    #[test]
    fn a_preempted_sender_suppresses_no_other_senders_wake_up() {
        const GROUPS: u32 = 200;
        for preempted_after in 1..=3 {
            for sent in [GROUPS * GROUP - 1, GROUPS * GROUP - 2] {
                let mut receiver = Receiver::new().unwrap();
                let mut tickets: Vec<_> = (0..GROUPS * GROUP)
                    .map(|token| receiver.allocate(Token(token.into())).unwrap())
                    .collect();
                let ticket = tickets.pop().unwrap();
                let (segment, at) = locate(ticket.cell / 64);
                let segment = receiver.mailbox.segment(segment);
                let state = &segment.groups[at].cell(ticket.cell).state;
                state.fetch_or(MARKED, SeqCst);
                if preempted_after > 1 {
                    let bit = 1 << (ticket.cell % 64);
                    segment.groups[at].sent.fetch_or(bit, SeqCst);
                }
                if preempted_after > 2 {
                    segment.banks[at / 64].fetch_or(1 << (at % 64), SeqCst);
                }
                assert!(receiver.fall_asleep());
                tickets.push(ticket);
                receiver.mailbox.send(tickets[sent as usize]);
                assert_eq!(receiver.mailbox.waker.count(), 1);
                receiver.collect();
                let mut delivered: Vec<_> = std::iter::from_fn(|| receiver.next()).collect();
                assert!(delivered.contains(&Token(sent.into())), "{delivered:?}");
                resume_send(&receiver, ticket);
                receiver.collect();
                delivered.extend(std::iter::from_fn(|| receiver.next()));
                delivered.sort_unstable_by_key(|token| token.0);
                let mut all = vec![Token(sent.into()), Token(ticket.cell.into())];
                all.dedup();
                assert_eq!(delivered, all, "each once, after {preempted_after} steps");
                assert!(receiver.is_quiet());
            }
        }
    }

    /// The rest of a send that was preempted after it had marked its cell.
    fn resume_send(receiver: &Receiver, ticket: Ticket) {
        let (number, at) = locate(ticket.cell / 64);
        let segment = receiver.mailbox.segment(number);
        let group = &segment.groups[at];
        group.sent.fetch_or(1 << (ticket.cell % 64), SeqCst);
        segment.banks[at / 64].fetch_or(1 << (at % 64), SeqCst);
        receiver.mailbox.top.fetch_or(1 << number, SeqCst);
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
    fn requests_come_back_in_order_with_a_wake_up_for_each_thread_at_most() {
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
        let wake_ups = receiver.mailbox.waker.count();
        assert!((1..=4).contains(&wake_ups), "one for each thread at most");
        assert_eq!(receiver.collect_requests(), 500);
        let delivered: Vec<_> = std::iter::from_fn(|| receiver.next_request()).collect();
        for thread in 0..4 {
            let of_thread = delivered
                .iter()
                .map(|(token, _)| token.0)
                .filter(|at| at / 125 == thread);
            assert!(of_thread.eq(thread * 125..(thread + 1) * 125), "in order");
        }
        assert_eq!(receiver.requests, 0);
        // Cells are reused, and a request does not inherit the cancellation of the one before.
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
