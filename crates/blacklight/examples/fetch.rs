//! reqwest, a client that needs a runtime of tokio's, beside a loop.
//!
//! ```sh
//! cargo run --example fetch -- http://127.0.0.1:8080/ http://127.0.0.1:8080/other
//! ```
//!
//! The arguments are URLs, which are fetched at the same time. (reqwest knows `https` with its
//! feature for TLS.) tokio's reactor and timers run on a thread of their own; the futures of
//! reqwest are tasks of the loop, beside others, and may use what belongs to it.

use blacklight::{JoinSet, Loop};
use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::thread;
use std::time::Duration;
use tokio::runtime::{self, Handle};
use tokio::sync::oneshot;

/// tokio's reactor and timers, on a thread that ends when this is dropped.
struct Tokio {
    context: Handle,
    end: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Tokio {
    fn start() -> io::Result<Tokio> {
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let context = runtime.handle().clone();
        let (end, ended) = oneshot::channel();
        let run = move || drop(runtime.block_on(ended));
        let thread = thread::Builder::new().name("tokio".into()).spawn(run)?;
        Ok(Tokio {
            context,
            end: Some(end),
            thread: Some(thread),
        })
    }
}

impl Drop for Tokio {
    fn drop(&mut self) {
        drop(self.end.take());
        let _ = self.thread.take().map(thread::JoinHandle::join);
    }
}

fn main() -> io::Result<()> {
    let urls: Vec<String> = std::env::args().skip(1).collect();
    if urls.is_empty() {
        eprintln!("fetch needs URLs");
        std::process::exit(2);
    }
    let tokio = Tokio::start()?;
    // What reqwest asks tokio for on this thread is asked of that runtime.
    let _context = tokio.context.enter();
    let lp = Loop::new()?;
    lp.block_on(async {
        let client = reqwest::Client::builder().no_proxy().build();
        let client = client.map_err(io::Error::other)?;
        let total = Rc::new(Cell::new(0));
        let mut fetches = JoinSet::new();
        for url in urls {
            let (client, total) = (client.clone(), total.clone());
            fetches.spawn(async move {
                let answer = client.get(&url).timeout(Duration::from_secs(60));
                let answer = answer.send().await.map_err(io::Error::other)?;
                let status = answer.status();
                let body = answer.bytes().await.map_err(io::Error::other)?;
                println!("{url}: {status}, {} bytes", body.len());
                total.set(total.get() + body.len());
                io::Result::Ok(())
            });
        }
        while let Some(fetched) = fetches.join_next().await {
            if let Err(error) = fetched? {
                eprintln!("{error}");
            }
        }
        println!("{} bytes in total", total.get());
        Ok(())
    })
}
