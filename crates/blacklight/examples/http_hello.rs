//! A web server with hyper, as it is: HTTP/1 and HTTP/2 at one port.
//!
//! ```sh
//! cargo run --example http_hello          # and elsewhere:
//! curl http://127.0.0.1:8080/
//! curl --http2-prior-knowledge http://127.0.0.1:8080/
//! ```
//!
//! The first argument is the address to listen at. The feature `hyper` makes the streams fit, and has the executor and the
//! timer. `http_hello_tokio` is the same service on tokio, to compare with.

use blacklight::{Loop, LoopExecutor, LoopTimer, TcpListener};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::server::conn::auto;
use std::convert::Infallible;
use std::io;

async fn hello(_: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(Response::new(Full::from("Hello, world!\n")))
}

fn main() -> io::Result<()> {
    let address = std::env::args().nth(1);
    let address = address.as_deref().unwrap_or("127.0.0.1:8080");

    let lp = Loop::new()?;
    let listener = lp.block_on(TcpListener::bind(address))?;
    println!("listening on {}", listener.local_addr()?);
    lp.block_on(async {
        loop {
            // An error is that of one client, or passes, as a lack of descriptors does.
            let Ok((stream, peer)) = listener.accept().await else {
                continue;
            };
            let _ = stream.set_nodelay(true);
            blacklight::spawn(async move {
                let mut server = auto::Builder::new(LoopExecutor);
                server.http1().timer(LoopTimer);
                server.http2().timer(LoopTimer);
                let served = server.serve_connection(stream, service_fn(hello)).await;
                if let Err(error) = served {
                    eprintln!("{peer}: {error}");
                }
            });
        }
    })
}
