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
//! The swap writes nothing to the program's streams, except one line when a tripwire ends the
//! program. It writes its results to a file, if the settings name one.

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

/// The exit status of a program that a tripwire ended: `EX_SOFTWARE` of `sysexits.h`.
const TRIPPED: i32 = 70;

/// Our library, if modules are examined. They are not if the program carries a libuv: the linker
/// then resolves the modules' calls to the program's functions, with or without the swap.
static FOR_MODULES: OnceLock<Image> = OnceLock::new();

/// The objects that were examined.
static EXAMINED: Seen = Seen(Mutex::new((0, Vec::new())));

#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;

/// Addresses of loaded objects, and the number of objects closed so far: after a close, another
/// object may be loaded at the same address.
struct Seen(Mutex<(u64, Vec<usize>)>);

impl Seen {
    /// Records an object, and returns whether it is new.
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
        Some(program) => replace_in_program(&program, &ours, &settings),
        None => {
            if settings.probe.is_none() {
                FOR_MODULES.get_or_init(|| ours);
            }
            modules
                .iter()
                .for_each(|module| replace_in_module(module, &ours));
        }
    }
    if let Some(descriptor) = settings.probe {
        answer(descriptor, "way none\n");
    }
}

/// Replaces the libuv that the program carries, and answers a probe.
fn replace_in_program(program: &Image, ours: &Image, settings: &Settings<'_>) {
    let inherited = settings.known.and_then(|text| Known::parse(text, program));
    let outcome = if has_threads() {
        Err(Refusal::Threads)
    } else {
        replace(program, ours, inherited.as_ref())
    };
    report::add(
        program,
        &outcome.as_ref().map(|(carried, _)| carried.version),
    );
    let facts = outcome.as_ref().ok().and_then(|(_, new)| {
        let known = new.as_ref().or(inherited.as_ref())?;
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

/// Whether another preloaded object has started threads, which may run the program's code.
fn has_threads() -> bool {
    // The link count of the directory is the number of threads plus two.
    // SAFETY: the path is a C string, and `status` is valid for writes.
    unsafe {
        let mut status: libc::stat = core::mem::zeroed();
        libc::stat(c"/proc/self/task".as_ptr(), &raw mut status) == 0 && status.st_nlink > 3
    }
}

/// Writes jumps into an object that calls its libuv directly. Returns facts about the file,
/// unless `inherited` has them.
fn replace(
    image: &Image,
    ours: &Image,
    inherited: Option<&Known>,
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
    let mut jumps = carried.jumps.clone();
    let internals = inherited
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

/// Examines a module, and replaces the libuv that it carries, if any.
fn replace_in_module(module: &Image, ours: &Image) {
    let Some(own) = module.function(b"uv_run") else {
        return;
    };
    if is_replaced(module) {
        return;
    }
    let slot = module.uv_slots().find(|(name, _)| *name == b"uv_run");
    // SAFETY: the relocation says that the linker writes an address there, and it is mapped.
    let bound = slot.map(|(_, at)| unsafe { *(at as *const usize) });
    // A module opened with RTLD_DEEPBIND is bound to its own functions.
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

/// Whether the object already has jumps.
fn is_replaced(image: &Image) -> bool {
    let function = image.function(b"uv_run");
    let at = function.and_then(|function| fit::place(image, function));
    // SAFETY: the address lies in a function of a loaded object.
    at.is_some_and(|at| unsafe { *(at as *const u8) } == 0xe9)
}

fn examines_modules() -> bool {
    FOR_MODULES.get().is_some()
}

/// Examines the objects that were opened since the last call.
fn examine_modules() {
    let Some(ours) = FOR_MODULES.get() else {
        return;
    };
    // The linker holds its lock, so no other thread opens or closes objects meanwhile.
    image::each(|image| {
        let carries = || image.base != ours.base && image.function(b"uv_run").is_some();
        if EXAMINED.is_new(&image) && carries() {
            replace_in_module(&image, ours);
        }
        true
    });
}

/// Writes the result of a probe, and ends the process before the program begins.
fn answer(descriptor: i32, text: &str) {
    // SAFETY: the pointer and length are those of `text`. Exiting here skips no clean-up, since
    // no code of the program has run.
    unsafe {
        libc::write(descriptor, text.as_ptr().cast(), text.len());
        libc::_exit(0);
    }
}

/// The target of all tripwires.
extern "C" fn tripped() -> ! {
    const LINE: &str = "blacklight: this program has got into its own libuv, which was \
                        replaced; it calls it by other ways than its functions, so run it \
                        without blacklight\n";
    // SAFETY: as in `answer`; the program cannot continue, since its loop is inconsistent.
    unsafe {
        libc::write(2, LINE.as_ptr().cast(), LINE.len());
        libc::_exit(TRIPPED);
    }
}
