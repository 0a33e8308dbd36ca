//! Pollers, which report ready descriptors, and the clock.
//!
//! One file per mechanism, all behind the methods of [`Poller`]. A poller owns the set of watched
//! descriptors, each with its [`Interest`], its [`Trigger`] and an opaque word, and the batch of
//! events of the last wait. It also watches the mailbox's waker and consumes its signals, so that
//! each ends one wait only; the driver reads the mailbox.
//!
//! Mechanisms declare their differences by [`Capability`]s. No code outside of this folder depends
//! on the mechanism in use.

mod bits;
#[cfg_attr(not(target_os = "linux"), path = "no_epoll.rs")]
mod epoll;
mod poll;
mod select;
mod sim;

pub(crate) use sim::Call;
pub use sim::{Action, Faults, Sim, Tally};

use crate::mailbox::Mailbox;
use crate::patience::Processor;
use crate::readiness::{Interest, Readiness, Trigger};
use blacklight_sys::fallible::{self, Arc};
use blacklight_sys::signal::SignalSet;
use blacklight_sys::{Errno, RawFd, Timeout, clock, fd};

/// The most events that one wait reports.
const BATCH: usize = 512;

/// A descriptor that a poller is asked to watch, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Registration {
    pub(crate) fd: RawFd,
    pub(crate) interest: Interest,
    pub(crate) trigger: Trigger,
    /// A word that comes back with each event of the descriptor.
    pub(crate) data: u64,
}

/// The events of a wait: the readiness of a descriptor, and the word that was registered with it.
type Batch = Vec<(Readiness, u64)>;

/// A kind of poller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mechanism {
    /// select(2): the oldest, for descriptors below 1024.
    Select,
    /// poll(2): no limit, but the cost of a wait grows with the number of descriptors.
    Poll,
    /// epoll(7): the cost of a wait grows with the number of events only.
    Epoll,
    /// No kernel: time and readiness are simulated from a seed. For tests.
    #[doc(hidden)]
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

    /// The mechanism that `BLACKLIGHT_POLLER` names in the environment, if it is set. `EINVAL` for
    /// an unknown name.
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

/// An ability that some mechanisms have and others lack. [`Poller::backend_fd`] says whether a mechanism
/// has a descriptor that another loop can wait for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Capability {
    /// Edge-triggered registrations, which are reported when a condition begins. Such a mechanism
    /// watches open files, not descriptor numbers: it does not notice when a program puts another
    /// file behind a number.
    Edges,
    /// Reports that a socket has failed. select(2) cannot report that apart from readiness.
    Errors,
    /// Polling without a wait costs no more than the events that it finds, so that spinning may pay.
    CheapLooks,
}

#[derive(Debug)]
enum Backend {
    Select(Box<select::Select>),
    Poll(poll::Poll),
    Epoll(epoll::Epoll),
    Sim(Box<Sim>),
}

#[derive(Debug)]
pub(crate) struct Poller {
    backend: Backend,
    batch: Batch,
    /// The first event of the batch that has not been taken.
    next: usize,
}

macro_rules! each {
    ($self:expr, $poller:ident => $call:expr) => {
        match $self {
            Backend::Select($poller) => $call,
            Backend::Poll($poller) => $call,
            Backend::Epoll($poller) => $call,
            Backend::Sim($poller) => $call,
        }
    };
}

impl Backend {
    /// The given mechanism; by default epoll, or poll where there is no epoll or it is not permitted.
    fn new(mechanism: Option<Mechanism>, mailbox: &Arc<Mailbox>) -> Result<Backend, Errno> {
        match mechanism {
            Some(Mechanism::Select) => {
                let select = select::Select::new(mailbox.clone())?;
                Ok(Backend::Select(fallible::try_box(select)?))
            }
            Some(Mechanism::Poll) => Ok(Backend::Poll(poll::Poll::new(mailbox.clone())?)),
            Some(Mechanism::Sim(seed)) => {
                Ok(Backend::Sim(Box::new(Sim::new(seed, mailbox.clone()))))
            }
            Some(Mechanism::Epoll) | None => match epoll::Epoll::new(mailbox) {
                Err(Errno::EPERM | Errno::ENOSYS | Errno::EACCES) => {
                    Ok(Backend::Poll(poll::Poll::new(mailbox.clone())?))
                }
                epoll => epoll.map(Backend::Epoll),
            },
        }
    }
}

impl Processor for Poller {
    #[inline]
    fn now_ns(&self) -> u64 {
        match &self.backend {
            Backend::Sim(sim) => sim.now_ns(),
            _ => clock::monotonic_ns(),
        }
    }

    #[inline]
    fn pause(&mut self) {
        match &mut self.backend {
            Backend::Sim(sim) => sim.pause(),
            _ => std::thread::yield_now(),
        }
    }
}

impl Poller {
    /// A poller of the given mechanism, or of the best available.
    pub(crate) fn new(
        mechanism: Option<Mechanism>,
        mailbox: &Arc<Mailbox>,
    ) -> Result<Poller, Errno> {
        // Up to as many events again can be pushed after a wait that has filled the batch.
        let mut batch = Vec::new();
        batch.try_reserve_exact(2 * BATCH)?;
        let backend = Backend::new(mechanism, mailbox)?;
        Ok(Poller {
            backend,
            batch,
            next: 0,
        })
    }

    pub(crate) fn mechanism(&self) -> Mechanism {
        match &self.backend {
            Backend::Select(_) => Mechanism::Select,
            Backend::Poll(_) => Mechanism::Poll,
            Backend::Epoll(_) => Mechanism::Epoll,
            Backend::Sim(sim) => Mechanism::Sim(sim.seed()),
        }
    }

    /// Replaces this poller by a new one of the same mechanism, which watches nothing yet.
    pub(crate) fn renew(&mut self, mailbox: &Arc<Mailbox>) -> Result<(), Errno> {
        match &mut self.backend {
            Backend::Sim(sim) => sim.forget_all(),
            _ => self.backend = Backend::new(Some(self.mechanism()), mailbox)?,
        }
        self.clear();
        Ok(())
    }

    pub(crate) fn sim(&mut self) -> Option<&mut Sim> {
        match &mut self.backend {
            Backend::Sim(sim) => Some(sim),
            _ => None,
        }
    }

    /// Whether the mechanism can do this.
    #[inline]
    pub(crate) fn can(&self, what: Capability) -> bool {
        match &self.backend {
            Backend::Select(_) => select::can(what),
            Backend::Poll(_) => poll::can(what),
            Backend::Epoll(_) => epoll::can(what),
            Backend::Sim(sim) => sim.can(what),
        }
    }

    /// Makes a descriptor non-blocking, unless it is simulated.
    pub(crate) fn set_nonblocking(&self, fd: RawFd) -> Result<(), Errno> {
        match &self.backend {
            Backend::Sim(_) => Ok(()),
            _ => fd::set_nonblocking(fd, true),
        }
    }

    /// The processor time of this thread.
    pub(crate) fn thread_cpu_ns(&self) -> u64 {
        match &self.backend {
            Backend::Sim(sim) => sim.thread_cpu_ns(),
            _ => clock::thread_cpu_ns(),
        }
    }

    /// How much of a call on a socket may be done: all of `len`, unless the simulated kernel injects
    /// a fault.
    #[inline]
    pub(crate) fn admit(&mut self, call: Call, fd: RawFd, len: usize) -> Result<usize, Errno> {
        match &mut self.backend {
            Backend::Sim(sim) => sim.admit(call, fd, len),
            _ => Ok(len),
        }
    }

    pub(crate) fn backend_fd(&self) -> Option<RawFd> {
        match &self.backend {
            Backend::Epoll(epoll) => Some(epoll.fd()),
            _ => None,
        }
    }

    /// Whether the descriptor can be watched at all.
    pub(crate) fn check(&self, fd: RawFd) -> Result<(), Errno> {
        match &self.backend {
            Backend::Sim(sim) => return sim.check(fd),
            Backend::Select(_) => select::check(fd)?,
            Backend::Epoll(epoll) => return epoll.check(fd),
            Backend::Poll(_) => {}
        }
        fd::check_pollable(fd)
    }

    /// Starts watching a descriptor.
    pub(crate) fn add(&mut self, wanted: Registration) -> Result<(), Errno> {
        each!(&mut self.backend, poller => poller.add(wanted))
    }

    /// Changes what a watched descriptor is watched for.
    pub(crate) fn modify(&mut self, wanted: Registration) -> Result<(), Errno> {
        each!(&mut self.backend, poller => poller.modify(wanted))
    }

    /// Whether the poller waits for events of a real kernel.
    pub(crate) fn reaches_kernel(&self) -> bool {
        match &self.backend {
            Backend::Sim(sim) => sim.uses_kernel(),
            _ => true,
        }
    }

    /// Whether it may pay to spin for the mailbox. In a simulation only the script sends, and no
    /// pool completes requests in simulated time.
    pub(crate) fn may_spin_for_mail(&self, waits_for_pool: bool) -> bool {
        match &self.backend {
            Backend::Sim(sim) => sim.may_spin() && !waits_for_pool,
            _ => true,
        }
    }

    /// Stops watching a descriptor, which the program may have closed already.
    pub(crate) fn remove(&mut self, fd: RawFd) {
        each!(&mut self.backend, poller => poller.remove(fd));
    }

    /// Stops watching a one-shot descriptor that has been reported and that the caller closes next.
    pub(crate) fn forget(&mut self, fd: RawFd) {
        match &mut self.backend {
            Backend::Epoll(epoll) => epoll.forget(),
            Backend::Sim(sim) => sim.forget(fd),
            Backend::Select(_) | Backend::Poll(_) => self.remove(fd),
        }
    }

    /// Whether the poller watches nothing but the waker.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        match &self.backend {
            Backend::Select(select) => select.is_idle(),
            Backend::Poll(poll) => poll.is_idle(),
            Backend::Epoll(epoll) => epoll.is_idle(),
            // A simulated kernel is asked every time, so that it can inject faults.
            Backend::Sim(_) => false,
        }
    }

    /// Waits for events, for a wake-up or until the time-out, whichever is first.
    pub(crate) fn wait(
        &mut self,
        timeout: Timeout,
        blocked: Option<&SignalSet>,
    ) -> Result<(), Errno> {
        self.clear();
        let batch = &mut self.batch;
        let result = match &mut self.backend {
            Backend::Select(select) => select.wait(timeout, blocked, batch),
            Backend::Poll(poll) => poll.wait(timeout, blocked, batch),
            Backend::Epoll(epoll) => epoll.wait(timeout, blocked, batch),
            Backend::Sim(sim) => sim.wait(timeout, batch),
        };
        if result.is_err() {
            self.clear();
        }
        result
    }

    /// Polls without waiting, where [that is cheap](Capability::CheapLooks). Returns the number of
    /// events.
    #[inline]
    pub(crate) fn look(&mut self) -> Result<usize, Errno> {
        self.clear();
        match &mut self.backend {
            Backend::Epoll(epoll) => epoll.wait(Some(0), None, &mut self.batch)?,
            Backend::Sim(sim) => sim.look(&mut self.batch)?,
            Backend::Select(_) | Backend::Poll(_) => {}
        }
        Ok(self.batch.len())
    }

    /// The number of events in the batch.
    pub(crate) fn len(&self) -> usize {
        self.batch.len()
    }

    /// Takes the next event of the batch: the readiness, and the descriptor's word.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<(Readiness, u64)> {
        let event = self.batch.get(self.next).copied()?;
        self.next += 1;
        Some(event)
    }

    /// The events of the batch that have not been taken.
    pub(crate) fn rest(&self) -> &[(Readiness, u64)] {
        &self.batch[self.next..]
    }

    /// Whether the kernel may have more events than fit into the batch, of which the waker may have
    /// taken one place.
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
