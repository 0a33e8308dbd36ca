//! An echo server on all cores: a loop per thread, and the kernel deals out the connections.
//!
//! ```sh
//! cargo run --example all_cores           # and elsewhere: nc 127.0.0.1 7000
//! ```
//!
//! The first argument is the address to listen at. Loops share nothing: each has a socket of its
//! own at the same address (`SO_REUSEPORT`).

use blacklight::{BindOptions, Loop, TcpListener, TcpStream};
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

async fn serve(listener: TcpListener) -> io::Result<()> {
    loop {
        let (stream, peer) = listener.accept().await?;
        blacklight::spawn(async move {
            let ended = echo(stream).await;
            println!("{:?} served {peer}: {ended:?}", thread::current().id());
        });
    }
}

fn main() -> io::Result<()> {
    let address = std::env::args().nth(1);
    let address = address.as_deref().unwrap_or("127.0.0.1:7000");

    let lp = Loop::new()?;
    let listener = bind(&lp, address.parse().map_err(io::Error::other)?)?;
    let address = listener.local_addr()?;
    println!("listening on {address}");
    for _ in 1..thread::available_parallelism()?.get() {
        thread::spawn(move || {
            let lp = Loop::new().unwrap();
            let listener = bind(&lp, address).unwrap();
            lp.block_on(serve(listener)).unwrap();
        });
    }
    lp.block_on(serve(listener))
}
