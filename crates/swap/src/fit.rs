//! Decides whether our library can replace one that an object carries.
//!
//! This module changes nothing. The carried library must have a version with the same structures
//! and constants as ours, export no function that ours lacks, and agree on the size of everything
//! that programs allocate.

use crate::image::{Function, Image};
use crate::known::{self, Known};
use crate::machine::{self, JUMP_LENGTH};
use crate::patch::{Failure, Jump};
use crate::{search, separate};
use core::fmt;
use core::slice;

/// The oldest version with the same structures and constants as ours.
const OLDEST: u32 = version(1, 44);

/// The types of handles and requests are below this number, which leaves room for future types.
const TYPES: i32 = 32;

/// Functions that do the same in every libuv, since they only touch public fields. They may stay
/// if they are too short for a jump.
const INTERCHANGEABLE: [&str; 24] = [
    "uv_fs_get_path",
    "uv_fs_get_ptr",
    "uv_fs_get_result",
    "uv_fs_get_statbuf",
    "uv_fs_get_type",
    "uv_get_osfhandle",
    "uv_handle_get_data",
    "uv_handle_get_loop",
    "uv_handle_get_type",
    "uv_handle_set_data",
    "uv_loop_get_data",
    "uv_loop_set_data",
    "uv_loop_size",
    "uv_open_osfhandle",
    "uv_pipe_pending_instances",
    "uv_process_get_pid",
    "uv_req_get_data",
    "uv_req_get_type",
    "uv_req_set_data",
    "uv_stream_get_write_queue_size",
    "uv_tcp_simultaneous_accepts",
    "uv_tty_set_vterm_state",
    "uv_udp_get_send_queue_count",
    "uv_udp_get_send_queue_size",
];

const fn version(major: u32, minor: u32) -> u32 {
    major << 16 | minor << 8
}

/// A function that the carried library and ours have.
pub(crate) struct Pair {
    pub(crate) name: &'static [u8],
    /// The address of ours.
    pub(crate) own: usize,
    pub(crate) carried: Function,
}

/// A libuv inside an object.
pub(crate) struct Carried {
    /// The result of `uv_version`.
    pub(crate) version: u32,
    /// The number of functions that it exports and ours has.
    pub(crate) functions: usize,
    /// One for each function that can be replaced.
    pub(crate) jumps: Vec<Jump>,
    /// The hash of the addresses of its functions; see [`known::layout`].
    pub(crate) layout: u64,
    /// Whether the facts known beforehand apply to it.
    pub(crate) is_known: bool,
}

/// Why ours cannot replace the carried library.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Its version is outside the range that ours can replace: its version, and ours.
    Version(u32, u32),
    /// It has a function that ours lacks.
    Lacks(String),
    /// The two disagree on the size of a type.
    Size(&'static str),
    /// A function is too short for a jump.
    Short(String),
    /// Two functions share their code.
    Shared(String),
    /// Link-time optimisation may have inlined its functions into their callers.
    Optimised,
    /// Other threads may run the code that would be changed.
    Threads,
    /// It was opened in a way that did not let it be examined, and may be in use.
    InUse,
    /// The code could not be changed.
    Code(Failure),
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Version(carried, ours) => write!(
                formatter,
                "its libuv is {}, and ours stands in for {} to {}",
                Version(*carried),
                Version(OLDEST),
                Version(*ours)
            ),
            Refusal::Lacks(name) => write!(
                formatter,
                "its libuv has {name}, which ours has not; it is newer than ours, or changed"
            ),
            Refusal::Size(what) => {
                write!(formatter, "its libuv has another size for {what} than ours")
            }
            Refusal::Short(name) => {
                write!(formatter, "its {name} is too short to be replaced")
            }
            Refusal::Shared(name) => {
                write!(
                    formatter,
                    "its {name} shares its code with another function"
                )
            }
            Refusal::Optimised => formatter.write_str(
                "link-time optimisation has copied parts of its libuv to where they are called",
            ),
            Refusal::Threads => formatter
                .write_str("something else that is preloaded has started threads in it already"),
            Refusal::InUse => formatter.write_str(
                "it was opened by its name, in a place of its caller's own, and may be in use",
            ),
            Refusal::Code(Failure::NoMemoryNear) => {
                formatter.write_str("there is no free memory near its code")
            }
            Refusal::Code(Failure::Forbidden) => {
                formatter.write_str("the system does not let its code be changed")
            }
        }
    }
}

/// A version number, for display.
pub(crate) struct Version(pub(crate) u32);

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Version(version) = self;
        let (major, minor) = (version >> 16, version >> 8 & 0xff);
        write!(formatter, "{major}.{minor}.{}", version & 0xff)
    }
}

/// Examines the library that `image` carries. `known` saves a scan of all of its names.
pub(crate) fn examine(
    image: &Image,
    ours: &Image,
    known: Option<&Known>,
) -> Result<Carried, Refusal> {
    let mut pairs = Vec::with_capacity(400);
    ours.each_function(|name, own| {
        pairs.extend(image.function(name).map(|carried| Pair {
            name,
            own: own.address,
            carried,
        }));
    });
    let layout = known::layout(image, &pairs);
    let is_known = known.is_some_and(|known| known.layout == layout);
    if let Some(version) = written_version(image) {
        check_version(version, &pairs)?;
    }
    if !is_known {
        check_names(image, ours)?;
    }
    let mut jumps = Vec::with_capacity(pairs.len());
    for pair in &pairs {
        match place(image, pair.carried) {
            Some(at) => jumps.push(Jump { at, to: pair.own }),
            None if is_interchangeable(pair.name) => {}
            None => return Err(Refusal::Short(text(pair.name))),
        }
    }
    if !is_known {
        let functions: Vec<Function> = pairs.iter().map(|pair| pair.carried).collect();
        if !separate::is_compiled_apart(image, &functions) {
            return Err(Refusal::Optimised);
        }
    }
    // From here on its functions are called: those of a libuv do what is expected of them. A program
    // may export functions of these names that do something else, but then they do not call each other.
    let version = check_version(told_version(&pairs)?, &pairs)?;
    check_sizes(&pairs)?;
    check_shared(image, &pairs, &mut jumps)?;
    Ok(Carried {
        version,
        functions: pairs.len(),
        jumps,
        layout,
        is_known,
    })
}

/// The address of the jump in a function of `image`, if it fits.
pub(crate) fn place(image: &Image, function: Function) -> Option<usize> {
    let (_, _, end) = image.segment_of(function.address)?;
    let length = (function.size + JUMP_LENGTH + 16).min(end - function.address);
    // SAFETY: the bytes lie within a segment of the object.
    let code = unsafe { slice::from_raw_parts(function.address as *const u8, length) };
    let at = machine::place(code, function.address, function.size)?;
    Some(function.address + at)
}

fn is_interchangeable(name: &[u8]) -> bool {
    INTERCHANGEABLE.iter().any(|known| known.as_bytes() == name)
}

/// The addresses of a function of the carried library, and of ours.
fn both(pairs: &[Pair], name: &[u8]) -> Option<[usize; 2]> {
    let pair = pairs.iter().find(|pair| pair.name == name)?;
    Some([pair.carried.address, pair.own])
}

/// The version that `uv_version` returns, read from its code. `None` if that is compiled in a way
/// that is not known here.
fn written_version(image: &Image) -> Option<u32> {
    let function = image.function(b"uv_version")?;
    let code = image.code(function.address..function.address.checked_add(function.size)?)?;
    machine::returned_constant(code)
}

/// The version that `uv_version` returns.
fn told_version(pairs: &[Pair]) -> Result<u32, Refusal> {
    let [carried, _] = both(pairs, b"uv_version").ok_or(Refusal::Version(0, 0))?;
    Ok(ask_version(carried))
}

fn ask_version(function: usize) -> u32 {
    // SAFETY: every libuv declares the function with this type; it returns a constant.
    let ask: extern "C" fn() -> u32 = unsafe { core::mem::transmute(function) };
    ask()
}

fn check_version(carried: u32, pairs: &[Pair]) -> Result<u32, Refusal> {
    let [_, own] = both(pairs, b"uv_version").ok_or(Refusal::Version(0, 0))?;
    let own = ask_version(own);
    // Patch releases change no structure, so the last number does not matter.
    if (OLDEST..=own | 0xff).contains(&carried) {
        Ok(carried)
    } else {
        Err(Refusal::Version(carried, own))
    }
}

/// Compares the sizes that libuv reports. Skips types that the carried library does not know.
fn check_sizes(pairs: &[Pair]) -> Result<(), Refusal> {
    let of_types: [(&[u8], &'static str); 2] = [
        (b"uv_handle_size", "a handle"),
        (b"uv_req_size", "a request"),
    ];
    for (name, what) in of_types {
        let functions = both(pairs, name).ok_or(Refusal::Size(what))?;
        let [carried, own] = functions.map(|function| {
            // SAFETY: every libuv declares the two with this type; they map a number to a
            // constant.
            unsafe { core::mem::transmute::<usize, extern "C" fn(i32) -> usize>(function) }
        });
        let differs = |kind| carried(kind) != usize::MAX && carried(kind) != own(kind);
        if (1..TYPES).any(differs) {
            return Err(Refusal::Size(what));
        }
    }
    let functions = both(pairs, b"uv_loop_size").ok_or(Refusal::Size("a loop"))?;
    let [carried, own] = functions.map(|function| {
        // SAFETY: every libuv declares the function with this type; it returns a constant.
        let ask: extern "C" fn() -> usize = unsafe { core::mem::transmute(function) };
        ask()
    });
    if carried == own {
        Ok(())
    } else {
        Err(Refusal::Size("a loop"))
    }
}

/// Fails if the carried library exports a function that ours lacks. Linkers merge the tails of
/// names, so a name may begin in the middle of another one.
fn check_names(image: &Image, ours: &Image) -> Result<(), Refusal> {
    let mut lacking = None;
    search::each_uv(image.strings(), |at| {
        let name = image.name_at(at);
        let is_internal = name.starts_with(b"uv__");
        if !is_internal && image.function(name).is_some() && ours.function(name).is_none() {
            lacking = Some(text(name));
        }
    });
    lacking.map_or(Ok(()), |name| Err(Refusal::Lacks(name)))
}

/// Functions with the same code in different source files of libuv. Only a linker that merges equal
/// functions (`--icf=all`) gives both one address.
const ALIKE: [[&str; 2]; 2] = [
    ["uv_pipe_pending_instances", "uv_tty_set_vterm_state"],
    [
        "uv_stream_get_write_queue_size",
        "uv_udp_get_send_queue_size",
    ],
];

/// Functions with the same code may be merged, and a jump can lead to one function only. Leaves
/// merged functions as they are if all of them are interchangeable, and fails otherwise. It also fails if the
/// linker has merged them: a function of the program's may then have been merged with one of libuv's.
fn check_shared(image: &Image, pairs: &[Pair], jumps: &mut Vec<Jump>) -> Result<(), Refusal> {
    jumps.sort_unstable_by_key(|jump| jump.at);
    let shared: Vec<usize> = jumps
        .windows(2)
        .filter(|pair| pair[0].at == pair[1].at)
        .map(|pair| pair[0].at)
        .collect();
    if shared.is_empty() {
        return Ok(());
    }
    for [one, other] in ALIKE {
        let address = |name: &str| both(pairs, name.as_bytes()).map(|[carried, _]| carried);
        if address(one).is_some() && address(one) == address(other) {
            return Err(Refusal::Shared(one.to_owned()));
        }
    }
    for pair in pairs.iter().filter(|pair| !is_interchangeable(pair.name)) {
        let at = place(image, pair.carried);
        if at.is_some_and(|at| shared.contains(&at)) {
            return Err(Refusal::Shared(text(pair.name)));
        }
    }
    jumps.retain(|jump| !shared.contains(&jump.at));
    Ok(())
}

fn text(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}
