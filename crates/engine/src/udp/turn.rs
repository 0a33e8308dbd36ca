//! A UDP handle's turn: the steps that follow one readiness event or one pending callback.
//!
//! ```text
//!   Receive ─► Errors ─► Send ─► Report ─► over
//!   Broken ────────────────────► Report
//! ```
//!
//! The cursor stores the current [`UdpStep`] while a callback of the turn runs. If the callback stops
//! the handle, the next step sees that. If the callback closes the handle, the turn ends.

use super::{Engine, Receiving};
use crate::driver::Pending;
use crate::event::Event;
use crate::progress::{InHand, Intake};
use crate::readiness::{Interest, Readiness};
use blacklight_sys::Errno;

/// The progress of one handle's turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UdpCursor {
    udp: u32,
    /// The readiness that the poller has reported.
    ready: Readiness,
    step: UdpStep,
}

#[derive(Clone, Copy, Debug)]
enum UdpStep {
    /// The descriptor cannot be watched, or is closed.
    Broken(Errno),
    /// The front end receives datagrams.
    Receive(Intake),
    /// The front end receives errors of datagrams sent earlier.
    Errors(Intake),
    Send,
    /// This many finished sends are left to report. Sends that finish meanwhile wait for the next
    /// turn.
    Report(u32),
}

/// The event of a step, if any, and the next step; `None` ends the turn.
type UdpStepped = (Option<Event>, Option<UdpStep>);

impl Engine {
    /// Begins a handle's turn with the readiness that the poller has reported.
    #[inline]
    pub(crate) fn udp_ready(&mut self, udp: u32, ready: Readiness) -> UdpCursor {
        let step = if ready.contains(Readiness::CLOSED) {
            UdpStep::Broken(Errno::EBADF)
        } else if ready.concerns(Interest::READABLE) {
            UdpStep::Receive(Intake::BEGIN)
        } else {
            UdpStep::Send
        };
        UdpCursor { udp, ready, step }
    }

    /// Begins a handle's turn in a pending phase.
    pub(crate) fn udp_pending(&mut self, udp: u32, why: Pending) -> UdpCursor {
        let (ready, step) = match why {
            Pending::Fed => (Readiness::WRITABLE, UdpStep::Send),
            Pending::Refused(error) => (Readiness::NONE, UdpStep::Broken(error)),
        };
        UdpCursor { udp, ready, step }
    }

    /// Continues a handle's turn up to its next event or its end.
    pub(crate) fn next_of_udp(&mut self, mut cursor: UdpCursor) -> Option<Event> {
        let index = cursor.udp;
        loop {
            let (event, next) = match cursor.step {
                UdpStep::Broken(error) => self.break_udp(index, error),
                UdpStep::Receive(intake) => self.next_receive(&cursor, intake),
                UdpStep::Errors(intake) => self.next_receive_error(index, intake),
                UdpStep::Send => self.send_queued(&cursor),
                UdpStep::Report(left) => self.report_next_send(index, left),
            };
            let Some(step) = next else {
                self.in_hand = InHand::Nothing;
                return event;
            };
            cursor.step = step;
            if event.is_some() {
                self.in_hand = InHand::Udp(cursor);
                return event;
            }
        }
    }

    /// The descriptor is unusable: all queued sends fail, and receiving ends.
    fn break_udp(&mut self, index: u32, error: Errno) -> UdpStepped {
        // The poller will not report room. The next send is tried at once.
        self.driver
            .unwant(self.udp(index).watcher, Interest::WRITABLE);
        self.fail_sends(index, error);
        let reports = UdpStep::Report(self.udp(index).done.len());
        (self.receiving_failed(index, error), Some(reports))
    }

    /// Lets the front end receive, while there is more and the turn's budget is not spent.
    #[inline(always)]
    fn next_receive(&mut self, cursor: &UdpCursor, mut intake: Intake) -> UdpStepped {
        let udp = self.udp(cursor.udp);
        if udp.receiving != Receiving::No && intake.goes_on() {
            let event = Event::Receive(self.handles[udp.handle].token);
            return (Some(event), Some(UdpStep::Receive(intake)));
        }
        match cursor.ready.contains(Readiness::ERROR) {
            true => (None, Some(UdpStep::Errors(Intake::BEGIN))),
            false => (None, Some(UdpStep::Send)),
        }
    }

    /// As [`next_receive`](Engine::next_receive), for errors.
    fn next_receive_error(&mut self, index: u32, mut intake: Intake) -> UdpStepped {
        let udp = self.udp(index);
        if udp.receiving != Receiving::No && intake.goes_on() {
            let event = Event::ReceiveError(self.handles[udp.handle].token);
            return (Some(event), Some(UdpStep::Errors(intake)));
        }
        (None, Some(UdpStep::Send))
    }

    #[inline(always)]
    fn send_queued(&mut self, cursor: &UdpCursor) -> UdpStepped {
        let index = cursor.udp;
        if !cursor.ready.concerns(Interest::WRITABLE) {
            return (None, None);
        }
        self.flush_sends(index);
        if cursor.ready.contains(Readiness::ERROR) {
            self.discard_errors(index);
        }
        (None, Some(UdpStep::Report(self.udp(index).done.len())))
    }

    #[inline(always)]
    fn report_next_send(&mut self, index: u32, left: u32) -> UdpStepped {
        if left > 0
            && let Some(event) = self.report_send(index)
        {
            return (Some(event), Some(UdpStep::Report(left - 1)));
        }
        (self.after_reports(index), None)
    }

    /// Records that the front end has received this many datagrams or errors in answer to
    /// [`Event::Receive`] or [`Event::ReceiveError`].
    #[inline]
    pub(super) fn note_received(&mut self, index: u32, count: u32) {
        if let InHand::Udp(cursor) = &mut self.in_hand
            && cursor.udp == index
            && let UdpStep::Receive(intake) | UdpStep::Errors(intake) = &mut cursor.step
        {
            intake.took(count, count > 0);
        }
    }

    /// Ends the turn of a handle that is being closed.
    pub(super) fn end_turn_of_udp(&mut self, index: u32) {
        if let InHand::Udp(cursor) = self.in_hand
            && cursor.udp == index
        {
            self.in_hand = InHand::Nothing;
        }
    }
}
