//! Detects whether a carried library was compiled separately from the program.
//!
//! Link-time optimisation inlines functions into their callers, and an inlined copy cannot be
//! replaced. It leaves no mark in a stripped file, so its absence has to be shown. An optimiser
//! that sees certain short functions together with their callers always inlines them, and libuv
//! calls each of these witnesses from another of its source files. If all of those calls exist,
//! the files were compiled separately. If one is missing, its witness was inlined, and other
//! functions may have been inlined into the program.

use crate::image::{Function, Image};
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

const CALL: u8 = 0xe8;
const JUMP: u8 = 0xe9;
const INDIRECT: u8 = 0xff;
const ENDBR64: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];

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

/// Removes the witnesses that `code` calls. Treats every byte as the start of an instruction,
/// since it is very unlikely that other bytes look like a call of one of these addresses.
fn remove_called(image: &Image, code: &[u8], start: usize, unseen: &mut Vec<Witness>) {
    for (at, bytes) in code.windows(6).enumerate() {
        let at = start + at;
        let (function, slot) = match *bytes {
            [CALL | JUMP, a, b, c, d, _] => {
                let target = relative(at + 5, [a, b, c, d]);
                (Some(target), stub_slot(image, target))
            }
            // `call *slot(%rip)` and `jmp *slot(%rip)`.
            [INDIRECT, 0x15 | 0x25, a, b, c, d] => (None, Some(relative(at + 6, [a, b, c, d]))),
            _ => continue,
        };
        unseen.retain(|witness| {
            let through_table = slot.is_some() && witness.slot == slot;
            !through_table && Some(witness.function) != function
        });
        if unseen.is_empty() {
            return;
        }
    }
}

/// The slot that a stub of the linkage table at `address` jumps through.
fn stub_slot(image: &Image, address: usize) -> Option<usize> {
    let stub = image.code(address..address.checked_add(11)?)?;
    let skipped = if stub.starts_with(&ENDBR64) { 4 } else { 0 };
    // A stub may begin with `bnd`, a prefix that current processors ignore.
    let skipped = skipped + usize::from(stub[skipped] == 0xf2);
    match *stub.get(skipped..)? {
        [INDIRECT, 0x25, a, b, c, d, ..] => {
            let next = address + skipped + 6;
            Some(relative(next, [a, b, c, d]))
        }
        _ => None,
    }
}

fn relative(next: usize, distance: [u8; 4]) -> usize {
    next.wrapping_add_signed(i32::from_le_bytes(distance) as isize)
}
