//! What a page can show of other moments than the present: stalls with their stacks, and frames from before it was opened.

use super::{Folder, LIMIT, live};
use blacklight::{Loop, Mode, Timer};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::time::{Duration, Instant};

/// Documents as a page has them.
#[derive(Default)]
struct Page {
    version: u64,
    at: u64,
    documents: BTreeMap<String, Value>,
}

impl Page {
    fn apply(&mut self, frame: &str) {
        let frame: Value = serde_json::from_str(frame).expect("it is JSON");
        let number = |name: &str| frame[name].as_u64().expect("a number");
        if frame["full"] == Value::Bool(true) {
            self.documents.clear();
        }
        assert!(number("at") >= self.at && number("v") > self.version);
        (self.version, self.at) = (number("v"), number("at"));
        for (key, value) in frame["set"].as_object().expect("documents") {
            self.documents.insert(key.clone(), value.clone());
        }
        for key in frame["del"].as_array().expect("keys") {
            self.documents.remove(key.as_str().expect("a key"));
        }
    }
}

/// The program of the test below: its loop is blocked again and again, for so long that even a machine that has much else to do looks at
/// it meanwhile.
#[test]
#[ignore = "is a program, and runs until it is ended"]
fn program_that_stalls() {
    let lp = Loop::builder().name("stalls").build().expect("a loop");
    let timer = Timer::new().expect("a timer");
    let started = timer.start_repeating(Duration::from_millis(500), |_, _| block());
    started.expect("it starts");
    lp.run(Mode::Default);
}

#[inline(never)]
fn block() {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(400) {
        std::hint::black_box(&begun);
    }
}

/// The program of the test below: it asks for more than is told one by one.
#[test]
#[ignore = "is a program, and runs until it is ended"]
fn program_that_asks_for_much() {
    let lp = Loop::builder().build().expect("a loop");
    for _ in 0..300 {
        let asked = lp.work(|| std::thread::sleep(Duration::from_secs(600)), |_, _| ());
        drop(asked.expect("there is room"));
    }
    lp.run(Mode::Default);
}

#[test]
fn how_much_is_not_listed_is_told() {
    let folder = Folder::new("requests");
    let live = folder.live(&program("moments::program_that_asks_for_much"));
    let mut events = live.events();
    let mut page = Page::default();
    loop {
        let (_, frame) = events.next().expect("the stream goes on");
        page.apply(&frame);
        let turn = page
            .documents
            .iter()
            .find(|(key, _)| key.contains("/turn/"));
        let Some((_, turn)) = turn.filter(|(_, turn)| turn["requests"] == 300) else {
            continue;
        };
        let listed = page
            .documents
            .keys()
            .filter(|key| key.contains("/request/"));
        assert_eq!(
            (listed.count(), &turn["unlisted"]),
            (200, &Value::from(100))
        );
        // A loop without a name has that of its thread.
        let name = page
            .documents
            .iter()
            .find(|(key, _)| key.contains("/loop/"));
        let name = &name.expect("it is told with its turn").1["name"];
        assert_eq!(name, "moments::progra", "the test has a thread of its own");
        return;
    }
}

/// This program, with one of its tests to run.
fn program(test: &str) -> Vec<OsString> {
    let own = std::env::current_exe().expect("it is a file");
    let words = ["--ignored", "--exact", test].map(OsString::from);
    [own.into_os_string()].into_iter().chain(words).collect()
}

#[test]
fn stalls_have_whole_stacks_with_names() {
    let folder = Folder::new("stalls");
    let live = folder.live(&program("moments::program_that_stalls"));
    let mut events = live.events();
    let mut page = Page::default();
    let mut since = None;
    let begun = Instant::now();
    loop {
        let (name, frame) = events.next().expect("the stream goes on");
        assert_eq!(name, "frame", "{frame}");
        page.apply(&frame);
        if page.documents.keys().any(|key| key.contains("/turn/")) {
            since.get_or_insert(page.at);
        }
        let stalls = page.documents.iter().filter(|(key, stall)| {
            let is_new = since.is_some_and(|since| stall["began"].as_u64() > Some(since));
            key.contains("/stall/") && stall["over"] == true && is_new
        });
        // The last ten: a machine that has no time to look at one has it later.
        let stalls: Vec<&Value> = stalls.map(|(_, stall)| stall).collect();
        let last = &stalls[stalls.len().saturating_sub(10)..];
        let is_whole = |stall: &&&Value| {
            let frames = stall["stacks"][0]["frames"].to_string();
            frames.contains("moments::block")
        };
        let found = last.iter().filter(is_whole).count();
        if last.len() == 10 && found >= 9 {
            return;
        }
        assert!(
            begun.elapsed() < LIMIT,
            "{found} of ten have a stack: {last:?}"
        );
    }
}

#[test]
fn who_comes_late_is_told_what_was_before() {
    let live = live(&["--demo"]);
    let (mut early, mut now) = (live.events(), Page::default());
    early.frame_with("/turn/1\":");
    for _ in 0..5 {
        early.next().expect("the stream goes on");
    }
    drop(early);
    let mut early = live.events();
    let mut states = BTreeMap::new();
    for _ in 0..15 {
        let (_, frame) = early.next().expect("the stream goes on");
        now.apply(&frame);
        states.insert(now.version, now.documents.clone());
    }
    let (mut late, mut past) = (live.events_since(0, ""), Page::default());
    let (mut compared, mut steps) = (0, 0);
    loop {
        let (name, frame) = late.next().expect("the stream goes on");
        if name == "now" {
            break;
        }
        assert_eq!(frame.contains("\"full\":true"), steps == 0, "{frame}");
        past.apply(&frame);
        steps += 1;
        if let Some(state) = states.get(&past.version) {
            assert_eq!(past.documents, *state);
            compared += 1;
        }
    }
    assert_eq!(compared, states.len(), "each moment can be brought back");
    assert!(steps > compared && past.version >= now.version);
    // The present follows.
    let (name, frame) = late.next().expect("the stream goes on");
    assert_eq!(name, "frame");
    past.apply(&frame);

    // From a time on, which is also what a browser asks for by itself when it connects anew.
    let (version, _) = states.iter().nth(5).expect("there are more");
    let mut whole = live.events_since(0, "");
    let mut at = 0;
    while at == 0 {
        let (_, frame) = whole.next().expect("the stream goes on");
        let mut page = Page::default();
        page.apply(&frame);
        if page.version == *version {
            at = page.at;
        }
    }
    let id = format!("Last-Event-ID: {at}\r\n");
    for mut events in [live.events_since(at, ""), live.events_since(0, &id)] {
        let (_, frame) = events.next().expect("the stream goes on");
        let mut page = Page::default();
        page.apply(&frame);
        assert!(frame.contains("\"full\":true"));
        assert_eq!((page.version, page.at), (*version, at));
        assert_eq!(page.documents, states[version]);
    }
}

#[test]
fn who_looks_at_one_process_is_told_of_no_other() {
    let (one, other) = (live(&["--demo"]), live(&["--demo"]));
    other.events().frame_with("/turn/1\":");
    // The first server is asked for the program of the second as well.
    let pid = other.pid.expect("it was started");
    let mut foreign = super::Events(std::io::BufReader::new(
        one.ask(&format!("events?pid={pid}"), ""),
    ));
    foreign.frame_with(&format!("\"{pid}/turn/1\":"));
    one.events().frame_with("/turn/1\":");
    let mut events = one.events_since(0, "");
    let own = format!("{}/", one.pid.expect("it was started"));
    loop {
        let (name, frame) = events.next().expect("the stream goes on");
        if name == "now" {
            return;
        }
        let mut page = Page::default();
        page.apply(&frame);
        assert!(page.documents.keys().all(|key| key.starts_with(&own)));
    }
}

#[test]
fn a_child_that_is_opened_by_itself_has_its_past() {
    let folder = Folder::new("child");
    let script = "./blacklight live-load & echo $! > pids.new; mv pids.new pids; wait";
    let live = folder.live(&["sh", "-c", script]);
    let mut events = live.events();
    let begun = Instant::now();
    let pid = loop {
        events.next().expect("the stream goes on");
        if let Ok(pid) = std::fs::read_to_string(folder.path("pids")) {
            break pid.trim().to_owned();
        }
        assert!(begun.elapsed() < LIMIT, "there is no child");
    };
    let turn = format!("{pid}/turn/1");
    let mut page = Page::default();
    page.apply(&events.frame_with(&format!("\"{turn}\":")));
    events.next().expect("the stream goes on");
    // Until now, what belongs to its parent was all that was asked for.
    let path = format!("events?pid={pid}&past={}", page.at);
    let mut late = super::Events(std::io::BufReader::new(live.ask(&path, "")));
    let (name, frame) = late.next().expect("the stream goes on");
    let mut past = Page::default();
    past.apply(&frame);
    assert_eq!((name.as_str(), past.at), ("frame", page.at));
    assert!(past.documents.contains_key(&turn), "{frame}");
    let (name, _) = late.next().expect("the stream goes on");
    assert_eq!(name, "frame", "more of it was told");
}
