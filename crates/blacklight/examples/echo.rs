//! An echo server with futures: a task per connection, on one thread.
//!
//! ```sh
//! cargo run --example echo                # and elsewhere: nc 127.0.0.1 7000
//! ```
//!
//! The first argument is the address to listen at. `echo_callbacks` is the same with closures.

use blacklight::{Loop, TcpListener, TcpStream};
use std::io;

async fn echo(stream: TcpStream) -> io::Result<()> {
    let mut room = [0; 16 * 1024];
    loop {
        match stream.read(&mut room).await? {
            0 => return stream.shutdown().await,
            count => stream.write_all(&room[..count]).await?,
        }
    }
}

fn main() -> io::Result<()> {
    let address = std::env::args().nth(1);
    let address = address.as_deref().unwrap_or("127.0.0.1:7000");

    let lp = Loop::new()?;
    let listener = lp.block_on(TcpListener::bind(address))?;
    println!("listening on {}", listener.local_addr()?);
    lp.block_on(async {
        loop {
            // An error is that of one client, or passes, as a lack of descriptors does.
            let Ok((stream, peer)) = listener.accept().await else {
                continue;
            };
            blacklight::spawn(async move {
                if let Err(error) = echo(stream).await {
                    eprintln!("{peer}: {error}");
                }
            });
        }
    })
}
