//! UDP sockets on the loopback interface, in both styles.

use blacklight::{Loop, Mode, UdpOptions, UdpSocket, spawn};
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::AsFd;
use std::rc::Rc;
use std::task::Poll;

fn socket() -> UdpSocket {
    UdpSocket::from_std(std::net::UdpSocket::bind("127.0.0.1:0").unwrap()).unwrap()
}

#[test]
fn datagrams_keep_their_bounds_and_their_senders() {
    let lp = Loop::new().unwrap();
    lp.block_on(async {
        let (one, two) = (socket(), socket());
        let to = two.local_addr().unwrap();
        let receiving = spawn(async move {
            let mut room = [0; 8];
            let mut lengths = Vec::new();
            for _ in 0..4 {
                lengths.push(two.recv_from(&mut room).await.unwrap());
            }
            lengths
        });
        for text in ["first", "", "the third is cut", "last"] {
            assert_eq!(one.send_to(text.as_bytes(), to).await.unwrap(), text.len());
        }
        let from = one.local_addr().unwrap();
        let expected = [5, 0, 8, 4].map(|length| (length, from));
        assert_eq!(receiving.await.unwrap(), expected);
    });
}

#[test]
fn callbacks_send_and_receive_in_order() {
    let lp = Loop::new().unwrap();
    let (one, two) = (socket(), socket());
    let (from, to) = (one.local_addr().unwrap(), two.local_addr().unwrap());
    let received = Rc::new(RefCell::new(Vec::new()));
    let all = received.clone();
    two.recv_start(move |_, two, datagram| {
        let datagram = datagram.unwrap();
        assert_eq!(datagram.from, from);
        all.borrow_mut().push(datagram.bytes.to_vec());
        if all.borrow().len() == 50 {
            two.recv_stop();
        }
    })
    .unwrap();
    let sent = Rc::new(Cell::new(0));
    for at in 0..50u8 {
        let sent = sent.clone();
        one.send_to_then([at; 3], to, move |_, result| {
            result.unwrap();
            sent.set(sent.get() + 1);
        })
        .unwrap();
    }
    assert_eq!(sent.get(), 0);
    let queue = one.send_queue();
    assert_eq!((queue.datagrams, queue.bytes), (50, 150));
    assert!(!lp.run(Mode::Default));
    assert_eq!(sent.get(), 50);
    let expected: Vec<_> = (0..50u8).map(|at| vec![at; 3]).collect();
    assert_eq!(*received.borrow(), expected);
}

#[test]
fn connected_sockets_send_without_a_destination_and_hear_of_refusals() {
    let lp = Loop::new().unwrap();
    lp.block_on(async {
        let (one, two) = (socket(), socket());
        let without = one.send(b"x").await.unwrap_err();
        assert_eq!(without.raw_os_error(), Some(89), "EDESTADDRREQ");
        assert!(one.peer_addr().is_err());
        one.connect(two.local_addr().unwrap()).await.unwrap();
        two.connect(one.local_addr().unwrap()).await.unwrap();
        assert_eq!(one.peer_addr().unwrap(), two.local_addr().unwrap());
        one.send(b"hello").await.unwrap();
        let mut room = [0; 16];
        assert_eq!(two.recv(&mut room).await.unwrap(), 5);
        let other = one
            .send_to(b"x", two.local_addr().unwrap())
            .await
            .unwrap_err();
        assert_eq!(other.raw_os_error(), Some(106), "EISCONN");
        drop(two);
        // The refusal comes back to who sends or receives next.
        one.send(b"to nobody").await.unwrap();
        let refused = one.recv(&mut room).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
        one.disconnect().unwrap();
        assert!(one.disconnect().is_err());
    });
}

#[test]
fn a_dropped_receive_loses_no_datagram() {
    let lp = Loop::new().unwrap();
    let keep = RefCell::new(Vec::new());
    lp.block_on(async {
        let (one, two) = (socket(), socket());
        let mut room = [0; 16];
        {
            let mut receiving = Box::pin(two.recv_from(&mut room));
            poll_fn(|context| {
                assert!(receiving.as_mut().poll(context).is_pending());
                Poll::Ready(())
            })
            .await;
            one.send_to(b"kept", two.local_addr().unwrap())
                .await
                .unwrap();
        }
        assert_eq!(room, [0; 16]);
        // A turn of the loop, in which it finds that nobody wants it.
        blacklight::sleep(std::time::Duration::from_millis(1)).await;
        let (count, _) = two.recv_from(&mut room).await.unwrap();
        assert_eq!(&room[..count], b"kept");
        keep.borrow_mut().extend([one.clone(), two.clone()]);
    });
    assert!(
        !lp.run(Mode::Default),
        "sockets that nobody waits for let it end"
    );
}

#[test]
fn a_task_waits_behind_what_callbacks_send() {
    let lp = Loop::new().unwrap();
    lp.block_on(async {
        let (one, two) = (socket(), socket());
        let to = two.local_addr().unwrap();
        one.send_to_then("first", to, |_, result| result.unwrap())
            .unwrap();
        let busy = one.try_send_to(b"second", to).unwrap_err();
        assert_eq!(busy.kind(), ErrorKind::WouldBlock);
        one.send_to(b"second", to).await.unwrap();
        let mut room = [0; 16];
        assert_eq!(two.recv(&mut room).await.unwrap(), 5);
        assert_eq!(two.recv(&mut room).await.unwrap(), 6);
        let none = two.try_recv_from(&mut room).unwrap_err();
        assert_eq!(none.kind(), ErrorKind::WouldBlock);
    });
}

#[test]
fn a_datagram_that_is_too_long_is_refused_in_both_styles() {
    let lp = Loop::new().unwrap();
    let (one, two) = (socket(), socket());
    let to = two.local_addr().unwrap();
    let long = vec![0; 70_000];
    let error = lp.block_on(one.send_to(&long, to)).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(90), "EMSGSIZE");
    let told = Rc::new(Cell::new(None));
    let tells = told.clone();
    one.send_to_then(long, to, move |_, result| {
        tells.set(result.unwrap_err().raw_os_error())
    })
    .unwrap();
    lp.run(Mode::Default);
    assert_eq!(told.get(), Some(90));
}

#[test]
fn closing_cancels_what_waits() {
    let lp = Loop::new().unwrap();
    lp.block_on(async {
        let one = socket();
        let same = one.clone();
        let receiving = spawn(async move { same.recv(&mut [0; 16]).await });
        let same = one.clone();
        // It has begun to wait when this task runs again.
        spawn(async move { same.close() }).await.unwrap();
        assert!(receiving.await.unwrap().is_err());
        assert!(one.send_to(b"x", "127.0.0.1:9").await.is_err());
        assert!(one.recv_start(|_, _, _| ()).is_err());
    });
}

#[test]
fn ports_are_shared_by_who_says_so() {
    let lp = Loop::new().unwrap();
    let sharing = UdpOptions::new().reuse_port(true);
    let any = "127.0.0.1:0";
    let one = lp.block_on(UdpSocket::bind_with(any, sharing)).unwrap();
    let address = one.local_addr().unwrap();
    assert!(lp.block_on(UdpSocket::bind_with(address, sharing)).is_ok());
    let error = lp.block_on(UdpSocket::bind(address)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AddrInUse);
}

#[test]
fn options_are_those_of_the_socket() {
    let _lp = Loop::new().unwrap();
    let one = socket();
    let std = std::net::UdpSocket::from(one.as_fd().try_clone_to_owned().unwrap());
    one.set_ttl(7).unwrap();
    assert_eq!(std.ttl().unwrap(), 7);
    assert!(one.set_ttl(0).is_err());
    one.set_broadcast(true).unwrap();
    assert!(std.broadcast().unwrap());
    one.set_multicast_ttl(9).unwrap();
    assert_eq!(std.multicast_ttl_v4().unwrap(), 9);
    one.set_multicast_loop(false).unwrap();
    assert!(!std.multicast_loop_v4().unwrap());
    assert_eq!(std.local_addr().unwrap(), one.local_addr().unwrap());
}

#[test]
fn multicast_reaches_the_members_of_its_group() {
    let lp = Loop::new().unwrap();
    let group = Ipv4Addr::new(239, 255, 71, 11);
    let member = lp.block_on(UdpSocket::bind("0.0.0.0:0")).unwrap();
    let port = member.local_addr().unwrap().port();
    let sender = socket();
    member
        .join_multicast_v4(group, Ipv4Addr::LOCALHOST)
        .unwrap();
    sender
        .set_multicast_interface_v4(Ipv4Addr::LOCALHOST)
        .unwrap();
    let to = SocketAddr::from((group, port));
    lp.block_on(async {
        sender.send_to(b"all", to).await.unwrap();
        let mut room = [0; 16];
        assert_eq!(member.recv(&mut room).await.unwrap(), 3);
    });
    member
        .leave_multicast_v4(group, Ipv4Addr::LOCALHOST)
        .unwrap();
    assert!(
        member
            .leave_multicast_v4(group, Ipv4Addr::LOCALHOST)
            .is_err()
    );
}
