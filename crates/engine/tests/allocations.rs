//! No allocation per operation: once warmed up, a loop lives on the memory it has.

#[path = "support/each_mechanism.rs"]
mod each_mechanism;

use blacklight_engine::{AddressRef, Buffers, Descriptor, SenderRoom};
use blacklight_engine::{Engine, Event, Job, Key, Mechanism, Mode, Readiness, Token, WorkKind};
use blacklight_record::read::Reader;
use each_mechanism::{on_each_mechanism, run};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, IntoRawFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Barrier, Mutex, Once};

/// The system's allocator, with each thread's requests counted.
struct Counting;

thread_local! {
    static REQUESTS: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    // A thread that is about to end has no counter any more, and no test to count for.
    let _ = REQUESTS.try_with(|requests| requests.set(requests.get() + 1));
}

// SAFETY: every call is passed on as it is to the system's allocator, which keeps the
// contract; counting touches nothing but a thread's own number and does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller keeps `alloc`'s contract, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller keeps `alloc_zeroed`'s contract, which is the same.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: the caller keeps `realloc`'s contract, which is the same.
        unsafe { System.realloc(at, layout, size) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps `dealloc`'s contract, which is the same.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn requests() -> u64 {
    REQUESTS.with(Cell::get)
}

/// Repeats something until the loop should have all the memory it needs for it, and then
/// sees to it that no more is asked for.
fn assert_steady(warm_up: u32, rounds: u32, mut operation: impl FnMut(u32)) {
    for round in 0..warm_up {
        operation(round);
    }
    let before = requests();
    for round in warm_up..warm_up + rounds {
        operation(round);
        let made = requests() - before;
        assert_eq!(made, 0, "round {round} has allocated");
    }
}

on_each_mechanism!(
    a_turn,
    starting_a_timer_anew,
    a_timer_that_fires,
    a_timer_that_repeats,
    a_send,
    an_event,
    watching_and_not_watching,
    a_handle_in_the_place_of_another,
    a_request_to_the_pool,
    a_cancelled_request,
    a_datagram,
    an_echo_over_tcp,
    an_echo_over_a_pipe,
    a_message_that_has_to_wait,
);

/// Whether the loops are recorded.
const SETTING: &str = "BLACKLIGHT_RECORD";

fn are_recorded() -> bool {
    std::env::var(SETTING).as_deref() == Ok("1")
}

/// No reader that happens to be there has the loop begin to record in the midst of a count.
fn engine_on(mechanism: Mechanism) -> Engine {
    static SETTLED: Once = Once::new();
    SETTLED.call_once(|| {
        if !are_recorded() {
            // SAFETY: all that looks at the environment here does so through the standard library, whose lock this takes as well.
            unsafe { std::env::set_var(SETTING, "never") };
        }
    });
    each_mechanism::engine_on(mechanism)
}

/// A turn of the loop, and how many callbacks there were in it.
fn turn(engine: &mut Engine) -> u32 {
    let mut called = 0;
    run(engine, Mode::NoWait, |_, _| called += 1);
    called
}

fn started_timer(engine: &mut Engine, timeout_ms: u64, repeat_ms: u64) -> Key {
    let timer = engine.timer_init(Token(1)).unwrap();
    engine.timer_start(timer, timeout_ms, repeat_ms).unwrap();
    timer
}

fn a_turn(mechanism: Mechanism) {
    let mut engine = engine_on(mechanism);
    for token in 0..3 {
        let handles = [
            engine.idle_init(Token(token)).unwrap(),
            engine.prepare_init(Token(token)).unwrap(),
            engine.check_init(Token(token)).unwrap(),
        ];
        for handle in handles {
            engine.loop_watcher_start(handle).unwrap();
        }
    }
    assert_steady(10, 1_000, |_| assert_eq!(turn(&mut engine), 9));
}

fn starting_a_timer_anew(mechanism: Mechanism) {
    let mut engine = engine_on(mechanism);
    let timer = started_timer(&mut engine, FAR_MS, FAR_MS);
    assert_steady(1_000, 10_000, |round| match round % 3 {
        0 => engine.timer_start(timer, FAR_MS, FAR_MS).unwrap(),
        1 => engine
            .timer_start(timer, FAR_MS - u64::from(round), FAR_MS)
            .unwrap(),
        _ => engine.timer_again(timer).unwrap(),
    });
    assert_eq!(turn(&mut engine), 0);
}

fn a_timer_that_fires(mechanism: Mechanism) {
    let mut engine = engine_on(mechanism);
    let timers: Vec<_> = (0..10).map(|_| started_timer(&mut engine, 0, 0)).collect();
    assert_steady(10, 1_000, |_| {
        assert_eq!(turn(&mut engine), 10);
        for &timer in &timers {
            engine.timer_start(timer, 0, 0).unwrap();
        }
    });
}

fn a_timer_that_repeats(mechanism: Mechanism) {
    let mut engine = engine_on(mechanism);
    for _ in 0..10 {
        started_timer(&mut engine, 1, 1);
    }
    assert_steady(5, 20, |_| {
        let mut fired = 0;
        run(&mut engine, Mode::Once, |_, event| {
            assert_eq!(event, Event::Timer(Token(1)));
            fired += 1;
        });
        assert!(fired > 0, "a turn waits for its timers");
    });
}

/// Longer than any test takes.
const FAR_MS: u64 = 1_000_000_000;

/// On a simulated clock, so that the queue takes the same shapes every time.
#[test]
fn timers_of_all_sorts() {
    let mut engine = engine_on(Mechanism::Sim(1));
    let start = |_| started_timer(&mut engine, FAR_MS, 0);
    let timers: Vec<_> = (0..200).map(start).collect();
    let mut random = 1u64;
    // Until every part of the queue has once been as large as it ever gets.
    assert_steady(60_000, 60_000, |_| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let timer = timers[(random >> 33) as usize % timers.len()];
        match random >> 60 {
            0..12 => {
                let timeout_ms = FAR_MS + (random >> 40) % 5_000;
                engine.timer_start(timer, timeout_ms, 0).unwrap();
            }
            12..15 => engine.timer_stop(timer).unwrap(),
            _ => {
                engine.sim().unwrap().advance(1_000_000);
                assert_eq!(turn(&mut engine), 0);
            }
        }
    });
}

fn a_send(mechanism: Mechanism) {
    let mut engine = engine_on(mechanism);
    let tickets: Vec<_> = (0..10)
        .map(|token| engine.async_init(Token(token)).unwrap().1)
        .collect();
    let senders: Vec<_> = tickets
        .iter()
        .map(|&ticket| engine.async_sender(ticket))
        .collect();
    assert_steady(10, 1_000, |round| {
        senders.iter().for_each(|sender| sender.send());
        let mode = if round % 2 == 0 {
            Mode::NoWait
        } else {
            Mode::Once
        };
        let mut called = 0;
        run(&mut engine, mode, |_, _| called += 1);
        assert_eq!(called, 10);
    });
}

/// A socket that is readable and writable for ever.
fn ready_socket() -> (UnixStream, UnixStream) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    std::io::Write::write_all(&mut &theirs, b"!").unwrap();
    (ours, theirs)
}

const READABLE: Readiness = Readiness::READABLE;
const WRITABLE: Readiness = Readiness::WRITABLE;

fn an_event(mechanism: Mechanism) {
    let mut engine = engine_on(mechanism);
    let sockets: Vec<_> = (0..20).map(|_| ready_socket()).collect();
    for (ours, _) in &sockets {
        let key = engine.poll_init(Token(1), ours.as_raw_fd()).unwrap();
        engine.poll_start(key, READABLE).unwrap();
    }
    assert_steady(10, 1_000, |_| assert_eq!(turn(&mut engine), 20));
}

fn watching_and_not_watching(mechanism: Mechanism) {
    let mut engine = engine_on(mechanism);
    let sockets: Vec<_> = (0..20).map(|_| ready_socket()).collect();
    let init = |(ours, _): &(UnixStream, UnixStream)| {
        let key = engine.poll_init(Token(1), ours.as_raw_fd()).unwrap();
        engine.poll_start(key, READABLE).unwrap();
        key
    };
    let keys: Vec<_> = sockets.iter().map(init).collect();
    assert_steady(10, 500, |round| {
        for &key in &keys {
            if round % 2 == 0 {
                engine.poll_stop(key).unwrap();
            }
            let wanted = [READABLE, WRITABLE, READABLE | WRITABLE][round as usize % 3];
            engine.poll_start(key, wanted).unwrap();
        }
        assert_eq!(turn(&mut engine), 20);
    });
}

fn a_handle_in_the_place_of_another(mechanism: Mechanism) {
    let mut engine = engine_on(mechanism);
    let (ours, _theirs) = ready_socket();
    assert_steady(10, 500, |_| {
        let timer = started_timer(&mut engine, FAR_MS, 0);
        let idle = engine.idle_init(Token(2)).unwrap();
        engine.loop_watcher_start(idle).unwrap();
        let (wakeable, ticket) = engine.async_init(Token(3)).unwrap();
        engine.mailbox().send(ticket);
        let poll = engine.poll_init(Token(4), ours.as_raw_fd()).unwrap();
        engine.poll_start(poll, READABLE).unwrap();
        assert_eq!(turn(&mut engine), 3);
        for key in [timer, idle, wakeable, poll] {
            engine.close(key).unwrap();
        }
        assert_eq!(turn(&mut engine), 4);
    });
    assert!(engine.is_unused());
}

#[test]
#[should_panic(expected = "round 3 has allocated")]
fn an_allocation_does_not_go_unnoticed() {
    let mut kept = Vec::new();
    assert_steady(3, 10, |round| kept.push(Box::new(round)));
}

/// The pool, which all tests share, gets room for more requests than all of them together ever
/// queue at the same time.
fn fill_pool(engine: &mut Engine) {
    const THREADS: usize = 4;
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap();
    let gate = Arc::new(Barrier::new(THREADS + 1));
    for _ in 0..THREADS {
        let gate = gate.clone();
        let hold = Job::new(move || {
            gate.wait();
            gate.wait();
        });
        engine.work_submit(Token(0), WorkKind::Cpu, hold).unwrap();
    }
    gate.wait();
    for request in 0..200 {
        let kind = [WorkKind::Cpu, WorkKind::SlowIo][request % 2];
        let job = Job::new(|| ());
        engine.work_submit(Token(0), kind, job).unwrap();
    }
    gate.wait();
    run(engine, Mode::Default, |_, _| ());
}

fn a_request_to_the_pool(mechanism: Mechanism) {
    let mut engine = engine_on(mechanism);
    fill_pool(&mut engine);
    assert_steady(100, 500, |round| {
        for token in 0..10 {
            // A closure that holds nothing needs no memory of its own.
            let kind = [WorkKind::Cpu, WorkKind::SlowIo][(round % 2) as usize];
            let job = Job::new(|| ());
            engine.work_submit(Token(token), kind, job).unwrap();
        }
        let mut called = 0;
        run(&mut engine, Mode::Default, |_, _| called += 1);
        assert_eq!(called, 10);
    });
}

fn a_cancelled_request(mechanism: Mechanism) {
    let mut engine = engine_on(mechanism);
    fill_pool(&mut engine);
    assert_steady(100, 500, |_| {
        let requests: [_; 10] = std::array::from_fn(|token| {
            let job = Job::new(|| ());
            let token = Token(token as u64);
            engine.work_submit(token, WorkKind::FastIo, job).unwrap()
        });
        for request in requests {
            // Whether it is in time does not matter here.
            let _ = engine.work_cancel(request);
        }
        let mut called = 0;
        run(&mut engine, Mode::Default, |_, _| called += 1);
        assert_eq!(called, 10);
    });
}

/// A `struct iovec`.
#[repr(C)]
struct Slice(*const u8, usize);

/// Sent at once, queued behind another, reported and received.
fn a_datagram(mechanism: Mechanism) {
    let mut engine = engine_on(mechanism);
    let receiver = engine.udp_init(Token(1), None).unwrap();
    engine.udp_receive_start(receiver).unwrap();
    let address = engine.udp_address(receiver, false).unwrap();
    let to = Some(AddressRef::from(&address));
    let sender = engine.udp_init(Token(2), None).unwrap();
    let text = *b"datagram";
    let mut slice = Slice(text.as_ptr(), text.len());
    assert_steady(100, 1_000, |_| {
        for queued in [false, true, true] {
            // SAFETY: the text and the array that describes it outlive the sends, which are
            // reported below, and nobody changes them.
            let buffers = unsafe { Buffers::new((&raw mut slice).cast(), 1) };
            let sent = engine.udp_send(sender, Token(3), &buffers, to).unwrap();
            assert_eq!(sent, !queued);
            if queued {
                engine
                    .udp_send_later(sender, Token(3), buffers, to)
                    .unwrap();
            }
        }
        let (mut reports, mut received) = (0, 0);
        while received < 3 {
            run(&mut engine, Mode::NoWait, |engine, event| match event {
                Event::Receive(_) => {
                    let mut room = [MaybeUninit::uninit(); 16];
                    let mut from = SenderRoom::new();
                    let datagram = engine.udp_receive(receiver, &mut room, &mut from);
                    received += u32::from(datagram.is_ok());
                }
                _ => reports += 1,
            });
        }
        assert_eq!(reports, 3);
    });
}

/// Both ends of a connection, by way of a server.
fn connected(engine: &mut Engine, server: Key, ends: [Key; 2], connect: impl FnOnce(&mut Engine)) {
    engine.stream_listen(server, 1).unwrap();
    connect(engine);
    let mut steps = 0;
    while steps < 2 {
        run(engine, Mode::Once, |engine, event| {
            steps += 1;
            if let Event::Connection(_, result) = event {
                result.unwrap();
                engine.stream_accept(server, ends[1]).unwrap();
            }
        });
    }
    engine.close(server).unwrap();
    assert_eq!(turn(engine), 1);
}

fn an_echo_over_tcp(mechanism: Mechanism) {
    let mut engine = engine_on(mechanism);
    let server = engine.tcp_init(Token(9), None).unwrap();
    let ends = [1, 2].map(|token| engine.tcp_init(Token(token), None).unwrap());
    connected(&mut engine, server, ends, |engine| {
        let address = engine.stream_address(server, false).unwrap();
        engine.tcp_connect(ends[0], Token(3), &address).unwrap();
    });
    echo(&mut engine, ends);
}

fn an_echo_over_a_pipe(mechanism: Mechanism) {
    let mut engine = engine_on(mechanism);
    let server = engine.pipe_init(Token(9), false).unwrap();
    engine.pipe_bind(server, b"").unwrap();
    let ends = [1, 2].map(|token| engine.pipe_init(Token(token), false).unwrap());
    connected(&mut engine, server, ends, |engine| {
        let address = engine.stream_address(server, false).unwrap();
        let name = address.unix_name();
        engine.pipe_connect(ends[0], Token(3), name).unwrap();
    });
    echo(&mut engine, ends);
}

/// The second end writes back the bytes that the first has written.
fn echo(engine: &mut Engine, ends: [Key; 2]) {
    let mut bytes = [*b"question", *b"????????"];
    for end in ends {
        engine.read_start(end).unwrap();
    }
    let mut slices = [Slice(bytes[0].as_ptr(), 8), Slice(bytes[1].as_ptr(), 8)];
    let mut write = |engine: &mut Engine, end: usize| {
        // SAFETY: the bytes and the array that describes them outlive the write, which is
        // reported before the next one is made, and nobody changes them meanwhile.
        let buffers = unsafe { Buffers::new((&raw mut slices[end]).cast(), 1) };
        let token = Token(10 + end as u64);
        engine
            .stream_write(ends[end], token, buffers, None)
            .unwrap();
    };
    assert_steady(100, 1_000, |_| {
        write(engine, 0);
        let (mut reports, mut echoed) = (0, 0);
        while echoed < 8 || reports < 2 {
            run(engine, Mode::Once, |engine, event| match event {
                Event::Read(token) => {
                    let end = token.0 as usize - 1;
                    let mut room = [MaybeUninit::uninit(); 64];
                    let Ok(count) = engine.stream_read(ends[end], &mut room) else {
                        return;
                    };
                    assert_eq!(count, 8, "so little comes in one piece");
                    // SAFETY: as many bytes have been read.
                    let read =
                        unsafe { std::slice::from_raw_parts(room.as_ptr().cast::<u8>(), count) };
                    if end == 0 {
                        assert_eq!(read, b"question");
                        echoed += count;
                    } else {
                        bytes[1].copy_from_slice(read);
                        write(engine, 1);
                    }
                }
                Event::Write(_, result, 8) => {
                    result.unwrap();
                    reports += 1;
                }
                event => panic!("{event:?}"),
            });
        }
    });
}

/// The kernel takes it in parts, while the other end reads.
fn a_message_that_has_to_wait(mechanism: Mechanism) {
    const LEN: usize = 1 << 20;
    let mut engine = engine_on(mechanism);
    let (ours, theirs) = UnixStream::pair().unwrap();
    let keys = [(1, ours), (2, theirs)].map(|(token, socket)| {
        let key = engine.pipe_init(Token(token), false).unwrap();
        // SAFETY: the socket is given away.
        let socket = unsafe { Descriptor::adopt(socket.into_raw_fd()) };
        engine.stream_open(key, socket, true, true).unwrap();
        key
    });
    engine.read_start(keys[1]).unwrap();
    let text = vec![b'x'; LEN];
    let mut room = vec![MaybeUninit::uninit(); 1 << 16];
    assert_steady(3, 20, |_| {
        let mut slice = Slice(text.as_ptr(), LEN);
        // SAFETY: the text and the array that describes it outlive the write, which is reported
        // below, and nobody else changes them.
        let buffers = unsafe { Buffers::new((&raw mut slice).cast(), 1) };
        engine
            .stream_write(keys[0], Token(3), buffers, None)
            .unwrap();
        assert_ne!(engine.write_queue_size(keys[0]), 0, "it has to wait");
        let (mut reports, mut received) = (0, 0);
        while received < LEN || reports == 0 {
            run(&mut engine, Mode::Once, |engine, event| match event {
                Event::Read(_) => {
                    received += engine.stream_read(keys[1], &mut room[..]).unwrap_or(0)
                }
                event => {
                    assert_eq!(event, Event::Write(Token(3), Ok(()), LEN));
                    reports += 1;
                }
            });
        }
    });
}

/// All of the above once more, recorded, in a process of its own: with every event in a ring, and the handles described before each sleep.
#[test]
fn recording_allocates_nothing_either() {
    if are_recorded() {
        return;
    }
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    let output = command.env(SETTING, "1").output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{told}");
}

#[test]
fn the_loops_of_these_tests_are_recorded_if_that_is_set() {
    let engine = engine_on(Mechanism::Epoll);
    let reader = Reader::open(std::process::id());
    match are_recorded() {
        true => assert!(reader.expect("there is a record").is_recording().unwrap()),
        false => assert!(reader.is_err(), "nobody can have them recorded"),
    }
    drop(engine);
}
