//! Process handles: the children of a loop, and their exits.
//!
//! A child has a [`ChildWatch`], whose descriptor becomes readable when the child exits: an exit
//! costs the same for any number of children, and the loop reaps only its own children. Where the
//! platform has no such descriptor, or the poller refuses it, the loop watches for SIGCHLD and then
//! examines all children without a `ChildWatch`.
//!
//! The loop also watches for SIGCHLD where the program ignores it: otherwise the kernel would discard
//! the exit status of children.
//!
//! Exits are delivered after everything else that a poll has brought, as in libuv, where they are
//! signals: the program can read the child's output before it learns of the exit. Where the program
//! has a signal handle for SIGCHLD, the loop reaps its children before it delivers the signal.

use crate::driver::Owner;
use crate::engine::Engine;
use crate::event::{Event, Token};
use crate::handle::Kind;
use crate::readiness::{Interest, Readiness};
use crate::slab::{Key, NIL, Slab};
use blacklight_sys::process::{self, Child, ChildWatch, Command, SpawnError};
use blacklight_sys::{Errno, signal};
use std::collections::VecDeque;

#[derive(Debug)]
struct Process {
    handle: u32,
    pid: i32,
    running: bool,
    /// The child's status after it was reaped and until its exit is delivered.
    status: Option<Status>,
    /// The child's descriptor, while the loop watches it, and its watcher.
    watch: Option<ChildWatch>,
    watcher: u32,
    /// The loop must watch for SIGCHLD while the child runs.
    needs_signal: bool,
    /// In the queue `ended`.
    queued: bool,
}

/// A child's exit status, or a negative error number; and the signal that ended the child, or zero.
type Status = (i64, i32);

/// The children of a loop.
#[derive(Debug)]
pub(crate) struct Processes {
    slab: Slab<Process>,
    /// Children that may have exited.
    ended: VecDeque<u32>,
    /// How many of `ended` the phase in progress has still to examine.
    ended_left: usize,
    /// The watcher for SIGCHLD, and how many children need it.
    child_signal: u32,
    needs_signal: usize,
}

impl Process {
    /// Reaps the child if it has exited. Returns its status.
    fn reap(&mut self) -> Option<Status> {
        if self.status.is_none() {
            self.status = match process::wait(self.pid) {
                Ok(status) => status,
                // The program has reaped the child itself, so its status is lost.
                Err(error) => Some((i64::from(error.code()), 0)),
            };
        }
        self.status
    }
}

impl Processes {
    pub(crate) fn new() -> Processes {
        Processes {
            slab: Slab::new(),
            ended: VecDeque::new(),
            ended_left: 0,
            child_signal: NIL,
            needs_signal: 0,
        }
    }

    /// Whether a child may have exited.
    #[inline]
    pub(crate) fn has_ended(&self) -> bool {
        !self.ended.is_empty()
    }

    /// Begins the phase that examines the children queued so far.
    #[inline]
    pub(crate) fn collect(&mut self) {
        self.ended_left = self.ended.len();
    }

    fn queue(&mut self, process: u32) {
        let entry = &mut self.slab[process];
        if entry.running && !entry.queued {
            entry.queued = true;
            self.ended.push_back(process);
        }
    }
}

impl Engine {
    /// Makes a process handle without a child.
    pub fn process_init(&mut self, token: Token) -> Result<Key, Errno> {
        let process = self.driver.sources.processes.slab.insert(Process {
            handle: 0,
            pid: 0,
            running: false,
            status: None,
            watch: None,
            watcher: NIL,
            needs_signal: false,
            queued: false,
        })?;
        // Room in the queue for every process.
        let room = self.driver.sources.processes.slab.capacity();
        let ended = &mut self.driver.sources.processes.ended;
        let made = ended
            .try_reserve(room.saturating_sub(ended.len()))
            .map_err(Errno::from)
            .and_then(|()| self.handles.insert(Kind::Process(process.index), token));
        let key = made.inspect_err(|_| self.driver.sources.processes.slab.remove(process.index))?;
        self.driver.sources.processes.slab[process.index].handle = key.index;
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
        if self.driver.sources.processes.slab[process].running {
            return Err(Errno::EBUSY.into());
        }
        let guarded = signal::ignores_children();
        if guarded {
            self.need_child_signal(process)?;
        }
        let watcher = self.driver.add(-1, Owner::Process(process));
        let spawned = match watcher {
            Ok(_) => process::spawn(command),
            Err(error) => Err(error.into()),
        };
        let Child { pid, watch } = match spawned {
            Ok(child) => child,
            Err(error) => {
                if let Ok(watcher) = watcher {
                    self.driver.remove(watcher);
                }
                self.release_child_signal(process);
                return Err(error);
            }
        };
        let entry = &mut self.driver.sources.processes.slab[process];
        entry.pid = pid;
        entry.running = true;
        entry.watcher = watcher.unwrap_or(NIL);
        self.handles.set_active(key.index, true);
        if self.watch_child(process, watch).is_err() {
            self.await_child_by_signal(process);
        }
        Ok(pid)
    }

    fn watch_child(&mut self, process: u32, watch: Option<ChildWatch>) -> Result<(), Errno> {
        let watch = watch
            .filter(|_| self.driver.reaches_kernel())
            .ok_or(Errno::ENOSYS)?;
        let watcher = self.driver.sources.processes.slab[process].watcher;
        self.driver.attach(watcher, watch.fd())?;
        self.driver.sources.processes.slab[process].watch = Some(watch);
        self.driver.report_once(watcher);
        self.driver.want_only(watcher, Interest::READABLE)
    }

    /// Watches for a child by SIGCHLD. The child may have exited already.
    fn await_child_by_signal(&mut self, process: u32) {
        self.release_watch(process);
        // Without memory for the watcher the child is examined on every turn.
        let _ = self.need_child_signal(process);
        self.driver.sources.processes.queue(process);
    }

    fn need_child_signal(&mut self, process: u32) -> Result<(), Errno> {
        if self.driver.sources.processes.slab[process].needs_signal {
            return Ok(());
        }
        if self.driver.sources.processes.child_signal == NIL {
            self.driver.sources.processes.child_signal = self.start_child_signal()?;
        }
        self.driver.sources.processes.slab[process].needs_signal = true;
        self.driver.sources.processes.needs_signal += 1;
        Ok(())
    }

    fn release_child_signal(&mut self, process: u32) {
        if std::mem::take(&mut self.driver.sources.processes.slab[process].needs_signal) {
            self.driver.sources.processes.needs_signal -= 1;
            if self.driver.sources.processes.needs_signal == 0 {
                let watcher =
                    std::mem::replace(&mut self.driver.sources.processes.child_signal, NIL);
                self.stop_child_signal(watcher);
            }
        }
    }

    fn release_watch(&mut self, process: u32) {
        let watcher = std::mem::replace(
            &mut self.driver.sources.processes.slab[process].watcher,
            NIL,
        );
        if watcher != NIL {
            self.driver.remove(watcher);
        }
        self.driver.sources.processes.slab[process].watch = None;
    }

    /// Sends a signal to the child; zero only checks that it exists. `ESRCH` once the child has
    /// been reaped, even if another process has its id by then.
    pub fn process_kill(&self, key: Key, signum: i32) -> Result<(), Errno> {
        let entry = &self.driver.sources.processes.slab[self.open_process(key)?];
        match &entry.watch {
            _ if !entry.running || entry.status.is_some() => Err(Errno::ESRCH),
            Some(watch) => watch.kill(signum),
            None => process::kill(entry.pid, signum),
        }
    }

    /// The poller reports that a child has exited, or that it cannot watch the descriptor.
    pub(crate) fn process_ready(&mut self, process: u32, result: Result<Readiness, Errno>) {
        match result {
            // The descriptor has no further use. The child keeps its id until it is reaped.
            Ok(ready) if ready.contains(Interest::READABLE) => {
                let entry = &mut self.driver.sources.processes.slab[process];
                let watcher = std::mem::replace(&mut entry.watcher, NIL);
                let watch = entry.watch.take();
                match self.driver.is_embedded() {
                    true => self.driver.remove(watcher),
                    false => self.driver.remove_reported(watcher),
                }
                drop(watch);
                self.driver.sources.processes.queue(process);
            }
            // The program has closed the descriptor.
            _ => self.await_child_by_signal(process),
        }
    }

    /// After SIGCHLD: queues all children without a `ChildWatch`.
    pub(crate) fn examine_children(&mut self) {
        for process in 0..self.driver.sources.processes.slab.capacity() as u32 {
            if self.driver.sources.processes.slab[process].watch.is_none() {
                self.driver.sources.processes.queue(process);
            }
        }
    }

    /// Reaps the loop's children that have exited, before a signal handle delivers SIGCHLD: programs
    /// that watch for SIGCHLD reap all children they know of, and the loop would lose the status.
    pub(crate) fn reap_children(&mut self) {
        for process in 0..self.driver.sources.processes.slab.capacity() as u32 {
            let entry = &mut self.driver.sources.processes.slab[process];
            if entry.running && entry.reap().is_some() {
                self.driver.sources.processes.queue(process);
            }
        }
    }

    /// Delivers the next exit.
    pub(crate) fn next_exit(&mut self) -> Option<Event> {
        while self.driver.sources.processes.ended_left > 0 {
            self.driver.sources.processes.ended_left -= 1;
            let process = self.driver.sources.processes.ended.pop_front()?;
            let entry = &mut self.driver.sources.processes.slab[process];
            entry.queued = false;
            if !entry.running {
                continue;
            }
            let Some((status, signum)) = entry.reap() else {
                // Without memory for the watcher the child is examined on every turn.
                if self.need_child_signal(process).is_err() {
                    self.driver.sources.processes.queue(process);
                }
                continue;
            };
            let handle = self.end_process(process);
            return Some(Event::Exit(self.handles[handle].token, status, signum));
        }
        None
    }

    /// Stops watching for the child's exit. Returns the handle.
    fn end_process(&mut self, process: u32) -> u32 {
        self.release_watch(process);
        self.release_child_signal(process);
        let entry = &mut self.driver.sources.processes.slab[process];
        entry.running = false;
        entry.status = None;
        let handle = entry.handle;
        self.handles.set_active(handle, false);
        handle
    }

    /// Removes the handle's process. A child that runs goes on, and the loop does not reap it.
    pub(crate) fn release_process(&mut self, process: u32) {
        self.end_process(process);
        if std::mem::take(&mut self.driver.sources.processes.slab[process].queued) {
            self.driver
                .sources
                .processes
                .ended
                .retain(|&other| other != process);
            self.driver.sources.processes.ended_left = self
                .driver
                .sources
                .processes
                .ended_left
                .min(self.driver.sources.processes.ended.len());
        }
        self.driver.sources.processes.slab.remove(process);
    }

    /// In the child of a fork: stops watching for the children, which are the parent's.
    pub(crate) fn disown_children(&mut self) {
        for process in 0..self.driver.sources.processes.slab.capacity() as u32 {
            if self.driver.sources.processes.slab[process].running {
                self.release_watch(process);
                self.release_child_signal(process);
                let entry = &mut self.driver.sources.processes.slab[process];
                // The handle stays active, as in the parent, but has no child any more.
                entry.running = false;
                entry.status = None;
                entry.queued = false;
            }
        }
        self.driver.sources.processes.ended.clear();
        self.driver.sources.processes.ended_left = 0;
    }
}
