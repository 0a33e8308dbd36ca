//! Flows: connections whose bytes go one way.
//!
//! Where bytes go one way only, level-triggered registrations serve better than edge-triggered ones: the kernel
//! finds more bytes at each look, and a loop of many such flows sleeps less often. So an edge-triggered watcher that
//! was used so many times in the same direction is level-triggered until the other direction is used.
//!
//! Measured with a hundred flows (docs/PERFORMANCE.md): edge-triggered they slept 48,000 to 52,000 times in the time in
//! which they do 34,000 times level-triggered, and moved a tenth less.
//!
//! Without this file, [`Reports::Flow`] and the calls of [`Driver::transferred`], connections would stay edge-triggered.

use super::Driver;
use super::watchers::Reports;

/// So many transfers in a row that go the same way make a flow. Other values were not measured.
const FLOW: u8 = 64;

/// Which way bytes go.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) enum Way {
    #[default]
    In,
    Out,
}

/// Which way the last transfer of a watcher went, and how many before it did too.
#[derive(Default, Debug)]
pub(super) struct Flow {
    way: Way,
    in_a_row: u8,
}

impl Driver {
    /// The watcher's owner has transferred bytes.
    #[inline]
    pub(super) fn transferred(&mut self, index: u32, way: Way) {
        let watcher = &mut self.watchers.slab[index];
        let flow = &mut watcher.flow;
        if flow.way != way {
            (flow.way, flow.in_a_row) = (way, 0);
            if watcher.reports == Reports::Flow {
                self.set_reports(index, Reports::Edge);
            }
        } else if flow.in_a_row < FLOW {
            flow.in_a_row += 1;
            if flow.in_a_row == FLOW && watcher.reports == Reports::Edge {
                self.set_reports(index, Reports::Flow);
            }
        }
    }
}
