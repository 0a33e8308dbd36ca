//! The recorder: what the loops of this process do, written into its [record](blacklight_record).
//!
//! A front end offers each of its loops to the record ([`Engine::record`]). A process that was
//! asked to record from its start does so at once. Any other has one page of memory in which a
//! reader may ask for it, and looks there in each turn. `BLACKLIGHT_RECORD` decides: `1` records
//! from the start, `origins` does too and keeps the stack of each call that makes a handle, `never`
//! makes no record at all, and anything else records on request.
//!
//! The recorder crosses the same boundaries as any [probe](crate::Probe). It describes handles by
//! walks over all of them, mostly when the loop is about to sleep (`walks.rs`): nothing is noted as
//! they change, so that loops which nobody watches pay nothing.
//!
//! A child made by `fork` writes nothing to its parent's record and makes its own. A set-uid
//! program makes none, since the directory that the environment names may be another user's.

mod handles;
mod own;
mod setting;
mod walks;

use crate::driver::Driver;
use crate::engine::Engine;
use crate::event::{Event, Token};
use crate::handle::HandleKind;
use crate::pool::Pool;
use crate::probe::{Boundary, Phase};
use crate::run::{Mode, Run};
use crate::slab::Key;
use blacklight_record::layout::{FRAMES, State};
use blacklight_record::{Callback, LoopWriter, Record, Request, WakerOffer};
use blacklight_sys::{fallible, per_process, stack};
pub(crate) use own::recording;
pub use own::remove_record;
use own::{InTheMaking, obtain};
use setting::Setting;
use std::cell::Cell;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use walks::Walks;

/// Kinds of requests, by their places in
/// [`REQUEST_KINDS`](blacklight_record::layout::REQUEST_KINDS).
pub(crate) const WORK: u8 = 1;
pub(crate) const FILES: u8 = 2;
pub(crate) const LOOKUP: u8 = 3;

/// Something whose callback the recorder asks for.
#[derive(Clone, Copy, Debug)]
pub enum Called<'a> {
    /// The event that is about to be handed out.
    By(&'a Event),
    /// A handle that is not closed.
    For(HandleKind, Token),
}

/// What the recorder must know of a front end.
#[derive(Clone, Copy, Debug)]
pub struct Front {
    /// Whether it is the C library.
    pub is_library: bool,
    /// The address of the code that an event or a handle calls back; 0 if that is not known.
    pub callback_of: fn(Called<'_>) -> u64,
}

/// What a loop looks at that no reader can ask.
pub(crate) static UNWANTED: AtomicU32 = AtomicU32::new(0);
/// What a loop looks at that is still to be offered to the record.
static UNOFFERED: AtomicU32 = AtomicU32::new(1);

/// A loop that could not be offered to the record yet, since another thread was making it.
#[derive(Debug)]
pub(crate) struct Late {
    front: Front,
    name: [u8; 32],
}

/// A loop that is not recorded, and may be asked to be.
#[derive(Debug)]
pub(crate) struct Offered {
    record: &'static Record,
    front: Front,
    name: [u8; 32],
    generation: u64,
    /// Whether the stacks of calls that make handles are kept.
    keeps_origins: bool,
    waker: Option<WakerOffer>,
}

impl Offered {
    /// Whether the record is that of this process, and not of its parent.
    #[inline]
    fn is_own(&self) -> bool {
        self.generation == per_process::generation() && self.record.is_own()
    }

    /// The loop's name.
    fn name(&self) -> &str {
        let end = self.name.iter().position(|byte| *byte == 0);
        std::str::from_utf8(&self.name[..end.unwrap_or(self.name.len())]).unwrap_or_default()
    }
}

impl Drop for Offered {
    fn drop(&mut self) {
        if !self.is_own() {
            // The entry is the parent's.
            std::mem::forget(self.waker.take());
        }
    }
}

/// Writes what one loop does.
#[derive(Debug)]
pub(crate) struct Recorder {
    writer: Option<LoopWriter>,
    offered: Box<Offered>,
    /// The thread that ran the loop last.
    tid: u32,
    /// When the sleep in progress is to end; 0 for never.
    until_ns: u64,
    /// When the poller returned in this turn. If the loop has neither slept nor spun, the first
    /// callback says when.
    polled_ns: Option<u64>,
    walks: Walks,
}

/// The number of the calling thread, which the system is asked for once in each thread of each
/// process.
fn thread_id() -> u32 {
    std::thread_local!(static KNOWN: Cell<(u64, u32)> = const { Cell::new((0, 0)) });
    let generation = per_process::generation();
    KNOWN.with(|known| match known.get() {
        (of, tid) if of == generation && tid != 0 => tid,
        _ => {
            let tid = blacklight_record::thread_id();
            known.set((generation, tid));
            tid
        }
    })
}

impl Recorder {
    fn new(offered: Box<Offered>, poller: &str, asked: u32, now_ns: u64) -> Option<Recorder> {
        let tid = thread_id();
        let writer = offered
            .record
            .add_loop(offered.name(), poller, tid, now_ns)?;
        Some(Recorder {
            writer: Some(writer),
            offered,
            tid,
            until_ns: 0,
            polled_ns: None,
            walks: Walks::new(now_ns, asked),
        })
    }

    /// Whether the record is that of this process, and not of its parent.
    #[inline]
    pub(crate) fn is_own(&self) -> bool {
        self.offered.is_own()
    }

    /// A callback begins, in the process that the record is of. The event is looked at where it is:
    /// an event has just been made, and copying it stalls the processor for longer than everything
    /// else here takes. A timer was due at `due_ns`.
    #[inline]
    pub(crate) fn callback_begins(
        &mut self,
        at_ns: u64,
        phase: Phase,
        turn: u64,
        event: &Event,
        due_ns: u64,
    ) {
        let Some(writer) = &mut self.writer else {
            return;
        };
        let ready_ns = match event {
            Event::Timer(_) => Some(due_ns),
            _ if phase == Phase::Poll => Some(*self.polled_ns.get_or_insert(at_ns)),
            _ => None,
        };
        let callback = Callback {
            turn,
            phase: phase as u8,
            kind: number_of(event),
            address: (self.offered.front.callback_of)(Called::By(event)),
            token: event.token().0,
            delay_ns: ready_ns.map(|ready_ns| at_ns.saturating_sub(ready_ns)),
        };
        if matches!(event, Event::Work(..) | Event::Ring(..)) {
            writer.delivered(callback.token);
        }
        writer.callback_begins(at_ns, callback);
    }

    /// The callback that began last has ended. If nobody asks for the next one right away, the
    /// record says so now. Returns whether the record is that of this process.
    #[inline]
    pub(crate) fn callback_ends(&mut self, at_ns: u64, goes_on: bool) -> bool {
        let is_own = self.is_own();
        if is_own && let Some(writer) = &mut self.writer {
            writer.callback_ends(at_ns);
            if !goes_on {
                writer.works();
            }
        }
        is_own
    }

    /// The loop's thread crosses a boundary other than the beginning or the end of a callback.
    pub(crate) fn cross(&mut self, at_ns: u64, boundary: Boundary) {
        if !self.is_own() {
            return;
        }
        let Some(writer) = &mut self.writer else {
            return;
        };
        match boundary {
            Boundary::RunBegins(_) => {
                let tid = thread_id();
                let has_moved = std::mem::replace(&mut self.tid, tid) != tid;
                writer.run_begins(at_ns, has_moved.then_some(tid));
            }
            Boundary::RunEnds => writer.run_ends(at_ns),
            // They have methods of their own.
            Boundary::CallbackBegins { .. } | Boundary::CallbackEnds => {}
            Boundary::SpinBegins => writer.wait_begins(State::Spinning, at_ns, 0),
            Boundary::SleepBegins { timeout } => {
                self.until_ns = timeout.map_or(0, |timeout| at_ns.saturating_add(timeout));
                writer.wait_begins(State::Asleep, at_ns, self.until_ns);
            }
            Boundary::SpinEnds { .. } => {
                self.polled_ns = Some(at_ns);
                writer.wait_ends(at_ns, 0);
            }
            Boundary::SleepEnds => {
                self.polled_ns = Some(at_ns);
                writer.wait_ends(at_ns, self.until_ns);
            }
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if !self.is_own() {
            // The segment is the parent's.
            std::mem::forget(self.writer.take());
        }
    }
}

/// The number of an event's kind in the record.
fn number_of(event: &Event) -> u8 {
    match event {
        Event::Timer(_) => 1,
        Event::Idle(_) => 2,
        Event::Prepare(_) => 3,
        Event::Check(_) => 4,
        Event::Async(_) => 5,
        Event::Work(..) => 6,
        Event::Ring(..) => 7,
        Event::Poll(..) => 8,
        Event::Read(_) => 9,
        Event::ReadEnd(..) => 10,
        Event::Write(..) => 11,
        Event::Writable(_) => 12,
        Event::Connect(..) => 13,
        Event::Shutdown(..) => 14,
        Event::Connection(..) => 15,
        Event::TurnedAway(..) => 16,
        Event::Receive(_) => 17,
        Event::ReceiveError(_) => 18,
        Event::ReceiveEnd(..) => 19,
        Event::Send(..) => 20,
        Event::Signal(..) => 21,
        Event::Exit(..) => 22,
        Event::FsEvent(..) => 23,
        Event::Closed(_) => 24,
    }
}

impl Driver {
    /// Whether a reader has asked for something since the loop last looked: to be recorded, or for
    /// a walk.
    #[cold]
    pub(crate) fn is_asked(&self) -> bool {
        let asked = self.wanted.load(Relaxed);
        let observed = self.observed.as_ref();
        let recorder = observed.and_then(|observed| observed.recorder.as_ref());
        asked != 0
            && match recorder {
                Some(recorder) => recorder.walks.is_asked(asked),
                None => self.offered.is_some() || self.late.is_some(),
            }
    }

    /// Begins to record the loop, in the middle of a run or outside of any.
    #[cold]
    #[inline(never)]
    fn record(&mut self, is_running: bool) {
        let Some(offered) = self.offered.take() else {
            return;
        };
        let (record, now_ns) = (offered.record, self.clock_ns());
        let is_recording = record.begin(now_ns);
        let (poller, asked) = (self.mechanism().name(), self.wanted.load(Relaxed));
        let recorder = is_recording.then(|| Recorder::new(offered, poller, asked, now_ns));
        let Some(mut recorder) = recorder.flatten() else {
            // It is not asked for again.
            self.wanted = &UNWANTED;
            return;
        };
        if let (Some(pool), Some(writer)) = (Pool::get(), &recorder.writer) {
            let place = self.sources.receiver.place();
            pool.adopt(record, place, now_ns, |request| writer.adopted(request));
        }
        if let Some(writer) = &mut recorder.writer {
            writer.begins(now_ns);
        }
        if is_running {
            recorder.cross(now_ns, Boundary::RunBegins(Mode::Default));
        }
        if let Some(observed) = self.observe() {
            observed.recorder = Some(recorder);
        }
    }
}

impl Engine {
    /// Offers the loop to the record of this process: it is recorded from now on if
    /// `BLACKLIGHT_RECORD` says so, and otherwise when a reader asks for it. If anything goes
    /// wrong, the loop goes without a record.
    pub fn record(&mut self, front: Front, name: &str) {
        let mut text = [0; 32];
        let name = blacklight_record::beginning(name, text.len());
        text[..name.len()].copy_from_slice(name.as_bytes());
        self.offer(front, text, false);
    }

    /// As [`Engine::record`], in the middle of a run or outside of any.
    fn offer(&mut self, front: Front, name: [u8; 32], is_running: bool) {
        let setting = Setting::from_environment();
        if setting == Setting::Never {
            return;
        }
        let record = match obtain(front.is_library) {
            Ok(Some(record)) => record,
            Ok(None) => return,
            Err(InTheMaking) => {
                // The loop asks again in its next turn.
                self.driver.late = fallible::try_box(Late { front, name }).ok();
                self.driver.wanted = &UNOFFERED;
                return;
            }
        };
        let waker = &self.driver.sources.receiver.mailbox.waker;
        let offered = fallible::try_box(Offered {
            record,
            front,
            name,
            generation: per_process::generation(),
            keeps_origins: setting == Setting::WithOrigins,
            waker: match waker.mark() {
                Ok(()) => record.offer_waker(waker.fd()),
                Err(_) => None,
            },
        });
        self.driver.offered = offered.ok();
        self.driver.wanted = record.wanted();
        if setting != Setting::OnRequest || record.is_recording() {
            self.driver.record(is_running);
        }
        // A timer that is started next counts from the cached time, and would be early by what this
        // has taken.
        self.driver.update_time();
    }

    /// Offers the loop of a forked child to the child's own record.
    pub(crate) fn fork_record(&mut self) {
        let observed = self.driver.observed.as_mut();
        let recorder = observed.and_then(|observed| observed.recorder.take());
        let driver = &mut self.driver;
        let inherited = match (recorder, driver.offered.take(), driver.late.take()) {
            (Some(recorder), ..) => Some((recorder.offered.front, recorder.offered.name)),
            (_, Some(offered), _) => Some((offered.front, offered.name)),
            (.., late) => late.map(|late| (late.front, late.name)),
        };
        driver.wanted = &UNWANTED;
        if let Some((front, name)) = inherited {
            self.offer(front, name, false);
        }
    }

    /// The loop is about to poll, and perhaps to sleep, or a reader has woken it meanwhile
    /// (`has_polled`): does what readers have asked for, and tells the record of the turn.
    #[cold]
    #[inline(never)]
    pub(crate) fn record_turn(&mut self, run: &Run, has_polled: bool) {
        let mut is_new = false;
        if let Some(late) = self.driver.late.take() {
            self.driver.wanted = &UNWANTED;
            self.offer(late.front, late.name, true);
            is_new = self.driver.recorder().is_some();
            if !is_new {
                // It was offered, or not even that yet.
                return;
            }
        }
        if let Some(offered) = &self.driver.offered {
            // If it is not this process's, a reader has asked for the record of the parent.
            match offered.is_own() {
                true => self.driver.record(true),
                false => return self.fork_record(),
            }
            is_new = true;
        }
        let stamp_ns = self.driver.stamp_ns();
        let (requests, active) = (self.requests.count(), self.handles.active);
        let (turn, asked) = (self.driver.loop_count(), self.driver.wanted.load(Relaxed));
        let may_sleep = run.may_poll_sleep() && self.poll_timeout() != Some(0);
        let Some(recorder) = self.driver.recorder() else {
            return;
        };
        if !recorder.is_own() {
            return self.fork_record();
        }
        if let Some(writer) = &mut recorder.writer
            && (is_new || !has_polled)
        {
            recorder.polled_ns = None;
            writer.turn_begins(stamp_ns, turn);
            writer.counts(requests, active);
        }
        let busy_ns = (recorder.writer.as_ref()).map_or(0, |writer| writer.busy_ns());
        if (recorder.walks).may_walk(stamp_ns, busy_ns, turn, may_sleep, asked) {
            self.record_handles(stamp_ns, turn);
        }
    }

    /// Tells the record of a request that was submitted, if the loop is recorded.
    #[cold]
    pub(crate) fn record_submitted(&mut self, kind: u8, token: Token, queued_ns: u64) {
        let recorder = self.driver.recorder().filter(|recorder| recorder.is_own());
        if let Some(writer) = recorder.and_then(|recorder| recorder.writer.as_ref()) {
            writer.submitted(Request {
                kind,
                token: token.0,
                queued_ns,
            });
        }
    }

    /// Tells the record that a request that was submitted was not taken.
    #[cold]
    pub(crate) fn record_refused(&mut self, token: Token) {
        let recorder = self.driver.recorder().filter(|recorder| recorder.is_own());
        if let Some(writer) = recorder.and_then(|recorder| recorder.writer.as_ref()) {
            writer.delivered(token.0);
        }
    }

    /// Tells the record that a handle was made, and by which calls if that is asked for.
    #[cold]
    #[inline(never)]
    pub(crate) fn record_made(&mut self, key: Key, token: Token) {
        let now_ns = self.driver.stamp_ns();
        let Some(recorder) = self.driver.recorder().filter(|of| of.is_own()) else {
            return;
        };
        let keeps_origins = recorder.offered.keeps_origins;
        if let Some(writer) = &mut recorder.writer {
            let mut frames = [0; FRAMES];
            let stack = keeps_origins.then(|| {
                let count = stack::capture(&mut frames);
                &frames[..count]
            });
            writer.made(key.index, token.0, now_ns, stack);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::own::{MAKER, RECORD};
    use super::*;
    use crate::poller::Mechanism;
    use blacklight_sys::clock;

    const FRONT: Front = Front {
        is_library: true,
        callback_of: |_| 0,
    };

    #[test]
    fn a_loop_that_was_made_while_the_record_was_is_offered_in_its_next_turn() {
        per_process::watch_forks();
        // As if another thread had begun to make it.
        MAKER.store(per_process::generation() + 1, Relaxed);
        let mut engine = Engine::new(Some(Mechanism::Poll)).unwrap();
        let timer = engine.timer_init(Token(1)).unwrap();
        engine.timer_start(timer, 1 << 40, 0).unwrap();
        engine.record(FRONT, "late");
        let turn = |engine: &mut Engine| {
            let mut run = Run::new(Mode::NoWait);
            while engine.next(&mut run).is_some() {}
            engine.driver.offered.is_some()
        };
        assert!(!turn(&mut engine));
        let runtime = std::env::var("XDG_RUNTIME_DIR").ok();
        let make = || Record::make(runtime.as_deref(), true, clock::monotonic_ns());
        assert!(RECORD.get_or_make(make).unwrap().is_some());
        assert!(turn(&mut engine));
        remove_record();
    }
}
