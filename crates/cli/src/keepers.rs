//! Handles in words: those that are alike together, with what they are, when they were made and whom they call.

use crate::descriptor::{Descriptor, Descriptors};
use crate::names::{Names, gloss};
use crate::threads::child_here;
use crate::words::{clean, count, duration, program, shorten};
use blacklight_record::read::Handle;
use std::collections::HashMap;
use std::fmt::Write as _;

/// Handles that were there before their loop was recorded have the time of its first recording.
const AT_ONCE_NS: u64 = 1_000_000;
/// The width of a name.
const NAME: usize = 70;

/// What is needed to describe the handles of a loop.
#[derive(Clone, Copy)]
pub(crate) struct Describer<'a> {
    /// The descriptors of the process.
    pub(crate) descriptors: &'a Descriptors,
    /// The present.
    pub(crate) now_ns: u64,
    /// Since when the loop is recorded.
    pub(crate) since_ns: u64,
}

/// Handles that are described in the same words.
pub(crate) struct Group<'a> {
    /// What each is, in the singular or with its plural.
    noun: String,
    /// What is true of all of them.
    pub(crate) detail: String,
    /// Who has made them, if that is known.
    maker: Option<String>,
    /// The handles.
    pub(crate) handles: Vec<&'a Handle>,
}

impl Describer<'_> {
    /// Puts handles together that are described in the same words, in the order of their first ones.
    pub(crate) fn groups<'h>(
        &self,
        handles: &[&'h Handle],
        names: &mut dyn Names,
    ) -> Vec<Group<'h>> {
        let mut groups: Vec<Group<'h>> = Vec::new();
        let mut places: HashMap<(String, String, u64, Option<String>), usize> = HashMap::new();
        for &handle in handles {
            let (noun, mut detail) = self.describe(handle);
            detail.push_str(&queued(handle));
            let maker = names.maker(&handle.stack);
            let key = (noun.clone(), detail.clone(), handle.callback, maker.clone());
            let place = *places.entry(key).or_insert(groups.len());
            if place == groups.len() {
                groups.push(Group {
                    noun,
                    detail,
                    maker,
                    handles: Vec::new(),
                });
            }
            groups[place].handles.push(handle);
        }
        groups
    }

    /// A noun for a handle, and what sets it apart from others.
    fn describe(&self, handle: &Handle) -> (String, String) {
        let descriptor = || {
            let get = |number| self.descriptors.get(number);
            handle.number.map_or(Descriptor::Unknown, get)
        };
        let number = || handle.number.unwrap_or_default();
        let (noun, detail) = match handle.kind {
            "timer" if handle.repeat_ns > 0 => {
                let every = duration(handle.repeat_ns);
                ("repeating timer", format!(", every {every}"))
            }
            "timer" if handle.is_active && handle.set_for_ns > 0 => (
                "timer",
                format!(", set for about {}", duration(handle.set_for_ns)),
            ),
            "timer" => ("timer", String::new()),
            "idle" if handle.is_active => (
                "idle handle",
                ", for which the loop never sleeps".to_owned(),
            ),
            "async" => ("async handle", " for wakeups by other threads".to_owned()),
            // The system may not tell which descriptor it is.
            "tcp" if handle.is_listening => return self.stream(&descriptor(), "TCP server"),
            "pipe" if handle.is_listening => return self.stream(&descriptor(), "Unix server"),
            // One that was closed since the record was written was a connection.
            "tcp" if handle.is_active => return self.stream(&descriptor(), "TCP connection"),
            "tcp" => return self.stream(&descriptor(), "TCP handle without a connection"),
            "pipe" => return self.stream(&descriptor(), "pipe that is not open"),
            "tty" => return self.stream(&descriptor(), "terminal"),
            "udp" => return self.stream(&descriptor(), "UDP handle without an address"),
            "poll" => ("polled descriptor", format!(": {}", descriptor())),
            "fs_event" => ("watch|watches", of_path(&handle.text)),
            "fs_poll" => ("watch by polling|watches by polling", of_path(&handle.text)),
            "signal" => ("signal handler", signal(number())),
            "process" => (
                "child process|child processes",
                child(self.descriptors.pid(), number()),
            ),
            "idle" | "prepare" | "check" => {
                return (format!("{} handle", handle.kind), String::new());
            }
            _ => (
                "handle of another kind|handles of other kinds",
                String::new(),
            ),
        };
        (noun.to_owned(), detail)
    }

    /// A noun for a handle of a stream or a socket, and its addresses. Connections of one server are alike, and so are those to
    /// one peer.
    fn stream(&self, descriptor: &Descriptor, otherwise: &str) -> (String, String) {
        let (noun, detail) = match descriptor {
            Descriptor::Tcp {
                local, peer: None, ..
            } => ("TCP server", format!(" on {local}")),
            Descriptor::Tcp {
                local,
                peer: Some(peer),
                state,
            } => {
                let ends = if self.descriptors.is_served(*local) {
                    format!(" from clients of {local}")
                } else {
                    format!(" to {peer}")
                };
                let state = match *state {
                    "established" => String::new(),
                    "connecting" => ", not made yet".to_owned(),
                    "close-wait" => ", which the other end has closed".to_owned(),
                    other => format!(", {other}"),
                };
                ("TCP connection", ends + &state)
            }
            Descriptor::Udp { local, peer } => match peer {
                Some(peer) => ("UDP socket", format!(" to {peer}")),
                None => ("UDP socket", format!(" on {local}")),
            },
            Descriptor::Unix { path, is_listening } => {
                let at = path.as_ref().map(|path| format!(" {path}"));
                let at = at.unwrap_or_default();
                match is_listening {
                    true => ("Unix server", format!(" on{at}")),
                    false => ("Unix socket", at),
                }
            }
            Descriptor::Pipe => ("pipe", String::new()),
            Descriptor::Terminal(path) => ("terminal", format!(" {path}")),
            Descriptor::File(path) => ("file", format!(" {path}")),
            Descriptor::Kernel(what) => return (what.clone(), String::new()),
            Descriptor::Socket | Descriptor::Unknown => (otherwise, String::new()),
        };
        (noun.to_owned(), detail)
    }

    /// Some handles in a few words.
    pub(crate) fn brief(group: &Group<'_>) -> String {
        count(group.handles.len() as u64, &group.noun) + &group.detail
    }

    /// Some handles in one sentence.
    pub(crate) fn sentence(&self, group: &Group<'_>, names: &mut dyn Names) -> String {
        let number = group.handles.len();
        let mut text = Describer::brief(group);
        let due = group.handles.iter().filter(|handle| handle.is_active);
        let due = due.map(|handle| handle.due_ns).filter(|due| *due > 0).min();
        if let (Some(due_ns), Some(first)) = (due, group.handles.first()) {
            text.push_str(&self.due(due_ns, first.repeat_ns > 0, number));
        }
        let made = group.handles.iter().map(|handle| handle.made_ns);
        if let (Some(oldest), Some(newest)) = (made.clone().min(), made.max()) {
            text.push_str(&self.made(oldest, newest, number));
        }
        if let Some(maker) = &group.maker {
            let _ = write!(text, " by `{}`", clean(maker));
        }
        let callback = group.handles.first().map_or(0, |handle| handle.callback);
        if callback != 0 {
            let name = clean(&names.brief(callback, NAME));
            let _ = write!(text, ", calls `{name}`");
            if let Some(meaning) = gloss(&name) {
                let _ = write!(text, " ({meaning})");
            }
        }
        text
    }

    /// When the first of some timers is due.
    fn due(&self, due_ns: u64, repeats: bool, number: usize) -> String {
        let word = match (number, repeats) {
            (1, false) => "due",
            (1, true) => "next",
            _ => "the first",
        };
        let now_ns = self.now_ns;
        match due_ns.checked_sub(now_ns) {
            Some(0) => format!(", {word} now"),
            Some(rest) => format!(", {word} in {}", duration(rest)),
            None => format!(", overdue by {}", duration(now_ns - due_ns)),
        }
    }

    /// How long ago handles were made. The age of those that are older than the record is not known.
    fn made(&self, oldest_ns: u64, newest_ns: u64, number: usize) -> String {
        let age = |made_ns: u64| duration(self.now_ns.saturating_sub(made_ns));
        let is_older = oldest_ns < self.since_ns.saturating_add(AT_ONCE_NS);
        let (oldest, newest) = (age(oldest_ns), age(newest_ns));
        let at_least = if is_older { "at least " } else { "" };
        if number == 1 || oldest == newest {
            format!(", made {at_least}{oldest} ago")
        } else {
            format!(", made between {at_least}{oldest} and {newest} ago")
        }
    }
}

/// The writes of a handle that the kernel has not taken.
fn queued(handle: &Handle) -> String {
    match (handle.writes, handle.kind) {
        (0, _) => String::new(),
        (writes, "udp") => format!(", {} in progress", count(writes.into(), "send")),
        (writes, _) if handle.queued_bytes == 0 => {
            format!(", {} in progress", count(writes.into(), "write"))
        }
        (writes, _) => format!(
            ", {} in progress with {} unsent",
            count(writes.into(), "write"),
            count(handle.queued_bytes, "byte")
        ),
    }
}

/// A path that is watched; the record has only the end of a long one.
fn of_path(path: &str) -> String {
    match path {
        "" => String::new(),
        path => format!(" of {}", clean(path)),
    }
}

/// A signal by its name.
fn signal(number: i32) -> String {
    let name = match number {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        10 => "SIGUSR1",
        12 => "SIGUSR2",
        13 => "SIGPIPE",
        15 => "SIGTERM",
        17 => "SIGCHLD",
        18 => "SIGCONT",
        28 => "SIGWINCH",
        30 => "SIGPWR",
        0 => return String::new(),
        _ => return format!(" for signal {number}"),
    };
    format!(" for {name}")
}

/// A child of a process, by the number that the process knows and by its command line.
fn child(parent: u32, pid: i32) -> String {
    let Some(pid) = u32::try_from(pid).ok().filter(|pid| *pid != 0) else {
        return String::new();
    };
    match child_here(parent, pid) {
        Some(here) => format!(" {here} (`{}`)", shorten(&program(here), 40)),
        None => format!(" {pid}"),
    }
}
