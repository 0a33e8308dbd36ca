//! Process handles: the children of a loop, and their exits.
//!
//! A child has a [`ChildWatch`], whose descriptor becomes readable when the child exits: an exit
//! costs the same for any number of children, and the loop reaps only its own children. Where the
//! platform has no such descriptor, or the poller refuses it, the loop watches for SIGCHLD and then
//! examines all children without a `ChildWatch`.
//!
//! The loop also watches for SIGCHLD where the program ignores it, since the kernel would discard
//! the exit status of children, and where the program has a handler of its own, which may reap them all:
//! as in libuv, the loop's handler takes its place.
//!
//! Exits are delivered after everything else that a poll has brought, as in libuv, where they are
//! signals: the program can read the child's output before it learns of the exit. Where the program
//! has a signal handle for SIGCHLD, the loop reaps its children before it delivers the signal.

use crate::driver::{Driver, Owner};
use crate::engine::Engine;
use crate::event::{Event, Token};
use crate::handle::Kind;
use crate::list::{Links, Rounds, linked};
use crate::readiness::{Interest, Readiness};
use crate::slab::{Key, NIL, Slab};
use blacklight_sys::process::{self, Child, ChildWatch, Command, SpawnError};
use blacklight_sys::{Errno, signal};

#[derive(Debug)]
struct Process {
    handle: u32,
    pid: i32,
    state: ChildState,
    /// The child's descriptor, while the loop watches it, and its watcher.
    watch: Option<ChildWatch>,
    watcher: u32,
    /// The loop must watch for SIGCHLD while the child runs.
    needs_signal: bool,
    /// In the list `ended`, at `links`.
    is_queued: bool,
    links: Links,
}

linked!(Process, links);

/// The state of a handle's child.
#[derive(Clone, Copy, Debug)]
enum ChildState {
    /// The handle has none, or its exit was delivered.
    Gone,
    /// It may have exited, and was not reaped.
    Running,
    /// It was reaped, and its exit is to be delivered.
    Reaped(Status),
}

/// A child's exit status, or a negative error number; and the signal that ended the child, or zero.
type Status = (i64, i32);

/// The children of a loop.
#[derive(Debug)]
pub(crate) struct Processes {
    slab: Slab<Process>,
    /// Children that may have exited. The phase in progress examines those that were there when it
    /// began.
    ended: Rounds,
    /// The watcher for SIGCHLD, and how many children need it.
    child_signal: u32,
    needs_signal: usize,
}

impl Process {
    fn has_child(&self) -> bool {
        !matches!(self.state, ChildState::Gone)
    }

    /// Reaps the child if it has exited. Returns its status.
    fn reap(&mut self) -> Option<Status> {
        if matches!(self.state, ChildState::Running) {
            let status = match process::wait(self.pid) {
                Ok(status) => status,
                // The program has reaped the child itself, so its status is lost.
                Err(error) => Some((i64::from(error.code()), 0)),
            };
            self.state = status.map_or(ChildState::Running, ChildState::Reaped);
        }
        match self.state {
            ChildState::Reaped(status) => Some(status),
            ChildState::Gone | ChildState::Running => None,
        }
    }
}

impl Processes {
    pub(crate) fn new() -> Processes {
        Processes {
            slab: Slab::new(),
            ended: Rounds::EMPTY,
            child_signal: NIL,
            needs_signal: 0,
        }
    }

    fn insert(&mut self) -> Result<u32, Errno> {
        let process = self.slab.insert(Process {
            handle: 0,
            pid: 0,
            state: ChildState::Gone,
            watch: None,
            watcher: NIL,
            needs_signal: false,
            is_queued: false,
            links: Links::NONE,
        })?;
        Ok(process.index)
    }

    fn remove(&mut self, process: u32) {
        if self.slab[process].is_queued {
            self.ended.remove(&mut self.slab, process);
        }
        self.slab.remove(process);
    }

    /// The number of a child, or -1 before it is started.
    pub(crate) fn pid(&self, process: u32) -> i32 {
        let process = &self.slab[process];
        if process.pid > 0 { process.pid } else { -1 }
    }

    /// Whether a child may have exited.
    #[inline]
    pub(crate) fn has_ended(&self) -> bool {
        !self.ended.is_empty()
    }

    /// Begins the phase that examines the children queued so far.
    #[inline]
    pub(crate) fn collect(&mut self) {
        self.ended.begin();
    }

    fn queue(&mut self, process: u32) {
        let entry = &mut self.slab[process];
        if entry.has_child() && !std::mem::replace(&mut entry.is_queued, true) {
            self.ended.push_back(&mut self.slab, process);
        }
    }

    fn indices(&self) -> std::ops::Range<u32> {
        0..self.slab.capacity() as u32
    }

    /// After SIGCHLD: queues all children without a `ChildWatch`.
    pub(crate) fn examine(&mut self) {
        for process in self.indices() {
            if self.slab[process].watch.is_none() {
                self.queue(process);
            }
        }
    }

    /// Reaps the children that have exited, before a signal handle delivers SIGCHLD: programs that
    /// watch for SIGCHLD reap all children they know of, and the loop would lose the status.
    pub(crate) fn reap(&mut self) {
        for process in self.indices() {
            if self.slab[process].reap().is_some() {
                self.queue(process);
            }
        }
    }
}

/// Starting, watching and reaping children.
impl Driver {
    fn spawn(&mut self, process: u32, command: &Command<'_>) -> Result<i32, SpawnError> {
        if self.sources.processes.slab[process].has_child() {
            return Err(Errno::EBUSY.into());
        }
        if signal::others_may_reap() {
            self.need_child_signal(process)?;
        }
        let spawned = self.spawn_watched(process, command);
        let (watcher, Child { pid, watch }) =
            spawned.inspect_err(|_| self.release_child_signal(process))?;
        let entry = &mut self.sources.processes.slab[process];
        entry.pid = pid;
        entry.state = ChildState::Running;
        entry.watcher = watcher;
        if self.watch_child(process, watch).is_err() {
            self.await_child_by_signal(process);
        }
        Ok(pid)
    }

    /// Starts a child, and makes its watcher before that.
    fn spawn_watched(
        &mut self,
        process: u32,
        command: &Command<'_>,
    ) -> Result<(u32, Child), SpawnError> {
        let watcher = self.add(-1, Owner::Process(process))?;
        let child = process::spawn(command).inspect_err(|_| self.remove(watcher))?;
        Ok((watcher, child))
    }

    fn watch_child(&mut self, process: u32, watch: Option<ChildWatch>) -> Result<(), Errno> {
        let watch = watch
            .filter(|_| self.reaches_kernel())
            .ok_or(Errno::ENOSYS)?;
        let entry = &mut self.sources.processes.slab[process];
        let (watcher, fd) = (entry.watcher, watch.fd());
        entry.watch = Some(watch);
        self.attach(watcher, fd)?;
        self.report_once(watcher);
        self.want_only(watcher, Interest::READABLE)
    }

    /// Watches for a child by SIGCHLD. The child may have exited already.
    fn await_child_by_signal(&mut self, process: u32) {
        self.release_watch(process);
        // Without memory for the watcher the child is examined on every turn.
        let _ = self.need_child_signal(process);
        self.sources.processes.queue(process);
    }

    fn need_child_signal(&mut self, process: u32) -> Result<(), Errno> {
        let sources = &mut self.sources;
        if sources.processes.slab[process].needs_signal {
            return Ok(());
        }
        if sources.processes.child_signal == NIL {
            sources.processes.child_signal = sources.start_child_signal()?;
        }
        sources.processes.slab[process].needs_signal = true;
        sources.processes.needs_signal += 1;
        Ok(())
    }

    fn release_child_signal(&mut self, process: u32) {
        let processes = &mut self.sources.processes;
        if std::mem::take(&mut processes.slab[process].needs_signal) {
            processes.needs_signal -= 1;
            if processes.needs_signal == 0 {
                let watcher = std::mem::replace(&mut processes.child_signal, NIL);
                self.sources.signals.remove(watcher);
            }
        }
    }

    fn release_watch(&mut self, process: u32) {
        let entry = &mut self.sources.processes.slab[process];
        let watch = entry.watch.take();
        let watcher = std::mem::replace(&mut entry.watcher, NIL);
        if watcher != NIL {
            self.remove(watcher);
        }
        drop(watch);
    }

    /// Forgets the child, which may go on, and stops watching for its exit.
    fn release_child(&mut self, process: u32) {
        self.release_watch(process);
        self.release_child_signal(process);
        self.sources.processes.slab[process].state = ChildState::Gone;
    }

    /// The poller reports that a child has exited, or that it cannot watch the descriptor.
    pub(crate) fn process_ready(&mut self, process: u32, result: Result<Readiness, Errno>) {
        match result {
            // The descriptor has no further use. The child keeps its id until it is reaped.
            Ok(ready) if ready.contains(Interest::READABLE) => {
                let entry = &mut self.sources.processes.slab[process];
                let watcher = std::mem::replace(&mut entry.watcher, NIL);
                let watch = entry.watch.take();
                match self.is_embedded() {
                    true => self.remove(watcher),
                    false => self.remove_reported(watcher),
                }
                drop(watch);
                self.sources.processes.queue(process);
            }
            // The program has closed the descriptor.
            _ => self.await_child_by_signal(process),
        }
    }

    /// The next child that has exited, of those that the phase in progress examines.
    fn next_exited(&mut self) -> Option<(u32, Status)> {
        loop {
            let processes = &mut self.sources.processes;
            let process = processes.ended.next(&mut processes.slab)?;
            let entry = &mut processes.slab[process];
            entry.is_queued = false;
            if !entry.has_child() {
                continue;
            }
            if let Some(status) = entry.reap() {
                return Some((process, status));
            }
            // Without memory for the watcher the child is examined on every turn, and once more when there
            // is one: it may have exited before.
            let is_watched = entry.needs_signal;
            if self.need_child_signal(process).is_err() || !is_watched {
                self.sources.processes.queue(process);
            }
        }
    }

    /// In the child of a fork: stops watching for the children, which are the parent's. Their
    /// handles stay active, as in the parent.
    pub(crate) fn disown_children(&mut self) {
        for process in self.sources.processes.indices() {
            if self.sources.processes.slab[process].has_child() {
                self.release_child(process);
            }
        }
        let processes = &mut self.sources.processes;
        processes.ended.begin();
        while let Some(process) = processes.ended.next(&mut processes.slab) {
            processes.slab[process].is_queued = false;
        }
    }
}

impl Engine {
    /// Makes a process handle without a child.
    pub fn process_init(&mut self, token: Token) -> Result<Key, Errno> {
        let process = self.driver.sources.processes.insert()?;
        let key = self
            .make_handle(Kind::Process(process), token)
            .inspect_err(|_| self.driver.sources.processes.remove(process))?;
        self.driver.sources.processes.slab[process].handle = key.index;
        Ok(key)
    }

    fn open_process(&self, key: Key) -> Result<u32, Errno> {
        match self.handles[self.handles.open(key)?].kind {
            Kind::Process(process) => Ok(process),
            _ => Err(Errno::EINVAL),
        }
    }

    /// Starts a child and returns its process id. [`Event::Exit`] follows when it has exited.
    /// `EBUSY` if the handle has a running child.
    pub fn process_spawn(&mut self, key: Key, command: &Command<'_>) -> Result<i32, SpawnError> {
        let process = self.open_process(key)?;
        let pid = self.driver.spawn(process, command)?;
        self.handles.set_active(key.index, true);
        Ok(pid)
    }

    /// Sends a signal to the child; zero only checks that it exists. `ESRCH` once the child has
    /// been reaped, even if another process has its id by then.
    pub fn process_kill(&self, key: Key, signum: i32) -> Result<(), Errno> {
        let entry = &self.driver.sources.processes.slab[self.open_process(key)?];
        match (entry.state, &entry.watch) {
            (ChildState::Gone | ChildState::Reaped(_), _) => Err(Errno::ESRCH),
            (ChildState::Running, Some(watch)) => watch.kill(signum),
            (ChildState::Running, None) => process::kill(entry.pid, signum),
        }
    }

    /// Delivers the next exit.
    pub(crate) fn next_exit(&mut self) -> Option<Event> {
        let (process, (status, signum)) = self.driver.next_exited()?;
        let handle = self.end_process(process);
        Some(Event::Exit(self.handles[handle].token, status, signum))
    }

    /// Stops watching for the child's exit. Returns the handle.
    fn end_process(&mut self, process: u32) -> u32 {
        self.driver.release_child(process);
        let handle = self.driver.sources.processes.slab[process].handle;
        self.handles.set_active(handle, false);
        handle
    }

    /// Removes the handle's process. A child that runs goes on, and the loop does not reap it.
    pub(crate) fn release_process(&mut self, process: u32) {
        self.end_process(process);
        self.driver.sources.processes.remove(process);
    }
}
