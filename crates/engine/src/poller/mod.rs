//! Pollers, which tell which descriptors are ready, and what time it is.
//!
//! One file per mechanism, all behind the methods of [`Poller`]. A poller keeps the set of
//! watched descriptors, each with its [`Interest`], its [`Trigger`] and an opaque word,
//! and after each wait a batch of events, which stays in place until the next. It also
//! watches the mailbox's waker, and sees to it that a wake-up that has been noticed is
//! not noticed again; the driver looks into the mailbox.
//!
//! What mechanisms differ in, each says by its [`Capability`]s. Nothing outside of this folder asks which
//! mechanism is in use.

mod bits;
mod epoll;
mod poll;
mod select;
mod sim;

pub(crate) use sim::Call;
pub use sim::{Action, Faults, Sim, Tally};

use crate::mailbox::Mailbox;
use crate::readiness::{Interest, Readiness, Trigger};
use blacklight_sys::fallible::{self, Arc};
use blacklight_sys::signal::SignalSet;
use blacklight_sys::{Errno, RawFd, Timeout, clock, fd};

/// The events that one wait reports at the most.
const BATCH: usize = 512;

/// What a wait has brought: what is ready, and the word that came with the descriptor.
type Batch = Vec<(Readiness, u64)>;

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

/// What some mechanisms can do and others cannot. Whether a mechanism has a descriptor that another loop can
/// wait for, [`Poller::backend_fd`] says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Capability {
    /// Reports when a condition begins, and need not look at the descriptor on each wait. Such a mechanism
    /// knows files, not numbers: it does not notice when a program puts another file behind a number.
    Edges,
    /// Says of a socket that it has failed. What select(2) says is the same for one that has not.
    Errors,
    /// A look costs no more than what it finds, so that it may pay to look again and again.
    CheapLooks,
}

#[derive(Debug)]
enum Kind {
    Select(Box<select::Select>),
    Poll(poll::Poll),
    Epoll(epoll::Epoll),
    Sim(Box<Sim>),
}

#[derive(Debug)]
pub(crate) struct Poller {
    kind: Kind,
    batch: Batch,
    /// The first event of the batch that nobody has asked for.
    next: usize,
}

macro_rules! each {
    ($self:expr, $poller:ident => $call:expr) => {
        match $self {
            Kind::Select($poller) => $call,
            Kind::Poll($poller) => $call,
            Kind::Epoll($poller) => $call,
            Kind::Sim($poller) => $call,
        }
    };
}

impl Kind {
    /// The mechanism asked for; else epoll, or poll where epoll is not permitted.
    fn new(mechanism: Option<Mechanism>, mailbox: &Arc<Mailbox>) -> Result<Kind, Errno> {
        match mechanism {
            Some(Mechanism::Select) => {
                let select = select::Select::new(mailbox.clone())?;
                Ok(Kind::Select(fallible::try_box(select)?))
            }
            Some(Mechanism::Poll) => Ok(Kind::Poll(poll::Poll::new(mailbox.clone())?)),
            Some(Mechanism::Sim(seed)) => Ok(Kind::Sim(Box::new(Sim::new(seed, mailbox.clone())))),
            Some(Mechanism::Epoll) | None => match epoll::Epoll::new(mailbox) {
                Err(Errno::EPERM | Errno::ENOSYS | Errno::EACCES) => {
                    Ok(Kind::Poll(poll::Poll::new(mailbox.clone())?))
                }
                epoll => epoll.map(Kind::Epoll),
            },
        }
    }
}

impl Poller {
    /// The mechanism asked for, or the best there is.
    pub(crate) fn new(
        mechanism: Option<Mechanism>,
        mailbox: &Arc<Mailbox>,
    ) -> Result<Poller, Errno> {
        // As many again may be told of once more after a wait that has filled its part.
        let mut batch = Vec::new();
        batch.try_reserve_exact(2 * BATCH)?;
        let kind = Kind::new(mechanism, mailbox)?;
        Ok(Poller {
            kind,
            batch,
            next: 0,
        })
    }

    pub(crate) fn mechanism(&self) -> Mechanism {
        match &self.kind {
            Kind::Select(_) => Mechanism::Select,
            Kind::Poll(_) => Mechanism::Poll,
            Kind::Epoll(_) => Mechanism::Epoll,
            Kind::Sim(sim) => Mechanism::Sim(sim.seed()),
        }
    }

    /// A new poller of the same kind in the place of this one, watching nothing yet.
    pub(crate) fn renew(&mut self, mailbox: &Arc<Mailbox>) -> Result<(), Errno> {
        match &mut self.kind {
            Kind::Sim(sim) => sim.forget_all(),
            _ => self.kind = Kind::new(Some(self.mechanism()), mailbox)?,
        }
        self.clear();
        Ok(())
    }

    pub(crate) fn sim(&mut self) -> Option<&mut Sim> {
        match &mut self.kind {
            Kind::Sim(sim) => Some(sim),
            _ => None,
        }
    }

    /// Whether the mechanism can do this.
    #[inline]
    pub(crate) fn can(&self, what: Capability) -> bool {
        match &self.kind {
            Kind::Select(_) => select::can(what),
            Kind::Poll(_) => poll::can(what),
            Kind::Epoll(_) => epoll::can(what),
            Kind::Sim(sim) => sim.can(what),
        }
    }

    /// Makes a descriptor non-blocking. Simulated ones are mere numbers.
    pub(crate) fn set_nonblocking(&self, fd: RawFd) -> Result<(), Errno> {
        match &self.kind {
            Kind::Sim(_) => Ok(()),
            _ => fd::set_nonblocking(fd, true),
        }
    }

    #[inline]
    pub(crate) fn now_ns(&self) -> u64 {
        match &self.kind {
            Kind::Sim(sim) => sim.now_ns(),
            _ => clock::monotonic_ns(),
        }
    }

    /// The processor time of this thread.
    pub(crate) fn thread_cpu_ns(&self) -> u64 {
        match &self.kind {
            Kind::Sim(sim) => sim.thread_cpu_ns(),
            _ => clock::thread_cpu_ns(),
        }
    }

    /// Offers the processor to whoever else could run on it.
    #[inline]
    pub(crate) fn pause(&mut self) {
        match &mut self.kind {
            Kind::Sim(sim) => sim.pause(),
            _ => std::thread::yield_now(),
        }
    }

    /// How much of a call on a socket may be done, before it is made: all of `len`, unless a
    /// simulated kernel has its moods.
    #[inline]
    pub(crate) fn admit(&mut self, call: Call, fd: RawFd, len: usize) -> Result<usize, Errno> {
        match &mut self.kind {
            Kind::Sim(sim) => sim.admit(call, fd, len),
            _ => Ok(len),
        }
    }

    pub(crate) fn backend_fd(&self) -> Option<RawFd> {
        match &self.kind {
            Kind::Epoll(epoll) => Some(epoll.fd()),
            _ => None,
        }
    }

    /// Whether the descriptor can be watched at all.
    pub(crate) fn check(&self, fd: RawFd) -> Result<(), Errno> {
        match &self.kind {
            Kind::Sim(sim) => return sim.check(fd),
            Kind::Select(_) => select::check(fd)?,
            Kind::Epoll(epoll) => return epoll.check(fd),
            Kind::Poll(_) => {}
        }
        fd::check_pollable(fd)
    }

    /// Starts watching a descriptor.
    pub(crate) fn add(
        &mut self,
        fd: RawFd,
        interest: Interest,
        trigger: Trigger,
        data: u64,
    ) -> Result<(), Errno> {
        each!(&mut self.kind, poller => poller.add(fd, interest, trigger, data))
    }

    /// Changes what a watched descriptor is watched for.
    pub(crate) fn modify(
        &mut self,
        fd: RawFd,
        interest: Interest,
        trigger: Trigger,
        data: u64,
    ) -> Result<(), Errno> {
        each!(&mut self.kind, poller => poller.modify(fd, interest, trigger, data))
    }

    /// Whether it reaches a real kernel, and so can wait for what that has to tell.
    pub(crate) fn reaches_kernel(&self) -> bool {
        match &self.kind {
            Kind::Sim(sim) => sim.uses_kernel(),
            _ => true,
        }
    }

    /// Whether it may pay to spin for what other threads send: a simulated kernel has none, but a
    /// script.
    pub(crate) fn may_spin_for_mail(&self, waits_for_pool: bool) -> bool {
        match &self.kind {
            Kind::Sim(sim) => sim.may_spin() && !waits_for_pool,
            _ => true,
        }
    }

    /// Stops watching a descriptor, which may have been closed already.
    pub(crate) fn remove(&mut self, fd: RawFd) {
        each!(&mut self.kind, poller => poller.remove(fd));
    }

    /// Stops watching a descriptor that was to be reported once, has been, and is closed next.
    pub(crate) fn forget(&mut self, fd: RawFd) {
        match &mut self.kind {
            Kind::Epoll(epoll) => epoll.forget(),
            Kind::Sim(sim) => sim.forget(fd),
            Kind::Select(_) | Kind::Poll(_) => self.remove(fd),
        }
    }

    /// Whether nothing is watched but the mailbox.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        match &self.kind {
            Kind::Select(select) => select.is_idle(),
            Kind::Poll(poll) => poll.is_idle(),
            Kind::Epoll(epoll) => epoll.is_idle(),
            // A simulated kernel is asked every time: its faults are part of the game.
            Kind::Sim(_) => false,
        }
    }

    /// Waits for events, for a wake-up, or for the time to pass, whichever is first.
    pub(crate) fn wait(
        &mut self,
        timeout: Timeout,
        blocked: Option<&SignalSet>,
    ) -> Result<(), Errno> {
        self.clear();
        let batch = &mut self.batch;
        let result = match &mut self.kind {
            Kind::Select(select) => select.wait(timeout, blocked, batch),
            Kind::Poll(poll) => poll.wait(timeout, blocked, batch),
            Kind::Epoll(epoll) => epoll.wait(timeout, blocked, batch),
            Kind::Sim(sim) => sim.wait(timeout, batch),
        };
        if result.is_err() {
            self.clear();
        }
        result
    }

    /// Looks for events without waiting, where [that is cheap](Capability::CheapLooks); how many there
    /// are.
    #[inline]
    pub(crate) fn look(&mut self) -> Result<usize, Errno> {
        self.clear();
        match &mut self.kind {
            Kind::Epoll(epoll) => epoll.wait(Some(0), None, &mut self.batch)?,
            Kind::Sim(sim) => sim.look(&mut self.batch)?,
            Kind::Select(_) | Kind::Poll(_) => {}
        }
        Ok(self.batch.len())
    }

    /// The number of events in the batch.
    pub(crate) fn len(&self) -> usize {
        self.batch.len()
    }

    /// The next event of the batch: what is ready, and the word that came with the descriptor.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<(Readiness, u64)> {
        let event = self.batch.get(self.next).copied()?;
        self.next += 1;
        Some(event)
    }

    /// The events of the batch that nobody has asked for.
    pub(crate) fn rest(&self) -> &[(Readiness, u64)] {
        &self.batch[self.next..]
    }

    /// Whether the batch may have been cut. The mailbox may have had a place in it.
    pub(crate) fn is_full(&self) -> bool {
        self.batch.len() + 1 >= BATCH
    }

    /// How many events can be added to the batch.
    pub(crate) fn room(&self) -> usize {
        self.batch.capacity() - self.batch.len()
    }

    /// Adds an event to the batch.
    pub(crate) fn push(&mut self, event: (Readiness, u64)) {
        self.batch.push(event);
    }

    /// Empties the batch.
    pub(crate) fn clear(&mut self) {
        self.batch.clear();
        self.next = 0;
    }
}
