//! A port scanner: connects to many ports at once, and to none for longer than it is patient.
//!
//! ```sh
//! cargo run --example port_scan                       # all ports of this machine
//! cargo run --example port_scan 127.0.0.1 8000 8100
//! ```
//!
//! A fixed number of tasks take ports from one iterator, which bounds how many connections
//! are tried at once; it needs no lock, since all of them run on one thread. A time-out drops
//! the future that connects, and that gives the connection up.

use blacklight::{Loop, Mode, TcpStream};
use std::cell::RefCell;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;

const AT_ONCE: usize = 256;
const PATIENCE: Duration = Duration::from_millis(500);

/// Whether somebody listens there.
async fn is_open(address: SocketAddr) -> io::Result<bool> {
    let connecting = TcpStream::connect(address);
    match blacklight::timeout(PATIENCE, connecting).await {
        // A socket that the kernel gives the very port it is to reach is connected with itself.
        Ok(Ok(stream)) => Ok(stream.local_addr()? != address),
        Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(false),
        Ok(Err(error)) => Err(error),
        Err(elapsed) => Err(elapsed.into()),
    }
}

fn argument<T: std::str::FromStr>(at: usize, otherwise: T) -> io::Result<T> {
    match std::env::args().nth(at) {
        None => Ok(otherwise),
        Some(text) => text
            .parse()
            .map_err(|_| io::Error::other(format!("{text} makes no sense here"))),
    }
}

fn main() -> io::Result<()> {
    let host = argument(1, IpAddr::from(Ipv4Addr::LOCALHOST))?;
    let ports = argument(2, 1_u16)?..=argument(3, u16::MAX)?;

    let lp = Loop::new()?;
    let ports = Rc::new(RefCell::new(ports));
    for _ in 0..AT_ONCE {
        let ports = ports.clone();
        lp.spawn(async move {
            loop {
                let Some(port) = ports.borrow_mut().next() else {
                    return;
                };
                match is_open(SocketAddr::new(host, port)).await {
                    Ok(true) => println!("{port} is open"),
                    Ok(false) => {}
                    Err(error) => println!("{port}: {error}"),
                }
            }
        });
    }
    // The loop runs until the last task is over.
    lp.run(Mode::Default);
    Ok(())
}
