//! One process that is watched: its record, read again and again, as documents.

use super::document;
use super::growth::Growth;
use super::hub::Changes;
use super::lookout::{Lookout, Post};
use super::named::{Named, split};
use super::steady::Steady;
use crate::answers::{Facts, answers};
use crate::descriptor::{Descriptor, Descriptors};
use crate::names::{Doing, Names};
use crate::pool_work::PoolWork;
use crate::sample::{name_of, snapshot};
use crate::span::Span;
use crate::stalls::Stall;
use crate::trace::{Budget, Export, History, Read};
use crate::wakes::Wakeups;
use anyhow::Result;
use blacklight_record::What;
use blacklight_record::layout::{BUCKETS, PHASES, REQUEST_KINDS};
use blacklight_record::read::{
    self, Handle, Loop, Pool, Reader, Snapshot, callback_kind, request_kind,
};
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;

/// The time that the answers are about, which is that over which the page takes shares and delays.
const SPAN_NS: u64 = 10_000_000_000;
/// The time between two snapshots that are kept to compare with.
const STEP_NS: u64 = 1_000_000_000;
/// How often answers are given, and handles looked at.
const SLOW_NS: u64 = 500_000_000;
/// How long the words for a descriptor are good.
const WORDS_NS: u64 = 5_000_000_000;
/// The descriptors that are looked at in one go.
const LOOKS: usize = 200;
/// A pool's request that takes this long is told one by one.
const LONG_NS: u64 = 5_000_000;
/// How many of those are told.
const LAST: usize = 24;
/// The stalls that are told.
const STALLS: usize = 50;
/// The frames of a stack that are told.
const FRAMES: usize = 40;
/// The pending requests of a loop that are told.
const REQUESTS_TOLD: usize = 200;
/// The places in which handles are made that are told.
const ORIGINS: usize = 2_000;

/// How long callbacks of one address in one loop took, as far as they were seen.
type Seen = HashMap<(u32, u64), read::Histogram>;

/// What the pool's requests were seen to cost on one thread.
#[derive(Default)]
struct Lane {
    done: u64,
    busy_ns: u64,
    last: VecDeque<(u64, u64, String)>,
}

/// The handles of a loop as they were told last.
#[derive(Default)]
struct Table {
    walked_ns: u64,
    /// The words for descriptors, by the handle's place and token, and when they were found.
    words: HashMap<(u32, u64), (u64, String)>,
}

/// A process that is watched.
pub(super) struct Watched {
    reader: Arc<Reader>,
    names: Named,
    /// Where its stalls are found.
    post: Arc<Post>,
    /// Snapshots of the span of the answers, a step apart, and the last.
    snapshots: VecDeque<Arc<Snapshot>>,
    last: Option<Arc<Snapshot>>,
    /// What loops are called, by their numbers.
    called: HashMap<u32, String>,
    /// The numbers of the next events, by ring.
    next: HashMap<read::RingId, u64>,
    tables: HashMap<u32, Table>,
    /// The handles of each loop.
    handles: HashMap<u32, Vec<Handle>>,
    seen: Seen,
    lanes: HashMap<(u32, u32), Lane>,
    origins: HashMap<Vec<u64>, u32>,
    growth: Growth,
    descriptors: Descriptors,
    work: PoolWork,
    /// What ended the sleeps of each loop.
    wakeups: HashMap<u32, Wakeups>,
    pub(super) history: History,
    pub(super) lost: u64,
    pub(super) refused: u32,
    slow_ns: u64,
    steady: Steady,
    /// How stalls were when they were told: how long they took, their stacks, whether one was refused, and whether they were over.
    stalls: HashMap<String, (u64, usize, bool, bool)>,
    /// The keys of the documents that are told at each reading, and of those that are told seldom.
    keys: HashSet<String>,
    slow_keys: HashSet<String>,
}

impl Watched {
    /// Begins to watch a process that records. A callback that takes `stall_ns` is a stall.
    pub(super) fn new(
        reader: Reader,
        stall_ns: u64,
        lookout: &Lookout,
        budget: &Arc<Budget>,
    ) -> Watched {
        let reader = Arc::new(reader);
        Watched {
            names: Named::of(reader.pid()),
            descriptors: Descriptors::of(reader.pid()),
            post: lookout.post(&reader, stall_ns),
            reader,
            snapshots: VecDeque::new(),
            last: None,
            called: HashMap::new(),
            next: HashMap::new(),
            tables: HashMap::new(),
            handles: HashMap::new(),
            seen: Seen::new(),
            lanes: HashMap::new(),
            origins: HashMap::new(),
            growth: Growth::default(),
            work: PoolWork::default(),
            wakeups: HashMap::new(),
            history: History::new(budget),
            lost: 0,
            refused: 0,
            slow_ns: 0,
            steady: Steady::default(),
            stalls: HashMap::new(),
            keys: HashSet::new(),
            slow_keys: HashSet::new(),
        }
    }

    pub(super) fn is_alive(&self) -> bool {
        self.reader.is_alive()
    }

    /// What a trace of the recent past is made of. `None` if nothing is kept of it.
    pub(super) fn export(&mut self, program: &str, range: (u64, u64)) -> Option<Export> {
        let names = &mut self.names;
        let process = (self.reader.pid(), program);
        self.history
            .export(process, range, &mut |address| names.name(address))
    }

    /// Reads the record and tells what has changed.
    pub(super) fn read(&mut self, changes: &mut Changes) -> Result<()> {
        let mut snapshot = snapshot(&self.reader)?;
        let taken_ns = snapshot.taken_ns;
        let pid = self.reader.pid();
        let is_slow = taken_ns.saturating_sub(self.slow_ns) >= SLOW_NS;
        self.call(&mut snapshot, is_slow);
        let snapshot = Arc::new(snapshot);
        self.post.tell(Arc::clone(&snapshot));
        self.read_events(&snapshot)?;
        let mut told = Told {
            pid,
            changes,
            keys: HashSet::with_capacity(self.keys.len()),
        };
        for lp in &snapshot.loops {
            self.tell_loop(lp, &mut told);
        }
        self.tell_pool(&snapshot.pool, &mut told);
        self.tell_requests(&snapshot, &mut told);
        self.refused = snapshot.refused;
        self.keep_snapshot(snapshot);
        self.tell_stalls(&mut told);
        let keys = std::mem::take(&mut told.keys);
        let gone = self.keys.difference(&keys);
        told.changes.gone.extend(gone.cloned());
        self.keys = keys;
        if is_slow {
            self.slow_ns = taken_ns;
            self.tell_handles(taken_ns, &mut told)?;
            self.tell_answers(&mut told);
            let gone = self.slow_keys.difference(&told.keys);
            told.changes.gone.extend(gone.cloned());
            self.slow_keys = told.keys;
        }
        Ok(())
    }

    /// Gives loops without a name that of their thread, which is looked up now and then.
    fn call(&mut self, snapshot: &mut Snapshot, is_slow: bool) {
        let pid = self.reader.pid();
        if is_slow {
            self.called.clear();
        }
        for lp in &mut snapshot.loops {
            let called = self.called.entry(lp.id);
            lp.name = called.or_insert_with(|| name_of(pid, lp)).clone();
        }
    }

    /// Keeps a snapshot to compare with later ones. One that is at least as old as the span stays.
    fn keep_snapshot(&mut self, snapshot: Arc<Snapshot>) {
        let taken_ns = snapshot.taken_ns;
        let last_ns = self.snapshots.back().map_or(0, |of| of.taken_ns);
        if taken_ns.saturating_sub(last_ns) >= STEP_NS {
            self.snapshots.push_back(Arc::clone(&snapshot));
        }
        self.last = Some(snapshot);
        let old_ns = taken_ns.saturating_sub(SPAN_NS);
        while self
            .snapshots
            .get(1)
            .is_some_and(|second| second.taken_ns <= old_ns)
        {
            self.snapshots.pop_front();
        }
    }

    /// Reads what the rings have that is new.
    fn read_events(&mut self, snapshot: &Snapshot) -> Result<()> {
        let ids: Vec<u32> = snapshot.loops.iter().map(|lp| lp.id).collect();
        self.post.watcher().retain(&ids);
        self.tables.retain(|id, _| ids.contains(id));
        self.handles.retain(|id, _| ids.contains(id));
        self.wakeups.retain(|id, _| ids.contains(id));
        let mut reads = Vec::new();
        // The pool comes first, as in a trace of a program: what it has run was submitted before.
        let threads = snapshot.pool.members.iter().map(|thread| Read {
            loop_id: None,
            place: thread.place,
            name: String::new(),
            tid: thread.tid,
            events: Vec::new(),
            lost: 0,
            until_ns: u64::MAX,
        });
        let rings = snapshot.pool.members.iter().map(|thread| thread.ring);
        let loops = snapshot.loops.iter().map(|lp| Read {
            loop_id: Some(lp.id),
            place: 0,
            name: lp.name.clone(),
            tid: lp.tid,
            events: Vec::new(),
            lost: 0,
            until_ns: lp.now.since_ns,
        });
        let loop_rings = snapshot.loops.iter().map(Loop::ring);
        for (mut read, ring) in threads.zip(rings).chain(loops.zip(loop_rings)) {
            let from = self.next.get(&ring).copied();
            let new = self.reader.events(ring, from.unwrap_or(0))?;
            self.next.insert(ring, new.next);
            // What was overwritten before anybody looked is not missing.
            read.lost = if from.is_some() { new.lost } else { 0 };
            self.lost = self.lost.saturating_add(read.lost);
            read.events = new.events;
            match read.loop_id {
                Some(id) => self.see_callbacks(id, &read, from.is_some()),
                None => self.see_jobs(&read),
            }
            reads.push(read);
        }
        let costly = snapshot.loops.iter();
        let costly = costly.flat_map(|lp| lp.costly.iter().map(|cost| (lp.id, cost.address)));
        let costly: HashSet<(u32, u64)> = costly.collect();
        if self.seen.len() > 4 * costly.len() + 1024 {
            self.seen.retain(|key, _| costly.contains(key));
        }
        self.history.add(snapshot, reads);
        Ok(())
    }

    fn see_callbacks(&mut self, id: u32, read: &Read, is_known: bool) {
        self.post.watcher().read(id, &read.events);
        self.wakeups.entry(id).or_default().read(&read.events);
        let callbacks = read.events.iter().filter(|of| of.what == What::Callback);
        for event in callbacks.filter(|_| is_known) {
            let histogram = self.seen.entry((id, event.address)).or_default();
            let bucket = (64 - event.took_ns.leading_zeros() as usize).min(BUCKETS - 1);
            histogram.buckets[bucket] += 1;
            histogram.sum_ns = histogram.sum_ns.saturating_add(event.took_ns);
            histogram.longest_ns = histogram.longest_ns.max(event.took_ns);
        }
    }

    fn see_jobs(&mut self, read: &Read) {
        let lane = self.lanes.entry((read.place, read.tid)).or_default();
        for event in read.events.iter().filter(|of| of.what == What::Job) {
            lane.done += 1;
            lane.busy_ns = lane.busy_ns.saturating_add(event.took_ns);
            if event.took_ns >= LONG_NS {
                let work = self.work.of(read.tid, event.at_ns);
                let name = work.unwrap_or_else(|| request_kind(event.kind));
                lane.last
                    .push_back((event.at_ns, event.took_ns, name.to_owned()));
            }
        }
        while lane.last.len() > LAST {
            lane.last.pop_front();
        }
    }

    fn tell_loop(&mut self, lp: &Loop, told: &mut Told<'_>) {
        let document = document::Loop {
            id: lp.id,
            name: lp.name.clone(),
            poller: lp.poller.clone(),
            tid: lp.tid,
            made: lp.made_ns,
        };
        told.tell(format!("loop/{}", lp.id), &document);
        let now = &lp.now;
        let is_callback = now.state == blacklight_record::layout::State::Callback;
        let document = document::Turn {
            state: now.state.name().into(),
            since: now.since_ns,
            phase: if is_callback {
                phase(now.phase)
            } else {
                String::new()
            },
            kind: if is_callback {
                callback_kind(now.kind).into()
            } else {
                String::new()
            },
            callback: match now.callback {
                callback if is_callback && callback != 0 => self.names.name(callback),
                _ => String::new(),
            },
            turns: lp.turns,
            callbacks: lp.callbacks,
            requests: lp.requests,
            unlisted: lp.pending.len().saturating_sub(REQUESTS_TOLD) as u32,
            active: lp.active,
            lost: lp.handles_lost,
            time: lp.time_ns,
            delay: histogram(&lp.delay),
            late: histogram(&lp.late),
            phases: std::array::from_fn(|at| (lp.by_phase[at].count(), lp.by_phase[at].sum_ns)),
        };
        told.tell(format!("turn/{}", lp.id), &document);
        for cost in &lp.costly {
            let (name, place) = split(&self.names.name(cost.address));
            let seen = self.seen.get(&(lp.id, cost.address));
            let document = document::Cost {
                name,
                place,
                kind: callback_kind(cost.kind).into(),
                count: cost.count,
                total: cost.total_ns,
                longest: cost.longest_ns,
                seen: seen.map(histogram).unwrap_or_default(),
            };
            told.tell(format!("cost/{}/{:x}", lp.id, cost.address), &document);
        }
        self.tell_other_costs(lp, told);
    }

    /// Tells by kind what callbacks have cost that are not among the costliest, or whose code has no address, as Rust's closures.
    fn tell_other_costs(&self, lp: &Loop, told: &mut Told<'_>) {
        for (kind, all) in lp.by_kind.iter().enumerate() {
            let known = lp.costly.iter().filter(|of| of.kind == kind);
            let (count, total) = known.fold((0_u64, 0_u64), |(count, total), of| {
                (
                    count.saturating_add(of.count),
                    total.saturating_add(of.total_ns),
                )
            });
            let left = all.count().saturating_sub(count);
            if left == 0 {
                continue;
            }
            let are_all = count == 0;
            let document = document::Cost {
                name: String::new(),
                place: String::new(),
                kind: callback_kind(kind).into(),
                count: left,
                total: all.sum_ns.saturating_sub(total),
                longest: if are_all { all.longest_ns } else { 0 },
                seen: if are_all {
                    histogram(all)
                } else {
                    document::Histogram::default()
                },
            };
            // No code has so low an address.
            told.tell(format!("cost/{}/{kind:x}", lp.id), &document);
        }
    }

    fn tell_pool(&mut self, pool: &Pool, told: &mut Told<'_>) {
        let mut wait = read::Histogram::default();
        pool.wait.iter().for_each(|of| wait.add(of));
        let document = document::Pool {
            threads: pool.threads,
            slow: pool.slow_limit,
            kinds: REQUEST_KINDS.map(str::to_owned),
            queued: pool.queued,
            running: pool.running,
            completed: pool.completed,
            oldest: pool
                .oldest
                .map(|(at, kind)| (at, request_kind(kind).to_owned())),
            wait: histogram(&wait),
        };
        told.tell("pool".into(), &document);
        let members: HashSet<(u32, u32)> =
            pool.members.iter().map(|of| (of.place, of.tid)).collect();
        self.lanes.retain(|key, _| members.contains(key));
        for thread in &pool.members {
            let none = Lane::default();
            let lane = self.lanes.get(&(thread.place, thread.tid)).unwrap_or(&none);
            let work = self.work.of(thread.tid, thread.since_ns);
            let document = document::Thread {
                tid: thread.tid,
                running: thread
                    .running
                    .map_or(String::new(), |kind| request_kind(kind).into()),
                work: work
                    .filter(|_| thread.running.is_some())
                    .unwrap_or_default()
                    .to_owned(),
                since: thread.since_ns,
                done: lane.done,
                busy: lane.busy_ns,
                last: lane.last.iter().cloned().collect(),
            };
            told.tell(format!("thread/{}", thread.place), &document);
        }
    }

    fn tell_requests(&mut self, snapshot: &Snapshot, told: &mut Told<'_>) {
        for lp in &snapshot.loops {
            for request in lp.pending.iter().take(REQUESTS_TOLD) {
                let mut members = snapshot.pool.members.iter();
                let thread = members.find(|of| of.running.is_some() && of.token == request.token);
                let document = document::Request {
                    kind: request_kind(request.kind).into(),
                    made: request.queued_ns,
                    thread: thread.map_or(0, |thread| thread.tid),
                };
                told.tell(format!("request/{}/{:x}", lp.id, request.token), &document);
            }
        }
    }

    fn tell_stalls(&mut self, told: &mut Told<'_>) {
        let post = Arc::clone(&self.post);
        let mut known = HashMap::new();
        let mut changed = Vec::new();
        for stall in post.watcher().latest().take(STALLS) {
            let key = format!("stall/{}/{}", stall.loop_id, stall.began_ns);
            let (stacks, is_refused) = (stall.samples.len(), stall.refusal.is_some());
            let is = (stall.took_ns, stacks, is_refused, stall.is_over);
            if self.stalls.get(&key) == Some(&is) {
                // There may be many, and their names take long.
                told.keep(&key);
            } else {
                changed.push((key.clone(), stall.clone()));
            }
            known.insert(key, is);
        }
        // Nobody waits for the stalls while they are given names.
        for (key, stall) in changed {
            let document = self.stall(stall);
            told.tell(key, &document);
        }
        self.stalls = known;
    }

    fn stall(&mut self, stall: Stall) -> document::Stall {
        let names = &mut self.names;
        let stacks = stall.samples.iter().map(|sample| {
            let frames = sample.addresses.iter().take(FRAMES);
            let frames = frames.map(|of| (names.name(*of), names.is_script(*of)));
            document::Stack {
                doing: sample.doing.words(),
                frames: frames.collect(),
            }
        });
        document::Stall {
            stacks: stacks.collect(),
            id: stall.loop_id,
            phase: phase(stall.phase),
            kind: callback_kind(stall.kind).into(),
            name: self.names.name(stall.address),
            began: stall.began_ns,
            took: stall.took_ns,
            over: stall.is_over,
            doing: stall.doing().map(Doing::words).unwrap_or_default(),
            refusal: stall.refusal.unwrap_or_default(),
        }
    }

    fn tell_handles(&mut self, now_ns: u64, told: &mut Told<'_>) -> Result<()> {
        let last = self.last.clone();
        let mut looks = 0;
        let mut numbers = BTreeMap::new();
        let descriptors = Descriptors::of(self.reader.pid());
        for lp in last.iter().flat_map(|of| &of.loops) {
            let mut table = self.tables.remove(&lp.id).unwrap_or_default();
            let is_changed = table.walked_ns != lp.walked_ns || !lp.is_walked;
            let known = self.handles.remove(&lp.id).unwrap_or_default();
            let (old, handles) = match is_changed {
                true => (known, self.reader.handles(lp)?),
                false => (Vec::new(), known),
            };
            let mut old = old.iter().peekable();
            let mut words = HashMap::with_capacity(table.words.len());
            for handle in &handles {
                while old.next_if(|of| of.index < handle.index).is_some() {}
                let is_same = !is_changed || old.peek().is_some_and(|of| *of == handle);
                let known = table.words.remove(&(handle.index, handle.token));
                let is_good = known
                    .as_ref()
                    .is_some_and(|(at, _)| now_ns.saturating_sub(*at) < WORDS_NS);
                let (at, what) = match known {
                    Some(known) if is_good || looks >= LOOKS => known,
                    None if looks >= LOOKS => (0, String::new()),
                    known => {
                        looks += usize::from(handle.number.is_some());
                        let what = what(handle, &descriptors);
                        // The word stays while it says the same.
                        match known {
                            Some((_, old)) if old == what => (now_ns, old),
                            _ => (now_ns, what),
                        }
                    }
                };
                let origin = self.origin(&handle.stack, told);
                let maker = (!handle.stack.is_empty())
                    .then(|| self.names.maker(&handle.stack))
                    .flatten();
                *numbers.entry((handle.kind, maker)).or_default() += 1;
                let key = format!("handle/{}/{}", lp.id, handle.index);
                if is_same && is_good {
                    told.keep(&key);
                } else {
                    let document = self.handle(handle, what.clone(), origin);
                    told.tell(key, &document);
                }
                words.insert((handle.index, handle.token), (at, what));
            }
            let walked_ns = lp.walked_ns;
            self.tables.insert(lp.id, Table { walked_ns, words });
            self.handles.insert(lp.id, handles);
        }
        self.growth.take(now_ns, numbers);
        let is_told = |number: &u32| told.keys.contains(&told.key(&format!("origin/{number}")));
        if self.origins.len() > ORIGINS {
            self.origins.retain(|_, number| is_told(number));
        }
        Ok(())
    }

    /// The number of a stack by which handles are made; zero for none.
    fn origin(&mut self, stack: &[u64], told: &mut Told<'_>) -> u32 {
        if stack.is_empty() {
            return 0;
        }
        let number = match self.origins.get(stack) {
            Some(number) => *number,
            None => {
                let number = self.origins.values().max().map_or(1, |last| last + 1);
                self.origins.insert(stack.to_vec(), number);
                number
            }
        };
        let key = format!("origin/{number}");
        if told.keys.contains(&told.key(&key)) {
            return number;
        }
        let frames = stack
            .iter()
            .take(FRAMES)
            .map(|of| self.names.name(*of))
            .collect();
        let document = document::Origin {
            maker: self.names.maker(stack).unwrap_or_default(),
            stack: frames,
        };
        told.tell(key, &document);
        number
    }

    fn handle(&mut self, handle: &Handle, what: String, origin: u32) -> document::Handle {
        let state = match handle {
            Handle {
                is_closing: true, ..
            } => "closing",
            Handle {
                is_listening: true, ..
            } => "listening",
            Handle {
                is_connecting: true,
                ..
            } => "connecting",
            Handle {
                is_shutting_down: true,
                ..
            } => "shutting down",
            Handle {
                is_active: false, ..
            } => "not started",
            Handle {
                is_referenced: false,
                ..
            } => "unreferenced",
            _ => "active",
        };
        document::Handle {
            kind: handle.kind.into(),
            state: state.into(),
            keeps: handle.is_closing || (handle.is_active && handle.is_referenced),
            made: handle.made_ns,
            callback: match handle.callback {
                0 => String::new(),
                callback => self.names.name(callback),
            },
            due: handle.due_ns,
            repeat: handle.repeat_ns,
            what,
            writes: handle.writes,
            queued: handle.queued_bytes,
            origin,
        }
    }

    fn tell_answers(&mut self, told: &mut Told<'_>) {
        let (Some(earlier), Some(later)) = (self.snapshots.front(), &self.last) else {
            return;
        };
        let mut span = Span::between(earlier, later);
        for lp in &mut span.loops {
            let wakeups = self.wakeups.get_mut(&lp.id);
            lp.wakes = wakeups.and_then(|of| of.lately(span.until_ns));
        }
        let limit_ns = self.post.watcher().limit_ns();
        self.work.look(&span, limit_ns, &mut self.names);
        let stalls = self.post.watcher().stalls();
        let facts = Facts {
            span: &span,
            handles: &self.handles,
            stalls: &stalls,
            work: self.work.name(),
            descriptors: &self.descriptors,
            limit_ns,
        };
        let answers = answers(&facts, &mut self.names).into_iter();
        let until_ns = span.until_ns;
        let answers = answers.map(|answer| self.steady.answer(answer, until_ns));
        let answers = answers.map(|answer| document::Answer {
            word: answer.question.word().into(),
            question: answer.question.words().into(),
            verdict: answer.verdict.word().into(),
            sentence: answer.sentence,
            evidence: answer.evidence,
        });
        let mut answers: Vec<document::Answer> = answers.collect();
        answers.push(self.growth.answer());
        self.descriptors.forget();
        told.tell("answers".into(), &answers);
    }
}

/// Documents on their way to the store.
struct Told<'a> {
    pid: u32,
    changes: &'a mut Changes,
    keys: HashSet<String>,
}

impl Told<'_> {
    fn key(&self, key: &str) -> String {
        format!("{}/{key}", self.pid)
    }

    /// Tells a document.
    fn tell(&mut self, key: String, document: &impl serde::Serialize) {
        let key = self.key(&key);
        self.changes.set(key.clone(), document);
        self.keys.insert(key);
    }

    /// Says that a document is as it was.
    fn keep(&mut self, key: &str) {
        self.keys.insert(self.key(key));
    }
}

fn phase(phase: usize) -> String {
    PHASES.get(phase).copied().unwrap_or("unknown").into()
}

fn histogram(of: &read::Histogram) -> document::Histogram {
    let buckets = of.buckets.iter().enumerate();
    let buckets = buckets.filter(|(_, count)| **count > 0);
    document::Histogram {
        b: buckets.map(|(at, count)| (at as u8, *count)).collect(),
        sum: of.sum_ns,
        max: of.longest_ns,
    }
}

/// What a handle is about, in words: its descriptor, path, signal or child.
fn what(handle: &Handle, descriptors: &Descriptors) -> String {
    let text = crate::words::clean(&handle.text);
    match (handle.kind, handle.number) {
        (_, None) => text,
        ("signal", Some(number)) => format!("signal {number}"),
        ("process", Some(pid)) => format!("process {pid}"),
        (_, Some(number)) => match descriptors.get(number) {
            Descriptor::Unknown => format!("fd {number}"),
            descriptor => format!("fd {number}, {descriptor}"),
        },
    }
}
