//! Which request a submission, a job of the pool and a callback belong to.
//!
//! A request goes from its loop to a thread of the pool and back. All that is known of it in each place is its token, which the
//! program may use again as soon as the request has called back. Every submission gets a number of its own, a *flow*, that the three events share.

use std::collections::{HashMap, VecDeque};

/// The submissions that are remembered. Beyond them the oldest is forgotten, and its request has no arrows.
const LIMIT: usize = 100_000;

/// The flow of an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Flow {
    /// Its number, unique in a trace.
    pub(super) id: u64,
    /// Whether the event is the last of its flow.
    pub(super) is_end: bool,
}

/// A submission whose job or callback is still to come.
#[derive(Debug)]
struct Pending {
    id: u64,
    at_ns: u64,
    track: usize,
    has_job: bool,
    has_callback: bool,
}

/// The flows of a trace.
#[derive(Default, Debug)]
pub(super) struct Flows {
    by_token: HashMap<u64, Vec<Pending>>,
    last: u64,
    /// The submissions in their order: token and flow.
    order: VecDeque<(u64, u64)>,
    /// Flows that have called back, by the round in which they did: the job of a thread that is new may be read two rounds
    /// later than its callback.
    called_back: VecDeque<(u64, u64, u64)>,
    round: u64,
}

impl Flows {
    /// A request was submitted by a loop, whose track is remembered.
    pub(super) fn submitted(&mut self, token: u64, at_ns: u64, track: usize) -> Flow {
        self.last += 1;
        let id = self.last;
        self.by_token.entry(token).or_default().push(Pending {
            id,
            at_ns,
            track,
            has_job: false,
            has_callback: false,
        });
        self.order.push_back((token, id));
        if self.order.len() > LIMIT
            && let Some((token, id)) = self.order.pop_front()
        {
            self.forget(token, id);
        }
        Flow { id, is_end: false }
    }

    /// A thread of the pool has run a request from this time on.
    pub(super) fn ran(&mut self, token: u64, at_ns: u64) -> Option<Flow> {
        let pending = self.latest(token, at_ns, |pending| !pending.has_job)?;
        pending.has_job = true;
        let (id, is_over) = (pending.id, pending.has_callback);
        if is_over {
            self.forget(token, id);
        }
        Some(Flow { id, is_end: false })
    }

    /// A callback has begun at this time; if it is that of a request, the request's flow ends.
    pub(super) fn called_back(&mut self, token: u64, at_ns: u64) -> Option<Flow> {
        let pending = self.latest(token, at_ns, |pending| !pending.has_callback)?;
        pending.has_callback = true;
        let (id, is_over) = (pending.id, pending.has_job);
        if is_over {
            self.forget(token, id);
        } else {
            self.called_back.push_back((self.round, token, id));
        }
        Some(Flow { id, is_end: true })
    }

    /// A round is over: what has called back two rounds before it waits for its job no longer.
    pub(super) fn end_round(&mut self) {
        while let Some((round, token, id)) = self.called_back.front().copied()
            && round + 1 < self.round
        {
            self.called_back.pop_front();
            self.forget(token, id);
        }
        self.round += 1;
        // Most requests are over, and leave only their place in the order.
        while let Some((token, id)) = self.order.front()
            && !self.knows(*token, *id)
        {
            self.order.pop_front();
        }
    }

    /// The flows of which nothing but the submission is known, with the tracks of their loops.
    pub(super) fn unfinished(self) -> Vec<(usize, Flow)> {
        let pending = self.by_token.into_values().flatten();
        let mut unfinished: Vec<(usize, Flow)> = pending
            .filter(|pending| !pending.has_job && !pending.has_callback)
            .map(|pending| {
                let (id, is_end) = (pending.id, true);
                (pending.track, Flow { id, is_end })
            })
            .collect();
        unfinished.sort_by_key(|(_, flow)| flow.id);
        unfinished
    }

    fn latest(
        &mut self,
        token: u64,
        at_ns: u64,
        is_open: impl Fn(&Pending) -> bool,
    ) -> Option<&mut Pending> {
        let all = self.by_token.get_mut(&token)?.iter_mut();
        all.rev()
            .find(|pending| pending.at_ns <= at_ns && is_open(pending))
    }

    fn knows(&self, token: u64, id: u64) -> bool {
        let all = self.by_token.get(&token);
        all.is_some_and(|all| all.iter().any(|pending| pending.id == id))
    }

    fn forget(&mut self, token: u64, id: u64) {
        if let Some(all) = self.by_token.get_mut(&token) {
            all.retain(|pending| pending.id != id);
            if all.is_empty() {
                self.by_token.remove(&token);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(flow: Option<Flow>) -> Option<u64> {
        flow.map(|flow| flow.id)
    }

    #[test]
    fn a_token_that_is_used_again_has_a_new_flow() {
        let mut flows = Flows::default();
        let first = flows.submitted(7, 10, 0).id;
        let second = flows.submitted(7, 40, 0).id;
        assert_ne!(first, second);
        assert_eq!(id(flows.ran(7, 20)), Some(first));
        assert_eq!(id(flows.ran(7, 50)), Some(second));
        assert_eq!(id(flows.called_back(7, 30)), Some(first));
        assert_eq!(id(flows.called_back(7, 60)), Some(second));
        assert_eq!(id(flows.called_back(7, 70)), None);
        assert!(flows.unfinished().is_empty());
    }

    #[test]
    fn a_job_may_be_read_after_its_callback() {
        let mut flows = Flows::default();
        let flow = flows.submitted(7, 10, 0).id;
        assert_eq!(id(flows.called_back(7, 30)), Some(flow));
        flows.end_round();
        flows.end_round();
        assert_eq!(id(flows.ran(7, 20)), Some(flow));
        assert!(flows.by_token.is_empty());
    }

    #[test]
    fn a_cancelled_request_is_forgotten_three_rounds_later() {
        let mut flows = Flows::default();
        flows.submitted(7, 10, 0);
        flows.called_back(7, 30);
        flows.end_round();
        assert!(!flows.by_token.is_empty());
        flows.end_round();
        flows.end_round();
        assert!(flows.by_token.is_empty() && flows.order.is_empty());
    }

    #[test]
    fn unfinished_requests_are_told_with_their_tracks() {
        let mut flows = Flows::default();
        flows.submitted(7, 10, 3);
        flows.submitted(8, 11, 4);
        flows.ran(8, 12);
        let unfinished: Vec<_> = flows.unfinished().iter().map(|(track, _)| *track).collect();
        assert_eq!(unfinished, [3]);
    }
}
