//! A connection to a port that nobody listens at: the error is told of in the poll phase, as all else is.

use blacklight::{Loop, TcpStream};
use std::io;
use std::net::TcpListener;

fn main() -> io::Result<()> {
    let lp = Loop::new()?;
    // Nobody listens at this port any more.
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    lp.block_on(async {
        match TcpStream::connect(address).await {
            Ok(_) => println!("somebody listens there"),
            Err(error) => println!("{:?}", error.kind()),
        }
    });
    Ok(())
}
