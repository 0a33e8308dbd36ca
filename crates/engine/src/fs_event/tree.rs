//! Which directories the kernel watches for which monitors, and the exploring of trees.
//!
//! A *watch* is the kernel's: one per file or directory, for any number of monitors. A *node*
//! connects a watch with a monitor that it serves. A plain monitor has one node, its root. A
//! recursive monitor also has a node for every directory below; reported names are composed from
//! this tree of nodes.
//!
//! No created entry is missed, since a directory is watched first and listed after. An entry that
//! is created between the two is found twice, by the listing and by the kernel's record. `found`
//! remembers the listing so that the record is not reported. That is exact: a listed name can be
//! created again only after it was removed, and the removal has a record, too. It is remembered for
//! the node whose directory was listed: other monitors of the same directory have listed it at other
//! moments, or not at all.
//!
//! A directory that moves inside a tree is dropped at its old place and explored at its new one.

use super::{Change, FsEvents, Report};
use crate::slab::{Key, NIL};
use blacklight_sys::Errno;
use blacklight_sys::fallible::{self, c_string, copied};
use blacklight_sys::file_watch::Folder;
use blacklight_sys::fs::dir::{Dir, EntryType};
use std::collections::{HashMap, HashSet};
use std::ffi::CStr;

/// How many directories an exploration keeps open for later. Others are opened again.
const KEPT_FOLDERS: usize = 32;

#[derive(Debug)]
pub(super) struct Watch {
    /// The watch descriptor, or −1 when the kernel has ended the watch.
    pub(super) wd: i32,
    /// The nodes that the watch serves, in the order of their creation.
    first: u32,
    last: u32,
}

#[derive(Debug)]
pub(super) struct Node {
    pub(super) monitor: u32,
    watch: u32,
    prev: u32,
    next: u32,
    /// The node of the parent directory, or `NIL` for a root, which has no name.
    pub(super) parent: u32,
    name: Vec<u8>,
    children: HashMap<Vec<u8>, u32>,
}

/// How the entries that a listing finds are treated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Explore {
    /// They existed before the monitor: nothing is reported.
    Silent,
    /// They are new: each is reported.
    Report,
    /// Some may be known, and known directories may be gone. Nothing is reported.
    Rescan,
}

/// Errors that concern one directory only: it is gone, it is no directory, or it is not
/// permitted to read it.
fn is_local(error: &Errno) -> bool {
    matches!(
        *error,
        Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP | Errno::EACCES | Errno::EPERM
    )
}

impl FsEvents {
    /// The watch with this watch descriptor, made if there is none.
    fn watch(&mut self, wd: i32) -> Result<u32, Errno> {
        if let Some(&watch) = self.by_wd.get(&wd) {
            return Ok(watch);
        }
        self.by_wd.try_reserve(1)?;
        let watch = self.watches.insert(Watch {
            wd,
            first: NIL,
            last: NIL,
        })?;
        self.by_wd.insert(wd, watch.index);
        Ok(watch.index)
    }

    /// Ends a watch that serves no node.
    fn end_watch_if_unused(&mut self, watch: u32) {
        let Watch { wd, first, .. } = self.watches[watch];
        if first == NIL {
            self.watches.remove(watch);
            // Not if a fork has given the number to another watch.
            if self.by_wd.get(&wd) == Some(&watch) {
                self.end_wd(wd);
            }
        }
    }

    fn end_wd(&mut self, wd: i32) {
        if wd != -1 {
            self.by_wd.remove(&wd);
            self.files().unwatch(wd);
        }
    }

    /// The kernel has ended a watch: its watch descriptor is invalid. The nodes stay.
    pub(super) fn watch_ended(&mut self, watch: u32) {
        let wd = std::mem::replace(&mut self.watches[watch].wd, -1);
        self.by_wd.remove(&wd);
        let mut node = self.watches[watch].first;
        while node != NIL {
            self.found.remove(&node);
            node = self.nodes[node].next;
        }
    }

    /// Makes a node for a watch, at the end of its list.
    pub(super) fn add_node(
        &mut self,
        wd: i32,
        monitor: u32,
        parent: u32,
        name: &[u8],
    ) -> Result<u32, Errno> {
        let watch = match self.watch(wd) {
            Ok(watch) => watch,
            Err(error) => {
                self.end_wd(wd);
                return Err(error);
            }
        };
        self.new_node(monitor, parent, name)
            .inspect(|&node| self.attach(node, watch))
            .inspect_err(|_| self.end_watch_if_unused(watch))
    }

    fn new_node(&mut self, monitor: u32, parent: u32, name: &[u8]) -> Result<u32, Errno> {
        let key = copied(name)?;
        if parent != NIL {
            self.nodes[parent].children.try_reserve(1)?;
        }
        let node = Node {
            monitor,
            watch: NIL,
            prev: NIL,
            next: NIL,
            parent,
            name: copied(name)?,
            children: HashMap::new(),
        };
        let node = self.nodes.insert(node)?.index;
        if parent != NIL {
            self.nodes[parent].children.insert(key, node);
        }
        Ok(node)
    }

    fn attach(&mut self, node: u32, watch: u32) {
        let prev = std::mem::replace(&mut self.watches[watch].last, node);
        match prev {
            NIL => self.watches[watch].first = node,
            prev => self.nodes[prev].next = node,
        }
        let node = &mut self.nodes[node];
        (node.watch, node.prev, node.next) = (watch, prev, NIL);
    }

    fn detach(&mut self, index: u32) {
        let node = &mut self.nodes[index];
        let (prev, next) = (node.prev, node.next);
        let watch = std::mem::replace(&mut node.watch, NIL);
        if watch == NIL {
            return;
        }
        match prev {
            NIL => self.watches[watch].first = next,
            prev => self.nodes[prev].next = next,
        }
        match next {
            NIL => self.watches[watch].last = prev,
            next => self.nodes[next].prev = prev,
        }
        self.end_watch_if_unused(watch);
    }

    /// Collects the keys of the nodes that a watch serves in `targets`.
    pub(super) fn collect_targets(&mut self, watch: u32) {
        self.targets.clear();
        self.next_target = 0;
        let mut node = self.watches[watch].first;
        while node != NIL {
            match fallible::push(&mut self.targets, self.nodes.key(node)) {
                Ok(()) => {}
                Err(_) => self.miss(self.nodes[node].monitor),
            }
            node = self.nodes[node].next;
        }
    }

    /// Whether the kernel still watches a node.
    fn is_watched(&self, node: u32) -> bool {
        let watch = self.nodes[node].watch;
        watch != NIL && self.watches[watch].wd != -1
    }

    /// Removes a node and all below it.
    pub(super) fn drop_node(&mut self, node: u32) {
        let Node { parent, .. } = self.nodes[node];
        if parent != NIL {
            let name = std::mem::take(&mut self.nodes[node].name);
            self.nodes[parent].children.remove(&name);
        }
        // Detached nodes are in no watch's list, so `next` links those that are still to be removed.
        self.detach(node);
        self.nodes[node].next = NIL;
        let mut left = node;
        while left != NIL {
            let entry = &mut self.nodes[left];
            entry.name = Vec::new();
            let children = std::mem::take(&mut entry.children);
            let gone = std::mem::replace(&mut left, entry.next);
            for child in children.into_values() {
                self.detach(child);
                self.nodes[child].next = std::mem::replace(&mut left, child);
            }
            self.found.remove(&gone);
            self.nodes.remove(gone);
        }
    }

    /// Removes all nodes below a node.
    pub(super) fn drop_children(&mut self, node: u32) {
        let children = std::mem::take(&mut self.nodes[node].children);
        for child in children.into_values() {
            self.nodes[child].parent = NIL;
            self.drop_node(child);
        }
    }

    /// Removes the child of a node with this name, if there is one.
    pub(super) fn drop_child(&mut self, node: u32, name: &[u8]) {
        if let Some(&child) = self.nodes[node].children.get(name) {
            self.drop_node(child);
        }
    }

    /// Whether the directory that a node knows by this name is there, so that a record of a departure is
    /// of another one, which had the name before.
    pub(super) fn is_there_again(&self, node: u32, name: &[u8]) -> bool {
        let Some(&child) = self.nodes[node].children.get(name) else {
            return false;
        };
        let wd = c_string(name).and_then(|name| {
            let folder = self.open_folder(node)?.enter(&name)?;
            self.files().watch_folder(&folder)
        });
        let Ok(wd) = wd else { return false };
        let watch = self.by_wd.get(&wd);
        if watch.is_none() {
            self.files().unwatch(wd);
        }
        watch == Some(&self.nodes[child].watch)
    }

    /// Writes the name of an entry of a node's directory, relative to the root, into `path`.
    /// Allocates only if the buffer is too small.
    pub(super) fn put_path(&self, node: u32, name: &[u8], path: &mut Vec<u8>) -> Result<(), Errno> {
        let ancestors = || {
            let parent = |&node: &u32| Some(self.nodes[node].parent);
            std::iter::successors(Some(node), parent)
                .take_while(|&node| self.nodes[node].parent != NIL)
        };
        let len = ancestors().fold(name.len(), |len, node| {
            len + self.nodes[node].name.len() + 1
        });
        path.clear();
        path.try_reserve(len)?;
        path.resize(len, b'/');
        let mut end = len - name.len();
        path[end..].copy_from_slice(name);
        for node in ancestors() {
            let name = &self.nodes[node].name;
            let start = end - 1 - name.len();
            path[start..end - 1].copy_from_slice(name);
            end = start;
        }
        Ok(())
    }

    /// Opens a node's directory, step by step from the root.
    fn open_folder(&self, node: u32) -> Result<Folder, Errno> {
        let monitor = &self.monitors[self.nodes[node].monitor];
        let root = monitor.folder.as_ref().ok_or(Errno::ENOTDIR)?;
        let mut steps = Vec::new();
        let mut at = node;
        while self.nodes[at].parent != NIL {
            steps.try_reserve(1)?;
            steps.push(at);
            at = self.nodes[at].parent;
        }
        let mut folder = root.enter(c".")?;
        for step in steps.into_iter().rev() {
            folder = folder.enter(&c_string(&self.nodes[step].name)?)?;
        }
        Ok(folder)
    }

    /// A directory has appeared in a node's directory: watches it and all directories below it, and
    /// queues reports of the entries found there.
    pub(super) fn appeared(&mut self, node: u32, name: &[u8]) {
        let explored = c_string(name).and_then(|name| {
            let folder = self.open_folder(node)?;
            match self.enter(node, &folder, &name, Explore::Report)? {
                Some((child, folder)) => self.explore(child, Some(folder), Explore::Report),
                None => Ok(()),
            }
        });
        if let Err(error) = explored
            && !is_local(&error)
        {
            self.report(node, name, Err(error));
        }
        self.found_until = self.bytes_read + self.files().pending();
    }

    /// Watches all directories below a node.
    pub(super) fn explore(
        &mut self,
        node: u32,
        folder: Option<Folder>,
        how: Explore,
    ) -> Result<(), Errno> {
        let mut left = Vec::new();
        fallible::push(&mut left, (self.nodes.key(node), folder))?;
        let mut kept = left.iter().filter(|(_, folder)| folder.is_some()).count();
        while let Some((key, folder)) = left.pop() {
            kept -= usize::from(folder.is_some());
            let Some(node) = self.nodes.resolve(key) else {
                continue;
            };
            let listed = match folder {
                Some(folder) => Ok(folder),
                None => self.open_folder(node),
            };
            let listed =
                listed.and_then(|folder| self.list(node, &folder, how, &mut left, &mut kept));
            if let Err(error) = listed
                && !is_local(&error)
            {
                return Err(error);
            }
        }
        Ok(())
    }

    /// Lists a node's directory, watches the directories in it, and adds them to `left`, to be
    /// explored next.
    fn list(
        &mut self,
        node: u32,
        folder: &Folder,
        how: Explore,
        left: &mut Vec<(Key, Option<Folder>)>,
        kept: &mut usize,
    ) -> Result<(), Errno> {
        let mut dir = Dir::open(folder.link().as_c_str())?;
        let mut seen = HashSet::new();
        while let Some((name, kind)) = dir.read()? {
            if how == Explore::Report {
                self.report_found(node, name.to_bytes())?;
            }
            if !matches!(kind, EntryType::Dir | EntryType::Unknown) {
                continue;
            }
            if how == Explore::Rescan {
                seen.try_reserve(1)?;
                seen.insert(copied(name.to_bytes())?);
            }
            if let Some((child, folder)) = self.enter(node, folder, name, how)? {
                left.try_reserve(1)?;
                let keeps = *kept < KEPT_FOLDERS;
                *kept += usize::from(keeps);
                left.push((self.nodes.key(child), keeps.then_some(folder)));
            }
        }
        if how == Explore::Rescan {
            let gone = |(name, &child): (&Vec<u8>, &u32)| (!seen.contains(name)).then_some(child);
            let children = &self.nodes[node].children;
            let mut forgotten = Vec::new();
            forgotten.try_reserve_exact(children.len())?;
            forgotten.extend(children.iter().filter_map(gone));
            forgotten
                .into_iter()
                .for_each(|child| self.drop_node(child));
        }
        Ok(())
    }

    /// Watches a directory in a node's directory. `None` if there is nothing to explore: it is
    /// gone, is no directory, or is known.
    fn enter(
        &mut self,
        parent: u32,
        within: &Folder,
        name: &CStr,
        how: Explore,
    ) -> Result<Option<(u32, Folder)>, Errno> {
        let opened = within.enter(name).and_then(|folder| {
            let wd = self.files().watch_folder(&folder)?;
            Ok((folder, wd))
        });
        let (folder, mut wd) = match opened {
            Ok(opened) => opened,
            Err(error) if is_local(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        let name = name.to_bytes();
        let monitor = self.nodes[parent].monitor;
        if let Some(known) = self.node_of(wd, monitor) {
            let node = &self.nodes[known];
            if node.parent == parent && node.name == name {
                return Ok((how == Explore::Rescan).then_some((known, folder)));
            }
            if self.is_within(parent, known) {
                // A mount leads back into the tree from further down.
                return Ok(None);
            }
            // It has moved here, and the record of its departure is still to come.
            self.drop_node(known);
            wd = self.files().watch_folder(&folder)?;
        }
        self.drop_child(parent, name);
        let node = self.add_node(wd, monitor, parent, name)?;
        Ok(Some((node, folder)))
    }

    /// The node through which a watch serves a monitor.
    fn node_of(&self, wd: i32, monitor: u32) -> Option<u32> {
        let mut node = self.watches[*self.by_wd.get(&wd)?].first;
        while node != NIL && self.nodes[node].monitor != monitor {
            node = self.nodes[node].next;
        }
        (node != NIL).then_some(node)
    }

    /// Whether a node is `other` or below it.
    fn is_within(&self, mut node: u32, other: u32) -> bool {
        while node != NIL && node != other {
            node = self.nodes[node].parent;
        }
        node == other
    }

    /// Queues the report of an entry that a listing has found.
    fn report_found(&mut self, node: u32, name: &[u8]) -> Result<(), Errno> {
        if self.is_watched(node) {
            self.found.try_reserve(1)?;
            let found = self.found.entry(node).or_default();
            found.try_reserve(1)?;
            found.insert(copied(name)?);
        }
        self.report(node, name, Ok(Change::RENAMED));
        Ok(())
    }

    /// Whether a listing of a node's directory has found the entry already. True once for each finding.
    pub(super) fn was_found(&mut self, node: u32, name: &[u8]) -> bool {
        self.found
            .get_mut(&node)
            .is_some_and(|found| found.remove(name))
    }

    /// Queues a report on an entry of a node's directory.
    pub(super) fn report(&mut self, node: u32, name: &[u8], result: Result<Change, Errno>) {
        let mut path = Vec::new();
        let monitor = self.nodes[node].monitor;
        match self.put_path(node, name, &mut path) {
            Ok(()) => self.queue(monitor, Some(path), result),
            Err(_) => self.miss(monitor),
        }
    }

    fn queue(&mut self, monitor: u32, name: Option<Vec<u8>>, result: Result<Change, Errno>) {
        if self.reports.try_reserve(1).is_err() {
            return self.miss(monitor);
        }
        self.reports.push_back(Report {
            monitor: self.monitors.key(monitor),
            name,
            result,
        });
    }

    /// Queues a report without a name.
    pub(super) fn report_unnamed(&mut self, monitor: u32, result: Result<Change, Errno>) {
        self.queue(monitor, None, result);
    }

    /// Watches a monitor's root, and all directories below it, with a new file watcher, unless the
    /// kernel had ended the root's watch before.
    pub(super) fn watch_again(&mut self, monitor: u32) -> Result<(), Errno> {
        let root = self.monitors[monitor].root;
        let was_watched = self.is_watched(root);
        self.drop_children(root);
        self.detach(root);
        if !was_watched {
            return Ok(());
        }
        let is_folder = self.monitors[monitor].folder.is_some();
        let watch = self.watch_path(monitor).and_then(|wd| self.watch(wd))?;
        self.attach(root, watch);
        match is_folder {
            true => self.explore(root, None, Explore::Silent),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Token;
    use blacklight_sys::file_watch::FileWatcher;
    use std::ffi::CString;
    use std::fs;
    use std::path::{Path, PathBuf};

    /// A recursive monitor of a new directory.
    fn monitor(name: &str) -> (FsEvents, u32, PathBuf) {
        let path = std::env::temp_dir().join(format!("blacklight-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        let mut events = FsEvents::new();
        events.files = Some(FileWatcher::new().unwrap());
        let c_path = CString::new(path.to_str().unwrap()).unwrap();
        let monitor = events.start(Token(1), &c_path, true).unwrap();
        let root = events.monitors[monitor].root;
        (events, root, path)
    }

    /// Watches a directory below the root, without listing it yet.
    fn watch_only(events: &mut FsEvents, root: u32, path: &Path, name: &str) -> u32 {
        let c_path = CString::new(path.join(name).to_str().unwrap()).unwrap();
        let wd = events.files().watch(&c_path).unwrap();
        let monitor = events.nodes[root].monitor;
        events.add_node(wd, monitor, root, name.as_bytes()).unwrap()
    }

    /// Delivers everything. Returns the name and bits of each event.
    fn names(events: &mut FsEvents) -> Vec<String> {
        let mut names = Vec::new();
        while events.has_leftover() || events.files().pending() > 0 {
            events.fill();
            while let Some((_, result)) = events.next() {
                let name = String::from_utf8(events.name.clone()).unwrap();
                names.push(format!("{name} {}", result.unwrap().bits()));
            }
        }
        names
    }

    #[test]
    fn an_entry_created_between_watching_and_listing_is_reported_once() {
        let (mut events, root, path) = monitor("gap");
        fs::create_dir(path.join("x")).unwrap();
        assert_eq!(names(&mut events), ["x 1"]);
        events.drop_child(root, b"x");
        // The directory is explored again: watched, then changed, then listed.
        let node = watch_only(&mut events, root, &path, "x");
        fs::write(path.join("x/file"), "text").unwrap();
        fs::create_dir_all(path.join("x/y/z")).unwrap();
        events.explore(node, None, Explore::Report).unwrap();
        events.found_until = events.bytes_read + events.files().pending();
        let mut reported = names(&mut events);
        reported.sort();
        assert_eq!(reported, ["x/file 1", "x/file 2", "x/y 1", "x/y/z 1"]);
        // Names that are created a second time are reported a second time.
        fs::remove_file(path.join("x/file")).unwrap();
        fs::write(path.join("x/file"), "").unwrap();
        assert_eq!(names(&mut events), ["x/file 1", "x/file 1"]);
        fs::remove_dir_all(&path).unwrap();
        names(&mut events);
        assert!(events.found.is_empty(), "nothing is remembered for ever");
    }

    #[test]
    fn a_stopped_monitor_leaves_no_watches() {
        let (mut events, root, path) = monitor("given-back");
        fs::create_dir_all(path.join("a/b/c")).unwrap();
        names(&mut events);
        assert_eq!(events.by_wd.len(), 4);
        fs::rename(path.join("a/b"), path.join("b")).unwrap();
        names(&mut events);
        assert_eq!(events.by_wd.len(), 4);
        fs::remove_dir_all(path.join("b")).unwrap();
        names(&mut events);
        assert_eq!(events.by_wd.len(), 2);
        events.stop(events.nodes[root].monitor);
        assert!(events.by_wd.is_empty() && !events.has_leftover());
        fs::remove_dir_all(&path).unwrap();
    }
}
