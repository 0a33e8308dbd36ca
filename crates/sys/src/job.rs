//! The unit of work of a worker thread.

use std::ffi::c_void;
use std::fmt;

/// A C function that does the work of a request.
pub type RawWork = unsafe extern "C" fn(*mut c_void);

/// One piece of work, to be run once, on any thread.
pub struct Job(Body);

enum Body {
    /// A C function and its argument, which need no allocation.
    Raw(RawWork, *mut c_void),
    Closure(Box<dyn FnOnce() + Send>),
}

// SAFETY: `Job::raw`'s caller guarantees that another thread may make the call, and a closure is
// `Send` itself.
unsafe impl Send for Job {}

impl Job {
    /// The call `work(argument)`.
    ///
    /// # Safety
    ///
    /// Any thread may make the call, at any time until the job's completion is delivered; until
    /// then the memory that `argument` points to stays valid, and only `work` uses it.
    pub const unsafe fn raw(work: RawWork, argument: *mut c_void) -> Job {
        Job(Body::Raw(work, argument))
    }

    /// A closure, which is called once or, if the job is cancelled, dropped.
    pub fn new(work: impl FnOnce() + Send + 'static) -> Job {
        Job(Body::Closure(Box::new(work)))
    }

    /// Runs the job.
    pub fn run(self) {
        match self.0 {
            // SAFETY: `Job::raw`'s caller guarantees the call.
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
