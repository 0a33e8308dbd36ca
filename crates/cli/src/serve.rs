//! A small web server for scrapers of this machine, on a loop of our own.
//!
//! It answers `GET /metrics` and nothing else, to clients that know it by a name of this machine, so
//! that no web page in a browser can read it through a name of its own (DNS rebinding). Each client is a task with a limit of time
//! and of bytes.

use crate::words::tell;
use anyhow::{Context, Result};
use blacklight::{Loop, TcpListener, TcpStream};
use blacklight_record::read::Error;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

/// The bytes that a request may have.
const REQUEST: usize = 8 * 1024;
/// How long a client may take for everything.
const PATIENCE: Duration = Duration::from_secs(10);
/// The clients that are served at a time.
const CLIENTS: usize = 64;
/// How often the process is looked at, whether it still runs.
const INTERVAL: Duration = Duration::from_secs(1);
/// The pause after the system has refused a connection, mostly for want of descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// An answer: its status, its type and its text.
type Answer = (&'static str, &'static str, String);

/// What all clients share.
struct Server<F> {
    port: u16,
    clients: Cell<usize>,
    text: RefCell<F>,
}

/// Serves text at `/metrics` until the process that it is about has ended.
pub(crate) fn metrics<F>(port: u16, text: F, is_alive: impl Fn() -> bool) -> Result<()>
where
    F: FnMut() -> Result<String, Error> + 'static,
{
    let lp = Loop::new()?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let listener = lp.block_on(TcpListener::bind(address));
    let listener = listener.with_context(|| format!("cannot listen at {address}"))?;
    let address = listener.local_addr()?;
    tell(&format!("serving http://{address}/metrics"));
    let server = Rc::new(Server {
        port: address.port(),
        clients: Cell::new(0),
        text: RefCell::new(text),
    });
    lp.block_on(async {
        let mut accepting = pin!(accept(&listener, &server));
        let mut ending = pin!(end(is_alive));
        poll_fn(|context| match ending.as_mut().poll(context) {
            Poll::Ready(ended) => Poll::Ready(ended),
            Poll::Pending => accepting.as_mut().poll(context).map(|never| match never {}),
        })
        .await
    });
    Ok(())
}

/// Waits until the process has ended.
async fn end(is_alive: impl Fn() -> bool) {
    while is_alive() {
        blacklight::sleep(INTERVAL).await;
    }
}

/// Takes clients, each into a task of its own.
async fn accept<F>(listener: &TcpListener, server: &Rc<Server<F>>) -> std::convert::Infallible
where
    F: FnMut() -> Result<String, Error> + 'static,
{
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            blacklight::sleep(PAUSE).await;
            continue;
        };
        if server.clients.get() == CLIENTS {
            continue;
        }
        server.clients.set(server.clients.get() + 1);
        let server = Rc::clone(server);
        blacklight::spawn(async move {
            // A client that leaves or is too slow has only itself to blame.
            let _ = blacklight::timeout(PATIENCE, server.answer(&stream)).await;
            server.clients.set(server.clients.get() - 1);
        });
    }
}

impl<F: FnMut() -> Result<String, Error>> Server<F> {
    async fn answer(&self, stream: &TcpStream) -> io::Result<()> {
        let (status, kind, text) = match read_request(stream).await? {
            Some(request) => self.respond(&request),
            None => plain(
                "431 Request Header Fields Too Large",
                "the request is too long",
            ),
        };
        let length = text.len();
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
        );
        stream
            .write_all(&[head.as_bytes(), text.as_bytes()].concat())
            .await?;
        stream.shutdown().await
    }

    fn respond(&self, request: &str) -> Answer {
        match refusal(request, self.port) {
            Some(answer) => answer,
            None => match (self.text.borrow_mut())() {
                Ok(text) => (
                    "200 OK",
                    "application/openmetrics-text; version=1.0.0; charset=utf-8",
                    text,
                ),
                Err(error) => plain("503 Service Unavailable", &error.to_string()),
            },
        }
    }
}

/// An answer in one sentence.
fn plain(status: &'static str, sentence: &str) -> Answer {
    (status, "text/plain; charset=utf-8", format!("{sentence}\n"))
}

/// Reads the head of a request; none if that is too long.
pub(crate) async fn read_request(stream: &TcpStream) -> io::Result<Option<String>> {
    let mut request = Vec::new();
    let mut room = [0; 1024];
    loop {
        let count = stream.read(&mut room).await?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        // The end may begin in what was read before.
        let from = request.len().saturating_sub(3);
        request.extend_from_slice(&room[..count]);
        let end = request[from..]
            .windows(4)
            .position(|four| four == b"\r\n\r\n");
        if let Some(end) = end {
            request.truncate(from + end);
            return Ok(Some(String::from_utf8_lossy(&request).into_owned()));
        }
        if request.len() > REQUEST {
            return Ok(None);
        }
    }
}

/// Why a request is not answered with metrics, if it is not.
fn refusal(request: &str, port: u16) -> Option<Answer> {
    let mut lines = request.split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (method, target, version) = (words.next(), words.next(), words.next());
    if words.next().is_some() || !version.is_some_and(|version| version.starts_with("HTTP/1.")) {
        return Some(plain("400 Bad Request", "this is no request of HTTP/1"));
    }
    let hosts: Vec<&str> = lines
        .filter_map(|line| line.split_once(':'))
        .filter(|(name, _)| name.eq_ignore_ascii_case("host"))
        .map(|(_, value)| value.trim())
        .collect();
    let is_own = |host: &str| {
        let names = ["127.0.0.1", "localhost", "[::1]"];
        let mut own = names.iter().map(|name| format!("{name}:{port}"));
        own.any(|own| own.eq_ignore_ascii_case(host))
    };
    if !matches!(hosts[..], [host] if is_own(host)) {
        let sentence = format!("the host must be 127.0.0.1:{port} or localhost:{port}");
        return Some(plain("403 Forbidden", &sentence));
    }
    let path = target.unwrap_or_default().split('?').next();
    if path != Some("/metrics") {
        return Some(plain("404 Not Found", "there is only /metrics"));
    }
    if method != Some("GET") {
        return Some(plain("405 Method Not Allowed", "the method must be GET"));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of the status of a request that is refused; 200 for others.
    fn status(request: &str) -> u32 {
        let refused = refusal(request, 9000);
        let status = refused.map_or("200", |(status, ..)| &status[..3]);
        status.parse().expect("a number")
    }

    #[test]
    fn only_metrics_for_this_machine_are_served() {
        for host in ["127.0.0.1:9000", "LocalHost:9000", "[::1]:9000"] {
            let request = format!("GET /metrics HTTP/1.1\r\nhost: {host}");
            assert_eq!(status(&request), 200, "{host}");
        }
        let hosts = [
            "evil.example:9000",
            "127.0.0.1",
            "127.0.0.1:90",
            "",
            "localhost:9000.x",
        ];
        for host in hosts {
            let request = format!("GET /metrics HTTP/1.1\r\nHost: {host}");
            assert_eq!(status(&request), 403, "{host}");
        }
        let own = "\r\nHost: 127.0.0.1:9000";
        assert_eq!(status("GET /metrics HTTP/1.1"), 403);
        assert_eq!(
            status(&format!("GET /metrics HTTP/1.1{own}\r\nHost: evil")),
            403
        );
        assert_eq!(status(&format!("GET / HTTP/1.1{own}")), 404);
        assert_eq!(status(&format!("GET /metrics/x HTTP/1.1{own}")), 404);
        assert_eq!(status(&format!("POST /metrics HTTP/1.1{own}")), 405);
        assert_eq!(status(&format!("GET /metrics{own}")), 400);
        assert_eq!(status(""), 400);
    }
}
