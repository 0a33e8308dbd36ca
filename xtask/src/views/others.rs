//! Programs in other languages that run on libuv.

use super::report::{answer, must_have};
use super::stage::{Program, SilentNameServer, Stage, under_requests};
use anyhow::Result;

const PYTHON: [&str; 6] = [
    "blacklight",
    "run",
    "--record",
    "--stacks",
    "--",
    "/usr/bin/python3",
];
const EDITOR: [&str; 8] = [
    "blacklight",
    "run",
    "--record",
    "--",
    "/usr/bin/nvim",
    "--headless",
    "--clean",
    "-c",
];

/// Debian's Python, which the wheel is chosen for. It is older than 3.12 and has no map of its functions, so that the frames are those of
/// the interpreter.
pub(super) fn uvloop_stall(stage: &Stage) -> Result<()> {
    let program = stage.start(&[&PYTHON[..], &["/srv/app/server.py"]].concat())?;
    let (pid, port) = (program.pid(), program.port()?);
    let texts = [
        "The loop",
        "blocked",
        "computing in ",
        "called by a read callback (__pyx_",
        "Python names its functions from version 3.12 on.",
    ];
    let check = |report: &str| answer(report, "blocked")?.must_say("bad", &texts);
    let view = || stage.eventually(&["top", "--once", "--interval", "3s", &pid], check);
    under_requests(port, view)?;
    let server = format!("1 TCP server on 127.0.0.1:{port}");
    stage.eventually(&["why", &pid], |said| {
        must_have(said, &["The loop stays alive for", &server])
    })?;
    Ok(())
}

/// A callback that waits for a named pipe.
pub(super) fn uvloop_waiting(stage: &Stage) -> Result<()> {
    let fifo = stage.silent_pipe()?;
    let words = [&PYTHON[..], &["/srv/app/wait.py", fifo.path()?]].concat();
    let program = stage.start(&words)?;
    stage.eventually(&["top", "--once", &program.pid()], |report| {
        let texts = ["is blocked now", "waiting in read", "callback (__pyx_"];
        answer(report, "blocked")?.must_say("bad", &texts)
    })?;
    Ok(())
}

/// Lookups of names that are not answered have all threads that they may have.
pub(super) fn uvloop_pool(stage: &Stage) -> Result<()> {
    let server = SilentNameServer::start()?;
    let program = stage.start(&[&PYTHON[..], &["/srv/app/lookups.py"]].concat())?;
    server.hear()?;
    stage.eventually(&["top", "--once", &program.pid()], |report| {
        let texts = [
            "starved of name lookups: getaddrinfo and getnameinfo may have 2 of its 4 threads",
            "2 run and 8 getaddrinfo requests wait, the oldest for ",
        ];
        answer(report, "pool")?.must_say("bad", &texts)
    })?;
    Ok(())
}

/// An editor that runs a script, with the path of a named pipe in its environment.
fn editor(stage: &Stage, script: &str, fifo: &str) -> Result<Program> {
    let script = format!("luafile /srv/app/{script}");
    stage.start_with(&[&EDITOR[..], &[&script]].concat(), &[("FIFO", fifo)])
}

/// An editor with a timer and a job.
pub(super) fn neovim_alive(stage: &Stage) -> Result<()> {
    let program = editor(stage, "editor.lua", "")?;
    let (pid, job) = (program.pid(), program.word(0)?);
    let job = format!("1 child process {job} (`");
    stage.eventually(&["why", &pid], |said| {
        must_have(
            said,
            &[
                "stays alive for",
                "1 repeating timer, every 1 s, next in ",
                &job,
            ],
        )
    })?;
    // Its timer wakes it each second.
    stage.eventually(&["ps"], |list| {
        must_have(list, &[&pid, "nvim --headless --clean", "asleep"])
    })?;
    Ok(())
}

/// A callback that computes.
pub(super) fn neovim_stall(stage: &Stage) -> Result<()> {
    let program = editor(stage, "grind.lua", "")?;
    stage.eventually(&["top", "--once", &program.pid()], |report| {
        let texts = ["blocked", "computing in ", "called by a timer callback ("];
        answer(report, "blocked")?.must_say("bad", &texts)
    })?;
    Ok(())
}

/// A callback that waits for a named pipe.
pub(super) fn neovim_waiting(stage: &Stage) -> Result<()> {
    let fifo = stage.silent_pipe()?;
    let program = editor(stage, "wait.lua", fifo.path()?)?;
    stage.eventually(&["top", "--once", &program.pid()], |report| {
        let texts = [
            "is blocked now",
            "waiting in read",
            "called by a timer callback (",
        ];
        answer(report, "blocked")?.must_say("bad", &texts)
    })?;
    Ok(())
}

/// Work of the program's own that has all threads of the pool.
pub(super) fn neovim_pool(stage: &Stage) -> Result<()> {
    let fifo = stage.silent_pipe()?;
    let program = editor(stage, "work.lua", fifo.path()?)?;
    stage.eventually(&["top", "--once", &program.pid()], |report| {
        let texts = [
            "The thread pool is starved: all 4 threads run (4 work requests, the longest for ",
            ", 3 work requests wait, the oldest for ",
        ];
        answer(report, "pool")?.must_say("bad", &texts)
    })?;
    Ok(())
}
