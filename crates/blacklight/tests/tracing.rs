//! What `tracing` is told: all of it, in order, with levels and fields, and in which spans.

use blacklight::{Builder, Loop, LoopHandle, Mode, TcpListener, TcpStream, Timer};
use futures_lite::future::or;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::future::poll_fn;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::time::Duration;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// One thing that was told.
#[derive(Debug)]
struct Told {
    level: Level,
    target: String,
    fields: BTreeMap<&'static str, String>,
}

impl Told {
    fn of(metadata: &Metadata<'_>) -> Told {
        Told {
            level: *metadata.level(),
            target: metadata.target().to_owned(),
            fields: BTreeMap::new(),
        }
    }

    fn field(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", String::as_str)
    }

    /// What is the same in each run: neither the engine's tokens are, nor the numbers of tasks.
    fn what(&self) -> String {
        let event = self.field("event").split("Token").next().unwrap();
        let event = event.trim_end_matches('(');
        let error = self.field("event").split_once("Err(");
        let error = error.map_or("", |(_, error)| error.trim_end_matches(')'));
        let words = [self.field("message"), self.field("phase"), event, error];
        words.join(" ").trim_end().to_owned()
    }
}

impl Visit for Told {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.fields.insert(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.fields.insert(field.name(), value.to_owned());
    }
}

/// What was told of spans.
#[derive(Default)]
struct Spans {
    made: Vec<Told>,
    open: Vec<u64>,
    /// Each span that was entered and each event, below the spans that they are in.
    lines: Vec<String>,
}

impl Spans {
    fn note(&mut self, what: &str) {
        let indent = "  ".repeat(self.open.len());
        self.lines.push(format!("{indent}{what}"));
    }
}

/// Writes down all that it is told.
#[derive(Clone, Default)]
struct Listener {
    events: Arc<Mutex<Vec<Told>>>,
    spans: Arc<Mutex<Spans>>,
}

impl Subscriber for Listener {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut told = Told::of(span.metadata());
        span.record(&mut told);
        let name = span.metadata().name();
        told.fields.insert("message", name.to_owned());
        let mut spans = self.spans.lock().unwrap();
        spans.made.push(told);
        Id::from_u64(spans.made.len() as u64)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        let mut spans = self.spans.lock().unwrap();
        values.record(&mut spans.made[span.into_u64() as usize - 1]);
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut told = Told::of(event.metadata());
        event.record(&mut told);
        self.spans.lock().unwrap().note(&told.what());
        self.events.lock().unwrap().push(told);
    }

    fn enter(&self, span: &Id) {
        let mut spans = self.spans.lock().unwrap();
        let what = spans.made[span.into_u64() as usize - 1].what();
        spans.note(&what);
        spans.open.push(span.into_u64());
    }

    fn exit(&self, span: &Id) {
        let mut spans = self.spans.lock().unwrap();
        assert_eq!(spans.open.pop(), Some(span.into_u64()), "spans nest");
    }
}

/// All events that are told while a loop of this name lives.
fn listen(name: &str, run: impl FnOnce(&Loop)) -> Vec<Told> {
    listen_to_all(name, run).0
}

/// Everything that is told while a loop of this name lives.
fn listen_to_all(name: &str, run: impl FnOnce(&Loop)) -> (Vec<Told>, Spans) {
    listen_to_all_of(Loop::builder(), name, run)
}

fn listen_to_all_of(builder: Builder, name: &str, run: impl FnOnce(&Loop)) -> (Vec<Told>, Spans) {
    let listener = Listener::default();
    tracing::subscriber::with_default(listener.clone(), || {
        run(&builder.name(name).build().unwrap());
    });
    let told = std::mem::take(&mut *listener.events.lock().unwrap());
    let spans = std::mem::take(&mut *listener.spans.lock().unwrap());
    assert!(spans.open.is_empty(), "each span is exited");
    for told in spans.made.iter().filter(|told| told.target == "blacklight") {
        assert_eq!((told.field("loop"), told.level), (name, Level::TRACE));
    }
    for told in told.iter().filter(|told| told.target == "blacklight") {
        assert_eq!(told.field("loop"), name, "{told:?}");
        let level = match told.field("message") {
            "loop made" | "loop gone" => Level::DEBUG,
            "task panicked" => Level::WARN,
            _ => Level::TRACE,
        };
        assert_eq!(told.level, level, "{told:?}");
    }
    (told, spans)
}

fn what(told: &[Told]) -> Vec<String> {
    told.iter().map(Told::what).collect()
}

#[test]
fn a_callback_is_told_of_before_it_runs() {
    let told = listen("main", |lp| {
        let timer = Timer::new().unwrap();
        timer
            .start(Duration::ZERO, |_, timer| {
                tracing::info!(target: "test", "the callback");
                timer.close();
            })
            .unwrap();
        lp.run(Mode::Default);
    });
    let expected = [
        "loop made",
        "dispatch timers Timer",
        "the callback",
        "dispatch closing Closed",
        "loop gone",
    ];
    assert_eq!(what(&told), expected);
}

#[test]
fn a_connection_is_told_of_from_both_ends() {
    let told = listen("echo", |lp| {
        let listener =
            TcpListener::from_std(std::net::TcpListener::bind("127.0.0.1:0").unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        let server = lp.spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let mut room = [0; 16];
            let count = stream.read(&mut room).await.unwrap();
            stream.write_all(&room[..count]).await.unwrap();
        });
        lp.block_on(async {
            let client = TcpStream::connect(address).await.unwrap();
            client.write_all(b"light").await.unwrap();
            let mut room = [0; 16];
            assert_eq!(client.read(&mut room).await.unwrap(), 5);
            server.await.unwrap();
        });
    });
    let what = what(&told);
    let place = |wanted: &str| {
        let mut places = (0..what.len()).filter(|&at| what[at] == wanted);
        let place = places.next();
        place.unwrap_or_else(|| panic!("nothing of {wanted}: {what:#?}"))
    };
    assert_eq!(place("loop made"), 0);
    assert_eq!(place("task spawned"), 1);
    let accepted = place("dispatch poll Connection");
    let connected = place("dispatch poll Connect");
    let read = place("dispatch poll Read");
    let over = place("task over");
    assert!(accepted.max(connected) < read && read < over, "{what:#?}");
    assert_eq!(place("loop gone"), what.len() - 1);
    let task = |at: usize| told[at].field("task").parse::<u32>().unwrap();
    assert_eq!(task(1), task(over));
    assert_eq!(what.iter().filter(|what| *what == "task over").count(), 1);
}

#[test]
fn a_failing_connect_is_told_with_its_error() {
    // A port that nobody listens at, nor is ever given.
    let address = SocketAddr::from(([127, 0, 0, 1], 1));
    let told = listen("lost", |lp| {
        let check = |_: &LoopHandle, stream: std::io::Result<TcpStream>| {
            assert_eq!(stream.unwrap_err().kind(), ErrorKind::ConnectionRefused);
        };
        TcpStream::connect_then(address, check).unwrap();
        lp.run(Mode::Default);
    });
    let expected = [
        "loop made",
        "dispatch poll Connect ECONNREFUSED",
        "dispatch closing Closed",
        "loop gone",
    ];
    assert_eq!(what(&told), expected);
}

#[test]
fn a_task_is_told_of_once_however_it_ends() {
    let told = listen("tasks", |lp| {
        lp.spawn(async {});
        lp.run(Mode::Default);
        lp.spawn(async { panic!("as expected") });
        lp.run(Mode::Default);
        let cancelled = lp.spawn(std::future::pending::<()>());
        cancelled.abort();
        cancelled.abort();
        // One that cancels itself, and then comes to its end all the same.
        let own = std::rc::Rc::new(std::cell::OnceCell::new());
        let itself = own.clone();
        let task = lp.spawn(async move {
            let task: &blacklight::JoinHandle<()> = itself.get().unwrap();
            task.abort();
        });
        own.set(task).unwrap();
        lp.run(Mode::Default);
        lp.spawn(std::future::pending::<()>());
    });
    let told: Vec<_> = what(&told)
        .into_iter()
        .filter(|what| !what.starts_with("dispatch"))
        .collect();
    let expected = [
        "loop made",
        "task spawned",
        "task over",
        "task spawned",
        "task panicked",
        "task spawned",
        "task cancelled",
        "task spawned",
        "task cancelled",
        "task spawned",
        "loop gone",
    ];
    assert_eq!(told, expected);
}

#[test]
fn spans_nest_as_calls_do() {
    let (_, spans) = listen_to_all("spans", |lp| {
        // A probe of another kind changes nothing.
        lp.observe(|_| ());
        let timer = Timer::new().unwrap();
        let repeat = |lp: &LoopHandle, timer: &Timer| {
            tracing::info!(target: "test", "the callback");
            drop(lp.spawn(async { tracing::info!(target: "test", "the task") }));
            lp.observe(|_| ());
            timer.close();
        };
        timer.start(Duration::ZERO, repeat).unwrap();
        lp.run(Mode::Default);
        lp.block_on(async { tracing::info!(target: "test", "the future") });
    });
    let expected = "
loop made
run
  callback timers Timer
    dispatch timers Timer
    the callback
    task spawned
    poll
      the task
      task over
  callback closing Closed
    dispatch closing Closed
poll
  the future
loop gone";
    assert_eq!(spans.lines, expected.lines().skip(1).collect::<Vec<_>>());
    let callback = |told: &&Told| told.field("message") == "callback";
    let callback = spans.made.iter().find(callback).unwrap();
    assert_eq!(callback.field("turn").parse(), Ok(0));
    let run = &spans.made[0];
    assert_eq!(
        (run.field("message"), run.field("mode")),
        ("run", "Default")
    );
}

#[test]
fn a_loop_that_waits_says_so() {
    // By a real clock the time may be over before the loop comes to sleep.
    let simulated = Loop::builder().simulated(1);
    let (_, spans) = listen_to_all_of(simulated, "sleeper", |lp| {
        lp.block_on(blacklight::sleep(Duration::from_millis(2)));
    });
    let sleep = |told: &&Told| told.field("message") == "sleep";
    let sleep = spans.made.iter().find(sleep).expect("it sleeps");
    assert!(sleep.fields.contains_key("timeout"));
    assert!(
        spans.lines.iter().any(|line| line == "  sleep"),
        "in the run"
    );
}

#[test]
fn a_run_that_panics_ends_its_spans() {
    let (_, spans) = listen_to_all("failing", |lp| {
        let timer = Timer::new().unwrap();
        timer.start(Duration::ZERO, |_, _| panic!("oh")).unwrap();
        let run = AssertUnwindSafe(|| lp.run(Mode::Default));
        catch_unwind(run).unwrap_err();
        timer.close();
        lp.run(Mode::Default);
    });
    let runs = spans.lines.iter().filter(|line| *line == "run");
    assert_eq!(runs.count(), 2, "{:#?}", spans.lines);
}

#[test]
fn who_listens_later_hears_of_the_next_run() {
    let listener = Listener::default();
    let lp = Loop::new().unwrap();
    lp.block_on(async {});
    tracing::subscriber::with_default(listener.clone(), || {
        lp.block_on(blacklight::sleep(Duration::from_millis(1)));
    });
    lp.block_on(async {});
    let spans = listener.spans.lock().unwrap();
    let count = |what: &str| {
        spans
            .lines
            .iter()
            .filter(|line| line.trim() == what)
            .count()
    };
    assert_eq!((count("run"), count("poll")), (1, 2), "it is polled again");
}

/// A subscriber that passes on each `sleep` to a task, as one that logs does.
struct PassesOn(Arc<Mutex<Sleeps>>);

#[derive(Default)]
struct Sleeps {
    count: u32,
    waker: Option<Waker>,
}

impl Subscriber for PassesOn {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        if span.metadata().name() == "sleep" {
            let mut sleeps = self.0.lock().unwrap();
            sleeps.count += 1;
            let waker = sleeps.waker.take();
            drop(sleeps);
            if let Some(waker) = waker {
                waker.wake();
            }
        }
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[test]
fn a_subscriber_may_wake_a_task_as_the_loop_goes_to_sleep() {
    let sleeps = Arc::new(Mutex::new(Sleeps::default()));
    tracing::subscriber::with_default(PassesOn(sleeps.clone()), || {
        let lp = Loop::builder().simulated(1).build().unwrap();
        let logging = poll_fn(|context| {
            let mut sleeps = sleeps.lock().unwrap();
            sleeps.waker = Some(context.waker().clone());
            match sleeps.count {
                0 => Poll::Pending,
                _ => Poll::Ready(true),
            }
        });
        // An hour passes as soon as there is nothing else to do.
        let too_late = async {
            blacklight::sleep(Duration::from_secs(3600)).await;
            false
        };
        assert!(lp.block_on(or(too_late, logging)));
    });
}
