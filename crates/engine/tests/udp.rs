//! UDP handles on every mechanism, where only the engine can be asked, or where mechanisms
//! differ.

#[path = "support/each_mechanism.rs"]
mod each_mechanism;

use blacklight_engine::{
    Address, AddressRef, BATCH, Buffers, Descriptor, Engine, Errno, Event, Faults, Inbox, Key,
    Mechanism, Mode, Readiness, SenderRoom, Token, UdpReuse,
};
use each_mechanism::{engine_on, on_each_mechanism, run, told};
use std::mem::MaybeUninit;
use std::net::UdpSocket;
use std::os::fd::{AsRawFd, IntoRawFd};

on_each_mechanism!(
    datagrams_arrive_in_order,
    a_batch_counts_as_many_as_it_has,
    requests_keep_the_loop_alive,
    a_socket_closed_behind_our_back_ends_its_handle,
    a_socket_that_cannot_be_watched_ends_its_handle,
    a_callback_may_close_any_handle,
    a_handle_that_always_wants_to_send_lets_others_have_their_turn,
    a_long_queue_of_sends_lets_others_have_their_turn,
    a_long_queue_is_sent_where_the_poller_is_not_to_be_asked,
);

/// A `struct iovec`.
#[repr(C)]
struct Slice {
    base: *const u8,
    len: usize,
}

/// Does something with a text as the buffers of a datagram.
fn with_buffers<R>(text: &[u8], f: impl FnOnce(Buffers) -> R) -> R {
    let mut slice = Slice {
        base: text.as_ptr(),
        len: text.len(),
    };
    // SAFETY: the array has one entry, and `f` does not keep the buffers.
    f(unsafe { Buffers::new((&raw mut slice).cast(), 1) })
}

/// A handle that receives at a port of its own, with that address.
fn receiver(engine: &mut Engine, token: u64) -> (Key, Address) {
    let key = engine.udp_init(Token(token), None).unwrap();
    engine.udp_receive_start(key).unwrap();
    let address = engine.udp_address(key, false).unwrap();
    (key, address)
}

/// Sends at once.
fn send(engine: &mut Engine, key: Key, token: u64, text: &[u8], to: &Address) -> bool {
    with_buffers(text, |buffers| {
        engine.udp_send(key, Token(token), &buffers, Some(AddressRef::from(to)))
    })
    .unwrap()
}

fn receive(engine: &mut Engine, key: Key) -> Result<Vec<u8>, Errno> {
    let mut room = [MaybeUninit::uninit(); 100];
    let mut sender = SenderRoom::new();
    let datagram = engine.udp_receive(key, &mut room, &mut sender)?;
    assert!(datagram.sender.is_some() && !datagram.truncated);
    // SAFETY: as many bytes have been received.
    Ok(room[..datagram.len]
        .iter()
        .map(|byte| unsafe { byte.assume_init() })
        .collect())
}

fn datagrams_arrive_in_order(mechanism: Mechanism) {
    let mut engine = engine_on(mechanism);
    let (key, address) = receiver(&mut engine, 1);
    let sender = engine.udp_init(Token(2), None).unwrap();
    let mut received = Vec::new();
    for number in 0..50u8 {
        assert!(send(&mut engine, sender, 100, &[number], &address));
        run(&mut engine, Mode::NoWait, |engine, event| match event {
            Event::Receive(Token(1)) => received.extend(receive(engine, key)),
            event => assert_eq!(event, Event::Send(Token(100), Ok(()), 1)),
        });
    }
    assert_eq!(
        received,
        (0..50).map(|number| vec![number]).collect::<Vec<_>>()
    );
}

/// A batch may go beyond the limit of a turn, but is the last then.
fn a_batch_counts_as_many_as_it_has(mechanism: Mechanism) {
    let mut engine = engine_on(mechanism);
    let (key, address) = receiver(&mut engine, 1);
    let sender = engine.udp_init(Token(2), None).unwrap();
    for _ in 0..60 {
        let sent = with_buffers(b"x", |buffers| {
            engine.udp_try_send(sender, &buffers, Some(AddressRef::from(&address)))
        });
        assert_eq!(sent, Ok(1));
    }
    let mut room = vec![MaybeUninit::uninit(); 2000];
    let mut batches = Vec::new();
    run(&mut engine, Mode::NoWait, |engine, event| {
        assert_eq!(event, Event::Receive(Token(1)));
        let mut inbox = Inbox::new();
        batches.push(engine.udp_receive_batch(key, &mut room, 100, &mut inbox));
    });
    assert_eq!(batches, [Ok(20), Ok(20)]);
    assert_eq!(
        told(&mut engine),
        [Event::Receive(Token(1))],
        "nobody has answered"
    );
}

fn requests_keep_the_loop_alive(mechanism: Mechanism) {
    let mut engine = engine_on(mechanism);
    let (key, address) = receiver(&mut engine, 1);
    engine.unreference(key);
    assert!(!engine.is_alive());
    assert!(send(&mut engine, key, 7, b"to myself", &address));
    assert_eq!(engine.udp_send_queue(key), (1, 9));
    assert!(engine.is_alive());
    assert!(
        !send(&mut engine, key, 8, b"behind it", &address),
        "not before the report"
    );
    let (mut reports, mut received) = (0, Vec::new());
    run(&mut engine, Mode::Default, |engine, event| match event {
        Event::Receive(_) => received.extend(receive(engine, key)),
        event => {
            assert_eq!(event, Event::Send(Token(7), Ok(()), 9));
            reports += 1;
        }
    });
    assert_eq!((reports, engine.udp_send_queue(key)), (1, (0, 0)));
    assert_eq!(received, [b"to myself"]);
    assert!(!engine.is_alive());
}

/// epoll forgets a closed descriptor without a word; the others would turn for ever.
fn a_socket_closed_behind_our_back_ends_its_handle(mechanism: Mechanism) {
    let mut engine = engine_on(mechanism);
    let (key, _) = receiver(&mut engine, 1);
    assert_eq!(told(&mut engine), []);
    let fd = engine.udp_fd(key).unwrap();
    // SAFETY: the engine copes with that; nobody else uses the number meanwhile.
    drop(unsafe { Descriptor::adopt(fd) });
    let expected: &[Event] = match mechanism {
        Mechanism::Epoll => &[],
        _ => &[Event::ReceiveEnd(Token(1), Errno::EBADF)],
    };
    assert_eq!(told(&mut engine), expected);
    assert_eq!(told(&mut engine), []);
    // The engine closes the number once more, so it has to be somebody's.
    let other = UdpSocket::bind("127.0.0.1:0").unwrap();
    assert_eq!(other.into_raw_fd(), fd);
    engine.close(key).unwrap();
    assert_eq!(told(&mut engine), [Event::Closed(Token(1))]);
}

/// select has no room for high numbers.
fn a_socket_that_cannot_be_watched_ends_its_handle(mechanism: Mechanism) {
    let mut engine = engine_on(mechanism);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let high = rustix::io::fcntl_dupfd_cloexec(&socket, 1100).unwrap();
    let key = engine.udp_init(Token(1), None).unwrap();
    // SAFETY: the engine takes the descriptor over.
    let high = unsafe { Descriptor::adopt(high.into_raw_fd()) };
    engine.udp_open(key, high, UdpReuse::default()).unwrap();
    engine.udp_receive_start(key).unwrap();
    let expected: &[Event] = match mechanism {
        Mechanism::Select => &[Event::ReceiveEnd(Token(1), Errno::EINVAL)],
        _ => &[],
    };
    assert_eq!(told(&mut engine), expected);
    assert_eq!(engine.is_active(key), mechanism != Mechanism::Select);
    assert!(socket.as_raw_fd() < 1024);
}

/// Both have something to receive; whoever is first closes both.
fn a_callback_may_close_any_handle(mechanism: Mechanism) {
    let mut engine = engine_on(mechanism);
    let (one, first) = receiver(&mut engine, 1);
    let (two, second) = receiver(&mut engine, 2);
    let sender = engine.udp_init(Token(3), None).unwrap();
    for to in [&first, &second] {
        let sent = with_buffers(b"x", |buffers| {
            engine.udp_try_send(sender, &buffers, Some(AddressRef::from(to)))
        });
        assert_eq!(sent, Ok(1));
    }
    let mut events = Vec::new();
    run(&mut engine, Mode::NoWait, |engine, event| {
        if matches!(event, Event::Receive(_)) {
            engine.close(one).unwrap();
            engine.close(two).unwrap();
            assert_eq!(
                receive(engine, one),
                Err(Errno::EAGAIN),
                "it is too late for that"
            );
        }
        events.push(event);
    });
    assert!(matches!(
        events[..],
        [Event::Receive(_), Event::Closed(_), Event::Closed(_)]
    ));
}

/// The kernel has no room for the datagrams, and the poller cannot say when it has.
#[test]
fn sends_that_cannot_wait_for_room_fail() {
    let mut engine = engine_on(Mechanism::Sim(1));
    let sim = engine.sim().expect("the kernel is simulated");
    sim.use_kernel();
    sim.set_faults(Faults {
        again: 255,
        refuse: 255,
        ..Faults::default()
    });
    let (_, address) = receiver(&mut engine, 1);
    let sender = engine.udp_init(Token(2), None).unwrap();
    let mut slices = [b"one", b"two"].map(|text| Slice {
        base: text.as_ptr(),
        len: text.len(),
    });
    let to = Some(AddressRef::from(&address));
    for (token, slice) in (3..).zip(&mut slices) {
        // SAFETY: the array outlives the sends, which are reported below.
        let buffers = unsafe { Buffers::new((&raw mut *slice).cast(), 1) };
        assert_eq!(
            engine.udp_send(sender, Token(token), &buffers, to),
            Ok(false)
        );
        engine
            .udp_send_later(sender, Token(token), buffers, to)
            .unwrap();
    }
    let expected = [
        Event::ReceiveEnd(Token(1), Errno::ENOMEM),
        Event::Send(Token(3), Err(Errno::ENOMEM), 3),
        Event::Send(Token(4), Err(Errno::ENOMEM), 3),
    ];
    assert_eq!(told(&mut engine), expected);
    assert!(!engine.is_alive());
}

/// Its turn never ended when each [`Event::Writable`] asked for the next.
fn a_handle_that_always_wants_to_send_lets_others_have_their_turn(mechanism: Mechanism) {
    let mut engine = engine_on(mechanism);
    let (key, _) = receiver(&mut engine, 1);
    engine.udp_want_writable(key).unwrap();
    let mut calls = 0;
    run(&mut engine, Mode::NoWait, |engine, event| {
        assert_eq!(event, Event::Writable(Token(1)));
        calls += 1;
        assert!(calls < 1000, "one turn does not end");
        engine.udp_want_writable(key).unwrap();
    });
    assert_eq!(calls, 1);
}

/// A flush made as many calls as the queue took, however long it was.
fn a_long_queue_of_sends_lets_others_have_their_turn(mechanism: Mechanism) {
    const SENDS: usize = 40 * BATCH;
    let mut engine = engine_on(mechanism);
    let (key, address) = receiver(&mut engine, 1);
    engine.udp_receive_stop(key);
    let prepare = engine.prepare_init(Token(2)).unwrap();
    engine.loop_watcher_start(prepare).unwrap();
    assert!(send(&mut engine, key, 10, b"now", &address));
    let mut slice = Slice {
        base: b"later".as_ptr(),
        len: 5,
    };
    for _ in 0..SENDS {
        // SAFETY: the array has one entry and outlives the engine's use of it.
        let buffers = unsafe { Buffers::new((&raw mut slice).cast(), 1) };
        let to = Some(AddressRef::from(&address));
        engine.udp_send_later(key, Token(11), buffers, to).unwrap();
    }
    let (mut sends, mut sends_before_others) = (0, None);
    while sends <= SENDS {
        run(&mut engine, Mode::Once, |_, event| match event {
            Event::Prepare(_) => {
                sends_before_others.get_or_insert(sends);
            }
            event => {
                assert!(matches!(event, Event::Send(_, Ok(()), _)));
                sends += 1;
            }
        });
    }
    assert_eq!((sends, engine.udp_send_queue(key)), (SENDS + 1, (0, 0)));
    assert!(sends_before_others.unwrap() < SENDS);
}

/// A poll handle may watch the socket of a handle that only sends, which then cannot be watched for
/// room. As long as the kernel has room, that is of no concern to the sends.
fn a_long_queue_is_sent_where_the_poller_is_not_to_be_asked(mechanism: Mechanism) {
    const SENDS: usize = 40 * BATCH;
    let mut engine = engine_on(mechanism);
    let (key, address) = receiver(&mut engine, 1);
    engine.udp_receive_stop(key);
    let sender = engine.udp_init(Token(2), None).unwrap();
    assert!(send(&mut engine, sender, 10, b"now", &address));
    let poll = engine
        .poll_init(Token(3), engine.udp_fd(sender).unwrap())
        .unwrap();
    engine.poll_start(poll, Readiness::READABLE).unwrap();
    let mut slice = Slice {
        base: b"later".as_ptr(),
        len: 5,
    };
    for _ in 0..SENDS {
        // SAFETY: the array has one entry and outlives the engine's use of it.
        let buffers = unsafe { Buffers::new((&raw mut slice).cast(), 1) };
        let to = Some(AddressRef::from(&address));
        (engine.udp_send_later(sender, Token(11), buffers, to)).unwrap();
    }
    let mut sends = 0;
    while sends <= SENDS {
        run(&mut engine, Mode::Once, |_, event| {
            assert!(matches!(event, Event::Send(_, Ok(()), _)), "{event:?}");
            sends += 1;
        });
    }
    assert_eq!((sends, engine.udp_send_queue(sender)), (SENDS + 1, (0, 0)));
}
