//! Signals: sets of them, and the process's one handler that tells event loops of them.
//!
//! <https://man7.org/linux/man-pages/man7/signal.7.html>
//!
//! A signal handler interrupts any thread at any point, so it may not allocate, lock, or look
//! at anything that another thread could be taking apart. The rules here:
//!
//! - Each loop that watches signals has an *inbox*. Inboxes are never freed, only given to
//!   another loop, and they hang in a list that only grows: the handler can walk it at any
//!   time. Its cost is one step per loop.
//! - The handler counts the signal in the inbox of each loop that is interested in it, marks
//!   it as pending, and wakes the loop if nothing was marked before. It sends nothing that
//!   anybody could forge, and no number of signals overflows anything.
//! - A loop takes all marks at once, *then* reads the counters. Whoever marks after that wakes
//!   the loop again. So the counters that a loop has seen are always behind a wake-up to come.
//! - An inbox that is given back first loses its way to wake the loop, then waits for handlers
//!   that may still be using it.
//! - Which handlers are installed, and for whom, changes under one lock, with all signals
//!   held back. `fork` waits for the lock (see `fork_lock`), so that the child finds it open.
//! - A child made by `fork` inherits handlers and inboxes, but its loops are still its parent's:
//!   they count, and do not wake, until [`Subscription::fork`].

use crate::fallible::Arc;
use crate::fork_lock::{ForkGuard, ForkLocked};
use crate::platform::signal::SIGNALS;
use crate::platform::waker::Waker;
use crate::{Errno, check};
use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64};

pub use libc::{
    SIGABRT, SIGALRM, SIGBUS, SIGCHLD, SIGCONT, SIGFPE, SIGHUP, SIGILL, SIGINT, SIGIO, SIGKILL,
    SIGPIPE, SIGPROF, SIGQUIT, SIGSEGV, SIGSTOP, SIGSYS, SIGTERM, SIGTRAP, SIGTSTP, SIGTTIN,
    SIGTTOU, SIGURG, SIGUSR1, SIGUSR2, SIGVTALRM, SIGWINCH, SIGXCPU, SIGXFSZ,
};

pub use crate::platform::signal::{SIGPWR, SIGRTMAX, SIGRTMIN};

/// A set of signals, to be held back while a loop waits for events.
#[derive(Clone, Copy)]
pub struct SignalSet(libc::sigset_t);

impl SignalSet {
    /// The set that holds back the profiling signal alone.
    pub fn sigprof() -> SignalSet {
        let mut set = std::mem::MaybeUninit::uninit();
        // SAFETY: sigemptyset fills the whole set, sigaddset then changes one bit of it.
        unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            libc::sigaddset(set.as_mut_ptr(), libc::SIGPROF);
            SignalSet(set.assume_init())
        }
    }

    /// The set as the system calls take it, or null to leave the mask alone.
    pub(crate) fn as_ptr(set: Option<&SignalSet>) -> *const libc::sigset_t {
        set.map_or(std::ptr::null(), |set| &set.0)
    }
}

impl std::fmt::Debug for SignalSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SignalSet")
    }
}

/// What one loop shares with the handler. See the module's rules.
struct Inbox {
    /// The inbox that was made before this one.
    next: *const Inbox,
    taken: AtomicBool,
    /// The signals that the loop watches, a bit each; and those caught since it last looked.
    interest: AtomicU64,
    pending: AtomicU64,
    /// How often each signal was caught, and how often it had been when the process forked.
    caught: [AtomicU32; SIGNALS],
    inherited: [AtomicU32; SIGNALS],
    /// How many watchers each signal has in this loop. Changed under the lock only.
    regular: [AtomicU32; SIGNALS],
    one_shot: [AtomicU32; SIGNALS],
    /// What wakes the loop, from `Arc::into_raw`.
    waker: AtomicPtr<Waker>,
    /// The process was forked and the loop has not been told: its waker is the parent's.
    foreign: AtomicBool,
    /// Handlers that may be looking at `waker`.
    visitors: AtomicU32,
}

// SAFETY: `next` is never changed once the inbox can be seen, and what it points to is never
// freed. The rest is atomic.
unsafe impl Sync for Inbox {}

/// The last inbox that was made.
static INBOXES: AtomicPtr<Inbox> = AtomicPtr::new(ptr::null_mut());

fn inboxes() -> impl Iterator<Item = &'static Inbox> {
    let to = |at: *const Inbox| {
        // SAFETY: the list's pointers are null or point to inboxes, which are never freed.
        unsafe { at.as_ref() }
    };
    std::iter::successors(to(INBOXES.load(Acquire)), move |inbox| to(inbox.next))
}

fn index(signum: c_int) -> Option<usize> {
    usize::try_from(signum)
        .ok()?
        .checked_sub(1)
        .filter(|&at| at < SIGNALS)
}

/// The handler of every signal that somebody watches. It leaves `errno` as it found it.
extern "C" fn handler(signum: c_int) {
    let Some(at) = index(signum) else { return };
    for inbox in inboxes() {
        inbox.visitors.fetch_add(1, SeqCst);
        if inbox.interest.load(SeqCst) & 1 << at != 0 {
            inbox.caught[at].fetch_add(1, SeqCst);
            if inbox.pending.fetch_or(1 << at, SeqCst) == 0 {
                inbox.wake();
            }
        }
        inbox.visitors.fetch_sub(1, SeqCst);
    }
}

impl Inbox {
    fn new(next: *const Inbox) -> Inbox {
        Inbox {
            next,
            taken: AtomicBool::new(true),
            interest: AtomicU64::new(0),
            pending: AtomicU64::new(0),
            caught: [const { AtomicU32::new(0) }; SIGNALS],
            inherited: [const { AtomicU32::new(0) }; SIGNALS],
            regular: [const { AtomicU32::new(0) }; SIGNALS],
            one_shot: [const { AtomicU32::new(0) }; SIGNALS],
            waker: AtomicPtr::new(ptr::null_mut()),
            foreign: AtomicBool::new(false),
            visitors: AtomicU32::new(0),
        }
    }

    /// Wakes the loop. The caller is a visitor, or the loop itself.
    fn wake(&self) {
        if self.foreign.load(SeqCst) {
            return;
        }
        // SAFETY: it is null, or from `Arc::into_raw` and given back only when there are no
        // visitors any more, by the loop itself.
        if let Some(waker) = unsafe { self.waker.load(SeqCst).as_ref() } {
            waker.signal();
        }
    }

    /// An inbox that nobody has.
    fn take() -> Result<&'static Inbox, Errno> {
        let free = |inbox: &&Inbox| !inbox.taken.load(Relaxed) && !inbox.taken.swap(true, SeqCst);
        if let Some(inbox) = inboxes().find(free) {
            return Ok(inbox);
        }
        let mut made = Vec::new();
        made.try_reserve_exact(1)?;
        made.push(Inbox::new(ptr::null()));
        let made: *mut Inbox = made.leak().as_mut_ptr();
        let mut last = INBOXES.load(Acquire);
        loop {
            // SAFETY: nobody else can see it yet.
            unsafe { (*made).next = last };
            match INBOXES.compare_exchange(last, made, SeqCst, Acquire) {
                // SAFETY: it was leaked.
                Ok(_) => return Ok(unsafe { &*made }),
                Err(now) => last = now,
            }
        }
    }

    fn watchers(&self, one_shot: bool) -> &[AtomicU32; SIGNALS] {
        if one_shot {
            &self.one_shot
        } else {
            &self.regular
        }
    }
}

/// How many watchers each signal has in the whole process.
#[derive(Clone, Copy)]
struct Installed {
    regular: u32,
    one_shot: u32,
}

static INSTALLED: ForkLocked<[Installed; SIGNALS]> = ForkLocked::new(
    [Installed {
        regular: 0,
        one_shot: 0,
    }; SIGNALS],
);

/// In the child there is one thread, and no handler is running.
extern "C" fn after_fork_in_child() {
    for inbox in inboxes() {
        inbox.visitors.store(0, Relaxed);
        inbox.foreign.store(true, Relaxed);
        inbox.pending.store(0, Relaxed);
        for (inherited, caught) in inbox.inherited.iter().zip(&inbox.caught) {
            inherited.store(caught.load(Relaxed), Relaxed);
        }
    }
}

/// The lock.
struct Lock {
    installed: ForkGuard<'static, [Installed; SIGNALS]>,
}

impl Lock {
    fn acquire() -> Lock {
        static REGISTERED: AtomicBool = AtomicBool::new(false);
        // Threads that come first at the same moment may each register it, and it is called more than
        // once: that changes nothing. None waits for another, as in a child of that moment it would
        // wait for ever.
        if !REGISTERED.load(Acquire) {
            // SAFETY: the handler does only what a child may do. Without memory for it a
            // child's loop hears of its parent's last signals.
            unsafe { libc::pthread_atfork(None, None, Some(after_fork_in_child)) };
            REGISTERED.store(true, Release);
        }
        Lock {
            installed: INSTALLED.lock(),
        }
    }

    fn installed(&mut self, at: usize) -> &mut Installed {
        &mut self.installed[at]
    }

    fn add(&mut self, inbox: &Inbox, at: usize, one_shot: bool) -> Result<(), Errno> {
        // A signal must find the interest if it finds the handler.
        inbox.interest.fetch_or(1 << at, SeqCst);
        let installed = *self.installed(at);
        // One-shot handlers may have been used up by the kernel: they are always set anew.
        let set = match installed.regular {
            0 if one_shot => set_action(at, Action::CatchOnce),
            0 => set_action(at, Action::Catch),
            _ => Ok(()),
        };
        if let Err(error) = set {
            self.forget_interest(inbox, at);
            return Err(error);
        }
        inbox.watchers(one_shot)[at].fetch_add(1, Relaxed);
        match one_shot {
            true => self.installed(at).one_shot += 1,
            false => self.installed(at).regular += 1,
        }
        Ok(())
    }

    fn remove(&mut self, inbox: &Inbox, at: usize, one_shot: bool) {
        inbox.watchers(one_shot)[at].fetch_sub(1, Relaxed);
        self.forget_interest(inbox, at);
        let installed = self.installed(at);
        match one_shot {
            true => installed.one_shot -= 1,
            false => installed.regular -= 1,
        }
        // What could be caught can also be let go: these cannot fail.
        let _ = match *installed {
            Installed {
                regular: 0,
                one_shot: 0,
            } => set_action(at, Action::Default),
            Installed { regular: 0, .. } if !one_shot => set_action(at, Action::CatchOnce),
            _ => Ok(()),
        };
    }

    fn forget_interest(&self, inbox: &Inbox, at: usize) {
        if inbox.regular[at].load(Relaxed) + inbox.one_shot[at].load(Relaxed) == 0 {
            inbox.interest.fetch_and(!(1 << at), SeqCst);
        }
    }
}

enum Action {
    Default,
    Catch,
    CatchOnce,
}

fn set_action(at: usize, action: Action) -> Result<(), Errno> {
    // SAFETY: all zeros are a valid action, and mean the default one.
    let mut act: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
    act.sa_sigaction = match action {
        Action::Default => libc::SIG_DFL,
        Action::Catch | Action::CatchOnce => handler as *const () as libc::sighandler_t,
    };
    act.sa_flags = match action {
        Action::Default => 0,
        Action::Catch => libc::SA_RESTART,
        Action::CatchOnce => libc::SA_RESTART | libc::SA_RESETHAND,
    };
    if !matches!(action, Action::Default) {
        // SAFETY: the set is ours. No handler interrupts this one.
        unsafe { libc::sigfillset(&mut act.sa_mask) };
    }
    // SAFETY: the action lives through the call, and the handler is async-signal-safe.
    check(unsafe { libc::sigaction(at as c_int + 1, &act, ptr::null_mut()) }).map(drop)
}

/// Whether children of this process leave nothing to wait for, because it ignores their end.
pub fn ignores_children() -> bool {
    let mut act = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: sigaction fills `act` or fails.
    if unsafe { libc::sigaction(libc::SIGCHLD, ptr::null(), act.as_mut_ptr()) } != 0 {
        return false;
    }
    // SAFETY: it has been filled.
    let act = unsafe { act.assume_init() };
    act.sa_sigaction == libc::SIG_IGN || act.sa_flags & libc::SA_NOCLDWAIT != 0
}

/// The mask that a thread had before all signals were held back.
pub(crate) struct HeldBack(libc::sigset_t);

/// Holds back all signals on the calling thread.
pub(crate) fn hold_back_all() -> HeldBack {
    let mut all = MaybeUninit::uninit();
    let mut before = MaybeUninit::uninit();
    // SAFETY: sigfillset fills the whole set; pthread_sigmask fills the other, and does not
    // fail with these arguments.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
        HeldBack(before.assume_init())
    }
}

impl HeldBack {
    /// Gives the calling thread its mask back.
    pub(crate) fn restore(&self) {
        // SAFETY: the set is initialised.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.0, ptr::null_mut()) };
    }
}

/// A loop's share in the process's signal handling.
pub struct Subscription {
    inbox: &'static Inbox,
}

impl Subscription {
    /// Nothing is watched yet. `waker` will be signalled when something has been caught.
    pub fn new(waker: Arc<Waker>) -> Result<Subscription, Errno> {
        let inbox = Inbox::take()?;
        inbox.pending.store(0, SeqCst);
        inbox.foreign.store(false, SeqCst);
        inbox.waker.store(Arc::into_raw(waker).cast_mut(), SeqCst);
        Ok(Subscription { inbox })
    }

    /// Watches a signal for one watcher more. How often it was caught before that is the
    /// answer. `EINVAL` if there is no such signal or it cannot be caught.
    ///
    /// While all watchers of a signal in the process are one-shot, the first one caught puts
    /// the default action back.
    pub fn add(&self, signum: c_int, one_shot: bool) -> Result<u32, Errno> {
        let at = index(signum).ok_or(Errno::EINVAL)?;
        let mut lock = Lock::acquire();
        let caught = self.inbox.caught[at].load(SeqCst);
        lock.add(self.inbox, at, one_shot)?;
        Ok(caught)
    }

    /// Takes back one [`add`](Subscription::add). When the last watcher in the process is gone,
    /// the signal's default action is back.
    pub fn remove(&self, signum: c_int, one_shot: bool) {
        if let Some(at) = index(signum)
            && self.inbox.watchers(one_shot)[at].load(Relaxed) != 0
        {
            Lock::acquire().remove(self.inbox, at, one_shot);
        }
    }

    /// Whether something has been caught since the marks were last taken.
    #[inline]
    pub fn has_pending(&self) -> bool {
        self.inbox.pending.load(SeqCst) != 0
    }

    /// Takes the marks: the caught signals, in no order but that of their numbers.
    pub fn take_pending(&self) -> impl Iterator<Item = c_int> + use<> {
        let pending = self.inbox.pending.swap(0, SeqCst);
        (1..=SIGNALS as c_int).filter(move |signum| pending >> (signum - 1) & 1 == 1)
    }

    /// How often a signal has been caught; the number starts again after 2³² of them.
    pub fn caught(&self, signum: c_int) -> u32 {
        index(signum).map_or(0, |at| self.inbox.caught[at].load(SeqCst))
    }

    /// Wakes whoever waits for the waker, which may have been noticed and set back already.
    pub fn remind(&self) {
        self.inbox.wake();
    }

    /// Makes the subscription this process's own after a fork; the waker has been renewed.
    /// From now on, [`inherited`](Subscription::inherited) tells the parent's signals from ours.
    pub fn fork(&self) {
        if !self.inbox.foreign.swap(false, SeqCst) {
            // Whoever made this process has gone around `pthread_atfork`.
            self.inbox.pending.store(0, SeqCst);
            for (inherited, caught) in self.inbox.inherited.iter().zip(&self.inbox.caught) {
                inherited.store(caught.load(SeqCst), SeqCst);
            }
        }
        if self.has_pending() {
            self.remind();
        }
    }

    /// How often a signal had been caught when the process was forked.
    pub fn inherited(&self, signum: c_int) -> u32 {
        index(signum).map_or(0, |at| self.inbox.inherited[at].load(SeqCst))
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let inbox = self.inbox;
        for at in 0..SIGNALS {
            for one_shot in [false, true] {
                while inbox.watchers(one_shot)[at].load(Relaxed) != 0 {
                    Lock::acquire().remove(inbox, at, one_shot);
                }
            }
        }
        let waker = inbox.waker.swap(ptr::null_mut(), SeqCst);
        // Handlers on other threads take a few instructions and perhaps one write.
        while inbox.visitors.load(SeqCst) != 0 {
            std::thread::yield_now();
        }
        // SAFETY: it is from `Arc::into_raw` in `new`, and nobody can be using it.
        drop(unsafe { Arc::from_raw(waker) });
        inbox.taken.store(false, SeqCst);
    }
}

impl std::fmt::Debug for Subscription {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let interest = self.inbox.interest.load(Relaxed);
        write!(f, "Subscription({interest:#x})")
    }
}
