//! What cannot be shown: one sentence says why, and the program that was asked about goes on.

use super::report::must_have;
use super::stage::{Program, Stage, User, mount_in_memory, refusal, request};
use anyhow::{Context, Result, ensure};
use blacklight_record::layout::{Body, Page, VERSION};
use nix::mount::umount;
use std::fs::{self, File};
use std::mem::offset_of;
use std::os::unix::fs::{FileExt, chown};
use std::path::{Path, PathBuf};

const NODE: &str = "/srv/node26/bin/node";

/// The views that are asked about a process.
const VIEWS: [&[&str]; 4] = [
    &["why"],
    &["top", "--once"],
    &["metrics"],
    &["trace", "--for", "1s"],
];

/// A server that is recorded.
fn server(stage: &Stage) -> Result<Program> {
    stage.start(&[
        "blacklight",
        "run",
        "--record",
        "--",
        NODE,
        "/srv/app/forgotten.js",
    ])
}

/// Asks all views about a process, each of which must refuse in these words.
fn all_refuse(stage: &Stage, pid: &str, words: &[&str]) -> Result<()> {
    for view in VIEWS {
        let said = stage.refusal(&[view, &[pid]].concat())?;
        must_have(&said, words).with_context(|| format!("blacklight {}", view.join(" ")))?;
    }
    Ok(())
}

/// The record of a process, as a file.
fn record(program: &Program) -> Result<PathBuf> {
    let pid = program.pid();
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).context("no mappings")?;
    let name = format!("/{pid}.");
    let mut paths = maps.lines().filter_map(|line| line.get(line.find('/')?..));
    let path = paths.find(|path| path.contains("blacklight") && path.contains(&name));
    path.map(PathBuf::from)
        .with_context(|| format!("process {pid} has no record"))
}

pub(super) fn no_process(stage: &Stage) -> Result<()> {
    let program = stage.start(&["sh", "-c", "echo ready; sleep 1000"])?;
    let pid = program.pid();
    program.end()?;
    all_refuse(stage, &pid, &[&format!("there is no process {pid}")])
}

pub(super) fn other_user(stage: &Stage) -> Result<()> {
    let other = Stage::new(stage.user.other())?;
    let mut program = server(&other)?;
    let pid = program.pid();
    all_refuse(
        stage,
        &pid,
        &[&format!("process {pid} belongs to another user")],
    )?;
    ensure!(
        !stage.view(&["ps"])?.contains(&pid),
        "the list has another user's process"
    );
    program.must_run()?;
    request(program.port()?).map(drop)
}

pub(super) fn not_here(stage: &Stage) -> Result<()> {
    let mut program = stage.start(&["sh", "-c", "echo ready; sleep 1000; :"])?;
    let pid = program.pid();
    all_refuse(
        stage,
        &pid,
        &[
            &format!("process {pid} has no record"),
            "does not run on Blacklight",
        ],
    )?;
    program.must_run()
}

/// A process that ends while it is watched.
pub(super) fn gone(stage: &Stage) -> Result<()> {
    let program = server(stage)?;
    let pid = program.pid();
    let record = record(&program)?;
    let arguments = ["top", "--once", "--interval", "1000s", &pid];
    let mut view = stage.start_blacklight(&arguments)?;
    // It watches from when it has the record open.
    let descriptors = format!("/proc/{}/fd", view.id());
    let is_open = || {
        let entries = fs::read_dir(&descriptors).into_iter().flatten().flatten();
        let mut targets = entries.filter_map(|entry| fs::read_link(entry.path()).ok());
        targets.any(|target| target == record)
    };
    while !is_open() {
        let ended = view.try_wait().context("cannot look at the view")?;
        ensure!(ended.is_none(), "the view has ended before: {ended:?}");
        std::thread::yield_now();
    }
    program.end()?;
    let output = view
        .wait_with_output()
        .context("cannot wait for the view")?;
    let said = refusal(&arguments, &output)?;
    must_have(&said, &[&format!("process {pid} has ended")])?;
    all_refuse(stage, &pid, &[&format!("there is no process {pid}")])
}

pub(super) fn other_version(stage: &Stage) -> Result<()> {
    let mut program = server(stage)?;
    let pid = program.pid();
    let file = File::options()
        .write(true)
        .open(record(&program)?)
        .context("no record")?;
    let set =
        |version: u32| file.write_all_at(&version.to_ne_bytes(), offset_of!(Page, version) as u64);
    set(VERSION + 7)?;
    let found = format!("the record of process {pid} has version {}", VERSION + 7);
    all_refuse(
        stage,
        &pid,
        &[&found, &format!("this command reads version {VERSION}")],
    )?;
    must_have(&stage.view(&["ps"])?, &[&found])?;
    set(VERSION)?;
    must_have(&stage.view(&["why", &pid])?, &["stays alive for"])?;
    program.must_run()?;
    request(program.port()?).map(drop)
}

pub(super) fn damaged(stage: &Stage) -> Result<()> {
    let mut program = server(stage)?;
    let pid = program.pid();
    let path = record(&program)?;
    let file = File::options()
        .read(true)
        .write(true)
        .open(path)
        .context("no record")?;
    let mut body = [0; 8];
    file.read_exact_at(&mut body, offset_of!(Page, body) as u64)?;
    let count = u64::from_ne_bytes(body) + offset_of!(Body, count) as u64;
    let places = [
        (
            offset_of!(Page, signature) as u64,
            "the record is damaged: its signature is missing",
        ),
        (
            count,
            "the record is damaged: it lists more segments than it may have",
        ),
        (offset_of!(Page, body) as u64, "the record is damaged: "),
    ];
    for (at, said) in places {
        let mut kept = [0; 8];
        file.read_exact_at(&mut kept, at)?;
        file.write_all_at(&[0xff; 8], at)?;
        all_refuse(stage, &pid, &[said])?;
        file.write_all_at(&kept, at)?;
    }
    must_have(&stage.view(&["why", &pid])?, &["stays alive for"])?;
    program.must_run()?;
    request(program.port()?).map(drop)
}

/// A file system in memory with room for the record's first page, and for no more.
pub(super) fn full(stage: &Stage) -> Result<()> {
    let runtime = Path::new("/srv/full");
    fs::create_dir_all(runtime)?;
    mount_in_memory(runtime, "size=4k,mode=700")?;
    let result = full_at(stage.user, runtime);
    umount(runtime).context("cannot unmount")?;
    result
}

fn full_at(user: User, runtime: &Path) -> Result<()> {
    chown(runtime, Some(user.id()), Some(user.id()))?;
    let stage = Stage::with_runtime(user, runtime)?;
    let mut program = server(&stage)?;
    let pid = program.pid();
    ensure!(
        record(&program)?.starts_with(runtime),
        "the record is elsewhere"
    );
    let words = [&*format!("process {pid} cannot record"), "is full"];
    all_refuse(&stage, &pid, &words)?;
    must_have(&stage.view(&["ps"])?, &words)?;
    program.must_run()?;
    request(program.port()?)?;
    program.end()
}

/// A process that finds no place for a record runs all the same.
pub(super) fn no_place(stage: &Stage) -> Result<()> {
    let shm = Path::new("/dev/shm");
    mount_in_memory(shm, "size=4k,mode=1777")?;
    let result = no_place_at(stage.user);
    umount(shm).context("cannot unmount")?;
    result
}

fn no_place_at(user: User) -> Result<()> {
    fs::write("/dev/shm/filling", [1; 4096]).context("cannot fill it")?;
    // A directory on a disk is never used.
    let stage = Stage::with_runtime(user, Path::new("/var/tmp"))?;
    let mut program = server(&stage)?;
    let pid = program.pid();
    ensure!(record(&program).is_err(), "there is a record");
    all_refuse(&stage, &pid, &[&format!("process {pid} has no record")])?;
    program.must_run()?;
    request(program.port()?)?;
    program.end()
}
