//! Programs that are compiled: one in C on `libuv.so.1`, and one in Rust on the crate.

use super::compile;
use super::report::{answer, must_have, place, section};
use super::stage::Stage;
use crate::compile::run_quietly;
use crate::workspace;
use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::process::Command;

const RECORDED: [(&str, &str); 2] = [("BLACKLIGHT_RECORD", "1"), ("LD_LIBRARY_PATH", "/srv/lib")];

/// Compiles the programs.
pub(super) fn build(bin: &Path, lib: &Path) -> Result<()> {
    compile("timers.c", &bin.join("timers"), &["-g"], lib)?;
    compile("timers.c", &bin.join("timers-without-names"), &["-s"], lib)?;
    let mut cargo = workspace::cargo();
    cargo
        .args([
            "rustc",
            "--quiet",
            "--package",
            "xtask",
            "--example",
            "named_loops",
            // With the types in it, which the rest of the workspace does without.
            "--",
            "-Cdebuginfo=2",
        ])
        .current_dir(workspace::root());
    run_quietly(cargo)?;
    let built = workspace::target_dir()?.join("debug/examples/named_loops");
    workspace::copy_into_place(&built, &bin.join("named_loops"))?;
    let mut objcopy = Command::new("objcopy");
    objcopy
        .arg("--strip-debug")
        .args([&built, &bin.join("named_loops-without-lines")]);
    run_quietly(objcopy)?;
    let mut strip = Command::new("strip");
    strip.arg(bin.join("timers-without-names"));
    run_quietly(strip)
}

/// Callbacks have the names and lines that the program was compiled with.
pub(super) fn c(stage: &Stage) -> Result<()> {
    let program = stage.start_with(&["timers"], &RECORDED)?;
    let pid = program.pid();
    let source = include_str!("../../views/timers.c");
    let callback = place("timers.c", source, "static void on_tick")?;
    let called = format!("called by a timer callback (on_tick ({callback}))");
    let report = stage.eventually(&["top", "--once", &pid], |report| {
        let texts = ["The loop", "computing in grind (timers.c:", &called];
        answer(report, "blocked")?.must_say("bad", &texts)
    })?;
    let blocked = answer(&report, "blocked")?;
    // The line is one of the function's.
    let (_, line) = blocked
        .sentence
        .split_once("grind (timers.c:")
        .context("no line")?;
    let line: usize = line
        .split(')')
        .next()
        .unwrap_or_default()
        .parse()
        .context("no line")?;
    let first = source
        .lines()
        .position(|line| line.contains("static void grind"));
    let last = source.lines().position(|line| line.contains("sum = 0;"));
    ensure!(
        first.map(|at| at + 1) < Some(line) && Some(line) <= last.map(|at| at + 1),
        "{blocked:?}"
    );
    stage.eventually(&["why", &pid], |why| {
        must_have(
            why,
            &[
                "1 repeating timer, every 20 ms",
                "calls `on_tick (timers.c:",
                "calls `on_hour (timers.c:",
            ],
        )
    })?;
    Ok(())
}

/// The threads of a process in a namespace of its own, as in a container, are found from outside.
pub(super) fn c_in_namespace(stage: &Stage) -> Result<()> {
    let words = ["unshare", "--pid", "--fork", "--kill-child", "timers"];
    let program = stage.start_with(&words, &RECORDED)?;
    let outer = program.pid();
    let children = std::fs::read_to_string(format!("/proc/{outer}/task/{outer}/children"))?;
    let report = stage.eventually(&["top", "--once", children.trim()], |report| {
        answer(report, "blocked")?.must_say("bad", &["computing in grind (timers.c:"])
    })?;
    must_have(section(&report, "1 Loops")?, &[" 1 main thread "])
}

/// Code without names is said to be unknown, by its place in the program.
pub(super) fn c_without_names(stage: &Stage) -> Result<()> {
    let program = stage.start_with(&["timers-without-names"], &RECORDED)?;
    let pid = program.pid();
    stage.eventually(&["top", "--once", &pid], |report| {
        let unknown = "?? (timers-without-names+0x";
        let callback = format!("called by a timer callback ({unknown}");
        answer(report, "blocked")?.must_say("bad", &["computing in ", unknown, &callback])
    })?;
    Ok(())
}

/// Without debug information, closures and futures have the names of their types, and no lines.
pub(super) fn rust_without_lines(stage: &Stage) -> Result<()> {
    let program = stage.start_with(&["named_loops-without-lines"], &RECORDED)?;
    stage.eventually(&["top", "--once", &program.pid()], |report| {
        let callbacks = section(report, "3 Callbacks")?;
        for name in [
            "named_loops::main::{{closure}} ",
            "named_loops::tick::{{closure}} ",
        ] {
            must_have(callbacks, &[name])?;
        }
        Ok(())
    })?;
    Ok(())
}

/// Loops, closures and tasks have names: loops those that the program has given them.
pub(super) fn rust(stage: &Stage) -> Result<()> {
    let program = stage.start_with(&["named_loops"], &RECORDED)?;
    let pid = program.pid();
    let source = include_str!("../../views/named_loops.rs");
    let interval = place("named_loops.rs", source, "|_, _| grind(")?;
    let tick = place("named_loops.rs", source, "async fn tick()")?;
    // Long names are shortened, and keep their places.
    let callback = format!("({interval}))");
    let places = [format!(" ({interval}) "), format!(" ({tick}) ")];
    stage.eventually(&["top", "--once", &pid], |report| {
        let texts = [
            "(grinder)",
            "computing in ",
            "named_loops::grind (named_loops.rs:",
            "a timer callback (named_loops::",
            &callback,
        ];
        answer(report, "blocked")?.must_say("bad", &texts)?;
        must_have(report, &[" quiet "])?;
        let texts = ["stays alive for 1 ", "One other loop is kept alive too."];
        answer(report, "alive")?.must_say("fine", &texts)?;
        must_have(section(report, "3 Callbacks")?, &[&places[0], &places[1]])
    })?;
    let timer = format!("calls `named_loops::main::{{{{closure}}}} ({interval})`");
    let why = stage.eventually(&["why", &pid], |why| {
        let texts = [
            "(quiet) stays alive for 1 reason:",
            "(grinder) stays alive for 1 reason:",
            &timer,
        ];
        must_have(why, &texts)
    })?;
    ensure!(
        !why.contains("uv_"),
        "it speaks of C to a program in Rust: {why}"
    );
    let list = stage.view(&["ps"])?;
    must_have(&list, &["named_loops", " grinder", " quiet"])
}
