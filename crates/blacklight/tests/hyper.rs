//! hyper's servers and clients, as they are, on one loop.

use blacklight::{JoinHandle, Loop, LoopExecutor, LoopTimer, TcpListener, TcpStream, spawn};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Bytes, Frame, Incoming};
use hyper::client::conn::{http1 as client1, http2 as client2};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use std::cell::Cell;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

const MIB: usize = 1 << 20;

/// Bytes of which every neighbourhood is different, so that none can be lost or swapped.
fn pattern(len: usize, seed: u32) -> Bytes {
    let word = |at: u32| (at ^ seed).wrapping_mul(0x9e37_79b9).to_be_bytes();
    (0..len.div_ceil(4) as u32)
        .flat_map(word)
        .take(len)
        .collect()
}

/// Sends back what it is sent, as it comes.
async fn echo(request: Request<Incoming>) -> Result<Response<Incoming>, Infallible> {
    Ok(Response::new(request.into_body()))
}

#[derive(Clone, Copy)]
enum Version {
    Http1,
    Http2,
}

/// What a server has seen.
#[derive(Default)]
struct Seen {
    accepted: Cell<usize>,
    failed: Cell<usize>,
    ended: Cell<usize>,
}

/// Serves `echo` for as long as the loop runs.
fn serve(lp: &Loop, version: Version) -> (SocketAddr, Rc<Seen>) {
    let listener =
        TcpListener::from_std(std::net::TcpListener::bind("127.0.0.1:0").unwrap()).unwrap();
    let address = listener.local_addr().unwrap();
    let seen = Rc::new(Seen::default());
    let counts = seen.clone();
    let accepting = lp.spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            counts.accepted.set(counts.accepted.get() + 1);
            let counts = counts.clone();
            spawn(async move {
                let served = match version {
                    Version::Http1 => {
                        let mut server = http1::Builder::new();
                        server.timer(LoopTimer);
                        server.serve_connection(stream, service_fn(echo)).await
                    }
                    Version::Http2 => {
                        let mut server = http2::Builder::new(LoopExecutor);
                        server.timer(LoopTimer);
                        server.serve_connection(stream, service_fn(echo)).await
                    }
                };
                counts
                    .failed
                    .set(counts.failed.get() + usize::from(served.is_err()));
                counts.ended.set(counts.ended.get() + 1);
            });
        }
    });
    accepting.unref();
    (address, seen)
}

async fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address);
    stream.await.unwrap()
}

type Connection = JoinHandle<hyper::Result<()>>;

async fn connect1<B>(address: SocketAddr) -> (client1::SendRequest<B>, Connection)
where
    B: Body<Data = Bytes, Error = Infallible> + 'static,
{
    let (sender, connection) = client1::handshake(connect(address).await).await.unwrap();
    (sender, spawn(connection))
}

async fn connect2(address: SocketAddr) -> (client2::SendRequest<Full<Bytes>>, Connection) {
    let stream = connect(address).await;
    let (sender, connection) = client2::handshake(LoopExecutor, stream).await.unwrap();
    (sender, spawn(connection))
}

fn post<B>(body: B) -> Request<B> {
    Request::post("http://localhost/").body(body).unwrap()
}

/// Checks that what comes back is what was sent.
async fn check(response: Response<Incoming>, sent: &Bytes) {
    assert_eq!(response.status(), StatusCode::OK);
    let body = response.into_body().collect().await.unwrap().to_bytes();
    // Not `assert_eq`, which would print megabytes.
    assert!(body == *sent, "what comes back is not what was sent");
}

/// Waits until the other tasks have brought something about.
async fn until(mut condition: impl FnMut() -> bool) {
    while !condition() {
        blacklight::sleep(Duration::from_millis(1)).await;
    }
}

#[test]
fn http1_carries_large_bodies_over_one_connection() {
    let lp = Loop::new().unwrap();
    let (address, seen) = serve(&lp, Version::Http1);
    lp.block_on(async {
        let (mut sender, connection) = connect1::<Full<Bytes>>(address).await;
        for (seed, len) in [0, 1, 65_536, 65_537, 3 * MIB + 1, 8 * MIB]
            .into_iter()
            .enumerate()
        {
            let body = pattern(len, seed as u32);
            sender.ready().await.unwrap();
            let response = sender.send_request(post(Full::new(body.clone())));
            check(response.await.unwrap(), &body).await;
        }
        assert_eq!(seen.accepted.get(), 1, "the connection was kept");
        drop(sender);
        connection.await.unwrap().unwrap();
        until(|| seen.ended.get() == 1).await;
        assert_eq!(seen.failed.get(), 0);
    });
}

#[test]
fn http1_serves_many_connections_at_once() {
    const CONNECTIONS: u32 = 100;
    const REQUESTS: u32 = 10;
    let lp = Loop::new().unwrap();
    let (address, seen) = serve(&lp, Version::Http1);
    lp.block_on(async {
        let client = |number: u32| async move {
            let (mut sender, connection) = connect1::<Full<Bytes>>(address).await;
            for request in 0..REQUESTS {
                let body = pattern(1000 + number as usize, number * REQUESTS + request);
                sender.ready().await.unwrap();
                let response = sender.send_request(post(Full::new(body.clone())));
                check(response.await.unwrap(), &body).await;
            }
            drop(sender);
            connection.await.unwrap().unwrap();
        };
        let clients: Vec<_> = (0..CONNECTIONS)
            .map(|number| spawn(client(number)))
            .collect();
        for client in clients {
            client.await.unwrap();
        }
        until(|| seen.ended.get() == CONNECTIONS as usize).await;
        assert_eq!(seen.accepted.get(), CONNECTIONS as usize);
        assert_eq!(seen.failed.get(), 0);
    });
}

#[test]
fn http2_carries_many_large_bodies_at_once_over_one_connection() {
    let lp = Loop::new().unwrap();
    let (address, seen) = serve(&lp, Version::Http2);
    lp.block_on(async {
        let (sender, connection) = connect2(address).await;
        let request = |seed: u32, len: usize| {
            let mut sender = sender.clone();
            spawn(async move {
                let body = pattern(len, seed);
                sender.ready().await.unwrap();
                let response = sender.send_request(post(Full::new(body.clone())));
                check(response.await.unwrap(), &body).await;
            })
        };
        let small = (0..64).map(|seed| request(seed, 64 * 1024 + seed as usize));
        let large = (64..67).map(|seed| request(seed, 4 * MIB + 1));
        for request in small.chain(large).collect::<Vec<_>>() {
            request.await.unwrap();
        }
        assert_eq!(seen.accepted.get(), 1);
        drop(sender);
        connection.await.unwrap().unwrap();
        until(|| seen.ended.get() == 1).await;
        assert_eq!(seen.failed.get(), 0);
    });
}

/// A body that says something and then nothing more.
struct Unfinished(Option<Bytes>);

impl Body for Unfinished {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.0.take() {
            Some(bytes) => Poll::Ready(Some(Ok(Frame::data(bytes)))),
            None => Poll::Pending,
        }
    }
}

#[test]
fn a_client_that_goes_away_midway_harms_nobody_else() {
    let lp = Loop::new().unwrap();
    let (address, seen) = serve(&lp, Version::Http1);
    lp.block_on(async {
        let (mut staying, _connection) = connect1::<Full<Bytes>>(address).await;
        let (mut leaving, connection) = connect1::<Unfinished>(address).await;
        let begun = pattern(MIB, 1);
        let response = leaving.send_request(post(Unfinished(Some(begun.clone()))));
        let mut body = response.await.unwrap().into_body();
        let mut come = 0;
        while come < begun.len() {
            let bytes = body.frame().await.unwrap().unwrap().into_data().unwrap();
            assert!(bytes == begun[come..come + bytes.len()]);
            come += bytes.len();
        }
        assert_eq!(seen.ended.get(), 0);
        connection.abort();
        until(|| seen.ended.get() == 1).await;
        assert_eq!(seen.failed.get(), 1, "the server was told");
        assert!(
            body.frame().await.unwrap().is_err(),
            "and so was the client"
        );

        let after = pattern(MIB, 2);
        let response = staying.send_request(post(Full::new(after.clone())));
        check(response.await.unwrap(), &after).await;
    });
}

/// A body without an end.
async fn endless(
    _: Request<Incoming>,
) -> Result<Response<impl Body<Data = Bytes, Error = Infallible>>, Infallible> {
    struct Endless(Bytes);
    impl Body for Endless {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            Poll::Ready(Some(Ok(Frame::data(self.0.clone()))))
        }
    }
    Ok(Response::new(Endless(pattern(64 * 1024, 3))))
}

#[test]
fn a_server_stops_sending_to_a_client_that_has_gone() {
    let lp = Loop::new().unwrap();
    let listener =
        TcpListener::from_std(std::net::TcpListener::bind("127.0.0.1:0").unwrap()).unwrap();
    let address = listener.local_addr().unwrap();
    lp.block_on(async {
        let server = spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            http1::Builder::new()
                .serve_connection(stream, service_fn(endless))
                .await
        });
        let (mut sender, connection) = connect1::<Full<Bytes>>(address).await;
        let response = sender.send_request(post(Full::default()));
        let mut body = response.await.unwrap().into_body();
        assert!(body.frame().await.unwrap().is_ok());
        connection.abort();
        assert!(server.await.unwrap().is_err());
    });
}

#[test]
fn servers_do_not_wait_for_ever_for_a_client_that_says_nothing() {
    let lp = Loop::new().unwrap();
    let listener =
        TcpListener::from_std(std::net::TcpListener::bind("127.0.0.1:0").unwrap()).unwrap();
    let address = listener.local_addr().unwrap();
    const PATIENCE: Duration = Duration::from_millis(20);
    lp.block_on(async {
        let mute = connect(address).await;
        let (stream, _) = listener.accept().await.unwrap();
        let mut server = http1::Builder::new();
        server.timer(LoopTimer).header_read_timeout(PATIENCE);
        let served = server.serve_connection(stream, service_fn(echo)).await;
        assert!(served.unwrap_err().is_timeout());
        assert_eq!(mute.read(&mut [0; 1]).await.unwrap(), 0);

        let mute = connect(address).await;
        mute.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0")
            .await
            .unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        let mut server = http2::Builder::new(LoopExecutor);
        server
            .timer(LoopTimer)
            .keep_alive_interval(PATIENCE)
            .keep_alive_timeout(PATIENCE);
        let served = server.serve_connection(stream, service_fn(echo)).await;
        assert!(served.unwrap_err().is_timeout());
    });
}
