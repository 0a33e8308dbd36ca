//! A chat server: what one client says, all the others hear.
//!
//! ```sh
//! cargo run --example chat                # and elsewhere, more than once: nc 127.0.0.1 7000
//! ```
//!
//! The first argument is the address to listen at. Everything is on one thread, so the list of clients needs no lock. Each
//! client's task reads; the others are written to in callback style, which queues, so that
//! nobody waits for a slow one. Who is too slow is put out.

use blacklight::{Loop, TcpListener, TcpStream};
use std::{cell::RefCell, collections::BTreeMap, io, net::SocketAddr, rc::Rc};

/// How much may wait to be sent to one client, and how long a line may be.
const TOO_MUCH: usize = 1 << 20;

#[derive(Default)]
struct Room(RefCell<BTreeMap<SocketAddr, TcpStream>>);

impl Room {
    fn say(&self, from: SocketAddr, text: &str) {
        let message = format!("{from}: {text}\n");
        for (_, stream) in self.0.borrow().iter().filter(|(peer, _)| **peer != from) {
            let sent = stream.write_then(message.as_str(), |_, _| ());
            if sent.is_err() || stream.write_queue_size() > TOO_MUCH {
                // Its own task is woken by this, and ends.
                stream.close();
            }
        }
    }

    async fn listen_to(&self, peer: SocketAddr, stream: TcpStream) -> io::Result<()> {
        let (mut line, mut room) = (Vec::new(), [0; 4096]);
        while line.len() < TOO_MUCH {
            let count = stream.read(&mut room).await?;
            if count == 0 {
                return Ok(());
            }
            line.extend_from_slice(&room[..count]);
            while let Some(end) = line.iter().position(|&byte| byte == b'\n') {
                self.say(peer, &String::from_utf8_lossy(&line[..end]));
                line.drain(..=end);
            }
        }
        Err(io::Error::other("a line without an end"))
    }
}

async fn serve(listener: TcpListener) -> io::Result<()> {
    let room = Rc::new(Room::default());
    loop {
        // An error is that of one client, or passes, as a lack of descriptors does.
        let Ok((stream, peer)) = listener.accept().await else {
            continue;
        };
        room.0.borrow_mut().insert(peer, stream.clone());
        room.say(peer, "is here");
        let room = room.clone();
        blacklight::spawn(async move {
            let left = room.listen_to(peer, stream).await;
            room.0.borrow_mut().remove(&peer);
            room.say(peer, if left.is_ok() { "has left" } else { "is lost" });
        });
    }
}

fn main() -> io::Result<()> {
    let address = std::env::args().nth(1);
    let address = address.as_deref().unwrap_or("127.0.0.1:7000");

    let lp = Loop::new()?;
    let listener = lp.block_on(TcpListener::bind(address))?;
    println!("listening on {}", listener.local_addr()?);
    lp.block_on(serve(listener))
}
