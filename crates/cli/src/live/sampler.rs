//! The thread that reads records: some ten times a second while somebody looks, and not at all otherwise.

use super::document::{Process, Standing};
use super::hub::{Changes, Export, Hub, Trace};
use super::lookout::Lookout;
use super::reaper::parent;
use super::recording::Writer;
use super::watched::Watched;
use crate::trace::Budget;
use crate::words::{program, tell};
use anyhow::{Result, bail};
use blacklight_record::read::{self, Error, Reader, now_ns};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

/// The least time between two readings.
const INTERVAL: Duration = Duration::from_millis(100);
/// The most time between two readings.
const LONGEST: Duration = Duration::from_secs(1);
/// Readings may take one part of the time of so many.
const SHARE: u32 = 5;
/// How often it is looked whether there is something to do.
const LOOK: Duration = Duration::from_millis(10);
/// How long a process may take from giving up its memory to being gone.
const EXIT: Duration = Duration::from_secs(2);
/// How long a program may take to its first loop until that is told.
const START: Duration = Duration::from_secs(3);
/// How often it is looked which processes there are.
const SCAN: Duration = Duration::from_millis(500);
/// How long to wait at a time for somebody to look.
const IDLE: Duration = Duration::from_secs(3600);
/// The processes that are watched at a time.
const WATCHED: usize = 32;
/// The processes that have ended and are still shown.
const ENDED: usize = 16;

/// A process that there is.
struct Known {
    parent: u32,
    program: String,
    standing: Standing,
    note: String,
    ended_ns: u64,
    watched: Option<Box<Watched>>,
    /// A record that is not yet filled.
    asked: Option<Reader>,
}

/// A program that was started, and the process above all that it starts.
#[derive(Clone, Copy)]
pub(super) struct Started {
    pub(super) pid: u32,
    pub(super) reaper: u32,
}

/// Reads the records.
pub(super) struct Sampler {
    hub: Arc<Hub>,
    /// Tells the server that there is something new.
    tell_server: Arc<dyn Fn() + Send + Sync>,
    stall_ns: u64,
    /// The program, if it was started for this.
    program: Option<Started>,
    /// When that was, until it records.
    started: Option<Instant>,
    /// When it is looked next whether it does.
    look: Instant,
    is_start_told: bool,
    known: BTreeMap<u32, Known>,
    /// The processes of which no document is to be left.
    all_gone: Vec<u32>,
    lookout: Lookout,
    budget: Arc<Budget>,
    /// The thread that makes a trace.
    exporting: Option<JoinHandle<()>>,
    writer: Option<Writer>,
    own: u32,
}

/// The time by the monotonic clock, and by the calendar in milliseconds.
fn now() -> (u64, u64) {
    let wall = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    (now_ns(), wall.map_or(0, |time| time.as_millis() as u64))
}

impl Sampler {
    pub(super) fn new(
        hub: &Arc<Hub>,
        tell_server: Box<dyn Fn() + Send + Sync>,
        stall: Duration,
        program: Option<Started>,
        writer: Option<Writer>,
    ) -> Result<Sampler> {
        Ok(Sampler {
            hub: Arc::clone(hub),
            tell_server: tell_server.into(),
            stall_ns: stall.as_nanos() as u64,
            program,
            started: program.map(|_| Instant::now()),
            look: Instant::now(),
            is_start_told: false,
            known: BTreeMap::new(),
            all_gone: Vec::new(),
            lookout: Lookout::new()?,
            budget: Arc::default(),
            exporting: None,
            writer,
            own: std::process::id(),
        })
    }

    /// Reads until all ends.
    pub(super) fn run(mut self) -> Result<()> {
        let result = self.turns();
        self.save(true);
        if let Some(writer) = self.writer {
            writer.finish()?;
        }
        result
    }

    /// Looks whether the program that was started records. It is an error if it never will.
    fn look_at_start(&mut self) -> Result<()> {
        let (Some(Started { pid, .. }), Some(started)) = (self.program, self.started) else {
            return Ok(());
        };
        let ended = self.hub.lock().ended.clone();
        if Instant::now() < self.look && ended.is_none() {
            return Ok(());
        }
        // A program that has not made a loop soon may never make one.
        self.look = Instant::now() + if self.is_start_told { SCAN } else { LOOK };
        // A program that starts others need not have a loop itself.
        let is_seen = self.known.values().any(|known| known.watched.is_some());
        match Reader::open(pid) {
            Ok(reader) if matches!(reader.is_recording(), Ok(true)) => {
                let snapshot = reader.snapshot()?;
                if snapshot.loops.is_empty() && snapshot.refused > 0 {
                    bail!(Error::Refused(pid));
                }
                self.started = None;
            }
            Err(error @ Error::OtherVersion { .. }) => bail!(error),
            _ if is_seen => self.started = None,
            // It has not come so far yet.
            Ok(_) | Err(_) => {}
        }
        match ended {
            Some(status) if self.started.is_some() => {
                bail!("the program has ended before it made a loop ({status})")
            }
            None if started.elapsed() >= START && self.started.is_some() && !self.is_start_told => {
                self.is_start_told = true;
                tell("the program has not made a loop yet; waiting for one");
            }
            _ => {}
        }
        Ok(())
    }

    fn turns(&mut self) -> Result<()> {
        let (mut scanned, mut due) = (None::<Instant>, Instant::now());
        loop {
            self.look_at_start()?;
            let shared = self.hub.lock();
            if shared.end.is_some() {
                return Ok(());
            }
            let is_watched = shared.is_watched();
            if !is_watched && shared.exports.is_empty() {
                match self.started {
                    Some(_) => {
                        drop(shared);
                        self.hub.rest(LOOK);
                    }
                    None => {
                        self.lookout.rest(true);
                        self.hub.wait_for_work(shared, IDLE);
                        self.lookout.rest(false);
                    }
                }
                continue;
            }
            let roots = shared.roots();
            drop(shared);
            self.answer_export();
            let scan = match self.started {
                Some(_) => INTERVAL,
                None => SCAN,
            };
            if scanned.is_none_or(|at| at.elapsed() >= scan) {
                scanned = Some(Instant::now());
                self.scan(&roots);
            }
            let begun = Instant::now();
            if begun >= due {
                self.read();
                // A hundred loops take their time; most of it is for others.
                due = begun + (begun.elapsed() * SHARE).clamp(INTERVAL, LONGEST);
            }
            self.hub.rest(LOOK);
        }
    }

    /// Looks which processes there are, and which of them are to be watched.
    fn scan(&mut self, roots: &BTreeSet<u32>) {
        let pids: BTreeSet<u32> = read::list()
            .into_iter()
            .filter(|pid| *pid != self.own)
            .collect();
        self.meet(&pids);
        let ended = self.hub.lock().ended.clone();
        if let Some(Started { pid, .. }) = self.program.filter(|of| roots.contains(&of.pid)) {
            self.known
                .entry(pid)
                .or_insert_with(|| Known::of_program(pid, ended.as_deref()));
        }
        let trees = self.trees(roots, &pids);
        let wanted: BTreeSet<u32> = trees.values().flatten().copied().collect();
        self.review(&wanted, &pids);
        self.admit(&wanted, &pids);
        // A program that has no loop yet has no record.
        let starts = self.program.filter(|_| ended.is_none());
        let is_starting = |pid: u32, known: &Known| {
            known.watched.is_none() && starts.is_some_and(|program| program.pid == pid)
        };
        let gone: Vec<u32> = self
            .known
            .iter()
            .filter(|(pid, known)| !pids.contains(pid) && !is_starting(**pid, known))
            .map(|(pid, _)| *pid)
            .collect();
        for pid in gone {
            self.end(pid);
        }
        self.forget();
        self.hub.lock().trees.extend(trees);
    }

    /// Gets to know processes with a record.
    fn meet(&mut self, pids: &BTreeSet<u32>) {
        for &pid in pids {
            let is_new = self
                .known
                .get(&pid)
                .is_none_or(|known| known.standing == Standing::Ended);
            if is_new {
                self.all_gone.push(pid);
                self.known.insert(pid, Known::of(pid));
            }
        }
    }

    /// Looks again at all processes that are known.
    fn review(&mut self, wanted: &BTreeSet<u32>, pids: &BTreeSet<u32>) {
        for (pid, known) in &mut self.known {
            let is_wanted = wanted.contains(pid);
            // Those that nobody looks at now may be looked at again soon, as after a page was hidden.
            if known.standing == Standing::Watched && !is_wanted && !self.hub.lock().is_wanted(*pid)
            {
                known.give_up();
                self.all_gone.push(*pid);
            }
            if known.standing == Standing::Watched && pids.contains(pid) {
                // Programs give themselves titles.
                known.program = program(*pid);
            }
            if pids.contains(pid) {
                known.try_again();
            }
            if known.standing == Standing::Known && pids.contains(pid) {
                // It is said anew if it is still so.
                known.note.clear();
            }
        }
    }

    /// Begins to watch what is wanted, as far as there is room.
    fn admit(&mut self, wanted: &BTreeSet<u32>, pids: &BTreeSet<u32>) {
        let watched = self.known.values().filter(|of| of.watched.is_some());
        let mut room = WATCHED.saturating_sub(watched.count());
        for pid in wanted.intersection(pids) {
            let Some(known) = self.known.get_mut(pid) else {
                continue;
            };
            if room == 0 && known.watched.is_none() {
                known.wait();
            } else if known.ask(*pid)
                && let Some(reader) = known.asked.take()
            {
                known.watch(Watched::new(
                    reader,
                    self.stall_ns,
                    &self.lookout,
                    &self.budget,
                ));
                room -= 1;
            }
        }
    }

    /// The processes that belong to each root. What has belonged to it and has ended stays.
    fn trees(&self, roots: &BTreeSet<u32>, pids: &BTreeSet<u32>) -> HashMap<u32, BTreeSet<u32>> {
        let mut parents: HashMap<u32, u32> = HashMap::new();
        let mut ancestors = |mut pid: u32| {
            let mut found = vec![pid];
            // A number that is given out anew in between could make a circle.
            while pid > 1 && found.len() < 64 {
                let mut next = *parents
                    .entry(pid)
                    .or_insert_with(|| parent(pid).unwrap_or(0));
                // What has lost its parents is the program's all the same.
                if let Some(program) = self.program
                    && program.reaper == next
                    && program.pid != pid
                {
                    next = program.pid;
                }
                found.push(next);
                pid = next;
            }
            found
        };
        let shared = self.hub.lock();
        let mut trees: HashMap<u32, BTreeSet<u32>> = HashMap::new();
        for &root in roots {
            let old = shared.trees.get(&root).into_iter().flatten().copied();
            let mut tree: BTreeSet<u32> = old.filter(|pid| self.known.contains_key(pid)).collect();
            tree.insert(root);
            trees.insert(root, tree);
        }
        drop(shared);
        for &pid in pids {
            for ancestor in ancestors(pid) {
                if let Some(tree) = trees.get_mut(&ancestor) {
                    tree.insert(pid);
                }
            }
        }
        trees
    }

    /// A process has ended.
    fn end(&mut self, pid: u32) {
        let Some(known) = self.known.get(&pid) else {
            return;
        };
        if known.standing == Standing::Ended {
            return;
        }
        if known.watched.is_none() && !self.hub.lock().is_wanted(pid) {
            self.known.remove(&pid);
            self.all_gone.push(pid);
            return;
        }
        let status = match self.program {
            Some(program) if program.pid == pid => self.how_it_ended(),
            _ => None,
        };
        if let Some(known) = self.known.get_mut(&pid) {
            known.standing = Standing::Ended;
            known.ended_ns = now_ns();
            known.note = status.unwrap_or_else(|| "it has ended".into());
        }
    }

    /// How the program ended whose memory is gone: it may still be on its way out. `None` if it has become another program.
    fn how_it_ended(&self) -> Option<String> {
        let begun = Instant::now();
        loop {
            let shared = self.hub.lock();
            if shared.ended.is_some() || shared.end.is_some() || begun.elapsed() >= EXIT {
                return shared.ended.clone();
            }
            drop(shared);
            self.hub.rest(LOOK);
        }
    }

    /// Gives up what nobody looks at any more of processes that have ended, and the oldest of too many.
    fn forget(&mut self) {
        let shared = self.hub.lock();
        let ended = self
            .known
            .iter()
            .filter(|(_, known)| known.standing == Standing::Ended);
        let mut ended: Vec<(u64, u32)> = ended.map(|(pid, known)| (known.ended_ns, *pid)).collect();
        ended.sort_unstable();
        let too_many = ended.len().saturating_sub(ENDED);
        let old = ended.iter().enumerate();
        let old = old.filter(|(at, (_, pid))| *at < too_many || !shared.is_wanted(*pid));
        let old: Vec<u32> = old.map(|(_, (_, pid))| *pid).collect();
        drop(shared);
        for pid in old {
            self.known.remove(&pid);
            self.all_gone.push(pid);
        }
    }

    /// Reads all records that are watched, and publishes what they say.
    fn read(&mut self) {
        let mut changes = Changes {
            all_gone: std::mem::take(&mut self.all_gone),
            ..Changes::default()
        };
        for known in self.known.values_mut() {
            let Some(watched) = &mut known.watched else {
                continue;
            };
            // What was read last of a process that has ended stays; the next scan says how it ended.
            if known.standing == Standing::Watched
                && let Err(error) = watched.read(&mut changes)
                && watched.is_alive()
            {
                known.standing = Standing::Unreadable;
                known.note = error.to_string();
            }
        }
        for (pid, known) in &self.known {
            changes.set(format!("{pid}/process"), &known.document(*pid));
        }
        self.hub.lock().publish(now(), changes);
        self.save(false);
        (self.tell_server)();
    }

    /// Writes what has changed into the recording, if there is one and it is time for it, or its end.
    fn save(&mut self, is_end: bool) {
        let has_begun = self.known.values().any(|known| known.watched.is_some());
        // A recording begins with the first answers.
        let is_wanted =
            |of: &&mut Writer| (of.told.has_begun || has_begun) && (is_end || of.is_due(now_ns()));
        let Some(writer) = self.writer.as_mut().filter(is_wanted) else {
            return;
        };
        let shared = self.hub.lock();
        // What belongs to the program is recorded, and nothing of others.
        let tree = shared.constant.and_then(|root| shared.trees.get(&root));
        let frame = tree.and_then(|tree| shared.store.frame(&mut writer.told, Some(tree)));
        drop(shared);
        writer.write(frame);
    }

    /// Has the next trace made, one at a time.
    fn answer_export(&mut self) {
        if self.exporting.as_ref().is_some_and(|of| !of.is_finished()) {
            return;
        }
        let Some(export) = self.hub.lock().exports.pop_front() else {
            return;
        };
        let Export {
            pid,
            from_ns,
            to_ns,
            answer,
        } = export;
        let known = self.known.get_mut(&pid);
        let watched = known.and_then(|of| Some((of.watched.as_mut()?, &of.program)));
        let export = match watched {
            None => Err(format!("process {pid} is not watched")),
            Some((watched, program)) => watched
                .export(program, (from_ns, to_ns))
                .ok_or_else(|| "the events of this range are not kept any more".to_owned()),
        };
        let tell_server = Arc::clone(&self.tell_server);
        let answer = move |made| {
            *answer.lock().unwrap_or_else(PoisonError::into_inner) = Some(made);
            tell_server();
        };
        let export = match export {
            Ok(export) => export,
            Err(error) => return answer(Err(error)),
        };
        let make = move || {
            let range = export.range;
            let bytes = export.trace().map_err(|error| error.to_string());
            answer(bytes.map(|bytes| Trace { bytes, range }));
        };
        let thread = std::thread::Builder::new().name("trace".into());
        // Who asks learns that it has failed when the answer is dropped.
        self.exporting = thread.spawn(make).ok();
        if self.exporting.is_none() {
            (self.tell_server)();
        }
    }
}

impl Known {
    fn of(pid: u32) -> Known {
        Known {
            parent: parent(pid).unwrap_or(0),
            program: program(pid),
            standing: Standing::Known,
            note: String::new(),
            ended_ns: 0,
            watched: None,
            asked: None,
        }
    }

    /// The program that was started, which has no record.
    fn of_program(pid: u32, ended: Option<&str>) -> Known {
        let mut known = Known::of(pid);
        known.note = "it has not made a loop yet".into();
        if let Some(ended) = ended {
            (known.standing, known.note) = (Standing::Ended, ended.into());
            known.ended_ns = now_ns();
        }
        known
    }

    /// Too many are watched already.
    fn wait(&mut self) {
        if self.standing == Standing::Known {
            self.note = format!("it is not watched, since {WATCHED} others are");
        }
    }

    /// Asks the process to record where that is needed. Returns whether it has begun.
    fn ask(&mut self, pid: u32) -> bool {
        match self.standing {
            Standing::Known => self.want(pid),
            Standing::Asked => {}
            Standing::Watched | Standing::Ended | Standing::Unreadable => return false,
        }
        let asked = self.asked.as_ref();
        asked.is_some_and(|of| matches!(of.is_recording(), Ok(true)))
    }

    /// A record may be looked at while it is made, and a process that was asked may have become another program.
    fn try_again(&mut self) {
        match self.standing {
            Standing::Unreadable if self.watched.is_some() => self.standing = Standing::Watched,
            Standing::Unreadable | Standing::Asked => self.standing = Standing::Known,
            Standing::Known | Standing::Watched | Standing::Ended => {}
        }
    }

    fn watch(&mut self, watched: Watched) {
        self.watched = Some(Box::new(watched));
        self.standing = Standing::Watched;
        self.note.clear();
    }

    /// Asks the process to record.
    fn want(&mut self, pid: u32) {
        let asked = Reader::open(pid).and_then(|reader| {
            let is_awake = match reader.is_recording()? {
                true => true,
                false => {
                    reader.want()?;
                    reader.wake()?
                }
            };
            Ok((reader, is_awake))
        });
        match asked {
            Ok((reader, is_awake)) => {
                self.asked = Some(reader);
                self.standing = Standing::Asked;
                self.note = match is_awake {
                    true => "it was asked to record, and begins at its loop's next turn".into(),
                    false => "it was asked to record; the system forbids waking its loop: watch as root, or start it by `blacklight live -- PROGRAM`".into(),
                };
            }
            Err(error) => {
                self.standing = Standing::Unreadable;
                self.note = error.to_string();
            }
        }
    }

    /// Nobody looks at it any more.
    fn give_up(&mut self) {
        self.watched = None;
        self.standing = Standing::Known;
    }

    fn document(&self, pid: u32) -> Process {
        Process {
            pid,
            parent: self.parent,
            program: self.program.clone(),
            state: self.standing,
            note: self.note.clone(),
            ended: self.ended_ns,
            lost: self.watched.as_ref().map_or(0, |of| of.lost),
            refused: self.watched.as_ref().map_or(0, |of| of.refused),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_not_be_read_is_tried_again() {
        // No system gives out such a number.
        let nobody = 4_194_304;
        let mut known = Known::of(nobody);
        assert!(!known.ask(nobody));
        assert_eq!(known.standing, Standing::Unreadable);
        assert_eq!(known.note, "there is no process 4194304");
        known.try_again();
        assert_eq!(known.standing, Standing::Known);
        known.standing = Standing::Ended;
        known.try_again();
        assert_eq!(known.standing, Standing::Ended);
    }

    #[test]
    fn who_must_wait_is_told_why() {
        let own = std::process::id();
        let mut known = Known::of(own);
        known.wait();
        let said = known.document(own);
        assert_eq!(said.note, "it is not watched, since 32 others are");
        assert_eq!(said.state, Standing::Known);
        known.standing = Standing::Ended;
        known.note.clear();
        known.wait();
        assert_eq!(known.note, "", "it waits for nothing");
    }
}
