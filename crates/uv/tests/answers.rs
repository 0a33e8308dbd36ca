//! What libuv 1.53.0 answers where its documentation is silent, and programs have come to count
//! on it. Each answer here was taken down from the original.

#[path = "support/room.rs"]
mod room;

use room::Room;
use std::cell::RefCell;
use std::ffi::c_int;
use uv as _;

type Status = unsafe extern "C" fn(*mut Room, c_int);
type Plain = unsafe extern "C" fn(*mut Room);

unsafe extern "C" {
    fn uv_loop_init(lp: *mut Room) -> c_int;
    fn uv_loop_close(lp: *mut Room) -> c_int;
    fn uv_loop_alive(lp: *const Room) -> c_int;
    fn uv_run(lp: *mut Room, mode: c_int) -> c_int;
    fn uv_backend_timeout(lp: *const Room) -> c_int;
    fn uv_close(handle: *mut Room, cb: Option<Plain>);
    fn uv_timer_init(lp: *mut Room, timer: *mut Room) -> c_int;
    fn uv_timer_start(timer: *mut Room, cb: Plain, timeout: u64, repeat: u64) -> c_int;
    fn uv_async_init(lp: *mut Room, handle: *mut Room, cb: Option<Plain>) -> c_int;
}

const DEFAULT: c_int = 0;
const NO_WAIT: c_int = 2;

thread_local! {
    /// What the callbacks of the test were told.
    static TOLD: RefCell<Vec<c_int>> = const { RefCell::new(Vec::new()) };
}

fn tell(what: c_int) {
    TOLD.with_borrow_mut(|told| told.push(what));
}

fn told() -> Vec<c_int> {
    TOLD.take()
}

fn new_loop() -> Box<Room> {
    let mut lp = Room::new();
    // SAFETY: this is memory for a loop.
    assert_eq!(unsafe { uv_loop_init(&mut *lp) }, 0);
    lp
}

/// Closes the handles and then the loop.
fn close(mut lp: Box<Room>, handles: &mut [&mut Room]) {
    // SAFETY: the loop and the handles are initialised, and closing twice does nothing.
    unsafe {
        for handle in handles {
            uv_close(*handle, None);
        }
        assert_eq!(uv_run(&mut *lp, DEFAULT), 0);
        assert_eq!(uv_loop_close(&mut *lp), 0);
    }
}

unsafe extern "C" fn nothing(_: *mut Room) {}

/// netdata closes its loops until it is told that one is busy.
#[test]
fn a_loop_that_is_closed_already_is_busy() {
    let mut lp = new_loop();
    // SAFETY: the memory of the loop is ours, whether it is open or not.
    unsafe {
        assert_eq!(uv_loop_close(&mut *lp), 0);
        assert_eq!(uv_loop_close(&mut *lp), -libc::EBUSY);
        assert_eq!(uv_loop_close(&mut *lp), -libc::EBUSY);
        assert_eq!(uv_loop_init(&mut *lp), 0);
        assert_eq!(uv_loop_close(&mut *lp), 0);
    }
}

unsafe extern "C" fn close_loop_of(handle: *mut Room) {
    // SAFETY: the test has put its loop there.
    tell(unsafe { uv_loop_close((*handle).data.cast()) });
}

#[test]
fn a_loop_is_not_closed_under_its_run() {
    let (mut lp, mut timer) = (new_loop(), Room::new());
    timer.data = (&raw mut *lp).cast();
    // SAFETY: loop and handle live through the run.
    unsafe {
        assert_eq!(uv_timer_init(&mut *lp, &mut *timer), 0);
        uv_close(&mut *timer, Some(close_loop_of));
        assert_eq!(uv_run(&mut *lp, DEFAULT), 0);
        assert_eq!(told(), [-libc::EBUSY]);
        assert_eq!(uv_loop_alive(&*lp), 0);
        assert_eq!(uv_loop_close(&mut *lp), 0);
    }
}

#[test]
fn a_loop_that_was_never_run_is_to_be_run_at_once() {
    let (mut lp, mut timer, mut other) = (new_loop(), Room::new(), Room::new());
    // SAFETY: loop and handles are initialised in order.
    unsafe {
        assert_eq!(uv_async_init(&mut *lp, &mut *other, None), 0);
        assert_eq!(uv_backend_timeout(&*lp), 0);
        assert_eq!(uv_timer_init(&mut *lp, &mut *timer), 0);
        assert_eq!(uv_timer_start(&mut *timer, nothing, 1_000_000, 0), 0);
        assert_eq!(uv_backend_timeout(&*lp), 0);
        uv_run(&mut *lp, NO_WAIT);
        assert!(uv_backend_timeout(&*lp) > 0);
    }
    close(lp, &mut [&mut timer, &mut other]);
}
