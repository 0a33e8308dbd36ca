//! One end of a connection: what it sends, what it receives, and how it goes.

use crate::link::Kind;
use crate::world::{Lent, Name, Owner, World, pattern};
use blacklight_engine::{Errno, Key};
use std::collections::VecDeque;

const MANY_BUFFERS: usize = 1500;

/// How an end goes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Finale {
    /// Shuts down when it has sent all, and closes when it has received all.
    Polite,
    /// Closes after so many ticks, whatever is going on.
    Close(u32),
    /// The same with a reset.
    Reset(u32),
}

#[derive(Debug)]
pub(crate) struct End {
    pub(crate) key: Key,
    kind: Kind,
    peer: usize,
    finale: Finale,
    /// The server that is to accept it.
    pub(crate) server: Option<Key>,
    messages_left: u32,
    /// Where in the pattern its stream begins.
    offset: usize,
    sent: usize,
    /// The bytes that the kernel has certainly taken.
    acknowledged: usize,
    received: usize,
    /// After how many bytes a write has failed, while those behind it may have gone.
    gap_at: Option<usize>,
    /// After how many bytes what came was not what was expected.
    differs_at: Option<usize>,
    /// The writes that have not been reported: number, length, and the engine's name for each.
    writes: VecDeque<(u64, usize, Key)>,
    cancelled: Option<u64>,
    can_read: bool,
    can_write: bool,
    pub(crate) is_connecting: bool,
    is_open: bool,
    is_reading: bool,
    is_shutting_down: bool,
    is_shut: bool,
    has_ended: bool,
    has_failed: bool,
    is_closing: bool,
    is_closed: bool,
}

impl End {
    pub(crate) fn new(
        key: Key,
        kind: Kind,
        peer: usize,
        finale: Finale,
        messages_left: u32,
        offset: usize,
    ) -> End {
        End {
            key,
            kind,
            peer,
            finale,
            server: None,
            messages_left,
            offset,
            sent: 0,
            acknowledged: 0,
            received: 0,
            gap_at: None,
            differs_at: None,
            writes: VecDeque::new(),
            cancelled: None,
            can_read: true,
            can_write: true,
            is_connecting: false,
            is_open: false,
            is_reading: false,
            is_shutting_down: false,
            is_shut: false,
            has_ended: false,
            has_failed: false,
            is_closing: false,
            is_closed: false,
        }
    }

    /// Is one end of a pipe.
    pub(crate) fn goes_one_way(&mut self, writes: bool) {
        self.can_read = !writes;
        self.can_write = writes;
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.is_closing
    }

    /// Whether it has done all that it had to.
    fn is_done(&self) -> bool {
        let has_written = !self.can_write || self.is_shut && self.writes.is_empty();
        has_written && (self.has_ended || !self.can_read)
    }
}

impl World {
    /// Whether something may break, so that errors are to be expected.
    fn may_fail(&self, end: usize) -> bool {
        let end = &self.ends[end];
        let is_rude = |end: &End| end.finale != Finale::Polite;
        self.is_destructive || is_rude(end) || is_rude(&self.ends[end.peer])
    }

    /// Sees to it that errors are only met where they may be.
    fn expect_failure(&self, end: usize, what: &str, error: Errno) {
        let may_fail = self.may_fail(end);
        assert!(may_fail, "end {end}: {what}: {error:?}");
    }

    /// The connection stands: everything begins.
    pub(crate) fn open_end(&mut self, end: usize) {
        self.ends[end].is_open = true;
        self.start_reading(end);
        self.write_some(end);
    }

    fn start_reading(&mut self, end: usize) {
        let it = &mut self.ends[end];
        let is_over = it.is_closing || it.has_ended || !it.can_read;
        if is_over || it.is_reading || !it.is_open {
            return;
        }
        match self.engine.read_start(it.key) {
            Ok(()) => it.is_reading = true,
            Err(error) => self.expect_failure(end, "reading cannot start", error),
        }
    }

    /// Writes some of the messages that are left, and shuts down after the last.
    fn write_some(&mut self, end: usize) {
        let it = &self.ends[end];
        if !(it.is_open || it.is_connecting) || it.is_closing || it.has_failed || !it.can_write {
            return;
        }
        let burst = 1 + self.random.below(4) as u32;
        for _ in 0..burst.min(self.ends[end].messages_left) {
            self.ends[end].messages_left -= 1;
            self.write_one(end);
        }
        let it = &mut self.ends[end];
        if it.messages_left > 0 || it.is_shutting_down || it.finale != Finale::Polite {
            return;
        }
        it.is_shutting_down = true;
        let token = Name::Shutdown(end).token();
        if let Err(error) = self.engine.stream_shutdown(it.key, token) {
            it.is_shut = true;
            self.expect_failure(end, "cannot shut down", error);
        }
    }

    /// The next bytes of what the end sends, as one buffer or as many.
    fn message(&mut self, end: usize, len: usize) -> Lent {
        let it = &self.ends[end];
        let bytes = pattern(it.offset + it.sent, len);
        match self.random.below(4) {
            0 => Lent::parts(bytes.chunks(len.div_ceil(MANY_BUFFERS))),
            1 => {
                let at = self.random.below(len as u64 + 1) as usize;
                let (head, tail) = bytes.split_at(at);
                Lent::parts([head, &[], tail])
            }
            _ => Lent::parts([bytes]),
        }
    }

    fn write_one(&mut self, end: usize) {
        let len = self.size(self.max_message);
        let mut lent = self.message(end, len);
        let it = &mut self.ends[end];
        if it.writes.is_empty() && self.random.chance(1, 4) {
            match self.engine.stream_try_write(it.key, &lent.buffers(), None) {
                Ok(written) => {
                    it.sent += written;
                    it.acknowledged += written;
                }
                // There is no room, or it is not connected yet.
                Err(Errno::EAGAIN | Errno::ENOBUFS) => {}
                Err(error) => {
                    it.has_failed = true;
                    self.expect_failure(end, "cannot write at once", error);
                }
            }
            return;
        }
        let id = self.new_request();
        let token = Name::Request(id).token();
        let it = &mut self.ends[end];
        match self
            .engine
            .stream_write(it.key, token, lent.buffers(), None)
        {
            Ok((key, _)) => {
                it.sent += len;
                it.writes.push_back((id, len, key));
                self.requests.insert(id, (Owner::End(end), lent));
            }
            Err(error) => {
                it.has_failed = true;
                self.expect_failure(end, "cannot write", error);
            }
        }
    }

    pub(crate) fn connected(&mut self, end: usize, result: Result<(), Errno>) {
        let it = &mut self.ends[end];
        assert!(it.is_connecting, "end {end} is connected twice");
        assert!(!it.is_closed && it.acknowledged == 0);
        it.is_connecting = false;
        match result {
            Ok(()) => {
                assert!(!it.is_closing, "end {end} is connected after its close");
                self.open_end(end);
            }
            Err(error) => {
                it.has_failed = true;
                self.expect_failure(end, "connecting fails", error);
                self.coverage.failed_connects += 1;
                self.close_end(end);
            }
        }
    }

    pub(crate) fn read(&mut self, end: usize) {
        let (some, of) = if self.sips { (7, 8) } else { (1, 8) };
        let len = match self.random.chance(some, of) {
            true => self.size(16),
            false => self.room.len() - self.random.below(self.room.len() as u64 / 2) as usize,
        };
        let it = &self.ends[end];
        assert!(it.is_reading && !it.is_closing, "end {end} reads unasked");
        let result = self.engine.stream_read(it.key, &mut self.room[..len]);
        if let Some(step) = self.steps.last_mut() {
            step.1 = Some(result);
        }
        match result {
            Ok(count) => self.check_bytes(end, count),
            Err(Errno::EAGAIN) => {}
            Err(error) => self.reading_ended(end, error),
        }
    }

    fn check_bytes(&mut self, end: usize, count: usize) {
        let it = &self.ends[end];
        let peer = &self.ends[it.peer];
        let expected = pattern(peer.offset + it.received, count);
        // SAFETY: as many bytes have been read.
        let bytes = unsafe { std::slice::from_raw_parts(self.room.as_ptr().cast::<u8>(), count) };
        let differs = match bytes == expected {
            true => None,
            false => bytes.iter().zip(expected).position(|(a, b)| a != b),
        };
        let at = it.received;
        let it = &mut self.ends[end];
        it.received += count;
        if let Some(differs) = differs {
            // Whether a write has failed there, its report will tell.
            it.differs_at.get_or_insert(at + differs);
        }
        self.coverage.bytes += count as u64;
        if self.random.chance(1, 16) {
            self.engine.read_stop(it.key);
            it.is_reading = false;
        }
        if self.random.chance(1, 16) {
            self.write_some(end);
        }
    }

    pub(crate) fn reading_ended(&mut self, end: usize, error: Errno) {
        let it = &mut self.ends[end];
        assert!(!it.has_ended && !it.is_closing);
        it.has_ended = true;
        it.is_reading = false;
        if error != Errno::EOF {
            it.has_failed = true;
            self.coverage.failed_reads += 1;
            self.expect_failure(end, "reading fails", error);
        }
        self.close_if_over(end);
    }

    pub(crate) fn written(
        &mut self,
        end: usize,
        id: u64,
        result: Result<(), Errno>,
        written: usize,
    ) {
        let it = &mut self.ends[end];
        assert!(!it.is_connecting && !it.is_closed && !it.is_shut);
        let at = match it.cancelled {
            Some(cancelled) if cancelled == id => it.writes.iter().position(|write| write.0 == id),
            _ => Some(0),
        };
        let write = at.and_then(|at| it.writes.remove(at));
        let (first, len, _) = write.expect("a write that was made");
        assert_eq!(first, id, "end {end}: writes are reported out of order");
        it.acknowledged += written;
        match result {
            Ok(()) => {
                assert_eq!(written, len, "end {end}: not all is written");
                assert!(it.is_open, "end {end} writes before it is open");
            }
            Err(Errno::ECANCELED) if it.is_closing || it.has_failed => {
                self.coverage.cancelled_writes += 1;
            }
            Err(error) => {
                it.has_failed = true;
                it.gap_at.get_or_insert(it.acknowledged);
                self.coverage.failed_writes += 1;
                self.expect_failure(end, "writing fails", error);
            }
        }
        if result.is_ok() && self.random.chance(1, 2) {
            self.write_some(end);
        }
        self.close_if_over(end);
    }

    pub(crate) fn has_shut_down(&mut self, end: usize, result: Result<(), Errno>) {
        let it = &mut self.ends[end];
        assert!(it.is_shutting_down && !it.is_shut && !it.is_closed);
        assert!(
            it.writes.is_empty(),
            "end {end} shuts down before it has written"
        );
        it.is_shut = true;
        match result {
            Ok(()) if it.has_ended => {}
            Ok(()) => self.coverage.half_closes += 1,
            Err(Errno::ECANCELED) if it.is_closing => {}
            // It has no direction to shut.
            Err(Errno::ENOTSOCK) if it.kind == Kind::Pipe => {}
            Err(error) => self.expect_failure(end, "shutting down fails", error),
        }
        self.close_if_over(end);
    }

    pub(crate) fn close_if_over(&mut self, end: usize) {
        let it = &self.ends[end];
        let is_broken = it.has_failed || it.has_ended && self.may_fail(end);
        if it.is_done() || is_broken {
            self.close_end(end);
        }
    }

    pub(crate) fn close_end(&mut self, end: usize) {
        self.close_server(end);
        let it = &mut self.ends[end];
        if std::mem::replace(&mut it.is_closing, true) {
            return;
        }
        it.is_reading = false;
        if let Some(&(id, _, key)) = it.writes.back()
            && self.random.chance(1, 4)
        {
            // It overtakes the others.
            self.engine.write_cancel(key).expect("it is not reported");
            it.cancelled = Some(id);
        }
        if matches!(it.finale, Finale::Reset(_)) && it.is_open {
            assert_eq!(it.kind, Kind::Tcp);
            if self.engine.tcp_reset_on_close(it.key).is_ok() {
                self.coverage.resets += 1;
            }
        }
        self.engine.close(it.key).expect("it is open");
    }

    pub(crate) fn end_closed(&mut self, end: usize) {
        let it = &mut self.ends[end];
        assert!(it.is_closing && !it.is_closed);
        it.is_closed = true;
        assert!(it.writes.is_empty(), "end {end}: writes are left");
        assert!(!it.is_connecting, "end {end} is left connecting");
        assert_eq!(
            it.is_shutting_down, it.is_shut,
            "end {end}: a shutdown is left"
        );
        // A peer that a server was to accept waits in vain.
        let peer = it.peer;
        if self.ends[peer].server.is_some() && !self.ends[end].is_open {
            self.close_end(peer);
        }
    }

    /// A moment has passed.
    pub(crate) fn tick_end(&mut self, end: usize) {
        let it = &mut self.ends[end];
        if it.is_closing {
            return;
        }
        if let Finale::Close(ticks) | Finale::Reset(ticks) = &mut it.finale {
            match ticks.checked_sub(1) {
                Some(left) => *ticks = left,
                None => return self.close_end(end),
            }
        }
        if it.server.is_some() && self.ends[self.ends[end].peer].is_closed {
            // It was turned away, or went before it was accepted.
            return self.close_end(end);
        }
        if self.random.chance(1, 2) {
            self.start_reading(end);
        }
        if self.ends[end].writes.is_empty() {
            self.write_some(end);
        }
        self.close_if_over(end);
    }

    /// Checks an end when all is over.
    pub(crate) fn check_end(&mut self, end: usize) {
        let it = &self.ends[end];
        let peer = &self.ends[it.peer];
        assert!(it.is_closed, "end {end} is open");
        assert!(
            it.received <= peer.sent,
            "end {end}: more came than was sent"
        );
        if let Some(at) = it.differs_at {
            let is_gap = peer.gap_at.is_some_and(|gap| gap <= at);
            assert!(is_gap, "end {end}: wrong bytes after {at}");
        }
        if !self.may_fail(end) {
            assert_eq!(it.received, peer.sent, "end {end}: not all has come");
            assert_eq!(it.acknowledged, it.sent, "end {end}: not all is written");
            self.coverage.complete += 1;
        }
    }
}
