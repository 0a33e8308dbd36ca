//! A reader that comes late: what the record says of a program that was busy before anybody looked,
//! and that the program goes on as if nobody did.

#[path = "support/watched.rs"]
#[allow(unused, reason = "roles under limits")]
mod watched;

use blacklight_record::layout::CALLBACK_KINDS;
use blacklight_record::read::{Reader, Snapshot, now_ns};
use std::ffi::c_int;
use std::io::{Read, Write};
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Condvar, Mutex};
use std::time::Duration;
use uv as _;
use uv_binding::*;
use watched::*;

/// The program that is watched; nothing when the tests run.
#[test]
fn the_program_watched() {
    if std::env::var_os(ROLE).is_some() {
        // Its threads may wait for what does not come any more.
        std::panic::set_hook(Box::new(|why| {
            eprintln!("{why}");
            std::process::abort();
        }));
    }
    match std::env::var(ROLE).as_deref() {
        Ok("once") => run_once(),
        Ok("starved") => starve_the_pool(),
        Ok("in debt") => walk_too_much(),
        Ok(role) => panic!("{role}"),
        Err(_) => return,
    }
    println!("done");
    std::process::exit(0);
}

fn start(role: &str, setting: &str) -> Watched {
    Watched::start(role, setting, |_, _| {})
}

impl Watched {
    /// Lets the program go on that waits for a byte.
    fn go_on(&mut self) {
        let input = self.child.stdin.as_mut().unwrap();
        input.write_all(b"!").unwrap();
    }
}

/// Waits for a byte of standard input, which a loop may have made non-blocking.
fn await_byte() {
    let mut input = libc::pollfd {
        fd: 0,
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: there is one entry.
    assert_eq!(unsafe { libc::poll(&mut input, 1, -1) }, 1);
    assert_eq!(std::io::stdin().read(&mut [0]).unwrap(), 1);
}

/// Attaches as the command does.
fn attach(watched: &Watched) -> (Reader, Snapshot) {
    let reader = Reader::open(watched.pid()).unwrap();
    await_sleep(watched.pid());
    reader.want().unwrap();
    assert!(reader.wake().unwrap(), "root may wake any process");
    until("a record", || reader.is_recording().unwrap().then_some(()));
    reader.await_loops(Duration::from_secs(60)).unwrap();
    let snapshot = reader.snapshot().unwrap();
    (reader, snapshot)
}

static CALLS: AtomicU32 = AtomicU32::new(0);

unsafe extern "C" fn read_byte(pipe: *mut Room, count: isize, _: *const uv_buf_t) {
    assert_eq!(count, 1);
    CALLS.fetch_add(1, SeqCst);
    // SAFETY: the handle is the loop's own.
    unsafe { uv_read_stop(pipe) };
}

/// Has the loop read one byte of standard input.
fn read_input(lp: &mut uv_loop_t, pipe: &mut Room) {
    // SAFETY: the caller keeps the handle until it is closed.
    unsafe {
        assert_eq!(uv_pipe_init(lp, pipe, 0), 0);
        assert_eq!(uv_pipe_open(pipe, libc::dup(0)), 0);
        assert_eq!(uv_read_start(pipe, Some(give_room), Some(read_byte)), 0);
    }
}

fn close_all(mut lp: Box<uv_loop_t>, handles: &mut [Box<Room>]) {
    for handle in handles {
        // SAFETY: the handle is open.
        unsafe { uv_close(&mut **handle, None) };
    }
    run(&mut lp);
    close_loop(lp);
}

/// A run for one event is woken by a reader, and returns with its event and not before.
fn run_once() {
    let (mut lp, mut pipe) = (new_loop(), Room::new());
    read_input(&mut lp, &mut pipe);
    println!("ready");
    // SAFETY: the loop is this thread's.
    unsafe { uv_run(&mut *lp, 1) };
    assert_eq!(CALLS.load(SeqCst), 1, "it has returned without its event");
    println!("over");
    await_byte();
    close_all(lp, &mut [pipe]);
}

#[test]
fn a_run_for_one_event_sleeps_on_when_a_reader_comes() {
    let mut watched = start("once", "0");
    watched.wait_for("ready");
    let (reader, snapshot) = attach(&watched);
    assert_eq!(snapshot.loops.len(), 1);
    assert_eq!(snapshot.loops[0].callbacks, 0);
    let handles = reader.handles(&snapshot.loops[0]).unwrap();
    let kinds: Vec<&str> = handles.iter().map(|handle| handle.kind).collect();
    assert_eq!(kinds, ["pipe"], "they were described before it slept on");
    // Readers may come as often as they like.
    for _ in 0..20 {
        await_sleep(watched.pid());
        reader.want().unwrap();
        assert!(reader.wake().unwrap());
    }
    watched.go_on();
    watched.wait_for("over");
    let lp = reader.snapshot().unwrap().loops.remove(0);
    assert_eq!((lp.callbacks, lp.turns, lp.turn.count()), (1, 1, 1));
    let read = CALLBACK_KINDS.iter().position(|kind| *kind == "read");
    assert_eq!(lp.by_kind[read.unwrap()].count(), 1, "the first is seen");
    watched.go_on();
    watched.finish();
}

/// A gate that holds up the pool.
static GATE: (Mutex<bool>, Condvar) = (Mutex::new(false), Condvar::new());

unsafe extern "C" fn wait_at_gate(_: *mut Room) {
    let open = GATE.0.lock().unwrap();
    drop(GATE.1.wait_while(open, |open| !*open));
}

unsafe extern "C" fn passed(_: *mut Room, status: c_int) {
    assert!(status == 0 || status == UV_ECANCELED);
}

/// Four requests run and six wait before anybody looks.
fn starve_the_pool() {
    let (mut lp, mut pipe) = (new_loop(), Room::new());
    read_input(&mut lp, &mut pipe);
    let mut requests: [Box<Room>; 11] = std::array::from_fn(|_| Room::new());
    for request in &mut requests[..10] {
        let work = Some(wait_at_gate as unsafe extern "C" fn(*mut Room));
        // SAFETY: the loop and the requests live until the run is over.
        unsafe {
            assert_eq!(
                uv_queue_work(&mut *lp, &mut **request, work, Some(passed)),
                0
            )
        };
    }
    println!("ready");
    // SAFETY: the loop is this thread's.
    unsafe { uv_run(&mut *lp, 1) };
    // One that was adopted is cancelled, and another one comes.
    // SAFETY: the request is in progress, and the other one's memory lives until the run is over.
    unsafe {
        assert_eq!(uv_cancel(&mut *requests[9]), 0);
        let work = Some(wait_at_gate as unsafe extern "C" fn(*mut Room));
        let submitted = uv_queue_work(&mut *lp, &mut *requests[10], work, Some(passed));
        assert_eq!(submitted, 0);
    }
    println!("changed");
    await_byte();
    *GATE.0.lock().unwrap() = true;
    GATE.1.notify_all();
    // SAFETY: the loop is this thread's.
    unsafe { assert_eq!(uv_run(&mut *lp, 0), 0) };
    println!("over");
    await_byte();
    close_all(lp, &mut [pipe]);
}

#[test]
fn a_pool_that_was_busy_before_is_seen() {
    let begun_ns = now_ns();
    let mut watched = start("starved", "0");
    watched.wait_for("ready");
    // All four threads have taken a request.
    until("the pool", || {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", watched.pid())).unwrap();
        let waits = tasks.filter(|task| {
            let path = task.as_ref().unwrap().path();
            let name = std::fs::read_to_string(path.join("comm")).unwrap_or_default();
            let call = std::fs::read_to_string(path.join("syscall")).unwrap_or_default();
            name == "libuv-worker\n" && call.starts_with(&format!("{} ", libc::SYS_futex))
        });
        (waits.count() == 4).then_some(())
    });
    let (reader, snapshot) = attach(&watched);
    let pool = &snapshot.pool;
    assert_eq!(pool.threads, 4);
    assert_eq!((pool.running[1], pool.queued[1]), (4, 6));
    let (since_ns, kind) = pool.oldest.expect("six wait");
    assert!(since_ns > begun_ns && since_ns <= now_ns() && kind == 1);
    assert_eq!(pool.members.len(), 4);
    assert!(pool.members.iter().all(|of| of.running == Some(1)));
    let pending = &snapshot.loops[0].pending;
    assert_eq!(pending.len(), 10);
    let is_pending = |token| pending.iter().any(|of| of.token == token && of.kind == 1);
    assert!(pool.members.iter().all(|of| is_pending(of.token)));
    watched.go_on();
    watched.wait_for("changed");
    let pool = reader.snapshot().unwrap().pool;
    assert_eq!((pool.running[1], pool.queued[1]), (4, 6));
    watched.go_on();
    watched.wait_for("over");
    let snapshot = reader.snapshot().unwrap();
    let pool = &snapshot.pool;
    assert_eq!((pool.queued, pool.running), ([0; 8], [0; 8]));
    assert_eq!((pool.completed[1], pool.oldest), (10, None));
    assert_eq!(
        pool.run[1].count(),
        6,
        "nobody knows how long four have run"
    );
    assert!(pool.members.iter().all(|of| of.running.is_none()));
    assert_eq!(snapshot.loops[0].pending.len(), 0);
    watched.go_on();
    watched.finish();
}

const TIMERS: usize = 30_000;

/// Walks in many turns over many handles leave no time for one more when the loop falls asleep.
fn walk_too_much() {
    let (mut lp, mut pipe, mut check) = (new_loop(), Room::new(), Room::new());
    let mut timers: Vec<Box<Room>> = (0..TIMERS).map(|_| Room::new()).collect();
    for timer in &mut timers {
        // SAFETY: the handle lives until it is closed.
        unsafe { assert_eq!(uv_timer_init(&mut *lp, &mut **timer), 0) };
    }
    read_input(&mut lp, &mut pipe);
    for _ in 0..50 {
        // SAFETY: the loop is this thread's.
        unsafe { uv_run(&mut *lp, 2) };
    }
    // SAFETY: the handle lives until it is closed.
    unsafe { assert_eq!(uv_check_init(&mut *lp, &mut *check), 0) };
    println!("ready");
    // SAFETY: the loop is this thread's.
    unsafe { uv_run(&mut *lp, 1) };
    assert_eq!(CALLS.load(SeqCst), 1);
    timers.extend([pipe, check]);
    close_all(lp, &mut timers);
}

#[test]
fn a_loop_that_sleeps_describes_its_handles_on_request() {
    for setting in ["0", "1"] {
        let mut watched = start("in debt", setting);
        watched.wait_for("ready");
        let reader = Reader::open(watched.pid()).unwrap();
        let snapshot = match setting {
            "0" => attach(&watched).1,
            _ => {
                await_sleep(watched.pid());
                reader.snapshot().unwrap()
            }
        };
        // Under load the loop may take longer than a reader waits by itself.
        until("the table", || {
            reader.handles(&snapshot.loops[0]).unwrap();
            let lp = reader.snapshot().unwrap().loops.remove(0);
            lp.is_walked.then_some(())
        });
        let handles = reader.handles(&snapshot.loops[0]).unwrap();
        let count = |kind| handles.iter().filter(|of| of.kind == kind).count();
        let counts = (count("timer"), count("pipe"), count("check"));
        assert_eq!(counts, (TIMERS, 1, 1), "{setting}");
        watched.go_on();
        watched.finish();
    }
}
