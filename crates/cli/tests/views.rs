//! The views as their user sees them: the command looks at this process, which writes a record as a
//! program on Blacklight does.

use blacklight_record::layout::{ACTIVE, CLOSING, HANDLE_KINDS, LISTENING, REFERENCED, State};
use blacklight_record::read::now_ns;
use blacklight_record::{Callback, HandleInfo, LoopWriter, Record, Request, pool_queued};
use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::process::{Child, ChildStdin, Command, Stdio};

const SECOND: u64 = 1_000_000_000;

/// Text in which what was 12 or 20 seconds ago when the test began still is.
fn as_of_the_beginning(text: &str) -> String {
    let mut text = text.to_owned();
    for later in 1..60 {
        for (begin, end) in [
            ("made ", " ago"),
            ("made at least ", " ago"),
            ("was made ", " ago"),
            ("for ", "."),
        ] {
            let first = if begin == "made " { 12 } else { 20 };
            let new = format!("{begin}{} s{end}", first + later);
            text = text.replace(&new, &format!("{begin}{first} s{end}"));
        }
    }
    text
}

/// Runs the command and returns what it prints.
fn blacklight(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_blacklight"))
        .args(arguments)
        .env_remove("XDG_RUNTIME_DIR")
        .output()
        .expect("the command runs");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    String::from_utf8(output.stdout).expect("it prints text")
}

/// What the command says when it fails.
fn failure(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_blacklight"))
        .args(arguments)
        .output()
        .expect("the command runs");
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn kind(name: &str) -> u32 {
    let place = HANDLE_KINDS.iter().position(|kind| *kind == name);
    place.expect("there is such a kind") as u32
}

/// A handle of which only the kind, the flags and the descriptor are known.
fn handle(what: u32, token: u64, number: i32) -> HandleInfo<'static> {
    HandleInfo {
        what,
        token,
        number,
        ..HandleInfo::default()
    }
}

/// A server, two of its clients, timers and others.
fn fill(lp: &mut LoopWriter, server: &TcpListener, streams: &[TcpStream], now: u64) {
    let on = ACTIVE | REFERENCED;
    let at = now - 12 * SECOND;
    let listening = handle(kind("tcp") | on | LISTENING, 1, server.as_raw_fd());
    lp.set_handle(0, &listening, at);
    for (place, stream) in streams.iter().enumerate() {
        let info = HandleInfo {
            writes: place as u32 * 2,
            queued_bytes: place as u64 * 4096,
            ..handle(kind("tcp") | on, 2 + place as u64, stream.as_raw_fd())
        };
        lp.set_handle(1 + place as u32, &info, at);
    }
    let timer = HandleInfo {
        callback: 0xabc,
        due_ns: now + 5400 * SECOND,
        repeat_ns: 5 * SECOND,
        ..handle(kind("timer") | on, 10, -1)
    };
    lp.set_handle(10, &timer, at);
    lp.set_handle(11, &handle(kind("signal") | on, 11, 15), at);
    let watch = HandleInfo {
        text: "/etc/\x1b[2Jhosts",
        ..handle(kind("fs_event") | on, 12, -1)
    };
    lp.set_handle(12, &watch, at);
    let asleep = handle(kind("async") | ACTIVE, 13, -1);
    lp.set_handle(13, &asleep, at);
    let stopped = handle(kind("timer") | REFERENCED, 14, -1);
    lp.set_handle(14, &stopped, now - 20 * SECOND);
    let closing = handle(kind("check") | REFERENCED | CLOSING, 15, -1);
    lp.set_handle(15, &closing, at);
}

/// A turn with a callback of 3 ms, after which the loop sleeps.
fn turn(lp: &mut LoopWriter, made: u64) {
    lp.run_begins(made + 1000, None);
    lp.turn_begins(made + 2000, 1);
    let callback = Callback {
        phase: 4,
        kind: 9,
        delay_ns: Some(2_000_000),
        ..Callback::default()
    };
    lp.callback_begins(made + 3000, callback);
    lp.callback_ends(made + 3_003_000);
    lp.turn_begins(made + 3_004_000, 2);
    lp.wait_begins(State::Asleep, made + 3_005_000, 0);
}

/// The only record of this process, and so the only test that has one.
#[test]
fn views_tell_what_the_record_says() {
    let now = now_ns();
    let made = now - 20 * SECOND;
    let record = Record::make(None, true, made).expect("there is a place for records");
    let record: &'static Record = Box::leak(Box::new(record));
    let server = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = server.local_addr().expect("it is bound").to_string();
    let clients = [(); 2].map(|()| TcpStream::connect(&address).expect("it listens"));
    let streams = [(); 2].map(|()| server.accept().expect("they have come").0);
    let pid = std::process::id().to_string();

    let list = blacklight(&["ps"]);
    assert!(list.contains("not recording"), "{list}");
    assert!(record.begin(made));
    let mut main = record.add_loop("", "epoll", 1, made).expect("a loop");
    main.begins(made);
    turn(&mut main, made);
    let alone = blacklight(&["why", &pid]);
    assert_eq!(alone, "Nothing keeps the loop alive: it is about to end.\n");

    fill(&mut main, &server, &streams, now);
    main.counts(3, 6);
    record.pool_threads(4, 2);
    let request = Request {
        kind: 2,
        token: 1,
        queued_ns: now - 12 * SECOND,
    };
    pool_queued(record, request, Some(request));
    main.submitted(request);
    let said = as_of_the_beginning(&blacklight(&["why", &pid]));
    check_why(&said, &address);

    let name = "w\"\x1b[2J\\";
    let mut other = record.add_loop(name, "poll", 2, made).expect("a loop");
    other.begins(made);
    let both = as_of_the_beginning(&blacklight(&["why", &pid]));
    let outside =
        "Nothing keeps loop 2 (w\"\u{fffd}[2J\\) alive: it has not been run once, for 20 s.\n";
    assert!(both.ends_with(outside), "{both}");
    assert!(
        both.starts_with("Loop 1 stays alive for 8 reasons:\n"),
        "{both}"
    );
    assert!(
        both.contains("3 requests in progress: 1 fs and 2 write"),
        "{both}"
    );

    check_list(&blacklight(&["ps"]), &pid);
    check_json(&blacklight(&["ps", "--json"]), &pid);
    check_metrics(&blacklight(&["metrics", &pid]));
    check_server(&pid);
    drop(clients);
    record.remove();
}

fn check_why(said: &str, address: &str) {
    println!("{said}");
    let lines: Vec<&str> = said.lines().collect();
    let expected = [
        "The loop stays alive for 8 reasons:".to_owned(),
        format!("  - 1 TCP server on {address}, made 12 s ago"),
        format!("  - 1 TCP connection from clients of {address}, made 12 s ago"),
        format!(
            "  - 1 TCP connection from clients of {address}, 2 writes in progress with 4096 bytes unsent, made 12 s ago"
        ),
    ];
    assert_eq!(lines[..4], expected);
    // The time until it is due goes on.
    assert!(
        lines[4].starts_with(
            "  - 1 repeating timer, every 5 s, next in 90 min, made 12 s ago, calls `"
        )
    );
    let expected = [
        "  - 1 signal handler for SIGTERM, made 12 s ago",
        "  - 1 watch of /etc/\u{fffd}[2Jhosts, made 12 s ago",
        "  - 3 requests in progress: 1 fs and 2 write; the oldest of the thread pool's, fs, was made 12 s ago and waits for a thread",
        "  - 1 check handle, made 12 s ago: closing, until the close callback has run",
        "These do not keep it alive:",
        "  - 1 async handle for wakeups by other threads, made 12 s ago: unreferenced",
        "  - 1 timer, made at least 20 s ago: not started",
        "`uv_loop_close` fails with EBUSY while any of its 9 handles is open, active or not.",
    ];
    assert_eq!(lines[5..], expected);
}

fn check_list(list: &str, pid: &str) {
    println!("{list}");
    assert!(
        list.lines().all(|line| line.chars().count() <= 80),
        "{list}"
    );
    assert!(!list.contains('\x1b'));
    let mut lines = list.lines();
    let is_own = |line: &&str| line.trim_start().starts_with(&format!("{pid} "));
    let process = lines.find(is_own).expect("this process is in the list");
    assert!(process.ends_with("pool 0 of 4 busy, 1 queued"), "{process}");
    let row: Vec<&str> = lines.next().expect("a loop").split_whitespace().collect();
    // The loop sleeps: for so long, with this load, this delay, and these turns and handles.
    assert_eq!(row[..2], ["1", "asleep"]);
    assert_eq!(row[4..], ["0%", "2", "ms", "0", "9"]);
}

fn check_json(text: &str, pid: &str) {
    let list: serde_json::Value = serde_json::from_str(text).expect("it is JSON");
    let processes = list.as_array().expect("a list");
    let is_own = |process: &&serde_json::Value| process["pid"].as_u64() == pid.parse().ok();
    let own = processes.iter().find(is_own).expect("this process");
    assert_eq!(own["recording"], true);
    assert_eq!(own["pool"]["queued"], 1);
    assert_eq!(own["loops"][0]["delay_p99_seconds"], 0.002);
    assert_eq!(own["loops"][0]["handles"], 9);
    assert_eq!(own["loops"][1]["state"], "outside");
}

/// The samples of a text in the format of OpenMetrics: name and labels, and value. Panics at what the format forbids.
fn parse(text: &str) -> BTreeMap<String, f64> {
    let body = text.strip_suffix("# EOF\n").expect("it ends with # EOF");
    let mut kinds: HashMap<String, String> = HashMap::new();
    let mut family = String::new();
    let mut samples = BTreeMap::new();
    for line in body.lines() {
        if let Some(comment) = line.strip_prefix("# ") {
            let words: Vec<&str> = comment.splitn(3, ' ').collect();
            let [what, name, rest] = words[..] else {
                panic!("a comment that is not whole: {line}");
            };
            match what {
                "TYPE" => {
                    let is_new = kinds.insert(name.to_owned(), rest.to_owned()).is_none();
                    assert!(is_new, "a family twice: {line}");
                    family = name.to_owned();
                }
                "UNIT" => assert!(name == family && name.ends_with(rest), "{line}"),
                _ => assert!(what == "HELP" && name == family, "{line}"),
            }
            continue;
        }
        let (series, value) = line.rsplit_once(' ').expect("a value");
        let name = series.split('{').next().unwrap_or_default();
        let suffix = name.strip_prefix(&*family).expect("a sample of its family");
        let may = match &*kinds[&family] {
            "counter" => &["_total"][..],
            "info" => &["_info"],
            "histogram" => &["_bucket", "_sum", "_count"],
            _ => &[""],
        };
        assert!(may.contains(&suffix), "{line}");
        let value = value.parse().expect("a number");
        let before = samples.insert(series.to_owned(), value);
        assert!(before.is_none(), "a sample twice: {line}");
    }
    check_buckets(body);
    samples
}

/// Checks that the buckets of each histogram grow up to `+Inf`, which is the count.
fn check_buckets(body: &str) {
    let mut bound = f64::NEG_INFINITY;
    let mut below = 0;
    for line in body.lines().filter(|line| !line.starts_with('#')) {
        let (series, value) = line.rsplit_once(' ').expect("a value");
        if let Some((_, le)) = series.split_once("le=\"") {
            let le: f64 = le.trim_end_matches("\"}").parse().expect("a bound");
            let count: u64 = value.parse().expect("a count");
            assert!(le > bound && count >= below, "{line}");
            (bound, below) = (le, count);
        } else if series.contains("_sum") {
            assert_eq!(bound, f64::INFINITY, "{line}");
        } else if series
            .split('{')
            .next()
            .is_some_and(|name| name.ends_with("_count"))
        {
            assert_eq!(value.parse(), Ok(below), "{line}");
            (bound, below) = (f64::NEG_INFINITY, 0);
        }
    }
}

/// The names, types, units, labels and meanings of `docs/METRICS.md`.
fn documented() -> Vec<[String; 5]> {
    let text = include_str!("../../../docs/METRICS.md");
    let rows = text.lines().filter(|line| line.starts_with("| `"));
    let cells = |row: &str| -> Vec<String> {
        let cells = row.trim_matches('|').split('|');
        cells.map(|cell| cell.trim().replace('`', "")).collect()
    };
    rows.map(|row| cells(row).try_into().expect("five cells"))
        .collect()
}

/// Checks that what is written is what is documented, but for what only Node.js has.
fn check_documented(text: &str) {
    let rows = documented();
    let mut written = Vec::new();
    for line in text.lines() {
        let mut words = line.splitn(4, ' ');
        let (mark, what) = (words.next(), words.next());
        let name = words.next().unwrap_or_default();
        if mark == Some("#") && name.is_empty() {
            continue;
        }
        if mark == Some("#") {
            let rest = words.next().expect("a comment that is whole");
            let row = rows.iter().find(|row| row[0] == name);
            let row = row.unwrap_or_else(|| panic!("{name} is not documented"));
            let cell = match what {
                Some("TYPE") => &row[1],
                Some("UNIT") => &row[2],
                _ => &row[4],
            };
            assert_eq!(cell.replace('`', ""), rest.replace('`', ""), "{line}");
            if what == Some("TYPE") {
                written.push(name.to_owned());
            }
            continue;
        }
        let (series, _) = line.rsplit_once(' ').expect("a value");
        let labels = series.split_once('{').map_or("", |(_, labels)| labels);
        // Values have no equals signs here, but for that of a name with quotes in it.
        let names: Vec<&str> = labels
            .split(',')
            .filter_map(|label| label.split_once('='))
            .map(|(name, _)| name)
            .filter(|name| *name != "le")
            .collect();
        let family = written.last().expect("a family");
        let row = rows.iter().find(|row| row[0] == *family);
        assert_eq!(row.expect("documented")[3], names.join(", "), "{line}");
    }
    let expected: Vec<&str> = rows
        .iter()
        .map(|row| &*row[0])
        .filter(|name| !name.starts_with("nodejs_"))
        .collect();
    assert_eq!(written, expected);
}

fn check_metrics(text: &str) {
    check_documented(text);
    let samples = parse(text);
    let is = |series: &str, value: f64| {
        assert_eq!(samples.get(series), Some(&value), "{series} in\n{text}");
    };
    is("libuv_loop_iterations_total{loop=\"1\"}", 2.0);
    is(
        "libuv_handles{loop=\"1\",kind=\"tcp\",active=\"true\"}",
        3.0,
    );
    is(
        "libuv_handles{loop=\"1\",kind=\"timer\",active=\"false\"}",
        1.0,
    );
    is("libuv_loop_stalls_total{loop=\"1\",kind=\"read\"}", 0.0);
    is("libuv_record_requests_lost_total{loop=\"1\"}", 0.0);
    is("libuv_requests{loop=\"1\",kind=\"fs\"}", 1.0);
    is("libuv_requests{loop=\"1\",kind=\"write\"}", 2.0);
    is("libuv_requests{loop=\"1\",kind=\"connect\"}", 0.0);
    is("libuv_pool_threads", 4.0);
    is("libuv_pool_queued{kind=\"fs\"}", 1.0);
    is("libuv_loop_delay_seconds_sum{loop=\"1\"}", 0.002);
    is(
        "libuv_callback_duration_seconds_sum{loop=\"1\",phase=\"poll\"}",
        0.003,
    );
    is(
        "libuv_callback_kind_duration_seconds_count{loop=\"1\",kind=\"read\"}",
        1.0,
    );
    let bucket = "libuv_callback_duration_seconds_bucket{loop=\"1\",phase=\"poll\",le=";
    is(&format!("{bucket}\"0.002097152\"}}"), 0.0);
    is(&format!("{bucket}\"0.004194304\"}}"), 1.0);
    is(
        "libuv_loop_time_seconds_total{loop=\"1\",state=\"callback\"}",
        0.003,
    );
    let asleep = samples["libuv_loop_time_seconds_total{loop=\"1\",state=\"asleep\"}"];
    assert!((19.0..600.0).contains(&asleep), "{asleep}");
    let info = "libuv_loop_info{loop=\"2\",name=\"w\\\"\u{fffd}[2J\\\\\",poller=\"poll\"}";
    is(info, 1.0);
    assert!(!text.contains("nodejs_"), "this is no Node.js");
}

/// A command that serves metrics, and where.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(pid: &str) -> Server {
        let mut child = Command::new(env!("CARGO_BIN_EXE_blacklight"))
            .args(["metrics", pid, "--listen", "0"])
            .stderr(Stdio::piped())
            .spawn()
            .expect("the command runs");
        let mut line = String::new();
        let told = child.stderr.take().expect("a pipe");
        BufReader::new(told).read_line(&mut line).expect("a line");
        let address = line.trim_end().strip_prefix("blacklight: serving http://");
        let address = address.and_then(|address| address.strip_suffix("/metrics"));
        let address = address.expect("it says where").to_owned();
        Server { child, address }
    }

    fn ask(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        answer
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn check_server(pid: &str) {
    let server = Server::start(pid);
    let address = &server.address;
    let mut slow = TcpStream::connect(address).expect("it listens");
    slow.write_all(b"GET /met").expect("it reads");
    // The slow client is still there while others are served.
    for _ in 0..2 {
        let answer = server.ask(&format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\n\r\n"));
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert!(head.contains("Content-Type: application/openmetrics-text; version=1.0.0"));
        check_metrics(body);
    }
    let status = |request: &str| server.ask(request)[9..12].to_owned();
    assert_eq!(
        status("GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n"),
        "403"
    );
    assert_eq!(
        status(&format!("GET / HTTP/1.1\r\nHost: {address}\r\n\r\n")),
        "404"
    );
    assert_eq!(
        status(&format!("GET /{} HTTP/1.1\r\n", "x".repeat(9 * 1024 - 16))),
        "431"
    );
    let rest = format!("rics HTTP/1.1\r\nHost: {address}\r\n\r\n");
    slow.write_all(rest.as_bytes()).expect("it reads");
    let mut answer = String::new();
    slow.read_to_string(&mut answer).expect("it answers");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
}

/// Run in a process of its own: records until its input ends.
#[test]
#[ignore = "another test runs it"]
fn record_until_input_ends() {
    let record = Record::make(None, true, now_ns()).expect("there is a place for records");
    let record: &'static Record = Box::leak(Box::new(record));
    assert!(record.begin(now_ns()));
    let mut main = record.add_loop("", "epoll", 1, now_ns()).expect("a loop");
    main.begins(now_ns());
    println!("\nready");
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    record.remove();
}

/// This test again, in a process that records until its input is closed.
fn start_other() -> (Child, ChildStdin, impl Iterator) {
    let own = std::env::current_exe().expect("this program");
    let mut child = Command::new(own)
        .args([
            "--ignored",
            "--exact",
            "record_until_input_ends",
            "--nocapture",
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it runs");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    assert!(lines.any(|line| line.is_ok_and(|line| line == "ready")));
    let input = child.stdin.take().expect("a pipe");
    (child, input, lines)
}

#[test]
fn a_server_ends_with_its_process() {
    let (mut child, input, _output) = start_other();
    let mut server = Server::start(&child.id().to_string());
    drop(input);
    child.wait().expect("it ends");
    let status = server.child.wait().expect("it ends too");
    assert!(status.success(), "{status}");
}

#[test]
fn a_process_without_a_record_is_a_clear_failure() {
    let none = failure(&["why", "4194304"]);
    assert_eq!(none, "blacklight: there is no process 4194304\n");
    let mut other = Command::new("sleep").arg("600").spawn().expect("it runs");
    let told = failure(&["metrics", &other.id().to_string()]);
    other.kill().expect("it runs still");
    let _ = other.wait();
    assert!(
        told.contains("has no record: it does not run on Blacklight"),
        "{told}"
    );
    let told = failure(&["metrics", "--", "true"]);
    assert!(told.contains("serve them with --listen PORT"), "{told}");
}
