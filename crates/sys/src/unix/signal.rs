//! Signals: sets of them, and the process's one handler, which notifies event loops.
//!
//! <https://man7.org/linux/man-pages/man7/signal.7.html>
//!
//! A signal handler interrupts any thread at any point, so it may not allocate, lock, or touch
//! memory that another thread could be freeing. Invariants:
//!
//! - Each loop that watches signals has an *inbox*. Inboxes are never freed, only reused by another
//!   loop, and they form a list that only grows: the handler can walk it at any time, in one step
//!   per loop.
//! - The handler increments the signal's counter in the inbox of each interested loop, marks the
//!   signal as pending, and wakes the loop if nothing was pending before. It sends no message that
//!   another process could forge, and no number of signals overflows a queue.
//! - A loop takes all pending marks at once, *then* reads the counters. A handler that marks after
//!   that wakes the loop again, so that no increment goes unseen.
//! - A loop that releases its inbox first removes its waker, then waits for handlers that may still
//!   be using it.
//! - The installed handlers and their counts change under one lock, with all signals blocked.
//!   `fork` acquires the lock (see `fork_lock`), so that the child finds it released.
//! - A child made by `fork` inherits handlers and inboxes, but its loops are still its parent's:
//!   handlers count signals, and do not wake these loops, until [`Subscription::fork`].

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

/// A set of signals to block while a loop waits for events.
#[derive(Clone, Copy)]
pub struct SignalSet(libc::sigset_t);

impl SignalSet {
    /// The set of the profiling signal alone.
    pub fn sigprof() -> SignalSet {
        let mut set = std::mem::MaybeUninit::uninit();
        // SAFETY: sigemptyset fills the whole set, sigaddset then changes one bit of it.
        unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            libc::sigaddset(set.as_mut_ptr(), libc::SIGPROF);
            SignalSet(set.assume_init())
        }
    }

    /// The set as system calls take it, or null to leave the mask unchanged.
    pub(crate) fn as_ptr(set: Option<&SignalSet>) -> *const libc::sigset_t {
        set.map_or(std::ptr::null(), |set| &set.0)
    }
}

impl std::fmt::Debug for SignalSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SignalSet")
    }
}

/// The state that one loop shares with the handler. See the module's invariants.
struct Inbox {
    /// The inbox that was made before this one.
    next: *const Inbox,
    taken: AtomicBool,
    /// The signals that the loop watches, as bits; and those that are pending.
    interest: AtomicU64,
    pending: AtomicU64,
    /// How often each signal was caught, in total and at the time of the fork.
    caught: [AtomicU32; SIGNALS],
    inherited: [AtomicU32; SIGNALS],
    /// The number of watchers of each signal in this loop. Changed under the lock only.
    regular: [AtomicU32; SIGNALS],
    one_shot: [AtomicU32; SIGNALS],
    /// The loop's waker, from `Arc::into_raw`.
    waker: AtomicPtr<Waker>,
    /// Whether the process was forked without [`Subscription::fork`]: the waker is the parent's.
    foreign: AtomicBool,
    /// The number of handlers that may be using `waker`.
    visitors: AtomicU32,
}

// SAFETY: `next` does not change once the inbox is published, and points to an inbox that is never
// freed. The other fields are atomic.
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

/// The handler of every watched signal. It preserves `errno`.
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

    /// Wakes the loop. The caller is counted as a visitor, or is the loop itself.
    fn wake(&self) {
        if self.foreign.load(SeqCst) {
            return;
        }
        // SAFETY: the pointer is null, or from `Arc::into_raw`; the loop itself drops it, only
        // after the last visitor has left.
        if let Some(waker) = unsafe { self.waker.load(SeqCst).as_ref() } {
            waker.signal();
        }
    }

    /// An inbox that no loop uses.
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
            // SAFETY: the inbox is not published yet.
            unsafe { (*made).next = last };
            match INBOXES.compare_exchange(last, made, SeqCst, Acquire) {
                // SAFETY: the inbox was leaked.
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

/// The number of watchers of each signal in the process.
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

/// Marks the inboxes as the parent's. The child has one thread, and no handler is running.
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

/// The lock, with all signals blocked.
struct Lock {
    installed: ForkGuard<'static, [Installed; SIGNALS]>,
}

impl Lock {
    fn acquire() -> Lock {
        static REGISTERED: AtomicBool = AtomicBool::new(false);
        // Threads that arrive first at the same moment may each register the handler, and running
        // it more than once is harmless. None waits for another, as in a child forked at that
        // moment it would wait for ever.
        if !REGISTERED.load(Acquire) {
            // SAFETY: the handler does only what a child may do. Without memory for it, a child's
            // loop reports its parent's last signals.
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
        // The interest comes first, so that no caught signal misses it.
        inbox.interest.fetch_or(1 << at, SeqCst);
        let installed = *self.installed(at);
        // The kernel may have reset a one-shot handler: it is always installed again.
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
        // Resetting a signal that could be caught cannot fail.
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
        // SAFETY: the set is a local variable. The full mask keeps other handlers from interrupting
        // this one.
        unsafe { libc::sigfillset(&mut act.sa_mask) };
    }
    // SAFETY: the action lives through the call, and the handler is async-signal-safe.
    check(unsafe { libc::sigaction(at as c_int + 1, &act, ptr::null_mut()) }).map(drop)
}

/// Whether somebody else may reap this process's children: the kernel, if the process ignores
/// SIGCHLD, or a handler of the program's own, if it has one.
pub fn others_may_reap() -> bool {
    let mut act = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: sigaction fills `act` or fails.
    if unsafe { libc::sigaction(libc::SIGCHLD, ptr::null(), act.as_mut_ptr()) } != 0 {
        return false;
    }
    // SAFETY: sigaction has filled it.
    let act = unsafe { act.assume_init() };
    let is_ours = act.sa_sigaction == handler as *const () as libc::sighandler_t;
    act.sa_sigaction != libc::SIG_DFL && !is_ours || act.sa_flags & libc::SA_NOCLDWAIT != 0
}

/// The mask that a thread had before it blocked all signals.
pub(crate) struct SavedMask(libc::sigset_t);

/// Blocks all signals on the calling thread.
pub(crate) fn block_all() -> SavedMask {
    let mut all = MaybeUninit::uninit();
    let mut before = MaybeUninit::uninit();
    // SAFETY: sigfillset fills the whole set; pthread_sigmask fills the other, and does not fail
    // with these arguments.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
        SavedMask(before.assume_init())
    }
}

impl SavedMask {
    /// Restores the calling thread's mask.
    pub(crate) fn restore(&self) {
        // SAFETY: the set is initialised.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.0, ptr::null_mut()) };
    }
}

/// A loop's subscription to signals.
pub struct Subscription {
    inbox: &'static Inbox,
}

impl Subscription {
    /// A subscription to no signals. `waker` is signalled when one has been caught.
    pub fn new(waker: Arc<Waker>) -> Result<Subscription, Errno> {
        let inbox = Inbox::take()?;
        inbox.pending.store(0, SeqCst);
        inbox.foreign.store(false, SeqCst);
        inbox.waker.store(Arc::into_raw(waker).cast_mut(), SeqCst);
        Ok(Subscription { inbox })
    }

    /// Adds a watcher of a signal. Returns how often the signal was caught before. `EINVAL` if
    /// there is no such signal or it cannot be caught.
    ///
    /// While all watchers of a signal in the process are one-shot, the first one caught restores
    /// the default action.
    pub fn add(&self, signum: c_int, one_shot: bool) -> Result<u32, Errno> {
        let at = index(signum).ok_or(Errno::EINVAL)?;
        let mut lock = Lock::acquire();
        let caught = self.inbox.caught[at].load(SeqCst);
        lock.add(self.inbox, at, one_shot)?;
        Ok(caught)
    }

    /// Reverts one [`add`](Subscription::add). Removing the last watcher in the process restores
    /// the signal's default action.
    pub fn remove(&self, signum: c_int, one_shot: bool) {
        if let Some(at) = index(signum)
            && self.inbox.watchers(one_shot)[at].load(Relaxed) != 0
        {
            Lock::acquire().remove(self.inbox, at, one_shot);
        }
    }

    /// Whether a signal has been caught since the pending marks were last taken.
    #[inline]
    pub fn has_pending(&self) -> bool {
        self.inbox.pending.load(SeqCst) != 0
    }

    /// Takes the pending marks: the caught signals, in the order of their numbers.
    pub fn take_pending(&self) -> impl Iterator<Item = c_int> + use<> {
        let pending = self.inbox.pending.swap(0, SeqCst);
        (1..=SIGNALS as c_int).filter(move |signum| pending >> (signum - 1) & 1 == 1)
    }

    /// How often a signal has been caught, modulo 2³².
    pub fn caught(&self, signum: c_int) -> u32 {
        index(signum).map_or(0, |at| self.inbox.caught[at].load(SeqCst))
    }

    /// Signals the waker again, after the loop may have drained it.
    pub fn remind(&self) {
        self.inbox.wake();
    }

    /// Makes the subscription this process's own after a fork; the caller has renewed the waker.
    /// From now on, [`inherited`](Subscription::inherited) distinguishes the parent's signals.
    pub fn fork(&self) {
        if !self.inbox.foreign.swap(false, SeqCst) {
            // The process was created without running `pthread_atfork` handlers.
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
        // SAFETY: the pointer is from `Arc::into_raw` in `new`, and no handler uses it any more.
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
