//! What the record says of handles and requests is what the program knows of them: `uv_walk` of its
//! handles, and itself of its requests. Programs decided by a seed make, start, stop and close
//! handles of many kinds, also in callbacks and nested runs.

#![allow(clippy::vec_box, reason = "the loop knows handles by their address")]

#[path = "support/soak.rs"]
#[allow(unused, reason = "chance and seeds")]
mod soak;

use blacklight_record::read::{Loop, Reader, now_ns};
use soak::{Random, seed};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::{CStr, c_int, c_void};
use std::sync::{Condvar, Mutex, PoisonError};
use uv as _;
use uv_binding::*;

type Handle = *mut Room;

/// What `uv_walk` tells of a handle: its type, and whether it is active, referenced and closing.
type Said = (String, bool, bool, bool);

/// A program: one loop, and what it has made.
struct Program {
    lp: *mut uv_loop_t,
    random: Random,
    /// Handles that were made and not closed.
    handles: Vec<Handle>,
    /// Handles and requests whose memory is not in use any more.
    spare: Vec<Box<Room>>,
    requests: Vec<Handle>,
    depth: u32,
    reader: Reader,
    /// What the handles were right before the loop has polled, and when that was.
    before: Option<(u64, BTreeMap<u64, Said>, u32)>,
    compared: u32,
    closed: u32,
    nested: u32,
    delivered: u64,
}

thread_local! {
    static PROGRAM: RefCell<Option<Box<Program>>> = const { RefCell::new(None) };
}

/// Lets nothing of the program be borrowed while the library is called that may call back.
fn with<R>(f: impl FnOnce(&mut Program) -> R) -> R {
    PROGRAM.with_borrow_mut(|program| f(program.as_mut().expect("a program runs")))
}

unsafe extern "C" fn note(handle: *mut uv_handle_t, into: *mut c_void) {
    // SAFETY: the walk visits handles that are not closed, and `into` is a map.
    unsafe {
        let into = &mut *into.cast::<BTreeMap<u64, Said>>();
        let name = CStr::from_ptr(uv_handle_type_name(uv_handle_get_type(handle)));
        let said = (
            name.to_string_lossy().into_owned(),
            uv_is_active(handle) != 0,
            uv_has_ref(handle) != 0,
            uv_is_closing(handle) != 0,
        );
        assert!(into.insert(handle as u64, said).is_none(), "visited twice");
    }
}

fn walk(lp: *mut uv_loop_t) -> BTreeMap<u64, Said> {
    let mut said = BTreeMap::new();
    // SAFETY: the loop is this thread's, and the map lives through the call.
    unsafe { uv_walk(lp, Some(note), (&raw mut said).cast()) };
    said
}

/// The last prepare callback of a turn: the loop polls next.
unsafe extern "C" fn about_to_poll(_: Handle) {
    let lp = with(|program| program.lp);
    let said = walk(lp);
    // SAFETY: the loop is this thread's.
    let requests = unsafe { (*lp).active_reqs.count };
    with(|program| program.before = Some((now_ns(), said, requests)));
}

fn own(reader: &Reader) -> Loop {
    let mut loops = reader.snapshot().unwrap().loops;
    assert_eq!(loops.len(), 1);
    loops.remove(0)
}

/// The first check callback of a turn: the record has what was before the poll.
unsafe extern "C" fn has_polled(_: Handle) {
    with(|program| {
        let Some((at_ns, said, requests)) = program.before.take() else {
            return;
        };
        let recorded = own(&program.reader);
        assert_eq!(recorded.requests, requests);
        let mut pending: Vec<u64> = recorded.pending.iter().map(|of| of.token).collect();
        let mut known: Vec<u64> = program.requests.iter().map(|of| *of as u64).collect();
        pending.sort_unstable();
        known.sort_unstable();
        assert_eq!(pending, known, "requests in progress");
        if recorded.walked_ns < at_ns {
            // The walk was put off, as too many in too short a time are.
            return;
        }
        let handles = program.reader.handles(&recorded).unwrap();
        let found = handles.into_iter().map(|of| {
            let said = (
                of.kind.to_owned(),
                of.is_active,
                of.is_referenced,
                of.is_closing,
            );
            (of.token, said)
        });
        let found: BTreeMap<u64, Said> = found.collect();
        assert_eq!(found, said, "the record, and the walk");
        program.compared += 1;
    });
}

fn room() -> Handle {
    with(|program| Box::into_raw(program.spare.pop().unwrap_or_else(Room::new)))
}

unsafe extern "C" fn closed(handle: Handle) {
    with(|program| {
        program.closed += 1;
        // SAFETY: the memory came from `room`, and is the program's again.
        program.spare.push(unsafe { Box::from_raw(handle) });
    });
    act_in_callback();
}

unsafe extern "C" fn called(_: Handle) {
    act_in_callback();
}

unsafe extern "C" fn polled(_: Handle, _: c_int, _: c_int) {
    act_in_callback();
}

unsafe extern "C" fn caught(_: Handle, _: c_int) {
    act_in_callback();
}

unsafe extern "C" fn work(_: Handle) {}

unsafe extern "C" fn worked(request: Handle, _: c_int) {
    with(|program| {
        program.requests.retain(|of| *of != request);
        program.delivered += 1;
        // SAFETY: the request is done, and came from `room`.
        program.spare.push(unsafe { Box::from_raw(request) });
    });
    act_in_callback();
}

/// In one callback of some, the program goes on, or runs the loop again.
fn act_in_callback() {
    let (acts, nests) = with(|program| {
        let acts = program.random.below(3);
        (acts, program.depth < 3 && program.random.one_in(12))
    });
    for _ in 0..acts {
        act();
    }
    if nests {
        let lp = with(|program| {
            program.depth += 1;
            program.nested += 1;
            program.lp
        });
        // SAFETY: the loop is this thread's, and may be run from its callbacks.
        unsafe { uv_run(lp, 2) };
        with(|program| {
            program.depth -= 1;
            program.before = None;
        });
    }
}

/// Makes a handle of some kind.
fn make(kind: usize) {
    let (handle, lp) = (room(), with(|program| program.lp));
    // SAFETY: the handle has memory that lives until it is closed, and the loop is this thread's.
    let made = unsafe {
        match kind {
            0 | 1 => uv_timer_init(lp, handle),
            2 => uv_idle_init(lp, handle),
            3 => uv_prepare_init(lp, handle),
            4 => uv_check_init(lp, handle),
            5 => uv_async_init(lp, handle, Some(called)),
            6 => uv_tcp_init(lp, handle),
            7 => uv_udp_init(lp, handle),
            8 => uv_pipe_init(lp, handle, 0),
            9 => uv_signal_init(lp, handle),
            10 => uv_fs_event_init(lp, handle),
            11 => uv_fs_poll_init(lp, handle),
            _ => uv_poll_init(lp, handle, 0),
        }
    };
    match made {
        0 => with(|program| program.handles.push(handle)),
        // One descriptor has one poll handle at most, and not every poller takes any.
        // SAFETY: the handle was not made.
        _ => with(|program| program.spare.push(unsafe { Box::from_raw(handle) })),
    }
}

/// Starts or stops a handle, whatever it is.
unsafe fn start(handle: Handle, number: usize) {
    // SAFETY: the caller vouches for the handle; starting and stopping take any state.
    unsafe {
        match uv_handle_get_type(handle) {
            UV_TIMER if number.is_multiple_of(3) => uv_timer_stop(handle),
            UV_TIMER => {
                let repeat = (number % 4) as u64 / 3;
                uv_timer_start(handle, Some(called), number as u64 % 3, repeat)
            }
            UV_IDLE if number.is_multiple_of(2) => uv_idle_stop(handle),
            UV_IDLE => uv_idle_start(handle, Some(called)),
            UV_PREPARE if number.is_multiple_of(2) => uv_prepare_stop(handle),
            UV_PREPARE => uv_prepare_start(handle, Some(called)),
            UV_CHECK if number.is_multiple_of(2) => uv_check_stop(handle),
            UV_CHECK => uv_check_start(handle, Some(called)),
            UV_ASYNC => uv_async_send(handle),
            UV_SIGNAL if number.is_multiple_of(2) => uv_signal_stop(handle),
            UV_SIGNAL => uv_signal_start(handle, Some(caught), libc::SIGUSR2),
            UV_POLL if number.is_multiple_of(2) => uv_poll_stop(handle),
            UV_POLL => uv_poll_start(handle, 1, Some(polled)),
            UV_UDP if number.is_multiple_of(2) => uv_udp_recv_stop(handle),
            _ => 0,
        };
    }
}

/// Does one thing.
fn act() {
    let (what, number, handle) = with(|program| {
        let what = program.random.below(12);
        let number = program.random.below(1 << 16);
        let count = program.handles.len();
        let handle = (count > 0).then(|| program.handles[number % count]);
        (what, number, handle)
    });
    let is_full = with(|program| program.handles.len() >= 40);
    match (what, handle) {
        (0..3, _) if !is_full => make(number % 13),
        (3, _) if with(|program| program.requests.len() < 20) => {
            let (request, lp) = (room(), with(|program| program.lp));
            with(|program| program.requests.push(request));
            // SAFETY: the request has memory until it is done.
            unsafe { assert_eq!(uv_queue_work(lp, request, Some(work), Some(worked)), 0) };
        }
        (4, Some(handle)) => {
            with(|program| program.handles.retain(|of| *of != handle));
            // SAFETY: the handle is open.
            unsafe { uv_close(handle, Some(closed)) };
        }
        // SAFETY: the handle is open.
        (5, Some(handle)) => unsafe { uv_unref(handle) },
        // SAFETY: the handle is open.
        (6, Some(handle)) => unsafe { uv_ref(handle) },
        // SAFETY: the handle is open.
        (_, Some(handle)) => unsafe { start(handle, number) },
        _ => make(number % 13),
    }
}

/// One program, from its beginning to the end of its loop.
fn run_program(seed: u64) -> (u32, u32) {
    let mut lp: Box<uv_loop_t> = Box::new(garbage());
    let [mut prepare, mut check, mut timer] = [(); 3].map(|()| Room::new());
    // SAFETY: the loop and the spies live until the program is over.
    unsafe {
        assert_eq!(uv_loop_init(&mut *lp), 0);
        // The handle that was started first is called last.
        assert_eq!(uv_prepare_init(&mut *lp, &mut *prepare), 0);
        assert_eq!(uv_prepare_start(&mut *prepare, Some(about_to_poll)), 0);
        assert_eq!(uv_check_init(&mut *lp, &mut *check), 0);
        assert_eq!(uv_timer_init(&mut *lp, &mut *timer), 0);
        assert_eq!(uv_timer_start(&mut *timer, Some(called), 1, 1), 0);
    }
    let program = Program {
        lp: &mut *lp,
        random: Random(seed | 1),
        handles: Vec::new(),
        spare: Vec::new(),
        requests: Vec::new(),
        depth: 0,
        reader: Reader::open(std::process::id()).unwrap(),
        before: None,
        compared: 0,
        closed: 0,
        nested: 0,
        delivered: 0,
    };
    let earlier = program.reader.snapshot().unwrap().pool;
    PROGRAM.with_borrow_mut(|slot| *slot = Some(Box::new(program)));
    for _ in 0..150 {
        // Started last, it is called first.
        // SAFETY: the handle is open, and the loop is this thread's.
        unsafe {
            uv_check_stop(&mut *check);
            assert_eq!(uv_check_start(&mut *check, Some(has_polled)), 0);
            uv_run(&mut *lp, 1);
        }
        with(|program| program.before = None);
        act();
        act();
    }
    let handles = with(|program| std::mem::take(&mut program.handles));
    // SAFETY: the handles are open, and no callback makes any from here on.
    unsafe {
        for handle in handles {
            uv_close(handle, Some(closed));
        }
        for spy in [&mut prepare, &mut check, &mut timer] {
            uv_close(&mut **spy, None);
        }
    }
    // Callbacks go on to make handles until nothing of them is left.
    loop {
        // SAFETY: the loop is this thread's.
        unsafe { uv_run(&mut *lp, 2) };
        let left = with(|program| std::mem::take(&mut program.handles));
        // SAFETY: as above.
        if left.is_empty() && unsafe { uv_loop_alive(&*lp) } == 0 {
            break;
        }
        for handle in left {
            // SAFETY: the handle is open.
            unsafe { uv_close(handle, Some(closed)) };
        }
    }
    let program = PROGRAM.with_borrow_mut(Option::take).unwrap();
    let pool = program.reader.snapshot().unwrap().pool;
    assert_eq!(
        (pool.queued, pool.running, pool.oldest),
        ([0; 8], [0; 8], None)
    );
    assert_eq!(pool.completed[1] - earlier.completed[1], program.delivered);
    assert_eq!(pool.wait[1].count(), pool.completed[1]);
    assert_eq!(pool.run[1].count(), pool.completed[1]);
    let recorded = own(&program.reader);
    assert_eq!((recorded.requests_lost, recorded.handles_lost), (0, 0));
    // SAFETY: nothing of the loop is in use.
    assert_eq!(unsafe { uv_loop_close(&mut *lp) }, 0);
    assert!(program.reader.snapshot().unwrap().loops.is_empty());
    (program.compared, program.nested)
}

/// A gate that holds up the pool.
static GATE: (Mutex<bool>, Condvar) = (Mutex::new(false), Condvar::new());

unsafe extern "C" fn wait_at_gate(_: *mut Room) {
    let open = GATE.0.lock().unwrap_or_else(PoisonError::into_inner);
    drop(GATE.1.wait_while(open, |open| !*open));
}

unsafe extern "C" fn passed(_: *mut Room, _: c_int) {}

/// The pool's numbers while it is known how many requests run and wait.
fn check_pool() {
    let mut lp: Box<uv_loop_t> = Box::new(garbage());
    let mut requests: [Box<Room>; 10] = std::array::from_fn(|_| Room::new());
    // SAFETY: the loop and the requests live until the run is over.
    unsafe {
        assert_eq!(uv_loop_init(&mut *lp), 0);
        for request in &mut requests {
            let cb = Some(wait_at_gate as unsafe extern "C" fn(*mut Room));
            assert_eq!(uv_queue_work(&mut *lp, &mut **request, cb, Some(passed)), 0);
        }
    }
    let reader = Reader::open(std::process::id()).unwrap();
    let pool = loop {
        let pool = reader.snapshot().unwrap().pool;
        let running = pool.members.iter().filter(|of| of.running == Some(1));
        if pool.running[1] == 4 && running.count() == 4 {
            break pool;
        }
        std::thread::yield_now();
    };
    assert_eq!((pool.threads, pool.queued[1]), (4, 6));
    let running: Vec<u64> = pool.members.iter().map(|of| of.token).collect();
    let first = requests[..4].iter().map(|of| &raw const **of as u64);
    assert!(first.into_iter().all(|request| running.contains(&request)));
    let (since_ns, kind) = pool.oldest.expect("six wait");
    assert!(since_ns <= now_ns() && kind == 1);
    let pending = reader.snapshot().unwrap().loops[0].pending.len();
    assert_eq!(pending, 10);
    // One that waits is cancelled.
    // SAFETY: the request is in progress.
    unsafe { assert_eq!(uv_cancel(&mut *requests[9]), 0) };
    assert_eq!(reader.snapshot().unwrap().pool.queued[1], 5);
    *GATE.0.lock().unwrap() = true;
    GATE.1.notify_all();
    // SAFETY: the loop is this thread's.
    unsafe {
        assert_eq!(uv_run(&mut *lp, 0), 0);
        let snapshot = reader.snapshot().unwrap();
        assert_eq!(snapshot.loops[0].pending.len(), 0);
        assert_eq!(snapshot.pool.completed[1], 9);
        assert_eq!((snapshot.pool.queued[1], snapshot.pool.running[1]), (0, 0));
        assert_eq!(uv_loop_close(&mut *lp), 0);
    }
}

/// One test, since the record and the environment are the process's.
#[test]
fn the_record_says_of_handles_and_requests_what_the_program_knows() {
    // SAFETY: no other thread of this process uses the environment.
    unsafe { std::env::set_var("BLACKLIGHT_RECORD", "1") };
    check_pool();
    for poller in ["epoll", "poll"] {
        // SAFETY: as above.
        unsafe { std::env::set_var("BLACKLIGHT_POLLER", poller) };
        let first = seed("record_handles", poller);
        let (mut compared, mut nested) = (0, 0);
        for seed in first..first + 12 {
            let (more, deeper) = run_program(seed);
            compared += more;
            nested += deeper;
        }
        println!("{poller}: {compared} comparisons, {nested} nested runs");
        assert!(compared > 300 && nested > 10, "{compared} and {nested}");
    }
}
