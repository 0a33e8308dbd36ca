//! The simulated kernel, as far as the model knows it: time, descriptors and the script.

use blacklight_engine::{Faults, RawFd};
use rustix::event::PollFlags;

pub(crate) const POLLIN: u32 = PollFlags::IN.bits() as u32;
pub(crate) const POLLPRI: u32 = PollFlags::PRI.bits() as u32;
pub(crate) const POLLOUT: u32 = PollFlags::OUT.bits() as u32;
pub(crate) const POLLERR: u32 = PollFlags::ERR.bits() as u32;
pub(crate) const POLLHUP: u32 = PollFlags::HUP.bits() as u32;
pub(crate) const POLLNVAL: u32 = PollFlags::NVAL.bits() as u32;
pub(crate) const POLLRDHUP: u32 = PollFlags::RDHUP.bits() as u32;

/// An action of the script.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Act {
    Ready(RawFd, u32),
    /// A send to an async handle, by its number.
    Send(usize),
}

/// Which faults may strike. How often they do is nothing that the model could use.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub(crate) struct May {
    pub(crate) end_early: bool,
    pub(crate) refuse: bool,
    pub(crate) break_down: bool,
}

impl From<Faults> for May {
    fn from(faults: Faults) -> May {
        May {
            end_early: faults.interrupt != 0 || faults.spurious != 0,
            refuse: faults.refuse != 0,
            break_down: faults.break_down != 0,
        }
    }
}

#[derive(Clone, PartialEq, Debug)]
pub(crate) struct World {
    pub(crate) now_ns: u64,
    /// The open descriptors and what is ready on each.
    fds: Vec<(RawFd, u32)>,
    /// The actions that are still to come and their times, in the order of scheduling.
    script: Vec<(u64, Act)>,
    pub(crate) may: May,
    /// Whether a sleep costs something, so that loops spin.
    pub(crate) is_dear: bool,
}

impl World {
    pub(crate) fn new(now_ns: u64) -> World {
        World {
            now_ns,
            fds: Vec::new(),
            script: Vec::new(),
            may: May::default(),
            is_dear: false,
        }
    }

    /// Opens a descriptor, or opens something else under its number.
    pub(crate) fn open(&mut self, fd: RawFd) {
        self.close(fd);
        self.fds.push((fd, 0));
    }

    pub(crate) fn close(&mut self, fd: RawFd) {
        self.fds.retain(|&(open, _)| open != fd);
    }

    /// The conditions that a descriptor meets, or `None` if it is not open.
    pub(crate) fn ready(&self, fd: RawFd) -> Option<u32> {
        let found = self.fds.iter().find(|&&(open, _)| open == fd);
        found.map(|&(_, ready)| ready)
    }

    pub(crate) fn set_ready(&mut self, fd: RawFd, mask: u32) {
        for (open, ready) in &mut self.fds {
            if *open == fd {
                *ready = mask;
            }
        }
    }

    pub(crate) fn schedule(&mut self, delay_ns: u64, act: Act) {
        self.script.push((self.now_ns + delay_ns, act));
    }

    pub(crate) fn has_scheduled(&self, act: Act) -> bool {
        self.script.iter().any(|&(_, scheduled)| scheduled == act)
    }

    /// When the script goes on.
    pub(crate) fn next_act_ns(&self) -> Option<u64> {
        self.script.iter().map(|&(at_ns, _)| at_ns).min()
    }

    /// Does what is due by now. Returns the async handles that were sent to, in order.
    pub(crate) fn act(&mut self) -> Vec<usize> {
        let mut sends = Vec::new();
        while let Some(at_ns) = self.next_act_ns()
            && at_ns <= self.now_ns
        {
            let first = self.script.iter().position(|&(at, _)| at == at_ns);
            match self
                .script
                .remove(first.expect("the least is one of them"))
                .1
            {
                Act::Ready(fd, mask) => self.set_ready(fd, mask),
                Act::Send(id) => sends.push(id),
            }
        }
        sends
    }
}
