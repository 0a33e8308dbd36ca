//! A web server that ends well: when it is asked to (Ctrl-C or SIGTERM), it accepts no more
//! connections, finishes the requests that it has begun, and gives up those that take too long.
//!
//! ```sh
//! cargo run --example graceful            # and elsewhere:
//! curl http://127.0.0.1:8080/ & kill -TERM "$(pgrep graceful)"
//! ```
//!
//! The first argument is the address to listen at; the second, how many milliseconds a request
//! takes.

use blacklight::{JoinSet, Loop, LoopTimer, SignalKind, Signals, Stop, TcpListener, TcpStream};
use futures_lite::future::or;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use std::io;
use std::pin::pin;
use std::time::Duration;

/// How long requests may take to finish after the server is asked to end.
const GRACE: Duration = Duration::from_secs(10);

async fn answer(request: Request<Incoming>, work: Duration) -> hyper::Result<Response<String>> {
    println!("answering {}", request.uri());
    blacklight::sleep(work).await;
    Ok(Response::new(format!("You asked for {}.\n", request.uri())))
}

/// Serves a connection; after `stop`, until it has answered what it has begun.
async fn serve(stream: TcpStream, stop: Stop, work: Duration) -> hyper::Result<()> {
    let mut server = http1::Builder::new();
    let service = service_fn(move |request| answer(request, work));
    let connection = server.timer(LoopTimer).serve_connection(stream, service);
    let mut connection = pin!(connection);
    let stopped = async {
        stop.stopped().await;
        None
    };
    if let Some(ended) = or(async { Some(connection.as_mut().await) }, stopped).await {
        return ended;
    }
    connection.as_mut().graceful_shutdown();
    connection.await
}

/// Accepts connections until `stop`, and then waits for them, but not for ever.
async fn run(listener: TcpListener, stop: Stop, work: Duration) -> io::Result<()> {
    let mut connections = JoinSet::new();
    loop {
        // A result is kept until it is taken.
        while connections.try_join_next().is_some() {}
        let accepted = or(async { Some(listener.accept().await) }, async {
            stop.stopped().await;
            None
        });
        match accepted.await {
            Some(Ok((stream, _))) => connections.spawn(serve(stream, stop.clone(), work)),
            // Mostly for want of descriptors: others end meanwhile.
            Some(Err(error)) => eprintln!("cannot accept: {error}"),
            None => break,
        }
    }
    // New clients are refused from here on.
    drop(listener);
    println!("{} connections to finish", connections.len());
    let finish = async { while connections.join_next().await.is_some() {} };
    if blacklight::timeout(GRACE, finish).await.is_err() {
        // Dropping the set gives up the rest.
        println!("{} connections given up", connections.len());
    }
    Ok(())
}

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().unwrap_or("127.0.0.1:8080".to_owned());
    let work = arguments
        .next()
        .and_then(|ms| ms.parse().ok())
        .unwrap_or(1000);

    let lp = Loop::new()?;
    lp.block_on(async {
        // Before it listens, so that nobody's signal ends it at once.
        let mut signals = Signals::new([SignalKind::SIGINT, SignalKind::SIGTERM])?;
        let stop = Stop::new();
        let its = stop.clone();
        let watch = blacklight::spawn(async move {
            let signal = signals.recv().await;
            println!("{signal}: the server ends");
            its.stop();
        });
        watch.unref();
        let listener = TcpListener::bind(address).await?;
        println!("listening on {}", listener.local_addr()?);
        run(listener, stop, Duration::from_millis(work)).await
    })
}
