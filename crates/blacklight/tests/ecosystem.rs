//! Libraries that were written for other runtimes, on a loop.

use blacklight::{Local, Loop, LoopConnector, LoopExecutor, LoopTimer, TcpListener, TcpStream};
use futures_lite::StreamExt;
use http_body_util::{BodyExt, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::client::legacy::Client;
use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;
use tower::ServiceExt;

/// An HTTP server that answers with the path, and counts its connections.
async fn serve() -> (SocketAddr, Rc<Cell<u32>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let connections = Rc::new(Cell::new(0));
    let count = connections.clone();
    blacklight::spawn(async move {
        let mut incoming = listener.incoming();
        while let Some(stream) = incoming.next().await {
            count.set(count.get() + 1);
            let answer = service_fn(|request: Request<Incoming>| async move {
                blacklight::sleep(Duration::from_millis(1)).await;
                Ok::<_, hyper::Error>(Response::new(request.uri().path().to_owned()))
            });
            let stream = stream.unwrap();
            blacklight::spawn(async move {
                let mut server = hyper::server::conn::http1::Builder::new();
                let _ = server
                    .timer(LoopTimer)
                    .serve_connection(stream, answer)
                    .await;
            });
        }
    })
    .unref();
    (address, connections)
}

#[test]
fn the_pooled_client_of_hyper_util_keeps_its_connection() {
    let lp = Loop::new().unwrap();
    lp.block_on(async {
        let (address, connections) = serve().await;
        let client: Client<_, Empty<Bytes>> = Client::builder(LoopExecutor)
            .pool_timer(LoopTimer)
            .pool_idle_timeout(Duration::from_secs(60))
            .build(LoopConnector);
        for path in ["/one", "/two", "/three"] {
            let url = format!("http://localhost:{}{path}", address.port());
            let answer = client.get(url.parse().unwrap()).await.unwrap();
            let body = answer.into_body().collect().await.unwrap();
            assert_eq!(body.to_bytes(), path);
        }
        assert_eq!(connections.get(), 1);
        let tls = client.get("https://localhost/".parse().unwrap()).await;
        assert!(tls.unwrap_err().is_connect());
    });
}

#[test]
fn a_handler_of_axum_sleeps_on_the_loop() {
    async fn handler() -> &'static str {
        Local::new(blacklight::sleep(Duration::from_millis(1))).await;
        let read = Local::new(blacklight::fs::read_to_string("/proc/self/comm")).await;
        assert!(!read.unwrap().is_empty());
        "awake"
    }
    let app = axum::Router::new().route("/", axum::routing::get(handler));
    let lp = Loop::new().unwrap();
    lp.block_on(async {
        let request = axum::http::Request::get("/").body(axum::body::Body::empty());
        let answer = app.oneshot(request.unwrap()).await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK);
        let body = answer.into_body().collect().await.unwrap();
        assert_eq!(body.to_bytes(), "awake");
    });
}

/// reqwest needs a context of tokio's, whose reactor runs on a thread of its own; its futures are
/// awaited here.
#[test]
fn a_client_of_tokio_works_beside_the_loop() {
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().unwrap();
    let context = runtime.handle().clone();
    let reactor = std::thread::spawn(move || runtime.block_on(ended));
    let lp = Loop::new().unwrap();
    lp.block_on(async {
        let _context = context.enter();
        let (address, _) = serve().await;
        let url = format!("http://{address}/from/tokio");
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let answer = client.get(url).timeout(Duration::from_secs(60)).send();
        let text = answer.await.unwrap().text().await.unwrap();
        assert_eq!(text, "/from/tokio");
    });
    end.send(()).unwrap();
    reactor.join().unwrap().unwrap();
}

#[test]
fn codecs_of_tokio_util_frame_a_stream() {
    use tokio_util::codec::{FramedRead, LinesCodec};
    let lp = Loop::new().unwrap();
    lp.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap());
        let client = client.await.unwrap();
        let (server, _) = listener.accept().await.unwrap();
        blacklight::spawn(async move {
            for part in ["one\ntw", "o\n", "three\n"] {
                client.write_all(part.as_bytes()).await.unwrap();
                blacklight::yield_now().await;
            }
        });
        let lines = FramedRead::new(server, LinesCodec::new());
        let lines: Vec<_> = lines.map(Result::unwrap).collect().await;
        assert_eq!(lines, ["one", "two", "three"]);
    });
}

#[test]
fn codecs_of_tokio_util_write_to_a_stream() {
    use futures_util::SinkExt;
    use tokio_util::codec::{Framed, FramedRead, FramedWrite};
    use tokio_util::codec::{LengthDelimitedCodec, LinesCodec};
    let lp = Loop::new().unwrap();
    lp.block_on(async {
        let (near, far) = blacklight::UnixStream::pair().unwrap();
        let [mut near, mut far] =
            [near, far].map(|stream| Framed::new(stream, LengthDelimitedCodec::new()));
        let echo = blacklight::spawn(async move {
            while let Some(frame) = far.next().await {
                far.send(frame.unwrap().freeze()).await.unwrap();
            }
            SinkExt::<Bytes>::close(&mut far).await.unwrap();
        });
        // More than a socket's buffer holds, so that writing has to wait.
        let frames = [1, 1 << 20, 0, 3].map(|len| Bytes::from(vec![7; len]));
        for frame in frames.clone() {
            near.send(frame.clone()).await.unwrap();
            assert_eq!(near.next().await.unwrap().unwrap(), frame);
        }
        SinkExt::<Bytes>::close(&mut near).await.unwrap();
        assert!(near.next().await.is_none());
        echo.await.unwrap();

        // Both halves of a stream, and a frame that is refused.
        let (near, far) = blacklight::UnixStream::pair().unwrap();
        let (reader, writer) = near.into_split();
        let mut writer = FramedWrite::new(writer, LinesCodec::new());
        writer.send("one").await.unwrap();
        writer.send("two").await.unwrap();
        SinkExt::<&str>::close(&mut writer).await.unwrap();
        let mut lines = Vec::new();
        far.read_to_end(&mut lines).await.unwrap();
        assert_eq!(lines, b"one\ntwo\n");
        far.write_all(b"far too long a line\n").await.unwrap();
        let codec = LinesCodec::new_with_max_length(3);
        let mut reader = FramedRead::new(reader, codec);
        assert!(reader.next().await.unwrap().is_err());
    });
}

#[test]
fn what_recurs_is_a_stream() {
    let lp = Loop::new().unwrap();
    let directory = blacklight::fs::TempDir::new_blocking("streams").unwrap();
    lp.block_on(async {
        let interval = blacklight::interval(Duration::from_millis(1));
        assert_eq!(interval.take(3).count().await, 3);
        let kind = blacklight::SignalKind::realtime(12).unwrap();
        let mut signals = blacklight::Signals::new([kind]).unwrap();
        blacklight::process::kill(std::process::id(), kind).unwrap();
        assert_eq!(signals.next().await, Some(kind));
        let mut changes = blacklight::FsChanges::new(directory.path()).unwrap();
        std::fs::write(directory.path().join("new"), "light").unwrap();
        let change = changes.next().await.unwrap().unwrap();
        assert_eq!(change.path.unwrap().as_os_str(), "new");
        let entries = blacklight::fs::read_dir(directory.path()).await.unwrap();
        let names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name())
            .collect()
            .await;
        assert_eq!(names, ["new"]);
        let missing = directory.path().join("missing");
        let mut stats = blacklight::StatChanges::new(missing, Duration::from_secs(60)).unwrap();
        assert!(stats.next().await.unwrap().current.is_err());
    });
}

/// What is bound to a thread panics elsewhere, and takes nothing with it.
#[test]
fn a_local_value_stays_on_its_thread() {
    let lp = Loop::new().unwrap();
    let sleep = Local::new(lp.enter(|| blacklight::sleep(Duration::ZERO)));
    let (sleep, polled) = std::thread::spawn(move || {
        let mut sleep = sleep;
        assert!(!sleep.is_here());
        let poll = std::panic::AssertUnwindSafe(|| {
            futures_lite::future::block_on(&mut sleep);
        });
        let polled = std::panic::catch_unwind(poll);
        (sleep, polled.is_err())
    })
    .join()
    .unwrap();
    assert!(polled);
    lp.block_on(sleep);
}
