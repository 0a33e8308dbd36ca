//! tokio's names for what the workloads use, and a web server on it.

use anyhow::Result;
use http_body_util::Full;
use hyper::Response;
use hyper::body::Bytes;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::io;
use std::path::Path;
use std::time::Instant;
use tokio::runtime::{Builder, Runtime};

pub(crate) use tokio::net::{TcpListener, TcpStream, UdpSocket};
pub(crate) use tokio::spawn;
pub(crate) use tokio::task::yield_now;

/// What a task must be, beyond a future.
pub(crate) trait MayBeSpawned: Send {}

impl<T: Send> MayBeSpawned for T {}

/// The methods that tokio's streams have by traits.
pub(crate) mod traits {
    pub(crate) use tokio::io::{AsyncReadExt, AsyncWriteExt};
}

fn on_this_thread() -> Runtime {
    let built = Builder::new_current_thread().enable_all().build();
    built.expect("a runtime")
}

pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    on_this_thread().block_on(future)
}

pub(crate) async fn sleep_until(moment: Instant) {
    tokio::time::sleep_until(moment.into()).await;
}

pub(crate) async fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    tokio::fs::read(path).await
}

async fn serve_here() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        spawn(async move {
            let hello = |_| async {
                Ok::<_, Infallible>(Response::new(Full::new(Bytes::from_static(
                    b"Hello, world!\n",
                ))))
            };
            let mut server = http1::Builder::new();
            server.timer(TokioTimer::new());
            let stream = TokioIo::new(stream);
            // A client that leaves in the middle of a request is nothing to tell of.
            let _ = server.serve_connection(stream, service_fn(hello)).await;
        });
    }
}

/// A web server on a runtime of one thread.
pub(crate) fn serve() -> Result<()> {
    block_on(serve_here())
}

/// A web server on a runtime with a thread for each processor.
pub(crate) fn serve_on_all() -> Result<()> {
    let runtime = Builder::new_multi_thread().enable_all().build()?;
    // As tokio advises, the listener is a task of the runtime's and not the thread's that waits for it.
    runtime.block_on(async { spawn(serve_here()).await? })
}
