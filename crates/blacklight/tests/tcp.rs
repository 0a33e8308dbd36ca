//! TCP streams on the loopback interface, in both styles.

use blacklight::{BindOptions, KeepAlive, Loop, Mode, TcpListener, TcpStream, spawn, yield_now};
use futures_io::{AsyncRead, AsyncWrite};
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

fn any_port() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

fn listen() -> (TcpListener, SocketAddr) {
    let listener =
        TcpListener::from_std(std::net::TcpListener::bind("127.0.0.1:0").unwrap()).unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// Two ends of one connection.
async fn connected() -> (TcpStream, TcpStream) {
    let (listener, address) = listen();
    let client = TcpStream::connect(address).await.unwrap();
    let (server, from) = listener.accept().await.unwrap();
    assert_eq!(from, client.local_addr().unwrap());
    assert_eq!(server.local_addr().unwrap(), client.peer_addr().unwrap());
    (client, server)
}

async fn read_to_end(stream: &TcpStream) -> io::Result<Vec<u8>> {
    let (mut all, mut room) = (Vec::new(), [0; 4096]);
    loop {
        match stream.read(&mut room).await? {
            0 => return Ok(all),
            count => all.extend_from_slice(&room[..count]),
        }
    }
}

/// More than any socket's buffers hold.
fn much() -> Vec<u8> {
    (0..8 << 20)
        .map(|at: u32| (at.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect()
}

#[test]
fn a_lot_goes_through_between_tasks_byte_for_byte() {
    let lp = Loop::new().unwrap();
    lp.block_on(async {
        let (client, server) = connected().await;
        let writer = spawn(async move {
            client.write_all(&much()).await?;
            client.shutdown().await?;
            read_to_end(&client).await
        });
        assert!(read_to_end(&server).await.unwrap() == much());
        server.write_all(b"thanks").await.unwrap();
        drop(server);
        assert_eq!(writer.await.unwrap().unwrap(), b"thanks");
    });
    assert!(!lp.run(Mode::Default));
}

#[test]
fn a_lot_goes_through_between_callbacks_in_order() {
    let lp = Loop::new().unwrap();
    let (listener, address) = listen();
    let received = Rc::new(RefCell::new(Vec::new()));
    let all = received.clone();
    listener
        .accept_start(move |_, listener, stream| {
            let stream = stream.unwrap();
            let all = all.clone();
            stream
                .read_start(move |_, stream, bytes| match bytes.unwrap() {
                    [] => stream.close(),
                    bytes => all.borrow_mut().extend_from_slice(bytes),
                })
                .unwrap();
            stream.detach();
            listener.close();
        })
        .unwrap();
    let written = Rc::new(Cell::new(0));
    let done = written.clone();
    TcpStream::connect_then(address, move |_, stream| {
        let stream = stream.unwrap();
        for part in much().chunks(1 << 20) {
            let (done, at) = (done.clone(), done.get());
            assert_eq!(at, 0, "no callback from within the call");
            stream
                .write_then(part, move |_, result| {
                    result.unwrap();
                    done.set(done.get() + 1);
                })
                .unwrap();
        }
        assert!(stream.write_queue_size() > 0);
        assert_eq!(
            stream.try_write(b"x").unwrap_err().kind(),
            ErrorKind::WouldBlock
        );
        let same = stream.clone();
        stream
            .shutdown_then(move |_, result| {
                result.unwrap();
                same.close();
            })
            .unwrap();
        stream.detach();
    })
    .unwrap();
    assert!(!lp.run(Mode::Default), "all is closed");
    assert_eq!(written.get(), 8);
    assert!(*received.borrow() == much());
}

#[test]
fn a_refused_connection_is_an_error_in_both_styles() {
    let lp = Loop::new().unwrap();
    // Nobody listens there, nor is ever given that port.
    let address = SocketAddr::from(([127, 0, 0, 1], 1));
    let error = lp.block_on(TcpStream::connect(address)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    let told = Rc::new(Cell::new(false));
    let tells = told.clone();
    TcpStream::connect_then(address, move |_, stream| {
        assert_eq!(stream.unwrap_err().kind(), ErrorKind::ConnectionRefused);
        tells.set(true);
    })
    .unwrap();
    assert!(!told.get());
    assert!(!lp.run(Mode::Default));
    assert!(told.get());
}

#[test]
fn an_address_in_use_cannot_be_listened_at() {
    let lp = Loop::new().unwrap();
    let (_listener, address) = listen();
    let error = lp.block_on(TcpListener::bind(address)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AddrInUse);
}

#[test]
fn a_reset_is_an_error_for_reader_and_writer() {
    let lp = Loop::new().unwrap();
    lp.block_on(async {
        let (client, server) = connected().await;
        let reader = spawn(async move {
            let error = server.read(&mut [0; 16]).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ConnectionReset);
            let error = server.write_all(b"x").await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::BrokenPipe);
            let error = server.read(&mut [0; 16]).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotConnected);
            server.shutdown().await.expect("there is nothing to end");
        });
        client.reset_on_close().unwrap();
        drop(client);
        reader.await.unwrap();
    });
}

#[test]
fn callbacks_hear_of_a_reset_and_of_the_end() {
    let lp = Loop::new().unwrap();
    for reset in [true, false] {
        let end = Rc::new(RefCell::new(None));
        let its_end = end.clone();
        let (client, server) = lp.block_on(connected());
        server
            .read_start(move |_, stream, bytes| {
                assert!(!stream.is_active(), "it does not read any more");
                *its_end.borrow_mut() = Some(bytes.map(<[u8]>::len).map_err(|error| error.kind()));
            })
            .unwrap();
        if reset {
            client.reset_on_close().unwrap();
        }
        drop(client);
        assert!(!lp.run(Mode::Default));
        let expected = if reset {
            Err(ErrorKind::ConnectionReset)
        } else {
            Ok(0)
        };
        assert_eq!(*end.borrow(), Some(expected));
    }
}

#[test]
fn a_dropped_read_loses_no_byte() {
    let lp = Loop::new().unwrap();
    lp.block_on(async {
        let (client, server) = connected().await;
        // A read that waits, and is dropped while the byte is on its way.
        let mut room = [0; 16];
        {
            let mut reading = Box::pin(server.read(&mut room));
            poll_fn(|context| {
                assert!(reading.as_mut().poll(context).is_pending());
                Poll::Ready(())
            })
            .await;
            client.write_all(b"kept").await.unwrap();
        }
        assert_eq!(
            room, [0; 16],
            "nobody wrote into the room of a dropped read"
        );
        // A turn of the loop, in which it finds that nobody wants it.
        blacklight::sleep(Duration::from_millis(1)).await;
        let count = server.read(&mut room).await.unwrap();
        assert_eq!(&room[..count], b"kept");
    });
}

#[test]
fn a_stream_that_nobody_waits_for_lets_the_loop_end() {
    let lp = Loop::new().unwrap();
    let (client, server) = lp.block_on(connected());
    let reader = server.clone();
    drop(lp.spawn(async move {
        assert_eq!(reader.read(&mut [0; 16]).await.unwrap(), 1);
    }));
    lp.run(Mode::NoWait);
    assert!(lp.is_alive(), "a task waits");
    assert_eq!(client.try_write(b"x").unwrap(), 1);
    assert!(!lp.run(Mode::Default));
    // A callback takes over where a task has waited, and does keep the loop.
    assert_eq!(client.try_write(b"y").unwrap(), 1);
    server
        .read_start(|_, server, bytes| {
            assert_eq!(bytes.unwrap(), b"y");
            server.read_stop();
        })
        .unwrap();
    assert!(lp.is_alive());
    assert!(!lp.run(Mode::Default));
    // And a task takes over from a callback.
    assert_eq!(client.try_write(b"z").unwrap(), 1);
    assert_eq!(lp.block_on(server.read(&mut [0; 16])).unwrap(), 1);
}

#[test]
fn dropping_a_stream_cancels_its_writes() {
    let lp = Loop::new().unwrap();
    let (client, _server) = lp.block_on(connected());
    let results = Rc::new(RefCell::new(Vec::new()));
    for _ in 0..3 {
        let results = results.clone();
        client
            .write_then(much(), move |_, result| {
                results
                    .borrow_mut()
                    .push(result.unwrap_err().raw_os_error());
            })
            .unwrap();
    }
    drop(client);
    assert!(results.borrow().is_empty());
    assert!(!lp.run(Mode::Default));
    // 125 is ECANCELED.
    assert_eq!(*results.borrow(), [Some(125); 3]);
}

#[test]
fn closing_wakes_who_waits_on_a_clone() {
    let lp = Loop::new().unwrap();
    lp.block_on(async {
        let (client, _server) = connected().await;
        let same = client.clone();
        let reader = spawn(async move { same.read(&mut [0; 16]).await });
        let same = client.clone();
        let writer = spawn(async move { same.write_all(&much()).await });
        blacklight::sleep(Duration::from_millis(1)).await;
        client.close();
        client.close();
        assert!(reader.await.unwrap().is_err());
        assert!(writer.await.unwrap().is_err());
        assert!(client.read_start(|_, _, _| ()).is_err());
        assert!(client.try_write(b"x").is_err());
    });
}

#[test]
fn a_cancelled_connect_leaves_nothing_behind() {
    let lp = Loop::new().unwrap();
    let (_listener, address) = listen();
    lp.block_on(async {
        let connecting = spawn(TcpStream::connect(address));
        let mut turns = 0;
        poll_fn(|context| {
            turns += 1;
            context.waker().wake_by_ref();
            if turns == 3 {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
        connecting.abort();
        assert!(connecting.await.unwrap_err().is_cancelled());
    });
    drop(_listener);
    assert!(!lp.run(Mode::Default));
}

#[test]
fn connections_that_came_before_anybody_asked_are_not_lost() {
    let lp = Loop::new().unwrap();
    let (listener, address) = listen();
    let clients: Vec<_> = (0..3)
        .map(|_| std::net::TcpStream::connect(address).unwrap())
        .collect();
    // The loop has seen them, and nobody has taken them.
    for _ in 0..3 {
        lp.run(Mode::NoWait);
    }
    let accepted = Rc::new(RefCell::new(Vec::new()));
    let streams = accepted.clone();
    listener
        .accept_start(move |_, listener, stream| {
            streams.borrow_mut().push(stream.unwrap());
            if streams.borrow().len() == 2 {
                listener.accept_stop();
            }
        })
        .unwrap();
    while accepted.borrow().len() < 2 {
        lp.run(Mode::Once);
    }
    // And the third one goes to a task.
    let (third, from) = lp.block_on(listener.accept()).unwrap();
    assert!(
        clients
            .iter()
            .any(|client| client.local_addr().unwrap() == from)
    );
    assert_eq!(third.peer_addr().unwrap(), from);
}

#[test]
fn one_task_may_read_while_another_writes() {
    let lp = Loop::new().unwrap();
    lp.block_on(async {
        let (client, server) = connected().await;
        // An echo whose reader is never allowed to run ahead by more than the buffers hold.
        let echo = spawn(async move {
            let mut room = vec![0; 1 << 16];
            loop {
                match server.read(&mut room).await.unwrap() {
                    0 => return server.shutdown().await.unwrap(),
                    count => server.write_all(&room[..count]).await.unwrap(),
                }
            }
        });
        let (mut reader, mut writer) = client.into_split();
        let writing = spawn(async move {
            let bytes = much();
            let mut left = &bytes[..];
            while !left.is_empty() {
                let (front, back) = left.split_at(left.len() / 2);
                let slices = [IoSlice::new(front), IoSlice::new(back)];
                let count =
                    poll_fn(|context| Pin::new(&mut writer).poll_write_vectored(context, &slices))
                        .await
                        .unwrap();
                left = &left[count..];
            }
            poll_fn(|context| Pin::new(&mut writer).poll_flush(context))
                .await
                .unwrap();
            poll_fn(|context| Pin::new(&mut writer).poll_close(context))
                .await
                .unwrap();
        });
        let (mut all, mut room) = (Vec::new(), vec![0; 1 << 15]);
        loop {
            let read = poll_fn(|context| Pin::new(&mut reader).poll_read(context, &mut room));
            match read.await.unwrap() {
                0 => break,
                count => all.extend_from_slice(&room[..count]),
            }
        }
        assert!(all == much());
        writing.await.unwrap();
        echo.await.unwrap();
    });
}

#[test]
fn slices_arrive_in_order_however_many_and_long_they_are() {
    let lp = Loop::new().unwrap();
    lp.block_on(async {
        let (mut client, server) = connected().await;
        let bytes: Vec<u8> = (0..4096_u32).map(|byte| byte as u8).collect();
        for pieces in [
            vec![1, 0, 2],
            vec![500, 12],
            vec![500, 13],
            vec![0, 4000, 96],
        ] {
            let mut left = &bytes[..];
            let mut slices = Vec::new();
            for piece in pieces {
                let (front, back) = left.split_at(piece);
                slices.push(IoSlice::new(front));
                left = back;
            }
            let total = slices.iter().map(|slice| slice.len()).sum::<usize>();
            let written =
                poll_fn(|context| Pin::new(&mut client).poll_write_vectored(context, &slices));
            assert_eq!(written.await.unwrap(), total);
            let (mut all, mut room) = (Vec::new(), vec![0; total]);
            while all.len() < total {
                let count = server.read(&mut room).await.unwrap();
                all.extend_from_slice(&room[..count]);
            }
            assert!(all == bytes[..total], "{total} bytes");
        }
    });
}

#[test]
fn a_task_that_always_finds_something_gives_way() {
    let lp = Loop::new().unwrap();
    lp.block_on(async {
        let (client, server) = connected().await;
        client.write_all(&[7; 100_000]).await.unwrap();
        let others = Rc::new(Cell::new(0));
        let counted = others.clone();
        let other = spawn(async move {
            loop {
                counted.set(counted.get() + 1);
                blacklight::sleep(Duration::ZERO).await;
            }
        });
        // Byte by byte there is always more to read.
        let mut byte = [0];
        for _ in 0..100_000 {
            assert_eq!(server.read(&mut byte).await.unwrap(), 1);
        }
        assert!(others.get() > 1);
        other.abort();
    });
}

#[test]
fn options_and_descriptors_are_those_of_the_socket() {
    let lp = Loop::new().unwrap();
    lp.block_on(async {
        let (client, server) = connected().await;
        client.set_nodelay(true).unwrap();
        let keepalive = KeepAlive::new(Duration::from_secs(60))
            .interval(Duration::from_secs(10))
            .retries(3);
        client.set_keepalive(Some(keepalive)).unwrap();
        let std = std::net::TcpStream::from(client.as_fd().try_clone_to_owned().unwrap());
        assert!(std.nodelay().unwrap());
        assert_eq!(std.local_addr().unwrap(), client.local_addr().unwrap());
        client.set_nodelay(false).unwrap();
        assert!(!std.nodelay().unwrap());
        // The descriptor stays open for who has borrowed it, also when the loop is gone.
        drop(std);
        drop(server);
    });
    let (client, server) = lp.block_on(connected());
    let fd = client.as_fd();
    drop(lp);
    let mut std = std::net::TcpStream::from(fd.try_clone_to_owned().unwrap());
    std.set_nonblocking(false).unwrap();
    assert_eq!(server.try_write(b"late").unwrap(), 4);
    let mut room = [0; 4];
    std.read_exact(&mut room).unwrap();
    assert_eq!(&room, b"late");
    let error = server.read_start(|_, _, _| ());
    drop(error);
}

#[test]
fn foreign_sockets_are_taken_over() {
    let lp = Loop::new().unwrap();
    let listener = std::net::TcpListener::bind(any_port()).unwrap();
    let address = listener.local_addr().unwrap();
    let listener = TcpListener::from_std(listener).unwrap();
    let mut client = std::net::TcpStream::connect(address).unwrap();
    client.write_all(b"from outside").unwrap();
    lp.block_on(async {
        let (server, _) = listener.accept().await.unwrap();
        let client = TcpStream::from_std(client).unwrap();
        client.shutdown().await.unwrap();
        client.shutdown().await.unwrap();
        assert_eq!(read_to_end(&server).await.unwrap(), b"from outside");
        assert!(client.write_all(b"x").await.is_err());
    });
    // What is not a socket cannot listen.
    let (pipe, _pen) = io::pipe().unwrap();
    assert!(TcpListener::from_fd(pipe.into()).is_err());
}

#[test]
fn listeners_keep_the_loop_running_unless_they_are_unreferenced() {
    let lp = Loop::new().unwrap();
    let (listener, _) = listen();
    assert!(lp.is_alive() && listener.is_active());
    listener.unref();
    assert!(!lp.run(Mode::Default));
    listener.r#ref();
    assert!(lp.is_alive() && listener.has_ref());
}

#[test]
fn nothing_waits_for_a_loop_that_is_gone() {
    let lp = Loop::new().unwrap();
    let (client, server) = lp.block_on(connected());
    let (listener, _) = listen();
    drop(lp);
    let other = Loop::new().unwrap();
    other.block_on(async {
        assert!(client.read(&mut [0; 16]).await.is_err());
        assert!(server.write_all(&much()).await.is_err());
        assert!(server.shutdown().await.is_err());
        assert!(listener.accept().await.is_err());
    });
}

#[test]
fn a_thousand_connections_come_and_go() {
    let lp = Loop::new().unwrap();
    let (listener, address) = listen();
    lp.block_on(async {
        let server = spawn(async move {
            let mut tasks = Vec::new();
            for _ in 0..1000 {
                let (stream, _) = listener.accept().await.unwrap();
                tasks.push(spawn(async move {
                    let bytes = read_to_end(&stream).await.unwrap();
                    stream.write_all(&bytes).await.unwrap();
                }));
            }
            for task in tasks {
                task.await.unwrap();
            }
        });
        for _ in 0..20 {
            let clients: Vec<_> = (0..50u8)
                .map(|at| {
                    spawn(async move {
                        let client = TcpStream::connect(address).await.unwrap();
                        client.write_all(&[at; 100]).await.unwrap();
                        client.shutdown().await.unwrap();
                        assert_eq!(read_to_end(&client).await.unwrap(), [at; 100]);
                    })
                })
                .collect();
            for client in clients {
                client.await.unwrap();
            }
        }
        server.await.unwrap();
    });
}

/// A peek that finds nothing must not make the loop report what is not there.
#[test]
fn a_peek_waits_and_takes_nothing() {
    let lp = Loop::new().unwrap();
    lp.block_on(async {
        let (client, server) = connected().await;
        let turns = blacklight::current().metrics().loop_count;
        let peeking = spawn(async move {
            let mut buf = [0; 8];
            let seen = server.peek(&mut buf).await.unwrap();
            assert_eq!(&buf[..seen], b"light");
            assert_eq!(server.peek(&mut buf[..2]).await.unwrap(), 2);
            server.read_exact(&mut buf[..5]).await.unwrap();
            assert_eq!(&buf[..5], b"light");
            // Both at the end and after an empty buffer.
            assert_eq!(server.peek(&mut []).await.unwrap(), 0);
            assert_eq!(server.peek(&mut buf).await.unwrap(), 0);
            assert_eq!(server.read(&mut buf).await.unwrap(), 0);
            blacklight::current().metrics().loop_count
        });
        blacklight::sleep(Duration::from_millis(20)).await;
        client.write_all(b"light").await.unwrap();
        blacklight::sleep(Duration::from_millis(20)).await;
        client.shutdown().await.unwrap();
        let turns = peeking.await.unwrap() - turns;
        assert!(turns < 100, "{turns} turns: it spins");
    });
}

#[test]
fn a_connection_goes_back_to_the_standard_library() {
    let lp = Loop::new().unwrap();
    lp.block_on(async {
        let (client, server) = connected().await;
        let mut std = client.into_std().unwrap();
        std.set_nonblocking(false).unwrap();
        std.write_all(b"light").unwrap();
        let mut buf = [0; 5];
        server.read_exact(&mut buf).await.unwrap();
        drop(std);
        assert_eq!(server.read(&mut buf).await.unwrap(), 0);
        server.close();
        assert!(server.into_std().is_err());
    });
}

#[test]
fn a_writing_half_that_is_dropped_ends_writing() {
    let lp = Loop::new().unwrap();
    lp.block_on(async {
        let (client, server) = connected().await;
        // What is queued goes first.
        client.write_then(much(), |_, _| ()).unwrap();
        let (reader, writer) = client.into_split();
        drop(writer);
        let mut all = Vec::new();
        server.read_to_end(&mut all).await.unwrap();
        assert!(all == much());
        // The other direction goes on.
        server.write_all(b"light").await.unwrap();
        assert_eq!(reader.read(&mut [0; 8]).await.unwrap(), 5);
        drop(reader);
        assert_eq!(server.read(&mut [0; 8]).await.unwrap(), 0);
    });
}

#[test]
fn halves_that_are_forgotten_or_put_together_end_nothing() {
    let lp = Loop::new().unwrap();
    lp.block_on(async {
        let (client, server) = connected().await;
        let (reader, writer) = client.into_split();
        let (other_reader, other_writer) = server.into_split();
        let error = other_reader.reunite(writer).unwrap_err();
        assert_eq!(error.to_string(), "the halves are of different streams");
        let (other_reader, writer) = (error.0, error.1);
        let client = reader.reunite(writer).unwrap();
        let server = other_writer.reunite(other_reader).unwrap();
        // If an end had been queued, this would fail.
        yield_now().await;
        client.write_all(b"light").await.unwrap();
        let (reader, writer) = client.into_split();
        writer.forget();
        assert_eq!(server.read(&mut [0; 8]).await.unwrap(), 5);
        let client = reader.as_ref().clone();
        drop(reader);
        client.write_all(b"light").await.unwrap();
        assert_eq!(server.read(&mut [0; 8]).await.unwrap(), 5);
    });
}

#[test]
fn a_listener_that_comes_to_the_loop_keeps_its_backlog() {
    let lp = Loop::new().unwrap();
    let few = BindOptions::new().backlog(1);
    let listener = lp.block_on(TcpListener::bind_with(any_port(), few));
    let listener = listener.unwrap().into_std().unwrap();
    let address = listener.local_addr().unwrap();
    let _listener = TcpListener::from_std(listener).unwrap();
    // Nobody accepts, and the kernel lets no more wait than the backlog allows.
    let patience = Duration::from_millis(50);
    let connect = |_| std::net::TcpStream::connect_timeout(&address, patience);
    let clients: Vec<_> = (0..4).map(connect).collect();
    assert!(clients[0].is_ok());
    let error = clients[3].as_ref().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
}
