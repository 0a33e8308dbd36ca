//! What a worker thread runs.

use std::ffi::c_void;
use std::fmt;

/// A C function that does the work of a request.
pub type RawWork = unsafe extern "C" fn(*mut c_void);

/// One piece of work, to be run once, on whichever thread.
pub struct Job(Body);

enum Body {
    /// A function of C and its argument: no memory of our own is needed for it.
    Raw(RawWork, *mut c_void),
    Closure(Box<dyn FnOnce() + Send>),
}

// SAFETY: whoever makes a raw job vouches for its use on another thread, and a closure is
// `Send` by itself.
unsafe impl Send for Job {}

impl Job {
    /// The call `work(argument)`.
    ///
    /// # Safety
    ///
    /// The call may be made on any thread, at any time until the job's completion is delivered,
    /// and until then what `argument` points to stays valid and is left to `work`.
    pub const unsafe fn raw(work: RawWork, argument: *mut c_void) -> Job {
        Job(Body::Raw(work, argument))
    }

    /// A closure, which is called once or, if the job is cancelled, dropped.
    pub fn new(work: impl FnOnce() + Send + 'static) -> Job {
        Job(Body::Closure(Box::new(work)))
    }

    /// Does the work.
    pub fn run(self) {
        match self.0 {
            // SAFETY: whoever made the job has vouched for it.
            Body::Raw(work, argument) => unsafe { work(argument) },
            Body::Closure(work) => work(),
        }
    }
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Body::Raw(..) => "Job::raw",
            Body::Closure(..) => "Job::new",
        })
    }
}
