//! Signal sets: <https://man7.org/linux/man-pages/man3/sigsetops.3.html>.

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
