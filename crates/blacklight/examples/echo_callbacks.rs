//! An echo server with closures, as one would write it with libuv.
//!
//! ```sh
//! cargo run --example echo_callbacks      # and elsewhere: nc 127.0.0.1 7000
//! ```
//!
//! The first argument is the address to listen at. A stream that is detached belongs to the loop, until it is closed. A client
//! that does not take back what it has sent is not read from meanwhile.

use blacklight::{Loop, Mode, TcpListener, TcpStream};
use std::io;

fn echo(stream: &TcpStream) -> io::Result<()> {
    stream.read_start(|_, stream, bytes| {
        let client = stream.clone();
        let begun = match bytes {
            Ok([]) => stream.shutdown_then(move |_, _| client.close()),
            Ok(bytes) => {
                stream.read_stop();
                stream.write_then(bytes, move |_, written| {
                    written
                        .and_then(|()| echo(&client))
                        .unwrap_or_else(|error| give_up(&client, &error));
                })
            }
            Err(error) => Err(error),
        };
        begun.unwrap_or_else(|error| give_up(stream, &error));
    })
}

fn give_up(client: &TcpStream, error: &io::Error) {
    eprintln!("a client is lost: {error}");
    client.close();
}

fn main() -> io::Result<()> {
    let address = std::env::args().nth(1);
    let address = address.as_deref().unwrap_or("127.0.0.1:7000");

    let lp = Loop::new()?;
    let listener = lp.block_on(TcpListener::bind(address))?;
    println!("listening on {}", listener.local_addr()?);
    listener.accept_start(|_, _, stream| match stream {
        Ok(stream) => {
            echo(&stream).unwrap_or_else(|error| give_up(&stream, &error));
            stream.detach();
        }
        Err(error) => eprintln!("a client is turned away: {error}"),
    })?;
    lp.run(Mode::Default);
    Ok(())
}
