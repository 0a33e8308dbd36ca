//! What the traffic of a loop's streams lets expect next.
//!
//! A loop spins for descriptors only while one peer alone sends to it. While several do, more of
//! their messages arrive during a sleep, and one turn then handles all of them: with 8 connections spinning
//! found the messages one by one and took 7,139 ns for each, sleeping 6,784 (docs/PERFORMANCE.md).

/// What to expect from descriptors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Expected {
    /// The next message of the one peer, to which the loop has written.
    Reply,
    /// More bytes of the one peer, to which the loop has not written. They are let accumulate before they are
    /// read: `pipe_pump1_client` moves 24.0 gbit/s so, and 21.5 if the loop polls all the time
    /// (docs/PERFORMANCE.md).
    More,
    /// Any event of any descriptor.
    Anything,
}

/// Which streams were read and written to in this turn and the one before.
#[derive(Debug)]
pub(super) struct Traffic {
    /// The stream that was read last.
    last_read: u32,
    /// Whether no other stream was read in this turn, and none but this one last before it.
    is_same: bool,
    has_read: bool,
    has_written: bool,
}

impl Traffic {
    pub(super) fn new() -> Traffic {
        Traffic {
            last_read: u32::MAX,
            is_same: true,
            has_read: false,
            has_written: false,
        }
    }

    #[inline]
    pub(super) fn saw_read(&mut self, stream: u32) {
        self.is_same &= self.last_read == stream;
        self.last_read = stream;
        self.has_read = true;
    }

    #[inline]
    pub(super) fn saw_write(&mut self) {
        self.has_written = true;
    }

    /// Ends the turn.
    #[inline]
    pub(super) fn end_turn(&mut self) -> Expected {
        let has_read = std::mem::take(&mut self.has_read);
        let has_written = std::mem::take(&mut self.has_written);
        let is_same = std::mem::replace(&mut self.is_same, true);
        match (has_read && is_same, has_written) {
            (true, true) => Expected::Reply,
            (true, false) => Expected::More,
            (false, _) => Expected::Anything,
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_peer_is_expected_to_go_on_if_it_alone_was_read_in_two_turns() {
        let mut traffic = Traffic::new();
        assert_eq!(
            traffic.end_turn(),
            Expected::Anything,
            "nothing was read yet"
        );
        for _ in 0..2 {
            traffic.saw_read(1);
        }
        assert_eq!(traffic.end_turn(), Expected::Anything, "in one turn only");
        traffic.saw_read(1);
        assert_eq!(traffic.end_turn(), Expected::More);
        traffic.saw_read(1);
        traffic.saw_write();
        assert_eq!(traffic.end_turn(), Expected::Reply);
        traffic.saw_write();
        assert_eq!(traffic.end_turn(), Expected::Anything);
        traffic.saw_read(1);
        traffic.saw_read(2);
        assert_eq!(traffic.end_turn(), Expected::Anything, "two were read");
        traffic.saw_read(1);
        assert_eq!(
            traffic.end_turn(),
            Expected::Anything,
            "the other may be next"
        );
        traffic.saw_read(1);
        assert_eq!(traffic.end_turn(), Expected::More);
    }
}
