//! Process handles: children, and their end.
//!
//! The end of a child is awaited by its [`ChildWatch`], whose descriptor becomes readable when the
//! child ends: each end costs the same however many children there are, and the loop waits for its
//! own children only. Where the platform has no such descriptor, or the poller refuses it, the loop
//! watches for SIGCHLD and then examines all children that it awaits in this way.
//!
//! SIGCHLD is also watched where the program ignores it: otherwise the kernel would not keep the exit
//! status of children.
//!
//! Exits are handed out after everything else that a poll has brought, as in libuv, where they
//! are signals: the program can read what a child has written before it hears of the exit. Where the
//! program watches for SIGCHLD itself, the loop reaps its children before it hands out the signal.

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
    /// How the child ended, once it has been reaped and before that is handed out.
    status: Option<Status>,
    /// The child's descriptor and its watcher, while the child is awaited by it.
    watch: Option<ChildWatch>,
    watcher: u32,
    /// SIGCHLD must be watched for as long as it runs.
    needs_signal: bool,
    /// In the queue of those to be looked at.
    queued: bool,
}

/// A child's exit status and the signal that ended it or zero; or a negative error number.
type Status = (i64, i32);

/// The children of a loop.
#[derive(Debug)]
pub(crate) struct Processes {
    slab: Slab<Process>,
    /// Those that may have ended.
    ended: VecDeque<u32>,
    /// How many of them belong to the phase in progress.
    ended_left: usize,
    /// The watcher for SIGCHLD, and how many children need it.
    child_signal: u32,
    needs_signal: usize,
}

impl Process {
    /// How the child ended, if it has.
    fn reap(&mut self) -> Option<Status> {
        if self.status.is_none() {
            self.status = match process::wait(self.pid) {
                Ok(status) => status,
                // Somebody else has waited for our child, and nobody will ever know.
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

    /// Whether a child is to be looked at.
    #[inline]
    pub(crate) fn has_ended(&self) -> bool {
        !self.ended.is_empty()
    }

    /// Begins to hand out the children that are to be looked at now.
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
        // Room for every process once.
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

    /// Starts a child; its number. [`Event::Exit`] follows when it has ended. `EBUSY` if the
    /// handle has one already.
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
                self.spare_child_signal(process);
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

    /// Awaits a child by SIGCHLD. The child may have ended already.
    fn await_child_by_signal(&mut self, process: u32) {
        self.release_watch(process);
        // Without memory for the watcher the child is looked at whenever the loop turns.
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

    fn spare_child_signal(&mut self, process: u32) {
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

    /// Sends a signal to the child; zero only asks whether it is there. `ESRCH` once it has
    /// ended and that was told, whoever has its number by then.
    pub fn process_kill(&self, key: Key, signum: i32) -> Result<(), Errno> {
        let entry = &self.driver.sources.processes.slab[self.open_process(key)?];
        match &entry.watch {
            _ if !entry.running || entry.status.is_some() => Err(Errno::ESRCH),
            Some(watch) => watch.kill(signum),
            None => process::kill(entry.pid, signum),
        }
    }

    /// The poller says that a child has ended, or that it cannot watch for that.
    pub(crate) fn process_ready(&mut self, process: u32, result: Result<Readiness, Errno>) {
        match result {
            // The descriptor has told what it can tell. The child keeps its number until we wait
            // for it.
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
            // The program has closed the descriptor, which tells nothing any more.
            _ => self.await_child_by_signal(process),
        }
    }

    /// Some child has ended: looks at all that are awaited by signal.
    pub(crate) fn examine_children(&mut self) {
        for process in 0..self.driver.sources.processes.slab.capacity() as u32 {
            if self.driver.sources.processes.slab[process].watch.is_none() {
                self.driver.sources.processes.queue(process);
            }
        }
    }

    /// Reaps the loop's own children that have ended, before somebody is told of SIGCHLD: programs
    /// that watch for it themselves wait for all the children they know of, and would take the
    /// status from us.
    pub(crate) fn reap_children(&mut self) {
        for process in 0..self.driver.sources.processes.slab.capacity() as u32 {
            let entry = &mut self.driver.sources.processes.slab[process];
            if entry.running && entry.reap().is_some() {
                self.driver.sources.processes.queue(process);
            }
        }
    }

    /// The next child that has ended.
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
                // Without memory for the watcher the child is looked at on every turn.
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

    /// Does not await the child any more.
    fn end_process(&mut self, process: u32) -> u32 {
        self.release_watch(process);
        self.spare_child_signal(process);
        let entry = &mut self.driver.sources.processes.slab[process];
        entry.running = false;
        entry.status = None;
        let handle = entry.handle;
        self.handles.set_active(handle, false);
        handle
    }

    /// Forgets the handle. A child that runs is left alone: its end is not ours to see.
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

    /// In the child of a fork: the children are the parent's, and nothing is heard of them.
    pub(crate) fn disown_children(&mut self) {
        for process in 0..self.driver.sources.processes.slab.capacity() as u32 {
            if self.driver.sources.processes.slab[process].running {
                self.release_watch(process);
                self.spare_child_signal(process);
                let entry = &mut self.driver.sources.processes.slab[process];
                // Still active, as its handle's user knows it, but never looked at.
                entry.running = false;
                entry.status = None;
                entry.queued = false;
            }
        }
        self.driver.sources.processes.ended.clear();
        self.driver.sources.processes.ended_left = 0;
    }
}
