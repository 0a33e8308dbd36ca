//! Predicting the next event of a descriptor from the bytes that streams have transferred lately.
//!
//! A loop spins for descriptors only while one peer alone sends to it. While several do, more of
//! their messages arrive during a sleep, and one turn then handles all of them: with 8 connections spinning
//! found the messages one by one and took 7,139 ns for each, sleeping 6,784 (docs/PERFORMANCE.md).

/// The event that a loop expects from its descriptors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Expected {
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
    reads: Reads,
    has_written: bool,
}

/// The streams that were read in this turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reads {
    None,
    /// Only the one that was also read last before this turn.
    OfTheSame,
    /// Another one.
    OfAnother,
}

impl Traffic {
    pub(super) fn new() -> Traffic {
        Traffic {
            last_read: u32::MAX,
            reads: Reads::None,
            has_written: false,
        }
    }

    #[inline]
    pub(super) fn saw_read(&mut self, stream: u32) {
        let is_same = self.last_read == stream && self.reads != Reads::OfAnother;
        self.last_read = stream;
        self.reads = match is_same {
            true => Reads::OfTheSame,
            false => Reads::OfAnother,
        };
    }

    #[inline]
    pub(super) fn saw_write(&mut self) {
        self.has_written = true;
    }

    /// Ends the turn.
    #[inline]
    pub(super) fn end_turn(&mut self) -> Expected {
        let reads = std::mem::replace(&mut self.reads, Reads::None);
        let has_written = std::mem::take(&mut self.has_written);
        match (reads, has_written) {
            (Reads::OfTheSame, true) => Expected::Reply,
            (Reads::OfTheSame, false) => Expected::More,
            (Reads::None | Reads::OfAnother, _) => Expected::Anything,
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
