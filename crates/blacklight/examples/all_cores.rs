//! An echo server on all cores: a loop per thread, and the kernel deals out the connections.
//!
//! ```sh
//! cargo run --example all_cores           # and elsewhere: nc 127.0.0.1 7000
//! ```
//!
//! The first argument is the address to listen at. Loops share nothing: each has a socket of its
//! own at the same address (`SO_REUSEPORT`). Ctrl-C ends the server, and so does the panic of any
//! thread.

use blacklight::multi::{self, Sockets};
use blacklight::{Loop, TcpListener, TcpStream, signal};
use futures_lite::future::or;
use std::{io, thread};

async fn echo(stream: TcpStream) -> io::Result<()> {
    let mut buf = [0; 4096];
    loop {
        match stream.read(&mut buf).await? {
            0 => return stream.shutdown().await,
            count => stream.write_all(&buf[..count]).await?,
        }
    }
}

async fn serve(worker: multi::Worker, listener: TcpListener) -> io::Result<()> {
    let accept = async {
        loop {
            match listener.accept().await {
                Ok((stream, peer)) => {
                    blacklight::spawn(async move {
                        let ended = echo(stream).await;
                        println!("{:?} served {peer}: {ended:?}", thread::current().name());
                    });
                }
                // Mostly for want of descriptors: others end meanwhile.
                Err(error) => eprintln!("cannot accept: {error}"),
            }
        }
    };
    or(worker.stopped(), accept).await;
    Ok(())
}

fn main() -> io::Result<()> {
    let address = std::env::args().nth(1);
    let address = address.as_deref().unwrap_or("127.0.0.1:7000");

    // It fails here if it cannot listen, before any thread has begun.
    let servers = multi::Builder::new().name("echo");
    let servers = servers.listen(address, Sockets::OfEach, serve)?;
    let (stop, address) = (servers.stop_signal(), servers.local_addr());
    // This loop only waits for Ctrl-C.
    Loop::new()?.block_on(async {
        // From this call on Ctrl-C does not end the process at once.
        let ctrl_c = signal::ctrl_c();
        println!("listening on {}", address.expect("it listens"));
        or(ctrl_c, async {
            stop.stopped().await;
            Ok(())
        })
        .await
    })?;
    servers.stop();
    Ok(servers.join()?)
}
