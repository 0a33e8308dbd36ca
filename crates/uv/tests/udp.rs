//! UDP handles through the C interface, on the loopback interface: sockets, options and sending,
//! where libuv's own tests do not reach.

#[path = "support/udp.rs"]
mod udp;

use std::cell::Cell;
use std::ffi::{c_int, c_uint};
use std::ptr::{null, null_mut};
use udp::*;

#[test]
fn init_ex_knows_two_families_and_one_flag() {
    let mut l = TestLoop::new();
    for flags in [libc::AF_UNIX as c_uint, 47, 0x200, 0x8000_0000] {
        let mut udp = std::mem::MaybeUninit::<uv_udp_t>::uninit();
        // SAFETY: the memory is a handle's.
        let made = unsafe { uv_udp_init_ex(l.raw(), udp.as_mut_ptr(), flags) };
        assert_eq!(made, EINVAL, "{flags:#x}");
    }
    let mut lazy = Peer::new(&mut l, 0);
    let mut fd = 7;
    // SAFETY: the handle is initialised.
    unsafe {
        assert_eq!(uv_fileno(lazy.raw(), &mut fd), EBADF);
        assert_eq!(uv_udp_using_recvmmsg(lazy.raw()), 0);
    }
    let mut early = Peer::new(&mut l, libc::AF_INET6 as c_uint | RECVMMSG);
    assert_eq!(
        option(early.fd(), libc::SOL_SOCKET, libc::SO_DOMAIN),
        libc::AF_INET6
    );
    // SAFETY: the handle is initialised.
    assert_eq!(unsafe { uv_udp_using_recvmmsg(early.raw()) }, 1);
}

#[test]
fn open_ex_sets_what_it_is_asked_for_and_no_more() {
    let mut l = TestLoop::new();
    for (flags, address, port) in [
        (0, 0, 0),
        (REUSEADDR, 1, 0),
        (REUSEPORT, 0, 1),
        (REUSEADDR | REUSEPORT, 1, 1),
    ] {
        let fd = udp_socket();
        let mut peer = Peer::new(&mut l, 0);
        // SAFETY: the handle is initialised, and takes the socket.
        assert_eq!(unsafe { uv_udp_open_ex(peer.raw(), fd, flags) }, 0);
        assert_eq!(peer.fd(), fd);
        assert_eq!(option(fd, libc::SOL_SOCKET, libc::SO_REUSEADDR), address);
        assert_eq!(option(fd, libc::SOL_SOCKET, libc::SO_REUSEPORT), port);
        // SAFETY: F_GETFL takes no pointers.
        assert!(unsafe { libc::fcntl(fd, libc::F_GETFL) } & libc::O_NONBLOCK != 0);
    }
}

#[test]
fn a_socket_that_cannot_be_opened_stays_the_programs() {
    let mut l = TestLoop::new();
    let fd = udp_socket();
    let mut peer = Peer::new(&mut l, 0);
    // SAFETY: the handles are initialised, and the numbers are no descriptors or ours.
    unsafe {
        for flags in [1, 2, 8, 16, 32, 128, 256] {
            assert_eq!(uv_udp_open_ex(peer.raw(), fd, flags), EINVAL, "{flags}");
        }
        assert_eq!(uv_udp_open_ex(peer.raw(), -1, 0), EBADF);
        assert_eq!(uv_udp_open(peer.raw(), 1_000_000), EBADF);
        let mut pipe = [0; 2];
        assert_eq!(libc::pipe(pipe.as_mut_ptr()), 0);
        assert_eq!(uv_udp_open(peer.raw(), pipe[0]), -libc::ENOTSOCK);
        close(pipe[0]);
        close(pipe[1]);
        assert_eq!(uv_udp_open(peer.raw(), fd), 0);
        let other = udp_socket();
        assert_eq!(uv_udp_open(peer.raw(), other), -libc::EBUSY);
        close(other);
        peer.start();
        let mut second = Peer::new(&mut l, 0);
        assert_eq!(uv_udp_open(second.raw(), fd), -libc::EEXIST);
    }
}

/// BIND does this: one handle binds, another opens the same socket and takes over the flags.
#[test]
fn flags_may_be_copied_from_one_handle_to_another_of_the_same_socket() {
    let mut l = TestLoop::new();
    let mut first = Peer::bound(&mut l, RECVMMSG);
    let address = first.address();
    let mut second = Peer::new(&mut l, 0);
    // SAFETY: the handles are initialised, and the second takes the copy.
    unsafe {
        let copy = libc::dup(first.fd());
        assert_eq!(uv_udp_open(second.raw(), copy), 0);
    }
    second.udp.flags = first.udp.flags;
    // SAFETY: the handle is initialised.
    assert_eq!(unsafe { uv_udp_using_recvmmsg(second.raw()) }, 1);
    second.state.room = 4 * MAX_DATAGRAM;
    second.start();
    let mut sender = Peer::new(&mut l, 0);
    assert_eq!(sender.try_send(b"for both", Some(&address)), 8);
    l.until(|| !second.datagrams().is_empty());
    assert_eq!(second.datagrams(), [b"for both"]);
    assert_eq!(second.heard()[0].flags, CHUNK);
    assert_eq!(second.heard()[1].flags, FREE);
}

#[test]
fn a_socket_put_in_the_place_of_a_stopped_handles_is_received_from() {
    let mut l = TestLoop::new();
    let mut peer = Peer::bound(&mut l, 0);
    let mut sender = Peer::bound(&mut l, 0);
    peer.start();
    l.turn();
    peer.stop();
    let fd = peer.fd();
    // SAFETY: the descriptors are open, and the first stays so.
    let kept = unsafe { libc::dup(fd) };
    let other = udp_socket();
    let any = loopback(0);
    // SAFETY: as above, and the address is as long as we say.
    unsafe {
        let len = size_of::<libc::sockaddr_in>() as libc::socklen_t;
        assert_eq!(libc::bind(other, any.as_ptr(), len), 0);
        assert_eq!(libc::dup2(other, fd), fd);
        close(other);
    }
    peer.start();
    let address = peer.address();
    assert_eq!(sender.try_send(b"x", Some(&address)), 1);
    l.until(|| peer.datagrams() == [b"x"]);
    close(kept);
}

#[test]
fn the_counts_of_the_queue_include_what_has_not_been_reported() {
    let mut l = TestLoop::new();
    let mut receiver = Peer::bound(&mut l, 0);
    receiver.start();
    let to = receiver.address();
    let mut sender = Peer::new(&mut l, 0);
    let mut sends = Sends::new();
    let texts: [&[u8]; 3] = [b"one", b"", b"three"];
    for text in texts {
        assert_eq!(
            sends.send(&mut sender, &[uv_buf_t::new(text)], Some(&to)),
            0
        );
    }
    assert!(sends.reports.is_empty(), "reported from within the call");
    assert_eq!(
        (sender.udp.send_queue_size, sender.udp.send_queue_count),
        (8, 3)
    );
    // SAFETY: the handle is initialised.
    unsafe {
        assert_eq!(uv_udp_get_send_queue_size(sender.raw()), 8);
        assert_eq!(uv_udp_get_send_queue_count(sender.raw()), 3);
        assert_eq!(uv_is_active(sender.raw()), 1);
    }
    assert_eq!(
        sender.try_send(b"x", Some(&to)),
        EAGAIN,
        "nobody jumps the queue"
    );
    l.until(|| receiver.datagrams().len() == 3);
    assert_eq!(sends.reports, [(0, 0, 5, 2), (1, 0, 5, 1), (2, 0, 0, 0)]);
    assert_eq!(receiver.datagrams(), texts);
    // SAFETY: the handle is initialised.
    assert_eq!(unsafe { uv_is_active(sender.raw()) }, 0);
}

#[test]
fn many_buffers_make_one_datagram() {
    let mut l = TestLoop::new();
    let mut receiver = Peer::bound(&mut l, 0);
    receiver.start();
    let to = receiver.address();
    let mut sender = Peer::new(&mut l, 0);
    let mut sends = Sends::new();
    let text = sealed(7, 1000);
    let pieces: Vec<uv_buf_t> = text.chunks(3).map(uv_buf_t::new).collect();
    // The first goes at once, the others are queued with a copy of their array.
    for _ in 0..3 {
        assert_eq!(sends.send(&mut sender, &pieces, Some(&to)), 0);
    }
    l.until(|| receiver.datagrams().len() == 3);
    assert_eq!(receiver.datagrams(), [&text[..]; 3]);
    let too_many = vec![uv_buf_t::new(b"x"); 1025];
    assert_eq!(sends.send(&mut sender, &too_many, Some(&to)), 0);
    l.until(|| sends.reports.len() == 4);
    assert_eq!(sends.reports[3].1, -libc::EMSGSIZE);
    assert_eq!(sends.send(&mut sender, &[], Some(&to)), EINVAL);
    let buf = uv_buf_t::new(b"x");
    // SAFETY: a number of buffers that is too large is not believed.
    let huge = unsafe { uv_udp_try_send(sender.raw(), &buf, c_uint::MAX, to.as_ptr()) };
    assert_eq!(huge, EINVAL);
}

#[test]
fn what_the_kernel_has_no_room_for_waits_and_goes_in_order() {
    let mut l = TestLoop::new();
    let (mut peer, other) = blocked_pair(&mut l);
    let filled = fill(&mut peer);
    let mut sends = Sends::new();
    let texts: Vec<Vec<u8>> = (0..50).map(|number| sealed(number, 20)).collect();
    for text in &texts {
        assert_eq!(sends.send(&mut peer, &[uv_buf_t::new(text)], None), 0);
    }
    l.turn();
    assert!(sends.reports.is_empty());
    for _ in 0..filled {
        assert_eq!(read(other), b"filling");
    }
    for number in 0..50 {
        l.until(|| sends.reports.len() > number);
        assert_eq!(unsealed(&read(other)), Some(number as u32));
    }
    let statuses: Vec<_> = sends
        .reports
        .iter()
        .map(|report| (report.0, report.1))
        .collect();
    assert_eq!(
        statuses,
        (0..50).map(|number| (number, 0)).collect::<Vec<_>>()
    );
    close(other);
}

#[test]
fn closing_cancels_what_is_queued_in_order_and_before_the_close_callback() {
    thread_local!(static CLOSED: Cell<usize> = const { Cell::new(usize::MAX) });
    thread_local!(static SENDS: Cell<*const Sends> = const { Cell::new(null()) });
    unsafe extern "C" fn closed(_: *mut uv_udp_t) {
        // SAFETY: the record lives until the end of the test.
        CLOSED.set(unsafe { (*SENDS.get()).reports.len() });
    }
    let mut l = TestLoop::new();
    let (mut peer, other) = blocked_pair(&mut l);
    let mut sends = Sends::new();
    SENDS.set(sends.as_ptr());
    // One that has gone but has not been reported, and three that have not.
    assert_eq!(sends.send(&mut peer, &[uv_buf_t::new(b"gone")], None), 0);
    l.turn();
    fill(&mut peer);
    for _ in 0..3 {
        assert_eq!(sends.send(&mut peer, &[uv_buf_t::new(b"waits")], None), 0);
    }
    peer.was_closed();
    // SAFETY: the handle is open.
    unsafe { uv_close(peer.raw(), Some(closed)) };
    assert_eq!(
        sends.reports.len(),
        1,
        "nothing is reported from within the call"
    );
    assert_eq!(peer.udp.send_queue_count, 3);
    l.run();
    let cancelled = -libc::ECANCELED;
    let expected = [
        (0, 0, 0, 0),
        (1, cancelled, 10, 2),
        (2, cancelled, 5, 1),
        (3, cancelled, 0, 0),
    ];
    assert_eq!(sends.reports, expected);
    assert_eq!(CLOSED.get(), 4);
    close(other);
}

#[test]
fn a_send_that_fails_does_not_take_the_others_along() {
    let mut l = TestLoop::new();
    let mut receiver = Peer::bound(&mut l, 0);
    receiver.start();
    let to = receiver.address();
    let mut sender = Peer::new(&mut l, 0);
    let big = vec![0; 70_000];
    let mut sends = Sends::new();
    for bytes in [&b"a"[..], &big, b"b", &big, b"c"] {
        assert_eq!(
            sends.send(&mut sender, &[uv_buf_t::new(bytes)], Some(&to)),
            0
        );
    }
    l.until(|| receiver.datagrams().len() == 3);
    assert_eq!(receiver.datagrams(), [b"a", b"b", b"c"]);
    let statuses: Vec<_> = sends.reports.iter().map(|report| report.1).collect();
    assert_eq!(statuses, [0, -libc::EMSGSIZE, 0, -libc::EMSGSIZE, 0]);
}

#[test]
fn a_callback_that_sends_again_does_not_keep_the_loop_for_itself() {
    const ROUNDS: usize = 1000;
    thread_local!(static SENT: Cell<usize> = const { Cell::new(0) });
    thread_local!(static TARGET: Cell<u16> = const { Cell::new(0) });
    unsafe extern "C" fn again(request: *mut uv_udp_send_t, status: c_int) {
        assert_eq!(status, 0);
        SENT.set(SENT.get() + 1);
        if SENT.get() < ROUNDS {
            let (buf, to) = (uv_buf_t::new(b"again"), loopback(TARGET.get()));
            // SAFETY: the request is free again, and the buffer is a constant.
            unsafe {
                let handle = (*request).handle;
                let sent = uv_udp_send(request, handle, &buf, 1, to.as_ptr(), Some(again));
                assert_eq!(sent, 0);
            }
        }
    }
    let mut l = TestLoop::new();
    let mut receiver = Peer::bound(&mut l, 0);
    receiver.start();
    TARGET.set(receiver.port());
    let mut sender = Peer::new(&mut l, 0);
    // SAFETY: all zeros are a request; it lives until the end of the test.
    let mut request: Box<uv_udp_send_t> = unsafe { Box::new(std::mem::zeroed()) };
    let (buf, to) = (uv_buf_t::new(b"first"), receiver.address());
    // SAFETY: as above.
    let sent = unsafe {
        uv_udp_send(
            &mut *request,
            sender.raw(),
            &buf,
            1,
            to.as_ptr(),
            Some(again),
        )
    };
    assert_eq!(sent, 0);
    l.turn();
    assert!(SENT.get() < 32, "{} sends in one turn", SENT.get());
    l.until(|| receiver.datagrams().len() == ROUNDS);
    assert_eq!(SENT.get(), ROUNDS);
}

#[test]
fn try_send2_sends_more_than_fit_one_batch() {
    let mut l = TestLoop::new();
    let mut receiver = Peer::bound(&mut l, 0);
    receiver.start();
    let to = receiver.address();
    let mut sender = Peer::new(&mut l, libc::AF_INET as c_uint);
    for count in [1, 2, 19, 20, 21, 100] {
        receiver.state.heard.clear();
        let texts: Vec<_> = (0..count)
            .map(|number| sealed(number, number as usize))
            .collect();
        let texts: Vec<&[u8]> = texts.iter().map(|text| &text[..]).collect();
        let sent = try_send2(&mut sender, &texts, &vec![Some(to); texts.len()], 0);
        assert_eq!(sent, count as c_int);
        l.until(|| receiver.datagrams().len() == texts.len());
        assert_eq!(receiver.datagrams(), texts);
    }
}

#[test]
fn try_send2_refuses_what_is_malformed_before_it_sends_anything() {
    let mut l = TestLoop::new();
    let mut receiver = Peer::bound(&mut l, 0);
    receiver.start();
    let to = Some(receiver.address());
    let mut lazy = Peer::new(&mut l, 0);
    assert_eq!(
        try_send2(&mut lazy, &[b"a"], &[to], 0),
        EINVAL,
        "there is no socket"
    );
    let mut sender = Peer::new(&mut l, libc::AF_INET as c_uint);
    assert_eq!(try_send2(&mut sender, &[], &[], 0), EINVAL);
    assert_eq!(try_send2(&mut sender, &[b"a"], &[to], 1), EINVAL);
    let nowhere = -libc::EDESTADDRREQ;
    assert_eq!(
        try_send2(&mut sender, &[b"a", b"b"], &[to, None], 0),
        nowhere
    );
    assert_eq!(try_send2(&mut sender, &[b"a", b"b"], &[], 0), nowhere);
    let mut packet = receiver.address();
    packet.0.sin_family = libc::AF_PACKET as libc::sa_family_t;
    assert_eq!(
        try_send2(&mut sender, &[b"a", b"b"], &[to, Some(packet)], 0),
        EINVAL
    );
    let (mut buf, mut nbufs, addr) = (uv_buf_t::new(b"a"), [1, 0], receiver.address());
    let mut bufs = [&raw mut buf; 2];
    let mut addrs = [addr.as_ptr().cast_mut(); 2];
    // SAFETY: the arrays have two entries each.
    let sent = unsafe {
        let (bufs, nbufs) = (bufs.as_mut_ptr(), nbufs.as_mut_ptr());
        uv_udp_try_send2(sender.raw(), 2, bufs, nbufs, addrs.as_mut_ptr(), 0)
    };
    assert_eq!(sent, EINVAL, "the second has no buffers");
    assert_eq!(sender.connect(&addr), 0);
    assert_eq!(
        try_send2(&mut sender, &[b"a", b"b"], &[None, to], 0),
        -libc::EISCONN
    );
    assert_eq!(try_send2(&mut sender, &[b"a", b"b"], &[None, None], 0), 2);
    assert_eq!(
        try_send2(&mut sender, &[b"c"], &[], 0),
        1,
        "a connection needs no addresses"
    );
    l.until(|| receiver.datagrams().len() == 3);
    assert_eq!(receiver.datagrams(), [b"a", b"b", b"c"]);
}

#[test]
fn try_send2_says_how_many_went_before_the_first_that_did_not() {
    let mut l = TestLoop::new();
    let mut receiver = Peer::bound(&mut l, 0);
    let to = receiver.address();
    let mut sender = Peer::new(&mut l, libc::AF_INET as c_uint);
    let big = vec![0; 70_000];
    let to3 = [Some(to); 3];
    assert_eq!(try_send2(&mut sender, &[b"a", &big, b"b"], &to3, 0), 1);
    assert_eq!(
        try_send2(&mut sender, &[&big, b"a", b"b"], &to3, 0),
        -libc::EMSGSIZE
    );
    // Beyond the first batch, too.
    let mut texts: Vec<&[u8]> = vec![b"x"; 45];
    texts[40] = &big;
    assert_eq!(try_send2(&mut sender, &texts, &[Some(to); 45], 0), 40);
    let (mut peer, other) = blocked_pair(&mut l);
    let room = fill(&mut peer);
    assert_eq!(try_send2(&mut peer, &[b"a"], &[None], 0), EAGAIN);
    read(other);
    read(other);
    assert_eq!(try_send2(&mut peer, &[&b"x"[..]; 5], &[None; 5], 0), 2);
    let mut sends = Sends::new();
    assert_eq!(sends.send(&mut peer, &[uv_buf_t::new(b"queued")], None), 0);
    read(other);
    assert_eq!(
        try_send2(&mut peer, &[b"a"], &[None], 0),
        EAGAIN,
        "nobody jumps the queue"
    );
    for _ in 0..room - 1 {
        read(other);
    }
    l.until(|| !sends.reports.is_empty());
    assert_eq!(read(other), b"queued");
    close(other);
}

#[test]
fn destinations_have_to_fit_the_connection() {
    let mut l = TestLoop::new();
    let mut receiver = Peer::bound(&mut l, 0);
    receiver.start();
    let to = receiver.address();
    let mut peer = Peer::new(&mut l, 0);
    let nowhere = -libc::EDESTADDRREQ;
    // SAFETY: the handle is initialised.
    let ended = unsafe { uv_udp_connect(peer.raw(), null::<libc::sockaddr>()) };
    assert_eq!(ended, -libc::ENOTCONN);
    assert_eq!(peer.try_send(b"x", None), nowhere);
    assert_eq!(
        Sends::new().send(&mut peer, &[uv_buf_t::new(b"x")], None),
        nowhere
    );
    assert_eq!(peer.connect(&to), 0);
    assert_eq!(peer.connect(&to), -libc::EISCONN);
    assert_eq!(peer.try_send(b"x", Some(&to)), -libc::EISCONN);
    assert_eq!(
        Sends::new().send(&mut peer, &[uv_buf_t::new(b"x")], Some(&to)),
        -libc::EISCONN
    );
    assert_eq!(peer.try_send(b"connected", None), 9);
    let port = peer.port();
    assert_eq!(
        // SAFETY: the handle is initialised.
        unsafe { uv_udp_connect(peer.raw(), null::<libc::sockaddr>()) },
        0
    );
    assert_eq!(peer.try_send(b"x", None), nowhere);
    assert_eq!(peer.try_send(b"not", Some(&to)), 3);
    l.until(|| receiver.datagrams().len() == 2);
    assert_eq!(receiver.datagrams(), [&b"connected"[..], b"not"]);
    assert_eq!(receiver.heard()[0].from, Some(port));
    let mut unknown = to;
    unknown.0.sin_family = libc::AF_UNSPEC as libc::sa_family_t;
    assert_eq!(peer.connect(&unknown), EINVAL);
    assert_eq!(peer.bind(&unknown, 0), EINVAL);
    assert_eq!(peer.try_send(b"x", Some(&unknown)), EINVAL);
}

#[test]
fn binding_checks_its_flags() {
    let mut l = TestLoop::new();
    for flags in [1, 2, 8, 16, 128, 256] {
        let mut peer = Peer::new(&mut l, 0);
        assert_eq!(peer.bind(&loopback(0), flags), EINVAL, "{flags}");
        let mut fd = -1;
        // SAFETY: the handle is initialised.
        let found = unsafe { uv_fileno(peer.raw(), &mut fd) };
        assert_eq!(found, EBADF, "no socket was made");
    }
    let mut peer = Peer::new(&mut l, 0);
    assert_eq!(peer.bind(&loopback(0), REUSEADDR | REUSEPORT | RECVERR), 0);
    let fd = peer.fd();
    assert_eq!(option(fd, libc::SOL_SOCKET, libc::SO_REUSEADDR), 1);
    assert_eq!(option(fd, libc::SOL_SOCKET, libc::SO_REUSEPORT), 1);
    assert_eq!(option(fd, libc::SOL_IP, libc::IP_RECVERR), 1);
    assert_eq!(peer.bind(&loopback(0), 0), EINVAL, "it is bound");
    let mut v6 = Peer::new(&mut l, libc::AF_INET6 as c_uint);
    assert_eq!(v6.bind(&loopback(0), 0), EINVAL);
}

#[test]
fn options_are_those_of_the_sockets_family() {
    let mut l = TestLoop::new();
    let (ip, ip6) = (libc::IPPROTO_IP, libc::IPPROTO_IPV6);
    let v4 = (
        libc::AF_INET,
        ip,
        [
            libc::IP_TTL,
            libc::IP_MULTICAST_TTL,
            libc::IP_MULTICAST_LOOP,
        ],
    );
    let v6 = [
        libc::IPV6_UNICAST_HOPS,
        libc::IPV6_MULTICAST_HOPS,
        libc::IPV6_MULTICAST_LOOP,
    ];
    for (family, level, [ttl, multicast_ttl, multicast_loop]) in [v4, (libc::AF_INET6, ip6, v6)] {
        let mut peer = Peer::new(&mut l, family as c_uint);
        let fd = peer.fd();
        // SAFETY: the handle is initialised.
        unsafe {
            assert_eq!(uv_udp_set_ttl(peer.raw(), 77), 0);
            assert_eq!(uv_udp_set_multicast_ttl(peer.raw(), 33), 0);
            assert_eq!(uv_udp_set_multicast_loop(peer.raw(), 0), 0);
            assert_eq!(uv_udp_set_broadcast(peer.raw(), 1), 0);
            for bad in [-1, 0, 256] {
                assert_eq!(uv_udp_set_ttl(peer.raw(), bad), EINVAL);
            }
            assert_eq!(uv_udp_set_multicast_ttl(peer.raw(), 256), EINVAL);
            assert_eq!(uv_udp_set_multicast_loop(peer.raw(), 256), EINVAL);
        }
        assert_eq!(option(fd, level, ttl), 77);
        assert_eq!(option(fd, level, multicast_ttl), 33);
        assert_eq!(option(fd, level, multicast_loop), 0);
        assert_eq!(option(fd, libc::SOL_SOCKET, libc::SO_BROADCAST), 1);
    }
}

#[test]
fn the_sizes_of_the_kernels_buffers_can_be_asked_and_set() {
    let mut l = TestLoop::new();
    let mut lazy = Peer::new(&mut l, 0);
    let mut bound = Peer::bound(&mut l, 0);
    let mut size = 0;
    // SAFETY: the handles are initialised.
    unsafe {
        assert_eq!(uv_send_buffer_size(lazy.raw(), &mut size), EBADF);
        for function in [uv_send_buffer_size, uv_recv_buffer_size] {
            let mut wanted = 10_000;
            assert_eq!(function(bound.raw(), &mut wanted), 0);
            size = 0;
            assert_eq!(function(bound.raw(), &mut size), 0);
            assert!(size == 10_000 || size == 20_000, "{size}");
        }
    }
}

/// A bound handle goes over a pipe, and what is sent to its address reaches the other side.
#[test]
fn handles_can_be_passed_over_pipes() {
    unsafe extern "C" fn alloc(_: *mut uv_pipe_t, _: usize, buf: *mut uv_buf_t) {
        thread_local!(static ROOM: [u8; 16] = const { [0; 16] });
        // SAFETY: the room outlives the test, and the caller has room for the answer.
        ROOM.with(|room| unsafe { *buf = uv_buf_t::new(room) });
    }
    unsafe extern "C" fn read(pipe: *mut uv_pipe_t, nread: isize, _: *const uv_buf_t) {
        // SAFETY: the pipe is open, and its data is a handle that nobody uses yet.
        unsafe {
            assert_eq!(nread, 1);
            assert_eq!(uv_pipe_pending_count(pipe), 1);
            assert_eq!(uv_pipe_pending_type(pipe), UV_UDP);
            assert_eq!(uv_accept(pipe, (*pipe).data.cast::<uv_stream_t>()), 0);
            assert_eq!(uv_accept(pipe, (*pipe).data.cast::<uv_stream_t>()), EAGAIN);
            (*pipe).data = null_mut();
        }
    }
    let mut l = TestLoop::new();
    let mut fds = [0; 2];
    // SAFETY: there is room for two descriptors.
    let made = unsafe { libc::socketpair(libc::AF_UNIX, libc::SOCK_STREAM, 0, fds.as_mut_ptr()) };
    assert_eq!(made, 0);
    let mut pipes = Box::new([garbage::<uv_pipe_t>(); 2]);
    let mut passed = Peer::bound(&mut l, 0);
    let address = passed.address();
    let mut taken = Peer::new(&mut l, 0);
    let (mut write, buf) = (Box::new(garbage::<uv_write_t>()), uv_buf_t::new(b"!"));
    // SAFETY: the pipes are initialised here, and they and all else live until they are closed.
    unsafe {
        for (pipe, fd) in pipes.iter_mut().zip(fds) {
            assert_eq!(uv_pipe_init(l.raw(), pipe, 1), 0);
            assert_eq!(uv_pipe_open(pipe, fd), 0);
        }
        let [from, to] = &mut *pipes;
        to.data = taken.raw().cast();
        assert_eq!(uv_read_start(to, Some(alloc), Some(read)), 0);
        let mut lazy = Peer::new(&mut l, 0);
        assert_eq!(
            uv_write2(
                &mut *write,
                from,
                &buf,
                1,
                lazy.raw().cast::<uv_stream_t>(),
                None
            ),
            EBADF
        );
        assert_eq!(
            uv_write2(
                &mut *write,
                from,
                &buf,
                1,
                passed.raw().cast::<uv_stream_t>(),
                None
            ),
            0
        );
        // The callback writes there while we wait.
        let taken_in = &raw const to.data;
        l.until(|| (*taken_in).is_null());
    }
    passed.close();
    taken.start();
    let mut sender = Peer::new(&mut l, 0);
    assert_eq!(sender.try_send(b"to whom?", Some(&address)), 8);
    l.until(|| !taken.datagrams().is_empty());
    assert_eq!(taken.datagrams(), [b"to whom?"]);
    assert_eq!(taken.port(), u16::from_be(address.0.sin_port));
    for pipe in &mut *pipes {
        // SAFETY: the pipes are open; closing needs no more than what all handles have.
        unsafe { uv_close((&raw mut *pipe), None) };
    }
    l.turn();
}
