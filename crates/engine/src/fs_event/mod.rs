//! File system event handles: what happens to files and directories.
//!
//! A loop has one file watcher, made when it is first needed. A started handle is a
//! *monitor*, which lives until the handle is stopped: records from before a handle was stopped
//! and started again concern the old monitor, and are dropped.
//!
//! Records are read into a buffer in batches and handed out one at a time, each to the
//! monitors that it concerns. The position in the batch (`batch`, `targets`, `reports`) is kept
//! here and refers to everything by key, since callbacks may stop and close anything.
//!
//! `tree.rs` has what recursive monitors need beyond that.
//!
//! When the kernel's queue overflows, records are lost. Every monitor is then told that
//! something has been renamed and changed, without a name, and recursive monitors look for
//! directories that they have missed.

mod tree;

use crate::driver::Owner;
use crate::engine::Engine;
use crate::event::{Event, Token};
use crate::handle::Kind;
use crate::readiness::Interest;
use crate::slab::{Key, NIL, Slab};
use blacklight_sys::file_watch::{Changes, FileWatcher, Folder, MIN_ROOM, Record};
use blacklight_sys::{Errno, RawFd, fallible};
use std::collections::{HashMap, HashSet, VecDeque};
use std::ffi::{CStr, CString};
use tree::{Explore, Node, Watch};

/// Room for a few hundred records.
const BATCH: usize = 32 * 1024;
const _: () = assert!(BATCH >= MIN_ROOM);

/// What has happened to a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Change(u32);

impl Change {
    /// It was created, removed or moved.
    pub const RENAMED: Change = Change(1);
    /// Its content or its attributes are different.
    pub const CHANGED: Change = Change(2);
    /// Nobody knows.
    pub const ANYTHING: Change = Change(3);
    /// It is a directory, and its attributes are different.
    pub const FOLDER_CHANGED: Change = Change(4);

    /// The change as libuv's bits. It tells of a directory's attributes by both.
    pub const fn bits(self) -> u32 {
        match self {
            Change::FOLDER_CHANGED => Change::ANYTHING.0,
            Change(bits) => bits,
        }
    }

    fn of(changes: Changes) -> Change {
        let (changed, renamed) = (changes.is_change(), changes.is_rename());
        match changed && !renamed && changes.is_directory() {
            true => Change::FOLDER_CHANGED,
            false => Change(u32::from(renamed) | u32::from(changed) << 1),
        }
    }
}

/// A started handle.
#[derive(Debug)]
struct Monitor {
    token: Token,
    /// As the program has given it. `None` when the monitor is no more.
    path: Option<CString>,
    /// The root of a tree, for a recursive monitor of a directory.
    folder: Option<Folder>,
    root: u32,
    /// Whether something was not reported for want of memory, which is still to be told.
    has_missed: bool,
}

impl Monitor {
    fn path(&self) -> &CStr {
        self.path.as_deref().unwrap_or_default()
    }
}

/// Something to be told to a monitor that no record says.
#[derive(Debug)]
struct Report {
    monitor: Key,
    name: Option<Vec<u8>>,
    result: Result<Change, Errno>,
}

/// All monitors of a loop.
#[derive(Debug)]
pub(crate) struct FsEvents {
    files: Option<FileWatcher>,
    watcher: u32,
    monitors: Slab<Monitor>,
    monitor_count: u32,
    /// How many monitors have missed something.
    missed_count: u32,
    watches: Slab<Watch>,
    by_wd: HashMap<i32, u32>,
    nodes: Slab<Node>,
    /// Records, of which those before `at` have been dealt with, and `record` is in hand.
    batch: Vec<u8>,
    at: usize,
    record: usize,
    /// The nodes that the record in hand concerns, and which is next.
    targets: Vec<Key>,
    next_target: usize,
    /// To be handed out before anything else.
    reports: VecDeque<Report>,
    /// What listings have shown in watched directories, until the records that say the same
    /// have passed, which is when so many bytes have been read.
    found: HashMap<i32, HashSet<Vec<u8>>>,
    found_until: u64,
    bytes_read: u64,
    /// The name that goes with the event handed out last.
    name: Vec<u8>,
    is_named: bool,
}

impl FsEvents {
    pub(crate) fn new() -> FsEvents {
        FsEvents {
            files: None,
            watcher: NIL,
            monitors: Slab::new(),
            monitor_count: 0,
            missed_count: 0,
            watches: Slab::new(),
            by_wd: HashMap::new(),
            nodes: Slab::new(),
            batch: Vec::new(),
            at: 0,
            record: 0,
            targets: Vec::new(),
            next_target: 0,
            reports: VecDeque::new(),
            found: HashMap::new(),
            found_until: 0,
            bytes_read: 0,
            name: Vec::new(),
            is_named: false,
        }
    }

    fn files(&self) -> &FileWatcher {
        let Some(files) = &self.files else {
            unreachable!("nothing is watched without a file watcher");
        };
        files
    }

    fn start(&mut self, token: Token, path: &CStr, recursive: bool) -> Result<u32, Errno> {
        let folder = match recursive.then(|| Folder::open(path)) {
            Some(Err(Errno::ENOTDIR)) | None => None,
            Some(folder) => Some(folder?),
        };
        self.batch.try_reserve_exact(BATCH)?;
        let monitor = Monitor {
            token,
            path: Some(fallible::c_string(path.to_bytes())?),
            folder,
            root: NIL,
            has_missed: false,
        };
        let monitor = self.monitors.insert(monitor)?.index;
        self.monitor_count += 1;
        self.plant(monitor)
            .map(|()| monitor)
            .inspect_err(|_| self.stop(monitor))
    }

    /// Has the kernel watch what a monitor is for.
    fn watch_path(&self, monitor: u32) -> Result<i32, Errno> {
        let monitor = &self.monitors[monitor];
        match &monitor.folder {
            Some(folder) => self.files().watch_folder(folder),
            None => self.files().watch(monitor.path()),
        }
    }

    /// Makes the root of a new monitor.
    fn plant(&mut self, monitor: u32) -> Result<(), Errno> {
        let wd = self.watch_path(monitor)?;
        let root = self.add_node(wd, monitor, NIL, b"")?;
        self.monitors[monitor].root = root;
        match self.monitors[monitor].folder.is_some() {
            true => self.explore(root, None, Explore::Quietly),
            false => Ok(()),
        }
    }

    fn stop(&mut self, index: u32) {
        let monitor = &mut self.monitors[index];
        monitor.folder = None;
        monitor.path = None;
        self.missed_count -= u32::from(monitor.has_missed);
        let root = std::mem::replace(&mut monitor.root, NIL);
        if root != NIL {
            self.drop_node(root);
        }
        self.monitors.remove(index);
        self.monitor_count -= 1;
        if self.monitor_count == 0 {
            self.forget_batch();
        }
    }

    /// What has been read concerns nobody any more.
    fn forget_batch(&mut self) {
        self.batch.clear();
        self.at = 0;
        self.targets.clear();
        self.next_target = 0;
        self.reports.clear();
        self.found.clear();
    }

    /// The indices of monitors, and perhaps others, for [`FsEvents::monitor_at`].
    fn indices(&self) -> std::ops::Range<u32> {
        0..self.monitors.capacity() as u32
    }

    /// The monitor with this index, if there is one.
    fn monitor_at(&self, index: u32) -> Option<u32> {
        self.monitors.resolve(self.monitors.key(index))
    }

    /// Reads the next batch, if the last has been dealt with.
    fn fill(&mut self) {
        if self.has_leftover() {
            return;
        }
        if self.bytes_read >= self.found_until {
            self.found.clear();
        }
        self.at = 0;
        self.targets.clear();
        self.next_target = 0;
        let Some(files) = &self.files else { return };
        self.batch.resize(BATCH, 0);
        let read = files.read(&mut self.batch).unwrap_or(0);
        self.batch.truncate(read);
        self.bytes_read += read as u64;
    }

    /// Whether something has been read and not been handed out.
    pub(crate) fn has_leftover(&self) -> bool {
        self.at < self.batch.len()
            || self.next_target < self.targets.len()
            || !self.reports.is_empty()
            || self.missed_count > 0
    }

    /// There is no memory to say what happened: `ENOMEM` is said instead, for which none is needed.
    #[cold]
    fn miss(&mut self, monitor: u32) {
        let missed = std::mem::replace(&mut self.monitors[monitor].has_missed, true);
        self.missed_count += u32::from(!missed);
    }

    /// Whom to tell that something was missed.
    #[cold]
    fn next_missed(&mut self) -> Option<Token> {
        let mut monitors = self.indices().filter_map(|index| self.monitor_at(index));
        let monitor = monitors.find(|&monitor| self.monitors[monitor].has_missed)?;
        self.monitors[monitor].has_missed = false;
        self.missed_count -= 1;
        self.is_named = false;
        Some(self.monitors[monitor].token)
    }

    /// The next thing to tell somebody.
    fn next(&mut self) -> Option<(Token, Result<Change, Errno>)> {
        loop {
            if let Some(report) = self.reports.pop_front() {
                let Some(monitor) = self.monitors.resolve(report.monitor) else {
                    continue;
                };
                self.is_named = report.name.is_some();
                if let Some(name) = report.name {
                    self.name = name;
                }
                return Some((self.monitors[monitor].token, report.result));
            }
            if self.missed_count > 0
                && let Some(token) = self.next_missed()
            {
                return Some((token, Err(Errno::ENOMEM)));
            }
            if let Some(&target) = self.targets.get(self.next_target) {
                self.next_target += 1;
                let told = self.nodes.resolve(target).and_then(|node| self.tell(node));
                if told.is_some() {
                    return told;
                }
                continue;
            }
            self.next_record()?;
        }
    }

    /// Takes the next record in hand.
    fn next_record(&mut self) -> Option<()> {
        let Some(record) = Record::first(&self.batch[self.at..]) else {
            self.at = self.batch.len();
            return None;
        };
        let (wd, changes) = (record.wd, record.changes);
        self.record = self.at;
        self.at += record.len;
        self.targets.clear();
        self.next_target = 0;
        if changes.is_overflow() {
            self.overflowed();
        } else if let Some(&watch) = self.by_wd.get(&wd) {
            self.collect_targets(watch);
            if changes.is_end_of_watch() {
                self.watch_ended(watch);
            }
        }
        Some(())
    }

    /// Records are lost.
    #[cold]
    fn overflowed(&mut self) {
        self.found.clear();
        for index in self.indices() {
            let Some(monitor) = self.monitor_at(index) else {
                continue;
            };
            let mut result = Ok(Change::ANYTHING);
            if self.monitors[monitor].folder.is_some() {
                let root = self.monitors[monitor].root;
                if let Err(error) = self.explore(root, None, Explore::Again) {
                    result = Err(error);
                }
            }
            self.report_unnamed(monitor, result);
        }
    }

    /// What the record in hand means to a node's monitor, if anything.
    fn tell(&mut self, node: u32) -> Option<(Token, Result<Change, Errno>)> {
        let monitor = &self.monitors[self.nodes[node].monitor];
        let (token, is_tree) = (monitor.token, monitor.folder.is_some());
        // Out of the way, so that the tree can be changed; it comes back in any case.
        let batch = std::mem::take(&mut self.batch);
        let told = Record::first(&batch[self.record..]).filter(|record| match is_tree {
            true => self.follow(node, record),
            false => true,
        });
        let change = told.map(|record| {
            self.set_name(node, record.name);
            Change::of(record.changes)
        });
        self.batch = batch;
        Some((token, Ok(change?)))
    }

    /// Puts the name of what happened where the front end finds it. What happens to a
    /// monitored file itself goes by the last part of its path.
    fn set_name(&mut self, node: u32, name: &[u8]) {
        let mut path = std::mem::take(&mut self.name);
        self.is_named = match name {
            [] => {
                let monitor = &self.monitors[self.nodes[node].monitor];
                let whole = monitor.path().to_bytes();
                path.clear();
                let base = whole
                    .rsplit(|&byte| byte == b'/')
                    .next()
                    .unwrap_or_default();
                let room = path.try_reserve(base.len());
                room.map(|()| path.extend_from_slice(base)).is_ok()
            }
            name => self.put_path(node, name, &mut path).is_ok(),
        };
        self.name = path;
    }

    /// Keeps a tree up to date with a record. Whether it is worth telling.
    fn follow(&mut self, node: u32, record: &Record<'_>) -> bool {
        let changes = record.changes;
        if record.name.is_empty() {
            let is_root = self.nodes[node].parent == NIL;
            if changes.is_end_of_watch() && is_root {
                self.drop_children(node);
            } else if changes.is_end_of_watch() {
                self.drop_node(node);
            }
            // A change of a directory inside the tree is told by the directory above it, by name.
            return is_root && !changes.is_end_of_watch();
        }
        let was_found = (changes.is_creation() || changes.is_departure())
            && self.was_found(record.wd, record.name);
        if changes.is_directory() && changes.is_departure() {
            self.drop_child(node, record.name);
        }
        if changes.is_creation() && was_found {
            return false;
        }
        if changes.is_directory() && changes.is_arrival() {
            self.appeared(node, record.name);
        }
        true
    }

    /// Starts over with a file watcher of this process's own. Returns the first error.
    fn renew(&mut self) -> Result<(), Errno> {
        let Some(files) = &mut self.files else {
            return Ok(());
        };
        files.renew()?;
        self.forget_batch();
        // The old numbers are the parent's, and may soon be given out again.
        self.by_wd.clear();
        let mut result = Ok(());
        for index in self.indices() {
            if let Some(monitor) = self.monitor_at(index) {
                result = result.and(self.watch_again(monitor));
            }
        }
        result
    }
}

impl Engine {
    /// Makes a file system event handle.
    pub fn fs_event_init(&mut self, token: Token) -> Result<Key, Errno> {
        self.handles.insert(Kind::FsEvent(NIL), token)
    }

    fn fs_event_monitor(&self, index: u32) -> Result<u32, Errno> {
        match self.handles[index].kind {
            Kind::FsEvent(monitor) => Ok(monitor),
            _ => Err(Errno::EINVAL),
        }
    }

    /// Starts to watch a file or the entries of a directory, with all below it if `recursive`.
    /// [`Event::FsEvent`] follows whenever something happens. `EINVAL` if the handle is started.
    ///
    /// Symbolic links are followed on the way to `path`, and not below it.
    pub fn fs_event_start(&mut self, key: Key, path: &CStr, recursive: bool) -> Result<(), Errno> {
        let index = self.handles.open(key)?;
        if self.fs_event_monitor(index)? != NIL {
            return Err(Errno::EINVAL);
        }
        self.ensure_file_watcher()?;
        let token = self.handles[index].token;
        let monitor = self.fs_events.start(token, path, recursive)?;
        if let Err(error) = self
            .driver
            .want_only(self.fs_events.watcher, Interest::READABLE)
        {
            self.fs_events.stop(monitor);
            return Err(error);
        }
        self.handles[index].kind = Kind::FsEvent(monitor);
        self.handles.set_active(index, true);
        Ok(())
    }

    fn ensure_file_watcher(&mut self) -> Result<(), Errno> {
        if self.fs_events.files.is_none() {
            let files = FileWatcher::new()?;
            let fd: RawFd = files.fd();
            self.driver.check(fd)?;
            self.fs_events.batch.try_reserve_exact(BATCH)?;
            self.fs_events.watcher = self.driver.add(fd, Owner::FileWatcher)?;
            self.fs_events.files = Some(files);
        }
        Ok(())
    }

    /// Stops watching. A handle that is not started stays as it is.
    pub fn fs_event_stop(&mut self, key: Key) -> Result<(), Errno> {
        let index = self.handles.open(key)?;
        self.fs_event_monitor(index)?;
        self.stop_fs_event(index);
        Ok(())
    }

    pub(crate) fn stop_fs_event(&mut self, index: u32) {
        let Ok(monitor) = self.fs_event_monitor(index) else {
            return;
        };
        if monitor != NIL {
            self.handles[index].kind = Kind::FsEvent(NIL);
            self.handles.set_active(index, false);
            self.fs_events.stop(monitor);
            if self.fs_events.monitor_count == 0 {
                self.driver.stop(self.fs_events.watcher);
            }
        }
    }

    /// What a started handle watches. `EINVAL` if it is not started.
    pub fn fs_event_path(&self, key: Key) -> Result<&CStr, Errno> {
        match self.fs_event_monitor(self.handles.open(key)?)? {
            NIL => Err(Errno::EINVAL),
            monitor => Ok(self.fs_events.monitors[monitor].path()),
        }
    }

    /// The name that belongs to the [`Event::FsEvent`] handed out last, if there is one: an
    /// entry's, relative to the directory that is watched, or the last part of the path of
    /// a file.
    pub fn fs_event_name(&self) -> Option<&[u8]> {
        let FsEvents { name, is_named, .. } = &self.fs_events;
        is_named.then_some(name)
    }

    /// Begins to deal with what the kernel has to tell.
    pub(crate) fn file_watcher_ready(&mut self) {
        self.fs_events.fill();
    }

    /// The poller cannot watch the file watcher's descriptor: every handle hears of it.
    pub(crate) fn file_watcher_refused(&mut self, error: Errno) {
        for index in self.fs_events.indices() {
            if let Some(monitor) = self.fs_events.monitor_at(index) {
                self.fs_events.report_unnamed(monitor, Err(error));
            }
        }
    }

    /// The next event of what was read.
    pub(crate) fn next_fs_event(&mut self) -> Option<Event> {
        let (token, result) = self.fs_events.next()?;
        Some(Event::FsEvent(token, result))
    }

    /// After `fork`: watches with a file watcher of the child's own.
    pub(crate) fn fork_fs_events(&mut self) -> Result<(), Errno> {
        self.fs_events.renew()
    }
}
