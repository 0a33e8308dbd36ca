//! What happens to futures when a handle is closed, or gets a callback for what they wait for.

use blacklight::{
    AsyncFd, Error, FsEvent, FsPoll, Idle, Loop, Readiness, Signal, SignalKind, TcpListener,
    TcpStream, Timer, UdpSocket, UnixStream, spawn, yield_now,
};
use std::cell::Cell;
use std::future::poll_fn;
use std::io;
use std::os::fd::AsFd;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

fn assert_cancelled(error: io::Error) {
    assert_eq!(error.raw_os_error(), Some(libc::ECANCELED), "{error}");
}

/// Polls a future once, which does not end it, and goes on with it after `act`.
async fn while_it_waits<T>(future: impl Future<Output = T>, act: impl FnOnce()) -> T {
    let mut future = pin!(future);
    let mut act = Some(act);
    poll_fn(move |context| {
        let polled = future.as_mut().poll(context);
        if let Some(act) = act.take() {
            assert!(polled.is_pending(), "it has to wait");
            act();
            return Poll::Pending;
        }
        polled
    })
    .await
}

async fn full() -> (UnixStream, UnixStream) {
    let (near, far) = UnixStream::pair().unwrap();
    while near.try_write(&[0; 4096]).is_ok() {}
    (near, far)
}

#[test]
fn what_waits_when_a_handle_is_closed_is_cancelled() {
    let lp = Loop::new().unwrap();
    lp.block_on(async {
        let (near, _far) = UnixStream::pair().unwrap();
        let mut buf = [0; 8];
        let read = while_it_waits(near.read(&mut buf), || near.close()).await;
        assert_cancelled(read.unwrap_err());
        let (near, _far) = full().await;
        let written = while_it_waits(near.write(b"x"), || near.close()).await;
        assert_cancelled(written.unwrap_err());
        let (near, _far) = full().await;
        near.write_then("x", |_, written| assert_cancelled(written.unwrap_err()))
            .unwrap();
        let shut = while_it_waits(near.shutdown(), || near.close()).await;
        assert_cancelled(shut.unwrap_err());
        // What is tried later is, too.
        assert_cancelled(near.read(&mut [0; 8]).await.unwrap_err());
        assert_cancelled(near.write(b"x").await.unwrap_err());
        assert_cancelled(near.shutdown().await.unwrap_err());
        assert_cancelled(near.try_read(&mut [0; 8]).unwrap_err());
        assert_cancelled(near.try_write(b"x").unwrap_err());
        assert_cancelled(near.write_then("x", |_, _| ()).unwrap_err());
        assert_cancelled(near.read_start(|_, _, _| ()).unwrap_err());

        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let accepted = while_it_waits(listener.accept(), || listener.close()).await;
        assert_cancelled(accepted.unwrap_err());
        assert_cancelled(listener.accept().await.unwrap_err());

        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let mut buf = [0; 8];
        let received = while_it_waits(socket.recv_from(&mut buf), || socket.close()).await;
        assert_cancelled(received.unwrap_err());
        assert_cancelled(socket.send_to(b"x", "127.0.0.1:9").await.unwrap_err());

        let (reader, _writer) = io::pipe().unwrap();
        let reader = AsyncFd::new(reader).unwrap();
        let ready = while_it_waits(reader.readable(), || reader.stop()).await;
        assert_cancelled(ready.unwrap_err());
        let ready = while_it_waits(reader.readable(), || reader.close()).await;
        assert_cancelled(ready.unwrap_err());
        assert_cancelled(reader.readable().await.unwrap_err());
    });
}

#[test]
fn what_is_tried_after_closing_is_cancelled() {
    let lp = Loop::new().unwrap();
    let timer = Timer::new().unwrap();
    timer.close();
    assert_cancelled(timer.start(Duration::ZERO, |_, _| ()).unwrap_err());
    assert_cancelled(
        timer
            .start_repeating(Duration::ZERO, |_, _| ())
            .unwrap_err(),
    );
    let idle = Idle::new().unwrap();
    idle.close();
    assert_cancelled(idle.start(|_, _| ()).unwrap_err());
    let signal = Signal::new().unwrap();
    signal.close();
    let refused = signal.start(SignalKind::SIGHUP, |_, _, _| ());
    assert_cancelled(refused.unwrap_err());
    let change = FsEvent::new().unwrap();
    change.close();
    assert_cancelled(change.start("/", |_, _, _| ()).unwrap_err());
    let poll = FsPoll::new().unwrap();
    poll.close();
    let refused = poll.start("/", Duration::ZERO, |_, _, _| ());
    assert_cancelled(refused.unwrap_err());
    let (reader, _writer) = io::pipe().unwrap();
    let reader = AsyncFd::new(reader).unwrap();
    reader.close();
    let refused = reader.start(Readiness::READABLE, |_, _| ());
    assert_cancelled(refused.unwrap_err());

    let socket = lp.block_on(UdpSocket::bind("127.0.0.1:0")).unwrap();
    let own = socket.local_addr().unwrap();
    socket.close();
    assert_cancelled(socket.send_then("x", |_, _| ()).unwrap_err());
    assert_cancelled(socket.send_to_then("x", own, |_, _| ()).unwrap_err());
    assert_cancelled(socket.recv_start(|_, _, _| ()).unwrap_err());
    assert_cancelled(socket.local_addr().unwrap_err());
    assert_cancelled(socket.peer_addr().unwrap_err());

    let listener = lp.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    let stream = lp.block_on(TcpStream::connect(address)).unwrap();
    stream.close();
    assert_cancelled(stream.local_addr().unwrap_err());
    assert_cancelled(stream.peer_addr().unwrap_err());
    assert_cancelled(stream.set_nodelay(true).unwrap_err());
    assert_cancelled(stream.set_keepalive(None).unwrap_err());
    assert_cancelled(stream.reset_on_close().unwrap_err());
    listener.close();
    assert_cancelled(listener.local_addr().unwrap_err());
    let kept = Rc::new(());
    let its = kept.clone();
    let refused = listener.accept_start(move |_, _, _| drop(its.clone()));
    assert_cancelled(refused.unwrap_err());
    assert_eq!(Rc::strong_count(&kept), 1, "the callback is dropped");
}

fn assert_refused(error: io::Error) {
    assert_eq!(Error::of(&error), Some(Error::HasCallback), "{error}");
    assert_eq!(error.kind(), io::ErrorKind::ResourceBusy);
}

#[test]
fn a_callback_and_a_future_do_not_share() {
    let lp = Loop::new().unwrap();
    lp.block_on(async {
        let (near, far) = UnixStream::pair().unwrap();
        let told = Rc::new(Cell::new(0));
        let tell = told.clone();
        let mut buf = [0; 8];
        let read = while_it_waits(near.read(&mut buf), || {
            let count = move |_: &_, _: &_, bytes: io::Result<&[u8]>| {
                tell.set(tell.get() + bytes.unwrap().len());
            };
            near.read_start(count).unwrap();
        });
        assert_refused(read.await.unwrap_err());
        far.write_all(b"for the callback").await.unwrap();
        assert_refused(near.read(&mut [0; 8]).await.unwrap_err());
        while told.get() < 16 {
            blacklight::sleep(Default::default()).await;
        }
        near.read_stop();
        far.write_all(b"x").await.unwrap();
        assert_eq!(near.read(&mut [0; 8]).await.unwrap(), 1);

        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let accepted = while_it_waits(listener.accept(), || {
            listener.accept_start(|_, _, _| ()).unwrap();
        });
        assert_refused(accepted.await.unwrap_err());
        listener.accept_stop();
        let address = listener.local_addr().unwrap();
        let client = spawn(TcpStream::connect(address));
        drop(listener.accept().await.unwrap());
        drop(client.await.unwrap().unwrap());

        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let mut buf = [0; 8];
        let received = while_it_waits(socket.recv_from(&mut buf), || {
            socket.recv_start(|_, _, _| ()).unwrap();
        });
        assert_refused(received.await.unwrap_err());
        socket.recv_stop();
        let own = socket.local_addr().unwrap();
        socket.send_to(b"x", own).await.unwrap();
        socket.recv_from(&mut [0; 8]).await.unwrap();

        let (reader, _writer) = io::pipe().unwrap();
        let reader = AsyncFd::new(reader).unwrap();
        let start = || reader.start(Readiness::READABLE, |_, _| ()).unwrap();
        // This future watched first, and its watching was replaced.
        assert_cancelled(while_it_waits(reader.readable(), start).await.unwrap_err());
        assert_refused(reader.readable().await.unwrap_err());
    });
}

#[test]
fn many_futures_wait_for_one_descriptor() {
    let lp = Loop::new().unwrap();
    lp.block_on(async {
        let (near, far) = std::os::unix::net::UnixStream::pair().unwrap();
        far.set_nonblocking(true).unwrap();
        let near = Rc::new(AsyncFd::new(near).unwrap());
        let its = near.clone();
        let reading = spawn(async move { its.readable().await });
        let its = near.clone();
        let also_reading = spawn(async move { its.readable().await });
        near.writable().await.unwrap();
        assert!(!reading.is_finished());
        // One that goes takes nobody with it.
        also_reading.abort();
        io::Write::write_all(&mut &far, b"x").unwrap();
        reading.await.unwrap().unwrap();
        assert!(!near.is_active(), "nobody waits");
        let read = |mut near: &std::os::unix::net::UnixStream| io::Read::read(&mut near, &mut [0]);
        let count = near.async_io(Readiness::READABLE, read).await.unwrap();
        assert_eq!(count, 1);
    });
}

/// Spawns a task that ends with all others of its kind.
fn together<T: 'static>(
    make: impl AsyncFn() -> io::Result<T> + Clone + 'static,
) -> [Waiting<T>; 3] {
    [(); 3].map(|()| {
        let make = make.clone();
        spawn(async move { make().await })
    })
}

type Waiting<T> = blacklight::JoinHandle<io::Result<T>>;

async fn all<T>(waiting: [Waiting<T>; 3]) -> Vec<T> {
    let mut done = Vec::new();
    for waiting in waiting {
        done.push(waiting.await.unwrap().unwrap());
    }
    done
}

#[test]
fn many_tasks_wait_for_one_object() {
    let lp = Loop::new().unwrap();
    lp.block_on(async {
        // Readers.
        let (near, far) = UnixStream::pair().unwrap();
        let its = near.clone();
        let reading = together(async move || its.read(&mut [0; 1]).await);
        yield_now().await;
        assert!(reading.iter().all(|reading| !reading.is_finished()));
        far.write_all(b"abc").await.unwrap();
        assert_eq!(all(reading).await, [1, 1, 1]);

        // One that goes takes nobody with it, in whatever place it waits.
        for place in 0..3 {
            let its = near.clone();
            let mut reading = together(async move || its.read(&mut [0; 1]).await).map(Some);
            yield_now().await;
            reading[place].take().unwrap().abort();
            yield_now().await;
            far.write_all(b"ab").await.unwrap();
            for reading in reading.into_iter().flatten() {
                assert_eq!(reading.await.unwrap().unwrap(), 1);
            }
        }

        // Acceptors.
        let listener = Rc::new(TcpListener::bind("127.0.0.1:0").await.unwrap());
        let address = listener.local_addr().unwrap();
        let its = listener.clone();
        let accepting = together(async move || its.accept().await);
        yield_now().await;
        for _ in 0..3 {
            drop(TcpStream::connect(address).await.unwrap());
        }
        all(accepting).await;

        // Receivers.
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let own = socket.local_addr().unwrap();
        let its = socket.clone();
        let receiving = together(async move || its.recv(&mut [0; 8]).await);
        yield_now().await;
        for _ in 0..3 {
            socket.send_to(b"x", own).await.unwrap();
        }
        assert_eq!(all(receiving).await, [1, 1, 1]);

        // All that wait are told when it is closed.
        let reading = together(async move || near.read(&mut [0; 1]).await);
        let its = far.clone();
        let reading_far = together(async move || its.read(&mut [0; 1]).await);
        yield_now().await;
        far.close();
        for reading in reading_far {
            assert_cancelled(reading.await.unwrap().unwrap_err());
        }
        assert_eq!(all(reading).await, [0, 0, 0]);
    });
}

#[test]
fn what_is_written_whole_arrives_whole() {
    const LEN: usize = 1 << 20;
    let lp = Loop::new().unwrap();
    lp.block_on(async {
        let (near, far) = UnixStream::pair().unwrap();
        let byte = Rc::new(Cell::new(b'a'));
        let its = near.clone();
        let writing = together(async move || {
            let own = byte.replace(byte.get() + 1);
            its.write_all(&vec![own; LEN]).await
        });
        let its = near.clone();
        let dot = spawn(async move { its.write(b".").await });
        let its = near.clone();
        let end = spawn(async move { its.shutdown().await });
        yield_now().await;
        // The first has written a part, which the peer has not read.
        assert!(writing.iter().all(|writing| !writing.is_finished()));
        let error = near.try_write(b"x").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        let error = near.write_then("x", |_, _| ()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);

        let mut first = vec![0; LEN];
        far.read_exact(&mut first).await.unwrap();
        assert!(first.iter().all(|byte| *byte == b'a'));
        let mut rest = Vec::new();
        far.read_to_end(&mut rest).await.unwrap();
        let mut parts: Vec<_> = rest.chunk_by(|one, other| one == other).collect();
        // They come in any order; those that came after the end have failed.
        parts.retain(|part| *part != b".");
        assert!(parts.iter().all(|part| part.len() == LEN), "whole writes");
        let mut written = 0;
        for writing in writing {
            written += usize::from(writing.await.unwrap().is_ok());
        }
        assert_eq!(written, 1 + parts.len());
        end.await.unwrap().unwrap();
        let _ = dot.await.unwrap();
    });
}

#[test]
fn a_write_that_is_dropped_halfway_lets_others_write() {
    let lp = Loop::new().unwrap();
    lp.block_on(async {
        let (near, far) = UnixStream::pair().unwrap();
        let its = near.clone();
        let halfway = spawn(async move { its.write_all(&vec![b'a'; 1 << 20]).await });
        let its = near.clone();
        let waiting = spawn(async move { its.write_all(b"b").await });
        yield_now().await;
        assert!(!halfway.is_finished() && !waiting.is_finished());
        halfway.abort();
        let mut bytes = Vec::new();
        while bytes.last() != Some(&b'b') {
            let mut room = [0; 4096];
            let count = far.read(&mut room).await.unwrap();
            bytes.extend_from_slice(&room[..count]);
        }
        waiting.await.unwrap().unwrap();
        assert!(bytes.len() < 1 << 20, "a part of it was written");
        near.write_all(b"c").await.unwrap();
    });
}

#[test]
fn a_descriptor_that_was_borrowed_outlives_closing() {
    let lp = Loop::new().unwrap();
    lp.block_on(async {
        let (near, far) = UnixStream::pair().unwrap();
        near.as_fd();
        near.close();
        yield_now().await;
        let error = far.try_read(&mut [0; 8]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        drop(near);
        assert_eq!(far.read(&mut [0; 8]).await.unwrap(), 0);
    });
}
