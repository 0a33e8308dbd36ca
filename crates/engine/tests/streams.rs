//! Streams on every mechanism, where only the engine can be asked, or where the kernel does
//! what it rarely does.

#[path = "support/each_mechanism.rs"]
mod each_mechanism;

use blacklight_engine::{
    Address, Buffers, Descriptor, Engine, Errno, Event, Faults, Key, Mechanism, Mode, Readiness,
    Run, Token,
};
use each_mechanism::{GUARD, engine_on, guarded_engine_on, on_each_mechanism, run, told};
use std::ffi::CStr;
use std::fs::File;
use std::io::{Read, Write};
use std::mem::MaybeUninit;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, IntoRawFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

on_each_mechanism!(
    a_shutdown_waits_for_writes_of_the_same_callback,
    a_write_that_cannot_wait_for_room_fails,
    a_taken_descriptor_keeps_its_reports,
    what_was_passed_before_a_hang_up_arrives,
    a_reset_after_data_is_not_the_end,
    a_terminal_that_nobody_has_open_is_at_its_end,
    answers_are_reported_before_the_next_stream_is_read,
    answers_of_a_run_that_was_given_up_are_reported,
    a_report_does_not_make_its_stream_write_twice_in_a_turn,
    streams_that_are_closed_leave_the_progress_of_others_to_be_asked_for,
    writes_that_wait_arrive_whole_and_in_order,
    messages_that_wait_stay_apart,
    empty_buffers_do_not_hold_up_what_is_behind_them,
    a_handle_goes_with_the_first_byte,
    a_shutdown_of_a_connection_in_the_making_follows_it,
    a_shutdown_does_not_wait_for_a_write_that_was_cancelled,
    reports_of_a_run_that_was_given_up_go_on,
    a_report_asked_for_during_a_round_does_not_take_the_place_of_a_cancelled_one,
    memory_that_is_not_there_fails_its_own_write_only,
    a_connection_made_at_once_is_reported_later_and_before_the_writes_that_waited,
    a_write_that_is_cancelled_says_nothing_of_the_connection,
    a_crowd_is_let_in_within_a_few_turns,
    a_server_that_is_closed_lets_nobody_in,
    who_is_not_accepted_keeps_the_others_out,
    what_comes_in_parts_over_a_unix_socket_in_a_tcp_handle_is_read,
    closing_a_stream_ends_its_turn,
);

/// A message that can be written: the memory that the engine is lent.
struct Message {
    bytes: Vec<u8>,
    slice: Box<Slice>,
}

/// A `struct iovec`.
#[repr(C)]
struct Slice(*const u8, usize);

impl Message {
    fn new(len: usize) -> Message {
        let bytes = vec![b'x'; len];
        let slice = Box::new(Slice(bytes.as_ptr(), len));
        Message { bytes, slice }
    }

    fn buffers(&mut self) -> Buffers {
        assert_eq!(self.slice.1, self.bytes.len(), "a message is lent once");
        // SAFETY: every test keeps its messages until the engine has reported them.
        unsafe { Buffers::new((&raw mut *self.slice).cast(), 1) }
    }
}

/// A byte behind as many empty buffers.
struct Sparse(Vec<Slice>);

impl Sparse {
    fn new(empty: usize) -> Sparse {
        let mut slices: Vec<_> = (0..empty).map(|_| Slice(b"".as_ptr(), 0)).collect();
        slices.push(Slice(b"x".as_ptr(), 1));
        Sparse(slices)
    }

    fn buffers(&mut self) -> Buffers {
        // SAFETY: every test keeps them until the engine has reported them.
        unsafe { Buffers::new(self.0.as_mut_ptr().cast(), self.0.len()) }
    }
}

fn descriptor(file: impl Into<OwnedFd>) -> Descriptor {
    // SAFETY: whoever had it has given it away.
    unsafe { Descriptor::adopt(file.into().into_raw_fd()) }
}

/// A pipe handle on one end of a pair of sockets.
fn pipe_on(engine: &mut Engine, token: u64, socket: UnixStream, ipc: bool) -> Key {
    let key = engine.pipe_init(Token(token), ipc).unwrap();
    engine
        .stream_open(key, descriptor(socket), true, true)
        .unwrap();
    key
}

/// Fills a socket until the kernel takes no more.
fn fill(socket: &UnixStream) {
    socket.set_nonblocking(true).unwrap();
    while (&mut &*socket).write(&[0; 4096]).is_ok() {}
}

fn read(engine: &mut Engine, key: Key, room: usize) -> Result<usize, Errno> {
    engine.stream_read(key, &mut vec![MaybeUninit::uninit(); room][..])
}

/// The second write goes at once, and is waiting to be reported when the stream has nothing
/// left to write.
fn a_shutdown_waits_for_writes_of_the_same_callback(mechanism: Mechanism) {
    let mut engine = engine_on(mechanism);
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    let stream = pipe_on(&mut engine, 1, ours, false);
    let (mut first, mut second) = (Message::new(1), Message::new(2));
    engine
        .stream_write(stream, Token(2), first.buffers(), None)
        .unwrap();
    let mut events = Vec::new();
    run(&mut engine, Mode::Default, |engine, event| {
        if event == Event::Write(Token(2), Ok(()), 1) {
            let buffers = second.buffers();
            engine
                .stream_write(stream, Token(3), buffers, None)
                .unwrap();
            engine.stream_shutdown(stream, Token(4)).unwrap();
        }
        events.push(event);
    });
    let expected = [
        Event::Write(Token(2), Ok(()), 1),
        Event::Write(Token(3), Ok(()), 2),
        Event::Shutdown(Token(4), Ok(())),
    ];
    assert_eq!(events, expected);
    let mut received = Vec::new();
    theirs.read_to_end(&mut received).unwrap();
    assert_eq!(received, b"xxx");
}

/// Somebody else watches the descriptor, so the stream cannot wait for room.
fn a_write_that_cannot_wait_for_room_fails(mechanism: Mechanism) {
    let mut engine = engine_on(mechanism);
    let (ours, theirs) = UnixStream::pair().unwrap();
    fill(&ours);
    let fd = ours.as_raw_fd();
    let stream = pipe_on(&mut engine, 1, ours, false);
    let other = engine.poll_init(Token(2), fd).unwrap();
    engine.poll_start(other, Readiness::READABLE).unwrap();
    let (mut first, mut second) = (Message::new(1), Message::new(1));
    for (token, message) in [(3, &mut first), (4, &mut second)] {
        let written = engine.stream_write(stream, Token(token), message.buffers(), None);
        assert!(written.is_ok(), "whatever comes of it is reported");
    }
    let failed = |token| Event::Write(Token(token), Err(Errno::EEXIST), 0);
    assert_eq!(told(&mut engine), [failed(3), failed(4)]);
    assert_eq!(engine.active_requests(), 0);
    assert_eq!(engine.write_queue_size(stream), 0);
    drop(theirs);
}

/// A stream that wants nothing gives its descriptor to whoever does, but has still to report
/// what it has written.
fn a_taken_descriptor_keeps_its_reports(mechanism: Mechanism) {
    let mut engine = engine_on(mechanism);
    let (ours, _theirs) = UnixStream::pair().unwrap();
    let fd = ours.as_raw_fd();
    let stream = pipe_on(&mut engine, 1, ours, false);
    engine.read_start(stream).unwrap();
    engine.read_stop(stream);
    let mut message = Message::new(5);
    engine
        .stream_write(stream, Token(2), message.buffers(), None)
        .unwrap();
    let other = engine.poll_init(Token(3), fd).unwrap();
    engine.poll_start(other, Readiness::READABLE).unwrap();
    assert_eq!(told(&mut engine), [Event::Write(Token(2), Ok(()), 5)]);
}

/// The kernel does not read past a message that has descriptors with it, so a read that does
/// not fill its room is not the last one.
fn what_was_passed_before_a_hang_up_arrives(mechanism: Mechanism) {
    let mut engine = engine_on(mechanism);
    let (ours, theirs) = UnixStream::pair().unwrap();
    let receiver = pipe_on(&mut engine, 1, ours, true);
    let sender = pipe_on(&mut engine, 2, theirs, true);
    let udp = engine.udp_init(Token(3), Some(2)).unwrap();
    let mut messages = [Message::new(1), Message::new(2), Message::new(3)];
    for (at, message) in messages.iter_mut().enumerate() {
        let token = Token(10 + at as u64);
        engine
            .stream_write(sender, token, message.buffers(), Some(udp))
            .unwrap();
    }
    assert_eq!(told(&mut engine).len(), 3, "all are written");
    engine.close(sender).unwrap();
    engine.close(udp).unwrap();
    assert_eq!(told(&mut engine).len(), 2);

    engine.read_start(receiver).unwrap();
    let (mut reads, mut ended) = (Vec::new(), 0);
    run(&mut engine, Mode::Default, |engine, event| match event {
        Event::Read(_) => match read(engine, receiver, 100) {
            Err(Errno::EOF) => ended += 1,
            count => reads.push(count),
        },
        Event::ReadEnd(_, Errno::EOF) => ended += 1,
        event => panic!("{event:?}"),
    });
    assert_eq!((reads, ended), (vec![Ok(1), Ok(2), Ok(3)], 1));
    assert_eq!(engine.pending_descriptors(receiver).unwrap().0, 3);
}

/// The other end has left something unread, which the kernel calls a reset. What it has sent
/// before may be a part only, so the reader must not take this for the end.
fn a_reset_after_data_is_not_the_end(mechanism: Mechanism) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let tcp = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let accepted = listener.accept().unwrap().0;
    let unix = UnixStream::pair().unwrap();
    let pairs: [(OwnedFd, OwnedFd); 2] = [
        (tcp.into(), accepted.into()),
        (unix.0.into(), unix.1.into()),
    ];
    for (ours, theirs) in pairs {
        rustix::io::write(&ours, b"unread").unwrap();
        rustix::io::write(&theirs, b"last words").unwrap();
        drop(theirs);
        let mut engine = engine_on(mechanism);
        let stream = match rustix::net::getsockname(&ours).unwrap().address_family() {
            rustix::net::AddressFamily::UNIX => engine.pipe_init(Token(1), false).unwrap(),
            _ => engine.tcp_init(Token(1), None).unwrap(),
        };
        engine
            .stream_open(stream, descriptor(ours), true, true)
            .unwrap();
        engine.read_start(stream).unwrap();
        let mut read_so_far = Vec::new();
        run(&mut engine, Mode::Default, |engine, event| {
            assert_eq!(event, Event::Read(Token(1)));
            read_so_far.push(read(engine, stream, 100));
        });
        assert_eq!(read_so_far, [Ok(10), Err(Errno::ECONNRESET)]);
    }
}

unsafe extern "C" {
    fn posix_openpt(flags: i32) -> i32;
    fn unlockpt(fd: i32) -> i32;
    fn ptsname_r(fd: i32, name: *mut u8, len: usize) -> i32;
}

/// A terminal: the side of the program that controls it, and the other.
fn terminal() -> (OwnedFd, File) {
    const O_RDWR_NOCTTY: i32 = 0o402;
    let mut name = [0; 64];
    // SAFETY: the descriptor is new, and the name has room.
    let master = unsafe {
        let master = OwnedFd::from_raw_fd(posix_openpt(O_RDWR_NOCTTY));
        assert_eq!(unlockpt(master.as_raw_fd()), 0);
        assert_eq!(ptsname_r(master.as_raw_fd(), name.as_mut_ptr(), 64), 0);
        master
    };
    let name = CStr::from_bytes_until_nul(&name).unwrap().to_str().unwrap();
    let mut options = File::options();
    options.read(true).write(true).custom_flags(O_RDWR_NOCTTY);
    (master, options.open(name).unwrap())
}

/// The kernel says `EIO` then, whenever the hang-up came and whatever was written before.
fn a_terminal_that_nobody_has_open_is_at_its_end(mechanism: Mechanism) {
    for len in [0, 10] {
        let mut engine = guarded_engine_on(mechanism);
        let (master, mut slave) = terminal();
        let stream = engine.pipe_init(Token(1), false).unwrap();
        engine
            .stream_open(stream, descriptor(master), true, true)
            .unwrap();
        engine.read_start(stream).unwrap();
        if len > 0 {
            slave.write_all(&vec![b'x'; len]).unwrap();
            run(&mut engine, Mode::Once, |engine, event| {
                assert_eq!(event, Event::Read(Token(1)));
                assert_eq!(read(engine, stream, 100), Ok(len));
            });
        }
        drop(slave);
        let mut results = Vec::new();
        run(&mut engine, Mode::Default, |engine, event| match event {
            Event::ReadEnd(_, error) => results.push(Err(error)),
            _ => results.push(read(engine, stream, 100)),
        });
        assert_eq!(results, [Err(Errno::EOF)], "after {len} bytes");
    }
}

/// An engine on a simulated kernel that refuses to watch anything.
fn refusing_engine() -> Engine {
    let mut engine = engine_on(Mechanism::Sim(1));
    let sim = engine.sim().expect("the kernel is simulated");
    sim.use_kernel();
    sim.set_faults(Faults {
        refuse: 255,
        ..Faults::default()
    });
    engine
}

/// Both say that there is no room, but programs wait for room only when they hear the first.
#[test]
fn who_tries_to_write_where_there_is_no_room_is_told_to_come_again() {
    let mut engine = engine_on(Mechanism::Sim(1));
    let sim = engine.sim().expect("the kernel is simulated");
    sim.use_kernel();
    sim.set_faults(Faults {
        exhaust: 255,
        ..Faults::default()
    });
    let (ours, _theirs) = UnixStream::pair().unwrap();
    let stream = pipe_on(&mut engine, 1, ours, true);
    let mut told = Vec::new();
    for _ in 0..50 {
        let mut message = Message::new(1);
        told.push(engine.stream_try_write(stream, &message.buffers(), None));
        let passed = std::io::stderr();
        told.push(engine.stream_try_write_descriptor(stream, b"x", passed.as_fd()));
    }
    assert!(told.contains(&Err(Errno::EAGAIN)), "{told:?}");
    assert!(!told.contains(&Err(Errno::ENOBUFS)), "{told:?}");
}

#[test]
fn what_the_poller_refuses_fails() {
    let mut engine = refusing_engine();
    let (ours, _theirs) = UnixStream::pair().unwrap();
    fill(&ours);
    let stream = pipe_on(&mut engine, 1, ours, false);
    engine.read_start(stream).unwrap();
    let mut message = Message::new(1);
    engine
        .stream_write(stream, Token(2), message.buffers(), None)
        .unwrap();
    engine.stream_shutdown(stream, Token(3)).unwrap();
    let expected = [
        Event::ReadEnd(Token(1), Errno::ENOMEM),
        Event::Write(Token(2), Err(Errno::ENOMEM), 0),
        Event::Shutdown(Token(3), Ok(())),
    ];
    assert_eq!(told(&mut engine), expected);
    assert!(!engine.is_alive());
}

#[test]
fn a_server_hears_that_it_cannot_be_watched() {
    let mut engine = refusing_engine();
    let server = engine.tcp_init(Token(1), None).unwrap();
    engine.stream_listen(server, 5).unwrap();
    let refused = [Event::Connection(Token(1), Err(Errno::ENOMEM))];
    assert_eq!(told(&mut engine), refused);
    assert_eq!(told(&mut engine), [], "and hears of it once");
    let sim = engine.sim().expect("the kernel is simulated");
    sim.set_faults(Faults::default());
    engine.stream_listen(server, 5).unwrap();
    let client = engine.tcp_init(Token(2), None).unwrap();
    let address = engine.stream_address(server, false).unwrap();
    engine.tcp_connect(client, Token(3), &address).unwrap();
    let mut events = told(&mut engine);
    events.sort_by_key(|event| matches!(event, Event::Connect(..)));
    let expected = [
        Event::Connection(Token(1), Ok(())),
        Event::Connect(Token(3), Ok(())),
    ];
    assert_eq!(events, expected, "unless it asks again");
}

/// The refusal is known, and not told yet, when the stream is written to.
#[test]
fn a_refusal_is_not_forgotten_for_a_write_that_goes() {
    let mut engine = refusing_engine();
    let (ours, _theirs) = UnixStream::pair().unwrap();
    let stream = pipe_on(&mut engine, 1, ours, false);
    engine.read_start(stream).unwrap();
    let (_, ticket) = engine.async_init(Token(2)).unwrap();
    engine.mailbox().send(ticket);
    let mut events = Vec::new();
    run(&mut engine, Mode::NoWait, |engine, event| {
        if event == Event::Async(Token(2)) {
            let byte = Buffers::owned(vec![0]);
            engine.stream_write(stream, Token(3), byte, None).unwrap();
        }
        events.push(event);
    });
    let expected = [
        Event::Async(Token(2)),
        Event::ReadEnd(Token(1), Errno::ENOMEM),
        Event::Write(Token(3), Ok(()), 1),
    ];
    assert_eq!(events, expected);
}

/// Two streams with something to read each, which the test answers.
fn two_to_answer(engine: &mut Engine) -> [(Key, UnixStream); 2] {
    [1, 2].map(|token| {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let stream = pipe_on(engine, token, ours, false);
        engine.read_start(stream).unwrap();
        theirs.write_all(b"?").unwrap();
        (stream, theirs)
    })
}

fn answers_are_reported_before_the_next_stream_is_read(mechanism: Mechanism) {
    let mut engine = engine_on(mechanism);
    let streams = two_to_answer(&mut engine);
    let mut messages = [1, 1].map(Message::new);
    let mut events = Vec::new();
    run(&mut engine, Mode::Default, |engine, event| {
        if let Event::Read(Token(token)) = event {
            let at = token as usize - 1;
            let stream = streams[at].0;
            assert_eq!(read(engine, stream, 8), Ok(1));
            let answer = messages[at].buffers();
            (engine.stream_write(stream, Token(token + 10), answer, None)).unwrap();
            engine.read_stop(stream);
        }
        events.push(event);
    });
    assert_eq!(events.len(), 4, "{events:?}");
    for pair in events.chunks(2) {
        let Event::Read(Token(token)) = pair[0] else {
            panic!("{events:?}");
        };
        assert_eq!(pair[1], Event::Write(Token(token + 10), Ok(()), 1));
    }
}

fn answers_of_a_run_that_was_given_up_are_reported(mechanism: Mechanism) {
    let mut engine = engine_on(mechanism);
    let [(stream, _theirs), _] = two_to_answer(&mut engine);
    let mut message = Message::new(1);
    let mut first = Run::new(Mode::Default);
    while engine.next(&mut first) != Some(Event::Read(Token(1))) {}
    assert_eq!(read(&mut engine, stream, 8), Ok(1));
    (engine.stream_write(stream, Token(3), message.buffers(), None)).unwrap();
    let mut second = Run::new(Mode::Once);
    let next = std::iter::from_fn(|| engine.next(&mut second)).next();
    assert_eq!(next, Some(Event::Write(Token(3), Ok(()), 1)));
}

fn reports_of_a_run_that_was_given_up_go_on(mechanism: Mechanism) {
    let mut engine = engine_on(mechanism);
    let [(stream, _theirs), _] = two_to_answer(&mut engine);
    let mut first = Run::new(Mode::Default);
    while engine.next(&mut first) != Some(Event::Read(Token(1))) {}
    assert_eq!(read(&mut engine, stream, 8), Ok(1));
    for token in [3, 4] {
        let byte = Buffers::owned(vec![0]);
        (engine.stream_write(stream, Token(token), byte, None)).unwrap();
    }
    let [three, four] = [3, 4].map(|token| Event::Write(Token(token), Ok(()), 1));
    assert_eq!(engine.next(&mut first), Some(three));
    let mut second = Run::new(Mode::NoWait);
    assert_eq!(engine.next(&mut second), Some(four));
}

/// A round of pending callbacks calls those only that were queued when it began, even if one of
/// them is taken back.
fn a_report_asked_for_during_a_round_does_not_take_the_place_of_a_cancelled_one(
    mechanism: Mechanism,
) {
    let mut engine = engine_on(mechanism);
    let prepare = engine.prepare_init(Token(9)).unwrap();
    engine.loop_watcher_start(prepare).unwrap();
    let pairs = [1, 2, 3].map(|token| {
        let (ours, theirs) = UnixStream::pair().unwrap();
        (pipe_on(&mut engine, token, ours, false), theirs)
    });
    let [one, two, three] = [0, 1, 2].map(|at: usize| pairs[at].0);
    engine.stream_shutdown(one, Token(11)).unwrap();
    engine.stream_shutdown(two, Token(12)).unwrap();
    let mut events = Vec::new();
    run(&mut engine, Mode::NoWait, |engine, event| {
        if event == Event::Shutdown(Token(11), Ok(())) {
            engine.close(two).unwrap();
            engine.stream_shutdown(three, Token(13)).unwrap();
        }
        events.push(event);
    });
    let expected = [
        Event::Shutdown(Token(11), Ok(())),
        Event::Prepare(Token(9)),
        Event::Shutdown(Token(13), Ok(())),
        Event::Shutdown(Token(12), Err(Errno::ECANCELED)),
        Event::Closed(Token(2)),
    ];
    assert_eq!(events, expected);
}

/// More of them than the kernel is given at a time, in one write and in several.
fn empty_buffers_do_not_hold_up_what_is_behind_them(mechanism: Mechanism) {
    for empty in [100, 3000] {
        let mut engine = engine_on(mechanism);
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let mut at_once = Sparse::new(empty);
        let mut queued = [Sparse::new(empty), Sparse::new(empty)];
        theirs.set_nonblocking(true).unwrap();
        let full = ours.try_clone().unwrap();
        let stream = pipe_on(&mut engine, 1, ours, false);
        (engine.stream_write(stream, Token(2), at_once.buffers(), None)).unwrap();
        fill(&full);
        for (token, sparse) in (3..).zip(&mut queued) {
            (engine.stream_write(stream, Token(token), sparse.buffers(), None)).unwrap();
        }
        let mut events = Vec::new();
        for _ in 0..100 {
            while theirs.read(&mut [0; 65536]).is_ok() {}
            events.extend(told(&mut engine));
        }
        let expected = [2, 3, 4].map(|token| Event::Write(Token(token), Ok(()), 1));
        assert_eq!(events, expected, "{empty} empty buffers");
    }
}

fn a_handle_goes_with_the_first_byte(mechanism: Mechanism) {
    let mut engine = engine_on(mechanism);
    let (ours, theirs) = UnixStream::pair().unwrap();
    let receiver = pipe_on(&mut engine, 1, ours, true);
    let sender = pipe_on(&mut engine, 2, theirs, true);
    let udp = engine.udp_init(Token(3), Some(2)).unwrap();
    let mut sparse = Sparse::new(3000);
    (engine.stream_write(sender, Token(4), sparse.buffers(), Some(udp))).unwrap();
    assert_eq!(told(&mut engine), [Event::Write(Token(4), Ok(()), 1)]);
    engine.read_start(receiver).unwrap();
    run(&mut engine, Mode::Once, |engine, event| {
        assert_eq!(event, Event::Read(Token(1)));
        assert_eq!(read(engine, receiver, 8), Ok(1));
    });
    assert_eq!(engine.pending_descriptors(receiver).unwrap().0, 1);
}

fn a_shutdown_of_a_connection_in_the_making_follows_it(mechanism: Mechanism) {
    for cancels in [false, true] {
        let mut engine = guarded_engine_on(mechanism);
        let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = Address::from(server.local_addr().unwrap());
        let client = engine.tcp_init(Token(1), None).unwrap();
        engine.tcp_connect(client, Token(2), &address).unwrap();
        let write = cancels.then(|| {
            let byte = Buffers::owned(vec![0]);
            engine.stream_write(client, Token(3), byte, None).unwrap().0
        });
        engine.stream_shutdown(client, Token(4)).unwrap();
        if let Some(write) = write {
            engine.write_cancel(write).unwrap();
        }
        let mut events = Vec::new();
        run(&mut engine, Mode::Default, |_, event| {
            assert_ne!(event, Event::Timer(GUARD), "after {events:?}");
            events.push(event);
        });
        let mut expected = vec![
            Event::Write(Token(3), Err(Errno::ECANCELED), 0),
            Event::Connect(Token(2), Ok(())),
            Event::Shutdown(Token(4), Ok(())),
        ];
        if !cancels {
            expected.remove(0);
        }
        assert_eq!(events, expected);
        let (mut theirs, _) = server.accept().unwrap();
        assert_eq!(theirs.read(&mut [0; 8]).unwrap(), 0, "the end");
    }
}

/// The other end never makes room for it.
fn a_shutdown_does_not_wait_for_a_write_that_was_cancelled(mechanism: Mechanism) {
    let mut engine = engine_on(mechanism);
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    fill(&ours);
    let stream = pipe_on(&mut engine, 1, ours, false);
    engine.read_start(stream).unwrap();
    let byte = Buffers::owned(vec![0]);
    let (write, _) = engine.stream_write(stream, Token(2), byte, None).unwrap();
    engine.stream_shutdown(stream, Token(3)).unwrap();
    theirs.write_all(b"!").unwrap();
    let mut events = Vec::new();
    for _ in 0..5 {
        run(&mut engine, Mode::NoWait, |engine, event| match event {
            Event::Read(_) => {
                assert_eq!(read(engine, stream, 8), Ok(1));
                engine.write_cancel(write).unwrap();
            }
            event => events.push(event),
        });
    }
    let expected = [
        Event::Write(Token(2), Err(Errno::ECANCELED), 0),
        Event::Shutdown(Token(3), Ok(())),
    ];
    assert_eq!(events, expected);
}

/// Queues writes of these lengths behind what fills the socket, each with a letter of its own, and
/// hands what arrives to `receive` between the turns until all are reported.
fn queue_writes(engine: &mut Engine, stream: Key, lengths: &[usize], mut receive: impl FnMut()) {
    for (at, &len) in lengths.iter().enumerate() {
        let bytes = vec![b'a' + at as u8 % 26; len];
        let token = Token(100 + at as u64);
        let write = engine.stream_write(stream, token, Buffers::owned(bytes), None);
        write.unwrap();
    }
    let mut reported = 0;
    while reported < lengths.len() {
        receive();
        run(engine, Mode::NoWait, |_, event| {
            let expected = Token(100 + reported as u64);
            assert_eq!(event, Event::Write(expected, Ok(()), lengths[reported]));
            reported += 1;
        });
    }
    receive();
}

/// A write that the poll phase finishes is reported there. It used to be queued for the pending
/// phase as well, where the stream was dealt with, and its queue written, once more.
fn a_report_does_not_make_its_stream_write_twice_in_a_turn(mechanism: Mechanism) {
    let mut engine = engine_on(mechanism);
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    theirs.set_nonblocking(true).unwrap();
    fill(&ours);
    let stream = pipe_on(&mut engine, 1, ours, false);
    for (token, len) in [(2, 1), (3, 8 << 20)] {
        let bytes = Buffers::owned(vec![b'x'; len]);
        engine
            .stream_write(stream, Token(token), bytes, None)
            .unwrap();
    }
    let mut room = vec![0; 1 << 16];
    let mut receive = || while theirs.read(&mut room).is_ok() {};
    receive();
    let mut left = None;
    while left.is_none() {
        run(&mut engine, Mode::NoWait, |engine, event| {
            assert_eq!(event, Event::Write(Token(2), Ok(()), 1));
            receive();
            left = Some(engine.write_queue_size(stream));
        });
    }
    assert_ne!(left, Some(0));
    assert_eq!(left, Some(engine.write_queue_size(stream)));
}

fn streams_that_are_closed_leave_the_progress_of_others_to_be_asked_for(mechanism: Mechanism) {
    let mut engine = engine_on(mechanism);
    let mut peers = Vec::new();
    let streams: Vec<Key> = (0..6)
        .map(|token| {
            let (ours, theirs) = UnixStream::pair().unwrap();
            fill(&ours);
            peers.push(theirs);
            let stream = pipe_on(&mut engine, token, ours, false);
            let byte = Buffers::owned(vec![0]);
            let (write, _) = engine
                .stream_write(stream, Token(10 + token), byte, None)
                .unwrap();
            engine.write_cancel(write).unwrap();
            stream
        })
        .collect();
    // The first, one in the middle and the last.
    for closed in [0, 3, 5] {
        engine.close(streams[closed]).unwrap();
        told(&mut engine);
    }
    let mut progressed: Vec<_> = std::iter::from_fn(|| engine.next_progress()).collect();
    progressed.sort_by_key(|&(token, _)| token.0);
    assert_eq!(progressed, [1, 2, 4].map(|token| (Token(token), 0)));
    assert!(!engine.has_progress());
}

/// More writes than go into one call, of all sizes: the last of a call is cut anywhere.
fn writes_that_wait_arrive_whole_and_in_order(mechanism: Mechanism) {
    let mut engine = engine_on(mechanism);
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    fill(&ours);
    theirs.set_nonblocking(true).unwrap();
    let stream = pipe_on(&mut engine, 1, ours, false);
    let lengths: Vec<usize> = (0..300)
        .map(|at| [1, 0, 7, 4096, 100_000, 3, 0][at % 7])
        .collect();
    let mut received = Vec::new();
    queue_writes(&mut engine, stream, &lengths, || {
        let mut room = [0; 30_001];
        while let Ok(count) = theirs.read(&mut room) {
            received.extend_from_slice(&room[..count]);
        }
    });
    let filling = received.iter().take_while(|&&byte| byte == 0).count();
    let expected: Vec<u8> = (lengths.iter().enumerate())
        .flat_map(|(at, &len)| vec![b'a' + at as u8 % 26; len])
        .collect();
    assert!(received[filling..] == expected, "bytes are lost or moved");
    assert_eq!(engine.write_queue_size(stream), 0);
}

/// Messages that are written to a socket that keeps them apart arrive as they were written.
fn messages_that_wait_stay_apart(mechanism: Mechanism) {
    let mut engine = engine_on(mechanism);
    let (ours, theirs) = message_pair();
    fill(&ours);
    theirs.set_nonblocking(true).unwrap();
    let stream = pipe_on(&mut engine, 1, ours, false);
    let lengths: Vec<usize> = (1..200).collect();
    let mut received = Vec::new();
    queue_writes(&mut engine, stream, &lengths, || {
        let mut room = [0; 5000];
        while let Ok(count) = (&theirs).read(&mut room) {
            if room[0] != 0 {
                received.push(count);
            }
        }
    });
    assert_eq!(received, lengths);
}

/// A pair of sockets that keep messages apart, under the type that the helpers know.
fn message_pair() -> (UnixStream, UnixStream) {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
    let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
    let (one, other) = socketpair(family, kind, SocketFlags::CLOEXEC, None).unwrap();
    (one.into(), other.into())
}

/// A write between two others that lends an address at which there is nothing.
fn memory_that_is_not_there_fails_its_own_write_only(mechanism: Mechanism) {
    let mut engine = engine_on(mechanism);
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    fill(&ours);
    theirs.set_nonblocking(true).unwrap();
    let stream = pipe_on(&mut engine, 1, ours, false);
    let mut nowhere = Slice(std::ptr::without_provenance(1), 5);
    // SAFETY: the array is there until the engine has reported it; the kernel looks at what it
    // describes, and says that there is nothing.
    let bad = unsafe { Buffers::new((&raw mut nowhere).cast(), 1) };
    let writes = [
        Buffers::owned(b"before".into()),
        bad,
        Buffers::owned(b"behind".into()),
    ];
    for (token, buffers) in (2..).zip(writes) {
        engine
            .stream_write(stream, Token(token), buffers, None)
            .unwrap();
    }
    let (mut received, mut events) = (Vec::new(), Vec::new());
    while events.len() < 3 {
        let mut room = [0; 4096];
        while let Ok(count) = theirs.read(&mut room) {
            received.extend_from_slice(&room[..count]);
        }
        run(&mut engine, Mode::NoWait, |_, event| events.push(event));
    }
    let expected = [
        Event::Write(Token(2), Ok(()), 6),
        Event::Write(Token(3), Err(Errno::EFAULT), 0),
        Event::Write(Token(4), Ok(()), 6),
    ];
    assert_eq!(events, expected);
    let _ = theirs.read_to_end(&mut received);
    assert!(received.ends_with(b"\0beforebehind"));
}

/// Unix sockets connect at once or not at all; the program hears of it in its turn all the same.
fn a_connection_made_at_once_is_reported_later_and_before_the_writes_that_waited(
    mechanism: Mechanism,
) {
    let mut engine = engine_on(mechanism);
    let guard = engine.timer_init(Token(9)).unwrap();
    engine.timer_start(guard, 10_000, 0).unwrap();
    let server = engine.pipe_init(Token(1), false).unwrap();
    engine.pipe_bind(server, b"").unwrap();
    engine.stream_listen(server, 8).unwrap();
    for kept in [guard, server] {
        engine.unreference(kept);
    }
    let address = engine.stream_address(server, false).unwrap();
    let client = engine.pipe_init(Token(2), false).unwrap();
    (engine.pipe_connect(client, Token(3), address.unix_name())).unwrap();
    let again = engine.pipe_connect(client, Token(3), address.unix_name());
    assert_eq!(again, Err(Errno::EALREADY), "nobody has heard of it yet");
    for token in [4, 5] {
        let buffers = Buffers::owned(vec![b'x'; 3]);
        (engine.stream_write(client, Token(token), buffers, None)).unwrap();
    }
    let accepted = engine.pipe_init(Token(6), false).unwrap();
    let mut events = Vec::new();
    run(&mut engine, Mode::Default, |engine, event| match event {
        Event::Connection(Token(1), Ok(())) => engine.stream_accept(server, accepted).unwrap(),
        Event::Timer(_) => panic!("nothing comes after {events:?}"),
        event => events.push(event),
    });
    let expected = [
        Event::Connect(Token(3), Ok(())),
        Event::Write(Token(4), Ok(()), 3),
        Event::Write(Token(5), Ok(()), 3),
    ];
    assert_eq!(events, expected);
    engine.read_start(accepted).unwrap();
    run(&mut engine, Mode::Once, |engine, event| {
        assert_eq!(event, Event::Read(Token(6)));
        assert_eq!(read(engine, accepted, 9), Ok(6));
    });
    // One that closes first hears that it was in vain.
    let client = engine.pipe_init(Token(7), false).unwrap();
    (engine.pipe_connect(client, Token(8), address.unix_name())).unwrap();
    engine.close(client).unwrap();
    let mut events = told(&mut engine);
    events.retain(|event| !matches!(event, Event::Connection(..)));
    let expected = [
        Event::Connect(Token(8), Err(Errno::ECANCELED)),
        Event::Closed(Token(7)),
    ];
    assert_eq!(events, expected);
}

/// A server and those who have connected to it.
fn crowd(engine: &mut Engine, count: usize) -> (Key, Vec<UnixStream>) {
    let server = engine.pipe_init(Token(1), false).unwrap();
    engine.pipe_bind(server, b"").unwrap();
    engine.stream_listen(server, 64).unwrap();
    let address = engine.stream_address(server, false).unwrap();
    let address = SocketAddr::from_abstract_name(&address.unix_name()[1..]).unwrap();
    let clients = (0..count).map(|_| UnixStream::connect_addr(&address).unwrap());
    (server, clients.collect())
}

fn accept(engine: &mut Engine, server: Key) {
    let accepted = engine.pipe_init(Token(2), false).unwrap();
    engine.stream_accept(server, accepted).unwrap();
}

/// How many each turn lets in, until there are so many.
fn let_in(engine: &mut Engine, server: Key, all: usize) -> Vec<usize> {
    let mut by_turn = Vec::new();
    while by_turn.iter().sum::<usize>() < all {
        assert!(by_turn.len() < 2 * all, "nobody is let in: {by_turn:?}");
        let mut count = 0;
        run(engine, Mode::NoWait, |engine, event| {
            assert_eq!(event, Event::Connection(Token(1), Ok(())));
            accept(engine, server);
            count += 1;
        });
        by_turn.push(count);
    }
    by_turn
}

/// Each turn takes twice as many as the one before, as long as there are more.
fn a_crowd_is_let_in_within_a_few_turns(mechanism: Mechanism) {
    let mut engine = engine_on(mechanism);
    let (server, _clients) = crowd(&mut engine, 20);
    assert_eq!(let_in(&mut engine, server, 20), [1, 2, 4, 8, 5]);

    let mut engine = engine_on(mechanism);
    let (server, _clients) = crowd(&mut engine, 5);
    (engine.tcp_simultaneous_accepts(server, false)).unwrap();
    assert_eq!(let_in(&mut engine, server, 5), [1; 5]);

    // To ask for one more than there are would block.
    let mut engine = engine_on(mechanism);
    let (server, _clients) = crowd(&mut engine, 5);
    engine.stream_set_blocking(server, true).unwrap();
    assert_eq!(let_in(&mut engine, server, 5), [1; 5]);
}

/// Less than was asked for says of a TCP socket that there is no more. It does not of a Unix
/// socket, where one read takes no more than what came with one handle.
fn what_comes_in_parts_over_a_unix_socket_in_a_tcp_handle_is_read(mechanism: Mechanism) {
    let mut engine = guarded_engine_on(mechanism);
    let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(b"").unwrap()).unwrap();
    let address = listener.local_addr().unwrap();
    let server = engine.tcp_init(Token(1), None).unwrap();
    engine
        .stream_open(server, descriptor(listener), true, true)
        .unwrap();
    engine.stream_listen(server, 1).unwrap();
    let theirs = UnixStream::connect_addr(&address).unwrap();
    let ours = engine.tcp_init(Token(2), None).unwrap();
    run(&mut engine, Mode::Once, |engine, event| {
        assert_eq!(event, Event::Connection(Token(1), Ok(())));
        engine.stream_accept(server, ours).unwrap();
    });
    engine.close(server).unwrap();
    engine.read_start(ours).unwrap();
    let sender = pipe_on(&mut engine, 3, theirs, true);
    for _ in 0..3 {
        let passed = std::io::stderr();
        let sent = engine.stream_try_write_descriptor(sender, b"x", passed.as_fd());
        assert_eq!(sent, Ok(1));
    }
    let mut count = 0;
    while count < 3 {
        run(&mut engine, Mode::Once, |engine, event| match event {
            Event::Read(_) => count += read(engine, ours, 100).unwrap_or(0),
            event => assert_eq!(event, Event::Closed(Token(1))),
        });
    }
}

fn a_server_that_is_closed_lets_nobody_in(mechanism: Mechanism) {
    let mut engine = engine_on(mechanism);
    let (server, clients) = crowd(&mut engine, 20);
    let mut count = 0;
    while count < 5 {
        run(&mut engine, Mode::NoWait, |engine, event| {
            if event == Event::Connection(Token(1), Ok(())) {
                accept(engine, server);
                count += 1;
                if count == 5 {
                    engine.close(server).unwrap();
                }
            }
        });
    }
    assert_eq!(count, 5, "in the middle of the four of the third turn");
    let mut last = &clients[19];
    let refused = last.read(&mut [0]).unwrap_err().kind();
    assert_eq!(refused, std::io::ErrorKind::ConnectionReset);
}

fn who_is_not_accepted_keeps_the_others_out(mechanism: Mechanism) {
    let mut engine = engine_on(mechanism);
    let (server, _clients) = crowd(&mut engine, 20);
    let mut count = 0;
    for _ in 0..6 {
        run(&mut engine, Mode::NoWait, |engine, event| {
            assert_eq!(event, Event::Connection(Token(1), Ok(())));
            count += 1;
            if count < 5 {
                accept(engine, server);
            }
        });
    }
    assert_eq!(count, 5);
    accept(&mut engine, server);
    assert_eq!(let_in(&mut engine, server, 15).iter().sum::<usize>(), 15);
}

/// The cancelled write is reported before the poller has been asked.
fn a_write_that_is_cancelled_says_nothing_of_the_connection(mechanism: Mechanism) {
    let mut engine = guarded_engine_on(mechanism);
    // A port that nobody listens at, nor is ever given.
    let address = Address::from(std::net::SocketAddr::from(([127, 0, 0, 1], 1)));
    let client = engine.tcp_init(Token(1), None).unwrap();
    engine.tcp_connect(client, Token(2), &address).unwrap();
    let write = engine.stream_write(client, Token(3), Buffers::owned(vec![0]), None);
    engine.write_cancel(write.unwrap().0).unwrap();
    let mut events = Vec::new();
    run(&mut engine, Mode::Default, |_, event| {
        assert_ne!(event, Event::Timer(GUARD), "after {events:?}");
        events.push(event);
    });
    let expected = [
        Event::Write(Token(3), Err(Errno::ECANCELED), 0),
        Event::Connect(Token(2), Err(Errno::ECONNREFUSED)),
    ];
    assert_eq!(events, expected);
}

/// Writes of a closed stream are reported in the closing phase, also if the stream was closed in
/// its own callback, and another run goes on from there.
fn closing_a_stream_ends_its_turn(mechanism: Mechanism) {
    let mut engine = engine_on(mechanism);
    let prepare = engine.prepare_init(Token(9)).unwrap();
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    let stream = pipe_on(&mut engine, 1, ours, false);
    engine.read_start(stream).unwrap();
    theirs.write_all(b"x").unwrap();
    let mut outer = Run::new(Mode::NoWait);
    assert_eq!(engine.next(&mut outer), Some(Event::Read(Token(1))));
    assert_eq!(read(&mut engine, stream, 1), Ok(1));
    let mut answer = Message::new(2);
    engine
        .stream_write(stream, Token(2), answer.buffers(), None)
        .unwrap();
    engine.close(stream).unwrap();
    engine.loop_watcher_start(prepare).unwrap();
    let expected = [
        Event::Prepare(Token(9)),
        Event::Write(Token(2), Ok(()), 2),
        Event::Closed(Token(1)),
    ];
    assert_eq!(told(&mut engine), expected);
    assert_eq!(engine.next(&mut outer), None);
}
