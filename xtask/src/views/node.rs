//! Official Node.js: what blocks it, what starves its pool, and what keeps it from its end.

use super::report::{answer, must_have, place};
use super::stage::{Session, Stage, request, under_requests};
use anyhow::{Context, Result, ensure};
use serde_json::Value;

const NODE: &str = "/srv/node26/bin/node";
const NODE22: &str = "/srv/node22/bin/node";
const RECORD: [&str; 5] = ["blacklight", "run", "--record", "--stacks", "--"];

/// A program of `xtask/views` on Node.js, recorded from its beginning.
fn recorded<'a>(node: &'a str, program: &[&'a str]) -> Vec<&'a str> {
    [&RECORD[..], &[node], program].concat()
}

pub(super) fn stall(stage: &Stage) -> Result<()> {
    stall_in(stage, NODE)
}

pub(super) fn stall_in_node22(stage: &Stage) -> Result<()> {
    stall_in(stage, NODE22)
}

/// A function that computes for 300 ms is named, with its file and line.
fn stall_in(stage: &Stage, node: &str) -> Result<()> {
    let program = stage.start(&recorded(node, &["/srv/app/crunch.js"]))?;
    let pid = program.pid();
    let source = include_str!("../../views/crunch.js");
    let crunch = format!(
        "crunch ({})",
        place("crunch.js", source, "function crunch")?
    );
    let doing = format!("computing in {crunch}");
    let handler = format!("({})", place("crunch.js", source, "(request, response)")?);
    let texts = [
        "Loop 3 (main thread)",
        "blocked",
        &doing,
        &handler,
        "called by a read callback",
    ];
    let check = |report: &str| {
        answer(report, "blocked")?.must_say("bad", &texts)?;
        let (_, stalls) = report.split_once("5 Stalls").context("no stalls")?;
        must_have(stalls, &["read in poll, computing: ", &crunch])?;
        let busy = answer(report, "headroom")?;
        busy.must_say(&busy.verdict, &["loop 3 (main thread), is busy"])
    };
    // Where others have the processors, the longest stall of a view may be another one, or may have waited for them when it was looked at.
    let view = || stage.eventually(&["top", "--once", "--interval", "3s", &pid], check);
    under_requests(program.port()?, view).map(drop)
}

/// A callback that waits for a named pipe is told from one that computes.
pub(super) fn waiting(stage: &Stage) -> Result<()> {
    let fifo = stage.silent_pipe()?;
    let program = stage.start(&recorded(NODE, &["/srv/app/fifo.js", fifo.path()?]))?;
    let pid = program.pid();
    let source = include_str!("../../views/fifo.js");
    let place = place("fifo.js", source, "function readSettings")?;
    let doing = format!("waiting in read in readSettings ({place})");
    let callback = "called by a timer callback (node::Environment::RunTimers)";
    stage.eventually(&["top", "--once", &pid], |report| {
        let blocked = answer(report, "blocked")?;
        blocked.must_say("bad", &["is blocked now", &doing, callback])
    })?;
    Ok(())
}

/// Work that takes all threads of the pool, and who waits for them.
pub(super) fn pool(stage: &Stage) -> Result<()> {
    let program = stage.start(&recorded(NODE, &["/srv/app/pool.js"]))?;
    let pid = program.pid();
    let starved =
        "The thread pool is starved: all 4 threads run (4 work requests, the longest for ";
    let code = " in node::crypto::DeriveBitsJob<node::crypto::PBKDF2Traits>::DoThreadPoolWork";
    let oldest = ", 10 getaddrinfo requests wait, the oldest for ";
    let advice = "Raise UV_THREADPOOL_SIZE (now 4)";
    let report = stage.eventually(&["top", "--once", &pid], |report| {
        let texts = [starved, code, oldest, advice];
        answer(report, "pool")?.must_say("bad", &texts)
    })?;
    // The report takes a second, for which the oldest has waited at least.
    let sentence = answer(&report, "pool")?.sentence;
    let (_, wait) = sentence.split_once(oldest).context("no wait")?;
    let mut words = wait.split(' ');
    let number = words.next().and_then(|number| number.parse::<f64>().ok());
    let unit = words.next().unwrap_or_default();
    ensure!(
        number >= Some(1.0) && (unit.starts_with("s.") || unit.starts_with("min.")),
        "the oldest wait is {wait}"
    );
    let why = stage.view(&["why", &pid])?;
    must_have(
        &why,
        &[
            "14 requests in progress: 4 work and 10 getaddrinfo",
            "runs in thread",
        ],
    )?;
    let list = stage.view(&["ps"])?;
    must_have(&list, &["pool 4 of 4 busy, 10 queued"])
}

/// A forgotten interval and a server that listens are what keeps the process from its end.
pub(super) fn forgotten(stage: &Stage) -> Result<()> {
    let program = stage.start(&recorded(NODE, &["/srv/app/forgotten.js"]))?;
    let (pid, port) = (program.pid(), program.word(0)?);
    let server = format!("1 TCP server on 127.0.0.1:{port}");
    let timer = "1 timer, set for about 5 s, due in ";
    let reasons = [
        "Loop 3 (main thread) stays alive for 2 reasons:",
        &server,
        timer,
    ];
    let meaning = "calls `node::Environment::RunTimers` (setTimeout and setInterval)";
    let why = stage.eventually(&["why", &pid], |said| {
        must_have(said, &[&reasons[..], &[meaning]].concat())
    })?;
    let unused = "Nothing keeps loop 1 (main thread) alive: it has not been run once";
    must_have(&why, &[unused])?;
    // A timer that comes late is set for less when it is set again.
    stage.eventually(&["top", "--once", &pid], |report| {
        answer(report, "alive")?.must_say(
            "fine",
            &[
                "Loop 3 (main thread) stays alive for",
                &server,
                "1 timer (set for about 5 s)",
            ],
        )
    })?;
    Ok(())
}

/// Worker threads and cluster workers are listed, and children record too.
pub(super) fn many(stage: &Stage) -> Result<()> {
    let program = stage.start(&recorded(NODE, &["/srv/app/many.js"]))?;
    let pid = program.pid();
    let children = [program.word(0)?.to_owned(), program.word(1)?.to_owned()];
    let shown = |list: &str, pid: &str| -> Result<Value> {
        let list: Value = serde_json::from_str(list).context("it is no JSON")?;
        let processes = list.as_array().context("no list")?;
        let found = processes
            .iter()
            .find(|of| of["pid"].as_u64() == pid.parse().ok());
        found
            .cloned()
            .with_context(|| format!("process {pid} is not in {list:#}"))
    };
    let list = stage.eventually(&["ps", "--json"], |list| {
        let own = shown(list, &pid)?;
        let loops = own["loops"].as_array().context("no loops")?;
        let running = loops.iter().filter(|lp| lp["state"] != "outside");
        let mut threads: Vec<u64> = running.filter_map(|lp| lp["tid"].as_u64()).collect();
        threads.dedup();
        // The main loop, two workers' and that of Node's delayed tasks, each in a thread of its own.
        ensure!(
            threads.len() == 4,
            "not four loops that run in threads of their own: {own:#}"
        );
        for child in &children {
            let child = shown(list, child)?;
            ensure!(
                child["recording"] == true,
                "a child does not record: {child:#}"
            );
            let loops = child["loops"].as_array().context("no loops")?;
            let main = loops
                .iter()
                .find(|lp| lp["tid"] == child["pid"] && lp["state"] == "asleep");
            ensure!(main.is_some(), "no loop in the main thread: {child:#}");
        }
        Ok(())
    })?;
    ensure!(shown(&list, &pid)?["recording"] == true);
    let text = stage.view(&["ps"])?;
    for pid in children.iter().chain([&pid]) {
        let line = text
            .lines()
            .find(|line| line.trim_start().starts_with(&format!("{pid} ")));
        must_have(line.unwrap_or_default(), &["node /srv/app/many.js"])?;
    }
    stage.eventually(&["why", &children[0]], |said| {
        must_have(said, &["1 timer, set for about 1 s"])
    })?;
    Ok(())
}

/// A process that was not started to record does so when it is asked, and is not harmed by it.
pub(super) fn late(stage: &Stage) -> Result<()> {
    let mut program = stage.start(&["blacklight", "run", "--", NODE, "/srv/app/forgotten.js"])?;
    let (pid, port) = (program.pid(), program.port()?);
    let list = stage.view(&["ps"])?;
    must_have(&list, &["not recording", "`blacklight ps --record`"])?;
    let server = format!("1 TCP server on 127.0.0.1:{port}, made at least ");
    stage.eventually(&["why", &pid], |said| {
        must_have(said, &[&server, "1 timer, due in "])
    })?;
    let server = format!("1 TCP server on 127.0.0.1:{port}");
    stage.eventually(&["top", "--once", &pid], |report| {
        answer(report, "alive")?.must_say("fine", &[&server])?;
        answer(report, "blocked")?.must_say("fine", &["Nothing blocks"])
    })?;
    program.must_run()?;
    request(port).map(drop)
}

/// A process of another session of the same user is listed, and records though its loops sleep.
pub(super) fn elsewhere(stage: &Stage) -> Result<()> {
    let session = Session::start(stage.user)?;
    let words = ["blacklight", "run", "--", NODE, "/srv/app/forgotten.js"];
    let program = stage.start_with(&words, &[("XDG_RUNTIME_DIR", session.directory())])?;
    let list = stage.view(&["ps"])?;
    must_have(&list, &[&program.pid(), "not recording"])?;
    let list = stage.view(&["ps", "--record"])?;
    must_have(&list, &[&program.pid(), "main thread"])?;
    ensure!(!list.contains("not recording"), "it was not woken: {list}");
    Ok(())
}

/// A process that forbids watching is not watched, and the sentence says so.
pub(super) fn never(stage: &Stage) -> Result<()> {
    let words = ["blacklight", "run", "--", NODE, "/srv/app/forgotten.js"];
    let program = stage.start_with(&words, &[("BLACKLIGHT_RECORD", "never")])?;
    let pid = program.pid();
    for view in [&["why"][..], &["top", "--once"], &["metrics"]] {
        let said = stage.refusal(&[view, &[&pid]].concat())?;
        must_have(
            &said,
            &[
                &format!("process {pid} has no record"),
                "BLACKLIGHT_RECORD=never",
            ],
        )?;
    }
    request(program.port()?).map(drop)
}
