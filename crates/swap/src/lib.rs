//! Replaces a libuv that a program carries inside with Blacklight's `libuv.so.1`.
//!
//! `blacklight run` preloads this object together with the library. It examines the program and
//! every object that is loaded with it or opened later, each once:
//!
//! - A program that carries a libuv and exports its functions, as official Node.js does, calls
//!   them directly. The swap overwrites the first bytes of each with a jump to ours, before
//!   `main`.
//! - A module that carries a libuv calls it through its linkage table, where the linker has put
//!   our functions already, since ours is preloaded. A module that calls directly gets jumps.
//!
//! All or nothing: [`fit`] decides whether ours can replace the carried library before anything
//! is changed, and [`patch`] writes all jumps or none. A module whose libuv ours cannot replace
//! gets its own functions back.
//!
//! The swap writes nothing to the program's streams, except two lines: the process that
//! `blacklight run` becomes says whether ours replaces its libuv, before any code of the program runs; and
//! a tripwire says why it ends the program. The swap writes its results to a file, if the settings name one.
//!
//! It writes code of x86-64 and of 64-bit ARM ([`machine`]). On other machines this object is empty, and
//! the `blacklight` command does not use it.
#![cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]

mod fit;
mod guarded;
mod image;
mod internals;
mod known;
mod machine;
mod modules;
mod opened;
mod patch;
mod report;
mod search;
mod separate;
mod settings;

use fit::{Carried, Refusal, Version};
use image::Image;
use known::Known;
use patch::Jump;
use settings::Settings;
use std::fmt::Write;

/// The exit status of a program that this object ends: `EX_SOFTWARE` of `sysexits.h`.
const ENDED: i32 = 70;

#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;

/// The objects that are loaded when the program starts.
#[derive(Default)]
struct Loaded {
    /// The program, if it exports a libuv.
    program: Option<Image>,
    /// Whether the program has tables that can be read.
    is_readable: bool,
    ours: Option<Image>,
    /// This object.
    this: Option<Image>,
    /// Those of the others that export a libuv.
    modules: Vec<Image>,
}

impl Loaded {
    fn look(settings: &Settings<'_>) -> Loaded {
        let mut loaded = Loaded::default();
        image::each(|image| {
            let carries = image.function(b"uv_run").is_some();
            if image.name.is_empty() && !loaded.is_readable {
                loaded.is_readable = true;
                loaded.program = Some(image).filter(|_| carries);
            } else if image.name.to_bytes() == settings.library.as_bytes() {
                loaded.ours = Some(image);
            } else if carries {
                loaded.modules.push(image);
            } else if image.contains(start as *const () as usize) {
                loaded.this = Some(image);
            }
            true
        });
        loaded
    }
}

/// Runs before the program's own code.
extern "C" fn start() {
    let Some(settings) = settings::read() else {
        return;
    };
    if let (Some(path), None) = (settings.report, settings.probe) {
        report::to(path);
    }
    let loaded = Loaded::look(&settings);
    let this = loaded.this.and_then(|image| image.name.to_str().ok());
    let this = this.unwrap_or_default();
    if settings.only_this.is_some_and(settings::is_running) {
        settings::withdraw(&settings, this);
    }
    let Some(ours) = loaded.ours else {
        return give_up(&settings, this, "our library cannot be loaded into it");
    };
    if !loaded.is_readable {
        return give_up(&settings, this, "it has no table of its functions");
    }
    match loaded.program {
        Some(program) => replace_in_program(&program, &ours, &settings, this),
        None if settings.probe.is_none() => modules::watch(&loaded.modules, ours, &settings),
        None => {}
    }
    if let Some(descriptor) = settings.probe {
        answer(descriptor, "way none\n");
    }
}

/// Leaves the program as it is, and says why to whoever has asked.
fn give_up(settings: &Settings<'_>, this: &str, reason: &str) {
    if let Some(descriptor) = settings.probe {
        answer(descriptor, &format!("way none\nrefused {reason}\n"));
    }
    if let Some(name) = settings.name_to_announce() {
        report::announce_failure(name, reason);
        settings::withdraw(settings, this);
    }
}

/// Replaces the libuv that the program carries, says so if that is asked for, and answers a probe. `this` is the path of this object.
fn replace_in_program(program: &Image, ours: &Image, settings: &Settings<'_>, this: &str) {
    let inherited = settings.known.and_then(|text| Known::parse(text, program));
    let outcome = if has_threads() {
        Err(Refusal::Threads)
    } else {
        replace(program, ours, inherited.as_ref(), Entries::Jump)
    };
    let version = outcome.as_ref().map(|(carried, _)| carried.version);
    report::add(program, &version);
    if let (Err(refusal), true) = (&outcome, settings.is_required()) {
        report::insist(program, refusal);
        exit(1);
    }
    if let Some(name) = settings.name_to_announce() {
        report::announce(name, settings.library, &version);
        if outcome.is_err() {
            // Its children run as they are, too.
            settings::withdraw(settings, this);
        }
    }
    let facts = outcome.as_ref().ok().and_then(|(_, new)| {
        let asked_for = settings.probe.and(inherited.as_ref());
        new.as_ref().or(asked_for)?.print(program)
    });
    if let Some(descriptor) = settings.probe {
        let mut text = String::new();
        let written = match &outcome {
            Ok((carried, _)) => writeln!(
                text,
                "way jumps\nversion {}\nfunctions {}\njumps {}\nknown {}",
                Version(carried.version),
                carried.functions,
                carried.jumps.len(),
                facts.as_deref().unwrap_or_default(),
            ),
            Err(refusal) => writeln!(text, "way none\nrefused {refusal}"),
        };
        answer(descriptor, if written.is_ok() { &text } else { "" });
    }
    // What this process has said is not said again by the programs that it may become.
    let is_said = settings.name_to_announce().is_some();
    let is_new = matches!(&outcome, Ok((_, Some(_))));
    if outcome.is_ok() && settings.only_this.is_none() && (is_new || is_said) {
        let facts = facts.as_deref().or(settings.known);
        settings::pass_on(settings, facts.unwrap_or_default());
    }
}

/// Whether another preloaded object may have started threads, which may run the program's code.
fn has_threads() -> bool {
    // SAFETY: the names are C strings, and `status` is valid for writes. If the C library has that
    // variable, it is a byte.
    unsafe {
        let name = c"__libc_single_threaded".as_ptr();
        let is_single = libc::dlsym(libc::RTLD_DEFAULT, name).cast::<u8>();
        let is_single = is_single.as_ref().is_some_and(|is_single| *is_single != 0);
        let mut status: libc::stat = core::mem::zeroed();
        let is_known = libc::stat(c"/proc/self/task".as_ptr(), &raw mut status) == 0;
        #[allow(clippy::useless_conversion, reason = "its size depends on the machine")]
        let links = is_known.then(|| u64::from(status.st_nlink));
        may_have_threads(is_single, links)
    }
}

/// Whether there may be threads, by what the C library says, which old ones do not, and by the number
/// of links of the directory with one entry for each, if it can be seen.
fn may_have_threads(is_single: bool, links: Option<u64>) -> bool {
    // An emulator's own threads are in the directory as well. It has two links besides its entries.
    !is_single && links.is_none_or(|links| links > 3)
}

/// How calls of an object get to our functions.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Entries {
    /// By jumps at the entries of its own.
    Jump,
    /// By the linker, which has bound them to ours.
    Bound,
    /// By the linker, and a thread may be running its code, of which nothing is changed: not even
    /// for tripwires, since pages cannot be run while they are written.
    BoundInUse,
}

/// Has an object use our library. Returns facts about the file, unless `inherited` has them.
fn replace(
    image: &Image,
    ours: &Image,
    inherited: Option<&Known>,
    entries: Entries,
) -> Result<(Carried, Option<Known>), Refusal> {
    let carried = fit::examine(image, ours, inherited)?;
    let inherited = inherited.filter(|_| carried.is_known);
    let mut found = None;
    if inherited.is_none() {
        let internals = internals::find(image, &carried.jumps);
        if internals.is_optimised {
            return Err(Refusal::Optimised);
        }
        found = Some(Known {
            layout: carried.layout,
            internals: internals.gates,
        });
    }
    let internals = inherited
        .or(found.as_ref())
        .map(|known| known.internals.as_slice());
    let wires = internals.unwrap_or_default().iter().filter_map(|function| {
        Some(Jump {
            at: fit::place(image, *function)?,
            to: tripped as *const () as usize,
        })
    });
    match entries {
        Entries::Jump => {
            let jumps = carried.jumps.iter().copied().chain(wires).collect();
            patch::apply(image, jumps).map_err(Refusal::Code)?;
        }
        // It runs on ours without the wires as well, where the system forbids them.
        Entries::Bound => {
            let _forbidden = patch::apply(image, wires.collect());
        }
        Entries::BoundInUse => {}
    }
    Ok((carried, found))
}

/// Writes the result of a probe, and ends the process before the program begins.
fn answer(descriptor: i32, text: &str) {
    // SAFETY: the pointer and length are those of `text`.
    unsafe { libc::write(descriptor, text.as_ptr().cast(), text.len()) };
    exit(0);
}

/// The target of all tripwires.
extern "C" fn tripped() -> ! {
    end(
        "this program has got into its own libuv, which was replaced; it calls it by other ways \
         than its functions, so run it without blacklight",
    );
}

/// Ends a program that cannot continue, with a line on standard error. Allocates nothing, since the
/// program may be anywhere.
fn end(reason: &str) -> ! {
    let parts = ["blacklight: ", reason, "\n"].map(|part| libc::iovec {
        iov_base: part.as_ptr().cast_mut().cast(),
        iov_len: part.len(),
    });
    // One call, so that nothing that another thread or process writes comes between.
    // SAFETY: the pointers and lengths are those of the parts, which are only read.
    unsafe { libc::writev(2, parts.as_ptr(), parts.len() as libc::c_int) };
    exit(ENDED);
}

/// Ends the process without any clean-up: either no code of the program has run, or what it would
/// clean up is inconsistent.
fn exit(status: i32) -> ! {
    // SAFETY: it takes any status.
    unsafe { libc::_exit(status) }
}

#[cfg(test)]
mod tests {
    use super::may_have_threads;

    #[test]
    fn a_program_of_which_nothing_is_known_may_have_threads() {
        assert!(may_have_threads(false, None));
        assert!(may_have_threads(false, Some(4)));
        assert!(!may_have_threads(false, Some(3)));
        assert!(!may_have_threads(true, Some(4)));
        assert!(!may_have_threads(true, None));
    }
}
