//! Stalls as a profile for the Firefox Profiler: a track for each loop that stalled, a marker for each stall, and its stacks as samples.

use super::collect::{Round, Source};
use super::stacks::{INTERVAL, Sample, Stacks};
use crate::names::Doing;
use crate::symbols::Language;
use crate::words::{count, duration};
use blacklight_record::What;
use blacklight_record::layout::PHASES;
use blacklight_record::read::callback_kind;
use fxprof_processed_profile::{
    CategoryColor, CategoryHandle, CpuDelta, Frame, FrameFlags, FrameInfo, MarkerFieldFlags,
    MarkerFieldFormat, MarkerTiming, Profile, ReferenceTimestamp, SamplingInterval, StackHandle,
    StaticSchemaMarker, StaticSchemaMarkerField, StringHandle, ThreadHandle, Timestamp,
};
use std::collections::HashMap;
use std::ops::Range;
use std::time::{Duration, SystemTime};

/// The stalls that are kept.
const LIMIT: usize = 100_000;

/// A callback that took too long.
#[derive(Clone, Debug)]
pub(super) struct Stall {
    /// The loop.
    pub(super) source: Source,
    /// When the callback began.
    pub(super) began_ns: u64,
    /// When it ended, or was last seen.
    pub(super) ended_ns: u64,
    /// Its phase.
    pub(super) phase: usize,
    /// Its kind.
    pub(super) kind: usize,
    /// The code that was called back; 0 if that is not known.
    pub(super) address: u64,
}

impl Stall {
    /// The places of its stacks among those of its loop.
    fn range(&self, stacks: &Stacks) -> Range<usize> {
        let own = stacks.of(&self.source);
        let begin = own.partition_point(|sample| sample.at_ns < self.began_ns);
        let end = own.partition_point(|sample| sample.at_ns <= self.ended_ns);
        begin..end.max(begin)
    }

    /// Its stacks.
    fn samples<'a>(&self, stacks: &'a Stacks) -> &'a [Sample] {
        &stacks.of(&self.source)[self.range(stacks)]
    }

    /// What the thread did in most of the stacks.
    fn doing<'a>(&self, stacks: &'a Stacks) -> Option<&'a Doing> {
        let mut times: Vec<(&Doing, usize)> = Vec::new();
        for sample in self.samples(stacks) {
            match times.iter_mut().find(|(doing, _)| **doing == sample.doing) {
                Some((_, times)) => *times += 1,
                None => times.push((&sample.doing, 1)),
            }
        }
        let most = times.into_iter().max_by_key(|(_, times)| *times);
        most.map(|(doing, _)| doing)
    }
}

/// Adds the callbacks of a round that took this long.
pub(super) fn find_long(round: &Round, limit: Duration, found: &mut Vec<Stall>) {
    let limit_ns = limit.as_nanos() as u64;
    for part in &round.parts {
        let long = part
            .events
            .iter()
            .filter(|event| event.what == What::Callback && event.took_ns >= limit_ns);
        let room = LIMIT - found.len();
        found.extend(long.take(room).map(|event| Stall {
            source: (*part.source).clone(),
            began_ns: event.at_ns,
            ended_ns: event.at_ns.saturating_add(event.took_ns),
            phase: event.phase,
            kind: event.kind,
            address: event.address,
        }));
    }
}

/// The stalls of a trace: the callbacks that took too long, and those that had not returned at its end.
pub(super) fn stalls(mut found: Vec<Stall>, stacks: &Stacks) -> Vec<Stall> {
    let mut running: Vec<Stall> = Vec::new();
    for (source, samples) in &stacks.loops {
        let mut is_known = vec![false; samples.len()];
        for stall in found.iter().filter(|stall| stall.source.is_same(source)) {
            is_known[stall.range(stacks)].fill(true);
        }
        for (sample, _) in samples.iter().zip(is_known).filter(|(_, known)| !known) {
            let is_its =
                |of: &&mut Stall| of.source.is_same(source) && of.began_ns == sample.now.since_ns;
            match running.last_mut().filter(is_its) {
                Some(stall) => stall.ended_ns = sample.at_ns,
                None => running.push(Stall {
                    source: source.clone(),
                    began_ns: sample.now.since_ns,
                    ended_ns: sample.at_ns,
                    phase: sample.now.phase,
                    kind: sample.now.kind,
                    address: sample.now.callback,
                }),
            }
        }
    }
    found.append(&mut running);
    found.sort_by_key(|stall| stall.began_ns);
    found
}

/// What a profile has, in words.
pub(super) fn said(stalls: &[Stall], stacks: &Stacks, limit: Duration) -> String {
    let (time, limit) = (duration, duration(limit.as_nanos() as u64));
    let stacks_said = count(stacks.count as u64, "stack");
    let missing = match &stacks.failure {
        Some(failure) => format!("; some stacks could not be had: {failure}"),
        None => String::new(),
    };
    match stalls.len() {
        0 => format!("no stall: no callback took {limit}{missing}"),
        number => {
            let stalls = count(number as u64, "stall");
            let held = match stacks.held.as_nanos() as u64 {
                0 => String::new(),
                held => format!(
                    ", for the longest of which its thread was held for {}",
                    time(held)
                ),
            };
            format!("{stalls} of {limit} or more, and {stacks_said}{held}{missing}")
        }
    }
}

/// What the marker of a stall says.
struct Marker {
    name: StringHandle,
    category: CategoryHandle,
    /// What the thread did, the callback, its phase and its kind.
    fields: [StringHandle; 4],
}

impl StaticSchemaMarker for Marker {
    const UNIQUE_MARKER_TYPE_NAME: &'static str = "Stall";
    const DESCRIPTION: Option<&'static str> =
        Some("A callback that kept its loop from everything else for too long.");
    const CHART_LABEL: Option<&'static str> = Some("{marker.data.doing}");
    const TOOLTIP_LABEL: Option<&'static str> = Some("{marker.name}: {marker.data.doing}");
    const TABLE_LABEL: Option<&'static str> = Some("{marker.data.doing} in {marker.data.callback}");
    const FIELDS: &'static [StaticSchemaMarkerField] = &[
        field("doing", "The thread was"),
        field("callback", "Callback"),
        field("phase", "Phase"),
        field("kind", "Kind"),
    ];

    fn name(&self, _: &mut Profile) -> StringHandle {
        self.name
    }

    fn category(&self, _: &mut Profile) -> CategoryHandle {
        self.category
    }

    fn string_field_value(&self, field: u32) -> StringHandle {
        self.fields[field as usize]
    }

    fn number_field_value(&self, _: u32) -> f64 {
        unreachable!("all fields are strings")
    }
}

const fn field(key: &'static str, label: &'static str) -> StaticSchemaMarkerField {
    StaticSchemaMarkerField {
        key,
        label,
        format: MarkerFieldFormat::String,
        flags: MarkerFieldFlags::SEARCHABLE,
    }
}

/// Colours, by what a thread does.
struct Categories {
    script: CategoryHandle,
    native: CategoryHandle,
    waiting: CategoryHandle,
}

/// A profile that is being made.
struct Maker<'a> {
    profile: Profile,
    categories: Categories,
    began_ns: u64,
    stacks: &'a Stacks,
}

/// Makes a profile, which began at a time by both clocks; `names` are those of callbacks.
pub(super) fn make(
    (pid, title): (u32, &str),
    (begun, began_ns): (SystemTime, u64),
    stalls: &[Stall],
    stacks: &Stacks,
    names: &HashMap<u64, String>,
) -> Profile {
    let interval = SamplingInterval::from_nanos(INTERVAL.as_nanos() as u64);
    // A callback may have begun before the trace.
    let earliest = stalls.iter().map(|stall| stall.began_ns).min();
    let origin_ns = began_ns.min(earliest.unwrap_or(began_ns));
    let origin = begun
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
        .saturating_sub(Duration::from_nanos(began_ns - origin_ns));
    let origin = ReferenceTimestamp::from_duration_since_unix_epoch(origin);
    let mut profile = Profile::new(title, origin, interval);
    // Names are all that is known: there is nothing to look up.
    profile.set_symbolicated(true);
    let categories = Categories {
        script: profile.add_category("Script", CategoryColor::Yellow),
        native: profile.add_category("Native", CategoryColor::Blue),
        waiting: profile.add_category("Waiting", CategoryColor::Orange),
    };
    let begin = Timestamp::from_nanos_since_reference(0);
    let process = profile.add_process(title, pid, begin);
    let mut maker = Maker {
        profile,
        categories,
        began_ns: origin_ns,
        stacks,
    };
    let mut threads: Vec<(&Source, ThreadHandle)> = Vec::new();
    for stall in stalls {
        if threads
            .iter()
            .all(|(source, _)| !source.is_same(&stall.source))
        {
            let tid = stall.source.tid();
            // The profiler would call a main thread by the process's name.
            let thread = maker.profile.add_thread(process, tid, begin, false);
            maker.profile.set_thread_name(thread, &stall.source.name());
            maker
                .profile
                .set_thread_show_markers_in_timeline(thread, true);
            maker.profile.add_initial_visible_thread(thread);
            maker.add_samples(&stall.source, thread);
            threads.push((&stall.source, thread));
        }
        let thread = threads
            .iter()
            .find(|(source, _)| source.is_same(&stall.source));
        if let Some((_, thread)) = thread {
            maker.add_marker(stall, *thread, names);
        }
    }
    maker.profile
}

impl Maker<'_> {
    fn time(&self, at_ns: u64) -> Timestamp {
        Timestamp::from_nanos_since_reference(at_ns.saturating_sub(self.began_ns))
    }

    /// Adds the stacks of a loop. After the last one of a stall comes one without functions, so that it does not seem to go on.
    fn add_samples(&mut self, source: &Source, thread: ThreadHandle) {
        let stacks = self.stacks;
        let own = stacks.of(source);
        let interval_ns = INTERVAL.as_nanos() as u64;
        for (at, sample) in own.iter().enumerate() {
            let before = at.checked_sub(1).map(|before| own[before].at_ns);
            let since_ns = before.map_or(interval_ns, |before| sample.at_ns - before);
            let worked = match sample.doing {
                Doing::Computing => CpuDelta::from_nanos(since_ns.min(2 * interval_ns)),
                Doing::Waiting { .. } => CpuDelta::ZERO,
            };
            let stack = self.stack(sample, thread);
            let time = self.time(sample.at_ns);
            self.profile.add_sample(thread, time, stack, worked, 1);
            let is_last = own
                .get(at + 1)
                .is_none_or(|next| next.now.since_ns != sample.now.since_ns);
            if is_last {
                let after = self.time(sample.at_ns.saturating_add(interval_ns));
                let after = match own.get(at + 1) {
                    Some(next) => after.min(self.time(next.at_ns)),
                    None => after,
                };
                self.profile
                    .add_sample(thread, after, None, CpuDelta::ZERO, 1);
            }
        }
    }

    /// The functions of a stack, and the system call that the thread waited in.
    fn stack(&mut self, sample: &Sample, thread: ThreadHandle) -> Option<StackHandle> {
        let stacks = self.stacks;
        let profile = &mut self.profile;
        let mut frames = Vec::new();
        for frame in sample.frames.iter().rev().map(|at| &stacks.frames[*at]) {
            let (category, flags) = match frame.language {
                Language::Native => (self.categories.native, FrameFlags::empty()),
                Language::JavaScript => (self.categories.script, FrameFlags::IS_JS),
                Language::Python => (self.categories.script, FrameFlags::empty()),
            };
            frames.push(FrameInfo {
                frame: Frame::Label(profile.intern_string(&frame.name)),
                category_pair: category.into(),
                flags,
            });
        }
        if let Doing::Waiting { call } = &sample.doing {
            frames.push(FrameInfo {
                frame: Frame::Label(profile.intern_string(&format!("{call} (system call)"))),
                category_pair: self.categories.waiting.into(),
                flags: FrameFlags::IS_RELEVANT_FOR_JS,
            });
        }
        profile.intern_stack_frames(thread, frames.into_iter())
    }

    fn add_marker(&mut self, stall: &Stall, thread: ThreadHandle, names: &HashMap<u64, String>) {
        let stacks = self.stacks;
        let doing = stall.doing(stacks);
        let category = match doing {
            Some(Doing::Computing) => self.categories.native,
            Some(Doing::Waiting { .. }) => self.categories.waiting,
            None => CategoryHandle::OTHER,
        };
        let said = doing.map_or_else(|| "not seen".to_owned(), Doing::words);
        let callback = match names.get(&stall.address) {
            Some(name) if stall.address != 0 => name,
            _ => "unknown code",
        };
        let phase = PHASES.get(stall.phase).copied().unwrap_or("unknown");
        let texts = [&*said, callback, phase, callback_kind(stall.kind)];
        let fields = texts.map(|text| self.profile.intern_string(text));
        let name = self.profile.intern_string("stall");
        let timing = MarkerTiming::Interval(self.time(stall.began_ns), self.time(stall.ended_ns));
        let marker = Marker {
            name,
            category,
            fields,
        };
        let marker = self.profile.add_marker(thread, timing, marker);
        // The one that says most: in a function of a script that the thread was in most of the time, where it can be followed.
        let samples = stall.samples(stacks);
        let most = samples.iter().max_by_key(|sample| {
            let is_script = |at: &&usize| stacks.frames[**at].language != Language::Native;
            let script = sample.frames.iter().find(is_script);
            let is_common = script.is_some_and(|script| {
                let common = samples.iter().filter(|of| of.frames.contains(script));
                common.count() * 2 >= samples.len()
            });
            (is_common, script.is_some(), sample.frames.len())
        });
        if let Some(sample) = most {
            let stack = self.stack(sample, thread);
            self.profile.set_marker_stack(thread, marker, stack);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::collect::Part;
    use crate::trace::stacks::Frame;
    use blacklight_record::layout::State;
    use blacklight_record::read::{Event, Now};
    use std::sync::Arc;

    const MS: u64 = 1_000_000;

    fn source(id: u32) -> Source {
        let name = String::new();
        Source::Loop { id, name, tid: 7 }
    }

    fn sample(at_ms: u64, since_ms: u64, call: Option<&str>) -> Sample {
        Sample {
            now: Now {
                state: State::Callback,
                since_ns: since_ms * MS,
                phase: 4,
                kind: 9,
                callback: 5,
                token: 3,
                turn: 1,
                until_ns: 0,
                is_torn: false,
            },
            at_ns: at_ms * MS,
            frames: vec![0],
            doing: match call {
                Some(call) => Doing::Waiting { call: call.into() },
                None => Doing::Computing,
            },
        }
    }

    fn stacks(loops: Vec<(Source, Vec<Sample>)>) -> Stacks {
        let mut stacks = Stacks::default();
        stacks.count = loops.iter().map(|(_, samples)| samples.len()).sum();
        stacks.loops = loops;
        stacks.frames = vec![Frame {
            name: "crunch".into(),
            language: Language::Native,
        }];
        stacks
    }

    fn event(what: What, at_ms: u64, took_ms: u64) -> Event {
        Event {
            what,
            at_ns: at_ms * MS,
            took_ns: took_ms * MS,
            phase: 4,
            kind: 9,
            turn: 1,
            address: 5,
            token: 3,
        }
    }

    /// The stalls among these events of one loop.
    fn found(events: Vec<Event>) -> Vec<Stall> {
        let part = Part {
            track: 0,
            source: Arc::new(source(1)),
            events,
            until_ns: 0,
            lost: 0,
            is_last: false,
        };
        let round = Round {
            at_ns: 0,
            parts: vec![part],
            counters: Vec::new(),
        };
        let mut found = Vec::new();
        find_long(&round, Duration::from_millis(100), &mut found);
        found
    }

    #[test]
    fn only_callbacks_from_the_limit_on_are_stalls() {
        let found = found(vec![
            event(What::Callback, 0, 99),
            event(What::Callback, 100, 100),
            event(What::Sleep, 200, 500),
            event(What::Job, 200, 500),
        ]);
        let times: Vec<u64> = found.iter().map(|stall| stall.began_ns / MS).collect();
        assert_eq!(times, [100]);
    }

    #[test]
    fn a_stall_does_what_most_of_its_stacks_do() {
        let samples = vec![
            sample(50, 0, None),
            sample(110, 100, None),
            sample(120, 100, Some("read")),
            sample(130, 100, Some("read")),
            sample(210, 200, None),
        ];
        // The loop was made by another thread than runs it.
        let own = Source::Loop {
            id: 1,
            name: String::new(),
            tid: 8,
        };
        let stacks = stacks(vec![(source(2), samples.clone()), (own, samples)]);
        let found = found(vec![event(What::Callback, 100, 100)]);
        let read = Doing::Waiting {
            call: "read".into(),
        };
        assert_eq!(found[0].doing(&stacks), Some(&read));
        assert_eq!(found[0].samples(&stacks).len(), 3);
    }

    #[test]
    fn callbacks_that_have_not_returned_are_stalls_too() {
        let samples = vec![
            sample(110, 100, None),
            sample(310, 300, None),
            sample(320, 300, None),
        ];
        let stacks = stacks(vec![(source(1), samples)]);
        let all = stalls(found(vec![event(What::Callback, 100, 100)]), &stacks);
        let times: Vec<(u64, u64)> = all
            .iter()
            .map(|stall| (stall.began_ns / MS, stall.ended_ns / MS))
            .collect();
        assert_eq!(times, [(100, 200), (300, 320)]);
        let said = said(&all, &stacks, Duration::from_millis(100));
        assert_eq!(said, "2 stalls of 100 ms or more, and 3 stacks");
    }

    #[test]
    fn a_callback_that_ran_the_loop_itself_has_the_stacks_from_inside() {
        let stacks = stacks(vec![(source(1), vec![sample(500, 390, None)])]);
        let all = stalls(found(vec![event(What::Callback, 100, 800)]), &stacks);
        assert_eq!((all.len(), all[0].samples(&stacks).len()), (1, 1));
    }

    #[test]
    fn times_that_cannot_be_make_a_profile_all_the_same() {
        let mut odd = event(What::Callback, 0, 0);
        (odd.at_ns, odd.took_ns, odd.phase) = (u64::MAX - 5, u64::MAX, 99);
        let first = event(What::Callback, 0, 100);
        let stacks = stacks(vec![(source(1), vec![sample(u64::MAX / MS - 99, 1, None)])]);
        let all = stalls(found(vec![first, odd]), &stacks);
        let begun = (SystemTime::UNIX_EPOCH, u64::MAX);
        let profile = make((1, "a program"), begun, &all, &stacks, &HashMap::new());
        let text = serde_json::to_string(&profile).expect("it is a profile");
        assert!(
            text.contains("unknown code") && text.contains("crunch"),
            "{text}"
        );
    }
}
