//! Callbacks that have kept a loop from its work for longer than a limit.
//!
//! A [`Watcher`] sees a stall in one of two ways. It looks at what a loop does every few milliseconds,
//! and so catches a callback that runs for long while it runs, with its stack. And it reads the loop's
//! last events, which have the callbacks that were over before anybody looked. It does not read the record
//! itself: it is told what was read.

use crate::names::{Doing, Names, StallStack};
use blacklight_record::What;
use blacklight_record::layout::State;
use blacklight_record::read::{Event, Now};
use std::collections::{HashMap, VecDeque};

/// How many stalls are kept.
const KEPT: usize = 100;
/// How many stacks of one stall are kept.
const SAMPLES: usize = 10;
/// How long the next stack of a stall that goes on is waited for.
const BETWEEN_SAMPLES_NS: u64 = 500_000_000;

/// A callback that took too long.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Stall {
    /// The loop's number.
    pub(crate) loop_id: u32,
    /// The callback's phase, an index into the names of phases.
    pub(crate) phase: usize,
    /// The callback's kind, an index into the names of kinds.
    pub(crate) kind: usize,
    /// The code that was called back; 0 if that is not known.
    pub(crate) address: u64,
    /// When it began.
    pub(crate) began_ns: u64,
    /// How long it took, or has taken so far.
    pub(crate) took_ns: u64,
    /// Whether it has returned.
    pub(crate) is_over: bool,
    /// Stacks of its thread while it ran.
    pub(crate) samples: Vec<StallStack>,
    /// Why a stack could not be had.
    pub(crate) refusal: Option<String>,
}

impl Stall {
    /// When it ended, or was seen last.
    pub(crate) fn ended_ns(&self) -> u64 {
        self.began_ns.saturating_add(self.took_ns)
    }

    /// What its thread did in most of the stacks.
    pub(crate) fn doing(&self) -> Option<&Doing> {
        let times = |doing: &Doing| self.samples.iter().filter(|of| of.doing == *doing).count();
        // The first of equals is taken, which `max_by_key` does from behind.
        let doings = self.samples.iter().rev().map(|sample| &sample.doing);
        doings.max_by_key(|doing| times(doing))
    }

    /// Whether an event is the end of this callback. The thread may have begun to count anew in between, when
    /// a callback has run the loop itself.
    fn is_same(&self, loop_id: u32, event: &Event) -> bool {
        self.loop_id == loop_id
            && self.address == event.address
            && self.kind == event.kind
            && (event.at_ns..=event.at_ns.saturating_add(event.took_ns)).contains(&self.began_ns)
    }
}

/// A stall that is not over, and when its stack was taken last.
#[derive(Debug)]
struct Running {
    stall: Stall,
    token: u64,
    sampled_ns: u64,
}

/// Keeps the last stalls of a process.
#[derive(Debug)]
pub(crate) struct Watcher {
    limit_ns: u64,
    running: HashMap<u32, Running>,
    /// The stalls that are over, the oldest first.
    past: VecDeque<Stall>,
}

impl Watcher {
    /// A watcher that calls a callback a stall when it takes this long.
    pub(crate) fn new(limit_ns: u64) -> Watcher {
        Watcher {
            limit_ns,
            running: HashMap::new(),
            past: VecDeque::new(),
        }
    }

    /// What a callback may take.
    pub(crate) fn limit_ns(&self) -> u64 {
        self.limit_ns
    }

    /// Tells what a loop does, and which thread runs it.
    pub(crate) fn look(
        &mut self,
        id: u32,
        tid: u32,
        now: &Now,
        now_ns: u64,
        names: &mut dyn Names,
    ) {
        let Some(began_ns) = self.see(id, now, now_ns) else {
            return;
        };
        match names.sample(tid) {
            Some(stack) => self.add(id, began_ns, stack),
            None => self.refuse(id, began_ns, names.refusal()),
        }
    }

    /// Tells what a loop does. Returns when the callback began that it runs, if the stack of its thread is wanted.
    pub(crate) fn see(&mut self, id: u32, now: &Now, now_ns: u64) -> Option<u64> {
        if now.is_torn {
            // Half of it may be of a callback that is over.
            return None;
        }
        let is_same = |of: &Running| {
            now.state == State::Callback
                && now.since_ns == of.stall.began_ns
                && now.token == of.token
        };
        if self.running.get(&id).is_some_and(|of| !is_same(of)) {
            // The callback has ended at some time before what runs now began.
            self.end(id, now.since_ns.min(now_ns));
        }
        let took_ns = now_ns.saturating_sub(now.since_ns);
        if now.state != State::Callback || took_ns < self.limit_ns {
            return None;
        }
        let running = self.running.entry(id).or_insert_with(|| Running {
            stall: Stall {
                loop_id: id,
                phase: now.phase,
                kind: now.kind,
                address: now.callback,
                began_ns: now.since_ns,
                took_ns,
                is_over: false,
                samples: Vec::new(),
                refusal: None,
            },
            token: now.token,
            sampled_ns: 0,
        });
        running.stall.took_ns = took_ns;
        let is_due = running.sampled_ns == 0
            || now_ns.saturating_sub(running.sampled_ns) >= BETWEEN_SAMPLES_NS;
        let is_wanted = is_due && running.stall.samples.len() < SAMPLES;
        is_wanted.then(|| {
            running.sampled_ns = now_ns;
            now.since_ns
        })
    }

    /// Tells a stack that was wanted.
    pub(crate) fn add(&mut self, id: u32, began_ns: u64, stack: StallStack) {
        if let Some(stall) = self.stall(id, began_ns) {
            stall.samples.push(stack);
        }
    }

    /// Tells why a stack that was wanted could not be had.
    pub(crate) fn refuse(&mut self, id: u32, began_ns: u64, refusal: Option<String>) {
        if let Some(stall) = self.stall(id, began_ns) {
            stall.refusal = refusal;
        }
    }

    /// The stall of a loop in which a callback began, which may have ended since.
    fn stall(&mut self, id: u32, began_ns: u64) -> Option<&mut Stall> {
        let running = self.running.get_mut(&id).map(|of| &mut of.stall);
        let past = self.past.iter_mut().rev();
        let is_of =
            |of: &&mut Stall| of.loop_id == id && (of.began_ns..=of.ended_ns()).contains(&began_ns);
        running.into_iter().chain(past).find(is_of)
    }

    /// Tells the last events of a loop; those that were told before change nothing.
    pub(crate) fn read(&mut self, id: u32, events: &[Event]) {
        let limit_ns = self.limit_ns;
        let long = events
            .iter()
            .filter(|event| event.what == What::Callback && event.took_ns >= limit_ns);
        for event in long {
            if self
                .running
                .get(&id)
                .is_some_and(|of| of.stall.is_same(id, event))
            {
                self.end(id, event.at_ns.saturating_add(event.took_ns));
            }
            match self.past.iter_mut().find(|stall| stall.is_same(id, event)) {
                Some(known) => {
                    known.began_ns = event.at_ns;
                    known.took_ns = event.took_ns;
                }
                None => self.keep(Stall {
                    loop_id: id,
                    phase: event.phase,
                    kind: event.kind,
                    address: event.address,
                    began_ns: event.at_ns,
                    took_ns: event.took_ns,
                    is_over: true,
                    samples: Vec::new(),
                    refusal: None,
                }),
            }
        }
    }

    /// Tells which loops there are: what other loops did is over.
    pub(crate) fn retain(&mut self, ids: &[u32]) {
        let gone: Vec<u32> = self
            .running
            .keys()
            .copied()
            .filter(|id| !ids.contains(id))
            .collect();
        for id in gone {
            let ended_ns = self.running.get(&id).map_or(0, |of| of.stall.ended_ns());
            self.end(id, ended_ns);
        }
    }

    /// A stall is over.
    fn end(&mut self, id: u32, ended_ns: u64) {
        if let Some(Running { mut stall, .. }) = self.running.remove(&id) {
            stall.took_ns = ended_ns.saturating_sub(stall.began_ns);
            stall.is_over = true;
            self.keep(stall);
        }
    }

    /// Keeps a stall in the order of their beginnings, and gives up the oldest if there are too many.
    fn keep(&mut self, stall: Stall) {
        let at = self
            .past
            .partition_point(|of| of.began_ns <= stall.began_ns);
        self.past.insert(at, stall);
        if self.past.len() > KEPT {
            self.past.pop_front();
        }
    }

    /// The stalls that are known, those that go on first and then the latest first.
    pub(crate) fn latest(&self) -> impl Iterator<Item = &Stall> {
        let mut running: Vec<&Stall> = self.running.values().map(|of| &of.stall).collect();
        running.sort_by_key(|stall| stall.began_ns);
        running.into_iter().chain(self.past.iter().rev())
    }

    /// Copies of them.
    pub(crate) fn stalls(&self) -> Vec<Stall> {
        self.latest().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Gives out stacks and counts them.
    #[derive(Default)]
    struct Counting(u64);

    impl Names for Counting {
        fn name(&mut self, address: u64) -> String {
            address.to_string()
        }
        fn sample(&mut self, _tid: u32) -> Option<StallStack> {
            self.0 += 1;
            let doing = match self.0 {
                1 => Doing::Waiting {
                    call: "read".into(),
                },
                _ => Doing::Computing,
            };
            Some(StallStack {
                addresses: vec![self.0],
                doing,
            })
        }
    }

    fn now(state: State, since_ms: u64) -> Now {
        Now {
            state,
            since_ns: since_ms * MS,
            phase: 4,
            kind: 9,
            callback: 5,
            token: 3,
            turn: 1,
            until_ns: 0,
            is_torn: false,
        }
    }

    fn event(at_ms: u64, took_ms: u64) -> Event {
        Event {
            what: What::Callback,
            at_ns: at_ms * MS,
            took_ns: took_ms * MS,
            phase: 4,
            kind: 9,
            turn: 1,
            address: 5,
            token: 3,
        }
    }

    #[test]
    fn parts_of_two_callbacks_are_no_stall_and_end_none() {
        let mut watcher = Watcher::new(100 * MS);
        let running = now(State::Callback, 1_000);
        let torn = Now {
            since_ns: 0,
            is_torn: true,
            ..running
        };
        assert_eq!(watcher.see(1, &torn, 2_000 * MS), None);
        assert!(watcher.stalls().is_empty());
        assert!(watcher.see(1, &running, 2_000 * MS).is_some());
        assert_eq!(watcher.see(1, &torn, 2_010 * MS), None);
        assert!(!watcher.stalls()[0].is_over);
    }

    #[test]
    fn a_callback_is_a_stall_from_the_limit_on() {
        let mut watcher = Watcher::new(100 * MS);
        let mut names = Counting::default();
        let running = now(State::Callback, 1_000);
        for at_ms in (1_000..1_100).step_by(10) {
            watcher.look(1, 1, &running, at_ms * MS, &mut names);
        }
        assert!(watcher.stalls().is_empty());
        watcher.look(1, 1, &running, 1_100 * MS, &mut names);
        let stalls = watcher.stalls();
        assert_eq!(stalls.len(), 1);
        assert!(!stalls[0].is_over);
        assert_eq!(
            (stalls[0].phase, stalls[0].kind, stalls[0].address),
            (4, 9, 5)
        );
        assert_eq!((names.0, watcher.limit_ns()), (1, 100 * MS));
    }

    #[test]
    fn a_stall_that_goes_on_is_sampled_seldom() {
        let mut watcher = Watcher::new(100 * MS);
        let mut names = Counting::default();
        let running = now(State::Callback, 1_000);
        for at_ms in (1_000..2_700).step_by(10) {
            watcher.look(1, 1, &running, at_ms * MS, &mut names);
        }
        assert_eq!(names.0, 4, "at 100, 600, 1100 and 1600 ms");
        watcher.look(1, 1, &now(State::Asleep, 2_695), 2_700 * MS, &mut names);
        let stalls = watcher.stalls();
        assert!(stalls[0].is_over);
        assert_eq!(stalls[0].took_ns, 1_695 * MS);
        assert_eq!(
            stalls[0].doing(),
            Some(&Doing::Computing),
            "in most of them"
        );
        for at_ms in (3_000..30_000).step_by(10) {
            watcher.look(1, 1, &now(State::Callback, 3_000), at_ms * MS, &mut names);
        }
        assert_eq!(watcher.stalls()[0].samples.len(), SAMPLES);
    }

    #[test]
    fn what_sleeps_or_works_is_no_stall() {
        let mut watcher = Watcher::new(100 * MS);
        let mut names = Counting::default();
        for state in [
            State::Asleep,
            State::Outside,
            State::Working,
            State::Spinning,
        ] {
            watcher.look(1, 1, &now(state, 0), 90_000 * MS, &mut names);
        }
        watcher.look(2, 2, &now(State::Callback, 2_000), 1_000 * MS, &mut names);
        assert!(
            watcher.stalls().is_empty(),
            "also if a time is in the future"
        );
    }

    #[test]
    fn the_next_callback_ends_the_one_before() {
        let mut watcher = Watcher::new(100 * MS);
        let mut names = Counting::default();
        watcher.look(1, 1, &now(State::Callback, 1_000), 1_200 * MS, &mut names);
        watcher.look(1, 1, &now(State::Callback, 1_201), 1_210 * MS, &mut names);
        watcher.look(1, 1, &now(State::Callback, 1_201), 1_400 * MS, &mut names);
        let stalls = watcher.stalls();
        assert_eq!(stalls.len(), 2);
        assert_eq!((stalls[0].is_over, stalls[1].is_over), (false, true));
        assert_eq!(stalls[1].took_ns, 201 * MS);
    }

    #[test]
    fn events_have_the_stalls_that_nobody_saw() {
        let mut watcher = Watcher::new(100 * MS);
        let sleep = Event {
            what: What::Sleep,
            ..event(0, 5_000)
        };
        let events = [event(10, 99), event(200, 100), sleep, event(900, 300)];
        watcher.read(1, &events);
        watcher.read(1, &events);
        let stalls = watcher.stalls();
        let took: Vec<u64> = stalls.iter().map(|stall| stall.took_ns / MS).collect();
        assert_eq!(took, [300, 100], "each once, the latest first");
        assert!(
            stalls
                .iter()
                .all(|stall| stall.is_over && stall.doing().is_none())
        );
    }

    #[test]
    fn an_event_corrects_the_stall_that_was_seen() {
        let mut watcher = Watcher::new(100 * MS);
        let mut names = Counting::default();
        watcher.look(1, 1, &now(State::Callback, 1_000), 1_200 * MS, &mut names);
        watcher.read(1, &[event(1_000, 204)]);
        watcher.look(1, 1, &now(State::Asleep, 1_209), 1_210 * MS, &mut names);
        watcher.read(1, &[event(1_000, 204)]);
        let stalls = watcher.stalls();
        assert_eq!((stalls.len(), stalls[0].took_ns), (1, 204 * MS));
        assert_eq!(stalls[0].samples.len(), 1, "the stack is kept");
    }

    #[test]
    fn a_callback_that_ran_the_loop_itself_is_one_stall() {
        let mut watcher = Watcher::new(100 * MS);
        let mut names = Counting::default();
        watcher.look(1, 1, &now(State::Callback, 1_500), 1_700 * MS, &mut names);
        watcher.read(1, &[event(1_000, 800)]);
        let stalls = watcher.stalls();
        assert_eq!(stalls.len(), 1);
        assert_eq!(
            (stalls[0].began_ns, stalls[0].took_ns),
            (1_000 * MS, 800 * MS)
        );
    }

    #[test]
    fn only_the_last_stalls_are_kept() {
        let mut watcher = Watcher::new(100 * MS);
        let events: Vec<Event> = (0..300).map(|at| event(at * 1_000, 200)).collect();
        watcher.read(1, &events);
        let stalls = watcher.stalls();
        assert_eq!(stalls.len(), KEPT);
        assert_eq!(stalls[0].began_ns, 299_000 * MS);
    }

    #[test]
    fn a_stack_belongs_to_its_stall_though_that_has_ended_meanwhile() {
        let mut watcher = Watcher::new(100 * MS);
        let wanted = watcher.see(1, &now(State::Callback, 1_000), 1_200 * MS);
        assert_eq!(wanted, Some(1_000 * MS));
        assert_eq!(
            watcher.see(1, &now(State::Callback, 1_000), 1_210 * MS),
            None
        );
        watcher.read(1, &[event(1_000, 250)]);
        watcher.see(1, &now(State::Callback, 1_260), 1_270 * MS);
        let stack = Counting::default().sample(1).expect("it counts");
        watcher.add(1, 1_000 * MS, stack.clone());
        watcher.add(2, 1_000 * MS, stack.clone());
        watcher.add(1, 5_000 * MS, stack);
        let stalls = watcher.stalls();
        assert_eq!((stalls.len(), stalls[0].samples.len()), (1, 1));
    }

    #[test]
    fn a_loop_that_is_gone_stalls_no_more() {
        let mut watcher = Watcher::new(100 * MS);
        let mut names = Counting::default();
        watcher.look(1, 1, &now(State::Callback, 1_000), 1_200 * MS, &mut names);
        watcher.retain(&[2]);
        let stalls = watcher.stalls();
        assert!(stalls[0].is_over);
        assert_eq!(stalls[0].took_ns, 200 * MS);
    }
}
