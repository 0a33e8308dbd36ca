//! What a view asks about the code of the process that it watches: the name of an address, and what a thread does.

use crate::stack::{self, Unwinder};
use crate::symbols::{Language, Symbols};
use crate::words::shorten;

/// What a thread was doing when its stack was looked at.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Doing {
    /// It ran code of its own.
    Computing,
    /// It waited in a system call.
    Waiting {
        /// The name of the call.
        call: String,
    },
}

impl Doing {
    /// As a part of a sentence.
    pub(crate) fn words(&self) -> String {
        match self {
            Doing::Computing => "computing".into(),
            Doing::Waiting { call } => format!("waiting in {call}"),
        }
    }
}

/// The stack of a thread at one moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct StallStack {
    /// The code addresses, the innermost first.
    pub(crate) addresses: Vec<u64>,
    /// What the thread was doing.
    pub(crate) doing: Doing,
}

impl From<stack::Sample> for StallStack {
    fn from(sample: stack::Sample) -> StallStack {
        StallStack {
            addresses: sample.addresses,
            doing: match sample.doing {
                stack::Doing::Computing => Doing::Computing,
                stack::Doing::Waiting { call } => Doing::Waiting {
                    call: call.into_owned(),
                },
            },
        }
    }
}

/// Knows the code of the process that is watched.
pub(crate) trait Names {
    /// The name of the code at an address.
    fn name(&mut self, address: u64) -> String;
    /// The name of the code at an address, in about so many characters.
    fn brief(&mut self, address: u64, width: usize) -> String {
        shorten(&self.name(address), width)
    }
    /// Whether the code at an address is a script's: JavaScript or Python of the program's own.
    fn is_script(&mut self, _address: u64) -> bool {
        false
    }
    /// Whether the code at an address is Blacklight's own, or that of a language's libraries.
    fn is_own(&mut self, _address: u64) -> bool {
        false
    }
    /// Whether the code at an address is Blacklight's own or the C library's, through which a program calls the kernel.
    fn is_below(&mut self, address: u64) -> bool {
        self.is_own(address)
    }
    /// Whether the code at an address has a name.
    fn is_named(&mut self, _address: u64) -> bool {
        true
    }
    /// What would give a stack more names, as a sentence.
    fn hint(&mut self, _stack: &[u64]) -> Option<&'static str> {
        None
    }
    /// The frames of a stack that its reader wrote, the innermost first: those of a script, or else what called the libraries below.
    fn telling(&mut self, stack: &[u64]) -> Vec<u64> {
        let mut kept = stack.to_vec();
        kept.retain(|of| self.is_script(*of));
        if !kept.is_empty() {
            return kept;
        }
        let first = stack.iter().position(|of| !self.is_below(*of));
        kept.extend(&stack[first.unwrap_or(0)..]);
        if first.is_some() {
            // Further out is the loop itself.
            let end = kept.iter().position(|of| self.is_own(*of));
            kept.truncate(end.unwrap_or(kept.len()));
        }
        let mut named = kept.clone();
        named.retain(|of| self.is_named(*of));
        if named.is_empty() { kept } else { named }
    }
    /// What a thread of the pool works on, by its stack: the outermost code of the program itself.
    fn work(&mut self, stack: &[u64]) -> Option<String> {
        let frames = self.telling(stack);
        let mut names = frames.iter().rev().map(|of| self.brief(*of, 80));
        // Node.js runs all of its work through one function.
        names.find(|name| !name.starts_with("node::ThreadPoolWork::"))
    }
    /// Who has made something, by the stack of its making: the innermost code that is a script's, or else that is neither Blacklight's nor
    /// of Rust's own libraries.
    fn maker(&mut self, stack: &[u64]) -> Option<String> {
        let script = stack.iter().copied().find(|of| self.is_script(*of));
        let maker = match script {
            Some(script) => Some(script),
            None => stack.iter().copied().find(|of| !self.is_own(*of)),
        };
        maker.map(|maker| self.name(maker))
    }
    /// The stack of a thread, if it can be had.
    fn sample(&mut self, tid: u32) -> Option<StallStack>;
    /// Why the last stack that was asked for could not be had.
    fn refusal(&mut self) -> Option<String> {
        None
    }
}

/// Whether a file is a Python that cannot name its functions to others.
fn is_old_python(module: &str) -> bool {
    let version = module.strip_prefix("libpython3.");
    let version = version.or_else(|| module.strip_prefix("python3."));
    let minor = version.and_then(|version| version.split(|c: char| !c.is_ascii_digit()).next());
    minor
        .and_then(|minor| minor.parse().ok())
        .is_some_and(|minor: u32| minor < 12)
}

/// What a function of a well-known program is to those who write for it.
pub(crate) fn gloss(name: &str) -> Option<&'static str> {
    let known = [
        ("node::Environment::RunTimers", "setTimeout and setInterval"),
        ("node::Environment::CheckImmediate", "setImmediate"),
    ];
    let known = known
        .iter()
        .find(|(function, _)| name.starts_with(function));
    known.map(|(_, meaning)| *meaning)
}

/// Knows nothing: names are addresses, and there are no stacks.
#[cfg(test)]
#[derive(Debug, Default)]
pub(crate) struct Hexadecimal;

#[cfg(test)]
impl Names for Hexadecimal {
    fn name(&mut self, address: u64) -> String {
        match address {
            0 => "unknown code".into(),
            _ => format!("{address:#x}"),
        }
    }

    fn sample(&mut self, _tid: u32) -> Option<StallStack> {
        None
    }
}

/// How the names of our own code begin, and of Rust's libraries, which call and are called by it.
const RUST: [&str; 4] = ["blacklight", "core::", "std::", "alloc::"];

/// Whether a function is our own or of Rust's libraries, by its name.
fn is_of_rust(name: &str) -> bool {
    let name = name.trim_start_matches(['<', '&']);
    let is_known = |name: &str| RUST.iter().any(|own| name.starts_with(own));
    // `<u64 as core::iter::Step>::forward`; of types with a path, their authors write such functions.
    let is_primitive = name
        .split_once(" as ")
        .is_some_and(|(of, what)| !of.contains("::") && is_known(what));
    // The demo is a program like others.
    (is_known(name) || is_primitive) && !name.starts_with(DEMO)
}

/// How the names of the demo's code begin.
const DEMO: &str = "blacklight::live::demo";

/// Knows what a living process tells: its files, the maps of its compilers, and its stacks where the system permits it.
pub(crate) struct Living {
    symbols: Option<Symbols>,
    unwinder: Result<Unwinder, String>,
    refusal: Option<String>,
}

impl Living {
    /// The code of a process.
    pub(crate) fn of(pid: u32) -> Living {
        Living {
            symbols: Symbols::of(pid).ok(),
            unwinder: Unwinder::new(pid).map_err(|error| error.to_string()),
            refusal: None,
        }
    }
}

impl Names for Living {
    fn name(&mut self, address: u64) -> String {
        match &mut self.symbols {
            _ if address == 0 => "unknown code".into(),
            Some(symbols) => symbols.name(address).to_string(),
            None => format!("?? ({address:#x})"),
        }
    }

    fn brief(&mut self, address: u64, width: usize) -> String {
        match &mut self.symbols {
            Some(symbols) if address != 0 => symbols.name(address).brief(width),
            _ => shorten(&self.name(address), width),
        }
    }

    fn is_named(&mut self, address: u64) -> bool {
        let symbol = self.symbols.as_mut().map(|symbols| symbols.name(address));
        symbol.is_some_and(|symbol| symbol.name.is_some())
    }

    fn hint(&mut self, stack: &[u64]) -> Option<&'static str> {
        for address in stack {
            if self.is_script(*address) {
                return None;
            }
            let symbol = self.symbols.as_mut()?.name(*address);
            if symbol.name.is_none() && symbol.module.is_none() {
                return Some(
                    "Functions that were compiled at run time have names if the program is started by `blacklight run --record --stacks`.",
                );
            }
            if symbol.module.as_deref().is_some_and(is_old_python) {
                return Some("Python names its functions from version 3.12 on.");
            }
        }
        None
    }

    fn is_below(&mut self, address: u64) -> bool {
        let symbol = self.symbols.as_mut().map(|symbols| symbols.name(address));
        let module = symbol.and_then(|symbol| symbol.module);
        module.is_some_and(|module| module.starts_with("libc.so") || module.starts_with("libc-2"))
            || self.is_own(address)
    }

    fn is_script(&mut self, address: u64) -> bool {
        let symbol = self.symbols.as_mut().map(|symbols| symbols.name(address));
        symbol.is_some_and(|symbol| {
            let file = symbol.file.unwrap_or_default();
            symbol.language != Language::Native && !file.starts_with("node:")
        })
    }

    fn is_own(&mut self, address: u64) -> bool {
        let symbol = self.symbols.as_mut().map(|symbols| symbols.name(address));
        symbol.is_some_and(|symbol| {
            let (name, module) = (symbol.name.unwrap_or_default(), symbol.module);
            let is_library = module.is_some_and(|module| {
                module.starts_with("libuv.so") || module.starts_with("libblacklight_swap")
            });
            is_library || name.starts_with("uv_") || is_of_rust(&name)
        })
    }

    fn sample(&mut self, tid: u32) -> Option<StallStack> {
        let sample = match &mut self.unwinder {
            Ok(unwinder) => unwinder.sample(tid).map_err(|error| error.to_string()),
            Err(error) => Err(error.clone()),
        };
        self.refusal = sample.as_ref().err().cloned();
        sample.ok().map(StallStack::from)
    }

    fn refusal(&mut self) -> Option<String> {
        self.refusal.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pythons_are_told_apart_by_their_files() {
        for old in ["python3.11", "libpython3.9.so.1.0"] {
            assert!(is_old_python(old), "{old}");
        }
        for other in [
            "python3.12",
            "libpython3.13.so.1.0",
            "python3",
            "node",
            "python3.x",
        ] {
            assert!(!is_old_python(other), "{other}");
        }
    }

    /// Code below 10 is the C library's, from 90 on the loop's, and in between the program's, where odd numbers have no names.
    struct Layers;

    impl Names for Layers {
        fn name(&mut self, address: u64) -> String {
            format!("f{address}")
        }
        fn is_below(&mut self, address: u64) -> bool {
            address < 10 || self.is_own(address)
        }
        fn is_own(&mut self, address: u64) -> bool {
            address >= 90
        }
        fn is_script(&mut self, address: u64) -> bool {
            (50..60).contains(&address)
        }
        fn is_named(&mut self, address: u64) -> bool {
            address.is_multiple_of(2)
        }
        fn sample(&mut self, _tid: u32) -> Option<StallStack> {
            None
        }
    }

    #[test]
    fn of_a_stack_the_programs_own_part_is_told() {
        for (stack, told) in [
            (&[1, 90, 20, 22, 91, 24][..], &[20, 22][..]),
            (&[1, 51, 20, 53, 91], &[51, 53]),
            (&[21, 20, 23, 91], &[20]),
            (&[21, 23, 91], &[21, 23]),
            (&[2, 90, 4], &[2, 90, 4]),
            (&[], &[]),
        ] {
            let told: &[u64] = told;
            assert_eq!(Layers.telling(stack), told, "{stack:?}");
        }
        assert_eq!(Layers.work(&[1, 20, 22, 91, 92]).as_deref(), Some("f22"));
    }

    #[test]
    fn functions_of_rusts_libraries_are_told_from_a_programs_own() {
        for name in [
            "core::option::Option<T>::map",
            "<core::ops::range::Range<T> as core::iter::Iterator>::next",
            "<u64 as core::iter::range::Step>::forward",
            "<&mut T as core::future::Future>::poll",
            "<alloc::boxed::Box<F> as core::ops::FnOnce<()>>::call_once",
            "blacklight::timer::Timer::new",
        ] {
            assert!(is_of_rust(name), "{name}");
        }
        for name in [
            "app::main",
            "<app::Request as core::future::future::Future>::poll",
            "blacklight::live::demo::compute",
            "corelation::run",
        ] {
            assert!(!is_of_rust(name), "{name}");
        }
    }
}
