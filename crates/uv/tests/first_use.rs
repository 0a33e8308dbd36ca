//! What a thread does for the whole process on first use, and a fork from another thread at that
//! moment: the child must not wait for the thread, which it does not have.

use std::ffi::{c_int, c_void};
use std::sync::Barrier;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicI32};
use uv as _;
use uv_binding::*;

type Handler = Option<unsafe extern "C" fn()>;

/// What the C library's `pthread_atfork` does, which this program stands in for.
///
/// # Safety
///
/// The handlers may run in each fork from now on.
#[cfg(not(target_env = "musl"))]
unsafe fn register(prepare: Handler, parent: Handler, child: Handler) -> c_int {
    unsafe extern "C" {
        fn __register_atfork(
            prepare: Handler,
            parent: Handler,
            child: Handler,
            library: *const c_void,
        ) -> c_int;
    }
    // SAFETY: the caller guarantees the handlers; null is the program itself.
    unsafe { __register_atfork(prepare, parent, child, std::ptr::null()) }
}

/// As above; musl has no other name for it.
///
/// # Safety
///
/// The handlers may run in each fork from now on.
#[cfg(target_env = "musl")]
unsafe fn register(prepare: Handler, parent: Handler, child: Handler) -> c_int {
    // SAFETY: the name ends in a NUL.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, c"pthread_atfork".as_ptr()) };
    assert!(!found.is_null());
    // SAFETY: this is the function's type; the caller guarantees the handlers.
    unsafe {
        let next = std::mem::transmute::<
            *mut c_void,
            extern "C" fn(Handler, Handler, Handler) -> c_int,
        >(found);
        next(prepare, parent, child)
    }
}

/// The process in which that happens.
static PARENT: AtomicI32 = AtomicI32::new(0);
/// Whether the next registration of handlers for forks is to be held up.
static IS_HELD_UP: AtomicBool = AtomicBool::new(false);
static BEGUN: Barrier = Barrier::new(2);
static GOES_ON: Barrier = Barrier::new(2);

/// Stands in for the C library's.
#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_atfork(prepare: Handler, parent: Handler, child: Handler) -> c_int {
    if IS_HELD_UP.swap(false, SeqCst) {
        BEGUN.wait();
        GOES_ON.wait();
    }
    // SAFETY: the caller guarantees the handlers.
    unsafe { register(prepare, parent, child) }
}

unsafe extern "C" fn ignore(_: *mut uv_signal_t, _: c_int) {}

/// A new loop begins to watch a signal. Both stay.
fn watch_a_signal() -> c_int {
    let lp = Box::leak(Box::new(zeroed::<uv_loop_t>()));
    let signal = Box::leak(Box::new(zeroed()));
    // SAFETY: there is room for both, and they live as long as the process.
    unsafe {
        assert_eq!(uv_loop_init(lp), 0);
        assert_eq!(uv_signal_init(lp, signal), 0);
        // Whatever a loop has registered is registered by now.
        IS_HELD_UP.store(libc::getpid() == PARENT.load(SeqCst), SeqCst);
        uv_signal_start(signal, Some(ignore), libc::SIGUSR1)
    }
}

#[test]
fn a_child_of_a_fork_during_the_first_watching_of_signals_can_watch_signals() {
    PARENT.store(std::process::id().cast_signed(), SeqCst);
    let first = std::thread::spawn(watch_a_signal);
    BEGUN.wait();
    // SAFETY: the child makes a loop and leaves without running destructors.
    unsafe {
        let child = libc::fork();
        assert!(child >= 0);
        if child == 0 {
            libc::alarm(60);
            libc::_exit(watch_a_signal());
        }
        let mut status = -1;
        assert_eq!(libc::waitpid(child, &mut status, 0), child);
        GOES_ON.wait();
        assert_eq!(status, 0, "the child hangs");
    }
    assert_eq!(first.join().unwrap(), 0);
}
