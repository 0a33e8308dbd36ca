//! An HTTP server and client of hyper's on our loop.
#![cfg(feature = "hyper")]

use blacklight::{Loop, LoopTimer, TcpListener, TcpStream, current, spawn};
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

async fn serve(listener: TcpListener) {
    while let Ok((stream, _)) = listener.accept().await {
        drop(spawn(
            hyper::server::conn::http1::Builder::new()
                .timer(LoopTimer)
                .header_read_timeout(Duration::from_millis(20))
                .serve_connection(stream, service_fn(echo)),
        ));
    }
}

#[test]
fn requests_are_answered_and_idle_clients_are_not_waited_for() {
    let lp = Loop::new().unwrap();
    let listener = TcpListener::bind(&lp, "127.0.0.1:0".parse().unwrap()).unwrap();
    let address = listener.local_addr().unwrap();
    lp.block_on(async {
        let server = spawn(serve(listener));
        let stream = TcpStream::connect(&current(), address).await.unwrap();
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
        // Who says nothing is closed by hyper's timer.
        let silent = TcpStream::connect(&current(), address).await.unwrap();
        let mut room = [0; 256];
        while silent.read(&mut room).await.unwrap_or(0) > 0 {}
        server.cancel();
    });
}
