//! Made-up events in the order of a ring, and what a track makes of them.

use super::*;

fn event(what: What, at_ns: u64, end_ns: u64, turn: u32) -> Event {
    Event {
        what,
        at_ns,
        took_ns: end_ns.saturating_sub(at_ns),
        phase: 0,
        kind: 1,
        turn,
        address: 0,
        token: 0,
    }
}

/// Checks that the steps go forward in time and that each slice ends; returns the deepest nesting.
fn check(steps: &[Step]) -> usize {
    let (mut depth, mut deepest, mut last_ns) = (0_usize, 0, 0);
    for step in steps {
        let at_ns = match step {
            Step::Begin(at_ns, _) => {
                depth += 1;
                deepest = deepest.max(depth);
                *at_ns
            }
            Step::End(at_ns) => {
                depth = depth.checked_sub(1).expect("only what has begun ends");
                *at_ns
            }
            Step::Point(at_ns, _) => *at_ns,
        };
        assert!(at_ns >= last_ns, "time goes back to {at_ns}: {steps:?}");
        last_ns = at_ns;
    }
    assert_eq!(depth, 0, "all slices end: {steps:?}");
    deepest
}

/// The steps of events that are fed in parts of this size.
fn steps(events: &[Event], part: usize) -> Vec<Step> {
    let (mut lane, mut steps) = (Lane::default(), Vec::new());
    for part in events.chunks(part) {
        let fed = part.iter().map(|event| (*event, None));
        lane.feed(fed, u64::MAX, &mut steps);
    }
    lane.finish(0, &[], &mut steps);
    steps
}

/// The slices with their nesting, as text.
fn drawn(steps: &[Step]) -> String {
    let (mut text, mut depth) = (String::new(), 0);
    for step in steps {
        match step {
            Step::Begin(at_ns, slice) => {
                let name = match slice {
                    Slice::Run => "run".to_owned(),
                    Slice::Phase { turn, .. } => format!("phase of {turn}"),
                    Slice::Event(event, _) => format!("{:?}", event.what),
                    other => format!("{other:?}"),
                };
                text += &format!("{}{name} {at_ns}\n", "  ".repeat(depth));
                depth += 1;
            }
            Step::End(_) => depth -= 1,
            Step::Point(at_ns, slice) => {
                let name = match slice {
                    Slice::Event(event, _) => format!("{:?}", event.what),
                    other => format!("{other:?}"),
                };
                text += &format!("{}{name} {at_ns}\n", "  ".repeat(depth));
            }
        }
    }
    text
}

#[test]
fn runs_hold_phases_and_phases_hold_callbacks() {
    let events = [
        event(What::Submit, 15, 15, 1),
        event(What::Callback, 10, 20, 1),
        event(What::Callback, 21, 30, 1),
        event(What::Sleep, 31, 40, 1),
        event(What::Callback, 41, 50, 2),
        event(What::Run, 5, 60, 2),
        event(What::Submit, 70, 70, 2),
    ];
    let whole = steps(&events, 100);
    check(&whole);
    let expected = "run 5\n  phase of 1 10\n    Callback 10\n      Submit 15\n    Callback 21\n  Sleep 31\n  phase of 2 41\n    Callback 41\nSubmit 70\n";
    assert_eq!(drawn(&whole), expected);
}

#[test]
fn a_run_that_ends_later_begins_with_its_first_event() {
    let events = [
        event(What::Callback, 10, 20, 1),
        event(What::Callback, 21, 30, 1),
        event(What::Run, 5, 60, 2),
        event(What::Callback, 71, 80, 3),
    ];
    let parts = steps(&events, 1);
    check(&parts);
    let expected = "run 10\n  phase of 1 10\n    Callback 10\n    Callback 21\nrun 71\n  phase of 3 71\n    Callback 71\n";
    assert_eq!(drawn(&parts), expected);
    assert!(parts.contains(&Step::End(60)), "{parts:?}");
}

#[test]
fn events_wait_until_no_outer_one_can_come() {
    let (mut lane, mut steps) = (Lane::default(), Vec::new());
    let submit = event(What::Submit, 15, 15, 1);
    lane.feed([(submit, None)], 10, &mut steps);
    assert_eq!(steps, []);
    lane.feed([(event(What::Callback, 10, 20, 1), None)], 20, &mut steps);
    lane.finish(30, &[], &mut steps);
    let expected = "run 10\n  phase of 1 10\n    Callback 10\n      Submit 15\n";
    assert_eq!(drawn(&steps), expected);
}

#[test]
fn runs_inside_callbacks_have_phases_of_their_own() {
    let events = [
        event(What::Callback, 12, 14, 2),
        event(What::Run, 11, 18, 2),
        event(What::Callback, 10, 20, 1),
        event(What::Run, 5, 60, 2),
    ];
    let expected = "run 5\n  phase of 1 10\n    Callback 10\n      run 11\n        phase of 2 12\n          Callback 12\n";
    assert_eq!(drawn(&steps(&events, 100)), expected);
}

#[test]
fn a_clock_that_contradicts_is_clipped() {
    // The inner callback ends after the outer one, and the run before both.
    let events = [
        event(What::Callback, 11, 25, 1),
        event(What::Callback, 10, 20, 1),
        event(What::Run, 5, 19, 1),
    ];
    assert_eq!(check(&steps(&events, 100)), 4);
    // All at once.
    let events = [
        event(What::Callback, 10, 10, 1),
        event(What::Callback, 10, 10, 1),
        event(What::Run, 10, 10, 1),
    ];
    let expected = "run 10\n  phase of 1 10\n    Callback 10\n    Callback 10\n";
    let all_at_once = drawn(&steps(&events, 100));
    assert!(
        all_at_once.starts_with("run 10\n  phase of 1 10\n"),
        "{all_at_once}"
    );
    assert_eq!(all_at_once.lines().count(), expected.lines().count());
}

#[test]
fn what_is_open_ends_where_events_are_missing() {
    let (mut lane, mut steps) = (Lane::default(), Vec::new());
    lane.feed([(event(What::Callback, 10, 20, 1), None)], 20, &mut steps);
    lane.lose(9, 60, &mut steps);
    lane.feed([(event(What::Callback, 70, 80, 9), None)], 80, &mut steps);
    lane.finish(90, &[], &mut steps);
    check(&steps);
    assert!(steps.contains(&Step::Point(60, Slice::Lost(9))));
    assert_eq!(drawn(&steps).matches("run").count(), 2);
}

#[test]
fn a_run_inside_of_a_callback_waits_for_its_end() {
    let (mut lane, mut steps) = (Lane::default(), Vec::new());
    let feed = |lane: &mut Lane, events: &[Event], until_ns, steps: &mut Vec<Step>| {
        lane.feed(events.iter().map(|event| (*event, None)), until_ns, steps);
    };
    let sleep = event(What::Sleep, 10, 20, 1);
    feed(&mut lane, &[sleep], 20, &mut steps);
    // The loop is looked at between two runs that a callback makes, and in the second of them.
    let inner = [
        event(What::Callback, 40, 50, 3),
        event(What::Run, 35, 55, 3),
    ];
    feed(&mut lane, &inner, 55, &mut steps);
    assert_eq!(drawn(&steps), "run 10\n  Sleep 10\n");
    feed(
        &mut lane,
        &[event(What::Callback, 65, 70, 4)],
        70,
        &mut steps,
    );
    let ends = [
        event(What::Run, 60, 75, 4),
        event(What::Callback, 30, 80, 2),
    ];
    feed(&mut lane, &ends, 80, &mut steps);
    lane.finish(90, &[], &mut steps);
    check(&steps);
    let expected = "run 10\n  Sleep 10\n  phase of 2 30\n    Callback 30\n      run 35\n        phase of 3 40\n          Callback 40\n      run 60\n        phase of 4 65\n          Callback 65\n";
    assert_eq!(drawn(&steps), expected);
}

#[test]
fn what_began_before_the_trace_is_cut_off() {
    let (mut lane, mut steps) = (Lane::since(100), Vec::new());
    let events = [
        event(What::Callback, 120, 130, 1),
        event(What::Run, 10, 140, 1),
    ];
    lane.feed(events.map(|event| (event, None)), 200, &mut steps);
    lane.feed([(event(What::Sleep, 20, 210, 2), None)], 210, &mut steps);
    lane.finish(300, &[], &mut steps);
    check(&steps);
    let first = "run 100\n  phase of 1 120\n    Callback 120\n";
    assert!(drawn(&steps).starts_with(first), "{}", drawn(&steps));
    // Nothing was known of an event before all, either.
    let (mut lane, mut steps) = (Lane::since(100), Vec::new());
    lane.lose(5, 150, &mut steps);
    assert_eq!(steps, [Step::Point(150, Slice::Lost(5))]);
}

/// A small generator of numbers: xorshift.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

/// Random events that nest, in the order of a ring; the clock is some nanoseconds wrong. Returns the time.
fn nest(random: &mut Random, depth: u64, mut now: u64, events: &mut Vec<Event>) -> u64 {
    for _ in 0..random.below(4) {
        let begin = now + random.below(4);
        let what = match depth % 2 {
            0 => What::Run,
            _ => [What::Callback, What::Sleep, What::Submit, What::Spin][random.below(4) as usize],
        };
        now = match what {
            What::Run | What::Callback if depth < 5 => nest(random, depth + 1, begin, events),
            What::Submit => begin,
            _ => begin + random.below(5),
        };
        let turn = random.below(2) as u32;
        let begin = begin.saturating_sub(random.below(2));
        events.push(event(what, begin, now + random.below(2), turn));
    }
    now
}

#[test]
fn random_nestings_come_out_nested_and_in_order() {
    for seed in 1_u64..2000 {
        let mut random = Random(0x9E37_79B9_7F4A_7C15_u64.wrapping_mul(seed));
        let mut events = Vec::new();
        nest(&mut random, 0, 100, &mut events);
        for part in [1, 2, 7, 1000] {
            let steps = steps(&events, part);
            check(&steps);
            let told = steps.iter().filter(|step| {
                matches!(
                    step,
                    Step::Begin(_, Slice::Event(..)) | Step::Point(_, Slice::Event(..))
                )
            });
            let expected = events.iter().filter(|event| event.what != What::Run);
            assert_eq!(told.count(), expected.count(), "nothing is left out");
        }
    }
}
