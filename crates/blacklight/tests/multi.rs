//! Loops on several threads.

use blacklight::multi::{self, Sockets};
use blacklight::{Stop, TcpListener};
use std::io::{self, Read};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};

#[test]
fn each_thread_has_a_loop_and_a_name() {
    // It ends only if three threads run at once.
    let together = Arc::new(Barrier::new(3));
    let loops = multi::Builder::new()
        .threads(3)
        .name("worker")
        .start(move |worker| {
            together.wait();
            async move {
                let name = format!("worker-{}", worker.index());
                assert_eq!(blacklight::current().name(), name);
                assert_eq!(std::thread::current().name(), Some(&*name));
                Ok(())
            }
        });
    let loops = loops.unwrap();
    assert_eq!(loops.remotes().len(), 3);
    loops.join().unwrap();
}

#[test]
fn a_panic_stops_all_and_is_reported() {
    for at_once in [true, false] {
        let ended = Arc::new(AtomicUsize::new(0));
        let count = ended.clone();
        let loops = multi::Builder::new().threads(3).start(move |worker| {
            // In `main` itself, or in its future.
            assert!(!at_once || worker.index() != 1, "as expected");
            let count = count.clone();
            async move {
                assert!(at_once || worker.index() != 1, "as expected");
                worker.stopped().await;
                count.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }
        });
        let error = loops.unwrap().join().unwrap_err();
        assert!(error.is_panic());
        assert_eq!(error.to_string(), "loop-1: panicked: as expected");
        assert_eq!(ended.load(Ordering::Relaxed), 2, "the others ended well");
        let error = io::Error::from(error);
        assert!(error.get_ref().unwrap().is::<multi::ThreadError>());
    }
}

#[test]
fn an_error_stops_all_and_is_reported() {
    let loops = multi::Builder::new().threads(2).start(|worker| async move {
        if worker.index() == 0 {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        worker.stopped().await;
        Ok(())
    });
    let error = loops.unwrap().join().unwrap_err();
    assert!(!error.is_panic());
    let error = error.into_panic().unwrap_err();
    assert_eq!(io::Error::from(error).kind(), io::ErrorKind::AddrInUse);
}

#[test]
fn what_cannot_be_started_leaves_no_thread() {
    let loops = multi::Builder::new()
        .name("a\0b")
        .threads(2)
        .start(|_| async { Ok(()) });
    assert_eq!(loops.unwrap_err().kind(), io::ErrorKind::InvalidInput);
    // Threads start, and cannot make their loops.
    let impossible = blacklight::Loop::builder().pool_threads(0);
    let loops = multi::Builder::new().threads(2).loops(impossible);
    let loops = loops.start(|_| async { unreachable!() });
    assert_eq!(loops.unwrap_err().kind(), io::ErrorKind::InvalidInput);
}

#[test]
fn one_that_is_dropped_is_stopped() {
    let stopped = Arc::new(AtomicUsize::new(0));
    let count = stopped.clone();
    let loops = multi::Builder::new().threads(2).start(move |worker| {
        let count = count.clone();
        async move {
            worker.stopped().await;
            count.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }
    });
    drop(loops.unwrap());
    assert_eq!(stopped.load(Ordering::Relaxed), 2);
}

/// Connects until every loop has served somebody.
#[test]
fn loops_share_a_listener() {
    let shared = Arc::new(std::net::TcpListener::bind("127.0.0.1:0").unwrap());
    let address: SocketAddr = shared.local_addr().unwrap();
    let loops = multi::Builder::new().threads(2).start(move |worker| {
        let shared = shared.clone();
        async move {
            let listener = TcpListener::from_std(shared.try_clone()?)?;
            let index = worker.index() as u8;
            let accepting = blacklight::spawn(async move {
                while let Ok((stream, _)) = listener.accept().await {
                    let _ = stream.write_all(&[index]).await;
                }
            });
            worker.stopped().await;
            accepting.abort();
            Ok(())
        }
    });
    let loops = loops.unwrap();
    for _ in 0..20 {
        let mut client = std::net::TcpStream::connect(address).unwrap();
        let mut index = Vec::new();
        client.read_to_end(&mut index).unwrap();
        assert!(matches!(index[..], [0 | 1]));
    }
    loops.stop();
    loops.join().unwrap();
}

#[test]
fn a_signal_to_stop_forgets_those_who_no_longer_wait() {
    let lp = blacklight::Loop::new().unwrap();
    let stop = Stop::new();
    lp.block_on(async {
        let its = stop.clone();
        let waiting = blacklight::spawn(async move { its.stopped().await });
        let (one, other) = (stop.clone(), stop.clone());
        let aborted = blacklight::spawn(async move { one.stopped().await });
        blacklight::yield_now().await;
        aborted.abort();
        assert!(!waiting.is_finished());
        std::thread::spawn(move || other.stop()).join().unwrap();
        waiting.await.unwrap();
    });
    assert!(stop.is_stopped());
}

#[test]
fn a_panic_is_told_before_errors() {
    let loops = multi::Builder::new().threads(3).start(|worker| async move {
        if worker.index() == 0 {
            return Err(io::Error::other("halfway"));
        }
        worker.stopped().await;
        assert!(worker.index() != 2, "as expected");
        Ok(())
    });
    let error = loops.unwrap().join().unwrap_err();
    assert_eq!(
        error.to_string(),
        "loop-2: panicked: as expected (and 1 more)"
    );
    assert_eq!(error.others().len(), 1);
    assert_eq!(error.others()[0].to_string(), "loop-0: halfway");
    assert!(error.into_panic().is_ok());
}

#[test]
fn an_error_is_told_though_another_thread_does_not_stop() {
    let go = Stop::new();
    let its = go.clone();
    let loops = multi::Builder::new().threads(2).start(move |worker| {
        let go = its.clone();
        async move {
            if worker.index() == 1 {
                return Err(io::Error::other("as expected"));
            }
            go.stopped().await;
            Ok(())
        }
    });
    let mut loops = loops.unwrap();
    let error = loops.next_error().unwrap();
    assert_eq!(error.to_string(), "loop-1: as expected");
    go.stop();
    assert!(loops.next_error().is_none());
    loops.join().unwrap();
}

#[test]
fn loops_listen_before_they_are_started() {
    for sockets in [Sockets::OfEach, Sockets::Shared] {
        let builder = || multi::Builder::new().threads(2);
        let serve = |worker: multi::Worker, listener: TcpListener| async move {
            let index = worker.index() as u8;
            let accepting = blacklight::spawn(async move {
                while let Ok((stream, _)) = listener.accept().await {
                    let _ = stream.write_all(&[index]).await;
                }
            });
            worker.stopped().await;
            accepting.abort();
            Ok(())
        };
        let server = builder().listen("127.0.0.1:0", sockets, serve).unwrap();
        let address = server.local_addr().unwrap();
        for _ in 0..10 {
            let mut client = std::net::TcpStream::connect(address).unwrap();
            let mut index = Vec::new();
            client.read_to_end(&mut index).unwrap();
            assert!(matches!(index[..], [0 | 1]));
        }
        server.stop();
        server.join().unwrap();

        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let unreached = |_: multi::Worker, _: TcpListener| async { unreachable!() };
        let server = builder().listen(taken.local_addr().unwrap(), sockets, unreached);
        assert_eq!(server.unwrap_err().kind(), io::ErrorKind::AddrInUse);
    }
}
