//! Blacklight's names for what the workloads use, and a web server on it.

use anyhow::Result;
use blacklight::{BindOptions, Loop, LoopTimer, multi};
use http_body_util::Full;
use hyper::Response;
use hyper::body::Bytes;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use std::convert::Infallible;
use std::io;
use std::path::Path;
use std::time::Duration;

pub(crate) use blacklight::{TcpListener, TcpStream, UdpSocket, sleep_until, spawn, yield_now};

/// What a task must be, beyond a future: nothing.
pub(crate) trait MayBeSpawned {}

impl<T> MayBeSpawned for T {}

/// Blacklight's streams have these methods themselves.
pub(crate) mod traits {}

pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let slot = std::env::var("SLEEP_SLOT_US").ok();
    let slot = slot.map_or(0, |slot| slot.parse().expect("a number of microseconds"));
    let lp = Loop::builder().sleep_slot(Duration::from_micros(slot));
    lp.build().expect("a loop").block_on(future)
}

pub(crate) async fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    blacklight::fs::read(path).await
}

async fn serve_from(listener: TcpListener) -> io::Result<()> {
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
            server.timer(LoopTimer);
            // A client that leaves in the middle of a request is nothing to tell of.
            let _ = server.serve_connection(stream, service_fn(hello)).await;
        });
    }
}

/// A web server on one loop.
pub(crate) fn serve() -> Result<()> {
    block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("{}", listener.local_addr()?);
        Ok(serve_from(listener).await?)
    })
}

/// A web server with a loop for each processor; the kernel deals out the connections.
pub(crate) fn serve_on_all() -> Result<()> {
    let lp = Loop::new()?;
    let shared = || BindOptions::new().reuse_port(true);
    // The port is the kernel's choice, and taken until all others have it too.
    let first = lp.block_on(TcpListener::bind_with("127.0.0.1:0", shared()))?;
    let address = first.local_addr()?;
    let (ready, readies) = std::sync::mpsc::channel();
    let servers = multi::Builder::new().start(move |_| {
        let ready = ready.clone();
        async move {
            let listener = TcpListener::bind_with(address, shared()).await?;
            let _ = ready.send(());
            serve_from(listener).await
        }
    })?;
    for _ in servers.remotes() {
        readies.recv()?;
    }
    drop(first);
    println!("{address}");
    Ok(servers.join()?)
}
