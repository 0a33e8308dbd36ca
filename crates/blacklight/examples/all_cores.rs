//! An echo server on all cores: a loop per thread, and the kernel deals out the connections.
//!
//! ```sh
//! cargo run --example all_cores           # and elsewhere: nc 127.0.0.1 7000
//! ```
//!
//! The first argument is the address to listen at. With `--once` the server ends when its first
//! client has left. Loops share nothing: each has a socket of its own at the same address
//! (`SO_REUSEPORT`). Only the `Sender` of an `Async` goes to other threads, to stop the loop.

use blacklight::{Async, BindOptions, Loop, Mode, Sender, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::{io, net::SocketAddr, thread};

fn bind(lp: &Loop, address: SocketAddr) -> io::Result<TcpListener> {
    let options = BindOptions {
        reuse_port: true,
        ..BindOptions::default()
    };
    TcpListener::bind_with(lp, address, options, 1024)
}

async fn echo(stream: TcpStream) -> io::Result<()> {
    let mut room = [0; 4096];
    loop {
        match stream.read(&mut room).await? {
            0 => return stream.shutdown().await,
            count => stream.write_all(&room[..count]).await?,
        }
    }
}

/// What stops each of the loops, until they have been stopped.
type Stoppers = Arc<Mutex<Option<Vec<Sender>>>>;

fn serve(lp: &Loop, listener: TcpListener, stoppers: Stoppers, once: bool) -> io::Result<()> {
    let stopper = Async::new(lp, |lp, _| lp.stop())?;
    match &mut *stoppers.lock().unwrap() {
        Some(stoppers) => stoppers.push(stopper.sender()),
        None => return Ok(()),
    }
    lp.spawn(async move {
        while let Ok((stream, peer)) = listener.accept().await {
            let stoppers = stoppers.clone();
            blacklight::spawn(async move {
                let ended = echo(stream).await;
                println!("{:?} served {peer}: {ended:?}", thread::current().id());
                let stoppers = once.then(|| stoppers.lock().unwrap().take());
                stoppers.flatten().iter().flatten().for_each(Sender::send);
            });
        }
    });
    lp.run(Mode::Default);
    Ok(())
}

fn main() -> io::Result<()> {
    let address = std::env::args().nth(1);
    let address = address.as_deref().unwrap_or("127.0.0.1:7000");
    let once = std::env::args().any(|argument| argument == "--once");

    let lp = Loop::new()?;
    let listener = bind(&lp, address.parse().map_err(io::Error::other)?)?;
    let address = listener.local_addr()?;
    println!("listening on {address}");
    let stoppers = Stoppers::new(Mutex::new(Some(Vec::new())));
    thread::scope(|scope| {
        for _ in 1..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                let lp = Loop::new()?;
                serve(&lp, bind(&lp, address)?, stoppers.clone(), once)
            });
        }
        serve(&lp, listener, stoppers.clone(), once)
    })
}
