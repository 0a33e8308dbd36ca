//! `blacklight ps`: the processes of this user that run on Blacklight, and how their loops are.

use crate::sample::{name_of, snapshot, times_ns};
use crate::words::{clean, duration, print, program, shorten, without_directory, wrap};
use anyhow::Result;
use blacklight_record::layout::State;
use blacklight_record::read::{self, Error, Loop, Pool, Reader, Snapshot};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// How long loops are watched for their load.
const INTERVAL: Duration = Duration::from_millis(200);
/// How long processes may take until they record.
const PATIENCE: Duration = Duration::from_secs(3);
/// The width of the list.
const WIDTH: usize = 80;

/// The options of the list.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Have processes record that do not yet.
    #[arg(long)]
    record: bool,
}

/// What one loop was like while it was watched.
struct Row {
    id: u32,
    name: String,
    /// Its name, or else its thread's.
    title: String,
    tid: u32,
    state: State,
    state_ns: u64,
    /// The share of the time that the loop spent in callbacks and in its own code.
    load: f64,
    turns_per_second: f64,
    /// None before the first callback that waited.
    delay_p99_ns: Option<u64>,
    handles: usize,
    requests: u32,
}

/// What is known of a process.
enum Standing {
    Recording { rows: Vec<Row>, pool: Box<Pool> },
    NotRecording,
    Unreadable(Error),
}

/// One process.
struct Process {
    pid: u32,
    program: String,
    standing: Standing,
}

/// Prints the list.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let pids = pids();
    let readers: Vec<_> = pids
        .into_iter()
        .map(|pid| (pid, Reader::open(pid)))
        .collect();
    if options.record {
        have_recorded(&readers);
    }
    let processes = look(readers);
    if options.json {
        let list: Vec<Value> = processes.iter().map(value).collect();
        print(&(serde_json::to_string_pretty(&list)? + "\n"))?;
    } else {
        print(&text(&processes))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The processes that may have a record: those of the directories of this environment, and of the directory that
/// services and other sessions of this user have.
fn pids() -> BTreeSet<u32> {
    let uid = rustix::process::geteuid().as_raw();
    let session = format!("/run/user/{uid}/blacklight");
    let mut pids: BTreeSet<u32> = read::list().into_iter().collect();
    pids.extend(names_in(Path::new(&session)));
    pids
}

/// The processes whose records lie in a directory, by the names of the files. Whether a record is what it seems to be is seen when it is opened.
fn names_in(directory: &Path) -> Vec<u32> {
    let own = fs::metadata("/proc/self/ns/pid").map(|namespace| namespace.ino());
    let Ok((entries, own)) = fs::read_dir(directory).and_then(|entries| Ok((entries, own?))) else {
        return Vec::new();
    };
    let pids = entries.flatten().filter_map(|entry| {
        let name = entry.file_name();
        let (pid, namespace) = name.to_str()?.split_once('.')?;
        (namespace.parse() == Ok(own)).then(|| pid.parse().ok())?
    });
    pids.collect()
}

/// Asks all processes to record, wakes their loops, and waits for them.
fn have_recorded(readers: &[(u32, Result<Reader, Error>)]) {
    let readers = readers
        .iter()
        .filter_map(|(_, reader)| reader.as_ref().ok());
    let asked: Vec<&Reader> = readers
        .filter(|reader| matches!(reader.is_recording(), Ok(false)) && reader.want().is_ok())
        .collect();
    for reader in &asked {
        // Those that the system does not let us wake record when they wake by themselves.
        let _ = reader.wake();
    }
    let begun = Instant::now();
    let is_waiting = |reader: &&Reader| matches!(reader.is_recording(), Ok(false));
    while asked.iter().any(is_waiting) && begun.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Watches the loops of all processes for a while.
fn look(readers: Vec<(u32, Result<Reader, Error>)>) -> Vec<Process> {
    let before: Vec<_> = readers
        .into_iter()
        .map(|(pid, reader)| {
            let first = reader.and_then(|reader| snapshot(&reader).map(|first| (reader, first)));
            (pid, first)
        })
        .collect();
    if before.iter().any(|(_, first)| first.is_ok()) {
        std::thread::sleep(INTERVAL);
    }
    let looked = before.into_iter().filter_map(|(pid, first)| {
        let rows = first.and_then(|(reader, first)| {
            let second = snapshot(&reader)?;
            let rows = second
                .loops
                .iter()
                .map(|lp| row(&reader, &first, &second, lp));
            Ok((rows.collect::<Result<_, _>>()?, second.pool, reader))
        });
        let standing = match rows {
            // What it left behind says nothing of the present.
            Ok((_, _, reader)) if !reader.is_alive() => return None,
            Err(Error::Gone(_) | Error::NoProcess(_) | Error::NotHere(_)) => return None,
            Ok((rows, pool, _)) => Standing::Recording {
                rows,
                pool: Box::new(pool),
            },
            Err(Error::NotRecording(_)) => Standing::NotRecording,
            Err(error) => Standing::Unreadable(error),
        };
        let program = program(pid);
        Some(Process {
            pid,
            program,
            standing,
        })
    });
    looked.collect()
}

/// What a loop did between two snapshots. One that is younger is measured since it was made.
fn row(reader: &Reader, first: &Snapshot, second: &Snapshot, lp: &Loop) -> Result<Row, Error> {
    let old = first.loops.iter().find(|old| old.id == lp.id);
    let from_ns = old.map_or(lp.made_ns, |_| first.taken_ns);
    let before = old.map_or([0; 5], |old| times_ns(old, first.taken_ns));
    let after = times_ns(lp, second.taken_ns);
    let spent = |state: State| {
        let state = state as usize;
        after[state].saturating_sub(before[state]) as f64
    };
    let seconds = second.taken_ns.saturating_sub(from_ns).max(1) as f64 / 1e9;
    let turns = lp.turns.saturating_sub(old.map_or(0, |old| old.turns));
    let busy = spent(State::Working) + spent(State::Callback);
    Ok(Row {
        id: lp.id,
        name: clean(&lp.name),
        title: name_of(reader.pid(), lp),
        tid: lp.tid,
        state: lp.now.state,
        state_ns: second.taken_ns.saturating_sub(lp.now.since_ns),
        load: (busy / 1e9 / seconds).clamp(0.0, 1.0),
        turns_per_second: turns as f64 / seconds,
        delay_p99_ns: (lp.delay.count() > 0).then(|| lp.delay.quantile_ns(0.99)),
        handles: reader.handles(lp)?.len(),
        requests: lp.requests,
    })
}

/// The sum of counts that another process has written.
fn sum(numbers: &[u32]) -> u64 {
    numbers.iter().map(|number| u64::from(*number)).sum()
}

/// What a loop's thread is doing, in a word.
fn state_name(state: State) -> &'static str {
    match state {
        State::Callback => "in callback",
        other => other.name(),
    }
}

/// The list as people read it.
fn text(processes: &[Process]) -> String {
    if processes.is_empty() {
        return "No process of yours runs on Blacklight; `blacklight run --record -- node app.js` starts one.\n".to_owned();
    }
    let mut out = format!(
        "{:>7}  {:<15} {:<18} {:>4} {:>9} {:>7} {:>7}\n",
        "PID", "LOOP", "STATE", "LOAD", "DELAY P99", "TURNS/S", "HANDLES"
    );
    for process in processes {
        // Writing to a string does not fail.
        let _ = write_process(&mut out, process);
    }
    let is_silent = |process: &Process| matches!(process.standing, Standing::NotRecording);
    if processes.iter().any(is_silent) {
        out.push_str("`blacklight ps --record` has those record that do not yet.\n");
    }
    out
}

fn write_process(out: &mut String, process: &Process) -> std::fmt::Result {
    let note = match &process.standing {
        Standing::Recording { pool, .. } => pool_text(pool),
        Standing::NotRecording => "not recording".to_owned(),
        Standing::Unreadable(_) => String::new(),
    };
    let room = WIDTH
        - 9
        - if note.is_empty() {
            0
        } else {
            note.chars().count() + 2
        };
    let program = shorten(without_directory(&process.program), room);
    let line = format!("{:>7}  {program:<room$}  {note}", process.pid);
    writeln!(out, "{}", line.trim_end())?;
    match &process.standing {
        Standing::Recording { rows, .. } if rows.is_empty() => {
            writeln!(out, "{:>9}it has no loop", "")?;
        }
        Standing::Recording { rows, .. } => {
            for row in rows {
                write_row(out, row)?;
            }
        }
        Standing::NotRecording => {}
        Standing::Unreadable(error) => {
            for line in wrap(&error.to_string(), WIDTH - 9) {
                writeln!(out, "{:>9}{line}", "")?;
            }
        }
    }
    Ok(())
}

fn write_row(out: &mut String, row: &Row) -> std::fmt::Result {
    let name = shorten(format!("{} {}", row.id, row.title).trim_end(), 15);
    let state = format!("{} {}", state_name(row.state), duration(row.state_ns));
    let delay = row.delay_p99_ns.map_or("–".to_owned(), duration);
    let load = row.load * 100.0;
    let (turns, handles) = (row.turns_per_second, row.handles);
    writeln!(
        out,
        "{:>9}{name:<15} {state:<18} {load:>3.0}% {delay:>9} {turns:>7.0} {handles:>7}",
        ""
    )
}

/// What the pool does, in a few words.
fn pool_text(pool: &Pool) -> String {
    let (busy, queued) = (sum(&pool.running), sum(&pool.queued));
    match (pool.threads, queued) {
        (0, _) => "pool not started".to_owned(),
        (threads, 0) => format!("pool {busy} of {threads} busy"),
        (threads, queued) => format!("pool {busy} of {threads} busy, {queued} queued"),
    }
}

/// A process as JSON.
fn value(process: &Process) -> Value {
    let mut value = json!({ "pid": process.pid, "program": process.program, "recording": false });
    match &process.standing {
        Standing::Recording { rows, pool } => {
            value["recording"] = true.into();
            value["pool"] = json!({
                "threads": pool.threads,
                "busy": sum(&pool.running),
                "queued": sum(&pool.queued),
            });
            value["loops"] = rows.iter().map(row_value).collect();
        }
        Standing::NotRecording => {}
        Standing::Unreadable(error) => value["error"] = error.to_string().into(),
    }
    value
}

fn row_value(row: &Row) -> Value {
    json!({
        "id": row.id,
        "name": row.name,
        "title": row.title,
        "tid": row.tid,
        "state": row.state.name(),
        "state_seconds": row.state_ns as f64 / 1e9,
        "load": row.load,
        "turns_per_second": row.turns_per_second,
        "delay_p99_seconds": row.delay_p99_ns.map(|ns| ns as f64 / 1e9),
        "handles": row.handles,
        "requests": row.requests,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_this_namespace_are_found_by_their_names() {
        let directory = std::env::temp_dir().join(format!("blacklight-ps-{}", std::process::id()));
        fs::create_dir(&directory).expect("a directory");
        let own = fs::metadata("/proc/self/ns/pid")
            .expect("a namespace")
            .ino();
        for name in [
            format!("71.{own}"),
            format!("72.{}", own + 1),
            "73".into(),
            "x.y".into(),
        ] {
            fs::write(directory.join(name), "").expect("a file");
        }
        let found = names_in(&directory);
        fs::remove_dir_all(&directory).expect("it was made here");
        assert_eq!(found, [71]);
        assert_eq!(names_in(&directory), [0; 0], "it is no more");
    }
}
