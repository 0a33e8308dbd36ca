//! Unix sockets, pipes, and descriptors that go over them.

use blacklight::{Loop, Mode, Pipe, UnixListener, UnixStream, spawn};
use std::cell::RefCell;
use std::future::poll_fn;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::rc::Rc;
use std::task::Poll;

/// A path where nothing is, gone when this is dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let name = format!("blacklight-{}-{name}", std::process::id());
        Scratch(std::env::temp_dir().join(name))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn a_path_is_connected_to_and_removed_in_the_end() {
    let path = Scratch::new("path");
    let lp = Loop::new().unwrap();
    let listener = UnixListener::bind(&path.0).unwrap();
    assert_eq!(listener.local_addr().unwrap().as_pathname(), Some(&*path.0));
    lp.block_on(async {
        let client = UnixStream::connect(&path.0).await.unwrap();
        assert_eq!(client.peer_addr().unwrap().as_pathname(), Some(&*path.0));
        assert!(client.local_addr().unwrap().is_unnamed());
        let (server, _) = listener.accept().await.unwrap();
        client.write_all(b"by path").await.unwrap();
        let mut room = [0; 16];
        assert_eq!(server.read(&mut room).await.unwrap(), 7);
        let again = UnixListener::bind(&path.0).unwrap_err();
        assert_eq!(again.kind(), ErrorKind::AddrInUse);
    });
    assert!(path.0.exists());
    drop(listener);
    assert!(!path.0.exists());
    let gone = lp.block_on(UnixStream::connect(&path.0)).unwrap_err();
    assert_eq!(gone.kind(), ErrorKind::NotFound);
}

#[test]
fn an_abstract_name_is_no_file() {
    let lp = Loop::new().unwrap();
    let name = format!("blacklight-{}-abstract", std::process::id());
    let listener = UnixListener::bind_abstract(name.as_bytes()).unwrap();
    use std::os::linux::net::SocketAddrExt;
    let bound = listener.local_addr().unwrap();
    assert_eq!(bound.as_abstract_name(), Some(name.as_bytes()));
    lp.block_on(async {
        let client = UnixStream::connect_abstract(name.as_bytes());
        let client = client.await.unwrap();
        let (server, peer) = listener.accept().await.unwrap();
        assert!(peer.is_unnamed());
        drop(client);
        assert_eq!(server.read(&mut [0; 1]).await.unwrap(), 0);
    });
    drop(listener);
    let refused = lp.block_on(UnixStream::connect_abstract(name.as_bytes()));
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::ConnectionRefused);
}

#[test]
fn names_that_are_none_are_refused() {
    let lp = Loop::new().unwrap();
    for name in ["", "\0abstract"] {
        assert!(UnixListener::bind(name).is_err());
        assert!(lp.block_on(UnixStream::connect(name)).is_err());
        assert!(UnixStream::connect_then(name, |_, _| unreachable!()).is_err());
    }
    let long = "x".repeat(1000);
    assert!(UnixListener::bind(&long).is_err());
    assert!(lp.block_on(UnixStream::connect(&long)).is_err());
}

#[test]
fn callbacks_connect_accept_and_answer() {
    let path = Scratch::new("callbacks");
    let lp = Loop::new().unwrap();
    let listener = UnixListener::bind(&path.0).unwrap();
    listener
        .accept_start(|_, listener, stream| {
            let stream = stream.unwrap();
            stream
                .write_then("hello", |_, result| result.unwrap())
                .unwrap();
            let same = stream.clone();
            stream.shutdown_then(move |_, _| same.close()).unwrap();
            stream.detach();
            listener.close();
        })
        .unwrap();
    let heard = Rc::new(RefCell::new(Vec::new()));
    let hears = heard.clone();
    UnixStream::connect_then(&path.0, move |_, stream| {
        let stream = stream.unwrap();
        stream
            .read_start(move |_, stream, bytes| match bytes.unwrap() {
                [] => stream.close(),
                bytes => hears.borrow_mut().extend_from_slice(bytes),
            })
            .unwrap();
        stream.detach();
    })
    .unwrap();
    assert!(!lp.run(Mode::Default));
    assert_eq!(*heard.borrow(), b"hello");
}

#[test]
fn descriptors_are_passed_and_waited_for() {
    let lp = Loop::new().unwrap();
    lp.block_on(async {
        let (near, far) = UnixStream::pair().unwrap();
        let receiving = spawn(async move {
            let (mut room, mut fds, mut bytes) = ([0; 64], Vec::new(), 0);
            loop {
                match far.recv_with_fds(&mut room, &mut fds).await.unwrap() {
                    0 => return (bytes, fds),
                    count => bytes += count,
                }
            }
        });
        let mut readers = Vec::new();
        for _ in 0..3 {
            let (reader, writer) = io::pipe().unwrap();
            assert_eq!(near.send_with_fd(b"pen", writer).await.unwrap(), 3);
            near.write_all(b"...").await.unwrap();
            readers.push(reader);
        }
        let nothing = near.send_with_fd(b"", io::stdin()).await;
        assert_eq!(nothing.unwrap_err().kind(), ErrorKind::InvalidInput);
        drop(near);
        let (bytes, fds) = receiving.await.unwrap();
        assert_eq!((bytes, fds.len()), (18, 3));
        for (at, (fd, mut reader)) in fds.into_iter().zip(readers).enumerate() {
            let mut pen = std::fs::File::from(fd);
            pen.write_all(&[at as u8]).unwrap();
            drop(pen);
            // Only our copy was open, so that this is all.
            let mut read = Vec::new();
            reader.read_to_end(&mut read).unwrap();
            assert_eq!(read, [at as u8]);
        }
    });
}

#[test]
fn descriptors_wait_until_there_is_room() {
    let lp = Loop::new().unwrap();
    lp.block_on(async {
        let (near, far) = UnixStream::pair().unwrap();
        while near.try_write(&[0; 4096]).is_ok() {}
        let (reader, _writer) = io::pipe().unwrap();
        let sending = near.send_with_fd(b"late", reader.as_fd());
        let mut sending = std::pin::pin!(sending);
        poll_fn(|context| {
            assert!(sending.as_mut().poll(context).is_pending());
            Poll::Ready(())
        })
        .await;
        let draining = spawn(async move {
            let (mut room, mut fds) = (vec![0; 1 << 16], Vec::new());
            while fds.is_empty() {
                far.recv_with_fds(&mut room, &mut fds).await.unwrap();
            }
        });
        assert_eq!(sending.await.unwrap(), 4);
        draining.await.unwrap();
    });
}

#[test]
fn pipes_have_one_direction_and_no_sigpipe() {
    let lp = Loop::new().unwrap();
    let (reader, writer) = io::pipe().unwrap();
    let reader = Pipe::from_fd(reader.into()).unwrap();
    let writer = Pipe::from_fd(writer.into()).unwrap();
    lp.block_on(async {
        assert!(reader.write(b"x").await.is_err());
        assert!(writer.read(&mut [0]).await.is_err());
        let filling = spawn({
            let writer = writer.clone();
            async move { writer.write_all(&[1; 1 << 20]).await }
        });
        let (mut room, mut all) = (vec![0; 5000], 0);
        while all < 1 << 20 {
            all += reader.read(&mut room).await.unwrap();
        }
        filling.await.unwrap().unwrap();
        drop(reader);
        let error = writer.write_all(b"to nobody").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
    });
}

#[test]
fn a_client_that_has_left_is_accepted_with_what_it_has_said() {
    let lp = Loop::new().unwrap();
    let name = format!("blacklight-{}-left", std::process::id());
    let listener = UnixListener::bind_abstract(name.as_bytes()).unwrap();
    lp.block_on(async {
        let client = UnixStream::connect_abstract(name.as_bytes()).await;
        let client = client.unwrap();
        client.write_all(b"light").await.unwrap();
        drop(client);
        let (server, peer) = listener.accept().await.unwrap();
        assert!(peer.is_unnamed());
        let mut said = Vec::new();
        assert_eq!(server.read_to_end(&mut said).await.unwrap(), 5);
    });
}
