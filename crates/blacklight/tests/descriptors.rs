//! A process without descriptors. The limit is the whole process's, so this is alone.

use blacklight::{FsPoll, Loop, Mode, TcpListener, TcpStream, Timer, UdpSocket};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::cell::RefCell;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::rc::Rc;

const EMFILE: Option<i32> = Some(24);

/// Takes all descriptors that are left.
fn exhaust() -> Vec<File> {
    std::iter::from_fn(|| File::open("/dev/null").ok()).collect()
}

/// Whether the other end has closed the connection.
fn is_turned_away(mut client: &std::net::TcpStream) -> bool {
    match client.read(&mut [0; 1]) {
        Ok(count) => count == 0,
        Err(error) => error.kind() == ErrorKind::ConnectionReset,
    }
}

#[test]
fn connections_are_turned_away_and_the_listener_says_so_and_goes_on() {
    let before = getrlimit(Resource::Nofile);
    setrlimit(
        Resource::Nofile,
        Rlimit {
            current: Some(128),
            maximum: before.maximum,
        },
    )
    .unwrap();
    callbacks();
    futures();
    detached_after_closing();
}

/// Detaches what is closed already, and lets its loop go.
fn detached_after_closing() {
    let open = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let before = open();
    for kind in 0..5 {
        let lp = Loop::new().unwrap();
        let listener = lp.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        macro_rules! close_and_detach {
            ($handle:expr) => {{
                let handle = $handle;
                handle.close();
                handle.detach();
            }};
        }
        match kind {
            0 => close_and_detach!(Timer::new().unwrap()),
            1 => close_and_detach!(lp.block_on(TcpStream::connect(address)).unwrap()),
            2 => close_and_detach!(listener),
            3 => close_and_detach!(lp.block_on(UdpSocket::bind("127.0.0.1:0")).unwrap()),
            _ => close_and_detach!(FsPoll::new().unwrap()),
        }
        lp.run(Mode::NoWait);
    }
    assert_eq!(open(), before, "the loops are gone with their descriptors");
}

fn callbacks() {
    let lp = Loop::new().unwrap();
    let listener = lp.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    let accepted: Rc<RefCell<Vec<io::Result<TcpStream>>>> = Rc::default();
    let streams = accepted.clone();
    listener
        .accept_start(move |_, _, stream| streams.borrow_mut().push(stream))
        .unwrap();
    let clients = [(); 2].map(|()| std::net::TcpStream::connect(address).unwrap());
    let others = exhaust();
    for _ in 0..10 {
        lp.run(Mode::NoWait);
    }
    // Nobody is left waiting: the other end finds that it was turned away.
    assert!(clients.iter().all(is_turned_away));
    // The listener has been told, once for all that waited at the time.
    let told = std::mem::take(&mut *accepted.borrow_mut());
    assert!((1..=2).contains(&told.len()), "{told:?}");
    for result in told {
        assert_eq!(result.unwrap_err().raw_os_error(), EMFILE);
    }
    // Nothing new can be made, and says so.
    assert!(Loop::new().is_err());
    let error = lp.block_on(TcpStream::connect(address)).unwrap_err();
    assert_eq!(error.raw_os_error(), EMFILE);
    drop(others);
    let _client = std::net::TcpStream::connect(address).unwrap();
    while accepted.borrow().is_empty() {
        lp.run(Mode::Once);
    }
    assert!(accepted.borrow().iter().all(Result::is_ok));
}

fn futures() {
    let lp = Loop::new().unwrap();
    let listener = lp.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    let results: Rc<RefCell<Vec<io::Result<TcpStream>>>> = Rc::default();
    let told = results.clone();
    let _task = lp.spawn(async move {
        loop {
            let accepted = listener.accept().await;
            told.borrow_mut().push(accepted.map(|(stream, _)| stream));
        }
    });
    // The first time the task finds the connection, the second time the loop does, while the task
    // waits.
    for _ in 0..2 {
        let client = std::net::TcpStream::connect(address).unwrap();
        let others = exhaust();
        // Without a connection there is nothing to report.
        for _ in 0..10 {
            lp.run(Mode::NoWait);
        }
        let told = std::mem::take(&mut *results.borrow_mut());
        assert_eq!(told.len(), 1, "{told:?}");
        for result in told {
            assert_eq!(result.unwrap_err().raw_os_error(), EMFILE);
        }
        assert!(is_turned_away(&client));
        drop(others);
    }
    let _client = std::net::TcpStream::connect(address).unwrap();
    while results.borrow().is_empty() {
        lp.run(Mode::Once);
    }
    assert!(results.borrow().iter().all(Result::is_ok));
}
