//! Requests for files on a loop's io_uring: when they are, how they are cancelled, and that they
//! come to their end whatever becomes of the ring.

#[path = "support/event_loop.rs"]
mod event_loop;
#[path = "support/fs.rs"]
mod fs;
#[path = "support/ring.rs"]
mod ring;
#[path = "support/system.rs"]
mod system;

use fs::*;
use ring::*;
use std::ffi::{CStr, c_int, c_long};
use std::fs::File as StdFile;
use std::io::{PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use system::must_succeed_in_child;

/// How many requests a ring takes.
const ENTRIES: usize = 256;

fn cancel(request: &mut uv_fs_t) -> c_int {
    // SAFETY: the request was submitted.
    unsafe { uv_cancel(&raw mut *request) }
}

/// A read from a pipe without anything in it, which waits on the ring.
struct Waiting {
    request: Box<uv_fs_t>,
    room: Memory,
    from: PipeReader,
    to: PipeWriter,
}

impl Waiting {
    fn begin(loop_: &mut OwnLoop) -> Waiting {
        let (from, to) = std::io::pipe().unwrap();
        let mut waiting = Waiting {
            request: request(),
            room: Memory::new(4),
            from,
            to,
        };
        let (buf, fd) = (waiting.room.buf(), waiting.from.as_raw_fd());
        // SAFETY: the request and its memory live until it is done.
        let result = unsafe {
            uv_fs_read(
                loop_.ptr(),
                &mut *waiting.request,
                fd,
                &buf,
                1,
                -1,
                Some(ignore),
            )
        };
        assert_eq!(result, 0);
        assert!(is_on_ring(&waiting.request));
        waiting
    }

    /// Lets the read come to its end and checks that it does.
    fn finish(mut self, loop_: &mut OwnLoop) {
        self.to.write_all(b"text").unwrap();
        loop_.run();
        assert_eq!(self.request.result(), 4);
        assert_eq!(*self.room.0, *b"text");
        self.request.clean_up();
    }
}

#[test]
fn each_completion_counts_as_an_event() {
    let Some(_turn) = turn() else { return };
    let events = [OwnLoop::new(), ring_loop()].map(|mut loop_| {
        for _ in 0..3 {
            stat_on(&mut loop_, c"/dev/null");
        }
        let mut metrics = garbage();
        // SAFETY: there is room for them.
        assert_eq!(unsafe { uv_metrics_info(loop_.ptr(), &mut metrics) }, 0);
        metrics.events
    });
    assert_eq!(events, [3, 3]);
}

/// Calls `wake` on another thread as soon as the calling thread waits for events.
fn when_asleep(wake: impl FnOnce() + Send + 'static) {
    let waits = [
        #[cfg(target_arch = "x86_64")]
        libc::SYS_epoll_wait,
        libc::SYS_epoll_pwait,
        libc::SYS_epoll_pwait2,
    ];
    let waits = waits
        .into_iter()
        .chain([libc::SYS_ppoll, libc::SYS_pselect6]);
    let waits: Vec<String> = waits.map(|call| call.to_string()).collect();
    // SAFETY: it takes nothing.
    let thread = unsafe { libc::gettid() };
    let path = format!("/proc/self/task/{thread}/syscall");
    std::thread::spawn(move || {
        loop {
            let call = std::fs::read_to_string(&path).unwrap();
            let number = call.split(' ').next().unwrap();
            if waits.iter().any(|wait| wait == number) {
                break wake();
            }
            std::thread::yield_now();
        }
    });
}

#[test]
fn a_loop_that_sleeps_is_woken() {
    let Some(_turn) = turn() else { return };
    for poller in POLLERS {
        let mut loop_ = ring_loop_on(poller);
        for _ in 0..3 {
            let mut waiting = Waiting::begin(&mut loop_);
            let mut to = waiting.to.try_clone().unwrap();
            when_asleep(move || to.write_all(b"text").unwrap());
            loop_.run();
            assert_eq!(waiting.request.result(), 4);
            waiting.request.clean_up();
            // SAFETY: the loop is ours. There was no fork, and nothing changes.
            assert_eq!(unsafe { uv_loop_fork(loop_.ptr()) }, 0);
        }
        let mut metrics = garbage();
        // SAFETY: there is room for them.
        assert_eq!(unsafe { uv_metrics_info(loop_.ptr(), &mut metrics) }, 0);
        assert_eq!(
            [metrics.events, metrics.events_waiting],
            [3, 0],
            "no event was there before the loop slept"
        );
    }
}

#[test]
fn a_read_that_waits_can_be_cancelled() {
    let Some(_turn) = turn() else { return };
    for poller in POLLERS {
        let mut loop_ = ring_loop_on(poller);
        let (mut one, other) = (Waiting::begin(&mut loop_), Waiting::begin(&mut loop_));
        assert_eq!(turn_once(&mut loop_, UV_RUN_NOWAIT), 1, "the loop is alive");
        // SAFETY: the loop is ours.
        assert_eq!(unsafe { uv_loop_close(loop_.ptr()) }, -libc::EBUSY);
        assert_eq!(cancel(&mut one.request), 0);
        assert_eq!(cancel(&mut one.request), 0, "it is cancelled already");
        assert_eq!(
            one.request.result(),
            0,
            "nothing is told before the loop runs"
        );
        turn_once(&mut loop_, UV_RUN_ONCE);
        assert_eq!(one.request.result(), -libc::ECANCELED, "{poller}");
        one.request.clean_up();
        one.to.write_all(b"rest").unwrap();
        let mut rest = [0; 4];
        one.from.read_exact(&mut rest).unwrap();
        assert_eq!((&rest, &*one.room.0), (b"rest", &b"####"[..]));
        other.finish(&mut loop_);
    }
}

#[test]
fn what_is_done_is_too_late_to_cancel() {
    let Some(_turn) = turn() else { return };
    let mut loop_ = ring_loop();
    let mut waiting = Waiting::begin(&mut loop_);
    waiting.to.write_all(b"text").unwrap();
    assert_eq!(cancel(&mut waiting.request), -libc::EBUSY);
    loop_.run();
    assert_eq!(waiting.request.result(), 4);
    assert_eq!(cancel(&mut waiting.request), -libc::EBUSY);
    waiting.request.clean_up();
}

/// Opening a fifo waits for somebody to open the other end, on a thread of the kernel's, and
/// is beyond cancellation once it does. The kernel gives it up all the same, and nobody may
/// notice.
#[test]
fn a_cancellation_that_comes_too_late_changes_nothing() {
    let Some(_turn) = turn() else { return };
    let scratch = Scratch::new("ring-fifo");
    let fifo = scratch.c("fifo");
    // SAFETY: the path lives through the call.
    assert_eq!(unsafe { libc::mkfifo(fifo.as_ptr(), 0o600) }, 0);
    let mut loop_ = ring_loop();
    loop {
        let mut request = request();
        // SAFETY: the path is copied.
        unsafe {
            let (lp, req) = (loop_.ptr(), &mut *request);
            assert_eq!(
                uv_fs_open(lp, req, fifo.as_ptr(), libc::O_RDONLY, 0, Some(ignore)),
                0
            );
        }
        assert!(is_on_ring(&request));
        std::thread::yield_now();
        if cancel(&mut request) == 0 {
            // No thread had got to it yet. The next may be there in time.
            loop_.run();
            assert_eq!(request.result(), -libc::ECANCELED);
            request.clean_up();
            continue;
        }
        let path = scratch.at("fifo");
        let opener = std::thread::spawn(|| StdFile::options().write(true).open(path));
        loop_.run();
        let opened = request.result();
        assert!(opened >= 0, "{opened}");
        // SAFETY: the request has opened it, for us.
        drop(unsafe { OwnedFd::from_raw_fd(opened) });
        request.clean_up();
        opener.join().unwrap().unwrap();
        return;
    }
}

#[test]
fn what_a_ring_has_no_room_for_is_the_pools() {
    const REQUESTS: usize = ENTRIES + 40;
    let Some(_turn) = turn() else { return };
    for poller in POLLERS {
        let mut loop_ = ring_loop_on(poller);
        let (from, mut to) = std::io::pipe().unwrap();
        let mut requests: Vec<_> = (0..REQUESTS).map(|_| (request(), Memory::new(1))).collect();
        for (request, room) in &mut requests {
            let (buf, fd) = (room.buf(), from.as_raw_fd());
            // SAFETY: the request and its memory live until it is done.
            let result =
                unsafe { uv_fs_read(loop_.ptr(), &mut **request, fd, &buf, 1, -1, Some(ignore)) };
            assert_eq!(result, 0);
        }
        let on_ring = requests.iter().filter(|(request, _)| is_on_ring(request));
        assert_eq!(on_ring.count(), ENTRIES);
        let sent: Vec<u8> = (0..REQUESTS).map(|at| at as u8).collect();
        to.write_all(&sent).unwrap();
        loop_.run();
        let mut received: Vec<u8> = requests.iter().map(|(_, room)| room.0[0]).collect();
        received.sort();
        let mut expected = sent;
        expected.sort();
        assert_eq!(received, expected, "{poller}");
        for (request, _) in &mut requests {
            assert_eq!(request.result(), 1);
            request.clean_up();
        }
        // And there is room again.
        Waiting::begin(&mut loop_).finish(&mut loop_);
    }
}

/// A request that reads from `/dev/zero` and makes another when it is done.
unsafe extern "C" fn read_again(request: *mut uv_fs_t) {
    // SAFETY: the request is done; `data`, which is its first field, points to the chain.
    unsafe {
        let chain = request.cast::<*mut Chain>().read();
        assert_eq!(uv_fs_get_result(request), 4);
        (*chain).done += 1;
        if (*chain).left > 0 {
            (*chain).left -= 1;
            Chain::read(chain, request);
        }
    }
}

struct Chain {
    loop_: *mut uv_loop_t,
    file: c_int,
    room: Memory,
    done: u32,
    left: u32,
}

impl Chain {
    /// # Safety
    ///
    /// Both live until the chain is at its end.
    unsafe fn read(chain: *mut Chain, request: *mut uv_fs_t) {
        // SAFETY: the caller vouches for it.
        unsafe {
            request.cast::<*mut Chain>().write(chain);
            let (loop_, file, buf) = ((*chain).loop_, (*chain).file, (*chain).room.buf());
            let result = uv_fs_read(loop_, request, file, &buf, 1, -1, Some(read_again));
            assert_eq!(result, 0);
            assert!(is_on_ring(&*request));
        }
    }
}

#[test]
fn requests_made_by_callbacks_wait_for_the_next_turn() {
    let Some(_turn) = turn() else { return };
    let (mut loop_, mut request) = (ring_loop(), request());
    let zero = File::open(c"/dev/zero", libc::O_RDONLY);
    let mut chain = Chain {
        loop_: loop_.ptr(),
        file: zero.0,
        room: Memory::new(4),
        done: 0,
        left: 100,
    };
    // SAFETY: the chain is at its end when the loop has run.
    unsafe { Chain::read(&mut chain, &mut *request) };
    for turn in 1..=101 {
        turn_once(&mut loop_, UV_RUN_ONCE);
        assert_eq!(chain.done, turn);
    }
    // SAFETY: the loop is ours.
    assert_eq!(unsafe { uv_loop_alive(loop_.ptr()) }, 0);
    request.clean_up();
}

#[test]
fn who_waits_for_the_loops_descriptor_hears_of_a_ring() {
    let Some(_turn) = turn() else { return };
    let mut loop_ = ring_loop_on("epoll");
    let mut waiting = Waiting::begin(&mut loop_);
    turn_once(&mut loop_, UV_RUN_NOWAIT);
    // SAFETY: the loop is ours.
    let fd = unsafe { uv_backend_fd(loop_.ptr()) };
    let readable = |timeout_ms| {
        let mut poll = libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: the array of one lives through the call.
        unsafe { libc::poll(&mut poll, 1, timeout_ms) }
    };
    assert_eq!(readable(0), 0);
    waiting.to.write_all(b"text").unwrap();
    assert_eq!(readable(-1), 1);
    assert_eq!(turn_once(&mut loop_, UV_RUN_NOWAIT), 0);
    assert_eq!(waiting.request.result(), 4);
    waiting.request.clean_up();
    turn_once(&mut loop_, UV_RUN_NOWAIT);
    assert_eq!(readable(0), 0);
}

#[test]
fn a_child_leaves_its_parents_ring_alone() {
    let Some(_turn) = turn() else { return };
    let mut loop_ = ring_loop();
    let waiting = Waiting::begin(&mut loop_);
    // SAFETY: the child uses what the tests of this program, who take turns, leave usable after a
    // fork, and leaves without running any destructors. An alarm ends it if it hangs.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            libc::alarm(60);
            let before = uv_loop_alive(loop_.ptr()) == 1;
            let forked = uv_loop_fork(loop_.ptr()) == 0 && uv_loop_alive(loop_.ptr()) == 0;
            let mut own = request();
            let path = c"/dev/null".as_ptr();
            uv_fs_stat(loop_.ptr(), &mut *own, path, Some(ignore));
            let on_ring = is_on_ring(&own);
            uv_run(loop_.ptr(), 0);
            let told = own.result() == 0;
            let closed = uv_loop_close(loop_.ptr()) == 0;
            let all = [before, forked, on_ring, told, closed];
            libc::_exit(
                all.iter()
                    .fold(0, |bits, right| bits << 1 | c_int::from(!right)),
            );
        }
        let mut status = -1;
        assert_eq!(libc::waitpid(child, &mut status, 0), child);
        assert_eq!(status, 0, "{:b}", libc::WEXITSTATUS(status));
    }
    waiting.finish(&mut loop_);
}

#[test]
fn a_child_that_forgets_to_fork_its_loop_does_no_harm() {
    let Some(_turn) = turn() else { return };
    let mut loop_ = ring_loop();
    let mut waiting = Waiting::begin(&mut loop_);
    waiting.to.write_all(b"text").unwrap();
    // SAFETY: as above.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            libc::alarm(60);
            let alive = uv_run(loop_.ptr(), UV_RUN_NOWAIT) == 1;
            let refused = cancel(&mut waiting.request) == -libc::EBUSY;
            let nothing = waiting.request.result() == 0;
            libc::_exit(c_int::from(!(alive && refused && nothing)));
        }
        let mut status = -1;
        assert_eq!(libc::waitpid(child, &mut status, 0), child);
        assert_eq!(status, 0);
    }
    loop_.run();
    assert_eq!(waiting.request.result(), 4);
    waiting.request.clean_up();
}

#[test]
fn a_loop_that_is_forked_without_a_fork_goes_on() {
    let Some(_turn) = turn() else { return };
    for poller in POLLERS {
        let mut loop_ = ring_loop_on(poller);
        let waiting = Waiting::begin(&mut loop_);
        // SAFETY: the loop is ours.
        assert_eq!(unsafe { uv_loop_fork(loop_.ptr()) }, 0);
        waiting.finish(&mut loop_);
        Waiting::begin(&mut loop_).finish(&mut loop_);
    }
}

#[test]
fn a_request_outlives_the_thread_that_made_it() {
    let Some(_turn) = turn() else { return };
    struct Moved<T>(T);
    // SAFETY: one thread at a time uses the loop and the request.
    unsafe impl<T> Send for Moved<T> {}
    let made = std::thread::spawn(|| {
        let mut loop_ = ring_loop();
        let waiting = Waiting::begin(&mut loop_);
        Moved((loop_, waiting))
    });
    let Moved((mut loop_, waiting)) = made.join().unwrap();
    waiting.finish(&mut loop_);
}

/// Has a system call refused to the calling thread, and to those that it starts.
fn refuse(call: c_long, error: c_int) {
    let step = |code: u32, jt, jf, k| libc::sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    };
    let mut filter = [
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        step(
            libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K,
            0,
            1,
            call as u32,
        ),
        step(
            libc::BPF_RET | libc::BPF_K,
            0,
            0,
            libc::SECCOMP_RET_ERRNO | error as u32,
        ),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: the program lives through the call.
    unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        let mode = libc::SECCOMP_SET_MODE_FILTER;
        assert_eq!(libc::syscall(libc::SYS_seccomp, mode, 0, &program), 0);
    }
}

/// Asks about a file; whether that was on a ring.
fn stat_on(loop_: &mut OwnLoop, path: &CStr) -> bool {
    let mut request = request();
    // SAFETY: the path is copied.
    let result = unsafe { uv_fs_stat(loop_.ptr(), &mut *request, path.as_ptr(), Some(ignore)) };
    assert_eq!(result, 0);
    let on_ring = is_on_ring(&request);
    loop_.run();
    assert_eq!(request.result(), 0);
    assert_eq!(request.stat().st_mode as u32 & libc::S_IFMT, libc::S_IFCHR);
    request.clean_up();
    on_ring
}

/// Has the kernel refuse a call to a thread, whose loop then has no ring.
fn check_without_a_ring(call: c_long, error: c_int) {
    let refused = std::thread::spawn(move || {
        refuse(call, error);
        let mut loop_ = ring_loop();
        assert!(!stat_on(&mut loop_, c"/dev/null"));
        assert!(!stat_on(&mut loop_, c"/dev/zero"));
    });
    refused.join().unwrap();
}

#[test]
fn without_a_ring_the_pool_does_everything() {
    let Some(_turn) = turn() else { return };
    check_without_a_ring(libc::SYS_io_uring_setup, libc::ENOMEM);
    check_without_a_ring(libc::SYS_io_uring_register, libc::EINVAL);
    check_without_a_ring(libc::SYS_io_uring_enter, libc::EPERM);
    check_without_a_ring(libc::SYS_io_uring_enter, libc::EAGAIN);
}

/// A process that was told that there are no rings does not ask again, so each of these has one of its own.
fn check_in_a_child_without_rings(test: &str, error: c_int) {
    if turn().is_some() {
        must_succeed_in_child(test, || {
            check_without_a_ring(libc::SYS_io_uring_setup, error);
            assert!(!stat_on(&mut ring_loop(), c"/dev/null"));
        });
    }
}

#[test]
fn a_kernel_without_rings_is_asked_once() {
    check_in_a_child_without_rings("a_kernel_without_rings_is_asked_once", libc::ENOSYS);
}

#[test]
fn a_sandbox_that_forbids_rings_is_asked_once() {
    check_in_a_child_without_rings("a_sandbox_that_forbids_rings_is_asked_once", libc::EPERM);
}

/// A sandbox may close round a program that has a ring already.
#[test]
fn a_ring_that_is_cut_off_finishes_what_it_has() {
    let Some(_turn) = turn() else { return };
    let cut_off = std::thread::spawn(|| {
        let mut loop_ = ring_loop();
        let mut waiting = Waiting::begin(&mut loop_);
        assert!(stat_on_while_waiting(&mut loop_));
        refuse(libc::SYS_io_uring_enter, libc::EPERM);
        assert!(!stat_on_while_waiting(&mut loop_));
        assert_eq!(cancel(&mut waiting.request), -libc::EBUSY);
        waiting.finish(&mut loop_);
    });
    cut_off.join().unwrap();
}

/// As [`stat_on`], on a loop that stays alive.
fn stat_on_while_waiting(loop_: &mut OwnLoop) -> bool {
    let mut request = request();
    // SAFETY: the path is copied.
    unsafe {
        uv_fs_stat(
            loop_.ptr(),
            &mut *request,
            c"/dev/null".as_ptr(),
            Some(ignore),
        )
    };
    let on_ring = is_on_ring(&request);
    while request.ptr().is_null() || request.stat().st_mode as u32 & libc::S_IFMT != libc::S_IFCHR {
        turn_once(loop_, UV_RUN_ONCE);
    }
    request.clean_up();
    on_ring
}

/// The rings of this process, and whether a program that it starts would have them.
fn rings() -> Vec<bool> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc/self/fd").unwrap().flatten() {
        let target = std::fs::read_link(entry.path()).unwrap_or_default();
        if target.to_str() == Some("anon_inode:[io_uring]") {
            let fd = entry.file_name().to_str().unwrap().parse().unwrap();
            // SAFETY: any number is allowed.
            found.push(unsafe { libc::fcntl(fd, libc::F_GETFD) } & libc::FD_CLOEXEC == 0);
        }
    }
    found
}

#[test]
fn a_ring_is_made_for_those_who_ask_and_goes_with_its_loop() {
    if turn().is_none() {
        return;
    }
    let name = "a_ring_is_made_for_those_who_ask_and_goes_with_its_loop";
    must_succeed_in_child(name, || {
        let set = |value: &str| {
            // SAFETY: this process has one thread that looks at the environment.
            unsafe { std::env::set_var("UV_USE_IO_URING", value) };
        };
        for value in ["0", "", "-1", "yes", " 0 "] {
            set(value);
            assert!(!stat_on(&mut ring_loop(), c"/dev/null"), "{value:?}");
        }
        // SAFETY: as above.
        unsafe { std::env::remove_var("UV_USE_IO_URING") };
        assert!(!stat_on(&mut ring_loop(), c"/dev/null"));
        set("1");
        assert!(!stat_on(&mut OwnLoop::new(), c"/dev/null"));
        assert_eq!(rings(), []);
        for value in ["1", "2", " 1", "+1"] {
            set(value);
            let mut loop_ = ring_loop();
            assert_eq!(rings(), [], "none is made before it is needed");
            assert!(stat_on(&mut loop_, c"/dev/null"), "{value:?}");
            permit(&mut loop_);
            assert!(stat_on(&mut loop_, c"/dev/null"), "{value:?}");
            assert_eq!(rings(), [false]);
            drop(loop_);
            assert_eq!(rings(), []);
        }
    });
}
