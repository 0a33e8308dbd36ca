//! Where the sampler's thread and the server's loop meet: the documents as they are, and who looks at them.
//!
//! Each document has the version at which it last changed. A client is a version: what it is owed is whatever has changed since, made
//! when its connection can take it. So a browser that reads slowly or sleeps costs one number, and gets the newest state when it comes back.

use super::past::{Past, Step, write_frame};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The removed documents that are remembered. A client that has missed more gets everything.
const GONE: usize = 20_000;
/// How long a client may leave what it is owed until it counts as asleep.
const PATIENCE: Duration = Duration::from_secs(3);

/// A document as JSON, and the version at which it has changed.
struct Document {
    version: u64,
    text: Arc<str>,
}

/// All documents.
#[derive(Default)]
pub(super) struct Store {
    version: u64,
    at_ns: u64,
    wall_ms: u64,
    documents: BTreeMap<Arc<str>, Document>,
    /// The documents that were removed, and the version at which that was.
    gone: VecDeque<(u64, Arc<str>)>,
    /// Removals up to this version are forgotten.
    forgotten: u64,
    /// What has changed in this version.
    step: Step,
    /// What has changed before, for those who want to see that as well.
    past: Past,
}

/// What a client has been told so far.
#[derive(Clone, Default)]
pub(super) struct Told {
    pub(super) version: u64,
    pub(super) scope: BTreeSet<u32>,
    pub(super) has_begun: bool,
    /// The time from which on the client wants to be told what was before it came, until it knows that.
    pub(super) from_ns: Option<u64>,
    /// The time up to which it knows all.
    pub(super) at_ns: u64,
}

/// The process of a key.
pub(super) fn owner(key: &str) -> Option<u32> {
    key.split('/').next()?.parse().ok()
}

impl Store {
    /// Begins a new version, which is of this time.
    fn turn(&mut self, (at_ns, wall_ms): (u64, u64)) {
        self.version += 1;
        (self.at_ns, self.wall_ms) = (at_ns, wall_ms);
        self.step = Step::new(self.version, (at_ns, wall_ms));
    }

    /// Sets a document.
    fn set(&mut self, key: String, text: String) {
        let version = self.version;
        let known = self.documents.get_key_value(key.as_str());
        let key: Arc<str> = match known {
            Some((_, document)) if *document.text == *text => return,
            Some((key, _)) => Arc::clone(key),
            None => key.into(),
        };
        let text: Arc<str> = text.into();
        self.step.note(Arc::clone(&key), Some(Arc::clone(&text)));
        self.documents.insert(key, Document { version, text });
    }

    /// Removes a document.
    fn remove(&mut self, key: &str) {
        if let Some((key, _)) = self.documents.remove_entry(key) {
            self.step.note(Arc::clone(&key), None);
            self.gone.push_back((self.version, key));
        }
        while self.gone.len() > GONE {
            if let Some((version, _)) = self.gone.pop_front() {
                self.forgotten = version;
            }
        }
    }

    /// Removes all documents of a process.
    fn remove_all(&mut self, pid: u32) {
        let first: Arc<str> = format!("{pid}/").into();
        let keys = self.documents.range(Arc::clone(&first)..);
        let keys = keys.map(|(key, _)| key);
        let keys = keys.take_while(|key| key.starts_with(&*first));
        let keys: Vec<Arc<str>> = keys.cloned().collect();
        keys.iter().for_each(|key| self.remove(key));
    }

    /// What a client is owed that looks at these processes, or at the list of all processes, as JSON; none if it knows all.
    pub(super) fn frame(&self, told: &mut Told, scope: Option<&BTreeSet<u32>>) -> Option<String> {
        if told.has_begun && told.version == self.version {
            return None;
        }
        // Documents of a process that has come into view have not changed for that.
        let is_other = scope.is_some_and(|scope| *scope != told.scope);
        let is_full = !told.has_begun || is_other || told.version < self.forgotten;
        let since = if is_full { 0 } else { told.version };
        let is_seen = |key: &str| match scope {
            Some(scope) => owner(key).is_some_and(|pid| scope.contains(&pid)),
            None => key.ends_with("/process"),
        };
        let set = self.documents.iter();
        let set = set.filter(|(key, document)| document.version > since && is_seen(key));
        let set = set.map(|(key, document)| (&**key, &*document.text));
        let mut gone = BTreeSet::new();
        if !is_full {
            let all = self.gone.iter().rev();
            let all = all.take_while(|(version, _)| *version > since);
            // A document that has come back since is among those that are set.
            let all = all.filter(|(_, key)| is_seen(key) && !self.documents.contains_key(key));
            gone.extend(all.map(|(_, key)| &**key));
        }
        let head = (self.version, self.at_ns, self.wall_ms);
        let text = write_frame(head, is_full, set, gone.into_iter());
        *told = Told {
            version: self.version,
            scope: scope.cloned().unwrap_or_default(),
            has_begun: true,
            from_ns: None,
            at_ns: self.at_ns,
        };
        Some(text)
    }
}

/// A client that is connected.
struct Client {
    root: Option<u32>,
    /// Whether it waits for something new.
    is_waiting: bool,
    /// When it has last taken something.
    taken: Instant,
}

impl Client {
    fn is_awake(&self) -> bool {
        self.is_waiting || self.taken.elapsed() < PATIENCE
    }
}

/// A trace that somebody has asked for.
pub(super) struct Export {
    pub(super) pid: u32,
    pub(super) from_ns: u64,
    pub(super) to_ns: u64,
    pub(super) answer: Reply,
}

/// Where an answer to [`Export`] will be.
pub(super) type Reply = Arc<Mutex<Option<Result<Trace, String>>>>;

/// A trace, and the time that it is of: events are not kept for ever.
pub(super) struct Trace {
    pub(super) bytes: Vec<u8>,
    pub(super) range: (u64, u64),
}

/// What both sides share.
#[derive(Default)]
pub(super) struct Shared {
    pub(super) store: Store,
    clients: HashMap<u64, Client>,
    next: u64,
    /// A process that is watched though no client asks for it.
    pub(super) constant: Option<u32>,
    /// The processes that belong to each root: itself and its descendants.
    pub(super) trees: HashMap<u32, BTreeSet<u32>>,
    pub(super) exports: VecDeque<Export>,
    /// How the program has ended that was started for this.
    pub(super) ended: Option<String>,
    /// Why all ends, if it does.
    pub(super) end: Option<String>,
}

/// The meeting place.
#[derive(Default)]
pub(super) struct Hub {
    shared: Mutex<Shared>,
    /// Told when the sampler has something to do.
    work: Condvar,
}

impl Hub {
    pub(super) fn lock(&self) -> MutexGuard<'_, Shared> {
        // What a thread that panics leaves behind is whole: each change is one call.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the sampler that there is something to do.
    pub(super) fn wake_sampler(&self) {
        self.work.notify_all();
    }

    /// Waits until somebody looks, the program ends, or all ends.
    pub(super) fn wait_for_work(&self, shared: MutexGuard<'_, Shared>, limit: Duration) {
        let has_ended = shared.ended.is_some();
        let is_idle = |shared: &mut Shared| {
            let is_quiet = shared.exports.is_empty() && shared.ended.is_some() == has_ended;
            is_quiet && shared.end.is_none() && !shared.is_watched()
        };
        drop(self.work.wait_timeout_while(shared, limit, is_idle));
    }

    /// Waits for some time, or until all ends.
    pub(super) fn rest(&self, time: Duration) {
        let goes_on = |shared: &mut Shared| shared.end.is_none();
        drop(self.work.wait_timeout_while(self.lock(), time, goes_on));
    }
}

impl Shared {
    /// A client comes.
    pub(super) fn join(&mut self, root: Option<u32>) -> u64 {
        self.next += 1;
        let client = Client {
            root,
            is_waiting: true,
            taken: Instant::now(),
        };
        self.clients.insert(self.next, client);
        self.next
    }

    /// A client leaves.
    pub(super) fn leave(&mut self, id: u64) {
        self.clients.remove(&id);
    }

    /// What a client is owed, if there is something.
    pub(super) fn take(&mut self, id: u64, told: &mut Told) -> Option<String> {
        let client = self.clients.get_mut(&id)?;
        let scope = client.root.and_then(|root| self.trees.get(&root));
        let is_known = scope.is_some() || client.root.is_none();
        let frame = match self.store.version {
            // Nothing was read yet.
            0 => None,
            // The next scan tells which processes belong to it.
            _ if !is_known => None,
            _ => {
                let past = scope.and_then(|scope| self.store.past.frame(told, scope));
                past.or_else(|| self.store.frame(told, scope))
            }
        };
        client.is_waiting = frame.is_none();
        client.taken = Instant::now();
        frame
    }

    /// Whether anybody looks.
    pub(super) fn is_watched(&self) -> bool {
        self.constant.is_some() || self.clients.values().any(Client::is_awake)
    }

    /// The processes that are looked at.
    pub(super) fn roots(&self) -> BTreeSet<u32> {
        let clients = self.clients.values().filter(|client| client.is_awake());
        let roots = clients.filter_map(|client| client.root);
        roots.chain(self.constant).collect()
    }

    /// Whether any client is connected that looks at this process or one that it belongs to, awake or not.
    pub(super) fn is_wanted(&self, pid: u32) -> bool {
        let roots = self.clients.values().filter_map(|client| client.root);
        let mut roots = roots.chain(self.constant);
        roots.any(|root| root == pid || self.trees.get(&root).is_some_and(|of| of.contains(&pid)))
    }

    /// Brings the documents to a new version: those that are there, and those that are not any more.
    pub(super) fn publish(&mut self, at: (u64, u64), changes: Changes) {
        self.store.turn(at);
        for pid in changes.all_gone {
            self.store.remove_all(pid);
        }
        for key in &changes.gone {
            self.store.remove(key);
        }
        for (key, text) in changes.set {
            self.store.set(key, text);
        }
        let step = std::mem::take(&mut self.store.step);
        self.store.past.keep(step);
    }
}

/// What has changed since the last version.
#[derive(Default)]
pub(super) struct Changes {
    pub(super) set: Vec<(String, String)>,
    pub(super) gone: Vec<String>,
    /// The processes of which nothing is left.
    pub(super) all_gone: Vec<u32>,
}

impl Changes {
    /// Sets a document.
    pub(super) fn set(&mut self, key: String, document: &impl serde::Serialize) {
        // The documents have no maps with keys that are not text, which is all that can fail.
        if let Ok(text) = serde_json::to_string(document) {
            self.set.push((key, text));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn publish(shared: &mut Shared, set: &[(&str, &str)], gone: &[&str]) {
        let set = set
            .iter()
            .map(|(key, text)| (key.to_string(), text.to_string()));
        let gone = gone.iter().map(|key| key.to_string()).collect();
        let version = shared.store.version + 1;
        let changes = Changes {
            set: set.collect(),
            gone,
            all_gone: Vec::new(),
        };
        shared.publish((version * 10, 0), changes);
    }

    #[test]
    fn a_client_gets_everything_and_then_what_has_changed() {
        let mut shared = Shared::default();
        let mut told = Told::default();
        let id = shared.join(Some(7));
        assert_eq!(shared.take(id, &mut told), None);
        shared.trees.insert(7, BTreeSet::from([7]));
        let all = [
            ("7/pool", "1"),
            ("7/process", "2"),
            ("8/pool", "3"),
            ("8/process", "4"),
        ];
        publish(&mut shared, &all, &[]);
        let whole = "{\"v\":1,\"at\":10,\"wall\":0,\"full\":true,\"set\":{\"7/pool\":1,\"7/process\":2},\"del\":[]}";
        assert_eq!(shared.take(id, &mut told).as_deref(), Some(whole));
        assert_eq!(shared.take(id, &mut told), None);
        publish(&mut shared, &[("7/pool", "1"), ("7/process", "5")], &[]);
        publish(
            &mut shared,
            &[("7/process", "6"), ("8/pool", "6")],
            &["7/pool", "8/process"],
        );
        let newest =
            "{\"v\":3,\"at\":30,\"wall\":0,\"set\":{\"7/process\":6},\"del\":[\"7/pool\"]}";
        assert_eq!(shared.take(id, &mut told).as_deref(), Some(newest));
        // Who looks at no process gets the list of all.
        let (id, mut told) = (shared.join(None), Told::default());
        let list = shared.take(id, &mut told).expect("it is owed something");
        assert!(list.contains("{\"7/process\":6}"), "{list}");
    }

    #[test]
    fn a_client_that_has_missed_too_much_gets_everything() {
        let mut shared = Shared::default();
        let mut told = Told::default();
        let id = shared.join(None);
        publish(&mut shared, &[("1/process", "1")], &[]);
        assert!(shared.take(id, &mut told).is_some());
        for number in 0..=GONE {
            let key = format!("{}/process", number + 2);
            publish(&mut shared, &[(&key, "1")], &[]);
            publish(&mut shared, &[], &[&key]);
        }
        assert_eq!(shared.store.gone.len(), GONE);
        let frame = shared.take(id, &mut told).expect("it is owed something");
        assert!(
            frame.contains("\"full\":true") && frame.contains("\"1/process\":1"),
            "{frame}"
        );
    }

    #[test]
    fn a_process_that_comes_into_view_is_told_whole() {
        let mut shared = Shared::default();
        let mut told = Told::default();
        publish(&mut shared, &[("7/pool", "1"), ("8/pool", "2")], &[]);
        shared.trees.insert(7, BTreeSet::from([7]));
        let id = shared.join(Some(7));
        assert!(shared.take(id, &mut told).is_some());
        shared.trees.insert(7, BTreeSet::from([7, 8]));
        publish(&mut shared, &[], &[]);
        let frame = shared.take(id, &mut told).expect("it is owed something");
        assert!(frame.contains("\"8/pool\":2"), "{frame}");
    }

    #[test]
    fn the_past_of_a_process_waits_until_it_is_known_what_belongs_to_it() {
        let mut shared = Shared::default();
        shared.trees.insert(7, BTreeSet::from([7, 8]));
        publish(&mut shared, &[("7/pool", "1"), ("8/pool", "2")], &[]);
        publish(&mut shared, &[("8/pool", "3")], &[]);
        let mut told = Told {
            from_ns: Some(0),
            ..Told::default()
        };
        let id = shared.join(Some(8));
        assert_eq!(shared.take(id, &mut told), None);
        assert!(shared.roots().contains(&8) && told.from_ns.is_some());
        shared.trees.insert(8, BTreeSet::from([8]));
        for state in ["{\"8/pool\":2}", "{\"8/pool\":3}"] {
            let frame = shared.take(id, &mut told).expect("it is owed the past");
            assert!(frame.contains(state) && told.from_ns.is_some(), "{frame}");
        }
        assert_eq!(shared.take(id, &mut told), None);
        assert_eq!(told.from_ns, None, "it knows the past");
    }

    #[test]
    fn who_leaves_or_takes_nothing_is_not_watching() {
        let mut shared = Shared::default();
        let mut told = Told::default();
        let id = shared.join(Some(7));
        assert!(shared.is_watched());
        shared.trees.insert(7, BTreeSet::from([7]));
        publish(&mut shared, &[("7/process", "1")], &[]);
        assert!(shared.take(id, &mut told).is_some());
        let client = shared.clients.get_mut(&id).expect("it is there");
        // What it was given is still on its way.
        client.taken = Instant::now()
            .checked_sub(PATIENCE)
            .expect("the clock is later");
        assert!(!shared.is_watched() && shared.roots().is_empty() && shared.is_wanted(7));
        assert_eq!(shared.take(id, &mut told), None);
        assert!(shared.is_watched());
        shared.leave(id);
        assert!(!shared.is_watched() && !shared.is_wanted(7));
    }
}
