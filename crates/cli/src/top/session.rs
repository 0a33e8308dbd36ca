//! The process that is watched: reads its record again and again, and keeps what the view shows of it.

use crate::answers::{Answer, Facts, answers};
use crate::descriptor::Descriptors;
use crate::names::{Doing, Names};
use crate::pool_work::PoolWork;
use crate::sample::name_of;
use crate::span::{Cost, Span, title};
use crate::stalls::{Stall, Watcher};
use crate::wakes::Wakeups;
use crate::words::{program, without_directory};
use anyhow::Result;
use blacklight_record::What;
use blacklight_record::layout::PHASES;
use blacklight_record::read::{Handle, Reader, Snapshot, callback_kind, now_ns};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;

/// How many snapshots are kept at most: they are compared over one interval.
const SNAPSHOTS: usize = 64;
/// The width of a name. The view may shorten it further.
const NAME: usize = 80;

/// The longest callback of each loop and address, among the events of one reading.
type Longest = HashMap<(u32, u64), u64>;

/// A process that is watched.
pub(super) struct Session {
    reader: Reader,
    names: Box<dyn Names>,
    watcher: Watcher,
    interval_ns: u64,
    snapshots: VecDeque<Snapshot>,
    longest: VecDeque<(u64, Longest)>,
    /// The number of the next event of each loop.
    next: HashMap<u32, u64>,
    handles: HashMap<u32, Vec<Handle>>,
    /// How many handles of each kind there were when the view began.
    first: Option<BTreeMap<&'static str, u64>>,
    command: String,
    descriptors: Descriptors,
    work: PoolWork,
    wakeups: HashMap<u32, Wakeups>,
}

/// All that is shown.
#[derive(Clone, Debug, Default)]
pub(super) struct View {
    /// Which process it is.
    pub(super) title: String,
    /// The numbers and titles of all loops.
    pub(super) loops: Vec<(u32, String)>,
    /// What happened lately, in the loops that are shown.
    pub(super) span: Span,
    /// The answers.
    pub(super) answers: Vec<Answer>,
    /// The callbacks that cost something, with their names.
    pub(super) costs: Vec<(Cost, String)>,
    /// The handles by kind.
    pub(super) handles: Vec<Kind>,
    /// The stalls.
    pub(super) stalls: Vec<Shown>,
}

/// The handles of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Kind {
    /// The kind.
    pub(super) name: &'static str,
    /// How many are started.
    pub(super) active: u64,
    /// How many of those keep a loop alive.
    pub(super) referenced: u64,
    /// How many there are.
    pub(super) total: u64,
    /// How many more there are than when the view began.
    pub(super) growth: i64,
}

/// A stall with names in place of addresses.
#[derive(Clone, Debug)]
pub(super) struct Shown {
    /// The stall.
    pub(super) stall: Stall,
    /// Its callback.
    pub(super) name: String,
    /// The phase and the kind.
    pub(super) what: String,
    /// The frames of its first stack, the innermost first, or nothing.
    pub(super) stack: Vec<String>,
}

impl Shown {
    /// What the thread did, if it was seen.
    pub(super) fn doing(&self) -> String {
        self.stall.doing().map(Doing::words).unwrap_or_default()
    }
}

/// How many handles of each kind there are.
fn totals(handles: &HashMap<u32, Vec<Handle>>) -> BTreeMap<&'static str, u64> {
    let mut totals = BTreeMap::new();
    for handle in handles.values().flatten() {
        *totals.entry(handle.kind).or_default() += 1;
    }
    totals
}

impl Session {
    /// Begins to watch.
    pub(super) fn new(
        reader: Reader,
        names: Box<dyn Names>,
        interval: Duration,
        stall: Duration,
    ) -> Session {
        Session {
            command: without_directory(&program(reader.pid())).to_owned(),
            descriptors: Descriptors::of(reader.pid()),
            work: PoolWork::default(),
            reader,
            names,
            watcher: Watcher::new(stall.as_nanos() as u64),
            interval_ns: interval.as_nanos() as u64,
            snapshots: VecDeque::new(),
            longest: VecDeque::new(),
            next: HashMap::new(),
            handles: HashMap::new(),
            first: None,
            wakeups: HashMap::new(),
        }
    }

    /// Whether the process still runs.
    pub(super) fn is_alive(&self) -> bool {
        self.reader.is_alive()
    }

    /// Its command.
    pub(super) fn command(&self) -> &str {
        &self.command
    }

    /// Which process it is: its number and its command.
    pub(super) fn title(&self) -> String {
        format!("{} {}", self.reader.pid(), self.command)
    }

    /// Looks whether a callback runs for too long.
    pub(super) fn watch(&mut self) -> Result<()> {
        for lp in self.snapshots.back().iter().flat_map(|of| &of.loops) {
            let now = self.reader.now(lp)?;
            let names = self.names.as_mut();
            self.watcher.look(lp.id, lp.tid, &now, now_ns(), names);
        }
        Ok(())
    }

    /// Reads the record again.
    pub(super) fn refresh(&mut self) -> Result<()> {
        let mut snapshot = self.reader.snapshot()?;
        for lp in &mut snapshot.loops {
            lp.name = name_of(self.reader.pid(), lp);
        }
        let taken_ns = snapshot.taken_ns;
        let ids: Vec<u32> = snapshot.loops.iter().map(|lp| lp.id).collect();
        self.watcher.retain(&ids);
        self.next.retain(|id, _| ids.contains(id));
        self.wakeups.retain(|id, _| ids.contains(id));
        self.handles.clear();
        let mut longest = Longest::new();
        for lp in &snapshot.loops {
            let next = self.next.entry(lp.id).or_default();
            let read = self.reader.events(lp.ring(), *next)?;
            let is_first = std::mem::replace(next, read.next) == 0;
            self.watcher.read(lp.id, &read.events);
            self.wakeups.entry(lp.id).or_default().read(&read.events);
            // The first reading has events from before the view, which are not of its interval.
            let events = read
                .events
                .iter()
                .filter(|of| !is_first && of.what == What::Callback);
            for event in events {
                let most = longest.entry((lp.id, event.address)).or_default();
                *most = event.took_ns.max(*most);
            }
            self.handles.insert(lp.id, self.reader.handles(lp)?);
        }
        self.first.get_or_insert_with(|| totals(&self.handles));
        self.longest.push_back((taken_ns, longest));
        self.snapshots.push_back(snapshot);
        // One snapshot that is at least an interval old stays, to compare with.
        let old_ns = taken_ns.saturating_sub(self.interval_ns);
        while self.snapshots.len() > SNAPSHOTS
            || self
                .snapshots
                .get(1)
                .is_some_and(|second| second.taken_ns <= old_ns)
        {
            self.snapshots.pop_front();
        }
        self.longest.retain(|(at_ns, _)| *at_ns > old_ns);
        Ok(())
    }

    /// What there is to show, of one loop or of all.
    pub(super) fn view(&mut self, chosen: Option<u32>) -> View {
        let (Some(earlier), Some(later)) = (self.snapshots.front(), self.snapshots.back()) else {
            return View::default();
        };
        let mut span = Span::between(earlier, later);
        let loops = span.loops.iter().map(|lp| (lp.id, title(lp.id, &lp.name)));
        let loops = loops.collect();
        if let Some(id) = chosen {
            span = span.of_loop(id);
        }
        for lp in &mut span.loops {
            let wakeups = self.wakeups.get_mut(&lp.id);
            lp.wakes = wakeups.and_then(|of| of.lately(span.until_ns));
            for cost in &mut lp.costly {
                let known = self
                    .longest
                    .iter()
                    .filter_map(|(_, of)| of.get(&(lp.id, cost.address)));
                cost.longest_ns = known.copied().max().unwrap_or(0).max(cost.longest_ns);
            }
        }
        let is_shown = |id: u32| chosen.is_none_or(|chosen| chosen == id);
        let limit_ns = self.watcher.limit_ns();
        self.work.look(&span, limit_ns, self.names.as_mut());
        let mut stalls = self.watcher.stalls();
        stalls.retain(|stall| is_shown(stall.loop_id));
        let facts = Facts {
            span: &span,
            handles: &self.handles,
            stalls: &stalls,
            work: self.work.name(),
            descriptors: &self.descriptors,
            limit_ns,
        };
        let answers = answers(&facts, self.names.as_mut());
        self.descriptors.forget();
        let handles = self.kinds(is_shown, chosen.is_none());
        let names = self.names.as_mut();
        let costs = span.costs().into_iter();
        let costs = costs
            .map(|cost| (cost, names.brief(cost.address, NAME)))
            .collect();
        let stalls = stalls
            .into_iter()
            .map(|stall| shown(stall, names))
            .collect();
        View {
            title: self.title(),
            loops,
            span,
            answers,
            costs,
            handles,
            stalls,
        }
    }

    /// The handles by kind, the most first.
    fn kinds(&self, is_shown: impl Fn(u32) -> bool, are_all: bool) -> Vec<Kind> {
        let mut kinds: BTreeMap<&'static str, Kind> = BTreeMap::new();
        let first = self.first.iter().flatten().filter(|_| are_all);
        for (name, total) in first {
            kinds.entry(name).or_default().growth = -(*total as i64);
        }
        let shown = self.handles.iter().filter(|(id, _)| is_shown(**id));
        for handle in shown.flat_map(|(_, handles)| handles) {
            let kind = kinds.entry(handle.kind).or_default();
            kind.total += 1;
            kind.growth += 1;
            kind.active += u64::from(handle.is_active);
            kind.referenced += u64::from(handle.is_active && handle.is_referenced);
        }
        let mut kinds: Vec<Kind> = kinds
            .into_iter()
            .map(|(name, kind)| Kind {
                name,
                // How many a single loop had is not kept.
                growth: if are_all { kind.growth } else { 0 },
                ..kind
            })
            .collect();
        kinds.sort_by_key(|kind| std::cmp::Reverse(kind.total));
        kinds
    }
}

/// A stall with names.
fn shown(stall: Stall, names: &mut dyn Names) -> Shown {
    let phase = PHASES.get(stall.phase).copied().unwrap_or("unknown");
    let frames = stall.samples.first().into_iter();
    let stack = frames.flat_map(|of| &of.addresses).take(32);
    Shown {
        name: names.brief(stall.address, NAME),
        what: format!("{} in {phase}", callback_kind(stall.kind)),
        stack: stack.map(|address| names.brief(*address, NAME)).collect(),
        stall,
    }
}
