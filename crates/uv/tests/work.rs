//! `uv_queue_work`, `uv_random`, `uv_cancel` and the pool's life, as C sees them.

#[path = "support/event_loop.rs"]
mod event_loop;
#[path = "support/pool.rs"]
mod pool;

use event_loop::alone;
use pool::*;
use std::ffi::{c_int, c_void};
use std::io::Read;
use std::os::fd::FromRawFd;
use std::process::Command;
use std::ptr::null_mut;
use std::sync::Barrier;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering::SeqCst};

/// The size of the pool when nobody asks for another.
const THREADS: usize = 4;

/// What a request of these tests says about itself.
#[derive(Default)]
struct Seen {
    ran: AtomicU32,
    told: AtomicU32,
    status: AtomicI32,
}

impl Seen {
    fn all(&self) -> (u32, u32, c_int) {
        let Seen { ran, told, status } = self;
        (ran.load(SeqCst), told.load(SeqCst), status.load(SeqCst))
    }
}

unsafe extern "C" fn work(req: *mut Request) {
    // SAFETY: these tests put a `Seen` into every such request.
    unsafe { Request::data::<Seen>(req) }
        .ran
        .fetch_add(1, SeqCst);
}

unsafe extern "C" fn after(req: *mut Request, status: c_int) {
    // SAFETY: as above.
    let seen = unsafe { Request::data::<Seen>(req) };
    seen.status.store(status, SeqCst);
    seen.told.fetch_add(1, SeqCst);
}

unsafe extern "C" fn hold(req: *mut Request) {
    // SAFETY: `hold_up` puts a barrier into the request.
    let gate = unsafe { Request::data::<Barrier>(req) };
    gate.wait();
    gate.wait();
}

/// Holds up all threads of the pool until the barrier is waited for once more.
fn hold_up(lp: &mut uv_loop_t, requests: &mut [Request; THREADS], gate: &Barrier) {
    for request in requests {
        *request = Request::with_data(gate);
        // SAFETY: the request lives until the loop has run.
        assert_eq!(unsafe { uv_queue_work(lp, request, Some(hold), None) }, 0);
    }
    gate.wait();
}

fn requests() -> [Request; THREADS] {
    std::array::from_fn(|_| Request::new())
}

#[test]
fn work_without_a_function_is_refused() {
    let _alone = alone();
    let mut lp = new_loop();
    let mut request = Request::new();
    // SAFETY: the request lives until the loop has run.
    unsafe {
        assert_eq!(
            uv_queue_work(&mut *lp, &mut request, None, Some(after)),
            -libc::EINVAL
        );
        assert_eq!(uv_loop_alive(&*lp), 0);
    }
    close(lp);
}

#[test]
fn work_is_done_and_told_and_keeps_the_loop() {
    let _alone = alone();
    let mut lp = new_loop();
    let seen = Seen::default();
    let mut request = Request::with_data(&seen);
    // SAFETY: the request lives until the loop has run.
    unsafe {
        assert_eq!(
            uv_queue_work(&mut *lp, &mut request, Some(work), Some(after)),
            0
        );
        assert_eq!(request.type_, 7);
        assert_eq!(uv_loop_alive(&*lp), 1);
        assert_eq!(uv_loop_close(&mut *lp), -libc::EBUSY);
        run(&mut lp);
        assert_eq!(seen.all(), (1, 1, 0));
        assert_eq!(uv_cancel(&mut request), -libc::EBUSY, "it is over");
        // Nobody need care for the end.
        assert_eq!(uv_queue_work(&mut *lp, &mut request, Some(work), None), 0);
        run(&mut lp);
    }
    assert_eq!(seen.all(), (2, 1, 0));
    close(lp);
}

#[test]
fn cancelling_at_each_stage() {
    let _alone = alone();
    let mut lp = new_loop();
    let gate = Barrier::new(THREADS + 1);
    let mut held = requests();
    hold_up(&mut lp, &mut held, &gate);
    let (cancelled, done) = (Seen::default(), Seen::default());
    let mut to_cancel = Request::with_data(&cancelled);
    let mut to_do = Request::with_data(&done);
    // SAFETY: the requests live until the loop has run.
    unsafe {
        for (request, code) in [(&mut to_cancel, 0), (&mut to_do, 0)] {
            assert_eq!(
                uv_queue_work(&mut *lp, request, Some(work), Some(after)),
                code
            );
        }
        assert_eq!(uv_cancel(&mut to_cancel), 0);
        assert_eq!(uv_cancel(&mut to_cancel), 0, "it is cancelled already");
        assert_eq!(cancelled.all(), (0, 0, 0), "the callback comes later");
        assert_eq!(uv_run(&mut *lp, 2), 1);
        assert_eq!(cancelled.all(), (0, 1, -libc::ECANCELED));
        assert_eq!(uv_cancel(&mut held[0]), -libc::EBUSY, "it runs");
        gate.wait();
        run(&mut lp);
        assert_eq!(done.all(), (1, 1, 0));
        assert_eq!(uv_cancel(&mut to_do), -libc::EBUSY, "it has run");
        for type_ in [-1, 0, 1, 2, 4, 5, 11, 0x2222] {
            let mut other = Request::new();
            other.type_ = type_;
            assert_eq!(uv_cancel(&mut other), -libc::EINVAL, "type {type_}");
        }
    }
    close(lp);
}

unsafe extern "C" fn random(req: *mut Request, status: c_int, buf: *mut c_void, len: usize) {
    // SAFETY: as for `work`; the buffer is the test's and has this length.
    unsafe {
        let seen = Request::data::<Seen>(req);
        seen.status.store(status, SeqCst);
        seen.told.fetch_add(1, SeqCst);
        let bytes = std::slice::from_raw_parts(buf.cast::<u8>(), len);
        let mut sorted = bytes.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        seen.ran.store(sorted.len() as u32, SeqCst);
    }
}

#[test]
fn random_bytes() {
    let _alone = alone();
    let mut lp = new_loop();
    let seen = Seen::default();
    let mut request = Request::with_data(&seen);
    let mut bytes = [0u8; 10_000];
    let buf: *mut c_void = bytes.as_mut_ptr().cast();
    // SAFETY: buffer and request live until the loop has run, and sizes that are too large
    // are refused before anything is touched.
    unsafe {
        for cb in [None, Some(random as RandomCb)] {
            let ask = |len, flags| uv_random(null_mut(), null_mut(), buf, len, flags, cb);
            assert_eq!(ask(1, 1), -libc::EINVAL);
            assert_eq!(ask(0x8000_0000, 0), -libc::E2BIG);
            assert_eq!(ask(usize::MAX, u32::MAX), -libc::E2BIG);
        }
        assert_eq!(
            uv_random(
                null_mut(),
                null_mut::<uv_random_t>(),
                null_mut(),
                0,
                0,
                None
            ),
            0
        );
        assert_eq!(
            uv_random(&mut *lp, &mut request, buf, 10_000, 0, Some(random)),
            0
        );
        run(&mut lp);
        assert_eq!(
            seen.all(),
            (256, 1, 0),
            "every byte there is, in so many of them"
        );
        let gate = Barrier::new(THREADS + 1);
        let mut held = requests();
        hold_up(&mut lp, &mut held, &gate);
        let before = bytes;
        assert_eq!(
            uv_random(&mut *lp, &mut request, buf, 10_000, 0, Some(random)),
            0
        );
        assert_eq!(uv_cancel(&mut request), 0);
        gate.wait();
        run(&mut lp);
        assert_eq!(seen.all(), (256, 2, -libc::ECANCELED));
        assert!(bytes == before, "nothing was written");
    }
    close(lp);
}

unsafe extern "C" fn doze(_: *mut Request) {
    std::thread::sleep(std::time::Duration::from_millis(100));
}

#[test]
fn a_child_has_a_pool_of_its_own() {
    let _alone = alone();
    let mut lp = new_loop();
    let gate = Barrier::new(THREADS + 1);
    let mut held = requests();
    hold_up(&mut lp, &mut held, &gate);
    let seen = Seen::default();
    let mut queued = Request::with_data(&seen);
    // SAFETY: the requests live until the loop has run; the child does nothing but use the
    // library, and leaves without a word to the test's own machinery.
    unsafe {
        assert_eq!(
            uv_queue_work(&mut *lp, &mut queued, Some(work), Some(after)),
            0
        );
        let child = libc::fork();
        if child == 0 {
            libc::alarm(60);
            let forked = uv_loop_fork(&mut *lp) == 0;
            // The parent's requests are the parent's.
            let forgotten = uv_loop_alive(&*lp) == 0 && uv_run(&mut *lp, 0) == 0;
            let nothing = seen.all() == (0, 0, 0);
            // As many as the parent's, so that the last waits too; the parent's cannot be cancelled here.
            let mut busy = requests();
            for request in &mut busy {
                uv_queue_work(&mut *lp, request, Some(doze), None);
            }
            let mut own = Request::with_data(&seen);
            let asked = uv_queue_work(&mut *lp, &mut own, Some(work), Some(after)) == 0
                && uv_cancel(&mut queued) == -libc::EBUSY;
            let ran = uv_run(&mut *lp, 0) == 0 && seen.all() == (1, 1, 0);
            let closed = uv_loop_close(&mut *lp) == 0;
            let well = forked && forgotten && nothing && asked && ran && closed;
            libc::_exit(c_int::from(!well));
        }
        let mut status = 0;
        assert_eq!(libc::waitpid(child, &mut status, 0), child);
        assert_eq!(status, 0);
    }
    gate.wait();
    run(&mut lp);
    assert_eq!(seen.all(), (1, 1, 0), "the parent's own");
    close(lp);
}

/// Not a test by itself: what `what_is_queued_is_done_before_the_end` runs as a program.
#[test]
#[ignore = "a part of another test"]
fn a_program_that_ends_early() {
    /// Nothing is done before the end has begun.
    static ENDING: Barrier = Barrier::new(THREADS + 1);
    static WAITED: AtomicU32 = AtomicU32::new(0);
    unsafe extern "C" fn late_write(_: *mut Request) {
        if WAITED.fetch_add(1, SeqCst) < THREADS as u32 {
            ENDING.wait();
        }
        // SAFETY: the byte is readable, and descriptor 3 is the pipe that we were given.
        assert_eq!(unsafe { libc::write(3, c"!".as_ptr().cast(), 1) }, 1);
    }
    let lp = Box::leak(new_loop());
    for _ in 0..3 * THREADS {
        let request = Box::leak(Box::new(Request::new()));
        // SAFETY: loop and request live for ever.
        assert_eq!(
            // SAFETY: as above.
            unsafe { uv_queue_work(lp, request, Some(late_write), None) },
            0
        );
    }
    ENDING.wait();
    match std::env::var("UV_TEST_END").as_deref() {
        // SAFETY: nothing else uses the library.
        Ok("shutdown") => unsafe { uv_library_shutdown() },
        _ => std::process::exit(0),
    }
    std::process::exit(0);
}

#[test]
fn what_is_queued_is_done_before_the_end() {
    for end in ["exit", "shutdown"] {
        let mut pipe = [0; 2];
        // SAFETY: there is room for two descriptors, which are then ours.
        let mut reads = unsafe {
            assert_eq!(libc::pipe2(pipe.as_mut_ptr(), libc::O_CLOEXEC), 0);
            std::fs::File::from_raw_fd(pipe[0])
        };
        let writes = pipe[1];
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "a_program_that_ends_early", "--ignored"])
            .env("UV_TEST_END", end);
        use std::os::unix::process::CommandExt;
        // SAFETY: dup2 is allowed between fork and exec; it makes a descriptor that stays.
        let mut child = unsafe {
            command.pre_exec(move || match libc::dup2(writes, 3) {
                3 if writes != 3 => Ok(()),
                3 if libc::fcntl(3, libc::F_SETFD, 0) == 0 => Ok(()),
                _ => Err(std::io::Error::last_os_error()),
            })
        }
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
        // SAFETY: it is ours, and the child has its own.
        assert_eq!(unsafe { libc::close(writes) }, 0);
        let mut written = Vec::new();
        reads.read_to_end(&mut written).unwrap();
        assert!(child.wait().unwrap().success());
        assert_eq!(written.len(), 3 * THREADS, "at the end by {end}");
    }
}
