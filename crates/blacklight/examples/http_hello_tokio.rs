//! The service of `http_hello` on tokio's runtime of one thread, for `cargo xtask measure
//! http`, which compares the two.

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use std::convert::Infallible;
use std::io;
use tokio::net::TcpListener;
use tokio::runtime;

async fn hello(_: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(Response::new(Full::from("Hello, world!\n")))
}

fn main() -> io::Result<()> {
    let address = std::env::args().nth(1);
    let address = address.as_deref().unwrap_or("127.0.0.1:8080");

    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(address).await?;
        println!("listening on {}", listener.local_addr()?);
        loop {
            // An error is that of one client, or passes, as a lack of descriptors does.
            let Ok((stream, peer)) = listener.accept().await else {
                continue;
            };
            let _ = stream.set_nodelay(true);
            tokio::spawn(async move {
                let mut server = auto::Builder::new(TokioExecutor::new());
                server.http1().timer(TokioTimer::new());
                server.http2().timer(TokioTimer::new());
                let stream = TokioIo::new(stream);
                let served = server.serve_connection(stream, service_fn(hello)).await;
                if let Err(error) = served {
                    eprintln!("{peer}: {error}");
                }
            });
        }
    })
}
