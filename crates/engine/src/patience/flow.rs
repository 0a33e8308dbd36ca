//! Flows: connections whose bytes go one way.
//!
//! Where bytes go one way only, level-triggered registrations serve better than edge-triggered
//! ones: the kernel finds more bytes at each look, and a loop of many such flows sleeps less often.
//! So an edge-triggered watcher that was used so many times in the same direction is
//! level-triggered until the other direction is used.
//!
//! Measured with a hundred flows (docs/PERFORMANCE.md): edge-triggered they slept 48,000 to 52,000
//! times in the time in which they do 34,000 times level-triggered, and moved a tenth less.
//!
//! Without this file and `Reports::Flow` of the watchers, connections would stay edge-triggered.

/// So many transfers in a row that go the same way make a flow. Other values were not measured.
const FLOW: u8 = 64;

/// Which way bytes go.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum Way {
    #[default]
    In,
    Out,
}

/// Which way the last transfer of a watcher went, and how many before it did too.
#[derive(Default, Debug)]
pub(crate) struct Flow {
    way: Way,
    in_a_row: u8,
}

/// A change that a transfer has made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FlowChange {
    /// The connection has become a flow.
    Begins,
    /// It is none any more, if it was one.
    Ends,
}

impl Flow {
    /// Bytes were transferred.
    #[inline]
    pub(crate) fn saw(&mut self, way: Way) -> Option<FlowChange> {
        if self.way != way {
            (self.way, self.in_a_row) = (way, 0);
            return Some(FlowChange::Ends);
        }
        if self.in_a_row == FLOW {
            return None;
        }
        self.in_a_row += 1;
        (self.in_a_row == FLOW).then_some(FlowChange::Begins)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_flow_begins_once_and_ends_when_bytes_go_the_other_way() {
        let mut flow = Flow::default();
        let first = (1..).find(|_| flow.saw(Way::In).is_some());
        assert_eq!(first, Some(u32::from(FLOW)));
        assert!((0..1000).all(|_| flow.saw(Way::In).is_none()));
        assert_eq!(flow.saw(Way::Out), Some(FlowChange::Ends));
        let second = (1..).find(|_| flow.saw(Way::Out) == Some(FlowChange::Begins));
        assert_eq!(second, Some(u32::from(FLOW)));
    }
}
