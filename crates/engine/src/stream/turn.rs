//! A stream's turn: the steps that one readiness, or one pending callback, leads to.
//!
//! ```text
//!   Begin ─┬─► Read ─► Write ─► Report ─► drained, over
//!          ├─► connected ─► over; failed ─► Report
//!          └─► Accept ─► over
//!   Refused ─► Report
//! ```
//!
//! The turn stands at a [`Step`] whenever an event of it has been handed out. The callback may
//! stop or shut down the stream, and the next step finds the stream as it then is. A callback that
//! closes the stream ends the turn.

use super::Engine;
use super::state::Input;
use crate::driver::Pending;
use crate::event::Event;
use crate::handle::HandleKind;
use crate::progress::{Budget, InHand, Intake};
use crate::readiness::{Interest, Readiness};
use blacklight_sys::Errno;

/// Where the turn of one stream stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor {
    stream: u32,
    /// The readiness that the poller has reported.
    ready: Readiness,
    step: Step,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    Begin,
    /// The poller has refused the descriptor.
    Refused(Errno),
    /// A server has been told of a connection, and may take this many.
    Accept(Budget),
    Read(Intake),
    Write,
    /// This many finished writes are to be reported; those that finish meanwhile wait for the
    /// next turn. Writes that were made in answer to what was read in this turn are among them, so
    /// that they are reported while the program's buffers are still in the processor's cache.
    Report(u32),
}

/// The event that a step hands out, and the step that follows; none at the end of the turn.
pub(super) type Stepped = (Option<Event>, Option<Step>);

impl Cursor {
    /// Whether the poller has reported something that concerns `interest`.
    #[inline]
    fn is_for(&self, interest: Interest) -> bool {
        self.ready.concerns(interest)
    }

    #[inline]
    fn has_hung_up(&self) -> bool {
        self.ready.contains(Readiness::HANG_UP)
    }
}

impl Engine {
    /// Begins a stream's turn with what the poller says of it.
    #[inline]
    pub(crate) fn stream_ready(&mut self, stream: u32, ready: Readiness) -> Cursor {
        let step = Step::Begin;
        Cursor {
            stream,
            ready,
            step,
        }
    }

    /// Begins a stream's turn in a pending phase.
    pub(crate) fn stream_pending(&mut self, stream: u32, why: Pending) -> Cursor {
        let entry = self.stream(stream);
        let awaits_connection = entry.is_connecting()
            && self
                .driver
                .wanted(entry.watcher)
                .contains(Interest::WRITABLE);
        let (ready, step) = match why {
            // It is the poller that says how connecting went: this is about cancelled writes.
            Pending::Fed if awaits_connection => (Readiness::NONE, Step::Write),
            Pending::Fed => (Readiness::WRITABLE, Step::Begin),
            Pending::Refused(error) => (Readiness::WRITABLE, Step::Refused(error)),
        };
        Cursor {
            stream,
            ready,
            step,
        }
    }

    /// Goes on with a stream's turn up to the next thing to call, or to its end.
    pub(crate) fn next_of_stream(&mut self, mut cursor: Cursor) -> Option<Event> {
        let index = cursor.stream;
        let stream = &self.streams.slab[index];
        if let Step::Begin = cursor.step
            && !stream.is_connecting()
            && !stream.is_listening()
        {
            cursor.step = match cursor.is_for(Interest::READABLE) {
                true => Step::Read(Intake::BEGIN),
                false => Step::Write,
            };
        }
        if let Step::Read(intake) = &mut cursor.step {
            let is_dry = intake.found_nothing();
            if stream.input.is_reading() && intake.goes_on() {
                let token = self.handles[stream.handle].token;
                self.in_hand = InHand::Stream(cursor);
                return Some(Event::Read(token));
            }
            cursor.step = Step::Write;
            if is_dry && cursor.has_hung_up() && stream.input == Input::Reading {
                self.in_hand = InHand::Stream(cursor);
                return Some(self.end_of_stream(index));
            }
        }
        if let Step::Write = cursor.step {
            if cursor.is_for(Interest::WRITABLE) && !stream.output.queue.is_empty() {
                // Writes that finish now are for this turn to report.
                self.in_hand = InHand::Stream(cursor);
                self.flush_writes(index);
            }
            cursor.step = Step::Report(self.stream(index).output.done.len());
        }
        if let Step::Report(left) = cursor.step {
            return self.report_next(cursor, left);
        }
        let (event, next) = self.step_aside(&cursor);
        let Some(step) = next else {
            self.in_hand = InHand::Nothing;
            return event;
        };
        cursor.step = step;
        self.in_hand = InHand::Stream(cursor);
        match event {
            None => self.next_of_stream(cursor),
            event => event,
        }
    }

    /// Reports the next finished write. The turn ends after the last, or when writing is drained.
    #[inline(always)]
    fn report_next(&mut self, mut cursor: Cursor, left: u32) -> Option<Event> {
        let index = cursor.stream;
        let is_for_writing = cursor.is_for(Interest::WRITABLE);
        if left > 0
            && let Some(event) = self.report_write(index)
        {
            cursor.step = Step::Report(left - 1);
            self.in_hand = match left == 1 && !is_for_writing {
                true => InHand::Nothing,
                false => InHand::Stream(cursor),
            };
            return Some(event);
        }
        self.in_hand = InHand::Nothing;
        match is_for_writing {
            true => self.drain(index),
            false => None,
        }
    }

    /// Takes a step that has nothing to do with reading and writing.
    fn step_aside(&mut self, cursor: &Cursor) -> Stepped {
        let index = cursor.stream;
        match cursor.step {
            Step::Begin if self.stream(index).is_connecting() => {
                self.finish_connect(index, cursor.ready)
            }
            Step::Begin => {
                let budget = self.connections_at_once(index);
                self.accept_next(index, budget)
            }
            Step::Refused(error) => self.refused(index, error),
            Step::Accept(budget) => self.accept_more(index, budget),
            Step::Read(_) | Step::Write | Step::Report(_) => (None, None),
        }
    }

    /// The poller cannot watch the descriptor: whatever waits for it fails.
    fn refused(&mut self, index: u32, error: Errno) -> Stepped {
        let stream = self.stream_mut(index);
        if stream.is_connecting() {
            stream.delayed_error = Some(error);
            return self.finish_connect(index, Readiness::ERROR);
        }
        self.fail_writes(index, error);
        let stream = self.stream(index);
        let reports = Step::Report(stream.output.done.len());
        let event = if stream.is_listening() {
            let token = self.handles[stream.handle].token;
            Some(Event::Connection(token, Err(error)))
        } else {
            stream
                .input
                .is_reading()
                .then(|| self.read_failed(index, error))
        };
        (event, Some(reports))
    }

    /// Whether the stream is in hand and its finished writes have yet to be reported in this turn,
    /// so that it need not be fed for one that finishes now.
    #[inline]
    pub(super) fn reports_later(&self, index: u32) -> bool {
        match self.in_hand {
            InHand::Stream(cursor) => {
                cursor.stream == index && matches!(cursor.step, Step::Read(_) | Step::Write)
            }
            _ => false,
        }
    }

    /// The front end has read in answer to [`Event::Read`]; `filled` if it was as much as it had
    /// room for. A stream that is hung up gives all it has, even where the kernel gives it piece by
    /// piece, as it does when descriptors are passed. A terminal that is hung up says so when it is
    /// read.
    #[inline]
    pub(super) fn note_read(&mut self, index: u32, filled: bool) {
        let is_terminal = self.stream(index).kind == HandleKind::Tty;
        if let InHand::Stream(cursor) = &mut self.in_hand
            && cursor.stream == index
        {
            let drains = cursor.has_hung_up() && !is_terminal;
            if let Step::Read(intake) = &mut cursor.step {
                intake.took(1, filled || drains);
            }
        }
    }

    /// The front end has found nothing to read in answer to [`Event::Read`].
    #[inline]
    pub(super) fn note_nothing_read(&mut self, index: u32) {
        if let InHand::Stream(cursor) = &mut self.in_hand
            && cursor.stream == index
            && let Step::Read(intake) = &mut cursor.step
        {
            intake.took_nothing();
        }
    }

    /// Ends the turn of a stream that is being closed.
    pub(super) fn end_turn_of_stream(&mut self, index: u32) {
        if let InHand::Stream(cursor) = self.in_hand
            && cursor.stream == index
        {
            self.in_hand = InHand::Nothing;
        }
    }
}
