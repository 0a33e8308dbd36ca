//! `uv_async_send` from many threads: no send is lost, and what a thread has written before it
//! sends is there for the callback to read.

use std::cell::UnsafeCell;
use std::ffi::c_int;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};
use uv as _;
use uv_binding::*;

const THREADS: usize = 4;
const LETTERS: u64 = 500;

/// What one thread writes and the loop reads, each when it is its turn. The cell is plain
/// memory: only the sends make it the loop's.
struct Post {
    letter: UnsafeCell<u64>,
    read: AtomicU64,
    calls: AtomicU64,
}

// SAFETY: the thread writes the letter only after the last was read, and the loop reads it only
// after a send.
unsafe impl Sync for Post {}

unsafe extern "C" fn deliver(handle: *mut uv_async_t) {
    // SAFETY: the post outlives the loop, and see above for the letter.
    unsafe {
        let post = &*(*handle).data.cast::<Post>();
        post.calls.fetch_add(1, Relaxed);
        let letter = *post.letter.get();
        assert_eq!(letter, post.read.load(Relaxed) + 1, "one letter at a time");
        post.read.store(letter, Release);
        if letter == LETTERS {
            uv_close(handle, None);
        }
    }
}

/// An async handle that other threads may send to.
#[derive(Clone, Copy)]
struct Sender(*mut uv_async_t);

// SAFETY: `uv_async_send` may be called from any thread until the handle is closed.
unsafe impl Send for Sender {}
// SAFETY: as above.
unsafe impl Sync for Sender {}

impl Sender {
    fn write(self, post: &Post) {
        for letter in 1..=LETTERS {
            while post.read.load(Acquire) != letter - 1 {
                std::thread::yield_now();
            }
            // SAFETY: the loop has read the last letter, and will not look before the send.
            unsafe {
                *post.letter.get() = letter;
                assert_eq!(uv_async_send(self.0), 0);
            }
        }
    }
}

unsafe extern "C" fn close_both(handle: *mut uv_async_t) {
    // SAFETY: both handles are initialised, and this is their loop's thread.
    unsafe {
        uv_close((*handle).data.cast::<uv_idle_t>(), None);
        uv_close(handle, None);
    }
}

unsafe extern "C" fn go_on(_: *mut uv_idle_t) {}

#[test]
fn a_loop_may_be_closed_over_the_send_that_it_was_waiting_for() {
    for _ in 0..200 {
        let mut lp = Box::new(zeroed::<uv_loop_t>());
        let mut idle = Box::new(garbage::<uv_idle_t>());
        let mut handle = Box::new(uv_async_t {
            data: (&raw mut *idle).cast(),
            ..garbage()
        });
        // SAFETY: the handles and the loop live until all is closed, which only the send leads to.
        unsafe {
            assert_eq!(uv_loop_init(&mut *lp), 0);
            assert_eq!(uv_async_init(&mut *lp, &mut *handle, Some(close_both)), 0);
            // Who sends to a loop that does not sleep has nothing to do with it afterwards.
            assert_eq!(uv_idle_init(&mut *lp, &mut *idle), 0);
            assert_eq!(uv_idle_start(&mut *idle, Some(go_on)), 0);
        }
        let sender = Sender(&mut *handle);
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let sender = sender;
                // SAFETY: as above.
                assert_eq!(unsafe { uv_async_send(sender.0) }, 0);
            });
            // SAFETY: as above. The sender may still be on its way out of its call.
            unsafe {
                assert_eq!(uv_run(&mut *lp, 0), 0);
                assert_eq!(uv_loop_close(&mut *lp), 0);
            }
            drop((idle, handle, lp));
        });
    }
}

/// Memory that outlives all threads: a handle is made in it again and again.
struct Shared<T>(UnsafeCell<T>);

// SAFETY: `uv_async_send` may be called from any thread, and the rest is one thread's.
unsafe impl<T> Sync for Shared<T> {}

/// How often loop and handle are made and closed while another thread sends.
const ROUNDS: u32 = 100_000;

#[test]
fn a_handle_is_sent_to_while_it_and_its_loop_are_made_and_closed() {
    static HANDLE: Shared<uv_async_t> = Shared(UnsafeCell::new(uv_async_t {
        data: std::ptr::null_mut(),
        ..zeroed()
    }));
    static ENDED: AtomicBool = AtomicBool::new(false);
    unsafe extern "C" fn ignore(_: *mut uv_async_t) {}
    let mut lp = Box::new(zeroed::<uv_loop_t>());
    // SAFETY: the handle's memory is static, and only this thread uses the loop.
    unsafe {
        assert_eq!(uv_loop_init(&mut *lp), 0);
        assert_eq!(uv_async_init(&mut *lp, HANDLE.0.get(), Some(ignore)), 0);
    }
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ENDED.load(Relaxed) {
                // SAFETY: the handle was initialised before this thread began.
                assert_eq!(unsafe { uv_async_send(HANDLE.0.get()) }, 0);
            }
        });
        for round in 0..ROUNDS {
            // SAFETY: as above.
            unsafe {
                if round > 0 {
                    assert_eq!(uv_loop_init(&mut *lp), 0);
                    assert_eq!(uv_async_init(&mut *lp, HANDLE.0.get(), Some(ignore)), 0);
                }
                uv_close(HANDLE.0.get(), None);
                assert_eq!(uv_run(&mut *lp, 0), 0);
                assert_eq!(uv_loop_close(&mut *lp), 0);
            }
        }
        ENDED.store(true, Relaxed);
    });
}

const FORKS: u32 = 1_000;

unsafe extern "C" fn close_it(handle: *mut uv_async_t) {
    // SAFETY: the handle is initialised, and this is its loop's thread.
    unsafe { uv_close(handle, None) };
}

/// What a child does with the loop that it inherits: goes on with it, or just closes it. It gives
/// up after a while where it would wait for ever.
///
/// # Safety
///
/// The loop and the handle are the caller's.
unsafe fn live_as_child(lp: *mut uv_loop_t, handle: *mut uv_async_t, goes_on: bool) -> bool {
    // SAFETY: the caller vouches for both.
    unsafe {
        libc::alarm(60);
        if goes_on {
            if uv_loop_fork(lp) != 0 || uv_async_send(handle) != 0 {
                return false;
            }
        } else {
            uv_close(handle, None);
        }
        uv_run(lp, 0) == 0 && uv_loop_close(lp) == 0
    }
}

#[test]
fn a_child_of_a_fork_in_the_middle_of_a_send_can_use_and_close_its_loop() {
    let mut lp = Box::new(zeroed::<uv_loop_t>());
    let mut handle = Box::new(uv_async_t {
        data: std::ptr::null_mut(),
        ..garbage()
    });
    // SAFETY: the handle and the loop live until all is closed, and only this thread runs it.
    unsafe {
        assert_eq!(uv_loop_init(&mut *lp), 0);
        assert_eq!(uv_async_init(&mut *lp, &mut *handle, Some(close_it)), 0);
    }
    let (ended, sender) = (AtomicBool::new(false), Sender(&mut *handle));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let sender = &sender;
            while !ended.load(Relaxed) {
                // SAFETY: the handle is closed after this thread has ended.
                assert_eq!(unsafe { uv_async_send(sender.0) }, 0);
            }
        });
        for round in 0..FORKS {
            // SAFETY: the child uses what is its own and leaves without running destructors.
            unsafe {
                let child = libc::fork();
                assert!(child >= 0);
                if child == 0 {
                    let lived = live_as_child(&mut *lp, &mut *handle, round % 2 == 0);
                    libc::_exit(c_int::from(!lived));
                }
                let mut status = -1;
                assert_eq!(libc::waitpid(child, &mut status, 0), child);
                if status != 0 {
                    ended.store(true, Relaxed);
                }
                assert_eq!(status, 0, "round {round}");
            }
        }
        ended.store(true, Relaxed);
    });
    // SAFETY: as above; nobody sends any more.
    unsafe {
        uv_close(&mut *handle, None);
        assert_eq!(uv_run(&mut *lp, 0), 0);
        assert_eq!(uv_loop_close(&mut *lp), 0);
    }
}

#[test]
fn a_send_to_a_closed_handle_touches_nothing_but_the_handle() {
    let mut lp = Box::new(zeroed::<uv_loop_t>());
    let mut handle = Box::new(uv_async_t {
        data: std::ptr::null_mut(),
        ..garbage()
    });
    // SAFETY: the handle outlives its loop, and all is this thread's.
    unsafe {
        assert_eq!(uv_loop_init(&mut *lp), 0);
        assert_eq!(uv_async_init(&mut *lp, &mut *handle, None), 0);
        uv_close(&mut *handle, None);
        assert_eq!(uv_async_send(&mut *handle), 0);
        assert_eq!(uv_run(&mut *lp, 0), 0);
        assert_eq!(uv_async_send(&mut *handle), 0);
        assert_eq!(uv_loop_close(&mut *lp), 0);
        drop(lp);
        assert_eq!(uv_async_send(&mut *handle), 0);
    }
}

#[test]
fn what_is_written_before_a_send_is_read_after_it() {
    let mut lp = Box::new(zeroed::<uv_loop_t>());
    let posts: [Post; THREADS] = std::array::from_fn(|_| Post {
        letter: UnsafeCell::new(0),
        read: AtomicU64::new(0),
        calls: AtomicU64::new(0),
    });
    let mut handles: [uv_async_t; THREADS] = std::array::from_fn(|at| uv_async_t {
        data: (&raw const posts[at]).cast_mut().cast(),
        ..garbage()
    });
    // SAFETY: the handles and the loop live until all is closed, and only this thread runs it.
    unsafe {
        assert_eq!(uv_loop_init(&mut *lp), 0);
        for handle in &mut handles {
            assert_eq!(uv_async_init(&mut *lp, handle, Some(deliver)), 0);
        }
    }
    let handles = handles.as_mut_ptr();
    std::thread::scope(|scope| {
        for (at, post) in posts.iter().enumerate() {
            // SAFETY: there are as many handles as posts.
            let sender = Sender(unsafe { handles.add(at) });
            scope.spawn(move || sender.write(post));
        }
        // SAFETY: as above.
        assert_eq!(unsafe { uv_run(&mut *lp, 0) }, 0);
    });
    for post in &posts {
        assert_eq!(post.read.load(Relaxed), LETTERS);
        assert_eq!(post.calls.load(Relaxed), LETTERS, "no call without a send");
    }
    // SAFETY: as above.
    assert_eq!(unsafe { uv_loop_close(&mut *lp) }, 0);
}
