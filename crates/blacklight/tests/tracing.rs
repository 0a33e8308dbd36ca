//! What `tracing` is told: all of it, in order, with levels and fields.

use blacklight::{Loop, Mode, TcpListener, TcpStream, Timer};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io::ErrorKind;
use std::sync::{Arc, Mutex};
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

/// Writes down all that it is told.
#[derive(Clone, Default)]
struct Listener(Arc<Mutex<Vec<Told>>>);

impl Subscriber for Listener {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        panic!("nobody has said anything of spans: {span:?}");
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut told = Told {
            level: *event.metadata().level(),
            target: event.metadata().target().to_owned(),
            fields: BTreeMap::new(),
        };
        event.record(&mut told);
        self.0.lock().unwrap().push(told);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// All that is told while a loop of this name lives.
fn listen(name: &str, run: impl FnOnce(&Loop)) -> Vec<Told> {
    let listener = Listener::default();
    tracing::subscriber::with_default(listener.clone(), || {
        run(&Loop::builder().name(name).build().unwrap());
    });
    let told = std::mem::take(&mut *listener.0.lock().unwrap());
    for told in told.iter().filter(|told| told.target == "blacklight") {
        assert_eq!(told.field("loop"), name, "{told:?}");
        let level = match told.field("message") {
            "loop made" | "loop gone" => Level::DEBUG,
            "task panicked" => Level::WARN,
            _ => Level::TRACE,
        };
        assert_eq!(told.level, level, "{told:?}");
    }
    told
}

fn what(told: &[Told]) -> Vec<String> {
    told.iter().map(Told::what).collect()
}

#[test]
fn a_callback_is_told_of_before_it_runs() {
    let told = listen("main", |lp| {
        let timer = Timer::new(lp).unwrap();
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
        let listener = TcpListener::bind(lp, "127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        let server = lp.spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let mut room = [0; 16];
            let count = stream.read(&mut room).await.unwrap();
            stream.write_all(&room[..count]).await.unwrap();
        });
        lp.block_on(async {
            let client = TcpStream::connect(&blacklight::current(), address)
                .await
                .unwrap();
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
    // Nobody listens there any more.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let told = listen("lost", |lp| {
        let check = |_: &Loop, stream: std::io::Result<TcpStream>| {
            assert_eq!(stream.unwrap_err().kind(), ErrorKind::ConnectionRefused);
        };
        TcpStream::connect_then(lp, address, check).unwrap();
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
        cancelled.cancel();
        cancelled.cancel();
        // One that cancels itself, and then comes to its end all the same.
        let own = std::rc::Rc::new(std::cell::OnceCell::new());
        let itself = own.clone();
        let task = lp.spawn(async move {
            let task: &blacklight::JoinHandle<()> = itself.get().unwrap();
            task.cancel();
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
