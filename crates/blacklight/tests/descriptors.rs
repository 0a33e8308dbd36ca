//! A process without descriptors. The limit is the whole process's, so this is alone.

use blacklight::{Loop, Mode, TcpListener, TcpStream};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::cell::RefCell;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::rc::Rc;

#[test]
fn connections_are_turned_away_and_the_listener_goes_on() {
    let before = getrlimit(Resource::Nofile);
    setrlimit(
        Resource::Nofile,
        Rlimit {
            current: Some(128),
            maximum: before.maximum,
        },
    )
    .unwrap();
    let lp = Loop::new().unwrap();
    let listener = TcpListener::bind(&lp, "127.0.0.1:0".parse().unwrap()).unwrap();
    let address = listener.local_addr().unwrap();
    let accepted: Rc<RefCell<Vec<TcpStream>>> = Rc::default();
    let streams = accepted.clone();
    listener.accept_start(move |_, _, stream| streams.borrow_mut().push(stream.unwrap()));
    let mut client = std::net::TcpStream::connect(address).unwrap();
    let mut others = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        others.push(file);
    }
    for _ in 0..10 {
        lp.run(Mode::NoWait);
    }
    // Nobody is left waiting: the other end finds that it was turned away.
    assert!(accepted.borrow().is_empty());
    let turned_away = match client.read(&mut [0; 1]) {
        Ok(count) => count == 0,
        Err(error) => error.kind() == ErrorKind::ConnectionReset,
    };
    assert!(turned_away);
    // Nothing new can be made, and says so.
    assert!(Loop::new().is_err());
    let error = lp.block_on(TcpStream::connect(&lp, address)).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(24), "EMFILE");
    drop(others);
    let _client = std::net::TcpStream::connect(address).unwrap();
    while accepted.borrow().is_empty() {
        lp.run(Mode::Once);
    }
}
