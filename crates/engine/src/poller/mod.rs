//! Pollers: who tells which descriptors are ready, and what time it is.
//!
//! One file per mechanism, all behind the methods of [`Poller`]. A poller keeps the set of
//! watched descriptors with their masks (the kernel's poll bits) and an opaque word each,
//! and after each wait a batch of events, which stays in place until the next. It also
//! watches the mailbox's eventfd, and sees to it that a wake-up that has been noticed is
//! not noticed again; the engine itself looks into the mailbox.

mod epoll;
mod poll;
mod select;
mod sim;

pub(crate) use sim::Call;
pub use sim::{Action, Faults, Sim};

use crate::wakeup::Mailbox;
use blacklight_sys::signal::SignalSet;
use blacklight_sys::{Errno, RawFd, Timeout, clock, fd};
use std::sync::Arc;

/// The events that one wait reports at the most.
const BATCH: usize = 1024;

/// The mechanisms there are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mechanism {
    /// select(2): the oldest, for descriptors below 1024.
    Select,
    /// poll(2): no limit, but each wait costs as much as there are descriptors.
    Poll,
    /// epoll(7): each wait costs as much as there are events.
    Epoll,
    /// No kernel at all: time and readiness are made up from a seed.
    Sim(u64),
}

impl Mechanism {
    /// The mechanism with this name: `select`, `poll` or `epoll`.
    pub fn from_name(name: &str) -> Option<Mechanism> {
        match name {
            "select" => Some(Mechanism::Select),
            "poll" => Some(Mechanism::Poll),
            "epoll" => Some(Mechanism::Epoll),
            _ => None,
        }
    }

    /// The mechanism that the environment asks for by `BLACKLIGHT_POLLER`, if it does. An unknown
    /// name is `EINVAL`, not a guess.
    pub fn from_environment() -> Result<Option<Mechanism>, Errno> {
        match std::env::var_os("BLACKLIGHT_POLLER") {
            Some(name) if !name.is_empty() => {
                let mechanism = name.to_str().and_then(Mechanism::from_name);
                mechanism.map(Some).ok_or(Errno::EINVAL)
            }
            _ => Ok(None),
        }
    }

    /// The mechanism's name.
    pub fn name(self) -> &'static str {
        match self {
            Mechanism::Select => "select",
            Mechanism::Poll => "poll",
            Mechanism::Epoll => "epoll",
            Mechanism::Sim(_) => "sim",
        }
    }
}

#[derive(Debug)]
pub(crate) enum Poller {
    Select(Box<select::Select>),
    Poll(poll::Poll),
    Epoll(epoll::Epoll),
    Sim(Box<Sim>),
}

macro_rules! each {
    ($self:expr, $poller:ident => $call:expr) => {
        match $self {
            Poller::Select($poller) => $call,
            Poller::Poll($poller) => $call,
            Poller::Epoll($poller) => $call,
            Poller::Sim($poller) => $call,
        }
    };
}

impl Poller {
    /// The mechanism asked for; else epoll, or poll where epoll is not permitted.
    pub(crate) fn new(
        mechanism: Option<Mechanism>,
        mailbox: &Arc<Mailbox>,
    ) -> Result<Poller, Errno> {
        match mechanism {
            Some(Mechanism::Select) => Ok(Poller::Select(Box::new(select::Select::new(
                mailbox.clone(),
            )?))),
            Some(Mechanism::Poll) => Ok(Poller::Poll(poll::Poll::new(mailbox.clone())?)),
            Some(Mechanism::Sim(seed)) => Ok(Poller::Sim(Box::new(Sim::new(seed)))),
            Some(Mechanism::Epoll) | None => match epoll::Epoll::new(mailbox) {
                Err(Errno::EPERM | Errno::ENOSYS | Errno::EACCES) => {
                    Ok(Poller::Poll(poll::Poll::new(mailbox.clone())?))
                }
                epoll => epoll.map(Poller::Epoll),
            },
        }
    }

    pub(crate) fn mechanism(&self) -> Mechanism {
        match self {
            Poller::Select(_) => Mechanism::Select,
            Poller::Poll(_) => Mechanism::Poll,
            Poller::Epoll(_) => Mechanism::Epoll,
            Poller::Sim(sim) => Mechanism::Sim(sim.seed()),
        }
    }

    /// A new poller of the same kind in the place of this one, watching nothing yet.
    pub(crate) fn renew(&mut self, mailbox: &Arc<Mailbox>) -> Result<(), Errno> {
        match self {
            Poller::Sim(sim) => sim.forget_all(),
            _ => *self = Poller::new(Some(self.mechanism()), mailbox)?,
        }
        Ok(())
    }

    pub(crate) fn sim(&mut self) -> Option<&mut Sim> {
        match self {
            Poller::Sim(sim) => Some(sim),
            _ => None,
        }
    }

    /// Whether a batch says of a socket that it has failed. What select(2) says is the same for
    /// one that has not.
    pub(crate) fn tells_errors(&self) -> bool {
        matches!(self, Poller::Epoll(_) | Poller::Poll(_))
    }

    pub(crate) fn is_simulated(&self) -> bool {
        matches!(self, Poller::Sim(_))
    }

    #[inline]
    pub(crate) fn now_ns(&self) -> u64 {
        match self {
            Poller::Sim(sim) => sim.now_ns(),
            _ => clock::monotonic_ns(),
        }
    }

    /// How much of a call on a socket may be done, before it is made: all of `len`, unless a
    /// simulated kernel has its moods.
    #[inline]
    pub(crate) fn admit(&mut self, call: Call, fd: RawFd, len: usize) -> Result<usize, Errno> {
        match self {
            Poller::Sim(sim) => sim.admit(call, fd, len),
            _ => Ok(len),
        }
    }

    pub(crate) fn backend_fd(&self) -> Option<RawFd> {
        match self {
            Poller::Epoll(epoll) => Some(epoll.fd()),
            _ => None,
        }
    }

    /// Whether the descriptor can be watched at all.
    pub(crate) fn check(&self, fd: RawFd) -> Result<(), Errno> {
        match self {
            Poller::Sim(sim) => return sim.check(fd),
            Poller::Select(_) => select::check(fd)?,
            Poller::Epoll(epoll) => return epoll.check(fd),
            Poller::Poll(_) => {}
        }
        fd::check_pollable(fd)
    }

    /// Starts watching a descriptor.
    pub(crate) fn add(&mut self, fd: RawFd, mask: u32, data: u64) -> Result<(), Errno> {
        each!(self, poller => poller.add(fd, mask, data))
    }

    /// Changes what a watched descriptor is watched for.
    pub(crate) fn modify(&mut self, fd: RawFd, mask: u32, data: u64) -> Result<(), Errno> {
        each!(self, poller => poller.modify(fd, mask, data))
    }

    /// Whether it can tell of changes only, and being asked costs no more than what it tells.
    pub(crate) fn is_epoll(&self) -> bool {
        matches!(self, Poller::Epoll(_))
    }

    /// Stops watching a descriptor, which may have been closed already.
    pub(crate) fn remove(&mut self, fd: RawFd) {
        each!(self, poller => poller.remove(fd));
    }

    /// Stops watching a descriptor that was to be reported once, has been, and is closed next.
    pub(crate) fn forget(&mut self, fd: RawFd) {
        match self {
            Poller::Epoll(epoll) => epoll.forget(),
            other => other.remove(fd),
        }
    }

    /// Whether nothing is watched but the mailbox.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        match self {
            Poller::Select(select) => select.is_idle(),
            Poller::Poll(poll) => poll.is_idle(),
            Poller::Epoll(epoll) => epoll.is_idle(),
            // A simulated kernel is asked every time: its faults are part of the game.
            Poller::Sim(_) => false,
        }
    }

    /// Waits for events, for a wake-up, or for the time to pass, whichever is first.
    pub(crate) fn wait(
        &mut self,
        timeout: Timeout,
        blocked: Option<&SignalSet>,
    ) -> Result<(), Errno> {
        let result = match self {
            Poller::Select(select) => select.wait(timeout, blocked),
            Poller::Poll(poll) => poll.wait(timeout, blocked),
            Poller::Epoll(epoll) => epoll.wait(timeout, blocked),
            Poller::Sim(sim) => sim.wait(timeout),
        };
        if result.is_err() {
            self.clear();
        }
        result
    }

    /// Looks for events without waiting, where [that is cheap](Poller::is_epoll); how many there
    /// are.
    #[inline]
    pub(crate) fn look(&mut self) -> Result<usize, Errno> {
        match self {
            Poller::Epoll(epoll) => epoll.wait(Some(0), None).map(|()| epoll.batch().len()),
            _ => Ok(0),
        }
    }

    /// The number of events in the batch.
    pub(crate) fn len(&self) -> usize {
        each!(self, poller => poller.batch().len())
    }

    /// An event of the batch: what is ready, and the word that came with the descriptor.
    #[inline]
    pub(crate) fn event(&self, at: usize) -> Option<(u32, u64)> {
        each!(self, poller => poller.batch().get(at).copied())
    }

    /// Whether the batch may have been cut. The mailbox may have had a place in it.
    pub(crate) fn is_full(&self) -> bool {
        self.len() + 1 >= BATCH
    }

    /// Adds an event to the batch.
    pub(crate) fn tell(&mut self, event: (u32, u64)) {
        each!(self, poller => poller.batch_mut().push(event));
    }

    /// Empties the batch.
    pub(crate) fn clear(&mut self) {
        each!(self, poller => poller.batch_mut().clear());
    }
}
