//! A watcher of a descriptor: it tells of readiness, and the program reads and writes by itself.
//!
//! This is how a library with sockets of its own joins the loop.

use blacklight::{AsyncFd, Loop};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;

fn main() -> io::Result<()> {
    let lp = Loop::new()?;
    let (near, mut far) = UnixStream::pair()?;
    let near = AsyncFd::new(near)?;
    lp.block_on(async {
        near.writable().await?;
        println!("writable: there is room");
        far.write_all(b"hello")?;
        near.readable().await?;
        let mut bytes = [0; 16];
        let count = near.get_ref().read(&mut bytes)?;
        println!("readable: {:?}", String::from_utf8_lossy(&bytes[..count]));
        drop(far);
        near.readable().await?;
        if near.get_ref().read(&mut bytes)? == 0 {
            println!("the other end has gone");
        }
        Ok(())
    })
}
