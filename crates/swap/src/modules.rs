//! Modules that carry a libuv: those that are there when the program starts, and those that it
//! opens later.

use crate::fit::{self, Refusal};
use crate::guarded::{Guarded, survive_forks};
use crate::image::{self, Image};
use crate::settings::Settings;
use crate::{Entries, exit, has_threads, patch, replace, report};
use std::sync::OnceLock;

/// Our library, if modules are examined. They are not if the program carries a libuv: the linker
/// then resolves the modules' calls to the program's functions, with or without the swap.
static OURS: OnceLock<Image> = OnceLock::new();

/// The process in which every module has to run on ours, if there is one.
static REQUIRED: OnceLock<Option<u32>> = OnceLock::new();

/// The objects that were examined, or are left alone. Whoever looks at loaded objects holds it, so
/// that no fork comes between.
pub(crate) static EXAMINED: Guarded<Seen> = Guarded::new(Seen {
    at_start: Vec::new(),
    closed: 0,
    places: Vec::new(),
});

/// Addresses of loaded objects.
pub(crate) struct Seen {
    /// Those of modules that are never closed.
    at_start: Vec<usize>,
    /// The number of objects closed so far: after a close, another object may be loaded at the same
    /// address.
    closed: u64,
    places: Vec<usize>,
}

impl Seen {
    fn has(&mut self, image: &Image) -> bool {
        if self.closed != image.closed_before {
            self.closed = image.closed_before;
            self.places.clear();
        }
        self.at_start.contains(&image.base) || self.places.binary_search(&image.base).is_ok()
    }

    fn add(&mut self, image: &Image) {
        if let Err(index) = self.places.binary_search(&image.base) {
            self.places.insert(index, image.base);
        }
    }
}

/// Replaces the libuv of the modules that are there, and has those examined that will be opened.
pub(crate) fn watch(modules: &[Image], ours: Image, settings: &Settings<'_>) {
    REQUIRED.get_or_init(|| settings.require);
    let ours = OURS.get_or_init(|| ours);
    survive_forks();
    EXAMINED.with(|seen| {
        seen.at_start
            .extend(modules.iter().map(|module| module.base))
    });
    let may_run = !modules.is_empty() && has_threads();
    for module in modules {
        // What is there at the start was not opened with RTLD_DEEPBIND: calls that are not bound yet will be bound to ours.
        let is_bound = !is_bound_to_itself(module);
        replace_in(module, ours, is_bound, may_run);
    }
}

pub(crate) fn are_watched() -> bool {
    OURS.get().is_some()
}

/// Whether the real `dlopen` finds the same file for us as for the code at this address.
pub(crate) fn have_common_search_path(caller: usize) -> bool {
    EXAMINED.with(|_| image::has_only_the_common_search_path(caller))
}

/// Examines the object at `base`, which was just opened, and those that were loaded with it. Those
/// in `before` were there.
pub(crate) fn examine(base: usize, before: &[usize]) {
    let Some(ours) = OURS.get() else {
        return;
    };
    EXAMINED.with(|seen| {
        image::while_none_is_closed(|| {
            let (mut all, mut new) = (Vec::new(), Vec::new());
            image::each(|image| {
                all.push(image);
                if !seen.has(&image) {
                    if image.base != ours.base && image.function(b"uv_run").is_some() {
                        new.push(image);
                    } else {
                        seen.add(&image);
                    }
                }
                true
            });
            if new.is_empty() {
                return;
            }
            // Others belong to a call of another thread, which has not returned yet.
            let opened = with_its_libraries(base, &all);
            let is_ours_to_change = |base: &usize| opened.contains(base) && !before.contains(base);
            for module in new.iter().filter(|module| is_ours_to_change(&module.base)) {
                seen.add(module);
                replace_in(module, ours, is_bound_to_ours(module), false);
            }
        });
    });
}

/// Leaves everything alone that has not been examined, since it may be in use. Returns where the
/// modules are.
pub(crate) fn leave_alone() -> Vec<usize> {
    let mut modules = Vec::new();
    let Some(ours) = OURS.get() else {
        return modules;
    };
    EXAMINED.with(|seen| {
        image::each(|image| {
            let carries = image.base != ours.base && image.function(b"uv_run").is_some();
            if carries {
                modules.push(image.base);
            }
            if !seen.has(&image) {
                seen.add(&image);
                if carries && is_bound_to_itself(&image) {
                    report::add(&image, &Err(&Refusal::InUse));
                }
            }
            true
        });
    });
    modules
}

/// The addresses of an object, of the libraries that it asks for, and so on.
fn with_its_libraries(base: usize, all: &[Image]) -> Vec<usize> {
    let mut found: Vec<&Image> = all.iter().filter(|image| image.base == base).collect();
    let mut next = 0;
    while let Some(user) = found.get(next).copied() {
        for image in all {
            let is_new = found.iter().all(|other| other.base != image.base);
            if is_new && user.needs(image) {
                found.push(image);
            }
        }
        next += 1;
    }
    found.iter().map(|image| image.base).collect()
}

/// Where the object's linkage table leads calls of `uv_run`, if they go through it: to a function, or to a
/// stub of the object's own if each call is bound when it is first made.
fn calls_lead_to(module: &Image) -> Option<usize> {
    let (_, at) = module.uv_slots().find(|(name, _)| *name == b"uv_run")?;
    // SAFETY: the relocation says that the linker writes an address there, and it is mapped.
    Some(unsafe { *(at as *const usize) })
}

/// Whether the linker has bound the object's calls to another library than its own. It has not if
/// the object was opened with RTLD_DEEPBIND, calls its functions directly, or binds calls when they are first made.
fn is_bound_to_ours(module: &Image) -> bool {
    calls_lead_to(module).is_some_and(|to| !module.contains(to))
}

/// Whether the object's calls lead to its own functions.
fn is_bound_to_itself(module: &Image) -> bool {
    let own = module.function(b"uv_run").map(|function| function.address);
    calls_lead_to(module).is_none_or(|to| Some(to) == own)
}

/// Replaces the libuv that a module carries. `is_bound` says whether its calls lead to ours. `may_run` says whether a thread may be running its
/// code; none does if the module has just been opened, since nobody has got hold of it.
fn replace_in(module: &Image, ours: &Image, is_bound: bool, may_run: bool) {
    if is_replaced(module) {
        return;
    }
    let outcome = match (is_bound, may_run) {
        (false, true) => Err(Refusal::Threads),
        (false, false) => replace(module, ours, None, Entries::Jump),
        (true, true) => replace(module, ours, None, Entries::BoundInUse),
        (true, false) => replace(module, ours, None, Entries::Bound),
    };
    let outcome = outcome.map(|(carried, _)| carried.version);
    report::add(module, &outcome.as_ref().copied());
    let Err(refusal) = outcome else {
        return;
    };
    if REQUIRED.get().copied().flatten() == Some(std::process::id()) {
        report::insist(module, &refusal);
        exit(1);
    }
    // What is not bound yet would be bound to ours.
    let own = |(name, at)| Some((at, module.function(name)?.address));
    let pointers: Vec<_> = module.uv_slots().filter_map(own).collect();
    patch::write_pointers(module, &pointers);
}

/// Whether the object already has jumps.
fn is_replaced(image: &Image) -> bool {
    let function = image.function(b"uv_run");
    let at = function.and_then(|function| fit::place(image, function));
    at.is_some_and(|at| patch::is_jump(image, at))
}
