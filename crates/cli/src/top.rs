//! `blacklight top`: what the loops of a process do, as answers and tables that follow it.
//!
//! The view reads the record of the process and never stops it. Where there is no terminal, and with `--once`, it
//! prints one report after one interval.

mod draw;
mod sections;
mod session;
mod state;
#[cfg(test)]
mod tests;

use crate::names::{Living, Names};
use crate::target::{self, Target};
use crate::words::{parse_time, tell};
use anyhow::{Context, Result, ensure};
use crossterm::event::{self, Event};
use sections::{answer_rows, section_rows};
use session::{Session, View};
use signal_hook::consts::{SIGHUP, SIGTERM};
use state::{Section, State};
use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _};
use std::process::{Child, ExitCode, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often the view is drawn.
const REFRESH: Duration = Duration::from_millis(500);
/// How often loops are looked at for callbacks that run too long.
const WATCH: Duration = Duration::from_millis(10);
/// How long a program may take to end once it was asked to.
const PATIENCE: Duration = Duration::from_secs(3);
/// How many stalls a report has.
const STALLS: usize = 10;
/// The width of a report.
const REPORT_WIDTH: usize = 100;

/// The options of the command.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Print one report as plain text after one interval, and end.
    #[arg(long)]
    once: bool,
    /// The time over which shares and rates are taken.
    #[arg(long, default_value = "1s", value_parser = parse_time)]
    interval: Duration,
    /// A callback that takes this long is a stall.
    #[arg(long, default_value = "100ms", value_parser = parse_time)]
    stall: Duration,
    #[command(flatten)]
    target: target::Options,
}

/// How the view has ended.
enum End {
    /// The user has quit.
    Quit,
    /// The process is not there any more.
    Gone,
}

/// Shows the view until the user quits or the process ends.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let Target { reader, mut child } = options.target.open(true)?;
    let pid = reader.pid();
    let names: Box<dyn Names> = Box::new(Living::of(pid));
    let session = Session::new(reader, names, options.interval, options.stall);
    let command = session.command().to_owned();
    let is_plain = options.once
        || !std::io::stdout().is_terminal()
        || !std::io::stdin().is_terminal()
        || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    let end = match is_plain {
        true => once(session, options.interval),
        false => follow(session),
    };
    // The program is ended whatever has gone wrong before.
    let status = child.as_mut().map(finish).transpose();
    match end? {
        End::Quit => status?.map(|_| ()),
        End::Gone => {
            let how = status?
                .flatten()
                .map_or(String::new(), |status| format!(" ({status})"));
            // There is no report of a process that is no more.
            ensure!(!is_plain, "process {pid} has ended{how}: {command}");
            tell(&format!("process {pid} has ended{how}: {command}"));
            Some(())
        }
    };
    Ok(ExitCode::SUCCESS)
}

/// Ends a program that a view has started. Returns how it ended, if it did.
pub(crate) fn finish(child: &mut Child) -> Result<Option<ExitStatus>> {
    if let Some(status) = child.try_wait()? {
        return Ok(Some(status));
    }
    let pid = rustix::process::Pid::from_child(child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM)?;
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        std::thread::sleep(WATCH);
    }
    tell(&format!(
        "the program, process {pid}, was sent SIGTERM and still runs"
    ));
    Ok(None)
}

/// Reads the record again. A record that cannot be read is that of a process that has ended, or an error.
fn refresh(session: &mut Session) -> Result<bool> {
    if !session.is_alive() {
        return Ok(false);
    }
    match session.refresh() {
        Err(_) if !session.is_alive() => Ok(false),
        result => result.map(|()| true),
    }
}

/// Watches for one interval and prints a report.
fn once(mut session: Session, interval: Duration) -> Result<End> {
    if !refresh(&mut session)? {
        return Ok(End::Gone);
    }
    let begun = Instant::now();
    let mut due = REFRESH;
    while begun.elapsed() < interval {
        std::thread::sleep(WATCH.min(interval));
        if begun.elapsed() >= due {
            // A program that has just been started makes loops meanwhile.
            due += REFRESH;
            if !refresh(&mut session)? {
                return Ok(End::Gone);
            }
        }
        if session.watch().is_err() && !session.is_alive() {
            return Ok(End::Gone);
        }
    }
    if !refresh(&mut session)? {
        return Ok(End::Gone);
    }
    let report = report(&session.view(None));
    match std::io::stdout().write_all(report.as_bytes()) {
        // A reader that has seen enough, such as `head`, is no error.
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(error).context("cannot print the report")
        }
        _ => Ok(End::Quit),
    }
}

/// All that there is to say, as plain text.
fn report(view: &View) -> String {
    let mut text = format!("process {}\n\n", view.title);
    for answer in &view.answers {
        let rows = answer_rows(std::slice::from_ref(answer), REPORT_WIDTH, true);
        for (at, row) in rows.iter().enumerate() {
            let verdict = if at == 0 { answer.verdict.word() } else { "" };
            let _ = writeln!(text, "{verdict:<6} {}", row.text);
        }
    }
    let state = State::default();
    for section in Section::ALL {
        text.push('\n');
        for row in section_rows(section, view, &state, REPORT_WIDTH, limit(section)) {
            let line = row.text.replace("; s sorts", "");
            let line = line.split(": press").next().unwrap_or_default();
            let _ = writeln!(text, "{}", line.trim_end());
        }
    }
    text
}

/// How many rows of a section a report has.
fn limit(section: Section) -> usize {
    match section {
        Section::Stalls => STALLS,
        _ => usize::MAX,
    }
}

/// Shows the view on the terminal, which is restored in the end, also by a panic and by a signal.
fn follow(mut session: Session) -> Result<End> {
    let is_told = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, is_told.clone())?;
    }
    let mut terminal = ratatui::try_init().context("cannot set up the terminal")?;
    let end = follow_on(&mut terminal, &mut session, &is_told);
    ratatui::try_restore().context("cannot restore the terminal")?;
    end
}

fn follow_on(
    terminal: &mut ratatui::DefaultTerminal,
    session: &mut Session,
    is_told: &AtomicBool,
) -> Result<End> {
    let has_colours = draw::has_colours();
    let mut state = State::default();
    let mut view = View::default();
    let mut due = Instant::now();
    while !is_told.load(Ordering::Relaxed) {
        if Instant::now() >= due {
            due = Instant::now() + REFRESH;
            if !refresh(session)? {
                return Ok(End::Gone);
            }
            if !state.is_paused {
                view = session.view(state.chosen);
                terminal.draw(|frame| draw::draw(frame, &view, &mut state, has_colours))?;
            }
        }
        if event::poll(WATCH)? {
            let chosen = state.chosen;
            if let Event::Key(key) = event::read()? {
                let loops: Vec<u32> = view.loops.iter().map(|(id, _)| *id).collect();
                if state.key(key, &loops) {
                    return Ok(End::Quit);
                }
            }
            if state.chosen != chosen {
                view = session.view(state.chosen);
            }
            terminal.draw(|frame| draw::draw(frame, &view, &mut state, has_colours))?;
        }
        if session.watch().is_err() && !session.is_alive() {
            return Ok(End::Gone);
        }
    }
    Ok(End::Quit)
}
