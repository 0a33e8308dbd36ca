//! An echo server with a client that says one line: two tasks on one loop.

use blacklight::{Loop, TcpListener, TcpStream};
use std::io;

async fn serve(listener: TcpListener) -> io::Result<()> {
    let (stream, _) = listener.accept().await?;
    println!("server: a client has come");
    let mut buf = [0; 64];
    loop {
        let count = stream.read(&mut buf).await?;
        if count == 0 {
            println!("server: the client is at its end");
            return Ok(());
        }
        println!("server: read {:?}", String::from_utf8_lossy(&buf[..count]));
        stream.write_all(&buf[..count]).await?;
    }
}

fn main() -> io::Result<()> {
    let lp = Loop::new()?;
    lp.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let server = blacklight::spawn(serve(listener));
        let client = TcpStream::connect(address).await?;
        client.write_all(b"hello").await?;
        let mut answer = [0; 5];
        client.read_exact(&mut answer).await?;
        println!("client: got back {:?}", String::from_utf8_lossy(&answer));
        drop(client);
        server.await.expect("it does not panic")
    })
}
