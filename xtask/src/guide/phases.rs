//! What a program on our library has printed, and in which phase.
//!
//! The program is recorded. Something that is loaded with it notes when each line was printed, and stops the process
//! before its loop is closed; then the record is read, and each line belongs to the callback that ran at its time.

use anyhow::{Context, Result, bail, ensure};
use blacklight_record::What;
use blacklight_record::layout::PHASES;
use blacklight_record::read::{Event, Reader, callback_kind};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use object::{Object, ObjectKind, ObjectSymbol};
use rustc_demangle::demangle;
use std::collections::HashMap;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// How long a program may take on a machine that is busy with other things.
const LIMIT: Duration = Duration::from_secs(300);

/// The functions of an executable, by their addresses.
#[derive(Debug)]
pub(super) struct Symbols {
    names: HashMap<u64, String>,
    /// Whether the system chooses where the executable lies in memory.
    is_moved: bool,
    path: String,
}

impl Symbols {
    pub(super) fn read(path: &Path) -> Result<Symbols> {
        let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        let file = object::File::parse(&*bytes)?;
        let functions = file.symbols().filter(|symbol| symbol.address() != 0);
        let names = functions.filter_map(|symbol| {
            let name = symbol.name().ok()?;
            Some((symbol.address(), name.to_owned()))
        });
        Ok(Symbols {
            names: names.collect(),
            is_moved: file.kind() == ObjectKind::Dynamic,
            path: path.canonicalize()?.display().to_string(),
        })
    }

    /// Where the executable begins in a process, from its maps.
    fn base(&self, maps: &str) -> u64 {
        if !self.is_moved {
            return 0;
        }
        let line = maps.lines().find(|line| line.ends_with(&self.path));
        let begin = line.and_then(|line| line.split('-').next());
        begin.map_or(0, |begin| u64::from_str_radix(begin, 16).unwrap_or(0))
    }

    /// Where the function lies that tears a loop of the crate down, in an executable that has one.
    pub(super) fn tear_down(&self) -> Option<u64> {
        let mut functions = self.names.iter();
        let found = functions.find(|(_, name)| {
            format!("{:#}", demangle(name))
                == "<blacklight::loop_::Loop as core::ops::drop::Drop>::drop"
        });
        found.map(|(address, _)| *address)
    }

    fn name(&self, address: u64, maps: &str) -> &str {
        let known = self.names.get(&address.wrapping_sub(self.base(maps)));
        known.map_or("", String::as_str)
    }
}

/// A program that has run.
#[derive(Debug)]
pub(super) struct Traced {
    pub(super) output: String,
    /// When each line was printed.
    stamps: Vec<u64>,
    /// The callbacks of the first thread's loop, in the order in which they ended.
    callbacks: Vec<Event>,
    /// What the process had mapped.
    maps: String,
}

/// Runs a program that stops itself once its loop has run; `stamps` is the file in which it notes when it prints.
pub(super) fn trace(mut command: Command, stamps: &Path) -> Result<Traced> {
    let mut child = command
        .env("GUIDE_STAMPS", stamps)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {command:?}"))?;
    let pid = Pid::from_raw(i32::try_from(child.id())?);
    let (over, is_over) = mpsc::channel::<()>();
    std::thread::spawn(move || {
        if is_over.recv_timeout(LIMIT) == Err(mpsc::RecvTimeoutError::Timeout) {
            // What has happened is seen by the wait below.
            let _ = kill(pid, Signal::SIGKILL);
        }
    });
    let read = read_stops(pid);
    drop(over);
    if read.is_err() {
        // It may have ended already.
        let _ = child.kill();
        let _ = child.wait();
    }
    let (callbacks, maps) = read?;
    let mut output = String::new();
    let mut stdout = child.stdout.take().context("a program without output")?;
    stdout.read_to_string(&mut output)?;
    let noted = fs::read_to_string(stamps).context("the program has noted nothing")?;
    let stamps: Result<Vec<u64>, _> = noted.lines().map(str::parse).collect();
    let traced = Traced {
        output,
        stamps: stamps?,
        callbacks,
        maps,
    };
    let lines = traced.output.lines().count();
    ensure!(
        lines == traced.stamps.len(),
        "{lines} lines were printed, and {} noted",
        traced.stamps.len()
    );
    Ok(traced)
}

/// Reads the record whenever the process stops, and lets it go on, until it ends.
fn read_stops(pid: Pid) -> Result<(Vec<Event>, String)> {
    let mut read = None;
    loop {
        match waitpid(pid, Some(WaitPidFlag::WUNTRACED))? {
            WaitStatus::Stopped(..) => {
                let maps = fs::read_to_string(format!("/proc/{pid}/maps"))?;
                read = Some((callbacks(pid)?, maps));
                kill(pid, Signal::SIGCONT)?;
            }
            WaitStatus::Exited(_, 0) => return read.context("the program has not run a loop"),
            status => bail!("the program has ended with {status:?}"),
        }
    }
}

/// The callbacks so far of the loop that the first thread runs.
fn callbacks(pid: Pid) -> Result<Vec<Event>> {
    let process = u32::try_from(pid.as_raw())?;
    let reader = Reader::open(process)?;
    let snapshot = reader.snapshot()?;
    let own = snapshot.loops.iter().filter(|own| own.tid == process);
    // It may have made others, which do nothing.
    let own = own.max_by_key(|own| own.callbacks);
    let own = own.context("the first thread runs no loop")?;
    let events = reader.events(own.ring(), 0)?;
    ensure!(events.lost == 0, "{} events are lost", events.lost);
    let mut callbacks = events.events;
    callbacks.retain(|event| event.what == What::Callback);
    Ok(callbacks)
}

/// What a callback is called.
#[derive(Debug, PartialEq, Eq)]
struct Title {
    text: String,
    /// Callbacks of different code are different, also where they have the same name; 0 for all.
    code: u64,
    /// Whether the callback is told of if it has printed nothing.
    may_be_silent: bool,
}

impl Title {
    fn new(event: &Event, name: &str) -> Title {
        let phase = PHASES.get(event.phase).copied().unwrap_or("unknown");
        let text = format!("{phase:<9} {:<11} {name}", callback_kind(event.kind));
        Title {
            text: text.trim_end().to_owned(),
            code: 0,
            may_be_silent: true,
        }
    }

    /// What runs outside of the loop's callbacks.
    fn main() -> Title {
        Title {
            text: "main program".to_owned(),
            code: 0,
            may_be_silent: false,
        }
    }
}

/// What ran, and what it has printed.
#[derive(Debug, PartialEq, Eq)]
struct Group<'a> {
    title: Title,
    calls: usize,
    lines: Vec<&'a str>,
}

impl Traced {
    /// Each callback with its function, and what it has printed.
    pub(super) fn of_c(&self, symbols: &Symbols) -> String {
        let title = |event: &Event| Title::new(event, symbols.name(event.address, &self.maps));
        render(&self.groups(&title))
    }

    /// Each callback with its closure or task, and what it has printed. The crate's own are left out if they have
    /// printed nothing.
    pub(super) fn of_rust(&self, symbols: &Symbols) -> String {
        let title = |event: &Event| {
            let name = symbols.name(event.address, &self.maps);
            let name = known_in_rust(&format!("{:#}", demangle(name)));
            Title {
                code: event.address,
                may_be_silent: name.contains("{closure}"),
                ..Title::new(event, &name)
            }
        };
        render(&self.groups(&title))
    }

    /// What was printed, by the functions of Node's that have called it; those that have printed nothing are left out.
    pub(super) fn of_javascript(&self, symbols: &Symbols) -> String {
        let title = |event: &Event| {
            let name = symbols.name(event.address, &self.maps);
            Title {
                may_be_silent: false,
                ..Title::new(event, known_in_javascript(name))
            }
        };
        render(&self.groups(&title))
    }

    /// Puts together what follows each other and is the same.
    fn groups(&self, title: &dyn Fn(&Event) -> Title) -> Vec<Group<'_>> {
        let mut lines = self.output.lines().zip(&self.stamps).peekable();
        let mut groups = Vec::new();
        for event in &self.callbacks {
            let end_ns = event.at_ns + event.took_ns;
            let mut before = Vec::new();
            while let Some((line, _)) = lines.next_if(|(_, at_ns)| **at_ns < event.at_ns) {
                before.push(line);
            }
            add(&mut groups, Title::main(), before);
            let mut inside = Vec::new();
            while let Some((line, _)) = lines.next_if(|(_, at_ns)| **at_ns <= end_ns) {
                inside.push(line);
            }
            add(&mut groups, title(event), inside);
        }
        let after = lines.map(|(line, _)| line).collect();
        add(&mut groups, Title::main(), after);
        groups
    }
}

/// Adds a call to the last group if that has this title, and to a new one otherwise.
fn add<'a>(groups: &mut Vec<Group<'a>>, title: Title, lines: Vec<&'a str>) {
    if lines.is_empty() && !title.may_be_silent {
        return;
    }
    // Without the silent ones a count would say little, and differ from run to run.
    let calls = usize::from(title.may_be_silent);
    match groups.last_mut() {
        Some(group) if group.title == title => {
            group.lines.extend(lines);
            group.calls += calls;
        }
        _ => groups.push(Group {
            title,
            calls,
            lines,
        }),
    }
}

/// The closure or task that a function of the crate's names, without the program's own name in front:
/// `drop_in_place<blacklight::code::Closure<guide_timers::main::{{closure}}>>` names `main::{closure}`. The
/// closures of the crate itself are what schedules in Node's order.
fn known_in_rust(name: &str) -> String {
    let kinds = ["blacklight::code::Closure<", "blacklight::code::Task<"];
    let found = kinds.iter().find_map(|kind| name.split_once(kind));
    let Some(inner) = found.and_then(|(_, inner)| inner.strip_suffix(">>")) else {
        return String::new();
    };
    if inner.contains("blacklight::node::") {
        return "blacklight::node".to_owned();
    }
    let own = inner.split_once("::").map_or(inner, |(_, own)| own);
    own.replace("{{closure}}", "{closure}")
}

/// What people who write JavaScript call a function of Node's.
fn known_in_javascript(name: &str) -> &'static str {
    const KNOWN: [(&str, &str); 8] = [
        ("RunTimers", "setTimeout"),
        ("CheckImmediate", "setImmediate"),
        ("MakeLibuvRequestCallback", "a request is done"),
        ("ThreadPoolWork", "work of the pool is done"),
        ("LibuvStreamWrap", "a stream"),
        ("ConnectionWrap", "a connection"),
        ("OnClose", "a handle is closed"),
        ("AfterConnect", "a connection"),
    ];
    let found = KNOWN.iter().find(|(part, _)| name.contains(part));
    found.map_or("", |(_, word)| word)
}

fn render(groups: &[Group<'_>]) -> String {
    let mut text = String::new();
    for group in groups {
        text += &group.title.text;
        if group.calls > 1 {
            text += &format!(" ×{}", group.calls);
        }
        text.push('\n');
        for line in &group.lines {
            text += &format!("    {line}\n");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A callback of a phase, by its numbers in the record.
    fn event(phase: usize, kind: usize, at_ns: u64, took_ns: u64) -> Event {
        Event {
            what: What::Callback,
            at_ns,
            took_ns,
            phase,
            kind,
            turn: 1,
            address: 0,
            token: 0,
        }
    }

    fn traced(output: &str, stamps: &[u64], callbacks: &[Event]) -> Traced {
        Traced {
            output: output.to_owned(),
            stamps: stamps.to_vec(),
            callbacks: callbacks.to_vec(),
            maps: String::new(),
        }
    }

    #[test]
    fn a_line_belongs_to_the_callback_of_its_time() {
        let [timer, check] = [event(0, 1, 10, 5), event(5, 4, 20, 5)];
        let lines = "main\ntimer\nbetween\ncheck\nend\n";
        let traced = traced(lines, &[5, 12, 17, 25, 30], &[timer, check]);
        let groups = traced.groups(&|event| Title::new(event, ""));
        let expected = "main program\n    main\ntimers    timer\n    timer\nmain program\n    between\n\
                        check     check\n    check\nmain program\n    end\n";
        assert_eq!(render(&groups), expected);
    }

    #[test]
    fn equal_callbacks_are_counted_and_silent_ones_may_be_left_out() {
        let idle = |at_ns| event(2, 2, at_ns, 1);
        let traced = traced("one\n", &[30], &[idle(10), idle(20), idle(30)]);
        let groups = traced.groups(&|event| Title::new(event, "f"));
        assert_eq!(render(&groups), "idle      idle        f ×3\n    one\n");
        let groups = traced.groups(&|event| Title {
            may_be_silent: false,
            ..Title::new(event, "f")
        });
        assert_eq!(render(&groups), "idle      idle        f\n    one\n");
        let groups = traced.groups(&|event| Title {
            code: event.at_ns,
            ..Title::new(event, "f")
        });
        assert_eq!(groups.len(), 3);
    }

    #[test]
    fn functions_are_named_where_the_executable_lies() {
        let symbols = Symbols {
            names: HashMap::from([(0x10, "f".to_owned())]),
            is_moved: true,
            path: "/bin/program".to_owned(),
        };
        let maps = "1000-2000 r-xp 0 00:00 1 /bin/program\n3000-4000 r-xp 0 00:00 1 /lib/other\n";
        assert_eq!(symbols.name(0x1010, maps), "f");
        assert_eq!(symbols.name(0x3010, maps), "");
    }

    #[test]
    fn closures_and_tasks_are_named_as_they_are_written() {
        let closure =
            "core::ptr::drop_in_place<blacklight::code::Closure<guide_timers::main::{{closure}}>>";
        assert_eq!(known_in_rust(closure), "main::{closure}");
        let task =
            "core::ptr::drop_in_place<blacklight::code::Task<guide_tcp_echo::serve::{{closure}}>>";
        assert_eq!(known_in_rust(task), "serve::{closure}");
        let node =
            "drop_in_place<blacklight::code::Closure<alloc::rc::Weak<blacklight::node::Inner>>>";
        assert_eq!(known_in_rust(node), "blacklight::node");
        assert_eq!(known_in_rust("main"), "");
    }

    #[test]
    fn programs_that_fail_or_never_stop_are_errors() {
        let stamps = std::env::temp_dir().join(format!("blacklight-stamps-{}", std::process::id()));
        let error = trace(Command::new("false"), &stamps).unwrap_err();
        assert!(error.to_string().contains("Exited"), "{error}");
        let error = trace(Command::new("true"), &stamps).unwrap_err();
        assert_eq!(error.to_string(), "the program has not run a loop");
        let mut stopping = Command::new("sh");
        stopping.args(["-c", "kill -STOP $$"]);
        // It stops, and has no record.
        assert!(trace(stopping, &stamps).is_err());
        assert!(trace(Command::new("/nonexistent"), &stamps).is_err());
    }
}
