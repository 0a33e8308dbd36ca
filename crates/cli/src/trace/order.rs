//! One track's events in the order of a trace: slices that begin and end, one inside the other.
//!
//! A ring has an event when it ends, so an outer one comes after its inner ones. Here they are held back until no event that
//! began before them can still come, sorted by their beginnings, and taken apart into beginnings and ends. An
//! event that was pushed before another one and began after it lies inside it, whatever the clock says; where
//! the clock contradicts, times are clipped. A run of a loop may last as long as its program: its slice begins with the first event
//! inside it and ends when the run does, or the trace.

use super::flows::Flow;
use blacklight_record::What;
use blacklight_record::layout::RING;
use blacklight_record::read::Event;

/// The events that are held back at most. What is still to come then is clipped.
const HELD: usize = 4 * RING;

/// Something that begins or happens on a track.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Slice {
    /// A run of the loop.
    Run,
    /// Callbacks of one phase, in one turn.
    Phase { phase: usize, turn: u32 },
    /// A callback, a wait, a job, or a submission.
    Event(Event, Option<Flow>),
    /// So many events are missing here.
    Lost(u64),
    /// A request that nothing more is known of.
    Unfinished(Flow),
}

/// A step of a track.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// A slice begins.
    Begin(u64, Slice),
    /// The slice that has begun last ends.
    End(u64),
    /// Something happens that takes no time.
    Point(u64, Slice),
}

/// A slice that has begun.
#[derive(Clone, Copy, Debug)]
enum Open {
    /// An event or a run, with its place in the ring.
    Whole {
        number: u64,
        end_ns: u64,
        is_run: bool,
    },
    /// A run whose end is not known yet.
    Run { begin_ns: u64 },
    /// A phase, and the end of its last callback.
    Phase {
        phase: usize,
        turn: u32,
        end_ns: u64,
    },
}

/// An event that waits for its turn.
#[derive(Clone, Copy, Debug)]
struct Held {
    number: u64,
    event: Event,
    flow: Option<Flow>,
}

impl Held {
    fn end_ns(&self) -> u64 {
        self.event.at_ns.saturating_add(self.event.took_ns)
    }
}

/// One track.
#[derive(Default, Debug)]
pub(super) struct Lane {
    held: Vec<Held>,
    /// The slices that have begun and not ended, the outermost first.
    open: Vec<Open>,
    /// The time of the last step.
    last_ns: u64,
    /// The number of events so far.
    count: u64,
}

impl Lane {
    /// A track on which nothing begins before this time.
    pub(super) fn since(since_ns: u64) -> Lane {
        Lane {
            last_ns: since_ns,
            ..Lane::default()
        }
    }

    /// Takes events in the order of the ring. Events that ended by `until_ns` lie in no slice that is still to come, but for a run.
    pub(super) fn feed(
        &mut self,
        events: impl IntoIterator<Item = (Event, Option<Flow>)>,
        until_ns: u64,
        steps: &mut Vec<Step>,
    ) {
        for (event, flow) in events {
            let number = self.count;
            self.count += 1;
            self.held.push(Held {
                number,
                event,
                flow,
            });
        }
        let until_ns = match self.held.len() > HELD {
            true => u64::MAX,
            false => until_ns,
        };
        self.release(until_ns, steps);
    }

    /// Says that events are missing between those that were fed and those that come next, at `next_ns`. The slices that are open end, since
    /// their ends may be among the missing.
    pub(super) fn lose(&mut self, lost: u64, next_ns: u64, steps: &mut Vec<Step>) {
        self.release(u64::MAX, steps);
        self.close_all(self.last_ns, steps);
        self.last_ns = self.last_ns.max(next_ns);
        steps.push(Step::Point(self.last_ns, Slice::Lost(lost)));
    }

    /// Ends all slices: there are no more events after `end_ns`. Then come points for requests of which nothing more is known.
    pub(super) fn finish(&mut self, end_ns: u64, unfinished: &[Flow], steps: &mut Vec<Step>) {
        self.release(u64::MAX, steps);
        self.close_all(end_ns, steps);
        self.last_ns = self.last_ns.max(end_ns);
        let points = unfinished
            .iter()
            .map(|flow| Step::Point(self.last_ns, Slice::Unfinished(*flow)));
        steps.extend(points);
    }

    fn release(&mut self, until_ns: u64, steps: &mut Vec<Step>) {
        let until_ns = match until_ns {
            u64::MAX => u64::MAX,
            _ => until_ns.min(self.nested_since()),
        };
        let is_ready = |held: &mut Held| held.end_ns() <= until_ns;
        let mut ready: Vec<Held> = self.held.extract_if(.., is_ready).collect();
        // Of two that begin at once, the one that was pushed later is the outer one.
        ready.sort_by_key(|held| (held.event.at_ns, std::cmp::Reverse(held.number)));
        for held in ready {
            self.place(held, steps);
        }
    }

    /// When the first of those held runs began that lie in a callback which has not ended. The run around that callback has not ended
    /// either, and what the loop does now says nothing about the callback.
    fn nested_since(&self) -> u64 {
        let Some(Open::Run { begin_ns }) = self.open.first() else {
            return u64::MAX;
        };
        let mut since_ns = u64::MAX;
        for Held { event, .. } in &self.held {
            match event.what {
                // The outer run has ended; what comes after it is in other runs.
                What::Run if event.at_ns <= *begin_ns => break,
                What::Run => since_ns = since_ns.min(event.at_ns),
                What::Callback if event.at_ns <= since_ns => since_ns = u64::MAX,
                _ => {}
            }
        }
        since_ns
    }

    /// Adds the steps for one event, the earliest of those that are left.
    fn place(&mut self, held: Held, steps: &mut Vec<Step>) {
        let event = held.event;
        if let Some(first @ Open::Run { .. }) = self.open.first_mut()
            && let Open::Run { begin_ns } = *first
            && event.what == What::Run
            && event.at_ns <= begin_ns
        {
            *first = Open::Whole {
                number: held.number,
                end_ns: held.end_ns().max(self.last_ns),
                is_run: true,
            };
            return;
        }
        self.close_before(&held, steps);
        let begin_ns = event.at_ns.max(self.last_ns);
        let end_ns = held
            .end_ns()
            .clamp(begin_ns, self.enclosing_end().max(begin_ns));
        let begin = |lane: &mut Lane, slice, open, steps: &mut Vec<Step>| {
            lane.last_ns = begin_ns;
            lane.open.push(open);
            steps.push(Step::Begin(begin_ns, slice));
        };
        let whole = Open::Whole {
            number: held.number,
            end_ns,
            is_run: event.what == What::Run,
        };
        match event.what {
            What::Submit => {
                self.last_ns = begin_ns;
                steps.push(Step::Point(begin_ns, Slice::Event(event, held.flow)));
                return;
            }
            What::Run => return begin(self, Slice::Run, whole, steps),
            What::Job => {}
            What::Callback | What::Sleep | What::Spin if self.open.is_empty() => {
                begin(self, Slice::Run, Open::Run { begin_ns }, steps);
            }
            What::Callback | What::Sleep | What::Spin => {}
        }
        // A callback inside another one needs no phase.
        if event.what == What::Callback && self.is_in_run() {
            let (phase, turn) = (event.phase, event.turn);
            let open = Open::Phase {
                phase,
                turn,
                end_ns: begin_ns,
            };
            begin(self, Slice::Phase { phase, turn }, open, steps);
        }
        begin(self, Slice::Event(event, held.flow), whole, steps);
    }

    /// Ends what lies before an event: slices that it is not inside, and a phase that it does not go on with.
    fn close_before(&mut self, held: &Held, steps: &mut Vec<Step>) {
        let event = &held.event;
        while let Some(last) = self.open.last() {
            let is_over = match *last {
                Open::Whole { number, .. } => number < held.number,
                // The end of this run was lost: another one has begun.
                Open::Run { .. } => event.what == What::Run,
                Open::Phase { phase, turn, .. } => {
                    let is_same =
                        event.what == What::Callback && (event.phase, event.turn) == (phase, turn);
                    !is_same || self.is_run_over(held.number)
                }
            };
            if !is_over {
                return;
            }
            self.close(self.last_ns, steps);
        }
    }

    /// Whether the run around the innermost phase has ended before the event with this number.
    fn is_run_over(&self, number: u64) -> bool {
        let run = self.open.len().checked_sub(2).map(|at| self.open[at]);
        matches!(run, Some(Open::Whole { number: run, .. }) if run < number)
    }

    /// Ends the innermost slice; a run whose end is not known ends at `end_ns`.
    fn close(&mut self, end_ns: u64, steps: &mut Vec<Step>) {
        let end_ns = match self.open.pop() {
            Some(Open::Whole { end_ns, .. } | Open::Phase { end_ns, .. }) => end_ns,
            Some(Open::Run { .. }) => end_ns,
            None => return,
        };
        self.last_ns = self.last_ns.max(end_ns);
        steps.push(Step::End(self.last_ns));
        let last_ns = self.last_ns;
        if let Some(Open::Phase { end_ns, .. }) = self.open.last_mut() {
            *end_ns = last_ns;
        }
    }

    fn close_all(&mut self, end_ns: u64, steps: &mut Vec<Step>) {
        while !self.open.is_empty() {
            self.close(end_ns, steps);
        }
    }

    /// When the innermost slice ends whose end is known.
    fn enclosing_end(&self) -> u64 {
        let ends = self.open.iter().rev().find_map(|open| match open {
            Open::Whole { end_ns, .. } => Some(*end_ns),
            Open::Run { .. } | Open::Phase { .. } => None,
        });
        ends.unwrap_or(u64::MAX)
    }

    /// Whether the innermost slice is a run: what phases begin in.
    fn is_in_run(&self) -> bool {
        match self.open.last() {
            Some(Open::Run { .. }) => true,
            Some(Open::Whole { is_run, .. }) => *is_run,
            Some(Open::Phase { .. }) | None => false,
        }
    }
}

#[cfg(test)]
#[path = "order_tests.rs"]
mod tests;
