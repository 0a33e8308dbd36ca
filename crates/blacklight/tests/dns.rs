//! Names of hosts, and random bytes. Nothing here needs a network.

#[path = "support/pool.rs"]
mod pool;

use blacklight::{Loop, Mode, TcpListener, TcpStream, UdpSocket, dns, random, random_bytes};
use pool::occupy;
use std::cell::Cell;
use std::future::poll_fn;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

#[test]
fn numbers_are_their_own_names() {
    let lp = Loop::new().unwrap();
    lp.block_on(async {
        for (host, expected) in [
            ("127.0.0.1", "127.0.0.1:7"),
            ("::1", "[::1]:7"),
            ("fe80::1%1", "[fe80::1%1]:7"),
            // The full stops of other scripts are full stops.
            ("127。0．0｡1", "127.0.0.1:7"),
        ] {
            let found = dns::lookup(host, 7).await.unwrap();
            assert_eq!(found, [expected.parse::<SocketAddr>().unwrap()], "{host}");
        }
    });
}

#[test]
fn localhost_is_here() {
    let lp = Loop::new().unwrap();
    let found = lp.block_on(dns::lookup("localhost", 80)).unwrap();
    assert!(!found.is_empty());
    assert!(
        found
            .iter()
            .all(|address| address.ip().is_loopback() && address.port() == 80)
    );
}

#[test]
fn what_is_no_name_is_refused() {
    let lp = Loop::new().unwrap();
    let long = "a".repeat(256);
    for host in ["", "a\0b", &long, &"ü".repeat(400)] {
        let error = lp.block_on(dns::lookup(host, 0)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{host}");
        let error = dns::lookup_then(host, 0, |_, _| ()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{host}");
    }
    // Nobody has a name with a zone that there is not, and nobody is asked about it.
    let error = lp.block_on(dns::lookup("x%nowhere", 0)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
}

#[test]
fn addresses_have_names() {
    let lp = Loop::new().unwrap();
    let address: SocketAddr = "127.0.0.1:65000".parse().unwrap();
    let dns::Names { host, service, .. } = lp.block_on(dns::reverse(address)).unwrap();
    assert!(!host.is_empty());
    assert_eq!(service, "65000");
    let told = Rc::new(Cell::new(false));
    let tell = told.clone();
    dns::reverse_then(address, move |_, names| {
        assert_eq!(names.unwrap().service, "65000");
        tell.set(true);
    })
    .unwrap();
    lp.run(Mode::Default);
    assert!(told.get());
}

#[test]
fn lookups_are_cancelled_and_dropped_before_they_begin() {
    let lp = Loop::new().unwrap();
    let end = occupy(&lp);
    let told = Rc::new(Cell::new(false));
    let tell = told.clone();
    let cancelled = dns::lookup_then("127.0.0.1", 0, move |_, found| {
        assert!(found.is_err());
        tell.set(true);
    });
    let cancelled = cancelled.unwrap();
    assert!(cancelled.cancel());
    assert!(!cancelled.cancel(), "once is enough");
    lp.block_on(async {
        let mut lookup = pin!(dns::lookup("127.0.0.1", 0));
        poll_fn(|context| {
            assert!(lookup.as_mut().poll(context).is_pending());
            Poll::Ready(())
        })
        .await;
    });
    end.wait();
    assert!(!lp.run(Mode::Default));
    assert!(told.get());
}

#[test]
fn random_bytes_differ() {
    let lp = Loop::new().unwrap();
    let mut one = [0; 32];
    random(&mut one).unwrap();
    let two = lp.block_on(random_bytes(32)).unwrap();
    assert_ne!(one[..], two[..]);
    random(&mut []).unwrap();
    assert_eq!(lp.block_on(random_bytes(0)).unwrap(), []);
    let many = lp.block_on(random_bytes(100_000)).unwrap();
    assert!(many[99_000..].iter().any(|&byte| byte != 0));
}

#[test]
fn addresses_may_be_names() {
    let lp = Loop::new().unwrap();
    let listener = lp.block_on(TcpListener::bind("localhost:0")).unwrap();
    let address = listener.local_addr().unwrap();
    assert!(address.ip().is_loopback());
    lp.block_on(async {
        // The first of several addresses that accepts is taken.
        let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let gone = nobody;
        let nobody = gone.local_addr().unwrap();
        drop(gone);
        let stream = TcpStream::connect(&[nobody, address][..]).await.unwrap();
        assert_eq!(stream.peer_addr().unwrap(), address);
        let error = TcpStream::connect(nobody).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        let none: &[std::net::SocketAddr] = &[];
        for error in [
            TcpStream::connect(none).await.unwrap_err(),
            TcpStream::connect("localhost").await.unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
        }
        let socket = UdpSocket::bind("localhost:0").await.unwrap();
        let own = socket.local_addr().unwrap();
        let sent = socket.send_to(b"light", own.to_string()).await;
        assert_eq!(sent.unwrap(), 5);
        assert_eq!(socket.recv_from(&mut [0; 8]).await.unwrap(), (5, own));
    });

    let told = Rc::new(Cell::new(None));
    let tell = told.clone();
    let after = move |lp: &blacklight::LoopHandle, stream: std::io::Result<TcpStream>| {
        tell.set(Some(stream.unwrap().peer_addr().unwrap()));
        lp.stop();
    };
    TcpStream::connect_then(("localhost", address.port()), after).unwrap();
    lp.run(Mode::Default);
    assert_eq!(told.get().unwrap().port(), address.port());

    // Each address is tried before the callback hears of an error.
    listener.unref();
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = gone.local_addr().unwrap();
    drop(gone);
    let told = Rc::new(Cell::new(None));
    let tell = told.clone();
    let after = move |_: &blacklight::LoopHandle, stream: std::io::Result<TcpStream>| {
        tell.set(Some(stream.map(|stream| stream.peer_addr().unwrap())));
    };
    TcpStream::connect_then(vec![nobody, address], after).unwrap();
    lp.run(Mode::Default);
    assert_eq!(told.take().unwrap().unwrap(), address);
    let tell = told.clone();
    let after = move |_: &blacklight::LoopHandle, stream: std::io::Result<TcpStream>| {
        tell.set(Some(stream.map(|_| nobody)));
    };
    TcpStream::connect_then(vec![nobody, nobody], after).unwrap();
    lp.run(Mode::Default);
    let error = told.take().unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    for nowhere in ["localhost", ""] {
        let begun = TcpStream::connect_then(nowhere, |_, _| unreachable!());
        assert_eq!(begun.unwrap_err().kind(), ErrorKind::InvalidInput);
    }

    let socket = lp.block_on(UdpSocket::bind("localhost:0")).unwrap();
    let own = socket.local_addr().unwrap();
    let name = ("localhost", own.port());
    let sent = |_: &blacklight::LoopHandle, sent: std::io::Result<()>| sent.unwrap();
    socket.send_to_then("light", name, sent).unwrap();
    let received = lp.block_on(socket.recv_from(&mut [0; 8])).unwrap();
    assert_eq!(received, (5, own));
}

#[test]
fn a_callback_that_panics_ends_the_run_after_a_lookup_as_well() {
    let lp = Loop::new().unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    TcpStream::connect_then(("localhost", port), |_, _| panic!("as expected")).unwrap();
    let run = catch_unwind(AssertUnwindSafe(|| lp.run(Mode::Default)));
    assert!(run.is_err());
}
