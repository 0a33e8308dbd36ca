//! `blacklight live` as browsers and others meet it: over its port, and with whatever ends first.

mod ends;
mod moments;

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::time::Duration;

/// How long to wait for what must come. Names of a large program take long to read where there is little time for it.
const LIMIT: Duration = Duration::from_secs(180);

/// A server.
struct Live {
    child: Child,
    said: BufReader<ChildStderr>,
    port: u16,
    token: String,
    /// The process that is shown.
    pid: Option<u32>,
}

impl Drop for Live {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn live(arguments: &[&str]) -> Live {
    let mut command = Command::new(env!("CARGO_BIN_EXE_blacklight"));
    command.args(["live", "--no-open"]).args(arguments);
    started(command)
}

/// A server that has said where its page is.
fn started(mut command: Command) -> Live {
    let command = command.stdin(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the command runs");
    let mut said = BufReader::new(child.stderr.take().expect("it was asked for"));
    let mut url = String::new();
    // A program may have said something before.
    while !url.starts_with("blacklight: http:") {
        url.clear();
        let length = said.read_line(&mut url).expect("it is text");
        assert!(length > 0, "there is no address");
    }
    let url = url.trim().strip_prefix("blacklight: http://127.0.0.1:");
    let (port, path) = url.and_then(|url| url.split_once('/')).expect("a path");
    let (token, pid) = path.split_once('/').expect("a token");
    Live {
        port: port.parse().expect("a port"),
        token: token.to_owned(),
        pid: pid
            .strip_prefix("#pid=")
            .map(|pid| pid.parse().expect("a number")),
        child,
        said,
    }
}

/// A folder of a test's own, with the command in it.
struct Folder(std::path::PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Folder {
    fn new(name: &str) -> Folder {
        let own = format!("live-{name}-{}", std::process::id());
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(own);
        // Numbers of processes are used again, and one that was killed has left its own.
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir(&folder).expect("it is new");
        let folder = Folder(folder);
        let command = env!("CARGO_BIN_EXE_blacklight");
        std::fs::hard_link(command, folder.path("blacklight")).expect("it is on the same disk");
        // The programs of these tests bring their loops with them, so that any library will do to be preloaded: the C library.
        let maps = std::fs::read_to_string("/proc/self/maps").expect("it is text");
        let mut paths = maps.lines().filter_map(|line| line.split(' ').next_back());
        let library = paths.find(|path| path.contains("/libc.so") || path.contains("/ld-musl"));
        let library = library.expect("this program has one");
        std::os::unix::fs::symlink(library, folder.path("libuv.so")).expect("it is new");
        folder
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.join(name)
    }

    /// A server for a program that works in this folder.
    fn live(&self, program: &[impl AsRef<OsStr>]) -> Live {
        let mut command = Command::new(self.path("blacklight"));
        command.args(["live", "--no-open", "--"]).args(program);
        command.current_dir(&self.0).stdout(Stdio::null());
        started(command)
    }
}

impl Live {
    fn connect(&self) -> TcpStream {
        let address = SocketAddr::from(([127, 0, 0, 1], self.port));
        let stream = TcpStream::connect(address).expect("it listens");
        stream.set_read_timeout(Some(LIMIT)).expect("a limit");
        stream
    }

    /// Asks for something of the page, and returns the connection.
    fn ask(&self, path: &str, headers: &str) -> TcpStream {
        let mut stream = self.connect();
        let (port, token) = (self.port, &self.token);
        let host = match headers.to_lowercase().contains("host:") {
            true => String::new(),
            false => format!("Host: 127.0.0.1:{port}\r\n"),
        };
        let request = format!("GET /{token}/{path} HTTP/1.1\r\n{host}{headers}\r\n");
        stream.write_all(request.as_bytes()).expect("it reads");
        stream
    }

    /// The whole answer to a request.
    fn get(&self, path: &str, headers: &str) -> String {
        let mut stream = self.ask(path, &format!("{headers}Connection: close\r\n"));
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("it answers");
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// Whether somebody serves the page still. Another test's server may have got the port meanwhile.
    fn is_served(&self) -> bool {
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port)) else {
            return false;
        };
        let (port, token) = (self.port, &self.token);
        let request = format!(
            "GET /{token}/ HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n"
        );
        let mut answer = String::new();
        let asked = stream.write_all(request.as_bytes());
        let asked = asked.and_then(|()| stream.read_to_string(&mut answer));
        asked.is_ok() && answer.starts_with("HTTP/1.1 200")
    }

    fn events(&self) -> Events {
        let query = self.pid.map_or(String::new(), |pid| format!("?pid={pid}"));
        Events(BufReader::new(self.ask(&format!("events{query}"), "")))
    }

    /// The events from a time on.
    fn events_since(&self, at: u64, headers: &str) -> Events {
        let pid = self.pid.expect("it shows a process");
        let path = format!("events?pid={pid}&past={at}");
        Events(BufReader::new(self.ask(&path, headers)))
    }

    /// What it says next.
    fn says(&mut self) -> String {
        let mut line = String::new();
        self.said.read_line(&mut line).expect("it is text");
        line
    }

    fn signal(&mut self, signal: rustix::process::Signal) -> ExitStatus {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).expect("it runs");
        self.child.wait().expect("it ends")
    }
}

/// A stream of events.
struct Events(BufReader<TcpStream>);

impl Events {
    /// The next event: its name and its data. None when the stream has ended.
    fn next(&mut self) -> Option<(String, String)> {
        let mut name = None;
        loop {
            let mut line = Vec::new();
            if self.0.read_until(b'\n', &mut line).expect("in time") == 0 {
                return None;
            }
            let line = String::from_utf8(line).expect("it is text");
            if let Some(event) = line.strip_prefix("event: ") {
                name = Some(event.trim().to_owned());
            } else if let (Some(data), Some(name)) = (line.strip_prefix("data: "), name.take()) {
                return Some((name, data.trim().to_owned()));
            }
        }
    }

    /// The first frame that has this text.
    fn frame_with(&mut self, text: &str) -> String {
        let begun = std::time::Instant::now();
        loop {
            let (name, data) = self.next().expect("the stream goes on");
            assert_eq!(name, "frame", "{data}");
            if data.contains(text) {
                return data;
            }
            assert!(begun.elapsed() < LIMIT, "there is no {text:?} in {data}");
        }
    }
}

/// Waits until a process has ended, whoever its parent is.
fn until_gone(pid: u32) {
    let begun = std::time::Instant::now();
    let is_there = || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // A zombie has ended; its parent has yet to ask how.
        stat.rsplit_once(')')
            .is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
    };
    while is_there() {
        assert!(begun.elapsed() < LIMIT, "process {pid} is still there");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The record of a process, where this machine has them.
fn record_of(pid: u32) -> bool {
    let runtime = std::env::var("XDG_RUNTIME_DIR").map(|path| format!("{path}/blacklight"));
    let uid = rustix::process::geteuid().as_raw();
    let folders = [
        runtime.unwrap_or_default(),
        format!("/dev/shm/blacklight-{uid}"),
    ];
    let entries = folders
        .iter()
        .flat_map(std::fs::read_dir)
        .flatten()
        .flatten();
    let mut names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.any(|name| name.starts_with(&format!("{pid}.")))
}

#[test]
fn only_the_page_of_the_user_gets_anything() {
    let live = live(&[]);
    let port = live.port;
    let page = live.get("", "");
    assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{page}");
    let (head, markup) = page.split_once("\r\n\r\n").expect("a head");
    let head = head.to_lowercase();
    for header in [
        "content-security-policy: default-src 'none'; script-src 'self';",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "x-content-type-options: nosniff",
        "referrer-policy: no-referrer",
        "cross-origin-resource-policy: same-origin",
        "cache-control: no-store",
    ] {
        assert!(head.contains(header), "{header} is missing: {head}");
    }
    assert!(!head.contains("access-control"), "{head}");
    assert!(
        markup.contains("page.js") && !markup.contains("http"),
        "{markup}"
    );
    for (path, headers, status) in [
        ("page.js", format!("Host: localhost:{port}\r\n"), 200),
        ("page.js", format!("Host: [::1]:{port}\r\n"), 200),
        (
            "page.js",
            format!("Origin: http://127.0.0.1:{port}\r\n"),
            200,
        ),
        ("page.js", format!("Host: rebound.example:{port}\r\n"), 403),
        ("page.js", format!("Host: 127.0.0.1:{}\r\n", port ^ 1), 403),
        ("page.js", "Host: 127.0.0.1\r\n".into(), 403),
        ("events", "Origin: http://evil.example\r\n".into(), 403),
        ("events", "Origin: null\r\n".into(), 403),
        ("../etc/passwd", String::new(), 404),
        ("%2e%2e/page.js", String::new(), 404),
        ("nothing", String::new(), 404),
        ("trace", String::new(), 400),
    ] {
        let answer = live.get(path, &headers);
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status}")),
            "{path} {headers}: {answer}"
        );
        assert!(answer.contains("content-security-policy"), "{answer}");
        assert_eq!(status == 200, answer.len() > 5_000, "{path} {headers}");
    }
}

#[test]
fn nobody_gets_anything_without_the_token() {
    let mut live = live(&[]);
    let token = std::mem::replace(&mut live.token, "0".repeat(40));
    for path in ["", "page.js", "events", "trace?pid=1&from=1&to=2"] {
        assert!(live.get(path, "").starts_with("HTTP/1.1 404"), "{path}");
    }
    live.token = token[..39].to_owned();
    assert!(live.get("", "").starts_with("HTTP/1.1 404"));
    live.token = token.to_uppercase();
    assert!(live.get("", "").starts_with("HTTP/1.1 404"));
    live.token = token;
    assert!(live.get("", "").starts_with("HTTP/1.1 200"));
    // Two servers have nothing in common.
    let other = self::live(&[]);
    assert!(other.token != live.token && other.port != live.port);
}

#[test]
fn nonsense_ends_its_own_connection_only() {
    let live = live(&[]);
    let mut held = live.events();
    for nonsense in [
        &b"\0\xff\r\n\r\n"[..],
        b"GET / HTTP/9\r\n\r\n",
        b"GET /\r\n\r\n",
        b"\x16\x03\x01",
    ] {
        let mut stream = live.connect();
        stream.write_all(nonsense).expect("it reads");
        stream
            .shutdown(std::net::Shutdown::Write)
            .expect("it is open");
        let mut answer = String::new();
        // It may be closed with or without a word.
        let _ = stream.read_to_string(&mut answer);
        assert!(!answer.contains("200 OK"), "{answer}");
    }
    let mut long = live.connect();
    let _ = write!(
        long,
        "GET /{} HTTP/1.1\r\nHost: x\r\n\r\n",
        "a".repeat(200_000)
    );
    let mut answer = String::new();
    let _ = long.read_to_string(&mut answer);
    assert!(!answer.contains("200 OK"), "{answer}");
    assert!(held.next().is_some());
}

#[test]
fn the_demo_shows_its_three_mistakes() {
    let live = live(&["--demo"]);
    let mut events = live.events();
    let first = events.frame_with("\"set\":{");
    assert!(first.contains("\"full\":true"), "{first}");
    events.frame_with("The thread pool is starved: all 4 threads run");
    events.frame_with("Loop 1 (web) was blocked for");
    // The pool's thread says which work it runs.
    events.frame_with("\"work\":\"blacklight::live::demo::export_table");
    // The whole stack, and not only the code that was innermost.
    events.frame_with("[\"blacklight::live::demo::assemble_report (");
    let leak = events.frame_with("Handles may leak");
    assert!(
        leak.contains("made by blacklight::live::demo::remember_client"),
        "{leak}"
    );
    // Changes only, and not everything again.
    let (_, next) = events.next().expect("the stream goes on");
    assert!(
        next.len() < first.len() / 2 + 20_000 && !next.contains("\"full\""),
        "{next}"
    );
    let pid = live.pid.expect("it was started");
    let now = blacklight_record::read::now_ns();
    let from = now - 2_000_000_000;
    let trace = live.get(&format!("trace?pid={pid}&from={from}&to={now}"), "");
    assert!(
        trace.starts_with("HTTP/1.1 200") && trace.len() > 4_000,
        "{} bytes",
        trace.len()
    );
    assert!(trace.contains("pool thread 1") && trace.contains("loop 1 (web)"));
    let range = trace
        .lines()
        .find_map(|line| line.strip_prefix("blacklight-range: "));
    let (first, last) = range.and_then(|of| of.split_once(' ')).expect("a range");
    let (first, last): (u64, u64) = (first.parse().unwrap(), last.trim().parse().unwrap());
    assert!(from <= first && first < last && last <= now, "{range:?}");
    let early = live.get(&format!("trace?pid={pid}&from=1&to=2"), "");
    assert!(early.ends_with("are not kept any more"), "{early}");
    let none = live.get("trace?pid=1&from=1&to=2", "");
    assert!(none.ends_with("process 1 is not watched"), "{none}");
}

/// The version of a frame.
fn version(frame: &str) -> u64 {
    let text = frame.strip_prefix("{\"v\":").expect("a frame");
    text[..text.find(',').expect("more")]
        .parse()
        .expect("a number")
}

#[test]
fn who_does_not_read_misses_frames_and_gets_the_newest_state() {
    use rustix::net::{AddressFamily, SocketType, connect, socket, sockopt};
    let live = live(&["--demo"]);
    let mut fast = live.events();
    fast.frame_with("/answers\":");
    // A client with hardly any room for what it does not read.
    let slow = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
    sockopt::set_socket_recv_buffer_size(&slow, 4096).expect("it is small");
    connect(&slow, &SocketAddr::from(([127, 0, 0, 1], live.port))).expect("it listens");
    let mut slow = TcpStream::from(slow);
    slow.set_read_timeout(Some(LIMIT)).expect("a limit");
    let (port, token, pid) = (live.port, &live.token, live.pid.expect("it was started"));
    write!(
        slow,
        "GET /{token}/events?pid={pid} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n"
    )
    .expect("it reads");
    let mut slow = Events(BufReader::new(slow));
    let first = slow.frame_with("\"full\":true");
    let (mut taken, mut bytes) = (0, 0);
    while bytes < 500_000 {
        let (_, frame) = fast.next().expect("the stream goes on");
        (taken, bytes) = (version(&frame), bytes + frame.len());
    }
    let (mut last, mut missed) = (version(&first), 0);
    while last < taken {
        let (_, frame) = slow.next().expect("the stream goes on");
        missed += version(&frame) - last - 1;
        last = version(&frame);
    }
    assert!(missed > 0, "all of {bytes} bytes were kept for it");
}

#[test]
fn a_program_that_ends_is_told_of_and_the_page_stays() {
    let live = live(&["--demo"]);
    let mut events = live.events();
    events.frame_with("/answers\":");
    let pid = live.pid.expect("it was started");
    let killed = rustix::process::Pid::from_raw(pid as i32).expect("a process");
    rustix::process::kill_process(killed, rustix::process::Signal::KILL).expect("it runs");
    let ended = events.frame_with("\"state\":\"ended\"");
    assert!(ended.contains("signal: 9 (SIGKILL)"), "{ended}");
    // Who comes late sees what was read last.
    let late = live.events().frame_with("/answers\":");
    assert!(
        late.contains("\"state\":\"ended\"") && late.contains("/turn/1\":"),
        "{late}"
    );
    until_gone(pid);
}

#[test]
fn a_server_that_stops_says_so_and_takes_the_program_with_it() {
    for signal in [
        rustix::process::Signal::INT,
        rustix::process::Signal::TERM,
        rustix::process::Signal::HUP,
    ] {
        let mut live = live(&["--demo"]);
        let mut events = live.events();
        events.frame_with("/answers\":");
        let pid = live.pid.expect("it was started");
        let status = live.signal(signal);
        assert!(status.success(), "{status}");
        let end = loop {
            let (name, data) = events.next().expect("it says goodbye");
            if name == "end" {
                break data;
            }
        };
        assert_eq!(end, "\"blacklight live was stopped\"");
        assert_eq!(events.next(), None);
        until_gone(pid);
        // Nothing is left: neither the port nor the record.
        assert!(!live.is_served());
        assert!(!record_of(pid) && !record_of(live.child.id()));
    }
}

#[test]
fn a_server_that_is_killed_takes_the_program_with_it() {
    let mut live = live(&["--demo"]);
    let mut events = live.events();
    events.frame_with("/answers\":");
    let pid = live.pid.expect("it was started");
    assert!(live.is_served());
    assert!(!live.signal(rustix::process::Signal::KILL).success());
    while events.next().is_some() {}
    until_gone(pid);
    assert!(!live.is_served());
}

#[test]
fn who_shows_no_token_gives_way_to_the_user() {
    let live = live(&[]);
    let held: Vec<TcpStream> = (0..80).map(|_| live.connect()).collect();
    assert!(live.get("", "").starts_with("HTTP/1.1 200"));
    drop(held);
    // Who is turned away is hung up on.
    let mut stream = live.connect();
    let port = live.port;
    write!(stream, "GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n").expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it is closed");
    assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
}

#[test]
fn other_users_get_something_with_the_token_only() {
    use std::os::unix::process::CommandExt;
    let folder = Folder::new("users");
    let (live, _, once) = opened(&folder);
    let (port, token) = (live.port, &live.token);
    let ask = |uid: u32, path: &str| {
        let script = format!(
            "exec 3<>/dev/tcp/127.0.0.1/{port}\n\
             printf 'GET /{path} HTTP/1.1\\r\\nHost: 127.0.0.1:{port}\\r\\nConnection: close\\r\\n\\r\\n' >&3\n\
             cat <&3"
        );
        let mut command = Command::new("bash");
        command.args(["-c", &script]).uid(uid).current_dir("/");
        let output = command.stderr(Stdio::null()).output().expect("bash runs");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let own = rustix::process::geteuid().as_raw();
    // Only the superuser can be somebody else.
    if own == 0 {
        let page = ask(65534, &format!("{token}/"));
        assert!(page.starts_with("HTTP/1.1 200"), "{page}");
        assert!(ask(65534, "").starts_with("HTTP/1.1 404"));
        // They can read the key of the browser, which is not used up by that.
        let answer = ask(65534, &once);
        assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
        assert!(answer.ends_with("there is nothing here"), "{answer}");
        assert!(!answer.contains(token), "{answer}");
    }
    let answer = ask(own, &once);
    assert!(answer.starts_with("HTTP/1.1 303"), "{answer}");
    assert!(answer.contains(token), "{answer}");
}

/// A server that has started the browser, and the browser's process and the path that it was given.
fn opened(folder: &Folder) -> (Live, u32, String) {
    let script = format!(
        "#!/bin/sh\necho $$ $1 > {0}.new\nmv {0}.new {0}\n",
        folder.path("opened").display()
    );
    std::fs::write(folder.path("xdg-open"), script).expect("there is room");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder.path("xdg-open"), mode).expect("it is ours");
    let path = std::env::var("PATH").expect("there is one");
    let mut command = Command::new(folder.path("blacklight"));
    command
        .arg("live")
        .env("PATH", format!("{}:{path}", folder.0.display()));
    let live = started(command);
    let begun = std::time::Instant::now();
    let opened = loop {
        match std::fs::read_to_string(folder.path("opened")) {
            Ok(opened) => break opened,
            Err(_) => assert!(begun.elapsed() < LIMIT, "it is not opened"),
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    let (pid, url) = opened.trim().split_once(' ').expect("two words");
    let base = format!("http://127.0.0.1:{}/", live.port);
    let once = url.strip_prefix(&base).expect("it is our server");
    let pid = pid.parse().expect("a number");
    (live, pid, once.to_owned())
}

#[test]
fn the_browser_is_given_an_address_that_opens_once() {
    let folder = Folder::new("browser");
    let (live, pid, once) = opened(&folder);
    assert!(!once.contains(&live.token), "{once}");
    for status in ["303", "404"] {
        let mut stream = live.connect();
        let port = live.port;
        write!(
            stream,
            "GET /{once} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n"
        )
        .expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it is closed");
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status}")),
            "{answer}"
        );
        assert_eq!(status == "303", answer.contains(&live.token), "{answer}");
    }
    // It is waited for, and is no zombie.
    let begun = std::time::Instant::now();
    while Path::new(&format!("/proc/{pid}")).exists() {
        assert!(begun.elapsed() < LIMIT, "process {pid} is a zombie");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn browsers_that_leave_are_not_missed() {
    let live = live(&["--demo"]);
    for _ in 0..100 {
        let mut stream = live.ask("events", "");
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("it answers");
    }
    // More than are served at a time have come and gone.
    live.events().frame_with("/answers\":");
}

#[test]
fn a_recording_is_served_as_it_was_saved() {
    let folder = std::env::temp_dir().join(format!("blacklight-live-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir(&folder).expect("it is new");
    let path = folder.join("recording");
    let file = path.to_str().expect("it is text");
    let mut saving = live(&["--demo", "--save", file]);
    // No browser looks, and it is saved all the same.
    let saved = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
    let begun = std::time::Instant::now();
    while saved(&path).lines().count() < 8 {
        assert!(begun.elapsed() < LIMIT, "only {:?}", saved(&path));
        std::thread::sleep(Duration::from_millis(20));
    }
    let pid = saving.pid;
    assert!(saving.signal(rustix::process::Signal::INT).success());
    let mut said = String::new();
    saving.said.read_to_string(&mut said).expect("it is text");
    assert!(said.contains("has the program's command line"), "{said}");
    let text = saved(&path);
    // It begins when there is something to see.
    let first = text.lines().nth(1).expect("a frame");
    assert!(
        first.contains("/answers\":") && first.contains("/turn/1\":"),
        "{first}"
    );
    let shown = live(&[file]);
    assert_eq!(shown.pid, pid);
    let mut events = shown.events();
    assert_eq!(events.next().expect("the first").0, "recording");
    for line in text.lines().skip(1) {
        assert_eq!(events.next(), Some(("frame".into(), line.into())));
    }
    assert_eq!(events.next().expect("the last").0, "whole");
    let trace = shown.get("trace?pid=1&from=1&to=2", "");
    assert!(
        trace.ends_with("a recording has no events to make a trace of"),
        "{trace}"
    );
    // A file is not written over, and the program that was started for it ends.
    let refused = failure(&["live", "--no-open", "--demo", "--save", file]);
    assert!(refused.contains("cannot write"), "{refused}");
    std::fs::write(&path, "<script>").expect("there is room");
    let refused = failure(&["live", "--no-open", file]);
    assert!(
        refused.contains("cannot be shown: it is no recording"),
        "{refused}"
    );
    std::fs::remove_dir_all(&folder).expect("it is there");
}

/// What the command says when it fails, which leaves nothing behind.
fn failure(arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_blacklight"));
    command.args(arguments).stdin(Stdio::null());
    let child = command.stderr(Stdio::piped()).spawn();
    let child = child.expect("the command runs");
    let pid = child.id();
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(1));
    assert!(!record_of(pid));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn what_cannot_be_shown_is_said() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("it is bound").port().to_string();
    let refused = failure(&["live", "--no-open", "--demo", "--port", &port]);
    assert!(
        refused.contains(&format!("cannot listen at 127.0.0.1:{port}")),
        "{refused}"
    );
    assert!(failure(&["live", "--no-open", "4294967294"]).contains("4294967294"));
    assert!(failure(&["live", "--no-open", "/nothing/there"]).contains("cannot read"));
    assert!(failure(&["live", "--no-open", "--", "/nothing/there"]).contains("has ended before"));
    assert!(failure(&["live", "--no-open", "--save", "x"]).contains("what to save"));
}
