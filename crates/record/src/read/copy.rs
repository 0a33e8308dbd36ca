//! Parts of a record, copied, and the values in them.

use super::value::{Event, Handle, Histogram, Now, Pending, Pool};
use crate::What;
use crate::layout::{
    self, ACTIVE, BUCKETS, Body, CLOSING, CONNECTING, FRAMES, HANDLE_KINDS, Handle as RawHandle,
    Histogram as RawHistogram, KINDS, LISTENING, LoopSegment, Now as RawNow, PENDING, PHASE_COUNT,
    Pending as RawPending, REFERENCED, REQUESTS, RING, SHUTTING_DOWN, State, TEXT, ThreadSegment,
    WHERE, phase_of,
};
use std::mem::offset_of;

/// A part of a record, copied.
pub(super) struct Copy(pub(super) Vec<u8>);

impl Copy {
    pub(super) fn u64(&self, at: usize) -> u64 {
        let bytes = self
            .0
            .get(at..at + 8)
            .and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u64::from_ne_bytes)
    }

    pub(super) fn u32(&self, at: usize) -> u32 {
        let bytes = self
            .0
            .get(at..at + 4)
            .and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u32::from_ne_bytes)
    }

    /// The text in these bytes, up to the first zero.
    pub(super) fn text(&self, at: usize, length: usize) -> String {
        let bytes = self.0.get(at..at + length).unwrap_or_default();
        let end = bytes.iter().position(|byte| *byte == 0);
        clean(&String::from_utf8_lossy(
            &bytes[..end.unwrap_or(bytes.len())],
        ))
    }

    pub(super) fn histogram(&self, at: usize) -> Histogram {
        let mut buckets = [0; BUCKETS];
        for (index, bucket) in buckets.iter_mut().enumerate() {
            *bucket = self.u64(at + offset_of!(RawHistogram, buckets) + 8 * index);
        }
        Histogram {
            buckets,
            sum_ns: self.u64(at + offset_of!(RawHistogram, sum)),
            longest_ns: self.u64(at + offset_of!(RawHistogram, max)),
        }
    }

    pub(super) fn histograms<const N: usize>(&self, at: usize) -> [Histogram; N] {
        std::array::from_fn(|index| self.histogram(at + index * size_of::<RawHistogram>()))
    }

    /// What a thread does; `is_torn` says whether that may be parts of two things.
    pub(super) fn now(&self, at: usize, is_torn: bool) -> Now {
        let what = self.u64(at + offset_of!(RawNow, what));
        let number = u32::from(what as u8);
        let state = State::ALL.into_iter().find(|state| *state as u32 == number);
        let state = state.unwrap_or(State::Outside);
        // What the fields say in other states is left from before.
        let of = |is_in: bool, field: u64| if is_in { field } else { 0 };
        let is_called = state == State::Callback;
        Now {
            state,
            since_ns: self.u64(at + offset_of!(RawNow, since_ns)),
            phase: (what >> 8) as u8 as usize % PHASE_COUNT,
            kind: (what >> 16) as u8 as usize % KINDS,
            callback: of(is_called, self.u64(at + offset_of!(RawNow, callback))),
            token: of(is_called, self.u64(at + offset_of!(RawNow, token))),
            turn: (what >> 32) as u32,
            until_ns: of(
                state == State::Asleep,
                self.u64(at + offset_of!(RawNow, until_ns)),
            ),
            is_torn,
        }
    }
}

/// Text that may be shown: control characters are replaced, and those that turn the direction of
/// text around.
fn clean(text: &str) -> String {
    let is_shown = |c: char| {
        !c.is_control()
            && !matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let shown = |c: char| if is_shown(c) { c } else { '\u{fffd}' };
    text.chars().map(shown).collect()
}

pub(super) fn pool(body: &Copy) -> Pool {
    let at = offset_of!(Body, pool);
    let numbers = |field: usize| std::array::from_fn(|kind| body.u32(at + field + 4 * kind));
    let untimed = at + offset_of!(layout::Pool, untimed);
    let oldest_ns = body.u64(at + offset_of!(layout::Pool, oldest_ns));
    let kind = body.u64(at + offset_of!(layout::Pool, oldest_kind)) as usize % REQUESTS;
    let run: [Histogram; REQUESTS] = body.histograms(at + offset_of!(layout::Pool, run));
    Pool {
        threads: body.u32(at + offset_of!(layout::Pool, threads)),
        slow_limit: body.u32(at + offset_of!(layout::Pool, slow_limit)),
        queued: numbers(offset_of!(layout::Pool, queued)),
        running: numbers(offset_of!(layout::Pool, running)),
        completed: std::array::from_fn(|kind| {
            run[kind]
                .count()
                .saturating_add(body.u64(untimed + 8 * kind))
        }),
        oldest: (oldest_ns != 0).then_some((oldest_ns, kind)),
        wait: body.histograms(at + offset_of!(layout::Pool, wait)),
        run,
        members: Vec::new(),
    }
}

/// Adds what a thread's segment says of the requests that it has run.
pub(super) fn add_thread(pool: &mut Pool, part: &Copy) {
    let wait: [Histogram; REQUESTS] = part.histograms(offset_of!(ThreadSegment, wait));
    let run: [Histogram; REQUESTS] = part.histograms(offset_of!(ThreadSegment, run));
    for kind in 0..REQUESTS {
        let completed = &mut pool.completed[kind];
        *completed = completed.saturating_add(run[kind].count());
        pool.wait[kind].add(&wait[kind]);
        pool.run[kind].add(&run[kind]);
    }
}

pub(super) fn handle(part: &Copy, at: usize, index: u32) -> Option<Handle> {
    let at = at * size_of::<RawHandle>();
    let what = part.u32(at + offset_of!(RawHandle, what));
    let kind = HANDLE_KINDS.get((what & 0xff) as usize)?;
    if what == 0 {
        return None;
    }
    let length = part.u32(at + offset_of!(RawHandle, text_length)) as usize;
    let number = part.u32(at + offset_of!(RawHandle, number)) as i32;
    Some(Handle {
        index,
        kind,
        is_active: what & ACTIVE != 0,
        is_referenced: what & REFERENCED != 0,
        is_closing: what & CLOSING != 0,
        is_listening: what & LISTENING != 0,
        is_connecting: what & CONNECTING != 0,
        is_shutting_down: what & SHUTTING_DOWN != 0,
        token: part.u64(at + offset_of!(RawHandle, token)),
        made_ns: part.u64(at + offset_of!(RawHandle, made_ns)),
        callback: part.u64(at + offset_of!(RawHandle, callback)),
        due_ns: part.u64(at + offset_of!(RawHandle, due_ns)),
        repeat_ns: part.u64(at + offset_of!(RawHandle, repeat_ns)),
        set_for_ns: u64::from(part.u32(at + offset_of!(RawHandle, set_for_ms))) * 1_000_000,
        number: (number != -1).then_some(number),
        text: part.text(at + offset_of!(RawHandle, text), length.min(TEXT)),
        writes: part.u32(at + offset_of!(RawHandle, writes)),
        queued_bytes: part.u64(at + offset_of!(RawHandle, queued_bytes)),
        stack: Vec::new(),
    })
}

/// The stack of the handle at this place of a segment.
pub(super) fn stack(part: &Copy, at: usize) -> Vec<u64> {
    let frames = (0..FRAMES).map(|frame| part.u64(8 * (at * FRAMES + frame)));
    frames.take_while(|address| *address != 0).collect()
}

/// How long callbacks took, by phase and by kind.
pub(super) fn callbacks(part: &Copy) -> ([Histogram; PHASE_COUNT], [Histogram; KINDS]) {
    let mut by_phase = [Histogram::default(); PHASE_COUNT];
    let mut by_kind = [Histogram::default(); KINDS];
    for place in 0..WHERE {
        for (kind, of_kind) in by_kind.iter_mut().enumerate() {
            let index = place * KINDS + kind;
            let at = offset_of!(LoopSegment, took) + index * size_of::<RawHistogram>();
            let histogram = part.histogram(at);
            of_kind.add(&histogram);
            by_phase[phase_of(place, kind)].add(&histogram);
        }
    }
    (by_phase, by_kind)
}

/// Whether a loop's table of handles was brought up to date in its present turn.
pub(super) fn is_walked(part: &Copy) -> bool {
    part.u64(offset_of!(LoopSegment, walked_ns)) != 0
        && part.u64(offset_of!(LoopSegment, walked_turn))
            == part.u64(offset_of!(LoopSegment, turns))
}

/// The requests of a loop's segment, the oldest first.
pub(super) fn pending(part: &Copy) -> Vec<Pending> {
    let requests = (0..PENDING).filter_map(|index| {
        let at = offset_of!(LoopSegment, pending) + index * size_of::<RawPending>();
        let kind = part.u64(at + offset_of!(RawPending, kind)).checked_sub(1)?;
        Some(Pending {
            token: part.u64(at + offset_of!(RawPending, token)),
            queued_ns: part.u64(at + offset_of!(RawPending, queued_ns)),
            kind: kind as usize % REQUESTS,
        })
    });
    let mut requests: Vec<Pending> = requests.collect();
    requests.sort_by_key(|request| request.queued_ns);
    requests
}

pub(super) fn event(part: &Copy, number: u64) -> Option<Event> {
    let at = (number % RING as u64) as usize * size_of::<layout::Event>();
    let what = part.u64(at + offset_of!(layout::Event, what));
    Some(Event {
        what: What::from_number(what as u8)?,
        at_ns: part.u64(at + offset_of!(layout::Event, at_ns)),
        took_ns: part.u64(at + offset_of!(layout::Event, took_ns)),
        phase: (what >> 8) as u8 as usize % PHASE_COUNT,
        kind: (what >> 16) as u8 as usize % KINDS,
        turn: (what >> 32) as u32,
        address: part.u64(at + offset_of!(layout::Event, address)),
        token: part.u64(at + offset_of!(layout::Event, token)),
    })
}
