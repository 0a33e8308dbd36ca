//! `blacklight live`: a page in the browser that shows the loops of a process, its children and its workers as they turn.
//!
//! The *sampler* reads records and keeps the documents that the page is made of, and the *server* brings the pages whatever has changed.
//! Each has a thread, and they meet in the [`hub`]. A third thread, the [`lookout`], finds stalls and takes their stacks. The server listens
//! on this machine only, and [`guard`] says who gets what. A program that is started has the [`reaper`] between it and the server.

mod demo;
mod document;
mod growth;
mod guard;
mod hub;
mod load;
mod lookout;
mod named;
mod past;
mod peer;
mod program;
mod reaper;
mod recording;
mod sampler;
mod server;
mod steady;
mod watched;

use crate::run::bind_to;
use crate::target;
use crate::words::{parse_time, tell};
use anyhow::{Result, bail, ensure};
use hub::Hub;
use program::Program;
pub(crate) use reaper::{Options as Reaper, run as reap};
use recording::Writer;
use sampler::{Sampler, Started};
use server::{Content, Server};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// The options of the command.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The process to show, or a recording that was saved. Without it, one is chosen in the page.
    #[arg(conflicts_with_all = ["program", "demo"])]
    target: Option<OsString>,
    /// Start a small program that has a blocked loop, a starved pool and a leak to find.
    #[arg(long, conflicts_with = "program")]
    demo: bool,
    /// Save what the page is told into a file, for `blacklight live FILE`.
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Do not open the browser.
    #[arg(long)]
    no_open: bool,
    /// The port to serve the page at. The default is one that is free.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// A callback that takes this long is a stall.
    #[arg(long, default_value = "100ms", value_parser = parse_time)]
    stall: Duration,
    /// A program to start and show, with its arguments.
    #[arg(last = true)]
    program: Vec<OsString>,
}

/// Serves the page until it is stopped.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let shown = show(options);
    // This process has a loop, and so a record as well.
    blacklight_record::read::remove(std::process::id());
    shown.map(|()| ExitCode::SUCCESS)
}

fn show(options: &Options) -> Result<()> {
    let pid = options
        .target
        .as_ref()
        .and_then(|target| target.to_str()?.parse().ok());
    if let (Some(file), None) = (&options.target, pid) {
        ensure!(
            options.save.is_none(),
            "what is saved already is not saved again"
        );
        let recording = recording::read(file.as_ref())?;
        let hub = Arc::new(Hub::default());
        let frames = Rc::new(recording.frames);
        let server = Server::new(options.port, hub, Content::Recording(frames))?;
        announce(&server, Some(recording.pid), options);
        server.run();
        return Ok(());
    }
    let hub = Arc::new(Hub::default());
    // The port is taken before the program is started, so that nothing is left behind where that fails.
    let server = Server::new(options.port, Arc::clone(&hub), Content::Live)?;
    let program = match pid {
        Some(pid) => {
            target::attach(pid)?;
            None
        }
        None if options.demo => Some(Program::start(&[], &hub)?),
        None if options.program.is_empty() => None,
        None => Some(Program::start(&options.program, &hub)?),
    };
    let pid = pid.or(program.as_ref().map(|program| program.pid));
    let started = program.as_ref().map(Program::started);
    let served = serve(server, &hub, options, (pid, started));
    let finished = program.map_or(Ok(()), Program::finish);
    served.and(finished)
}

/// The program of the demo.
pub(crate) fn demo(parent: i32) -> Result<ExitCode> {
    bind_to(parent)?;
    demo::run()?;
    Ok(ExitCode::SUCCESS)
}

/// The program of load tests.
pub(crate) fn load() -> Result<ExitCode> {
    load::run()?;
    Ok(ExitCode::SUCCESS)
}

/// Ends the server with the thread that reads what it serves, also if that panics.
struct Ends {
    hub: Arc<Hub>,
    tell_server: Box<dyn Fn() + Send>,
}

impl Drop for Ends {
    fn drop(&mut self) {
        let end = || "the thread that reads records has ended".to_owned();
        self.hub.lock().end.get_or_insert_with(end);
        (self.tell_server)();
    }
}

/// Serves what runs: a process, which may have been started for this, or what is chosen in the page.
fn serve(
    server: Server,
    hub: &Arc<Hub>,
    options: &Options,
    (pid, program): (Option<u32>, Option<Started>),
) -> Result<()> {
    let writer = match (&options.save, pid) {
        (None, _) => None,
        (Some(path), Some(pid)) => Some(Writer::new(path, pid)?),
        (Some(_), None) => bail!("what to save? Name a process or a program"),
    };
    // A recording has no gaps.
    hub.lock().constant = writer.is_some().then_some(pid).flatten();
    let ends = Ends {
        hub: Arc::clone(hub),
        tell_server: server.teller(),
    };
    let (own, news, stall) = (Arc::clone(hub), server.teller(), options.stall);
    let thread = std::thread::Builder::new().name("sampler".into());
    let thread = thread.spawn(move || {
        let sampler = Sampler::new(&own, news, stall, program, writer);
        let result = sampler.and_then(Sampler::run);
        if let Err(error) = &result {
            ends.hub.lock().end.get_or_insert_with(|| error.to_string());
        }
        result
    })?;
    announce(&server, pid, options);
    server.run();
    match thread.join() {
        Ok(result) => result,
        Err(_) => bail!("the thread that reads records has panicked"),
    }
}

/// Says where the page is, and opens it.
fn announce(server: &Server, pid: Option<u32>, options: &Options) {
    let (page, once) = server.addresses();
    let place = pid.map_or(String::new(), |pid| format!("#pid={pid}"));
    tell(&format!("{page}{place}"));
    if options.no_open {
        return;
    }
    // Every user of this machine can see the arguments of a program, so the browser gets an address that opens the page once.
    let opened = Command::new("xdg-open")
        .arg(format!("{once}{place}"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    // It is waited for, so that no zombie is left; what it has opened is the user's.
    let waited = opened.map(|mut opened| std::thread::spawn(move || opened.wait()));
    if waited.is_err() {
        tell("there is no xdg-open to open it with: open the address in a browser; Ctrl-C ends");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_panics_ends_the_server() {
        let hub = Arc::new(Hub::default());
        let (told, news) = std::sync::mpsc::channel();
        let ends = Ends {
            hub: Arc::clone(&hub),
            tell_server: Box::new(move || told.send(()).expect("somebody waits")),
        };
        let thread = std::thread::spawn(move || {
            let _ends = ends;
            panic!("as asked");
        });
        assert!(thread.join().is_err());
        news.recv().expect("the server is told");
        assert!(hub.lock().end.is_some());
    }
}
