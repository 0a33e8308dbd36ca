//! Detects whether a carried library was compiled separately from the program.
//!
//! Link-time optimisation inlines functions into their callers, and an inlined copy cannot be
//! replaced. It leaves no mark in a stripped file, so its absence has to be shown. An optimiser
//! that sees certain short functions together with their callers always inlines them, and libuv
//! calls each of these witnesses from another of its source files. If all of those calls exist,
//! the files were compiled separately. If one is missing, its witness was inlined, and other
//! functions may have been inlined into the program.

use crate::image::{Function, Image};
use crate::machine::{self, Callee};
use core::ops::Range;

/// Short functions that libuv calls across its source files, from 1.44.0 on: for streams,
/// datagrams, the thread pool, files, processes and signals.
const WITNESSES: [&[u8]; 10] = [
    b"uv_buf_init",
    b"uv_cond_signal",
    b"uv_hrtime",
    b"uv_is_active",
    b"uv_mutex_lock",
    b"uv_mutex_unlock",
    b"uv_now",
    b"uv_once",
    b"uv_rwlock_rdlock",
    b"uv_signal_start",
];

/// The largest gap between exported functions that may contain internal ones.
const NEARBY: usize = 1 << 16;

/// The most stubs that lie between a call and its function: one to reach farther, and one of the
/// linkage table.
const STUBS: usize = 2;

/// The targets of calls of a witness.
#[derive(Clone, Copy)]
struct Witness {
    function: usize,
    /// The entry of the linkage table with its address, if calls go through that.
    slot: Option<usize>,
}

/// Whether the library with these exported functions was compiled separately, file by file.
pub(crate) fn is_compiled_apart(image: &Image, functions: &[Function]) -> bool {
    let mut unseen = Vec::with_capacity(WITNESSES.len());
    for name in WITNESSES {
        let Some(function) = image.function(name) else {
            return false;
        };
        let slot = image.uv_slots().find(|(other, _)| *other == name);
        unseen.push(Witness {
            function: function.address,
            slot: slot.map(|(_, at)| at),
        });
    }
    for range in ranges(functions) {
        if let Some(code) = image.code(range.clone()) {
            remove_called(image, code, range.start, &mut unseen);
        }
    }
    unseen.is_empty()
}

/// The address ranges of the library's code: its exported functions and the gaps between them.
fn ranges(functions: &[Function]) -> Vec<Range<usize>> {
    let mut functions = functions.to_vec();
    functions.sort_unstable_by_key(|function| function.address);
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for Function { address, size } in functions {
        let end = address + size;
        match ranges.last_mut() {
            Some(last) if address <= last.end + NEARBY => last.end = last.end.max(end),
            _ => ranges.push(address..end),
        }
    }
    ranges
}

/// Removes the witnesses that `code` calls.
fn remove_called(image: &Image, code: &[u8], start: usize, unseen: &mut Vec<Witness>) {
    machine::each_call(code, start, |callee| {
        let callees = with_stubs(image, callee);
        unseen.retain(|witness| {
            let is_called = |callee: &Callee| match *callee {
                Callee::Code(at) => at == witness.function,
                Callee::Pointer(at) => Some(at) == witness.slot,
            };
            !callees.iter().flatten().any(is_called)
        });
        !unseen.is_empty()
    });
}

/// Where a call leads, and where the stubs lead that it leads to.
fn with_stubs(image: &Image, callee: Callee) -> [Option<Callee>; STUBS + 1] {
    let mut callees = [Some(callee), None, None];
    for index in 0..STUBS {
        let Some(Callee::Code(at)) = callees[index] else {
            break;
        };
        let code = at.checked_add(machine::STUB).map(|end| at..end);
        callees[index + 1] = code
            .and_then(|code| image.code(code))
            .and_then(|code| machine::stub(code, at));
    }
    callees
}
