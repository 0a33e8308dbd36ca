//! Names of hosts, and random bytes. Nothing here needs a network.

#[path = "support/pool.rs"]
mod pool;

use blacklight::{Loop, Mode, dns, random, random_bytes};
use pool::occupy;
use std::cell::Cell;
use std::future::poll_fn;
use std::io::ErrorKind;
use std::net::SocketAddr;
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
        let error = dns::lookup_with(&lp, host, 0, |_, _| ()).unwrap_err();
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
    let (host, service) = lp.block_on(dns::reverse(address)).unwrap();
    assert!(!host.is_empty());
    assert_eq!(service, "65000");
    let told = Rc::new(Cell::new(false));
    let tell = told.clone();
    dns::reverse_with(&lp, address, move |_, names| {
        assert_eq!(names.unwrap().1, "65000");
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
    let cancelled = dns::lookup_with(&lp, "127.0.0.1", 0, move |_, found| {
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
