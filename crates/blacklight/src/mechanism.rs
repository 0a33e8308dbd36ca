//! The mechanism that a loop polls with.

use blacklight_engine as engine;

/// The system call that a loop polls with; see [`Builder::poller`](crate::Builder::poller).
///
/// ```
/// use blacklight::{Loop, Mechanism};
///
/// let poll = Mechanism::from_name("poll").unwrap();
/// assert_eq!(Loop::builder().poller(poll).build()?.mechanism().name(), "poll");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Mechanism {
    /// select(2): the oldest, for descriptors below 1024.
    Select,
    /// poll(2): no limit, but the cost of a wait grows with the number of descriptors.
    Poll,
    /// epoll(7): the cost of a wait grows with the number of events only.
    Epoll,
    /// No kernel, for this crate's own tests.
    #[doc(hidden)]
    Simulated(Seed),
}

/// What a simulated kernel is made from. Its value is private, so programs cannot ask for one.
#[doc(hidden)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seed(pub(crate) u64);

impl Mechanism {
    /// The mechanism with this name: `select`, `poll` or `epoll`.
    ///
    /// ```
    /// use blacklight::Mechanism;
    ///
    /// assert_eq!(Mechanism::from_name("epoll"), Some(Mechanism::Epoll));
    /// assert_eq!(Mechanism::from_name("kqueue"), None);
    /// ```
    pub fn from_name(name: &str) -> Option<Mechanism> {
        engine::Mechanism::from_name(name).map(Mechanism::of)
    }

    /// The mechanism's name.
    ///
    /// ```
    /// use blacklight::Mechanism;
    ///
    /// assert_eq!(Mechanism::Epoll.name(), "epoll");
    /// ```
    pub fn name(self) -> &'static str {
        self.of_engine().name()
    }
}

impl Mechanism {
    pub(crate) fn of(mechanism: engine::Mechanism) -> Mechanism {
        match mechanism {
            engine::Mechanism::Select => Mechanism::Select,
            engine::Mechanism::Poll => Mechanism::Poll,
            engine::Mechanism::Epoll => Mechanism::Epoll,
            engine::Mechanism::Sim(seed) => Mechanism::Simulated(Seed(seed)),
        }
    }

    pub(crate) fn of_engine(self) -> engine::Mechanism {
        match self {
            Mechanism::Select => engine::Mechanism::Select,
            Mechanism::Poll => engine::Mechanism::Poll,
            Mechanism::Epoll => engine::Mechanism::Epoll,
            Mechanism::Simulated(seed) => engine::Mechanism::Sim(seed.0),
        }
    }
}
