//! Puts Blacklight's `libuv.so.1` in the place of a libuv that a program carries inside.
//!
//! `blacklight run` preloads this object together with the library. It looks at the program and at every
//! object that comes with it or is opened later, and at none of them a second time:
//!
//! - A program that carries a libuv and exports its functions, as official Node.js does, calls
//!   them directly. The first bytes of each are overwritten with a jump to ours, before `main`.
//! - A module that carries one calls it through its linkage table, and the linker has put ours
//!   there already, since ours is preloaded. Where it calls directly it gets jumps as well.
//!
//! All or nothing: [`fit`] says whether ours can stand in for the carried library before anything
//! is changed, and [`patch`] changes everything or leaves everything as it was. A module that ours
//! cannot stand in for gets its own functions back.
//!
//! Nothing is ever written to the program's streams, but for one line when a tripwire ends it. What
//! came of it goes to a file, if one was asked for.

mod entry;
mod fit;
mod image;
mod internals;
mod known;
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
use std::sync::{Mutex, OnceLock};

/// The exit status of a program that met a tripwire: `EX_SOFTWARE` of `sysexits.h`.
const TRIPPED: i32 = 70;

/// Our library, where modules are looked at. A program that carries a libuv has its functions
/// found before those of any module, with us as without us, so there none is looked at.
static FOR_MODULES: OnceLock<Image> = OnceLock::new();

/// The objects that need not be looked at again.
static LOOKED_AT: Seen = Seen(Mutex::new((0, Vec::new())));

#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;

/// Addresses of loaded objects, and how many had been closed when they were loaded: another object
/// may come to lie where a closed one was.
struct Seen(Mutex<(u64, Vec<usize>)>);

impl Seen {
    /// Whether this object has not been asked for before; it has from now on.
    fn is_new(&self, image: &Image) -> bool {
        let Ok(mut seen) = self.0.lock() else {
            return false;
        };
        let (closed, places) = &mut *seen;
        if *closed != image.closed_before {
            *closed = image.closed_before;
            places.clear();
        }
        match places.binary_search(&image.base) {
            Ok(_) => false,
            Err(index) => {
                places.insert(index, image.base);
                true
            }
        }
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
    let mut ours = None;
    let mut this = None;
    let mut program = None;
    let mut modules = Vec::new();
    image::each(|image| {
        let carries = image.function(b"uv_run").is_some();
        if image.name.is_empty() && program.is_none() {
            program = Some(image).filter(|_| carries);
        } else if image.name.to_bytes() == settings.library.as_bytes() {
            ours = Some(image);
        } else if carries {
            modules.push(image);
        } else if image.contains(start as *const () as usize) {
            this = Some(image);
        }
        true
    });
    if settings.only_this.is_some_and(settings::is_running) {
        let this = this.and_then(|image| image.name.to_str().ok());
        settings::withdraw(&settings, this.unwrap_or_default());
    }
    let Some(ours) = ours else {
        if let Some(descriptor) = settings.probe {
            answer(
                descriptor,
                "way none\nrefused our library cannot be loaded into it\n",
            );
        }
        return;
    };
    match program {
        Some(program) => take_program(&program, &ours, &settings),
        None => {
            if settings.probe.is_none() {
                FOR_MODULES.get_or_init(|| ours);
            }
            modules.iter().for_each(|module| take_module(module, &ours));
        }
    }
    if let Some(descriptor) = settings.probe {
        answer(descriptor, "way none\n");
    }
}

/// Replaces the libuv that the program carries; says so if that was asked for.
fn take_program(program: &Image, ours: &Image, settings: &Settings<'_>) {
    let told = settings.known.and_then(|text| Known::parse(text, program));
    let outcome = if has_threads() {
        Err(Refusal::Threads)
    } else {
        replace(program, ours, told.as_ref())
    };
    report::add(
        program,
        &outcome.as_ref().map(|(carried, _)| carried.version),
    );
    let facts = outcome.as_ref().ok().and_then(|(_, new)| {
        let known = new.as_ref().or(told.as_ref())?;
        known.print(program)
    });
    if let Some(descriptor) = settings.probe {
        let mut text = String::new();
        let written = match &outcome {
            Ok((carried, _)) => writeln!(
                text,
                "way jumps\nversion {}\nfunctions {}\njumps {}\nknown {}",
                Version(carried.version),
                carried.functions.len(),
                carried.jumps.len(),
                facts.as_deref().unwrap_or_default(),
            ),
            Err(refusal) => writeln!(text, "way none\nrefused {refusal}"),
        };
        answer(descriptor, if written.is_ok() { &text } else { "" });
    }
    if let (Ok((_, Some(_))), Some(facts), false) = (&outcome, facts, settings.only_this.is_some())
    {
        settings::pass_on(settings, &facts);
    }
}

/// Whether something that was preloaded has started threads, which may be running the program's code.
fn has_threads() -> bool {
    // The directory of a process's threads has one link for each, and two of its own.
    // SAFETY: the path is a string, and there is a place for the answer.
    unsafe {
        let mut status: libc::stat = core::mem::zeroed();
        libc::stat(c"/proc/self/task".as_ptr(), &raw mut status) == 0 && status.st_nlink > 3
    }
}

/// Puts jumps into an object that calls its libuv directly. Returns what was found out about the
/// file, if that was not known.
fn replace(
    image: &Image,
    ours: &Image,
    told: Option<&Known>,
) -> Result<(Carried, Option<Known>), Refusal> {
    let carried = fit::examine(image, ours, told)?;
    let told = told.filter(|_| carried.is_known);
    let mut found = None;
    if told.is_none() {
        let internals = internals::find(image, &carried.jumps);
        if internals.is_optimised {
            return Err(Refusal::Optimised);
        }
        found = Some(Known {
            layout: carried.layout,
            internals: internals.gates,
        });
    }
    let mut jumps = carried.jumps.clone();
    let internals = told
        .or(found.as_ref())
        .map(|known| known.internals.as_slice());
    for function in internals.unwrap_or_default() {
        jumps.extend(fit::place(image, *function).map(|at| Jump {
            at,
            to: tripped as *const () as usize,
        }));
    }
    patch::apply(image, jumps).map_err(Refusal::Code)?;
    Ok((carried, found))
}

/// Looks at a module that carries a libuv.
fn take_module(module: &Image, ours: &Image) {
    let Some(own) = module.function(b"uv_run") else {
        return;
    };
    if is_replaced(module) {
        return;
    }
    let slot = module.uv_slots().find(|(name, _)| *name == b"uv_run");
    // SAFETY: the linker writes an address there, and has mapped it for that.
    let bound = slot.map(|(_, at)| unsafe { *(at as *const usize) });
    // Opened with RTLD_DEEPBIND it was given its own functions.
    let is_interposed = bound.is_some_and(|address| address != own.address);
    let outcome = if is_interposed {
        fit::examine(module, ours, None).map(|carried| carried.version)
    } else {
        replace(module, ours, None).map(|(carried, _)| carried.version)
    };
    report::add(module, &outcome.as_ref().copied());
    if outcome.is_err() && is_interposed {
        let own = |(name, at)| Some((at, module.function(name)?.address));
        let pointers: Vec<_> = module.uv_slots().filter_map(own).collect();
        patch::write_pointers(module, &pointers);
    }
}

/// Whether jumps were put into an object before.
fn is_replaced(image: &Image) -> bool {
    let function = image.function(b"uv_run");
    let at = function.and_then(|function| fit::place(image, function));
    // SAFETY: the address lies in a function of a loaded object.
    at.is_some_and(|at| unsafe { *(at as *const u8) } == 0xe9)
}

fn looks_at_modules() -> bool {
    FOR_MODULES.get().is_some()
}

/// Looks at what has been opened since.
fn look_at_modules() {
    let Some(ours) = FOR_MODULES.get() else {
        return;
    };
    // The linker lets no other thread open or close objects meanwhile.
    image::each(|image| {
        let carries = || image.base != ours.base && image.function(b"uv_run").is_some();
        if LOOKED_AT.is_new(&image) && carries() {
            take_module(&image, ours);
        }
        true
    });
}

/// Says what came of it to who asked, and ends the process before the program begins.
fn answer(descriptor: i32, text: &str) {
    // SAFETY: the bytes are those of the text; ending here leaves nothing undone, since no code of
    // the program has run.
    unsafe {
        libc::write(descriptor, text.as_ptr().cast(), text.len());
        libc::_exit(0);
    }
}

/// What a tripwire leads to.
extern "C" fn tripped() -> ! {
    const LINE: &str = "blacklight: this program has got into its own libuv, which was \
                        replaced; it calls it by other ways than its functions, so run it \
                        without blacklight\n";
    // SAFETY: as in `answer`; the program's loop is in no state to go on.
    unsafe {
        libc::write(2, LINE.as_ptr().cast(), LINE.len());
        libc::_exit(TRIPPED);
    }
}
