//! `blacklight demo`: runs a program with callbacks in every phase, and draws a chart of the run.
//!
//! The program has four timers, an idle handle that stops after some turns, prepare and check
//! handles, a thread that sends to an async handle, another that writes to a watched pipe, and an
//! echo server with a client.

use crate::echo::Echo;
use blacklight::{Async, Check, Dispatch, Idle, Loop, Mechanism, Mode};
use blacklight::{AsyncFd, Phase, Prepare, Readiness, Timer};
use std::cell::RefCell;
use std::io::{self, IsTerminal, PipeReader, Read, Write};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The options of the demo.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The poller to run on: select, poll or epoll. The default is the best available.
    #[arg(long, value_parser = parse_poller)]
    poller: Option<Mechanism>,
    /// How long to run, in milliseconds.
    #[arg(long, default_value_t = 600, value_parser = clap::value_parser!(u64).range(50..=60_000))]
    ms: u64,
}

pub(crate) fn parse_poller(name: &str) -> Result<Mechanism, String> {
    Mechanism::from_name(name).ok_or_else(|| "expected select, poll or epoll".into())
}

/// The callbacks that the observer has recorded.
#[derive(Default)]
struct Tally {
    dispatches: Vec<Dispatch>,
}

impl Tally {
    fn of(&self, phase: Phase) -> impl Iterator<Item = &Dispatch> {
        self.dispatches
            .iter()
            .filter(move |dispatch| dispatch.phase == phase)
    }
}

/// The handles and threads of the demo.
struct Program {
    timers: Vec<Timer>,
    idle: Idle,
    prepare: Prepare,
    check: Check,
    wakeup: Async,
    pipe: AsyncFd<PipeReader>,
    echo: Echo,
    sender: JoinHandle<Vec<()>>,
    writer: JoinHandle<Vec<io::Result<usize>>>,
    /// Dropping these ends the threads.
    ends: [mpsc::Sender<()>; 2],
    received: Rc<RefCell<u64>>,
}

/// Spawns a thread that calls `work` every `pause` until the demo ends.
fn every<T: Send + 'static>(
    pause: Duration,
    end: mpsc::Receiver<()>,
    mut work: impl FnMut() -> T + Send + 'static,
) -> JoinHandle<Vec<T>> {
    thread::spawn(move || {
        let mut done = Vec::new();
        while let Err(mpsc::RecvTimeoutError::Timeout) = end.recv_timeout(pause) {
            done.push(work());
        }
        done
    })
}

fn start(ms: u64) -> io::Result<Program> {
    let mut timers = Vec::new();
    for interval in [7, 20, 50] {
        let timer = Timer::new()?;
        timer.start_repeating(Duration::from_millis(interval), |_, _| spin(30))?;
        timers.push(timer);
    }
    let last = Timer::new()?;
    last.start(Duration::from_millis(ms), |lp, _| lp.stop())?;
    timers.push(last);

    // An idle handle keeps the loop from sleeping, so this one stops itself after some turns.
    let idle = Idle::new()?;
    let mut turns = 0;
    idle.start(move |_, idle| {
        turns += 1;
        spin(5);
        if turns == 40 {
            idle.stop();
        }
    })?;
    let prepare = Prepare::new()?;
    prepare.start(|_, _| ())?;
    let check = Check::new()?;
    check.start(|_, _| ())?;

    let wakeup = Async::new(|_, _| spin(10))?;
    let send = wakeup.sender();
    let (end_sender, sender_ended) = mpsc::channel();
    let sender = every(Duration::from_millis(9), sender_ended, move || send.send());

    let (reader, mut pen) = io::pipe()?;
    let received = Rc::new(RefCell::new(0));
    let pipe = watch(reader, received.clone())?;
    let (end_writer, writer_ended) = mpsc::channel();
    let writer = every(Duration::from_millis(13), writer_ended, move || {
        pen.write(b"what nobody saw before")
    });
    Ok(Program {
        timers,
        idle,
        prepare,
        check,
        wakeup,
        pipe,
        echo: Echo::start()?,
        sender,
        writer,
        ends: [end_sender, end_writer],
        received,
    })
}

/// Reads from the pipe, and counts the bytes.
fn watch(reader: PipeReader, received: Rc<RefCell<u64>>) -> io::Result<AsyncFd<PipeReader>> {
    let mut own = reader.try_clone()?;
    let poll = AsyncFd::new(reader)?;
    poll.start(Readiness::READABLE, move |_, ready| {
        let mut buffer = [0; 4096];
        if ready.is_ok()
            && let Ok(count) = own.read(&mut buffer)
        {
            *received.borrow_mut() += count as u64;
        }
    })?;
    Ok(poll)
}

/// Spins for a time, as a callback that computes.
fn spin(us: u64) {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_micros(us) {
        std::hint::spin_loop();
    }
}

pub(crate) fn run(options: &Options) -> io::Result<()> {
    let mut builder = Loop::builder().measure_idle_time();
    if let Some(mechanism) = options.poller {
        builder = builder.poller(mechanism);
    }
    let lp = builder.build()?;
    let tally = Rc::new(RefCell::new(Tally::default()));
    let seen = tally.clone();
    lp.observe(move |dispatch| seen.borrow_mut().dispatches.push(dispatch));

    let begun = Instant::now();
    let program = start(options.ms)?;
    lp.run(Mode::Default);
    let outcome = finish(&lp, program)?;
    let elapsed = begun.elapsed();

    let tally = tally.borrow();
    let mut out = io::stdout().lock();
    draw(&mut out, &lp, &tally, elapsed, io::stdout().is_terminal())?;
    let woken = tally.of(Phase::Poll).count();
    let Outcome {
        sent,
        written,
        received,
        server,
        echoed,
    } = outcome;
    writeln!(
        out,
        "\n  {sent} sends and {written} bytes from two threads, {received} of which arrived;\n  \
         {echoed} bytes to the echo server at {server} and back, each of them checked:\n  \
         {woken} callbacks in the poll phase.\n\n  \
         `{} live --demo` opens a page in the browser that shows such a program while it runs.",
        own_command()
    )?;
    if written != received {
        return Err(io::Error::other(format!(
            "{written} bytes written, {received} read"
        )));
    }
    Ok(())
}

/// The words by which this command was started: `cargo run` has its user's shell find no program.
fn own_command() -> String {
    let name = std::env::args_os().next().unwrap_or_default();
    match std::env::var_os("CARGO") {
        Some(_) if cfg!(debug_assertions) => "cargo run --".into(),
        Some(_) => "cargo run --release --".into(),
        None => crate::words::clean(&name.to_string_lossy()),
    }
}

/// The results of the program.
struct Outcome {
    /// The number of sends.
    sent: u64,
    /// Bytes written to the pipe.
    written: u64,
    received: u64,
    server: SocketAddr,
    /// Bytes that the echo server returned.
    echoed: u64,
}

/// Ends the threads, receives the bytes in flight, and closes all handles.
fn finish(lp: &Loop, program: Program) -> io::Result<Outcome> {
    drop(program.ends);
    let panicked = |_| io::Error::other("a thread of the demo panicked");
    let sent = program.sender.join().map_err(panicked)?.len() as u64;
    let written = program.writer.join().map_err(panicked)?;
    let written = written.into_iter().sum::<io::Result<usize>>()? as u64;
    let is_in_flight = || *program.received.borrow() < written || program.echo.is_waiting();
    while is_in_flight() && lp.run(Mode::NoWait) {}
    drop((program.timers, program.idle, program.prepare, program.check));
    drop((program.wakeup, program.pipe));
    let (server, echoed) = program.echo.finish()?;
    lp.run(Mode::Default);
    let received = *program.received.borrow();
    Ok(Outcome {
        sent,
        written,
        received,
        server,
        echoed,
    })
}

fn draw(
    out: &mut impl Write,
    lp: &Loop,
    tally: &Tally,
    elapsed: Duration,
    color: bool,
) -> io::Result<()> {
    let paint = |code: &str, text: String| match color {
        true => format!("\x1b[{code}m{text}\x1b[0m"),
        false => text,
    };
    let metrics = lp.metrics();
    writeln!(
        out,
        "\n  {} on {}: {} turns in {:.0?}, {:.1} % of it asleep\n",
        paint("1;35", "blacklight".into()),
        lp.mechanism().name(),
        metrics.loop_count,
        elapsed,
        lp.idle_time().as_secs_f64() / elapsed.as_secs_f64() * 100.0
    )?;
    writeln!(
        out,
        "  {:10}{:>9}{:>12}{:>12}   time in callbacks",
        "phase", "calls", "total", "longest"
    )?;
    let total = |phase| {
        tally
            .of(phase)
            .map(|dispatch| dispatch.took)
            .sum::<Duration>()
    };
    let most = Phase::ALL.map(total).into_iter().max().unwrap_or_default();
    for phase in Phase::ALL {
        let longest = tally
            .of(phase)
            .map(|dispatch| dispatch.took)
            .max()
            .unwrap_or_default();
        let width = (total(phase).as_secs_f64() / most.as_secs_f64().max(1e-9) * 32.0).ceil();
        writeln!(
            out,
            "  {:10}{:>9}{:>12}{:>12}   {}",
            phase.name(),
            tally.of(phase).count(),
            format!("{:.1?}", total(phase)),
            format!("{longest:.1?}"),
            paint("35", "█".repeat(width as usize)),
        )?;
    }
    draw_turns(out, tally, &paint)
}

/// Draws the first turns that ran a timer or an event, one line each.
fn draw_turns(
    out: &mut impl Write,
    tally: &Tally,
    paint: &dyn Fn(&str, String) -> String,
) -> io::Result<()> {
    let eventful = |dispatch: &&Dispatch| {
        matches!(dispatch.phase, Phase::Timers | Phase::Pending | Phase::Poll)
    };
    let mut turns: Vec<u64> = tally
        .dispatches
        .iter()
        .filter(eventful)
        .map(|d| d.turn)
        .collect();
    turns.dedup();
    writeln!(out, "\n  the first turns in which something happened:")?;
    for turn in turns.into_iter().take(8) {
        let of_turn = tally
            .dispatches
            .iter()
            .filter(|dispatch| dispatch.turn == turn);
        let order: Vec<&str> = of_turn.map(|dispatch| dispatch.phase.name()).collect();
        let arrow = paint("2", " → ".into());
        writeln!(out, "  {turn:>8}  {}", order.join(&arrow))?;
    }
    Ok(())
}
