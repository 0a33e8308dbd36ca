//! Handing a trace to the Perfetto UI, as Perfetto's own script `open_trace_in_ui` does: the page is opened with the address of the file on
//! this machine, on the one port that the page's security policy lets it ask, and the file is served to it once.
//!
//! Nobody else gets the file. A browser says for which page it asks (`Origin`), and under which name it knows this machine (`Host`);
//! both must be right, so that no other page gets it, not even through a name of its own for this machine.

use crate::serve::read_request;
use crate::words::{duration, tell};
use anyhow::{Context as _, Result};
use blacklight::{Loop, Signals, TcpListener, TcpStream};
use std::fs::File;
use std::future::{Future, poll_fn};
use std::io::{self, Read};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::pin::{Pin, pin};
use std::process::{Command, Stdio};
use std::task::Poll;
use std::time::Duration;

/// The port that the page's security policy allows.
const PORT: u16 = 9001;
/// Where the page is.
const PAGE: &str = "https://ui.perfetto.dev";
/// How long the file is offered.
const OFFER: Duration = Duration::from_secs(300);
/// How long a client may take to ask.
const PATIENCE: Duration = Duration::from_secs(10);
/// The clients that are answered at a time. A browser connects more often than it asks.
const CLIENTS: usize = 64;

/// A file that is handed over.
struct Offer<'a> {
    file: &'a Path,
    /// The name that it is asked for by.
    name: String,
    port: u16,
}

/// Opens the page and serves the file until the page has it, nobody has asked for long, or a signal comes.
pub(super) fn show(lp: &Loop, signals: &mut Signals, file: &Path) -> Result<()> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, PORT));
    let listener = lp.block_on(TcpListener::bind(address)).with_context(|| {
        format!("cannot serve the trace on {address}, the only address that the page may ask")
    })?;
    let offer = Offer {
        file,
        name: name_of(file),
        port: PORT,
    };
    let url = offer.url();
    tell(&format!("opening {url}; Ctrl-C ends the serving"));
    let browser = Command::new("xdg-open")
        .arg(&url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    if browser.is_err() {
        tell("there is no xdg-open to open it with: open it yourself");
    }
    match lp.block_on(hand_over(&listener, &offer, signals, OFFER))? {
        End::Served => tell("the page has the trace"),
        End::Interrupted => {}
        End::NotAsked => {
            let offer = duration(OFFER.as_nanos() as u64);
            tell(&format!("nobody has asked for the trace in {offer}"));
        }
    }
    Ok(())
}

/// How an offer has ended.
#[derive(PartialEq, Eq, Debug)]
enum End {
    Served,
    NotAsked,
    Interrupted,
}

/// Serves the file until it was served, a signal has come, or the time is over.
async fn hand_over(
    listener: &TcpListener,
    offer: &Offer<'_>,
    signals: &mut Signals,
    time: Duration,
) -> io::Result<End> {
    let mut served = pin!(blacklight::timeout(time, offer.serve(listener)));
    let mut signal = pin!(signals.recv());
    poll_fn(|context| {
        if signal.as_mut().poll(context).is_ready() {
            return Poll::Ready(Ok(End::Interrupted));
        }
        served.as_mut().poll(context).map(|served| match served {
            Ok(served) => served.map(|()| End::Served),
            Err(_) => Ok(End::NotAsked),
        })
    })
    .await
}

/// The file's name, with nothing in it that a URL would have to escape.
fn name_of(file: &Path) -> String {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let plain = |c: char| match c {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '.' | '-' | '_' => c,
        _ => '_',
    };
    name.chars().map(plain).collect()
}

impl Offer<'_> {
    /// The page with the address of the file.
    fn url(&self) -> String {
        let (name, port) = (&self.name, self.port);
        format!("{PAGE}/#!/?url=http://127.0.0.1:{port}/{name}")
    }

    /// Answers clients until one has received the file.
    async fn serve(&self, listener: &TcpListener) -> io::Result<()> {
        let mut clients: Vec<Pin<Box<dyn Future<Output = bool> + '_>>> = Vec::new();
        let mut accepting = Box::pin(listener.accept());
        poll_fn(|context| {
            while let Poll::Ready(accepted) = accepting.as_mut().poll(context) {
                accepting.set(listener.accept());
                let (stream, _) = match accepted {
                    Ok(accepted) => accepted,
                    Err(error) => return Poll::Ready(Err(error)),
                };
                if clients.len() < CLIENTS {
                    // A client that leaves or talks nonsense has only itself to blame.
                    let client =
                        async move { self.answer(&stream).await.is_ok_and(|served| served) };
                    clients.push(Box::pin(client));
                }
            }
            let mut is_served = false;
            clients.retain_mut(|client| match client.as_mut().poll(context) {
                Poll::Ready(served) => {
                    is_served |= served;
                    false
                }
                Poll::Pending => true,
            });
            match is_served {
                true => Poll::Ready(Ok(())),
                false => Poll::Pending,
            }
        })
        .await
    }

    /// Answers one request. Returns whether it has received the file.
    async fn answer(&self, stream: &TcpStream) -> io::Result<bool> {
        let request = blacklight::timeout(PATIENCE, read_request(stream)).await;
        let request = request.map_err(|_| io::ErrorKind::TimedOut)??;
        let status = self.status(&request.unwrap_or_default());
        let mut file = match status {
            "200 OK" => Some(File::open(self.file)?),
            _ => None,
        };
        let length = match &file {
            Some(file) => file.metadata()?.len(),
            None => 0,
        };
        // Others are told nothing that their pages could read.
        let permission = match status {
            "403 Forbidden" => String::new(),
            _ => format!(
                "Access-Control-Allow-Origin: {PAGE}\r\nAccess-Control-Allow-Private-Network: true\r\nVary: Origin\r\n"
            ),
        };
        let head = format!(
            "HTTP/1.1 {status}\r\n{permission}Cache-Control: no-cache\r\nContent-Type: application/octet-stream\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await?;
        if let Some(file) = &mut file {
            let mut room = vec![0; 64 * 1024];
            loop {
                match file.read(&mut room)? {
                    0 => break,
                    count => stream.write_all(&room[..count]).await?,
                }
            }
        }
        stream.shutdown().await?;
        Ok(file.is_some())
    }

    /// The status of the answer to a request.
    fn status(&self, request: &str) -> &'static str {
        let mut lines = request.split("\r\n");
        let mut words = lines.next().unwrap_or_default().split(' ');
        let (method, path) = (words.next(), words.next());
        let headers: Vec<(&str, &str)> = lines.filter_map(|line| line.split_once(':')).collect();
        let is_only = |name: &str, wanted: &str| {
            let mut values = headers
                .iter()
                .filter(|(of, _)| of.eq_ignore_ascii_case(name))
                .map(|(_, value)| value.trim());
            values.next() == Some(wanted) && values.next().is_none()
        };
        let host = format!("127.0.0.1:{}", self.port);
        if !is_only("origin", PAGE) || !is_only("host", &host) {
            return "403 Forbidden";
        }
        let is_it = path.and_then(|path| path.strip_prefix('/')) == Some(&self.name);
        match method {
            Some("OPTIONS") => "204 No Content",
            Some("GET") if is_it => "200 OK",
            _ => "404 Not Found",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blacklight::SignalKind;
    use std::io::Write;

    /// An offer on a free port: where it is, and how it has ended.
    fn offer(
        path: &Path,
        time: Duration,
        client: impl FnOnce(SocketAddr, String) + Send + 'static,
    ) -> End {
        let lp = Loop::new().expect("a loop");
        let mut signals = Signals::new([SignalKind::SIGUSR2]).expect("signals");
        let listener = lp.block_on(TcpListener::bind("127.0.0.1:0"));
        let listener = listener.expect("a port");
        let address = listener.local_addr().expect("it has one");
        let offer = Offer {
            file: path,
            name: name_of(path),
            port: address.port(),
        };
        let name = offer.name.clone();
        let client = std::thread::spawn(move || client(address, name));
        let end = lp.block_on(hand_over(&listener, &offer, &mut signals, time));
        client.join().expect("the client ends");
        end.expect("it serves")
    }

    fn ask(address: SocketAddr, request: &str, headers: &str) -> String {
        let mut stream = std::net::TcpStream::connect(address).expect("the server listens");
        write!(stream, "{request} HTTP/1.1\r\n{headers}\r\n").expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        answer
    }

    #[test]
    fn the_page_gets_the_file_and_nobody_else() {
        let path = std::env::temp_dir().join(format!("trace {}.pftrace", std::process::id()));
        std::fs::write(&path, "the trace").expect("there is room");
        let end = offer(&path, OFFER, |address, name| {
            assert!(name.starts_with("trace_"), "{name}");
            // A browser connects ahead of time, and says nothing.
            let silent = std::net::TcpStream::connect(address).expect("the server listens");
            let host = format!("Host: {address}\r\n");
            let page = format!("{host}origin: https://ui.perfetto.dev\r\n");
            let file = format!("GET /{name}");
            for (request, headers) in [
                (&*file, host.clone()),
                (&*file, format!("{host}Origin: null\r\n")),
                (&*file, format!("{host}Origin: https://evil.example\r\n")),
                (&*file, format!("{page}Origin: https://evil.example\r\n")),
                (&*file, page.replace("127.0.0.1", "evil.example")),
                (
                    "OPTIONS /",
                    format!("{host}Origin: https://ui.perfetto.dev.x\r\n"),
                ),
            ] {
                let answer = ask(address, request, &headers);
                assert!(answer.starts_with("HTTP/1.1 403 "), "{headers}: {answer}");
                assert!(!answer.contains("Allow") && !answer.contains("the trace"));
            }
            let allowed = "Access-Control-Allow-Origin: https://ui.perfetto.dev\r\n";
            // The page asks whether a trace processor listens here.
            for request in [
                "POST /status",
                "GET /etc/passwd",
                "GET /",
                &file[..file.len() - 1],
            ] {
                let answer = ask(address, request, &page);
                assert!(answer.starts_with("HTTP/1.1 404 "), "{request}: {answer}");
                assert!(answer.contains(allowed) && answer.ends_with("\r\n\r\n"));
            }
            // As many bytes as are read, so that the connection is not reset.
            let mut endless = std::net::TcpStream::connect(address).expect("the server listens");
            endless.write_all(&[b'x'; 9 * 1024]).expect("it reads");
            let mut answer = String::new();
            endless.read_to_string(&mut answer).expect("it answers");
            assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
            let preflight = ask(address, &format!("OPTIONS /{name}"), &page);
            assert!(preflight.starts_with("HTTP/1.1 204 "), "{preflight}");
            assert!(preflight.contains("Access-Control-Allow-Private-Network: true\r\n"));
            let trace = ask(address, &file, &page);
            assert!(trace.starts_with("HTTP/1.1 200 OK\r\n"), "{trace}");
            assert!(trace.contains(allowed), "{trace}");
            assert!(trace.ends_with("\r\n\r\nthe trace"), "{trace}");
            drop(silent);
        });
        let _ = std::fs::remove_file(path);
        assert_eq!(end, End::Served);
    }

    #[test]
    fn an_offer_that_nobody_takes_ends() {
        let time = Duration::from_millis(5);
        let end = offer(Path::new("x"), time, |_, _| {});
        assert_eq!(end, End::NotAsked);
    }

    #[test]
    fn the_page_is_told_where_the_file_is() {
        let offer = Offer {
            file: Path::new("/tmp/a trace.pftrace"),
            name: name_of(Path::new("/tmp/a trace.pftrace")),
            port: PORT,
        };
        let url = "https://ui.perfetto.dev/#!/?url=http://127.0.0.1:9001/a_trace.pftrace";
        assert_eq!(offer.url(), url);
    }
}
