//! The stacks of callbacks that run for too long, taken while they run.
//!
//! Code is named soon: a compiler at run time moves it, and the process may be gone later.

use super::collect::Source;
use crate::names::Doing;
use crate::stack::{self, Unwinder};
use crate::symbols::{Language, Symbol, Symbols};
use blacklight_record::layout::State;
use blacklight_record::read::{Loop, Now, Reader, now_ns};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::time::Duration;

/// The time between two stacks of a thread.
pub(super) const INTERVAL: Duration = Duration::from_millis(10);
/// The most stacks of a profile: more than three minutes of stalls.
const LIMIT: usize = 20_000;

/// A function in a stack.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Frame {
    /// Its name, with file and line where they are known.
    pub(super) name: String,
    /// Whether it is a script's.
    pub(super) language: Language,
}

impl Frame {
    /// The function of an address, the same for all of its addresses, so that a profile adds them up.
    fn of(symbol: Symbol) -> Frame {
        let language = symbol.language;
        let name = match (&symbol.name, &symbol.module, language) {
            (None, Some(module), _) => format!("?? ({module})"),
            (None, None, _) => "?? (code of no file)".to_owned(),
            // The line of native code is that of the address; a script's is that of the function.
            (Some(_), _, Language::Native) => Symbol {
                line: None,
                ..symbol
            }
            .to_string(),
            (Some(_), ..) => symbol.to_string(),
        };
        Frame { name, language }
    }
}

/// The stack of a loop's thread in a callback that had run for long.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    /// What the loop did.
    pub(super) now: Now,
    /// When the stack was taken.
    pub(super) at_ns: u64,
    /// The functions, the innermost first, as places in [`Stacks::frames`].
    pub(super) frames: Vec<usize>,
    /// What the thread did.
    pub(super) doing: Doing,
}

/// The stacks of a process.
#[derive(Default, Debug)]
pub(super) struct Stacks {
    /// The stacks of each loop that stalled, in the order in which they were taken.
    pub(super) loops: Vec<(Source, Vec<Sample>)>,
    /// How many there are.
    pub(super) count: usize,
    /// All functions.
    pub(super) frames: Vec<Frame>,
    /// Why a stack could not be had, the first time.
    pub(super) failure: Option<String>,
    /// How long a thread was held for its stack, at most.
    pub(super) held: Duration,
    places: HashMap<Frame, usize>,
}

/// A stack without names.
struct Raw {
    source: Source,
    now: Now,
    at_ns: u64,
    addresses: Vec<u64>,
    doing: Doing,
    held: Duration,
}

impl Stacks {
    /// Takes stacks until it is over. They are named by another thread than takes them, since it may have to read all
    /// names of a large program for the first one.
    pub(super) fn take(reader: &Reader, limit_ns: u64, is_over: &AtomicBool) -> Stacks {
        let (sender, raw) = mpsc::channel();
        std::thread::scope(|scope| {
            let sampler = scope.spawn(|| Sampler::run(reader, limit_ns, is_over, sender));
            let mut stacks = Stacks::default();
            match Symbols::of(reader.pid()) {
                Ok(mut symbols) => {
                    symbols.hold_files();
                    for raw in raw {
                        if stacks.count == 0 {
                            // A script's compiler begins to name its functions some time after the start.
                            symbols.hold_files();
                        }
                        stacks.add(raw, &mut symbols);
                    }
                }
                Err(error) => stacks.failure = Some(error.to_string()),
            }
            let failure = sampler.join().unwrap_or_default();
            stacks.failure = stacks.failure.or(failure);
            stacks
        })
    }

    /// Names a stack and keeps it.
    fn add(&mut self, raw: Raw, symbols: &mut Symbols) {
        let frames = raw
            .addresses
            .iter()
            .map(|address| self.place(Frame::of(symbols.name(*address))));
        let sample = Sample {
            now: raw.now,
            at_ns: raw.at_ns,
            frames: frames.collect(),
            doing: raw.doing,
        };
        self.count += 1;
        self.held = self.held.max(raw.held);
        match self
            .loops
            .iter_mut()
            .find(|(of, _)| of.is_same(&raw.source))
        {
            Some((_, samples)) => samples.push(sample),
            None => self.loops.push((raw.source, vec![sample])),
        }
    }

    /// The stacks of a loop.
    pub(super) fn of(&self, source: &Source) -> &[Sample] {
        let samples = self.loops.iter().find(|(of, _)| of.is_same(source));
        samples.map_or(&[], |(_, samples)| samples)
    }

    /// The place of a function.
    fn place(&mut self, frame: Frame) -> usize {
        let next = self.frames.len();
        let place = *self.places.entry(frame.clone()).or_insert(next);
        if place == next {
            self.frames.push(frame);
        }
        place
    }
}

/// Takes stacks.
struct Sampler<'a> {
    reader: &'a Reader,
    unwinder: Unwinder,
    limit_ns: u64,
    count: usize,
    failure: Option<String>,
}

impl Sampler<'_> {
    /// Takes stacks until it is over. Returns why some could not be had.
    fn run(
        reader: &Reader,
        limit_ns: u64,
        is_over: &AtomicBool,
        stacks: Sender<Raw>,
    ) -> Option<String> {
        let unwinder = match Unwinder::new(reader.pid()) {
            Ok(unwinder) => unwinder,
            Err(error) => return Some(error.to_string()),
        };
        let mut sampler = Sampler {
            reader,
            unwinder,
            limit_ns,
            count: 0,
            failure: None,
        };
        while !is_over.load(Ordering::Relaxed) {
            let Ok(snapshot) = reader.snapshot() else {
                break;
            };
            for raw in snapshot.loops.iter().filter_map(|lp| sampler.look(lp)) {
                // The other thread leaves only if there are no names.
                let _ = stacks.send(raw);
            }
            std::thread::sleep(INTERVAL);
        }
        sampler.failure
    }

    /// Takes the stack of a loop's thread, if its callback has run for long.
    fn look(&mut self, lp: &Loop) -> Option<Raw> {
        let is_long = lp.now.state == State::Callback
            && now_ns().saturating_sub(lp.now.since_ns) >= self.limit_ns;
        if !is_long {
            return None;
        }
        if self.count >= LIMIT {
            let failure = || format!("only the first {LIMIT} are kept");
            self.failure.get_or_insert_with(failure);
            return None;
        }
        let sample = match self.unwinder.sample(lp.tid) {
            Ok(sample) => sample,
            Err(error) => {
                self.failure.get_or_insert_with(|| error.to_string());
                return None;
            }
        };
        let at_ns = now_ns();
        // The callback may have returned before its stack was taken.
        if self.reader.now(lp).is_ok_and(|now| now != lp.now) {
            return None;
        }
        self.count += 1;
        Some(Raw {
            source: Source::Loop {
                id: lp.id,
                name: lp.name.clone(),
                tid: lp.tid,
            },
            now: lp.now,
            at_ns,
            addresses: sample.addresses,
            held: sample.held,
            doing: match sample.doing {
                stack::Doing::Computing => Doing::Computing,
                stack::Doing::Waiting { call } => Doing::Waiting {
                    call: call.into_owned(),
                },
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_addresses_of_a_function_are_one_frame() {
        let symbol = |name: Option<&str>, module: Option<&str>, line, offset| Symbol {
            name: name.map(str::to_owned),
            file: name.map(|_| "/a.c".to_owned()),
            line: Some(line),
            module: module.map(str::to_owned),
            offset,
            language: Language::Native,
        };
        let mut stacks = Stacks::default();
        for (at, name, module) in [
            (0, Some("crunch"), None),
            (1, None, Some("node")),
            (2, None, None),
        ] {
            for offset in 0..3 {
                let frame = Frame::of(symbol(name, module, offset, offset.into()));
                assert_eq!(stacks.place(frame), at);
            }
        }
        let names: Vec<&str> = stacks.frames.iter().map(|frame| &*frame.name).collect();
        assert_eq!(
            names,
            ["crunch (/a.c)", "?? (node)", "?? (code of no file)"]
        );
        let script = Symbol {
            language: Language::JavaScript,
            ..symbol(Some("crunch"), None, 12, 5)
        };
        assert_eq!(Frame::of(script).name, "crunch (/a.c:12)");
    }
}
