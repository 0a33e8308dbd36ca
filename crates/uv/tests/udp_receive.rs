//! UDP handles through the C interface, on the loopback interface: receiving and multicast, where
//! libuv's own tests do not reach.

#[path = "support/udp.rs"]
mod udp;

use std::cell::Cell;
use std::ffi::{c_int, c_uint};
use std::ptr::null;
use std::rc::Rc;
use udp::*;

#[test]
fn a_datagram_larger_than_its_room_is_cut_and_says_so() {
    let mut l = TestLoop::new();
    let mut receiver = Peer::bound(&mut l, 0);
    receiver.state.room = 4;
    receiver.start();
    let to = receiver.address();
    let mut sender = Peer::new(&mut l, 0);
    for text in [&b"four"[..], b"fives", b""] {
        assert_eq!(sender.try_send(text, Some(&to)), text.len() as c_int);
    }
    l.until(|| receiver.heard().len() == 4);
    let flags: Vec<_> = receiver.heard().iter().map(|heard| heard.flags).collect();
    assert_eq!(flags, [0, PARTIAL, 0, 0]);
    assert_eq!(receiver.datagrams(), [&b"four"[..], b"five", b""]);
    let nothing = &receiver.heard()[3];
    assert_eq!((nothing.nread, nothing.from), (0, None));
    assert!(receiver.state.lent.is_empty());
}

/// The same on a socket for which the kernel has to be asked in another way.
#[test]
fn sockets_of_other_families_tell_what_was_cut_too() {
    let mut l = TestLoop::new();
    let (mut peer, other) = blocked_pair(&mut l);
    peer.state.room = 4;
    peer.start();
    // SAFETY: the text is as long as we say.
    let written = unsafe { libc::write(other, b"fives".as_ptr().cast(), 5) };
    assert_eq!(written, 5);
    l.until(|| peer.heard().len() == 2);
    let cut = &peer.heard()[0];
    assert_eq!(
        (&cut.bytes[..], cut.flags, cut.from),
        (&b"five"[..], PARTIAL, None)
    );
    close(other);
}

#[test]
fn without_room_nothing_is_received_and_nothing_is_lost() {
    let mut l = TestLoop::new();
    for flags in [0, RECVMMSG] {
        let mut receiver = Peer::bound(&mut l, flags);
        receiver.state.room = 0;
        receiver.start();
        let to = receiver.address();
        let mut sender = Peer::new(&mut l, 0);
        assert_eq!(sender.try_send(b"kept", Some(&to)), 4);
        l.until(|| !receiver.heard().is_empty());
        assert_eq!(receiver.heard()[0].nread, -libc::ENOBUFS as isize);
        if flags == RECVMMSG {
            receiver.state.heard.clear();
            receiver.state.room = MAX_DATAGRAM - 1;
            l.until(|| !receiver.heard().is_empty());
            assert_eq!(
                receiver.heard()[0].nread,
                EINVAL as isize,
                "less than one piece"
            );
            assert!(receiver.state.lent.is_empty());
        }
        receiver.state.room = MAX_DATAGRAM;
        l.until(|| !receiver.datagrams().is_empty());
        assert_eq!(receiver.datagrams(), [b"kept"]);
    }
}

#[test]
fn receiving_is_bounded_in_each_turn() {
    let mut l = TestLoop::new();
    let mut receiver = Peer::bound(&mut l, 0);
    receiver.state.room = 64;
    receiver.start();
    let to = receiver.address();
    let mut sender = Peer::new(&mut l, 0);
    for _ in 0..100 {
        assert_eq!(sender.try_send(b"x", Some(&to)), 1);
    }
    l.turn();
    assert_eq!(receiver.heard().len(), 32);
    l.turn();
    assert_eq!(receiver.heard().len(), 64);
    l.until(|| receiver.datagrams().len() == 100);
}

#[test]
fn starting_twice_or_without_callbacks_is_refused() {
    let mut l = TestLoop::new();
    let mut peer = Peer::new(&mut l, 0);
    unsafe extern "C" fn alloc(_: *mut uv_udp_t, _: usize, _: *mut uv_buf_t) {}
    unsafe extern "C" fn recv(
        _: *mut uv_udp_t,
        _: isize,
        _: *const uv_buf_t,
        _: *const libc::sockaddr,
        _: c_uint,
    ) {
    }
    // SAFETY: the handle is initialised.
    unsafe {
        assert_eq!(uv_udp_recv_start(peer.raw(), None, Some(recv)), EINVAL);
        assert_eq!(uv_udp_recv_start(peer.raw(), Some(alloc), None), EINVAL);
        assert_eq!(uv_is_active(peer.raw()), 0);
        peer.start();
        assert_eq!(
            uv_udp_recv_start(peer.raw(), Some(alloc), Some(recv)),
            -libc::EALREADY
        );
        assert_eq!(uv_is_active(peer.raw()), 1);
        assert_ne!(peer.port(), 0, "it was bound on the way");
        peer.stop();
        peer.stop();
        assert_eq!(uv_is_active(peer.raw()), 0);
        peer.close();
        assert_eq!(
            uv_udp_recv_start(peer.raw(), Some(alloc), Some(recv)),
            EINVAL
        );
        assert_eq!(uv_udp_recv_stop(peer.raw()), 0);
        assert_eq!(peer.try_send(b"x", Some(&loopback(9))), EINVAL);
        let mut fd = 0;
        assert_eq!(uv_fileno(peer.raw(), &mut fd), EBADF);
    }
}

#[test]
fn who_stops_in_a_callback_hears_nothing_more_until_it_starts_again() {
    let mut l = TestLoop::new();
    let mut receiver = Peer::bound(&mut l, 0);
    let to = receiver.address();
    let mut sender = Peer::new(&mut l, 0);
    // SAFETY: the handle is receiving.
    receiver.state.on_receive = Some(Box::new(|udp, _| unsafe {
        assert_eq!(uv_udp_recv_stop(udp), 0);
    }));
    receiver.start();
    for text in [b"1", b"2", b"3"] {
        assert_eq!(sender.try_send(text, Some(&to)), 1);
    }
    l.until(|| !receiver.heard().is_empty());
    l.turn();
    assert_eq!(receiver.datagrams(), [b"1"]);
    receiver.state.on_receive = None;
    receiver.start();
    l.until(|| receiver.datagrams().len() == 3);
    assert_eq!(receiver.datagrams(), [b"1", b"2", b"3"]);
}

#[test]
fn who_closes_in_a_callback_gets_its_buffer_back() {
    let mut l = TestLoop::new();
    for flags in [0, RECVMMSG] {
        let mut receiver = Peer::bound(&mut l, flags);
        receiver.state.room = 4 * MAX_DATAGRAM;
        let to = receiver.address();
        let mut sender = Peer::new(&mut l, 0);
        let closed = Rc::new(Cell::new(false));
        let closes = closed.clone();
        receiver.state.on_receive = Some(Box::new(move |udp, _| {
            if !closes.replace(true) {
                // SAFETY: the handle is open.
                unsafe { uv_close(udp, None) };
            }
        }));
        receiver.start();
        for text in [b"1", b"2", b"3"] {
            assert_eq!(sender.try_send(text, Some(&to)), 1);
        }
        l.until(|| closed.get());
        receiver.was_closed();
        sender.close();
        l.run();
        assert!(receiver.state.lent.is_empty(), "a buffer has not come back");
        assert_eq!(receiver.state.lent_ever, 1);
    }
}

/// Every buffer that is lent comes back exactly once; every datagram arrives whole, in its
/// piece of a buffer, and in order.
fn exchange(flags: c_uint, seed: u64) {
    let mut random = Random::new(seed);
    let mut l = TestLoop::new();
    let mut receiver = Peer::bound(&mut l, flags);
    let mut sender = Peer::new(&mut l, libc::AF_INET as c_uint);
    let to = receiver.address();
    let sender_port = Cell::new(0);
    receiver.start();
    let mut next = 0;
    let mut expected = 0;
    for _ in 0..200 {
        receiver.state.room = match flags & RECVMMSG {
            0 => MAX_DATAGRAM,
            _ => MAX_DATAGRAM * (1 + random.below(24)) + random.below(MAX_DATAGRAM),
        };
        // No more at a time than the kernel surely has room for.
        let texts: Vec<Vec<u8>> = (0..1 + random.below(6))
            .map(|_| {
                next += 1;
                let len = match random.below(4) {
                    0 => random.below(20_000),
                    _ => random.below(1_400),
                };
                sealed(next - 1, len)
            })
            .collect();
        let texts: Vec<&[u8]> = texts.iter().map(|text| &text[..]).collect();
        let sent = try_send2(&mut sender, &texts, &vec![Some(to); texts.len()], 0);
        assert_eq!(sent, texts.len() as c_int, "seed {seed}");
        sender_port.set(sender.port());
        l.until(|| receiver.datagrams().len() == texts.len());
        for heard in receiver.heard() {
            let is_batch = heard.flags == CHUNK;
            assert!(
                heard.flags == FREE || heard.flags == 0 || is_batch,
                "seed {seed}: {heard:?}"
            );
            if let Some(from) = heard.from {
                assert_eq!(is_batch, flags & RECVMMSG != 0, "seed {seed}");
                assert_eq!(from, sender_port.get(), "seed {seed}");
                assert_eq!(unsealed(&heard.bytes), Some(expected), "seed {seed}");
                expected += 1;
            } else {
                assert_eq!(heard.nread, 0, "seed {seed}");
            }
        }
        receiver.state.heard.clear();
    }
    assert_eq!(expected, next, "seed {seed}");
    receiver.close();
    sender.close();
    l.run();
    assert!(
        receiver.state.lent.is_empty(),
        "seed {seed}: buffers have not come back"
    );
    assert!(receiver.state.lent_ever > 0);
}

#[test]
fn random_datagrams_arrive_whole_and_all_buffers_come_back() {
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap();
    let seed = match std::env::var("BLACKLIGHT_SEED") {
        Ok(seed) => seed.parse().unwrap(),
        Err(_) => now.as_nanos() as u64,
    };
    println!("BLACKLIGHT_SEED={seed}");
    exchange(0, seed);
    exchange(RECVMMSG, seed);
}

#[test]
fn a_batch_is_told_piece_by_piece_and_then_the_buffer_is_free() {
    let mut l = TestLoop::new();
    let mut receiver = Peer::bound(&mut l, RECVMMSG);
    receiver.state.room = 3 * MAX_DATAGRAM + 100;
    receiver.start();
    let to = receiver.address();
    let mut sender = Peer::new(&mut l, 0);
    for text in [b"1", b"2", b"3", b"4"] {
        assert_eq!(sender.try_send(text, Some(&to)), 1);
    }
    l.until(|| {
        receiver
            .heard()
            .last()
            .is_some_and(|heard| heard.flags == 0)
    });
    let told: Vec<_> = receiver
        .heard()
        .iter()
        .map(|heard| (heard.nread, heard.flags))
        .collect();
    let expected = [
        (1, CHUNK),
        (1, CHUNK),
        (1, CHUNK),
        (0, FREE),
        (1, CHUNK),
        (0, FREE),
        (0, 0),
    ];
    assert_eq!(told, expected);
    assert_eq!(receiver.state.lent_ever, 3);
    assert!(receiver.state.lent.is_empty());
}

#[test]
fn what_becomes_of_a_connected_handles_datagrams_is_told() {
    let mut l = TestLoop::new();
    let mut peer = Peer::bound(&mut l, 0);
    assert_eq!(peer.connect(&dead_port()), 0);
    peer.start();
    assert_eq!(peer.try_send(b"anybody?", None), 8);
    let refused = -libc::ECONNREFUSED as isize;
    l.until(|| peer.heard().iter().any(|heard| heard.nread == refused));
    let error = peer
        .heard()
        .iter()
        .find(|heard| heard.nread == refused)
        .unwrap();
    assert_eq!((error.flags, error.from), (0, None));
    l.turn();
    assert!(peer.state.lent.is_empty());
    assert_eq!(peer.try_send(b"anybody?", None), 8, "the handle goes on");
}

#[test]
fn errors_on_the_queue_say_what_and_who() {
    let mut l = TestLoop::new();
    for flags in [0, RECVMMSG] {
        let mut peer = Peer::new(&mut l, flags);
        assert_eq!(peer.bind(&loopback(0), RECVERR), 0);
        peer.start();
        assert_eq!(peer.try_send(b"anybody?", Some(&dead_port())), 8);
        l.until(|| peer.heard().iter().any(|heard| heard.flags & RECVERR != 0));
        let told = peer
            .heard()
            .iter()
            .find(|heard| heard.flags & RECVERR != 0)
            .unwrap();
        assert_eq!(told.nread, -libc::ECONNREFUSED as isize);
        assert_eq!(told.flags, RECVERR, "the buffer is free, whatever the mode");
        assert_eq!(
            told.from,
            Some(0),
            "the host's own word, which comes from no port"
        );
        l.until(|| peer.state.lent.is_empty());
        let told = peer.heard().len();
        l.turn();
        assert_eq!(peer.heard().len(), told, "the queue is empty");
    }
}

#[test]
fn errors_that_nobody_hears_do_not_keep_the_loop_turning() {
    let mut l = TestLoop::new();
    let mut peer = Peer::new(&mut l, 0);
    assert_eq!(peer.bind(&loopback(0), RECVERR), 0);
    let mut sends = Sends::new();
    let dead = dead_port();
    for _ in 0..5 {
        assert_eq!(
            sends.send(&mut peer, &[uv_buf_t::new(b"anybody?")], Some(&dead)),
            0
        );
    }
    l.run();
    assert_eq!(sends.reports.len(), 5);
    let fine = |status| status == 0 || status == -libc::ECONNREFUSED;
    assert!(sends.reports.iter().all(|report| fine(report.1)));
    // SAFETY: the loop is initialised.
    assert_eq!(unsafe { uv_loop_alive(l.raw()) }, 0);
}

#[test]
fn groups_have_to_be_well_formed() {
    let mut l = TestLoop::new();
    let set = |peer: &mut Peer, group: &std::ffi::CStr, interface: Option<&std::ffi::CStr>, how| {
        let interface = interface.map_or(null(), |interface| interface.as_ptr());
        // SAFETY: the handle is initialised, and the texts live through the call.
        unsafe { uv_udp_set_membership(peer.raw(), group.as_ptr(), interface, how) }
    };
    let mut peer = Peer::new(&mut l, 0);
    assert_eq!(set(&mut peer, c"nonsense", None, 1), EINVAL);
    let mut fd = -1;
    // SAFETY: the handle is initialised.
    let found = unsafe { uv_fileno(peer.raw(), &mut fd) };
    assert_eq!(found, EBADF, "no socket was made");
    assert_eq!(set(&mut peer, c"239.255.0.1", Some(c"nonsense"), 1), EINVAL);
    assert_eq!(set(&mut peer, c"239.255.0.1", Some(c"::1"), 1), EINVAL);
    assert_eq!(
        set(&mut peer, c"239.255.0.1", Some(c"127.0.0.1"), 2),
        EINVAL
    );
    assert_eq!(
        set(&mut peer, c"239.255.0.1", Some(c"127.0.0.1"), 0),
        -libc::EADDRNOTAVAIL
    );
    assert_eq!(option(peer.fd(), libc::SOL_SOCKET, libc::SO_REUSEADDR), 1);
    // SAFETY: the handle is initialised, and the texts are constants.
    unsafe {
        let mut source = |source: &std::ffi::CStr| {
            let (group, here) = (c"239.255.0.1".as_ptr(), c"127.0.0.1".as_ptr());
            uv_udp_set_source_membership(peer.raw(), group, here, source.as_ptr(), 1)
        };
        assert_eq!(source(c"::1"), EINVAL);
        assert_eq!(source(c"nonsense"), EINVAL);
    }
}

/// Multicast that does not leave the machine.
#[test]
fn groups_are_heard_of_by_their_members_and_from_their_sources_only() {
    const GROUP: std::net::Ipv4Addr = std::net::Ipv4Addr::new(239, 255, 77, 1);
    let (group, here) = (c"239.255.77.1".as_ptr(), c"127.0.0.1".as_ptr());
    let mut l = TestLoop::new();
    let mut member = Peer::new(&mut l, 0);
    let any = Address::v4(std::net::SocketAddrV4::new(
        std::net::Ipv4Addr::UNSPECIFIED,
        0,
    ));
    assert_eq!(member.bind(&any, 0), 0);
    let to = Address::v4(std::net::SocketAddrV4::new(GROUP, member.port()));
    let direct = loopback(member.port());
    member.start();
    let mut sender = Peer::bound(&mut l, 0);
    // SAFETY: the handles are initialised, and the texts are constants.
    unsafe {
        assert_eq!(uv_udp_set_multicast_interface(sender.raw(), here), 0);
        assert_eq!(uv_udp_set_multicast_loop(sender.raw(), 1), 0);
    }
    // What comes directly shows that what was sent before it has come or never will.
    let mut is_heard = |member: &mut Peer| {
        member.state.heard.clear();
        assert_eq!(sender.try_send(b"group", Some(&to)), 5);
        assert_eq!(sender.try_send(b"direct", Some(&direct)), 6);
        l.until(|| member.datagrams().contains(&&b"direct"[..]));
        member.datagrams().contains(&&b"group"[..])
    };
    assert!(!is_heard(&mut member), "before joining");
    // SAFETY: the handle is initialised, and the texts are constants.
    unsafe {
        assert_eq!(uv_udp_set_membership(member.raw(), group, here, 1), 0);
        assert!(is_heard(&mut member), "after joining");
        assert_eq!(uv_udp_set_membership(member.raw(), group, here, 0), 0);
        assert!(!is_heard(&mut member), "after leaving");
        let stranger = c"192.0.2.1".as_ptr();
        assert_eq!(
            uv_udp_set_source_membership(member.raw(), group, here, stranger, 1),
            0
        );
        assert!(!is_heard(&mut member), "from another source");
        assert_eq!(
            uv_udp_set_source_membership(member.raw(), group, here, here, 1),
            0
        );
        assert!(is_heard(&mut member), "from that source");
        assert_eq!(
            uv_udp_set_source_membership(member.raw(), group, here, here, 0),
            0
        );
        assert!(!is_heard(&mut member), "after leaving the source");
    }
}
