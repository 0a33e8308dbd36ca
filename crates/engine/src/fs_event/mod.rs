//! File system event handles: changes of files and directories.
//!
//! A loop has one file watcher, made for the first started handle. A started handle has a
//! *monitor*, which lives until the handle is stopped. If the handle is started again, records
//! from before belong to the old monitor and are dropped.
//!
//! The engine reads records in batches and delivers them one at a time, each to all monitors that
//! it concerns. The position in the batch (`batch`, `targets`, `reports`) refers to everything by
//! key, since callbacks may stop and close any handle.
//!
//! `tree.rs` has the directories of recursive monitors.
//!
//! When the kernel's queue overflows, records are lost. Every monitor then reports
//! [`Change::ANYTHING`] without a name, and recursive monitors scan for directories that they have
//! missed.

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

/// How a file has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Change(u32);

impl Change {
    /// It was created, removed or moved.
    pub const RENAMED: Change = Change(1);
    /// Its content or its attributes are different.
    pub const CHANGED: Change = Change(2);
    /// Both may have happened: records were lost.
    pub const ANYTHING: Change = Change(3);
    /// It is a directory, and its attributes are different.
    pub const FOLDER_CHANGED: Change = Change(4);

    /// The change as libuv's bits. libuv reports a directory's attributes by both bits.
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

/// The file or tree that a started handle watches.
#[derive(Debug)]
struct Monitor {
    token: Token,
    /// The path as the program has given it. `None` after the monitor was stopped.
    path: Option<CString>,
    /// The directory, for a recursive monitor of one.
    folder: Option<Folder>,
    root: u32,
    /// Whether a report was lost for want of memory, for which `ENOMEM` is still to be delivered.
    has_missed: bool,
}

impl Monitor {
    fn path(&self) -> &CStr {
        self.path.as_deref().unwrap_or_default()
    }
}

/// An event for a monitor that comes from no record of the kernel.
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
    /// How many monitors have `has_missed` set.
    missed_count: u32,
    watches: Slab<Watch>,
    by_wd: HashMap<i32, u32>,
    nodes: Slab<Node>,
    /// Records. Those before `at` have been taken; the current one begins at `record`.
    batch: Vec<u8>,
    at: usize,
    record: usize,
    /// The nodes that the current record concerns, and which is next.
    targets: Vec<Key>,
    next_target: usize,
    /// To be delivered before anything else.
    reports: VecDeque<Report>,
    /// Entries that listings have found in watched directories, by node. The kernel's records of
    /// the same entries have passed once `bytes_read` reaches `found_until`.
    found: HashMap<u32, HashSet<Vec<u8>>>,
    found_until: u64,
    bytes_read: u64,
    /// The name that belongs to the event delivered last.
    name: Vec<u8>,
    is_named: bool,
}

impl FsEvents {
    /// The path that a handle watches, as the program has given it.
    pub(crate) fn path(&self, monitor: u32) -> &str {
        match monitor {
            NIL => "",
            monitor => self.monitors[monitor].path().to_str().unwrap_or_default(),
        }
    }

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
        self.add_root(monitor)
            .map(|()| monitor)
            .inspect_err(|_| self.stop(monitor))
    }

    /// Makes the kernel watch a monitor's path. Returns the watch descriptor.
    fn watch_path(&self, monitor: u32) -> Result<i32, Errno> {
        let monitor = &self.monitors[monitor];
        match &monitor.folder {
            Some(folder) => self.files().watch_folder(folder),
            None => self.files().watch(monitor.path()),
        }
    }

    /// Makes the root of a new monitor.
    fn add_root(&mut self, monitor: u32) -> Result<(), Errno> {
        let wd = self.watch_path(monitor)?;
        let root = self.add_node(wd, monitor, NIL, b"")?;
        self.monitors[monitor].root = root;
        match self.monitors[monitor].folder.is_some() {
            true => self.explore(root, None, Explore::Silent),
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
            self.discard_batch();
        }
    }

    /// Discards the rest of the batch, which concerns no monitor any more.
    fn discard_batch(&mut self) {
        self.batch.clear();
        self.at = 0;
        self.targets.clear();
        self.next_target = 0;
        self.reports.clear();
        self.found.clear();
    }

    /// Indices for [`FsEvents::monitor_at`], among them those of all monitors.
    fn indices(&self) -> std::ops::Range<u32> {
        0..self.monitors.capacity() as u32
    }

    /// The monitor with this index, if there is one.
    fn monitor_at(&self, index: u32) -> Option<u32> {
        self.monitors.resolve(self.monitors.key(index))
    }

    /// Reads the next batch, if nothing of the last is left.
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

    /// Whether anything is left to deliver.
    pub(crate) fn has_leftover(&self) -> bool {
        self.at < self.batch.len()
            || self.next_target < self.targets.len()
            || !self.reports.is_empty()
            || self.missed_count > 0
    }

    /// Records that a report was lost for want of memory. Delivering `ENOMEM` needs no memory.
    #[cold]
    fn miss(&mut self, monitor: u32) {
        let missed = std::mem::replace(&mut self.monitors[monitor].has_missed, true);
        self.missed_count += u32::from(!missed);
    }

    /// The token of the next monitor that has lost a report.
    #[cold]
    fn next_missed(&mut self) -> Option<Token> {
        let mut monitors = self.indices().filter_map(|index| self.monitor_at(index));
        let monitor = monitors.find(|&monitor| self.monitors[monitor].has_missed)?;
        self.monitors[monitor].has_missed = false;
        self.missed_count -= 1;
        self.is_named = false;
        Some(self.monitors[monitor].token)
    }

    /// The next event to deliver.
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
                let node = self.nodes.resolve(target);
                let event = node.and_then(|node| self.event_for(node));
                if event.is_some() {
                    return event;
                }
                continue;
            }
            self.next_record()?;
        }
    }

    /// Makes the next record the current one.
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

    /// The kernel has lost records.
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
                if let Err(error) = self.explore(root, None, Explore::Rescan) {
                    result = Err(error);
                }
            }
            self.report_unnamed(monitor, result);
        }
    }

    /// The event of the current record for a node's monitor, if it is to be reported.
    fn event_for(&mut self, node: u32) -> Option<(Token, Result<Change, Errno>)> {
        let monitor = &self.monitors[self.nodes[node].monitor];
        let (token, is_tree) = (monitor.token, monitor.folder.is_some());
        // Taken out, so that the tree can be changed while the record is borrowed; put back below.
        let batch = std::mem::take(&mut self.batch);
        let reported = Record::first(&batch[self.record..]).filter(|record| match is_tree {
            true => self.follow(node, record),
            false => true,
        });
        let change = reported.map(|record| {
            self.set_name(node, record.name);
            Change::of(record.changes)
        });
        self.batch = batch;
        Some((token, Ok(change?)))
    }

    /// Sets the name that the front end finds with the event. A change of the monitored file itself
    /// has the last part of its path as the name.
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

    /// Updates a tree by a record. Returns whether the record is to be reported.
    fn follow(&mut self, node: u32, record: &Record<'_>) -> bool {
        let changes = record.changes;
        if record.name.is_empty() {
            let is_root = self.nodes[node].parent == NIL;
            if changes.is_end_of_watch() && is_root {
                self.drop_children(node);
            } else if changes.is_end_of_watch() {
                self.drop_node(node);
            }
            // The parent directory reports a change of a directory inside the tree, by name.
            return is_root && !changes.is_end_of_watch();
        }
        let was_found =
            (changes.is_creation() || changes.is_departure()) && self.was_found(node, record.name);
        if changes.is_directory()
            && changes.is_departure()
            && !self.is_there_again(node, record.name)
        {
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

    /// In a child process, watches everything again with a new file watcher. Returns the first
    /// error.
    fn renew(&mut self) -> Result<(), Errno> {
        let Some(files) = &mut self.files else {
            return Ok(());
        };
        files.renew()?;
        self.discard_batch();
        // The old watch descriptors are the parent's; the new file watcher may reuse their numbers.
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
        self.make_handle(Kind::FsEvent(NIL), token)
    }

    fn fs_event_monitor(&self, index: u32) -> Result<u32, Errno> {
        match self.handles[index].kind {
            Kind::FsEvent(monitor) => Ok(monitor),
            _ => Err(Errno::EINVAL),
        }
    }

    /// Starts to watch a file or the entries of a directory, with all directories below it if
    /// `recursive`. [`Event::FsEvent`] follows for every change. `EINVAL` if the handle is started.
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

    /// The path that a started handle watches. `EINVAL` if it is not started.
    pub fn fs_event_path(&self, key: Key) -> Result<&CStr, Errno> {
        match self.fs_event_monitor(self.handles.open(key)?)? {
            NIL => Err(Errno::EINVAL),
            monitor => Ok(self.fs_events.monitors[monitor].path()),
        }
    }

    /// The name that belongs to the [`Event::FsEvent`] delivered last, if it has one: that of an
    /// entry, relative to the watched directory, or the last part of the path of a watched file.
    pub fn fs_event_name(&self) -> Option<&[u8]> {
        let FsEvents { name, is_named, .. } = &self.fs_events;
        is_named.then_some(name)
    }

    /// The file watcher's descriptor is readable: reads a batch.
    pub(crate) fn file_watcher_ready(&mut self) {
        self.fs_events.fill();
    }

    /// The poller cannot watch the file watcher's descriptor: every monitor reports the error.
    pub(crate) fn file_watcher_refused(&mut self, error: Errno) {
        for index in self.fs_events.indices() {
            if let Some(monitor) = self.fs_events.monitor_at(index) {
                self.fs_events.report_unnamed(monitor, Err(error));
            }
        }
    }

    /// Delivers the next event.
    pub(crate) fn next_fs_event(&mut self) -> Option<Event> {
        let (token, result) = self.fs_events.next()?;
        Some(Event::FsEvent(token, result))
    }

    /// In a child process, watches everything again with a new file watcher.
    pub(crate) fn fork_fs_events(&mut self) -> Result<(), Errno> {
        self.fs_events.renew()
    }
}
