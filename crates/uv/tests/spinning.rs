//! `BLACKLIGHT_SPIN` reaches the loops of C programs. What it turns off is tested with the Rust crate.

#[path = "support/pool.rs"]
mod pool;
#[path = "support/system.rs"]
mod system;

use pool::{Request, uv_loop_close, uv_loop_init, uv_loop_t, uv_queue_work, uv_run};
use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use system::must_succeed_in_child;

/// Who spins offers its processor again and again.
static OFFERS: AtomicU64 = AtomicU64::new(0);

#[unsafe(no_mangle)]
extern "C" fn sched_yield() -> c_int {
    OFFERS.fetch_add(1, Relaxed);
    // SAFETY: the call takes nothing.
    unsafe { libc::syscall(libc::SYS_sched_yield) as c_int }
}

fn set(setting: &str) {
    // SAFETY: this process has no other threads yet that could look at the environment.
    unsafe { std::env::set_var("BLACKLIGHT_SPIN", setting) };
}

unsafe extern "C" fn work(_: *mut Request) {}

unsafe extern "C" fn done(_: *mut Request, status: c_int) {
    assert_eq!(status, 0);
}

/// Makes requests to the pool, one after the other, for each of which loop and worker may spin; stops
/// early when somebody has. How often processors were offered.
fn offers(requests: u32) -> u64 {
    let mut lp = Box::<uv_loop_t>::new_uninit();
    // SAFETY: the loop and the request live until the loop is closed, and neither moves.
    unsafe {
        assert_eq!(uv_loop_init(lp.as_mut_ptr()), 0);
        for _ in 0..requests {
            let mut request = Request::new();
            let queued = uv_queue_work(lp.as_mut_ptr(), &mut request, Some(work), Some(done));
            assert_eq!((queued, uv_run(lp.as_mut_ptr(), 0)), (0, 0));
            if OFFERS.load(Relaxed) > 0 {
                break;
            }
        }
        let offers = OFFERS.load(Relaxed);
        assert_eq!(uv_loop_close(lp.as_mut_ptr()), 0);
        offers
    }
}

#[test]
fn nobody_spins_if_the_environment_says_zero() {
    must_succeed_in_child("nobody_spins_if_the_environment_says_zero", || {
        set("0");
        assert_eq!(offers(2_000), 0);
    });
}

#[test]
fn loops_spin_if_the_environment_says_one_or_nothing() {
    must_succeed_in_child("loops_spin_if_the_environment_says_one_or_nothing", || {
        for setting in ["1", ""] {
            set(setting);
            OFFERS.store(0, Relaxed);
            assert_ne!(offers(1_000_000), 0);
        }
    });
}

#[test]
fn what_is_neither_is_invalid() {
    must_succeed_in_child("what_is_neither_is_invalid", || {
        set("off");
        let mut lp = Box::<uv_loop_t>::new_uninit();
        // SAFETY: there is room for a loop.
        let made = unsafe { uv_loop_init(lp.as_mut_ptr()) };
        assert_eq!(made, -libc::EINVAL);
    });
}
