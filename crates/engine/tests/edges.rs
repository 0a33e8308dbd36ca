//! Readiness that the kernel reports once of a TCP socket is reported by the engine until it has been
//! used up: a stream that follows edges looks like any other. So all of this holds on every mechanism.

#[path = "support/each_mechanism.rs"]
mod each_mechanism;

use blacklight_engine::{
    Address, BindOptions, Buffers, Engine, Errno, Event, Key, Mechanism, Mode, Readiness, Run,
    Token,
};
use blacklight_sys::poll::{POLLIN, poll, pollfd};
use each_mechanism::{GUARD, guarded_engine_on, on_each_mechanism, run, told, turn};
use rustix::event::{EventfdFlags, eventfd};
use rustix::net::{SendFlags, SocketType, ipproto, send};
use rustix::process::{Resource, getrlimit, setrlimit};
use std::io::{Read, Write};
use std::mem::{ManuallyDrop, MaybeUninit};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

on_each_mechanism!(
    what_is_left_is_told_again_in_bounded_turns,
    who_stops_and_starts_again_finds_what_is_left,
    room_that_is_refused_is_offered_again,
    what_comes_behind_urgent_data_is_read,
    the_end_is_told_after_the_last_bytes_and_again,
    writes_that_are_blocked_time_and_again_go_on,
    who_asks_when_it_can_write_is_told,
    a_second_attempt_to_connect_is_not_taken_for_the_first,
    a_stream_that_is_made_to_block_is_read_when_there_is_something_only,
    nothing_is_lost_when_a_run_is_given_up,
    nothing_is_lost_when_a_conversation_turns_into_a_flow_and_back,
    what_comes_soon_is_waited_for_and_nothing_else_waits,
);

fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let theirs = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    theirs.set_nodelay(true).unwrap();
    (listener.accept().unwrap().0, theirs)
}

/// A TCP handle on one end of a connection.
fn tcp_on(engine: &mut Engine, token: u64, socket: TcpStream) -> Key {
    let key = engine.tcp_init(Token(token), None).unwrap();
    let opened = engine.stream_open(key, OwnedFd::from(socket).into(), true, true);
    opened.map_err(|(error, _)| error).unwrap();
    key
}

fn reading(engine: &mut Engine, token: u64) -> (Key, TcpStream) {
    let (ours, theirs) = pair();
    let key = tcp_on(engine, token, ours);
    engine.read_start(key).unwrap();
    (key, theirs)
}

fn read(engine: &mut Engine, key: Key, room: usize) -> Result<usize, Errno> {
    engine.stream_read(key, &mut vec![MaybeUninit::uninit(); room][..])
}

/// Runs until something has come, and gives it to `call`.
fn wait(engine: &mut Engine, mut call: impl FnMut(&mut Engine, Event)) {
    run(engine, Mode::Once, |engine, event| {
        assert_ne!(event, Event::Timer(GUARD), "nothing has come");
        call(engine, event);
    });
}

/// Whether one who embeds the engine has to run it: by its time-out or by its descriptor.
fn is_due(engine: &mut Engine) -> bool {
    let mut poller = [pollfd {
        fd: engine.backend_fd().expect("epoll has one"),
        events: POLLIN as i16,
        revents: 0,
    }];
    engine.backend_timeout() == Some(0) || poll(&mut poller, Some(0), None) == Ok(1)
}

fn what_is_left_is_told_again_in_bounded_turns(mechanism: Mechanism) {
    let mut engine = guarded_engine_on(mechanism);
    let (stream, mut theirs) = reading(&mut engine, 1);
    theirs.write_all(&[7; 1000]).unwrap();
    let (mut total, mut turns) = (0, 0);
    while total < 1000 {
        let mut of_turn = 0;
        wait(&mut engine, |engine, event| {
            assert_eq!(event, Event::Read(Token(1)));
            of_turn += read(engine, stream, 1).unwrap_or(0);
        });
        total += of_turn;
        turns += 1;
        assert!(of_turn > 0, "after {total}, without another byte sent");
        assert!(of_turn < 100, "others have their turn too");
        if total < 1000 && mechanism == Mechanism::Epoll {
            assert!(
                is_due(&mut engine),
                "who embeds the loop does not sleep now"
            );
        }
    }
    assert!(turns > 10);
    theirs.write_all(&[8]).unwrap();
    wait(&mut engine, |engine, _| {
        assert_eq!(read(engine, stream, 9), Ok(1))
    });
}

fn who_stops_and_starts_again_finds_what_is_left(mechanism: Mechanism) {
    let mut engine = guarded_engine_on(mechanism);
    let (stream, mut theirs) = reading(&mut engine, 1);
    theirs.write_all(b"0123456789").unwrap();
    for expected in [3, 3, 3, 1] {
        wait(&mut engine, |engine, event| {
            assert_eq!(event, Event::Read(Token(1)));
            assert_eq!(read(engine, stream, 3), Ok(expected));
            engine.read_stop(stream);
        });
        assert_eq!(told(&mut engine), [], "it has stopped");
        engine.read_start(stream).unwrap();
    }
    theirs.write_all(b"more").unwrap();
    wait(&mut engine, |engine, _| {
        assert_eq!(read(engine, stream, 9), Ok(4))
    });
}

/// The front end has no room and does not read.
fn room_that_is_refused_is_offered_again(mechanism: Mechanism) {
    let mut engine = guarded_engine_on(mechanism);
    let (stream, mut theirs) = reading(&mut engine, 1);
    theirs.write_all(b"patience").unwrap();
    for _ in 0..3 {
        let mut events = Vec::new();
        wait(&mut engine, |_, event| events.push(event));
        assert_eq!(events, [Event::Read(Token(1))]);
    }
    wait(&mut engine, |engine, _| {
        assert_eq!(read(engine, stream, 9), Ok(8))
    });
}

/// The kernel ends a read before the urgent byte, however much there is behind it.
fn what_comes_behind_urgent_data_is_read(mechanism: Mechanism) {
    let mut engine = guarded_engine_on(mechanism);
    let (stream, mut theirs) = reading(&mut engine, 1);
    for round in 0..3 {
        theirs.write_all(b"before").unwrap();
        send(&theirs, b"!", SendFlags::OOB).unwrap();
        theirs.write_all(b"behind").unwrap();
        let mut total = 0;
        while total < 12 {
            wait(&mut engine, |engine, _| {
                total += read(engine, stream, 100).unwrap_or(0);
            });
        }
        assert_eq!(total, 12, "in round {round}");
    }
}

fn the_end_is_told_after_the_last_bytes_and_again(mechanism: Mechanism) {
    let mut engine = guarded_engine_on(mechanism);
    let (stream, mut theirs) = reading(&mut engine, 1);
    theirs.write_all(b"last words").unwrap();
    drop(theirs);
    let mut results = Vec::new();
    run(&mut engine, Mode::Default, |engine, event| {
        assert_eq!(event, Event::Read(Token(1)));
        results.push(read(engine, stream, 100));
    });
    assert_eq!(results, [Ok(10), Err(Errno::EOF)]);
    for _ in 0..2 {
        engine.read_start(stream).unwrap();
        let mut ends = 0;
        run(&mut engine, Mode::Default, |engine, _| {
            assert_eq!(read(engine, stream, 100), Err(Errno::EOF));
            ends += 1;
        });
        assert_eq!(ends, 1, "who reads on hears it again");
    }
}

fn writes_that_are_blocked_time_and_again_go_on(mechanism: Mechanism) {
    const LEN: usize = 300_000;
    let mut engine = guarded_engine_on(mechanism);
    let (ours, mut theirs) = pair();
    let stream = tcp_on(&mut engine, 1, ours);
    theirs.set_nonblocking(true).unwrap();
    let mut room = vec![0; 50_000];
    let (mut received, mut reported) = (0, 0);
    for round in 1..=30 {
        for _ in 0..3 {
            let buffers = Buffers::owned(vec![round; LEN]);
            engine
                .stream_write(stream, Token(2), buffers, None)
                .unwrap();
        }
        let began = std::time::Instant::now();
        while reported < 3 * usize::from(round) {
            assert!(began.elapsed().as_secs() < 60, "{reported} were written");
            run(&mut engine, Mode::NoWait, |_, event| {
                assert_eq!(event, Event::Write(Token(2), Ok(()), LEN));
                reported += 1;
            });
            while let Ok(count) = theirs.read(&mut room) {
                received += count;
            }
        }
    }
    theirs.set_nonblocking(false).unwrap();
    let mut rest = vec![0; 90 * LEN - received];
    theirs.read_exact(&mut rest).unwrap();
    theirs.set_nonblocking(true).unwrap();
    assert!(theirs.read(&mut room).is_err(), "there is no more");
}

/// Also when the socket has been writable all the time, so that the kernel has nothing new to
/// say.
fn who_asks_when_it_can_write_is_told(mechanism: Mechanism) {
    let mut engine = guarded_engine_on(mechanism);
    let keeper = engine.timer_init(Token(9)).unwrap();
    engine.timer_start(keeper, u64::MAX, 0).unwrap();
    let (ours, mut theirs) = pair();
    let stream = tcp_on(&mut engine, 1, ours);
    for _ in 0..3 {
        engine.stream_want_writable(stream).unwrap();
        assert_eq!(told(&mut engine), [Event::Writable(Token(1))]);
        assert_eq!(told(&mut engine), []);
    }
    let filler = Buffers::owned(vec![0; 1 << 20]);
    while engine.stream_try_write(stream, &filler, None).is_ok() {}
    engine.stream_want_writable(stream).unwrap();
    assert_eq!(told(&mut engine), [], "there is no room");
    theirs.set_nonblocking(true).unwrap();
    let mut room = vec![0; 1 << 20];
    let mut events = Vec::new();
    let began = std::time::Instant::now();
    while events.is_empty() && began.elapsed().as_secs() < 60 {
        while theirs.read(&mut room).is_ok_and(|count| count > 0) {}
        events = told(&mut engine);
    }
    assert_eq!(events, [Event::Writable(Token(1))]);
}

/// The first is refused, the second stays unanswered: its listener's queue is full.
fn a_second_attempt_to_connect_is_not_taken_for_the_first(mechanism: Mechanism) {
    let mut engine = guarded_engine_on(mechanism);
    // A port that nobody is ever given.
    let refusing = std::net::SocketAddr::from(([127, 0, 0, 1], 1));
    let busy = TcpListener::bind("127.0.0.1:0").unwrap();
    rustix::net::listen(&busy, 0).unwrap();
    let full = busy.local_addr().unwrap();
    let waiting: Vec<OwnedFd> = (0..4)
        .map(|_| {
            let flags = rustix::net::SocketFlags::NONBLOCK;
            let family = rustix::net::AddressFamily::INET;
            let kind = SocketType::STREAM;
            let socket = rustix::net::socket_with(family, kind, flags, Some(ipproto::TCP));
            let socket = socket.unwrap();
            let _ = rustix::net::connect(&socket, &full);
            socket
        })
        .collect();
    let stream = engine.tcp_init(Token(1), None).unwrap();
    let connect = |engine: &mut Engine, token, to: std::net::SocketAddr| {
        engine.tcp_connect(stream, Token(token), &Address::from(to))
    };
    connect(&mut engine, 2, refusing).unwrap();
    let mut events = Vec::new();
    while events.is_empty() {
        wait(&mut engine, |_, event| events.push(event));
    }
    assert_eq!(events, [Event::Connect(Token(2), Err(Errno::ECONNREFUSED))]);
    // The kernel has the socket give up the first attempt first.
    assert_eq!(connect(&mut engine, 3, full), Err(Errno::ECONNABORTED));
    connect(&mut engine, 3, full).unwrap();
    for _ in 0..3 {
        assert_eq!(told(&mut engine), [], "nobody has answered");
    }
    drop(waiting);
    engine.close(stream).unwrap();
    let closed = [
        Event::Connect(Token(3), Err(Errno::ECANCELED)),
        Event::Closed(Token(1)),
    ];
    assert_eq!(told(&mut engine), closed);
}

/// As many bytes as are read in one turn: whether there are more, only the kernel can say.
fn a_stream_that_is_made_to_block_is_read_when_there_is_something_only(mechanism: Mechanism) {
    let mut engine = guarded_engine_on(mechanism);
    let (stream, mut theirs) = reading(&mut engine, 1);
    let mut per_turn = 0;
    theirs.write_all(&[0; 1000]).unwrap();
    wait(&mut engine, |engine, _| {
        per_turn += read(engine, stream, 1).unwrap();
    });
    let mut left = 1000 - per_turn;
    engine.stream_set_blocking(stream, true).unwrap();
    while left >= 2 * per_turn {
        wait(&mut engine, |engine, _| {
            left -= read(engine, stream, 1).unwrap();
        });
    }
    let rest = left - per_turn;
    wait(&mut engine, |engine, event| {
        assert_eq!(event, Event::Read(Token(1)));
        if left > per_turn {
            left -= read(engine, stream, rest).unwrap();
            engine.read_stop(stream);
        }
    });
    engine.read_start(stream).unwrap();
    wait(&mut engine, |engine, _| {
        left -= read(engine, stream, 1).unwrap();
    });
    assert_eq!(left, 0);
    assert_eq!(told(&mut engine), [], "a read would not return");
}

fn nothing_is_lost_when_a_run_is_given_up(mechanism: Mechanism) {
    let mut engine = guarded_engine_on(mechanism);
    let mut streams = [1, 2, 3].map(|token| reading(&mut engine, token));
    for (_, theirs) in &mut streams {
        theirs.write_all(b"hello").unwrap();
    }
    let first = engine.next(&mut Run::new(Mode::Once));
    assert!(matches!(first, Some(Event::Read(_))));
    let keys = streams.each_ref().map(|(key, _)| *key);
    let mut told = Vec::new();
    while told.len() < 3 {
        wait(&mut engine, |engine, event| {
            let Event::Read(Token(token)) = event else {
                panic!("{event:?}");
            };
            assert_eq!(read(engine, keys[token as usize - 1], 9), Ok(5));
            told.push(token);
        });
    }
    told.sort();
    assert_eq!(told, [1, 2, 3]);
}

/// The other end answers at once, so the loop stays awake for it; a timer and a send from
/// another thread get their turn all the same.
fn what_comes_soon_is_waited_for_and_nothing_else_waits(mechanism: Mechanism) {
    const ROUNDS: u32 = 3000;
    let mut engine = guarded_engine_on(mechanism);
    let (stream, mut theirs) = reading(&mut engine, 1);
    let timer = engine.timer_init(Token(2)).unwrap();
    engine.timer_start(timer, 1, 1).unwrap();
    let (wake_up, ticket) = engine.async_init(Token(3)).unwrap();
    let sender = engine.async_sender(ticket);
    let other = std::thread::spawn(move || {
        let mut byte = [0];
        for round in 0..ROUNDS {
            theirs.read_exact(&mut byte).unwrap();
            if round % 100 == 50 {
                sender.send();
            }
            theirs.write_all(&byte).unwrap();
        }
        theirs
    });
    let byte = Buffers::owned(vec![1]);
    assert_eq!(engine.stream_try_write(stream, &byte, None), Ok(1));
    let (mut rounds, mut ticks, mut sends) = (0, 0, 0);
    let began = std::time::Instant::now();
    run(&mut engine, Mode::Default, |engine, event| match event {
        Event::Timer(GUARD) => panic!("nothing has come"),
        Event::Read(_) => {
            if read(engine, stream, 9) == Ok(1) {
                rounds += 1;
                match rounds {
                    ROUNDS => engine.stop(),
                    _ => assert_eq!(engine.stream_try_write(stream, &byte, None), Ok(1)),
                }
            }
        }
        Event::Timer(_) => ticks += 1,
        Event::Async(_) => sends += 1,
        event => panic!("{event:?}"),
    });
    assert_eq!((rounds, sends), (ROUNDS, ROUNDS / 100));
    let ms = began.elapsed().as_millis();
    assert!(ticks > 0 || ms < 10, "no tick in {ms} ms");
    engine.close(wake_up).unwrap();
    drop(other.join().unwrap());
}

/// Enough reads or writes in a row to be a flow.
const MANY: usize = 100;

/// With bytes left to read each time that the way changes, and none that come later to tell of
/// them.
fn nothing_is_lost_when_a_conversation_turns_into_a_flow_and_back(mechanism: Mechanism) {
    let mut engine = guarded_engine_on(mechanism);
    let (stream, mut theirs) = reading(&mut engine, 1);
    let byte = Buffers::owned(vec![1]);
    for round in 0..5 {
        let bytes: Vec<u8> = (0..3 * MANY).map(|at| at as u8).collect();
        theirs.write_all(&bytes).unwrap();
        let mut received = Vec::new();
        while received.len() < bytes.len() {
            let before = received.len();
            wait(&mut engine, |engine, event| {
                assert_eq!(event, Event::Read(Token(1)));
                let mut room = [0];
                if engine.stream_read(stream, &mut room[..]) == Ok(1) {
                    received.push(room[0]);
                }
                if received.len() % (MANY + round) == 0 {
                    assert_eq!(engine.stream_try_write(stream, &byte, None), Ok(1));
                }
            });
            assert!(received.len() > before, "round {round}, after {before}");
        }
        assert_eq!(received, bytes);
        assert_eq!(told(&mut engine), [], "there is nothing more");
        for _ in 0..MANY {
            assert_eq!(engine.stream_try_write(stream, &byte, None), Ok(1));
        }
    }
}

/// The poller's own word for it.
#[test]
fn levels_tell_of_flows_and_edges_of_conversations() {
    const EDGE: u32 = 1 << 31;
    let _turn = turn();
    let mut engine = guarded_engine_on(Mechanism::Epoll);
    let (stream, mut theirs) = reading(&mut engine, 1);
    let poller = engine.backend_fd().expect("epoll has one");
    let fd = engine.stream_fd(stream).unwrap();
    let follows_edges = || {
        let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{poller}")).unwrap();
        let mut words = info.lines().map(|line| line.split_whitespace());
        let events = words.find_map(|mut words| {
            let of_it = words.next() == Some("tfd:") && words.next()?.parse() == Ok(fd);
            of_it.then(|| words.nth(1)).flatten()
        });
        u32::from_str_radix(events.expect("it is watched"), 16).unwrap() & EDGE != 0
    };
    let byte = Buffers::owned(vec![1]);
    assert_eq!(engine.stream_try_write(stream, &byte, None), Ok(1));
    for _ in 0..2 {
        for at in 0..MANY {
            theirs.write_all(&[1]).unwrap();
            wait(&mut engine, |engine, _| {
                assert_eq!(read(engine, stream, 9), Ok(1));
            });
            assert_eq!(follows_edges(), at < 64, "at {at}");
        }
        for at in 0..MANY {
            assert_eq!(engine.stream_try_write(stream, &byte, None), Ok(1));
            assert_eq!(follows_edges(), at < 64, "at {at}");
        }
    }
    for _ in 0..MANY {
        theirs.write_all(&[1]).unwrap();
        wait(&mut engine, |engine, _| {
            assert_eq!(read(engine, stream, 9), Ok(1));
            assert_eq!(engine.stream_try_write(stream, &byte, None), Ok(1));
        });
        assert!(follows_edges());
    }
}

/// In the midst of waiting awake, its descriptor is something else.
#[test]
fn a_poller_that_breaks_is_replaced() {
    each_mechanism::alone(|| {
        let mut engine = guarded_engine_on(Mechanism::Epoll);
        let (stream, mut theirs) = reading(&mut engine, 1);
        let other = std::thread::spawn(move || {
            let mut byte = [0];
            while theirs.read_exact(&mut byte).is_ok() {
                theirs.write_all(&byte).unwrap();
            }
        });
        let byte = Buffers::owned(vec![1]);
        for round in 0..600 {
            if round == 300 {
                let poller = engine.backend_fd().expect("epoll has one");
                // SAFETY: it is not dropped, and the engine's own number stays open.
                let poller = unsafe { OwnedFd::from_raw_fd(poller) };
                let mut poller = ManuallyDrop::new(poller);
                let null = std::fs::File::open("/dev/null").unwrap();
                rustix::io::dup2(&null, &mut poller).unwrap();
            }
            assert_eq!(engine.stream_try_write(stream, &byte, None), Ok(1));
            let mut answer = Err(Errno::EAGAIN);
            while answer.is_err() {
                wait(&mut engine, |engine, _| answer = read(engine, stream, 9));
            }
            assert_eq!(answer, Ok(1), "in round {round}");
        }
        engine.close(stream).unwrap();
        assert_eq!(told(&mut engine), [Event::Closed(Token(1))]);
        other.join().unwrap();
    });
}

/// A pipe for passing handles reads in another way, and cannot say when it has used up what a
/// TCP connection told: it must not be told for ever.
#[test]
fn a_connection_in_a_handle_of_another_kind_does_not_keep_the_loop_turning() {
    each_mechanism::alone(|| {
        let mut engine = guarded_engine_on(Mechanism::Epoll);
        let server = engine.tcp_init(Token(1), None).unwrap();
        let anywhere: std::net::SocketAddr = "127.0.0.1:0".parse().unwrap();
        let bound = engine.tcp_bind(server, &Address::from(anywhere), BindOptions::default());
        bound.unwrap();
        engine.stream_listen(server, 1).unwrap();
        let fd = engine.stream_fd(server).unwrap();
        // SAFETY: the engine keeps it open.
        let fd = unsafe { BorrowedFd::borrow_raw(fd) };
        let port = TcpListener::from(fd.try_clone_to_owned().unwrap()).local_addr();
        let mut theirs = TcpStream::connect(port.unwrap()).unwrap();
        let client = engine.pipe_init(Token(2), true).unwrap();
        wait(&mut engine, |engine, event| {
            assert_eq!(event, Event::Connection(Token(1), Ok(())));
            engine.stream_accept(server, client).unwrap();
        });
        engine.read_start(client).unwrap();
        theirs.write_all(b"hello").unwrap();
        wait(&mut engine, |engine, event| {
            assert_eq!(event, Event::Read(Token(2)));
            assert_eq!(read(engine, client, 9), Ok(5));
        });
        assert_eq!(told(&mut engine), [], "there is nothing more");
        assert_ne!(engine.backend_timeout(), Some(0));
    });
}

fn allow_many_descriptors() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).unwrap();
}

/// As many others as one wait can bring are ready all the time, and the kernel says nothing more
/// of the stream.
#[test]
fn what_is_left_is_told_beside_a_crowd() {
    let _turn = turn();
    allow_many_descriptors();
    let mut engine = guarded_engine_on(Mechanism::Epoll);
    let always = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
    let crowd: Vec<_> = (0..1100).map(|_| always.try_clone().unwrap()).collect();
    for (token, one) in (1000..).zip(&crowd) {
        let poll = engine.poll_init(Token(token), one.as_raw_fd()).unwrap();
        engine.poll_start(poll, Readiness::WRITABLE).unwrap();
    }
    let (stream, mut theirs) = reading(&mut engine, 1);
    theirs.write_all(&[7; 50]).unwrap();
    drop(theirs);
    let mut told = Vec::new();
    for _ in 0..100 {
        run(&mut engine, Mode::NoWait, |engine, event| {
            if event == Event::Read(Token(1)) {
                told.push(read(engine, stream, 40));
            }
        });
    }
    assert_eq!(told, [Ok(40), Ok(10), Err(Errno::EOF)]);
}

/// More streams than one batch has room for stop in the middle of what there is, and nothing
/// comes later to tell of them.
#[test]
fn what_is_left_to_very_many_is_told_to_all() {
    const STREAMS: usize = 2100;
    let _turn = turn();
    allow_many_descriptors();
    let mut engine = guarded_engine_on(Mechanism::Epoll);
    let mut streams: Vec<_> = (0..STREAMS)
        .map(|token| reading(&mut engine, token as u64 + 100))
        .collect();
    for (_, theirs) in &mut streams {
        theirs.write_all(&[7; 50]).unwrap();
    }
    let mut left = vec![50; STREAMS];
    while left.iter().any(|&left| left > 0) {
        wait(&mut engine, |engine, event| {
            let at = event.token().0 as usize - 100;
            left[at] -= read(engine, streams[at].0, 1).unwrap_or(0);
        });
    }
}
