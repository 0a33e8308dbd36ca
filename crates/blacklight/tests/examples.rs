//! Each example is run, and does what it says. `cargo test` has built them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tokio_rustls::rustls::pki_types::{CertificateDer, pem::PemObject};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// An example that runs, and does not outlive its test.
struct Example {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Example {
    fn start(name: &str, arguments: &[&str]) -> Example {
        let test = std::env::current_exe().unwrap();
        let target: PathBuf = test.ancestors().nth(2).unwrap().join("examples");
        let mut child = Command::new(target.join(name))
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| {
                panic!("{name} is not built (cargo build --examples): {error}")
            });
        let output = BufReader::new(child.stdout.take().unwrap());
        Example { child, output }
    }

    /// Starts a server for one client, which is connected.
    fn serve(name: &str, more: &[&str]) -> (Example, TcpStream) {
        let arguments = [&["127.0.0.1:0"], more, &["--once"]].concat();
        let mut example = Example::start(name, &arguments);
        let line = example.line();
        let address: SocketAddr = line.rsplit(' ').next().unwrap().parse().unwrap();
        (example, connect(address))
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Waits for the end, which is to be a good one; what the example still had to say.
    fn end(mut self) -> String {
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).unwrap();
        assert!(self.child.wait().unwrap().success());
        rest
    }
}

impl Drop for Example {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    // Rather a test that fails than one that hangs.
    let patience = Some(Duration::from_secs(60));
    stream.set_read_timeout(patience).unwrap();
    stream.set_write_timeout(patience).unwrap();
    stream
}

/// Sends a megabyte from one thread and sees it come back in another.
fn check_echo(name: &str) {
    let (example, stream) = Example::serve(name, &[]);
    let sent: Vec<u8> = (0..1_u32 << 18).flat_map(u32::to_be_bytes).collect();
    let mut come = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            (&stream).write_all(&sent).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
        });
        (&stream).read_to_end(&mut come).unwrap();
    });
    assert!(come == sent, "what came back is not what was sent");
    example.end();
}

#[test]
fn echo() {
    check_echo("echo");
}

#[test]
fn echo_callbacks() {
    check_echo("echo_callbacks");
}

#[test]
fn all_cores() {
    check_echo("all_cores");
}

#[test]
fn chat() {
    let (example, alice) = Example::serve("chat", &[]);
    let bob = connect(alice.peer_addr().unwrap());
    let (her, him) = (alice.local_addr().unwrap(), bob.local_addr().unwrap());
    let mut heard_by_alice = BufReader::new(&alice).lines().map(Result::unwrap);
    let mut heard_by_bob = BufReader::new(&bob).lines().map(Result::unwrap);
    assert_eq!(heard_by_alice.next().unwrap(), format!("{him}: is here"));
    (&alice).write_all(b"one\ntwo\nthr").unwrap();
    (&alice).write_all(b"ee\n").unwrap();
    for word in ["one", "two", "three"] {
        assert_eq!(heard_by_bob.next().unwrap(), format!("{her}: {word}"));
    }
    (&bob).write_all(b"four\n").unwrap();
    assert_eq!(heard_by_alice.next().unwrap(), format!("{him}: four"));
    bob.shutdown(Shutdown::Write).unwrap();
    assert_eq!(heard_by_alice.next().unwrap(), format!("{him}: has left"));
    alice.shutdown(Shutdown::Write).unwrap();
    assert_eq!(heard_by_alice.next(), None);
    example.end();
}

#[test]
fn port_scan() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let open = listener.local_addr().unwrap().port();
    let first = open.saturating_sub(1000).to_string();
    let last = open.saturating_add(1000).to_string();
    let said = Example::start("port_scan", &["127.0.0.1", &first, &last]).end();
    let line = format!("{open} is open");
    assert_eq!(
        said.lines().filter(|said| *said == line).count(),
        1,
        "{said}"
    );

    drop(listener);
    let port = open.to_string();
    let said = Example::start("port_scan", &["127.0.0.1", &port, &port]).end();
    assert_eq!(said, "");
}

/// Asks for a page and closes the connection after it.
fn get(mut stream: impl Read + Write) -> String {
    let request = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    answer.split_once("\r\n\r\n").unwrap().1.to_owned()
}

#[test]
fn http_hello() {
    for name in ["http_hello", "http_hello_tokio"] {
        let (example, stream) = Example::serve(name, &[]);
        assert_eq!(get(stream), "Hello, world!\n");
        example.end();
    }
}

#[test]
fn http_hello_by_http2() {
    let (example, mut stream) = Example::serve("http_hello", &[]);
    // The preface of HTTP/2 with empty settings; the server answers with settings of its own.
    stream
        .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0")
        .unwrap();
    let mut frame = [0; 9];
    stream.read_exact(&mut frame).unwrap();
    assert_eq!(frame[3], 4, "a frame of settings");
    drop(stream);
    example.end();
}

#[test]
fn https_hello() {
    let file = std::env::temp_dir().join(format!("hello-{}.pem", std::process::id()));
    let (example, stream) = Example::serve("https_hello", &[file.to_str().unwrap()]);
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_file(&file).unwrap())
        .unwrap();
    std::fs::remove_file(&file).unwrap();
    let config = ClientConfig::builder()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = "localhost".try_into().unwrap();
    let client = ClientConnection::new(Arc::new(config), name).unwrap();
    assert_eq!(
        get(StreamOwned::new(client, stream)),
        "Hello, secret world!\n"
    );
    example.end();
}
