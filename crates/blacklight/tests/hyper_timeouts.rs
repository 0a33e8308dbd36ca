//! An HTTP server and client of hyper's on our loop.
#![cfg(feature = "hyper")]

use blacklight::{Loop, LoopTimer, TcpListener, TcpStream, spawn};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use std::convert::Infallible;
use std::time::Duration;

async fn echo(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let body = request.into_body().collect().await.unwrap().to_bytes();
    Ok(Response::new(Full::new(body)))
}

async fn serve(listener: TcpListener, patience: Duration) {
    while let Ok((stream, _)) = listener.accept().await {
        drop(spawn(
            hyper::server::conn::http1::Builder::new()
                .timer(LoopTimer)
                .header_read_timeout(patience)
                .serve_connection(stream, service_fn(echo)),
        ));
    }
}

#[test]
fn requests_are_answered_and_idle_clients_are_not_waited_for() {
    let lp = Loop::new().unwrap();
    let listen = || {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let listener = TcpListener::from_std(listener).unwrap();
        (listener.local_addr().unwrap(), listener)
    };
    lp.block_on(async {
        // Nobody is cut off for being slow on a slow machine.
        let (address, listener) = listen();
        let server = spawn(serve(listener, Duration::from_secs(60)));
        let stream = TcpStream::connect(address).await.unwrap();
        let (mut client, connection) = hyper::client::conn::http1::handshake(stream).await.unwrap();
        let connection = spawn(connection);
        for size in [0, 10, 1 << 20] {
            let body = Bytes::from(vec![7; size]);
            let request = Request::new(Full::new(body.clone()));
            let response = client.send_request(request).await.unwrap();
            let answer = response.into_body().collect().await.unwrap().to_bytes();
            assert!(answer == body);
        }
        drop(client);
        connection.await.unwrap().unwrap();
        server.abort();
        // Who says nothing is closed by hyper's timer.
        let (address, listener) = listen();
        let server = spawn(serve(listener, Duration::from_millis(20)));
        let silent = TcpStream::connect(address).await.unwrap();
        let mut room = [0; 256];
        while silent.read(&mut room).await.unwrap_or(0) > 0 {}
        server.abort();
    });
}
