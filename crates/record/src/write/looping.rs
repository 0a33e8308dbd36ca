//! What one loop does.

use super::pool::Request;
use super::primitive::{add, what, write_text};
use super::{Record, Segments};
use crate::What;
use crate::layout::{
    COSTLY, Costly, FRAMES, HANDLES, Handle, HandleSegment, Histogram, KINDS, LoopSegment, Now,
    OriginSegment, PARTS, PENDING, PENDING_SET, Pending, SEGMENT_HANDLES, SEGMENT_ORIGINS, State,
    TEXT, place_of,
};
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::sync::atomic::{AtomicU32, fence};

/// A callback that begins.
#[derive(Clone, Copy, Default, Debug)]
pub struct Callback {
    /// The turn of the loop.
    pub turn: u64,
    /// The phase, by its number.
    pub phase: u8,
    /// One of [`CALLBACK_KINDS`](crate::layout::CALLBACK_KINDS).
    pub kind: u8,
    /// The code that is called; 0 if it is not known.
    pub address: u64,
    /// The handle or request.
    pub token: u64,
    /// How long it has waited in the loop, if that is known.
    pub delay_ns: Option<u64>,
}

/// What is known of a handle.
#[derive(Clone, Copy, Default, Debug)]
pub struct HandleInfo<'a> {
    /// Kind and flags, as [`Handle::what`].
    pub what: u32,
    /// The handle's name in its program.
    pub token: u64,
    /// The code that it calls back; 0 if that is not known.
    pub callback: u64,
    /// A timer's due time.
    pub due_ns: u64,
    /// How much later than the loop's cached time that is.
    pub left_ns: u64,
    /// A timer's interval.
    pub repeat_ns: u64,
    /// Its descriptor, a process's number, or a signal's; -1 if it has none.
    pub number: i32,
    /// A path.
    pub text: &'a str,
    /// Writes or sends that are not complete.
    pub writes: u32,
    /// The bytes of those that the kernel has not taken.
    pub queued_bytes: u64,
}

/// How deep runs and callbacks may nest and still be timed one by one. Of those that nest deeper
/// the innermost are, since programs that leave callbacks by `longjmp` leave them open.
const DEPTH: usize = 32;

/// Something that has begun and not ended, as its event will have it.
#[derive(Clone, Copy, Default, Debug)]
struct Open {
    at_ns: u64,
    /// As [`Event::what`](crate::layout::Event::what).
    what: u64,
    address: u64,
    token: u64,
}

impl Open {
    fn is_callback(&self) -> bool {
        self.what as u8 == What::Callback as u8
    }
}

/// What one loop does. Only the loop's thread uses it.
#[derive(Debug)]
pub struct LoopWriter {
    record: &'static Record,
    segment: &'static LoopSegment,
    /// The loop's place among the loops' segments.
    place: u32,
    handles: [Option<&'static HandleSegment>; PARTS],
    origins: [Option<&'static OriginSegment>; PARTS],
    /// What has begun and not ended. The innermost is at `(depth - 1) % DEPTH`, and before it lie
    /// those around it, as many as `kept` says.
    open: [Open; DEPTH],
    depth: usize,
    kept: usize,
    state: State,
    since_ns: u64,
    /// When the callback has ended that the record still shows: what follows at once is told
    /// together with its end.
    ended_ns: Option<u64>,
    begun_ns: u64,
    /// For how long the thread has slept, or was outside of the loop's runs.
    idle_ns: u64,
    turn: u64,
    turn_began_ns: u64,
    turn_waited_ns: u64,
    /// Whether the turn has polled.
    has_polled: bool,
    /// The entry of the callback that was counted last: many follow others of their kind.
    costly: &'static Costly,
}

impl LoopWriter {
    pub(super) fn new(
        record: &'static Record,
        segment: &'static LoopSegment,
        place: u32,
        now_ns: u64,
    ) -> LoopWriter {
        let mut writer = LoopWriter {
            record,
            segment,
            place,
            handles: [None; PARTS],
            origins: [None; PARTS],
            open: [Open::default(); DEPTH],
            depth: 0,
            kept: 0,
            state: State::Outside,
            since_ns: now_ns,
            ended_ns: None,
            begun_ns: now_ns,
            idle_ns: 0,
            turn: 0,
            turn_began_ns: now_ns,
            turn_waited_ns: 0,
            has_polled: false,
            costly: &segment.costly[0],
        };
        writer.enter(State::Working, now_ns);
        writer
    }

    /// All is told that was there before: requests in progress, and what threads run. Until then the loop
    /// counts as working, so that readers wait for that.
    pub fn begins(&mut self, now_ns: u64) {
        self.enter(State::Outside, now_ns);
    }

    /// Counts the time up to now, in which a new state begins. The record's sequence number is odd
    /// meanwhile.
    #[inline]
    fn count_time(&mut self, state: State, now_ns: u64) {
        match self.ended_ns.take() {
            Some(ended_ns) => {
                let called_ns = ended_ns.saturating_sub(self.since_ns);
                self.add_time(State::Callback, called_ns);
                self.add_time(State::Working, now_ns.saturating_sub(ended_ns));
            }
            None => {
                let took_ns = now_ns.saturating_sub(self.since_ns);
                self.add_time(self.state, took_ns);
                match self.state {
                    State::Asleep => self.idle_ns += took_ns,
                    State::Outside => {
                        self.idle_ns += took_ns;
                        self.segment.outside.count(took_ns);
                    }
                    _ => {}
                }
                if matches!(self.state, State::Asleep | State::Spinning) {
                    self.turn_waited_ns += took_ns;
                }
            }
        }
        self.state = state;
        self.since_ns = now_ns;
    }

    #[inline]
    fn add_time(&self, state: State, took_ns: u64) {
        add(&self.segment.time_ns[state as usize], took_ns);
    }

    /// Changes what the thread is doing, so that readers see all of it or nothing.
    #[inline]
    fn change(&mut self, change: impl FnOnce(&mut Self, &'static Now)) {
        let now = &self.segment.now;
        let sequence = now.sequence.load(Relaxed);
        now.sequence.store(sequence.wrapping_add(1), Relaxed);
        fence(Release);
        change(self, now);
        now.sequence.store(sequence.wrapping_add(2), Release);
    }

    /// Begins a new state, in which no callback runs.
    #[inline]
    fn enter(&mut self, state: State, now_ns: u64) {
        self.change(|writer, now| {
            writer.count_time(state, now_ns);
            now.what.store(state as u64 | writer.turn << 32, Relaxed);
            now.since_ns.store(now_ns, Relaxed);
        });
    }

    /// A callback runs from now on.
    #[inline]
    fn enter_callback(&mut self, now_ns: u64, open: &Open) {
        self.change(|writer, now| {
            writer.count_time(State::Callback, now_ns);
            let what = State::Callback as u64 | open.what & !0xff;
            now.what.store(what, Relaxed);
            now.since_ns.store(now_ns, Relaxed);
            now.callback.store(open.address, Relaxed);
            now.token.store(open.token, Relaxed);
        });
    }

    #[inline]
    fn begin(&mut self, open: Open) {
        self.open[self.depth % DEPTH] = open;
        self.depth += 1;
        self.kept = (self.kept + 1).min(DEPTH);
    }

    /// The innermost thing that has begun, which ends now.
    #[inline]
    fn end(&mut self) -> Option<Open> {
        self.depth = self.depth.checked_sub(1)?;
        self.kept = self.kept.checked_sub(1)?;
        Some(self.open[self.depth % DEPTH])
    }

    /// The innermost thing that has begun and not ended, if it is known.
    fn innermost(&self) -> Option<Open> {
        let at = self.depth.checked_sub(1).filter(|_| self.kept > 0)?;
        Some(self.open[at % DEPTH])
    }

    /// A run of the loop begins, perhaps in another thread than the last one.
    pub fn run_begins(&mut self, now_ns: u64, tid: Option<u32>) {
        if let Some(tid) = tid {
            self.segment.tid.store(tid, Relaxed);
        }
        if self.depth == 0 {
            self.turn_begins_at(now_ns);
        }
        self.begin(Open {
            at_ns: now_ns,
            what: what(What::Run, 0, 0, self.turn),
            address: 0,
            token: 0,
        });
        self.enter(State::Working, now_ns);
    }

    /// A run of the loop has ended, or was given up: with it all callbacks that it has begun.
    pub fn run_ends(&mut self, now_ns: u64) {
        while let Some(open) = self.end() {
            if !open.is_callback() {
                let took_ns = now_ns.saturating_sub(open.at_ns);
                let what = what(What::Run, 0, 0, self.turn);
                let ring = &self.segment.ring;
                ring.push(open.at_ns, took_ns, what, 0, 0);
                break;
            }
            self.count_callback(&open, now_ns);
        }
        match self.innermost() {
            Some(outer) => self.enter_callback(now_ns, &outer),
            None if self.depth > 0 => {
                // What runs here began too deep to be known.
                self.enter_callback(now_ns, &Open::default());
            }
            None => {
                self.enter(State::Outside, now_ns);
                self.turn_ends(now_ns);
            }
        }
    }

    /// A callback begins.
    #[inline]
    pub fn callback_begins(&mut self, now_ns: u64, callback: Callback) {
        let Callback {
            turn,
            phase,
            kind,
            address,
            token,
            delay_ns,
        } = callback;
        let open = Open {
            at_ns: now_ns,
            what: what(What::Callback, phase, kind, turn),
            address,
            token,
        };
        self.begin(open);
        if let Some(delay_ns) = delay_ns {
            self.segment.delay.count(delay_ns);
        }
        self.enter_callback(now_ns, &open);
    }

    /// The callback that has begun last has returned. What the thread does next is told at once:
    /// mostly it calls back again, and readers see both changes as one.
    #[inline]
    pub fn callback_ends(&mut self, now_ns: u64) {
        if let Some(open) = self.end() {
            self.count_callback(&open, now_ns);
        }
        match self.state {
            State::Callback if self.ended_ns.is_none() => self.ended_ns = Some(now_ns),
            // The callback had begun before the loop was recorded.
            _ => self.enter(State::Working, now_ns),
        }
    }

    /// Tells that the thread does the loop's own work, if that is not told yet.
    #[inline]
    pub fn works(&mut self) {
        if let Some(ended_ns) = self.ended_ns {
            self.enter(State::Working, ended_ns);
        }
    }

    /// For how long the thread has done anything but sleep since the loop was recorded first, up to
    /// the last change of state. What it does outside of the loop's runs is not known.
    pub fn busy_ns(&self) -> u64 {
        let known_ns = self.since_ns.saturating_sub(self.begun_ns);
        known_ns.saturating_sub(self.idle_ns)
    }

    /// The loop begins to wait, spinning or asleep, until the given time or for ever (0).
    pub fn wait_begins(&mut self, state: State, now_ns: u64, until_ns: u64) {
        self.change(|writer, now| {
            writer.count_time(state, now_ns);
            now.what.store(state as u64 | writer.turn << 32, Relaxed);
            now.since_ns.store(now_ns, Relaxed);
            now.until_ns.store(until_ns, Relaxed);
        });
    }

    /// The wait that has begun last is over. It was to end at `until_ns`, or never (0).
    pub fn wait_ends(&mut self, now_ns: u64, until_ns: u64) {
        let took_ns = now_ns.saturating_sub(self.since_ns);
        let what_it_was = match self.state {
            State::Spinning => What::Spin,
            _ => {
                self.segment.sleep.count(took_ns);
                if until_ns != 0 && now_ns >= until_ns {
                    self.segment.late.count(now_ns - until_ns);
                }
                What::Sleep
            }
        };
        let what = what(what_it_was, 0, 0, self.turn);
        self.segment.ring.push(self.since_ns, took_ns, what, 0, 0);
        self.enter(State::Working, now_ns);
    }

    /// The loop is about to poll, once in each turn. The turn before ends here, unless it was that
    /// of an earlier run.
    pub fn turn_begins(&mut self, now_ns: u64, turn: u64) {
        self.works();
        if self.has_polled {
            self.turn_ends(now_ns);
            self.turn_begins_at(now_ns);
        }
        self.has_polled = true;
        self.turn = turn;
        self.segment.turns.store(turn, Relaxed);
    }

    fn turn_begins_at(&mut self, now_ns: u64) {
        self.turn_began_ns = now_ns;
        self.turn_waited_ns = 0;
    }

    /// A turn that has polled ends.
    fn turn_ends(&mut self, now_ns: u64) {
        if std::mem::take(&mut self.has_polled) {
            let took_ns = now_ns.saturating_sub(self.turn_began_ns);
            let busy_ns = took_ns.saturating_sub(self.turn_waited_ns);
            self.segment.turn.count(busy_ns);
        }
    }

    /// How many requests the loop has, and how many handles keep it alive.
    #[inline]
    pub fn counts(&self, requests: u32, active: u32) {
        self.segment.requests.store(requests, Relaxed);
        self.segment.active.store(active, Relaxed);
    }

    /// The loop has submitted a request to the thread pool.
    pub fn submitted(&self, request: Request) {
        let what = what(What::Submit, 0, request.kind, self.turn);
        let ring = &self.segment.ring;
        ring.push(request.queued_ns, 0, what, 0, request.token);
        self.adopted(request);
    }

    /// The loop has a request in progress.
    pub fn adopted(&self, request: Request) {
        match self.pending(request.token).iter().find(|of| of.is_free()) {
            Some(free) => {
                free.token.store(request.token, Relaxed);
                free.queued_ns.store(request.queued_ns, Relaxed);
                free.kind.store(u64::from(request.kind) + 1, Release);
            }
            None => add_lost(&self.segment.requests_lost),
        }
    }

    /// A request's result is about to be delivered.
    pub fn delivered(&self, token: u64) {
        let mut pending = self.pending(token).iter();
        if let Some(pending) = pending.find(|of| !of.is_free() && of.token.load(Relaxed) == token) {
            pending.kind.store(0, Relaxed);
        }
    }

    /// The entries in which a request may be.
    fn pending(&self, token: u64) -> &'static [Pending] {
        let hash = (token >> 4).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 58;
        let first = hash as usize * PENDING_SET % PENDING;
        &self.segment.pending[first..first + PENDING_SET]
    }

    /// Counts a callback that has returned.
    #[inline]
    fn count_callback(&mut self, open: &Open, now_ns: u64) {
        let took_ns = now_ns.saturating_sub(open.at_ns);
        let (phase, kind) = ((open.what >> 8) as u8, (open.what >> 16) as u8);
        let segment = self.segment;
        segment.took[place_of(phase)][(kind as usize).min(KINDS - 1)].count(took_ns);
        if open.address != 0 {
            match self.costly.address.load(Relaxed) == open.address {
                true => add_cost(self.costly, took_ns),
                false => self.costly = count_cost(segment, open.address, kind, took_ns),
            }
        }
        (segment.ring).push(open.at_ns, took_ns, open.what, open.address, open.token);
    }

    /// The place of a handle in the record, which has been made if it can be.
    fn handle(&mut self, index: u32) -> Option<&'static Handle> {
        let part = index as usize / HANDLES;
        let segment = match self.handles.get(part)? {
            Some(segment) => *segment,
            None => {
                let segment = self.handle_segment(part)?;
                self.handles[part] = Some(segment);
                segment
            }
        };
        Some(&segment.handles[index as usize % HANDLES])
    }

    /// The loop's segment of handles with this number, which may be that of a closed loop in the
    /// same place.
    #[cold]
    fn handle_segment(&mut self, part: usize) -> Option<&'static HandleSegment> {
        let owner = self.owner(part);
        let mut segments = self.record.lock();
        let known: fn(&mut _) -> &mut _ = |segments: &mut Segments| &mut segments.handles;
        (self.record).owned_segment(&mut segments, known, SEGMENT_HANDLES, owner)
    }

    /// The loop's segment of stacks with this number.
    fn origin_segment(&mut self, part: usize) -> Option<&'static OriginSegment> {
        let slot = self.origins.get(part)?;
        if slot.is_none() {
            let owner = self.owner(part);
            let mut segments = self.record.lock();
            let known: fn(&mut _) -> &mut _ = |segments: &mut Segments| &mut segments.origins;
            self.origins[part] =
                (self.record).owned_segment(&mut segments, known, SEGMENT_ORIGINS, owner);
        }
        self.origins[part]
    }

    fn owner(&self, part: usize) -> u32 {
        self.place | (part as u32) << 16
    }

    /// A handle was made at this place of the loop's table, by a call with this stack if that is
    /// asked for. The next walk describes it.
    pub fn made(&mut self, index: u32, token: u64, now_ns: u64, stack: Option<&[u64]>) {
        if let Some(handle) = self.handle(index) {
            change_handle(handle, || {
                handle.what.store(0, Relaxed);
                handle.token.store(token, Relaxed);
                handle.made_ns.store(now_ns, Relaxed);
            });
        }
        let Some(stack) = stack else {
            return;
        };
        let (part, at) = (index as usize / HANDLES, index as usize % HANDLES);
        if let Some(origins) = self.origin_segment(part) {
            // A stack that could not be taken leaves none, and not that of an earlier handle.
            let frames = stack.iter().copied().chain([0; FRAMES]);
            for (slot, address) in origins.stacks[at].iter().zip(frames) {
                slot.store(address, Relaxed);
            }
        }
    }

    /// Describes the handle at this place of the loop's table, from its making on. Returns whether
    /// there is room for it.
    pub fn set_handle(&mut self, index: u32, info: &HandleInfo<'_>, now_ns: u64) -> bool {
        let Some(handle) = self.handle(index) else {
            return false;
        };
        if index >= self.segment.handles.load(Relaxed) {
            self.segment.handles.store(index + 1, Relaxed);
        }
        change_handle(handle, || describe(handle, info, now_ns));
        true
    }

    /// All handles have been described as they are at this time, but for some that there is no room
    /// for.
    pub fn walked(&self, now_ns: u64, lost: u32) {
        self.segment.handles_lost.store(lost, Relaxed);
        self.segment.walked_ns.store(now_ns, Relaxed);
        // Readers wait for this.
        self.segment.walked_turn.store(self.turn, Release);
    }

    /// Forgets the handle at this place of the loop's table.
    pub fn remove_handle(&mut self, index: u32) {
        let part = index as usize / HANDLES;
        if let Some(Some(segment)) = self.handles.get(part) {
            forget(&segment.handles[index as usize % HANDLES]);
        }
    }
}

/// Adds to the cost of an entry's callbacks.
#[inline]
fn add_cost(entry: &Costly, took_ns: u64) {
    add(&entry.count, 1);
    add(&entry.total_ns, took_ns);
    if took_ns > entry.longest_ns.load(Relaxed) {
        entry.longest_ns.store(took_ns, Relaxed);
    }
}

/// Counts the cost with its address, and returns the entry. A set of four entries belongs to an
/// address; where all are taken, the cheapest is given up.
#[inline(always)]
fn count_cost(
    segment: &'static LoopSegment,
    address: u64,
    kind: u8,
    took_ns: u64,
) -> &'static Costly {
    let hash = (address >> 2).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 59;
    let set = &segment.costly[hash as usize * 4 % COSTLY..][..4];
    let mut cheapest = &set[0];
    for entry in set {
        if entry.address.load(Relaxed) == address {
            add_cost(entry, took_ns);
            return entry;
        }
        let is_empty = entry.address.load(Relaxed) == 0;
        let is_cheaper = entry.total_ns.load(Relaxed) < cheapest.total_ns.load(Relaxed);
        if cheapest.address.load(Relaxed) != 0 && (is_empty || is_cheaper) {
            cheapest = entry;
        }
    }
    cheapest.address.store(address, Relaxed);
    cheapest.kind.store(u64::from(kind), Relaxed);
    cheapest.count.store(1, Relaxed);
    cheapest.total_ns.store(took_ns, Relaxed);
    cheapest.longest_ns.store(took_ns, Relaxed);
    cheapest
}

/// Writes what is known of a handle into its entry.
fn describe(handle: &Handle, info: &HandleInfo<'_>, now_ns: u64) {
    let is_new = handle.token.load(Relaxed) != info.token || handle.made_ns.load(Relaxed) == 0;
    if is_new {
        handle.made_ns.store(now_ns, Relaxed);
    }
    handle.token.store(info.token, Relaxed);
    handle.callback.store(info.callback, Relaxed);
    if info.due_ns != handle.due_ns.load(Relaxed) {
        let set_for_ns = match is_new {
            // Nobody knows when it was started.
            true => 0,
            false => info.left_ns,
        };
        let set_for_ms = set_for_ns.div_ceil(1_000_000).min(u32::MAX.into());
        handle.set_for_ms.store(set_for_ms as u32, Relaxed);
    }
    handle.due_ns.store(info.due_ns, Relaxed);
    handle.repeat_ns.store(info.repeat_ns, Relaxed);
    handle.number.store(info.number, Relaxed);
    let text = info.text;
    let start = (0..text.len()).find(|at| text.is_char_boundary(*at) && text.len() - at <= TEXT);
    let length = write_text(&handle.text, &text[start.unwrap_or(text.len())..]);
    handle.text_length.store(length as u32, Relaxed);
    handle.writes.store(info.writes, Relaxed);
    handle.queued_bytes.store(info.queued_bytes, Relaxed);
    handle.what.store(info.what, Relaxed);
}

/// Changes an entry, so that readers see all of the change or nothing.
fn change_handle(handle: &Handle, change: impl FnOnce()) {
    let sequence = handle.sequence.load(Relaxed);
    handle.sequence.store(sequence.wrapping_add(1), Relaxed);
    fence(Release);
    change();
    handle.sequence.store(sequence.wrapping_add(2), Release);
}

/// Empties an entry.
fn forget(handle: &Handle) {
    if handle.what.load(Relaxed) != 0 || handle.made_ns.load(Relaxed) != 0 {
        change_handle(handle, || {
            handle.what.store(0, Relaxed);
            handle.made_ns.store(0, Relaxed);
        });
    }
}

impl Pending {
    fn is_free(&self) -> bool {
        self.kind.load(Relaxed) == 0
    }
}

fn add_lost(lost: &AtomicU32) {
    lost.store(lost.load(Relaxed).saturating_add(1), Relaxed);
}

impl Drop for LoopWriter {
    fn drop(&mut self) {
        for segment in self.handles.iter().flatten() {
            segment.handles.iter().for_each(forget);
        }
        self.works();
        self.segment.closed_ns.store(self.since_ns, Relaxed);
        // Others may use the segment from here on.
        self.segment.id.store(0, Release);
    }
}

pub(super) fn clear(segment: &LoopSegment) {
    for count in [
        &segment.turns,
        &segment.closed_ns,
        &segment.walked_ns,
        &segment.walked_turn,
    ] {
        count.store(0, Relaxed);
    }
    for time in &segment.time_ns {
        time.store(0, Relaxed);
    }
    let single = [
        &segment.turn,
        &segment.delay,
        &segment.late,
        &segment.sleep,
        &segment.outside,
    ];
    let histograms = single.into_iter().chain(segment.took.iter().flatten());
    histograms.for_each(Histogram::clear);
    for costly in &segment.costly {
        costly.address.store(0, Relaxed);
    }
    for count in [
        &segment.handles,
        &segment.handles_lost,
        &segment.requests,
        &segment.requests_lost,
        &segment.active,
    ] {
        count.store(0, Relaxed);
    }
    for pending in &segment.pending {
        pending.kind.store(0, Relaxed);
    }
    // Numbers of events go on, so that no reader takes those of one loop for another's.
    let count = segment.ring.count.load(Relaxed);
    segment.ring.first.store(count, Relaxed);
}
