//! Each example is run, and does what it says. `cargo test` has built them.

use blacklight::fs::TempDir;
use rustix::process::{Pid, Signal, kill_process};
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

/// The command that runs an example.
fn command(name: &str) -> Command {
    let test = std::env::current_exe().unwrap();
    let target: PathBuf = test.ancestors().nth(2).unwrap().join("examples");
    Command::new(target.join(name))
}

impl Example {
    fn start(name: &str, arguments: &[&str]) -> Example {
        Example::of(command(name).args(arguments))
    }

    fn of(command: &mut Command) -> Example {
        let mut child = command
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| {
                panic!("{command:?} is not built (cargo build --examples): {error}")
            });
        let output = BufReader::new(child.stdout.take().unwrap());
        Example { child, output }
    }

    /// Starts a server, and connects its first client.
    fn serve(name: &str, more: &[&str]) -> (Example, TcpStream) {
        let arguments = [&["127.0.0.1:0"], more].concat();
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

    /// A server goes on, whatever its clients do.
    fn assert_runs(&mut self) {
        assert!(self.child.try_wait().unwrap().is_none());
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
    let (mut example, first) = Example::serve(name, &[]);
    let stream = connect(first.peer_addr().unwrap());
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
    // The first client has had to wait for nobody, and nobody for it.
    (&first).write_all(b"still there?").unwrap();
    let mut answer = [0; 12];
    (&first).read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"still there?");
    example.assert_runs();
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
fn all_cores_ends_with_ctrl_c() {
    let (example, first) = Example::serve("all_cores", &[]);
    drop(first);
    kill_process(Pid::from_child(&example.child), Signal::INT).unwrap();
    example.end();
}

#[test]
fn graceful_finishes_what_it_has_begun() {
    let (mut example, mut stream) = Example::serve("graceful", &["200"]);
    let served = 5;
    for _ in 0..served {
        let mut client = connect(stream.peer_addr().unwrap());
        let request = "GET /first HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        client.write_all(request.as_bytes()).unwrap();
        assert_eq!(example.line(), "answering /first");
        client.read_to_string(&mut String::new()).unwrap();
    }
    let idle = connect(stream.peer_addr().unwrap());
    let request = "GET /last HTTP/1.1\r\nHost: x\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    assert_eq!(example.line(), "answering /last");
    kill_process(Pid::from_child(&example.child), Signal::TERM).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.ends_with("You asked for /last.\n"), "{answer}");
    // One that asked for nothing is closed.
    assert_eq!((&idle).read(&mut [0]).unwrap(), 0);
    assert_eq!(example.line(), "SIGTERM: the server ends");
    // Those that were served are forgotten.
    let line = example.line();
    let left = line.strip_suffix(" connections to finish").unwrap();
    assert!(left.parse::<u32>().unwrap() < served, "{line}");
    assert_eq!(example.end(), "");
}

#[test]
fn chat() {
    let (mut example, alice) = Example::serve("chat", &[]);
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
    example.assert_runs();
}

#[test]
fn port_scan() {
    // An address of the test's own: other tests' servers would take the scanner for a client of theirs.
    const ADDRESS: &str = "127.0.0.77";
    let listener = TcpListener::bind((ADDRESS, 0)).unwrap();
    let open = listener.local_addr().unwrap().port();
    let first = open.saturating_sub(1000).to_string();
    let last = open.saturating_add(1000).to_string();
    let said = Example::start("port_scan", &[ADDRESS, &first, &last]).end();
    let line = format!("{open} is open");
    assert_eq!(
        said.lines().filter(|said| *said == line).count(),
        1,
        "{said}"
    );

    // Nobody listens there, nor is ever given that port.
    let said = Example::start("port_scan", &[ADDRESS, "1", "1"]).end();
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
        let (mut example, stream) = Example::serve(name, &[]);
        let address = stream.peer_addr().unwrap();
        assert_eq!(get(stream), "Hello, world!\n");
        assert_eq!(get(connect(address)), "Hello, world!\n");
        example.assert_runs();
    }
}

#[test]
fn http_hello_by_http2() {
    let (mut example, mut stream) = Example::serve("http_hello", &[]);
    // The preface of HTTP/2 with empty settings; the server answers with settings of its own.
    stream
        .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0")
        .unwrap();
    let mut frame = [0; 9];
    stream.read_exact(&mut frame).unwrap();
    assert_eq!(frame[3], 4, "a frame of settings");
    drop(stream);
    example.assert_runs();
}

#[test]
fn axum_hello() {
    let (mut example, mut stream) = Example::serve("axum_hello", &[]);
    let address = stream.peer_addr().unwrap();
    let ask = |path: &str| {
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        let mut stream = connect(address);
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    for visit in 1..3 {
        let hello = ask("/hello/you");
        assert!(hello.contains("server: blacklight\r\n"), "{hello}");
        let end = format!("\r\n\r\nHello, you! You are visitor {visit}.\n");
        assert!(hello.ends_with(&end), "{hello}");
    }
    assert!(ask("/slow").ends_with("Good things take time.\n"));
    assert!(ask("/nowhere").starts_with("HTTP/1.1 404 "));
    // The protocol is switched, and then everything comes back.
    let request = "GET /echo HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    assert!(
        head.starts_with(b"HTTP/1.1 101 "),
        "{}",
        head.escape_ascii()
    );
    stream.write_all(b"no web any more").unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut echo = String::new();
    stream.read_to_string(&mut echo).unwrap();
    assert_eq!(echo, "no web any more");
    example.assert_runs();
}

#[test]
fn websocket() {
    use tokio_tungstenite::tungstenite::{Error, Message, client};
    let (mut example, stream) = Example::serve("websocket", &[]);
    let address = stream.peer_addr().unwrap();
    let (mut first, answer) = client("ws://localhost/echo", stream).unwrap();
    assert_eq!(answer.status(), 101);
    // Each client is served, and none waits for another.
    let (mut second, _) = client("ws://localhost/echo", connect(address)).unwrap();
    let long = Message::binary(vec![7; 1 << 20]);
    for message in [Message::text("hello"), long, Message::text("")] {
        second.send(message.clone()).unwrap();
        assert_eq!(second.read().unwrap(), message);
    }
    first.send(Message::Ping("you there?".into())).unwrap();
    assert_eq!(first.read().unwrap(), Message::Pong("you there?".into()));
    // One goes without a word, the other as it should.
    drop(second);
    first.close(None).unwrap();
    assert!(first.read().unwrap().is_close());
    assert!(matches!(first.read(), Err(Error::ConnectionClosed)));
    // Whoever does not ask for it does not get it.
    let mut stream = connect(address);
    let request = b"GET /echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    stream.write_all(request).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 426 "), "{answer}");
    example.assert_runs();
}

#[test]
fn fetch() {
    let (mut example, stream) = Example::serve("http_hello", &[]);
    let address = stream.peer_addr().unwrap();
    let urls = ["one", "two"].map(|path| format!("http://{address}/{path}"));
    let fetched = Example::start("fetch", &[&urls[0], &urls[1]]).end();
    for url in &urls {
        let line = format!("{url}: 200 OK, 14 bytes\n");
        assert!(fetched.contains(&line), "{fetched}");
    }
    assert!(fetched.ends_with("28 bytes in total\n"), "{fetched}");
    example.assert_runs();
    // A server that is not there is said, and ends nothing.
    let url = "http://127.0.0.1:1/";
    let mut lost = Example::of(command("fetch").arg(url).stderr(Stdio::piped()));
    let mut said = String::new();
    let errors = lost.child.stderr.take().unwrap();
    BufReader::new(errors).read_to_string(&mut said).unwrap();
    assert!(said.contains("error sending request"), "{said}");
    assert_eq!(lost.end(), "0 bytes in total\n");
}

#[test]
fn https_hello() {
    let file = std::env::temp_dir().join(format!("hello-{}.pem", std::process::id()));
    let (mut example, stream) = Example::serve("https_hello", &[file.to_str().unwrap()]);
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
    example.assert_runs();
}

#[test]
fn embedded() {
    let said = Example::start("embedded", &[]).end();
    let of = |prefix: &str| -> Vec<String> {
        let lines = said.lines().filter_map(|line| line.strip_prefix(prefix));
        lines.map(str::to_owned).collect()
    };
    let ticks = ["tick 1", "tick 2", "tick 3", "tick 4", "tick 5"];
    assert_eq!(of("the loop's timer: "), ticks);
    assert_eq!(of("the loop's task: "), ["42"]);
    assert_eq!(of("the program's own pipe: "), ["0", "1", "2"]);
    assert_eq!(said.lines().count(), 10, "{said}");
    assert_eq!(said.lines().last(), Some("5 ticks"));
}

/// The number before " ms" in a line.
fn milliseconds(line: &str) -> u64 {
    line.split(" ms").next().unwrap().parse().unwrap()
}

#[test]
fn timer_and_slow_io() {
    let said = Example::start("timer_and_slow_io", &[]).end();
    let lines: Vec<_> = said.lines().collect();
    assert_eq!(lines.len(), 3, "{said}");
    let at = |text| lines.iter().position(|line| line.ends_with(text)).unwrap();
    let (read, over) = (at(": read: true"), at(": the callback is over"));
    let timer = at(" have passed since I was scheduled");
    assert_eq!(over, read + 1, "nothing comes between: {said}");
    assert!(milliseconds(lines[read]) >= 95, "{said}");
    assert!(
        milliseconds(lines[over]) >= milliseconds(lines[read]) + 10,
        "{said}"
    );
    assert!(milliseconds(lines[timer]) >= 100, "{said}");
}

#[test]
fn timeout_and_immediate() {
    let said = Example::start("timeout_and_immediate", &[]).end();
    let mut lines: Vec<_> = said.lines().collect();
    let of_io: Vec<_> = lines
        .iter()
        .copied()
        .filter(|line| line.contains("I/O"))
        .collect();
    assert_eq!(
        of_io,
        [
            "from an I/O callback: immediate",
            "from an I/O callback: timeout"
        ]
    );
    lines.retain(|line| !line.contains("I/O"));
    lines.sort_unstable();
    assert_eq!(
        lines,
        [
            "from the main program: immediate",
            "from the main program: timeout"
        ]
    );
}

#[test]
fn supervisor() {
    let directory = TempDir::new_blocking("supervisor").unwrap();
    let flag = directory.path().join("flag");
    let script = r#"if [ -e "$0" ]; then echo again; exec sleep 1000; fi
        touch "$0"; echo at first; exit 3"#;
    let arguments = ["sh", "-c", script, flag.to_str().unwrap()];
    let mut example = Example::start("supervisor", &arguments);
    assert_eq!(example.line(), "at first");
    assert_eq!(example.line(), "again");
    kill_process(Pid::from_child(&example.child), Signal::TERM).unwrap();
    // There is an end to what they say only if its child has ended, too.
    assert_eq!(example.end(), "");
}

#[test]
fn tail() {
    let directory = TempDir::new_blocking("tail").unwrap();
    let (path, other) = (directory.path().join("log"), directory.path().join("other"));
    let lines: Vec<_> = (0..200).map(|number| format!("line {number:03}")).collect();
    std::fs::write(&path, lines.join("\n") + "\n").unwrap();
    let mut example = Example::start("tail", &[path.to_str().unwrap()]);
    // Of 1,800 bytes the last 1,024 begin within line 86.
    for line in &lines[87..] {
        assert_eq!(example.line(), *line);
    }
    let mut log = std::fs::File::options().append(true).open(&path).unwrap();
    log.write_all(b"added\n").unwrap();
    assert_eq!(example.line(), "added");
    std::fs::write(&path, "cut off\n").unwrap();
    assert_eq!(example.line(), "cut off");
    std::fs::write(&other, "replaced\n").unwrap();
    std::fs::rename(&other, &path).unwrap();
    assert_eq!(example.line(), "replaced");
    example.assert_runs();
}

#[test]
fn who_gives_no_argument_is_told_what_to_give() {
    for name in ["fetch", "supervisor", "tail"] {
        let mut example = Example::start(name, &[]);
        assert_eq!(example.child.wait().unwrap().code(), Some(2), "{name}");
    }
}

/// Runs `cat` with this input, and returns what it writes to a pipe, a socket or a file.
fn cat(input: Stdio, to: &str) -> Vec<u8> {
    let mut file = None;
    let (mut reader, output): (Box<dyn Read>, Stdio) = match to {
        "pipe" => {
            let (reader, writer) = std::io::pipe().unwrap();
            (Box::new(reader), writer.into())
        }
        "socket" => {
            let (near, far) = std::os::unix::net::UnixStream::pair().unwrap();
            (Box::new(near), std::os::fd::OwnedFd::from(far).into())
        }
        _ => {
            let own = tempfile(b"");
            let other = own.try_clone().unwrap();
            file = Some(own);
            (Box::new(std::io::empty()), other.into())
        }
    };
    let mut child = command("cat").stdin(input).stdout(output).spawn().unwrap();
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes).unwrap();
    assert!(child.wait().unwrap().success());
    if let Some(mut file) = file {
        std::io::Seek::rewind(&mut file).unwrap();
        file.read_to_end(&mut bytes).unwrap();
    }
    bytes
}

/// A file without a name, with these contents.
fn tempfile(bytes: &[u8]) -> std::fs::File {
    let directory = TempDir::new_blocking("cat").unwrap();
    let mut options = std::fs::File::options();
    let path = directory.path().join("file");
    let mut file = options
        .read(true)
        .write(true)
        .create_new(true)
        .open(path)
        .unwrap();
    file.write_all(bytes).unwrap();
    std::io::Seek::rewind(&mut file).unwrap();
    file
}

#[test]
fn cat_copies_from_and_to_anything() {
    let sent: Vec<u8> = (0..1_u32 << 16).flat_map(u32::to_be_bytes).collect();
    for to in ["pipe", "socket", "file"] {
        assert!(cat(tempfile(&sent).into(), to) == sent, "file to {to}");
        assert!(cat(Stdio::null(), to).is_empty(), "nothing to {to}");
        std::thread::scope(|scope| {
            let (reader, mut writer) = std::io::pipe().unwrap();
            scope.spawn(|| writer.write_all(&sent).map(|()| drop(writer)));
            assert!(cat(reader.into(), to) == sent, "pipe to {to}");
            let (mut near, far) = std::os::unix::net::UnixStream::pair().unwrap();
            scope.spawn(|| near.write_all(&sent).map(|()| drop(near)));
            let far = std::os::fd::OwnedFd::from(far);
            assert!(cat(far.into(), to) == sent, "socket to {to}");
        });
    }
}

#[test]
fn cat_copies_from_and_to_a_terminal() {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
    let mut options = std::fs::File::options();
    let terminal = options.read(true).write(true).open(name).unwrap();
    let (input, output) = (terminal.try_clone().unwrap(), terminal.try_clone().unwrap());
    let mut child = command("cat").stdin(input).stdout(output).spawn().unwrap();
    let mut master = BufReader::new(std::fs::File::from(master));
    master.get_mut().write_all(b"light\n").unwrap();
    // The echo, and the copy.
    for _ in 0..2 {
        let mut line = String::new();
        master.read_line(&mut line).unwrap();
        assert_eq!(line, "light\r\n");
    }
    let flags = rustix::fs::fcntl_getfl(&terminal).unwrap();
    assert!(!flags.contains(rustix::fs::OFlags::NONBLOCK));
    // Ctrl-D at the beginning of a line is the end.
    master.get_mut().write_all(&[4]).unwrap();
    assert!(child.wait().unwrap().success());
}

/// Other processes go on to write to the same pipe, and do not expect it to be non-blocking.
#[test]
fn cat_does_not_make_the_pipes_of_others_non_blocking() {
    let (reader, writer) = std::io::pipe().unwrap();
    let mut cat = command("cat");
    cat.stdin(Stdio::piped())
        .stdout(writer.try_clone().unwrap());
    let mut child = cat.spawn().unwrap();
    drop(cat);
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"x").unwrap();
    let mut byte = [0];
    (&reader).read_exact(&mut byte).unwrap();
    let flags = rustix::fs::fcntl_getfl(&writer).unwrap();
    assert!(!flags.contains(rustix::fs::OFlags::NONBLOCK));
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

/// The programs of the project's README are run as part of the documentation.
#[test]
fn the_readme_shows_programs_of_the_documentation() {
    let readme = concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md");
    let readme = std::fs::read_to_string(readme).unwrap();
    let documentation = include_str!("../src/lib.rs")
        .lines()
        .map_while(|line| line.strip_prefix("//!"))
        .map(|line| line.strip_prefix(' ').unwrap_or(line))
        .collect::<Vec<_>>()
        .join("\n");
    let programs: Vec<_> = readme.split("```rust\n").skip(1).collect();
    assert!(!programs.is_empty());
    for program in programs {
        let program = program.split("```").next().unwrap();
        assert!(documentation.contains(program), "{program}");
    }
}

#[test]
fn no_example_is_forgotten() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/examples");
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let is_here = include_str!("examples.rs").contains(&format!("{name:?}"));
        assert!(is_here, "{name} is not run");
    }
}

#[test]
fn the_environment_chooses_the_poller() {
    let uses_epoll = |poller: &str| {
        let mut server = command("echo");
        server.arg("127.0.0.1:0").env("BLACKLIGHT_POLLER", poller);
        let mut server = Example::of(&mut server);
        assert!(server.line().contains("127.0.0.1"), "it serves");
        let fds = std::fs::read_dir(format!("/proc/{}/fd", server.child.id())).unwrap();
        let mut files = fds.map(|fd| std::fs::read_link(fd.unwrap().path()).unwrap());
        files.any(|file| file.as_os_str() == "anon_inode:[eventpoll]")
    };
    assert!(uses_epoll("epoll") && uses_epoll(""));
    assert!(!uses_epoll("poll") && !uses_epoll("select"));
    let unknown = command("timer_and_slow_io")
        .env("BLACKLIGHT_POLLER", "kqueue")
        .output()
        .unwrap();
    assert!(!unknown.status.success());
    let error = String::from_utf8_lossy(&unknown.stderr);
    assert!(error.contains("Invalid argument"), "{error}");
}
