//! A Perfetto trace: packets with the tracks' slices, flows and counters, written as they come.
//!
//! Every track has its own sequence of packets, in which time goes forward and names have numbers.

use super::collect::{Part, Round, Source};
use super::flows::{Flow, Flows};
use super::names::Names;
use super::order::{Lane, Slice, Step};
use super::proto::Message;
use blacklight_record::What;
use blacklight_record::layout::PHASES;
use blacklight_record::read::{callback_kind, request_kind};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{self, Write};

/// The monotonic clock, by its number among Perfetto's clocks.
const MONOTONIC: u64 = 3;
/// The sequence of what belongs to the process: clocks, descriptions and counters.
const COMMON: u64 = 1;
/// What is kept free for the ends of slices when the rest is full.
const RESERVE: u64 = 16 * 1024;

/// Types of events.
const BEGIN: u64 = 1;
const END: u64 = 2;
const INSTANT: u64 = 3;
const COUNTER: u64 = 4;

/// A sequence of packets.
#[derive(Default, Debug)]
struct Sequence {
    has_begun: bool,
    /// The numbers of the names that were used.
    names: HashMap<String, u64>,
}

/// One track.
#[derive(Default, Debug)]
struct Track {
    lane: Lane,
    sequence: Sequence,
    /// Slices that began when there was no more room, and end unseen.
    unseen: u64,
    is_described: bool,
}

/// A trace that is being written.
pub(super) struct Trace<W> {
    out: W,
    pid: u32,
    size: u64,
    limit: u64,
    /// When the trace begins: what began before is cut off there.
    since_ns: u64,
    tracks: BTreeMap<usize, Track>,
    common: Sequence,
    flows: Flows,
    /// The counters' numbers and last values, by name.
    counters: HashMap<String, (u64, u64)>,
    /// The threads that have a track; a second track of a thread is one of the process.
    tids: HashSet<u32>,
    names: Names,
}

impl<W: Write> Trace<W> {
    /// Begins a trace of a process. `clocks` are the numbers of clocks and their times at one moment; what began before `since_ns` is
    /// cut off there; `names` name its code.
    pub(super) fn new(
        out: W,
        (pid, program): (u32, &str),
        (clocks, since_ns): (&[(u64, u64)], u64),
        limit: u64,
        names: Names,
    ) -> io::Result<Trace<W>> {
        let mut trace = Trace {
            out,
            pid,
            size: 0,
            limit,
            since_ns,
            tracks: BTreeMap::new(),
            common: Sequence::default(),
            flows: Flows::default(),
            counters: HashMap::new(),
            tids: HashSet::new(),
            names,
        };
        let mut snapshot = Message::new();
        for (clock, at_ns) in clocks {
            let clock = Message::new().number(1, *clock).number(2, *at_ns);
            snapshot = snapshot.message(1, &clock);
        }
        trace.packet(&Message::new().message(6, &snapshot.number(2, MONOTONIC)))?;
        let process = Message::new().number(1, pid.into()).text(6, program);
        let process = Message::new()
            .number(1, trace.process())
            .message(3, &process);
        trace.packet(&Message::new().message(60, &process))?;
        Ok(trace)
    }

    /// Whether there is no room for more slices.
    pub(super) fn is_full(&self) -> bool {
        self.size + RESERVE >= self.limit
    }

    /// How many bytes there is room for before [`Trace::is_full`].
    pub(super) fn room(&self) -> u64 {
        self.limit.saturating_sub(self.size + RESERVE)
    }

    /// Looks up the names that a round needs.
    pub(super) fn learn_names(&mut self, round: &Round) {
        let events = round.parts.iter().flat_map(|part| &part.events);
        for event in events.filter(|event| event.what == What::Callback && event.address != 0) {
            self.names.name(event.address);
        }
    }

    fn process(&self) -> u64 {
        u64::from(self.pid) << 32 | 1
    }

    fn uuid(&self, track: usize) -> u64 {
        self.process() + 1 + 2 * track as u64
    }

    fn packet(&mut self, packet: &Message) -> io::Result<()> {
        let framed = Message::new().message(1, packet);
        self.size += framed.bytes().len() as u64;
        self.out.write_all(framed.bytes())
    }

    /// Adds what a round has read.
    pub(super) fn take(&mut self, round: &Round) -> io::Result<()> {
        let flows = self.flows_of(round);
        // They come first: where a round fills the trace, they still fit.
        for (name, value) in &round.counters {
            self.count(round.at_ns, name, *value)?;
        }
        for (part, flows) in round.parts.iter().zip(&flows) {
            self.take_part(part, flows, round.at_ns)?;
        }
        self.flows.end_round();
        Ok(())
    }

    /// The flow of each event of a round. Submissions come first, since jobs and callbacks look for them.
    fn flows_of(&mut self, round: &Round) -> Vec<Vec<Option<Flow>>> {
        let none = |part: &Part| vec![None; part.events.len()];
        let mut all: Vec<Vec<Option<Flow>>> = round.parts.iter().map(none).collect();
        for what in [What::Submit, What::Job, What::Callback] {
            for (part, flows) in round.parts.iter().zip(&mut all) {
                for (event, flow) in part.events.iter().zip(flows) {
                    if event.what != what {
                        continue;
                    }
                    *flow = match what {
                        What::Submit => {
                            let (token, at_ns) = (event.token, event.at_ns);
                            Some(self.flows.submitted(token, at_ns, part.track))
                        }
                        What::Job => self.flows.ran(event.token, event.at_ns),
                        _ => self.flows.called_back(event.token, event.at_ns),
                    };
                }
            }
        }
        all
    }

    fn take_part(&mut self, part: &Part, flows: &[Option<Flow>], now_ns: u64) -> io::Result<()> {
        let mut track = self.tracks.remove(&part.track).unwrap_or_else(|| Track {
            lane: Lane::since(self.since_ns),
            ..Track::default()
        });
        if !track.is_described {
            track.is_described = true;
            self.describe(part.track, &part.source)?;
        }
        let mut steps = Vec::new();
        if part.lost > 0 {
            let after = part.events.first().map_or(now_ns, |event| event.at_ns);
            track.lane.lose(part.lost, after, &mut steps);
        }
        let events = part.events.iter().copied().zip(flows.iter().copied());
        track.lane.feed(events, part.until_ns, &mut steps);
        if part.is_last {
            track.lane.finish(now_ns, &[], &mut steps);
        }
        let written = self.steps(part.track, &mut track, &steps);
        self.tracks.insert(part.track, track);
        written
    }

    fn describe(&mut self, track: usize, source: &Source) -> io::Result<()> {
        let name = source.name();
        let mut descriptor = Message::new()
            .number(1, self.uuid(track))
            .number(5, self.process())
            .text(2, &name);
        // Two tracks of one thread would become one, whose slices overlap.
        if self.tids.insert(source.tid()) {
            let thread = Message::new()
                .number(1, self.pid.into())
                .number(2, source.tid().into())
                .text(5, &name);
            descriptor = descriptor.message(4, &thread);
        }
        self.packet(&Message::new().message(60, &descriptor))
    }

    /// Ends the trace at this time. Returns how many bytes it has, and the names of callbacks.
    pub(super) fn finish(mut self, end_ns: u64) -> io::Result<(u64, HashMap<u64, String>)> {
        let mut unfinished: HashMap<usize, Vec<Flow>> = HashMap::new();
        for (track, flow) in std::mem::take(&mut self.flows).unfinished() {
            unfinished.entry(track).or_default().push(flow);
        }
        for (number, mut track) in std::mem::take(&mut self.tracks) {
            let flows = unfinished.remove(&number).unwrap_or_default();
            let mut steps = Vec::new();
            track.lane.finish(end_ns, &flows, &mut steps);
            self.steps(number, &mut track, &steps)?;
        }
        self.out.flush()?;
        Ok((self.size, self.names.into_known()))
    }

    fn steps(&mut self, number: usize, track: &mut Track, steps: &[Step]) -> io::Result<()> {
        for step in steps {
            match step {
                Step::Begin(..) if self.is_full() || track.unseen > 0 => track.unseen += 1,
                Step::Point(..) if self.is_full() => {}
                Step::End(_) if track.unseen > 0 => track.unseen -= 1,
                Step::Begin(at_ns, slice) => {
                    self.slice(number, &mut track.sequence, (*at_ns, BEGIN), slice)?;
                }
                Step::Point(at_ns, slice) => {
                    self.slice(number, &mut track.sequence, (*at_ns, INSTANT), slice)?;
                }
                Step::End(at_ns) => {
                    let event = Message::new().number(9, END).number(11, self.uuid(number));
                    let packet = Message::new().number(8, *at_ns).message(11, &event);
                    self.on_sequence(number as u64 + 2, &mut track.sequence, packet)?;
                }
            }
        }
        Ok(())
    }

    /// Writes the beginning of a slice, or an instant.
    fn slice(
        &mut self,
        number: usize,
        sequence: &mut Sequence,
        (at_ns, kind): (u64, u64),
        slice: &Slice,
    ) -> io::Result<()> {
        let name = self.name_of(slice);
        let mut packet = Message::new().number(8, at_ns);
        let next = sequence.names.len() as u64 + 1;
        let id = *sequence.names.entry(name.clone()).or_insert(next);
        if id == next {
            let entry = Message::new().number(1, id).text(2, &name);
            packet = packet.message(12, &Message::new().message(2, &entry));
        }
        let mut event = Message::new()
            .number(9, kind)
            .number(11, self.uuid(number))
            .number(10, id);
        for note in notes(slice) {
            event = event.message(4, &note);
        }
        let flow = match slice {
            Slice::Event(_, flow) => *flow,
            Slice::Unfinished(flow) => Some(*flow),
            Slice::Run | Slice::Phase { .. } | Slice::Lost(_) => None,
        };
        if let Some(flow) = flow {
            event = event.fixed64(if flow.is_end { 48 } else { 47 }, flow.id);
        }
        self.on_sequence(number as u64 + 2, sequence, packet.message(11, &event))
    }

    fn on_sequence(&mut self, id: u64, sequence: &mut Sequence, packet: Message) -> io::Result<()> {
        // The first packet says that names are numbered from here on, and the others that they need it.
        let flags = if sequence.has_begun { 2 } else { 3 };
        let mut packet = packet.number(10, id).number(13, flags);
        if !sequence.has_begun {
            packet = packet.message(59, &Message::new().number(58, MONOTONIC));
            sequence.has_begun = true;
        }
        self.packet(&packet)
    }

    fn name_of(&mut self, slice: &Slice) -> String {
        match slice {
            Slice::Run => "run".to_owned(),
            Slice::Phase { phase, .. } => (*PHASES.get(*phase).unwrap_or(&"phase")).to_owned(),
            Slice::Lost(lost) => format!("{lost} events lost"),
            Slice::Unfinished(_) => "not finished".to_owned(),
            Slice::Event(event, _) => match event.what {
                What::Callback if event.address != 0 => self.names.name(event.address).to_owned(),
                What::Callback => callback_kind(event.kind).to_owned(),
                What::Sleep => "sleep".to_owned(),
                What::Spin => "spin".to_owned(),
                What::Run => "run".to_owned(),
                What::Submit => format!("submit {}", request_kind(event.kind)),
                What::Job => request_kind(event.kind).to_owned(),
            },
        }
    }

    /// Writes a counter's value, if it has changed.
    fn count(&mut self, at_ns: u64, name: &str, value: u64) -> io::Result<()> {
        if self.is_full() {
            return Ok(());
        }
        let next = self.counters.len() as u64;
        let uuid = self.process() + 2 + 2 * next;
        let uuid = match self.counters.get_mut(name) {
            Some((_, last)) if *last == value => return Ok(()),
            Some((uuid, last)) => {
                *last = value;
                *uuid
            }
            None => {
                self.counters.insert(name.to_owned(), (uuid, value));
                let descriptor = Message::new()
                    .number(1, uuid)
                    .number(5, self.process())
                    .text(2, name)
                    .message(8, &Message::new());
                self.packet(&Message::new().message(60, &descriptor))?;
                uuid
            }
        };
        let event = Message::new()
            .number(9, COUNTER)
            .number(11, uuid)
            .number(30, value);
        let packet = Message::new().number(8, at_ns).message(11, &event);
        let mut common = std::mem::take(&mut self.common);
        let written = self.on_sequence(COMMON, &mut common, packet);
        self.common = common;
        written
    }
}

/// What is noted with a slice: kind, token and turn.
fn notes(slice: &Slice) -> Vec<Message> {
    let turn = |turn: u32| Message::new().text(10, "turn").number(3, turn.into());
    let token = |token: u64| Message::new().text(10, "token").number(7, token);
    match slice {
        Slice::Phase { turn: number, .. } => vec![turn(*number)],
        Slice::Event(event, _) => match event.what {
            What::Callback => {
                let kind = callback_kind(event.kind);
                let kind = Message::new().text(10, "kind").text(6, kind);
                vec![kind, token(event.token), turn(event.turn)]
            }
            What::Submit | What::Job => vec![token(event.token)],
            What::Sleep | What::Spin | What::Run => Vec::new(),
        },
        Slice::Run | Slice::Lost(_) | Slice::Unfinished(_) => Vec::new(),
    }
}
